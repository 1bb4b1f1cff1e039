"""Tensors of the device that are read one by one, to make one array or tensor of them."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Call, Context, Doubt, Flag, Message, Rule
from torchlint.semantics.knowledge.apis import ARRAYS_OF_LISTS, OF_LISTS

RULE = Rule(
    name="array-from-list-of-tensors",
    code="TL218",
    group="transfer",
    summary="GPU tensors are read one by one to build one array or tensor.",
    since="0.2.0",
    yields_to=(
        "device-round-trip",
        "item-comprehension",
        "item-in-train-loop",
        "item-in-eval-loop",
        "bulk-d2h-in-hot-loop",
    ),
    doubts=(
        (Doubt.DEVICE_UNKNOWN, ""),
        (Doubt.RATE_UNKNOWN, ""),
        (Doubt.UNCALLED, ""),
        (Doubt.RUNS_ONCE, "A few waits cost microseconds."),
        (Doubt.RARE, "To read some values now and then costs next to nothing."),
    ),
)
_GATHERED = Message("gathered", "`{array}` synchronizes with the GPU {times}{often}", help="{after}")


@RULE.on(*map(Call, (*OF_LISTS, *ARRAYS_OF_LISTS)))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a list of tensors of the device that is read element by element."""
    from torchlint.analyses.data.sample_code import is_for_samples
    from torchlint.analyses.execution.hot import rate_doubts
    from torchlint.edits.messages import how_often
    from torchlint.finding import Frequency

    from .lists import gathered

    found = gathered(node, context)
    if found is None or is_for_samples(node, context):
        return
    doubts: list[Doubt] = [] if found.is_there else [Doubt.DEVICE_UNKNOWN]
    if context.frequencies.is_diagnostic(node):
        doubts.append(Doubt.NAMED_RARE)
    if context.frequency(node) <= Frequency.ONCE:
        doubts += rate_doubts(node, context)
    times = f"{found.count} times" if found.count else "once per tensor"
    after = (
        "stack the tensors with `torch.stack`, and copy once"
        if found.is_read
        else "use `torch.stack`, which leaves them on the GPU"
    )
    yield Flag(
        node,
        _GATHERED.of(array=context.shown(node), times=times, after=after, often=how_often(node, context)),
        doubts=tuple(dict.fromkeys(doubts)),
    )
