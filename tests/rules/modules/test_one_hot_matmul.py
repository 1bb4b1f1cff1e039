"""TL511: a product of one-hot rows with a table is flagged; the fix looks the rows up."""

from __future__ import annotations

import textwrap

import pytest
import torch
from laws import check_snippet
from torch.nn import functional

RULE = "one-hot-matmul"
MARK = "  # <- one-hot-matmul"


def forward(*lines: str) -> str:
    body = textwrap.indent("\n".join(lines), " " * 8)
    return (
        "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\nclass Net(nn.Module):\n"
        "    def __init__(self, n, d):\n        super().__init__()\n        self.emb = nn.Embedding(n, d)\n"
        "        self.w = nn.Parameter(torch.randn(n, d))\n        self.cube = nn.Parameter(torch.randn(2, n, d))\n\n"
        f"    def forward(self, i, n, h, e):\n{body}\n"
    )


FIXES = {
    "return F.one_hot(i, n).float() @ self.w": "return F.embedding(i, self.w)",
    "return torch.mm(F.one_hot(i, n).float(), self.w)": "return F.embedding(i, self.w)",
    "return F.one_hot(i, n).to(h.dtype) @ self.emb.weight": "return F.embedding(i, self.emb.weight)",
    "return torch.matmul(F.one_hot(i, num_classes=n).float(), self.w)": "return F.embedding(i, self.w)",
    "return h + F.one_hot(i + 1, n).half() @ self.w": "return h + F.embedding(i + 1, self.w)",
    "return F.linear(F.one_hot(i, n).float(), h)": "return F.embedding(i, h.t())",
    "return torch.einsum('bk,kd->bd', F.one_hot(i, n).float(), h)": "return F.embedding(i, h)",
    "return torch.einsum('btk,dk->btd', F.one_hot(i, n).float(), h)": "return F.embedding(i, h.t())",
    "return F.one_hot(i, n).float() @ h.view(n, -1)": "return F.embedding(i, h.view(n, -1))",
}


@pytest.mark.parametrize(("before", "after"), FIXES.items())
def test_rows_are_looked_up(before: str, after: str) -> None:
    check_snippet(forward(before + MARK), RULE, fixed=forward(after))


@pytest.mark.parametrize(
    "lines",
    [
        ("rows = F.one_hot(i, n).float()", "mean = rows.mean(0)", "return rows @ self.w" + MARK),
        ("rows = F.one_hot(i, n)", "return rows.float() @ self.w" + MARK),
        ("rows = torch.zeros(9, n).to(h)", "rows.scatter_(1, i, 1)", "return rows @ self.w" + MARK),
        ("rows = torch.zeros(9, n)", "rows.scatter_(1, i, 1.0)", "return torch.matmul(rows, self.w).view(3, 3)" + MARK),
        ("rows = torch.zeros(9, n).scatter_(1, i, 1)", "return rows @ self.w" + MARK),
    ],
)
def test_rows_with_a_name_are_reported_only(lines: tuple[str, ...]) -> None:
    marked = forward(*lines)
    check_snippet(marked, RULE, fixed=marked.replace(MARK, ""))


@pytest.mark.parametrize(
    "lines",
    [
        ("return F.one_hot(i, n).float() @ h",),
        ("return F.one_hot(i, n).float() @ self.cube",),
        ("return F.one_hot(i, n).float() @ h.view(2, n, -1)",),
        ("return F.one_hot(i, n).float().t() @ self.w",),
        ("return h @ F.one_hot(i, n).float()",),
        ("return (F.one_hot(i, n).float() * (1 - e)) @ self.w",),
        ("rows = F.one_hot(i, n).float()", "rows = rows * (1 - e) + e / n", "return rows @ self.w"),
        ("rows = F.one_hot(i, n).float()", "if e:", "    rows = rows * e", "return rows @ self.w"),
        ("rows = torch.zeros(9, n)", "rows.scatter_(0, i, 1)", "return rows @ self.w"),
        ("rows = torch.zeros(9, n)", "rows.scatter_(1, i, e)", "return rows @ self.w"),
        ("rows = torch.full((9, n), e)", "rows.scatter_(1, i, 1)", "return rows @ self.w"),
        ("return F.linear(F.one_hot(i, n).float(), h, e)",),
        ("return torch.einsum('nk,nd->kd', F.one_hot(i, n).float(), h)",),
        ("return torch.einsum('bk,bkd->bd', F.one_hot(i, n).float(), h)",),
        ("return torch.einsum('bk,kd->b', F.one_hot(i, n).float(), h)",),
    ],
)
def test_other_products_are_not(lines: tuple[str, ...]) -> None:
    check_snippet(forward(*lines), RULE)


def test_the_rows_are_the_same_unless_the_table_holds_an_infinity() -> None:
    index, table = torch.tensor([2, 0, 2]), torch.randn(3, 4)
    assert torch.equal(functional.one_hot(index, 3).float() @ table, functional.embedding(index, table))
    table[1, 0] = float("inf")
    assert (functional.one_hot(index, 3).float() @ table)[:, 0].isnan().all()
    assert functional.embedding(index, table).isfinite().all()
