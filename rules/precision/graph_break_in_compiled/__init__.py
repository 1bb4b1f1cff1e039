"""Compiled code that Python has to look into: the graph ends there, and another one begins behind it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Context, Flag, Message, Node, Rule, Status

RULE = Rule(
    name="graph-break-in-compiled",
    code="TL652",
    group="precision",
    summary="A read, a branch on a tensor or a side effect breaks the graph of compiled code.",
    since="0.2.0",
    status=Status.PREVIEW,
)
_BREAKS = Message(
    "graph-break",
    "`{place}` {reason}, which breaks the compiled graph in two",
    help="move it out of the compiled function",
)
# As in the model, which loads LibCST.
_OPTIONS = ("mode", "fullgraph", "backend", "dynamic", "options", "disable", "**")
_TOKENS = (
    b"torch.compile",
    b"import compile",
    b"import torch as",
    b".compile()",
    *(f".compile({option}".encode() for option in _OPTIONS),
)


@RULE.on(Node("Module", _TOKENS))
def check(node: cst.Module, context: Context) -> Iterator[Flag]:
    """Flag what breaks a graph in each compiled function, where work stands on both sides of it."""
    from .breaks import breaks

    if not node.body:
        return
    for place, reason in breaks(context):
        yield Flag(place, _BREAKS.of(place=context.shown(place), reason=reason))
