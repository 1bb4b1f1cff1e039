"""What a path tells about a file, and what follows from it."""

from __future__ import annotations

from pathlib import Path

import pytest
from laws import active

from torchlint.cli import run
from torchlint.config import Configs, Overrides
from torchlint.linter import lint
from torchlint.role import Role, role_of
from torchlint.source import SourceFile

SLOW = "import torch\n\n\ndef f(x):  # torchlint: hot[per-batch]\n    return torch.zeros(3).to(x.device)\n"


@pytest.mark.parametrize(
    ("path", "role"),
    [
        ("train.py", Role.CODE),
        ("latest/net.py", Role.CODE),
        ("contests/net.py", Role.CODE),
        ("attestation.py", Role.CODE),
        ("test.py", Role.CODE),
        ("test/net.py", Role.CODE),
        ("tests/net.py", Role.TEST),
        ("pkg/tests/deep/net.py", Role.TEST),
        ("pkg/conftest.py", Role.TEST),
        ("torch/testing/make.py", Role.TEST),
        ("src/pkg/test_utils/scripts/test_run.py", Role.TEST),
        ("utils/testing_utils.py", Role.TEST),
        ("test_net.py", Role.TEST_BY_NAME),
        ("pkg/net_test.py", Role.TEST_BY_NAME),
        ("tools/export_onnx.py", Role.EXPORTING),
        ("visualise/net.py", Role.CODE),
        ("tools/vis.py", Role.SHOWING),
        ("tools/model2onnx.py", Role.EXPORTING),
        ("vision/transforms/shapes.py", Role.TRANSFORMS),
        ("vision/transforms.py", Role.CODE),
        ("tests/transforms/shapes.py", Role.TEST),
        ("revise.py", Role.CODE),
    ],
)
def test_role_of(path: str, role: Role) -> None:
    assert role_of(path) is role


@pytest.mark.parametrize(
    ("role", "text", "count"),
    [
        (Role.CODE, SLOW, 1),
        (Role.CODE, f"{SLOW}\n\ndef test_f():\n    f(0)\n", 1),
        (Role.TEST, SLOW, 0),
        (Role.TEST_BY_NAME, SLOW, 1),
        (Role.TEST_BY_NAME, f"{SLOW}\n\ndef test_f():\n    f(0)\n", 0),
        (Role.TEST_BY_NAME, f"import pytest\n{SLOW}", 0),
        (Role.SHOWING, SLOW, 1),
    ],
)
def test_tests_are_not_checked(role: Role, text: str, count: int) -> None:
    assert len(lint(SourceFile("x.py", text), active("host-factory-then-move", role=role)).findings) == count


def test_an_ignore_in_a_test_is_not_called_unused() -> None:
    text = SLOW.replace("device)", "device)  # torchlint: ignore[TL201]").replace("zeros", "relu")
    assert lint(SourceFile("x.py", text), active("unused-ignore", "host-factory-then-move")).findings
    settings = active("unused-ignore", "host-factory-then-move", role=Role.TEST)
    assert not lint(SourceFile("x.py", text), settings).findings


def test_the_path_counts_from_the_root_of_the_project(tmp_path: Path) -> None:
    project = tmp_path / "tests" / "project"
    project.mkdir(parents=True)
    (project / "torchlint.toml").touch()
    config = Configs(Overrides(), project).for_directory(project)
    assert config.settings_for(project / "net.py").role is Role.CODE
    assert config.settings_for(project / "tests" / "net.py").role is Role.TEST
    assert config.settings_for(tmp_path / "tests" / "net.py").role is Role.CODE  # beside it: only its name counts
    assert config.settings_for(tmp_path / "conftest.py").role is Role.TEST


def test_tests_can_be_included(tmp_path: Path) -> None:
    (tmp_path / "torchlint.toml").write_text("include-tests = true")
    config = Configs(Overrides(), tmp_path).for_directory(tmp_path)
    assert config.settings_for(tmp_path / "tests" / "net.py").role is Role.CODE
    assert config.settings_for(tmp_path / "plot.py").role is Role.SHOWING
    config = Configs(Overrides(include_tests=False), tmp_path).for_directory(tmp_path)
    assert config.settings_for(tmp_path / "tests" / "net.py").role is Role.TEST


def test_the_same_content_elsewhere_is_not_taken_for_the_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The cache goes by content."""
    (tmp_path / "tests").mkdir()
    for path in ("tests/a.py", "b.py"):
        (tmp_path / path).write_text(SLOW)
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert run(["check", "tests", "--output-format", "concise"]) == 0
        assert capsys.readouterr().err == (
            "warning: these are tests, which are not checked; `--include-tests` checks them\n"
        )
        assert run(["check", ".", "--output-format", "concise"]) == 1
        shown, warned = capsys.readouterr()
        assert shown.startswith("b.py:5:12: TL201")
        assert "tests/a.py" not in shown
        assert warned == ""
        assert run(["check", "tests", "--include-tests", "--output-format", "concise"]) == 1
        assert capsys.readouterr().out.startswith("tests/a.py:5:12: TL201")
