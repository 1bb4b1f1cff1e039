"""What a run knows its processes by is theirs alone, also beside other runs."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from torchlint.verify.session import _held_namespace


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


def test_there_is_none_of_a_process_that_is_gone() -> None:
    with subprocess.Popen(["true"]) as process:
        pass
    assert _held_namespace(process.pid) is None
