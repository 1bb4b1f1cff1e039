"""While somebody types: many edits and few analyses, code that is half written, and questions that nobody waits for."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from cases import case
from editor import PULL, PUSH, VS_CODE, Profile, editor, rows
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcRequestCancelled
from samples import FAST, FOUND, FOUND_TEXTS, SLOW, TRAIN, long

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

pytestmark = pytest.mark.slow

both = pytest.mark.parametrize("profile", [PULL, PUSH], ids=str)


@both
async def test_keys_that_follow_each_other_are_looked_at_together(tmp_path: Path, profile: Profile) -> None:
    async with editor(tmp_path, profile) as seen:
        uri = seen.open("train.py", TRAIN)
        assert await seen.rows(uri) == FOUND
        before, keys = await seen.analyses(), 60
        for number in range(keys):
            comment = "# " + "x" * number
            seen.edit(uri, f"{comment}\ndef noise" if number else "\ndef noise", f"{comment}x\ndef noise")
            await asyncio.sleep(0.002)
        assert await seen.rows(uri) == FOUND
        assert await seen.analyses() - before <= keys / 4
        assert len(seen.published) <= keys / 4
        await seen.silence()
        if not seen.pulls:
            assert seen.published[-1].version == keys + 1, "the last version has the last word"


async def test_each_key_of_a_line(tmp_path: Path) -> None:
    """A finding is typed, a key at a time; at no time is something found where the code is not."""
    async with editor(tmp_path, PUSH) as seen:
        uri = seen.open("train.py", TRAIN)
        assert await seen.rows(uri) == FOUND
        seen.edit(uri, "def noise", "def more(n: int) -> torch.Tensor:\n    return \n\n\ndef noise")
        moved = [FOUND[0], *((row + 4, code) for row, code in FOUND[1:])]
        typed = ""
        for key in "torch.ones(n).cuda()":
            seen.edit(uri, f"    return {typed}\n\n\ndef noise", f"    return {typed}{key}\n\n\ndef noise")
            typed += key
            found = await seen.findings(uri)
            assert {seen.text_at(uri, each.range) for each in found} - {typed} == FOUND_TEXTS
            assert set(moved) <= set(rows(found)), typed
        assert await seen.rows(uri) == sorted([*moved, (14, "TL201")])


async def test_code_that_is_half_written(tmp_path: Path) -> None:
    """What was found on lines that are as they were stays and moves with them; on others nothing is said."""
    async with editor(tmp_path, VS_CODE) as seen:
        uri = seen.open("train.py", TRAIN)
        assert await seen.rows(uri) == FOUND
        seen.edit(uri, "def noise", "def broken(:\n\ndef noise")
        moved = [FOUND[0], *((row + 2, code) for row, code in FOUND[1:])]
        found = await seen.findings(uri)
        assert rows(found) == moved
        assert {seen.text_at(uri, each.range) for each in found} == FOUND_TEXTS
        seen.edit(uri, SLOW, SLOW[:-1])  # broken in two places now, of which one was found in
        assert await seen.rows(uri) == [each for each in moved if each[1] != "TL201"]
        seen.edit(uri, "def broken(:\n\n", "")
        assert await seen.rows(uri) == [each for each in FOUND if each[1] != "TL201"]
        seen.edit(uri, SLOW[:-1] + "\n", SLOW + "\n")
        assert await seen.rows(uri) == FOUND


async def test_actions_in_code_that_is_half_written(tmp_path: Path) -> None:
    """A fix is offered where its line stands now, and makes the change that it is to make there."""
    async with editor(tmp_path, PULL) as seen:
        uri = seen.open("train.py", TRAIN)
        assert await seen.rows(uri) == FOUND
        seen.edit(uri, "def evaluate", "def broken(:\n\ndef evaluate")
        found = [each for each in await seen.findings(uri) if each.code == "TL201"]
        assert rows(found) == [(16, "TL201")]
        fixes = [each for each in await seen.actions(uri, 16) if each.is_preferred]
        assert len(fixes) == 1
        seen.take(fixes[0].edit)
        assert seen.documents[uri].text == TRAIN.replace("def evaluate", "def broken(:\n\ndef evaluate").replace(
            SLOW, FAST
        )


async def test_a_document_that_begins_half_written(tmp_path: Path) -> None:
    async with editor(tmp_path, VS_CODE) as seen:
        uri = seen.open("train.py", "def broken(:\n" + TRAIN)
        assert await seen.rows(uri) == [], "syntax errors are for others to tell"
        seen.edit(uri, "def broken(:\n", "")
        assert await seen.rows(uri) == FOUND


@both
async def test_texts_that_are_no_program(tmp_path: Path, profile: Profile) -> None:
    async with editor(tmp_path, profile, may_log_errors=True) as seen:
        texts = ("", "\n", "\x00", "\ufeffimport torch\n", "#" * 100_000, "(" * 5000, "\ud83d")
        for number, text in enumerate(texts):
            with case(text[:20]):
                uri = seen.open(f"train{number}.py", text)
                assert await seen.rows(uri) == []
                seen.replace(uri, TRAIN)
                assert await seen.rows(uri) == FOUND


async def test_everything_is_deleted_and_undone(tmp_path: Path) -> None:
    async with editor(tmp_path, PUSH) as seen:
        uri = seen.open("train.py", TRAIN)
        assert await seen.rows(uri) == FOUND
        seen.replace(uri, "")
        assert await seen.rows(uri) == []
        seen.replace(uri, TRAIN)
        assert await seen.rows(uri) == FOUND


async def test_a_question_that_is_cancelled(tmp_path: Path) -> None:
    text, expected = long(5000)
    async with editor(tmp_path, VS_CODE) as seen:
        uri = seen.open("long.py", text)
        asked = asyncio.ensure_future(
            seen.ask(
                lsp.TEXT_DOCUMENT_DIAGNOSTIC,
                lsp.DocumentDiagnosticParams(lsp.TextDocumentIdentifier(uri)),
                name="taken-back",
            )
        )
        await asyncio.sleep(0.05)
        before = asyncio.get_running_loop().time()
        seen.client.cancel_request(lsp.CancelParams("taken-back"))
        with pytest.raises(JsonRpcRequestCancelled):
            await seen.within(asked)
        assert asyncio.get_running_loop().time() - before < 1, "nobody waits for the analysis"
        assert await seen.rows(uri) == expected, "the next question is answered"


async def test_a_question_that_nobody_asked_is_cancelled(tmp_path: Path) -> None:
    async with editor(tmp_path, PUSH) as seen:
        uri = seen.open("train.py", TRAIN)
        for number in (0, 1, 10_000, "never"):
            seen.client.cancel_request(lsp.CancelParams(number))
        assert await seen.rows(uri) == FOUND
        hovered = asyncio.ensure_future(
            seen.ask(
                lsp.TEXT_DOCUMENT_HOVER,
                lsp.HoverParams(lsp.TextDocumentIdentifier(uri), lsp.Position(13, 12)),
                name="answered",
            )
        )
        assert await seen.within(hovered) is not None
        seen.client.cancel_request(lsp.CancelParams("answered"))
        assert await seen.rows(uri) == FOUND


async def test_what_is_asked_is_answered_of_the_version_that_is_open(tmp_path: Path) -> None:
    """Questions right behind an edit, before the server had time to look at it."""
    async with editor(tmp_path, PULL) as seen:
        uri = seen.open("train.py", TRAIN)
        assert await seen.rows(uri) == FOUND
        for row in range(15, 25):
            seen.edit(uri, "def noise", "\ndef noise")
            (finding,) = [each for each in await seen.actions(uri, row, diagnostics=()) if each.is_preferred]
            changed = seen.documents[uri].text
            seen.take(finding.edit)
            assert seen.documents[uri].text == changed.replace(SLOW, FAST)
            seen.replace(uri, changed)
            hover = await seen.hover(uri, SLOW)
            assert hover is not None
            assert hover.range is not None
            assert seen.text_at(uri, hover.range) == SLOW


async def test_many_documents_at_once(tmp_path: Path) -> None:
    async with editor(tmp_path, PUSH) as seen:
        uris = [seen.open(f"train{number}.py", "\n" * number + TRAIN) for number in range(20)]

        async def expected(number: int, uri: str) -> Sequence[lsp.Diagnostic]:
            found = await seen.findings(uri)
            assert rows(found) == [(row + number, code) for row, code in FOUND]
            return found

        await asyncio.gather(*(expected(number, uri) for number, uri in enumerate(uris)))
        for number, uri in enumerate(uris):
            seen.edit(uri, SLOW, FAST)
            if number % 2:
                seen.close(uri)
        for uri in uris[::2]:
            assert len(await seen.findings(uri)) == 3
        await seen.silence()
        last = {each.uri: len(each.diagnostics) for each in seen.published}
        assert last == {uri: 0 if number % 2 else 3 for number, uri in enumerate(uris)}
