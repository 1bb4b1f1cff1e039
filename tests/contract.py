"""What each rule has to keep: checks that say so stand beside what they are about, and `test_contract.py` runs them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from torchlint.rule import Rule


class Check(Protocol):
    """An assertion about a rule."""

    __name__: str

    def __call__(self, rule: Rule) -> None: ...


CHECKS: list[Check] = []


def of_each_rule(check: Check) -> Check:
    """Let it be asked of each rule; its name is the sentence that holds."""
    CHECKS.append(check)
    return check
