"""What is measured of a program's fixes, and what it comes to: over sessions whose processes are made up."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest
from made_up import MadeUp, subject

from torchlint.config import Overrides
from torchlint.verify import checks, program, reporting, timing, units
from torchlint.verify.arms import Failure
from torchlint.verify.exercised import Means
from torchlint.verify.measurement import ratio
from torchlint.verify.numbers import declared, metric
from torchlint.verify.process import ArmError
from torchlint.verify.report_model import to_json
from torchlint.verify.stats import Decision
from torchlint.verify.terminal import to_terminal

if TYPE_CHECKING:
    from pathlib import Path

    from torchlint.verify.program import Found
    from torchlint.verify.report_model import Report, Row

TRAIN = """\
import torch
from torch import nn
SIZE = 3  # a line that waits, says the made-up session


def train(model: nn.Module, loader, optimizer):
    total = 0.0
    for inputs, targets in loader:
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total


def validate(model: nn.Module, loader):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        total += nn.functional.mse_loss(model(inputs), targets).item()
    return total


def noise(n: int):
    return torch.zeros(n).cuda()
"""
LOOP, EVAL, GRAD, MADE = "TL301 train.py:13", "TL302 train.py:21", "TL401 train.py:21", "TL201 train.py:26"
ALL_RUN = {("train.py", line): 1 for line in (13, 20, 21, 26)}
FASTER = math.log(1.3)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text(TRAIN, encoding="utf-8")
    monkeypatch.setattr(
        checks, "reference", lambda *_, to_end: checks.Reference("first", "again", "other", to_end=to_end)
    )
    return folder


def measured(
    root: Path,
    *,
    select: tuple[str, ...] = ("TL301", "TL201"),
    kind: str = "script",
    device: str = "cuda",
    steps: int | None = None,
    **scripted: Any,  # noqa: ANN401 - of MadeUp
) -> tuple[MadeUp, Found, Report]:
    session = MadeUp(root.parent, subject=subject(kind, device, root), **({"lines": ALL_RUN} | scripted))
    read = units.program(root, Overrides(select=select), root)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "check", session.check)
        patch.setattr(timing, "measure", session.measure)
        means = Means(timing.Limits(), seed=5, steps=steps)
        chosen = read.units(unsafe=True)
        found = program.measure(session, None, read, chosen, "train.py", means)  # type: ignore[arg-type]  # a stand-in
    shown = reporting.report(found, session, read, title="t", command="c", entry="e", unsafe=True)  # type: ignore[arg-type]
    return session, found, shown


def row(report: Report, code: str) -> Row:
    return next(each for each in report.rows if each.code == code)


def names(chosen: tuple[units.Unit, ...]) -> set[str]:
    return {unit.name for unit in chosen}


def test_what_is_faster_is_kept_and_measured_once_more(root: Path) -> None:
    session, found, shown = measured(root, speed={LOOP: FASTER}, syncs={LOOP: 3, "all": 2})
    assert [len(stage.arms) for stage in session.stages] == [4, 5, 3]
    assert names(found.kept) == {LOOP}
    assert found.confirmed is not None
    assert found.confirmed.ratio == pytest.approx(1.3, rel=0.01)
    loop, made = row(shown, "TL301"), row(shown, "TL201")
    assert (loop.verdict, loop.action, loop.why) == ("faster", "keep", "")
    assert loop.syncs is not None
    assert (loop.syncs.before, loop.syncs.after) == (4, 3)
    assert (made.verdict, made.action) == ("no-measurable-difference", "leave")
    assert shown.together is not None
    assert (shown.together.kept, shown.together.confirmed) == (1, True)
    # The counts beside the kept fix are its own, and not those of both.
    assert shown.together.syncs is not None
    assert shown.together.syncs.after == 3
    assert not reporting.speaks_against(found)


def test_fixes_that_mask_each_other_are_kept(root: Path) -> None:
    together = "+".join(sorted((LOOP, MADE)))
    _, found, shown = measured(root, speed={together: FASTER})
    assert names(found.kept) == {LOOP, MADE}
    assert row(shown, "TL301").why == "faster (masked alone)"
    assert row(shown, "TL301").verdict == "faster"
    assert row(shown, "TL301").without is not None


def test_one_fix_alone_needs_no_second_stage(root: Path) -> None:
    session, found, shown = measured(root, select=("TL301",), speed={LOOP: FASTER})
    assert len(session.stages) == 2
    assert names(found.kept) == {LOOP}
    assert shown.rows[0].alone is not None
    assert shown.rows[0].alone.ratio == pytest.approx(1.3, rel=0.01)


def test_what_is_not_faster_once_more_is_left(root: Path) -> None:
    class Fickle(MadeUp):
        def measure(self, session: object, arms: Any, stage: Any, **options: Any) -> timing.Timed:  # noqa: ANN401
            if len(self.stages) == 1:  # stage C
                self.speed = {}
            return super().measure(session, arms, stage, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(globals(), "MadeUp", Fickle)
        _, found, shown = measured(root, select=("TL301",), speed={LOOP: FASTER})
    assert found.kept == ()
    assert shown.rows[0].action == "leave"
    assert "not faster once more" in shown.rows[0].why
    assert any("what was to be kept is left" in warning for warning in shown.warnings)


def test_nothing_is_kept_where_no_time_was_left(root: Path) -> None:
    _, found, shown = measured(root, speed={LOOP: FASTER}, replicates=2)
    assert found.kept == ()
    assert {each.verdict for each in shown.rows} == {"inconclusive"}


def test_where_nothing_makes_a_difference_none_is_measured_alone(root: Path) -> None:
    session, found, shown = measured(root, syncs={LOOP: 3})
    assert len(session.stages) == 1
    assert found.kept == ()
    assert (row(shown, "TL301").verdict, row(shown, "TL301").action) == ("fewer-syncs", "leave")
    assert row(shown, "TL201").verdict == "no-measurable-difference"
    assert {each.why for each in shown.rows} == {"no measurable difference (all together)"}


def test_what_is_left_behind(root: Path) -> None:
    left = {"null, as it is": ["1 process that outlived it"], "all": ["1 process that outlived it"]}
    assert measured(root, left=left)[2].warnings == ("the program leaves something behind: 1 process that outlived it",)
    del left["null, as it is"]
    assert measured(root, left=left)[2].warnings == ("all leaves something behind: 1 process that outlived it",)


def test_what_slows_down_is_dropped_and_speaks_against(root: Path) -> None:
    _, found, shown = measured(root, speed={LOOP: -FASTER})
    assert (row(shown, "TL301").verdict, row(shown, "TL301").action) == ("slower", "drop")
    assert reporting.speaks_against(found)


def test_what_computes_something_else_is_not_timed(root: Path) -> None:
    session, found, shown = measured(root, speed={LOOP: FASTER, MADE: FASTER}, verdicts={LOOP: "wrong"})
    assert all(LOOP not in version.units for stage in session.stages for version in stage.arms)
    assert names(found.kept) == {MADE}
    assert row(shown, "TL301").verdict == "wrong-result"
    assert row(shown, "TL301").why == "so it is said"
    assert LOOP not in session.ran
    assert reporting.speaks_against(found)


def test_what_cannot_be_compared_is_counted_and_not_timed(root: Path) -> None:
    session, found, shown = measured(root, speed={LOOP: FASTER}, verdicts={LOOP: "not-checked"}, syncs={LOOP: 1})
    assert all(LOOP not in version.units for stage in session.stages for version in stage.arms)
    assert LOOP not in names(found.kept)
    loop = row(shown, "TL301")
    assert (loop.verdict, loop.why) == ("inconclusive", "the results could not be compared: so it is said")
    assert loop.syncs is not None
    assert loop.syncs.after == 1
    assert not reporting.speaks_against(found)


def test_each_class_of_numerics_is_compared_by_its_own(root: Path) -> None:
    assert (declared("item-in-train-loop").numerics, declared("eval-without-no-grad").numerics) == ("close", "exact")
    session, _, _ = measured(root, select=("TL301", "TL302", "TL401"))
    assert session.checked == [("all of close", "close"), (GRAD, "exact"), ("all", "close")]


def test_where_all_of_a_class_differ_each_is_compared_for_itself(root: Path) -> None:
    session, found, _ = measured(
        root, select=("TL301", "TL302"), verdicts={"all": "wrong", LOOP: "wrong"}, speed={EVAL: FASTER}
    )
    assert [name for name, _ in session.checked] == ["all", LOOP, EVAL]
    assert names(found.kept) == {EVAL}


def test_fixes_that_are_wrong_only_together_are_not_kept_together(root: Path) -> None:
    _, found, shown = measured(
        root, select=("TL301", "TL302"), verdicts={"all": "wrong"}, speed={LOOP: FASTER, EVAL: FASTER}
    )
    assert found.kept == ()
    assert {each.action for each in shown.rows} == {"leave"}
    assert reporting.speaks_against(found)
    assert shown.together is not None
    assert shown.together.verdict == "wrong-result"


def test_a_changed_state_dict_is_not_compared_through_a_program(tmp_path: Path, root: Path) -> None:
    del tmp_path
    text = "import torch\nfrom torch import nn\n\n\ndef net():\n    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))\n"
    (root / "train.py").write_text(text, encoding="utf-8")
    assert declared("bias-before-batchnorm").dropped
    lines = {("train.py", line): 1 for line in range(1, 8)}
    session, _, shown = measured(root, select=("TL501",), lines=lines)
    assert [each.verdict for each in shown.rows] == ["inconclusive"]
    assert "--entry" in shown.rows[0].why
    assert session.checked == []
    assert session.stages == []
    session, _, _ = measured(root, select=("TL501",), lines=lines, kind="function")
    assert [numerics for _, numerics in session.checked] == ["mapped-state"]


def test_lines_that_do_not_run_are_never_timed(root: Path) -> None:
    session, found, shown = measured(root, lines={("train.py", 13): 2}, speed={LOOP: FASTER})
    assert (names(found.units), names(found.idle)) == ({LOOP}, {MADE})
    assert row(shown, "TL201").verdict == "not-exercised"
    assert row(shown, "TL201").action is None
    assert all(MADE not in version.units for stage in session.stages for version in stage.arms)
    assert MADE not in session.ran
    assert "2 fixes in 1 file, 1 not exercised" in shown.summary


def test_a_program_that_ends_soon_is_compared_to_its_end(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def reference(*_: object, to_end: bool) -> checks.Reference:
        asked.append(to_end)
        return checks.Reference("first", "again", "other", to_end=to_end)

    monkeypatch.setattr(checks, "reference", reference)
    lines = ALL_RUN | {("train.py", 26): checks.STEPS + 5}
    _, found, _ = measured(root, lines=lines, speed={LOOP: FASTER, MADE: FASTER})
    assert set(asked) == {True}
    assert not found.later
    assert names(found.kept) == {LOOP, MADE}
    asked.clear()
    measured(root, speed={LOOP: FASTER})
    assert set(asked) == {False}


def test_what_runs_after_the_compared_steps_is_timed_and_left(root: Path) -> None:
    lines = ALL_RUN | {("train.py", 26): checks.STEPS + 5}
    _, found, shown = measured(root, lines=lines, speed={LOOP: FASTER, MADE: FASTER}, length=10**9, steps=50)
    assert names(found.later) == {MADE}
    assert names(found.kept) == {LOOP}
    made = row(shown, "TL201")
    assert (made.verdict, made.action, made.numerics) == ("faster", "leave", "not compared")
    assert "after the first 3 steps" in made.why
    assert any(MADE in warning and "--entry" in warning for warning in shown.warnings)


def test_of_fixes_that_conflict_one_is_kept(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units.Program, "conflicts", lambda *_: (frozenset({LOOP, MADE}),))
    session, found, shown = measured(root, speed={LOOP: FASTER, MADE: 2 * FASTER})
    assert all(len(version.units) < 2 for stage in session.stages for version in stage.arms)
    assert names(found.kept) == {MADE}
    assert row(shown, "TL301").why == f"overlaps {MADE}"


def test_untouched_code_that_differs_ends_the_run(root: Path) -> None:
    session, found, shown = measured(root, speed={LOOP: FASTER}, biased=True)
    assert len(session.stages) == 1
    assert found.kept == ()
    assert [control.passed for control in shown.controls if control.unchanged] == [False]
    assert any("no time of this run can be believed" in warning for warning in shown.warnings)


def test_code_that_works_on_after_it_has_returned_is_suspicious(root: Path) -> None:
    _, found, shown = measured(root, speed={LOOP: FASTER, MADE: FASTER}, suspicious=frozenset({LOOP}))
    assert LOOP not in names(found.kept)
    assert row(shown, "TL301").verdict == "suspicious"
    assert reporting.speaks_against(found)


@pytest.mark.parametrize("device", ["sim", "cpu"])
def test_devices_that_lack_something(root: Path, device: str) -> None:
    session, found, shown = measured(root, device=device, speed={LOOP: FASTER}, syncs={LOOP: 1})
    if device == "sim":
        assert session.stages == []
        assert row(shown, "TL301").verdict == "fewer-syncs"
        assert shown.together is not None
        assert not shown.together.confirmed
        assert "all 2 fixes together" in to_terminal(shown)
    else:
        assert not found.counts
        assert names(found.kept) == {LOOP}
        assert shown.sites == ()


def test_a_fix_that_fails(root: Path) -> None:
    _, found, shown = measured(root, fails={"all": ArmError("oom", "no memory"), LOOP: ArmError("oom", "no memory")})
    assert row(shown, "TL301").verdict == "oom"
    assert found.failures[LOOP] == Failure("oom", "no memory")
    assert reporting.speaks_against(found)


def test_what_fails_with_one_fix_does_not_count_against_the_others(root: Path) -> None:
    class Grudging(MadeUp):
        def check(self, session: object, clerk: object, base: object, arm: Any, declared: Any) -> dict[str, Any]:  # noqa: ANN401
            if b"total += loss.item()" not in arm.files["train.py"]:  # the fix of LOOP is in it
                raise ArmError("exception", "it breaks")
            return super().check(session, clerk, base, arm, declared)

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(globals(), "MadeUp", Grudging)
        _, found, shown = measured(
            root, select=("TL301", "TL302", "TL401"), speed={EVAL: FASTER, GRAD: FASTER}, device="cpu"
        )
    assert set(found.failures) == {LOOP, "all of close"}
    assert names(found.kept) == {EVAL, GRAD}
    assert shown.together is not None
    assert shown.together.verdict == "faster"


@pytest.mark.parametrize("name", ["original", "null"])
def test_a_program_that_fails_as_it_is(root: Path, name: str) -> None:
    with pytest.raises(timing.BaselineError, match="it breaks"):
        measured(root, fails={name: ArmError("exception", "it breaks")})


def test_a_program_without_a_step(root: Path) -> None:
    with pytest.raises(timing.BaselineError, match="without a step"):
        measured(root, lines={}, length=0)


def test_a_report_without_fixes_shows_where_the_host_waits(root: Path) -> None:
    (root / "train.py").write_text("SIZE = 1\n" * 5, encoding="utf-8")
    _, _, shown = measured(root, device="sim")
    assert shown.summary == "no fix; counted 40 steps and what follows"
    (site,) = shown.sites
    assert (site.path, site.line, site.kind, site.per_unit) == ("train.py", 3, "waits, copies to the host", 4)
    text = to_terminal(shown)
    assert "4/step  train.py:3  waits, copies to the host" in text
    assert "check says nothing: no rule looks for it" in text
    assert "verdict" not in text
    assert to_json(shown)


def test_the_steps_that_are_counted(root: Path) -> None:
    assert measured(root, steps=7)[1].counts["null"].units == 7
    _, found, shown = measured(root, kind="function", steps=None)
    assert found.counts["null"].units == 20
    assert not found.later
    assert shown.warnings == ()


def test_counts_that_cannot_be_right_are_not_shown(root: Path) -> None:
    uncounted = {LOOP: "the profiler saw nothing"}
    session, found, shown = measured(root, device="cuda", speed={LOOP: FASTER}, uncounted=uncounted)
    assert session.stages
    assert row(shown, "TL301").syncs is None
    assert row(shown, "TL301").memory is not None
    assert found.counts["null"].per_unit
    assert any("is not counted: the profiler saw nothing" in warning for warning in shown.warnings)
    _, _, shown = measured(root, device="sim", uncounted={"null": "the profiler saw nothing"})
    assert [each.syncs for each in shown.rows] == [None] * len(shown.rows)
    assert "what the program asks of the device is not counted: the profiler saw nothing" in shown.warnings
    assert shown.sites, "whose source is another"


def test_metrics_of_rules_are_those_of_their_pairs() -> None:
    assert metric("eval-without-no-grad") == "memory"
    assert metric("item-in-train-loop") == "syncs"


@pytest.mark.parametrize(
    ("verdict", "words", "passed"),
    [
        ("no-measurable-difference", "as fast as after an edit that does nothing", True),
        ("slower", "not as fast as after an edit that does nothing", False),
        ("inconclusive", "not shown to differ from an edit that does nothing: +0.0 % [-62.0, +132]", None),
        (None, "not shown to differ from an edit that does nothing: +0.0 % [-62.0, +132]", None),
    ],
)
def test_a_wide_interval_says_nothing_for_untouched_code(verdict: Any, words: str, passed: bool | None) -> None:  # noqa: ANN401, FBT001
    decision = Decision(verdict, 1.0, 0.38, 2.32, 0.99, 4)
    speedup = ratio(decision, [0.0, 0.0])
    assert reporting._bias(decision, speedup) == (words, passed)  # noqa: SLF001 - what the whole run needs minutes for
