"""The resolved options that decide what is reported for one file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from torchlint.finding import Severity
from torchlint.role import Role

OptionValue: TypeAlias = "str | int | float | bool | tuple[str, ...]"


@dataclass(frozen=True, slots=True)
class Settings:
    """What a lint of one file depends on, besides its text. Hashable and deterministic: it is part of cache keys.

    `rules` are the names of the active rules, sorted by code. `options` maps a rule's name to its options. `role` is
    what the file's path says that it is there for; tests that are to be checked like other code have no role.
    `severities` are those of rules for which the configuration says so, by name. `hot` are the functions of the file
    that it declares to run per batch: `fit`, `Class.method`.
    """

    rules: tuple[str, ...]
    target_torch: tuple[int, int] = (2, 0)
    dataloader_workers: int = 4
    options: tuple[tuple[str, tuple[tuple[str, OptionValue], ...]], ...] = field(default=())
    role: Role = Role.CODE
    severities: tuple[tuple[str, Severity], ...] = ()
    hot: tuple[str, ...] = ()

    def option(self, rule: str, key: str, default: OptionValue) -> OptionValue:
        """The value of one rule's option, or `default`."""
        for name, pairs in self.options:
            if name == rule:
                for found, value in pairs:
                    if found == key:
                        return value
        return default
