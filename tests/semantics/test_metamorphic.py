"""What is found survives rewriting a program so that it means the same: beyond law 4, on fixtures and made programs."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import laws
import pytest
from programs import program

from torchlint import registry
from torchlint.semantics.knowledge.conventions.counts import EPOCH
from torchlint.semantics.knowledge.conventions.values import DEVICE, LOADER, LOSS, MODULE

FIXTURES = Path(__file__).parents[2] / "fixtures"
TEXTS = {
    f"{path.parent.name}/{path.name}": laws.unmarked(path.read_text(encoding="utf-8"))
    for path in sorted(FIXTURES.glob("*/*.py"))
    if path.name in ("slow.py", "ok.py")
} | {f"program {seed}": program(seed) for seed in range(4)}
SCOPES = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef),
    *(ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
)


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A text that means the same; `rows[i]` is where row `i + 1` of it was."""

    text: str
    rows: list[int]


def change(before: str, after: Rewritten, *, splits_lines: bool = False) -> str | None:
    """How what is found differs, if it does; where lines were split, each part may have a message of its own."""
    ast.parse(after.text)
    wanted = Counter(found(before))
    there = Counter((after.rows[row - 1], rule) for row, rule in found(after.text))
    if splits_lines:
        rows = {row for row, _ in wanted}
        there = Counter({place: wanted.get(place, 0) if place[0] in rows else times for place, times in there.items()})
        there = +there
    return None if there == wanted else f"lost {wanted - there}, new {there - wanted}\n{after.text}"


def found(text: str) -> list[tuple[int, str]]:
    """Row and rule of each finding of all rules."""
    return laws.places(text, laws.active(*(rule.name for rule in registry.all_rules())))


def with_rows(text: str, added: dict[int, list[str]]) -> Rewritten:
    """With these rows above those of these numbers, to which they belong."""
    new: list[str] = []
    places: list[int] = []
    for number, row in enumerate(text.split("\n"), 1):
        both = [*added.get(number, ()), row]
        new += both
        places += [number] * len(both)
    return Rewritten("\n".join(new), places)


def above(node: ast.stmt) -> int:
    """The first row of a statement, that of its decorators."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(decorator.lineno for decorator in decorators)])


# Statements that do nothing


def blocks(tree: ast.Module) -> Iterator[tuple[ast.AST, list[ast.stmt]]]:
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list) and body and not isinstance(node, ast.Module):
                yield node, body


def is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def with_first(text: str, code: str, bodies: Iterable[list[ast.stmt]]) -> Rewritten:
    """With a statement at the start of these blocks, behind a docstring."""
    rows = text.split("\n")
    added: dict[int, list[str]] = {}
    for first, *others in bodies:
        statement = others[0] if is_docstring(first) and others else first
        row = rows[above(statement) - 1]
        code_before = row[: statement.col_offset].strip(" @")
        if not code_before and not row.lstrip().startswith("elif"):
            place = above(statement)
            while rows[place - 2].lstrip().startswith("#"):  # a comment stays with its statement
                place -= 1
            added.setdefault(place, []).append(row[: len(row) - len(row.lstrip())] + code)
    return with_rows(text, added)


def pass_in_every_block(text: str) -> Rewritten:
    return with_first(text, "pass", [body for _, body in blocks(ast.parse(text))])


def docstrings(text: str) -> Rewritten:
    documented = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    bodies = [
        body for node, body in blocks(ast.parse(text)) if isinstance(node, documented) and not is_docstring(body[0])
    ]
    return with_first(text, '"""What it does."""', bodies)


# Code that has nothing to do with it

UNRELATED = """
UNRELATED = 1


def unrelated(first, second=UNRELATED):
    return first if second is None else second


class Unrelated:
    def __init__(self, first):
        self.first = first

    def second(self):
        return self.first
"""


def behind_the_imports(text: str) -> int:
    imports = [node for node in ast.parse(text).body if isinstance(node, (ast.Import, ast.ImportFrom))]
    return 1 + max((node.end_lineno or 0 for node in imports), default=0)


def unrelated_code(text: str) -> Rewritten:
    other = UNRELATED.replace("unrelated", "more").replace("Unrelated", "More").split("\n")
    return with_rows(text, {behind_the_imports(text): UNRELATED.split("\n"), text.count("\n") + 1: other})


def a_function_with_the_same_names(text: str) -> Rewritten:
    """In a function that nobody calls all names are strings, used as a dict is: elsewhere they are others."""
    stored = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name) and is_stored(node)}
    code = [
        "def unrelated():",
        *(f'    {one} = "text"\n    {one}.keys()' for one in sorted(stored)),
        "    return None",
        "",
    ]
    return with_rows(text, {text.count("\n") + 1: "\n".join(code).split("\n")})


def is_stored(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)


# The order of functions


def functions_in_another_order(text: str) -> Rewritten:
    rows = text.split("\n")
    order: list[int] = []
    for run in runs(ast.parse(text)):
        for start, end in reversed(run):
            order += range(start, end + 1)
    order += range(len(order) + 1, len(rows) + 1)
    assert sorted(order) == list(range(1, len(rows) + 1))
    return Rewritten("\n".join(rows[number - 1] for number in order), order)


def runs(tree: ast.Module) -> Iterator[list[tuple[int, int]]]:
    """The rows of the statements at the top, plain functions that may change places together."""
    run: list[tuple[int, int]] = []
    names: set[str] = set()
    done = 0
    for node in tree.body:
        rows = (done + 1, node.end_lineno or node.lineno)
        is_plain = isinstance(node, ast.FunctionDef) and not node.decorator_list and not node.args.defaults
        if run and not (is_plain and names and node.name not in names):  # type: ignore[attr-defined]
            yield run
            run, names = [], set()
        run.append(rows)
        if is_plain:
            names.add(node.name)  # type: ignore[attr-defined]
        done = rows[1]
    yield run


# The names of locals

# What the model goes by where nothing else speaks.
WORDS = re.compile(r"^[ijkn]$|step|iter|batch|idx|index|count|^it$|mask|keep|valid|optim|label|class|name|correct")
SPEAKING = (LOADER.suggests, EPOCH.suggests, MODULE.suggests, LOSS.suggests, DEVICE.suggests, WORDS.search)


def other_names_of_locals(text: str) -> Rewritten:
    tree = ast.parse(text)
    rows = [row.encode() for row in text.split("\n")]
    uses: dict[tuple[int, int], tuple[str, str]] = {}
    numbers = count()
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for old in sorted(plain_locals(function)):
                new = f"q{next(numbers)}"
                for node in ast.walk(function):
                    if isinstance(node, ast.Name) and node.id == old:
                        uses.setdefault((node.lineno, node.col_offset), (old, new))
    for (row, column), (old, new) in sorted(uses.items(), reverse=True):
        line = rows[row - 1]
        assert line[column:].startswith(old.encode())
        rows[row - 1] = line[:column] + new.encode() + line[column + len(old) :]
    return Rewritten(b"\n".join(rows).decode(), list(range(1, len(rows) + 1)))


def plain_locals(function: ast.FunctionDef) -> set[str]:
    """Names that assignments and loops bind, here alone and nowhere else, and that say nothing."""
    bound: set[str] = set()
    others: set[str] = set()
    for node in ast.walk(function):
        match node:
            case ast.arg(arg=name) | ast.ExceptHandler(name=str(name)) | ast.MatchMapping(rest=str(name)):
                others.add(name)
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.AsyncFunctionDef(name=name):
                others.add(name)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                others.add(name)
            case ast.alias(name=name, asname=asname):
                others.add(asname or name)
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                others.update(names)
            case ast.JoinedStr():  # which has no positions inside before Python 3.12
                others.update(inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name))
            case ast.Name(id=name, ctx=ast.Store()):
                bound.add(name)
        if node is not function and isinstance(node, SCOPES):
            others.update(inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name) and is_stored(inner))
    return {name for name in bound - others if not any(speaks(name) for speaks in SPEAKING)}


# Expressions


def parentheses(text: str) -> Rewritten:
    """Around all that is assigned, returned, iterated and asked."""
    values = [
        value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.Return, ast.For, ast.If, ast.While, ast.Assert))
        for field in ("value", "iter", "test")
        if isinstance(value := getattr(node, field, None), ast.expr) and not isinstance(value, ast.Yield)
    ]
    rows = [row.encode() for row in text.split("\n")]
    for row, column, mark in sorted(edges(values), reverse=True):
        rows[row - 1] = rows[row - 1][:column] + mark + rows[row - 1][column:]
    return Rewritten(b"\n".join(rows).decode(), list(range(1, len(rows) + 1)))


def edges(values: list[ast.expr]) -> Iterator[tuple[int, int, bytes]]:
    for value in values:
        yield value.lineno, value.col_offset, b"("
        yield value.end_lineno or 0, value.end_col_offset or 0, b")"


LAZY = ("map", "filter", "zip", "iter", "enumerate", "reversed")


def nested_calls_in_two_steps(text: str) -> Rewritten:
    """`x = f(g(y))` as `part = g(y)` and `x = f(part)`."""
    rows = text.split("\n")
    added: dict[int, list[str]] = {}
    for number, node in enumerate(ast.walk(ast.parse(text))):
        match node:
            case ast.Assign(
                targets=[ast.Name()],
                value=ast.Call(func=ast.Name() | ast.Attribute(value=ast.Name()), args=[ast.Call() as part, *_]),
            ) if node.lineno == node.end_lineno and not (isinstance(part.func, ast.Name) and part.func.id in LAZY):
                row = rows[node.lineno - 1]
                if row[: node.col_offset].strip() or not row.isascii():
                    continue
                code = row[part.col_offset : part.end_col_offset]
                added[node.lineno] = [f"{row[: node.col_offset]}part{number} = {code}"]
                rows[node.lineno - 1] = row.replace(code, f"part{number}", 1)
    return with_rows("\n".join(rows), added)


# All of them

TOGETHER = (
    *(other_names_of_locals, parentheses, docstrings, pass_in_every_block, functions_in_another_order),
    *(unrelated_code, a_function_with_the_same_names),
)


@pytest.mark.parametrize("name", TEXTS)
def test_findings_survive(name: str) -> None:
    """All rewrites at once; where that changes what is found, each alone, to name it."""
    text = TEXTS[name]
    if (changed := change(text, at_once(text))) is not None:
        for rewrite in TOGETHER:
            assert (alone := change(text, rewrite(text))) is None, f"{rewrite.__name__}: {alone}"
        raise AssertionError(f"{changed}\nEach alone changes nothing.")
    split = change(text, nested_calls_in_two_steps(text), splits_lines=True)
    assert split is None, split


def at_once(text: str) -> Rewritten:
    rows = list(range(1, text.count("\n") + 2))
    for rewrite in TOGETHER:
        new = rewrite(text)
        text, rows = new.text, [rows[row - 1] for row in new.rows]
    return Rewritten(text, rows)
