"""A tensor made from a list of arrays, whose elements all pass through Python one by one."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Applicability, Call, Context, Flag, Message, NodeEdit, Replace, Rule, Status
from torchlint.semantics.knowledge.apis import LEGACY_TENSORS

RULE = Rule(
    name="tensor-from-list-of-arrays",
    code="TL216",
    group="transfer",
    summary="A list of NumPy arrays is converted to a tensor element by element.",
    since="0.2.0",
    status=Status.PREVIEW,
    fix=(Applicability.UNSAFE,),
    unsafe="arrays of several dtypes, or an empty list, give another dtype",
)
_ELEMENTWISE = Message(
    "elementwise",
    "`{call}` converts a list of arrays element by element{often}",
    help="make one array first, with `{function}`",
)
_LEGACY = (f"torch.{family}{name}" for family in ("", "cuda.") for name in sorted(LEGACY_TENSORS))


@RULE.on(Call("torch.tensor"), Call("torch.as_tensor"), Call("torch.asarray"), *map(Call, _LEGACY))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a constructor that is given a list of arrays; the fix makes one array of them first."""
    from torchlint.edits.messages import every
    from torchlint.finding import Frequency

    from .arrays import is_list_of_arrays, is_of_examples, name_of

    data = context.argument(node, "data", 0)
    if data is None or "numpy" not in context.names.imported or not is_list_of_arrays(data, context):
        return
    how_often = context.frequency(node)
    if how_often < Frequency.BATCH and is_of_examples(data, context):
        return
    often = every(how_often) if how_often >= Frequency.BATCH else ""
    numpy = name_of("numpy", node, context)
    shown = f"{numpy or 'numpy'}.array"
    yield Flag(
        node,
        _ELEMENTWISE.of(call=context.shown(node), often=often, function=shown),
        title=f"Make one array first, with `{shown}`",
        edits=_edits(data, numpy, context),
    )


def _edits(data: cst.BaseExpression, numpy: str | None, context: Context) -> tuple[NodeEdit, ...]:
    return (Replace(data, f"{numpy}.array({context.bare_code(data)})"),) if numpy is not None else ()
