"""A whole tensor that is sorted for its first few places."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.rule import Applicability, Call, Context, Doubt, Flag, Message, Method, NodeEdit, Replace, Rule
from torchlint.semantics.knowledge.conventions.functions import SUPPRESSION

if TYPE_CHECKING:
    from .partial_sort import Sort

RULE = Rule(
    name="sort-for-topk",
    code="TL912",
    group="vectorise",
    summary="A tensor is sorted in full for its first few elements.",
    since="0.2.0",
    fix=(Applicability.UNSAFE,),
    unsafe="equal elements may come in another order",
    doubts=((Doubt.SIZE_UNKNOWN, ""), (Doubt.NAMED_RARE, "")),
)
_SORTED = Message(
    "sorted", "`{tensor}` is sorted in full, but only the {end} `{count}` are used", help="use `topk({count}{largest})`"
)


@RULE.on(Call("torch.sort"), Call("torch.argsort"), Method("sort"), Method("argsort"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a sort of which nothing but `[:k]` is used; the fix asks `topk` for it."""
    from torchlint.analyses.execution.rarity import named_rare, runs_rarely

    from .partial_sort import partial_sort

    found = partial_sort(node, context)
    if found is None or runs_rarely(node, context):
        return
    is_bound = found.is_bound or _removes(node, context)
    part = found.parts[0]
    largest = "" if found.is_descending != part.is_last else ", largest=False"
    yield Flag(
        node,
        _SORTED.of(
            tensor=context.shown(found.tensor),
            end="last" if part.is_last else "first",
            count=context.shown(part.count),
            largest=largest,
        ),
        title="Use `topk`",
        edits=_edits(found, largest, context),
        doubts=(*((Doubt.SIZE_UNKNOWN,) if is_bound else ()), *named_rare(node, context)),
    )


def _removes(node: cst.Call, context: Context) -> bool:
    """Whether this is a step of non-maximum suppression, where the number is a limit that is seldom reached."""
    function = context.function(node)
    return function is not None and SUPPRESSION.suggests(context.uncommented(function))


def _edits(found: Sort, largest: str, context: Context) -> tuple[NodeEdit, ...]:
    """`topk` in the place of the sort and its slice; where names stand between, of the sort, if `k` is literal."""
    from torchlint.edits.expressions import as_owner, in_place_of, loses_comment

    part = found.parts[0]
    is_one = len(found.parts) == 1 and context.tree.within(found.call, part.node)
    node = part.node if is_one else found.call
    if part.is_last or not all(each.is_certain for each in found.parts):
        return ()
    if not is_one and not isinstance(part.count, cst.Integer):
        return ()
    kept = (found.tensor, part.count) if is_one else (found.tensor,)
    if loses_comment(node, *kept, context=context) or not (is_one or _is_unpacked(found, context)):
        return ()
    axis = f", dim={context.code(found.axis)}" if found.axis is not None else ""
    code = f"{as_owner(found.tensor, context)}.topk({context.bare_code(part.count)}{axis}{largest})"
    return (Replace(node, in_place_of(node, f"{code}.{part.field}" if is_one else code, context)),)


def _is_unpacked(found: Sort, context: Context) -> bool:
    """Whether values and indices are bound to a name each."""
    above = context.parent(found.call)
    return isinstance(above, cst.Assign) and isinstance(above.targets[0].target, cst.Tuple)
