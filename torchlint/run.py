"""A run: from an order to files, to what is said of each, to a report and an exit status."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from enum import IntEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TextIO

from torchlint import regular
from torchlint.config import Config, Configs, Overrides
from torchlint.configfile import ConfigError, reason
from torchlint.discover import Found, discover, is_force_excluded
from torchlint.facts import NOTHING, Facts
from torchlint.finding import Applicability, Fault, Result
from torchlint.progress import Progress
from torchlint.registry import all_rules, problems
from torchlint.report import FileReport, ReportOptions, joined, render
from torchlint.report.style import Style, decide, decide_links
from torchlint.report.summary import changed, count
from torchlint.report.text import visible
from torchlint.role import Role
from torchlint.settle import Mode, Settled, settle, unchanged
from torchlint.source import DecodeError, SourceFile
from torchlint.sweep import Means, Sweep, Swept, may_concern, unreadable

if TYPE_CHECKING:
    from torchlint.finding import Wanted
    from torchlint.report.measured import Profile
    from torchlint.settings import Settings
    from torchlint.traces.events import Recording

CLEAN, FOUND, FAILED = 0, 1, 2

_STDIN = "-"
_WIDTH = 100
_FOR_PEOPLE = ("full", "concise")


class Loudness(IntEnum):
    """How much a run says: nothing, what it finds, also a summary and warnings, also what it does."""

    SILENT = 0
    QUIET = 1
    NORMAL = 2
    VERBOSE = 3


class Order(NamedTuple):
    """What a run is asked to do, beyond what is configured.

    `paths` are as given, relative to `cwd`; `-` alone is standard input, `stdin_filename` its name. `add_ignore` is the
    reason to write with each ignore, empty for none; with None no ignores are written. `jobs` is the most processes to
    use, None for one per processor. `write_baseline` is the file to write what is found to, instead of a report.
    With a `diff_base`, a revision, what was there already is not reported. `profile` is a trace of torch.profiler by
    which to rank what is found.
    """

    cwd: Path
    paths: tuple[str, ...] = (".",)
    overrides: Overrides = Overrides()
    stdin_filename: str | None = None
    diff: bool = False
    fix_only: bool = False
    add_ignore: str | None = None
    write_baseline: str | None = None
    diff_base: str | None = None
    show_fixes: bool = False
    show_files: bool = False
    show_settings: bool = False
    statistics: bool = False
    sort: str = "place"
    group_by: str = ""
    exit_zero: bool = False
    exit_non_zero_on_fix: bool = False
    output_file: str | None = None
    color: str = "auto"
    loudness: Loudness = Loudness.NORMAL
    cache: bool = True
    jobs: int | None = None
    profile: str | None = None


class OutputError(Exception):
    """A report that cannot be written, or not in this form; the message says why in one line."""


def check(order: Order) -> int:
    """Do what is ordered; the exit status. Raises `ConfigError` and `OutputError`."""
    configs = Configs(order.overrides, order.cwd)
    config = configs.for_directory(order.cwd)
    run = _Run(order, config, _mode(order, config), sys.stdout)
    if order.diff_base is not None and run.mode is not Mode.CHECK:
        raise ConfigError("--diff-base: it reports, and neither fixes nor ignores; leave out `--fix` or `fix = true`")
    if order.statistics or order.group_by:
        run.rendered(())  # not every format has them: say so before the work
    if order.show_settings:
        return _show_settings(order, configs)
    if order.profile is not None:
        _refuse_profile(run)
    recording = recorded(order)
    if order.paths == (_STDIN,):
        return _check_stdin(run, configs)
    files, problems = discover(order.paths, configs, order.cwd)
    if order.show_files:
        write_out("".join(f"{file.shown}\n" for file in files), sys.stdout)
        return CLEAN
    if not files and not problems:
        run.tell(Loudness.NORMAL, "warning: no Python files found under the given paths")
    elif files and all(configs.for_file(file.path).role(file.path) is Role.TEST for file in files):
        run.tell(Loudness.NORMAL, "warning: these are tests, which are not checked; `--include-tests` checks them")
    settled = [
        unchanged(FileReport(SourceFile(shown, ""), Result(diagnostics=(unreadable(message),))))
        for shown, message in problems
    ]
    settled += _sweep(run, files, configs)
    reported, said = _reported(run, settled, configs, files)
    if recording is not None:
        gathered = Gathered(files, [joined(one.after) for one in reported], configs, config)
        run = run._replace(profile=profiled(order, recording, gathered))
    return _conclude(run, reported, said)


def _show_settings(order: Order, configs: Configs) -> int:
    """Print what holds for the first path: of a file with the rules that run in it."""
    import json  # only where it is what is printed

    path = Path(os.path.normpath(order.cwd / (order.stdin_filename or order.paths[0])))
    config = configs.for_directory(path) if path.is_dir() else configs.for_file(path)
    shown = {"path": str(path)} | config.as_dict()
    if not path.is_dir():
        shown["rules"] = list(config.settings_for(path).rules)
    write_out(json.dumps(shown, indent=2) + "\n", sys.stdout)
    return FAILED if problems() else CLEAN


class Gathered(NamedTuple):
    """What another report on the same files is made of: the files, what was found in them, and the configuration."""

    files: Sequence[Found]
    reports: Sequence[FileReport]
    configs: Configs
    config: Config


def gather(order: Order) -> Gathered:
    """What is found in the files, changing none and reporting nothing. Raises `ConfigError`."""
    configs = Configs(order.overrides, order.cwd)
    config = configs.for_directory(order.cwd)
    run = _Run(order, config, Mode.CHECK, sys.stdout)
    files, problems = discover(order.paths, configs, order.cwd)
    reports = [joined(one.at_least(config.level).after) for one in _sweep(run, files, configs)]
    reports += [FileReport(SourceFile(name, ""), Result(diagnostics=(unreadable(why),))) for name, why in problems]
    return Gathered(files, sorted(reports, key=lambda report: report.source.path), configs, config)


def _refuse_profile(run: _Run) -> None:
    """Say what a trace does not go with. Raises `OutputError`."""
    order = run.order
    if run.mode is not Mode.CHECK or order.paths == (_STDIN,) or order.statistics:
        raise OutputError("`--profile` goes with `check` of files alone: a trace is of the code as it is")
    if run.config.output_format not in (*_FOR_PEOPLE, "json"):
        raise OutputError(f"`--profile` has no `{run.config.output_format}` output; use full, concise or json")


def recorded(order: Order) -> Recording | None:
    """The trace that findings are ranked by, if one is given. Raises `OutputError`."""
    if order.profile is None:
        return None
    from torchlint.traces.events import TraceError, read  # most runs have none

    try:
        return read(order.cwd / order.profile, order.profile)
    except TraceError as error:
        raise OutputError(str(error)) from None


def profiled(order: Order, recording: Recording, gathered: Gathered) -> Profile:
    """What the trace says of the lines of the files, and why no rule names some of them."""
    from torchlint.traces.profile import profile  # as above

    def silences(shown: str, rows: Collection[int]) -> dict[int, str]:
        from torchlint.spoken import said_of  # loads LibCST

        file = next(file for file in gathered.files if file.shown == shown)
        settings = gathered.configs.for_file(file.path).settings_for(file.path)
        source = SourceFile.from_bytes(shown, regular.read(file.path))
        found = next((report.result.findings for report in gathered.reports if report.source.path == shown), ())
        facts = _answers(file, source, settings, gathered, order)
        return {row: said.silence for row, said in said_of(source, settings, facts, found, rows).items()}

    texts = [(file.shown, file.path, partial(_text_of, file)) for file in gathered.files]
    return profile(recording, order.profile or "", texts, gathered.reports, silences)


def _text_of(file: Found) -> str | None:
    try:
        return SourceFile.from_bytes(file.shown, regular.read(file.path)).text
    except (OSError, DecodeError):
        return None


def _answers(file: Found, source: SourceFile, settings: Settings, gathered: Gathered, order: Order) -> Facts:
    """What other files say to what the rules want to know of one."""
    from torchlint.engine import examine
    from torchlint.registry import find

    rules = tuple(map(find, settings.rules))

    def wanted(facts: Facts) -> Wanted:
        return examine(source, rules, settings, facts).questions

    questions = wanted(NOTHING)
    return facts_of(file, questions, wanted, gathered.configs, order, gathered.files) if questions else NOTHING


class _Run(NamedTuple):
    """An order, the configuration of the folder that it is given in, and where the report goes."""

    order: Order
    config: Config
    mode: Mode
    out: TextIO
    profile: Profile | None = None

    @property
    def threshold(self) -> Applicability:
        return Applicability.UNSAFE if self.config.unsafe_fixes else Applicability.SAFE

    @property
    def fix_threshold(self) -> Applicability | None:
        return self.threshold if self.mode in (Mode.FIX, Mode.DIFF) else None

    def options(
        self, reports: Sequence[FileReport] = (), *, footer: bool = True, status: int | None = None
    ) -> ReportOptions:
        order = self.order
        # Where nothing is found no rule is quoted, and none need be loaded.
        quotes = self.config.output_format not in _FOR_PEOPLE or any(
            report.result.findings or report.fixed for report in reports
        )
        is_shown = order.output_file is None
        color = decide(order.color, self.out, os.environ) if is_shown else order.color == "always"
        return ReportOptions(
            color=color,
            hyperlinks=color and is_shown and decide_links(self.out, os.environ),
            width=terminal_width(self.out) if is_shown else _WIDTH,
            threshold=self.threshold,
            fixing=self.mode is Mode.FIX,
            statistics=order.statistics,
            show_fixes=order.show_fixes,
            footer=footer and order.loudness >= Loudness.NORMAL,
            exit_code=status,
            rules=all_rules() if quotes else (),
            problems=problems(),
            fail_on=self.config.fail_on,
            sort=order.sort,
            group_by=order.group_by,
            wraps=is_shown and self.out.isatty(),
            folder=_folder_in_repository(order.cwd) if self.config.output_format == "gitlab" else "",
            profile=self.profile,
        )

    def rendered(self, reports: Sequence[FileReport], *, footer: bool = True, status: int | None = None) -> str:
        try:
            return render(self.config.output_format, reports, self.options(reports, footer=footer, status=status))
        except ValueError as error:
            raise OutputError(str(error)) from None

    def tell(self, loudness: Loudness, line: str) -> None:
        """Say something beside the report, where so much is wanted."""
        if line and self.order.loudness >= loudness:
            write_out(f"{line.rstrip()}\n", sys.stderr)


def _folder_in_repository(cwd: Path) -> str:
    """Where the run takes place from the root that GitLab's runner names; empty where it names none."""
    root = os.environ.get("CI_PROJECT_DIR")
    try:
        return "" if not root else cwd.resolve().relative_to(Path(root).resolve()).as_posix().removeprefix(".")
    except ValueError:  # elsewhere
        return ""


def _mode(order: Order, config: Config) -> Mode:
    if order.add_ignore is not None:
        return Mode.IGNORE
    if order.diff:
        return Mode.DIFF
    return Mode.FIX if order.fix_only or config.fix else Mode.CHECK


def _sweep(run: _Run, files: Sequence[Found], configs: Configs) -> list[Settled]:
    order = run.order
    started = time.monotonic()
    is_shown = order.loudness >= Loudness.NORMAL and sys.stderr.isatty()
    progress = Progress(len(files), sys.stderr if is_shown else None)
    sweep = Sweep(files, configs, order.cwd, _means(run), progress)
    try:
        settled = [_settle(run, swept, swept.file.path) for swept in sweep]
    finally:
        progress.clear()
    if order.loudness >= Loudness.VERBOSE:
        folder = run.config.cache_folder if order.cache else None
        cache = f"none ({visible(sweep.cache_problem)})" if sweep.cache_problem else folder or "none"
        run.tell(
            Loudness.VERBOSE,
            f"{count(len(files), 'file')}, {progress.linted} linted, {time.monotonic() - started:.2f} s; "
            f"configuration: {run.config.file or 'none'}; cache: {cache}",
        )
    if files and sweep.passed_over == len(files):
        run.tell(Loudness.NORMAL, f"warning: {count(len(files), 'file')} skipped: no torch in {_THEM[len(files) > 1]}")
    return settled


_THEM = ("it", "them")


def _means(run: _Run) -> Means:
    folder = (lambda: run.config.cache_folder) if run.order.cache else None
    return Means(folder, run.fix_threshold, run.order.jobs)


def _settle(run: _Run, swept: Swept, path: Path | None) -> Settled:
    if run.mode is Mode.IGNORE:
        swept = swept.at_least(run.config.level)
    return settle(swept, run.mode, run.order.add_ignore or "", None if run.mode is Mode.DIFF else path)


def _check_stdin(run: _Run, configs: Configs) -> int:
    """What is made of standard input goes to standard output, and then the report to standard error."""
    data = sys.stdin.buffer.read()
    shown = run.order.stdin_filename or _STDIN
    path = run.order.cwd / shown
    settled = []
    if not is_force_excluded(os.path.normpath(path), configs):
        settled.append(_settle(run, _swept(run, configs, Found(path, shown), data), None))
    if run.mode in (Mode.FIX, Mode.IGNORE):
        run = run._replace(out=sys.stderr)
        for one in settled:
            if one.is_changed:
                data = one.after.source.to_bytes()
        write_out(data, sys.stdout)
    return _conclude(run, *_reported(run, settled, configs, ()))


def _reported(
    run: _Run, settled: Sequence[Settled], configs: Configs, files: Sequence[Found]
) -> tuple[list[Settled], list[str]]:
    """What is reported of what was found, sorted, and what is said of the rest, or of a baseline that is written."""
    order, level = run.order, run.config.level
    said: list[str] = []
    if order.write_baseline is not None or run.mode is not Mode.IGNORE:
        baselines = {configs.for_file(order.cwd / one.before.source.path).baseline for one in settled}
        if order.write_baseline is not None or {run.config.baseline, *baselines} != {None}:
            from torchlint import accepted  # few runs have a baseline

            looked = accepted.Looked(order.cwd, order.paths, {file.path: file for file in files}, configs)
            if order.write_baseline is not None:
                file = Path(os.path.normpath(order.cwd / order.write_baseline))
                said.append(accepted.write([one.at_least(level) for one in settled], file, looked))
            else:
                settled, said = accepted.accepted(settled, looked)
    if order.diff_base is not None:
        from torchlint import since  # git and a second pass, which only this takes

        means = _means(run)
        settled, more = since.new_since(settled, order.diff_base, since.Run(order.cwd, order.paths, configs, means))
        said += more
    return sorted((one.at_least(level) for one in settled), key=lambda one: one.before.source.path), said


def _swept(run: _Run, configs: Configs, file: Found, data: bytes) -> Swept:
    def settings() -> Settings:
        return configs.for_file(file.path).settings_for(file.path)

    if not may_concern(file.shown, data, settings):
        return Swept(file, data, Result())
    from torchlint.pool import Job, work

    job = Job(file.shown, data, settings(), run.fix_threshold)
    ((_, outcome),) = work((job,))
    if outcome.result.questions:

        def wanted(facts: Facts) -> Wanted:
            ((_, found),) = work((job._replace(facts=facts),))
            return found.result.questions

        facts = facts_of(file, outcome.result.questions, wanted, configs, run.order)
        ((_, outcome),) = work((job._replace(facts=facts, is_final=True),))
    return Swept(file, data, outcome.result, outcome.fixed)


def facts_of(
    file: Found,
    wanted: Wanted,
    again: Callable[[Facts], Wanted],
    configs: Configs,
    order: Order,
    others: Sequence[Found] = (),
) -> Facts:
    """What the files around, and others, say to what one wants to know, which need not be on the disk as it is here.

    `again` says what it wants to know where this is known.
    """
    from torchlint.cache import Cache
    from torchlint.inquiry import Inquiry, Question

    cache = Cache(configs.for_directory(order.cwd).cache_folder) if order.cache else None
    try:
        inquiry = Inquiry((*others, file), configs, order.cwd, cache, order.jobs)
        found = inquiry.settled(
            [Question(file, wanted)], lambda news: {file: again(facts) for file, facts in news.items()}
        )
    finally:
        if cache is not None:
            cache.close()
    return found.get(file.path, NOTHING)


# The end of a run


def _conclude(run: _Run, settled: Sequence[Settled], said: Sequence[str]) -> int:
    """Write the report, and below it what is `said`; the exit status."""
    for problem in problems():
        run.tell(Loudness.QUIET, f"error: {problem}")
    status = _status(run, settled)
    reports = [joined(one.after) for one in settled]
    errors = [replace(report, result=replace(report.result, findings=())) for report in reports]
    options = run.options(reports)
    match run.mode:
        case Mode.DIFF:
            _report(run, _differences(run, settled))
            _complain(run, errors)
            run.tell(Loudness.NORMAL, changed(reports, options, written=False))
        case Mode.IGNORE:
            _complain(run, errors)
            run.tell(Loudness.NORMAL, _ignored(settled))
        case _ if run.order.write_baseline is not None:
            _complain(run, errors)
        case Mode.FIX if run.order.fix_only:
            _report(run, run.rendered(errors, footer=False, status=status))
            run.tell(Loudness.NORMAL, changed(reports, options, written=True))
        case _:
            _report(run, run.rendered(reports, status=status))
    for line in said:
        run.tell(Loudness.NORMAL, visible(line))
    return status


def _status(run: _Run, settled: Sequence[Settled]) -> int:
    order = run.order
    results = [one.after.result for one in settled]
    faults = {diagnostic.fault for result in results for diagnostic in result.diagnostics}
    if Fault.INTERNAL in faults or problems():
        return FAILED
    if order.exit_zero:
        return CLEAN
    if faults:
        return FOUND
    if run.mode is Mode.IGNORE or order.write_baseline is not None:
        return CLEAN
    if any(one.is_changed for one in settled) and (run.mode is Mode.DIFF or order.exit_non_zero_on_fix):
        return FOUND
    if run.mode is Mode.DIFF or order.fix_only:
        return CLEAN
    least = run.config.fail_on
    return FOUND if any(finding.severity >= least for result in results for finding in result.findings) else CLEAN


def _differences(run: _Run, settled: Sequence[Settled]) -> str:
    from torchlint.report.diff import unified  # difflib, which only this mode needs

    style = Style(run.options().color)
    # With colours it is no patch any more; to a terminal nothing goes as it stands in the file.
    exact = not style.color and (run.order.output_file is not None or not run.out.isatty())
    return "".join(unified(*change, style, exact=exact) for one in settled if one.is_changed for change in one.changes)


def _ignored(settled: Sequence[Settled]) -> str:
    changed = [one for one in settled if one.is_changed]
    findings = sum(len(one.before.result.findings) for one in changed)
    return f"Added ignores for {count(findings, 'finding')} in {count(len(changed), 'file')}."


def _complain(run: _Run, errors: Sequence[FileReport]) -> None:
    """Say to people what went wrong, in a mode whose output is something else than findings."""
    text = render("concise", errors, replace(run.options(footer=False), statistics=False, group_by=""))
    run.tell(Loudness.QUIET, text)


def _report(run: _Run, text: str) -> None:
    if run.order.output_file is not None:
        try:
            (run.order.cwd / run.order.output_file).write_text(
                text, encoding="utf-8", errors="backslashreplace", newline="\n"
            )
        except OSError as error:
            raise OutputError(f"{run.order.output_file}: cannot write the report: {reason(error)}") from None
    elif run.order.loudness > Loudness.SILENT:
        write_out(text, run.out)


def write_out(output: str | bytes, stream: TextIO) -> None:
    """Write all of it now. A reader who has had enough, such as `head`, is no error. Raises `OutputError`."""
    try:
        if isinstance(output, bytes):
            stream.flush()
            stream.buffer.write(output)
            stream.buffer.flush()
        else:
            stream.write(output)
            stream.flush()
    except BrokenPipeError:
        # What is still in the buffer goes nowhere when Python ends and flushes it.
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except OSError as error:
        raise OutputError(f"cannot write the output: {reason(error)}") from None


def terminal_width(stream: TextIO) -> int:
    """The columns of a terminal, or as many as read well in a file."""
    with suppress(OSError, ValueError):  # it is no terminal
        return os.get_terminal_size(stream.fileno()).columns or _WIDTH
    return _WIDTH
