"""Write the generated parts of README.md: what torchlint says of its example, and the table of rules.

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
from torchlint.registry import all_rules
from torchlint.rule import Rule, Status

README = Path(__file__).parents[1] / "README.md"


def generated(text: str) -> str:
    """`text` with each part between `<!-- begin: part -->` and `<!-- end: part -->` written anew."""
    example = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert example is not None
    parts = {
        "check": _console(example[1], "check", "--output-format", "concise", "train.py"),
        "fix": _console(example[1], "fix", "--unsafe-fixes", "--diff", "train.py"),
        "rules": _rules(all_rules()),
        "configuration": _configuration(),
    }
    for name, body in parts.items():
        before, begin, rest = text.partition(f"<!-- begin: {name} -->\n")
        _, end, after = rest.partition(f"<!-- end: {name} -->\n")
        assert begin, f"README.md has no part `{name}`"
        assert end, f"README.md does not end its part `{name}`"
        text = f"{before}{begin}\n{body}\n{end}{after}"
    return text


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


def _rules(rules: tuple[Rule, ...]) -> str:
    return _table(
        ("code", "name", "fix", "default", "what it finds"),
        (
            (
                rule.code,
                f"[{rule.name}](rules/{rule.path})",
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
    README.write_text(generated(README.read_text(encoding="utf-8")), encoding="utf-8")
