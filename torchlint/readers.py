"""Functions that do nothing but bring to the CPU what they are given, as they stand at the start of a line."""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Mapping
from enum import Enum


class Way(Enum):
    """What a function does with the tensor that it is given."""

    ITEM = "item"
    """It reads its one element: `t.item()`."""
    COPY = "copy"
    """It copies it: `t.detach().cpu().numpy()`."""
    COPY_OF_TENSOR = "copy-of-tensor"
    """It copies a tensor, and gives back what is none: `t.cpu() if isinstance(t, torch.Tensor) else t`."""


class _Other(Enum):
    """What a function gives that is no read."""

    GIVEN = "given"  # what it was given
    ELSE = "else"


_Found = Way | _Other
# Of one parameter without a default, up to the next line that is not indented.
_FUNCTION = re.compile(
    r"^(?:def[ \t]+(?P<function>\w+)\([ \t]*\w+[ \t]*(?:[:,][^()\n]*)?\)[^:\n]*:.*(?:\n(?:[ \t].*)?)*"
    r"|(?P<name>\w+)[ \t]*=[ \t]*lambda[ \t].*)",
    re.MULTILINE,
)
_LONGEST = 3000  # characters of a function that does no more
# What leaves a tensor one of as many elements on the same device.
_KEEPS = frozenset("clone contiguous data detach double flatten float half long squeeze".split())
_ASKED = frozenset("isinstance hasattr type is_tensor is_floating_point".split())
_ARRAYS = frozenset("array asarray".split())


def readers(text: str) -> Mapping[str, Way]:
    """The functions at the start of a line that read what they are given, by name."""
    if "cpu" not in text and ".item()" not in text:
        return {}
    found = {}
    for match in _FUNCTION.finditer(text):
        code = match[0]
        if len(code) <= _LONGEST and ("cpu" in code or ".item()" in code) and (way := way_of(code)) is not None:
            found[match["function"] or match["name"]] = way
    return found


def way_of(code: str) -> Way | None:
    """How the function or lambda of this code brings what it is given to the CPU; None if it does not, or does more."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of odd literals
        try:
            parsed = ast.parse(code).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None
    match parsed:
        case [ast.FunctionDef(args=parameters, body=body)]:
            pass
        case [ast.Assign(value=ast.Lambda(args=parameters, body=given))] | [
            ast.Expr(value=ast.Lambda(args=parameters, body=given))
        ]:
            body = [ast.Return(given)]
        case _:
            return None
    names = [parameter.arg for parameter in (*parameters.posonlyargs, *parameters.args)]
    if names[:1] == ["self"]:
        names = names[1:]
    if not names or len(names) - len(parameters.defaults) > 1 or parameters.vararg or parameters.kwarg:
        return None
    try:
        ends, rest = _ends(body, names[0], {_Other.GIVEN})
    except _MoreError:
        return None
    ends |= {_Other.ELSE} if rest else set()  # None is returned
    ways = {end for end in ends if isinstance(end, Way)}
    if Way.ITEM in ways or not ways:
        return Way.ITEM if ways else None
    return Way.COPY if ends == {Way.COPY} else Way.COPY_OF_TENSOR


class _MoreError(Exception):
    """The function does more than to read."""


def _ends(body: Iterable[ast.stmt], name: str, states: set[_Found]) -> tuple[set[_Found], set[_Found]]:
    """What the statements return, and as what they leave the parameter behind them."""
    ends: set[_Found] = set()
    for line in body:
        match line:
            case ast.Expr(value=ast.Constant()):
                pass
            case ast.Raise():
                states = set()
            case ast.Return(value=ast.expr() as value):
                ends |= {_read(value, name, state) for state in states}
                states = set()
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                states = {_read(value, name, state) for state in states}
            case ast.If(test=test, body=yes, orelse=no) if _is_asked(test):
                branches = [_ends(branch, name, states) for branch in (yes, no)]
                ends = ends.union(*(found for found, _ in branches))
                states = {state for _, left in branches for state in left}
            case _:
                raise _MoreError
    return ends, states


def _is_asked(test: ast.expr) -> bool:
    """Whether a condition asks no more than what something is."""
    calls = [part.func for part in ast.walk(test) if isinstance(part, ast.Call)]
    return all((getattr(func, "id", "") or getattr(func, "attr", "")) in _ASKED for func in calls)


def _read(node: ast.expr, name: str, state: _Found) -> _Found:
    """What becomes of the parameter in an expression, by what it was before."""
    match node:
        case ast.Name(id=read) if read == name:
            return state
        case ast.IfExp(test=test, body=yes, orelse=no) if _is_asked(test):
            ways = [_read(branch, name, state) for branch in (yes, no)]
            return Way.COPY_OF_TENSOR if Way.COPY in ways else ways[0] if ways[0] is Way.ITEM else ways[1]
        case ast.Attribute(value=owner, attr="data"):
            return _read(owner, name, state)
        case ast.Call(func=ast.Attribute(value=owner, attr=method), args=args) if method not in _ARRAYS:
            found = _read(owner, name, state)
            if method == "item":
                return Way.ITEM
            if method == "cpu" or (method == "to" and [getattr(arg, "value", "") for arg in args] == ["cpu"]):
                return Way.COPY
            if method in ("numpy", "tolist"):
                return found if isinstance(found, Way) else _Other.ELSE
            if method in _KEEPS:
                return found
        case ast.Call(func=ast.Attribute(attr=method)) if method in _ARRAYS:
            return _Other.ELSE
        case ast.ListComp() | ast.DictComp() | ast.Constant():
            return _Other.ELSE
    raise _MoreError
