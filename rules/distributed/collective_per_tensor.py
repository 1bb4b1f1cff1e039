"""Parameters or gradients that travel between the processes one by one."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Doubt
from torchlint.rule import Call, Context, Flag, Message, Method, Rule
from torchlint.semantics.flow.query import query

RULE = Rule(
    name="collective-per-tensor",
    code="TL710",
    group="distributed",
    summary="Each parameter or gradient is sent by a collective of its own.",
    since="0.2.0",
    yields_to=("collective-every-step-for-logging",),
    doubts=(
        (Doubt.RATE_UNKNOWN, ""),
        (Doubt.UNCALLED, ""),
        (Doubt.RUNS_ONCE, "To send the weights once, at the start, takes no time worth a word."),
        (Doubt.RARE, "To send the weights once in an epoch takes no time worth a word."),
        (Doubt.WAITS_ANYWAY, "Behind a text that was generated it does not count."),
    ),
)
_ONE_BY_ONE = Message(
    "one-by-one",
    "`{call}` launches one collective for each tensor of the model{often}",
    help="flatten them into one tensor and send that, or let `DistributedDataParallel` send them in buckets",
)
_AVERAGED = Message(
    "averaged",
    "`{call}` averages each parameter by a collective of its own{often}",
    help="give it all parameters at once",
)
# Each with the name and the place of what it sends.
_SENDS = {
    "all_reduce": ("tensor", 0),
    "broadcast": ("tensor", 0),
    "reduce": ("tensor", 0),
    "all_gather": ("tensor", 1),
    "all_gather_into_tensor": ("input_tensor", 1),
    "gather": ("tensor", 0),
    "reduce_scatter_tensor": ("input", 1),
}
# The module of torch's averagers, whose method takes all parameters.
_AVERAGERS = "model_averaging"
_OF_A_MODEL = frozenset({"parameters", "named_parameters", "buffers", "named_buffers", "state_dict"})
_PASSED_ON = frozenset({"list", "tuple", "iter", "enumerate", "reversed", "sorted", "filter", "set"})


@RULE.on(*(Call(f"torch.distributed.{name}") for name in _SENDS))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a collective of one tensor in a loop over those of a model, which waits for its turn."""
    keyword, place = _SENDS[(context.qualified_name(node.func) or "").rpartition(".")[2]]
    sent = context.argument(node, keyword, place)
    if sent is None or context.has_unpacking(node) or _is_asynchronous(node, context) or _is_coalesced(node, context):
        return
    yield from _flag(node, sent, _ONE_BY_ONE, context)


@RULE.on(Method("average_parameters", (_AVERAGERS.encode(),)))
def check_average(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag one of torch's averagers that is given one parameter after the other, though it takes all of them."""
    if not context.names.spelt(_AVERAGERS):
        return
    given = context.argument(node, "params", 0)
    while isinstance(given, cst.Call) and given.args and context.qualified_name(given.func) in _PASSED_ON:
        given = given.args[0].value
    if given is not None:
        yield from _flag(node, given, _AVERAGED, context)


def _flag(node: cst.Call, sent: cst.BaseExpression, message: Message, context: Context) -> Iterator[Flag]:
    from torchlint.analyses.execution.hot import rate_doubts
    from torchlint.edits.messages import how_often

    loop = _loop_over_the_model(sent, context)
    if loop is None:
        return
    yield Flag(
        node,
        message.of(call=context.shown(node), often=how_often(loop, context)),
        doubts=rate_doubts(loop, context),
    )


def _is_asynchronous(call: cst.Call, context: Context) -> bool:
    given = context.argument(call, "async_op")
    return given is not None and not (isinstance(given, cst.Name) and given.value == "False")


def _is_coalesced(node: cst.CSTNode, context: Context) -> bool:
    """Whether a `with` around joins the collectives to one."""
    return any(
        isinstance(item.item, cst.Call)
        and (context.qualified_name(item.item.func) or "").endswith("_coalescing_manager")
        for above in context.around(node, cst.With)
        for item in above.items
    )


def _loop_over_the_model(sent: cst.BaseExpression, context: Context) -> cst.CSTNode | None:
    """The outermost loop over the tensors of a model of which this is one, or comes from one."""
    element = _element(sent, context)
    if element is None:
        return None
    loop, is_gradient = element
    iterated = loop.iter
    if not (is_gradient or _holds_tensors_of_a_model(iterated, context)):
        return None
    return _outermost(loop, iterated, context)


def _outermost(loop: cst.CSTNode, iterated: cst.BaseExpression, context: Context) -> cst.CSTNode:
    """The loop, or the one around it that gives what it goes over: `for group in optimizer.param_groups:`."""
    above = context.loop(loop)
    if not isinstance(above, cst.For):
        return loop
    names = [
        part for part in _names_in(iterated) if context.is_bound_in(part, above) and _is_target(part, above, context)
    ]
    return _outermost(above, above.iter, context) if names else loop


def _names_in(node: cst.BaseExpression) -> list[cst.Name]:
    from torchlint.syntax.tree import descendants

    return [part for part in (node, *descendants(node)) if isinstance(part, cst.Name)]


def _is_target(name: cst.Name, loop: cst.For, context: Context) -> bool:
    return any(binder is loop for binder in context.binders(name))


@query(bottom=None)
def _element(node: cst.BaseExpression, context: Context) -> tuple[cst.For | cst.CompFor, bool] | None:
    """The loop that binds what this is, or a view of; and whether it is the gradient of that."""
    match node:
        case cst.Attribute(value=owner, attr=cst.Name(value="data" | "grad" as name)):
            found = _element(owner, context)
            return None if found is None else (found[0], found[1] or name == "grad")
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="detach" | "contiguous" | "clone")), args=[]):
            return _element(owner, context)
        case cst.Name():
            match context.binders(node):
                case [cst.For() | cst.CompFor() as loop]:
                    return loop, False
                case [cst.Assign()]:
                    value = context.stands_for(node)
                    return None if value is None or value is node else _element(value, context)
    return None


@query(bottom=False)
def _holds_tensors_of_a_model(node: cst.BaseExpression, context: Context) -> bool:
    """Whether this holds parameters, buffers or the values of a state: `model.parameters()`, `group["params"]`."""
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value=name)), args=args) if name in _OF_A_MODEL:
            return not any(argument.star for argument in args)
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="values" | "items")), args=[]):
            return _holds_tensors_of_a_model(owner, context)
        case cst.Call(func=func, args=[*_, cst.Arg(value=last)]) if context.qualified_name(func) in _PASSED_ON:
            return _holds_tensors_of_a_model(last, context)
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString() as key))]):
            return key.evaluated_value == "params"
        case cst.ListComp(for_in=cst.CompFor(iter=iterated)) | cst.GeneratorExp(for_in=cst.CompFor(iter=iterated)):
            return _holds_tensors_of_a_model(iterated, context)
        case cst.Name():
            return context.origins(node).every(lambda value: _holds_tensors_of_a_model(value, context))
    return False
