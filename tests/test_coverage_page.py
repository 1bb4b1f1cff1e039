"""docs/coverage.md is what its table says, and names rules that there are."""

from __future__ import annotations

import generate_coverage
import tomli

TABLE = (generate_coverage.DOCS / "coverage.toml").read_text("utf-8")


def test_the_page_is_generated() -> None:
    page = (generate_coverage.DOCS / "coverage.md").read_text("utf-8")
    assert page == generate_coverage.generated(TABLE), "run `python tools/generate_coverage.py`"


def test_rules_exist_or_are_planned() -> None:
    assert generate_coverage.unknown(TABLE) == generate_coverage.planned(TABLE)


def test_each_piece_of_advice_has_a_rule_or_a_reason() -> None:
    for source in tomli.loads(TABLE)["source"]:
        for advice in source["advice"]:
            assert advice["rules"] or advice.get("why"), advice["what"]


def test_all_seventy_pieces_of_the_articles_are_there() -> None:
    articles, *_ = tomli.loads(TABLE)["source"]
    assert len(articles["advice"]) == 70
    assert {number for advice in articles["advice"] for number in advice["articles"]} == {1, 2, 3, 4, 5}


def test_a_rule_that_there_is_not_is_seen() -> None:
    text = '[[source]]\ntitle = "x"\n[[source.advice]]\nwhat = "y"\nrules = ["item-in-train-loop", "no-such-rule"]\n'
    assert generate_coverage.unknown(text) == {"no-such-rule"}
    page = generate_coverage.generated(text)
    assert "[item-in-train-loop](../rules/sync/item_in_train_loop.md), no-such-rule (not written yet)" in page
