"""Write the generated parts of README.md and of the pages about rules and configuration.

usage: python tools/generate_readme.py
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from torchlint.options import properties
from torchlint.registry import all_rules, find
from torchlint.rule import Rule, Status

ROOT = Path(__file__).parents[1]
# The pages, each with its generated parts.
PAGES = {
    "README.md": ("check", "fix", "ten"),
    "docs/rules.md": ("rules",),
    "docs/configuration.md": ("configuration",),
}
# On by default, and each of them among the findings that weigh most in training scripts of others.
TEN = (
    "dataloader-no-workers",
    "host-factory-then-move",
    "blocking-h2d-in-batch-loop",
    "item-in-train-loop",
    "item-in-eval-loop",
    "bulk-d2h-in-hot-loop",
    "boolean-mask-select",
    "eval-without-no-grad",
    "naive-attention",
    "python-loop-over-tensor",
)


def generated(page: str, text: str) -> str:
    """`text` with each part of the page between `<!-- begin: part -->` and `<!-- end: part -->` written again."""
    for name in PAGES[page]:
        before, begin, rest = text.partition(f"<!-- begin: {name} -->\n")
        _, end, after = rest.partition(f"<!-- end: {name} -->\n")
        assert begin, f"{page} has no part `{name}`"
        assert end, f"{page} does not end its part `{name}`"
        text = f"{before}{begin}\n{_part(name, text)}\n{end}{after}"
    return text


def _part(name: str, text: str) -> str:
    match name:
        case "ten":
            return _rules(tuple(map(find, TEN)), "rules")
        case "rules":
            return _rules(all_rules(), "../rules")
        case "configuration":
            return _configuration()
    example = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert example is not None
    if name == "check":
        return _console(example[1], "check", "--output-format", "concise", "train.py")
    return _console(example[1], "fix", "--unsafe-fixes", "--diff", "train.py")


def _console(code: str, *arguments: str) -> str:
    """A torchlint command on the example, and what it prints."""
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_COLOR")}
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "train.py").write_text(code)
        command = (sys.executable, "-m", "torchlint", *arguments, "--no-cache")
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1, done.stderr
    language = "diff" if "--diff" in arguments else "console"
    return f"```{language}\n$ torchlint {' '.join(arguments)}\n{done.stdout.rstrip()}\n```\n"


def _rules(rules: tuple[Rule, ...], folder: str) -> str:
    return _table(
        ("code", "name", "fix", "default", "what it finds"),
        (
            (
                rule.code,
                f"[{rule.name}]({folder}/{rule.path})",
                " or ".join(map(str, rule.fix)) or "none",
                _default(rule),
                rule.summary,
            )
            for rule in rules
        ),
    )


def _configuration() -> str:
    return _table(
        ("key", "meaning", "for example"),
        (
            (
                f"`{key}`",
                shape["description"],
                " ".join(f"`{json.dumps(value)}`" for value in shape.get("examples", ())),
            )
            for key, shape in properties().items()
        ),
    )


def _table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    return "".join(f"| {' | '.join(row)} |\n" for row in (header, ("---",) * len(header), *rows))


def _default(rule: Rule) -> str:
    if rule.status is not Status.STABLE:
        return str(rule.status.value)
    return "on" if rule.default else "off"


if __name__ == "__main__":
    for page in PAGES:
        path = ROOT / page
        path.write_text(generated(page, path.read_text(encoding="utf-8")), encoding="utf-8")
