"""What a git repository holds at a revision. Nothing that the repository's configuration names is run for that.

Objects are read by plumbing that knows no hook, filter, textconv or external diff. Git never looks at the working tree,
so that `core.fsmonitor` and clean filters have no part in it. Missing objects of a partial clone are not fetched.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

_LONGEST_REASON = 200
_AT_ONCE = 500
_SAFE = (
    *("--no-pager", "--no-optional-locks"),
    *("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}", "-c", "safe.bareRepository=explicit"),
)
_ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "none",  # a name that no transport has: nothing is fetched, by no helper
    "GIT_ASKPASS": "",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}


class RevisionError(ValueError):
    """There is no such revision here, or no git; the message says which in one line."""


@dataclass(frozen=True, slots=True)
class Blob:
    """A regular file at a revision: the object with its content, and how many bytes that is, -1 where it is missing."""

    object: str
    size: int


@dataclass(frozen=True, slots=True)
class Revision:
    """The commit where HEAD left the branch, tag or commit `name`; `root` is the folder of the working tree."""

    git: str
    root: Path
    name: str
    commit: str

    def files(self) -> dict[str, Blob]:
        """Its regular files by their paths from the root; what is named as no working tree may hold it is left out."""
        listed = _run(self.git, self.root, "ls-tree", "-r", "-l", "-z", "--full-tree", self.commit)
        found = {}
        for line in listed.split(b"\0")[:-1]:
            about, _, path = line.partition(b"\t")
            mode, _, name, size = about.split()
            if mode.startswith(b"100") and is_plain(shown := os.fsdecode(path)):
                found[shown] = Blob(name.decode(), int(size) if size.isdigit() else -1)
        return found

    def contents(self, blobs: Sequence[Blob]) -> Iterator[bytes]:
        """The content of each, in this order."""
        for start in range(0, len(blobs), _AT_ONCE):
            some = blobs[start : start + _AT_ONCE]
            asked = "".join(f"{blob.object}\n" for blob in some).encode()
            answer = _run(self.git, self.root, "cat-file", "--batch", given=asked)
            place = 0
            for blob in some:
                head = answer[place : answer.find(b"\n", place)]
                if head.split()[1:] != [b"blob", str(blob.size).encode()]:
                    raise RevisionError("git has not all of its files here (a partial clone); fetch them first")
                place += len(head) + 1
                yield answer[place : place + blob.size]
                place += blob.size + 1


def find(cwd: Path, name: str) -> Revision:
    """Where HEAD left `name`. Raises `RevisionError`."""
    git = shutil.which("git")
    if git is None or not os.path.isabs(git):  # noqa: PTH117 -- on Windows a git in the working directory is found first
        raise RevisionError("git was not found on PATH")
    if not name or name.startswith("-"):
        raise RevisionError("expected a branch, a tag or a commit")
    top = _run(git, cwd, "rev-parse", "--show-toplevel")
    root = Path(os.fsdecode(top.removesuffix(b"\n")))
    try:
        there = _run(git, root, "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").decode().strip()
    except RevisionError:
        raise RevisionError("there is no such branch, tag or commit here; `git fetch` it first") from None
    try:
        commit = _run(git, root, "merge-base", there, "HEAD").decode().strip()
    except RevisionError:
        remedy = "fetch more history (`fetch-depth: 0` in GitHub Actions)"
        raise RevisionError(f"HEAD and it have no ancestor in common here; {remedy}") from None
    return Revision(git, root, name, commit)


def _run(git: str, folder: Path, *arguments: str, given: bytes = b"") -> bytes:
    try:
        done = subprocess.run(  # noqa: S603 -- git itself; the arguments are ours, but for a revision without a dash
            [git, *_SAFE, *arguments],
            cwd=folder,
            env=_environment(),
            input=given,
            capture_output=True,
            check=False,
        )
    except OSError as error:
        raise RevisionError(f"git cannot be run: {error.strerror}") from None
    if done.returncode != 0:
        lines = done.stderr.decode("utf-8", "replace").split("\n")
        said = next((line for line in lines if line.startswith(("fatal:", "error:"))), f"exit status {done.returncode}")
        raise RevisionError(f"git {arguments[0]}: {said.partition(': ')[2][:_LONGEST_REASON] or said}")
    return done.stdout


def _environment() -> dict[str, str]:
    found = {**os.environ, **_ENVIRONMENT}
    if "GIT_WORK_TREE" not in found:
        # A hook is told the repository and not its tree: then git takes for its root the folder that it is called in.
        found.pop("GIT_DIR", None)
    return found


def is_plain(path: str) -> bool:
    """Whether a path stays below the folder that it is written to, on any system."""
    parts = path.replace("\\", "/").split("/")
    return not any(part in ("", ".", "..") or part.lower() == ".git" or ":" in part or "\0" in part for part in parts)
