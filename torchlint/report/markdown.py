"""The Markdown of rule pages on a terminal."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from torchlint.report.style import ALARM, BOLD, CODE, DIM, FRAME, HINT, INSERTED, ITALIC, Style
from torchlint.report.text import visible, width

_INDENT = "    "
_NARROWEST = 30
_HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*#*$")
_FENCE = re.compile(r"(`{3,}|~{3,})\s*(.*)$")
_ITEM = re.compile(r"(\s*)([-*+]|\d{1,3}[.)])\s+(.*)$")
_DELIMITERS = re.compile(r"\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?$")
_CELL = re.compile(r"(?<!\\)\|")
_COMMENT = re.compile(r"""(?:[^#"']|"[^"]*"|'[^']*')*?(#.*)$""")
_INLINE = re.compile(
    r"(?P<fence>`+)(?P<code>.+?)(?P=fence)(?!`)"
    r"|\*\*(?P<bold>.+?)\*\*"
    r"|(?<!\w)\*(?P<star>[^\s*](?:[^*]*[^\s*])?)\*(?!\w)"
    r"|(?<!\w)_(?P<line>[^\s_](?:[^_]*[^\s_])?)_(?!\w)"
    r"|\[(?P<text>[^\]]+)\]\((?P<url>[^)\s]+)\)"
    r"|<(?P<bare>https?://[^>\s]+)>"
)
_LABELS = {"bad": ("slow", ALARM), "good": ("fast", INSERTED)}

# What is written without a blank: pieces of text, each with its ink and link.
_Word = list[tuple[str, str, str | None]]


def render(text: str, style: Style, columns: int) -> str:
    """`text` for a terminal of that many columns; code and tables are never broken."""
    blocks = ["\n".join(block) for block in _blocks(text.splitlines(), style, max(columns, _NARROWEST))]
    return "\n\n".join(blocks) + "\n" if blocks else ""


def _blocks(lines: list[str], style: Style, columns: int) -> Iterator[list[str]]:
    at = 0
    while at < len(lines):
        line = lines[at]
        fence = _FENCE.match(line.strip())
        if not line.strip():
            at += 1
        elif fence:
            end = next((i for i in range(at + 1, len(lines)) if lines[i].strip() == fence[1]), len(lines))
            yield _code(lines[at + 1 : end], fence[2], style)
            at = end + 1
        elif heading := _HEADING.match(line):
            yield [_heading(len(heading[1]), heading[2], style)]
            at += 1
        elif at + 1 < len(lines) and "|" in line and _DELIMITERS.match(lines[at + 1].strip()):
            end = _until(lines, at, lambda row: "|" not in row)
            yield _table(line, lines[at + 1], lines[at + 2 : end], style)
            at = end
        elif _ITEM.match(line):
            end = _until(lines, at, lambda row: not (row[:1].isspace() or _ITEM.match(row)))
            yield _list(lines[at:end], style, columns)
            at = end
        elif line.lstrip().startswith(">"):
            end = _until(lines, at, lambda row: not row.lstrip().startswith(">"))
            quote = " ".join(row.lstrip().removeprefix(">").strip() for row in lines[at:end])
            yield [f"{style.paint('|', DIM)} {row}" for row in _wrap(quote, style, columns - 2)]
            at = end
        else:
            end = _until(lines, at, lambda row: bool(_HEADING.match(row) or _FENCE.match(row) or _ITEM.match(row)))
            yield _wrap(" ".join(row.strip() for row in lines[at:end]), style, columns)
            at = end


def _until(lines: list[str], start: int, ends: Callable[[str], object]) -> int:
    """The index behind a block that a blank line ends or a line for which `ends` holds."""
    at = start + 1
    while at < len(lines) and lines[at].strip() and not ends(lines[at]):
        at += 1
    return at


def _heading(level: int, text: str, style: Style) -> str:
    mark = "" if style.color else "#" * level + " "
    return mark + _paint(_words(text, style), style, HINT if level == 1 else BOLD)


def _code(lines: list[str], info: str, style: Style) -> list[str]:
    label, ink = _LABELS.get(info.partition(" ")[2], ("", ""))
    shown = [f"{_INDENT}{style.paint(label, ink)}:"] if label else []
    for line in lines:
        text, comment = visible(line), ""
        if found := _COMMENT.match(text):
            text, comment = text[: found.start(1)], found[1]
        ink = ALARM if comment.startswith("# <-") else DIM
        shown.append(f"{_INDENT}{style.paint(text, CODE)}{style.paint(comment, ink)}".rstrip())
    return shown


def _list(lines: list[str], style: Style, columns: int) -> list[str]:
    items: list[tuple[str, str, str]] = []
    for line in lines:
        if found := _ITEM.match(line):
            items.append((found[1].expandtabs(4), found[2], found[3]))
        else:
            indent, mark, text = items[-1]
            items[-1] = (indent, mark, f"{text} {line.strip()}")
    shown: list[str] = []
    for indent, mark, text in items:
        bullet = mark if mark[0].isdigit() else "-"
        left = len(indent) + len(bullet) + 1
        first, *rest = _wrap(text, style, columns - left)
        shown.append(f"{indent}{style.paint(bullet, FRAME)} {first}")
        shown.extend(" " * left + row for row in rest)
    return shown


def _table(head: str, delimiters: str, rows: list[str], style: Style) -> list[str]:
    cells = [[_words(cell.replace("\\|", "|"), style) for cell in _cells(row)] for row in (head, *rows)]
    right = [cell.strip().endswith("-:") for cell in _cells(delimiters)]
    cells = [(row + [[]] * len(right))[: len(right)] for row in cells]
    widths = [max(map(_line_width, column)) for column in zip(*cells, strict=True)]
    shown = []
    for number, row in enumerate(cells):
        texts = []
        for words, columns, is_number in zip(row, widths, right, strict=True):
            text, gap = _paint(words, style, "" if number else BOLD), " " * (columns - _line_width(words))
            texts.append(gap + text if is_number else text + gap)
        shown.append("  ".join(texts).rstrip())
    shown.insert(1, style.paint("  ".join("-" * columns for columns in widths), DIM))
    return shown


def _cells(row: str) -> list[str]:
    return _CELL.split(row.strip().removeprefix("|").removesuffix("|"))


def _wrap(text: str, style: Style, columns: int) -> list[str]:
    """A paragraph in lines of at most `columns`; a longer word stands alone."""
    lines: list[list[_Word]] = [[]]
    filled = 0
    for word in _words(text, style):
        size = _word_width(word)
        if lines[-1] and filled + 1 + size > columns:
            lines.append([])
            filled = 0
        filled += size + (1 if lines[-1] else 0)
        lines[-1].append(word)
    return [_paint(words, style) for words in lines]


def _words(text: str, style: Style) -> list[_Word]:
    words: list[_Word] = []
    glue = False
    for piece, ink, url in _pieces(text, style):
        if piece[:1].isspace():
            glue = False
        for part in piece.split():
            if glue:
                words[-1].append((part, ink, url))
            else:
                words.append([(part, ink, url)])
            glue = False
        glue = bool(words) and not piece[-1:].isspace()
    return words


def _pieces(text: str, style: Style) -> Iterator[tuple[str, str, str | None]]:
    """The text in runs of one look. Without colour, code keeps its backticks, and a link shows where it goes."""
    at = 0
    for found in _INLINE.finditer(text):
        yield visible(text[at : found.start()]), "", None
        at = found.end()
        if code := found["code"]:
            yield visible(code if style.color else f"`{code}`"), CODE, None
        elif url := found["bare"]:
            yield visible(url), CODE, visible(url)
        elif label := found["text"]:
            url = visible(found["url"])
            shown = visible(label.replace("`", ""))
            yield (shown if style.links or shown == url else f"{shown} ({url})"), HINT if style.links else "", url
        else:
            yield visible(found["bold"] or found["star"] or found["line"]), BOLD if found["bold"] else ITALIC, None
    yield visible(text[at:]), "", None


def _paint(words: list[_Word], style: Style, ink: str = "") -> str:
    return " ".join(
        "".join(style.link(style.paint(piece, own or ink) if own or ink else piece, url) for piece, own, url in word)
        for word in words
    )


def _word_width(word: _Word) -> int:
    return sum(width(piece) for piece, _, _ in word)


def _line_width(words: list[_Word]) -> int:
    return sum(map(_word_width, words)) + max(0, len(words) - 1)
