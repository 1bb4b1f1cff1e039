"""What stands beside a wrapper that copies a model to every GPU: another for the same, or no training at all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.model.grad import GradMode
from torchlint.model.names import Binder, last_part

if TYPE_CHECKING:
    from torchlint.model.context import Context

_TRAINS = frozenset({"backward", "manual_backward", "zero_grad", "train", "fit"})
_EVALUATES = frozenset({"eval", "no_grad", "inference_mode"})


def has_distributed_beside(context: Context) -> bool:
    """Whether the file makes a `DistributedDataParallel`, of whatever package, or calls a function named after it."""
    return any(
        "DistributedDataParallel" in (context.qualified_name(call.func) or "") or "DDP" in last_part(call.func)
        for call in context.tree.of(cst.Call)
    )


def only_evaluates(node: cst.CSTNode, context: Context) -> bool:
    """Whether autograd is off at the node, or nothing in the file trains while something in it evaluates."""
    if context.grad(node) is GradMode.OFF:
        return True
    calls = [call.func for call in context.tree.of(cst.Call)]
    called = {last_part(func) for func in calls}
    called |= {last_part(decorator.decorator) for decorator in context.tree.of(cst.Decorator)}
    if called.isdisjoint(_EVALUATES) or not called.isdisjoint(_TRAINS):
        return False
    return not any("optimizer" in name.lower() for name in called) and not any(
        (context.qualified_name(func) or "").startswith("torch.optim.") for func in calls
    )


def is_only_saved(call: cst.Call, context: Context) -> bool:
    """Whether nothing is asked of what the call makes but its `state_dict`."""
    match context.parent(call):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]) as assignment:
            uses = context.uses.of(name, assignment)
        case _:
            return False
    return bool(uses) and all(
        isinstance(above := context.parent(use), cst.Attribute) and above.attr.value == "state_dict" for use in uses
    )


def is_one_device(devices: cst.BaseExpression | None) -> bool:
    """Whether a list of devices is written out and holds one."""
    return (
        isinstance(devices, (cst.List, cst.Tuple))
        and len(devices.elements) == 1
        and isinstance(devices.elements[0], cst.Element)
    )


def is_one_by_default(devices: cst.BaseExpression | None, context: Context) -> bool:
    """Whether a parameter says which devices, and names one unless the caller passes others."""
    if not isinstance(devices, cst.Name):
        return False
    bindings = context.reaching(devices)
    return bool(bindings) and all(
        binding.binder is Binder.PARAMETER
        and isinstance(binding.node, cst.Param)
        and isinstance(binding.node.default, (cst.List, cst.Tuple))
        and len(binding.node.default.elements) == 1
        for binding in bindings
    )
