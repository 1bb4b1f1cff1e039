"""The process that analyses: it answers, it may die, and it leaves nobody waiting."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import time
from pathlib import Path

import pytest

from torchlint.lsp import worker as worker_module
from torchlint.lsp.analysis import Lint, Place, Repair
from torchlint.lsp.worker import AnalysisError, Worker
from torchlint.source import SourceFile

pytestmark = pytest.mark.slow

SLOW = "import torch\n\n\ndef build(n):\n    return torch.zeros(n).cuda()\n"
FAST = 'import torch\n\n\ndef build(n):\n    return torch.zeros(n, device="cuda")\n'


def order(text: str = SLOW) -> Lint:
    return Lint(Place("/w", "/w/a.py", "a.py"), SourceFile("a.py", text))


async def codes(worker: Worker, text: str = SLOW) -> list[str]:
    return [finding.code for finding in (await worker.lint(order(text))).result.findings]


def test_orders_are_carried_out() -> None:
    async def work() -> None:
        worker = Worker("test")
        await worker.rest()
        first = worker.process_id
        assert first not in (None, os.getpid())
        assert await codes(worker) == ["TL201"]
        repair = Repair(order().place, order().source)
        assert (await worker.repair(repair)).text == FAST
        assert worker.process_id == first
        worker.close()

    asyncio.run(work())


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
def test_one_that_is_killed_is_started_again() -> None:
    async def work() -> None:
        worker = Worker("test")
        await worker.rest()
        first = worker.process_id
        assert first is not None
        os.kill(first, signal.SIGSTOP)
        waiting = asyncio.ensure_future(codes(worker))
        await asyncio.sleep(0.1)
        os.kill(first, signal.SIGKILL)
        with pytest.raises(AnalysisError, match="ended with status -9"):
            await waiting
        assert await codes(worker) == ["TL201"]
        assert worker.process_id != first
        worker.close()

    asyncio.run(work())


def test_code_that_takes_too_long_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_module, "_PATIENCE", 3.0)
    endless = "import torch\nx = torch.zeros(1).cuda() + " + "+".join(["1"] * 30_000) + "\n"

    async def work() -> None:
        worker = Worker("test")
        await worker.rest()
        with pytest.raises(AnalysisError, match=r"given up after 3 s|ended with status"):
            await codes(worker, endless)
        assert await codes(worker) == ["TL201"]
        worker.close()

    asyncio.run(work())


def test_a_defect_is_said_and_survived() -> None:
    async def work() -> None:
        worker = Worker("test")
        with pytest.raises(AnalysisError, match=r"torchlint failed: AttributeError: .*please report this"):
            await worker.lint(Lint(None, None))  # type: ignore[arg-type]
        assert await codes(worker) == ["TL201"]
        worker.close()

    asyncio.run(work())


def test_closing_ends_the_process_and_whoever_waits() -> None:
    async def work() -> int:
        worker = Worker("test")
        await worker.rest()
        process = worker.process_id
        assert process is not None
        waiting = [asyncio.ensure_future(codes(worker)) for _ in range(3)]
        await asyncio.sleep(0)
        worker.close()
        ended = await asyncio.gather(*waiting, return_exceptions=True)
        assert all(isinstance(each, (AnalysisError, asyncio.CancelledError, list)) for each in ended)
        with pytest.raises(AnalysisError, match="closing"):
            await codes(worker)
        return process

    process = asyncio.run(work())
    for _ in range(50):
        if not _runs(process):
            return
        time.sleep(0.1)
    pytest.fail("it still runs")


def test_modules_of_the_folder_that_the_server_runs_in_are_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("random", "pickle", "struct", "torchlint", "libcst"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'was_run')!r}, 'w')\n")
    monkeypatch.chdir(tmp_path)

    async def work() -> None:
        worker = Worker("test")
        assert await codes(worker) == ["TL201"]
        worker.close()

    asyncio.run(work())
    assert not (tmp_path / "was_run").exists()


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
        os.waitpid(process, os.WNOHANG)
    except (ProcessLookupError, ChildProcessError):
        return False
    return True
