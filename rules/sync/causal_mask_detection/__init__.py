"""A mask that torch's transformers compare with a causal one at each call, which the CPU waits for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from torchlint.rule import Applicability, Context, Doubt, Flag, Message, Node, Rule

from .._shared.doubts import WAIT_DOUBTS, weighed

RULE = Rule(
    name="causal-mask-detection",
    code="TL323",
    group="sync",
    summary="A transformer that is not told whether its mask is causal compares it at each call, and waits.",
    since="0.2.0",
    fix=(Applicability.SAFE,),
    doubts=(*WAIT_DOUBTS, (Doubt.DATA_UNKNOWN, "")),
)
_COMPARED = Message(
    "compared",
    "`{layer}` compares `{mask}` with a causal mask{often} and synchronizes for the answer",
    help="pass `{hint}`",
)


class _Mask(NamedTuple):
    """A parameter for a mask, and the one that says of it whether it is causal, each with its place."""

    name: str
    place: int
    hint: str
    hint_place: int


# As torch/nn/modules/transformer.py has them: `_detect_is_causal_mask` is asked where the hint is None.
_MASKS = {
    "torch.nn.TransformerEncoder": (_Mask("mask", 1, "is_causal", 3),),
    "torch.nn.TransformerDecoder": (_Mask("tgt_mask", 2, "tgt_is_causal", 6),),
    "torch.nn.Transformer": (
        _Mask("src_mask", 2, "src_is_causal", 8),
        _Mask("tgt_mask", 3, "tgt_is_causal", 9),
    ),
}
# Which version of torch the hint came with, if not with 2.0.
_HINTED_SINCE = {"torch.nn.TransformerDecoder": (2, 1), "torch.nn.Transformer": (2, 1)}


@RULE.on(Node("Call", (b"Transformer",)))
def check(call: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a call of one of torch's transformers that is given a mask, and no word on whether it is causal."""
    if not any(context.argument(call, mask.name, mask.place) for masks in _MASKS.values() for mask in masks):
        return  # which most calls are, and cheap to see
    from torchlint.edits.expressions import with_argument
    from torchlint.edits.messages import how_often
    from torchlint.semantics.values.lattice import Device

    from .masks import is_causal, is_none, layer

    if not call.args or context.has_unpacking(call) or not isinstance(call.func, (cst.Name, cst.Attribute)):
        return
    kind = layer(call.func, context) or ""
    asked = [
        (mask, given)
        for mask in _MASKS.get(kind, ())
        if (given := context.argument(call, mask.name, mask.place)) is not None
        and context.argument(call, mask.hint, mask.hint_place) is None
        and not is_none(given)
    ]
    if not asked or any(context.device(each) is Device.CPU for each in (call.args[0].value, asked[0][1])):
        return
    hints = ", ".join(f"{mask.hint}=True" for mask, _ in asked)
    all_causal = all(is_causal(given, context) for _, given in asked)
    knows_hints = context.settings.target_torch >= _HINTED_SINCE.get(kind, (2, 0))
    yield Flag(
        call,
        _COMPARED.of(
            layer=context.shown(call.func),
            mask=context.shown(asked[0][1]),
            often=how_often(call, context),
            hint=hints if all_causal else f"{asked[0][0].hint}=True` or `=False",
        ),
        title=f"Pass `{hints}`",
        edits=(with_argument(call, hints, context),) if all_causal and knows_hints else (),
        applicability=Applicability.SAFE,
        doubts=weighed(RULE, _doubts(call, [given for _, given in asked], context)),
    )


def _doubts(call: cst.Call, masks: list[cst.BaseExpression], context: Context) -> Iterator[Doubt]:
    """What speaks against the wait: a mask that may have an axis for heads is not compared, for its shape."""
    from torchlint.analyses.sync.avoidable import wait_doubts

    from .masks import may_be_compared

    source = call.args[0].value
    place = next((each for each in (*masks, source) if context.is_on_gpu(each)), source)
    yield from wait_doubts(call, place, context)
    if not any(may_be_compared(mask, context) for mask in masks):
        yield Doubt.DATA_UNKNOWN
