"""A rule's pair of files: what the slow one declares of itself, and the fast one that the fixer makes of it."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from torchlint import shipped
from torchlint.evidence import Metric, NumericsClass, digest
from torchlint.finding import Applicability
from torchlint.rule import Rule

FILE = "workload.py"


class WorkloadError(ValueError):
    """A file that is no workload: what and where, in one line."""


@dataclass(frozen=True, slots=True)
class Workload:
    """The pair of a rule and what it declares: see CONTRIBUTING.md."""

    rule: Rule
    slow: bytes
    fast: bytes
    fix: Literal["safe", "unsafe", "suggestion"]
    numerics: NumericsClass
    metric: Metric
    sizes: dict[str, dict[str, Any]]
    nohelp: str
    devices: int = 1
    dropped: tuple[str, ...] = ()
    free: tuple[str, ...] = ()
    slow_is_wrong: bool = False
    digests: dict[str, str] = field(default_factory=dict)


def workload(rule: Rule) -> Workload:
    """The workload of a rule; its fast file is made by the fixer, if it can. Raises `WorkloadError`."""
    slow = shipped.read("fixtures", f"{rule.module}/slow.py")
    declared = declaration(slow, f"fixtures/{rule.module}/slow.py")
    fixable = [applicability for applicability in rule.fix if applicability > Applicability.DISPLAY]
    fast = _fixed(rule, slow, min(fixable)) if fixable else shipped.read("fixtures", f"{rule.module}/fast.py")
    return Workload(
        rule=rule,
        slow=slow,
        fast=fast,
        fix=_word(min(fixable)) if fixable else "suggestion",
        numerics=declared["numerics"],
        metric=declared["metric"],
        sizes=declared["sizes"],
        nohelp=declared["nohelp"],
        devices=declared.get("devices", 1),
        dropped=tuple(declared.get("dropped", ())),
        free=tuple(declared.get("free", ())),
        slow_is_wrong=declared.get("slow_is_wrong", False),
        digests={"sha256_before": digest(slow), "sha256_after": digest(fast)},
    )


def declaration(source: bytes, where: str) -> dict[str, Any]:
    """The literal `WORKLOAD` of a file, which is not run. Raises `WorkloadError`."""
    for statement in ast.parse(source).body:
        match statement:
            case ast.Assign(targets=[ast.Name("WORKLOAD")], value=value):
                try:
                    declared = ast.literal_eval(value)
                except ValueError:
                    raise WorkloadError(f"{where}:{statement.lineno}: WORKLOAD has to be a literal") from None
                _check(declared, f"{where}:{statement.lineno}")
                return dict(declared)
    raise WorkloadError(f"{where}: has no WORKLOAD")


def _check(declared: Any, where: str) -> None:  # anything may stand there
    for key, words in (("numerics", get_args(NumericsClass)), ("metric", get_args(Metric))):
        if declared.get(key) not in words:
            raise WorkloadError(f"{where}: WORKLOAD[{key!r}] is {declared.get(key)!r}; it has to be one of {words}")
    missing = {"smoke", "gpu", "nohelp"} - set(declared.get("sizes", ()))
    if missing:
        raise WorkloadError(f"{where}: WORKLOAD['sizes'] lacks {', '.join(sorted(missing))}")
    if not isinstance(declared.get("nohelp"), str):
        raise WorkloadError(f"{where}: WORKLOAD['nohelp'] has to say why the fix does not pay at that size")


def _word(applicability: Applicability) -> Literal["safe", "unsafe"]:
    return "safe" if applicability is Applicability.SAFE else "unsafe"


def _fixed(rule: Rule, slow: bytes, threshold: Applicability) -> bytes:
    from torchlint.fixer import fix  # loads LibCST
    from torchlint.settings import Settings
    from torchlint.source import SourceFile

    source = SourceFile.from_bytes(FILE, slow)
    return fix(source, Settings(rules=(rule.name,)), threshold).source.to_bytes()
