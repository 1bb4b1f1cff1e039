"""TL505: a softmax between the product of queries and keys and that with the values is flagged, if nothing else is."""

from __future__ import annotations

import textwrap

import pytest
from laws import check_snippet

RULE = "naive-attention"
MARK = "  # <- naive-attention"


def method(*lines: str, top: str = "") -> str:
    """A module whose `forward` does this."""
    body = textwrap.indent("\n".join(lines), " " * 8)
    return (
        "import math\nimport torch\nimport torch.nn.functional as F\nfrom torch import einsum, nn\n"
        f"from einops import rearrange\n{top}\n\n\n"
        "class Attention(nn.Module):\n"
        "    def __init__(self, heads, scale):\n        super().__init__()\n        self.scale = scale\n"
        "        self.drop = nn.Dropout(0.1)\n        self.attend = nn.Softmax(dim=-1)\n"
        "        self.softmax = nn.Softmax(-1)\n        self.over = nn.Softmax(dim=1)\n"
        "        self.temperature = nn.Parameter(torch.ones(heads, 1, 1))\n"
        "        self.keys = nn.Parameter(torch.ones(heads, 1, 1))\n\n"
        f"    def forward(self, q, k, v, mask, bias):\n{body}\n"
    )


@pytest.mark.parametrize(
    "lines",
    [
        ("return torch.softmax(q @ k.transpose(-2, -1), dim=-1) @ v" + MARK,),
        ("return F.softmax(torch.bmm(q, k.permute(0, 2, 1)), -1).bmm(v)" + MARK,),
        ("return nn.Softmax(dim=-1)(q.matmul(k.mT)) @ v" + MARK,),
        ("return self.attend(q @ k.mT / math.sqrt(8)) @ v" + MARK,),
        ("return self.softmax(self.scale * (q @ k.mT) + bias) @ v" + MARK,),
        (
            "k = k.permute(0, 2, 3, 1)",
            "w = torch.matmul(q, k)",
            "w = w.masked_fill(mask == 0, -1e9)",
            "if bias is not None:",
            "    w = w + bias",
            "w = self.drop(F.softmax(w.float(), dim=-1).type_as(q))" + MARK,
            "return torch.matmul(w, v)",
        ),
        (
            "w = q @ k.transpose(-1, -2)",
            "w *= self.scale",
            "w += bias.to(w.dtype)",
            "w.masked_fill_(mask, float('-inf'))",
            "w = w.softmax(-1)" + MARK,
            "if self.drop is not None:",
            "    w = self.drop(w)",
            "return w @ v",
        ),
        (
            "w = einsum('b h i d, b h j d -> b h i j', q, k) * self.scale",
            "w = torch.where(mask, w, -1e9).softmax(dim=-1)" + MARK,
            "return einsum('b h i j, b h j d -> b h i d', w, v)",
        ),
        (
            "w = torch.einsum('bct,bcs->bts', q * self.scale, k * self.scale)",
            "return torch.einsum('bts,bcs->bct', w.softmax(-1), v)" + MARK,
        ),
        (
            "q = q.view(8, 64, -1).permute(0, 2, 1)",
            "w = self.softmax(torch.bmm(q, k.view(8, 64, -1)))" + MARK,
            "return torch.bmm(v.view(8, 64, -1), w.permute(0, 2, 1))",
        ),
        ("return torch.bmm(F.softmax(torch.bmm(q, k.mT) * self.scale, dim=2), v)" + MARK,),
        ("return torch.bmm(q.bmm(k.mT).softmax(2), v)" + MARK,),
        ("w = torch.einsum('bqc,bkc->bqk', q, k)", "return F.softmax(w, 2) @ v" + MARK),
        ("return nn.Softmax(dim=2)(torch.bmm(q, k.mT)) @ v" + MARK,),
        ("return (F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT * 8).softmax(-1) @ v" + MARK,),
        ("return (F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT).div(0.1).softmax(-1) @ v" + MARK,),
        ("return (F.normalize(q, dim=-1) @ k.mT).softmax(-1) @ v" + MARK,),
    ],
)
def test_attention_is_flagged(lines: tuple[str, ...]) -> None:
    check_snippet(method(*lines), RULE)


@pytest.mark.parametrize(
    "lines",
    [
        ("w = (q @ k.mT).softmax(-1)", "return w @ v, w"),
        ("w = (q @ k.mT).softmax(-1)", "self.last = w", "return w @ v"),
        ("w = q @ k.mT", "self.last = w.mean()", "return w.softmax(-1) @ v"),
        ("w = (q @ k.mT).softmax(-1)", "return (w * mask) @ v"),
        ("w = (q @ k.mT).softmax(-1)", "return w @ v + w @ bias"),
        ("return (q @ k.mT).softmax(-2) @ v",),
        ("return self.over(q @ k.mT) @ v",),
        ("return (q @ k.mT).softmax(2) @ v",),
        ("return F.softmax(torch.bmm(q, k.mT).view(8, 4, 16, 16), dim=2) @ v",),
        ("w = einsum('bhqc,bhkc->bhqk', q, k)", "return w.softmax(2) @ v"),
        ("w = einsum('...qc,...kc->...qk', q, k)", "return w.softmax(2) @ v"),
        ("return (q @ k).softmax(-1) @ v",),
        ("return ((q @ k.mT) * self.temperature).softmax(-1) @ v",),
        ("return (q @ self.keys.mT).softmax(-1) @ v",),
        ("return (q @ k.mT + q @ bias.mT).softmax(-1) @ v",),
        ("return torch.tanh(q @ k.mT).softmax(-1) @ v",),
        ("w = torch.bmm(k, q.unsqueeze(2)).squeeze(2)", "return torch.bmm(F.softmax(w, -1).unsqueeze(1), v)"),
        ("q = q.view(8, 64, -1)", "return torch.bmm((torch.bmm(q, k.permute(0, 2, 1))).softmax(-1), v)"),
        ("q = rearrange(q, 'b (g c) h w -> b g c (h w)', g=8)", "return (q @ k.transpose(-2, -1)).softmax(-1) @ v"),
        (
            "q, k = F.normalize(q.flatten(2), dim=-1), k",
            "q = F.normalize(v.flatten(2))",
            "return (q @ k.mT).softmax(-1) @ v",
        ),
        ("return (F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT).softmax(-1) @ v",),
        (
            "q, u = q, F.normalize(k, dim=-1)",
            "k = F.normalize(q)",
            "u = F.normalize(v)",
            "return (k @ u.mT).softmax(-1) @ v",
        ),
        ("return (q.mT @ k).softmax(-1) @ v.mT",),
        ("return v @ (q @ k.mT).softmax(-1)",),
        ("return bias.softmax(-1) @ v",),
        ("w = einsum('b i d, b j d -> b i j', q, k).softmax(-1)", "return einsum('b i j, b i d -> b j d', w, v)"),
        ("w = einsum('b i d, d j -> b i j', q, k).softmax(-1)", "return einsum('b i j, b i j -> b', w, v)"),
    ],
)
def test_what_looks_alike_is_not(lines: tuple[str, ...]) -> None:
    check_snippet(method(*lines), RULE)


def test_who_knows_the_fused_kernel_is_left_alone() -> None:
    check_snippet(
        method(
            "if self.fused:",
            "    return F.scaled_dot_product_attention(q, k, v)",
            "return (q @ k.transpose(-2, -1)).softmax(dim=-1) @ v",
        ),
        RULE,
    )


def test_compiled_attention_is_left_alone() -> None:
    check_snippet(
        "import torch\n\n\n@torch.compile\ndef attend(q, k, v):\n    return (q @ k.mT).softmax(-1) @ v\n", RULE
    )
