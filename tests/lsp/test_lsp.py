"""One session in an editor from the beginning to the end; what is asked of each part stands in the slow tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from editor import PUSH, VS_CODE, Profile, editor
from lsprotocol import types as lsp
from samples import ALL_SAFE, FAST, FOUND, SLOW, TRAIN
from test_lsp_notebooks import Notebook

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("profile", [PUSH, pytest.param(VS_CODE, marks=pytest.mark.slow)], ids=str)
async def test_a_session(tmp_path: Path, profile: Profile) -> None:
    (tmp_path / "torchlint.toml").write_text('extend-exclude = ["excluded.py"]\n')
    async with editor(tmp_path, profile) as seen:
        uri = seen.open("train.py", TRAIN)
        assert await seen.rows(uri) == FOUND
        assert await seen.rows(seen.open("excluded.py", TRAIN)) == []

        hover = await seen.hover(uri, "loss.item()")
        assert hover is not None
        assert isinstance(hover.contents, lsp.MarkupContent)
        assert hover.contents.value.startswith("**TL301** [item-in-train-loop](https://")

        (fix, *_, whole) = await seen.actions(uri, 14)
        assert whole.title == "torchlint: apply all safe fixes"
        seen.take(fix.edit)
        assert await seen.rows(uri) == [each for each in FOUND if each[1] != "TL201"]
        (whole,) = await seen.actions(uri, 1, ["source.fixAll.torchlint"], ())
        seen.take(whole.edit)
        assert seen.documents[uri].text == ALL_SAFE

        seen.edit(uri, FAST, SLOW)
        assert (14, "TL201") in await seen.rows(uri)
        seen.close(uri)

        if profile is VS_CODE:
            notebook = Notebook(seen)
            notebook.open(imports="import torch", made=f"def made(n):\n    return {SLOW}")
            assert [await seen.rows(notebook.cell(name)) for name in ("imports", "made")] == [[], [(2, "TL201")]]
