"""Each rule's fixtures: slow files are flagged and fixed as promised, look-alikes stay silent, all obey the laws."""

from __future__ import annotations

import ast
from importlib.resources import files
from typing import TYPE_CHECKING

import laws
import pytest

from torchlint.finding import Applicability
from torchlint.registry import all_rules

if TYPE_CHECKING:
    from torchlint.rule import Rule

FIXTURES = files("torchlint.fixtures")
RULES = all_rules()
FIXABLE = [rule for rule in RULES if any(applicability > Applicability.DISPLAY for applicability in rule.fix)]
EACH_RULE = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
EACH_FIXABLE_RULE = pytest.mark.parametrize("rule", FIXABLE, ids=lambda rule: rule.name)
EACH_OTHER_RULE = pytest.mark.parametrize(
    "rule", [rule for rule in RULES if rule not in FIXABLE], ids=lambda rule: rule.name
)


def read(rule: Rule, name: str) -> str:
    """The text of a fixture, line endings untouched."""
    return (FIXTURES / rule.module / name).read_bytes().decode()


def names(rule: Rule) -> list[str]:
    return sorted(entry.name for entry in (FIXTURES / rule.module).iterdir() if entry.name.endswith(".py"))


@EACH_RULE
def test_slow_is_flagged(rule: Rule) -> None:
    text = read(rule, "slow.py")
    found = [place for place in laws.places(text, laws.active(rule.name)) if place[1] == rule.name]
    assert found
    marked = [place for place in laws.marks(text) if place[1] == rule.name]
    assert not marked or found == marked


@EACH_RULE
def test_look_alikes_stay_silent(rule: Rule) -> None:
    found = laws.places(read(rule, "ok.py"), laws.active(rule.name))
    assert [place for place in found if place[1] == rule.name] == []


@EACH_FIXABLE_RULE
def test_fast_is_what_the_fix_makes_of_slow(rule: Rule) -> None:
    lowest = min(applicability for applicability in rule.fix if applicability > Applicability.DISPLAY)
    fixed = laws.fix(read(rule, "slow.py"), laws.active(rule.name), lowest).text
    assert fixed == read(rule, "fast.py")
    assert fixed != read(rule, "slow.py")


@EACH_OTHER_RULE
def test_fast_is_a_suggestion_where_there_is_no_fix(rule: Rule) -> None:
    """Such a pair can show that the pattern costs something, never that a fix was verified."""
    text = read(rule, "fast.py")
    assert text.startswith('"""Suggestion, written by hand: ')
    assert [place for place in laws.places(text, laws.active(rule.name)) if place[1] == rule.name] == []


@EACH_RULE
def test_files(rule: Rule) -> None:
    assert names(rule) == ["fast.py", "ok.py", "slow.py"]


@pytest.mark.parametrize(
    ("rule", "name"),
    [(rule, name) for rule in RULES for name in ("slow.py", "fast.py", "ok.py")],
    ids=lambda value: getattr(value, "name", value),
)
def test_fixtures_obey_the_laws(rule: Rule, name: str) -> None:
    if name in names(rule):
        text = read(rule, name)
        ast.parse(text)
        laws.obey_laws(text, laws.active(rule.name))


@pytest.mark.parametrize("name", ["slow.py", "fast.py", "ok.py"])
@EACH_RULE
def test_fixtures_obey_the_laws_under_all_rules(rule: Rule, name: str) -> None:
    if name in names(rule):
        laws.fixes_come_to_rest(read(rule, name), laws.active(*(other.name for other in RULES)))
