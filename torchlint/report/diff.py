"""A unified diff as git writes it, which `git apply` and `patch -p1` take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from torchlint.report.style import BOLD, CODE, DELETED, INSERTED, PLAIN, Style
from torchlint.report.text import visible

_CONTEXT = 3
_NO_NEWLINE = "\\ No newline at end of file\n"
_INKS = {"-": DELETED, "+": INSERTED}
_ESCAPES = {"\t": "\\t", "\n": "\\n", "\r": "\\r", '"': '\\"', "\\": "\\\\"}


def unified(path: str, before: str, after: str, style: Style = PLAIN, *, exact: bool = True) -> str:
    """The difference between two versions of the file, or the cell, shown as `path`; empty where there is none.

    Lines end at LF alone, as in git, so that CR LF and lone CR stay in the lines they end. Without `exact` the text
    is meant for eyes: nothing in it steers a terminal, and it is no patch.
    """
    old, new = _lines(before), _lines(after)
    head = common(old, new)
    tail = common(old[head:][::-1], new[head:][::-1])
    lines = [
        style.paint(f"{sign} {name if exact else visible(name.rstrip())}", BOLD) + "\n"
        for sign, name in (("---", _name("a", path)), ("+++", _name("b", path)))
    ]
    first = max(0, head - _CONTEXT)
    old, new = old[first : len(old) - max(0, tail - _CONTEXT)], new[first : len(new) - max(0, tail - _CONTEXT)]
    groups = list(SequenceMatcher(None, old, new).get_grouped_opcodes(_CONTEXT))
    for group in groups:
        (_, i1, _, j1, _), (_, _, i2, _, j2) = group[0], group[-1]
        ranges = f"@@ -{_range(first + i1, i2 - i1)} +{_range(first + j1, j2 - j1)} @@"
        lines.append(style.paint(ranges, CODE) + "\n")
        for tag, *bounds in group:
            lines.extend(_dress(sign, line, style, exact=exact) for sign, line in _hunk(tag, bounds, old, new))
    return "".join(lines) if groups else ""


def _hunk(tag: str, bounds: list[int], old: list[str], new: list[str]) -> Iterator[tuple[str, str]]:
    i1, i2, j1, j2 = bounds
    if tag == "equal":
        yield from ((" ", line) for line in old[i1:i2])
        return
    yield from (("-", line) for line in old[i1:i2])
    yield from (("+", line) for line in new[j1:j2])


def _dress(sign: str, line: str, style: Style, *, exact: bool) -> str:
    text = line.removesuffix("\n")
    shown = sign + (text if exact else visible(text.removesuffix("\r")))
    ending = "\n" if line.endswith("\n") else "\n" + _NO_NEWLINE
    return (style.paint(shown, _INKS[sign]) if sign in _INKS else shown) + ending


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    last = lines.pop()
    return [*(f"{line}\n" for line in lines), *([last] if last else [])]


def common(old: Sequence[str], new: Sequence[str]) -> int:
    """How many lines at the front are the same."""
    return next((i for i, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new)))


def _range(start: int, length: int) -> str:
    """A range of lines; an empty one is named by the line before it."""
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"


def _name(side: str, path: str) -> str:
    """The file's name on one side, quoted where git would, with the tab that ends a name with a blank in it."""
    name = f"{side}/{path.lstrip('/')}"
    if any(character < " " or character in '"\\\x7f' for character in name):
        return '"' + "".join(_ESCAPES.get(c) or (c if " " <= c != "\x7f" else f"\\{ord(c):03o}") for c in name) + '"'
    return f"{name}\t" if " " in name else name
