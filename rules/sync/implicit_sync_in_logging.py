"""A device tensor formatted or logged at each step: the text needs its value, so the CPU waits."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Frequency
from torchlint.rule import Applicability, Call, Context, Doubt, Flag, Insert, Message, Method, Node, Rule
from torchlint.semantics.knowledge.apis import SUMMARIES

from ._shared.doubts import WAIT_DOUBTS, weighed

RULE = Rule(
    name="implicit-sync-in-logging",
    code="TL306",
    group="sync",
    summary="Formatting or logging a GPU tensor in every step synchronizes.",
    since="0.1.0",
    fix=(Applicability.UNSAFE,),
    unsafe="fewer steps are logged",
    options=(("every", 50),),
    yields_to=(
        "item-in-train-loop",
        "item-in-eval-loop",
        "repeated-item",
        "item-comprehension",
        "graph-break-in-compiled",
    ),
    doubts=WAIT_DOUBTS,
)
_FORMATTED = Message("formatted", "formatting `{tensor}` synchronizes with the GPU{often}", help="{advice}")


@RULE.on(
    Call("print"),
    Call("str"),
    Method("format"),
    *map(Method, sorted(SUMMARIES)),
    Method("set_postfix"),
    Method("set_postfix_str"),
    Method("set_description"),
    Method("info"),
    Method("log"),
    Method("log_metric"),
    Method("log_metrics"),
    Call("tensorboard_logger.log_value"),
    Node("FormattedStringExpression", (b'f"', b"f'", b'F"', b"F'")),
    Node("BinaryOperation", (b"%",)),
)
def check(node: cst.Call | cst.FormattedStringExpression | cst.BinaryOperation, context: Context) -> Iterator[Flag]:
    """Flag the first device tensor that a logging call or a format string turns into text."""
    from torchlint.analyses.execution.hot import is_exceptional
    from torchlint.analyses.host import logging
    from torchlint.analyses.host.reads import is_device_tensor, scalar_read
    from torchlint.analyses.sync.inherent_branches import is_told_apart
    from torchlint.edits.messages import how_often

    parts = list(logging.formatted(node, context))
    # What is said where something has gone wrong is rare, and most formatting is for that: it is cheap to ask.
    if not parts or is_exceptional(node, context):
        return
    tensor = next((part for part in parts if is_device_tensor(part, context) and not logging.is_text(part)), None)
    if tensor is None or scalar_read(tensor, context) is not None:
        return
    if logging.is_text_likelier(node, tensor, context) or logging.is_read_the_old_way(tensor, context):
        return
    if logging.is_number_by_then(tensor, context) or is_told_apart(tensor, context):
        return
    if logging.is_key(node, context) and not (context.value(tensor).scalar or context.kinds.is_tensor(tensor)):
        return  # names and what a tokenizer is given are texts, far more often than tensors
    doubts = weighed(RULE, _doubts(node, tensor, context))
    statement = context.tree.line(node)
    step = _counter(statement, context)
    is_guardable = not doubts and step is not None and logging.is_log_statement(statement, context)
    frequency = context.frequency(node)
    yield Flag(
        tensor,
        _FORMATTED.of(
            tensor=context.shown(tensor),
            advice="copy all samples at once" if frequency is Frequency.SAMPLE else "log every few steps",
            often=how_often(node, context),
        ),
        title=f"Log every {_every(context)} steps",
        edits=_guard(statement, step, context) if is_guardable and statement is not None and step is not None else (),
        doubts=doubts,
    )


def _doubts(
    node: cst.Call | cst.FormattedStringExpression | cst.BinaryOperation, tensor: cst.BaseExpression, context: Context
) -> Iterator[Doubt]:
    """What speaks against sparing the wait, in the order of what it costs to know."""
    from torchlint.analyses.host import logging
    from torchlint.analyses.host.purpose import is_known_already
    from torchlint.analyses.host.reads import is_awaited_by_loop
    from torchlint.analyses.sync.adjacent_waits import is_beside_a_wait
    from torchlint.analyses.sync.avoidable import wait_doubts
    from torchlint.analyses.sync.inherent_branches import switch_doubts

    if is_awaited_by_loop(tensor, context) or is_known_already(node, tensor, context):
        yield Doubt.WAITS_ANYWAY
    if logging.is_alarm(node, context) or _is_for_people(node, context):
        yield Doubt.RARE
    yield from switch_doubts(node, context)
    if logging.is_named_alarm(node, context) or logging.is_of_an_episode(node, context):
        yield Doubt.NAMED_RARE
    if logging.is_key(node, context):
        yield Doubt.VALUE_DECIDES
    yield from wait_doubts(node, tensor, context)
    loop = context.loop(node)
    is_in_parts = context.frequency(node) is Frequency.SAMPLE or loop is not context.frequencies.batch_loop(node)
    # Of many samples, or other parts of a batch, each is one more copy.
    if not is_in_parts and is_beside_a_wait(node, tensor, context):
        yield Doubt.WAITS_ANYWAY


def _is_for_people(node: cst.CSTNode, context: Context) -> bool:
    """Whether the text is what an object looks like to people, which Python asks for when one is printed."""
    function = context.function(node)
    return isinstance(function, cst.FunctionDef) and function.name.value in _LOOKS


_LOOKS = frozenset({"__repr__", "__str__", "__format__", "extra_repr"})


def _every(context: Context) -> int:
    every = context.settings.option(RULE.name, "every", 50)
    return every if isinstance(every, int) and every > 0 else 50


def _counter(statement: cst.CSTNode | None, context: Context) -> str | None:
    """`step` of `for step, batch in enumerate(loader)`, where the statement stands directly in that loop."""
    block = context.parent(statement) if statement is not None else None
    loop = context.parent(block) if block is not None else None
    match loop:
        case cst.For(
            target=cst.Tuple(elements=[cst.Element(value=cst.Name(value=step)), *_]),
            iter=cst.Call(func=cst.Name(value="enumerate")),
            body=body,
        ) if block is body:
            return step
    return None


def _guard(statement: cst.CSTNode, step: str, context: Context) -> tuple[Insert, ...]:
    """`if step % 50 == 0:` above the statement, which moves in by one level."""
    indent = context.tree.indentation(statement) + context.tree.module.default_indent
    return (Insert(statement, f"if {step} % {_every(context)} == 0:\n{indent}", before=True),)
