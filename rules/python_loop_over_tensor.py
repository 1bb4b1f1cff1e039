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
    """Flag the outermost loop that works element by element though its turns don't need each other."""
    step = _avoidable(node, context)
    if step is None or any(_avoidable(outer, context) for outer in _loops_around(node, context)):
        return
    yield Flag(node, _message(step, context))


def _loops_around(node: cst.CSTNode, context: Context) -> Iterator[Turn]:
    from torchlint.model.tree import Comprehension

    child = node
    for above in context.ancestors(node):
        if isinstance(above, (cst.FunctionDef, cst.Lambda, cst.ClassDef)):
            return
        if isinstance(above, cst.CompFor) or (isinstance(above, (cst.For, cst.While)) and child is above.body):
            yield above
        elif isinstance(above, Comprehension) and child is not above.for_in:
            yield above.for_in
        child = above


def _avoidable(node: Turn, context: Context) -> Step | None:
    """The step of a turn that one operation on the whole tensor would do for all turns."""
    from torchlint.model.carried import Carried
    from torchlint.model.elements import element_loop

    if _is_few(node, context) or _runs_rarely(node, context):
        return None
    found = element_loop(node, context)
    if found is None or found.runs or not _is_plain_loop(node, context) or _saves_memory(node, context):
        return None
    if found.carried < Carried.RESULTS and found.visit.is_over_tensors:
        read = next((step for step in found.steps if _is_one_of_many_reads(step, context)), None)
        if read is not None:
            return read
    if found.carried is Carried.NOTHING and not found.mixed:
        return next((step for step in found.steps if _is_batchable(step, found, context)), None)
    return None


def _is_one_of_many_reads(step: Step, context: Context) -> bool:
    """Whether the host waits for one element here, where it could have had them all at once."""
    from torchlint.model.elements import Work
    from torchlint.model.reads import is_host_only

    return (
        step.work is Work.READ
        and step.direct
        and step.device.may_be_accelerator
        and not is_host_only(context, step.device)
        and not context.frequencies.is_rate_limited(step.node)
    )


def _is_batchable(step: Step, loop: ElementLoop, context: Context) -> bool:
    from torchlint.finding import Frequency
    from torchlint.model.elements import Work

    if step.work is Work.READ or isinstance(loop.node, cst.While):
        return False
    if not _is_over_classes(loop, context) and (loop.opaque or (loop.ragged and step.work is not Work.MASK)):
        return False
    return step.device.may_be_accelerator or context.frequency(loop.node) >= Frequency.BATCH


# What a `range` counts that is no data: there are few of them, or they follow each other.
_STRUCTURE = re.compile(
    r"layer|level|stage|block|scale|kernel|order|degree|depth|iter|epoch|repeat|round|trial|fold|stack|branch|"
    r"resolution|tap|axis|axes|ndim|dims?$|rank|world|gpu|device|worker|shard|attempt|tries|chunk|group|shapes|lvl",
    re.IGNORECASE,
)
_CLASSES = re.compile(r"class|cls|label|categor|num_c$|n_c$|bins?$|cluster|segment", re.IGNORECASE)
# Functions that run once, or whose work is to show or store things.
_RARE = re.compile(
    r"(^|_)(__)?init(_|$|ializ)|__repr__|reset_parameters|plot|draw|show|visual(?!s)|(^|_)vis(_|$)|display|save|dump|export|"
    r"^_?(download|load|read|parse|write|report|print)(_|$)|^_?process$|^prepare_data$|summary",
    re.IGNORECASE,
)
_FEW = 4


def _is_few(node: Turn, context: Context) -> bool:
    """Whether the loop goes over parts of a model, channels, or a handful of things."""
    from torchlint.model.visits import visit

    if isinstance(node, cst.While):
        return False
    visited = visit(node, context)
    if visited.count is not None:
        number = _literal(visited.count, context)
        if number is not None and number <= _FEW:
            return True
        return any(_STRUCTURE.search(word) for word in (*_words(node.target), *_words(visited.count)))
    if any(_STRUCTURE.search(name) for name in visited.counters):
        return True
    if any("shapes" in word for _, tensor in visited.elements for word in _words(tensor)):
        return True  # of the levels of a pyramid
    for _, container in visited.others:
        if 0 < len(context.value(container).items) <= _FEW or re.search(
            r"(^|_)(mean|std)s?$", " ".join(_words(container))
        ):
            return True
    return False


def _literal(node: cst.BaseExpression, context: Context) -> int | None:
    match node:
        case cst.Integer(value=text):
            return int(text.replace("_", ""), 0)
        case cst.Name():
            bindings = context.reaching(node)
            if len(bindings) == 1 and isinstance(bindings[0].value, cst.Integer) and not bindings[0].path:
                return _literal(bindings[0].value, context)
        case cst.Call(func=cst.Name(value="min"), args=args):
            numbers = (_literal(argument.value, context) for argument in args)
            return min((number for number in numbers if number is not None), default=None)
    return None


def _words(node: cst.CSTNode) -> list[str]:
    from torchlint.model.tree import descendants

    return [part.value for part in descendants(node) if isinstance(part, cst.Name)]


_SHOWING = re.compile(r"visuali[sz]|plot|debug|export|convert", re.IGNORECASE)


def _runs_rarely(node: Turn, context: Context) -> bool:
    if _SHOWING.search(context.source.path.rpartition("/")[2]):
        return True
    function = context.function(node)
    while function is not None:
        if isinstance(function, cst.FunctionDef) and _RARE.search(function.name.value):
            return True
        function = context.function(function)
    return context.frequencies.is_diagnostic(node) or context.frequencies.is_rate_limited(node)


def _saves_memory(node: Turn, context: Context) -> bool:
    """Whether the author chose the loop for the memory that one batched operation would take."""
    return any(
        isinstance(above, cst.If) and any("memory" in word for word in _words(above.test))
        for above in context.ancestors(node)
    )


def _is_plain_loop(node: Turn, context: Context) -> bool:
    """Whether the loop is neither one over batches or epochs nor a generator's."""
    from torchlint.model.frequency import LoopKind
    from torchlint.model.tree import descendants_in_scope
    from torchlint.model.visits import owner_of, parts_of

    if context.frequencies.loop_kind(owner_of(node, context)) is not LoopKind.OTHER:
        return False
    return not any(
        isinstance(inner, cst.Yield) for part in parts_of(node, context) for inner in descendants_in_scope(part)
    )


def _is_over_classes(loop: ElementLoop, context: Context) -> bool:
    match loop.visit.count:
        case None:
            return False
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="size")), args=[cst.Arg(value=cst.Integer(value=axis))]):
            return axis != "0"
        case cst.Subscript(value=cst.Attribute(attr=cst.Name(value="shape"))) as length:
            return "0" not in context.code(length).rpartition("[")[2]
        case count:
            return any(_CLASSES.search(word) for word in _words(count))


def _message(step: Step, context: Context) -> str:
    from torchlint.model.elements import Work

    code = context.code(step.tensor).strip()
    tensor = f"`{code}`" if "\n" not in code and len(code) <= _LONGEST else "a tensor"
    match step.work:
        case Work.READ:
            return (
                f"the host waits for one element of {tensor} at each turn; read all of them once before the loop, "
                "or compute on the whole tensor"
            )
        case Work.MASK:
            return f"each turn goes over all of {tensor} to compare it with one number; one batched operation goes once"
        case Work.GATHER:
            return f"each turn takes a part by one element of {tensor}; index with the whole tensor at once"
    return f"each turn launches kernels for one element of {tensor}; one batched operation would do for all"


_LONGEST = 40
