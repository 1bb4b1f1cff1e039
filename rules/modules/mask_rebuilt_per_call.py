"""A triangular mask that is built again at each call, from nothing but a length."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Call, Context, Doubt, Flag, Message, Method, Rule

RULE = Rule(
    name="mask-rebuilt-per-call",
    code="TL516",
    group="modules",
    summary="A triangular mask is built again at each call, though it depends on a length alone.",
    since="0.2.0",
    eager=True,
    doubts=(
        (Doubt.SIZE_UNKNOWN, ""),
        (Doubt.RATE_UNKNOWN, ""),
        (Doubt.UNCALLED, ""),
        (Doubt.SMALL, "A mask of a few entries takes microseconds."),
        (Doubt.RARE, "A mask now and then takes microseconds."),
        (Doubt.RUNS_ONCE, "This is where a mask should be built."),
    ),
)
_REBUILT = Message(
    "rebuilt",
    "`{mask}` is built again{often}, though it depends on a length alone",
    help="build it once, keep it as a buffer and slice it, or pass `is_causal=True` to the attention",
)
_TRIANGLES = ("torch.tril", "torch.triu")
_SIZED = frozenset({"torch.ones", "torch.zeros", "torch.full", "torch.empty"})


@RULE.on(*map(Call, _TRIANGLES), Method("tril"), Method("triu"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag `torch.tril(torch.ones(n, n))` and the like where it runs again and again."""
    from torchlint.analyses.execution.hot import rate_doubts
    from torchlint.analyses.tensors.element_counts import sizes
    from torchlint.edits.messages import how_often

    made: cst.BaseExpression | None = None
    if context.qualified_name(node.func) in _TRIANGLES:
        made = node.args[0].value if node.args and node.args[0].keyword is None else None
    elif isinstance(node.func, cst.Attribute):
        made = node.func.value
    factory = _factory(made, context) if made is not None else None
    if factory is None or not _is_square(factory, context) or _is_built_once(node, context):
        return
    found = sizes(factory, context)
    doubts = rate_doubts(node, context)
    if found is not None and None not in found:
        doubts = (*doubts, Doubt.SMALL)
    yield Flag(
        node,
        _REBUILT.of(mask=context.shown(node), often=how_often(node, context) or " at each call"),
        doubts=(*doubts, Doubt.SIZE_UNKNOWN),
    )


def _factory(made: cst.BaseExpression, context: Context) -> cst.Call | None:
    """The call that makes a constant tensor with two axes or more, cast or moved; None where it is anything else."""
    match made:
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value="to" | "bool" | "type" | "cuda" | "float"))):
            if context.qualified_name(made.func) is None:
                return _factory(inner, context)
    if not isinstance(made, cst.Call) or context.qualified_name(made.func) not in _SIZED:
        return None
    return made if any(argument.keyword is None for argument in made.args) else None


def _is_square(factory: cst.Call, context: Context) -> bool:
    """Whether both axes have the same length, as those of a causal mask."""
    given = [argument.value for argument in factory.args if argument.keyword is None]
    if given and isinstance(given[0], (cst.Tuple, cst.List)):
        given = [element.value for element in given[0].elements]
    return len(given) >= 2 and given[-1].deep_equals(given[-2])


def _is_built_once(node: cst.Call, context: Context) -> bool:
    """Whether this sets up an object or is kept: in a constructor, in a cached function, as an attribute."""
    from torchlint.analyses.execution.occasions import is_preparation, is_set_up

    function = context.enclosing(node, cst.FunctionDef)
    if function is None or function.name.value == "__init__" or _is_cached(function, context):
        return True
    if is_set_up(node, context) or is_preparation(node, context):
        return True

    def whole(place: cst.BaseExpression, taker: cst.CSTNode) -> cst.BaseExpression | None:
        above = context.parent(taker)
        if isinstance(taker, (cst.BinaryOperation, cst.UnaryOperation, cst.Subscript)):
            return taker
        if isinstance(taker, cst.Attribute) and isinstance(above, cst.Call) and above.func is taker:
            return above
        return None

    def is_kept(made: cst.Call) -> bool:
        return any(map(_keeps, map(context.parent, context.destinations(made, handed_on=whole).nodes)))

    return is_kept(node) or any(map(is_kept, context.calls.callers(function)))


def _keeps(taker: cst.CSTNode | None) -> bool:
    """Whether a value goes into an attribute or an entry from there, or is handed to something that may keep it."""
    match taker:
        case cst.Assign(targets=targets):
            return any(isinstance(target.target, (cst.Attribute, cst.Subscript)) for target in targets)
    return False


def _is_cached(function: cst.FunctionDef, context: Context) -> bool:
    """Whether the function remembers what it gives: `functools.lru_cache`."""
    decorators = (each.decorator for each in function.decorators)
    names = (context.qualified_name(each.func if isinstance(each, cst.Call) else each) or "" for each in decorators)
    return any(name.rpartition(".")[2] in ("lru_cache", "cache", "cached_property") for name in names)
