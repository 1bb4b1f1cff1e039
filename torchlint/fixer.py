"""Applies the fixes of a file in rounds, until linting the new text offers none."""

from __future__ import annotations

import re
import warnings
from bisect import bisect_right, insort
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeAlias

from torchlint.engine import is_applicable
from torchlint.facts import NOTHING, Facts
from torchlint.finding import Applicability, Diagnostic, Edit, Fault, Finding, Result, Span
from torchlint.linter import lint
from torchlint.settings import Settings
from torchlint.source import SourceFile

MAX_ROUNDS = 10


@dataclass(frozen=True, slots=True)
class Fixed:
    """The new source, what remains to be said about it, and how many fixes of each rule were applied, by name."""

    source: SourceFile
    result: Result
    applied: tuple[tuple[str, int], ...]

    @property
    def text(self) -> str:
        """The new text."""
        return self.source.text


def fix(source: SourceFile, settings: Settings, threshold: Applicability, facts: Facts = NOTHING) -> Fixed:
    """Apply the fixes at or above the threshold. Without one, the source is returned as it is.

    Fixes that overlap wait for the next round. A fix that would leave a file that does not parse is not applied and
    becomes a diagnostic, as do fixes that do not come to rest.
    """
    applied: Counter[str] = Counter()
    refused: dict[_Key, Diagnostic] = {}
    result = lint(source, settings, facts)
    for _ in range(MAX_ROUNDS):
        candidates = _candidates(source, result, threshold, refused)
        if not candidates:
            break
        chosen, new = _apply_together(source, candidates)
        if not chosen or not _parses(source, new):
            chosen, new = _apply_singly(source, candidates, refused)
        applied.update(finding.rule for finding in chosen)
        source = new
        result = lint(source, settings, facts)
    diagnostics = list(refused.values())
    if unsettled := _candidates(source, result, threshold, refused):
        rules = ", ".join(sorted({finding.rule for finding in unsettled}))
        message = f"{rules}: fixes of {source.path} did not come to rest in {MAX_ROUNDS} rounds; please report this"
        diagnostics.append(_internal(message))
    result = replace(result, diagnostics=(*result.diagnostics, *diagnostics))
    return Fixed(source, result, tuple(sorted(applied.items())))


# A fix by what it does, so that it is known again when other fixes have moved it.
_Key: TypeAlias = "tuple[str, tuple[tuple[str, str], ...]]"


def _key(source: SourceFile, finding: Finding) -> _Key:
    return finding.rule, tuple(
        (source.text[edit.span.start : edit.span.end], edit.text) for edit in edits_of(source, finding)
    )


def _candidates(
    source: SourceFile, result: Result, threshold: Applicability, refused: dict[_Key, Diagnostic]
) -> list[Finding]:
    return [
        finding
        for finding in result.findings
        if is_applicable(finding.fix, threshold) and _key(source, finding) not in refused
    ]


def _apply_together(source: SourceFile, findings: Iterable[Finding]) -> tuple[list[Finding], SourceFile]:
    """As many of the findings' fixes as do not meet each other, and the source with them."""
    chosen: list[Finding] = []
    taken: list[Edit] = []
    imports: set[Edit] = set()
    spans: list[Span] = []
    for finding in findings:
        edits = edits_of(source, finding)
        new = [edit for edit in edits if edit not in imports]
        if _is_sound(edits) and not any(_meets(edit.span, spans) for edit in new):
            chosen.append(finding)
            taken += new
            imports.update(filter(_is_import, new))
            for edit in new:
                insort(spans, edit.span)
    return chosen, source.edited(taken)


def _apply_singly(
    source: SourceFile, findings: Iterable[Finding], refused: dict[_Key, Diagnostic]
) -> tuple[list[Finding], SourceFile]:
    """As `_apply_together`, with every fix that breaks the code by itself refused, and others that do so put off."""
    chosen: list[Finding] = []
    new = source
    for finding in findings:
        alone, candidate = _apply_together(source, [finding])
        if not alone or not _parses(source, candidate):
            place = f"{source.path}:{source.place(finding.span.start)}"
            message = f"{finding.rule}: its fix would break {place} and was not applied"
            refused[_key(source, finding)] = _internal(f"{message}; please report this")
            continue
        together, candidate = _apply_together(source, [*chosen, finding])
        if len(together) > len(chosen) and _parses(source, candidate):
            chosen, new = together, candidate
    return chosen, new


def edits_of(source: SourceFile, finding: Finding) -> list[Edit]:
    """The edits of a finding's fix, their new lines ending as the file's do."""
    edits = finding.fix.edits if finding.fix is not None else ()
    return [replace(edit, text=_LONE_LF.sub(source.newline, edit.text)) for edit in edits]


_LONE_LF = re.compile(r"(?<!\r)\n")


def _is_import(edit: Edit) -> bool:
    """Whether the edit only adds an import: of all insertions the one that several fixes may share."""
    return edit.span.start == edit.span.end and _IMPORT.fullmatch(edit.text) is not None


_IMPORT = re.compile(r"\s*(?:from\s+[\w.]+\s+)?import\s+[^\n;]+\n?\s*")


def _meets(span: Span, others: list[Span]) -> bool:
    """Whether a span meets one of the others, which are sorted and leave each other alone: one next to it would be."""
    place = bisect_right(others, span)
    return any(_meet(span, other) for other in others[max(place - 1, 0) : place + 1])


def _meet(one: Span, other: Span) -> bool:
    """Whether edits of two spans overlap, or an insertion touches the other, which leaves their order open."""
    a, b = sorted((one, other))
    if a.start == a.end or b.start == b.end:
        return b.start <= a.end
    return b.start < a.end


def _is_sound(edits: list[Edit]) -> bool:
    """Whether the edits of one fix leave each other's text alone; they may touch."""
    spans = sorted(edit.span for edit in edits)
    return all(one.end <= other.start for one, other in pairwise(spans))


def _parses(source: SourceFile, new: SourceFile) -> bool:
    """Whether the new source is still Python.

    `compile` also sees what no grammar does, such as an import above `from __future__`; where it refuses the old text
    too (syntax newer than this interpreter), LibCST alone decides.
    """
    import libcst as cst  # imported by now: the engine found something to fix

    try:
        cst.parse_module(new.text)
    except (cst.ParserSyntaxError, RecursionError):
        return False
    return _compiles(new.text) or not _compiles(source.text)


def _compiles(text: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(text, "<text>", "exec", dont_inherit=True)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return False
    return True


def _internal(message: str) -> Diagnostic:
    return Diagnostic("E000", "internal-error", message, Fault.INTERNAL)
