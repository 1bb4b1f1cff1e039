"""What differs between two captures besides their numbers: names, types, shapes, devices, texts, shared memory."""

from __future__ import annotations

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
