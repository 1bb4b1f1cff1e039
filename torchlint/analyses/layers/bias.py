"""Which layers of torch take a `bias`, and whether code needs a layer to have one."""

from __future__ import annotations

import libcst as cst

from torchlint.analyses.layers.followers import Layers
from torchlint.semantics.context import Context
from torchlint.semantics.knowledge.conventions.conditions import BIAS_TEST, LAYER_TEST

# The place of `bias` among the positional arguments.
PLACES = {
    **{f"torch.nn.{kind}{rank}d": 7 for kind in ("Conv", "ConvTranspose") for rank in (1, 2, 3)},
    **{f"torch.nn.Lazy{kind}{rank}d": 6 for kind in ("Conv", "ConvTranspose") for rank in (1, 2, 3)},
    "torch.nn.Linear": 2,
    "torch.nn.LazyLinear": 1,
}


def needs_bias(layer: cst.Call, kind: str, context: Context, switch: str = "") -> bool:
    """Whether an expression needs the layer to have a bias: `m.bias.data.zero_()` without a test for None.

    `kind` is the qualified name of torch's class, `switch` the name of a parameter that says whether there is one. What
    a class does with the `bias` of its own instances is not asked.
    """
    return any(
        not context.classes.is_own(read)
        and context[Layers].may_be(read.value, layer)
        and not is_optional(read, context, switch)
        and _is_about(read, _words_for(layer, kind), context)
        for read in context.uses.attributes("bias")
    )


def is_optional(read: cst.Attribute, context: Context, switch: str = "") -> bool:
    """Whether `x.bias` may be None where it is read: it is tested here, or was on the way."""
    if isinstance(context.parent(read), cst.Comparison):
        return True
    return any(BIAS_TEST.suggests(test) or test == switch for test in _tests(read, context))


def _tests(read: cst.Attribute, context: Context) -> list[str]:
    """The conditions behind which an expression stands, innermost first."""
    conditions = context.conditions(read, across_functions=True)
    return [context.code(test) for test, is_taken in conditions if is_taken]


def _is_about(read: cst.Attribute, words: tuple[str, ...], context: Context) -> bool:
    """Whether the nearest test for a kind of layer, if there is one, lets one of these through."""
    for test in _tests(read, context):
        if LAYER_TEST.suggests(test):
            return any(word in test for word in words)
    return True


def _words_for(layer: cst.Call, kind: str) -> tuple[str, ...]:
    """What a test for this layer mentions: `nn.Conv2d`, `_ConvNd`, `classname.find('Conv')`, its own class."""
    name = kind.rpartition(".")[2]
    match layer.func:
        case cst.Name(value=own) | cst.Attribute(attr=cst.Name(value=own)):
            pass
        case _:
            own = name
    alike = ("_ConvNd", "'Conv'", '"Conv"', "'conv'", '"conv"') if "Conv" in name else ("'Lin", '"Lin')
    return (name, own, *alike)
