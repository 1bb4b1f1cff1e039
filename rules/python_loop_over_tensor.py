"""A Python loop over the elements of a tensor: each turn launches kernels, or waits, for one element."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.rule import Flag, Node, Rule

if TYPE_CHECKING:
    from torchlint.model.context import Context
    from torchlint.model.elements import ElementLoop, Step, Turn

RULE = Rule(
    name="python-loop-over-tensor",
    code="TL901",
    group="vectorise",
    summary="A Python loop over the elements of a tensor launches kernels, or waits for the device, for each of them.",
    since="0.1.0",
)


@RULE.on(Node("For", (b"for",)), Node("CompFor", (b"for",)), Node("While", (b"while",)))
def check(node: cst.For | cst.CompFor | cst.While, context: Context) -> Iterator[Flag]:
    """Flag the outermost loop that works element by element though its turns don't depend on each other."""
    found = _worth_vectorising(node, context)
    if found is None or any(_worth_vectorising(outer, context) for outer in _loops_around(node, context)):
        return
    yield Flag(node, _message(found, context))


def _loops_around(node: cst.CSTNode, context: Context) -> Iterator[Turn]:
    from torchlint.model.tree import Comprehension

    child = node
    for above in context.ancestors(node):
        if isinstance(above, (cst.FunctionDef, cst.Lambda, cst.ClassDef)):
            return
        if (isinstance(above, (cst.For, cst.While)) and child is above.body) or isinstance(above, cst.CompFor):
            yield above
        elif isinstance(above, Comprehension) and child is not above.for_in:
            yield above.for_in
        child = above


def _worth_vectorising(node: Turn, context: Context) -> tuple[ElementLoop, Step] | None:
    """The loop with the step that counts most, if one batched operation could take its place."""
    from torchlint.model.carried import Carried
    from torchlint.model.elements import Work, element_loop

    if _is_few(node, context) or _runs_rarely(node, context):
        return None
    found = element_loop(node, context)
    if found is None or found.runs or _is_training_or_yielding(node, context):
        return None
    batched = found.carried is Carried.NOTHING and not found.listed and not isinstance(node, cst.While)
    for step in found.steps:
        if step.work is Work.READ and step.direct and found.carried < Carried.RESULTS and found.visit.over_tensors:
            if step.device.may_be_accelerator:
                return found, step
    for step in found.steps:
        if step.work is not Work.READ and batched and (step.work is Work.MASK or not found.ragged or _is_over_classes(found, context)):
            return found, step
    return None


_STRUCTURE = re.compile(
    r"layer|level|stage|block|scale|kernel|order|degree|depth|iter|epoch|repeat|round|trial|fold|stack|branch|"
    r"resolution|tap|axis|axes|ndim|dims?$|rank|world|gpu|device|worker|shard|attempt|tries|chunk|group",
    re.IGNORECASE,
)
_CLASSES = re.compile(r"class|cls|label|categor|num_c$|n_c$|bins?$|cluster|segment", re.IGNORECASE)


def _is_few(node: Turn, context: Context) -> bool:
    """Whether the loop goes over parts of a model, or over a handful."""
    if isinstance(node, cst.While):
        return False
    match node.iter:
        case cst.Call(func=cst.Name(value="range"), args=args):
            numbers = [_literal(argument.value, context) for argument in args]
            if numbers and numbers[-1] is not None and len(numbers) < 3 and numbers[-1] <= 4:
                return True
            words = _words(node.target) + [word for argument in args for word in _words(argument.value)]
            return any(_STRUCTURE.search(word) for word in words)
    return any(re.search(r"mean|std", word) for word in _words(node.iter)) and "zip" in _words(node.iter)


def _literal(node: cst.BaseExpression, context: Context) -> int | None:
    match node:
        case cst.Integer(value=text):
            return int(text.replace("_", ""), 0)
        case cst.Name():
            bindings = context.reaching(node)
            if len(bindings) == 1 and isinstance(bindings[0].value, cst.Integer) and not bindings[0].path:
                return _literal(bindings[0].value, context)
        case cst.Call(func=cst.Name(value="min"), args=args):
            return min((n for n in (_literal(argument.value, context) for argument in args) if n is not None), default=None)
    return None


def _words(node: cst.CSTNode) -> list[str]:
    from torchlint.model.tree import descendants

    return [part.value for part in descendants(node) if isinstance(part, cst.Name)]


def _runs_rarely(node: Turn, context: Context) -> bool:
    function = context.function(node)
    while isinstance(function, cst.FunctionDef):
        if _SETUP.search(function.name.value):
            return True
        function = context.function(function)
    return context.frequencies.is_diagnostic(node) or context.frequencies.is_rate_limited(node)


_SETUP = re.compile(r"^__init__$|^__repr__$|reset_parameters|init_weight|^_?init|plot|draw|show|visuali|_vis$|^vis_|display|save|dump|export")


def _is_training_or_yielding(node: Turn, context: Context) -> bool:
    from torchlint.model.elements import parts_of
    from torchlint.model.frequency import LoopKind
    from torchlint.model.tree import descendants_in_scope

    if context.frequencies.loop_kind(node if not isinstance(node, cst.CompFor) else _owner(node, context)) is not LoopKind.OTHER:
        return True
    return any(
        isinstance(inner, cst.Yield) for part in parts_of(node, context) for inner in descendants_in_scope(part)
    )


def _owner(node: cst.CSTNode, context: Context) -> cst.CSTNode:
    above = context.parent(node)
    while isinstance(above, cst.CompFor):
        above = context.parent(above)
    assert above is not None
    return above


def _is_over_classes(found: ElementLoop, context: Context) -> bool:
    count = found.visit.count
    if count is None:
        return False
    match count:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="size")), args=[cst.Arg(value=cst.Integer(value=axis))]):
            return axis != "0"
        case cst.Subscript(value=cst.Attribute(attr=cst.Name(value="shape"))):
            return "0" not in context.code(count).rpartition("[")[2]
    return any(_CLASSES.search(word) for word in _words(count))


def _message(found: tuple[ElementLoop, Step], context: Context) -> str:
    from torchlint.model.elements import Work

    loop, step = found
    tensor = context.code(step.tensor).strip()
    if "\n" in tensor or len(tensor) > 40:
        tensor = "a tensor"
    else:
        tensor = f"`{tensor}`"
    match step.work:
        case Work.READ:
            return f"each turn reads an element of {tensor} on the host, which waits for the device; read it once with `tolist()` before the loop, or compute on the whole tensor"
        case Work.MASK:
            return f"each turn compares all of {tensor} with one number; one batched operation needs a single pass"
        case Work.GATHER:
            return f"each turn takes one element of {tensor} as an index; index with the whole tensor at once"
    return f"each turn launches kernels for one element of {tensor}; one batched operation would do"
