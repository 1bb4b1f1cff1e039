"""Whether evidence may be committed: what it claims follows from the figures beside it, of the pair as it is now."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from torchlint.evidence import Evidence, Measurement, is_stale, slug
from torchlint.verify import verdicts

_DECIDED = ("faster", "slower", "no-measurable-difference")
_GAINS = ("faster", "saves-memory", "fewer-syncs", "fewer-copies", "fewer-launches")


def problems(evidence: Evidence, stem: str, now: Mapping[str, str]) -> tuple[str, ...]:
    """What is wrong with evidence that the schema lets pass, sorted; nothing where it may be committed.

    `stem` is the name of its file without `.json`, `now` the digests of the pair as `evidence.pair` gives them. A
    claim has to follow from the figures beside it, and what was measured on one kind of device may not pass for
    another.
    """
    found = {f"{_place(each)}: {problem}" for each in evidence.measurements for problem in _wrong(each, evidence, now)}
    if evidence.device != stem:
        found.add(f"is of `{evidence.device}`, in a file named `{stem}`")
    if len({(each.subject.size, each.software.torch) for each in evidence.measurements}) < len(evidence.measurements):
        found.add("holds a size twice for one version of torch")
    if len({each.device.type for each in evidence.measurements}) > 1:
        found.add("mixes types of devices")
    if not evidence.measurements:
        found.add("holds no measurement")
    return tuple(sorted(found))


def _place(measurement: Measurement) -> str:
    return f"{measurement.subject.size}, torch {measurement.software.torch}"


def _wrong(measurement: Measurement, evidence: Evidence, now: Mapping[str, str]) -> Iterator[str]:
    if measurement.subject.rule != evidence.rule:
        yield f"is of rule `{measurement.subject.rule}`, in a file of `{evidence.rule}`"
    if slug(measurement.device.name) != evidence.device:
        yield f"is of device `{measurement.device.name}`, in a file of `{evidence.device}`"
    if is_stale(measurement, now):
        yield "is stale: the pair has changed since; measure it again"
    try:
        datetime.fromisoformat(measurement.provenance.created.replace("Z", "+00:00"))
    except ValueError:
        yield f"was created at `{measurement.provenance.created}`, which is no time in ISO 8601"
    yield from _misplaced(measurement)
    yield from _unfounded(measurement)
    speedups = [measurement.time.speedup] if measurement.time else []
    if controls := measurement.controls:
        speedups += [ratio for ratio in (controls.original, controls.handicap) if ratio]
    if any(len(ratio.log_ratios) != ratio.n or not ratio.lo <= ratio.ratio <= ratio.hi for ratio in speedups):
        yield "has a ratio that lies outside its interval, or not `n` log ratios"


def _misplaced(measurement: Measurement) -> Iterator[str]:
    """Figures that its type of device cannot give."""
    device, counts, protocol = measurement.device, measurement.counts, measurement.protocol
    if device.type == "cuda" and not (device.capability and device.memory and measurement.software.cuda):
        yield "says `cuda` without compute capability, memory and version of CUDA, which a GPU has"
    if device.type == "cuda" and counts and counts.source != "profiler":
        yield "says `cuda` with counts of the simulated device"
    if device.type == "cuda" and measurement.time and protocol and protocol.metric != "wall":
        yield "says `cuda` with the time of the CPU"
    if device.type != "cuda" and (device.capability or device.sm_clock_mhz):
        yield f"says `{device.type}` with the compute capability or the clocks of a GPU"
    if device.type == "sim" and measurement.time:
        yield "has a time on the simulated device, which has none"


def _unfounded(measurement: Measurement) -> Iterator[str]:
    """Claims that the figures beside them do not bear."""
    overall, time, controls = measurement.verdict.overall, measurement.time, measurement.controls
    if time and time.verdict == "faster" and time.speedup.lo <= 1:
        yield "claims `faster` with an interval that includes 1"
    if time and time.verdict == "slower" and time.speedup.hi >= 1:
        yield "claims `slower` with an interval that includes 1"
    if overall in _DECIDED and (time is None or time.verdict != overall or measurement.protocol is None):
        yield f"claims `{overall}`, which its time does not say"
    if "no-measurable-difference" in (overall, time and time.verdict) and not (controls and controls.handicap_seen):
        yield "claims `no-measurable-difference` in a run that did not see the planted handicap"
    if overall == "saves-memory" and not (measurement.memory and measurement.memory.after < measurement.memory.before):
        yield "claims `saves-memory` without less of it"
    counts = measurement.counts
    if overall == "fewer-syncs" and not (counts and counts.after.get("syncs", 0) < counts.before.get("syncs", 0)):
        yield "claims `fewer-syncs` without fewer of them"
    for verdict, fewer in (("fewer-copies", verdicts.fewer_copies), ("fewer-launches", verdicts.fewer_launches)):
        if overall == verdict and not (counts and fewer((counts.before, counts.after))):
            yield f"claims `{verdict}` without fewer of them"
    checked = measurement.numerics is not None and measurement.numerics.verdict in ("same", "same-within-class")
    if overall in (*_DECIDED, *_GAINS) and not checked:
        yield f"claims `{overall}` of code whose results were not found to be the same"
