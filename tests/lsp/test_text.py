"""Positions of the protocol, in each encoding, and edits between two texts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types as lsp

from torchlint.finding import Edit, Span, edited
from torchlint.lsp.text import Text, differences

ENCODINGS = (lsp.PositionEncodingKind.Utf8, lsp.PositionEncodingKind.Utf16, lsp.PositionEncodingKind.Utf32)
# A form feed and U+2028 end no line here, though they do for `str.splitlines`.
TEXTS = st.text(alphabet="ab \n\r\t\x0cé€\u2028😀", max_size=40)


@pytest.mark.parametrize(
    ("encoding", "character"), [(ENCODINGS[0], 10), (ENCODINGS[1], 8), (ENCODINGS[2], 7)], ids=["8", "16", "32"]
)
def test_a_character_is_a_code_unit(encoding: str, character: int) -> None:
    text = Text("first\nx = '😀'; y\n", encoding)
    position = text.position(len("first\nx = '😀'"))
    assert position == lsp.Position(1, character)
    assert text.offset(position) == len("first\nx = '😀'")


@given(TEXTS, st.sampled_from(ENCODINGS))
def test_each_offset_has_its_position(value: str, encoding: str) -> None:
    text = Text(value, encoding)
    for offset in range(len(value) + 1):
        position = text.position(offset)
        within_ending = value[offset - 1 : offset + 1] == "\r\n"
        assert text.offset(position) == offset - within_ending
        assert position.line == value[:offset].replace("\r\n", "\n").replace("\r", "\n").count("\n") + (
            -1 if within_ending else 0
        )


@given(TEXTS, st.sampled_from(ENCODINGS), st.integers(0, 9), st.integers(0, 99))
def test_a_position_behind_an_end_means_that_end(value: str, encoding: str, line: int, character: int) -> None:
    text = Text(value, encoding)
    offset = text.offset(lsp.Position(line, character))
    assert 0 <= offset <= len(value)
    if character == 99 and line < text.position(len(value)).line:
        assert value[offset] in "\r\n"


@given(TEXTS, TEXTS, st.sampled_from(ENCODINGS), st.data())
def test_a_change_of_a_range(value: str, new: str, encoding: str, data: st.DataObject) -> None:
    text = Text(value, encoding)
    offsets = [offset for offset in range(len(value) + 1) if value[offset - 1 : offset + 1] != "\r\n" or not offset]
    start, end = sorted((data.draw(st.sampled_from(offsets)), data.draw(st.sampled_from(offsets))))
    change = lsp.TextDocumentContentChangePartial(text.range(Span(start, end)), new)
    assert text.changed(change).value == value[:start] + new + value[end:]


def test_a_change_of_the_whole() -> None:
    assert Text("old").changed(lsp.TextDocumentContentChangeWholeDocument("new")).value == "new"


def test_a_range_that_ends_before_it_starts_is_turned_round() -> None:
    assert Text("abc\ndef").span(lsp.Range(lsp.Position(1, 1), lsp.Position(0, 1))) == Span(1, 5)


@given(TEXTS, TEXTS)
def test_differences_lead_from_one_text_to_the_other(old: str, new: str) -> None:
    assert edited(old, differences(old, new)) == new


def test_differences_leave_alone_what_is_alike() -> None:
    old = "a = 1\nb = 2\nc = 3\nd = 4\n"
    assert differences(old, old) == ()
    assert differences(old, "a = 1\nb = 20\nc = 3\nd = 4\n") == (Edit(Span(11, 11), "0"),)
    assert differences(old, "a = 1\nb = 2\nnew\nc = 3\nd = five\n") == (
        Edit(Span(12, 12), "new\n"),
        Edit(Span(22, 23), "five"),
    )
