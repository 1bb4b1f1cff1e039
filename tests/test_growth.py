"""What a check does grows with the size of a file no faster than the file: counted, not timed."""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING

import pytest

from benchmarks.growth import SHAPES, Shape
from torchlint.finding import Applicability
from torchlint.fixer import fix
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
    "while loops",
    "for loops",
    "branches",
    "try statements",
    "modules",
    "loaders",
    "factories",
    "selections by a mask",
    "masked selects",
    "comparisons",
    "factories in a fix",
    "comments that ignore in a fix",
    "codes in a comment",
    "comments on a line",
)
ALL = Settings(tuple(rule.name for rule in all_rules()))


def _calls(shape: Shape, size: int) -> int:
    """How many functions of Python are called to check a program of this size, or to fix it."""
    source = SourceFile("program.py", shape.files(size)["program.py"])
    count = 0

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        if shape.command == "fix":
            assert not fix(source, ALL, Applicability.UNSAFE).result.diagnostics
        else:
            assert not lint(source, ALL).diagnostics
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape.name in LINEAR], ids=lambda shape: shape.name)
def test_check_grows_as_the_file_does(shape: Shape) -> None:
    _calls(shape, 10)  # what is loaded late
    counts = [_calls(shape, size) for size in (30, 60, 120)]
    exponent = math.log2((counts[2] - counts[1]) / (counts[1] - counts[0]))
    assert exponent <= 1.15, counts
