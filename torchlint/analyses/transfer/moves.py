"""How a tensor made on the CPU gets to a device: what is done to it on the way, and where it goes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import libcst as cst

from torchlint.analyses.tensors.factories import Factory, Sameness, filled_with
from torchlint.semantics.context import Context
from torchlint.semantics.knowledge.apis import JOINING_FUNCTIONS
from torchlint.semantics.knowledge.conventions.values import DEVICE
from torchlint.semantics.names.bindings import Binder, Binding
from torchlint.semantics.values.lattice import Device, Kind
from torchlint.syntax.tree import descendants

# Methods that change the shape or make the same tensor again. What `expand` makes shares its elements: a move unshares.
_SHAPES = frozenset(
    "unsqueeze unsqueeze_ squeeze squeeze_ view reshape flatten unflatten ravel t t_ transpose transpose_ permute "
    "swapaxes swapdims movedim moveaxis contiguous repeat tile tril tril_ triu triu_ clone detach".split()
)
_SHARING = frozenset("expand expand_as broadcast_to view_as reshape_as".split())
_ENLARGING = frozenset("expand expand_as broadcast_to repeat tile".split())
_CASTS = frozenset("long int short byte char bool float double half bfloat16 type".split())
_DRAWS = frozenset("uniform_ normal_ random_ bernoulli_ exponential_ log_normal_ cauchy_ geometric_ bernoulli".split())
_ELEMENTWISE = frozenset(
    "add sub subtract mul multiply div divide true_divide floor_divide remainder fmod pow float_power neg negative abs "
    "absolute exp exp2 expm1 log log2 log10 log1p sqrt rsqrt square reciprocal clamp clip sin cos tan asin acos atan "
    "sinh cosh tanh sigmoid floor ceil round trunc sign eq ne lt le gt ge".split()
)
_COMPUTATIONS = frozenset(f"{name}{suffix}" for name in (*_ELEMENTWISE, "cumsum", "flip") for suffix in ("", "_"))
_FUNCTIONS = frozenset(
    f"torch.{name}" for name in "tril triu unsqueeze squeeze reshape flatten t transpose permute".split()
)
_ELEMENTWISE_FUNCTIONS = frozenset(f"torch.{name}" for name in _ELEMENTWISE)
_VARIABLE = "torch.autograd.Variable"
_LISTED = (cst.List, cst.Tuple, cst.Arg)
_SENDING = frozenset(f"torch.distributed.{name}" for name in "all_gather all_reduce broadcast reduce send recv".split())


@dataclass(frozen=True, slots=True)
class Destination:
    """Where a move goes, as code for `device=` and `dtype=`; `device` is empty where none can be given safely.

    `cast` is the call that is left when only the device is taken over. `node` is what names the device in the code,
    None for a constant. `like` says that the move makes the tensor like another one, `may_be_none` that the device may
    be `None`.
    """

    device: str
    dtype: str = ""
    cast: cst.Call | None = None
    node: cst.BaseExpression | None = None
    like: bool = False
    may_be_none: bool = False


@dataclass(frozen=True, slots=True)
class Move:
    """The call that moves what a factory made; `sameness` counts in what is done to it before.

    `is_direct` says that nothing is. `binding` is what the factory's statement gives a name, where the move is in
    another one, or the last of several statements that `is_shaped_before` says are in between. `is_joined` says that
    another tensor on the CPU is computed with it before.
    """

    call: cst.Call
    receiver: cst.BaseExpression
    destination: Destination
    sameness: Sameness
    is_direct: bool
    binding: Binding | None = None
    is_shaped_before: bool = False
    is_joined: bool = False

    @property
    def method(self) -> str:
        """`to`, `cuda`, `type_as` or `type`."""
        assert isinstance(self.call.func, cst.Attribute)
        return self.call.func.attr.value


def move(factory: Factory, context: Context, *, joins: bool = False) -> Move | None:
    """The move of what the factory makes: in the same expression, or by the next use of the name it is given.

    With `joins`, also where other tensors on the CPU are computed with it before.
    """
    way = _Way(factory.call, context, joins)
    found = _move(way, factory, context)
    return replace(found, is_joined=True) if found is not None and way.others else found


def _move(way: _Way, factory: Factory, context: Context) -> Move | None:
    found = way.climb(factory.call, factory.sameness)
    if isinstance(found, Move):
        return found
    is_kept = False
    while isinstance(found, tuple):
        sameness, top = found
        binding = _bound(top, context)
        use = _next_use(binding, context) if binding is not None else None
        if binding is None or use is None:
            return None
        found = way.climb(use, sameness)
        if isinstance(found, Move):
            is_moved = _leaves_nothing_behind(found.call, binding, context)
            return replace(found, binding=binding, is_shaped_before=is_kept) if is_moved else None
        if found is None or not _leaves_nothing_behind(found[1], binding, context):
            return None
        is_kept = True
    return None


def is_enlarged(moved: Move) -> bool:
    """Whether what is moved may have more elements than the factory made."""
    made = moved.binding.value if moved.binding is not None else None
    return any(
        isinstance(node, cst.Attribute) and node.attr.value in _ENLARGING
        for part in (moved.receiver, made)
        if part is not None
        for node in descendants(part)
    )


@dataclass(frozen=True, slots=True)
class _Way:
    """The way of what a factory makes through expressions, to where it is moved."""

    made: cst.Call
    context: Context
    joins: bool = False
    others: list[cst.BaseExpression] = field(default_factory=list)

    def climb(self, node: cst.BaseExpression, sameness: Sameness) -> Move | tuple[Sameness, cst.BaseExpression] | None:
        """Follow an expression outwards to a move, or to the statement that it is the value of."""
        start = node
        while True:
            parent = self.context.parent(node)
            match parent:
                case cst.Attribute(attr=cst.Name(value=name)):
                    call = self.context.parent(parent)
                    if not (isinstance(call, cst.Call) and call.func is parent):
                        if name not in ("T", "mT", "data"):
                            return None
                        node = parent
                        continue
                    destination = _destination(call, name, self.context)
                    if destination is not None:
                        return Move(call, node, destination, sameness, is_direct=node is start)
                    step = self._method(call, name, sameness)
                    if step is None:
                        return None
                    node, sameness = call, step
                case cst.Arg(keyword=None, star=""):
                    call = self.context.parent(parent)
                    step = self._function(call, parent, sameness) if isinstance(call, cst.Call) else None
                    if step is None:
                        return None
                    assert isinstance(call, cst.Call)
                    node, sameness = call, step
                case cst.BinaryOperation(left=left, right=right):
                    if not self._may_be_beside(right if left is node else left):
                        return None
                    node, sameness = parent, min(sameness, Sameness.ROUNDED)
                case cst.Comparison(comparisons=[cst.ComparisonTarget(comparator=other)]):
                    if not self._may_be_beside(other):
                        return None
                    node, sameness = parent, min(sameness, Sameness.ROUNDED)
                case cst.ComparisonTarget() if self.joins:
                    above = self.context.parent(parent)
                    assert isinstance(above, cst.Comparison)
                    if len(above.comparisons) > 1 or not self._may_be_beside(above.left):
                        return None
                    node, sameness = above, min(sameness, Sameness.ROUNDED)
                case cst.Element() if self.joins and (joined := self._joining(parent)) is not None:
                    node, sameness = joined, min(sameness, Sameness.ROUNDED)
                case cst.UnaryOperation(operator=cst.Minus() | cst.BitInvert()):
                    node, sameness = parent, min(sameness, Sameness.ROUNDED)
                case cst.Subscript(value=value) if value is node and _adds_axes(parent):
                    node = parent
                case cst.Assign() | cst.AnnAssign():
                    return sameness, node
                case _:
                    return None

    def _joining(self, first: cst.Element) -> cst.Call | None:
        """The `torch.cat([t, other])` of what stands first there, and beside it other tensors on the CPU."""
        call = next((above for above in self.context.ancestors(first) if not isinstance(above, _LISTED)), None)
        match call:
            case cst.Call(args=[cst.Arg(value=cst.List(elements=[one, *rest]) | cst.Tuple(elements=[one, *rest])), *_]):
                is_joined = one is first and self.context.qualified_name(call.func) in JOINING_FUNCTIONS
                values = [each.value for each in rest if isinstance(each, cst.Element)]
                if is_joined and len(values) == len(rest) and all(map(self._may_be_beside, values)):
                    return call
        return None

    def _may_be_beside(self, other: cst.BaseExpression) -> bool:
        """Whether it is a number, or, if that counts, another tensor on the CPU."""
        if self._is_number(other):
            return True
        value = self.context.value(other) if self.joins else None
        if value is None or value.kind is not Kind.TENSOR or value.device is not Device.CPU or not value.proven:
            return False
        self.others.append(other)
        return True

    def _function(self, call: cst.Call, argument: cst.Arg, sameness: Sameness) -> Sameness | None:
        """How alike the result is of a function that is given it: `Variable(t)`, `torch.triu(t)`, `torch.exp(t)`."""
        name = self.context.qualified_name(call.func)
        others = [other.value for other in call.args if other is not argument]
        if name in _ELEMENTWISE_FUNCTIONS:
            is_known = not self.context.has_unpacking(call) and all(map(self._is_number, others))
            return min(sameness, Sameness.ROUNDED) if is_known else None
        if call.args[0] is not argument:
            return None
        if name == _VARIABLE:
            # One that requires gradients is a leaf only before it is moved.
            wanted = self.context.argument(call, "requires_grad", 1)
            is_none = wanted is None or (isinstance(wanted, cst.Name) and wanted.value == "False")
            return sameness if is_none else None
        return sameness if name in _FUNCTIONS and not self.context.has_unpacking(call) else None

    def _method(self, call: cst.Call, name: str, sameness: Sameness) -> Sameness | None:
        """How alike the result is of a method called before the move; None for one that belongs on the CPU."""
        if name in _SHAPES:
            return sameness
        if name in _SHARING:
            return min(sameness, Sameness.ROUNDED)
        if name in _CASTS or (name == "to" and _is_cast(call, self.context)):
            return sameness if sameness is not Sameness.EXACT else Sameness.ROUNDED
        if name in _DRAWS:
            return Sameness.RANDOM
        if name == "zero_":
            return sameness if sameness is Sameness.RANDOM else Sameness.INTEGRAL
        if name == "fill_":
            filled = filled_with(self.context.argument(call, "value", 0), self.context)
            return sameness if sameness is Sameness.RANDOM else filled
        if name in _COMPUTATIONS and all(self._is_number(argument.value) for argument in call.args):
            return min(sameness, Sameness.ROUNDED)
        return None

    def _is_number(self, node: cst.BaseExpression) -> bool:
        """Whether this is a number of the host: what is computed from numbers, and from sizes given to the factory."""
        if self.context.kind(node) is Kind.NUMBER:
            return True
        match node:
            case cst.UnaryOperation(expression=inner):
                return self._is_number(inner)
            case cst.BinaryOperation(left=left, right=right):
                return self._is_number(left) and self._is_number(right)
            case cst.Attribute():
                return any(node.deep_equals(size) for size in self._sizes())
            case cst.Name():
                function = self.context.function(node)
                if self.context.kind(node) is Kind.UNKNOWN and isinstance(function, cst.FunctionDef):
                    self.context.elsewhere.callers(function)  # what they pass would tell
                key = ("host number", node, self.made)
                return self.context.kinds.settled(key, False, self._is_bound_to_number, node)  # noqa: FBT003
        return False

    def _is_bound_to_number(self, name: cst.Name) -> bool:
        for size in self._sizes():
            if isinstance(size, cst.Name) and size.value == name.value and self.context.holds_the_same(size, name):
                return True
        value = self.context.stands_for(name)
        return value is not None and self._is_number(value)

    def _sizes(self) -> Iterator[cst.Name | cst.Attribute]:
        """The names and attributes of which the factory's arguments are computed: it takes nothing but numbers."""
        waiting: list[cst.CSTNode] = [argument.value for argument in self.made.args if not argument.star]
        while waiting:
            match waiting.pop():
                case cst.UnaryOperation(expression=inner):
                    waiting.append(inner)
                case cst.BinaryOperation(left=left, right=right):
                    waiting += (left, right)
                case cst.Name() | cst.Attribute() as size:
                    yield size


def _is_cast(call: cst.Call, context: Context) -> bool:
    return len(call.args) == 1 and context.kind(call.args[0].value) is Kind.DTYPE


def _adds_axes(node: cst.Subscript) -> bool:
    """`t[None, :]`, which only changes the shape."""
    for element in node.slice:
        match element.slice:
            case cst.Index(value=cst.Name(value="None") | cst.Ellipsis()):
                continue
            case cst.Slice(lower=None, upper=None, step=None):
                continue
        return False
    return True


# The two-statement form


def _bound(value: cst.BaseExpression, context: Context) -> Binding | None:
    """The binding that gives the expression's value a name of its own."""
    statement = context.parent(value)
    match statement:
        case (
            cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))])
            | cst.AnnAssign(target=cst.Name(value=name))
        ):
            for binding in context.names.scope_of(statement).bindings.get(name, ()):
                if binding.node is statement and binding.binder is Binder.ASSIGN:
                    return binding
    return None


def _next_use(binding: Binding, context: Context) -> cst.Name | None:
    """The first use of the name, if it holds nothing else there and runs as often as the binding."""
    uses = context.names.uses(binding)
    first = next((use for use in uses if context.tree.place(use) > binding.effect), None)
    if first is None or context.binders(first) != (binding.node,):
        return None
    if context.names.scope_of(first) is not context.names.scope_of(binding.node):
        return None
    if context.function(first) is not context.function(binding.node):
        return None
    return first if context.loop(first) is context.loop(binding.node) else None


def _leaves_nothing_behind(taker: cst.BaseExpression, binding: Binding, context: Context) -> bool:
    """Whether nothing needs the tensor as it was: what it becomes takes its name, or nobody else uses that."""
    match context.parent(taker):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]) if name == binding.name:
            return True
    return len(context.names.uses(binding)) == 1


# Destinations


def _destination(call: cst.Call, method: str, context: Context) -> Destination | None:
    """Where `t.cuda()`, `t.to(…)`, `t.type_as(…)` or `t.type(…)` moves it; None if it does not to an accelerator."""
    if context.has_unpacking(call):
        return None
    match method:
        case "cuda":
            return _cuda(context.argument(call, "device", 0), context)
        case "to":
            return _to(call, context)
        case "type_as":
            return _like(context.argument(call, "other", 0), call, context)
        case "type":
            given = context.argument(call, "dtype", 0)
            return Destination("") if given is not None and is_cuda_type(given, context) else None
    return None


def is_cuda_type(node: cst.BaseExpression, context: Context) -> bool:
    """Whether this may be a type of tensors on the GPU: `torch.cuda.FloatTensor if cuda else torch.FloatTensor`."""
    match node:
        case cst.IfExp(body=body, orelse=orelse):
            return is_cuda_type(body, context) or is_cuda_type(orelse, context)
        case cst.SimpleString():
            name = str(node.evaluated_value)
        case cst.Name() if context.binders(node):
            key = ("type on the GPU", node)
            settle = partial(_is_bound_to_cuda_type, context=context)
            return context.kinds.settled(key, False, settle, node)  # noqa: FBT003
        case _:
            name = context.qualified_name(node) or ""
    return name.startswith("torch.cuda.") and name.endswith("Tensor")


def _is_bound_to_cuda_type(name: cst.Name, context: Context) -> bool:
    values = context.bound_to(name)
    return values.every(lambda value: isinstance(value, (cst.Attribute, cst.IfExp, cst.SimpleString))) and values.some(
        lambda value: is_cuda_type(value, context)
    )


def _cuda(device: cst.BaseExpression | None, context: Context) -> Destination:
    """`.cuda(None)` is the current GPU, `device=None` the CPU: only what is no None can be taken over."""
    if device is None:
        return Destination('"cuda"')
    if isinstance(device, cst.Integer):
        return Destination(f'"cuda:{device.value}"')
    value = context.value(device)
    if value.kind in (Kind.DEVICE, Kind.STRING) and value.proven and value.device is Device.ACCELERATOR:
        return Destination(context.code(device), node=device)
    return Destination("", may_be_none=True)


def _to(call: cst.Call, context: Context) -> Destination | None:
    positional = [argument.value for argument in call.args if argument.keyword is None]
    keywords = {argument.keyword.value: argument.value for argument in call.args if argument.keyword is not None}
    first = keywords.get("device", positional[0] if positional else None)
    if first is None:
        return None
    value = context.value(first)
    if value.kind is Kind.TENSOR:
        return _like(first, call, context)
    if value.kind is Kind.UNKNOWN and (_is_index(first, context) or _has_a_device(first, context)):
        return Destination("", like=True)
    if value.kind not in (Kind.DEVICE, Kind.STRING, Kind.NUMBER) or value.device is Device.CPU:
        return None
    if "memory_format" in keywords or (value.kind is Kind.DEVICE and _is_known_by_moves_alone(first, context)):
        return Destination("")
    dtype = keywords.get("dtype", positional[1] if len(positional) > 1 else None)
    if dtype is None:
        return Destination(context.code(first), node=first)
    if isinstance(dtype, cst.Name) and dtype.value in ("True", "False"):
        return Destination("")
    code = context.code(dtype)
    cast = call.with_changes(args=[cst.Arg(dtype)], whitespace_before_args=cst.SimpleWhitespace(""))
    return Destination(context.code(first), code, cast, first)


def _is_known_by_moves_alone(node: cst.BaseExpression, context: Context) -> bool:
    """Whether nothing but what is moved there says that a name holds a device: it may be a tensor all the same."""
    return (
        isinstance(node, cst.Name)
        and not DEVICE.suggests(node.value)
        and not any(context.kinds.binding(binding) for binding in context.reaching(node))
    )


def _like(other: cst.BaseExpression | None, call: cst.Call, context: Context) -> Destination | None:
    if other is None or context.device(other) is Device.CPU:
        return None
    if not is_plain(other) or not isinstance(other, (cst.Name, cst.Attribute)):
        return Destination("", like=True)
    code = context.code(other)
    return Destination(f"{code}.device", f"{code}.dtype", call, other, like=True)


def _is_index(node: cst.BaseExpression, context: Context) -> bool:
    """Whether this goes with a range as an index elsewhere, `t[range(n), x]`, so that it is a tensor, or an array."""
    if not isinstance(node, cst.Name):
        return False
    return any(_is_beside_a_range(use, context) for use in context.readers(node))


def _has_a_device(node: cst.BaseExpression, context: Context) -> bool:
    """Whether its own device is asked for elsewhere, `x.device`, or it is sent to other processes: a tensor it is then.

    Nothing else that a tensor can be moved to has a device, or can be sent.
    """
    if not isinstance(node, cst.Name):
        return False
    return any(_shows_a_tensor(use, context) for use in context.readers(node))


def _shows_a_tensor(use: cst.Name, context: Context) -> bool:
    match above := context.parent(use):
        case cst.Attribute(attr=cst.Name(value="device")):
            return True
        case cst.Arg():
            call = context.parent(above)
            return isinstance(call, cst.Call) and context.qualified_name(call.func) in _SENDING
    return False


def _is_beside_a_range(use: cst.Name, context: Context) -> bool:
    index = context.parent(use)
    element = context.parent(index) if isinstance(index, cst.Index) else None
    subscript = context.parent(element) if isinstance(element, cst.SubscriptElement) else None
    if not isinstance(subscript, cst.Subscript):
        return False
    others = (part.slice.value for part in subscript.slice if isinstance(part.slice, cst.Index))
    return any(
        isinstance(other, cst.Call) and context.qualified_name(other.func) in ("range", "torch.arange")
        for other in others
    )


def is_plain(node: cst.BaseExpression | None) -> bool:
    """Whether it does not matter when the expression is evaluated, as long as its names hold the same."""
    match node:
        case None | cst.Name() | cst.SimpleString() | cst.Integer():
            return True
        case cst.Attribute(value=value):
            return is_plain(value)
        case cst.Call(func=cst.Attribute(value=cst.Name(), attr=cst.Name(value="device")), args=args):
            return all(is_plain(argument.value) for argument in args)
        case cst.FormattedString(parts=parts):
            return all(is_plain(part.expression) for part in parts if isinstance(part, cst.FormattedStringExpression))
    return False
