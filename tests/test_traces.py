"""What a trace says of the lines of a program, and what becomes of files that are no trace."""

from __future__ import annotations

import gzip
import json
import os
import threading
import tracemalloc
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import pytest
from made_traces import BACKWARD, TRAIN, Made, training

from torchlint.linter import lint
from torchlint.registry import all_rules
from torchlint.report import FileReport, ReportOptions, render
from torchlint.report.measured import Certainty, Part
from torchlint.report.style import PLAIN
from torchlint.report.where import duration, section
from torchlint.rule import Status
from torchlint.settings import Settings
from torchlint.source import SourceFile
from torchlint.traces import events as reading
from torchlint.traces.events import LOADS, TraceError, read
from torchlint.traces.places import Places
from torchlint.traces.profile import profile

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from torchlint.report.measured import Line, Profile


def profiled(trace: Path, files: Mapping[str, str]) -> Profile:
    """What a trace says of these files, which lie below `/project`."""
    settings = Settings(rules=tuple(rule.name for rule in all_rules() if rule.default and rule.status is Status.STABLE))
    reports = [FileReport(source := SourceFile(path, text), lint(source, settings)) for path, text in files.items()]

    def silences(path: str, rows: Collection[int]) -> dict[int, str]:
        return dict.fromkeys(rows, f"asked of {path}")

    texts = [(path, Path("/project") / path, lambda text=text: text) for path, text in files.items()]
    return profile(read(trace, trace.name), trace.name, texts, reports, silences)


def lines_of(made: Made, tmp_path: Path, text: str = TRAIN, path: str = "train.py") -> dict[int, Line]:
    found = profiled(made.write(tmp_path / "trace.json"), {path: text})
    return {line.row: line for line in found.lines}


def times(line: Line) -> dict[str, int]:
    return {part.value: round(time) for part, time in line.cost.times.items()}


# A program on a GPU


def test_each_part_of_a_step_goes_to_its_line(tmp_path: Path) -> None:
    lines = lines_of(training(), tmp_path)
    assert times(lines[8]) == {"load": 3 * 4998}
    assert times(lines[9]) == {"copy": 3 * 987, "idle": 2 * 1015}
    assert times(lines[10]) == {"idle": 3 * 960}
    assert times(lines[13]) == {"wait": 3 * 1987}
    assert set(lines) == {8, 9, 10, 11, 12, 13}
    assert {line.certainty for line in lines.values()} == {Certainty.CALL}


def test_a_copy_and_the_wait_that_ends_it_are_one(tmp_path: Path) -> None:
    lines = lines_of(training(), tmp_path)
    assert lines[9].cost.counts[Part.COPY] == 3
    assert lines[9].cost.bytes == 3 * 4_000_000
    assert lines[13].cost.counts[Part.WAIT] == 3


def test_what_another_thread_launches_in_a_backward_pass_is_of_the_line_that_started_it(tmp_path: Path) -> None:
    made = training()
    made.launch("cudaStreamSynchronize", 6700, 50, None, thread=BACKWARD)
    made.launch("cudaStreamSynchronize", 9500, 50, None, thread=BACKWARD)  # the pass is over
    found = profiled(made.write(tmp_path / "trace.json"), {"train.py": TRAIN})
    (backward,) = [line for line in found.lines if line.row == 11]
    assert backward.cost.launches == 3
    assert times(backward) == {"wait": 50}
    assert [(each.name, each.cost.total) for each in found.unplaced] == [("cudaStreamSynchronize", 50)]


def test_the_name_of_a_wrapper_is_no_reason_to_lose_a_line(tmp_path: Path) -> None:
    lines = lines_of(training(), tmp_path)
    assert lines[12].cost.launches == 3


def test_a_whole_profile(tmp_path: Path) -> None:
    found = profiled(training().write(tmp_path / "trace.json"), {"train.py": TRAIN})
    assert found.device == "NVIDIA A100-SXM4-40GB"
    assert found.steps == 3
    assert found.length == 30_000
    assert round(found.busy) == 3 * (850 + 1050 + 500 + 300 + 5)
    assert [(line.row, line.findings) for line in found.lines][:3] == [
        (8, ("TL101 dataloader-no-workers",)),
        (13, ("TL301 item-in-train-loop",)),
        (9, ("TL102 dataloader-not-pinned",)),
    ]
    by_rule = {finding.rule: round(cost.total) for (_, finding), cost in found.by_finding.items()}
    assert by_rule == {
        "dataloader-no-workers": 3 * 4998,
        "item-in-train-loop": 3 * 1987,
        "dataloader-not-pinned": 3 * 987 + 2 * 1015,
    }
    assert found.remarks == ()
    assert found.step is not None
    assert found.step.length == 10_000
    assert [(each.part, each.place) for each in found.step.host] == [
        (Part.LOAD, ("train.py", 8)),
        (Part.COPY, ("train.py", 9)),
        (Part.COPY, ("train.py", 9)),
        (Part.WAIT, ("train.py", 13)),
        (Part.WAIT, ("train.py", 13)),
    ]
    assert found.step.device == ((5099.0, 5949.0), (6949.0, 8804.0))


def test_steps_are_those_that_the_profiler_was_told_of(tmp_path: Path) -> None:
    made = training()
    for number in range(2):
        made.host("user_annotation", f"ProfilerStep#{number}", 15_000.0 * number, 15_000.0)
    found = profiled(made.write(tmp_path / "trace.json"), {"train.py": TRAIN})
    assert found.steps == 2
    assert found.step is not None
    assert found.step.length == 15_000


def test_the_loader_that_is_asked_once_more_makes_no_step(tmp_path: Path) -> None:
    made = training(2)
    made.events[0]["dur"] = 20_050
    made.frame("torch/utils/data/dataloader.py(720): __next__", 20_000, 20)
    made.host("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 20_001, 18)
    assert profiled(made.write(tmp_path / "trace.json"), {"train.py": TRAIN}).steps == 2


# Which line it is

READS = """\
def train(model, loader):
    for batch in loader:
        first = model(batch).item()
        second = model(batch).item()
        if batch > 0:
            third = batch[batch > 1]
    last = float(first)
"""


def frames(*names: str, within: str = "train.py(1): train", operator: str = "aten::item") -> Made:
    """A function that makes these calls one after the other, each of which reads a value."""
    made = Made()
    made.frame(within, 0, 1000 * len(names) + 1000)
    for number, name in enumerate(names):
        if name:
            made.frame(name, 1000 * number + 1, 900)
        if "item" in name or not name:
            made.host("cpu_op", operator, 1000 * number + 10, 100)
    return made


ITEM, NET = "<built-in method item of Tensor object at 0x7f00>", "nn.Module: Net_0"


def test_of_several_calls_of_a_name_the_order_tells(tmp_path: Path) -> None:
    lines = lines_of(frames(NET, ITEM, NET, ITEM, NET, ITEM), tmp_path, READS)
    assert {row: line.cost.reads for row, line in lines.items()} == {3: 2, 4: 1}
    assert {line.certainty for line in lines.values()} == {Certainty.ORDER}


LOOPS = """\
import torch
from torch import nn

loader = make(torch.nn.Linear(3, 3))
for epoch in range(2):
    for batch in loader:
        for part in range(3):
            batch.item()
        model.lstm(batch)
        batch.cpu()
    batch.cpu()
last = batch.item()
rows = [row.item() for row in batch]
"""
INIT = "torch/nn/modules/linear.py(90): __init__"
TURN = "torch/utils/data/dataloader.py(720): __next__"
CPU = "<built-in method cpu of Tensor object at 0x7f00>"
LSTM = "nn.Module: LSTM_0"


@pytest.mark.parametrize(
    ("names", "rows"),
    [
        ([INIT, TURN, ITEM, ITEM, ITEM, CPU, TURN, ITEM], [4, 6, 8, 8, 8, 10, 6, 8]),
        # What a loop does again is of the loop, also where the same is called after it.
        ([TURN, CPU, TURN, CPU, TURN, CPU], [6, 10, 6, 10, 6, 10]),
        ([TURN, LSTM, CPU, ITEM], [6, 9, 10, 8]),
    ],
)
def test_a_loop_begins_again(tmp_path: Path, names: list[str], rows: list[int]) -> None:
    made = Made()
    made.frame("train.py(4): <module>", 0, 1000 * len(names) + 1000)
    for number, name in enumerate(names):
        made.frame(name, 1000 * number + 1, 900)
        made.host("cpu_op", "aten::empty", 1000 * number + 10, 2.0**number)
    found: dict[int, float] = {}
    for line in lines_of(made, tmp_path, LOOPS).values():
        found[line.row] = line.cost.total
    expected: dict[int, float] = {}
    for number, row in enumerate(rows):
        expected[row] = expected.get(row, 0) + 2.0**number
    assert found == expected


MODULES = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 3)
        self.fc = nn.Linear(3, 3)

    def helper(self, x):
        return x

    def forward(self, x):
        x = self.helper(x)
        x = F.relu(x)
        x = self.lstm(x)
        return self.fc(x)


def main(kind):
    if kind:
        model = Other()
        model.to(1)
    else:
        model = Net()
        model.to(2)
"""


def test_an_object_is_made_where_its_class_is_called(tmp_path: Path) -> None:
    made = Made()
    made.frame("train.py(17): main", 0, 10_000)
    made.frame("train.py(2): __init__", 10, 4_000)
    for number, name in enumerate(("module", "rnn", "linear")):
        made.frame(f"torch/nn/modules/{name}.py(90): __init__", 100 + 1000 * number, 900)
        made.host("cpu_op", "aten::empty", 200 + 1000 * number, 10.0**number)
    made.frame("torch/nn/modules/module.py(1300): to", 5_000, 900)
    made.host("cpu_op", "aten::to", 5_100, 5)
    lines = lines_of(made, tmp_path, MODULES)
    assert {row: line.cost.total for row, line in lines.items()} == {3: 1, 4: 10, 5: 100, 23: 5}


def test_a_module_of_self_is_no_function_of_that_name(tmp_path: Path) -> None:
    made = Made()
    made.frame("train.py(10): forward", 0, 10_000)
    called = ("train.py(7): helper", "<built-in method relu of type>", "nn.Module: LSTM_0", "nn.Module: Linear_0")
    for number, name in enumerate(called):
        made.frame(name, 1000 * number + 1, 900)
        made.host("cpu_op", "aten::lstm", 1000 * number + 100, 10.0**number)
    made.frame("<built-in method lstm of type>", 2_050, 500)
    lines = lines_of(made, tmp_path, MODULES)
    assert {row: line.cost.total for row, line in lines.items()} == {7: 1, 12: 10, 13: 100, 14: 1000}


def test_what_a_library_reads_by_itself_is_no_read_of_the_line(tmp_path: Path) -> None:
    made = Made()
    made.frame("train.py(5): train", 0, 10_000)
    for number, name in enumerate(
        ("torch/optim/adam.py(200): step", "torch/optim/adam.py(400): adam", "a.py(3): b", ITEM)
    ):
        made.frame(name, 10 + number, 900 - 2 * number)
    made.host("cpu_op", "aten::item", 100, 10)
    made.frame(ITEM, 2_000, 100)
    made.host("cpu_op", "aten::item", 2_010, 10)
    lines = lines_of(made, tmp_path)
    assert {row: (line.cost.reads, line.cost.total) for row, line in lines.items()} == {12: (0, 10), 13: (1, 10)}


def test_a_statement_is_shown_on_one_line(tmp_path: Path) -> None:
    text = TRAIN.replace("loss.item()", "float(\n            loss.item(),\n        )")
    assert lines_of(training(), tmp_path, text)[13].code == "total += float( loss.item(), )"


def test_a_comprehension_has_a_line_of_its_own(tmp_path: Path) -> None:
    made = frames("", within="train.py(13): <listcomp>", operator="aten::pow")
    lines = lines_of(made, tmp_path, LOOPS)
    assert {row: line.certainty for row, line in lines.items()} == {13: Certainty.LINE}


@pytest.mark.parametrize(
    ("operator", "row"),
    [("aten::is_nonzero", 5), ("aten::index", 6), ("aten::gt", 5), ("aten::item", 5), ("aten::sin", 1)],
)
def test_what_nothing_called_by_name_is_found_by_its_syntax(tmp_path: Path, operator: str, row: int) -> None:
    lines = lines_of(frames("", operator=operator), tmp_path, READS)
    assert list(lines) == [row]
    assert (lines[row].certainty is Certainty.FUNCTION) is (row == 1)


def test_a_line_in_a_function_that_nobody_can_tell_is_named_by_the_function(tmp_path: Path) -> None:
    made = frames("helper.py(1): item_of")
    found = profiled(made.write(tmp_path / "trace.json"), {"train.py": READS})
    assert "train.py:1 somewhere in train" in section(found, PLAIN, 100)
    assert not found.by_finding


def test_a_stack_in_the_arguments_has_the_line(tmp_path: Path) -> None:
    made = Made()
    stack = "torch/functional.py(10): einsum;train.py(13): train;main.py(3): <module>"
    made.host("cpu_op", "aten::item", 0, 100, stack=stack)
    made.host("cpu_op", "aten::add", 200, 100, stack="other.py(13): train")
    lines = lines_of(made, tmp_path)
    assert {row: line.certainty for row, line in lines.items()} == {13: Certainty.LINE}
    assert lines[13].cost.reads == 1


def old_trace() -> Made:
    """As torch 1.9 recorded it: other categories, all that is annotated an operator, the stacks in the arguments."""
    made = Made()
    loop, copy = "train.py(8): train;main.py(3): <module>", "train.py(9): train;main.py(3): <module>"
    made.host(
        "Operator", "ProfilerStep#5", 0, 9_000, stack="torch/profiler/profiler.py(312): step;main.py(9): <module>"
    )
    made.host("Operator", f"{LOADS}_SingleProcessDataLoaderIter.__next__", 10, 5_000, stack=loop)
    made.host("Operator", "aten::to", 5_100, 1_000, stack=copy)
    made.host("Operator", "aten::copy_", 5_110, 980, stack=f"torch/functional.py(3): copy;{copy}")
    made.launch("cudaMemcpyAsync", 5_120, 900, ("Memcpy", "Memcpy HtoD (Pageable -> Device)", 5_130, 880))
    made.host("Operator", "aten::item", 7_000, 1_000, stack="elsewhere.py(9): train")
    made.launch("cudaStreamSynchronize", 7_010, 900, None)
    made.host("Operator", "MmBackward", 6_200, 500, BACKWARD)
    made.launch("cudaLaunchKernel", 6_210, 10, ("Kernel", "sgemm", 6_300, 300), thread=BACKWARD)
    for event in made.events:
        event["cat"] = {"cuda_runtime": "Runtime"}.get(event["cat"], event["cat"])
    return made


def test_a_trace_of_an_older_torch_is_read_too(tmp_path: Path) -> None:
    found = profiled(old_trace().write(tmp_path / "trace.json"), {"train.py": TRAIN})
    lines = {line.row: line for line in found.lines}
    assert {row: times(line) for row, line in lines.items()} == {
        8: {"load": 5_000},
        9: {"copy": 900},
        11: {"idle": 280},
    }
    assert lines[8].certainty is Certainty.LINE
    assert lines[11].certainty is Certainty.CALL  # the one `backward()` of the file
    assert found.steps == 1
    assert [(each.name, each.cost.total) for each in found.unplaced] == [("aten::item", 900)]


def test_of_two_backward_passes_without_frames_none_is_guessed(tmp_path: Path) -> None:
    lines = lines_of(old_trace(), tmp_path, TRAIN.replace("        optimizer.step()\n", "        loss.backward()\n"))
    assert set(lines) == {8, 9}


def test_calls_of_the_runtime_without_events_of_the_gpu_count_once(tmp_path: Path) -> None:
    made = old_trace()
    made.events = [event for event in made.events if event["cat"] not in ("Memcpy", "Kernel")]
    found = profiled(made.write(tmp_path / "trace.json"), {"train.py": TRAIN})
    assert found.has_device
    assert "A100-SXM4-40GB busy unknown" in section(found, PLAIN, 100)
    assert found.remarks == ()
    assert not any(Part.COMPUTE in line.cost.times for line in found.lines)


def test_without_stacks_what_was_done_is_named_and_how_to_record_them(tmp_path: Path) -> None:
    found = profiled(training(frames=False).write(tmp_path / "trace.json"), {"train.py": TRAIN})
    assert found.lines == ()
    assert [each.name for each in found.unplaced][:3] == ["DataLoader", "aten::item", "aten::to"]
    assert "`profile(..., with_stack=True)`" in found.remarks[0]
    assert found.by_finding == {}


@pytest.mark.parametrize(
    ("path", "file", "is_it"),
    [
        ("train.py", "train.py", True),
        ("/project/train.py", "train.py", True),
        ("src/train.py", "src/train.py", True),
        ("/elsewhere/src/train.py", "src/train.py", True),  # recorded on another machine
        ("/elsewhere/train.py", "train.py", True),
        ("other/train.py", "src/train.py", False),
        ("/usr/lib/python3/site-packages/pack/train.py", "train.py", False),
        ("../train.py", "train.py", False),
        ("..\\train.py", "train.py", False),
        ("train.py.py", "train.py", False),
        ("/project/train.py/", "train.py", True),
    ],
)
def test_a_path_stands_for_a_file_of_the_run_or_for_none(path: str, file: str, is_it: bool) -> None:  # noqa: FBT001
    places = Places([(file, PurePosixPath("/project") / file, lambda: TRAIN)], [f"{path}(5): train"])
    assert (places.function(0) is not None) is is_it


@pytest.mark.parametrize(
    "name", ["train.py(6): train", "train.py(5): fit", "train.py(99999999): train", "train.py(0): train"]
)
def test_a_file_that_was_changed_is_named(tmp_path: Path, name: str) -> None:
    made = Made()
    made.frame(name, 0, 100)
    made.host("cpu_op", "aten::item", 10, 10)
    found = profiled(made.write(tmp_path / "trace.json"), {"train.py": TRAIN})
    if name == "train.py(6): train":  # it ran before the recording began: the line is where it was then
        assert [line.function for line in found.lines] == ["train"]
    else:
        assert found.lines == ()
        assert any(remark.startswith("train.py is not as it was") for remark in found.remarks)


def test_code_that_cannot_be_parsed_costs_its_lines_alone(tmp_path: Path) -> None:
    found = profiled(training().write(tmp_path / "trace.json"), {"train.py": "def train(:\n"})
    assert found.lines == ()
    assert found.unplaced


def test_a_loop_is_named_by_the_finding_at_its_own_loader(tmp_path: Path) -> None:
    text = TRAIN.replace(
        "    return total\n",
        "    return total, DataLoader(dataset, batch_size=1), [*map(print, DataLoader(dataset))]\n",
    )
    found = profiled(training().write(tmp_path / "trace.json"), {"train.py": text})
    loaders = {
        finding.span.start: cost.total for (_, finding), cost in found.by_finding.items() if finding.code == "TL101"
    }
    assert len(loaders) == 1


# What is no trace


def refused(tmp_path: Path, data: bytes) -> str:
    path = tmp_path / "trace.json"
    path.write_bytes(data)
    with pytest.raises(TraceError) as caught:
        read(path, "trace.json")
    message = str(caught.value)
    assert message.startswith("trace.json: ")
    assert "\n" not in message
    return message


WHOLE = json.dumps(training().document()).encode()


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "not the JSON of a trace"),
        (b"   \n ", "not the JSON of a trace"),
        (b"import torch\n", "not the JSON of a trace"),
        (b"\x80\x02}q", "not the JSON of a trace"),
        (b"[]", "no events of torch.profiler"),
        (b"{}", "no events of torch.profiler"),
        (b'{"traceEvents": []}', "no events of torch.profiler"),
        (b'{"traceEvents": {"ph": "X"}}', "no events of torch.profiler"),
        (b'[{"ph": "X", "name": "a", "ts": 1, "dur": 2}]', "no events of torch.profiler"),
        (b'{"a" 1}', "damaged"),
        (b"{1: 2}", "damaged"),
        (b'{"a": 1 "b": 2}', "damaged"),
        (b'{"traceEvents": [{"ph": "X"} {"ph": "X"}]}', "damaged behind event 1"),
        (b"[" * 100_000, "damaged"),
        (b'{"a":' * 100_000, "damaged"),
        (b'["' + b"x" * 10_000_000, "damaged"),
        (WHOLE[: len(WHOLE) // 2], "cut off behind event"),
        (WHOLE[:-1], "cut off behind event"),
        (gzip.compress(WHOLE)[:-20], "damaged or cut off"),
        (gzip.compress(WHOLE)[:100] + b"\xff" * 100, "damaged"),
        (b"\x1f\x8b", "damaged or cut off"),
        (b"\x1f\x8bxx", "damaged"),
    ],
    ids=lambda value: value if isinstance(value, str) else len(value),
)
def test_what_is_no_trace_is_named_in_one_line(tmp_path: Path, data: bytes, expected: str) -> None:
    assert expected in refused(tmp_path, data)


@pytest.mark.parametrize("filler", [b" " * (1 << 20), b'{"ph":"M"},' * 90_000], ids=["blanks", "events"])
def test_what_is_packed_too_well_is_not_unpacked(
    tmp_path: Path, filler: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    packed = gzip.compress(b"[" + filler * 8)
    assert len(packed) < 100_000
    monkeypatch.setattr(reading, "_UNSUSPECTED", 4 << 20)
    assert "more text than torchlint reads" in refused(tmp_path, packed)


def test_too_many_events_or_names_end_the_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_EVENTS", 10)
    assert "more than 10 events; record fewer steps" in refused(tmp_path, WHOLE)
    monkeypatch.undo()
    monkeypatch.setattr(reading, "_MOST_NAMES", 100)
    assert "more names than torchlint keeps" in refused(tmp_path, WHOLE)
    monkeypatch.undo()
    monkeypatch.setattr(reading, "MOST_BYTES", 1000)
    assert "more text than torchlint reads" in refused(tmp_path, WHOLE)


def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match=r"^folder: "):
        read(tmp_path, "folder")
    with pytest.raises(TraceError, match=r"^none: "):
        read(tmp_path / "none", "none")
    os.mkfifo(tmp_path / "pipe")
    waiting = threading.Timer(20, lambda: (tmp_path / "pipe").open("wb").close())
    waiting.start()
    try:
        with pytest.raises(TraceError, match=r"^pipe: not a regular file"):
            read(tmp_path / "pipe", "pipe")
    finally:
        waiting.cancel()


def test_memory_is_that_of_what_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    other = json.dumps({"ph": "f", "cat": "ac2g", "name": "x" * 1000, "ts": 1}).encode()
    kernel = json.dumps({"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 1, "pid": 0, "tid": 7}).encode()
    path.write_bytes(b'{"traceEvents": [' + (other + b",\n") * 30_000 + kernel + b"]}")
    assert path.stat().st_size > 30_000_000
    tracemalloc.start()
    try:
        read(path, "trace.json")
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 12_000_000


# What a trace holds that it should not


ODD: list[Any] = [None, True, "1", "x", [], {}, [1], {"a": 1}, -1, 1e300, 10**400, "\ud800", "nan"]


@pytest.mark.parametrize("key", ["ph", "cat", "name", "pid", "tid", "ts", "dur", "args"])
def test_values_of_another_type_cost_their_event_alone(tmp_path: Path, key: str) -> None:
    made = training()
    for value in ODD:
        made.events.append({**made.events[5], key: value})
        made.events.append({name: part for name, part in made.events[5].items() if name != key})
        made.events += [value] if not isinstance(value, dict) else []
        made.events.append(
            {**made.events[5], "args": {"correlation": value, "device": value, "bytes": value, "Call stack": value}}
        )
    found = profiled(made.write(tmp_path / "trace.json"), {"train.py": TRAIN})
    assert {8, 13} <= {line.row for line in found.lines}
    json.loads(render("json", [], ReportOptions(profile=found)), parse_constant=pytest.fail)


def test_numbers_that_json_does_not_have_are_none(tmp_path: Path) -> None:
    text = WHOLE.decode().replace(
        '"ts": 7003.0, "dur": 17', f'"ts": NaN, "dur": Infinity, "a": {"9" * 10_000}, "b": 1e999'
    )
    assert "NaN" in text
    (tmp_path / "trace.json").write_text(text)
    found = profiled(tmp_path / "trace.json", {"train.py": TRAIN})
    assert any(remark.startswith("1 events without a valid time") for remark in found.remarks)
    assert found.length == 30_000


def test_no_name_steers_a_terminal(tmp_path: Path) -> None:
    hostile = "\x1b[2J\u202e\n::error::x\r"
    made = training()
    made.host("cpu_op", f"aten::{hostile}", 40_000, 5_000)
    made.launch("cudaStreamSynchronize", 40_100, 4_000, None)
    document = made.document()
    document["deviceProperties"] = [{"name": hostile}, {"name": 5}, 7]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps(document))
    text = TRAIN.replace("loss.item()", f"loss.item()  # {hostile[:5]}\u202e")
    found = profiled(path, {"train.py": text})
    shown = section(found, PLAIN, 100)
    assert not {"\x1b", "\u202e", "\r"} & set(shown)
    assert not any(line.startswith("::") for line in shown.splitlines())
    assert json.loads(render("json", [], ReportOptions(profile=found)))["trace"]["device"] == hostile


def test_events_without_end_or_order_are_taken(tmp_path: Path) -> None:
    made = training()
    del made.events[0]["dur"]
    made.events.reverse()
    found = profiled(made.write(tmp_path / "trace.json"), {"train.py": TRAIN})
    assert found.lines == ()  # the frame has no length, so nothing is within it
    assert found.unplaced


# In words


@pytest.mark.parametrize(
    ("microseconds", "expected"),
    [
        (0, "0 µs"),
        (0.5, "0.50 µs"),
        (840, "840 µs"),
        (12_400, "12.4 ms"),
        (3_100_000, "3.10 s"),
        (7_200_000_000, "7,200 s"),
    ],
)
def test_a_duration_in_words(microseconds: float, expected: str) -> None:
    assert duration(microseconds) == expected
