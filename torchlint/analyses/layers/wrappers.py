"""Classes around one layer whose bias a parameter of theirs decides on: modules that hold it, and subclasses of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from torchlint.analyses.layers.bias import PLACES, is_optional, needs_bias
from torchlint.analyses.layers.followers import Layers, Trace
from torchlint.analyses.layers.norms import norms_behind
from torchlint.analyses.provenance.constants import handed_on, may_pass
from torchlint.facts import Wrapper
from torchlint.semantics.context import Context
from torchlint.semantics.flow.instances import EscapeError
from torchlint.semantics.knowledge.conventions.functions import LAYER_FUNCTION
from torchlint.semantics.names.bindings import last_part
from torchlint.semantics.values.parameters import is_class_name
from torchlint.syntax.tree import descendants_in_scope

# Functions that add the bias last; it is their third argument.
_FUNCTIONAL = frozenset(
    {
        "torch.nn.functional.linear",
        *(f"torch.nn.functional.conv{kind}{rank}d" for kind in ("", "_transpose") for rank in (1, 2, 3)),
    }
)


def given(made: Wrapper, call: cst.Call, context: Context) -> cst.BaseExpression | None:
    """What a call passes for the parameter that decides on the bias; None if it is left out."""
    return context.argument(call, made.parameter, made.place)


def has_bias(made: Wrapper, call: cst.Call, context: Context) -> bool:
    """Whether the instance that a call makes is sure to have a bias: by default, or by a literal `True`."""
    passed = given(made, call, context)
    if passed is not None:
        return _is_true(passed)
    return made.default and not may_pass(call, made.parameter, context)


def width(made: Wrapper, call: cst.Call, context: Context) -> cst.BaseExpression | None:
    """What a call passes for the features of a linear layer; None if it can't be told."""
    return context.argument(call, made.features, made.features_place) if made.features else None


def wrapper_of(call: cst.Call, context: Context) -> Wrapper | None:
    """What a call makes an instance of: a layer of torch, or a class around one, of this module or another file."""
    name = context.qualified_name(call.func)
    if name in PLACES:
        return _torch_layer(name)
    match call.func:
        case cst.Name(value=last) | cst.Attribute(attr=cst.Name(value=last)) if is_class_name(last):
            pass
        case _:
            return None  # cheaper to ask than anything below
    class_ = context.constructions.class_of(call)
    if class_ is None and context.value(call.func).definition is None:
        return _imported(call, name, context)
    if class_ is None or (isinstance(call.func, cst.Name) and len(context.binders(call.func)) > 1):
        return None
    return wrapper(class_, context)


def _imported(call: cst.Call, name: str | None, context: Context) -> Wrapper | None:
    """What a class of another file wraps, where it matters: it is asked about only if a norm takes the output."""
    may_be_another_file_s = not name.startswith("torch.") if name is not None else bool(context.names.star_imports)
    # The name of a class around a layer says so, and to follow what becomes of every object would take long.
    if (
        not may_be_another_file_s
        or not LAYER_FUNCTION.suggests(last_part(call.func))
        or not norms_behind(call, context)
    ):
        return None
    described = context.described(call.func)
    return None if described is None else described.wrapper


def wrapper(class_: cst.ClassDef, context: Context) -> Wrapper | None:
    """What a class wraps, from its own code; None where anything else may see the output."""
    found = _wrapped(class_, context)
    return None if found is None else found[1]


def is_wrapped(layer: cst.Call, context: Context) -> bool:
    """Whether the layer is the one that a class wraps: who makes an instance decides on its bias."""
    class_ = context.tree.enclosing_class(layer)
    found = None if class_ is None else _wrapped(class_, context)
    return found is not None and found[0] is layer


def _torch_layer(name: str) -> Wrapper:
    made = Wrapper(name, "bias", PLACES[name], default=True)
    place = _place_of_features(name)
    return made if place is None else made._replace(features="out_features", features_place=place)


def _place_of_features(name: str) -> int | None:
    """The place of a linear layer's `out_features`; None for others."""
    return {"torch.nn.Linear": 1, "torch.nn.LazyLinear": 0}.get(name)


def _is_true(node: cst.BaseExpression) -> bool:
    return isinstance(node, cst.Name) and node.value == "True"


def _wrapped(class_: cst.ClassDef, context: Context) -> tuple[cst.CSTNode, Wrapper] | None:
    """The one layer of a class, as what makes it, and what decides on its bias."""
    known = context[Layers].wrapped
    if class_ not in known:
        methods = context.classes.methods(class_)
        init, forward = methods.get("__init__"), methods.get("forward")
        if "__call__" in methods or any(method is not None and method.decorators for method in (init, forward)):
            known[class_] = None  # who knows what becomes of the output
        else:
            bases = list(context.classes.bases(class_))
            base = bases[0] if len(bases) == 1 and isinstance(bases[0], str) else ""
            known[class_] = _inherited(class_, base, context) if base in PLACES else _held(class_, context)
    return known[class_]


# A layer that the class makes


def _held(class_: cst.ClassDef, context: Context) -> tuple[cst.CSTNode, Wrapper] | None:
    init = context.classes.methods(class_).get("__init__")
    if init is None or not context.classes.is_module(class_):
        return None
    found: list[tuple[cst.CSTNode, Wrapper]] = []
    for call in _calls(init):
        name = context.qualified_name(call.func)
        made = _handed_on(call, name, init, context) if name in PLACES else None
        if made is not None and _reaches_return(call, class_, context):
            found.append((call, made))
    return found[0] if len(found) == 1 else None


def _reaches_return(layer: cst.Call, class_: cst.ClassDef, context: Context) -> bool:
    """Whether all of the layer's output is what `forward` returns, and nothing else reads its bias."""
    trace = Trace(context, class_)
    try:
        trace.module(layer)
    except EscapeError:
        return False
    biases = [
        read
        for read in _within(class_, context.uses.attributes("bias"), context)
        if not context.classes.is_own(read) and context[Layers].may_be(read.value, layer)
    ]
    return trace.has_ended and not trace.found and all(_is_set_up(read, context) for read in biases)


# A layer that the class is


def _inherited(class_: cst.ClassDef, base: str, context: Context) -> tuple[cst.CSTNode, Wrapper] | None:
    methods = context.classes.methods(class_)
    if "_conv_forward" in methods:
        return None
    outputs = [call for call in _calls(methods.get("forward")) if _gives_output(call, context)]
    if "forward" in methods and not (outputs and all(_is_returned(output, class_, context) for output in outputs)):
        return None
    passed = [_bias_passed(call, context) for call in outputs]
    biases = [
        read
        for read in _within(class_, context.uses.attributes("bias"), context)
        if context.classes.is_own(read) and not any(read is argument for argument in passed)
    ]
    found = _made_by_super(class_, base, context)
    if found is None or not all(_is_set_up(read, context) for read in biases):
        return None
    node, made = found
    expects = made.expects_bias or not all(is_optional(read, context, made.parameter) for read in biases)
    return node, made._replace(expects_bias=expects)


def _made_by_super(class_: cst.ClassDef, base: str, context: Context) -> tuple[cst.CSTNode, Wrapper] | None:
    init = context.classes.methods(class_).get("__init__")
    if init is None:
        return class_, _torch_layer(base)
    calls = [call for call in _calls(init) if _is_super(call, "__init__")]
    made = _handed_on(calls[0], base, init, context) if len(calls) == 1 else None
    return None if made is None else (calls[0], made)


def _gives_output(call: cst.Call, context: Context) -> bool:
    """Whether a call in `forward` computes the layer: `super().forward(x)`, `F.conv2d(x, weight, self.bias)`."""
    if _is_super(call, "forward"):
        return True
    passed = _bias_passed(call, context)
    return isinstance(passed, cst.Attribute) and passed.attr.value == "bias" and context.classes.is_own(passed)


def _bias_passed(call: cst.Call, context: Context) -> cst.BaseExpression | None:
    match call.func:
        case cst.Attribute(attr=cst.Name(value="_conv_forward")) if context.classes.is_own(call.func):
            return context.argument(call, "bias", 2)
    return context.argument(call, "bias", 2) if context.qualified_name(call.func) in _FUNCTIONAL else None


def _is_returned(output: cst.Call, class_: cst.ClassDef, context: Context) -> bool:
    trace = Trace(context, class_)
    try:
        trace.value(output)
    except EscapeError:
        return False
    return trace.has_ended and not trace.found


def _is_super(call: cst.Call, method: str) -> bool:
    match call.func:
        case cst.Attribute(value=cst.Call(func=cst.Name(value="super")), attr=cst.Name(value=name)):
            return name == method
    return False


# What is done with a bias


def _is_set_up(read: cst.Attribute, context: Context) -> bool:
    """Whether a bias is only tested or initialised here: `zeros_(x.bias)`, `x.bias.data = …`."""
    if isinstance(context.parent(read), cst.Comparison):
        return True
    statement = context.tree.statement(read)
    if isinstance(statement, cst.Assign):
        return not context.tree.within(read, statement.value)
    return isinstance(statement, cst.Expr)


def _within(class_: cst.ClassDef, reads: Iterable[cst.Attribute], context: Context) -> Iterator[cst.Attribute]:
    return (read for read in reads if context.tree.within(read, class_))


def _calls(function: cst.FunctionDef | None) -> list[cst.Call]:
    """The calls that a function makes, in source order."""
    nodes = descendants_in_scope(function.body) if function is not None else ()
    return [node for node in nodes if isinstance(node, cst.Call)]


# What decides on the bias


def _handed_on(call: cst.Call, name: str, init: cst.FunctionDef, context: Context) -> Wrapper | None:
    """What decides on the bias of the layer that a call in `__init__` makes, and on nothing else."""
    switch = handed_on(call, "bias", PLACES[name], init, context)
    if switch is None or not _only_switches(switch.node, call, context):
        return None
    by_default = switch.default is True or switch.node is init.params.star_kwarg
    made = Wrapper(name, switch.name, switch.place, by_default)
    place = _place_of_features(name)
    width = handed_on(call, "out_features", place, init, context) if place is not None else None
    if width is not None:
        made = made._replace(features=width.name, features_place=width.place)
    return made._replace(expects_bias=needs_bias(call, name, context, switch.name))


def _only_switches(switch: cst.Param, call: cst.Call, context: Context) -> bool:
    """Whether a parameter is handed on to the layer, and beside that at most guards what initialises the bias."""
    above = [context.parent(read) for read in context.uses.of(switch.name.value, switch)]
    return sum(node in call.args for node in above) == 1 and all(
        node in call.args or _guards_calls(node) for node in above
    )


def _guards_calls(test: cst.CSTNode | None) -> bool:
    """Whether all behind `if bias:` are calls that stand for themselves."""
    match test:
        case cst.If(body=cst.IndentedBlock(body=lines), orelse=None):
            return all(
                isinstance(line, cst.SimpleStatementLine) and all(isinstance(part, cst.Expr) for part in line.body)
                for line in lines
            )
    return False
