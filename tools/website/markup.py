"""The repository's Markdown, as GitHub reads it, in the form that the site's generator reads."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

REPOSITORY = "https://github.com/torchlint/torchlint"
PICTURES = (".png", ".svg")
_FENCE = re.compile(r"(?P<indent> *)(?P<ticks>`{3,}|~{3,})(?P<info>[^`]*)$")
_HEADING = re.compile(r"(#{1,6} )(.+)$")
_COMMENT = re.compile(r"<!-- (?:begin|end): [\w-]+ -->\n\n?")
_CODE = re.compile(r"(`+)(?:.+?)\1(?!`)")
_LINK = re.compile(r"(?P<label>(?:\[[^\]]*)?\])\((?P<target>[^()\s]+)\)")
# What is shown of a link where it is the path of a page: `docs/ci.md`, `editors/`.
_PATH = re.compile(r"\[[\w./-]+(?:\.md|/)\]")
_LABEL = re.compile(r"\[([^\]]*)\]\([^()]*\)")
_ITEM = re.compile(r" *(?:[-*+]|\d+\.) ")
_BRACKETS = re.compile(r"^\[([^\]]+)\](?!\()")
_TAG = re.compile(r"<[^>]*>")
_SCHEME = re.compile(r"[a-z]+:")
_TITLES = {"bad": "slow", "good": "fast"}
# The generator wants content of a list item four columns in; GitHub takes as many as the marker is wide.
_STEP = 4


@dataclass(frozen=True, slots=True)
class Page:
    """A page of the site: where it stands, and what it is called."""

    path: str
    title: str


class BrokenLinkError(ValueError):
    """A link to a file that the repository does not hold: in which page, and to what."""


def translated(text: str, source: str, page: str, pages: Mapping[str, Page], root: Path) -> str:
    """The Markdown of the file `source` for the page at `page`.

    `pages` says which page of the site holds which file; a link that shows the path of one shows the title of its page.
    A link to any other file leads to the repository, a picture is looked for in the folder `pictures`. Raises
    `BrokenLinkError`.
    """
    lines = []
    slugs: Counter[str] = Counter()
    for line, is_code in _lines(_COMMENT.sub("", text)):
        if is_code:
            lines.append(line)
        elif heading := _HEADING.match(line):
            slug = slug_of(heading[2])
            slugs[slug] += 1
            number = f"-{slugs[slug] - 1}" if slugs[slug] > 1 else ""
            shown = _BRACKETS.sub(r"\1", heading[2])
            lines.append(f"{heading[1]}{_linked(shown, source, page, pages, root)} {{#{slug}{number}}}")
        else:
            lines.append(_linked(line, source, page, pages, root))
    return "\n".join(lines) + "\n"


def slug_of(heading: str) -> str:
    """The anchor that GitHub gives to a heading."""
    text = _TAG.sub("", _LABEL.sub(r"\1", heading)).replace("`", "").strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def pictures(text: str, source: str) -> set[str]:
    """The pictures of the repository that a text shows."""
    return {
        posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        for _, target in _LINK.findall(text)
        if target.endswith(PICTURES) and not _SCHEME.match(target)
    }


def relative(target: str, page: str) -> str:
    """The path from one page, or file, of the site to another."""
    return posixpath.relpath(target, posixpath.dirname(page) or ".")


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """The lines with the fences of code as the generator wants them, and whether each belongs to code."""
    lines = text.splitlines()
    at = 0
    is_after_blank, is_in_list = True, False
    while at < len(lines):
        line = lines[at]
        fence = _FENCE.match(line)
        if fence is None:
            if line.strip():
                is_item = _ITEM.match(line) is not None
                is_in_list = is_item or (is_in_list and (line.startswith(" ") or not is_after_blank))
                is_code = line.startswith(" " * _STEP) and not is_in_list
                yield (_indented(line) if is_after_blank or is_item else line), is_code
            else:
                yield "", False
            is_after_blank = not line.strip()
            at += 1
            continue
        indent = fence["indent"]
        end = next(i for i in range(at + 1, len(lines)) if lines[i].strip() == fence["ticks"])
        body = [row.removeprefix(indent) for row in lines[at + 1 : end]]
        left = " " * (_STEP if indent else 0)
        yield f"{left}{fence['ticks']}{_info(fence['info'].strip(), body)}", True
        yield from ((f"{left}{row}".rstrip(), True) for row in body)
        yield f"{left}{fence['ticks']}", True
        at = end + 1
        is_after_blank = False


def _indented(line: str) -> str:
    found = re.match(r" {1,3}(?=\S)", line)
    return " " * _STEP + line[found.end() :] if found else line


def _info(info: str, body: list[str]) -> str:
    """The line that opens code: its language, its title, and which lines are the findings."""
    language, _, rest = info.partition(" ")
    title = f' title="{_TITLES.get(rest, rest)}"' if rest else ""
    marked = [str(number) for number, row in enumerate(body, 1) if "# <- " in row]
    return f" {language}{title}" + (f' hl_lines="{" ".join(marked)}"' if marked else "") if language else " text"


def _linked(line: str, source: str, page: str, pages: Mapping[str, Page], root: Path) -> str:
    """The line with its links leading to pages of the site, or to the repository."""

    def moved(found: re.Match[str]) -> str:
        target = found["target"]
        label = found["label"]
        if _SCHEME.match(target) or target.startswith("#"):
            return found[0]
        path, mark, anchor = target.partition("#")
        file = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if not (root / file).exists():
            raise BrokenLinkError(f"{source}: there is no {target}")
        if file.endswith(PICTURES):
            return f"{label}({relative(f'pictures/{file}', page)})"
        if file in pages:
            shown = f"[{pages[file].title}]" if _PATH.fullmatch(label) else label
            return f"{shown}({relative(pages[file].path, page)}{mark}{anchor})"
        kind = "tree" if (root / file).is_dir() else "blob"
        return f"{label}({REPOSITORY}/{kind}/main/{file}{mark}{anchor})"

    parts = []
    at = 0
    for code in _CODE.finditer(line):
        parts += [_LINK.sub(moved, line[at : code.start()]), code[0]]
        at = code.end()
    return "".join((*parts, _LINK.sub(moved, line[at:])))
