"""A client of `torchlint server` that knows no rules: it sends what it is given, byte for byte, and reads what comes."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE = 30.0
# As a program that is installed starts: Python looks for no modules where it is started.
_START = "import sys; sys.path[:] = filter(None, sys.path); from torchlint.__main__ import main; main()"


class Wire:
    """The two ends of a server's standard streams."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.seen: list[dict[str, Any]] = []
        """All messages that came, in order."""
        self._messages: queue.Queue[dict[str, Any] | None] = queue.Queue()
        self._number = 0
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def raw(self, data: bytes) -> None:
        """Send bytes as they are."""
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def send(self, message: object) -> None:
        """Send a message."""
        data = json.dumps(message).encode()
        self.raw(b"Content-Length: %d\r\n\r\n%s" % (len(data), data))

    def notify(self, method: str, params: object) -> None:
        self.send({"jsonrpc": "2.0", "method": method, "params": params})

    def ask(self, method: str, params: object) -> dict[str, Any]:
        """The whole answer to a request, be it a result or an error."""
        self._number += 1
        self.send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        return self.wait(lambda message: message.get("id") == self._number and "method" not in message)

    def wait(self, is_wanted: Any) -> dict[str, Any]:  # noqa: ANN401 - a predicate
        """The next message of a kind."""
        deadline = time.monotonic() + PATIENCE
        while True:
            message = self._messages.get(timeout=max(deadline - time.monotonic(), 0.01))
            assert message is not None, f"the server ended with status {self.process.wait(PATIENCE)}"
            self.seen.append(message)
            if is_wanted(message):
                return message

    def begin(self, folder: Path, **capabilities: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        answer = self.ask(
            "initialize", {"processId": os.getpid(), "rootUri": folder.as_uri(), "capabilities": capabilities}
        )
        self.notify("initialized", {})
        return answer

    def open(self, uri: str, text: str, version: int = 1) -> None:
        item = {"uri": uri, "languageId": "python", "version": version, "text": text}
        self.notify("textDocument/didOpen", {"textDocument": item})

    def published(self, uri: str, version: int) -> list[tuple[int, str]]:
        """What is found in a version of a document, by row and code."""

        def is_it(message: dict[str, Any]) -> bool:
            return (
                message.get("method") == "textDocument/publishDiagnostics"
                and message["params"]["uri"] == uri
                and message["params"].get("version") == version
            )

        found = self.wait(is_it)["params"]["diagnostics"]
        return [(each["range"]["start"]["line"] + 1, each["code"]) for each in found]

    def workers(self) -> list[int]:
        """The processes that the server has started."""
        listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.process.pid)], capture_output=True, check=False)
        return [int(pid) for pid in listed.stdout.split() if _is_python(int(pid))]

    def _read(self) -> None:
        stream = self.process.stdout
        assert stream is not None
        while True:
            length = None
            while (line := stream.readline()).strip():
                name, _, value = line.partition(b":")
                if name.lower() == b"content-length":
                    length = int(value)
            if length is None:
                self._messages.put(None)
                return
            self._messages.put(json.loads(stream.read(length)))


@contextmanager
def wire(folder: Path, *arguments: str) -> Iterator[Wire]:
    """A server that was told nothing yet; whatever becomes of it, it is gone in the end."""
    command = [sys.executable, "-c", _START, "server", *arguments]
    process = subprocess.Popen(
        command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    found = Wire(process)
    try:
        yield found
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            assert stream is not None
            try:
                stream.close()
            except OSError:
                continue  # what was to be sent to it still


def is_running(pid: int) -> bool:
    """Whether a process runs, and is not only remembered."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:  # noqa: PTH123 - no file of ours
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(pids: list[int]) -> bool:
    """Whether all of these processes end before patience does."""
    deadline = time.monotonic() + PATIENCE
    while any(map(is_running, pids)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def _is_python(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:  # noqa: PTH123 - as above
            return b"torchlint" in file.read()
    except OSError:
        return False
