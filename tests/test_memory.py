"""What is read is let go of at once: the collector, which is off while files are linted, has nothing to do."""

from __future__ import annotations

import gc
from pathlib import Path

import libcst as cst
import pytest

from torchlint import engine
from torchlint.analyses.tensors import host_resident
from torchlint.facts import NOTHING, Asked
from torchlint.registry import all_rules
from torchlint.settings import Settings
from torchlint.source import SourceFile

FIXTURES = Path(__file__).parent.parent / "fixtures"
ALL = Settings(tuple(rule.name for rule in all_rules()))


@pytest.mark.parametrize("rule", sorted(rule.name for rule in all_rules()))
def test_nothing_of_a_file_stays_in_memory(rule: str) -> None:
    path = FIXTURES / rule.replace("-", "_") / "slow.py"
    if not path.exists():
        pytest.skip("no fixture of its own")
    source = SourceFile(path.name, path.read_text(encoding="utf-8"))
    let_go()
    gc.collect()
    gc.disable()
    try:
        before = modules()
        engine.examine(source, all_rules(), ALL)
        engine.answer(source, ALL, NOTHING, Asked(("torch.zeros",), ()))
        engine.tell(source, ALL, NOTHING, 3)
        let_go()
        assert modules() == before
    finally:
        gc.enable()


def let_go() -> None:
    """Empty what keeps a few trees on purpose."""
    engine._tree.cache_clear()  # noqa: SLF001 - nobody else needs to
    host_resident._seen_as_arrays.cache_clear()  # noqa: SLF001


def modules() -> int:
    """How many syntax trees there are."""
    return sum(type(one) is cst.Module for one in gc.get_objects())
