"""What is run on the CPU with the numerics of CUDA, and that a mistake is found there."""

from __future__ import annotations

from dataclasses import replace

import as_cuda
import before_gpu
import pytest
import torch

from torchlint.registry import find
from torchlint.verify.workload import workload

SCALER = workload(find("gradscaler-step-syncs"))
SIZE = {"steps": 50, "batch": 64, "width": 128}


@pytest.fixture
def _determinism() -> object:
    before = torch.get_deterministic_debug_mode()
    yield
    torch.set_deterministic_debug_mode(before)


def test_switches_for_cuda_are_forced_and_pinning_is_left() -> None:
    source = b"a(fused=torch.cuda.is_available())\nb(pin_memory=torch.cuda.is_available())\n"
    found = before_gpu.as_on_cuda(source)
    assert found.startswith(b"a(fused=True)\nb(pin_memory=torch.cuda.is_available())\n")
    assert found.endswith(b"setup, run = as_cuda(setup, run)\n")


@pytest.mark.slow
def test_all_pairs_of_one_gpu_are_compared() -> None:
    found = {pair.rule.name for pair in before_gpu.chosen([])}
    assert {"optimizer-not-fused", "sort-for-topk"} <= found
    assert "data-parallel" not in found
    assert len(found) > 75


@pytest.mark.parametrize("rule", ["gradscaler-step-syncs", "generator-graph-in-discriminator-step"])
def test_a_smaller_size_is_in_both_files(rule: str) -> None:
    pair = workload(find(rule))
    numbers = before_gpu.smaller(pair.sizes["gpu"], 1)
    assert numbers != pair.sizes["gpu"]
    made = before_gpu.with_size(pair, "gpu", numbers)
    for source in (made.slow, made.fast):
        names: dict[str, dict[str, object]] = {"__name__": "workload"}  # type: ignore[dict-item]
        exec(compile(source, "workload.py", "exec"), names)  # noqa: S102 - as a process loads it
        assert names["WORKLOAD"]["sizes"]["gpu"] == numbers  # type: ignore[index]


def test_tf32_is_where_the_switches_allow_it(monkeypatch: pytest.MonkeyPatch) -> None:
    layer, x = torch.nn.Conv2d(3, 8, 3), torch.randn(2, 3, 9, 9, generator=torch.Generator().manual_seed(1))
    exact = layer(x)

    def off() -> float:
        with as_cuda.Tf32():
            return float((layer(x) - exact).detach().abs().max())

    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", True)
    assert 1e-5 < off() < 1e-2
    with torch.backends.cudnn.flags(enabled=False):
        assert off() == 0
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", False)
    assert off() == 0


def test_products_are_rounded_where_less_precision_is_asked_for() -> None:
    x = torch.randn(64, 64, generator=torch.Generator().manual_seed(1)).requires_grad_()
    before = torch.get_float32_matmul_precision()
    try:
        with as_cuda.Tf32():
            assert torch.equal(x @ x, x.matmul(x))
            torch.set_float32_matmul_precision("high")
            product = x @ x
    finally:
        torch.set_float32_matmul_precision(before)
    assert 1e-4 < float((product - x @ x).detach().abs().max()) < 1e-1
    product.sum().backward()
    assert x.grad is not None


@pytest.mark.usefixtures("_determinism")
def test_what_races_raises_or_is_off_in_its_last_bits() -> None:
    x = torch.rand(1000)
    with as_cuda.Racing():
        torch.set_deterministic_debug_mode("warn")
        off, again = x.cumsum(0), x.cumsum(0)
        torch.set_deterministic_debug_mode("error")
        with pytest.raises(RuntimeError, match="cumsum does not have a deterministic implementation"):
            x.cumsum(0)
        assert torch.equal(x.sum(), x.sum())
    assert not torch.equal(off, again)
    exact = x.cumsum(0)
    assert float((off - exact).abs().max()) < 1e-6 * float(exact.square().mean().sqrt())


@pytest.mark.slow
@pytest.mark.parametrize(("eps", "verdict"), [(b"", "same-within-class"), (b", eps=1e-7", "wrong")])
def test_a_fused_optimizer_is_compared_fused_and_a_wrong_one_is_found(eps: bytes, verdict: str) -> None:
    pair = before_gpu.with_size(SCALER, "gpu", SIZE)
    switch = b"fused=torch.cuda.is_available()"
    assert switch in pair.fast
    fast = pair.fast.replace(switch, switch + eps)
    row = before_gpu.compared(replace(pair, fast=fast, sizes={"gpu": SIZE}), "gpu", 1, 120.0)
    assert row.verdict == verdict, row.reason
    assert row.good is (verdict != "wrong")
    assert row.rule in before_gpu.line(row)
