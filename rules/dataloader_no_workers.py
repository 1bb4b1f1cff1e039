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
_TESTS = re.compile(r"(^|/)(tests?/|test_[^/]*\.py$|conftest\.py$)|_test\.py$")


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
    positional = None if (context.qualified_name(call.func) or "").startswith("torch_geometric.") else 5
    given = context.argument(call, "num_workers", positional)
    if given is not None:
        return _zero(given, context)
    for argument in call.args:
        if argument.star:
            unpacked = _unpacked(argument.value, context) if argument.star == "**" else None
            if unpacked is None:
                return None
            if "num_workers" in unpacked:
                return _zero(unpacked["num_workers"], context)
    return _Zero("`num_workers` is 0 by default")


def _zero(value: cst.BaseExpression, context: Context) -> _Zero | None:
    match value:
        case cst.Integer(value="0"):
            return _Zero("`num_workers` is 0", value)
        case cst.Name(value=name):
            _, bindings = context.names.lookup(value)
            if len(bindings) == 1 and isinstance(bindings[0].node, (cst.Assign, cst.AnnAssign)) and not bindings[0].path:
                constant = bindings[0].value
                if isinstance(constant, cst.Integer) and constant.value == "0":
                    return _Zero(f"`{name}` is 0", constant, is_named=True)
    return None


def _unpacked(value: cst.BaseExpression, context: Context) -> dict[str, cst.BaseExpression] | None:
    """The keywords of `**value`, where all of them are in sight."""
    match value:
        case cst.Dict(elements=elements):
            found: dict[str, cst.BaseExpression] = {}
            for element in elements:
                if not isinstance(element, cst.DictElement) or not isinstance(element.key, cst.SimpleString):
                    return None
                found[str(element.key.evaluated_value)] = element.value
            return found
        case cst.Call(func=cst.Name(value="dict"), args=args):
            if any(argument.keyword is None for argument in args):
                return None
            return {argument.keyword.value: argument.value for argument in args if argument.keyword is not None}
        case cst.Name(value=name):
            _, bindings = context.names.lookup(value)
            if len(bindings) != 1 or not isinstance(bindings[0].node, cst.Assign) or bindings[0].value is None:
                return None
            uses = context.layers.uses(name, bindings[0].node)
            if isinstance(bindings[0].value, cst.Name) or not all(_is_unpacking(use, context) for use in uses):
                return None
            return _unpacked(bindings[0].value, context)
    return None


def _is_unpacking(use: cst.CSTNode, context: Context) -> bool:
    parent = context.parent(use)
    return isinstance(parent, cst.Arg) and parent.star == "**"


def _is_meant(call: cst.Call, zero: _Zero, context: Context) -> bool:
    """Whether somebody chose to have no workers, or the loader is there to be looked at."""
    if any(context.argument(call, option) is not None for option in _NEED_WORKERS):
        return True
    if _TESTS.search(context.source.path) or context.frequencies.is_diagnostic(call):
        return True
    if any(
        isinstance(above, (cst.If, cst.IfExp)) and _CHOSEN.search(context.code(above.test))
        for above in context.ancestors(call)
    ):
        return True
    return zero.node is not None and _is_commented(zero.node, context)


def _is_commented(node: cst.CSTNode, context: Context) -> bool:
    """Whether a comment behind the 0 says why."""
    end = context.spans({node}).outer(node).end
    row, column = context.source.position(end)
    return "#" in context.source.line(row)[column - 1 :]


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
