"""JSON that may stand in the log of a CI service."""

from __future__ import annotations

import json

from torchlint.report.text import COMMAND


def dumped(found: object) -> str:
    """Indented JSON in ASCII, so that any consumer's encoding will do, with nothing that a runner takes for a command.

    A runner looks for `##[` and `##vso[` anywhere in a line; the second sign is escaped, which changes no value.
    """
    return COMMAND.sub(r"#\\u0023", json.dumps(found, indent=2)) + "\n"
