"""Totals and lists of values read from the device, and how to keep them there until their loop has ended.

`total += loss.item()` becomes `total += loss.detach()`, with `total = float(total)` below the loop;
`losses.append(loss.item())` becomes `losses.append(loss.detach())`, with one `torch.stack(losses).tolist()` below.
Behind that everything is as it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from torchlint.analyses.execution.hot import rate_doubts
from torchlint.analyses.host.reads import scalar_read
from torchlint.analyses.tensors.aliasing import is_changed_in_place, makes_new
from torchlint.analyses.tensors.element_types import counts, is_floating
from torchlint.finding import Frequency
from torchlint.rule import InsertBelow, NodeEdit, Replace
from torchlint.semantics.context import Context
from torchlint.semantics.execution.grad_mode import GradMode
from torchlint.semantics.flow.query import query
from torchlint.semantics.knowledge.conventions.texts import HALF_PRECISION
from torchlint.semantics.names.bindings import Binder, Binding
from torchlint.semantics.values.lattice import Kind

from .collector import Keeper


def deferred(read: cst.Call, context: Context) -> tuple[NodeEdit, ...]:
    """The edits that add up or collect the value on the device and read it once, below the loop.

    Empty where that can't be done for certain, and where nothing would come of it, since each step reads the same value
    for something else as well.
    """
    edits = _deferred(read, context)
    return () if edits and _is_read_all_the_same(read, context) else edits


def _is_read_all_the_same(read: cst.Call, context: Context) -> bool:
    """Whether the loop around reads the value a second time at each step, where it cannot stay on the device."""
    tensor = scalar_read(read, context)
    loop = context.frequencies.batch_loop(read)
    if not isinstance(tensor, cst.Name) or loop is None:
        return False
    statement = context.tree.statement(read)
    return any(
        use is not tensor and context.tree.statement(use) is not statement and context.holds_the_same(use, tensor)
        for use in _read_at_once(loop, context, tensor.value)
    )


@query(bottom=())
def _read_at_once(loop: cst.For | cst.While, context: Context, name: str) -> tuple[cst.Name, ...]:
    """The uses of a name where each iteration of the loop reads what it holds, and no edit could put that off."""
    return tuple(
        use
        for use in context.names.spelt(name)
        if context.tree.within(use, loop.body)
        and any(
            _stays(call, use, context) for call in context.around(use, cst.Call, within=context.tree.statement(use))
        )
    )


def _stays(call: cst.Call, use: cst.Name, context: Context) -> bool:
    return scalar_read(call, context) is use and not (_deferred(call, context) or rate_doubts(call, context))


@query(bottom=())
def _deferred(read: cst.Call, context: Context) -> tuple[NodeEdit, ...]:
    statement = context.tree.statement(read)
    addition = _addition(statement)
    if addition is not None:
        keeper = Keeper.of(addition.total, read, context)
        return _total(keeper, read) if keeper is not None else ()
    match statement:
        case cst.Expr(value=cst.Call(func=cst.Attribute(value=cst.Name() as name, attr=cst.Name(value="append")))):
            keeper = Keeper.of(name, read, context)
            return _list(keeper, read) if keeper is not None else ()
    return ()


# Totals


@dataclass(frozen=True, slots=True)
class _Addition:
    """`total += a + b` or `total = total + a + b`: the name where it is read, and what is added."""

    total: cst.Name
    added: tuple[cst.BaseExpression, ...]


def _addition(statement: cst.CSTNode | None) -> _Addition | None:
    match statement:
        case cst.AugAssign(target=cst.Name() as name, operator=cst.AddAssign(), value=value):
            return _Addition(name, (value,))
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=value):
            terms = list(_terms(value))
            totals = [term for term in terms if isinstance(term, cst.Name) and term.value == name]
            if len(totals) == 1 and len(terms) > 1:
                return _Addition(totals[0], tuple(term for term in terms if term is not totals[0]))
    return None


def _terms(value: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
    match value:
        case cst.BinaryOperation(left=left, operator=cst.Add(), right=right, lpar=[]):
            yield from _terms(left)
            yield right
        case _:
            yield value


def _total(keeper: Keeper, wanted: cst.Call) -> tuple[NodeEdit, ...]:
    context = keeper.context
    additions = {binding: found for binding in keeper.bindings if (found := _addition(binding.node)) is not None}
    starts = [binding for binding in keeper.bindings if binding not in additions]
    if not additions or not all(keeper.is_inside(binding.node) for binding in additions):
        return ()
    if not keeper.is_bound_before(starts) or not all(_start(binding, context) for binding in starts):
        return ()
    added = [value for addition in additions.values() for value in addition.added]
    parts = [_parts(value, context) for value in added]
    reads = [part for found in parts for part in found or () if isinstance(part, cst.Call) and _is_read(part, context)]
    if None in parts or wanted not in reads or any(_has_comment(read, context) for read in reads):
        return ()
    conversion = _conversion(added, reads, starts, context)
    if conversion is None:
        return ()
    edits: list[NodeEdit] = [Replace(read, _on_device(read, context)) for read in reads]
    totals = [addition.total for addition in additions.values()]
    is_used_below = False
    for use in keeper.uses(tuple(additions)):
        parent = context.parent(use)
        if use in totals:
            continue
        if not keeper.may_come_early(use):
            is_used_below = is_used_below or not isinstance(parent, cst.Del)
        elif not _may_wrap(use, context):
            return ()
        elif not _is_converted(use, conversion, context):
            edits.append(Replace(use, _bracketed(use, f"{conversion}({use.value})")))
    if is_used_below:
        edits.append(InsertBelow(keeper.end(), f"{keeper.name} = {conversion}({keeper.name})"))
    return tuple(edits)


def _start(binding: Binding, context: Context) -> str | None:
    """`int` or `float`, where the binding gives the name a plain number."""
    if binding.binder is not Binder.ASSIGN or isinstance(binding.node, cst.AnnAssign):
        return None
    match _literal(binding):
        case cst.Integer():
            return "int"
        case cst.Float():
            return "float"
        case cst.Call(func=cst.Name() as func) if context.qualified_name(func) in ("int", "float"):
            return func.value
    return None


def _literal(binding: Binding) -> cst.BaseExpression | None:
    """The expression that the name is bound to, through `a, b = 0, []`."""
    value = binding.value
    for step in binding.path:
        if not isinstance(value, (cst.Tuple, cst.List)) or step < 0:
            return None
        if any(isinstance(element, cst.StarredElement) for element in value.elements):
            return None
        value = value.elements[step].value if step < len(value.elements) else None
    return value


def _parts(value: cst.BaseExpression, context: Context) -> list[cst.BaseExpression] | None:
    """The numbers and reads that an addition is made of; None where it holds anything else."""
    match value:
        case cst.BinaryOperation(left=left, operator=cst.Add() | cst.Subtract() | cst.Multiply(), right=right):
            return _joined(_parts(left, context), _parts(right, context))
        case cst.BinaryOperation(left=left, operator=cst.Divide(), right=right):
            # What divides stays a number: a number divided by zero raises, a tensor gives infinity.
            is_number = _is_number(right, context) and not _is_read(right, context)
            return _joined(_parts(left, context), [right]) if is_number else None
        case cst.UnaryOperation(operator=cst.Minus(), expression=inner):
            return _parts(inner, context)
    return [value] if _is_read(value, context) or _is_number(value, context) else None


def _joined(
    left: list[cst.BaseExpression] | None, right: list[cst.BaseExpression] | None
) -> list[cst.BaseExpression] | None:
    return None if left is None or right is None else left + right


def _is_read(node: cst.BaseExpression, context: Context) -> bool:
    """Whether the expression gives the one value of a tensor as it is: `t.item()`, `float(t)`."""
    tensor = scalar_read(node, context)
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="item"))):
            return tensor is not None
        case cst.Call(func=cst.Name() as func) if tensor is not None:
            name = context.qualified_name(func)
            return name == "float" or (name == "int" and counts(tensor, context))
    return False


def _is_number(node: cst.BaseExpression, context: Context) -> bool:
    if isinstance(node, cst.BinaryOperation):
        return _is_number(node.left, context) and _is_number(node.right, context)
    kind = context.kind(node)
    # `args.batch_size`: nobody multiplies a number that was read with anything else.
    return kind is Kind.NUMBER or (kind is Kind.UNKNOWN and isinstance(node, (cst.Name, cst.Attribute)))


def _conversion(
    values: list[cst.BaseExpression], reads: list[cst.Call], starts: list[Binding], context: Context
) -> str | None:
    """What makes of the sum the number that it was; None where that is not known, or torch could not add it up."""
    tensors = [scalar_read(read, context) for read in reads]
    whole = [tensor is not None and counts(tensor, context) for tensor in tensors]
    first = {_start(binding, context) for binding in starts}
    if first == {"float"}:
        return "float"
    if any(whole) and not all(whole):
        return None  # torch adds in place, and whole numbers cannot take in the others
    if all(whole):
        return "int" if first == {"int"} and all(_is_whole(value, context) for value in values) else None
    return "float" if all(tensor is not None and is_floating(tensor, context) for tensor in tensors) else None


def _is_whole(value: cst.BaseExpression, context: Context) -> bool:
    """Whether the expression is a read, or computed from reads and literal integers without a division."""
    match value:
        case cst.BinaryOperation(left=left, operator=operator, right=right):
            return not isinstance(operator, cst.Divide) and _is_whole(left, context) and _is_whole(right, context)
        case cst.Integer():
            return True
    return _is_read(value, context)


def _may_wrap(use: cst.Name, context: Context) -> bool:
    """Whether reading the total here costs nothing in each iteration, and changes no text."""
    parent = context.parent(use)
    if isinstance(parent, (cst.Del, cst.AugAssign)) and getattr(parent, "target", None) is use:
        return False
    if isinstance(parent, cst.FormattedStringExpression) and parent.equal is not None:
        return False
    return context.frequency(use) < Frequency.BATCH


def _is_converted(use: cst.Name, conversion: str, context: Context) -> bool:
    argument = context.parent(use)
    call = context.parent(argument) if isinstance(argument, cst.Arg) else None
    return isinstance(call, cst.Call) and len(call.args) == 1 and context.qualified_name(call.func) == conversion


# Lists


def _list(keeper: Keeper, wanted: cst.Call) -> tuple[NodeEdit, ...]:
    context = keeper.context
    torch = _name_of_torch(keeper.place, context)
    if torch is None or len(keeper.bindings) != 1 or not _starts_empty(keeper, keeper.bindings[0]):
        return ()
    reads: list[cst.Call] = []
    is_used_below = False
    for use in keeper.uses(keeper.bindings):
        if not keeper.may_come_early(use):
            if context.tree.place(use) < context.tree.place(keeper.loop):
                return ()
            is_used_below = True
            continue
        read = _appended(use, context)
        if read is None:
            if _is_measured(use, context) and keeper.is_inside(use):
                continue
            return ()
        reads.append(read)
    if not is_used_below or wanted not in reads:
        return ()
    name = keeper.name
    below = InsertBelow(keeper.end(), f"{name} = {torch}.stack({name}).tolist() if {name} else []")
    return (*(Replace(read, _on_device(read, context, kept=True)) for read in reads), below)


def _starts_empty(keeper: Keeper, binding: Binding) -> bool:
    """Whether the list is made empty before each run of the loop."""
    context = keeper.context
    if binding.binder is not Binder.ASSIGN or isinstance(binding.node, cst.AnnAssign):
        return False
    match _literal(binding):
        case cst.List(elements=[]):
            pass
        case cst.Call(func=func, args=[]) if context.qualified_name(func) == "list":
            pass
        case _:
            return False
    is_shared = isinstance(binding.node, cst.Assign) and len(binding.node.targets) > 1  # `a = b = []`
    return (
        not is_shared and keeper.is_bound_before([binding]) and context.loop(binding.node) is context.loop(keeper.loop)
    )


def _appended(use: cst.Name, context: Context) -> cst.Call | None:
    """The read of a 0-dimensional tensor that the statement `use.append(…)` appends."""
    attribute = context.parent(use)
    call = context.parent(attribute) if attribute is not None else None
    match call:
        case cst.Call(
            func=cst.Attribute(value=owner, attr=cst.Name(value="append")), args=[cst.Arg(value=cst.Call() as read)]
        ):
            tensor = scalar_read(read, context)
            if owner is not use or tensor is None or not context.value(tensor).scalar:
                return None
            is_statement = isinstance(context.parent(call), cst.Expr)
            return read if is_statement and _is_read(read, context) and not _has_comment(read, context) else None
    return None


def _is_measured(use: cst.Name, context: Context) -> bool:
    """`len(losses)`."""
    argument = context.parent(use)
    call = context.parent(argument) if isinstance(argument, cst.Arg) else None
    return isinstance(call, cst.Call) and context.qualified_name(call.func) == "len"


def _name_of_torch(place: cst.Name, context: Context) -> str | None:
    """The name under which `torch` can be used at a place."""
    hidden: set[str] = set()
    scope = context.names.scope_of(place)
    while scope.parent is not None:
        hidden |= scope.bindings.keys()
        scope = scope.parent
    return next(
        (
            name
            for name, bindings in scope.bindings.items()
            if name not in hidden
            and all(binding.binder is Binder.IMPORT and binding.target == "torch" for binding in bindings)
        ),
        None,
    )


# Expressions


def _on_device(read: cst.Call, context: Context, *, kept: bool = False) -> str:
    """The value that is read, as a tensor outside of the graph; `kept`, it must not change any more."""
    tensor = scalar_read(read, context)
    assert tensor is not None
    code = context.code_at(tensor, read)
    is_atom = isinstance(tensor, (cst.Name, cst.Attribute, cst.Call, cst.Subscript))
    # The brackets of `float(…)` may have held lines together.
    is_loose = isinstance(read.func, cst.Name) and "\n" in code
    if not tensor.lpar and (not is_atom or is_loose):
        code = f"({code})"
    is_count = counts(tensor, context)
    # Under `no_grad` a sum has no graph; what is kept under a name may still have been computed outside.
    has_graph = context.grad(read) is not GradMode.OFF or (kept and isinstance(tensor, (cst.Name, cst.Attribute)))
    if has_graph and not is_count and not code.endswith((".detach()", ".data")):
        code = f"{code}.detach()"
    if kept:
        if not _is_new(tensor, context) or is_changed_in_place(tensor, context):
            # `detach` shares the storage: what is done to it in place would change what was kept.
            code = f"{code}.clone()"
    elif (
        not is_count
        and _may_be_half(context.tree.module, context)
        and not code.removesuffix(".detach()").endswith((".float()", ".double()"))
    ):
        code = f"{code}.float()"
    return _bracketed(read, code)


@query(bottom=False)
def _may_be_half(_: cst.Module, context: Context) -> bool:
    """Whether the program speaks of a precision in which a sum would lose what is added."""
    return bool(HALF_PRECISION.suggests(context.program.code))


def _is_new(tensor: cst.BaseExpression, context: Context) -> bool:
    """Whether each iteration of the loop has a tensor of its own: one that it computes, such as a loss."""
    return all(
        makes_new(value, context) or (isinstance(value, cst.Call) and context.value(value).scalar)
        for value in context.origins(tensor).nodes
    )


def _has_comment(read: cst.Call, context: Context) -> bool:
    """Whether the call holds a comment that would be lost with it."""
    tensor = scalar_read(read, context)
    return tensor is not None and "#" in context.code(read).replace(context.code(tensor), "", 1)


def _bracketed(node: cst.BaseExpression, code: str) -> str:
    """The code in parentheses if it replaces something in parentheses: a keyword may stand right beside them."""
    return f"({code})" if node.lpar else code
