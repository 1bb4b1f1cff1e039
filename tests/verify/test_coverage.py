"""Which of the watched lines ran: in functions, threads and forked children, each told once, and no others."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import sys
import threading
from pathlib import Path
from types import ModuleType

import pytest

from torchlint.verify.inside.coverage import ran, watched

SOURCE = """\
import os

def first(n):
    total = 0
    for step in range(n):
        total += step
    if total > 1_000:
        total = -1
    return total

def second():
    return [n for n in range(3)]
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "watched_code.py"
    path.write_text(SOURCE)
    return path


def load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("watched_code", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_lines_that_run_are_told_and_others_are_not(file: Path, tmp_path: Path) -> None:
    record = str(tmp_path / "record")
    with watched({str(file): [3, 4, 6, 8, 12]}, record):
        load(file).first(3)
    assert ran(record) == [(str(file), 3), (str(file), 4), (str(file), 6)]


def test_each_is_written_once(file: Path, tmp_path: Path) -> None:
    record = str(tmp_path / "record")
    with watched({str(file): [6]}, record):
        load(file).first(100)
    assert Path(record).read_text(encoding="utf-8") == f"6 {file}\n"


def test_nothing_is_watched_before_and_after(file: Path, tmp_path: Path) -> None:
    record, before = str(tmp_path / "record"), (sys.gettrace(), threading.gettrace())
    module = load(file)
    module.first(3)
    with watched({str(file): [4, 12]}, record):
        pass
    module.second()
    assert ran(record) == []
    assert (sys.gettrace(), threading.gettrace()) == before


def test_code_in_threads_is_seen(file: Path, tmp_path: Path) -> None:
    record = str(tmp_path / "record")
    module = load(file)
    with watched({str(file): [4, 12]}, record):
        thread = threading.Thread(target=module.second)
        thread.start()
        thread.join()
    assert ran(record) == [(str(file), 12)]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_code_in_forked_children_is_seen(file: Path, tmp_path: Path) -> None:
    record = str(tmp_path / "record")
    module = load(file)
    with watched({str(file): [4, 12]}, record):
        child = multiprocessing.get_context("fork").Process(target=module.second)
        child.start()
        child.join(60)
        module.first(1)
    assert child.exitcode == 0
    assert ran(record) == [(str(file), 4), (str(file), 12)]


def test_a_path_through_a_link_is_the_same_file(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.py"
    link.symlink_to(file)
    record = str(tmp_path / "record")
    with watched({str(link): [4]}, record):
        load(file).first(1)
    assert ran(record) == [(str(file), 4)]


def test_a_path_with_blanks_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "two words.py"
    path.write_text(SOURCE)
    record = str(tmp_path / "record")
    with watched({str(path): [4]}, record):
        load(path).first(1)
    assert ran(record) == [(str(path), 4)]


def test_no_record_is_no_line(tmp_path: Path) -> None:
    assert ran(str(tmp_path / "nothing")) == []
