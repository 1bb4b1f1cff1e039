"""The faults that `tools/mutate.py` plants are there when the tests run that are to see them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="faults are planted in copies of a process, which are forked")
def test_tests_see_faults(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    rows = planted("--count", "4", "--report", str(report))
    assert len(rows) == 4
    assert not any(row.startswith("NOT THERE") for row in rows), rows
    assert any("by tests/test_suppress.py::" in row for row in rows), rows

    names = [name for name, _ in json.loads(report.read_text())]
    report.write_text(json.dumps([[names[0], ""], [names[1], "tests/test_suppress.py::test"], [names[2], "-"]]))
    again = planted("--again", str(report))
    assert [row.split("  by ")[0].partition(" torchlint/")[2] for row in again] == [
        name.removeprefix("torchlint/") for name in (names[0], names[2])
    ]


def planted(*options: str) -> list[str]:
    """What is printed of the faults in a module, shown to its own tests."""
    command = [sys.executable, "tools/mutate.py", "torchlint/suppress.py", "--tests", "tests/test_suppress.py"]
    done = subprocess.run(
        [*command, "--jobs", "1", "--sample", "2", *options], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return [line for line in done.stdout.splitlines() if " torchlint/suppress.py:" in line]
