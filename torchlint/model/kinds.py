"""Evaluates expressions to abstract values, on demand and without running anything."""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.model import tables
from torchlint.model.classes import AttributeSet, Classes, class_attribute, is_static
from torchlint.model.names import Binder, Binding, Names, dotted, parameters
from torchlint.model.torch_table import FUNCTIONAL, FUNCTIONS, METHODS, MODULES, OPTIMIZERS
from torchlint.model.tree import BRANCHES, SCOPES, Tree, descendants, descendants_in_scope
from torchlint.model.values import (
    DTYPE,
    NDARRAY,
    NONE,
    NUMBER,
    STRING,
    TENSOR,
    UNKNOWN,
    Device,
    Kind,
    Value,
    join,
    join_device,
    sequence,
    sequence_of,
    tensor,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from torchlint.model.calls import Calls

_DEEPEST = 60
_NUMBER_BUILTINS = frozenset(
    "int float bool len round complex hash id ord isinstance issubclass callable hasattr divmod pow".split()
)
_STRING_BUILTINS = frozenset("str repr format chr ascii hex bin oct input".split())
_NUMBER_METHODS = frozenset("item count index find bit_length total_seconds".split())
_STRING_METHODS = frozenset("join format strip split lower upper replace startswith endswith encode decode".split())
_TUPLE_MODULES = frozenset("LSTM GRU RNN RNNBase".split())
_DTYPES = frozenset(
    "float32 float float64 double float16 half bfloat16 int8 int16 short int32 int int64 long uint8 bool complex64 "
    "complex128 cfloat cdouble float8_e4m3fn float8_e5m2".split()
)
_DTYPE_METHODS = frozenset("float half double bfloat16 int long short byte bool char".split())
_ANNOTATIONS: dict[str, Value] = {
    "torch.Tensor": TENSOR,
    "torch.nn.Parameter": TENSOR,
    "torch.LongTensor": TENSOR,
    "torch.FloatTensor": TENSOR,
    "torch.BoolTensor": TENSOR,
    "torch.IntTensor": TENSOR,
    "torch.nn.Module": Value(Kind.MODULE, qualified="torch.nn.Module"),
    "torch.device": Value(Kind.DEVICE, Device.MAYBE),
    "torch.dtype": DTYPE,
    "torch.optim.Optimizer": Value(Kind.OPTIMIZER),
    "torch.utils.data.DataLoader": Value(Kind.LOADER),
    "torch.utils.data.Dataset": Value(Kind.DATASET),
    "numpy.ndarray": NDARRAY,
    "numpy.array": NDARRAY,
    "int": NUMBER,
    "float": NUMBER,
    "bool": NUMBER,
    "str": STRING,
}
_CONSTANTS = {"None": NONE, "True": NUMBER, "False": NUMBER}
_CONTAINERS = frozenset("List list Sequence Iterable Iterator Collection Set set FrozenSet".split())


class Kinds:
    """The values of expressions in one module."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, text: str) -> None:
        self.tree = tree
        self.names = names
        self.classes = classes
        self.calls: Calls | None = None  # set by the context: calls and kinds need each other
        self._values: dict[cst.CSTNode, Value] = {}
        self._active: dict[cst.CSTNode, int] = {}
        self._assumed: dict[cst.CSTNode, tuple[Value, int]] = {}
        self._floor = _DEEPEST + 1
        self._followed: set[cst.CSTNode] = set()
        self._text = text
        self._handlers: dict[type[cst.CSTNode], Callable[..., Value]] = {
            cst.Name: self._name,
            cst.Attribute: self._attribute,
            cst.Call: self._call,
            cst.Subscript: self._subscript,
            cst.BinaryOperation: self._binary,
            cst.UnaryOperation: self._unary,
            cst.Comparison: self._comparison,
            cst.BooleanOperation: self._boolean,
            cst.IfExp: self._conditional,
            cst.NamedExpr: lambda node: self.value(node.value),
            cst.Await: lambda node: self.value(node.expression),
            cst.SimpleString: self._string,
            cst.ConcatenatedString: lambda _node: STRING,
            cst.FormattedString: self._formatted,
            cst.Integer: lambda _node: NUMBER,
            cst.Float: lambda _node: NUMBER,
            cst.Tuple: self._tuple,
            cst.List: self._tuple,
            cst.Dict: self._dict,
            cst.ListComp: self._comprehension,
            cst.SetComp: self._comprehension,
            cst.GeneratorExp: self._comprehension,
            cst.DictComp: self._dict_comprehension,
            cst.FunctionDef: self._function,
        }

    @cached_property
    def mentions_accelerator(self) -> bool:
        """Whether anything in the file speaks of an accelerator."""
        text = self._text.lower()
        return any(map(text.__contains__, tables.ACCELERATOR_PARTS)) or bool(tables.ACCELERATOR_WORDS.search(text))

    @cached_property
    def is_whole_script(self) -> bool:
        """Whether the module is a program that builds what it runs: it makes a model or an optimizer and loops."""
        makes = {
            self.names.qualified(call.func) or ""
            for call in self.tree.of(cst.Call)
            if not self.tree.enclosing_class(call)
        }
        return any(
            (name[:9] == "torch.nn." and name[9:] in MODULES) or name.startswith("torch.optim.") for name in makes
        ) and bool(self.tree.of(cst.For) or self.tree.of(cst.While))

    @cached_property
    def changes_default_device(self) -> bool:
        """Whether factories without `device=` may give a tensor elsewhere than on the CPU."""
        if re.search(r"set_default_(device|tensor_type)|DeviceContext|init_on_device|init_empty_weights", self._text):
            return True
        return any(self._is_device_call(item.item) for with_ in self.tree.of(cst.With) for item in with_.items)

    def _is_device_call(self, node: cst.CSTNode) -> bool:
        """`torch.device(…)`, or a name for it."""
        if isinstance(node, cst.Name):
            values = [binding.value for binding in self.names.reaching(node) if binding.binder is Binder.ASSIGN]
            return any(isinstance(value, cst.Call) and self._is_device_call(value) for value in values)
        return isinstance(node, cst.Call) and self.names.qualified(node.func) == "torch.device"

    def value(self, node: cst.CSTNode) -> Value:
        """What the expression may hold.

        Expressions may depend on themselves, through loops and calls. Whatever was found under the assumption that an
        expression still open is unknown is kept only until that one is known: the answer must not depend on who asked
        first.
        """
        found = self._values.get(node)
        if found is not None:
            return found
        if node in self._active:
            self._floor = min(self._floor, self._active[node])
            return UNKNOWN
        assumed = self._assumed.get(node)
        if assumed is not None:
            self._floor = min(self._floor, assumed[1])
            return assumed[0]
        depth = len(self._active)
        if depth >= _DEEPEST:
            self._floor = -1
            return UNKNOWN
        self._active[node] = depth
        outer_floor, self._floor = self._floor, _DEEPEST + 1
        try:
            result = self._evaluate(node)
        finally:
            del self._active[node]
            inner_floor, self._floor = self._floor, outer_floor
        if inner_floor >= depth or depth == 0:
            self._values[node] = result
            if self._assumed:
                self._assumed = {key: kept for key, kept in self._assumed.items() if kept[1] < depth}
        else:
            self._floor = min(self._floor, inner_floor)
            self._assumed[node] = (result, inner_floor)
        return result

    def _evaluate(self, node: cst.CSTNode) -> Value:
        handler = self._handlers.get(type(node))
        return handler(node) if handler is not None else UNKNOWN

    # Names and attributes

    def _name(self, node: cst.Name) -> Value:
        name = node.value
        bindings = self.names.reaching(node)
        if not bindings:
            if name in _CONSTANTS:
                return _CONSTANTS[name]
            return self._named(self.names.qualified(node)) or self._conventional(name)
        qualified = self.names.qualified(node)
        if qualified and any(binding.binder is Binder.IMPORT for binding in bindings):
            return self._named(qualified)
        value = self._narrowed(node, join([self.binding(binding) for binding in bindings]))
        if value.kind in (Kind.UNKNOWN, Kind.NONE):
            value = self._evidence_of(node, bindings) or value
        if value.kind in (Kind.UNKNOWN, Kind.NONE):
            value = self._conventional(name) or value
        if value.kind is Kind.TENSOR and not value.proven and not value.batch and tables.MODULE_NAME.match(name):
            # `model = build().to(device)`: what moves is more often a tensor, but not under this name.
            value = self._conventional(name).on(value.device)
        return value

    def _narrowed(self, node: cst.Name, value: Value) -> Value:
        """What `isinstance(x, torch.Tensor)` or `torch.is_tensor(x)` around the use says."""
        child: cst.CSTNode = node
        for above in self.tree.ancestors(node):
            kind = type(above)
            if kind in SCOPES:
                break
            if kind in BRANCHES and child is above.body:  # type: ignore[attr-defined]
                shown = self._shown_by(above.test, node.value)  # type: ignore[attr-defined]
                if shown:
                    return shown if value.kind is not shown.kind else value
            child = above
        return value

    def _shown_by(self, test: cst.CSTNode, name: str) -> Value:
        match test:
            case cst.BooleanOperation(left=left, operator=cst.And(), right=right):
                return self._shown_by(left, name) or self._shown_by(right, name)
            case cst.Call(
                func=cst.Name(value="isinstance"), args=[cst.Arg(value=cst.Name(value=tested)), cst.Arg(value=kind)]
            ):
                if tested == name:
                    return _ANNOTATIONS.get(self.names.qualified(kind) or "", _LIST if _is_list(kind) else UNKNOWN)
            case cst.Call(func=func, args=[cst.Arg(value=cst.Name(value=tested))]):
                if tested == name and self.names.qualified(func) == "torch.is_tensor":
                    return TENSOR
        return UNKNOWN

    def binding(self, binding: Binding) -> Value:
        """What one binding gives its name."""
        match binding.binder:
            case Binder.PARAMETER:
                return self._parameter(binding)
            case Binder.FUNCTION:
                return Value(Kind.FUNCTION, definition=binding.node)
            case Binder.CLASS:
                return Value(Kind.CLASS, definition=binding.node)
            case Binder.ANNOTATION if isinstance(binding.node, cst.AnnAssign):
                return self.annotation(binding.node.annotation.annotation)
            case Binder.AUGMENTED if isinstance(binding.node, cst.AugAssign):
                return self._augmented(binding.node)
            case Binder.ASSIGN | Binder.LOOP | Binder.CONTEXT if binding.value is not None:
                return self._assigned(binding)
        return UNKNOWN

    def _assigned(self, binding: Binding) -> Value:
        assert binding.value is not None
        if isinstance(binding.node, cst.AnnAssign):
            annotated = self.annotation(binding.node.annotation.annotation)
            if annotated:
                return annotated
        value = self.value(binding.value)
        if binding.binder is Binder.LOOP:
            value = self.turn(value)
            if not value and self.is_loader_like(binding.value):
                value = _BATCH
        value = self.part(value, binding.path)
        if value.kind is Kind.SEQUENCE and (value.item is None or not value.item) and not binding.path:
            value = self._grown(binding, value)
        return value

    def _grown(self, binding: Binding, value: Value) -> Value:
        """`[]` with what is appended to it."""
        scope = self.names.scope_of(binding.node)
        added = [
            self.value(call.args[0].value)
            for call in self._appends.get(binding.name, ())
            if self.names.scope_of(call) is scope and call.args
        ]
        return sequence_of(join(added)) if added else value

    @cached_property
    def _appends(self) -> dict[str, list[cst.Call]]:
        found: dict[str, list[cst.Call]] = {}
        for call in self.tree.of(cst.Call):
            match call.func:
                case cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value="append")):
                    found.setdefault(name, []).append(call)
        return found

    def part(self, value: Value, path: tuple[int, ...]) -> Value:
        """What unpacking leads to."""
        for step in path:
            if step >= 0 and step < len(value.items):
                value = value.items[step]
            elif step == -1:
                value = sequence_of(self.item(value))
            else:
                value = self.item(value)
        return value

    def turn(self, value: Value) -> Value:
        """What one turn of a loop over the value gives: of a batch a sample, where unpacking it gives its parts."""
        if value.kind is Kind.TENSOR and value.batch:
            return tensor(value.device, proven=value.proven)
        return self.item(value)

    def item(self, value: Value) -> Value:
        """What indexing or unpacking the value gives."""
        match value.kind:
            case Kind.LOADER:
                return _BATCH
            case Kind.TENSOR:
                if value.batch:
                    return value
                return tensor(value.device, proven=value.proven, scalar=value.scalar)
            case Kind.NDARRAY:
                return NDARRAY
            case Kind.STRING:
                return STRING
            case Kind.MODULE:
                return Value(Kind.MODULE, value.device, proven=value.proven)
            case Kind.SEQUENCE | Kind.MAPPING:
                return value.item if value.item is not None else UNKNOWN
        return UNKNOWN

    def _augmented(self, node: cst.AugAssign) -> Value:
        return self._arithmetic(self.value(node.target), self.value(node.value))

    def _attribute(self, node: cst.Attribute) -> Value:
        name = node.attr.value
        qualified = self.names.qualified(node)
        if qualified:
            named = self._named(qualified)
            if named:
                return named
        if isinstance(node.value, cst.Name):
            class_ = self.classes.self_class(node.value)
            if class_ is not None:
                return self._self_attribute(class_, name)
        owner = self.value(node.value)
        if owner.kind is Kind.TENSOR:
            code = tables.TENSOR_ATTRIBUTES.get(name)
            if code is not None:
                return self._coded(code, owner)
            return owner if not owner.proven and name in tables.OUTPUT_FIELDS else UNKNOWN
        if owner.kind in (Kind.MODULE, Kind.OBJECT) and isinstance(owner.definition, cst.ClassDef):
            return self._instance_attribute(owner.definition, name)
        if owner.kind is Kind.MODULE and name in ("weight", "bias"):
            return tensor(owner.device)
        if owner.kind is Kind.MODULE and name == "module":
            return Value(Kind.MODULE, owner.device)
        if name == "device":
            return Value(Kind.DEVICE, owner.device if owner.kind is Kind.MODULE else Device.MAYBE, proven=False)
        if name == "shape":
            return sequence_of(NUMBER)
        if name in ("ndim", "dtype"):
            return NUMBER if name == "ndim" else DTYPE.likely()
        return self._conventional(name)

    def _self_attribute(self, class_: cst.ClassDef, name: str) -> Value:
        value = self._instance_attribute(class_, name)
        if value.kind in (Kind.UNKNOWN, Kind.NONE):
            value = self._from_methods(self._self_uses.get((class_, name), frozenset())) or value
        if value.kind in (Kind.UNKNOWN, Kind.NONE):
            value = self._conventional(name) or value
        return value

    def _instance_attribute(self, class_: cst.ClassDef, name: str) -> Value:
        sets = self.classes.attribute_sets(class_, name)
        if sets:
            values = [self._attribute_set(entry) for entry in sets if not entry.augmented or len(sets) == 1]
            return join(values)
        method = self.classes.method(class_, name)
        if method is not None:
            if any(_last(item.decorator) in ("property", "cached_property") for item in method.decorators):
                return self.returns(method)
            return Value(Kind.FUNCTION, definition=method)
        body = class_attribute(self.names, class_, name)
        return self.value(body) if body is not None else UNKNOWN

    def _attribute_set(self, entry: AttributeSet) -> Value:
        if isinstance(entry.node, cst.AnnAssign):
            annotated = self.annotation(entry.node.annotation.annotation)
            if annotated:
                return annotated
        if entry.value is None:
            return UNKNOWN
        value = self.part(self.value(entry.value), entry.path)
        return _off_cpu(value) if isinstance(entry.node, cst.Call) else value  # a buffer moves with its module

    def _named(self, qualified: str | None) -> Value:
        if not qualified:
            return UNKNOWN
        if qualified.startswith("torch."):
            last = qualified[6:]
            if last in _DTYPES:
                return DTYPE
            if last == "Tensor" or (last.startswith("nn.") and last[3:] in MODULES):
                return Value(Kind.CLASS, qualified=qualified)
        if qualified.startswith(("numpy.pi", "math.pi", "math.inf", "numpy.inf", "numpy.nan")):
            return NUMBER
        return UNKNOWN

    def _conventional(self, name: str) -> Value:
        """What the name alone makes likely."""
        if tables.DEVICE_NAME.search(name):
            return Value(Kind.DEVICE, Device.MAYBE, proven=False)
        if tables.LOADER_NAME.search(name):
            return Value(Kind.LOADER, proven=False)
        if tables.MODULE_NAME.match(name) and not _is_class_name(name):
            return Value(Kind.MODULE, proven=False, scalar=tables.LOSS_NAME.search(name) is not None)
        if name in ("optimizer", "optim", "opt_g", "opt_d", "optimizer_g", "optimizer_d") or name.endswith(
            "_optimizer"
        ):
            return Value(Kind.OPTIMIZER, proven=False)
        return UNKNOWN

    # Evidence: what is done with a name tells what it holds

    @cached_property
    def _uses(self) -> dict[str, list[tuple[cst.Name, str]]]:
        """For each name its uses as the receiver of a method call, with the method."""
        found: dict[str, list[tuple[cst.Name, str]]] = {}
        for call in self.tree.of(cst.Call):
            match call.func:
                case cst.Attribute(value=cst.Name() as name, attr=cst.Name(value=method)):
                    found.setdefault(name.value, []).append((name, self._told(method, call)))
                case cst.Attribute(value=cst.Subscript(value=cst.Name() as name) as part, attr=cst.Name(value=method)):
                    if method in tables.TENSOR_ONLY_METHODS and has_several_axes(part):
                        found.setdefault(name.value, []).append((name, "torch(x)"))
            if isinstance(call.func, cst.Name) and call.func.value == "isinstance" and self._tells_lists_apart(call):
                for name in _given(call.args[0].value):
                    found.setdefault(name.value, []).append((name, "or a list"))
            if call.args and call.args[0].keyword is None and self._takes_a_tensor(call.func):
                for name in _given(call.args[0].value):
                    found.setdefault(name.value, []).append((name, "torch(x)"))
        for subscript in self.tree.of(cst.Subscript):
            if isinstance(subscript.value, cst.Name) and has_several_axes(subscript):
                found.setdefault(subscript.value.value, []).append((subscript.value, "x[:, i]"))
        for attribute in self.tree.of(cst.Attribute):
            if isinstance(attribute.value, cst.Name) and attribute.attr.value in tables.TENSOR_ATTRIBUTES:
                found.setdefault(attribute.value.value, []).append((attribute.value, f".{attribute.attr.value}"))
        return found

    def _tells_lists_apart(self, call: cst.Call) -> bool:
        """`isinstance(x, list)`, or `if isinstance(x, Tensor): return …`, behind which `x` is something else."""
        if len(call.args) != 2:
            return False
        if any(isinstance(part, cst.Name) and part.value in _LISTS for part in descendants(call.args[1].value)):
            return True
        test = self.tree.parent(call)
        if not isinstance(test, cst.If) or not isinstance(test.body, cst.IndentedBlock):
            return False
        last = test.body.body[-1]
        return isinstance(last, cst.SimpleStatementLine) and isinstance(last.body[-1], cst.Return)

    def _takes_a_tensor(self, func: cst.BaseExpression) -> bool:
        """Whether the first argument of a torch function can only be a tensor."""
        if not isinstance(func, (cst.Name, cst.Attribute)):
            return False
        root, _, name = (self.names.qualified(func) or "").partition(".")
        if root != "torch" or name in tables.FACTORIES or name in tables.TAKE_OTHERS:
            return False
        functional = name.removeprefix("nn.functional.")
        return name in FUNCTIONS or functional in FUNCTIONAL or functional in tables.FUNCTIONAL_BUILTINS

    def is_tensor(self, node: cst.CSTNode) -> bool:
        """Whether the expression surely holds a tensor: by what it is made of or, where that is only likely, by use."""
        value = self.value(node)
        if value.kind is not Kind.TENSOR:
            return False
        if isinstance(node, cst.Name) and "or a list" in self._used_as(node, self.names.reaching(node)):
            return self._narrowed(node, UNKNOWN).kind is Kind.TENSOR
        if value.proven:
            return True
        match node:
            case cst.Name():
                bindings = self.names.reaching(node)
                uses = self._used_as(node, bindings)
                if bindings and all(self._gives_a_tensor(binding) for binding in bindings):
                    return True
            case cst.Attribute(value=cst.Name() as owner, attr=cst.Name(value=name)):
                class_ = self.classes.self_class(owner)
                uses = self._self_uses.get((class_, name), frozenset()) if class_ is not None else frozenset()
            case cst.Subscript(value=owner):
                return has_several_axes(node) or (not _is_key(node) and self.is_tensor(owner))
            case cst.BinaryOperation(left=left, right=right):
                return self.is_tensor(left) or self.is_tensor(right)
            case _:
                return False
        if uses & _OF_A_MAPPING:
            return False
        return any(use in METHODS or not use.isidentifier() for use in uses - _OF_OTHERS_TOO)

    def _gives_a_tensor(self, binding: Binding) -> bool:
        if binding.path or binding.value is None or binding.binder not in (Binder.ASSIGN, Binder.LOOP):
            return False
        if binding.value in self._followed or self.binding(binding).kind is not Kind.TENSOR:
            return False
        self._followed.add(binding.value)
        try:
            return self.is_tensor(binding.value)
        finally:
            self._followed.discard(binding.value)

    @cached_property
    def _self_uses(self) -> dict[tuple[cst.ClassDef, str], frozenset[str]]:
        found: dict[tuple[cst.ClassDef, str], set[str]] = {}
        for call in self.tree.of(cst.Call):
            match call.func:
                case cst.Attribute(
                    value=cst.Attribute(value=cst.Name() as owner, attr=cst.Name(value=name)),
                    attr=cst.Name(value=method),
                ):
                    class_ = self.classes.self_class(owner)
                    if class_ is not None:
                        found.setdefault((class_, name), set()).add(self._told(method, call))
        return {key: frozenset(methods) for key, methods in found.items()}

    def _evidence_of(self, node: cst.Name, bindings: tuple[Binding, ...]) -> Value:
        uses = self._used_as(node, bindings)
        value = self._from_methods(uses)
        if not value and "x[:, i]" in uses and not self.names.imported & tables.ARRAY_PACKAGES:
            return tensor(proven=False)
        return value

    def _used_as(self, node: cst.Name, bindings: tuple[Binding, ...]) -> frozenset[str]:
        """The methods called on the name wherever it holds what these bindings give it, and other marks of use."""
        return frozenset(
            method
            for use, method in self._uses.get(node.value, ())
            if any(binding in bindings for binding in self.names.reaching(use))
        )

    def _told(self, method: str, call: cst.Call) -> str:
        """The method, with a mark where its use makes it a tensor's own: `size(i)`, `view(i, j)`, `cpu().numpy()`."""
        if method == "size" and call.args:
            return "size(i)"
        if method == "view" and (len(call.args) > 1 or (call.args and _integer(call.args[0].value) is not None)):
            return "view(i)"
        outer = self.tree.parent(call)
        if method == "cpu" and isinstance(outer, cst.Attribute) and outer.attr.value in ("numpy", "tolist", "item"):
            return "cpu().numpy"
        return method

    @staticmethod
    def _from_methods(methods: frozenset[str]) -> Value:
        if methods & tables.TENSOR_ONLY_METHODS or methods & {"size(i)", "view(i)", "cpu().numpy", "torch(x)"}:
            return TENSOR
        if {"zero_grad", "step"} <= methods:
            return Value(Kind.OPTIMIZER)
        if methods & {"parameters", "named_parameters", "eval", "named_modules", "children", "modules"}:
            return Value(Kind.MODULE)
        if "train" in methods and methods & {"cuda", "to", "state_dict", "load_state_dict", "zero_grad"}:
            return Value(Kind.MODULE)
        if "size" in methods:
            return tensor(proven=False)
        return UNKNOWN

    # Parameters and functions

    def _parameter(self, binding: Binding) -> Value:
        parameter = binding.node
        assert isinstance(parameter, cst.Param)
        function = self.tree.function_of_parameter(parameter)
        if parameter.annotation is not None:
            annotated = self.annotation(parameter.annotation.annotation)
            if parameter.star == "*":
                return sequence_of(annotated)
            if parameter.star == "**":
                return Value(Kind.MAPPING, item=annotated)
            if annotated.kind is Kind.MODULE and _is_class_name(parameter.name.value):
                return Value(Kind.CLASS, qualified=annotated.qualified)  # `Model: nn.Module` stands for a class
            if annotated:
                return annotated
        if function is None or parameter.star in ("*", "**"):
            return UNKNOWN
        owner = self.classes.owner(function)
        first = next(parameters(function), None) is parameter
        if owner is not None and first and isinstance(function, cst.FunctionDef) and not is_static(function):
            return self.instance(owner)
        value = self._from_callers(function, parameter)
        if value:
            return value
        if owner is not None and function is self.classes.methods(owner).get("forward"):  # noqa: SIM102 - two questions
            if self.classes.is_module(owner) and parameter.default is None:
                return tensor(proven=False)
        if parameter.default is not None and not isinstance(parameter.default, cst.Name):
            default = self.value(parameter.default)
            if default.kind in (Kind.NUMBER, Kind.STRING):
                return _overridable(default).likely()
        return UNKNOWN

    def _from_callers(self, function: cst.FunctionDef | cst.Lambda, parameter: cst.Param) -> Value:
        if self.calls is None or isinstance(function, cst.Lambda):
            return UNKNOWN
        values = []
        for call in self.calls.callers(function):
            argument = self.calls.argument_for(call, function, parameter)
            if argument is None:
                return UNKNOWN
            value = self.value(argument)
            values.append(_overridable(value) if argument is parameter.default else value)
        known = [value for value in values if value]
        # A caller elsewhere may pass something else: what callers here agree on is likely, unless only they can call.
        if not known or len(known) < len(values):
            return join(known).likely() if known and len({value.kind for value in known}) == 1 else UNKNOWN
        return join(known)

    def instance(self, class_: cst.ClassDef) -> Value:
        """An instance of a class of this module."""
        if self.classes.is_module(class_):
            return Value(Kind.MODULE, definition=class_)
        if self.classes.is_optimizer(class_):
            return Value(Kind.OPTIMIZER, definition=class_)
        if self.classes.is_dataset(class_):
            return Value(Kind.DATASET, Device.CPU, definition=class_)
        bases = {base for base in self.classes.lineage(class_) if isinstance(base, str)}
        if bases & tables.LOADERS:
            return Value(Kind.LOADER, definition=class_)
        return Value(Kind.OBJECT, definition=class_)

    def annotation(self, node: cst.CSTNode) -> Value:
        """What an annotation promises."""
        match node:
            case cst.SimpleString():
                text = node.evaluated_value
                try:
                    parsed = cst.parse_expression(text) if isinstance(text, str) else None
                except cst.ParserSyntaxError:
                    return UNKNOWN
                plain = dotted(parsed)
                return TENSOR if plain in ("torch.Tensor", "Tensor") else UNKNOWN
            case cst.Name(value="Tensor"):
                return TENSOR
            case cst.BinaryOperation(left=left, operator=cst.BitOr(), right=right):
                return self._optional([left, right])
            case cst.Subscript(value=outer, slice=parts):
                inner = [part.slice.value for part in parts if isinstance(part.slice, cst.Index)]
                last = _last(outer)
                if last in ("Optional", "Union", "Annotated", "Final", "ClassVar"):
                    return self._optional(inner if last == "Union" else inner[:1])
                if last in _CONTAINERS and inner:
                    return sequence_of(self.annotation(inner[0]))
                if last in ("Tuple", "tuple"):
                    if len(inner) == 2 and isinstance(inner[1], cst.Ellipsis):
                        return sequence_of(self.annotation(inner[0]))
                    return sequence(*(self.annotation(part) for part in inner))
                if last in ("Dict", "dict", "Mapping") and len(inner) == 2:
                    return Value(Kind.MAPPING, item=self.annotation(inner[1]))
                return UNKNOWN
        qualified = self.names.qualified(node)
        if qualified in _ANNOTATIONS:
            return _ANNOTATIONS[qualified]
        if qualified and qualified.startswith("torch.nn.") and qualified[9:] in MODULES:
            return Value(Kind.MODULE, qualified=qualified)
        if isinstance(node, cst.Name):
            value = self.value(node)
            if value.kind is Kind.CLASS and isinstance(value.definition, cst.ClassDef):
                return self.instance(value.definition)
        return UNKNOWN

    def _optional(self, parts: list[cst.BaseExpression]) -> Value:
        values = [self.annotation(part) for part in parts if not (isinstance(part, cst.Name) and part.value == "None")]
        if all(values) and len({value.kind for value in values}) == 1:
            return values[0]
        return UNKNOWN

    def returns(self, function: cst.FunctionDef) -> Value:
        """What a call of the function gives."""
        if function.returns is not None:
            annotated = self.annotation(function.returns.annotation)
            if annotated:
                return annotated
        return self.value(function)

    def _function(self, function: cst.FunctionDef) -> Value:
        values: list[Value] = []
        for node in descendants_in_scope(function.body):
            if isinstance(node, cst.Return):
                values.append(self.value(node.value) if node.value is not None else NONE)
            elif isinstance(node, cst.Yield) and isinstance(node.value, cst.BaseExpression):
                return sequence_of(self.value(node.value))
        return join([value for value in values if value.kind is not Kind.NONE])

    # Operators and literals

    def _arithmetic(self, left: Value, right: Value) -> Value:
        kinds = {left.kind, right.kind}
        if Kind.TENSOR in kinds:
            if kinds & {Kind.STRING, Kind.SEQUENCE, Kind.MAPPING, Kind.DEVICE}:
                return UNKNOWN
            operands = [value for value in (left, right) if value.kind is Kind.TENSOR]
            unknown = Kind.UNKNOWN in kinds
            return tensor(
                join_device([value.device for value in operands]),
                proven=any(value.proven for value in operands) if unknown else all(value.proven for value in operands),
                scalar=all(value.scalar for value in operands) and not unknown,
            )
        if Kind.NDARRAY in kinds:
            return NDARRAY
        if kinds == {Kind.NUMBER}:
            return NUMBER
        if left.kind is Kind.STRING:
            return STRING
        if left.kind is Kind.SEQUENCE and right.kind in (Kind.NUMBER, Kind.SEQUENCE):
            if left.items and right.items:
                return sequence(*left.items, *right.items)
            return sequence_of(
                join([self.item(left), self.item(right)]) if right.kind is Kind.SEQUENCE else self.item(left)
            )
        return UNKNOWN

    def _binary(self, node: cst.BinaryOperation) -> Value:
        return self._arithmetic(self.value(node.left), self.value(node.right))

    def _unary(self, node: cst.UnaryOperation) -> Value:
        return NUMBER if isinstance(node.operator, cst.Not) else self.value(node.expression)

    def _comparison(self, node: cst.Comparison) -> Value:
        if len(node.comparisons) != 1:
            return UNKNOWN
        target = node.comparisons[0]
        if isinstance(target.operator, (cst.Is, cst.IsNot, cst.In, cst.NotIn)):
            return NUMBER
        left, right = self.value(node.left), self.value(target.comparator)
        if Kind.STRING in (left.kind, right.kind):
            return NUMBER
        return self._arithmetic(left, right)

    def _boolean(self, node: cst.BooleanOperation) -> Value:
        return join([self.value(node.left), self.value(node.right)])

    def _conditional(self, node: cst.IfExp) -> Value:
        return join([self.value(node.body), self.value(node.orelse)])

    def _string(self, node: cst.SimpleString) -> Value:
        text = node.evaluated_value
        if isinstance(text, str):
            if text.startswith(("cuda", "mps", "xpu", "hpu", "npu")):
                return Value(Kind.STRING, Device.ACCELERATOR)
            if text == "cpu":
                return Value(Kind.STRING, Device.CPU)
        return STRING

    def _formatted(self, node: cst.FormattedString) -> Value:
        first = node.parts[0] if node.parts else None
        if isinstance(first, cst.FormattedStringText) and first.value.startswith("cuda"):
            return Value(Kind.STRING, Device.ACCELERATOR)
        return STRING

    def _tuple(self, node: cst.Tuple | cst.List) -> Value:
        if any(isinstance(element, cst.StarredElement) for element in node.elements):
            return sequence_of(UNKNOWN)
        return sequence(*(self.value(element.value) for element in node.elements))

    def _dict(self, node: cst.Dict) -> Value:
        values = [self.value(element.value) for element in node.elements if isinstance(element, cst.DictElement)]
        return Value(Kind.MAPPING, item=join(values))

    def _comprehension(self, node: cst.ListComp | cst.GeneratorExp | cst.SetComp) -> Value:
        return sequence_of(self.value(node.elt))

    def _dict_comprehension(self, node: cst.DictComp) -> Value:
        return Value(Kind.MAPPING, item=self.value(node.value))

    def _subscript(self, node: cst.Subscript) -> Value:
        owner = self.value(node.value)
        index = node.slice[0].slice if len(node.slice) == 1 else None
        match owner.kind:
            case Kind.TENSOR:
                if isinstance(index, cst.Index) and isinstance(index.value, cst.SimpleString):
                    return owner.likely()
                return tensor(owner.device, proven=owner.proven)
            case Kind.SEQUENCE:
                if isinstance(index, cst.Slice):
                    return sequence_of(self.item(owner))
                place = _integer(index.value) if isinstance(index, cst.Index) else None
                if place is not None and owner.items and -len(owner.items) <= place < len(owner.items):
                    return owner.items[place]
                return self.item(owner)
            case Kind.MAPPING | Kind.MODULE:
                return self.item(owner)
            case Kind.NDARRAY:
                return NDARRAY
            case Kind.STRING:
                return STRING
        return UNKNOWN

    # Calls

    def _call(self, node: cst.Call) -> Value:
        qualified = self.names.qualified(node.func)
        if qualified is not None:
            value = self._library_call(node, qualified)
            if value is not None:
                return value
        if isinstance(node.func, cst.Attribute):
            value = self._method_call(node, node.func)
            if value:
                return value
        called = self.value(node.func)
        if called.kind is Kind.CLASS and isinstance(called.definition, cst.ClassDef):
            return self._constructed(node, self.instance(called.definition))
        if called.kind is Kind.CLASS and called.qualified.startswith("torch.nn."):
            return self._constructed(node, Value(Kind.MODULE, qualified=called.qualified))
        if called.kind is Kind.FUNCTION and isinstance(called.definition, cst.FunctionDef):
            return self.returns(called.definition)
        if called.kind is Kind.MODULE:
            return self._module_result(called)
        return UNKNOWN

    def _constructed(self, node: cst.Call, value: Value) -> Value:
        """A module built here lives on the CPU as long as the file speaks of nothing else."""
        if value.kind is Kind.MODULE and not self.mentions_accelerator and self.tree.enclosing_class(node) is None:
            return value.on(Device.CPU)
        return value

    def _module_result(self, module: Value) -> Value:
        if isinstance(module.definition, cst.ClassDef):
            forward = self.classes.method(module.definition, "forward")
            if forward is not None:
                result = self.returns(forward)
                if result:
                    return result.on(module.device) if module.device is not Device.UNKNOWN else _off_cpu(result)
        last = module.qualified.rpartition(".")[2]
        if last in _TUPLE_MODULES:
            return sequence(tensor(module.device), tensor(module.device, proven=False))
        if (
            module.qualified.startswith("torch.nn.")
            and last in MODULES
            and last not in ("MultiheadAttention", "LSTMCell")
        ):
            return tensor(module.device, scalar=last.endswith("Loss"))
        return tensor(module.device, proven=False, scalar=module.scalar)

    def _library_call(self, node: cst.Call, qualified: str) -> Value | None:
        """What a call of something imported gives; None: nothing is known of it."""
        root, _, rest = qualified.partition(".")
        if not rest:
            return self._builtin_call(node, qualified)
        if root == "torch":
            value = self._torch_call(node, rest)
            if value is not None:
                return value
        if root in ("numpy", "cupy"):
            return NUMBER if rest in ("prod", "ceil", "floor", "sqrt", "log", "exp") and root == "numpy" else NDARRAY
        if root in ("cv2", "skimage", "sklearn", "scipy"):
            return NDARRAY
        if root == "math" or (root == "time" and rest in ("time", "perf_counter")):
            return NUMBER
        if root in ("json", "pickle", "PIL", "pandas", "os", "pathlib", "argparse", "yaml", "csv", "re", "random"):
            return Value(Kind.OBJECT, Device.CPU)
        if qualified in tables.LOADERS:
            return Value(Kind.LOADER, qualified=qualified)
        if root == "torchvision":
            return self._torchvision_call(rest)
        if qualified in tables.PASS_THROUGH:
            return self._passed_through(node)
        if root in ("transformers", "timm", "diffusers", "segmentation_models_pytorch") and (
            rest.endswith(("from_pretrained", "create_model")) and "okenizer" not in rest and "rocessor" not in rest
        ):
            return self._constructed(node, Value(Kind.MODULE))
        return None

    def _torchvision_call(self, rest: str) -> Value | None:
        if rest.startswith("models."):
            return Value(Kind.MODULE)
        if rest.startswith("datasets."):
            return Value(Kind.DATASET, Device.CPU, qualified=f"torchvision.{rest}")
        return None

    def _passed_through(self, node: cst.Call) -> Value:
        return self.value(node.args[0].value) if node.args and not node.args[0].star else UNKNOWN

    def _builtin_call(self, node: cst.Call, name: str) -> Value | None:
        arguments = [argument.value for argument in node.args if argument.keyword is None and not argument.star]
        values = [self.value(argument) for argument in arguments]
        first = values[0] if values else UNKNOWN
        if name in _NUMBER_BUILTINS:
            return NUMBER
        if name in _STRING_BUILTINS:
            return STRING
        if name == "range":
            return sequence_of(NUMBER)
        if name == "enumerate":
            if first.kind is Kind.LOADER or (not first and arguments and self.is_loader_like(arguments[0])):
                return sequence_of(sequence(NUMBER, _BATCH))
            return sequence_of(sequence(NUMBER, self.turn(first)))
        if name == "zip":
            return sequence_of(
                sequence(*(self._zipped(value, node_) for value, node_ in zip(values, arguments, strict=True)))
            )
        if name in ("abs", "min", "max", "sum"):
            if first.kind is Kind.TENSOR and len(values) == 1:
                return tensor(first.device)
            return self.item(first) if len(values) == 1 and first.kind is Kind.SEQUENCE else join(values)
        if name in ("next", "__next__"):
            return self.item(first)
        if name == "dict":
            return Value(
                Kind.MAPPING, item=join([self.value(argument.value) for argument in node.args if argument.keyword])
            )
        if name == "map" and len(values) > 1:
            return sequence_of(NUMBER if dotted(arguments[0]) in ("int", "float", "len") else UNKNOWN)
        if name in tables.PASS_THROUGH:
            if first.kind is Kind.TENSOR and name in ("list", "tuple", "sorted", "reversed"):
                return sequence_of(self.turn(first))
            return first if arguments else sequence_of(UNKNOWN)
        if name == "getattr":
            return UNKNOWN
        if name in ("open", "super", "print", "type"):
            return Value(Kind.OBJECT)
        return None

    def _zipped(self, value: Value, node: cst.CSTNode) -> Value:
        return _BATCH if not value and self.is_loader_like(node) else self.turn(value)

    def is_loader_like(self, node: cst.CSTNode) -> bool:
        """Whether iterating over this gives batches: by what it holds or, failing that, by its name."""
        value = self.value(node)
        if value:
            return value.kind is Kind.LOADER or (value.kind is Kind.SEQUENCE and self._batched(value))
        name = dotted(node)
        if name is None and isinstance(node, cst.Subscript):
            name = dotted(node.value)
        return name is not None and tables.LOADER_NAME.search(name.rpartition(".")[2]) is not None

    @staticmethod
    def _batched(value: Value) -> bool:
        item = value.item
        return item is not None and (item.batch or any(part.batch for part in item.items))

    def _torch_call(self, node: cst.Call, rest: str) -> Value | None:
        """What a call of something in torch gives, by its name behind `torch.`; None: nothing is known of it."""
        value = self._torch_tensor(node, rest)
        return value if value is not None else self._torch_object(node, rest)

    def _torch_tensor(self, node: cst.Call, rest: str) -> Value | None:
        """What a factory or an operation gives."""
        if rest in ("device", "torch.device"):
            return Value(Kind.DEVICE, self._device_of(node.args[0].value) if node.args else Device.UNKNOWN)
        if rest == "accelerator.current_accelerator":
            return Value(Kind.DEVICE, Device.ACCELERATOR)
        if rest in tables.FACTORIES or rest in tables.LEGACY_TENSORS:
            return self._factory(node, rest)
        if rest.startswith("cuda.") and rest.endswith("Tensor"):
            return tensor(Device.ACCELERATOR)
        if rest == "from_numpy":
            return tensor(Device.CPU)
        if rest.endswith("_like"):
            template = self._first(node)
            device = self._argument(node, "device")
            return tensor(self._device_of(device) if device is not None else template.device)
        if rest in FUNCTIONS or rest in tables.TORCH_PYTHON:
            return self._coded(
                FUNCTIONS.get(rest, "?") if FUNCTIONS.get(rest, "?") != "?" else tables.TORCH_PYTHON.get(rest, "?"),
                UNKNOWN,
                node,
            )
        if rest.startswith("nn.functional.") and rest[14:] in FUNCTIONAL:
            code = FUNCTIONAL[rest[14:]]
            scalar = "loss" in rest or "entropy" in rest
            return self._coded("T" if code == "T/2" else code, UNKNOWN, node, scalar=scalar)
        if rest.startswith("nn.functional.") and rest[14:] in tables.FUNCTIONAL_BUILTINS:
            return self._coded("T", UNKNOWN, node)
        if rest.startswith(("linalg.", "special.", "fft.")):
            return self._coded("T", UNKNOWN, node).likely()
        if rest in ("nn.Parameter", "nn.parameter.Parameter"):
            return _off_cpu(self._first(node) or TENSOR)  # it moves with its module
        if rest == "autograd.Variable":
            return self._first(node) or TENSOR
        return tensor() if rest == "nn.utils.clip_grad_norm_" else None

    def _torch_object(self, node: cst.Call, rest: str) -> Value | None:
        """What a constructor of anything else gives."""
        if rest.startswith("nn.") and rest[3:] in MODULES:
            return self._constructed(node, Value(Kind.MODULE, qualified=f"torch.{rest}"))
        if rest in ("nn.DataParallel", "nn.parallel.DataParallel", "nn.parallel.DistributedDataParallel"):
            return Value(Kind.MODULE, Device.MAYBE)
        if rest.startswith("optim.lr_scheduler."):
            return Value(Kind.SCHEDULER)
        if rest.startswith("optim.") and rest[6:] in OPTIMIZERS:
            return Value(Kind.OPTIMIZER, qualified=f"torch.{rest}")
        if f"torch.{rest}" in tables.LOADERS:
            return Value(Kind.LOADER, qualified=f"torch.{rest}")
        if f"torch.{rest}" in tables.SCALERS:
            return Value(Kind.SCALER)
        if rest.startswith("utils.data."):
            return Value(Kind.DATASET, Device.CPU, qualified=f"torch.{rest}")
        if rest.startswith("distributions."):
            return Value(Kind.DISTRIBUTION, qualified=f"torch.{rest}")
        if rest == "compile":
            return self._first(node)
        if rest in ("hub.load", "jit.load", "jit.script", "jit.trace"):
            return Value(Kind.MODULE)
        if rest.startswith(("cuda.", "distributed.get", "distributed.is_", "backends.", "is_")):
            return NUMBER if "is_" in rest or "count" in rest or "rank" in rest or "size" in rest else None
        return Value(Kind.OBJECT) if rest == "load" else None

    def _factory(self, node: cst.Call, name: str) -> Value:
        device = self._argument(node, "device")
        if device is not None:
            return tensor(self._device_of(device))
        if name in ("as_tensor", "asarray"):
            given = self._first(node)
            if given.kind is Kind.TENSOR:
                return given
            return tensor(Device.CPU)
        return tensor(Device.UNKNOWN if self.changes_default_device else Device.CPU)

    def _first(self, node: cst.Call) -> Value:
        return self.value(node.args[0].value) if node.args and not node.args[0].star else UNKNOWN

    @staticmethod
    def _argument(node: cst.Call, keyword: str) -> cst.BaseExpression | None:
        for argument in node.args:
            if argument.keyword is not None and argument.keyword.value == keyword:
                return argument.value
        return None

    def _device_of(self, node: cst.CSTNode) -> Device:
        value = self.value(node)
        if value.kind in (Kind.DEVICE, Kind.STRING):
            if value.device is Device.UNKNOWN:
                return Device.MAYBE
            return value.device
        if value.kind is Kind.NUMBER:
            return Device.ACCELERATOR
        if value.kind is Kind.NONE:
            return Device.CPU
        return Device.UNKNOWN

    def _coded(self, code: str, owner: Value, node: cst.Call | None = None, *, scalar: bool = False) -> Value:
        """The value that a code of torch_table stands for; the device is that of the tensors it is made from."""
        if code == "n":
            return NUMBER
        if code == "z":
            return sequence_of(NUMBER)
        if code == "d":
            return Value(Kind.DEVICE, owner.device)
        if code == "y":
            return DTYPE
        if code == "-":
            return NONE
        device = owner.device if owner.kind is Kind.TENSOR else self._operands_device(node)
        if code == "T/2":
            code = "2" if node is not None and self._reduces_dim(node, method=owner.kind is Kind.TENSOR) else "T"
        if code == "T":
            return tensor(device, scalar=scalar)
        if code == "S":
            return sequence_of(tensor(device))
        if code.isdigit():
            return sequence(*(tensor(device) for _ in range(int(code))))
        return UNKNOWN

    def _reduces_dim(self, node: cst.Call, *, method: bool) -> bool:
        if any(argument.keyword is not None and argument.keyword.value in ("dim", "axis") for argument in node.args):
            return True
        positional = [argument.value for argument in node.args if argument.keyword is None]
        place = 0 if method else 1
        if len(positional) <= place:
            return False
        return self.value(positional[place]).kind is Kind.NUMBER

    def _operands_device(self, node: cst.Call | None) -> Device:
        if node is None:
            return Device.UNKNOWN
        devices = []
        for place, argument in enumerate(node.args):
            value = self.value(argument.value)
            if value.kind is Kind.SEQUENCE:
                # `cat([a, b])`; a sequence further behind is one of sizes.
                value = value.item if value.item is not None and place == 0 else NUMBER
            if value.kind is Kind.TENSOR:
                devices.append(value.device)
            elif not value:
                devices.append(Device.UNKNOWN)
        return join_device(devices)

    def _method_call(self, node: cst.Call, func: cst.Attribute) -> Value:
        name = func.attr.value
        owner = self.value(func.value)
        if name in ("cuda", "cpu", "to"):
            return self._moved(node, name, owner)
        if owner.kind is Kind.TENSOR:
            result = self._tensor_method(node, name, owner)
            if result or owner.proven:
                return result
        if owner.kind is Kind.MODULE:
            return self._module_method(name, owner)
        if isinstance(owner.definition, cst.ClassDef):
            method = self.classes.method(owner.definition, name)
            return self.returns(method) if method is not None else UNKNOWN
        match owner.kind:
            case Kind.NDARRAY:
                return NUMBER if name in ("item", "tolist") else NDARRAY
            case Kind.STRING:
                return sequence_of(STRING) if name == "split" else STRING
            case Kind.MAPPING:
                if name == "items":
                    return sequence_of(sequence(UNKNOWN, owner.item or UNKNOWN))
                if name == "values":
                    return sequence_of(owner.item or UNKNOWN)
                if name in ("get", "pop"):
                    return owner.item or UNKNOWN
                return UNKNOWN
            case Kind.DISTRIBUTION:
                return tensor() if name in ("sample", "rsample", "log_prob", "entropy", "mode", "cdf") else UNKNOWN
            case Kind.SCALER:
                return self._first(node) if name == "scale" else UNKNOWN
            case Kind.SEQUENCE:
                return self.item(owner) if name == "pop" else UNKNOWN
            case Kind.UNKNOWN:
                return self._unknown_method(node, name)
        return UNKNOWN

    def _unknown_method(self, node: cst.Call, name: str) -> Value:
        """A method of something unknown: some methods only a tensor has."""
        if name in tables.TENSOR_ONLY_METHODS:
            return self._coded(METHODS.get(name, "T"), TENSOR, node)
        if name == "view" and self._told(name, node) != name:
            return TENSOR
        if name in _STRING_METHODS and name != "split":
            return STRING
        if name == "numel" or (name in tables.TENSOR_SHAPE_METHODS and (node.args or name == "dim")):
            return NUMBER
        if name == "size":
            return sequence_of(NUMBER).likely()
        if name == "item":
            return NUMBER
        if name == "numpy":
            return NDARRAY
        if name in ("tolist", "parameters"):
            return sequence_of(TENSOR if name == "parameters" else NUMBER)
        if name == "named_parameters":
            return sequence_of(sequence(STRING, TENSOR))
        return UNKNOWN

    def _moved(self, node: cst.Call, name: str, owner: Value) -> Value:
        if owner and owner.kind not in (Kind.TENSOR, Kind.MODULE):
            return owner if owner.kind in (Kind.OBJECT, Kind.MAPPING) else UNKNOWN
        base = owner or UNKNOWN
        if name == "cpu":
            device = Device.CPU
        elif name == "cuda":
            device = Device.ACCELERATOR
        else:
            device = self._destination(node, owner)
        if not base:
            # Only tensors and modules move, and what is unknown here is far more often the tensor.
            return tensor(device, proven=False) if name != "to" or device is not Device.UNKNOWN else UNKNOWN
        return base.on(device)

    def _destination(self, node: cst.Call, owner: Value) -> Device:
        explicit = self._argument(node, "device")
        if explicit is None and node.args and node.args[0].keyword is None:
            explicit = node.args[0].value
        if explicit is None:
            return owner.device
        value = self.value(explicit)
        if value.kind is Kind.DTYPE:
            return owner.device
        if value.kind is Kind.TENSOR:
            return value.device
        return self._device_of(explicit)

    def _tensor_method(self, node: cst.Call, name: str, owner: Value) -> Value:
        if name == "numpy":
            return NDARRAY
        if name == "tolist":
            return sequence_of(NUMBER)
        if name == "size":
            return NUMBER if node.args else sequence_of(NUMBER)
        if name == "stride":
            return NUMBER if node.args else sequence_of(NUMBER)
        if name == "type":
            return owner if node.args else STRING
        if name in ("split", "nonzero", "unique", "norm", "where"):
            if name == "split":
                return sequence_of(tensor(owner.device))
            return tensor(owner.device)
        if name in ("type_as", "to_dense", "index_put"):
            first = self._first(node)
            return tensor(first.device if name == "type_as" else owner.device)
        code = METHODS.get(name)
        if code is None:
            return UNKNOWN
        reduces = name in ("sum", "mean", "max", "min", "median", "prod", "all", "any", "norm") and not node.args
        return self._coded(code, owner, node, scalar=reduces)

    def _module_method(self, name: str, owner: Value) -> Value:
        if name in ("train", "eval", "float", "half", "double", "bfloat16", "requires_grad_", "apply", "share_memory"):
            return owner
        if name == "parameters":
            return sequence_of(tensor(owner.device))
        if name == "named_parameters":
            return sequence_of(sequence(STRING, tensor(owner.device)))
        if name in ("modules", "children"):
            return sequence_of(Value(Kind.MODULE, owner.device))
        if name == "state_dict":
            return Value(Kind.MAPPING, item=tensor(owner.device))
        if isinstance(owner.definition, cst.ClassDef):
            method = self.classes.method(owner.definition, name)
            if method is not None:
                return self.returns(method)
        if name in ("generate", "forward"):
            return tensor(owner.device, proven=False)
        return UNKNOWN


_BATCH = Value(Kind.TENSOR, Device.CPU, proven=False, batch=True)


def _off_cpu(value: Value) -> Value:
    """What is on the CPU as it is made, and elsewhere when it is used: a module's result, parameter or buffer."""
    return value if value.device is not Device.CPU else value.on(Device.UNKNOWN)


def _is_class_name(name: str) -> bool:
    """`Generator` is a class, `generator` one of its instances, and so is `G`."""
    return name[:1].isupper() and not name.isupper()


def _overridable(default: Value) -> Value:
    """A default: `device="cpu"` is there to be given another."""
    return default.on(Device.MAYBE) if default.kind is Kind.STRING and default.device is Device.CPU else default


def _last(node: cst.CSTNode) -> str:
    name = dotted(node)
    return name.rpartition(".")[2] if name else ""


_LIST = sequence_of(UNKNOWN)
_LISTS = ("list", "tuple", "List", "Tuple", "Sequence", "Iterable")


def _is_list(kind: cst.BaseExpression) -> bool:
    """Whether the second argument of `isinstance` names lists or tuples, and nothing else."""
    names = [element.value for element in kind.elements] if isinstance(kind, cst.Tuple) else [kind]
    return all(isinstance(name, cst.Name) and name.value in _LISTS for name in names)


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


def _is_key(node: cst.Subscript) -> bool:
    return any(
        isinstance(part.slice, cst.Index) and isinstance(part.slice.value, (cst.SimpleString, cst.FormattedString))
        for part in node.slice
    )


# What a batch that is a mapping is used for, and what lists and models have too.
_OF_A_MAPPING = frozenset("items keys values get update pop append extend insert".split())
_OF_OTHERS_TOO = frozenset("sort split index count copy to cpu cuda float half .device .dtype .data".split())


def _integer(node: cst.CSTNode) -> int | None:
    match node:
        case cst.Integer(value=text):
            return int(text.replace("_", ""), 0)
        case cst.UnaryOperation(operator=cst.Minus(), expression=cst.Integer(value=text)):
            return -int(text.replace("_", ""), 0)
    return None
