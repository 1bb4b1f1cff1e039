"""Which calls constructed the modules that an expression may hold, and how lists of modules are filled."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.names.bindings import Binder, Binding
from torchlint.syntax.tree import descendants_in_scope

if TYPE_CHECKING:
    from torchlint.semantics.flow.uses import Uses, Variable
    from torchlint.semantics.names.bindings import Names
    from torchlint.semantics.names.classes import Classes
    from torchlint.semantics.values.call_graph import Calls
    from torchlint.syntax.tree import Tree

SEQUENTIAL = "torch.nn.Sequential"
MODULE_LIST = "torch.nn.ModuleList"
ORDERED = frozenset({"collections.OrderedDict", "dict"})
# What wraps a layer and leaves it one: its bias is still added last.
WRAPPERS = ("torch.nn.utils.spectral_norm", "torch.nn.utils.weight_norm", "torch.nn.utils.parametrizations.")
# Methods that return the module they are called on.
MODULE_METHODS = frozenset(
    {
        "to", "cuda", "cpu", "half", "float", "double", "bfloat16", "train", "eval", "apply", "requires_grad_",
        "share_memory", "to_empty",
    }
)  # fmt: skip
_LISTS = frozenset({MODULE_LIST, "list", "tuple"})
_ADDING = frozenset({"append", "extend", "add_module", "register_module"})
_DEEPEST = 40


class EscapeError(Exception):
    """A value comes from, or goes to, where this module does not show it."""


@dataclass(frozen=True, slots=True, eq=False)
class Filling:
    """What is done with a variable that is filled with layers.

    `starts` gives the value of each statement that puts something new into it, `additions` the parts that a statement
    or call puts behind its last; `reads` is all else.
    """

    starts: dict[cst.CSTNode, cst.BaseExpression | None] = field(default_factory=dict)
    additions: dict[cst.CSTNode, list[cst.CSTNode]] = field(default_factory=dict)
    reads: list[Variable] = field(default_factory=list)


class Constructions:
    """Where modules are made in one module. What can't be told raises `EscapeError`."""

    def __init__(self, tree: Tree, names: Names, classes: Classes, calls: Calls, uses: Uses) -> None:
        self.tree = tree
        self.names = names
        self.classes = classes
        self.calls = calls
        self.uses = uses

    def of(self, node: cst.CSTNode, depth: int = 0) -> list[cst.Call]:
        """The calls, one of which constructed the module that an expression holds; none for None."""
        if depth > _DEEPEST:
            raise EscapeError
        match node:
            case cst.Call():
                return self._made_by(node, depth + 1)
            case cst.Name(value="None"):
                return []
            case cst.Name():
                bindings = self.names.reaching(node)
                if not bindings:
                    raise EscapeError
                return [call for binding in bindings for call in self._bound_to(binding, depth + 1)]
            case cst.Attribute():
                return self._set_to(node, depth + 1)
            case cst.Subscript(value=owner):
                return self._of_all(self.elements(owner, depth + 1), depth)
            case cst.IfExp(body=body, orelse=orelse):
                return self._of_all([body, orelse], depth)
        raise EscapeError

    def _of_all(self, nodes: list[cst.BaseExpression], depth: int) -> list[cst.Call]:
        return [call for node in nodes for call in self.of(node, depth + 1)]

    def _made_by(self, call: cst.Call, depth: int) -> list[cst.Call]:
        name = self.names.qualified(call.func) or ""
        if name.startswith(WRAPPERS) and call.args:
            return self.of(call.args[0].value, depth)
        if name.startswith("torch.nn.") and name.rpartition(".")[2][:1].isupper():
            return [call]
        if isinstance(call.func, cst.Attribute) and call.func.attr.value in MODULE_METHODS:
            return self.of(call.func.value, depth)
        if self.class_of(call) is not None:
            return [call]
        function = self.calls.target(call)
        if function is None or function.name.value in ("forward", "__init__"):
            raise EscapeError
        returned = [node.value for node in descendants_in_scope(function.body) if isinstance(node, cst.Return)]
        values = [value for value in returned if value is not None]
        if not values or len(values) < len(returned):
            raise EscapeError
        return self._of_all(values, depth)

    def class_of(self, call: cst.Call) -> cst.ClassDef | None:
        """The class of this module that the call makes an instance of."""
        if isinstance(call.func, cst.Name):
            for binding in self.names.reaching(call.func):
                if binding.binder is Binder.CLASS and isinstance(binding.node, cst.ClassDef):
                    return binding.node
        return None

    def _bound_to(self, binding: Binding, depth: int) -> list[cst.Call]:
        match binding:
            case Binding(binder=Binder.ASSIGN, value=cst.BaseExpression() as value, path=()):
                return self.of(value, depth)
            case Binding(binder=Binder.LOOP, value=cst.BaseExpression() as value, path=path):
                return self._of_all(self.elements(_iterated(value, path), depth), depth)
        raise EscapeError

    def _set_to(self, attribute: cst.Attribute, depth: int) -> list[cst.Call]:
        class_ = self.uses.owner(attribute)
        sets = self.classes.attribute_sets(class_, attribute.attr.value) if class_ is not None else []
        values = [entry.value for entry in sets if entry.value is not None and not entry.path and not entry.augmented]
        if not sets or len(values) < len(sets):
            raise EscapeError
        return self._of_all(values, depth)

    # Lists of modules

    def elements(self, node: cst.CSTNode, depth: int = 0) -> list[cst.BaseExpression]:
        """The expressions whose values a list of modules may hold, in no order."""
        if depth > _DEEPEST:
            raise EscapeError
        match node:
            case cst.List(elements=parts) | cst.Tuple(elements=parts):
                if any(isinstance(part, cst.StarredElement) for part in parts):
                    raise EscapeError
                return [part.value for part in parts]
            case cst.ListComp(elt=element) | cst.GeneratorExp(elt=element):
                return [element]
            case cst.Call(args=args) if self.names.qualified(node.func) in _LISTS and len(args) <= 1:
                return self.elements(args[0].value, depth + 1) if args else []
            case cst.Subscript(value=owner):
                outer = self.elements(owner, depth + 1)
                return [inner for element in outer for inner in self.elements(element, depth + 1)]
            case cst.Name() | cst.Attribute():
                return self._filled_with(node, depth + 1)
        raise EscapeError

    def _filled_with(self, variable: Variable, depth: int) -> list[cst.BaseExpression]:
        filling = self.filling(variable)
        starts = [value for value in filling.starts.values() if value is not None]
        if not starts or len(starts) < len(filling.starts):
            raise EscapeError
        found = [element for value in starts for element in self.elements(value, depth)]
        for part in (part for parts in filling.additions.values() for part in parts):
            if not isinstance(part, cst.BaseExpression):
                raise EscapeError
            found.append(part)
        return found

    def filling(self, variable: Variable) -> Filling:
        """What is done with a variable."""
        mentions = self.uses.mentions(variable)
        if mentions is None:
            raise EscapeError
        filling = Filling()
        for mention in mentions:
            if not self._note_binding(mention, filling) and not self._note_addition(mention, filling):
                filling.reads.append(mention)
        return filling

    def _note_binding(self, mention: Variable, filling: Filling) -> bool:
        """Note `x = …`, `x += …` and `x = x + …`."""
        parent = self.tree.parent(mention)
        match parent:
            case cst.AssignTarget():
                assign = self.tree.parent(parent)
                match assign:
                    case cst.Assign(value=cst.BinaryOperation(left=left, operator=cst.Add(), right=right)) if (
                        left.deep_equals(mention)
                    ):
                        filling.additions[assign] = self.parts(right)
                    case cst.Assign(value=value):
                        filling.starts[assign] = value
                return True
            case cst.AnnAssign(target=target, value=value) if target is mention:
                filling.starts[parent] = value
                return True
            case cst.AugAssign(target=target, value=value) if target is mention:
                filling.additions[parent] = self.parts(value)
                return True
            case cst.BinaryOperation(left=left) if left is mention:
                return any(target.deep_equals(mention) for target in self._targets(parent))
        if self.uses.is_target(mention):
            raise EscapeError
        return False

    def _targets(self, value: cst.CSTNode) -> list[cst.BaseExpression]:
        assign = self.tree.parent(value)
        return [target.target for target in assign.targets] if isinstance(assign, cst.Assign) else []

    def _note_addition(self, mention: Variable, filling: Filling) -> bool:
        """Note `x.append(…)`, `x.add_module("name", …)` and `x["name"] = …`."""
        parent = self.tree.parent(mention)
        match parent:
            case cst.Attribute(attr=cst.Name(value=method)) if method in _ADDING:
                call = self.tree.parent(parent)
                if not isinstance(call, cst.Call) or not call.args:
                    raise EscapeError
                last = call.args[-1].value
                filling.additions[call] = self.parts(last) if method == "extend" else [last]
                return True
            case cst.Subscript(value=owner) if owner is mention and self.uses.is_target(parent):
                target = self.tree.parent(parent)
                assign = None if target is None else self.tree.parent(target)
                if not isinstance(assign, cst.Assign):
                    raise EscapeError
                filling.additions[assign] = [assign.value]
                return True
        return False

    def parts(self, value: cst.BaseExpression) -> list[cst.CSTNode]:
        """The elements of a list; what is not literal is one part that is no expression."""
        match value:
            case cst.List(elements=elements) | cst.Tuple(elements=elements):
                return [element.value if isinstance(element, cst.Element) else element for element in elements]
            case cst.Call(args=[cst.Arg(value=first)]) if self.names.qualified(value.func) in ORDERED:
                return self.parts(first)
        return [cst.Arg(value)]

    def is_sequential(self, value: cst.CSTNode | None) -> bool:
        """Whether an expression constructs an `nn.Sequential`."""
        return isinstance(value, cst.Call) and self.names.qualified(value.func) == SEQUENTIAL

    def is_ordered(self, node: cst.CSTNode) -> bool:
        """Whether an expression holds an ordered dictionary, which `nn.Sequential` takes whole."""
        match node:
            case cst.Call():
                return self.names.qualified(node.func) in ORDERED
            case cst.Name():
                values = [binding.value for binding in self.names.reaching(node)]
                return any(isinstance(value, cst.Call) and self.is_ordered(value) for value in values)
        return False

    def is_module_list(self, variable: Variable) -> bool:
        """Whether all that a variable ever starts as is an `nn.ModuleList`."""
        starts = self.filling(variable).starts.values()
        return bool(starts) and all(
            isinstance(value, cst.Call) and self.names.qualified(value.func) == MODULE_LIST for value in starts
        )


def _iterated(value: cst.BaseExpression, path: tuple[int, ...]) -> cst.BaseExpression:
    """The list that a loop's target runs over: `x` of `for i, t in enumerate(x)`."""
    match value, path:
        case cst.Call(func=cst.Name(value="enumerate"), args=[cst.Arg(value=first), *_]), (1,):
            return first
        case cst.Call(func=cst.Name(value="zip"), args=args), (place,) if 0 <= place < len(args):
            return args[place].value
        case cst.Call(func=cst.Name(value="reversed"), args=[cst.Arg(value=first)]), ():
            return first
        case _, ():
            return value
    raise EscapeError
