"""What the machine has to offer, and what is said where it lacks something."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from torchlint.verify.arms import Subject
from torchlint.verify.machine import CannotRunError, Clerk, Machine, UsageError, limits_of, require, threads_for
from torchlint.verify.process import ArmError

BARE = Machine(cuda=False, devices=0, why="torch was built without CUDA", name="", processor="Some CPU", torch="2.13.0")


def test_without_cuda_it_says_what_can_be_done_instead() -> None:
    with pytest.raises(CannotRunError) as raised:
        require(BARE, "cuda", "TL401")
    text = str(raised.value)
    assert text.startswith("no CUDA device (torch was built without CUDA)\n")
    for way in ("--device sim", "--device cpu", "torchlint explain TL401"):
        assert way in text
    require(BARE, "cpu")
    require(BARE, "sim")


def test_the_names_of_devices() -> None:
    assert (BARE.device_name("cpu"), BARE.device_name("sim")) == ("Some CPU", "Simulated CUDA device")
    assert replace(BARE, name="MI300X", accelerator="rocm").device_name("rocm") == "MI300X"


@pytest.mark.parametrize(
    ("accelerator", "asked", "kind", "called"),
    [("rocm", "cuda", "rocm", "ROCm"), ("mps", "mps", "mps", "MPS"), ("xpu", "xpu", "xpu", "XPU")],
)
def test_an_accelerator_that_is_not_nvidias_is_measured_and_says_what_is_not_looked_at(
    accelerator: str, asked: str, kind: str, called: str
) -> None:
    there = replace(BARE, accelerator=accelerator)
    require(there, asked)
    assert there.kind(asked) == kind
    assert limits_of(kind) == (
        f"on {called}, results are compared and time is measured by the wall clock; waits, copies, launches, memory and "
        "clocks are not looked at"
    )
    subject = Subject(Path(), {"kind": "workload"}, kind, 1, "python")
    assert (subject.on_accelerator, subject.is_counted) == (True, False)
    assert threads_for(kind) == threads_for("cuda")


@pytest.mark.parametrize("kind", ["cuda", "cpu", "sim"])
def test_where_all_is_looked_at_there_is_nothing_to_say(kind: str) -> None:
    assert limits_of(kind) == ""
    assert replace(BARE, cuda=True).kind(kind) == kind


@pytest.mark.parametrize(
    ("accelerator", "asked", "expected", "hint"),
    [
        (
            "mps",
            "cuda",
            "no CUDA device",
            "--device mps ...   compares what is computed, and times it by the wall clock",
        ),
        ("mps", "xpu", "no XPU device", "--device mps"),
        ("npu", "cuda", "no CUDA device", ""),
        ("", "mps", "no MPS device", ""),
        ("rocm", "mps", "no MPS device", ""),
    ],
)
def test_without_the_one_that_was_asked_for_the_other_is_named(
    accelerator: str, asked: str, expected: str, hint: str
) -> None:
    with pytest.raises(CannotRunError) as raised:
        require(replace(BARE, accelerator=accelerator), asked)
    text = str(raised.value)
    assert text.startswith(f"{expected} (torch was built without CUDA)\n")
    assert hint in text
    assert ("wall clock" in text) == bool(hint)


def test_a_python_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"`--python .*/nowhere`: no such file or directory"):
        Clerk(tmp_path, str(tmp_path / "nowhere"))


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script stands for Python")
def test_a_python_without_torch(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    python.chmod(0o755)
    with pytest.raises(CannotRunError, match=r"install `torchlint\[verify\]` there"):
        Clerk(tmp_path, str(python))


def test_a_comparison_that_breaks_is_no_fault_of_a_fix_and_ends_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Mortal:
        """A process that ends when it is first asked to compare; the one after it does not."""

        lives: ClassVar[list[Mortal]] = []

        def __init__(self, *_: object, **__: object) -> None:
            self.closed = False
            self.lives.append(self)

        def ready(self, timeout: float) -> dict[str, Any]:
            return {"timeout": timeout}

        def ask(self, name: str, timeout: float, **message: object) -> dict[str, Any]:
            assert not self.closed
            if len(self.lives) == 1:
                raise ArmError("crash", f"killed by SIGKILL while {name}, {timeout:g}, {len(message)}")
            return {"result": {"verdict": "same"}}

        def close(self) -> None:
            self.closed = True

    monkeypatch.setattr("torchlint.verify.machine.Worker", Mortal)
    clerk = Clerk(tmp_path, sys.executable)
    message: dict[str, Any] = {"before": "a", "after": "b", "class": "close"}
    said = clerk.compare(**message)
    assert (said["class"], said["verdict"]) == ("close", "not-checked")
    assert said["reason"].startswith("what was computed could not be compared: killed by SIGKILL")
    assert clerk.compare(**message) == {"verdict": "same"}
    assert [each.closed for each in Mortal.lives] == [True, False]


def test_a_comparison_is_waited_for_no_longer_than_there_is_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Asked:
        """A process that says how long it was waited for."""

        def __init__(self, *_: object, **__: object) -> None:
            self.waited: list[float] = []

        def ready(self, timeout: float) -> dict[str, Any]:
            return {"timeout": timeout}

        def ask(self, _name: str, timeout: float, **_: object) -> dict[str, Any]:
            return {"result": {"verdict": "same", "waited": timeout}}

    monkeypatch.setattr("torchlint.verify.machine.Worker", Asked)
    clerk = Clerk(tmp_path, sys.executable)
    message: dict[str, Any] = {"class": "close"}
    assert clerk.compare(**message)["waited"] == 600
    assert clerk.compare(patience=90.0, **message)["waited"] == 90


def test_where_the_cpu_is_measured_torch_has_one_thread() -> None:
    assert (threads_for("cpu"), threads_for("sim")) == (1, 1)
    assert threads_for("cuda") >= 1
