"""Which options hold for a file: those of the nearest configuration file, and above them the command line's."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from torchlint import configfile, declared, globs
from torchlint.configfile import ConfigError
from torchlint.finding import Severity
from torchlint.globs import Glob, Globs, posix
from torchlint.registry import UnknownRuleError, choose, find, matching, specificity
from torchlint.role import Role, role_of
from torchlint.settings import OptionValue, Settings

__all__ = ["FILE_NAMES", "Config", "ConfigError", "Configs", "Overrides", "schema"]

# In one folder the first of these that is there counts.
FILE_NAMES = (".torchlint.toml", "torchlint.toml", "pyproject.toml")

# ruff's, `build`, and where earlier versions of this program kept their cache.
DEFAULT_EXCLUDE = (
    ".bzr",
    ".direnv",
    ".eggs",
    ".git",
    ".git-rewrite",
    ".hg",
    ".ipynb_checkpoints",
    ".mypy_cache",
    ".nox",
    ".pants.d",
    ".pyenv",
    ".pytest_cache",
    ".pytype",
    ".ruff_cache",
    ".svn",
    ".torchlint_cache",
    ".tox",
    ".venv",
    ".vscode",
    "__pypackages__",
    "_build",
    "buck-out",
    "build",
    "dist",
    "node_modules",
    "site-packages",
    "venv",
)

_SELECTION = ("select", "ignore", "extend_select")
_DEFAULTS = Settings(rules=())


@dataclass(frozen=True, slots=True)
class Overrides:
    """What the command line says; `None` and `()` where it says nothing.

    `config` are the values of `--config`, each a file or `KEY=VALUE`; `per_file_ignores` are `PATTERN:SELECTOR`.
    """

    config: tuple[str, ...] = ()
    isolated: bool = False
    select: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    extend_select: tuple[str, ...] = ()
    per_file_ignores: tuple[str, ...] = ()
    exclude: tuple[str, ...] | None = None
    extend_exclude: tuple[str, ...] = ()
    respect_gitignore: bool | None = None
    force_exclude: bool | None = None
    include_tests: bool | None = None
    preview: bool | None = None
    level: str | None = None
    fail_on: str | None = None
    output_format: str | None = None
    unsafe_fixes: bool | None = None
    fix: bool | None = None
    cache_dir: str | None = None
    baseline: str | None = None


@dataclass(frozen=True, slots=True)
class Selection:
    """What one source says about rules; a later one refines it, or starts again with `select`."""

    select: tuple[str, ...] | None
    ignore: tuple[str, ...]
    extend_select: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FileIgnore:
    """The rules that are ignored in the files that `glob` matches, or with `!` in all others."""

    glob: Glob
    selectors: tuple[str, ...]
    inverted: bool
    globs: Globs

    @classmethod
    def of(cls, pattern: str, selectors: tuple[str, ...], folder: str) -> FileIgnore:
        """Raises `ValueError` for a pattern that is none."""
        inverted = pattern.startswith("!")
        glob = Glob(pattern[inverted:], folder)
        return cls(glob, selectors, inverted, Globs.compile([glob]))


@dataclass(frozen=True, slots=True)
class FileSeverity:
    """How severe findings are in the files that `glob` matches."""

    glob: Glob
    severity: Severity
    globs: Globs

    @classmethod
    def of(cls, pattern: str, severity: Severity, folder: str) -> FileSeverity:
        """Raises `ValueError` for a pattern that is none."""
        glob = Glob(pattern, folder)
        return cls(glob, severity, Globs.compile([glob]))

    def matches(self, path: Path) -> bool:
        """Whether the pattern matches an absolute path, or the name of the file."""
        return self.globs.match(str(path), path.name)


@dataclass(frozen=True, slots=True)
class HotEntry:
    """An entry of `hot`: the function that it names, and how the absolute paths end of the files that may have it."""

    text: str
    function: str
    ends: tuple[str, ...]

    @classmethod
    def of(cls, text: str, folder: Path) -> HotEntry:
        """Of an entry that is valid; a file is named from `folder`."""
        home, _, function = text.rpartition(":")
        is_file = declared.is_file(home)
        ends = (posix(os.path.normpath(folder / home)),) if is_file else declared.module_ends(home)
        return cls(text, function, ends)


@dataclass(frozen=True)
class Config:
    """The options for the files of one project.

    `root` is the folder of `file`, or the working directory where there is no file or it is given by `--config`.
    `cache_dir` is None where nobody named a folder. `sources` says for each key that is not at its default who set it.
    """

    root: Path
    file: Path | None = None
    selections: tuple[Selection, ...] = ()
    preview: bool = False
    severity: Mapping[str, Severity] = field(default_factory=dict)
    per_file_severity: tuple[FileSeverity, ...] = ()
    level: Severity = Severity.NOTE
    fail_on: Severity = Severity.WARNING
    per_file_ignores: tuple[FileIgnore, ...] = ()
    extend_per_file_ignores: tuple[FileIgnore, ...] = ()
    exclude: tuple[Glob, ...] = tuple(Glob(name, "/") for name in DEFAULT_EXCLUDE)
    extend_exclude: tuple[Glob, ...] = ()
    respect_gitignore: bool = True
    force_exclude: bool = False
    include_tests: bool = False
    output_format: str = "full"
    fix: bool = False
    unsafe_fixes: bool = False
    cache_dir: Path | None = None
    baseline: Path | None = None
    target_torch: tuple[int, int] = _DEFAULTS.target_torch
    dataloader_workers: int = _DEFAULTS.dataloader_workers
    hot: tuple[HotEntry, ...] = ()
    rules: Mapping[str, Mapping[str, OptionValue]] = field(default_factory=dict)
    verify: Mapping[str, Any] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)

    def settings_for(self, path: Path) -> Settings:
        """What decides the findings of one file."""
        return self._settings(self._ignores_for(path), self._severity_in(path), self.role(path), self._hot_in(path))

    @cached_property
    def cache_folder(self) -> Path | None:
        """The folder of the cache: the one that was named, or one in the user's own; None if there can be none."""
        if self.cache_dir is not None:
            return self.cache_dir
        from torchlint import userfolder  # only where the cache is opened

        return userfolder.of_project(self.root)

    def excludes(self, path: str, name: str) -> bool:
        """Whether `exclude` or `extend-exclude` matches an absolute path with this last part."""
        return self._excluded.match(path, name)

    def moved(self, old: Path, new: Path) -> Config:
        """The same for a copy at `new` of the folder `old`, in which nothing is ignored by git."""
        below, above = posix(str(old)), posix(str(new))

        def at(folder: str) -> str:
            return above + folder.removeprefix(below) if f"{folder}/".startswith(f"{below}/") else folder

        def all_at(globs: tuple[Glob, ...]) -> tuple[Glob, ...]:
            return tuple(glob._replace(folder=at(glob.folder)) for glob in globs)

        def ignores_at(ignores: tuple[FileIgnore, ...]) -> tuple[FileIgnore, ...]:
            return tuple(
                FileIgnore.of("!" * each.inverted + each.glob.pattern, each.selectors, at(each.glob.folder))
                for each in ignores
            )

        return replace(
            self,
            root=new / self.root.relative_to(old) if self.root.is_relative_to(old) else new,
            per_file_severity=tuple(
                FileSeverity.of(each.glob.pattern, each.severity, at(each.glob.folder))
                for each in self.per_file_severity
            ),
            per_file_ignores=ignores_at(self.per_file_ignores),
            extend_per_file_ignores=ignores_at(self.extend_per_file_ignores),
            exclude=all_at(self.exclude),
            extend_exclude=all_at(self.extend_exclude),
            respect_gitignore=False,
            hot=tuple(replace(entry, ends=tuple(map(at, entry.ends))) for entry in self.hot),
        )

    def as_dict(self) -> dict[str, object]:
        """The resolved values for people and programs, keys as a file spells them, with who set them."""
        ignores = (*self.per_file_ignores, *self.extend_per_file_ignores)
        return {
            "root": str(self.root),
            "file": None if self.file is None else str(self.file),
            "rules": list(self._settings(frozenset(), None, Role.CODE).rules),
            "options": {
                "preview": self.preview,
                "severity": {selector: str(severity) for selector, severity in self.severity.items()},
                "per-file-severity": {each.glob.pattern: str(each.severity) for each in self.per_file_severity},
                "level": str(self.level),
                "fail-on": str(self.fail_on),
                "per-file-ignores": {
                    "!" * ignore.inverted + ignore.glob.pattern: list(ignore.selectors) for ignore in ignores
                },
                "exclude": [glob.pattern for glob in (*self.exclude, *self.extend_exclude)],
                "respect-gitignore": self.respect_gitignore,
                "force-exclude": self.force_exclude,
                "include-tests": self.include_tests,
                "output-format": self.output_format,
                "fix": self.fix,
                "unsafe-fixes": self.unsafe_fixes,
                "baseline": None if self.baseline is None else str(self.baseline),
                "cache-dir": None if self.cache_folder is None else str(self.cache_folder),
                "target-torch": "{}.{}".format(*self.target_torch),
                "dataloader-workers": self.dataloader_workers,
                "hot": [entry.text for entry in self.hot],
                "rules": {rule: dict(options) for rule, options in sorted(self.rules.items())},
                "verify": {key.replace("_", "-"): value for key, value in sorted(self.verify.items())},
            },
            "sources": dict(sorted(self.sources.items())),
        }

    @cached_property
    def _excluded(self) -> Globs:
        try:
            return Globs.compile((*self.exclude, *self.extend_exclude))
        except ValueError as error:
            raise ConfigError(f"`exclude` and `extend-exclude`: {error}") from None

    @cached_property
    def _rules(self) -> frozenset[str]:
        """The names of the rules that run where no pattern ignores any."""
        names = {rule.name for rule in choose(None, preview=self.preview)}
        for chosen in self.selections:
            added = choose(chosen.select or (), chosen.ignore, chosen.extend_select, preview=self.preview)
            if chosen.select is not None:
                names.clear()
            names -= _names(chosen.ignore)
            names |= {rule.name for rule in added}
        if "target-torch" in self.sources:
            names = {name for name in names if find(name).torch <= self.target_torch}
        return frozenset(names)

    @cached_property
    def _settings_cache(self) -> dict[tuple[frozenset[str], Severity | None, Role, tuple[str, ...]], Settings]:
        return {}

    def _ignores_for(self, path: Path) -> frozenset[str]:
        ignores = (*self.per_file_ignores, *self.extend_per_file_ignores)
        return frozenset(
            selector
            for ignore in ignores
            if ignore.globs.match(str(path), path.name) is not ignore.inverted
            for selector in ignore.selectors
        )

    def role(self, path: Path) -> Role:
        """The role by the path from the root; of a file elsewhere by its name."""
        within = str(path).removeprefix(self._root)
        role = role_of(posix(within if len(within) < len(str(path)) else path.name))
        return Role.CODE if self.include_tests and role in (Role.TEST, Role.TEST_BY_NAME) else role

    @cached_property
    def _root(self) -> str:
        return os.path.join(self.root, "")  # noqa: PTH118 -- with a separator at its end

    def _severity_in(self, path: Path) -> Severity | None:
        """What `per-file-severity` says of a file: the last pattern that matches counts."""
        found = [each.severity for each in self.per_file_severity if each.matches(path)]
        return found[-1] if found else None

    def _hot_in(self, path: Path) -> tuple[str, ...]:
        """The functions of a file that `hot` names, sorted."""
        if not self.hot:
            return ()
        shown = posix(str(path))
        return tuple(sorted({entry.function for entry in self.hot if shown.endswith(entry.ends)}))

    @cached_property
    def _severities(self) -> dict[str, Severity]:
        """What `severity` says, by rule: the narrowest selector counts."""
        found: dict[str, Severity] = {}
        for selector in sorted(self.severity, key=specificity):
            found.update({rule.name: self.severity[selector] for rule in matching(selector)})
        return found

    def _settings(
        self, ignores: frozenset[str], severity: Severity | None, role: Role, hot: tuple[str, ...] = ()
    ) -> Settings:
        key = (ignores, severity, role, hot)
        if key not in self._settings_cache:
            names = self._rules - _names(ignores)
            rules = tuple(rule.name for rule in matching("ALL") if rule.name in names)
            severities = dict.fromkeys(rules, severity) if severity is not None else self._severities
            self._settings_cache[key] = Settings(
                rules=rules,
                severities=tuple((name, severities[name]) for name in rules if name in severities),
                target_torch=self.target_torch,
                dataloader_workers=self.dataloader_workers,
                options=tuple((rule, tuple(sorted(options.items()))) for rule, options in sorted(self.rules.items())),
                role=role,
                hot=hot,
            )
        return self._settings_cache[key]


def _names(selectors: Collection[str]) -> set[str]:
    return {rule.name for selector in selectors for rule in matching(selector)}


class Configs:
    """The configuration of every folder. Whatever asks for one may raise `ConfigError`."""

    def __init__(self, overrides: Overrides, cwd: Path) -> None:
        self._cwd = cwd
        self._by_folder: dict[str, Config] = {}
        self._overrides: list[tuple[str, dict[str, Any]]] = []
        files = []
        for value in overrides.config:
            if "=" not in value or os.path.isfile(cwd / value):  # noqa: PTH113 -- `is_file` raises for long names
                files.append(value)
            else:
                self._overrides.append((f"--config {value}", _inline(value)))
        self._overrides.append(("", _flags(overrides)))
        if len(files) > 1:
            raise ConfigError(f"--config {files[1]}: only one file can be given; `extend` in a file joins several")
        if files and overrides.isolated:
            raise ConfigError(f"--config {files[0]}: a file cannot be given together with --isolated")
        self._default = self._overridden(Config(root=cwd))
        self._fixed = self._default if overrides.isolated else self._given(files[0]) if files else None
        self._original: tuple[Configs, Path, Path] | None = None

    def moved(self, old: Path, new: Path) -> Configs:
        """Those that hold here, for a copy at `new` of the folder `old`; no file in the copy is read."""
        copy = Configs(Overrides(isolated=True), new)
        copy._fixed = None
        copy._original = self, old, new
        return copy

    def for_file(self, path: Path) -> Config:
        """The configuration that holds for a file."""
        return self.for_directory(os.path.dirname(path))  # noqa: PTH120 -- asked for each file; `parent` takes longer

    def for_directory(self, folder: str | os.PathLike[str], names: Collection[str] | None = None) -> Config:
        """The configuration that holds for what is in an absolute folder: its own, or the nearest one's above.

        `names` are the folder's entries, where they are known already.
        """
        if self._fixed is not None:
            return self._fixed
        folder = os.fspath(folder)
        config = self._by_folder.get(folder)
        if config is None and self._original is not None:
            configs, old, new = self._original
            path = Path(folder)
            there = old / path.relative_to(new) if path.is_relative_to(new) else old
            config = self._by_folder[folder] = configs.for_directory(there).moved(old, new)
        if config is None:
            above = os.path.dirname(folder)  # noqa: PTH120 -- as above
            config = self._own(folder, names) or (self._default if above == folder else self.for_directory(above))
            self._by_folder[folder] = config
        return config

    def _own(self, folder: str, names: Collection[str] | None) -> Config | None:
        for name in FILE_NAMES:
            if names is None or name in names:
                file = Path(folder, name)
                config = self._read(file, file.parent) if file.is_file() else None
                if config is not None:
                    return config
        return None

    def _given(self, file: str) -> Config:
        path = Path(os.path.normpath(self._cwd / file))
        if not path.is_file():
            raise ConfigError(f"--config {file}: no such file, and not KEY=VALUE either")
        config = self._read(path, self._cwd)
        if config is None:
            raise ConfigError(f"--config {file}: there is no [tool.torchlint] in it")
        return config

    def _read(self, file: Path, root: Path) -> Config | None:
        """The configuration of a file, its paths relative to `root`; those of a file it extends to its folder."""
        chain = configfile.read(file, root, self._shown)
        if not chain:
            return None
        config = Config(root=root, file=file)
        for path, values in reversed(chain):
            config = _with(config, values, root if path == file else path.parent, self._shown(path))
        return self._overridden(config)

    def _overridden(self, config: Config) -> Config:
        for source, values in self._overrides:
            config = _with(config, values, self._cwd, source)
        return config

    def _shown(self, path: Path) -> str:
        return (path.relative_to(self._cwd) if path.is_relative_to(self._cwd) else path).as_posix()


def schema() -> dict[str, object]:
    """The JSON Schema of a configuration file."""
    from torchlint import options  # it imports msgspec, which a run without a configuration does not need

    return options.schema()


def _with(config: Config, values: Mapping[str, Any], folder: Path, source: str) -> Config:
    """`config`, and above it what one source says, its paths relative to `folder`; a flag is its own source."""
    changes = {
        key: _resolved(config, key, value, folder)
        for key, value in values.items()
        if key not in ("extend", *_SELECTION)
    }
    if any(key in values for key in _SELECTION):
        chosen = Selection(values.get("select"), values.get("ignore", ()), values.get("extend_select", ()))
        changes["selections"] = (*config.selections, chosen)
    names = (key.replace("_", "-") for key in values)
    return replace(config, **changes, sources={**config.sources, **{name: source or f"--{name}" for name in names}})


def _resolved(config: Config, key: str, value: Any, folder: Path) -> Any:  # noqa: ANN401 -- typed by `Options`
    """What a key of a file comes to in a `Config` that it is set above."""
    match key:
        case "exclude":
            return _globs(value, folder)
        case "extend_exclude":
            return config.extend_exclude + _globs(value, folder)
        case "per_file_ignores":
            return _file_ignores(value, folder)
        case "extend_per_file_ignores":
            return config.extend_per_file_ignores + _file_ignores(value, folder)
        case "severity":
            return {**config.severity, **{selector: _severity(word) for selector, word in value.items()}}
        case "per_file_severity":
            shown = posix(str(folder))
            return tuple(FileSeverity.of(pattern, _severity(word), shown) for pattern, word in value.items())
        case "level" | "fail_on":
            return _severity(value)
        case "hot":
            return tuple(HotEntry.of(entry, folder) for entry in value)
        case "baseline":
            return Path(os.path.normpath(folder / Path(value).expanduser()))
        case "cache_dir":
            return folder / Path(value).expanduser()
        case "target_torch":
            major, minor = value.split(".")
            return int(major), int(minor)
        case "rules":
            return {**config.rules, **{rule: {**config.rules.get(rule, {}), **value[rule]} for rule in value}}
        case "verify":
            return {**config.verify, **_of_verify(value, folder)}
        case _:
            return value


def _severity(word: str) -> Severity:
    return Severity[word.upper()]


def _of_verify(values: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The table `verify`, its paths absolute; the words in `args` are the program's own."""
    found = dict(values)
    if "allow_write" in found:
        found["allow_write"] = tuple(str(folder / Path(path).expanduser()) for path in found["allow_write"])
    if "entry" in found and ":" not in found["entry"]:
        found["entry"] = str(folder / found["entry"])
    if "/" in found.get("python", ""):  # else it is looked for on the PATH
        found["python"] = str(folder / Path(found["python"]).expanduser())
    return found


def _globs(patterns: Sequence[str], folder: Path) -> tuple[Glob, ...]:
    return tuple(Glob(pattern, posix(str(folder))) for pattern in patterns)


def _file_ignores(patterns: Mapping[str, tuple[str, ...]], folder: Path) -> tuple[FileIgnore, ...]:
    return tuple(FileIgnore.of(pattern, selectors, posix(str(folder))) for pattern, selectors in patterns.items())


def _inline(text: str) -> dict[str, Any]:
    """What `--config KEY=VALUE` says."""
    document = configfile.Document(f"--config {text}", text, inline=True)
    try:
        values = configfile.parse(document) or {}
    except ConfigError as error:
        if "invalid TOML" in str(error):
            raise ConfigError(f"{error}; a string needs quotes: KEY='\"value\"'") from None
        raise
    if "extend" in values:
        raise document.error((), "`extend` belongs in a file; give the file itself with `--config FILE`")
    configfile.check_paths(document, values)
    return values


def _flags(overrides: Overrides) -> dict[str, Any]:
    """What the flags with a name of their own say, as a file would say it."""
    values = {
        key.name: value
        for key in fields(overrides)
        if key.name not in ("config", "isolated") and (value := getattr(overrides, key.name)) != key.default
    }
    for name in ("baseline", "cache_dir"):
        if name in values:
            document = configfile.Document(f"--{name.replace('_', '-')}", "", inline=True)
            configfile.check_paths(document, {name: values[name]})
    for name in _SELECTION:
        for selector in values.get(name, ()):
            _check_selector(name, selector)
    for name in ("exclude", "extend_exclude"):
        for pattern in values.get(name, ()):
            _check_pattern(name, pattern)
    if "per_file_ignores" in values:
        ignores: dict[str, tuple[str, ...]] = {}
        for value in overrides.per_file_ignores:
            pattern, colon, selector = value.rpartition(":")
            if not colon:
                raise ConfigError(f"--per-file-ignores {value}: expected PATTERN:SELECTOR, as in `tests/**:ALL`")
            _check_pattern("per_file_ignores", pattern)
            _check_selector("per_file_ignores", selector)
            ignores[pattern] = (*ignores.get(pattern, ()), selector)
        values["per_file_ignores"] = ignores
    return values


def _check_selector(flag: str, selector: str) -> None:
    try:
        matching(selector)
    except UnknownRuleError as error:
        raise ConfigError(f"--{flag.replace('_', '-')}: {error}") from None


def _check_pattern(flag: str, pattern: str) -> None:
    try:
        globs.check(pattern)
    except ValueError as error:
        raise ConfigError(f"--{flag.replace('_', '-')}: {error}") from None
