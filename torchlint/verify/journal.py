"""How long each size of a pair took to measure on a device, and which could not be: for the next of several slices.

It lies in a hidden file in the folder of the evidence, since it is true of a machine and its day and of no pair.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from torchlint.evidence import slug

if TYPE_CHECKING:
    from pathlib import Path

    from torchlint.verify.workload import Workload


@dataclass(slots=True)
class Journal:
    """What is known of earlier slices on one device. Without a folder it is forgotten with the run."""

    path: Path | None
    _entries: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path | None, device: str) -> Journal:
        """That of the device of that name; what is damaged is begun anew."""
        journal = cls(folder / f".measuring-{slug(device)}.json" if folder else None)
        if journal.path is not None:
            with contextlib.suppress(OSError, ValueError):
                read = json.loads(journal.path.read_bytes())
                entries = read.items() if isinstance(read, dict) else ()
                journal._entries = {key: entry for key, entry in entries if isinstance(entry, dict)}
        return journal

    def seconds(self, pair: Workload, size: str) -> float | None:
        """How long this size took when it was last measured to its end, None if it never was."""
        seconds = self._entries.get(_key(pair, size), {}).get("seconds")
        return float(seconds) if isinstance(seconds, (int, float)) else None

    def is_broken(self, pair: Workload, size: str) -> bool:
        """Whether the slow file, as it is now, could not be measured."""
        return bool(self._entries.get(_key(pair, size), {}).get("broken") == pair.digests)

    def note(self, pair: Workload, size: str, seconds: float | None, *, broken: bool = False) -> None:
        """Keep how long a size took, and whether it could not be measured."""
        kept = {"seconds": round(seconds, 1) if seconds is not None else self.seconds(pair, size)}
        self._entries[_key(pair, size)] = {**kept, "broken": pair.digests} if broken else kept
        if self.path is not None:
            with contextlib.suppress(OSError):  # the next slice knows less
                self.path.write_text(json.dumps(self._entries, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def _key(pair: Workload, size: str) -> str:
    return f"{pair.rule.name} {size}"
