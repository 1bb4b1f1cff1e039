"""What torchlint does, on a script of its own: what it finds, how it fixes that, and what the fix saves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from torchlint.config import Configs, Overrides
from torchlint.finding import Applicability
from torchlint.report.style import BOLD, DIM, Style, decide
from torchlint.run import CLEAN, Loudness, Order, check, write_out
from torchlint.source import SourceFile

NAME = "train.py"
SCRIPT = """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda")


def train(model, loader, optimizer):
    total, correct = 0.0, 0
    for images, labels in loader:
        images, labels = images.to(device), labels.to(device)
        weight = torch.ones(10).to(device)
        scores = model(images)
        loss = nn.functional.cross_entropy(scores, labels, weight)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        correct += (scores.argmax(1) == labels).sum().item()
    print(f"loss {total / len(loader):.3f}, {correct / len(loader.dataset):.1%} right")


def main():
    data = TensorDataset(torch.randn(256, 1, 8, 8), torch.randint(10, (256,)))
    loader = DataLoader(data, batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10)).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(2):
        train(model, loader, optimizer)


if __name__ == "__main__":
    main()
"""
# Counting takes three seconds where nothing else runs, most of them to import torch.
_PATIENCE = 60.0
_COUNT = ("verify", NAME, "--device", "sim", "--only-count")
# What is counted, as which kinds, and how often before and after: shown where there is no torch, and held by a test.
_ROWS = (
    ("the CPU waits for the GPU", ("syncs",), (5, 2.25)),
    ("copies to the GPU", ("h2d_pageable", "h2d_pinned"), (3, 2)),
    ("copies to the CPU", ("d2h",), (2, 0.25)),
)


class _Counting(NamedTuple):
    """Processes that count what the script asks of a GPU: as it is, and fixed."""

    before: subprocess.Popen[bytes]
    after: subprocess.Popen[bytes]


def demo() -> int:
    """Print it; the exit status. Nothing is left on the disk."""
    style = Style(decide("auto", sys.stdout, os.environ))
    with tempfile.TemporaryDirectory(prefix="torchlint-") as name:
        folder = Path(os.path.realpath(name))
        for side, text in (("before", SCRIPT), ("after", _fixed(folder))):
            (folder / side).mkdir()
            (folder / side / NAME).write_text(text, encoding="utf-8", newline="\n")
        counting = _start(folder) if find_spec("torch") is not None else None
        try:
            _show(folder / "before", style)
            _say(style, f"torchlint {' '.join(_COUNT)}", *_counted(counting, style))
        finally:
            for process in counting or ():
                process.kill()
                process.communicate()
    write_out("\nNow your own code: `torchlint check`. `torchlint demo --script` prints this script.\n", sys.stdout)
    return CLEAN


def _show(folder: Path, style: Style) -> None:
    rows = SCRIPT.splitlines()
    _say(style, f"cat {NAME}", *(f"{style.paint(f'{row:2}', DIM)}  {line}" for row, line in enumerate(rows, 1)))
    overrides = Overrides(isolated=True, output_format="concise", unsafe_fixes=True)
    order = Order(folder, (NAME,), overrides, cache=False, loudness=Loudness.QUIET)
    _say(style, f"torchlint check {NAME}")
    check(order)
    _say(style, f"torchlint fix --unsafe-fixes --diff {NAME}")
    check(order._replace(diff=True))


def _say(style: Style, command: str, *lines: str) -> None:
    said = (f"\n{style.paint(f'$ {command}', BOLD)}", *lines)
    write_out("".join(f"{line}\n" for line in said), sys.stdout)


def _fixed(folder: Path) -> str:
    from torchlint.fixer import fix

    settings = Configs(Overrides(isolated=True), folder).for_directory(folder).settings_for(folder / NAME)
    return fix(SourceFile(NAME, SCRIPT), settings, Applicability.UNSAFE).source.text


def _start(folder: Path) -> _Counting:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TORCHLINT_")}
    command = [sys.executable, "-m", "torchlint", *_COUNT, "--output-format", "json", "--quiet", "--no-cache"]

    def start(side: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(  # noqa: S603 -- ourselves, on a script of our own
            command,
            cwd=folder / side,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    return _Counting(start("before"), start("after"))


def _counted(counting: _Counting | None, style: Style) -> Iterator[str]:
    """The table, or why there is none."""
    both: tuple[dict[str, float], ...] = ()
    if counting is None:
        yield "not run: there is no torch here (`pip install 'torchlint[verify]'` brings it); this is what it counts"
    else:
        try:
            both = tuple(_counts(process) for process in counting)
        except (ValueError, KeyError, subprocess.TimeoutExpired) as error:
            yield f"not counted here: {' '.join(str(error).split())}"
            return
    width = max(len(what) for what, _, _ in _ROWS)
    yield f"{style.paint(f'{str():{width}}  before  after', BOLD)}  in each training step, on a simulated GPU"
    for what, kinds, known in _ROWS:
        numbers = [sum(found.get(kind, 0.0) for kind in kinds) for found in both] or known
        shown = [f"{number:.2f}".rstrip("0").rstrip(".") for number in numbers]
        yield f"{what:{width}}  {shown[0]:>6}  {shown[1]:>5}"


def _counts(process: subprocess.Popen[bytes]) -> dict[str, float]:
    """How often a step asks for what. Raises `ValueError` where the process does not say."""
    out, err = process.communicate(timeout=_PATIENCE)
    found: dict[str, float] = {}
    report: dict[str, Any] | None = None
    with suppress(ValueError):
        (report,) = json.loads(out)["reports"]
    if report is None:
        raise ValueError((err.decode("utf-8", "replace").splitlines() or ["it said nothing"])[-1])
    for site in report["sites"]:
        for key, times in site["counts"].items():
            found[key] = found.get(key, 0.0) + times
    return found
