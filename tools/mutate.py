"""Plants small faults in torchlint, one at a time, and names those that no test sees.

    python tools/mutate.py                                  40 faults in the engine, the fixer and what they stand on
    python tools/mutate.py --count 200 --seed 1 --report seen.json
    python tools/mutate.py --again seen.json --sample 1000 --each 1000 --seconds 120
    python tools/mutate.py --tests tests/rules rules/naive_attention.py
    python tools/mutate.py --like ../older                  faults that the core of another checkout can have too
    ../older/.venv/bin/python tools/mutate.py --tree ../older --like .        the same, planted there

A process collects the tests once. A copy of it runs them and notes which of the places each of them comes to that are
to have a fault; then, for each fault, a copy swaps the code of one function and runs tests that come to its place, the
quickest of each test function first, until one fails that passes without the fault. Nothing is written, and a fault
that makes a test run for too long counts as seen. A fault is shown to a sample of the tests; `--again` shows those of a
report that nothing saw to others, or to all. POSIX only, since copies are forked.

`--tree` is for another checkout, by its own tests and with a Python that has it installed. `--like` leaves the faults
that both have: in a function of the same name, in the same piece of code, once in each of them. With the same seed each
of the two plants the same ones, so that what the tests see can be compared fault by fault.
"""

from __future__ import annotations

import argparse
import ast
import builtins
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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from _pytest.runner import runtestprotocol

ROOT = Path(__file__).parents[1]
# What the promises stand on; of the folders those that there are.
DEFAULT = ("engine.py", "fixer.py", "linter.py", "suppress.py", "precedence.py", "semantics", "edits", "model")

Key: TypeAlias = "tuple[str, str, int]"
"""A function: its file, its name and its first line, as its code object says them."""


Change: TypeAlias = "Callable[[Any], ast.AST]"
Function: TypeAlias = "ast.FunctionDef | ast.AsyncFunctionDef"
Alike: TypeAlias = "tuple[str, str, str, int]"
"""What a fault shares with itself in another checkout: function, piece of code, what was done, and where in it."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A fault: where, what was done to which node, in which function, and when it is reached: before `place` runs."""

    path: Path
    file: str
    what: str
    function: Key
    tree: ast.Module
    node: ast.AST
    place: ast.AST
    change: Change
    alike: Alike

    @property
    def name(self) -> str:
        """As it is printed."""
        row, column = getattr(self.node, "lineno", 0), getattr(self.node, "col_offset", 0)
        return f"{self.file}:{row}:{column} {self.what}"


# Faults


def mutants(path: Path, root: Path = ROOT) -> Iterator[Mutant]:
    """Every fault that can be planted in a file of a checkout, in source order."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    file = path.relative_to(root).as_posix()
    for function in _functions(tree):
        key = (str(path), function.name, _first_row(function))
        found = Counter[tuple[str, str]]()
        for inside in _inside(function):
            for what, change in _changes(inside.node):
                piece = inside.piece, what
                found[piece] += 1
                alike = function.name, *piece, found[piece]
                yield Mutant(path, file, what, key, tree, inside.node, inside.place, change, alike)


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


@dataclass(frozen=True, slots=True)
class _Inside:
    """A node of a function, what is reached when it is, and the statement or head of one that it is in, as text."""

    node: ast.AST
    place: ast.AST
    piece: str


def _inside(function: Function) -> Iterator[_Inside]:
    """What runs when the function does: no annotations, defaults, docstrings or words for people."""
    waiting = [_Inside(node, node, _head(node)) for node in function.body]
    while waiting:
        each = waiting.pop(0)
        node = each.node
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, (ast.JoinedStr, ast.Raise, ast.Assert, ast.Import, ast.ImportFrom)):
            continue
        yield each
        waiting[:0] = [_below(each, child) for child in _parts(node)]


def _parts(node: ast.AST) -> Iterable[ast.AST]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return node.body
    if isinstance(node, ast.AnnAssign):
        return [node.value] if node.value is not None else []
    return ast.iter_child_nodes(node)


def _below(above: _Inside, child: ast.AST) -> _Inside:
    """A part of a node. Nothing can be noted inside a pattern: its `match` is as near as that goes."""
    node = above.node
    piece = above.piece
    if isinstance(child, ast.stmt):
        piece = _head(child)
    elif isinstance(node, (ast.match_case, ast.ExceptHandler)):
        piece = f"case {ast.unparse(child)}"
    if isinstance(node, ast.match_case):
        place = above.place if isinstance(child, ast.pattern) else child
    else:
        place = above.place if isinstance(node, ast.pattern) or isinstance(child, ast.match_case) else child
    return _Inside(child, place, piece)


def _head(statement: ast.stmt) -> str:
    """A statement without those inside it."""
    head = copy.copy(statement)
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        if hasattr(head, field):
            setattr(head, field, [])
    return ast.unparse(head)


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


def _with(mutant: Mutant) -> ast.Module:
    """A copy of the module that has the fault."""
    return _changed(mutant.tree, {id(mutant.node): mutant.change})


def _changed(tree: ast.Module, changes: Mapping[int, Callable[[Any], Any]]) -> ast.Module:
    """A copy of the module in which nodes are changed, by the identity of those that stand in it."""
    copies: dict[int, Any] = {}
    new = copy.deepcopy(tree, copies)
    of_copies = {id(copies[node]): change for node, change in changes.items()}

    class Put(ast.NodeTransformer):
        def visit(self, each: ast.AST) -> Any:  # noqa: ANN401 - as its base says
            change = of_copies.get(id(each))
            made = super().generic_visit(each)
            return made if change is None else change(made)

    made: ast.Module = Put().visit(new)
    return ast.fix_missing_locations(made)


# The code of a running process


def plant(mutant: Mutant, functions: Iterable[types.FunctionType]) -> bool:
    """Give those of the functions that have the fault the code that they have with it; false if none of them has it."""
    return _swap(_with(mutant), mutant.path, {mutant.function}, functions)


def watch(wanted: Sequence[Mutant], functions: Sequence[types.FunctionType]) -> set[int]:
    """The numbers of the faults whose places are reached from now on: the functions are given code that notes them."""
    reached: set[int] = set()
    vars(builtins)[_NOTE] = reached.add
    of_files: defaultdict[Path, defaultdict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, mutant in enumerate(wanted):
        of_files[mutant.path][id(mutant.place)].append(number)
    for path, places in of_files.items():
        here = [mutant for mutant in wanted if mutant.path == path]
        noting = {place: partial(_noted, numbers) for place, numbers in places.items()}
        _swap(_changed(here[0].tree, noting), path, {mutant.function for mutant in here}, functions)
    return reached


_NOTE = "__reached__"


def _noted(numbers: Iterable[int], node: ast.AST) -> ast.AST | list[ast.stmt]:
    """The node, and before it runs its numbers are noted."""
    notes = [ast.Call(ast.Name(_NOTE, ast.Load()), [ast.Constant(number)], []) for number in numbers]
    if isinstance(node, ast.expr):
        return ast.Subscript(ast.Tuple([*notes, node], ast.Load()), ast.Constant(len(notes)), ast.Load())
    assert isinstance(node, ast.stmt), ast.dump(node)
    return [*(ast.Expr(note) for note in notes), node]


def _swap(module: ast.Module, path: Path, of: set[Key], functions: Iterable[types.FunctionType]) -> bool:
    """Give these functions the code that they have in a module, and say whether there are any."""
    codes: dict[Key, types.CodeType] = {}
    for code in _codes(compile(module, str(path), "exec", dont_inherit=True)):
        codes.setdefault(_key(code), code)
    found = [function for function in functions if _key(function.__code__) in of]
    for function in found:
        function.__code__ = codes[_key(function.__code__)]
    return bool(found)


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _codes(constant)


def _key(code: types.CodeType) -> Key:
    return code.co_filename, code.co_name, code.co_firstlineno


def load(paths: Iterable[Path], root: Path = ROOT) -> None:
    """Import the modules of these files, so that their functions are there before the process is copied."""
    from torchlint.registry import all_rules

    all_rules()
    loaded = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    for path in paths:
        if str(path) not in loaded:
            parts = path.relative_to(root).with_suffix("").parts
            importlib.import_module(".".join(part for part in parts if part != "__init__"))


# Tests


@dataclass(frozen=True, slots=True)
class Reached:
    """The numbers of the faults whose places a test comes to, and the seconds of processor time that it takes."""

    seconds: float
    faults: frozenset[int]


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
    again: tuple[str, ...] | None = None
    tree: Path = ROOT
    like: Path | None = None


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
        load(options.paths, options.tree)
        found = [list(mutants(path, options.tree)) for path in options.paths]
        wanted = chosen(found, options)
        print(f"{len(wanted)} of {sum(map(len, found))} faults, {len(session.items)} tests", flush=True)
        gc.unfreeze()  # what is frozen is not listed
        functions = [each for each in gc.get_objects() if type(each) is types.FunctionType]
        reached = self._map(_some(session.items, options.sample), wanted, functions)
        print(f"{len(reached)} tests come to where they are", flush=True)
        tests = {item.nodeid: item for item in session.items}
        rows: list[tuple[str, object]] = []
        said = Counter[str]()

        def say(number: int, killer: object) -> None:
            verdict = {"": "SURVIVED", "-": "NEVER RUN", "!": "NOT THERE"}.get(str(killer), "killed")
            said[verdict] += 1
            name = wanted[number].name
            by = f"  by {killer or 'a test that took too long'}" if verdict == "killed" else ""
            print(f"{verdict:9} {name}{by}", flush=True)
            rows.append((name, killer))
            if options.report is not None:
                options.report.write_text(
                    json.dumps(sorted(rows, key=itemgetter(0)), indent=1) + "\n", encoding="utf-8"
                )

        tasks = [
            partial(self._judge, number, mutant, functions, reached, tests) for number, mutant in enumerate(wanted)
        ]
        _in_copies(tasks, options.jobs, say)
        print(", ".join(f"{number} {verdict.lower()}" for verdict, number in sorted(said.items())), flush=True)
        self.survivors = len(wanted) - said["killed"]
        return True

    def _map(
        self, items: Sequence[pytest.Item], wanted: Sequence[Mutant], functions: Sequence[types.FunctionType]
    ) -> dict[str, Reached]:
        """What each test reaches that passes; the tests are dealt out to as many copies as there are jobs."""
        jobs = self.options.jobs
        parts = _in_copies([partial(self._reach, items[start::jobs], wanted, functions) for start in range(jobs)], jobs)
        reached: dict[str, Reached] = {}
        for part in parts:
            if not isinstance(part, list):
                raise pytest.UsageError("a copy that runs the tests came to no end")
            for name, seconds, numbers in part:
                reached[name] = Reached(seconds, frozenset(numbers))
        return reached

    def _reach(
        self, items: Sequence[pytest.Item], wanted: Sequence[Mutant], functions: Sequence[types.FunctionType]
    ) -> list[object]:
        made: list[object] = []
        seen = watch(wanted, functions)
        for item, after in zip(items, [*items[1:], None], strict=True):
            seen.clear()
            start = time.process_time()
            if self._passes(item, after) and seen:
                made.append((item.nodeid, time.process_time() - start, sorted(seen)))
        return made

    def _judge(
        self,
        number: int,
        mutant: Mutant,
        functions: Sequence[types.FunctionType],
        reached: dict[str, Reached],
        tests: dict[str, pytest.Item],
    ) -> object:
        """The test that sees the fault, nothing where none does, `-` where none comes to it, `!` if nothing has it.

        None if it makes a test run for too long. A test that fails without the fault, too, once it runs alone, tells
        nothing of it.
        """
        names = self._tests_of(number, reached)
        if not names:
            return "-"
        while names:
            limit = 20 + 5 * sum(reached[name].seconds for name in names)
            killer = _in_copies([partial(self._first_to_fail, mutant, functions, names, tests, limit)], 1)[0]
            if killer not in tests or _in_copies([partial(self._passes, tests[str(killer)], None)], 1)[0]:
                return killer
            names = names[names.index(str(killer)) + 1 :]
        return ""

    def _first_to_fail(
        self,
        mutant: Mutant,
        functions: Sequence[types.FunctionType],
        names: Sequence[str],
        tests: dict[str, pytest.Item],
        limit: float,
    ) -> str:
        signal.setitimer(signal.ITIMER_PROF, limit)
        signal.setitimer(signal.ITIMER_REAL, 10 * limit)  # of one that waits for what never comes
        if not plant(mutant, functions):
            return "!"
        for name, after in zip(names, [*names[1:], None], strict=True):
            if not self._passes(tests[name], tests.get(after or "")):
                return name
        return ""

    def _tests_of(self, number: int, reached: dict[str, Reached]) -> list[str]:
        """Tests that come to a fault: the quickest of each test function, then the next, as long as there is time."""
        of_each: defaultdict[str, int] = defaultdict(int)
        turns: list[tuple[int, float, str]] = []
        for name in sorted(reached, key=lambda name: reached[name].seconds):
            kind = name.partition("[")[0]
            if number in reached[name].faults and of_each[kind] < self.options.each:
                turns.append((of_each[kind], reached[name].seconds, name))
                of_each[kind] += 1
        shown, total = [], 0.0
        for _, seconds, name in sorted(turns):
            if total < self.options.seconds:
                total += seconds
                shown.append(name)
        return shown

    def _passes(self, item: pytest.Item, after: pytest.Item | None) -> bool:
        self.failed = False
        reports = runtestprotocol(item, log=False, nextitem=after)
        return not self.failed and not any(report.failed for report in reports)


def chosen(found: Iterable[list[Mutant]], options: Options) -> list[Mutant]:
    """As many as are wanted, of all that there are or of each file alike, by name; or those that are to be again."""
    found = list(found)
    if options.again is not None:
        by_name = {mutant.name: mutant for of_one in found for mutant in of_one}
        return [by_name[name] for name in options.again if name in by_name]
    chance = random.Random(options.seed)  # noqa: S311 - no secret
    if options.like is not None:
        ours, theirs = _once(found), _once(mutants(path, options.like) for path in core(options.like))
        both = sorted(ours.keys() & theirs.keys())
        print(f"{len(both)} faults are alike in both", flush=True)
        return [ours[alike] for alike in chance.sample(both, min(options.count, len(both)))]
    if options.even:
        of_files = [chance.sample(of_one, len(of_one)) for of_one in found]
        every = [mutant for row in zip_longest(*of_files) for mutant in row if mutant is not None]
    else:
        every = [mutant for of_one in found for mutant in of_one]
        chance.shuffle(every)
    return sorted(every[: options.count], key=lambda mutant: mutant.name)


def _once(found: Iterable[Iterable[Mutant]]) -> dict[Alike, Mutant]:
    """The faults of a checkout by what another can have in common with them, without those that are there twice."""
    of_each: defaultdict[Alike, list[Mutant]] = defaultdict(list)
    for of_one in found:
        for mutant in of_one:
            of_each[mutant.alike].append(mutant)
    return {alike: each[0] for alike, each in of_each.items() if len(each) == 1}


def core(root: Path) -> list[Path]:
    """The files of a checkout that its promises stand on."""
    return _files(path for name in DEFAULT if (path := root / "torchlint" / name).exists())


def _files(paths: Iterable[Path]) -> list[Path]:
    return [file for path in paths for file in (sorted(path.rglob("*.py")) if path.is_dir() else [path])]


def unseen(report: str) -> tuple[str, ...]:
    """The faults of a report that survived or never ran."""
    return tuple(name for name, seen_by in json.loads(report) if seen_by in ("", "-"))


def _some(items: Iterable[pytest.Item], most: int) -> list[pytest.Item]:
    """Of each test function as many tests, from all over its table."""
    kinds: dict[str, list[pytest.Item]] = {}
    for item in items:
        kinds.setdefault(item.nodeid.partition("[")[0], []).append(item)
    return [item for of_one in kinds.values() for item in of_one[:: -(-len(of_one) // most)]]


def _in_copies(
    tasks: Sequence[Callable[[], object]], jobs: int, say: Callable[[int, object], None] = lambda *_: None
) -> list[object]:
    """What each task gives, as JSON knows it, each in a copy of this process; None of one that was killed.

    `say` is told the number of each task and what it gives, as soon as it has ended.
    """
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
                say(number, results[number])
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
    parser.add_argument("--tree", type=Path, default=ROOT, help="another checkout, which this Python has installed")
    parser.add_argument("--like", type=Path, metavar="TREE", help="only faults that the core of this checkout has too")
    given = parser.parse_args()
    if given.like is not None and given.targets:
        parser.error("--like compares the core of both")
    again = unseen(given.again.read_text(encoding="utf-8")) if given.again is not None else None
    tree = given.tree.resolve()
    paths = _files(path.resolve() for path in given.targets) or core(tree)
    numbers = (given.count, given.seed, given.jobs, given.each, given.seconds, given.sample)
    like = given.like.resolve() if given.like is not None else None
    report = given.report.resolve() if given.report is not None else None
    options = Options(tuple(paths), *numbers, given.even, report, again, tree, like)
    os.chdir(tree)
    sys.path[:] = [place for place in sys.path if Path(place).resolve() != ROOT / "tools"]  # a tree's tests use its own
    plugin = Mutation(options)
    status = pytest.main(["-q", "-s", "-n0", "-p", "no:cacheprovider", *given.tests], plugins=[plugin])
    return int(status) or int(plugin.survivors > 0)


if __name__ == "__main__":
    sys.exit(main())
