"""Measured evidence: what it says, where it lies beside its rule, and whether it is still of the pair measured.

Evidence of a rule on a device is one file, `fixtures/<rule>/evidence/<device>.json`, under the JSON Schema that
`schema` gives. Only `torchlint verify` writes it. Ratios are speed-ups: the time of the slow code over that of the
fixed code.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from torchlint import shipped

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from torchlint.rule import Rule

SCHEMA = "torchlint.evidence/1"
FOLDER = "evidence"

Time = Literal["faster", "slower", "no-measurable-difference", "inconclusive"]
Overall = Literal[
    "faster",
    "slower",
    "no-measurable-difference",
    "inconclusive",
    "saves-memory",
    "fewer-syncs",
    "fewer-copies",
    "fewer-launches",
    "wrong-result",
    "not-exercised",
    "suspicious",
    "error",
    "timeout",
    "oom",
    "cannot-run",
    "unfit",
]
NumericsClass = Literal[
    "exact", "close", "lower-precision", "rng", "nondeterministic", "mapped-state", "shape", "alias", "stdout"
]
NumericsVerdict = Literal["same", "same-within-class", "wrong", "not-checked"]
Metric = Literal["time", "memory", "syncs", "copies", "launches"]

_Digest = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class _Struct(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of the document: an unknown key is an error."""


class Subject(_Struct, frozen=True, kw_only=True):
    """What was measured: a rule's pair of files at one size."""

    rule: str
    size: str
    parameters: dict[str, Any]
    sha256_before: _Digest
    sha256_after: _Digest
    fix: Literal["safe", "unsafe", "suggestion"]
    metric: Metric


class Device(_Struct, frozen=True, kw_only=True):
    """Where it was measured; clocks in MHz, memory in bytes."""

    type: Literal["cuda", "cpu", "sim"]
    name: str
    driver: str | None = None
    capability: str | None = None
    memory: int | None = None
    sm_clock_mhz: tuple[float, float] | None = None
    cpu_cores: int | None = None


class Software(_Struct, frozen=True, kw_only=True):
    """With what it was measured."""

    python: str
    torch: str
    torchlint: str
    platform: str
    cuda: str | None = None
    cudnn: int | None = None
    flags: dict[str, Any] = {}


class Protocol(_Struct, frozen=True, kw_only=True):
    """How time was measured and decided."""

    name: Literal["duet/1"]
    metric: Literal["wall", "cpu-time"]
    replicates: int
    quads: int
    samples: int
    inner: int
    looks: tuple[int, ...]
    alpha_spend: tuple[float, ...]
    alpha_scale: float
    min_effect: float
    seed: int
    isolation: tuple[str, ...]


class Ratio(_Struct, frozen=True, kw_only=True):
    """A speed-up with its interval at `level`, from `n` fresh replicates."""

    ratio: float
    lo: float
    hi: float
    level: float
    n: int
    log_ratios: tuple[float, ...]


class Controls(_Struct, frozen=True, kw_only=True):
    """What shows that the run could see a difference, and sees none where there is none."""

    original: Ratio | None = None
    handicap_planted: float | None = None
    handicap: Ratio | None = None
    handicap_seen: bool | None = None
    numerics_can_fail: bool | None = None
    host_busy: float | None = None


class Numerics(_Struct, frozen=True, kw_only=True):
    """Whether both compute the same, within the class that the fix declares."""

    class_: NumericsClass = msgspec.field(name="class")
    verdict: NumericsVerdict
    reason: str = ""
    steps: int = 0
    tensors: int = 0
    bit_equal: int = 0
    worst_over_tolerance: float | None = None
    worst_tensor: str | None = None
    aa_bit_equal: bool | None = None
    rng_stream: Literal["same", "differs"] | None = None


class TimeResult(_Struct, frozen=True, kw_only=True):
    """How long a run of the workload takes, and the speed-up of the fixed one."""

    verdict: Time
    baseline_us: float
    speedup: Ratio
    required_replicates: int | None = None


class MemoryResult(_Struct, frozen=True, kw_only=True):
    """Peak bytes above what the state holds."""

    verdict: Literal["less", "more", "same"]
    before: int
    after: int


class Counts(_Struct, frozen=True, kw_only=True):
    """What a run of the workload asks of the device, per unit of work, and on which lines of the slow file."""

    source: Literal["profiler", "sim"]
    before: dict[str, float]
    after: dict[str, float]


class StartUp(_Struct, frozen=True, kw_only=True):
    """How long the first run takes, in which code may compile, before and after; and how many runs earn the difference.

    `runs` is None where the fixed code starts as fast, or no run of it is faster.
    """

    before_us: float
    after_us: float
    runs: int | None = None


class Conditions(_Struct, frozen=True, kw_only=True):
    """How the machine was while time was measured, and what bounds the figures.

    `sm_clock_mhz` is the median of each arm, and `slowed` by what NVML saw the GPU held back. `processes` is the most
    that computed on it at once, ours among them. `settings` are the GPU's, `environment` the variables that change what
    is computed. `device_busy_us` is for how long a run keeps the GPU busy, before and after; `flop` what a run computes
    in products, convolutions and attention, before and after, and `most_flop_per_s` what the GPU can, at most;
    `fetched` the bytes that a run has to read from the memory of the GPU, since they were there before it, and
    `most_bytes_per_s` what it can read, at most. Clocks are never set, and caches are as the program leaves them.
    """

    cpu: str
    sm_clock_mhz: dict[str, float] = {}
    slowed: tuple[str, ...] | None = None
    power_w: tuple[float, float] | None = None
    temperature_c: tuple[float, float] | None = None
    processes: int | None = None
    settings: dict[str, str] = {}
    environment: dict[str, str] = {}
    device_busy_us: tuple[float, float] | None = None
    flop: tuple[int, int] | None = None
    most_flop_per_s: float | None = None
    fetched: tuple[int, int] | None = None
    most_bytes_per_s: float | None = None
    start_up: StartUp | None = None


class Verdict(_Struct, frozen=True, kw_only=True):
    """What it comes to."""

    overall: Overall
    reason: str = ""


class Provenance(_Struct, frozen=True, kw_only=True):
    """When and by what command; the commit of a checkout, if it is one."""

    created: str
    command: str
    commit: str | None = None
    dirty: bool | None = None


class Measurement(_Struct, frozen=True, kw_only=True):
    """One size of one pair on one device."""

    subject: Subject
    device: Device
    software: Software
    verdict: Verdict
    provenance: Provenance
    protocol: Protocol | None = None
    controls: Controls | None = None
    numerics: Numerics | None = None
    time: TimeResult | None = None
    memory: MemoryResult | None = None
    counts: Counts | None = None
    conditions: Conditions | msgspec.UnsetType = msgspec.UNSET


class Evidence(_Struct, frozen=True, kw_only=True):
    """All that was measured of a rule on one device, in the order of its sizes; `device` is the slug of its name."""

    schema: Literal["torchlint.evidence/1"]
    rule: str
    device: str
    measurements: tuple[Measurement, ...]


class EvidenceError(ValueError):
    """A file that is no evidence: what and where, in one line."""


def slug(name: str) -> str:
    """The device's name in file names: `NVIDIA H200` is `nvidia-h200`."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


# What says in a file of a pair what is reported on a line: no program that runs it sees that.
_MARK = re.compile(rb"[ \t]*# <- [^\n]*")


def digest(data: bytes) -> str:
    """The SHA-256 of a file of the pair without its marks, line endings as git keeps them."""
    return hashlib.sha256(_MARK.sub(b"", data.replace(b"\r\n", b"\n"))).hexdigest()


def read(data: bytes, where: str) -> Evidence:
    """Evidence from JSON. Raises `EvidenceError`, which names `where`."""
    try:
        return msgspec.json.decode(data, type=Evidence)
    except msgspec.MsgspecError as error:
        raise EvidenceError(f"{where}: not evidence of torchlint: {error}") from None


def write(evidence: Evidence) -> bytes:
    """Evidence as JSON, sorted and indented, that ends in a newline: the same bytes again for what is read from it.

    Raises `EvidenceError` where a value is not of the type of its field.
    """
    try:
        exact = msgspec.convert(msgspec.to_builtins(evidence), Evidence)  # whole numbers as the floats they stand for
    except msgspec.ValidationError as error:
        raise EvidenceError(f"{evidence.rule}: {error}") from None
    return json.dumps(msgspec.to_builtins(exact), indent=2, sort_keys=True, allow_nan=False).encode() + b"\n"


def merge(evidence: Evidence, fresh: Iterable[Measurement]) -> Evidence:
    """`evidence` with each fresh measurement in the place of the one of the same size and version of torch."""
    kept = {(each.subject.size, each.software.torch): each for each in (*evidence.measurements, *fresh)}
    return msgspec.structs.replace(evidence, measurements=tuple(kept[key] for key in sorted(kept)))


def schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of an evidence file."""
    found = msgspec.json.schema(Evidence)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "Evidence of torchlint", **found}


def is_measurable(rule: Rule) -> bool:
    """Whether there is something to measure: only the rules that come with torchlint have it."""
    return shipped.has("fixtures", f"{rule.module}/slow.py")


def evidence_of(rule: Rule) -> tuple[Evidence, ...]:
    """What was measured of a rule, one per device, sorted by the device's name. Raises `EvidenceError`."""
    folder = f"{rule.module}/{FOLDER}"
    found = (f"{folder}/{name}" for name in shipped.names("fixtures", folder) if name.endswith(".json"))
    return tuple(read(shipped.read("fixtures", path), path) for path in found)


def pair(rule: Rule) -> dict[str, str]:
    """The digests of the rule's files as they are now: `sha256_before` and `sha256_after`."""
    return {
        "sha256_before": digest(shipped.read("fixtures", f"{rule.module}/slow.py")),
        "sha256_after": digest(shipped.read("fixtures", f"{rule.module}/fast.py")),
    }


def is_stale(measurement: Measurement, now: Mapping[str, str]) -> bool:
    """Whether the pair has changed since it was measured."""
    subject = measurement.subject
    return (subject.sha256_before, subject.sha256_after) != (now["sha256_before"], now["sha256_after"])
