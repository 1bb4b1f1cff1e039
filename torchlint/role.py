"""What a file is there for, as far as its path tells."""

from __future__ import annotations

import re
from enum import Enum


class Role(Enum):
    """What a file is there for. It is no part of the text, so it is part of the settings that a lint depends on."""

    CODE = "code"
    TEST = "test"
    TEST_BY_NAME = "test by name"
    """Called as pytest would have it; `test_net.py` may also evaluate a model, so that what is in it decides."""
    SHOWING = "showing"
    """It draws, converts or exports, once, for somebody who waits."""


def role_of(path: str) -> Role:
    """The role of a file, by its path from the root of its project, with POSIX separators."""
    if _TEST.search(path):
        return Role.TEST
    if _TEST_BY_NAME.search(path):
        return Role.TEST_BY_NAME
    return Role.SHOWING if _SHOWING.search(path.rpartition("/")[2]) else Role.CODE


def holds_tests(text: str) -> bool:
    """Whether a file that is called like a test holds any."""
    return _TESTS.search(text) is not None


_TEST = re.compile(r"(^|/)(tests/|testing/|testing_utils\.py$|conftest\.py$)")
_TEST_BY_NAME = re.compile(r"(^|/)test_[^/]*\.py$|_test\.py$")
_TESTS = re.compile(r"^\s*(def test_|class Test|import (pytest|unittest)|from (pytest|unittest) )", re.MULTILINE)
_SHOWING = re.compile(r"visuali[sz]|plot|debug|export|convert", re.IGNORECASE)
