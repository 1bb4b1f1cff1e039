"""What holds of every snippet that a test lints, whatever the rule.

`check_snippet` is for tests of rules: lines marked `# <- rule-name` are flagged and no others, those marked
`# <- rule-name?` by notes, and the snippet obeys the laws. `obey_laws` takes a text as it is. Where the slow tests are
left out, two in three snippets, drawn by their text, are asked for the quick laws alone.
"""

from __future__ import annotations

import ast
import codecs
import io
import os
import re
import sys
import textwrap
import tokenize
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, TypeAlias
from unittest.mock import patch
from zlib import crc32

from torchlint import engine, fixer, linter, registry
from torchlint.facts import NOTHING, Facts
from torchlint.finding import NOTHING_WANTED, Applicability, Edit, Fault, Finding, Result, Severity, Span, edited
from torchlint.notebook.cells import Notebook
from torchlint.role import Role
from torchlint.settings import OptionValue, Settings
from torchlint.source import SourceFile

if TYPE_CHECKING:
    from torchlint.fixer import Fixed

SOME_LAWS = "TORCHLINT_TESTS_SOME_LAWS"
"""Set in the environment, most snippets are asked for the quick laws alone."""
_EACH = 3  # of so many snippets one is asked for all laws then
_MARK = re.compile(r"[ \t]*# <- (?P<rules>[\w-]+\??(?:, *[\w-]+\??)*)[ \t]*$", re.MULTILINE)
# Texts that are linted again stand near each other: those of one snippet.
_REMEMBERED = 256
Place = tuple[int, str]


def check_snippet(
    code: str,
    *rules: str,
    fixed: str | None = None,
    target_torch: tuple[int, int] = (2, 0),
    dataloader_workers: int = 4,
    options: dict[str, OptionValue] | None = None,
) -> Result:
    """Hold the laws on a snippet; of the named rules' findings those marked in it are all there are.

    `fixed` is what the unsafe fixes make of it. `options` are those of the first rule. Code may be indented as a whole.
    """
    given = ((rules[0], tuple(sorted(options.items()))),) if options else ()
    settings = active(*rules, target_torch=target_torch, dataloader_workers=dataloader_workers, options=given)
    code = _dedent(code)
    text = unmarked(code)
    found = [place for place in places(text, settings) if place[1].rstrip("?") in rules]
    assert Counter(found) == Counter(marks(code)), f"{_differences(found, marks(code))}\n{_numbered(code)}"
    obey_drawn_laws(text, settings)
    if fixed is not None:
        made = fix(text, settings, Applicability.UNSAFE).text
        assert made == _dedent(fixed), f"the fix makes\n{made}\nnot\n{_dedent(fixed)}"
    return lint(text, settings)


def active(
    *rules: str,
    target_torch: tuple[int, int] = (2, 0),
    dataloader_workers: int = 4,
    options: tuple[tuple[str, tuple[tuple[str, OptionValue], ...]], ...] = (),
    role: Role = Role.CODE,
) -> Settings:
    """Settings with these rules on; with all, where those named only judge what others find."""
    chosen = [registry.find(name) for name in rules]
    if not any(rule.checks for rule in chosen):
        chosen = list(registry.all_rules())
    names = tuple(rule.name for rule in sorted(chosen, key=lambda rule: rule.code))
    return Settings(names, target_torch, dataloader_workers, options, role)


@lru_cache(maxsize=_REMEMBERED)
def lint(text: str, settings: Settings) -> Result:
    """What is reported of a text."""
    return linter.lint(SourceFile("snippet.py", text), settings)


@lru_cache(maxsize=_REMEMBERED)
def fix(text: str, settings: Settings, threshold: Applicability) -> Fixed:
    """What fixing makes of a text. What is linted on the way is what `lint` gives, so that no text is read twice."""
    with patch.object(fixer, "lint", _lint_once):
        return fixer.fix(SourceFile("snippet.py", text), settings, threshold)


def _lint_once(source: SourceFile, settings: Settings, facts: Facts = NOTHING) -> Result:
    if facts is NOTHING and source == SourceFile("snippet.py", source.text):
        return lint(source.text, settings)
    return linter.lint(source, settings, facts)


def marks(code: str) -> list[Place]:
    """Row and rule of each `# <- rule-name` in the code; of a note it is `# <- rule-name?`."""
    return [
        (code.count("\n", 0, match.start("rules")) + 1, rule.strip())
        for match in _MARK.finditer(code)
        for rule in match["rules"].split(",")
    ]


def unmarked(code: str) -> str:
    """The code without its marks."""
    return _MARK.sub("", code)


def places(text: str, settings: Settings) -> list[Place]:
    """Row and rule of each finding, with a question mark behind the rule of a note."""
    source = SourceFile("snippet.py", text)
    return [
        (source.position(one.span.start)[0], one.rule + "?" * (one.severity is Severity.NOTE))
        for one in lint(text, settings).findings
    ]


def obey_quick_laws(text: str, settings: Settings) -> Result:
    """Hold on one text the laws that take no other way of writing it: 1, 2, 5, 8 and, where nothing is fixed, 3."""
    result = lint(text, settings)
    assert not [diagnostic for diagnostic in result.diagnostics if diagnostic.fault is Fault.INTERNAL], result
    _tables_change_nothing(text, settings)
    _findings_are_well_formed(text, result.findings)
    fixes_come_to_rest(text, settings)
    return result


def obey_drawn_laws(text: str, settings: Settings) -> None:
    """Hold all laws on a text, or the quick ones alone where the slow tests are left out and it is not drawn."""
    is_drawn = SOME_LAWS not in os.environ or crc32(text.encode(errors="replace")) % _EACH == 0
    (obey_laws if is_drawn else obey_quick_laws)(text, settings)


def obey_laws(text: str, settings: Settings) -> None:
    """Hold on one text every law of the design that can be seen on one text.

    It is written in all other ways at once; only where that changes what is found, in each way alone, to name it.
    """
    result = obey_quick_laws(text, settings)
    _fixes_mend(text, settings)
    if result.diagnostics:  # a syntax error: nothing more to see
        return
    _bytes_survive(text)
    offers_fixes = any(finding.fix is not None for finding in result.findings)
    if offers_fixes:
        _line_endings_change_nothing(text, settings)
        _cells_change_nothing(text, settings)
    broken = _broken_at_once(text, settings)
    if broken is None:
        return
    if not offers_fixes:
        _line_endings_change_nothing(text, settings)
        _cells_change_nothing(text, settings)
    for variant in _variants(text, settings):
        change = _change(variant, text, settings)
        assert change is None, change
    assert broken is _OFFERS_MORE, f"{broken}\nEach alone changes nothing."


_OF_LOCALS = "unpicklable-loader-argument"


def _change(variant: _Variant, text: str, settings: Settings) -> str | None:
    """What law 4 says of a way of writing; None where it keeps what it has to keep."""
    parts = 3 if variant.keeps is _Keeps.ALL else 2
    wanted: Counter[tuple[object, ...]] = Counter(
        (variant.rows[row - 1], *rest)[:parts] for row, *rest in _detailed(text, settings)
    )
    found: Counter[tuple[object, ...]] = Counter(place[:parts] for place in _detailed(variant.text, settings))
    if variant.keeps is _Keeps.PLACES:  # a class of a function cannot be pickled, and that is then said
        for place in found - wanted:
            if place[1] == _OF_LOCALS:
                found[place] = wanted[place]
        found = +found
    if wanted <= found if variant.keeps is _Keeps.FINDINGS else wanted == found:
        return None
    return f"law 4, {variant.name}: {_differences(found, wanted)}\n{_numbered(variant.text)}"


def _detailed(text: str, settings: Settings) -> list[tuple[int, str, str]]:
    source = SourceFile("snippet.py", text)
    return [
        (source.position(finding.span.start)[0], finding.rule, str(finding.frequency))
        for finding in lint(text, settings).findings
    ]


# One text


def _findings_are_well_formed(text: str, findings: Iterable[Finding]) -> None:
    for finding in findings:
        rule = registry.find(finding.rule)
        assert finding.code == rule.code
        assert 0 <= finding.span.start <= finding.span.end <= len(text)
        assert finding.message, finding
        assert not finding.message.endswith("."), f"a message has no final period: {finding.message}"
        assert "\n" not in finding.message, finding.message
        if finding.fix is not None:
            declared = ", ".join(map(str, rule.fix)) or "none"
            assert finding.fix.applicability in rule.fix, (
                f"law 2: {rule.name} declares {declared} and yields a fix that is {finding.fix.applicability}"
            )
            assert re.match(r"[A-Z`]", finding.fix.title), f"{rule.name}: a fix has a title: {finding.fix.title!r}"
            assert not finding.fix.title.endswith("."), f"a title has no final period: {finding.fix.title}"
            assert finding.fix.edits, finding
            assert edited(text, finding.fix.edits) != text, f"{rule.name}: the fix changes nothing"


def fixes_come_to_rest(text: str, settings: Settings) -> None:
    """Law 1 and, where there is nothing to fix, law 3."""
    for threshold in _thresholds(text, settings):
        done = fix(text, settings, threshold)
        internal = [diagnostic.message for diagnostic in done.result.diagnostics if diagnostic.code == "E000"]
        assert not internal, f"law 1: {internal}\n{text}"
        if not done.applied:
            assert done.text == text, f"law 3: changed without a fix\n{text}"
            continue
        assert _compiles(done.text) or not _compiles(text), f"law 1: the fixed text does not parse\n{done.text}"
        again = fix(done.text, settings, threshold)
        assert again.text == done.text, f"law 1: fixing again goes on\n{done.text}\nto\n{again.text}"
        assert again.applied == ()
        assert done.result == lint(done.text, settings), "law 1: what remains is not what a new run reports"


def _fixes_mend(text: str, settings: Settings) -> None:
    """Law 1 for all fixes at once; where they leave any of what they fix, for each alone, of many the first five."""
    findings = lint(text, settings).findings
    before = Counter(finding.rule for finding in findings)
    fixable = [finding for finding in findings if engine.is_applicable(finding.fix, Applicability.UNSAFE)]
    left = Counter(finding.rule for finding in fix(text, settings, Applicability.UNSAFE).result.findings)
    if left == before - Counter(finding.rule for finding in fixable):
        return
    for finding in fixable[:5]:
        assert finding.fix is not None
        mended = edited(text, finding.fix.edits)
        # With all rules one may say by itself what another has said with it: the rule alone is asked, too.
        assert any(
            _said_by(finding.rule, lint(mended, asked).findings) < _said_by(finding.rule, lint(text, asked).findings)
            for asked in (settings, replace(settings, rules=(finding.rule,)))
        ), f"law 1: {finding.rule} still reports what it fixed\n{mended}"


def _said_by(rule: str, findings: Iterable[Finding]) -> tuple[int, int]:
    """How many places a rule warns of, and how many it notes: a note may show where a warning on its line is mended."""
    places = Counter[Severity]()
    for finding in findings:
        if finding.rule == rule:
            more = re.search(r" \(and (\d+) more on this line\)$", finding.message)
            places[finding.severity] += 1 + int(more[1] if more else 0)
    return places[Severity.WARNING], places[Severity.NOTE]


def _thresholds(text: str, settings: Settings) -> list[Applicability]:
    """Those at which runs differ."""
    seen = {finding.fix.applicability for finding in lint(text, settings).findings if finding.fix is not None}
    return sorted(seen - {Applicability.DISPLAY}) or [Applicability.UNSAFE]


def _tables_change_nothing(text: str, settings: Settings) -> None:
    source = SourceFile("snippet.py", text)
    rules = tuple(registry.find(name) for name in settings.rules)
    slow = engine.examine(source, rules, settings, thorough=True)
    if not engine.mentions(text.encode(errors="replace"), rules):
        assert slow.findings == (), f"law 5: the prefilter would drop these\n{slow}"
        return
    # Without a comment that could silence it, what is reported is what was found.
    is_silenced = "torchlint" in text or "noqa" in text
    fast = engine.examine(source, rules, settings) if is_silenced else lint(text, settings)
    said, all_said = (replace(result, questions=NOTHING_WANTED) for result in (fast, slow))
    assert said == all_said, f"law 5: the dispatch tables change the findings\n{fast}\n{slow}"
    # What no finding hangs on need not be asked of other files, but nothing is asked that is not asked of every node.
    asked, may_be_asked = fast.questions, slow.questions
    assert set(asked.functions) <= set(may_be_asked.functions), f"law 5: the dispatch tables ask more\n{asked}"
    assert set(asked.classes) <= set(may_be_asked.classes), f"law 5: the dispatch tables ask more\n{asked}"
    assert asked.pins <= may_be_asked.pins, f"law 5: the dispatch tables ask more\n{asked}"


def _bytes_survive(text: str) -> None:
    forms = {"UTF-8": text.encode(), "byte order mark": codecs.BOM_UTF8 + text.encode()}
    if "coding" not in text:
        forms["latin-1"] = f"# coding: latin-1\n{text}".encode("latin-1", errors="replace")
    for name, data in forms.items():
        source = SourceFile.from_bytes("snippet.py", data)
        assert source.to_bytes() == data, f"law 3: {name} does not survive"


def _line_endings_change_nothing(text: str, settings: Settings) -> None:
    if "\r" in text:
        return
    for threshold in _thresholds(text, settings):
        crlf = fix(text.replace("\n", "\r\n"), settings, threshold).text
        expected = fix(text, settings, threshold).text.replace("\n", "\r\n")
        assert crlf == expected, f"law 3: with CR LF the fix makes\n{crlf!r}\nnot\n{expected!r}"


def _cells_change_nothing(text: str, settings: Settings) -> None:
    """Laws 3 and 4 for a notebook whose cells are the statements of the module."""
    settings = _of_notebooks(settings)
    if (read := _in_cells(text, settings)) is None:
        return
    source, result, found = read
    wanted = _detailed(text, settings)
    assert found == wanted, f"law 4, cells: {_differences(found, wanted)}\n{_numbered(text)}"
    findings = lint(text, settings).findings
    if all((one.fix is None) is (other.fix is None) for one, other in zip(result.findings, findings, strict=True)):
        with patch.object(fixer, "lint", lambda new, *rest: result if new is source else linter.lint(new, *rest)):
            done = fixer.fix(source, settings, Applicability.UNSAFE).source
        assert done.notebook is not None
        assert "".join(done.notebook.sources) == fix(text, settings, Applicability.UNSAFE).text, (
            "law 4: cells are fixed otherwise"
        )
        again = SourceFile.from_bytes("snippet.ipynb", done.to_bytes())
        assert again.notebook is not None
        assert again.notebook.sources == done.notebook.sources, "law 3: what is written is not what is read"


def _in_cells(text: str, settings: Settings) -> tuple[SourceFile, Result, list[tuple[int, str, str]]] | None:
    """The statements of a module as cells of a notebook, what is reported of it, and that by the rows of the module."""
    if "\r" in text or "\f" in text or not (starts := _statement_rows(text)):
        return None
    rows = text.splitlines(keepends=True)
    cells = ["".join(rows[start:end]) for start, end in pairwise([*starts, len(rows)])]
    source = SourceFile.from_bytes("snippet.ipynb", SourceFile.of_notebook("", Notebook.of_cells(cells)).to_bytes())
    assert source.notebook is not None
    assert "".join(source.notebook.sources) == text, "law 3: what is written is not what is read"
    result = linter.lint(source, settings)
    found = []
    for finding in result.findings:
        place = source.place(finding.span.start)
        assert place.cell is not None
        found.append((starts[place.cell - 1] + place.row, finding.rule, str(finding.frequency)))
    return source, result, found


# Rules that have nothing to say of what is no file that Python imports, and to which others yield in one.
_OF_SCRIPTS = ("workers-without-main-guard",)


def _of_notebooks(settings: Settings) -> Settings:
    return replace(settings, rules=tuple(rule for rule in settings.rules if rule not in _OF_SCRIPTS))


def _statement_rows(text: str) -> list[int]:
    """The rows, from 0, on which the first statement's cell and each further one begin; none in what is no program."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError):
        return []
    rows = text.splitlines()
    starts = [0] if body else []
    for above, node in pairwise(body):
        start = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))]) - 1
        end = above.end_lineno or above.lineno
        while start > end and rows[start - 1].startswith("#"):  # what is said of a statement stands in its cell
            start -= 1
        if start >= end:  # else both stand on one line
            starts.append(start)
    return starts


# The same program, written differently


class _Keeps(Enum):
    """What a way of writing leaves as it is: all, all but frequencies, or the findings while others may appear."""

    ALL = 1
    PLACES = 2
    FINDINGS = 3


@dataclass(frozen=True, slots=True)
class _Variant:
    """A text that means the same; `rows[i]` is where row `i + 1` of the original has gone. It may be one of cells."""

    name: str
    text: str
    rows: list[int]
    keeps: _Keeps = _Keeps.ALL
    in_cells: bool = False


# No law forbids it of a program that is written otherwise, but with CR LF it has to stay as it is.
_OFFERS_MORE = "a fix is offered where there was none"


def _broken_at_once(text: str, settings: Settings) -> str | None:
    """What is not kept where a text is written in all ways at once; of cells, only where no fix has to be compared."""
    offers_fixes = any(finding.fix is not None for finding in lint(text, settings).findings)
    for variant in _at_once(text, settings):
        if not _compiles(variant.text):
            return f"law 4, {variant.name}: this is no Python\n{variant.text}"
        of_cells = _of_notebooks(settings)
        if variant.in_cells and not offers_fixes and (read := _in_cells(variant.text, of_cells)) is not None:
            wanted = _detailed(text, of_cells)
            _, result, found = read
            if found != wanted:
                return f"law 4, {variant.name}, in cells: {_differences(found, wanted)}\n{_numbered(variant.text)}"
        else:
            if (change := _change(variant, text, settings)) is not None:
                return change
            result = lint(variant.text, settings)
        if variant.keeps is _Keeps.ALL and not offers_fixes and any(finding.fix for finding in result.findings):
            return _OFFERS_MORE
    return None


def _at_once(text: str, settings: Settings) -> Iterator[_Variant]:
    """What `_variants` are, in as few texts as hold them all."""
    try:
        tree = ast.parse(text)
    except SyntaxError:  # written for a newer Python than this
        yield from _variants(text, settings)
        return
    rows = list(range(1, text.count("\n") + 2))
    new = _parenthesised(text, tree, lint(text, settings).findings)
    for rewrite in (_by_the_other_statement, _under_other_names):
        new = rewrite(new, ast.parse(new))
    new, places = _Layout.of(new).commented()
    for wrapped in _Layout.of(new).wrapped(ast.parse(new), _WRAPPED_AT_ONCE):
        new, places = wrapped.text, [wrapped.rows[place - 1] for place in places]
    new = "\f" + _Layout.of(new).tabbed().rstrip("\n")
    yield _Variant("at once", new.replace("\n", "\r\n"), places)
    yield _Variant("imports through modules", _through_modules(text, tree), rows, in_cells=True)
    for variant in _Layout.of(text).wrapped(tree, _WRAPPERS_OF_CODE):
        if variant.keeps is not _Keeps.FINDINGS or lint(text, settings).findings:  # else there is nothing to keep
            yield variant


def _variants(text: str, settings: Settings) -> Iterator[_Variant]:
    count = text.count("\n") + 1
    same = list(range(1, count + 1))
    yield _Variant("CR LF", text.replace("\n", "\r\n"), same)
    yield _Variant("no final newline", text.rstrip("\n"), same)
    try:
        tree = ast.parse(text)
        layout = _Layout.of(text)
    except (SyntaxError, tokenize.TokenError):  # written for a newer Python than this
        return
    yield _Variant("form feed", "\f" + text, same)
    yield _Variant("tabs", layout.tabbed(), same)
    yield _Variant("comments and blank lines", *layout.commented())
    for name, rewrite in _REWRITES.items():
        if (new := rewrite(text, tree)) != text:
            yield _Variant(name, new, same)
    if (new := _parenthesised(text, tree, lint(text, settings).findings)) != text:
        yield _Variant("parentheses", new, same)
    yield from layout.wrapped(tree, (*_WRAPPERS_OF_BLOCKS, *_WRAPPERS_OF_CODE))


class _Layout:
    """The rows of a text, and which of them begin inside a string and so must stay as they are."""

    def __init__(self, text: str, tokens: list[tokenize.TokenInfo]) -> None:
        self.rows = text.split("\n")
        self.tokens = tokens
        self.in_string: set[int] = set()
        depth, start = 0, 0
        for token in tokens:
            if token.type in _STRING_STARTS:
                start = start if depth else token.start[0]
                depth += 1
            elif token.type in _STRING_ENDS:
                depth -= 1
                self.in_string.update(range(start + 1, token.end[0] + 1))
            elif token.type == tokenize.STRING:
                self.in_string.update(range(token.start[0] + 1, token.end[0] + 1))

    @classmethod
    def of(cls, text: str) -> _Layout:
        """The layout of a text that Python can read."""
        return cls(text, list(tokenize.generate_tokens(io.StringIO(text).readline)))

    def tabbed(self) -> str:
        """Indented with tabs."""
        widths = {len(row) - len(row.lstrip(" ")) for number, row in self._free() if row.strip()}
        unit = 4 if all(width % 4 == 0 for width in widths) else 1

        def tabs(row: str) -> str:
            code = row.lstrip(" ")
            return "\t" * ((len(row) - len(code)) // unit) + code

        free = dict(self._free())
        return "\n".join(tabs(row) if number in free else row for number, row in enumerate(self.rows, 1))

    def commented(self) -> tuple[str, list[int]]:
        """With a comment behind every statement, and a blank row and a comment below it."""
        ends = {token.start[0] for token in self.tokens if token.type == tokenize.NEWLINE}
        comments = {token.start[0] for token in self.tokens if token.type == tokenize.COMMENT}
        text: list[str] = []
        places: list[int] = []
        for number, row in enumerate(self.rows, 1):
            places.append(len(text) + 1)
            if number in ends:
                text += [row if number in comments else f"{row}  # a note", "", "# another note"]
            else:
                text.append(row)
        return "\n".join(text), places

    def wrapped(self, tree: ast.Module, wrappers: Iterable[_Wrapper]) -> Iterator[_Variant]:
        """As the body of other statements, behind what must stand at the top of a module."""
        top = 0
        for statement in tree.body:
            if isinstance(statement, ast.ImportFrom) and statement.module == "__future__":
                top = statement.end_lineno or 0
        if top == len(self.rows) or not tree.body or all(node.lineno <= top for node in tree.body):
            return
        nodes = list(ast.walk(tree))
        stars = any(isinstance(node, ast.alias) and node.name == "*" for node in nodes)
        outer = any(isinstance(node, (ast.Global, ast.Nonlocal)) for node in nodes)
        for name, before, after, keeps in wrappers:
            if keeps is not _Keeps.ALL and (stars or outer):
                continue
            depth = before.count("\n") * 4 - (4 if "import" in before else 0)
            indent = " " * depth
            body = [
                row if number in self.in_string or not row.strip() else indent + row
                for number, row in enumerate(self.rows[top:], top + 1)
            ]
            text = "\n".join([*self.rows[:top], *before.splitlines(), *body, *after.splitlines()]) + "\n"
            shift = before.count("\n")
            places = [number if number <= top else number + shift for number in range(1, len(self.rows) + 1)]
            yield _Variant(name, text, places, keeps)

    def _free(self) -> list[tuple[int, str]]:
        return [(number, row) for number, row in enumerate(self.rows, 1) if number not in self.in_string]


_STRING_STARTS = {getattr(tokenize, name, -1) for name in ("FSTRING_START", "TSTRING_START")}
_STRING_ENDS = {getattr(tokenize, name, -1) for name in ("FSTRING_END", "TSTRING_END")}
_Wrapper: TypeAlias = "tuple[str, str, str, _Keeps]"
# Name, the rows above, the rows below, what stays. A function may run more often than a module; on what becomes an
# attribute or a method's local, code elsewhere has a hand, so that less is known of it.
_WRAPPERS_OF_BLOCKS: tuple[_Wrapper, ...] = (
    ("in `if`", "if True:\n", "", _Keeps.ALL),
    ("in `try`", "try:\n", "finally:\n    pass\n", _Keeps.ALL),
    ("in `with`", "import contextlib\nwith contextlib.nullcontext():\n", "", _Keeps.ALL),
)
_WRAPPERS_OF_CODE: tuple[_Wrapper, ...] = (
    ("in a function", "def wrapper():\n", "wrapper()\n", _Keeps.PLACES),
    ("in a method", "class Wrapper:\n    def wrapper(self):\n", "Wrapper().wrapper()\n", _Keeps.FINDINGS),
)
_WRAPPED_AT_ONCE: tuple[_Wrapper, ...] = (
    (
        "in `with`, `try` and `if`",
        "import contextlib\nif True:\n    try:\n        with contextlib.nullcontext():\n",
        "    finally:\n        pass\n",
        _Keeps.ALL,
    ),
)


def _bound_once(tree: ast.Module) -> set[str]:
    """The names that one statement of the module binds, and that no string or `global` mentions."""
    count: Counter[str] = Counter()
    annotations = {
        id(inner)
        for node in ast.walk(tree)
        for field in ("annotation", "returns")
        if isinstance(annotation := getattr(node, field, None), ast.expr)
        for inner in ast.walk(annotation)
    }
    for node in ast.walk(tree):
        match node:
            case ast.alias(name=name, asname=asname):
                count[asname or name.partition(".")[0]] += 1
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                count[name] += 1
            case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                count[name] += 1
            case ast.ClassDef(name=name) | ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                count[name] += 1
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                count.update(dict.fromkeys(names, 2))
            case ast.Constant(value=str(string)) if string.isidentifier() or id(node) in annotations:
                count.update(dict.fromkeys(re.findall(r"\w+", string), 2))
            case ast.JoinedStr() if sys.version_info < (3, 12):  # no positions inside
                count.update({inner.id: 2 for inner in ast.walk(node) if isinstance(inner, ast.Name)})
    return {name for name, times in count.items() if times == 1 and name != "*"}


def _under_other_names(text: str, tree: ast.Module) -> str:
    """`import torch` as `import torch as torch_`, and so for every import at the top."""
    free = _bound_once(tree)
    renamed: dict[str, str] = {}
    edits: list[tuple[ast.AST, str]] = []
    for statement in tree.body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)) and not _is_future(statement):
            for alias in statement.names:
                name = alias.asname or alias.name
                if name in free:
                    renamed[name] = f"{name}_"
                    rows = " \\\n" * (
                        (alias.end_lineno or alias.lineno) - alias.lineno
                    )  # what follows stays in its row
                    edits.append((alias, f"{alias.name} as{rows} {name}_"))
    return _with(text, edits, tree, renamed)


def _through_modules(text: str, tree: ast.Module) -> str:
    """`from torch.utils.data import DataLoader` as `torch_utils_data.DataLoader`."""
    free = _bound_once(tree)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    renamed: dict[str, str] = {}
    edits: list[tuple[ast.AST, str]] = []
    for statement in tree.body:
        if isinstance(statement, ast.ImportFrom) and not _is_future(statement) and not statement.level:
            names = [alias.asname or alias.name for alias in statement.names]
            module = statement.module or ""
            home = module.replace(".", "_")
            if all(name in free for name in names) and home not in used:
                for name, alias in zip(names, statement.names, strict=True):
                    renamed[name] = f"{home}.{alias.name}"
                rows = (statement.end_lineno or statement.lineno) - statement.lineno
                edits.append((statement, f"import {module} as {home}" + "\n" * rows))
    return _with(text, edits, tree, renamed)


def _by_the_other_statement(text: str, tree: ast.Module) -> str:
    """`import torch.nn as nn` as `from torch import nn`, and the other way round."""
    edits: list[tuple[ast.AST, str]] = []
    for statement in tree.body:
        rows = "\n" * ((statement.end_lineno or statement.lineno) - statement.lineno)  # what follows stays in its row
        match statement:
            case ast.Import(names=[ast.alias(name=name, asname=str(asname))]) if "." in name:
                module, _, last = name.rpartition(".")
                edits.append((statement, f"from {module} import {last} as {asname}{rows}"))
            case ast.ImportFrom(module="torch" | "torch.nn" as module, names=[ast.alias(name=name)], level=0) if (
                name in {"nn", "optim", "functional", "distributed", "cuda", "autograd"}
            ):
                edits.append((statement, f"import {module}.{name} as {statement.names[0].asname or name}{rows}"))
    return _with(text, edits, tree, {})


_REWRITES: dict[str, Callable[[str, ast.Module], str]] = {
    "imports under other names": _under_other_names,
    "imports through modules": _through_modules,
    "imports by the other statement": _by_the_other_statement,
}


def _is_future(statement: ast.Import | ast.ImportFrom) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def _with(text: str, edits: list[tuple[ast.AST, str]], tree: ast.Module, renamed: dict[str, str]) -> str:
    uses = [
        (node, renamed[node.id])
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id in renamed and isinstance(node.ctx, ast.Load)
    ]
    return edited(text, [Edit(_span(text, node), new) for node, new in (*edits, *uses)])


def _span(text: str, node: ast.AST) -> Span:
    """The code points of a node; `ast` counts columns in UTF-8 bytes."""
    rows, starts = _rows(text)

    def offset(row: int, column: int) -> int:
        return starts[row - 1] + len(rows[row - 1].encode()[:column].decode(errors="ignore"))

    return Span(
        offset(node.lineno, node.col_offset),  # type: ignore[attr-defined]
        offset(node.end_lineno, node.end_col_offset),  # type: ignore[attr-defined]
    )


@lru_cache(maxsize=_REMEMBERED)
def _rows(text: str) -> tuple[list[str], list[int]]:
    rows = text.split("\n")
    return rows, list(accumulate((len(row) + 1 for row in rows), initial=0))


def _parenthesised(text: str, tree: ast.Module, findings: Iterable[Finding]) -> str:
    """Each flagged expression in parentheses, where they may stand."""
    expressions = {_span(text, node) for node in ast.walk(tree) if isinstance(node, ast.expr)}
    edits: list[Edit] = []
    for span in {finding.span for finding in findings} & expressions:
        pair = [Edit(Span(span.start, span.start), "("), Edit(Span(span.end, span.end), ")")]
        if _compiles(edited(text, [*edits, *pair])):
            edits += pair
    return edited(text, edits)


@lru_cache(maxsize=_REMEMBERED)
def _compiles(text: str) -> bool:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return True


# Words


def _dedent(code: str) -> str:
    return textwrap.dedent(code).lstrip("\n")


def _numbered(text: str) -> str:
    return "\n".join(f"{number:4} {row}" for number, row in enumerate(text.split("\n"), 1))


def _differences(found: Iterable[object], expected: Iterable[object]) -> str:
    there, wanted = Counter(found), Counter(expected)
    missing, needless = list((wanted - there).elements()), list((there - wanted).elements())
    return f"not flagged: {missing}; flagged without need: {needless}"
