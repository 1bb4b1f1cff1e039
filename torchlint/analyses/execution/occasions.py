"""Code that runs once and is done: what a script does along the way, what a file tries out, what is made and kept."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Frequency
from torchlint.role import Role
from torchlint.semantics.context import Context
from torchlint.semantics.execution.first_time import is_first_of_its_kind
from torchlint.semantics.execution.frequency import LoopKind
from torchlint.semantics.execution.guards import kept, missing
from torchlint.semantics.flow.query import query
from torchlint.semantics.knowledge.conventions.functions import COUNTING_FUNCTION, MADE_UP_FUNCTION
from torchlint.semantics.names.bindings import last_part
from torchlint.syntax.tree import Comprehension, Loop, descendants, descendants_in_scope

_DEFINITIONS = (cst.FunctionDef, cst.Lambda, cst.ClassDef)


def runs_once(node: cst.CSTNode, context: Context) -> bool:
    """Whether this runs once: at module level outside of loops, or in a function called once from there."""
    seen: set[cst.CSTNode] = set()
    while True:
        if context.enclosing(node, *Loop, *Comprehension) is not None:
            return False
        function = context.enclosing(node, *_DEFINITIONS)
        if function is None:
            return True
        if not isinstance(function, cst.FunctionDef) or function in seen:
            return False
        seen.add(function)
        uses = context.uses.of(function.name.value, function)
        if len(uses) != 1 or context.parent(uses[0]) not in context.calls.callers(function):
            return False
        if context.elsewhere.callers(function):
            return False
        node = uses[0]


@query(bottom=False)
def is_set_up(node: cst.CSTNode, context: Context) -> bool:
    """Whether this runs as a module is made and at no other time: in `__init__`, or in a method that it alone calls."""
    function = context.function(node)
    class_ = context.classes.owner(function) if isinstance(function, cst.FunctionDef) else None
    if class_ is None or not isinstance(function, cst.FunctionDef):
        return False
    callers = context.calls.callers(function)
    if function.name.value == "__init__":
        # Some make a module at each step.
        is_made_often = any(context.frequency(call) >= Frequency.EPOCH for call in callers)
        return not is_made_often and (_is_a_module(class_, context) or _makes_parameters(function, context))
    is_called_by_such = bool(callers) and all(is_set_up(call, context) for call in callers)
    return is_called_by_such and not context.elsewhere.callers(function)


def _is_a_module(class_: cst.ClassDef, context: Context) -> bool:
    if context.classes.is_module(class_):
        return True
    for base in context.classes.lineage(class_):
        if isinstance(base, str):
            context.elsewhere.described(base)  # it matters
    return False


def _makes_parameters(init: cst.FunctionDef, context: Context) -> bool:
    """Whether something is set up that learns: parameters, or an optimizer for some."""
    named = [
        context.qualified_name(node.func) or ""
        for node in descendants_in_scope(init.body)
        if isinstance(node, cst.Call)
    ]
    return any(name == "torch.nn.Parameter" or name.startswith("torch.optim.") for name in named)


def is_guarded(node: cst.CSTNode, context: Context) -> bool:
    """Whether the node stands in `if __name__ == "__main__"`."""
    return any("__name__" in context.code(above.test) for above in context.around(node, cst.If))


def is_trial(node: cst.CSTNode, context: Context) -> bool:
    """Whether the main block of a file that only defines modules tries them out here, or in a function for that."""
    is_here = is_guarded(node, context) and runs_once(node, context)
    return (is_here or _is_called_to_try(node, context)) and _only_defines_modules(context)


def _is_called_to_try(node: cst.CSTNode, context: Context) -> bool:
    """Whether the main block alone calls the function around the node, which claims something of what comes out."""
    function = context.function(node)
    if not isinstance(function, cst.FunctionDef):
        return False
    callers = context.calls.callers(function)
    if not callers or not all(is_guarded(call, context) for call in callers):
        return False
    is_for_that = any(isinstance(line, cst.Assert) for line in descendants_in_scope(function.body))
    return is_for_that and not context.elsewhere.callers(function)


def _only_defines_modules(context: Context) -> bool:
    if not any(map(context.classes.is_module, context.tree.of(cst.ClassDef))):
        return False
    loops: list[cst.For | cst.While] = [*context.tree.of(cst.For), *context.tree.of(cst.While)]
    if any(_is_of_batches(loop, context) for loop in loops):
        return False
    return not any(_is_for_training(call, context) for call in context.tree.of(cst.Call))


def _is_for_training(call: cst.Call, context: Context) -> bool:
    """Whether the call makes a part of a training; an optimizer for tensors of the main block's own is none."""
    name = context.qualified_name(call.func) or ""
    if name.startswith("torch.optim.") and is_guarded(call, context) and call.args:
        return not isinstance(call.args[0].value, (cst.List, cst.Tuple)) or any(
            not isinstance(element.value, cst.Name) for element in call.args[0].value.elements
        )
    return name.startswith(("torch.utils.data.", "torch.optim."))


def _is_of_batches(loop: cst.For | cst.While, context: Context) -> bool:
    """Whether the loop trains, or works with what a loader gives; one that samples calls a model as well."""
    if any(isinstance(node, cst.Yield) for node in descendants_in_scope(loop.body)):
        return False  # it hands the batches on
    if isinstance(loop, cst.While) and is_guarded(loop, context):
        return False  # what it goes on with are tensors of the main block's own, as there is no loader for others
    if context.frequencies.steps(loop.body) or context.frequencies.loop_kind(loop) is LoopKind.EPOCH:
        return True
    return isinstance(loop, cst.For) and context.kinds.is_loader_like(loop.iter)


def is_export(context: Context) -> bool:
    """Whether the file is there to export a model, by its name: `export.py`, `model2onnx.py`."""
    return context.settings.role is Role.EXPORTING


def is_preparation(node: cst.CSTNode, context: Context) -> bool:
    """Whether the node is not part of what a program is there for: it tries out, exports, or makes first weights."""
    if is_export(context) or is_trial(node, context):
        return True
    if context.tree.enclosing_class(node) is None and context[_GradientChecks].are_made:
        return True
    function = context.function(node)
    return isinstance(function, cst.FunctionDef) and (
        function.name.value in ("_init_weights", "reset_parameters") or _stands_for_an_operator(function, context)
    )


def is_named_preparation(node: cst.CSTNode, context: Context) -> bool:
    """Whether the function is there for made up data or to count operations, by its name."""
    function = context.function(node)
    return isinstance(function, cst.FunctionDef) and any(
        word.suggests(function.name.value) for word in (MADE_UP_FUNCTION, COUNTING_FUNCTION)
    )


class _GradientChecks:
    """Whether the file calls `torch.autograd.gradcheck`: it runs once, on small tensors."""

    def __init__(self, context: Context) -> None:
        checks = ("torch.autograd.gradcheck", "torch.autograd.gradgradcheck")
        self.are_made = any(context.qualified_name(call.func) in checks for call in context.tree.of(cst.Call))


def _stands_for_an_operator(function: cst.FunctionDef, context: Context) -> bool:
    """Whether this is the `forward` of what becomes an operator in an exported graph, and draws what it gives."""
    class_ = context.classes.owner(function)
    if class_ is None or function.name.value != "forward" or context.classes.method(class_, "symbolic") is None:
        return False
    return any(
        isinstance(node, cst.Call)
        and (context.qualified_name(node.func) or "").startswith(("torch.rand", "random.", "numpy.random."))
        for node in descendants_in_scope(function.body)
    )


def is_made_once(value: cst.CSTNode, context: Context) -> bool:
    """Whether the value is kept as an attribute, by a branch that asks whether it is there already."""
    name = _kept_as(value, context)
    for guard in context.guards(value):
        if isinstance(guard.node, cst.If) and guard.part is guard.node.body:
            is_first = is_first_of_its_kind(guard.node, context.names)
            absent = missing(guard.node.test)
            if is_first or (name is not None and absent is not None and absent in (name, *_all_kept(guard.node.body))):
                return True
    return False


def _all_kept(body: cst.CSTNode) -> Iterator[str]:
    """The attributes that a block sets."""
    for target in descendants(body):
        if isinstance(target, cst.AssignTarget) and (name := kept(target)) is not None:
            yield name


def _kept_as(value: cst.CSTNode, context: Context) -> str | None:
    """`self.x` of `self.x = value` and of `self.register_buffer("x", value)`."""
    match context.parent(value):
        case cst.Assign(targets=[target]):
            return kept(target)
        case cst.Arg() as argument:
            call = context.parent(argument)
            if isinstance(call, cst.Call) and len(call.args) > 1 and call.args[1] is argument:
                return kept(call)
    return None


def is_made_to_look(value: cst.CSTNode, context: Context) -> bool:
    """Whether the value is an input that a model is tried on: for its graph to be exported, for a size to be kept."""
    function = context.function(value)
    if isinstance(function, cst.FunctionDef) and any(
        context.qualified_name(item.decorator) == "functools.cached_property" for item in function.decorators
    ):
        return True
    match context.parent(value):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]) as statement:
            uses = context.uses.of(name, statement)
            return bool(uses) and all(_is_exported(use, context) for use in uses)
        case cst.Arg() | cst.Lambda() as above:
            return _is_exported(above, context)
    return False


def _is_exported(node: cst.CSTNode, context: Context) -> bool:
    """Whether the node goes into `torch.onnx.export`, or what counts operations, as it is or in a tuple."""
    above = context.parent(node)
    while isinstance(above, (cst.Arg, cst.Tuple, cst.Element)):
        above = context.parent(above)
    if not isinstance(above, cst.Call):
        return False
    name = context.qualified_name(above.func) or ""
    is_counting = COUNTING_FUNCTION.suggests(last_part(above.func))
    return bool(is_counting) or name.startswith(("torch.onnx.", "torch.jit.trace"))
