"""cuDNN switched off for the whole process, so that convolutions and recurrent layers take slower ways."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Applicability, Context, Doubt, Flag, Message, Node, Replace, Rule
from torchlint.semantics.knowledge.conventions.comments import CUDNN_REASON
from torchlint.semantics.knowledge.marks import SECOND_GRADIENTS

RULE = Rule(
    name="cudnn-disabled",
    code="TL622",
    group="precision",
    summary="Without cuDNN, convolutions and recurrent layers run on slower kernels.",
    since="0.2.0",
    fix=(Applicability.UNSAFE,),
    unsafe="cuDNN kernels round differently, and some are not deterministic",
    doubts=((Doubt.MEANT, ""),),
)
_DISABLED = Message(
    "disabled",
    "without cuDNN, convolutions and recurrent layers run on slower kernels",
    help="leave it on; for repeatable results `torch.backends.cudnn.deterministic = True` is enough",
)
_FLAG = "torch.backends.cudnn.enabled"


@RULE.on(Node("Assign", (b"cudnn",)))
def check(node: cst.Assign, context: Context) -> Iterator[Flag]:
    """Flag `torch.backends.cudnn.enabled = False` that nobody asked for, explains or takes back."""
    match node:
        case cst.Assign(
            targets=[cst.AssignTarget(target=cst.Attribute(attr=cst.Name(value="enabled")) as target)],
            value=cst.Name(value="False") as value,
        ) if context.qualified_name(target) == _FLAG:
            pass
        case _:
            return
    if _is_asked_for(node, context) or _is_explained(node, context) or _is_needed(context):
        return
    if _is_set_again(node, context):
        return
    yield Flag(
        node,
        _DISABLED.of(),
        title="Leave cuDNN on",
        edits=(Replace(value, "True"),),
        doubts=(Doubt.MEANT,) if _is_for_the_same_results(node, context) else (),
    )


def _is_for_the_same_results(node: cst.Assign, context: Context) -> bool:
    """Whether it stands beside `torch.use_deterministic_algorithms(True)`, for runs that are to be repeated."""
    return any(
        context.qualified_name(call.func) == "torch.use_deterministic_algorithms"
        and context.function(call) is context.function(node)
        for call in context.tree.of(cst.Call)
    )


def _is_asked_for(node: cst.Assign, context: Context) -> bool:
    """Whether the program chooses, by an option or by the machine that it runs on."""
    return not all(
        isinstance(test, cst.Name) and test.value in ("True", "__debug__")
        for test, _ in context.conditions(node, across_functions=True)
    )


def _is_explained(node: cst.Assign, context: Context) -> bool:
    """Whether a comment at the line, or right above it, gives a reason."""
    from torchlint.analyses.execution.meant import is_meant

    return is_meant(node, context, behind=CUDNN_REASON, above=CUDNN_REASON)


def _is_needed(context: Context) -> bool:
    """Whether the file takes gradients of gradients, which cuDNN's recurrent layers do not have."""
    return SECOND_GRADIENTS.is_in(context.program.code)


def _is_set_again(node: cst.Assign, context: Context) -> bool:
    """Whether the file sets the flag in another place, too: there it is for a part of the program."""
    return any(
        context.qualified_name(target.target) == _FLAG
        for other in context.tree.of(cst.Assign)
        if other is not node
        for target in other.targets
        if isinstance(target.target, cst.Attribute)
    )
