"""What holds for all tests: none of them, and no process that they start, reaches the cache of who runs them."""

from __future__ import annotations

import os
import shutil
import tempfile

import pytest

_FOLDER = pytest.StashKey[str]()


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # workers inherit the environment
        config.stash[_FOLDER] = tempfile.mkdtemp(prefix="torchlint-tests-")
        os.environ["XDG_CACHE_HOME"] = config.stash[_FOLDER]


def pytest_unconfigure(config: pytest.Config) -> None:
    folder = config.stash.get(_FOLDER, None)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
