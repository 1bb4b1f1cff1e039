"""From one source to raw findings: prefilter, parse, one walk, dispatch, spans."""

from __future__ import annotations

import re
import sys
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakValueDictionary

from torchlint.facts import NOTHING, Answers, Asked, Facts
from torchlint.finding import (
    NOTHING_WANTED,
    Applicability,
    Diagnostic,
    Doubt,
    Edit,
    Fault,
    Finding,
    Fix,
    Result,
    Severity,
    Span,
    sort_key,
)
from torchlint.precedence import merged, settled
from torchlint.rule import Call, Check, Flag, Insert, InsertBelow, Method, Node, NodeEdit, Rule, Said

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Iterable, Iterator

    import libcst as cst

    from torchlint.facts import LoopFact, Telling
    from torchlint.finding import Wanted
    from torchlint.semantics.context import Context
    from torchlint.settings import Settings
    from torchlint.source import SourceFile
    from torchlint.syntax.incremental import Pieces
    from torchlint.syntax.positions import Spans
    from torchlint.syntax.tree import Tree

# Deeper nesting overflows the native stack of the parser, which no exception can report.
DEEPEST_NESTING = 100
# The recursive parts of LibCST need about ten Python frames a level.
_RECURSION_LIMIT = 20_000


@lru_cache(maxsize=64)
def _pattern(rules: tuple[str, ...]) -> re.Pattern[bytes] | None:
    from torchlint.registry import by_name

    tokens = {token for name in rules for interest in by_name()[name].interests for token in interest.tokens}
    if any(
        isinstance(interest, Node) and not interest.tokens for name in rules for interest in by_name()[name].interests
    ):
        return re.compile(b"")
    return re.compile(b"|".join(re.escape(token) for token in sorted(tokens))) if tokens else None


def names_torch(data: bytes) -> bool:
    """Whether the bytes of a file can be code for PyTorch at all. Costs not even loading the rules."""
    return b"torch" in data or b"lightning" in data


def speaks_of_tensors(data: bytes) -> bool:
    """Whether the bytes of a file can be code for PyTorch, though it need not name it: what it uses is handed in."""
    return names_torch(data) or _OF_TENSORS.search(data) is not None


_OF_TENSORS = re.compile(rb"\.(?:cuda|backward)\(|\bDataLoader\(")


def mentions(data: bytes, rules: tuple[Rule, ...]) -> bool:
    """Whether the bytes of a file can hold anything that one of the rules looks at. Costs no parse."""
    if not speaks_of_tensors(data):
        return False
    pattern = _pattern(tuple(rule.name for rule in rules))
    return pattern is not None and pattern.search(data) is not None


def examine(
    source: SourceFile, rules: tuple[Rule, ...], settings: Settings, facts: Facts = NOTHING, *, thorough: bool = False
) -> Result:
    """All that the rules say of a source, nothing suppressed, sorted.

    `thorough` runs every check on every node that its interest names, without the dispatch tables: slow, and by law
    the same result.
    """
    return _examined(source, rules, settings, facts, Asked(), thorough=thorough)[0]


def examine_and_answer(
    source: SourceFile, rules: tuple[Rule, ...], settings: Settings, facts: Facts, asked: Asked
) -> tuple[Result, Answers]:
    """All that the rules say of a source, and what it says to what is asked of it: one parse for both."""
    return _examined(source, rules, settings, facts, asked)


def answer(source: SourceFile, settings: Settings, facts: Facts, asked: Asked) -> Answers:
    """What a source says to what is asked of it."""
    return _examined(source, None, settings, facts, asked)[1]


def _examined(
    source: SourceFile,
    rules: tuple[Rule, ...] | None,
    settings: Settings,
    facts: Facts,
    asked: Asked,
    *,
    thorough: bool = False,
) -> tuple[Result, Answers]:
    """What the rules say, if there are any to ask, and the answers, if anything is asked."""
    result, answers = Result(), Answers(asked=asked)
    with deep_recursion():
        try:
            with reading(source, settings, facts) as read:
                if isinstance(read, Diagnostic):
                    return Result(diagnostics=(read,)), answers
                if rules is not None:
                    result = _run(read, rules, thorough=thorough)
                if asked:
                    answers = _answered(read, asked, lints=rules is not None)
        except RecursionError:
            message = "the code nests too deeply to be read"
            return Result(diagnostics=(Diagnostic("E999", "invalid-syntax", message),)), answers
    return result, answers


def _answered(context: Context, asked: Asked, *, lints: bool) -> Answers:
    """What a module says to what is asked of it; nothing where that fails, which must not cost what was found.

    Where it is linted besides, what calls give may be offered to it that others are not yet told.
    """
    from torchlint.analyses.answers import answers, returns

    try:
        found = Answers(asked=asked)
        if asked.calls or asked.classes:
            found = answers(context, asked)
            if lints and context.facts.returned_for(context.elsewhere.questions.returns):
                # These are given before it is known what calls give.
                with context.beside(context.facts._replace(returns=())) as other:
                    found = answers(other, asked)
        if asked.returns:
            with context.beside(Facts(returns=context.facts.returns)) as other:
                given = returns(other)
            found = found._replace(returns=given.returns, passes_on=given.passes_on)
    except Exception:  # noqa: BLE001 - as for rules, but nobody waits for these answers
        return Answers(asked=asked)
    return found


def tell(source: SourceFile, settings: Settings, facts: Facts, row: int) -> Telling | None:
    """What is known of a line; None where there is no code on it, or the source can't be read."""
    from torchlint.analyses.line_facts import telling

    with deep_recursion():
        try:
            with reading(source, settings, facts) as read:
                return None if isinstance(read, Diagnostic) else telling(read, row)
        except RecursionError:
            return None


def loops(source: SourceFile, settings: Settings, facts: Facts) -> tuple[tuple[LoopFact, ...], Wanted]:
    """The loops over batches, and what other files could tell of them; none where the source can't be read."""
    from torchlint.analyses.loop_facts import loop_facts

    with deep_recursion():
        try:
            with reading(source, settings, facts) as read:
                if isinstance(read, Diagnostic):
                    return (), NOTHING_WANTED
                return loop_facts(read), read.elsewhere.questions
        except RecursionError:
            return (), NOTHING_WANTED


@contextmanager
def reading(source: SourceFile, settings: Settings, facts: Facts) -> Iterator[Context | Diagnostic]:
    """The parsed source as long as it is asked, or why it can't be parsed."""
    read = _read(source, settings, facts)
    try:
        yield read
    finally:
        if not isinstance(read, Diagnostic):
            read.release()


def _read(source: SourceFile, settings: Settings, facts: Facts) -> Context | Diagnostic:
    """The parsed source, or why it can't be."""
    import libcst as cst

    from torchlint.semantics.context import Context

    if source.bom and source.text.startswith("\ufeff"):  # LibCST passes over it
        message = "syntax error: invalid non-printable character U+FEFF"
        return Diagnostic("E999", "invalid-syntax", message, span=Span(0, 0))
    nesting = _deepest(source.text)
    if nesting > DEEPEST_NESTING:
        message = f"brackets nest {nesting} deep; torchlint reads up to {DEEPEST_NESTING}"
        return Diagnostic("E999", "invalid-syntax", message)
    try:
        return Context(_tree(source.text), source, settings, facts)
    except cst.ParserSyntaxError as error:
        return _syntax_error(source, error)


def expect_edits() -> None:
    """Remember what texts are made of from here on: in this process they are edited and read again, over and over."""
    global _pieces  # noqa: PLW0603 - as the memory below, for the process
    from torchlint.syntax.incremental import Pieces

    _pieces = _pieces or Pieces()


_pieces: Pieces | None = None


@lru_cache(maxsize=4)
def _tree(text: str) -> Tree:
    """The tree of a text. The file that was just edited is read again with what other files say of it."""
    from torchlint.syntax.parsing import parse
    from torchlint.syntax.tree import Tree

    tree = _alive.get(text)
    if tree is None:
        tree = _alive[text] = Tree(_pieces.parse(text) if _pieces is not None else parse(text))
    return tree


_alive: WeakValueDictionary[str, Tree] = WeakValueDictionary()
_kept: dict[str, Tree] = {}
# A tree takes some 35 bytes for each.
_MOST_CHARACTERS_KEPT = 1_000_000


def keep(text: str) -> None:
    """Keep the tree of a text that this process has just read, until `forget`: it is to be read again."""
    if text in _alive and sum(map(len, _kept)) + len(text) <= _MOST_CHARACTERS_KEPT:
        _kept[text] = _tree(text)


def forget() -> None:
    """Let go of the trees that were kept."""
    _kept.clear()


@contextmanager
def deep_recursion() -> Iterator[None]:
    """As much recursion as LibCST needs for what is read."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _RECURSION_LIMIT))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def _deepest(text: str) -> int:
    """How deep brackets nest at most, counted on the text without comments: strings only make it count too much."""
    if max(text.count("("), text.count("["), text.count("{")) <= DEEPEST_NESTING // 3 and "\n" + " " * 100 not in text:
        return 0
    from torchlint.syntax.uncommented import uncommented  # short files don't come here

    depth = deepest = 0
    for bracket in _BRACKETS.findall(uncommented(text)):
        if bracket in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif depth:
            depth -= 1
    return deepest


_BRACKETS = re.compile(r"[()\[\]{}]")


def _syntax_error(source: SourceFile, error: cst.ParserSyntaxError) -> Diagnostic:
    starts = source.line_starts
    found = _syntax_error_of_python(source.text)
    row, column = found[:2] if found is not None else (error.raw_line, error.raw_column)
    row = min(max(row, 1), len(starts))
    start = min(starts[row - 1] + max(column, 0), len(source.text))
    message = f"syntax error: {found[2]}" if found is not None else _NOT_OF_LIBCST
    return Diagnostic("E999", "invalid-syntax", message, span=Span(start, start))


_NOT_OF_LIBCST = "LibCST, which torchlint parses with, cannot read this, though Python {}.{} can; not checked".format(
    *sys.version_info[:2]
)


def _syntax_error_of_python(text: str) -> tuple[int, int, str] | None:
    """Row, from 1, column, from 0, and words for where Python stops reading: it knows better than LibCST.

    None where this Python can read the text.
    """
    import ast
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the code, not of this program
        try:
            ast.parse(text)
        except SyntaxError as error:
            return error.lineno or 1, (error.offset or 1) - 1, error.msg
        except ValueError as error:  # of Python 3.11 and older
            row = text.count("\n", 0, max(text.find("\0"), 0)) + 1
            return row, 0, str(error)
        except (MemoryError, RecursionError):
            return 1, 0, "it nests too deeply"
    return None


def passed_over(context: Context) -> str:
    """Why no check is asked of a file; empty where they are."""
    if context.program.is_of_another_framework:
        return "the file is passed over: it is for another framework"
    # What does not speak of tensors is nobody's program for PyTorch, whatever its methods are called.
    if not speaks_of_tensors(context.source.text.encode(errors="replace")):
        return "the file is passed over: there is no torch in it"
    return ""


def _run(context: Context, rules: tuple[Rule, ...], *, thorough: bool) -> Result:
    source = context.source
    if passed_over(context):
        return Result()
    flagged: list[tuple[Rule, Flag]] = []
    diagnostics: list[Diagnostic] = []
    candidates = _every_candidate(context, rules) if thorough else candidates_of(context, rules)
    for rule, check, node in candidates:
        try:
            flags = [_weighed(_is_a_flag(flag), context) for flag in check(node, context)]
        except RecursionError:
            diagnostics.append(Diagnostic("E999", "invalid-syntax", _TOO_LONG.format(rule.name)))
        except Exception as error:  # noqa: BLE001 - a rule's crash must not cost the user the other findings
            diagnostics.append(_crash(source, rule, error))
        else:
            if flags:
                flagged += [(rule, flag) for flag in flags]
    # What is asked below would change the words of a finding alone.
    questions = context.elsewhere.questions
    try:
        found = _findings(flagged, context)
    except RecursionError:
        raise
    except Exception:  # noqa: BLE001 - as above: of which rule it was shows when each is asked alone
        flagged = [each for rule in rules for each in _sound(rule, flagged, context, diagnostics)]
        found = _findings(flagged, context)
    if found is None:
        message = "LibCST, which torchlint parses with, does not reproduce this file; not checked"
        return Result(diagnostics=(Diagnostic("E999", "invalid-syntax", message),))
    return Result(found, tuple(dict.fromkeys(diagnostics)), questions)


_TOO_LONG = (
    "something here is defined through thousands of others, further than {} can follow; it checked no more of it"
)


def _is_a_flag(flag: object) -> Flag:
    """What a check yields, which is somebody else's code. Raises `TypeError`."""
    if not isinstance(flag, Flag) or not isinstance(flag.message, (str, Said)):
        raise TypeError(f"a check yields `Flag`s with a message, not {flag!r}")
    return flag


def _weighed(flag: Flag, context: Context) -> Flag:
    """The flag, with a doubt where it has none and nobody in sight gets there: whatever the rule, it does not recur."""
    # A source was parsed.
    from torchlint.analyses.execution.untaken_branches import is_called_by_name, is_left_off, is_unused

    if flag.doubts:
        return flag
    asked = {
        Doubt.OPTION_DECIDES: is_left_off,
        Doubt.UNCALLED: is_unused,
        Doubt.CALLED_BY_NAME: is_called_by_name,
    }
    doubt = next((doubt for doubt, holds in asked.items() if holds(flag.node, context)), None)
    return flag if doubt is None else replace(flag, doubts=(doubt,))


def _sound(
    rule: Rule, flagged: list[tuple[Rule, Flag]], context: Context, diagnostics: list[Diagnostic]
) -> list[tuple[Rule, Flag]]:
    """The flags of one rule, if they can be reported; else none, and why not among the diagnostics."""
    own = [each for each in flagged if each[0] is rule]
    try:
        _findings(own, context)
    except Exception as error:  # noqa: BLE001 - as above
        diagnostics.append(_crash(context.source, rule, error))
        return []
    return own


def _findings(flagged: list[tuple[Rule, Flag]], context: Context) -> tuple[Finding, ...] | None:
    """What the flags say, where they stand; None where that cannot be found out."""
    from torchlint.analyses.execution.causes import cause  # a source was parsed
    from torchlint.analyses.execution.compiled import Compiled
    from torchlint.analyses.execution.untaken_branches import is_dead

    if not flagged:
        return ()
    source = context.source
    flagged = [
        (rule, flag)
        for rule, flag in flagged
        if not (
            rule.worthless(flag) is not None
            or (rule.eager and context[Compiled].holds(flag.node))
            or is_dead(flag.node, context)
        )
    ]
    causes = {flag.node: cause(flag.node, context) for _, flag in flagged}
    wanted = {node for _, flag in flagged for node in (*_nodes(flag), *(edit.node for edit in flag.edits))}
    wanted.update(filter(None, causes.values()))
    wanted.update(flag.within.name for _, flag in flagged if flag.within is not None)
    spans = context.spans(wanted)
    if not spans.faithful:
        return None
    speaking = settled(flagged, lambda flag: _subjects(flag, spans), lambda offset: source.position(offset)[0])
    findings = [_finding(rule, flag, causes[flag.node], spans, context) for rule, flag in speaking]
    found = merged(findings, lambda offset: source.position(offset)[0])
    return tuple(sorted(found, key=sort_key))


def _nodes(flag: Flag) -> tuple[cst.CSTNode, ...]:
    """All that a flag speaks of, the node that it points at first."""
    return (flag.node, *flag.places, *flag.about)


def _subjects(flag: Flag, spans: Spans) -> list[Span]:
    """The code that a flag speaks of; of a statement with a block its first character, since the block is not meant."""
    import libcst as cst  # a source was parsed

    found = []
    for node in _nodes(flag):
        span = spans.inner(node)
        has_block = isinstance(getattr(node, "body", None), cst.BaseSuite)
        found.append(Span(span.start, span.start + 1) if has_block else span)
    return found


def _crash(source: SourceFile, rule: Rule, error: Exception) -> Diagnostic:
    from torchlint.registry import pack_of

    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f"{trace.tb_frame.f_code.co_name}, line {trace.tb_lineno}" if trace is not None else "?"
    what = f"{type(error).__name__}: {_cut(error)} ({place})"
    message = f"{rule.name} failed on {source.path}: {what}; please report this"
    if (pack := pack_of(rule.name)) is not None:
        message += f" to the authors of {pack}"
    return Diagnostic("E000", "internal-error", message, Fault.INTERNAL)


def _cut(error: Exception) -> str:
    """What an error says, on one line; some show a whole tree."""
    said = " ".join(str(error).split())
    return said if len(said) <= _LONGEST_ERROR else f"{said[:_LONGEST_ERROR]}…"


_LONGEST_ERROR = 200


def _finding(rule: Rule, flag: Flag, why: cst.CSTNode | None, spans: Spans, context: Context) -> Finding:
    fix = None
    if flag.edits and all(_can_stand(edit, context) for edit in flag.edits):
        edits = sorted(_edit(edit, spans, context) for edit in flag.edits)
        fix = Fix(flag.title, tuple(edits), flag.applicability)
    frequency, origin = context.frequency(flag.node), context.frequencies.origin(flag.node)
    place = spans.inner(why) if why is not None else None
    severity = Severity.NOTE if flag.doubts else Severity.WARNING
    span = spans.inner(flag.node)
    said = flag.message if isinstance(flag.message, Said) else Said(flag.message)
    return Finding(
        rule.name,
        rule.code,
        span,
        said.headline,
        frequency,
        fix,
        origin,
        cause=place,
        doubts=flag.doubts,
        severity=severity,
        places=tuple(sorted({spans.inner(node) for node in flag.places} - {span})),
        help=said.help,
        within=spans.inner(flag.within.name) if flag.within is not None else None,
        message_id=said.id,
    )


def _can_stand(edit: NodeEdit, context: Context) -> bool:
    """Whether the code can stand where the edit puts it: an f-string prints some of its own, and not all fits in."""
    from torchlint.edits.expressions import fits_in_string, is_spelt_out  # a source was parsed

    return not is_spelt_out(edit.node, context) and fits_in_string(edit.code, edit.node, context)


def _edit(edit: NodeEdit, spans: Spans, context: Context) -> Edit:
    match edit:
        case Insert(node=node, code=code, before=before):
            span = spans.inner(node)
            place = span.start if before else span.end
            return Edit(Span(place, place), code)
        case InsertBelow(node=node, code=code):
            place = spans.outer(node).end
            line = context.tree.indentation(node) + code
            is_ended = context.source.text[:place].endswith(("\n", "\r"))
            return Edit(Span(place, place), f"{line}\n" if is_ended else f"\n{line}")
    return Edit(spans.outer(edit.node), edit.code)


# Dispatch


def candidates_of(context: Context, rules: tuple[Rule, ...]) -> Iterator[tuple[Rule, Check, cst.CSTNode]]:
    """Each check with the nodes that its interest names, found through tables by type and by called name."""
    import libcst as cst

    interests = _interests(rules)
    tree, text = context.tree, context.source.text
    known: dict[str, bool] = {}

    def is_among(tokens: tuple[str, ...]) -> bool:
        """Whether the text holds one of the tokens, if there are any."""
        for token in tokens:
            if token not in known:
                known[token] = token in text
            if known[token]:
                return True
        return not tokens

    for rule, check, kind, tokens in interests.nodes:
        named = getattr(cst, kind, None)
        if named is None:  # in a rule that nobody has tried
            yield rule, _no_such_node(kind), tree.module
            continue
        nodes = tree.of(named)
        if nodes and is_among(tokens):
            for node in nodes:
                yield rule, check, node
    methods: dict[str, list[tuple[Rule, Check]]] = {}
    for rule, check, name, beside in interests.methods:
        if is_among(beside):
            methods.setdefault(name, []).append((rule, check))
    calls = interests.calls
    if not methods and not calls:
        return
    aliases = _aliases(tree, calls.keys()) if calls else {}
    for call in tree.of(cst.Call):
        func = call.func
        if isinstance(func, cst.Attribute):
            last = func.attr.value
            for rule, check in methods.get(last, ()):
                yield rule, check, call
        elif isinstance(func, cst.Name):
            last = func.value
            for alias in aliases.get(last, ()):
                yield from _named(context, call, calls[alias])
        else:
            continue
        if last in calls:
            yield from _named(context, call, calls[last])


def _no_such_node(kind: str) -> Check:
    def fail(_node: cst.CSTNode, _context: Context) -> Iterator[Flag]:
        raise LookupError(f"LibCST has no node `{kind}`")

    return fail


class _Interests(NamedTuple):
    """What rules are interested in, as the dispatch needs it: calls by the last part of the name."""

    nodes: list[tuple[Rule, Check, str, tuple[str, ...]]]
    methods: list[tuple[Rule, Check, str, tuple[str, ...]]]
    calls: dict[str, list[tuple[str, Rule, Check]]]


@lru_cache(maxsize=8)
def _interests(rules: tuple[Rule, ...]) -> _Interests:
    found = _Interests([], [], {})
    for rule in rules:
        for interest, check in rule.checks:
            match interest:
                case Method(name=name, beside=beside):
                    found.methods.append((rule, check, name, tuple(map(bytes.decode, beside))))
                case Call(name=name):
                    found.calls.setdefault(name.rpartition(".")[2], []).append((name, rule, check))
                case Node(type=kind, tokens=tokens):
                    found.nodes.append((rule, check, kind, tuple(map(bytes.decode, tokens))))
    return found


def _named(
    context: Context, call: cst.Call, wanted: Iterable[tuple[str, Rule, Check]]
) -> list[tuple[Rule, Check, cst.CSTNode]]:
    name = context.qualified_name(call.func)
    return [(rule, check, call) for wanted_name, rule, check in wanted if wanted_name == name]


def _aliases(tree: Tree, wanted: Container[str]) -> dict[str, set[str]]:
    """For each name that imports and assignments give to something wanted, in however many steps, its last part."""
    import libcst as cst

    given: dict[str, set[str]] = {}
    aliases: dict[str, set[str]] = {}

    def note(name: str, node: cst.CSTNode) -> None:
        last = node.attr.value if isinstance(node, cst.Attribute) else getattr(node, "value", None)
        if last != name and isinstance(last, str):
            if last in wanted:
                aliases.setdefault(name, set()).add(last)
            given.setdefault(last, set()).add(name)

    imports: list[cst.Import | cst.ImportFrom] = [*tree.of(cst.Import), *tree.of(cst.ImportFrom)]
    for import_ in imports:
        if not isinstance(import_.names, cst.ImportStar):
            for alias in import_.names:
                if alias.asname is not None and isinstance(alias.asname.name, cst.Name):
                    note(alias.asname.name.value, alias.name)
    for assign in tree.of(cst.Assign):
        for target in assign.targets:
            if isinstance(target.target, cst.Name) and isinstance(assign.value, (cst.Name, cst.Attribute)):
                note(target.target.value, assign.value)
    waiting = list(aliases)
    while waiting:
        name = waiting.pop()
        for other in given.get(name, ()):
            known = aliases.setdefault(other, set())
            if not aliases[name] <= known:
                known |= aliases[name]
                waiting.append(other)
    return aliases


def _every_candidate(context: Context, rules: tuple[Rule, ...]) -> Iterator[tuple[Rule, Check, cst.CSTNode]]:
    import libcst as cst

    from torchlint.syntax.tree import descendants

    wanted: list[tuple[Rule, Check, Callable[[cst.CSTNode], bool]]] = []

    def _is_method(name: str) -> Callable[[cst.CSTNode], bool]:
        return lambda node: (
            isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == name
        )

    def _is_call(name: str) -> Callable[[cst.CSTNode], bool]:
        return lambda node: isinstance(node, cst.Call) and context.qualified_name(node.func) == name

    def _is_node(kind: str) -> Callable[[cst.CSTNode], bool]:
        return lambda node: type(node).__name__ == kind

    for rule in rules:
        for interest, check in rule.checks:
            match interest:
                case Method(name=name):
                    wanted.append((rule, check, _is_method(name)))
                case Call(name=name):
                    wanted.append((rule, check, _is_call(name)))
                case Node(type=kind):
                    wanted.append((rule, check, _is_node(kind)))
    for node in descendants(context.tree.module):
        for rule, check, named in wanted:
            if named(node):
                yield rule, check, node


def is_applicable(fix: Fix | None, threshold: Applicability) -> bool:
    """Whether a run with this threshold applies the fix."""
    return fix is not None and fix.applicability >= threshold
