"""Compare what both files of each pair compute, as a GPU would run them, on the CPU: before a GPU is paid for.

usage: python -m tools.before_gpu [RULE ...] [--threads 1,8] [--seconds 120] [--size gpu] [--json FILE]

Each pair runs through the processes and the comparison of `torchlint verify`, at size `gpu`, with its switches for CUDA
forced (`fused=True`), with TF32 where cuDNN and cuBLAS use it, with noise where CUDA has no deterministic kernel, and
with each number of threads. Where one answer of a process takes longer than --seconds, the pair is tried again with
every number of its size that is 16 or more a quarter of it, and the table says so. Exit status 1: a fix is wrong or
fails.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torchlint import evidence
from torchlint.registry import all_rules, find
from torchlint.verify import checks
from torchlint.verify.arms import Arm, BaselineError, Patience, Subject
from torchlint.verify.catalogue import NOTHING_TO_MEASURE
from torchlint.verify.machine import Clerk
from torchlint.verify.process import ArmError
from torchlint.verify.session import session
from torchlint.verify.workload import FILE, workload

if TYPE_CHECKING:
    from torchlint.verify.workload import Workload

EMULATION = Path(__file__).with_name("as_cuda.py")
GOOD = ("same", "same-within-class")
_CUT = 4
_SMALLEST = 16
_TIMES_CUT = 3
_FORCED = re.compile(rb"\b(?!pin_memory)(\w+)=torch\.cuda\.is_available\(\)")
_USES_IT = b"\nfrom as_cuda import as_cuda\n\nsetup, run = as_cuda(setup, run)\n"


@dataclass(frozen=True, slots=True)
class Row:
    """What became of one pair: `size` are its numbers, `cut` how often they were made smaller."""

    rule: str
    threads: int
    verdict: str
    reason: str
    size: dict[str, Any]
    cut: int
    seconds: float
    worst: float | None = None
    aa_bit_equal: bool | None = None

    @property
    def good(self) -> bool:
        """Whether the fix computes the same."""
        return self.verdict in GOOD


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare them, and print a line for each as it is done."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rules", nargs="*", metavar="RULE")
    parser.add_argument("--threads", default="1,8", type=lambda text: [int(each) for each in text.split(",")])
    parser.add_argument("--seconds", default=120.0, type=float)
    parser.add_argument("--size", default="gpu")
    parser.add_argument("--json", type=Path, metavar="FILE")
    options = parser.parse_args(arguments)
    rows = []
    for pair in chosen(options.rules):
        for threads in options.threads:
            row = compared(pair, options.size, threads, options.seconds)
            rows.append(row)
            print(line(row), flush=True)
            if options.json:
                options.json.write_text(json.dumps([asdict(each) for each in rows], indent=1) + "\n", encoding="utf-8")
    bad = [row for row in rows if not row.good]
    smaller = len({row.rule for row in rows if row.cut})
    print(f"{len(rows)} comparisons, {len(bad)} not the same; {smaller} pairs at a smaller size than `{options.size}`")
    return 1 if bad else 0


def chosen(names: Sequence[str]) -> list[Workload]:
    """The pairs of these rules, or of all, but for those that take more than one GPU."""
    rules = [find(name) for name in names] or [
        rule for rule in all_rules() if rule.name not in NOTHING_TO_MEASURE and evidence.is_measurable(rule)
    ]
    return [pair for pair in map(workload, rules) if pair.devices == 1]


def compared(pair: Workload, size: str, threads: int, seconds: float) -> Row:
    """Compare a pair, at a smaller size where this one takes too long."""
    begin = time.monotonic()
    for cut in range(_TIMES_CUT + 1):
        numbers = smaller(pair.sizes[size], cut)
        row = _compared(with_size(pair, size, numbers), size, threads, seconds)
        row = replace(row, size=numbers, cut=cut, seconds=round(time.monotonic() - begin, 1))
        if row.verdict != "timeout":
            break
    return row


def smaller(numbers: dict[str, Any], cut: int) -> dict[str, Any]:
    """A size with its larger numbers divided so often."""

    def less(value: Any) -> Any:  # noqa: ANN401 - a number, a list of them, a name
        if isinstance(value, list):
            return [less(each) for each in value]
        if isinstance(value, bool) or not isinstance(value, int) or value < _SMALLEST:
            return value
        return max(_SMALLEST, value // _CUT**cut)

    return {name: less(value) for name, value in numbers.items()}


def with_size(pair: Workload, size: str, numbers: dict[str, Any]) -> Workload:
    """The pair with other numbers for that size."""
    if numbers == pair.sizes[size]:
        return pair
    literal = re.compile(rf'("{size}": )\{{[^{{}}]*\}}'.encode())

    def changed(source: bytes) -> bytes:
        found, count = literal.subn(lambda match: match[1] + repr(numbers).encode(), source, count=1)
        assert count == 1, f"{pair.rule.name}: no size {size}"
        return found

    return replace(pair, slow=changed(pair.slow), fast=changed(pair.fast))


def as_on_cuda(source: bytes) -> bytes:
    """A file of a pair with its switches for CUDA forced, run with the numerics of CUDA."""
    return _FORCED.sub(rb"\1=True", source) + _USES_IT


def _compared(pair: Workload, size: str, threads: int, seconds: float) -> Row:
    declared = checks.Declared(
        pair.numerics,
        pair.dropped,
        pair.free,
        of_loaders=pair.rule.name.startswith(checks.OF_LOADERS),
        slow_is_wrong=pair.slow_is_wrong,
    )
    row = Row(pair.rule.name, threads, "error", "", {}, 0, 0.0)
    with tempfile.TemporaryDirectory() as tree, tempfile.TemporaryDirectory() as scratch:
        root = Path(tree)
        (root / FILE).write_bytes(pair.slow)
        (root / EMULATION.name).write_bytes(EMULATION.read_bytes())
        null = Arm("null", {FILE: as_on_cuda(pair.slow)})
        fixed = Arm("fixed", {FILE: as_on_cuda(pair.fast)})
        subject = Subject(root, {"kind": "workload", "file": FILE, "size": size}, "cpu", threads, sys.executable)
        clerk = Clerk(Path(scratch), sys.executable)
        try:
            with session(subject, patience=Patience(check=seconds)) as running:
                base = checks.reference(running, null, declared)
                said = checks.check(running, clerk, base, fixed, declared)
        except BaselineError as error:
            verdict = "timeout" if error.failure.kind == "timeout" else "error"
            return replace(row, verdict=verdict, reason=f"the slow file: {error.failure.reason}")
        except ArmError as error:
            return replace(row, verdict="timeout" if error.kind == "timeout" else "error", reason=str(error))
        finally:
            clerk.close()
    worst = said.get("worst_over_tolerance")
    return replace(
        row, verdict=said["verdict"], reason=said["reason"], worst=worst, aa_bit_equal=said.get("aa_bit_equal")
    )


def line(row: Row) -> str:
    """One line of the table."""
    reduced = f"size / {_CUT**row.cut}" if row.cut else "full size"
    worst = "" if row.worst is None else f"{row.worst:.3g} of the tolerance"
    noisy = "" if row.aa_bit_equal in (True, None) else "differs from itself"
    words = "; ".join(filter(None, (worst, noisy, "" if row.good and row.worst is not None else row.reason)))
    return f"{row.rule:38} {row.threads:2} threads  {row.verdict:17}  {reduced:10}  {row.seconds:6.1f} s  {words}"


if __name__ == "__main__":
    sys.exit(main())
