"""What is configured in files and set in the editor holds at once, for the files that it is for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from cases import case
from editor import PROFILES, PULL, PUSH, VS_CODE, Editor, Profile, editor
from lsprotocol import types as lsp
from samples import FOUND, TRAIN

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

every = pytest.mark.parametrize("profile", PROFILES, ids=str)
told = pytest.mark.parametrize("profile", [PUSH, VS_CODE], ids=str)

MADE = [each for each in FOUND if each[1] == "TL201"]
OTHERS = [each for each in FOUND if each[1] != "TL201"]


def write(folder: Path, text: str, name: str = "torchlint.toml") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(text, encoding="utf-8")


def set_for_all(seen: Editor, settings: object) -> None:
    """Send settings that hold for all folders."""
    seen.client.workspace_did_change_configuration(lsp.DidChangeConfigurationParams(settings))


# Files


async def test_the_nearest_configuration_holds(tmp_path: Path) -> None:
    write(tmp_path, 'ignore = ["TL201"]\n')
    write(tmp_path / "made", '[tool.torchlint]\nselect = ["TL201"]\n', "pyproject.toml")
    write(tmp_path / "made" / "other", "[tool.ruff]\nline-length = 100\n", "pyproject.toml")
    async with editor(tmp_path, PULL) as seen:
        uris = [seen.open(name, TRAIN) for name in ("train.py", "made/train.py", "made/other/train.py")]
        assert [await seen.rows(uri) for uri in uris] == [OTHERS, MADE, MADE]


async def test_each_folder_of_a_workspace_has_its_own(tmp_path: Path) -> None:
    one, other, third = (tmp_path / name for name in ("one", "other", "third"))
    write(one, 'ignore = ["TL201"]\n')
    write(other, 'select = ["TL201"]\n')
    third.mkdir()
    async with editor(tmp_path, PUSH, folders=[one, other]) as seen:
        uris = [seen.open(f"{name}/train.py", TRAIN) for name in ("one", "other", "third")]
        assert [await seen.rows(uri) for uri in uris] == [OTHERS, MADE, FOUND]


@told
async def test_a_file_that_changes_is_read_again(tmp_path: Path, profile: Profile) -> None:
    async with editor(tmp_path, profile) as seen:
        uri = seen.open("train.py", TRAIN)
        assert await seen.rows(uri) == FOUND
        (watched,) = [each for each in seen.registered if each.method == "workspace/didChangeWatchedFiles"]
        patterns = {each["globPattern"] for each in _plain(watched.register_options)["watchers"]}
        assert {"**/pyproject.toml", "**/torchlint.toml", "**/.torchlint.toml"} <= patterns
        write(tmp_path, 'ignore = ["TL201"]\n')
        seen.files_changed("torchlint.toml")
        await seen.eventually(uri, OTHERS)
        write(tmp_path, 'select = ["TL201"]\n')
        seen.files_changed("torchlint.toml")
        await seen.eventually(uri, MADE)
        (tmp_path / "torchlint.toml").unlink()
        seen.files_changed("torchlint.toml")
        await seen.eventually(uri, FOUND)


async def test_a_file_that_changes_is_seen_with_the_next_key(tmp_path: Path) -> None:
    """Of which nobody tells: Neovim watches no files."""
    async with editor(tmp_path, PULL) as seen:
        uri = seen.open("train.py", TRAIN)
        assert await seen.rows(uri) == FOUND
        write(tmp_path, 'ignore = ["TL201"]\n')
        seen.replace(uri, TRAIN + "# x\n")
        assert await seen.rows(uri) == OTHERS
        write(tmp_path, 'select = ["TL201"]\n')
        seen.replace(uri, TRAIN)
        assert await seen.rows(uri) == MADE
        write(tmp_path, '[tool.torchlint]\nselect = ["TL301"]\n', "pyproject.toml")  # it stands behind the other
        seen.replace(uri, TRAIN + "# x\n")
        assert await seen.rows(uri) == MADE


@told
async def test_a_configuration_that_is_saved_in_the_editor(tmp_path: Path, profile: Profile) -> None:
    write(tmp_path, "")
    async with editor(tmp_path, profile) as seen:
        uri = seen.open("train.py", TRAIN)
        config = seen.open("torchlint.toml", "", "toml")
        assert await seen.rows(uri) == FOUND
        seen.replace(config, 'ignore = ["TL201"]\n')
        assert await seen.rows(uri) == FOUND, "it is not saved yet"
        seen.save(config)
        await seen.eventually(uri, OTHERS)


async def test_a_configuration_that_is_wrong(tmp_path: Path) -> None:
    """The user is told once, in a line; what was right last holds."""
    async with editor(tmp_path, VS_CODE) as seen:
        uri = seen.open("train.py", TRAIN)
        texts = ('ignore = "TL201"\n', "ignore = [\n", 'ignore = ["TL000"]\n', "nothing = 1\n")
        for number, text in enumerate(texts, 1):
            with case(text):
                write(tmp_path, 'ignore = ["TL201"]\n')
                seen.replace(uri, TRAIN + "# before\n")
                assert await seen.rows(uri) == OTHERS
                write(tmp_path, text)
                for more in ("# x\n", "# xy\n"):
                    seen.replace(uri, TRAIN + more)
                    assert await seen.rows(uri) == OTHERS
                await seen.until(lambda number=number: len(seen.client.messages) == number)  # type: ignore[misc]
                said = seen.client.messages[-1]
                assert said.type is lsp.MessageType.Warning
                assert "torchlint.toml" in said.message
                assert "\n" not in said.message
                write(tmp_path, 'select = ["TL201"]\n')
                seen.replace(uri, TRAIN)
                assert await seen.rows(uri) == MADE
                assert len(seen.client.messages) == number


async def test_a_configuration_that_is_wrong_from_the_beginning(tmp_path: Path) -> None:
    write(tmp_path, "ignore = [\n")
    async with editor(tmp_path, PUSH) as seen:
        uri = seen.open("train.py", TRAIN)
        assert await seen.rows(uri) == FOUND
        assert len(await seen.until(lambda: seen.client.messages)) == 1


async def test_what_is_excluded_is_not_looked_at(tmp_path: Path) -> None:
    write(tmp_path, 'extend-exclude = ["vendored"]\n[per-file-ignores]\n"quiet.py" = ["TL201"]\n')
    async with editor(tmp_path, VS_CODE) as seen:
        uris = [seen.open(name, TRAIN) for name in ("vendored/train.py", "build/train.py", "quiet.py", "train.py")]
        assert [await seen.rows(uri) for uri in uris] == [[], [], OTHERS, FOUND]


# Settings


@every
async def test_settings_that_the_client_is_asked_for(tmp_path: Path, profile: Profile) -> None:
    async with editor(tmp_path, profile, settings={"ignore": ["TL201"]}) as seen:
        uri = seen.open("train.py", TRAIN)
        await seen.eventually(uri, OTHERS)
        seen.client.set_configuration({"torchlint": {"select": ["TL201"]}})
        seen.client.workspace_did_change_configuration(lsp.DidChangeConfigurationParams(settings=None))
        await seen.eventually(uri, MADE)
        seen.client.set_configuration({})
        seen.client.workspace_did_change_configuration(lsp.DidChangeConfigurationParams(settings=None))
        await seen.eventually(uri, FOUND)


async def test_settings_that_the_client_begins_with(tmp_path: Path) -> None:
    def silent(capabilities: lsp.ClientCapabilities) -> None:
        assert capabilities.workspace is not None
        capabilities.workspace.configuration = False

    options = {"settings": {"ignore": ["TL201"]}}
    async with editor(tmp_path, PUSH, options=options, change=silent) as seen:
        uri = seen.open("train.py", TRAIN)
        assert await seen.rows(uri) == OTHERS
        foreign: tuple[dict[str, Any], ...] = ({}, {"pylsp": {"plugins": {}}})
        for number, nothing in enumerate(foreign):
            set_for_all(seen, nothing)
            seen.replace(uri, TRAIN + "#" * number)
            assert await seen.rows(uri) == OTHERS
        for settings in ({"torchlint": {"select": ["TL201"]}}, {"select": ["TL201"]}):
            seen.client.workspace_did_change_configuration(lsp.DidChangeConfigurationParams(settings))
            await seen.eventually(uri, MADE)
            seen.client.workspace_did_change_configuration(lsp.DidChangeConfigurationParams({"torchlint": {}}))
            await seen.eventually(uri, FOUND)


async def test_settings_of_a_folder(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    async with editor(tmp_path, VS_CODE, folders=[one, other]) as seen:
        seen.client.set_configuration({"torchlint": {"ignore": ["TL201"]}}, scope_uri=one.as_uri())
        seen.client.set_configuration({"torchlint": {"select": ["TL201"]}}, scope_uri=other.as_uri())
        seen.client.workspace_did_change_configuration(lsp.DidChangeConfigurationParams(settings=None))
        uris = [seen.open(f"{name}/train.py", TRAIN) for name in ("one", "other")]
        for uri, expected in zip(uris, (OTHERS, MADE), strict=True):
            await seen.eventually(uri, expected)


SETTINGS: list[tuple[dict[str, Any], list[tuple[int, str]]]] = [
    ({"select": ["item-in-train-loop"]}, [(24, "TL301")]),
    ({"select": ["TL3"]}, [(9, "TL302"), (24, "TL301")]),
    ({"select": ["TL301"], "extendSelect": ["TL201"]}, [(14, "TL201"), (24, "TL301")]),
    ({"ignore": ["TL2", "TL001"]}, [(9, "TL302"), (24, "TL301")]),
    ({"configuration": "other.toml"}, MADE),
    ({"configuration": None, "select": None, "ignore": None, "preview": None, "run": None}, FOUND),
    ({"enable": False}, []),
    ({"enable": True}, FOUND),
]


async def test_what_settings_say(tmp_path: Path) -> None:
    write(tmp_path, 'select = ["TL201"]\n', "other.toml")
    async with editor(tmp_path, PUSH) as seen:
        uri = seen.open("train.py", TRAIN)
        for settings, expected in SETTINGS:
            with case(settings):
                set_for_all(seen, settings)
                await seen.eventually(uri, expected)


async def test_where_it_is_not_enabled_nothing_is_looked_at(tmp_path: Path) -> None:
    async with editor(tmp_path, VS_CODE, options={"settings": {"enable": False}}) as seen:
        uri = seen.open("train.py", TRAIN)
        assert await seen.rows(uri) == []
        assert await seen.hover(uri, "torch.zeros") is None
        assert await seen.actions(uri, 14, diagnostics=()) == []
        assert await seen.analyses() == 0
        set_for_all(seen, {"enable": True})
        await seen.eventually(uri, FOUND)


async def test_settings_stand_above_configuration(tmp_path: Path) -> None:
    write(tmp_path, 'select = ["TL301"]\n')
    async with editor(tmp_path, PULL, options={"settings": {"select": ["TL201"]}}) as seen:
        uri = seen.open("train.py", TRAIN)
        assert await seen.rows(uri) == MADE


async def test_tests_are_looked_at_as_tests(tmp_path: Path) -> None:
    (tmp_path / "tests").mkdir()
    async with editor(tmp_path, PULL) as seen:
        uri = seen.open("tests/test_train.py", TRAIN)
        assert (9, "TL302") not in await seen.rows(uri)
        set_for_all(seen, {"includeTests": True})
        await seen.eventually(uri, FOUND)


@told
async def test_on_save(tmp_path: Path, profile: Profile) -> None:
    """Between two saves findings go with their lines; new ones come with the next."""
    async with editor(tmp_path, profile, options={"settings": {"run": "onSave"}}) as seen:
        uri = seen.open("train.py", TRAIN)
        assert await seen.rows(uri) == FOUND
        seen.edit(uri, "def noise", "def more(n: int):\n    return torch.ones(n).cuda()\n\n\ndef noise")
        moved = [FOUND[0], *((row + 4, code) for row, code in FOUND[1:])]
        assert await seen.rows(uri) == moved
        assert await seen.rows(seen.open("next.py", TRAIN)) == FOUND, "what is to be looked at before has been"
        assert await seen.rows(uri) == moved
        seen.save(uri)
        await seen.eventually(uri, sorted([*moved, (14, "TL201")]))


WRONG: list[dict[str, Any]] = [
    {"select": "TL201"},
    {"select": [1]},
    {"select": ["TL000"]},
    {"ignore": {"TL201": True}},
    {"preview": "yes"},
    {"run": "sometimes"},
    {"configuration": 3},
    {"configuration": "nowhere.toml"},
]


async def test_settings_that_are_wrong(tmp_path: Path) -> None:
    """Whether the client begins with them or sends them later."""
    async with editor(tmp_path, PUSH, options={"settings": WRONG[0]}) as seen:
        uri = seen.open("train.py", TRAIN)
        for number, settings in enumerate(WRONG, 1):
            with case(settings):
                set_for_all(seen, settings)
                await seen.until(lambda number=number: len(seen.client.messages) >= number)  # type: ignore[misc]
                said = seen.client.messages[-1]
                assert said.message.startswith("torchlint: ")
                assert "\n" not in said.message
                seen.replace(uri, TRAIN + "#" * number)
                assert await seen.rows(uri) == FOUND, "as if it was not set"
                assert len(seen.client.messages) == number, "once"


async def test_settings_that_say_nothing(tmp_path: Path) -> None:
    nothing: list[object] = [[], "TL201", 1, {"torchlint": None}, {"unknown": 1}, {"logLevel": "debug"}]
    async with editor(tmp_path, PUSH, options={"settings": nothing[0]}) as seen:
        uri = seen.open("train.py", TRAIN)
        for number, settings in enumerate(nothing):
            with case(settings):
                set_for_all(seen, settings)
                seen.replace(uri, TRAIN + "#" * number)
                assert await seen.rows(uri) == FOUND
                assert not seen.client.messages


# Folders


async def test_folders_that_come_and_go(tmp_path: Path) -> None:
    """A finding's callers are those of the folder that it is in."""
    one = tmp_path / "one"
    one.mkdir()
    async with editor(tmp_path, VS_CODE, folders=[]) as seen:
        uri = seen.open("one/train.py", TRAIN)
        assert await seen.rows(uri) == FOUND
        folder = lsp.WorkspaceFolder(one.as_uri(), "one")
        seen.client.set_configuration({"torchlint": {"ignore": ["TL201"]}}, scope_uri=one.as_uri())
        event = lsp.WorkspaceFoldersChangeEvent(added=[folder], removed=[])
        seen.client.workspace_did_change_workspace_folders(lsp.DidChangeWorkspaceFoldersParams(event))
        await seen.eventually(uri, OTHERS)
        event = lsp.WorkspaceFoldersChangeEvent(added=[], removed=[folder])
        seen.client.workspace_did_change_workspace_folders(lsp.DidChangeWorkspaceFoldersParams(event))
        await seen.eventually(uri, FOUND)


async def test_without_a_folder(tmp_path: Path) -> None:
    write(tmp_path / "sub", 'select = ["TL201"]\n')
    async with editor(tmp_path, PULL, folders=[]) as seen:
        uris = [seen.open(name, TRAIN) for name in ("train.py", "sub/train.py")]
        assert [await seen.rows(uri) for uri in uris] == [FOUND, MADE]


def _plain(value: Any) -> Any:  # noqa: ANN401 - JSON
    """JSON, where the library made objects of it."""
    if hasattr(value, "_asdict"):
        return {key: _plain(each) for key, each in value._asdict().items()}
    if hasattr(value, "watchers"):
        return {"watchers": [{"globPattern": str(each.glob_pattern)} for each in value.watchers]}
    return [_plain(each) for each in value] if isinstance(value, (list, tuple)) else value
