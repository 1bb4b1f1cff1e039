"""Words that messages of several rules share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlint.finding import Frequency

if TYPE_CHECKING:
    import libcst as cst

    from torchlint.semantics.context import Context


def how_often(node: cst.CSTNode, context: Context) -> str:
    """` per batch`, with the blank before it; nothing where a line runs once, or nobody knows how often."""
    frequency = context.frequency(node)
    return f" {frequency}" if frequency > Frequency.ONCE else ""


def of_a_batch(node: cst.CSTNode, context: Context) -> str:
    """`per batch`, and of its parts `several times per batch`: they may be samples, frames or keys."""
    frequency = context.frequency(node)
    return "several times per batch" if frequency is Frequency.SAMPLE else str(frequency)
