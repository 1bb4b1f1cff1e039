"""A text that is read piece by piece has the tree that it has as a whole."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import libcst as cst
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchlint.syntax import incremental as pieces_module
from torchlint.syntax.incremental import Pieces
from torchlint.syntax.parsing import parse

ROOT = Path(__file__).parents[2]
FILES = sorted((*ROOT.glob("torchlint/**/[a-e]*.py"), *ROOT.glob("rules/**/[d-h]*.py"), *ROOT.glob("fixtures/*/ok.py")))
TYPED = (
    "\n", "\n\n", "#", " ", "    ", "\t", "x = 1\n", "\\\n", "(", ")", '"""', "'", "@d\n", "def f():\n    pass\n",
    "if a:\n  b\n", "else:\n    c\n", "class A: pass\n", "# a \\\n", "    # a\n", "try:\n    x\nexcept E:\n    y\n", "with a:\n    # b\n    c\n\n# d\n",
)  # fmt: skip


def read(text: str, pieces: Pieces | None = None) -> cst.Module | str:
    """The module, or why there is none."""
    try:
        return parse(text) if pieces is None else pieces.parse(text)
    except cst.ParserSyntaxError as error:
        return str(error)


def same(text: str, pieces: Pieces) -> bool:
    whole, joined = read(text), read(text, pieces)
    if isinstance(whole, str) or isinstance(joined, str):
        return whole == joined
    nodes = [id(node) for node in joined.body]
    return joined.code == whole.code and whole.deep_equals(joined) and len(set(nodes)) == len(nodes)


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=f"{path.parent.name}-{path.stem}", marks=[pytest.mark.slow] * (number % 5 > 0))
        for number, path in enumerate(FILES)
    ],
)
def test_files(path: Path) -> None:
    assert same(path.read_text(encoding="utf-8"), Pieces())


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# nothing\n",
        "import a\n\n\n# above\n\n# it\n@b\n@c(\n    1\n)\nasync def d():\n    e\n    # below\n\n  # between\n# above\nclass F: pass\n# end",
        "def a():\n  b\n\ndef c():\n    d\n",
        "import a\n\ndef b():\n    c\n# d \\\n",
        "import a\n\ndef b():\n# c \\\n    for d in e:\n        f\n",
        "    \n\ndef a():\n    b\n\ndef c():\n    d\n",
        "# a\n    # b\n\n\ndef c():\n    d\nif e:\n    f\n",
        "x = '''\ndef a():\n'''\ndef b(): pass\n",
        "x = (\nif_,\n)\nfor a in b: c\nelse: d\n",
        "x = 1 \\\n\nif a: b\n",
        "a = 1; b = 2\nif a: b\nif a: b\nif a: b\n",
        "def a(): pass\r\ndef b(): pass\r\n",
        "def a():\n\tpass\nif b:\n\tc\n",
    ],
)
def test_texts(text: str) -> None:
    assert same(text, Pieces())


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_edits(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from([path for path in FILES if path.stat().st_size < 4_000]))
    text, pieces = path.read_text(encoding="utf-8"), Pieces()
    for _ in range(4):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.sampled_from((0, 0, 1, 30))))
        new = text[:start] + data.draw(st.sampled_from(TYPED)) + text[end:]
        assert same(new, pieces)
        if not isinstance(read(new), str):
            text = new


def test_what_stays_is_not_read_again() -> None:
    pieces = Pieces()
    texts = [f"import a\n\n\ndef f():\n    return {number}\n\n\ndef g():\n    return 0\n" for number in range(3)]
    modules = [pieces.parse(text) for text in texts]
    for one, other in pairwise(modules):
        assert one.body[0] is other.body[0]
        assert one.body[1] is not other.body[1]
        assert one.body[2] is other.body[2]


@pytest.mark.parametrize("end", ["", "def broken(:\n"])
def test_what_is_remembered_is_bounded(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pieces_module, "_MOST", 1_000)
    pieces = Pieces()
    stays = "def f():\n    return 0\n"
    for number in range(200):
        text = f"import a\n{stays}class G:\n    x = {number}  # {'long ' * 20}\n{end}"
        assert same(text, pieces)
    assert len(pieces._known) < 15  # noqa: SLF001 - nothing else tells
    assert pieces._size == sum(len(text) for text, _ in pieces._known)  # noqa: SLF001 - as above
    assert any(text.endswith(stays) for text, _ in pieces._known)  # noqa: SLF001 - as above
