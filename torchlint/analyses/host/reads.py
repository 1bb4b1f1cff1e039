"""Where the host waits for the device: expressions that bring a tensor's values to the CPU."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.analyses.execution.training_steps import is_in_training
from torchlint.analyses.tensors.host_resident import stays_on_host
from torchlint.finding import Frequency
from torchlint.semantics.context import Context
from torchlint.semantics.flow.origins import Through
from torchlint.semantics.flow.query import query
from torchlint.semantics.knowledge import apis
from torchlint.semantics.knowledge.conventions.functions import ACTING_METHOD, CRITERION_CALL, ENVIRONMENT_STEP
from torchlint.semantics.knowledge.conventions.packages import ARRAY_PACKAGE
from torchlint.semantics.knowledge.torch_signatures import METHODS
from torchlint.semantics.names.bindings import dotted, final_part
from torchlint.semantics.names.classes import is_static
from torchlint.semantics.values.lattice import Device, Kind, Value
from torchlint.syntax.tree import descendants

# So many names are followed to what their values are computed of.
_DEEPEST = 4
# Conversions that read one element of a tensor.
CONVERSIONS = ("float", "int", "bool")
MATH = frozenset(
    f"math.{name}"
    for name in "sqrt log log2 log10 exp ceil floor sin cos tan atan tanh fabs isnan isfinite isinf pow".split()
)


def scalar_read(node: cst.CSTNode, context: Context) -> cst.BaseExpression | None:
    """The tensor of which the expression reads one element: `t.item()`, `float(t)`, `math.sqrt(t)`, `t.data[0]`.

    It is the one on the device also in `t.cpu().item()`. None where it reads none, or one that lives on the CPU.
    """
    match node:
        case cst.Call(func=cst.Attribute(value=receiver, attr=cst.Name(value="item")), args=[]):
            receiver = before_copy(receiver)
            return receiver if is_device_tensor(receiver, context) else None
        case cst.Call(func=func, args=[cst.Arg(value=argument, keyword=None, star=""), *more]):
            name = context.qualified_name(func)
            if more and name != "math.pow":
                return None
            if name in CONVERSIONS or name in MATH:
                argument = before_copy(argument)
                if name in MATH and not context.value(argument).scalar and not context.kinds.is_tensor(argument):
                    return None  # numbers go there far more often than tensors
                return argument if is_device_tensor(argument, context) else None
        case cst.Subscript(
            value=cst.Attribute(value=receiver, attr=cst.Name(value="data")),
            slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer(value="0")))],
        ):
            # How a scalar was read before torch 0.4; on a vector it would be a view, which waits for nothing.
            if context.value(receiver).scalar and is_device_tensor(receiver, context):
                return receiver
    return None


def before_copy(node: cst.BaseExpression) -> cst.BaseExpression:
    """The `t` of `t.cpu()` and of `t.to("cpu").detach()`; any other expression itself."""
    inner = node
    while True:
        match inner:
            case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="cpu")), args=[]):
                return owner
            case cst.Call(
                func=cst.Attribute(value=owner, attr=cst.Name(value="to")),
                args=[cst.Arg(value=cst.SimpleString(raw_value="cpu"))],
            ):
                return owner
            case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="detach")), args=[]):
                inner = owner
            case _:
                return node


def bulk_read(node: cst.CSTNode, context: Context) -> cst.BaseExpression | None:
    """The tensor that `t.cpu()`, `t.numpy()` or `t.tolist()` brings to the CPU; of a chain the first call counts."""
    match node:
        case cst.Call(
            func=cst.Attribute(value=receiver, attr=cst.Name(value="cpu" | "numpy" | "tolist" | "to" as name))
        ):
            if name == "to" and not _is_to_the_cpu(node, context):
                return None
            if _is_item(node, context):
                return None  # one value, which another rule reads
            if isinstance(node.func, cst.Attribute) and node.func.attr.value == "numpy" and not node.args:
                return None  # unless it is told to copy, it raises for any tensor that is not on the CPU already
            made = context.stands_for(receiver) if isinstance(receiver, cst.Name) else receiver
            if isinstance(made, cst.Call) and _is_made_of_host_tensors(made, context):
                return None  # a network that takes tensors on the CPU is there itself
            is_read = is_device_tensor(receiver, context) or _is_computed_unseen(node, receiver, context)
            return receiver if is_read else None
    return None


def _is_to_the_cpu(call: cst.Call, context: Context) -> bool:
    """`t.to("cpu")`, `t.to(torch.device("cpu"))`, which waits unless it is told not to."""
    where = context.argument(call, "device", 0)
    if where is None or context.argument(call, "non_blocking", 2) is not None:
        return False
    match where:
        case cst.SimpleString():
            return where.raw_value == "cpu"
        case cst.Call(args=[cst.Arg(value=cst.SimpleString() as named)]):
            return context.qualified_name(where.func) == "torch.device" and named.raw_value == "cpu"
    return False


def _is_computed_unseen(call: cst.Call, receiver: cst.BaseExpression, context: Context) -> bool:
    """Whether something unknown can only be a tensor: `output.squeeze().exp().cpu()`, `output.cpu().numpy()`."""
    match call.func, receiver:
        case cst.Attribute(attr=cst.Name(value="cpu")), cst.Call(func=cst.Attribute(attr=cst.Name(value=name))):
            is_method = METHODS.get(name) == "T" and name not in _OF_MODULES_TOO
        case _:
            is_method = False
    is_method = is_method or _is_an_array_next(call, context)
    return is_method and context.kind(receiver) is Kind.UNKNOWN and not is_host_only(context, Device.UNKNOWN)


def _is_an_array_next(call: cst.Call, context: Context) -> bool:
    """`x.cpu().numpy()`, where nothing but a tensor has both."""
    match call.func, context.parent(call):
        case cst.Attribute(attr=cst.Name(value="cpu")), cst.Attribute(attr=cst.Name(value="numpy" | "tolist")):
            return True
    return False


# Methods that a network has as well, and gives itself.
_OF_MODULES_TOO = frozenset("cuda cpu to float half double bfloat16 type requires_grad_ share_memory_".split())


def is_device_tensor(node: cst.BaseExpression, context: Context) -> bool:
    """Whether the expression holds a tensor that may live on an accelerator."""
    value = context.value(node)
    if _is_unclear(value) and _is_item(node, context) and not is_host_only(context, Device.UNKNOWN):
        if _is_read_of_a_batch(node, context) or _is_computed_in_a_network(node, context):
            return not stays_on_host(node, context)
        _ask_callers(node, context)
        if is_of_torch_alone(node, context):
            return not stays_on_host(node, context) and not _is_of_samples(node, context)
    if value.kind is not Kind.TENSOR or value.device is Device.CPU or is_host_only(context, value.device):
        return False
    if value.device is not Device.UNKNOWN:
        return True
    return not stays_on_host(node, context) and not _is_of_samples(node, context)


def is_of_torch_alone(node: cst.BaseExpression, context: Context) -> bool:
    """Whether `.item()` is called on something unknown where no arrays are at hand: then only a tensor has it."""
    if not _is_unclear(context.value(node)) or not _is_item(node, context):
        return False
    if _is_read_of_a_batch(node, context) or _is_computed_in_a_network(node, context):
        return False
    calls = [part for part in _roots(node, context, _DEEPEST) if isinstance(part, cst.Call)]
    if not calls and ARRAY_PACKAGE.suggests_any(context.names.imported):
        return False
    return not any(map(_is_of_arrays, calls)) and all(_may_compute(call, context) for call in calls)


def _is_unclear(value: Value) -> bool:
    """Whether nobody knows what it is: after `loss = 0`, too, for a number would have no `item`."""
    return value.kind is Kind.UNKNOWN or (value.kind is Kind.NUMBER and not value.proven)


def _is_of_arrays(call: cst.Call) -> bool:
    """Whether the call names an axis as arrays do, `x.sum(axis=1)`, or by a word, `x.sum(dim="time")`."""
    for argument in call.args:
        if argument.keyword is not None and (
            argument.keyword.value == "axis"
            or (argument.keyword.value == "dim" and isinstance(argument.value, cst.SimpleString))
        ):
            return True
    return False


def _is_of_samples(node: cst.BaseExpression, context: Context) -> bool:
    """Whether a dataset holds what only a name says is a tensor: `self._data.edge_index` is on the CPU there."""
    function = context.function(node)
    owner = context.classes.owner(function) if isinstance(function, cst.FunctionDef) else None
    return owner is not None and not context.value(node).proven and context.classes.is_dataset(owner)


def _ask_callers(node: cst.BaseExpression, context: Context) -> None:
    """Have other files asked what they pass to the function around, or to those of this file that call it in turn."""
    waiting = [context.function(node)]
    asked: set[cst.CSTNode] = set()
    while waiting:
        function = waiting.pop()
        if isinstance(function, cst.FunctionDef) and function not in asked:
            asked.add(function)
            context.elsewhere.callers(function)  # what they pass would tell
            waiting += [context.function(call) for call in context.calls.callers(function)]


def _is_item(node: cst.BaseExpression, context: Context) -> bool:
    """Whether `.item` is taken of the expression."""
    parent = context.parent(node)
    return isinstance(parent, cst.Attribute) and parent.attr.value == "item"


def _is_read_of_a_batch(node: cst.BaseExpression, context: Context) -> bool:
    """Whether `.item()` is called on something unknown that can only be a tensor.

    What has it in a loop that trains is one, and so is what is computed from tensors for each batch.
    """
    if is_in_training(node, context):
        return True
    if not isinstance(node, cst.Name) or context.frequency(node) < Frequency.BATCH:
        return False
    return _holds_what_tensors_give(node, context)


@query(bottom=False)
def _holds_what_tensors_give(node: cst.Name, context: Context) -> bool:
    """Whether all that the name is bound to is computed of tensors: by calls that take some, or by arithmetic."""
    origins = context.bound_to(node, Through.PARTS)
    calls = [origin.node for origin in origins.found if isinstance(origin.node, cst.Call)]
    if bool(calls) and len(calls) == len(context.binders(node)):
        return any(_takes_a_tensor(call, context) for call in calls) and not all(
            _is_made_of_host_tensors(call, context) for call in calls
        )
    binders = context.binders(node)
    added = [binder for binder in binders if isinstance(binder, cst.AugAssign)]
    bound = [origin.node for origin in origins.found if isinstance(origin.node, cst.BinaryOperation)]
    # What is added to a sum of tensors leaves it one.
    return (
        bool(bound)
        and len(bound) + len(added) == len(binders)
        and all(_is_computed_with_such(each, context) for each in bound)
    )


def _is_computed_with_such(node: cst.BaseExpression, context: Context) -> bool:
    """`real_loss + weight * fake_loss`, where one of them is what a call gives for tensors: so is the sum."""
    match node:
        case cst.BinaryOperation(left=left, right=right):
            return _is_computed_with_such(left, context) or _is_computed_with_such(right, context)
        case cst.Name():
            return _holds_what_tensors_give(node, context)
        case cst.Call():
            return _takes_a_tensor(node, context) and not _is_made_of_host_tensors(node, context)
    return False


def _takes_a_tensor(call: cst.Call, context: Context) -> bool:
    return any(context.kind(argument.value) is Kind.TENSOR or _is_criterion(call.func) for argument in call.args)


def _is_computed_in_a_network(node: cst.BaseExpression, context: Context) -> bool:
    """Whether `.item()` is called, in a method of a network, on what the method has called something for.

    Networks compute with tensors, and what is computed there has `item` only as one; but it may come from NumPy.
    """
    function = context.function(node)
    owner = context.classes.owner(function) if isinstance(function, cst.FunctionDef) else None
    if owner is None or not isinstance(function, cst.FunctionDef) or is_static(function):
        return False
    if not context.classes.is_module(owner):
        return False
    calls = [part for part in _roots(node, context, _DEEPEST) if isinstance(part, cst.Call)]
    return bool(calls) and all(_may_compute(call, context) for call in calls)


def _roots(node: cst.CSTNode, context: Context, depth: int) -> Iterator[cst.CSTNode]:
    """What an expression is computed of, as it is written where the names in it are bound: calls, and anything else."""
    match node:
        case cst.Subscript(value=inner) | cst.Attribute(value=inner) | cst.UnaryOperation(expression=inner):
            yield from _roots(inner, context, depth)
        case cst.BinaryOperation(left=left, right=right):
            yield from _roots(left, context, depth)
            yield from _roots(right, context, depth)
        case cst.AugAssign(target=cst.Name() as target, value=value):
            yield from _roots(target, context, depth)
            yield from _roots(value, context, depth)
        case cst.Name() if depth:
            bound = [origin.node for origin in context.bound_to(node, Through.PARTS).found]
            for part in (*bound, *(binder for binder in context.binders(node) if isinstance(binder, cst.AugAssign))):
                yield from _roots(part, context, depth - 1)
        case _:
            yield node


def _may_compute(call: cst.Call, context: Context) -> bool:
    """Whether the call may give a tensor of the device: it is none of NumPy's, and not given tensors on the CPU."""
    calls = [part for part in descendants(call) if isinstance(part, cst.Call)]
    packages = ((context.qualified_name(part.func) or "").partition(".")[0] for part in calls)
    if any(map(ARRAY_PACKAGE.suggests, packages)) or context.device(call) is Device.CPU:
        return False
    return not _is_made_of_host_tensors(call, context) and not _is_made_of_numbers(call, context)


def _is_made_of_numbers(call: cst.Call, context: Context) -> bool:
    """`torch.LongTensor([1, 2])`, which is on the CPU whoever it is given to."""
    name = context.qualified_name(call.func) or ""
    return name.startswith("torch.") and name[6:] in apis.LEGACY_TENSORS


def _is_made_of_host_tensors(call: cst.Call, context: Context) -> bool:
    """`accuracy(scores, labels)`, where both are on the CPU."""
    given = [context.value(argument.value) for argument in call.args]
    tensors = [value for value in given if value.kind is Kind.TENSOR]
    return bool(tensors) and all(value.device is Device.CPU for value in tensors)


def _is_criterion(func: cst.BaseExpression) -> bool:
    """Whether a loss is computed by calling this: `criterion`, `self.criterion["stft"]`."""
    while isinstance(func, cst.Subscript):
        func = func.value
    return CRITERION_CALL.suggests((dotted(func) or "").rpartition(".")[2])


def is_host_only(context: Context, device: Device) -> bool:
    """Whether a script that shows all it does never speaks of an accelerator."""
    return device is Device.UNKNOWN and not context.program.mentions_accelerator and context.program.is_whole_script


def tests_a_tensor(test: cst.BaseExpression, context: Context) -> bool:
    """Whether a condition asks for the value of a tensor."""
    match test:
        case cst.BooleanOperation(left=left, right=right):
            return tests_a_tensor(left, context) or tests_a_tensor(right, context)
        case cst.UnaryOperation(operator=cst.Not(), expression=inner):
            return tests_a_tensor(inner, context)
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=operator, comparator=right)]):
            is_value = not isinstance(operator, (cst.Is, cst.IsNot))
            return is_value and Kind.TENSOR in (context.kind(left), context.kind(right))
    return context.kind(test) is Kind.TENSOR


def is_needed_on_host(node: cst.CSTNode, context: Context) -> bool:
    """Whether the value read decides what the host does next, so that no later read could replace it.

    An action for an environment (`env.step(action.item())`), directly or through names.
    """
    statement = context.tree.statement(node)
    calls = context.around(node, cst.Call, within=statement)
    if any(ENVIRONMENT_STEP.suggests(final_part(call.func)) for call in calls):
        return True
    return isinstance(statement, cst.Assign) and _is_stepped_with(statement, context)


def _is_stepped_with(assign: cst.Assign, context: Context) -> bool:
    """Whether what is assigned goes to an environment, a window or another process, as it is or converted."""
    places = context.destinations(
        assign.value, Through.PARTS, handed_on=lambda node, taker: _converted(node, taker, context)
    )
    return any(_is_acted_with(place, context) for place in places.nodes)


def _converted(node: cst.BaseExpression, taker: cst.CSTNode, context: Context) -> cst.BaseExpression | None:
    """What is made of a value: a part of it, what a method of it gives, or what a function gives that takes it."""
    match taker:
        case cst.Subscript(value=value) | cst.Attribute(value=value) if value is node:
            return taker
        case cst.Call(func=func) if func is node:
            return taker
        case cst.Arg() if not _is_acted_with(node, context):
            call = context.parent(taker)
            return call if isinstance(call, cst.Call) else None
    return None


def _is_acted_with(node: cst.CSTNode, context: Context) -> bool:
    """Whether the expression is handed to what acts: `env.step(action)`."""
    argument = context.parent(node)
    call = context.parent(argument) if isinstance(argument, cst.Arg) else None
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
        return False
    return ACTING_METHOD.suggests(call.func.attr.value)


def is_awaited_by_loop(tensor: cst.BaseExpression, context: Context) -> bool:
    """Whether the loop around goes on only when it has seen the tensor: `while loss > limit`."""
    loop = context.loop(tensor)
    wanted = dotted(tensor)
    return (
        wanted is not None
        and isinstance(loop, cst.While)
        and any(dotted(node) == wanted for node in descendants(loop.test))
    )
