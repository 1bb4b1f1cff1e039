"""Switches the conventions off, one at a time, and prints which findings each of them adds or takes away.

    python tools/ablate_conventions.py ../repositories
    python tools/ablate_conventions.py ../repositories --convention loader --convention module --few 20
    python tools/ablate_conventions.py a b --snippets --sample 100 --jobs 2 --report ablation.json

Each file below the folders is linted once with all rules, and watched: a convention that suggested nothing there
changes nothing there, and the file is linted again only for those that did; with `--halves` for half of them at once,
which are taken apart where that changes anything: faster, and blind to two that undo each other. What other files say
of a file stays what it is with all conventions on. `--snippets` takes the programs of this repository too, each alone:
fixtures, examples of pages, and what the tests lint, look-alikes among them. Of a convention `+` are findings that are
there without it, `-` those that are not, and `~` those that say something else. Nothing is written but the report,
which holds all of them.
"""

from __future__ import annotations

import argparse
import ast
import json
import multiprocessing
import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from torchlint.config import Configs, Overrides
from torchlint.discover import Found as File
from torchlint.discover import discover
from torchlint.engine import speaks_of_tensors
from torchlint.facts import NOTHING, Facts
from torchlint.inquiry import Inquiry, Question
from torchlint.linter import lint
from torchlint.semantics.knowledge.conventions import every, values
from torchlint.semantics.knowledge.conventions.convention import Convention, switched_off, watched
from torchlint.source import DecodeError, SourceFile

if TYPE_CHECKING:
    from torchlint.finding import Finding, Result, Wanted
    from torchlint.settings import Settings

Found: TypeAlias = "dict[str, list[Finding]]"

EVERYTHING = Overrides(isolated=True, select=("ALL",), preview=True)
MARKS = {"appeared": "+", "gone": "-", "changed": "~"}


ROOT = Path(__file__).resolve().parents[1]
# Where programs stand that are linted here: as files, as examples of pages, and as texts in the code of tests.
PROGRAMS = ("fixtures", "tests/serving")
PAGES = ("rules",)
TESTS = ("tests",)
_MARK = re.compile(r"[ \t]*# <- [\w-]+\??(?:, *[\w-]+\??)*[ \t]*$", re.MULTILINE)
_EXAMPLE = re.compile(r"^```python (?:bad|good)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Task:
    """A text with all that its findings hang on, by the name under which they are printed."""

    name: str
    source: SourceFile
    settings: Settings
    facts: Facts = NOTHING


@dataclass(frozen=True, slots=True)
class Effect:
    """What switching a convention off does to findings, as `path:row:column rule`, and where it suggests anything."""

    appeared: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    changed: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)

    @property
    def size(self) -> int:
        """How many findings it concerns."""
        return len(self.appeared) + len(self.gone) + len(self.changed)

    def add(self, other: Effect) -> None:
        """Take in what it does elsewhere."""
        for name in (*MARKS, "files"):
            getattr(self, name).extend(getattr(other, name))


def ablate(
    given: Iterable[Sequence[Task]], conventions: Sequence[Convention], jobs: int = 1, *, halves: bool = False
) -> dict[str, Effect]:
    """The effect of each convention on what is given, by its id, the largest first."""
    effects = {convention.id: Effect() for convention in conventions}
    for together in given:
        for of_file in _mapped(partial(effects_on, conventions=conventions, halves=halves), together, jobs):
            for id_, effect in of_file.items():
                effects[id_].add(effect)
    return dict(sorted(effects.items(), key=lambda pair: (-pair[1].size, pair[0])))


def tasks(folder: Path, sample: int = sys.maxsize) -> list[Task]:
    """The files below a folder that can be read and speak of torch, with what all of them say of each other.

    Of more than `sample` so many are taken, evenly.
    """
    configs = Configs(EVERYTHING, folder)
    files, _ = discover((".",), configs, folder)
    alone = {}
    for file in files:
        with suppress(OSError, DecodeError):
            source = SourceFile.from_bytes(file.shown, file.path.read_bytes())
            if speaks_of_tensors(source.raw.encode(errors="replace")):
                settings = configs.for_file(file.path).settings_for(file.path)
                alone[file] = Task(str(file.path), source, settings)
    chosen = list(alone)
    if len(chosen) > sample:
        chosen = [chosen[number * len(chosen) // sample] for number in range(sample)]
    questions = [Question(file, wanted) for file in chosen if (wanted := _linted(alone[file]).questions)]

    def again(news: Mapping[File, Facts]) -> Mapping[File, Wanted]:
        return {file: _linted(replace(alone[file], facts=facts)).questions for file, facts in news.items()}

    facts = Inquiry(files, configs, folder, None, 1).settled(questions, again)
    return [replace(alone[file], facts=facts.get(file.path, NOTHING)) for file in chosen]


def snippets(root: Path) -> list[Task]:
    """The programs of this repository, or what is laid out as it, each once; where they stand is their name."""
    found: dict[str, str] = {}
    for place, text in (*_of_files(root), *_of_pages(root), *_of_tests(root)):
        unmarked = _MARK.sub("", text)
        if speaks_of_tensors(unmarked.encode(errors="replace")):
            found.setdefault(unmarked, place)
    configs = Configs(EVERYTHING, root)
    settings = configs.for_file(root / "snippet.py").settings_for(root / "snippet.py")
    return [Task(place, SourceFile("snippet.py", text), settings) for text, place in found.items()]


def _of_files(root: Path) -> Iterator[tuple[str, str]]:
    for path in _below(root, PROGRAMS, "*.py"):
        yield path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")


def _of_pages(root: Path) -> Iterator[tuple[str, str]]:
    for path in _below(root, PAGES, "*.md"):
        for number, match in enumerate(_EXAMPLE.finditer(path.read_text(encoding="utf-8")), 1):
            yield f"{path.relative_to(root).as_posix()}#{number}", match[1]


def _of_tests(root: Path) -> Iterator[tuple[str, str]]:
    """The strings of tests that are programs of several lines."""
    for path in _below(root, TESTS, "*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Constant(value=str(text), lineno=row) if "\n" in text.strip():
                    code = textwrap.dedent(text).lstrip("\n")
                    with suppress(SyntaxError, ValueError):
                        if any(not isinstance(line, ast.Expr) for line in ast.parse(code).body):
                            yield f"{path.relative_to(root).as_posix()}@{row}", code


def _below(root: Path, folders: Iterable[str], pattern: str) -> list[Path]:
    return sorted(path for folder in folders for path in (root / folder).rglob(pattern))


def effects_on(task: Task, conventions: Sequence[Convention], *, halves: bool = False) -> dict[str, Effect]:
    """What each convention does that suggests anything in this file."""
    with watched() as seen:
        before = _places(task)
    asked = [convention for convention in conventions if convention.id in seen]
    idle = {convention.id: Effect(files=[task.name]) for convention in asked}
    if not halves:
        return idle | {id_: effect for each in asked for id_, effect in _without(task, [each], before).items()}
    # Kinds of values are most of what is suggested, and nearly always change something.
    kinds = [convention for convention in asked if convention in vars(values).values()]
    others = [convention for convention in asked if convention not in kinds]
    return idle | _without(task, kinds, before) | _without(task, others, before)


def _without(task: Task, together: Sequence[Convention], before: Found) -> dict[str, Effect]:
    """What each of these conventions does, where switching all of them off does anything."""
    if not together:
        return {}
    with switched_off(*together):
        after = _places(task)
    if after == before:
        return {}
    if len(together) > 1:
        middle = len(together) // 2
        return _without(task, together[:middle], before) | _without(task, together[middle:], before)
    effect = Effect(
        appeared=sorted(after.keys() - before.keys()),
        gone=sorted(before.keys() - after.keys()),
        changed=sorted(place for place in before.keys() & after.keys() if before[place] != after[place]),
        files=[task.name],
    )
    return {together[0].id: effect}


def _places(task: Task) -> Found:
    """What is found, by place and rule as they are printed."""
    found: Found = {}
    for finding in _linted(task).findings:
        row, column = task.source.position(finding.span.start)
        found.setdefault(f"{task.name}:{row}:{column} {finding.rule}", []).append(finding)
    return found


def _linted(task: Task) -> Result:
    return lint(task.source, task.settings, task.facts)


def _mapped(
    function: Callable[[Task], dict[str, Effect]], given: Sequence[Task], jobs: int
) -> Iterator[dict[str, Effect]]:
    """What the function gives for each, in their order, from as many processes as there are jobs."""
    if jobs == 1:
        yield from map(function, given)
        return
    with multiprocessing.Pool(jobs) as pool:
        yield from pool.imap(function, given, chunksize=4)


def main() -> int:
    """Print what each convention does; 1 if a folder or a convention is unknown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, help="each is a project of its own")
    parser.add_argument("--snippets", action="store_true", help="the programs of this repository, too")
    parser.add_argument("--sample", type=int, default=sys.maxsize, help="of each folder at most so many files")
    parser.add_argument("--halves", action="store_true", help="switch half of them off at once, and take them apart")
    parser.add_argument("--convention", action="append", metavar="ID", help="only this one; may be given several times")
    parser.add_argument("--few", type=int, default=3, help="how many findings of each kind are printed (3)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many processes at a time")
    parser.add_argument("--report", type=Path, help="a file for all of it, as JSON")
    given = parser.parse_args()
    known = every()
    unknown = sorted({*(given.convention or ())} - known.keys())
    missing = [str(folder) for folder in given.folders if not folder.is_dir()]
    if unknown or missing:
        print(f"not there: {', '.join((*unknown, *missing))}", file=sys.stderr)
        return 1
    wanted = [known[id_] for id_ in given.convention or known]
    sets = (tasks(folder.resolve(), given.sample) for folder in given.folders)
    effects = ablate(chain([snippets(ROOT)] if given.snippets else (), sets), wanted, given.jobs, halves=given.halves)
    print("\n".join(rendered(effects, given.few)))
    if given.report is not None:
        given.report.write_text(json.dumps({id_: asdict(effect) for id_, effect in effects.items()}, indent=1) + "\n")
    return 0


def rendered(effects: dict[str, Effect], few: int) -> Iterator[str]:
    """A line for each convention that changes anything, with the first few findings, and the names of the others."""
    for id_, effect in effects.items():
        if effect.size:
            counts = "  ".join(f"{mark}{len(getattr(effect, kind))}" for kind, mark in MARKS.items())
            yield f"{id_:28} {counts}  suggests in {len(effect.files)} files"
            for kind, mark in MARKS.items():
                yield from (f"    {mark} {place}" for place in getattr(effect, kind)[:few])
    for title, is_asked in (("suggest something and change nothing", True), ("suggest nothing", False)):
        idle = [id_ for id_, effect in effects.items() if not effect.size and bool(effect.files) is is_asked]
        yield f"{len(idle)} {title}: {', '.join(idle) or '-'}"


if __name__ == "__main__":
    sys.exit(main())
