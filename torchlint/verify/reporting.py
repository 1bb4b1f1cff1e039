"""Turns what a run over a program has found out into the report that is shown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torchlint import __version__
from torchlint.evidence import Ratio
from torchlint.report.evidence import duration
from torchlint.spoken import NO_RULE, Said
from torchlint.verify import verdicts
from torchlint.verify.ablation import ALL, KEPT, NULL, ORIGINAL, Judgement
from torchlint.verify.checks import STEPS
from torchlint.verify.conditions import Work, conditions, lines, start_up
from torchlint.verify.measurement import ratio
from torchlint.verify.numbers import metric
from torchlint.verify.program import Counted, Found
from torchlint.verify.report_model import Change, Control, Report, Row, Site, Together, Unmet
from torchlint.verify.session import Session
from torchlint.verify.stats import Decision
from torchlint.verify.units import Program, Unit
from torchlint.verify.words import interval

_KINDS = {
    "syncs": "waits",
    "h2d_pageable": "copies to the device from pageable memory",
    "h2d_pinned": "copies to the device",
    "d2h": "copies to the host",
}
_SAME_SPEED = "as fast as after an edit that does nothing"
_OTHER_SPEED = "not as fast as after an edit that does nothing"


def report(
    found: Found, running: Session, program: Program, *, title: str, command: str, entry: str, unsafe: bool
) -> Report:
    """The report of a run; `unsafe` says that fixes that may change what is computed were measured too."""
    judged = {judgement.unit: judgement for judgement in found.judgements}
    rows = [_row(unit, found, program, judged.get(unit.name)) for unit in found.units]
    rows += [_idle(unit, program) for unit in found.idle]
    return Report(
        title=title,
        command=command,
        device=_device(running),
        entry=entry,
        summary=_summary(found, program, unsafe=unsafe),
        controls=_controls(found),
        rows=tuple(rows),
        sites=_sites(found, program),
        unmet=_unmet(found, program),
        together=_together(found),
        warnings=_warnings(found, running),
        provenance=tuple((key, str(value)) for key, value in _provenance(running).items()),
        conditions=_conditions(found, running),
    )


def speaks_against(found: Found) -> bool:
    """Whether a fix fails, computes something else, does what no fix should, or makes the program slower."""
    if found.failures or found.suspicious or any(said["verdict"] == "wrong" for said in found.numerics.values()):
        return True
    return any(judgement.action == "drop" for judgement in found.judgements)


def _summary(found: Found, program: Program, *, unsafe: bool) -> str:
    units = (*found.units, *found.idle)
    files = len({unit.path for unit in units})
    said = f"{_number(len(units), 'fix', 'fixes')} in {_number(files, 'file', 'files')}" if units else "no fix"
    more = 0 if unsafe else len(program.units(unsafe=True)) - len(units)
    if more > 0 and not units and not found.counts:
        said = f"nothing was run: no fix is safe; `--unsafe-fixes` measures {_number(more, 'fix', 'fixes')}"
    elif more > 0:
        said += f" ({more} more with --unsafe-fixes)"
    if found.idle:
        said += f", {len(found.idle)} not exercised"
    counted = found.counts.get(NULL)
    if counted:
        steps = _number(counted.units, "step", "steps")
        said += f"; counted {steps}{' and what follows' if counted.ended else ''}"
    return said


def _number(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


def _device(running: Session) -> str:
    name = str(running.device.get("name", running.subject.device))
    return f"{name}  torch {running.software['torch']}" if running.software.get("torch") else name


def _provenance(running: Session) -> Mapping[str, object]:
    keep = ("python", "torch", "cuda", "platform")
    said = {key: value for key, value in running.software.items() if key in keep and value}
    return {"torchlint": __version__, **said, "isolation": ", ".join(running.isolation)}


def _conditions(found: Found, running: Session) -> tuple[tuple[str, str], ...]:
    """How the machine was while time was measured, of the last stage; nothing where it was not."""
    if not found.stages:
        return ()
    timed, counted = found.stages[-1], found.counts.get(NULL)
    shown = dict(lines(conditions(running, timed, KEPT, Work(), 1.0)))
    if counted and counted.busy_ns and timed.baseline_ns:
        busy, step = counted.busy_ns / 1e3, timed.baseline_ns[-1] / 1e3
        shown["GPU busy"] = f"{duration(busy)} of the {duration(step)} of a step"
    return tuple(shown.items())


def _slowed(found: Found) -> tuple[str, ...]:
    """What held the GPU back while it was measured, by NVML."""
    return tuple(
        sorted({words for timed in found.stages for state in timed.states for words in state.get("slowed", ())})
    )


def _warnings(found: Found, running: Session) -> tuple[str, ...]:
    """What limits what the report says."""
    warnings = list(found.warnings)
    if slowed := _slowed(found):
        warnings.append(f"the GPU was held back while it was measured: {', '.join(slowed)}")
    if found.later:
        named = ", ".join(unit.name for unit in found.later)
        warnings.append(
            f"results are compared over the first {STEPS} steps, and so without what runs after them: {named}; "
            "an `--entry` can be a function that runs it"
        )
    of_program = [left[0] for name, left in running.left.items() if name.startswith((NULL, ORIGINAL))]
    if of_program:
        warnings.append(f"the program leaves something behind: {of_program[0]}")
    else:
        warnings += [f"{name} leaves something behind: {left[0]}" for name, left in running.left.items()]
    return tuple(dict.fromkeys(warnings))


def _row(unit: Unit, found: Found, program: Program, judged: Judgement | None) -> Row:
    alone, without = _alone(found, unit), found.decision("without", unit.name)
    before, after = found.counts.get(NULL), found.counts.get(unit.name)
    said = found.numerics.get(unit.name)
    # Where all of them together make no difference, none is measured alone.
    measured = alone or (found.decision("together") if judged and judged.action == "leave" else None)
    time = measured[0] if measured and (alone or measured[0].verdict not in ("faster", "slower")) else None
    verdict, reason = verdicts.overall(_figures(found, unit.name, time, metric(unit.rule)))
    if verdict not in ("slower", "wrong-result") and judged and judged.action == "keep":
        verdict, reason = "faster", judged.reason if judged.reason != "faster" else ""
    elif judged and not reason and judged.reason not in (verdict, verdict.replace("-", " ")):
        reason = judged.reason
    if verdict == "faster" and alone:
        reason = "; ".join(filter(None, (reason, _start_up(found, alone[0]))))
    return _row_of(
        unit,
        program,
        verdict=verdict,
        action=judged.action if judged else None,
        why=reason,
        alone=ratio(*alone) if alone and alone[0].n > 1 else None,
        without=ratio(*without) if without and without[0].n > 1 else None,
        syncs=_syncs(before, after),
        memory=_peaks(before, after),
        busy=Change(before.busy_ns / 1e3, after.busy_ns / 1e3) if before and after and after.busy_ns else None,
        numerics="not compared" if unit in found.later else _numerics(said) if said else "",
    )


def _start_up(found: Found, alone: Decision) -> str:
    """What code that compiles, or chooses algorithms, pays at its start, and how many steps earn it."""
    for timed in reversed(found.stages):
        for asked, decision in timed.decisions.items():
            pays = start_up(timed, asked.arm, decision.ratio) if decision is alone else None
            if pays and pays.runs is not None:
                return f"its first step takes {timed.later(asked.arm):.0f} s longer, which {pays.runs:,} steps earn"
    return ""


def _numerics(said: Mapping[str, Any]) -> str:
    """Such as `exact: bit-equal`; why results differ or were not compared stands beside the verdict."""
    if said["verdict"] in ("wrong", "not-checked"):
        return f"{said['class']}: {'differs' if said['verdict'] == 'wrong' else 'not compared'}"
    worst, tensors = said.get("worst_over_tolerance"), said.get("tensors")
    if tensors and said.get("bit_equal") == tensors:
        return f"{said['class']}: bit-equal"
    return (
        f"{said['class']}: {worst:.2g} of what is allowed" if worst else f"{said['class']}: {said['reason'] or 'same'}"
    )


def _alone(found: Found, unit: Unit) -> tuple[Decision, list[float]] | None:
    """The fix against the null arm: in stage A, if there was no other."""
    if found.stages and found.together == (unit,):
        for asked, decision in found.stages[0].decisions.items():
            if asked.question == "together":
                return decision, found.stages[0].log_ratios[asked]
    return found.decision("alone", unit.name)


def _idle(unit: Unit, program: Program) -> Row:
    return _row_of(unit, program, verdict="not-exercised", why="its lines do not run from this entry")


def _row_of(unit: Unit, program: Program, **said: Any) -> Row:
    return Row(
        code=unit.code,
        rule=unit.rule,
        path=unit.shown,
        line=unit.line,
        title=unit.title,
        safety=str(unit.applicability),
        diff=program.diff(unit),
        **said,
    )


def _controls(found: Found) -> tuple[Control, ...]:
    shown = []
    for asked, decision in found.stages[0].decisions.items() if found.stages else ():
        first = found.stages[0]
        if decision.n < 2:
            continue
        speedup = ratio(decision, first.log_ratios[asked])
        if asked.question == "bias":
            shown.append(Control("untouched code", *_bias(decision, speedup), speedup, unchanged=True))
        elif asked.question == "handicap":
            words = "a delay of 5 % is seen" if first.handicap_seen else "a delay of 5 % is not seen"
            shown.append(Control("planted delay", words, first.handicap_seen, speedup))
    if found.numerics:
        can_fail = all(said["verdict"] != "not-checked" for said in found.numerics.values())
        words = "other seeds and parameters are told apart" if can_fail else "some results could not be compared"
        shown.append(Control("numerics", words, can_fail))
    return tuple(shown)


def _bias(decision: Decision, speedup: Ratio) -> tuple[str, bool | None]:
    """What the run says of untouched code, and whether that speaks for it: a wide interval does neither."""
    if decision.verdict in ("faster", "slower"):
        return _OTHER_SPEED, False
    if decision.verdict == "no-measurable-difference":
        return _SAME_SPEED, True
    return f"not shown to differ from an edit that does nothing: {interval(speedup)}", None


def _sites(found: Found, program: Program) -> tuple[Site, ...]:
    """The lines of the program as it is that wait or copy, those that do it most often first."""
    counted = found.counts.get(NULL)
    if counted is None:
        return ()
    lines: dict[tuple[str, int], dict[str, int]] = {}
    for site in counted.sites:
        if site["kind"] in _KINDS:
            kinds = lines.setdefault((site["file"], site["line"]), {})
            kinds[site["kind"]] = kinds.get(site["kind"], 0) + site["count"]
    said = program.said_of(lines)
    shown = []
    for (path, line), kinds in lines.items():
        here = said.get((path, line), Said(silence=NO_RULE))
        shown.append(
            Site(
                path=program.shown(path),
                line=line,
                kind=", ".join(words for kind, words in _KINDS.items() if kind in kinds),
                per_unit=max(kinds.values()) / counted.units,
                finding=here.finding,
                counts={kind: count / counted.units for kind, count in kinds.items()},
                severity=here.severity,
                silence=here.silence,
            )
        )
    return tuple(sorted(shown, key=lambda site: (-site.per_unit, site.path, site.line)))


def _unmet(found: Found, program: Program) -> tuple[Unmet, ...]:
    """The lines that are named as waiting or copying, and that ran, where it was looked, without doing so."""
    counted = found.counts.get(NULL)
    if counted is None:
        return ()
    counted_on = [site for site in (*counted.sites, *counted.earlier) if site["kind"] in _KINDS]
    waiting = {(program.shown(site["file"]), site["line"]) for site in counted_on}
    ran = {(program.shown(path), line) for path, line in found.ran}
    unmet = []
    for path, statements in program.named().items():
        for each in statements:
            places = {(path, row) for row in each.rows}
            if ran & places and not waiting & places:
                unmet.append(Unmet(path, each.line, each.finding, each.severity))
    return tuple(sorted(unmet, key=lambda each: (each.path, each.line, each.finding)))


def _together(found: Found) -> Together | None:
    """What is kept, or else all that were tried together, if it is more than one fix."""
    units = found.kept if found.confirmed is not None else found.together
    if found.confirmed is None and len(units) < 2:
        return None
    arm = units[0].name if len(units) == 1 else ALL if units == found.together else KEPT
    decision = found.decision("together")
    before, after = found.counts.get(NULL), found.counts.get(arm)
    if decision is None and after is None:
        return None
    verdict, reason = verdicts.overall(_figures(found, arm, decision[0] if decision else None, "time"))
    return Together(
        kept=len(units),
        verdict=verdict,
        confirmed=found.confirmed is not None,
        speedup=ratio(*decision) if decision and decision[0].n > 1 else None,
        syncs=_syncs(before, after),
        memory=_peaks(before, after),
        words=reason,
    )


def _figures(found: Found, arm: str, time: Decision | None, gain: str) -> verdicts.Figures:
    before, after = found.counts.get(NULL), found.counts.get(arm)
    return verdicts.Figures(
        metric=gain,
        failure=found.failures.get(arm),
        numerics=found.numerics.get(arm),
        suspicious=found.suspicious.get(arm, ""),
        time=time,
        memory=(before.peak, after.peak) if before and after else None,
        counts=(before.per_unit, after.per_unit) if before and after and before.per_unit and after.per_unit else None,
    )


def _syncs(before: Counted | None, after: Counted | None) -> Change | None:
    if before is None or after is None or before.per_unit is None or after.per_unit is None:
        return None
    return Change(before.per_unit["syncs"], after.per_unit["syncs"])


def _peaks(before: Counted | None, after: Counted | None) -> Change | None:
    return Change(before.peak, after.peak) if before and after and before.peak else None
