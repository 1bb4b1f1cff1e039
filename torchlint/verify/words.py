"""The numbers of a report in words, the same in the terminal and in HTML."""

from __future__ import annotations

import math

from torchlint.evidence import Ratio
from torchlint.report.evidence import VERDICTS, duration, memory
from torchlint.report.evidence import times as times  # noqa: PLC0414 - a part of the words
from torchlint.report.text import crop, width
from torchlint.spoken import AND
from torchlint.verify.report_model import Change, Row, Site, Together
from torchlint.verify.stats import LOOKS

GOOD = ("faster", "saves-memory", "fewer-syncs", "fewer-copies", "fewer-launches")
BAD = ("slower", "wrong-result", "suspicious", "error", "timeout", "oom", "unfit")
NONE = "-"
SAME = "="
_SAME_MEMORY = 0.01
_FACTOR = 10.0  # from here on percent are hard to read


def gain(ratio: float, *, unit: bool = True) -> str:
    """A ratio of speeds as what it adds: `+0.9 %`, `-14.1 %`, `+212 %`, `12.3x`."""
    if ratio >= _FACTOR:
        return f"{ratio:.1f}x" if ratio < 100 else f"{ratio:,.0f}x"
    percent = 100 * (ratio - 1)
    shown = f"{percent:+.1f}" if abs(percent) < 100 else f"{percent:+.0f}"
    shown = "+0.0" if shown == "-0.0" else shown
    return f"{shown} %" if unit else shown


def interval(found: Ratio | None, *, unit: bool = True) -> str:
    """`+0.9 % [+0.2, +1.6]`, or `8.30x [2.27x, 10.1x]`: all in percent, or as factors. None before a look."""
    if found is None:
        return NONE
    if found.n < LOOKS[0]:
        return f"{gain(found.ratio, unit=unit)} [undecided]"
    if max(found.ratio, found.lo, found.hi) >= _FACTOR:
        shown, low, high = (f"{end:.2f}x" if end < _FACTOR else gain(end) for end in (found.ratio, found.lo, found.hi))
        return f"{shown} [{low}, {high}]"
    low, high = (gain(end, unit=False) for end in (found.lo, found.hi))
    return f"{gain(found.ratio, unit=unit)} [{low}, {high}]"


def ends(found: Ratio) -> str:
    """The interval in a sentence that speaks of factors: `99 % interval 3.20 to 3.60`. None before a look."""
    if found.n < LOOKS[0]:
        return interval(found)
    return f"{100 * found.level:.4g} % interval {found.lo:.2f} to {found.hi:.2f}"


def said_of(site: Site) -> str:
    """What `check` says of a line, or the nearest reason why no rule says that it waits."""
    named = f"{site.finding} ({site.severity})" if site.severity == "note" else site.finding
    if not site.silence:
        return named or "check says nothing"
    nearest = site.silence.partition(AND)[0]
    return f"{named}; {nearest}" if named else f"check says nothing: {nearest}"


def counted(change: Change | None) -> str:
    """`3 -> 2`, `=` where nothing changes."""
    if change is None:
        return NONE
    return SAME if change.before == change.after else f"{number(change.before)} -> {number(change.after)}"


def bytes_changed(change: Change | None) -> str:
    """`1.20 -> 0.85 GiB`, `=` where less than 1 % changes."""
    shown = share_changed(change)
    return shown if change is None or shown == SAME else memory(int(change.before), int(change.after))


def share_changed(change: Change | None) -> str:
    """`-29 %`, `=` where less than 1 % changes."""
    if change is None:
        return NONE
    share = change.after / change.before - 1 if change.before else 0.0 if not change.after else math.inf
    if abs(share) < _SAME_MEMORY:
        return SAME
    return f"{100 * share:+.1f} %" if share < _FACTOR else f"{share + 1:.0f}x" if share < math.inf else "from none"


def number(value: float) -> str:
    """A count per unit of work: `3`, `0.25`, `12,000`."""
    return f"{value:,.0f}" if value == int(value) else f"{value:,.2f}"


def decision(row: Row) -> str:
    """`KEEP` or `drop`, or nothing where nothing is decided."""
    return {"keep": "KEEP", "drop": "drop"}.get(row.action or "", "")


def verdict(row: Row) -> str:
    """The verdict in words, that a fix that would be kept is unsafe, and that a gain is not kept."""
    if row.action == "leave" and row.verdict in GOOD:
        return f"{VERDICTS[row.verdict]}, not kept"
    return VERDICTS[row.verdict] + (" (unsafe)" if row.safety == "unsafe" and row.action == "keep" else "")


def together(found: Together) -> str:
    """`the 3 kept fixes together`, `the kept fix`, or `all 3 fixes together` where none was kept."""
    if not found.confirmed:
        return f"all {found.kept} fixes together"
    return "the kept fix" if found.kept == 1 else f"the {found.kept} kept fixes together"


def place(row: Row) -> str:
    """`train.py:41`."""
    return f"{row.path}:{row.line}"


def end_of(text: str, columns: int) -> str:
    """`text` in at most that many columns; the end of a path tells more than its start."""
    total = width(text)
    return crop(text, max(0, total - columns), total)


def time_changed(change: Change | None) -> str:
    """`1.2 ms -> 840 µs`, `=` where less than 1 % changes; microseconds go in."""
    shown = share_changed(change)
    return shown if change is None or shown == SAME else f"{duration(change.before)} -> {duration(change.after)}"
