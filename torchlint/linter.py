"""One source to what is reported about it; nothing here touches the disk, prints or exits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlint import engine, registry, suppress
from torchlint.facts import NOTHING, Asked
from torchlint.finding import Result
from torchlint.role import Role, holds_tests

if TYPE_CHECKING:
    from torchlint.facts import Answers, Facts
    from torchlint.settings import Settings
    from torchlint.source import SourceFile


def lint(source: SourceFile, settings: Settings, facts: Facts = NOTHING) -> Result:
    """The findings of the active rules that no comment silences, sorted, and diagnostics."""
    return lint_and_answer(source, settings, facts, Asked())[0]


def lint_and_answer(
    source: SourceFile, settings: Settings, facts: Facts, asked: Asked
) -> tuple[Result, Answers | None]:
    """As `lint`, and what the source says to what is asked of it, if anything is.

    None also where linting it takes no parse: it is not made for the answers, which may not be needed in the end.
    """
    if settings.role is Role.TEST or (settings.role is Role.TEST_BY_NAME and holds_tests(source.text)):
        return Result(), None
    rules = tuple(registry.find(name) for name in settings.rules)
    if not engine.mentions(source.text.encode(errors="replace"), rules):
        return suppress.apply(source, Result(), settings), None
    result, answers = engine.examine_and_answer(source, rules, settings, facts, asked)
    return suppress.apply(source, result, settings), answers if asked else None
