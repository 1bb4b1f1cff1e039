"""Tensors that are made to be trained and lose that when they are moved: the move gives a result of its own."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.flow.origins import Through
from torchlint.semantics.knowledge.apis import FACTORIES
from torchlint.semantics.values.lattice import Device, Kind

_PARAMETERS = ("torch.nn.Parameter", "torch.nn.parameter.Parameter")
_VARIABLE = "torch.autograd.Variable"
# Who asks for these knows that the result is not a leaf, or makes one of it.
_MENDING = frozenset("retain_grad requires_grad_ detach_ is_leaf".split())


@dataclass(frozen=True, slots=True)
class LostLeaf:
    """`made` is a leaf, `moved` the call that moves it; `data` is what a parameter wraps, None of a factory.

    `effect` says, for a message, what becomes of it where a leaf is needed.
    """

    made: cst.Call
    moved: cst.Call
    data: cst.BaseExpression | None
    effect: str


def lost_leaf(moved: cst.Call, context: Context) -> LostLeaf | None:
    """The leaf that the call moves, if its result is used as if it were one."""
    func = moved.func
    made = func.value if isinstance(func, cst.Attribute) and func.attr.value in ("cuda", "to") else None
    if not isinstance(made, cst.Call) or not made.args or context.has_unpacking(made):
        return None
    name = context.qualified_name(made.func) or ""
    wanted = context.argument(made, "requires_grad", 1 if name in (*_PARAMETERS, _VARIABLE) else None)
    is_wanted = isinstance(wanted, cst.Name) and wanted.value == "True"
    data = None
    if name in _PARAMETERS:
        if wanted is not None and not is_wanted:
            return None
        data = context.argument(made, "data", 0)
    elif name == _VARIABLE and is_wanted:
        data = context.argument(made, "data", 0)
    elif not (name.removeprefix("torch.") in FACTORIES and is_wanted and context.argument(made, "device") is None):
        return None
    if not _is_to_device(moved, context) or (data is not None and context.device(data) is not Device.CPU):
        return None
    effect = _effect(moved, name, context)
    return LostLeaf(made, moved, data, effect) if effect else None


def _is_to_device(call: cst.Call, context: Context) -> bool:
    if context.program.changes_default_device or context.has_unpacking(call):
        return False
    if isinstance(call.func, cst.Attribute) and call.func.attr.value == "cuda":
        return True
    device = context.argument(call, "device", 0)
    if device is None:
        return False
    value = context.value(device)
    return value.kind in (Kind.DEVICE, Kind.STRING) and value.device is not Device.CPU


def _effect(moved: cst.Call, name: str, context: Context) -> str:
    match context.parent(moved):
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Attribute(value=cst.Name() as owner))]):
            class_ = context.classes.self_class(owner)
            is_module = class_ is not None and context.classes.is_module(class_)
            return "the module does not register it as a parameter" if is_module and name in _PARAMETERS else ""
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=bound))]) as statement:
            return _effect_on_name(context.uses.of(bound, statement), context)
    return ""


def _effect_on_name(uses: list[cst.Name], context: Context) -> str:
    found = ""
    for use in uses:
        above = context.parent(use)
        if isinstance(above, cst.Attribute) and above.value is use:
            if above.attr.value in _MENDING:
                return ""
            found = found or ("its `.grad` is not populated" if above.attr.value == "grad" else "")
        elif any(_is_optimized(node, context) for node in context.destinations(use, Through.PARTS).nodes):
            found = "the optimizer raises an error for it"
    return found


def _is_optimized(given: cst.BaseExpression, context: Context) -> bool:
    """Whether an optimizer is constructed with it."""
    argument = context.parent(given)
    call = context.parent(argument) if isinstance(argument, cst.Arg) else None
    return isinstance(call, cst.Call) and context.kind(call) is Kind.OPTIMIZER
