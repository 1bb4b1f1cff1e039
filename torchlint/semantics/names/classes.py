"""The classes of a module: bases, methods, what their attributes are set to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.knowledge.apis import DATASET_BASES, MODULE_BASES, TRAINING_METHODS
from torchlint.semantics.knowledge.conventions.functions import (
    DATASET_BASE,
    NO_MODULE_BASE,
    TRAINER_CLASS,
)
from torchlint.semantics.names.bindings import Binder, Binding, Names, dotted, parameters

if TYPE_CHECKING:
    from collections.abc import Iterator

    from torchlint.facts import Facts
    from torchlint.syntax.tree import Tree


# Methods of a network that give the network.
_GIVING_ITSELF = frozenset({"to", "cuda", "cpu", "train", "eval", "float", "half", "double"})


@dataclass(frozen=True, slots=True, eq=False)
class AttributeSet:
    """`self.name = value`, or a part of `value` that `path` leads to; `node` is the statement or call."""

    name: str
    value: cst.BaseExpression | None
    path: tuple[int, ...]
    node: cst.CSTNode
    augmented: bool = False


class Classes:
    """Bases, methods and attributes of the classes that a module defines."""

    def __init__(self, tree: Tree, names: Names, facts: Facts) -> None:
        self.tree = tree
        self.names = names
        self.facts = facts
        self._lineages: dict[cst.ClassDef, tuple[cst.ClassDef | str, ...]] = {}
        self._methods: dict[cst.ClassDef, dict[str, cst.FunctionDef]] = {}

    def bases(self, class_: cst.ClassDef) -> Iterator[cst.ClassDef | str]:
        """Each base: its definition in this module, or its qualified name."""
        for base in class_.bases:
            if isinstance(base.value, cst.Name):
                for binding in self.names.reaching(base.value):
                    if binding.binder is Binder.CLASS and isinstance(binding.node, cst.ClassDef):
                        if binding.node is not class_:
                            yield binding.node
                        break
                else:
                    yield self.names.qualified(base.value) or base.value.value
            else:
                yield self.names.qualified(base.value) or ""

    def lineage(self, class_: cst.ClassDef) -> tuple[cst.ClassDef | str, ...]:
        """The class and all that it inherits from, nearest first, each once."""
        found = self._lineages.get(class_)
        if found is None:
            found = self._lineages[class_] = tuple(self._ancestry(class_))
        return found

    def _ancestry(self, class_: cst.ClassDef) -> Iterator[cst.ClassDef | str]:
        seen: set[int | str] = set()
        waiting: list[cst.ClassDef | str] = [class_]
        while waiting:
            current = waiting.pop(0)
            key = current if isinstance(current, str) else id(current)
            if key in seen:
                continue
            seen.add(key)
            yield current
            if not isinstance(current, str):
                waiting += self.bases(current)
            elif (described := self.facts.described(current)) is not None:
                waiting += described.bases

    def is_module(self, class_: cst.ClassDef) -> bool:
        """Whether instances are `nn.Module`s: by a base, or by `forward` under a base from elsewhere."""
        if any(base in MODULE_BASES for base in self.lineage(class_) if isinstance(base, str)):
            return True
        known = [base for base in self.lineage(class_) if isinstance(base, str) and not base.startswith(("object",))]
        return bool(known) and self.method(class_, "forward") is not None and not self._is_function(class_)

    def _is_function(self, class_: cst.ClassDef) -> bool:
        return any(
            isinstance(base, str)
            and (base == "torch.autograd.Function" or NO_MODULE_BASE.suggests(base.rpartition(".")[2]))
            for base in self.lineage(class_)
        )

    def is_dataset(self, class_: cst.ClassDef) -> bool:
        """Whether instances are datasets."""
        return any(
            isinstance(base, str) and (base in DATASET_BASES or DATASET_BASE.suggests(base))
            for base in self.lineage(class_)
        )

    def is_sampler(self, class_: cst.ClassDef) -> bool:
        """Whether instances say which samples of a dataset come next."""
        return any(
            isinstance(base, str) and base.startswith("torch.utils.data.") and base.endswith("Sampler")
            for base in self.lineage(class_)
        )

    def is_optimizer(self, class_: cst.ClassDef) -> bool:
        """Whether instances are optimizers."""
        return any(isinstance(base, str) and base.rpartition(".")[2] == "Optimizer" for base in self.lineage(class_))

    def is_training_method(self, function: cst.FunctionDef) -> bool:
        """Whether a framework calls the method at each training step, wherever else it is called."""
        class_ = self.owner(function)
        if class_ is None or function.name.value not in TRAINING_METHODS:
            return False
        is_trainer = any(isinstance(base, str) and TRAINER_CLASS.suggests(base) for base in self.lineage(class_))
        return is_trainer or function.name.value == "training_step"

    def methods(self, class_: cst.ClassDef) -> dict[str, cst.FunctionDef]:
        """The methods that the class itself defines."""
        found = self._methods.get(class_)
        if found is None:
            found = self._methods[class_] = {
                name: binding.node
                for name, bindings in self.names.class_scope(class_).bindings.items()
                for binding in bindings
                if isinstance(binding.node, cst.FunctionDef)
            }
        return found

    def method(self, class_: cst.ClassDef, name: str) -> cst.FunctionDef | None:
        """The method that an instance has under this name, as far as this module defines it."""
        for owner in self.lineage(class_):
            if not isinstance(owner, str) and name in self.methods(owner):
                return self.methods(owner)[name]
        return None

    def only_method(self, name: str) -> cst.FunctionDef | None:
        """The method of that name, where no two classes of the module define one."""
        return self._only_methods.get(name)

    @cached_property
    def _only_methods(self) -> dict[str, cst.FunctionDef | None]:
        found: dict[str, cst.FunctionDef | None] = {}
        for class_ in self.tree.of(cst.ClassDef):
            for name, method in self.methods(class_).items():
                found[name] = None if name in found else method
        return found

    def owner(self, function: cst.CSTNode) -> cst.ClassDef | None:
        """The class whose method this is."""
        suite = self.tree.parent(function)
        class_ = self.tree.parent(suite) if suite is not None else None
        return class_ if isinstance(class_, cst.ClassDef) and suite is class_.body else None

    def self_class(self, name: cst.Name) -> cst.ClassDef | None:
        """The class of `self`, where `name` is the first parameter of a method that encloses it."""
        if name.value not in self._selves:
            return None
        _, bindings = self.names.lookup(name)
        return self._class_given.get(bindings[0].node) if bindings else None

    def is_own(self, attribute: cst.Attribute) -> bool:
        """`self.x` of the class around it."""
        return isinstance(attribute.value, cst.Name) and self.self_class(attribute.value) is not None

    @cached_property
    def _selves(self) -> frozenset[str]:
        """What methods call their instance: `self`, as a rule."""
        return frozenset(first.name.value for first in self._class_given if isinstance(first, cst.Param))

    @cached_property
    def _class_given(self) -> dict[cst.CSTNode, cst.ClassDef]:
        """For the first parameter of each method the class of the instance that it is given."""
        found: dict[cst.CSTNode, cst.ClassDef] = {}
        for function in self.tree.of(cst.FunctionDef):
            class_ = self.owner(function)
            first = next(parameters(function), None) if class_ is not None else None
            if class_ is not None and first is not None and not is_static(function):
                found[first] = class_
        return found

    def attribute_sets(self, class_: cst.ClassDef, name: str) -> list[AttributeSet]:
        """Every place where a method of the class, or of a base in this module, sets `self.name`."""
        return [
            found
            for owner in self.lineage(class_)
            if not isinstance(owner, str)
            for found in self._attributes.get(owner, {}).get(name, ())
        ]

    @cached_property
    def holders(self) -> dict[str, tuple[str, ...]]:
        """Where instances are held, by what is called to make one: `{"utils.Buffer": ("Agent.buffer",)}`.

        Of the classes that other files can reach.
        """
        found: dict[str, dict[str, None]] = {}
        for class_, sets in self._attributes.items():
            if self.tree.function(class_) is not None or self.tree.enclosing_class(class_) is not None:
                continue
            for entry in (entry for entries in sets.values() for entry in entries):
                made = _made(entry)
                name = (self.names.qualified(made.func) or dotted(made.func)) if made is not None else None
                if name is not None:
                    found.setdefault(name, {}).setdefault(f"{class_.name.value}.{entry.name}")
        return {name: tuple(places) for name, places in found.items()}

    @cached_property
    def attribute_names(self) -> frozenset[str]:
        """What the classes of the module set or define but for plain methods: names that may hold an object."""
        found = {name for sets in self._attributes.values() for name in sets}
        for class_ in self.tree.of(cst.ClassDef):
            found.update(
                name
                for name, bindings in self.names.class_scope(class_).bindings.items()
                if not all(map(_is_plain_method, bindings))
            )
        return frozenset(found)

    @cached_property
    def _attributes(self) -> dict[cst.ClassDef, dict[str, list[AttributeSet]]]:
        """For each class what its own methods set, by name."""
        found: dict[cst.ClassDef, dict[str, list[AttributeSet]]] = {}

        def note(
            target: cst.CSTNode, value: cst.BaseExpression | None, node: cst.CSTNode, *, augmented: bool = False
        ) -> None:
            for owner, name, path in _targets(target):
                class_ = self.self_class(owner)
                if class_ is not None:
                    entry = AttributeSet(name, value, path, node, augmented)
                    found.setdefault(class_, {}).setdefault(name, []).append(entry)

        of = self.tree.of
        for assign in of(cst.Assign):
            for target in assign.targets:
                note(target.target, assign.value, assign)
        for annotated in of(cst.AnnAssign):
            note(annotated.target, annotated.value, annotated)
        for augmented in of(cst.AugAssign):
            note(augmented.target, augmented.value, augmented, augmented=True)
        for call in of(cst.Call):
            match call:
                case cst.Call(
                    func=cst.Attribute(value=cst.Name(value="self") as owner, attr=cst.Name(value=method)),
                    args=[cst.Arg(value=cst.SimpleString() as name), cst.Arg(value=value), *_],
                ) if method in ("register_buffer", "register_parameter", "add_module", "register_module"):
                    class_ = self.self_class(owner)
                    key = name.evaluated_value
                    if class_ is not None and isinstance(key, str):
                        found.setdefault(class_, {}).setdefault(key, []).append(AttributeSet(key, value, (), call))
        return found


def _targets(target: cst.CSTNode, path: tuple[int, ...] = ()) -> Iterator[tuple[cst.Name, str, tuple[int, ...]]]:
    """The `self` and `x` of each `self.x` that a target sets, with the way to its value; -1 is a starred step."""
    match target:
        case cst.Attribute(value=cst.Name() as owner, attr=cst.Name(value=name)):
            yield owner, name, path
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            for place, element in enumerate(elements):
                step = -1 if isinstance(element, cst.StarredElement) else place
                yield from _targets(element.value, (*path, step))


def _is_plain_method(binding: Binding) -> bool:
    return isinstance(binding.node, cst.FunctionDef) and not binding.node.decorators


def _made(entry: AttributeSet) -> cst.Call | None:
    """The call that makes what an attribute is set to, moved or not: `self.net = Net().to(device)`."""
    made = entry.value if not entry.path and not entry.augmented else None
    while (
        isinstance(made, cst.Call) and isinstance(made.func, cst.Attribute) and made.func.attr.value in _GIVING_ITSELF
    ):
        made = made.func.value
    return made if isinstance(made, cst.Call) else None


def is_static(function: cst.FunctionDef) -> bool:
    """Whether a method takes no instance."""
    return any(
        isinstance(item.decorator, cst.Name) and item.decorator.value in ("staticmethod", "classmethod")
        for item in function.decorators
    )


def class_attribute(names: Names, class_: cst.ClassDef, name: str) -> cst.BaseExpression | None:
    """The value that the class body gives a name."""
    for binding in reversed(names.class_scope(class_).bindings.get(name, [])):
        if binding.binder is Binder.ASSIGN and not binding.path:
            return binding.value
    return None
