"""Asks the files of a project about each other: who calls functions, and what classes are, as far as lints ask."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from torchlint.cache import digest
from torchlint.contents import Contents
from torchlint.discover import Found, discover
from torchlint.facts import NOTHING, PLACED, Answers, Asked, Called, Described, Facts, Returned
from torchlint.finding import Wanted
from torchlint.globs import posix
from torchlint.role import Role, is_of_tests

if TYPE_CHECKING:
    from torchlint.cache import Cache
    from torchlint.config import Configs
    from torchlint.pool import Job, Outcomes
    from torchlint.project import Project
    from torchlint.settings import Settings

# A caller may itself be called from elsewhere, and so on. Few chains across files are longer.
ROUNDS = 5
# What more callers pass is hardly one and the same object; and so many are asked for what another file wants to know.
_FEW, _SEVERAL = 8, 40
# Through how many files what a call gives is passed on. Files that import each other in a circle may never agree.
PASSES = 20


# What files want to know where they are told this.
Again: TypeAlias = "Callable[[Mapping[Found, Facts]], Mapping[Found, Wanted]]"


class Question(NamedTuple):
    """What a file wants to know of others."""

    file: Found
    wanted: Wanted


class Inquiry:
    """The files that a run is about and those of the projects that they belong to.

    A file that is linted can be asked at once what those want to know that were linted before it, which saves a parse:
    `in_order` gives an order in which most can, `hear` takes a question, `asked` is what to ask, `keep` takes the
    answers, and `given` is what is known by then of what a file imports. What was not asked so is asked when `facts`
    are wanted: these are the same either way.

    Files hold what is given `instead` of what is on the disk, by path. `doing` does the jobs, not `pool.work`.
    """

    def __init__(
        self,
        files: Iterable[Found],
        configs: Configs,
        cwd: Path,
        cache: Cache | None,
        processes: int | None,
        instead: Mapping[Path, bytes] = MappingProxyType({}),
        doing: Callable[[Iterable[Job]], Outcomes] | None = None,
    ) -> None:
        self._configs = configs
        self._cache = cache
        self._processes = processes
        self._doing = doing
        # All that a file has said, where other files say this of it.
        self._answers: dict[tuple[str, Facts], tuple[Answers, ...]] = {}
        # On what other files' functions and classes give hangs what a file said that its own do.
        self._passes_on: dict[str, tuple[str, ...] | None] = {}
        self._settled: dict[str, dict[str, Returned]] = {}
        self._circular: set[str] = set()
        self._imports: dict[str, dict[str, tuple[str, str]]] = {}
        self._waiting: dict[str, set[str]] = {}
        self._tests: dict[str, bool] = {}
        self._found = {_key(file): file for file in (*files, *_around(files, configs, cwd))}
        self._contents = Contents(self._found, cache, instead)

    @cached_property
    def _project(self) -> Project:
        from torchlint.project import Project

        return Project({key: self._contents.outline(key) for key in self._found})

    def in_order(self, files: Iterable[Found]) -> list[Found]:
        """The files, each behind those that it imports, as far as that can be."""
        return [self._found[key] for key in self._project.in_order(map(_key, files))]

    def called(self, files: Iterable[Found], by: Iterable[Found]) -> list[Found]:
        """Those of the files of which one of the others calls something."""
        callers = set(map(_key, by))
        return [file for file in files if self._project.is_called(_key(file), callers)]

    def hear(self, question: Question) -> bool:
        """Note who may know of callers, to ask them when they are linted. Whether some file is still to answer."""
        key, wanted = _key(question.file), question.wanted
        owners = self._owners({key: wanted})
        for caller, name in owners:
            self._waiting.setdefault(caller, set()).add(name)
        unsettled = (home for home, _ in self._homes({key: wanted.returns}) if home not in self._settled)
        return bool(owners or self._homes({key: wanted.classes})) or any(unsettled)

    def asked(self, file: Found) -> Asked:
        """What a file is to be asked when it is linted: what others wanted to know so far, and it has not said yet."""
        key = _key(file)
        asked = Asked(tuple(sorted(self._waiting.get(key, ()))), returns=self._project.is_called(key))
        for answers in self._said(key, NOTHING, asked) if asked else ():
            asked = asked.without(answers.asked)
        return asked

    def keep(self, file: Found, data: bytes, answers: Answers, facts: Facts) -> None:
        """Remember what a file with these bytes said when it was linted, where others were known to give this."""
        for part in answers.apart():
            known = Facts(returns=facts.returned_for(part.passes_on)) if part.asked.returns else NOTHING
            self._remember(_key(file), data, known, part)

    def given(self, file: Found) -> Facts:
        """What calls give of what the file imports from others, as far as answers are at hand and settled."""
        from torchlint.project import joined

        found = {}
        for base, home in self._project.starred(_key(file)):
            for known_as, returned in (self._settled_answer(home) or {}).items():
                found[joined(base, known_as)] = returned
        for name, (home, known_as) in self._imported(_key(file)).items():
            given = self._settled_answer(home)
            if given is not None and known_as in given:
                found[name] = given[known_as]
        return Facts(returns=tuple(sorted(found.items())))

    def hangs_on(self, file: Found, others: Collection[Path]) -> bool:
        """Whether one of the others defines what the file imports."""
        homes = {home for home, _ in self._imported(_key(file)).values()}
        homes.update(home for _, home in self._project.starred(_key(file)))
        return any(self._found[home].path in others for home in homes)

    def _imported(self, key: str) -> dict[str, tuple[str, str]]:
        """The qualified names of what a file imports by name, with the file that defines each and its name there."""
        if key not in self._imports:
            names = self._project.imported_names(key)
            self._imports[key] = {name: home for name in names if (home := self._home(name, key)) is not None}
        return self._imports[key]

    def settled(
        self,
        questions: Iterable[Question],
        again: Again,
        known: Mapping[Found, Facts | None] = MappingProxyType({}),
    ) -> dict[Path, Facts]:
        """As `facts`, where what files want to know may hang on what calls give: they are looked at `again` with that.

        A file is first told what calls give, until it wants to know of no more of them, and only then of the rest. What
        each wants to know at first it has asked where this was `known`, nothing for most; with None it is asked again.
        """
        wanted = {question.file: question.wanted for question in questions}
        known = dict(known)
        asking: Collection[Found] = wanted
        for _ in range(PASSES):
            given = self.facts(Question(file, wanted[file].of_returns) for file in asking)
            told = {file: given.get(file.path, NOTHING) for file in asking}
            news = {file: facts for file, facts in told.items() if facts != known.get(file, NOTHING)}
            if not news:
                break
            known.update(news)
            asking = again(news)
            wanted.update(asking)
        return self.facts(Question(file, each) for file, each in wanted.items())

    def facts(self, questions: Iterable[Question]) -> dict[Path, Facts]:
        """What is known of callers and classes, by file; files of which nothing is are left out."""
        wanted = {_key(question.file): question.wanted for question in questions}
        summary = self._summary(wanted)
        known = self._cache.facts(summary) if self._cache is not None and summary is not None else None
        if known is None:
            known = self._worked_out(wanted)
            if self._cache is not None and summary is not None:
                self._cache.keep_facts(summary, known)
        return {self._found[key].path: facts for key, facts in known.items()}

    def _summary(self, wanted: Mapping[str, Wanted]) -> bytes | None:
        """What stands for the whole question: what is wanted, and the content and settings of every file."""
        if self._cache is None:
            return None
        parts = [repr(sorted(wanted.items()))]
        parts += [f"{key} {file.shown} {self._contents.digest(key).hex()}" for key, file in sorted(self._found.items())]
        settings = {repr(replace(self._settings(self._found[key]), role=Role.CODE)) for key in wanted}
        return digest("\n".join((*parts, *sorted(settings))).encode(errors="backslashreplace"))

    def _worked_out(self, wanted: Mapping[str, Wanted]) -> dict[str, Facts]:
        facts: dict[str, Facts] = {}
        wanted = dict(wanted)
        for _ in range(ROUNDS):
            owners = self._owners(wanted)
            homes = self._homes({key: asked.classes for key, asked in wanted.items()})
            more: dict[str, Wanted] = {}
            asked = {key: (names, facts.get(key, NOTHING)) for key, names in _asked(owners, homes).items()}
            heard = list(self._ask(asked))
            for file, answers in heard:
                more[file] = _both(more.get(file, Wanted()), Wanted(self._of_few(file, answers.handed, _FEW)))
                if answers.calls or answers.classes or _asks_of_held(answers.questions):
                    functions = self._of_few(file, answers.questions.functions, _SEVERAL)
                    more[file] = _both(more[file], answers.questions._replace(functions=functions))
            before, facts = facts, _told(heard, owners, homes, self._project)
            after = {file: _both(wanted.get(file, Wanted()), questions) for file, questions in more.items()}
            if facts == before and all(wanted.get(file) == both for file, both in after.items()):
                break
            wanted.update(after)
        # Behind the rounds, since it hangs on none of the others: an answer is given once.
        returns = {
            key: tuple(sorted(given.items()))
            for key, given in self._returns({key: questions.returns for key, questions in wanted.items()}).items()
        }
        # What a caller passes may be what a call of another file's function gives it.
        again = {
            file: (Asked(asked[file][0].calls), asked[file][1]._replace(returns=returns[file]))
            for file in returns.keys() & {file for file, answers in heard if answers.calls}
        }
        if again:
            others = [(file, answers._replace(calls=()) if file in again else answers) for file, answers in heard]
            facts = _told((*others, *self._ask(again)), owners, homes, self._project)
        facts.update({key: facts.get(key, NOTHING)._replace(returns=given) for key, given in returns.items()})
        for key, questions in wanted.items():
            if questions.pins and self._project.never_pins(key):
                facts[key] = facts.get(key, NOTHING)._replace(never_pins=True)
            if unused := tuple(name for name in questions.unused if self._project.is_unused(key, name)):
                facts[key] = facts.get(key, NOTHING)._replace(unused=unused)
            if readers := tuple(self._project.readers(key, questions.readers)):
                facts[key] = facts.get(key, NOTHING)._replace(readers=readers)
        return facts

    def _of_few(self, file: str, functions: Iterable[str], most: int) -> tuple[str, ...]:
        """Those of the functions of a file that no more files may call."""
        return tuple(name for name in functions if len([*self._project.callers(file, (name,))]) <= most)

    def _returns(self, wanted: Mapping[str, Iterable[str]]) -> dict[str, dict[str, Returned]]:
        """What calls give of imported functions and classes, by the file that wants to know and their names there.

        A file that passes on what one from elsewhere gives is asked again once that is known. What it says hangs on
        nothing else, so that it is the same whatever else is asked in a run.
        """
        given: dict[tuple[str, str], Returned] = {}
        passed_on: dict[str, tuple[str, ...]] = {}
        tried: set[tuple[str, tuple[str, ...]]] = set()
        circles = PASSES
        for _ in range(len(self._found) + PASSES):
            while news := {file for file, _ in self._homes({**wanted, **passed_on})} - passed_on.keys():
                passed_on.update((file, self._passed_on(file) or ()) for file in news)
            unsettled = sorted(file for file in passed_on if self._settled_answer(file) is None)
            # Those of a circle hang on each other: they are asked where nobody else is left.
            ready = [
                file
                for file in unsettled
                if (file, passed_on[file]) not in tried and self._is_settled(passed_on[file], file)
            ]
            tried.update((file, passed_on[file]) for file in ready)
            asking = ready or unsettled
            circles -= not ready
            asked = {
                file: (
                    Asked(returns=True),
                    Facts(returns=tuple(sorted(self._known(file, passed_on[file], given).items()))),
                )
                for file in asking
            }
            before = dict(given), dict(passed_on)
            for file, answers in self._ask(asked):
                given = {home: returned for home, returned in given.items() if home[0] != file}
                given.update(((file, name), returned) for name, returned in answers.returns)
                passed_on[file] = answers.passes_on
            if not circles or (before == (given, passed_on) and asking == unsettled):
                break
        return {file: found for file, names in wanted.items() if (found := self._known(file, names, given))}

    def _known(self, file: str, names: Iterable[str], given: Mapping[tuple[str, str], Returned]) -> dict[str, Returned]:
        """What is known of that which a file knows by these names."""
        found = {}
        for name in names:
            home = self._home(name, file)
            if home is not None:
                settled = self._settled.get(home[0])
                returned = given.get(home) if settled is None else settled.get(home[1])
                if returned is not None:
                    found[name] = returned
        return found

    def _settled_answer(self, file: str) -> dict[str, Returned] | None:
        """What calls give of what a file defines, if it has said so when all was known that it hangs on; else None.

        Of files that hang on each other in a circle no answer is settled.
        """
        waiting = [file]
        above: set[str] = set()
        while waiting:
            current = waiting[-1]
            if current in self._settled:
                waiting.pop()
                continue
            names = self._passed_on(current)
            if names is None or current in self._circular:
                self._circular |= above if names is not None else set()
                return None
            homes = {name: home for name in names if (home := self._home(name, current)) is not None}
            further = {home[0] for home in homes.values()} - self._settled.keys()
            if further:
                above.add(current)
                if not above.isdisjoint(further):
                    self._circular |= above
                    return None
                waiting += sorted(further)
                continue
            facts = Facts(returns=tuple(sorted(self._known(current, names, {}).items())))
            said = next(iter(self._said(current, facts, Asked(returns=True))), None)
            if said is None or said.passes_on != names:
                return None
            self._settled[current] = dict(said.returns)
            above.discard(current)
        return self._settled[file]

    def _is_settled(self, names: Iterable[str], file: str) -> bool:
        """Whether nothing can change what is known of that which a file knows by these names."""
        homes = (self._home(name, file) for name in names)
        return all(home is None or home[0] in self._settled for home in homes)

    def _home(self, name: str, file: str) -> tuple[str, str] | None:
        """The other file that defines what this one knows by a qualified name, and the name it has there."""
        home = self._project.definition(name, file)
        return home if home is not None and home[0] != file else None

    def _passed_on(self, file: str) -> tuple[str, ...] | None:
        if file not in self._passes_on:
            known = None
            if self._cache is not None:
                found = self._found[file]
                known = self._cache.passes_on(_named(self._contents.digest(file), found.shown), self._settings(found))
            self._passes_on[file] = known
        return self._passes_on[file]

    def _owners(self, wanted: Mapping[str, Wanted]) -> dict[tuple[str, str], list[tuple[str, str]]]:
        """The files that may call functions, with the name for each there: whose function, and its own name."""
        owners: dict[tuple[str, str], list[tuple[str, str]]] = {}
        for key, questions in wanted.items():
            for importer, name, function in self._project.callers(key, questions.functions):
                if not self._is_test(importer):
                    owners.setdefault((importer, name), []).append((key, function))
        return owners

    def _homes(self, wanted: Mapping[str, Iterable[str]]) -> dict[tuple[str, str], list[tuple[str, str]]]:
        """The files that define things, with the name of each there: who wants to know, and under which name."""
        homes: dict[tuple[str, str], list[tuple[str, str]]] = {}
        for key, names in wanted.items():
            for name in names:
                home = self._project.definition(name, key)
                if home is not None and home[0] != key:
                    homes.setdefault(home, []).append((key, name))
        return homes

    def _ask(self, asked: Mapping[str, tuple[Asked, Facts]]) -> Iterator[tuple[str, Answers]]:
        """What each file says to what it is asked, where other files say this of it."""
        from torchlint.pool import Job, work  # the fixer, which a run without news does not need

        jobs = {}
        for key in sorted(asked):
            missing, known = asked[key]
            for answers in self._said(key, known, missing):
                missing = missing.without(answers.asked)
                yield key, answers
            if missing:
                file, data = self._found[key], self._contents.data(key)
                job = Job(file.shown, data, self._settings(file), facts=known, asked=missing, lints=False)
                jobs[file.shown] = key, job
        asking = (job for _, job in jobs.values())
        with closing(work(asking, self._processes) if self._doing is None else self._doing(asking)) as outcomes:
            for job, outcome in outcomes:
                key, _ = jobs[job.shown]
                answers = outcome.answers or Answers(asked=job.asked)
                if outcome.answers is not None:
                    self._remember(key, job.data, job.facts, answers)
                yield key, answers

    def _said(self, key: str, facts: Facts, asked: Asked) -> Iterator[Answers]:
        """What a file has answered before, where other files say this of it, of what is asked and nothing else.

        What else an answer hangs on was noted for all that was asked at once: more must not come into play.
        """
        question = key, facts
        if question not in self._answers:
            self._answers[question] = ()
            if self._cache is not None:
                file = self._found[key]
                content = _named(self._contents.digest(key), file.shown)
                self._answers[question] = self._cache.answers(content, self._settings(file), facts)
        for answers in self._answers[question]:
            if not answers.asked.without(asked):
                asked = asked.without(answers.asked)
                yield answers

    def _remember(self, key: str, data: bytes, facts: Facts, answers: Answers) -> None:
        """Add to what a file has said."""
        said = self._answers.get((key, facts), ())
        if all(each.asked != answers.asked for each in said):
            said = self._answers[key, facts] = (*said, answers)
        if answers.asked.returns:
            self._passes_on[key] = answers.passes_on
        if self._cache is not None:
            file = self._found[key]
            content, settings = _named(digest(data, file.shown), file.shown), self._settings(file)
            self._cache.keep_answers(content, settings, facts, said)
            if answers.asked.returns:
                self._cache.keep_passes_on(content, settings, answers.passes_on)

    def _settings(self, file: Found) -> Settings:
        return self._configs.for_file(file.path).settings_for(file.path)

    def _is_test(self, key: str) -> bool:
        if key not in self._tests:
            path = self._found[key].path
            role = self._configs.for_file(path).role(path)
            self._tests[key] = is_of_tests(role, lambda: self._contents.data(key).decode("utf-8", errors="replace"))
        return self._tests[key]


def _around(files: Iterable[Found], configs: Configs, cwd: Path) -> list[Found]:
    """The files of the projects that these are in: below the folders of their configuration files."""
    roots = {config.root for file in files if (config := configs.for_file(file.path)).file is not None}
    found, _ = discover(sorted(map(str, roots)), configs, cwd) if roots else ([], [])
    return found


def _told(
    heard: Iterable[tuple[str, Answers]],
    owners: Mapping[tuple[str, str], list[tuple[str, str]]],
    homes: Mapping[tuple[str, str], list[tuple[str, str]]],
    project: Project,
) -> dict[str, Facts]:
    """What the answers of files tell those who asked."""
    calls: dict[str, dict[str, list[Called]]] = {}
    classes: dict[str, dict[str, Described]] = {}
    for file, answers in heard:
        for name, called in answers.calls:
            placed = [_placed(call, file, project) for call in called]
            for key, function in owners[file, name]:
                calls.setdefault(key, {}).setdefault(function, []).extend(placed)
        for name, described in answers.classes:
            for key, known_as in homes[file, name]:
                classes.setdefault(key, {})[known_as] = described
    return {
        key: Facts(_gathered(calls.get(key, {})), tuple(sorted(classes.get(key, {}).items())))
        for key in {**calls, **classes}
    }


def _asked(calls: Iterable[tuple[str, str]], classes: Iterable[tuple[str, str]]) -> dict[str, Asked]:
    """What each file is asked."""
    names: dict[str, tuple[set[str], set[str]]] = {}
    for place, pairs in enumerate((calls, classes)):
        for file, name in pairs:
            names.setdefault(file, (set(), set()))[place].add(name)
    return {file: Asked(tuple(sorted(called)), tuple(sorted(defined))) for file, (called, defined) in names.items()}


def _placed(call: Called, file: str, project: Project) -> Called:
    """The call, where what makes an argument goes by its name wherever it is spoken of."""
    if not any(argument.made for argument in call.arguments or ()):
        return call
    arguments = []
    for argument in call.arguments or ():
        home = project.definition(argument.made, file) if argument.made else None
        arguments.append(argument._replace(made=f"{PLACED}{home[0]}:{home[1]}" if home is not None else ""))
    return call._replace(arguments=tuple(arguments))


def _asks_of_held(questions: Wanted) -> bool:
    """Whether a file has to know first who calls the methods of what its objects hold."""
    return any(function.count(".") > 1 for function in questions.functions)


def _both(first: Wanted, second: Wanted) -> Wanted:
    return Wanted(
        tuple(sorted({*first.functions, *second.functions})),
        tuple(sorted({*first.classes, *second.classes})),
        first.pins or second.pins,
        tuple(sorted({*first.returns, *second.returns})),
        tuple(sorted({*first.unused, *second.unused})),
        tuple(sorted({*first.readers, *second.readers})),
    )


def _gathered(calls: Mapping[str, list[Called]]) -> tuple[tuple[str, tuple[Called, ...]], ...]:
    """The calls of each function, the most frequent first, of those that are alike the first."""
    gathered = []
    for function in sorted(calls):
        alike: dict[object, Called] = {}
        for call in sorted(calls[function], key=lambda call: (-call.frequency, call.where)):
            alike.setdefault(call._replace(where=""), call)
        gathered.append((function, tuple(alike.values())))
    return tuple(gathered)


def _named(content: bytes, shown: str) -> bytes:
    """What stands for a content under this path: answers name it, and it is shown from where the run is."""
    return digest(content + os.fsencode(shown))


def _key(file: Found) -> str:
    return posix(str(file.path)).lstrip("/")
