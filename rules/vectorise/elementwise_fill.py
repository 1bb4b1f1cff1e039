"""A tensor on the CPU that nested loops write element by element, each by a call into PyTorch."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from torchlint.rule import Context, Doubt, Flag, Message, Node, Rule, Status

RULE = Rule(
    name="elementwise-fill",
    code="TL917",
    group="vectorise",
    summary="Nested loops write a tensor element by element, each by a call into PyTorch.",
    since="0.2.0",
    status=Status.PREVIEW,
    yields_to=("python-loop-over-tensor",),
    doubts=(
        (Doubt.SIZE_UNKNOWN, ""),
        (Doubt.RATE_UNKNOWN, ""),
        (Doubt.UNCALLED, ""),
        (Doubt.RUNS_ONCE, ""),
        (Doubt.RARE, ""),
    ),
)
_WRITES = Message(
    "writes",
    "nested loops write `{tensor}` element by element{often}",
    help="compute all elements at once by broadcasting, or fill a list and make the tensor of it",
)
# Writes that are few however large the tensor is, such as those of a rotation or a camera's matrix.
_FEW = 4
_FEW_IN_ALL = 256


@RULE.on(Node("For", (b"range(",)))
def check(node: cst.For, context: Context) -> Iterator[Flag]:
    """Flag the first of the writes of one tensor in the body of the innermost loop, with the others as places."""
    from torchlint.analyses.batching.batchable import batchable
    from torchlint.analyses.data.sample_code import is_for_samples
    from torchlint.analyses.execution.hot import rate_doubts
    from torchlint.edits.messages import how_often

    loops = _counted(node, context)
    if len(loops) < 2:
        return
    writes = [write for write in _writes(node, context) if _is_filled(write, loops, context)]
    if not writes or any(batchable(loop, context) is not None for loop in loops.values()):
        return
    outermost = list(loops.values())[-1]
    if is_for_samples(outermost, context) or _runs_a_network(outermost, context):
        return
    turns = _turns(loops, context)
    if turns is not None and turns <= _FEW_IN_ALL:
        return
    tensor = _owner(writes[0])
    assert tensor is not None
    yield Flag(
        writes[0],
        _WRITES.of(tensor=tensor.value, often=how_often(outermost, context)),
        places=tuple(writes[1:]),
        doubts=(*(() if turns is not None else (Doubt.SIZE_UNKNOWN,)), *rate_doubts(outermost, context)),
    )


def _runs_a_network(loop: cst.For, context: Context) -> bool:
    """Whether an iteration calls a network, beside which a write costs nothing."""
    from torchlint.semantics.values.lattice import Kind
    from torchlint.syntax.tree import descendants

    calls = (part for part in descendants(loop.body) if isinstance(part, cst.Call))
    return any(context.kind(call.func) is Kind.MODULE for call in calls)


def _counted(node: cst.For, context: Context) -> dict[str, cst.For]:
    """The loops around and including this one of more than a few iterations, by their counters, innermost first."""
    found: dict[str, cst.For] = {}
    for loop in (node, *context.around(node, cst.For, within=context.function(node))):
        match loop:
            case cst.For(target=cst.Name(value=counter), iter=cst.Call(func=func, args=args)):
                if context.qualified_name(func) != "range" or any(argument.star for argument in args):
                    continue
                number = _number(args, context)
                if number is None or number > _FEW:
                    found.setdefault(counter, loop)
    return found


def _number(args: Sequence[cst.Arg], context: Context) -> int | None:
    from torchlint.syntax.literals import integer

    given = [integer(context.stands_for(argument.value) or argument.value) for argument in args]
    if not given or None in given:
        return None
    return len(range(*(number for number in given if number is not None)))


def _turns(loops: dict[str, cst.For], context: Context) -> int | None:
    """How often the innermost body runs, where that is literal."""
    turns = 1
    for loop in loops.values():
        number = _number(loop.iter.args, context) if isinstance(loop.iter, cst.Call) else None
        if number is None:
            return None
        turns *= number
    return turns


def _writes(node: cst.For, context: Context) -> Iterator[cst.Assign]:
    """The assignments to parts of names that this loop runs itself, and no loop within it."""
    from torchlint.syntax.tree import descendants_in_scope

    for part in descendants_in_scope(node.body):
        if isinstance(part, cst.Assign) and _owner(part) is not None and context.loop(part) is node:
            yield part


def _owner(write: cst.Assign) -> cst.Name | None:
    """The `t` of `t[i, j] = x`, and of `t[i][j] = x`."""
    if len(write.targets) != 1 or not isinstance(write.targets[0].target, cst.Subscript):
        return None
    owner: cst.BaseExpression = write.targets[0].target
    while isinstance(owner, cst.Subscript):
        owner = owner.value
    return owner if isinstance(owner, cst.Name) else None


def _is_filled(write: cst.Assign, loops: dict[str, cst.For], context: Context) -> bool:
    """Whether it writes one element of a tensor by the counters of two loops, and none reads what others wrote."""
    from torchlint.syntax.tree import descendants

    owner = _owner(write)
    if owner is None or not context.is_tensor(owner):
        return False
    counters = set()
    for part in descendants(write.targets[0].target):
        if isinstance(part, (cst.Slice, cst.SimpleString)):
            return False
        if isinstance(part, cst.Name) and part.value in loops:
            counters.add(part.value)
    if len(counters) < 2:
        return False
    outermost = list(loops.values())[-1]
    written = [_owner(part) for part in descendants(outermost.body) if isinstance(part, cst.Assign)]
    return not any(
        isinstance(part, cst.Name) and part.value == owner.value and all(part is not name for name in written)
        for part in descendants(outermost.body)
    )
