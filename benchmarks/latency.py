"""Time what a user of `torchlint server` waits for: `python -m benchmarks.latency`.

A training script of 1,000 lines is open in a warm server, in a project in which callers and classes of other files are
asked about. Single characters are typed into it, and the time is taken from the `didChange` of a client until it
has the diagnostics of that version, with everything in between: the pause for further keys, the analysis, both ways
through the pipes. Then a thousand keys are typed, and the memory of the server and of the processes that it started is
read before and after. The exit status is 1 where a target is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING, Any

from torchlint import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MEDIAN_MS, P95_MS = 150.0, 300.0
GROWTH = 1.1  # memory behind the edits over memory before them, at most
LINES = 1_000
EDITS = 200
MORE_EDITS = 1_000
WARM_UP = 20
THINKING = 0.15  # seconds between two keys of somebody who types quickly

_HEAD = '''\
"""Train a classifier: arguments, data, model, loops, checkpoints."""

import argparse
import logging

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader

from data import Pictures
from layers import ConvNorm
from metrics import accuracy

log = logging.getLogger(__name__)


def make_loader(root: str, batch_size: int) -> DataLoader:
    return DataLoader(Pictures(root), batch_size=batch_size, shuffle=True)


def head(channels: int, classes: int) -> nn.Sequential:
    first = ConvNorm(channels, channels)
    return nn.Sequential(first, nn.BatchNorm1d(channels), nn.ReLU(), nn.Linear(channels, classes))
'''
_STAGE = '''

class Stage{0}(nn.Module):
    """One stage of the network, with a shortcut."""

    def __init__(self, channels: int, width: int, *, dropout: float = 0.1) -> None:
        super().__init__()
        self.reduce = nn.Conv2d(channels, width, 1, bias=False)
        self.norm = nn.BatchNorm2d(width)
        self.spatial = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.spatial_norm = nn.BatchNorm2d(width)
        self.expand = nn.Conv2d(width, channels, 1)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("scale", torch.ones(1, channels, 1, 1))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        hidden = F.relu(self.norm(self.reduce(inputs)))
        hidden = F.relu(self.spatial_norm(self.spatial(hidden)))
        hidden = self.dropout(self.expand(hidden))
        return F.relu(inputs + hidden * self.scale)


def summarize_{0}(history: list[float], names: dict[str, int], *, digits: int = 3) -> str:
    lines = [f"{{name}}: {{history[at]:.{{digits}}f}}" for name, at in names.items() if at < len(history)]
    best = min(history, default=0.0)
    if best < 0.1:
        lines.append("converged")
    elif len(history) > 10 and history[-1] > history[-2]:
        lines.append("the last epoch was worse than the one before")
    return "\\n".join(lines)
'''
_TRAIN = """

def {0}(
    model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer, device: torch.device, epochs: int
) -> list[float]:
    history = []
    for epoch in range(epochs):
        model.train()
        total, seen = 0.0, 0
        for step, (inputs, targets) in enumerate(loader):
            inputs, targets = inputs.to(device), targets.to(device)
            outputs = model(inputs)
            loss = F.cross_entropy(outputs, targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
            seen += targets.size(0)
            if step % 100 == 0:
                log.info("epoch %d step %d seen %d accuracy %s", epoch, step, seen, accuracy(outputs, targets))
        history.append(total / max(seen, 1))
    return history
"""
_FOOT = """

def evaluate(model: nn.Module, loader: DataLoader, device: torch.device) -> float:
    model.eval()
    correct, seen = 0.0, 0
    with torch.no_grad():
        for inputs, targets in loader:
            outputs = model(inputs.to(device))
            correct += outputs.argmax(1).eq(targets.to(device)).sum().item()
            seen += targets.size(0)
    noise = torch.zeros(seen).cuda()
    return correct / max(seen, 1) + float(noise.mean())
"""
_OTHERS = {
    "torchlint.toml": "preview = true\n",
    "data.py": """\
import torch
from torch.utils.data import Dataset


class Pictures(Dataset):
    def __init__(self, root):
        self.paths = sorted(root)

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return torch.load(self.paths[index])
""",
    "layers.py": """\
from torch import nn


class ConvNorm(nn.Module):
    def __init__(self, channels, features, bias=True):
        super().__init__()
        self.conv = nn.Conv1d(channels, features, 3, bias=bias)

    def forward(self, x):
        return self.conv(x)
""",
    "metrics.py": """\
import torch


def accuracy(outputs, targets):
    with torch.no_grad():
        return outputs.argmax(1).eq(targets).float().mean().item()
""",
    "main.py": """\
from train import evaluate, make_loader, train


def main(model, optimizer, device):
    loader = make_loader("data", 32)
    for _ in range(10):
        train(model, loader, optimizer, device, 1)
        evaluate(model, loader, device)
""",
}
_PLACE = "correct, seen = 0.0, 0\n    with"
_KEYS = "shift = inputs.mean() * 0.5 + outputs.std() "


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident bytes of the server and of all that it has started, in MiB."""

    server: float
    others: float


@dataclass(frozen=True, slots=True)
class Measured:
    """What one kind of client has waited for, in ms, and what the server held."""

    kind: str
    waits: Sequence[float]
    before: Memory
    after: Memory
    findings: int

    @property
    def p95(self) -> float:
        """What 19 of 20 keys wait for at most."""
        return quantiles(self.waits, n=20)[-1]


def script(lines: int) -> str:
    """A training script of about so many lines."""
    end = "".join((_TRAIN.format("train"), _TRAIN.format("finetune"), _FOOT))
    parts = [_HEAD]
    while sum(part.count("\n") for part in parts) + end.count("\n") < lines:
        parts.append(_STAGE.format(len(parts)))
    return "".join([*parts, end])


class _Client:
    """A client that measures: it sends and reads in turn, so that nothing of its own stands between the two."""

    def __init__(self, process: subprocess.Popen[bytes], root: Path, *, pulls: bool) -> None:
        self._process = process
        self._pulls = pulls
        self._number = 0
        self._version = 1
        self.uri = (root / "train.py").as_uri()
        self.text = ""
        diagnostic = {"diagnostic": {"dynamicRegistration": False}} if pulls else {}
        capabilities: dict[str, dict[str, Any]] = {
            "general": {"positionEncodings": ["utf-8"]},
            "workspace": {"diagnostics": {"refreshSupport": True}},
            "textDocument": {"publishDiagnostics": {"relatedInformation": True}, **diagnostic},
        }
        self._ask("initialize", {"processId": os.getpid(), "rootUri": root.as_uri(), "capabilities": capabilities})
        self._notify("initialized", {})

    def open(self, text: str) -> int:
        """Open the script, and wait until other files were asked; how much is found."""
        self.text = text
        document = {"uri": self.uri, "languageId": "python", "version": 1, "text": text}
        self._notify("textDocument/didOpen", {"textDocument": document})
        self._diagnostics()
        time.sleep(3)  # other files are asked meanwhile
        return self.type(len(text), "\n")[1]

    def type(self, offset: int, key: str, *, deleted: int = 0) -> tuple[float, int]:
        """Put a key into the text; the seconds until the diagnostics are there, and their number."""
        start, end = self._place(offset), self._place(offset + deleted)
        self.text = self.text[:offset] + key + self.text[offset + deleted :]
        self._version += 1
        change = {"range": {"start": start, "end": end}, "text": key}
        begin = time.perf_counter()
        document = {"uri": self.uri, "version": self._version}
        self._notify("textDocument/didChange", {"textDocument": document, "contentChanges": [change]})
        found = self._diagnostics()
        return time.perf_counter() - begin, len(found)

    def _diagnostics(self) -> list[Any]:
        """Those of the version that is open."""
        if self._pulls:
            found: list[Any] = self._ask("textDocument/diagnostic", {"textDocument": {"uri": self.uri}})["items"]
            return found
        while True:
            message = self._read()
            params = message.get("params", {})
            if message.get("method") == "textDocument/publishDiagnostics" and params["version"] == self._version:
                published: list[Any] = params["diagnostics"]
                return published

    def close(self) -> None:
        """End the server as an editor does."""
        self._ask("shutdown", None)
        self._notify("exit", None)

    def _place(self, offset: int) -> dict[str, int]:
        before = self.text[:offset]
        return {"line": before.count("\n"), "character": len(before) - before.rfind("\n") - 1}

    def _ask(self, method: str, params: object) -> Any:  # noqa: ANN401 - JSON
        self._number += 1
        self._send({"id": self._number, "method": method, "params": params})
        while True:
            message = self._read()
            if message.get("id") == self._number and "method" not in message:
                if "error" in message:
                    raise SystemExit(f"{method}: {message['error']['message']}")
                return message["result"]

    def _notify(self, method: str, params: object) -> None:
        self._send({"method": method, "params": params})

    def _send(self, message: dict[str, object]) -> None:
        data = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(data), data))
        self._process.stdin.flush()

    def _read(self) -> dict[str, Any]:
        stream = self._process.stdout
        assert stream is not None
        length = 0
        while (line := stream.readline()).strip():
            name, _, value = line.partition(b":")
            length = int(value) if name == b"Content-Length" else length
        if not length:
            raise SystemExit("the server has ended")
        message: dict[str, Any] = json.loads(stream.read(length))
        return message


@contextmanager
def served(root: Path, *, pulls: bool) -> Iterator[tuple[_Client, int]]:
    """A client of a server of its own, and the server's process."""
    command = [sys.executable, "-m", "torchlint", "server"]
    with subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        client = _Client(process, root, pulls=pulls)
        yield client, process.pid
        client.close()


def measure(text: str, edits: int, more: int, *, pulls: bool) -> Measured:
    """Type into a script: `edits` keys that are timed, with the pauses of somebody who types, then `more` keys."""
    with tempfile.TemporaryDirectory(prefix="torchlint-latency-") as folder:
        root = Path(folder)
        for name, content in {**_OTHERS, "train.py": text}.items():
            (root / name).write_text(content, encoding="utf-8")
        with served(root, pulls=pulls) as (client, pid):
            findings = client.open(text)
            begin = client.text.index(_PLACE) + _PLACE.index("\n")
            _typed(client, begin, WARM_UP, THINKING)
            waits = _typed(client, begin, edits, THINKING)
            time.sleep(3)  # the server tidies up when nobody types
            before = _memory(pid)
            _typed(client, begin, more, 0)
            time.sleep(3)
            return Measured("pull" if pulls else "push", waits, before, _memory(pid), findings)


def _typed(client: _Client, begin: int, keys: int, pause: float) -> list[float]:
    """Type a line into a loop key by key, take it out as it was put in, and so on; ms for each key."""
    waits = []
    line = f"\n    {_KEYS}"
    at, is_adding = 0, True
    for _ in range(keys):
        if is_adding:
            waited, _found = client.type(begin + at, line[at])
            at += 1
        else:
            at -= 1
            waited, _found = client.type(begin + at, "", deleted=1)
        is_adding = at == 0 or (is_adding and at < len(line))
        waits.append(1000 * waited)
        time.sleep(pause)
    for each in range(at, 0, -1):
        client.type(begin + each - 1, "", deleted=1)
    return waits


def _memory(pid: int) -> Memory:
    listed = subprocess.run(["ps", "-eo", "pid=,ppid=,rss="], capture_output=True, text=True, check=True)  # noqa: S607
    processes = [tuple(map(int, line.split())) for line in listed.stdout.splitlines()]
    own = sum(rss for each, _, rss in processes if each == pid)
    others = sum(rss for _, parent, rss in processes if parent == pid)
    return Memory(own / 1024, others / 1024)


def table(measured: Sequence[Measured]) -> Iterator[str]:
    """What was measured, as Markdown."""
    yield "|      | median ms | 95 % ms | longest ms | server MiB | its processes MiB |"
    yield "| ---- | --------: | ------: | ---------: | ---------: | ----------------: |"
    for each in measured:
        server = f"{each.before.server:.0f} -> {each.after.server:.0f}"
        others = f"{each.before.others:.0f} -> {each.after.others:.0f}"
        cells = f"{median(each.waits):9.0f} | {each.p95:7.0f} | {max(each.waits):10.0f} | {server:>10} | {others:>17}"
        yield f"| {each.kind} | {cells} |"


def _verdicts(measured: Sequence[Measured]) -> Iterator[tuple[str, bool]]:
    for each in measured:
        values = (
            ("ms at the median", median(each.waits), MEDIAN_MS),
            ("ms at 95 %", each.p95, P95_MS),
            ("memory of the server over that before", each.after.server / each.before.server, GROWTH),
            ("memory of its processes over that before", each.after.others / each.before.others, GROWTH),
        )
        for what, value, limit in values:
            met = value <= limit
            yield f"- {each.kind}: {value:.3g} {what} (at most {limit:g}), {'met' if met else 'MISSED'}", met


def main() -> int:
    """Measure and print; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=LINES)
    parser.add_argument("--edits", type=int, default=EDITS, help="keys that are timed")
    parser.add_argument("--more", type=int, default=MORE_EDITS, help="keys between the two readings of memory")
    options = parser.parse_args()
    text = script(options.lines)
    measured = [measure(text, options.edits, options.more, pulls=pulls) for pulls in (False, True)]
    system = (
        f"Python {platform.python_version()}, {platform.system()} {platform.machine()}, {os.cpu_count()} processors"
    )
    print(f"torchlint {__version__}, {system}; load {os.getloadavg()[0]:.1f} at the end.\n")
    lines = text.count("\n")
    print(f"{lines:,} lines, {measured[0].findings} findings; {options.edits} keys, then {options.more:,} more.\n")
    print("\n".join(table(measured)), end="\n\n")
    verdicts = list(_verdicts(measured))
    print("\n".join(line for line, _ in verdicts))
    return 0 if all(met for _, met in verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())
