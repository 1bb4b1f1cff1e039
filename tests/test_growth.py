"""What a check does grows with the size of a file no faster than the file: counted, not timed."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

import pytest

from benchmarks.growth import SHAPES, Shape
from torchlint.linter import lint
from torchlint.registry import all_rules
from torchlint.settings import Settings
from torchlint.source import SourceFile

if TYPE_CHECKING:
    from types import FrameType

# Those whose cost was seen to double more than twice as fast as they do.
LINEAR = (
    "aliases in a chain",
    "augmented assignments",
    "stores to attributes",
    "stores to one attribute",
    "stores to keys in a loop",
    "del and bind",
    "calls of a method",
    "reads in a loop",
    "prints in a loop",
    "branches",
    "try statements",
    "codes in a comment",
    "comments on a line",
)
ALL = Settings(tuple(rule.name for rule in all_rules()))


def _calls(text: str) -> int:
    """How many functions of Python are called to check the text."""
    count = 0

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        assert not lint(SourceFile("program.py", text), ALL).diagnostics
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape.name in LINEAR], ids=lambda shape: shape.name)
def test_check_grows_as_the_file_does(shape: Shape) -> None:
    _calls(shape.files(10)["program.py"])  # what is loaded late
    counts = [_calls(shape.files(size)["program.py"]) for size in (30, 60, 120)]
    exponent = math.log2((counts[2] - counts[1]) / (counts[1] - counts[0]))
    assert exponent <= 1.15, counts
