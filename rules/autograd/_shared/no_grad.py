"""The code that turns autograd off, for a function or around statements."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import libcst as cst

from torchlint.rule import Context, Insert, NodeEdit, Replace
from torchlint.semantics.knowledge.conventions.functions import ENTRY_POINT
from torchlint.semantics.names.bindings import Binder
from torchlint.syntax.tree import descendants_in_scope

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torchlint.semantics.names.bindings import Scope

    from .evaluation import Evaluation, Line

NOTHING: Mapping[cst.Call, cst.Call] = MappingProxyType({})
# Calls that are more statements apart than this are wrapped one by one.
_FAR = 5


def without_grad(
    evaluation: Evaluation, context: Context, instead: Mapping[cst.Call, cst.Call] = NOTHING
) -> tuple[str, tuple[NodeEdit, ...]]:
    """A title and the edits: a decorator where a function does nothing else, a `with` around the calls elsewhere.

    In lines that are written again, `instead` says what comes in the place of a call.
    """
    function = evaluation.function
    if function is not None and not ENTRY_POINT.suggests(function.name.value) and not _suspends(function):
        no_grad = _no_grad(function, context)
        if no_grad:
            indent = context.code_at(cst.SimpleStatementLine([cst.Pass()]), function).partition("pass")[0]
            return f"Decorate it with `@{no_grad}`", (Insert(function, f"@{no_grad}\n{indent}", before=True),)
        return "", ()
    groups = _groups(evaluation, context)
    no_grad = _no_grad(groups[0][0], context) if groups else ""
    if not no_grad or any(_suspends(line) for lines in groups for line in lines):
        return "", ()
    return f"Evaluate in `with {no_grad}:`", tuple(
        edit for lines in groups for edit in _wrapped(lines, no_grad, context, instead)
    )


def _suspends(node: cst.CSTNode) -> bool:
    """Whether the code may be left in the middle: the mode would leak into whatever runs then."""
    return any(isinstance(inner, (cst.Yield, cst.Await)) for inner in descendants_in_scope(node))


def _no_grad(place: cst.CSTNode, context: Context) -> str:
    """`torch.no_grad()` as it can be written at this place; empty if torch has no name there."""
    scope: Scope | None = context.names.scope_of(place)
    hidden: set[str] = set()
    while scope is not None:
        for name, bindings in scope.bindings.items():
            targets = {binding.target for binding in bindings}
            known = all(binding.binder is Binder.IMPORT for binding in bindings)
            if known and name not in hidden and bindings[0].effect < context.tree.place(place):
                if targets == {"torch"}:
                    return f"{name}.no_grad()"
                if targets == {"torch.no_grad"}:
                    return f"{name}()"
        hidden.update(scope.bindings)
        scope = scope.parent
        while scope is not None and scope.is_class:
            scope = scope.parent
    return ""


def _groups(evaluation: Evaluation, context: Context) -> list[list[Line]]:
    """The lines that call a model, with the few that stand between them."""
    groups: list[list[int]] = []
    for place, line in enumerate(evaluation.lines):
        if not any(context.tree.within(call, line) for call in evaluation.calls):
            continue
        if groups and place - groups[-1][-1] <= _FAR:
            groups[-1].append(place)
        else:
            groups.append([place])
    return [list(evaluation.lines[group[0] : group[-1] + 1]) for group in groups]


def _wrapped(lines: list[Line], no_grad: str, context: Context, instead: Mapping[cst.Call, cst.Call]) -> list[NodeEdit]:
    first, *others = lines
    block = context.parent(first)
    body = [first.with_changes(leading_lines=()), *others]
    with_ = cst.With(
        [cst.WithItem(cst.parse_expression(no_grad))],
        cst.IndentedBlock(body, indent=block.indent if isinstance(block, cst.IndentedBlock) else None),
        leading_lines=first.leading_lines,
    )
    for old, new in instead.items():
        with_ = cst.ensure_type(with_.deep_replace(old, new), cst.With)
    code = context.code_at(with_, first)
    module = context.tree.module
    if not module.has_trailing_newline and context.tree.end(lines[-1]) == context.tree.end(module):
        code = code.removesuffix("\n").removesuffix("\r")
    return [Replace(first, code), *(Replace(other, "") for other in others)]
