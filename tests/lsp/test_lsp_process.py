"""The server lives as long as it has to, whatever it is sent, and no longer; and so do the processes that it starts."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from cases import case
from samples import FAST, FOUND, SLOW, TRAIN
from wire import PATIENCE, Wire, gone, is_running, wire

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="processes are looked for in /proc"),  # noqa: PTH112 - decided while tests are collected
]

METHOD_NOT_FOUND, INVALID_PARAMS, NOT_INITIALIZED, INVALID_REQUEST = -32601, -32602, -32002, -32600


def is_well(server: Wire, folder: Path, name: str = "well.py") -> None:
    """The server does its work."""
    uri = (folder / name).as_uri()
    server.open(uri, TRAIN)
    assert server.published(uri, 1) == FOUND
    server.notify("textDocument/didClose", {"textDocument": {"uri": uri}})


# Ends


@pytest.mark.parametrize("arguments", [(), ("--stdio",)], ids=["", "--stdio"])
def test_shutdown_and_exit(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    with wire(tmp_path, *arguments) as server:
        server.begin(tmp_path)
        is_well(server, tmp_path)
        workers = server.workers()
        assert workers
        assert server.ask("shutdown", None)["result"] is None
        server.notify("exit", None)
        assert server.process.wait(PATIENCE) == 0
        assert gone(workers)
        assert server.process.stderr is not None
        assert server.process.stderr.read() == b""


def test_exit_without_shutdown(tmp_path: Path) -> None:
    with wire(tmp_path) as server:
        server.begin(tmp_path)
        is_well(server, tmp_path)
        workers = server.workers()
        server.notify("exit", None)
        assert server.process.wait(PATIENCE) == 1
        assert gone(workers)


def test_the_client_is_gone(tmp_path: Path) -> None:
    with wire(tmp_path) as server:
        server.begin(tmp_path)
        is_well(server, tmp_path)
        workers = server.workers()
        assert server.process.stdin is not None
        server.process.stdin.close()
        server.process.wait(PATIENCE)
        assert gone(workers)


def test_the_client_is_gone_before_a_word(tmp_path: Path) -> None:
    with wire(tmp_path) as server:
        assert server.process.stdin is not None
        server.process.stdin.close()
        server.process.wait(PATIENCE)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGINT], ids=lambda each: each.name)
def test_the_server_is_ended(tmp_path: Path, number: signal.Signals) -> None:
    """What it has started does not outlive it."""
    with wire(tmp_path) as server:
        server.begin(tmp_path)
        is_well(server, tmp_path)
        workers = server.workers()
        assert workers
        server.process.send_signal(number)
        server.process.wait(PATIENCE)
        assert gone(workers)


def test_it_is_ended_while_it_analyses(tmp_path: Path) -> None:
    with wire(tmp_path) as server:
        server.begin(tmp_path)
        is_well(server, tmp_path)
        workers = server.workers()
        server.open((tmp_path / "long.py").as_uri(), TRAIN * 500)
        time.sleep(0.3)
        server.ask("shutdown", None)
        server.notify("exit", None)
        begin = time.monotonic()
        assert server.process.wait(PATIENCE) == 0
        assert time.monotonic() - begin < 5, "it does not wait for the analysis"
        assert gone(workers)


def test_a_process_that_analyses_is_killed(tmp_path: Path) -> None:
    with wire(tmp_path) as server:
        server.begin(tmp_path)
        uri = (tmp_path / "train.py").as_uri()
        server.open(uri, TRAIN)
        assert server.published(uri, 1) == FOUND
        for version in (2, 3):
            workers = server.workers()
            for pid in workers:
                os.kill(pid, signal.SIGKILL)
            assert gone(workers)
            text = TRAIN if version == 3 else TRAIN.replace(SLOW, FAST)
            change = {"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": text}]}
            server.notify("textDocument/didChange", change)
            expected = FOUND if version == 3 else [each for each in FOUND if each[1] != "TL201"]
            assert server.published(uri, version) == expected, "another one has taken its place"
            assert set(server.workers()).isdisjoint(workers)


def test_a_process_that_analyses_is_killed_while_it_does(tmp_path: Path) -> None:
    with wire(tmp_path) as server:
        server.begin(tmp_path)
        is_well(server, tmp_path)
        uri = (tmp_path / "long.py").as_uri()
        server.open(uri, TRAIN * 300)
        time.sleep(0.3)
        for pid in server.workers():
            os.kill(pid, signal.SIGKILL)
        is_well(server, tmp_path)
        change = {"textDocument": {"uri": uri, "version": 2}, "contentChanges": [{"text": TRAIN}]}
        server.notify("textDocument/didChange", change)
        assert server.published(uri, 2) == FOUND


def test_code_of_the_user_is_never_run(tmp_path: Path) -> None:
    """Not in the folder that the server starts in either, where modules lie that have the names of ours."""
    mark = tmp_path / "ran"
    for name in ("train", "torch", "libcst", "json", "sitecustomize", "lsprotocol"):
        (tmp_path / f"{name}.py").write_text(f"open({str(mark)!r}, 'w')\n", encoding="utf-8")
    with wire(tmp_path) as server:
        server.begin(tmp_path)
        is_well(server, tmp_path)
        uri = (tmp_path / "train.py").as_uri()
        server.open(uri, f"import torch\nopen({str(mark)!r}, 'w')\n")
        assert server.published(uri, 1) == []
        assert not mark.exists()


def test_nothing_that_is_linted_writes_to_the_streams(tmp_path: Path) -> None:
    with wire(tmp_path) as server:
        server.begin(tmp_path)
        uri = (tmp_path / "train.py").as_uri()
        server.open(uri, 'import torch\nx = "\\d"\nassert (1, "x")\nx is 3\n')  # what Python warns of
        server.published(uri, 1)
        is_well(server, tmp_path)
        server.ask("shutdown", None)
        server.notify("exit", None)
        server.process.wait(PATIENCE)
        assert server.process.stderr is not None
        assert server.process.stderr.read() == b""


# What it is sent

HERE: dict[str, Any] = {"textDocument": {"uri": "file:///nowhere.py"}}
QUESTIONS = (
    ("textDocument/hover", {"position": {"line": 0, "character": 0}}),
    ("textDocument/codeAction", {"range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}, "context": {"diagnostics": []}}),
)  # fmt: skip


def test_a_method_that_is_none(tmp_path: Path) -> None:
    with wire(tmp_path) as server:
        server.begin(tmp_path)
        for method in ("textDocument/nothing", "$/nothing", "", "torchlint/x"):
            assert server.ask(method, {})["error"]["code"] == METHOD_NOT_FOUND
            server.notify(method, {})
            server.notify(method, None)
        is_well(server, tmp_path)


WRONG: tuple[Any, ...] = (
    None,
    {},
    [],
    7,
    {"textDocument": None},
    {"textDocument": {}},
    {"textDocument": {"uri": 7}},
    {**HERE, "position": None},
    {**HERE, "position": {}},
    {**HERE, "position": {"line": "x", "character": 0}},
)


def test_a_question_with_wrong_parameters_is_answered(tmp_path: Path) -> None:
    with wire(tmp_path) as server:
        server.begin(tmp_path)
        for params in WRONG:
            for method, _ in QUESTIONS:
                with case((method, params)):
                    assert "error" in server.ask(method, params)
        is_well(server, tmp_path)


PLACES = [(0, 10**6), (10**6, 0), (10**9, 10**9), (2**31 - 1, 2**31 - 1), (13, 2**31 - 1), (-1, 0), (0, -1), (0.5, 0)]


def test_a_place_that_is_none(tmp_path: Path) -> None:
    """A question about it finds nothing, or only what the line has to its end, or is refused."""
    with wire(tmp_path) as server:
        server.begin(tmp_path)
        uri = (tmp_path / "train.py").as_uri()
        server.open(uri, TRAIN)
        assert server.published(uri, 1) == FOUND
        document = {"textDocument": {"uri": uri}, "context": {"diagnostics": []}}
        for line, character in PLACES:
            with case((line, character)):
                place = {"line": line, "character": character}
                hover = server.ask("textDocument/hover", {**document, "position": place})
                assert hover.get("result") is None or line == 13
                actions = server.ask("textDocument/codeAction", {**document, "range": {"start": place, "end": place}})
                quick = [each for each in actions.get("result") or () if each["kind"] == "quickfix"]
                assert not quick or line == 13
        backwards = {"start": {"line": 14, "character": 0}, "end": {"line": 13, "character": 0}}
        server.ask("textDocument/codeAction", {**document, "range": backwards})
        is_well(server, tmp_path)


def test_documents_that_are_not_open(tmp_path: Path) -> None:
    with wire(tmp_path) as server:
        server.begin(tmp_path)
        notifications: tuple[tuple[str, dict[str, Any]], ...] = (
            ("textDocument/didClose", {}),
            ("textDocument/didSave", {}),
            ("textDocument/didChange", {"contentChanges": [{"text": TRAIN}]}),
            ("notebookDocument/didClose", {"notebookDocument": {"uri": "file:///n.ipynb"}, "cellTextDocuments": []}),
            ("notebookDocument/didSave", {"notebookDocument": {"uri": "file:///n.ipynb"}}),
            (
                "notebookDocument/didChange",
                {"notebookDocument": {"uri": "file:///n.ipynb", "version": 2}, "change": {}},
            ),
        )
        for method, more in notifications:
            server.notify(method, {"textDocument": {"uri": "file:///nowhere.py", "version": 3}, **more})
        for method, more in QUESTIONS:
            assert not server.ask(method, {**HERE, **more})["result"]
        is_well(server, tmp_path)
        assert "file:///nowhere.py" not in str(server.seen)


def test_versions_that_are_out_of_order(tmp_path: Path) -> None:
    """The text is what it was changed to, whatever its number; nothing is published of a lower one than before."""
    with wire(tmp_path) as server:
        server.begin(tmp_path)
        uri = (tmp_path / "train.py").as_uri()
        server.open(uri, TRAIN, 5)
        assert server.published(uri, 5) == FOUND
        for version in (5, 9):
            text = TRAIN if version == 9 else TRAIN.replace(SLOW, FAST)
            change = {"textDocument": {"uri": uri, "version": version}, "contentChanges": [{"text": text}]}
            server.notify("textDocument/didChange", change)
            assert len(server.published(uri, version)) == (4 if version == 9 else 3)
        server.open(uri, "", 1)  # opened once more, without having been closed
        assert server.published(uri, 1) == []
        is_well(server, tmp_path)


NOT_THERE = {
    "behind the end": {"start": {"line": 10**6, "character": 0}, "end": {"line": 10**6, "character": 9}},
    "over the end": {"start": {"line": 25, "character": 0}, "end": {"line": 2**31 - 1, "character": 2**31 - 1}},
    "backwards": {"start": {"line": 25, "character": 5}, "end": {"line": 25, "character": 0}},
}


def test_a_change_of_what_is_not_there(tmp_path: Path) -> None:
    """It is made at the end, as editors take it, and the rest stays."""
    with wire(tmp_path) as server:
        server.begin(tmp_path)
        for name, range_ in NOT_THERE.items():
            with case(name):
                uri = (tmp_path / f"{name}.py").as_uri()
                server.open(uri, TRAIN)
                assert server.published(uri, 1) == FOUND
                changes = [{"range": range_, "text": "# x\n"}]
                identifier = {"uri": uri, "version": 2}
                server.notify("textDocument/didChange", {"textDocument": identifier, "contentChanges": changes})
                assert server.published(uri, 2) == FOUND
                is_well(server, tmp_path)


NO_CHANGES: tuple[Any, ...] = (
    None,
    {},
    [],
    [{}],
    [{"text": 7}],
    [{"range": None, "text": TRAIN}],
    [{"range": {}, "text": ""}],
)


def test_changes_that_are_none(tmp_path: Path) -> None:
    with wire(tmp_path) as server:
        server.begin(tmp_path)
        uri = (tmp_path / "train.py").as_uri()
        server.open(uri, TRAIN)
        assert server.published(uri, 1) == FOUND
        for version, changes in enumerate(NO_CHANGES, 1):
            with case(changes):
                identifier = {"uri": uri, "version": 2 * version}
                server.notify("textDocument/didChange", {"textDocument": identifier, "contentChanges": changes})
                identifier = {"uri": uri, "version": 2 * version + 1}
                server.notify(
                    "textDocument/didChange", {"textDocument": identifier, "contentChanges": [{"text": TRAIN}]}
                )
                assert server.published(uri, 2 * version + 1) == FOUND


NO_MESSAGES = (
    b"{",
    b"\xff\xfe\x00",
    b"null",
    b"[]",
    b"7",
    b'"text"',
    b"{}",
    b'{"jsonrpc": "1.0", "id": 1, "method": "shutdown"}',
    b'{"jsonrpc": "2.0", "id": 99, "result": 7}',
    b'{"jsonrpc": "2.0", "id": null, "error": {"code": 1, "message": "x"}}',
    b'{"jsonrpc": "2.0", "method": 7}',
    b'[{"jsonrpc": "2.0", "method": "exit"}]',
    b'{"jsonrpc": "2.0", "id": {}, "method": "textDocument/hover", "params": {}}',
)


def test_bytes_that_are_no_message(tmp_path: Path) -> None:
    with wire(tmp_path) as server:
        server.begin(tmp_path)
        for number, data in enumerate(NO_MESSAGES):
            with case(data):
                server.raw(b"Content-Length: %d\r\n\r\n%s" % (len(data), data))
                is_well(server, tmp_path, f"behind{number}.py")


HEADS = (
    "Content-Length: {}\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n",
    "Content-Type: x\r\nContent-Length: {}\r\n\r\n",
)


def test_heads_that_are_unusual(tmp_path: Path) -> None:
    with wire(tmp_path) as server:
        server.begin(tmp_path)
        for number, head in enumerate(HEADS):
            with case(head):
                question = {"jsonrpc": "2.0", "id": f"mine{number}", "method": "textDocument/nothing", "params": {}}
                data = json.dumps(question).encode()
                server.raw(head.format(len(data)).encode() + data)
                answer = server.wait(lambda message, number=number: message.get("id") == f"mine{number}")
                assert answer["error"]["code"] == METHOD_NOT_FOUND


WRONG_LENGTHS = (
    b"Content-Length: 99999999999999\r\n\r\n{}",
    b"Content-Length: " + b"9" * 5_000 + b"\r\n\r\n{}",
    b"Content-Length: -5\r\n\r\n{}",
    b"Content-Length: two\r\n\r\n{}",
    b"Content-Length: 2\r\n\r\n{}{}Content-Length: 2\r\n\r\n{}",  # what stands behind a length that is too small
    b"x" * 20_000,
)


@pytest.mark.parametrize("data", WRONG_LENGTHS, ids=("huge", "digits", "negative", "no number", "too small", "no head"))
def test_a_wrong_length_ends_the_server_with_one_line(tmp_path: Path, data: bytes) -> None:
    command = [sys.executable, "-m", "torchlint", "server"]
    with subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=-1, stderr=-1) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(data)
        process.stdin.flush()
        assert process.wait(timeout=30) == 2  # though its input is still open
        (line,) = process.stderr.read().decode().splitlines()
    assert line.startswith("error: torchlint server: ")
    assert line.endswith("what writes to it speaks no LSP")


def test_a_question_before_the_beginning(tmp_path: Path) -> None:
    with wire(tmp_path) as server:
        answer = server.ask("textDocument/hover", {**HERE, "position": {"line": 0, "character": 0}})
        assert "error" in answer or answer["result"] is None
        server.open("file:///early.py", TRAIN)
        server.begin(tmp_path)
        is_well(server, tmp_path)


def test_a_question_behind_the_end(tmp_path: Path) -> None:
    with wire(tmp_path) as server:
        server.begin(tmp_path)
        is_well(server, tmp_path)
        server.ask("shutdown", None)
        answer = server.ask("textDocument/hover", {**HERE, "position": {"line": 0, "character": 0}})
        assert "error" in answer or answer["result"] is None
        server.open((tmp_path / "late.py").as_uri(), TRAIN)
        time.sleep(0.5)
        assert not [pid for pid in server.workers() if is_running(pid)], "nothing is started any more"
        server.notify("exit", None)
        assert server.process.wait(PATIENCE) == 0


def test_everything_at_once(tmp_path: Path) -> None:
    """Hundreds of messages in one write."""
    uri = (tmp_path / "train.py").as_uri()
    with wire(tmp_path) as server:
        server.begin(tmp_path)
        server.open(uri, TRAIN)
        for number in range(300):
            text = TRAIN + "#" * number
            change = {"textDocument": {"uri": uri, "version": number + 2}, "contentChanges": [{"text": text}]}
            server.notify("textDocument/didChange", change)
            place = {"line": 13, "character": 15}
            question = {"textDocument": {"uri": uri}, "position": place}
            server.send({"jsonrpc": "2.0", "id": f"h{number}", "method": "textDocument/hover", "params": question})
        answers = [
            server.wait(lambda message, n=n: message.get("id") == f"h{n}") if n == 299 else None for n in range(300)
        ]
        assert answers[-1] is not None
        answered = {message["id"] for message in server.seen if str(message.get("id", "")).startswith("h")}
        assert len(answered) >= 299
        is_well(server, tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="no such limits")
def test_where_no_library_is_there(tmp_path: Path) -> None:
    """One line for people, and the status for what could not be done."""
    import subprocess

    for name in ("pygls", "lsprotocol"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(f"raise ModuleNotFoundError(name={name!r})\n", encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, "-m", "torchlint", "server"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, input="", timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert "torchlint[lsp]" in done.stderr
