"""Which type of number a tensor has that is made of an array of NumPy on the spot."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.context import Context

_WRAPPERS = frozenset({"torch.from_numpy", "torch.as_tensor", "torch.tensor"})
# What gives an array of float64, however it is called without a type, if it has a size at all.
_RANDOM = frozenset(
    f"numpy.random.{name}" for name in ("rand", "randn", "random_sample", "random", "standard_normal", "ranf", "sample")
)
_DRAWN = frozenset(f"numpy.random.{name}" for name in ("normal", "uniform"))
_FILLED = frozenset(f"numpy.{name}" for name in ("zeros", "ones", "eye", "linspace"))


def is_of_float64(made: cst.Call, context: Context) -> bool:
    """Whether the call makes a tensor of an array that is float64 for certain."""
    if context.qualified_name(made.func) not in _WRAPPERS or len(made.args) != 1:
        return False
    array = made.args[0].value
    if (
        made.args[0].keyword is not None
        or not isinstance(array, cst.Call)
        or any(argument.star == "**" for argument in array.args)
    ):
        return False
    name = context.qualified_name(array.func) or ""
    keywords = {argument.keyword.value for argument in array.args if argument.keyword is not None}
    if "dtype" in keywords or not array.args:
        return False
    if name in _RANDOM:
        return True
    if context.has_unpacking(array):
        return False
    if name in _DRAWN:  # a size, so that it is an array
        return "size" in keywords or len(array.args) - len(keywords) == 3
    if name in _FILLED:  # a type may stand behind the sizes
        most = 3 if name == "numpy.linspace" else 1
        return len(array.args) - len(keywords) <= most
    return False
