"""The bias of a layer whose output only a batch norm reads, which subtracts it again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.rule import Applicability, Context, Doubt, Flag, Message, Node, NodeEdit, Replace, Rule
from torchlint.semantics.knowledge.conventions.texts import WEIGHT_LOADER
from torchlint.semantics.knowledge.marks import QUANTISING

if TYPE_CHECKING:
    from torchlint.facts import Wrapper

RULE = Rule(
    name="bias-before-batchnorm",
    code="TL501",
    group="modules",
    summary="A layer learns a bias that the following norm cancels.",
    since="0.1.0",
    fix=(Applicability.UNSAFE,),
    unsafe="old checkpoints contain the bias",
    doubts=(
        (Doubt.OPTION_DECIDES, ""),
        (Doubt.SMALL, ""),
        (Doubt.RARE, "A network that is made to be exported keeps the weights that it was trained with."),
    ),
)
_CANCELLED = Message("cancelled", "the following `{norm}` cancels the bias of this {layer}", help="{advice}")
_OPTIONAL = Message(
    "optional",
    "the `{norm}` that follows where `{test}` holds cancels the bias of this {layer}",
    help="set `{parameter}` by it, too: `{parameter}={bias}`",
)


@RULE.on(Node("Module", (b"BatchNorm", b"InstanceNorm", b"GroupNorm")))
def check(_: cst.Module, context: Context) -> Iterator[Flag]:
    """Flag each layer with a bias, all of whose output goes into norms that subtract a channel's mean."""
    text = context.program.code
    if QUANTISING.is_in(text):
        return
    from torchlint.analyses.layers.norms import (
        freezes_norms,
        is_over_features,
        norms_behind,
    )
    from torchlint.analyses.layers.wrappers import has_bias, is_wrapped, width, wrapper_of

    for call in context.tree.of(cst.Call):
        made = wrapper_of(call, context)
        if made is None or not has_bias(made, call, context):
            continue
        norms = norms_behind(call, context)
        if freezes_norms(context) or is_wrapped(call, context):
            continue
        if not norms:
            yield from _optional(call, made, context)
            continue
        norm = _class_name(norms[0], context)
        if made.layer.endswith("Linear"):
            features = width(made, call, context)
            if not all(is_over_features(norm, features, context) for norm in norms):
                continue
        if _is_only_served(call, context):
            continue
        reason = _reason_to_keep(call, made, context)
        yield Flag(
            call,
            _CANCELLED.of(norm=norm, layer=_named(call, context), advice=reason or f"set `{made.parameter}=False`"),
            title=f"Set `{made.parameter}=False`",
            edits=() if reason else _without_bias(call, made, context),
            within=context.tree.enclosing_class(call),
            doubts=_doubts(made, context),
        )


def _optional(call: cst.Call, made: Wrapper, context: Context) -> Iterator[Flag]:
    """Flag the layer of a list to which a norm is appended next, or which one follows, if an option says so."""
    from torchlint.analyses.layers.norms import appended_norm, chosen_norm, is_over_features
    from torchlint.analyses.layers.wrappers import given, width

    found = appended_norm(call, context) or chosen_norm(call, context)
    if found is None or given(made, call, context) is not None or context.has_unpacking(call):
        return
    norm, test = found
    if made.layer.endswith("Linear") and not is_over_features(norm, width(made, call, context), context):
        return
    if _is_only_served(call, context) or _reason_to_keep(call, made, context):
        return
    opposite = context.shown(test.expression) if isinstance(test, cst.UnaryOperation) else f"not {context.shown(test)}"
    yield Flag(
        call,
        _OPTIONAL.of(
            norm=_class_name(norm, context),
            test=context.shown(test),
            layer=_named(call, context),
            parameter=made.parameter,
            bias=opposite,
        ),
        within=context.tree.enclosing_class(call),
        doubts=(Doubt.OPTION_DECIDES, *_doubts(made, context)),
    )


def _doubts(made: Wrapper, context: Context) -> tuple[Doubt, ...]:
    """A product adds a bias as it goes, a convolution in a pass over its output."""
    from torchlint.analyses.execution.occasions import is_export

    small = (Doubt.SMALL,) if made.layer.endswith("Linear") else ()
    return (*small, Doubt.RARE) if is_export(context) else small


def _is_only_served(call: cst.Call, context: Context) -> bool:
    """Whether the layer is one of a network that nobody trains."""
    from torchlint.analyses.layers.inference_only import is_only_served

    class_ = context.tree.enclosing_class(call)
    return class_ is not None and is_only_served(class_, context)


def _class_name(call: cst.Call, context: Context) -> str:
    return (context.qualified_name(call.func) or context.code(call.func)).rpartition(".")[2]


def _named(call: cst.Call, context: Context) -> str:
    """The class of a layer, with the file that it is from if that is another one."""
    name = f"`{_class_name(call, context)}`"
    described = context.described(call.func)
    return name if described is None else f"{name} of {described.path}"


def _reason_to_keep(call: cst.Call, made: Wrapper, context: Context) -> str:
    """Why the bias can't just be left out, for the message."""
    from torchlint.analyses.layers.bias import needs_bias

    without = f"setting `{made.parameter}=False`"
    loads = WEIGHT_LOADER.found_in(context.program.code)
    if loads:
        return f"weights loaded by `{loads}` may hold it, so convert those before {without}"
    if needs_bias(call, made.layer, context):
        return f"this file uses `.bias` without a test for None, so add one before {without}"
    if made.expects_bias:
        return f"the file of its class uses `.bias` without a test for None, so add one before {without}"
    return ""


def _without_bias(call: cst.Call, made: Wrapper, context: Context) -> tuple[NodeEdit, ...]:
    from torchlint.analyses.layers.wrappers import given
    from torchlint.edits.expressions import with_argument

    passed = given(made, call, context)
    if passed is not None:
        return (Replace(passed, "False"),)
    if context.has_unpacking(call) or not call.args:
        return ()
    return (with_argument(call, f"{made.parameter}=False", context),)
