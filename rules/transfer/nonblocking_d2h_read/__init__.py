"""A copy to the CPU that nobody waits for, read before it has arrived."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Applicability, Context, Flag, Message, Method, NodeEdit, Replace, Rule, Status
from torchlint.semantics.knowledge.conventions.texts import OWN_MOVE

RULE = Rule(
    name="nonblocking-d2h-read",
    code="TL204",
    group="transfer",
    summary="A non-blocking copy to the CPU is read before it is done.",
    since="0.2.0",
    status=Status.PREVIEW,
    fix=(Applicability.SAFE, Applicability.UNSAFE),
    unsafe="the result is no longer in pinned memory",
)
_EARLY = Message(
    "early",
    "`{read}` may read the result of `{copy}` before the copy is done",
    help="leave out `non_blocking=True`, or call `torch.cuda.synchronize()` first",
)


@RULE.on(Method("to"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a move to the CPU with `non_blocking=True` whose result is read with nothing in between that waits."""
    flag = next(
        (argument for argument in node.args if argument.keyword and argument.keyword.value == "non_blocking"), None
    )
    if flag is None or not isinstance(flag.value, cst.Name) or flag.value.value != "True":
        return
    from torchlint.semantics.values.lattice import Device, Kind

    from .readers import early_read

    assert isinstance(node.func, cst.Attribute)
    given = context.argument(node, "device", 0)
    if given is None or context.kind(given) not in (Kind.STRING, Kind.DEVICE):
        return
    if context.device(given) is not Device.CPU or context.device(node.func.value) is Device.CPU:
        return
    if context.value(node.func.value).batch or context.kind(node.func.value) not in (Kind.TENSOR, Kind.UNKNOWN):
        return
    read = early_read(node, context)
    if read is None:
        return
    yield Flag(
        node,
        _EARLY.of(read=context.shown(read), copy=context.shown(node)),
        title="Remove `non_blocking=True`",
        edits=_waiting(node, flag, context),
        applicability=Applicability.SAFE if _is_unseen(context) else Applicability.UNSAFE,
    )


def _is_unseen(context: Context) -> bool:
    """Whether nobody asks if the memory is pinned, and no class of the file has a `to` of its own."""
    return not OWN_MOVE.suggests(context.program.code)


def _waiting(node: cst.Call, flag: cst.Arg, context: Context) -> tuple[NodeEdit, ...]:
    if "#" in context.code(node):
        return ()
    kept = [argument for argument in node.args if argument is not flag]
    kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
    return (Replace(node, context.code_at(node.with_changes(args=kept), node)),)
