"""What a run of `torchlint verify` found out, as every writer of a report reads it: values, no behaviour."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from torchlint.evidence import Overall, Ratio
from torchlint.verify.ablation import Action

SCHEMA = "torchlint.verify/1"


@dataclass(frozen=True, slots=True)
class Change:
    """A number before and after a fix: synchronizations per unit of work, bytes at the peak, or microseconds."""

    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Control:
    """What shows that the run can be trusted: `words` say what was seen, `passed` is None where that shows nothing.

    `unchanged` says that `speedup` compares unchanged code with unchanged code, so that it shows the noise of the run.
    """

    name: str
    words: str
    passed: bool | None = None
    speedup: Ratio | None = None
    unchanged: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One fix: what it does alone, what the whole set loses without it, and what it comes to.

    `without` is the speed of the set without this fix over that of the set with it: below 1 says that the set needs it.
    `busy` is for how many microseconds a unit of work keeps the GPU busy.
    `action` is None where nothing is to be decided. `safety` is `safe` or `unsafe`, `diff` a unified diff or empty.
    """

    code: str
    rule: str
    path: str
    line: int
    title: str
    safety: str
    verdict: Overall
    action: Action | None = None
    why: str = ""
    alone: Ratio | None = None
    without: Ratio | None = None
    syncs: Change | None = None
    memory: Change | None = None
    busy: Change | None = None
    numerics: str = ""
    diff: str = ""


@dataclass(frozen=True, slots=True)
class Site:
    """A line that makes the host wait or copies; `finding` is what `torchlint check` says of it, empty for nothing.

    `kind` says in words what it does, `counts` how often per unit of work, by the kinds of a device's counts, and
    `per_unit` is the most of them. `severity` is that of the finding; `silence` says why no rule names the line as one
    that waits or copies, empty where one does.
    """

    path: str
    line: int
    kind: str
    per_unit: float
    finding: str = ""
    counts: Mapping[str, float] = field(default_factory=dict)
    severity: str = ""
    silence: str = ""


@dataclass(frozen=True, slots=True)
class Unmet:
    """A line that `finding` names as waiting or copying, and that ran without doing so."""

    path: str
    line: int
    finding: str
    severity: str


@dataclass(frozen=True, slots=True)
class Together:
    """Several fixes as one: those `kept`, measured once more on fresh processes, or all that were tried.

    `kept` is their number in either case; `confirmed` says that they are the kept ones.
    """

    kept: int
    verdict: Overall
    speedup: Ratio | None = None
    syncs: Change | None = None
    memory: Change | None = None
    words: str = ""
    confirmed: bool = True


@dataclass(frozen=True, slots=True)
class Report:
    """A whole run. `unit` is the unit of work that counts and blocks go by, `band` the least effect that is claimed.

    `device` and `entry` are one line each; `summary` says how many fixes there are and `written` what became of the
    files. `provenance` holds pairs of a name and a value: versions, commit, seed, time; `conditions` such pairs of how
    the machine was meanwhile: clocks, what held the GPU back, settings.
    """

    title: str
    command: str
    device: str
    entry: str
    summary: str = ""
    unit: str = "step"
    band: float = 0.01
    controls: tuple[Control, ...] = ()
    rows: tuple[Row, ...] = ()
    sites: tuple[Site, ...] = ()
    unmet: tuple[Unmet, ...] = ()
    together: Together | None = None
    warnings: tuple[str, ...] = ()
    written: str = ""
    provenance: tuple[tuple[str, str], ...] = ()
    conditions: tuple[tuple[str, str], ...] = ()


def to_json(*reports: Report) -> str:
    """A JSON object with the `schema` and the `reports`. Raises `ValueError` for a number that JSON does not have."""
    pairs = ("provenance", "conditions")
    found = [msgspec.to_builtins(report) | {name: dict(getattr(report, name)) for name in pairs} for report in reports]
    return json.dumps({"schema": SCHEMA, "reports": found}, indent=2, allow_nan=False) + "\n"
