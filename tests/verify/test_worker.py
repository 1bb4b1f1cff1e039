"""The commands of a measured process, in real processes on the CPU; loaders that are frozen do not run ahead."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from planted import FILE, Place, arm, place

from torchlint.verify.inside.capture import Capture
from torchlint.verify.inside.entries import EntryError
from torchlint.verify.inside.worker import describe
from torchlint.verify.process import ArmError, Worker
from torchlint.verify.session import session

pytestmark = [
    pytest.mark.xdist_group("workers"),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the process table is Linux's"),
]

PROGRAM = """
import random, torch
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(3)

class Counted(Dataset):
    def __init__(self):
        self.made = torch.zeros(1, dtype=torch.int64).share_memory_()

    def __len__(self):
        return 100_000

    def __getitem__(self, index):
        self.made += 1
        return torch.tensor([float(index)])

def setup(device, size):
    if size == "loader":
        data = Counted()
        loader = DataLoader(data, batch_size=1, num_workers=2, persistent_workers=True, prefetch_factor=8)
        return {"made": data.made, "batches": iter(loader)}
    if size == "seeds itself":
        torch.manual_seed(3)
    # 9 is the share of a leaf that cannot be written to.
    return {
        "layer": torch.nn.Linear(4, 4).requires_grad_(False),
        "x": torch.ones(4),
        "whole": torch.ones(4, dtype=torch.int64),
        "expanded": torch.ones(1).expand(4),
        "losses": [0.5] * 100,
    }

def run(state):
    if "batches" in state:
        return next(state["batches"]), int(state["made"])
    return {"y": state["layer"](state["x"]), "n": torch.rand(2)}
"""
LONG = 60


@pytest.fixture(scope="module")
def where() -> Iterator[Place]:
    with place(PROGRAM) as found:
        yield found


@contextlib.contextmanager
def running(
    where: Place, size: str = "plain", *, started: int | None = 1, entry: dict[str, str] | None = None
) -> Iterator[Worker]:
    subject = replace(where.subject(), entry=entry or {"kind": "workload", "file": FILE, "size": size})
    with session(subject) as found, found.running(arm("null", PROGRAM)) as worker:
        if started is not None:
            worker.ask("start", LONG, seed=started)
        yield worker


def captured(worker: Worker, where: Place, command: str = "check", **message: Any) -> Capture:  # noqa: ANN401 - JSON
    # The arm may write to the folder of temporary files only where it was told to.
    file = next(where.temporary.glob("torchlint-verify-*/captures")) / f"{time.monotonic_ns()}.pt"
    worker.ask(command, LONG, file=str(file), **message)
    return Capture.load(file)


def test_each_command(where: Place) -> None:
    with running(where) as worker:
        calibrated = worker.ask("calibrate", LONG, min_ns=1_000_000, warm=1)
        assert calibrated["inner"] > 1
        assert calibrated["inner"] * calibrated["ns"] >= 1_000_000
        assert calibrated["cpu_ns"] > 0
        warm = worker.ask("warm", LONG, inner=2, most_ns=10**9)
        assert 3 <= warm["blocks"] <= 10
        assert warm["workers"] == 0
        assert warm["first_ns"] > 0
        assert worker.ask("warm", LONG, inner=2, most_ns=0)["blocks"] == 3
        block = worker.ask("block", LONG, inner=3, samples=4, warm=1)
        assert [len(sample) for sample in block["samples"]] == [3] * 4
        assert all(wall > 0 and cpu > 0 and lost >= 0 for wall, cpu, lost in block["samples"])
        assert 0 <= block["busy"] < 1
        counted = worker.ask("count", LONG, units=2)
        assert (counted["units"], counted["ended"], counted["sites"], counted["peak"]) == (2, False, [], 0)
        assert set(counted["counts"].values()) == {0}
        assert worker.ask("memory", LONG, units=1) | {"ok": 0, "id": 0} == {"ok": 0, "id": 0, "peak": 0, "held": 0}
        assert worker.ask("clock", LONG)["mhz"] is None


@pytest.mark.slow
def test_a_handicap_delays_by_what_it_says(where: Place) -> None:
    with running(where) as worker:
        for clock, index in ((False, 0), (True, 1)):
            said = worker.ask("block", LONG, inner=10, samples=1, warm=1, handicap_ns=3_000_000, handicap_cpu=clock)
            assert said["samples"][0][index] >= 3_000_000


@pytest.mark.slow
def test_a_start_repeats_what_its_seed_gives(where: Place) -> None:
    with running(where, started=None) as worker:
        captures = []
        for seed in (1, 2, 1):
            worker.ask("start", LONG, seed=seed, deterministic="error")
            captures.append(captured(worker, where, steps=2))
    first, other, again = captures
    assert {"step0['y']", "step1['n']"} <= first.values.keys()
    assert all((first.values[path] == again.values[path]).all() for path in first.values)
    assert not (first.values["step0['y']"] == other.values["step0['y']"]).all()
    assert not (first.values["step0['n']"] == first.values["step1['n']"]).all()


@pytest.mark.slow
def test_code_that_seeds_itself_is_reached_by_a_shift_for_one_start(where: Place) -> None:
    with running(where, "seeds itself", started=None) as worker:
        captures = []
        for seed, shift in ((1, 0), (2, 0), (2, 1), (1, 0)):
            worker.ask("start", LONG, seed=seed, shift=shift)
            captures.append(captured(worker, where, steps=1).values["step0['y']"])
    first, unreached, reached, again = captures
    assert (first == unreached).all()
    assert (first == again).all()
    assert not (first == reached).all()


@pytest.mark.slow
def test_parameters_are_scaled_alone_and_moved_with_all_else(where: Place) -> None:
    with running(where) as worker:
        plain = captured(worker, where, steps=1)
        assert worker.ask("start", LONG, seed=1, scale=2.0)["scaled"] == 2
        scaled = captured(worker, where, steps=1)
        worker.ask("start", LONG, seed=1)
        moved = captured(worker, where, "moved")
    expected = plain.values["step0['y']"]
    assert (scaled.values["step0['y']"] == 2 * expected).all()
    assert not (moved.values["moved['y']"] == expected).any()
    assert [*moved.values] == ["moved['y']", "moved['n']"]


@pytest.mark.slow
def test_the_state_of_one_process_is_taken_on_by_another(where: Place) -> None:
    with running(where) as worker:
        kept = next(where.temporary.glob("torchlint-verify-*/captures")) / "state.pt"
        worker.ask("state", LONG, file=str(kept))
        first = captured(worker, where, steps=1)
        worker.ask("start", LONG, seed=5, state=str(kept), dropped=[], free=[])
        second = captured(worker, where, steps=1)
    assert (first.values["step0['y']"] == second.values["step0['y']"]).all()


@pytest.mark.slow
def test_a_double_is_a_double_until_the_next_start(where: Place) -> None:
    with running(where, started=None) as worker:
        dtypes = []
        for double in (True, False):
            worker.ask("start", LONG, seed=1, double=double)
            dtypes.append(str(captured(worker, where, steps=1).values["step0['y']"].dtype))
    assert dtypes == ["torch.float64", "torch.float32"]


READS = """
import torch

def step():
    return torch.backends.cudnn.allow_tf32

def bench():
    torch.backends.cudnn.allow_tf32 = True
    seen = []
    yield lambda: (seen.append(torch.backends.cudnn.allow_tf32), list(seen))[1]
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["step", "bench"])
def test_tf32_is_kept_out_of_what_is_compared_and_of_nothing_else(where: Place, name: str) -> None:
    entry = {"kind": "function", "name": f"{FILE}:{name}"}
    with session(replace(where.subject(), entry=entry)) as found, found.running(arm("null", READS)) as worker:
        seen = []
        for options in ({"full_float32": True}, {}):
            worker.ask("start", LONG, seed=1, **options)
            values = captured(worker, where, steps=2).values
            seen.append({bool(value) for value in values.values()})
            worker.ask("block", LONG, inner=1, samples=1, warm=1)
    assert seen == [{False}, {True}]


SETS = """
import torch
torch.set_default_dtype(torch.bfloat16)
torch.use_deterministic_algorithms(True, warn_only=True)

def step():
    return torch.ones(2) + torch.rand(2), torch.get_deterministic_debug_mode()
"""


@pytest.mark.slow
@pytest.mark.parametrize("asked", [{}, {"deterministic": "warn"}, {"double": True}])
def test_what_the_code_sets_where_it_is_loaded_is_part_of_it(where: Place, asked: dict[str, Any]) -> None:
    entry = {"kind": "function", "name": f"{FILE}:step"}
    with session(replace(where.subject(), entry=entry)) as found, found.running(arm("null", SETS)) as worker:
        kinds = []
        for options in (asked, {}):
            worker.ask("start", LONG, seed=1, **options)
            values = captured(worker, where, steps=1).values
            kinds.append((values["step0[0]"].dtype, int(values["step0[1]"])))
    assert kinds[0] == (torch.float64 if asked.get("double") else torch.bfloat16, 1)
    assert kinds[1] == (torch.bfloat16, 1)


@pytest.mark.slow
def test_a_frozen_loader_does_not_run_ahead(where: Place) -> None:
    with running(where, "loader", started=None) as worker:
        assert worker.ask("start", LONG, seed=1)["workers"] == 2
        assert worker.ask("warm", LONG, inner=2, most_ns=0)["workers"] == 2
        # It has to be asked to load more than it has ahead.
        worker.ask("block", LONG, inner=40, samples=1, warm=1)
        worker.freeze()
        time.sleep(0.1)
        stopped = loaded(worker)
        assert len(stopped) == 3
        assert set(stopped.values()) == {"T"}
        worker.thaw()
        assert worker.ask("block", LONG, inner=2, samples=1, warm=4)["samples"]
    assert where.left() == []


def loaded(worker: Worker) -> dict[str, str]:
    """The processes of the worker's group, and the state of each."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            fields = (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            if fields[2] == str(worker.pid) and fields[0] not in "ZX":
                found[folder.name] = fields[0]
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"kind": "function", "name": "workload:missing"}, "`workload` has no function `missing`"),
        ({"kind": "function", "name": "no_such_module:step"}, "cannot import `no_such_module`"),
    ],
)
def test_a_wrong_entry_is_told_before_anything_runs(entry: dict[str, str], words: str, where: Place) -> None:
    with pytest.raises(ArmError, match=words) as error, running(where, entry=entry):
        pass
    assert error.value.kind == "entry"


@pytest.mark.parametrize(
    ("error", "kind", "line"),
    [
        (ValueError("two\nlines"), "exception", "ValueError: two lines"),
        (KeyError(), "exception", "KeyError"),
        (MemoryError(), "oom", "MemoryError"),
        (RuntimeError("CUDA out of memory. Tried to allocate 2 GiB"), "oom", None),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried"), "oom", None),
        (EntryError("`step` is no entry"), "entry", "`step` is no entry"),
        (type("EntryError", (Exception,), {})("the code's own"), "exception", "EntryError: the code's own"),
        (SystemExit(0), "exception", "SystemExit: 0"),
        (ValueError("x" * 1000), "exception", "ValueError: " + "x" * 488),
    ],
)
def test_an_error_becomes_one_line(error: BaseException, kind: str, line: str | None) -> None:
    said = describe(error)
    assert said["kind"] == kind
    assert line is None or said["error"] == line


def test_an_error_that_cannot_be_printed_is_told_by_its_name() -> None:
    class Silent(Exception):  # noqa: N818 - a name for what it does
        def __str__(self) -> str:
            raise ValueError

    assert describe(Silent())["error"] == "Silent"
