"""A moving average of a model's parameters that launches kernels for each of them, where lists take a few."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.finding import Frequency
from torchlint.rule import Applicability, Flag, Message, Node, NodeEdit, Replace, Rule
from torchlint.semantics.knowledge.conventions.functions import AVERAGING_FUNCTION

if TYPE_CHECKING:
    from torchlint.semantics.context import Context

    from .moving_average import Blend

RULE = Rule(
    name="per-parameter-update-loop",
    code="TL807",
    group="optimizer",
    summary="A moving average launches kernels for each parameter; `torch._foreach_*` updates all at once.",
    since="0.2.0",
    fix=(Applicability.UNSAFE,),
    unsafe="sums round differently in the last digit, and autograd sees the change in place",
    eager=True,
)
_ONE_BY_ONE = Message(
    "one-by-one",
    "{launched} launched for each parameter of `{owner}`{often}",
    help="update all parameters at once with {functions}",
)


@RULE.on(Node("For", (b"parameters()",)))
def check(node: cst.For, context: Context) -> Iterator[Flag]:
    """Flag a loop over pairs of parameters whose body is `t = a * t + b * s`, in code that runs at each batch."""
    if not isinstance(node.iter, cst.Call):
        return
    from torchlint.analyses.host.reads import is_host_only

    from .moving_average import blend  # the model's parts load LibCST

    found = blend(node)
    if found is None or not _runs_often(node, context) or is_host_only(context, context.device(found.targets)):
        return
    owner = context.shown(found.targets).removesuffix(".parameters()")
    launched, take = "two or more kernels are", "`torch._foreach_mul_` and `torch._foreach_add_`"
    if found.is_lerp:
        launched, take = "a kernel is", "`torch._foreach_lerp_`"
    yield Flag(
        node.iter,
        _ONE_BY_ONE.of(launched=launched, owner=owner, often=_often(node, context), functions=take),
        title="Update all parameters at once",
        edits=_edits(node, found, context),
    )


def _runs_often(node: cst.For, context: Context) -> bool:
    frequency = context.frequency(node)
    if frequency >= Frequency.BATCH:
        return True
    function = context.function(node)
    name = function.name.value if isinstance(function, cst.FunctionDef) else ""
    return frequency < Frequency.ONCE and AVERAGING_FUNCTION.suggests(name)


def _often(node: cst.For, context: Context) -> str:
    from torchlint.edits.messages import how_often

    return how_often(node, context) if context.frequency(node) >= Frequency.BATCH else " at every update"


def _edits(node: cst.For, found: Blend, context: Context) -> tuple[NodeEdit, ...]:
    from torchlint.semantics.values.lattice import Kind

    from .._shared.calls import torch_name
    from .moving_average import on_lists

    if Kind.TENSOR in (context.kind(found.keep), context.kind(found.take)):
        return ()  # a factor for a whole list is read by the host
    torch = torch_name(node, context)
    if torch is None or _has_comment(node, context) or "\n" in context.code(node.iter) or _is_read_later(node, context):
        return ()
    module, block = context.tree.module, context.parent(node)
    old = node.body if isinstance(node.body, cst.IndentedBlock) else cst.IndentedBlock([])
    first, *others = [cst.parse_statement(line) for line in on_lists(found, torch, context)]
    if _is_without_grad(node, context):
        first = first.with_changes(leading_lines=node.leading_lines, trailing_whitespace=old.header)
        made = "".join(context.code_at(line, node) for line in (first, *others, *old.footer))
    else:
        indent = block.indent if isinstance(block, cst.IndentedBlock) else None
        items = [cst.WithItem(cst.parse_expression(f"{torch}.no_grad()"))]
        body = cst.IndentedBlock([first, *others], header=old.header, footer=old.footer, indent=indent)
        made = context.code_at(cst.With(items, body, leading_lines=node.leading_lines), node)
    if not module.has_trailing_newline and context.tree.end(node) == context.tree.end(module):
        made = made.removesuffix("\n").removesuffix("\r")
    return (Replace(node, made),)


def _is_without_grad(node: cst.For, context: Context) -> bool:
    """Whether the function around says itself that autograd is off."""
    from torchlint.semantics.execution.grad_mode import GradMode

    said = [manager for guard in context.guards(node) for manager in guard.managers]
    function = context.enclosing(node, cst.FunctionDef)
    if function is not None:
        said += [decorator.decorator for decorator in function.decorators]
    names = (context.qualified_name(each.func if isinstance(each, cst.Call) else each) for each in said)
    return context.grad(node) is GradMode.OFF and not {"torch.no_grad", "torch.inference_mode"}.isdisjoint(names)


def _is_read_later(node: cst.For, context: Context) -> bool:
    """Whether something behind the loop reads the last pair."""
    names = [part for part in context.tree.of(cst.Name) if context.tree.within(part, node.target)]
    return any(not context.tree.within(use, node) for name in names for use in context.uses.of(name.value, node))


def _has_comment(node: cst.For, context: Context) -> bool:
    """Whether a comment stands in the loop that the fix would lose: one above it or behind its first line stays."""
    bare = node.body.with_changes(header=cst.TrailingWhitespace())
    return "#" in context.code(node.with_changes(leading_lines=(), body=bare))
