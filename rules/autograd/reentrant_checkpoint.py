"""Activation checkpointing that recomputes in a backward pass of its own, because nobody said otherwise."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Applicability, Call, Context, Doubt, Flag, Message, Rule

RULE = Rule(
    name="reentrant-checkpoint",
    code="TL413",
    group="autograd",
    summary="A checkpoint without `use_reentrant=False` recomputes its whole function.",
    since="0.2.0",
    fix=(Applicability.UNSAFE,),
    unsafe="parameters whose inputs require no gradients get gradients now",
    doubts=((Doubt.OPTION_DECIDES, ""),),
)
_REENTRANT = Message(
    "reentrant",
    "without `use_reentrant=False` the backward pass recomputes the whole checkpointed function",
    help="pass `use_reentrant=False`, which stops at the last saved tensor",
)
_OPTION = "use_reentrant"
_OWN = frozenset({"function", "functions", "segments", "input", "preserve_rng_state"})
_MODULE = "torch.utils.checkpoint"


@RULE.on(Call(f"{_MODULE}.checkpoint"), Call(f"{_MODULE}.checkpoint_sequential"))
def check(node: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag a checkpoint that leaves the choice to the default, in code that makes it nowhere."""
    from torchlint.edits.expressions import with_argument

    place = 3 if _is_sequential(node, context) else None
    if not node.args or context.argument(node, _OPTION, place) is not None:
        return
    if any(map(_is_passed_on, node.args)) or _is_chosen_elsewhere(node, context) or _is_frozen(node, context):
        return
    yield Flag(
        node,
        _REENTRANT.of(),
        title="Pass `use_reentrant=False`",
        edits=(with_argument(node, f"{_OPTION}=False", context),),
        doubts=(Doubt.OPTION_DECIDES,) if _is_optional(node, context) else (),
    )


def _is_optional(node: cst.Call, context: Context) -> bool:
    """Whether an option of the object decides: `if self.with_cp and x.requires_grad:`."""
    from torchlint.semantics.names.bindings import dotted
    from torchlint.syntax.tree import descendants

    return any(
        isinstance(part, cst.Attribute) and part.attr.value != "training" and dotted(part.value) == "self"
        for test, is_taken in context.conditions(node)
        if is_taken
        for part in (test, *descendants(test))
    )


def _is_passed_on(argument: cst.Arg) -> bool:
    """Whether it is for the function, by a keyword: the older way raises an error then, and never recomputes."""
    return argument.star == "**" or (argument.keyword is not None and argument.keyword.value not in _OWN)


def _is_sequential(node: cst.Call, context: Context) -> bool:
    return context.qualified_name(node.func) == f"{_MODULE}.checkpoint_sequential"


def _is_chosen_elsewhere(node: cst.Call, context: Context) -> bool:
    """Whether the same function knows the option: then this call is for a PyTorch without it."""
    home = context.function(node)
    return any(
        argument.keyword is not None and argument.keyword.value == _OPTION and context.function(argument) is home
        for argument in context.tree.of(cst.Arg)
    )


def _is_frozen(node: cst.Call, context: Context) -> bool:
    """Whether the class around freezes itself, all of it: an encoder that no backward pass reaches."""
    from torchlint.syntax.tree import descendants  # it loads LibCST

    home = context.tree.enclosing_class(node)
    for loop in context.tree.of(cst.For):
        match loop.iter:
            case cst.Call(func=cst.Attribute(value=cst.Name(value="self"), attr=cst.Name(value="parameters"))):
                if context.tree.enclosing_class(loop) is home and any(map(_freezes, descendants(loop.body))):
                    return True
    return False


def _freezes(node: cst.CSTNode) -> bool:
    """Whether this is `parameter.requires_grad = False`."""
    match node:
        case cst.Assign(
            targets=[cst.AssignTarget(target=cst.Attribute(attr=cst.Name(value="requires_grad")))],
            value=cst.Name(value="False"),
        ):
            return True
    return False
