"""Lists of modules that are made alike: of one class, with the same arguments."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.flow.instances import SEQUENTIAL, EscapeError
from torchlint.syntax.tree import Comprehension, descendants

# Layers of torch that compute products, and so gain from computing one that is larger.
_WIDE = frozenset(
    {"Linear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "Bilinear", "MultiheadAttention"}
)
# Activations.
_ELEMENTWISE = ("LU", "LU6", "Sigmoid", "Tanh", "Mish", "swish", "Softplus", "Identity")


def alike(listed: cst.BaseExpression, context: Context) -> cst.Call | None:
    """The call that makes each module of a list, if one call makes all, and with the same arguments."""
    try:
        elements = context.constructions.elements(_first_set(listed, context))
    except EscapeError:
        return None
    if len(elements) != 1 or not isinstance(elements[0], cst.Call):
        return None
    made = elements[0]
    repeating = _repeating(made, context)
    if repeating is None or any(_is_of_turn(name, repeating, context) for name in descendants(made)):
        return None
    return made if _is_network(made, context) else None


def _first_set(listed: cst.BaseExpression, context: Context) -> cst.BaseExpression:
    """What `__init__` sets an attribute to, where others may put something else of the same shape into its place."""
    class_ = context.uses.owner(listed) if isinstance(listed, cst.Attribute) else None
    if class_ is None or not isinstance(listed, cst.Attribute):
        return listed
    made = []
    for entry in context.classes.attribute_sets(class_, listed.attr.value):
        function = context.function(entry.node)
        if isinstance(function, cst.FunctionDef) and function.name.value == "__init__" and entry.value is not None:
            made.append(entry.value)
    return made[0] if len(made) == 1 and _is_filled(made[0]) else listed


def _is_filled(value: cst.BaseExpression) -> bool:
    """`nn.ModuleList([… for _ in …])`."""
    match value:
        case cst.Call(args=[cst.Arg(value=cst.ListComp() | cst.GeneratorExp())]):
            return True
    return False


def _repeating(made: cst.Call, context: Context) -> cst.CSTNode | None:
    """The comprehension, or the loop, that makes a module again and again."""
    others = (cst.FunctionDef, cst.Lambda, cst.If, cst.While)
    match context.enclosing(made, *Comprehension, cst.For, *others):
        case cst.For() as loop:
            return loop
        case (cst.ListComp(elt=element) | cst.GeneratorExp(elt=element)) as listed if element is made:
            return listed
    return None


def _is_of_turn(node: cst.CSTNode, repeating: cst.CSTNode, context: Context) -> bool:
    """Whether a name holds another thing in each iteration."""
    if not isinstance(node, cst.Name):
        return False
    _, bindings = context.names.lookup(node)
    return any(context.tree.within(binding.node, repeating) for binding in bindings)


def _is_network(made: cst.Call, context: Context) -> bool:
    name = context.qualified_name(made.func) or ""
    if name == SEQUENTIAL:
        return all(_joins(argument, context) for argument in made.args)
    if name.startswith("torch.nn."):
        return name.rpartition(".")[2] in _WIDE
    class_ = context.constructions.class_of(made)
    if class_ is not None:
        return context.classes.is_module(class_)
    return False


def _joins(argument: cst.Arg, context: Context) -> bool:
    """Whether a part of a sequence is a layer that may be wider, or one that works on each number by itself.

    Norms of their own, dropout and modules that nobody here knows are no matter of one wide layer.
    """
    name = context.qualified_name(argument.value.func) or "" if isinstance(argument.value, cst.Call) else ""
    last = name.rpartition(".")[2]
    return name.startswith("torch.nn.") and not argument.star and (last in _WIDE or last.endswith(_ELEMENTWISE))
