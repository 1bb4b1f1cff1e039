"""Findings that rest on other files follow those files, as they are open and as they lie on the disk."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from editor import PROFILES, PULL, PUSH, VS_CODE, Editor, Profile, editor
from samples import LAYERS, LOOP, NETWORK, UTILS

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow


def seen_by(*kinds: Profile) -> pytest.MarkDecorator:
    """For clients of these kinds, each other of which has a project that is configured."""
    cases = [pytest.param(kind, number % 2 == 0, id=str(kind)) for number, kind in enumerate(kinds)]
    return pytest.mark.parametrize(("profile", "project"), cases, indirect=["project"])


HOT = [(6, "TL302")]
CALL = "meter.update(accuracy(outputs, targets))"
REPEATED = [(6, "TL501")]


@pytest.fixture
def project(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    if getattr(request, "param", False):
        (tmp_path / "torchlint.toml").touch()
    (tmp_path / "utils.py").write_text(UTILS, encoding="utf-8")
    (tmp_path / "loop.py").write_text(LOOP, encoding="utf-8")
    (tmp_path / "layers.py").write_text(LAYERS, encoding="utf-8")
    (tmp_path / "network.py").write_text(NETWORK, encoding="utf-8")
    return tmp_path


@seen_by(*PROFILES)
async def test_a_caller_on_the_disk_counts(project: Path, profile: Profile) -> None:
    async with editor(project, profile) as seen:
        uri = seen.open("utils.py", UTILS)
        (found,) = await seen.eventually(uri, HOT)
        assert found.related_information is not None
        (related,) = found.related_information
        assert related.message == "runs per batch, called from loop.py:9"
        assert related.location.uri == seen.uri("loop.py")
        assert related.location.range.start.line == 8
        hover = await seen.hover(uri, "outputs.argmax")
        assert hover is not None
        assert "runs per batch, called from loop.py:9" in str(hover.contents)


@seen_by(PUSH, VS_CODE)
async def test_a_caller_that_is_open_counts_as_it_is_there(project: Path, profile: Profile) -> None:
    async with editor(project, profile) as seen:
        utils = seen.open("utils.py", UTILS)
        await seen.eventually(utils, HOT)
        loop = seen.open("loop.py", LOOP)
        seen.edit(loop, "import torch\n", "import torch\n\n\n")
        await _moved(seen, utils, 11)
        seen.edit(loop, CALL, "pass")
        await seen.eventually(utils, [])
        seen.edit(loop, "        pass\n", f"        {CALL}\n")
        await seen.eventually(utils, HOT)
        await _moved(seen, utils, 11)
        seen.edit(loop, CALL, "pass")
        await seen.eventually(utils, [])
        seen.close(loop)  # without a save, so that the disk counts again
        await seen.eventually(utils, HOT)
        await _moved(seen, utils, 9)


@seen_by(PUSH, PULL)
async def test_a_class_that_is_open_counts_as_it_is_there(project: Path, profile: Profile) -> None:
    """A helper is edited, and not saved: what is found in the file that imports it changes."""
    async with editor(project, profile, settings={"select": ["TL501"], "preview": True}) as seen:
        network, layers = seen.open("network.py", NETWORK), seen.open("layers.py", LAYERS)
        await seen.eventually(network, REPEATED)
        seen.edit(layers, "return self.conv(x)\n", "return self.conv(x).relu()\n")
        await seen.eventually(network, [])
        seen.edit(layers, ".relu()", "")
        await seen.eventually(network, REPEATED)


@seen_by(VS_CODE, PUSH)
async def test_what_somebody_else_writes_counts(project: Path, profile: Profile) -> None:
    async with editor(project, profile) as seen:
        utils = seen.open("utils.py", UTILS)
        await seen.eventually(utils, HOT)
        (project / "loop.py").write_text(LOOP.replace(CALL, "pass"), encoding="utf-8")
        seen.files_changed("loop.py")
        await seen.eventually(utils, [])
        (project / "more.py").write_text(LOOP, encoding="utf-8")
        seen.files_changed("more.py")
        await seen.eventually(utils, HOT)
        (project / "more.py").unlink()
        seen.files_changed("more.py")
        await seen.eventually(utils, [])


@seen_by(PULL, PUSH)
async def test_a_caller_that_was_never_saved(project: Path, profile: Profile) -> None:
    (project / "loop.py").unlink()
    async with editor(project, profile) as seen:
        utils = seen.open("utils.py", UTILS)
        assert await seen.rows(utils) == []
        new = seen.open("new.py", "")
        assert await seen.rows(new) == []
        assert await seen.rows(utils) == []
        seen.replace(new, LOOP)
        await seen.eventually(utils, HOT)


async def test_a_caller_that_is_half_written(project: Path) -> None:
    """It says nothing, and what is found in the helper is not told of over and over."""
    async with editor(project, PUSH) as seen:
        utils, loop = seen.open("utils.py", UTILS), seen.open("loop.py", LOOP)
        await seen.eventually(utils, HOT)
        seen.edit(loop, "import torch\n", "import torch\ndef broken(:\n")
        await seen.silence()
        seen.edit(loop, "def broken(:\n", "")
        await seen.eventually(utils, HOT)
        await seen.silence()
        assert len([each for each in seen.published if each.uri == utils]) <= 6


@seen_by(VS_CODE)
async def test_a_fix_in_code_that_others_call(project: Path, profile: Profile) -> None:
    """Fixes are made with what other files say too."""
    made = UTILS.replace("correct = ", "correct = torch.zeros(3).to(outputs.device) + ")
    async with editor(project, profile) as seen:
        uri = seen.open("utils.py", made)
        await seen.eventually(uri, [(6, "TL201"), (6, "TL302")])
        (action,) = await seen.actions(uri, 1, ["source.fixAll"], ())
        seen.take(action.edit)
        assert seen.documents[uri].text == made.replace(
            "zeros(3).to(outputs.device)", "zeros(3, device=outputs.device)"
        )


async def test_nothing_goes_round_in_circles(project: Path) -> None:
    """Files that ask about each other come to rest."""
    async with editor(project, PUSH) as seen:
        utils, loop = seen.open("utils.py", UTILS), seen.open("loop.py", LOOP)
        await seen.eventually(utils, HOT)
        for _ in range(3):
            seen.edit(loop, "import torch\n", "import torch\n\n")
            seen.edit(utils, "import torch\n", "import torch\n\n")

        async def rest() -> None:
            before = None
            while (now := (len(seen.published), await seen.analyses())) != before:
                before = now
                await seen.silence()

        await seen.within(rest())


async def _moved(seen: Editor, uri: str, row: int) -> None:
    """The finding comes to name another row of the caller."""
    message = f"runs per batch, called from loop.py:{row}"
    said = ""
    for _ in range(200):
        (found,) = await seen.findings(uri)
        (said,) = [each.message for each in found.related_information or ()]
        if said == message:
            return
        await asyncio.sleep(0.05)
    raise AssertionError(f"{said!r} to the end")
