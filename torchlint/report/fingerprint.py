"""What tells a finding from others, for services that compare one run with the next."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections import Counter

    from torchlint.report.entry import Entry


def fingerprint(entry: Entry, seen: Counter[str]) -> str:
    """The rule and its line, and which of several alike in the file: the same after lines move."""
    line = ""
    if entry.span is not None:
        line = entry.source.seen(entry.span).source.line(entry.start.row).strip()
    digest = sha256(f"{entry.code}\n{line}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
    key = f"{entry.source.path}\n{digest}"
    seen[key] += 1
    return f"{digest}:{seen[key]}"
