"""Whether two samples can come from one distribution."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch

_ENOUGH = 64
_SIGNIFICANT = 1e-3


def differences(pools: Mapping[str, Sequence[tuple[torch.Tensor, torch.Tensor]]]) -> tuple[list[str], list[str]]:
    """What is said against samples being of one distribution, and the names of those too small to tell.

    A pool holds pairs of samples. At most one in a thousand calls finds a difference where there is none.
    """
    complaints, few = [], []
    for name, pairs in pools.items():
        if all(same_values(*pair) for pair in pairs):
            continue
        first, second = (torch.cat([tensor.reshape(-1) for tensor in side]) for side in zip(*pairs, strict=True))
        if any(is_permutation(old) for old, _ in pairs if old.numel() > 1):
            complaints.append(f"{name} is no permutation of the same numbers")
        elif min(len(first), len(second)) < _ENOUGH or first.is_complex():
            few.append(name)
        elif not (bool(first.isfinite().all()) and bool(second.isfinite().all())):
            complaints.append(f"{name} is not finite")
        else:
            chance = kolmogorov_smirnov(first, second)
            if chance < _SIGNIFICANT / len(pools):
                complaints.append(f"{name} has another distribution (Kolmogorov-Smirnov, p = {chance:.1g})")
    return complaints, few


def same_values(first: torch.Tensor, second: torch.Tensor) -> bool:
    """The same elements, each as often, in whatever order."""
    return first.numel() == second.numel() and torch.equal(_sorted(first), _sorted(second))


def is_permutation(sample: torch.Tensor) -> bool:
    """The integers from 0 to n - 1, each once."""
    ordered = _sorted(sample)
    return not sample.is_floating_point() and torch.equal(ordered.long(), torch.arange(ordered.numel()))


def kolmogorov_smirnov(first: torch.Tensor, second: torch.Tensor) -> float:
    """The p value of the two-sample test; conservative for samples with ties.

    The asymptotic distribution with the correction for small samples of Stephens (1970), good from about 20 elements.
    """
    one, two = _sorted(first.double()), _sorted(second.double())
    points = torch.cat([one, two])
    gap = torch.searchsorted(one, points, right=True) / len(one) - torch.searchsorted(two, points, right=True) / len(
        two
    )
    size = math.sqrt(len(one) * len(two) / (len(one) + len(two)))
    value = (size + 0.12 + 0.11 / size) * float(gap.abs().max())
    if value < 0.2:  # the series below converges slowly there, to 1
        return 1.0
    terms = (2 * (-1) ** (k - 1) * math.exp(-2 * (k * value) ** 2) for k in range(1, 101))
    return min(max(math.fsum(terms), 0.0), 1.0)


def _sorted(sample: torch.Tensor) -> torch.Tensor:
    return sample.reshape(-1).sort().values
