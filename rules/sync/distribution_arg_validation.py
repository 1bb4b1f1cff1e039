"""A distribution that checks its parameters on the device at each batch, and waits for the answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.rule import Applicability, Doubt, Flag, Message, Node, Rule
from torchlint.semantics.knowledge.conventions.texts import VALIDATION_SETTER

from ._shared.doubts import WAIT_DOUBTS, weighed

if TYPE_CHECKING:
    from torchlint.semantics.context import Context

RULE = Rule(
    name="distribution-arg-validation",
    code="TL316",
    group="sync",
    summary="A distribution created every batch validates its parameters, which synchronizes with the GPU.",
    since="0.2.0",
    fix=(Applicability.UNSAFE,),
    doubts=WAIT_DOUBTS,
    unsafe="invalid parameters no longer raise an error",
)
_VALIDATES = Message(
    "validates",
    "`{name}` validates its parameters{often}, which synchronizes with the GPU",
    help="pass `validate_args=False`",
)

_TOKENS = (b"distributions",)
_DRAWS = ("sample", "rsample", "sample_n")
_READS = ("item", "tolist", "cpu", "numpy")
# Those that the option keeps from asking, with the place of the option among their parameters.
_CHECKED = {
    **dict.fromkeys("Chi2 Dirichlet Exponential HalfCauchy HalfNormal Poisson".split(), 1),
    **dict.fromkeys("Bernoulli Beta Categorical Cauchy Gamma Geometric Gumbel Laplace LogNormal Normal".split(), 2),
    **dict.fromkeys("Uniform VonMises Weibull".split(), 2),
    **dict.fromkeys("Binomial ContinuousBernoulli NegativeBinomial StudentT".split(), 3),
    "MultivariateNormal": 4,
}
# Of anything else it takes a Cholesky factor, and the CPU waits to hear whether there is one.
_FACTOR = {"MultivariateNormal": ("scale_tril", 3)}


@RULE.on(Node("Call", _TOKENS))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a distribution of device tensors that may check them."""
    from torchlint.analyses.host.reads import is_device_tensor  # the model's parts load LibCST
    from torchlint.edits.expressions import with_argument
    from torchlint.edits.messages import how_often

    name = _distribution(node, context)
    if name is None or context.has_unpacking(node):
        return
    if context.argument(node, "validate_args", _CHECKED[name]) is not None:
        return
    if name in _FACTOR and context.argument(node, *_FACTOR[name]) is None:
        return
    given = [argument.value for argument in node.args if is_device_tensor(argument.value, context)]
    if not given or _is_switched(context) or _is_of_a_compiling_program(context):
        return
    yield Flag(
        node,
        _VALIDATES.of(name=name, often=how_often(node, context)),
        title="Pass `validate_args=False`",
        edits=(with_argument(node, "validate_args=False", context),),
        doubts=weighed(RULE, _doubts(node, given[0], context)),
    )


def _distribution(call: cst.Call, context: Context) -> str | None:
    """The name of the class of `torch.distributions` that is made here."""
    func = call.func
    if isinstance(func, cst.Attribute) and func.attr.value not in _CHECKED:
        return None  # cheap to ask, of each call in the file
    if not isinstance(func, (cst.Attribute, cst.Name)):
        return None
    name = context.qualified_name(func) or ""
    last = name.rpartition(".")[2]
    return last if name.startswith("torch.distributions.") and last in _CHECKED else None


def _doubts(made: cst.Call, given: cst.BaseExpression, context: Context) -> Iterator[Doubt]:
    """What speaks against leaving the checks out, in the order of what it costs to know."""
    from torchlint.analyses.sync.avoidable import wait_doubts

    if _is_read_anyway(made, context):
        yield Doubt.WAITS_ANYWAY
    yield from wait_doubts(made, given, context)


def _is_read_anyway(made: cst.CSTNode, context: Context) -> bool:
    """Whether the host waits anyway for what is drawn: `Bernoulli(p).sample().item()`, or by a name in between."""
    method = context.parent(made)
    if isinstance(method, cst.Attribute):
        drawn = context.parent(method)
        return method.attr.value in _DRAWS and isinstance(drawn, cst.Call) and _is_read(drawn, context)
    return any(_is_read_anyway(use, context) for use in _uses(made, context))


def _is_read(node: cst.CSTNode, context: Context) -> bool:
    """Whether the host reads a value, by a method of it or of what its methods give."""
    while isinstance(method := context.parent(node), cst.Attribute):
        above = context.parent(method)
        if method.attr.value in _READS or not isinstance(above, cst.Call) or above.func is not method:
            return method.attr.value in _READS
        node = above
    return any(_is_read(use, context) for use in _uses(node, context))


def _uses(node: cst.CSTNode, context: Context) -> list[cst.Name]:
    match context.parent(node):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]) as statement:
            return context.uses.of(name, statement)
    return []


def _is_switched(context: Context) -> bool:
    """Whether the file decides for all distributions whether they check."""
    return VALIDATION_SETTER.suggests(context.program.code)


def _is_of_a_compiling_program(context: Context) -> bool:
    """Whether `torch.compile` is called: the first call switches the checks off, in all of the process."""
    from torchlint.analyses.execution.compiled import COMPILE

    named = context.uses.attributes("compile")
    is_here = any(context.qualified_name(name) == COMPILE for name in named)
    return is_here or context.elsewhere.calls(COMPILE)
