"""A builtin such as `max` given a tensor: Python goes over it row by row, with a kernel or a wait for each."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Applicability, Call, Context, Doubt, Flag, Message, NodeEdit, Replace, Rule

RULE = Rule(
    name="builtin-reduction-on-tensor",
    code="TL902",
    group="vectorise",
    summary="A builtin such as `sum` or `max` iterates over a tensor in Python, row by row.",
    since="0.2.0",
    fix=(Applicability.UNSAFE,),
    unsafe="order of sums, NaN and empty tensors behave differently",
    yields_to=("graph-break-in-compiled",),
    eager=True,
    doubts=((Doubt.NAMED_RARE, ""),),
)
_ROWS = Message("rows", "`{call}` {verb} the rows of `{tensor}` one by one, {cost}", help="use `{instead}`")
# What the tensor does in the place of each, and what the builtin does with one row after the other.
_INSTEAD = {
    "sum": ("{}.sum(0)", "adds"),
    "max": ("{}.max()", "compares"),
    "min": ("{}.min()", "compares"),
    "any": ("{}.any()", "tests"),
    "all": ("{}.all()", "tests"),
    "sorted": ("{}.sort()", "compares"),
}
_TESTS = (".any()", ".all()")


@RULE.on(*(Call(name) for name in _INSTEAD))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a builtin with a tensor as its only argument; the fix calls the method of the tensor."""
    from torchlint.analyses.batching.extent import may_wait
    from torchlint.analyses.execution.rarity import named_rare
    from torchlint.edits.expressions import shown_owner

    from .reductions import reduced

    tensor = reduced(node, context)
    if tensor is None:
        return
    assert isinstance(node.func, cst.Name)
    name = node.func.value
    instead, verb = _INSTEAD[name]
    shown = shown_owner(tensor, context)
    cost = "with a kernel launch for each"
    if name != "sum" and may_wait(tensor, context):
        cost = "and each synchronizes"
    yield Flag(
        node,
        _ROWS.of(call=context.shown(node), verb=verb, tensor=shown, cost=cost, instead=instead.format(shown)),
        title="Use the method of the tensor",
        edits=_edits(node, tensor, instead, context) if name != "sorted" else (),
        doubts=named_rare(node, context),
    )


def _edits(node: cst.Call, tensor: cst.BaseExpression, instead: str, context: Context) -> tuple[NodeEdit, ...]:
    from torchlint.edits.expressions import as_owner, in_place_of, loses_comment

    if loses_comment(node, tensor, context=context):
        return ()
    code = instead.format(as_owner(tensor, context))
    if instead.endswith(_TESTS) and not _is_tested(node, context):
        code = f"bool({code})"
    return (Replace(node, in_place_of(node, code, context)),)


def _is_tested(node: cst.Call, context: Context) -> bool:
    """Whether the result is only asked for whether it is true."""
    match context.parent(node):
        case cst.UnaryOperation(operator=cst.Not()):
            return True
        case cst.If(test=test) | cst.While(test=test) | cst.IfExp(test=test) | cst.Assert(test=test):
            return test is node
    return False
