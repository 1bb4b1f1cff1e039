"""Our own small programs, in the shapes of public ones: where they wait when they run, and what `check` says of it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from torchlint.config import Overrides
from torchlint.verify import units

pytest.importorskip("torch")
pytestmark = pytest.mark.slow  # all of them are simulated

FOLDER = Path(__file__).parents[2] / "fixtures" / "programs"
PROGRAMS = [path.name for path in sorted(FOLDER.glob("[!_]*.py"))]
NAMED = 0.4
"""Of the lines that wait again and again at least so many are named, by a warning or a note."""


@pytest.fixture(scope="module")
def waiting() -> dict[str, list[int]]:
    run = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("running.py")), str(FOLDER)],
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    found: dict[str, list[int]] = json.loads(run.stdout)
    return found


def marked(name: str, *marks: str) -> list[int]:
    lines = (FOLDER / name).read_text(encoding="utf-8").splitlines()
    return [number for number, line in enumerate(lines, 1) if line.endswith(marks)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_lines_that_are_marked_wait_and_no_other(name: str, waiting: dict[str, list[int]]) -> None:
    assert waiting[name] == marked(name, "# waits", "# waits once")


def test_what_check_names_waits_and_most_of_what_waits_is_named(waiting: dict[str, list[int]]) -> None:
    program = units.program(FOLDER, Overrides(), FOLDER)
    false = [
        f"{path}:{each.line} {each.finding}"
        for path, statements in program.named().items()
        for each in statements
        if each.severity == "warning" and not set(each.rows) & set(waiting[path])
    ]
    assert false == []
    places = [(str(FOLDER / name), line) for name in waiting for line in marked(name, "# waits")]
    said = program.said_of(places)
    silent = [f"{Path(path).name}:{line}" for path, line in places if said[path, line].silence]
    assert 1 - len(silent) / len(places) >= NAMED, silent
