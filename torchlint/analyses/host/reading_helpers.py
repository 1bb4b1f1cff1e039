"""Reads through functions that do nothing else: `to_np(loss)`, where `to_np` gives `x.detach().cpu().numpy()`."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

import libcst as cst

from torchlint.analyses.host.reads import is_device_tensor, is_host_only
from torchlint.readers import Way, readers, way_of
from torchlint.semantics.context import Context
from torchlint.semantics.names.bindings import final_part, method_name
from torchlint.semantics.values.lattice import Device, Kind

_MOST = 8  # parameters, or statements, of a function that does no more than to read


class Readers:
    """The functions that do nothing but read what they are given, as far as one module knows them."""

    def __init__(self, context: Context) -> None:
        self._context = context

    @cached_property
    def own(self) -> Mapping[cst.FunctionDef | cst.Lambda, Way]:
        """The functions of the module that read what they are given, and do no more than that."""
        calls = (call for call in self._context.tree.of(cst.Call) if method_name(call.func) in ("cpu", "to", "item"))
        functions = dict.fromkeys(map(self._context.function, calls))
        return {
            function: way
            for function in functions
            if function is not None and (way := self._way_of(function)) is not None
        }

    def _way_of(self, function: cst.FunctionDef | cst.Lambda) -> Way | None:
        if isinstance(function, cst.Lambda):
            return way_of(f"({self._context.code(function)})")
        is_small = len(function.params.params) <= _MOST and len(function.body.body) <= _MOST
        return way_of(self._context.code(function)) if is_small else None

    @cached_property
    def calls(self) -> Mapping[cst.Call, Way]:
        """The calls of such, of this module or of another one of the project."""
        names = {name for function in self.own if (name := _name(function, self._context)) is not None}
        found = {}
        for call in self._context.tree.of(cst.Call):
            if len(call.args) == 1 and (way := self._way(call, names)) is not None:
                found[call] = way
        return found

    @cached_property
    def items(self) -> frozenset[cst.Call]:
        """The calls that read one element."""
        return frozenset(call for call, way in self.calls.items() if way is Way.ITEM)

    @cached_property
    def copies(self) -> frozenset[cst.Call]:
        """The calls that copy a tensor as a whole."""
        return frozenset(call for call, way in self.calls.items() if way is not Way.ITEM)

    def _way(self, call: cst.Call, own: Collection[str]) -> Way | None:
        func = call.func
        if not isinstance(func, (cst.Name, cst.Attribute)):
            return None
        if final_part(func) in own:
            named = self._context.stands_for(func) if isinstance(func, cst.Name) else None
            function = named if isinstance(named, cst.Lambda) else self._context.calls.target(call)
            return None if function is None else self.own.get(function)
        name = self._context.qualified_name(func)
        return self._context.elsewhere.reads(name) if name is not None else None


def read_through(node: cst.CSTNode, context: Context) -> cst.BaseExpression | None:
    """The tensor that a call hands to a function which does nothing but read it; None if it lives on the CPU."""
    match node:
        case cst.Call(args=[cst.Arg(value=given, keyword=None, star="")]) if node in context[Readers].calls:
            # What somebody calls `x.cpu()` of is a tensor.
            is_unclear = context[Readers].calls[node] is Way.COPY and context.kind(given) is Kind.UNKNOWN
            is_read = is_unclear and not is_host_only(context, Device.UNKNOWN)
            return given if is_read or is_device_tensor(given, context) else None
    return None


def is_read_for_callers(node: cst.CSTNode, context: Context) -> bool:
    """Whether the node is the read of a function that does no more, which is said of those who call it."""
    function = context.tree.function(node)
    way = context[Readers].own.get(function) if function is not None else None
    if way is None or function is None:
        return False
    if isinstance(function, cst.Lambda):
        calls: Sequence[cst.Call] = _calls_of(function, context)
    else:
        calls = context.calls.callers(function)
        # Other files know it by its text, and no method.
        is_known = context.classes.owner(function) is None and function.name.value in readers(context.source.text)
        if is_known and context.elsewhere.callers(function):
            return True
    if way is not Way.ITEM:
        return bool(calls)
    return any(read_through(call, context) is not None for call in calls)


def _calls_of(function: cst.Lambda, context: Context) -> list[cst.Call]:
    """The calls by the name that a lambda is given."""
    name = _name(function, context)
    above = map(context.parent, context.names.spelt(name)) if name is not None else ()
    return [call for call in above if isinstance(call, cst.Call)]


def _name(function: cst.FunctionDef | cst.Lambda, context: Context) -> str | None:
    if isinstance(function, cst.FunctionDef):
        return function.name.value
    match context.parent(function):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]):
            return name
    return None
