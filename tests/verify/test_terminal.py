"""The report of a run in a terminal: the same facts in every width, and colour that changes only the looks."""

from __future__ import annotations

import math
import re
from dataclasses import replace

import pytest
from runs import REPORT, ratio

from torchlint.evidence import Ratio
from torchlint.report.style import PLAIN, Style
from torchlint.verify import words
from torchlint.verify.report_model import Change, Control, Report, Site, Together
from torchlint.verify.terminal import to_terminal

ANSI = re.compile(r"\x1b\[[0-9;]*m")
BARE = Report(title="t", command="c", device="d", entry="e")


def exact(value: float, spread: float) -> Ratio:
    return Ratio(ratio=value, lo=value - spread, hi=value + spread, level=0.99, n=8, log_ratios=(0.0,) * 8)


def test_the_table() -> None:
    row = replace(REPORT.rows[0], alone=exact(1.009, 0.007), without=exact(0.859, 0.01))
    other = REPORT.rows[4]
    shown = to_terminal(replace(BARE, rows=(row, other)), PLAIN, 160).splitlines()
    assert shown[1:] == [
        "entry: e",
        "",
        "fix                alone                the set without it  syncs/step  peak  numerics                      verdict",
        (
            "TL301 train.py:41  +0.9 % [+0.2, +1.6]  -14.1 %             3 -> 2      =     close (0.4 of the tolerance)  "
            "KEEP  faster (unsafe)"
        ),
        "    Keep the total on the device; masked: alone it gains little, without it the set is slower",
        (
            "TL401 eval.py:7    -                    -                   -           -                                   "
            "not exercised"
        ),
        "    Switch gradients off",
    ]


def test_where_the_table_does_not_fit() -> None:
    row = replace(REPORT.rows[0], alone=exact(1.009, 0.007), without=exact(0.859, 0.01))
    shown = to_terminal(replace(BARE, rows=(row, REPORT.rows[4])), PLAIN, 80).splitlines()
    assert shown[3:] == [
        "TL301 train.py:41",
        "    KEEP  faster (unsafe)",
        "    alone +0.9 % [+0.2, +1.6]; the set without it -14.1 %; syncs/step 3 -> 2;",
        "    numerics close (0.4 of the tolerance)",
        "    Keep the total on the device; masked: alone it gains little, without it the",
        "    set is slower",
        "TL401 eval.py:7",
        "    not exercised",
        "    Switch gradients off",
    ]


@pytest.mark.parametrize("columns", [60, 80, 100, 140, 200])
def test_lines_keep_to_the_width_and_lose_nothing(columns: int) -> None:
    shown = to_terminal(REPORT, PLAIN, columns)
    lines = [line for line in shown.splitlines() if not line.startswith("torchlint ") and "/step " not in line]
    assert all(len(line) <= columns for line in lines if "rotary.py" not in line)
    flat = " ".join(shown.split())
    for part in ("TL301 train.py:41", "-14.1 %", "3 -> 2", "no measurable difference", "rotary.py:212", "FAILED"):
        assert (part in flat) == (part != "FAILED")
    assert "the 2 kept fixes together: 3.4" in flat
    assert "loss after 40 steps equal" in flat
    assert "planted handicap of 5 %: -4.8 %, seen, ok" in flat
    assert "Nothing was written." in flat
    assert "check says nothing" in flat


@pytest.mark.parametrize("columns", [80, 200])
def test_colour_changes_nothing_but_the_looks(columns: int) -> None:
    dressed = to_terminal(REPORT, Style(color=True), columns)
    assert "\x1b" in dressed
    assert ANSI.sub("", dressed) == to_terminal(REPORT, PLAIN, columns)


def test_what_is_quoted_steers_nothing() -> None:
    evil = "a\x1b[2J\nb"
    row = replace(REPORT.rows[0], path=evil, title=evil, why=evil, numerics=evil)
    report = replace(REPORT, rows=(row,), device=evil, entry=evil, warnings=(evil,), written=evil)
    for columns in (60, 300):
        shown = to_terminal(report, PLAIN, columns)
        assert "\x1b" not in shown
        assert "␛[2J" in shown


def test_a_failed_control_and_no_gain() -> None:
    report = replace(
        BARE,
        controls=(Control("unchanged code", "+3.0 %", passed=False), Control("numerics can fail", "skipped")),
        together=Together(1, "inconclusive"),
    )
    shown = to_terminal(report)
    assert "controls: unchanged code: +3.0 %, FAILED; numerics can fail: skipped\n" in shown
    assert "the kept fix: inconclusive\n" in shown
    assert "all 2 fixes together: " in to_terminal(replace(BARE, together=Together(2, "faster", confirmed=False)))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1.0, "+0.0 %"),
        (0.99999, "+0.0 %"),
        (1.009, "+0.9 %"),
        (0.859, "-14.1 %"),
        (3.12, "+212 %"),
        (12.34, "12.3x"),
        (1234.5, "1,234x"),
    ],
)
def test_gains(value: float, shown: str) -> None:
    assert words.gain(value) == shown


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1.0001, "as fast"),
        (3.4, "3.40x faster"),
        (0.5, "2.00x slower"),
        (2000, "2,000x faster"),
        (0.001, "1,000x slower"),
    ],
)
def test_times(value: float, shown: str) -> None:
    assert words.times(value) == shown


@pytest.mark.parametrize(
    ("change", "share", "amount"),
    [
        (None, "-", "-"),
        (Change(100, 100), "=", "="),
        (Change(1000, 1005), "=", "="),
        (Change(0, 0), "=", "="),
        (Change(0, 2048), "from none", "0 -> 2.00 KiB"),
        (Change(2 << 20, 1 << 20), "-50.0 %", "2.00 -> 1.00 MiB"),
        (Change(1, 50), "50x", "1.00 -> 50.0 B"),
    ],
)
def test_memory(change: Change | None, share: str, amount: str) -> None:
    assert words.share_changed(change) == share
    assert words.bytes_changed(change) == amount


def test_a_gain_that_is_left_is_not_kept() -> None:
    left = replace(REPORT.rows[0], action="leave", verdict="faster")
    assert words.decision(left) == ""
    assert words.verdict(left) == "faster, not kept"
    assert words.verdict(replace(left, verdict="inconclusive")) == "inconclusive"


def test_an_interval_in_words() -> None:
    assert words.interval(None) == "-"
    assert words.interval(exact(1.27, 0.03)) == "+27.0 % [+24.0, +30.0]"
    assert words.interval(exact(8.2, 2.0)) == "8.20x [6.20x, 10.2x]"  # one unit for all
    assert words.ends(exact(3.4, 0.2)) == "99 % interval 3.20 to 3.60"
    assert math.isclose(ratio(1.2).ratio, 1.2, rel_tol=0.05)


def test_columns_that_say_nothing_are_left_out() -> None:
    row = replace(REPORT.rows[0], alone=None, without=None, memory=None, action=None)
    shown = to_terminal(replace(BARE, rows=(row,)), PLAIN, 100).splitlines()
    assert shown[3].split() == ["fix", "syncs/step", "numerics", "verdict"]
    assert shown[4].startswith("TL301 train.py:41  3 -> 2")


def test_lines_that_wait_go_below_each_other_where_there_is_no_room() -> None:
    site = Site("some/long/path/to/a/module/train.py", 41, "waits, copies to the device from pageable memory", 2.5)
    shown = to_terminal(replace(BARE, sites=(site,)), PLAIN, 60)
    assert shown.splitlines()[3:] == [
        "where the host waits and copies",
        "2.50/step  …/module/train.py:41",
        "    waits, copies to the device from pageable memory; check",
        "    says nothing",
    ]


def test_of_many_lines_that_wait_the_first_are_shown() -> None:
    sites = tuple(Site("train.py", line, "waits", 30 - line) for line in range(1, 31))
    shown = to_terminal(replace(BARE, sites=sites), PLAIN, 80)
    assert "train.py:20 " in shown
    assert "train.py:21 " not in shown
    assert "and 10 more lines, which --html and --output-format json list" in shown
