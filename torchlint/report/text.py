"""Text as a terminal shows it: nothing that steers the terminal, and each code point's width in columns."""

from __future__ import annotations

import re
from functools import cache

TAB = "    "
ELLIPSIS = "…"
_REPLACEMENT = "\ufffd"
# Marks that reorder the text around them, so that code reads other than it runs (CVE-2021-42574).
_REORDERING = frozenset("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
_SOFT_HYPHEN = "\u00ad"
# What the runners of GitHub and Azure take for a command, wherever it stands in a line.
COMMAND = re.compile(r"##(?=(?:vso)?\[)", re.IGNORECASE)


def visible(text: str) -> str:
    """`text` on one line, a tab as four blanks, and a picture of every other control character.

    Nothing in it is a command to the runner of a CI service, unless the line begins with it.
    """
    text = _harmless(text)
    if text.isascii() and text.isprintable():
        return text
    return "".join(_look(character)[0] for character in text)


def opening(path: str) -> str:
    """A path as it may begin a line, where two colons would be a command to GitHub's runner."""
    shown = visible(path)
    return f"./{shown}" if shown.lstrip().startswith("::") else shown


def wrapped(text: str, columns: int, indent: int, first: int | None = None) -> str:
    """What is visible in lines of that many columns, those below the first behind blanks; a long word is not broken.

    `first` is how many columns of the first line are taken, as many as those blanks if it is not said.
    """
    lines: list[str] = []
    line, room = "", columns - (indent if first is None else first)
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if line and width(longer) > room:
            lines.append(line)
            line, room = word, columns - indent
        else:
            line = longer
    return f"\n{' ' * indent}".join((*lines, line))


def width(text: str) -> int:
    """How many columns `visible(text)` fills."""
    if text.isascii() and text.isprintable():
        return len(text)
    return sum(_look(character)[1] for character in text)


def crop(text: str, start: int, end: int) -> str:
    """Those columns of `visible(text)` that lie in `start:end`, an ellipsis for what is left out on either side."""
    text = _harmless(text)
    total = width(text)
    if start == 0 and total <= end:
        return visible(text)
    left = ELLIPSIS if start else ""
    right = ELLIPSIS if total > end else ""
    if total <= start:
        return left if text.strip() else ""
    first, last = start + len(left), end - len(right)
    shown: list[str] = []
    column = 0
    for character in text:
        look, columns = _look(character)
        overlap = min(column + columns, last) - max(column, first)
        if overlap == columns and first <= column <= last:
            shown.append(look)
        elif overlap > 0:  # half of a wide character, or a part of a tab
            shown.append(" " * overlap)
        column += columns
    return left + "".join(shown) + right


def _harmless(text: str) -> str:
    return COMMAND.sub(f"#{_REPLACEMENT}", text) if "##" in text else text


@cache
def _look(character: str) -> tuple[str, int]:
    """What is shown for one code point, and the columns it fills."""
    if " " <= character <= "~":
        return character, 1
    if character == "\t":
        return TAB, len(TAB)
    if character < " ":
        return chr(0x2400 + ord(character)), 1
    if character == "\x7f":
        return "\u2421", 1
    from unicodedata import category, east_asian_width  # a shared library that plain ASCII does without

    kind = category(character)
    if kind in ("Cc", "Cs", "Zl", "Zp") or character in _REORDERING:
        return _REPLACEMENT, 1
    if (kind in ("Mn", "Me", "Cf") and character != _SOFT_HYPHEN) or "\u1160" <= character <= "\u11ff":
        return character, 0
    return character, 2 if east_asian_width(character) in "WF" else 1
