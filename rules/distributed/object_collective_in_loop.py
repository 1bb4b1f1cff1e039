"""Numbers that travel between the processes as pickled objects, for each batch."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Doubt
from torchlint.rule import Call, Context, Flag, Message, Rule, Status
from torchlint.semantics.flow.query import query

RULE = Rule(
    name="object-collective-in-loop",
    code="TL707",
    group="distributed",
    summary="Numbers or tensors are pickled every batch to send them to other processes.",
    since="0.2.0",
    status=Status.PREVIEW,
    doubts=(
        (Doubt.RATE_UNKNOWN, ""),
        (Doubt.UNCALLED, ""),
        (Doubt.RARE, "a few objects in an epoch cost nothing"),
        (Doubt.RUNS_ONCE, "a few objects once cost nothing"),
        (Doubt.WAITS_ANYWAY, "behind a text that was generated it does not count"),
    ),
)
_PICKLED = Message(
    "pickled",
    "`{name}` pickles `{sent}`{often} and blocks the CPU",
    help="put the numbers into a tensor and use `{better}`",
)
# Each with the name and the place of what it sends, and what does the same for tensors.
_SENDS = {
    "all_gather_object": ("obj", 1, "all_gather"),
    "gather_object": ("obj", 0, "gather"),
    "broadcast_object_list": ("object_list", 0, "broadcast"),
    "scatter_object_list": ("scatter_object_input_list", 1, "scatter"),
}


@RULE.on(*(Call(f"torch.distributed.{name}") for name in _SENDS))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag what each iteration of a loop over batches sends, if it is made of nothing but numbers and tensors."""
    from torchlint.analyses.execution.hot import rate_doubts
    from torchlint.edits.messages import how_often

    name = (context.qualified_name(node.func) or "").rpartition(".")[2]
    keyword, place, better = _SENDS[name]
    sent = context.argument(node, keyword, place)
    if sent is None or context.has_unpacking(node) or not _is_numeric(sent, context):
        return
    yield Flag(
        node,
        _PICKLED.of(name=name, sent=context.shown(sent), better=better, often=how_often(node, context)),
        doubts=rate_doubts(node, context),
    )


@query(bottom=False)
def _is_numeric(node: cst.BaseExpression, context: Context) -> bool:
    """Whether the object is a number, a tensor, or a list or dictionary of these."""
    from torchlint.analyses.batching.extent import is_sure_tensor
    from torchlint.semantics.values.lattice import Kind

    parts: list[cst.BaseExpression]
    for value in context.origins(node).nodes:
        match value:
            case cst.List(elements=elements) | cst.Tuple(elements=elements):
                parts = [element.value for element in elements]
            case cst.Dict(elements=pairs):
                parts = [pair.value for pair in pairs]
            case cst.BinaryOperation(left=cst.List() as repeated, operator=cst.Multiply()):
                parts = [repeated]
            case _:
                if context.kind(value) is not Kind.NUMBER and not is_sure_tensor(value, context):
                    return False
                continue
        if not parts or not all(_is_numeric(part, context) for part in parts):
            return False
    return True
