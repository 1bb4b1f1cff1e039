"""Loops that change parameters or gradients one by one, or take the norm of each: which kernels each of them takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from torchlint.analyses.tensors.aliasing import is_in_place
from torchlint.semantics.context import Context
from torchlint.semantics.flow.origins import Through
from torchlint.semantics.flow.query import query
from torchlint.semantics.knowledge.torch_signatures import METHODS
from torchlint.semantics.names.bindings import last_part
from torchlint.syntax.tree import descendants, descendants_in_scope, speaks_of

_HANDED_ON = ("list", "tuple", "iter", "filter", "enumerate", "zip", "reversed")
_NORMS = ("norm", "vector_norm")
_POWERS = ("pow", "square")
# What sets up parameters, or copies them, and is no step: there is nothing to gain where it runs once.
_SETTING = frozenset(
    "uniform_ normal_ fill_ random_ bernoulli_ exponential_ trunc_normal_ requires_grad_ detach_ retain_grad "
    "share_memory_ resize_ set_".split()
)
_COLLECTING = ("append", "add_")
_READS = frozenset({"item", "tolist", "numpy"})
_FOREACH = "_foreach_"


@dataclass(frozen=True, slots=True)
class Work:
    """What a loop does to each parameter: the calls and assignments that launch kernels, in source order.

    `number` of them run for each, whatever the conditions in the loop say.
    """

    nodes: tuple[cst.CSTNode, ...]
    number: int
    is_norm: bool


def work(loop: cst.For, context: Context) -> Work | None:
    """What a loop over parameters launches for each of them; None where that is nothing that lists would do at once."""
    names = _parameter_names(loop.target, loop.iter, context)
    if not names:
        return None
    held = _held(loop.body, names)
    nodes = list(dict.fromkeys(_changes(loop.body, held)))
    if nodes:
        if _is_left_alone(loop, context):
            return None
        always = [node for node in nodes if context.enclosing(node, cst.If, cst.IfExp, within=loop.body) is None]
        return Work(tuple(nodes), max(1, len(always)), is_norm=False)
    norms = [node for node in descendants_in_scope(loop.body) if _is_norm(node, held)]
    if not norms or _reads(loop.body) or not all(_is_summed(node, loop, context) for node in norms):
        return None
    if _is_left_alone(loop, context):
        return None
    return Work(tuple(norms), 1, is_norm=True)


def norm_of_each(node: cst.GeneratorExp | cst.ListComp, context: Context) -> bool:
    """Whether a comprehension takes the norm of each gradient: `[p.grad.norm() for p in model.parameters()]`."""
    if node.for_in.inner_for_in is not None or not (_is_gradient_norm(node.elt) and not _reads(node.elt)):
        return False
    names = _parameter_names(node.for_in.target, node.for_in.iter, context)
    return bool(names) and speaks_of(node.elt, names)


def _is_gradient_norm(node: cst.BaseExpression) -> bool:
    is_norm = any(isinstance(part, cst.Call) and last_part(part.func) in _NORMS for part in (node, *descendants(node)))
    return is_norm and any(isinstance(part, cst.Attribute) and part.attr.value == "grad" for part in descendants(node))


def _parameter_names(target: cst.CSTNode, over: cst.BaseExpression, context: Context) -> set[str]:
    """The names that hold parameters in a loop over `over`; none where it is not known to go over parameters."""
    if not _are_parameters(over, context):
        return set()
    return {part.value for part in (target, *descendants(target)) if isinstance(part, cst.Name)}


@query(bottom=False)
def _are_parameters(node: cst.BaseExpression, context: Context) -> bool:
    """`net.parameters()`, `group["params"]`, `net.state_dict().items()`, and these listed, zipped, or under a name."""
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="parameters" | "named_parameters"))):
            return True
        case cst.Call(
            func=cst.Attribute(
                value=cst.Call(func=cst.Attribute(attr=cst.Name(value="state_dict"))),
                attr=cst.Name(value="items" | "values"),
            )
        ):
            return True
        case cst.Call(func=cst.Name(value=name), args=[_, *_] as args) if name in _HANDED_ON:
            return any(_are_parameters(argument.value, context) for argument in args)
        case cst.List(elements=[cst.Element(value=only)]):
            return _are_parameters(only, context)
        case cst.ListComp(elt=cst.Name(value=element), for_in=cst.CompFor(target=cst.Name(value=target), iter=over)):
            return element == target and _are_parameters(over, context)
        case cst.Subscript(value=owner, slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString() as key))]):
            return key.evaluated_value == "params" and _is_group(owner, context)
        case cst.Name():
            found = context.origins(node, Through.PARTS)
            return _are_said_to_be(node, context) or (
                bool(found.nodes)
                and found.every(lambda made: not isinstance(made, cst.Name) and _are_parameters(made, context))
            )
    return False


def _are_said_to_be(name: cst.Name, context: Context) -> bool:
    """`parameters: Iterable[nn.Parameter]`, of a parameter of the function."""
    return any(
        context.qualified_name(part) in ("torch.nn.Parameter", "torch.nn.parameter.Parameter")
        for binder in context.binders(name)
        if isinstance(binder, cst.Param) and isinstance(binder.annotation, cst.Annotation)
        for part in descendants(binder.annotation.annotation)
        if isinstance(part, (cst.Name, cst.Attribute))
    )


def _is_group(node: cst.BaseExpression, context: Context) -> bool:
    """`group` of `for group in optimizer.param_groups`."""
    if not isinstance(node, cst.Name):
        return False
    return any(
        isinstance(binder, cst.For)
        and any(
            isinstance(part, cst.Attribute) and part.attr.value == "param_groups"
            for part in (binder.iter, *descendants(binder.iter))
        )
        for binder in context.binders(node)
    )


def _is_left_alone(loop: cst.For, context: Context) -> bool:
    """Whether the loop talks to other processes for each parameter, or there is a way over lists beside it."""
    if any(
        isinstance(call, cst.Call)
        and (context.qualified_name(call.func) or "").startswith("torch.distributed.all_reduce")
        for call in descendants(loop.body)
    ):
        return True
    function = context.enclosing(loop, cst.FunctionDef)
    if function is None or _FOREACH not in context.source.text:
        return False
    return _FOREACH in context.code(context.classes.owner(function) or function)


def _held(body: cst.BaseSuite, names: set[str]) -> set[str]:
    """The names in the body of what a parameter leads to: itself, its gradient, its state."""
    held = set(names)
    for node in descendants_in_scope(body):
        if isinstance(node, cst.Assign) and any(
            isinstance(part, cst.Name) and part.value in held for part in (node.value, *descendants(node.value))
        ):
            held |= {
                part.value
                for target in node.targets
                for part in (target.target, *descendants(target.target))
                if isinstance(part, cst.Name) and isinstance(target.target, (cst.Name, cst.Tuple))
            }
    return held


def _changes(body: cst.BaseSuite, held: set[str]) -> Iterator[cst.CSTNode]:
    """Each change in place of what a parameter leads to, and what is computed and assigned to its data or its entry."""
    for node in descendants_in_scope(body):
        match node:
            case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=method)), args=args):
                if not (is_in_place(method) and method in METHODS) or _root(owner) not in held:
                    continue
                if method == "copy_":
                    is_change = bool(args) and _is_computed(args[0].value, held)
                elif method == "zero_":
                    is_change = _is_of_a_gradient(owner)
                else:
                    is_change = method not in _SETTING
                if is_change:
                    yield node
            case cst.AugAssign(target=cst.Attribute(value=owner, attr=cst.Name(value="data" | "grad"))):
                if _root(owner) in held:
                    yield node
            case cst.Assign(targets=[cst.AssignTarget(target=target)], value=value) if _is_computed(value, held):
                if isinstance(target, cst.Attribute) and target.attr.value in ("data", "grad"):
                    yield node
                elif isinstance(target, cst.Subscript) and _is_read_in(value, target):
                    yield node  # `shadow[name] = decay * shadow[name] + (1 - decay) * parameter`


def _is_computed(value: cst.BaseExpression, held: set[str]) -> bool:
    return isinstance(value, cst.BinaryOperation) and speaks_of(value, held)


def _is_read_in(value: cst.BaseExpression, entry: cst.Subscript) -> bool:
    return any(isinstance(part, cst.Subscript) and part.deep_equals(entry) for part in descendants(value))


def _is_norm(node: cst.CSTNode, held: set[str]) -> bool:
    """`p.grad.norm(2)`, `torch.norm(p.grad)`, `p.grad.data.pow(2).sum()`."""
    match node:
        case cst.Call(func=func) if last_part(func) in _NORMS:
            pass
        case cst.Call(func=cst.Attribute(value=cst.Call(func=inner), attr=cst.Name(value="sum"))):
            if last_part(inner) not in _POWERS:
                return False
        case _:
            return False
    parts = list(descendants(node))
    is_of_one = any(isinstance(part, cst.Name) and part.value in held for part in parts)
    return is_of_one and any(isinstance(part, cst.Attribute) and part.attr.value == "grad" for part in parts)


def _is_of_a_gradient(node: cst.BaseExpression) -> bool:
    """Whether it is zeroed at each step: a parameter is zeroed as it is made."""
    return any(isinstance(part, cst.Attribute) and part.attr.value == "grad" for part in (node, *descendants(node)))


def _is_summed(norm: cst.CSTNode, loop: cst.For, context: Context) -> bool:
    """Whether the norm of each gradient goes into a sum or a list, and no name or layer is singled out."""
    for test in (guard.test for guard in context.guards(norm, within=loop.body)):
        if test is not None and not _is_of_a_gradient(test):
            return False
    taker = context.parent(norm)
    while isinstance(taker, (cst.BinaryOperation, cst.Call, cst.Attribute)):
        taker = context.parent(taker)
    match taker:
        case cst.Assign() | cst.AugAssign():
            return True
        case cst.Arg():
            call = context.parent(taker)
            return isinstance(call, cst.Call) and last_part(call.func) in _COLLECTING
    return False


def _reads(node: cst.CSTNode) -> bool:
    """Whether the host reads numbers there: that costs more, and another rule says so."""
    return any(isinstance(part, cst.Attribute) and part.attr.value in _READS for part in descendants(node))


def _root(node: cst.CSTNode) -> str | None:
    while True:
        match node:
            case cst.Name(value=name):
                return name
            case cst.Attribute(value=inner) | cst.Subscript(value=inner) | cst.Call(func=cst.Attribute(value=inner)):
                node = inner
            case _:
                return None
