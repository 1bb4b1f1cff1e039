"""A whole tensor copied to the CPU at each step, or piece by piece within one."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

import libcst as cst

from torchlint.rule import Call, Context, Doubt, Flag, Message, Method, Node, Rule, Said
from torchlint.semantics.knowledge.conventions.values import HYPOTHESES
from torchlint.semantics.values.lattice import Device, Kind

from .._shared.doubts import WAIT_DOUBTS, weighed

RULE = Rule(
    name="bulk-d2h-in-hot-loop",
    code="TL305",
    group="sync",
    summary="A tensor is copied to the CPU in every training step, or piece by piece within one batch.",
    since="0.1.0",
    yields_to=("device-round-trip",),
    doubts=(
        *((doubt, reason) for doubt, reason in WAIT_DOUBTS if doubt is not Doubt.USE_UNKNOWN),
        (Doubt.COSTS_MEMORY, ""),
        (Doubt.SMALL, ""),
        (Doubt.USE_UNKNOWN, ""),
    ),
)
_PIECEWISE = Message(
    "piecewise",
    "`{copy}` copies piece by piece, and each copy synchronizes with the GPU",
    help="copy once for the whole batch",
)
_REDUCED = Message(
    "reduced",
    "`{copy}` copies the whole tensor to the CPU{often}, and only its `{reduction}` is used",
    help="call `{reduction}` on the GPU and copy what it gives",
)
_BACK = Message(
    "back",
    "`{copy}` copies back{often} what came from the CPU",
    help="keep the tensor that was moved",
)
_COPIED = Message("copied", "`{copy}` copies the tensor to the CPU{often} and waits for it", help="{advice}")


@RULE.on(Method("cpu"), Method("numpy"), Method("tolist"), Method("to", (b"cpu",)))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a copy to the host, of a piece in an inner loop over a batch or of a whole tensor at each step."""
    from torchlint.analyses.batching.comprehension_reads import is_listed
    from torchlint.analyses.host.reading_helpers import is_read_for_callers
    from torchlint.analyses.host.reads import bulk_read  # the model's parts load LibCST
    from torchlint.analyses.round_trips.trips import Trips

    tensor = bulk_read(node, context)
    if tensor is None or is_listed(node, context) or context[Trips].of(node) is not None:
        return
    if not is_read_for_callers(node, context):
        yield from _flags(node, tensor, context)


@RULE.on(Node("Call"))
def check_helper(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a call of a function that does nothing but copy the tensor which it is given."""
    from torchlint.analyses.host.reading_helpers import Readers, read_through

    if node in context[Readers].copies:
        tensor = read_through(node, context)
        if tensor is not None:
            yield from _flags(node, tensor, context)


def _flags(node: cst.Call, tensor: cst.BaseExpression, context: Context) -> Iterator[Flag]:
    from torchlint.analyses.sync.avoidable import UNSEEN, wait_doubts
    from torchlint.analyses.sync.invariant_reads import is_the_same_each_time
    from torchlint.edits.messages import how_often

    detour = _detour(node, tensor, context)
    if detour is not None:
        said, speaks_against = detour
        yield Flag(node, said, doubts=weighed(RULE, chain(speaks_against, wait_doubts(node, tensor, context))))
        return
    if is_the_same_each_time(tensor, context):
        said = _COPIED.of(
            copy=context.shown(node),
            often=how_often(node, context),
            advice="no iteration changes it: copy it once before the loop",
        )
        yield Flag(node, said, doubts=weighed(RULE, wait_doubts(node, tensor, context)))
        return
    doubts = weighed(RULE, _doubts(node, tensor, context))
    is_collected = Doubt.USE_UNKNOWN in doubts
    if is_collected and _is_gone_through(node, context):
        return  # one copy for all pieces of the batch, as the rule advises
    if not UNSEEN.isdisjoint(doubts) and (
        (is_collected and not context.value(tensor).scalar)
        or (context.loop(node) is None and not _NEEDED.isdisjoint(doubts))
    ):
        return  # nothing is known to repeat, and the copy is needed, as results are that are collected
    code = context.shown(node)
    if _is_piecewise(node, context) and not _is_a_piece_of_its_own(node, context):
        said = _PIECEWISE.of(copy=code)
    else:
        advice = "copy once for several of them"
        if Doubt.COSTS_MEMORY in doubts:
            advice = "keep them on the GPU and copy them together after the loop"
        elif _NEEDED.isdisjoint(doubts):
            advice = "keep it on the GPU until you log"
        said = _COPIED.of(copy=code, often=how_often(node, context), advice=advice)
    yield Flag(node, said, doubts=doubts)


def _detour(node: cst.Call, tensor: cst.BaseExpression, context: Context) -> tuple[Said, tuple[Doubt, ...]] | None:
    """What is said of a copy of more than is used, or of what was on the CPU before, and what speaks against that."""
    from torchlint.analyses.host.detours import came_from_the_host, reduced_by
    from torchlint.analyses.sync.adjacent_waits import is_beside_a_wait
    from torchlint.edits.messages import how_often

    code, often = context.shown(node), how_often(node, context)
    if came_from_the_host(node, context):
        # Where the CPU waits anyway, what is left is a copy each way.
        is_small = is_beside_a_wait(node, tensor, context)
        return _BACK.of(copy=code, often=often), (Doubt.SMALL,) if is_small else ()
    reduction = reduced_by(node, tensor, context)
    return (_REDUCED.of(copy=code, often=often, reduction=reduction), ()) if reduction else None


@RULE.on(Call("torchvision.utils.save_image"))
def check_picture(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Note a picture of tensors of the device that is written at each step."""
    from torchlint.analyses.host.reads import is_device_tensor
    from torchlint.analyses.sync.avoidable import wait_doubts
    from torchlint.edits.messages import how_often

    tensor = context.argument(node, "tensor", 0)
    if tensor is None or context.has_unpacking(node) or not is_device_tensor(tensor, context):
        return
    said = _COPIED.of(
        copy=context.shown(node.func), often=how_often(node, context), advice="write one picture of several of them"
    )
    yield Flag(node, said, doubts=weighed(RULE, (Doubt.HOST_NEEDS_IT, *wait_doubts(node, tensor, context))))


def _is_gone_through(node: cst.Call, context: Context) -> bool:
    """`for name, boxes in zip(names, model(x).tolist())`."""
    loops = context.around(node, cst.For, cst.CompFor)
    return any(isinstance(loop, (cst.For, cst.CompFor)) and context.tree.within(node, loop.iter) for loop in loops)


_NEEDED = frozenset({Doubt.HOST_NEEDS_IT, Doubt.VALUE_DECIDES})


def _doubts(node: cst.Call, tensor: cst.BaseExpression, context: Context) -> Iterator[Doubt]:
    """What speaks against sparing the copy, in the order of what it costs to know."""
    from torchlint.analyses.host.purpose import is_measured, purpose
    from torchlint.analyses.host.reads import is_needed_on_host
    from torchlint.analyses.sync.avoidable import wait_doubts
    from torchlint.facts import Purpose

    from .offloads import is_made_room_for, is_saved, is_switched_on

    whole = _chain(node, context)
    if is_switched_on(node, context):
        yield Doubt.NAMED_RARE
    is_needed = is_made_room_for(whole, context) or is_saved(node, context) or is_needed_on_host(node, context)
    if is_needed:
        yield Doubt.HOST_NEEDS_IT
    used = purpose(whole, context)
    if used is Purpose.NEEDED:
        yield Doubt.VALUE_DECIDES
    if _is_piecewise(node, context):
        if _is_a_piece_of_its_own(node, context):
            yield Doubt.HOST_NEEDS_IT
    elif is_measured(whole, context) or (used is Purpose.OTHER and _is_handed_on(node, whole, context)):
        yield Doubt.HOST_NEEDS_IT
    elif (
        not is_needed
        and used is not Purpose.NEEDED
        and not (_is_for_nothing(node, context) or (used is Purpose.DEFER and context.value(tensor).scalar))
    ):
        yield Doubt.COSTS_MEMORY if _is_kept_of_each_step(node, context) else Doubt.USE_UNKNOWN
    if _may_be_an_array(node, tensor, context):
        yield Doubt.DEVICE_UNKNOWN
    yield from wait_doubts(node, tensor, context)


def _may_be_an_array(node: cst.Call, tensor: cst.BaseExpression, context: Context) -> bool:
    """Whether `tolist()` is called on what is only used like a tensor, and nobody knows where: an array has it, too."""
    from torchlint.analyses.execution.training_steps import is_in_training
    from torchlint.analyses.host.detours import is_only_used_like_a_tensor
    from torchlint.semantics.names.bindings import final_part

    if final_part(node.func) != "tolist" or context.device(tensor) is not Device.UNKNOWN:
        return False
    return is_only_used_like_a_tensor(tensor, context) and not is_in_training(node, context)


def _is_kept_of_each_step(node: cst.Call, context: Context) -> bool:
    """Whether each step of a loop appends what it has made: `scores.append(model(x).cpu())`.

    One copy of all of them after the loop would do, for which they have to stay on the device until then.
    """
    from torchlint.analyses.host.purpose import is_appended

    from .dependence import is_of_its_own_size
    from .offloads import saves_as_it_goes

    loop = context.frequencies.batch_loop(node)
    if loop is None or loop is not context.loop(node) or not is_appended(_chain(node, context), context):
        return False
    return not is_of_its_own_size(node, context) and not saves_as_it_goes(node, context)


def _is_handed_on(node: cst.Call, whole: cst.CSTNode, context: Context) -> bool:
    """Whether a call is given a list or an array, itself or under a name: nothing but the CPU computes with those.

    `memory.update(ids, loss.cpu().numpy())`, `lengths = n.tolist(); decode(x, lengths)`.
    """
    match context.parent(whole):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]) as statement:
            uses: list[cst.CSTNode] = [
                use
                for use in context.names.spelt(name)
                if context.names.is_read(use) and any(binder is statement for binder in context.binders(use))
            ]
        case _:
            uses = [whole]
    if isinstance(node.func, cst.Attribute) and node.func.attr.value == "tolist":
        return any(_is_given_away(use, context, methods=False) for use in uses)
    return context.kind(whole) is Kind.NDARRAY and any(_is_given_away(use, context, methods=True) for use in uses)


def _is_given_away(use: cst.CSTNode, context: Context, *, methods: bool) -> bool:
    """Whether a call takes it that is none of Python's own, or of a method of what is no module."""
    argument = context.parent(use)
    call = context.parent(argument) if isinstance(argument, cst.Arg) else None
    if not isinstance(call, cst.Call):
        return False
    name = context.qualified_name(call.func) or ""
    return isinstance(call.func, cst.Attribute) and not name.startswith("numpy.") if methods else name not in _BUILTINS


_BUILTINS = frozenset(
    "enumerate zip len range reversed sorted list tuple set dict map filter print sum max min any all".split()
)


def _is_a_piece_of_its_own(node: cst.Call, context: Context) -> bool:
    """Whether no one copy would bring what the iterations copy: each has a size of its own, or ends up in a file."""
    from .dependence import is_cut_to_measure
    from .offloads import saves_as_it_goes

    loop = context.loop(node)
    is_over_a_list = loop is not None and _is_over_a_list(loop, context)
    return is_over_a_list or is_cut_to_measure(node, context) or saves_as_it_goes(node, context)


def _is_for_nothing(node: cst.Call, context: Context) -> bool:
    """Whether what is made of the copy could as well be made of the tensor, as far as the code around tells."""
    from torchlint.analyses.execution.training_steps import is_part_of_a_step, trains
    from torchlint.analyses.host.purpose import is_averaged, is_copied_before

    loop = context.frequencies.batch_loop(node)
    if loop is None:
        return is_part_of_a_step(node, context)
    return (
        trains(loop, context)
        or (is_averaged(node, context) and not is_copied_before(node, context))
        or _feeds_a_loss(node, context)
    )


def _chain(node: cst.CSTNode, context: Context) -> cst.CSTNode:
    """The whole of `t.cpu().numpy()[0]`: what is used of the copy."""
    parent = context.parent(node)
    while isinstance(parent, (cst.Attribute, cst.Call, cst.Subscript)) and node in (
        getattr(parent, "value", None),
        getattr(parent, "func", None),
    ):
        node, parent = parent, context.parent(parent)
    return node


def _is_piecewise(node: cst.Call, context: Context) -> bool:
    """Whether an inner loop over a part of the batch copies what depends on the iteration: one copy could do."""
    from .dependence import depends_on_turn

    loop = context.loop(node)
    if loop is None or loop is context.frequencies.batch_loop(node):
        return False
    return depends_on_turn(node, loop, context)


def _is_over_a_list(loop: cst.CSTNode, context: Context) -> bool:
    """`for wave in waves:`, where `waves[0].device` is asked for: tensors of any length, which no one copy brings.

    So are the hypotheses of a search, each of which runs the network.
    """
    match loop:
        case cst.For(iter=(cst.Name() | cst.Attribute()) as walked):
            code = context.code(walked)
            return f"{code}[0].device" in context.program.code or HYPOTHESES.suggests(code)
    return False


def _feeds_a_loss(node: cst.Call, context: Context) -> bool:
    """Whether a loss is computed from the copy on the CPU; under a name, one known for sure, and nothing else."""
    match context.parent(node):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]) as statement:
            reads = [use for use in context.names.spelt(name) if context.names.is_read(use)]
            uses = [use for use in reads if any(binder is statement for binder in context.binders(use))]
            losses = [_loss_of(use, context) for use in uses]
            return bool(losses) and all(loss is not None and context.value(loss.func).proven for loss in losses)
    return _loss_of(node, context) is not None


def _loss_of(node: cst.CSTNode, context: Context) -> cst.Call | None:
    """The call of a criterion that takes the node."""
    argument = context.parent(node)
    call = context.parent(argument) if isinstance(argument, cst.Arg) else None
    if not isinstance(call, cst.Call):
        return None
    return call if context.kind(call.func) is Kind.MODULE and context.value(call).scalar else None
