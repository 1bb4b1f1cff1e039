"""What crosses files: what others say of this module's functions and imports, and what this one says to them."""

from __future__ import annotations

import builtins
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from torchlint.facts import ANY, SOLE, Called, Described, Facts, FunctionName, Passed, Returned
from torchlint.finding import Wanted
from torchlint.readers import Way
from torchlint.semantics.knowledge.apis import SHARED_METHODS
from torchlint.semantics.values.lattice import TOP, UNKNOWN, Also, Device, Kind, Rank, Value, join, off_cpu

if TYPE_CHECKING:
    from collections.abc import Collection

    import libcst as cst

    from torchlint.semantics.names.classes import Classes
    from torchlint.syntax.tree import Tree


# What no file of a project defines, most of the time at least.
_KNOWN = frozenset({"torch", "torchvision", "numpy", *sys.stdlib_module_names, *vars(builtins)})
# What is worth nothing without its definition, or is the same wherever it comes from.
_OF_ONE_FILE = frozenset({Kind.FUNCTION, Kind.CLASS, Kind.NONE})
# What is worth telling of, and what gives some of it.
_TOLD = frozenset({Kind.TENSOR, Kind.NDARRAY, Kind.LOADER, Kind.MODULE, Kind.OPTIMIZER, Kind.DISTRIBUTION})
_LIBRARIES = ("torch.", "torchvision.")
_NOTHING_TOLD = Returned(Kind.UNKNOWN.name, int(Device.UNKNOWN), int(Rank.PROVEN))
_CONTRADICTED = _NOTHING_TOLD._replace(also=int(TOP.also))


class Elsewhere:
    """What other files say of this module, and what of them was asked about."""

    def __init__(self, tree: Tree, classes: Classes, facts: Facts) -> None:
        self.tree = tree
        self.classes = classes
        self.facts = facts
        self._functions: set[FunctionName] = set()
        self._classes: set[str] = set()
        self._returns: set[str] = set()
        self._unused: set[str] = set()
        self._readers: set[str] = set()
        self.handing: set[FunctionName] = set()
        self._pins = False

    @property
    def questions(self) -> Wanted:
        """What was asked so far."""
        names = (self._functions, self._classes, self._returns, self._unused, self._readers)
        functions, classes, returns, unused, readers = map(_sorted, names)
        return Wanted(functions, classes, self._pins, returns, unused, readers)

    @property
    def never_pins(self) -> bool:
        """Whether files that work with this one make loaders, and none speaks of pinning; that it matters is noted."""
        self._pins = True
        return self.facts.never_pins

    def is_unused(self, name: str) -> bool:
        """Whether files bring something from this one, and none what this name defines; that it matters is noted."""
        self._unused.add(name)
        return name in self.facts.unused

    def reads(self, name: str) -> Way | None:
        """How an imported function, by its qualified name, reads what it is given, if it does no more than that."""
        if name.partition(".")[0] in _KNOWN:
            return None
        self._readers.add(name)
        return next((Way(way) for known, way in self.facts.readers if known == name), None)

    def described(self, name: str) -> Described | None:
        """What is known of a class or function that the module imports under this name; that it matters is noted."""
        if name.partition(".")[0] in _KNOWN:
            return None
        self._classes.add(name)
        return self.facts.described(name)

    def returned(self, name: str) -> Value:
        """What a call gives of a function or class that the module imports; that it matters is noted.

        An instance of a class of that file is `qualified` by the name under which to ask for what its `methods` give.
        """
        if name.partition(".")[0] in _KNOWN:
            return UNKNOWN
        self._returns.add(name)
        found = self.facts.returned(name)
        if found is None:
            return UNKNOWN
        return replace(heard(found), qualified=name) if found.methods else heard(found)

    def returned_by(self, instance: Value, method: str) -> Value:
        """What a method gives of an instance that `returned` gave."""
        given = self._given_by(instance, method)
        return UNKNOWN if given is None else heard(given)

    def records(self, instance: Value, method: str) -> bool:
        """Whether a method of a module that `returned` gave calls a part of it with autograd on."""
        given = self._given_by(instance, method)
        return given is not None and given.records

    def _given_by(self, instance: Value, method: str) -> Returned | None:
        found = self.facts.returned(instance.qualified) if instance.qualified else None
        return next((given for name, given in found.methods if name == method), None) if found is not None else None

    def callers(self, function: cst.FunctionDef) -> tuple[Called, ...]:
        """The calls of a function from other files, as far as they are known; that they matter is noted."""
        name = self._name(function)
        if name is None:
            return ()
        self._functions.add(name)
        class_, _, method = name.rpartition(".")
        return (*self.facts.of(name), *self.callers_of_held(class_, method))

    def callers_of_held(self, class_: str, method: str) -> tuple[Called, ...]:
        """The calls of a method of what objects of this module hold: `agent.buffer.add(…)`; that they matter is noted.

        The class of what they hold is given by what is called here to make one.
        """
        held = [f"{place}.{method}" for place in self.classes.holders.get(class_, ())] if class_ else []
        self._functions.update(held)
        return tuple(call for name in held for call in self.facts.of(name))

    def makers(self, class_: cst.ClassDef) -> tuple[Called, ...]:
        """The calls from other files that make a class, as far as they are known; that they matter is noted."""
        if not self._is_at_the_top(class_):
            return ()
        self._functions.add(class_.name.value)
        return self.facts.of(class_.name.value)

    def namesakes(self, function: cst.FunctionDef) -> tuple[Called, ...]:
        """The calls, in other files, of methods of that name of objects that come from nobody knows where.

        That they matter is noted.
        """
        name = f"{ANY}{function.name.value}"
        self._functions.add(name)
        return self.facts.of(name)

    def sole_calls(self, function: cst.FunctionDef) -> tuple[Called, ...]:
        """As `namesakes`, of a method whose name no other file of the project, and no object of torch, has for one."""
        name = function.name.value
        if name in SHARED_METHODS or name.startswith("_"):
            return ()
        self._functions.add(f"{SOLE}{name}")
        return self.facts.of(f"{SOLE}{name}")

    def calls(self, function: str) -> bool:
        """Whether a file that imports this one, or one that imports that, calls this function of torch.

        That it matters is noted.
        """
        return bool(self.program_calls(function))

    def program_calls(self, function: str) -> tuple[Called, ...]:
        """The calls of this function of torch in the programs that the file is part of; that they matter is noted."""
        self._functions.add(function)
        return self.facts.of(function)

    def passed(self, function: cst.FunctionDef, place: int | None, keyword: str) -> Value:
        """What all callers elsewhere pass for a parameter, at this position behind `self`, or by its name."""
        given = self._given(function, place, keyword) if self.facts else []
        values = [_value(argument) if argument is not None else UNKNOWN for argument in given]
        value = join(values) if values and len({value.kind for value in values}) == 1 else UNKNOWN
        made = _same(given)
        return self.returned(made) or value if made and not value.qualified else value

    def handed(self, function: cst.FunctionDef, place: int | None, keyword: str) -> str:
        """The class of the project whose instance all callers elsewhere pass, as `@path:Class`; "" if none is known.

        That it matters is noted.
        """
        name = self._name_of_any(function)
        if name is not None:
            self.handing.add(name)
        return _same(self._given(function, place, keyword))

    def _given(self, function: cst.FunctionDef, place: int | None, keyword: str) -> list[Passed | None]:
        """What each caller elsewhere passes for a parameter; None where that is hidden, or left out."""
        name = self._name_of_any(function)
        return [_passed(call, place, keyword) for call in self.facts.of(name)] if name is not None else []

    def _name_of_any(self, function: cst.FunctionDef) -> FunctionName | None:
        """As `_name`; of `__init__` it is that of the class."""
        owner = self.classes.owner(function) if function.name.value == "__init__" else None
        if owner is None:
            return self._name(function)
        return owner.name.value if self._is_at_the_top(owner) else None

    def _is_at_the_top(self, node: cst.ClassDef | cst.FunctionDef) -> bool:
        return self.tree.function(node) is None and self.tree.enclosing_class(node) is None

    def keywords(self, function: cst.FunctionDef, named: Collection[str]) -> list[Value] | None:
        """What callers elsewhere pass for `**`: by keywords that are none of these. None where that is hidden."""
        values = []
        for call in self.callers(function):
            if call.arguments is None:
                return None
            values += [_value(argument) for argument in call.arguments if argument.keyword not in ("", *named)]
        return values

    def _name(self, function: cst.FunctionDef) -> FunctionName | None:
        """The name by which another file can reach the function; None if none can, or only Python itself calls it."""
        name = function.name.value
        if name.startswith("__"):
            return None
        owner = self.classes.owner(function)
        outermost = function if owner is None else owner
        if not self._is_at_the_top(outermost):
            return None
        return name if owner is None else f"{owner.name.value}.{name}"


def told(value: Value, methods: tuple[tuple[str, Returned], ...] = ()) -> Returned | None:
    """A value as another file hears of it; None where that would tell nothing of tensors, or of what gives them."""
    return _told(value)._replace(methods=methods) if methods or _speaks_of_tensors(value) else None


def recording(given: Returned | None) -> Returned:
    """The same of a method that calls a part of its module with autograd on."""
    return (given or _NOTHING_TOLD)._replace(records=True)


def _speaks_of_tensors(value: Value) -> bool:
    if value.kind in (Kind.SEQUENCE, Kind.MAPPING):
        return value.item is not None and any(map(_speaks_of_tensors, (value.item, *value.items)))
    return value.kind in _TOLD


def _told(value: Value) -> Returned:
    if value.kind in _OF_ONE_FILE or not value:
        return _CONTRADICTED if value is TOP else _NOTHING_TOLD
    if value.kind is Kind.MODULE:
        value = off_cpu(value)  # who gets it may move it
    return Returned(
        value.kind.name,
        int(value.devices),
        int(value.rank),
        int(value.also),
        value.batch,
        value.scalar,
        value.qualified if value.qualified.startswith(_LIBRARIES) else "",
        _told(value.item) if value.item is not None else None,
        tuple(map(_told, value.items)),
    )


def heard(returned: Returned) -> Value:
    """The value that another file tells of."""
    kind = Kind[returned.kind]
    if kind is Kind.UNKNOWN:
        return TOP if returned.also == int(TOP.also) else UNKNOWN
    return Value(
        kind,
        Device(returned.devices),
        item=heard(returned.item) if returned.item is not None else None,
        items=tuple(map(heard, returned.items)),
        qualified=returned.qualified,
        rank=Rank(returned.rank),
        batch=returned.batch,
        scalar=returned.scalar,
        also=Also(returned.also),
    )


def _sorted(names: Collection[str]) -> tuple[str, ...]:
    return tuple(sorted(names))


def _passed(call: Called, place: int | None, keyword: str) -> Passed | None:
    for argument in call.arguments or ():
        if (place is not None and argument.place == place) or argument.keyword == keyword:
            return argument
    return None


def _same(given: Collection[Passed | None]) -> str:
    """The one class of the project that all make what they pass."""
    made = {argument.made if argument is not None else "" for argument in given}
    return made.pop() if len(made) == 1 else ""


def _value(argument: Passed) -> Value:
    kind = Kind[argument.kind]
    if kind is Kind.UNKNOWN:
        return UNKNOWN
    item = Value(Kind[argument.item], rank=Rank.CALLED) if argument.item else None
    return Value(kind, Device[argument.device], item=item, rank=Rank.USED if argument.proven else Rank.CALLED)
