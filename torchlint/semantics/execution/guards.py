"""Conditions that hold the first time only: something is not there yet, and is made."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.knowledge.conventions.conditions import STARTED_FLAG
from torchlint.semantics.names.bindings import dotted
from torchlint.syntax.tree import descendants


def missing(test: cst.BaseExpression) -> str | None:
    """What is not there yet where the condition holds.

    `self.x` of `self.x is None`, `getattr(self, "x", None) is None` and `not hasattr(self, "x")`; `state[]`, which
    stands for its entries, of `len(state) == 0`.
    """
    match test:
        case cst.Comparison(
            left=left, comparisons=[cst.ComparisonTarget(operator=cst.Is(), comparator=cst.Name(value="None"))]
        ):
            return asked_for(left)
        case cst.UnaryOperation(operator=cst.Not(), expression=cst.Call(func=cst.Name(value="hasattr")) as asked):
            return asked_for(asked)
        case cst.Comparison(
            left=cst.Call(func=cst.Name(value="len"), args=[cst.Arg(value=cst.Name(value=name))]),
            comparisons=[cst.ComparisonTarget(operator=cst.Equal(), comparator=cst.Integer(value="0"))],
        ):
            return f"{name}[]"
    return None


def asked_for(node: cst.BaseExpression) -> str | None:
    """The attribute itself, or that for which `hasattr(self, "x")` or `getattr(self, "x", None)` asks."""
    match node:
        case cst.Attribute():
            return dotted(node)
        case cst.Call(
            func=cst.Name(value="hasattr" | "getattr"),
            args=[cst.Arg(value=owner), cst.Arg(value=cst.SimpleString() as key), *_],
        ):
            return _member(owner, key)
    return None


def is_missing(test: cst.BaseExpression) -> bool:
    """Whether the condition asks whether something is not there yet: an attribute, or a name that may be None."""
    match test:
        case cst.Comparison(
            left=cst.Name(), comparisons=[cst.ComparisonTarget(operator=cst.Is(), comparator=cst.Name(value="None"))]
        ):
            return True
    return missing(test) is not None


def makes_what_is_missing(statement: cst.If) -> bool:
    """Whether the body makes what was missing: `if not hasattr(self, "x"): self.x = …`, `if self.x is None: …`."""
    wanted = missing(statement.test)
    if wanted is not None:
        return any(kept(node) == wanted for node in descendants(statement.body))
    if _is_not_started(statement.test) or _lowers_its_flag(statement):
        return True
    match statement.test:
        case cst.Comparison(left=cst.Name(value=name)) if is_missing(statement.test):
            return any(_remembers(node, name) for node in descendants(statement.body))
    return False


def _lowers_its_flag(statement: cst.If) -> bool:
    """`if self.is_due: self.is_due = False`, and `if not self.is_done: self.is_done = True`."""
    match statement.test:
        case cst.Attribute() as flag:
            answer = "False"
        case cst.UnaryOperation(operator=cst.Not(), expression=cst.Attribute() as flag):
            answer = "True"
        case _:
            return False
    return _sets(statement.body, flag, answer) and not (statement.orelse and _sets(statement.orelse, flag, ""))


def _sets(body: cst.CSTNode, flag: cst.Attribute, answer: str) -> bool:
    """Whether the flag is set to the answer there, or, without one, to anything."""
    return any(
        isinstance(node, cst.Assign)
        and (not answer or (isinstance(node.value, cst.Name) and node.value.value == answer))
        and any(target.target.deep_equals(flag) for target in node.targets)
        for node in descendants(body)
    )


def _is_not_started(test: cst.BaseExpression) -> bool:
    """`not self.initialized`, and `self.training and not self.initialized`."""
    match test:
        case cst.BooleanOperation(left=left, operator=cst.And(), right=right):
            return _is_not_started(left) or _is_not_started(right)
        case cst.UnaryOperation(operator=cst.Not(), expression=cst.Attribute(attr=cst.Name(value=name))):
            return STARTED_FLAG.suggests(name)
    return False


def _remembers(node: cst.CSTNode, name: str) -> bool:
    """`self.cache[key] = name`."""
    match node:
        case cst.Assign(
            targets=[cst.AssignTarget(target=cst.Subscript(value=cst.Attribute()))],
            value=cst.Name() as of,
        ):
            return of.value == name
    return False


def kept(node: cst.CSTNode) -> str | None:
    """The attribute or entries that a target assigns, or that a call registers as a buffer."""
    match node:
        case cst.AssignTarget(target=cst.Subscript(value=cst.Name(value=name))):
            return f"{name}[]"
        case cst.AssignTarget(target=cst.Attribute() as target):
            return dotted(target)
        case cst.Call(
            func=cst.Attribute(value=owner, attr=cst.Name(value="register_buffer")),
            args=[cst.Arg(value=cst.SimpleString() as key), *_],
        ):
            return _member(owner, key)
    return None


def _member(owner: cst.BaseExpression, key: cst.SimpleString) -> str:
    return f"{dotted(owner)}.{key.raw_value}"
