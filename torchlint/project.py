"""Which files of a project import which: found in their text, without a parse."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from torchlint.facts import ANY, PLACED, SOLE
from torchlint.readers import readers
from torchlint.source import is_notebook

# What may stand between two words of a statement: a backslash ends the line and not the statement.
_GAP = rb"(?:[ \t]|\\\r?\n)"
# `from a.b import (c, d as e)`, with what is in the parentheses, and `import a.b as c, d`.
_IMPORT = re.compile(
    rb"^[ \t]*(?:from" + _GAP + rb"+(?P<base>[\w.]+)" + _GAP + rb"+import" + _GAP + rb"*"
    rb"(?P<names>\([^)]*\)|(?:[^\n#;\\]+|\\\r?\n|\\)*)"
    rb"|import" + _GAP + rb"+(?P<modules>(?:\\\r?\n|[\w. \t,])+))",
    re.MULTILINE,
)
_NAME = re.compile(rb"[A-Za-z_]\w*(?:[ \t]+as[ \t]+\w+)?")
# What follows `re.` is Python's own: `re.compile(` is no call of `torch.compile`.
_CALLED = re.compile(rb"\b(?=([A-Za-z_]\w*))(?<!\bre\.)\1[ \t]*\(")  # a name as a whole: its beginnings are not tried
_DEFINED = re.compile(rb"^(?:class|(?:async[ \t]+)?def)[ \t]+([A-Za-z_]\w*)", re.MULTILINE)
_METHOD = re.compile(rb"^[ \t]+(?:async[ \t]+)?def[ \t]+([A-Za-z_]\w*)", re.MULTILINE)
# `self.buffer = data.Buffer(size)`, where an object keeps what it makes.
_HELD = re.compile(rb"\.(?<=\w\.)\w+[ \t]*=[ \t]*(?:\w+\.)*(\w+)\(")
_PART = re.compile(rb"\.([A-Z]\w*)\b(?![ \t]*\()")
_SUFFIX = ".py"
# Through how many modules a name is followed that each imports from the next.
_HANDED_ON = 4
_PACKAGE = "/__init__"
_OF_TORCH = "torch."
_OF_PROGRAMS = "argparse."


class Import(NamedTuple):
    """`from base import names`, or `import base` if `names` is None. The dots of a relative import are in `base`."""

    base: str
    names: tuple[str, ...] | None


class Outline(NamedTuple):
    """What the text of a file says without a parse: its imports, and every name before an opening parenthesis.

    A name that an import gives to something counts as what it was before: `from a import b as c` and `c(` call `b`.
    `pins` says whether it speaks of `pin_memory`; `defined` are the functions and classes at the start of a line,
    `methods` functions that are indented, `held` is what it calls to make what an attribute holds, and `parts` what it
    names of something else that begins with a capital letter. `adds_paths` says whether it speaks of `sys.path`, and
    `readers` are its functions that only read what they are given, and how.
    """

    imports: tuple[Import, ...] = ()
    called: frozenset[str] = frozenset()
    pins: bool = False
    defined: frozenset[str] = frozenset()
    held: frozenset[str] = frozenset()
    adds_paths: bool = False
    readers: tuple[tuple[str, str], ...] = ()
    parts: frozenset[str] = frozenset()
    methods: frozenset[str] = frozenset()


def outline(data: bytes) -> Outline:
    """The outline of a file with these bytes."""
    called, held = ({name.decode() for name in set(pattern.findall(data))} for pattern in (_CALLED, _HELD))
    imports: dict[Import, None] = {}
    for import_, renamed in _imports(data):
        imports.setdefault(import_)
        for names in (called, held):
            names |= {name for name, other in renamed if other in names}
    defined, parts, methods = (
        frozenset(name.decode() for name in set(pattern.findall(data))) for pattern in (_DEFINED, _PART, _METHOD)
    )
    reading = tuple((name, way.value) for name, way in readers(data.decode(errors="replace")).items())
    is_pinning, adds_paths = b"pin_memory" in data, b"sys.path" in data
    return Outline(
        tuple(imports), frozenset(called), is_pinning, defined, frozenset(held), adds_paths, reading, parts, methods
    )


class Project:
    """The import graph of files, given by their path from one folder (POSIX) and their outlines.

    A module is looked for as Python would from the folder of a script, and from each one above up to the root, or
    `src` in it: the nearest file of that name counts. A file that adds to `sys.path` may have it from any folder, if
    one file alone has the name.
    """

    def __init__(self, files: Mapping[str, Outline]) -> None:
        self._files = files
        self._resolved: dict[tuple[str, str], str | None] = {}
        self._brought: dict[tuple[str, str], frozenset[str] | None] = {}

    def never_pins(self, path: str) -> bool:
        """Whether loaders are made, and nothing speaks of pinning what they give, in the files that a file works with.

        Those are the files that import it, and all that these import; where none of them makes loaders, any file is. A
        notebook works with what it imports: nothing imports it, and two of them have nothing to do with each other.
        """
        if is_notebook(path):
            reached = self._reached([path])
        else:
            reached = self._reached(self._importers.get(path, {}))
            if not any("DataLoader" in self._files[name].called for name in reached):
                reached = {name for name in self._files if not is_notebook(name)}
        return not any(self._files[name].pins for name in reached) and any(
            "DataLoader" in self._files[name].called for name in reached
        )

    def _reached(self, paths: Iterable[str]) -> set[str]:
        """These files, and all that they import, one through the other."""
        reached: set[str] = set()
        waiting = list(paths)
        while waiting:
            path = waiting.pop()
            if path not in reached:
                reached.add(path)
                waiting += [target for _, target in self._imported(path)]
        return reached

    def is_called(self, path: str, by: Container[str] | None = None) -> bool:
        """Whether a file, or one of some, calls anything that it may have from this one."""
        defined = self._files[path].defined
        return any(
            not self._files[importer].called.isdisjoint(defined if brought is None else defined & brought)
            for importer, bases in self._importers.get(path, {}).items()
            if by is None or importer in by
            for brought in (self._brought_by(importer, base) for base in bases)
        )

    def is_unused(self, path: str, name: str) -> bool:
        """Whether files bring what this one defines, and none brings this: by name, or, of a class, from the module."""
        importers = self._importers.get(path, {})
        is_seen = bool(importers) and "." not in name and name in self._files[path].defined
        return is_seen and not any(
            self._may_bring(importer, base, name) for importer, bases in importers.items() for base in bases
        )

    def _may_bring(self, importer: str, base: str, name: str) -> bool:
        """Whether a file brings something of a module by name, or may take it from that."""
        known = self._brought_by(importer, base)
        if known is not None:
            return name in known
        outline = self._files[importer]
        is_by_star = any(found.base == base and found.names == () for found in outline.imports)
        return (
            is_by_star
            or not name[0].isupper()
            or not outline.called.isdisjoint((name, "getattr", "vars"))
            or (name in outline.parts)
        )

    def readers(self, path: str, names: Iterable[str]) -> Iterator[tuple[str, str]]:
        """Those of imported functions, by their qualified names in a file, that only read what they get, and how."""
        for name in names:
            home = self.definition(name, path)
            way = dict(self._files[home[0]].readers).get(home[1]) if home is not None else None
            if way is not None:
                yield name, way

    def callers(self, path: str, functions: Iterable[str]) -> Iterator[tuple[str, str, str]]:
        """The files that may call functions of a file, each with the function's qualified name there, and the function.

        Methods are given as `Class.method`, those of what an object holds as `Class.held.method`, as `*.method` where
        any object may be meant, and as `1.method` where no other file has a method of that name. A function of torch is
        called by whatever programs the file is part of. What a notebook defines nobody else calls, whatever its name.
        """
        functions = set() if is_notebook(path) else set(functions)
        for function in sorted(name for name in functions if name.startswith(SOLE)):
            functions.discard(function)
            name = function.removeprefix(SOLE)
            yield from ((other, f"{ANY}{name}", function) for other in self._sole.get(name, ()) if other != path)
        for function in sorted(name for name in functions if name.startswith(ANY)):
            functions.discard(function)
            for other in sorted(self._files.keys() - {path}):
                if function.removeprefix(ANY) in self._files[other].called:
                    yield other, function, function
        for function in sorted(name for name in functions if name.startswith(_OF_TORCH)):
            functions.discard(function)
            for other in self._programs(path):
                if function.rpartition(".")[2] in self._files[other].called:
                    yield other, function, function
        for function in sorted(name for name in functions if name.startswith(_OF_PROGRAMS)):
            functions.discard(function)
            for other in sorted(self._reached(self._programs(path)) - {path}):
                if function.rpartition(".")[2] in self._files[other].called:
                    yield other, function, function
        # The call itself, and for a method that of its class: what an object is, only its construction tells.
        # Who keeps one knows of others that call what is kept.
        parts = [(function, *_ends(function)) for function in sorted(functions)]
        for function, first, last in parts:
            if function.count(".") == 1 and last != "forward":
                for other in self._handed(path, first):
                    if last in self._files[other].called:
                        yield other, f"{PLACED}{path}:{function}", function
        for importer, bases in sorted(self._importers.get(path, {}).items()):
            called, held = self._files[importer].called, self._files[importer].held
            for function, first, last in parts:
                if first in called and (last in called or first in held):
                    for base in sorted(bases):
                        if self._brings(importer, base, function.partition(".")[0]):
                            yield importer, joined(base, function), function

    @cached_property
    def _sole(self) -> Mapping[str, list[str]]:
        """The files that call something of the name, of each method that one file alone defines."""
        homes = Counter(name for outline in self._files.values() for name in outline.methods)
        found: dict[str, list[str]] = {name: [] for name, times in homes.items() if times == 1}
        for path in sorted(self._files):
            for name in self._files[path].called & found.keys():
                found[name].append(path)
        return found

    def _handed(self, path: str, class_: str) -> list[str]:
        """The files whose functions and classes may be given an instance by who makes one, or by who was given it."""
        makers = [path] if class_ in self._files[path].called else []
        for importer, bases in self._importers.get(path, {}).items():
            if class_ in self._files[importer].called and any(self._brings(importer, base, class_) for base in bases):
                makers.append(importer)
        found = {other for maker in makers for other in self._called_by.get(maker, ())}
        found |= {other for each in found for other in self._called_by.get(each, ())}
        return sorted(found - {path})

    @cached_property
    def _called_by(self) -> dict[str, set[str]]:
        """The files of which each calls something that they define."""
        found: dict[str, set[str]] = {}
        for path, importers in self._importers.items():
            for importer in importers:
                if self.is_called(path, (importer,)):
                    found.setdefault(importer, set()).add(path)
        return found

    def in_order(self, paths: Iterable[str]) -> list[str]:
        """The paths, each behind those that its file imports, as far as files do not import each other in a circle."""
        waiting = dict.fromkeys(paths)
        ordered: dict[str, None] = {}
        seen: set[str] = set()
        for path in waiting:
            stack = [path]
            while stack:
                current = stack[-1]
                if current in seen:
                    stack.pop()
                    if current in waiting:
                        ordered.setdefault(current)
                    continue
                seen.add(current)
                stack += sorted({target for _, target in self._imported(current)} - seen)
        return list(ordered)

    def imported_names(self, path: str) -> Iterator[str]:
        """The qualified names that a file gives to what it imports by name, most of it from elsewhere."""
        for base, names in self._files[path].imports:
            if names and self.resolve(base, path) is not None:
                yield from (joined(base, name) for name in names)

    def starred(self, path: str) -> Iterator[tuple[str, str]]:
        """The modules of which a file imports all there is, by `*`, each with the file that it is."""
        for base, names in self._files[path].imports:
            if names == () and (home := self.resolve(base, path)) is not None and home != path:
                yield base, home

    def _programs(self, path: str) -> list[str]:
        """The files that import this one, those that import them, and so on."""
        found: set[str] = set()
        waiting = [path]
        while waiting:
            more = self._importers.get(waiting.pop(), {}).keys() - found
            found |= more
            waiting += more
        return sorted(found - {path})

    def _brings(self, importer: str, base: str, name: str) -> bool:
        """Whether a file can know what this module defines under this name: by name, by `*`, or through the module."""
        known = self._brought_by(importer, base)
        return known is None or name in known

    def _brought_by(self, importer: str, base: str) -> frozenset[str] | None:
        """What a file imports of a module by name; None where it may know all of it."""
        key = importer, base
        if key not in self._brought:
            listed = [found.names for found in self._files[importer].imports if found.base == base]
            is_whole = not listed or any(not names for names in listed)
            by_module = any(
                joined(found.base, other) == base
                for found in self._files[importer].imports
                for other in found.names or ()
            )
            everything = is_whole or by_module
            self._brought[key] = None if everything else frozenset(each for names in listed for each in names or ())
        return self._brought[key]

    def definition(self, name: str, importer: str) -> tuple[str, str] | None:
        """The file that defines what a file knows by a qualified name, and the name it has there.

        None if it is not one of the project's, or none at the top level of a module.
        """
        if name.startswith(PLACED):
            home, _, last = name[len(PLACED) :].rpartition(":")
            return (home or importer, last) if last in self._files[home or importer].defined else None
        for _ in range(_HANDED_ON):
            base, dot, last = name.rpartition(".")
            # `from . import x` gives `.x`, `from .a import x` gives `.a.x`.
            path = self.resolve(base or dot, importer)
            if path is None or not last:
                return None
            imports = self._files[path].imports
            origin = next((found.base for found in imports if last in (found.names or ())), None)
            if origin is None:
                return path, last
            name, importer = joined(origin, last), path
        return None

    @cached_property
    def _importers(self) -> dict[str, dict[str, set[str]]]:
        """For each file those that import it or something it holds, with what qualified names there begin with."""
        direct: dict[str, dict[str, set[str]]] = {}
        for importer in self._files:
            for base, target in self._imported(importer):
                if target != importer:
                    direct.setdefault(target, {}).setdefault(importer, set()).add(base)
        importers = {target: {name: set(bases) for name, bases in found.items()} for target, found in direct.items()}
        for target, found in direct.items():
            # A package's `__init__` hands on what it imports.
            for between in found:
                if between.endswith(f"{_PACKAGE}{_SUFFIX}"):
                    inner = _module_in(between, target)
                    for importer, bases in direct.get(between, {}).items():
                        if importer != target:
                            known = importers[target].setdefault(importer, set())
                            known.update(bases)
                            whole = [base for base in bases if inner and self._brought_by(importer, base) is None]
                            known.update(joined(base, inner) for base in whole if inner)
        return importers

    def _imported(self, importer: str) -> Iterator[tuple[str, str]]:
        """What a file imports: the qualified name of a module there, and the module's file."""
        for base, names in self._files[importer].imports:
            target = self.resolve(base, importer)
            if target is not None:
                yield base, target
            for name in names or ():
                inner = joined(base, name)
                module = self.resolve(inner, importer)
                if module is not None and module != target:
                    yield inner, module

    def resolve(self, module: str, importer: str) -> str | None:
        """The file of a module as a file imports it; None if it is not one of the project's."""
        found = self._beside(importer, module)
        return self._anywhere(module) if found is None and importer in self._adding else found

    def _beside(self, importer: str, module: str) -> str | None:
        key = importer.rpartition("/")[0], module
        if key not in self._resolved:
            self._resolved[key] = self._resolve(*key)
        return self._resolved[key]

    @cached_property
    def _adding(self) -> set[str]:
        """The files that add to `sys.path`, and those that import one: `import _init_paths`."""
        adding = {path for path, outline in self._files.items() if outline.adds_paths}
        if not adding:
            return adding
        return adding | {
            path
            for path, outline in self._files.items()
            if any(self._beside(path, import_.base) in adding for import_ in outline.imports)
        }

    def _anywhere(self, module: str) -> str | None:
        """The one file of the project that ends in the name of a module."""
        key = "*", module
        if key not in self._resolved:
            tail = f"/{module.replace('.', '/')}{_SUFFIX}"
            is_theirs = module[:1] in ".*" or module.partition(".")[0] in sys.stdlib_module_names
            found = [path for path in self._files if not is_theirs and path.endswith(tail)]
            self._resolved[key] = found[0] if len(found) == 1 else None
        return self._resolved[key]

    def _resolve(self, folder: str, module: str) -> str | None:
        parts = [part for part in module.split(".") if part]
        dots = len(module) - len(module.lstrip("."))
        if dots:
            for _ in range(dots - 1):
                if not folder:
                    return None
                folder = folder.rpartition("/")[0]
            return self._file(folder, parts)
        if not parts or parts[0] not in self._top_names:
            return None
        while True:
            for start in (folder, f"{folder}/src" if folder else "src"):
                found = self._file(start, parts)
                if found is not None:
                    return found
            if not folder:
                return None
            folder = folder.rpartition("/")[0]

    @cached_property
    def _top_names(self) -> set[str]:
        """Every name of a module or package of the project: most imports are of something else."""
        return {part.removesuffix(_SUFFIX) for path in self._files for part in path.split("/")}

    def _file(self, folder: str, parts: list[str]) -> str | None:
        path = "/".join((*([folder] if folder else []), *parts))
        for candidate in (f"{path}{_SUFFIX}", f"{path}{_PACKAGE}{_SUFFIX}"):
            if candidate.lstrip("/") in self._files:
                return candidate.lstrip("/")
        return None


def _module_in(package: str, path: str) -> str | None:
    """The name of a module in the package of this `__init__`: of `import k`, `k.sampling.sample()` calls in it, too."""
    folder = package.removesuffix(f"{_PACKAGE}{_SUFFIX}")
    name = path.removesuffix(f"{_PACKAGE}{_SUFFIX}").removesuffix(_SUFFIX)
    inner = name.removeprefix(f"{folder}/")
    return inner if inner != name and "/" not in inner else None


def _ends(function: str) -> tuple[str, str]:
    """The class and the method of `Class.method` and of `Class.held.method`, or twice the function."""
    return function.partition(".")[0], function.rpartition(".")[2]


def joined(base: str, name: str) -> str:
    """`a.b` of `from a import b`, `.b` of `from . import b`."""
    return f"{base}{name}" if base.endswith(".") else f"{base}.{name}"


def _bare(names: bytes) -> bytes:
    """The names without comments, and without the backslashes that end a line of them."""
    return re.sub(rb"#[^\n]*|\\\r?\n", b" ", names)


def _imports(data: bytes) -> Iterator[tuple[Import, list[tuple[str, str]]]]:
    """Each import, with what it gives another name to and that name: `b` and `c` of `from a import b as c`."""
    for match in _IMPORT.finditer(data):
        if match["modules"] is not None:
            for module in _bare(match["modules"]).split(b","):
                name = module.split()[0] if module.split() else b""
                if name:
                    yield Import(name.decode(errors="replace"), None), []
        else:
            listed = [each.decode(errors="replace").split() for each in _NAME.findall(_bare(match["names"]))]
            renamed = [(name, other[-1]) for name, *other in listed if other]
            yield Import(match["base"].decode(errors="replace"), tuple(name for name, *_ in listed)), renamed
