"""What parameters hold: by their annotation, what callers pass, and their default."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.knowledge import apis
from torchlint.semantics.names.applied import applied
from torchlint.semantics.names.bindings import parameters
from torchlint.semantics.names.classes import is_static
from torchlint.semantics.values.lattice import (
    BOTTOM,
    NUMBER,
    UNKNOWN,
    Device,
    Kind,
    Rank,
    Value,
    join,
    mapping_of,
    off_cpu,
    overridable,
    sequence_of,
    tensor,
    turn_of,
)
from torchlint.semantics.values.signatures import argument

if TYPE_CHECKING:
    from torchlint.semantics.values.call_graph import Calls
    from torchlint.semantics.values.evaluator import Kinds


class Parameters:
    """The values of parameters in one module."""

    def __init__(self, kinds: Kinds) -> None:
        self.tree = kinds.tree
        self.classes = kinds.classes
        self.kinds = kinds

    def value(self, parameter: cst.Param) -> Value:
        """What a parameter holds."""
        function = self.tree.function_of_parameter(parameter)
        if parameter.annotation is not None:
            annotated = self.kinds.annotations.value(parameter.annotation.annotation)
            if parameter.star == "*":
                return sequence_of(annotated)
            if parameter.star == "**":
                return mapping_of(annotated)
            if annotated.kind is Kind.MODULE and is_class_name(parameter.name.value):
                return Value(Kind.CLASS, qualified=annotated.qualified)  # `Model: nn.Module` stands for a class
            if annotated and not (annotated.kind is Kind.TENSOR and _is_switch(parameter)):
                return self._where_it_is_given(annotated, function, parameter)
        if function is None or parameter.star in ("*", "**"):
            return UNKNOWN
        owner = self.classes.owner(function)
        first = next(parameters(function), None) is parameter
        if owner is not None and first and isinstance(function, cst.FunctionDef) and not is_static(function):
            return self.kinds.instance(owner)
        value = self._from_callers(function, parameter)
        if value or value is BOTTOM:
            return value
        if owner is not None and function is self.classes.methods(owner).get("forward"):  # noqa: SIM102 - two questions
            if self.classes.is_module(owner) and parameter.default is None:
                return tensor(rank=Rank.CALLED)
        if parameter.default is not None and not isinstance(parameter.default, cst.Name):
            default = self.kinds.value(parameter.default)
            if default.kind in (Kind.NUMBER, Kind.STRING) or (default.items and default.item is not None):
                return overridable(default).likely()
        return UNKNOWN

    def _where_it_is_given(self, annotated: Value, function: cst.CSTNode | None, parameter: cst.Param) -> Value:
        """What the annotation says; on the CPU if all callers of what nobody else is to call pass it from there."""
        if annotated.kind is not Kind.TENSOR or not isinstance(function, cst.FunctionDef):
            return annotated
        if not function.name.value.startswith("_") or function.name.value.endswith("__"):
            return annotated
        given = self._from_callers(function, parameter)
        if given is BOTTOM:
            return BOTTOM
        is_on_cpu = given.kind is Kind.TENSOR and given.device is Device.CPU
        return annotated.on(Device.CPU) if is_on_cpu and self._is_told(function, parameter) else annotated

    def _is_told(self, function: cst.FunctionDef, parameter: cst.Param) -> bool:
        """Whether something is known of what each call in this file passes."""
        calls = self.kinds.calls
        if calls is None:
            return False
        given = [calls.argument_for(call, function, parameter) for call in calls.callers(function)]
        values = [self.kinds.value(argument) if argument is not None else UNKNOWN for argument in given]
        return all(value or value is BOTTOM for value in values)

    def of_keywords(self, parameter: cst.Param) -> Value:
        """What each value of a `**` parameter is, where all callers in sight agree on it; there has to be one."""
        function = self.tree.function_of_parameter(parameter)
        if not isinstance(function, cst.FunctionDef) or self.kinds.calls is None:
            return UNKNOWN
        named = [found.name.value for found in parameters(function) if not found.star]
        values = self.kinds.elsewhere.keywords(function, named)
        if values is None:
            return UNKNOWN
        for call in self.kinds.calls.callers(function):
            if any(argument.star for argument in call.args):
                return UNKNOWN
            values += [
                self.kinds.value(argument.value)
                for argument in call.args
                if argument.keyword is not None and argument.keyword.value not in named
            ]
        return values[0].likely() if values and len({value.kind for value in values}) == 1 else UNKNOWN

    def _from_callers(self, function: cst.FunctionDef | cst.Lambda, parameter: cst.Param) -> Value:
        if isinstance(function, cst.Lambda):
            return self._from_elements(function, parameter)
        if self.kinds.calls is None:
            return UNKNOWN
        here = self._from_here(function, parameter, self.kinds.calls)
        if here.device is not Device.CPU:
            return here if here or here is BOTTOM else self._from_elsewhere(function, parameter)
        # What loads the data may share the function with what trains, and what tries a network with what uses it.
        others = self.kinds.elsewhere.callers(function)
        elsewhere = self._from_elsewhere(function, parameter)
        if elsewhere.kind is here.kind and here.kind is Kind.TENSOR:
            here = join([here, elsewhere]).likely()
        is_tried = self._is_only_tried(function, self.kinds.calls, is_called=bool(others))
        return off_cpu(here) if is_tried or (others and here.kind is Kind.MODULE) else here

    def _from_elements(self, function: cst.Lambda, parameter: cst.Param) -> Value:
        """What one that a lambda is run for each element of gives: `map(lambda t: …, tensors)`."""
        found = applied(function, self.tree, self.kinds.names)
        place = next((place for place, given in enumerate(parameters(function)) if given is parameter), None)
        if found is None or place is None or place >= len(found.iterables):
            return UNKNOWN
        return turn_of(self.kinds.value(found.iterables[place]))

    def _is_only_tried(self, function: cst.FunctionDef, calls: Calls, *, is_called: bool) -> bool:
        """Whether `if __name__ == "__main__"` tries what is there for others, on the CPU or not.

        That is a method of a network, or what other files call.
        """
        owner = self.classes.owner(function)
        if not is_called and (owner is None or not self.classes.is_module(owner)):
            return False
        callers = calls.callers(function)
        return bool(callers) and all(
            any(isinstance(above, cst.If) and is_main_guard(above.test) for above in self.tree.ancestors(call))
            for call in callers
        )

    def _from_elsewhere(self, function: cst.FunctionDef, parameter: cst.Param) -> Value:
        return self.kinds.elsewhere.passed(function, self.place(function, parameter), parameter.name.value)

    def place(self, function: cst.FunctionDef, parameter: cst.Param) -> int | None:
        """The position behind `self` at which the parameter is passed."""
        order = [found for found in parameters(function) if not found.star]
        if self.classes.owner(function) is not None and not is_static(function):
            order = order[1:]
        return next((place for place, found in enumerate(order) if found is parameter), None)

    def _from_here(self, function: cst.FunctionDef, parameter: cst.Param, calls: Calls) -> Value:
        values = []
        for call in calls.callers(function):
            argument = calls.argument_for(call, function, parameter)
            if argument is None:
                return UNKNOWN
            value = self.kinds.value(argument)
            values.append(overridable(value) if argument is parameter.default else value)
        values += self._from_launchers(function, parameter)
        if values and all(value is BOTTOM for value in values):
            return BOTTOM
        values = [value for value in values if value is not BOTTOM]
        known = [value for value in values if value]
        # A caller elsewhere may pass something else: what callers here agree on is likely, unless only they can call.
        if not known or len(known) < len(values):
            return join(known).likely() if known and len({value.kind for value in known}) == 1 else UNKNOWN
        return join(known)

    def _from_launchers(self, function: cst.FunctionDef, parameter: cst.Param) -> list[Value]:
        """What those pass that start processes: `spawn(main, args=(path,))` calls `main(number, path)` in each."""
        place = next((place for place, found in enumerate(parameters(function)) if found is parameter), None)
        if place is None or self.kinds.calls is None:
            return []
        values = []
        for call in self.kinds.calls.launches(function):
            launcher = self.kinds.names.qualified(call.func) or ""
            given = argument(call, "args")
            if given is None and launcher in apis.LAUNCHERS and len(call.args) > 1 and call.args[1].keyword is None:
                given = call.args[1].value
            passed = self.kinds.value(given).items if given is not None else ()
            numbered = (NUMBER, *passed) if launcher in apis.SPAWNERS else passed
            values.append(numbered[place] if place < len(numbered) else UNKNOWN)
        return values


def is_main_guard(test: cst.BaseExpression) -> bool:
    """Whether a condition asks for the module's name, `__name__ == "__main__"`."""
    match test:
        case cst.Comparison(left=cst.Name(value="__name__")):
            return True
    return False


def _is_switch(parameter: cst.Param) -> bool:
    """`features_only: Optional[Tensor] = True`: the default knows better than the annotation."""
    return isinstance(parameter.default, cst.Name) and parameter.default.value in ("True", "False")


def is_class_name(name: str) -> bool:
    """`Generator` is a class, `generator` one of its instances, and so is `G`."""
    return name[:1].isupper() and not name.isupper()
