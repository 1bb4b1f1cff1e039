"""Norms that subtract the mean of each channel, behind the layers whose output they take."""

from __future__ import annotations

import re

import libcst as cst

from torchlint.analyses.layers.followers import Layers
from torchlint.semantics.context import Context
from torchlint.semantics.flow.query import query
from torchlint.semantics.knowledge.conventions.conditions import NORM_CONDITION
from torchlint.semantics.knowledge.conventions.functions import LOADING_METHOD

_BATCH_NORMS = frozenset(
    {"torch.nn.SyncBatchNorm", *(f"torch.nn.{lazy}BatchNorm{rank}d" for lazy in ("", "Lazy") for rank in (1, 2, 3))}
)
_INSTANCE_NORMS = frozenset(f"torch.nn.{lazy}InstanceNorm{rank}d" for lazy in ("", "Lazy") for rank in (1, 2, 3))
# What lets a shift of a whole channel through, and so puts nothing between the layer and the norm.
_MAX_POOLS = re.compile(r"torch\.nn\.(MaxPool[123]d|AdaptiveMaxPool[123]d|functional\.(adaptive_)?max_pool[123]d)")
_AVERAGE_POOLS = re.compile(r"torch\.nn\.(AvgPool[123]d|functional\.avg_pool[123]d)")


@query(bottom=())
def norms_behind(layer: cst.Call, context: Context) -> tuple[cst.Call, ...]:
    """The norms that take all of the layer's output and subtract its bias again; none if anything else takes it."""
    norms: list[cst.Call] = []
    for follower in context[Layers].followers(layer):
        found = [follower] if _cancels(follower, context) else []
        if not found and _lets_shifts_through(follower, context):
            found = [*norms_behind(follower, context)]
        if not found:
            return ()
        norms += found
    return tuple(norms)


def appended_norm(layer: cst.Call, context: Context) -> tuple[cst.Call, cst.BaseExpression] | None:
    """The norm that takes the output of a layer where an option says so, and the option.

    `layers = [layer]` and `if normalize: layers.append(norm)` stand one behind the other, in a function that some call
    with the option on. What is made of the list, `nn.Sequential` calls in its order.
    """
    holder = context.parent(layer)
    made = context.parent(holder) if isinstance(holder, cst.Element) else None
    assign = context.parent(made) if isinstance(made, cst.List) and made.elements[-1] is holder else None
    match assign:
        case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))]):
            line = context.tree.line(assign)
        case _:
            return None
    block = context.parent(line) if line is not None else None
    if line is None or not isinstance(block, cst.IndentedBlock):
        return None
    behind = list(block.body)[list(block.body).index(line) + 1 :]
    match behind[0] if behind else None:
        case cst.If(
            test=cst.Name() as test,
            body=cst.IndentedBlock(
                body=[
                    cst.SimpleStatementLine(
                        body=[
                            cst.Expr(
                                value=cst.Call(
                                    func=cst.Attribute(value=cst.Name(value=owner), attr=cst.Name(value="append")),
                                    args=[cst.Arg(value=cst.Call() as norm)],
                                )
                            )
                        ]
                    ),
                    *_,
                ]
            ),
        ) if owner == name:
            is_one = _cancels(norm, context) and _is_switched_on(test, context)
            return (norm, test) if is_one else None
    return None


def chosen_norm(layer: cst.Call, context: Context) -> tuple[cst.Call, cst.BaseExpression] | None:
    """The norm behind a layer in an `nn.Sequential` where an option says so by default, and the condition for it.

    `norm if flag else nn.Identity()`, `nn.Identity() if flag else norm`.
    """
    argument = context.parent(layer)
    made = context.parent(argument) if isinstance(argument, cst.Arg) else None
    if not isinstance(made, cst.Call) or context.qualified_name(made.func) != "torch.nn.Sequential":
        return None
    following = list(made.args)[[each.value for each in made.args].index(layer) + 1 :]
    match following[0].value if following else None:
        case cst.IfExp(test=cst.Name() as flag, body=cst.Call() as first, orelse=cst.Call() as second):
            is_plain = True
        case cst.IfExp(
            test=cst.UnaryOperation(operator=cst.Not(), expression=cst.Name() as flag),
            body=cst.Call() as first,
            orelse=cst.Call() as second,
        ):
            is_plain = False
        case _:
            return None
    is_first = context.qualified_name(second.func) == "torch.nn.Identity"
    norm, other = (first, second) if is_first else (second, first)
    if context.qualified_name(other.func) != "torch.nn.Identity" or not _cancels(norm, context):
        return None
    parameter = context.parameter(flag)
    default = parameter.default if parameter is not None else None
    wanted = "True" if is_plain is is_first else "False"
    if not isinstance(default, cst.Name) or default.value != wanted:
        return None
    negated = cst.UnaryOperation(cst.Not(), flag)
    return norm, flag if wanted == "True" else negated


def _is_switched_on(test: cst.Name, context: Context) -> bool:
    """Whether a parameter is true by its default, or in some call."""
    parameter, function = context.parameter(test), context.function(test)
    if parameter is None or not isinstance(function, cst.FunctionDef):
        return False
    default = parameter.default
    calls = context.calls.callers(function)
    given = [context.argument(call, test.value) for call in calls]
    is_on = isinstance(default, cst.Name) and default.value == "True"
    return bool(calls) and (
        (is_on and None in given)
        or any(not (isinstance(value, cst.Name) and value.value == "False") for value in given if value is not None)
        or default is None
    )


def _cancels(norm: cst.Call, context: Context) -> bool:
    """Whether a norm subtracts the mean of each channel, over whatever else there is."""
    name = context.qualified_name(norm.func)
    if name in _BATCH_NORMS:
        return True
    if name in _INSTANCE_NORMS:
        running = context.argument(norm, "track_running_stats", 4)
        return not context.has_unpacking(norm) and (running is None or context.code(running) == "False")
    if name == "torch.nn.GroupNorm":
        groups, channels = context.argument(norm, "num_groups", 0), context.argument(norm, "num_channels", 1)
        return groups is not None and channels is not None and groups.deep_equals(channels)
    return False


def _lets_shifts_through(layer: cst.Call, context: Context) -> bool:
    """Whether a layer returns any shift of a channel as the same shift."""
    name = context.qualified_name(layer.func) or ""
    if name == "torch.nn.Identity" or _MAX_POOLS.fullmatch(name):
        return True
    if not _AVERAGE_POOLS.fullmatch(name):
        return False
    padding = context.argument(layer, "padding", 3 if ".functional." in name else 2)
    return not context.has_unpacking(layer) and (padding is None or context.code(padding) == "0")


def is_over_features(norm: cst.Call, features: cst.BaseExpression | None, context: Context) -> bool:
    """Whether the norm's channels are a linear layer's features: on `(N, C, L)` that works on the last dimension.

    Features and channels that are written alike are the same; others may be anything.
    """
    if context.qualified_name(norm.func) not in ("torch.nn.BatchNorm1d", "torch.nn.SyncBatchNorm"):
        return False
    channels = context.argument(norm, "num_features", 0)
    return features is not None and channels is not None and context.bare_code(features) == context.bare_code(channels)


def freezes_norms(context: Context) -> bool:
    """Whether norms of this file may be in eval mode in training: what they subtract is fixed then."""
    return _freezes_norms(context.tree.module, context)


@query(bottom=False)
def _freezes_norms(_: cst.Module, context: Context) -> bool:
    return any(
        isinstance(call.func, cst.Attribute)
        and call.func.attr.value == "eval"
        and (_is_about_norms(call, context) or _is_of_its_own(call.func.value, context))
        for call in context.tree.of(cst.Call)
    )


def _is_about_norms(call: cst.Call, context: Context) -> bool:
    """Whether the call stands in an overridden `train`, or behind a test for a norm."""
    function = context.enclosing(call, cst.FunctionDef)
    branches = context.around(call, cst.If, within=function)
    if any(NORM_CONDITION.suggests(context.uncommented(branch.test)) for branch in branches):
        return True
    return function is not None and function.name.value == "train" and context.classes.owner(function) is not None


def _is_of_its_own(owner: cst.BaseExpression, context: Context) -> bool:
    """`self.eval()` where a module makes itself or loads its weights: it is there to be used, not to be trained."""
    function = context.function(owner)
    return (
        isinstance(function, cst.FunctionDef)
        and (function.name.value == "__init__" or LOADING_METHOD.suggests(function.name.value))
        and isinstance(owner, cst.Name)
        and context.classes.self_class(owner) is not None
    )
