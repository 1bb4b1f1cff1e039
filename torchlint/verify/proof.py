"""Measures the fixes of a user's program, shows what was found, and writes those that were proven, if that is asked."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torchlint.config import Config, ConfigError, Configs, Overrides
from torchlint.report.style import Style
from torchlint.run import terminal_width, write_out
from torchlint.verified import Verified
from torchlint.verify import entry, program, raw, remembered, reporting, timing, units
from torchlint.verify.arms import Failure, Subject
from torchlint.verify.entry import Wanted, Way
from torchlint.verify.exercised import Means
from torchlint.verify.html import to_html
from torchlint.verify.machine import CannotRunError, Clerk, UnfitError, UsageError, threads_for
from torchlint.verify.progress import Progress, seconds
from torchlint.verify.report_model import Report, to_json
from torchlint.verify.session import TreeChangedError, session
from torchlint.verify.terminal import to_terminal
from torchlint.verify.units import Program, Unit
from torchlint.write import CHANGED, NotWrittenError, write

AGAINST = 1
NOT_WRITTEN = 2
UNFIT = 4

_SHOWN_AT_MOST = 10


def configured(options: Mapping[str, Any], cwd: Path) -> dict[str, Any]:
    """The options with what `[tool.torchlint.verify]` says of those that the command line leaves open, and checked.

    Raises `UsageError` for what does not exist or does not fit together.
    """
    path = options["path"]
    where = cwd if path is None else entry.root_of(cwd / path) if (cwd / path).exists() else cwd
    try:
        found = Configs(_overrides(options), cwd).for_directory(where)
    except ConfigError as error:
        raise UsageError(str(error)) from None
    said = dict(found.verify)
    named = said.pop("entry", None)
    arguments = said.pop("args", ())
    chosen = {key: value for key, value in options.items() if value is not None and value != ()}
    if "budget" in said:
        said["budget"] = seconds(said["budget"])
    chosen = {"device": "cuda", "allow_write": (), "arguments": (), **said, **chosen}
    if path is None and options["entry"] is None and named is not None:
        if ":" in named:
            chosen |= {"entry": named, "path": str(found.root)}
        else:
            chosen |= {"path": named, "arguments": options["arguments"] or arguments}
    _check({**options, **chosen})
    return {**options, **chosen}


def _check(options: Mapping[str, Any]) -> None:
    """Find before the work begins what would be in its way at the end."""
    for key in ("size", "evidence", "stale"):
        if options.get(key):
            raise UsageError(f"`--{key}` goes with `--rule`, which measures the files that come with a rule")
    for folder in options["allow_write"]:
        if not Path(folder).is_dir():
            raise UsageError(f"`--allow-write {folder}`: there is no such folder")
    for key in ("html", "raw"):
        if options[key]:
            file = Path(options[key])
            if file.is_dir() or not file.parent.is_dir():
                wrong = "that is a folder" if file.is_dir() else "there is no such folder"
                raise UsageError(f"`--{key} {file}`: {wrong}")


def _overrides(options: Mapping[str, Any]) -> Overrides:
    given = options.get("overrides")
    if isinstance(given, Overrides):
        return given
    select = tuple(options["select"]) if options["select"] else None
    return Overrides(select=select, unsafe_fixes=options["unsafe_fixes"], cache_dir=options["cache_dir"])


def prove(
    options: Mapping[str, Any],
    clerk: Clerk,
    progress: Progress,
    means: Means,
    command: str,
    style: Style,
    *,
    apply: bool,
) -> int:
    """Measure the fixes of a program, by options that are `configured`, and show the report; the exit status.

    Raises `UsageError`, `CannotRunError` where the program fails as it is, and `UnfitError`.
    """
    cwd = Path.cwd()
    wanted = entry.resolve(options["path"], options["entry"], options["arguments"], cwd)
    progress.note("reading the program")
    try:
        read = units.program(wanted.root, _overrides(options), cwd)
    except ConfigError as error:
        raise UsageError(str(error)) from None
    found, shown, lines = [], [], []
    for way in wanted.ways:
        one, report, about = _measured(way, wanted, read, options, clerk, progress, means, command)
        found.append(one)
        shown.append(report)
        lines += about
        if one.interrupted:
            break
    status = max(map(_status, found))
    if apply and status != UNFIT:
        written, good = _write(found, read)
        shown[-1] = replace(shown[-1], written=written)
        status = status if good else NOT_WRITTEN
    elif apply:
        shown[-1] = replace(shown[-1], written="nothing was written: no time of this run can be believed")
    progress.clear()
    if options["raw"]:
        named = zip(wanted.ways, found, strict=False)
        stages = [(way.shown, one.where, timed) for way, one in named for timed in one.stages]
        raw.write(Path(options["raw"]), [raw.Run({"entry": shown}, where, timed) for shown, where, timed in stages])
    _show(shown, options, style)
    trouble = "" if options["no_cache"] else remembered.keep(lines)
    if trouble:
        write_out(f"warning: {trouble}\n", sys.stderr)
    if found[-1].interrupted:
        raise KeyboardInterrupt
    return status


def _measured(
    way: Way,
    wanted: Wanted,
    read: Program,
    options: Mapping[str, Any],
    clerk: Clerk,
    progress: Progress,
    means: Means,
    command: str,
) -> tuple[program.Found, Report, list[tuple[Config, Verified]]]:
    subject = Subject(
        root=wanted.root,
        entry=way.message,
        device=options["device"],
        threads=threads_for(options["device"]),
        python=options["python"] or sys.executable,
        allow_write=tuple(Path(folder).resolve() for folder in options["allow_write"]),
        env=_environment(options),
    )
    unsafe = read.unsafe_fixes
    try:
        with session(subject, progress.note) as running:
            found = program.measure(running, clerk, read, read.units(unsafe=unsafe), way.file, means)
            found.where = running.where
            title = f"torchlint verify {way.shown}"
            report = reporting.report(
                found, running, read, title=title, command=command, entry=way.words, unsafe=unsafe
            )
            return found, report, list(remembered.of_run(found, report, running, read))
    except timing.BaselineError as error:
        raise CannotRunError(_cannot(way, error.failure, read)) from None
    except TreeChangedError as error:
        lines = str(error).splitlines()
        more = [f"and {len(lines) - _SHOWN_AT_MOST} more"] if len(lines) > _SHOWN_AT_MOST else []
        listed = "".join(f"\n  {line}" for line in [*lines[:_SHOWN_AT_MOST], *more])
        raise UnfitError(f"files changed while they were measured, so nothing can be said:{listed}") from None


def _environment(options: Mapping[str, Any]) -> dict[str, str]:
    """What the measured process is told beside its configuration, and so are the processes that it starts."""
    samples = options["synthetic_data"]
    return {"TORCHLINT_SYNTHETIC_DATA": str(samples)} if samples else {}


def _cannot(way: Way, failure: Failure, read: Program) -> str:
    """Why the code cannot be measured, and what to do."""
    if failure.kind == "ended" and "without a step" in failure.reason:
        return (
            f"{way.shown} came to its end without a step: no optimizer took one, and no model was called twice\n"
            "  torchlint verify --entry module:function   runs a function of yours again and again"
        )
    if failure.kind == "ended":
        return (
            f"{way.shown} is too short to be timed: {failure.reason}\n"
            "  more epochs or more data give it more steps; --only-count counts what those that it has ask of a device"
        )
    text = f"{way.shown} fails as it is, before any fix: {failure.reason}"
    places = [(read.shown(path), row) for path, row in re.findall(r'File "([^"]+)", line (\d+)', failure.trace)]
    own = [f" ({path}:{row})" for path, row in places if (read.root / path).is_file() and not path.startswith("/")]
    says_where = failure.kind != "exception" or failure.reason.startswith("SyntaxError")
    text += own[-1] if own and not says_where else ""
    if failure.kind == "timeout":
        text += "\n  --steps N   counts so many steps, and not the whole program; or let it do less"
    if "PermissionError" in failure.reason:
        text += "\n  --allow-write FOLDER   lets it write there; in its own project it writes to a copy"
    if "No module named 'torchvision'" in failure.reason:
        text += "\n  --synthetic-data   gives it made-up data in the place of torchvision's"
    if "ModuleNotFoundError" in failure.reason:
        text += "\n  --python PROGRAM   runs it with the Python that has its packages"
    return text


def _status(found: program.Found) -> int:
    if any(stage.biased for stage in found.stages):
        return UNFIT
    return AGAINST if reporting.speaks_against(found) else 0


def _write(found: Sequence[program.Found], read: Program) -> tuple[str, bool]:
    """Write the fixes that one way in has proven and none speaks against; what was done, and whether all could be.

    They were proven together, so that either all files are still those that were read, or none is written.
    """
    dropped = {unit.name for one in found for unit in one.units if not _harmless(one, unit)}
    kept = {unit for one in found for unit in one.kept if unit.name not in dropped}
    every = {unit for one in found for unit in (*one.units, *one.idle)}
    left = _named(every - kept)
    unproven = f"; not proven, and not written: {left}" if left else ""
    if not kept:
        return f"nothing was written: no fix was proven{unproven}", True
    new = {read.root / name: content for name, content in read.with_units(kept).items()}
    changed = [path for path in new if not _is_as_read(path, read)]
    if changed:
        names = ", ".join(path.relative_to(read.root).as_posix() for path in changed)
        return f"nothing was written: {names}: {CHANGED}", False
    done, failed = [], []
    for path, content in new.items():
        name = path.relative_to(read.root).as_posix()
        try:
            write(path, read.read(path), content)
        except NotWrittenError as error:
            failed.append(f"{name}: {error}")
        else:
            done.append(name)
    said = [f"wrote {', '.join(done)}: {_named(kept)}"] if done else []
    return "; ".join([*said, *failed]) + unproven, not failed


def _harmless(one: program.Found, unit: Unit) -> bool:
    numerics = one.numerics.get(unit.name, {"verdict": "not-checked"})["verdict"]
    judged = {judgement.unit: judgement.action for judgement in one.judgements}
    bad = unit.name in one.failures or unit.name in one.suspicious
    return numerics in ("same", "same-within-class") and judged.get(unit.name) != "drop" and not bad


def _is_as_read(path: Path, read: Program) -> bool:
    try:
        return path.read_bytes() == read.read(path)
    except OSError:
        return False


def _named(chosen: set[Unit]) -> str:
    return ", ".join(unit.name for unit in sorted(chosen, key=lambda unit: (unit.shown, unit.lines, unit.code)))


def _show(shown: Sequence[Report], options: Mapping[str, Any], style: Style) -> None:
    if options["output_format"] == "json":
        write_out(to_json(*shown), sys.stdout)
    else:
        columns = terminal_width(sys.stdout)
        write_out("\n".join(to_terminal(one, style, columns) for one in shown), sys.stdout)
    if options["html"]:
        page = Path(options["html"])
        try:
            page.write_text(to_html(*shown), encoding="utf-8")
        except OSError as error:
            raise UsageError(f"cannot write `{page}`: {error.strerror}") from None
