"""The norm of all gradients, added up on the CPU: one wait for the device for each parameter."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Call, Context, Flag, Message, Method, Rule

from ._shared.doubts import WAIT_DOUBTS

RULE = Rule(
    name="grad-norm-by-hand",
    code="TL314",
    group="sync",
    summary="Adding up the gradient norm on the CPU synchronizes with the GPU once per parameter.",
    since="0.2.0",
    doubts=WAIT_DOUBTS,
)
_PER_PARAMETER = Message(
    "per-parameter",
    "`{read}` synchronizes with the GPU once for each parameter{often}",
    help="compute the norm on the GPU with {function}",
)

_NORMS = frozenset({"norm", "vector_norm"})
_GET_TOTAL_NORM = (2, 6)


@RULE.on(Method("item"), Call("float"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag the read of a gradient's norm that goes into a sum over parameters."""
    from torchlint.analyses.execution.hot import rate_doubts
    from torchlint.edits.messages import how_often

    read = _read(node)
    if read is None or not _is_norm_of_a_gradient(read, context) or not _is_summed(node, context):
        return
    if context.settings.target_torch >= _GET_TOTAL_NORM:
        advice = "`torch.nn.utils.get_total_norm`"
    else:
        advice = "`torch.nn.utils.clip_grad_norm_`, which returns it"
    yield Flag(
        node,
        _PER_PARAMETER.of(read=context.shown(node), function=advice, often=how_often(node, context)),
        doubts=rate_doubts(node, context),
    )


def _read(call: cst.Call) -> cst.BaseExpression | None:
    """The `t` of `t.item()` and of `float(t)`."""
    match call:
        case cst.Call(func=cst.Attribute(value=read, attr=cst.Name(value="item")), args=[]):
            return read
        case cst.Call(func=cst.Name(value="float"), args=[cst.Arg(value=read, keyword=None, star="")]):
            return read
    return None


def _is_norm_of_a_gradient(read: cst.BaseExpression, context: Context) -> bool:
    """`p.grad.data.norm(2)`, a power of it, or a name for that."""
    from torchlint.semantics.names.bindings import last_part
    from torchlint.syntax.tree import descendants

    if isinstance(read, cst.Name):
        value = context.stands_for(read)
        return value is not None and not isinstance(value, cst.Name) and _is_norm_of_a_gradient(value, context)
    return any(
        isinstance(call, cst.Call)
        and last_part(call.func) in _NORMS
        and any(isinstance(part, cst.Attribute) and part.attr.value == "grad" for part in descendants(call))
        for call in descendants(read)
    )


def _is_summed(read: cst.Call, context: Context) -> bool:
    """`total += read ** 2` in a loop over parameters, or `sum(read ** 2 for p in parameters)`."""

    def power(node: cst.BaseExpression, taker: cst.CSTNode) -> cst.BaseExpression | None:
        match taker:
            case cst.BinaryOperation(left=left, operator=cst.Power()) if left is node:
                return taker
        return None

    return any(_is_added_up(node, context) for node in context.destinations(read, handed_on=power).nodes)


def _is_added_up(node: cst.BaseExpression, context: Context) -> bool:
    match context.parent(node):
        case cst.AugAssign(operator=cst.AddAssign(), target=cst.Name(), value=value) as statement if value is node:
            loop = context.loop(statement)
            return isinstance(loop, cst.For) and loop is not context.frequencies.batch_loop(statement)
        case (cst.GeneratorExp(elt=element) | cst.ListComp(elt=element)) as numbers if element is node:
            argument = context.parent(numbers)
            call = context.parent(argument) if isinstance(argument, cst.Arg) else None
            return isinstance(call, cst.Call) and context.qualified_name(call.func) in ("sum", "builtins.sum")
    return False
