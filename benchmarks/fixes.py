"""Ask what of the fixes that experts committed torchlint names before the fix: `python -m benchmarks.fixes FOLDER`.

`fixes.tsv` lists the fixes: repository, commit, file, its slow lines before the fix, family, whether it is plainly
about speed (`sure`), whether a rule could know it (`general`) or it takes knowledge of that code base (`special`), how
often the lines run, and what was slow. FOLDER holds the git directories, `owner+name/repo`; nothing is fetched, and
nothing of theirs is kept. All Python files of the commit's parent are laid out and the file is checked; then those of
the commit. A case is named where a finding touches one of its lines or stands within two lines of it. It is quieter
where the file then has fewer findings of the rules that named it.

Options that follow `--`, such as `--preview`, go to `check`. Commits fall in two halves by a hash. The `kept` one is
not to be looked at while rules are written.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
import subprocess
import sys
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

Findings: TypeAlias = list[dict[str, Any]]

CASES = Path(__file__).with_name("fixes.tsv")
NEAR = 2  # lines between a finding and the line that was fixed
CHECK = ("--no-cache", "-j", "1", "--include-tests", "--output-format", "json", "--config", "torchlint.toml")
LONG = 12  # a finding over more lines than this stands where it begins


@dataclass(frozen=True, slots=True)
class Case:
    """One place of a fix: lines of a file at the commit's parent."""

    repository: str
    commit: str
    path: str
    lines: tuple[int, ...]
    family: str
    counts: bool
    what: str

    @property
    def is_open(self) -> bool:
        """Whether its commit belongs to the half that may be looked at."""
        return hashlib.sha256(f"{self.repository} {self.commit}".encode()).digest()[0] % 2 == 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What torchlint says of a case: which rules name it, whether one warns, and whether the fix quiets them."""

    case: Case
    codes: frozenset[str]
    is_warned: bool
    is_quieter: bool


def main() -> int:
    """Print the shares by family; 1 where a commit could not be checked."""
    options, others = _parser().parse_known_args()
    command = [options.torchlint, "check", *CHECK, *(option for option in others if option != "--")]
    cases = [case for case in read(options.cases) if options.half in ("both", "open" if case.is_open else "kept")]
    by_commit: dict[tuple[str, str], list[Case]] = defaultdict(list)
    for case in cases:
        by_commit[case.repository, case.commit].append(case)
    outcomes: list[Outcome] = []
    failed: list[str] = []
    for (repository, commit), here in sorted(by_commit.items()):
        try:
            git = options.folder / repository.replace("/", "+") / "repo"
            outcomes += examined(git, commit, here, command, is_followed=not options.before_only)
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            failed.append(f"{repository} {commit[:10]}: {error}")
    for outcome in outcomes:
        if options.show in ("all", "named" if outcome.codes else "missed"):
            print(_told(outcome))
    for line in table(outcomes):
        print(line)
    for line in failed:
        print(f"not checked: {line}")
    return 1 if failed else 0


def read(path: Path) -> list[Case]:
    """The cases of a table."""
    with path.open(encoding="utf-8", newline="") as file:
        return [
            Case(
                row["repo"],
                row["commit"],
                row["path"],
                tuple(int(line) for line in row["lines"].split(",")),
                row["family"],
                row["certainty"] == "sure" and row["reach"] == "general",
                row["what"],
            )
            for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        ]


def examined(
    git: Path, commit: str, cases: list[Case], command: list[str], *, is_followed: bool = True
) -> Iterator[Outcome]:
    """What is said of the cases of one commit. Raises `RuntimeError` where the commit or torchlint fails."""
    paths = sorted({case.path for case in cases})
    with tempfile.TemporaryDirectory() as scratch:
        before = _findings(git, f"{commit}~1", paths, Path(scratch, "before"), command)
        after = _findings(git, commit, paths, Path(scratch, "after"), command) if is_followed else before
    for case in cases:
        near = [finding for finding in before if finding["filename"] == case.path and _is_near(finding, case.lines)]
        codes = frozenset(str(finding["code"]) for finding in near)
        left, had = (
            sum(finding["filename"] == case.path and finding["code"] in codes for finding in findings)
            for findings in (after, before)
        )
        warned = any(finding.get("severity", "warning") == "warning" for finding in near)
        yield Outcome(case, codes, warned, is_quieter=bool(codes) and left < had)


def table(outcomes: list[Outcome]) -> Iterator[str]:
    """Lines of text: how many cases there are, are named, are warned of, and are quieter after the fix, by family."""
    rows: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        rows[outcome.case.family if outcome.case.counts else "(others)"].append(outcome)
        if outcome.case.counts:
            rows["all"].append(outcome)
    yield f"{'family':26}{'cases':>6}{'named':>6}{'warned':>7}{'quieter':>8}"
    for family, here in sorted(rows.items(), key=lambda row: (row[0] in ("all", "(others)"), -len(row[1]), row[0])):
        named = [outcome for outcome in here if outcome.codes]
        warned, quieter = sum(outcome.is_warned for outcome in here), sum(outcome.is_quieter for outcome in named)
        yield f"{family:26}{len(here):6}{len(named):6}{warned:7}{quieter:8}"
    counted = rows["all"]
    named_of_all = sum(bool(outcome.codes) for outcome in counted)
    yield f"named before the fix: {named_of_all} of {len(counted)}, {named_of_all / max(len(counted), 1):.3f}"


def _findings(git: Path, revision: str, paths: list[str], folder: Path, command: list[str]) -> Findings:
    """What `check` says of the files of a revision that has them, each place of a finding by itself."""
    folder.mkdir()
    _lay_out(git, revision, folder)
    (folder / "torchlint.toml").touch()
    there = [path for path in paths if (folder / path).is_file()]
    if not there:
        return []
    done = subprocess.run([*command, *there], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):
        raise RuntimeError(done.stderr[-200:])
    reported: Findings = json.loads(done.stdout)
    return [{**finding, **place} for finding in reported for place in ({}, *finding.get("places", ()))]


def _lay_out(git: Path, revision: str, folder: Path) -> None:
    if (git / ".git").is_dir():
        git /= ".git"
    command = ["git", "--git-dir", str(git), "archive", revision, "--", ":(glob)**/*.py"]
    archive = subprocess.run(command, capture_output=True, check=False)
    if archive.returncode:
        raise RuntimeError(archive.stderr.decode("utf-8", "replace")[-200:])
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as members:
        members.extractall(folder, filter="data")


def _is_near(finding: dict[str, Any], lines: tuple[int, ...]) -> bool:
    first, last = finding["location"]["row"], finding["end_location"]["row"]
    if last - first >= LONG:
        last = first
    return any(first - NEAR <= line <= last + NEAR for line in lines)


def _told(outcome: Outcome) -> str:
    case = outcome.case
    codes = ",".join(sorted(outcome.codes)) or ("-" if case.counts else "(-)")
    lines = ",".join(map(str, case.lines))
    return f"{codes:12} {case.family:20} {case.repository} {case.commit[:10]} {case.path}:{lines}  {case.what}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fixes", description=__doc__)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="git directories, owner+name/repo")
    parser.add_argument("--cases", type=Path, default=CASES, metavar="TSV", help="the fixes (default fixes.tsv)")
    parser.add_argument("--half", choices=("open", "kept", "both"), default="open", help="which commits (default open)")
    parser.add_argument("--show", choices=("named", "missed", "all"), help="print these cases, too")
    parser.add_argument("--before-only", action="store_true", help="do not ask what is said after the fix")
    parser.add_argument("--torchlint", default="torchlint", metavar="EXE", help="what to run (default torchlint)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
