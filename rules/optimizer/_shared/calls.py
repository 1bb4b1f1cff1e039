"""Which calls made an optimizer, and whether torch has one fused kernel for its step that nobody asked for."""

from __future__ import annotations

import libcst as cst

from torchlint.analyses.execution.small_models import is_small
from torchlint.analyses.provenance.constants import may_pass
from torchlint.edits.expressions import with_argument
from torchlint.edits.imports import spelling
from torchlint.rule import Doubt, NodeEdit
from torchlint.semantics.context import Context
from torchlint.semantics.flow.origins import EVERYTHING
from torchlint.semantics.knowledge.conventions.functions import STATE_LOADER, TRIAL_FUNCTION
from torchlint.semantics.knowledge.conventions.texts import SPARSE_GRADIENTS
from torchlint.semantics.names.bindings import parameters
from torchlint.semantics.values.lattice import Device, Kind
from torchlint.syntax.tree import descendants

# The release since which an optimizer takes `fused=True` for parameters on a GPU. RMSprop and the others have no such
# kernel; that of Adagrad on GPUs is too young.
FUSED_SINCE = {"torch.optim.Adam": (2, 0), "torch.optim.AdamW": (2, 0), "torch.optim.SGD": (2, 3)}
# Since then fused optimizers take parameters on the CPU, too.
_ON_CPU_SINCE = (2, 4)
_EXCLUSIVE = ("foreach", "differentiable")
# What is asked of an optimizer that never steps.
_NO_STEPS = frozenset({"load_state_dict", "state_dict", "param_groups"})


def makers(node: cst.BaseExpression, context: Context) -> tuple[cst.Call, ...]:
    """The calls that may have made an object, as far as this module shows: others may have, too."""
    return tuple(made for made in context.origins(node, EVERYTHING).nodes if isinstance(made, cst.Call))


def lacks_fused(call: cst.Call, context: Context) -> bool:
    """Whether the call makes an optimizer that could be fused and leaves the implementation to torch."""
    if context.qualified_name(call.func) not in FUSED_SINCE or not call.args:
        return False
    return not any(may_pass(call, keyword, context) for keyword in ("fused", *_EXCLUSIVE))


def has_sparse_gradients(context: Context) -> bool:
    """Whether the file may make embeddings with sparse gradients, which no fused optimizer takes."""
    return SPARSE_GRADIENTS.suggests(context.program.code)


def fused(call: cst.Call, context: Context) -> NodeEdit | None:
    """The edit that makes it fused, for the oldest torch that a fix may rely on; None where that may fail."""
    target = context.settings.target_torch
    since = FUSED_SINCE.get(context.qualified_name(call.func) or "")
    if since is None or target < since or _is_bare_generator(call) or _may_hold_old_state(context):
        return None
    if target >= _ON_CPU_SINCE:
        return with_argument(call, "fused=True", context)
    torch = torch_name(call, context)
    if torch is None or not updates_a_moved_model(call, context):
        return None
    return with_argument(call, f"fused={torch}.cuda.is_available()", context)


def _is_bare_generator(call: cst.Call) -> bool:
    """Whether the only argument is a generator without brackets, behind which no other argument may stand."""
    return len(call.args) == 1 and isinstance(call.args[0].value, cst.GeneratorExp) and not call.args[0].value.lpar


def _may_hold_old_state(context: Context) -> bool:
    """Whether an optimizer takes over a saved state, and with it that of one that was not fused."""
    for call in context.tree.of(cst.Call):
        match call.func:
            case cst.Attribute(value=owner, attr=cst.Name(value="load_state_dict")):
                if context.kind(owner) is Kind.OPTIMIZER:
                    return True
            case cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name)) if STATE_LOADER.suggests(name):
                if any(context.kind(argument.value) is Kind.OPTIMIZER for argument in call.args):
                    return True
    return False


def torch_name(node: cst.CSTNode, context: Context) -> str | None:
    """The name that stands for torch at a place."""
    return spelling("torch", node, context) or None


def updates_a_moved_model(call: cst.Call, context: Context) -> bool:
    """Whether all parameters given to an optimizer are those of models that have been moved to a device before."""
    owners = _models(call, context)
    return bool(owners) and all(context.device(owner) in (Device.MAYBE, Device.ACCELERATOR) for owner in owners)


def never_steps(call: cst.Call, context: Context) -> bool:
    """Whether nothing is asked of the optimizer but its state, as where a checkpoint is loaded to look at it."""
    match context.parent(call):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]) as assignment:
            above = [context.parent(use) for use in context.uses.of(name, assignment)]
            return bool(above) and all(
                isinstance(node, cst.Attribute) and node.attr.value in _NO_STEPS for node in above
            )
    return False


def is_tried_out(call: cst.Call, context: Context) -> bool:
    """Whether the function runs on the CPU unless somebody asks, and nobody calls it."""
    function = context.function(call)
    if not isinstance(function, cst.FunctionDef):
        return False
    if function.name.value.startswith("__") or not any(map(_is_the_host, parameters(function))):
        return False
    return not context.calls.callers(function) and not context.elsewhere.callers(function)


def trial_doubts(call: cst.Call, context: Context) -> tuple[Doubt, ...]:
    """The doubt of a function that tries or times something, by its name."""
    function = context.function(call)
    is_trial = isinstance(function, cst.FunctionDef) and TRIAL_FUNCTION.suggests(function.name.value)
    return (Doubt.NAMED_RARE,) if is_trial else ()


def _is_the_host(parameter: cst.Param) -> bool:
    """`device="cpu"`."""
    default = parameter.default
    return isinstance(default, cst.SimpleString) and default.evaluated_value == "cpu"


def updates_few_tensors(call: cst.Call, context: Context) -> bool:
    """Whether all models whose parameters an optimizer is given have one or two layers."""
    return all(is_small(owner, context) for owner in _models(call, context))


def _models(call: cst.Call, context: Context) -> list[cst.BaseExpression]:
    given = call.args[0].value
    return [
        node.func.value
        for node in descendants(context.stands_for(given) or given)
        if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) and node.func.attr.value == "parameters"
    ]


def is_one_operation(call: cst.Call, context: Context) -> bool:
    """Whether the formula of an optimizer is a single operation: that of `SGD` with nothing but a learning rate."""
    return context.qualified_name(call.func) == "torch.optim.SGD" and all(
        not may_pass(call, name, context) if given is None else _is_zero(given)
        for name, given in ((name, context.argument(call, name, place)) for name, place in _MORE_OF_SGD)
    )


# What makes a step of `SGD` several operations, with its position.
_MORE_OF_SGD = (("momentum", 2), ("weight_decay", 4))


def _is_zero(node: cst.BaseExpression) -> bool:
    return isinstance(node, (cst.Integer, cst.Float)) and node.evaluated_value == 0
