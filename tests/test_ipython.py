"""What of a cell is Python: IPython's own syntax is masked, and no offset moves."""

from __future__ import annotations

import sys
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_samples import STEADY

from torchlint.notebook.ipython import read, shown

# What the user wrote, and what is read; where nothing is masked the second is left out.
PLAIN = (
    "",
    "  \n",
    "x = 1\n",
    "await fetch()\nasync for x in y: pass",
    "x = 5 % y",
    "s = '''\n!ls\n%cd\n'''\n",
    "print('why?')  # why?",
    "f'{x!r} 100%'",
    "x = [\n    1\n    % 2\n]",
    "cd",
    "ls = 3\nls + 1",
)
MASKED = {
    "a shell command": ("!ls | grep 'x\nf()", "0            \nf()"),
    "a magic": ("%matplotlib inline\nx", "0                 \nx"),
    "a magic that goes on": ("!pip install \\\n  torch\nx", "0             \n       \nx"),
    "in a block": ("if x:\n    !ls -l\nelse:\n    %cd y", "if x:\n    0     \nelse:\n    0    "),
    "behind brackets and strings": ("f(\n  ')',\n)\ns = '''\n!'''\n!ls", "f(\n  ')',\n)\ns = '''\n!'''\n0  "),
    "what a command gives": ("x = !ls\ny['a'], z = %sql select", "x = _  \ny['a'], z = _          "),
    "a timed statement": ("%time f(x)\n%timeit -n 10 -r3 g()", "0   ; f(x)\n0               ; g()"),
    "a timed value": ("x = %time f(y)", "x =       f(y)"),
    "a timed block": ("%time for x in y: f(x)", "0                     "),
    "a report of times": ("x = %timeit -o f(y)", "x = _              "),
    "help": ("x.y?\nf??\n?print\n%time?\nx[0]?  # what", "0   \n0  \n0     \n0     \n0            "),
    "calls without brackets": ("/f a\n,f b c\n;f d", "0   \n0     \n0   "),
    "commands": ("pip install torch\ncd ..\nls\nx = 1", "0                \n0    \n0 \nx = 1"),
    "a command beside a name": ("cd = 1\ncd..\nrm -r x\n!ls", None),
    "a timed cell": ("%%time\nx = 1", "      \nx = 1"),
    "magics above magics": ("\n%%capture out\n%%time\n!ls\nx", "\n             \n      \n0  \nx"),
    "another language": ("%%bash\nls $x\n", "      \n     \n"),
    "nothing below": ("%%time", "      "),
    "CR LF": ("!ls \\\r\n -l\r\nx\r\n", "0    \r\n   \r\nx\r\n"),
    "indented": ("  x = 1\n  y", "       \n   "),
    "prompts": (">>> x = 1\n1", "         \n "),
    "half a character": ("s = '\ud83d'", "s = '\ufffd'"),
}


@pytest.mark.parametrize("cell", PLAIN)
def test_python_is_read_as_it_is(cell: str) -> None:
    assert read(cell) == (cell, (), 0, None)


@pytest.mark.parametrize(
    ("cell", "code"), [pair for pair in MASKED.values() if pair[1]], ids=[n for n, p in MASKED.items() if p[1]]
)
def test_what_is_not_python_is_masked(cell: str, code: str) -> None:
    reading = read(cell)
    assert (reading.code, reading.error) == (code, None)
    assert reading.masks


@pytest.mark.parametrize("cell", [cell for cell, _ in MASKED.values()])
def test_masks_are_what_differs_and_lie_apart(cell: str) -> None:
    reading = read(cell)
    masked = {place for mask in reading.masks for place in range(mask.start, mask.end)}
    assert len(reading.code) == len(cell)
    assert all(
        one == other or place in masked for place, (one, other) in enumerate(zip(cell, reading.code, strict=True))
    )
    assert all(one.end <= other.start for one, other in pairwise(reading.masks))


def test_nothing_may_be_written_above_a_cell_magic() -> None:
    assert read("\n%%time\n%%capture\nx").body == len("\n%%time\n%%capture\n")
    assert read("%%bash\nls").body == len("%%bash\nls")
    assert read("!ls\nx").body == 0


@pytest.mark.parametrize(
    ("cell", "place", "words"),
    [
        ("x = = 1\ny", 4, "invalid syntax"),
        ("!ls\ny\nx = \n", 10, "invalid syntax"),
        ("%%time\nx = = 1", 11, "invalid syntax"),
        ("f(\n!ls\n)", 3, "invalid syntax"),
        ("x\0", 0, "null bytes"),
    ],
)
def test_a_cell_that_cannot_be_read_is_masked_as_a_whole(cell: str, place: int, words: str) -> None:
    reading = read(cell)
    assert not reading.code.strip()
    assert reading.error is not None
    assert reading.error[0] == place
    assert words in reading.error[1]


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="this Python knows that syntax itself")
def test_syntax_newer_than_this_interpreter_is_read() -> None:
    assert read("x = f'{y['a']}' + f'{z!r}'\n") == ("x = f'{y['a']}' + f'{z!r}'\n", (), 0, None)
    assert read("!ls\nx = f'{y['a']}'").code == "0  \nx = f'{y['a']}'"


@pytest.mark.parametrize("cell", ["(" * 5000, "x = " + "-" * 20_000, "if x:\n" * 500, "x = " + "f(" * 3000 + "\n!ls"])
def test_deep_nesting_ends_no_process(cell: str) -> None:
    assert read(cell).error is not None


PARTS = st.sampled_from(
    [
        "!",
        "%",
        "?",
        "%%time",
        "%%bash",
        "%time ",
        " ",
        "  ",
        "\n",
        "\r\n",
        "\\\n",
        "x",
        "=",
        "'",
        '"""',
        "(",
        ")",
        "#",
        ";",
        ":",
        "if x",
        "f(1)",
        "ls",
        ">>> ",
        "\ud800",
        "é",
        "\t",
    ]
)


@STEADY
@given(st.lists(PARTS).map("".join))
def test_any_cell_is_read(cell: str) -> None:
    reading = read(cell)
    assert len(reading.code) == len(cell)
    assert [place for place, c in enumerate(cell) if c in "\r\n"] == [
        place for place, c in enumerate(reading.code) if c in "\r\n"
    ]
    assert 0 <= reading.body <= len(cell)
    assert all(one.end <= other.start for one, other in pairwise(reading.masks))
    assert read(reading.code).error is None
    if reading.error is not None:
        assert 0 <= reading.error[0] <= len(cell)


def test_what_a_cell_shows() -> None:
    assert shown("x\nf(y)  # why\n") == (2, "f(y)")
    assert shown("é = 'ü'\né + 'ö'") == (2, "é + 'ö'")
    assert shown("f(\n  y\n)") == (1, "f(\n  y\n)")
    assert shown("f(y);") is shown("f(y) ; # x") is shown("x = 1") is shown("") is shown("x =") is None
