"""benchmarks.fixes: the table of committed fixes is whole, and a case counts as named where a finding is near."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.fixes import CASES, Case, examined, read, table

_CHECK = """
import json, pathlib, sys
print(json.dumps([
    {"filename": path, "code": "TL301", "severity": "note", "location": {"row": n}, "end_location": {"row": n}}
    for path in sys.argv[1:]
    for n, line in enumerate(pathlib.Path(path).read_text().splitlines(), 1)
    if "item" in line
]))
"""


def test_the_table_is_whole() -> None:
    rows = [line.split("\t") for line in CASES.read_text(encoding="utf-8").splitlines()]
    assert {len(row) for row in rows} == {9}
    assert len({tuple(row[:4]) for row in rows}) == len(rows)
    assert {row[5] for row in rows[1:]} == {"sure", "likely"}
    assert {row[6] for row in rows[1:]} == {"general", "special"}
    cases = read(CASES)
    assert len(cases) >= 150
    assert len({case.repository for case in cases}) >= 10
    for is_open in (True, False):
        assert sum(case.counts for case in cases if case.is_open is is_open) >= 50
    assert {case.commit for case in cases if case.is_open}.isdisjoint(case.commit for case in cases if not case.is_open)


@pytest.mark.slow
@pytest.mark.parametrize(("line", "named"), [(3, 1), (5, 1), (6, 0)])
def test_a_case_is_named_by_what_is_near(tmp_path: Path, line: int, named: int) -> None:
    git = tmp_path / "owner+name" / "repo"
    git.mkdir(parents=True)

    def run(*command: str) -> None:
        identity = ("-c", "user.name=a", "-c", "user.email=a@b.c")
        subprocess.run(["git", "-C", str(git), *identity, *command], check=True, capture_output=True)

    run("init", "--quiet")
    for text in ("\n\nx.item()\n\n\n\n", "\n\nx\n\n\n\n"):
        (git / "a.py").write_text(text)
        run("add", "-A")
        run("commit", "--quiet", "--allow-empty", "-m", "a")
    commit = subprocess.run(
        ["git", "-C", str(git), "rev-parse", "HEAD"], check=True, capture_output=True, text=True
    ).stdout.strip()
    script = tmp_path / "check.py"
    script.write_text(_CHECK)
    case = Case("owner/name", commit, "a.py", (line,), "sync-item", counts=True, what="")
    (outcome,) = examined(git, commit, [case], [sys.executable, str(script)])
    assert bool(outcome.codes) is (named == 1)
    assert outcome.is_quieter is (named == 1)
    assert not outcome.is_warned
    assert list(table([outcome]))[-1].endswith(f"{named} of 1, {named:.3f}")
    assert json.dumps(sorted(outcome.codes)) == ('["TL301"]' if named else "[]")
