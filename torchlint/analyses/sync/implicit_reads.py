"""Where Python itself asks for a tensor's value: a condition, or a number that only the host can use."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.analyses.execution.hot import is_hot
from torchlint.analyses.host.reads import is_device_tensor
from torchlint.analyses.provenance.network import may_be_with_the_network
from torchlint.semantics.context import Context
from torchlint.semantics.flow.guards import Role
from torchlint.semantics.flow.query import query
from torchlint.semantics.knowledge.conventions.values import LOSS
from torchlint.semantics.knowledge.torch_signatures import METHODS
from torchlint.semantics.names.bindings import Binder, Binding, dotted, method_name
from torchlint.semantics.values.lattice import Device, Kind
from torchlint.syntax.tree import descendants

# What gives a tensor of one element, or of as many as its operand, which for Python to ask for must be one.
_JUDGE = frozenset(
    "any all sum max min mean norm amax amin median prod isnan isinf isfinite eq ne gt lt ge le logical_and logical_or "
    "logical_not logical_xor greater less squeeze view reshape detach count_nonzero argmax argmin".split()
)
# These look at the values themselves and give a Python bool.
_COMPARE_ALL = frozenset({"equal", "allclose", "is_nonzero"})
_COMPARED = frozenset({cst.Equal, cst.NotEqual, cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual})


# Conditions


def waits(node: cst.CSTNode, context: Context, *, anytime: bool = False) -> Iterator[cst.BaseExpression]:
    """The expressions for whose truth the CPU waits where the node asks for it, at each batch or more often.

    With `anytime`, however often that is: it is cheaper to ask.
    """
    match node:
        case cst.Call():
            if _judges_its_arguments(node, context, anytime=anytime):
                yield node
        case cst.Comparison():
            if _is_membership(node, context, anytime=anytime):
                yield node
        case _:
            yield from (
                condition
                for condition in conditions(node, context)
                if is_waited_for(condition, context, anytime=anytime)
            )


def conditions(node: cst.CSTNode, context: Context) -> Iterator[cst.BaseExpression]:
    """The expressions whose truth the node asks for, those that `and`, `or` and `not` join one by one."""
    kind = type(node)
    if kind is cst.UnaryOperation:
        if type(node.operator) is cst.Not and not _is_joined(node, context):  # type: ignore[attr-defined]
            yield from joined(node.expression)  # type: ignore[attr-defined]
    elif kind is cst.BooleanOperation:
        if not _is_joined(node, context):
            yield from joined(node.left)  # type: ignore[attr-defined]
    else:
        yield from joined(node.test)  # type: ignore[attr-defined]


def joined(test: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    """What `and`, `or` and `not` join, one by one."""
    waiting = [test]
    while waiting:
        part = waiting.pop()
        if isinstance(part, cst.BooleanOperation):
            waiting += [part.right, part.left]
        elif isinstance(part, cst.UnaryOperation) and isinstance(part.operator, cst.Not):
            waiting.append(part.expression)
        else:
            yield part


def _is_joined(node: cst.CSTNode, context: Context) -> bool:
    """Whether the node above asks for the truth of this one already."""
    parent = context.parent(node)
    if type(parent) in (cst.BooleanOperation, cst.UnaryOperation):
        return True
    return type(parent) in TESTS and parent.test is node  # type: ignore[union-attr]


TESTS: frozenset[type] = frozenset({cst.If, cst.IfExp, cst.While, cst.CompIf, cst.Assert})


def is_waited_for(condition: cst.BaseExpression, context: Context, *, anytime: bool = False) -> bool:
    """Whether the CPU waits for the device to know if the condition holds."""
    match condition:
        case cst.Comparison():
            return _is_comparison_of_tensors(condition, context, anytime=anytime)
        case cst.Call():
            return _is_judgement(condition, context, anytime=anytime)
        case cst.Name():
            return _holds_a_judgement(condition, context, anytime=anytime)
        case cst.Subscript() | cst.Attribute():
            return may_be_tensor(condition, context) and is_hot_device_tensor(condition, context, anytime=anytime)
    return False


def _is_comparison_of_tensors(node: cst.Comparison, context: Context, *, anytime: bool) -> bool:
    sides = [node.left]
    for target in node.comparisons:
        if type(target.operator) not in _COMPARED:
            return False
        sides.append(target.comparator)
    if any(type(side) in _STRINGS for side in sides):
        return False
    return any(
        may_be_tensor(side, context) and is_hot_device_tensor(side, context, anytime=anytime) for side in sides
    ) and not any(context.kind(side) not in _COMPARABLE for side in sides)


_COMPARABLE = frozenset({Kind.TENSOR, Kind.NUMBER, Kind.UNKNOWN})
_STRINGS = frozenset({cst.SimpleString, cst.ConcatenatedString, cst.FormattedString})


def _is_judgement(node: cst.Call, context: Context, *, anytime: bool) -> bool:
    """`mask.any()`, `torch.all(x > 0)`, `torch.equal(a, b)`."""
    name = method_name(node.func)
    if name in _COMPARE_ALL:
        assert isinstance(node.func, cst.Attribute)
        operands = [node.func.value, *(argument.value for argument in node.args[:2])]
        return any(is_hot_device_tensor(operand, context, anytime=anytime) for operand in operands)
    return name in _JUDGE and is_hot_device_tensor(node, context, anytime=anytime)


def _holds_a_judgement(node: cst.Name, context: Context, *, anytime: bool) -> bool:
    """Whether whatever the name holds is the result of a comparison or the like, and one at least is on the device.

    `if x:` asks other things far more often than for a tensor.
    """
    found = False
    origins = context.bound_to(node)
    for value in origins.nodes if origins.is_whole else ():
        if isinstance(value, cst.Name) and value.value in ("True", "False"):
            continue
        if not any(
            is_waited_for(part, context, anytime=anytime) for part in joined(value) if not isinstance(part, cst.Name)
        ):
            return False
        found = True
    return found and (anytime or is_hot(node, context))


def _judges_its_arguments(node: cst.Call, context: Context, *, anytime: bool) -> bool:
    """`bool(mask.any())`, `all(x > 0 for x in losses)`, `max(a, b)`: builtins that ask for the truth of tensors."""
    given = [argument.value for argument in node.args]
    name = node.func.value if isinstance(node.func, cst.Name) else ""
    if name in ("sorted", "max", "min") and _compares_by_key(node, context, anytime=anytime):
        return True
    if not given or any(argument.keyword is not None or argument.star for argument in node.args):
        return False
    if name == "bool":
        return is_waited_for(given[0], context, anytime=anytime)
    if name in ("any", "all") and isinstance(given[0], (cst.GeneratorExp, cst.ListComp)):
        return any(is_waited_for(part, context, anytime=anytime) for part in joined(given[0].elt))
    if name in ("max", "min") and len(given) > 1:
        return any(
            may_be_tensor(part, context) and is_hot_device_tensor(part, context, anytime=anytime) for part in given
        )
    return _holds_device_tensors(given[0], context, anytime=anytime)


def _compares_by_key(node: cst.Call, context: Context, *, anytime: bool) -> bool:
    """`sorted(rows, key=lambda row: scores[row])`: what the key gives is compared in Python."""
    for argument in node.args:
        match argument:
            case cst.Arg(keyword=cst.Name(value="key"), value=cst.Lambda(body=body)):
                return may_be_tensor(body, context) and is_hot_device_tensor(body, context, anytime=anytime)
    return False


def _holds_device_tensors(node: cst.BaseExpression, context: Context, *, anytime: bool) -> bool:
    """`[a.sum(), b.sum()]`, `(x.sum() for x in losses)`."""
    match node:
        case cst.List(elements=elements) | cst.Tuple(elements=elements):
            parts = [element.value for element in elements]
        case cst.ListComp(elt=elt) | cst.GeneratorExp(elt=elt):
            parts = [elt]
        case _:
            return False  # one tensor, which Python goes over row by row: there is a rule for that
    return any(may_be_tensor(part, context) and is_hot_device_tensor(part, context, anytime=anytime) for part in parts)


def _is_membership(node: cst.Comparison, context: Context, *, anytime: bool) -> bool:
    """`token in [1, 2]`: each comparison on the way is one that Python asks for."""
    if len(node.comparisons) != 1 or type(node.comparisons[0].operator) not in (cst.In, cst.NotIn):
        return False
    given = node.comparisons[0].comparator
    if type(node.left) in _STRINGS:
        return False
    if isinstance(given, (cst.Name, cst.Attribute, cst.Subscript)) and _holds_rows(given, context):
        return is_hot_device_tensor(given, context, anytime=anytime)
    if not isinstance(given, (cst.List, cst.Tuple)) or any(type(part.value) in _STRINGS for part in given.elements):
        return False
    return may_be_tensor(node.left, context) and is_hot_device_tensor(node.left, context, anytime=anytime)


def _holds_rows(node: cst.BaseExpression, context: Context) -> bool:
    """Whether this is a tensor for certain, of which `in` compares all elements and reads whether any is equal."""
    value = context.value(node)
    return value.kind is Kind.TENSOR and value.proven


def is_hot_device_tensor(
    node: cst.BaseExpression, context: Context, *, anytime: bool = False, as_number: bool = False
) -> bool:
    """Whether the expression gives a tensor that may be where the network is, at each batch or more often.

    Where Python needs it `as_number`, and it went to a device before, it is one: of what moves, nothing else counts.
    """
    function = context.function(node)
    if isinstance(function, cst.FunctionDef) and function.name.value == "__init__":
        return False  # cheaper to ask than anything below
    value = context.value(node)
    if value.kind is not Kind.TENSOR or value.device is Device.CPU or _is_no_tensor_by_then(node, context):
        return False
    return (
        (value.scalar or context.kinds.is_tensor(node) or (as_number and value.device is not Device.UNKNOWN))
        and is_device_tensor(node, context)
        and not context.frequencies.is_rate_limited(node)
        and may_be_with_the_network(node, context)
        and (anytime or is_hot(node, context))  # last: of a function it asks other files
    )


def _is_no_tensor_by_then(node: cst.BaseExpression, context: Context) -> bool:
    """Whether what makes the name a tensor runs only where this does not: `if a: x = f(t)`, `if not a and x > 0`."""
    if type(node) is not cst.Name:
        return False
    bindings = context.reaching(node)
    made = [binding for binding in bindings if context.kinds.binding(binding).kind is Kind.TENSOR]
    if not made or len(made) == len(bindings):
        return False
    asked = dict(_outcomes(node, context))
    return bool(asked) and all(
        any(asked.get(test) is (not outcome) for test, outcome in _outcomes(binding.node, context)) for binding in made
    )


def _outcomes(node: cst.CSTNode, context: Context) -> Iterator[tuple[str, bool]]:
    """The names that are asked for where a node runs, `not` left out, each with the answer."""
    for guard in context.guards(node):
        if guard.test is None or guard.role not in (Role.TAKEN, Role.NOT_TAKEN):
            continue
        test, outcome = guard.test, guard.role is Role.TAKEN
        while isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
            test, outcome = test.expression, not outcome
        name = dotted(test)
        if name is not None:
            yield name, outcome


def may_be_tensor(node: cst.BaseExpression, context: Context) -> bool:
    """Whether the expression has the shape of a tensor with one element; cheap to ask, unlike what it holds."""
    kind = type(node)
    if kind is cst.Call:
        return _may_give_tensor(node, context)  # type: ignore[arg-type]
    if kind is cst.Name:
        return _may_hold_tensor(node, context)  # type: ignore[arg-type]
    if kind is cst.Attribute:
        return is_buffer(node, context)  # type: ignore[arg-type]
    if kind is cst.Subscript:
        value, parts = node.value, node.slice  # type: ignore[attr-defined]
        return (type(value) is not cst.Attribute or value.attr.value != "shape") and all(
            type(part.slice) is cst.Index for part in parts
        )
    if kind is cst.BinaryOperation or kind is cst.BooleanOperation:
        return any(may_be_tensor(side, context) for side in (node.left, node.right))  # type: ignore[attr-defined]
    if kind is cst.UnaryOperation:
        return may_be_tensor(node.expression, context)  # type: ignore[attr-defined]
    return kind is cst.Comparison


def _may_give_tensor(node: cst.Call, context: Context) -> bool:
    func = node.func
    if type(func) is cst.Attribute:
        name = func.attr.value
        return name in _JUDGE or LOSS.suggests(name) or context.names.qualified(func.value) == "torch"
    if type(func) is not cst.Name:
        return False
    if func.value in _FOLDS:
        return any(may_be_tensor(argument.value, context) for argument in node.args)
    return LOSS.suggests(func.value)


# What the table of torch's methods says of those that give a tensor.
_ONE_TENSOR = "T"
# Those of which it depends on the arguments, and that loops go over.
_ROWS = frozenset({"unique", "nonzero"})
_FOLDS = frozenset({"sum", "max", "min", "abs"})


def _may_hold_tensor(node: cst.Name, context: Context) -> bool:
    bindings = context.names.lookup(node)[1]
    if not bindings:
        return False
    return _may_one_give(bindings[0], context, bindings) or context.kinds.goes_backward(node)


@query(bottom=False)
def _may_one_give(_: Binding, context: Context, bindings: tuple[Binding, ...]) -> bool:
    """Whether one of the bindings of a name in its scope, whose first this is, may give a tensor."""
    return any(_may_give(binding, context) for binding in bindings)


def _may_give(binding: Binding, context: Context) -> bool:
    if binding.binder is Binder.PARAMETER:
        annotation = binding.node.annotation if isinstance(binding.node, cst.Param) else None
        if annotation is None:
            return context.kinds.binding(binding).kind is Kind.TENSOR
        return any(
            "Tensor" in node.value for node in descendants(annotation) if isinstance(node, (cst.Name, cst.SimpleString))
        )
    value = binding.value
    if binding.binder is Binder.LOOP:
        if not isinstance(value, cst.Call) or binding.path[:1] not in ((), (0,)):
            return value is not None
        name = method_name(value.func)
        return not binding.path and (name in _ROWS or METHODS.get(name) == _ONE_TENSOR)
    for place in binding.path:  # `a, b = x.shape[0], t.max()`
        if isinstance(value, cst.Tuple) and place < len(value.elements):
            value = value.elements[place].value
    return value is not None and may_be_tensor(value, context)


def is_buffer(node: cst.Attribute, context: Context) -> bool:
    """Whether this is saved with the network: `self.register_buffer("started", torch.tensor(False))`."""
    owner = node.value
    class_ = context.classes.self_class(owner) if type(owner) is cst.Name else None
    return class_ is not None and any(
        isinstance(entry.node, cst.Call) for entry in context.classes.attribute_sets(class_, node.attr.value)
    )


def asks_before(name: cst.Name, context: Context) -> bool:
    """Whether an earlier condition of the function asks for the same value of the name."""
    place = context.tree.place(name)
    return any(
        context.tree.place(other) < place and _is_joined(other, context) and context.holds_the_same(other, name)
        for other in context.names.spelt(name.value)
    )
