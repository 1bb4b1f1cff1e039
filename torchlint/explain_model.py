"""`check --explain-model FILE:LINE`: what the model knows of a line, and why."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

from torchlint import regular
from torchlint.config import Configs
from torchlint.configfile import reason
from torchlint.discover import Found, discover
from torchlint.engine import examine, tell
from torchlint.facts import NOTHING, Facts, Telling
from torchlint.finding import NOTHING_WANTED, Wanted
from torchlint.registry import find
from torchlint.report.style import BOLD, Style, decide
from torchlint.run import CLEAN, Order, OutputError, facts_of, write_out
from torchlint.source import DecodeError, SourceFile, is_notebook

_PLACE = re.compile(r"(?P<path>.+?)(?::cell (?P<cell>\d+))?:(?P<row>\d+)", re.DOTALL)


class Place:
    """A line of a file that somebody asks about, and what there is to ask it with."""

    def __init__(self, order: Order, name: str, file: Found, source: SourceFile, row: int) -> None:
        self.name = name
        self.source = source
        self.row = row
        self._order = order
        self._file = file
        self._configs = Configs(order.overrides, order.cwd)
        self.settings = self._configs.for_file(file.path).settings_for(file.path)

    @property
    def head(self) -> str:
        """The place, and the line."""
        return f"{self.name}: {self.source.line(self.row).strip()}"

    def telling(self) -> Telling | None:
        """What is known of the line, other files asked; None where there is no code that can be read."""
        told = tell(self.source, self.settings, NOTHING, self.row)
        if told is None or not told.questions:
            return told

        def wanted(facts: Facts) -> Wanted:
            told = tell(self.source, self.settings, facts, self.row)
            return NOTHING_WANTED if told is None else told.questions

        return tell(self.source, self.settings, self._answers(told.questions, wanted), self.row)

    def facts(self) -> Facts:
        """What other files say to what the rules want to know."""
        rules = tuple(map(find, self.settings.rules))

        def wanted(facts: Facts) -> Wanted:
            return examine(self.source, rules, self.settings, facts).questions

        questions = wanted(NOTHING)
        return self._answers(questions, wanted) if questions else NOTHING

    def _answers(self, questions: Wanted, again: Callable[[Facts], Wanted]) -> Facts:
        others, _ = discover((".",), self._configs, self._order.cwd)
        return facts_of(self._file, questions, again, self._configs, self._order, others)


def place_of(order: Order, place: str, option: str) -> Place:
    """The line that `FILE:LINE` names. Raises `ConfigError` and `OutputError`."""
    match = _PLACE.fullmatch(place)
    if match is None or is_notebook(match["path"]) is not bool(match["cell"]):
        raise OutputError(
            f"{option} {place}: expected FILE:LINE, as in `train.py:41`, or of a notebook `train.ipynb:cell 3:4`"
        )
    path = match["path"]
    file = Found(Path(os.path.normpath(order.cwd / path)), path)
    try:
        source = SourceFile.from_bytes(path, regular.read(file.path))
    except OSError as error:
        raise OutputError(f"{path}: {reason(error)}") from None
    except DecodeError as error:
        raise OutputError(f"{path}: {error}") from None
    row = source.row(int(match["row"]), int(match["cell"]) if match["cell"] else None)
    if row is None:
        raise OutputError(f"{place}: no code that can be read begins on this line")
    return Place(order, place, file, source, row)


def is_place(name: str) -> bool:
    """Whether a name is that of a line, and not of a rule."""
    return _PLACE.fullmatch(name) is not None


def explain_model(order: Order, place: str) -> int:
    """Print it; the exit status. Raises `ConfigError` and `OutputError`."""
    found = place_of(order, place, "--explain-model")
    told = found.telling()
    if told is None:
        raise OutputError(f"{place}: no code that can be read begins on this line")
    lines = told_lines(told, found.head, Style(decide(order.color, sys.stdout, os.environ)))
    write_out("".join(f"{line}\n" for line in lines), sys.stdout)
    return CLEAN


def told_lines(told: Telling, head: str, style: Style) -> list[str]:
    """What is known, in lines below a head."""
    widest = max((len(name) for name, _ in told.held), default=0)
    runs = "how often is unknown" if told.frequency == "unknown" else told.frequency
    return [
        style.paint(head, BOLD),
        f"  runs {runs}",
        *(f"    {line}" for line in told.why),
        f"  autograd is {told.grad}",
        *(f"  {style.paint(name, BOLD)}{' ' * (widest - len(name))}  {words}" for name, words in told.held),
    ]
