"""Looks for programs that break a law: `python -m tests.fuzz --minutes N [--seed S]`.

Programs are made of the fixtures, of the examples on the pages, of `tests/programs.py` and of the code in `--corpus`, by
changes that know the grammar. Each is held to the laws of `tests/laws.py`, and to two more: a parse in pieces gives the
tree of a whole one, and no program takes a hundred times as long as its parse. What breaks one is cut down and
kept with `--keep` in `tests/fuzzed`, where `tests/test_fuzzed.py` holds it to the laws from then on.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import random
import re
import secrets
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))  # as pytest has it

import laws  # noqa: E402 - after the path
import libcst as cst  # noqa: E402
from mutations import Mutator, Pool, parsed_if_python, smaller  # noqa: E402
from programs import program  # noqa: E402

from torchlint import registry  # noqa: E402
from torchlint.role import Role  # noqa: E402
from torchlint.settings import Settings  # noqa: E402
from torchlint.syntax.incremental import Pieces  # noqa: E402

FOUND = HERE / "fuzzed"
# Laws take some thirty texts; a check alone takes a tenth of a second.
PATIENCE = 60
_CUTTING = 120.0
_SHARE = 0.1  # of the programs are held to the laws that take long


def settings() -> Settings:
    """All rules, those in preview too."""
    names = tuple(rule.name for rule in sorted(registry.all_rules(), key=lambda rule: rule.code))
    return Settings(names, (2, 9), 4, (), Role.CODE)


def fault(text: str, before: str = "", *, thorough: bool = True) -> str | None:
    """The law that a program breaks, in a word; None if it keeps them. `before` is a text that was read before it.

    Unless `thorough`, the laws that take other ways of writing it are left out, which takes a tenth of the time.
    """
    try:
        _parse_in_pieces(before, text)
        (laws.obey_laws if thorough else laws.obey_quick_laws)(text, settings())
    except (KeyboardInterrupt, SystemExit):
        raise
    except TimeoutError:
        return "takes longer than a minute"
    except AssertionError as error:
        return _in_a_word(str(error))
    except BaseException as error:  # noqa: BLE001 - what else goes wrong is what is looked for
        place = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__} in {place.name}"
    return None


def _parse_in_pieces(before: str, text: str) -> None:
    pieces = Pieces()
    for each in (before, text):
        if each:
            read = pieces.parse(each)
    assert read.deep_equals(cst.parse_module(text)), "a parse in pieces gives another tree"
    assert read.code == text, "a parse in pieces gives another text"


def _in_a_word(message: str) -> str:
    """What went wrong, without what is particular to one program."""
    first = message.partition("\n")[0]
    crash = re.search(r"message=[\"']([\w-]+) failed on .*?: (\w+): .*? \((\w+), line", message)
    if crash:
        return f"{crash[1]}: {crash[2]} in {crash[3]}"
    rules = sorted(set(re.findall(r"'([a-z]+(?:-[a-z0-9]+)+)\??'", first)) & set(settings().rules))
    return " ".join([re.split(r"[\[{(`'\"]", first)[0].strip()[:100], *rules[:2]])


def cut(text: str, before: str, kind: str, seconds: float = _CUTTING) -> tuple[str, str]:
    """The smallest program found in the time that breaks the same law."""
    end = time.monotonic() + seconds
    if before and fault_in_time(text) == kind:
        before = ""
    has_shrunk = True
    while has_shrunk:
        has_shrunk = False
        for new in smaller(cst.parse_module(text)):
            if time.monotonic() > end:
                return text, before
            if len(new.code) < len(text) and parsed_if_python(new.code) and fault_in_time(new.code, before) == kind:
                text, has_shrunk = new.code, True
                break
    return text, before


def fault_in_time(text: str, before: str = "", *, thorough: bool = True) -> str | None:
    """As `fault`, which is ended after a minute."""
    if not hasattr(signal, "SIGALRM"):
        return fault(text, before, thorough=thorough)

    def end(_signal: int, _frame: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, end)
    signal.alarm(PATIENCE)
    try:
        return fault(text, before, thorough=thorough)
    finally:
        signal.alarm(0)


def sources(corpus: Iterable[Path]) -> Iterator[str]:
    """The code that programs are made of."""
    top = HERE.parent
    for file in sorted(top.glob("fixtures/*/*.py")):
        yield file.read_text(encoding="utf-8")
    for page in sorted(top.glob("rules/*/*.md")):
        yield from re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    for folder in corpus:
        for file in sorted(folder.rglob("*.py")):
            data = file.read_bytes()
            if b"torch" in data and len(data) < 100_000:
                yield data.decode(errors="replace")


class Fuzzer:
    """One run: programs by one seed, and what was found."""

    def __init__(self, seed: int, corpus: Iterable[Path] = ()) -> None:
        self.random = random.Random(seed)  # noqa: S311 - a seed is no secret
        self.modules = [module for text in sources(corpus) if (module := parsed_if_python(text)) is not None]
        pool = Pool()
        for module in self.modules:
            pool.add(module)
        self.mutator = Mutator(self.random, pool)
        self.count = 0
        self.found: dict[str, tuple[str, str]] = {}
        self.times: list[tuple[float, str]] = []

    def program(self) -> tuple[str, str]:
        """A program, and one that it was made of."""
        if self.random.random() < 0.1:
            first = cst.parse_module(program(self.random.randrange(1 << 30)))
        else:
            first = self.mutator.start(self.random.choice(self.modules))
        return first.code, self.mutator.changed(first).code

    def run(self, until: Callable[[], bool], say: Callable[[str], None]) -> None:
        """Make programs until it is time."""
        while not until():
            before, text = self.program()
            if parsed_if_python(text) is None:
                continue
            started = time.process_time()
            thorough = self.random.random() < _SHARE
            kind = fault_in_time(text, before if parsed_if_python(before) is not None else "", thorough=thorough)
            self.times = sorted([*self.times, (time.process_time() - started, text)], reverse=True)[:20]
            self.count += 1
            if kind is not None and kind not in self.found:
                say(f"{kind}: {len(text)} characters; cutting it down")
                self.found[kind] = cut(text, before, kind)
                small, first = self.found[kind]
                say(f"{first}--- then\n{small}" if first else small)


def keep(text: str, before: str) -> Path:
    """Write a program to where it is tested from now on; of two texts that are read one after the other both."""
    name = hashlib.sha256(text.encode()).hexdigest()[:12]
    FOUND.mkdir(exist_ok=True)
    if before:
        (FOUND / f"{name}.before.txt").write_text(before, encoding="utf-8", newline="")
    file = FOUND / f"{name}.txt"
    file.write_text(text, encoding="utf-8", newline="")
    return file


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=None, help="that of an earlier run; else a fresh one")
    parser.add_argument("--corpus", type=Path, action="append", default=[], help="a folder with more code")
    parser.add_argument("--keep", action="store_true", help="keep what is found in tests/fuzzed")
    given = parser.parse_args()
    seed = secrets.randbits(32) if given.seed is None else given.seed
    print(f"seed {seed}", flush=True)
    end = time.monotonic() + 60 * given.minutes
    fuzzer = Fuzzer(seed, given.corpus)
    with contextlib.suppress(KeyboardInterrupt):  # what was found until then is told
        fuzzer.run(lambda: time.monotonic() > end, lambda line: print(line, flush=True))
    slowest = fuzzer.times[: max(1, fuzzer.count // 1000)]
    print(f"{fuzzer.count} programs of seed {seed}, {len(fuzzer.found)} faults")
    if slowest:
        print(f"the slowest 0.1 %: {slowest[-1][0]:.1f} to {slowest[0][0]:.1f} s for all laws")
    for kind, (text, before) in fuzzer.found.items():
        print(f"- {kind}" + (f": {keep(text, before).relative_to(HERE.parent)}" if given.keep else ""))
    return bool(fuzzer.found)


if __name__ == "__main__":
    sys.exit(main())
