"""A product of matrices of which the diagonal is all that is used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from torchlint.rule import Applicability, Call, Context, Doubt, Flag, Message, Method, NodeEdit, Replace, Rule, Status

RULE = Rule(
    name="diag-of-matmul",
    code="TL913",
    group="vectorise",
    summary="Two matrices are multiplied in full for the diagonal of the product.",
    since="0.2.0",
    status=Status.PREVIEW,
    fix=(Applicability.UNSAFE,),
    unsafe="the last digits differ",
    doubts=((Doubt.NAMED_RARE, ""),),
)
_DIAGONAL = Message(
    "diagonal",
    "`{left}` and `{right}` are multiplied in full, but only the diagonal is used",
    help="multiply them element by element and sum the rows",
)
_FUNCTIONS = ("diag", "diagonal", "trace")
_PRODUCTS = ("torch.matmul", "torch.mm", "torch.bmm")
_LAST_AXES = ({-1, -2}, {0, 1})


@RULE.on(*(Call(f"torch.{name}") for name in _FUNCTIONS), *(Method(name) for name in _FUNCTIONS))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag the diagonal, or its sum, of a product that nothing else can see."""
    from torchlint.analyses.batching.extent import is_sure_tensor
    from torchlint.analyses.execution.rarity import named_rare, runs_rarely
    from torchlint.analyses.tensors.lengths import has_one_row

    from .cost import first_factor, is_beside_a_decomposition

    module, _, name = (context.qualified_name(node.func) or "").rpartition(".")
    operand: cst.BaseExpression | None
    if module == "torch":
        operand, rest = (node.args[0].value if node.args and node.args[0].keyword is None else None), node.args[1:]
    elif not name and isinstance(node.func, cst.Attribute):
        name, operand, rest = node.func.attr.value, node.func.value, node.args
    else:
        return  # `torch.jit.trace`
    found = _factors(operand, context)
    if found is None or not _is_main(name, rest) or runs_rarely(node, context):
        return
    left, right, is_matrix = found
    if is_beside_a_decomposition(node, context) or (not rest and has_one_row(first_factor(left), context)):
        return
    if not all(is_sure_tensor(part, context) for part in (left, right)):
        return
    # Of a vector, `diag` makes a matrix.
    if name == "diag" and not is_matrix and _transposed(right) is None:
        return
    yield Flag(
        node,
        _DIAGONAL.of(left=context.shown(left), right=context.shown(right)),
        title="Multiply element by element",
        edits=_edits(node, left, right, name, context),
        doubts=named_rare(node, context),
    )


def _factors(
    operand: cst.BaseExpression | None, context: Context
) -> tuple[cst.BaseExpression, cst.BaseExpression, bool] | None:
    """The two factors of a product, and whether both have to be matrices."""
    match operand:
        case cst.BinaryOperation(left=left, operator=cst.MatrixMultiply(), right=right):
            return left, right, False
        case cst.Call(func=func, args=args) if not any(argument.keyword or argument.star for argument in args):
            given = [argument.value for argument in args]
            name = context.qualified_name(func)
            if name is None and isinstance(func, cst.Attribute):
                given, name = [func.value, *given], f"torch.{func.attr.value}"
            if name in _PRODUCTS and len(given) == 2:
                return given[0], given[1], name != "torch.matmul"
    return None


def _is_main(name: str, rest: Sequence[cst.Arg]) -> bool:
    """Whether the arguments ask for the main diagonal of the first two or the last two axes."""
    from torchlint.syntax.literals import integer

    if not rest:
        return True
    axes = {integer(argument.value) for argument in rest if argument.keyword is not None}
    words = {argument.keyword.value for argument in rest if argument.keyword is not None}
    return name == "diagonal" and len(rest) == len(words) and words == {"dim1", "dim2"} and axes in _LAST_AXES


def _transposed(node: cst.BaseExpression) -> cst.BaseExpression | None:
    """`b` of `b.T`, `b.mT`, `b.t()` and `b.transpose(-1, -2)`."""
    from torchlint.syntax.literals import integer

    match node:
        case cst.Attribute(value=inner, attr=cst.Name(value="T" | "mT")):
            return inner
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value="t")), args=[]):
            return inner
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value="transpose")), args=[one, other]):
            places = {integer(one.value), integer(other.value)}
            return inner if places in _LAST_AXES or places == {1, 2} else None
    return None


def _edits(
    node: cst.Call, left: cst.BaseExpression, right: cst.BaseExpression, name: str, context: Context
) -> tuple[NodeEdit, ...]:
    from torchlint.edits.expressions import as_owner, in_place_of, loses_comment

    inner = _transposed(right)
    second = as_owner(inner, context) if inner is not None else f"{as_owner(right, context)}.mT"
    if loses_comment(node, left, right, context=context):
        return ()
    code = f"({as_owner(left, context)} * {second}).sum({'' if name == 'trace' else '-1'})"
    return (Replace(node, in_place_of(node, code, context)),)
