"""docs/precision.md has a row for each rule that finds something, with the status that the rule has."""

from __future__ import annotations

import re
from pathlib import Path

from torchlint.registry import all_rules
from torchlint.rule import Status

PAGE = (Path(__file__).parents[1] / "docs" / "precision.md").read_text("utf-8")
ROWS = {row[1]: row[2] for row in re.finditer(r"^\| (TL\d+) \[.*\| ([^|]+) \|$", PAGE, re.MULTILINE)}


def test_each_rule_has_its_status() -> None:
    rules = [rule for rule in all_rules() if rule.name != "unused-ignore"]
    stable = {True: "stable, on", False: "stable, opt-in"}
    assert {rule.code: stable[rule.default] if rule.status is Status.STABLE else "preview" for rule in rules} == ROWS
