"""All rules by name and code, and the choice among them."""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import sys
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

from torchlint.rule import Rule, Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from torchlint.packs import Pack

# packs is imported with the first rule: a run that looks at no code for PyTorch does without both.
PACK = "torchlint.rules"


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


def all_rules() -> tuple[Rule, ...]:
    """Every rule, those of the packs that are installed too, sorted by code."""
    return _catalogue().rules


def problems() -> tuple[str, ...]:
    """What is wrong with the packs that are installed, one line for each; nothing before the rules are loaded."""
    return _catalogue().problems if _catalogue.cache_info().currsize else ()


def pack_of(rule: str) -> Pack | None:
    """The pack that the rule of this name comes from; None for a rule of ours."""
    return _catalogue().packs.get(rule)


def prefixes() -> tuple[str, ...]:
    """What codes begin with. Loads no rule."""
    from torchlint.packs import OWN_PREFIX

    return (OWN_PREFIX, *dict.fromkeys(pack.prefix for pack in _installed() if pack.is_declared_well))


def pack_sources() -> list[Path]:
    """The files of packs that a result depends on."""
    from torchlint.packs import sources

    return [path for pack in _installed() if pack.is_declared_well for path in sources(pack)]


@cache
def _installed() -> tuple[Pack, ...]:
    from torchlint.packs import installed

    return installed()


class _Catalogue(NamedTuple):
    """The rules, what kept others from being among them, and by name the packs of those that are not ours."""

    rules: tuple[Rule, ...]
    problems: tuple[str, ...] = ()
    packs: dict[str, Pack] = {}  # noqa: RUF012 - nobody writes to it


@cache
def _catalogue() -> _Catalogue:
    _defer_libcst()
    modules = _modules(PACK, importlib.import_module(PACK).__path__)
    own = [importlib.import_module(module).RULE for module in modules]
    if not _installed():
        return _Catalogue(_sorted(own))
    from torchlint.packs import load

    found, homes, lines = load(_installed(), own, _modules)
    return _Catalogue(_sorted(found), lines, homes)


def _sorted(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    return tuple(sorted(rules, key=lambda rule: rule.code))


def _modules(package: str, folders: Iterable[str]) -> Iterator[str]:
    """The modules that define a rule in a package and its groups, sorted; a name with a leading underscore is none.

    A subpackage that binds `RULE` is a rule, whose other modules are its own; one that does not is a group.
    """
    modules: set[str] = set()
    packages: dict[str, list[str]] = {}
    for folder in folders:
        for entry in os.listdir(folder):
            name, _, ending = entry.rpartition(".")
            inner = os.path.join(folder, entry)  # noqa: PTH118 - a string, as listed
            if entry.startswith("_"):
                continue
            if ending in ("py", "pyc"):
                modules.add(name)
            elif (binds := _binds_rule(inner)) is not None:
                if binds:
                    modules.add(entry)
                else:
                    packages.setdefault(entry, []).append(inner)
    yield from (f"{package}.{name}" for name in sorted(modules))
    for name in sorted(packages):
        yield from _modules(f"{package}.{name}", packages[name])


def _binds_rule(folder: str) -> bool | None:
    """Whether a package binds `RULE`, by its text; None for a folder that is no package."""
    try:
        with open(os.path.join(folder, "__init__.py"), "rb") as file:  # noqa: PTH118, PTH123 - as above
            return re.search(rb"^RULE\b", file.read(), re.MULTILINE) is not None
    except OSError:
        return None


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
    """The rules that `ALL`, a group, a code's prefix, a code or a name stands for. Raises `UnknownRuleError`.

    While a pack cannot be used, what matches no rule may be meant for one of its rules, and matches none.
    """
    if selector == "ALL":
        return all_rules()
    named = tuple(rule for rule in all_rules() if selector in (rule.name, rule.group))
    found = named or tuple(rule for rule in all_rules() if _begins(rule.code, selector.upper()))
    if not found and not problems():
        raise _unknown(selector)
    return found


def _begins(code: str, selector: str) -> bool:
    """Whether a selector is all letters of a code, and some of its digits or none."""
    return code.startswith(selector) and len(selector) >= len(code.rstrip("0123456789"))


def _unknown(selector: str) -> UnknownRuleError:
    from difflib import get_close_matches  # only on the way to an error

    names = [key for rule in all_rules() for key in (rule.name, rule.code, rule.group)]
    near = get_close_matches(selector, names, n=1) or get_close_matches(selector.upper(), names, n=1)
    hint = f"did you mean `{near[0]}`?" if near else "`torchlint rules` lists them"
    if problems():
        hint = f"it may be in a pack that cannot be used: {problems()[0]}"
    return UnknownRuleError(f"unknown rule `{selector}`; {hint}")


def specificity(selector: str) -> int:
    """How narrow a selector is: `ALL` or a group 0 or 1, a code's prefix its length, a code or name the most."""
    if selector == "ALL":
        return 0
    if selector in by_name() or selector.upper() in by_name():
        return 100
    return 1 if any(rule.group == selector for rule in all_rules()) else len(selector)


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
        rank = specificity(selector)
        for rule in matching(selector):
            if rule.status is Status.PREVIEW and not preview and rank < 100:
                continue
            wanted[rule.name] = max(rank, wanted.get(rule.name, -1))
    for selector in ignore:
        rank = specificity(selector)
        for rule in matching(selector):
            if wanted.get(rule.name, -1) <= rank:
                wanted.pop(rule.name, None)
    return tuple(rule for rule in all_rules() if rule.name in wanted)
