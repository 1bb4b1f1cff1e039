"""Which calls a value is passed to, under the names that its function gives it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.semantics.context import Context

# Methods that give the same data in another place, shape or type.
_KEEPING = frozenset(
    "cuda cpu to float half double bfloat16 type view reshape unsqueeze squeeze contiguous transpose permute expand "
    "clone flatten requires_grad_".split()
)


def takers(value: cst.BaseExpression, context: Context) -> list[cst.Call]:
    """The calls in the function around it that get the value as an argument, in source order, each once."""
    found: dict[cst.Call, None] = {}
    seen: set[cst.CSTNode] = set()
    waiting: list[cst.BaseExpression] = [value]
    home = context.function(value)
    while waiting:
        holder = _outermost(waiting.pop(), context)
        if holder in seen or context.function(holder) is not home:
            continue
        seen.add(holder)
        match context.parent(holder):
            case cst.Arg() as argument:
                call = context.parent(argument)
                if isinstance(call, cst.Call):
                    found[call] = None
            case cst.Assign() as assign:
                for target in assign.targets:
                    waiting += _reads(target.target, assign, context)
            case cst.Element() as element:
                waiting += _unpacked(element, context)
    return sorted(found, key=context.tree.place)


def _outermost(node: cst.BaseExpression, context: Context) -> cst.BaseExpression:
    """The expression around this one that still holds the same data: `x` of `x.cuda()[:4]` in the whole."""
    while True:
        above = context.parent(node)
        match above:
            case cst.Attribute(value=inner, attr=cst.Name(value=name)) if inner is node and name in _KEEPING:
                call = context.parent(above)
                if not isinstance(call, cst.Call) or call.func is not above:
                    return node
                node = call
            case cst.Subscript(value=inner) if inner is node:
                node = above
            case cst.IfExp(test=test) if test is not node:
                node = above
            case _:
                return node


def _reads(target: cst.CSTNode, assign: cst.Assign, context: Context) -> Iterator[cst.BaseExpression]:
    if isinstance(target, cst.Name):
        yield from context.uses.of(target.value, assign)


def _unpacked(element: cst.Element, context: Context) -> Iterator[cst.BaseExpression]:
    """The reads of the name that an element goes to in `a, b = x, y`."""
    row = context.parent(element)
    assign = context.parent(row) if isinstance(row, cst.Tuple) else None
    if not isinstance(row, cst.Tuple) or not isinstance(assign, cst.Assign):
        return
    place = next(number for number, other in enumerate(row.elements) if other is element)
    for target in assign.targets:
        if isinstance(target.target, cst.Tuple) and len(target.target.elements) == len(row.elements):
            yield from _reads(target.target.elements[place].value, assign, context)
