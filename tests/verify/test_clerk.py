"""What the process that has torch says of the machine: also of accelerators that are not measured."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from torchlint.verify.inside import clerk


def probed() -> tuple[bool, str]:
    said = clerk._probe({})  # noqa: SLF001 - what answers the command
    return said["cuda"], said["why"]


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@pytest.mark.skipif(not hasattr(torch, "accelerator"), reason="torch 2.6 brought it")
@pytest.mark.parametrize("kind", ["mps", "xpu", "npu"])
def test_another_accelerator_is_named_and_not_taken_for_cuda(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    device = SimpleNamespace(type=kind)
    fake = SimpleNamespace(is_available=lambda: True, current_accelerator=lambda: device)
    monkeypatch.setattr(torch, "accelerator", fake)
    found, why = probed()
    assert not found
    assert why.endswith(f"; there is an accelerator of type `{kind}`, which is not measured yet")


def test_rocm_is_not_taken_for_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.version, "hip", "7.2", raising=False)
    found, why = probed()
    assert not found
    assert "is built for ROCm 7.2, which is not measured yet" in why


def test_without_any_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = SimpleNamespace(is_available=lambda: False)
    monkeypatch.setattr(torch, "accelerator", fake, raising=False)
    found, why = probed()
    assert not found
    assert "accelerator" not in why
