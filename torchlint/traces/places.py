"""From the names of Python's frames in a trace to lines of the files of a run, and of no other file.

The profiler names a function by the line of its definition: a frame says which function runs, and not where in it.
The line is that of the call which the frame made next: of the calls that the function has of that name, the one, or the
next one in the order in which they are evaluated.
"""

from __future__ import annotations

import ast
import builtins
import re
import warnings
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import NamedTuple

from torchlint.report.measured import Certainty

_FRAME = re.compile(r"(?P<path>.+)\((?P<row>\d{1,9})\): (?P<name>.*)", re.DOTALL)
_BUILT_IN = re.compile(r"<(?:built-in (?:method|function)|method|method-wrapper|slot wrapper) '?(?P<name>\w+)")
_OPTIMIZER = re.compile(r"Optimizer\.(?P<name>step|zero_grad)#")  # as torch.optim.Optimizer annotates itself
_MODULE = "nn.Module: "
_SCRIPT = "<module>"
# What Python names so has no definition by that name: the line is that of the expression itself.
_EXPRESSIONS = frozenset({"<lambda>", "<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>"})

# What has no name to be called by: a loop's next turn, a test, an element, an operator.
NEXT, TEST, ITEM, FORMAT = "next of a loop", "test", "[]", "__format__"
_ANY_MODULE = "call of a module"
_NUMBERS = frozenset({"float", "int", "bool", "complex", "round", "range"})
_OPERATORS: dict[type[ast.AST], tuple[str, ...]] = {
    ast.Add: ("add",),
    ast.Sub: ("sub", "rsub"),
    ast.Mult: ("mul",),
    ast.Div: ("div", "reciprocal"),
    ast.FloorDiv: ("floor_divide",),
    ast.Mod: ("remainder",),
    ast.MatMult: ("matmul",),
    ast.Pow: ("pow",),
    ast.USub: ("neg",),
    ast.Invert: ("bitwise_not",),
    ast.BitAnd: ("bitwise_and", "__and__"),
    ast.BitOr: ("bitwise_or", "__or__"),
    ast.Eq: ("eq",),
    ast.NotEq: ("ne",),
    ast.Lt: ("lt",),
    ast.LtE: ("le",),
    ast.Gt: ("gt",),
    ast.GtE: ("ge",),
}
# What an operator that nothing in Python called by name comes from.
_SYNTAX: dict[str, tuple[str, ...]] = {
    "is_nonzero": (TEST, "bool"),
    "item": (*sorted(_NUMBERS), TEST, ITEM),
    "_local_scalar_dense": (*sorted(_NUMBERS), TEST, ITEM),
    "nonzero": (ITEM,),
    "index": (ITEM,),
    "index_put_": (ITEM,),
    "select": (ITEM,),
    "slice": (ITEM,),
    "copy_": (ITEM,),
    "fill_": (ITEM,),
    "unbind": (NEXT,),
}


class Site(NamedTuple):
    """Where a function calls something: the row, and by which name."""

    row: int
    name: str


@dataclass(frozen=True, eq=False)
class Function:
    """A function of a file of the run, or the file's own code: its rows and what it calls, as it is evaluated."""

    path: str
    name: str
    first: int
    last: int
    sites: tuple[Site, ...]

    @cached_property
    def _by_name(self) -> dict[str, tuple[int, ...]]:
        found: dict[str, list[int]] = {}
        for number, site in enumerate(self.sites):
            found.setdefault(site.name, []).append(number)
        return {name: tuple(numbers) for name, numbers in found.items()}

    def sites_of(self, names: Iterable[str]) -> tuple[int, ...]:
        """The numbers of the sites that go by one of these names."""
        return tuple(sorted({number for name in names for number in self._by_name.get(name, ())}))

    def other_sites(self, names: frozenset[str]) -> tuple[int, ...]:
        """Those that go by none of these, nor by a name of Python or of a class: calls of modules, maybe."""
        return tuple(
            number
            for number, site in enumerate(self.sites)
            if site.name.isidentifier()
            and not site.name[:1].isupper()
            and site.name not in names
            and site.name not in _OF_PYTHON
        )


_OF_PYTHON = frozenset(dir(builtins)) | {name for names in _OPERATORS.values() for name in names} | {FORMAT}


class Place(NamedTuple):
    """A statement that a trace speaks of, by its first row, and how that is known."""

    path: str
    row: int
    certainty: Certainty
    function: str


def next_site(numbers: Sequence[int], after: int) -> int:
    """Of the sites that fit, the next one in the order of evaluation; behind the last one a loop begins again."""
    index = bisect_left(numbers, after)
    return numbers[index] if index < len(numbers) else numbers[0]


class Places:
    """What the names of frames stand for, in files that are `(shown, path, text)`; a text is asked for when needed."""

    def __init__(self, files: Iterable[tuple[str, PurePath, Callable[[], str | None]]], names: Sequence[str]) -> None:
        self._names = names
        self._files: dict[str, list[_File]] = {}
        for shown, path, text in files:
            if path.suffix == ".py":
                self._files.setdefault(path.name, []).append(_File(shown, path, text))
        self._functions: dict[int, Function | None] = {}
        self._fitting: dict[tuple[Function, int, bool | None], tuple[int, ...]] = {}
        self._only: dict[str, Place | None] = {}
        self._seen: set[str] = set()
        # Files of the run that hold no such function where the trace has one.
        self.changed: set[str] = set()

    @cached_property
    def _called(self) -> frozenset[str]:
        return frozenset(name for each in self._names if (name := simple_name(each)))

    def function(self, number: int) -> Function | None:
        """The function that a frame of this name runs; None for one of another file."""
        if number not in self._functions:
            match = _FRAME.fullmatch(self._names[number])
            self._functions[number] = self._found(match["path"], int(match["row"]), match["name"]) if match else None
        return self._functions[number]

    def sites(self, function: Function, number: int, *, is_direct: bool) -> tuple[int, ...]:
        """The sites of a function that call what goes by this name, itself or through what wraps it."""
        key = function, number, is_direct
        if key not in self._fitting:
            self._fitting[key] = self._sites(function, self._names[number], is_direct=is_direct)
        return self._fitting[key]

    def _sites(self, function: Function, name: str, *, is_direct: bool) -> tuple[int, ...]:
        if name.startswith(_MODULE):
            return function.other_sites(self._called) if is_direct else ()
        simple = simple_name(name)
        found = function.sites_of((simple, NEXT) if simple in _TURNS else (simple,))
        return function.other_sites(self._called) if not found and is_direct and simple in _OF_CLASSES else found

    def sites_of_operator(self, function: Function, number: int) -> tuple[int, ...]:
        """The sites of a function from which an operator may come that nothing in Python called by name."""
        key = function, number, None
        if key not in self._fitting:
            operator = self._names[number].rpartition("::")[2]
            self._fitting[key] = function.sites_of(_SYNTAX.get(operator, (operator.rstrip("_"), operator)))
        return self._fitting[key]

    def place(self, function: Function, site: int | None, certainty: Certainty) -> Place:
        """The statement of a site, or the function."""
        if site is None:
            return Place(function.path, function.first, Certainty.FUNCTION, function.name)
        return Place(function.path, function.sites[site].row, certainty, function.name)

    def of_stack(self, stack: int) -> Place | None:
        """The innermost line of a stack, `file(line): function` between semicolons, that is one of the run."""
        for frame in self._names[stack].split(";"):
            match = _FRAME.fullmatch(frame.strip())
            if match is None:
                continue
            row = int(match["row"])
            function = self._found(match["path"], row, match["name"])
            if function is not None:
                if function.first == row and function.name != _SCRIPT:
                    return self.place(function, None, Certainty.FUNCTION)
                return Place(function.path, self._file(function.path).statement(row), Certainty.LINE, function.name)
        return None

    def only(self, name: str) -> Place | None:
        """The one call of this name in the files that the trace has named; None for none or several."""
        if name not in self._only:
            found = {
                (function, number)
                for file in (file for files in self._files.values() for file in files)
                if file.shown in self._seen
                for function in file.functions()
                for number in function.sites_of((name,))
            }
            places = [self.place(*each, Certainty.CALL) for each in found]
            self._only[name] = places[0] if len(places) == 1 else None
        return self._only[name]

    def _file(self, shown: str) -> _File:
        return next(file for files in self._files.values() for file in files if file.shown == shown)

    def _found(self, path: str, row: int, name: str) -> Function | None:
        parts = PurePath(path.replace("\\", "/")).parts
        if not parts:
            return None
        near = [(_common(parts, file.path.parts), file) for file in self._files.get(parts[-1], ())]
        for common, file in sorted(near, key=lambda each: (-each[0], each[1].shown)):
            is_whole = common == min(len(parts), len(file.path.parts))
            # A relative path is the end of the file's; an absolute one of another machine ends alike.
            if not is_whole and (not PurePath(path).is_absolute() or _LIBRARIES.intersection(parts)):
                continue
            function = file.function(name, row)
            if function is not None and (is_whole or common > 1 or name != _SCRIPT):
                self._seen.add(file.shown)
                return function
            if is_whole and name not in _EXPRESSIONS:
                self.changed.add(file.shown)
        return None

    def code(self, path: str, row: int) -> str:
        """The text of a line."""
        return self._file(path).line(row)


_LIBRARIES = frozenset({"site-packages", "dist-packages"})
_TURNS = frozenset({"__next__", "__iter__", "next"})
_OF_CLASSES = frozenset({"__init__", "__new__", "__call__"})


def simple_name(name: str) -> str:
    """What a frame or a built-in function is called by, without its class and file; empty for what has no name."""
    match = _FRAME.fullmatch(name)
    if match is not None:
        return match["name"]
    known = _BUILT_IN.match(name) or _OPTIMIZER.match(name)
    return known["name"] if known else ""


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many parts at the end of two paths are the same."""
    count = 0
    for left, right in zip(reversed(one), reversed(other), strict=False):
        if left != right:
            break
        count += 1
    return count


class _File:
    """A file of the run: its functions, once somebody asks for one."""

    def __init__(self, shown: str, path: PurePath, text: Callable[[], str | None]) -> None:
        self.shown = shown
        self.path = path
        self._text = text

    @cached_property
    def _lines(self) -> list[str]:
        return (self._text() or "").splitlines()

    @cached_property
    def _tree(self) -> ast.Module | None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the code, not of this program
            try:
                return ast.parse(self._text() or "")
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                return None

    @cached_property
    def _functions(self) -> dict[str, list[Function]]:
        found: dict[str, list[Function]] = {}
        if self._tree is None:
            return found
        for node in ast.walk(self._tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)):
                with suppress(RecursionError):
                    function = self._function(node)
                    found.setdefault(function.name, []).append(function)
        return found

    def _function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module) -> Function:
        sites = tuple(Site(self.statement(row), name) for statement in node.body for row, name in _sites(statement))
        if isinstance(node, ast.Module):
            return Function(self.shown, _SCRIPT, 1, max(len(self._lines), 1), sites)
        first = min(each.lineno for each in (node, *node.decorator_list))
        return Function(self.shown, node.name, first, node.end_lineno or node.lineno, sites)

    @cached_property
    def _starts(self) -> dict[int, int]:
        spans = []
        for node in ast.walk(self._tree) if self._tree is not None else ():
            if isinstance(node, (ast.stmt, ast.excepthandler)):
                body = getattr(node, "body", None)
                end = max(node.lineno, body[0].lineno - 1) if isinstance(body, list) and body else node.end_lineno
                spans.append((node.lineno, end or node.lineno))
        spans.sort(key=lambda span: span[0] - span[1])  # a smaller one is written over those that hold it
        return {row: first for first, last in spans for row in range(first, last + 1)}

    def statement(self, row: int) -> int:
        """The first row of the smallest statement that holds a row."""
        return self._starts.get(row, row)

    def function(self, name: str, row: int) -> Function | None:
        """The function that a frame names; one that ran before the recording began has the row where it was then."""
        if name in _EXPRESSIONS:
            if not 1 <= row <= len(self._lines):
                return None
            start = self.statement(row)
            return Function(self.shown, name, start, start, ())
        known = self._functions.get(name.rpartition(".")[2], ())
        exact = [function for function in known if function.first == row]
        return next(
            iter(exact or [function for function in known if function.first <= max(row, 1) <= function.last]), None
        )

    def functions(self) -> list[Function]:
        """All of them."""
        return [function for functions in self._functions.values() for function in functions]

    def line(self, row: int) -> str:
        """The code of a row."""
        return self._lines[row - 1].strip() if 1 <= row <= len(self._lines) else ""


def _sites(node: ast.AST) -> Iterator[tuple[int, str]]:
    """What a statement calls, in the order of evaluation; not what the functions that it defines call."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Lambda():
            return
        case ast.For() | ast.AsyncFor():
            yield from _sites(node.iter)
            yield node.lineno, NEXT
            for statement in (*node.body, *node.orelse):
                yield from _sites(statement)
            return
        case ast.comprehension():
            yield from _sites(node.iter)
            yield node.iter.lineno, NEXT
            for test in node.ifs:
                yield from _tested(test)
            return
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            for generator in node.generators:
                yield from _sites(generator)
            for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
                yield from _sites(part)
            return
        case ast.If() | ast.While() | ast.IfExp() | ast.Assert():
            yield from _tested(node.test)
            rest = [value for name, value in ast.iter_fields(node) if name != "test"]
            for child in (each for value in rest for each in (value if isinstance(value, list) else [value])):
                if isinstance(child, ast.AST):
                    yield from _sites(child)
            return
        case ast.Assign() | ast.AugAssign() | ast.AnnAssign():
            if node.value is not None:
                yield from _sites(node.value)
            for target in node.targets if isinstance(node, ast.Assign) else (node.target,):
                yield from _sites(target)
            if isinstance(node, ast.AugAssign):
                yield from ((node.lineno, name) for name in _OPERATORS.get(type(node.op), ()))
            return
    for child in ast.iter_child_nodes(node):
        yield from _sites(child)
    yield from _own(node)


def _tested(test: ast.expr) -> Iterator[tuple[int, str]]:
    yield from _sites(test)
    yield test.lineno, TEST


def _own(node: ast.AST) -> Iterator[tuple[int, str]]:
    """What a node does itself, its parts aside."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name) as function):
            yield function.end_lineno or function.lineno, name
        case ast.Call(func=ast.Name(id=name)):
            yield node.lineno, name
        case ast.Call():
            yield node.lineno, _ANY_MODULE
        case ast.Subscript():
            yield node.lineno, ITEM
        case ast.FormattedValue():
            yield node.lineno, FORMAT
        case ast.BinOp(op=operator) | ast.UnaryOp(op=operator):
            yield from ((node.lineno, name) for name in _OPERATORS.get(type(operator), ()))
            if isinstance(operator, ast.Not):
                yield node.lineno, TEST
        case ast.Compare(ops=operators):
            for compared in operators:
                yield from ((node.lineno, name) for name in _OPERATORS.get(type(compared), ()))
        case ast.BoolOp():
            yield node.lineno, TEST
