"""A notebook is checked and fixed as one program: its cells together, everything in terms of a cell."""

from __future__ import annotations

import codecs
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from laws import active
from report_samples import STEADY

from torchlint import engine
from torchlint.cli import run
from torchlint.finding import Applicability, Edit, Finding, Fix, Result, Span
from torchlint.fixer import fix
from torchlint.linter import lint
from torchlint.notebook.cells import Notebook
from torchlint.report import FileReport, ReportOptions, render
from torchlint.source import DecodeError, Place, SourceFile
from torchlint.sweep import may_concern

CELLS = (
    "%matplotlib inline\nimport torch\nfrom torch import nn",
    "%%time\nnet = nn.Linear(3, 3).cuda()\noptimizer = torch.optim.SGD(net.parameters(), lr=0.1)\n",
    ["# Masks"],
    "def mask(size):  # torchlint: hot[per-batch]\n    return torch.zeros(size, size).cuda()",
    (
        "!nvidia-smi\nfor x, y in loader:\n    loss = nn.functional.mse_loss(net(x), y)\n    loss.backward()\n"
        '    optimizer.step()\n    print("é", loss.item())'
    ),
)
FIXED = 'return torch.zeros(size, size, device="cuda")'
Capture = pytest.CaptureFixture[str]


def dumped(*cells: str | list[str], indent: int | None = 1, **more: object) -> str:
    """The JSON of a notebook with these cells; what is in a list is Markdown."""
    listed: list[dict[str, object]] = [
        {
            "cell_type": "code",
            "execution_count": None,
            "metadata": {},
            "outputs": [],
            "source": cell.splitlines(keepends=True),
        }
        if isinstance(cell, str)
        else {"cell_type": "markdown", "metadata": {}, "source": cell}
        for cell in cells
    ]
    language = {"language_info": {"name": "python"}}
    return (
        json.dumps({"cells": listed, "metadata": language, "nbformat": 4, "nbformat_minor": 5, **more}, indent=indent)
        + "\n"
    )


def source(*cells: str | list[str]) -> SourceFile:
    return SourceFile.from_bytes("n.ipynb", dumped(*cells).encode())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "n.ipynb").write_text(dumped(*CELLS), encoding="utf-8")
    return tmp_path


def said(capsys: Capture, *arguments: str, status: int | None = None) -> str:
    found = run([arguments[0], "--no-cache", "--color", "never", *arguments[1:]])
    out, err = capsys.readouterr()
    assert status is None or found == status, err
    return out


# One text


def test_cells_stand_in_order_with_an_empty_line_between_them() -> None:
    notebook = Notebook.of_cells(["a", "", "b\n", "!c\n  d"])
    assert notebook.raw == "a\n\n\n\nb\n\n!c\n  d\n\n"
    assert [notebook.raw[cell.start : cell.end] for cell in notebook.cells] == ["a\n", "\n", "b\n", "!c\n  d\n"]
    assert notebook.sources == ("a", "", "b\n", "!c\n  d")
    assert [cell.number for cell in notebook.cells] == [1, 2, 3, 4]
    assert [cell.number for cell in Notebook.of_cells(["a", "b"], [2, 5]).cells] == [2, 5]
    assert Notebook.of_cells([]).code == ""


def test_an_insertion_below_the_last_line_belongs_to_that_cell() -> None:
    notebook = Notebook.of_cells(["a", "b"])
    place = notebook.raw.index("\n") + 1
    new = notebook.edited([Edit(Span(place, place), "c\n")])
    assert new.sources == ("a\nc", "b")
    assert new.cell_at(new.raw.index("b")) == new.cells[1]


def test_edits_move_what_stands_behind_them() -> None:
    notebook = Notebook.of_cells(["x\n!ls", "%%time\ny\n", "z = = 1"])
    x, y = notebook.raw.index("x"), notebook.raw.index("y")
    new = notebook.edited([Edit(Span(y, y + 1), "yyy"), Edit(Span(x, x), "long = 1\n")])
    assert new.sources == ("long = 1\nx\n!ls", "%%time\nyyy\n", "z = = 1")
    again = Notebook.of_cells(new.sources)
    assert new == again


def test_line_endings_are_those_of_the_cells() -> None:
    notebook = Notebook.of_cells(["a", "b\r\nc"])
    assert notebook.raw == "a\r\n\r\nb\r\nc\r\n\r\n"
    assert notebook.sources == ("a", "b\r\nc")


@pytest.mark.parametrize(
    ("start", "end", "is_allowed"),
    [
        (0, 1, True),  # `x`
        (0, 2, True),  # its whole row
        (0, 3, False),
        (2, 2, True),  # above the command
        (3, 3, False),  # in the middle of it
        (5, 5, True),  # behind it
        (5, 6, True),
        (6, 6, True),  # below it
        (6, 7, False),  # what parts two cells
        (5, 7, False),
        (7, 8, True),
        (7, 11, False),  # two cells
    ],
)
def test_edits_stay_in_a_cell_and_out_of_masks(start: int, end: int, *, is_allowed: bool) -> None:
    notebook = Notebook.of_cells(["x\n!ls\n", "y", "z"])
    assert notebook.code == "x\n0  \n\ny\n\nz\n\n"
    assert notebook.allows([Edit(Span(start, end), "new")]) is is_allowed


def test_nothing_is_inserted_above_a_cell_magic() -> None:
    notebook = Notebook.of_cells(["x", "%%time\ny"])
    start = notebook.cells[1].start
    assert not notebook.allows([Edit(Span(start, start), "import os\n")])
    y = notebook.code.index("y")
    assert notebook.allows([Edit(Span(y, y), "z\n")])
    assert not notebook.allows([Edit(Span(0, 0), "a\n"), Edit(Span(start, start), "import os\n")])


SNIPPETS = st.sampled_from(
    ["", "x = 1", "y\n", "!ls", "%%time\nz\n", "if x:\n    y\n", "x = (", "a = !ls\n\n", "é = '😀'\r\n"]
)


@STEADY
@given(st.lists(SNIPPETS, max_size=5), st.data())
def test_edits_anywhere_change_what_the_user_wrote_there(cells: list[str], data: st.DataObject) -> None:
    notebook = Notebook.of_cells(cells)
    assert notebook.sources == tuple(cells)
    size = len(notebook.raw)
    edits: list[Edit] = []
    for _ in range(data.draw(st.integers(0, 3))):
        start = data.draw(st.integers(0, size))
        edit = Edit(
            Span(start, data.draw(st.integers(start, min(start + 4, size)))),
            data.draw(st.sampled_from(["", "w", "v = 2\n"])),
        )
        if notebook.allows([edit]) and all(
            edit.span.end < one.span.start or one.span.end < edit.span.start for one in edits
        ):
            edits.append(edit)
    new = notebook.edited(edits)
    assert len(new.raw) == len(new.code)
    for before, after, old, now in zip(notebook.cells, new.cells, notebook.sources, new.sources, strict=True):
        inside = [edit for edit in edits if before.start <= edit.span.start <= before.end]
        assert inside or now == old
        assert after.number == before.number
    assert [new.raw[mask.start : mask.end] for mask in new.masks] == [
        notebook.raw[mask.start : mask.end] for mask in notebook.masks
    ]
    assert [each.text for each in new.written.sources] == list(new.sources)


# Positions


def test_places_are_those_of_cells_for_people_and_of_the_json_for_machines() -> None:
    file = source(*CELLS)
    at = file.text.index("loss.item()")
    span = Span(at, at + len("loss.item()"))
    assert file.place(at) == Place(6, 16, 5)
    assert str(file.place(at)) == "cell 5:6:16"
    assert (file.place(at).line, file.place(at).words) == ("cell 5:6", "line 6 of cell 5")
    seen = file.seen(span)
    assert seen.source.text == CELLS[-1] + "\n"
    assert seen.source.text[seen.span.start : seen.span.end] == "loss.item()"
    stored = file.stored(span)
    row, column = stored.source.position(stored.span.start)
    assert dumped(*CELLS).splitlines()[row - 1][column - 1 :].startswith("loss.item()")
    assert stored.source.text[stored.span.start : stored.span.end] == "loss.item()"


def test_places_of_a_file_without_cells_are_as_they_were() -> None:
    file = SourceFile("a.py", "x\ny\n")
    assert (str(file.place(2)), file.place(2).line, file.place(2).words) == ("2:1", "2", "line 2")
    assert file.seen(Span(2, 3)) == file.stored(Span(2, 3)) == (file, Span(2, 3), None)


def test_places_after_a_fix_are_those_of_the_new_file() -> None:
    file = source("import torch\nx", "y\nz")
    new = file.edited([Edit(Span(0, 0), "import os\n")])
    at = new.text.index("z")
    stored = new.stored(Span(at, at + 1))
    assert stored.source.text.encode() == new.to_bytes()
    assert stored.source.text[stored.span.start :].startswith('z"')


def test_the_cells_of_an_editor_have_places_and_become_a_file() -> None:
    file = SourceFile.of_notebook("n.ipynb", Notebook.of_cells(["x", "!ls\ny"], [1, 3]))
    at = file.text.index("y")
    assert str(file.place(at)) == "cell 3:2:1"
    assert file.stored(Span(at, at + 1)) == file.seen(Span(at, at + 1))
    again = SourceFile.from_bytes("n.ipynb", file.to_bytes())
    assert (again.text, str(again.place(at))) == (file.text, "cell 3:2:1")


# Reading


def test_a_notebook_goes_through_bytes_without_a_change() -> None:
    for text in (dumped(*CELLS), dumped(*CELLS, indent=None), dumped(), dumped(*CELLS).replace("\n", "\r\n")):
        for data in (text.encode(), codecs.BOM_UTF8 + text.encode()):
            assert SourceFile.from_bytes("n.ipynb", data).to_bytes() == data


def test_what_declares_an_encoding_in_a_script_declares_none_here() -> None:
    data = dumped("# coding: latin-1\nx = 'é'", indent=None).encode()
    assert "é" in SourceFile.from_bytes("n.ipynb", data).text


def test_what_cannot_be_read_is_said_in_one_line() -> None:
    for data, words in (
        (b"import torch", "not a notebook"),
        (b'{"x": "\xff"}', "not utf-8: byte 0xff on line 1; save the file as UTF-8"),
    ):
        with pytest.raises(DecodeError, match=words) as error:
            SourceFile.from_bytes("n.ipynb", data)
        assert "declare" not in str(error.value)


def test_a_notebook_of_another_language_holds_nothing() -> None:
    data = dumped(*CELLS, metadata={"language_info": {"name": "R"}}).encode()
    file = SourceFile.from_bytes("n.ipynb", data)
    assert file.text == ""
    assert lint(file, active()) == Result()
    assert file.to_bytes() == data


# Linting and fixing


def test_cells_are_one_program() -> None:
    found = lint(source(*CELLS), active("item-in-train-loop", "host-factory-then-move")).findings
    file = source(*CELLS)
    assert [(str(file.place(each.span.start)), each.rule, str(each.frequency)) for each in found] == [
        ("cell 4:2:12", "host-factory-then-move", "per batch"),
        ("cell 5:6:16", "item-in-train-loop", "per batch"),
    ]
    unnamed = CELLS[3].replace("torch", "t")  # what a cell alone calls `t` is anything
    assert not lint(source(unnamed), active("host-factory-then-move")).findings
    assert lint(source("import torch as t", unnamed), active("host-factory-then-move")).findings


def test_a_cell_that_is_no_python_is_said_and_the_others_are_checked() -> None:
    file = source(CELLS[0], "x = = torch", CELLS[3])
    result = lint(file, active("host-factory-then-move"))
    assert [(str(file.place(each.span.start)), each.code) for each in result.diagnostics if each.span] == [
        ("cell 2:1:5", "E999")
    ]
    assert [str(file.place(each.span.start)) for each in result.findings] == ["cell 3:2:12"]
    done = fix(file, active("host-factory-then-move"), Applicability.SAFE)
    assert FIXED in done.text
    assert done.source.notebook is not None
    assert done.source.notebook.sources[1] == "x = = torch"
    (problem,) = done.result.diagnostics
    assert problem.span is not None
    assert str(done.source.place(problem.span.start)) == "cell 2:1:5"


def test_a_fix_changes_its_line_and_no_other_byte() -> None:
    for text in (dumped(*CELLS), dumped(*CELLS, indent=None), dumped(*CELLS, indent=4).replace("\n", "\r\n")):
        file = SourceFile.from_bytes("n.ipynb", text.encode())
        done = fix(file, active("host-factory-then-move"), Applicability.SAFE)
        old = "return torch.zeros(size, size).cuda()"
        assert done.source.to_bytes().decode() == text.replace(old, FIXED.replace('"', '\\"'))
        again = SourceFile.from_bytes("n.ipynb", done.source.to_bytes())
        assert lint(again, active("host-factory-then-move")) == done.result == Result()


def test_a_fix_where_no_python_stands_is_not_offered(monkeypatch: pytest.MonkeyPatch) -> None:
    file = source("x\n!ls", "y")
    place = file.text.index("0")
    impossible = fix_of(Edit(Span(place, place + 1), "z"))
    possible = fix_of(Edit(Span(0, 1), "z"))
    monkeypatch.setattr("torchlint.suppress.apply", lambda *_: Result((impossible, possible)))
    assert lint(file, active()).findings == (fix_of(), possible)
    assert lint(SourceFile("a.py", file.text), active()).findings == (impossible, possible)


def fix_of(*edits: Edit, applicability: Applicability = Applicability.SAFE) -> Finding:
    return Finding("a-rule", "TL999", Span(0, 1), "slow", fix=Fix("Change it", edits, applicability) if edits else None)


@pytest.mark.parametrize(
    ("cell", "old", "new", "is_safe"),
    [
        ("x\nf(y)", "f(y)", "g(y)", True),
        ("x\nf(y)", "f(y)", "y = f(y)", False),
        ("x\nf(y)", "f(y)", "f(y)\nz", False),
        ("x\nf(y)", "x\nf(y)", "x", False),
        ("x\nf(y);", "f(y);", "y = f(y)", True),
        ("x = 1\ny = 2", "y = 2", "y = 3\nz", True),
        ("x\nf(y)", "x\n", "x = 1\nz\n", True),
        ("x\nf(y)\n!ls", "f(y)", "y = f(y)", True),
    ],
)
def test_a_fix_that_changes_what_a_cell_shows_is_unsafe(
    cell: str, old: str, new: str, *, is_safe: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = source(cell)
    found = fix_of(Edit(Span(cell.index(old), cell.index(old) + len(old)), new))
    monkeypatch.setattr("torchlint.suppress.apply", lambda *_: Result((found,)))
    (finding,) = lint(file, active()).findings
    assert finding.fix is not None
    assert (finding.fix.applicability is Applicability.SAFE) is is_safe


def test_ignores_work_in_cells() -> None:
    rules = active("host-factory-then-move", "unused-ignore")
    silent = CELLS[3] + "  # torchlint: ignore[host-factory-then-move]"
    assert lint(source(CELLS[0], silent), rules).is_clean
    assert lint(source("# torchlint: file-ignore[host-factory-then-move]", *CELLS), rules).is_clean
    needless = source(CELLS[0], "x = 1\ny = 2  # torchlint: ignore[host-factory-then-move]")
    done = fix(needless, rules, Applicability.SAFE)
    assert done.source.notebook is not None
    assert done.source.notebook.sources[-1] == "x = 1\ny = 2"


# Runs


def test_a_run_finds_notebooks_and_says_the_cell(folder: Path, capsys: Capture) -> None:
    lines = said(capsys, "check", "--output-format", "concise", status=1).splitlines()
    assert [line.partition(" TL")[0] for line in lines if " TL" in line] == [
        "n.ipynb:cell 4:2:12:",
        "n.ipynb:cell 5:6:16:",
    ]
    assert (folder / "n.ipynb").read_text(encoding="utf-8") == dumped(*CELLS)


@pytest.mark.usefixtures("folder")
def test_the_frame_is_of_the_cell_as_the_user_wrote_it(capsys: Capture) -> None:
    out = said(capsys, "check", status=1)
    assert (
        " --> n.ipynb:cell 4:2:12\n"
        "  |\n"
        "1 | def mask(size):  # torchlint: hot[per-batch]\n"
        "2 |     return torch.zeros(size, size).cuda()\n"
        "  |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  |\n"
    ) in out
    assert f"::: cell 4\n  |\n2 -     return torch.zeros(size, size).cuda()\n2 +     {FIXED}\n  |\n" in out
    assert "optimizer.step()\n6 |     print" in out


@pytest.mark.usefixtures("folder")
def test_the_json_report_has_cell_and_row_of_the_file(capsys: Capture) -> None:
    found = json.loads(said(capsys, "check", "--output-format", "json"))
    first = found[0]
    row = dumped(*CELLS).splitlines().index('    "    return torch.zeros(size, size).cuda()"') + 1
    assert (first["cell"], first["location"], first["end_location"]) == (
        4,
        {"row": 2, "column": 12},
        {"row": 2, "column": 42},
    )
    assert first["file_location"] == {"row": row, "column": 17}
    (edit,) = first["fix"]["edits"]
    assert (edit["cell"], edit["location"]) == (4, {"row": 2, "column": 12})


@pytest.mark.usefixtures("folder")
def test_annotations_stand_on_the_line_of_the_file(capsys: Capture) -> None:
    row = dumped(*CELLS).splitlines().index('    "    return torch.zeros(size, size).cuda()"') + 1
    first = said(capsys, "check", "--output-format", "github").splitlines()[0]
    assert f"file=n.ipynb,line={row},col=17,endLine={row},endColumn=47::n.ipynb:cell 4:2:12: TL201 " in first


def test_sarif_speaks_of_the_file_and_its_fix_mends_it(folder: Path, capsys: Capture) -> None:
    text = dumped(*CELLS)
    result, _ = json.loads(said(capsys, "check", "--output-format", "sarif"))["runs"][0]["results"]
    assert result["message"]["text"].endswith("(line 2 of cell 4)")
    region = result["locations"][0]["physicalLocation"]["region"]
    lines = text.splitlines(keepends=True)
    line = lines[region["startLine"] - 1]
    assert (
        line[region["startColumn"] - 1 : region["endColumn"] - 1]
        == region["snippet"]["text"]
        == "torch.zeros(size, size).cuda()"
    )
    for replacement in reversed(result["fixes"][0]["artifactChanges"][0]["replacements"]):
        place = replacement["deletedRegion"]
        assert place["startLine"] == place["endLine"]
        line = lines[place["startLine"] - 1]
        new = line[: place["startColumn"] - 1] + replacement["insertedContent"]["text"] + line[place["endColumn"] - 1 :]
        lines[place["startLine"] - 1] = new
    said(capsys, "fix", status=1)
    assert "".join(lines) == (folder / "n.ipynb").read_text(encoding="utf-8")


def test_a_fix_in_several_cells_is_shown_cell_by_cell() -> None:
    file = source("a", "b")
    edits = (Edit(Span(0, 1), "A"), Edit(Span(file.text.index("b"), file.text.index("b") + 1), "B"))
    report = FileReport(file, Result((fix_of(*edits),)))
    out = render("full", [report], ReportOptions(rules=()))
    assert "::: cell 1\n  |\n1 - a\n1 + A\n  |\n::: cell 2\n  |\n1 - b\n1 + B\n  |\n" in out


def test_a_fix_is_written_and_a_second_one_changes_nothing(folder: Path, capsys: Capture) -> None:
    said(capsys, "fix", status=1)
    new = (folder / "n.ipynb").read_bytes()
    changed = [line for line in new.decode().splitlines() if line not in dumped(*CELLS).splitlines()]
    assert changed == ['    "    ' + FIXED.replace('"', '\\"') + '"']
    said(capsys, "fix", status=1)
    assert (folder / "n.ipynb").read_bytes() == new


@pytest.mark.usefixtures("folder")
def test_a_difference_is_one_of_cells(capsys: Capture) -> None:
    out = said(capsys, "fix", "--diff", status=1)
    lines = out.splitlines()
    assert [line.split("/")[1].strip() for line in lines[:2]] == ["n.ipynb:cell 4"] * 2
    assert lines[2:] == [
        "@@ -1,2 +1,2 @@",
        " def mask(size):  # torchlint: hot[per-batch]",
        "-    return torch.zeros(size, size).cuda()",
        f"+    {FIXED}",
    ]


def test_ignores_are_written_into_cells(folder: Path, capsys: Capture) -> None:
    said(capsys, "check", "--add-ignore=known", status=0)
    said(capsys, "check", status=0)
    old, new = (
        json.loads(text)["cells"] for text in (dumped(*CELLS), (folder / "n.ipynb").read_text(encoding="utf-8"))
    )
    assert new[3]["source"][1] == old[3]["source"][1] + "  # torchlint: ignore[host-factory-then-move]  # known"
    assert [cell for cell in range(5) if old[cell] != new[cell]] == [3, 4]


def test_standard_input(folder: Path) -> None:
    command = [sys.executable, "-m", "torchlint", "fix", "-", "--stdin-filename", "n.ipynb"]
    done = subprocess.run(command, cwd=folder, input=dumped(*CELLS).encode(), capture_output=True, check=False)
    assert done.stdout.decode() == dumped(*CELLS).replace(
        "return torch.zeros(size, size).cuda()", FIXED.replace('"', '\\"')
    )
    assert b"n.ipynb:cell 5:6:16" in done.stderr


UTILS = """\
import torch


def accuracy(outputs, targets):
    with torch.no_grad():
        correct = outputs.argmax(1).eq(targets).float().sum().item()
    return correct / targets.size(0)
"""


@pytest.mark.parametrize("cache", [["--no-cache"], []])
def test_a_notebook_counts_as_caller(folder: Path, capsys: Capture, cache: list[str]) -> None:
    (folder / "torchlint.toml").touch()
    (folder / "utils.py").write_text(UTILS)
    loop = (
        "for x, y in loader:\n    outputs = net(x.cuda())\n    loss = criterion(outputs, y.cuda())\n"
        "    print(accuracy(outputs, y.cuda()))\n    loss.backward()\n    optimizer.step()"
    )
    (folder / "n.ipynb").write_text(dumped("!ls", CELLS[0], "from utils import accuracy", CELLS[1], loop))
    for _ in range(2):
        assert run(["check", "utils.py", "--output-format", "concise", *cache]) == 1
        assert "(called per batch from n.ipynb:cell 5:4)" in capsys.readouterr().out


def test_the_same_bytes_under_another_name_are_another_file(folder: Path, capsys: Capture) -> None:
    """What the cache holds of a notebook says nothing of a script with the same bytes, and the other way round."""
    text = dumped(*CELLS, indent=None).replace("null", "None")
    for name in ("m.py", "m.ipynb", "l.ipynb", "l.py"):
        (folder / name).write_text(text.replace("None", "0"))
        for _ in range(2):
            run(["check", name, "--output-format", "concise"])
            assert ("cell 4:2:12" in capsys.readouterr().out) is name.endswith(".ipynb")


@pytest.mark.usefixtures("folder")
def test_what_is_known_of_a_line(capsys: Capture) -> None:
    out = said(capsys, "check", "--explain-model", "n.ipynb:cell 5:4", status=0)
    assert out.startswith("n.ipynb:cell 5:4: loss.backward()\n  runs per batch\n    in the loop on line 2 of cell 5, ")
    for place in ("n.ipynb:4", "n.ipynb:cell 9:1", "n.ipynb:cell 5:9", "n.ipynb:cell 3:1"):
        assert run(["check", "--explain-model", place]) == 2
        assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.usefixtures("folder")
def test_no_notebook_is_run(capsys: Capture) -> None:
    assert run(["verify", "n.ipynb", "--device", "cpu"]) == 2
    err = capsys.readouterr().err
    assert "a notebook cannot be run here; make it a program first: `jupyter nbconvert --to script n.ipynb`" in err


def test_a_quote_in_a_word_that_rules_look_for_is_found_in_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_pattern", lambda _: re.compile(b'"cpu"'))
    data = dumped('import torch\nwith torch.device("cpu"):\n    x = 1').encode()
    assert may_concern("n.ipynb", data, active)
    assert not may_concern("n.py", data, active)
