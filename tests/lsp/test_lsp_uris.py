"""Documents that are no files: those that will be are looked at, others are left alone, and none does any harm."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
from cases import case
from editor import PULL, PUSH, VS_CODE, Profile, editor
from lsprotocol import types as lsp
from samples import ALL_SAFE, FOUND, SLOW, TRAIN

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

FOREIGN = (
    "git:/home/somebody/train.py?%7B%22path%22%3A%22train.py%22%2C%22ref%22%3A%22~%22%7D",
    "gitlens://0123abc/train.py",
    "http://example.org/train.py",
    "https://example.org/train.py",
    "vscode-vfs://github/somebody/train.py",
    "vscode-notebook-cell:/home/somebody/n.ipynb#W0sZmlsZQ%3D%3D",
    "output:extension-output",
    "debug:/home/somebody/train.py",
    "zipfile:///tmp/x.zip::train.py",
)


async def test_what_will_be_a_file_is_looked_at(tmp_path: Path) -> None:
    async with editor(tmp_path, PUSH) as seen:
        for uri in ("untitled:Untitled-1", "untitled:/home/somebody/train.py", "untitled:train"):
            with case(uri):
                seen.open(uri, TRAIN)
                assert await seen.rows(uri) == FOUND
                assert await seen.hover(uri, SLOW) is not None
                (action,) = await seen.actions(uri, 1, ["source.fixAll"], ())
                seen.take(action.edit)
                assert seen.documents[uri].text == ALL_SAFE
                seen.close(uri)


async def test_what_will_be_a_file_has_the_configuration_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "torchlint.toml").write_text('ignore = ["TL201"]\n', encoding="utf-8")
    async with editor(tmp_path, PULL) as seen:
        uri = seen.open("untitled:Untitled-1", TRAIN)
        assert await seen.rows(uri) == [each for each in FOUND if each[1] != "TL201"]


@pytest.mark.parametrize("profile", [PUSH, VS_CODE], ids=str)
async def test_what_is_not_the_users_is_left_alone(tmp_path: Path, profile: Profile) -> None:
    async with editor(tmp_path, profile) as seen:
        for uri in FOREIGN:
            seen.open(uri, TRAIN)
        own = seen.open("train.py", TRAIN)
        assert await seen.rows(own) == FOUND
        for uri in FOREIGN:
            with case(uri):
                if seen.pulls:
                    assert await seen.rows(uri) == []
                assert await seen.hover(uri, SLOW) is None
                assert await seen.actions(uri, 14, diagnostics=()) == []
                seen.replace(uri, TRAIN + "# x\n")
        seen.edit(own, "def noise", "\ndef noise")
        assert len(await seen.findings(own)) == len(FOUND), "what was changed before is looked at before"
        assert not {each.uri for each in seen.published if each.diagnostics} - {own}
        for uri in FOREIGN:
            seen.close(uri)
        assert await seen.hover(own, SLOW) is not None


@pytest.mark.parametrize("uri", ["file:///c%3A/Users/me/a%20b/train.py", "file:///C:/Users/me/train.py"])
async def test_as_windows_writes_it(tmp_path: Path, uri: str) -> None:
    """Wherever it is opened, the document is looked at, and its fixes go to the URI that the editor knows it by."""
    async with editor(tmp_path, VS_CODE) as seen:
        seen.open(uri, TRAIN)
        assert await seen.rows(uri) == FOUND
        assert await seen.hover(uri, SLOW) is not None
        (action,) = await seen.actions(uri, 1, ["source.fixAll"], ())
        seen.take(action.edit)
        assert seen.documents[uri].text == ALL_SAFE


HARDLY = (
    "",
    "train.py",
    "file:",
    "file://",
    "file:///",
    "file://server/share/train.py",
    "file:///a%00b.py",
    "%%%",
    ":",
)


async def test_what_is_hardly_a_uri(tmp_path: Path) -> None:
    async with editor(tmp_path, PUSH, may_log_errors=True) as seen:
        own = seen.open("own.py", "")
        for number, uri in enumerate(HARDLY):
            with case(uri):
                item = lsp.TextDocumentItem(uri, "python", 1, TRAIN)
                seen.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
                params = lsp.HoverParams(lsp.TextDocumentIdentifier(uri), lsp.Position(13, 15))
                await seen.ask(lsp.TEXT_DOCUMENT_HOVER, params)
                seen.replace(own, TRAIN + "#" * number)
                assert await seen.rows(own) == FOUND


NAMES = (
    "with blank.py",
    "ümläut 😀.py",
    "per%cent.py",
    "hash#mark.py",
    "question?.py",
    "a+b&c=d.py",
    "deep/" * 20 + "x.py",
)


@pytest.mark.skipif(sys.platform == "win32", reason="some are no names there")
async def test_names_of_all_kinds(tmp_path: Path) -> None:
    """The file that is meant is found, or its configuration would not hold."""
    async with editor(tmp_path, VS_CODE) as seen:
        for name in NAMES:
            with case(name):
                path = tmp_path / f"{name}.folder" / name.rpartition("/")[2]
                path.parent.mkdir(parents=True)
                (path.parent / "torchlint.toml").write_text('select = ["TL201"]\n', encoding="utf-8")
                uri = seen.open(path.as_uri(), TRAIN)
                assert await seen.rows(uri) == [(14, "TL201")]


async def test_another_spelling_of_a_uri(tmp_path: Path) -> None:
    """As Visual Studio Code writes it: what need not be escaped is."""
    (tmp_path / "a b").mkdir()
    (tmp_path / "a b" / "torchlint.toml").write_text('select = ["TL201"]\n', encoding="utf-8")
    async with editor(tmp_path, PUSH) as seen:
        uri = seen.open(seen.uri("a b/@x.py").replace("@", "%40").replace("/x", "%2Fx"), TRAIN)
        assert await seen.rows(uri) == [(14, "TL201")]
