"""Which function of torch does what a layer without parameters does, and which layers have parameters or a mode."""

from __future__ import annotations

from typing import TYPE_CHECKING

import libcst as cst

from torchlint.semantics.knowledge.marks import HOOKED_MODULES

if TYPE_CHECKING:
    from torchlint.semantics.context import Context

_OF_FUNCTIONAL = "torch.nn.functional."
_ALL = 9
# The function for each layer, and how many of the layer's arguments stand in the same order behind its input; a layer
# that needs its `dim` said has a `!`.
_FUNCTIONS = {
    "ReLU": ("relu", _ALL), "ReLU6": ("relu6", _ALL), "LeakyReLU": ("leaky_relu", _ALL), "ELU": ("elu", _ALL),
    "SELU": ("selu", _ALL), "CELU": ("celu", _ALL), "SiLU": ("silu", _ALL), "Mish": ("mish", _ALL),
    "GELU": ("gelu", 0), "Hardswish": ("hardswish", _ALL), "Hardsigmoid": ("hardsigmoid", _ALL),
    "Softplus": ("softplus", _ALL), "Softsign": ("softsign", _ALL), "LogSigmoid": ("logsigmoid", _ALL),
    "Sigmoid": ("torch.sigmoid", _ALL), "Tanh": ("torch.tanh", _ALL), "GLU": ("glu", _ALL),
    "Softmax": ("softmax!", 1), "LogSoftmax": ("log_softmax!", 1), "Softmin": ("softmin!", 1),
    "MaxPool1d": ("max_pool1d", 4), "MaxPool2d": ("max_pool2d", 4), "MaxPool3d": ("max_pool3d", 4),
    "AvgPool1d": ("avg_pool1d", _ALL), "AvgPool2d": ("avg_pool2d", _ALL), "AvgPool3d": ("avg_pool3d", _ALL),
    "AdaptiveAvgPool1d": ("adaptive_avg_pool1d", _ALL), "AdaptiveAvgPool2d": ("adaptive_avg_pool2d", _ALL),
    "AdaptiveAvgPool3d": ("adaptive_avg_pool3d", _ALL), "AdaptiveMaxPool1d": ("adaptive_max_pool1d", _ALL),
    "AdaptiveMaxPool2d": ("adaptive_max_pool2d", _ALL), "AdaptiveMaxPool3d": ("adaptive_max_pool3d", _ALL),
    "Upsample": ("interpolate", _ALL), "PixelShuffle": ("pixel_shuffle", _ALL),
    "PixelUnshuffle": ("pixel_unshuffle", _ALL),
}  # fmt: skip
# Without parameters too, but their functions are called in another way: what is the same, as a message says it.
_OTHERS = {
    **{f"{kind}{rank}d": call for rank in (1, 2, 3) for kind, call in (
        ("ConstantPad", "pad"), ("ZeroPad", "pad"), ("ReflectionPad", 'pad(…, mode="reflect")'),
        ("ReplicationPad", 'pad(…, mode="replicate")'),
    )},
    "Hardtanh": "hardtanh", "CosineSimilarity": "cosine_similarity", "Unfold": "unfold", "Fold": "fold",
    "UpsamplingNearest2d": 'interpolate(…, mode="nearest")',
    "UpsamplingBilinear2d": 'interpolate(…, mode="bilinear", align_corners=True)',
    "Flatten": "torch.flatten(…, 1)", "Unflatten": "torch.Tensor.unflatten",
}  # fmt: skip
PLAIN = (*_FUNCTIONS, *_OTHERS)
DROPOUTS = ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout", "FeatureAlphaDropout")
WEIGHTED = (
    "Linear", "Bilinear", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d",
    "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "LayerNorm", "GroupNorm", "Embedding", "EmbeddingBag", "PReLU",
    "LSTM", "GRU", "RNN", "LSTMCell", "GRUCell", "RNNCell", "MultiheadAttention", "Transformer",
    "TransformerEncoderLayer", "TransformerDecoderLayer",
)  # fmt: skip


# What only the function takes, and the layer refuses.
_REFUSED = frozenset({"dtype", "_stacklevel", "antialias"})


def function_for(layer: str) -> str:
    """The qualified name of the function that does what a layer of `torch.nn` does; empty if it is not that simple."""
    name = _FUNCTIONS.get(layer, ("", 0))[0].rstrip("!")
    return name if not name or name.startswith("torch.") else _OF_FUNCTIONAL + name


def same_as(layer: str, made: cst.Call) -> str:
    """What does the same as a layer of `torch.nn` without parameters, as a message says it."""
    name = _OTHERS.get(layer, "")
    if layer == "Flatten" and made.args:
        return "torch.flatten"
    return function_for(layer) if not name else name if name.startswith("torch.") else _OF_FUNCTIONAL + name


def takes(layer: str, positional: int, keywords: frozenset[str]) -> bool:
    """Whether the function takes a layer's arguments as they are written, behind its input."""
    name, same = _FUNCTIONS[layer]
    if keywords & _REFUSED:
        return False
    return positional <= same and (not name.endswith("!") or positional == 1 or "dim" in keywords)


def is_scaled_by_numbers(made: cst.Call) -> bool:
    """Whether the scale of an `Upsample` is literal: what else it is given it turns into numbers first."""
    places = [argument.keyword.value if argument.keyword else place for place, argument in enumerate(made.args)]
    for place, argument in zip(places, made.args, strict=True):
        if place in (1, "scale_factor"):
            value = argument.value
            parts = [element.value for element in value.elements] if isinstance(value, cst.Tuple) else [value]
            if not all(isinstance(part, (cst.Integer, cst.Float)) and part.evaluated_value for part in parts):
                return False
    return True


def is_tampered_with(context: Context) -> bool:
    """Whether the file hooks into all modules, or puts something in the place of torch's own layers or functions."""
    return HOOKED_MODULES.is_in(context.program.code) or any(
        isinstance(node.target, cst.Attribute) and (context.qualified_name(node.target) or "").startswith("torch.nn.")
        for node in context.tree.of(cst.AssignTarget)
    )
