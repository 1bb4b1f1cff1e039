"""Files are linted here or in several processes with the same outcome, whatever becomes of the processes."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from torchlint import pool
from torchlint.finding import Applicability, Fault, Result
from torchlint.pool import Job, Outcome, outcome, work
from torchlint.settings import Settings

SETTINGS = Settings(rules=("host-factory-then-move",))
SLOW = b"import torch\n\n\ndef mask(size):  # torchlint: hot[per-batch]\n    return torch.zeros(size, size).cuda()\n"
FAST = SLOW.replace(b"size).cuda()", b'size, device="cuda")')


def job(shown: str, data: bytes = SLOW, threshold: Applicability | None = None) -> Job:
    return Job(shown, data, SETTINGS, threshold)


def several(number: int) -> list[Job]:
    return [job(f"{i}.py", b"# %d\n" % i + SLOW, Applicability.SAFE) for i in range(number)]


def by_name(outcomes: Iterator[tuple[Job, Outcome]]) -> dict[str, Outcome]:
    return {done.shown: found for done, found in outcomes}


# One file


def test_linting_finds_and_does_not_fix_unasked() -> None:
    found = outcome(job("a.py"))
    assert [finding.code for finding in found.result.findings] == ["TL201"]
    assert found.fixed is None


def test_fixing_keeps_what_was_found() -> None:
    found = outcome(job("a.py", threshold=Applicability.SAFE)._replace(is_final=True))
    assert [finding.code for finding in found.result.findings] == ["TL201"]
    assert found.fixed is not None
    assert found.fixed.text.encode() == FAST
    assert found.fixed.result.is_clean


def test_what_there_is_nothing_to_fix_in_is_not_fixed() -> None:
    assert outcome(job("a.py", FAST, Applicability.SAFE)) == Outcome(Result())


def test_bytes_that_are_no_text_are_a_diagnostic() -> None:
    (diagnostic,) = outcome(job("a.py", SLOW + b"# \xff\n")).result.diagnostics
    assert (diagnostic.code, diagnostic.fault) == ("E902", Fault.FILE)
    assert "line 6" in diagnostic.message


def test_a_defect_is_a_diagnostic(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise KeyError("scope")

    monkeypatch.setattr(pool, "lint_and_answer", fail)
    (diagnostic,) = outcome(job("a.py")).result.diagnostics
    assert (diagnostic.code, diagnostic.fault) == ("E000", Fault.INTERNAL)
    assert "KeyError: 'scope' (fail, line " in diagnostic.message


# Here or elsewhere


@pytest.mark.parametrize(
    ("jobs", "processes", "place"),
    [
        ([], 2, "here"),
        ([job("a.py", b"\n" * 100)], 2, "here"),
        ([job("a.py", b"\n" * 30), job("b.py", b"\n" * 30)], 2, "here"),
        ([job("a.py", b"\n" * 60), job("b.py", b"\n" * 60)], 2, "elsewhere"),
        ([job("a.py", b"\n" * 60), job("b.py", b"\n" * 60)], 1, "here"),
    ],
)
def test_processes_are_for_much_work(
    monkeypatch: pytest.MonkeyPatch, jobs: list[Job], processes: int, place: str
) -> None:
    monkeypatch.setattr(pool, "LEAST_LINES", 100)
    monkeypatch.setattr(pool, "_here", lambda jobs: ("here", list(jobs)))
    monkeypatch.setattr(pool, "_spread", lambda jobs, _: ("elsewhere", list(jobs)))
    chosen: object = work(jobs, processes)
    assert chosen == (place, jobs)


def test_one_processor_means_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_processors", lambda: 1)
    monkeypatch.setattr(pool, "_here", lambda _: "here")
    chosen: object = work([job("a.py", b"\n" * 1_000_000)] * 2)
    assert chosen == "here"


def test_the_collector_is_off_and_called_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_BYTES_BETWEEN_COLLECTIONS", 3 * len(SLOW))
    calls: list[int] = []
    monkeypatch.setattr(gc, "collect", lambda: calls.append(1))
    assert gc.isenabled()
    for _ in work([job(f"{i}.py") for i in range(10)], 1):
        assert not gc.isenabled()
    assert gc.isenabled()
    assert len(calls) == 3


def test_the_collector_is_on_again_though_nobody_reads_on() -> None:
    outcomes = work(several(3), 1)
    next(outcomes)
    outcomes.close()
    assert gc.isenabled()


def test_several_processes_find_what_one_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [*several(12), job("bad.py", b"import torch\ntorch.zeros(\n"), job("latin.py", SLOW + b"# \xff\n")]
    here = by_name(work(jobs, 1))
    monkeypatch.setattr(pool, "LEAST_LINES", 1)
    assert by_name(work(iter(jobs), 2)) == here
    assert len(here) == 14


@pytest.mark.parametrize("lent", [0, 1])
def test_where_no_more_processes_are_to_be_had_the_others_do_it_all(monkeypatch: pytest.MonkeyPatch, lent: int) -> None:
    started: list[object] = []
    worker = pool._Worker  # noqa: SLF001 - the system is played

    def start(*arguments: Any) -> Any:  # noqa: ANN401 - as it is
        if len(started) == lent:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        started.append(worker(*arguments))
        return started[-1]

    jobs = several(12)
    here = by_name(work(jobs, 1))
    monkeypatch.setattr(pool, "LEAST_LINES", 1)
    monkeypatch.setattr(pool, "_Worker", start)
    assert by_name(work(jobs, 2)) == here
    assert len(started) == lent


# What becomes of the processes: in a process of their own, which has one thread, as the command line has

PREPARE = """
import json, multiprocessing, os, signal, sys, time
from torchlint import pool
from torchlint.pool import Job, work
from torchlint.settings import Settings

pool.LEAST_LINES = 1
SETTINGS = Settings(rules=("host-factory-then-move",))
SLOW = b"import torch\\n\\n\\ndef mask(size):\\n    return torch.zeros(size, size).cuda()\\n"
JOBS = [Job(f"{i}.py", b"# %d\\n" % i + SLOW, SETTINGS) for i in range(16)]
PARENT, LINT = os.getpid(), pool.lint_and_answer
"""

unix_only = pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux alone")


def script(code: str) -> Any:  # noqa: ANN401 - whatever it prints
    command = [sys.executable, "-W", "error", "-c", PREPARE + code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return json.loads(done.stdout)


@unix_only
def test_a_single_thread_forks_after_libcst_is_loaded() -> None:
    loaded, method = script(
        "print(json.dumps([bool(list(work(JOBS, 2))) and 'libcst._nodes' in sys.modules,"
        " pool._context().get_start_method()]))"
    )
    assert loaded
    assert method == "fork"


@unix_only
def test_beside_a_thread_nothing_is_forked() -> None:
    method = script(
        "import threading\n"
        "threading.Thread(target=time.sleep, args=(0.5,)).start()\n"
        "print(json.dumps(pool._context().get_start_method()))"
    )
    assert method == "forkserver"


@unix_only
@pytest.mark.parametrize("signal_name", ["SIGKILL", "SIGSEGV"])
def test_a_file_that_kills_its_process_is_named_and_costs_no_other(signal_name: str) -> None:
    found = script(
        "def lint(source, settings, facts, asked):\n"
        "    if source.path in ('5.py', '11.py') and os.getpid() != PARENT:\n"
        f"        os.kill(os.getpid(), signal.{signal_name})\n"
        "    return LINT(source, settings, facts, asked)\n"
        "pool.lint_and_answer = lint\n"
        "found = {}\n"
        "for job, outcome in work(iter(JOBS), 2):\n"
        "    assert job.shown not in found\n"
        "    found[job.shown] = [[d.code, d.fault.value, d.message] for d in outcome.result.diagnostics]"
        " or [f.code for f in outcome.result.findings]\n"
        "print(json.dumps(found))"
    )
    assert len(found) == 16
    for shown, said in found.items():
        if shown in ("5.py", "11.py"):
            ((code, severity, message),) = said
            assert (code, severity) == ("E000", "internal")
            assert "died" in message
        else:
            assert said == ["TL201"]


@unix_only
def test_a_file_that_kills_its_process_once_is_linted_the_second_time() -> None:
    """As where the memory was too little for two at a time."""
    found = script(
        "def lint(source, settings, facts, asked):\n"
        "    mark = os.path.join(sys.argv[1], source.path)\n"
        "    if source.path in ('5.py', '11.py') and not os.path.exists(mark):\n"
        "        open(mark, 'w').close()\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return LINT(source, settings, facts, asked)\n"
        "pool.lint_and_answer = lint\n"
        "import tempfile\n"
        "with tempfile.TemporaryDirectory() as folder:\n"
        "    sys.argv = ['', folder]\n"
        "    found = {job.shown: [f.code for f in outcome.result.findings] for job, outcome in work(JOBS, 2)}\n"
        "print(json.dumps(found))"
    )
    assert found == {f"{i}.py": ["TL201"] for i in range(16)}


@unix_only
def test_processes_that_die_before_they_begin_are_done_without() -> None:
    assert script(
        "def serve(connection):\n"
        "    os._exit(1)\n"
        "pool._serve = serve\n"
        "print(json.dumps(sorted(job.shown for job, outcome in work(JOBS, 2) if outcome.result.findings)))"
    ) == sorted(f"{i}.py" for i in range(16))


@unix_only
def test_jobs_larger_than_a_pipe_cost_no_more_when_a_process_dies() -> None:
    """The next jobs are being written to it just then."""
    found = script(
        "def lint(source, settings, facts, asked):\n"
        "    if source.path == '3.py':\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "    return LINT(source, settings, facts, asked)\n"
        "pool.lint_and_answer = lint\n"
        "jobs = [job._replace(data=job.data + b'# ' + b'x' * 300_000) for job in JOBS]\n"
        "print(json.dumps({job.shown: len(outcome.result.findings) for job, outcome in work(jobs, 2)}))"
    )
    assert found == {f"{i}.py": int(i != 3) for i in range(16)}


@unix_only
def test_who_stops_reading_leaves_no_process_behind() -> None:
    assert script(
        "def lint(source, settings, facts, asked):\n"
        "    if source.path != '0.py' and os.getpid() != PARENT:\n"
        "        time.sleep(60)\n"
        "    return LINT(source, settings, facts, asked)\n"
        "pool.lint_and_answer = lint\n"
        "outcomes = work(JOBS, 2)\n"
        "started = time.monotonic()\n"
        "next(outcomes)\n"
        "outcomes.close()\n"
        "print(json.dumps([multiprocessing.active_children(), time.monotonic() - started < 30]))"
    ) == [[], True]


@unix_only
def test_processes_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    code = PREPARE + (
        "def lint(source, settings, facts, asked):\n"
        "    if os.getpid() != PARENT:\n"
        "        open(os.path.join(sys.argv[1], str(os.getpid())), 'w').close()\n"
        "        time.sleep(60)\n"
        "    return LINT(source, settings, facts, asked)\n"
        "pool.lint_and_answer = lint\n"
        "list(work(JOBS, 2))\n"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)]) as process:
        deadline = time.monotonic() + 60
        while len(list(tmp_path.iterdir())) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        workers = [int(path.name) for path in tmp_path.iterdir()]
        process.kill()
    assert len(workers) == 2
    assert all(ends(worker) for worker in workers)


def ends(process: int) -> bool:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":  # whoever adopts it has not looked yet
            return True
        time.sleep(0.02)
    os.kill(process, signal.SIGKILL)
    return False


ROW = "    'a.b/c': f(1.5, x=-2, names=('d', \"it's\"), **{}),  # it's {0}\n"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("d = {\n" + ROW * 500 + "}\n", False),
        ("x = [" + "-1.5, " * 3_000 + "]\n", False),
        ("a.b(c + d)\n" * 1_000, False),
        ('"""It\'s a + b.\n\nfrom here\n"""\n' * 1_000, False),
        ("f(f'{a}: {b[0]}, {{}}', f\"{c}\")\n" * 1_000, False),
        ("x = [\n" + "    (lambda a, b: a + b),\n" * 1_000 + "]\n", False),
        ("x = " + "a + " * 2_000 + "a\n", True),
        ("x = " + "f(a, b) + " * 2_000 + "a\n", True),
        ("x = a" + "(b, c)" * 2_000 + "\n", True),
        ("x = (\n" + "    'a, b'\n" * 2_000 + ")\n", True),
        ("x = (\r\n" + "a if b\r\nelse\r\n" * 2_000 + "c)\r\n", True),
        ("x = " + "lambda a=f(1, 2), b=3: " * 2_000 + "a\n", True),
        ("x = [a " + "for a, b in c.d " * 2_000 + "]\n", True),
        ("x = a\\\n" + "+ a\\\n" * 2_000 + "\n", True),
        ("if a: pass\n" + "elif a: pass\n" * 2_000, True),
        ("d = {\n" + ROW * 500 + "    1: " + "a + " * 2_000 + "a,\n}\n", True),
        # No string hides what stands beside it.
        ('"""\nfrom x\n"""\nx = a' + ".a" * 2_000 + '\n"""\n"""\n', True),
        ("# it's\nx = " + "a + " * 2_000 + "a  # '\n", True),
        ('x = f"{x | {{y}, " + ' + "a + " * 2_000 + '"}}"\n', True),
        ('x = f"{' + "a + " * 2_000 + 'a}"\n', True),
        ('x = "abc\\\nfrom" + ' + "a + " * 2_000 + "a\n", True),
    ],
    ids=range(21),
)
def test_what_may_end_a_process_is_told_from_a_table(text: str, expected: bool) -> None:  # noqa: FBT001 - as in others
    assert pool._may_overflow("a.py", text.encode()) is expected  # noqa: SLF001 - else it takes a process that dies
