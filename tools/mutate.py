"""Plants small faults in torchlint, one at a time, and names those that no test sees.

    python tools/mutate.py                                  40 faults in the engine, the fixer and what they stand on
    python tools/mutate.py --count 200 --seed 1 --report seen.json
    python tools/mutate.py --again seen.json --sample 1000 --each 1000 --seconds 120
    python tools/mutate.py --tests tests/rules rules/naive_attention.py

A process collects the tests once. A copy of it runs them and notes which functions each of them enters; then, for each
fault, a copy swaps the code of one function and runs tests that enter it, the quickest first, until one fails. Nothing
is written, and a fault that makes a test run for too long counts as seen. A fault is shown to a sample of the tests;
`--again` shows those of a report that nothing saw to others, or to all. POSIX only, since copies are forked.
"""

from __future__ import annotations

import argparse
import ast
import copy
import gc
import importlib
import json
import os
import random
import signal
import sys
import tempfile
import time
import types
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from _pytest.runner import runtestprotocol

ROOT = Path(__file__).parents[1]
# What the promises stand on; of the folders those that there are.
DEFAULT = ("engine.py", "fixer.py", "linter.py", "suppress.py", "precedence.py", "semantics")

Key: TypeAlias = "tuple[str, str, int]"
"""A function: its file, its name and its first line, as its code object says them."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A fault: where, what was done, in which function, and what makes the module with it."""

    path: Path
    row: int
    column: int
    what: str
    function: Key
    made: Callable[[], ast.Module]

    @property
    def name(self) -> str:
        """As it is printed."""
        return f"{self.path.relative_to(ROOT).as_posix()}:{self.row}:{self.column} {self.what}"


# Faults


def mutants(path: Path) -> Iterator[Mutant]:
    """Every fault that can be planted in a file, in source order."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for function in _functions(tree):
        key = (str(path), function.name, _first_row(function))
        for node in _inside(function):
            for what, change in _changes(node):
                made = partial(_changed, tree, node, change)
                yield Mutant(path, getattr(node, "lineno", 0), getattr(node, "col_offset", 0), what, key, made)


Function: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef"


def _functions(tree: ast.Module) -> Iterator[Function]:
    """Those of the module and the methods of its classes: one inside another is part of it."""
    waiting: list[ast.stmt] = list(tree.body)
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node
        elif isinstance(node, ast.ClassDef):
            waiting[:0] = node.body


def _first_row(function: Function) -> int:
    return min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])


def _inside(function: Function) -> Iterator[ast.AST]:
    """What runs when the function does: no annotations, defaults, docstrings or words for people."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, (ast.JoinedStr, ast.Raise, ast.Assert, ast.Import, ast.ImportFrom)):
            continue
        yield node
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            waiting[:0] = node.body
        elif isinstance(node, ast.AnnAssign):
            waiting[:0] = [node.value] if node.value is not None else []
        else:
            waiting[:0] = ast.iter_child_nodes(node)


Change: TypeAlias = "Callable[[Any], ast.AST]"
_FLIPPED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip


def _changes(node: ast.AST) -> Iterator[tuple[str, Change]]:
    match node:
        case ast.Compare(ops=[op]) if type(op) in _FLIPPED:
            flipped = _FLIPPED[type(op)]
            yield f"{type(op).__name__} becomes {flipped.__name__}", lambda it: _set(it, ops=[flipped()])
        case ast.BoolOp(op=ast.And()):
            yield "`and` becomes `or`", lambda it: _set(it, op=ast.Or())
        case ast.BoolOp(op=ast.Or()):
            yield "`or` becomes `and`", lambda it: _set(it, op=ast.And())
        case ast.UnaryOp(op=ast.Not()):
            yield "`not` is removed", lambda it: it.operand
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) if not isinstance(test, ast.Constant):
            yield "the condition is negated", lambda it: _set(it, test=_negated(it))
        case ast.Return(value=ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield "`return` gives None", lambda it: _set(it, value=ast.Constant(None))
        case ast.Constant(value=bool(value)):
            yield f"{value} becomes {not value}", lambda it: _set(it, value=not value)
        case ast.Constant(value=int(number)):
            yield f"{number} becomes {number + 1}", lambda it: _set(it, value=number + 1)
        case ast.Constant(value=str(text)):
            yield f"{text!r} becomes {text + '_'!r}", lambda it: _set(it, value=text + "_")
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Continue():
            yield "the statement is dropped", lambda _: ast.Pass()


def _set(node: ast.AST, **fields: object) -> ast.AST:
    for name, value in fields.items():
        setattr(node, name, value)
    return node


def _negated(node: ast.AST) -> ast.expr:
    return ast.UnaryOp(ast.Not(), node.test)  # type: ignore[attr-defined]


def _changed(tree: ast.Module, node: ast.AST, change: Change) -> ast.Module:
    """A copy of the module in which the node is changed."""
    copies: dict[int, Any] = {}
    new = copy.deepcopy(tree, copies)
    old = copies[id(node)]

    class Put(ast.NodeTransformer):
        def visit(self, each: ast.AST) -> Any:  # noqa: ANN401 - as its base says
            return change(each) if each is old else super().generic_visit(each)

    made: ast.Module = Put().visit(new)
    return ast.fix_missing_locations(made)


# The code of a running process


def plant(mutant: Mutant, functions: Iterable[types.FunctionType]) -> bool:
    """Give those of the functions that have the fault the code that they have with it; false if none of them has it."""
    module = compile(mutant.made(), str(mutant.path), "exec", dont_inherit=True)
    new = next(code for code in _codes(module) if _key(code) == mutant.function)
    found = [function for function in functions if _key(function.__code__) == mutant.function]
    for function in found:
        function.__code__ = new
    return bool(found)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _key(code: types.CodeType) -> Key:
    return code.co_filename, code.co_name, code.co_firstlineno


def load(paths: Iterable[Path]) -> None:
    """Import the modules of these files, so that their functions are there before the process is copied."""
    from torchlint.registry import all_rules

    all_rules()
    loaded = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    for path in paths:
        if str(path) not in loaded:
            parts = path.relative_to(ROOT).with_suffix("").parts
            importlib.import_module(".".join(part for part in parts if part != "__init__"))


# Tests


@dataclass(frozen=True, slots=True)
class Entered:
    """What a test enters, and the seconds of processor time that it takes."""

    seconds: float
    functions: frozenset[Key]


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asks for. `each`, `seconds` and `sample` bound the tests that a fault is shown to."""

    paths: tuple[Path, ...]
    count: int
    seed: int
    jobs: int
    each: int
    seconds: float
    sample: int
    even: bool
    report: Path | None
    again: frozenset[str] | None = None


class Mutation:
    """The plugin: it takes the place of the loop that runs the tests."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.failed = False
        self.survivors = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note that a test fails, or a part of it."""
        self.failed = self.failed or report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Plant the faults, and print what became of each."""
        if session.testsfailed:
            raise pytest.UsageError("not all tests could be collected")
        options = self.options
        load(options.paths)
        found = [list(mutants(path)) for path in options.paths]
        chosen = _chosen(found, options)
        print(f"{len(chosen)} of {sum(map(len, found))} faults, {len(session.items)} tests", flush=True)
        entered = self._map(_some(session.items, options.sample), {str(path) for path in options.paths})
        print(f"{len(entered)} tests enter what is looked at", flush=True)
        tests = {item.nodeid: item for item in session.items}
        gc.unfreeze()  # what is frozen is not listed
        functions = [each for each in gc.get_objects() if type(each) is types.FunctionType]
        results = _in_copies(
            [lambda mutant=mutant: self._judge(mutant, functions, entered, tests) for mutant in chosen],  # type: ignore[misc]
            options.jobs,
        )
        said = Counter[str]()
        for mutant, result in zip(chosen, results, strict=True):
            killer = result if result is not None else "took too long"
            verdict = {"": "SURVIVED", "-": "NEVER RUN", "!": "NOT THERE"}.get(str(killer), "killed")
            said[verdict] += 1
            print(f"{verdict:9} {mutant.name}" + (f"  by {killer}" if verdict == "killed" else ""))
        print(", ".join(f"{number} {verdict.lower()}" for verdict, number in sorted(said.items())), flush=True)
        self.survivors = len(chosen) - said["killed"]
        if options.report is not None:
            rows = [[mutant.name, result] for mutant, result in zip(chosen, results, strict=True)]
            options.report.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
        return True

    def _map(self, items: Sequence[pytest.Item], files: set[str]) -> dict[str, Entered]:
        """What each test enters that passes; the tests are dealt out to as many copies as there are jobs."""
        jobs = self.options.jobs
        parts = _in_copies(
            [lambda part=items[start::jobs]: self._enter(part, files) for start in range(jobs)],  # type: ignore[misc]
            jobs,
        )
        entered: dict[str, Entered] = {}
        for part in parts:
            if not isinstance(part, list):
                raise pytest.UsageError("a copy that runs the tests came to no end")
            for name, seconds, functions in part:
                entered[name] = Entered(seconds, frozenset((path, of, row) for path, of, row in functions))
        return entered

    def _enter(self, items: Sequence[pytest.Item], files: set[str]) -> list[object]:
        made: list[object] = []
        seen: set[Key] = set()

        def trace(frame: types.FrameType, event: str, _: object) -> None:
            code = frame.f_code
            if event == "call" and code.co_filename in files:
                seen.add(_key(code))

        for item, after in zip(items, [*items[1:], None], strict=True):
            seen.clear()
            start = time.process_time()
            sys.settrace(trace)
            try:
                passed = self._passes(item, after)
            finally:
                sys.settrace(None)
            if passed and seen:
                made.append((item.nodeid, time.process_time() - start, sorted(seen)))
        return made

    def _judge(
        self,
        mutant: Mutant,
        functions: list[types.FunctionType],
        entered: dict[str, Entered],
        tests: dict[str, pytest.Item],
    ) -> str:
        """The test that sees the fault, nothing where none does, `-` where none runs the code, `!` if none has it."""
        names = self._tests_of(mutant.function, entered)
        if not names:
            return "-"
        signal.setitimer(signal.ITIMER_PROF, 20 + 5 * sum(entered[name].seconds for name in names))
        if not plant(mutant, functions):
            return "!"
        for name, after in zip(names, [*names[1:], None], strict=True):
            if not self._passes(tests[name], tests.get(after or "")):
                return name
        return ""

    def _tests_of(self, function: Key, entered: dict[str, Entered]) -> list[str]:
        """Tests that enter a function: a few of each test function, the quickest first, as long as there is time."""
        outer = [name for name, each in entered.items() if function in each.functions]
        outer.sort(key=lambda name: entered[name].seconds)
        of_each: defaultdict[str, int] = defaultdict(int)
        chosen, total = [], 0.0
        for name in outer:
            kind = name.partition("[")[0]
            if of_each[kind] < self.options.each and total < self.options.seconds:
                of_each[kind] += 1
                total += entered[name].seconds
                chosen.append(name)
        return chosen

    def _passes(self, item: pytest.Item, after: pytest.Item | None) -> bool:
        self.failed = False
        reports = runtestprotocol(item, log=False, nextitem=after)
        return not self.failed and not any(report.failed for report in reports)


def _chosen(found: Iterable[list[Mutant]], options: Options) -> list[Mutant]:
    """As many as are wanted, of all that there are or of each file alike, by name; or those that are to be again."""
    if options.again is not None:
        return [mutant for of_one in found for mutant in of_one if mutant.name in options.again]
    chance = random.Random(options.seed)  # noqa: S311 - no secret
    if options.even:
        of_files = [chance.sample(of_one, len(of_one)) for of_one in found]
        every = [mutant for row in zip_longest(*of_files) for mutant in row if mutant is not None]
    else:
        every = [mutant for of_one in found for mutant in of_one]
        chance.shuffle(every)
    return sorted(every[: options.count], key=lambda mutant: mutant.name)


def unseen(report: str) -> frozenset[str]:
    """The faults of a report that survived or never ran."""
    return frozenset(name for name, seen_by in json.loads(report) if seen_by in ("", "-"))


def _some(items: Iterable[pytest.Item], most: int) -> list[pytest.Item]:
    """Of each test function as many tests, from all over its table."""
    kinds: dict[str, list[pytest.Item]] = {}
    for item in items:
        kinds.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return [item for of_one in kinds.values() for item in of_one[:: -(-len(of_one) // most)]]


def _in_copies(tasks: Sequence[Callable[[], object]], jobs: int) -> list[object]:
    """What each task gives, as JSON knows it, each in a copy of this process; None of one that was killed."""
    results: list[object] = [None] * len(tasks)
    running: dict[int, int] = {}
    waiting = list(range(len(tasks)))
    with tempfile.TemporaryDirectory() as folder:
        while waiting or running:
            while waiting and len(running) < jobs:
                number = waiting.pop(0)
                process = os.fork()
                if process == 0:
                    _be_copy(tasks[number], Path(folder) / str(number))
                running[process] = number
            process, _ = os.wait()
            if process in running:
                answer = Path(folder) / str(running.pop(process))
                number = int(answer.name)
                results[number] = json.loads(answer.read_text(encoding="utf-8")) if answer.exists() else None
    return results


def _be_copy(task: Callable[[], object], answer: Path) -> None:
    os.setsid()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    status = 1
    try:
        text = json.dumps(task())
        part = answer.with_suffix(".part")
        part.write_text(text, encoding="utf-8")
        part.rename(answer)
        status = 0
    finally:
        os._exit(status)


def main() -> int:
    """Exit with 1 if a fault survives."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("targets", nargs="*", type=Path, help="files and folders; the core, if there are none")
    parser.add_argument("--count", type=int, default=40, help="how many faults (40)")
    parser.add_argument("--seed", type=int, default=0, help="which of them (0)")
    parser.add_argument("--even", action="store_true", help="as many of each file")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many copies at a time")
    parser.add_argument("--each", type=int, default=3, help="tests of one test function for each fault (3)")
    parser.add_argument("--seconds", type=float, default=10.0, help="of tests for each fault (10)")
    parser.add_argument("--sample", type=int, default=12, help="tests of one test function that are looked at (12)")
    parser.add_argument("--tests", nargs="+", default=["tests"], help="where the tests are (tests)")
    parser.add_argument("--report", type=Path, help="a file for the faults and who saw them, as JSON")
    parser.add_argument("--again", type=Path, metavar="REPORT", help="only the faults of a report that no test saw")
    given = parser.parse_args()
    again = unseen(given.again.read_text(encoding="utf-8")) if given.again is not None else None
    core = [ROOT / "torchlint" / name for name in DEFAULT]
    targets = [path.resolve() for path in given.targets] or [path for path in core if path.exists()]
    paths = [file for path in targets for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path])]
    numbers = (given.count, given.seed, given.jobs, given.each, given.seconds, given.sample)
    options = Options(tuple(paths), *numbers, given.even, given.report, again)
    os.chdir(ROOT)
    plugin = Mutation(options)
    status = pytest.main(["-q", "-s", "-n0", "-p", "no:cacheprovider", *given.tests], plugins=[plugin])
    return int(status) or int(plugin.survivors > 0)


if __name__ == "__main__":
    sys.exit(main())
