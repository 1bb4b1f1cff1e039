"""The JSON of a notebook: sources are found, and are written back with every other byte as it was."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_samples import STEADY

from torchlint.finding import Edit, Span
from torchlint.notebook.ipynb import Document, FormatError


def code(source: object, **more: object) -> dict[str, object]:
    return {"cell_type": "code", "metadata": {}, "outputs": [], "source": source, **more}


def notebook(*cells: object, **more: object) -> dict[str, object]:
    return {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5, **more}


def texts(data: dict[str, object]) -> list[str]:
    return [source.text for source in Document.read(json.dumps(data)).sources]


# Reading


def test_sources_of_code_cells_are_found_by_their_number() -> None:
    data = notebook(
        code("a"), {"cell_type": "markdown", "source": "b"}, code(["c\n", "d"]), {"cell_type": "raw"}, code([])
    )
    found = Document.read(json.dumps(data)).sources
    assert [(source.number, source.text) for source in found] == [(1, "a"), (3, "c\nd"), (5, "")]


@pytest.mark.parametrize(
    ("metadata", "is_python"),
    [
        ({"language_info": {"name": "python"}}, True),
        ({"kernelspec": {"language": "python", "name": "conda-env"}}, True),
        ({"kernelspec": {"name": "python3"}}, True),
        ({"language_info": {"name": "julia"}, "kernelspec": {"language": "python"}}, False),
        ({"kernelspec": {"language": "R"}}, False),
        ({"language_info": None}, True),
        ([], True),
    ],
)
def test_only_notebooks_of_python_have_any(metadata: object, *, is_python: bool) -> None:
    assert texts(notebook(code("x"), metadata=metadata)) == (["x"] if is_python else [])
    # The metadata may as well stand behind the cells, or before them.
    turned = dict(reversed(notebook(code("x"), metadata=metadata).items()))
    assert texts(turned) == (["x"] if is_python else [])


def test_a_cell_of_another_language_is_none_of_them() -> None:
    data = notebook(
        code("ls", metadata={"vscode": {"languageId": "shellscript"}}), code("x", metadata={"tags": ["skip"]})
    )
    assert texts(data) == ["x"]


def test_the_last_of_several_keys_counts_as_for_other_readers() -> None:
    text = json.dumps(notebook(code("one"))).replace('"source": "one"', '"source": "one", "source": ["tw", "o"]')
    assert [source.text for source in Document.read(text).sources] == ["two"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "not a notebook: no JSON object"),
        ("[]", "not a notebook: no JSON object"),
        ("<<<<<<< HEAD\n{}", "not a notebook: no JSON object"),
        ('{"cells": [\n]', "not a notebook: Expecting ',' delimiter on line 2"),
        ('{"cells": [],\n"a" 1}', "not a notebook: Expecting ':' delimiter on line 2"),
        ("{'cells': []}", "not a notebook: Expecting property name enclosed in double quotes on line 1"),
        ('{"cells": [1], "nbformat": 4}', "not a notebook: a cell is no JSON object"),
        ('{"cells": [{"source": "a\n"}]}', "not a notebook: Invalid control character on line 1"),
        ('{"nbformat": 4}\n{', "not a notebook: something stands behind its end, on line 2"),
        ('{"nbformat": 4}', "not a notebook: no list of cells"),
        ('{"nbformat": 4, "cells": {}}', "not a notebook: no list of cells"),
        ('{"nbformat": 3, "worksheets": []}', "a notebook of format 3, of which only 4 can be read"),
        ('{"cells": []}', "a notebook of format unknown, of which only 4 can be read"),
        ('{"a": ' + "[" * 100_000, "not a notebook: its JSON nests too deeply"),
        ('{"a": ' + "1" * 10_000 + "}", "not a notebook: Exceeds the limit"),
    ],
)
def test_what_is_no_notebook_is_said_in_one_line(text: str, words: str) -> None:
    with pytest.raises(FormatError) as error:
        Document.read(text)
    message = str(error.value)
    assert message.startswith(words)
    assert "\n" not in message
    assert message.endswith(("save it again in Jupyter", "on it"))


def test_every_code_point_is_found_in_the_json() -> None:
    text = '{"cells": [{"cell_type": "code", "source": ["a\\n", "\\u00e9\\"", "\\ud83d\\ude00é"]}], "nbformat": 4}'
    document = Document.read(text)
    (source,) = document.sources
    units = [document.unit(source, offset) for offset in range(len(source.text) + 1)]
    assert [text[unit.start : unit.end] for unit in units] == ["a", "\\n", "\\u00e9", '\\"', "\\ud83d\\ude00", "é", ""]
    assert text[units[-1].start :].startswith('"]}]')


def test_an_empty_source_has_a_place() -> None:
    document = Document.read(json.dumps(notebook(code([]), code(""))))
    for source in document.sources:
        assert source.value.start <= document.unit(source, 0).start <= source.value.end


# Writing


def replaced(text: str, *new: str) -> str:
    document = Document.read(text)
    written = document.replaced(new)
    assert [source.text for source in written.sources] == list(new)
    return written.text


LISTED = """\
{
 "nbformat" : 4,  "cells":[
  {"source": [
     "import torch\\n",
     "x = '\\u003c\\u00e9'\\n",
     "y = 1.50"
   ], "cell_type": "code"}
 ]
}
"""


def test_nothing_new_is_written_as_it_was() -> None:
    document = Document.read(LISTED)
    assert document.replaced([document.sources[0].text]) is document


@pytest.mark.parametrize(
    ("old", "new", "lines"),
    [
        ("y = 1.50", "y = 2", ['     "y = 2"']),
        ("import torch\n", "", ["-"]),
        ("\ny = 1.50", "", ["     \"x = '\\u003c\\u00e9'\"", "-"]),
        ("y = 1.50", "y = 1.50\nz = 'é<'\n", ['     "y = 1.50\\n",', "     \"z = '\\u00e9\\u003c'\\n\""]),
        ("'<é'", "'<é' + \"/\\\"", ['     "x = \'\\u003c\\u00e9\' + \\"/\\\\\\"\\n",']),
        ("import torch\n", "import os\nimport torch\n", ['     "import os\\n",']),
        ("x = '<é'\n", "a\nb\nc\n", ['     "a\\n",', '     "b\\n",', '     "c\\n",']),
    ],
)
def test_only_lines_that_change_are_written(old: str, new: str, lines: list[str]) -> None:
    source = Document.read(LISTED).sources[0].text
    assert source.count(old) == 1
    after = replaced(LISTED, source.replace(old, new))
    rest = [line for line in LISTED.splitlines() if line not in after.splitlines()]
    changed = [line for line in after.splitlines() if line not in LISTED.splitlines()]
    assert changed == [line for line in lines if line != "-"]
    assert len(rest) <= max(len(changed), 1) + lines.count("-")


def test_a_cell_may_be_emptied_and_filled() -> None:
    empty = replaced(LISTED, "")
    assert '"source": [], "cell_type"' in empty
    assert '"source": ["a\\n", "b"], "cell_type"' in replaced(empty, "a\nb")


def test_one_string_stays_one() -> None:
    text = '{"cells":[{"cell_type":"code","source":"a\\nb\\u003e\\n"}],"nbformat":4}'
    assert replaced(text, "a\nc\nb>\n") == text.replace("a\\nb", "a\\nc\\nb")
    assert replaced(text, 'b>\n> "d"') == text.replace("a\\nb\\u003e\\n", 'b\\u003e\\n\\u003e \\"d\\"')


def test_strings_that_are_no_lines_stay_where_nothing_changes() -> None:
    text = json.dumps(notebook(code(["a\nb", "c\n", "d", "e\n", "f"])))
    assert replaced(text, "a\nbc\nDe\nf") == text.replace('"d"', '"D"')
    assert replaced(text, "a\nbc\nde\nf\ng") == text.replace('"f"]', '"f", "\\n", "g"]')
    assert replaced(text, "a\nbc\nx\nde\nf") == text.replace('"d"', '"x\\n", "d"')


def test_lines_that_end_otherwise_are_lines_where_the_list_has_them_so() -> None:
    lines = ["a\x0c", "b\n", "c\u2028", "d\r", "e"]
    text = json.dumps(notebook(code(lines)), indent=1)
    new = replaced(text, "A\x0cb\nc\u2028d\rE")
    assert new == text.replace('"a\\f"', '"A\\f"').replace('"e"', '"E"')


def test_what_is_new_is_spelt_as_the_document_spells_the_like() -> None:
    data = notebook(code(["a"]), {"cell_type": "markdown", "source": "é"})
    assert '"a\\n",' in replaced(json.dumps(data, indent=1), "a\né")
    assert '\\u00e9\\ud83d\\ude00"' in replaced(json.dumps(data), "é😀")
    assert '"é😀"' in replaced(json.dumps(data, ensure_ascii=False), "é😀")
    assert '"é😀"' in replaced(json.dumps(notebook(code(["a"]))), "é😀")
    assert '"\\ud83d"' in replaced(json.dumps(data, ensure_ascii=False), "\ud83d")


def test_carriage_returns_are_kept() -> None:
    text = json.dumps(notebook(code(["a\r\n", "b\r\n"])), indent=1).replace("\n", "\r\n")
    assert replaced(text, "a\r\nx\r\nb\r\n") == text.replace(
        '"a\\r\\n",\r\n    "b', '"a\\r\\n",\r\n    "x\\r\\n",\r\n    "b'
    )


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_a_second_line_stands_where_the_layout_would_have_it(separators: tuple[str, str]) -> None:
    for indent in (None, 0, 1, "\t"):
        one = json.dumps(notebook(code(["a"])), indent=indent, separators=separators)
        two = json.dumps(notebook(code(["a\n", "b"])), indent=indent, separators=separators)
        # With an indent, Python ends a line with the comma alone.
        assert replaced(one, "a\nb") == two.replace(", \n", ",\n") if indent is None else replaced(one, "a\nb")


CHARACTERS = st.sampled_from('ab \t"\\/<é\u2028😀\r\ud800\x7f')
LINES = st.lists(st.text(CHARACTERS, max_size=5).map(lambda line: f"{line}\n"), max_size=6)
ENDS = st.text(CHARACTERS, max_size=4)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(CHARACTERS, max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(CHARACTERS, max_size=3), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, list[str], list[str]]:
    """The JSON of a notebook in any layout, its sources, and new ones for them."""
    cells: list[dict[str, Any]] = []
    old: list[str] = []
    new: list[str] = []
    for _ in range(draw(st.integers(0, 4))):
        lines, end = draw(LINES), draw(ENDS)
        source = [*lines, end] if end else lines
        kept = [line for line in lines if draw(st.booleans())]
        other = draw(LINES)
        place = draw(st.integers(0, len(kept)))
        kind = draw(st.sampled_from(["code", "markdown"]))
        form = draw(st.sampled_from([source, "".join(source), list("".join(source))]))
        cell = {"cell_type": kind, "source": form, "outputs": draw(VALUES), "id": "x"}
        cells.append(dict(draw(st.permutations(list(cell.items())))))
        if kind == "code":
            old.append("".join(source))
            new.append("".join([*kept[:place], *other, *kept[place:], draw(st.sampled_from(["", end]))]))
    data = notebook(*cells, metadata={"x": draw(VALUES)})
    data = dict(draw(st.permutations(list(data.items()))))
    indent = draw(st.sampled_from([None, 0, 1, 2, "\t"]))
    text = json.dumps(
        data, indent=indent, ensure_ascii=draw(st.booleans()), separators=draw(st.sampled_from([None, (",", ":")]))
    )
    text = text.replace("/", draw(st.sampled_from(["/", "\\/"]))).replace("<", draw(st.sampled_from(["<", "\\u003C"])))
    space = draw(st.sampled_from(["", "\n", " \r\n"]))
    return space + text.replace("\n", draw(st.sampled_from(["\n", "\r\n"]))) + space, old, new


@STEADY
@given(documents())
def test_any_layout_is_read_and_written(case: tuple[str, list[str], list[str]]) -> None:
    text, old, new = case
    document = Document.read(text)
    assert [source.text for source in document.sources] == old
    assert document.edits(old) == []
    written = document.replaced(new)
    assert [source.text for source in written.sources] == new
    before, after = json.loads(text), json.loads(written.text)
    for data in (before, after):
        for cell in data["cells"]:
            if cell["cell_type"] == "code":
                cell["source"] = ""
    assert before == after
    assert _around(document) == _around(written)


def _around(document: Document) -> str:
    """The JSON with empty sources."""
    text, shift = document.text, 0
    for source in document.sources:
        text = text[: source.value.start - shift] + text[source.value.end - shift :]
        shift += source.value.end - source.value.start
    return text


def test_edits_lie_apart_and_within_sources() -> None:
    document = Document.read(LISTED)
    (source,) = document.sources
    edits = document.edits(["import os\nx\nz\ny = 1.50"])
    assert all(source.value.start < edit.span.start <= edit.span.end < source.value.end for edit in edits)
    assert Edit(Span(0, 0), "") not in edits


def test_the_cells_of_an_editor_become_a_document() -> None:
    document = Document.of_cells({2: "a\n", 4: "b"})
    assert [(source.number, source.text) for source in document.sources] == [(2, "a\n"), (4, "b")]
    assert Document.of_cells({}).sources == ()
