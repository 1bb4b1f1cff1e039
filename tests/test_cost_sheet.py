"""`torchlint report`: what a step of each loop costs, as text, as JSON and as a page."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from made_traces import TRAIN, training

from torchlint import cli
from torchlint.finding import Doubt
from torchlint.registry import all_rules
from torchlint.report import costs, pictures
from torchlint.report.costs import Event, Item, Loop, Sheet, event_of, worst_first
from torchlint.report.measured import Certainty, Cost, Line, Part, Profile, Step, Stretch, Unplaced
from torchlint.report.sheet import added_up
from torchlint.report.sheet_page import page

Capture = pytest.CaptureFixture[str]
HTML = "{http://www.w3.org/1999/xhtml}"


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (*filter(lambda name: name.startswith("TORCHLINT_"), os.environ), "FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "train.py").write_text(TRAIN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def reported(capsys: Capture, *arguments: str, status: int = 0) -> str:
    assert cli.run(["report", "--no-cache", *arguments]) == status
    out, err = capsys.readouterr()
    assert err == ""
    return out


def loops(capsys: Capture, *arguments: str) -> dict[str, list[tuple[str, str, int]]]:
    """By place of a loop what a step of it costs: the event, the file and the row."""
    found = json.loads(reported(capsys, "--output-format", "json", *arguments))
    assert found["schema"] == "torchlint.report/1"
    named = {
        f"{loop['filename']}:{loop['row']}": [(item["event"], item["filename"], item["row"]) for item in loop["items"]]
        for loop in found["loops"]
    }
    return named | {"": [(item["event"], item["filename"], item["row"]) for item in found["others"]]}


def test_the_sheet_of_a_loop(capsys: Capture) -> None:
    assert reported(capsys, "train.py") == (
        "train.py:8 for images, labels in loader\n"
        "  training loop in train: per step 1 synchronization and 1 blocking load; in doubt 1 copy\n"
        "  wait         train.py:13  total += loss.item()\n"
        "               TL301 `loss.item()` synchronizes with the GPU every batch\n"
        "               help: accumulate on the GPU and read it once after the loop\n"
        "  load         train.py:6  loader = DataLoader(dataset, batch_size=64)\n"
        "               TL101 `num_workers` is 0 by default: loading blocks the loop over the batches\n"
        "               help: load in worker processes, with `num_workers=4`\n"
        "  copy         train.py:6  loader = DataLoader(dataset, batch_size=64)\n"
        "               TL102 batches are in pageable memory, so `images.cuda()` blocks the CPU every batch\n"
        "               in doubt: it pays only where the GPU waits for the CPU\n"
        "\n"
        "No other file was asked: `torchlint report .` knows what those beside it call and give.\n"
        "Nothing was run: counts are by what the code says. `torchlint verify` runs it and measures.\n"
    )


def test_that_others_were_not_asked_is_said_where_they_were_not(project: Path, capsys: Capture) -> None:
    assert "No other file was asked" in reported(capsys, "train.py")
    assert "No other file was asked" not in reported(capsys, ".")
    (project / "torchlint.toml").touch()  # the project's files are known, and are asked
    assert "No other file was asked" not in reported(capsys, "train.py")


def test_with_a_trace_what_was_measured_most_comes_first(project: Path, capsys: Capture) -> None:
    training().write(project / "trace.json")
    out = reported(capsys, "train.py", "--profile", "trace.json")
    assert out.startswith("where the time goes: trace.json, 3 steps of 10.0 ms")
    sheet = out.partition("train.py:8 for images, labels in loader\n")[2]
    assert re.findall(r"^  (\w+) ", sheet, re.MULTILINE)[1:] == ["load", "wait", "copy"]
    assert "[1.99 ms a step, 20 %]" in sheet
    found = json.loads(reported(capsys, "train.py", "--profile", "trace.json", "--output-format", "json"))
    assert [round(item["measured"]["total_us"]) for item in found["loops"][0]["items"]] == [14994, 5961, 4991]
    assert found["profile"]["trace"]["steps"] == 3


def test_what_a_loop_calls_is_part_of_its_step(project: Path, capsys: Capture) -> None:
    (project / "train.py").write_text(
        dedent(
            """\
            import torch
            from torch.utils.data import DataLoader


            def accuracy(out, labels):
                return (out.argmax(1) == labels).float().mean().item()


            def log(out, labels):
                print(accuracy(out, labels))


            def train(model, optimizer, dataset):
                loader = DataLoader(dataset, num_workers=4)
                for images, labels in loader:
                    out = model(images.cuda(non_blocking=True))
                    out.sum().backward()
                    optimizer.step()
                    log(out, labels)


            @torch.no_grad()
            def evaluate(model, loader: DataLoader):
                right = 0
                for images, labels in loader:
                    right += accuracy(model(images.cuda(non_blocking=True)), labels)
                return right
            """
        )
    )
    found = loops(capsys, "train.py")
    assert ("wait", "train.py", 6) in found["train.py:15"]
    assert ("wait", "train.py", 6) in found["train.py:25"]
    whole = json.loads(reported(capsys, "train.py", "--output-format", "json"))
    assert {loop["row"]: loop["trains"] for loop in whole["loops"]} == {15: True, 25: False}


def test_what_a_loop_of_another_file_calls_is_part_of_its_step(project: Path, capsys: Capture) -> None:
    (project / "helper.py").write_text(
        "import torch\n\n\ndef accuracy(out, labels):\n    return (out.argmax(1) == labels).float().mean().item()\n"
    )
    (project / "train.py").write_text(
        dedent(
            """\
            from helper import accuracy
            from torch.utils.data import DataLoader


            def train(model, optimizer, dataset):
                for images, labels in DataLoader(dataset, num_workers=4):
                    out = model(images.cuda(non_blocking=True))
                    out.sum().backward()
                    optimizer.step()
                    print(accuracy(out, labels))
            """
        )
    )
    assert ("wait", "helper.py", 5) in loops(capsys, ".")["train.py:6"]


def test_a_loader_costs_the_loops_over_it_alone(project: Path, capsys: Capture) -> None:
    second = TRAIN.partition("def train(")[2].replace("loader", "batches")
    (project / "train.py").write_text(f"{TRAIN}\n\ndef again({second}")
    found = loops(capsys, "train.py")
    assert [item for item in found["train.py:8"] if item[0] == "load"] == [("load", "train.py", 6)]
    assert [item for item in found["train.py:20"] if item[0] == "load"] == [("load", "train.py", 18)]


def test_what_is_in_no_loop_is_listed_apart(project: Path, capsys: Capture) -> None:
    (project / "train.py").write_text("import torch\n\n\ndef mask(size):\n    return torch.ones(size, size).cuda()\n")
    out = reported(capsys, "train.py")
    assert out.startswith("in no loop over batches that is in sight\n  copy         train.py:5  return torch.ones")
    assert "\nNo loop over batches is in sight.\n" in out


def test_a_loop_in_which_nothing_is_found_is_listed_too(project: Path, capsys: Capture) -> None:
    (project / "train.py").write_text(
        "def train(model, loader, optimizer):\n    for batch in loader:\n        model(batch).sum().backward()\n        optimizer.step()\n"
    )
    assert "  training loop in train: nothing that a rule names\n" in reported(capsys, "train.py")


def test_a_file_that_cannot_be_read_is_named_and_costs_no_other(project: Path, capsys: Capture) -> None:
    (project / "broken.py").write_text("import torch\nx = torch.zeros(3).cuda(\n")
    out = reported(capsys, ".", status=1)
    assert "broken.py: E999 syntax error" in out
    assert "train.py:8 for images, labels in loader" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--profile", "none.json", "train.py"], "none.json: no such file"),
        (["--html", "no/such/folder.html", "train.py"], "no/such/folder.html: cannot write the page"),
        (["--select", "nonsense", "train.py"], "nonsense"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(capsys: Capture, arguments: list[str], message: str) -> None:
    assert cli.run(["report", "--no-cache", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert message in line


def test_nothing_is_run_and_nothing_is_written_unasked(project: Path, capsys: Capture) -> None:
    (project / "train.py").write_text(f"open('ran', 'w')\n{TRAIN}")
    reported(capsys, "train.py")
    assert [path.name for path in project.iterdir()] == ["train.py"]


# Events


def test_each_rule_is_about_an_event() -> None:
    rules = {rule.name: rule for rule in all_rules()}
    assert set(costs._OF_RULE) <= set(rules)  # noqa: SLF001 - a table
    assert {rule.group for rule in rules.values()} - {"torchlint"} == set(costs._OF_GROUP)  # noqa: SLF001 - as above
    assert event_of(rules["item-in-train-loop"]) is Event.WAIT
    assert event_of(rules["tensor-attribute-not-buffer"]) is Event.COPY
    assert event_of(rules["unused-ignore"]) is Event.OTHER
    redundant = [name for name, event in costs._OF_RULE.items() if costs._OF_GROUP[rules[name].group] is event]  # noqa: SLF001
    assert redundant == []


def item(event: Event, row: int, times: int | None = 1, doubts: tuple[Doubt, ...] = (), **more: Any) -> Item:  # noqa: ANN401
    return Item(event, "train.py", row, "x", "TL301 item", "message", "help", "per batch", times, doubts, **more)


def test_what_is_certain_comes_before_what_is_in_doubt_and_what_is_for_each_element_first() -> None:
    given = [
        item(Event.COPY, 1, doubts=(Doubt.SMALL,)),
        item(Event.LAUNCH, 2),
        item(Event.WAIT, 3),
        item(Event.LAUNCH, 4, times=None),
        item(Event.ALLOCATE, 5, measured=Cost({Part.WAIT: 5.0}, {Part.WAIT: 1})),
    ]
    assert [each.row for each in worst_first(given)] == [5, 4, 3, 2, 1]


@pytest.mark.parametrize(
    ("items", "expected"),
    [
        ([], "nothing that a rule names"),
        ([item(Event.WAIT, 1)], "per step 1 synchronization"),
        ([item(Event.WAIT, 1, 3), item(Event.COPY, 1, 2)], "per step 3 synchronizations and 2 copies"),
        ([item(Event.WAIT, 1, None)], "per step 1 synchronization or more"),
        ([item(Event.COPY, 1, doubts=(Doubt.SMALL,))], "per step, in doubt, 1 copy"),
        (
            [item(Event.WAIT, 1), item(Event.COPY, 2), item(Event.LOAD, 3), item(Event.WAIT, 4, 2, (Doubt.RARE,))],
            "per step 1 synchronization, 1 copy and 1 blocking load; in doubt 2 synchronizations",
        ),
    ],
)
def test_a_step_in_words(items: list[Item], expected: str) -> None:
    assert added_up(items) == expected


# Pictures

STEP = Step(
    100.0,
    (
        Stretch(0.0, 40.0, Part.LOAD, ("train.py", 8)),
        Stretch(40.0, 50.0, Part.COPY, ("train.py", 9)),
        Stretch(60.0, 90.0, Part.WAIT, ("train.py", 13)),
        Stretch(90.0, 95.0, Part.WAIT, None),
    ),
    ((42.0, 50.0), (65.0, 85.0)),
)


def test_what_named_lines_take_goes_where_the_gpu_is_idle() -> None:
    after = pictures.without(STEP, {("train.py", 8), ("train.py", 13)}, has_device=True)
    assert after is not None
    # 40 of loading, 5 before and 5 behind what the GPU does while line 13 waits.
    assert after.length == 50.0
    assert [(each.start, each.end) for each in after.device or ()] == [(2.0, 10.0), (20.0, 40.0)]
    assert [(each.kind, each.start, each.end) for each in after.host] == [("copy", 0.0, 10.0), ("wait", 40.0, 45.0)]


def test_without_a_gpu_loading_alone_can_go() -> None:
    after = pictures.without(STEP, {("train.py", 8), ("train.py", 13)}, has_device=False)
    assert after is not None
    assert after.device is None
    assert after.length == 60.0


def test_where_nothing_is_named_there_is_no_after() -> None:
    assert pictures.without(STEP, set(), has_device=True) is None
    assert pictures.without(STEP, {("train.py", 13)}, has_device=False) is None


def test_a_sketch_is_shorter_after_and_keeps_what_the_program_needs() -> None:
    loop = Loop("train.py", 8, "for x in loader", "train", True, (item(Event.LOAD, 6), item(Event.WAIT, 13)))  # noqa: FBT003
    before, after = pictures.sketch(loop, fixed=False), pictures.sketch(loop, fixed=True)
    assert after.length < before.length
    assert [each.label for each in before.host if each.kind == "wait"] == ["line 13"]
    assert not [each for each in after.host if each.kind == "wait"]
    needed = replace(loop, items=(item(Event.WAIT, 13, doubts=(Doubt.VALUE_DECIDES,)),))
    assert pictures.sketch(needed, fixed=True) == pictures.sketch(needed, fixed=False)
    assert all(each.stays for each in pictures.sketch(needed, fixed=True).host if each.kind == "wait")


@pytest.mark.parametrize("event", Event)
def test_each_event_can_be_drawn(event: Event) -> None:
    loop = Loop("train.py", 8, "for x in loader", "train", True, (item(event, 6), item(event, 7, None)))  # noqa: FBT003
    drawn = pictures.timeline(
        pictures.sketch(loop, fixed=False), pictures.sketch(loop, fixed=True), "t", is_to_scale=False
    )
    ET.fromstring(f"<p>{drawn}</p>")  # noqa: S314 - made a line above


def test_a_step_of_a_hundred_thousand_parts_is_drawn_small() -> None:
    stretches = tuple(Stretch(float(each), each + 0.5, Part.WAIT, None) for each in range(100_000))
    step = Step(100_000.0, stretches, tuple((each + 0.5, each + 1.0) for each in range(100_000)))
    drawn = pictures.timeline(pictures.of_trace(step, has_device=True), None, "t", is_to_scale=True)
    assert len(drawn) < 300_000


# The page

EVIL = "<script>alert('&\"1\"')</script>\x00\x1b[31m\u202e\ud800"


def evil_sheet() -> Sheet:
    cost = Cost({Part.WAIT: 5.0, Part.IDLE: 1.0}, {Part.WAIT: 1, Part.IDLE: 1}, launches=2, bytes=5.0)
    line = Line(EVIL, 8, EVIL, EVIL, Certainty.FUNCTION, cost, (EVIL,))
    silent = Line(EVIL, 9, EVIL, EVIL, Certainty.CALL, cost, (), EVIL)
    profile = Profile(EVIL, 100.0, EVIL, 50.0, 2, (line, silent), (Unplaced(EVIL, cost),), {}, STEP, (EVIL,))
    evil = Item(Event.WAIT, EVIL, 1, EVIL, f"{EVIL} {EVIL}", EVIL, EVIL, "per batch", 1, measured=cost)
    loop = Loop(EVIL, 1, EVIL, EVIL, True, (evil, item(Event.COPY, 2, doubts=(Doubt.SMALL,))))  # noqa: FBT003
    return Sheet(EVIL, (loop,), (evil,), 1, (EVIL,), profile)


def test_what_is_quoted_does_nothing_and_the_page_fetches_nothing() -> None:
    shown = page(evil_sheet())
    root = ET.fromstring(shown)  # noqa: S314 - made a line above
    tags = {found.tag.removeprefix(HTML).rpartition("}")[2] for found in root.iter()}
    assert not tags & {"script", "link", "img", "iframe", "object", "embed", "form", "base", "a"}
    assert "alert(" in "".join(root.itertext())
    attributes = {name.rpartition("}")[2] for found in root.iter() for name in found.attrib}
    assert not {name for name in attributes if name.startswith("on")} - {"on"}
    assert not attributes & {"href", "src", "style"}
    assert "url(" not in shown
    assert not {"\x00", "\x1b", "\u202e"} & set(shown)
    assert "default-src 'none'" in shown


def test_the_page_is_written_with_both(project: Path, capsys: Capture) -> None:
    training().write(project / "trace.json")
    reported(capsys, "train.py", "--profile", "trace.json", "--html", "page.html")
    shown = (project / "page.html").read_text(encoding="utf-8")
    root = ET.fromstring(shown)  # noqa: S314 - made a line above
    text = " ".join("".join(root.itertext()).split())
    for part in (
        "torchlint report train.py --profile trace.json",
        "NVIDIA A100-SXM4-40GB busy 27 %",
        "before, 10.0 ms",
        "after, 4.68 ms",
        "train.py:13 total += loss.item()",
        "help: accumulate on the GPU and read it once after the loop",
        "in doubt: it pays only where the GPU waits for the CPU",
        "A sketch by what the code says, not to scale",
    ):
        assert part in text, part
    assert len(re.findall(r'<svg [^>]*role="img"', shown)) == 2
