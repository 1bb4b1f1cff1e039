"""Compares the lines that operators of a trace are put on with the lines that ran.

    python tools/trace_lines.py train.py --epochs 1
    TORCHLINT_SYNTHETIC_DATA=512 python tools/trace_lines.py mnist/main.py --epochs 1

The program runs in its folder, on the CPU, under torch.profiler with stacks, and beside it under a trace of Python's
lines by the same clock. Printed is the share of operators, and of the time in them, that `check --profile` puts on the
line that ran, and the lines that get too few.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import tempfile
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, TypeAlias

from torch.profiler import ProfilerActivity, profile

from torchlint.report.measured import Part
from torchlint.traces.events import LOADS, read
from torchlint.traces.places import Places
from torchlint.traces.timeline import timeline
from torchlint.verify.inside import synthetic

Line: TypeAlias = tuple[str, int]
_MOST = 12
# What makes data up is no part of the program.
_MADE_UP = str(Path(synthetic.__file__).parent)


class Ran(NamedTuple):
    """Which line of a program's files ran from when on, in ns of the system's clock, in order; None for no line."""

    times: list[int]
    lines: list[Line | None]


class Compared(NamedTuple):
    """By line how many operators ran there and for how many µs, and what the trace says of both."""

    ran: Counter[Line]
    told: Counter[Line]
    ran_for: Counter[Line]
    told_for: Counter[Line]

    @property
    def share(self) -> float:
        """Of operators, those that are put on the line that ran."""
        return (self.ran & self.told).total() / max(self.ran.total(), 1)

    @property
    def share_of_time(self) -> float:
        """The same of their time."""
        met = sum(min(time, self.told_for[line]) for line, time in self.ran_for.items())
        return met / max(sum(self.ran_for.values()), 1e-9)


def record(program: Path, arguments: list[str], trace: Path) -> Ran:
    """Run a program in its folder, write its trace, and say which lines ran."""
    folder = program.resolve().parent
    ran = Ran([], [])
    open_frames: list[tuple[str, FrameType]] = []
    known: dict[str, str] = {}

    def note(frame: FrameType, event: str, argument: object) -> Callable[..., Any] | None:
        del argument
        name = frame.f_code.co_filename
        path = known.get(name) or known.setdefault(name, os.path.abspath(name))  # noqa: PTH100 - `resolve` costs much
        if not path.startswith((f"{folder}{os.sep}", _MADE_UP)):
            return None
        if event == "call":
            open_frames.append((path, frame))
        elif event == "return" and open_frames and open_frames[-1][1] is frame:
            open_frames.pop()
        if open_frames:
            path, frame = open_frames[-1]
            is_own = not path.startswith(_MADE_UP)
            ran.times.append(time.time_ns())
            ran.lines.append((Path(path).relative_to(folder).as_posix(), frame.f_lineno) if is_own else None)
        return note

    os.chdir(folder)
    sys.path.insert(0, str(folder))
    sys.argv = [program.name, *arguments]
    synthetic.replace_datasets()
    with profile(activities=[ProfilerActivity.CPU], with_stack=True) as recorded:
        sys.settrace(note)
        try:
            with suppress(SystemExit):
                runpy.run_path(program.name, run_name="__main__")
        finally:
            sys.settrace(None)
    recorded.export_chrome_trace(str(trace))
    return ran


def compare(folder: Path, trace: Path, ran: Ran) -> Compared:
    """What ran, and what the trace is taken to say of it. Loading counts as one operator."""
    recording = read(trace, trace.name)
    files = [(path.relative_to(folder).as_posix(), path, path.read_text) for path in folder.rglob("*.py")]
    places = Places(files, recording.names)
    told: Counter[Line] = Counter()
    told_for: Counter[Line] = Counter()
    for place, cost in timeline(recording, places).costs.items():
        for part in (Part.COMPUTE, Part.LOAD):
            told[place.path, place.row] += cost.counts.get(part, 0)
            told_for[place.path, place.row] += round(cost.times.get(part, 0.0))
    document = json.loads(trace.read_text())
    events = [event for event in document["traceEvents"] if event.get("cat") in ("cpu_op", "user_annotation")]
    events.sort(key=lambda event: (event["ts"], -event["dur"]))
    ran_there: Counter[Line] = Counter()
    ran_for: Counter[Line] = Counter()
    end = 0.0
    for event in events:
        if event["ts"] < end or not (event["cat"] == "cpu_op" or event["name"].startswith(LOADS)):
            continue
        end = event["ts"] + event["dur"]
        at = bisect_right(ran.times, event["ts"] * 1000 + document["baseTimeNanoseconds"]) - 1
        if at >= 0 and (ran_then := ran.lines[at]) is not None:
            path, row = ran_then
            line = path, places.statement(path, row)
            ran_there[line] += 1
            ran_for[line] += round(event["dur"])
    return Compared(ran_there, told, ran_for, told_for)


def main(arguments: list[str]) -> int:
    """Run, compare and print."""
    if not arguments:
        print(__doc__)
        return 2
    program = Path(arguments[0]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace.json"
        found = compare(program.parent, trace, record(program, arguments[1:], trace))
    print(
        f"{found.ran.total():,} operators, {100 * found.share:.1f} % of them and {100 * found.share_of_time:.2f} % of "
        "their time on the line that ran"
    )
    for (path, row), count in (found.ran - found.told).most_common(_MOST):
        print(f"{path}:{row}: {count} of {found.ran[path, row]} are put elsewhere")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
