"""Writes each block that was timed to one compressed file, so that anybody can decide again what was decided."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from torchlint import __version__
from torchlint.verify.machine import UsageError
from torchlint.verify.timing import Timed

SCHEMA = "torchlint.raw/1"


@dataclass(frozen=True, slots=True)
class Run:
    """One run of timing: what was measured, on what (device, software and machine, as a process says it)."""

    subject: Mapping[str, str]
    where: Mapping[str, Any]
    timed: Timed


def write(path: Path, runs: Iterable[Run]) -> None:
    """Write them as lines of JSON, by gzip: first the `schema`, then a line a run and one a block, in their order.

    The same runs give the same bytes. Raises `UsageError` where the file cannot be written.
    """
    packed = gzip.compress("".join(f"{line}\n" for line in _lines(runs)).encode(), mtime=0)
    try:
        path.write_bytes(packed)
    except OSError as error:
        raise UsageError(f"cannot write `{path}`: {error.strerror}") from None


def _lines(runs: Iterable[Run]) -> Iterator[str]:
    yield json.dumps({"schema": SCHEMA, "torchlint": __version__})
    for number, run in enumerate(runs):
        timed = run.timed
        said = {
            **run.subject,
            **run.where,
            "metric": timed.metric,
            "seed": timed.seed,
            "looks": timed.looks,
            "host_busy": timed.busy,
            "nvml": timed.states,
            "ratios": {f"{asked.arm} against {asked.against}": each for asked, each in timed.log_ratios.items()},
        }
        yield json.dumps({"run": number, **said})
        for replicate, block in timed.blocks:
            yield json.dumps({"run": number, "replicate": replicate, **asdict(block)})
