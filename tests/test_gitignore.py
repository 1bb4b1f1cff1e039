"""A file is ignored exactly where git says so."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torchlint.gitignore import NAMES, Ignores

FOLDERS = ("a", "b", "data")
FILES = ("x.py", "gen_x.py", "y.pyi", "x y.py")
SEGMENTS = (
    *FOLDERS,
    *FILES,
    "gen_*.py",
    "*.py",
    "*",
    "**",
    "?",
    "[ab]",
    "[!a]",
    "x.*",
    "**a",
    "{a,b}",
    r"\a",
    "x y.py ",
)
GIT = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    "HOME": os.devnull,
    "PATH": os.environ["PATH"],
}

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="there is no git to compare with")


def git(*arguments: str, cwd: Path) -> str:
    return subprocess.run(["git", *arguments], cwd=cwd, env=GIT, capture_output=True, text=True, check=True).stdout


def kept(top: Path) -> list[str]:
    """The files below a folder that are not ignored."""
    found = []
    stack = [(str(top), Ignores.above(str(top)))]
    while stack:
        folder, ignores = stack.pop()
        here = ignores.entering(folder, os.listdir(folder))
        for entry in os.scandir(folder):
            if entry.name == ".git" or here.match(entry.path, entry.name, is_folder=entry.is_dir()):
                continue
            if entry.is_dir():
                stack.append((entry.path, here))
            elif entry.name not in NAMES:
                found.append(os.path.relpath(entry.path, top))
    return sorted(found)


def plant(top: Path, **texts: str) -> None:
    for name, text in texts.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    (tmp_path / ".git" / "info").mkdir(parents=True)
    for name in ("a/x.py", "a/gen.py", "b/a/x.py", "b/y.py", "x.py"):
        plant(tmp_path, **{name: ""})
    return tmp_path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["a/gen.py", "a/x.py", "b/a/x.py", "b/y.py", "x.py"]),
        ("# x.py\n\n \n", ["a/gen.py", "a/x.py", "b/a/x.py", "b/y.py", "x.py"]),
        ("a/\n", ["b/y.py", "x.py"]),
        ("/a/\n", ["b/a/x.py", "b/y.py", "x.py"]),
        ("x.py\n", ["a/gen.py", "b/y.py"]),
        ("x.py/\n", ["a/gen.py", "a/x.py", "b/a/x.py", "b/y.py", "x.py"]),
        ("/x.py   \r\n", ["a/gen.py", "a/x.py", "b/a/x.py", "b/y.py"]),
        ("\ufeffa/x.py\n", ["a/gen.py", "b/a/x.py", "b/y.py", "x.py"]),
        ("*\n!*/\n!y.py\n", ["b/y.py"]),
        ("*.py\n!x.py\n", ["a/x.py", "b/a/x.py", "x.py"]),
        ("a/*\n!a/x.py\n/b\n", ["a/x.py", "x.py"]),
        ("a/**\n!a/x.py\n/b\n", ["a/x.py", "x.py"]),
        ("a/\n!a/x.py\n/b\n", ["x.py"]),
        ("[\n\\!x\nx.py\n", ["a/gen.py", "b/y.py"]),
        ("**/a/x.py\n", ["a/gen.py", "b/y.py", "x.py"]),
    ],
)
@needs_git
def test_lines_mean_what_they_mean_to_git(repository: Path, text: str, expected: list[str]) -> None:
    plant(repository, **{".gitignore": text})
    assert kept(repository) == expected
    shutil.rmtree(repository / ".git")
    git("init", "-q", cwd=repository)
    listed = git("ls-files", "-co", "--exclude-standard", cwd=repository).splitlines()
    assert sorted(set(listed) - {".gitignore"}) == expected


def test_info_exclude_loses_to_a_gitignore_and_that_to_a_nearer_one(repository: Path) -> None:
    plant(repository, **{".git/info/exclude": "*.py\n", ".gitignore": "!x.py\n", "b/.gitignore": "x.py\n!y.py\n"})
    assert kept(repository) == ["a/x.py", "b/y.py", "x.py"]


def test_a_dot_ignore_wins_over_all_of_gits(repository: Path) -> None:
    plant(repository, **{".ignore": "!gen.py\n", "a/.gitignore": "gen.py\nx.py\n"})
    assert "a/gen.py" in kept(repository)
    assert "a/x.py" not in kept(repository)


def test_outside_of_a_repository_only_dot_ignore_counts(repository: Path) -> None:
    shutil.rmtree(repository / ".git")
    plant(repository, **{".gitignore": "a/\n", "b/.ignore": "y.py\n"})
    assert kept(repository) == ["a/gen.py", "a/x.py", "b/a/x.py", "x.py"]


def test_files_of_the_folders_above_count_up_to_the_repository(repository: Path) -> None:
    plant(repository.parent, **{".gitignore": "*.py\n"})
    plant(repository, **{".gitignore": "gen.py\n"})
    assert kept(repository / "a") == ["x.py"]


def test_a_repository_in_a_repository_is_on_its_own(repository: Path) -> None:
    plant(repository, **{".gitignore": "x.py\n", "b/.git/info/exclude": "y.py\n"})
    assert kept(repository) == ["a/gen.py", "b/a/x.py"]


def test_a_folder_that_is_named_is_seen_though_it_is_ignored(repository: Path) -> None:
    plant(repository, **{".gitignore": "a/\ngen.py\n"})
    assert kept(repository / "a") == ["x.py"]


@needs_git
def test_a_work_tree_has_the_excludes_of_its_repository(tmp_path: Path) -> None:
    main, tree = tmp_path / "main", tmp_path / "tree"
    main.mkdir()
    git("init", "-q", cwd=main)
    commit = ("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "first")
    git(*commit, cwd=main)
    git("worktree", "add", "-q", str(tree), cwd=main)
    plant(main, **{".git/info/exclude": "x.py\n"})
    plant(tree, **{"x.py": "", "y.py": ""})
    assert kept(tree) == ["y.py"]


def test_unreadable_files_ignore_nothing(repository: Path) -> None:
    (repository / ".gitignore").mkdir()
    (repository / "a" / ".gitignore").write_bytes(b"\xff*\nx.py\n")
    assert kept(repository) == ["a/gen.py", "b/a/x.py", "b/y.py", "x.py"]


folders = st.lists(st.sampled_from(FOLDERS), max_size=3).map("/".join)
lines = st.builds(
    lambda start, slash, segments, end: start + slash + "/".join(segments) + end,
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "", "/"]),
    st.lists(st.sampled_from(SEGMENTS), min_size=1, max_size=3),
    st.sampled_from(["", "", "/"]),
)


@needs_git
@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    files=st.lists(st.tuples(folders, st.sampled_from(FILES)), min_size=4, max_size=12),
    ignores=st.lists(st.tuples(folders, st.lists(lines, min_size=1, max_size=4)), min_size=1, max_size=3),
)
def test_any_tree_is_to_us_what_it_is_to_git(
    files: list[tuple[str, str]], ignores: list[tuple[str, list[str]]]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder).resolve()
        for name in files:
            plant(top, **{"/".join(filter(None, name)): ""})
        for place, text in ignores:
            if (top / place).is_dir():
                plant(top, **{f"{place}/.gitignore".lstrip("/"): "\n".join(text) + "\n"})
        git("init", "-q", cwd=top)
        listed = git("ls-files", "-coz", "--exclude-standard", cwd=top).split("\0")
        assert kept(top) == sorted(name for name in listed if name and not name.endswith(".gitignore"))
