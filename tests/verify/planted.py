"""A small program to measure, and versions of it with a planted fault each."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from torchlint.verify.arms import Arm, Subject
from torchlint.verify.remains import TAG, remove

FILE = "workload.py"
PROGRAM = """
import ctypes, os, sys, threading, time
import torch

WORK = 100

def setup(device, size):
    return {"layer": torch.nn.Linear(64, 64).requires_grad_(False), "x": torch.randn(64, 64)}

def run(state):
    for _ in range(WORK):
        y = torch.tanh(state["layer"](state["x"]))
    state["x"] = y + 0.1 * torch.randn_like(y)
    return y
"""
SLEEP = f"86{os.getpid():06d}"
"""Seconds that no other process of this machine sleeps."""
_BY = "PLANTED_BY"


@dataclass(frozen=True, slots=True)
class Place:
    """A tree with the program, the folder of temporary files, and what there was on the machine before."""

    tree: Path
    temporary: Path
    shared: frozenset[str]

    def subject(self) -> Subject:
        """The program on one core of the CPU."""
        return Subject(self.tree, {"kind": "workload", "file": FILE, "size": "smoke"}, "cpu", 1, sys.executable)

    def left(self) -> list[str]:
        """What is there that was not: temporary files, shared memory, processes."""
        files = [path.name for path in self.temporary.iterdir()]
        return files + sorted(shared_memory() - self.shared) + processes()


def arm(name: str, source: str) -> Arm:
    """The program as `source` has it."""
    return Arm(name, {FILE: source.encode()})


def changed(old: str, new: str, program: str = PROGRAM) -> str:
    """The program with one piece replaced."""
    assert program.count(old) == 1
    return program.replace(old, new)


@contextmanager
def place(program: str = PROGRAM) -> Iterator[Place]:
    """A tree with the program, and temporary files in a folder of their own."""
    folder = Path(tempfile.mkdtemp(prefix="tl-"))
    tree, temporary = folder / "tree", folder / "tmp"
    tree.mkdir()
    temporary.mkdir()
    (tree / FILE).write_text(program, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(temporary))
        patch.setattr(tempfile, "tempdir", None)
        patch.setenv(_BY, str(os.getpid()))
        try:
            yield Place(tree, temporary, shared_memory())
        finally:
            remove(folder)


def shared_memory() -> frozenset[str]:
    """The names in /dev/shm."""
    return frozenset(os.listdir("/dev/shm"))  # noqa: S108 - what is tested


def processes() -> list[str]:
    """The commands of processes that carry an arm's mark and were started by this process, or sleep as planted."""
    found = []
    for folder in Path("/proc").iterdir():
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            marks = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        ours = f"{_BY}={os.getpid()}".encode() in marks
        if SLEEP.encode() in words or (ours and any(mark.startswith(f"{TAG}=".encode()) for mark in marks)):
            found.append(b" ".join(words).decode(errors="replace")[:80])
    return found
