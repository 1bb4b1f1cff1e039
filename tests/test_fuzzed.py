"""Every program that the fuzzer found to break a law keeps them all; what makes and cuts down programs does so."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import fuzz
import libcst as cst
import pytest
from mutations import Mutator, Pool, parsed_if_python, smaller

from torchlint import registry
from torchlint.rule import Call, Flag, Rule

if TYPE_CHECKING:
    from torchlint.semantics.context import Context

FILES = sorted(file for file in fuzz.FOUND.glob("*.txt") if not file.name.endswith(".before.txt"))
TEXT = "import torch\n\n\ndef f(x):\n    for x in x:\n        y = torch.zeros(3).cuda()  # why\n        g(x, y)\n    return x\n"


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_what_was_found_keeps_the_laws(file: Path) -> None:
    before = file.with_suffix(".before.txt")
    first = before.read_text(encoding="utf-8") if before.exists() else ""
    assert fuzz.fault(file.read_text(encoding="utf-8"), first) is None


def test_the_same_numbers_make_the_same_programs() -> None:
    def programs() -> list[str]:
        module = cst.parse_module(TEXT)
        pool = Pool()
        pool.add(module)
        mutator = Mutator(random.Random(7), pool)  # noqa: S311 - a seed is no secret
        return [mutator.changed(mutator.start(module)).code for _ in range(40)]

    made = programs()
    assert made == programs()
    assert len(set(made)) > 30
    assert all(parsed_if_python(text) is not None for text in made)


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that fails on a call of `print` in a loop."""

    def check(node: cst.CSTNode, context: Context) -> Iterator[Flag]:
        if any(isinstance(above, cst.While) for above in context.tree.ancestors(node)):
            raise RuntimeError("planted")
        yield from ()

    rule = Rule("planted", "TL301", "toys", "Toy.", "0.1.0", checks=[(Call("print"), check)])
    monkeypatch.setattr(registry, "all_rules", lambda: (rule,))
    monkeypatch.setattr(registry, "by_name", lambda: {"planted": rule})
    monkeypatch.setattr(registry, "find", lambda _: rule)


@pytest.mark.usefixtures("planted")
def test_a_fault_is_found_and_cut_down() -> None:
    text = (
        "import torch\nx = 1\n\n\ndef f(x):\n    y = [x, 2]\n    while x:\n        if y:\n"
        "            print(x, torch.zeros(3))\n        x = y\n    return y\n"
    )
    kind = fuzz.fault(text)
    assert kind == "planted: RuntimeError in check"
    small, before = fuzz.cut(text, "", kind)
    assert fuzz.fault(small) == kind
    assert before == ""
    assert len(small) < 60


def test_what_is_smaller_has_a_part_less() -> None:
    module = cst.parse_module(TEXT)
    assert all(len(new.code) <= len(TEXT) + 1 for new in smaller(module))
    assert any("return" not in new.code for new in smaller(module))
