"""A transformer, or a network of large linear layers, that is trained in float32 without TF32."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Applicability, Context, Flag, Message, Method, Rule, Status
from torchlint.semantics.knowledge.marks import FP32_PRECISION

RULE = Rule(
    name="tf32-not-enabled",
    code="TL601",
    group="precision",
    summary="Products of float32 matrices do not use tensor cores unless TF32 is allowed.",
    since="0.2.0",
    status=Status.PREVIEW,
    default=False,
    fix=(Applicability.UNSAFE,),
    unsafe="products have about three correct digits instead of seven",
    yields_to=("no-mixed-precision",),
)
_NO_TF32 = Message(
    "no-tf32",
    "every step multiplies matrices in float32, without tensor cores",
    help='call `torch.set_float32_matmul_precision("high")` at the start, which allows TF32',
)
_SETTER = "torch.set_float32_matmul_precision"
# Layers of this width spend their time in the product.
_LARGE = 1024
_SOME = 2


@RULE.on(Method("backward"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag the backward pass of a script that trains such a network on a device and never speaks of precision."""
    from .._shared.training_script import attends, has_settled_on_a_precision, is_first_step
    from .insertion_point import below_imports

    if FP32_PRECISION.is_in(context.program.code) or has_settled_on_a_precision(context):
        return
    if not (attends(context) or _has_large_layers(context)) or not is_first_step(node, context):
        return
    # The older of the two ways to say it: whoever reads it after the newer one was used gets an error.
    edit = below_imports(_SETTER, '("high")', context)
    yield Flag(
        node,
        _NO_TF32.of(),
        title="Allow TF32" if edit else "",
        edits=edit,
    )


def _has_large_layers(context: Context) -> bool:
    """Whether the script makes linear layers whose sides are both large, by numbers in the file."""
    large = [
        call
        for call in context.tree.of(cst.Call)
        if len(call.args) > 1
        and context.qualified_name(call.func) == "torch.nn.Linear"
        and all(_is_large(argument, context) for argument in call.args[:2])
    ]
    return len(large) >= _SOME


def _is_large(argument: cst.Arg, context: Context) -> bool:
    from torchlint.analyses.provenance.constants import constant

    value = constant(argument.value, context)
    return isinstance(value, cst.Integer) and int(value.value, 0) >= _LARGE
