"""`torchlint check --profile`: what a trace adds to a report, and what is said of one that cannot be used."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from made_traces import TRAIN, training

from torchlint import cli

Capture = pytest.CaptureFixture[str]
ROOT = Path(__file__).parents[1]

# A loop on the CPU, recorded: it reads its loss in every step, in a helper, and prints it now and then.
RECORDED = """\
import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile
from torch.utils.data import DataLoader, TensorDataset


def metric(out, y):
    return (out.argmax(1) == y).float().mean().item()


def train(model, loader, optimizer):
    total = 0.0
    for x, y in loader:
        out = model(x)
        loss = nn.functional.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        if loss > 100:
            break
        total += metric(out, y)
    return total


def main(with_stack, path):
    data = TensorDataset(torch.randn(64, 16), torch.randint(0, 4, (64,)))
    loader = DataLoader(data, batch_size=8)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with profile(activities=[ProfilerActivity.CPU], with_stack=with_stack) as recorded:
        train(model, loader, optimizer)
    recorded.export_chrome_trace(path)


if __name__ == "__main__":
    main(True, "stacks.json.gz")
    main(False, "plain.json")
"""


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in (*filter(lambda name: name.startswith("TORCHLINT_"), os.environ), "FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "train.py").write_text(TRAIN)
    training().write(tmp_path / "trace.json")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def checked(capsys: Capture, *arguments: str, status: int = 1) -> str:
    assert cli.run(["check", "--no-cache", *arguments]) == status
    out, err = capsys.readouterr()
    assert err == ""
    return out


def test_findings_come_by_their_time(capsys: Capture) -> None:
    out = checked(capsys, "--profile", "trace.json", "--output-format", "concise", "train.py")
    assert out == (
        "train.py:6:14: TL101 `num_workers` is 0 by default: loading blocks the loop over the batches"
        " [5.00 ms a step, 50 %]\n"
        "train.py:13:18: TL301 `loss.item()` synchronizes with the GPU every batch [1.99 ms a step, 20 %]\n"
        "train.py:6:14: note: TL102 batches are in pageable memory, so `images.cuda()` blocks the CPU every batch"
        " [1.66 ms a step, 17 %] — it pays only where the GPU waits for the CPU\n"
        "\n"
        "where the time goes: trace.json, 3 steps of 10.0 ms, NVIDIA A100-SXM4-40GB busy 27 %\n"
        "    50 %  train.py:8  for images, labels in loader:\n"
        "          loads batches 5.00 ms a step (1x)\n"
        "          TL101 dataloader-no-workers\n"
        "    20 %  train.py:13  total += loss.item()\n"
        "          waits for the GPU 1.99 ms a step (1x)\n"
        "          TL301 item-in-train-loop\n"
        "    17 %  train.py:9  images = images.cuda()\n"
        "          copies 987 µs a step (1x, 4 MB), leaves the GPU idle 677 µs a step (0.67x)\n"
        "          TL102 dataloader-not-pinned\n"
        "   9.6 %  train.py:10  loss = model(images, labels)\n"
        "          leaves the GPU idle 960 µs a step (1x), 1 kernel launch\n"
        "\n"
        "Found 3 findings, 1 of them a note.\n"
        "2 fixable with `--fix --unsafe-fixes`.\n"
    )


def test_a_warning_has_what_was_measured_of_it(capsys: Capture) -> None:
    out = checked(capsys, "--profile", "trace.json", "train.py")
    assert "   = measured: 1.99 ms a step, 20 %: waits for the GPU 1.99 ms a step (1x)\n" in out
    assert out.index("TL101 `num_workers`") < out.index("TL301 `loss.item()`") < out.index("where the time goes")
    assert " blocks the CPU every batch [1.66 ms a step, 17 %] — " in out


def test_each_finding_in_json_has_what_was_measured(capsys: Capture) -> None:
    (Path("train.py")).write_text(TRAIN + "\n\nwarm = torch.zeros(3).cuda()\n")
    found = json.loads(checked(capsys, "--profile", "trace.json", "--output-format", "json", "train.py"))
    assert found["schema"] == "torchlint.profile/1"
    assert found["trace"] == {
        "filename": "trace.json",
        "length_us": 30000.0,
        "device": "NVIDIA A100-SXM4-40GB",
        "device_busy_us": 8115.0,
        "steps": 3,
        "remarks": [],
    }
    measured = {each["name"]: each["measured"] for each in found["findings"]}
    assert measured["item-in-train-loop"] == {
        "total_us": 5961.0,
        "share": 0.1987,
        "parts": {"wait": {"us": 5961.0, "count": 3}},
        "launches": 0,
        "copied_bytes": 12,
        "reads": 3,
    }
    assert measured["host-factory-then-move"] is None  # it did not run in the trace
    assert [(line["row"], line["findings"], line["located_by"]) for line in found["lines"]][:2] == [
        (8, ["TL101 dataloader-no-workers"], "call"),
        (13, ["TL301 item-in-train-loop"], "call"),
    ]


def test_without_a_trace_nothing_changes(capsys: Capture) -> None:
    assert isinstance(json.loads(checked(capsys, "--output-format", "json", "train.py")), list)
    assert "measured" not in checked(capsys, "train.py")


def test_a_line_that_no_rule_names_has_the_reason(capsys: Capture) -> None:
    Path("train.py").write_text(
        TRAIN.replace("total += loss.item()", "total += loss.item()  # torchlint: ignore[TL301]")
    )
    out = checked(capsys, "--profile", "trace.json", "--output-format", "concise", "train.py")
    assert "          no rule names it: TL302 item-in-eval-loop: " in out


def test_a_trace_of_other_files_says_so(capsys: Capture) -> None:
    Path("other.py").write_text("import torch\n")
    out = checked(capsys, "--profile", "trace.json", "--output-format", "concise", "other.py", status=0)
    assert "in no line of these files:\n    50 %  DataLoader: loads batches" in out
    assert "none of the files given runs in the trace" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--profile", "none.json", "train.py"], "none.json: no such file"),
        (["--profile", "train.py", "train.py"], "train.py: not the JSON of a trace; give the file that"),
        (["--profile", ".", "train.py"], ".: not a regular file"),
        (["--profile", "trace.json", "--fix", "train.py"], "`--profile` goes with `check` of files alone"),
        (["--profile", "trace.json", "--diff", "train.py"], "`--profile` goes with `check` of files alone"),
        (["--profile", "trace.json", "--statistics", "train.py"], "`--profile` goes with `check` of files alone"),
        (["--profile", "trace.json", "-"], "`--profile` goes with `check` of files alone"),
        (["--profile", "trace.json", "--output-format", "sarif", "train.py"], "`--profile` has no `sarif` output"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(capsys: Capture, arguments: list[str], message: str) -> None:
    assert cli.run(["check", "--no-cache", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert line.startswith(f"error: {message}"), line


def test_a_hostile_name_of_a_trace_steers_no_terminal(capsys: Capture) -> None:
    assert cli.run(["check", "--no-cache", "--profile", "\x1b[2J.json", "train.py"]) == 2
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.slow
def test_a_trace_that_was_recorded_names_the_lines(project: Path, capsys: Capture) -> None:
    (project / "recorded.py").write_text(RECORDED)
    subprocess.run([sys.executable, "recorded.py"], cwd=project, check=True, capture_output=True)
    found = json.loads(
        checked(capsys, "--profile", "stacks.json.gz", "--output-format", "json", "recorded.py", status=0)
    )
    assert found["trace"]["device"] is None
    assert found["trace"]["steps"] == 8
    lines = {line["row"]: line for line in found["lines"] if line["located_by"] != "function"}
    code = {number: line.strip() for number, line in enumerate(RECORDED.splitlines(), 1)}
    assert all(line["code"] == code[row] for row, line in lines.items())
    by_code = {line["code"]: line["measured"] for line in lines.values()}
    assert by_code["total += loss.item()"]["reads"] == 8
    assert by_code["if loss > 100:"]["reads"] == 8
    assert by_code["return (out.argmax(1) == y).float().mean().item()"]["reads"] == 8
    assert by_code["for x, y in loader:"]["parts"]["load"]["count"] == 9
    assert {"out = model(x)", "loss.backward()", "optimizer.step()"} <= set(by_code)
    assert sum(measured["total_us"] for measured in by_code.values()) <= found["trace"]["length_us"]
    assert found["elsewhere"] == []

    out = checked(capsys, "--profile", "plain.json", "--output-format", "concise", "recorded.py", status=0)
    assert "the trace has no Python stacks, so that no line can be named; record with" in out
    assert "no GPU in it: lines are ranked by time on the CPU" in out


@pytest.mark.slow
def test_operators_are_put_on_the_lines_that_ran(project: Path) -> None:
    alone = RECORDED.partition("    with profile(")[0] + "    train(model, loader, optimizer)\n\n\nmain(None, None)\n"
    (project / "recorded.py").write_text(alone)
    command = [sys.executable, str(ROOT / "tools" / "trace_lines.py"), "recorded.py"]
    done = subprocess.run(command, cwd=project, check=True, capture_output=True, text=True)
    match = re.search(r"([\d,]+) operators, ([\d.]+) % of them and ([\d.]+) % of their time", done.stdout)
    assert match is not None, done.stdout
    assert int(match[1].replace(",", "")) > 200
    assert float(match[2]) > 98, done.stdout
    assert float(match[3]) > 98, done.stdout
