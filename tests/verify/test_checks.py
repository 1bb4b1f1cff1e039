"""What is asked of the null arm and of another one, what is compared, and what the answers come to."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pytest

from torchlint.verify.ablation import NULL
from torchlint.verify.arms import Arm, Patience, Subject
from torchlint.verify.checks import OTHER_SEED, SEED, Declared, Reference, check, reference
from torchlint.verify.process import ArmError
from torchlint.verify.timing import BaselineError

if TYPE_CHECKING:
    from torchlint.verify.machine import Clerk
    from torchlint.verify.session import Session


@dataclass
class Made:
    """Stands for a session and its workers: notes what each process is asked."""

    kind: str = "workload"
    fails: str = ""
    moves: int = 3
    scales: int = 3
    processes: list[list[str]] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)
    patience: Patience = field(default_factory=Patience)
    threads: list[int] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)

    @property
    def subject(self) -> Subject:
        return Subject(cast("Any", None), {"kind": self.kind}, "cpu", 1, "python")

    def note(self, text: str) -> None:
        assert text.startswith("numerics: ")

    def captured(self, name: str) -> Path:
        assert "/" not in name
        return Path("captures") / name

    def forget(self, names: str) -> None:
        self.forgotten.append(names)

    @contextmanager
    def running(self, arm: Arm, *, seed: int, env: dict[str, str], threads: int = 0) -> Iterator[Made]:
        self.threads.append(threads)
        assert env == {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
        self.processes.append([f"{arm.name} {seed}"])
        yield self

    def ask(self, command: str, timeout: float, **message: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        assert timeout == self.patience.check
        what = message["seed"] if command == "start" else kind_of(message["file"])
        self.processes[-1].append(f"{command} {what}" + (" scaled" if message.get("scale") else ""))
        self.messages.append({"command": command, **message})
        if self.fails and self.processes[-1][-1].startswith(self.fails):
            raise ArmError("crash", f"planted in {command}")
        return {"moved": self.moves, "scaled": self.scales if message.get("scale") else 0}


@dataclass
class Comparing:
    """Stands for a clerk: says what was planted of the files it is asked to compare."""

    says: dict[str, str] = field(default_factory=dict)
    asked: list[dict[str, Any]] = field(default_factory=list)

    def compare(self, **message: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        self.asked.append(message)
        kind = kind_of(message["after"])
        return {"verdict": self.says.get(kind, "same"), "reason": f"of {kind}", "tensors": 1}


def kind_of(file: str) -> str:
    return Path(file).stem.partition("-")[2]


def look(made: Made, clerk: Comparing, numerics: str = "close", base: Reference | None = None) -> dict[str, Any]:
    declared = Declared(numerics, dropped=("*.bias",), free=("*.running_mean",))
    base = base or Reference("n-first", "n-again", "n-other", "n-scaled", "n-moved")
    return check(cast("Session", made), cast("Clerk", clerk), base, Arm("add a/b.py:3"), declared)


def refer(made: Made, numerics: str = "close") -> Reference:
    return reference(cast("Session", made), Arm(NULL), Declared(numerics))


def test_the_null_arm_is_captured_in_two_processes() -> None:
    made = Made()
    base = refer(made)
    assert made.processes == [
        [f"null {SEED}", f"start {SEED}", "check first", "moved moved"],
        [
            f"null {SEED}",
            f"start {SEED}",
            "check again",
            f"start {OTHER_SEED}",
            "check other",
            f"start {SEED} scaled",
            "check scaled",
        ],
    ]
    files = (base.first, base.again, base.other, base.scaled, base.moved)
    assert [kind_of(file or "") for file in files] == ["first", "again", "other", "scaled", "moved"]
    assert base.state is None


@pytest.mark.parametrize("fails", ["", "check first"])
def test_what_was_compared_is_removed_and_what_others_are_compared_with_stays(fails: str) -> None:
    made = Made(fails=fails)
    with contextlib.suppress(ArmError):
        look(made, Comparing())
    (names,) = made.forgotten
    files = {Path(message["file"]).name for message in made.messages if "file" in message}
    assert files
    assert all(fnmatch(file, f"{names}.pt") for file in files)
    assert not fnmatch("n-first.pt", f"{names}.pt")


def test_a_program_that_runs_once_is_captured_in_three() -> None:
    made = Made(kind="script")
    base = refer(made)
    assert [process[0] for process in made.processes] == [f"null {SEED}", f"null {SEED}", f"null {OTHER_SEED}"]
    assert (base.scaled, base.moved) == (None, None)
    assert kind_of(base.other) == "other"


def test_another_seed_reaches_the_seeds_of_the_code_itself() -> None:
    made = Made()
    refer(made)
    assert {(message["seed"], message["shift"]) for message in made.messages if message["command"] == "start"} == {
        (SEED, 0),
        (OTHER_SEED, OTHER_SEED - SEED),
    }


def test_a_state_without_numbers_has_neither_control() -> None:
    base = refer(Made(moves=0, scales=0))
    assert (base.scaled, base.moved) == (None, None)


def test_code_that_refuses_moved_numbers_is_not_asked_again() -> None:
    made = Made(fails="moved")
    base = refer(made)
    assert base.moved is None
    assert kind_of(base.other) == "other"
    clerk = Comparing()
    look(made, clerk, base=base)
    assert "moved moved" not in made.processes[-1]


@pytest.mark.parametrize("command", ["start", "check first", "check again", "check other", "check scaled"])
def test_a_null_arm_that_fails_is_the_baselines_failure(command: str) -> None:
    with pytest.raises(BaselineError, match="planted in") as error:
        refer(Made(fails=command))
    assert error.value.failure.kind == "crash"


def test_a_mapped_state_is_kept_before_the_first_unit_and_adopted() -> None:
    made = Made()
    base = refer(made, "mapped-state")
    assert made.processes[0][1:] == [f"start {SEED}", "state state", "check first", "moved moved"]
    assert base.state is not None
    look(made, Comparing(), "mapped-state", base)
    assert made.processes[-1][1:] == [f"start {SEED}", "check first", "moved moved"]
    start = next(message for message in reversed(made.messages) if message["command"] == "start")
    assert (start["state"], start["dropped"], start["free"]) == (base.state, ["*.bias"], ["*.running_mean"])


def test_an_arm_is_compared_from_its_start_with_another_seed_and_from_other_numbers() -> None:
    made, clerk = Made(), Comparing()
    assert look(made, clerk)["verdict"] == "same"
    assert made.processes == [
        [f"add a/b.py:3 {SEED}", f"start {SEED}", "check first", "moved moved", f"start {OTHER_SEED}", "check other"]
    ]
    first, *others = clerk.asked
    assert (first["before"], first["again"], first["other_seed"], first["scaled"]) == (
        "n-first",
        "n-again",
        "n-other",
        "n-scaled",
    )
    assert (first["class"], first["dropped"], first["free"]) == ("close", ["*.bias"], ["*.running_mean"])
    assert [message["before"] for message in others] == ["n-other", "n-moved"]
    assert all("other_seed" not in message for message in others)


@pytest.mark.parametrize(
    ("kind", "words"), [("other", "with another seed: of other"), ("moved", "from other numbers: of moved")]
)
def test_what_only_holds_for_the_first_inputs_is_wrong(kind: str, words: str) -> None:
    said = look(Made(), Comparing({kind: "wrong"}))
    assert (said["verdict"], said["reason"], said["tensors"]) == ("wrong", words, 1)


@pytest.mark.parametrize("kind", ["other", "moved"])
def test_what_cannot_be_compared_further_stays_what_it_was(kind: str) -> None:
    assert look(Made(), Comparing({kind: "not-checked"}))["verdict"] == "same"


@pytest.mark.parametrize("verdict", ["wrong", "not-checked"])
def test_what_is_wrong_at_first_is_compared_no_further(verdict: str) -> None:
    clerk = Comparing({"first": verdict})
    assert look(Made(), clerk)["verdict"] == verdict
    assert len(clerk.asked) == 1


def test_a_program_that_runs_once_is_compared_once() -> None:
    made, clerk = Made(kind="script"), Comparing()
    look(made, clerk, base=Reference("n-first", "n-again", "n-other"))
    assert made.processes[0][1:] == [f"start {SEED}", "check first"]
    assert len(clerk.asked) == 1


def test_what_may_differ_from_itself_is_run_again() -> None:
    made, clerk = Made(), Comparing()
    look(made, clerk, "nondeterministic")
    assert made.processes[1][1:] == [f"start {SEED}", "check again"]
    assert kind_of(clerk.asked[0]["after_again"]) == "again"


@pytest.mark.parametrize(("numerics", "drawn"), [("rng", True), ("close", False)])
def test_random_numbers_of_another_device_are_drawn_on_the_cpu(numerics: str, *, drawn: bool) -> None:
    made = Made()
    look(made, Comparing(), numerics)
    starts = [message for message in made.messages if message["command"] == "start"]
    assert all(message["host_random"] is drawn and message["deterministic"] == "error" for message in starts)


@pytest.mark.parametrize("numerics", ["exact", "close", "lower-precision", "nondeterministic", "rng", "mapped-state"])
def test_tf32_is_kept_out_unless_less_precision_is_the_fix(numerics: str) -> None:
    made = Made()
    refer(made, numerics)
    look(made, Comparing(), numerics)
    starts = [message["full_float32"] for message in made.messages if message["command"] == "start"]
    assert set(starts) == {numerics != "lower-precision"}


@pytest.mark.parametrize("of_loaders", [True, False])
def test_what_loaders_do_is_compared_on_one_thread(*, of_loaders: bool) -> None:
    """Each of their processes has one, and sums round differently by the number of threads."""
    made, declared = Made(), Declared("close", of_loaders=of_loaders)
    base = reference(cast("Session", made), Arm(NULL), declared)
    check(cast("Session", made), cast("Clerk", Comparing()), base, Arm("fixed"), declared)
    assert made.threads == [1 if of_loaders else 0] * 3


def test_code_that_reads_too_early_is_made_to_wait_and_its_fix_is_not() -> None:
    made, declared = Made(), Declared("close", slow_is_wrong=True)
    base = reference(cast("Session", made), Arm(NULL), declared)
    clerk = Rounded({"first": "wrong"})
    said = check(cast("Session", made), cast("Clerk", clerk), base, Arm("fixed"), declared)
    waits = [
        (message["seed"], message.get("wait", False)) for message in made.messages if message["command"] == "start"
    ]
    slow, fixed = [(SEED, True), (OTHER_SEED, True)], [(SEED, False), (OTHER_SEED, False)]
    nudged = [*slow, *slow]
    assert waits == [(SEED, True), (SEED, True), (OTHER_SEED, True), (SEED, True), *fixed, *slow, *fixed, *nudged]
    assert said["verdict"] == "same-within-class"
    made = Made()
    declared = Declared("exact", slow_is_wrong=True)
    said = check(cast("Session", made), cast("Clerk", Comparing()), base, Arm("fixed"), declared)
    assert said["reason"].endswith("since it reads what is still being copied")


class Varying(Made):
    """Raises as torch does for what has no deterministic algorithm, in the arm of that name."""

    name = NULL
    words = "RuntimeError: put_ does not have a deterministic implementation, but you set"

    def ask(self, command: str, timeout: float, **message: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        mode = next((each["deterministic"] for each in reversed(self.messages) if each["command"] == "start"), "")
        if command == "check" and mode == "error" and self.processes[-1][0].startswith(self.name):
            raise ArmError("exception", self.words)
        return super().ask(command, timeout, **message)


def test_code_without_deterministic_algorithms_runs_with_those_that_there_are() -> None:
    made = Varying()
    base = refer(made)
    assert base.deterministic == "warn"
    assert [process[0] for process in made.processes] == [f"null {SEED}"] * 3, "the first in vain"
    look(made, Comparing(), base=base)
    starts = [message["deterministic"] for message in made.messages if message["command"] == "start"]
    assert starts == ["error"] + ["warn"] * (len(starts) - 1)


def test_a_fix_without_deterministic_algorithms_runs_with_those_that_there_are() -> None:
    made = Varying()
    made.name = "add"
    assert look(made, Comparing(), base=BASE)["verdict"] == "same"
    starts = [message["deterministic"] for message in made.messages if message["command"] == "start"]
    assert starts == ["error", "warn", "warn"]


def test_another_error_is_not_tried_again() -> None:
    made = Varying()
    made.words = "RuntimeError: out of ideas"
    with pytest.raises(BaselineError, match="out of ideas"):
        refer(made)
    assert len(made.processes) == 1


@dataclass
class Noisy(Comparing):
    """The null arm differs from itself; the fix is wrong as long as its own noise is not known."""

    def compare(self, **message: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        said = super().compare(**message)
        known = message.get("after_again") or len(message.get("noisy", ())) == 2
        return {**said, "aa_bit_equal": False, "verdict": "same" if known else "wrong"}


@pytest.mark.parametrize(("numerics", "verdict"), [("exact", "same"), ("close", "same"), ("lower-precision", "wrong")])
def test_beside_a_null_arm_that_varies_the_fix_is_run_again(numerics: str, verdict: str) -> None:
    made = Made()
    base = Reference("n-first", "n-again", "n-other", "n-scaled")
    said = look(made, Noisy(), numerics, base)
    assert said["verdict"] == verdict
    assert made.processes[1:] == (
        [[f"add a/b.py:3 {SEED}", f"start {SEED}", "check again"]] if verdict == "same" else []
    )


def test_what_is_printed_is_kept_where_it_may_change() -> None:
    made = Made()
    look(made, Comparing(), "stdout")
    assert [message["stdout"] for message in made.messages if message["command"] == "check"] == [True, True]


BASE = Reference("n-first", "n-again", "n-other", "n-scaled", "n-moved", null=Arm(NULL))


@dataclass
class Rounded(Comparing):
    """Says that something is wrong as long as nobody asks float64."""

    still: str = "same-within-class"

    def compare(self, **message: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        said = super().compare(**message)
        return {**said, "verdict": self.still} if "fp64" in message else said


@pytest.mark.parametrize("kind", ["first", "other", "moved"])
@pytest.mark.parametrize("still", ["same-within-class", "wrong"])
def test_of_what_is_wrong_float64_is_asked(kind: str, still: str) -> None:
    made, clerk = Made(), Rounded({kind: "wrong"}, still=still)
    said = look(made, clerk, base=BASE)
    assert said["verdict"] == still

    def starts(end: str) -> list[str]:
        return [
            f"start {SEED}",
            f"check first-{end}",
            f"moved moved-{end}",
            f"start {OTHER_SEED}",
            f"check other-{end}",
        ]

    null, fixed = f"null {SEED}", f"add a/b.py:3 {SEED}"
    ways = ((null, "64"), (fixed, "64"), (null, "nudged"), (null, "again"))
    assert made.processes[1:] == [[arm, *starts(end)] for arm, end in ways]
    started = [message for message in made.messages if message["command"] == "start"]
    assert [message.get("double", False) for message in started] == [False] * 2 + [True] * 4 + [False] * 4
    assert [message.get("nudge", 0) for message in started] == [0] * 6 + [1] * 2 + [2] * 2
    nudged = [[kind_of(file) for file in message["nudged"]] for message in clerk.asked if "fp64" in message]
    assert nudged == [[f"{name}-nudged", f"{name}-again"] for name in ("first", "other", "moved")[: len(nudged)]]
    asked = [message["fp64"] for message in clerk.asked if "fp64" in message]
    named = [[kind_of(file) for file in files] for files in asked]
    assert named == [[f"{name}-64"] * 2 for name in ("first", "other", "moved")[: len(named)]]
    assert all(before != after for before, after in asked)


@pytest.mark.parametrize("numerics", ["close", "lower-precision", "mapped-state"])
def test_float64_is_asked_of_what_may_be_rounded(numerics: str) -> None:
    clerk = Rounded({"first": "wrong"})
    assert look(Made(), clerk, numerics, BASE)["verdict"] == "same-within-class"
    assert "fp64" in clerk.asked[-1]


@pytest.mark.parametrize("numerics", ["exact", "nondeterministic", "rng"])
def test_float64_is_not_asked_of_what_may_not_be_rounded(numerics: str) -> None:
    clerk = Rounded({"first": "wrong"})
    assert look(Made(), clerk, numerics, BASE)["verdict"] == "wrong"
    assert all("fp64" not in message for message in clerk.asked)


def test_a_mapped_state_in_float64_is_that_of_the_null_arm_in_float64() -> None:
    made = Made()
    base = refer(made, "mapped-state")
    look(made, Rounded({"first": "wrong"}), "mapped-state", base)
    assert made.processes[-4][1:] == [f"start {SEED}", "state state-64", "check first-64", "moved moved-64"]
    assert made.processes[-3][1:] == [f"start {SEED}", "check first-64", "moved moved-64"]
    before, after = [message for message in made.messages if message.get("double")]
    assert "state" not in before
    assert kind_of(after["state"]) == "state-64"


@pytest.mark.parametrize(
    ("kind", "words", "verdict"),
    [
        ("exception", "RuntimeError: expected Float", "wrong"),
        ("timeout", "no answer within 5 s", "not-checked"),  # seen on a GPU, at the end of a budget
    ],
)
def test_what_float64_could_not_tell_says_so(kind: str, words: str, verdict: str) -> None:
    class Narrow(Made):
        def ask(self, command: str, timeout: float, **message: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
            if message.get("double"):
                raise ArmError(kind, words)
            return super().ask(command, timeout, **message)

    said = look(Narrow(), Rounded({"first": "wrong"}), base=BASE)
    assert said["verdict"] == verdict
    assert said["reason"] == f"of first; in float64, which would tell rounding, it fails: {words}"


def test_an_arm_that_fails_raises() -> None:
    with pytest.raises(ArmError, match="planted in check"):
        look(Made(fails="check other"), Comparing())
