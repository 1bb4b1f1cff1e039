"""What a loader gives and nobody moves, while what comes with it is moved to the device: it stays on the CPU."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.model.names import Binder
from torchlint.model.tree import descendants

if TYPE_CHECKING:
    from torchlint.model.context import Context
    from torchlint.model.names import Binding

_PAIRS = ("zip", "enumerate", "reversed", "list", "len", "range", "print", "str", "int", "float")


def stays_on_host(node: cst.BaseExpression, context: Context) -> bool:
    """Whether this is `ids`, or an element of it, where `for images, ids in loader` moves the images alone."""
    match node:
        case cst.Subscript(value=owner):
            return stays_on_host(owner, context)
        case cst.Name():
            bindings = context.reaching(node)
            return bool(bindings) and all(_is_left(binding, context) for binding in bindings)
    return False


def _is_left(binding: Binding, context: Context) -> bool:
    loop = binding.node
    if binding.binder is not Binder.LOOP or not isinstance(loop, cst.For):
        return False
    paired = _paired(binding)
    if paired is not None:
        return isinstance(paired, cst.Name) and stays_on_host(paired, context)
    if not isinstance(loop.target, (cst.Tuple, cst.List)):
        return False
    siblings = {part.value for part in descendants(loop.target) if isinstance(part, cst.Name)} - {binding.name}
    is_moved = any(
        isinstance(call, cst.Call) and _moved(call) in siblings and isinstance(context.parent(call), cst.Assign)
        for call in descendants(loop.body)
    )
    return is_moved and not any(_may_move(use, context) for use in _named(binding.name, loop))


def _paired(binding: Binding) -> cst.BaseExpression | None:
    """The `ids` of `for id, score in zip(ids, scores)`."""
    match binding.value:
        case cst.Call(func=cst.Name(value="zip"), args=args) if binding.path and binding.path[0] < len(args):
            return args[binding.path[0]].value
        case cst.Name() as name if not binding.path:
            return name
    return None


def _moved(call: cst.Call) -> str:
    match call.func:
        case cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value="to" | "cuda")):
            return name
    return ""


def _named(name: str, loop: cst.For) -> list[cst.Name]:
    return [node for node in descendants(loop.body) if isinstance(node, cst.Name) and node.value == name]


def _may_move(use: cst.Name, context: Context) -> bool:
    """Whether the name is bound again, given to something that may move it, or moved itself."""
    for above in context.ancestors(use):
        match above:
            case cst.Attribute() if above.attr is use:
                return False
            case cst.Attribute(attr=cst.Name(value=name)) if isinstance(context.parent(above), cst.Call):
                return name in ("to", "cuda")
            case cst.AssignTarget():
                return True
            case cst.Arg():
                call = context.parent(above)
                if isinstance(call, cst.Call) and context.qualified_name(call.func) not in _PAIRS:
                    return True
            case cst.BaseSmallStatement() | cst.BaseCompoundStatement():
                return False
    return False
