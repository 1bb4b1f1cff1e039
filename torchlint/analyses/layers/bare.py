"""Networks that record no graph: they hold no parameters, or turn autograd off themselves."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.execution.grad_mode import GradMode
from torchlint.semantics.flow.origins import Through
from torchlint.semantics.names.bindings import final_part, last_part
from torchlint.semantics.values.lattice import Kind, Value
from torchlint.semantics.values.parameters import is_class_name
from torchlint.syntax.tree import descendants

_BASES = frozenset({"torch.nn.Module", "object"})
# What gives an object parameters or networks without an assignment, and what makes parameters.
_GIVING = frozenset("setattr register_parameter add_module register_module Parameter update".split())
_PLAIN = frozenset({Kind.NUMBER, Kind.STRING, Kind.NONE, Kind.DEVICE, Kind.DTYPE, Kind.TENSOR, Kind.NDARRAY})


def is_bare(func: cst.BaseExpression, context: Context) -> bool:
    """Whether what is called is surely an instance of a class of the project that records nothing of its own."""
    made = context.origins(func, Through.PARTS | Through.ATTRIBUTES)
    return made.every(lambda node: isinstance(node, cst.Call) and _makes_a_bare_one(node, context))


def _makes_a_bare_one(call: cst.Call, context: Context) -> bool:
    definition = context.value(call).definition
    if isinstance(definition, cst.ClassDef):
        return records_nothing(definition, context)
    match call.func:
        case cst.Attribute(value=cst.Call() as moved, attr=cst.Name(value="cuda" | "to" | "eval")):
            return _makes_a_bare_one(moved, context)
    if not is_class_name(last_part(call.func)):
        return False
    described = context.described(call.func)
    return described is not None and described.bare


def records_nothing(class_: cst.ClassDef, context: Context) -> bool:
    """Whether a class holds no parameters, or its `forward` turns autograd off."""
    forward = context.classes.method(class_, "forward")
    return (forward is not None and context.grad(forward.body) is GradMode.OFF) or holds_no_parameters(class_, context)


def holds_no_parameters(class_: cst.ClassDef, context: Context) -> bool:
    """Whether a class of networks sets nothing on its instances but numbers, texts and tensors without gradients."""
    if not context.classes.is_module(class_):
        return False
    lineage = context.classes.lineage(class_)
    return all(
        base in _BASES if isinstance(base, str) else _sets_plain_things(base, context) for base in (class_, *lineage)
    )


def _sets_plain_things(class_: cst.ClassDef, context: Context) -> bool:
    for node in descendants(class_.body):
        match node:
            case cst.Call() if final_part(node.func) in _GIVING:
                return False
            case cst.Assign(targets=targets, value=value):
                stores = [target.target for target in targets]
            case cst.AnnAssign(target=target, value=cst.BaseExpression() as value):
                stores = [target]
            case _:
                continue
        is_set = any(isinstance(part, cst.Attribute) for store in stores for part in descendants(store))
        if is_set and not _is_plain(context.value(value)) and not _is_a_number_option(value, context):
            return False
    return True


def _is_a_number_option(node: cst.BaseExpression, context: Context) -> bool:
    """Whether it is a parameter that is a number unless something else is given: another number, then."""
    parameter = context.parameter(node)
    return parameter is not None and isinstance(parameter.default, cst.BaseNumber)


def _is_plain(value: Value) -> bool:
    """Whether this holds no network: a number, a text, a tensor, or a list of such."""
    if value.untold:
        return False
    if value.kind in (Kind.SEQUENCE, Kind.MAPPING):
        return value.item is not None and _is_plain(value.item)
    return value.kind in _PLAIN
