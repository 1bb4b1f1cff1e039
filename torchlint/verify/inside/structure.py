"""What differs between two captures besides numbers: names, types, shapes, devices, texts, shared memory, prints."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchlint.verify.inside.statemap import matches

if TYPE_CHECKING:
    from torchlint.verify.inside.capture import Capture
    from torchlint.verify.inside.classes import Demand


def structural_differences(before: Capture, after: Capture, demand: Demand) -> Iterator[str]:
    """One line for each value that is missing, new, or of another type, shape or device, and none for what it holds."""
    changed: list[str] = []
    for path in [*before.facts, *(path for path in after.facts if path not in before.facts)]:
        if any(path.startswith((f"{outer}[", f"{outer}.")) for outer in changed):
            continue
        difference = _difference(path, before, after, demand)
        if difference:
            changed.append(path)
            yield f"{path} {difference}"


def _difference(path: str, before: Capture, after: Capture, demand: Demand) -> str:
    old, new = before.facts.get(path), after.facts.get(path)
    if old is None:
        return "" if matches(path, demand.free) else "is new"
    if new is None:
        return "" if matches(path, demand.dropped) else "is missing"
    if old.kind != new.kind:
        return f"is a {new.kind}, was a {old.kind}"
    if old.device != new.device:
        return f"is on {new.device}, was on {old.device}"
    if before.texts.get(path) != after.texts.get(path):
        return f"is {after.texts.get(path)!r:.60}, was {before.texts.get(path)!r:.60}"
    first, second = before.values.get(path), after.values.get(path)
    if first is None or second is None:
        return ""
    if not demand.allows_type(first.dtype, second.dtype):
        return f"is {_plain(second.dtype)}, was {_plain(first.dtype)}"
    free = demand.name == "shape" and old.role in ("module", "optimizer")
    if not free and not demand.allows_shape(path, first.shape, second.shape):
        return f"has shape {tuple(second.shape)}, had {tuple(first.shape)}"
    return ""


def sharing_differences(before: Capture, after: Capture, demand: Demand) -> list[str]:
    """One line for each group of values that share memory in only one of the two."""
    old, new = (_groups(capture, demand) for capture in (before, after))
    lines = [_sentence(group, "no longer share memory") for group in sorted(old - new)]
    return lines + [_sentence(group, "now share memory") for group in sorted(new - old)]


def changed_gradients(before: Capture, after: Capture) -> list[str]:
    """The values that require a gradient in only one of the two."""
    both = before.facts.keys() & after.facts.keys()
    return sorted(path for path in both if before.facts[path].grad != after.facts[path].grad)


def _groups(capture: Capture, demand: Demand) -> set[tuple[str, ...]]:
    groups = set()
    for group in capture.shared:
        kept = tuple(path for path in group if not matches(path, demand.dropped))
        if kept and (len(kept) > 1 or len(group) == 1):
            groups.add(kept)
    return groups


def _sentence(group: tuple[str, ...], what: str) -> str:
    if len(group) == 1:
        return f"the elements of {group[0]} {what}"
    return f"{', '.join(group[:-1])} and {group[-1]} {what}"


def _plain(dtype: object) -> str:
    return str(dtype).removeprefix("torch.")


_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|\b(?:nan|inf)\b", re.IGNORECASE)
_MOST = 40
_READ = 2000  # lines: finding the differences takes quadratic time


def printed_differences(before: str, after: str, *, tolerance: float | None) -> list[str]:
    """The lines that went (`- `) and came (`+ `), 40 at most.

    Numbers may differ by `tolerance` of their size, or by one in the last digit that is printed; by nothing if it is 0,
    and as they like if it is None.
    """
    first, second = before.splitlines(), after.splitlines()
    keys = first, second
    if tolerance != 0:
        keys = [_NUMBER.sub("#", line) for line in first], [_NUMBER.sub("#", line) for line in second]
    matcher = difflib.SequenceMatcher(a=keys[0][:_READ], b=keys[1][:_READ], autojunk=False)
    lines: list[str] = []
    for tag, start, end, second_start, second_end in matcher.get_opcodes():
        if tag != "equal":
            lines += [f"- {line}" for line in first[start:end]]
            lines += [f"+ {line}" for line in second[second_start:second_end]]
        elif tolerance:
            for old, new in zip(first[start:end], second[second_start:second_end], strict=True):
                if not _close(old, new, tolerance):
                    lines += [f"- {old}", f"+ {new}"]
    if len(first) != len(second) and max(len(first), len(second)) > _READ:
        lines.append(f"{len(second)} lines, {len(first)} before")
    return [*lines[:_MOST], f"... and {len(lines) - _MOST} more"] if len(lines) > _MOST else lines


def _close(old: str, new: str, tolerance: float) -> bool:
    """Whether the numbers of two lines, which are alike otherwise, are close."""
    for one, other in zip(_NUMBER.findall(old), _NUMBER.findall(new), strict=True):
        digit = max(_last_digit(one), _last_digit(other))
        a, b = float(one), float(other)
        if not (one == other or math.isclose(a, b, rel_tol=tolerance, abs_tol=1.001 * digit)):
            return False
    return True


def _last_digit(number: str) -> float:
    """What one more in the last digit is worth: 0.01 for `3.14`; nothing for a whole number, which is not rounded."""
    mantissa, _, exponent = number.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    return 10.0 ** (int(exponent or 0) - decimals) if decimals else 0.0
