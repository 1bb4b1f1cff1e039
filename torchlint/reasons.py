"""Why a rule spoke of a line, doubted or was silent: its checks are run once more on what stands there, and watched.

The reason for a silence is what was decided last in a check, in the words of what decided it: the docstring of the
predicate that held, or did not. So no silence is without a reason, and none is other than what happened.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from enum import Enum
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from torchlint import engine, linter
from torchlint.finding import Diagnostic, Severity
from torchlint.registry import find

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import CodeType, FrameType

    import libcst as cst

    from torchlint.facts import Facts
    from torchlint.finding import Finding
    from torchlint.rule import Check, Flag, Rule
    from torchlint.semantics.context import Context
    from torchlint.settings import Settings
    from torchlint.source import SourceFile

# Steps further below a check say too little of it.
_STEPS = 3
_Test = ast.expr
NOTHING = "nothing here is what it looks for"


class Outcome(Enum):
    """What came of a rule's look at a line."""

    WARNING = "warning"
    NOTE = "note"
    SILENT = "silent"
    SUPPRESSED = "suppressed"


class Reason(NamedTuple):
    """One step of why a check was silent: `id` names what decided it, `words` say it.

    `is_code` says that nobody has put it in words: a condition as it stands in a check.
    """

    id: str
    words: str
    is_code: bool = False


class Verdict(NamedTuple):
    """What a rule said of a line, or why it was silent: the nearest reason first."""

    rule: Rule
    outcome: Outcome
    words: str
    reasons: tuple[Reason, ...] = ()


class Watched(NamedTuple):
    """What a check gave for a node, and if it gave nothing, why: the nearest reason first."""

    flags: tuple[Flag, ...]
    reasons: tuple[Reason, ...]


class _Left(NamedTuple):
    """A function as it was left: where, with which names bound, and what it gave."""

    code: CodeType
    row: int
    names: dict[str, Any]
    value: object


def verdicts(source: SourceFile, settings: Settings, facts: Facts, row: int) -> list[Verdict]:
    """What each active rule that looks at something on a line says of it, or why it does not; none without code."""
    return verdicts_of(source, settings, facts, [row])[row]


def verdicts_of(source: SourceFile, settings: Settings, facts: Facts, rows: Sequence[int]) -> dict[int, list[Verdict]]:
    """The same of several lines of a file."""
    rules = tuple(map(find, settings.rules))
    said = linter.lint(source, settings, facts).findings
    found = engine.examine(source, rules, settings, facts).findings
    with engine.deep_recursion(), engine.reading(source, settings, facts) as context:
        if isinstance(context, Diagnostic):
            return {row: [] for row in rows}
        looked = _looked(context, rules, frozenset(rows))
        return {row: _of_row(row, looked.get(row, []), source, context, found, said) for row in rows}


def _of_row(
    row: int,
    looked: Sequence[tuple[Rule, Check, cst.CSTNode]],
    source: SourceFile,
    context: Context,
    found: Sequence[Finding],
    said: tuple[Finding, ...],
) -> list[Verdict]:
    here = [finding for finding in found if _touches(finding, source, row)]
    spoken = [_spoken(finding, said) for finding in here]
    speaking = {verdict.rule.name for verdict in spoken}
    silent: dict[str, tuple[int, Verdict]] = {}
    for rule, check, node in looked:
        if rule.name in speaking:
            continue
        seen = watched(check, node, context)
        # Of several things on a line, what came nearest to being said.
        reached = _STEPS + 1 if seen.flags else len(seen.reasons)
        if rule.name not in silent or reached > silent[rule.name][0]:
            silent[rule.name] = reached, _silent(rule, seen, context, here)
    spoken.sort(key=lambda verdict: list(Outcome).index(verdict.outcome))
    return [*spoken, *sorted((verdict for _, verdict in silent.values()), key=lambda verdict: verdict.rule.code)]


def _looked(
    context: Context, rules: tuple[Rule, ...], rows: frozenset[int]
) -> dict[int, list[tuple[Rule, Check, cst.CSTNode]]]:
    """By line the checks that look at what begins there, or at the statement there, with what they look at."""
    candidates = engine.candidates_of(context, rules)
    looked = [(rule, check, node) for rule, check, node in candidates if node is not context.tree.module]
    spans = context.spans({node for _, _, node in looked})
    found: dict[int, list[tuple[Rule, Check, cst.CSTNode]]] = {}
    for rule, check, node in looked:
        row = context.source.position(spans.inner(node).start)[0]
        if row in rows:
            found.setdefault(row, []).append((rule, check, node))
    return found


def _touches(finding: Finding, source: SourceFile, row: int) -> bool:
    return row in {source.position(span.start)[0] for span in (finding.span, *finding.places)}


def _spoken(finding: Finding, said: tuple[Finding, ...]) -> Verdict:
    rule = find(finding.rule)
    if not any(other.rule == finding.rule and other.span == finding.span for other in said):
        return Verdict(rule, Outcome.SUPPRESSED, finding.message)
    outcome = Outcome.NOTE if finding.severity is Severity.NOTE else Outcome.WARNING
    return Verdict(
        rule, outcome, finding.message, tuple(Reason(doubt.value, doubt.sentence) for doubt in finding.doubts)
    )


def _silent(rule: Rule, seen: Watched, context: Context, here: list[Finding]) -> Verdict:
    """Why nothing is reported: no flag, or one that was dropped."""
    from torchlint.analyses.execution.compiled import Compiled
    from torchlint.analyses.execution.untaken_branches import is_dead

    if seen.flags and (why := engine.passed_over(context)):
        return Verdict(rule, Outcome.SILENT, why)
    for flag in seen.flags:
        if (found := rule.worthless(flag)) is not None:
            doubt, reason = found
            return Verdict(rule, Outcome.SILENT, doubt.sentence, (Reason(doubt.value, reason),))
        if rule.eager and context[Compiled].holds(flag.node):
            return Verdict(rule, Outcome.SILENT, "this function is compiled, and `torch.compile` sees to it")
        if is_dead(flag.node, context):
            return Verdict(rule, Outcome.SILENT, "what stands before it leaves the block: this never runs")
        others = [finding.rule for finding in here if finding.rule in rule.yields_to]
        if others:
            return Verdict(rule, Outcome.SILENT, f"{others[0]} says the same more precisely")
        return Verdict(rule, Outcome.SILENT, "another finding says the same")
    if not seen.reasons:
        return Verdict(rule, Outcome.SILENT, NOTHING)
    return Verdict(rule, Outcome.SILENT, seen.reasons[0].words, seen.reasons)


def _name(code: CodeType) -> str:
    """How a function is called, with its class."""
    return str(getattr(code, "co_qualname", code.co_name))  # of Python 3.11 and newer


def watched(check: Check, node: cst.CSTNode, context: Context) -> Watched:
    """Run a check on a node and say why, if it flags nothing."""
    code = inspect.unwrap(check).__code__
    left: list[_Left] = []
    own: list[_Left] = []
    rows: dict[int, int] = {}

    def trace(frame: FrameType, event: str, value: object) -> Callable[..., Any] | None:
        if event == "call" and not _is_ours(frame.f_code):
            return None
        if event == "line":
            rows[id(frame)] = frame.f_lineno
        elif event == "return":
            row = rows.pop(id(frame), frame.f_lineno)
            found = _Left(frame.f_code, row, {**frame.f_globals, **frame.f_locals}, value)
            (own if frame.f_code is code else left).append(found)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        flags = tuple(check(node, context))
    finally:
        sys.settrace(before)
    if flags or not own:
        return Watched(flags, ())
    return Watched((), tuple(_why(own[-1], left, _STEPS)))


def _is_ours(code: CodeType) -> bool:
    """Whether the function is one of torchlint, or of a rule of a pack: not of LibCST or of Python itself."""
    name = code.co_filename
    return not name.startswith("<") and "libcst" not in name and not name.startswith(_PYTHON)


_PYTHON = str(Path(inspect.__file__).parent)


def _why(function: _Left, left: list[_Left], steps: int) -> Iterator[Reason]:
    """What was decided last in a function that gave nothing, then why that was so."""
    decided = _decision(function)
    if decided is None:
        return
    test, outcome = decided
    if (operand := _decisive(test, function.names, outcome=outcome)) is None:
        yield Reason(_name(function.code), f"`{ast.unparse(test)}` is {str(outcome).lower()}", is_code=True)
        return
    part, holds = operand
    called = _origin(part, function)
    predicate = _callee(called, function.names) if called is not None else None
    if predicate is None:
        yield Reason(
            _name(function.code), f"`{ast.unparse(part)}` {'holds' if holds else 'does not hold'}", is_code=True
        )
        return
    yield Reason(predicate.__qualname__, _worded(predicate, part, holds=holds))
    if steps > 1 and not holds:
        inner = next((one for one in reversed(left) if one.code is predicate.__code__ and not one.value), None)
        if inner is not None:
            yield from _why(inner, left, steps - 1)


def _decision(function: _Left) -> tuple[_Test, bool] | None:
    """The condition that a function was left by, and whether it held; None where it ran to its end unconditionally."""
    tree = _source(function.code)
    if tree is None:
        return None
    for node, guard in _guards(tree, None):
        if node.lineno <= function.row <= (node.end_lineno or node.lineno):
            match node:
                case ast.If(test=test) if function.row <= (test.end_lineno or test.lineno):
                    return test, False
                case ast.For(iter=iterated) if function.row <= (iterated.end_lineno or iterated.lineno):
                    return iterated, False
                case ast.Return() | ast.Continue():
                    if isinstance(node, ast.Return) and node.value is not None and not _is_nothing(node.value):
                        return node.value, False
                    return guard
    return None


def _is_nothing(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value in (None, False)


def _guards(node: ast.AST, guard: tuple[_Test, bool] | None) -> Iterator[tuple[ast.stmt, tuple[_Test, bool] | None]]:
    """The statements below a node, the innermost first, each with the condition that it stands under."""
    for name, value in ast.iter_fields(node):
        for child in value if isinstance(value, list) else [value]:
            under = guard
            if isinstance(node, ast.If) and name in ("body", "orelse"):
                under = (node.test, name == "body")
            if isinstance(child, ast.AST) and not isinstance(child, (ast.FunctionDef, ast.Lambda)):
                yield from _guards(child, under)
                if isinstance(child, ast.stmt):
                    yield child, under


def _decisive(test: _Test, names: dict[str, Any], *, outcome: bool) -> tuple[_Test, bool] | None:
    """The part of a condition that settled it, and whether that part holds; None where it can't be told."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            found = _decisive(operand, names, outcome=not outcome)
            return found if found is not None else (operand, not outcome)
        case ast.BoolOp(op=op, values=values):
            settles = isinstance(op, ast.Or)
            if outcome is not settles:  # all parts had to be so: the last of them that asks something
                return _decisive(values[-1], names, outcome=outcome)
            for value in values:
                if (holds := _holds(value, names)) is None:
                    return None
                if holds is settles:
                    return _decisive(value, names, outcome=outcome)
            return None
        case ast.Compare(left=left, ops=[ast.Is() | ast.IsNot() as op], comparators=[ast.Constant(value=None)]):
            return left, isinstance(op, ast.Is) is not outcome
    return test, outcome


def _holds(test: _Test, names: dict[str, Any]) -> bool | None:
    """Whether a part of a condition holds: predicates only look, so that they can be asked once more."""
    try:
        return bool(eval(compile(ast.Expression(test), "<reason>", "eval"), dict(names)))  # noqa: S307 - our own code
    except Exception:  # noqa: BLE001 - a name of an inner function, say; it can't be told then
        return None


def _origin(part: _Test, function: _Left, steps: int = 5) -> ast.Call | None:
    """The call that a part of a condition is, or that the name in it was last bound to above, some steps back."""
    if not steps:
        return None
    match part:
        case ast.Call():
            return part
        case ast.NamedExpr(value=value):
            return _origin(value, function, steps - 1)
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(id=name)):
            tree = _source(function.code)
            bound = [
                node.value
                for node in ast.walk(tree or ast.Module([], []))
                if isinstance(node, (ast.Assign, ast.NamedExpr))
                and node.lineno <= function.row
                and name in {target.id for target in ast.walk(_targets(node)) if isinstance(target, ast.Name)}
            ]
            return _origin(bound[-1], function, steps - 1) if bound and not isinstance(bound[-1], ast.Name) else None
        case ast.IfExp(body=body):
            return _origin(body, function, steps - 1)
        case ast.Compare(left=left):
            return _origin(left, function, steps - 1)
        case ast.Subscript(value=value):
            return _origin(value, function, steps - 1)
    return None


def _targets(node: ast.Assign | ast.NamedExpr) -> ast.expr:
    return node.target if isinstance(node, ast.NamedExpr) else node.targets[0]


def _callee(call: ast.Call, names: dict[str, Any]) -> Any:  # noqa: ANN401 - a function or a method
    """The function that a call calls, without what wraps it; None for one that is not ours to explain."""
    if isinstance(call.func, ast.Name) and call.func.id in ("any", "all", "next", "list", "bool", "isinstance"):
        return None
    try:
        found = eval(compile(ast.Expression(call.func), "<reason>", "eval"), dict(names))  # noqa: S307 - as above
    except Exception:  # noqa: BLE001 - as above
        return None
    found = inspect.unwrap(found) if callable(found) else None
    function = getattr(found, "__func__", found)
    return function if inspect.isfunction(function) and function.__doc__ else None


def _worded(predicate: Callable[..., Any], part: _Test, *, holds: bool) -> str:
    """The first sentence of a docstring, as what holds or does not; of what gives a thing, that there is none."""
    text = " ".join((predicate.__doc__ or "").split())
    first = text.partition(". ")[0].rstrip(".")
    if first.startswith("Whether "):
        said = first.removeprefix("Whether ")
        return said if holds else f"not so: {said}"
    if isinstance(part, ast.Compare):
        return f"`{ast.unparse(part)}` {'holds' if holds else 'does not hold'}, of this: {_lowered(first)}"
    if holds:
        return _lowered(first)
    # "The loop around; None if there is none."
    without = _WITHOUT.search(text)
    return without["why"] if without is not None else f"there is none: {_lowered(first)}"


_WITHOUT = re.compile(r"\b(?:None|[Nn]othing|[Ee]mpty|[Nn]one) (?:if|where) (?P<why>[^.;]+)")


def _lowered(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:] if sentence[1:2].islower() or sentence[1:2] == " " else sentence


@lru_cache(maxsize=64)
def _module(filename: str) -> ast.Module | None:
    try:
        return ast.parse(Path(filename).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return None


def _source(code: CodeType) -> ast.FunctionDef | None:
    """The definition that a code object is of."""
    module = _module(code.co_filename)
    if module is None:
        return None
    return next(
        (
            node
            for node in ast.walk(module)
            if isinstance(node, ast.FunctionDef)
            and node.name == code.co_name
            and code.co_firstlineno in (node.lineno, *(decorator.lineno for decorator in node.decorator_list))
        ),
        None,
    )
