"""A tensor that is repeated in memory for an operation that would read a view of it as well."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Applicability, Context, Doubt, Flag, Message, Method, Replace, Rule

RULE = Rule(
    name="repeat-before-broadcast",
    code="TL918",
    group="vectorise",
    summary="`repeat` copies the same elements several times where a view would do.",
    since="0.2.0",
    fix=(Applicability.UNSAFE,),
    unsafe="gradients are added in another order, and an axis that `repeat` adds fails",
    eager=True,
    doubts=(
        (Doubt.SIZE_UNKNOWN, ""),
        (Doubt.RATE_UNKNOWN, ""),
        (Doubt.UNCALLED, ""),
        (Doubt.NAMED_RARE, ""),
        (Doubt.RARE, "A copy now and then takes no time worth a word."),
        (Doubt.RUNS_ONCE, "One copy takes no time worth a word."),
    ),
)
_COPIES = Message(
    "copies",
    "`{repeat}` copies the same elements several times{often} where a view would do",
    help="use `.expand({sizes})`, which copies nothing",
)


@RULE.on(Method("repeat"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag `x.unsqueeze(1).repeat(1, n, 1)` of which everything that takes it reads a view as well."""
    from torchlint.analyses.execution.hot import rate_doubts
    from torchlint.edits.messages import how_often

    from .axes import Axes, axes_of, numbers
    from .takers import Reads, reads

    assert isinstance(node.func, cst.Attribute)
    owner, method = node.func.value, node.func.attr
    counts = numbers(node, context)
    if counts is None or context.qualified_name(node.func) is not None or not context.is_tensor(owner):
        return
    repeated = tuple(place for place, count in enumerate(counts) if not _is_one(count))
    if not repeated:
        return
    found = axes_of(owner, context)
    single = [found.is_single(place, len(counts)) for place in repeated]
    if Axes.NO in single:
        return
    read = reads(node, owner, context)
    if read is Reads.UNSEEN:
        return
    kept = [place for place in range(len(counts)) if place not in repeated and not found.is_new(place, len(counts))]
    sizes = ["-1" if place in kept else context.code(count) for place, count in enumerate(counts)]
    is_sized = read is Reads.AS_INDEX and Axes.LIKELY not in single
    yield Flag(
        node,
        _COPIES.of(repeat=context.shown(node), often=how_often(node, context), sizes=", ".join(sizes)),
        title="Use `expand`",
        edits=(Replace(method, "expand"), *(Replace(counts[place], "-1") for place in kept)),
        applicability=Applicability.UNSAFE,
        doubts=(*(() if is_sized else (Doubt.SIZE_UNKNOWN,)), *rate_doubts(node, context)),
    )


def _is_one(count: cst.BaseExpression) -> bool:
    from torchlint.syntax.literals import integer

    return integer(count) == 1
