"""Keeps what a run over a program has found out about each line, for editors to show."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path

from torchlint import verified
from torchlint.cache import digest
from torchlint.config import Config
from torchlint.verified import Speedup, Verified
from torchlint.verify.program import Found
from torchlint.verify.report_model import Report, Row
from torchlint.verify.session import Session
from torchlint.verify.units import Program

# Verdicts that say something of the run, and nothing of the line.
_NOTHING = ("inconclusive", "not-exercised", "cannot-run", "unfit")
_LONG = 200


def of_run(found: Found, report: Report, running: Session, program: Program) -> Iterator[tuple[Config, Verified]]:
    """What a run has found out about lines, with the configuration that holds for each file.

    A run that was not fit to measure has found out nothing.
    """
    if any(stage.biased for stage in found.stages):
        return
    today = datetime.now().astimezone().date().isoformat()
    for unit, row in zip(found.units, report.rows, strict=False):  # behind these come those that did not run
        if row.verdict in _NOTHING:
            continue
        config, begins, speedup = program.config(unit), program.begins(unit), _speedup(row)
        for line, alike in begins:
            yield (
                config,
                Verified(
                    rule=unit.rule,
                    code=unit.code,
                    path=verified.relative(unit.path, config.root),
                    line=line,
                    alike=alike,
                    verdict=row.verdict,
                    device_type=running.subject.device,  # type: ignore[arg-type]  # the command line knows these three
                    device=str(running.device.get("name", running.subject.device)),
                    torch=str(running.software.get("torch") or ""),
                    date=today,
                    digest=digest(program.read(unit.path)).hex(),
                    fixes=len(begins),
                    why=row.why[:_LONG],
                    speedup=speedup,
                ),
            )


def keep(records: Iterable[tuple[Config, Verified]]) -> str:
    """Write them to the cache folders of their projects; what was in the way, or nothing."""
    by_project: dict[tuple[Path | None, Path], list[Verified]] = {}
    for config, record in records:
        by_project.setdefault((config.cache_folder, config.root), []).append(record)
    for (folder, project), of_project in by_project.items():
        try:
            verified.keep(folder, project, of_project)
        except OSError as error:
            return f"cannot remember in `{folder}` what was found: {error.strerror or error}"
    return ""


def _speedup(row: Row) -> Speedup | None:
    """The figure behind a verdict about time; a fix that pays only beside others has none of its own."""
    alone = row.alone
    if alone is None:
        return None
    seen = {"faster": alone.lo > 1, "slower": alone.hi < 1, "no-measurable-difference": True}
    return Speedup(alone.ratio, alone.lo, alone.hi, alone.n) if seen.get(row.verdict) else None
