"""Other random numbers for a program that seeds its generators itself."""

from __future__ import annotations

import contextlib
import functools
import random
from collections.abc import Callable, Iterator
from typing import Any

import torch


@contextlib.contextmanager
def shifted(offset: int) -> Iterator[None]:
    """Add `offset` to every seed that the code inside gives to `random`, NumPy and torch."""
    with contextlib.ExitStack() as stack:
        owners: list[tuple[Any, str]] = [(random, "seed"), (torch, "manual_seed"), (torch.random, "manual_seed")]
        owners += [(torch.cuda, "manual_seed"), (torch.cuda, "manual_seed_all")]
        with contextlib.suppress(ImportError):
            import numpy as np  # the program may import it later; where there is none, it cannot

            owners.append((np.random, "seed"))
        for owner, name in owners:
            original = getattr(owner, name)
            setattr(owner, name, _adding(original, offset))
            stack.callback(setattr, owner, name, original)
        yield


def _adding(seed: Callable[..., Any], offset: int) -> Callable[..., Any]:
    @functools.wraps(seed)
    def shifted_seed(*arguments: Any, **options: Any) -> Any:
        if arguments and isinstance(arguments[0], int):
            arguments = (arguments[0] + offset, *arguments[1:])
        elif isinstance(options.get("seed"), int):
            options["seed"] += offset
        return seed(*arguments, **options)

    return shifted_seed
