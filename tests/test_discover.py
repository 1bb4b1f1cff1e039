"""A run checks the files that ruff would check, each once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from torchlint.config import DEFAULT_EXCLUDE, ConfigError, Configs, Overrides
from torchlint.discover import Found, discover


def plant(top: Path, *names: str, **texts: str) -> None:
    for name in (*names, *texts):
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(texts.get(name, ""), encoding="utf-8")


def shown(top: Path, *paths: str, overrides: Overrides | None = None) -> list[str]:
    found, problems = discover(paths or (".",), Configs(overrides or Overrides(), top), top)
    assert problems == []
    return [file.shown for file in found]


def test_python_files_are_found_in_order(tmp_path: Path) -> None:
    plant(tmp_path, "b/x.py", "a/y.pyi", "a/x.py", "a.py", "a-b/x.py", "a/notes.txt", "a/x.pyc", "a/py")
    assert shown(tmp_path) == ["a-b/x.py", "a.py", "a/x.py", "a/y.pyi", "b/x.py"]


def test_notebooks_are_found_but_for_the_copies_that_jupyter_keeps(tmp_path: Path) -> None:
    plant(tmp_path, "a.ipynb", "b/c.ipynb", "b/.ipynb_checkpoints/c-checkpoint.ipynb", "ipynb")
    assert shown(tmp_path) == ["a.ipynb", "b/c.ipynb"]


def test_a_file_has_its_path_and_what_is_shown_of_it(tmp_path: Path) -> None:
    plant(tmp_path, "in/x.py", "out/y.py")
    top = tmp_path / "in"
    found, _ = discover(["x.py", "../out"], Configs(Overrides(), top), top)
    outside = tmp_path / "out" / "y.py"
    assert sorted(found, key=lambda file: file.path) == [
        Found(top / "x.py", "x.py", named=True),
        Found(outside, outside.as_posix(), named=False),
    ]


def test_a_file_that_is_named_is_checked_whatever_its_suffix(tmp_path: Path) -> None:
    plant(tmp_path, "script", "venv/x.py", "ignored.py", **{".ignore": "ignored.py"})
    assert shown(tmp_path, "script", "venv/x.py", "ignored.py") == ["ignored.py", "script", "venv/x.py"]


def test_a_folder_that_is_named_is_walked_though_it_is_excluded(tmp_path: Path) -> None:
    plant(tmp_path, "venv/x.py", "venv/dist/x.py", "x.py")
    assert shown(tmp_path, "venv") == ["venv/x.py"]
    assert shown(tmp_path) == ["x.py"]


@pytest.mark.parametrize("name", DEFAULT_EXCLUDE)
def test_folders_that_hold_no_code_of_the_project_are_passed_over(tmp_path: Path, name: str) -> None:
    plant(tmp_path, f"a/{name}/x.py", "x.py")
    assert shown(tmp_path) == ["x.py"]


def test_force_exclude_holds_for_what_is_named(tmp_path: Path) -> None:
    plant(tmp_path, "a/venv/b/x.py", "a/x.py", "gen/x.py", "skip.py")
    forced = Overrides(force_exclude=True, extend_exclude=("gen", "skip.py"))
    assert shown(tmp_path, "a/venv/b/x.py", "a/x.py", "gen", "skip.py", overrides=forced) == ["a/x.py"]


def test_force_exclude_ends_at_the_projects_root(tmp_path: Path) -> None:
    top = tmp_path / "build" / "project"
    plant(top, "x.py", "build/y.py", **{"torchlint.toml": "force-exclude = true"})
    for cwd in (top, tmp_path, top / "build"):
        found, _ = discover([str(top / "x.py"), str(top / "build/y.py")], Configs(Overrides(), cwd), cwd)
        assert [file.path.name for file in found] == ["x.py"]
    plant(tmp_path, "elsewhere/venv/x.py")
    assert shown(top, str(tmp_path / "elsewhere/venv/x.py"), overrides=Overrides(force_exclude=True)) == []


def test_force_exclude_asks_the_project_around_a_project_too(tmp_path: Path) -> None:
    plant(tmp_path, "vendored/x.py", "y.py")
    plant(tmp_path, **{"vendored/torchlint.toml": "force-exclude = true"})
    plant(tmp_path, **{"torchlint.toml": "exclude = ['vendored']\nforce-exclude = true"})
    assert shown(tmp_path, "vendored/x.py", "y.py") == ["y.py"]


def test_each_folder_is_excluded_by_the_configuration_that_it_is_in(tmp_path: Path) -> None:
    plant(tmp_path, "a/gen.py", "a/b/gen.py", "a/b/x.py", "gen.py", "old.py", "a/old.py")
    plant(tmp_path, **{"torchlint.toml": "exclude = ['old.py']", "a/torchlint.toml": "extend-exclude = ['b/gen.py']"})
    assert shown(tmp_path) == ["a/b/x.py", "a/gen.py", "a/old.py", "gen.py"]


def test_gitignore_is_respected_unless_told_otherwise(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    plant(tmp_path, "a/x.py", "b/x.py", "b/c/x.py")
    plant(tmp_path, **{".gitignore": "a/", "b/torchlint.toml": "respect-gitignore = false", "b/.gitignore": "c/"})
    assert shown(tmp_path) == ["b/c/x.py", "b/x.py"]
    assert shown(tmp_path, overrides=Overrides(respect_gitignore=False)) == ["a/x.py", "b/c/x.py", "b/x.py"]


def test_a_file_named_twice_or_found_twice_is_checked_once(tmp_path: Path) -> None:
    plant(tmp_path, "a/x.py", "y.py")
    assert shown(tmp_path, "a", "a/x.py", "./a/../a/x.py", ".", str(tmp_path / "y.py")) == ["a/x.py", "y.py"]


def test_links_to_files_are_checked_once_under_the_path_without_links(tmp_path: Path) -> None:
    plant(tmp_path, "z.py", "other/w.txt")
    (tmp_path / "a.py").symlink_to("z.py")
    (tmp_path / "c.py").symlink_to("other/w.txt")
    (tmp_path / "b.py").symlink_to("other/w.txt")
    assert shown(tmp_path) == ["b.py", "z.py"]
    assert shown(tmp_path, "a.py") == ["a.py"]
    assert shown(tmp_path, "a.py", "z.py") == ["z.py"]


def test_links_to_folders_are_followed_only_where_they_are_named(tmp_path: Path) -> None:
    plant(tmp_path, "real/x.py")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "real" / "loop").symlink_to("..")
    (tmp_path / "folder.py").symlink_to("real")
    assert shown(tmp_path) == ["real/x.py"]
    assert shown(tmp_path, "link") == ["link/x.py"]
    assert shown(tmp_path, "link", "real") == ["real/x.py"]


def test_links_to_nothing_are_passed_over_in_a_walk(tmp_path: Path) -> None:
    (tmp_path / ".#x.py").symlink_to("someone@host.123")
    assert shown(tmp_path) == []


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in this file system")
def test_a_pipe_is_never_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "x.py")
    plant(tmp_path, "y.py")
    assert shown(tmp_path) == ["y.py"]
    assert discover(["x.py"], Configs(Overrides(), tmp_path), tmp_path) == ([], [("x.py", "not a regular file")])


def test_what_cannot_be_found_is_a_problem_and_the_rest_is_checked(tmp_path: Path) -> None:
    plant(tmp_path, "x.py")
    (tmp_path / "loop.py").symlink_to("loop.py")
    paths = ["missing.py", "x.py", "x.py/y.py", "loop.py", "n" * 300 + ".py", "../missing"]
    found, problems = discover(paths, Configs(Overrides(), tmp_path), tmp_path)
    assert [file.shown for file in found] == ["x.py"]
    reasons = dict(problems)
    assert reasons["missing.py"] == "no such file or directory"
    assert reasons[(tmp_path.parent / "missing").as_posix()] == "no such file or directory"
    assert reasons["loop.py"].startswith("too many levels of symbolic links")
    assert len(reasons) == len(paths) - 1
    assert problems == sorted(problems)


def test_a_folder_that_cannot_be_listed_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(tmp_path, "a/x.py", "b/x.py")
    scandir = os.scandir

    def refuse(folder: str) -> object:
        if folder.endswith("a"):
            raise PermissionError(13, "Permission denied", folder)
        return scandir(folder)

    monkeypatch.setattr("torchlint.discover.os.scandir", refuse)
    found, problems = discover(["."], Configs(Overrides(), tmp_path), tmp_path)
    assert [file.shown for file in found] == ["b/x.py"]
    assert problems == [("a", "cannot list the folder: permission denied")]


def test_a_folder_without_python_is_no_problem(tmp_path: Path) -> None:
    plant(tmp_path, "a/notes.txt")
    assert shown(tmp_path, "a") == []


def test_a_wrong_configuration_below_is_an_error(tmp_path: Path) -> None:
    plant(tmp_path, "a/b/x.py", **{"a/b/torchlint.toml": "slect = []"})
    with pytest.raises(ConfigError, match=r"^a/b/torchlint.toml:1: unknown key `slect`; did you mean `select`\?$"):
        shown(tmp_path)


def test_without_a_configuration_no_parser_is_loaded(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    plant(tmp_path, "x.py", **{".gitignore": "y.py", "pyproject.toml": "[tool.ruff]\nline-length = 120\n"})
    script = (
        "import sys; from pathlib import Path\n"
        "from torchlint.config import Configs, Overrides; from torchlint.discover import discover\n"
        "cwd = Path.cwd(); configs = Configs(Overrides(select=('TL3',), output_format='json'), cwd)\n"
        "(file,), _ = discover(['.'], configs, cwd)\n"
        "assert configs.for_file(file.path).settings_for(file.path).rules\n"
        "print(*sorted({'msgspec', 'pathspec', 'tomli'} & sys.modules.keys()))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


# Capitals: the folders above a temporary one, which ruff's patterns can match too, have none.
FOLDERS = ("A", "B", "DATA", ".H", "venv")
FILES = ("X.py", "GEN_X.py", "Y.pyi", "T.txt")
folders = st.lists(st.sampled_from(FOLDERS), max_size=3).map("/".join)
segments = st.sampled_from((*FOLDERS, *FILES, "GEN_*.py", "*.py", "*", "**", "?", "[AB]", "[!A]", "X.*"))
ignore_lines = st.builds(
    lambda start, slash, parts, end: start + slash + "/".join(parts) + end,
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "", "/"]),
    st.lists(segments, min_size=1, max_size=2),
    st.sampled_from(["", "", "/"]),
)
pieces = (
    *"AXY*?/,{}[",
    "DATA",
    "**",
    "[AB]",
    "[!A]",
    "{A,B}",
    "/",
    "/",
    "/**/",
    "**/",
    ".py",
    "./",
    "../",
    r"\A",
    ".H",
)
patterns = (
    st.lists(st.sampled_from(pieces), min_size=1, max_size=5)
    .map("".join)
    .filter(lambda pattern: pattern.strip("./") != "" and not pattern.startswith("//"))
)


def ruff(top: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    executable = shutil.which("ruff", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))
    if executable is None:
        pytest.skip("there is no ruff to compare with")
    command = [executable, "check", "--no-cache", *arguments]
    return subprocess.run(command, cwd=top, env={"HOME": os.devnull}, capture_output=True, text=True, check=False)


def grow(top: Path, files: list[tuple[str, str]]) -> None:
    for name in files:
        plant(top, **{"/".join(filter(None, name)): "import os\n"})


properties = settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
trees = st.lists(st.tuples(folders, st.sampled_from(FILES)), min_size=4, max_size=12)


@properties
@given(
    files=trees,
    ignores=st.lists(
        st.tuples(folders, st.sampled_from([".gitignore", ".ignore"]), st.lists(ignore_lines)), max_size=3
    ),
    repositories=st.sets(st.one_of(st.just(""), folders), max_size=2),
    start=folders,
)
def test_any_tree_has_the_files_that_ruff_shows(
    files: list[tuple[str, str]], ignores: list[tuple[str, str, list[str]]], repositories: set[str], start: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder).resolve()
        grow(top, files)
        for place in repositories:
            if (top / place).is_dir():
                (top / place / ".git").mkdir()
        for place, name, lines in ignores:
            if (top / place).is_dir():
                plant(top, **{str(Path(place, name)): "\n".join(lines) + "\n"})
        start = start if start and (top / start).is_dir() else "."
        listed = ruff(top, "--isolated", "--show-files", start).stdout.splitlines()
        expected = sorted(Path(path).relative_to(top).as_posix() for path in listed if path.endswith((".py", ".pyi")))
        assert shown(top, start, overrides=Overrides(isolated=True)) == expected


@properties
@given(
    files=trees,
    exclude=st.lists(patterns, max_size=2),
    extend_exclude=st.lists(patterns, max_size=2),
    ignores=st.sets(st.tuples(st.sampled_from(["", "!"]), patterns).map("".join), max_size=2),
)
def test_any_pattern_means_what_it_means_to_ruff(
    files: list[tuple[str, str]], exclude: list[str], extend_exclude: list[str], ignores: set[str]
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        top = Path(folder).resolve()
        grow(top, files)
        own = [f"exclude = {json.dumps(exclude)}"] if exclude else []
        own.append(f"extend-exclude = {json.dumps(extend_exclude)}")
        theirs = [*own, "[lint]", "select = ['F401']", "[lint.per-file-ignores]"]
        theirs += [f"{json.dumps(pattern)} = ['ALL']" for pattern in ignores]
        own += ["[per-file-ignores]", *(f"{json.dumps(pattern)} = ['ALL']" for pattern in ignores)]
        plant(top, **{"ruff.toml": "\n".join(theirs), "torchlint.toml": "\n".join(own)})
        done = ruff(top, "--output-format", "json", ".")
        configs = Configs(Overrides(), top)
        if "invalid glob" in done.stderr or "parsing glob" in done.stderr:
            with pytest.raises(ConfigError, match="is not a pattern"):
                discover(["."], configs, top)
            return
        found, _ = discover(["."], configs, top)
        checked = [file.shown for file in found if configs.for_file(file.path).settings_for(file.path).rules]
        expected = {Path(finding["filename"]).relative_to(top).as_posix() for finding in json.loads(done.stdout)}
        assert checked == sorted(expected)
