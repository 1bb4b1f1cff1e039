from __future__ import annotations

import pytest
from report_samples import CRASHED, TRAIN, UNREADABLE, finding, options, report, sample, span

from torchlint.finding import Applicability
from torchlint.report import FileReport, ReportOptions
from torchlint.report.summary import changed, fixes, footer, total

SAFE = sample(Applicability.SAFE)
UNSAFE = sample(Applicability.UNSAFE)
SKETCH = sample(Applicability.DISPLAY)
UNFIXABLE = report(TRAIN, finding(span(TRAIN, "loss")))
BOTH = options(threshold=Applicability.UNSAFE)
FIXING = options(fixing=True)


@pytest.mark.parametrize(
    ("reports", "given", "written"),
    [
        ([], options(), "All checks passed!\n"),
        ([UNFIXABLE], options(), "Found 1 finding.\n"),
        ([SKETCH, UNFIXABLE], BOTH, "Found 2 findings.\n"),
        ([SAFE], options(), "Found 1 finding.\n[*] 1 fixable with `--fix`.\n"),
        (
            [SAFE, UNSAFE, UNSAFE],
            options(),
            "Found 3 findings.\n[*] 1 fixable with `--fix` (2 more with `--unsafe-fixes`).\n",
        ),
        ([UNSAFE], options(), "Found 1 finding.\n1 fixable with `--fix --unsafe-fixes`.\n"),
        ([SAFE, UNSAFE], BOTH, "Found 2 findings.\n[*] 2 fixable with `--fix`.\n"),
        ([UNREADABLE, CRASHED], options(), "Found 2 errors.\n"),
        ([UNREADABLE, UNFIXABLE], options(), "Found 1 finding and 1 error.\n"),
        ([report(TRAIN, fixed=5)], FIXING, "Found 5 findings (5 fixed, 0 remaining).\n"),
        (
            [report(TRAIN, fixed=5), UNSAFE, UNREADABLE],
            FIXING,
            "Found 6 findings (5 fixed, 1 remaining) and 1 error.\n1 more fixable with `--unsafe-fixes`.\n",
        ),
        ([UNSAFE], FIXING, "Found 1 finding.\n1 fixable with `--unsafe-fixes`.\n"),
    ],
)
def test_the_total(reports: list[FileReport], given: ReportOptions, written: str) -> None:
    assert total(reports, given) == written


def test_what_was_fixed_by_file_and_rule() -> None:
    first = FileReport(UNFIXABLE.source, UNFIXABLE.result, (("other", 2), ("sample-item-in-loop", 3)))
    second = report(TRAIN, path="b\x1b.py", fixed=1)
    assert footer([first, SAFE, second], options(fixing=True, show_fixes=True)) == (
        """\

Fixed 6 findings:
- train.py:
    3 × TL391 (sample-item-in-loop)
    2 × other
- b␛.py:
    1 × TL391 (sample-item-in-loop)

Found 8 findings (6 fixed, 2 remaining).
"""  # noqa: RUF001 - as ruff writes it
    )


def test_nothing_fixed_is_not_mentioned() -> None:
    assert fixes([UNSAFE], options(show_fixes=True)) == ""
    assert footer([report(TRAIN, fixed=1)], options(footer=False)) == ""


@pytest.mark.parametrize(
    ("reports", "written", "line"),
    [
        ([report(TRAIN, fixed=2)], True, "Fixed 2 findings.\n"),
        ([report(TRAIN, fixed=1)], False, "Would fix 1 finding.\n"),
        ([report(TRAIN, fixed=1), UNSAFE], False, "Would fix 1 finding (1 more with `--unsafe-fixes`).\n"),
        ([UNSAFE], True, "No fixes (1 more with `--unsafe-fixes`).\n"),
        ([UNFIXABLE], True, ""),
    ],
)
def test_the_line_below_a_diff_or_a_silent_fix(reports: list[FileReport], written: bool, line: str) -> None:  # noqa: FBT001
    assert changed(reports, FIXING, written=written) == line
