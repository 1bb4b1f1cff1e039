"""The elements of a tensor read one by one into a list: the host waits for the device as many times as there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.rule import Applicability, Call, Context, Doubt, Flag, Message, Method, NodeEdit, Replace, Rule
from torchlint.semantics.knowledge.marks import TORCHSCRIPT

if TYPE_CHECKING:
    from torchlint.analyses.batching.comprehension_reads import Listing
    from torchlint.analyses.tensors.ranks import Numbers

RULE = Rule(
    name="item-comprehension",
    code="TL903",
    group="vectorise",
    summary="A comprehension reads the elements of a tensor one by one, and each read synchronizes.",
    since="0.2.0",
    fix=(Applicability.SAFE, Applicability.UNSAFE),
    unsafe="a tensor of several axes gives a flat list of all elements, or one more level",
    yields_to=("graph-break-in-compiled",),
    doubts=((Doubt.SIZE_UNKNOWN, ""), (Doubt.NAMED_RARE, "")),
)
_ONE_BY_ONE = Message(
    "one-by-one",
    "`{listing}` reads the elements of `{tensor}` one by one{waits}",
    help="read all of them at once with `.tolist()`",
)


@RULE.on(Method("item"), Method("tolist"), Call("float"), Call("int"), Call("bool"), Call("map"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a comprehension, or `map`, that does nothing but read each element; the fix reads all of them at once."""
    from torchlint.analyses.batching.comprehension_reads import listing
    from torchlint.analyses.batching.extent import may_wait
    from torchlint.analyses.execution.rarity import named_rare
    from torchlint.analyses.tensors.ranks import has_one_axis, vector

    found = listing(node, context)
    if found is None:
        return
    numbers = vector(found.tensor, context) if found.depth == 1 else None
    shown = context.shown(found.tensor)
    is_of_rows = found.of_rows and not has_one_axis(found.tensor, context)  # of which there may be few
    waits = ", and each read synchronizes" if may_wait(found.tensor, context) else ""
    yield Flag(
        found.node,
        _ONE_BY_ONE.of(listing=context.shown(found.node), tensor=shown, waits=waits),
        title=f"Read all of `{shown}` with `tolist()`",
        edits=_edits(found, numbers, context),
        applicability=Applicability.SAFE if _is_safe(found, numbers, context) else Applicability.UNSAFE,
        doubts=(*((Doubt.SIZE_UNKNOWN,) if is_of_rows else ()), *named_rare(found.node, context)),
    )


def _is_safe(found: Listing, numbers: Numbers | None, context: Context) -> bool:
    """Whether the list is the same for every value that the tensor may have, and so is every error."""
    from torchlint.analyses.tensors.ranks import Numbers

    # TorchScript has no `tolist()` without an annotation.
    if numbers is None or TORCHSCRIPT.is_in(context.program.code):
        return False
    return not found.conversion or numbers is not Numbers.ANY


def _edits(found: Listing, numbers: Numbers | None, context: Context) -> tuple[NodeEdit, ...]:
    from torchlint.analyses.tensors.ranks import has_one_axis
    from torchlint.edits.expressions import as_owner, in_place_of, is_spelt_out, loses_comment

    node, tensor, read = found.node, found.tensor, found.read
    if is_spelt_out(node, context) or loses_comment(node, tensor, context=context):
        return ()
    # Elements that are tensors of one element each can be read too: they become one flat list.
    is_flat = found.depth > 1 or found.of_rows or has_one_axis(tensor, context)
    values = as_owner(tensor, context) + ("" if is_flat else ".flatten()") + ".tolist()"
    if read is None:
        return (Replace(tensor, values),)
    is_converted = bool(found.conversion) and (numbers is None or numbers.value != found.conversion)
    if not is_converted and isinstance(node, (cst.ListComp, cst.GeneratorExp)):
        return (Replace(node, in_place_of(node, values, context)),)
    element = f"{found.conversion}({found.name})" if is_converted else found.name
    return (Replace(read, in_place_of(read, element, context)), Replace(tensor, values))
