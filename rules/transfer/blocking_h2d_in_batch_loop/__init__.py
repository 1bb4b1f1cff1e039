"""A batch that is moved to the device by a copy that the CPU waits for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.rule import Applicability, Call, Context, Doubt, Flag, Message, Method, Node, NodeEdit, Replace, Rule
from torchlint.semantics.knowledge.apis import LEGACY_TENSORS

if TYPE_CHECKING:
    import libcst as cst

    from torchlint.analyses.data.batch_moves import BatchMove
    from torchlint.analyses.data.loaders import Made

RULE = Rule(
    name="blocking-h2d-in-batch-loop",
    code="TL203",
    group="transfer",
    summary="Copying a batch to the GPU blocks the CPU.",
    since="0.2.0",
    fix=(Applicability.SAFE, Applicability.UNSAFE),
    unsafe="a batch that is changed on the CPU after the copy may arrive changed",
    yields_to=(
        "item-in-train-loop",
        "item-in-eval-loop",
        "dataloader-not-pinned",
        "host-factory-then-move",
        "constant-tensor-in-hot-path",
    ),
    doubts=(
        (Doubt.WAITS_ANYWAY, ""),
        (Doubt.DATA_UNKNOWN, ""),
        (Doubt.HOST_BOUND, ""),
        (Doubt.RATE_UNKNOWN, ""),
        (Doubt.UNCALLED, ""),
        (Doubt.RUNS_ONCE, "One copy costs microseconds."),
        (Doubt.RARE, "A few batches that are looked at, or that calibrate, cost nothing that anybody waits for."),
    ),
)
_BLOCKING = Message(
    "blocking", "`{copy}` blocks the CPU{often} until the copy is done", help="pass `non_blocking=True`{where}"
)
_HELPER = Message(
    "helper",
    "`{copy}` blocks the CPU{often} until the copy is done, from pinned memory too",
    help="take `non_blocking` as a parameter and pass it on, for callers whose memory is pinned",
)
_OWN = Message(
    "own",
    "`{copy}` blocks the CPU{often} until the copy is done",
    help="copy it from pinned memory with `non_blocking=True`",
)
# A type of tensors on the GPU may go by any name: `Tensor = torch.cuda.FloatTensor if on_gpu else torch.FloatTensor`.
_TYPES = tuple(f"cuda.{name}".encode() for name in sorted(LEGACY_TENSORS))
_SELDOM = frozenset({Doubt.RATE_UNKNOWN, Doubt.UNCALLED})


@RULE.on(Method("to"), Method("cuda"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a move of a loader's batch, or of a part of it, that waits, unless its memory is known not to be pinned."""
    if not _is_plain(node, context):
        return
    from torchlint.analyses.data.batch_moves import (  # the model's parts load LibCST
        Pinned,
        batch_move,
        is_for_cuda,
        pinned_of,
    )
    from torchlint.analyses.data.loaders import made
    from torchlint.edits.messages import how_often

    move = batch_move(node, context)
    if move is None:
        yield from _of_a_helper(node, context)
        yield from _of_the_host(node, context)
        yield from _of_a_training_loop(node, context)
        return
    if _has_no_such_copy(node, context):
        return
    sources = made(move.loader, context)
    state = pinned_of(sources, context)
    if not _may_be_pinned(move, sources, context):
        if _is_of_a_batch(move, sources, context):
            yield from _copied(node, context, (Doubt.DATA_UNKNOWN, *_doubts(node, context)))
        return
    if state is Pinned.NO:
        if sources.calls:
            yield from _copied(node, context, tuple(_doubts(node, context)))
        elif context.elsewhere.never_pins:  # the loaders of the file alone do not speak for one out of sight
            yield from _copied(node, context, (Doubt.DATA_UNKNOWN, *_doubts(node, context)))
        return
    shown, often = context.shown(node), how_often(node, context)
    on_cuda = is_for_cuda(node, context)
    conditions = [
        *(["the loader pins its memory"] if state is not Pinned.YES else ()),
        *(["the device is CUDA's"] if on_cuda is False else ()),
    ]
    where = f" where {' and '.join(conditions)}" if conditions else ""
    yield Flag(
        node,
        _BLOCKING.of(copy=shown, often=often, where=where),
        title="Pass `non_blocking=True`",
        edits=() if on_cuda is False else (_unblocked(node, context),),
        applicability=Applicability.SAFE if on_cuda and _is_safe(move, sources, context) else Applicability.UNSAFE,
        doubts=tuple(_doubts(node, context)),
    )


def _of_a_helper(node: cst.Call, context: Context) -> Iterator[Flag]:
    """A note on a function that moves whatever it is handed: what that is, its callers know."""
    from torchlint.analyses.execution.hot import rate_doubts  # the model's parts load LibCST
    from torchlint.edits.messages import how_often

    from .helpers import is_move_of_a_helper
    from .worth import is_without_cuda

    if _is_cast(node) or not is_move_of_a_helper(node, context) or is_without_cuda(node, context):
        return
    yield Flag(
        node,
        _HELPER.of(copy=context.shown(node), often=how_often(node, context)),
        doubts=(Doubt.DATA_UNKNOWN, *rate_doubts(node, context)),
    )


def _of_a_training_loop(node: cst.Call, context: Context) -> Iterator[Flag]:
    """A note on what a loop trains with, wherever it comes from."""
    from torchlint.analyses.data.batch_moves import is_left_to_others, is_to_accelerator

    from .worth import is_of_a_training_loop

    if is_left_to_others(context.program.code) or not is_to_accelerator(node, context):
        return
    if is_of_a_training_loop(node, context) and not _has_no_such_copy(node, context):
        yield from _copied(node, context, (Doubt.DATA_UNKNOWN, *_doubts(node, context)))


@RULE.on(Method("type"))
def check_type(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Note what a type of tensors on the GPU takes there: `images.type(torch.cuda.FloatTensor)`."""
    from torchlint.analyses.data.batch_moves import batch_move  # the model's parts load LibCST
    from torchlint.analyses.data.loaders import made

    if len(node.args) != 1:
        return
    move = batch_move(node, context)
    if move is None:
        yield from _of_the_host(node, context)
    elif not _has_no_such_copy(node, context) and _may_be_pinned(move, made(move.loader, context), context):
        yield from _copied(node, context, tuple(_doubts(node, context)))


def _of_the_host(node: cst.Call, context: Context) -> Iterator[Flag]:
    """A note on data that the host made for the step, or has computed with: nothing of it is in pinned memory."""
    from torchlint.analyses.execution.hot import rate_doubts  # the model's parts load LibCST

    from .host_memory import is_copy_from_the_host, is_of_picked_rows, is_passed_from_the_host, is_told
    from .worth import is_without_cuda

    if is_without_cuda(node, context):
        return
    if is_copy_from_the_host(node, context):
        told = () if is_told(node.func, context) else (Doubt.DATA_UNKNOWN,)
        yield from _copied(node, context, (*told, *rate_doubts(node, context)))
    elif is_passed_from_the_host(node, context) or is_of_picked_rows(node, context):
        yield from _copied(node, context, (Doubt.DATA_UNKNOWN, *rate_doubts(node, context)))


@RULE.on(
    Node("Call", _TYPES),
    Call("torch.tensor"),
    Call("torch.as_tensor"),
    Call("torch.asarray"),
    Call("torch.Tensor"),
)
def check_array(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Note an array of NumPy that a call makes a tensor of on the device: `torch.as_tensor(x, device=device)`."""
    from torchlint.analyses.execution.hot import rate_doubts  # the model's parts load LibCST

    from .host_memory import is_sent_array

    if is_sent_array(node, context):
        yield from _copied(node, context, rate_doubts(node, context))


def _copied(node: cst.Call, context: Context, doubts: tuple[Doubt, ...]) -> Iterator[Flag]:
    """The note, where the copy is known to recur: once made where it is needed, it costs microseconds."""
    from torchlint.edits.messages import how_often

    from .host_memory import is_drawn

    if context.frequencies.is_of_the_first_time(node):
        return
    if not _SELDOM.isdisjoint(doubts) and not is_drawn(node, context):
        return
    said = _OWN.of(copy=context.shown(node), often=how_often(node, context))
    yield Flag(node, said, doubts=(Doubt.HOST_BOUND, *doubts))


def _is_plain(call: cst.Call, context: Context) -> bool:
    """Whether the call says where to, and of which type or layout at most."""
    if context.has_unpacking(call):
        return False
    positional = [argument.value for argument in call.args if argument.keyword is None]
    if len(positional) > 1 and (len(positional) > 2 or not _is_type(positional[1], context)):
        return False
    keywords = {argument.keyword.value for argument in call.args if argument.keyword is not None}
    return keywords <= {"device", "dtype", "memory_format"}


def _is_type(node: cst.BaseExpression, context: Context) -> bool:
    from torchlint.semantics.values.lattice import Kind  # the model's parts load LibCST

    return context.kind(node) is Kind.DTYPE


def _is_cast(call: cst.Call) -> bool:
    """Whether the call gives a type besides, to which a copy that waits casts before, and one that does not, behind."""
    keywords = [argument.keyword.value for argument in call.args if argument.keyword is not None]
    return "dtype" in keywords or len(call.args) - len(keywords) > 1


def _has_no_such_copy(node: cst.Call, context: Context) -> bool:
    """Whether the branch is one for what is not CUDA, or the loop has no work that the CPU could go on with."""
    from .worth import is_collected, is_without_cuda

    return is_without_cuda(node, context) or is_collected(node, context)


def _doubts(node: cst.Call, context: Context) -> Iterator[Doubt]:
    """Why little may be gained: the CPU waits for the device anyway, or there are few batches."""
    from torchlint.analyses.execution.occasions import is_export

    from .worth import is_of_calibration, is_waited_for

    if is_waited_for(node, context):
        yield Doubt.WAITS_ANYWAY
    if context.frequencies.is_diagnostic(node):
        yield Doubt.NAMED_RARE
    if is_of_calibration(node, context) or is_export(context):
        yield Doubt.RARE


def _may_be_pinned(move: BatchMove, sources: Made, context: Context) -> bool:
    """Whether it is a tensor as far as one can tell: classes of a project's own do not pin what they hold."""
    from torchlint.analyses.data.batch_moves import is_collated_by_torch, may_be_a_tensor

    from .worth import is_dug_out, is_shown_to_be_a_tensor, may_be_an_object

    if is_dug_out(move.receiver, context):
        return False
    if _are_of_graphs(sources, context):
        return True
    is_part = move.is_part or context.kinds.is_tensor(move.receiver)
    if not is_part or not may_be_a_tensor(move, context):
        return False
    moves_alone = move.method == "to" and may_be_an_object(move.receiver, context)
    is_known = is_collated_by_torch(sources, context) or is_shown_to_be_a_tensor(move.call, move.receiver, context)
    return is_known or not moves_alone


def _is_of_a_batch(move: BatchMove, sources: Made, context: Context) -> bool:
    """Whether a batch is moved, or a part that may be a tensor, of which nobody in sight says what it is."""
    from torchlint.analyses.data.batch_moves import may_be_a_tensor

    from .worth import is_dug_out, is_of_a_training_loop

    is_known = bool(sources.calls) or is_of_a_training_loop(move.call, context)
    return is_known and not is_dug_out(move.receiver, context) and (not move.is_part or may_be_a_tensor(move, context))


def _are_of_graphs(sources: Made, context: Context) -> bool:
    """Whether the loaders are PyG's, whose batches pin their tensors and move them without waiting as tensors do."""
    return bool(sources.calls) and all(
        (context.qualified_name(call.func) or "").startswith("torch_geometric.") for call in sources.calls
    )


def _is_safe(move: BatchMove, sources: Made, context: Context) -> bool:
    """Whether a tensor of torch's own loader is copied as it is, and nothing may write to it before that is done."""
    from torchlint.analyses.data.batch_moves import is_collated_by_torch, is_left_alone

    is_alike = is_collated_by_torch(sources, context) and not _is_cast(move.call)
    if context.function(move.call) is not context.function(move.loader):
        return False  # the function that has the loader may go on to write to the batch
    return is_alike and is_left_alone(move, context)


def _unblocked(call: cst.Call, context: Context) -> NodeEdit:
    from torchlint.edits.expressions import with_argument

    if call.args:
        return with_argument(call, "non_blocking=True", context)
    import libcst as cst  # loaded by now

    given = cst.ensure_type(cst.parse_expression("f(non_blocking=True)"), cst.Call).args
    return Replace(call, context.code(call.with_changes(args=given)))
