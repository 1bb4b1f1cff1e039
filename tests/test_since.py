"""What is new since a revision: on changed lines, and where a change elsewhere makes it so; and git is run with care."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from torchlint import cli, revision, since
from torchlint.source import SourceFile

SLOW = "import torch\n\n\ndef mask(size):  # torchlint: hot[per-batch]\n    return torch.zeros(size, size).cuda()\n"
OTHER = "\n\ndef other(size):  # torchlint: hot[per-batch]\n    return torch.ones(size, size).cuda()\n"
HELPER = "import torch\n\n\ndef value(loss):\n    read = loss.item()\n    return 2 * read\n"
READER = "import torch\n\n\ndef value(loss):\n    return loss.item()\n"
TRAIN = """\
import torch
from torch import nn

from helper import value


def train(model, loader, optimizer):
    total = 0.0
    for images, labels in loader:
        loss = nn.functional.cross_entropy(model(images.cuda(non_blocking=True)), labels.cuda(non_blocking=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        LINE
    print(total)
"""

Run = Callable[..., tuple[int, list[str], list[str]]]


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "protocol.file.allow=always")
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        ["git", *identity, *arguments], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def commit(folder: Path, message: str = "more") -> str:
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", message)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in list(os.environ):
        if name.startswith("GIT_"):
            monkeypatch.delenv(name)
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    (folder / "net.py").write_text(SLOW)
    commit(folder, "first")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def run(repository: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    del repository

    def run(*arguments: str, base: str = "HEAD") -> tuple[int, list[str], list[str]]:
        status = cli.run(["check", "--output-format", "pylint", "--diff-base", base, *arguments])
        out, err = capsys.readouterr()
        return status, [line.partition(" `")[0] for line in out.splitlines()], err.splitlines()

    return run


def test_what_was_there_is_not_reported(repository: Path, run: Run) -> None:
    head = git(repository, "rev-parse", "HEAD")[:12]
    assert run() == (0, [], [f"1 finding not shown: it was there at HEAD ({head})."])


@pytest.mark.parametrize("state", ["working tree", "index", "commit"])
def test_a_line_that_changed_is_reported_wherever_the_change_is(repository: Path, run: Run, state: str) -> None:
    base = git(repository, "rev-parse", "HEAD")
    (repository / "net.py").write_text(f'"""Words."""\n{SLOW}{OTHER}')
    if state == "index":
        git(repository, "add", "--all")
    elif state == "commit":
        commit(repository)
    status, found, (said,) = run(base=base)
    assert (status, found) == (1, ["net.py:10: [TL201]"])
    assert said.startswith("1 finding not shown: ")


def test_a_file_that_git_does_not_know_is_new(repository: Path, run: Run) -> None:
    (repository / "new.py").write_text(SLOW)
    (repository / "ignored.py").write_text(SLOW)
    (repository / ".gitignore").write_text("ignored.py\n")
    assert run()[1] == ["new.py:5: [TL201]"]
    commit(repository)
    assert run(base="HEAD~1")[1] == ["new.py:5: [TL201]"]


def test_a_line_that_was_edited_is_reported_though_it_was_slow_before(repository: Path, run: Run) -> None:
    (repository / "net.py").write_text(SLOW.replace("size, size", "size, 2"))
    assert run()[:2] == (1, ["net.py:5: [TL201]"])


def test_a_change_that_makes_another_file_hot_is_reported_there(repository: Path, run: Run) -> None:
    (repository / "helper.py").write_text(HELPER)
    (repository / "train.py").write_text(TRAIN.replace("LINE", "total += 1.0"))
    commit(repository)
    assert run()[:2] == (0, [])
    (repository / "train.py").write_text(TRAIN.replace("LINE", "total += value(loss)"))
    status, found, _ = run()
    assert status == 1
    assert "helper.py:5: [TL301]" in found
    assert not any(line.startswith("net.py") for line in found)


def test_a_new_call_of_a_function_that_only_reads_is_reported_where_it_is_called(repository: Path, run: Run) -> None:
    (repository / "helper.py").write_text(READER)
    (repository / "train.py").write_text(TRAIN.replace("LINE", "total += 1.0"))
    commit(repository)
    assert run()[:2] == (0, [])
    (repository / "train.py").write_text(TRAIN.replace("LINE", "total += value(loss)"))
    assert run()[:2] == (1, ["train.py:14: [TL301]"])


def test_a_renamed_file_and_moved_lines_are_no_news(repository: Path, run: Run) -> None:
    git(repository, "mv", "net.py", "model.py")
    assert run()[:2] == (0, [])
    (repository / "model.py").write_text(SLOW + OTHER)
    assert run()[:2] == (1, ["model.py:9: [TL201]"])
    (repository / "model.py").rename(repository / "net.py")
    (repository / "net.py").write_text("import os\n\n\n" + SLOW.replace("\n\n\n", "\n\n\n\n\n"))
    assert run()[:2] == (0, [])


def test_line_endings_are_no_change(repository: Path, run: Run) -> None:
    (repository / "net.py").write_bytes(SLOW.replace("\n", "\r\n").encode())
    assert run()[:2] == (0, [])
    (repository / "net.py").write_bytes((SLOW + OTHER).replace("\n", "\r\n").encode())
    assert run()[1] == ["net.py:9: [TL201]"]


@pytest.mark.slow
def test_a_long_file_of_lines_alike_takes_no_time(repository: Path, run: Run) -> None:
    """Of which nothing can be said but that there are more of them."""
    lines = "".join(f"x{number % 40} = 1\ny = 2\n" for number in range(15_000))
    (repository / "net.py").write_text(f"a = 1\n{lines}{SLOW}")
    commit(repository)
    (repository / "net.py").write_text(f"a = 2\n{lines[13:]}{SLOW}{OTHER}")
    started = time.process_time()
    status, found, _ = run("--select", "TL201")
    assert (status, len(found)) == (1, 1)
    assert time.process_time() - started < 60


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("", "a\n", {1}),
        ("a\nb\n", "a\nb\n", set()),
        ("a\nb\nc\n", "a\nx\nc\n", {2}),
        ("a\nb\n", "b\n", set()),
        ("a\n", "a\na\n", {2}),
        ("a\nb\nc\n", "a\nb\nb\nc\n", {3}),
        ("x\na\nb\n", "x\r\nb\r\na\r\n", {2}),
    ],
)
def test_rows_that_changed(old: str, new: str, changed: set[int], monkeypatch: pytest.MonkeyPatch) -> None:
    source = SourceFile("a.py", new)
    assert since.changed_rows(source, old.encode()) == changed
    monkeypatch.setattr(since, "_MOST_PAIRS", -1)
    assert len(since.changed_rows(source, old.encode())) <= len(changed)


def test_no_attribute_hides_a_change(repository: Path, run: Run) -> None:
    (repository / ".gitattributes").write_text("*.py binary -diff export-ignore export-subst\n")
    commit(repository)
    (repository / "net.py").write_text(SLOW + OTHER)
    assert run()[1] == ["net.py:9: [TL201]"]


def test_a_rule_that_is_switched_on_is_no_news(repository: Path, run: Run) -> None:
    (repository / "torchlint.toml").write_text('ignore = ["ALL"]\n')
    commit(repository)
    (repository / "torchlint.toml").write_text('select = ["TL201"]\n[per-file-severity]\n"net.py" = "note"\n')
    assert run()[:2] == (0, [])


def test_what_the_branch_did_counts_and_not_what_became_of_its_base(repository: Path, run: Run) -> None:
    git(repository, "checkout", "--quiet", "-b", "topic")
    (repository / "topic.py").write_text(SLOW)
    commit(repository)
    git(repository, "checkout", "--quiet", "main")
    (repository / "net.py").write_text(SLOW.replace(".cuda()", ""))
    commit(repository)
    git(repository, "checkout", "--quiet", "topic")
    assert run(base="main")[:2] == (1, ["topic.py:5: [TL201]"])


def test_folders_and_files_that_are_named(repository: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("sub/a.py", "b.py", "script"):
        (repository / name).parent.mkdir(exist_ok=True)
        (repository / name).write_text(SLOW)
    commit(repository)
    for name in ("sub/a.py", "b.py", "script"):
        (repository / name).write_text(SLOW + OTHER)
    monkeypatch.chdir(repository / "sub")
    assert run()[1] == ["a.py:9: [TL201]"]
    assert run(str(repository / "b.py"))[1] == [f"{(repository / 'b.py').as_posix()}:9: [TL201]"]
    monkeypatch.chdir(repository)
    assert run("script")[1] == ["script:9: [TL201]"]
    assert run("sub", "b.py", "--isolated")[1] == ["b.py:9: [TL201]", "sub/a.py:9: [TL201]"]


def test_in_a_hook_the_root_is_that_of_the_tree(repository: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    (repository / "sub").mkdir()
    (repository / "sub" / "a.py").write_text(SLOW)
    commit(repository)
    (repository / "sub" / "a.py").write_text(SLOW.replace("    return", "    if size:\n        return"))
    monkeypatch.setenv("GIT_DIR", str(repository / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(repository / ".git" / "index"))
    monkeypatch.chdir(repository / "sub")
    assert run()[1] == ["a.py:6: [TL201]"]


def test_a_notebook_is_compared_cell_by_cell(repository: Path, run: Run) -> None:
    def notebook(*cells: str) -> str:
        made: list[dict[str, object]] = [
            {
                "cell_type": "code",
                "metadata": {},
                "outputs": [],
                "execution_count": None,
                "source": cell.splitlines(keepends=True),
            }
            for cell in cells
        ]
        return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"

    (repository / "n.ipynb").write_text(notebook(SLOW))
    commit(repository)
    (repository / "n.ipynb").write_text(notebook("x = 1\n", SLOW))
    assert run("n.ipynb")[:2] == (0, [])
    (repository / "n.ipynb").write_text(notebook(SLOW, OTHER))
    assert len(run("n.ipynb")[1]) == 1


def test_errors_are_reported_wherever_they_are(repository: Path, run: Run) -> None:
    (repository / "bad.py").write_text("import torch\ndef f(:\n")
    commit(repository)
    status, found, _ = run()
    assert (status, found[0].split(":")[0]) == (1, "bad.py")


def test_a_baseline_goes_with_it(repository: Path, run: Run) -> None:
    (repository / "new.py").write_text(SLOW)
    cli.run(["check", "--write-baseline", "b.json"])
    (repository / "newer.py").write_text(SLOW)
    assert run("--baseline", "b.json")[:2] == (1, ["newer.py:5: [TL201]"])


# Git, and what it is not to do


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ("nope", "error: --diff-base nope: there is no such branch, tag or commit here; `git fetch` it first"),
        ("", "error: --diff-base : expected a branch, a tag or a commit"),
        ("-x", "error: --diff-base -x: expected a branch, a tag or a commit"),
        ("HEAD:net.py", "there is no such branch, tag or commit here"),
    ],
)
def test_a_wrong_revision_is_one_line(run: Run, base: str, message: str) -> None:
    status, out, (line,) = run(base=base)
    assert (status, out) == (2, [])
    assert message in line


def test_without_a_repository_a_git_or_an_ancestor_it_says_so(
    repository: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    git(repository, "checkout", "--quiet", "--orphan", "alone")
    commit(repository)
    assert "have no ancestor in common here; fetch more history" in run(base="main")[2][0]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    assert "not a git repository" in run()[2][0]
    monkeypatch.setenv("PATH", "")
    assert run()[2] == ["error: --diff-base HEAD: git was not found on PATH"]


@pytest.mark.parametrize(
    "arguments",
    [("--fix",), ("--diff",), ("--add-ignore",), ("-",), ("--write-baseline", "b"), ("--config", "fix=true")],
)
def test_it_reports_and_does_nothing_else(repository: Path, run: Run, arguments: tuple[str, ...]) -> None:
    status, out, (line,) = run(*arguments)
    assert (status, out) == (2, [])
    assert "diff-base" in line
    assert (repository / "net.py").read_text() == SLOW


def test_nothing_is_written_into_the_repository(repository: Path, run: Run) -> None:
    def state() -> list[tuple[str, int]]:
        return sorted((str(path), path.stat().st_mtime_ns) for path in repository.rglob("*") if path.is_file())

    (repository / "net.py").write_text(SLOW + OTHER)
    before = state()
    run()
    assert state() == before


TRAPS = {
    "core.fsmonitor": "{evil}",
    "core.pager": "{evil}",
    "core.editor": "{evil}",
    "core.sshCommand": "{evil}",
    "core.askPass": "{evil}",
    "core.alternateRefsCommand": "{evil}",
    "diff.external": "{evil}",
    "diff.evil.command": "{evil}",
    "diff.evil.textconv": "{evil}",
    "filter.evil.clean": "{evil}",
    "filter.evil.smudge": "{evil}",
    "filter.evil.process": "{evil}",
    "gpg.program": "{evil}",
    "credential.helper": "{evil}",
    "alias.rev-parse": "!{evil}",
    "alias.cat-file": "!{evil}",
    "pager.ls-tree": "{evil}",
}


@pytest.mark.skipif(sys.platform == "win32", reason="the program that must not run is a shell script")
def test_nothing_that_a_repository_configures_is_run(repository: Path, tmp_path: Path, run: Run) -> None:
    ran, evil = tmp_path / "ran", tmp_path / "evil"
    evil.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n")
    evil.chmod(0o755)
    (repository / ".gitattributes").write_text("*.py filter=evil diff=evil\n")
    commit(repository)
    (repository / "net.py").write_text(SLOW + OTHER)
    hooks = repository / ".git" / "hooks"
    for name in ("post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc"):
        (hooks / name).write_bytes(evil.read_bytes())
        (hooks / name).chmod(0o755)
    for key, value in TRAPS.items():
        git(repository, "config", key, value.format(evil=evil))
    ran.unlink(missing_ok=True)
    assert run()[1] == ["net.py:9: [TL201]"]
    assert not ran.exists()
    subprocess.run(["git", "diff"], cwd=repository, capture_output=True, check=False)
    assert ran.exists()  # the traps are armed


@pytest.mark.skipif(sys.platform == "win32", reason="the program that must not run is a shell script")
def test_what_a_partial_clone_lacks_is_not_fetched(repository: Path, tmp_path: Path, run: Run) -> None:
    ran = tmp_path / "ran"
    blob = git(repository, "rev-parse", "HEAD:net.py")
    (repository / "net.py").write_text(SLOW + OTHER)
    (repository / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    for key, value in {
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": f"ext::sh -c touch% {ran}",
        "protocol.ext.allow": "always",
    }.items():
        git(repository, "config", key, value)
    status, _, (line,) = run()
    assert status == 2
    assert line.startswith("error: --diff-base HEAD: git ")
    assert not ran.exists()
    subprocess.run(["git", "cat-file", "-p", blob], cwd=repository, capture_output=True, check=False)
    assert ran.exists()  # the trap is armed


@pytest.mark.parametrize(
    ("path", "is_plain"),
    [
        ("a/b.py", True),
        ("é/x y.py", True),
        *((path, False) for path in ("/a.py", "../a.py", "a/../b.py", "a//b.py", ".git/x.py", "a/.GIT/b.py", "c:x.py")),
        ("a\\..\\b.py", False),
    ],
)
def test_paths_that_lead_elsewhere_are_left_out(path: str, *, is_plain: bool) -> None:
    assert revision.is_plain(path) is is_plain


def test_links_and_submodules_of_a_revision_are_no_files(repository: Path) -> None:
    if not hasattr(os, "symlink") or sys.platform == "win32":
        pytest.skip("links take a privilege on Windows")
    (repository / "link.py").symlink_to("/etc/passwd")
    head = commit(repository)
    git(repository, "update-index", "--add", "--cacheinfo", f"160000,{head},module")
    git(repository, "commit", "--quiet", "--message", "module")
    assert set(revision.find(repository, "HEAD").files()) == {"net.py"}
