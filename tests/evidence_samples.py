"""Made-up evidence for tests: no figure here was measured."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from torchlint.evidence import (
    Controls,
    Counts,
    Device,
    Evidence,
    Measurement,
    MemoryResult,
    Numerics,
    Protocol,
    Provenance,
    Ratio,
    Software,
    Subject,
    TimeResult,
    Verdict,
)

PAIR = {"sha256_before": "a" * 64, "sha256_after": "b" * 64}
MIB = 1 << 20


def ratio(value: float, spread: float = 0.03, n: int = 8) -> Ratio:
    """A speed-up whose log ratios lie around it."""
    logs = tuple(math.log(value) + spread / 3 * (-1) ** i * (i + 1) / n for i in range(n))
    return Ratio(ratio=value, lo=value - spread, hi=value + spread, level=0.99, n=n, log_ratios=logs)


GPU = Measurement(
    subject=Subject(
        rule="item-in-train-loop",
        size="gpu",
        parameters={"steps": 50, "batch": 64, "width": 1_000_000},
        fix="unsafe",
        metric="syncs",
        **PAIR,
    ),
    device=Device(
        type="cuda", name="NVIDIA H200", driver="570.86", capability="9.0", memory=141 << 30, sm_clock_mhz=(1755, 1980)
    ),
    software=Software(python="3.12.3", torch="2.11.0+cu130", torchlint="0.1.0", platform="linux", cuda="13.0"),
    verdict=Verdict(overall="faster"),
    provenance=Provenance(created="2026-03-02T11:00:00Z", command="torchlint verify --rule item-in-train-loop"),
    protocol=Protocol(
        name="duet/1",
        metric="wall",
        replicates=8,
        quads=4,
        samples=10,
        inner=2,
        looks=(4, 6, 8),
        alpha_spend=(0.0005, 0.001, 0.002),
        alpha_scale=1.0,
        min_effect=0.01,
        seed=7,
        isolation=("copy",),
    ),
    controls=Controls(
        original=ratio(1.0, 0.01),
        handicap_planted=0.05,
        handicap=ratio(0.95),
        handicap_seen=True,
        numerics_can_fail=True,
    ),
    numerics=Numerics(class_="close", verdict="same-within-class", steps=40, tensors=3, bit_equal=2),
    time=TimeResult(verdict="faster", baseline_us=12_400.0, speedup=ratio(1.27)),
    memory=MemoryResult(verdict="less", before=1200 * MIB, after=900 * MIB),
    counts=Counts(
        source="profiler",
        before={"syncs": 50, "h2d_pageable": 1, "h2d_pinned": 2, "d2h": 50, "launches": 12_000},
        after={"syncs": 1, "h2d_pageable": 1, "h2d_pinned": 2, "d2h": 1, "launches": 12_000.5},
    ),
)


def changed(measurement: Measurement, **parts: Any) -> Measurement:  # noqa: ANN401 - parts of the document
    """`measurement` with parts replaced; a part given as a dict has only those fields of it replaced."""
    for name, part in parts.items():
        value = msgspec.structs.replace(getattr(measurement, name), **part) if isinstance(part, dict) else part
        measurement = msgspec.structs.replace(measurement, **{name: value})
    return measurement


NOHELP = changed(
    GPU,
    subject={"size": "nohelp", "parameters": {"steps": 1}},
    verdict=Verdict(overall="no-measurable-difference", reason="one long kernel hides the read"),
    time=TimeResult(verdict="no-measurable-difference", baseline_us=840, speedup=ratio(1.0, 0.008)),
)
CPU = changed(
    GPU,
    device=Device(type="cpu", name="AMD EPYC 9654", cpu_cores=8),
    software={"cuda": None, "torch": "2.9.1+cpu"},
    counts=None,
    memory=None,
)
SIM = changed(
    GPU,
    device=Device(type="sim", name="simulated CUDA device"),
    software={"cuda": None, "torch": "2.13.0+cpu"},
    time=None,
    protocol=None,
    controls=None,
    counts={"source": "sim"},
    verdict=Verdict(overall="fewer-syncs"),
)


def evidence(*measurements: Measurement, rule: str = "item-in-train-loop", device: str = "nvidia-h200") -> Evidence:
    """A file's worth."""
    return Evidence(schema="torchlint.evidence/1", rule=rule, device=device, measurements=measurements)
