"""The files of a new rule, with a TODO wherever its author has to say something.

python -m tools.new_rule NAME --code TL000 --group GROUP
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from torchlint import __version__
from torchlint.registry import all_rules

_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_CODE = re.compile(r"TL\d{3}")
_GROUP = re.compile(r"[a-z]+")


class NewRuleError(ValueError):
    """A rule that cannot be made; the message says what is in the way."""


def new_rule(root: Path, name: str, code: str, group: str) -> list[Path]:
    """Write module, page, `slow.py`, `fast.py` and `ok.py` of a rule into the checkout at `root`; the paths written.

    The catalogue's tests fail until every TODO is filled in. Raises `NewRuleError`, with nothing written.
    """
    module = name.replace("-", "_")
    rules, fixtures = root / "rules", root / "fixtures"
    wanted = {
        rules / group / f"{module}.py": _MODULE,
        rules / group / f"{module}.md": _PAGE,
        fixtures / module / "slow.py": _SLOW + _WORKLOAD,
        fixtures / module / "fast.py": _FAST + _WORKLOAD,
        fixtures / module / "ok.py": _OK,
    }
    for what, given, pattern, example in (
        ("name", name, _NAME, "item-in-train-loop"),
        ("code", code, _CODE, "TL301"),
        ("group", group, _GROUP, "sync"),
    ):
        if not pattern.fullmatch(given):
            raise NewRuleError(f"{what} `{given}` does not look like `{example}`")
    for rule in all_rules():
        if name == rule.name or code == rule.code:
            raise NewRuleError(f"{rule.name} ({rule.code}) exists; take another name and code")
        if code[:-2] == rule.code[:-2] and group != rule.group:
            own = {f"; those of `{group}` with {each.code[:-2]}" for each in all_rules() if each.group == group}
            ours = f"codes that start with {code[:-2]} are those of the group `{rule.group}`"
            raise NewRuleError(ours + ", ".join(sorted(own)))
    for folder in (rules, fixtures):
        if not folder.is_dir():
            raise NewRuleError(f"no {folder.name}/ in {root}; run this at the top of a checkout of torchlint")
    for path in wanted:
        if path.exists():
            raise NewRuleError(f"{path} exists")
    if not (rules / group).exists():
        (rules / group).mkdir()
        (rules / group / "__init__.py").write_text(f'"""Rules of the group {group}."""\n', encoding="utf-8")
    for path, template in wanted.items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(
            template.format(name=name, code=code, group=group, module=module, version=__version__), encoding="utf-8"
        )
    return list(wanted)


_MODULE = '''\
"""TODO: what the line does to the device, in one sentence."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from torchlint.rule import Context, Flag, Message, Method, Rule

RULE = Rule(
    name="{name}",
    code="{code}",
    group="{group}",
    summary="TODO: what the line does to the device, in one sentence.",
    since="{version}",
)
_SLOW = Message("todo", "TODO: what happens on the GPU, and how often", help="TODO: what to do, as an imperative")


@RULE.on(Method("TODO"))
def check(call: cst.Call, context: Context) -> Iterator[Flag]:
    """Flag TODO: which calls, in which code."""
    if _is_ours(call, context):
        yield Flag(call, _SLOW.of())


def _is_ours(call: cst.Call, context: Context) -> bool:
    """Whether TODO: ask `context` for facts, and be silent where it knows none."""
    return context.kind(call) is not None
'''

_PAGE = """\
# {name} ({code})

- group: {group}
- fix: none
- default: on
- since: {version}
- status: stable

TODO: the summary of rules/{group}/{module}.py, word for word.

## Why is this slow

TODO: what the device does meanwhile, and what it costs; no figure that was not measured.

## Example

```python bad
import torch  # TODO: an example  # <- {name}
```

```python good
import torch  # TODO: the same, fast
```

## Fix safety

There is no fix. TODO: why, or what the fix keeps and what may differ.

## When not to use / look-alikes

TODO: code that looks alike and is fine; each case stands in fixtures/{module}/ok.py.

## Evidence

Not measured yet. Measure it on your machine: `torchlint verify --rule {name}`

## References

- TODO: the page of PyTorch's documentation or the issue that this rests on.
"""

_SLOW = '''\
"""TODO: what is slow here, in one sentence."""

import torch


def compute(x):
    """TODO: code as people write it, which the rule flags."""
    return x * 2
'''

# Replaced by what the fix makes of `slow.py`, where there is one.
_FAST = '''\
"""Suggestion, written by hand: TODO: what is done instead."""

import torch


def compute(x):
    """TODO: the same, fast."""
    return x * 2
'''

_WORKLOAD = '''

WORKLOAD = {{
    "numerics": "exact",  # TODO: or close, lower-precision, rng, nondeterministic, mapped-state, shape, alias, stdout
    "metric": "time",  # TODO: what the fix moves first; or memory, syncs, copies, launches
    "sizes": {{
        "smoke": {{"rows": 8}},
        "gpu": {{"rows": 4096}},
        "nohelp": {{"rows": 1}},
    }},
    "nohelp": "TODO: why it does not pay at that size.",
}}


def setup(device, size):
    """What `run` works on. TODO: draw it at random, but leave the seed alone."""
    sizes = WORKLOAD["sizes"][size]
    return [torch.randn(sizes["rows"], 64, device=device) for _ in range(2)]


def run(state):
    """TODO: one unit of work that moves `state` on, at one cost each time; return all that a wrong fix would change."""
    state.reverse()
    return compute(state[0])


if __name__ == "__main__":
    run(setup("cuda" if torch.cuda.is_available() else "cpu", "smoke"))
'''

_OK = '''\
"""TODO: the look-alikes on which {name} has to be silent."""
'''


def main(arguments: list[str] | None = None) -> int:
    """Write the files into the checkout that is the working folder, and name them; the exit status."""
    parser = argparse.ArgumentParser(prog="new_rule", description="Start a rule: its module, page and fixtures.")
    parser.add_argument("name")
    parser.add_argument("--code", required=True, metavar="TL000", help="its short code")
    parser.add_argument("--group", required=True, help="the group it belongs to")
    asked = parser.parse_args(arguments)
    try:
        written = new_rule(Path.cwd(), asked.name, asked.code, asked.group)
    except (NewRuleError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    for path in written:
        sys.stdout.write(f"{path.relative_to(Path.cwd())}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
