"""The ways into the code that is measured: a workload's `run`, a function, a `bench_*` generator, a whole script."""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.util
import inspect
import os
import runpy
import sys
from typing import TYPE_CHECKING, Any

from torchlint.verify.inside.channel import Closed
from torchlint.verify.inside.pace import Again, Pace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager
    from types import ModuleType

    Step = Callable[[], object]


STOOD_IN_FOR = ("torchvision", "transformers")
"""Libraries that a rule's files import where there are any, and else do the same in a few lines."""


class EntryError(Exception):
    """The way in does not exist or is not what it should be; the text is for people."""


class ExitedError(Exception):
    """The program left with a status of failure; what it has printed says more."""


class Entry:
    """Code with a set-up and a unit of work that is run again and again."""

    def __init__(self, set_up: Callable[[], AbstractContextManager[tuple[Step, Any]]]) -> None:
        """`set_up` gives the unit of work and the state behind it, and tears down on leaving."""
        self._set_up = set_up
        self.state: Any = None

    def drive(self, pace: Pace) -> None:
        """Run for as long as the controller wants, from the set-up again when it says so. Ends by `Closed`."""
        while True:
            try:
                pace.wait()
                with self._set_up() as (step, self.state):
                    pace.begin()
                    while pace.is_ours:
                        pace.tick(step())
                    raise Closed  # a forked copy that came back from the code
            except Again:
                self.state = None


def workload(path: str, device: str, size: str) -> Entry:
    """A rule's file: `setup(device, size)` and `run(state)`. Raises `EntryError`.

    It runs the same wherever it does: of libraries that it brings a stand-in for, it gets that.
    """
    modules: dict[str, Any] = sys.modules
    modules.update(dict.fromkeys(STOOD_IN_FOR))
    module = load(path, "workload")
    for name in ("setup", "run"):
        if not callable(getattr(module, name, None)):
            raise EntryError(f"{os.path.basename(path)} has no function `{name}`")  # noqa: PTH119 - no Path here

    @contextlib.contextmanager
    def set_up() -> Iterator[tuple[Step, Any]]:
        state = module.setup(device, size)
        yield (lambda: module.run(state)), state

    return Entry(set_up)


def function(name: str, root: str) -> Entry:
    """`package.module:function` or `path.py:function`: a step without arguments, or a generator. Raises `EntryError`.

    A generator does its set-up, yields the callable that is timed (or a pair: that, and the state to compare), and
    tears down.
    """
    step = _found(name, root)
    kind = _unfit(step)
    if kind:
        raise EntryError(f"`{name}` is {kind}; an entry is a plain function, or a generator of one")
    with contextlib.suppress(ValueError):  # a built-in may have no signature
        try:
            inspect.signature(step).bind()
        except TypeError:
            raise EntryError(f"`{name}` takes arguments; an entry is a function that takes none") from None
    return Entry(lambda: _generated(name, step) if inspect.isgeneratorfunction(step) else _plain(step))


def _unfit(step: object) -> str:
    """What it is, if it can be called without doing the work."""
    if inspect.isclass(step):
        return "a class"
    if inspect.iscoroutinefunction(step):
        return "a coroutine"
    return "an asynchronous generator" if inspect.isasyncgenfunction(step) else ""


@contextlib.contextmanager
def _plain(step: Step) -> Iterator[tuple[Step, Any]]:
    yield step, None


@contextlib.contextmanager
def _generated(name: str, generate: Callable[[], Any]) -> Iterator[tuple[Step, Any]]:
    running = generate()
    given = next(running, None)
    timed, state = given if isinstance(given, tuple) and len(given) == 2 else (given, None)
    if not callable(timed):
        what = "nothing" if given is None else f"`{type(given).__name__}`"
        raise EntryError(f"`{name}` has to yield the function that is timed, and yielded {what}")
    try:
        yield timed, state
    finally:
        next(running, None)
        running.close()


class Script:
    """A whole program, which a clock of steps interrupts."""

    state: Any = None

    def __init__(self, path: str, arguments: list[str], clock: Callable[[Pace], AbstractContextManager[None]]) -> None:
        self._path = path
        self._arguments = arguments
        self._clock = clock

    def drive(self, pace: Pace) -> None:
        """Run the program as `python PATH ARGUMENTS` would, and again for a command that goes on. Ends by `Closed`."""
        pace.wait()
        folder = os.path.dirname(os.path.abspath(self._path))  # noqa: PTH100, PTH120 - as Python does
        sys.path.insert(0, folder)
        self._run(pace)
        pace.end()
        while True:
            gc.collect()  # what the run before has left
            fails = ""
            try:
                self._run(pace)
            except Exception as error:  # noqa: BLE001 - anything may be unfit for that
                fails = f"{type(error).__name__}: {error}"
            pace.end(fails)

    def _run(self, pace: Pace) -> None:
        sys.argv = [self._path, *self._arguments]
        with self._clock(pace):
            try:
                runpy.run_path(self._path, run_name="__main__")
            except SystemExit as leaving:
                if leaving.code not in (None, 0):
                    name = os.path.basename(self._path)  # noqa: PTH119 - no Path here
                    status = leaving.code if isinstance(leaving.code, int) else 1
                    if status is not leaving.code:
                        print(leaving.code, file=sys.stderr)  # noqa: T201 - as Python does
                    raise ExitedError(f"{name} exited with status {status}") from None


def load(path: str, name: str) -> ModuleType:
    """The module in that file, under a name that its own subprocesses can import it by. Raises `EntryError`."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None or not os.path.isfile(path):  # noqa: PTH113 - no Path here
        raise EntryError(f"there is no Python file {path}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _found(name: str, root: str) -> Callable[[], Any]:
    where, _, attribute = name.rpartition(":")
    if not where or not attribute:
        raise EntryError(f"`{name}` is no entry; write `module:function` or `file.py:function`")
    if where.endswith(".py"):
        module = load(os.path.join(root, where), os.path.basename(where)[:-3])  # noqa: PTH118, PTH119 - no Path here
    else:
        try:
            module = importlib.import_module(where)
        except ModuleNotFoundError as error:
            raise EntryError(f"cannot import `{where}` for the entry `{name}`: {error}") from None
    found: Any = module
    for part in attribute.split("."):
        found = getattr(found, part, None)
    if not callable(found):
        raise EntryError(f"`{where}` has no function `{attribute}`")
    return found
