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
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
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

# What has no name to be called by: a loop's next iteration, a test, an element, an operator.
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
    """Where a function calls something: the row, and by which name; `own` says that it is of `self`."""

    row: int
    name: str
    own: bool = False


@dataclass(frozen=True, eq=False)
class Function:
    """A function of a file of the run, or the file's own code: its rows and what it calls, as it is evaluated.

    `loops` are from which to which site each of its loops goes, the inner ones first; `owner` is the class that it is a
    method of, empty for none.
    """

    path: str
    name: str
    first: int
    last: int
    sites: tuple[Site, ...]
    loops: tuple[tuple[int, int], ...] = ()
    owner: str = ""

    @cached_property
    def _by_name(self) -> dict[str, tuple[int, ...]]:
        found: dict[str, list[int]] = {}
        for number, site in enumerate(self.sites):
            found.setdefault(site.name, []).append(number)
        return {name: tuple(numbers) for name, numbers in found.items()}

    def sites_of(self, names: Iterable[str]) -> tuple[int, ...]:
        """The numbers of the sites that go by one of these names."""
        return tuple(sorted({number for name in names for number in self._by_name.get(name, ())}))

    def sites_that_make(self, name: str) -> tuple[int, ...]:
        """Those that make an object, by their names: of classes, of nothing, or `super().__init__`."""
        return tuple(
            number
            for number, site in enumerate(self.sites)
            if site.name in (name, _ANY_MODULE) or site.name[:1].isupper()
        )

    def other_sites(self, names: Collection[str], methods: Collection[str]) -> tuple[int, ...]:
        """Those that go by none of these names, nor by one of Python or of a class: calls of modules, maybe.

        Of `self` those that are no methods: `self.lstm` is a module, though PyTorch has a function of that name.
        """
        return tuple(
            number
            for number, site in enumerate(self.sites)
            if site.name.isidentifier()
            and not site.name[:1].isupper()
            and site.name not in (methods if site.own else names)
            and site.name not in _OF_PYTHON
        )

    def next_site(self, numbers: Sequence[int], after: int) -> int:
        """Of the sites that fit, the next one in the order of evaluation from `after` on.

        In a loop that holds any it is one of these, the first where none follows: the loop begins again.
        """
        for start, end in self._around(after):
            first, last = bisect_left(numbers, start), bisect_left(numbers, end)
            if first < last:
                index = bisect_left(numbers, after, first, last)
                return numbers[index if index < last else first]
        index = bisect_left(numbers, after)
        return numbers[index] if index < len(numbers) else numbers[0]

    def _around(self, after: int) -> tuple[tuple[int, int], ...]:
        """The loops that hold the site before this one."""
        found = self._known.get(after)
        if found is None:
            found = self._known[after] = tuple(loop for loop in self.loops if loop[0] < after <= loop[1])
        return found

    @cached_property
    def _known(self) -> dict[int, tuple[tuple[int, int], ...]]:
        return {}


_OF_PYTHON = frozenset(dir(builtins)) | {name for names in _OPERATORS.values() for name in names} | {FORMAT}


class Place(NamedTuple):
    """A statement that a trace speaks of, by its first row, and how that is known."""

    path: str
    row: int
    certainty: Certainty
    function: str


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
            self._fitting[key] = self._sites(function, number, is_direct=is_direct)
        return self._fitting[key]

    def _sites(self, function: Function, number: int, *, is_direct: bool) -> tuple[int, ...]:
        name = self._names[number]
        if name.startswith(_MODULE):
            return self._modules(function) if is_direct else ()
        simple = simple_name(name)
        if simple in _MAKES:
            made = self.function(number)
            known = function.sites_of((made.owner,)) if made is not None and made.owner else ()
            return known or (function.sites_that_make(simple) if is_direct else ())
        found = function.sites_of((simple, NEXT) if simple in _TURNS else (simple,))
        return self._modules(function) if not found and is_direct and simple == "__call__" else found

    def _modules(self, function: Function) -> tuple[int, ...]:
        methods = {each.name for each in self._file(function.path).functions() if each.owner}
        return function.other_sites(self._called, methods)

    def sites_of_operator(self, function: Function, number: int) -> tuple[int, ...]:
        """The sites of a function from which an operator may come that nothing in Python called by name."""
        key = function, number, None
        if key not in self._fitting:
            operator = self._names[number].rpartition("::")[2]
            self._fitting[key] = function.sites_of(_SYNTAX.get(operator, (operator.rstrip("_"), operator)))
        return self._fitting[key]

    def place(self, function: Function, site: int | None, certainty: Certainty) -> Place:
        """The statement of a site, or the function."""
        if function.name in _EXPRESSIONS:  # a frame of its own, on its own line
            return Place(function.path, function.first, Certainty.LINE, function.name)
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

    def statement(self, path: str, row: int) -> int:
        """The first row of the smallest statement of a file that holds a row."""
        return self._file(path).statement(row)

    def code(self, path: str, row: int) -> str:
        """The text of a line."""
        return self._file(path).line(row)


_LIBRARIES = frozenset({"site-packages", "dist-packages"})
_TURNS = frozenset({"__next__", "__iter__", "next"})
_MOST_ROWS = 5
_MAKES = frozenset({"__init__", "__new__"})


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
        owners = {
            id(method): node.name
            for node in ast.walk(self._tree)
            if isinstance(node, ast.ClassDef)
            for method in node.body
        }
        for node in ast.walk(self._tree):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)):
                with suppress(RecursionError):
                    function = self._function(node, owners.get(id(node), ""))
                    found.setdefault(function.name, []).append(function)
        return found

    def _function(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module, owner: str
    ) -> Function:
        sites, loops = self._called(node.body)
        if isinstance(node, ast.Module):
            return Function(self.shown, _SCRIPT, 1, max(len(self._lines), 1), sites, loops)
        first = min(each.lineno for each in (node, *node.decorator_list))
        return Function(self.shown, node.name, first, node.end_lineno or node.lineno, sites, loops, owner)

    def _called(self, body: Iterable[ast.stmt]) -> tuple[tuple[Site, ...], tuple[tuple[int, int], ...]]:
        """What statements call, and which of that the loops among them hold, the inner ones first."""
        sites: list[Site] = []
        loops: list[tuple[int, int]] = []
        begun: list[int] = []
        for site in (site for statement in body for site in _sites(statement)):
            if site is _BEGIN:
                begun.append(len(sites))
            elif site is _END:
                loops.append((begun.pop(), len(sites)))
            else:
                sites.append(site._replace(row=self.statement(site.row)))
        return tuple(sites), tuple(loops)

    @cached_property
    def _spans(self) -> list[tuple[int, int]]:
        """The rows of each statement, of one with a body those above it, the longest first."""
        spans = []
        for node in ast.walk(self._tree) if self._tree is not None else ():
            if isinstance(node, (ast.stmt, ast.excepthandler)):
                body = getattr(node, "body", None)
                end = max(node.lineno, body[0].lineno - 1) if isinstance(body, list) and body else node.end_lineno
                spans.append((node.lineno, end or node.lineno))
        return sorted(spans, key=lambda span: span[0] - span[1])

    @cached_property
    def _starts(self) -> dict[int, int]:
        # A smaller one is written over those that hold it.
        return {row: first for first, last in self._spans for row in range(first, last + 1)}

    @cached_property
    def _ends(self) -> dict[int, int]:
        return dict(self._spans)

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
        """The statement that begins on a row, on one line."""
        last = min(self._ends.get(row, row), row + _MOST_ROWS)
        rows = self._lines[row - 1 : last] if row >= 1 else []
        return " ".join(" ".join(each for each in rows if not each.lstrip().startswith("#")).split())


_BEGIN, _END = Site(0, "a loop begins"), Site(0, "a loop ends")
# What Python's own iterators give, no function is called for.
_SILENT = frozenset({"range", "zip", "items", "keys", "values", "reversed"})


def _sites(node: ast.AST) -> Iterator[Site]:
    """What a statement calls, in the order of evaluation, and its loops; not what the functions it defines call."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() | ast.Lambda():
            return
        case ast.For() | ast.AsyncFor():
            yield from _sites(node.iter)
            yield _BEGIN
            yield from _turn(node.iter, node.lineno)
            yield from (site for statement in node.body for site in _sites(statement))
            yield _END
            yield from (site for statement in node.orelse for site in _sites(statement))
        case ast.While():
            yield _BEGIN
            yield from _tested(node.test)
            yield from (site for statement in node.body for site in _sites(statement))
            yield _END
            yield from (site for statement in node.orelse for site in _sites(statement))
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp() | ast.DictComp():
            for generator in node.generators:
                yield from _sites(generator.iter)
                yield _BEGIN
                yield from _turn(generator.iter, generator.iter.lineno)
                yield from (site for test in generator.ifs for site in _tested(test))
            for part in (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,):
                yield from _sites(part)
            yield from (_END for _ in node.generators)
        case ast.If() | ast.IfExp() | ast.Assert():
            yield from _tested(node.test)
            rest = [value for name, value in ast.iter_fields(node) if name != "test"]
            for child in (each for value in rest for each in (value if isinstance(value, list) else [value])):
                if isinstance(child, ast.AST):
                    yield from _sites(child)
        case ast.Assign() | ast.AugAssign() | ast.AnnAssign():
            if node.value is not None:
                yield from _sites(node.value)
            for target in node.targets if isinstance(node, ast.Assign) else (node.target,):
                yield from _sites(target)
            if isinstance(node, ast.AugAssign):
                yield from (Site(node.lineno, name) for name in _OPERATORS.get(type(node.op), ()))
        case _:
            for child in ast.iter_child_nodes(node):
                yield from _sites(child)
            yield from _own(node)


def _turn(iterated: ast.expr, row: int) -> Iterator[Site]:
    """What gives a loop its next element, if that is seen."""
    match iterated:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in _SILENT:
            return
        case ast.List() | ast.Tuple() | ast.Constant():
            return
    yield Site(row, NEXT)


def _tested(test: ast.expr) -> Iterator[Site]:
    yield from _sites(test)
    yield Site(test.lineno, TEST)


def _own(node: ast.AST) -> Iterator[Site]:
    """What a node does itself, its parts aside."""
    match node:
        case ast.Call(func=ast.Attribute(value=owner, attr=name) as function):
            own = isinstance(owner, ast.Name) and owner.id == "self"
            yield Site(function.end_lineno or function.lineno, name, own)
        case ast.Call(func=ast.Name(id=name)):
            yield Site(node.lineno, name)
        case ast.Call():
            yield Site(node.lineno, _ANY_MODULE)
        case ast.Subscript():
            yield Site(node.lineno, ITEM)
        case ast.FormattedValue():
            yield Site(node.lineno, FORMAT)
        case ast.BinOp(op=operator) | ast.UnaryOp(op=operator):
            yield from (Site(node.lineno, name) for name in _OPERATORS.get(type(operator), ()))
            if isinstance(operator, ast.Not):
                yield Site(node.lineno, TEST)
        case ast.Compare(ops=operators):
            for compared in operators:
                yield from (Site(node.lineno, name) for name in _OPERATORS.get(type(compared), ()))
        case ast.BoolOp():
            yield Site(node.lineno, TEST)
