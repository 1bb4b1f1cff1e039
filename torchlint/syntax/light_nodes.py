"""LibCST's classes, changed for the whole process so that nodes which are looked at and not rebuilt are made faster.

What nodes hold and say is the same, but that nothing stops one from assigning to the fields of the commonest. Nothing
happens when this module is imported: `parsing` calls it in processes that are torchlint's own.
"""

from __future__ import annotations

import builtins
import dataclasses
from abc import ABCMeta
from collections.abc import Callable
from functools import cache, lru_cache
from types import FunctionType
from typing import Any

import libcst as cst


def parse(text: str) -> cst.Module:
    """`libcst.parse_module`, a quarter faster, for a tree that is looked at: white space and punctuation is shared.

    LibCST checks each node as it is made, which is for those who make nodes by hand, and makes one for every space.
    Here what the parser builds is not checked for what it cannot be, and one node stands for all that are alike where
    no rule and no fact looks, which are three nodes in five. Changes LibCST's classes for good with the first call.

    Raises:
        libcst.ParserSyntaxError: the text is no Python.
        RecursionError: it nests too deeply.

    """
    _lighten()
    _NAMES["by_hand"] = False
    for name, kind in _SHARED.items():
        setattr(cst, name, lru_cache(maxsize=None)(kind))
    try:
        return _native()(text)
    finally:
        _NAMES["by_hand"] = True
        for name, kind in _SHARED.items():
            setattr(cst, name, kind)


@cache
def _native() -> Callable[[str], cst.Module]:
    """LibCST's parser, which imports LibCST for every node that it makes, where such an import costs nothing.

    It takes `__import__` from the built-in names of the code that calls it, and the module itself from `sys.modules`:
    that it is called is all that it wants of the function, and nothing is called faster that takes any arguments.
    """
    from libcst import native  # type: ignore[attr-defined]

    def parse_natively(text: str) -> cst.Module:
        module: cst.Module = native.parse_module(text, encoding="utf-8")
        return module

    names = {**vars(builtins), "__import__": "".format}
    return FunctionType(parse_natively.__code__, {"__builtins__": names}, closure=parse_natively.__closure__)


@cache
def _lighten() -> None:
    """Change LibCST's classes, once."""
    cst.CSTNode.__post_init__ = _check_by_hand  # type: ignore[assignment,method-assign]
    _answer_at_once()
    for kind in _COMMON:
        _make_plainly(kind)


class _Answering(ABCMeta):
    """The metaclass of LibCST's nodes, but for who answers `isinstance`: the interpreter, and not code in Python.

    The answers are the same as long as nothing is registered as a node that is none.
    """

    __instancecheck__ = type.__instancecheck__
    __subclasscheck__ = type.__subclasscheck__


def _answer_at_once() -> None:
    """Let nodes be asked for their type, compared and hashed without a call into Python: nothing happens more often."""
    waiting: list[type] = [cst.CSTNode]
    while waiting:
        kind = waiting.pop()
        kind.__class__ = _Answering
        # By identity, which is what LibCST's own methods say too; it gives them to each type.
        kind.__hash__ = object.__hash__  # type: ignore[assignment,method-assign]
        kind.__eq__ = object.__eq__  # type: ignore[assignment,method-assign]
        waiting += type.__subclasses__(kind)


# Nine in ten of the nodes that are not shared are of these types.
_COMMON = (
    cst.Annotation, cst.Arg, cst.Assign, cst.AssignTarget, cst.Attribute, cst.BinaryOperation, cst.Call, cst.Comment,
    cst.Comparison, cst.ComparisonTarget, cst.Element, cst.Expr, cst.Float, cst.FunctionDef, cst.If, cst.ImportAlias,
    cst.IndentedBlock, cst.Index, cst.Integer, cst.List, cst.Name, cst.Param, cst.Parameters,
    cst.ParenthesizedWhitespace, cst.Return, cst.SimpleStatementLine, cst.SimpleString, cst.Subscript,
    cst.SubscriptElement, cst.Tuple,
)  # fmt: skip
# What their `__init__` knows besides its parameters: whether a node is made by hand, which LibCST checks, or parsed.
_NAMES: dict[str, Any] = {"by_hand": True, "unset": object()}


def _make_plainly(kind: type[cst.CSTNode]) -> None:
    """Let the fields of a node be assigned as it is made: LibCST calls a function for each, since its nodes are frozen.

    The signature is the same, and what is made by hand is checked as before.
    """
    parameters, lines = ["self"], []
    for field in dataclasses.fields(kind):
        name = value = parameter = field.name
        known = f"{kind.__name__}_{name}"
        if field.default is not dataclasses.MISSING:
            _NAMES[known] = field.default
            parameter = f"{name}={known}"
        elif field.default_factory is not dataclasses.MISSING:
            _NAMES[known] = field.default_factory
            parameter = f"{name}=unset"
            value = f"{known}() if {name} is unset else {name}"
        parameters.append(parameter)
        lines.append(f"    self.{name} = {value}\n")
    lines.append("    if by_hand: self.__post_init__()\n")
    exec(f"def __init__({', '.join(parameters)}):\n{''.join(lines)}", _NAMES)  # noqa: S102 - as dataclasses does
    kind.__init__ = _NAMES.pop("__init__")  # type: ignore[method-assign]
    # Only without methods of their own, both, does the interpreter assign to a slot at once.
    kind.__setattr__ = object.__setattr__  # type: ignore[method-assign]
    kind.__delattr__ = object.__delattr__  # type: ignore[method-assign]


def _check_by_hand(node: cst.CSTNode) -> None:
    if _NAMES["by_hand"]:
        node._validate()  # noqa: SLF001 - as LibCST does of each node


# They stand in fields alone that `Tree` leaves out, and hold nothing but each other and text.
_SHARED: dict[str, type[cst.CSTNode]] = {
    kind.__name__: kind
    for kind in (
        cst.AssignEqual, cst.Colon, cst.Comma, cst.Dot, cst.EmptyLine, cst.LeftCurlyBrace, cst.LeftParen,
        cst.LeftSquareBracket, cst.Newline, cst.RightCurlyBrace, cst.RightParen, cst.RightSquareBracket,
        cst.Semicolon, cst.SimpleWhitespace, cst.TrailingWhitespace,
    )
}  # fmt: skip
