"""GitLab's code quality report: a list of issues in Code Climate's terms."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Sequence
from hashlib import sha256
from typing import Any

from torchlint.report.contents import FileReport, ReportOptions
from torchlint.report.dumped import dumped, fingerprint
from torchlint.report.entry import Entry, entries
from torchlint.report.text import visible


def write(reports: Sequence[FileReport], options: ReportOptions) -> str:
    """An issue for each finding: `major` for a warning, `info` for a note, `critical` for what went wrong."""
    seen: Counter[str] = Counter()
    return dumped([_issue(entry, options.folder, seen) for entry in entries(reports, options)])


def _issue(entry: Entry, folder: str, seen: Counter[str]) -> dict[str, Any]:
    # GitLab names files from the root of the repository.
    path = posixpath.join(folder, entry.source.path)
    # GitLab drops an issue whose fingerprint it has seen.
    identity = f"{path}\n{fingerprint(entry, seen)}"
    begin, end = entry.stored
    return {
        "check_name": entry.name,
        "description": visible(f"{entry.code}: {entry.sentence}"),
        "severity": "critical" if entry.fault is not None else "info" if entry.is_note else "major",
        "fingerprint": sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()[:32],
        "location": {
            "path": path,
            "positions": {
                "begin": {"line": begin[0], "column": begin[1]},
                "end": {"line": end[0], "column": end[1]},
            },
        },
    }
