"""What a killed run of `verify` left in the temporary folder goes with the next one, and nothing else does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from torchlint.verify import leftovers

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such locks")


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def made() -> Path:
    return Path(tempfile.mkdtemp(prefix=leftovers.PREFIX))


def test_the_folder_of_a_killed_run_is_removed(temporary: Path) -> None:
    code = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from torchlint.verify import leftovers\n"
        "with leftovers.held(Path(sys.argv[1])):\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    folder = made()
    (folder / "arm").mkdir()
    (folder / "arm" / "weights").write_bytes(b"x")
    done = subprocess.run([sys.executable, "-c", code, str(folder)], check=False)
    assert done.returncode == -signal.SIGKILL
    leftovers.clear()
    assert list(temporary.iterdir()) == []


def test_the_folder_of_a_living_run_stays() -> None:
    folder = made()
    with leftovers.held(folder):
        leftovers.clear()
        assert folder.exists()
    leftovers.clear()
    assert not folder.exists()


def test_a_folder_that_is_just_being_made_stays() -> None:
    folder = made()
    leftovers.clear()
    assert folder.exists()
    os.utime(folder, (time.time() - 4_000,) * 2)
    leftovers.clear()
    assert not folder.exists()


def test_what_is_no_folder_of_ours_stays(temporary: Path) -> None:
    elsewhere = temporary / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / leftovers.HELD).write_bytes(b"")
    (temporary / f"{leftovers.PREFIX}abcd0123").symlink_to(elsewhere)
    (temporary / f"{leftovers.PREFIX}abcd0124").write_bytes(b"a file")
    (temporary / f"{leftovers.PREFIX}notes").mkdir()
    (temporary / f"{leftovers.PREFIX}notes" / leftovers.HELD).write_bytes(b"")
    before = sorted(temporary.rglob("*"))
    leftovers.clear()
    assert sorted(temporary.rglob("*")) == before


def test_links_in_a_folder_are_not_followed(temporary: Path) -> None:
    elsewhere = temporary / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_bytes(b"theirs")
    folder = made()
    with leftovers.held(folder):
        (folder / "link").symlink_to(elsewhere)
    leftovers.clear()
    assert not folder.exists()
    assert (elsewhere / "file").read_bytes() == b"theirs"
