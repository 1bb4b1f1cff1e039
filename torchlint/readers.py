"""Functions that do nothing but bring to the CPU what they are given: found in their text, without a parse."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from enum import Enum


class Way(Enum):
    """What a function does with the tensor that it is given."""

    ITEM = "item"
    """It reads its one element: `t.item()`."""
    COPY = "copy"
    """It copies it: `t.detach().cpu().numpy()`."""
    COPY_OF_TENSOR = "copy-of-tensor"
    """It copies a tensor, and gives back what is none: `t.cpu() if isinstance(t, torch.Tensor) else t`."""


# `def to_np(x): return x.detach().cpu().numpy()`, a text of documentation between them, and `to_np = lambda x: …`.
_READER = re.compile(
    r"^(?:def[ \t]+(?P<function>\w+)\([ \t]*(?P<given>\w+)[ \t]*(?::[^,()\n]*)?\)[^:\n]*:[ \t]*(?:\#[^\n]*)?\s*"
    r"(?:\"\"\"(?:(?!\"\"\")[\s\S]){0,2000}\"\"\"\s*)?return[ \t]+(?P=given)"
    r"|(?P<name>\w+)[ \t]*=[ \t]*lambda[ \t]+(?P<of>\w+)[ \t]*:[ \t]*(?P=of))"
    r"(?P<chain>(?:\.\w+(?:\([^()\n]*\))?)+)"
    r"(?P<guard>[ \t]+if[ \t]+(?:isinstance|torch\.is_tensor)\([^()\n]*\)[ \t]+else[ \t]+\w+)?[ \t\r]*(?:\#[^\n]*)?$",
    re.MULTILINE,
)
_STEP = re.compile(r"\.(\w+)(?:\(([^()\n]*)\))?")
# What leaves a tensor one of as many elements on the same device.
_KEEPS = frozenset("clone contiguous data detach double flatten float half long squeeze".split())


def readers(text: str) -> Mapping[str, Way]:
    """The functions at the start of a line that read what they are given, by name."""
    if "cpu" not in text and ".item()" not in text:
        return {}
    found = {}
    for match in _READER.finditer(text):
        way = way_of(_STEP.findall(match["chain"]), is_guarded=bool(match["guard"]))
        if way is not None:
            found[match["function"] or match["name"]] = way
    return found


def way_of(steps: Iterable[tuple[str, str]], *, is_guarded: bool = False) -> Way | None:
    """How `.detach().cpu().numpy()` brings a tensor to the CPU; None if it does not, or more than that.

    The steps are names, each with the code of what it is given. What is guarded asks first whether it is a tensor.
    """
    found = None
    for name, given in steps:
        is_copy = name == "cpu" or (name == "to" and given.strip("'\"") == "cpu")
        if name == "item":
            return Way.ITEM
        if is_copy:
            found = Way.COPY_OF_TENSOR if is_guarded else Way.COPY
        elif name not in _KEEPS and (found is None or name not in ("numpy", "tolist")):
            return None
    return found
