"""What the elements of a tensor meet in an iteration of a loop that no batched operation takes."""

from __future__ import annotations

import re

import libcst as cst

from torchlint.analyses.iteration.bindings import META, Turn
from torchlint.analyses.iteration.carried import is_read
from torchlint.analyses.iteration.targets import names_in, picks, picks_one
from torchlint.semantics.context import Context
from torchlint.semantics.knowledge import apis
from torchlint.semantics.knowledge.conventions.functions import FILE_FUNCTION, RESIZING_CALL, SUPPRESSION
from torchlint.semantics.knowledge.conventions.values import LIST, STATELESS_LOSS
from torchlint.semantics.knowledge.torch_signatures import METHODS
from torchlint.semantics.names.bindings import dotted
from torchlint.semantics.values.lattice import Kind
from torchlint.syntax.tree import descendants_in_scope

# Methods whose result is as long as the data say.
RAGGED = frozenset("nonzero masked_select unique unique_consecutive argwhere bincount nms batched_nms".split())
HOST_METHODS = frozenset("numpy tolist item".split())
# Methods that tell of a mask how far it goes.
_EXTENTS = frozenset("sum max min amax amin argmax argmin count_nonzero".split())
# Methods that leave the axes as they are.
_SHAPE_KEPT = frozenset("clone contiguous detach to cuda float half".split())
# Modules that keep nothing from one call to the next and take rows as well as batches of them.
_STATELESS = re.compile(
    r"^torch\.nn\.(\w*Loss|Linear|Conv\w*|\w*ReLU6?|Sigmoid|Tanh|(Log)?Softmax|GELU|Embedding|\w*Pool\w*|\w*Norm)$"
)
_NO_FORWARD = apis.MODULE_ONLY_METHODS | frozenset("to cuda cpu half float zero_grad get items keys".split())


def is_mixed(turn: Turn) -> bool:
    """Whether an iteration works with items of a list of tensors or an array, files, or in a loop of unknown length."""
    if any(turn.context.kind(container) is Kind.NDARRAY for container in turn.others.values()):
        return True
    containers = turn.listed() | turn.others
    for node in turn.nodes:
        match node:
            case cst.Name(value=name) if name in containers and is_read(node, turn.context):
                if _is_item(node, containers[name], turn):
                    return True
            case cst.Subscript(value=owner) if picks(node, turn.counters) and not turn.context.kinds.is_tensor(owner):
                if _is_item(node, owner, turn):
                    return True
            case cst.While() if not isinstance(turn.loop, cst.While):
                return True
            case cst.Call(func=cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name))):
                if FILE_FUNCTION.suggests(name):
                    return True
    return False


def is_beside_stackable_items(turn: Turn) -> bool:
    """Whether a list goes along with a tensor, `zip(losses, weights)`, whose products are stacked later.

    Its items can be stacked before just as well, and the whole be done at once.
    """
    iterated = turn.loop.iter if isinstance(turn.loop, (cst.For, cst.CompFor)) else None
    if not (turn.visit.elements and turn.visit.others) or not isinstance(iterated, cst.Call):
        return False
    if turn.context.qualified_name(iterated.func) != "zip":
        return False
    return all(_is_of_arithmetic(node, turn) for node in turn.nodes) and _is_stacked(turn)


def _is_stacked(turn: Turn) -> bool:
    """Whether all that the iterations collect is joined: `losses.append(loss)`, `torch.stack(losses).sum()`."""
    kept = [
        node.func.value
        for node in turn.nodes
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "append"
    ]
    return bool(kept) and all(
        isinstance(name, cst.Name) and any(_is_joined(use, turn.context) for use in turn.context.readers(name))
        for name in kept
    )


def _is_joined(node: cst.CSTNode, context: Context) -> bool:
    argument = context.parent(node)
    call = context.parent(argument) if isinstance(argument, cst.Arg) else None
    return isinstance(call, cst.Call) and context.qualified_name(call.func) in apis.JOINING_FUNCTIONS


def _is_of_arithmetic(node: cst.CSTNode, turn: Turn) -> bool:
    """Whether a node of an iteration computes what both its rows and items take part in, or collects or adds it up."""
    match node:
        case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value=method))):
            if turn.context.qualified_name(node.func) is None or names_in(owner) & turn.own_names:
                return method in ("append", "item", "detach", "log", "exp", "square", "pow", "abs", "mean", "sum")
            name = turn.context.qualified_name(node.func) or ""
            return name.startswith(("torch.nn.functional.", "torch.tensor", "torch.log", "torch.exp"))
        case cst.Call():
            return (turn.context.qualified_name(node.func) or "").startswith("torch.nn.functional.")
        case cst.Subscript() | cst.If() | cst.For() | cst.While() | cst.IfExp() | cst.Comparison() | cst.Lambda():
            return False
        case cst.Assign(targets=[cst.AssignTarget(target=target)]):
            return isinstance(target, cst.Name)
    return not isinstance(node, (cst.Try, cst.With, cst.Return, cst.Await, cst.Yield, cst.ListComp))


def _is_item(item: cst.BaseExpression, container: cst.BaseExpression, turn: Turn) -> bool:
    """Whether this is a tensor out of a list, a record, or anything else of which there is no batch."""
    context = turn.context
    is_listed = LIST.suggests((dotted(container) or "").rpartition(".")[2]) and not context.kinds.is_tensor(container)
    if is_listed and isinstance(context.parent(item), (cst.BinaryOperation, cst.Arg)):
        return True
    if context.kind(container) is Kind.TENSOR:
        return False
    if context.kind(item) in (Kind.TENSOR, Kind.MAPPING, Kind.MODULE, Kind.DISTRIBUTION):
        return True
    if _is_kept_of_a_list(item, container, context):
        return True
    child: cst.CSTNode = item
    above = context.parent(item)
    while isinstance(above, cst.Subscript) and above.value is child:
        if _is_key(above):
            return True
        child, above = above, context.parent(above)
    match above:
        case cst.Attribute(attr=cst.Name(value=name)) if above.value is child:
            call = context.parent(above)
            if name in META or not isinstance(call, cst.Call):
                return True
            return name in METHODS or any(names_in(argument.value) & turn.elements.keys() for argument in call.args)
        case cst.Call(func=func):
            return func is child
        case cst.For(iter=iterated) | cst.CompFor(iter=iterated):
            return iterated is child
    return False


def _is_kept_of_a_list(item: cst.BaseExpression, container: cst.BaseExpression, context: Context) -> bool:
    """`row = rows[i]`, of a list for certain, whose parts are taken: rows of a list may be of any length."""
    value = context.value(container)
    if value.kind is not Kind.SEQUENCE or not value.proven or context.kind(item) in (Kind.NUMBER, Kind.STRING):
        return False
    match context.parent(item):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]) as statement:
            return any(
                isinstance(above := context.parent(use), cst.Subscript) and above.value is use
                for use in context.names.spelt(name)
                if any(binder is statement for binder in context.binders(use))
            )
    return False


def _is_key(node: cst.Subscript) -> bool:
    match node.slice:
        case [cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString() | cst.FormattedString()))]:
            return True
    return False


def runs_a_network(turn: Turn) -> bool:
    """Whether an iteration calls autograd, or a module other than one that treats rows as it treats batches of them."""
    calls = [node for node in turn.nodes if isinstance(node, cst.Call)]
    called = (turn.context.calls.target(call) for call in calls)
    return any(_is_network(call, turn.context) or _is_told_the_turn(call, turn) for call in calls) or any(
        _is_network(node, turn.context)
        for function in called
        if function is not None
        for node in descendants_in_scope(function.body)
        if isinstance(node, cst.Call)
    )


def is_batch_of_one(argument: cst.CSTNode, context: Context) -> bool:
    """Whether a row is given an axis for the batch before it goes into a call: `x[i].unsqueeze(0)`, `x[i : i + 1]`."""
    if not isinstance(argument, cst.Arg):
        return False
    origins = context.origins(argument.value)
    return any(_adds_a_batch(node) for node in (argument.value, *origins.nodes))


def _adds_a_batch(node: cst.BaseExpression) -> bool:
    while isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value in _SHAPE_KEPT:
        node = node.func.value
    match node:
        case cst.Call(
            func=cst.Attribute(attr=cst.Name(value="unsqueeze")), args=[cst.Arg(value=cst.Integer(value="0"))]
        ):
            return True
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Name(value="None"))), *_]):
            return True
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Slice() as part), *_]):
            return picks_one(part, names_in(part))
    return False


def _is_told_the_turn(call: cst.Call, turn: Turn) -> bool:
    """Whether a module is given the number of the iteration: what it does with it no batch has."""
    is_told = any(isinstance(given.value, cst.Name) and given.value.value in turn.counters for given in call.args)
    return is_told and turn.context.kind(call.func) is Kind.MODULE


def _is_network(call: cst.Call, context: Context) -> bool:
    if isinstance(call.func, (cst.Subscript, cst.Call)):  # `self.heads[i](x[:, i])`
        return True
    if isinstance(call.func, cst.Attribute):
        if call.func.attr.value in apis.BACKWARD_METHODS:
            return True
        owner = call.func.value
        is_part = isinstance(owner, cst.Attribute) or (
            isinstance(owner, cst.Name) and owner.value not in ("self", "cls")
        )
        if is_part and context.kind(owner) is Kind.MODULE:  # `self.vae.encode(…)`
            return call.func.attr.value not in _NO_FORWARD
    if context.qualified_name(call.func) == "torch.autograd.grad":
        return True
    value = context.value(call.func)
    if value.kind is not Kind.MODULE or _STATELESS.match(value.qualified):
        return False
    return not STATELESS_LOSS.suggests((dotted(call.func) or "").rpartition(".")[2])


def is_ragged(function: cst.FunctionDef, context: Context) -> bool:
    """Whether the values of one sample decide how much the function does or gives."""
    for node in descendants_in_scope(function.body):
        match node:
            case cst.While():
                return True
            case cst.Call(func=cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name)), args=args):
                if name in RAGGED or name in HOST_METHODS or SUPPRESSION.suggests(name):
                    return True
                if RESIZING_CALL.suggests(name) or (name == "where" and len(args) == 1):
                    return True
            case cst.Slice(lower=lower, upper=upper):
                if any(bound is not None and _is_extent(bound, context) for bound in (lower, upper)):
                    return True
    return False


def _is_extent(bound: cst.BaseExpression, context: Context) -> bool:
    """Whether a part is as long as a tensor says: `height = (~mask).sum(0).max()`, `image[:, :height]`."""
    return any(
        isinstance(value, cst.Call) and isinstance(value.func, cst.Attribute) and value.func.attr.value in _EXTENTS
        for value in context.origins(bound).nodes
    )
