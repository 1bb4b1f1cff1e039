"""One line per finding: `path:line:column: CODE message`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlint.finding import Frequency
from torchlint.report.entry import entries
from torchlint.report.style import ALARM, BOLD, CODE, HINT, Style
from torchlint.report.summary import footer
from torchlint.report.text import opening, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchlint.report.contents import FileReport, ReportOptions


def write(reports: Sequence[FileReport], options: ReportOptions) -> str:
    """A line per finding, then the footer."""
    style = Style(options.color, options.hyperlinks)
    lines = []
    for entry in entries(reports, options):
        code = style.link(style.paint(visible(entry.code), CODE if entry.is_note else ALARM), entry.url)
        kind = "note: " if entry.is_note else ""
        mark = f"[{style.paint('*', HINT)}] " if entry.is_fixable(options.threshold) else ""
        message = visible(" ".join(map(str.strip, entry.message.splitlines())))
        if entry.origin:
            often = f" {entry.frequency}" if entry.frequency >= Frequency.ONCE else ""
            message += f" (called{often} from {visible(entry.origin)})"
        if entry.doubts:
            message += f" — {visible(entry.doubtful)}"
        path = style.paint(opening(entry.source.path), BOLD)
        lines.append(f"{path}:{entry.start}: {kind}{code} {mark}{message}\n")
    return "".join(lines) + footer(reports, options)
