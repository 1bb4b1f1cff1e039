"""Checkpoints that are loaded: by which processes, and what becomes of them."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.flow.origins import Through
from torchlint.semantics.knowledge.conventions.conditions import RANK_CONDITION, SEVERAL_PROCESSES, SINGLED_OUT
from torchlint.semantics.knowledge.conventions.packages import CHECKPOINTING_PACKAGE
from torchlint.semantics.knowledge.conventions.texts import CUDA_TEXT, OPTIMIZER_TEXT
from torchlint.semantics.knowledge.marks import SHARDED_TRAINING
from torchlint.semantics.names.bindings import final_part
from torchlint.syntax.tree import descendants

# What shows that several processes with a GPU each run the file.
_PROCESSES = frozenset(
    {
        "torch.distributed.init_process_group",
        "torch.nn.parallel.DistributedDataParallel",
        "apex.parallel.DistributedDataParallel",
    }
)


def is_loaded_by_each_process(load: cst.Call, context: Context) -> bool:
    """Whether the file sets up several processes, and each of them gets here."""
    text = context.program.code
    if SHARDED_TRAINING.is_in(text) or CHECKPOINTING_PACKAGE.suggests_any(context.names.imported):
        return False
    calls = {context.qualified_name(call.func) for call in context.tree.of(cst.Call)}
    if _is_of_the_cpu(context):
        return False
    return (
        bool(calls & _PROCESSES)
        and not _asks_for_its_rank(load, context)
        and not any(_saves_from_the_cpu(function, context) for function in context.tree.of(cst.FunctionDef))
    )


def _asks_for_its_rank(load: cst.Call, context: Context) -> bool:
    """Whether a condition or the path asks torch which of the processes this is."""
    path = load.args[0].value
    asked = (*(each.test for each in context.conditions(load)), path, *context.origins(path, Through.ELEMENTS).nodes)
    return any(
        isinstance(part, cst.Call) and (context.qualified_name(part.func) or "").startswith("torch.distributed.")
        for each in asked
        for part in descendants(each)
    )


def is_named_otherwise(load: cst.Call, context: Context) -> bool:
    """Whether words say that one process alone gets here, or that each loads a file of its own."""
    if _is_of_one_process(load, context) or _has_its_own(load, context):
        return True
    return any(
        SINGLED_OUT.suggests(context.uncommented(condition.test).lower())
        for condition in context.conditions(load, across_functions=True)
    )


def _has_its_own(load: cst.Call, context: Context) -> bool:
    """Whether each process loads a file of its own, which it has saved from its own GPU: `f"state_{rank}.pt"`."""
    path = load.args[0].value
    given = (path, *context.origins(path, Through.ELEMENTS).nodes)
    return any(RANK_CONDITION.suggests(context.uncommented(value).lower()) for value in given)


def _saves_from_the_cpu(function: cst.FunctionDef, context: Context) -> bool:
    """Whether the function saves weights that it copies to the CPU before, and nothing else."""
    calls = [node for node in descendants(function.body) if isinstance(node, cst.Call)]
    is_saving = any(context.qualified_name(call.func) == "torch.save" for call in calls)
    if not is_saving or not any(final_part(call.func) == "cpu" for call in calls):
        return False
    return not OPTIMIZER_TEXT.suggests(context.uncommented(function.body).lower())


def _is_of_one_process(node: cst.CSTNode, context: Context) -> bool:
    """Whether the branch around the node runs where the program has but one process: `if distributed: … else: …`."""
    for test, is_taken in context.conditions(node, across_functions=True):
        is_denied = isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not)
        if is_taken is is_denied and SEVERAL_PROCESSES.suggests(context.uncommented(test).lower()):
            return True
    return False


def _is_of_the_cpu(context: Context) -> bool:
    """Whether the only device that the file makes is the CPU, and nothing in it speaks of CUDA."""
    devices = [call for call in context.tree.of(cst.Call) if context.qualified_name(call.func) == "torch.device"]
    is_cpu = [
        bool(call.args)
        and isinstance(call.args[0].value, cst.SimpleString)
        and call.args[0].value.evaluated_value == "cpu"
        for call in devices
    ]
    return bool(is_cpu) and all(is_cpu) and not CUDA_TEXT.suggests(context.program.code)


def is_taken_over(load: cst.Call, context: Context) -> bool:
    """Whether what is loaded goes to `load_state_dict`, which copies it to where the parameters are."""
    if _goes_to_load_state_dict(load, context):
        return True
    match context.parent(load):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]) as statement:
            uses = context.uses.of(name, statement)
            return any(_goes_to_load_state_dict(use, context) for use in uses)
    return False


def _goes_to_load_state_dict(node: cst.BaseExpression, context: Context) -> bool:
    above = context.parent(node)
    while isinstance(above, cst.Subscript) and above.value is node:
        node, above = above, context.parent(above)
    call = context.parent(above) if isinstance(above, cst.Arg) else None
    return (
        isinstance(call, cst.Call)
        and isinstance(call.func, cst.Attribute)
        and call.func.attr.value == "load_state_dict"
        and not any(argument.keyword is not None and argument.keyword.value == "assign" for argument in call.args)
    )
