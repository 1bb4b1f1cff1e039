"""What `torchlint verify` runs: programs, functions and benches, and what it says where there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from torchlint.verify.entry import resolve, root_of
from torchlint.verify.machine import CannotRunError, UsageError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a program, a package and two files of benches."""
    root = tmp_path / "project"
    for name, text in {
        "pyproject.toml": "",
        "scripts/train.py": "print('trains')\n",
        "bench_step.py": "def bench_first():\n    pass\n\n\ndef helper():\n    pass\n",
        "more/bench_other.py": "def bench_second():\n    yield int\n",
        "more/bench_nothing.py": "import torch\n",
        "more/bench_cells.ipynb": "{}",
        "build/bench_left_out.py": "def bench_third():\n    pass\n",
        "package/__init__.py": "def whole():\n    pass\n",
        "package/steps.py": "def step():\n    pass\n",
        "src/inner/steps.py": "def step():\n    pass\n",
        "notes.txt": "hello\n",
    }.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return root


def test_a_program(project: Path) -> None:
    wanted = resolve("scripts/train.py", None, ("--epochs", "1"), project)
    (way,) = wanted.ways
    assert wanted.root == project
    assert way.message == {
        "kind": "script",
        "file": "scripts/train.py",
        "arguments": ["--epochs", "1"],
        "clock": "auto",
    }
    assert (way.file, way.shown) == ("scripts/train.py", "scripts/train.py --epochs 1")


def test_the_root_is_that_of_the_program_and_not_of_the_working_folder(project: Path, tmp_path: Path) -> None:
    assert resolve("project/scripts/train.py", None, (), tmp_path).root == project
    alone = tmp_path / "alone.py"
    alone.touch()
    assert root_of(alone) == tmp_path


def test_a_link_to_a_program_leads_to_the_project_it_is_in(project: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.py"
    link.symlink_to(project / "scripts" / "train.py")
    wanted = resolve("link.py", None, (), tmp_path)
    assert (wanted.root, wanted.ways[0].file) == (project, "scripts/train.py")


@pytest.mark.parametrize(
    ("name", "file", "written"),
    [
        ("package.steps:step", "package/steps.py", "package.steps:step"),
        ("package:whole", "package/__init__.py", "package:whole"),
        ("package/steps.py:step", "package/steps.py", "package/steps.py:step"),
        ("inner.steps:step", "src/inner/steps.py", "inner.steps:step"),
    ],
)
def test_a_function(project: Path, name: str, file: str, written: str) -> None:
    (way,) = resolve(None, name, (), project).ways
    assert (way.file, way.message) == (file, {"kind": "function", "name": written})


def test_the_benches_of_a_folder(project: Path) -> None:
    ways = resolve(".", None, (), project).ways
    assert [way.shown for way in ways] == ["bench_step.py:bench_first", "more/bench_other.py:bench_second"]


def test_the_benches_of_a_file_and_the_file_itself(project: Path) -> None:
    assert [way.shown for way in resolve("bench_step.py", None, (), project).ways] == ["bench_step.py:bench_first"]
    assert resolve("bench_step.py", None, ("--now",), project).ways[0].message["kind"] == "script"
    assert resolve("more/bench_nothing.py", None, (), project).ways[0].message["kind"] == "script"


@pytest.mark.parametrize(
    ("path", "function", "arguments", "words"),
    [
        (None, None, (), "nothing to verify"),
        ("nowhere.py", None, (), "nowhere.py: no such file or folder"),
        ("notes.txt", None, (), "notes.txt: no Python program"),
        (
            "more/bench_cells.ipynb",
            None,
            (),
            "more/bench_cells.ipynb: a notebook cannot be run here; make it a program",
        ),
        ("more", None, ("--epochs", "1"), "more is a folder"),
        (None, "step", (), "write `package.module:function`"),
        (None, "package.nowhere:step", (), "there is no package/nowhere.py below"),
        (None, "../outside.py:step", (), "is not in the project"),
        ("scripts/train.py", "package:whole", (), "takes no arguments"),
        (".", "package:whole", ("--epochs",), "takes no arguments"),
    ],
)
def test_wrong_usage(
    project: Path, path: str | None, function: str | None, arguments: tuple[str, ...], words: str
) -> None:
    (project.parent / "outside.py").touch()
    with pytest.raises(UsageError, match=words) as raised:
        resolve(path, function, arguments, project)
    assert "\n" not in str(raised.value)


def test_nothing_to_run_says_what_could_be(project: Path) -> None:
    (project / "empty").mkdir()
    with pytest.raises(CannotRunError, match=r"empty: nothing to run here\n") as raised:
        resolve("empty", None, (), project)
    for way in ("train.py -- ARGUMENTS", "--entry module:function", "def bench_step"):
        assert way in str(raised.value)


@pytest.mark.parametrize("text", [b"def bench_step(:\n", b"def bench_step(): pass\n\0"])
def test_benches_that_are_no_python(project: Path, text: bytes) -> None:
    (project / "bench_broken.py").write_bytes(text)
    with pytest.raises(CannotRunError, match=r"bench_broken.py.*mend it"):
        resolve(".", None, (), project)
