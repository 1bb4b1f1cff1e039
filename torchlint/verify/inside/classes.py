"""What each class of numerics demands of a tensor and of the things around it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import torch

from torchlint.verify.inside.distance import Distance, measure, tolerance
from torchlint.verify.inside.statemap import matches

if TYPE_CHECKING:
    from torchlint.verify.inside.capture import Fact

CLASSES = frozenset("exact close lower-precision rng nondeterministic mapped-state shape alias stdout".split())

RELATIVE = 1e-2  # a correct bfloat16 product of 512 by 512 is off by 2.9e-3; this leaves a cosine of 0.99995
GAIN = 5e-3  # rounding has no direction: a factor of 1 % on everything is a mistake, not a precision
HIDDEN = 1e-2
MANY = 32  # elements, whose mean error says something
_TENFOLD = 10


@dataclass(frozen=True, slots=True)
class Demand:
    """A class of numerics with what the fix declares; `slices` maps patterns to leading elements per dimension."""

    name: str
    dropped: Sequence[str] = ()
    free: Sequence[str] = ()
    slices: Mapping[str, Sequence[int | None]] = field(default_factory=dict)

    def keeps_the_stream(self) -> bool:
        """Whether the next random number must be the one that came next before."""
        return self.name in ("exact", "close", "nondeterministic", "alias", "stdout")

    def keeps_memory_apart(self) -> bool:
        """Whether results must share memory exactly where they did before."""
        return self.name not in ("alias", "lower-precision", "shape")

    def judges(self, path: str, fact: Fact) -> bool:
        """Whether the values at `path` count."""
        return not (self.name == "shape" and fact.role in ("module", "optimizer")) and not matches(path, self.free)

    def allows_type(self, before: torch.dtype, after: torch.dtype) -> bool:
        """Whether a tensor may change its type so: to a narrower floating type, where that is what the fix does."""
        narrower = before.is_floating_point and after.is_floating_point and after.itemsize <= before.itemsize
        return before == after or (self.name == "lower-precision" and narrower)

    def allows_shape(self, path: str, before: torch.Size, after: torch.Size) -> bool:
        """Whether `after` holds what `before` did: the same shape, or for class `shape` one padded at the ends."""
        if before == after:
            return True
        if self.name != "shape" or len(before) != len(after):
            return False
        kept = self._kept(path, before)
        return all(n <= new for n, new in zip(kept, after, strict=True))

    def cut(self, path: str, expected: torch.Tensor, actual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The parts of the two tensors that are compared."""
        if self.name == "shape":
            for dim, n in enumerate(self._kept(path, expected.shape)):
                expected, actual = expected.narrow(dim, 0, n), actual.narrow(dim, 0, n)
        return expected, actual

    def _kept(self, path: str, shape: torch.Size) -> list[int]:
        for pattern, slices in self.slices.items():
            if matches(path, (pattern,)) and len(slices) == len(shape):
                return [size if n is None else min(n, size) for n, size in zip(slices, shape, strict=True)]
        return list(shape)


@dataclass(frozen=True, slots=True)
class Judgement:
    """One tensor: `over` is the error as a multiple of what is allowed, `complaint` why it is wrong.

    `hidden`: within the tolerance, and yet the error is more than 1 % of what the tensor says. `degenerate` says why
    the tensor can hardly show an error.
    """

    path: str
    distance: Distance
    over: float
    complaint: str = ""
    hidden: bool = False
    degenerate: str = ""


def judge(
    path: str, fact: Fact, expected: torch.Tensor, actual: torch.Tensor, demand: Demand, *, slack: float = 0.0
) -> Judgement:
    """`actual` by the rule of the class; `slack` is what the two programs differ from themselves by, times three."""
    expected, actual = demand.cut(path, expected, actual)
    allowed = tolerance(expected.dtype, fact.kind)
    absolute = allowed.absolute
    if slack and demand.name == "exact":
        allowed = replace(allowed, relative=0.0, absolute=0.0)  # what is exact may differ by noise, and by nothing else
    distance = measure(expected, actual, allowed, slack=slack)
    degenerate = _degenerate(distance, absolute) if expected.is_floating_point() else ""
    if distance.equal:
        return Judgement(path, distance, 0.0, degenerate=degenerate)
    count = f"{distance.count} of {distance.size} elements"
    if demand.name == "exact" and not slack:
        what = f"by at most {distance.largest:.2g}" if distance.largest else "in the sign of a zero, or in NaN"
        return Judgement(path, distance, distance.over, f"{path}: {count} differ, {what}", degenerate=degenerate)
    if not distance.pattern:
        complaint = f"{path}: NaN or infinity at other places"
        return Judgement(path, distance, math.inf, complaint, degenerate=degenerate)
    if not expected.is_floating_point() and not expected.is_complex() and not slack:
        return Judgement(path, distance, math.inf, f"{path}: {count} differ, and they are integers")
    if demand.name == "lower-precision":
        over, complaint = _judge_norms(path, distance)
        return Judgement(path, distance, over, complaint, degenerate=degenerate)
    if distance.over > 1:
        complaint = f"{path}: {count} differ, by up to {distance.over:.3g} times the tolerance"
        return Judgement(path, distance, distance.over, complaint, degenerate=degenerate)
    hidden = distance.difference > HIDDEN * distance.signal
    return Judgement(path, distance, distance.over, hidden=hidden, degenerate=degenerate)


@dataclass(frozen=True, slots=True)
class Four:
    """A value as the two programs compute it, and as they do in float64; its kind is that of its `Fact`.

    `nudged` is what the slow program computes from parameters that are off by a unit in the last place.
    """

    kind: str
    expected: torch.Tensor
    actual: torch.Tensor
    exact: torch.Tensor
    exact_after: torch.Tensor
    nudged: tuple[torch.Tensor, ...] = ()


@dataclass(slots=True)
class Rounding:
    """Whether all that two programs differ by is rounding, which float64 tells from a mistake.

    They have to agree in float64, in every value, and the fixed one may be no more than three times as far from there
    as the slow one is: rmse(actual) <= 3 * rmse(expected) + a tenth of the tolerance, the rule of PyTorch's own
    benchmarks for compilers. Where rounding decides which way a program goes on, as by the sign of a gradient near
    zero, one run of the slow one may have been lucky: as far as it is from there counts the farthest of it and of
    itself with nudged parameters. A tensor of many elements is judged for itself. Of a few numbers an error of three
    times another is chance, so that they are judged together, each error in units of its tolerance.

    `complaint` is why it is more than that, so far; `old` and `new` are the errors of the two, of the worst so far.
    """

    complaint: str = ""
    old: float = 0.0
    new: float = 0.0
    _few: list[tuple[float, float]] = field(default_factory=list)

    def add(self, path: str, four: Four) -> None:
        """Look at one value."""
        if not four.exact.shape == four.exact_after.shape == four.expected.shape == four.actual.shape:
            self._complain(f"{path}: of another shape in float64")
            return
        allowed = tolerance(four.expected.dtype, four.kind)
        agreement = measure(four.exact, four.exact_after, tolerance(torch.float64))
        old, new = (measure(four.exact, tensor, allowed) for tensor in (four.expected, four.actual))
        for tensor in four.nudged:
            if tensor.shape == four.exact.shape:
                other = measure(four.exact, tensor, allowed)
                old = max(old, other, key=lambda each: each.difference) if other.pattern else old
        if not (agreement.pattern and old.pattern and new.pattern):
            self._complain(f"{path}: NaN or infinity at other places in float64")
        elif agreement.over > 1 or agreement.difference > HIDDEN * agreement.signal:
            self._complain(f"{path}: in float64, too, they differ, by up to {agreement.over:.3g} times its tolerance")
        else:
            # The absolute tolerance would hide the error of small numbers. Without it, of a few numbers one that
            # happens to lie near zero would outweigh all others.
            of_scale = allowed.relative * new.scale
            unit = of_scale + (allowed.absolute if old.size < MANY else min(allowed.absolute, of_scale))
            errors = [each.difference / unit if unit else math.inf if each.difference else 0.0 for each in (old, new)]
            if old.size < MANY:
                self._few += [(errors[0], errors[1])] * old.size
            else:
                self._judge(path, *errors)

    def done(self) -> None:
        """All values were looked at."""
        if self._few:
            squares = [sum(error * error for error in errors) for errors in zip(*self._few, strict=True)]
            self._judge("the single numbers", *(math.sqrt(square / len(self._few)) for square in squares))

    def _judge(self, what: str, old: float, new: float) -> None:
        if new > self.new:
            self.old, self.new = old, new
        if new > 3 * old + 0.1:
            self._complain(f"{what}: {new:.3g} times the tolerance from float64, and were {old:.3g}")

    def _complain(self, complaint: str) -> None:
        self.complaint = self.complaint or complaint


def _judge_norms(path: str, distance: Distance) -> tuple[float, str]:
    over = distance.relative / RELATIVE
    if over > 1:
        return over, f"{path}: off by {distance.relative:.2g} of its norm, {RELATIVE:g} is allowed"
    if distance.size >= 16 and abs(distance.gain - 1) > GAIN:
        return over, f"{path}: {distance.gain - 1:+.2%} throughout, which rounding does not do"
    return over, ""


def _degenerate(distance: Distance, atol: float) -> str:
    if not distance.finite:
        return "nothing in it is finite" if distance.size else "empty"
    if distance.size > 1 and distance.spread < _TENFOLD * atol:
        return "constant" if distance.constant else "hardly varies"
    return "tiny" if distance.scale < _TENFOLD * atol else ""
