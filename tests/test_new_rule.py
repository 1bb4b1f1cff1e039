"""`tools.new_rule` writes a rule that lacks only what its author knows."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import new_rule
import pytest
from new_rule import NewRuleError

from torchlint import __version__

ROOT = Path(__file__).parents[1]
NAME = "manual-gelu"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in ("rules", "fixtures"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    return tmp_path


def test_it_writes_module_page_and_fixtures(checkout: Path) -> None:
    written = new_rule.new_rule(checkout, NAME, "TL899", "optimizer")
    assert [path.relative_to(checkout).as_posix() for path in written] == [
        "rules/optimizer/manual_gelu.py",
        "rules/optimizer/manual_gelu.md",
        "fixtures/manual_gelu/slow.py",
        "fixtures/manual_gelu/fast.py",
        "fixtures/manual_gelu/ok.py",
    ]
    for path in written:
        assert "TODO" in path.read_text()
    command = (sys.executable, "-m", "ruff", "check", "--config", ROOT / "pyproject.toml", "--no-cache", written[0])
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    page = written[1].read_text()
    assert page.startswith("# manual-gelu (TL899)\n\n- group: optimizer\n- fix: none\n")
    assert f"- since: {__version__}\n" in page


@pytest.mark.parametrize(
    ("name", "code", "group", "message"),
    [
        ("ManualGelu", "TL899", "optimizer", "name `ManualGelu` does not look like `item-in-train-loop`"),
        ("manual_gelu", "TL899", "optimizer", "name `manual_gelu` does not look like"),
        ("manual-gelu", "X1", "optimizer", "code `X1` does not look like `TL301`"),
        ("manual-gelu", "TL899", "Optimizer", "group `Optimizer` does not look like `sync`"),
        ("item-in-train-loop", "TL899", "sync", r"item-in-train-loop \(TL301\) exists"),
        ("manual-gelu", "TL301", "sync", r"item-in-train-loop \(TL301\) exists"),
        ("manual-gelu", "TL399", "kernels", "codes that start with TL3 are those of the group `sync`"),
        (
            "manual-gelu",
            "TL399",
            "vectorise",
            "codes that start with TL3 are those of the group `sync`; those of `vectorise` with TL9",
        ),
    ],
)
def test_what_cannot_be_a_rule_is_refused(checkout: Path, name: str, code: str, group: str, message: str) -> None:
    with pytest.raises(NewRuleError, match=message):
        new_rule.new_rule(checkout, name, code, group)
    assert not list(checkout.glob("*/[!_]*"))


def test_outside_a_checkout_it_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(NewRuleError, match="run this at the top of a checkout"):
        new_rule.new_rule(tmp_path, NAME, "TL899", "optimizer")
    assert not list(tmp_path.iterdir())


def test_it_overwrites_nothing(checkout: Path) -> None:
    page = checkout / "rules" / "optimizer" / "manual_gelu.md"
    page.parent.mkdir()
    page.write_text("mine")
    with pytest.raises(NewRuleError, match="exists"):
        new_rule.new_rule(checkout, NAME, "TL899", "optimizer")
    assert page.read_text() == "mine"
    assert not (checkout / "rules" / "optimizer" / "manual_gelu.py").exists()


def catalogue(folder: Path) -> subprocess.CompletedProcess[str]:
    """The tests that every rule has to pass, for the new one, on a copy of the tree."""
    tests = [f"tests/test_{name}.py" for name in ("catalogue", "contract", "fixtures", "workloads")]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n0",
        "-p",
        "no:cacheprovider",
        "-m",
        "slow or not slow",
        *tests,
        "-k",
        f"{NAME} or test_every_rule_has",
    ]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_filled_in_it_passes_the_tests_of_every_rule(tmp_path: Path) -> None:
    """The copy is laid out as a wheel is, so that its own rules are found and not those of the checkout."""
    ignored = shutil.ignore_patterns("__pycache__")
    package = tmp_path / "torchlint"
    for name, target in (
        ("torchlint", package),
        ("rules", package / "rules"),
        ("fixtures", package / "fixtures"),
        ("tests", tmp_path / "tests"),
    ):
        shutil.copytree(ROOT / name, target, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    module, page, slow, fast, _ = new_rule.new_rule(package, NAME, "TL899", "optimizer")
    unfilled = catalogue(tmp_path)
    assert unfilled.returncode == 1
    assert f"SUBFAILED[slow_is_flagged] tests/test_contract.py::test_contract[{NAME}]" in unfilled.stdout

    fill(module, 'Method("TODO")', 'Method("erf")')
    fill(module, "context.kind(call) is not None", "context.loop(call) is not None")
    fill(module, "TODO: what the line does to the device, in one sentence.", "Four kernels run where one would do.")
    fill(
        page,
        "TODO: the summary of rules/optimizer/manual_gelu.py, word for word.",
        "Four kernels run where one would do.",
    )
    fill(page, "import torch  # TODO: an example  #", "import torch\n\nfor x in torch.ones(3):\n    x.erf()  #")
    fill(page, "import torch  # TODO: the same, fast", "import torch\n\nx = torch.nn.functional.gelu(torch.ones(3))")
    fill(
        slow,
        "    return x * 2",
        "    rows = []\n    for row in x:\n        rows.append(row.erf())\n    return torch.stack(rows)",
    )
    fill(fast, "return x * 2", "return x.erf()")
    filled = catalogue(tmp_path)
    assert filled.returncode == 0, filled.stdout


def fill(path: Path, todo: str, text: str) -> None:
    before = path.read_text()
    assert todo in before
    path.write_text(before.replace(todo, text))


def test_as_a_command(checkout: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(checkout)
    asked = ["slow-thing", "--code", "TL399", "--group", "sync"]
    assert new_rule.main(asked) == 0
    written = capsys.readouterr().out.split()
    assert Path("rules", "sync", "slow_thing.py") in map(Path, written)
    assert all((checkout / path).is_file() for path in written)
    assert new_rule.main(asked) == 2
    assert capsys.readouterr().err.endswith("exists\n")
    assert new_rule.main(["Bad_Name", *asked[1:]]) == 2
    assert "`Bad_Name` does not look like" in capsys.readouterr().err
