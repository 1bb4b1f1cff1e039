"""What `check` says of lines that wait, and why it is silent where it is."""

from __future__ import annotations

from textwrap import dedent

import pytest

from torchlint import spoken
from torchlint.facts import NOTHING
from torchlint.linter import lint
from torchlint.registry import all_rules
from torchlint.settings import Settings
from torchlint.source import SourceFile
from torchlint.spoken import NO_RULE, Said, Statements

TRAIN = dedent(
    """\
    import torch
    from torch import nn


    def train(model: nn.Module, loader, optimizer, device):
        history = []
        for step, (inputs, targets) in enumerate(loader):
            out = model(
                inputs,
            )
            loss = nn.functional.cross_entropy(out, targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            history.append(
                loss.item()
            )
            if step % 100 == 0:
                print(loss.item())
            total = len(history)
        return history
    """
)


def said(text: str, *lines: int) -> dict[int, Said]:
    source, settings = _source(text)
    return spoken.said_of(source, settings, NOTHING, lint(source, settings).findings, lines)


def _source(text: str) -> tuple[SourceFile, Settings]:
    return SourceFile("train.py", text), Settings(rules=tuple(rule.name for rule in all_rules()))


def test_a_line_that_is_named_has_its_rule_and_severity() -> None:
    assert said(TRAIN, 16)[16] == Said("TL301 item-in-train-loop", "warning")


def test_all_lines_of_the_statement_that_is_named_are() -> None:
    assert said(TRAIN, 15)[15].finding == said(TRAIN, 17)[17].finding == "TL301 item-in-train-loop"


def test_a_line_without_a_finding_has_the_reason() -> None:
    silent = said(TRAIN, 19)[19]
    assert silent.finding == ""
    assert "TL301 item-in-train-loop: this runs only now and then (rare)" in silent.silence


def test_where_no_rule_looks_it_says_so() -> None:
    assert said(TRAIN, 20)[20] == Said(silence=NO_RULE)


def test_what_is_about_something_else_is_no_name_of_a_wait() -> None:
    text = "import torch\n\nmask = torch.ones(3, 3)\nattention = torch.softmax(mask @ mask.T, -1) @ mask\n"
    source, settings = _source(text)
    findings = [found for found in lint(source, settings).findings if not spoken.is_about_waiting(found.rule)]
    if not findings:
        pytest.skip("no rule names this line any more")
    line = source.position(findings[0].span.start)[0]
    assert said(text, line)[line].silence


def test_what_is_named_as_waiting_stands_with_all_of_its_lines() -> None:
    source, settings = _source(TRAIN)
    (named,) = spoken.named(source, lint(source, settings).findings)
    assert (named.line, named.rows, named.finding, named.severity) == (
        16,
        (15, 16, 17),
        "TL301 item-in-train-loop",
        "warning",
    )


def test_the_lines_of_a_statement() -> None:
    statements = Statements(TRAIN)
    assert statements.around(9) == {8, 9, 10}
    assert statements.around(18) == {18}, "of a statement with a body its head"
    assert statements.around(19) == {19}
    assert statements.around(99) == {99}


def test_a_text_that_is_no_python_has_lines() -> None:
    assert Statements("print 'old'").around(1) == {1}


@pytest.mark.parametrize(
    ("rule", "about"),
    [
        ("item-in-train-loop", True),
        ("host-factory-then-move", True),
        ("gc-collect-in-loop", False),
        ("unfused-rmsnorm", False),
    ],
)
def test_rules_about_waiting(rule: str, about: bool) -> None:  # noqa: FBT001 - a parameter
    assert spoken.is_about_waiting(rule) == about
