"""The fixes of a program, one unit for each file and rule, and what its files become with some of them."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from torchlint import spoken
from torchlint.config import Configs
from torchlint.discover import Found, discover
from torchlint.engine import is_applicable
from torchlint.facts import NOTHING, Facts
from torchlint.finding import Applicability, Finding
from torchlint.source import DecodeError, SourceFile, is_notebook
from torchlint.verified import place

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from torchlint.config import Config, Overrides
    from torchlint.finding import Wanted
    from torchlint.fixer import Fixed
    from torchlint.settings import Settings
    from torchlint.spoken import Named, Said


@dataclass(frozen=True, slots=True)
class Unit:
    """All fixes of one rule in one file. `lines` are those of the findings, of which one at least has to run."""

    name: str
    rule: str
    code: str
    shown: str
    path: Path
    lines: tuple[int, ...]
    title: str
    applicability: Applicability

    @property
    def line(self) -> int:
        """The first of its lines."""
        return self.lines[0]


@dataclass(frozen=True, slots=True)
class _File:
    found: Found
    data: bytes
    source: SourceFile
    config: Config
    settings: Settings
    facts: Facts
    findings: tuple[Finding, ...]


class Program:
    """The Python files below a folder, as they were read, and what torchlint says of them."""

    def __init__(self, root: Path, files: Iterable[_File], *, unsafe_fixes: bool) -> None:
        self.root = root
        self.unsafe_fixes = unsafe_fixes
        """Whether the configuration of the root wants fixes that may change what is computed."""
        self._files = {file.found.path: file for file in files}
        self._fixed: dict[frozenset[str], Fixed] = {}

    def units(self, *, unsafe: bool) -> tuple[Unit, ...]:
        """Its fixes that may be applied, in the order of files and lines."""
        threshold = Applicability.UNSAFE if unsafe else Applicability.SAFE
        found = []
        for file in self._files.values():
            by_rule: dict[str, list[Finding]] = {}
            for finding in file.findings:
                if is_applicable(finding.fix, threshold):
                    by_rule.setdefault(finding.rule, []).append(finding)
            found += [_unit(file, findings) for findings in by_rule.values()]
        return tuple(sorted(found, key=lambda unit: (unit.shown, unit.lines, unit.code)))

    def conflicts(self, units: Collection[Unit]) -> tuple[frozenset[str], ...]:
        """Pairs of units, by name, of which only one has an effect: the fix of one leaves nothing for the other's."""
        found = []
        for path in sorted({unit.path for unit in units}):
            here = [unit for unit in units if unit.path == path]
            if len(here) > 1 and not self._all_apply(here):
                alone = {unit: self._with(path, [unit]).text for unit in here}
                found += [
                    frozenset({one.name, other.name})
                    for one, other in combinations(here, 2)
                    if self._with(path, [one, other]).text in (alone[one], alone[other])
                ]
        return tuple(found)

    def said_of(self, places: Iterable[tuple[str, int]]) -> dict[tuple[str, int], Said]:
        """What `check` says of each of these lines, by path and number; of files outside nothing."""
        by_file: dict[Path, dict[int, tuple[str, int]]] = {}
        for path, line in places:
            by_file.setdefault(self.root / self.shown(path), {})[line] = (path, line)
        said = {}
        for own, lines in by_file.items():
            if own in self._files:
                file = self._files[own]
                found = spoken.said_of(file.source, file.settings, file.facts, file.findings, lines)
                said.update({lines[line]: what for line, what in found.items()})
        return said

    def named(self) -> dict[str, list[Named]]:
        """What `check` names as waiting or copying, by file."""
        return {
            file.found.shown: found
            for file in self._files.values()
            if (found := spoken.named(file.source, file.findings))
        }

    def shown(self, path: str) -> str:
        """A path that a measured process speaks of: relative to the root, or to the copy of it that the code ran in."""
        if Path(path).is_relative_to(self.root):
            return Path(path).relative_to(self.root).as_posix()
        parts = Path(path).parts
        for index, part in enumerate(parts[:-1]):
            if part == self.root.name and self.root.joinpath(*parts[index + 1 :]) in self._files:
                return "/".join(parts[index + 1 :])
        return path

    def with_units(self, units: Collection[Unit]) -> dict[str, bytes]:
        """The files that these fixes change, by path relative to the root, and what they become."""
        changed = {}
        for path in sorted({unit.path for unit in units}):
            fixed = self._with(path, [unit for unit in units if unit.path == path])
            changed[path.relative_to(self.root).as_posix()] = fixed.source.to_bytes()
        return changed

    def diff(self, unit: Unit) -> str:
        """What a unit changes, as a unified diff."""
        lines = difflib.unified_diff(
            self._files[unit.path].source.text.splitlines(keepends=True),
            self._with(unit.path, [unit]).text.splitlines(keepends=True),
            f"a/{unit.shown}",
            f"b/{unit.shown}",
        )
        return "".join(lines)

    def config(self, unit: Unit) -> Config:
        """The configuration that holds for a unit's file."""
        return self._files[unit.path].config

    def begins(self, unit: Unit) -> tuple[tuple[str, int], ...]:
        """Where each finding of a unit begins, as `torchlint.verified.place` has it."""
        file = self._files[unit.path]
        return tuple(
            place(file.source, file.source.position(finding.span.start)[0])
            for finding in file.findings
            if finding.rule == unit.rule and is_applicable(finding.fix, unit.applicability)
        )

    def read(self, path: Path) -> bytes:
        """The content of a file as it was read."""
        return self._files[path].data

    def _all_apply(self, units: Sequence[Unit]) -> bool:
        """Whether all units of a file together apply as many fixes as each of them does alone."""
        together = dict(self._with(units[0].path, units).applied)
        return all(
            together.get(unit.rule) == dict(self._with(unit.path, [unit]).applied).get(unit.rule) for unit in units
        )

    def _with(self, path: Path, units: Collection[Unit]) -> Fixed:
        """A file with these of its units."""
        from torchlint.fixer import fix  # loads LibCST

        key = frozenset(unit.name for unit in units)
        if key not in self._fixed:
            file, wanted = self._files[path], {unit.rule for unit in units}
            settings = replace(file.settings, rules=tuple(rule for rule in file.settings.rules if rule in wanted))
            threshold = min(unit.applicability for unit in units)
            self._fixed[key] = fix(file.source, settings, threshold, file.facts)
        return self._fixed[key]


def program(root: Path, overrides: Overrides, cwd: Path) -> Program:
    """Read and lint the files below `root` as `check` in the folder `cwd` does. Raises `ConfigError`."""
    root = root.resolve()
    configs = Configs(overrides, cwd)
    found, _ = discover([str(root)], configs, root)
    files = []
    for each in found:
        if is_notebook(each.shown):
            continue  # what runs imports none; that others are called from one counts nevertheless
        try:
            data = each.path.read_bytes()
            source = SourceFile.from_bytes(each.shown, data)
        except (OSError, DecodeError):
            continue
        config = configs.for_file(each.path)
        files.append(_File(each, data, source, config, config.settings_for(each.path), NOTHING, ()))
    unsafe = configs.for_directory(root).unsafe_fixes
    return Program(root, _linted(files, found, configs, root), unsafe_fixes=unsafe)


def _linted(files: Sequence[_File], found: Sequence[Found], configs: Configs, root: Path) -> list[_File]:
    from torchlint.inquiry import Inquiry, Question
    from torchlint.linter import lint
    from torchlint.sweep import may_concern

    results = {
        file.found.path: lint(file.source, file.settings)
        for file in files
        if may_concern(file.found.shown, file.data, lambda file=file: file.settings)  # type: ignore[misc]  # mypy infers no default
    }
    questions = [
        Question(file.found, results[file.found.path].questions)
        for file in files
        if file.found.path in results and results[file.found.path].questions
    ]
    known = {file.found: file for file in files}

    def wanted(news: Mapping[Found, Facts]) -> Mapping[Found, Wanted]:
        return {file: lint(known[file].source, known[file].settings, facts).questions for file, facts in news.items()}

    answers = Inquiry(found, configs, root, None, 1).settled(questions, wanted) if questions else {}
    linted = []
    for file in files:
        if file.found.path in results:
            facts = answers.get(file.found.path, NOTHING)
            result = results[file.found.path] if facts is NOTHING else lint(file.source, file.settings, facts)
            linted.append(replace(file, facts=facts, findings=result.findings))
    return linted


def _unit(file: _File, findings: Sequence[Finding]) -> Unit:
    first = findings[0]
    assert first.fix is not None
    lines = sorted({row for finding in findings for row in _rows(file.source, finding)})
    title = first.fix.title if len(findings) == 1 else f"{first.fix.title} (and {len(findings) - 1} more)"
    return Unit(
        name=f"{first.code} {file.found.shown}:{lines[0]}",
        rule=first.rule,
        code=first.code,
        shown=file.found.shown,
        path=file.found.path,
        lines=tuple(lines),
        title=title,
        applicability=min(finding.fix.applicability for finding in findings if finding.fix),
    )


def _rows(source: SourceFile, finding: Finding) -> range:
    first, last = source.position(finding.span.start)[0], source.position(finding.span.end)[0]
    return range(first, last + 1)
