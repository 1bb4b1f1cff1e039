"""Branches that are taken the first time only: what an object or a dictionary lacks is made, and stays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.execution.guards import asked_for, is_missing, kept, makes_what_is_missing, missing
from torchlint.semantics.names.bindings import dotted
from torchlint.syntax.tree import descendants

if TYPE_CHECKING:
    from torchlint.semantics.names.bindings import Names
    from torchlint.syntax.tree import Tree


def is_first_time(statement: cst.If, names: Names) -> bool:
    """Whether the body of the statement makes what its condition finds missing, and keeps it."""
    return (
        makes_what_is_missing(statement)
        or is_first_of_its_kind(statement, names)
        or makes_an_entry(statement, statement.body, cst.NotIn, names)
        or _makes_what_was_not_got(statement, names)
    )


def gives_what_is_kept(statement: cst.If, left: cst.Return, tree: Tree) -> bool:
    """Whether what follows makes what the statement gives where it is: `if self.x is not None: return self.x`."""
    function = tree.function(statement)
    if left.value is None or not isinstance(function, cst.FunctionDef):
        return False
    asked, given = (_own_parts(node) for node in (statement.test, left.value))
    return any(kept(node) in asked & given for node in descendants(function.body) if isinstance(node, cst.AssignTarget))


def _own_parts(node: cst.CSTNode) -> set[str]:
    """The attributes of the object that are named, also by `hasattr(self, "x")`."""
    found = {name for part in descendants(node) if isinstance(part, cst.Attribute) and (name := dotted(part))}
    found |= {name for part in descendants(node) if isinstance(part, cst.Call) and (name := asked_for(part))}
    return {name for name in found if name.startswith("self.")}


def is_first_of_its_kind(statement: cst.If, names: Names) -> bool:
    """Whether a dictionary outside of the function lacks a key, and gets it: `if n not in of: of[n] = …`."""
    match statement.test:
        case cst.Comparison(
            left=key, comparisons=[cst.ComparisonTarget(operator=cst.NotIn(), comparator=cst.Name() as asked)]
        ):
            scope, bindings = names.lookup(asked)
            is_outer = scope is not None and scope is not names.scope_of(asked)
            is_kept = is_outer and any(_is_dictionary(binding.value) for binding in bindings)
            return is_kept and any(_has_key(node, key) for node in descendants(statement.body))
    return False


def is_for_another(node: cst.CSTNode, names: Names) -> bool:
    """Whether the node runs only when something is another than the object remembers, which then remembers it.

    `if self.size != x.shape: self.size = x.shape`, also beside what does not hold at the node, or the first time only.
    """
    child = node
    absent: list[cst.BaseExpression] = []
    for above in names.tree.ancestors(node):
        if isinstance(above, (cst.FunctionDef, cst.Lambda, cst.ClassDef)):
            return False
        if isinstance(above, cst.If) and child is above.body:
            parts = _alternatives(above.test)
            stored = {name for inner in descendants(above.body) if (name := kept(inner))}
            differs = [bool(_compared(part) & stored) for part in parts]
            if any(differs) and all(
                is_other or missing(part) in stored or _is_there(part, absent)
                for part, is_other in zip(parts, differs, strict=True)
            ):
                return True
            absent += _absent(above.test)
        child = above
    return False


def _alternatives(test: cst.BaseExpression) -> list[cst.BaseExpression]:
    match test:
        case cst.BooleanOperation(left=left, operator=cst.Or(), right=right):
            return [*_alternatives(left), *_alternatives(right)]
    return [test]


def _compared(test: cst.BaseExpression) -> set[str]:
    """The attributes that are compared for being another."""
    match test:
        case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=cst.NotEqual(), comparator=right)]):
            return {dotted(side) or "" for side in (left, right) if isinstance(side, cst.Attribute)}
    return set()


def _absent(test: cst.BaseExpression) -> list[cst.BaseExpression]:
    """What is None where the condition holds."""
    match test:
        case cst.Comparison(
            left=left, comparisons=[cst.ComparisonTarget(operator=cst.Is(), comparator=cst.Name(value="None"))]
        ):
            return [left]
    return []


def _is_there(test: cst.BaseExpression, absent: list[cst.BaseExpression]) -> bool:
    """Whether the condition asks for what is None: `x is not None` above `x is None`."""
    match test:
        case cst.Comparison(
            left=left, comparisons=[cst.ComparisonTarget(operator=cst.IsNot(), comparator=cst.Name(value="None"))]
        ):
            return any(left.deep_equals(other) for other in absent)
    return False


def makes_an_entry(statement: cst.If, body: cst.CSTNode, operator: type[cst.BaseCompOp], names: Names) -> bool:
    """Whether what belongs to the object gets an entry that it lacks: `if "n" not in state: state["n"] = …`."""
    match statement.test:
        case cst.Comparison(
            left=cst.SimpleString() as key,
            comparisons=[cst.ComparisonTarget(operator=asked, comparator=cst.Name() as name)],
        ) if isinstance(asked, operator):
            values = [binding.value for binding in names.reaching(name) if binding.value is not None]
            return any(map(_is_own, values)) and any(_has_key(node, key) for node in descendants(body))
        case cst.Comparison(
            left=key,
            comparisons=[cst.ComparisonTarget(operator=asked, comparator=cst.Attribute() | cst.Subscript() as table)],
        ) if isinstance(asked, operator) and _is_own(table):
            return any(_has_key(node, key, table) for node in descendants(body))
    return False


def _makes_what_was_not_got(statement: cst.If, names: Names) -> bool:
    """Whether the body makes what a dictionary that stays did not give: `x = made.get(key)`, `made[key] = x`."""
    if not is_missing(statement.test) or not isinstance(statement.test, cst.Comparison):
        return False
    name = statement.test.left
    bindings = names.reaching(name) if isinstance(name, cst.Name) else ()
    given = {_asked_of(binding.value) for binding in bindings if binding.value is not None and not binding.path}
    stores = [
        node.target.value
        for node in descendants(statement.body)
        if isinstance(node, cst.AssignTarget) and isinstance(node.target, cst.Subscript)
    ]
    return any(
        isinstance(store, cst.Name) and store.value in given and _outlives_the_call(store, names) for store in stores
    )


def _outlives_the_call(name: cst.Name, names: Names) -> bool:
    """Whether it is bound outside of the function that names it."""
    bindings, function = names.reaching(name), names.tree.function(name)
    return bool(bindings) and all(
        not isinstance(binding.node, cst.Param) and names.tree.function(binding.node) is not function
        for binding in bindings
    )


def _asked_of(value: cst.BaseExpression) -> str | None:
    """The dictionary that may give this: `made` of `made.get(key)`."""
    match value:
        case cst.Call(func=cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value="get"))):
            return name
    return None


def _is_own(value: cst.BaseExpression) -> bool:
    """Whether it is a part of an attribute: `self.state[p]`, or what a loop goes over."""
    return any(
        isinstance(node, cst.Attribute) and isinstance(node.value, cst.Name) and node.value.value == "self"
        for node in descendants(value)
    )


def _has_key(node: cst.CSTNode, key: cst.BaseExpression, table: cst.BaseExpression | None = None) -> bool:
    """Whether an entry is assigned for a key: to this table, if one is given."""
    match node:
        case cst.AssignTarget(
            target=cst.Subscript(value=owner, slice=[cst.SubscriptElement(slice=cst.Index(value=value))])
        ):
            return value.deep_equals(key) and (table is None or owner.deep_equals(table))
    return False


def _is_dictionary(value: cst.BaseExpression | None) -> bool:
    """`{}` and `dict()`, which are filled later."""
    match value:
        case cst.Dict(elements=[]) | cst.Call(func=cst.Name(value="dict" | "OrderedDict"), args=[]):
            return True
    return False
