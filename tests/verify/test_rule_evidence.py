"""Which pairs are measured, in which order, how long, and what of it is written beside them."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec
import pytest
from evidence_samples import CPU, GPU, SIM, changed

from torchlint import evidence
from torchlint.evidence import Verdict
from torchlint.registry import all_rules, find
from torchlint.verify import catalogue, pairs, timing
from torchlint.verify.journal import Journal
from torchlint.verify.machine import SIMULATED, Machine, UsageError
from torchlint.verify.workload import workload

if TYPE_CHECKING:
    from torchlint.evidence import Measurement
    from torchlint.verify.machine import Clerk
    from torchlint.verify.workload import Workload

H200 = Machine(cuda=True, devices=1, why="", name="NVIDIA H200", processor="AMD EPYC 9654", torch="2.11.0+cu130")
KNOWN = cache(workload)
ITEM = "item-in-train-loop"
OTHER = "repeated-item"


def of(pair: Workload, size: str, sample: Measurement = GPU) -> Measurement:
    """`sample`, of this pair."""
    subject = {"rule": pair.rule.name, "size": size, "fix": pair.fix, **pair.digests}
    return changed(sample, subject=subject)


@dataclass
class Bench:
    """What stands for the measuring of pairs: each takes its time, and comes to what is planned for it."""

    now: float = 5000.0
    takes: Sequence[float] = (60.0,)
    planned: dict[str, Callable[[Measurement], pairs.Measured]] = field(default_factory=dict)
    measured: list[str] = field(default_factory=list)
    shown: list[Measurement] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)

    def measure(self, pair: Workload, size: str, *_: object) -> pairs.Measured:
        self.now += self.takes[len(self.measured) % len(self.takes)]
        self.measured.append(f"{pair.rule.name} {size}")
        found = of(pair, size)
        return self.planned.get(f"{pair.rule.name} {size}", pairs.Measured)(found)

    def run(self, chosen: catalogue.Selected, seconds: float = 1e9) -> catalogue.Outcome:
        limits = timing.Limits(16, self.now + seconds)
        order = pairs.Order("cuda", limits, 1, "python", "torchlint verify")
        listener = catalogue.Listener(
            print, lambda measured: self.shown.append(measured.measurement), self.warned.append
        )
        return catalogue.measure(chosen, order, cast("Clerk", None), H200, listener)


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fixer makes each fast file once."""
    monkeypatch.setattr(catalogue, "workload", KNOWN)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench()
    monkeypatch.setattr(pairs, "measure", made.measure)
    monkeypatch.setattr(time, "monotonic", lambda: made.now)
    return made


def names(chosen: catalogue.Selected) -> list[str]:
    return [f"{pair.rule.name} {size}" for pair, size in chosen.pieces]


def written(folder: Path, rule: str = ITEM, device: str = "nvidia-h200") -> list[Measurement]:
    path = folder / rule.replace("-", "_") / "evidence" / f"{device}.json"
    return [*evidence.read(path.read_bytes(), str(path)).measurements] if path.exists() else []


def put(folder: Path, *measurements: Measurement, rule: str = ITEM) -> Path:
    """Evidence in its place."""
    device = evidence.slug(measurements[0].device.name)
    path = folder / rule.replace("-", "_") / "evidence" / f"{device}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    made = evidence.Evidence(schema="torchlint.evidence/1", rule=rule, device=device, measurements=measurements)
    path.write_bytes(evidence.write(made))
    return path


# What is chosen


def test_on_a_gpu_what_should_pay_is_measured_first_and_waits_before_the_rest() -> None:
    found = names(catalogue.selected(["ALL"], (), "cuda", None))
    sizes = [name.partition(" ")[2] for name in found]
    first_nohelp = sizes.index("nohelp")
    assert set(sizes[:first_nohelp]) == {"gpu"}
    assert all(size.startswith("nohelp") for size in sizes[first_nohelp:])
    rules = [name.partition(" ")[0] for name in found[:first_nohelp]]
    assert rules[:3] == [ITEM, "item-in-eval-loop", OTHER]
    order = [rules.index(name) for name in (ITEM, "host-factory-then-move", "eval-without-no-grad")]
    order += [rules.index("dataloader-no-workers"), rules.index("bias-before-batchnorm")]
    assert order == sorted(order)
    assert "unused-ignore" not in rules
    measured = {rule.name for rule in all_rules() if rule.checks}
    assert sorted(rules) == sorted(measured), "each once"


@pytest.mark.parametrize("device", ["cpu", "sim"])
def test_elsewhere_the_small_size_is_measured(device: str) -> None:
    assert names(catalogue.selected([ITEM], (), device, None)) == [f"{ITEM} smoke"]


def test_sizes_can_be_named() -> None:
    assert names(catalogue.selected(["TL301", ITEM], ["smoke", "gpu", "smoke"], "cuda", None)) == [
        f"{ITEM} smoke",
        f"{ITEM} gpu",
    ]
    assert names(catalogue.selected([ITEM], ["all"], "cpu", None)) == [
        f"{ITEM} {s}" for s in ("smoke", "gpu", "nohelp")
    ]


@pytest.mark.parametrize(
    ("rules", "sizes", "problem"),
    [
        (["no-such-rule"], [], "no-such-rule"),
        (["unused-ignore"], [], "unused-ignore makes nothing faster"),
        ([ITEM], ["huge"], "item-in-train-loop has no size `huge`; it has smoke, gpu, nohelp"),
    ],
)
def test_what_does_not_exist_is_named(rules: list[str], sizes: list[str], problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        catalogue.selected(rules, sizes, "cpu", None)


# What is stale


def lacking(folder: Path, device: str = "cuda", sizes: Sequence[str] = (), machine: Machine = H200) -> list[str]:
    return names(catalogue.stale(catalogue.selected([ITEM], sizes, device, folder), device, machine))


def test_what_has_evidence_is_not_measured_again(tmp_path: Path) -> None:
    pair = KNOWN(find(ITEM))
    assert lacking(tmp_path) == [f"{ITEM} gpu", f"{ITEM} nohelp"]
    put(tmp_path, of(pair, "gpu"))
    assert lacking(tmp_path) == [f"{ITEM} nohelp"]
    put(tmp_path, of(pair, "gpu"), of(pair, "nohelp"))
    assert lacking(tmp_path) == []


@pytest.mark.parametrize(
    ("torch", "holds"),
    [
        ("2.11.0+cu130", True),
        ("2.11.4", True),
        ("2.12.0", True),
        ("2.10.1+cu130", False),
        ("1.13.0", False),
        ("3.0.0", True),
    ],
)
def test_evidence_of_the_same_or_a_newer_torch_holds(tmp_path: Path, torch: str, *, holds: bool) -> None:
    put(tmp_path, changed(of(KNOWN(find(ITEM)), "gpu"), software={"torch": torch}))
    assert lacking(tmp_path, sizes=["gpu"]) == ([] if holds else [f"{ITEM} gpu"])


def test_evidence_of_a_changed_pair_does_not_hold(tmp_path: Path) -> None:
    for part in ("sha256_before", "sha256_after"):
        put(tmp_path, changed(of(KNOWN(find(ITEM)), "gpu"), subject={part: "c" * 64}))
        assert lacking(tmp_path, sizes=["gpu"]) == [f"{ITEM} gpu"]


@pytest.mark.parametrize(
    ("device", "sample", "name"), [("cuda", GPU, "NVIDIA H200"), ("cpu", CPU, "AMD EPYC 9654"), ("sim", SIM, SIMULATED)]
)
def test_evidence_is_that_of_this_device(tmp_path: Path, device: str, sample: Measurement, name: str) -> None:
    mine = changed(of(KNOWN(find(ITEM)), "smoke", sample), device={"name": name}, software={"torch": "2.11.0"})
    put(tmp_path, changed(mine, device={"name": "Another"}))
    assert lacking(tmp_path, device, ["smoke"]) == [f"{ITEM} smoke"]
    put(tmp_path, mine)
    assert lacking(tmp_path, device, ["smoke"]) == []


def test_what_is_stale_takes_a_folder_and_files_that_can_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="`--evidence FOLDER`"):
        catalogue.stale(catalogue.selected([ITEM], (), "cuda", None), "cuda", H200)
    put(tmp_path, of(KNOWN(find(ITEM)), "gpu")).write_text("{", encoding="utf-8")
    with pytest.raises(UsageError, match=r"nvidia-h200\.json: not evidence of torchlint"):
        lacking(tmp_path)


# How long it takes


def test_all_are_measured_where_there_is_time(bench: Bench, tmp_path: Path) -> None:
    chosen = catalogue.selected([ITEM, OTHER], (), "cuda", tmp_path)
    assert bench.run(chosen) == catalogue.Outcome(good=True, written=True, left=0)
    assert bench.measured == [f"{ITEM} gpu", f"{OTHER} gpu", f"{ITEM} nohelp", f"{OTHER} nohelp"]
    assert [each.subject.size for each in bench.shown] == ["gpu", "gpu", "nohelp", "nohelp"]
    assert [each.subject.size for each in written(tmp_path)] == ["gpu", "nohelp"]
    assert names(catalogue.stale(chosen, "cuda", H200)) == []


def test_the_next_size_is_not_begun_where_the_time_will_not_suffice(bench: Bench) -> None:
    chosen = catalogue.selected(["ALL"], (), "cuda", None)
    bench.takes = (50.0, 100.0, 150.0, 50.0)
    outcome = bench.run(chosen, 540.0)
    # 350 s have gone after four, and the longest of the last three took 150 s: the fifth begins, the sixth does not.
    assert len(bench.measured) == 5
    assert outcome.left == len(chosen.pieces) - 5
    assert bench.now - 5000 <= 540


def test_one_long_size_is_forgotten_after_three(bench: Bench) -> None:
    bench.takes = (300.0, *[10.0] * 50)
    bench.run(catalogue.selected(["ALL"], (), "cuda", None), 640.0)
    assert len(bench.measured) > 20


def test_repeated_slices_come_to_an_end(bench: Bench, tmp_path: Path) -> None:
    chosen = catalogue.selected(["ALL"], (), "cuda", tmp_path)
    slices = 0
    while rest := catalogue.stale(chosen, "cuda", H200).pieces:
        slices += 1
        bench.run(catalogue.Selected(rest, tmp_path), 540.0)
        assert slices <= len(names(chosen)), "each slice measures something"
    assert sorted(bench.measured) == sorted(names(chosen)), "each was measured once"


def cut(measurement: Measurement) -> pairs.Measured:
    undecided = changed(
        measurement,
        verdict=Verdict(overall="inconclusive", reason="the time for measuring ended after 3 replicates"),
        time=changed_time(measurement),
    )
    return pairs.Measured(undecided, cut=True)


def changed_time(measurement: Measurement) -> evidence.TimeResult:
    assert measurement.time
    return msgspec.structs.replace(measurement.time, verdict="inconclusive")


def test_a_measurement_that_was_cut_short_is_not_written(bench: Bench, tmp_path: Path) -> None:
    bench.planned = {f"{OTHER} gpu": cut}
    outcome = bench.run(catalogue.selected([ITEM, OTHER], (), "cuda", tmp_path), 200.0)
    assert bench.measured == [f"{ITEM} gpu", f"{OTHER} gpu"]
    assert (len(bench.shown), outcome.left) == (2, 3)
    assert len(written(tmp_path)) == 1
    assert written(tmp_path, OTHER) == []


def test_the_first_one_had_all_the_time_there_is(bench: Bench, tmp_path: Path) -> None:
    bench.planned = {f"{ITEM} gpu": cut}
    bench.run(catalogue.selected([ITEM], (), "cuda", tmp_path), 50.0)
    (found,) = written(tmp_path)
    assert found.verdict.overall == "inconclusive"
    assert lacking(tmp_path) == [f"{ITEM} nohelp"], "or it would be tried for ever"


def late(measurement: Measurement) -> pairs.Measured:
    return pairs.Measured(changed(measurement, verdict=Verdict(overall="inconclusive")), cut=True, late=True)


def test_what_ended_before_there_was_anything_is_not_written_even_if_it_came_first(
    bench: Bench, tmp_path: Path
) -> None:
    bench.planned = {f"{ITEM} gpu": late}
    outcome = bench.run(catalogue.selected([ITEM], (), "cuda", tmp_path), 50.0)
    assert outcome.left == 2
    assert written(tmp_path) == []


def test_a_size_that_is_known_to_take_longer_than_there_is_time_is_passed_over(bench: Bench, tmp_path: Path) -> None:
    chosen = catalogue.selected([ITEM, OTHER], ["gpu"], "cuda", tmp_path)
    bench.takes = (500.0, 60.0)
    bench.run(chosen)
    assert bench.measured == [f"{ITEM} gpu", f"{OTHER} gpu"]
    bench.measured.clear()
    bench.takes = (60.0,)
    outcome = bench.run(chosen, 400.0)
    assert (bench.measured, outcome.left) == ([f"{OTHER} gpu"], 1)
    bench.measured.clear()
    assert bench.run(chosen, 600.0).left == 0
    assert bench.measured == [f"{ITEM} gpu", f"{OTHER} gpu"]


def broken(measurement: Measurement) -> pairs.Measured:
    failed = Verdict(overall="cannot-run", reason="the slow file fails: MemoryError")
    return pairs.Measured(changed(measurement, verdict=failed), broken=True)


def test_a_pair_that_cannot_be_measured_does_not_eat_every_slice(bench: Bench, tmp_path: Path) -> None:
    chosen = catalogue.selected([ITEM, OTHER], ["gpu"], "cuda", tmp_path)
    bench.planned = {f"{ITEM} gpu": broken}
    bench.run(catalogue.stale(chosen, "cuda", H200), 70.0)
    bench.run(catalogue.stale(chosen, "cuda", H200), 70.0)
    assert bench.measured == [f"{ITEM} gpu", f"{OTHER} gpu"]
    bench.planned.clear()
    bench.run(catalogue.stale(chosen, "cuda", H200), 70.0)
    assert bench.measured[2:] == [f"{ITEM} gpu"], "it is tried again where there is time"
    assert names(catalogue.stale(chosen, "cuda", H200)) == []


def test_a_pair_that_was_mended_is_broken_no_more(tmp_path: Path) -> None:
    pair = KNOWN(find(ITEM))
    Journal.of(tmp_path, H200.name).note(pair, "gpu", 9.0, broken=True)
    assert Journal.of(tmp_path, H200.name).is_broken(pair, "gpu")
    mended = replace(pair, digests={**pair.digests, "sha256_before": "c" * 64})
    assert not Journal.of(tmp_path, H200.name).is_broken(mended, "gpu")


@pytest.mark.parametrize(
    "text", ["{", "[]", "null", '{"item-in-train-loop gpu": 3}', '{"item-in-train-loop gpu": {"seconds": "x"}}']
)
def test_a_damaged_journal_is_begun_anew(tmp_path: Path, text: str) -> None:
    (tmp_path / ".measuring-nvidia-h200.json").write_text(text, encoding="utf-8")
    journal = Journal.of(tmp_path, H200.name)
    assert journal.seconds(KNOWN(find(ITEM)), "gpu") is None
    journal.note(KNOWN(find(ITEM)), "gpu", 12.34)
    assert Journal.of(tmp_path, H200.name).seconds(KNOWN(find(ITEM)), "gpu") == 12.3


# What is written


def test_what_claims_more_than_its_figures_bear_is_not_written(bench: Bench, tmp_path: Path) -> None:
    bench.planned = {f"{ITEM} gpu": lambda found: pairs.Measured(changed(found, numerics=None))}
    outcome = bench.run(catalogue.selected([ITEM], (), "cuda", tmp_path))
    assert outcome == catalogue.Outcome(good=True, written=False, left=0)
    (line,) = bench.warned
    assert line.startswith(f"{ITEM}, gpu: not written: gpu, torch 2.11.0+cu130: claims `faster` of code whose results")
    assert "\n" not in line
    assert [each.subject.size for each in written(tmp_path)] == ["nohelp"]


def test_a_slow_file_that_fails_is_no_evidence(bench: Bench, tmp_path: Path) -> None:
    failed = Verdict(overall="cannot-run", reason="the slow file fails: MemoryError")
    bench.planned = {f"{ITEM} gpu": lambda found: pairs.Measured(changed(found, verdict=failed), broken=True)}
    outcome = bench.run(catalogue.selected([ITEM], ["gpu"], "cuda", tmp_path))
    assert not outcome.written
    assert bench.warned == [f"{ITEM}, gpu: not written: the slow file fails: MemoryError"]
    assert written(tmp_path) == []


@pytest.mark.parametrize(("overall", "good"), [("wrong-result", False), ("slower", True), ("cannot-run", True)])
def test_what_speaks_against_a_fix_is_told(bench: Bench, overall: evidence.Overall, *, good: bool) -> None:
    bench.planned = {f"{ITEM} gpu": lambda found: pairs.Measured(changed(found, verdict=Verdict(overall=overall)))}
    assert bench.run(catalogue.selected([ITEM], (), "cuda", None)).good is good


def test_a_fresh_measurement_takes_the_place_of_its_like_and_drops_what_is_of_an_earlier_pair(
    bench: Bench, tmp_path: Path
) -> None:
    pair = KNOWN(find(ITEM))
    older = changed(of(pair, "gpu"), software={"torch": "2.9.0"})
    before = changed(of(pair, "gpu"), verdict=Verdict(overall="faster", reason="measured before"))
    gone = changed(of(pair, "nohelp"), subject={"sha256_after": "c" * 64})
    put(tmp_path, older, before, gone)
    bench.run(catalogue.selected([ITEM], ["gpu"], "cuda", tmp_path))
    found = written(tmp_path)
    assert [(each.subject.size, each.software.torch, each.verdict.reason) for each in found] == [
        ("gpu", "2.11.0+cu130", ""),
        ("gpu", "2.9.0", ""),
    ]
    files = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert files == [".measuring-nvidia-h200.json", "nvidia-h200.json"]


# Through the command line


@pytest.mark.slow
def test_where_all_evidence_holds_nothing_is_measured(tmp_path: Path) -> None:
    mine = changed(of(KNOWN(find(ITEM)), "smoke", SIM), device={"name": SIMULATED}, software={"torch": "99.0"})
    put(tmp_path, mine)
    command = [sys.executable, "-m", "torchlint", "verify", "--rule", ITEM, "--device", "sim", "--stale"]
    done = subprocess.run(
        [*command, "--evidence", str(tmp_path)], capture_output=True, text=True, check=False, timeout=300
    )
    assert (done.returncode, done.stdout) == (0, "nothing to measure: the evidence of this device still holds\n")
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: `--stale` looks at what was written before")


def test_programs_have_no_evidence_to_be_stale() -> None:
    command = [sys.executable, "-m", "torchlint", "verify", "train.py", "--stale"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stderr) == (2, "error: `--stale` is about evidence of rules: it goes with `--rule`\n")
