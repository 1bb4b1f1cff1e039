"""Where nodes stand in the text: one code generation for the few nodes that are wanted."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from contextlib import contextmanager
from typing import TYPE_CHECKING

from libcst._nodes.internal import CodegenState

from torchlint.finding import Span

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import libcst as cst


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
    """Spans of the wanted nodes, in code points of `text`, which the module was parsed from.

    `faithful` says that the module still holds all of the text but for what LibCST always loses.
    """

    def __init__(self, module: cst.Module, wanted: Iterable[cst.CSTNode], text: str) -> None:
        recorder = _Recorder(module, set(wanted))
        module._codegen(recorder)  # noqa: SLF001 - LibCST's own providers do the same
        self._inner, self._outer = recorder.inner, recorder.outer
        lost = _lost(text, "".join(recorder.tokens))
        self.faithful = lost is not None
        self._places = [place for place, _ in lost or ()]
        self._shifts = [0, *(shift for _, shift in lost or ())]

    def inner(self, node: cst.CSTNode) -> Span:
        """The node without the parentheses, white space and comments around it."""
        return self._in_text(self._inner.get(node) or self._outer[node])

    def outer(self, node: cst.CSTNode) -> Span:
        """The node with its own parentheses."""
        return self._in_text(self._outer[node])

    def _in_text(self, span: Span) -> Span:
        if not self._places:
            return span
        places, shifts = self._places, self._shifts
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
