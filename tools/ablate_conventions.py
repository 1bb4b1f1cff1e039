"""Switches the conventions off, one at a time, and prints which findings each of them adds or takes away.

    python tools/ablate_conventions.py ../repositories
    python tools/ablate_conventions.py ../repositories --convention loader --convention module --few 20
    python tools/ablate_conventions.py a b --jobs 2 --report ablation.json

Each file below the folders is linted once with all rules, and watched: a convention that suggested nothing there
changes nothing there, and the file is linted again only for those that did. What other files say of a file stays what
it is with all conventions on. Of a convention `+` are findings that are there without it, `-` those that are not, and
`~` those that say something else. Nothing is written but the report, which holds all of them.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from torchlint.config import Configs, Overrides
from torchlint.discover import Found, discover
from torchlint.facts import NOTHING, Facts
from torchlint.inquiry import Inquiry, Question
from torchlint.linter import lint
from torchlint.semantics.knowledge.conventions import every
from torchlint.semantics.knowledge.conventions.convention import Convention, switched_off, watched
from torchlint.source import DecodeError, SourceFile

if TYPE_CHECKING:
    from torchlint.finding import Finding, Result
    from torchlint.settings import Settings

EVERYTHING = Overrides(isolated=True, select=("ALL",), preview=True)
MARKS = {"appeared": "+", "gone": "-", "changed": "~"}


@dataclass(frozen=True, slots=True)
class Task:
    """A file with all that its findings hang on."""

    file: Found
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


def ablate(folders: Iterable[Path], conventions: Sequence[Convention], jobs: int = 1) -> dict[str, Effect]:
    """The effect of each convention on the files below the folders, by its id, the largest first."""
    effects = {convention.id: Effect() for convention in conventions}
    for folder in folders:
        for of_file in _mapped(partial(effects_on, conventions=conventions), tasks(folder), jobs):
            for id_, effect in of_file.items():
                effects[id_].add(effect)
    return dict(sorted(effects.items(), key=lambda pair: (-pair[1].size, pair[0])))


def tasks(folder: Path) -> list[Task]:
    """The files below a folder that can be read, with what they say of each other."""
    configs = Configs(EVERYTHING, folder)
    files, _ = discover((".",), configs, folder)
    alone = []
    for file in files:
        with suppress(OSError, DecodeError):
            source = SourceFile.from_bytes(file.shown, file.path.read_bytes())
            alone.append(Task(file, source, configs.for_file(file.path).settings_for(file.path)))
    questions = [Question(task.file, wanted) for task in alone if (wanted := _linted(task).questions)]
    facts = Inquiry(files, configs, folder, None, 1).facts(questions)
    return [replace(task, facts=facts.get(task.file.path, NOTHING)) for task in alone]


def effects_on(task: Task, conventions: Sequence[Convention]) -> dict[str, Effect]:
    """What each convention does that suggests anything in this file."""
    with watched() as seen:
        before = _places(task)
    effects = {}
    for convention in conventions:
        if convention.id in seen:
            with switched_off(convention):
                after = _places(task)
            effects[convention.id] = Effect(
                appeared=sorted(after.keys() - before.keys()),
                gone=sorted(before.keys() - after.keys()),
                changed=sorted(place for place in before.keys() & after.keys() if before[place] != after[place]),
                files=[str(task.file.path)],
            )
    return effects


def _places(task: Task) -> dict[str, list[Finding]]:
    """What is found, by place and rule as they are printed."""
    found: dict[str, list[Finding]] = {}
    for finding in _linted(task).findings:
        row, column = task.source.position(finding.span.start)
        found.setdefault(f"{task.file.path}:{row}:{column} {finding.rule}", []).append(finding)
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
    parser.add_argument("folders", nargs="+", type=Path, help="each is a project of its own")
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
    effects = ablate([folder.resolve() for folder in given.folders], wanted, given.jobs)
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
