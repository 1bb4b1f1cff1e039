"""`torchlint corpus`: from what is asked to a folder of parts, and a line that says what became of the files."""

from __future__ import annotations

import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from torchlint.config import Configs
from torchlint.corpus.engines import ENGINES, EngineError, Work
from torchlint.corpus.parts import Input, Output, PartsError, read_input
from torchlint.corpus.texts import Status
from torchlint.report.summary import count

if TYPE_CHECKING:
    from torchlint.corpus.table import Options


class Order(NamedTuple):
    """What is asked: a Parquet file or a folder of them, a folder to make, and at most so many processes."""

    source: Path
    target: Path
    options: Options
    engine: str = "local"
    jobs: int | None = None
    quiet: bool = False


class CorpusError(Exception):
    """Why it was not done, in one line."""


def corpus(order: Order) -> None:
    """Do what is asked. Raises `CorpusError` and `ConfigError`."""
    Configs(order.options.overrides, Path("/")).for_directory(Path("/"))  # says which rule is none before all else
    started = time.monotonic()
    try:
        source = read_input(order.source, order.options)
        output = Output(order.target)
        goes_on = output.prepare(source, order.options)
        _check(order, source, output, goes_on=goes_on)
        output.finish()
        counts = output.counts(source.units)
    except (PartsError, EngineError) as error:
        raise CorpusError(str(error)) from None
    if not order.quiet:
        sys.stdout.write(f"{_summary(counts, time.monotonic() - started)}\n")


def _check(order: Order, source: Input, output: Output, *, goes_on: bool) -> None:
    units = output.left(source.units)
    if goes_on and not order.quiet:
        sys.stderr.write(f"going on: {len(source.units) - len(units):,} of {len(source.units):,} row groups are done\n")
    if not units:
        return
    work = Work(tuple(units), str(order.target.absolute()), order.options)
    shown = not order.quiet and sys.stderr.isatty()
    with closing(ENGINES[order.engine](work, order.jobs)) as done:
        for number, wrong in enumerate(done, start=1 + len(source.units) - len(units)):
            if wrong:
                raise CorpusError(wrong)
            if shown:
                sys.stderr.write(f"\r\x1b[K{number:,} of {len(source.units):,} row groups")
    if shown:
        sys.stderr.write("\r\x1b[K")


def _summary(counts: Counter[str], seconds: float) -> str:
    said = ", ".join(f"{counts[status.value]:,} {status.value}" for status in Status if counts[status.value])
    files, findings = count(counts["files"], "file"), count(counts["findings"], "finding")
    megabytes = counts["bytes"] / 1_000_000
    return f"{files} ({said or 'none'}), {megabytes:,.1f} MB, {findings}, {seconds:,.1f} s"
