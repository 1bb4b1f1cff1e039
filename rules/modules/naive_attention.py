"""Hand-written attention, which materializes the full attention matrix several times."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Call, Context, Flag, Message, Method, Rule
from torchlint.semantics.knowledge.conventions.texts import ATTENTION_KNOWN

RULE = Rule(
    name="naive-attention",
    code="TL505",
    group="modules",
    summary="Hand-written attention materializes the full attention matrix.",
    since="0.2.0",
    eager=True,
)
_MATERIALIZED = Message(
    "materialized",
    "this softmax materializes the full attention matrix{often}",
    help="use `torch.nn.functional.scaled_dot_product_attention`{mask}",
)


@RULE.on(Call("torch.softmax"), Call("torch.nn.functional.softmax"), Method("softmax"), Call("torch.nn.Softmax"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag the softmax between the product of queries and keys and that with the values."""
    if ATTENTION_KNOWN.suggests(context.program.code):
        return
    from torchlint.edits.messages import how_often

    from ._shared.attention import attention

    for softmax in _softmaxes(node, context):
        found = attention(softmax, context)
        if found is not None:
            mask = ", with the mask as `attn_mask`" if found.is_masked else ""
            yield Flag(
                softmax,
                _MATERIALIZED.of(often=how_often(softmax, context), mask=mask),
                about=(found.scores, found.output),
            )


def _softmaxes(node: cst.Call, context: Context) -> Iterator[cst.Call]:
    """The call itself, or where it makes a layer under another name than `softmax` the calls of that."""
    if context.qualified_name(node.func) != "torch.nn.Softmax":
        yield node
        return
    match context.parent(node):
        case cst.Call(func=func) as call if func is node:
            yield call
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute(attr=cst.Name(value=name)) as target)]):
            owner = context.uses.owner(target)
            if owner is not None and name != "softmax":
                for use in context.uses.of_attribute(owner, name) or ():
                    called = context.parent(use)
                    if isinstance(called, cst.Call) and called.func is use:
                        yield called
