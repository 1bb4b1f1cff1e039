"""Environment variables for debugging that the code sets itself, and so for every run."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Applicability, Context, Doubt, Flag, Message, Node, Replace, Rule, Status
from torchlint.semantics.knowledge.conventions.functions import DEBUGGING_FUNCTION

RULE = Rule(
    name="debug-env-in-code",
    code="TL641",
    group="precision",
    summary="The code sets a debugging environment variable, which slows down every run.",
    since="0.2.0",
    status=Status.PREVIEW,
    fix=(Applicability.UNSAFE,),
    unsafe="errors on the GPU are reported later than at the call that caused them",
    doubts=((Doubt.MEANT, ""),),
)
_DEBUGGING = Message(
    "debugging", "`{name}={value}` {effect}, in every run of this program", help="set it in the shell when you need it"
)
# What each variable makes of the run, and the values that switch it on.
_ON = frozenset({"1", "true", "yes", "on", "y"})
_EFFECTS = {
    "CUDA_LAUNCH_BLOCKING": ("blocks the CPU at every kernel launch", _ON),
    "PYTORCH_NO_CUDA_MEMORY_CACHING": ("allocates and frees GPU memory for every tensor, and synchronizes", _ON),
    "TORCH_DISTRIBUTED_DEBUG": ("compares all ranks before every collective", frozenset({"detail"})),
}
_TOKENS = tuple(name.encode() for name in _EFFECTS)


@RULE.on(Node("Assign", _TOKENS), Node("Call", _TOKENS))
def check(node: cst.Assign | cst.Call, context: Context) -> Iterator[Flag]:
    """Flag `os.environ[…] = "1"` and the like for such a variable, where nobody has to ask for it."""
    from torchlint.analyses.execution.rarity import is_named

    given = _setting(node, context)
    if given is None:
        return
    name, value = given
    effect, on = _EFFECTS.get(name, ("", frozenset()))
    if value.lower() not in on or _is_asked_for(node, context):
        return
    yield Flag(
        node,
        _DEBUGGING.of(name=name, value=value, effect=effect),
        title="Remove it",
        edits=_removed(node, context),
        doubts=(Doubt.MEANT,) if is_named(node, DEBUGGING_FUNCTION, context) else (),
    )


def _setting(node: cst.Assign | cst.Call, context: Context) -> tuple[str, str] | None:
    """The variable and the value that the node sets it to: by `os.environ[…] =`, `.setdefault` or `os.putenv`."""
    match node:
        case cst.Assign(
            targets=[
                cst.AssignTarget(
                    target=cst.Subscript(
                        value=owner, slice=[cst.SubscriptElement(slice=cst.Index(value=cst.SimpleString() as name))]
                    )
                )
            ],
            value=cst.SimpleString() as value,
        ):
            pass
        case cst.Call(
            func=func, args=[cst.Arg(value=cst.SimpleString() as name), cst.Arg(value=cst.SimpleString() as value)]
        ):
            if context.qualified_name(func) == "os.putenv":
                return str(name.evaluated_value), str(value.evaluated_value)
            if not isinstance(func, cst.Attribute) or func.attr.value != "setdefault":
                return None
            owner = func.value
        case _:
            return None
    if context.qualified_name(owner) != "os.environ":
        return None
    return str(name.evaluated_value), str(value.evaluated_value)


def _is_asked_for(node: cst.CSTNode, context: Context) -> bool:
    """Whether a condition decides on it."""
    if context.enclosing(node, cst.Else) is not None:
        return True
    return not all(_always_holds(test, context) for test, _ in context.conditions(node, across_functions=True))


def _always_holds(test: cst.BaseExpression, context: Context) -> bool:
    """Whether a condition is no choice: `if __name__ == "__main__":`."""
    from torchlint.analyses.provenance.constants import decided

    match test:
        case cst.Comparison(left=cst.Name(value="__name__")):
            return True
    return decided(test, context) is True


def _removed(node: cst.Assign | cst.Call, context: Context) -> tuple[Replace, ...]:
    """The edit that takes the line out, if it holds nothing else and is not all that its block has."""
    from torchlint.edits.expressions import deleted

    line = context.tree.line(node)
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) != 1:
        return ()
    if isinstance(node, cst.Call) and not isinstance(context.parent(node), cst.Expr):
        return ()
    block = context.parent(line)
    if not isinstance(block, (cst.IndentedBlock, cst.Module)) or len(block.body) < 2:
        return ()
    has_comment = line.trailing_whitespace.comment is not None or any(empty.comment for empty in line.leading_lines)
    return () if has_comment else (deleted(line, context),)
