"""Analyses of open documents, as a process that does nothing else makes them: what is found, and how it is fixed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeAlias

from torchlint.config import FILE_NAMES, Config, ConfigError, Configs, Overrides
from torchlint.discover import Found, discover, is_excluded
from torchlint.engine import expect_edits
from torchlint.facts import NOTHING, Facts
from torchlint.finding import Applicability, Result, Wanted
from torchlint.fixer import fix
from torchlint.globs import posix
from torchlint.linter import lint
from torchlint.registry import all_rules, problems
from torchlint.settings import Settings
from torchlint.source import DecodeError, SourceFile
from torchlint.sweep import may_concern

# Enough for most rules to look at something.
_SMALL = """import torch

for epoch in range(2):
    for x, y in torch.utils.data.DataLoader([]):
        loss = model(x.cuda())
        loss.backward()
        total += loss.item()
"""


class Place(NamedTuple):
    """Where a document is, and what is set for it.

    `root` is the folder that its path is shown from; `path` is None for a document that is no file. With `is_workspace`
    all files below `root` belong to it, as they do to a run in that folder. `generation` counts how often what is
    configured was said to have changed.
    """

    root: str
    path: str | None
    shown: str
    overrides: Overrides = Overrides()
    is_workspace: bool = False
    generation: int = 0

    @property
    def file(self) -> str:
        """The path, or the one that a document would have if it were saved in the root."""
        return self.path or os.path.join(self.root, self.shown)  # noqa: PTH118 - asked with each key that is typed


class Lint(NamedTuple):
    """An order to say what is found in a source, where other files say this of it."""

    place: Place
    source: SourceFile
    facts: Facts = NOTHING


class Inquire(NamedTuple):
    """An order to ask other files what a document wants to know; `open_files` stand for those on the disk, by path."""

    place: Place
    data: bytes
    wanted: Wanted
    open_files: Mapping[str, bytes]


class Repair(NamedTuple):
    """An order to apply all fixes of a source that are safe."""

    place: Place
    source: SourceFile
    facts: Facts = NOTHING


class Explain(NamedTuple):
    """An order to say why nothing is reported of a line of a source, by its row."""

    place: Place
    source: SourceFile
    row: int
    facts: Facts = NOTHING


class Rest(NamedTuple):
    """An order to get ready for the next one: to load what linting loads, and to let go of what is not needed."""


Order: TypeAlias = "Lint | Inquire | Repair | Explain | Rest"


class Linted(NamedTuple):
    """What is found.

    `problem` is a configuration that is wrong, where the last one that was right holds, or a rule pack that cannot be
    used. `cache_folder` is that of the document's project, whose folder is `project`; empty where there is none.
    """

    result: Result
    problem: str = ""
    cache_folder: str = ""
    project: str = ""


class Analyst:
    """Carries out orders; remembers the configuration of each folder until one of its files changes."""

    def __init__(self) -> None:
        self._configured: dict[tuple[str, Overrides], tuple[int, _Configured]] = {}

    def lint(self, order: Lint) -> Linted:
        """What is found in a document; nothing in one that no run in its project would get to."""
        config, problem = self._for(order.place).config(order.place.file)
        result = Result()
        if not self._is_excluded(order.place):
            settings = config.settings_for(Path(order.place.file))
            if may_concern(order.source.path, order.source.raw.encode(errors="replace"), lambda: settings):
                result = lint(order.source, settings, order.facts).at_least(config.level)
        said = "; ".join(filter(None, (problem, *problems())))
        return Linted(result, said, str(config.cache_folder or ""), str(config.root))

    def repair(self, order: Repair) -> SourceFile:
        """A source with all safe fixes applied."""
        config, _ = self._for(order.place).config(order.place.file)
        if self._is_excluded(order.place):
            return order.source
        settings = config.settings_for(Path(order.place.file))
        return fix(order.source, settings, Applicability.SAFE, order.facts).source

    def explain(self, order: Explain) -> str:
        """Why nothing is reported of a line, in Markdown; empty where no rule looks for anything on it."""
        from torchlint.lsp.silence import silence  # what watches checks, which is seldom asked

        config, _ = self._for(order.place).config(order.place.file)
        if self._is_excluded(order.place):
            return ""
        return silence(order.source, config.settings_for(Path(order.place.file)), order.facts, order.row)

    def inquire(self, order: Inquire) -> Facts:
        """What other files say to what a document wants to know. Files that are open count as they are there."""
        place = order.place
        if place.path is None:
            return NOTHING
        from torchlint.cache import Cache
        from torchlint.inquiry import Inquiry, Question

        root = Path(place.root)
        configured = self._for(place)
        file = Found(Path(place.path), place.shown)
        cache = None
        try:
            config = configured.configs.for_file(file.path)
            if config.file is not None or place.is_workspace:
                cache = Cache(config.cache_folder)
            others, _ = discover((place.root,), configured.configs, root) if place.is_workspace else ([], [])
            open_files = {Path(path): data for path, data in order.open_files.items()} | {file.path: order.data}
            new = _unsaved(open_files, config.root if config.file is not None else root, place, configured)
            inquiry = Inquiry((*others, *new, file), configured.configs, root, cache, 1, open_files)
            return inquiry.settled([Question(file, order.wanted)], partial(self._wanted, order)).get(file.path, NOTHING)
        except ConfigError:
            return NOTHING
        finally:
            if cache is not None:
                cache.close()

    def _wanted(self, order: Inquire, news: Mapping[Found, Facts]) -> Mapping[Found, Wanted]:
        """What a document wants to know where others say this."""
        config, _ = self._for(order.place).config(order.place.file)
        try:
            source = SourceFile.from_bytes(order.place.shown, order.data)
        except DecodeError:
            return dict.fromkeys(news, order.wanted)
        return {file: lint(source, config.settings_for(file.path), facts).questions for file, facts in news.items()}

    @staticmethod
    def rest() -> None:
        """Load what linting loads."""
        expect_edits()
        lint(SourceFile("nothing.py", _SMALL), Settings(rules=tuple(rule.name for rule in all_rules())))

    def _is_excluded(self, place: Place) -> bool:
        return place.path is not None and self._for(place).excludes(place.path)

    def _for(self, place: Place) -> _Configured:
        key = place.root, place.overrides
        generation, configured = self._configured.get(key, (-1, None))
        if configured is None or generation != place.generation:
            configured = _Configured(place)
            self._configured[key] = place.generation, configured
        return configured


class _Configured:
    """The configurations below a folder, read again when a file of them has changed."""

    def __init__(self, place: Place) -> None:
        self._root = Path(place.root)
        self._overrides = place.overrides
        self._stamps: dict[str, tuple[object, ...]] = {}
        self._good: dict[str, Config] = {}
        self.configs, self._problem = self._read()

    def config(self, path: str) -> tuple[Config, str]:
        """The configuration of a file, and what is wrong with the one that should hold."""
        folder = os.path.dirname(path)  # noqa: PTH120 - asked with each key that is typed
        stamps = self._stamped(folder)
        if self._stamps.setdefault(folder, stamps) != stamps:
            self._stamps = {folder: stamps}
            self.configs, self._problem = self._read()
        try:
            config = self.configs.for_directory(folder)
        except ConfigError as error:
            isolated = Configs(Overrides(isolated=True), self._root)
            return self._good.get(folder) or isolated.for_directory(folder), str(error)
        self._good[folder] = config
        return config, self._problem

    def excludes(self, path: str) -> bool:
        """Whether a run in the project would not get to a file."""
        try:
            return is_excluded(path, self.configs)
        except ConfigError:
            return False

    def _read(self) -> tuple[Configs, str]:
        try:
            return Configs(self._overrides, self._root), ""
        except ConfigError as error:
            return Configs(Overrides(), self._root), str(error)

    def _stamped(self, folder: str) -> tuple[object, ...]:
        """What changes with the configuration files from a folder upwards, and with the one that is set."""
        paths = [os.path.join(self._root, file) for file in self._overrides.config]  # noqa: PTH118 - as above
        while True:
            paths += [os.path.join(folder, name) for name in FILE_NAMES]  # noqa: PTH118 - as above
            above = os.path.dirname(folder)  # noqa: PTH120 - as above
            if above == folder:
                return tuple(map(_stamp, paths))
            folder = above


def _unsaved(open_files: Iterable[Path], project: Path, place: Place, configured: _Configured) -> Iterator[Found]:
    """The files of a project that are open and not on the disk yet, where no walk gets to them."""
    if project == Path(place.root) and not place.is_workspace:
        return
    for path in open_files:
        is_new = path.suffix == ".py" and path.is_relative_to(project) and not path.exists()
        if is_new and not configured.excludes(str(path)):
            yield Found(path, posix(os.path.relpath(path, place.root)))


def _stamp(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)  # noqa: PTH116 - as above
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size
