"""Totals and lists of values read from the device, and how to keep them there until their loop has ended.

`total += loss.item()` becomes `total += loss.detach()`, with `total = float(total)` below the loop; `losses.append(loss.item())`
becomes `losses.append(loss.detach())`, with one `torch.stack(losses).tolist()` below. Below the loop everything is as it was.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.finding import Frequency
from torchlint.model.fresh import is_changed_in_place, makes_new, reflects
from torchlint.model.grad import GradMode
from torchlint.model.names import Binder, Binding
from torchlint.model.reads import scalar_read
from torchlint.model.tree import Comprehension, descendants_in_scope
from torchlint.model.values import Kind
from torchlint.rule import InsertBelow, NodeEdit, Replace

if TYPE_CHECKING:
    from torchlint.model.context import Context

# In half precision a sum soon stops growing; where a file speaks of it, totals are kept in single precision.
_HALF = re.compile(r"autocast|float16|bfloat16|\bhalf\b|fp16|bf16|\bamp\b|16-mixed")
_DEEPEST = 4


def deferred(read: cst.Call, context: Context) -> tuple[NodeEdit, ...]:
    """The edits that add up or collect the value on the device and read it once, below the loop.

    Empty where that can't be done for certain.
    """
    statement = context.tree.statement(read)
    addition = _addition(statement)
    if addition is not None:
        keeper = _Keeper.of(addition.total, read, context)
        return _total(keeper, read) if keeper is not None else ()
    match statement:
        case cst.Expr(value=cst.Call(func=cst.Attribute(value=cst.Name() as name, attr=cst.Name(value="append")))):
            keeper = _Keeper.of(name, read, context)
            return _list(keeper, read) if keeper is not None else ()
    return ()


@dataclass(frozen=True, slots=True)
class _Keeper:
    """A local name that the values are kept under, at `place`, and the outermost loop over batches around it."""

    place: cst.Name
    loop: cst.For | cst.While
    context: Context

    @classmethod
    def of(cls, place: cst.Name, read: cst.Call, context: Context) -> _Keeper | None:
        """The name, if nothing but the plain statements of one function or module can reach what it holds."""
        loop = around = context.frequencies.batch_loop(read)
        while around is not None:
            loop, around = around, context.frequencies.batch_loop(around)
        scope = context.names.scope_of(place)
        if (
            loop is None
            or scope.is_class
            or context.names.lookup(place)[0] is not scope
            or place.value in scope.globals
        ):
            return None
        if context.frequency(loop) >= Frequency.BATCH:
            return None
        found = cls(place, loop, context)
        return None if found._is_captured() or found._is_reflected() else found

    @property
    def name(self) -> str:
        return self.place.value

    @property
    def bindings(self) -> tuple[Binding, ...]:
        """What the name may hold where a value is added to it."""
        return self.context.reaching(self.place)

    def _is_captured(self) -> bool:
        """Whether a function inside looks at the name: it may do so at any time."""
        names = self.context.names
        scope = names.scope_of(self.place)
        for node in self.context.tree.of(cst.Name):
            if node.value == self.name and names.lookup(node)[0] is scope:
                inner = names.scope_of(node)
                while isinstance(inner.node, Comprehension) and inner.parent is not None:
                    inner = inner.parent
                if inner is not scope:
                    return True
        return False

    def _is_reflected(self) -> bool:
        """Whether the function looks at its names by other means."""
        scope = self.context.names.scope_of(self.place).node
        return isinstance(scope, cst.FunctionDef) and any(reflects(node) for node in descendants_in_scope(scope.body))

    def uses(self, bindings: tuple[Binding, ...]) -> list[cst.Name]:
        """The places where the name may hold what one of the bindings gave it, targets of `+=` among them.

        Where an exception may leave the loop and be caught, all behind it: which bindings were skipped is not known.
        """
        index = self.context.tree.index
        names = self.context.names
        found = {use: None for binding in bindings for use in names.uses(binding)}
        if self._exits():
            scope, everything = names.lookup(self.place)
            for use in (use for binding in everything for use in names.uses(binding)):
                if index[use] > index[self.loop] and names.lookup(use)[0] is scope:
                    found[use] = None
        return sorted(found, key=index.__getitem__)

    def _exits(self) -> list[cst.Try | cst.TryStar | cst.With]:
        """The statements around the loop that catch what is raised in it, or do something about it."""
        found: list[cst.Try | cst.TryStar | cst.With] = []
        child: cst.CSTNode = self.loop
        for above in self.context.ancestors(self.loop):
            if isinstance(above, (cst.FunctionDef, cst.Lambda, cst.ClassDef)):
                break
            if isinstance(above, (cst.Try, cst.TryStar)) and child is above.body:
                found.append(above)
            if isinstance(above, cst.With) and _suppresses(above):
                found.append(above)
            child = above
        return found

    def is_inside(self, node: cst.CSTNode) -> bool:
        """Whether a node stands in the loop."""
        return self.context.tree.within(node, self.loop)

    def may_come_early(self, use: cst.Name) -> bool:
        """Whether the use may run before what stands below the loop: in it, or after an exception that left it."""
        if self.is_inside(use):
            return True
        for exit_ in self._exits():
            if self.context.tree.within(use, exit_):
                if not self.context.tree.within(use, exit_.body):
                    return True
            elif isinstance(exit_, cst.With) or exit_.handlers:
                return True
        return False

    def is_bound_before(self, bindings: list[Binding]) -> bool:
        """Whether one of the bindings is made on every way into the loop."""
        tree = self.context.tree
        blocks = {id(above) for above in tree.ancestors(self.loop)}
        return any(
            id(tree.parent(tree.line(binding.node) or binding.node)) in blocks
            and tree.index[binding.node] < tree.index[self.loop]
            for binding in bindings
        )


def _suppresses(statement: cst.With) -> bool:
    return any(
        isinstance(item.item, cst.Call) and _last_name(item.item.func) in ("suppress", "raises", "assertRaises")
        for item in statement.items
    )


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


def _total(keeper: _Keeper, wanted: cst.Call) -> tuple[NodeEdit, ...]:
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
        edits.append(InsertBelow(keeper.loop, f"{keeper.name} = {conversion}({keeper.name})"))
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
            return name == "float" or (name == "int" and _counts(tensor, context))
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
    """What makes of the sum the number that it was; None where its type is not known, or the sum would change its own."""
    tensors = [scalar_read(read, context) for read in reads]
    counts = [tensor is not None and _counts(tensor, context) for tensor in tensors]
    first = {_start(binding, context) for binding in starts}
    if first == {"float"}:
        return "float"
    if any(counts) and not all(counts):
        return None  # torch adds in place, and whole numbers cannot take in the others
    if all(counts):
        return "int" if first == {"int"} and all(_is_whole(value, context) for value in values) else None
    return "float" if all(tensor is not None and _is_floating(tensor, context) for tensor in tensors) else None


def _is_whole(value: cst.BaseExpression, context: Context) -> bool:
    """Whether the expression is a read, or computed from reads and literal integers without a division."""
    match value:
        case cst.BinaryOperation(left=left, operator=operator, right=right):
            return not isinstance(operator, cst.Divide) and _is_whole(left, context) and _is_whole(right, context)
        case cst.Integer():
            return True
    return _is_read(value, context)


def _definitions(tensor: cst.BaseExpression, context: Context, depth: int = 0) -> Iterator[cst.BaseExpression]:
    """The expressions that the tensor is the value of, through names."""
    if isinstance(tensor, cst.Name) and depth < _DEEPEST:
        bindings = context.reaching(tensor)
        if bindings and all(binding.value is not None and not binding.path for binding in bindings):
            for binding in bindings:
                assert binding.value is not None
                yield from _definitions(binding.value, context, depth + 1)
            return
    yield tensor


def _counts(tensor: cst.BaseExpression, context: Context) -> bool:
    """Whether the tensor is a count: the sum of a comparison."""
    return all(_is_count(value, context) for value in _definitions(tensor, context))


def _is_count(value: cst.BaseExpression, context: Context) -> bool:
    match value:
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value="sum")), args=args) if _is_torch(
            inner, context
        ):
            return len(args) == 1 and _is_mask(args[0].value, context)
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value="sum")), args=[]):
            return _is_mask(inner, context)
        case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value="detach" | "long" | "int")), args=[]):
            return _is_count(inner, context)
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="count_nonzero"))):
            return True
    return False


def _is_mask(value: cst.BaseExpression, context: Context) -> bool:
    for found in _definitions(value, context):
        match found:
            case cst.Comparison():
                pass
            case cst.Call(func=cst.Attribute(attr=cst.Name(value=name))) if name in _COMPARISONS:
                pass
            case cst.Call(
                func=cst.Attribute(value=inner, attr=cst.Name(value="long" | "int" | "view" | "flatten" | "all"))
            ):
                if not _is_mask(inner, context):
                    return False
            case _:
                return False
    return True


_COMPARISONS = frozenset("eq ne gt lt ge le equal not_equal greater less greater_equal less_equal".split())
_MEANS = frozenset("mean float double norm std var exp log sqrt softmax sigmoid log_softmax nanmean".split())


def _is_floating(tensor: cst.BaseExpression, context: Context) -> bool:
    """Whether the tensor surely holds floating point numbers: a loss, a mean, a quotient."""
    for value in _definitions(tensor, context):
        match value:
            case cst.BinaryOperation(operator=cst.Divide()):
                continue
            case cst.BinaryOperation(left=left, right=right) if _is_floating(left, context) or _is_floating(
                right, context
            ):
                continue
            case cst.Call(func=cst.Attribute(attr=cst.Name(value=name))) if name in _MEANS:
                continue
            case cst.Call(func=cst.Attribute(value=inner, attr=cst.Name(value="sum" | "detach" | "max" | "min"))):
                if _is_floating(inner, context):
                    continue
        names = [node.value for node in (value, tensor) if isinstance(node, cst.Name)]
        names += [node.attr.value for node in (value, tensor) if isinstance(node, cst.Attribute)]
        called = _last_name(value.func) if isinstance(value, cst.Call) else ""
        if not any("loss" in name.lower() for name in (*names, called)) and "criterion" not in called:
            return False
    return True


def _may_wrap(use: cst.Name, context: Context) -> bool:
    """Whether reading the total here costs nothing at each turn, and changes no text."""
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


def _list(keeper: _Keeper, wanted: cst.Call) -> tuple[NodeEdit, ...]:
    context = keeper.context
    torch = _name_of_torch(keeper.place, context)
    if torch is None or len(keeper.bindings) != 1 or not _starts_empty(keeper, keeper.bindings[0]):
        return ()
    reads: list[cst.Call] = []
    is_used_below = False
    for use in keeper.uses(keeper.bindings):
        if not keeper.may_come_early(use):
            if context.tree.index[use] < context.tree.index[keeper.loop]:
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
    below = InsertBelow(keeper.loop, f"{name} = {torch}.stack({name}).tolist() if {name} else []")
    return (*(Replace(read, _on_device(read, context, kept=True)) for read in reads), below)


def _starts_empty(keeper: _Keeper, binding: Binding) -> bool:
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
        not is_shared
        and keeper.is_bound_before([binding])
        and context.loop(binding.node) is context.loop(keeper.loop)
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
    scope = context.names.scope_of(place)
    for name, bindings in context.names.module.bindings.items():
        if all(binding.binder is Binder.IMPORT and binding.target == "torch" for binding in bindings):
            if scope is context.names.module or name not in scope.bindings:
                return name
    return None


# Expressions


def _on_device(read: cst.Call, context: Context, *, kept: bool = False) -> str:
    """The value that is read, as a tensor outside of the graph; `kept`, it must not change any more."""
    tensor = scalar_read(read, context)
    assert tensor is not None
    code = context.code(tensor)
    if not tensor.lpar and (not isinstance(tensor, (cst.Name, cst.Attribute, cst.Call, cst.Subscript)) or "\n" in code):
        code = f"({code})"
    is_count = _counts(tensor, context)
    if not is_count and context.grad(read) is not GradMode.OFF and not code.endswith((".detach()", ".data")):
        code = f"{code}.detach()"
    if kept:
        if not _is_new(tensor, context) or is_changed_in_place(tensor, context):
            # `detach` shares the storage: what is done to it in place would change what was kept.
            code = f"{code}.clone()"
    elif (
        not is_count
        and _HALF.search(context.source.text)
        and not code.removesuffix(".detach()").endswith((".float()", ".double()"))
    ):
        code = f"{code}.float()"
    return _bracketed(read, code)


def _is_new(tensor: cst.BaseExpression, context: Context) -> bool:
    """Whether each turn of the loop has a tensor of its own: one that it computes, such as a loss."""
    return all(
        makes_new(value, context) or (isinstance(value, cst.Call) and context.value(value).scalar)
        for value in _definitions(tensor, context)
    )


def _has_comment(read: cst.Call, context: Context) -> bool:
    """Whether the call holds a comment that would be lost with it."""
    tensor = scalar_read(read, context)
    return tensor is not None and "#" in context.code(read).replace(context.code(tensor), "", 1)


def _bracketed(node: cst.BaseExpression, code: str) -> str:
    """The code in parentheses if it replaces something in parentheses: a keyword may stand right beside them."""
    return f"({code})" if node.lpar else code


def _is_torch(node: cst.BaseExpression, context: Context) -> bool:
    return isinstance(node, cst.Name) and context.qualified_name(node) == "torch"


def _last_name(node: cst.CSTNode) -> str:
    return node.attr.value if isinstance(node, cst.Attribute) else getattr(node, "value", "")
