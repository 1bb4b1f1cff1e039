"""Programs made of others: a grammar-aware change of a LibCST tree, and what is left of a program when it is cut down."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, cast

import libcst as cst

Statement = cst.SimpleStatementLine | cst.BaseCompoundStatement

# Replacements nest at most so deep in one expression, so that programs stay small.
_LONGEST = 6_000
_NAMES = ("x", "y", "i", "out", "loss", "model", "loader", "self", "batch")


@dataclass
class Pool:
    """Code to splice in: statements, and expressions that load a value."""

    statements: list[Statement] = field(default_factory=list)
    expressions: list[cst.BaseExpression] = field(default_factory=list)

    def add(self, module: cst.Module) -> None:
        """Take in the code of a program."""
        for body in _bodies(module):
            self.statements += [node for node in body.body if isinstance(node, Statement)]
        self.expressions += [node for node, _ in _loads(module)]


def nodes_of(root: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """All nodes, a parent before what is in it."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack += reversed(node.children)


def _bodies(root: cst.CSTNode) -> list[cst.Module | cst.IndentedBlock]:
    return [node for node in nodes_of(root) if isinstance(node, (cst.Module, cst.IndentedBlock))]


_HOLDERS: dict[type[cst.CSTNode], tuple[str, ...]] = {
    cst.Arg: ("value",),
    cst.Assign: ("value",),
    cst.AugAssign: ("value",),
    cst.Attribute: ("value",),
    cst.BinaryOperation: ("left", "right"),
    cst.BooleanOperation: ("left", "right"),
    cst.Call: ("func",),
    cst.Comparison: ("left",),
    cst.CompFor: ("iter",),
    cst.CompIf: ("test",),
    cst.ComparisonTarget: ("comparator",),
    cst.DictElement: ("key", "value"),
    cst.Element: ("value",),
    cst.Expr: ("value",),
    cst.For: ("iter",),
    cst.FormattedStringExpression: ("expression",),
    cst.If: ("test",),
    cst.IfExp: ("test", "body", "orelse"),
    cst.Index: ("value",),
    cst.Lambda: ("body",),
    cst.NamedExpr: ("value",),
    cst.Return: ("value",),
    cst.Slice: ("lower", "upper"),
    cst.Subscript: ("value",),
    cst.UnaryOperation: ("expression",),
    cst.While: ("test",),
    cst.WithItem: ("item",),
}


def _targets(root: cst.CSTNode) -> set[cst.CSTNode]:
    """The nodes in what is stored to or deleted, or is a type."""
    found: set[cst.CSTNode] = set()
    for node in nodes_of(root):
        match node:
            case cst.AssignTarget() | cst.Del() | cst.Annotation() | cst.Decorator() | cst.Import() | cst.ImportFrom():
                found.update(nodes_of(node))
            case cst.AugAssign() | cst.AnnAssign() | cst.For() | cst.CompFor() | cst.NamedExpr():
                found.update(nodes_of(node.target))
            case cst.AsName():
                found.update(nodes_of(node))
    return found


def _loads(root: cst.CSTNode) -> list[tuple[cst.BaseExpression, tuple[cst.CSTNode, str]]]:
    """Expressions that load a value, each with its parent and the field that holds it."""
    no_loads = _targets(root)
    return [
        (value, (node, name))
        for node in nodes_of(root)
        if node not in no_loads
        for name in _HOLDERS.get(type(node), ())
        if isinstance(value := getattr(node, name), cst.BaseExpression)
    ]


def _put(module: cst.Module, old: cst.CSTNode, new: cst.CSTNode) -> cst.Module:
    return cst.ensure_type(module.deep_replace(old, new), cst.Module)


def _copied(node: Any) -> Any:  # noqa: ANN401 - a node of the same type
    return node.deep_clone()


def bracketed(node: cst.BaseExpression) -> cst.BaseExpression:
    """The expression in brackets, where it may need some."""
    if node.lpar or isinstance(
        node, (cst.Name, cst.Call, cst.Attribute, cst.Subscript, cst.Integer, cst.List, cst.Dict)
    ):
        return node
    return node.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])


class Mutator:
    """Random changes; the same ones for the same random numbers."""

    def __init__(self, random_numbers: random.Random, pool: Pool) -> None:
        self._random = random_numbers
        self._pool = pool
        self._ways: tuple[Callable[[cst.Module], cst.Module | None], ...] = (
            self._splice_expression,
            self._splice_expression,
            self._splice_statement,
            self._splice_statement,
            self._drop,
            self._double,
            self._swap,
            self._wrap,
            self._wrap,
            self._wrap_expression,
            self._wrap_expression,
            self._rename,
            self._alias,
            self._loop_over_own_name,
            self._comment,
            self._break_line,
        )

    def start(self, module: cst.Module) -> cst.Module:
        """Some of the statements of a module, its imports among them, so that programs are small."""
        imports = [node for node in module.body if _is_import(node)]
        others = [node for node in module.body if not _is_import(node)]
        first = self._random.randrange(max(len(others), 1))
        return module.with_changes(body=[*imports, *others[first : first + self._random.randint(1, 4)]])

    def changed(self, module: cst.Module) -> cst.Module:
        """The module with one to eight changes that leave it Python."""
        for _ in range(self._random.randint(1, 8)):
            try:
                new = self._random.choice(self._ways)(module)
            except cst.CSTValidationError:
                continue  # `case None:` with another name in it
            if new is not None and len(new.code) <= _LONGEST and (parsed := parsed_if_python(new.code)) is not None:
                module = parsed
        return module

    def _splice_expression(self, module: cst.Module) -> cst.Module | None:
        loads = _loads(module)
        if not loads or not self._pool.expressions:
            return None
        old, _ = self._random.choice(loads)
        others = self._pool.expressions if self._random.random() < 0.6 else [node for node, _ in loads]
        return _put(module, old, bracketed(_copied(self._random.choice(others))))

    def _splice_statement(self, module: cst.Module) -> cst.Module | None:
        if not self._pool.statements:
            return None
        body = self._random.choice(_bodies(module))
        new = _copied(self._random.choice(self._pool.statements))
        place = self._random.randint(0, len(body.body))
        return _put_into(module, body, [*body.body[:place], new, *body.body[place:]])

    def _drop(self, module: cst.Module) -> cst.Module | None:
        body = self._random.choice(_bodies(module))
        if len(body.body) < 2:
            return None
        place = self._random.randrange(len(body.body))
        return _put_into(module, body, [*body.body[:place], *body.body[place + 1 :]])

    def _double(self, module: cst.Module) -> cst.Module | None:
        body = self._random.choice(_bodies(module))
        if not body.body:
            return None
        node = self._random.choice(body.body)
        place = self._random.randint(0, len(body.body))
        return _put_into(module, body, [*body.body[:place], _copied(node), *body.body[place:]])

    def _swap(self, module: cst.Module) -> cst.Module | None:
        body = self._random.choice(_bodies(module))
        if len(body.body) < 2:
            return None
        order = list(body.body)
        one, other = self._random.sample(range(len(order)), 2)
        order[one], order[other] = order[other], order[one]
        return _put_into(module, body, order)

    def _wrap(self, module: cst.Module) -> cst.Module | None:
        """Some statements that follow each other, in the body of another one."""
        body = self._random.choice(_bodies(module))
        if not body.body:
            return None
        first = self._random.randrange(len(body.body))
        last = self._random.randint(first + 1, min(len(body.body), first + 4))
        frame = cst.parse_statement(self._random.choice(_FRAMES))
        hole = next(
            block
            for block in nodes_of(frame)
            if isinstance(block, cst.IndentedBlock) and cst.Module([]).code_for_node(block).strip() == "HOLE"
        )
        new = frame.deep_replace(hole, hole.with_changes(body=body.body[first:last]))
        return _put_into(module, body, [*body.body[:first], cast("Statement", new), *body.body[last:]])

    def _wrap_expression(self, module: cst.Module) -> cst.Module | None:
        loads = _loads(module)
        if not loads:
            return None
        old, _ = self._random.choice(loads)
        frame = cst.parse_expression(self._random.choice(_EXPRESSION_FRAMES))
        hole = next(node for node in nodes_of(frame) if isinstance(node, cst.Name) and node.value == "HOLE")
        return _put(module, old, bracketed(cast("cst.BaseExpression", frame.deep_replace(hole, bracketed(old)))))

    def _rename(self, module: cst.Module) -> cst.Module | None:
        """One name becomes another one of the program, in one place or in all."""
        names = [node for node in nodes_of(module) if isinstance(node, cst.Name)]
        if len(names) < 2:
            return None
        one, other = self._random.sample(names, 2)
        if self._random.random() < 0.5:
            return _put(module, one, one.with_changes(value=other.value))
        return cst.ensure_type(module.visit(_Renamed(one.value, other.value)), cst.Module)

    def _alias(self, module: cst.Module) -> cst.Module | None:
        """A chain of names for a value, and the last one in its place."""
        names = [node for node, _ in _loads(module) if isinstance(node, cst.Name)]
        if not names:
            return None
        name = self._random.choice(names)
        chain = [name.value, *(f"{name.value}{i}" for i in range(self._random.choice((1, 3, 40))))]
        lines = [cst.parse_statement(f"{new} = {old}\n") for old, new in pairwise(chain)]
        renamed = _put(module, name, name.with_changes(value=chain[-1]))
        body = self._random.choice(_bodies(renamed))
        place = self._random.randint(0, len(body.body))
        return _put_into(renamed, body, [*body.body[:place], *lines, *body.body[place:]])

    def _loop_over_own_name(self, module: cst.Module) -> cst.Module | None:
        """A loop that binds anew what it goes over."""
        loops = [node for node in nodes_of(module) if isinstance(node, cst.For) and isinstance(node.target, cst.Name)]
        if not loops:
            return None
        loop = self._random.choice(loops)
        if self._random.random() < 0.5:
            return _put(module, loop.iter, loop.target)
        names = [node for node in nodes_of(loop.iter) if isinstance(node, cst.Name)]
        if not names:
            return None
        return _put(module, loop.target, _copied(self._random.choice(names)).with_changes(lpar=[], rpar=[]))

    def _comment(self, module: cst.Module) -> cst.Module | None:
        """A comment and a blank row inside of brackets, or behind a statement."""
        note = cst.Comment(self._random.choice(("# why", "# \\", "# (", "# type: ignore", "# noqa", "#")))
        calls = [node for node in nodes_of(module) if isinstance(node, cst.Call) and node.args]
        lines = [node for node in nodes_of(module) if isinstance(node, cst.SimpleStatementLine)]
        if calls and self._random.random() < 0.6:
            call = self._random.choice(calls)
            break_ = cst.ParenthesizedWhitespace(
                first_line=cst.TrailingWhitespace(cst.SimpleWhitespace("  "), note),
                indent=True,
                last_line=cst.SimpleWhitespace("    "),
            )
            return _put(module, call, call.with_changes(whitespace_before_args=break_))
        if not lines:
            return None
        line = self._random.choice(lines)
        if self._random.random() < 0.5:
            end = cst.TrailingWhitespace(cst.SimpleWhitespace("  "), note)
            return _put(module, line, line.with_changes(trailing_whitespace=end))
        above = [cst.EmptyLine(comment=note), cst.EmptyLine()]
        return _put(module, line, line.with_changes(leading_lines=[*line.leading_lines, *above]))

    def _break_line(self, module: cst.Module) -> cst.Module | None:
        """A backslash at the end of a line that goes on below."""
        places = [
            node
            for node in nodes_of(module)
            if isinstance(node, cst.SimpleWhitespace) and node.value and not node.value.strip(" ")
        ]
        if not places:
            return None
        place = self._random.choice(places)
        return _put(module, place, place.with_changes(value=f"{place.value}\\\n{place.value}"))


class _Renamed(cst.CSTTransformer):
    def __init__(self, old: str, new: str) -> None:
        super().__init__()
        self._old = old
        self._new = new

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:  # noqa: N802 - LibCST's name
        return updated_node.with_changes(value=self._new) if original_node.value == self._old else updated_node


def _put_into(module: cst.Module, body: cst.CSTNode, statements: Sequence[cst.CSTNode]) -> cst.Module:
    new = body.with_changes(body=list(statements))
    return cst.ensure_type(new, cst.Module) if body is module else _put(module, body, new)


def _is_import(node: cst.CSTNode) -> bool:
    return isinstance(node, cst.SimpleStatementLine) and isinstance(node.body[0], (cst.Import, cst.ImportFrom))


def parsed_if_python(text: str) -> cst.Module | None:
    """The tree of a text that both Python and LibCST read."""
    import ast
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<text>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        return cst.parse_module(text)
    except (SyntaxError, ValueError, cst.ParserSyntaxError, RecursionError):
        return None


_FRAMES = (
    "for batch in loader:\n    HOLE\n",
    "for i in range(100):\n    HOLE\n",
    "for x in x:\n    HOLE\n",
    "while loss > 0:\n    HOLE\n",
    "while True:\n    HOLE\n",
    "if x is not None:\n    HOLE\n",
    "if isinstance(x, torch.Tensor):\n    HOLE\nelse:\n    raise TypeError\n",
    "try:\n    HOLE\nexcept RuntimeError as loss:\n    pass\n",
    "try:\n    pass\nfinally:\n    HOLE\n",
    "with torch.no_grad():\n    HOLE\n",
    "with torch.autocast('cuda') as x, open('f') as y:\n    HOLE\n",
    "def step(x, *args, loss=None, **kwargs):\n    HOLE\n",
    "async def run(x):\n    async for i in x:\n        HOLE\n",
    "class Net(nn.Module):\n    def forward(self, x):\n        HOLE\n",
    "match x:\n    case [i, *out]:\n        HOLE\n    case _:\n        pass\n",
    "if True:\n    pass\nelif x:\n    HOLE\n",
)
_EXPRESSION_FRAMES = (
    "HOLE.item()",
    "HOLE.cpu()",
    "HOLE.cuda()",
    "HOLE.to(device)",
    "HOLE.detach().cpu().numpy()",
    "HOLE[0]",
    "HOLE[i]",
    "HOLE + 1",
    "HOLE @ x",
    "[HOLE for x in y]",
    "[x for x in HOLE if x]",
    "{i: HOLE for i in range(3)}",
    "sum(HOLE for i in out)",
    "(lambda x: HOLE)(x)",
    "(out := HOLE)",
    "f'{HOLE}'",
    "f'{HOLE=}'",
    "f'{HOLE:.3f} and {x!r:>{i}}'",
    "HOLE if loss else out",
    "not HOLE",
    "(HOLE, x)",
    "(*HOLE, x)",
    "torch.cat([HOLE, x])",
    "torch.stack([HOLE for x in loader])",
    "float(HOLE)",
    "len(HOLE)",
    "print(HOLE)",
    "(HOLE).sum().backward()",
    "-HOLE",
    "HOLE < 3",
    "HOLE and x",
    "torch.tensor(HOLE)",
    "model(HOLE)",
    "nn.Sequential(HOLE)",
)


# Cutting down


def smaller(module: cst.Module) -> Iterator[cst.Module]:
    """The program with a part less, the largest parts first."""
    for body in _bodies(module):
        count = len(body.body)
        step = count
        while step:
            for first in range(0, count, step):
                rest = [*body.body[:first], *body.body[first + step :]]
                if rest or body is module:
                    yield _put_into(module, body, rest)
            step //= 2
        for place, statement in enumerate(body.body):
            inner = getattr(statement, "body", None)
            if isinstance(inner, cst.IndentedBlock):
                yield _put_into(module, body, [*body.body[:place], *inner.body, *body.body[place + 1 :]])
            if getattr(statement, "orelse", None) is not None:
                yield _put(module, statement, statement.with_changes(orelse=None))
    for load, _ in _loads(module):
        yield from (
            _put(module, load, bracketed(_copied(inner)))
            for inner in load.children
            if isinstance(inner, cst.BaseExpression)
        )
        if not isinstance(load, cst.Name):
            yield _put(module, load, cst.Name("x"))
    for node in nodes_of(module):
        match node:
            case cst.Call(args=[_, *_]):
                yield _put(module, node, node.with_changes(args=[]))
            case cst.EmptyLine():
                yield cst.ensure_type(module.deep_remove(node), cst.Module)
            case cst.SimpleWhitespace(value=value) if "\\" in value:
                yield _put(module, node, node.with_changes(value=" "))
            case cst.TrailingWhitespace(comment=cst.Comment()):
                yield _put(module, node, node.with_changes(comment=None, whitespace=cst.SimpleWhitespace("")))
            case cst.ParenthesizedWhitespace():
                yield _put(module, node, cst.SimpleWhitespace(""))
