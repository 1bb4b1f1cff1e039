"""Which layers have a bias, and whether anything needs them to have one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.model.arguments import may_pass

if TYPE_CHECKING:
    from torchlint.model.context import Context

# The place of `bias` among the positional arguments.
_PLACES = {
    **{f"torch.nn.{kind}{rank}d": 7 for kind in ("Conv", "ConvTranspose") for rank in (1, 2, 3)},
    **{f"torch.nn.Lazy{kind}{rank}d": 6 for kind in ("Conv", "ConvTranspose") for rank in (1, 2, 3)},
    "torch.nn.Linear": 2,
    "torch.nn.LazyLinear": 1,
}


def has_bias(call: cst.Call, context: Context) -> bool:
    """Whether the call makes a layer that is sure to have a bias: by default, or as `bias=True`."""
    if context.qualified_name(call.func) not in _PLACES:
        return False
    given = bias(call, context)
    if given is not None:
        return isinstance(given, cst.Name) and given.value == "True"
    return not may_pass(call, "bias", context)


def bias(layer: cst.Call, context: Context) -> cst.BaseExpression | None:
    """What a layer is given as `bias`; None if it is left out."""
    return context.argument(layer, "bias", _PLACES.get(context.qualified_name(layer.func) or ""))


def needs_bias(layer: cst.Call, context: Context) -> bool:
    """Whether an expression needs the layer to have a bias: `m.bias.data.zero_()` without a test for None."""
    return any(_reads_bias(read, layer, context) for read in context.tree.of(cst.Attribute))


def _reads_bias(read: cst.Attribute, layer: cst.Call, context: Context) -> bool:
    if read.attr.value != "bias" or isinstance(context.parent(read), cst.Comparison):
        return False
    if not context.layers.may_be(read.value, layer):
        return False
    child: cst.CSTNode = read
    for above in context.ancestors(read):
        if isinstance(above, (cst.If, cst.IfExp)) and child is above.body:
            test = context.code(above.test)
            if ".bias" in test:
                return False
            if "isinstance" in test or "find(" in test or "classname" in test:
                return any(word in test for word in _words_for(layer, context))
        child = above
    return True


def _words_for(layer: cst.Call, context: Context) -> tuple[str, ...]:
    """What a test for this kind of layer mentions: `nn.Conv2d`, `_ConvNd`, `classname.find('Conv')`."""
    kind = (context.qualified_name(layer.func) or "").rpartition(".")[2]
    return (kind, "_ConvNd", "'Conv'", '"Conv"', "'conv'", '"conv"') if "Conv" in kind else (kind, "'Lin", '"Lin')
