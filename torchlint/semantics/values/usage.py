"""What is done with a name or an attribute, which tells what it holds."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import libcst as cst

from torchlint.semantics.knowledge import apis
from torchlint.semantics.knowledge.conventions.packages import ARRAY_PACKAGE
from torchlint.semantics.knowledge.conventions.values import DTYPE_NAME
from torchlint.semantics.knowledge.torch_signatures import FUNCTIONAL, FUNCTIONS, METHODS
from torchlint.semantics.names.bindings import Binder, dotted, last_part, parameters
from torchlint.semantics.values.batch_walks import BatchWalks
from torchlint.semantics.values.lattice import UNKNOWN, Device, Kind, Rank, Value, mapping_of, tensor
from torchlint.syntax.literals import integer
from torchlint.syntax.tree import descendants

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchlint.semantics.names.bindings import Binding, Names
    from torchlint.semantics.names.classes import Classes
    from torchlint.syntax.tree import Tree

# What a batch that is a mapping is used for, and what lists and models have too.
_OF_A_MAPPING = frozenset("items keys values get update pop append extend insert **x".split())
# A loop takes batches of it, such a loop calls it with them, and something is moved to it.
WALKED, CALLED, PLACE, GPU = "for batch in x", "x(batch)", "to x: ", "cuda(x)"
# A function of torch makes a tensor there.
MADE_ON = "torch(device=x)"
# It is spread over the keywords of a call, as a mapping alone can be.
SPREAD = "**x"
_OF_OTHERS_TOO = frozenset(
    [*"sort split index count copy to cpu cuda float half .device .dtype .data".split(), WALKED, CALLED, GPU, MADE_ON]
)
# It computes with itself, and more is computed with that: `-x.log()`.
COMPUTED = "x.log() + y"
# The backward pass begins at the sum of its values: `sum(x.values()).backward()`.
SUMMED = "sum(x.values()).backward()"
# A part that a computed number picks is used as a tensor alone can be.
PART = "torch(x[i])"
# The mark of a use that tells nothing.
_TELLS_NOTHING = "otherwise"
_NAMES = (cst.Name, cst.Attribute)
LISTS = ("list", "tuple", "List", "Tuple", "Sequence", "Iterable")


class Evidence:
    """How names and attributes are used in one module."""

    def __init__(self, tree: Tree, names: Names, classes: Classes) -> None:
        self.tree = tree
        self.names = names
        self.classes = classes
        self.walks = BatchWalks(tree, names)
        self._uses: dict[tuple[str, tuple[Binding, ...]], frozenset[str]] = {}
        self._marks: dict[str, list[tuple[cst.Name, str]]] = {}
        self._marks_by_binding: dict[str, dict[Binding, set[str]]] = {}

    def of_name(self, node: cst.Name, bindings: tuple[Binding, ...]) -> Value:
        """What the uses of a name say wherever it holds what these bindings give it."""
        uses = self.uses(node, bindings)
        value = _told_by(uses)
        if (
            not value
            and "x[:, i]" in uses
            and "tensor(x)" not in uses
            and not ARRAY_PACKAGE.suggests_any(self.names.imported)
        ):
            return tensor(rank=Rank.CALLED)
        return value

    def is_one_of_tensors(self, node: cst.Name, bindings: tuple[Binding, ...]) -> bool:
        """Whether parts of the name, picked by a number, are used as tensors alone can be: `x[i].log()`."""
        return node.value in self._in_parts and PART in self.uses(node, bindings)

    def goes_backward(self, node: cst.Name) -> bool:
        """Whether the backward pass begins at what the name holds: at a tensor of one element."""
        return node.value in self._ends_of_graphs and "backward()" in self.uses(node, self.names.reaching(node))

    @cached_property
    def _ends_of_graphs(self) -> frozenset[str]:
        """The names that stand in a call of `backward`, as its owner or what it is given: few do."""
        found: set[str] = set()
        for call in self.tree.of(cst.Call):
            match call.func:
                case cst.Attribute(value=owner, attr=cst.Name(value=method)) if method in apis.BACKWARD_METHODS:
                    first = call.args[0].value if call.args else owner
                    found.update(name.value for name in (owner, first) if isinstance(name, cst.Name))
        return frozenset(found)

    def likely(self, node: cst.Name, bindings: tuple[Binding, ...]) -> Value:
        """What a name likely holds that no use proves to hold anything."""
        return _likely_by(self.uses(node, bindings))

    def likely_of_attribute(self, class_: cst.ClassDef, name: str) -> Value:
        """What `self.name` likely holds, as for a name."""
        return _likely_by(self.uses_of_attribute(class_, name))

    def of_attribute(self, class_: cst.ClassDef, name: str) -> Value:
        """What the uses of `self.name` in a class say."""
        return _told_by(self.uses_of_attribute(class_, name))

    def uses(self, node: cst.Name, bindings: tuple[Binding, ...]) -> frozenset[str]:
        """The methods called on the name wherever it holds what these bindings give it, and other marks of use."""
        key = (node.value, bindings)
        found = self._uses.get(key)
        if found is None:
            marked = self._marked_by_binding(node.value)
            found = self._uses[key] = frozenset(
                mark for binding in bindings for mark in marked.get(binding, ()) if not self.is_an_object(binding)
            )
        return found

    def is_an_object(self, binding: Binding) -> bool:
        """Whether a class of another library makes it: it may have any method."""
        match binding.value:
            case cst.Call(func=func) if binding.binder is Binder.ASSIGN and not binding.path:
                library, _, name = (self.names.qualified(func) or "").rpartition(".")
                return bool(library) and name[:1].isupper() and library.partition(".")[0] != "torch"
        return False

    def _marked_by_binding(self, name: str) -> dict[Binding, set[str]]:
        """The marks of a name's uses, by what may have bound it there."""
        found = self._marks_by_binding.get(name)
        if found is None:
            found = self._marks_by_binding[name] = {}
            for use, mark in self._marked(name):
                for binding in self.names.reaching(use):
                    found.setdefault(binding, set()).add(mark)
        return found

    def uses_of_attribute(self, class_: cst.ClassDef, name: str) -> frozenset[str]:
        """The methods called on `self.name` in a class, marked as those on a name are."""
        return self._by_attribute.get((class_, name), frozenset())

    def shows_a_tensor(self, method: str, call: cst.Call) -> bool:
        """Whether a method that only tensors have is called as on a tensor."""
        return self.marked(method, call) != _TELLS_NOTHING

    def _is_a_tensors_own(self, method: str, call: cst.Call) -> bool:
        mark = self.marked(method, call)
        return mark == COMPUTED or (method in apis.TENSOR_ONLY_METHODS and mark != _TELLS_NOTHING)

    def marked(self, method: str, call: cst.Call) -> str:
        """The method, with a mark where its use makes it a tensor's own: `size(i)`, `view(i, j)`, `cpu().numpy()`.

        Where a method that only tensors have is called as none of a tensor can be, it tells nothing.
        """
        if method in apis.TENSOR_ONLY_METHODS:
            return self._marked_as_a_tensors(method, call)
        if method == "size" and call.args:
            return "size(i)"
        if method in METHODS and _names_a_dimension(call):
            return "dim=i"
        if method == "view" and (len(call.args) > 1 or (call.args and integer(call.args[0].value) is not None)):
            return "view(i)"
        outer = self.tree.parent(call)
        if method in apis.TENSOR_METHODS_IN_ARITHMETIC and not call.args and _is_computed_with(outer):
            return COMPUTED
        if method == "cpu" and isinstance(outer, cst.Attribute) and outer.attr.value in ("numpy", "tolist", "item"):
            return "cpu().numpy"
        return method

    def _marked_as_a_tensors(self, method: str, call: cst.Call) -> str:
        given = [argument for argument in call.args if argument.keyword is None]
        match method, given:
            case "backward", []:
                has_gradient = any(found.keyword and found.keyword.value == "gradient" for found in call.args)
                return method if has_gradient else "backward()"
            case "backward", [cst.Arg(value=cst.Name(value="None")), *_]:
                return "backward()"
            case "backward", [cst.Arg(value=cst.Call(func=func)), *_]:
                return method if self._makes_a_gradient(func) else _TELLS_NOTHING
            case "backward", _:
                return _TELLS_NOTHING  # of a gradient, or by an engine of a loss
            case "expand", [] | [cst.Arg(star="", value=cst.Name())]:
                return _TELLS_NOTHING  # a node of a tree does so, too
            case _, [cst.Arg(value=cst.SimpleString() | cst.FormattedString()), *_]:
                return _TELLS_NOTHING
        if method in apis.TENSOR_METHODS_BY_DIMENSION:
            by_name = any(found.keyword and found.keyword.value == "dim" for found in call.args)
            return method if by_name or (given and integer(given[0].value) is not None) else _TELLS_NOTHING
        most = 0 if method in apis.TENSOR_METHODS_OF_NOTHING else 1 if method in apis.TENSOR_METHODS_OF_ONE else None
        return method if most is None or len(given) <= most else _TELLS_NOTHING

    def _makes_a_gradient(self, func: cst.BaseExpression) -> bool:
        """`torch.ones_like`, and no `torch.mean`, which makes the loss that an engine takes."""
        root, _, name = (self.names.qualified(func) or "").partition(".")
        return root == "torch" and (name in apis.FACTORIES or name.endswith("_like"))

    def _marked(self, name: str) -> list[tuple[cst.Name, str]]:
        """The uses of a name that tell what it holds, each with its mark: the method called on it, or another."""
        found = self._marks.get(name)
        if found is None:
            found = self._marks[name] = [
                (use, mark) for use, by in self._by_name.get(name, ()) for mark in self._told(by)
            ]
        return found

    @cached_property
    def _in_parts(self) -> frozenset[str]:
        """The names with parts that a computed number picks, and that are used so."""
        return frozenset(
            name
            for name, uses in self._by_name.items()
            if any(by == PART or isinstance(by, _GivenPart) for _, by in uses)
        )

    @cached_property
    def _by_name(self) -> dict[str, list[tuple[cst.Name, str | cst.Call | _GivenPart | _Summed]]]:
        """For each name its uses with their marks; with the call where the name, or a part, is its first argument."""
        found: dict[str, list[tuple[cst.Name, str | cst.Call | _GivenPart | _Summed]]] = {}
        for call in self.tree.of(cst.Call):
            match call.func:
                case cst.Attribute(value=cst.Name() as name, attr=cst.Name(value=method)):
                    found.setdefault(name.value, []).append((name, self.marked(method, call)))
                case cst.Attribute(value=cst.Subscript(value=cst.Name() as name) as part, attr=cst.Name(value=method)):
                    if method in apis.TENSOR_ONLY_METHODS and has_several_axes(part):
                        found.setdefault(name.value, []).append((name, "torch(x)"))
                    elif _picks_one(part) and self._is_a_tensors_own(method, call):
                        found.setdefault(name.value, []).append((name, PART))
            match call.args:
                case [cst.Arg(value=cst.Subscript(value=cst.Name() as name) as part, star=""), *_] if _picks_one(part):
                    found.setdefault(name.value, []).append((name, _GivenPart(call)))
            summed = _summed(call)
            if summed is not None:
                found.setdefault(summed.value, []).append((summed, _Summed(call)))
            for name in _given(call.args[0].value) if call.args else ():
                found.setdefault(name.value, []).append((name, call))
            for gpu in _gpus(call):
                found.setdefault(gpu.value, []).append((gpu, GPU))
            for argument in call.args:
                if argument.star == "**" and isinstance(argument.value, cst.Name):
                    found.setdefault(argument.value.value, []).append((argument.value, SPREAD))
        for subscript in self.tree.of(cst.Subscript):
            if isinstance(subscript.value, cst.Name) and has_several_axes(subscript):
                found.setdefault(subscript.value.value, []).append((subscript.value, "x[:, i]"))
        for attribute in self.tree.of(cst.Attribute):
            if isinstance(attribute.value, cst.Name) and attribute.attr.value in apis.TENSOR_ATTRIBUTES:
                found.setdefault(attribute.value.value, []).append((attribute.value, f".{attribute.attr.value}"))
        for used, mark in (*self._in_walks(), *self._placed):
            if isinstance(used, cst.Name):
                found.setdefault(used.value, []).append((used, mark))
        return found

    def _in_walks(self) -> Iterator[tuple[cst.CSTNode, str]]:
        """What loops over batches go over, and what they call, each with its mark."""
        for walked in self.walks.walked:
            yield walked, WALKED
        for called in self.walks.called:
            yield called, CALLED

    @cached_property
    def _placed(self) -> list[tuple[cst.BaseExpression, str]]:
        """What something is moved to or made on, with a mark of what that is."""
        found: list[tuple[cst.BaseExpression, str]] = []
        for call in self.tree.of(cst.Call):
            found += ((place, f"{PLACE}{moved}") for place, moved in _places(call))
            for argument in call.args:
                is_device = argument.keyword is not None and argument.keyword.value == "device"
                if is_device and isinstance(argument.value, _NAMES) and _is_of_torch(self.names.qualified(call.func)):
                    found.append((argument.value, MADE_ON))
        return found

    def _told(self, by: str | cst.Call | _GivenPart | _Summed) -> Iterator[str]:
        """The mark itself, or those of a first argument of the call."""
        if isinstance(by, str):
            yield by
            return
        if isinstance(by, _Summed):
            if self._ends_a_graph(by.call):
                yield SUMMED
            return
        if isinstance(by, _GivenPart):
            if by.call.args[0].keyword is None and self._takes_a_tensor(by.call.func):
                yield PART
            return
        if isinstance(by.func, cst.Name) and by.func.value == "isinstance" and self._tells_lists_apart(by):
            yield "or a list"
        if by.args[0].keyword is None:
            if self._makes_a_tensor(by.func):
                yield "tensor(x)"
            if self._takes_a_tensor(by.func):
                yield "torch(x)"
            if isinstance(by.func, cst.Attribute) and self._goes_backward(by, by.func):
                yield "backward()"

    @cached_property
    def _by_attribute(self) -> dict[tuple[cst.ClassDef, str], frozenset[str]]:
        found: dict[tuple[cst.ClassDef, str], set[str]] = {}
        for call in self.tree.of(cst.Call):
            match call.func:
                case cst.Attribute(
                    value=cst.Attribute(value=cst.Name() as owner, attr=cst.Name(value=name)),
                    attr=cst.Name(value=method),
                ):
                    class_ = self.classes.self_class(owner)
                    if class_ is not None:
                        found.setdefault((class_, name), set()).add(self.marked(method, call))
        for used, mark in (*self._in_walks(), *self._placed):
            match used:
                case cst.Attribute(value=cst.Name() as owner, attr=cst.Name(value=name)):
                    class_ = self.classes.self_class(owner)
                    if class_ is not None:
                        found.setdefault((class_, name), set()).add(mark)
        return {key: frozenset(methods) for key, methods in found.items()}

    def _tells_lists_apart(self, call: cst.Call) -> bool:
        """`isinstance(x, list)`, or `if isinstance(x, Tensor): return …`, behind which `x` is something else."""
        if len(call.args) != 2:
            return False
        if any(isinstance(part, cst.Name) and part.value in LISTS for part in descendants(call.args[1].value)):
            return True
        test = self.tree.parent(call)
        if not isinstance(test, cst.If) or not isinstance(test.body, cst.IndentedBlock):
            return False
        last = test.body.body[-1]
        return isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], cst.Return)

    def _goes_backward(self, call: cst.Call, func: cst.Attribute) -> bool:
        """`accelerator.backward(loss)`, `self.manual_backward(loss)`."""
        if func.attr.value == "manual_backward":
            return True
        return (
            func.attr.value == "backward"
            and self.marked("backward", call) == _TELLS_NOTHING
            and not apis.ENGINE_PACKAGES.isdisjoint(self.names.imported)
        )

    def _makes_a_tensor(self, func: cst.BaseExpression) -> bool:
        """Whether a tensor is made of what is given, which therefore is none: `torch.FloatTensor(x[0, :])`."""
        root, _, name = (self.names.qualified(func) or "").partition(".")
        return root == "torch" and (name in apis.LEGACY_TENSORS or name == "from_numpy")

    def _takes_a_tensor(self, func: cst.BaseExpression) -> bool:
        """Whether the first argument of a torch function can only be a tensor."""
        if not isinstance(func, (cst.Name, cst.Attribute)):
            return False
        if isinstance(func, cst.Name) and self._uses_what_it_is_given(func):
            return True
        root, _, name = (self.names.qualified(func) or "").partition(".")
        if root != "torch" or name in apis.FACTORIES or name in apis.TAKE_OTHERS:
            return False
        functional = name.removeprefix("nn.functional.")
        return name in FUNCTIONS or functional in FUNCTIONAL or functional in apis.FUNCTIONAL_BUILTINS

    def _ends_a_graph(self, made: cst.Call) -> bool:
        """Whether the backward pass begins at what a call gives, or at the name that it is given."""
        given = self.tree.parent(made)
        for call in self.tree.of(cst.Call):
            match call.func:
                case cst.Attribute(value=owner, attr=cst.Name(value=method)) if method in apis.BACKWARD_METHODS:
                    begins = [owner, *(argument.value for argument in call.args[:1])]
                    if isinstance(owner, cst.Call):  # `scaler.scale(loss).backward()`
                        begins += [argument.value for argument in owner.args[:1]]
                    if made in begins or any(
                        isinstance(name, cst.Name)
                        and any(binding.node is given and not binding.path for binding in self.names.reaching(name))
                        for name in begins
                    ):
                        return True
        return False

    def _uses_what_it_is_given(self, func: cst.Name) -> bool:
        """Whether a function or lambda of this file takes a tensor first: whatever happens there, it does what shows.

        What it does in a branch may be for a tensor, where it may be given something else, too.
        """
        bindings = self.names.reaching(func) if func.value in self._functions else ()
        if len(bindings) != 1:
            return False
        function = bindings[0].node if bindings[0].binder is Binder.FUNCTION else bindings[0].value
        if not isinstance(function, cst.FunctionDef | cst.Lambda) or bindings[0].path:
            return False
        first = next(parameters(function), None)
        if first is None or first.star in ("*", "**"):
            return False
        marks = frozenset(
            by
            for use, by in self._by_name.get(first.name.value, ())
            if isinstance(by, str) and self._is_always_so(use, function, first)
        )
        return _told_by(marks).kind is Kind.TENSOR and not marks.isdisjoint({*apis.TENSOR_ONLY_METHODS, COMPUTED})

    @cached_property
    def _functions(self) -> frozenset[str]:
        """What the functions and lambdas of the file are called."""
        found = {function.name.value for function in self.tree.of(cst.FunctionDef)}
        for lambda_ in self.tree.of(cst.Lambda):
            match self.tree.parent(lambda_):
                case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]):
                    found.add(name)
        return frozenset(found)

    def _is_always_so(self, use: cst.Name, function: cst.FunctionDef | cst.Lambda, parameter: cst.Param) -> bool:
        if [binding.node for binding in self.names.reaching(use)] != [parameter]:
            return False
        for above in self.tree.ancestors(use):
            if above is function:
                return True
            if isinstance(above, cst.If | cst.IfExp | cst.BooleanOperation | cst.Try | cst.FunctionDef | cst.Lambda):
                return False
        return False


class _Summed(NamedTuple):
    """A call of `sum` that goes over the values of the name."""

    call: cst.Call


def _summed(call: cst.Call) -> cst.Name | None:
    """The `x` of `sum(x.values())`, and of `sum(w * v for v in x.values())`."""
    match call:
        case cst.Call(func=cst.Name(value="sum"), args=[cst.Arg(value=over), *_]):
            if isinstance(over, cst.GeneratorExp | cst.ListComp) and not over.for_in.ifs:
                over = over.for_in.iter
            match over:
                case cst.Call(func=cst.Attribute(value=cst.Name() as name, attr=cst.Name(value="values" | "items"))):
                    return name
    return None


class _GivenPart(NamedTuple):
    """A call whose first argument is a part of the name that a computed number picks."""

    call: cst.Call


def _is_computed_with(around: cst.CSTNode | None) -> bool:
    """Whether what stands around a call computes with its result, itself or by a method that it calls on it."""
    return isinstance(around, cst.UnaryOperation | cst.BinaryOperation | cst.Attribute)


def is_computed(index: cst.BaseExpression) -> bool:
    """`i`, `i + 1`: one number for each of several parts, and no key that is literal."""
    match index:
        case cst.Name(value=name):
            return name not in ("None", "True", "False")
        case cst.BinaryOperation(operator=cst.Add() | cst.Subtract(), left=left, right=right):
            return is_computed(left) and integer(right) is not None
    return False


def _picks_one(node: cst.Subscript) -> bool:
    match node.slice:
        case [cst.SubscriptElement(slice=cst.Index(value=index))]:
            return is_computed(index)
    return False


def _told_by(methods: frozenset[str]) -> Value:
    """What only something with these methods can be."""
    if "backward()" in methods:
        return tensor(rank=Rank.USED, scalar=True)
    if SUMMED in methods:
        return mapping_of(tensor(rank=Rank.USED, scalar=True))
    if methods & apis.TENSOR_ONLY_METHODS or methods & {
        "size(i)",
        "view(i)",
        "cpu().numpy",
        "torch(x)",
        "dim=i",
        COMPUTED,
    }:
        return tensor(rank=Rank.USED)
    if {"zero_grad", "step"} <= methods:
        return Value(Kind.OPTIMIZER, rank=Rank.USED)
    if methods & {"parameters", "named_parameters", "eval", "named_modules", "children", "modules"}:
        return Value(Kind.MODULE, rank=Rank.USED)
    if "train" in methods and methods & {"cuda", "to", "state_dict", "load_state_dict", "zero_grad"}:
        return Value(Kind.MODULE, rank=Rank.USED)
    if "size" in methods:
        return tensor(rank=Rank.CALLED)
    return UNKNOWN


def _names_a_dimension(call: cst.Call) -> bool:
    """`x.sum(dim=1)`: NumPy calls it `axis`, and where else there is a `dim`, it has a name."""
    return any(
        argument.keyword is not None and argument.keyword.value == "dim" and integer(argument.value) is not None
        for argument in call.args
    )


def _likely_by(methods: frozenset[str]) -> Value:
    """What loops over batches do with it, and what is moved to it, makes likely."""
    if WALKED in methods:
        return Value(Kind.LOADER, rank=Rank.CALLED)
    if CALLED in methods:
        return Value(Kind.MODULE, rank=Rank.CALLED)
    # One tensor may go where another is: `x.to(y)`.
    if MADE_ON in methods or sum(method.startswith(PLACE) for method in methods) > 1:
        return Value(Kind.DEVICE, Device.MAYBE, rank=Rank.CALLED)
    if GPU in methods:
        return Value(Kind.DEVICE, Device.ACCELERATOR, rank=Rank.CALLED)
    return UNKNOWN


def _places(call: cst.Call) -> Iterator[tuple[cst.Name | cst.Attribute, str]]:
    """The names of what something is moved to, with the name of that: a device, unless they speak of a type."""
    match call:
        case cst.Call(func=cst.Attribute(value=moved, attr=cst.Name(value="to")), args=[cst.Arg(value=to), *_]):
            if isinstance(to, _NAMES) and not DTYPE_NAME.suggests(last_part(to) or ""):
                yield to, dotted(moved.func if isinstance(moved, cst.Call) else moved) or type(moved).__name__


def _is_of_torch(name: str | None) -> bool:
    return name is not None and name.startswith("torch.")


def _gpus(call: cst.Call) -> Iterator[cst.Name]:
    """The names of GPUs, by number or otherwise: `x.cuda(rank)`, `set_device(rank)`, `device_ids=[rank]`."""
    match call:
        case cst.Call(func=cst.Attribute(attr=cst.Name(value="cuda" | "set_device")), args=[cst.Arg(value=given)]):
            if isinstance(given, cst.Name):
                yield given
            return
    for argument in call.args:
        if argument.keyword is not None and argument.keyword.value == "device_ids":
            match argument.value:
                case cst.List(elements=[cst.Element(value=cst.Name() as given)]):
                    yield given


def speak_for_a_tensor(uses: frozenset[str]) -> bool:
    """Whether uses of something that is likely a tensor make it sure."""
    if uses & _OF_A_MAPPING:
        return False
    return any(use in METHODS or not (use.isidentifier() or use.startswith(PLACE)) for use in uses - _OF_OTHERS_TOO)


def has_several_axes(node: cst.Subscript) -> bool:
    """`x[:, i]`, `x[..., 0]`, `x[None, i]`: what only tensors and arrays take."""
    return len(node.slice) > 1 and any(
        isinstance(part.slice, cst.Slice)
        or (isinstance(part.slice, cst.Index) and isinstance(part.slice.value, cst.Ellipsis))
        or (
            isinstance(part.slice, cst.Index)
            and isinstance(part.slice.value, cst.Name)
            and part.slice.value.value == "None"
        )
        for part in node.slice
    )


def _given(node: cst.BaseExpression) -> Iterator[cst.Name]:
    """The names that must hold a tensor for the expression to be one: `x` itself, and `x[:, i]` in arithmetic."""
    match node:
        case cst.Name():
            yield node
        case cst.Subscript(value=cst.Name() as name) if has_several_axes(node):
            yield name
        case cst.BinaryOperation(left=left, right=right):
            for side in (left, right):
                if not isinstance(side, cst.Name):  # a number would do as well
                    yield from _given(side)
