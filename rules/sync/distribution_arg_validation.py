"""A distribution, or a draw, that checks its parameters on the device at each batch, and waits for the answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.rule import Applicability, Call, Doubt, Flag, Message, Method, Node, Rule
from torchlint.semantics.knowledge.conventions.texts import VALIDATION_SETTER

from ._shared.doubts import WAIT_DOUBTS, weighed

if TYPE_CHECKING:
    from torchlint.semantics.context import Context

RULE = Rule(
    name="distribution-arg-validation",
    code="TL316",
    group="sync",
    summary="A distribution or a draw checks its parameters every batch, which synchronizes with the GPU.",
    since="0.2.0",
    fix=(Applicability.UNSAFE,),
    doubts=(*WAIT_DOUBTS, (Doubt.HOST_BOUND, "")),
    unsafe="invalid parameters no longer raise an error",
)
_VALIDATES = Message(
    "validates",
    "`{name}` validates its parameters{often}, which synchronizes with the GPU",
    help="pass `validate_args=False`",
)
_DRAWS_CHECKED = Message(
    "draws-checked",
    "`{draw}` checks its probabilities{often}, for which it synchronizes with the GPU twice",
    help="{advice}",
)
_OF_ONE = "draw one with `(p / torch.empty_like(p).exponential_()).argmax(-1, keepdim=True)`, which checks nothing"
_OF_MANY = "draw `n` with `(p / torch.empty_like(p).exponential_()).topk(n).indices`, which checks nothing"

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


@RULE.on(Call("torch.multinomial"), Method("multinomial"))
def check_draw(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Note a draw of device tensors by their probabilities: two checks, but of many with replacement."""
    from torchlint.analyses.host.reads import is_device_tensor  # the model's parts load LibCST
    from torchlint.edits.messages import how_often

    is_function = context.qualified_name(node.func) == "torch.multinomial"
    if context.has_unpacking(node) or not isinstance(node.func, (cst.Attribute, cst.Name)):
        return
    if is_function:
        drawn_from = context.argument(node, "input", 0)
    else:
        assert isinstance(node.func, cst.Attribute)
        drawn_from = node.func.value if context.qualified_name(node.func) is None else None
    if drawn_from is None or not is_device_tensor(drawn_from, context):
        return
    is_one, is_checked = _of_how_many(node, 1 if is_function else 0, context)
    if not is_checked:
        return
    doubts = weighed(RULE, _doubts_of_a_draw(node, drawn_from, context))
    said = _DRAWS_CHECKED.of(
        draw=context.shown(node.func), often=how_often(node, context), advice=_OF_ONE if is_one else _OF_MANY
    )
    yield Flag(node, said, doubts=doubts)


def _of_how_many(draw: cst.Call, place: int, context: Context) -> tuple[bool, bool]:
    """Whether one is drawn, and whether the draw is checked: `multinomial_out` in ATen/native/Distributions.cpp."""
    number = context.argument(draw, "num_samples", place)
    is_one = isinstance(number, cst.Integer) and number.value == "1"
    replacement = context.argument(draw, "replacement", place + 1)
    is_without = replacement is None or (isinstance(replacement, cst.Name) and replacement.value == "False")
    return is_one, is_one or (number is not None and is_without)


def _doubts_of_a_draw(draw: cst.Call, drawn_from: cst.BaseExpression, context: Context) -> Iterator[Doubt]:
    """What speaks against another way to draw: without the checks, the CPU only runs ahead."""
    from torchlint.analyses.sync.avoidable import wait_doubts

    yield Doubt.HOST_BOUND
    if _is_read(draw, context):
        yield Doubt.WAITS_ANYWAY
    yield from wait_doubts(draw, drawn_from, context)


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
