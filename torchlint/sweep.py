"""One pass over files: what linting gives for each, remembered from an earlier run or worked out."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from itertools import chain, repeat
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from torchlint import regular
from torchlint.configfile import reason
from torchlint.engine import forget, is_applicable, keep, mentions, names_torch, speaks_of_tensors
from torchlint.facts import NOTHING, Asked, Facts
from torchlint.finding import NOTHING_WANTED, Applicability, Diagnostic, Fault, Result, Severity
from torchlint.registry import find, prefixes
from torchlint.source import SourceFile, is_notebook

# cache (SQLite, OpenSSL) and pool (the fixer) are imported when a file needs them: few files do.
if TYPE_CHECKING:
    from torchlint.cache import Cache, Stamp
    from torchlint.config import Configs
    from torchlint.discover import Found
    from torchlint.finding import Wanted
    from torchlint.fixer import Fixed
    from torchlint.inquiry import Inquiry, Question
    from torchlint.pool import Job, Outcome, Outcomes
    from torchlint.progress import Progress
    from torchlint.settings import Settings

# Up to this many files are read outright: that is quicker than to open the cache and ask whether they have changed.
FEW = 16
# So many files that may be linted next are looked through for one that waits for no other.
_LOOKED_AHEAD = 8


class Swept(NamedTuple):
    """A file of which there is something to say: its bytes, what is found in them, what fixing makes of them.

    That is found where other files say these `facts`; with None it is only known what the file wants to know of others.
    """

    file: Found
    data: bytes
    result: Result
    fixed: Fixed | None = None
    facts: Facts | None = NOTHING

    def at_least(self, severity: Severity) -> Swept:
        """The same with those findings that are so severe."""
        fixed = self.fixed and replace(self.fixed, result=self.fixed.result.at_least(severity))
        return self._replace(result=self.result.at_least(severity), fixed=fixed)


class Means(NamedTuple):
    """What a pass may use: at most so many processes, None for one per processor.

    `cache_folder` is asked for the folder of the cache once there is something to look up; with None there is no cache.
    With a `threshold`, what can be fixed is. Files hold what is given `instead` of what is on the disk, by path. `work`
    does the jobs, in the place of `pool.work`.
    """

    cache_folder: Callable[[], Path | None] | None = None
    threshold: Applicability | None = None
    processes: int | None = None
    instead: Mapping[Path, bytes] = MappingProxyType({})
    work: Callable[[Iterable[Job]], Outcomes] | None = None


class Sweep:
    """A pass over files, to be made once."""

    def __init__(self, files: Sequence[Found], configs: Configs, cwd: Path, means: Means, progress: Progress) -> None:
        self._files = files
        self._cwd = cwd
        self._configs = configs
        self._means = means
        self._progress = progress
        self._cache: Cache | None = None
        self._known: list[Swept] = []
        self._asking: list[Swept] = []
        # How many files were looked at and not linted, since nothing in them names torch.
        self.passed_over = 0
        # Whether what files want to know of each other is asked while they are linted.
        self._hears = False
        # Files in which no rule finds anything, but of which others may want to know what their functions give.
        self._bare: list[Found] = []
        self._at_work: set[Path] = set()
        self._lines = 0

    @cached_property
    def _inquiry(self) -> Inquiry:
        from torchlint.inquiry import Inquiry

        means = self._means
        return Inquiry(
            self._files, self._configs, self._cwd, self._opened(), means.processes, means.instead, means.work
        )

    @property
    def cache_problem(self) -> str:
        """Why nothing was looked up or kept, though there is to be a cache."""
        return self._cache.problem if self._cache is not None else ""

    def __iter__(self) -> Iterator[Swept]:
        """Each file of which there is something to say, in any order. Raises `ConfigError`."""
        jobs = self._jobs() if len(self._files) <= FEW else self._many_jobs()
        try:
            first = next(jobs, None)
            if first is not None:
                yield from self._lint(chain((first,), jobs), self._lines if self._hears else None)
            yield from self._known
            if self._asking:
                yield from self._asked()
        finally:
            forget()
            if self._cache is not None:
                self._cache.close()

    def _jobs(self) -> Iterator[Job]:
        """The files that have to be linted."""
        for file in self._files:
            data = self._look(file)
            if data is not None:
                yield self._job(file, data)

    def _many_jobs(self) -> Iterator[Job]:
        """As `_jobs`, for many: each file behind those that it imports, and asked at once what these want to know."""
        files = [file for file in self._files if self._look_by_stamp(file) is not None]
        self._hears = len(files) > FEW
        if self._hears:
            for swept in self._asking:
                self._inquiry.hear(_question(swept))
            self._bare = self._inquiry.called(self._bare, files)
            files = self._inquiry.in_order((*files, *self._bare))
        bare = set(self._bare)
        for file in self._behind_answers(files) if self._hears else files:
            try:
                data = self._read(file)
            except OSError as error:
                self._note_unreadable(file, error)
                continue
            job = self._job(file, data)
            if self._hears:
                asked = self._inquiry.asked(file)
                job = job._replace(facts=self._inquiry.given(file), asked=asked)
                if file in bare:
                    job = job._replace(asked=Asked(returns=asked.returns), lints=False)
            if job.lints or job.asked:
                self._at_work.add(file.path)
                yield job

    def _behind_answers(self, files: Iterable[Found]) -> Iterator[Found]:
        """The files, each behind the answers of those that it imports, where others can be linted in the meantime."""
        left: deque[Found] = deque()
        for file in chain(files, repeat(None)):
            if file is not None:
                left.append(file)
            if not left:
                return
            if file is None or len(left) > _LOOKED_AHEAD:
                found = next((each for each in left if not self._inquiry.hangs_on(each, self._at_work)), left[0])
                left.remove(found)
                yield found

    def _read(self, file: Found) -> bytes:
        """The bytes of a file. Raises `OSError`."""
        instead = self._means.instead
        return instead[file.path] if file.path in instead else regular.read(file.path)

    def _job(self, file: Found, data: bytes) -> Job:
        from torchlint.pool import Job

        return Job(file.shown, data, self._settings(file), self._means.threshold)

    def _look_by_stamp(self, file: Found) -> bytes | None:
        """As `_look`, for many files: those that did not change and hold nothing are not even read."""
        from torchlint.cache import Stamp

        cache = self._opened()
        if cache is None:
            return self._look(file)
        try:
            stamp = Stamp.of(file.path.stat())
        except OSError as error:
            self._note_unreadable(file, error)
            return None
        content = cache.content(file.path, stamp)
        if content is not None and cache.result(content, self._settings(file)) == Result():
            self._progress.advance(linted=False)
            return None
        return self._look(file, stamp, content)

    def _look(self, file: Found, stamp: Stamp | None = None, known: bytes | None = None) -> bytes | None:
        """The bytes of a file that has to be linted; None for others. `known` content goes with the stamp."""
        try:
            data = self._read(file)
        except OSError as error:
            self._note_unreadable(file, error)
            return None
        is_concerned = may_concern(file.shown, data, lambda: self._settings(file), named=file.named)
        self.passed_over += not (is_concerned or names_torch(data))
        if not is_concerned:
            self._bare.append(file)
        cache = self._opened() if is_concerned or stamp is not None else None
        result = None if is_concerned else Result()
        if cache is not None:
            from torchlint.cache import digest

            content = digest(data, file.shown)
            if stamp is not None and content != known:
                cache.keep_content(file.path, stamp, content)
            if is_concerned:
                result = cache.result(content, self._settings(file), size=len(data))
                wanted = cache.wanted(content, self._settings(file)) if result is None else None
                if wanted is not None:
                    self._progress.advance(linted=False)
                    self._asking.append(Swept(file, data, Result(questions=wanted), facts=None))
                    return None
            elif file.named or not speaks_of_tensors(data):  # else it is another matter when it is named
                cache.keep_result(content, self._settings(file), Result())
        if result is not None and result.questions:
            self._progress.advance(linted=False)
            self._asking.append(Swept(file, data, result))
            return None
        if result is None or self._is_to_be_fixed(result):
            self._lines += data.count(b"\n")
            return data
        self._progress.advance(linted=False)
        if not result.is_clean:
            self._known.append(Swept(file, data, result))
        return None

    def _lint(self, jobs: Iterator[Job], lines: int | None = None) -> Iterator[Swept]:
        from torchlint.pool import work

        files = {file.shown: file for file in self._files}
        doing = self._means.work
        outcomes = work(jobs, self._means.processes, lines=lines) if doing is None else doing(jobs)
        with closing(outcomes):
            for job, outcome in outcomes:
                self._at_work.discard(files[job.shown].path)
                if outcome.answers is not None:
                    self._inquiry.keep(files[job.shown], job.data, outcome.answers, job.facts)
                if not job.lints:
                    continue
                facts = job.facts if job.is_final else _consulted(job.facts, outcome.result)
                self._keep(job, outcome, facts)
                if not job.is_final:
                    self._progress.advance(linted=True)
                swept = Swept(files[job.shown], job.data, outcome.result, outcome.fixed, facts)
                if outcome.result.questions and not job.is_final:
                    self._asking.append(swept)
                    if self._hears and self._inquiry.hear(_question(swept)):
                        keep(SourceFile.from_bytes(job.shown, job.data).text)
                elif not outcome.result.is_clean:
                    yield swept

    def _asked(self) -> Iterator[Swept]:
        """The files whose result hangs on others, now that these are known."""
        from torchlint.inquiry import Question

        asking = {swept.file: swept for swept in self._asking}
        answered: list[Swept] = []

        def again(news: Mapping[Found, Facts]) -> Mapping[Found, Wanted]:
            jobs = []
            for file, facts in news.items():
                known = self._looked_up(asking[file], facts)
                if known is not None:
                    asking[file] = known
                else:
                    jobs.append(self._job(file, asking.pop(file).data)._replace(facts=facts))
            self._asking = []
            if jobs:
                answered.extend(self._lint(iter(jobs)))
            asking.update((swept.file, swept) for swept in self._asking)
            return {file: asking[file].result.questions if file in asking else NOTHING_WANTED for file in news}

        questions = [Question(file, swept.result.questions) for file, swept in asking.items()]
        known_of = self._inquiry.settled(questions, again, {file: swept.facts for file, swept in asking.items()})
        yield from answered
        jobs = []
        for swept in asking.values():
            facts = known_of.get(swept.file.path, NOTHING)
            known = swept if swept.facts == facts else self._looked_up(swept, facts)
            if known is None or self._is_to_be_fixed(known.result):
                jobs.append(self._job(swept.file, swept.data)._replace(facts=facts, is_final=True))
            elif not known.result.is_clean:
                yield known
        if jobs:
            yield from self._lint(iter(jobs))

    def _looked_up(self, swept: Swept, facts: Facts) -> Swept | None:
        """What an earlier run has found in the file where these are all the facts."""
        from torchlint.cache import digest

        cache = self._opened()
        if cache is None:
            return None
        content = digest(swept.data, swept.file.shown)
        result = cache.result(content, self._settings(swept.file), facts, size=len(swept.data))
        return None if result is None else swept._replace(result=result, facts=_consulted(facts, result))

    def _keep(self, job: Job, outcome: Outcome, facts: Facts) -> None:
        """Remember what is so for good: a defect of torchlint or too little memory may be gone next time."""
        if self._cache is None or any(diagnostic.fault is Fault.INTERNAL for diagnostic in outcome.result.diagnostics):
            return
        from torchlint.cache import digest

        content = digest(job.data, job.shown)
        self._cache.keep_result(content, job.settings, outcome.result, facts)
        if facts and not job.is_final:
            self._cache.keep_wanted(content, job.settings, outcome.result.questions)

    def _is_to_be_fixed(self, result: Result) -> bool:
        threshold = self._means.threshold
        return threshold is not None and any(is_applicable(finding.fix, threshold) for finding in result.findings)

    def _note_unreadable(self, file: Found, error: OSError) -> None:
        self._progress.advance(linted=False)
        self._known.append(Swept(file, b"", Result(diagnostics=(unreadable(reason(error)),))))

    def _settings(self, file: Found) -> Settings:
        return self._configs.for_file(file.path).settings_for(file.path)

    def _opened(self) -> Cache | None:
        if self._cache is None and self._means.cache_folder is not None:
            from torchlint.cache import Cache

            self._cache = Cache(self._means.cache_folder(), bulk=len(self._files) > FEW)
        return self._cache


def _consulted(facts: Facts, result: Result) -> Facts:
    """What a result hangs on of the facts, of which some were only offered: what calls give that nobody asked about."""
    return facts._replace(returns=facts.returned_for(result.questions.returns)) if facts.returns else facts


def _question(swept: Swept) -> Question:
    from torchlint.inquiry import Question

    return Question(swept.file, swept.result.questions)


def unreadable(message: str) -> Diagnostic:
    """A file that cannot be read."""
    return Diagnostic("E902", "io-error", message)


def may_concern(name: str, data: bytes, settings: Callable[[], Settings], *, named: bool = True) -> bool:
    """Whether linting these bytes can find anything: something that a rule looks at, or an ignore that is unused.

    Of a file that nobody has named, torch has to be named in it. The settings are worked out, and thereby all rules
    loaded, only where the answer depends on them.
    """
    if is_notebook(name):
        data = data.replace(b'\\"', b'"')  # as JSON has it
    lowered = data.lower()
    if b"torchlint:" in lowered or (
        b"noqa" in lowered and any(prefix.lower().encode() in lowered for prefix in prefixes())
    ):
        return True
    speaks = speaks_of_tensors(data) if named else names_torch(data)
    return speaks and mentions(data, tuple(find(name) for name in settings().rules))
