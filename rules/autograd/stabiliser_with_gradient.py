"""A softmax written by hand whose maximum takes part in the backward pass, where its gradient is zero."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Call, Context, Doubt, Flag, Message, Method, Rule, Status
from torchlint.semantics.knowledge.apis import GROUPED_REDUCTIONS

RULE = Rule(
    name="stabiliser-with-gradient",
    code="TL418",
    group="autograd",
    summary="The maximum that a hand-written softmax subtracts is differentiated, though its gradient is zero.",
    since="0.2.0",
    status=Status.PREVIEW,
    doubts=(
        (Doubt.SIZE_UNKNOWN, ""),
        (Doubt.RATE_UNKNOWN, ""),
        (Doubt.UNCALLED, ""),
        (Doubt.RARE, "A backward pass now and then takes no time."),
        (Doubt.RUNS_ONCE, "One backward pass takes no time."),
    ),
)
_DIFFERENTIATED = Message(
    "differentiated",
    "`{maximum}` is differentiated{often}, though its gradient cancels to zero",
    help="compute it under `torch.no_grad()` or `.detach()` it{whole}",
)
_NAMES = ("max", "amax")


@RULE.on(Method("exp"), Call("torch.exp"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag the maximum `m` of `(x - m).exp()` that is divided by its own sum, where autograd records it."""
    from torchlint.analyses.execution.hot import rate_doubts
    from torchlint.edits.messages import how_often
    from torchlint.semantics.execution.grad_mode import GradMode

    difference = _operand(node, context)
    if not isinstance(difference, cst.BinaryOperation) or not isinstance(difference.operator, cst.Subtract):
        return
    x, maximum = difference.left, difference.right
    made = _maximum(maximum, x, context)
    if made is None or context.grad(node) is GradMode.OFF or any(context.grad(each) is GradMode.OFF for each in made):
        return
    if not _is_normalised(node, context):
        return
    is_dense = not any(_last(each, context).endswith(GROUPED_REDUCTIONS) for each in made)
    doubts = (*rate_doubts(node, context), Doubt.SIZE_UNKNOWN)
    yield Flag(
        made[0],
        _DIFFERENTIATED.of(
            maximum=context.shown(made[0]),
            often=how_often(node, context),
            whole=", or call `torch.softmax`, which does all of it" if is_dense else "",
        ),
        places=made[1:],
        doubts=doubts,
    )


def _operand(node: cst.Call, context: Context) -> cst.BaseExpression | None:
    """What the exponential is taken of, if that is written there or bound to a name once."""
    if context.qualified_name(node.func) == "torch.exp":
        operand = node.args[0].value if len(node.args) == 1 and node.args[0].keyword is None else None
    else:
        operand = node.func.value if isinstance(node.func, cst.Attribute) and not node.args else None
    return context.stands_for(operand) if operand is not None else None


def _maximum(node: cst.BaseExpression, x: cst.BaseExpression, context: Context) -> tuple[cst.Call, ...] | None:
    """The calls that make it a maximum of `x`; None where it may be anything else, or is detached."""
    from torchlint.semantics.flow.origins import Through

    first = _unpacked(node, context)
    nodes = (first,) if first is not None else context.origins(node, Through.PARTS).nodes
    calls = [_call(made, x, context) for made in nodes]
    found = tuple(call for call in calls if call is not None)
    return found if found and len(found) == len(calls) else None


def _unpacked(node: cst.BaseExpression, context: Context) -> cst.BaseExpression | None:
    """`x.max(-1)` for the `m` of `m, _ = x.max(-1)`."""
    match context.binders(node) if isinstance(node, cst.Name) else ():
        case [cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(elements=[first, _]))], value=value)]:
            is_first = isinstance(first.value, cst.Name) and first.value.deep_equals(node)
            return value if is_first else None
    return None


def _call(made: cst.CSTNode, x: cst.BaseExpression, context: Context) -> cst.Call | None:
    """`x.max(…)` of `x.max(-1, keepdim=True)[0]`, of `.values` of it, and of what only spreads it out again."""
    while True:
        match made:
            case cst.Subscript(value=inner) | cst.Attribute(value=inner, attr=cst.Name(value="values")):
                made = inner
            case cst.Name():
                bound = context.stands_for(made)
                if bound is None or bound is made:
                    return None
                made = bound
            case cst.Call(
                func=cst.Attribute(
                    value=inner,
                    attr=cst.Name(value="index_select" | "unsqueeze" | "expand" | "expand_as" | "view" | "gather"),
                )
            ):
                made = inner
            case cst.Call():
                return made if _is_maximum_of(made, x, context) else None
            case _:
                return None


def _is_maximum_of(call: cst.Call, x: cst.BaseExpression, context: Context) -> bool:
    last = _last(call, context)
    if last in _NAMES:
        is_function = context.qualified_name(call.func) in ("torch.max", "torch.amax")
        if is_function:
            of = call.args[0].value if call.args else None
            given = call.args[1:]
        else:
            of = call.func.value if isinstance(call.func, cst.Attribute) else None
            given = call.args
        return of is not None and of.deep_equals(x) and bool(given)
    if not last.endswith(GROUPED_REDUCTIONS):
        return False
    reduce = context.argument(call, "reduce")
    is_max = last.endswith("max") or (
        isinstance(reduce, cst.SimpleString) and reduce.evaluated_value in ("max", "amax")
    )
    return is_max and bool(call.args) and call.args[0].value.deep_equals(x)


def _last(call: cst.Call, context: Context) -> str:
    from torchlint.semantics.names.bindings import last_part

    return (context.qualified_name(call.func) or last_part(call.func) or "").rpartition(".")[2]


def _is_normalised(node: cst.Call, context: Context) -> bool:
    """Whether the exponential is divided by a sum of itself, so that any factor in it cancels."""
    places = list(context.destinations(node).nodes)
    if not places:
        return False
    divided = [place for place in places if _dividend(place, context) is not None]
    summed = [place for place in places if place not in divided]
    if not divided or not all(_is_summed(place, context) for place in summed):
        return False
    return all(_holds_a_sum(_dividend(place, context), summed, context) for place in divided)


def _dividend(place: cst.BaseExpression, context: Context) -> cst.BaseExpression | None:
    """What a place is divided by."""
    match context.parent(place):
        case cst.BinaryOperation(left=left, operator=cst.Divide(), right=right) if left is place:
            return right
    return None


def _is_summed(place: cst.BaseExpression, context: Context) -> bool:
    """`e.sum(-1)`, `torch.sum(e, -1)`, `scatter(e, index, reduce="sum")`."""
    match context.parent(place):
        case cst.Attribute(attr=cst.Name(value="sum")):
            return True
        case cst.Arg() as argument:
            call = context.parent(argument)
            if not isinstance(call, cst.Call) or call.args[0] is not argument:
                return False
            if context.qualified_name(call.func) == "torch.sum":
                return True
            reduce = context.argument(call, "reduce")
            is_sum = isinstance(reduce, cst.SimpleString) and reduce.evaluated_value in ("sum", "add")
            last = _last(call, context)
            return last.endswith(GROUPED_REDUCTIONS) and (is_sum or last.endswith(("_add", "_sum")))
    return False


def _holds_a_sum(divisor: cst.BaseExpression | None, summed: list[cst.BaseExpression], context: Context) -> bool:
    """Whether a sum of the exponential goes into what it is divided by."""
    if divisor is None:
        return False
    parts = set(context.ingredients(divisor))
    return any(place in parts for place in summed)
