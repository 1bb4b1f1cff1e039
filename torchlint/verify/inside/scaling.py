"""Moves the numbers that a program holds, so that what it computes from them has to move too."""

from __future__ import annotations

import contextlib
from typing import Any

import torch

from torchlint.verify.inside.leaves import is_array, leaves


def scale(state: object, factor: float, *, everything: bool = False) -> int:
    """Multiply floating point numbers of a state in place; how many tensors and arrays were.

    They are the parameters and buffers of its modules, or all its numbers if it has none, or if `everything` is wanted.
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
        return scale(state, factor, everything=True)
    done = 0
    with torch.no_grad():
        for value in found.values():
            with contextlib.suppress(RuntimeError, ValueError):  # what is expanded or read-only cannot be written to
                value *= factor  # noqa: PLW2901 - in place
                done += 1
    return done
