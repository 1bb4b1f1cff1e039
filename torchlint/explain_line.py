"""`explain FILE:LINE`: what is known of a line, which rules looked at it, and why each spoke or was silent."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from typing import NamedTuple

from torchlint.explain_model import Place, place_of, told_lines
from torchlint.facts import Telling
from torchlint.reasons import NOTHING, Outcome, Verdict, verdicts
from torchlint.report.style import ALARM, BOLD, CODE, DIM, Style, decide
from torchlint.report.text import visible
from torchlint.role import is_of_tests
from torchlint.run import CLEAN, Order, OutputError, terminal_width, write_out

_NARROWEST = 40
_INKS = {Outcome.WARNING: ALARM, Outcome.NOTE: CODE, Outcome.SILENT: DIM, Outcome.SUPPRESSED: DIM}


class _Explained(NamedTuple):
    place: Place
    told: Telling
    found: list[Verdict]


def explain_line(order: Order, place: str, output_format: str) -> int:
    """Print it; the exit status. Raises `ConfigError` and `OutputError`."""
    found = place_of(order, place, "explain")
    told = found.telling()
    if told is None:
        raise OutputError(f"{place}: no code that can be read begins on this line")
    explained = _Explained(found, told, verdicts(found.source, found.settings, found.facts(), found.row))
    if output_format == "json":
        write_out(json.dumps(_json(explained), indent=2) + "\n", sys.stdout)
        return CLEAN
    style = Style(decide(order.color, sys.stdout, os.environ))
    lines = _lines(explained, style, terminal_width(sys.stdout))
    write_out("".join(f"{line}\n" for line in lines), sys.stdout)
    return CLEAN


def _lines(explained: _Explained, style: Style, width: int) -> list[str]:
    lines = told_lines(explained.told, explained.place.head, style)
    if is_of_tests(explained.place.settings.role, lambda: explained.place.source.text):
        return [*lines, "", "  the file holds tests, which are not checked unless `--include-tests` is given"]
    if not explained.found:
        return [*lines, "", "  no rule looks at anything that begins on this line"]
    shown = [verdict for verdict in explained.found if not is_elsewhere(verdict)]
    widest = max((len(verdict.rule.name) for verdict in shown), default=0)
    lines.append("")
    for verdict in shown:
        name = f"{verdict.rule.code} {verdict.rule.name:{widest}}"
        outcome = style.paint(f"{verdict.outcome.value:{_WIDEST}}", _INKS[verdict.outcome])
        indent = " " * (len(name) + _WIDEST + 6)
        first, *more = [
            line for words in (said(verdict), *because(verdict)) for line in _wrapped(words, width - len(indent))
        ]
        lines += [f"  {style.paint(name, BOLD)}  {outcome}  {first}", *(f"{indent}{line}" for line in more)]
    others = [verdict.rule.code for verdict in explained.found if is_elsewhere(verdict)]
    if others:
        lines.append(f"  not what these look for: {', '.join(others)}")
    return lines


def _wrapped(words: str, width: int) -> list[str]:
    lines = textwrap.wrap(visible(words), max(width, _NARROWEST), break_long_words=False, break_on_hyphens=False)
    return [lines[0], *(f"  {line}" for line in lines[1:])]


def is_elsewhere(verdict: Verdict) -> bool:
    """Whether the rule saw at once that this is nothing for it."""
    is_code = bool(verdict.reasons) and verdict.reasons[0].is_code
    return verdict.outcome is Outcome.SILENT and (is_code or verdict.words == NOTHING)


_WIDEST = max(len(outcome.value) for outcome in Outcome)


def said(verdict: Verdict) -> str:
    """What a rule says, or the nearest reason why not, with its id."""
    if verdict.outcome is Outcome.SILENT and verdict.reasons and verdict.reasons[0].words == verdict.words:
        return f"{verdict.words} ({verdict.reasons[0].id})"
    return verdict.words


def because(verdict: Verdict) -> list[str]:
    """What the nearest reason rests on, or what a note doubts."""
    if verdict.outcome is Outcome.NOTE:
        return [f"but {reason.words} ({reason.id})" for reason in verdict.reasons]
    further = [reason for reason in verdict.reasons if reason.words != verdict.words and not reason.is_code]
    return [f"since {_clause(reason.words)} ({reason.id})" for reason in further]


def _clause(words: str) -> str:
    """A sentence as a clause."""
    return words[:1].lower() + words[1:].rstrip(".") if words[1:2].islower() else words.rstrip(".")


def _json(explained: _Explained) -> dict[str, object]:
    told = explained.told
    return {
        "place": explained.place.name,
        "frequency": told.frequency,
        "why": list(told.why),
        "autograd": told.grad,
        "held": dict(told.held),
        "rules": [
            {
                "code": verdict.rule.code,
                "name": verdict.rule.name,
                "outcome": verdict.outcome.value,
                "words": verdict.words,
                "reasons": [reason._asdict() for reason in verdict.reasons],
            }
            for verdict in explained.found
        ],
    }
