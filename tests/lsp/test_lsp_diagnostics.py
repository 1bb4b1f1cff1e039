"""What an editor is told of a document: what, where in its own units, of which version, and in one way only."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from editor import PROFILES, PULL, PUSH, VS_CODE, Profile, editor, rows
from lsprotocol import types as lsp
from samples import EMOJI, FAST, FOUND, LOOP, SLOW, TRAIN, UTILS, long

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

every = pytest.mark.parametrize("profile", PROFILES, ids=str)


@every
async def test_a_document_is_found_in(tmp_path: Path, profile: Profile) -> None:
    async with editor(tmp_path, profile) as seen:
        uri = seen.open("train.py", TRAIN)
        found = await seen.findings(uri)
        assert rows(found) == FOUND
        assert [seen.text_at(uri, each.range) for each in found] == [
            "nn.functional.mse_loss(model(inputs), targets).item()",
            SLOW,
            "loss.item()",
            "TL301",
        ]
        assert {each.source for each in found} == {"torchlint"}
        read, made, _, ignore = found
        assert read.message.startswith("`nn.functional.mse_loss(model(inputs), targets).item()` synchronizes with")
        assert (made.severity, made.tags) == (lsp.DiagnosticSeverity.Hint, None)
        assert (ignore.severity, ignore.tags) == (lsp.DiagnosticSeverity.Hint, (lsp.DiagnosticTag.Unnecessary,))
        assert made.code_description is not None
        assert made.code_description.href.endswith("/rules/host-factory-then-move/")
        assert read.related_information is not None
        assert [each.message for each in read.related_information] == ["runs per batch"]
        assert made.related_information is None, "how often it runs is not known"


@every
async def test_places_are_in_the_units_of_the_client(tmp_path: Path, profile: Profile) -> None:
    async with editor(tmp_path, profile) as seen:
        assert (seen.answer.capabilities.position_encoding or "utf-16") == profile.encoding
        uri = seen.open("made.py", EMOJI)
        (found,) = await seen.findings(uri)
        in_points = EMOJI.split("\n")[4].index(SLOW)
        more = {"utf-16": 1, "utf-8": 1 + 2 + 3}[profile.encoding]
        assert found.range.start == lsp.Position(4, in_points + more)
        assert found.range.end == lsp.Position(4, in_points + more + len(SLOW))
        seen.edit(uri, '"aé€😀"', '"😀😀"')  # an edit whose place is in these units too
        (found,) = await seen.findings(uri)
        assert seen.text_at(uri, found.range) == SLOW
        (fix, *_) = await seen.actions(uri, 5)
        seen.take(fix.edit)
        assert seen.documents[uri].text == EMOJI.replace('"aé€😀"', '"😀😀"').replace(SLOW, FAST)
        assert await seen.rows(uri) == []


async def test_crlf_and_other_ends_of_lines(tmp_path: Path) -> None:
    async with editor(tmp_path, PUSH) as seen:
        uri = seen.open("train.py", TRAIN.replace("\n", "\r\n"))
        assert await seen.rows(uri) == FOUND
        # Python's lines do not end at a form feed or at a line separator, and neither do the protocol's.
        seen.edit(uri, "def noise", "# \x0c \u2028 \x1c\r\ndef noise")
        assert await seen.rows(uri) == [(9, "TL302"), (15, "TL201"), (25, "TL301"), (26, "TL001")]


@every
async def test_each_version_is_told_of_and_nothing_twice(tmp_path: Path, profile: Profile) -> None:
    async with editor(tmp_path, profile) as seen:
        uri = seen.open("train.py", TRAIN)
        assert await seen.rows(uri) == FOUND
        seen.edit(uri, SLOW, FAST)
        assert await seen.rows(uri) == [FOUND[0], *FOUND[2:]]
        seen.edit(uri, FAST, SLOW)
        assert await seen.rows(uri) == FOUND
        await seen.silence()
        told = [(each.version, len(each.diagnostics)) for each in seen.published]
        assert told == ([] if seen.pulls else [(1, 4), (2, 3), (3, 4)])


async def test_what_has_not_changed_is_not_told_again(tmp_path: Path) -> None:
    async with editor(tmp_path, PULL) as seen:
        uri = seen.open("train.py", TRAIN)

        async def pull(known: str | None) -> lsp.DocumentDiagnosticReport:
            identifier = lsp.TextDocumentIdentifier(uri)
            params = lsp.DocumentDiagnosticParams(identifier, previous_result_id=known)
            report: lsp.DocumentDiagnosticReport = await seen.within(seen.client.text_document_diagnostic_async(params))
            return report

        first = await pull(None)
        assert isinstance(first, lsp.RelatedFullDocumentDiagnosticReport)
        assert first.result_id is not None
        assert isinstance(await pull(first.result_id), lsp.RelatedUnchangedDocumentDiagnosticReport)
        seen.edit(uri, SLOW, FAST)
        second = await pull(first.result_id)
        assert isinstance(second, lsp.RelatedFullDocumentDiagnosticReport)
        assert len(second.items) == 3


async def test_a_client_that_is_not_told_to_ask_again_is_sent_what_is_found(tmp_path: Path) -> None:
    """Neovim 0.11 would hear of nothing but what it types itself: not of other files, nor of what saving brings."""

    def forget(capabilities: lsp.ClientCapabilities) -> None:
        assert capabilities.workspace is not None
        capabilities.workspace.diagnostics = None

    async with editor(tmp_path, PULL, change=forget) as seen:
        uri = seen.open("train.py", TRAIN)
        await seen.until(lambda: [rows(each.diagnostics) for each in seen.published if each.uri == uri] == [FOUND])


async def test_what_is_closed_is_taken_back(tmp_path: Path) -> None:
    async with editor(tmp_path, PUSH) as seen:
        uri = seen.open("train.py", TRAIN)
        assert await seen.rows(uri) == FOUND
        seen.close(uri)
        await seen.until(lambda: not seen.published[-1].diagnostics)
        assert seen.published[-1].uri == uri
        seen.open("train.py", TRAIN)
        await seen.until(lambda: len(seen.published[-1].diagnostics) == 4)
        seen.client.text_document_did_change(
            lsp.DidChangeTextDocumentParams(
                lsp.VersionedTextDocumentIdentifier(2, uri), [lsp.TextDocumentContentChangeWholeDocument(TRAIN)]
            )
        )
        seen.close(uri)  # while it is looked at
        await seen.silence()
        assert not seen.published[-1].diagnostics


async def test_a_client_that_shows_nothing_related_is_told_what_the_message_does_not_say(tmp_path: Path) -> None:
    def without(capabilities: lsp.ClientCapabilities) -> None:
        assert capabilities.text_document is not None
        capabilities.text_document.publish_diagnostics = lsp.PublishDiagnosticsClientCapabilities()

    async with editor(tmp_path, PUSH, change=without) as seen:
        uri = seen.open("train.py", TRAIN)
        read, *_ = await seen.findings(uri)
        assert "every batch\nhelp: " in read.message
        assert read.related_information is None
        (tmp_path / "loop.py").write_text(LOOP, encoding="utf-8")
        (called,) = await seen.findings(seen.open("utils.py", UTILS))
        assert called.message.partition("\n")[0].endswith(" (runs per batch, called from loop.py:9)")
        assert called.related_information is None


@every
async def test_another_language_is_not_looked_at(tmp_path: Path, profile: Profile) -> None:
    async with editor(tmp_path, profile) as seen:
        seen.open("notes.md", TRAIN, "markdown")
        uri = seen.open("train.py", TRAIN)
        assert await seen.rows(uri) == FOUND
        await seen.silence()
        assert {each.uri for each in seen.published} <= {uri}
        if seen.pulls:
            assert await seen.rows(seen.uri("notes.md")) == []


async def test_five_thousand_lines(tmp_path: Path) -> None:
    text, expected = long(5000)
    async with editor(tmp_path, VS_CODE) as seen:
        uri = seen.open("long.py", text)
        assert await seen.rows(uri) == expected
        head = "def block_100(n: int, scale: float) -> torch.Tensor:\n"
        seen.edit(uri, head, f"{head}    more = torch.ones(n).cuda()\n")
        row = text[: text.index(head)].count("\n") + 2
        expected = [
            *(each for each in expected if each[0] < row),
            (row, "TL201"),
            *((each + 1, code) for each, code in expected if each >= row),
        ]
        assert await seen.rows(uri) == expected
        for key in "# typed":  # an edit a key, while the one before is looked at
            document = seen.documents[uri].text
            seen.replace(uri, document + key)
        assert await seen.rows(uri) == expected


async def test_the_server_answers_while_it_analyses(tmp_path: Path) -> None:
    text, expected = long(5000)
    async with editor(tmp_path, PULL) as seen:
        small = seen.open("train.py", TRAIN)
        assert await seen.rows(small) == FOUND
        uri = seen.open("long.py", text)
        looking = asyncio.ensure_future(seen.findings(uri))
        await asyncio.sleep(0.1)
        before = asyncio.get_running_loop().time()
        await seen.debug()
        took = asyncio.get_running_loop().time() - before
        assert not looking.done(), "an analysis of 5,000 lines takes longer than a question"
        assert took < 1, "the event loop does something else than to wait"
        assert rows(await looking) == expected
