"""`report`: what each step of each loop costs, by what was found, without running anything."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from torchlint import engine, regular
from torchlint.configfile import reason
from torchlint.facts import NOTHING
from torchlint.finding import Frequency, Severity
from torchlint.precedence import count_of
from torchlint.registry import find
from torchlint.report.costs import Event, Item, Loop, Sheet, event_of, weight, worst_first
from torchlint.report.style import Style, decide
from torchlint.run import (
    CLEAN,
    FOUND,
    Gathered,
    Order,
    OutputError,
    facts_of,
    gather,
    profiled,
    recorded,
    terminal_width,
    write_out,
)
from torchlint.source import DecodeError, SourceFile
from torchlint.spoken import Statements
from torchlint.traces.loaders import OF_LOADERS, Loaders

if TYPE_CHECKING:
    from torchlint.discover import Found
    from torchlint.facts import Facts, LoopFact
    from torchlint.finding import Finding, Wanted
    from torchlint.report import FileReport
    from torchlint.report.measured import Profile


def report(order: Order, command: str, output_format: str, html: str | None) -> int:
    """Print the sheet, and write it to a page; the exit status. Raises `ConfigError` and `OutputError`."""
    recording = recorded(order)
    gathered = gather(order)
    profile = profiled(order, recording, gathered) if recording is not None else None
    found = sheet(order, gathered, profile, command)
    if html is not None:
        from torchlint.report.sheet_page import page  # only where a page is asked for

        try:
            (order.cwd / html).write_text(page(found), encoding="utf-8", errors="backslashreplace", newline="\n")
        except OSError as error:
            raise OutputError(f"{html}: cannot write the page: {reason(error)}") from None
    if output_format == "json":
        from torchlint.report.sheet import to_json

        write_out(json.dumps(to_json(found), indent=2) + "\n", sys.stdout)
    else:
        from torchlint.report.sheet import to_text

        style = Style(decide(order.color, sys.stdout, os.environ))
        write_out(to_text(found, style, terminal_width(sys.stdout)), sys.stdout)
    return FOUND if found.errors else CLEAN


def sheet(order: Order, gathered: Gathered, profile: Profile | None, command: str) -> Sheet:
    """What each step of each loop in the files costs."""
    known = [each for file in gathered.files if (each := _known(file, order, gathered)) is not None]
    placed = _Placed(known, gathered.reports)
    items: dict[tuple[str, int], list[Item]] = {}
    others: list[Item] = []
    for report in gathered.reports:
        statements = Statements(report.source.text)
        for finding in report.result.findings:
            item = _item(report, finding, statements, profile)
            around = placed.loops(report.source, finding)
            for loop in sorted(around):
                items.setdefault(loop, []).append(item)
            if not around:
                others.append(item)
    loops = [
        _loop(each.source, fact, items.get((each.source.path, fact.span.start), ()))
        for each in known
        for fact in each.loops
    ]
    return Sheet(
        command=command,
        loops=tuple(sorted(loops, key=weight)),
        others=worst_first(others),
        files=len(gathered.files),
        errors=tuple(_errors(gathered.reports)),
        profile=profile,
        alone=gathered.config.file is None and all((order.cwd / path).is_file() for path in order.paths),
    )


class _Known(NamedTuple):
    """A file with its loops over batches."""

    source: SourceFile
    loops: tuple[LoopFact, ...]


def _known(file: Found, order: Order, gathered: Gathered) -> _Known | None:
    try:
        data = regular.read(file.path)
        if not engine.speaks_of_tensors(data):
            return None
        source = SourceFile.from_bytes(file.shown, data)
    except (OSError, DecodeError):
        return None
    settings = gathered.configs.for_file(file.path).settings_for(file.path)
    loops, questions = engine.loops(source, settings, NOTHING)
    if questions:

        def wanted(facts: Facts) -> Wanted:
            return engine.loops(source, settings, facts)[1]

        facts = facts_of(file, questions, wanted, gathered.configs, order, gathered.files)
        loops, _ = engine.loops(source, settings, facts)
    return _Known(source, loops)


class _Placed:
    """Which loops, each by its file and where it begins, what stands somewhere is part of."""

    def __init__(self, known: Sequence[_Known], reports: Sequence[FileReport]) -> None:
        self._known = {each.source.path: each for each in known}
        self._loaders = Loaders({each.source.path: each.source for each in known})
        self._heads = {
            (each.source.path, each.source.position(fact.span.start)[0]): (each.source.path, fact.span.start)
            for each in known
            for fact in each.loops
        }
        makers = {
            (report.source.path, report.source.position(finding.span.start)[0])
            for report in reports
            for finding in report.result.findings
            if finding.rule in OF_LOADERS
        }
        self._has_one_loader = len(makers) == 1

    def loops(self, source: SourceFile, finding: Finding) -> set[tuple[str, int]]:
        """The loops that a finding costs something in."""
        if finding.rule in OF_LOADERS:
            heads = self._loaders.loops(source, finding, self._heads, is_only=self._has_one_loader)
            return {self._heads[head] for head in heads}
        found = self._around(source.path, finding.span.start)
        if not found and finding.origin:
            path, _, row = finding.origin.rpartition(":")
            other = self._known.get(path)
            if other is not None and row.isdigit() and 1 <= int(row) <= len(other.source.line_starts):
                found = self._around(path, other.source.line_starts[int(row) - 1])
        return found

    def _around(self, path: str, offset: int) -> set[tuple[str, int]]:
        """The innermost loop around a place, or those that enter the function that it stands in."""
        known = self._known.get(path)
        if known is None:
            return set()
        around = [fact for fact in known.loops if fact.span.start <= offset < fact.span.end]
        if around:
            return {(path, max(around, key=lambda fact: fact.span.start).span.start)}
        return {
            (path, fact.span.start)
            for fact in known.loops
            for function in fact.entered
            if function.start <= offset < function.end
        }


def _loop(source: SourceFile, fact: LoopFact, items: Iterable[Item]) -> Loop:
    head = " ".join(source.text[fact.head.start : fact.head.end].split())
    row = source.position(fact.span.start)[0]
    return Loop(source.path, row, head, fact.function, fact.trains, worst_first(items))


def _item(report: FileReport, finding: Finding, statements: Statements, profile: Profile | None) -> Item:
    source = report.source
    row = min(statements.around(source.position(finding.span.start)[0]))
    rule = find(finding.rule)
    # In a step once, at each place; of what runs for each element, nobody knows how often that is.
    event = event_of(rule)
    # A loader copies nothing itself: its batches are copied at the places.
    own = 0 if rule.group == "data" and event is Event.COPY else count_of(finding)
    times = None if finding.frequency is Frequency.SAMPLE else own + len(finding.places)
    measured = profile.by_finding.get((source.path, finding)) if profile is not None else None
    return Item(
        event=event,
        path=source.path,
        row=row,
        code=source.line(row).strip(),
        finding=f"{finding.code} {finding.rule}",
        message=finding.message,
        help=finding.help or (finding.fix.title if finding.fix is not None else ""),
        often=str(finding.frequency) if finding.frequency is not Frequency.UNKNOWN else "",
        times=times,
        doubts=finding.doubts if finding.severity is Severity.NOTE else (),
        measured=measured,
    )


def _errors(reports: Sequence[FileReport]) -> Iterator[str]:
    for report in reports:
        for diagnostic in report.result.diagnostics:
            yield f"{report.source.path}: {diagnostic.code} {diagnostic.message}"
