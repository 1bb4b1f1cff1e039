"""Copies of more than is used, or of what was on the CPU before: the device could reduce it, the CPU had it."""

from __future__ import annotations

from itertools import count

import libcst as cst

from torchlint.analyses.host.purpose import is_copied_before
from torchlint.semantics.context import Context
from torchlint.semantics.flow.origins import Through
from torchlint.semantics.flow.query import query
from torchlint.semantics.names.bindings import Binder, final_part, method_name
from torchlint.semantics.values.lattice import Device, Kind

# What gives less than it takes, in NumPy and in torch by the same name.
_REDUCTIONS = frozenset("argmax argmin max min amax amin sum mean any all".split())
_MOST = 16
_OF_ALL = (cst.In, cst.NotIn, cst.Is, cst.IsNot)
# What gives the same values.
_CASTS = ("float", "double")
_SAME = frozenset("numpy detach float double half long int clone squeeze".split())


def reduced_by(copy: cst.Call, tensor: cst.BaseExpression, context: Context) -> str:
    """The one reduction that all is given to which is computed of the copy, element by element.

    `np.argmax(scores.cpu().numpy(), axis=1)`; `hits = scores.cpu().numpy() > 0.5`, then `(hits & wanted).sum()`.
    """
    if context.value(tensor).scalar or is_copied_before(copy, context):
        return ""
    steps = count()
    gone = context.sinks.of(
        copy, handed_on=lambda node, taker: _element_by_element(node, taker, context) if next(steps) < _MOST else None
    )
    taken = [place.node for place in gone.found if not _is_described(place.node, context)]
    names = {_reduction(node, context) for node in taken}
    # A loop that reduces it class by class would wait each time.
    is_once = all(context.loop(node) is context.loop(copy) for node in taken)
    return names.pop() if len(names) == 1 and is_once and not gone.lost else ""


def _element_by_element(node: cst.BaseExpression, taker: cst.CSTNode, context: Context) -> cst.BaseExpression | None:
    """What is computed of each element for itself: the same, a comparison, a sum of two."""
    match taker:
        case cst.Attribute():
            same = _values(node, context)
            return same if same is not node else None
        case cst.ComparisonTarget(operator=operator):
            above = context.parent(taker)
            return above if isinstance(above, cst.Comparison) and not isinstance(operator, _OF_ALL) else None
        case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=operator)]):
            return None if isinstance(operator, _OF_ALL) else taker
        case cst.BinaryOperation(operator=operator):
            return None if isinstance(operator, cst.MatrixMultiply) else taker
        case cst.UnaryOperation(operator=cst.BitInvert() | cst.Minus()):
            return taker
    return None


def _is_described(node: cst.CSTNode, context: Context) -> bool:
    """`x.shape`, `len(x)`: what asks for no values."""
    match context.parent(node):
        case cst.Attribute(attr=cst.Name(value="shape" | "size" | "ndim" | "dtype")):
            return True
        case cst.Arg() as argument:
            call = context.parent(argument)
            return isinstance(call, cst.Call) and context.qualified_name(call.func) in ("len", "builtins.len")
    return False


def came_from_the_host(copy: cst.Call, context: Context) -> bool:
    """Whether a name holds what was moved to the device as it is: `target = target.cuda()`, then `target.cpu()`."""
    owner = copy.func.value if isinstance(copy.func, cst.Attribute) else None
    while True:
        match owner:
            case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value="detach")), args=[]):
                owner = inner
            case cst.Attribute(value=inner, attr=cst.Name(value="data")):
                owner = inner
            case _:
                break
    if not isinstance(owner, cst.Name):
        return False
    bindings = context.reaching(owner)
    sources = context.origins(owner, Through.PARTS)
    if not sources.some(lambda node: _is_moved(node, context)) or any(origin.path for origin in sources.found):
        return False
    if not all(_is_moved(origin.node, context) or _is_on_the_cpu(origin.node, context) for origin in sources.found):
        return False
    if sources.lost and not all(_is_given_by_a_loop(origin.node, context) for origin in sources.lost):
        return False
    return not any(_is_changed(use, context) for binding in bindings for use in context.names.uses(binding))


@query(bottom=False)
def is_only_used_like_a_tensor(node: cst.CSTNode, context: Context) -> bool:
    """Whether nothing tells what makes it, a part of something or whole: it is likely a tensor by its use alone."""
    match node:
        case cst.Subscript(value=owner):
            return is_only_used_like_a_tensor(owner, context)
        case cst.Name():
            made = context.origins(node, Through.PARTS)
            return (
                not made.lost
                and not context.value(node).proven
                and all(is_only_used_like_a_tensor(origin.node, context) for origin in made.found)
            )
    return context.kind(node) is Kind.UNKNOWN


def _is_given_by_a_loop(node: cst.BaseExpression, context: Context) -> bool:
    """Whether a loop gives the name a tensor on the CPU: what is moved under a condition is that one otherwise."""
    bindings = (
        [found for found in context.reaching(node) if found.binder is Binder.LOOP] if isinstance(node, cst.Name) else []
    )
    values = [context.kinds.binding(binding) for binding in bindings]
    return bool(values) and all(value.kind is Kind.TENSOR and value.device is Device.CPU for value in values)


def _values(node: cst.BaseExpression, context: Context) -> cst.BaseExpression:
    """The whole of `t.cpu().numpy()`, as far as the values stay the same."""
    while True:
        above = context.parent(node)
        call = context.parent(above) if isinstance(above, cst.Attribute) and above.value is node else None
        if isinstance(above, cst.Attribute) and above.attr.value == "data":
            node = above
        elif isinstance(call, cst.Call) and call.func is above and method_name(call.func) in _SAME:
            node = call
        else:
            return node


def _reduction(whole: cst.CSTNode, context: Context) -> str:
    """The name of the reduction that is made of the values: a method of theirs, or a function of NumPy or torch."""
    above = context.parent(whole)
    call = context.parent(above) if above is not None else None
    if not isinstance(call, cst.Call):
        return ""
    match above:
        case cst.Attribute(attr=cst.Name(value=name)) if call.func is above and name in _REDUCTIONS:
            return name
        case cst.Arg() if call.args[0] is above and above.keyword is None and not above.star:
            root, _, name = (context.qualified_name(call.func) or "").partition(".")
            return name if root in ("numpy", "torch") and name in _REDUCTIONS else ""
    return ""


def _is_moved(node: cst.BaseExpression, context: Context) -> bool:
    """`target.to(device)`, of a tensor on the CPU, and a cast behind it."""
    match node:
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=name)), args=[]) if name in _CASTS:
            return _is_moved(owner, context)
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="cuda" | "to"))):
            return _is_on_the_cpu(owner, context) and context.device(node) is not Device.CPU
    return False


def _is_on_the_cpu(node: cst.BaseExpression, context: Context) -> bool:
    value = context.value(node)
    return value.kind is Kind.TENSOR and value.device is Device.CPU


def _is_changed(use: cst.Name, context: Context) -> bool:
    """Whether something is done to the tensor in place: `target[target < 0] = 0`, `target.clamp_(0)`, `target += 1`."""
    match context.parent(use):
        case cst.Attribute(value=owner) as method if owner is use:
            call = context.parent(method)
            return isinstance(call, cst.Call) and call.func is method and final_part(method).endswith("_")
        case cst.Subscript(value=owner) as part if owner is use:
            above = context.parent(part)
            return isinstance(above, cst.AssignTarget) or (isinstance(above, cst.AugAssign) and above.target is part)
        case cst.AugAssign(target=target):
            return target is use
    return False
