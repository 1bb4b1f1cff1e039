"""Where the time goes: the lines of a trace, the slowest first, for people and as JSON."""

from __future__ import annotations

from typing import Any

from torchlint.report import measured
from torchlint.report.measured import Certainty, Cost, Line, Part, Profile
from torchlint.report.sheet import wrapped
from torchlint.report.style import ALARM, BOLD, DIM, Style
from torchlint.report.text import crop, visible, width

SCHEMA = "torchlint.profile/1"
_MOST_LINES = 12
_MOST_UNPLACED = 5
_LEAST = 0.001  # of the recording: what is less is not listed
_LEAST_OF_ALL = 0.02
_NARROWEST = 40
_AND = " | "  # between the reasons of several rules; the nearest is the first
_UNITS = ((1e6, "s"), (1e3, "ms"), (0.0, "µs"))


def section(profile: Profile, style: Style, columns: int) -> str:
    """The table of lines, below the findings."""
    lines = [style.paint("where the time goes", BOLD) + f": {visible(head(profile))}"]
    shown = [line for line in profile.lines if profile.share(line.cost) >= _LEAST or line.findings][:_MOST_LINES]
    for line in shown:
        lines += _line(line, profile, style, columns)
    rest = measured.summed(line.cost for line in profile.lines if line not in shown)
    if rest.total:
        count = len(profile.lines) - len(shown)
        lines.append(f"  {_share(rest, profile)}  in {count} more line{'' if count == 1 else 's'} of these files")
    unplaced = [each for each in profile.unplaced if profile.share(each.cost) >= _LEAST_OF_ALL][:_MOST_UNPLACED]
    if unplaced:
        lines.append("  in no line of these files:")
        for each in unplaced:
            lines.append(f"  {_share(each.cost, profile)}  {visible(each.name)}: {words(each.cost, profile)}")
    for remark in profile.remarks:
        lines += wrapped(f"{style.paint('note', BOLD)}: {visible(remark)}", "", columns)
    return "\n".join(lines) + "\n\n"


def head(profile: Profile) -> str:
    """What was recorded, in one line."""
    parts = [profile.shown]
    if profile.steps:
        count = f"{profile.steps} step{'' if profile.steps == 1 else 's'}"
        parts.append(f"{count} of {duration(profile.length / profile.steps)}")
    else:
        parts.append(duration(profile.length))
    if profile.has_device:
        share = _percent(profile.busy / profile.length) if profile.busy else "unknown"
        parts.append(f"{profile.device} busy {share}")
    else:
        parts.append("no GPU in it: lines are ranked by time on the CPU")
    return ", ".join(parts)


def words(cost: Cost, profile: Profile) -> str:
    """What a line costs, part by part: `waits for the GPU 61 ms a step (1x), copies 3 ms a step (2x, 12 MB)`."""
    found = []
    for part, time, count in cost.parts():
        often = f"{_count(count, profile)}x"
        size = f", {_bytes(cost.bytes, profile)}" if part is Part.COPY and cost.bytes else ""
        found.append(f"{part.words} {per_step(time, profile)} ({often}{size})")
    if cost.launches:
        often = _count(cost.launches, profile)
        found.append(f"{often} kernel launch{'' if often == '1' else 'es'}")
    if cost.reads and not profile.has_device and Part.LOAD not in cost.times:
        found.append(f"reads a value {_count(cost.reads, profile)}x")
    return ", ".join(found)


def brief(cost: Cost, profile: Profile) -> str:
    """How much that is: `61 ms a step, 38 %`."""
    return f"{per_step(cost.total, profile)}, {_percent(profile.share(cost))}"


def per_step(time: float, profile: Profile) -> str:
    """A time of the whole recording as that of a step, where steps are known."""
    return f"{duration(time / profile.steps)} a step" if profile.steps else duration(time)


def duration(microseconds: float) -> str:
    """`840 µs`, `12.4 ms`, `3.10 s`."""
    size, unit = next(each for each in _UNITS if microseconds >= each[0])
    value = microseconds / (size or 1.0)
    places = 0 if value >= 100 or value == 0 else 1 if value >= 10 else 2
    return f"{value:,.{places}f} {unit}"


def to_json(profile: Profile) -> dict[str, Any]:
    """What the trace says, but for the findings."""
    return {
        "schema": SCHEMA,
        "trace": {
            "filename": profile.shown,
            "length_us": round(profile.length, 3),
            "device": profile.device or None,
            "device_busy_us": round(profile.busy, 3) if profile.has_device else None,
            "steps": profile.steps,
            "remarks": list(profile.remarks),
        },
        "lines": [
            {
                "filename": line.path,
                "row": line.row,
                "function": line.function,
                "code": line.code,
                "located_by": line.certainty.value,
                "findings": list(line.findings),
                "silence": line.silence or None,
                "measured": measured.to_json(line.cost, profile),
            }
            for line in profile.lines
        ],
        "elsewhere": [
            {"name": each.name, "measured": measured.to_json(each.cost, profile)} for each in profile.unplaced
        ],
    }


def place(line: Line) -> str:
    """Where it is; of a function alone, that."""
    if line.certainty is Certainty.FUNCTION:
        return f"{line.path}:{line.row} somewhere in {line.function}"
    return f"{line.path}:{line.row}"


def _line(line: Line, profile: Profile, style: Style, columns: int) -> list[str]:
    lead = f"  {_share(line.cost, profile)}  "
    where = visible(place(line))
    room = max(columns - len(lead) - width(where) - 2, _NARROWEST // 2)
    indent = " " * len(lead)
    code = "" if line.certainty is Certainty.FUNCTION else style.paint(crop(line.code, 0, room), DIM)
    found = [f"{lead}{style.paint(where, BOLD)}  {code}".rstrip()]
    found += wrapped(words(line.cost, profile), indent, columns)
    if line.findings:
        found += [f"{indent}{style.paint(visible(each), ALARM)}" for each in line.findings]
    elif line.silence:
        found += wrapped(f"no rule names it: {visible(line.silence.partition(_AND)[0])}", indent, columns)
    return found


def _share(cost: Cost, profile: Profile) -> str:
    return f"{_percent(profile.share(cost)):>6}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %" if share < 0.0995 else f"{100 * share:.0f} %"


def _count(count: int, profile: Profile) -> str:
    """How often, in each step where these are known."""
    often = count / profile.steps if profile.steps else count
    return f"{often:,.0f}" if often == int(often) or often >= 100 else f"{often:.2g}"


def _bytes(size: float, profile: Profile) -> str:
    size /= profile.steps or 1
    for limit, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if size >= limit:
            return f"{size / limit:.3g} {unit}"
    return f"{size:.0f} B"
