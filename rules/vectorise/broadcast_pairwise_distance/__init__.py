"""Distances between all pairs of points, by way of a tensor that holds the difference of each pair."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Applicability, Call, Context, Doubt, Flag, Message, Method, NodeEdit, Replace, Rule, Status

if TYPE_CHECKING:
    import libcst as cst

    from .distances import Distances

RULE = Rule(
    name="broadcast-pairwise-distance",
    code="TL910",
    group="vectorise",
    summary="Pairwise distances materialize the differences of all pairs.",
    since="0.2.0",
    status=Status.PREVIEW,
    default=False,
    fix=(Applicability.UNSAFE,),
    unsafe="the last digits differ, more so for close points",
    doubts=((Doubt.NAMED_RARE, ""),),
    eager=True,
)
_PAIRS = Message(
    "pairs", "the differences of all pairs of `{rows}` and `{columns}` are materialized", help="use `torch.cdist`"
)


@RULE.on(
    Method("sum"),
    Method("norm"),
    Call("torch.sum"),
    Call("torch.norm"),
    Call("torch.linalg.norm"),
    Call("torch.linalg.vector_norm"),
)
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag `((a[:, None, :] - b[None, :, :]) ** 2).sum(-1)`; the fix asks `torch.cdist`."""
    from torchlint.analyses.execution.rarity import named_rare, runs_rarely

    from .distances import distances

    found = distances(node, context)
    if found is None or runs_rarely(node, context):
        return
    yield Flag(
        node,
        _PAIRS.of(rows=context.shown(found.rows), columns=context.shown(found.columns)),
        title="Use `torch.cdist`",
        edits=_edits(found, context),
        doubts=named_rare(node, context),
    )


def _edits(found: Distances, context: Context) -> tuple[NodeEdit, ...]:
    from torchlint.edits.expressions import in_place_of, loses_comment
    from torchlint.edits.imports import spelling

    home = spelling("torch", found.call, context)
    if not home or not found.is_certain or loses_comment(found.call, found.rows, found.columns, context=context):
        return ()
    # By matrix multiplication, which it would choose for many points, small distances are mostly rounding errors.
    way = "p=1" if found.order == 1 else 'compute_mode="donot_use_mm_for_euclid_dist"'
    power = ".square()" if found.is_power else ""
    code = f"{home}.cdist({context.bare_code(found.rows)}, {context.bare_code(found.columns)}, {way}){power}"
    return (Replace(found.call, in_place_of(found.call, code, context)),)
