"""All rules by name and code, and the choice among them."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING

from torchlint.rule import Rule, Status

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PACK = "torchlint.rules"
ENTRY_POINT_GROUP = "torchlint.rules"


class UnknownRuleError(LookupError):
    """A selector that matches no rule; the message names it and the nearest one that exists."""


class _Deferred(ModuleType):
    """A module that runs when the first of its names is asked for.

    `importlib.util.LazyLoader` would run it at the next `import` of it, which looks at the module's `__spec__`.
    """

    def __getattr__(self, name: str) -> object:
        self.__class__ = ModuleType  # type: ignore[assignment]
        if self.__spec__ is not None and self.__spec__.loader is not None:
            self.__spec__.loader.exec_module(self)
        return getattr(self, name)


def _defer_libcst() -> None:
    """Let rule modules say `import libcst` without paying for it until a check runs (0.1 s)."""
    if "libcst" in sys.modules:
        return
    spec = importlib.util.find_spec("libcst")
    if spec is not None:
        module = importlib.util.module_from_spec(spec)
        module.__class__ = _Deferred
        sys.modules["libcst"] = module


@cache
def all_rules(packs: tuple[str, ...] = (PACK,)) -> tuple[Rule, ...]:
    """Every rule of the packs, sorted by code.

    A pack is a package whose modules and packages each define `RULE`, or are groups of such; names with a leading
    underscore are the pack's own.
    """
    _defer_libcst()
    rules = [rule for pack in packs for rule in _rules_in(importlib.import_module(pack))]
    return tuple(sorted(rules, key=lambda rule: rule.code))


def _rules_in(package: ModuleType) -> Iterator[Rule]:
    for name in _entries(package):
        module = importlib.import_module(f"{package.__name__}.{name}")
        if hasattr(module, "__path__") and not hasattr(module, "RULE"):
            yield from _rules_in(module)
        else:
            yield module.RULE


def _entries(package: ModuleType) -> list[str]:
    """The modules and packages in a package."""
    names = set()
    for folder in package.__path__:
        for entry in os.scandir(folder):
            stem, _, ending = entry.name.partition(".")
            is_package = not ending and os.path.isfile(os.path.join(entry.path, "__init__.py"))  # noqa: PTH113, PTH118 - at each start
            if (ending in ("py", "pyc") or is_package) and not stem.startswith("_"):
                names.add(stem)
    return sorted(names)


@cache
def by_name() -> dict[str, Rule]:
    """Rules by name and by code."""
    return {key: rule for rule in all_rules() for key in (rule.name, rule.code)}


def find(selector: str) -> Rule:
    """The rule of this name or code. Raises `UnknownRuleError`."""
    rule = by_name().get(selector) or by_name().get(selector.upper())
    if rule is None:
        raise _unknown(selector)
    return rule


def matching(selector: str) -> tuple[Rule, ...]:
    """The rules that `ALL`, a group, a code's prefix, a code or a name stands for. Raises `UnknownRuleError`."""
    if selector == "ALL":
        return all_rules()
    upper = selector.upper()
    found = tuple(
        rule
        for rule in all_rules()
        if selector in (rule.name, rule.group) or (upper.startswith("TL") and rule.code.startswith(upper))
    )
    if not found:
        raise _unknown(selector)
    return found


def _unknown(selector: str) -> UnknownRuleError:
    from difflib import get_close_matches  # only on the way to an error

    names = [key for rule in all_rules() for key in (rule.name, rule.code, rule.group)]
    near = get_close_matches(selector, names, n=1) or get_close_matches(selector.upper(), names, n=1)
    hint = f"did you mean `{near[0]}`?" if near else "`torchlint rules` lists them"
    return UnknownRuleError(f"unknown rule `{selector}`; {hint}")


def _specificity(selector: str) -> int:
    """How narrow a selector is: `ALL` or a group 0 or 1, a code's prefix its length, a code or name the most."""
    if selector == "ALL":
        return 0
    if selector in by_name() or selector.upper() in by_name():
        return 100
    return len(selector) if selector.upper().startswith("TL") else 1


def choose(
    select: Sequence[str] | None,
    ignore: Sequence[str] = (),
    extend_select: Sequence[str] = (),
    *,
    preview: bool = False,
) -> tuple[Rule, ...]:
    """The active rules. As in ruff the narrower selector wins, and `ignore` wins a tie.

    `select=None` means the rules that are on by default. Preview rules need `preview`, or their exact name or
    code. Raises `UnknownRuleError`.
    """
    wanted: dict[str, int] = {}
    if select is None:
        statuses = (Status.STABLE, Status.PREVIEW) if preview else (Status.STABLE,)
        wanted = {rule.name: 0 for rule in all_rules() if rule.default and rule.status in statuses}
    for selector in (*(select or ()), *extend_select):
        rank = _specificity(selector)
        for rule in matching(selector):
            if rule.status is Status.PREVIEW and not preview and rank < 100:
                continue
            wanted[rule.name] = max(rank, wanted.get(rule.name, -1))
    for selector in ignore:
        rank = _specificity(selector)
        for rule in matching(selector):
            if wanted.get(rule.name, -1) <= rank:
                wanted.pop(rule.name, None)
    return tuple(rule for rule in all_rules() if rule.name in wanted)
