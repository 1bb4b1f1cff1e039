"""A manifest sees every change that matters in a tree, and none that importing or git makes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from torchlint.verify.manifest import changes, take


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name, text in (("train.py", "x = 1\n"), ("data/a.bin", "0123"), (".git/HEAD", "ref"), (".git/objects/a", "o")):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (tmp_path / "link").symlink_to("train.py")
    return tmp_path


def rewrite(path: Path, text: str) -> None:
    """Write text of the same length and give the file its old time back."""
    status = path.stat()
    path.write_text(text, encoding="utf-8")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def relink(link: Path, *, is_folder: bool = False) -> None:
    link.unlink()
    if is_folder:
        link.mkdir()
    else:
        link.symlink_to("data")


CHANGES: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "nothing": (lambda _: None, []),
    "added": (lambda tree: (tree / "data" / "log.txt").touch(), ["added: data/log.txt"]),
    "an empty folder": (lambda tree: (tree / "runs").mkdir(), ["added: runs"]),
    "removed": (lambda tree: (tree / "train.py").unlink(), ["removed: train.py"]),
    "renamed": (lambda tree: (tree / "train.py").rename(tree / "t.py"), ["added: t.py", "removed: train.py"]),
    "same size and time": (lambda tree: rewrite(tree / "train.py", "x = 2\n"), ["changed: train.py"]),
    "data": (lambda tree: (tree / "data" / "a.bin").write_text("01234", encoding="utf-8"), ["changed: data/a.bin"]),
    "time": (lambda tree: os.utime(tree / "data" / "a.bin", (1, 1)), ["touched: data/a.bin"]),
    "mode": (lambda tree: (tree / "train.py").chmod(0o400), ["mode changed: train.py"]),
    "mode of a folder": (lambda tree: (tree / "data").chmod(0o500), ["mode changed: data"]),
    "link": (lambda tree: relink(tree / "link"), ["changed: link"]),
    "another kind": (lambda tree: relink(tree / "link", is_folder=True), ["replaced: link"]),
    "git": (lambda tree: (tree / ".git" / "HEAD").write_text("refs", encoding="utf-8"), ["changed: .git/HEAD"]),
    "git's objects": (lambda tree: (tree / ".git" / "objects" / "b").touch(), []),
    "compiled files": (lambda tree: (tree / "__pycache__").mkdir(), []),
    "objects that are not git's": (lambda tree: (tree / "objects").mkdir(), ["added: objects"]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changes_are_seen(change: str, tree: Path) -> None:
    make, expected = CHANGES[change]
    before = take(tree)
    times = {path: path.stat().st_mtime_ns for path in (tree / "train.py",)}
    make(tree)
    assert changes(before, take(tree)) == expected
    if change == "same size and time":
        assert times == {path: path.stat().st_mtime_ns for path in times}


def test_links_are_not_followed(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (tree / "shared").symlink_to(outside)
    before = take(tree)
    (outside / "new").touch()
    assert "shared" in before.entries
    assert changes(before, take(tree)) == []


def test_data_are_not_read(tree: Path) -> None:
    assert take(tree).entries["data/a.bin"].content == ""
    assert len(take(tree).entries["train.py"].content) == 64


def test_a_tree_that_is_gone_has_no_entries(tmp_path: Path) -> None:
    assert take(tmp_path / "nowhere").entries == {}
