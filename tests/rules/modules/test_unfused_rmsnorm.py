"""TL509: a root mean square norm that is written as a formula is flagged, and what looks alike is not."""

from __future__ import annotations

import textwrap

import pytest
import torch
from laws import check_snippet

RULE = "unfused-rmsnorm"
MARK = "  # <- unfused-rmsnorm"


def function(*lines: str, top: str = "") -> str:
    body = textwrap.indent("\n".join(lines), " " * 4)
    return (
        "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\nEPS = 1e-6\n\n\n"
        f"{top}def norm(x: torch.Tensor, y, w, eps):\n{body}\n"
    )


@pytest.mark.parametrize(
    "lines",
    [
        ("return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)" + MARK,),
        ("return torch.rsqrt(1e-6 + (x * x).mean(dim=-1, keepdim=True)) * x" + MARK,),
        ("return x * (torch.mean(x**2, -1, True) + EPS).rsqrt() * w" + MARK,),
        ("return w * (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1))" + MARK,),
        ("return x * torch.rsqrt(torch.mean(torch.pow(x, 2), dim=(-1,), keepdim=True) + eps)" + MARK,),
        (
            "x = x.to(torch.float32)",
            "variance = x.pow(2).mean(-1, keepdim=True)",
            "x = x * torch.rsqrt(variance + eps)" + MARK,
            "return w * x",
        ),
        ("variance = x.float().pow(2).mean(-1, keepdim=True)", "return x * torch.rsqrt(variance + eps)" + MARK),
        ("root = torch.rsqrt((x**2).mean(-1, keepdim=True) + eps)", "return x * root" + MARK),
        ("return x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + eps)" + MARK,),
        ("return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps.abs())" + MARK,),
    ],
)
def test_a_norm_is_flagged_however_it_is_written(lines: tuple[str, ...]) -> None:
    check_snippet(function(*lines), RULE)


@pytest.mark.parametrize(
    "lines",
    [
        ("return x * torch.rsqrt(x.pow(2).mean(1, keepdim=True) + eps)",),
        ("return x * torch.rsqrt(x.pow(2).mean(keepdim=True) + eps)",),
        ("return x * torch.rsqrt(x.pow(2).mean(-1) + eps)",),
        ("return x * torch.rsqrt(x.pow(2).sum(-1, keepdim=True) + eps)",),
        ("return x * torch.rsqrt(x.pow(3).mean(-1, keepdim=True) + eps)",),
        ("return x * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + eps)",),
        ("return (x - y) * torch.rsqrt((x - y).pow(2).mean(-1, keepdim=True) + eps)",),
        ("v = x.pow(2).mean(-1, keepdim=True)", "x = x + y", "return x * torch.rsqrt(v + eps)"),
        ("r = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)", "return x * r, r"),
        ("return x * torch.rsqrt(x.var(-1, keepdim=True) + eps)",),
        ("return y * torch.rsqrt(x + eps)",),
    ],
)
def test_what_looks_alike_is_not(lines: tuple[str, ...]) -> None:
    check_snippet(function(*lines), RULE)


@pytest.mark.parametrize("top", ["@torch.jit.script\n", "@torch.compile\n", "norms = FusedRMSNorm\n\n\n"])
def test_whoever_fuses_it_is_left_alone(top: str) -> None:
    check_snippet(function("return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)", top=top), RULE)


def test_the_result_is_the_same() -> None:
    x, eps = torch.randn(5, 7), 1e-5
    slow = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)
    assert torch.allclose(slow, torch.nn.functional.rms_norm(x, x.shape[-1:], eps=eps), atol=1e-6)


def test_what_is_called_a_fallback_is_noted() -> None:
    code = function("return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)")
    check_snippet(code.replace("def norm(", "def norm_fallback(").replace("+ eps)", f"+ eps)  # <- {RULE}?"), RULE)


def test_what_a_decorator_fuses_by_its_name_is_noted() -> None:
    top = "from megatron.jit import jit_fuser\n\n\n@jit_fuser\n"
    line = f"return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps)  # <- {RULE}?"
    check_snippet(function(line, top=top), RULE)
