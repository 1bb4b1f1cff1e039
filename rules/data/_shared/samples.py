"""Code that makes one sample of a dataset, and what in it is the same at every sample."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.execution.guards import is_missing
from torchlint.semantics.flow.guards import Role
from torchlint.semantics.flow.origins import Through
from torchlint.semantics.flow.query import query
from torchlint.semantics.knowledge.apis import SAMPLE_METHODS
from torchlint.semantics.knowledge.conventions.functions import DATASET_BASE
from torchlint.semantics.names.classes import class_attribute, is_static
from torchlint.syntax.tree import descendants_in_scope

# How many calls away `__getitem__` is followed.
_CALLS_DEEP = 2

_ASSIGNMENTS = (cst.Assign, cst.AnnAssign, cst.NamedExpr)
# What gives the same for the same arguments, and does not ask a file.
_PURE = frozenset(
    {
        "os.path.join",
        "os.path.abspath",
        "os.path.expanduser",
        "os.path.dirname",
        "os.path.basename",
        "os.path.splitext",
        "os.fspath",
        "posixpath.join",
        "pathlib.Path",
        "pathlib.PurePath",
        "str",
        "int",
        "float",
        "bool",
        "len",
        "min",
        "max",
        "tuple",
        "list",
        "dict",
        "set",
        "slice",
        "open",
        "io.open",
        "gzip.open",
        "bz2.open",
        "lzma.open",
    }
)
_PURE_METHODS = frozenset(
    {
        "format",
        "joinpath",
        "with_suffix",
        "with_name",
        "resolve",
        "expanduser",
        "absolute",
        "as_posix",
        "replace",
        "strip",
        "lower",
        "upper",
        "rstrip",
        "lstrip",
        "open",
        "read",
        "read_text",
        "read_bytes",
    }
)
_PURE_OPERATORS = (cst.Add, cst.Divide, cst.Modulo, cst.Multiply, cst.Subtract, cst.FloorDivide)


class Way(NamedTuple):
    """How a line is reached: `getter` makes a sample, `calls` lead from it to the function that the line is in."""

    getter: cst.FunctionDef
    calls: tuple[cst.Call, ...]


def ways(node: cst.CSTNode, context: Context) -> Iterator[Way]:
    """The ways on which making a sample of a dataset of this module comes to the node, each time."""
    function = context.tree.function(node)
    if not isinstance(function, cst.FunctionDef):
        return
    if function.name.value in SAMPLE_METHODS and _makes_samples(function, context):
        yield Way(function, ())
        return
    yield from _called(function, (), context)


def _called(function: cst.FunctionDef, below: tuple[cst.Call, ...], context: Context) -> Iterator[Way]:
    if len(below) == _CALLS_DEEP or any(not _is_plain(item.decorator) for item in function.decorators):
        return
    for call in context.calls.callers(function):
        above = context.tree.function(call)
        if not isinstance(above, cst.FunctionDef) or is_kept(call, context):
            continue
        if above.name.value in SAMPLE_METHODS and _makes_samples(above, context):
            yield Way(above, (call, *below))
        elif above is not function:
            yield from _called(above, (call, *below), context)


def _is_plain(decorator: cst.BaseExpression) -> bool:
    """Whether the decorator lets each call run the function: `@lru_cache` does not, others are not known."""
    return isinstance(decorator, cst.Name) and decorator.value in ("staticmethod", "classmethod")


def _makes_samples(function: cst.FunctionDef, context: Context) -> bool:
    class_ = context.classes.owner(function)
    if class_ is None or function.decorators or _holds_one_sample(class_, context):
        return False
    if context.classes.is_dataset(class_):
        return True
    bases = [base for base in context.classes.lineage(class_) if isinstance(base, str)]
    if any(DATASET_BASE.suggests(base) for base in bases):
        return True
    has_length = context.classes.method(class_, "__len__") is not None
    return has_length and not bases and DATASET_BASE.suggests(class_.name.value) and "torch" in context.names.imported


def _holds_one_sample(class_: cst.ClassDef, context: Context) -> bool:
    """`def __len__(self): return 1`."""
    length = context.classes.method(class_, "__len__")
    return length is not None and any(
        isinstance(node, cst.Return) and isinstance(node.value, cst.Integer) and node.value.value == "1"
        for node in descendants_in_scope(length.body)
    )


def is_kept(node: cst.CSTNode, context: Context) -> bool:
    """Whether the node runs only where something is missing or has failed, or what it gives is kept for later.

    `if self.file is None: self.file = …`, `if key not in cache: cache[key] = …`, `except KeyError: …`, and what stands
    behind `if key in cache: return cache[key]`.
    """
    for guard in context.guards(node):
        if guard.role is Role.HANDLER:
            return True
        # `self.file or open(…)`
        if guard.test is not None and (isinstance(guard.node, cst.BooleanOperation) or _asks_for_kept(guard.test)):
            return True
    if any(_may_have_left(block, line) for block, line in context.suites(node)):
        return True
    match context.enclosing(node, cst.Assign, cst.AnnAssign, cst.FunctionDef, cst.Lambda):
        case cst.Assign(targets=targets):
            return any(_outlives(target.target, context) for target in targets)
        case cst.AnnAssign(target=target):
            return _outlives(target, context)
    return False


def _asks_for_kept(test: cst.BaseExpression) -> bool:
    """Whether a condition asks whether something is there, or is so far empty."""
    match test:
        case cst.UnaryOperation(operator=cst.Not()):
            return True
        case cst.BooleanOperation(left=left, right=right):
            return _asks_for_kept(left) or _asks_for_kept(right)
        case cst.Comparison(comparisons=[cst.ComparisonTarget(operator=operator)]):
            return isinstance(operator, (cst.In, cst.NotIn, cst.Is, cst.IsNot)) or isinstance(
                test.comparisons[0].comparator, cst.Integer
            )
        case cst.Call():
            return True
    return is_missing(test)


def _may_have_left(block: cst.IndentedBlock | cst.Module, line: cst.CSTNode) -> bool:
    """Whether a statement of the block above a line may have returned, or gone on with the next iteration."""
    for statement in block.body:
        if statement is line:
            return False
        if isinstance(statement, cst.If) and any(
            isinstance(node, (cst.Return, cst.Continue)) for node in descendants_in_scope(statement.body)
        ):
            return True
    return False


def _outlives(target: cst.CSTNode, context: Context) -> bool:
    """Whether what is assigned is kept when the sample is done."""
    if isinstance(target, cst.Name):
        scope, _ = context.names.lookup(target)
        return scope is None or not isinstance(scope.node, (cst.FunctionDef, cst.Lambda))
    return isinstance(target, cst.Attribute) or (
        isinstance(target, cst.Subscript) and isinstance(target.value, cst.Attribute)
    )


@query(bottom=False)
def is_same(node: cst.CSTNode, context: Context, way: Way) -> bool:
    """Whether the expression is known to have the same value at every sample; False where anything is unknown."""

    def same(*parts: cst.CSTNode) -> bool:
        return all(is_same(part, context, way) for part in parts)

    match node:
        case cst.SimpleString() | cst.Integer() | cst.Float() | cst.FormattedStringText():
            return True
        case cst.ConcatenatedString(left=left, right=right):
            return same(left, right)
        case cst.FormattedString(parts=parts):
            return same(*parts)
        case cst.FormattedStringExpression(expression=inner):
            return same(inner)
        case cst.BinaryOperation(left=left, operator=operator, right=right):
            return isinstance(operator, _PURE_OPERATORS) and same(left, right)
        case cst.UnaryOperation(expression=inner):
            return same(inner)
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            return same(*(element.value for element in elements))
        case cst.Dict(elements=elements):
            return same(*(part for element in elements for part in _parts(element)))
        case cst.Subscript(value=owner, slice=[cst.SubscriptElement(slice=cst.Index(value=key))]):
            return same(owner, key)
        case cst.Call():
            return _is_same_call(node, context, way)
        case cst.Name():
            return _is_same_name(node, context, way)
        case cst.Attribute():
            return _is_same_attribute(node, context, way)
    return False


def _parts(element: cst.BaseDictElement) -> tuple[cst.BaseExpression, ...]:
    return (element.key, element.value) if isinstance(element, cst.DictElement) else (element.value,)


def _is_same_call(call: cst.Call, context: Context, way: Way) -> bool:
    name = context.qualified_name(call.func)
    parts: list[cst.CSTNode] = [argument.value for argument in call.args]
    if name not in _PURE:
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value not in _PURE_METHODS:
            return False
        parts.append(call.func.value)
    return all(is_same(part, context, way) for part in parts)


def _is_same_name(name: cst.Name, context: Context, way: Way) -> bool:
    if name.value in ("True", "False", "None"):
        return True
    if _is_assigned_by_the_module(name, context):
        return len(context.binders(name)) == 1
    origins = context.sources.of(
        name, Through.PARTS | Through.CONTEXTS, is_end=lambda each: _is_assigned_by_the_module(each, context)
    )
    return all(not path and is_same(made, context, way) for made, path in origins.found) and all(
        _is_lost_to_the_same(lost, context, way) for lost, _ in origins.lost
    )


def _is_assigned_by_the_module(node: cst.BaseExpression, context: Context) -> bool:
    if not isinstance(node, cst.Name):
        return False
    scope, _ = context.names.lookup(node)
    return (
        scope is not None
        and isinstance(scope.node, cst.Module)
        and all(isinstance(binder, _ASSIGNMENTS) for binder in context.binders(node))
    )


def _is_lost_to_the_same(node: cst.BaseExpression, context: Context, way: Way) -> bool:
    """Whether a name, as far as it holds nothing that is in sight, is imported, or passed the same at every sample."""
    binders = context.binders(node) if isinstance(node, cst.Name) else ()
    return (
        bool(binders)
        and isinstance(node, cst.Name)
        and all(
            _is_passed_the_same(binder, node, context, way)
            if isinstance(binder, cst.Param)
            else isinstance(binder, (cst.Import, cst.ImportFrom, cst.With, *_ASSIGNMENTS))
            for binder in binders
        )
    )


def _is_passed_the_same(parameter: cst.Param, name: cst.Name, context: Context, way: Way) -> bool:
    """Whether the call on the way passes the same for a parameter at every sample."""
    getter, calls = way
    function = context.tree.function_of_parameter(parameter)
    if not calls or function is not context.tree.function(name) or not isinstance(function, cst.FunctionDef):
        return False
    passed = context.calls.argument_for(calls[-1], function, parameter)
    if passed is None:
        return False
    return passed is parameter.default or is_same(passed, context, Way(getter, calls[:-1]))


def _is_same_attribute(attribute: cst.Attribute, context: Context, way: Way) -> bool:
    """`self.path`, set where the dataset is made and nowhere else; `self.options.path` and `config.path`."""
    owner, name = attribute.value, attribute.attr.value
    if not isinstance(owner, cst.Name):
        return isinstance(owner, cst.Attribute) and is_same(owner, context, way)
    class_ = context.classes.self_class(owner)
    if class_ is None:
        return is_same(owner, context, way) or not context.binders(owner)
    if context.classes.method(class_, name) is not None or not _is_the_dataset(class_, way, context):
        return False
    sets = context.classes.attribute_sets(class_, name)
    if not sets:
        return class_attribute(context.names, class_, name) is not None
    return all(_is_set_up(entry.node, context) for entry in sets)


def _is_the_dataset(class_: cst.ClassDef, way: Way, context: Context) -> bool:
    """Whether an object of the class is the dataset itself, and not another, which each sample may make for itself."""
    owner = context.classes.owner(way.getter)
    return owner is not None and (class_ in context.classes.lineage(owner) or owner in context.classes.lineage(class_))


def _is_set_up(node: cst.CSTNode, context: Context) -> bool:
    function = context.tree.function(node)
    return isinstance(function, cst.FunctionDef) and function.name.value == "__init__" and not is_static(function)
