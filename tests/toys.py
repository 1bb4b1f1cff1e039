"""Small rules for tests of the machinery, so that those do not depend on what the real rules say."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst

from torchlint import engine, registry
from torchlint.rule import Applicability, Call, Flag, Method, Replace, Rule

if TYPE_CHECKING:
    import pytest

    from torchlint.semantics.context import Context

UNUSED = Rule("unused-ignore", "TL001", "torchlint", "Toy.", "0.1.0", fix=(Applicability.SAFE,))
SLOW = Rule("slow-call", "TL101", "toys", "Toy.", "0.1.0", fix=(Applicability.SAFE,))
READ = Rule("host-read", "TL301", "toys", "Toy.", "0.1.0", fix=(Applicability.UNSAFE,))
PLAIN = Rule("plain-call", "TL302", "toys", "Toy.", "0.1.0")
CRASH = Rule("crashing-check", "TL402", "toys", "Toy.", "0.1.0")
RULES = (UNUSED, SLOW, READ, PLAIN, CRASH)


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the toys in the place of all rules."""
    keys = {key: rule for rule in RULES for key in (rule.name, rule.code)}
    monkeypatch.setattr(registry, "all_rules", lambda: RULES)
    monkeypatch.setattr(registry, "by_name", lambda: keys)
    for cached in ("_pattern", "_interests"):  # they know rules by what they are called
        monkeypatch.setattr(engine, cached, getattr(engine, cached).__wrapped__)


@SLOW.on(Call("torch.slow"))
def _slow(node: cst.Call, context: Context) -> Iterator[Flag]:
    """`torch.slow(x)` becomes `torch.fast(x)`."""
    arguments = ", ".join(context.code(argument.value) for argument in node.args)
    edits = (Replace(node, f"torch.fast({arguments})"),)
    yield Flag(node, "`torch.slow` is slow", "Call `torch.fast`", edits, Applicability.SAFE)


@READ.on(Method("item"))
def _read(node: cst.Call, context: Context) -> Iterator[Flag]:
    """`x.item()` becomes `x`."""
    if isinstance(node.func, cst.Attribute):
        yield Flag(node, "`.item()` waits", "Keep the tensor", (Replace(node, context.code(node.func.value)),))


@PLAIN.on(Call("torch.plain"))
def _plain(node: cst.Call, _: Context) -> Iterator[Flag]:
    """`torch.plain()` is only reported."""
    yield Flag(node, "`torch.plain` is plain")


@CRASH.on(Call("torch.crash"))
def _crash(node: cst.Call, _: Context) -> Iterator[Flag]:
    """Raise."""
    yield Flag(node, f"{1 // 0}")
