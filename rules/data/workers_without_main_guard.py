"""A script that starts a loader's workers when it is imported, as each worker that is spawned does."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Call, Context, Flag, Message, Rule
from torchlint.semantics.knowledge.conventions.functions import FITTING_METHOD
from torchlint.semantics.knowledge.conventions.values import PLATFORM_NAME
from torchlint.semantics.knowledge.marks import CELL_MARK

RULE = Rule(
    name="workers-without-main-guard",
    code="TL115",
    group="data",
    summary="Spawned workers run a script without a main guard again from its top, and fail.",
    since="0.2.0",
    default=False,
)
_UNGUARDED = Message(
    "unguarded",
    "workers that are spawned run this script again from its top, and fail",
    help='move what runs into a function, called under `if __name__ == "__main__":`',
)


@RULE.on(
    Call("torch.utils.data.DataLoader"),
    Call("torch_geometric.loader.DataLoader"),
    Call("torch_geometric.data.DataLoader"),
    Call("torchdata.stateful_dataloader.StatefulDataLoader"),
    Call("dgl.dataloading.GraphDataLoader"),
)
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a loader with workers that is made and read while the module is imported, outside of any main guard."""
    from torchlint.analyses.data.datasets import Reader, reader

    from ._shared.worker_processes import is_forked, number_of_workers
    from ._shared.workers import runs_on_import

    count = number_of_workers(node, context)
    if count is None or not runs_on_import(node, context) or _is_of_cells(context):
        return
    if is_forked(node, context) or _knows_platforms(node, count, context):
        return
    if reader(node, context) >= Reader.PEEK and _is_read_on_import(context):
        yield Flag(
            node,
            _UNGUARDED.of(),
        )


def _is_of_cells(context: Context) -> bool:
    return context.source.notebook is not None or CELL_MARK.is_in(context.program.code)


def _is_read_on_import(context: Context) -> bool:
    """Whether a loop over batches runs while the module is imported, or something is fitted."""
    from torchlint.semantics.names.bindings import last_part

    from ._shared.workers import runs_on_import

    loops = (loop for loop in context.tree.of(cst.For) if context.kinds.is_loader_like(loop.iter))
    fits = (call for call in context.tree.of(cst.Call) if FITTING_METHOD.suggests(last_part(call.func)))
    return any(runs_on_import(node, context) for nodes in (loops, fits) for node in nodes)


def _knows_platforms(loader: cst.Call, count: cst.BaseExpression, context: Context) -> bool:
    """Whether the number of workers depends on the platform, or the code around is for one."""
    from torchlint.syntax.tree import descendants

    tests = [condition.test for condition in context.conditions(loader, across_functions=True)]
    return any(
        (isinstance(node, cst.Attribute) and context.qualified_name(node) == "os.name")
        or (isinstance(node, cst.Name) and PLATFORM_NAME.suggests(node.value.lower()))
        for part in (count, *tests)
        for node in descendants(part)
    )
