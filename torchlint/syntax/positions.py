"""Where nodes stand in the text: the few statements that hold the wanted nodes are generated, not the module."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import lru_cache

import libcst as cst
from libcst._nodes.internal import CodegenState

from torchlint.finding import Span
from torchlint.syntax.tree import INDENTED, Tree

# Where more than one statement in so many holds a wanted node, generating the module costs less than each of them.
_WORTHWHILE = 4


class _Recorder(CodegenState):
    """Counts what is generated and notes where wanted nodes begin and end."""

    def __init__(self, module: cst.Module, wanted: set[cst.CSTNode]) -> None:
        super().__init__(default_indent=module.default_indent, default_newline=module.default_newline)
        self.wanted = wanted
        self.position = 0
        self.outer: dict[cst.CSTNode, Span] = {}
        self.inner: dict[cst.CSTNode, Span] = {}
        self.starts: list[tuple[cst.CSTNode, int]] = []

    def add_token(self, value: str) -> None:
        self.tokens.append(value)
        self.position += len(value)

    def add_indent_tokens(self) -> None:
        for token in self.indent_tokens:
            self.add_token(token)

    def pop_trailing_newline(self) -> None:
        if self.tokens:
            self.position -= len(self.tokens.pop())

    def before_codegen(self, node: cst.CSTNode) -> None:
        if node in self.wanted:
            self.starts.append((node, self.position))

    def after_codegen(self, node: cst.CSTNode) -> None:
        if self.starts and self.starts[-1][0] is node:
            _, start = self.starts.pop()
            self.outer[node] = Span(start, self.position)

    @contextmanager
    def record_syntactic_position(
        self,
        node: cst.CSTNode,
        *,
        start_node: cst.CSTNode | None = None,
        end_node: cst.CSTNode | None = None,
    ) -> Iterator[None]:
        if node not in self.wanted:
            yield
            return
        # A statement's own position ends with its last child, whose place is known only when it is wanted too.
        edges = [edge for edge in (start_node, end_node) if edge is not None]
        self.wanted.update(edges)
        start = self.position
        yield
        end = self.position
        if start_node is not None and start_node in self.outer:
            start = self.inner.get(start_node, self.outer[start_node]).start
        if end_node is not None and end_node in self.outer:
            end = self.inner.get(end_node, self.outer[end_node]).end
        self.inner[node] = Span(start, end)


class Spans:
    """Spans of the wanted nodes, in code points of the text, which the tree was parsed from.

    `faithful` says that the tree still holds all of the text but for what LibCST always loses. Only the statements that
    hold wanted nodes are generated, where the text shows them to be as it has them; else the whole module is.
    """

    def __init__(self, tree: Tree, wanted: Iterable[cst.CSTNode], text: str) -> None:
        self._inner: dict[cst.CSTNode, Span] = {}
        self._outer: dict[cst.CSTNode, Span] = {}
        self.faithful = True
        wanted = set(wanted)
        groups = _by_statement(tree, wanted)
        if groups is None or not self._of_statements(tree, groups, text):
            self._of_module(tree.module, wanted, text)

    def inner(self, node: cst.CSTNode) -> Span:
        """The node without the parentheses, white space and comments around it."""
        return self._inner.get(node) or self._outer[node]

    def outer(self, node: cst.CSTNode) -> Span:
        """The node with its own parentheses."""
        return self._outer[node]

    def _of_statements(self, tree: Tree, groups: dict[cst.CSTNode, list[cst.CSTNode]], text: str) -> bool:
        """Note the spans of all nodes by generating the statements that hold them; whether that can be done."""
        lines = [*lines_of(tree.module.body)]
        if len(groups) * _WORTHWHILE > len(lines):
            return False
        starts = logical_lines(text)
        if len(starts) != len(lines):
            return False
        place = dict(zip(map(id, lines), starts, strict=True))
        found = [self._generated(tree, statement, wanted) for statement, wanted in groups.items()]
        for (statement, wanted), (recorder, code) in zip(groups.items(), found, strict=True):
            shift = place[id(statement)] - recorder.inner[statement].start
            if shift < 0 or not _stands(code, shift, text):
                return False
            for node in wanted:
                self._outer[node] = _moved(recorder.outer[node], shift)
                if node in recorder.inner:
                    self._inner[node] = _moved(recorder.inner[node], shift)
        return True

    @staticmethod
    def _generated(tree: Tree, statement: cst.CSTNode, wanted: list[cst.CSTNode]) -> tuple[_Recorder, str]:
        recorder = _Recorder(tree.module, {statement, *wanted})
        blocks = [above for above in tree.ancestors(statement) if isinstance(above, INDENTED)]
        for block in reversed(blocks):
            recorder.increase_indent(tree.module.default_indent if block.indent is None else block.indent)
        statement._codegen(recorder)  # noqa: SLF001 - LibCST's own providers do the same
        return recorder, "".join(recorder.tokens)

    def _of_module(self, module: cst.Module, wanted: Iterable[cst.CSTNode], text: str) -> None:
        """Note the spans of all nodes by generating the module, and whether it still holds the text."""
        recorder = _Recorder(module, set(wanted))
        module._codegen(recorder)  # noqa: SLF001 - as above
        lost = _lost(text, "".join(recorder.tokens))
        self.faithful = lost is not None
        places = [place for place, _ in lost or ()]
        shifts = [0, *(shift for _, shift in lost or ())]
        self._inner = {node: _in_text(span, places, shifts) for node, span in recorder.inner.items()}
        self._outer = {node: _in_text(span, places, shifts) for node, span in recorder.outer.items()}


def _by_statement(tree: Tree, wanted: Iterable[cst.CSTNode]) -> dict[cst.CSTNode, list[cst.CSTNode]] | None:
    """The nodes by the statement on lines of its own that holds them; None if one stands in none."""
    groups: dict[cst.CSTNode, list[cst.CSTNode]] = {}
    for node in wanted:
        statement: cst.CSTNode | None = tree.line(node)
        above = tree.parent(statement) if statement is not None else None
        while isinstance(statement, cst.If) and isinstance(above, cst.If) and above.orelse is statement:
            statement, above = above, tree.parent(above)  # an `elif` alone would be generated as an `if`
        if statement is None:
            return None
        groups.setdefault(statement, []).append(node)
    return groups


def lines_of(statements: Iterable[cst.CSTNode]) -> Iterator[cst.CSTNode]:
    """What begins each logical line of some statements, in their order: statements, clauses, decorators, cases."""
    for statement in statements:
        if isinstance(statement, (cst.FunctionDef, cst.ClassDef)):
            yield from statement.decorators
        yield statement
        for part in _parts(statement):
            if isinstance(part, cst.IndentedBlock):
                yield from lines_of(part.body)
            elif isinstance(part, _CLAUSES):
                yield from lines_of((part,))


_CLAUSES = (cst.If, cst.Else, cst.ExceptHandler, cst.ExceptStarHandler, cst.Finally, cst.MatchCase)


def _parts(statement: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The blocks and clauses of a statement, in the order of the source."""
    for name in ("body", "handlers", "cases", "orelse", "finalbody"):
        part = getattr(statement, name, None)
        if isinstance(part, (list, tuple)):
            yield from part
        elif part is not None:
            yield part


@lru_cache(maxsize=1)  # a file is asked for several times
def logical_lines(text: str) -> list[int]:
    """The offset of the first token of each logical line, as far as Python before 3.12 reads strings."""
    starts: list[int] = []
    depth = 0
    begin = _content(text, 0)
    if begin < len(text):
        starts.append(begin)
    for token in _TOKEN.finditer(text, begin):
        first = token[0][0]
        if first in "([{":
            depth += 1
        elif first in ")]}":
            depth -= 1
        elif first == "\n" and not depth and token.start() >= begin:
            begin = _content(text, token.end())
            if begin < len(text):
                starts.append(begin)
    return starts


def _content(text: str, place: int) -> int:
    """Where the first token stands at or behind a place at the start of a line."""
    match = _BLANK.match(text, place)
    return match.end() if match is not None else place


# What a logical line may hold that ends none: strings, comments, brackets, lines that go on below.
_TOKEN = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*"""|'
    r"'''(?:[^'\\]|\\.|'(?!''))*'''|"
    r'"(?:[^"\\\n]|\\.)*"|'
    r"'(?:[^'\\\n]|\\.)*'|"
    r"#[^\n]*|[\[\](){}]|\\\r?\n|\n",
    re.DOTALL,
)
_BLANK = re.compile(r"(?:[ \t\f]*(?:#[^\n]*)?\r?\n)*[ \t\f]*(?:#[^\n]*\Z)?")


def _stands(code: str, place: int, text: str) -> bool:
    """Whether the text has this code there; its last line may lack a line ending."""
    end = place + len(code)
    return text.startswith(code, place) if end <= len(text) else text[place:] == code.rstrip("\r\n")


def _moved(span: Span, shift: int) -> Span:
    return Span(span.start + shift, span.end + shift)


def _in_text(span: Span, places: list[int], shifts: list[int]) -> Span:
    if not places:
        return span
    start = span.start + shifts[bisect_right(places, span.start)]
    # An end at the start of a row belongs to the row above it.
    end = span.end + shifts[bisect_left(places, span.end)] if span.end > span.start else start
    return Span(start, end)


def _lost(text: str, generated: str) -> list[tuple[int, int]] | None:
    """Offsets in the generated code, each with how many code points of the text before it are not in that code.

    LibCST drops what precedes a form feed in an indentation, with the form feed, and a lone CR at the end. None if
    more is lost.
    """
    if generated in (text, text.removesuffix("\r")):
        return []
    rows, generated_rows = text.split("\n"), generated.split("\n")
    if len(rows) != len(generated_rows):
        return None
    lost: list[tuple[int, int]] = []
    place = shift = 0
    for row, generated_row in zip(rows, generated_rows, strict=True):
        if row != generated_row:
            prefix = row.removesuffix(generated_row)
            if prefix == row or not prefix.endswith("\f") or prefix.strip(" \t\f"):
                return None
            shift += len(prefix)
            lost.append((place, shift))
        place += len(generated_row) + 1
    return lost


def code_inside(module: cst.Module, blocks: Iterable[cst.IndentedBlock | cst.Match], node: cst.CSTNode) -> str:
    """The code of a statement as it reads inside these blocks, outermost first; strings keep their lines."""
    state = CodegenState(default_indent=module.default_indent, default_newline=module.default_newline)
    for block in blocks:
        state.increase_indent(module.default_indent if block.indent is None else block.indent)
    node._codegen(state)  # noqa: SLF001 - as above
    return "".join(state.tokens)
