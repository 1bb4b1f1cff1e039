"""What rules say: headlines, advice, summaries and titles, in the words of PyTorch's documentation."""

from __future__ import annotations

import importlib
import re
import statistics
import string
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from torchlint.finding import Applicability, Doubt
from torchlint.registry import all_rules
from torchlint.rule import Message, Said

if TYPE_CHECKING:
    from torchlint.rule import Rule

LONGEST = 90  # of a headline, without the code that it quotes
RULES = [rule for rule in all_rules() if rule.checks]
# Words of our own, for which the field has others.
UNUSUAL = re.compile(
    r"\b(behind the loop|at each turn|per turn|each turn|CPU wait|makes the CPU|anew|spelt out|written out|nobody takes|"
    r"gives back|gone over|goes over|run dry|silences)\b"
)

# What pages and documents say in other words, since their readers have words for it.
AVOIDED = re.compile(
    r"\b(behind the (?:loop|step)|(?:at each|per|each|an?|few|all) turns?|makes? the CPU wait|lets it go on|anew|spelt out|written out|"
    r"nobody takes|gives back what it compiled|(?:is|are) no leaf|silences nothing|records a graph|to learn (?:whether|how)|"
    r"launches kernels for each|nearest one above|what became of each|forget the results|as its author runs it|"
    r"main process loads each batch|subtracts the bias again|in front of the loop)\b",
    re.IGNORECASE,
)
ROOT = Path(__file__).parents[1]
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "editors/*.md", "editors/vscode/*.md", "rules/*/*.md", "benchmarks/*.md")
    for path in ROOT.glob(pattern)
)


def messages(rule: Rule) -> list[Message]:
    """The messages that the module of a rule holds."""
    module = importlib.import_module(f"torchlint.rules.{rule.group}.{rule.module}")
    return [value for value in vars(module).values() if isinstance(value, Message)]


def quoted(text: str) -> str:
    """A text without the code in it, and without what goes in by name."""
    return re.sub(r"`[^`]*`|\{[^}]*\}", "", text)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_what_a_rule_says(rule: Rule) -> None:
    found = messages(rule)
    assert found, "a rule says what happens and what to do by a `Message`"
    ids = [message.id for message in found]
    assert len(ids) == len(set(ids)), ids
    for message in found:
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", message.id), message.id
        assert len(quoted(message.headline.replace("{often}", " several times a batch"))) <= LONGEST, message.headline
        assert message.help, f"{message.id}: say what to do"
        for text in (message.headline, message.help):
            assert not text.endswith((".", " ")), text
            assert not UNUSUAL.search(text), text
            assert not AVOIDED.search(text), text
            assert "; " not in message.headline, f"advice belongs to the help: {message.headline}"
            names = [name for _, name, _, _ in string.Formatter().parse(text) if name is not None]
            assert all(name.isidentifier() for name in names), text


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_rule_with_an_unsafe_fix_says_what_may_differ(rule: Rule) -> None:
    assert bool(rule.unsafe) is (Applicability.UNSAFE in rule.fix)
    assert rule.unsafe[:1] == rule.unsafe[:1].lower()
    assert not rule.unsafe.endswith(".")
    assert len(quoted(rule.unsafe)) <= LONGEST


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_summaries_use_the_words_of_the_field(rule: Rule) -> None:
    for text in (rule.summary, rule.unsafe):
        assert not UNUSUAL.search(text), text
        assert not AVOIDED.search(text), text


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_pages_use_the_words_of_the_field(path: Path) -> None:
    prose = re.sub(r"^```.*?^```$", "", path.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
    found = {match[0]: prose[: match.start()].count("\n") + 1 for match in AVOIDED.finditer(re.sub(r"\s", " ", prose))}
    assert found == {}


def test_code_uses_the_words_of_the_field() -> None:
    """`explain` shows docstrings to people: those of the predicates that decided."""
    files = [path for folder in ("torchlint", "rules") for path in (ROOT / folder).rglob("*.py")]
    found = {(path.name, match[0]) for path in files for match in AVOIDED.finditer(path.read_text("utf-8"))}
    assert found == set()


def test_half_of_the_headlines_are_much_shorter() -> None:
    lengths = [len(quoted(message.headline)) for rule in RULES for message in messages(rule)]
    assert statistics.median(lengths) <= 60


def test_values_go_in_by_name() -> None:
    message = Message("reads", "`{read}` synchronizes{often}", help="read `{read}` later")
    assert message.of(read="x.item()", often=" every batch") == Said(
        "`x.item()` synchronizes every batch", "read `x.item()` later", "reads"
    )
    with pytest.raises(KeyError):
        message.of(read="x.item()")
    assert message.of(read="{often}", often="").headline == "`{often}` synchronizes"


@pytest.mark.parametrize("doubt", list(Doubt), ids=lambda doubt: doubt.value)
def test_doubts_are_clauses(doubt: Doubt) -> None:
    assert not doubt.sentence.endswith(".")
    assert doubt.sentence[0].islower()
