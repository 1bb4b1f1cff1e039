"""From one source to what is reported: prefilter, engine, ignores."""

from __future__ import annotations

from dataclasses import replace

import pytest
import toys

from torchlint import engine
from torchlint.finding import Applicability, Fault, Result
from torchlint.fixer import fix
from torchlint.linter import lint
from torchlint.settings import Settings
from torchlint.source import SourceFile
from torchlint.suppress import add_ignores

ALL = Settings(tuple(rule.name for rule in toys.RULES))


@pytest.fixture(autouse=True)
def _toys(monkeypatch: pytest.MonkeyPatch) -> None:
    toys.install(monkeypatch)


def run(text: str, settings: Settings = ALL) -> Result:
    return lint(SourceFile("a.py", text), settings)


def rules(text: str, settings: Settings = ALL) -> list[str]:
    return [finding.rule for finding in run(text, settings).findings]


def test_findings_are_sorted_and_carry_their_rule() -> None:
    text = "import torch\nx = torch.plain(torch.slow(1))\ny = x.item()\n"
    findings = run(text).findings
    assert [(finding.rule, finding.code) for finding in findings] == [
        ("plain-call", "TL302"),
        ("slow-call", "TL101"),
        ("host-read", "TL301"),
    ]
    assert text[findings[1].span.start : findings[1].span.end] == "torch.slow(1)"


def test_only_active_rules_report() -> None:
    text = "import torch\nx = torch.plain(torch.slow(1))  # torchlint: ignore[host-read]\n"
    assert rules(text, Settings(("plain-call",))) == ["plain-call"]
    assert rules(text, Settings(())) == []


def test_ignored_findings_are_dropped_and_unused_ignores_reported() -> None:
    text = "import torch\nx = torch.slow(1)  # torchlint: ignore[slow-call, plain-call]\n"
    (finding,) = run(text).findings
    assert finding.rule == "unused-ignore"


def test_ignores_are_judged_in_files_that_no_rule_looks_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "examine", None)
    assert rules("x = 1  # torchlint: ignore[TL101]\n") == ["unused-ignore"]


def test_a_crash_in_a_rule_keeps_the_other_findings() -> None:
    result = run("import torch\ntorch.crash()\ntorch.slow(1)\n")
    assert [finding.rule for finding in result.findings] == ["slow-call"]
    (diagnostic,) = result.diagnostics
    assert diagnostic.fault is Fault.INTERNAL
    assert "crashing-check" in diagnostic.message
    assert "a.py" in diagnostic.message


def test_a_crash_in_a_rule_does_not_keep_the_others_from_fixing() -> None:
    done = fix(SourceFile("a.py", "import torch\ntorch.crash()\ntorch.slow(1)\n"), ALL, Applicability.SAFE)
    assert done.text == "import torch\ntorch.crash()\ntorch.fast(1)\n"
    assert done.applied == (("slow-call", 1),)


def test_a_syntax_error_is_a_diagnostic_of_the_file() -> None:
    result = run("import torch\ntorch.slow(  # torchlint: ignore[plain-call]\n")
    assert result.findings == ()
    assert [diagnostic.code for diagnostic in result.diagnostics] == ["E999"]
    assert result.diagnostics[0].fault is Fault.FILE


def test_a_syntax_error_is_the_error_that_there_is_and_nothing_python_warns_of() -> None:
    text = "import torch\nslash = '\\d'\ntorch.slow(1 +)\n"
    (diagnostic,) = run(text).diagnostics
    assert diagnostic.span is not None
    assert SourceFile("a.py", text).position(diagnostic.span.start)[0] == 3


@pytest.mark.parametrize(
    "text", ["", "\n", "\f", "#", "# torchlint: ignore[slow-call]", "import torch", "import torch\n\x00", "\ud800torch"]
)
def test_odd_texts_do_not_crash(text: str) -> None:
    run(text)
    source = SourceFile("a.py", text)
    fix(source, ALL, Applicability.UNSAFE)
    add_ignores(source, run(text).findings, None)


def test_fixing_reaches_every_level_and_removes_ignores_that_became_unused() -> None:
    text = "import torch\nx = torch.slow(torch.slow(1))  # torchlint: ignore[plain-call]  # why\n"
    done = fix(SourceFile("a.py", text), ALL, Applicability.SAFE)
    assert done.text == "import torch\nx = torch.fast(torch.fast(1))  # why\n"
    assert done.applied == (("slow-call", 2), ("unused-ignore", 1))
    assert done.result == Result()


def test_a_fix_below_the_threshold_is_left() -> None:
    text = "import torch\nx = torch.slow(y.item())\n"
    safe = fix(SourceFile("a.py", text), ALL, Applicability.SAFE)
    assert safe.text == "import torch\nx = torch.fast(y.item())\n"
    unsafe = fix(SourceFile("a.py", text), ALL, Applicability.UNSAFE)
    assert unsafe.text == "import torch\nx = torch.fast(y)\n"


def test_a_function_that_the_configuration_names_has_to_be_there() -> None:
    text = "class A:\n    if x:\n        def f(self):\n            pass\ndef g():\n    pass\n"
    assert run(text, replace(ALL, hot=("A.f", "g"))).diagnostics == ()
    (diagnostic,) = run(text, replace(ALL, hot=("A.g", "g"))).diagnostics
    assert diagnostic.code == "E903"
    assert diagnostic.fault is Fault.FILE
    assert diagnostic.message == "`hot` in the configuration names `A.g`, which a.py does not define"
    (class_,) = run(text, replace(ALL, hot=("A",))).diagnostics
    assert "`A`" in class_.message


def test_what_libcst_does_not_reproduce_is_said_to_be_its_limit() -> None:
    result = run("import torch\n\n\ndef f():\n    torch.slow(1)\n# a comment that ends in a backslash \\\n")
    assert result.findings == ()
    (diagnostic,) = result.diagnostics
    assert (diagnostic.code, diagnostic.fault) == ("E999", Fault.FILE)
    assert diagnostic.message == "LibCST, which torchlint parses with, does not reproduce this file; not checked"
