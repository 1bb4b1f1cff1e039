"""Where a script may set something for the whole process: below the imports that it opens with."""

from __future__ import annotations

import libcst as cst

from torchlint.rule import InsertBelow
from torchlint.semantics.context import Context
from torchlint.semantics.names.bindings import Binder


def below_imports(function: str, arguments: str, context: Context) -> tuple[InsertBelow, ...]:
    """The edit that calls a function of torch there, behind an empty line; none where nothing above names torch."""
    line = _last_import(context)
    if line is None:
        return ()
    end = context.tree.place(line)
    for name, bindings in context.names.module.bindings.items():
        if all(binding.binder is Binder.IMPORT and binding.target == "torch" for binding in bindings):
            above = context.tree.line(bindings[0].node)
            if above is not None and context.parent(above) is context.tree.module and context.tree.place(above) <= end:
                return (InsertBelow(line, "\n" + name + function.removeprefix("torch") + arguments),)
    return ()


def _last_import(context: Context) -> cst.SimpleStatementLine | None:
    """The last of the imports with which the module opens, behind its docstring."""
    found: cst.SimpleStatementLine | None = None
    for place, line in enumerate(context.tree.module.body):
        if not isinstance(line, cst.SimpleStatementLine):
            break
        if all(isinstance(part, (cst.Import, cst.ImportFrom)) for part in line.body):
            found = line
        elif place or not isinstance(line.body[0], cst.Expr):
            break
    return found
