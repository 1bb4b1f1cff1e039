"""Hold what torchlint promises of notebooks on all those below a folder.

usage: python tools/check_notebooks.py FOLDER [--jobs N] [--findings FILE]

The notebooks are copied, checked, fixed with unsafe fixes, fixed again, and once more from the start given ignores.
Nothing may crash; a file without a fix keeps each byte; a fixed one loads in nbformat and is as valid as before, and
differs only where a line of code does; a second fix changes nothing; after ignores nothing is found. Needs nbformat.
With --findings all findings are written to a file as `check` prints them. Exit status 1 says that a promise is broken.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import nbformat

from torchlint.notebook.ipynb import Document, Source

_FIX = ("fix", "--unsafe-fixes")


def main() -> int:
    """Check, print what is broken and a summary; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--findings", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        kept, fixed, silent = (Path(temporary, name) for name in ("kept", "fixed", "silent"))
        names = _copy(options.folder, kept)
        shutil.copytree(kept, fixed)
        shutil.copytree(kept, silent)
        started = time.monotonic()
        found = _torchlint(kept, options.jobs, "check")
        seconds = time.monotonic() - started
        if options.findings:
            options.findings.write_text(_run(kept, options.jobs, "check", "--unsafe-fixes").stdout, encoding="utf-8")
        problems = [f"{entry['filename']}: {entry['message']}" for entry in found if entry["code"] == "E000"]
        left = _torchlint(fixed, options.jobs, *_FIX)
        problems += [
            f"{entry['filename']}: after the fix: {entry['message']}" for entry in left if entry["code"] == "E000"
        ]
        after = {name: (fixed / name).read_bytes() for name in names}
        changed = [name for name in names if after[name] != (kept / name).read_bytes()]
        fixable = {
            entry["filename"] for entry in found if (entry["fix"] or {}).get("applicability") in ("safe", "unsafe")
        }
        problems += [f"{name}: changed without a fix" for name in changed if name not in fixable]
        problems += [f"{name}: {problem}" for name in changed for problem in _differences(kept / name, fixed / name)]
        _torchlint(fixed, options.jobs, *_FIX)
        problems += [f"{name}: fixed again" for name in names if after[name] != (fixed / name).read_bytes()]
        _run(silent, options.jobs, "check", "--add-ignore")
        ignored = [name for name in names if (kept / name).read_bytes() != (silent / name).read_bytes()]
        problems += [f"{name}: {problem}" for name in ignored for problem in _differences(kept / name, silent / name)]
        problems += [
            f"{entry['filename']}: in spite of ignores: {entry['message']}"
            for entry in _torchlint(silent, options.jobs, "check")
            if not entry["code"].startswith("E")
        ]
    codes = Counter(entry["code"] for entry in found)
    print("\n".join(problems), end="\n" if problems else "")
    print(
        f"{len(names)} notebooks, checked in {seconds:.0f} s; {sum(codes.values())} findings in {_count(found)} files"
    )
    print(", ".join(f"{code} {times}" for code, times in codes.most_common()))
    print(f"{len(changed)} files fixed, {len(ignored)} given ignores; {len(problems)} promises broken")
    return 1 if problems else 0


def _copy(folder: Path, to: Path) -> list[str]:
    """The notebooks below a folder, copied under their relative paths."""
    names = []
    for above, _, files in os.walk(folder):
        for file in files:
            if file.endswith(".ipynb"):
                path = Path(above, file)
                name = path.relative_to(folder).as_posix()
                (to / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(path, to / name)
                names.append(name)
    return sorted(names)


def _run(folder: Path, jobs: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    # Tests and what is named like them are read too; the preview rules are those that need readers most.
    options = ("--no-cache", "--isolated", "--preview", "--include-tests", "--exclude", "", "--jobs", str(jobs))
    command = [sys.executable, "-m", "torchlint", *arguments, *options, "."]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.stderr.startswith("error: "):
        raise SystemExit(done.stderr)
    return done


def _torchlint(folder: Path, jobs: int, *arguments: str) -> list[dict[str, Any]]:
    return json.loads(_run(folder, jobs, *arguments, "--output-format", "json").stdout)  # type: ignore[no-any-return]


def _count(found: list[dict[str, Any]]) -> int:
    return len({entry["filename"] for entry in found})


def _differences(before: Path, after: Path) -> Iterator[str]:
    """What is wrong with how a notebook was changed."""
    old_bytes, new_bytes = before.read_bytes(), after.read_bytes()
    validity = _validity(old_bytes), _validity(new_bytes)
    if validity[0] != validity[1]:
        yield f"{validity[1]}, and was {validity[0]}"
    old, new = (Document.read(data.decode("utf-8-sig")) for data in (old_bytes, new_bytes))
    if _around(old) != _around(new) or old_bytes[:3] != new_bytes[:3]:
        yield "something else than code has changed"
    for one, other in zip(old.sources, new.sources, strict=True):
        if one.text == other.text:
            if _spelt(old, one) != _spelt(new, other):
                yield f"cell {one.number} is written otherwise, though nothing in it has changed"
            continue
        # How a line is spelt changes with what it says, and so does what stands between lines.
        lines = _changed(one.text.splitlines(keepends=True), other.text.splitlines(keepends=True))
        parts = _changed(_literals(old, one), _literals(new, other))
        if one.is_list and len(one.literals) == len(one.text.splitlines()) and lines != parts:
            yield f"cell {one.number}: {parts} strings have changed, and {lines} lines"


def _validity(data: bytes) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what later versions of the format ask for
        try:
            nbformat.validate(nbformat.reads(data.decode("utf-8-sig"), as_version=nbformat.NO_CONVERT))
        except nbformat.ValidationError as error:
            return f"invalid: {error.message}"
    return "valid"


def _around(document: Document) -> list[str]:
    """The JSON without its sources."""
    places = [0, *(place for source in document.sources for place in (source.value.start, source.value.end))]
    ends = [*places[1:], len(document.text)]
    return [document.text[start:end] for start, end in list(zip(places, ends, strict=True))[::2]]


def _spelt(document: Document, source: Source) -> str:
    return document.text[source.value.start : source.value.end]


def _literals(document: Document, source: Source) -> list[str]:
    return [document.text[literal.start : literal.end] for literal in source.literals]


def _changed(old: list[str], new: list[str]) -> tuple[int, int]:
    """How many parts are no more, and how many are new."""
    opcodes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    changes = [(i2 - i1, j2 - j1) for tag, i1, i2, j1, j2 in opcodes if tag != "equal"]
    return sum(gone for gone, _ in changes), sum(come for _, come in changes)


if __name__ == "__main__":
    sys.exit(main())
