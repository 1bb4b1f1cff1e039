"""What an expression names, wherever it is named: `self.critic` in one method is `self.critic` in another."""

from __future__ import annotations

from typing import TypeAlias

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.flow.query import query
from torchlint.semantics.names.bindings import Binder

# The scope or class that owns the name, and the attributes.
Place: TypeAlias = "tuple[object, ...]"


@query(bottom=None)
def place(node: cst.BaseExpression, context: Context) -> Place | None:
    """What an expression names; through parameters, where all callers pass the same."""
    match node:
        case cst.Name():
            class_ = context.classes.self_class(node)
            if class_ is not None:
                return (class_,)
            scope, bindings = context.names.lookup(node)
            if scope is None or not bindings:
                return None
            [first, *more] = bindings
            if not more and first.binder is Binder.PARAMETER and isinstance(first.node, cst.Param):
                passed = _passed(first.node, context)
                return passed.pop() if len(passed) == 1 else (scope, node.value)
            return (scope, node.value)
        case cst.Attribute(value=owner, attr=cst.Name(value=name)):
            above = place(owner, context)
            return above if above is None or name == "module" else (*above, name)
    return None


def _passed(parameter: cst.Param, context: Context) -> set[Place]:
    function = context.tree.function_of_parameter(parameter)
    if not isinstance(function, cst.FunctionDef):
        return set()
    given = [context.calls.argument_for(call, function, parameter) for call in context.calls.callers(function)]
    found = {place(argument, context) if argument is not None else None for argument in given}
    return {each for each in found if each is not None} if None not in found else set()
