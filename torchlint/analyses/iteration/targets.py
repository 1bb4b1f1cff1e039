"""What the target of a loop takes on: numbers that count, elements of tensors, items of anything else."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import TypeAlias

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.flow.guards import Role
from torchlint.semantics.knowledge import apis
from torchlint.semantics.knowledge.conventions.functions import BAR_CALL
from torchlint.semantics.names.bindings import Binder, dotted
from torchlint.semantics.names.loop_headers import walked
from torchlint.semantics.values.lattice import Kind
from torchlint.syntax.tree import Comprehension, descendants, descendants_in_scope, speaks_of

LoopNode: TypeAlias = "cst.For | cst.CompFor | cst.While"
Named: TypeAlias = "tuple[tuple[str, cst.BaseExpression], ...]"


_OF_OTHERS = frozenset(
    "items keys values parameters named_parameters buffers named_buffers modules named_modules children "
    "named_children split splitlines readlines listdir glob iterdir walk groups".split()
)


@dataclass(frozen=True, slots=True)
class Visit:
    """The names that a loop binds in each iteration.

    `counters` number the iterations; `elements` and `others` go with what the loop goes over. `count` is the
    number of iterations, where a `range` says it.
    """

    counters: frozenset[str] = frozenset()
    elements: Named = ()
    others: Named = ()
    count: cst.BaseExpression | None = None

    def __or__(self, other: Visit) -> Visit:
        """Both, as `zip` has it."""
        return Visit(
            self.counters | other.counters,
            self.elements + other.elements,
            self.others + other.others,
            self.count if self.count is not None else other.count,
        )

    @property
    def is_over_tensors(self) -> bool:
        """Whether the iterations are as many as a tensor has elements, or a number: not as many as a list has items."""
        return bool(self.elements) or self.count is not None or not self.others


def visit(loop: LoopNode, context: Context) -> Visit:
    """What the loop binds in each iteration; a `while` what it counts up or down by one."""
    return _counted(loop, context) if isinstance(loop, cst.While) else visit_of(loop.target, loop.iter, context)


def loops_around(node: cst.CSTNode, context: Context) -> Iterator[LoopNode]:
    """The loops in the same function each of whose turns runs the node, nearest first."""
    for guard in context.guards(node):
        if guard.role is Role.LOOP and isinstance(guard.node, (cst.For, cst.While)):
            yield guard.node
        elif guard.role is Role.EACH and isinstance(guard.node, (cst.CompFor, *Comprehension)):
            yield guard.node if isinstance(guard.node, cst.CompFor) else guard.node.for_in


def visit_of(target: cst.BaseExpression, iterated: cst.BaseExpression, context: Context) -> Visit:
    """What looping over the expression gives the names of the target."""
    if isinstance(iterated, cst.Call):
        found = _called(target, iterated, context)
        if found is not None:
            return found
    named = tuple((name, iterated) for name in sorted(names_in(target)))
    if is_surely_no_tensor(iterated) or not context.kinds.is_tensor(iterated):
        return Visit(others=named)
    return Visit(elements=named)


def rows_of(name: cst.Name, context: Context) -> list[cst.BaseExpression]:
    """What loops over it give the name, each an item as a whole; nothing where anything else binds it too."""
    found = []
    for binding in context.reaching(name):
        if binding.binder is not Binder.LOOP or binding.value is None:
            return []
        value, rest = walked(binding.value, binding.path)
        if rest:
            return []
        found.append(value)
    return found


def is_surely_no_tensor(node: cst.BaseExpression) -> bool:
    """Most loops go over these; it saves finding out what they hold."""
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value=method))):
            return method in _OF_OTHERS
    return isinstance(node, (cst.List, cst.Tuple, cst.Set, cst.Dict, cst.SimpleString, cst.ListComp))


def _called(target: cst.BaseExpression, call: cst.Call, context: Context) -> Visit | None:
    name = context.qualified_name(call.func) or ""
    given = [argument.value for argument in call.args if argument.keyword is None and not argument.star]
    parts = [element.value for element in target.elements] if isinstance(target, cst.Tuple) else []
    if name == "range":
        return _ranged(target, given)
    if name == "enumerate" and given and len(parts) == 2:
        inner = visit_of(parts[1], given[0], context)
        return replace(inner, counters=inner.counters | names_in(parts[0]))
    if name == "itertools.product" and len(given) == 1:  # with `repeat=`
        given = given * len(parts)
    if name in ("zip", "itertools.product") and parts and len(parts) == len(given):
        found = Visit()
        for part, item in zip(parts, given, strict=True):
            found |= visit_of(part, item, context)
        return found
    last = name.rpartition(".")[2]
    if last == "reversed" or BAR_CALL.suggests(last) or name in apis.PASS_THROUGH:
        return visit_of(target, given[0], context) if given else None
    if isinstance(call.func, cst.Attribute) and (call.func.attr.value == "unbind" or unpacks(call, context)):
        tensor = call.func.value if not name.startswith("torch.") else given[0] if given else None
        return visit_of(target, tensor, context) if tensor is not None else None
    return None


def unpacks(node: cst.BaseExpression, context: Context) -> bool:
    """`x.split(lengths)`: the rows that were packed, each as long as it is; a number says how much is done at once."""
    match node:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="split")), args=args):
            return any(context.kind(argument.value) is Kind.SEQUENCE for argument in args)
    return False


def _ranged(target: cst.BaseExpression, given: list[cst.BaseExpression]) -> Visit:
    if not given or (len(given) == 3 and abs(_sign(given[2])) != 1):
        return Visit()  # steps over chunks, not elements
    count = given[0] if len(given) == 1 or (len(given) == 3 and _sign(given[2]) < 0) else given[1]
    return Visit(counters=names_in(target), count=count)


def _sign(node: cst.BaseExpression) -> int:
    match node:
        case cst.Integer(value="1"):
            return 1
        case cst.UnaryOperation(operator=cst.Minus(), expression=cst.Integer(value="1")):
            return -1
    return 0


def _counted(loop: cst.While, context: Context) -> Visit:
    counted = set()
    for node in descendants_in_scope(loop.body):
        match node:
            case cst.AugAssign(
                target=cst.Name(value=name),
                operator=cst.AddAssign() | cst.SubtractAssign(),
                value=cst.Integer(value="1"),
            ) if context.frequencies.loop(node) is loop:
                counted.add(name)
    return Visit(counters=frozenset(counted))


def names_in(node: cst.CSTNode) -> frozenset[str]:
    """The names that an expression reads or binds: not those of attributes and keywords."""
    found: set[str] = set()
    labels: set[cst.CSTNode] = set()
    for part in descendants(node):
        if isinstance(part, cst.Attribute):
            labels.add(part.attr)
        elif isinstance(part, cst.Arg) and part.keyword is not None:
            labels.add(part.keyword)
        elif isinstance(part, cst.Name) and part not in labels:
            found.add(part.value)
    return frozenset(found)


def picks(node: cst.Subscript, counters: AbstractSet[str]) -> bool:
    """`t[i]`, `t[:, i + 1]`, `t[i:i + 1]`: the number of the iteration says which element."""
    return any(
        speaks_of(part.slice.value, counters) and not _cuts(part.slice.value, counters)
        if isinstance(part.slice, cst.Index)
        else isinstance(part.slice, cst.Slice) and picks_one(part.slice, counters)
        for part in node.slice
    )


def _cuts(index: cst.BaseExpression, counters: AbstractSet[str]) -> bool:
    """Whether the iteration says how much of something else is the index: `torch.randperm(n)[: length[i]]`."""
    return any(isinstance(part, cst.Slice) and speaks_of(part, counters) for part in descendants(index))


def picks_one(part: cst.Slice, counters: AbstractSet[str]) -> bool:
    """`i:i + 1`."""
    match part:
        case cst.Slice(
            lower=cst.Name(value=low),
            upper=cst.BinaryOperation(left=cst.Name(value=left), operator=cst.Add(), right=cst.Integer(value="1")),
        ):
            return low == left and low in counters
    return False


def parts_of(loop: LoopNode, context: Context) -> list[cst.CSTNode]:
    """What runs in each iteration."""
    if isinstance(loop, cst.For):
        return [loop.body]
    if isinstance(loop, cst.While):
        return [loop.test, loop.body]
    owner = owner_of(loop, context)
    inner = [] if loop.inner_for_in is None else [loop.inner_for_in]
    if isinstance(owner, cst.DictComp):
        return [*loop.ifs, *inner, owner.key, owner.value]
    assert isinstance(owner, (cst.ListComp, cst.SetComp, cst.GeneratorExp))
    return [*loop.ifs, *inner, owner.elt]


def owner_of(loop: LoopNode, context: Context) -> cst.CSTNode:
    """The comprehension that the `for` belongs to; a statement is its own."""
    owner: cst.CSTNode | None = loop
    while isinstance(owner, cst.CompFor):
        owner = context.parent(owner)
    assert isinstance(owner, (cst.For, cst.While, *Comprehension))
    return owner


def bound_by(node: cst.CSTNode) -> Iterator[str]:
    """The names, and attributes as `self.x`, that a statement or loop binds."""
    targets: list[cst.CSTNode] = []
    match node:
        case cst.Assign():
            targets = [target.target for target in node.targets]
        case cst.AnnAssign() | cst.NamedExpr() | cst.For() | cst.CompFor():
            targets = [node.target]
        case cst.AsName():
            targets = [node.name]
    while targets:
        target = targets.pop()
        if isinstance(target, (cst.Tuple, cst.List)):
            targets += [element.value for element in target.elements]
        elif isinstance(target, (cst.Name, cst.Attribute)):
            name = dotted(target)
            if name is not None:
                yield name
