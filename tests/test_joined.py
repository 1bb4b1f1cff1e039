"""Findings alike within one definition are reported as one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from torchlint.cli import run

NET = """\
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))
        self.b = nn.Sequential(nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8))  # torchlint: ignore[TL501]
        self.c = nn.Sequential(nn.Conv2d(8, 8, 3), nn.BatchNorm2d(8))
        self.d = nn.Sequential(nn.Conv1d(8, 8, 3), nn.BatchNorm1d(8))

    def forward(self, x):
        return self.d(self.c(self.b(self.a(x))))


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))

    def forward(self, x):
        return self.a(x)


block = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))
"""
Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.py").write_text(NET)
    return tmp_path


def found(capsys: Capture, *options: str) -> list[dict[str, Any]]:
    run(["check", "--select", "TL501", "--output-format", "json", *options])
    said: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return said


def test_layers_of_one_network_are_one_finding(capsys: Capture) -> None:
    for _ in range(2):  # the second time from the cache
        net, head, block = found(capsys)
        assert net["message"] == ("the following `BatchNorm2d` cancels the bias of this `Conv2d` (and 2 more in `Net`)")
        assert [place["location"]["row"] for place in net["places"]] == [9, 10]
        assert len(net["fix"]["edits"]) == 3
        assert (head["location"]["row"], head["places"]) == (19, [])
        assert (block["location"]["row"], block["places"]) == (25, [])


def test_a_comment_suppresses_one_place(folder: Path, capsys: Capture) -> None:
    (folder / "net.py").write_text(NET.replace("  # torchlint: ignore[TL501]", ""))
    assert [place["location"]["row"] for place in found(capsys)[0]["places"]] == [8, 9, 10]


def test_ignores_are_added_to_each_place(folder: Path, capsys: Capture) -> None:
    assert run(["check", "--select", "TL501", "--add-ignore"]) == 0
    assert (folder / "net.py").read_text().count("# torchlint: ignore[") == 6
    assert found(capsys) == []


def test_all_places_are_fixed(folder: Path, capsys: Capture) -> None:
    run(["check", "--select", "TL501", "--fix", "--unsafe-fixes"])
    capsys.readouterr()
    assert (folder / "net.py").read_text().count("bias=False") == 5
    assert found(capsys) == []


def test_the_other_places_are_named_on_a_terminal(capsys: Capture) -> None:
    run(["check", "--select", "TL501"])
    assert "= so are lines 9 and 10\n" in capsys.readouterr().out
