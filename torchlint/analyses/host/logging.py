"""What is turned into text: the parts of format strings, the arguments of calls that print or log."""

from __future__ import annotations

import re
from collections.abc import Iterator

import libcst as cst

from torchlint.analyses.host.reads import tests_a_tensor
from torchlint.semantics.context import Context
from torchlint.semantics.knowledge.apis import SUMMARIES
from torchlint.semantics.knowledge.conventions.conditions import EPISODE_END, NOTHING_THERE, OVERFLOW_CONDITION
from torchlint.semantics.knowledge.conventions.functions import LOG_SHOWER, LOG_WRITER, TOKENISING_CALL
from torchlint.semantics.knowledge.conventions.values import LOG_OWNER, TEXT_NAME, TRACKER
from torchlint.semantics.names.bindings import dotted, final_part
from torchlint.semantics.names.loop_headers import iterables
from torchlint.semantics.values.lattice import Kind
from torchlint.syntax.tree import descendants

# What may be called on the way to a text without changing anything.
_LOOKS = frozenset(
    "item detach cpu mean sum max min norm format join size dim numel tolist time perf_counter get_last_lr strftime "
    "memory_allocated max_memory_allocated memory_reserved max_memory_reserved".split()
)
_BUILTINS = frozenset("len str repr format round int float bool abs min max sum type".split())
_NUMBER_FORMAT = re.compile(r"%[-+ 0]*\d*(\.\d+)?[defg]|\{\w*:[^}]*[defg%]\}")


def formatted(node: cst.CSTNode, context: Context) -> Iterator[cst.BaseExpression]:
    """The expressions that the node turns into text, or hands to something that does."""
    match node:
        case cst.FormattedStringExpression(expression=expression):
            yield expression
        case cst.BinaryOperation(left=left, operator=cst.Modulo(), right=right):
            if _is_text(left):
                yield from (part.value for part in right.elements) if isinstance(right, cst.Tuple) else (right,)
        case cst.Call() if _writes_at_once(node, context):
            for argument in node.args:
                if isinstance(argument.value, cst.Dict):
                    yield from (element.value for element in argument.value.elements)
                elif not argument.star:
                    yield argument.value


def _is_text(node: cst.BaseExpression) -> bool:
    """Whether this is a text, or one that is repeated or joined to another: `"%11s" * 2 + "%11.4g" * 5`."""
    match node:
        case cst.BinaryOperation(left=left, operator=cst.Add() | cst.Multiply(), right=right):
            return _is_text(left) or _is_text(right)
    return isinstance(node, (cst.SimpleString, cst.ConcatenatedString))


def is_written(loop: cst.CSTNode, context: Context) -> bool:
    """Whether the loop, a comprehension, makes a text that is printed or logged then and there."""
    for above in context.around(loop, cst.Call, cst.Lambda, within=context.tree.statement(loop)):
        match above:
            case cst.Lambda():
                return False
            case cst.Call(func=cst.Name(value="print")):
                return True
            case cst.Call(func=cst.Attribute(value=owner, attr=cst.Name(value="info" | "debug" | "warning"))):
                return LOG_OWNER.suggests((dotted(owner) or "").lower())
    return False


def _writes_at_once(call: cst.Call, context: Context) -> bool:
    match call.func:
        case cst.Attribute(value=cst.Name() as owner) if context.classes.self_class(owner) is not None and (
            context.calls.target(call) is not None
        ):
            return False  # it is seen what that does
        case cst.Attribute(value=owner, attr=cst.Name(value="log")):
            name = context.qualified_name(owner) or dotted(owner) or ""
            return TRACKER.suggests(name.rpartition(".")[2])
        case cst.Attribute(value=owner, attr=cst.Name(value="format")):
            return context.kind(owner) in (Kind.STRING, Kind.UNKNOWN)
        case cst.Attribute(attr=cst.Name(value=name)) if name in SUMMARIES:
            # What a summary writer is told begins with a tag; a quantized `add_scalar(x, y)` adds.
            return bool(call.args) and context.kind(call.args[0].value) is not Kind.TENSOR
    return True


def is_alarm(node: cst.CSTNode, context: Context) -> bool:
    """Whether it is said only where a tensor holds what it should not: `if x.max() > 1`."""
    return any(tests_a_tensor(above.test, context) for above in context.around(node, cst.If))


def is_named_alarm(node: cst.CSTNode, context: Context) -> bool:
    """Whether words of a condition say that something ran over, or that there is nothing: `if overflow`."""
    for above in context.around(node, cst.If):
        words = context.uncommented(above.test.with_changes(lpar=(), rpar=()))
        if OVERFLOW_CONDITION.suggests(words):
            return True
        if NOTHING_THERE.suggests(words) and context.tree.within(node, above.body):
            return True
    return False


def is_of_an_episode(node: cst.CSTNode, context: Context) -> bool:
    """Whether it is said where an episode ends: `if done:`, and for `ended` in `enumerate(dones)` `if ended and …:`."""
    return any(
        is_taken and _is_an_end(test, context) for test, is_taken in context.conditions(node, across_functions=True)
    )


def _is_an_end(test: cst.BaseExpression, context: Context) -> bool:
    match test:
        case cst.BooleanOperation(left=left, operator=operator, right=right):
            ends = [_is_an_end(part, context) for part in (left, right)]
            return all(ends) if isinstance(operator, cst.Or) else any(ends)
        case cst.Subscript(value=owner):
            return _is_an_end(owner, context)
        case cst.Name(value=name) | cst.Attribute(attr=cst.Name(value=name)):
            if EPISODE_END.suggests(name):
                return True
            binders = context.binders(test) if isinstance(test, cst.Name) else ()
            loops = [binder.iter for binder in binders if isinstance(binder, cst.For)]
            return any(EPISODE_END.suggests(final_part(part)) for walked in loops for part in iterables(walked))
    return False


def is_key(text: cst.CSTNode, context: Context) -> bool:
    """Whether the text names something, or is one that a model reads: a key, what a tokenizer is given."""
    statement, within = context.tree.statement(text), context.tree.within
    holders = (cst.DictElement, cst.StarredDictElement, cst.SubscriptElement)
    for above in context.around(text, *holders, cst.Call, within=statement):
        match above:
            case cst.DictElement(key=key) if not within(text, key):
                continue
            case cst.Call(func=func):
                name = (dotted(func) or "").rpartition(".")[2]
                if not within(text, func) and TOKENISING_CALL.suggests(name):
                    return True
            case _:
                return True
    return False


def is_text(part: cst.BaseExpression) -> bool:
    """Whether what is formatted is a text by its name or key: `batch["dataset_name"]`, `file_names[i]`."""
    match part:
        case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString() as key))]):
            return TEXT_NAME.suggests(str(key.evaluated_value))
        case cst.Subscript(value=owner):
            return is_text(owner)
        case cst.Name() | cst.Attribute():
            return TEXT_NAME.suggests(final_part(part))
    return False


def is_text_likelier(node: cst.CSTNode, tensor: cst.BaseExpression, context: Context) -> bool:
    """Whether what may be a tensor goes into a name, a key or a path, as texts do more often, and not as a number."""
    is_sure = context.value(tensor).scalar or context.kinds.is_tensor(tensor)
    return not (is_sure or _formats_a_number(node, context) or _is_shown(node, context))


def _formats_a_number(node: cst.CSTNode, context: Context) -> bool:
    """Whether the format is one of numbers: `f"{x:.2f}"`, `"%.2f" % x`, `"{:g}".format(x)`."""
    match node:
        case cst.FormattedStringExpression(format_spec=spec):
            return spec is not None
        case cst.BinaryOperation(left=text) | cst.Call(func=cst.Attribute(value=text, attr=cst.Name(value="format"))):
            return _NUMBER_FORMAT.search(context.code(text)) is not None
    return False


# What makes a text of a text.
_TEXT_METHODS = frozenset({"str", "format", "join", "strip", "ljust", "rjust", "center"})


def _is_shown(node: cst.CSTNode, context: Context) -> bool:
    """Whether the node shows or logs something, or makes a text in the arguments of a call that does."""
    around = context.around(node, cst.Call, cst.Lambda, within=context.tree.statement(node))
    for above in (node, *around):
        match above:
            case cst.Call(func=func) if above is node or not context.tree.within(node, func):
                if LOG_WRITER.suggests(final_part(func)) or LOG_SHOWER.suggests(final_part(func)):
                    return True
                if above is not node and final_part(func) not in _TEXT_METHODS:
                    return False
            case cst.Lambda():
                return False
    return False


def is_number_by_then(tensor: cst.BaseExpression, context: Context) -> bool:
    """Whether the loop's own iteration has put a number in its place: `label = 1 if label else 0`."""
    loop = context.loop(tensor)
    return (
        isinstance(tensor, cst.Name)
        and loop is not None
        and any(
            context.kinds.binding(binding).kind is Kind.NUMBER and context.tree.within(binding.node, loop)
            for binding in context.reaching(tensor)
        )
    )


def is_read_the_old_way(tensor: cst.BaseExpression, context: Context) -> bool:
    """Whether this is `loss.data[0]`, or made of such: a number in the releases of torch where the line runs at all."""
    if ".data[0]" not in context.source.text:
        return False
    return any(_is_first_of_data(part) for part in context.ingredients(tensor))


def _is_first_of_data(node: cst.CSTNode) -> bool:
    match node:
        case cst.Subscript(
            value=cst.Attribute(attr=cst.Name(value="data")),
            slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer(value="0")))],
        ):
            return True
    return False


def is_log_statement(line: cst.CSTNode | None, context: Context) -> bool:
    """Whether a line of its own only prints or logs, so that nothing else misses it when it is left out."""
    match line:
        case cst.SimpleStatementLine(body=[cst.Expr(value=cst.Call() as call)]):
            is_writer = context.qualified_name(call.func) == "print" or (
                isinstance(call.func, cst.Attribute) and LOG_WRITER.suggests(call.func.attr.value)
            )
            inner = [node for part in call.args for node in descendants(part)]
            return is_writer and not any(
                isinstance(node, (cst.NamedExpr, cst.Await, cst.Yield))
                or (isinstance(node, cst.Call) and not _only_looks(node, context))
                for node in inner
            )
    return False


def _only_looks(call: cst.Call, context: Context) -> bool:
    if isinstance(call.func, cst.Attribute):
        return call.func.attr.value in _LOOKS
    return context.qualified_name(call.func) in _BUILTINS
