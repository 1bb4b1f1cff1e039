"""How much a loop goes over, how often it is run, and whether its author wanted it."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.finding import Frequency
from torchlint.model.frequency import LoopKind
from torchlint.model.loading import is_put_on_device
from torchlint.model.occasions import runs_once
from torchlint.model.reads import is_exceptional, is_host_only
from torchlint.model.rows import has_one_row, length_along, written_length
from torchlint.model.tree import descendants, descendants_in_scope
from torchlint.model.visits import LoopNode, Visit, is_surely_no_tensor, loops_around, owner_of, parts_of
from torchlint.role import Role

if TYPE_CHECKING:
    from torchlint.model.context import Context

# What a `range` counts that is no data: there are few of them, or they follow each other.
_STRUCTURE = re.compile(
    r"layer|level|lvl|stage|block|scale|kernel|order|degree|depth|iter|epoch|repeat|round|trial|fold|stack|branch|"
    r"resolution|tap|axis|axes|ndim|dims?$|shapes|rank|world|gpu|device|worker|shard|attempt|tries|chunk|group|n_?gram|objective",
    re.IGNORECASE,
)
_BEST = re.compile(r"(^|_)top_?k$", re.IGNORECASE)
_CHANNELS = re.compile(r"(^|_)(mean|std)s?$")
_CLASSES = re.compile(r"class|cls|label|categor|num_c$|n_c$|bins?$|cluster|segment", re.IGNORECASE)
# Functions that run once, or that are there to show or store things.
_RARE = re.compile(
    r"(^|_)(__)?init(_|$|ializ)|__repr__|reset_parameters|plot|draw|show|visual(?!s)|(^|_)vis(_|$)|display|save|dump|"
    r"export|^_?(download|load|read|parse|write|report|print)(_|$)|^_?process$|^prepare_data$|summary|"
    r"(^|_)verify(_|$)|(^|_)lut(_|$)|^_?log_(image|img|video|audio|sample|conditioning|figure)",
    re.IGNORECASE,
)
# Branches that are there to show things.
_SHOWN = re.compile(r"visual|plot|draw|(^|_)viz?s?(_|$)", re.IGNORECASE)
_MEMORY = re.compile(r"mem(ory)?_?eff|low_mem|sav(e|es|ing)_mem|mem(ory)?_sav", re.IGNORECASE)
# A comment that gives memory as the reason.
_FOR_MEMORY = re.compile(
    r"\bOOM\b|out[ -]of[ -]mem|\bmem(ory)?\W*(sav|reduc|limit|peak|effici|consum|footprint|usage|spike|friendly)"
    r"|\b(sav|reduc|limit|lower|less|low|avoid|prevent|minimi[sz]|effici|fit|peak)\w*"
    r"(\W+(some|the|gpu|cuda|device|peak|host|on|in|of|into|max|total|more|too|much|high))*\W+mem(ory)?\b"
    r"|\b(avoid|without|instead of|not)\w*\W+materiali[sz]",
    re.IGNORECASE,
)
# One of these is in all of that.
_OF_MEMORY = ("oom", "mem", "materiali")
# What joins samples to a batch, by its name.
_COLLATES = re.compile(r"collat(e|or|ion)(?!d)", re.IGNORECASE)
_TRANSFORM = re.compile(r"(Transforms?|Augmentations?)$")
_COMMENT = re.compile(r"#[^\n]*")
_EMPTY = re.compile(r"= *(\[\]|list\(\)|\{\}|dict\(\))")
FEW = 4
# How many calls away a dataset is looked for.
_CALLS_DEEP = 2
# As many turns are few where they are all there are.
FEW_IN_ALL = 16


def is_few(loop: LoopNode, visit: Visit, context: Context) -> bool:
    """Whether the loop goes over parts of a model, channels, or a handful of things."""
    if visit.count is not None:
        number = _literal(visit.count, context)
        words = (*visit.counters, *_words(visit.count))
        if any(_STRUCTURE.search(word) for word in words):
            return True
        return number is not None and (
            number <= FEW or (number <= FEW_IN_ALL and runs_once(owner_of(loop, context), context))
        )
    if isinstance(loop, cst.While) or not (visit.counters or visit.elements):
        return False
    if any(_STRUCTURE.search(name) for name in visit.counters):
        return True
    if any("shapes" in word for _, tensor in visit.elements for word in _words(tensor)):
        return True  # of the levels of a pyramid
    if any(map(_is_shape, (container for _, container in (*visit.elements, *visit.others)))):
        return True
    if any(_has_few_rows(tensor, context) for _, tensor in visit.elements):
        return True
    if visit.others and _goes_over_blocks(loop, visit, context):
        return True
    return any(
        0 < len(context.value(container).items) <= FEW or any(_CHANNELS.search(word) for word in _words(container))
        for _, container in visit.others
    )


def _goes_over_blocks(loop: LoopNode, visit: Visit, context: Context) -> bool:
    """Whether a list has the numbers of blocks, `x[crop * size : (crop + 1) * size]`: a turn takes many rows."""
    named = {name for name, _ in visit.others}
    return any(
        isinstance(node, cst.Slice) and isinstance(node.lower, cst.BinaryOperation) and _is_times(node.lower, named)
        for part in parts_of(loop, context)
        for node in descendants(part)
    )


def _is_times(node: cst.BinaryOperation, named: set[str]) -> bool:
    sides = (node.left, node.right)
    is_product = isinstance(node.operator, cst.Multiply)
    return is_product and any(isinstance(side, cst.Name) and side.value in named for side in sides)


def _has_few_rows(tensor: cst.BaseExpression, context: Context) -> bool:
    length = length_along(tensor, 0, context)
    return has_one_row(tensor, context) if length is None else length <= FEW


def _is_shape(node: cst.BaseExpression) -> bool:
    """`x.shape`, `x.size()[2:]`: there is a turn for each axis."""
    while isinstance(node, cst.Subscript):
        node = node.value
    match node:
        case cst.Attribute(attr=cst.Name(value="shape")):
            return True
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="size")), args=[]):
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
        case cst.Call() | cst.Subscript():
            return written_length(node, context)
    return None


def _words(node: cst.CSTNode) -> list[str]:
    """The names in an expression, those of attributes too."""
    return [part.value for part in descendants(node) if isinstance(part, cst.Name)]


def is_over_classes(visit: Visit) -> bool:
    """Whether there is a turn for each class, bin or cluster, as far as the number of turns tells."""
    match visit.count:
        case None:
            return False
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="size")), args=[cst.Arg(value=cst.Integer(value=axis))]):
            return axis != "0"
        case cst.Subscript(
            value=cst.Attribute(attr=cst.Name(value="shape")),
            slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer(value=axis)))],
        ):
            return axis != "0"
    return any(_CLASSES.search(word) for word in _words(visit.count))


def is_over_the_best(visit: Visit) -> bool:
    """Whether there is a turn for each of the best, `range(top_k)`: a few, which together take as often the memory."""
    return isinstance(visit.count, cst.Name) and _BEST.search(visit.count.value) is not None


def is_plain(loop: LoopNode, context: Context) -> bool:
    """Whether the loop is neither one over batches or epochs nor one that yields."""
    if context.frequencies.loop_kind(owner_of(loop, context)) is not LoopKind.OTHER:
        return False
    return not any(
        isinstance(node, cst.Yield) for part in parts_of(loop, context) for node in descendants_in_scope(part)
    )


def is_sure_tensor(node: cst.BaseExpression, context: Context) -> bool:
    """Whether the expression is one tensor, and not what a loader, a mapping or a model gives that may be several."""
    return not is_surely_no_tensor(node) and not context.value(node).batch and context.kinds.is_tensor(node)


def is_worth_batching(node: cst.CSTNode, tensor: cst.BaseExpression, context: Context) -> bool:
    """Whether it pays to do at once what is done here for each element: on the CPU only where it is hot."""
    if runs_rarely(node, context) or is_exceptional(node, context) or has_one_row(tensor, context):
        return False
    return may_wait(tensor, context) or context.frequency(node) >= Frequency.BATCH


def may_wait(tensor: cst.BaseExpression, context: Context) -> bool:
    """Whether reading the tensor may make the host wait: it need not live on the CPU."""
    device = context.device(tensor)
    return device.may_be_accelerator and not is_host_only(context, device) and not is_in_a_dataset(tensor, context)


def is_in_a_dataset(node: cst.CSTNode, context: Context) -> bool:
    """Whether the node stands in a dataset, sampler or collator that puts nothing on an accelerator: on the host."""
    return any(
        _prepares(above, context) and not any(is_put_on_device(part, context) for part in descendants(above.body))
        for above in context.ancestors(node)
        if isinstance(above, (cst.ClassDef, cst.FunctionDef))
    )


def is_for_samples(node: cst.CSTNode, context: Context, depth: int = 0) -> bool:
    """Whether the node stands there, or in a function that nothing else is known to call."""
    if is_in_a_dataset(node, context):
        return True
    function = context.function(node)
    if not isinstance(function, cst.FunctionDef) or depth > _CALLS_DEEP:
        return False
    here = context.calls.callers(function)
    if not all(is_for_samples(call, context, depth + 1) for call in here):
        return False
    others = context.elsewhere.callers(function)
    return bool(here or others) and all(call.prepares for call in others)


def _prepares(owner: cst.ClassDef | cst.FunctionDef, context: Context) -> bool:
    """Whether a loader calls this for its samples: a dataset, a sampler, what alters samples or joins them."""
    if _COLLATES.search(owner.name.value):
        return True
    if not isinstance(owner, cst.ClassDef):
        return False
    return context.classes.is_dataset(owner) or context.classes.is_sampler(owner) or _alters_samples(owner, context)


def _alters_samples(class_: cst.ClassDef, context: Context) -> bool:
    """Whether this is a transform of samples, as torchvision has them: called with an image and what is to be seen."""
    if any(context.code(base.value) != "object" for base in class_.bases):
        return False  # those of distributions work anywhere
    call = context.classes.method(class_, "__call__")
    if call is None:
        return False
    given = {parameter.name.value for parameter in call.params.params}
    return _TRANSFORM.search(class_.name.value) is not None or ("target" in given and bool(given & {"img", "image"}))


def runs_rarely(loop: cst.CSTNode, context: Context) -> bool:
    """Whether the loop, or whatever it is, is one of start-up, of pictures and reports."""
    if context.settings.role in (Role.SHOWING, Role.EXPORTING):
        return True
    function = context.function(loop)
    while function is not None:
        if isinstance(function, cst.FunctionDef) and _RARE.search(function.name.value):
            return True
        function = context.function(function)
    if context.frequencies.is_diagnostic(loop) or context.frequencies.is_rate_limited(loop):
        return True
    return any(
        isinstance(above, cst.If) and any(map(_SHOWN.search, _words(above.test))) for above in context.ancestors(loop)
    )


def saves_memory(loop: LoopNode, context: Context) -> bool:
    """Whether the author chose the loop for the memory that one batched operation would take, or says so beside it."""
    text = context.source.text.lower()
    if not any(word in text for word in _OF_MEMORY):
        return False
    around = (loop, *loops_around(loop, context))
    if any(_FOR_MEMORY.search(comment) for each in around for comment in _comments(each, context)):
        return True
    function = context.function(loop)
    return function is not None and any(
        isinstance(part, cst.If) and any(map(_MEMORY.search, _words(part.test))) for part in descendants(function.body)
    )


def _comments(loop: LoopNode, context: Context) -> list[str]:
    """The comments in the loop, right above it and behind its first line, and above the empty list that it fills."""
    owner = owner_of(loop, context)
    line = context.tree.line(owner)
    whole = line if isinstance(line, cst.SimpleStatementLine) else owner
    comments = _COMMENT.findall(context.code(whole))
    block = context.parent(whole)
    if isinstance(block, (cst.IndentedBlock, cst.Module)) and whole is not block.body[0]:
        above = next(before for before, line in pairwise(block.body) if line is whole)
        if isinstance(above, cst.SimpleStatementLine) and _EMPTY.search(context.code(above)):
            comments += _COMMENT.findall(context.code(above))
    return comments
