"""Modules that are all alike, called one after another on the same input, where one as wide as all takes one call."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.finding import Frequency
from torchlint.rule import Call, Context, Flag, Message, Rule, Status

RULE = Rule(
    name="parallel-heads-loop",
    code="TL514",
    group="modules",
    summary="Layers of one size run one by one on the same input, each with its own kernels.",
    since="0.2.0",
    status=Status.PREVIEW,
    default=False,
)
_ALIKE = Message(
    "alike",
    "`{modules}` holds `{name}` layers of one size that run one by one on the same input{often}",
    help="{advice}",
)


@RULE.on(Call("torch.cat"), Call("torch.stack"), Call("torch.concat"), Call("torch.concatenate"))
def check(call: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag `torch.cat([head(x) for head in self.heads])` where the heads are made alike."""
    from torchlint.edits.messages import how_often

    from .alike import alike

    tensors = context.argument(call, "tensors", 0)
    listed = _each_module_on_the_same(tensors)
    if listed is None or context.frequency(call) is Frequency.ONCE:
        return
    made = alike(listed, context)
    if made is None:
        return
    name = (context.qualified_name(made.func) or context.code(made.func)).rpartition(".")[2]
    advice = (
        "use one `nn.Linear` as wide as all of them"
        if name == "Linear"
        else "use one layer as wide as all of them, or `torch.func.stack_module_state` with `vmap`"
    )
    yield Flag(
        call,
        _ALIKE.of(modules=context.shown(listed), name=name, advice=advice, often=how_often(call, context)),
    )


def _each_module_on_the_same(tensors: cst.BaseExpression | None) -> cst.BaseExpression | None:
    """`self.heads` of `[head(x) for head in self.heads]`; None if the call is another in each iteration for more."""
    match tensors:
        case (
            cst.ListComp(
                elt=cst.Call(func=cst.Name(value=called), args=args),
                for_in=cst.CompFor(target=cst.Name(value=name), iter=listed, ifs=[], inner_for_in=None),
            )
            | cst.GeneratorExp(
                elt=cst.Call(func=cst.Name(value=called), args=args),
                for_in=cst.CompFor(target=cst.Name(value=name), iter=listed, ifs=[], inner_for_in=None),
            )
        ) if called == name and args:
            return listed if isinstance(listed, (cst.Attribute, cst.Name)) else None
        case cst.Call(func=cst.Name(value="tuple" | "list"), args=[cst.Arg(value=inner)]):
            return _each_module_on_the_same(inner)
    return None
