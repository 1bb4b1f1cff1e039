"""The laws' helper sees each law broken: a rule that breaks it is planted, and must be caught."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import laws
import pytest

from torchlint import engine, registry
from torchlint.rule import Applicability, Call, Check, Flag, Interest, Method, Node, Replace, Rule

if TYPE_CHECKING:
    import libcst as cst

    from torchlint.semantics.context import Context

Plant = Callable[..., Rule]
SNIPPET = """
    import torch
    import torch.nn.functional as F
    from torch import nn


    def f(x):
        '''Two
        rows.'''
        y = x.item()  # <- planted
        return F.relu(torch.relu(y))
"""
Checked = Iterator[Flag]


@pytest.fixture(autouse=True)
def all_laws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold all laws on each snippet, whatever else is left out."""
    monkeypatch.delenv(laws.SOME_LAWS, raising=False)


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Iterator[Plant]:
    """Make one check the only rule there is."""

    def install(check: Check, *interests: Interest, fix: tuple[Applicability, ...] = ()) -> Rule:
        rule = Rule("planted", "TL301", "toys", "Toy.", "0.1.0", fix=fix)
        rule.on(*(interests or (Method("item"),)))(check)
        monkeypatch.setattr(registry, "all_rules", lambda: (rule,))
        monkeypatch.setattr(registry, "by_name", lambda: {"planted": rule, "TL301": rule})
        for cached in ("_pattern", "_interests"):  # they know rules by what they are called
            monkeypatch.setattr(engine, cached, getattr(engine, cached).__wrapped__)
        _forget()
        return rule

    yield install
    _forget()


def _forget() -> None:
    laws.lint.cache_clear()
    laws.fix.cache_clear()


def plain(node: cst.Call, _: Context) -> Checked:
    yield Flag(node, "flagged")


def check() -> None:
    laws.check_snippet(SNIPPET, "planted")


def test_a_good_rule_passes(plant: Plant) -> None:
    plant(plain)
    check()


def test_a_good_fix_passes(plant: Plant) -> None:
    def rule(node: cst.Call, _: Context) -> Checked:
        yield Flag(node, "flagged", "Mend it", (Replace(node, "(\n        x\n    )"),), Applicability.SAFE)

    plant(rule, fix=(Applicability.SAFE,))
    check()
    fixed = laws.unmarked(SNIPPET).replace("x.item()", "(\n            x\n        )")
    laws.check_snippet(SNIPPET, "planted", fixed=fixed)


def test_marks_are_exact(plant: Plant) -> None:
    plant(plain)
    with pytest.raises(AssertionError, match="not flagged"):
        laws.check_snippet(SNIPPET.replace("return", "z = 1  # <- planted\n        return"), "planted")
    with pytest.raises(AssertionError, match="flagged without need"):
        laws.check_snippet(laws.unmarked(SNIPPET), "planted")
    with pytest.raises(AssertionError, match="not flagged"):
        laws.check_snippet(SNIPPET.replace("<- planted", "<- planted, planted"), "planted")


def test_the_fixed_text_is_compared(plant: Plant) -> None:
    plant(plain)
    with pytest.raises(AssertionError, match="the fix makes"):
        laws.check_snippet(SNIPPET, "planted", fixed="other\n")


@pytest.mark.parametrize(
    ("code", "law"),
    [
        ("x.item(1)", "did not come to rest"),
        ("x.(item)", "would break"),
        ("x.item()", "the fix changes nothing"),
    ],
)
def test_law_1_fixes_come_to_rest(plant: Plant, code: str, law: str) -> None:
    def rule(node: cst.Call, _: Context) -> Checked:
        new = "x.item()" if node.args else code
        yield Flag(node, "flagged", "Mend it", (Replace(node, new),), Applicability.SAFE)

    plant(rule, fix=(Applicability.SAFE,))
    with pytest.raises(AssertionError, match=law):
        check()


def test_law_1_fixes_mend_what_was_reported(plant: Plant) -> None:
    def rule(node: cst.Call, _: Context) -> Checked:
        if node.args:
            yield Flag(node, "flagged still")
        else:
            yield Flag(node, "flagged", "Mend it", (Replace(node, "x.item(1)"),), Applicability.SAFE)

    plant(rule, fix=(Applicability.SAFE,))
    with pytest.raises(AssertionError, match="law 1: planted still reports what it fixed"):
        check()


def test_law_2_fixes_are_declared(plant: Plant) -> None:
    def rule(node: cst.Call, _: Context) -> Checked:
        yield Flag(node, "flagged", "Mend it", (Replace(node, "x"),), Applicability.UNSAFE)

    plant(rule, fix=(Applicability.SAFE,))
    with pytest.raises(AssertionError, match="law 2"):
        check()


def test_law_3_line_endings_change_nothing(plant: Plant) -> None:
    def rule(node: cst.Call, context: Context) -> Checked:
        new = "y" if "\r" in context.source.text else "z"
        yield Flag(node, "flagged", "Mend it", (Replace(node, new),), Applicability.SAFE)

    plant(rule, fix=(Applicability.SAFE,))
    with pytest.raises(AssertionError, match="law 3"):
        check()


@pytest.mark.parametrize(
    ("said", "variant"),
    [
        ("\r", "CR LF"),
        ("\t", "tabs"),
        ("\f", "form feed"),
        ("torch as torch_", "imports under other names"),
        ("import torch.nn as nn", "imports by the other statement"),
        ("from torch.nn import functional as F", "imports by the other statement"),
        ("(x.item())", "parentheses"),
        ("if True:", "in `if`"),
        ("try:", "in `try`"),
        ("nullcontext", "in `with`"),
        ("def wrapper():", "in a function"),
        ("class Wrapper", "in a method"),
        ("# another note", "comments and blank lines"),
        ("  # a note", "comments and blank lines"),
    ],
)
def test_law_4_findings_survive_rewriting(plant: Plant, said: str, variant: str) -> None:
    def rule(node: cst.Call, context: Context) -> Checked:
        if said not in context.source.text:
            yield Flag(node, "flagged")

    plant(rule)
    with pytest.raises(AssertionError, match=f"law 4, {variant}"):
        check()


def test_law_4_no_final_newline(plant: Plant) -> None:
    def rule(node: cst.Call, context: Context) -> Checked:
        if context.source.text.endswith(("\n", "\r")):
            yield Flag(node, "flagged")

    plant(rule)
    with pytest.raises(AssertionError, match="law 4, no final newline"):
        check()


def test_law_4_imports_through_modules(plant: Plant) -> None:
    def rule(node: cst.Call, context: Context) -> Checked:
        if "torch_fx" not in context.source.text:
            yield Flag(node, "flagged")

    plant(rule)
    with pytest.raises(AssertionError, match="law 4, imports through modules"):
        laws.check_snippet("from torch.fx import wrap\nwrap(1)\nx.item()  # <- planted\n", "planted")


def test_law_5_the_prefilter_drops_nothing(plant: Plant) -> None:
    plant(plain, Node("Call", (b"absent",)))
    with pytest.raises(AssertionError, match="law 5: the prefilter"):
        laws.obey_laws("import torch\nx.item()\n", laws.active("planted"))


def test_law_5_dispatch_finds_all(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    plant(plain, Call("torch.relu"))
    monkeypatch.setattr(engine, "candidates_of", lambda *_: ())
    with pytest.raises(AssertionError, match="law 5: the dispatch tables"):
        laws.obey_laws("import torch\ntorch.relu(x)\n", laws.active("planted"))


def test_law_8_a_crash_is_seen(plant: Plant) -> None:
    def rule(node: cst.Call, _: Context) -> Checked:
        yield Flag(node, f"{1 // 0}")

    plant(rule)
    with pytest.raises(AssertionError, match="ZeroDivisionError"):
        laws.obey_laws(laws.unmarked("import torch\nx.item()\n"), laws.active("planted"))


@pytest.mark.parametrize("message", ["ends.", "two\nrows", ""])
def test_messages_are_one_line_without_a_period(plant: Plant, message: str) -> None:
    def rule(node: cst.Call, _: Context) -> Checked:
        yield Flag(node, message)

    plant(rule)
    with pytest.raises(AssertionError):
        check()
