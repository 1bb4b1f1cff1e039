"""Replicates, looks and controls, with processes whose times are made up."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, cast

import pytest

from torchlint.verify import replicate, timing
from torchlint.verify.ablation import ALL, HANDICAP, NULL, ORIGINAL, Comparison, Stage, Version, stage_a
from torchlint.verify.arms import Arm, Patience, Subject
from torchlint.verify.process import ArmError
from torchlint.verify.replicate import block_time, undisturbed
from torchlint.verify.timing import BaselineError, Limits, Timed, host_busy, measure

if TYPE_CHECKING:
    from torchlint.verify.session import Session

UNIT_NS = 2_000_000.0
HANDICAP_ASKED = Comparison(HANDICAP, NULL, "handicap")


@dataclass
class Played:
    """How an arm behaves: its time a unit, relative to the null arm's, and what it does at a command."""

    time: float = 1.0
    noise: float = 0.002
    busy: float = 0.0
    loading: int = 0
    fails: str = ""
    kind: str = "crash"
    after: int = 0
    mhz: Callable[[], float | None] = lambda: None
    samples: Sequence[Sequence[float]] = ()
    first_ns: float = 0.0
    needs: int = 1
    doubt: str = ""


@dataclass
class Process:
    """Stands for a worker, which has to be awake when it is asked and is frozen in between."""

    name: str
    arm: Played
    session: Made
    inner: int = 0
    awake: bool = True
    closed: bool = False
    started: bool = False
    told: str = ""

    def thaw(self) -> None:
        self.awake = True

    def freeze(self) -> None:
        self.awake = False

    def close(self) -> None:
        self.closed = True

    def tell(self, command: str, **message: Any) -> None:  # noqa: ANN401 - JSON
        assert self.awake
        assert not any(each.told for each in self.session.live if each.inner), "nothing goes on beside a block"
        self.told = command
        self.session.asked.append((self.name, f"tell {command}", message))

    def answer(self, timeout: float) -> dict[str, Any]:
        command, self.told = self.told, ""
        return self.ask(command, timeout)

    def ask(self, command: str, timeout: float, **message: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        assert not any(each.told for each in self.session.live) or command == "start", "the others are setting up"
        awake = [each.name for each in self.session.live if each.awake and not each.closed and each.inner]
        assert self.awake
        assert not self.closed
        assert timeout > 0
        self.session.asked.append((self.name, command, message))
        if self.arm.fails == command and self.session.replicates > self.arm.after:
            raise ArmError(self.arm.kind, f"planted in {command}")
        if command == "start":
            self.started = True
            taken = sum(each.arm.needs for each in self.session.live if each.started and not each.closed)
            if taken > self.session.card:
                raise ArmError("oom", "CUDA out of memory")
        if command == "room":
            known = self.session.tells_room
            return {"need": self.arm.needs if known else None, "there": self.session.card if known else None}
        if command == "start":
            return {"workers": 0, "scaled": 0}
        if command == "calibrate":
            return {"inner": 10, "ns": UNIT_NS, "cpu_ns": UNIT_NS / 2, "first_ns": self.arm.first_ns}
        if command == "warm":
            return {
                "blocks": 3,
                "workers": self.arm.loading,
                "first_ns": 0.0 if self.name == NULL else self.arm.first_ns,
            }
        if command == "clock":
            return {"mhz": self.arm.mhz()}
        if command == "count":
            assert message == {"units": 1, "warm": 0}
            return {"units": 1, "busy_ns": self.arm.time * 1000, "doubt": self.arm.doubt}
        assert command == "block"
        assert awake in ([], [self.name])
        self.inner = message["inner"]
        delay = message["handicap_ns"]
        noise = math.exp(self.session.random.gauss(0, self.arm.noise))
        unit = UNIT_NS * self.arm.time * noise + delay
        if self.arm.samples:
            return {"samples": self.arm.samples, "busy": self.arm.busy}
        return {"samples": [[unit, unit / 2 + delay / 2, 0]] * message["samples"], "busy": self.arm.busy}


@dataclass
class Made:
    """Stands for a session."""

    arms: Mapping[str, Played]
    device: str = "cpu"
    card: int = 1 << 40
    tells_room: bool = True
    replicates: int = 0
    started: list[list[str]] = field(default_factory=list)
    asked: list[tuple[str, str, dict[str, Any]]] = field(default_factory=list)
    live: list[Process] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    patience: Patience = field(default_factory=Patience)
    random: random.Random = field(default_factory=lambda: random.Random(1))  # noqa: S311 - no secret

    @property
    def subject(self) -> Subject:
        return Subject(cast("Any", None), {"kind": "workload"}, self.device, 1, "python")

    def note(self, text: str) -> None:
        self.notes.append(text)

    @contextmanager
    def starting(self, arms: Sequence[Arm], *, seed: int) -> Iterator[tuple[dict[str, Process], dict[str, ArmError]]]:
        del seed
        self.replicates += 1
        self.started.append(sorted(arm.name for arm in arms))
        fail = {arm.name for arm in arms if self.arms[arm.name].fails == "load"}
        self.live = [Process(arm.name, self.arms[arm.name], self) for arm in arms if arm.name not in fail]
        failures = {name: ArmError(self.arms[name].kind, "planted in load") for name in fail}
        yield {each.name: each for each in self.live}, failures


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "host_busy", lambda: 0.25)
    monkeypatch.setattr(replicate, "MOST_QUADS", replicate.QUADS)  # by the clock of a made-up session: any number


def stage_of(*names: str) -> Stage:
    versions = (Version(NULL), Version(HANDICAP), *(Version(name, (name,)) for name in names))
    return Stage(versions, (HANDICAP_ASKED, *(asked(name) for name in names)))


def asked(name: str) -> Comparison:
    return Comparison(name, NULL, "alone", name)


def run(  # noqa: PLR0913 - what each test varies
    arms: Mapping[str, Played],
    *,
    stage: Stage | None = None,
    limits: Limits | None = None,
    device: str = "cpu",
    metric: str = "wall",
    seed: int = 0,
    card: int = 1 << 40,
    tells_room: bool = True,
    busy: bool = False,
) -> tuple[Timed, Made]:
    made = Made({NULL: Played(), HANDICAP: Played(), ORIGINAL: Played(), **arms}, device, card, tells_room)
    chosen = stage or stage_of(*arms)
    built = {version.name: Arm(version.name) for version in chosen.arms}
    limits = limits or Limits()
    timed = measure(cast("Session", made), built, chosen, metric=metric, limits=limits, seed=seed, busy=busy)
    return timed, made


def verdicts(timed: Timed) -> dict[str, str | None]:
    return {asked.arm: decision.verdict for asked, decision in timed.decisions.items() if asked.question == "alone"}


def test_each_arm_is_decided_and_the_handicap_seen() -> None:
    timed, _ = run({"fast": Played(0.8), "slow": Played(1.25), "same": Played(1.0)})
    assert verdicts(timed) == {"fast": "faster", "slow": "slower", "same": "no-measurable-difference"}
    assert timed.decisions[asked("fast")].ratio == pytest.approx(1.25, rel=0.01)
    assert timed.handicap is not None
    assert timed.handicap.ratio == pytest.approx(1 / 1.05, rel=0.005)
    assert timed.handicap_seen
    assert timed.baseline_ns == pytest.approx([UNIT_NS] * timed.replicates, rel=0.02)
    assert timed.busy == [0.25] * timed.replicates
    assert (timed.failures, timed.suspicious) == ({}, {})


def test_the_cpus_time_is_measured_where_it_is_asked_for() -> None:
    timed, made = run({"fast": Played(0.8)}, metric="cpu-time")
    assert timed.baseline_ns[0] == pytest.approx(UNIT_NS / 2, rel=0.02)
    delays = {message["handicap_ns"] for name, command, message in made.asked if (name, command) == (HANDICAP, "block")}
    assert delays == {0.05 * UNIT_NS / 2}
    assert all(message["handicap_cpu"] for _, command, message in made.asked if command == "block")


def test_only_the_handicap_is_delayed() -> None:
    _, made = run({"fast": Played(0.8)})
    delays = {(name, message["handicap_ns"]) for name, command, message in made.asked if command == "block"}
    assert delays == {(NULL, 0.0), (HANDICAP, 0.05 * UNIT_NS), ("fast", 0.0)}


def test_several_arms_may_be_delayed() -> None:
    timed, _ = run({f"{HANDICAP} 1": Played(1.0), f"{HANDICAP} 2": Played(1.0), "same": Played(1.0)})
    seen = verdicts(timed)
    assert (seen[f"{HANDICAP} 1"], seen[f"{HANDICAP} 2"], seen["same"]) == (
        "slower",
        "slower",
        "no-measurable-difference",
    )


def test_a_decided_arm_is_measured_no_more() -> None:
    timed, made = run({"fast": Played(0.8), "noisy": Played(1.0, noise=0.3)}, limits=Limits(8))
    assert made.started[3] == ["fast", HANDICAP, "noisy", NULL]
    assert made.started[4] == [HANDICAP, "noisy", NULL]
    assert timed.decisions[asked("fast")].n == 4
    assert timed.decisions[asked("noisy")].n == 8
    assert len(timed.log_ratios[asked("fast")]) == 4


def test_a_run_ends_when_all_is_decided() -> None:
    timed, made = run({"fast": Played(0.8)})
    assert timed.replicates == made.replicates == 4


def test_a_run_ends_at_the_most_replicates() -> None:
    timed, made = run({"noisy": Played(1.0, noise=0.3)}, limits=Limits(6))
    assert made.replicates == 6
    assert verdicts(timed) == {"noisy": "inconclusive"}
    assert timed.looks == (4, 6)


def test_too_few_replicates_decide_nothing() -> None:
    timed, made = run({"fast": Played(0.5)}, limits=Limits(3))
    assert made.replicates == 3
    assert verdicts(timed) == {"fast": "inconclusive"}


def test_no_difference_is_not_said_where_the_handicap_was_not_seen() -> None:
    arms = {"same": Played(1.0), HANDICAP: Played(1 / 1.05, noise=0.0)}
    timed, _ = run({"same": Played(1.0, noise=0.0001)}, stage=stage_of("same"), limits=Limits(6))
    assert verdicts(timed) == {"same": "no-measurable-difference"}
    timed, _ = run(arms, stage=stage_of("same"), limits=Limits(6))
    assert not timed.handicap_seen
    assert verdicts(timed) == {"same": "inconclusive"}


def test_the_rounds_are_mirrored() -> None:
    _, made = run({"a": Played(), "b": Played(), "c": Played()}, limits=Limits(1))
    visits = [name for name, command, _ in made.asked if command == "block"]
    assert len(visits) == 4 * 5
    for quad in (visits[:10], visits[10:]):
        assert quad[:5] == quad[:4:-1]
        assert len(set(quad)) == 5


def test_orders_differ_and_repeat_with_their_seed() -> None:
    def visits(seed: int) -> list[str]:
        _, made = run({name: Played() for name in "abcdef"}, limits=Limits(2), seed=seed)
        return [name for name, command, _ in made.asked if command == "block"]

    assert visits(1) == visits(1)
    assert visits(1) != visits(2)


def test_arms_sleep_while_they_are_not_asked() -> None:
    _, made = run({"fast": Played(0.8)}, limits=Limits(1))
    assert all(not process.awake for process in made.live)


@pytest.mark.parametrize("command", ["load", "start", "warm", "block"])
@pytest.mark.parametrize("kind", ["crash", "timeout", "oom", "protocol"])
def test_an_arm_that_fails_is_out_and_the_others_go_on(command: str, kind: str) -> None:
    timed, made = run({"bad": Played(0.5, fails=command, kind=kind), "fast": Played(0.8)})
    assert timed.failures["bad"].kind == kind
    assert timed.failures["bad"].reason == f"planted in {command}"
    assert verdicts(timed) == {"fast": "faster"}
    if kind == "oom":  # it is believed once it fails beside the null arm alone
        assert [names for names in made.started if "bad" in names][-1] == ["bad", NULL]
        assert made.started[-1] == ["fast", HANDICAP, NULL]
    else:
        assert ["bad" in names for names in made.started] == [True, False, False, False]


def test_an_arm_that_fails_later_has_no_decision() -> None:
    timed, _ = run({"bad": Played(0.5, fails="block", after=2), "fast": Played(0.8)})
    assert verdicts(timed) == {"fast": "faster"}
    assert len(timed.log_ratios[asked("bad")]) == 2


def test_a_run_without_a_living_arm_ends() -> None:
    timed, made = run({"bad": Played(fails="start")})
    assert made.replicates == 1
    assert verdicts(timed) == {}


@pytest.mark.parametrize("name", [NULL, HANDICAP])
@pytest.mark.parametrize("command", ["load", "start", "warm", "block"])
def test_the_failure_of_the_code_as_it_is_is_nobody_elses(name: str, command: str) -> None:
    with pytest.raises(BaselineError, match=f"planted in {command}") as error:
        run({name: Played(fails=command, kind="oom"), "fast": Played(0.8)}, stage=stage_of("fast"))
    assert error.value.failure.kind == "oom"


def test_the_null_arm_that_cannot_be_calibrated_is_the_baselines_failure() -> None:
    with pytest.raises(BaselineError, match="planted in calibrate"):
        run({NULL: Played(fails="calibrate"), "fast": Played()}, stage=stage_of("fast"))


def test_an_arm_that_works_on_is_suspicious() -> None:
    timed, _ = run({"works on": Played(0.8, busy=0.6), "rests": Played(0.8, busy=0.05)})
    assert timed.suspicious == {"works on": "goes on working after it has returned"}


def test_what_the_null_arm_does_too_is_not_suspicious() -> None:
    timed, _ = run({NULL: Played(busy=0.5), "works on": Played(0.8, busy=0.6)}, stage=stage_of("works on"))
    assert timed.suspicious == {}


def test_a_busy_moment_is_not_suspicious() -> None:
    timed = Timed("wall", (4,), (0.01,), 1.0, 0, {}, working={NULL: [0.0] * 4, "rests": [0.0, 0.9, 0.0, 0.0]})
    assert timed.suspicious == {}


def test_untouched_code_that_differs_makes_the_run_unfit() -> None:
    timed, made = run({ORIGINAL: Played(0.9), ALL: Played(0.9)}, stage=stage_a(["unit"]))
    assert timed.biased
    assert made.replicates == 4


def test_untouched_code_that_is_the_same_is_no_bias() -> None:
    timed, _ = run({ALL: Played(0.9)}, stage=stage_a(["unit"]))
    assert not timed.biased
    assert [found.verdict for asked, found in timed.decisions.items() if asked.question == "together"] == ["faster"]


def test_a_bias_found_with_questions_open_leaves_them_open() -> None:
    timed, made = run({ORIGINAL: Played(0.9), ALL: Played(1.0, noise=0.5)}, stage=stage_a(["unit"]))
    assert timed.biased
    assert made.replicates == 4
    assert [found.verdict for asked, found in timed.decisions.items() if asked.question == "together"] == [
        "inconclusive"
    ]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Each replicate takes so many seconds."""
    now = [0.0]

    def set_to(seconds: float) -> None:
        def busy() -> float:
            now[0] += seconds
            return 0.0

        monkeypatch.setattr(timing, "host_busy", busy)
        monkeypatch.setattr("torchlint.verify.timing.time.monotonic", lambda: now[0])

    return set_to


def test_a_run_out_of_time_is_inconclusive(clock: Callable[[float], None]) -> None:
    clock(10)
    timed, made = run({"fast": Played(0.5)}, limits=Limits(deadline=35))
    assert made.replicates == 3
    assert verdicts(timed) == {"fast": "inconclusive"}
    assert timed.decisions[asked("fast")].n == 3


def test_what_was_decided_in_time_stays(clock: Callable[[float], None]) -> None:
    clock(10)
    timed, made = run({"fast": Played(0.5), "noisy": Played(noise=0.3)}, limits=Limits(deadline=55))
    assert made.replicates == 5
    assert verdicts(timed) == {"fast": "faster", "noisy": "inconclusive"}


def test_no_time_at_all_measures_nothing(clock: Callable[[float], None]) -> None:
    clock(10)
    timed, made = run({"fast": Played(0.5)}, limits=Limits(deadline=-1))
    assert made.replicates == 0
    assert verdicts(timed) == {"fast": "inconclusive"}


@pytest.mark.parametrize("where", [NULL, "fast"])
def test_blocks_are_multiples_of_the_loaders_workers(where: str) -> None:
    timed, made = run({where: Played(0.8, loading=4), "fast": Played(0.8, loading=4)}, stage=stage_of("fast"))
    assert timed.inner == 12
    assert {message["warm"] for _, command, message in made.asked if command == "block"} == {8}


@pytest.mark.parametrize(
    ("set_up", "block", "quads"),
    [(5.4, 0.1, 6), (2.5, 0.1, 4), (0.1, 0.1, 2), (0.0, 0.1, 2), (9.0, 3.0, 2), (5.4, 0.0, 6)],
)
def test_measuring_takes_about_as_long_as_setting_up(
    monkeypatch: pytest.MonkeyPatch, set_up: float, block: float, quads: int
) -> None:
    """A block of each of the three arms in either half; the first replicate settles it for all."""
    monkeypatch.setattr(replicate, "MOST_QUADS", 6)
    made = Made({NULL: Played(), HANDICAP: Played(), "fast": Played(0.8)})

    def now() -> float:
        commands = [command for _, command, _ in made.asked]
        return set_up * ("warm" in commands) * made.replicates + block * commands.count("block")

    monkeypatch.setattr("torchlint.verify.replicate.time.monotonic", now)
    stage = stage_of("fast")
    built = {version.name: Arm(version.name) for version in stage.arms}
    timed = measure(cast("Session", made), built, stage, metric="wall", limits=Limits(2))
    assert timed.quads == quads
    assert [command for _, command, _ in made.asked].count("block") == 2 * quads * 6


def test_a_long_unit_is_sampled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replicate, "_LONG_NS", UNIT_NS / 2)
    _, made = run({"fast": Played(0.8)}, limits=Limits(1))
    assert {message["samples"] for _, command, message in made.asked if command == "block"} == {1}


def test_a_quad_with_a_jump_of_the_clock_is_measured_again() -> None:
    clocks = iter([1980.0] * 3 + [1755.0] * 3 + [1755.0] * 6 + [1980.0] * 100)
    arms = {name: Played(mhz=lambda: next(clocks)) for name in (NULL, HANDICAP, "fast")}
    timed, made = run(arms, stage=stage_of("fast"), limits=Limits(1), device="cuda")
    assert len([command for _, command, _ in made.asked if command == "block"]) == 3 * 6
    assert timed.clocks_of == {name: [1755.0] * 2 + [1980.0] * 2 for name in (NULL, HANDICAP, "fast")}
    assert timed.unsettled == 0


def test_arms_that_run_at_clocks_of_their_own_are_measured_once() -> None:
    """Under a limit of power, code that keeps the device busier runs at a lower clock."""
    clocks = {NULL: 1980.0, HANDICAP: 1980.0, "fast": 1700.0}
    arms = {name: Played(mhz=partial(float, mhz)) for name, mhz in clocks.items()}
    timed, made = run(arms, stage=stage_of("fast"), limits=Limits(1), device="cuda")
    assert len([command for _, command, _ in made.asked if command == "block"]) == 2 * 6
    assert timed.clocks_of == {name: [mhz] * 4 for name, mhz in clocks.items()}


def test_a_clock_that_never_settles_is_not_waited_for_again() -> None:
    clocks = iter([1980.0, 1980.0, 1980.0, 1200.0, 1200.0, 1200.0] * 1000)
    arms = {name: Played(mhz=lambda: next(clocks)) for name in (NULL, HANDICAP, "fast")}
    timed, made = run(arms, stage=stage_of("fast"), limits=Limits(4), device="cuda")
    blocks = len([command for _, command, _ in made.asked if command == "block"])
    assert blocks == 6 * (2 * 3 + 3 * 2), "two quads of the first replicate three times, and all others once"
    assert timed.unsettled == 8


def test_a_quad_whose_clock_never_rests_is_kept_in_the_end() -> None:
    clocks = iter([1980.0, 1200.0] * 1000)
    arms = {name: Played(mhz=lambda: next(clocks)) for name in (NULL, HANDICAP, "fast")}
    timed, _ = run(arms, stage=stage_of("fast"), limits=Limits(1), device="cuda")
    assert len(timed.log_ratios[asked("fast")]) == 1


def test_how_busy_the_device_is_is_asked_once_after_the_blocks() -> None:
    arms = {"fast": Played(0.8), "lost": Played(0.5, doubt="records are missing"), "dies": Played(0.9, fails="count")}
    timed, made = run(arms, device="cuda", busy=True)
    assert timed.busy_ns == {NULL: 1000, "fast": 800}
    assert timed.failures == {}, "it was timed before"
    assert verdicts(timed) == {"fast": "faster", "lost": "faster", "dies": "faster"}
    commands = [command for _, command, _ in made.asked]
    assert commands.count("count") == 4
    first = commands.index("count")
    assert commands[first : first + 4] == ["count"] * 4
    assert "block" in commands[first + 4 :], "of the replicates after it"
    assert "count" not in [command for _, command, _ in run(arms, device="cuda")[1].asked]


def test_what_an_arm_pays_at_its_start_is_known() -> None:
    timed, _ = run(
        {NULL: Played(first_ns=1e9), "fast": Played(0.5, first_ns=21e9)}, stage=stage_of("fast"), limits=Limits(4)
    )
    assert timed.later("fast") == 20
    assert timed.later("unknown") == 0


def test_an_undisturbed_sample_of_the_wall_counts() -> None:
    samples = [[10.0, 8.0, 0], [30.0, 8.5, 3], [50.0, 9.0, 1]]
    assert block_time(samples, "wall", whole=True) == 10.0
    assert block_time(samples, "wall", whole=False) == 30.0
    assert block_time(samples[1:], "wall", whole=True) == 40.0
    assert block_time(samples, "cpu-time", whole=True) == 8.5
    assert block_time([[0.0, 0.0, 0]], "cpu-time", whole=False) == 1.0


def test_lucky_samples_of_one_arm_are_not_compared_with_all_of_another() -> None:
    """One arm loses the CPU in two samples of three, and is faster in the third by chance."""
    calm, busy = [[10.0, 8.0, 0]] * 3, [[10.0, 8.0, 2], [10.0, 8.0, 1], [5.0, 8.0, 0]]
    assert not undisturbed([{"null": calm, "fast": busy}, {"null": calm, "fast": busy}])
    assert not undisturbed([{"null": busy, "fast": calm}, {"null": busy, "fast": calm}])
    assert undisturbed([{"null": calm, "fast": calm}, {"null": calm, "fast": busy}])
    made = {"fast": Played(1.0, samples=busy), NULL: Played(samples=calm), HANDICAP: Played(samples=calm)}
    timed, _ = run(made, stage=stage_of("fast"), limits=Limits(4))
    assert verdicts(timed) != {"fast": "faster"}
    assert timed.log_ratios[asked("fast")] == [0.0] * 4


def test_progress_is_told() -> None:
    _, made = run({"fast": Played(0.8)})
    assert re.match(r"replicate 4 of at most 16, \+2\d\.\d % so far, 0 of 2 decided", made.notes[-1])


def test_ctrl_c_leaves_what_was_measured() -> None:
    class Told(Played):
        """Ctrl-C comes while the third replicate is measured."""

        @property
        def mhz(self) -> Callable[[], float | None]:
            def look() -> None:
                if told.replicates == 3:
                    raise KeyboardInterrupt

            return look

        @mhz.setter
        def mhz(self, value: object) -> None: ...

    told = Made({NULL: Played(), HANDICAP: Played(), "fast": Told(0.5)}, "cuda")
    stage = stage_of("fast")
    built = {version.name: Arm(version.name) for version in stage.arms}
    go = partial(measure, cast("Session", told), built, stage, metric="wall")
    timed = go(limits=Limits(interruptible=True))
    assert (timed.interrupted, timed.replicates, len(timed.log_ratios[asked("fast")])) == (True, 2, 2)
    assert verdicts(timed) == {"fast": "inconclusive"}
    told.replicates = 0
    with pytest.raises(KeyboardInterrupt):
        go(limits=Limits())


def test_the_host_says_how_busy_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert 0 <= host_busy() < 1


@pytest.mark.parametrize("tells_room", [True, False])
@pytest.mark.parametrize(("card", "most"), [(1000, 5), (450, 4), (350, 3), (250, 2)])
def test_no_more_arms_run_at_once_than_fit_on_the_card(card: int, most: int, *, tells_room: bool) -> None:
    """Whether the device says how much room there is, or it takes an arm that runs out of memory to know."""
    arms = {name: Played(time, needs=100) for name, time in (("a", 0.8), ("b", 1.25), ("c", 0.8))}
    arms |= {NULL: Played(needs=100), HANDICAP: Played(needs=100)}
    timed, made = run(arms, stage=stage_of("a", "b", "c"), device="cuda", card=card, tells_room=tells_room)
    assert timed.failures == {}
    assert verdicts(timed) == {"a": "faster", "b": "slower", "c": "faster"}
    assert timed.handicap_seen
    assert len(made.started[-1]) <= most
    if tells_room:
        assert timed.at_once == (most if most < 5 else timed.at_once)


@pytest.mark.parametrize("tells_room", [True, False])
def test_an_arm_that_does_not_fit_beside_the_null_arm_alone_is_out_of_memory(*, tells_room: bool) -> None:
    arms = {
        NULL: Played(needs=100),
        HANDICAP: Played(needs=100),
        "large": Played(0.5, needs=250),
        "fast": Played(0.8, needs=100),
    }
    timed, _ = run(arms, stage=stage_of("large", "fast"), device="cuda", card=300, tells_room=tells_room)
    assert {name: failure.kind for name, failure in timed.failures.items()} == {"large": "oom"}
    assert verdicts(timed) == {"fast": "faster"}


@pytest.mark.parametrize("tells_room", [True, False])
def test_a_program_that_takes_more_than_half_of_the_card_is_measured_one_process_at_a_time(*, tells_room: bool) -> None:
    arms = {
        NULL: Played(needs=100),
        HANDICAP: Played(needs=100),
        "fast": Played(0.8, needs=100),
        "slow": Played(1.2, needs=100),
        "large": Played(0.5, needs=151),
    }
    stage = stage_of("fast", "slow", "large")
    timed, made = run(arms, stage=stage, device="cuda", card=150, tells_room=tells_room)
    assert timed.alone
    assert {name: failure.kind for name, failure in timed.failures.items()} == {"large": "oom"}
    assert verdicts(timed) == {"fast": "faster", "slow": "slower"}
    assert timed.handicap_seen
    alone = [names for names in made.started if len(names) == 1]
    assert alone[-1] == [NULL], "a quad ends with the arm that it began with"
    assert sum("one process at a time" in note for note in made.notes) == 1


def test_a_program_that_does_not_fit_on_the_card_alone_is_nobody_elses_fault() -> None:
    arms = {NULL: Played(needs=200), HANDICAP: Played(needs=200), "fast": Played(0.8, needs=100)}
    with pytest.raises(BaselineError, match="out of memory"):
        run(arms, stage=stage_of("fast"), device="cuda", card=150)


def test_many_arms_are_measured_in_waves_each_with_the_null_arm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timing, "_AT_ONCE", 4)
    arms = {"a": Played(0.8), "b": Played(1.25), "c": Played(0.5), "d": Played(0.8, fails="block"), "e": Played(2.0)}
    without = Comparison("e", "a", "without", "e")
    stage = stage_of(*arms)
    stage = Stage(stage.arms, (*stage.comparisons, without))
    timed, made = run(arms, stage=stage, limits=Limits(4))
    assert made.started[0] == ["a", "b", HANDICAP, NULL]
    assert made.started[1] == ["c", "d", "e", NULL]
    assert made.started[2] == ["a", "e", NULL]
    assert verdicts(timed) == {"a": "faster", "b": "slower", "c": "faster", "e": "slower"}
    assert timed.decisions[without].verdict == "slower"
    assert timed.decisions[without].ratio == pytest.approx(0.4, rel=0.01)
    assert {len(ratios) for asked, ratios in timed.log_ratios.items() if asked.arm != "d"} == {4}
    assert [*timed.failures] == ["d"]
    assert len(timed.baseline_ns) == 4


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_arms_are_set_up_beside_each_other_and_run_one_at_a_time(device: str) -> None:
    """On a device only once it is known that there is room; blocks never overlap, which `Process` asserts."""
    stage = stage_of("a", "b")
    made = run({"a": Played(), "b": Played()}, stage=stage, limits=Limits(4), device=device)[1]
    told = [index for index, (_, command, _) in enumerate(made.asked) if command == "tell start"]
    runs = groupby(enumerate(told), lambda pair: pair[1] - pair[0])
    groups = [sum(1 for _ in group) for _, group in runs]
    assert groups == ([4] * 4 if device == "cpu" else [1, 3, 4, 4, 4])
