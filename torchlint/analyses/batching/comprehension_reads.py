"""Comprehensions, and `map`, that do nothing but read each element of a tensor on the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import libcst as cst

from torchlint.analyses.batching.extent import is_sure_tensor, is_worth_batching
from torchlint.analyses.tensors.lengths import has_one_row
from torchlint.semantics.context import Context
from torchlint.semantics.names.bindings import dotted

CONVERSIONS = ("float", "int", "bool")
# What gives a tensor of the same values.
_SAME = frozenset("cpu detach".split())
# What takes all that a generator or `map` gives before anything else happens.
_TAKERS = frozenset("list tuple set frozenset sum max min sorted any all".split())
_ADDERS = frozenset("extend update".split())
Listed: TypeAlias = "cst.ListComp | cst.SetComp | cst.GeneratorExp | cst.Call"


@dataclass(frozen=True, slots=True)
class Listing:
    """`node` reads the elements of `tensor` one by one: as `conversion` has it, or as they are.

    `read` is what does it for the element of that `name`; of `map` there is none. `depth` counts the comprehensions,
    one in another. `of_rows`: an element may be a row, which becomes a list.
    """

    node: Listed
    tensor: cst.BaseExpression
    read: cst.Call | None
    name: str
    conversion: str
    depth: int
    of_rows: bool


def listing(read: cst.Call, context: Context) -> Listing | None:
    """The listing that this is the read of: `v.item()`, `float(v)` or `v.tolist()`, or a call of `map`.

    None where it is none, or where nothing is to be gained: on the CPU, or where it seldom runs.
    """
    found = _reads_each(read, context)
    return found if found is not None and is_worth_batching(found.node, found.tensor, context) else None


def _reads_each(read: cst.Call, context: Context) -> Listing | None:
    found = _mapped(read, context) or _listed(read, context)
    is_one = found is not None and _takes_all(found.node, context) and is_sure_tensor(found.tensor, context)
    return found if is_one else None


def is_listed(node: cst.CSTNode, context: Context) -> bool:
    """Whether the node, a call on or with an element, is the read of a listing or a part of it, worth a word or not."""
    call = node
    while True:
        found = _reads_each(call, context) if isinstance(call, cst.Call) else None
        if found is not None and not has_one_row(found.tensor, context):
            return True
        above = context.parent(call)
        if isinstance(above, cst.Arg):
            above = context.parent(above)
        if not isinstance(above, (cst.Call, cst.Attribute)):
            return False
        call = above


def _mapped(call: cst.Call, context: Context) -> Listing | None:
    """`map(float, t)`."""
    match call.args:
        case [cst.Arg(value=cst.Name(value=name) as function, keyword=None), cst.Arg(value=tensor, keyword=None)]:
            given = call.args[0].star + call.args[1].star
            if name in CONVERSIONS and not given and _is_builtin(call.func, "map", context):
                is_ours = _is_builtin(function, name, context)
                return Listing(call, tensor, None, "", name, 1, of_rows=False) if is_ours else None
    return None


def _listed(read: cst.Call, context: Context) -> Listing | None:
    owner = context.parent(read)
    if not isinstance(owner, (cst.ListComp, cst.SetComp, cst.GeneratorExp)) or owner.elt is not read:
        return None
    target = _only_target(owner)
    found = _read(read, context)
    if target is None or found is None or found[0] != target:
        return None
    _, conversion, of_rows = found
    depth = 1
    above = context.parent(owner)
    while isinstance(owner, cst.ListComp) and isinstance(above, cst.ListComp) and above.elt is owner:
        outer = _only_target(above)
        if outer is None or dotted(owner.for_in.iter) != outer:
            break
        owner, depth, above = above, depth + 1, context.parent(above)
    return Listing(owner, owner.for_in.iter, read, target, conversion, depth, of_rows)


def _only_target(owner: cst.ListComp | cst.SetComp | cst.GeneratorExp) -> str | None:
    """`v` of `… for v in t`, with nothing behind it."""
    match owner.for_in:
        case cst.CompFor(target=cst.Name(value=name), ifs=[], inner_for_in=None, asynchronous=None):
            return name
    return None


def _read(node: cst.BaseExpression, context: Context) -> tuple[str, str, bool] | None:
    """Of `float(v)`, `v.cpu().item()` and the like the name, the conversion, and whether rows are read as well."""
    match node:
        case cst.Call(func=cst.Name(value=name) as func, args=[cst.Arg(value=inner, keyword=None, star="")]):
            if name not in CONVERSIONS or not _is_builtin(func, name, context):
                return None
            while isinstance(inner, cst.Call) and (same := _same(inner)) is not None:
                inner = same
            if isinstance(inner, cst.Name):
                return inner.value, name, False
            below = _read(inner, context)
            return (below[0], name, False) if below is not None and not below[1] and not below[2] else None
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value="item" | "tolist" as last)), args=[]):
            while isinstance(inner, cst.Call) and (same := _same(inner)) is not None:
                inner = same
            return (inner.value, "", last == "tolist") if isinstance(inner, cst.Name) else None
    return None


def _same(call: cst.Call) -> cst.BaseExpression | None:
    match call:
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=name)), args=[]) if name in _SAME:
            return owner
    return None


def _is_builtin(node: cst.BaseExpression, name: str, context: Context) -> bool:
    return isinstance(node, cst.Name) and node.value == name and context.qualified_name(node) == name


def _takes_all(node: Listed, context: Context) -> bool:
    """Whether the elements are read here and now, not one at a time by somebody else."""
    if not isinstance(node, (cst.GeneratorExp, cst.Call)):
        return True
    above = context.parent(node)
    if isinstance(above, cst.Assign):
        return all(isinstance(target.target, (cst.Tuple, cst.List)) for target in above.targets)
    if isinstance(above, cst.StarredElement):
        return True
    call = context.parent(above) if isinstance(above, cst.Arg) else None
    if not isinstance(call, cst.Call) or call.args[0] is not above:
        return False
    if above.star == "*":
        return True
    if isinstance(call.func, cst.Attribute):
        return call.func.attr.value in _ADDERS
    name = context.qualified_name(call.func)
    return name in _TAKERS
