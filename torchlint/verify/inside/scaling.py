"""Moves the numbers that a program holds, or its seeds, so that what it computes from them has to move too."""

from __future__ import annotations

import contextlib
import functools
import random
from collections.abc import Callable, Iterator
from typing import Any

import torch

from torchlint.verify.inside.leaves import array_module, is_array, leaves


def nudge(state: object, seed: int) -> int:
    """Move each number that `scale` moves by about a unit in the last place, up or down as the seed has it.

    Each by itself, as rounding does: a network does not mind that all its numbers grow together. How many tensors were.
    """
    return scale(state, 1.0, nudged=seed)


def scale(state: object, factor: float, *, everything: bool = False, nudged: int | None = None) -> int:
    """Multiply floating point numbers of a state in place; how many tensors and arrays were.

    They are the parameters and buffers of its modules, or all its numbers if it has none, or if `everything` is wanted.
    `nudged` is the seed by which each number besides is moved as `nudge` does.
    """
    found: dict[int, Any] = {}
    for leaf in leaves(state):
        value = leaf.value
        floating = (
            value.is_floating_point()
            if isinstance(value, torch.Tensor)
            else is_array(value) and value.dtype.kind == "f" and value.ndim > 0
        )
        # A long list of numbers is shown as a tensor, "list of float", which is not the program's.
        if floating and (everything or leaf.role == "module") and " of " not in leaf.kind:
            found[id(value)] = value
    if not found and not everything:
        return scale(state, factor, everything=True, nudged=nudged)
    done = 0
    with torch.no_grad():
        for value in found.values():
            with contextlib.suppress(RuntimeError, ValueError):  # what is expanded or read-only cannot be written to
                value *= factor if nudged is None else factor + _units(value, nudged)  # noqa: PLW2901 - in place
                done += 1
    return done


def _units(value: Any, seed: int) -> Any:  # a tensor or an array of floating numbers
    """A unit in the last place for each number of a value, of either sign, and of its kind."""
    drawn = torch.randint(0, 2, tuple(value.shape), generator=torch.Generator().manual_seed(seed)) * 2.0 - 1.0
    if isinstance(value, torch.Tensor):
        return (drawn * torch.finfo(value.dtype).eps).to(value)
    return (drawn.numpy() * array_module().finfo(value.dtype).eps).astype(value.dtype)


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
