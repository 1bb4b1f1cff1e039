"""The text of a rule's page."""

from __future__ import annotations

import re

from torchlint.registry import PACK
from torchlint.rule import Rule

# The title and the list of metadata that open a page; the rule itself says the same.
_HEAD = re.compile(r"# [^\n]*\n+(?:- [^\n]*\n)*\n*")


def page(rule: Rule) -> str | None:
    """The whole page, None where the rule's pack holds none.

    It stands beside the module that registered the rule's first check.
    """
    from importlib.resources import files  # 10 ms that only explaining and SARIF need

    from torchlint import shipped  # as above

    package = rule.checks[0][1].__module__.rpartition(".")[0] if rule.checks else f"{PACK}.{rule.group}"
    try:
        if package.startswith(f"{PACK}."):
            return shipped.read("rules", rule.path).decode()
        return (files(package) / f"{rule.module}.md").read_text("utf-8")
    except (FileNotFoundError, ModuleNotFoundError, TypeError, ValueError):  # no such page, no such package
        return None


def body(rule: Rule) -> str | None:
    """The page without its title and metadata."""
    text = page(rule)
    return None if text is None else _HEAD.sub("", text, count=1).strip() + "\n"
