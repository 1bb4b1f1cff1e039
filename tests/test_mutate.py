"""The faults that `tools/mutate.py` plants are there when the tests run that are to see them."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import mutate
import pytest

ROOT = Path(__file__).parents[1]
FORKED = pytest.mark.skipif(
    not hasattr(os, "fork"), reason="faults are planted in copies of a process, which are forked"
)


@pytest.mark.slow
@FORKED
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


# A checkout of its own. `test_late` fails alone, whatever is planted, and so tells nothing of what is.
CHECKOUT = {
    "torchlint/__init__.py": "",
    "torchlint/registry.py": "def all_rules():\n    return ()\n",
    "torchlint/engine.py": """
def limited(number):
    if number > 9:
        return 9
    return number


def heard():
    return 1


def unheard():
    return 2
""",
    "tests/test_engine.py": """
from torchlint import engine

before = []


def test_limited():
    before.append(engine.limited(3))
    assert before == [3]


def test_late():
    assert before
    engine.heard()
""",
}


@FORKED
def test_what_becomes_of_faults_in_another_checkout(tmp_path: Path) -> None:
    made(tmp_path, CHECKOUT)
    command = [sys.executable, str(ROOT / "tools" / "mutate.py"), "--tree", ".", "--jobs", "1"]
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stdout + done.stderr
    rows = [line for line in done.stdout.splitlines() if "torchlint/engine.py:" in line]
    limited = "  by tests/test_engine.py::test_limited"
    assert rows == [
        "NEVER RUN torchlint/engine.py:13:11 2 becomes 3",
        "NEVER RUN torchlint/engine.py:13:4 `return` gives None",
        "SURVIVED  torchlint/engine.py:3:16 9 becomes 10",
        f"killed    torchlint/engine.py:3:4 the condition is negated{limited}",
        f"killed    torchlint/engine.py:3:7 Gt becomes LtE{limited}",
        "NEVER RUN torchlint/engine.py:4:15 9 becomes 10",
        "NEVER RUN torchlint/engine.py:4:8 `return` gives None",
        f"killed    torchlint/engine.py:5:4 `return` gives None{limited}",
        "SURVIVED  torchlint/engine.py:9:11 1 becomes 2",
        "SURVIVED  torchlint/engine.py:9:4 `return` gives None",
    ], done.stdout


def made(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


PLACES = """
def called(kind, numbers):
    match kind:
        case "few" if len(numbers) > 3:
            return "many"
        case "few":
            numbers.append(1)
    return [number for number in numbers if number != 2 and not number == 5]
"""


def test_a_fault_is_reached_where_it_would_run(tmp_path: Path) -> None:
    path = tmp_path / "places.py"
    path.write_text(PLACES, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("places", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    faults = list(mutate.mutants(path, tmp_path))
    reached = mutate.watch(faults, [module.called])

    def run(*given: object) -> set[str]:
        reached.clear()
        module.called(*given)
        return {faults[number].name.partition(":")[2] for number in reached}

    always = {"4:13 'few' becomes 'few_'", "6:13 'few' becomes 'few_'", "8:4 `return` gives None"}
    assert run("other", []) == always
    assert run("other", [2]) == {*always, "8:44 `and` becomes `or`", "8:44 NotEq becomes Eq", "8:54 2 becomes 3"}
    assert "7:12 the statement is dropped" in run("few", [])
    assert "5:12 `return` gives None" not in run("few", [])
    assert run("few", [1, 2, 3, 4]) == {
        *("4:13 'few' becomes 'few_'", "6:13 'few' becomes 'few_'"),
        *("4:22 Gt becomes LtE", "4:37 3 becomes 4", "5:12 `return` gives None", "5:19 'many' becomes 'many_'"),
    }
    assert module.called("few", [2, 5]) == [1], "it does what it did"


def test_faults_that_two_checkouts_can_have(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    made(
        old,
        {
            "torchlint/model/names.py": "def _is_far(it):\n    return it.row > 3\n\n\ndef gone():\n    return 1\n",
            "torchlint/model/values.py": "def twice():\n    return 2\n\n\nclass A:\n    def twice(self):\n        return 2\n",
        },
    )
    made(
        new,
        {
            "torchlint/semantics/names.py": "def twice():\n    return 2\n\n\ndef _is_far(it):\n    return it.row > 3\n",
            "torchlint/engine.py": "def _is_near(it):\n    return it.row > 3\n",
        },
    )
    assert alike(new, old) == {
        "torchlint/semantics/names.py:6:4 `return` gives None",
        "torchlint/semantics/names.py:6:11 Gt becomes LtE",
        "torchlint/semantics/names.py:6:20 3 becomes 4",
    }
    assert alike(old, new) == {
        "torchlint/model/names.py:2:4 `return` gives None",
        "torchlint/model/names.py:2:11 Gt becomes LtE",
        "torchlint/model/names.py:2:20 3 becomes 4",
    }
    first = [name.partition(":")[2] for name in sampled(new, old, count=1)]
    assert first == [name.partition(":")[2].replace("2:", "6:", 1) for name in sampled(old, new, count=1)]


def alike(tree: Path, other: Path) -> set[str]:
    return set(sampled(tree, other, count=100))


def sampled(tree: Path, other: Path, count: int) -> list[str]:
    found = [list(mutate.mutants(path, tree)) for path in mutate.core(tree)]
    options = mutate.Options(
        paths=(),
        count=count,
        seed=0,
        jobs=1,
        each=1,
        seconds=1,
        sample=1,
        even=False,
        report=None,
        tree=tree,
        like=other,
    )
    return [mutant.name for mutant in mutate.chosen(found, options)]
