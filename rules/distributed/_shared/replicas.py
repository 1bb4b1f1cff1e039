"""What stands beside a wrapper that copies a model to every GPU: another for the same, or no training at all."""

from __future__ import annotations

import re

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.execution.grad_mode import GradMode
from torchlint.semantics.flow.guards import Role
from torchlint.semantics.knowledge.conventions.functions import DISTRIBUTED_CALL, OPTIMIZER_CALL, TRAINING_CALL
from torchlint.semantics.knowledge.conventions.packages import BUFFERING_PACKAGE
from torchlint.semantics.knowledge.conventions.values import TRAINER_OBJECT
from torchlint.semantics.names.spelling import final_part
from torchlint.semantics.values.lattice import Device
from torchlint.syntax.tree import descendants

_EVALUATES = frozenset({"eval", "no_grad", "inference_mode"})
# What may be asked of a wrapper that never runs.
_NO_CALLS = frozenset({"state_dict", "load_state_dict", "module"})


def has_distributed_beside(context: Context) -> bool:
    """Whether the file makes a `DistributedDataParallel`, of whatever package, or calls a function named after it."""
    return any(
        "DistributedDataParallel" in (context.qualified_name(call.func) or "")
        or DISTRIBUTED_CALL.suggests(final_part(call.func))
        for call in context.tree.of(cst.Call)
    )


def only_evaluates(node: cst.CSTNode, context: Context) -> bool:
    """Whether autograd is off at the node, or nothing in the file trains while something in it evaluates."""
    if context.grad(node) is GradMode.OFF:
        return True
    calls = [call.func for call in context.tree.of(cst.Call)]
    called = {final_part(func) for func in calls}
    called |= {final_part(decorator.decorator) for decorator in context.tree.of(cst.Decorator)}
    if called.isdisjoint(_EVALUATES) or TRAINING_CALL.suggests_any(called):
        return False
    return not any(OPTIMIZER_CALL.suggests(name) for name in called) and not any(
        (context.qualified_name(func) or "").startswith("torch.optim.") for func in calls
    )


def is_only_saved(call: cst.Call, context: Context) -> bool:
    """Whether nothing is asked of what the call makes but its `state_dict`, to save or to load it, and the module."""
    match context.parent(call):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]) as assignment:
            uses = context.uses.of(name, assignment)
        case _:
            return False
    return bool(uses) and all(
        isinstance(above := context.parent(use), cst.Attribute) and above.attr.value in _NO_CALLS for use in uses
    )


def is_one_device(devices: cst.BaseExpression | None) -> bool:
    """Whether a list of devices is literal and holds one."""
    return (
        isinstance(devices, (cst.List, cst.Tuple))
        and len(devices.elements) == 1
        and isinstance(devices.elements[0], cst.Element)
    )


def is_one_by_default(devices: cst.BaseExpression | None, context: Context) -> bool:
    """Whether a parameter says which devices, and names one unless the caller passes others."""
    parameter = context.parameter(devices) if devices is not None else None
    default = parameter.default if parameter is not None else None
    return isinstance(default, (cst.List, cst.Tuple)) and len(default.elements) == 1


def is_for_the_host(call: cst.Call, context: Context) -> bool:
    """Whether a `DistributedDataParallel` is made for a model on the CPU.

    It gets no devices then, or None, where another one does in the other branch of an `if`.
    """
    devices = context.argument(call, "device_ids", 1)
    if devices is not None:
        return isinstance(devices, cst.Name) and devices.value == "None"
    model = context.argument(call, "module", 0)
    if model is not None and context.device(model) is Device.CPU:
        return True
    for guard in context.guards(call):
        if isinstance(guard.node, cst.If):
            other = guard.node.orelse if guard.role is Role.TAKEN else guard.node.body
            if (
                not _moves(guard.part)
                and other is not None
                and any(_has_devices(made, context) for made in _calls(other))
            ):
                return True
    return False


def keeps_gradients_elsewhere(context: Context) -> bool:
    """Whether gradients are not what `.grad` holds, or an optimizer detaches them in place, which no view allows.

    Those of `dist_autograd`, of a trainer that empties its own, of DeepSpeed, FastReID and Opacus, and of Apex's
    `FP16_Optimizer`.
    """
    if BUFFERING_PACKAGE.suggests_any(context.names.imported):
        return True
    return any(
        "FP16_Optimizer" in (final_part(call.func), (context.qualified_name(call.func) or "").rpartition(".")[2])
        or (context.qualified_name(call.func) or "").startswith(("torch.distributed.autograd.", "deepspeed.initialize"))
        or (
            isinstance(call.func, cst.Attribute)
            and call.func.attr.value == "zero_grad"
            and TRAINER_OBJECT.suggests(final_part(call.func.value))
        )
        for call in context.tree.of(cst.Call)
    )


def has_few_gradients(call: cst.Call, context: Context) -> bool:
    """Whether the model that is wrapped is frozen before, or runs only where autograd is off and nobody trains it."""
    model = context.argument(call, "module", 0)
    text = context.program.code
    if isinstance(model, cst.Name):
        switched = set(re.findall(rf"(?<![\w.]){model.value}\.requires_grad_\((\w*)\)", text))
        if switched == {"False"}:  # a GAN switches them on again
            return True
    match context.parent(call):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]) as assignment:
            uses = context.uses.of(name, assignment)
        case _:
            return False
    if any(f"{name}.{asked}(" in text for asked in ("parameters", "named_parameters", "train")):
        return False
    above = [(use, context.parent(use)) for use in uses]
    runs = [parent for use, parent in above if isinstance(parent, cst.Call) and parent.func is use]
    return bool(runs) and all(context.grad(run) is GradMode.OFF for run in runs)


def is_for_old_torch(call: cst.Call, context: Context) -> bool:
    """Whether the call stands in the branch for releases before the one that is asked for."""
    return any(
        not is_taken and _asks_for_the_release(test, context)
        for test, is_taken in context.conditions(call, across_functions=True)
    )


def _asks_for_the_release(test: cst.BaseExpression, context: Context) -> bool:
    return any(
        isinstance(part, cst.Attribute) and context.qualified_name(part) == "torch.__version__"
        for part in descendants(test)
    )


def takes_one_step(call: cst.Call, context: Context) -> bool:
    """Whether the function that makes the wrapper goes backward itself, and in no loop."""
    function = context.function(call)
    if not isinstance(function, cst.FunctionDef):
        return False
    steps = [made for made in _calls(function.body) if final_part(made.func) == "backward"]
    return bool(steps) and all(context.loop(step) is None for step in steps)


def _calls(node: cst.CSTNode) -> list[cst.Call]:
    return [inner for inner in descendants(node) if isinstance(inner, cst.Call)]


def _has_devices(call: cst.Call, context: Context) -> bool:
    name = context.qualified_name(call.func) or ""
    return name.endswith("DistributedDataParallel") and any(
        argument.keyword is not None and argument.keyword.value == "device_ids" for argument in call.args
    )


def _moves(block: cst.CSTNode) -> bool:
    return any(isinstance(call.func, cst.Attribute) and call.func.attr.value == "cuda" for call in _calls(block))
