"""Each rule, asked all that holds of every rule: its metadata, its page, its fixtures, and the laws on them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import test_catalogue
import test_fixtures
import test_pages
from contract import CHECKS

from torchlint.registry import all_rules

if TYPE_CHECKING:
    from torchlint.rule import Rule


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.name)
def test_contract(rule: Rule, subtests: pytest.Subtests) -> None:
    for check in CHECKS:
        with subtests.test(check.__name__):
            check(rule)


def test_all_of_it_is_asked() -> None:
    assert {check.__module__ for check in CHECKS} == {
        module.__name__ for module in (test_catalogue, test_fixtures, test_pages)
    }
