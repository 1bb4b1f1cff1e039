"""What the process that has torch says of the machine: also of accelerators that are not NVIDIA's."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from torchlint.verify.inside import clerk


def probed() -> tuple[bool, str, str]:
    said = clerk._probe({})  # noqa: SLF001 - what answers the command
    return said["cuda"], said["why"], said["accelerator"]


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)


@pytest.mark.skipif(not hasattr(torch, "accelerator"), reason="torch 2.6 brought it")
@pytest.mark.parametrize("kind", ["mps", "xpu", "npu"])
def test_another_accelerator_is_named_and_not_taken_for_cuda(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    device = SimpleNamespace(type=kind)
    fake = SimpleNamespace(is_available=lambda: True, current_accelerator=lambda: device)
    monkeypatch.setattr(torch, "accelerator", fake)
    monkeypatch.setattr(torch.xpu, "get_device_name", lambda: "Arc", raising=False)
    found, why, accelerator = probed()
    assert (found, accelerator) == (False, kind)
    assert why.endswith(f"; there is an accelerator of type `{kind}`")


@pytest.mark.parametrize(("kind", "name"), [("xpu", "Arc"), ("mps", None)])
def test_before_torch_knew_of_accelerators_each_is_asked(
    kind: str, name: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(torch, "accelerator", raising=False)
    there = {"is_available": lambda: True, "get_device_name": (lambda: name) if name else None}
    for other in ("xpu", "mps"):
        fake = SimpleNamespace(**there) if other == kind else SimpleNamespace(is_available=lambda: False)
        monkeypatch.setattr(torch, other, fake)
    said = clerk._probe({})  # noqa: SLF001 - as above
    assert said["accelerator"] == kind
    assert said["name"] == (name or said["processor"])


def test_rocm_is_not_taken_for_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.version, "hip", "7.2", raising=False)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda: "MI300X")
    found, why, accelerator = probed()
    assert (found, accelerator) == (False, "rocm")
    assert why.endswith("is built for ROCm 7.2")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    found, why, accelerator = probed()
    assert (found, accelerator) == (False, "")
    assert why.endswith("is built for ROCm 7.2, and finds no device")


def test_without_any_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = SimpleNamespace(is_available=lambda: False)
    monkeypatch.setattr(torch, "accelerator", fake, raising=False)
    found, why, accelerator = probed()
    assert (found, accelerator) == (False, "")
    assert "accelerator" not in why
