"""How far one tensor is from another, in every measure that a class of numerics asks for."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

_CHUNK = 1 << 22
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_TOLERANCES = {
    torch.float64: (1e-7, 1e-7),
    torch.float32: (1.3e-6, 1e-5),
    torch.float16: (1e-3, 1e-5),
    torch.bfloat16: (1.6e-2, 1e-5),
}
_REAL = {torch.complex128: torch.float64, torch.complex64: torch.float32}


@dataclass(frozen=True, slots=True)
class Tolerance:
    """What is allowed for an element, |difference| <= absolute + relative * |expected|, and its relative precision."""

    relative: float
    absolute: float
    precision: float


def tolerance(dtype: torch.dtype, kind: str = "tensor") -> Tolerance:
    """That of `torch.testing.assert_close` for a type; integers have none.

    A Python number, or a list of them, has float32's: in a PyTorch program it was read from a float32 tensor.
    """
    real = _REAL.get(dtype, dtype)
    if not real.is_floating_point:
        return Tolerance(0.0, 0.0, 0.0)
    if real is torch.float64 and kind not in ("tensor", "parameter") and not kind.startswith("numpy."):
        real = torch.float32
    precision = torch.finfo(real).eps
    relative, absolute = _TOLERANCES.get(real, (2 * precision, 1e-5))
    return Tolerance(relative, absolute, precision)


@dataclass(frozen=True, slots=True)
class Distance:
    """`expected` against `actual`, two tensors of one shape; sums run over the elements that are finite in both.

    equal       bit for bit, except that any NaN equals any NaN; the two zeros differ
    pattern     NaN and the two infinities stand at the same places
    count       elements that differ, of `size`
    over        the worst of |difference| / (atol + rtol * |expected|); infinite where that is 0, or the pattern differs
    largest     the largest |difference|
    difference  root mean square of the difference
    scale       root mean square of `expected`
    spread      standard deviation of `expected`
    gain        the factor on `expected` that fits `actual` best
    finite      elements that are finite in both
    constant    `expected` varies by no more than rounding
    """

    equal: bool
    pattern: bool
    count: int
    size: int
    over: float
    largest: float
    difference: float
    scale: float
    spread: float
    gain: float
    finite: int
    constant: bool

    @property
    def relative(self) -> float:
        """The norm of the difference over the norm of `expected`."""
        if self.difference == 0:
            return 0.0
        return self.difference / self.scale if self.scale else math.inf

    @property
    def signal(self) -> float:
        """The size of what `expected` says: its spread, or for a constant its magnitude."""
        return self.scale if self.constant else self.spread


def measure(expected: torch.Tensor, actual: torch.Tensor, allowed: Tolerance, *, slack: float = 0.0) -> Distance:
    """The distance of two CPU tensors of one shape; `slack` is added to the absolute tolerance."""
    first, second = (_real(tensor).reshape(-1) for tensor in (expected, actual))
    total = _Sums(unit=max(_largest(first), _largest(second)) or 1.0)
    for left, right in zip(first.split(_CHUNK), second.split(_CHUNK), strict=True):
        total.add(left, right, allowed.relative, allowed.absolute + slack)
    equal = expected.dtype == actual.dtype and total.count == 0
    return total.distance(equal=equal, size=expected.numel(), precision=allowed.precision)


def _real(tensor: torch.Tensor) -> torch.Tensor:
    return torch.view_as_real(tensor) if tensor.is_complex() else tensor


def _largest(tensor: torch.Tensor) -> float:
    """The largest finite magnitude."""
    parts = (part.to(torch.float64).abs() for part in tensor.split(_CHUNK) if part.numel())
    return max((float(torch.where(part.isfinite(), part, 0.0).max()) for part in parts), default=0.0)


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.view(_BITS[tensor.element_size()]) if tensor.is_floating_point() else tensor


@dataclass(slots=True)
class _Sums:
    unit: float  # squares of multiples of it neither overflow nor vanish
    count: int = 0
    finite: int = 0
    pattern: bool = True
    over: float = 0.0
    largest: float = 0.0
    squares: float = 0.0
    origin: float | None = None  # an element: from it, the spread of large numbers that hardly vary is exact
    sum: float = 0.0
    around: float = 0.0
    expected: float = 0.0
    product: float = 0.0

    def add(self, left: torch.Tensor, right: torch.Tensor, rtol: float, atol: float) -> None:
        if not left.numel():
            return
        same = left.dtype == right.dtype and torch.equal(_bits(left), _bits(right))
        x = left.to(torch.float64)
        y = x if same else right.to(torch.float64)
        if not same:
            bits = _bits(left) != _bits(right) if left.dtype == right.dtype else x != y
            self.count += int((bits & ~(x.isnan() & y.isnan())).sum())
        both = x.isfinite() & y.isfinite()
        if not bool(both.all()):
            self.pattern &= bool((both | (x == y) | (x.isnan() & y.isnan())).all())
            x, y = x[both], y[both]
        self.finite += x.numel()
        if not x.numel():
            return
        if not same:
            apart = (x - y).abs()
            allowed = atol + rtol * x.abs()
            self.over = max(self.over, float(torch.where(apart > 0, apart / allowed, 0.0).max()))
            self.largest = max(self.largest, float(apart.max()))
            self.squares += float((apart / self.unit).square().sum())
        x, y = x / self.unit, y / self.unit
        self.origin = float(x[0]) if self.origin is None else self.origin
        self.sum += float((x - self.origin).sum())
        self.around += float((x - self.origin).square().sum())
        self.expected += float(x.square().sum())
        self.product += float((x * y).sum())

    def distance(self, *, equal: bool, size: int, precision: float) -> Distance:
        n = max(self.finite, 1)
        mean = self.sum / n
        scale = math.sqrt(self.expected / n) * self.unit
        spread = math.sqrt(max(self.around / n - mean * mean, 0.0)) * self.unit
        return Distance(
            equal=equal,
            pattern=self.pattern,
            count=self.count,
            size=size,
            over=self.over if self.pattern else math.inf,
            largest=self.largest,
            difference=math.sqrt(self.squares / n) * self.unit,
            scale=scale,
            spread=spread,
            gain=self.product / self.expected if self.expected else 1.0,
            finite=self.finite,
            constant=spread <= 4 * precision * scale,
        )
