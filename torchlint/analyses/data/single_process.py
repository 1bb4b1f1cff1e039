"""Datasets that several workers would read wrongly: they share an open file, or each has to see all samples."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.names.bindings import dotted
from torchlint.syntax.tree import descendants, descendants_in_scope

# What opens a file whose place a forked worker has in common with the others.
_OPENERS = frozenset({"open", "io.open", "h5py.File", "zipfile.ZipFile", "tarfile.open"})


def in_one_process(class_: cst.ClassDef, getter: cst.FunctionDef, context: Context) -> bool:
    """Whether samples are right only where one process makes all of them, each time in the same order."""
    functions = _reached(getter, context)
    return _shares_a_file(class_, functions, context) or any(_follows_the_order(function) for function in functions)


def _reached(function: cst.FunctionDef, context: Context) -> list[cst.FunctionDef]:
    """The function and the methods that it calls, and those that they call."""
    found = [function]
    for reached in found:
        for call in descendants(reached.body):
            if isinstance(call, cst.Call) and (dotted(call.func) or "").startswith("self."):
                target = context.calls.target(call)
                if target is not None and target not in found:
                    found.append(target)
    return found


def _shares_a_file(class_: cst.ClassDef, functions: list[cst.FunctionDef], context: Context) -> bool:
    """Whether `__init__` opens a file and keeps it in an attribute from which samples are read."""
    read = {name for function in functions for name in map(dotted, descendants(function.body)) if name is not None}
    for name in {name.split(".")[1] for name in read if name.startswith("self.")}:
        for entry in context.classes.attribute_sets(class_, name):
            function = context.tree.function(entry.node)
            if (
                isinstance(entry.value, cst.Call)
                and context.qualified_name(entry.value.func) in _OPENERS
                and isinstance(function, cst.FunctionDef)
                and function.name.value == "__init__"
            ):
                return True
    return False


def _follows_the_order(function: cst.FunctionDef) -> bool:
    """Whether a sample is picked by what those before have left: `self.day = (self.day + 1) % n`, `days[self.day]`."""
    advanced = set(filter(None, map(_advanced, descendants_in_scope(function.body))))
    return bool(advanced) and any(
        dotted(part) in advanced
        for node in descendants_in_scope(function.body)
        if isinstance(node, cst.Subscript)
        for element in node.slice
        for part in descendants(element)
    )


def _advanced(node: cst.CSTNode) -> str | None:
    """The attribute that a statement sets to something that comes of its value so far."""
    match node:
        case cst.AugAssign(target=cst.Attribute(value=cst.Name(value="self")) as target):
            return dotted(target)
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute(value=cst.Name(value="self")) as target)]):
            name = dotted(target)
            return name if any(dotted(part) == name for part in descendants(node.value)) else None
    return None
