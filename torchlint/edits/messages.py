"""Words that messages of several rules share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlint.finding import Frequency

if TYPE_CHECKING:
    import libcst as cst

    from torchlint.semantics.context import Context


_EVERY = {
    Frequency.EPOCH: " every epoch",
    Frequency.BATCH: " every batch",
    Frequency.SAMPLE: " several times a batch",  # its parts may be samples, frames or keys
}


def how_often(node: cst.CSTNode, context: Context) -> str:
    """` every batch`, with the blank before it; nothing where a line runs once, or nobody knows how often."""
    return every(context.frequency(node))


def every(frequency: Frequency) -> str:
    """The same for a frequency."""
    return _EVERY.get(frequency, "")
