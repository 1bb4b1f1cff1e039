"""The rule packs that are installed beside torchlint, and what keeps one of them, or one of its rules, from being used.

A distribution declares a pack as an entry point: its name is the prefix of the pack's codes, its value a package. This
module reads what is declared, imports it, and says in one line what cannot be used.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import site
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from torchlint.rule import API, Applicability, Call, Method, Node, Rule

GROUP = "torchlint.rules"
"""The group of the entry points."""

OWN_PREFIX = "TL"

# Regular expressions, which cost time to compile: only where there is a pack.
_PREFIX = r"[A-Z]{2,8}"
_PACKAGE = r"[^\W\d]\w*(\.[^\W\d]\w*)*"
# With a hyphen, which no group and no code has: a selector means one thing.
_NAME = r"[a-z][a-z0-9]*(-[a-z0-9]+)+"
_RULE_GROUP = r"[a-z]+"
_PAGE = r"https?://\S+"


class PackError(Exception):
    """What is wrong with a pack or one of its rules, and what to do; a clause that follows the name of the pack."""


@dataclass(frozen=True, slots=True)
class Pack:
    """A package of rules that an installed distribution declares, with the prefix of their codes.

    `metadata` is the folder of what the installer says of the distribution.
    """

    distribution: str
    version: str
    prefix: str
    package: str
    metadata: str

    def __str__(self) -> str:
        return f"`{self.distribution}` {self.version}".rstrip()

    @property
    def is_declared_well(self) -> bool:
        """Whether prefix and package are what they have to be; `_check_declaration` says what is wrong with them."""
        try:
            _check_declaration(self)
        except PackError:
            return False
        return True


def installed() -> tuple[Pack, ...]:
    """The packs of the distributions that Python finds, sorted by distribution and prefix.

    Of distributions of one name the first on the path counts, as for Python. `importlib.metadata` finds the same, but
    it takes longer to import than a short run may take.
    """
    found: list[Pack] = []
    seen: set[str] = set()
    for folder in _path():
        entries: list[str] = []
        with suppress(OSError):
            entries = sorted(entry for entry in os.listdir(folder) if entry.endswith((".dist-info", ".egg-info")))
        for entry in entries:
            name, _, version = entry.rpartition(".")[0].partition("-")
            distribution = re.sub(r"[-_.]+", "-", name).lower()
            if distribution not in seen:
                seen.add(distribution)
                metadata = os.path.join(folder, entry)  # noqa: PTH118 - for each distribution, of which there are many
                found += (
                    Pack(distribution, version.partition("-")[0], prefix, package, metadata)
                    for prefix, package in _declared(metadata)
                )
    return tuple(sorted(found, key=lambda pack: (pack.distribution, pack.prefix)))


def _path() -> list[str]:
    """Python's path without the working directory, which may hold what is linted.

    A working directory in which Python's packages are installed stays.
    """
    try:
        here = os.path.realpath(os.curdir)
    except OSError:  # it is gone
        return [entry for entry in sys.path if entry]
    packages = [*site.getsitepackages(), *([site.getusersitepackages()] if site.ENABLE_USER_SITE else [])]
    if here in map(os.path.realpath, packages):
        return [entry for entry in sys.path if entry]
    return [entry for entry in sys.path if entry and os.path.realpath(entry) != here]


def _declared(metadata: str) -> Iterator[tuple[str, str]]:
    """Prefixes and packages that a distribution declares, in the file that installers write for it."""
    try:
        with open(f"{metadata}/entry_points.txt", "rb") as file:  # noqa: PTH123 - as above
            data = file.read()
    except OSError:
        return
    if GROUP.encode() not in data:
        return
    section = ""
    for line in map(str.strip, data.decode(errors="replace").splitlines()):
        if line.startswith("[") and line.endswith("]"):
            section = line[1:-1].strip()
        elif section == GROUP and line and not line.startswith(("#", ";")):
            prefix, _, package = line.partition("=")
            yield prefix.strip(), package.strip()


# Loading


def load(
    installed: Sequence[Pack], own: Iterable[Rule], modules: Callable[[str, Iterable[str]], Iterable[str]]
) -> tuple[list[Rule], dict[str, Pack], tuple[str, ...]]:
    """Our rules and those of packs; by name the packs of the latter; and for each pack a line, if anything is wrong.

    `modules` gives the names of the modules of a package in these folders. Of what is there twice ours counts, then
    what comes first.
    """
    found = {rule.name: rule for rule in own}
    homes: dict[str, Pack] = {}
    prefixes: dict[str, Pack] = {}
    wrong: dict[Pack, list[str]] = {}
    with _importing():
        for pack in installed:
            said = wrong.setdefault(pack, [])
            try:
                names = list(modules(pack.package, _package(pack, prefixes).__path__))
            except PackError as error:
                said.append(str(error))
                continue
            for module in names:
                try:
                    rule = _checked(module, pack, found, homes)
                except PackError as error:
                    said.append(str(error))
                else:
                    found[rule.name], homes[rule.name] = rule, pack
    for name in [name for name in homes if _yields_to_itself(name, found)]:
        wrong[homes.pop(name)].append(f"`{name}` yields to a rule that yields to it; its authors have to change it")
        del found[name]
    lines = (_line(pack, said) for pack, said in wrong.items() if said)
    return list(found.values()), homes, tuple(lines)


def _package(pack: Pack, prefixes: dict[str, Pack]) -> ModuleType:
    """The package of a pack, whose prefix is none of those and is then one of them. Raises `PackError`."""
    _check_declaration(pack)
    if pack.prefix in prefixes:
        raise PackError(_twice(f"prefix `{pack.prefix}`", prefixes[pack.prefix]))
    prefixes[pack.prefix] = pack
    package = _imported(pack.package)
    _check_package(package)
    return package


def _checked(module: str, pack: Pack, found: dict[str, Rule], homes: dict[str, Pack]) -> Rule:
    """The rule of a pack's module. Raises `PackError`."""
    rule = getattr(_imported(module), "RULE", None)
    _check_rule(rule, pack, module)
    assert isinstance(rule, Rule)
    for other in found.values():
        for what in ("name", "code"):
            if getattr(other, what) == getattr(rule, what):
                raise PackError(_twice(f"{what} `{getattr(rule, what)}` of `{module}`", homes.get(other.name)))
    return rule


def _twice(what: str, other: Pack | None) -> str:
    if other is None:
        return f"the {what} is that of a rule of torchlint; upgrade the pack, or uninstall it"
    return f"the {what} is used by {other} too; uninstall one of them, or have their authors agree"


def _imported(module: str) -> ModuleType:
    """The module. Raises `PackError`."""
    try:
        return importlib.import_module(module)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a pack must not cost the user what others find
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise PackError(f"`{module}` cannot be imported: {what}; upgrade the pack, or uninstall it") from None


def _yields_to_itself(name: str, rules: dict[str, Rule]) -> bool:
    """Whether a rule yields to one that yields to it, directly or not: neither would speak."""
    reached: set[str] = set()
    pending = list(rules[name].yields_to)
    while pending:
        other = pending.pop()
        if other in rules and other not in reached:
            reached.add(other)
            pending += rules[other].yields_to
    return name in reached


def _line(pack: Pack, said: Sequence[str]) -> str:
    more = f" (and {len(said) - 1} more of its modules)" if len(said) > 1 else ""
    return f"rule pack {pack}: {said[0]}{more}"


@contextmanager
def _importing() -> Iterator[None]:
    """A context to import packs in: the working directory is not on the path, and nothing is printed to the output."""
    before = sys.path[:]
    sys.path[:] = _path()
    try:
        with redirect_stdout(sys.stderr):  # the report, or what an editor reads
            yield
    finally:
        sys.path[:] = before


# What is wrong


def _check_declaration(pack: Pack) -> None:
    """Raise `PackError` unless prefix and package are what they have to be."""
    if pack.prefix.startswith(OWN_PREFIX):
        raise PackError(
            f"its prefix `{pack.prefix}` is one of torchlint's own, which begin with `{OWN_PREFIX}`; {_TELL}"
        )
    if not re.fullmatch(_PREFIX, pack.prefix) or pack.prefix == "ALL":
        raise PackError(f"its prefix `{pack.prefix}` is not two to eight capital letters, or it is `ALL`; {_TELL}")
    if not re.fullmatch(_PACKAGE, pack.package):
        raise PackError(f"its entry point `{pack.prefix} = {pack.package}` does not name a package; {_TELL}")


def _check_package(module: ModuleType) -> None:
    """Raise `PackError` unless it is a package that is written for this version of the authors' API."""
    if not hasattr(module, "__path__"):
        raise PackError(f"`{module.__name__}` is a module, and a pack is a package of modules; {_TELL}")
    api = getattr(module, "API", None)
    if type(api) is not int:
        raise PackError(
            f"`{module.__name__}` does not say which version of torchlint's API it is written for, "
            f"as in `API = {API}`; {_TELL}"
        )
    if api != API:
        remedy = "upgrade torchlint" if api > API else "upgrade the pack"
        raise PackError(f"it is written for version {api} of torchlint's API, and this is version {API}; {remedy}")


def _check_rule(rule: object, pack: Pack, module: str) -> None:
    """Raise `PackError` unless what the module calls `RULE` can stand among the rules."""
    if not isinstance(rule, Rule):
        what = "has no `RULE`" if rule is None else f"has a `RULE` that is {_a(rule)}, not a `torchlint.rule.Rule`"
        raise PackError(f"`{module}` {what}; {_TELL} (a module that is no rule has a name that begins with `_`)")
    for problem in _problems(rule, pack, module):
        raise PackError(f"`{module}`: {problem}; {_TELL}")


_TELL = "its authors have to change it"


def _problems(rule: Rule, pack: Pack, module: str) -> Iterator[str]:
    """What is wrong with a rule's metadata. What its checks do is seen when they run."""
    words = ("name", "code", "group", "summary", "since", "page")
    for word in words:
        value: object = getattr(rule, word)
        if not isinstance(value, str):
            yield f"`{word}` is {_a(value)}, not a string"
            return
    if not re.fullmatch(rf"{pack.prefix}\d{{3}}", rule.code):
        yield f"the code `{rule.code}` is not `{pack.prefix}` and three digits"
    if not re.fullmatch(_NAME, rule.name):
        yield f"the name `{rule.name}` is not two or more lowercase words with hyphens"
    elif rule.module != module.rpartition(".")[2]:
        yield f"the rule `{rule.name}` has to stand in a module `{rule.module}`"
    if not re.fullmatch(_RULE_GROUP, rule.group):
        yield f"the group `{rule.group}` is not one lowercase word"
    if not re.fullmatch(_PAGE, rule.page):
        yield f"`page` is `{rule.page}`, not the address where the rule's page is published"
    if not _are(rule.fix, Applicability):
        yield "`fix` is not a tuple of `Applicability`"
    if not _are(rule.yields_to, str):
        yield "`yields_to` is not a tuple of names"
    if not _are(rule.torch, int) or len(rule.torch) != 2:
        yield "`torch` is not a version such as `(2, 4)`"
    if not _are(rule.options, tuple) or not all(_is_option(*option) for option in rule.options):
        yield "`options` is not a tuple of names and defaults, as in `(('every', 50),)`"
    if not rule.checks:
        yield f"the rule `{rule.name}` registers no check"
    if not all(_is_interest(interest) for interest in rule.interests):
        yield "a check is registered for what is no `Method`, `Call` or `Node`, or has tokens that are not bytes"


def _are(values: object, kind: type) -> bool:
    return isinstance(values, tuple) and all(isinstance(value, kind) for value in values)


def _is_option(*option: object) -> bool:
    match option:
        case (str(), str() | int() | float() | bool()):
            return True
    return False


def _is_interest(interest: object) -> bool:
    match interest:
        case Method(name=str(), beside=tokens) | Node(type=str(), tokens=tokens):
            return _are(tokens, bytes)
        case Call(name=str()):
            return True
    return False


def _a(value: object) -> str:
    name = type(value).__name__
    return f"an `{name}`" if name[0] in "aeiou" else f"a `{name}`"


# What a result depends on


def sources(pack: Pack) -> list[Path]:
    """What a change of the pack changes: the files of its outermost package, and what the installer says of them.

    Its pages aside, and what it imports from other distributions.
    """
    found = [Path(pack.metadata, name) for name in ("RECORD", "entry_points.txt")]
    with _importing():
        for root in _roots(pack.package):
            if root.is_file():
                found.append(root)
            for folder, folders, names in os.walk(root):
                folders[:] = [name for name in folders if name != "__pycache__"]
                found += (Path(folder, name) for name in names if not name.endswith(".md"))
    return sorted(found)


def _roots(package: str) -> Sequence[Path]:
    """The folders of the outermost package that holds this one and is its own: a namespace belongs to others, too."""
    parts = package.split(".")
    for depth in range(1, len(parts) + 1):
        try:
            spec = importlib.util.find_spec(".".join(parts[:depth]))
        except Exception:  # noqa: BLE001 - of a package that cannot be imported what stands above is known
            return ()
        if spec is None:
            return ()
        if spec.has_location and spec.origin is not None:
            return [Path(folder) for folder in spec.submodule_search_locations or (spec.origin,)]
    return ()
