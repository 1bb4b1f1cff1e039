"""Work on a model's parameters that launches several kernels for each, where lists take a few."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.finding import Frequency
from torchlint.rule import Applicability, Context, Doubt, Flag, Message, Node, NodeEdit, Replace, Rule, Said
from torchlint.semantics.knowledge.conventions.functions import AVERAGING_FUNCTION

if TYPE_CHECKING:
    from .moving_average import Blend

RULE = Rule(
    name="per-parameter-update-loop",
    code="TL807",
    group="optimizer",
    summary="A loop launches kernels one parameter at a time; `torch._foreach_*` updates all at once.",
    since="0.2.0",
    fix=(Applicability.UNSAFE,),
    unsafe="sums round differently in the last digit, and autograd sees the change in place",
    eager=True,
    yields_to=("grad-norm-by-hand",),
    doubts=(
        (Doubt.HOST_BOUND, ""),
        (Doubt.RATE_UNKNOWN, ""),
        (Doubt.UNCALLED, ""),
        (Doubt.RARE, "What is done to all parameters now and then takes no time beside the steps."),
        (Doubt.RUNS_ONCE, "What is done to all parameters once takes no time beside the steps."),
    ),
)
_ONE_BY_ONE = Message(
    "one-by-one",
    "{launched} launched for each parameter of `{owner}`{often}",
    help="update all parameters at once with {functions}",
)
_EACH_CHANGED = Message(
    "each-changed",
    "{count} launched for each parameter{often}",
    help="change lists of all parameters at once with `torch._foreach_*`, or compile the function",
)
_NORM_OF_EACH = Message(
    "norm-of-each",
    "a kernel or more is launched for the norm of each gradient{often}",
    help="take all norms at once with {function}",
)
_GET_TOTAL_NORM = (2, 6)
_TOKENS = (b"parameters()", b"'params'", b'"params"', b"state_dict()")


@RULE.on(Node("For", (b"parameters()",)))
def check(node: cst.For, context: Context) -> Iterator[Flag]:
    """Flag a loop over pairs of parameters whose body is `t = a * t + b * s`, in code that runs at each batch."""
    if not isinstance(node.iter, cst.Call):
        return
    from torchlint.analyses.host.reads import is_host_only

    from .moving_average import blend

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


@RULE.on(Node("For", _TOKENS))
def check_each(node: cst.For, context: Context) -> Iterator[Flag]:
    """Flag a loop that changes each parameter by kernels of its own, or takes the norm of each gradient so."""
    from .each_parameter import work
    from .moving_average import blend

    found = work(node, context)
    if found is None or blend(node) is not None:
        return
    doubts = _doubts(node, context)
    if found.is_norm:
        said = _norm_of_each(node, context)
    else:
        count = "a kernel or more is" if found.number == 1 else f"{found.number} kernels or more are"
        said = _EACH_CHANGED.of(count=count, often=_often_as_known(node, context))
    yield Flag(found.nodes[0], said, places=found.nodes[1:], doubts=doubts)


@RULE.on(Node("ListComp", _TOKENS), Node("GeneratorExp", _TOKENS))
def check_norms(node: cst.ListComp | cst.GeneratorExp, context: Context) -> Iterator[Flag]:
    """Flag a list of the norms of all gradients."""
    from .each_parameter import norm_of_each

    if norm_of_each(node, context):
        yield Flag(node.elt, _norm_of_each(node, context), doubts=_doubts(node, context))


def _norm_of_each(node: cst.CSTNode, context: Context) -> Said:
    function = "`torch.nn.utils.clip_grad_norm_`, which returns the total"
    if context.settings.target_torch >= _GET_TOTAL_NORM:
        function = "`torch.nn.utils.get_total_norm`"
    return _NORM_OF_EACH.of(function=function, often=_often_as_known(node, context))


def _often_as_known(node: cst.CSTNode, context: Context) -> str:
    from torchlint.edits.messages import how_often

    return " at every step" if _is_a_step(node, context) else how_often(node, context)


def _doubts(node: cst.CSTNode, context: Context) -> tuple[Doubt, ...]:
    from torchlint.analyses.execution.hot import rate_doubts

    return (*(() if _is_a_step(node, context) else rate_doubts(node, context)), Doubt.HOST_BOUND)


def _is_a_step(node: cst.CSTNode, context: Context) -> bool:
    """Whether this is the step of an optimizer that the file defines."""
    function = context.enclosing(node, cst.FunctionDef)
    class_ = context.classes.owner(function) if function is not None else None
    if function is None or class_ is None or function.name.value != "step":
        return False
    bases = context.classes.lineage(class_)
    return any(isinstance(base, str) and base.startswith("torch.optim.") for base in bases)


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
    """Whether something after the loop reads the last pair."""
    names = [part for part in context.tree.of(cst.Name) if context.tree.within(part, node.target)]
    return any(not context.tree.within(use, node) for name in names for use in context.uses.of(name.value, node))


def _has_comment(node: cst.For, context: Context) -> bool:
    """Whether a comment stands in the loop that the fix would lose: one above it or behind its first line stays."""
    bare = node.body.with_changes(header=cst.TrailingWhitespace())
    return "#" in context.code(node.with_changes(leading_lines=(), body=bare))
