"""The faults that `tools/mutate.py` plants are there when the tests run that are to see them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="faults are planted in copies of a process, which are forked")
def test_tests_see_faults() -> None:
    command = [sys.executable, "tools/mutate.py", "torchlint/suppress.py", "--tests", "tests/test_suppress.py"]
    done = subprocess.run(
        [*command, "--count", "4", "--jobs", "1", "--sample", "2"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    rows = [line for line in done.stdout.splitlines() if " torchlint/suppress.py:" in line]
    assert len(rows) == 4, done.stdout + done.stderr
    assert not any(line.startswith("NOT THERE") for line in rows), done.stdout
    assert any("by tests/test_suppress.py::" in line for line in rows), done.stdout
