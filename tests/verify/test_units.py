"""The fixes of a program as units: which there are, what files become, and which of them get in each other's way."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from torchlint.config import ConfigError, Overrides
from torchlint.finding import Applicability, Edit, Finding, Fix, Result, Span, sort_key
from torchlint.registry import find
from torchlint.spoken import NO_RULE, Said
from torchlint.verify.units import Program, program

if TYPE_CHECKING:
    from pathlib import Path

    from torchlint.settings import Settings
    from torchlint.source import SourceFile

TRAIN = """\
import torch
from torch import nn


def train(model: nn.Module, loader, optimizer):
    total = 0.0
    for inputs, targets in loader:
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total


def validate(model: nn.Module, loader):
    model.eval()
    total = 0.0
    for inputs, targets in loader:
        total += nn.functional.mse_loss(model(inputs), targets).item()
    return total
"""
OTHER = """\
import torch


def noise(n: int):
    return torch.zeros(n).cuda()
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(TRAIN, encoding="utf-8")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "noise.py").write_text(OTHER, encoding="utf-8")
    (tmp_path / "broken.py").write_text("import torch\ndef f(:\n", encoding="utf-8")
    (tmp_path / "latin.py").write_bytes(b"import torch\nx = '\xff'\n")
    return tmp_path


def read(root: Path, **overrides: object) -> Program:
    return program(root, Overrides(**overrides), root)  # type: ignore[arg-type]  # as a test writes them


def test_a_unit_for_each_rule_and_file(root: Path) -> None:
    safe = read(root).units(unsafe=False)
    assert [(unit.name, unit.rule) for unit in safe] == [("TL201 sub/noise.py:5", "host-factory-then-move")]
    found = {unit.code: unit for unit in read(root).units(unsafe=True)}
    assert set(found) == {"TL201", "TL301", "TL302", "TL401"}
    assert found["TL301"].lines == (12,)
    assert found["TL301"].applicability == Applicability.UNSAFE


def test_notebooks_have_none(root: Path) -> None:
    cell = {"cell_type": "code", "metadata": {}, "outputs": [], "source": OTHER}
    (root / "n.ipynb").write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 4}))
    assert {unit.shown for unit in read(root).units(unsafe=True)} == {"train.py", "sub/noise.py"}


def test_select_and_the_configuration_count(root: Path) -> None:
    assert {unit.code for unit in read(root, select=("TL302",)).units(unsafe=True)} == {"TL302"}
    assert not read(root).unsafe_fixes
    (root / "torchlint.toml").write_text('unsafe-fixes = true\nignore = ["TL3"]\n', encoding="utf-8")
    configured = read(root)
    assert configured.unsafe_fixes
    assert {unit.code for unit in configured.units(unsafe=True)} == {"TL201", "TL401"}
    with pytest.raises(ConfigError, match="unknown rule"):
        read(root, select=("TL999",))


def test_the_files_that_units_change(root: Path) -> None:
    found = read(root)
    by_code = {unit.code: unit for unit in found.units(unsafe=True)}
    changed = found.with_units([by_code["TL201"], by_code["TL301"]])
    assert set(changed) == {"sub/noise.py", "train.py"}
    assert b"device=" in changed["sub/noise.py"]
    assert changed["train.py"] != TRAIN.encode()
    evaluation = TRAIN[TRAIN.index("def validate") :].encode()
    assert changed["train.py"].endswith(evaluation)
    assert found.with_units([]) == {}
    assert (root / "train.py").read_text(encoding="utf-8") == TRAIN
    diff = found.diff(by_code["TL201"])
    assert "--- a/sub/noise.py\n+++ b/sub/noise.py\n" in diff
    assert "-    return torch.zeros(n).cuda()\n" in diff


def test_what_is_said_of_a_line(root: Path) -> None:
    found = read(root)
    read_back, plain, outside = (str(root / "train.py"), 12), (str(root / "train.py"), 1), ("/nowhere.py", 1)
    said = found.said_of([read_back, plain, outside])
    assert said[read_back] == Said("TL301 item-in-train-loop", "warning")
    assert said[plain] == Said(silence=NO_RULE)
    assert outside not in said


def test_lines_of_a_copy_are_those_of_the_tree(root: Path) -> None:
    found = read(root)
    copy = f"/somewhere/arm/copy/{root.name}/train.py"
    assert found.shown(copy) == "train.py"
    assert found.said_of([(copy, 12)])[copy, 12].finding == "TL301 item-in-train-loop"
    assert found.shown("/usr/lib/train.py") == "/usr/lib/train.py"
    assert found.shown(str(root / "sub" / "noise.py")) == "sub/noise.py"


def test_fixes_that_have_nothing_to_do_with_each_other_do_not_conflict(root: Path) -> None:
    found = read(root)
    assert found.conflicts(found.units(unsafe=True)) == ()


LOOP, EVAL, GRAD = "item-in-train-loop", "item-in-eval-loop", "eval-without-no-grad"


def lint_as(rewrites: dict[str, tuple[str, str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let rules, by name, find a text and want another in its place, and nothing else."""

    def lint(source: SourceFile, settings: Settings, facts: object = None) -> Result:
        del facts
        found = []
        for rule in settings.rules:
            old, new = rewrites.get(rule, ("\0", ""))
            start = source.text.find(old)
            if start >= 0:
                span = Span(start, start + len(old))
                fix = Fix("write it otherwise", (Edit(span, new),), Applicability.SAFE)
                found.append(Finding(rule, find(rule).code, span, "", fix=fix))
        return Result(tuple(sorted(found, key=sort_key)))

    monkeypatch.setattr("torchlint.linter.lint", lint)
    monkeypatch.setattr("torchlint.fixer.lint", lint)


@pytest.mark.parametrize(
    ("rewrites", "conflicts"),
    [
        pytest.param({LOOP: ("1 + 2", "3"), EVAL: ("2", "4")}, [{"TL301", "TL302"}], id="they overlap"),
        pytest.param({LOOP: ("1 + 2", "3 + 2"), EVAL: ("2", "4")}, [], id="they overlap, and both have an effect"),
        pytest.param({LOOP: ("1 + 2", "3"), EVAL: ("x =", "y =")}, [], id="they are apart"),
        pytest.param(
            {LOOP: ("x = 1 + 2", "z = 0"), EVAL: ("+ 2", "- 2")}, [{"TL301", "TL302"}], id="one holds another"
        ),
        pytest.param(
            {LOOP: ("1 + 2", "3"), EVAL: ("2", "4"), GRAD: ("x =", "y =")}, [{"TL301", "TL302"}], id="two of three"
        ),
    ],
)
def test_conflicts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rewrites: dict[str, tuple[str, str]], conflicts: list[set[str]]
) -> None:
    (tmp_path / "code.py").write_text("import torch\nx = 1 + 2\n", encoding="utf-8")
    lint_as(rewrites, monkeypatch)
    found = read(tmp_path)
    all_units = found.units(unsafe=True)
    assert len(all_units) == len(rewrites)
    codes = [{name.split()[0] for name in pair} for pair in found.conflicts(all_units)]
    assert codes == conflicts
    assert found.conflicts(all_units[:1]) == ()
