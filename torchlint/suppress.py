"""Which findings the comments of a file silence, and which of its comments for torchlint do nothing.

`# torchlint: ignore[rule]` covers the logical line it stands on, or the next one from a line of its own;
`# torchlint: file-ignore[rule]` covers the file; `# noqa: TL301` covers the logical line, and `# noqa` its row.
`# torchlint: hot[per-batch]` belongs on a `def`, where the semantics read it.
"""

from __future__ import annotations

import re
import tokenize
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from torchlint import declared, registry
from torchlint.finding import Applicability, Edit, Finding, Fix, Result, Span, sort_key
from torchlint.rule import Rule
from torchlint.settings import Settings
from torchlint.source import SourceFile

UNUSED_IGNORE = "unused-ignore"
MAX_WIDTH = 120
_FILE = -1


def apply(source: SourceFile, result: Result, settings: Settings) -> Result:
    """`result` without the findings that a comment silences, and with those about unused comments."""
    if not _needs_a_look(source.text, result.findings):
        return result
    layout = _lay_out(source)
    if layout is None:
        return result
    ignores = tuple(_ignores(layout))
    by_line: dict[int, _Covering] = {}
    bare: set[int] = set()
    for ignore in ignores:
        if ignore.verb == "noqa" and not ignore.names:
            bare.add(source.position(ignore.span.start)[0])
        elif not (ignore.verb == "noqa" and ignore.comment.alone):
            by_line.setdefault(ignore.line, _Covering()).add(ignore)
    used: set[Span] = set()

    def is_on_bare_row(finding: Finding) -> bool:
        """Whether its first row, with those joined to it, ends in a bare `# noqa`."""
        row = source.position(finding.span.start)[0]
        while bare and row not in layout.open_rows and row < max(bare):
            row += 1
        return row in bare

    def audible(findings: Iterable[Finding]) -> Iterator[Finding]:
        for finding in findings:
            lines = _FILE, layout.line_at(finding.span.start)
            covering = [by_line[line] for line in lines if line in by_line]
            silencing = [one for one in covering if one.silences(finding.rule)]
            for one in silencing:
                used.update(one.taken(finding.rule))
            if not (silencing or is_on_bare_row(finding)):
                yield finding

    findings = list(audible(result.findings))
    # After a syntax error or a crash nobody knows what a comment would have silenced.
    if UNUSED_IGNORE in settings.rules and not result.diagnostics:
        about = [finding for ignore in ignores for finding in _judge(source, ignore, used, settings)]
        about += _idle_declarations(source, layout)
        findings += audible(about)
    return replace(result, findings=tuple(sorted(findings, key=sort_key)))


def add_ignores(source: SourceFile, findings: Sequence[Finding], reason: str | None) -> SourceFile:
    """The source with a `# torchlint: ignore[...]` for every finding; unchanged where it cannot be tokenized."""
    layout = _lay_out(source)
    if layout is None:
        return source
    existing: dict[int, _Ignore] = {}
    for ignore in _ignores(layout):
        if ignore.verb == "ignore":
            existing.setdefault(ignore.line, ignore)
    wanted: dict[int, list[Finding]] = {}
    for finding in sorted(findings, key=sort_key):
        wanted.setdefault(layout.line_at(finding.span.start), []).append(finding)
    why = f"  # {' '.join(reason.split())}" if reason else ""
    edits = []
    for line, group in wanted.items():
        there = existing.get(line)
        named = {name.rule.name for name in there.names if name.rule} if there else set()
        codes = {finding.rule: finding.code for finding in group if finding.rule not in named}
        rules = sorted(codes, key=codes.__getitem__)
        if rules:
            comment = f"# torchlint: ignore[{', '.join(rules)}]{why}"
            at = group[0].span.start
            edits.append(_merge(there, rules) if there else _write(source, layout, at, comment))
    return source.edited(edit for edit in edits if source.allows((edit,))) if edits else source


@dataclass(frozen=True, slots=True)
class _Comment:
    """A comment and the logical line it covers; `alone` says that no code stands on its row or around it."""

    start: int
    text: str
    line: int
    alone: bool


@dataclass(frozen=True, slots=True)
class _Layout:
    """The logical lines of a text, numbered from 0.

    `starts` are the offsets of their first rows, `ends` those behind their last rows. `open_rows` are the rows, from 1,
    at whose end a comment may stand: not inside a string, not before a backslash.
    """

    starts: list[int]
    ends: list[int]
    comments: list[_Comment]
    open_rows: set[int]

    def line_at(self, offset: int) -> int:
        """The logical line that holds `offset`; for the comments and blank rows between two, the second."""
        return bisect_right(self.ends, offset)


@dataclass(frozen=True, slots=True)
class _Name:
    """What a comment names: a rule, a rule that does not exist (None), or another tool's code."""

    text: str
    span: Span
    rule: Rule | None
    foreign: bool = False


@dataclass(frozen=True, slots=True)
class _Ignore:
    """One instruction: the span of `# torchlint: ignore[a, b]` or `# noqa: A1, B2` in its comment.

    A `noqa` that names nothing silences every rule on its row; an `ignore` that names nothing silences none. `line` is
    the logical line it covers, `_FILE` for all of them.
    """

    verb: str
    span: Span
    names: tuple[_Name, ...]
    line: int
    comment: _Comment


class _Covering:
    """The instructions that cover a line, of which there may be as many as findings."""

    def __init__(self) -> None:
        self._names: dict[str, list[Span]] = {}
        self._taken: set[str] = set()

    def add(self, ignore: _Ignore) -> None:
        """One more."""
        for name in ignore.names:
            if name.rule is not None:
                self._names.setdefault(name.rule.name, []).append(name.span)

    def silences(self, rule: str) -> bool:
        """Whether a finding of this rule on the line goes unreported."""
        return rule in self._names

    def taken(self, rule: str) -> Sequence[Span]:
        """The names that silence a rule, once."""
        if rule in self._taken:
            return ()
        self._taken.add(rule)
        return self._names.get(rule, ())


_TORCHLINT = re.compile(r"#\s*torchlint:\s*(?P<verb>file-ignore|ignore)(?![\w-])(?:\s*\[(?P<names>[^\]#]*)\])?")
_NOQA = re.compile(r"#\s*noqa(?:\s*:\s*(?P<names>[a-z]+\d+(?:[,\s]+[a-z]+\d+)*))?(?![\w-])", re.IGNORECASE)
_NAME = re.compile(r"[^\s,]+")
# Comments inside the braces of an f-string are comments from Python 3.12 on; never to us, on no version.
_STRING_STARTS = {getattr(tokenize, name, -1) for name in ("FSTRING_START", "TSTRING_START")}
_STRING_ENDS = {getattr(tokenize, name, -1) for name in ("FSTRING_END", "TSTRING_END")}
_NOT_CODE = {tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}


def _needs_a_look(text: str, findings: Sequence[Finding]) -> bool:
    """Whether tokenizing (as dear as two `ast.parse`) can change anything."""
    if "torchlint:" in text:
        return True
    if "noqa" not in text.lower():
        return False
    return bool(findings) or re.search(rf"#\s*noqa\s*:[^#\r\n]*\b{_our_codes()}", text, re.IGNORECASE) is not None


def _our_codes() -> str:
    """A regular expression for codes that are torchlint's to judge, those of rule packs among them."""
    return rf"(?:{'|'.join(registry.prefixes())})\d+"


def _lay_out(source: SourceFile) -> _Layout | None:
    """The logical lines and comments of a file, None if it cannot be tokenized."""
    rows = source.line_starts
    layout = _Layout([], [], [], set())
    # Rows are handed over as `SourceFile` counts them, so that positions agree on every Python version.
    lines = (source.line(row) + "\n" for row in range(1, len(rows) + 1))
    first = depth = 0
    try:
        for kind, text, (row, column), (end_row, _), _ in tokenize.generate_tokens(lambda: next(lines, "")):
            if kind in _STRING_STARTS:
                depth += 1
            elif kind in _STRING_ENDS:
                depth -= 1
            if kind == tokenize.COMMENT and not depth:
                start = rows[row - 1] + column
                layout.comments.append(_Comment(start, text.rstrip("\r\n"), len(layout.ends), alone=not first))
            elif kind in (tokenize.NL, tokenize.NEWLINE) and not depth:
                layout.open_rows.add(row)
            if kind == tokenize.NEWLINE:
                layout.starts.append(rows[first - 1])
                layout.ends.append(rows[end_row] if end_row < len(rows) else len(source.text))
                first = 0
            elif not first and kind != tokenize.COMMENT and kind not in _NOT_CODE:
                first = row
    except (tokenize.TokenError, SyntaxError, ValueError):
        return None
    return layout


def _ignores(layout: _Layout) -> Iterator[_Ignore]:
    for comment in layout.comments:
        for pattern in (_TORCHLINT, _NOQA):
            for match in pattern.finditer(comment.text):
                verb = "noqa" if pattern is _NOQA else match["verb"]
                span = Span(comment.start + match.start(), comment.start + match.end())
                line = _FILE if verb == "file-ignore" else comment.line
                yield _Ignore(verb, span, tuple(_names(comment, verb, match)), line, comment)


def _names(comment: _Comment, verb: str, match: re.Match[str]) -> Iterator[_Name]:
    known = registry.by_name()
    for name in _NAME.finditer(match["names"] or ""):
        text, shift = name[0], comment.start + match.start("names")
        yield _Name(
            text,
            Span(shift + name.start(), shift + name.end()),
            known.get(text) or known.get(text.upper()),
            foreign=verb == "noqa" and not re.fullmatch(_our_codes(), text, re.IGNORECASE),
        )


def _judge(source: SourceFile, ignore: _Ignore, used: set[Span], settings: Settings) -> Iterator[Finding]:
    """What is wrong with one comment: it names nothing, what does not exist, or what finds nothing."""
    if not ignore.names and ignore.verb != "noqa":
        message = f"`# torchlint: {ignore.verb}` ignores nothing until it names rules"
        yield _about(ignore.span, f"{message}; write `# torchlint: {ignore.verb}[rule-name]`")
    for name in ignore.names:
        if not name.foreign and (problem := _problem(name.text)):
            yield _about(name.span, problem)
    # A rule that is not active finds nothing.
    unused = [
        name
        for name in ignore.names
        if name.rule is not None and name.span not in used and name.rule.name in settings.rules
    ]
    if unused:
        words = " and ".join(f"`{name.text}`" for name in unused)
        what = "# noqa" if ignore.verb == "noqa" else f"# torchlint: {ignore.verb}"
        where = "in this file" if ignore.verb == "file-ignore" else "here"
        message = f"`{what}` names {words}, which {'finds' if len(unused) == 1 else 'find'} nothing {where}"
        span = unused[0].span if len(unused) == 1 else ignore.span
        yield _about(span, message, _removal(source, ignore, unused))


_DEFINITION = re.compile(r"(?:async\s+)?def\b|@")


def _idle_declarations(source: SourceFile, layout: _Layout) -> Iterator[Finding]:
    """The `# torchlint: hot[…]` that declare nothing: they stand on no function, or say nothing that is known."""
    *words, last = (f"`{word}`" for word in declared.WORDS)
    known = f"{', '.join(words)} and {last}"
    for comment in layout.comments:
        match = declared.COMMENT.search(comment.text)
        if match is None:
            continue
        span = Span(comment.start + match.start(), comment.start + match.end())
        starts = layout.starts[comment.line : comment.line + 1]
        if not any(_DEFINITION.match(source.text[start:].lstrip()) for start in starts):
            yield _about(span, "`# torchlint: hot` declares how often a function runs, and belongs on its `def` line")
        elif declared.said(comment.text) is None:
            given = (match["names"] or "").strip()
            wrong = f"`{given}` is not known" if given else "nothing is declared"
            yield _about(span, f"`# torchlint: hot` says how often a function runs, and {wrong}; there are {known}")


def _about(span: Span, message: str, fix: Fix | None = None) -> Finding:
    rule = registry.find(UNUSED_IGNORE)
    return Finding(rule.name, rule.code, span, message, fix=fix)


def _problem(name: str) -> str | None:
    """What is wrong with a name; nothing while a rule pack cannot be used, which may have such a rule."""
    if registry.problems():
        return None
    try:
        registry.find(name)
    except registry.UnknownRuleError as error:
        return str(error)
    return None


# PEP 263: a comment in one of the first rows that declares the file's encoding.
_COOKIE_ROWS = 2
_COOKIE = re.compile(r"[ \t\f]*#.*?coding[:=][ \t]*[-\w.]+")


def _removal(source: SourceFile, ignore: _Ignore, unused: list[_Name]) -> Fix:
    """Take the unused names out, or the whole instruction when no name is left; other comments stay."""
    taken = {name.span for name in unused}
    left = [place for place, name in enumerate(ignore.names) if name.span not in taken]
    if not left:
        return Fix("Remove the ignore", (_erasure(source, ignore),), Applicability.SAFE)
    names = ignore.names
    edits = [
        Edit(Span(name.span.start, names[place + 1].span.start), "")
        for place, name in enumerate(names[: left[-1]])
        if name.span in taken
    ]
    if left[-1] < len(names) - 1:
        edits.append(Edit(Span(names[left[-1]].span.end, names[-1].span.end), ""))
    title = "Remove " + " and ".join(f"`{name.text}`" for name in unused) + " from the ignore"
    return Fix(title, tuple(edits), Applicability.SAFE)


_BLANKS = re.compile(r"\s*")


def _erasure(source: SourceFile, ignore: _Ignore) -> Edit:
    text, comment = source.text, ignore.comment
    row, _ = source.position(comment.start)
    row_start = source.line_starts[row - 1]
    end = comment.start + len(comment.text)
    blanks = _BLANKS.match(text, ignore.span.end, end)
    words = blanks.end() if blanks is not None else end
    if words < end:
        return Edit(Span(ignore.span.start, words), "" if text[words] == "#" else "# ")
    before = text[row_start : ignore.span.start].rstrip(" \t")
    if before:
        return Edit(Span(row_start + len(before), end), "")
    above = source.line(row - 1) if row > 1 else ""
    if above.endswith("\\"):  # the statement above goes on to this row, and ends with it
        return Edit(Span(source.line_starts[row - 2] + len(above[:-1].rstrip(" \t")), end), "")
    below = range(_COOKIE_ROWS + 1, min(len(source.line_starts), 5 * _COOKIE_ROWS) + 1)
    if row <= _COOKIE_ROWS and any(_COOKIE.match(source.line(other)) for other in below):
        return Edit(Span(row_start, end), "")  # further up that comment would declare an encoding
    next_row = source.line_starts[row] if row < len(source.line_starts) else len(text)
    return Edit(Span(row_start, next_row), "")


def _merge(ignore: _Ignore, rules: list[str]) -> Edit:
    names = ", ".join(rules)
    if ignore.names:
        end = ignore.names[-1].span.end
        return Edit(Span(end, end), f", {names}")
    bare = f"# torchlint: ignore[{names}]"
    return Edit(ignore.span, bare)


def _write(source: SourceFile, layout: _Layout, at: int, comment: str) -> Edit:
    """Put a comment at the end of the row of offset `at`, or above the logical line where that cannot be."""
    row, _ = source.position(at)
    line = layout.line_at(at)
    # Between two logical lines stands a comment that the finding is about: the new one goes above it.
    if line < len(layout.ends) and layout.starts[line] <= at:
        code = source.line(row).rstrip(" \t")
        if row in layout.open_rows and len(code) + 2 + len(comment) <= MAX_WIDTH:
            start = source.line_starts[row - 1]
            return Edit(Span(start + len(code), start + len(source.line(row))), f"  {comment}")
        row, _ = source.position(layout.starts[line])
    start = source.line_starts[row - 1]
    text = source.line(row)
    indent = text[: len(text) - len(text.lstrip(" \t"))]
    return Edit(Span(start, start), f"{indent}{comment}{source.newline}")
