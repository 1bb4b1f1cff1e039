"""Run torchlint over real packages and hold it to its promises: `python -m benchmarks.corpus`.

On a copy of the packages, with every rule, preview too: no internal error; after `fix` and `fix --unsafe-fixes` every
file still parses, a second run changes nothing, and a file without anything to fix keeps its bytes. With `--sample N
--seed S` it prints N findings drawn at random instead, with the lines around them, to be read by hand.
"""

from __future__ import annotations

import argparse
import ast
import json
import random
import shutil
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.packages import DEFAULT_FOLDER, PINS, fetch, python_files

Contents: TypeAlias = dict[str, bytes]
Findings: TypeAlias = list[dict[str, Any]]

CONTEXT = 6  # lines shown before and behind a sampled finding
SHOWN = 50  # broken promises shown; a crash in the model breaks one for every file


def main() -> int:
    """Check the promises or print a sample; 1 where a promise is broken."""
    options = _parser().parse_args()
    packages = fetch(options.packages.resolve(), tuple(options.only))
    if options.sample:
        print_sample(packages, options.sample, options.seed, options.select)
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        broken = list(broken_promises(packages, Path(scratch).resolve()))
    for line in broken[:SHOWN]:
        print(f"BROKEN {line}")
    print(f"broken {len(broken)} times" if broken else "every promise held")
    return 1 if broken else 0


def broken_promises(packages: list[Path], scratch: Path) -> Iterator[str]:
    """One line for each promise that is broken in one file."""
    original = _copy(packages, scratch / "check")
    before = _contents(original)
    found = _report(original, "check")
    print(f"check: {len(before)} files, {_summary(found)}")
    if _contents(original) != before:
        yield "check changed a file"
    for mode in ((), ("--unsafe-fixes",)):
        label = " ".join(("fix", *mode))
        folder = _copy(packages, scratch / label.replace(" ", "_"))
        _report(folder, "fix", *mode)
        after = _contents(folder)
        left = _report(folder, "fix", *mode)
        again = _contents(folder)
        changed = {path for path in before if after[path] != before[path]}
        print(f"{label}: {len(changed)} files changed; left: {_summary(left)}")
        yield from (f"{_place(finding)}: {finding['message']}" for finding in left if finding["code"] == "E000")
        fixable = {finding["filename"] for finding in found if _applies(finding, mode)}
        for path in sorted(changed):
            if path not in fixable:
                yield f"{label} changed {path}, where it had nothing to fix"
            if _parses(before[path]) and not _parses(after[path]):
                yield f"{label} left {path} so that it does not parse"
        for path in sorted(before):
            if again[path] != after[path]:
                yield f"{label}, run twice, changed {path} twice"
        for finding in left:
            if _applies(finding, mode):
                yield f"{label} left {_place(finding)} {finding['code']}, which it says it can fix"


def print_sample(packages: list[Path], size: int, seed: int, select: str) -> None:
    """Print `size` findings of some rules, each with the lines around it; the same seed draws the same ones."""
    root = packages[0].parent
    reported = _report(root, "check", "--select", select, paths=tuple(package.name for package in packages))
    findings = [finding for finding in reported if finding["code"].startswith("TL")]
    findings.sort(key=lambda finding: (finding["filename"], finding["location"]["row"], finding["code"]))
    chosen = random.Random(seed).sample(findings, min(size, len(findings)))
    print(f"{len(chosen)} of {_summary(findings)}; seed {seed}")
    for number, finding in enumerate(chosen, 1):
        print(f"\n[{number}] {_place(finding)} {finding['code']} {finding['name']} ({finding['frequency']})")
        print(f"    {finding['message']}")
        first, last = finding["location"]["row"], finding["end_location"]["row"]
        lines = (root / finding["filename"]).read_text("utf-8", "replace").splitlines()
        for row in range(max(1, first - CONTEXT), min(len(lines), last + CONTEXT) + 1):
            print(f"  {'>' if first <= row <= last else ' '} {row:5} {lines[row - 1]}")


def _copy(packages: list[Path], folder: Path) -> Path:
    for path in python_files(packages):
        target = folder / path.relative_to(packages[0].parent)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    return folder


def _contents(folder: Path) -> Contents:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in python_files([folder])}


def _report(folder: Path, command: str, *arguments: str, paths: tuple[str, ...] = (".",)) -> Findings:
    """What a command says of paths in `folder`; file names are relative to it."""
    findings: Findings = json.loads(_torchlint(folder, command, *arguments, "--output-format", "json", *paths))
    for finding in findings:
        finding["filename"] = (folder / finding["filename"]).relative_to(folder).as_posix()
    return findings


def _torchlint(folder: Path, command: str, *arguments: str) -> bytes:
    """Standard output of torchlint run in `folder`. Raises `RuntimeError` where it failed without a report."""
    fixed = ("--isolated", "--no-cache", "--preview", "--no-respect-gitignore")
    if "--select" not in arguments:
        arguments = ("--select", "ALL", *arguments)
    done = subprocess.run(
        [sys.executable, "-m", "torchlint", command, *fixed, *arguments], cwd=folder, capture_output=True, check=False
    )
    if done.returncode not in (0, 1) and not done.stdout:
        raise RuntimeError(f"torchlint {command} exited with {done.returncode}:\n{done.stderr.decode()[-2000:]}")
    return done.stdout


def _applies(finding: dict[str, Any], mode: tuple[str, ...]) -> bool:
    fix = finding["fix"]
    return fix is not None and fix["applicability"] in ("safe", *(("unsafe",) if mode else ()))


def _parses(data: bytes) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            ast.parse(data)
    except (SyntaxError, ValueError):
        return False
    return True


def _place(finding: dict[str, Any]) -> str:
    return f"{finding['filename']}:{finding['location']['row']}:{finding['location']['column']}"


def _summary(findings: Findings) -> str:
    counts = Counter(str(finding["code"]) for finding in findings)
    return f"{len(findings)} findings ({', '.join(f'{code} {count}' for code, count in sorted(counts.items()))})"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.corpus", description=__doc__)
    parser.add_argument(
        "--packages", type=Path, default=DEFAULT_FOLDER, metavar="DIR", help="unpacked wheels; missing ones are fetched"
    )
    parser.add_argument("--only", nargs="+", choices=tuple(PINS), default=tuple(PINS), help="packages to run over")
    parser.add_argument("--sample", type=int, default=0, metavar="N", help="print N findings drawn at random instead")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="seed of the draw (default 0)")
    parser.add_argument("--select", default="ALL", metavar="RULES", help="rules to draw from (default ALL)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
