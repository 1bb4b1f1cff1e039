"""Write docs/coverage.md from docs/coverage.toml: each piece of advice that is known, and the rule that gives it.

usage: python tools/generate_coverage.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tomli

from torchlint.registry import UnknownRuleError, find

DOCS = Path(__file__).parents[1] / "docs"
_HEAD = """\
# Coverage

What the field advises about the speed of PyTorch programs, and what torchlint makes of it: the rule that finds the
lines, or why none does, and what has become outdated. Written from `docs/coverage.toml` by
`python tools/generate_coverage.py`.
"""


def generated(text: str) -> str:
    """The page of a text in TOML."""
    table = tomli.loads(text)
    parts = [_HEAD]
    for source in table["source"]:
        parts.append(f"## {source['title']}\n")
        if "note" in source:
            parts.append(f"{source['note']}\n")
        has_articles = any("articles" in advice for advice in source["advice"])
        columns = (*(("in",) if has_articles else ()), "advice", "rules", "remarks")
        rows = [columns, ("---",) * len(columns), *(_row(advice, has_articles) for advice in source["advice"])]
        parts.append("".join(f"| {' | '.join(row)} |\n" for row in rows))
    return "\n".join(parts)


def unknown(text: str) -> set[str]:
    """The rules that a text in TOML names and that there are not."""
    named = {name for source in tomli.loads(text)["source"] for advice in source["advice"] for name in advice["rules"]}
    return {name for name in named if not _is_rule(name)}


def planned(text: str) -> set[str]:
    """The rules that it says are still to be written."""
    return set(tomli.loads(text)["planned"])


def _row(advice: dict[str, Any], has_articles: bool) -> tuple[str, ...]:  # noqa: FBT001 - a column or none
    remarks = [advice[key] for key in ("why", "outdated") if key in advice]
    if "outdated" in advice:
        remarks[-1] = f"*Outdated:* {remarks[-1]}"
    cells = (advice["what"], ", ".join(map(_link, advice["rules"])) or "none", " ".join(remarks))
    return (" ".join(map(str, advice["articles"])), *cells) if has_articles else cells


def _link(name: str) -> str:
    return f"[{name}](../rules/{find(name).path})" if _is_rule(name) else f"{name} (not written yet)"


def _is_rule(name: str) -> bool:
    try:
        return find(name).name == name
    except UnknownRuleError:
        return False


if __name__ == "__main__":
    (DOCS / "coverage.md").write_text(generated((DOCS / "coverage.toml").read_text("utf-8")), encoding="utf-8")
