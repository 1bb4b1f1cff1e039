"""`torchlint new-rule` writes a rule that lacks only what its author knows."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from torchlint import __version__, scaffold
from torchlint.scaffold import ScaffoldError

ROOT = Path(__file__).parents[1]
NAME = "manual-gelu"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in ("rules", "fixtures"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    return tmp_path


def test_it_writes_module_page_and_fixtures(checkout: Path) -> None:
    written = scaffold.new_rule(checkout, NAME, "TL999", "kernels")
    assert [path.relative_to(checkout).as_posix() for path in written] == [
        "rules/manual_gelu.py",
        "rules/manual_gelu.md",
        "fixtures/manual_gelu/slow.py",
        "fixtures/manual_gelu/ok.py",
    ]
    for path in written:
        assert "TODO" in path.read_text()
    command = (sys.executable, "-m", "ruff", "check", "--config", ROOT / "pyproject.toml", "--no-cache", written[0])
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    page = written[1].read_text()
    assert page.startswith("# manual-gelu (TL999)\n\n- group: kernels\n- fix: none\n")
    assert f"- since: {__version__}\n" in page


@pytest.mark.parametrize(
    ("name", "code", "group", "message"),
    [
        ("ManualGelu", "TL999", "kernels", "name `ManualGelu` does not look like `item-in-train-loop`"),
        ("manual_gelu", "TL999", "kernels", "name `manual_gelu` does not look like"),
        ("manual-gelu", "X1", "kernels", "code `X1` does not look like `TL301`"),
        ("manual-gelu", "TL999", "Kernels", "group `Kernels` does not look like `sync`"),
        ("item-in-train-loop", "TL999", "sync", r"item-in-train-loop \(TL301\) exists"),
        ("manual-gelu", "TL301", "sync", r"item-in-train-loop \(TL301\) exists"),
    ],
)
def test_what_cannot_be_a_rule_is_refused(checkout: Path, name: str, code: str, group: str, message: str) -> None:
    with pytest.raises(ScaffoldError, match=message):
        scaffold.new_rule(checkout, name, code, group)
    assert not list(checkout.glob("*/[!_]*"))


def test_outside_a_checkout_it_writes_nothing(tmp_path: Path) -> None:
    with pytest.raises(ScaffoldError, match="run this at the top of a checkout"):
        scaffold.new_rule(tmp_path, NAME, "TL999", "kernels")
    assert not list(tmp_path.iterdir())


def test_it_overwrites_nothing(checkout: Path) -> None:
    page = checkout / "rules" / "manual_gelu.md"
    page.write_text("mine")
    with pytest.raises(ScaffoldError, match="exists"):
        scaffold.new_rule(checkout, NAME, "TL999", "kernels")
    assert page.read_text() == "mine"
    assert not (checkout / "rules" / "manual_gelu.py").exists()
