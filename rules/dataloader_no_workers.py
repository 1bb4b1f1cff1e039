"""A loader without workers: the process that drives the device also loads every batch."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.rule import Applicability, Call, Flag, NodeEdit, Replace, Rule

if TYPE_CHECKING:
    from torchlint.model.context import Context

RULE = Rule(
    name="dataloader-no-workers",
    code="TL101",
    group="data",
    summary="A `DataLoader` loads in the main process, and the device waits for every batch.",
    since="0.1.0",
    fix=(Applicability.UNSAFE,),
)

# Options that only make sense with workers: the constructor refuses them without.
_NEED_WORKERS = ("persistent_workers", "prefetch_factor", "multiprocessing_context")
_CHOSEN = re.compile(r"debug|worker|platform|os\.name|windows|notebook|smoke", re.IGNORECASE)

# What a comment beside the 0 speaks of where it gives the reason.
_REASON = re.compile(
    r"worker|process|fork|spawn|pickl|thread|windows|debug|hang|dead|crash|leak|memory|cuda|must|need|determinis",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class _Zero:
    """Why there are no workers, in words, and the node that says 0; None where nothing does."""

    words: str
    node: cst.CSTNode | None = None
    is_named: bool = False


@RULE.on(
    Call("torch.utils.data.DataLoader"),
    Call("torch_geometric.loader.DataLoader"),
    Call("torch_geometric.data.DataLoader"),
    Call("torchdata.stateful_dataloader.StatefulDataLoader"),
)
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a loader that loads, decodes or transforms in the main process while something waits for its batches."""
    zero = _without_workers(node, context)
    if zero is None or _is_meant(node, zero, context):
        return
    from torchlint.model.loading import Reader, Work, reader, work

    dataset = context.argument(node, "dataset", 0)
    if dataset is None or _is_one_batch(node, context):
        return
    found = work(dataset, context)
    if found not in (Work.UNKNOWN, Work.LOADS):
        return
    by = reader(node, context)
    if by is Reader.PEEK or (by is Reader.UNSEEN and found is Work.UNKNOWN):
        return
    workers = context.settings.dataloader_workers
    yield Flag(
        node,
        f"the main process loads each batch while the device waits: {zero.words}",
        title=f"Load with {workers} workers",
        edits=_with_workers(node, zero, workers, context) if workers > 0 else (),
    )


def _without_workers(call: cst.Call, context: Context) -> _Zero | None:
    """What leaves the loader without workers; None if it may have some."""
    from torchlint.model.arguments import keywords

    positional = None if (context.qualified_name(call.func) or "").startswith("torch_geometric.") else 5
    given = context.argument(call, "num_workers", positional)
    if given is not None:
        return _zero(given, context)
    for argument in call.args:
        if argument.star:
            unpacked = keywords(argument.value, context) if argument.star == "**" else None
            if unpacked is None or not unpacked.keys().isdisjoint(_NEED_WORKERS):
                return None
            if "num_workers" in unpacked:
                return _zero(unpacked["num_workers"], context)
    return _Zero("`num_workers` is 0 by default")


def _zero(value: cst.BaseExpression, context: Context) -> _Zero | None:
    from torchlint.model.arguments import constant

    found = constant(value, context)
    if not isinstance(found, cst.Integer) or found.value != "0":
        return None
    if found is value:
        return _Zero("`num_workers` is 0", value)
    return _Zero(f"`{context.code(value)}` is 0", found, is_named=True)


def _is_meant(call: cst.Call, zero: _Zero, context: Context) -> bool:
    """Whether somebody chose to have no workers, or the loader is there to be looked at."""
    from torchlint.model.intent import comment_behind, is_test

    if any(context.argument(call, option) is not None for option in _NEED_WORKERS):
        return True
    if is_test(context) or context.frequencies.is_diagnostic(call) or _is_self_check(call, context):
        return True
    if any(
        isinstance(above, (cst.If, cst.IfExp)) and _CHOSEN.search(context.code(above.test))
        for above in context.ancestors(call)
    ):
        return True
    return zero.node is not None and _REASON.search(comment_behind(zero.node, context)) is not None


def _is_self_check(call: cst.Call, context: Context) -> bool:
    """Whether `if __name__ == "__main__"` loops over the loader only to show what the file's dataset gives."""
    from torchlint.model.tree import descendants
    from torchlint.model.values import Kind

    block = next((above for above in context.ancestors(call) if isinstance(above, (cst.FunctionDef, cst.If))), None)
    assign = context.parent(call)
    if (
        not isinstance(block, cst.If)
        or "__name__" not in context.code(block.test)
        or not isinstance(assign, cst.Assign)
    ):
        return False
    if any(isinstance(node, cst.Call) and context.kind(node.func) is Kind.MODULE for node in descendants(block.body)):
        return False
    target = assign.targets[0].target
    return isinstance(target, cst.Name) and all(
        isinstance(_reading(use, context), cst.For) for use in context.uses.of(target.value, assign)
    )


def _reading(use: cst.CSTNode, context: Context) -> cst.CSTNode | None:
    """What reads a name, through `enumerate(…)` and the like."""
    parent = context.parent(use)
    call = context.parent(parent) if isinstance(parent, cst.Arg) else None
    return context.parent(call) if call is not None else parent


def _is_one_batch(call: cst.Call, context: Context) -> bool:
    """Whether the whole dataset is one batch, so that workers could load nothing ahead."""
    size = context.argument(call, "batch_size", 1)
    return isinstance(size, cst.Call) and context.qualified_name(size.func) == "len"


def _with_workers(call: cst.Call, zero: _Zero, workers: int, context: Context) -> tuple[NodeEdit, ...]:
    if zero.node is None:
        return (context.with_argument(call, f"num_workers={workers}"),)
    if zero.is_named and "worker" not in zero.words.lower():
        return ()  # the name may stand for other zeros too
    return (Replace(zero.node, str(workers)),)
