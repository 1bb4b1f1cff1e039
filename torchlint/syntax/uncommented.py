"""What a text tells the machine: the code without what is there for people, its comments, docstrings and messages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

_PROSE = re.compile(
    r"#[^\r\n]*"
    r'|(?P<long>"""|\'\'\')(?:\\.|[^\\])*?(?P=long)'
    r'|"(?:\\.|[^"\\\r\n])*"'
    r"|'(?:\\.|[^'\\\r\n])*'",
    re.DOTALL,
)
_SPACE = re.compile(r"\s")
_FIELD = re.compile(r"\{[^{}]*\}")
_PREFIX = "bBfFrRtTuU"


@lru_cache(maxsize=4)  # a file is asked for when it is read, and again by what it says as a whole
def uncommented(text: str) -> str:
    """The text without comments, and with nothing in its docstrings and in strings of several words.

    What is left of strings are single words, which programs are told and compare: `"cuda:0"`, `"16-mixed"`; and what an
    f-string computes. No rows are lost but those within long strings.
    """
    if "#" not in text and '"' not in text and "'" not in text:
        return text
    return _PROSE.sub(_remains, text)


def comments(text: str) -> Iterator[str]:
    """The comments in a text that does not begin within a string, in their order."""
    return (match[0] for match in _PROSE.finditer(text) if match[0].startswith("#"))


def may_be_comments(text: str) -> list[str]:
    """The rows of a text from their first sign of a comment on, which may stand in a string."""
    return [row[row.index("#") :] for row in text.split("\n") if "#" in row]


def _remains(match: re.Match[str]) -> str:
    """What is left of a comment or a string."""
    found = match[0]
    if found[0] == "#":
        return ""
    if match["long"] is None and _SPACE.search(found) is None and not _is_statement(match):
        return found
    is_formatted = match.string[max(match.start() - 2, 0) : match.start()].lower().find("f") >= 0
    fields = _FIELD.findall(found) if is_formatted else ()
    return f"{found[0]}{' '.join(fields)}{found[0]}"


def _is_statement(match: re.Match[str]) -> bool:
    """Whether nothing else stands on the rows of a string, which makes it one for readers."""
    text, start, end = match.string, match.start(), match.end()
    before = text[text.rfind("\n", 0, start) + 1 : start]
    if before.strip().strip(_PREFIX):
        return False
    after = text[end : end + 1]
    while after in (" ", "\t"):
        end += 1
        after = text[end : end + 1]
    return after in ("", "\r", "\n", "#", ";")
