"""One source to what is reported about it; nothing here touches the disk, prints or exits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchlint import engine, registry, suppress
from torchlint.facts import NOTHING
from torchlint.finding import Result
from torchlint.role import Role, holds_tests

if TYPE_CHECKING:
    from torchlint.facts import Facts
    from torchlint.settings import Settings
    from torchlint.source import SourceFile


def lint(source: SourceFile, settings: Settings, facts: Facts = NOTHING) -> Result:
    """The findings of the active rules that no comment silences, sorted, and diagnostics."""
    if settings.role is Role.TEST or (settings.role is Role.TEST_BY_NAME and holds_tests(source.text)):
        return Result()
    rules = tuple(registry.find(name) for name in settings.rules)
    result = Result()
    if engine.mentions(source.text.encode(errors="replace"), rules):
        result = engine.examine(source, rules, settings, facts)
    return suppress.apply(source, result, settings)
