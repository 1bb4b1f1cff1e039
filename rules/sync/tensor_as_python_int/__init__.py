"""A device tensor where Python needs a whole number: the CPU waits for the device to give it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Call, Context, Doubt, Flag, Message, Method, Node, Rule

from .._shared.doubts import WAIT_DOUBTS, weighed

RULE = Rule(
    name="tensor-as-python-int",
    code="TL313",
    group="sync",
    summary="Using a GPU tensor as a size, an index or a bound in Python synchronizes.",
    since="0.2.0",
    yields_to=(
        "graph-break-in-compiled",
        "item-in-train-loop",
        "item-in-eval-loop",
        "python-loop-over-tensor",
    ),
    doubts=WAIT_DOUBTS,
)
_NUMBER = Message(
    "number",
    "`{number}` is needed as a Python number, which synchronizes with the GPU{often}",
    help="take it from where the CPU knows it, or mask instead",
)
_REPEATED = Message(
    "repeated",
    "`{number}` is needed as a Python number in {times} places, and each synchronizes{often}",
    help="read it once, with `{number}.item()`",
)
_ELEMENT = Message("element", _NUMBER.headline, help="bring all elements at once by one `.tolist()` before the loop")


@RULE.on(
    Call("range"),
    Call("torch.zeros"),
    Call("torch.ones"),
    Call("torch.empty"),
    Call("torch.full"),
    Call("torch.full_like"),
    Call("torch.rand"),
    Call("torch.randn"),
    Call("torch.arange"),
    Call("torch.eye"),
    Call("torch.randperm"),
    Call("torch.nn.functional.affine_grid"),
    Call("torch.nn.functional.interpolate"),
    Call("torch.nn.functional.pad"),
    Call("torch.nn.functional.one_hot"),
    Method("new_zeros"),
    Method("new_ones"),
    Method("new_empty"),
    Method("new_full"),
    Method("view"),
    Method("reshape"),
    Method("expand"),
    Method("repeat"),
    Method("split"),
    Method("narrow"),
    Node("Subscript", (b"[",)),
)
def check(node: cst.Call | cst.Subscript, context: Context) -> Iterator[Flag]:
    """Flag the first device tensor of which the node needs the value as an int."""
    from torchlint.analyses.host.purpose import is_element_read
    from torchlint.edits.messages import how_often

    from .whole_numbers import needed_again, tensors_as_numbers

    number = next(tensors_as_numbers(node, context), None)
    if number is None or _is_said_otherwise(number, context):
        return
    again = needed_again(number, context)
    is_one_of_many = is_element_read(number, context)
    said = _ELEMENT if is_one_of_many else _REPEATED if again else _NUMBER
    # One copy brings all.
    doubts = (doubt for doubt in _doubts(number, context) if not (is_one_of_many and doubt is Doubt.VALUE_DECIDES))
    yield Flag(
        number,
        said.of(number=context.shown(number), often=how_often(number, context), times=len(again) + 1),
        places=again,
        doubts=weighed(RULE, doubts),
    )


def _is_said_otherwise(number: cst.BaseExpression, context: Context) -> bool:
    """Whether it may be a number, or on the CPU, or another rule speaks of it."""
    from torchlint.analyses.sync.inherent_branches import is_in_sample_code, is_read_turn_by_turn, is_told_apart

    return is_in_sample_code(number, context) or is_told_apart(number, context) or is_read_turn_by_turn(number, context)


def _doubts(number: cst.BaseExpression, context: Context) -> Iterator[Doubt]:
    """What speaks against sparing the wait, in the order of what it costs to know."""
    from torchlint.analyses.provenance.network import place_doubts
    from torchlint.analyses.sync.avoidable import wait_doubts
    from torchlint.analyses.sync.inherent_branches import design_doubts

    from .whole_numbers import is_exchanged, is_needed_before

    yield from design_doubts(number, context)
    if is_needed_before(number, context):
        yield Doubt.WAITS_ANYWAY
    if is_exchanged(number, context):
        yield Doubt.VALUE_DECIDES
    yield from place_doubts(number, context)
    # Last, since other files may have to say how often it runs.
    yield from wait_doubts(number, number, context)
