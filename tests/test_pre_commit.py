"""The hooks that other repositories use: the manifest is valid, and pre-commit runs them."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
SLOW = "import torch\n\n\ndef mask(size):  # torchlint: hot[per-batch]\n    return torch.zeros(size, size).cuda()\n"
UNSAFE = "\n\nnet = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8))\n"
FAST = SLOW.replace("size).cuda()", 'size, device="cuda")')


def manifest() -> list[dict[str, Any]]:
    hooks: list[dict[str, Any]] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    return hooks


def run(*command: str, cwd: Path, status: int | None = 0) -> str:
    env = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(
        command, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert status in (None, done.returncode), f"{command} exited with {done.returncode}\n{done.stdout}"
    return done.stdout


def pre_commit(*arguments: str, cwd: Path, status: int = 0) -> str:
    return run(sys.executable, "-m", "pre_commit", *arguments, cwd=cwd, status=status)


def git(*arguments: str, cwd: Path, status: int = 0) -> str:
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    return run("git", *identity, *arguments, cwd=cwd, status=status)


def test_the_manifest_is_valid() -> None:
    pre_commit("validate-manifest", ".pre-commit-hooks.yaml", cwd=ROOT)
    pre_commit("validate-config", ".pre-commit-config.yaml", cwd=ROOT)
    assert [hook["id"] for hook in manifest()] == ["torchlint", "torchlint-fix"]


@pytest.mark.parametrize("hook", manifest(), ids=lambda hook: hook["id"])
def test_the_entry_runs_as_pre_commit_runs_it(hook: dict[str, Any], tmp_path: Path) -> None:
    """pre-commit appends the staged files; those that the configuration excludes are left alone."""
    for name in ("train.py", "vendored.py"):
        (tmp_path / name).write_text(SLOW)
    (tmp_path / "torchlint.toml").write_text('extend-exclude = ["vendored.py"]\n')
    command, *arguments = hook["entry"].split()
    assert command == "torchlint"
    output = run(sys.executable, "-m", command, *arguments, "train.py", "vendored.py", cwd=tmp_path, status=None)
    assert "vendored.py" not in output
    assert (tmp_path / "vendored.py").read_text() == SLOW
    if "--fix-only" in arguments:
        assert (tmp_path / "train.py").read_text() == FAST
    else:
        assert "train.py" in output


def test_the_two_hooks_together_print_nothing_twice(tmp_path: Path) -> None:
    """In the order of the README: what is fixed is fixed, what is left is said once, and so is what cannot be read."""
    (tmp_path / "train.py").write_text(SLOW + UNSAFE)
    (tmp_path / "bad.py").write_text("import torch\ndef f(:\n")
    said = {}
    for hook in reversed(manifest()):
        command, *arguments = hook["entry"].split()
        done = subprocess.run(
            [sys.executable, "-m", command, *arguments, "train.py", "bad.py"],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        # pre-commit prints what a hook says if it fails, or has changed a file.
        said[hook["id"]] = (done.returncode, done.stdout)
    assert list(said) == ["torchlint-fix", "torchlint"]
    assert said["torchlint-fix"] == (0, "")
    assert said["torchlint"][0] == 1
    assert "TL501" in said["torchlint"][1]
    assert "TL201" not in said["torchlint"][1]
    lines = [line for _, text in said.values() for line in text.splitlines() if re.search(r"\bTL\d|-->", line)]
    assert len(lines) == len(set(lines))
    assert len(lines) == 3


def test_the_example_in_the_readme_names_a_revision_that_there_is() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (revision,) = re.findall(r"^    rev: (\S+)", text, re.MULTILINE)
    if not (ROOT / ".git").exists() or git("rev-parse", "--is-shallow-repository", cwd=ROOT).strip() == "true":
        pytest.skip("the history is not here")
    git("rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}", cwd=ROOT)


@pytest.fixture(scope="module")
def index() -> None:
    """Skips where pip reaches no package index: pre-commit installs a hook with its dependencies."""
    command = [sys.executable, "-m", "pip", "--retries", "0", "--timeout", "10", "download", "--no-deps", "tomli"]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([*command, "--dest", folder], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        pytest.skip(f"no package index: {done.stderr.strip().splitlines()[-1]}")


@pytest.mark.slow
@pytest.mark.network
@pytest.mark.xdist_group("pre-commit")
@pytest.mark.usefixtures("index")
def test_try_repo_and_a_real_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ends in the state that a user wants: blocked by the hooks, the file rewritten, then committed."""
    hooks, project = tmp_path / "hooks", tmp_path / "project"
    ignored = shutil.ignore_patterns(".git", ".*_cache", ".hypothesis", ".venv", "__pycache__", "*.egg-info", "build")
    shutil.copytree(ROOT, hooks, ignore=ignored)
    git("init", "--quiet", cwd=hooks)
    git("add", "--all", cwd=hooks)
    git("commit", "--quiet", "--message", "hooks", cwd=hooks)
    git("tag", "v0", cwd=hooks)
    project.mkdir()
    git("init", "--quiet", cwd=project)
    (project / "train.py").write_text(SLOW)
    git("add", "--all", cwd=project)
    monkeypatch.setenv("PRE_COMMIT_HOME", str(tmp_path / "home"))

    tried = pre_commit("try-repo", str(hooks), "torchlint", "--all-files", cwd=project, status=1)
    assert "TL201" in tried
    assert "train.py" in tried

    (project / ".pre-commit-config.yaml").write_text(
        f"repos:\n  - repo: {hooks}\n    rev: v0\n    hooks:\n      - id: torchlint-fix\n      - id: torchlint\n"
    )
    pre_commit("install", cwd=project)
    git("add", "--all", cwd=project)
    blocked = git("commit", "--message", "slow", cwd=project, status=1)
    assert "files were modified by this hook" in blocked
    assert (project / "train.py").read_text() == FAST
    git("add", "--all", cwd=project)
    accepted = git("commit", "--message", "fast", cwd=project)
    assert "torchlint (fix)" in accepted
    assert "Passed" in accepted
    print(tried, blocked, accepted, sep="\n")
