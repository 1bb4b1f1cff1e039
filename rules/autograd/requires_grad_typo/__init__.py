"""Something that was to be frozen and is not, since the attribute has another name or sits on a module."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Applicability, Context, Flag, Message, Node, Replace, Rule
from torchlint.semantics.knowledge.conventions.values import REQUIRES_GRAD_MISSPELT

RULE = Rule(
    name="requires-grad-typo",
    code="TL416",
    group="autograd",
    summary="An assignment that should freeze parameters sets an attribute that nothing reads.",
    since="0.2.0",
    fix=(Applicability.UNSAFE,),
    unsafe="what was trained is frozen from then on",
)
_MISSPELT = Message(
    "misspelt", "setting `{name}` freezes nothing: `{shown}` still requires gradients", help="use `{instead}`"
)
_OF_A_MODULE = Message(
    "of-a-module",
    "`requires_grad` of a module freezes nothing: the parameters of `{module}` still require gradients",
    help="call `{module}.requires_grad_(False)`",
)
_RIGHT = "requires_grad"
# Each of the names holds one of these.
_TOKENS = (b"s_grad", b"require_grad", b"required_grad", b"requires_gard")
_FALSE = frozenset({"False", "0"})


@RULE.on(Node("Assign", _TOKENS))
def check(node: cst.Assign, context: Context) -> Iterator[Flag]:
    """Flag `p.require_grad = False`, and `module.requires_grad = False`, which only modules of one's own may read."""
    if len(node.targets) != 1 or getattr(node.value, "value", None) not in _FALSE:
        return
    target = node.targets[0].target
    if not isinstance(target, cst.Attribute) or context.classes.is_own(target):
        return
    from torchlint.semantics.values.lattice import Kind

    from .trainable import is_trained

    name = target.attr.value
    if REQUIRES_GRAD_MISSPELT.suggests(name) and is_trained(target.value, context) and not _is_read(name, context):
        shown, is_module = context.shown(target.value), context.kind(target.value) is Kind.MODULE
        yield Flag(
            node,
            _MISSPELT.of(name=name, shown=shown, instead=f"{_RIGHT}_(False)" if is_module else f"{_RIGHT} = False"),
            title=f"Call `{_RIGHT}_(False)`" if is_module else f"Set `{_RIGHT}`",
            edits=_renamed(node, target, context),
        )
    elif name == _RIGHT and _is_module(target.value, context):
        yield Flag(
            node,
            _OF_A_MODULE.of(module=context.shown(target.value)),
            title=f"Call `{_RIGHT}_(False)`",
            edits=(Replace(node, f"{context.code(target.value)}.{_RIGHT}_(False)"),),
        )


def _is_read(name: str, context: Context) -> bool:
    """Whether the file reads the attribute anywhere, so that it is one of its own."""
    return any(not context.uses.is_target(other) for other in context.uses.attributes(name))


def _is_module(node: cst.BaseExpression, context: Context) -> bool:
    """Whether the expression holds a module for certain, and not a parameter of one."""
    from torchlint.semantics.values.lattice import Kind

    value = context.value(node)
    if value.kind is not Kind.MODULE or not (value.qualified or value.definition is not None):
        return False
    definition = value.definition
    # A class may have an attribute of that name, with a setter that does what it says.
    return not isinstance(definition, cst.ClassDef) or (
        context.classes.method(definition, _RIGHT) is None
        and not context.classes.attribute_sets(definition, _RIGHT)
        and all(
            not isinstance(base, str) or base.startswith("torch.nn.") for base in context.classes.lineage(definition)
        )
    )


def _renamed(node: cst.Assign, target: cst.Attribute, context: Context) -> tuple[Replace, ...]:
    """The edit to the right name; of a module, to the method that reaches its parameters."""
    from torchlint.semantics.values.lattice import Kind

    if context.kind(target.value) is Kind.MODULE:
        return (Replace(node, f"{context.code(target.value)}.{_RIGHT}_(False)"),)
    return (Replace(target.attr, _RIGHT),)
