"""Asks the files of a project about each other: who calls the functions whose callers a lint wants to know."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from torchlint.cache import digest
from torchlint.contents import Contents
from torchlint.discover import Found, discover
from torchlint.facts import Answers, Called, Facts
from torchlint.globs import posix
from torchlint.role import Role, holds_tests

if TYPE_CHECKING:
    from torchlint.cache import Cache
    from torchlint.config import Configs
    from torchlint.settings import Settings

# A caller may itself be called from elsewhere, and so on. Few chains across files are longer.
ROUNDS = 3


class Question(NamedTuple):
    """Functions of a file, methods as `Class.method`."""

    file: Found
    functions: tuple[str, ...]


class Inquiry:
    """The files that a run is about and those of the projects that they belong to."""

    def __init__(
        self, files: Iterable[Found], configs: Configs, cwd: Path, cache: Cache | None, processes: int | None
    ) -> None:
        self._configs = configs
        self._cache = cache
        self._processes = processes
        self._answers: dict[tuple[str, Facts, tuple[str, ...]], Answers] = {}
        self._found = {_key(file): file for file in (*files, *_around(files, configs, cwd))}
        self._contents = Contents(self._found, cache)

    def facts(self, questions: Iterable[Question]) -> dict[Path, Facts]:
        """What is known of the callers, by file; files of which nothing is are left out."""
        asked = {_key(question.file): set(question.functions) for question in questions}
        summary = self._summary(asked)
        known = self._cache.facts(summary) if self._cache is not None and summary is not None else None
        if known is None:
            known = self._worked_out(asked)
            if self._cache is not None and summary is not None:
                self._cache.keep_facts(summary, known)
        return {self._found[key].path: facts for key, facts in known.items()}

    def _summary(self, asked: Mapping[str, Iterable[str]]) -> bytes | None:
        """What stands for the whole question: the functions, and the content and settings of every file."""
        if self._cache is None:
            return None
        parts = [repr({key: sorted(functions) for key, functions in sorted(asked.items())})]
        parts += [f"{key} {self._contents.digest(key).hex()}" for key in sorted(self._found)]
        settings = {repr(replace(self._settings(self._found[key]), role=Role.CODE)) for key in asked}
        return digest("\n".join((*parts, *sorted(settings))).encode(errors="backslashreplace"))

    def _worked_out(self, asked: dict[str, set[str]]) -> dict[str, Facts]:
        from torchlint.project import Project

        project = Project({key: self._contents.outline(key) for key in self._found})
        facts: dict[str, Facts] = {}
        asked = {key: set(functions) for key, functions in asked.items()}
        for _ in range(ROUNDS):
            owners: dict[tuple[str, str], list[tuple[str, str]]] = {}
            for key, functions in asked.items():
                for importer, name, function in project.callers(key, functions):
                    if not self._is_test(importer):
                        owners.setdefault((importer, name), []).append((key, function))
            calls: dict[str, dict[str, list[Called]]] = {}
            more: dict[str, set[str]] = {}
            for importer, answers in self._ask(owners, facts):
                for name, called in answers.calls:
                    for key, function in owners[importer, name]:
                        calls.setdefault(key, {}).setdefault(function, []).extend(called)
                if answers.calls:
                    more[importer] = set(answers.questions)
            before, facts = facts, {key: _gathered(found) for key, found in calls.items()}
            is_new = any(functions - asked.get(key, set()) for key, functions in more.items())
            if facts == before and not is_new:
                break
            for key, functions in more.items():
                asked.setdefault(key, set()).update(functions)
        return facts

    def _ask(self, owners: Iterable[tuple[str, str]], facts: Mapping[str, Facts]) -> Iterator[tuple[str, Answers]]:
        from torchlint.pool import Job, work  # the fixer, which a run without news does not need

        names: dict[str, set[str]] = {}
        for importer, name in owners:
            names.setdefault(importer, set()).add(name)
        jobs = {}
        for importer in sorted(names):
            question = importer, facts.get(importer, Facts()), tuple(sorted(names[importer]))
            found = self._known(question)
            if found is not None:
                yield importer, found
            else:
                file, data = self._found[importer], self._contents.data(importer)
                jobs[file.shown] = (
                    importer,
                    Job(file.shown, data, self._settings(file), facts=question[1], asked=question[2]),
                )
        with closing(work((job for _, job in jobs.values()), self._processes)) as outcomes:
            for job, outcome in outcomes:
                importer, _ = jobs[job.shown]
                answers = outcome.answers or Answers()
                if self._cache is not None and outcome.answers is not None:
                    self._cache.keep_answers(digest(job.data), job.settings, job.facts, job.asked, answers)
                self._answers[importer, job.facts, job.asked] = answers
                yield importer, answers

    def _known(self, question: tuple[str, Facts, tuple[str, ...]]) -> Answers | None:
        """What a file, where other files say this, has answered before."""
        importer, facts, asked = question
        found = self._answers.get(question)
        if found is None and self._cache is not None:
            settings = self._settings(self._found[importer])
            found = self._cache.answers(self._contents.digest(importer), settings, facts, asked)
        return found

    def _settings(self, file: Found) -> Settings:
        return self._configs.for_file(file.path).settings_for(file.path)

    def _is_test(self, key: str) -> bool:
        path = self._found[key].path
        role = self._configs.for_file(path).role(path)
        return role is Role.TEST or (
            role is Role.TEST_BY_NAME and holds_tests(self._contents.data(key).decode("utf-8", errors="replace"))
        )


def _around(files: Iterable[Found], configs: Configs, cwd: Path) -> list[Found]:
    """The files of the projects that these are in: below the folders of their configuration files."""
    roots = {config.root for file in files if (config := configs.for_file(file.path)).file is not None}
    found, _ = discover(sorted(map(str, roots)), configs, cwd) if roots else ([], [])
    return found


def _gathered(calls: Mapping[str, list[Called]]) -> Facts:
    """The calls of each function, the most frequent first, of those that are alike the first."""
    gathered = []
    for function in sorted(calls):
        alike: dict[object, Called] = {}
        for call in sorted(calls[function], key=lambda call: (-call.frequency, call.where)):
            alike.setdefault((call.frequency, call.grad, call.purpose, call.arguments), call)
        gathered.append((function, tuple(alike.values())))
    return Facts(tuple(gathered))


def _key(file: Found) -> str:
    return posix(str(file.path)).lstrip("/")
