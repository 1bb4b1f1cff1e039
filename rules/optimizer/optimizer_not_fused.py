"""An optimizer of torch that updates parameters on the device without the fused kernel that torch has for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Applicability, Call, Flag, Message, Rule
from torchlint.semantics.knowledge.conventions.packages import OPTIMIZER_PACKAGE

if TYPE_CHECKING:
    import libcst as cst

    from torchlint.semantics.context import Context

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
)
_UNFUSED = Message(
    "unfused",
    "`{name}` passes over all parameters once for each operation of its formula",
    help="pass `fused=True`{newer}, which passes over them once",
)


@RULE.on(Call("torch.optim.Adam"), Call("torch.optim.AdamW"), Call("torch.optim.SGD"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag an optimizer for the parameters of a moved model that leaves the implementation to torch."""
    from ._shared.calls import (  # the model's parts load LibCST
        FUSED_SINCE,
        fused,
        has_sparse_gradients,
        is_one_operation,
        is_tried_out,
        lacks_fused,
        never_steps,
        updates_a_moved_model,
        updates_few_tensors,
    )

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
    )
