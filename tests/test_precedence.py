"""One line, one message: which of several flags speaks, and what becomes of the fixes of those on one line."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

import libcst as cst
import pytest
import toys

from torchlint import linter
from torchlint.finding import Applicability, Edit, Finding, Fix, Severity, Span
from torchlint.fixer import fix
from torchlint.precedence import count_of, merged
from torchlint.rule import Call, Flag, Method, Node, Replace, Rule
from torchlint.settings import Settings
from torchlint.source import SourceFile

if TYPE_CHECKING:
    from torchlint.semantics.context import Context

GENERAL = Rule(
    "general-read", "TL301", "toys", "Toy.", "0.1.0", fix=(Applicability.UNSAFE,), yields_to=("closer-read",)
)
CLOSER = Rule("closer-read", "TL302", "toys", "Toy.", "0.1.0")
WHOLE = Rule("whole-loop", "TL303", "toys", "Toy.", "0.1.0", yields_to=("general-read",))
MICRO = Rule("micro-call", "TL304", "toys", "Toy.", "0.1.0", eager=True)


@GENERAL.on(Method("item"))
def _general(node: cst.Call, context: Context) -> Iterator[Flag]:
    """`x.item()` becomes `x`."""
    if isinstance(node.func, cst.Attribute):
        yield Flag(node, "reads", "Keep the tensor", (Replace(node, context.code(node.func.value)),))


@CLOSER.on(Call("torch.log"))
def _closer(node: cst.Call, _: Context) -> Iterator[Flag]:
    """`torch.log(a, b)` speaks of the first argument of each."""
    yield Flag(node.func, "logs", about=tuple(argument.value for argument in node.args))


@WHOLE.on(Node("For", (b"for",)))
def _whole(node: cst.For, _: Context) -> Iterator[Flag]:
    """Any loop."""
    yield Flag(node, "loops")


@MICRO.on(Call("torch.micro"))
def _micro(node: cst.Call, _: Context) -> Iterator[Flag]:
    """`torch.micro()`."""
    yield Flag(node, "is small")


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toys, "RULES", (toys.UNUSED, GENERAL, CLOSER, WHOLE, MICRO))
    toys.install(monkeypatch)


def findings(code: str, *rules: Rule) -> tuple[Finding, ...]:
    source = SourceFile("snippet.py", "import torch\n" + textwrap.dedent(code))
    names = tuple(rule.name for rule in rules or (GENERAL, CLOSER, WHOLE, MICRO))
    result = linter.lint(source, Settings(names))
    assert not result.diagnostics
    return result.findings


def said(code: str, *rules: Rule) -> list[tuple[str, str]]:
    return [(finding.rule, finding.message) for finding in findings(code, *rules)]


def test_the_more_specific_rule_speaks_of_what_both_see() -> None:
    assert said("torch.log(x.item())\n") == [("closer-read", "logs")]
    assert said("torch.log(\n    x,\n    y.item(),\n)\n") == [("closer-read", "logs")], "of another line too"
    assert said("torch.log(x); y.item()\n") == [("closer-read", "logs")], "on one line"
    assert said("torch.log(x)\ny.item()\n") == [("closer-read", "logs"), ("general-read", "reads")]


def test_a_rule_that_yields_silences_nobody() -> None:
    code = "for x in torch.log(\n    z.item(),\n):\n    pass\n"
    assert said(code) == [("whole-loop", "loops"), ("closer-read", "logs")]
    assert said("for x in y.item():\n    pass\n") == [("general-read", "reads")]


def test_a_rule_speaks_where_the_one_it_yields_to_is_off() -> None:
    assert said("torch.log(x.item())\n", GENERAL) == [("general-read", "reads")]


def test_a_loop_is_not_what_stands_in_it() -> None:
    assert said("for x in y:\n    x.item()\n") == [("whole-loop", "loops"), ("general-read", "reads")]
    assert said("for x in y.item():\n    pass\n") == [("general-read", "reads")]


def test_findings_of_one_rule_on_one_line_are_one() -> None:
    (found,) = findings("f(x.item(), y.item(), z.item())\n")
    assert found.message == "reads (and 2 more on this line)"
    assert found.fix is not None
    assert [edit.text for edit in found.fix.edits] == ["x", "y", "z"]
    source = SourceFile("snippet.py", "import torch\nf(x.item(), y.item())\n")
    assert fix(source, Settings(("general-read",)), Applicability.UNSAFE).text == "import torch\nf(x, y)\n"


def test_a_safe_fix_does_not_wait_for_an_unsafe_one_on_its_line() -> None:
    source = SourceFile("snippet.py", "import torch\nf(x.hide().item(), y.item())\n")
    mixed = Rule("mixed-read", "TL305", "toys", "Toy.", "0.1.0", fix=(Applicability.SAFE, Applicability.UNSAFE))
    spans = (Span(15, 30), Span(32, 40))
    unsafe, safe = (
        Finding(mixed.name, mixed.code, span, "reads", fix=Fix("Keep", (Edit(span, text),), applicability))
        for span, text, applicability in zip(spans, "xy", (Applicability.UNSAFE, Applicability.SAFE), strict=True)
    )
    (found,) = merged([unsafe, safe], lambda offset: source.position(offset)[0])
    assert (found.span, found.fix) == (unsafe.span, safe.fix)


def on_one_line(*edits: Edit, severities: tuple[Severity, ...] = ()) -> Finding:
    """What becomes of findings of one rule on one line, each with one of the edits."""
    fixes = [Fix("Keep", (edit,), Applicability.UNSAFE) for edit in edits]
    findings = [
        Finding("read", "TL305", edit.span, "reads", fix=fix_, severity=severity)
        for edit, fix_, severity in zip(edits, fixes, severities or [Severity.WARNING] * len(edits), strict=True)
    ]
    (found,) = merged(findings, lambda _: 1)
    return found


def test_fixes_on_one_line_that_would_meet_wait_for_each_other() -> None:
    apart = (Edit(Span(0, 3), "x"), Edit(Span(3, 5), "y"))
    assert on_one_line(*apart).fix == Fix("Keep", apart, Applicability.UNSAFE)
    for first, then in (
        (Edit(Span(0, 4), "x"), Edit(Span(3, 5), "y")),
        (Edit(Span(2, 2), "x"), Edit(Span(2, 2), "y")),
        (Edit(Span(0, 4), "x"), Edit(Span(0, 4), "y")),
    ):
        assert on_one_line(first, then).fix == Fix("Keep", (first,), Applicability.UNSAFE)


def test_what_is_certain_stands_for_what_is_not_on_its_line() -> None:
    doubtful, certain, other = Edit(Span(0, 3), "x"), Edit(Span(4, 6), "y"), Edit(Span(7, 9), "z")
    severities = (Severity.NOTE, Severity.WARNING, Severity.WARNING)
    found = on_one_line(doubtful, certain, other, severities=severities)
    assert (found.span, found.severity) == (certain.span, Severity.WARNING)
    assert found.message == "reads (and 1 more on this line)"


def test_a_finding_says_how_many_it_stands_for() -> None:
    edits = [Edit(Span(start, start + 1), "x") for start in range(12)]
    assert count_of(on_one_line(edits[0])) == 1
    assert count_of(on_one_line(*edits[:2])) == 2
    assert count_of(on_one_line(*edits)) == 12


def test_what_holds_the_others_is_counted_once() -> None:
    (found,) = findings("(x.item() + y.item()).item()\n")
    assert found.message == "reads"
    assert found.fix is not None
    assert [edit.text for edit in found.fix.edits] == ["(x.item() + y.item())"]


@pytest.mark.parametrize(
    "code",
    [
        "@torch.compile\ndef f():\n    torch.micro()\n",
        "@torch.compile(dynamic=True)\ndef f():\n    torch.micro()\n",
        "def f():\n    torch.micro()\n\ng = torch.compile(f)\n",
        "def h():\n    torch.micro()\n\n@torch.compile\ndef f():\n    h()\n",
        "class N(torch.nn.Module):\n    def forward(self):\n        torch.micro()\n\nn = N()\nn.compile()\n",
        """
        class N(torch.nn.Module):
            def forward(self):
                self.part()
            def part(self):
                torch.micro()
        torch.compile(N())
        """,
    ],
)
def test_an_eager_rule_is_silent_in_compiled_code(code: str) -> None:
    assert said(code) == []


@pytest.mark.parametrize(
    "code",
    [
        "def f():\n    torch.micro()\n",
        "@torch.compile(disable=True)\ndef f():\n    torch.micro()\n",
        "@torch.compiler.disable\ndef h():\n    torch.micro()\n\n@torch.compile\ndef f():\n    h()\n",
        "def f():\n    torch.micro()\n\n@torch.compile\ndef g():\n    pass\n",
        "import re\n\ndef f():\n    torch.micro()\n    return re.compile(f)\n",
    ],
)
def test_an_eager_rule_speaks_elsewhere(code: str) -> None:
    assert said(code) == [("micro-call", "is small")]
