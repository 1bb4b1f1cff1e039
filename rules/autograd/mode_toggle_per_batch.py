"""A network set to the mode it is in already, at each batch: the CPU visits every module of it."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Context, Doubt, Flag, Message, Method, Rule, Status
from torchlint.semantics.knowledge.conventions.functions import MODE_SWITCH

RULE = Rule(
    name="mode-toggle-per-batch",
    code="TL410",
    group="autograd",
    summary="Calling `train()` or `eval()` every batch visits every module without changing the mode.",
    since="0.2.0",
    status=Status.PREVIEW,
    doubts=((Doubt.NAMED_OTHERWISE, ""),),
)
_TOGGLED = Message(
    "mode-unchanged",
    "`{call}` visits every module{often} without changing the mode",
    help="call it once before the loop",
)


@RULE.on(Method("train"), Method("eval"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a mode that is set in each iteration of a loop over batches, where nothing in the loop sets another."""
    from torchlint.analyses.execution.hot import is_hot
    from torchlint.analyses.execution.small_models import is_small
    from torchlint.edits.messages import how_often
    from torchlint.semantics.values.lattice import Kind

    if not isinstance(node.func, cst.Attribute) or not isinstance(context.parent(node), cst.Expr) or not _keeps(node):
        return
    model = node.func.value
    if context.kind(model) is not Kind.MODULE:
        return
    loop = context.frequencies.batch_loop(node)
    if loop is None or not _is_always_run(node, loop, context) or not is_hot(node, context):
        return
    if _is_of_the_loop(model, loop, context) or _may_switch(node, loop, context) or is_small(model, context):
        return
    yield Flag(
        node,
        _TOGGLED.of(call=context.shown(node), often=how_often(node, context)),
        doubts=(Doubt.NAMED_OTHERWISE,) if _calls_what_may_switch(node, loop, context) else (),
    )


def _keeps(call: cst.Call) -> bool:
    """`train()`, `train(True)`, `eval()`."""
    match call.args:
        case []:
            return True
        case [cst.Arg(value=cst.Name(value="True" | "False"))]:
            return True
    return False


def _is_always_run(call: cst.Call, loop: cst.For | cst.While, context: Context) -> bool:
    """Whether the statement stands in the loop's own block, under no condition."""
    line = context.tree.line(call)
    return line is not None and context.parent(line) is loop.body


def _is_of_the_loop(model: cst.BaseExpression, loop: cst.For | cst.While, context: Context) -> bool:
    """Whether the network is another one in each iteration."""
    from torchlint.syntax.tree import descendants

    names = [node for node in descendants(model) if isinstance(node, cst.Name)]
    return any(context.names.is_read(name) and context.is_bound_in(name, loop) for name in names)


def _may_switch(call: cst.Call, loop: cst.For | cst.While, context: Context) -> bool:
    """Whether anything else in the loop sets the mode: `model.eval()`, or a function that does so."""
    from torchlint.semantics.names.bindings import last_part, method_name
    from torchlint.syntax.tree import descendants

    mode = last_part(call.func)
    for node in descendants(loop.body):
        if not isinstance(node, cst.Call) or node is call:
            continue
        name = last_part(node.func)
        if name in ("train", "eval"):
            if name != mode or node.args:
                return True
            continue
        target = context.calls.target(node)
        if target is not None and any(
            isinstance(part, cst.Call) and method_name(part.func) in ("train", "eval") for part in descendants(target)
        ):
            return True
    return False


def _calls_what_may_switch(call: cst.Call, loop: cst.For | cst.While, context: Context) -> bool:
    """Whether a function out of sight that the loop calls may set the mode, by its name: `validate(model)`."""
    from torchlint.semantics.names.bindings import last_part
    from torchlint.semantics.values.lattice import Kind
    from torchlint.syntax.tree import descendants

    return any(
        isinstance(node, cst.Call)
        and node is not call
        and MODE_SWITCH.suggests(last_part(node.func))
        and last_part(node.func) not in ("train", "eval")
        and context.calls.target(node) is None
        and _takes_objects(node)
        and context.kind(node.func) is not Kind.MODULE
        for node in descendants(loop.body)
    )


def _takes_objects(call: cst.Call) -> bool:
    """Whether a function out of sight is given anything, or is a method of `self`, where it finds the network."""
    owner = call.func.value if isinstance(call.func, cst.Attribute) else None
    is_own = isinstance(owner, cst.Name) and owner.value == "self"
    return is_own or any(isinstance(argument.value, (cst.Name, cst.Attribute)) for argument in call.args)
