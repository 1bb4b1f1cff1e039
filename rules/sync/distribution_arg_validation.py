"""A distribution, or a draw, that checks its parameters on the device at each batch, and waits for the answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import libcst as cst

from torchlint.rule import Applicability, Call, Context, Doubt, Flag, Message, Method, Node, Rule
from torchlint.semantics.knowledge.marks import VALIDATION_SETTER

from ._shared.doubts import WAIT_DOUBTS, weighed

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
    "`{draw}` checks {checked}{often}, which synchronizes with the GPU{times}",
    help="{advice}",
)
_OF_ONE = "draw one with `(p / torch.empty_like(p).exponential_()).argmax(-1, keepdim=True)`, which checks nothing"
_OF_MANY = "draw `n` with `(p / torch.empty_like(p).exponential_()).topk(n).indices`, which checks nothing"
_OF_NORMAL = "draw with `mean + std * torch.randn_like(std)`, which checks nothing"
# Those that, as their pages say, synchronize to see whether there is a result, each with one that does not.
_SOLVERS = {
    **{f"torch.linalg.{name}": f"torch.linalg.{name}_ex" for name in ("cholesky", "inv", "solve")},
    "torch.inverse": "torch.linalg.inv_ex",
}

_FACTORED = Message(
    "factored",
    "`MultivariateNormal` factorizes its covariance{often}, which synchronizes with the GPU",
    help="{advice}",
)
_DIAGONAL = "take `Independent(Normal(mean, variance.sqrt(), validate_args=False), 1)`: the covariance is diagonal"
_FACTOR_KNOWN = "pass `scale_tril=`, where the factor is known"

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
    from torchlint.analyses.host.reads import is_device_tensor
    from torchlint.edits.expressions import with_argument
    from torchlint.edits.messages import how_often

    name = _distribution(node, context)
    if name is None or context.has_unpacking(node):
        return
    if name in _FACTOR and context.argument(node, *_FACTOR[name]) is None:
        yield from _factored(node, context)
        return
    if context.argument(node, "validate_args", _CHECKED[name]) is not None:
        return
    given = [argument.value for argument in node.args if is_device_tensor(argument.value, context)]
    if not given or _is_switched(context) or _is_of_a_compiling_program(context):
        return
    yield Flag(
        node,
        _VALIDATES.of(name=name, often=how_often(node, context)),
        title="Pass `validate_args=False`",
        edits=(with_argument(node, "validate_args=False", context),),
        places=tuple(_checks_of_values(node, context)),
        doubts=weighed(RULE, _doubts(node, given[0], context)),
    )


def _factored(node: cst.Call, context: Context) -> Iterator[Flag]:
    """A covariance of the device of which the Cholesky factor is taken: of a diagonal one its root is known."""
    from torchlint.analyses.host.reads import is_device_tensor
    from torchlint.edits.messages import how_often

    covariance = context.argument(node, "covariance_matrix", 1)
    if covariance is None or not is_device_tensor(covariance, context):
        return
    is_diagonal = context.origins(covariance).every(lambda made: _is_of_a_diagonal(made, context))
    doubts = () if is_diagonal else (Doubt.DATA_UNKNOWN,)
    said = _FACTORED.of(often=how_often(node, context), advice=_DIAGONAL if is_diagonal else _FACTOR_KNOWN)
    yield Flag(node, said, doubts=weighed(RULE, (*doubts, *_doubts(node, covariance, context))))


def _is_of_a_diagonal(made: cst.BaseExpression, context: Context) -> bool:
    """`torch.diag_embed(variance)`, `torch.diag(variance)`, then with an axis more."""
    match made:
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="unsqueeze" | "to"))):
            return context.origins(owner).every(lambda inner: _is_of_a_diagonal(inner, context))
        case cst.Call(func=func):
            return context.qualified_name(func) in ("torch.diag", "torch.diag_embed")
    return False


@RULE.on(*map(Call, _SOLVERS), Method("inverse"))
def check_solver(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Note a factor, an inverse or a solution that is checked: another function leaves that to who calls it."""
    from torchlint.analyses.host.reads import is_device_tensor
    from torchlint.analyses.sync.avoidable import UNSEEN
    from torchlint.analyses.sync.inherent_branches import is_in_sample_code
    from torchlint.edits.messages import how_often

    name = context.qualified_name(node.func)
    if name is None and isinstance(node.func, cst.Attribute):
        source = node.func.value
        name = "torch.inverse" if context.value(source).proven and not node.args else ""
    else:
        source = node.args[0].value if node.args else node.func
    if name not in _SOLVERS or not is_device_tensor(source, context) or is_in_sample_code(node, context):
        return
    doubts = weighed(RULE, _doubts_of_a_draw(node, source, context))
    if context.loop(node) is None and Doubt.DEVICE_UNKNOWN in doubts and not UNSEEN.isdisjoint(doubts):
        return  # a guess: neither that it recurs nor where it runs is in sight
    said = _DRAWS_CHECKED.of(
        draw=context.shown(node.func),
        checked="its matrix",
        often=how_often(node, context),
        times="",
        advice=f"`{_SOLVERS[name]}` checks nothing",
    )
    yield Flag(node, said, doubts=doubts)


@RULE.on(Call("torch.multinomial"), Method("multinomial"), Call("torch.normal"), Method("sample", _TOKENS))
def check_draw(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Note a draw of device tensors that is checked whatever the option says."""
    from torchlint.analyses.host.reads import is_device_tensor
    from torchlint.edits.messages import how_often

    if context.has_unpacking(node):
        return
    draw = _draw(node, context)
    source = next((given for given in draw.given if is_device_tensor(given, context)), None) if draw else None
    if draw is None or source is None:
        return
    said = _DRAWS_CHECKED.of(
        draw=context.shown(node.func),
        checked="its standard deviation" if draw.is_normal else "its probabilities",
        often=how_often(node, context),
        times="" if draw.is_normal else " twice",
        advice=_OF_NORMAL if draw.is_normal else _OF_ONE if draw.is_one else _OF_MANY,
    )
    yield Flag(node, said, doubts=weighed(RULE, _doubts_of_a_draw(node, source, context)))


class _Draw(NamedTuple):
    """A draw that is checked: of what, and whether by a normal distribution, or of one."""

    given: tuple[cst.BaseExpression, ...]
    is_normal: bool = False
    is_one: bool = False


def _draw(node: cst.Call, context: Context) -> _Draw | None:
    """What a call draws from that it checks.

    As `multinomial_out` in ATen/native/Distributions.cpp has it, and `CHECK_NORMAL_TENSOR_STD` in
    ATen/native/DistributionTemplates.h; `sample` of both distributions comes there.
    """
    from torchlint.semantics.flow.origins import Through  # loads LibCST

    function = context.qualified_name(node.func)
    if function == "torch.normal":
        std = context.argument(node, "std", 1)
        return _Draw((std,), is_normal=True) if std is not None else None
    if function == "torch.multinomial":
        return _multinomial(node, context.argument(node, "input", 0), 1, context)
    if function is not None or not isinstance(node.func, cst.Attribute):
        return None
    if node.func.attr.value == "multinomial":
        return _multinomial(node, node.func.value, 0, context)
    if isinstance(node.func.value, cst.Call):
        return None  # of one that is made here, the finding is there
    made = context.origins(node.func.value, Through.ATTRIBUTES)
    calls = [call for call in made.nodes if isinstance(call, cst.Call)]
    names = {_distribution(call, context) for call in calls}
    if not made.is_complete or len(calls) < len(made.found) or len(names) != 1 or names.isdisjoint(_SAMPLED):
        return None
    given = [argument.value for call in calls for argument in call.args]
    return _Draw(tuple(given), is_normal=names == {"Normal"}, is_one=not node.args)


_SAMPLED = frozenset({"Categorical", "Normal"})


def _multinomial(draw: cst.Call, drawn_from: cst.BaseExpression | None, place: int, context: Context) -> _Draw | None:
    """What is drawn from, unless several are drawn with replacement; `place` is that of how many."""
    number = context.argument(draw, "num_samples", place)
    if drawn_from is None or number is None:
        return None
    is_one = isinstance(number, cst.Integer) and number.value == "1"
    replacement = context.argument(draw, "replacement", place + 1)
    is_without = replacement is None or (isinstance(replacement, cst.Name) and replacement.value == "False")
    return _Draw((drawn_from,), is_one=is_one) if is_one or is_without else None


def _doubts_of_a_draw(draw: cst.Call, drawn_from: cst.BaseExpression, context: Context) -> Iterator[Doubt]:
    """What speaks against another way to draw: without the checks, the CPU only runs ahead."""
    from torchlint.analyses.sync.avoidable import wait_doubts
    from torchlint.analyses.sync.inherent_branches import named_sample_code

    yield Doubt.HOST_BOUND
    yield from named_sample_code(draw, context)
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


def _checks_of_values(made: cst.Call, context: Context) -> Iterator[cst.Call]:
    """Where the distribution checks a value that it is given, further down: `log_prob`, on lines of their own."""
    line = context.tree.line(made)
    for use in _uses(made, context):
        method = context.parent(use)
        call = context.parent(method) if isinstance(method, cst.Attribute) else None
        is_check = isinstance(method, cst.Attribute) and method.attr.value in _CHECKING
        if is_check and isinstance(call, cst.Call) and call.func is method and context.tree.line(call) is not line:
            yield call


_CHECKING = frozenset({"log_prob", "cdf"})


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


def _uses(node: cst.CSTNode, context: Context) -> Sequence[cst.CSTNode]:
    """Where what is made here is used by its name, or in the methods of the object that holds it."""
    match context.parent(node):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute(value=cst.Name() as owner, attr=held))]):
            class_ = context.classes.self_class(owner)
            return [
                use
                for use in context.uses.attributes(held.value)
                if isinstance(use.value, cst.Name) and context.classes.self_class(use.value) is class_ is not None
            ]
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]) as statement:
            return context.uses.of(name, statement)
    return []


def _is_switched(context: Context) -> bool:
    """Whether the file decides for all distributions whether they check."""
    return VALIDATION_SETTER.is_in(context.program.code)


def _is_of_a_compiling_program(context: Context) -> bool:
    """Whether `torch.compile` is called: the first call switches the checks off, in all of the process."""
    from torchlint.analyses.execution.compiled import COMPILE

    named = context.uses.attributes("compile")
    is_here = any(context.qualified_name(name) == COMPILE for name in named)
    return is_here or context.elsewhere.calls(COMPILE)
