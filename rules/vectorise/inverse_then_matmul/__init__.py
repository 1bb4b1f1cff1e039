"""A matrix that is inverted only to be multiplied with one vector."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Applicability, Call, Context, Doubt, Flag, Message, Method, NodeEdit, Replace, Rule, Status

RULE = Rule(
    name="inverse-then-matmul",
    code="TL908",
    group="vectorise",
    summary="A matrix is inverted only to multiply one vector.",
    since="0.2.0",
    status=Status.PREVIEW,
    fix=(Applicability.UNSAFE,),
    unsafe="the last digits differ",
    doubts=((Doubt.NAMED_RARE, ""),),
)
_INVERTED = Message("inverted", "`{matrix}` is inverted only to multiply one vector", help="use `torch.linalg.solve`")
_INVERSES = ("torch.linalg.inv", "torch.inverse")
_PRODUCTS = ("torch.matmul", "torch.mm", "torch.bmm", "torch.mv")


@RULE.on(Call("torch.linalg.inv"), Call("torch.inverse"), Method("inverse"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag `inv(A) @ b` where `b` has one column; the fix solves `A x = b`."""
    from torchlint.analyses.execution.rarity import named_rare, runs_rarely

    from .columns import is_one_column

    matrix = _inverted(node, context)
    found = _product(node, context)
    if matrix is None or found is None:
        return
    product, other = found
    if runs_rarely(product, context) or not (_is_vector_product(product) or is_one_column(other, context)):
        return
    yield Flag(
        product,
        _INVERTED.of(matrix=context.shown(matrix)),
        title="Use `torch.linalg.solve`",
        edits=_edits(node, matrix, product, other, context),
        doubts=named_rare(product, context),
    )


def _inverted(node: cst.Call, context: Context) -> cst.BaseExpression | None:
    """The matrix that is inverted."""
    from torchlint.analyses.batching.extent import is_sure_tensor

    if context.qualified_name(node.func) in _INVERSES:
        return node.args[0].value if len(node.args) == 1 and not node.args[0].star else None
    if not node.args and isinstance(node.func, cst.Attribute) and is_sure_tensor(node.func.value, context):
        return node.func.value
    return None


def _product(node: cst.Call, context: Context) -> tuple[cst.BaseExpression, cst.BaseExpression] | None:
    """The product whose left factor the inverse is, and its right one."""
    above = context.parent(node)
    match above:
        case cst.BinaryOperation(operator=cst.MatrixMultiply(), left=left, right=right) if left is node:
            return above, right
        case cst.Attribute(attr=cst.Name(value="matmul" | "mm" | "bmm" | "mv")):
            call = context.parent(above)
            if isinstance(call, cst.Call) and call.func is above and len(call.args) == 1 and _is_plain(call.args[0]):
                return call, call.args[0].value
        case cst.Arg():
            call = context.parent(above)
            if isinstance(call, cst.Call) and _multiplies(call, above, context):
                return call, call.args[1].value
    return None


def _multiplies(call: cst.Call, left: cst.Arg, context: Context) -> bool:
    if context.qualified_name(call.func) not in _PRODUCTS or len(call.args) != 2:
        return False
    return call.args[0] is left and all(map(_is_plain, call.args))


def _is_plain(argument: cst.Arg) -> bool:
    return argument.keyword is None and not argument.star


def _is_vector_product(product: cst.BaseExpression) -> bool:
    """Whether the product is one that takes nothing but a vector."""
    func = product.func if isinstance(product, cst.Call) else None
    return isinstance(func, cst.Attribute) and func.attr.value == "mv"


def _edits(
    node: cst.Call, matrix: cst.BaseExpression, product: cst.BaseExpression, other: cst.BaseExpression, context: Context
) -> tuple[NodeEdit, ...]:
    from torchlint.edits.expressions import in_place_of, loses_comment

    home = _home(node, context)
    if home is None or loses_comment(product, matrix, other, context=context):
        return ()
    code = f"{home}.linalg.solve({context.bare_code(matrix)}, {context.bare_code(other)})"
    return (Replace(product, in_place_of(product, code, context)),)


def _home(node: cst.Call, context: Context) -> str | None:
    """How the place spells `torch`."""
    from torchlint.edits.imports import spelling

    owner = node.func.value if isinstance(node.func, cst.Attribute) else None
    for part in (owner, owner.value if isinstance(owner, cst.Attribute) else None):
        if part is not None and context.qualified_name(part) == "torch":
            return context.code(part)
    return spelling("torch", node, context) or None
