"""`fix --verified`: what is proven is written, into files that are still those that were measured, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from torchlint import userfolder, verified
from torchlint.cli import torchlint
from torchlint.config import Overrides
from torchlint.verified import lookup
from torchlint.verify import command, units
from torchlint.verify.ablation import Action, Judgement
from torchlint.verify.arms import Failure
from torchlint.verify.program import Found
from torchlint.verify.proof import _write

if TYPE_CHECKING:
    from pathlib import Path

    from torchlint.verify.units import Program, Unit

pytestmark = pytest.mark.slow

TRAIN = """\
import torch
from torch import nn


def weigh(losses: torch.Tensor, valid: torch.Tensor):
    return sum(losses * valid) / 8


def train(model, loader, optimizer):
    for inputs, targets, valid in loader:
        losses = nn.functional.mse_loss(model(inputs), targets, reduction="none").mean(1)
        loss = weigh(losses, valid)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Linear(8, 8).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    batch = (torch.randn(200, 8, device=device), torch.randn(200, 8, device=device), torch.ones(200, device=device))
    train(model, (batch for _ in range(100000)), optimizer)


if __name__ == "__main__":
    main()
"""
RULE, LINE = "builtin-reduction-on-tensor", "return sum(losses * valid) / 8"
OTHER = """\
import torch


def noise(n: int):
    return torch.zeros(n).cuda()
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(TRAIN, encoding="utf-8")
    (tmp_path / "other.py").write_text(OTHER, encoding="utf-8")
    return tmp_path


def read(root: Path) -> tuple[Program, Unit, Unit]:
    found = units.program(root, Overrides(), root)
    by_code = {unit.code: unit for unit in found.units(unsafe=True)}
    return found, by_code["TL902"], by_code["TL201"]


def one_way(kept: tuple[Unit, ...], *others: Unit, action: Action = "leave", verdict: str = "same") -> Found:
    """What one way in has found: these units are proven, the others not."""
    judgements = tuple(Judgement(unit.name, "keep", "faster") for unit in kept)
    judgements += tuple(Judgement(unit.name, action, action) for unit in others)
    numerics = {unit.name: {"class": "exact", "verdict": "same", "reason": ""} for unit in kept}
    numerics |= {unit.name: {"class": "exact", "verdict": verdict, "reason": ""} for unit in others}
    return Found(units=(*kept, *others), kept=kept, judgements=judgements, numerics=numerics)


def test_what_is_proven_is_written_and_the_rest_named(root: Path) -> None:
    found, reduction, made = read(root)
    said, good = _write([one_way((reduction,), made)], found)
    assert good
    assert said == "wrote train.py: TL902 train.py:6; not proven, and not written: TL201 other.py:5"
    assert (root / "train.py").read_text(encoding="utf-8") == TRAIN.replace(
        "sum(losses * valid)", "(losses * valid).sum(0)"
    )
    assert (root / "other.py").read_text(encoding="utf-8") == OTHER


def test_nothing_proven_is_nothing_written(root: Path) -> None:
    found, reduction, made = read(root)
    said, good = _write([one_way((), reduction, made)], found)
    assert good
    assert said.startswith(
        "nothing was written: no fix was proven; not proven, and not written: TL201 other.py:5, TL902"
    )
    assert (root / "train.py").read_text(encoding="utf-8") == TRAIN


@pytest.mark.parametrize("change", ["other text", "gone"])
def test_of_files_that_changed_meanwhile_none_is_written(root: Path, change: str) -> None:
    found, reduction, made = read(root)
    if change == "gone":
        (root / "other.py").unlink()
    else:
        (root / "other.py").write_text(OTHER + "# mine\n", encoding="utf-8")
    said, good = _write([one_way((reduction, made))], found)
    assert not good
    assert said == "nothing was written: other.py: changed while torchlint was working; not written"
    # What was proven together is not written by halves.
    assert (root / "train.py").read_text(encoding="utf-8") == TRAIN


@pytest.mark.skipif(sys.platform == "win32", reason="another notion of what is read-only")
def test_a_file_that_is_read_only(root: Path) -> None:
    found, reduction, _ = read(root)
    (root / "train.py").chmod(0o444)
    said, good = _write([one_way((reduction,))], found)
    assert (said, good) == ("train.py: the file is read-only; not written", False)


def test_of_several_ways_in_each_has_a_say(root: Path) -> None:
    found, reduction, made = read(root)
    both = [one_way((reduction,)), one_way((made,))]
    assert _write(both, found)[0].startswith("wrote other.py, train.py: TL201")


@pytest.mark.parametrize(
    "against",
    [
        pytest.param({"action": "drop"}, id="slower"),
        pytest.param({"verdict": "wrong"}, id="computes something else"),
        pytest.param({"verdict": "not-checked"}, id="not compared"),
    ],
)
def test_what_one_way_in_speaks_against_is_not_written(root: Path, against: dict[str, str]) -> None:
    found, reduction, made = read(root)
    ways = [one_way((reduction, made)), one_way((), made, **against)]  # type: ignore[arg-type]  # one of the words
    assert _write(ways, found)[0] == "wrote train.py: TL902 train.py:6; not proven, and not written: TL201 other.py:5"


def test_what_fails_in_one_way_in_is_not_written(root: Path) -> None:
    found, reduction, made = read(root)
    broken = one_way((), made)
    broken.failures[made.name] = Failure("error", "it breaks")
    assert "wrote train.py: TL902" in _write([one_way((reduction, made)), broken], found)[0]
    assert (root / "other.py").read_text(encoding="utf-8") == OTHER


def run(root: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "torchlint", "fix", "--verified", "--device", "cpu", *arguments]
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "200"}
    return subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=300, env=environment, check=False)


def test_unsafe_fixes_are_not_measured_unless_they_are_wanted(root: Path) -> None:
    (root / "other.py").unlink()
    done = run(root, "train.py")
    assert done.returncode == 0, done.stderr
    assert "nothing was run: no fix is safe; `--unsafe-fixes` measures 1 fix" in done.stdout
    assert "nothing was written: no fix was proven" in done.stdout
    assert done.stderr == ""
    assert (root / "train.py").read_text(encoding="utf-8") == TRAIN


def test_a_program_that_is_slow_is_made_faster(root: Path) -> None:
    """Python's `sum` goes over the 200 rows of a tensor one by one: several times the time of a step, on any CPU."""
    (root / "other.py").unlink()
    done = run(root, "--unsafe-fixes", "train.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "wrote train.py: TL902 train.py:6\n" in done.stdout
    assert "the kept fix: " in done.stdout
    assert (root / "train.py").read_text(encoding="utf-8") == TRAIN.replace(
        "sum(losses * valid)", "(losses * valid).sum(0)"
    )
    assert sorted(path.name for path in root.iterdir()) == ["train.py"]
    folder = userfolder.of_project(root)
    assert folder is not None
    known = lookup(verified.read(folder, root), "train.py", RULE, LINE, 0)
    assert known is not None
    assert (known.verdict, known.device_type, known.torch) == ("faster", "cpu", version("torch"))
    assert known.speedup is not None
    assert 1 < known.speedup.lo < known.speedup.ratio < known.speedup.hi


@pytest.mark.parametrize("given", [(), ("--no-cache",)])
def test_what_is_found_out_is_not_remembered_where_that_is_not_wanted(
    root: Path, monkeypatch: pytest.MonkeyPatch, given: tuple[str, ...]
) -> None:
    """What `verify` makes of it stands in test_proof."""
    seen: list[dict[str, Any]] = []

    def verify(options: dict[str, Any], *_: object, apply: bool) -> int:
        assert apply
        seen.append(options)
        return 0

    monkeypatch.setattr(command, "verify", verify)
    done = CliRunner().invoke(torchlint, ["fix", "--verified", "--unsafe-fixes", *given, str(root / "train.py")])
    assert (done.exit_code, done.output) == (0, "")
    assert [each["no_cache"] for each in seen] == [bool(given)]
