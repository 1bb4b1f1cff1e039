"""What the next of several slices is told: how long each size of a pair took, and what was found of it so far.

It lies in a hidden file in the folder of the evidence, since it is true of a machine and its day and of no pair.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec

from torchlint.evidence import slug
from torchlint.verify import looked
from torchlint.verify.looked import Looked
from torchlint.verify.workload import Workload


@dataclass(slots=True)
class Journal:
    """What is known of earlier slices on one device. Without a folder it is forgotten with the run."""

    path: Path | None
    _entries: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path | None, device: str) -> Journal:
        """That of the device of that name; what is damaged is begun again."""
        journal = cls(folder / f".measuring-{slug(device)}.json" if folder else None)
        if journal.path is not None:
            with contextlib.suppress(OSError, ValueError):
                read = json.loads(journal.path.read_bytes())
                entries = read.items() if isinstance(read, dict) else ()
                journal._entries = {key: entry for key, entry in entries if isinstance(entry, dict)}
        return journal

    def seconds(self, pair: Workload, size: str, phases: Sequence[str] = ()) -> float | None:
        """How long these phases of a size took when they were last done to their end, all of them if none is named.

        None if they never were. A whole is the sum of its parts, where these are known and it is not.
        """
        entry = self._entries.get(_key(pair, size), {})
        seconds = entry.get(_SECONDS[_is_timed(phases), _is_looked_at(phases)])
        if seconds is None and _is_timed(phases) and _is_looked_at(phases):
            parts = [self.seconds(pair, size, part) for part in (("numerics", "counts"), ("time",))]
            seconds = None if None in parts else sum(filter(None, parts))
        return float(seconds) if isinstance(seconds, (int, float)) else None

    def all_seconds(self, phases: Sequence[str]) -> list[float]:
        """How long these phases of any size took."""
        name = _SECONDS[_is_timed(phases), _is_looked_at(phases)]
        found = [entry.get(name) for entry in self._entries.values()]
        return [float(each) for each in found if isinstance(each, (int, float))]

    def looked(self, pair: Workload, size: str, torch: str) -> Looked | None:
        """What was found of this size by the same pair and version of torch before it was to be timed."""
        entry = self._entries.get(_key(pair, size), {})
        found = looked.read(entry.get("looked")) if entry.get("of") == pair.digests else None
        return found if found is not None and looked.minor(found.torch) == looked.minor(torch) else None

    def keep(self, pair: Workload, size: str, found: Looked | None) -> None:
        """Keep that, or forget it."""
        entry = self._entries.setdefault(_key(pair, size), {})
        for name in ("looked", "of"):
            entry.pop(name, None)
        if found is not None:
            entry |= {"looked": msgspec.to_builtins(found), "of": pair.digests}
        self._write()

    def is_broken(self, pair: Workload, size: str) -> bool:
        """Whether the slow file, as it is now, could not be measured."""
        return bool(self._entries.get(_key(pair, size), {}).get("broken") == pair.digests)

    def note(
        self, pair: Workload, size: str, seconds: float | None, *, broken: bool = False, phases: Sequence[str] = ()
    ) -> None:
        """Keep how long these phases of a size took, and whether it could not be measured."""
        entry = self._entries.setdefault(_key(pair, size), {})
        entry.pop("broken", None)
        if seconds is not None:
            entry[_SECONDS[_is_timed(phases), _is_looked_at(phases)]] = round(seconds, 1)
        if broken:
            entry["broken"] = pair.digests
        self._write()

    def _write(self) -> None:
        if self.path is not None:
            with contextlib.suppress(OSError):  # the next slice knows less
                temporary = self.path.with_suffix(".tmp")
                temporary.write_text(json.dumps(self._entries, indent=1, sort_keys=True) + "\n", encoding="utf-8")
                temporary.replace(self.path)


_SECONDS = {(True, True): "seconds", (False, True): "seconds_of_looks", (True, False): "seconds_of_time"}
"""What an entry calls how long it took, by whether it was timed, and whether anything was looked at before."""


def _is_timed(phases: Sequence[str]) -> bool:
    return not phases or "time" in phases


def _is_looked_at(phases: Sequence[str]) -> bool:
    return not phases or set(phases) != {"time"}


def _key(pair: Workload, size: str) -> str:
    return f"{pair.rule.name} {size}"
