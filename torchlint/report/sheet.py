"""The cost sheet of loops, for a terminal and as JSON."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import Any

from torchlint.report.costs import Event, Item, Loop, Sheet, tally
from torchlint.report.profiled import measured
from torchlint.report.style import ALARM, BOLD, CODE, DIM, HINT, Style
from torchlint.report.text import crop, visible, width

SCHEMA = "torchlint.report/1"
_MOST_OTHERS = 10
_NARROWEST = 40
_WIDEST = max(len(event.value) for event in Event)


def to_text(sheet: Sheet, style: Style, columns: int) -> str:
    """Loop by loop, the worst first."""
    parts: list[str] = []
    if sheet.profile is not None:
        from torchlint.report.where import section  # a trace was read

        parts.append(section(sheet.profile, style, columns))
    for loop in sheet.loops:
        lines = [style.paint(visible(f"{loop.path}:{loop.row} {loop.head}"), BOLD)]
        lines.append(f"  {visible(about(loop))}: {added_up(loop.items)}")
        lines += [line for item in loop.items for line in _item(item, sheet, style, columns)]
        parts.append("\n".join(lines) + "\n\n")
    if sheet.others:
        lines = [style.paint("in no loop over batches that is in sight", BOLD)]
        lines += [line for item in sheet.others[:_MOST_OTHERS] for line in _item(item, sheet, style, columns)]
        more = len(sheet.others) - _MOST_OTHERS
        lines += [f"  {more} more; `torchlint check` lists them"] if more > 0 else []
        parts.append("\n".join(lines) + "\n\n")
    parts += [f"{visible(error)}\n" for error in sheet.errors]
    if not sheet.loops:
        parts.append("No loop over batches is in sight.\n")
    if sheet.alone:
        parts.append("No other file was asked: `torchlint report .` knows what those beside it call and give.\n")
    parts.append("Nothing was run: counts are by what the code says. `torchlint verify` runs it and measures.\n")
    return "".join(parts)


def about(loop: Loop) -> str:
    """What kind of loop it is, and where."""
    kind = "training loop" if loop.trains else "loop over batches"
    return f"{kind} in {loop.function}" if loop.function else kind


def added_up(items: Iterable[Item]) -> str:
    """`per step 2 synchronizations and 1 blocking load; in doubt 1 copy`."""
    counts = tally(items)
    sure = [f"{event.words(count)}{' or more' if is_more else ''}" for event, count, is_more, _ in counts if count]
    doubtful = [event.words(count) for event, _, _, count in counts if count]
    found = [f"per step {_listed(sure)}"] if sure else []
    found += (
        [f"in doubt {_listed(doubtful)}" if sure else f"per step, in doubt, {_listed(doubtful)}"] if doubtful else []
    )
    return "; ".join(found) or "nothing that a rule names"


def _listed(words: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def to_json(sheet: Sheet) -> dict[str, Any]:
    """All of it."""
    found: dict[str, Any] = {
        "schema": SCHEMA,
        "loops": [
            {
                "filename": loop.path,
                "row": loop.row,
                "head": loop.head,
                "function": loop.function or None,
                "trains": loop.trains,
                "per_step": {
                    event.value: {"certain": sure, "per_element": is_more, "in_doubt": doubtful}
                    for event, sure, is_more, doubtful in tally(loop.items)
                },
                "items": [_item_json(item, sheet) for item in loop.items],
            }
            for loop in sheet.loops
        ],
        "others": [_item_json(item, sheet) for item in sheet.others],
        "errors": list(sheet.errors),
    }
    if sheet.profile is not None:
        from torchlint.report.where import to_json as profile_json  # a trace was read

        found["profile"] = profile_json(sheet.profile)
    return found


def _item_json(item: Item, sheet: Sheet) -> dict[str, Any]:
    found: dict[str, Any] = {
        "event": item.event.value,
        "filename": item.path,
        "row": item.row,
        "code": item.code,
        "finding": item.finding,
        "message": item.message,
        "help": item.help or None,
        "frequency": item.often or None,
        "times": item.times,
        "doubts": [doubt.value for doubt in item.doubts],
    }
    if sheet.profile is not None:
        from torchlint.report.measured import to_json as cost_json  # as above

        found["measured"] = cost_json(item.measured, sheet.profile) if item.measured is not None else None
    return found


def _item(item: Item, sheet: Sheet, style: Style, columns: int) -> list[str]:
    lead = f"  {item.event.value:{_WIDEST}}  "
    where = visible(f"{item.path}:{item.row}")
    room = max(columns - len(lead) - width(where) - 2, _NARROWEST // 2)
    ink = DIM if item.doubts else ALARM
    indent = " " * len(lead)
    lines = [f"{style.paint(lead, ink)}{style.paint(where, BOLD)}  {style.paint(crop(item.code, 0, room), DIM)}"]
    code = style.paint(visible(item.finding.partition(" ")[0]), CODE if item.doubts else ALARM)
    message = visible(" ".join(item.message.split()))
    lines += wrapped(f"{code} {message}{often(item)}{measured(item, sheet)}", indent, columns)
    if item.doubts:
        lines += wrapped(f"in doubt: {visible(item.doubtful)}", indent, columns)
    elif item.help:
        lines += wrapped(f"{style.paint('help', HINT)}: {visible(item.help)}", indent, columns)
    return lines


def often(item: Item) -> str:
    """How often in a step, where that is not once."""
    if item.times is None:
        return ", for each element"
    return f", {item.times} times a step" if item.times > 1 else ""


def wrapped(text: str, indent: str, columns: int) -> list[str]:
    """Lines of that many columns behind a margin, those below the first two further in."""
    room = max(columns - len(indent), _NARROWEST)
    lines = textwrap.wrap(text, room, break_long_words=False, break_on_hyphens=False)
    return [f"{indent}{'  ' if number else ''}{line}" for number, line in enumerate(lines)]
