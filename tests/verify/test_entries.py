"""Ways into code: what runs, in which order, and one clear line for what is no way in."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from asked import line

from torchlint.registry import all_rules
from torchlint.verify.inside import commands, devices, entries
from torchlint.verify.inside.channel import Closed
from torchlint.verify.inside.entries import Entry, EntryError, ExitedError, Script
from torchlint.verify.inside.pace import Ended, Pace

if TYPE_CHECKING:
    from torchlint.verify.inside.pace import Handler, Task

START = {"command": "start"}


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(sys, "argv", ["before"])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def units(number: int) -> dict[str, Any]:
    return {"command": "units", "units": number}


def driven(entry: Entry | Script, *messages: dict[str, Any]) -> list[Any]:
    """The outputs of the units that were asked for."""
    seen = []

    def start(_: dict[str, Any]) -> Task:
        yield
        return {}

    def some(message: dict[str, Any]) -> Task:
        for _ in range(message["units"]):
            outputs = yield
            seen.append(outputs)
        return {}

    handlers: dict[str, Handler] = {"start": start, "units": some}
    with line(*messages) as (channel, _), pytest.raises(Closed):
        entry.drive(Pace(channel, handlers))
    return seen


def test_a_workload_is_set_up_and_run_on_its_state(tmp_path: Path) -> None:
    file = tmp_path / "slow.py"
    file.write_text(
        "def setup(device, size):\n    return [device, size]\n\n"
        "def run(state):\n    state.append(len(state))\n    return list(state)\n"
    )
    entry = entries.workload(str(file), "cpu", "smoke")
    assert driven(entry, START, units(2), START, units(1)) == [
        ["cpu", "smoke", 2],
        ["cpu", "smoke", 2, 3],
        ["cpu", "smoke", 2],
    ]


@pytest.mark.parametrize("name", entries.STOOD_IN_FOR)
def test_a_rules_file_runs_the_same_where_a_library_is_installed(name: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}.py").write_text("WHAT = 'the library'")
    file = tmp_path / "slow.py"
    file.write_text(
        f"try:\n    from {name} import WHAT\nexcept ImportError:\n    WHAT = 'the stand-in'\n\n"
        "def setup(device, size):\n    return WHAT\n\ndef run(state):\n    return state\n"
    )
    assert driven(entries.workload(str(file), "cpu", "smoke"), START, units(1)) == ["the stand-in"]


def test_what_a_rules_file_imports_where_it_can_is_stood_in_for() -> None:
    """Or its evidence would be of something else on a machine that has it."""
    known = {"__future__", "torch", "numpy", *sys.stdlib_module_names, *entries.STOOD_IN_FOR}
    for rule in all_rules():
        file = files("torchlint.fixtures") / rule.module / "slow.py"
        for node in ast.walk(ast.parse(file.read_bytes())) if file.is_file() else ():
            match node:
                case ast.Import(names=names):
                    assert {alias.name.partition(".")[0] for alias in names} <= known, rule.name
                case ast.ImportFrom(module=str(module)):
                    assert module.partition(".")[0] in known, rule.name


@pytest.mark.parametrize(
    ("source", "words"),
    [("def run(state): pass", "slow.py has no function `setup`"), ("setup = list\nrun = 3", "has no function `run`")],
)
def test_a_workload_lacks_something(source: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(source)
    with pytest.raises(EntryError, match=words):
        entries.workload(str(tmp_path / "slow.py"), "cpu", "smoke")


def test_a_function_is_a_step(tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text(
        "count = 0\ndef step(by=2):\n    global count\n    count += by\n    return count\n"
    )
    assert driven(entries.function("steps.py:step", str(tmp_path)), START, units(3)) == [2, 4, 6]


def test_a_function_of_a_module_of_a_package(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("")
    (tmp_path / "pkg" / "mod.py").write_text("class Some:\n    @staticmethod\n    def step():\n        return 'here'\n")
    assert driven(entries.function("pkg.mod:Some.step", str(tmp_path)), START, units(1)) == ["here"]


GENERATOR = """
import contextlib
events = []

def bench_it():
    events.append("set up")
    state = {"n": 0}
    def step():
        state["n"] += 1
        return state["n"]
    yield step, state
    events.append("torn down")
"""


def test_a_generator_is_set_up_and_torn_down_each_time(tmp_path: Path) -> None:
    (tmp_path / "bench_it.py").write_text(GENERATOR)
    entry = entries.function("bench_it.py:bench_it", str(tmp_path))
    assert driven(entry, START, units(2), START, units(1)) == [1, 2, 1]
    assert sys.modules["bench_it"].events == ["set up", "torn down"] * 2


def test_the_state_of_a_generator_is_known_while_it_runs(tmp_path: Path) -> None:
    (tmp_path / "bench_it.py").write_text(GENERATOR)
    entry = entries.function("bench_it.py:bench_it", str(tmp_path))
    states = []

    def start(_: dict[str, Any]) -> Task:
        yield
        states.append(entry.state)
        return {}

    with line(START) as (channel, _), pytest.raises(Closed):
        entry.drive(Pace(channel, {"start": start}))
    assert states == [{"n": 0}]


def test_a_generator_tears_down_after_an_error(tmp_path: Path) -> None:
    (tmp_path / "fails.py").write_text(
        "events = []\ndef entry():\n    def step():\n        raise ValueError('planted')\n"
        "    yield step\n    events.append('torn down')\n"
    )
    entry = entries.function("fails.py:entry", str(tmp_path))
    with line(START, units(1)) as (channel, _), pytest.raises(ValueError, match="planted"):
        entry.drive(Pace(channel, {"start": lambda _: iter_once(), "units": lambda _: iter_once()}))
    assert sys.modules["fails"].events == ["torn down"]


def iter_once() -> Task:
    yield
    return {}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("steps", "`steps` is no entry; write `module:function` or `file.py:function`"),
        ("steps:", "`steps:` is no entry"),
        (":step", "`:step` is no entry"),
        ("nowhere:step", "cannot import `nowhere` for the entry `nowhere:step`: No module named 'nowhere'"),
        ("nowhere.py:step", "there is no Python file .*nowhere.py"),
        ("notes.txt.py:step", "there is no Python file"),
        ("steps:missing", "`steps` has no function `missing`"),
        ("steps:NUMBER", "`steps` has no function `NUMBER`"),
        ("steps.py:step.missing", "`steps.py` has no function `step.missing`"),
        ("steps:Kind", "`steps:Kind` is a class; an entry is a plain function, or a generator of one"),
        ("steps:later", "`steps:later` is a coroutine"),
        ("steps:stream", "`steps:stream` is an asynchronous generator"),
        ("steps:takes", "`steps:takes` takes arguments; an entry is a function that takes none"),
    ],
)
def test_what_is_no_entry_is_told_in_one_line(name: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text(
        "NUMBER = 3\ndef step(): pass\ndef takes(model): pass\nclass Kind: pass\n"
        "async def later(): pass\nasync def stream(): yield 1\n"
    )
    with pytest.raises(EntryError, match=words) as error:
        entries.function(name, str(tmp_path))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("    yield 3", "has to yield the function that is timed, and yielded `int`"),
        ("    yield 1, 2, 3", "yielded `tuple`"),
        ("    yield {}, len", "yielded `tuple`"),
        ("    return\n    yield", "yielded nothing"),
    ],
)
def test_a_generator_that_yields_no_step(body: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text(f"def entry():\n{body}\n")
    entry = entries.function("steps.py:entry", str(tmp_path))
    with line(START) as (channel, _), pytest.raises(EntryError, match=words):
        entry.drive(Pace(channel, {"start": lambda _: iter_once()}))


def test_a_built_in_is_an_entry(tmp_path: Path) -> None:
    assert driven(entries.function("time:time", str(tmp_path)), START, units(1))[0] > 0


@contextmanager
def ticking(pace: Pace) -> Iterator[None]:
    """A clock that the script calls itself."""

    def tick(outputs: object) -> None:
        if pace.began:
            pace.tick(outputs)
        else:
            pace.begin()

    sys.tick = tick  # type: ignore[attr-defined]  # where the script finds it
    yield
    del sys.tick  # type: ignore[attr-defined]


SCRIPT = """
import sys
from beside import name
for step in range(int(sys.argv[1])):
    sys.tick((name, step, __name__, sys.argv[0] == __file__))
"""


def script(folder: Path, source: str, *arguments: str) -> Script:
    (folder / "scripts").mkdir()
    (folder / "scripts" / "beside.py").write_text("name = 'beside'\n")
    (folder / "scripts" / "train.py").write_text(source)
    return Script(str(folder / "scripts" / "train.py"), list(arguments), ticking)


def test_a_script_runs_as_the_program_it_is(tmp_path: Path) -> None:
    entry = script(tmp_path, SCRIPT, "10")
    assert driven(entry, START, units(2)) == [("beside", step, "__main__", True) for step in (1, 2)]


@pytest.mark.parametrize("end", ["", "\nsys.exit()", "\nsys.exit(0)"])
def test_a_script_that_is_too_short_says_so(end: str, tmp_path: Path) -> None:
    entry = script(tmp_path, SCRIPT + end, "3")
    with line(START, units(9)) as (channel, _), pytest.raises(Ended, match="ended after 3 steps"):
        entry.drive(Pace(channel, {"start": lambda _: iter_once(), "units": lambda _: endless()}))


def rows(arm: commands.Arm, count: int, length: int, seen: list[bool]) -> Task:
    while sum(seen) < count:
        seen.append((yield from arm._units(length)))  # noqa: SLF001 - what timing asks for
    return {}


@pytest.mark.parametrize("length", [2, 7])
def test_a_script_is_run_again_for_who_times_it(length: int, tmp_path: Path) -> None:
    entry, seen = script(tmp_path, SCRIPT, "8"), list[bool]()
    arm = commands.Arm.__new__(commands.Arm)
    arm._reran = 0  # noqa: SLF001 - all that is needed
    handlers: dict[str, Handler] = {"start": lambda _: iter_once(), "rows": lambda _: rows(arm, 6, length, seen)}
    with line(START, {"command": "rows"}) as (channel, replies), pytest.raises(Closed):
        entry.drive(Pace(channel, handlers))
    assert replies[-1]["ok"]
    # The first step belongs to the set-up, and a row that was broken off starts again.
    assert seen == ([True] * 3 + [False] + [True] * 3 if length == 2 else [True, False] * 5 + [True])


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("", "the program ended after 8 steps, and 9 in a row are needed; let it run longer"),
        (
            "\nif hasattr(sys, 'ran'): raise OSError('there already')\nsys.ran = 1",
            "the program ended after 8 steps, and 9 in a row are needed, and run again it fails: OSError: there already",
        ),
    ],
)
def test_a_script_that_is_too_short_for_a_row_says_how_many_steps_it_needs(
    more: str, words: str, tmp_path: Path
) -> None:
    entry = script(tmp_path, SCRIPT.replace("for step", "first = 1" + more + "\nfor step"), "8")
    arm = commands.Arm.__new__(commands.Arm)
    arm._reran = 0  # noqa: SLF001 - all that is needed
    handlers: dict[str, Handler] = {"start": lambda _: iter_once(), "rows": lambda _: rows(arm, 1, 9, [])}
    with line(START, {"command": "rows"}) as (channel, _), pytest.raises(Ended) as error:
        entry.drive(Pace(channel, handlers))
    assert str(error.value) == words
    vars(sys).pop("ran", None)


def test_a_script_that_has_no_room_to_warm_up_says_so(tmp_path: Path) -> None:
    entry = script(tmp_path, SCRIPT, "8")
    arm = commands.Arm.__new__(commands.Arm)
    arm._reran, arm._device = 0, devices.Cpu()  # noqa: SLF001 - all that is needed
    block = {"command": "block", "inner": 6, "warm": 3, "samples": 2}
    handlers: dict[str, Handler] = {"start": lambda _: iter_once(), "block": arm._block}  # noqa: SLF001
    with line(START, block) as (channel, _), pytest.raises(Ended, match="after 8 steps, and 9 in a row are needed"):
        entry.drive(Pace(channel, handlers))
    with line(START, block | {"warm": 1}) as (channel, replies), pytest.raises(Closed):
        entry.drive(Pace(channel, handlers))
    assert len(replies[-1]["samples"]) == 2


def endless() -> Task:
    while True:
        yield


def test_a_script_that_says_it_failed_has_failed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entry = script(tmp_path, SCRIPT + "\nsys.exit('no data')", "0")
    with line(START) as (channel, _), pytest.raises(ExitedError, match=r"train\.py exited with status 1"):
        entry.drive(Pace(channel, {"start": lambda _: iter_once()}))
    assert capsys.readouterr().err == "no data\n"


def test_a_script_cannot_catch_its_end(tmp_path: Path) -> None:
    entry = script(tmp_path, SCRIPT.replace("    sys.tick", "  try:\n    sys.tick") + "  except Exception: pass\n", "9")
    assert len(driven(entry, START, units(2))) == 2
