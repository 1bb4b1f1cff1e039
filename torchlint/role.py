"""What a file is there for, as far as its path tells."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum


class Role(Enum):
    """What a file is there for. It is no part of the text, so it is part of the settings that a lint depends on."""

    CODE = "code"
    TEST = "test"
    TEST_BY_NAME = "test by name"
    """Called as pytest would have it; `test_net.py` may also evaluate a model, so that what is in it decides."""
    SHOWING = "showing"
    """It draws or converts, once, for somebody who waits."""
    EXPORTING = "exporting"
    """It exports a model, once."""
    TRANSFORMS = "transforms"
    """It holds transforms of samples, which the workers of a loader run."""


_OF_TESTS = frozenset({"tests", "testing", "test_utils", "testutils"})


def role_of(path: str) -> Role:
    """The role of a file, by its path from the root of its project, with POSIX separators."""
    *folders, name = path.split("/")
    if not _OF_TESTS.isdisjoint(folders) or name in ("testing_utils.py", "conftest.py"):
        return Role.TEST
    if name.endswith("_test.py") or (name.startswith("test_") and name.endswith(".py")):
        return Role.TEST_BY_NAME
    lowered = name.lower()
    is_showing = lowered == "vis.py" or any(word in lowered for word in _SHOWING)
    if is_showing:
        return Role.SHOWING
    if any(word in lowered for word in _EXPORTING):
        return Role.EXPORTING
    return Role.TRANSFORMS if "transforms" in folders else Role.CODE


def is_of_tests(role: Role, text: Callable[[], str]) -> bool:
    """Whether a file is one of tests: by its folder, or called like one, and with tests in its text."""
    return role is Role.TEST or (role is Role.TEST_BY_NAME and re.search(_TESTS, text(), re.MULTILINE) is not None)


# Compiled when it is first asked for, which in most runs it is not.
_TESTS = r"^\s*(def test_|class Test|import (pytest|unittest)|from (pytest|unittest) )"
_SHOWING = ("visualis", "visualiz", "plot", "debug", "convert")
_EXPORTING = ("export", "onnx", "torchscript")
