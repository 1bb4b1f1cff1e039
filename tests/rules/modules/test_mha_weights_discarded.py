"""TL504: an `nn.MultiheadAttention` whose weights are thrown away is flagged; the fix asks for none."""

from __future__ import annotations

import pytest
import torch
from laws import check_snippet

RULE = "mha-weights-discarded"
MARK = "  # <- mha-weights-discarded"


def layer(call: str, mark: str = "", before: str = "", rest: str = "return y") -> str:
    return (
        f"import torch\nfrom torch import nn\n{before}\n\nclass Layer(nn.Module):\n"
        "    def __init__(self, width):\n        super().__init__()\n"
        "        self.attn = torch.nn.MultiheadAttention(width, 4)\n"
        "        self.many = nn.ModuleList([nn.MultiheadAttention(width, 4) for _ in range(2)])\n"
        "        self.other = Attention(width)\n\n"
        f"    def forward(self, q, k, v, mask, options, need):\n        {call}{mark}\n        {rest}\n"
    )


FIXES = {
    "y, _ = self.attn(q, k, v)": "y, _ = self.attn(q, k, v, need_weights=False)",
    "y, weights = self.attn(q, k, v)": "y, weights = self.attn(q, k, v, need_weights=False)",
    "y = self.attn(q, k, v)[0]": "y = self.attn(q, k, v, need_weights=False)[0]",
    "y = self.attn(q, k, v, need_weights=True)[0]": "y = self.attn(q, k, v, need_weights=False)[0]",
    "y = self.attn(q, k, v, mask, True)[0]": "y = self.attn(q, k, v, mask, False)[0]",
    "y = q + self.attn(query=q, key=k, value=v,)[0]": "y = q + self.attn(query=q, key=k, value=v, need_weights=False,)[0]",
    "y = self.attn(q, k, v); y = y[0]": "y = self.attn(q, k, v, need_weights=False); y = y[0]",
    "y = self.many[0](q, k, v)[0]": "y = self.many[0](q, k, v, need_weights=False)[0]",
    "y = [attn(q, k, v)[0] for attn in self.many]": "y = [attn(q, k, v, need_weights=False)[0] for attn in self.many]",
}


@pytest.mark.parametrize(("before", "after"), FIXES.items())
def test_weights_that_nothing_reads(before: str, after: str) -> None:
    check_snippet(layer(before, MARK), RULE, fixed=layer(after))


@pytest.mark.parametrize(
    "call",
    [
        "y, weights = self.attn(q, k, v); self.last = weights",
        "y, self.last = self.attn(q, k, v)",
        "y = self.attn(q, k, v)",
        "y = self.attn(q, k, v)[1]",
        "y = self.attn(q, k, v)[-2]",
        "y, _ = self.attn(q, k, v); print(_)",
        "y = self.attn(q, k, v); y = y[0] + y[1]",
        "y = self.attn(q, k, v, need_weights=False)[0]",
        "y = self.attn(q, k, v, need_weights=need)[0]",
        "y = self.attn(q, k, v, mask, need)[0]",
        "y = self.attn(q, k, v, **options)[0]",
        "y = self.other(q, k, v)[0]",
    ],
)
def test_weights_that_are_read_or_not_asked_for(call: str) -> None:
    check_snippet(layer(call), RULE)


@pytest.mark.parametrize("line", ["model.register_forward_hook(show)", "torch.autograd.grad(y, x, create_graph=True)"])
def test_files_that_need_the_weights_some_other_way(line: str) -> None:
    check_snippet(layer("y, _ = self.attn(q, k, v)", before=f"\n{line}\n"), RULE)


def test_the_output_is_the_same() -> None:
    torch.manual_seed(0)
    attention = torch.nn.MultiheadAttention(16, 4, batch_first=True)
    x, mask = torch.randn(2, 5, 16), torch.tensor([[False] * 5, [False, True, False, True, True]])
    slow, weights = attention(x, x, x, key_padding_mask=mask)
    fast, nothing = attention(x, x, x, key_padding_mask=mask, need_weights=False)
    assert weights.shape == (2, 5, 5)
    assert nothing is None
    assert torch.allclose(slow, fast, atol=1e-6)
