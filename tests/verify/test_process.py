"""A worker that answers, hangs, dies, prints without end or talks nonsense never takes the controller with it."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from planted import PROGRAM, arm, place

from torchlint.verify import process
from torchlint.verify.process import ArmError, Worker
from torchlint.verify.session import TreeChangedError, session

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="process groups and pipes as POSIX has them")

Play = Callable[[str], Worker]

# A measured process that does what the test says, without torch.
_PLAYED = """
import json, os, signal, sys, time
commands, replies = (int(word) for word in sys.argv[1:])
line = os.fdopen(commands)

def read():
    text = line.readline()
    return json.loads(text) if text else None

def reply(**what):
    os.write(replies, json.dumps({"id": asked["id"], "ok": True, **what}).encode() + b"\\n")

asked = read()
"""


@pytest.fixture
def playing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Play]:
    workers: list[Worker] = []

    def play(code: str) -> Worker:
        def command(_module: str, *arguments: str, python: str) -> list[str]:
            return [python, "-c", _PLAYED + code, *arguments]

        monkeypatch.setattr(process, "command", command)
        workers.append(Worker({"some": "configuration"}, tmp_path, tag="mark"))
        return workers[-1]

    yield play
    for worker in workers:
        worker.close(politely=False)


def ended(number: int) -> bool:
    for _ in range(200):
        try:
            os.kill(number, 0)
            state = Path(f"/proc/{number}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
        except (ProcessLookupError, FileNotFoundError):
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_it_gets_its_configuration_and_answers(playing: Play) -> None:
    worker = playing(
        "reply(got=asked['some'], tag=os.environ['TORCHLINT_VERIFY_ID'], session=os.getsid(0))\n"
        "asked = read()\nreply(units=asked['units'], command=asked['command'])"
    )
    said = worker.ready(30)
    assert (said["got"], said["tag"], said["session"]) == ("configuration", "mark", worker.pid)
    assert worker.ask("count", 30, units=3)["units"] == 3


def test_several_load_beside_each_other(playing: Play, tmp_path: Path) -> None:
    for name in ("first", "second"):
        playing(f"open({str(tmp_path / name)!r}, 'w').close()\nreply()")
    until = time.monotonic() + 30
    while time.monotonic() < until and not all((tmp_path / name).exists() for name in ("first", "second")):
        time.sleep(0.02)
    assert (tmp_path / "second").exists(), "it has its configuration before anybody waits for it"


def test_an_error_is_raised_as_it_was_told(playing: Play) -> None:
    worker = playing("reply(ok=False, kind='oom', error='MemoryError', trace='Traceback')")
    with pytest.raises(ArmError, match="MemoryError") as error:
        worker.ready(30)
    assert (error.value.kind, error.value.trace) == ("oom", "Traceback")


def test_one_that_hangs_is_killed(playing: Play) -> None:
    worker = playing("reply()\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\ntime.sleep(600)")
    worker.ready(30)
    with pytest.raises(ArmError, match=r"no answer within 0\.2 s") as error:
        worker.ask("block", 0.2)
    assert error.value.kind == "timeout"
    assert ended(worker.pid)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("os.kill(os.getpid(), signal.SIGSEGV)", "killed by SIGSEGV"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "killed by SIGKILL, as the system does where memory is short"),
        ("os.abort()", "killed by SIGABRT"),
        ("os._exit(3)", "exited with status 3"),
        ("os._exit(0)", "ended before it answered"),
    ],
)
def test_one_that_dies_is_known_by_its_end(code: str, words: str, playing: Play) -> None:
    with pytest.raises(ArmError) as error:
        playing(code).ready(30)
    assert (error.value.kind, str(error.value)) == ("crash", words)


def test_one_that_dies_is_noticed_while_its_children_hold_the_line(playing: Play) -> None:
    worker = playing("if os.fork() == 0: time.sleep(600)\nos._exit(4)")
    begin = time.monotonic()
    with pytest.raises(ArmError, match="exited with status 4"):
        worker.ready(60)
    assert time.monotonic() - begin < 30


def test_the_last_reply_of_one_that_dies_is_read_whole(playing: Play) -> None:
    worker = playing("reply(long='x' * 500_000)\nos._exit(0)")
    assert len(worker.ready(30)["long"]) == 500_000


@pytest.mark.parametrize(
    "sent",
    [
        "b'garbage\\n'",
        "b'\\xff\\xfe\\n'",
        "b'\\n'",
        "b'[' * 100_000 + b'\\n'",
        "b'[]\\n'",
        "b'{}\\n'",
        "b'{\"ok\": true}\\n'",
        'b\'{"ok": true, "id": "guessed"}\\n\'',
    ],
)
def test_what_is_no_reply_is_an_error(sent: str, playing: Play) -> None:
    worker = playing(f"os.write(replies, {sent})\nread()\ntime.sleep(600)")
    with pytest.raises(ArmError, match="sent what is no reply") as error:
        worker.ready(30)
    assert error.value.kind == "protocol"
    assert ended(worker.pid)


def test_a_line_without_end_is_an_error(playing: Play, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "_LONGEST", 1 << 18)
    with pytest.raises(ArmError, match="sent what is no reply"):
        playing("while True: os.write(replies, b'x' * 65536)").ready(30)


def test_a_reply_too_many_is_an_error(playing: Play) -> None:
    worker = playing("reply()\nreply()\nread()\ntime.sleep(600)")
    worker.ready(30)
    with pytest.raises(ArmError, match="sent what is no reply"):
        worker.ask("block", 30)


def test_a_flood_is_taken_and_forgotten(playing: Play) -> None:
    worker = playing("for _ in range(100): print('x' * 1_000_000)\nprint('the last words')\nreply()")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    worker.ready(60)
    worker.close()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < (16 << 10 if sys.platform != "darwin" else 16 << 20)
    assert worker.output().endswith("the last words\n")
    assert len(worker.output()) <= 1 << 14


def test_a_flood_at_the_end_does_not_hold_the_end_up(playing: Play) -> None:
    worker = playing("reply()\nread()\nprint('x' * 1_000_000)\nprint('farewell')")
    worker.ready(30)
    begin = time.monotonic()
    worker.dismiss()
    assert worker.wait(30)
    assert time.monotonic() - begin < 20
    assert worker.output().endswith("farewell\n")


def test_the_last_words_of_one_that_has_ended_are_heard(playing: Play) -> None:
    worker = playing("reply()\nread()\nprint('farewell')")
    worker.ready(30)
    worker.dismiss()
    time.sleep(2)  # it has ended by then, unheard
    assert worker.wait(30)
    assert worker.output().endswith("farewell\n")


def test_a_closed_output_changes_nothing(playing: Play) -> None:
    worker = playing("os.close(1); os.close(2)\nreply()\nasked = read()\ntime.sleep(0.1)\nreply(fine=True)")
    worker.ready(30)
    assert worker.ask("block", 30)["fine"]


def test_a_long_message_reaches_one_that_prints_first(playing: Play) -> None:
    worker = playing("reply()\nprint('x' * 200_000)\nasked = read()\nreply(size=len(asked['text']))")
    worker.ready(30)
    assert worker.ask("block", 30, text="x" * 300_000)["size"] == 300_000


def test_a_message_to_one_that_has_died_is_a_crash(playing: Play) -> None:
    worker = playing("reply()\nos._exit(5)")
    worker.ready(30)
    ended(worker.pid)
    with pytest.raises(ArmError, match="exited with status 5"):
        worker.ask("block", 30, text="x" * 300_000)


def test_frozen_children_do_nothing(playing: Play, tmp_path: Path) -> None:
    count = tmp_path / "count"
    worker = playing(
        f"if os.fork() == 0:\n    while True:\n        open({str(count)!r}, 'a').write('x')\n        time.sleep(0.002)\n"
        "reply()\ntime.sleep(600)"
    )
    worker.ready(30)
    while not count.exists():
        time.sleep(0.01)
    worker.freeze()
    time.sleep(0.1)
    before = count.stat().st_size
    time.sleep(0.3)
    assert count.stat().st_size == before
    worker.thaw()
    for _ in range(500):
        if count.stat().st_size > before:
            break
        time.sleep(0.02)
    assert count.stat().st_size > before


def test_a_frozen_one_can_be_ended(playing: Play) -> None:
    worker = playing("reply()\nread()")
    worker.ready(30)
    worker.freeze()
    worker.close()
    assert ended(worker.pid)


def test_closing_twice_closes_nobody_elses_descriptors(playing: Play) -> None:
    worker = playing("reply()\nread()")
    worker.ready(30)
    worker.close()
    descriptors = os.pipe(), os.pipe(), os.pipe()
    worker.close()
    for descriptor in (end for ends in descriptors for end in ends):
        os.close(descriptor)


def test_what_cannot_be_started_leaks_no_descriptor(tmp_path: Path) -> None:
    before = len(os.listdir("/dev/fd"))
    with pytest.raises(OSError, match="no-such-python"):
        Worker({}, tmp_path, tag="", python="no-such-python")
    assert len(os.listdir("/dev/fd")) == before


def test_every_process_has_an_environment_of_another_size(playing: Play) -> None:
    sizes = set()
    for _ in range(3):
        worker = playing("reply(size=len(os.environ['TORCHLINT_VERIFY_PADDING']), seed=os.environ['PYTHONHASHSEED'])")
        said = worker.ready(30)
        sizes.add(said["size"])
        assert said["seed"] == "0"
    assert len(sizes) > 1


_CONTROLLER = """
import sys, tempfile, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from planted import arm
from torchlint.verify.arms import Subject
from torchlint.verify.session import session
subject = Subject(Path(sys.argv[2]), {"kind": "workload", "file": "workload.py", "size": "smoke"}, "cpu", 1, sys.executable)
source = Path(sys.argv[2], "workload.py").read_text()
with session(subject) as running:
    with running.starting([arm("null", source), arm("hangs", source)]) as (workers, failures):
        assert not failures, failures
        for worker in workers.values():
            worker.ask("start", 60, seed=1)
            worker.freeze()
        workers["hangs"].thaw()
        print("ready", *(worker.pid for worker in workers.values()), flush=True)
        workers["hangs"].ask("block", 600, inner=1 << 30, samples=1, warm=0)
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the process table is Linux's")
@pytest.mark.parametrize("strokes", [1, 3])
def test_ctrl_c_ends_everything(strokes: int) -> None:
    # In a group of its own, as a shell starts it: Ctrl-C reaches the whole group.
    with place(PROGRAM) as where:
        command = [sys.executable, "-c", _CONTROLLER, str(Path(__file__).parent), str(where.tree)]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        ) as controller:
            assert controller.stdout is not None
            word, *numbers = controller.stdout.readline().split() or ["nothing"]
            assert word == "ready", controller.communicate()[1]
            for _ in range(strokes):
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(controller.pid, signal.SIGINT)
                time.sleep(0.02)
            errors = controller.communicate(timeout=60)[1]
        assert controller.returncode in (-signal.SIGINT, 1, 130), errors
        assert "KeyboardInterrupt" in errors
        assert all(ended(int(number)) for number in numbers)
        assert where.left() == []


def test_a_changed_tree_is_told() -> None:
    with place() as where:
        with pytest.raises(TreeChangedError, match=r"added: new\.txt"), session(where.subject()):
            (where.tree / "new.txt").write_text("x", encoding="utf-8")
        assert where.left() == []


@pytest.mark.slow
def test_one_that_fails_to_load_is_told_beside_the_others() -> None:
    with (
        place() as where,
        session(where.subject()) as running,
        running.starting([arm("good", PROGRAM), arm("bad", "raise ValueError('planted')")]) as (workers, failures),
    ):
        assert [*workers] == ["good"]
        assert str(failures["bad"]) == "ValueError: planted"
        assert running.isolation
        assert (running.device, running.software) == ({}, {}), "which would make a driver start"
        said = workers["good"].ask("identify", 60)
        assert said["device"]["type"] == "cpu"


def test_what_a_process_has_said_of_its_device_stays_when_it_has_ended() -> None:
    with place() as where, session(where.subject()) as running:
        with running.running(arm("good", PROGRAM)) as worker:
            worker.ask("start", 60, seed=1)
        assert running.device["type"] == "cpu"
        assert json.dumps(running.software["flags"])
