"""A layer that is made where it is called: at each forward pass a new one, with new weights if it has any."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.edits.messages import how_often
from torchlint.finding import Frequency
from torchlint.rule import Applicability, Call, Context, Doubt, Flag, Message, NodeEdit, Replace, Rule

from . import functionals
from .functionals import DROPOUTS, PLAIN, WEIGHTED, function_for, same_as

RULE = Rule(
    name="module-built-in-forward",
    code="TL502",
    group="modules",
    summary="A layer is recreated in every forward pass, with new random weights if it has any.",
    since="0.2.0",
    fix=(Applicability.SAFE,),
    doubts=((Doubt.HOST_BOUND, ""),),
    yields_to=("naive-attention",),
)
_DROPOUT = Message(
    "dropout",
    "`{made}` is recreated{often} in training mode, so it drops values in evaluation too",
    help="create it in `__init__`",
)
_WEIGHTED = Message(
    "weighted",
    "`{made}` is recreated{often}, with new weights that no optimizer knows",
    help="create it in `__init__`",
)
_PLAIN = Message("plain", "`{made}` creates a module{often} only to call it", help="call `{function}`")
_MOVES = frozenset({"to", "cuda", "cpu", "type", "half", "float", "double"})


@RULE.on(*(Call(f"torch.nn.{layer}") for layer in (*PLAIN, *DROPOUTS, *WEIGHTED)))
def check(made: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag the construction of a layer that is called on the spot, or under a local name, for each batch."""
    from torchlint.analyses.execution.compiled import Compiled

    called = _called(made, context)
    if called is None or context.frequency(made) < Frequency.BATCH:
        return
    layer = (context.qualified_name(made.func) or "").rpartition(".")[2]
    shown, often = context.shown(made), how_often(made, context)
    if layer in DROPOUTS:
        if _is_in_module(made, context):
            yield Flag(
                made,
                _DROPOUT.of(made=shown, often=often),
            )
    elif layer in WEIGHTED:
        if _is_in_module(made, context):
            yield Flag(
                made,
                _WEIGHTED.of(made=shown, often=often),
            )
    elif not context[Compiled].holds(made):
        yield Flag(
            made,
            _PLAIN.of(made=shown, often=often, function=same_as(layer, made)),
            title=f"Call `{function_for(layer)}`",
            edits=_edits(made, layer, called, context),
            applicability=Applicability.SAFE,
            doubts=(Doubt.HOST_BOUND,),
        )


def _called(made: cst.Call, context: Context) -> cst.Call | None:
    """A call of the new layer; None if anything but calls is done with it."""
    parent = context.parent(made)
    match parent:
        case cst.Call(func=func) if func is made:
            return parent
        case cst.Attribute(attr=cst.Name(value=method)) if method in _MOVES:
            moved = context.parent(parent)
            return _called(moved, context) if isinstance(moved, cst.Call) and moved.func is parent else None
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]) if context.function(made):
            uses = context.uses.of(name, parent)
            calls = [call for use in uses if (call := _call_of(use, context)) is not None]
            return calls[0] if calls and len(calls) == len(uses) else None
    return None


def _call_of(use: cst.CSTNode, context: Context) -> cst.Call | None:
    call = context.parent(use)
    return call if isinstance(call, cst.Call) and call.func is use else None


def _is_in_module(node: cst.CSTNode, context: Context) -> bool:
    """Whether a network runs the code: elsewhere it may well be wanted."""
    function = context.function(node)
    owner = context.classes.owner(function) if function is not None else None
    return owner is not None and context.classes.is_module(owner)


def _edits(made: cst.Call, layer: str, called: cst.Call, context: Context) -> tuple[NodeEdit, ...]:
    from torchlint.edits.expressions import in_place_of, loses_comment, may_swap
    from torchlint.edits.imports import spelling

    if called.func is not made or len(called.args) != 1 or called.args[0].keyword or called.args[0].star:
        return ()
    keywords = frozenset(argument.keyword.value for argument in made.args if argument.keyword is not None)
    if isinstance(called.args[0].value, cst.GeneratorExp) or (
        layer == "Upsample" and not functionals.is_scaled_by_numbers(made)
    ):
        return ()
    function = function_for(layer)
    if (
        not function
        or context.has_unpacking(made)
        or not functionals.takes(layer, len(made.args) - len(keywords), keywords)
    ):
        return ()
    name = spelling(function, made, context)
    values = [called.args[0].value, *(argument.value for argument in made.args)]
    if not may_swap(values[1:], values[0], context) or functionals.is_tampered_with(context):
        return ()
    if not name or loses_comment(called, *values, context=context):
        return ()
    passed = [f"{argument.keyword.value}=" if argument.keyword else "" for argument in (called.args[0], *made.args)]
    arguments = ", ".join(word + context.code(value) for word, value in zip(passed, values, strict=True))
    return (Replace(called, in_place_of(called, f"{name}({arguments})", context)),)
