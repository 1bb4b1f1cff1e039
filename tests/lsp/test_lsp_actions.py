"""What can be done about a finding, and what is said of it: actions, commands and hovers."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from cases import case
from editor import PROFILES, PULL, PUSH, VS_CODE, Editor, Profile, editor
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from samples import ALL_SAFE, FAST, FOUND, SLOW, TRAIN

from torchlint import userfolder
from torchlint.verified import Speedup, Verified, keep

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

every = pytest.mark.parametrize("profile", PROFILES, ids=str)

MADE, READ = 14, 24
MAKE = 'torchlint (TL201): Create it with `device="cuda"`'
KEEP = "torchlint (TL301, unsafe): Keep `loss` on the GPU until the loop ends"


@every
async def test_what_is_offered_for_a_safe_fix(tmp_path: Path, profile: Profile) -> None:
    async with editor(tmp_path, profile) as seen:
        uri = seen.open("train.py", TRAIN)
        (finding,) = [each for each in await seen.findings(uri) if each.code == "TL201"]
        offered = await seen.actions(uri, MADE)
        assert [(each.title, each.kind, each.is_preferred) for each in offered] == [
            (MAKE, "quickfix", True),
            ("torchlint (TL201): ignore on this line", "quickfix", None),
            ("torchlint (TL201): explain host-factory-then-move", "quickfix", None),
            ("torchlint: apply all safe fixes", "source.fixAll.torchlint", None),
        ]
        assert [list(each.diagnostics or ()) for each in offered] == [[finding], [finding], [finding], []]
        seen.take(offered[0].edit)
        assert seen.documents[uri].text == TRAIN.replace(SLOW, FAST)
        assert await seen.rows(uri) == [each for each in FOUND if each[1] != "TL201"]
        assert MAKE not in [each.title for each in await seen.actions(uri, MADE)]


@every
async def test_what_an_action_makes_of_a_document(tmp_path: Path, profile: Profile) -> None:
    async with editor(tmp_path, profile) as seen:
        with case("an unsafe fix says so and is not preferred"):
            uri = seen.open("unsafe.py", TRAIN)
            fix = (await seen.actions(uri, READ))[0]
            assert (fix.title, fix.is_preferred) == (KEEP, None)
            seen.take(fix.edit)
            fixed = TRAIN.replace("loss.item()", "loss.detach()")
            fixed = fixed.replace("    return running", "    running = float(running)\n    return running")
            assert seen.documents[uri].text == fixed
        with case("ignore on this line"):
            uri = seen.open("ignored.py", TRAIN)
            (ignore,) = [each for each in await seen.actions(uri, READ) if each.title.endswith("ignore on this line")]
            seen.take(ignore.edit)
            changed = "running += loss.item()  # torchlint: ignore[item-in-train-loop]"
            assert seen.documents[uri].text == TRAIN.replace("running += loss.item()", changed)
            assert await seen.rows(uri) == [each for each in FOUND if each[1] != "TL301"]
        with case("all safe fixes, as an editor asks for them when a file is saved: for the whole, and as an edit"):
            uri = seen.open("saved.py", TRAIN)
            (action,) = await seen.actions(uri, 1, ["source.fixAll.torchlint"], ())
            assert action.title == "torchlint: apply all safe fixes"
            seen.take(action.edit)
            assert seen.documents[uri].text == ALL_SAFE
            assert await seen.actions(uri, 1, ["source.fixAll.torchlint"], ()) == []


async def test_only_what_is_asked_for_is_offered(tmp_path: Path) -> None:
    async with editor(tmp_path, PULL) as seen:
        uri = seen.open("train.py", TRAIN)

        async def kinds(*only: str) -> set[str]:
            return {str(each.kind) for each in await seen.actions(uri, MADE, list(only))}

        assert await kinds("quickfix") == {"quickfix"}
        for asked in ("source", "source.fixAll", "source.fixAll.torchlint"):
            assert await kinds(asked) == {"source.fixAll.torchlint"}
        assert await kinds("source.fixAll.ruff") == set()
        assert await kinds("source.organizeImports") == set()
        assert await kinds("refactor") == set()
        assert await kinds("quickfix", "source.fixAll") == {"quickfix", "source.fixAll.torchlint"}


async def test_where_nothing_is_found_nothing_is_offered(tmp_path: Path) -> None:
    async with editor(tmp_path, PUSH) as seen:
        uri = seen.open("train.py", ALL_SAFE)
        assert await seen.actions(uri, 1) == []
        assert await seen.actions(uri, MADE) == []


async def test_a_client_that_verifies_is_offered_to(tmp_path: Path) -> None:
    name = "torchlint.verifyFix"
    async with editor(tmp_path, VS_CODE, options={"commands": [name]}) as seen:
        uri = seen.open("train.py", TRAIN)
        (verify,) = [each for each in await seen.actions(uri, MADE) if "verify" in each.title]
        assert verify.title == "torchlint (TL201): verify this fix on this machine"
        assert verify.command is not None
        assert verify.command.command == name
        arguments = ["verify", "train.py", "--select", "TL201"]
        assert _plain(verify.command.arguments) == [
            {"uri": uri, "cwd": str(tmp_path), "arguments": arguments, "line": MADE}
        ]
        (verify,) = [each for each in await seen.actions(uri, READ) if "verify" in each.title]
        assert verify.command is not None
        (what,) = _plain(verify.command.arguments)
        assert what["arguments"] == ["verify", "train.py", "--select", "TL301", "--unsafe-fixes"]


@pytest.mark.parametrize("can", [True, False], ids=["with versions", "without"])
async def test_edits_are_as_the_client_can_take_them(tmp_path: Path, can: bool) -> None:  # noqa: FBT001 - a parameter
    def change(capabilities: lsp.ClientCapabilities) -> None:
        assert capabilities.workspace is not None
        capabilities.workspace.workspace_edit = lsp.WorkspaceEditClientCapabilities(document_changes=can)

    async with editor(tmp_path, PUSH, change=change) as seen:
        uri = seen.open("train.py", TRAIN)
        seen.edit(uri, "import torch\n", "import torch\n\n")
        edit = (await seen.actions(uri, MADE + 1))[0].edit
        assert edit is not None
        if can:
            assert not edit.changes
            assert edit.document_changes is not None
            (changed,) = edit.document_changes
            assert isinstance(changed, lsp.TextDocumentEdit)
            assert changed.text_document.version == 2
        else:
            assert not edit.document_changes
            assert list(edit.changes or ()) == [uri]


# Commands


async def test_the_commands_are_named(tmp_path: Path) -> None:
    async with editor(tmp_path, PULL) as seen:
        provider = seen.answer.capabilities.execute_command_provider
        assert provider is not None
        assert sorted(provider.commands) == [
            "torchlint.applyAutofix",
            "torchlint.debugInformation",
            "torchlint.explain",
        ]


async def test_fix_all_by_command(tmp_path: Path) -> None:
    async with editor(tmp_path, VS_CODE) as seen:
        uri = seen.open("train.py", TRAIN)
        (action,) = [each for each in await seen.actions(uri, MADE) if each.kind == "source.fixAll.torchlint"]
        assert action.command is not None
        await seen.execute(action.command.command, *(action.command.arguments or ()))
        assert seen.documents[uri].text == ALL_SAFE
        assert await seen.rows(uri) == [each for each in FOUND if each[1] in ("TL302", "TL301")]
        await seen.execute("torchlint.applyAutofix", uri)
        assert seen.documents[uri].version == 2, "there was nothing to do"
        await seen.execute("torchlint.applyAutofix", seen.uri("nowhere.py"))


@pytest.mark.parametrize("can", [True, False], ids=["by itself", "by a message"])
async def test_a_page_is_shown(tmp_path: Path, can: bool) -> None:  # noqa: FBT001 - a parameter
    def change(capabilities: lsp.ClientCapabilities) -> None:
        assert capabilities.window is not None
        capabilities.window.show_document = lsp.ShowDocumentClientCapabilities(support=can)

    async with editor(tmp_path, PULL, change=change) as seen:
        uri = seen.open("train.py", TRAIN)
        (explain,) = [each for each in await seen.actions(uri, READ) if "explain" in each.title]
        assert explain.title == "torchlint (TL301): explain item-in-train-loop"
        assert explain.command is not None
        assert (explain.command.command, list(explain.command.arguments or ())) == ("torchlint.explain", ["TL301"])
        await seen.execute("torchlint.explain", "TL301")
        if can:
            shown = await seen.until(lambda: seen.client.shown_documents)
            assert [(each.uri.rstrip("/").rpartition("/")[2], each.external) for each in shown] == [
                ("item-in-train-loop", True)
            ]
        else:
            (said,) = await seen.until(lambda: seen.client.messages)
            assert said.message.startswith("TL301 item-in-train-loop: ")
            assert said.message.endswith("/rules/item-in-train-loop/")
            assert "\n" not in said.message


async def test_a_command_that_is_none_is_refused(tmp_path: Path) -> None:
    commands: list[tuple[str, tuple[str, ...]]] = [
        ("torchlint.explain", ()),
        ("torchlint.applyAutofix", ()),
        ("torchlint.nothing", ()),
        ("rm", ("-rf", "/")),
    ]
    async with editor(tmp_path, PUSH, may_log_errors=True) as seen:
        uri = seen.open("train.py", TRAIN)
        for command, arguments in commands:
            with case((command, arguments)):
                with pytest.raises(JsonRpcException):
                    await seen.execute(command, *arguments)
                seen.edit(uri, "def noise", "\ndef noise")
                assert len(await seen.findings(uri)) == len(FOUND)


async def test_an_argument_of_another_kind_does_nothing(tmp_path: Path) -> None:
    commands = [
        ("torchlint.explain", 301),
        ("torchlint.explain", {"code": "TL301"}),
        ("torchlint.applyAutofix", None),
        ("torchlint.applyAutofix", "no URI at all"),
        ("torchlint.applyAutofix", "file:///%ff%00"),
    ]
    async with editor(tmp_path, PUSH, may_log_errors=True) as seen:
        uri = seen.open("train.py", TRAIN)
        for number, (command, argument) in enumerate(commands, 2):
            with case((command, argument)):
                with suppress(JsonRpcException):
                    await seen.execute(command, argument)
                assert not seen.client.shown_documents
                assert not [each for each in seen.client.messages if "\n" in each.message]
                seen.edit(uri, "def noise", "\ndef noise")
                assert len(await seen.findings(uri)) == len(FOUND)
                assert seen.documents[uri].version == number, "nobody else has changed it"


async def test_a_rule_that_is_none_is_a_message(tmp_path: Path) -> None:
    async with editor(tmp_path, VS_CODE) as seen:
        await seen.execute("torchlint.explain", "TL999")
        (said,) = await seen.until(lambda: seen.client.messages)
        assert "TL999" in said.message


async def test_what_a_report_of_a_defect_should_hold(tmp_path: Path) -> None:
    async with editor(tmp_path, PULL) as seen:
        uri = seen.open("train.py", TRAIN)
        assert await seen.rows(uri) == FOUND
        said = await seen.debug()
        assert f"process {seen.server.pid}" in said
        assert "pulled" in said
        assert "utf-8" in said
        assert str(tmp_path) in said


# Hovers


@every
async def test_a_hover_says_what_there_is_to_know(tmp_path: Path, profile: Profile) -> None:
    async with editor(tmp_path, profile) as seen:
        uri = seen.open("train.py", TRAIN)
        hover = await seen.hover(uri, "loss.item()")
        assert hover is not None
        assert hover.range is not None
        assert seen.text_at(uri, hover.range) == "loss.item()"
        assert isinstance(hover.contents, lsp.MarkupContent)
        assert hover.contents.kind is lsp.MarkupKind.Markdown
        head, message, *_ = hover.contents.value.split("\n\n")
        assert head.startswith("**TL301** [item-in-train-loop](https://")
        assert head.endswith("runs per batch")
        assert message.startswith("`loss.item()` synchronizes with the GPU every batch")
        assert "\n\n**Help**: accumulate on the GPU and read it once after the loop\n\n" in hover.contents.value
        assert "**Measured**" in hover.contents.value
        assert "**Fix** (unsafe): Keep `loss` on the GPU until the loop ends" in hover.contents.value
        assert "This line:" not in hover.contents.value


async def test_a_hover_elsewhere_says_nothing(tmp_path: Path) -> None:
    async with editor(tmp_path, PUSH) as seen:
        uri = seen.open("train.py", TRAIN)
        assert await seen.rows(uri) == FOUND
        assert await seen.hover(uri, "optimizer.zero_grad") is None
        assert await seen.hover(uri, "def noise") is None
        position = lsp.Position(MADE - 1, 0)
        params = lsp.HoverParams(lsp.TextDocumentIdentifier(seen.uri("nowhere.py")), position)
        assert await seen.ask(lsp.TEXT_DOCUMENT_HOVER, params) is None


async def test_a_hover_says_why_nothing_is_reported(tmp_path: Path) -> None:
    async with editor(tmp_path, VS_CODE) as seen:
        uri = seen.open("train.py", TRAIN + LOGGING)
        hover = await seen.hover(uri, "print(loss.item())")
        assert hover is not None
        assert isinstance(hover.contents, lsp.MarkupContent)
        head, _, *lines = hover.contents.value.split("\n")
        assert head == "**Nothing reported** · runs per epoch"
        (said,) = [line for line in lines if line.startswith("- **TL301** [item-in-train-loop](https://")]
        assert said.endswith("to read a value now and then is what the rule advises (rare)")
        # No rule asks for more there, or what it asks for is only not there.
        assert await seen.hover(uri, "loss.backward()  # a step") is None


LOGGING = """

def log(model, loader):
    for number, batch in enumerate(loader):
        loss = model(batch.cuda(non_blocking=True)).mean()
        loss.backward()  # a step
        if number % 100 == 0:
            print(loss.item())
"""
RESULT = Verified(
    rule="host-factory-then-move",
    code="TL201",
    path="train.py",
    line=f"return {SLOW}",
    alike=0,
    verdict="faster",
    device_type="cuda",
    device="NVIDIA H200",
    torch="2.13.0+cu130",
    date="2026-11-22",
    digest="",
    speedup=Speedup(1.27, 1.24, 1.30, 8),
)
SAID = "verified on NVIDIA H200, torch 2.13.0, 2026-11-22: 1.27x faster [1.24, 1.30], n 8"


async def test_a_hover_tells_what_was_last_verified_of_the_line(tmp_path: Path) -> None:
    async with editor(tmp_path, VS_CODE) as seen:
        uri = seen.open("train.py", TRAIN)
        assert SAID not in await _said(seen, uri, SLOW)
        keep(userfolder.of_project(tmp_path), tmp_path, [RESULT])
        assert SAID in await _said(seen, uri, SLOW), "as soon as it is known"
        seen.edit(uri, "def noise", "\n\ndef noise")
        assert SAID in await _said(seen, uri, SLOW), "wherever the line stands"
        seen.edit(uri, "zeros(n)", "zeros(n, 2)")
        assert SAID not in await _said(seen, uri, "torch.zeros(n, 2).cuda()"), "another line was not measured"
        assert SAID not in await _said(seen, uri, "loss.item()")


async def test_the_cache_folder_is_that_of_the_nearest_configuration(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "torchlint.toml").write_text('cache-dir = "kept"\n', encoding="utf-8")
    keep(tmp_path / "sub" / "kept", tmp_path / "sub", [RESULT])
    async with editor(tmp_path, PULL) as seen:
        uri = seen.open("sub/train.py", TRAIN)
        assert SAID in await _said(seen, uri, SLOW)
        uri = seen.open("train.py", TRAIN)
        assert SAID not in await _said(seen, uri, SLOW)


async def _said(seen: Editor, uri: str, text: str) -> str:
    hover = await seen.hover(uri, text)
    assert hover is not None
    assert isinstance(hover.contents, lsp.MarkupContent)
    return hover.contents.value


def _plain(value: Any) -> Any:  # noqa: ANN401 - JSON
    """JSON, where the library made objects of it."""
    if hasattr(value, "_asdict"):
        return {key: _plain(each) for key, each in value._asdict().items()}
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value
