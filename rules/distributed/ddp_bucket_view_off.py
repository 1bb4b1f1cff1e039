"""`DistributedDataParallel` that keeps all gradients twice: as they are, and in the buckets that travel."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Applicability, Call, Context, Doubt, Flag, Message, Rule
from torchlint.semantics.knowledge.conventions.texts import TRAINING_STEP
from torchlint.semantics.knowledge.conventions.values import FROZEN_MODEL

RULE = Rule(
    name="ddp-bucket-view-off",
    code="TL708",
    group="distributed",
    summary="`DistributedDataParallel` stores every gradient twice and copies between the two.",
    since="0.2.0",
    default=False,
    fix=(Applicability.UNSAFE,),
    unsafe="`.grad` becomes a view: `grad.detach_()` raises an error",
    doubts=((Doubt.NAMED_OTHERWISE, ""),),
)
_TWICE = Message(
    "twice",
    "`DistributedDataParallel` stores every gradient twice and copies between the two at every step",
    help="pass `{option}=True`",
)
_OPTION = "gradient_as_bucket_view"
# Where it comes by position.
_PLACE = 10


@RULE.on(Call("torch.nn.parallel.DistributedDataParallel"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag the construction without the option; the fix adds it."""
    from torchlint.edits.expressions import with_argument

    if not node.args or context.has_unpacking(node) or len(node.args) > _PLACE:
        return
    if any(argument.keyword is not None and argument.keyword.value == _OPTION for argument in node.args):
        return
    if (
        not TRAINING_STEP.suggests(context.program.code)
        or _is_evaluation(node, context)
        or _replaces_gradients(context)
    ):
        return
    from ._shared.replicas import (
        has_few_gradients,
        is_for_old_torch,
        is_for_the_host,
        keeps_gradients_elsewhere,
        takes_one_step,
    )

    if is_for_the_host(node, context) or keeps_gradients_elsewhere(context) or takes_one_step(node, context):
        return
    if is_for_old_torch(node, context) or has_few_gradients(node, context):
        return
    yield Flag(
        node,
        _TWICE.of(option=_OPTION),
        title=f"Pass `{_OPTION}=True`",
        edits=(with_argument(node, f"{_OPTION}=True", context),),
        doubts=(Doubt.NAMED_OTHERWISE,) if _is_frozen(node.args[0].value) else (),
    )


def _is_evaluation(node: cst.Call, context: Context) -> bool:
    """Whether autograd is off where the model is wrapped."""
    from torchlint.semantics.execution.grad_mode import GradMode

    return context.grad(node) is GradMode.OFF


def _is_frozen(model: cst.BaseExpression) -> bool:
    """Whether the model is not trained, by its name: `teacher`."""
    name = model.attr if isinstance(model, cst.Attribute) else model
    words = name.value.lower().split("_") if isinstance(name, cst.Name) else []
    return any(FROZEN_MODEL.suggests(word) for word in words)


def _replaces_gradients(context: Context) -> bool:
    """Whether code in the file gives parameters other gradients, detaches them in place, or keeps zeros in them."""
    for attribute in context.uses.attributes("grad"):
        match context.parent(attribute):
            case cst.AssignTarget():
                if not _is_emptied(attribute, context):
                    return True
            case cst.Attribute(attr=cst.Name(value="detach_" | "data" | "set_" | "resize_")):
                return True
    return False


def _is_emptied(attribute: cst.Attribute, context: Context) -> bool:
    """`parameter.grad = None`, which the next backward pass makes a view again."""
    statement = context.tree.statement(attribute)
    return (
        isinstance(statement, cst.Assign) and isinstance(statement.value, cst.Name) and statement.value.value == "None"
    )
