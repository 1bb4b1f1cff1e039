"""What is looked at of a pair, in which order, and what becomes of what fails, with processes that are made up."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, cast

import msgspec
import pytest

from torchlint import evidence
from torchlint.registry import find
from torchlint.verify import checks, pairs, stats, timing
from torchlint.verify.ablation import HANDICAP, NULL, Comparison
from torchlint.verify.arms import Arm, Failure, Patience, Subject
from torchlint.verify.looked import Looked
from torchlint.verify.machine import SIMULATED, Machine
from torchlint.verify.measurement import FIXED, QUESTION, portable
from torchlint.verify.process import ArmError
from torchlint.verify.terminal import measurement_lines
from torchlint.verify.workload import Workload, workload

if TYPE_CHECKING:
    from collections.abc import Callable

    from torchlint.evidence import Measurement
    from torchlint.verify.machine import Clerk

ITEM = workload(find("item-in-train-loop"))
PARALLEL = workload(find("data-parallel"))
SAME = {"verdict": "same", "reason": "2 values agree", "tensors": 2, "bit_equal": 2}
WRONG = {"verdict": "wrong", "reason": "step0[0] is off"}
DELAYED = Comparison(HANDICAP, NULL, "handicap")
LOOKS, SPEND = stats.plan(16)


@dataclass
class Process:
    """Stands for a worker that counts what it is told to."""

    flop: ClassVar[int] = 10**9
    fetched: ClassVar[int] = 10**6
    tells: ClassVar[dict[int, dict[str, int]]] = {}
    """What else an arm counts, by its waits."""

    syncs: int
    peak: int
    fails: str = ""
    doubt: str = ""

    def ask(self, command: str, timeout: float, **message: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        assert timeout > 0
        if command == self.fails:
            raise ArmError("crash", f"planted in {command}")
        if command == "count":
            counts = {"syncs": self.syncs * message["units"], "launches": 3, **self.tells.get(self.syncs, {})}
            return {"units": message["units"], "counts": counts, "doubt": self.doubt, "busy_ns": 1000 * self.syncs}
        if command == "work":
            return {"flop": self.flop, "fetched": self.fetched}
        return {"peak": self.peak}


@dataclass
class Made:
    """Stands for a session; `fails` is at which command an arm does."""

    subject: Subject
    fails: dict[str, str] = field(default_factory=dict)
    left: dict[str, list[str]] = field(default_factory=dict)
    doubts: dict[str, str] = field(default_factory=dict)
    isolation: tuple[str, ...] = ("copy",)
    patience: Patience = field(default_factory=Patience)
    started: list[str] = field(default_factory=list)
    device: dict[str, Any] = field(default_factory=dict)
    software: dict[str, Any] = field(default_factory=dict)
    machine: dict[str, Any] = field(default_factory=dict)
    where: dict[str, Any] = field(default_factory=dict)
    deadline: float = math.inf
    late: bool = False
    capability: str = "9.0"
    forgotten: bool = False
    settings: dict[str, str] = field(default_factory=dict)

    def note(self, text: str) -> None:
        assert text

    def forget(self) -> None:
        self.forgotten = True

    @contextmanager
    def running(self, arm: Arm, *, seed: int = 0) -> Iterator[Process]:
        assert seed in (0, checks.SEED)
        if self.fails.get(arm.name) == "load":
            raise ArmError("entry", "planted in load")
        self.started.append(arm.name)
        kind = self.subject.device
        self.device = {"type": kind, "name": SIMULATED if kind == "sim" else f"a {kind}", "cpu_cores": 4}
        if kind == "cuda":
            self.device["capability"] = self.capability
        self.machine = {
            "cpu": "a CPU",
            "settings": {"multiprocessors": "132", "memory bytes per second": "4000000000000", "L2 bytes": "50000000"},
            "environment": {"CUBLAS_LOGINFO_DBG": "0"},
        }
        self.machine["settings"] |= self.settings
        self.software = {"python": "3.11.7", "torch": "2.13.0", "platform": "Linux"}
        figures = (8, 400) if arm.name == NULL else (1, 300)
        yield Process(*figures, self.fails.get(arm.name, ""), self.doubts.get(arm.name, ""))


@dataclass
class Bench:
    """What the stand-ins of the numerics and of the clock say, and what was asked of them."""

    numerics: dict[str, Any] | ArmError = field(default_factory=lambda: SAME)
    timed: timing.Timed | None = None
    asked: list[str] = field(default_factory=list)
    metric: str = ""
    busy: bool = False
    session: Made | None = None
    fails: dict[str, str] = field(default_factory=dict)
    left: dict[str, list[str]] = field(default_factory=dict)
    doubts: dict[str, str] = field(default_factory=dict)
    capability: str = "9.0"
    settings: dict[str, str] = field(default_factory=dict)

    def measure(self, pair: Workload, device: str, size: str = "smoke", devices: int = 1) -> pairs.Measured:
        return self.phases(pair, device, pairs.PHASES, size=size, devices=devices)

    def phases(
        self,
        pair: Workload,
        device: str,
        phases: tuple[str, ...],
        *,
        size: str = "smoke",
        devices: int = 1,
        at_once: int = 1,
        looked: Looked | None = None,
    ) -> pairs.Measured:
        called = f"torchlint verify --rule X --phase {','.join(phases)}"
        order = pairs.Order(cast("Any", device), timing.Limits(), 1, sys.executable, called, phases, at_once)
        machine = Machine(device == "cuda", devices, "", "a GPU")
        return pairs.measure(pair, size, order, cast("Clerk", None), machine, print, looked)

    def reference(self, running: Made, null: Arm, declared: checks.Declared) -> None:
        self.asked.append("reference")
        assert null.files["workload.py"] != ITEM.slow
        assert declared.numerics
        if running.fails.get(NULL) == "check":
            raise timing.BaselineError(Failure("exception", "ValueError: planted"))
        with running.running(null):
            pass

    def check(self, _running: Made, _clerk: object, _base: object, arm: Arm, _declared: object) -> dict[str, Any]:
        assert arm.name == FIXED
        self.asked.append("check")
        if isinstance(self.numerics, ArmError):
            raise self.numerics
        return self.numerics

    def time(
        self, _running: Made, arms: dict[str, Arm], _stage: object, *, metric: str, busy: bool, **_: object
    ) -> timing.Timed:
        self.asked.append("time")
        self.metric, self.busy = metric, busy
        assert arms[NULL].files == arms[HANDICAP].files != arms[FIXED].files
        assert self.timed
        return self.timed


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench()

    @contextmanager
    def session(
        subject: Subject, note: Callable[[str], None], patience: Patience, given_up: Callable[[], bool]
    ) -> Iterator[Made]:
        assert not given_up()
        note(f"{subject.device}, {patience.check} s")
        made.session = Made(subject, made.fails, made.left, made.doubts, patience=patience, capability=made.capability)
        made.session.settings = made.settings
        yield made.session

    monkeypatch.setattr(pairs, "session", session)
    monkeypatch.setattr(checks, "reference", made.reference)
    monkeypatch.setattr(checks, "check", made.check)
    monkeypatch.setattr(timing, "measure", made.time)
    return made


def timed(verdict: stats.Verdict, ratio: float = 1.3, replicates: int = 4) -> timing.Timed:
    """A run in which the fixed arm got this verdict."""
    ratios: dict[Comparison, list[float]] = {DELAYED: [-0.05] * replicates, QUESTION: [0.26] * replicates}
    made = timing.Timed("wall", LOOKS, SPEND, 1.0, 1, ratios, replicates=replicates, busy=[0.1])
    made.baseline_ns = [2e6] * replicates
    for asked, found in ((DELAYED, "slower"), (QUESTION, verdict)):
        value = 0.95 if asked is DELAYED else ratio
        made.decisions[asked] = stats.Decision(
            cast("stats.Verdict", found), value, value - 0.01, value + 0.01, 0.99, replicates
        )
    return made


def verdict(measured: pairs.Measured) -> tuple[str, str]:
    return measured.measurement.verdict.overall, measured.measurement.verdict.reason


def figures(measurement: Measurement) -> set[str]:
    """What there are figures of."""
    parts = ("numerics", "counts", "memory", "time", "protocol", "controls")
    return {name for name in parts if getattr(measurement, name) is not None}


def test_how_the_machine_was_is_kept_of_what_was_timed(bench: Bench) -> None:
    bench.timed = timed("faster")
    bench.timed.clocks_of = {NULL: [1900.0, 1980.0, 1970.0], FIXED: [1755.0]}
    bench.timed.states = [
        {"slowed": [], "temperature_c": 60, "processes": 3},
        {"slowed": ["power limit"], "temperature_c": 64, "power_w": 690.0},
    ]
    bench.timed.first_ns = {NULL: [1e9], FIXED: [13e9]}
    measured = bench.measure(ITEM, "cuda", "gpu")
    found = measured.measurement.conditions
    assert isinstance(found, evidence.Conditions)
    assert found.sm_clock_mhz == {NULL: 1970.0, FIXED: 1755.0}
    assert (found.slowed, found.power_w, found.temperature_c) == (("power limit",), (690, 690), (60, 64))
    assert (found.processes, found.cpu, found.environment) == (3, "a CPU", {"CUBLAS_LOGINFO_DBG": "0"})
    assert found.device_busy_us == (8.0, 1.0)
    assert (found.flop, found.fetched) == ((10**9, 10**9), (10**6, 10**6))
    assert found.most_bytes_per_s == pytest.approx(4.4e12)
    assert found.start_up == evidence.StartUp(before_us=1e6, after_us=13e6, runs=26_000)
    assert "its first run takes 12 s longer, which 26,000 runs earn" in verdict(measured)[1]
    lines = measurement_lines(measured.measurement)
    assert "GPU held back by: power limit; GPU busy 8.00 µs (0%) -> 1.00 µs (0%)" in lines
    (entry,) = evidence.Evidence(
        schema="torchlint.evidence/1", rule=ITEM.rule.name, device="a-cuda", measurements=(measured.measurement,)
    ).measurements
    assert msgspec.json.decode(msgspec.json.encode(entry), type=evidence.Measurement) == entry


@pytest.mark.parametrize("device", ["sim", "cpu"])
def test_without_a_gpu_there_is_nothing_to_say_of_one(bench: Bench, device: str) -> None:
    bench.timed = timed("faster")
    measured = bench.measure(ITEM, device)
    found = measured.measurement.conditions
    if device == "sim":
        assert found is msgspec.UNSET
        assert "conditions" not in msgspec.to_builtins(measured.measurement)
    else:
        assert isinstance(found, evidence.Conditions)
        assert (found.slowed, found.device_busy_us, found.flop, found.most_flop_per_s) == (None,) * 4


@pytest.mark.parametrize(
    ("flop", "capability", "overall"),
    [(10**12, "9.0", "faster"), (10**13, "9.0", "suspicious"), (10**13, "99.0", "faster")],
)
def test_what_no_gpu_can_do_is_suspicious(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, flop: int, capability: str, overall: str
) -> None:
    """2 ms / 1.3 are enough for 3.6e12 operations at 8,192 a cycle on 132 multiprocessors at 1,980 MHz."""
    monkeypatch.setattr(Process, "flop", flop)
    bench.timed = timed("faster")
    bench.timed.clocks_of = {NULL: [1980.0], FIXED: [1980.0]}
    bench.capability = capability
    found = verdict(bench.measure(ITEM, "cuda", "gpu"))
    assert found[0] == overall
    if overall == "suspicious":
        assert found[1] == (
            "the fixed code is too good to be true: 6,500 TFLOP/s by its products alone, where this GPU can do 2,355"
        )


@pytest.mark.parametrize(
    ("fetched", "told", "overall"),
    [
        (6_000_000_000, {}, "faster"),
        (7_000_000_000, {}, "suspicious"),
        (7_000_000_000, {"memory bytes per second": "8000000000000"}, "faster"),
        (7_000_000_000, {"memory bytes per second": ""}, "faster"),
        (7_000_000_000, {"L2 bytes": "1000000000"}, "faster"),
        (7_000_000_000, {"L2 bytes": ""}, "faster"),
    ],
)
def test_what_no_memory_can_give_is_suspicious(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, fetched: int, told: dict[str, str], overall: str
) -> None:
    """2 ms / 1.3 are enough for 6.8e9 bytes at 4.4e12 a second, beside 5e7 that the cache may have kept."""
    monkeypatch.setattr(Process, "fetched", fetched)
    bench.timed = timed("faster")
    bench.settings = told
    found = verdict(bench.measure(ITEM, "cuda", "gpu"))
    assert found[0] == overall
    if overall == "suspicious":
        assert found[1] == (
            "the fixed code is too good to be true: 4.52 TB/s from its memory, by what was there before and is read, "
            "where this GPU can fetch 4.4"
        )


@pytest.mark.parametrize("device", ["cpu", "sim", "cuda"])
def test_a_pair_for_two_devices_cannot_run_on_one(bench: Bench, device: str) -> None:
    found = bench.measure(PARALLEL, device)
    assert verdict(found) == ("cannot-run", "needs 2 CUDA devices")
    assert figures(found.measurement) == set()
    assert (bench.asked, found.cut, found.broken) == ([], False, False)
    assert found.measurement.device.name == (SIMULATED if device == "sim" else f"a {device}")
    assert found.measurement.software.torch == "2.13.0"


def test_a_pair_for_two_devices_runs_on_two(bench: Bench) -> None:
    bench.timed = timed("faster")
    assert verdict(bench.measure(PARALLEL, "cuda", devices=2)) == ("faster", "")


@pytest.mark.slow
def test_a_pair_for_two_devices_through_real_processes() -> None:
    command = [sys.executable, "-m", "torchlint", "verify", "--rule", "data-parallel", "--output-format", "json"]
    done = subprocess.run([*command, "--device", "cpu"], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)
    assert found["verdict"] == {"overall": "cannot-run", "reason": "needs 2 CUDA devices"}
    assert found["time"] is None
    assert found["device"]["name"]


def test_on_a_gpu_all_is_looked_at(bench: Bench) -> None:
    bench.timed = timed("faster")
    found = bench.measure(ITEM, "cuda")
    assert verdict(found) == ("faster", "")
    assert bench.asked == ["reference", "check", "time"]
    assert bench.metric == "wall"
    assert figures(found.measurement) == {"numerics", "counts", "memory", "time", "protocol", "controls"}
    measurement = found.measurement
    assert measurement.counts
    assert measurement.counts.source == "profiler"
    assert (measurement.counts.before["syncs"], measurement.counts.after["syncs"]) == (8, 1)
    assert measurement.memory
    assert (measurement.memory.before, measurement.memory.after) == (400, 300)
    assert measurement.time
    assert measurement.time.baseline_us == 2000
    assert measurement.controls
    assert measurement.controls.handicap_seen
    assert measurement.controls.handicap
    assert measurement.controls.handicap.log_ratios == (-0.05,) * 4


@pytest.mark.parametrize("at_once", [1, 16])
def test_what_is_not_timed_is_handed_on(bench: Bench, at_once: int) -> None:
    found = bench.phases(ITEM, "cuda", ("numerics", "counts"), at_once=at_once)
    assert bench.asked == ["reference", "check"]
    session = cast("Made", bench.session)
    assert session.forgotten, "what was captured is not kept while it is counted"
    assert verdict(found)[0] == "fewer-syncs"
    assert found.looked
    assert found.looked.counts == ({"syncs": 8.0, "launches": 3.0}, {"syncs": 1.0, "launches": 3.0})
    assert (found.looked.memory, found.looked.flop) == ((400, 300), (10**9, 10**9))
    assert found.looked.busy_ns == ((8000, 1000) if at_once == 1 else None), "which others would make longer"
    assert msgspec.convert(msgspec.to_builtins(found.looked), Looked) == found.looked


def test_several_pairs_at_once_share_the_threads(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 16)
    threads = []
    for at_once in (1, 4, 16):
        bench.phases(ITEM, "cuda", ("numerics",), at_once=at_once)
        threads.append(cast("Made", bench.session).subject.threads)
    assert threads == [8, 2, 1]


def test_what_was_looked_at_is_timed_without_another_look(bench: Bench) -> None:
    looked = bench.phases(ITEM, "cuda", ("numerics", "counts")).looked
    bench.asked.clear()
    bench.timed = timed("faster")
    found = bench.phases(ITEM, "cuda", ("time",), looked=looked)
    assert bench.asked == ["time"]
    assert found.looked is None
    assert verdict(found) == ("faster", "")
    assert figures(found.measurement) == {"numerics", "counts", "memory", "time", "protocol", "controls"}
    assert found.measurement.provenance.command == (
        "torchlint verify --rule X --phase numerics,counts && torchlint verify --rule X --phase time"
    )
    whole = bench.measure(ITEM, "cuda")
    assert found.measurement.counts == whole.measurement.counts
    assert found.measurement.numerics == whole.measurement.numerics


def test_how_busy_the_device_is_is_asked_where_others_ran_beside_it(bench: Bench) -> None:
    bench.timed = timed("faster")
    bench.measure(ITEM, "cuda")
    asked = [bench.busy]
    looked = bench.phases(ITEM, "cuda", ("numerics", "counts"), at_once=16).looked
    bench.timed.busy_ns = {NULL: 9000.0, FIXED: 2000.0}
    found = bench.phases(ITEM, "cuda", ("time",), looked=looked).measurement
    assert [*asked, bench.busy] == [False, True], "it is known where both were looked at alone"
    assert isinstance(found.conditions, evidence.Conditions)
    assert found.conditions.device_busy_us == (9.0, 2.0)


def test_what_was_only_compared_is_counted_before_it_is_timed(bench: Bench) -> None:
    looked = bench.phases(ITEM, "cuda", ("numerics",)).looked
    assert looked
    assert (looked.counted, looked.counts) == (False, None)
    bench.timed = timed("faster")
    found = bench.phases(ITEM, "cuda", pairs.PHASES, looked=looked)
    assert bench.asked == ["reference", "check", "time"]
    assert found.measurement.counts


@pytest.mark.parametrize("how", ["wrong", "fails", "sim", "decided", "cannot"])
def test_what_is_settled_is_not_handed_on(bench: Bench, how: str) -> None:
    bench.timed = timed("faster")
    if how == "wrong":
        bench.numerics = WRONG
    if how == "fails":
        bench.fails = {FIXED: "count"}
    device = "sim" if how == "sim" else "cuda"
    phases = pairs.PHASES if how == "decided" else ("numerics", "counts")
    assert bench.phases(PARALLEL if how == "cannot" else ITEM, device, phases).looked is None


def test_what_could_not_be_timed_to_its_end_is_handed_on(bench: Bench) -> None:
    bench.timed = timed("inconclusive", replicates=3)
    found = bench.measure(ITEM, "cuda")
    assert found.cut
    assert found.looked


@pytest.mark.parametrize("device", ["rocm", "mps", "xpu"])
def test_on_another_accelerator_it_is_compared_and_timed_by_the_wall_and_not_counted(bench: Bench, device: str) -> None:
    bench.timed = timed("faster")
    found = bench.measure(ITEM, device, "gpu")
    assert verdict(found) == ("faster", "")
    assert (bench.asked, bench.metric) == (["reference", "check", "time"], "wall")
    assert figures(found.measurement) == {"numerics", "time", "protocol", "controls"}


def test_the_simulated_device_counts_and_has_no_time(bench: Bench) -> None:
    found = bench.measure(ITEM, "sim")
    assert verdict(found) == ("fewer-syncs", "")
    assert figures(found.measurement) == {"numerics", "counts", "memory"}
    assert found.measurement.counts
    assert found.measurement.counts.source == "sim"
    assert found.measurement.device.cpu_cores is None


def test_the_cpu_is_timed_and_not_counted(bench: Bench) -> None:
    bench.timed = timed("no-measurable-difference", 1.0)
    found = bench.measure(ITEM, "cpu")
    assert verdict(found) == ("no-measurable-difference", "")
    assert bench.metric == "cpu-time"
    assert found.measurement.counts is None
    assert found.measurement.device.cpu_cores == 4


@pytest.mark.parametrize("arm", [NULL, FIXED])
def test_counts_that_cannot_be_right_are_not_given(bench: Bench, arm: str) -> None:
    bench.doubts = {arm: "the profiler saw nothing"}
    bench.timed = timed("no-measurable-difference", 1.0, 16)
    found = bench.measure(ITEM, "cuda", "gpu")
    assert found.measurement.counts is None
    assert found.measurement.memory  # which the allocator counts, and not the profiler
    assert verdict(found) == ("no-measurable-difference", "not counted: the profiler saw nothing")


@pytest.mark.parametrize("waits", [8, 1])
def test_bytes_that_torch_tells_of_one_arm_only_are_known_of_none(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, waits: int
) -> None:
    """Where torch does not tell the bytes of a copy, those of an arm without copies are known: there are none."""
    monkeypatch.setattr(Process, "tells", {waits: {"h2d_bytes": 0}})
    found = bench.phases(ITEM, "cuda", ("numerics", "counts"))
    assert found.looked
    assert found.looked.counts == ({"syncs": 8.0, "launches": 3.0}, {"syncs": 1.0, "launches": 3.0})
    assert "syncs 8 -> 1" in measurement_lines(found.measurement)


def test_loaders_are_timed_by_the_wall(bench: Bench) -> None:
    bench.timed = timed("faster")
    bench.measure(workload(find("dataloader-no-workers")), "cpu")
    assert bench.metric == "wall"


def test_what_is_wrong_is_neither_counted_nor_timed(bench: Bench) -> None:
    bench.numerics = WRONG
    found = bench.measure(ITEM, "cuda")
    assert verdict(found) == ("wrong-result", "step0[0] is off")
    assert bench.asked == ["reference", "check"]
    assert figures(found.measurement) == {"numerics"}


def test_a_fixed_file_that_fails_is_an_error_of_the_fix(bench: Bench) -> None:
    bench.numerics = ArmError("exception", "ValueError: planted")
    found = bench.measure(ITEM, "cuda")
    assert verdict(found) == ("error", "ValueError: planted")
    assert (bench.asked, found.broken) == (["reference", "check"], False)


def test_a_fixed_file_that_fails_while_it_is_counted(bench: Bench) -> None:
    bench.fails = {FIXED: "count"}
    found = bench.measure(ITEM, "cuda")
    assert verdict(found) == ("error", "planted in count")
    assert figures(found.measurement) == {"numerics"}


@pytest.mark.parametrize(("pair", "command"), [(ITEM, "check"), (ITEM, "count"), (PARALLEL, "load")])
def test_a_slow_file_that_fails_says_nothing_of_the_fix(bench: Bench, pair: Workload, command: str) -> None:
    bench.fails = {NULL: command}
    found = bench.measure(pair, "sim")
    overall, reason = verdict(found)
    assert overall == "cannot-run"
    assert reason.startswith("the slow file fails: ")
    assert found.broken


def test_a_fix_that_leaves_processes_behind_is_suspicious(bench: Bench) -> None:
    bench.left = {FIXED: ["1 process that outlived it"]}
    overall, reason = verdict(bench.measure(ITEM, "sim"))
    assert (overall, reason) == ("suspicious", "the fixed code leaves something behind: 1 process that outlived it")
    bench.left = {FIXED: ["1 process that outlived it"], NULL: ["1 process that outlived it"]}
    assert verdict(bench.measure(ITEM, "sim"))[0] == "fewer-syncs"


@pytest.mark.parametrize("where", ["reference", "check", "count"])
@pytest.mark.parametrize("late", [True, False])
def test_an_arm_that_the_time_did_not_suffice_for_is_not_blamed(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, where: str, *, late: bool
) -> None:
    too_long = ArmError("timeout", "no answer within 5 s")

    def fails(running: Made, *_: object) -> None:
        running.late = late
        assert running.deadline == math.inf, "as the limits say"
        raise timing.BaselineError(Failure(too_long.kind, str(too_long))) if where == "reference" else too_long

    if where == "count":
        monkeypatch.setattr(pairs, "_count", fails)
    else:
        monkeypatch.setattr(checks, where, fails)
    if where == "count" and not late:
        with pytest.raises(ArmError):
            bench.measure(ITEM, "cuda")
        return
    found = bench.measure(ITEM, "cuda")
    assert found.late is late
    overall, reason = verdict(found)
    if late:
        assert (overall, found.cut, found.broken) == ("inconclusive", True, False)
        assert reason == "the time for measuring ended before the results were compared and counted"
    else:
        assert overall == ("cannot-run" if where == "reference" else "timeout")


@pytest.mark.parametrize("late", [True, False])
def test_a_comparison_that_the_time_did_not_suffice_for_says_nothing(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, *, late: bool
) -> None:
    def compared(running: Made, *_: object) -> dict[str, Any]:
        running.late = late
        return {"verdict": "not-checked", "reason": "no answer within 5 s", "tensors": 0}

    monkeypatch.setattr(checks, "check", compared)
    found = bench.phases(ITEM, "cuda", ("numerics",))
    assert found.late is late
    assert (found.looked is None) is late


def test_while_it_is_timed_no_arm_is_cut_short(bench: Bench) -> None:
    bench.timed = timed("faster")
    bench.measure(ITEM, "cuda")
    assert bench.session
    assert bench.session.deadline == math.inf


@pytest.mark.parametrize(
    ("found", "replicates", "cut"),
    [("inconclusive", 5, True), ("inconclusive", 0, True), ("inconclusive", 16, False), ("faster", 4, False)],
)
def test_what_the_end_of_the_time_cut_short_is_known(
    bench: Bench, found: stats.Verdict, replicates: int, *, cut: bool
) -> None:
    bench.timed = timed(found, replicates=replicates)
    measured = bench.measure(ITEM, "cpu")
    assert measured.cut is cut
    assert (measured.measurement.time is None) == (replicates == 0)
    reason = f"the time for measuring ended after {replicates} replicates" if cut else ""
    assert verdict(measured) == (found, reason)


@pytest.mark.parametrize("size", ["nohelp", "nohelp-other"])
@pytest.mark.parametrize("found", ["no-measurable-difference", "slower", "inconclusive"])
def test_where_a_fix_does_not_pay_the_pair_says_why(bench: Bench, size: str, found: stats.Verdict) -> None:
    bench.timed = timed(found, 0.9, 16)
    pair = replace(ITEM, sizes={**ITEM.sizes, "nohelp-other": {"steps": 1}})
    assert verdict(bench.measure(pair, "cpu", size)) == (found, ITEM.nohelp)


def test_fewer_waits_that_save_no_time_do_not_pay(bench: Bench) -> None:
    bench.timed = timed("no-measurable-difference", 1.0)
    assert verdict(bench.measure(ITEM, "cuda", "nohelp")) == ("fewer-syncs", ITEM.nohelp)
    assert verdict(bench.measure(ITEM, "cuda", "gpu")) == ("fewer-syncs", "")
    assert verdict(bench.measure(ITEM, "sim", "nohelp")) == ("fewer-syncs", "")


def test_a_late_start_is_told_with_what_earns_it(bench: Bench) -> None:
    bench.timed = timed("faster", 2.0)
    bench.timed.first_ns = {NULL: [1e9], FIXED: [21e9]}
    # A run takes 2 ms, and half of that is saved.
    assert verdict(bench.measure(ITEM, "cpu", "gpu")) == (
        "faster",
        "its first run takes 20 s longer, which 20,000 runs earn",
    )
    bench.timed.first_ns = {NULL: [1e9], FIXED: [1.5e9]}
    assert verdict(bench.measure(ITEM, "cpu", "gpu")) == ("faster", "")


def test_a_gain_that_is_understated_is_said_to_be_at_least_that(bench: Bench) -> None:
    bench.timed = timed("faster", 100.0)
    bench.timed.inner = 10  # of 2 ms each: a sample of the fixed arm takes 0.2 ms
    assert verdict(bench.measure(ITEM, "cpu", "gpu"))[1].startswith("the gain is at least this")
    bench.timed = timed("faster", 10.0)
    bench.timed.inner = 10
    assert verdict(bench.measure(ITEM, "cpu", "gpu")) == ("faster", "")


def test_where_it_pays_the_sentence_would_be_a_lie(bench: Bench) -> None:
    bench.timed = timed("faster")
    assert verdict(bench.measure(ITEM, "cpu", "nohelp")) == ("faster", "")
    bench.timed = timed("slower", 0.9)
    assert verdict(bench.measure(ITEM, "cpu", "gpu")) == ("slower", "")


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("torchlint verify --rule ALL --evidence fixtures", "torchlint verify --rule ALL --evidence fixtures"),
        ("torchlint verify --evidence /home/me/it/fixtures", "torchlint verify --evidence fixtures"),
        ("torchlint verify --evidence=/home/me/fixtures", "torchlint verify --evidence=fixtures"),
        ("torchlint verify --python '/opt/my python/bin/python3'", "torchlint verify --python python3"),
    ],
)
def test_a_command_does_not_say_where_a_tree_lies(command: str, shown: str) -> None:
    assert portable(command) == shown
