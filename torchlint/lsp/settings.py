"""What a client sets, as the options of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from torchlint.config import Overrides

SECTION = "torchlint"
KEYS = frozenset("configuration select extendSelect ignore preview includeTests run enable".split())
Run = Literal["onType", "onSave"]
_NONE = Overrides()


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """The settings of one workspace folder. `overrides` stand above its configuration files, as options do."""

    overrides: Overrides = _NONE
    run: Run = "onType"
    enable: bool = True

    @classmethod
    def of(cls, values: object) -> tuple[ClientSettings, list[str]]:
        """Settings from the section of a client, and what is wrong with it, a line for each key.

        A key that is wrong counts as not set; a key that nobody knows may be the client's own.
        """
        if not isinstance(values, dict):
            return cls(), []
        problems: list[str] = []
        configuration = _taken(values, "configuration", str, problems)
        overrides = Overrides(
            config=(configuration,) if configuration else (),
            select=_words(values, "select", problems) or None,
            extend_select=_words(values, "extendSelect", problems),
            ignore=_words(values, "ignore", problems),
            preview=_taken(values, "preview", bool, problems),
            include_tests=_taken(values, "includeTests", bool, problems),
        )
        run: Run = "onSave" if values.get("run") == "onSave" else "onType"
        if values.get("run") not in (None, *get_args(Run)):
            problems.append(f"`torchlint.run` is {values['run']!r}; it can be `onType` or `onSave`")
        enable = _taken(values, "enable", bool, problems)
        return cls(overrides, run, enable is not False), problems


def _taken(values: Mapping[str, Any], key: str, kind: type, problems: list[str]) -> Any:  # noqa: ANN401 - of that kind
    value = values.get(key)
    if value is None or isinstance(value, kind):
        return value
    problems.append(f"`torchlint.{key}` is {value!r}; it has to be a {_WORDS[kind]}")
    return None


def _words(values: Mapping[str, Any], key: str, problems: list[str]) -> tuple[str, ...]:
    value = values.get(key) or []
    if isinstance(value, list) and all(isinstance(word, str) for word in value):
        return tuple(value)
    problems.append(f"`torchlint.{key}` is {value!r}; it has to be a list of rules")
    return ()


_WORDS = {str: "string", bool: "boolean"}
