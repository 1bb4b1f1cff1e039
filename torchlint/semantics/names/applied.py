"""What runs a lambda, or a function, for each element of something: `map(lambda t: t.item(), tensors)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

if TYPE_CHECKING:
    from torchlint.semantics.names.bindings import Names
    from torchlint.syntax.tree import Tree

_FIRST = ("map", "filter")
_BY_KEY = ("sorted", "min", "max")
APPLYING = (*_FIRST, *_BY_KEY)
"""The functions of Python that do so."""


class Applied(NamedTuple):
    """The call that runs a lambda for each element, and what it takes them of: one for each parameter."""

    call: cst.Call
    iterables: tuple[cst.BaseExpression, ...]


def applied(function: cst.BaseExpression, tree: Tree, names: Names) -> Applied | None:
    """What runs a function for each element: `map`, `filter`, or `sorted` and the like that it is the key of."""
    argument = tree.parent(function)
    call = tree.parent(argument) if isinstance(argument, cst.Arg) else None
    if not isinstance(call, cst.Call) or any(given.star for given in call.args):
        return None
    name = names.qualified(call.func)
    positional = tuple(given.value for given in call.args if given.keyword is None)
    if name in _FIRST and call.args[0] is argument and len(positional) == len(call.args):
        return Applied(call, positional[1:])
    match argument:
        case cst.Arg(keyword=cst.Name(value="key")) if name in _BY_KEY and len(positional) == 1:
            return Applied(call, positional)
    return None
