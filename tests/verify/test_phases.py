"""Pairs are compared and counted several at once, kept for the run that times them, and timed alone."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any, cast

import pytest
from evidence_samples import GPU, changed

from torchlint import evidence
from torchlint.evidence import Verdict
from torchlint.registry import find
from torchlint.verify import abreast, catalogue, pairs, timing
from torchlint.verify.journal import Journal
from torchlint.verify.looked import Looked
from torchlint.verify.machine import Clerk, Machine, UsageError
from torchlint.verify.process import ArmError, Worker
from torchlint.verify.schedule import Virtual
from torchlint.verify.workload import workload

if TYPE_CHECKING:
    from pathlib import Path

    from torchlint.verify.schedule import Piece
    from torchlint.verify.workload import Workload

H200 = Machine(cuda=True, devices=1, why="", name="NVIDIA H200", processor="AMD EPYC 9654", torch="2.11.0+cu130")
KNOWN = cache(workload)
LOOKS = ("numerics", "counts")
FOUND = Looked(
    numerics={"verdict": "same", "tensors": 2, "bit_equal": 2},
    torch="2.11.0+cu130",
    command="torchlint verify --phase numerics,counts",
    counted=True,
    counts=({"syncs": 8.0}, {"syncs": 1.0}),
    memory=(400, 300),
)
ITEM, EVAL, OTHER = "item-in-train-loop", "item-in-eval-loop", "repeated-item"


def measurement(pair: Workload, size: str, overall: evidence.Overall = "faster") -> evidence.Measurement:
    found = changed(GPU, subject={"rule": pair.rule.name, "size": size, "fix": pair.fix, **pair.digests})
    return found if overall == "faster" else changed(found, verdict=Verdict(overall=overall, reason="planted"))


def _as_it_is(found: pairs.Measured) -> pairs.Measured:
    return found


@dataclass
class Bench:
    """Looks and times by a clock that jumps; `planned` is what becomes of a rule the first time."""

    planned: dict[str, Callable[[pairs.Measured], pairs.Measured]] = field(default_factory=dict)
    shown: list[str] = field(default_factory=list)
    warned: list[str] = field(default_factory=list)
    alone: list[tuple[str, Looked | None]] = field(default_factory=list)

    def look(self, chosen: catalogue.Selected, seconds: float = 1e9, takes: float = 38.0) -> catalogue.Outcome:
        crew = Virtual(4, lambda _: takes, self.looked)
        order = self.order(LOOKS, seconds, 4)
        return catalogue.look(chosen, order, crew, cast("Clerk", None), H200, self.listener())

    def looked(self, piece: Piece) -> pairs.Measured:
        pair, size = piece
        untimed = changed(measurement(pair, size, "fewer-syncs"), time=None, protocol=None, controls=None)
        found = pairs.Measured(untimed, looked=FOUND)
        return self.planned.pop(pair.rule.name, _as_it_is)(found)

    def time(self, chosen: catalogue.Selected, phases: tuple[str, ...] = ("time",)) -> catalogue.Outcome:
        return catalogue.measure(chosen, self.order(phases, 1e9, 1), cast("Clerk", None), H200, self.listener())

    def measure(
        self,
        pair: Workload,
        size: str,
        order: pairs.Order,
        _clerk: object,
        _machine: object,
        _note: object,
        looked: Looked | None,
    ) -> pairs.Measured:
        self.alone.append((pair.rule.name, looked))
        if "time" not in order.phases:
            return self.looked((pair, size))
        found = pairs.Measured(measurement(pair, size))
        return self.planned.pop(pair.rule.name, _as_it_is)(found)

    def order(self, phases: tuple[str, ...], seconds: float, at_once: int) -> pairs.Order:
        limits = timing.Limits(16, seconds)
        return pairs.Order("cuda", limits, 1, "python", "torchlint verify --phase", phases, at_once)

    def listener(self) -> catalogue.Listener:
        def show(measured: pairs.Measured) -> None:
            self.shown.append(f"{measured.measurement.subject.rule} {measured.measurement.verdict.overall}")

        return catalogue.Listener(print, show, self.warned.append)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Bench:
    made = Bench()
    monkeypatch.setattr(pairs, "measure", made.measure)
    monkeypatch.setattr(catalogue, "workload", KNOWN)
    monkeypatch.setattr(time, "monotonic", lambda: 5.0)
    return made


def three(folder: Path) -> catalogue.Selected:
    return catalogue.selected([ITEM, EVAL, OTHER], ["gpu"], "cuda", folder)


def written(folder: Path) -> list[str]:
    return sorted(path.parents[1].name for path in folder.glob("*/evidence/nvidia-h200.json"))


def timed(folder: Path) -> list[str]:
    files = folder.glob("*/evidence/nvidia-h200.json")
    found = {path.parents[1].name: evidence.read(path.read_bytes(), str(path)).measurements for path in files}
    return sorted(name for name, measurements in found.items() if all(each.time for each in measurements))


def stale(folder: Path, phases: tuple[str, ...] = pairs.PHASES, machine: Machine = H200) -> list[str]:
    return [pair.rule.name for pair, _ in catalogue.stale(three(folder), "cuda", machine, phases).pieces]


def test_what_was_looked_at_is_evidence_that_lacks_its_time(bench: Bench, tmp_path: Path) -> None:
    outcome = bench.look(three(tmp_path))
    assert outcome == catalogue.Outcome(good=True, written=True, left=0)
    assert len(written(tmp_path)) == 3
    assert timed(tmp_path) == []
    assert stale(tmp_path, LOOKS) == [], "which another slice of the phase need not look at again"
    assert sorted(stale(tmp_path)) == sorted([ITEM, EVAL, OTHER]), "and which is to be timed"
    bench.time(three(tmp_path))
    assert dict(bench.alone) == dict.fromkeys([ITEM, EVAL, OTHER], FOUND), "nothing is looked at again"
    assert len(timed(tmp_path)) == 3
    assert stale(tmp_path) == []
    bench.look(three(tmp_path))
    assert len(timed(tmp_path)) == 3, "what says less does not take its place"
    bench.time(three(tmp_path))
    journal = Journal.of(tmp_path, H200.name)
    assert journal.looked(KNOWN(find(ITEM)), "gpu", H200.torch) is None, "it is evidence now"
    assert journal.seconds(KNOWN(find(ITEM)), "gpu", LOOKS) == 38


def test_a_slice_goes_on_where_the_one_before_stopped(bench: Bench, tmp_path: Path) -> None:
    chosen = catalogue.selected(["ALL"], ["gpu"], "cuda", tmp_path)
    left = len(chosen.pieces)
    slices = 0
    while left:
        slices += 1
        outcome = bench.look(catalogue.stale(chosen, "cuda", H200, LOOKS), 540.0)
        assert outcome.left < left, "each slice looks at some"
        left = outcome.left
    assert len(bench.shown) == len(set(bench.shown)) == len(chosen.pieces), "none is looked at twice"
    assert slices == 2, "14 rounds of four fit into nine minutes"


@pytest.mark.parametrize("change", ["pair", "torch"])
def test_what_was_found_of_another_pair_or_torch_is_looked_at_again(bench: Bench, tmp_path: Path, change: str) -> None:
    bench.look(three(tmp_path))
    pair = KNOWN(find(ITEM))
    journal = Journal.of(tmp_path, H200.name)
    assert journal.looked(pair, "gpu", "2.11.3") == FOUND
    if change == "pair":
        assert (
            journal.looked(replace(pair, digests={**pair.digests, "sha256_after": "c" * 64}), "gpu", "2.11.0") is None
        )
    else:
        assert stale(tmp_path, LOOKS, replace(H200, torch="2.12.0")) != []


def test_what_is_only_compared_is_still_to_be_counted(bench: Bench, tmp_path: Path) -> None:
    bench.planned = dict.fromkeys((ITEM, EVAL, OTHER), uncounted)
    bench.look(three(tmp_path))
    assert stale(tmp_path, ("numerics",)) == []
    assert len(stale(tmp_path, LOOKS)) == 3


def uncounted(found: pairs.Measured) -> pairs.Measured:
    assert found.looked
    looked = Looked(numerics=found.looked.numerics, torch=found.looked.torch, command="")
    undecided = Verdict(overall="inconclusive", reason="time was not measured")
    return replace(found, measurement=changed(found.measurement, counts=None, verdict=undecided), looked=looked)


def test_what_is_wrong_is_evidence_at_once_and_never_timed(bench: Bench, tmp_path: Path) -> None:
    bench.planned = {
        EVAL: lambda found: replace(
            found, measurement=measurement(KNOWN(find(EVAL)), "gpu", "wrong-result"), looked=None
        )
    }
    assert not bench.look(three(tmp_path)).good
    assert "item_in_eval_loop" in written(tmp_path)
    assert EVAL not in stale(tmp_path)
    outcome = bench.time(three(tmp_path))
    assert sorted(name for name, _ in bench.alone) == sorted([ITEM, OTHER])
    assert outcome.left == 0, "which more time would not change"
    assert bench.warned == [
        "1 of 3 sizes cannot be timed yet: what they compute was not compared; `--phase numerics,counts` does that"
    ]


@pytest.mark.parametrize("how", ["oom", "timeout", "broken", "not-checked"])
def test_what_fails_beside_others_is_believed_when_it_fails_alone(bench: Bench, tmp_path: Path, how: str) -> None:
    def fail(found: pairs.Measured) -> pairs.Measured:
        if how == "broken":
            return replace(found, broken=True, looked=None)
        if how == "not-checked":
            return replace(found, measurement=changed(found.measurement, numerics={"verdict": how}))
        overall = cast("evidence.Overall", how)
        return replace(found, measurement=measurement(KNOWN(find(EVAL)), "gpu", overall), looked=None)

    bench.planned = {EVAL: fail}
    outcome = bench.look(three(tmp_path))
    assert bench.alone == [(EVAL, None)]
    assert outcome == catalogue.Outcome(good=True, written=True, left=0)
    assert bench.shown[-1] == f"{EVAL} fewer-syncs", "what came of it beside others is not even shown"
    assert len(bench.shown) == 3
    assert stale(tmp_path, LOOKS) == []


def test_what_could_not_be_timed_to_its_end_is_not_compared_again(bench: Bench, tmp_path: Path) -> None:
    bench.planned = {EVAL: lambda found: replace(found, cut=True, looked=FOUND)}
    order = [pair.rule.name for pair, _ in three(tmp_path).pieces]
    bench.time(three(tmp_path), pairs.PHASES)
    cut = order[order.index(EVAL) :]
    assert stale(tmp_path) == cut
    bench.alone.clear()
    bench.time(catalogue.stale(three(tmp_path), "cuda", H200), pairs.PHASES)
    assert bench.alone == [(name, FOUND if name == EVAL else None) for name in cut]
    assert len(written(tmp_path)) == 3


def test_without_stale_all_is_measured_anew(bench: Bench, tmp_path: Path) -> None:
    bench.look(three(tmp_path))
    bench.time(three(tmp_path), pairs.PHASES)
    assert {looked for _, looked in bench.alone} == {None}


def test_damage_is_no_memory(tmp_path: Path) -> None:
    pair = KNOWN(find(ITEM))
    journal = Journal.of(tmp_path, H200.name)
    journal.keep(pair, "gpu", FOUND)
    path = next(tmp_path.iterdir())
    path.write_text(path.read_text(encoding="utf-8").replace('"numerics"', '"numbers"'), encoding="utf-8")
    assert Journal.of(tmp_path, H200.name).looked(pair, "gpu", H200.torch) is None


# The threads


def order(at_once: int) -> pairs.Order:
    return pairs.Order("sim", timing.Limits(), 1, sys.executable, "torchlint verify", LOOKS, at_once)


@dataclass
class Clerks:
    """Stands for the clerks of all threads."""

    made: int = 0
    closed: int = 0

    def __call__(self, scratch: Path, _python: str, _given_up: Callable[[], bool], *, at_once: int) -> Clerks:
        assert scratch.is_dir()
        assert at_once == 2
        self.made += 1
        return self

    def close(self) -> None:
        self.closed += 1


@pytest.fixture
def clerks(monkeypatch: pytest.MonkeyPatch) -> Clerks:
    made = Clerks()
    monkeypatch.setattr(abreast, "Clerk", made)
    return made


PIECES = [(KNOWN(find(name)), "smoke") for name in (ITEM, EVAL, OTHER)]


def test_threads_work_beside_each_other_each_with_a_clerk(monkeypatch: pytest.MonkeyPatch, clerks: Clerks) -> None:
    beside = threading.Barrier(2, timeout=20)

    def measure(pair: Workload, size: str, asked: pairs.Order, *_: object, **known: Any) -> pairs.Measured:  # noqa: ANN401 - as it is called
        assert (asked.at_once, known["looked"]) == (2, None)
        if pair.rule.name != OTHER:
            beside.wait()  # which one after the other would never pass
        return pairs.Measured(measurement(pair, size))

    monkeypatch.setattr(pairs, "measure", measure)
    notes: list[str] = []
    with abreast.threads(order(2), H200, notes.append, lambda _: None) as crew:
        for piece in PIECES[:2]:
            crew.begin(piece)
        ended = [crew.ended()[0][0].rule.name for _ in range(2)]
        crew.begin(PIECES[2])
        ended.append(crew.ended()[0][0].rule.name)
    assert sorted(ended) == sorted([ITEM, EVAL, OTHER])
    assert "2 at once: TL301, TL302" in notes
    assert clerks.made == clerks.closed <= 2


def test_what_a_thread_raises_is_raised_where_it_is_waited_for(monkeypatch: pytest.MonkeyPatch, clerks: Clerks) -> None:
    def measure(*_: object, **__: object) -> pairs.Measured:
        raise UsageError("planted")

    monkeypatch.setattr(pairs, "measure", measure)
    with abreast.threads(order(2), H200, print, lambda _: None) as crew:
        crew.begin(PIECES[0])
        with pytest.raises(UsageError, match="planted"):
            crew.ended()
    assert clerks.made == clerks.closed == 1


def test_clerks_share_the_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = []

    class Started:
        """A process that says with how many threads it is to compute."""

        def __init__(self, config: dict[str, Any], *_: object, **__: object) -> None:
            given.append(config["threads"])

        def ready(self, _timeout: float) -> None:
            """It is."""

    monkeypatch.setattr("torchlint.verify.machine.Worker", Started)
    monkeypatch.setattr("torchlint.verify.machine.os.cpu_count", lambda: 16)
    for at_once in (1, 4, 16, 32):
        Clerk(tmp_path, sys.executable, at_once=at_once)
    assert given == [16, 4, 1, 1]


def test_once_nobody_waits_the_threads_end(monkeypatch: pytest.MonkeyPatch, clerks: Clerks) -> None:
    begun = threading.Event()

    def measure(_pair: object, _size: str, asked: pairs.Order, *_: object, **__: object) -> pairs.Measured:
        begun.set()
        until = time.monotonic() + 60
        while not asked.given_up():
            assert time.monotonic() < until
            time.sleep(0.01)
        raise ArmError("timeout", "given up")

    monkeypatch.setattr(pairs, "measure", measure)
    with contextlib.suppress(KeyboardInterrupt), abreast.threads(order(2), H200, print, lambda _: None) as crew:
        crew.begin(PIECES[0])
        assert begun.wait(60)
        raise KeyboardInterrupt
    assert clerks.closed == 1
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("pairs-")]


def test_a_process_that_nobody_waits_for_is_ended(tmp_path: Path) -> None:
    given_up = threading.Event()
    worker = Worker({}, tmp_path, tag="", module="clerk", given_up=given_up.is_set)
    try:
        given_up.set()
        begin = time.monotonic()
        with pytest.raises(ArmError, match="given up"):
            worker.ready(300)
        assert time.monotonic() - begin < 10
    finally:
        worker.close(politely=False)


def test_there_is_work_for_each_core_and_memory_for_each_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(16)), raising=False)
    monkeypatch.setattr(abreast, "_memory", lambda: 128 << 30)
    assert abreast.at_once() == 16
    monkeypatch.setattr(abreast, "_memory", lambda: 16 << 30)
    assert abreast.at_once() == 5
    monkeypatch.setattr(abreast, "_memory", lambda: 1 << 30)
    assert abreast.at_once() == 1


# Through the command line


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--phase", "counting"], "`--phase counting`: the phases are numerics, counts, time"),
        (["--phase", "counts"], "`--phase numerics,counts` is followed by `--phase time`"),
        (["--phase", "time"], "goes on with what `--phase numerics,counts` left in `--evidence FOLDER`"),
        (["--phase", "time", "--evidence", "."], "the simulated device has no time"),
    ],
)
def test_phases_that_make_no_sense_are_refused(words: list[str], problem: str) -> None:
    command = [sys.executable, "-m", "torchlint", "verify", "--rule", ITEM, "--device", "sim", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2
    assert problem in " ".join(done.stderr.split())


@pytest.mark.parametrize("option", [["--plan"], ["--phase", "numerics"]])
def test_a_program_has_no_phases(option: list[str]) -> None:
    command = [sys.executable, "-m", "torchlint", "verify", "train.py", *option]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 2
    assert "is about the pairs of rules: it goes with `--rule`" in done.stderr


@pytest.mark.slow
def test_the_phases_through_real_processes(tmp_path: Path) -> None:
    def run(*words: str) -> str:
        command = [sys.executable, "-m", "torchlint", "verify", "--device", "cpu", "--evidence", str(tmp_path)]
        command += ["--stale", "--max-replicates", "4", *words, "--rule", ITEM, "--rule", OTHER]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "2 sizes on cpu (numerics)" in run("--phase", "numerics", "--plan")
    assert "numerics" in run("--phase", "numerics,counts")
    assert len([*tmp_path.glob("*/evidence/*.json")]) == 2
    assert run("--phase", "numerics,counts") == "nothing to measure: the evidence of this device still holds\n"
    plan = run("--phase", "time", "--plan")
    assert "2 sizes on cpu (time)" in plan
    run("--phase", "time")
    (found, _) = (
        evidence.read(path.read_bytes(), str(path)).measurements[0] for path in tmp_path.glob("*/evidence/*.json")
    )
    assert found.numerics
    assert found.time
    assert found.provenance.command.count("--phase") == 2
    assert run() == "nothing to measure: the evidence of this device still holds\n"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_an_interrupt_ends_all_that_is_under_way(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    folder.mkdir()
    command = [sys.executable, "-m", "torchlint", "verify", "--device", "cpu", "--phase", "numerics,counts"]
    command += ["--rule", ITEM, "--rule", OTHER]
    env = {**os.environ, "TMPDIR": str(folder)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env) as process:
        until = time.monotonic() + 120
        while len([*folder.glob("torchlint-verify-*/0001")]) < min(abreast.at_once(), 2):
            assert process.poll() is None
            assert time.monotonic() < until
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        _, error = process.communicate(timeout=60)
    assert (process.returncode, error) == (130, "torchlint: interrupted\n")
    assert list(folder.iterdir()) == []
