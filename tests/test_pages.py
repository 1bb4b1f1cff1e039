"""Each rule's page: its head equals the metadata, its examples do what they say, its numbers are measured."""

from __future__ import annotations

import ast
import re
from importlib.resources import files
from typing import TYPE_CHECKING, NamedTuple

import laws
from contract import of_each_rule

from torchlint import evidence
from torchlint.finding import Applicability
from torchlint.registry import all_rules
from torchlint.report.evidence import markdown, placed
from torchlint.report.page import conditions

if TYPE_CHECKING:
    from torchlint.rule import Rule

RULES = all_rules()
PAGES = files("torchlint.rules")
FIXTURES = files("torchlint.fixtures")
SECTIONS = [
    "Why is this slow",
    "Example",
    "Fix safety",
    "When not to use / look-alikes",
    "Evidence",
    "References",
]
# "3.2x faster", "12 times slower", "saves 40 %": what only a measurement may say.
SPEED = re.compile(
    r"\d\s*(?:x|times|%|percent)\s+(?:as\s+)?(?:fast|slow|less|more)|(?:saves?|gains?)\s+\d", re.IGNORECASE
)


class Example(NamedTuple):
    """A `bad` block and the `good` one that follows it."""

    bad: str
    good: str | None


def page(rule: Rule) -> str:
    return PAGES.joinpath(*rule.path.split("/")).read_text("utf-8")


def examples(rule: Rule) -> list[Example]:
    blocks = re.findall(r"^```python (bad|good)\n(.*?)^```$", page(rule), re.DOTALL | re.MULTILINE)
    pairs: list[Example] = []
    for kind, code in blocks:
        if kind == "bad":
            pairs.append(Example(code, None))
        else:
            assert pairs, "a good example follows a bad one"
            assert pairs[-1].good is None, "a good example follows a bad one"
            pairs[-1] = Example(pairs[-1].bad, code)
    return pairs


def section(rule: Rule, title: str) -> str:
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", page(rule), re.DOTALL | re.MULTILINE)
    assert found, f"no section {title!r}"
    return found[1].strip()


@of_each_rule
def the_head_equals_the_metadata(rule: Rule) -> None:
    head = (
        f"# {rule.name} ({rule.code})\n\n"
        f"- group: {rule.group}\n"
        f"- fix: {', '.join(map(str, rule.fix)) or 'none'}\n"
        f"- default: {'on' if rule.default else 'off'}\n"
        f"- since: {rule.since}\n"
        f"- status: {rule.status.value}\n"
        + "".join(f"- {key}: {value}\n" for key, value in conditions(rule))
        + "\n"
        + f"{rule.summary}\n\n"
    )
    assert page(rule)[: len(head)] == head


@of_each_rule
def the_sections_are_those_of_every_page(rule: Rule) -> None:
    prose = re.sub(r"^```.*?^```$", "", page(rule), flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r"^## (.*)$", prose, re.MULTILINE) == SECTIONS
    for title in SECTIONS:
        assert section(rule, title), f"{title} is empty"


@of_each_rule
def examples_are_flagged_where_marked_and_obey_the_laws(rule: Rule) -> None:
    pairs = examples(rule)
    assert pairs
    for bad, good in pairs:
        assert laws.marks(bad), "a bad example marks what is flagged"
        laws.check_snippet(bad, rule.name)
        assert good is not None
        ast.parse(good)
        laws.check_snippet(good, rule.name)


@of_each_rule
def the_fix_makes_good_of_bad(rule: Rule) -> None:
    settings = laws.active(rule.name)
    made = 0
    for bad, good in examples(rule):
        text = laws.unmarked(bad)
        fixed = laws.fix(text, settings, Applicability.UNSAFE).text
        if fixed != text:
            assert fixed == good
            made += 1
    assert bool(made) == any(applicability > Applicability.DISPLAY for applicability in rule.fix)


@of_each_rule
def fixes_are_as_declared(rule: Rule) -> None:
    folder = FIXTURES / rule.module
    texts = [laws.unmarked(bad) for bad, _ in examples(rule)]
    texts += [entry.read_bytes().decode() for entry in folder.iterdir() if entry.name.endswith(".py")]
    settings = laws.active(rule.name)
    seen = {
        finding.fix.applicability
        for text in texts
        for finding in laws.lint(text, settings).findings
        if finding.rule == rule.name and finding.fix is not None
    }
    assert tuple(sorted(seen, reverse=True)) == rule.fix


@of_each_rule
def the_evidence_is_what_was_measured(rule: Rule) -> None:
    measured = evidence.evidence_of(rule)
    now = markdown(measured, lambda each: evidence.is_stale(each, evidence.pair(rule)), rule.name)
    assert placed(page(rule), now, rule.name) == page(rule), "run `python tools/generate_pages.py`"


@of_each_rule
def no_speed_is_typed_by_hand(rule: Rule) -> None:
    typed = section(rule, "Evidence").partition(f"`torchlint verify --rule {rule.name}`")
    by_hand = page(rule).replace("".join(typed[:2]), "") if typed[1] else page(rule)
    assert SPEED.findall(by_hand) == []


@of_each_rule
def other_rules_are_named_as_they_are(rule: Rule) -> None:
    known = {other.code for other in RULES}
    stated = set(re.findall(r"\bTL\d{3}\b", page(rule)))
    assert stated <= known, f"no such rules: {stated - known}"


def test_every_page_belongs_to_a_rule() -> None:
    pages = {
        f"{group.name}/{entry.name}"
        for group in PAGES.iterdir()
        if group.is_dir()
        for entry in group.iterdir()
        if entry.name.endswith(".md")
    }
    assert pages == {rule.path for rule in RULES}
