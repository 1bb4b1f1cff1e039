"""A clone of a tensor right before or after a move or a cast, each of which copies it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from torchlint.rule import Applicability, Context, Doubt, Flag, Message, Method, NodeEdit, Replace, Rule

RULE = Rule(
    name="clone-beside-copy",
    code="TL222",
    group="transfer",
    summary="A tensor is cloned right before or after it is moved or cast, and so copied twice.",
    since="0.2.0",
    fix=(Applicability.UNSAFE,),
    unsafe="`copy=True` fails for what is no tensor",
    yields_to=("bulk-d2h-in-hot-loop", "copy-through-pageable-memory", "device-round-trip", "nonblocking-d2h-read"),
    eager=True,
    doubts=(
        (Doubt.SIZE_UNKNOWN, ""),
        (Doubt.DEVICE_UNKNOWN, ""),
        (Doubt.DATA_UNKNOWN, ""),
        (Doubt.RATE_UNKNOWN, ""),
        (Doubt.UNCALLED, ""),
        (Doubt.NAMED_RARE, ""),
        (Doubt.RARE, ""),
        (Doubt.SMALL, "To copy one number takes one short kernel, however often."),
        (Doubt.RUNS_ONCE, "One copy at the start takes no time worth a word."),
    ),
)
_TWICE = Message(
    "twice",
    "`{copied}` copies the tensor twice{often}{where}: by `clone` and by the {act}",
    help="use `{instead}`, which copies once and always",
)
_WHERE = {
    Doubt.DEVICE_UNKNOWN: " if it is on another device",
    Doubt.DATA_UNKNOWN: " if it is of another type",
    Doubt.SMALL: "",
}
_MOVES = frozenset({"to", "cpu", "cuda"})


class _Pair(NamedTuple):
    """A clone and a move or cast of the same tensor, nothing but `detach()` between them."""

    whole: cst.Call
    tensor: cst.BaseExpression
    move: cst.Call
    is_detached: bool


@RULE.on(Method("clone"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag `x.clone().to(device)` and `x.cpu().clone()`, which `x.to(device, copy=True)` does with one copy."""
    from torchlint.analyses.execution.hot import rate_doubts
    from torchlint.edits.messages import how_often
    from torchlint.semantics.values.lattice import Kind

    pair = _pair(node, context)
    if pair is None or not context.is_tensor(pair.tensor):
        return
    target = context.argument(pair.move, "device", 0) or context.argument(pair.move, "dtype")
    is_cast = target is not None and context.kind(target) is Kind.DTYPE
    doubts = _doubts(pair, target, context, is_cast=is_cast)
    if doubts is None:
        return
    instead = _instead(pair, context)
    yield Flag(
        pair.whole,
        _TWICE.of(
            copied=context.shown(pair.whole),
            often=how_often(node, context),
            where=_WHERE[doubts[0]] if doubts else "",
            act="cast" if is_cast else "move",
            instead=instead,
        ),
        title="Copy once",
        edits=_edits(pair, instead, context),
        applicability=Applicability.UNSAFE,
        doubts=(*doubts, Doubt.SIZE_UNKNOWN, *rate_doubts(node, context)),
    )


def _pair(clone: cst.Call, context: Context) -> _Pair | None:
    assert isinstance(clone.func, cst.Attribute)
    if clone.args or context.qualified_name(clone.func) is not None:
        return None
    inner, was_detached = _undetached(clone.func.value)
    if isinstance(inner, cst.Call) and _is_move(inner, context):
        assert isinstance(inner.func, cst.Attribute)
        return _Pair(clone, inner.func.value, inner, was_detached)
    outer = _call_of_result(clone, context)
    is_detached = outer is not None and _method(outer) == "detach" and not outer.args
    if outer is not None and is_detached:
        outer = _call_of_result(outer, context)
    if outer is None or not _is_move(outer, context):
        return None
    return _Pair(outer, clone.func.value, outer, is_detached)


def _undetached(node: cst.BaseExpression) -> tuple[cst.BaseExpression, bool]:
    match node:
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value="detach")), args=[]):
            return inner, True
    return node, False


def _call_of_result(call: cst.Call, context: Context) -> cst.Call | None:
    """The call of a method of what a call gives."""
    attribute = context.parent(call)
    above = context.parent(attribute) if isinstance(attribute, cst.Attribute) else None
    return above if isinstance(above, cst.Call) and above.func is attribute else None


def _method(call: cst.Call) -> str:
    return call.func.attr.value if isinstance(call.func, cst.Attribute) else ""


def _is_move(call: cst.Call, context: Context) -> bool:
    """Whether it moves or casts a tensor, and may give the tensor itself."""
    if _method(call) not in _MOVES or context.has_unpacking(call) or context.qualified_name(call.func) is not None:
        return False
    is_told = context.argument(call, "copy") is not None or len(call.args) > 2
    return not is_told and bool(call.args) is (_method(call) == "to")


def _doubts(
    pair: _Pair, target: cst.BaseExpression | None, context: Context, *, is_cast: bool
) -> tuple[Doubt, ...] | None:
    """What is not known of whether both copy; None where the move is known to give the tensor itself."""
    from torchlint.semantics.values.lattice import Device

    if context.value(pair.tensor).scalar:
        return (Doubt.SMALL,)
    if is_cast:
        return (Doubt.DATA_UNKNOWN,)
    here = context.device(pair.tensor)
    method = _method(pair.move)
    there = Device.CPU if method == "cpu" else Device.ACCELERATOR if method == "cuda" else Device.UNKNOWN
    if method == "to" and target is not None:
        there = context.device(target)
    if here is Device.CPU and there is Device.CPU:
        return None
    is_known = Device.UNKNOWN not in (here, there) and (here is Device.CPU) is not (there is Device.CPU)
    return () if is_known else (Doubt.DEVICE_UNKNOWN,)


def _instead(pair: _Pair, context: Context) -> str:
    from torchlint.edits.expressions import as_argument

    method = _method(pair.move)
    given = [as_argument(argument, context) for argument in pair.move.args] if method == "to" else [f'"{method}"']
    detached = ".detach()" if pair.is_detached else ""
    return f"{context.code(pair.tensor)}{detached}.to({', '.join(given)}, copy=True)"


def _edits(pair: _Pair, instead: str, context: Context) -> tuple[NodeEdit, ...]:
    from torchlint.edits.expressions import in_place_of

    if "#" in context.code(pair.whole) or "\n" in instead:
        return ()
    return (Replace(pair.whole, in_place_of(pair.whole, instead, context)),)
