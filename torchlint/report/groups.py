"""Findings in groups under a title: of a rule, of a file, or of what makes them run as often as they do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from torchlint.finding import Frequency
from torchlint.report.summary import count
from torchlint.report.text import opening, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchlint.report.entry import Entry
    from torchlint.source import SourceFile

Group = tuple[str, list["Entry"]]


def groups(found: Sequence[Entry], by: str) -> list[Group]:
    """The groups with their titles: rules by their codes, files in order, loops by how much happens in them."""
    title = {"rule": _rule, "file": _file, "loop": _loop}[by]
    parts: dict[str, list[Entry]] = {}
    for entry in found:
        parts.setdefault(title(entry), []).append(entry)
    ordered = list(parts.items())
    if by == "rule":
        ordered.sort(key=lambda group: group[1][0].code)
    elif by == "loop":
        ordered.sort(key=lambda group: _weight(group[1]), reverse=True)
    return [(f"{name} ({_of(entries, by)})", entries) for name, entries in ordered]


def _of(found: Sequence[Entry], by: str) -> str:
    """How many there are; of a loop also how often the most frequent runs."""
    often = max(entry.frequency for entry in found)
    number = count(len(found), "finding")
    return f"{often}, {number}" if by == "loop" and often > Frequency.ONCE else number


def _weight(found: Sequence[Entry]) -> tuple[int, int, int]:
    """The warning that runs most often decides, then how many warnings there are; notes count where there are none."""
    warnings = [entry for entry in found if not entry.is_note]
    often = max((entry.frequency for entry in warnings), default=-1)
    return often, len(warnings), len(found)


def _rule(entry: Entry) -> str:
    return visible(f"{entry.code} {entry.name}")


def _file(entry: Entry) -> str:
    return opening(entry.source.path)


def _loop(entry: Entry) -> str:
    """The row of the loop that it runs in, or of the call, or of the function, that makes it run so often."""
    origin = f", called from {visible(entry.origin)}" if entry.origin else ""
    path = opening(entry.source.path)
    if entry.cause is None:
        return f"{path}{origin}" if origin else "in no loop"
    view = entry.source.seen(entry.cause)
    row = _loop_around(view.source, view.source.position(view.span.start)[0])
    cell = "" if view.cell is None else f"cell {view.cell}:"
    return f"{path}:{cell}{row}: {visible(view.source.line(row).strip().removesuffix(':'))}{origin}"


_HEAD = re.compile(r"\s*(?:(?P<loop>(?:async\s+)?for|while)|(?P<scope>(?:async\s+)?def|class))\b")


def _loop_around(source: SourceFile, row: int) -> int:
    """The row where the loop begins that a row is in, by its indentation; itself where it is in none."""
    indent = _indent(source.line(row))
    for above in range(row, 0, -1):
        line = source.line(above)
        if not line.strip() or (above != row and _indent(line) >= indent):
            continue
        indent = _indent(line)
        head = _HEAD.match(line)
        if head is not None:
            return above if head["loop"] else row
    return row


def _indent(line: str) -> int:
    line = line.expandtabs()
    return len(line) - len(line.lstrip())
