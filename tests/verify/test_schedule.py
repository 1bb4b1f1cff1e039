"""Which pieces are begun within a budget, several at once or one by one; and what a plan of it says."""

from __future__ import annotations

import random
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

import pytest

from torchlint.registry import find
from torchlint.verify import catalogue, pairs, plan, timing
from torchlint.verify.journal import Journal
from torchlint.verify.machine import Machine
from torchlint.verify.schedule import Scheduled, Virtual
from torchlint.verify.workload import workload

if TYPE_CHECKING:
    from pathlib import Path

    from torchlint.verify.schedule import Piece

H200 = Machine(cuda=True, devices=1, why="", name="NVIDIA H200", processor="AMD EPYC 9654", torch="2.11.0+cu130")
KNOWN = cache(workload)
CODES = ("TL301", "TL302", "TL303", "TL306", "TL309", "TL316")
MINUTES_9 = 540.0


def piece(code: str, size: str = "gpu") -> Piece:
    return KNOWN(find(code)), size


def code_of(found: Piece) -> str:
    return found[0].rule.code


def pieces(*codes: str) -> list[Piece]:
    return [piece(code) for code in codes]


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The fixer makes each fast file once."""
    monkeypatch.setattr(catalogue, "workload", KNOWN)


def test_as_many_as_may_be_are_begun_at_once_in_their_order() -> None:
    seconds = dict(zip(CODES, (30, 10, 10, 10, 10, 10), strict=True))
    crew = Virtual(2, lambda each: seconds[code_of(each)], code_of)
    work = Scheduled(crew, lambda _: None, 1e9)
    ends = [(result, crew.now(), took) for _, took, result in work.run(pieces(*CODES))]
    assert ends == [
        ("TL302", 10, 10),
        ("TL303", 20, 10),
        ("TL301", 30, 30),
        ("TL306", 30, 10),
        ("TL309", 40, 10),
        ("TL316", 40, 10),
    ]
    assert work.left == []


@pytest.mark.parametrize("at_once", [1, 2, 16])
def test_nothing_is_begun_that_is_known_not_to_fit_and_what_follows_is(at_once: int) -> None:
    known = {"TL301": 50.0, "TL302": 500.0, "TL303": 40.0}
    crew = Virtual(at_once, lambda each: known[code_of(each)], code_of)
    work = Scheduled(crew, lambda each: known[code_of(each)], 100.0)
    assert sorted(result for *_, result in work.run(pieces("TL301", "TL302", "TL303"))) == ["TL301", "TL303"]
    assert [code_of(each) for each in work.left] == ["TL302"]
    assert crew.now() <= 100


def test_what_is_stopped_waits_for_what_is_begun_and_begins_no_more() -> None:
    crew = Virtual(2, lambda _: 10.0, code_of)
    work = Scheduled(crew, lambda _: None, 1e9)
    done = []
    for *_, result in work.run(pieces(*CODES)):
        done.append(result)
        work.stop()
    assert done == ["TL301", "TL302"]
    assert [code_of(each) for each in work.left] == list(CODES[2:])


def test_what_is_closed_is_left() -> None:
    work = Scheduled(Virtual(1, lambda _: 10.0, code_of), lambda _: None, 1e9)
    running = work.run(pieces(*CODES))
    next(running)
    running.close()
    assert [code_of(each) for each in work.left] == list(CODES[1:])


def one_gpu(sizes: tuple[str, ...]) -> list[Piece]:
    """Every pair that runs on one GPU, at these sizes, as they come."""
    chosen = catalogue.selected(["ALL"], sizes, "cuda", None)
    return [each for each in chosen.pieces if each[0].devices == 1]


@pytest.mark.parametrize("sizes", [("gpu",), ()], ids=["gpu", "gpu and nohelp"])
def test_all_pairs_are_compared_and_counted_in_nine_minutes_on_sixteen_cores(sizes: tuple[str, ...]) -> None:
    """With the figures of a desk review, of an H200 with 16 cores: numerics 15 to 25 s a size, counts 15 to 20 s."""
    draw = random.Random(1)  # noqa: S311 - figures between two bounds, no secret
    crew = Virtual(16, lambda _: draw.uniform(15, 25) + draw.uniform(15, 20), lambda _: None)
    work = Scheduled(crew, lambda _: None, MINUTES_9)
    everything = one_gpu(sizes)
    done = [found for found, *_ in work.run(everything)]
    assert work.left == []
    assert len(done) == len(everything) >= 90
    assert crew.now() < MINUTES_9
    alone = Virtual(1, lambda _: 37.5, lambda _: None)
    one_by_one = Scheduled(alone, lambda _: None, MINUTES_9)
    assert sum(1 for _ in one_by_one.run(everything)) < 16, "which one after the other does not"


# The plan


def order(*, phases: tuple[str, ...] = pairs.PHASES, at_once: int = 1, device: str = "cuda") -> pairs.Order:
    return pairs.Order(device, timing.Limits(), 1, "python", "torchlint verify", phases, at_once)  # type: ignore[arg-type]  # a device


def test_a_plan_says_what_is_done_when_and_what_is_left(tmp_path: Path) -> None:
    chosen = catalogue.selected(["TL301", "TL302", "TL303"], ["gpu"], "cuda", tmp_path)
    journal = Journal.of(tmp_path, H200.name)
    for code, seconds in (("TL301", 60.0), ("TL302", 400.0)):
        journal.note(*piece(code), seconds)
    found = plan.plan(chosen, order(), H200, 300.0)
    assert [(code_of(each.piece), each.begins, each.ends, each.remembered) for each in found.planned] == [
        ("TL301", 0, 60, True),
        ("TL303", 60, 290, False),
    ], "of what was never measured, the median of what was"
    assert [code_of(each) for each in found.left] == ["TL302"]
    assert found.seconds == 290
    assert list(plan.lines(found, "cuda", budget=300.0)) == [
        "0m00s  TL301 item-in-train-loop  gpu  60 s",
        "1m00s  TL303 repeated-item       gpu  230 s (estimate)",
        "2 sizes on cuda (numerics, counts, time): about 4m50s of 5m00s; 1 left",
        "1 of them were not measured on this device yet: their times are estimates",
    ]
    assert plan.as_json(found)["left"] == [{"rule": "item-in-eval-loop", "size": "gpu"}]


def test_a_plan_of_several_at_once_overlaps(tmp_path: Path) -> None:
    chosen = catalogue.selected(["TL301", "TL302", "TL303"], ["gpu"], "cuda", tmp_path)
    phases = ("numerics", "counts")
    for code in ("TL301", "TL302", "TL303"):
        Journal.of(tmp_path, H200.name).note(*piece(code), 30.0, phases=phases)
    found = plan.plan(chosen, order(phases=phases, at_once=2), H200, None)
    assert [(each.begins, each.ends) for each in found.planned] == [(0, 30), (0, 30), (30, 60)]
    assert list(plan.lines(found, "cuda", budget=None))[-1] == (
        "3 sizes on cuda (numerics, counts), 2 at a time: about 1m00s; 0 left"
    )


def test_a_plan_of_nothing_says_so(tmp_path: Path) -> None:
    found = plan.plan(catalogue.Selected((), tmp_path), order(), H200, 60.0)
    assert list(plan.lines(found, "cpu", budget=60.0)) == [
        "0 sizes on cpu (numerics, counts, time): about 0m00s of 1m00s; 0 left"
    ]


def test_what_is_timed_alone_is_what_was_compared(tmp_path: Path) -> None:
    chosen = catalogue.selected(["TL301", "TL302"], ["gpu"], "cuda", tmp_path)
    found = plan.plan(chosen, order(phases=("time",)), H200, None)
    assert (found.planned, len(found.left)) == ((), 2)


def test_all_phases_take_as_long_as_each_where_nobody_measured_them_together(tmp_path: Path) -> None:
    journal = Journal.of(tmp_path, H200.name)
    each = piece("TL301")
    journal.note(*each, 30.0, phases=("numerics", "counts"))
    assert journal.seconds(*each) is None
    journal.note(*each, 50.0, phases=("time",))
    assert journal.seconds(*each) == 80
    assert journal.seconds(*each, ("time",)) == 50
    journal.note(*each, 70.0)
    assert Journal.of(tmp_path, H200.name).seconds(*each) == 70
    assert journal.all_seconds(("time",)) == [50]


def test_what_was_never_measured_takes_as_long_as_others_did(tmp_path: Path) -> None:
    chosen = catalogue.selected(["TL303"], ["gpu"], "cuda", tmp_path)
    journal = Journal.of(tmp_path, H200.name)

    def seconds() -> float:
        return plan.plan(chosen, order(), H200, None).seconds

    guessed = seconds()
    journal.note(*piece("TL301"), 30.0, phases=("numerics", "counts"))
    assert 30 < seconds() != guessed
    journal.note(*piece("TL302"), 50.0, phases=("time",))
    assert seconds() == 80
    journal.note(*piece("TL302"), 90.0)
    assert seconds() == 90


def test_without_a_memory_of_this_device_there_are_estimates(tmp_path: Path) -> None:
    chosen = catalogue.selected(["ALL"], ["gpu"], "cuda", tmp_path)
    found = plan.plan(chosen, order(), H200, 3600.0)
    assert found.planned
    assert Counter(each.remembered for each in found.planned) == {False: len(found.planned)}
    assert len({each.ends - each.begins for each in found.planned}) == 1
