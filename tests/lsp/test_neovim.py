"""A real Neovim, where there is one, goes through `editors/neovim/e2e.lua`: what was found is seen, read, fixed and gone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

DRIVE = Path(__file__).parents[2] / "editors" / "neovim" / "e2e.lua"


def editors() -> list[str]:
    """Every Neovim on PATH, so that an old one is driven beside a new one."""
    folders = os.environ.get("PATH", "").split(os.pathsep)
    found = [path for folder in folders if (path := shutil.which("nvim", path=folder))]
    return list({os.path.realpath(path): path for path in found}.values())


@pytest.mark.parametrize("profile", ["own", "utf-16"])
@pytest.mark.parametrize("nvim", editors() or [pytest.param("", marks=pytest.mark.skip("no `nvim` on PATH"))])
def test_what_a_person_does(nvim: str, profile: str, tmp_path: Path) -> None:
    pytest.importorskip("pygls", reason="the language server needs torchlint[lsp]")
    binaries = os.path.dirname(sys.executable)  # noqa: PTH120 - PATH holds strings
    homes = {f"XDG_{kind}_HOME": str(tmp_path / kind) for kind in ("CACHE", "CONFIG", "DATA", "STATE")}
    environment = os.environ | homes | {"PATH": f"{binaries}{os.pathsep}{os.environ['PATH']}", "PROFILE": profile}
    done = subprocess.run(
        [nvim, "--clean", "--headless", "-c", f"luafile {DRIVE}"],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    if done.stdout.startswith("skipped: "):
        pytest.skip(done.stdout.strip())
    assert "all hold" in done.stdout
