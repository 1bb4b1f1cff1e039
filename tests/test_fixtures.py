"""Each rule's fixtures: slow files are flagged and fixed as promised, look-alikes stay silent, all obey the laws."""

from __future__ import annotations

import ast
from importlib.resources import files
from typing import TYPE_CHECKING

import laws
import pytest
from contract import of_each_rule

from torchlint.finding import Applicability
from torchlint.registry import all_rules

if TYPE_CHECKING:
    from torchlint.rule import Rule

FIXTURES = files("torchlint.fixtures")
RULES = all_rules()
FIXABLE = [rule for rule in RULES if any(applicability > Applicability.DISPLAY for applicability in rule.fix)]


def read(rule: Rule, name: str) -> str:
    """The text of a fixture, line endings untouched."""
    return (FIXTURES / rule.module / name).read_bytes().decode()


def files_of(rule: Rule) -> list[str]:
    return sorted(entry.name for entry in (FIXTURES / rule.module).iterdir() if entry.name.endswith(".py"))


@of_each_rule
def slow_is_flagged(rule: Rule) -> None:
    """By warnings; a rule that says nothing without a doubt marks its notes."""
    text = read(rule, "slow.py")
    found = [place for place in laws.places(text, laws.active(rule.name)) if place[1].rstrip("?") == rule.name]
    assert found
    marked = [place for place in laws.marks(text) if place[1].rstrip("?") == rule.name]
    assert found == marked if marked else (rule.name in {name for _, name in found})


@of_each_rule
def look_alikes_stay_silent(rule: Rule) -> None:
    """They may be notes, where they are marked as such."""
    text = read(rule, "ok.py")
    assert rule.name not in [name for _, name in laws.marks(text)], "what looks alike is no warning"
    found = laws.places(text, laws.active(rule.name))
    assert [place for place in found if place[1].rstrip("?") == rule.name] == laws.marks(text)


@of_each_rule
def fast_is_what_the_fix_makes_of_slow(rule: Rule) -> None:
    if rule not in FIXABLE:
        return
    lowest = min(applicability for applicability in rule.fix if applicability > Applicability.DISPLAY)
    fixed = laws.fix(read(rule, "slow.py"), laws.active(rule.name), lowest).text
    assert fixed == read(rule, "fast.py")
    assert fixed != read(rule, "slow.py")


@of_each_rule
def fast_is_a_suggestion_where_there_is_no_fix(rule: Rule) -> None:
    """Such a pair can show that the pattern costs something, never that a fix was verified."""
    if rule in FIXABLE:
        return
    text = read(rule, "fast.py")
    assert text.startswith('"""Suggestion, written by hand: ')
    assert [place for place in laws.places(text, laws.active(rule.name)) if place[1] == rule.name] == []


@of_each_rule
def the_fixtures_are_three(rule: Rule) -> None:
    assert files_of(rule) == ["fast.py", "ok.py", "slow.py"]


@of_each_rule
def slow_and_look_alikes_obey_the_laws(rule: Rule) -> None:
    for name in ("slow.py", "ok.py"):
        text = read(rule, name)
        ast.parse(text)
        laws.obey_drawn_laws(text, laws.active(rule.name))


OF_EACH_RULE = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)


@pytest.mark.slow
@OF_EACH_RULE
def test_fast_obeys_the_laws(rule: Rule) -> None:
    text = read(rule, "fast.py")
    ast.parse(text)
    laws.obey_laws(text, laws.active(rule.name))


@pytest.mark.parametrize(
    ("rule", "name"),
    [
        pytest.param(rule, name, id=f"{rule.name}-{name}", marks=[pytest.mark.slow] * (name != "slow.py"))
        for rule in RULES
        for name in ("slow.py", "fast.py", "ok.py")
        if name in files_of(rule)
    ],
)
def test_fixes_of_all_rules_come_to_rest(rule: Rule, name: str) -> None:
    laws.fixes_come_to_rest(read(rule, name), laws.active(*(other.name for other in RULES)))
