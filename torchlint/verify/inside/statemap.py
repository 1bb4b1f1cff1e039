"""Starts a fixed program from the state of the slow one, where the fix drops or adds entries of a state_dict."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

import torch

from torchlint.verify.inside.leaves import Walk

_INDEX = re.compile(r"\[(?:'([^']*)'|([^\[\]]*))\]")
_OF_OPTIMIZER = re.compile(r"\.state\[([^\[\]]*)\]")


class StateMapError(ValueError):
    """The modules of two programs differ by more than their fix declares; the text names the entries."""


def matches(name: str, patterns: Sequence[str]) -> bool:
    """Whether one of the patterns, such as `*.bias` or `conv.bias`, means the name or the end of it behind a dot.

    `out['model'].conv.bias` and `out['sd']['conv.bias']` end with `conv.bias`; what an optimizer keeps for a parameter,
    `out['optimizer'].state[conv.bias]['momentum_buffer']`, goes by the parameter's name.
    """
    if not patterns:
        return False
    of_optimizer = _OF_OPTIMIZER.search(name)
    dotted = "." + (of_optimizer[1] if of_optimizer else _INDEX.sub(r".\1\2", name))
    return any(fnmatchcase(dotted, pattern if pattern[:1] in "*." else f"*.{pattern}") for pattern in patterns)


def keep(state: object, file: str | os.PathLike[str]) -> None:
    """Write the `state_dict` of each module in `state`, by the way to the module, for `adopt` in another process."""
    kept = {
        path: {key: item.detach().cpu().clone() for key, item in _entries(module).items()}
        for path, module in _modules(state)
    }
    torch.save(kept, file)


def adopt(state: object, file: str | os.PathLike[str], dropped: Sequence[str] = (), free: Sequence[str] = ()) -> int:
    """Load what `keep` wrote into the modules at the same places of `state`; the number of modules.

    An entry that only the file has must match `dropped`, one that only the module has `free`. StateMapError names any
    other, entries whose shape or type differs, and modules that are missing or new. Nothing else is mapped: an
    optimizer has no state before its first step, and data has to be drawn before the modules whose initialisation
    takes random numbers.
    """
    kept = torch.load(file, map_location="cpu", weights_only=True)
    modules = dict(_modules(state))
    faults = [f"{path} is a module in only one of the two programs" for path in sorted(modules.keys() ^ kept.keys())]
    for path in modules.keys() & kept.keys():
        faults += [f"{path}.{fault}" for fault in _faults(kept[path], _entries(modules[path]), dropped, free)]
    if faults:
        raise StateMapError("; ".join(faults))
    for path, module in modules.items():
        own = _entries(module)
        module.load_state_dict({key: item for key, item in kept[path].items() if key in own}, strict=False)
    return len(modules)


def _modules(state: object) -> list[tuple[str, Any]]:
    walk = Walk()
    for _ in walk.leaves(state, "state"):
        pass
    return walk.modules


def _entries(module: Any) -> dict[str, torch.Tensor]:
    return {key: item for key, item in module.state_dict().items() if isinstance(item, torch.Tensor)}


def _faults(
    kept: Mapping[str, torch.Tensor], own: Mapping[str, torch.Tensor], dropped: Sequence[str], free: Sequence[str]
) -> Iterator[str]:
    for key, item in kept.items():
        if key not in own:
            if not matches(key, dropped):
                yield f"{key} is missing, and not declared as dropped"
        elif item.shape != own[key].shape or item.dtype != own[key].dtype:
            was, now = (f"{entry.dtype} {tuple(entry.shape)}" for entry in (item, own[key]))
            yield f"{key} is {now}, was {was}"
    for key in own:
        if key not in kept and not matches(key, free):
            yield f"{key} is new, and not declared as free"
