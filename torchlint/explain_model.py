"""`check --explain-model FILE:LINE`: what the model knows of a line, and why."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from torchlint.config import Configs
from torchlint.configfile import reason
from torchlint.discover import Found, discover
from torchlint.engine import tell
from torchlint.facts import NOTHING
from torchlint.report.style import BOLD, Style, decide
from torchlint.run import CLEAN, Order, OutputError, facts_of, write_out
from torchlint.source import DecodeError, SourceFile, is_notebook

if TYPE_CHECKING:
    from torchlint.facts import Telling


_PLACE = re.compile(r"(?P<path>.+?)(?::cell (?P<cell>\d+))?:(?P<row>\d+)", re.DOTALL)


def explain_model(order: Order, place: str) -> int:
    """Print it; the exit status. Raises `ConfigError` and `OutputError`."""
    match = _PLACE.fullmatch(place)
    if match is None or is_notebook(match["path"]) is not bool(match["cell"]):
        raise OutputError(
            f"--explain-model {place}: expected FILE:LINE, as in `train.py:41`, or of a notebook `train.ipynb:cell 3:4`"
        )
    path = match["path"]
    file = Found(Path(os.path.normpath(order.cwd / path)), path)
    try:
        source = SourceFile.from_bytes(path, file.path.read_bytes())
    except OSError as error:
        raise OutputError(f"{path}: {reason(error)}") from None
    except DecodeError as error:
        raise OutputError(f"{path}: {error}") from None
    configs = Configs(order.overrides, order.cwd)
    settings = configs.for_file(file.path).settings_for(file.path)
    row = source.row(int(match["row"]), int(match["cell"]) if match["cell"] else None)
    told = tell(source, settings, NOTHING, row) if row is not None else None
    if row is not None and told is not None and told.questions:
        others, _ = discover((".",), configs, order.cwd)
        told = tell(source, settings, facts_of(file, told.questions, configs, order, others), row)
    if row is None or told is None:
        raise OutputError(f"{place}: no code that can be read begins on this line")
    lines = _lines(told, f"{place}: {source.line(row).strip()}", Style(decide(order.color, sys.stdout, os.environ)))
    write_out("".join(f"{line}\n" for line in lines), sys.stdout)
    return CLEAN


def _lines(told: Telling, head: str, style: Style) -> list[str]:
    widest = max((len(name) for name, _ in told.held), default=0)
    runs = "how often is unknown" if told.frequency == "unknown" else told.frequency
    return [
        style.paint(head, BOLD),
        f"  runs {runs}",
        *(f"    {line}" for line in told.why),
        f"  autograd is {told.grad}",
        *(f"  {style.paint(name, BOLD)}{' ' * (widest - len(name))}  {words}" for name, words in told.held),
    ]
