"""A list of all the batches of a loader, where one after the other would do."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Applicability, Call, Context, Flag, Message, Replace, Rule, Status
from torchlint.semantics.knowledge.conventions.values import LOADER_ENDING

RULE = Rule(
    name="loader-materialised",
    code="TL120",
    group="data",
    summary="All batches of a `DataLoader` are loaded into a list only to count them or to loop over them.",
    since="0.2.0",
    status=Status.PREVIEW,
    fix=(Applicability.UNSAFE,),
    unsafe="a loader may have no length, and random numbers are drawn in another order",
)
_MATERIALIZED = Message("materialized", "`{call}` loads every batch and keeps all of them in memory", help="{advice}")


@RULE.on(Call("list"), Call("tuple"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a list of all batches that is only counted, gone over once or asked for its first element."""
    match node.args:
        case [cst.Arg(keyword=None, star="", value=cst.Name() | cst.Attribute() | cst.Call() as loader)]:
            pass
        case _:
            return
    use = _use(node, context)
    if use is None or not _is_loader(loader, context):
        return
    code = context.code(loader)
    whole, put, advice = {
        "counted": (node, code, _count(loader, context)),
        "gone over": (node, code, "loop over the loader itself"),
        "first": (context.parent(node), f"next(iter({code}))", f"use `next(iter({code}))`, which loads one"),
    }[use]
    assert isinstance(whole, (cst.Call, cst.Subscript))
    plain = not node.lpar and not whole.lpar and "#" not in context.code(whole)
    yield Flag(
        node,
        _MATERIALIZED.of(call=context.shown(node), advice=advice),
        title="Remove the list",
        edits=(Replace(whole, put),) if plain else (),
    )


def _count(loader: cst.BaseExpression, context: Context) -> str:
    """How to count the batches: a loader has the length of its dataset, and a stream of samples has none."""
    from torchlint.analyses.data.loaders import made

    known = made(loader, context)
    if known.calls and known.complete:
        return f"use `len({context.code(loader)})`"
    return f"count them in the loop, or use `len({context.code(loader)})` where its dataset has a length"


def _use(node: cst.Call, context: Context) -> str | None:
    """What the list is made for."""
    parent = context.parent(node)
    match parent:
        case cst.For(iter=iterated):
            return "gone over" if iterated is node else None
        case cst.Subscript(value=owner, slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer(value="0")))]):
            return "first" if owner is node else None
        case cst.Arg():
            call = context.parent(parent)
            name = context.qualified_name(call.func) if isinstance(call, cst.Call) else None
            if name == "len":
                return "counted"
            above = context.parent(call) if call is not None else None
            return "gone over" if name == "enumerate" and isinstance(above, cst.For) else None
    return None


def _is_loader(node: cst.BaseExpression, context: Context) -> bool:
    """Whether this is a loader itself: not one of its iterators, nor a dictionary of loaders."""
    from torchlint.analyses.data.loaders import is_loader, made
    from torchlint.semantics.flow.origins import Through
    from torchlint.semantics.names.bindings import dotted
    from torchlint.semantics.values.lattice import Kind

    if isinstance(node, cst.Call):
        return is_loader(node, context)
    name = (dotted(node) or "").rpartition(".")[2].lower()
    if context.kind(node) not in (Kind.LOADER, Kind.UNKNOWN):
        return False
    if isinstance(node, cst.Name) and made(node, context).calls:
        found = [origin.node for origin in context.origins(node, Through.PARTS).found]
        return all(isinstance(value, cst.Call) and is_loader(value, context) for value in found)
    if isinstance(node, cst.Name) and context.kinds.likely(node).kind is Kind.LOADER:
        return True  # a loop takes batches of it
    return LOADER_ENDING.suggests(name)
