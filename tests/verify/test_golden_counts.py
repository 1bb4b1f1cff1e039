"""The committed counts of the simulated device are those of the pairs as they are, by the commands that verify uses."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import laws
import pytest

from torchlint import evidence
from torchlint.registry import all_rules, find
from torchlint.verify.machine import SIMULATED
from torchlint.verify.workload import workload

if TYPE_CHECKING:
    from torchlint.evidence import Measurement
    from torchlint.rule import Rule

SIZE = "smoke"
RULES = [rule for rule in all_rules() if evidence.is_measurable(rule) and rule.name != "unused-ignore"]
EACH_RULE = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
READ = "        losses.append(loss.item())"

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("golden-counts")]  # all of them are counted once


def committed(rule: Rule) -> list[Measurement]:
    """What is committed of the simulated device."""
    name = evidence.slug(SIMULATED)
    found = [each for file in evidence.evidence_of(rule) if file.device == name for each in file.measurements]
    return [each for each in found if each.subject.size == SIZE]


@pytest.fixture(scope="module")
def counted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Both files of each pair, the fast one as the fixer makes it, and one that waits once more at each step."""
    programs: dict[str, str] = {}
    for rule in RULES:
        pair = workload(rule)
        if pair.devices == 1:
            programs |= {f"{rule.name} slow": pair.slow.decode(), f"{rule.name} fast": pair.fast.decode()}
    known = programs["item-in-train-loop slow"]
    assert known.count(READ) == 1
    programs["planted"] = known.replace(READ, f"{READ}\n        loss.item()")
    folder = tmp_path_factory.mktemp("counted")
    (folder / "programs.json").write_text(json.dumps(programs), encoding="utf-8")
    script = Path(__file__).with_name("counting.py")
    command = [sys.executable, str(script), "programs.json", "results.json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads((folder / "results.json").read_bytes())
    return found


def of_this_torch(rule: Rule, version: str) -> Measurement:
    """What is committed by a torch whose versions of operators count alike; skips the test where there is none."""
    found = {minor(each.software.torch): each for each in committed(rule)}
    if minor(version) not in found:
        pytest.skip(f"counts are committed for torch {', '.join('.'.join(key) for key in found)}; this is {version}")
    return found[minor(version)]


def minor(version: str) -> tuple[str, ...]:
    return tuple(re.findall(r"\d+", version)[:2])


def differences(measurement: Measurement, slow: dict[str, Any], fast: dict[str, Any]) -> list[str]:
    """Where the committed figures are not those that were counted."""
    counts, memory = measurement.counts, measurement.memory
    assert counts
    assert memory
    pairs = {"slow": (counts.before, memory.before, slow), "fast": (counts.after, memory.after, fast)}
    return [
        f"{name}: {kind} is {given}, and {found[kind]} was counted"
        for name, (figures, peak, one) in pairs.items()
        for found in [{**one["counts"], "peak": one["peak"]}]
        for kind, given in {**figures, "peak": peak}.items()
        if given != found[kind]
    ]


@EACH_RULE
def test_each_pair_has_current_counts(rule: Rule) -> None:
    """Lint finds the slow file, the fixer makes the fast one, and the evidence is of these two."""
    pair = workload(rule)
    found = laws.places(pair.slow.decode(), laws.active(rule.name))
    assert rule.name in {name.rstrip("?") for _, name, *_ in found}  # a note is a finding, too
    assert committed(rule), f"run `torchlint verify --rule {rule.name} --device sim --evidence fixtures`"
    for each in committed(rule):
        assert not evidence.is_stale(each, pair.digests)
        assert each.subject.parameters == pair.sizes[SIZE]
        assert each.subject.fix == pair.fix


@EACH_RULE
def test_counts_are_the_committed_ones(rule: Rule, counted: dict[str, Any]) -> None:
    measurement = of_this_torch(rule, counted["torch"])
    if workload(rule).devices > 1:
        assert (measurement.verdict.overall, measurement.verdict.reason) == ("cannot-run", "needs 2 CUDA devices")
        assert (measurement.counts, measurement.memory, measurement.time) == (None, None, None)
        return
    found = counted["found"]
    assert differences(measurement, found[f"{rule.name} slow"], found[f"{rule.name} fast"]) == []


@EACH_RULE
def test_counts_bear_the_verdict(rule: Rule) -> None:
    """What moves first by its own word has moved the right way, and nobody says what a simulation cannot know."""
    pair = workload(rule)
    for each in committed(rule):
        assert (each.time, each.protocol) == (None, None)
        assert each.verdict.overall not in {"faster", "slower", "no-measurable-difference", "wrong-result", "error"}
        if pair.devices > 1 or each.counts is None or each.memory is None:
            continue
        before, after = each.counts.before, each.counts.after
        copies = [sum(each[kind] for kind in ("h2d_pageable", "h2d_pinned", "d2h")) for each in (before, after)]
        moved = {
            "syncs": (before["syncs"], after["syncs"]),
            "copies": tuple(copies),
            "launches": (before["launches"], after["launches"]),
            "memory": (each.memory.before, each.memory.after),
        }
        if pair.metric in moved:
            assert moved[pair.metric][1] < moved[pair.metric][0]


def test_a_changed_count_is_seen(counted: dict[str, Any]) -> None:
    """One more wait at each of 8 steps, in a copy of a program."""
    measurement = of_this_torch(find("item-in-train-loop"), counted["torch"])
    found = counted["found"]
    wrong = differences(measurement, found["planted"], found["item-in-train-loop fast"])
    assert "slow: syncs is 24.0, and 32 was counted" in wrong
    assert len(wrong) == 3, "a wait, a copy, and its bytes, and nothing else"


@EACH_RULE
def test_evidence_of_a_simulation_names_no_machine(rule: Rule) -> None:
    for each in committed(rule):
        device = each.device
        assert (device.type, device.name) == ("sim", SIMULATED)
        assert (device.cpu_cores, device.driver, device.memory) == (None, None, None)
        words = re.split(r"[\s=]+", each.provenance.command)
        assert words[0] == "torchlint"
        assert not [word for word in words if Path(word).is_absolute() or "\\" in word]
