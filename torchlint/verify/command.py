"""`torchlint verify`: from what the command line says to what is measured and shown."""

from __future__ import annotations

import json
import shlex
import signal
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from torchlint import evidence
from torchlint.report.style import Style
from torchlint.run import write_out
from torchlint.verify import abreast, catalogue, pairs, plan, proof, raw, selfcheck, timing
from torchlint.verify.arms import BaselineError
from torchlint.verify.exercised import Means
from torchlint.verify.machine import CannotRunError, Clerk, Machine, UnfitError, UsageError, limits_of, require
from torchlint.verify.placement import NotPlacedError
from torchlint.verify.progress import Progress
from torchlint.verify.proof import AGAINST, NOT_WRITTEN, UNFIT
from torchlint.verify.terminal import measurement_lines

CANNOT_RUN = 3

_OF_PROGRAMS = {
    "path": "PATH",
    "entry": "`--entry`",
    "html": "`--html`",
    "steps": "`--steps`",
    "allow_write": "`--allow-write`",
}

_OF_RULES = {"phase": "`--phase`", "plan": "`--plan`"}
_PHASES = ({"numerics"}, {"numerics", "counts"}, {"time"}, set(pairs.PHASES))

__all__ = ["CANNOT_RUN", "UNFIT", "CannotRunError", "UnfitError", "UsageError", "verify"]


def verify(options: Mapping[str, Any], style: Style, *, apply: bool = False) -> int:
    """Run the command with the options of the command line; the exit status.

    `apply` writes the fixes that were proven. Raises `UsageError`, `CannotRunError` and `UnfitError`, and
    `KeyboardInterrupt` also when the process is told to end.
    """
    if options["schema"]:
        write_out(json.dumps(evidence.schema(), indent=2) + "\n", sys.stdout)
        return 0
    with _terminable():
        try:
            return _verify(options, style, apply=apply)
        except NotPlacedError as error:
            raise CannotRunError(str(error)) from None


def _verify(options: Mapping[str, Any], style: Style, *, apply: bool) -> int:
    if options["self_check"] or options["rule"]:
        options = {**options, "device": options["device"] or "cuda"}
        what = "--self-check" if options["self_check"] else "--rule"
        for key, shown in _OF_PROGRAMS.items():
            if options[key]:
                raise UsageError(f"`{what}` measures files that come with torchlint; it does not go with {shown}")
        if options["self_check"] and options["raw"]:
            raise UsageError("`--self-check` writes no raw times: it goes with a program or with `--rule`")
        return _self_check(options) if options["self_check"] else _rules(options, style)
    if options["stale"]:
        raise UsageError("`--stale` is about evidence of rules: it goes with `--rule`")
    for key, shown in _OF_RULES.items():
        if options[key]:
            raise UsageError(f"{shown} is about the pairs of rules: it goes with `--rule`")
    return _program(proof.configured(options, Path.cwd()), style, apply=apply)


# Rules


def _rules(options: Mapping[str, Any], style: Style) -> int:
    limits, phases = _limits(options), _phases(options)
    chosen = catalogue.selected(options["rule"], options["size"] or (), options["device"], _evidence_folder(options))
    as_json = options["output_format"] == "json"
    measured: list[evidence.Measurement] = []

    runs: list[raw.Run] = []

    def show(measurement: pairs.Measured) -> None:
        one = measurement.measurement
        measured.append(one)
        if measurement.raw is not None:
            runs.append(measurement.raw)
        if not as_json:
            progress.clear()
            write_out(measurement_lines(one, style) + "\n", sys.stdout)

    def warn(text: str) -> None:
        progress.clear()
        write_out(f"warning: {text}\n", sys.stderr)

    order = pairs.Order(
        options["device"],
        limits,
        options["seed"],
        _python(options),
        _command_line(),
        phases,
        1 if "time" in phases else abreast.at_once(),
    )
    with _progress(options) as progress, _clerk(options) as clerk:
        machine = clerk.machine()
        if not options["plan"]:
            require(machine, options["device"], chosen.pieces[0][0].rule.code)
        order = replace(order, device=_told(machine, options))
        if options["stale"]:
            chosen = catalogue.stale(chosen, order.device, machine, phases)
        if options["plan"]:
            _show_plan(plan.plan(chosen, order, machine, options["budget"]), options)
            return 0
        listener = catalogue.Listener(progress.note, show, warn)
        if order.at_once > 1:
            known = catalogue.looked(chosen, order, machine)
            with abreast.threads(order, machine, progress.note, known) as crew:
                outcome = catalogue.look(chosen, order, crew, clerk, machine, listener)
        else:
            outcome = catalogue.measure(chosen, order, clerk, machine, listener)
    if options["raw"] and options["device"] != "sim":
        raw.write(Path(options["raw"]), runs)
    if outcome.left:
        again = "; the same command goes on with them" if options["stale"] else ""
        warn(f"the time did not suffice for {outcome.left} of {len(chosen.pieces)} sizes{again}")
    if as_json:
        write_out(json.dumps(msgspec.to_builtins(measured), indent=2) + "\n", sys.stdout)
    elif not chosen.pieces:
        write_out("nothing to measure: the evidence of this device still holds\n", sys.stdout)
    if not outcome.written:
        return NOT_WRITTEN
    return 0 if outcome.good else AGAINST


def _phases(options: Mapping[str, Any]) -> tuple[str, ...]:
    """What is asked for of `pairs.PHASES`, in their order. Raises `UsageError`."""
    if not options["phase"]:
        return pairs.PHASES
    asked = {word.strip() for words in options["phase"] for word in words.split(",")}
    unknown = asked - set(pairs.PHASES)
    if unknown:
        raise UsageError(f"`--phase {min(unknown)}`: the phases are {', '.join(pairs.PHASES)}")
    if asked not in _PHASES:
        raise UsageError(
            "`--phase` takes `numerics`, `numerics,counts` or `time`: results are compared before anything is counted, "
            "and `--phase numerics,counts` is followed by `--phase time`"
        )
    if asked == {"time"} and not options["evidence"]:
        raise UsageError("`--phase time` goes on with what `--phase numerics,counts` left in `--evidence FOLDER`")
    if asked == {"time"} and options["device"] == "sim":
        raise UsageError("the simulated device has no time")
    return tuple(phase for phase in pairs.PHASES if phase in asked)


def _show_plan(found: plan.Plan, options: Mapping[str, Any]) -> None:
    if options["output_format"] == "json":
        write_out(json.dumps(plan.as_json(found), indent=2) + "\n", sys.stdout)
        return
    for line in plan.lines(found, options["device"], budget=options["budget"]):
        write_out(f"{line}\n", sys.stdout)


def _evidence_folder(options: Mapping[str, Any]) -> Path | None:
    if options["evidence"] is None:
        return None
    folder = Path(options["evidence"])
    if not folder.is_dir():
        raise UsageError(f"`--evidence {folder}`: there is no such folder")
    return folder


def _self_check(options: Mapping[str, Any]) -> int:
    if options["device"] == "sim":
        raise UsageError("`--self-check` measures time, which the simulated device does not have; use cuda or cpu")
    with _progress(options) as progress:
        with _clerk(options) as clerk:
            machine = clerk.machine()
            require(machine, options["device"])
        try:
            found = selfcheck.check(
                _told(machine, options), _python(options), _limits(options), options["seed"], progress.note
            )
        except BaselineError as error:
            raise CannotRunError(f"the steps of the self-check fail on {options['device']}: {error}") from None
    write_out(selfcheck.lines(found), sys.stdout)
    return 0 if all(seen.fit for seen in found) else UNFIT


# Programs


def _program(options: Mapping[str, Any], style: Style, *, apply: bool) -> int:
    if apply and options["device"] == "sim":
        raise UsageError("the simulated device has no time, so that it proves nothing faster; see `torchlint verify`")
    with _progress(options) as progress, _clerk(options) as clerk:
        machine = clerk.machine()
        require(machine, options["device"])
        options = {**options, "device": _told(machine, options)}
        limits = replace(_limits(options), interruptible=True)
        means = Means(limits, options["seed"], options["steps"], only_count=options["only_count"])
        return proof.prove(options, clerk, progress, means, _command_line(), style, apply=apply)


# Both


def _told(machine: Machine, options: Mapping[str, Any]) -> Any:  # one of the devices
    """The device that is meant; where not all can be done there, that is said. Raises `UsageError`."""
    kind = machine.kind(options["device"])
    limits = limits_of(kind)
    if limits and options["only_count"]:
        raise UsageError(f"`--only-count`: {limits}; `--device sim` counts")
    if limits and options["evidence"]:
        raise UsageError(f"`--evidence`: {limits}, so that it is no evidence")
    if limits:
        write_out(f"note: {limits}\n", sys.stderr)
    return kind


@contextmanager
def _terminable() -> Iterator[None]:
    """Take SIGTERM, which schedulers send, for Ctrl-C: what was started is ended, and folders are removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _progress(options: Mapping[str, Any]) -> Iterator[Progress]:
    progress = Progress(quiet=options["quiet"], budget=options["budget"])
    try:
        yield progress
    finally:
        progress.clear()


@contextmanager
def _clerk(options: Mapping[str, Any]) -> Iterator[Clerk]:
    with tempfile.TemporaryDirectory(prefix="torchlint-clerk-") as folder:
        clerk = Clerk(Path(folder), _python(options))
        try:
            yield clerk
        finally:
            clerk.close()


def _limits(options: Mapping[str, Any]) -> timing.Limits:
    return timing.Limits(options["max_replicates"], pairs.deadline(options["budget"]))


def _python(options: Mapping[str, Any]) -> str:
    return options["python"] or sys.executable


def _command_line() -> str:
    """How it was called, without the path of the program."""
    return shlex.join(["torchlint", *sys.argv[1:]]) if sys.argv else "torchlint verify"
