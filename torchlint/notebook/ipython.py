"""Which parts of a cell are Python: magics, shell commands and questions of IPython are masked, every offset kept."""

from __future__ import annotations

import ast
import re
import sys
import warnings
from itertools import accumulate
from typing import NamedTuple

from torchlint.finding import Span


class Reading(NamedTuple):
    """A cell as Python: as long as what the user wrote, with blanks and names of nothing in the place of the rest.

    `masks` are the stretches that are not the user's Python, `body` is where that may begin: nothing is to be written
    above, where a cell magic stands. `error` says where and why a cell that is masked as a whole is no Python.
    """

    code: str
    masks: tuple[Span, ...] = ()
    body: int = 0
    error: tuple[int, str] | None = None


def read(cell: str) -> Reading:
    """What of a cell is Python. Line endings are never masked."""
    text = _SURROGATE.sub("\ufffd", cell)
    reading = _read(text)
    if text == cell:
        return reading
    # Half a character, which JSON may hold and no file: in what is Python it can only stand in a string or a comment.
    halves = (Span(*match.span()) for match in _SURROGATE.finditer(cell))
    alone = [half for half in halves if not any(mask.start <= half.start < mask.end for mask in reading.masks)]
    return reading._replace(masks=tuple(sorted((*reading.masks, *alone))))


def shown(code: str) -> tuple[int, str] | None:
    """The expression whose value a cell shows, and how many statements the cell has; None if it shows none.

    That is the last statement, unless a semicolon follows it. Code that cannot be read shows nothing.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as below
        try:
            body = ast.parse(code).body
        except (SyntaxError, ValueError, MemoryError, RecursionError):
            return None
    if not body or not isinstance(body[-1], ast.Expr):
        return None
    expression = ast.get_source_segment(code, body[-1]) or ""
    behind = code[code.rindex(expression) + len(expression) :]
    return None if behind.lstrip(" \t").startswith(";") else (len(body), expression)


_SURROGATE = re.compile("[\ud800-\udfff]")


def _read(cell: str) -> Reading:
    match = _CELL_MAGIC.match(cell)
    if match is not None:
        if match["name"] not in _AROUND_PYTHON:
            return _without(cell)
        place = match.end()
        inner = _read(cell[place:])
        masks = tuple(Span(mask.start + place, mask.end + place) for mask in inner.masks)
        error = inner.error and (inner.error[0] + place, inner.error[1])
        head = Span(match.start("line"), match.end("line"))
        return Reading(_blank(cell[:place]) + inner.code, (head, *masks), inner.body + place, error)
    if _error(cell) is None:
        return Reading(cell)
    if _FOREIGN.match(cell):
        return _without(cell)
    readings = [Reading(cell), *(_Masking(cell, pattern).done() for pattern in (_ESCAPED, _ESCAPED_OR_COMMAND))]
    for parses in (_parses, _parses_with_libcst):
        for reading in readings:
            if parses(reading.code):
                return reading
    return _without(cell)._replace(error=_error(readings[-1].code))


_CELL_MAGIC = re.compile(r"\s*?^(?P<line>%%(?P<name>[^\s%]*)[^\r\n]*)(?:\r\n|\r|\n|\Z)", re.MULTILINE)
# Cell magics that run what stands below them, here and as Python.
_AROUND_PYTHON = frozenset(
    "time timeit capture prun debug ipytest memit mprun lprun pyinstrument scalene snakeviz wandb".split()
)
# Indented from the first line on, or copied with its prompts: IPython takes these off, nobody else reads the code.
_FOREIGN = re.compile(r"(?:[ \t]*[\r\n]+)*(?:[ \t]+\S|>>>|In \[\d+\]:)")


def _without(cell: str) -> Reading:
    return Reading(_blank(cell), (Span(0, len(cell)),), len(cell))


def _blank(text: str) -> str:
    return _NOT_A_LINE_ENDING.sub(" ", text)


_NOT_A_LINE_ENDING = re.compile(r"[^\r\n]")


def _error(code: str) -> tuple[int, str] | None:
    """Where and why Python cannot read the code."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the code, not of this program
        try:
            ast.parse(code)
        except SyntaxError as error:
            starts = [0, *(match.end() for match in _NEWLINE.finditer(code))]
            start = starts[min(max(error.lineno or 1, 1), len(starts)) - 1]
            return min(start + max((error.offset or 1) - 1, 0), len(code)), error.msg
        except (ValueError, MemoryError, RecursionError) as error:
            return 0, str(error) or "the code nests too deeply to be read"
    return None


_NEWLINE = re.compile(r"\r\n|\r|\n")


def _parses(code: str) -> bool:
    return _error(code) is None


def _parses_with_libcst(code: str) -> bool:
    """Whether this is Python, though this interpreter is too old to know."""
    depth = max(accumulate((1 if bracket in "([{" else -1 for bracket in _BRACKET.findall(code)), initial=0))
    if sys.version_info >= _KNOWS_ALL or depth > _DEEPEST or len(_NESTING.findall(code)) > _MOST:
        return False
    import libcst as cst  # only for code that cannot be read

    try:
        cst.parse_module(code)
    except (cst.ParserSyntaxError, RecursionError, UnicodeError):
        return False
    return True


# The newest version whose grammar LibCST knows.
_KNOWS_ALL = (3, 14)
# Deep nesting overflows the native stack of LibCST's parser.
_DEEPEST = 100
_BRACKET = re.compile(r"[()\[\]{}]")
_MOST = 1_000
_NESTING = re.compile(r"[.(\[{+\-*/%@|&^~]|\b(?:and|await|elif|if|lambda|not|or)\b|\n[ \t]+")


# Lines that are IPython's. They begin a logical line; a line that ends in a backslash goes on below.
_REST = r"(?:[^\r\n]*\\(?:\r\n|\r|\n))*[^\r\n]*"
_ESCAPED = rf"""
    (?P<timed>%(?:time|timeit|memit)(?:[ \t]+-[a-zA-Z]+(?:[ \t]*\d+)?)*[ \t]+)(?P<code>[^\s-]{_REST})
    | (?P<bare>[!%?,;/]{_REST})
    | (?P<asked>[^\r\n"'#]*\?[ \t]*;?[ \t]*(?:\#[^\r\n]*)?(?=[\r\n]|\Z))
    | (?P<target>[^\r\n=!<>\#:%(]+=[ \t]*)
      (?:(?P<measured>%time[ \t]+)(?P<value>[^\s-]{_REST})|(?P<assigned>[!%]{_REST}))
"""
# What IPython runs without a `%`, where no name of Python's is in the way.
_COMMANDS = (
    "alias cat cd clear conda config cp debug env history less load load_ext ls ll lsmagic mamba man matplotlib mkdir "
    "more mv notebook page pdb pinfo pip pprint prun psearch psource pushd popd pwd pycat pylab quickref reload_ext "
    "reset rm rmdir run save sc store sx system tb time timeit unalias unload_ext uv who whos writefile xdel xmode"
)
_ESCAPED_OR_COMMAND = rf"""{_ESCAPED}
    | (?P<command>(?:{_COMMANDS.replace(" ", "|")})(?:[ \t]+(?!=|\.\w|[,)\]]|[-+*/%&|<>]+=?[ \t]){_REST}|(?=[\r\n]|\Z)))
"""
# What a logical line may hold that ends none.
_TOKEN = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"""|'
    r"'''(?:[^'\\]|\\.|'(?!''))*'''|"
    r'"(?:[^"\\\r\n]|\\.)*"|'
    r"'(?:[^'\\\r\n]|\\.)*'|"
    r"\#[^\r\n]*|[\[\](){}]|\\(?:\r\n|\r|\n)|\r\n|\r|\n",
    re.DOTALL,
)


class _Masking:
    """Masks the logical lines of a cell that are IPython's."""

    def __init__(self, cell: str, pattern: str) -> None:
        self._cell = cell
        self._code = list(cell)
        self._masks: list[Span] = []
        self._line = re.compile(rf"[ \t]*(?:{pattern})", re.VERBOSE)

    def done(self) -> Reading:
        place = 0
        while place < len(self._cell):
            match = self._line.match(self._cell, place)
            if match is not None and match.end() > match.start():
                self._mask(match)
                place = match.end()
            place = self._end_of_line(place)
        return Reading("".join(self._code), tuple(self._masks))

    def _end_of_line(self, place: int) -> int:
        """The place behind the end of the logical line that goes on here."""
        depth = 0
        for token in _TOKEN.finditer(self._cell, place):
            first = token[0][0]
            if first in "([{":
                depth += 1
            elif first in ")]}":
                depth = max(depth - 1, 0)
            elif first in "\r\n" and not depth:
                return token.end()
        return len(self._cell)

    def _mask(self, match: re.Match[str]) -> None:
        groups = match.groupdict()
        if groups["timed"] and _error(f"0;{groups['code']}") is None:
            # The statement is run here and now like any other: `%time f(x)` becomes `0   ; f(x)`.
            start, end = match.span("timed")
            self._put(Span(start, end), "0" + " " * (len(groups["timed"].rstrip()) - 2) + ";")
        elif groups["measured"] and _error(groups["value"]) is None:
            self._put(Span(*match.span("measured")), "")
        elif groups["measured"] or groups["assigned"]:
            self._put(Span(match.end("target"), match.end()), "_")
        else:
            start = match.end() - len(match[0].lstrip(" \t"))
            self._put(Span(start, match.end()), "0")

    def _put(self, span: Span, code: str) -> None:
        masked = _blank(self._cell[span.start : span.end])
        self._code[span.start : span.end] = code + masked[len(code) :]
        self._masks.append(span)
