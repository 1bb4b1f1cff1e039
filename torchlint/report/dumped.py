"""What reports for CI services share."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING

from torchlint.report.text import COMMAND

if TYPE_CHECKING:
    from collections import Counter

    from torchlint.report.entry import Entry


def dumped(found: object) -> str:
    """Indented JSON in ASCII, so that any consumer's encoding will do, with nothing that a runner takes for a command.

    A runner looks for `##[` and `##vso[` anywhere in a line; the second sign is escaped, which changes no value.
    """
    return COMMAND.sub(r"#\\u0023", json.dumps(found, indent=2)) + "\n"


def fingerprint(entry: Entry, seen: Counter[str]) -> str:
    """The rule and its line, and which of several alike in the file: the same after lines move."""
    line = ""
    if entry.span is not None:
        line = entry.source.seen(entry.span).source.line(entry.start.row).strip()
    digest = sha256(f"{entry.code}\n{line}".encode("utf-8", "surrogatepass")).hexdigest()[:16]
    key = f"{entry.source.path}\n{digest}"
    seen[key] += 1
    return f"{digest}:{seen[key]}"
