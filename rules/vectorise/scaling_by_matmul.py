"""A product of matrices that only scales rows or columns, which broadcasting does without the matrix."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Call, Context, Doubt, Flag, Message, Method, Rule, Status

RULE = Rule(
    name="scaling-by-matmul",
    code="TL916",
    group="vectorise",
    summary="A matrix is built and multiplied with only to scale rows or columns.",
    since="0.2.0",
    status=Status.PREVIEW,
    doubts=(
        (Doubt.SIZE_UNKNOWN, ""),
        (Doubt.RATE_UNKNOWN, ""),
        (Doubt.UNCALLED, ""),
        (Doubt.RARE, "A product now and then takes no time."),
        (Doubt.RUNS_ONCE, "One product takes no time."),
    ),
)
_DIAGONAL = Message(
    "diagonal",
    "`{matrix}` is built{often} to scale {what} by a matrix product",
    help="multiply by the vector instead: {instead}",
)
_OUTER = Message(
    "outer",
    "`{outer}` builds a full matrix{often} only to scale rows and columns of another",
    help="multiply by each factor in turn: `matrix * column * row`, which broadcasts",
)
_PRODUCTS = ("torch.matmul", "torch.mm", "torch.bmm")
_DECOMPOSITIONS = {"svd": 1, "eigh": 0, "eig": 0, "symeig": 0}


@RULE.on(Call("torch.diag"), Call("torch.diag_embed"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag `torch.diag(v) @ x` and `x @ torch.diag(v)` of a vector `v`."""
    from torchlint.analyses.execution.hot import rate_doubts
    from torchlint.edits.messages import how_often

    if len(node.args) != 1 or node.args[0].keyword is not None or node.args[0].star:
        return
    vector = node.args[0].value
    is_left = _side(node, context)
    if is_left is None:
        return
    is_diag = context.qualified_name(node.func) == "torch.diag"
    if is_diag and not _is_vector(vector, context):
        return
    name = context.shown(vector)
    if is_left:
        instead = f"`{name}.unsqueeze(-1) * matrix`"
    else:
        instead = f"`matrix * {name}`" if is_diag else f"`matrix * {name}.unsqueeze(-2)`"
    yield Flag(
        node,
        _DIAGONAL.of(
            matrix=context.shown(node),
            what="rows" if is_left else "columns",
            instead=instead,
            often=how_often(node, context),
        ),
        doubts=(*rate_doubts(node, context), Doubt.SIZE_UNKNOWN),
    )


@RULE.on(*map(Call, _PRODUCTS), Method("matmul"), Method("bmm"))
def check_outer(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag the outer product of two factors that is nothing but multiplied with a matrix element by element."""
    from torchlint.analyses.execution.hot import rate_doubts
    from torchlint.edits.messages import how_often

    factors = _factors(node, context)
    if factors is None or not (_is_column(factors[0], context) and _is_row(factors[1], context)):
        return
    used = context.destinations(node)
    if used.lost or len(used.found) != 1 or not _is_multiplied(used.found[0].node, context):
        return
    yield Flag(
        node,
        _OUTER.of(outer=context.shown(node), often=how_often(node, context)),
        doubts=(*rate_doubts(node, context), Doubt.SIZE_UNKNOWN),
    )


def _side(node: cst.Call, context: Context) -> bool | None:
    """Whether it is the left factor of a matrix product; None where it is no factor of one."""
    match context.parent(node):
        case cst.BinaryOperation(left=left, operator=cst.MatrixMultiply()):
            return left is node
        case cst.Arg() as argument:
            call = context.parent(argument)
            if not isinstance(call, cst.Call) or len(call.args) > 2 or argument.keyword is not None:
                return None
            if context.qualified_name(call.func) in _PRODUCTS and len(call.args) == 2:
                return call.args[0] is argument
            is_method = isinstance(call.func, cst.Attribute) and call.func.attr.value in ("matmul", "mm", "bmm")
            return False if is_method and context.qualified_name(call.func) is None else None
        case cst.Attribute(attr=cst.Name(value="matmul" | "mm" | "bmm")):
            return True
    return None


def _is_vector(node: cst.BaseExpression, context: Context) -> bool:
    """Whether it has one axis for certain: of a matrix, `torch.diag` gives the diagonal."""
    from torchlint.analyses.tensors.ranks import has_one_axis

    return has_one_axis(node, context) or _is_of_a_decomposition(node, context)


def _is_of_a_decomposition(node: cst.BaseExpression, context: Context) -> bool:
    """Whether it holds singular values or eigenvalues: `u, s, v = torch.linalg.svd(x)`."""
    match node:
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value="sqrt" | "exp" | "abs" | "pow" | "rsqrt"))):
            return context.qualified_name(node.func) is None and _is_of_a_decomposition(inner, context)
        case cst.Call(func=func, args=[cst.Arg(value=inner), *_]) if context.qualified_name(func) == "torch.sqrt":
            return _is_of_a_decomposition(inner, context)
        case cst.Name():
            binders = context.binders(node)
            return bool(binders) and all(_unpacks(binder, node.value, context) for binder in binders)
    return False


def _unpacks(binder: cst.CSTNode, name: str, context: Context) -> bool:
    match binder:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Tuple(elements=elements))], value=cst.Call(func=func)):
            root, _, last = (context.qualified_name(func) or "").rpartition(".")
            place = _DECOMPOSITIONS.get(last)
            if not root.startswith("torch") or place is None or place >= len(elements):
                return False
            target = elements[place].value
            return isinstance(target, cst.Name) and target.value == name
    return False


def _factors(node: cst.Call, context: Context) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    if any(argument.keyword is not None or argument.star for argument in node.args):
        return None
    match node:
        case cst.Call(func=cst.Attribute(value=owner), args=[other]) if context.qualified_name(node.func) is None:
            return owner, other.value
        case cst.Call(args=[one, other]) if context.qualified_name(node.func) is not None:
            return one.value, other.value
    return None


def _is_column(node: cst.BaseExpression, context: Context) -> bool:
    """Whether the last axis has one element: `x.unsqueeze(-1)`, a sum over it that keeps it, and what keeps shapes."""
    return all(map(_is_of_columns, context.origins(node).nodes))


def _is_of_columns(made: cst.CSTNode) -> bool:
    match made:
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value=name)), args=args):
            words = {argument.keyword.value: argument.value for argument in args if argument.keyword is not None}
            if name == "unsqueeze":
                return len(args) == 1 and _integer(args[0].value) == -1
            if name in ("sum", "norm", "mean", "amax"):
                axis = words.get("dim", args[0].value if args and args[0].keyword is None else None)
                kept = words.get("keepdim")
                is_kept = isinstance(kept, cst.Name) and kept.value == "True"
                return is_kept and axis is not None and _integer(axis) == -1
            if name in ("pow", "clamp", "sqrt", "rsqrt", "abs", "exp", "to", "float", "clamp_min"):
                return _is_of_columns(inner)
        case cst.Subscript(slice=[*_, cst.SubscriptElement(slice=cst.Index(value=cst.Name(value="None")))]):
            return True
    return False


def _is_row(node: cst.BaseExpression, context: Context) -> bool:
    """Whether the last axis but one has one element: a column whose last two axes are swapped, `x.unsqueeze(-2)`."""
    return all(_is_of_rows(made, context) for made in context.origins(node).nodes)


def _is_of_rows(made: cst.CSTNode, context: Context) -> bool:
    match made:
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value=name)), args=args):
            places = [_integer(argument.value) for argument in args]
            if name == "unsqueeze":
                return places == [-2]
            is_swapped = (name in ("transpose", "swapaxes") and set(places) in ({-1, -2}, {1, 2})) or (
                (name == "permute" and places == [0, 2, 1]) or (name == "t" and not places)
            )
            return is_swapped and _is_column(inner, context)
        case cst.Attribute(value=inner, attr=cst.Name(value="T" | "mT")):
            return _is_column(inner, context)
    return False


def _is_multiplied(node: cst.BaseExpression, context: Context) -> bool:
    match context.parent(node):
        case cst.BinaryOperation(left=left, operator=cst.Multiply(), right=right):
            return context.is_tensor(right if left is node else left)
        case cst.AugAssign(operator=cst.MultiplyAssign(), target=target, value=value) if value is node:
            return context.is_tensor(target)
    return False


def _integer(node: cst.BaseExpression) -> int | None:
    from torchlint.syntax.literals import integer

    return integer(node)
