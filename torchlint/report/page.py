"""The text of a rule's page."""

from __future__ import annotations

import re

from torchlint.registry import PACK
from torchlint.rule import OLDEST_TORCH, Rule

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
            text = shipped.read("rules", rule.path).decode()
            return text if text.startswith("# ") else _head(rule) + text  # as a wheel holds it
        return (files(package) / f"{rule.module}.md").read_text("utf-8")
    except (FileNotFoundError, ModuleNotFoundError, TypeError, ValueError):  # no such page, no such package
        return None


def _head(rule: Rule) -> str:
    facts = [
        ("group", rule.group),
        ("fix", ", ".join(map(str, rule.fix)) or "none"),
        ("default", "on" if rule.default else "off"),
        ("since", rule.since),
        ("status", rule.status.value),
        *conditions(rule),
    ]
    listed = "".join(f"- {key}: {value}\n" for key, value in facts)
    return f"# {rule.name} ({rule.code})\n\n{listed}\n{rule.summary}\n\n"


def conditions(rule: Rule) -> list[tuple[str, str]]:
    """What else the head of the page says of where the rule is silent, as keys and values."""
    found = []
    if rule.torch > OLDEST_TORCH:
        found.append(("torch", "{}.{} or newer".format(*rule.torch)))
    if rule.eager:
        found.append(("compiled code", "silent"))
    if rule.yields_to:
        found.append(("yields to", ", ".join(rule.yields_to)))
    return found


def body(rule: Rule) -> str | None:
    """The page without its title and metadata."""
    text = page(rule)
    return None if text is None else _HEAD.sub("", text, count=1).strip() + "\n"
