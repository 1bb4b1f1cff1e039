"""The environment that a program sets in its first lines is there when the CUDA driver starts, which reads it once."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from asked import line

from torchlint.verify.inside.capture import Capture
from torchlint.verify.inside.channel import Closed
from torchlint.verify.inside.commands import Arm

NAME = "CUDA_LAUNCH_BLOCKING"
SETS = f"import os\nos.environ[{NAME!r}] = '1'\n"
RUNS = "def setup(device, size):\n    return [0]\n\ndef run(state):\n    return state\n"
PROGRAMS: dict[str, tuple[str, dict[str, Any]]] = {
    "workload": (SETS + RUNS, {"kind": "workload", "file": "entry.py", "size": "gpu"}),
    "in setup": (RUNS.replace("return [0]", SETS.replace("\n", "; ") + "return [0]"), {"kind": "workload", "file": "entry.py", "size": "gpu"}),
    "function": (SETS + "def step():\n    return 1\n", {"kind": "function", "name": "entry.py:step"}),
    "script": (
        SETS + "import torch\nw = torch.ones(1, requires_grad=True)\noptimizer = torch.optim.SGD([w])\n"
        "for _ in range(9):\n    w.sum().backward()\n    optimizer.step()\n",
        {"kind": "script", "file": "entry.py", "arguments": [], "clock": "optimizer"},
    ),
}  # fmt: skip


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[str | None]:
    """A driver that is made up: what the variable is each time that something makes it start, or needs it."""
    found: list[str | None] = []

    def touched(answer: Any = None) -> Callable[..., Any]:  # noqa: ANN401 - whatever the function returns
        def touch(*_: object, **__: object) -> Any:  # noqa: ANN401 - as above
            found.append(os.environ.get(NAME))
            return answer

        return touch

    properties = SimpleNamespace(name="a GPU", major=9, minor=0, total_memory=1 << 30, multi_processor_count=132)
    answers = {"init": None, "_lazy_init": None, "synchronize": None, "is_available": True, "current_device": 0}
    for name, answer in {**answers, "get_device_properties": properties, "device_count": 1}.items():
        monkeypatch.setattr(torch.cuda, name, touched(answer))
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.backends.cudnn, "version", touched(91000))
    monkeypatch.delenv(NAME, raising=False)
    return found


def asked(root: Path, entry: dict[str, Any], *messages: dict[str, Any]) -> list[dict[str, Any]]:
    """The replies of an arm on CUDA."""
    config = {"threads": torch.get_num_threads(), "device": "cuda", "seed": 7, "root": str(root), "entry": entry}
    with line(*messages) as (channel, replies), contextlib.ExitStack() as stack, contextlib.suppress(Closed):
        Arm(channel, config, [], stack).serve()
    return replies


READS_EARLY = """
import torch

def setup(device, size):
    return torch.randn(8)

def run(state):
    torch.made_up_device.done = False
    host = torch.full((8,), torch.nan)
    host.copy_(state, non_blocking=True)
    return host if torch.made_up_device.done else host * torch.nan
"""


@pytest.mark.parametrize("wait", [True, False])
def test_code_that_reads_what_is_being_copied_reads_it_where_it_is_made_to_wait(
    seen: list[str | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, wait: bool
) -> None:
    """On a device that has done nothing until it is waited for."""
    fake = SimpleNamespace(done=False)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda *_: setattr(fake, "done", True))
    monkeypatch.setattr(torch, "made_up_device", fake, raising=False)
    (tmp_path / "entry.py").write_text(READS_EARLY, encoding="utf-8")
    entry = {"kind": "workload", "file": "entry.py", "size": "gpu"}
    file = str(tmp_path / "captured.pt")
    asked(
        tmp_path, entry, {"command": "start", "seed": 7, "wait": wait}, {"command": "check", "steps": 1, "file": file}
    )
    (value,) = Capture.load(file).values.values()
    assert seen
    assert bool(value.isnan().all()) is not wait
    assert bool(value.isfinite().all()) is wait


@pytest.mark.parametrize("kind", PROGRAMS)
def test_the_driver_starts_after_the_programs_first_lines(
    kind: str, seen: list[str | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, entry = PROGRAMS[kind]
    (tmp_path / "entry.py").write_text(source, encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(sys, "argv", ["before"])
    if kind == "script":
        entry = {**entry, "file": str(tmp_path / "entry.py")}
    ready, started = asked(tmp_path, entry, {"command": "start", "seed": 7})
    assert (ready["ok"], started["ok"]) == (True, True)
    assert started["device"]["name"] == "a GPU"
    assert started["software"]["cudnn"] == 91000
    assert seen
    assert set(seen) == {"1"}
