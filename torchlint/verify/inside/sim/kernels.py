"""How many kernels an operator launches that launches more than one, as far as fixes change it."""

from __future__ import annotations

from torchlint.verify.inside.sim.tensor import Arguments

_BIAS = 2
_OUTPUT_MASK = -1


def kernels(name: str, args: Arguments) -> int:
    """The launches of an operator: one, but for convolutions.

    cuDNN adds no bias: `_convolution` calls `output.add_(bias)` behind it, and `convolution_backward` sums the gradient
    over everything but channels, beside one kernel for each of the other gradients
    (aten/src/ATen/native/Convolution.cpp, the cases of `ConvBackend::Cudnn`).
    """
    if name == "aten::convolution":
        return 1 if args[_BIAS] is None else 2
    if name == "aten::convolution_backward":
        return max(sum(args[_OUTPUT_MASK]), 1)
    return 1
