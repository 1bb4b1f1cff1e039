"""What the formats for people add where a trace was given; without one nothing is loaded for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlint.report.style import Style

if TYPE_CHECKING:
    from torchlint.report.contents import ReportOptions
    from torchlint.report.costs import Item, Sheet
    from torchlint.report.entry import Entry


def where_time_goes(options: ReportOptions, *, gap: bool = False) -> str:
    """What a trace says of the lines, if one was given, after a blank line if there is to be a `gap`."""
    if options.profile is None:
        return ""
    from torchlint.report.where import section  # a trace was read

    return "\n" * gap + section(options.profile, Style(options.color), options.width)


def measured(entry: Entry | Item, options: ReportOptions | Sheet) -> str:
    """How long a trace says that its lines take, in brackets; empty where it says nothing."""
    if options.profile is None or entry.measured is None:
        return ""
    from torchlint.report.where import brief  # as above

    return f" [{brief(entry.measured, options.profile)}]"
