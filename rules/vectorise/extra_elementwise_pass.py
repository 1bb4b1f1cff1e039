"""Arithmetic in several passes over tensors where one operation of PyTorch makes one."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Context, Doubt, Flag, Message, Method, Node, Rule

RULE = Rule(
    name="extra-elementwise-pass",
    code="TL919",
    group="vectorise",
    summary="Arithmetic makes several passes over tensors where one operation makes one.",
    since="0.2.0",
    eager=True,
    yields_to=("per-parameter-update-loop", "grad-norm-by-hand", "unfused-rmsnorm", "broadcast-pairwise-distance"),
    doubts=(
        (Doubt.SIZE_UNKNOWN, ""),
        (Doubt.RATE_UNKNOWN, ""),
        (Doubt.UNCALLED, ""),
        (Doubt.NAMED_RARE, ""),
        (Doubt.NAMED_OTHERWISE, ""),
        (Doubt.RARE, "A pass now and then takes no time."),
        (Doubt.RUNS_ONCE, "One pass takes no time."),
        (Doubt.SMALL, "One number takes no time."),
    ),
)
_PASSES = Message("passes", "`{code}` {does}{often}", help="{instead}")
_MANY = "makes several passes over its tensors"


@RULE.on(Method("topk"))
def check_topk(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag `x.topk(1)` and `torch.topk(x, 1)`."""
    is_function = context.qualified_name(node.func) == "torch.topk"
    if context.has_unpacking(node) or (not is_function and context.qualified_name(node.func) is not None):
        return
    number = context.argument(node, "k", int(is_function))
    if not isinstance(number, cst.Integer) or number.value != "1":
        return
    assert isinstance(node.func, cst.Attribute)
    tensor = context.argument(node, "input", 0) if is_function else node.func.value
    if tensor is not None:
        instead = "use `max(dim, keepdim=True)`, or `min`, which gives the value and its index"
        yield from _flag(node, (tensor,), "selects by a partial sort where one reduction does it", instead, context)


@RULE.on(Method("sqrt"))
def check_norm(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag the root of a sum of squares."""
    total = _operand(node, "torch.sqrt", context)
    if not isinstance(total, cst.Call) or len(node.args) > 1:
        return
    squares = _operand(total, "torch.sum", context)
    base = None if squares is None else _squared(squares, context)
    if base is not None:
        yield from _flag(node, (base,), _MANY, "use `torch.linalg.vector_norm`", context)


@RULE.on(Method("add_"))
def check_in_place(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag `x.mul_(1 - w).add_(y, alpha=w)`."""
    match node:
        case cst.Call(
            func=cst.Attribute(
                value=cst.Call(func=cst.Attribute(value=mean, attr=cst.Name(value="mul_")), args=[cst.Arg(value=kept)])
            ),
            args=[cst.Arg(value=new, keyword=None, star=""), cst.Arg(value=share, keyword=cst.Name(value="alpha"))],
        ) if _complements(kept, share):
            yield from _flag(node, (mean, new), _MANY, "use `lerp_`", context)


@RULE.on(Node("BinaryOperation", (b"torch",)))
def check(node: cst.BinaryOperation, context: Context) -> Iterator[Flag]:
    """Flag what is a blend of two."""
    found = _blend(node)
    if found is not None:
        tensors, instead = found
        yield from _flag(node, tensors, _MANY, instead, context)


def _flag(
    node: cst.BaseExpression, tensors: tuple[cst.BaseExpression, ...], does: str, instead: str, context: Context
) -> Iterator[Flag]:
    """The flag, where these are tensors, not on the CPU, and no network runs beside."""
    from torchlint.analyses.data.sample_code import is_for_samples
    from torchlint.analyses.execution.hot import rate_doubts
    from torchlint.edits.messages import how_often
    from torchlint.semantics.knowledge.conventions.values import LOSS
    from torchlint.semantics.names.bindings import last_part
    from torchlint.semantics.values.lattice import Device

    if not all(map(context.is_tensor, tensors)) or any(context.device(each) is Device.CPU for each in tensors):
        return
    if is_for_samples(node, context) or _is_beside_a_network(node, context):
        return
    small = (Doubt.SMALL,) if all(context.value(each).scalar for each in tensors) else ()
    said = _PASSES.of(code=context.shown(node), does=does, often=how_often(node, context), instead=instead)
    losses = (Doubt.NAMED_OTHERWISE,) if any(LOSS.suggests(last_part(each)) for each in tensors) else ()
    yield Flag(node, said, doubts=(*small, *rate_doubts(node, context), *losses, Doubt.SIZE_UNKNOWN))


def _is_beside_a_network(node: cst.BaseExpression, context: Context) -> bool:
    """Whether the innermost loop or function runs a network, beside which a pass costs nothing."""
    from torchlint.semantics.values.lattice import Kind
    from torchlint.syntax.tree import descendants

    around = context.loop(node) or context.function(node)
    calls = () if around is None else (part for part in descendants(around.body) if isinstance(part, cst.Call))
    return any(context.kind(call.func) is Kind.MODULE for call in calls)


def _operand(node: cst.Call, function: str, context: Context) -> cst.BaseExpression | None:
    """The `x` of `torch.sum(x)` and of `x.sum()`, for the name of the function."""
    name = context.qualified_name(node.func)
    if name == function:
        return node.args[0].value if node.args and not context.has_unpacking(node) else None
    match node.func:
        case cst.Attribute(value=owner, attr=cst.Name(value=method)) if name is None:
            return owner if method == function.removeprefix("torch.") else None
    return None


def _squared(node: cst.BaseExpression, context: Context) -> cst.BaseExpression | None:
    match node:
        case cst.BinaryOperation(left=left, operator=cst.Power(), right=power):
            return left if _is_number(power, 2) else None
        case cst.BinaryOperation(left=left, operator=cst.Multiply(), right=right):
            return left if left.deep_equals(right) and isinstance(left, cst.Name) else None
        case cst.Call():
            base = _operand(node, "torch.pow", context)
            if base is not None:
                return base if _is_number(node.args[-1].value, 2) else None
            return _operand(node, "torch.square", context)
    return None


def _is_number(node: cst.BaseExpression, number: int) -> bool:
    return isinstance(node, (cst.Integer, cst.Float)) and float(node.value.replace("_", "")) == number


def _bare(node: cst.BaseExpression) -> cst.BaseExpression:
    return node.with_changes(lpar=(), rpar=()) if node.lpar else node


def _complements(one: cst.BaseExpression, other: cst.BaseExpression) -> bool:
    """Whether one is `1 - w` or `~w` of the other, `w`."""
    return _is_complement(one, other) or _is_complement(other, one)


def _is_complement(rest: cst.BaseExpression, share: cst.BaseExpression) -> bool:
    match rest:
        case cst.BinaryOperation(left=whole, operator=cst.Subtract(), right=part):
            return _is_number(whole, 1) and _same(part, share)
        case cst.UnaryOperation(operator=cst.BitInvert(), expression=part):
            return _same(part, share)
        case cst.Call(func=cst.Attribute(value=part, attr=cst.Name(value="logical_not")), args=[]):
            return _same(part, share)
    return False


def _same(one: cst.BaseExpression, other: cst.BaseExpression) -> bool:
    bare = _bare(one)
    return isinstance(bare, (cst.Name, cst.Attribute, cst.Subscript)) and bare.deep_equals(_bare(other))


def _blend(node: cst.BinaryOperation) -> tuple[tuple[cst.BaseExpression, ...], str] | None:
    """`w * a + (1 - w) * b`, and `b + w * (a - b)`."""
    match node.left, node.operator, node.right:
        case (
            cst.BinaryOperation(left=a, operator=cst.Multiply(), right=b),
            cst.Add(),
            cst.BinaryOperation(left=c, operator=cst.Multiply(), right=d),
        ):
            for share, one in ((a, b), (b, a)):
                for rest, other in ((c, d), (d, c)):
                    if _complements(share, rest):
                        return (one, other), "use `torch.lerp`, or `torch.where` with a mask"
        case start, cst.Add(), further:
            for part in (further, *_factors(further)):
                match part:
                    case cst.BinaryOperation(left=end, operator=cst.Subtract(), right=origin) if (
                        _same(end, start) if part is further else _same(origin, start)
                    ):
                        return (start, end, origin), "use `torch.lerp`"
    return None


def _factors(node: cst.BaseExpression) -> tuple[cst.BaseExpression, ...]:
    match node:
        case cst.BinaryOperation(left=left, operator=cst.Multiply(), right=right):
            return left, right
        case cst.BinaryOperation(left=left, operator=cst.Divide()):
            return (left,)
    return ()
