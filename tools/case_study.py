"""Write the generated parts of the case study's page; with --measure, measure it first.

usage: python tools/case_study.py [--check] [--measure [--pair fixed|fast] [--size gpu|nohelp|smoke] [--budget SECONDS]]

With --check nothing is written; exit status 1 says that the page differs. Figures come from the evidence that
--measure writes beside the files, and are stale once one of the two changes.
"""

from __future__ import annotations

import argparse
import difflib
import math
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from torchlint import evidence
from torchlint.report.evidence import markdown
from torchlint.verify import plots

if TYPE_CHECKING:
    from torchlint.evidence import Evidence, Measurement
    from torchlint.verify.workload import Workload

ROOT = Path(__file__).parents[1]
NAME = "anomaly_detection"
STUDY = ROOT / "fixtures" / "case_studies" / NAME
PAGE = ROOT / "docs" / "case_studies" / f"{NAME}.md"
PLOT = PAGE.with_suffix(".svg")
TARGET = 190 / 35  # seconds an epoch in the article, before and after
PAIRS = {"fixed": "what `torchlint fix --unsafe-fixes` makes of it", "fast": "that and the rest, by hand"}
_ISOLATED = ("--no-cache", "--isolated")


def standalone(drawing: str) -> str:
    """A drawing as a file of its own."""
    head, _, rest = drawing.partition(">")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}>\n<style>{plots.STYLE}</style>{rest}\n'


def generated(text: str) -> str:
    """`text` with each part between `<!-- begin: part -->` and `<!-- end: part -->` written again."""
    parts = {
        "check": _console("check", "--output-format", "concise", "slow.py"),
        "fix": _console("fix", "--unsafe-fixes", "--diff", "slow.py"),
        "left": _console("check", "--output-format", "concise", "fixed.py"),
        "hand": _by_hand(),
        "measured": _measured(),
    }
    for name, body in parts.items():
        before, begin, rest = text.partition(f"<!-- begin: {name} -->\n")
        _, end, after = rest.partition(f"<!-- end: {name} -->\n")
        assert begin, f"the page has no part `{name}`"
        assert end, f"the page does not end its part `{name}`"
        text = f"{before}{begin}\n{body}\n{end}{after}"
    return text


def drawn() -> str:
    """The plot as a file of its own; empty where no GPU was measured."""
    lines = [
        plots.Line(f"{pair}.py", f"{each.device.name}, {each.subject.size}", each.time.speedup, _tone(each))
        for pair in PAIRS
        for each in _on_gpus(pair)
        if each.time is not None
    ]
    return standalone(plots.forest(lines)) if lines else ""


@cache
def _console(*arguments: str) -> str:
    """A torchlint command in the folder of the study, and what it prints."""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_COLOR")}
    command = (sys.executable, "-m", "torchlint", *arguments, *_ISOLATED)
    done = subprocess.run(command, cwd=STUDY, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    language = "diff" if "--diff" in arguments else "console"
    return f"```{language}\n$ torchlint {' '.join(arguments)}\n{done.stdout.rstrip()}\n```\n"


def _by_hand() -> str:
    before, after = ((STUDY / name).read_text(encoding="utf-8").splitlines() for name in ("fixed.py", "fast.py"))
    rows = difflib.unified_diff(before, after, "fixed.py", "fast.py", lineterm="")
    return "```diff\n" + "\n".join(rows) + "\n```\n"


def _measured() -> str:
    """What the evidence says, against what the article reports."""
    parts = [part for pair, words in PAIRS.items() for part in _of_pair(pair, words)]
    if not any(_on_gpus(pair) for pair in PAIRS):
        parts.insert(0, "**Not measured on a GPU yet.** Nothing here says how much faster any of the three files is.\n")
    elif drawn():
        parts.append(f"![Speed-up over slow.py, with its interval]({PLOT.name})\n")
    return "\n".join(parts)


def _of_pair(pair: str, words: str) -> Iterator[str]:
    found = _evidence(pair)
    if not found:
        return
    yield f"### `{pair}.py`: {words}\n"
    # The last line names the command that measures a rule's pair; this one has another.
    text, _, _ = markdown(found, lambda each: evidence.is_stale(each, _digests(pair)), NAME).rpartition("Measure it")
    yield text.replace("### ", "#### ")
    for each in _on_gpus(pair):
        if each.time is not None and each.subject.size == "gpu":
            low = each.time.speedup.lo
            said = "reached: all of the interval lies above it" if low >= TARGET else "not shown to be reached"
            yield f"The article's {TARGET:.1f} times are {said}.\n"


def _tone(measurement: Measurement) -> str:
    return {"faster": "gain", "slower": "loss"}.get(measurement.verdict.overall, "flat")


def _evidence(pair: str) -> list[Evidence]:
    folder = STUDY / evidence.FOLDER / pair
    return [evidence.read(path.read_bytes(), str(path)) for path in sorted(folder.glob("*.json"))]


def _on_gpus(pair: str) -> list[Measurement]:
    return [each for found in _evidence(pair) for each in found.measurements if each.device.type == "cuda"]


def _digests(pair: str) -> dict[str, str]:
    names = {"sha256_before": "slow.py", "sha256_after": f"{pair}.py"}
    return {key: evidence.digest((STUDY / name).read_bytes()) for key, name in names.items()}


# Measuring


def measure(device: Literal["cuda", "cpu", "sim"], size: str, budget: float, pairs_asked: Sequence[str]) -> int:
    """Measure `slow.py` against the others; evidence is written after each. 1 if a result speaks against one."""
    from torchlint.verify import pairs, timing
    from torchlint.verify.machine import CannotRunError, Clerk, require

    command = shlex.join(["python", "tools/case_study.py", *sys.argv[1:]])
    status = 0
    with tempfile.TemporaryDirectory() as folder:
        clerk = Clerk(Path(folder), sys.executable)
        try:
            machine = clerk.machine()
            require(machine, device)
            for pair in pairs_asked:
                limits = timing.Limits(deadline=time.monotonic() + budget)
                order = pairs.Order(device, limits, 0, sys.executable, command)
                found = pairs.measure(_workload(pair), size, order, clerk, machine, _say).measurement
                print(f"{pair}.py {size}: {found.verdict.overall} {found.verdict.reason}")
                status |= found.verdict.overall in ("wrong-result", "error", "suspicious", "slower")
                _keep(pair, found)
        except CannotRunError as error:
            print(error)
            return 3
        finally:
            clerk.close()
    return status


def _say(text: str) -> None:
    print(text, flush=True)


def _workload(pair: str) -> Workload:
    """The pair in the place of a rule's: what is measured of one is measured of the other."""
    from torchlint.rule import Rule
    from torchlint.verify.workload import Workload, declaration

    slow, other = ((STUDY / f"{name}.py").read_bytes() for name in ("slow", pair))
    declared = declaration(slow, f"{NAME}/slow.py")
    return Workload(
        rule=Rule(NAME.replace("_", "-"), "TL000", "study", "A case study.", "0.1.0"),
        slow=slow,
        fast=other,
        fix="unsafe" if pair == "fixed" else "suggestion",
        numerics=declared["numerics"],
        metric=declared["metric"],
        sizes=declared["sizes"],
        nohelp=declared["nohelp"],
        digests=_digests(pair),
    )


def _keep(pair: str, found: Measurement) -> None:
    device = evidence.slug(found.device.name)
    path = STUDY / evidence.FOLDER / pair / f"{device}.json"
    there = (
        evidence.read(path.read_bytes(), str(path))
        if path.exists()
        else evidence.Evidence(schema="torchlint.evidence/1", rule=found.subject.rule, device=device, measurements=())
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(evidence.write(evidence.merge(there, [found])))


def main(arguments: Sequence[str]) -> int:
    """Measure if asked to, then write the page and its plot, or say that they are not what would be written."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 where the page differs")
    parser.add_argument("--measure", action="store_true", help="measure slow.py against the other two first")
    parser.add_argument("--pair", choices=PAIRS, action="append", help="measure this one only")
    parser.add_argument("--device", choices=("cuda", "cpu", "sim"), default="cuda")
    parser.add_argument("--size", default="gpu")
    parser.add_argument("--budget", type=float, default=math.inf, help="seconds for each pair")
    asked = parser.parse_args(arguments)
    status = measure(asked.device, asked.size, asked.budget, asked.pair or [*PAIRS]) if asked.measure else 0
    text = PAGE.read_text(encoding="utf-8")
    fresh, plot = generated(text), drawn()
    is_fresh = fresh == text and plot == (PLOT.read_text(encoding="utf-8") if PLOT.exists() else "")
    if asked.check:
        return status or int(not is_fresh)
    PAGE.write_text(fresh, encoding="utf-8")
    if plot:
        PLOT.write_text(plot, encoding="utf-8")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
