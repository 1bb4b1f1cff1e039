"""A tensor that is made in one type only to be cast to another."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import libcst as cst

from torchlint.rule import Applicability, Call, Context, Doubt, Flag, Message, NodeEdit, Replace, Rule, Status

RULE = Rule(
    name="cast-after-creation",
    code="TL221",
    group="transfer",
    summary="A tensor is created in one type and then cast to another, which takes a second tensor and kernel.",
    since="0.2.0",
    status=Status.PREVIEW,
    fix=(Applicability.SAFE,),
    yields_to=("host-factory-then-move", "cast-widens-h2d", "legacy-type-cast"),
    eager=True,
    doubts=(
        (Doubt.RATE_UNKNOWN, ""),
        (Doubt.UNCALLED, ""),
        (Doubt.WAITS_ANYWAY, ""),
        (Doubt.SMALL, "To cast a vector takes one short kernel, and what makes samples works beside the GPU."),
        (Doubt.RUNS_ONCE, "One cast at the start takes no time worth a word."),
        (Doubt.RARE, "A cast now and then takes no time worth a word."),
    ),
)
_CAST = Message(
    "cast",
    "`{made}` is created in another type{often} and then cast to `{dtype}`",
    help="create it with `dtype={dtype}`",
)
_FACTORIES = tuple(f"torch.{name}" for name in ("zeros", "ones", "eye", "full"))
_CASTS = {
    "bool": "bool",
    "byte": "uint8",
    "char": "int8",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "half": "float16",
    "bfloat16": "bfloat16",
    "double": "float64",
}
_TYPES = frozenset(_CASTS.values())
_ALIASES = {"half": "float16", "short": "int16", "int": "int32", "long": "int64", "double": "float64"}
# What keeps some of the elements, in any type.
_STEPS = frozenset({"tril", "triu"})
# With these the tensor is made in something that exists, or the cast is part of a graph.
_OTHERWISE = frozenset({"dtype", "out", "requires_grad"})
_SMALL = 10_000
# So many in each row add nothing to a vector worth a word.
_FEW = 100


@RULE.on(*map(Call, _FACTORIES))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a cast of what a factory fills with whole numbers; the fix makes it of that type."""
    if context.has_unpacking(node) or not node.args or any(map(_is_otherwise, node.args)):
        return
    cast = _cast(node, context)
    if cast is None or not _is_whole(node, context):
        return
    dtype = _dtype(cast, node, context)
    if not dtype:
        return
    from torchlint.edits.messages import how_often

    yield Flag(
        cast,
        _CAST.of(made=context.shown(node), often=how_often(node, context), dtype=dtype),
        title=f"Create it with `dtype={dtype}`",
        edits=_edits(node, cast, dtype, context),
        applicability=Applicability.SAFE,
        doubts=tuple(_doubts(node, cast, context)),
    )


def _doubts(made: cst.Call, cast: cst.Call, context: Context) -> Iterator[Doubt]:
    from torchlint.analyses.data.sample_code import is_for_samples
    from torchlint.analyses.execution.hot import rate_doubts
    from torchlint.analyses.execution.occasions import is_made_once, is_set_up

    if _is_small(made, context) or is_for_samples(made, context):
        yield Doubt.SMALL
    elif is_set_up(made, context) or is_made_once(cast, context):
        yield Doubt.RUNS_ONCE
    else:
        yield from rate_doubts(made, context)


def _is_otherwise(argument: cst.Arg) -> bool:
    return argument.keyword is not None and argument.keyword.value in _OTHERWISE


def _cast(made: cst.Call, context: Context) -> cst.Call | None:
    """The call that casts what the factory makes, behind `tril` or `triu` at most."""
    node: cst.CSTNode = made
    while True:
        match above := context.parent(node):
            case cst.Attribute(attr=cst.Name(value=name)):
                call = context.parent(above)
                if not isinstance(call, cst.Call) or call.func is not above:
                    return None
                if name in _STEPS:
                    node = call
                    continue
                is_cast = (name in _CASTS and not call.args) or (name in ("to", "type") and len(call.args) == 1)
                return call if is_cast else None
            case cst.Arg(keyword=None, star=""):
                step = context.parent(above)
                if not isinstance(step, cst.Call) or step.args[0] is not above:
                    return None
                if context.qualified_name(step.func) not in ("torch.tril", "torch.triu"):
                    return None
                if any(map(_is_otherwise, step.args)):
                    return None
                node = step
            case _:
                return None


def _dtype(cast: cst.Call, made: cst.Call, context: Context) -> str:
    """The code of the type that a call casts to, where it is another than the factory makes; nothing otherwise."""
    from torchlint.semantics.names.bindings import final_part

    assert isinstance(cast.func, cst.Attribute)
    if not cast.args:
        name = _CASTS[cast.func.attr.value]
        torch = made.func.value if isinstance(made.func, cst.Attribute) else None
        code = f"{context.code(torch)}.{name}" if torch is not None else f"torch.{name}"
    else:
        argument = cast.args[0]
        if argument.star or (argument.keyword is not None and argument.keyword.value != "dtype"):
            return ""
        package, _, name = (context.qualified_name(argument.value) or "").rpartition(".")
        if package != "torch":
            return ""
        name, code = _ALIASES.get(name, name), context.code(argument.value)
    # A whole number fills with int64, or with bool, where `full` is told no type.
    is_own = name == "int64" and final_part(made.func) == "full"
    return code if name in _TYPES and not is_own else ""


def _is_whole(made: cst.Call, context: Context) -> bool:
    """Whether each type holds what the tensor is filled with: 0 and 1 do."""
    if context.qualified_name(made.func) != "torch.full":
        return True
    fill = context.argument(made, "fill_value", 1)
    return isinstance(fill, cst.Integer) and fill.value in ("0", "1")


def _is_small(made: cst.Call, context: Context) -> bool:
    """Whether it is a vector, or has few elements: to cast it is one short kernel."""
    from torchlint.analyses.tensors.element_counts import amount, sizes
    from torchlint.semantics.values.lattice import Kind

    number = amount(made, context)
    if number is not None:
        return number < _SMALL
    axes = sizes(made, context)
    if axes is None or context.qualified_name(made.func) == "torch.eye":
        return False
    if len(axes) > 1:
        return axes.count(None) <= 1 and prod(size or 1 for size in axes) < _FEW
    given = context.argument(made, "size", 0)
    return isinstance(given, (cst.Name, cst.BinaryOperation, cst.List, cst.Tuple)) or (
        given is not None and context.kind(given) is Kind.NUMBER
    )


def _edits(made: cst.Call, cast: cst.Call, dtype: str, context: Context) -> tuple[NodeEdit, ...]:
    from torchlint.edits.expressions import in_place_of

    assert isinstance(cast.func, cst.Attribute)
    if "#" in context.code(cast) or (not cast.args and not isinstance(made.func, cst.Attribute)):
        return ()
    # On CUDA torch has `tril` and `triu` of bfloat16 from 2.1 on only.
    if cast.func.value is not made and dtype.endswith("bfloat16"):
        return ()
    *before, last = made.args
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" "))
    plain = last.with_changes(comma=comma, whitespace_after_arg=cst.SimpleWhitespace(""))
    given = cst.Arg(
        cst.parse_expression(dtype),
        keyword=cst.Name("dtype"),
        equal=cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace("")),
        comma=last.comma,
        whitespace_after_arg=last.whitespace_after_arg,
    )
    typed = made.with_changes(args=[*before, plain, given])
    inner = cast.func.value
    whole = typed if inner is made else inner.deep_replace(made, typed)
    assert isinstance(whole, cst.BaseExpression)
    return (Replace(cast, in_place_of(cast, context.code_at(whole, cast), context)),)
