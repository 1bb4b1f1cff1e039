"""The same program under names that say nothing: functions, classes, parameters and locals of one file, consistently.

What others decide keeps its name: imports, builtins, attributes, keywords of libraries, methods that a library calls or
that may override one of its own, and names that a string holds. Comments with any words can be added.
"""

from __future__ import annotations

import ast
import builtins
import io
import re
import tokenize
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from itertools import count, product

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
# Methods that libraries call by position.
BY_POSITION = ("forward", "__init__", "__call__", "__getitem__")
# Letters of which no word is made that suggests anything, in any order.
LETTERS = "wkzjg"


@dataclass(frozen=True, slots=True)
class Renamed:
    """A text that means the same, and the new names by the old ones, for people."""

    text: str
    names: dict[str, set[str]]


@dataclass(eq=False, slots=True)
class Scope:
    """Where names are bound: a module, a class, a function, a comprehension."""

    node: ast.AST
    above: Scope | None
    bound: set[str] = field(default_factory=set)
    # Names that are not this scope's, by the scope that they are of.
    elsewhere: dict[str, Scope] = field(default_factory=dict)
    kept: set[str] = field(default_factory=set)

    @property
    def is_class(self) -> bool:
        return isinstance(self.node, ast.ClassDef)

    def owner(self, name: str) -> Scope | None:
        """The scope whose name this is, read here; None where it is bound nowhere."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.elsewhere:
                return scope.elsewhere[name]
            if name in scope.bound and (scope is self or not scope.is_class):
                return scope
            scope = scope.above
        return None


def renamed(text: str, documented: Container[str] = ()) -> Renamed:
    """The text with other names. A method keeps a name that is `documented`: a library may call it or have its like."""
    program = _Program(text, documented)
    return Renamed(program.rewritten(), program.said())


def opaque_names(taken: set[str]) -> Iterator[str]:
    """Names that say nothing and are not taken."""
    for length in count(2):
        for letters in product(LETTERS, repeat=length):
            name = "q" + "".join(letters)
            if name not in taken and name.capitalize() not in taken:
                yield name


class _Program:
    def __init__(self, text: str, documented: Container[str]) -> None:
        self.rows = [row.encode() for row in text.split("\n")]
        self.tree = ast.parse(text)
        self.nodes = list(ast.walk(self.tree))
        self.documented = documented
        self.scopes: dict[ast.AST, Scope] = {}
        # The scope in which each name, function, class and call stands.
        self.here: dict[ast.AST, Scope] = {}
        self._enter(self.tree, Scope(self.tree, None))
        self.defined: dict[tuple[Scope, str], list[ast.AST]] = {}
        for node in self.nodes:
            if isinstance(node, (*FUNCTIONS, ast.ClassDef)):
                self.defined.setdefault((self.here[node], node.name), []).append(node)
        self._keep()
        names = opaque_names({node.id for node in self.nodes if isinstance(node, ast.Name)})
        self.new: dict[tuple[Scope, str], str] = {}
        for scope in dict.fromkeys(self.scopes.values()):
            if not scope.is_class:
                for name in sorted(scope.bound - scope.kept):
                    self.new[scope, name] = next(names)
        for node in self.nodes:
            if isinstance(node, ast.ClassDef) and (unit := (self.here[node], node.name)) in self.new:
                self.new[unit] = self.new[unit].capitalize()
        self.methods = dict(zip(sorted(self._methods()), names, strict=False))

    # Scopes

    def _enter(self, node: ast.AST, scope: Scope) -> None:
        """Note the scopes below, and what is bound in each."""
        self.scopes[node] = scope
        for child in self._children(node):
            self._visit(child, scope)

    @staticmethod
    def _children(node: ast.AST) -> Iterator[ast.AST]:
        """What stands in the scope that a node opens."""
        if isinstance(node, FUNCTIONS):
            yield from node.body
        elif isinstance(node, ast.Lambda):
            yield node.body
        elif isinstance(node, ast.ClassDef):
            yield from node.body
        else:
            yield from ast.iter_child_nodes(node)

    def _visit(self, node: ast.AST, scope: Scope) -> None:
        self.here[node] = scope
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                self._visit_function(node, scope)
                return
            case ast.ClassDef():
                scope.bound.add(node.name)
                for part in (*node.decorator_list, *node.bases, *node.keywords):
                    self._visit(part, scope)
                self._enter(node, Scope(node, scope))
                return
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                self._visit_comprehension(node, scope)
                return
        self._bind(node, scope)
        for child in ast.iter_child_nodes(node):
            self._visit(child, scope)

    def _visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, scope: Scope) -> None:
        inner = Scope(node, scope)
        if not isinstance(node, ast.Lambda):
            scope.bound.add(node.name)
            for part in (*node.decorator_list, *([node.returns] if node.returns else ())):
                self._visit(part, scope)
        for argument in _arguments(node.args):
            inner.bound.add(argument.arg)
            self.here[argument] = inner
            if argument.annotation is not None:
                self._visit(argument.annotation, scope)
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if default is not None:
                self._visit(default, scope)
        self._declare(node, inner)
        self._enter(node, inner)

    def _visit_comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp, scope: Scope
    ) -> None:
        inner = Scope(node, scope)
        self.scopes[node] = inner
        first = node.generators[0].iter
        self._visit(first, scope)
        for child in ast.walk(node):  # targets are bound before the element is read
            if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
                inner.bound.add(child.id)
        for child in ast.iter_child_nodes(node):
            for part in ast.iter_child_nodes(child) if isinstance(child, ast.comprehension) else (child,):
                if part is not first:
                    self._visit(part, inner)

    @staticmethod
    def _bind(node: ast.AST, scope: Scope) -> None:
        """Note the name that a node binds in its scope, and whether it keeps it."""
        match node:
            case ast.NamedExpr(target=ast.Name(id=name)):
                holder = scope
                while isinstance(holder.node, COMPREHENSIONS) and holder.above is not None:
                    holder.bound.discard(name)
                    holder = holder.above
                holder.bound.add(name)
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()) if name not in scope.elsewhere:
                if not isinstance(scope.node, COMPREHENSIONS):
                    scope.bound.add(name)
            case ast.alias(name=name, asname=asname):
                scope.bound.add(asname or name.partition(".")[0])
                scope.kept.add(asname or name.partition(".")[0])
            case (
                ast.ExceptHandler(name=str(name))
                | ast.MatchAs(name=str(name))
                | ast.MatchStar(name=str(name))
                | ast.MatchMapping(rest=str(name))
            ):
                scope.bound.add(name)
                scope.kept.add(name)

    def _declare(self, function: ast.AST, scope: Scope) -> None:
        """Note what `global` and `nonlocal` say, for all of the function."""
        waiting = list(self._children(function))
        while waiting:
            node = waiting.pop()
            if isinstance(node, (ast.Global, ast.Nonlocal)):
                outer = scope.above
                while isinstance(node, ast.Global) and outer is not None and outer.above is not None:
                    outer = outer.above
                for name in node.names:
                    while isinstance(node, ast.Nonlocal) and outer is not None and name not in outer.bound:
                        outer = outer.above
                    if outer is not None:
                        outer.bound.add(name)
                        outer.kept.add(name)
                        scope.elsewhere[name] = outer
            if not isinstance(node, (*FUNCTIONS, ast.Lambda, ast.ClassDef)):
                waiting += ast.iter_child_nodes(node)

    # What keeps its name

    def _keep(self) -> None:
        in_strings = {
            word
            for node in self.nodes
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
            for word in ([node.value] if node.value.isidentifier() else ())
        }
        for node in self.nodes:
            for name in ("annotation", "returns"):
                annotation = getattr(node, name, None)
                for inner in ast.walk(annotation) if isinstance(annotation, ast.AST) else ():
                    if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                        in_strings.update(re.findall(r"\w+", inner.value))
        is_open = any(isinstance(node, ast.Name) and node.id in ("globals", "eval", "exec") for node in self.nodes)
        for scope in self.scopes.values():
            scope.kept |= in_strings | {"self", "cls", "_"}
            scope.kept |= {name for name in scope.bound if name.startswith("__") or hasattr(builtins, name)}
            if is_open and scope.above is None:
                scope.kept |= scope.bound
        keywords = {name for call in self._calls() if self._called(call) is None for name in _keywords(call)}
        for function in self.nodes:
            if isinstance(function, (*FUNCTIONS, ast.Lambda)):
                self._keep_parameters(function, keywords)
        for call in self._calls():
            called = self._called(call)
            if called is not None and any(keyword.arg is None for keyword in call.keywords):
                self.scopes[called].kept |= {argument.arg for argument in _arguments(called.args)}

        for node in self.nodes:
            if isinstance(node, ast.JoinedStr):
                self._keep_what_is_two(node)

    def _keep_what_is_two(self, string: ast.JoinedStr) -> None:
        """Names that stand for two things in one f-string, whose places nothing tells before Python 3.12."""
        owners: dict[str, set[Scope]] = {}
        for node in ast.walk(string):
            if isinstance(node, ast.Name) and (owner := self.here[node].owner(node.id)) is not None:
                owners.setdefault(node.id, set()).add(owner)
        for name, scopes in owners.items():
            if len(scopes) > 1:
                for scope in scopes:
                    scope.kept.add(name)

    def _keep_parameters(
        self, function: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, keywords: set[str]
    ) -> None:
        """Those keep their names by which the function is called in a way that the file does not show."""
        scope = self.scopes[function]
        own = {argument.arg for argument in _arguments(function.args)}
        scope.kept |= own & keywords
        if not isinstance(function, FUNCTIONS) or not self.here[function].is_class:
            return
        if function.name in self.documented and function.name not in BY_POSITION:
            scope.kept |= own  # a library may look at the names

    def _calls(self) -> Iterator[ast.Call]:
        return (node for node in self.nodes if isinstance(node, ast.Call))

    def _called(self, call: ast.Call) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The one function of the file that a call runs, where its name tells."""
        name = call.func.id if isinstance(call.func, ast.Name) else None
        owner = self.here[call].owner(name) if name is not None else None
        if owner is None or name in owner.kept:
            return None
        found = self.defined.get((owner, name or ""), [])
        if len(found) != 1:
            return None
        if isinstance(found[0], ast.ClassDef):
            made = [part for part in found[0].body if isinstance(part, FUNCTIONS) and part.name == "__init__"]
            return made[0] if len(made) == 1 else None
        assert isinstance(found[0], FUNCTIONS)
        return found[0]

    def _methods(self) -> set[str]:
        """The names of methods that are the file's own: of classes whose bases are in sight, and nothing else's."""
        own: set[str] = set()
        others: set[str] = set()
        for node in self.nodes:
            match node:
                case ast.ClassDef(body=body):
                    for part in body:
                        if isinstance(part, FUNCTIONS):
                            own.add(part.name)
                        else:
                            others |= {name.id for name in ast.walk(part) if isinstance(name, ast.Name)}
                case ast.Attribute(attr=attr, ctx=ast.Store()):
                    others.add(attr)
                case ast.Constant(value=str(word)):
                    others.add(word)
        return {name for name in own - others if not name.startswith("__") and name not in self.documented}

    # The new text

    def said(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {name: {new} for name, new in self.methods.items()}
        for (_, name), new in self.new.items():
            found.setdefault(name, set()).add(new)
        return found

    def rewritten(self) -> str:
        edits: set[tuple[int, int, str, str]] = set()
        in_fstrings = {
            id(inner)
            for node in self.nodes
            if isinstance(node, ast.JoinedStr)
            for inner in ast.walk(node)
            if inner is not node
        }
        for node in self.nodes:
            if id(node) not in in_fstrings:
                edits.update(self._edits(node))
        for row, column, old, new in sorted(edits, reverse=True):
            line = self.rows[row - 1]
            assert line[column:].startswith(old.encode()), (line, column, old)
            self.rows[row - 1] = line[:column] + new.encode() + line[column + len(old.encode()) :]
        return b"\n".join(self.rows).decode()

    def _edits(self, node: ast.AST) -> Iterator[tuple[int, int, str, str]]:
        match node:
            case ast.Name(id=name):
                if new := self._new(self.here[node], name):
                    yield node.lineno, node.col_offset, name, new
            case ast.arg(arg=name):
                if new := self._new(self.here[node], name):
                    yield node.lineno, node.col_offset, name, new
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                scope = self.here[node]
                new = self.methods.get(name, "") if scope.is_class else self._new(scope, name)
                if new:
                    start = re.compile(rb"(?:def|class)\s+").search(self.rows[node.lineno - 1], node.col_offset)
                    assert start is not None
                    yield node.lineno, start.end(), name, new
            case ast.Attribute(attr=name):
                if name in self.methods and node.end_lineno is not None and node.end_col_offset is not None:
                    yield node.end_lineno, node.end_col_offset - len(name.encode()), name, self.methods[name]
            case ast.Call():
                called = self._called(node)
                for keyword in node.keywords if called is not None else ():
                    if keyword.arg is not None and called is not None:
                        own = {argument.arg for argument in _arguments(called.args)}
                        new = self.new.get((self.scopes[called], keyword.arg), "") if keyword.arg in own else ""
                        if new:
                            yield keyword.lineno, keyword.col_offset, keyword.arg, new
            case ast.JoinedStr():
                yield from self._in_fstring(node)

    def _in_fstring(self, node: ast.JoinedStr) -> Iterator[tuple[int, int, str, str]]:
        """In Python before 3.12 nothing inside has a position: names are looked for in the text of the fields."""
        names: dict[str, str] = {}
        attributes: dict[str, str] = {}
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and (new := self._new(self.here[inner], inner.id)):
                names[inner.id] = new
            elif isinstance(inner, ast.Attribute) and inner.attr in self.methods:
                attributes[inner.attr] = self.methods[inner.attr]
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        for row in range(node.lineno, node.end_lineno + 1):
            line = self.rows[row - 1]
            start = node.col_offset if row == node.lineno else 0
            end = node.end_col_offset if row == node.end_lineno else len(line)
            for part in re.finditer(rb"\{([^{}]*)", line[start:end]):
                for word in re.finditer(rb"(?<![\w'\"])(\.\s*)?([A-Za-z_]\w*)(?![\w'\"])", part[1]):
                    old = word[2].decode()
                    known = attributes if word[1] else names
                    if old in known:
                        yield row, start + part.start(1) + word.start(2), old, known[old]

    def _new(self, scope: Scope, name: str) -> str:
        """The new name of what a name stands for, read in a scope."""
        owner = scope.owner(name)
        return self.new.get((owner, name), "") if owner is not None else ""


def _arguments(arguments: ast.arguments) -> list[ast.arg]:
    starred = [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *starred]


def _keywords(call: ast.Call) -> Iterator[str]:
    return (keyword.arg for keyword in call.keywords if keyword.arg is not None)


# Comments


def commented(text: str, behind: str, between: str) -> tuple[str, list[int]]:
    """With a comment behind each statement and one between two, and where the rows have gone."""
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    ends = {token.start[0] for token in tokens if token.type == tokenize.NEWLINE}
    taken = {token.start[0] for token in tokens if token.type == tokenize.COMMENT}
    rows: list[str] = []
    places: list[int] = []
    for number, row in enumerate(text.split("\n"), 1):
        places.append(len(rows) + 1)
        if number in ends:
            rows += [row if number in taken else f"{row}  # {behind}", f"# {between}", ""]
        else:
            rows.append(row)
    return "\n".join(rows), places
