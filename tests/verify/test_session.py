"""What a run knows its processes by is theirs alone, also beside other runs."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from made_up import subject

from torchlint.verify.arms import Arm, Patience, Subject
from torchlint.verify.inside.capture import Capture
from torchlint.verify.session import Session, _held_namespace, session


@contextmanager
def apart() -> Iterator[tuple[int, str]]:
    """A process in a mount namespace of its own, and the name of that."""
    command = ["unshare", "--mount", "sh", "-c", "echo ready; exec sleep 60"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        try:
            if process.stdout.readline() != b"ready\n":
                pytest.skip("this user cannot make a mount namespace")
            yield process.pid, str(Path(f"/proc/{process.pid}/ns/mnt").readlink())
        finally:
            process.kill()


@pytest.mark.skipif(shutil.which("unshare") is None, reason="Linux has it, in util-linux")
def test_the_namespace_of_a_process_that_has_ended_is_no_other_processs() -> None:
    with apart() as (process, first):
        held = _held_namespace(process)
    assert held is not None
    try:
        with apart() as (_, second):
            assert second != first
    finally:
        os.close(held)


def test_nobody_is_waited_for_longer_than_there_is_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.monotonic", lambda: 1000.0)
    session = Session(subject("workload", "cpu"), tmp_path, Patience(check=300), print)
    assert (session.patience.check, session.late) == (300, False)
    session.deadline = 1100.0
    assert (session.patience.check, session.patience.load, session.patience.block, session.late) == (
        100,
        100,
        60,
        False,
    )
    session.deadline = 999.0
    assert (session.patience.check, session.patience.compare, session.late) == (5, 5, True)


COMPILES = """
import os

def setup(device, size):
    return None

def run(state):
    kept = []
    for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "CUDA_CACHE_PATH"):
        file = os.path.join(os.environ[name], "made")
        kept.append(os.path.exists(file))
        open(file, "w").close()
    return kept, [os.environ[name] for name in ("TORCHINDUCTOR_CACHE_DIR", "TMPDIR")]
"""


@pytest.mark.slow
def test_processes_of_one_arm_share_what_was_compiled_and_arms_do_not(tmp_path: Path) -> None:
    root = tmp_path / "tree"
    root.mkdir()
    (root / "workload.py").write_text(COMPILES, encoding="utf-8")
    made = Subject(root, {"kind": "workload", "file": "workload.py", "size": "gpu"}, "cpu", 1, sys.executable)
    seen: list[tuple[list[bool], list[str]]] = []
    with session(made) as running:
        for name in ("first", "first", "second", "first"):
            file = str(running.captured("values.pt"))
            with running.running(Arm(name)) as worker:
                worker.ask("start", 60, seed=1)
                worker.ask("check", 60, steps=1, file=file)
            captured = Capture.load(file)
            kept = [bool(value) for path, value in captured.values.items() if path.startswith("step0[0]")]
            seen.append((kept, list(captured.texts.values())))
    assert [kept for kept, _ in seen] == [[False] * 3, [True] * 3, [False] * 3, [True] * 3]
    (one, temporary), (again, other), (another, _), _ = (paths for _, paths in seen)
    assert one == again != another
    assert len(one) == len(another)
    assert temporary != other, "what is no compiler's is new in each process"


def test_there_is_none_of_a_process_that_is_gone() -> None:
    with subprocess.Popen(["true"]) as process:
        pass
    assert _held_namespace(process.pid) is None
