from __future__ import annotations

import importlib
import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from report_samples import RULE, options, sample

from torchlint.explain import page_json, page_text, table_json, table_text
from torchlint.finding import Applicability
from torchlint.report import render
from torchlint.report.markdown import render as markdown
from torchlint.report.style import PLAIN, Style
from torchlint.rule import Rule, Status

ANSI = re.compile(r"\x1b\[[0-9;]*m|\x1b\]8;;[^\x1b]*\x1b\\")

PAGE = """\
# sample-item-in-loop (TL391)

- group: sync
- fix: safe, unsafe
- default: on
- since: 0.1.0
- status: stable

`.item()` in a training loop makes the host wait for the device in every step.

## Why is this slow

Kernels run *asynchronously*.
"""

MODULE = """\
from report_samples import RULE as SAMPLE
from dataclasses import replace
from torchlint.rule import Method

RULE = replace(SAMPLE, checks=[])

@RULE.on(Method("item"))
def check(node, context):
    yield
"""


@pytest.fixture
def rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rule:
    """A rule of a third party's pack, with its page."""
    pack = tmp_path / "sample_pack"
    pack.mkdir()
    (pack / "__init__.py").touch()
    (pack / "sample_item_in_loop.py").write_text(MODULE)
    (pack / "sample_item_in_loop.md").write_text(PAGE)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("sample_pack", "sample_pack.sample_item_in_loop"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    found = importlib.import_module("sample_pack.sample_item_in_loop").RULE
    assert isinstance(found, Rule)
    return found


def test_a_page(rule: Rule) -> None:
    assert page_text(rule, PLAIN, 60) == (
        """\
TL391 sample-item-in-loop
sync · safe or unsafe fix · on by default · since 0.1.0

`.item()` in a training loop makes the host wait for the
device in every step.

## Why is this slow

Kernels run asynchronously.

https://github.com/torchlint/torchlint/blob/main/rules/sample_item_in_loop.md
"""
    )


def test_the_facts_of_other_rules() -> None:
    other = replace(RULE, fix=(), default=False, status=Status.PREVIEW)
    assert page_text(other).splitlines()[1] == "sync · no fix · off by default · since 0.1.0 · preview"


def test_a_rule_without_a_page_is_explained_by_its_summary() -> None:
    assert RULE.summary in page_text(RULE)
    assert json.loads(page_json(RULE))["explanation"] is None


def test_a_page_as_json(rule: Rule) -> None:
    assert json.loads(page_json(rule)) == {
        "code": "TL391",
        "name": "sample-item-in-loop",
        "group": "sync",
        "summary": RULE.summary,
        "fix": ["safe", "unsafe"],
        "default": True,
        "status": "stable",
        "since": "0.1.0",
        "url": RULE.url,
        "explanation": PAGE,
    }


def test_sarif_carries_the_page(rule: Rule) -> None:
    (run,) = json.loads(render("sarif", (sample(),), options(rules=(rule,))))["runs"]
    markdown_text = run["tool"]["driver"]["rules"][0]["help"]["markdown"]
    assert markdown_text == PAGE.partition("stable\n\n")[2]


SHORT = Rule("short", "TL1", "g", "Short.", "0.1.0", Status.PREVIEW)


def test_the_table() -> None:
    off = replace(RULE, default=False, fix=(Applicability.UNSAFE,))
    assert table_text([RULE, off, SHORT]) == (
        f"""\
code   name                 fix           default  summary
TL391  sample-item-in-loop  safe, unsafe  on       {RULE.summary}
TL391  sample-item-in-loop  unsafe        off      {RULE.summary}
TL1    short                -             preview  Short.
"""
    )


def test_the_table_keeps_to_the_width() -> None:
    assert table_text([RULE, SHORT], columns=90) == (
        """\
code   name                 fix           default  summary
TL391  sample-item-in-loop  safe, unsafe  on       `.item()` in a training loop makes the
                                                   host wait for the device in every step.
TL1    short                -             preview  Short.
"""
    )
    assert max(map(len, table_text([RULE], columns=20).splitlines())) <= 51 + 30


def test_colour_and_links_change_nothing_but_the_looks() -> None:
    dressed = table_text([RULE, SHORT], Style(color=True), 90)
    assert ANSI.sub("", dressed) == table_text([RULE, SHORT], columns=90)
    assert "\x1b" in dressed
    page = page_text(RULE, Style(color=True, links=True))
    assert ANSI.sub("", page).replace("`", "") == page_text(RULE).replace("`", "")
    assert page.startswith(f"\x1b]8;;{RULE.url}\x1b\\")


def test_the_table_of_no_rules_is_its_head() -> None:
    assert table_text([]) == "code  name  fix  default  summary\n"


def test_the_table_as_json() -> None:
    rows = json.loads(table_json([RULE, SHORT]))
    assert [row["code"] for row in rows] == ["TL391", "TL1"]
    assert rows[1]["status"] == "preview"
    assert rows[1]["fix"] == []


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("", ""),
        ("a\nb\n\nc", "a b\n\nc\n"),
        ("one two three four five six seven", "one two three four five six\nseven\n"),
        ("x **bold** *em* _em_ snake_case a*b*c", "x bold em em snake_case a*b*c\n"),
        ("`a b`, ``c`d``.", "`a b`, `c`d`.\n"),
        ("`**kwargs` and *args", "`**kwargs` and *args\n"),
        ("[text](https://x.org), <https://y.org>.", "text (https://x.org),\nhttps://y.org.\n"),
        ("## Head `x` ##\ntext", "## Head `x`\n\ntext\n"),
        ("- one two three four five six seven\n- b\n  c", "- one two three four five six\n  seven\n- b c\n"),
        ("- a\n  - b\n\n1. c\n10. d", "- a\n  - b\n\n1. c\n10. d\n"),
        ("> a\n> b", "| a b\n"),
        ("text\n```\nx  # y\n\n  z\n```\nmore", "text\n\n    x  # y\n\n      z\n\nmore\n"),
        ("```python bad\nx  # <- rule\n```", "    slow:\n    x  # <- rule\n"),
        ("```python good\nx\n```", "    fast:\n    x\n"),
        ("```\nnot closed", "    not closed\n"),
        ("|a|b|\n|-|-:|\n|`x`|1|\n|名|10|\n|y\\|z|", "a     b\n---  --\n`x`   1\n名   10\ny|z\n"),
        ("a | b\nno table", "a | b no table\n"),
        ("bad \x1b[31m\x07", "bad ␛[31m␇\n"),
        ("```\nbad \x1b[31m\n```", "    bad ␛[31m\n"),
    ],
)
def test_markdown_without_colour(source: str, shown: str) -> None:
    assert markdown(source, PLAIN, 30) == shown


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("a `b` **c** *d*.", "a \x1b[36mb\x1b[0m \x1b[1mc\x1b[0m \x1b[3md\x1b[0m.\n"),
        ("## Head", "\x1b[1mHead\x1b[0m\n"),
        ("|a|\n|-|\n|b|\n", "\x1b[1ma\x1b[0m\n\x1b[2m-\x1b[0m\nb\n"),
        (
            "[a b](u)",
            "\x1b]8;;u\x1b\\\x1b[1;96ma\x1b[0m\x1b]8;;\x1b\\ \x1b]8;;u\x1b\\\x1b[1;96mb\x1b[0m\x1b]8;;\x1b\\\n",
        ),
        (
            "```python bad\nx = '#'  # <- rule\ny  # note\n```",
            (
                "    \x1b[1;91mslow\x1b[0m:\n"
                "    \x1b[36mx = '#'  \x1b[0m\x1b[1;91m# <- rule\x1b[0m\n"
                "    \x1b[36my  \x1b[0m\x1b[2m# note\x1b[0m\n"
            ),
        ),
    ],
)
def test_markdown_with_colour_and_links(source: str, shown: str) -> None:
    assert markdown(source, Style(color=True, links=True), 30) == shown


def test_paragraphs_keep_to_the_width() -> None:
    text = "- " + "`code` word **bold** " * 20 + "\n\n" + "日本 " * 40
    for columns in (30, 47, 80):
        assert max(len(line) + line.count("日") * 2 for line in markdown(text, PLAIN, columns).splitlines()) <= columns
