"""TL913: products of which the diagonal is used; the tests run what the fix makes of them."""

from __future__ import annotations

from importlib.resources import files

import pytest
import torch
from laws import check_snippet

RULE = "diag-of-matmul"

FIXES = {
    "torch.trace(a @ b)": "(a * b.mT).sum()",
    "(a @ b).trace()": "(a * b.mT).sum()",
    "torch.trace(torch.matmul(a, c.t()))": "(a * c).sum()",
    "torch.diag(a @ c.T)": "(a * c).sum(-1)",
    "(a @ c.transpose(0, 1)).diag()": "(a * c).sum(-1)",
    "torch.diag(torch.mm(a, b))": "(a * b.mT).sum(-1)",
    "a.mm(b).diag()": "(a * b.mT).sum(-1)",
    "torch.diagonal(a @ b)": "(a * b.mT).sum(-1)",
    "torch.diagonal(a[None] @ c[None].mT, dim1=-2, dim2=-1)": "(a[None] * c[None]).sum(-1)",
    "a.matmul(-b).diagonal()": "(a * (-b).mT).sum(-1)",
    "2 * (torch.diagonal(torch.matmul(a + a, b))).sum()": "2 * (((a + a) * b.mT).sum(-1)).sum()",
}


def function(expression: str) -> str:
    return (
        "import torch\ndef used(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor):\n    zero = torch.zeros(1)\n"
        f"    return {expression}\n"
    )


@pytest.mark.parametrize(("before", "after"), FIXES.items())
def test_the_rows_give_the_same(before: str, after: str) -> None:
    check_snippet(f"{function(before).rstrip()}  # <- {RULE}\n", RULE, fixed=function(after))
    generator = torch.Generator().manual_seed(1)
    a = torch.randn(5, 3, generator=generator)
    b, c = torch.randn(3, 5, generator=generator), torch.randn(5, 3, generator=generator)
    results = []
    for code in (before, after):
        names: dict[str, object] = {}
        exec(function(code), names)  # noqa: S102 - our own programs
        given = a.clone().requires_grad_()
        result = names["used"](given, b, c)  # type: ignore[operator]
        result.sum().backward()
        results.append((result.detach(), given.grad))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other)


def test_what_the_page_says_may_differ() -> None:
    a, b = torch.ones(5, 3), torch.ones(3, 4)
    assert torch.diagonal(a @ b).shape == (4,)
    with pytest.raises(RuntimeError, match="must match"):
        (a * b.mT).sum(-1)
    v, w = torch.ones(3), torch.ones(5, 3)
    assert torch.diag(v @ w.T).shape == (5, 5)
    assert (v * w).sum(-1).shape == (5,)


def test_a_comment_stays() -> None:
    result = check_snippet(
        """
        import torch
        def used(a: torch.Tensor, b: torch.Tensor):
            return torch.trace(  # <- diag-of-matmul
                a @ b,  # of a product
            )
        """,
        RULE,
    )
    assert [finding.fix for finding in result.findings] == [None]


SILENT = (
    "torch.diag(a @ b)",
    "torch.diag(torch.matmul(a, b))",
    "torch.diag(a @ c.T, 1)",
    "torch.diagonal(a @ b, offset=1)",
    "torch.diagonal(a @ b, 0, 0, 1)",
    "torch.diagonal(a @ b, dim1=0, dim2=2)",
    "torch.diagonal(a @ b, dim1=axis, dim2=1)",
    "torch.trace(a @ b + c)",
    "torch.trace(a * b)",
    "torch.trace(a)",
    "torch.diag_embed(a @ c.T)",
    "torch.jit.trace(a @ c.T)",
    "np.trace(np.asarray(a) @ np.asarray(b))",
    "torch.trace(torch.mm(a, b, out=c))",
)


@pytest.mark.parametrize("expression", SILENT)
def test_silent(expression: str) -> None:
    check_snippet(f"import numpy as np\naxis = int(input())\n{function(expression)}", RULE)


@pytest.mark.parametrize(
    ("made", "found"),
    [
        ("w = w.view(-1).unsqueeze(0)", False),
        ("w, s, v = torch.linalg.svd(w)", False),
        ("w = w.view(-1).unsqueeze(1)", True),
    ],
)
def test_little_products(made: str, found: bool) -> None:  # noqa: FBT001
    mark = f"  # <- {RULE}" if found else ""
    check_snippet(
        f"import torch\ndef f(w: torch.Tensor, m: torch.Tensor):\n    {made}\n    return torch.trace(w @ m @ w.T){mark}\n",
        RULE,
    )


def test_look_alikes_obey_the_laws() -> None:
    check_snippet(files("torchlint.fixtures").joinpath("diag_of_matmul/ok.py").read_text("utf-8"), RULE)
