"""Whether a tensor is where the network is: what it was computed from, back to what shows it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import libcst as cst

from torchlint.analyses.provenance.filled_lists import filled_with
from torchlint.finding import Doubt
from torchlint.semantics.context import Context
from torchlint.semantics.flow.origins import MOST_STEPS, Through
from torchlint.semantics.flow.query import query
from torchlint.semantics.knowledge import apis
from torchlint.semantics.names.bindings import Binder, Binding
from torchlint.semantics.names.loop_headers import walked
from torchlint.semantics.values.lattice import Device, Kind, Value, item_of
from torchlint.syntax.tree import descendants


def is_with_the_network(node: cst.BaseExpression, context: Context) -> bool:
    """Whether the tensor comes from a parameter, a network's output or its state, or was moved to a device.

    A tensor of unknown device that is made of unknown things only (`scheduler.sigmas[i]`) may well live on the CPU.
    """
    return may_be_with_the_network(node, context) and _is_from_device(node, context)


def may_be_with_the_network(node: cst.BaseExpression, context: Context) -> bool:
    """Whether nothing shows that the tensor is made of what is on the CPU."""
    return not context[_HostData].is_made_of_it(node)


def place_doubts(node: cst.CSTNode, context: Context) -> Iterator[Doubt]:
    """That nothing shows where the tensors in an expression are, neither a device nor what they were computed from."""
    asked = context.bound_to(node).nodes if isinstance(node, cst.Name) else ()
    parts = (part for each in (node, *asked) for part in descendants(each))
    tensors = (part for part in parts if isinstance(part, _VALUES) and context.kind(part) is Kind.TENSOR)
    if not any(context.is_on_gpu(part) or is_with_the_network(part, context) for part in tensors):
        yield Doubt.DEVICE_UNKNOWN


_VALUES = (cst.Name, cst.Attribute, cst.Subscript, cst.Call, cst.Comparison, cst.BinaryOperation, cst.UnaryOperation)


# Chains of names may be longer than the interpreter's stack is deep, so none of these asks itself.


def _is_from_device(node: cst.BaseExpression, context: Context) -> bool:
    seen: set[cst.BaseExpression] = set()
    left = [node]
    while left:
        node = left.pop()
        value = context.value(node)
        if value.device is Device.CPU or value.kind is Kind.NUMBER or node in seen:
            continue
        seen.add(node)
        if _may_hold_tensors(value):
            if value.device is not Device.UNKNOWN or (given := _given(node, context)) is True:
                return True
            left += given
        left += _computed_from(node, context)
    return False


class _HostData:
    """What a function of this file computes from a tensor on the CPU, whatever others pass to that function."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._known: dict[cst.BaseExpression, bool] = {}

    def is_made_of_it(self, node: cst.BaseExpression) -> bool:
        """Whether a value is. What was walked over in vain is not walked over again for another one."""
        seen: set[cst.BaseExpression] = set()
        left = [node]
        while left:
            part = left.pop()
            if part in seen or self._known.get(part) is False:
                continue
            seen.add(part)
            if self._known.get(part) or self._is_made_here(part):
                self._known[node] = True
                return True
            if not _is_of_this_file(part, self._context):
                left += _computed_from(part, self._context)
        self._known.update(dict.fromkeys(seen, False))
        return False

    def _is_made_here(self, node: cst.BaseExpression) -> bool:
        if not isinstance(node, cst.Call):
            return False
        given = [self._context.value(argument.value) for argument in node.args]
        if _is_of_this_file(node, self._context):
            return any(value.kind is Kind.TENSOR and value.device is Device.CPU for value in given)
        # What torch computes of numbers alone.
        root, _, name = (self._context.qualified_name(node.func) or "").partition(".")
        is_computed = root == "torch" and name not in apis.FACTORIES and name not in apis.LEGACY_TENSORS
        return is_computed and bool(given) and all(value.kind in (Kind.NUMBER, Kind.STRING) for value in given)


def _is_of_this_file(node: cst.BaseExpression, context: Context) -> bool:
    """Whether it is a call of a function of this file."""
    return isinstance(node, cst.Call) and context.calls.target(node) is not None


def _given(node: cst.BaseExpression, context: Context) -> list[cst.BaseExpression] | Literal[True]:
    """True for a parameter of a function, a network's state or its output; else what may be passed for it."""
    match node:
        case cst.Name():
            bindings = context.reaching(node)
            parameters = [binding for binding in bindings if binding.binder is Binder.PARAMETER]
            if not parameters or not _may_be_tensors(bindings, context):
                return []
            return _given_for(parameters, context)
        case cst.Subscript(value=cst.Name() as owner) if context.kind(owner) in (Kind.UNKNOWN, *_HOLDERS):
            bindings = context.reaching(owner)
            if bindings and all(binding.binder is Binder.PARAMETER for binding in bindings):
                return _given_for(list(bindings), context)  # the uses of its parts tell that they are tensors
        case cst.Attribute(attr=cst.Name(value="grad")):
            return True
        case cst.Attribute(value=cst.Name() as owner, attr=cst.Name(value=name)):
            class_ = context.classes.self_class(owner)
            sets = context.classes.attribute_sets(class_, name) if class_ is not None else []
            is_state = any(isinstance(each.node, cst.Call) or _is_parameter(each.value, context) for each in sets)
            return is_state or []
        case cst.Call(func=func):
            return context.kind(func) is Kind.MODULE or []
    return []


def _given_for(parameters: list[Binding], context: Context) -> list[cst.BaseExpression] | Literal[True]:
    passed = [_passed(binding, context) for binding in parameters]
    return True if True in passed else [each for given in passed if given is not True for each in given]


def _may_be_tensors(bindings: tuple[Binding, ...], context: Context) -> bool:
    """Whether they bind a tensor, or None, on each way; what a parameter is, its uses tell, or what takes its place."""
    kinds = [(value, binding.binder is Binder.PARAMETER) for binding, value in _held(bindings, context)]
    is_given_one = any(given and _may_hold_tensors(value) for value, given in kinds)
    return all(
        _may_hold_tensors(value) or (value.kind is Kind.UNKNOWN and (given or is_given_one)) for value, given in kinds
    )


def _held(bindings: tuple[Binding, ...], context: Context) -> list[tuple[Binding, Value]]:
    """What each of them binds, None left out: of that nobody asks what is asked of tensors."""
    held = [(binding, context.kinds.binding(binding)) for binding in bindings]
    return [(binding, value) for binding, value in held if value.kind is not Kind.NONE]


def _may_hold_tensors(value: Value) -> bool:
    """Whether it is a tensor, or a sequence or mapping of tensors or of who knows what."""
    return value.kind is Kind.TENSOR or (value.kind in _HOLDERS and item_of(value).kind in (Kind.TENSOR, Kind.UNKNOWN))


_HOLDERS = (Kind.SEQUENCE, Kind.MAPPING)


def _passed(binding: Binding, context: Context) -> list[cst.BaseExpression] | Literal[True]:
    """What the callers in this file pass for the parameter; True where there are none, or one does not show it."""
    function = context.tree.function_of_parameter(binding.node)
    if not isinstance(function, cst.FunctionDef) or not isinstance(binding.node, cst.Param):
        return []
    if function.name.value in apis.BATCH_METHODS:
        return True
    arguments = [context.calls.argument_for(call, function, binding.node) for call in context.calls.callers(function)]
    given = [argument for argument in arguments if argument is not None]
    is_shown = given and len(given) == len(arguments) and not any(_is_of_a_batch(each, context) for each in given)
    return given if is_shown else True


def _is_of_a_batch(node: cst.BaseExpression, context: Context) -> bool:
    """`x` of `x, y = batch`, of the batch that Lightning gives to `training_step`."""
    names = (origin.node for origin in context.origins(node, Through.PARTS).lost if isinstance(origin.node, cst.Name))
    functions = (context.tree.function_of_parameter(each.node) for name in names for each in context.reaching(name))
    return any(isinstance(each, cst.FunctionDef) and each.name.value in apis.BATCH_METHODS for each in functions)


def _is_parameter(node: cst.CSTNode | None, context: Context) -> bool:
    return isinstance(node, cst.Call) and (context.qualified_name(node.func) or "").endswith("nn.Parameter")


def _computed_from(node: cst.BaseExpression, context: Context) -> list[cst.BaseExpression]:
    match node:
        case cst.Name():
            filled = filled_with(node, context) if context.kind(node) is Kind.SEQUENCE else ()
            return [*_bound_to(context.reaching(node), context), *filled]
        case cst.Attribute(value=owner, attr=cst.Name(value=name)):
            class_ = context.classes.self_class(owner) if isinstance(owner, cst.Name) else None
            sets = context.classes.attribute_sets(class_, name) if class_ is not None else []
            return [entry.value for entry in sets if entry.value is not None] if class_ is not None else [owner]
        case cst.Subscript(value=owner):
            return [owner]
        case cst.BinaryOperation(left=left, right=right) | cst.BooleanOperation(left=left, right=right):
            return [left, right]
        case cst.Comparison(left=left, comparisons=targets):
            return [left, *(target.comparator for target in targets)]
        case cst.IfExp(body=body, orelse=orelse):
            return [body, orelse]
        case cst.UnaryOperation(expression=inner) | cst.NamedExpr(value=inner):
            return [inner]
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            return [element.value for element in elements]
        case cst.ListComp(elt=part) | cst.GeneratorExp(elt=part):
            return [part]
        case cst.Call(func=func, args=args):
            receiver = [func.value] if isinstance(func, cst.Attribute) else []
            return [*receiver, *(argument.value for argument in args)]
    return []


def _bound_to(bindings: tuple[Binding, ...], context: Context) -> list[cst.BaseExpression]:
    """What a name was bound to, where it holds a tensor, or None, on every way."""
    if len(bindings) > MOST_STEPS:
        return []
    known = _steps(context.tree.module, context)  # one after the other, each use sees what all loops above bind
    found: list[cst.BaseExpression] = []
    for binding in bindings:
        if binding not in known:
            value = context.kinds.binding(binding)
            is_none = value.kind is Kind.NONE
            is_tensor = _may_hold_tensors(value) and not _unpacks_a_result(binding, context)
            given = () if is_none or binding.value is None else (walked(binding.value, binding.path)[0],)
            known[binding] = given if is_tensor or is_none else None
        step = known[binding]
        if step is None:
            return []
        found += step
    return found


@query(bottom=None)
def _steps(_module: cst.Module, _context: Context) -> dict[Binding, tuple[cst.BaseExpression, ...] | None]:
    """What was found out of bindings, filled as they are asked about: None for what holds no tensor."""
    return {}


def _unpacks_a_result(binding: Binding, context: Context) -> bool:
    """`a, n = f(x)`, where `f` is said to give one tensor: it gives several things, and who knows which."""
    call = binding.value
    return (
        bool(binding.path)
        and isinstance(call, cst.Call)
        and context.kind(call) is Kind.TENSOR
        and context.calls.target(call) is not None
    )
