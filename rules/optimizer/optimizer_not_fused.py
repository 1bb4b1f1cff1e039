"""An optimizer of torch that updates parameters on the device without the fused kernel that torch has for it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Applicability, Call, Context, Doubt, Flag, Message, Rule
from torchlint.semantics.knowledge.conventions.packages import OPTIMIZER_PACKAGE

RULE = Rule(
    name="optimizer-not-fused",
    code="TL801",
    group="optimizer",
    summary="An optimizer passes over the parameters once per operation; a fused one passes over them once.",
    since="0.2.0",
    default=False,
    fix=(Applicability.UNSAFE,),
    unsafe="the last digits differ",
    yields_to=("gradscaler-step-syncs",),
    doubts=((Doubt.DEVICE_UNKNOWN, ""), (Doubt.NAMED_RARE, "")),
)
_UNFUSED = Message(
    "unfused",
    "`{name}` passes over all parameters once for each operation of its formula",
    help="pass `fused=True`{newer}, which passes over them once",
)
_ONE_BY_ONE = Message(
    "one-by-one",
    "`{name}` launches kernels per parameter: `foreach=False` switches off the update of lists",
    help="pass `fused=True`{newer} instead, which passes over all of them once",
)


@RULE.on(Call("torch.optim.Adam"), Call("torch.optim.AdamW"), Call("torch.optim.SGD"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag an optimizer for the parameters of a moved model that leaves the implementation to torch."""
    from ._shared.calls import (
        FUSED_SINCE,
        fused,
        has_sparse_gradients,
        is_one_operation,
        is_tried_out,
        lacks_fused,
        never_steps,
        trial_doubts,
        updates_a_moved_model,
        updates_few_tensors,
    )

    switch = context.argument(node, "foreach")
    if isinstance(switch, cst.Name) and switch.value == "False":
        yield from _one_by_one(node, context)
        return
    if not lacks_fused(node, context) or not updates_a_moved_model(node, context):
        return
    if is_one_operation(node, context) or updates_few_tensors(node, context) or has_sparse_gradients(context):
        return
    if (
        OPTIMIZER_PACKAGE.suggests_any(context.names.imported)
        or never_steps(node, context)
        or is_tried_out(node, context)
    ):
        return
    name = context.qualified_name(node.func) or ""
    since = FUSED_SINCE[name]
    newer = "" if since <= (2, 0) else f" (PyTorch {since[0]}.{since[1]})"
    edit = fused(node, context)
    yield Flag(
        node,
        _UNFUSED.of(name=name.rpartition(".")[2], newer=newer),
        title="Pass `fused=True`",
        edits=() if edit is None else (edit,),
        doubts=trial_doubts(node, context),
    )


def _one_by_one(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag an optimizer that is told to update its parameters one after the other, and may be fused."""
    from torchlint.analyses.provenance.constants import may_pass

    from ._shared.calls import (
        FUSED_SINCE,
        has_sparse_gradients,
        is_tried_out,
        never_steps,
        trial_doubts,
        updates_a_moved_model,
    )

    name = context.qualified_name(node.func) or ""
    if any(may_pass(node, keyword, context) for keyword in ("fused", "differentiable", "capturable")):
        return
    if not node.args or has_sparse_gradients(context) or never_steps(node, context) or is_tried_out(node, context):
        return
    since = FUSED_SINCE[name]
    newer = "" if since <= (2, 0) else f" (PyTorch {since[0]}.{since[1]})"
    doubts = () if updates_a_moved_model(node, context) else (Doubt.DEVICE_UNKNOWN,)
    said = _ONE_BY_ONE.of(name=name.rpartition(".")[2], newer=newer)
    yield Flag(node, said, doubts=(*doubts, *trial_doubts(node, context)))
