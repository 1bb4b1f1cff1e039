"""A read through a function that does nothing else is said where that is called, once."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING

import pytest
from laws import check_snippet

from torchlint.cli import run

if TYPE_CHECKING:
    from pathlib import Path

LOOP = """
for x in loader:
    x = x.cuda()
    loss = model(x).mean()
    loss.backward()
    optimizer.step()
    log["loss"] = {read}
"""


@pytest.mark.parametrize(
    ("helper", "read", "rule"),
    [
        ("def to_np(t):\n    return t.detach().cpu().numpy()", "to_np(loss)", "bulk-d2h-in-hot-loop"),
        ("to_np = lambda t: t.detach().cpu().numpy()", "to_np(loss)", "bulk-d2h-in-hot-loop"),
        ("to_np = lambda t: t.detach().cpu().numpy()", "to_np(anything())", "bulk-d2h-in-hot-loop"),
        ("def number(t):\n    return t.item()", "number(loss)", "item-in-train-loop"),
        ("def number(t):\n    return t.item()", "number(anything())", ""),
        ("to_np = lambda t: t.cpu() if isinstance(t, torch.Tensor) else t", "to_np(anything())", ""),
        ("to_np = lambda t: t.cpu() if isinstance(t, torch.Tensor) else t", "to_np(loss)", "bulk-d2h-in-hot-loop"),
        ("to_np = lambda t: t.detach().cpu().numpy()", "to_np(torch.ones(3))", ""),
    ],
)
def test_of_the_same_file(helper: str, read: str, rule: str) -> None:
    mark = f"  # <- {rule}" if rule else ""
    for name in ("bulk-d2h-in-hot-loop", "item-in-train-loop"):
        code = f"import torch\nimport numpy\n{helper}\n{LOOP.format(read=read + (mark if name == rule else ''))}"
        check_snippet(code, name)


def test_no_fix_of_what_another_function_reads() -> None:
    code = """
        import torch
        def number(t):
            return t.item()
        total = 0.0
        for x in loader:
            loss = model(x.cuda()).mean()
            loss.backward()
            optimizer.step()
            total += number(loss)  # <- item-in-train-loop
        print(total)
    """
    assert all(finding.fix is None for finding in check_snippet(code, "item-in-train-loop").findings)


def test_a_name_that_is_bound_again_is_another_function() -> None:
    code = """
        import torch
        to_np = lambda t: t.detach().cpu().numpy()
        if debug:
            to_np = str
        for x in loader:
            loss = model(x.cuda()).mean()
            loss.backward()
            optimizer.step()
            log["loss"] = to_np(loss)
    """
    check_snippet(code, "bulk-d2h-in-hot-loop")


@pytest.mark.parametrize(
    ("import_", "call"),
    [
        ("from tools.arrays import to_np", "to_np"),
        ("from tools import to_np", "to_np"),
        ("from tools import arrays as ptu", "ptu.to_np"),
        ("import tools.arrays", "tools.arrays.to_np"),
    ],
)
def test_of_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], import_: str, call: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "torchlint.toml").touch()
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/__init__.py").write_text("from .arrays import to_np\n")
    (tmp_path / "tools/arrays.py").write_text("import torch\n\n\ndef to_np(t):\n    return t.detach().cpu().numpy()\n")
    (tmp_path / "train.py").write_text(f"import torch\n{import_}\n{LOOP.format(read=f'{call}(loss)')}")
    run(["check", "--select", "TL305", "--output-format", "json", "."])
    (finding,) = json.loads(capsys.readouterr().out)
    assert finding["filename"] == "train.py"
    assert finding["message"].startswith(f"`{call}(loss)` copies the tensor")


@pytest.mark.parametrize("body", ["t.item()", "t.cpu() if isinstance(t, torch.Tensor) else t", "t.cpu()"])
def test_it_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], body: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "torchlint.toml").touch()
    (tmp_path / "tools.py").write_text(f"import torch\n\n\ndef f(t):\n    return {body}\n")
    (tmp_path / "train.py").write_text(f"import torch\nfrom tools import f\n{LOOP.format(read='f(loss)')}")
    run(["check", "--select", "TL301,TL305", "--output-format", "json", "."])
    (finding,) = json.loads(capsys.readouterr().out)
    assert finding["filename"] == "train.py"


def test_a_value_by_value_in_what_logs_is_a_note_each() -> None:
    """Where nobody sees how often: of one number it is said, of a result that is collected it is not."""
    code = textwrap.dedent("""
        import torch
        to_np = lambda t: t.detach().cpu().numpy()
        class Agent:
            def update(self, out, found):
                found["mean"] = to_np(torch.mean(out))  # <- bulk-d2h-in-hot-loop?
                found["std"] = to_np(out.std())  # <- bulk-d2h-in-hot-loop?
                found["all"] = to_np(out)
                return found
    """)
    check_snippet(code, "bulk-d2h-in-hot-loop")
