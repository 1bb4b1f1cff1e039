"""Each convention is shown by a program in which it changes something, and what still hides a finding is known."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from laws import active, unmarked
from shown_conventions import ELSEWHERE, IN_LOOK_ALIKES, SHOWN, SILENCING

from torchlint import linter
from torchlint.registry import all_rules
from torchlint.semantics.knowledge.conventions import every
from torchlint.semantics.knowledge.conventions.convention import Convention, switched_off
from torchlint.source import SourceFile

if TYPE_CHECKING:
    from torchlint.finding import Finding
    from torchlint.settings import Settings

CONVENTIONS = every()
FIXTURES = Path(__file__).resolve().parents[1] / "fixtures"


@pytest.mark.parametrize("id_", sorted(SHOWN.keys() | IN_LOOK_ALIKES.keys()))
def test_each_convention_changes_something(id_: str) -> None:
    """A name raises a doubt or lowers a rank: it hides nothing, but for those of which that is known."""
    text, settings = program(CONVENTIONS[id_])
    before = told(text, settings)
    with switched_off(CONVENTIONS[id_]):
        after = told(text, settings)
    assert before != after, "it changes nothing: delete it, or show where it does"
    appeared = {place(one) for one in after} - {place(one) for one in before}
    assert bool(appeared) is (id_ in SILENCING), appeared


def test_all_are_shown() -> None:
    assert sorted((*SHOWN, *IN_LOOK_ALIKES, *ELSEWHERE)) == sorted(CONVENTIONS)
    assert SHOWN.keys() | IN_LOOK_ALIKES.keys() >= SILENCING


def program(convention: Convention) -> tuple[str, Settings]:
    """The program that shows it, and the rules that are asked."""
    module = IN_LOOK_ALIKES.get(convention.id)
    if module is not None:
        return unmarked((FIXTURES / module / "ok.py").read_text("utf-8")), active(module.replace("_", "-"))
    return SHOWN[convention.id], active(*(rule.name for rule in all_rules()))


def told(text: str, settings: Settings) -> tuple[Finding, ...]:
    result = linter.lint(SourceFile("snippet.py", text), settings)
    assert not result.diagnostics
    return result.findings


def place(finding: Finding) -> tuple[int, str]:
    return finding.span.start, finding.rule
