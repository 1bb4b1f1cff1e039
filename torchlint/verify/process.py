"""A measured process, as the controller sees it: started, asked, frozen, ended."""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

_PACKAGE = Path(__file__).parents[1]

# Loads `torchlint.verify.inside` by its path: the user's interpreter may not have torchlint, and must not see what else
# stands beside it. The empty entry of the path is the working folder, which no program's own would be.
_BOOT = """
import sys, types
sys.path[:] = [place for place in sys.path if place]
for name, path in (("torchlint", sys.argv[1]), ("torchlint.verify", sys.argv[1] + "/verify")):
    module = types.ModuleType(name)
    module.__path__ = [path]
    sys.modules[name] = module
import importlib
function = importlib.import_module("torchlint.verify.inside." + sys.argv[2]).main
arguments = [int(word) for word in sys.argv[3:]]
sys.argv = [""]
function(*arguments)
"""

_GRACE_S = 2.0
_LOOK_S = 0.25
_PADDING = 4096
_CHUNK = 1 << 16
_LONGEST = 1 << 26  # a reply that names all lines of a large program that wait has a few megabytes
_KEPT = 1 << 14  # a program may print without end; its last words are enough


class ArmError(Exception):
    """An arm failed: `kind` is timeout, crash, oom, ended, entry, exception or protocol; the text is one line."""

    def __init__(self, kind: str, message: str, trace: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.trace = trace


def command(module: str, *arguments: str, python: str = sys.executable) -> list[str]:
    """The command that runs `main` of a module of the measured side."""
    return [python, "-c", _BOOT, str(_PACKAGE), module, *arguments]


class Worker:
    """One measured process in a session of its own, which the terminal's Ctrl-C does not reach."""

    def __init__(
        self,
        config: dict[str, Any],
        scratch: Path,
        *,
        tag: str,
        python: str = sys.executable,
        module: str = "worker",
        given_up: Callable[[], bool] = lambda: False,
    ) -> None:
        """Start it; `ready` waits until it has loaded the code. `tag` marks its environment and its children's.

        It is ended where it is asked, or waited for, and nobody wants to know any more (`given_up`).

        Raises `OSError` if it cannot be started.
        """
        # The size of the environment shifts the stack and with it the speed: it is sampled, not hidden
        # (Mytkowicz et al., Producing wrong data without doing anything obviously wrong, ASPLOS 2009).
        padding = "x" * random.randrange(_PADDING)  # noqa: S311 - no secret
        env = {
            **os.environ,
            **config.get("env", {}),
            "TORCHLINT_VERIFY_ID": tag,
            "TORCHLINT_VERIFY_PADDING": padding,
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONUNBUFFERED": "1",
        }
        if env.get("PYTHONPATH"):
            # What is relative there is so to where torchlint was started, and the process starts elsewhere.
            env["PYTHONPATH"] = os.pathsep.join(
                str(Path(part).absolute()) for part in env["PYTHONPATH"].split(os.pathsep)
            )
        command_read, self._commands = os.pipe()
        self._replies, reply_write = os.pipe()
        self._printed, output_write = os.pipe()
        try:
            self._process = subprocess.Popen(  # noqa: S603 - running the user's code is what verify is for
                command(module, str(command_read), str(reply_write), python=python),
                pass_fds=(command_read, reply_write),
                stdin=subprocess.DEVNULL,
                stdout=output_write,
                stderr=subprocess.STDOUT,
                env=env,
                cwd=scratch,
                start_new_session=True,
            )
        except BaseException:
            _close(self._commands, self._replies, self._printed)
            raise
        finally:
            _close(command_read, reply_write, output_write)
        for descriptor in (self._commands, self._replies, self._printed):
            os.set_blocking(descriptor, False)
        self.pid = self._process.pid
        self.identity: dict[str, Any] = {}  # what it has said of its device and its software
        self._given_up = given_up
        self._open = {self._replies, self._printed}
        self._output = b""
        self._received = b""
        self._unsent = b""
        self._asked = ""
        self._send(config)
        self._exchange(0)  # it loads meanwhile

    def ready(self, timeout: float) -> dict[str, Any]:
        """What it says once it has loaded the code. Raises `ArmError`."""
        return self._receive(timeout)

    def ask(self, name: str, timeout: float, **message: Any) -> dict[str, Any]:
        """Send a command and wait at most `timeout` seconds for its reply. Raises `ArmError`."""
        self.tell(name, **message)
        return self.answer(timeout)

    def tell(self, name: str, **message: Any) -> None:
        """Send a command and wait for nothing: others can be told theirs meanwhile."""
        self._send({"command": name, **message})
        self._exchange(0)

    def answer(self, timeout: float) -> dict[str, Any]:
        """Wait at most `timeout` seconds for the reply to what it was told last. Raises `ArmError`."""
        return self._receive(timeout)

    def freeze(self) -> None:
        """Stop the process and its loaders' workers where they are, so that they do not run ahead."""
        self._signal_group(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let them go on."""
        self._signal_group(signal.SIGCONT)

    def dismiss(self) -> None:
        """Tell it that nothing more will be asked; `close` waits for it."""
        self._unsent = b""
        _close(self._commands)
        self._commands = -1
        self.thaw()

    def wait(self, timeout: float = _GRACE_S) -> bool:
        """Whether it ends by itself within so many seconds after `dismiss`; what it prints meanwhile is taken."""
        until = time.monotonic() + timeout
        while self._process.poll() is None and (left := until - time.monotonic()) > 0:
            if self._open:
                self._exchange(min(left, _LOOK_S))
                self._received = b""
            else:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(left)
        if self._process.poll() is None:
            return False
        # What it printed last may still lie in the pipe; one that it leaves behind may print for ever.
        while self._open and time.monotonic() < until and select.select([*self._open], [], [], 0)[0]:
            self._exchange(0)
            self._received = b""
        return True

    def kill(self) -> None:
        """End the process and its group at once."""
        self._signal_group(signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):  # a process inside its driver may not end
            self._process.wait(_GRACE_S)

    def close(self, *, politely: bool = True) -> None:
        """End it, with time for its own farewell unless it is past that, and all of its group."""
        if self._commands >= 0:
            self.dismiss()
        if politely:
            self.wait()
        self.kill()
        self._open.clear()
        _close(self._replies, self._printed)
        self._replies = self._printed = -1

    def output(self) -> str:
        """The end of what it has printed, 16 KiB at most."""
        return self._output.decode(errors="replace")

    def _send(self, message: dict[str, Any]) -> None:
        self._asked = uuid.uuid4().hex  # what the code prints wherever it can is taken for no reply
        self._unsent += json.dumps({"id": self._asked, **message}).encode() + b"\n"

    def _receive(self, timeout: float) -> dict[str, Any]:
        """The reply to what was sent last. Raises `ArmError`, after which the process is gone or of no use."""
        until = time.monotonic() + timeout
        while b"\n" not in self._received:
            left = until - time.monotonic()
            if self._given_up():
                self.kill()
                raise ArmError("timeout", "given up")
            if left <= 0:
                self.kill()
                raise ArmError("timeout", f"no answer within {timeout:g} s")
            # A process that has died may have left children that hold its end of the line.
            ended = self._process.poll() is not None
            before = len(self._received)
            self._exchange(0 if ended else min(left, _LOOK_S))
            if self._replies not in self._open or (ended and len(self._received) == before):
                raise ArmError("crash", self._died())
            if len(self._received) > _LONGEST:
                raise self._broken()
        line, _, self._received = self._received.partition(b"\n")
        reply = _parsed(line, self._asked)
        if reply is None:
            raise self._broken(line)
        if reply["ok"]:
            self.identity.update({key: reply[key] for key in ("device", "software", "machine") if key in reply})
            return reply
        if reply["kind"] == "exit":
            self._exchange(0)  # what it printed before it left
            raise ArmError("entry", f"{reply['error']}; the last that it printed: {self._last_words()}")
        raise ArmError(reply["kind"], reply["error"], reply.get("trace", ""))

    def _last_words(self) -> str:
        lines = [line.strip() for line in self.output().splitlines() if line.strip()]
        return lines[-1][:200] if lines else "nothing"

    def _exchange(self, timeout: float) -> None:
        """Send what is to be sent and take what has come, waiting at most `timeout` seconds for either."""
        writing = [self._commands] if self._unsent else []
        readable, writable, _ = select.select([*self._open], writing, [], timeout)
        for descriptor in readable:
            data = os.read(descriptor, _CHUNK)
            if not data:
                self._open.discard(descriptor)
            elif descriptor == self._printed:
                self._output = (self._output + data)[-_KEPT:]
            else:
                self._received += data
        if writable:
            try:
                self._unsent = self._unsent[os.write(self._commands, self._unsent[:_CHUNK]) :]
            except BrokenPipeError:  # it has died: that there is no reply will say how
                self._unsent = b""
            except BlockingIOError:
                pass

    def _broken(self, line: bytes = b"") -> ArmError:
        self.kill()
        return ArmError("protocol", f"sent what is no reply: {(line or self._received)[:80]!r}")

    def _died(self) -> str:
        try:
            status = self._process.wait(_GRACE_S)
        except subprocess.TimeoutExpired:
            return "closed its line"
        if status >= 0:
            return f"exited with status {status}" if status else "ended before it answered"
        name = signal.Signals(-status).name if -status in set(signal.Signals) else f"signal {-status}"
        return f"killed by {name}{', as the system does where memory is short' if name == 'SIGKILL' else ''}"

    def _signal_group(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)


def _parsed(line: bytes, asked: str) -> dict[str, Any] | None:
    """The reply in a line, if it is one to what was asked."""
    try:
        reply = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return reply if isinstance(reply, dict) and reply.get("id") == asked else None


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        if descriptor >= 0:
            os.close(descriptor)
