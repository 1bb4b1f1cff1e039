"""A copy that is meant to be asynchronous, or to end in pinned memory, and goes through pageable memory."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Context, Doubt, Flag, Message, Method, Rule

RULE = Rule(
    name="copy-through-pageable-memory",
    code="TL220",
    group="transfer",
    summary="A copy that is meant to be asynchronous goes through pageable memory.",
    since="0.2.0",
    yields_to=("host-factory-then-move", "tensor-from-list-of-arrays", "float64-leak", "cast-widens-h2d"),
    doubts=(
        (Doubt.SMALL, ""),
        (Doubt.DEVICE_UNKNOWN, ""),
        (Doubt.RATE_UNKNOWN, ""),
        (Doubt.UNCALLED, ""),
        (Doubt.RUNS_ONCE, "One copy at the start takes no time worth a word."),
        (Doubt.RARE, "A copy now and then takes no time worth a word."),
        (Doubt.WAITS_ANYWAY, "Where the CPU waits anyway, to wait for a copy costs next to nothing."),
    ),
)
_WAITS = Message(
    "waits",
    "`{copy}` copies from pageable memory{often}, so `non_blocking=True` still waits",
    help="{advice}",
)
_TWICE = Message(
    "twice",
    "`{copy}` copies twice{often}: to pageable memory, and from there to pinned memory",
    help="keep a pinned buffer and `copy_` into it",
)
_SELDOM = frozenset({Doubt.RATE_UNKNOWN, Doubt.UNCALLED})


@RULE.on(Method("to"), Method("cuda"), Method("copy_"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a copy to the device that shall not wait, of a tensor that was just made in pageable memory."""
    if not _is_not_to_wait(node, context):
        return
    from torchlint.analyses.execution.hot import rate_doubts
    from torchlint.edits.messages import how_often

    from .memory import Pageable, copied, pageable

    source = copied(node, context)
    found = pageable(source, context) if source is not None else Pageable.NO
    if found is Pageable.NO:
        return
    doubts = (*((Doubt.SMALL,) if found is Pageable.NUMBERS else ()), *rate_doubts(node, context))
    if found is Pageable.NUMBERS and not _SELDOM.isdisjoint(doubts):
        return  # a short list: its copy adds up only where it is known to recur
    is_list = found is Pageable.NUMBERS
    advice = "make it with `pin_memory=True`" if is_list else "put it into pinned memory first, ahead of the step"
    yield Flag(node, _WAITS.of(copy=context.shown(node), often=how_often(node, context), advice=advice), doubts=doubts)


@RULE.on(Method("pin_memory"))
def check_offload(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag `t.cpu().pin_memory()`, the copy of a copy."""
    from torchlint.analyses.execution.hot import rate_doubts
    from torchlint.edits.messages import how_often

    from .memory import brought_to_the_host, is_for_a_new_object

    brought = brought_to_the_host(node, context) if not node.args else None
    if brought is None:
        return
    doubts = [Doubt.RUNS_ONCE] if is_for_a_new_object(node, context) else []
    doubts += [] if context.is_on_gpu(brought) else [Doubt.DEVICE_UNKNOWN]
    yield Flag(
        node,
        _TWICE.of(copy=context.shown(node), often=how_often(node, context)),
        doubts=(*doubts, *rate_doubts(node, context)),
    )


def _is_not_to_wait(call: cst.Call, context: Context) -> bool:
    import libcst as cst  # the registry loads rules without it

    given = context.argument(call, "non_blocking")
    return isinstance(given, cst.Name) and given.value == "True"
