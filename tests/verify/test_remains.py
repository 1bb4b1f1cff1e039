"""Whatever a measured process starts or leaves in shared memory is found and cleared, and nothing else is."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from confined import skip_if_refused, start

from torchlint.verify import remains
from torchlint.verify.placement import Tree, place
from torchlint.verify.remains import TAG, Trace, clear_shared_memory, processes, remove, shared_memory, stop, trace

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc and /dev/shm"),
]

DAEMON = """
def daemon(environment=None):
    # Forks twice and takes a session of its own, twice.
    if not os.fork():
        os.setsid()
        if not os.fork():
            os.setsid() if os.getpid() != os.getsid(0) else None
            if environment is not None:
                os.execve("/bin/sleep", ["sleep", "60"], environment)
            time.sleep(60)
        os._exit(0)
    os.wait()
"""
READY = "\nprint('ready', flush=True)\ntime.sleep(60)"


@pytest.fixture
def tag() -> str:
    return f"test-{os.getpid()}-{time.monotonic_ns()}"


@pytest.fixture
def name() -> Iterator[str]:
    """The end of names in /dev/shm that are gone after the test."""
    end = f"torchlint_test_{os.getpid()}_{time.monotonic_ns()}"
    yield end
    for path in Path("/dev/shm").glob(f"*{end}*"):  # noqa: S108 - what is tested
        path.unlink()


def started(code: str, tag: str = "", confinement: dict[str, object] | None = None) -> subprocess.Popen[str]:
    process = start(confinement or {}, DAEMON + code + READY, environment={TAG: tag} if tag else None)
    assert process.stdout is not None
    if process.stdout.readline() != "ready\n":
        raise AssertionError(process.communicate()[1])
    return process


def finish(process: subprocess.Popen[str]) -> int:
    process.wait(timeout=10)
    for pipe in (process.stdout, process.stderr):  # a daemon may hold the other end
        assert pipe is not None
        pipe.close()
    return process.returncode


def test_nothing_is_left_of_a_process_and_its_children(tag: str) -> None:
    process = started("for _ in range(3):\n    subprocess.Popen(['sleep', '60'])", tag)
    of = trace(process.pid, tag)
    assert len(processes(of)) == 4
    left = stop(of)
    assert finish(process) == -signal.SIGKILL
    assert len(left.processes) == 3
    assert processes(of) == []


def test_a_process_that_stopped_is_killed_as_well(tag: str) -> None:
    process = started("", tag)
    os.kill(process.pid, signal.SIGSTOP)
    stop(trace(process.pid, tag))
    assert finish(process) == -signal.SIGKILL


def test_a_daemon_is_found_by_its_tag(tag: str) -> None:
    process = started("daemon()\ndaemon({**os.environ})", tag)
    of = trace(process.pid, tag)
    os.kill(process.pid, signal.SIGKILL)
    assert finish(process) == -signal.SIGKILL
    daemons = processes(of)
    assert len(daemons) == 2
    assert stop(of).processes == tuple(daemons)
    assert processes(of) == []


def test_a_daemon_without_a_tag_is_found_by_its_namespace(tag: str, tmp_path: Path) -> None:
    skip_if_refused("overlay")
    (tmp_path / "tree").mkdir()
    arm = place(Tree(tmp_path / "tree"), "all", {}, tmp_path / "s", tier="overlay")
    process = started("daemon({})", tag, arm.confinement)
    of = trace(process.pid, tag)
    assert of.namespace
    os.kill(process.pid, signal.SIGKILL)
    finish(process)
    assert len(stop(of).processes) == 1
    assert processes(of) == []
    remove(tmp_path / "s")


def test_a_child_without_a_tag_in_another_session_is_found_by_its_parent(tag: str) -> None:
    code = "subprocess.Popen(['sleep', '60'], env={}, start_new_session=True)"
    process = started(code, tag)
    of = trace(process.pid, tag)
    assert of.namespace == ""
    assert len(stop(of).processes) == 1
    finish(process)


def test_a_bomb_goes_off_and_is_cleared(tag: str) -> None:
    # At most 200 processes, each in a session of its own, and each that starts another one dies.
    code = """
if not os.fork():
    for round in range(100):
        if not os.fork():
            os.setsid()
            time.sleep(0.002)
            if not os.fork():
                os.setsid()
                time.sleep(60)
            os._exit(0)
        time.sleep(0.002)
    time.sleep(60)
"""
    process = started(code, tag)
    of = trace(process.pid, tag)
    left = stop(of)
    finish(process)
    assert left.processes
    time.sleep(0.1)
    assert processes(of) == []


def test_other_processes_are_left_alone(tag: str) -> None:
    mine, other = started("", tag), started("", tag + "0")
    stop(trace(mine.pid, tag))
    finish(mine)
    assert other.poll() is None
    other.kill()
    finish(other)


def test_this_process_is_never_among_them() -> None:
    assert os.getpid() not in processes(Trace(os.getsid(0)))
    assert os.getpid() not in processes(Trace(os.getpid()))


def test_without_proc_the_group_is_killed(tag: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    process = started("child = subprocess.Popen(['sleep', '60'])", tag)
    [child] = set(processes(trace(process.pid, tag))) - {process.pid}
    monkeypatch.setattr(remains, "_PROC", tmp_path)
    assert stop(trace(process.pid, tag)) == remains.Remains((), frozenset())
    assert finish(process) == -signal.SIGKILL
    monkeypatch.undo()
    end = time.monotonic() + 5  # the kernel takes a moment
    while child in processes(Trace(process.pid)) and time.monotonic() < end:
        time.sleep(0.01)
    assert child not in processes(Trace(process.pid))


def test_shared_memory_that_the_arm_held_is_removed(tag: str, name: str) -> None:
    before = shared_memory()
    code = f"""
file = open("/dev/shm/mapped_{name}", "w+b")
file.truncate(4096)
memory = mmap.mmap(file.fileno(), 4096)
file.close()
kept = open("/dev/shm/opened_{name}", "w")
open("/dev/shm/closed_{name}", "w").close()
open("/dev/shm/torch_1_{name}", "w").close()
"""
    process = started(code, tag)
    left = stop(trace(process.pid, tag))
    finish(process)
    assert clear_shared_memory(before, left.shared) == [f"{kind}_{name}" for kind in ("mapped", "opened", "torch_1")]
    # Whose it is cannot be told.
    assert f"closed_{name}" in shared_memory()


def test_shared_memory_of_others_is_left_alone(name: str) -> None:
    folder = Path("/dev/shm")  # noqa: S108 - what is tested
    (folder / f"torch_old_{name}").touch()
    before = shared_memory()
    (folder / f"torch_new_{name}").touch()
    with (folder / f"torch_used_{name}").open("w"):
        assert clear_shared_memory(before) == [f"torch_new_{name}"]
    assert {f"torch_old_{name}", f"torch_used_{name}"} <= shared_memory()


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root gives files away")
def test_shared_memory_of_other_users_is_left_alone(name: str) -> None:
    before = shared_memory()
    path = Path("/dev/shm", f"torch_{name}")  # noqa: S108 - what is tested
    path.touch()
    os.chown(path, 65534, 65534)
    assert clear_shared_memory(before) == []


def test_where_there_is_no_shared_memory_there_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(remains, "_SHARED", tmp_path / "nowhere")
    assert shared_memory() == frozenset()
    assert clear_shared_memory(frozenset()) == []


def test_a_folder_goes_whatever_its_modes(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o500)
    folder = tmp_path / "folder"
    (folder / "closed" / "below").mkdir(parents=True)
    (folder / "closed" / "below" / "file").touch(mode=0o400)
    (folder / "link").symlink_to(outside)
    (folder / "closed" / "below").chmod(0)
    (folder / "closed").chmod(0)
    code = f"""
sys.path.insert(0, {str(Path(remains.__file__).parents[2])!r})
from torchlint.verify.remains import remove
remove(pathlib.Path({str(folder)!r}))
"""
    process = started(code)
    process.kill()
    finish(process)
    assert not folder.exists()
    assert outside.stat().st_mode & 0o777 == 0o500
    with suppress(OSError):
        remove(folder)  # what is not there is no error
