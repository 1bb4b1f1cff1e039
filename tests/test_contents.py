"""What files hold, read as little as possible."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from torchlint import regular
from torchlint.cache import Cache, digest
from torchlint.contents import Contents
from torchlint.discover import Found
from torchlint.project import Outline, outline

LONG_AGO = 1_500_000_000
FIRST, SECOND = b"from a import f\nf(1)\n", b"from b import g\ng(1)\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "code.py"
    path.write_bytes(FIRST)
    os.utime(path, (LONG_AGO, LONG_AGO))  # a stamp that is trusted
    return path


def contents(path: Path, folder: Path | None = None) -> tuple[Contents, Cache | None]:
    cache = Cache(folder) if folder is not None else None
    return Contents({"code": Found(path, "code.py")}, cache), cache


def test_without_a_cache(path: Path) -> None:
    found, _ = contents(path)
    assert found.data("code") == FIRST
    assert found.digest("code") == digest(FIRST)
    assert found.outline("code") == outline(FIRST)


def test_a_file_that_is_known_is_not_read(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found, cache = contents(path, tmp_path / "cache")
    assert found.outline("code") == outline(FIRST)
    assert cache is not None
    cache.close()
    found, cache = contents(path, tmp_path / "cache")
    monkeypatch.setattr(regular, "read", lambda _: pytest.fail("it was read"))
    assert found.outline("code") == outline(FIRST)


def test_an_outline_is_kept_for_what_was_read(path: Path, tmp_path: Path) -> None:
    found, cache = contents(path, tmp_path / "cache")
    assert found.digest("code") == digest(FIRST)
    path.write_bytes(SECOND)  # between the two
    assert found.outline("code") == outline(SECOND)
    assert cache is not None
    cache.close()
    again = Cache(tmp_path / "cache")
    assert again.outline(digest(FIRST)) is None
    assert again.outline(digest(SECOND)) == outline(SECOND)


def test_a_file_that_is_gone_holds_nothing(path: Path) -> None:
    path.unlink()
    found, _ = contents(path)
    assert (found.data("code"), found.digest("code"), found.outline("code")) == (b"", digest(b""), Outline())
