"""A loader that is begun again for each batch that is taken from it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Doubt, Frequency
from torchlint.rule import Applicability, Call, Context, Flag, Insert, Message, Method, NodeEdit, Replace, Rule

RULE = Rule(
    name="next-iter-loader-in-loop",
    code="TL106",
    group="data",
    summary="A `DataLoader` is restarted for every batch that is taken from it.",
    since="0.2.0",
    fix=(Applicability.UNSAFE,),
    unsafe="the loop gets successive batches instead of the first of a new shuffle each time",
    doubts=((Doubt.RARE, "one batch in an epoch is there to look at, mostly the same one"),),
)
_RESTARTED = Message(
    "restarted", "`iter({loader})` restarts the loader{often}, for its first batch alone", help="{advice}"
)


@RULE.on(Call("next"), Method("next"), Method("__next__"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag `next(iter(loader))` that runs again and again on one and the same loader."""
    from torchlint.edits.messages import how_often

    loader = _loader(node)
    if loader is None or not _is_one_loader(loader, node, context):
        return
    frequency = context.frequency(node)
    size = _is_only_measured(node, context)
    if frequency < Frequency.EPOCH or _is_in_a_handler(node, context):
        return  # where nobody is seen to ask again, the first batch is all that is wanted
    code = context.shown(loader)
    advice = f"use `{code}.batch_size`" if size else "keep one iterator and take the next batch from it"
    yield Flag(
        node,
        _RESTARTED.of(loader=code, advice=advice, often=how_often(node, context)),
        title="Keep one iterator",
        edits=_with_one_iterator(node, loader, context),
        doubts=(Doubt.RARE,) if frequency is Frequency.EPOCH and not size else (),
    )


def _loader(node: cst.Call) -> cst.Name | cst.Attribute | cst.Subscript | None:
    """`loader` of `next(iter(loader))` and `iter(loader).next()`."""
    begun = node.args[0].value if node.args else node.func.value if isinstance(node.func, cst.Attribute) else None
    match begun:
        case cst.Call(func=cst.Name(value="iter"), args=[cst.Arg(value=loader, star="")]) if len(node.args) < 2:
            return loader if isinstance(loader, (cst.Name, cst.Attribute, cst.Subscript)) else None
    return None


def _is_one_loader(loader: cst.BaseExpression, node: cst.Call, context: Context) -> bool:
    """Whether this is a loader, and each iteration of the loop around it has the same."""
    from torchlint.analyses.data.loaders import made
    from torchlint.analyses.data.passes import Passes
    from torchlint.semantics.values.lattice import Kind

    sources = made(loader, context)
    if context.kind(loader) is not Kind.LOADER and not sources.calls and not context.kinds.is_loader_like(loader):
        return False
    if context.kind(loader) in (Kind.SEQUENCE, Kind.MAPPING):
        return False
    loop = context.loop(node)
    return loop is None or not context[Passes].varies(loader, loop)


def _is_only_measured(node: cst.Call, context: Context) -> bool:
    """`len(next(iter(loader))[0])`."""
    above = context.parent(node)
    while isinstance(above, (cst.Subscript, cst.Arg)):
        above = context.parent(above)
    return isinstance(above, cst.Call) and context.qualified_name(above.func) == "len"


def _is_in_a_handler(node: cst.Call, context: Context) -> bool:
    """Whether the loader has ended, or something else has gone wrong, where it is begun again."""
    return context.enclosing(node, cst.ExceptHandler) is not None


def _with_one_iterator(node: cst.Call, loader: cst.BaseExpression, context: Context) -> tuple[NodeEdit, ...]:
    """`batches = iter(loader)` above the loop, and in it `next(batches)`, which begins again when they have ended."""
    statement, loop = context.parent(node), context.loop(node)
    if not isinstance(statement, cst.Assign) or statement.value is not node:
        return ()
    line = context.parent(statement)
    if (
        loop is None
        or not isinstance(line, cst.SimpleStatementLine)
        or len(line.body) != 1
        or not isinstance(context.parent(loop), (cst.IndentedBlock, cst.Module))
        or not isinstance(loader, (cst.Name, cst.Attribute))
        or node.lpar
    ):
        return ()
    begin, indent = f"iter({context.code(loader)})", context.tree.indentation(line)
    taken = {name.value for name in context.tree.of(cst.Name)}
    stem = context.code(loader).removeprefix("self.").replace(".", "_")
    name = next((name for name in (f"{stem}_batches", f"{stem}_iterator") if name not in taken), None)
    if name is None or not stem.isidentifier():
        return ()
    deeper = indent + context.tree.module.default_indent
    targets = "".join(f"{context.code(target.target)} = " for target in statement.targets)
    take = f"{targets}next({name})"
    lines = (f"{deeper}{take}", f"{indent}except StopIteration:", f"{deeper}{name} = {begin}", f"{deeper}{take}")
    return (
        Insert(loop, f"{name} = {begin}\n{context.tree.indentation(loop)}", before=True),
        Replace(statement, "try:\n" + "\n".join(lines)),
    )
