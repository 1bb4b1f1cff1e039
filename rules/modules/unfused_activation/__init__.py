"""An activation written as a formula: a kernel for each operation, and each result kept for the backward pass."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.finding import Frequency
from torchlint.rule import Applicability, Call, Context, Doubt, Flag, Message, Method, NodeEdit, Replace, Rule

if TYPE_CHECKING:
    import libcst as cst

    from .formulas import Activation

RULE = Rule(
    name="unfused-activation",
    code="TL508",
    group="modules",
    summary="A hand-written activation launches a kernel per operation and saves every result for backward.",
    since="0.2.0",
    fix=(Applicability.UNSAFE,),
    unsafe="the last digits differ",
    eager=True,
    doubts=((Doubt.SIZE_UNKNOWN, ""), (Doubt.MEANT, "")),
)
_UNFUSED = Message(
    "unfused",
    "`{formula}` launches {operations} kernels{often} and saves their results for backward",
    help="use `torch.nn.functional.{function}`, which is one kernel",
)
_FUNCTIONAL = "torch.nn.functional."
# What speaks of an activation in a function with a gradient of its own.
_PARTS = ("sigmoid", "tanh", "softplus", "erf")


@RULE.on(
    Call("torch.sigmoid"), Call("torch.nn.functional.sigmoid"), Method("sigmoid"),
    Call("torch.tanh"), Call("torch.nn.functional.tanh"), Method("tanh"),
    Call("torch.erf"), Method("erf"), Call("torch.nn.functional.relu6"),
)  # fmt: skip
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a formula that is SiLU, GELU, Mish or Hardswish."""
    from torchlint.edits.messages import how_often

    from .._shared.fused_elsewhere import is_named_fused
    from .formulas import activation
    from .reference_code import is_reference

    found = activation(node, context)
    if found is None or _is_meant(found, context) or context.frequency(found.formula) is Frequency.ONCE:
        return
    is_meant = is_reference(node, context) or is_named_fused(node, context)
    shown = f"{found.function}({context.shown(found.variable)}{found.arguments})"
    yield Flag(
        found.formula,
        _UNFUSED.of(
            formula=context.shown(found.formula),
            operations=found.operations,
            function=shown,
            often=how_often(found.formula, context),
        ),
        title=f"Call `{found.function}`",
        edits=_edits(found, context),
        doubts=(Doubt.SIZE_UNKNOWN, *((Doubt.MEANT,) if is_meant else ())),
    )


def _is_meant(found: Activation, context: Context) -> bool:
    """Whether the author knows of torch's own, or somebody else fuses the formula."""
    from torchlint.analyses.execution.meant import said

    from .._shared.fused_elsewhere import is_fused_elsewhere
    from .reference_code import has_own_gradient, is_unchosen

    names = (f"nn.{found.layer}", f"F.{found.function}", f"functional.{found.function}")
    if any(name in context.program.code for name in names) or any(
        context.qualified_name(attribute) in (f"torch.nn.{found.layer}", _FUNCTIONAL + found.function)
        for name in (found.layer, found.function)
        for attribute in context.uses.attributes(name)
    ):
        return True
    if any(name in comment for comment in said(found.formula, context) for name in (found.layer, found.function)):
        return True
    if is_unchosen(found.formula, context) or has_own_gradient(_PARTS, context):
        return True
    return is_fused_elsewhere(found.formula, context)


def _edits(found: Activation, context: Context) -> tuple[NodeEdit, ...]:
    from torchlint.edits.expressions import in_place_of, loses_comment
    from torchlint.edits.imports import spelling

    name = spelling(_FUNCTIONAL + found.function, found.formula, context)
    if not name or not found.is_in_one_piece or loses_comment(found.formula, context=context):
        return ()
    code = f"{name}({context.bare_code(found.variable)}{found.arguments})"
    return (Replace(found.formula, in_place_of(found.formula, code, context)),)
