"""TL908: a matrix inverted for one vector; the tests run what the fix makes of it."""

from __future__ import annotations

from importlib.resources import files

import pytest
import torch
from laws import check_snippet

RULE = "inverse-then-matmul"

FIXES = {
    "torch.linalg.inv(a) @ b.unsqueeze(-1)": "torch.linalg.solve(a, b.unsqueeze(-1))",
    "torch.inverse(a + a) @ b[:, None]": "torch.linalg.solve(a + a, b[:, None])",
    "a.inverse() @ b.view(-1, 1)": "torch.linalg.solve(a, b.view(-1, 1))",
    "a.inverse().mv(b)": "torch.linalg.solve(a, b)",
    "torch.mv(a.inverse(), b.flatten())": "torch.linalg.solve(a, b.flatten())",
    "torch.matmul(torch.inverse(a), a[:, -1:])": "torch.linalg.solve(a, a[:, -1:])",
    "torch.inverse(a).matmul(a[..., :1])": "torch.linalg.solve(a, a[..., :1])",
    "torch.inverse(a) @ a[:, 1:2] @ b.unsqueeze(0)": "torch.linalg.solve(a, a[:, 1:2]) @ b.unsqueeze(0)",
    "b - (torch.inverse(a) @ b.reshape(-1))": "b - (torch.linalg.solve(a, b.reshape(-1)))",
    "torch.inverse(a) @ torch.ones(3, 1)": "torch.linalg.solve(a, torch.ones(3, 1))",
}


def function(expression: str) -> str:
    return f"import torch\ndef solved(a: torch.Tensor, b: torch.Tensor):\n    zero = torch.zeros(1)\n    return {expression}\n"


@pytest.mark.parametrize(("before", "after"), FIXES.items())
def test_solving_gives_the_same(before: str, after: str) -> None:
    check_snippet(f"{function(before).rstrip()}  # <- {RULE}\n", RULE, fixed=function(after))
    generator = torch.Generator().manual_seed(1)
    a = torch.randn(3, 3, generator=generator, dtype=torch.float32) + 3 * torch.eye(3)
    b = torch.randn(3, generator=generator)
    results = []
    for code in (before, after):
        names: dict[str, object] = {}
        exec(function(code), names)  # noqa: S102 - our own programs
        matrix = a.clone().requires_grad_()
        result = names["solved"](matrix, b)  # type: ignore[operator]
        result.sum().backward()
        assert matrix.grad is not None
        results.append((result.detach(), matrix.grad))
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other)


def test_both_say_that_a_matrix_has_no_inverse() -> None:
    for solve in (lambda a, b: torch.linalg.inv(a) @ b, torch.linalg.solve):
        with pytest.raises(torch.linalg.LinAlgError, match="singular"):
            solve(torch.zeros(2, 2), torch.ones(2, 1))


REPORTED_ONLY = {
    "a comment": """
        import torch
        def solved(a: torch.Tensor, b: torch.Tensor):
            return torch.matmul(  # <- inverse-then-matmul
                torch.linalg.inv(a),  # of three rows
                b[:, None],
            )
        """,
    "nothing here that is called torch": """
        from torch import Tensor
        def solved(a: Tensor, b: Tensor):
            return a.inverse() @ b.unsqueeze(-1)  # <- inverse-then-matmul
        """,
}


@pytest.mark.parametrize("code", REPORTED_ONLY.values(), ids=REPORTED_ONLY.keys())
def test_reported_only(code: str) -> None:
    result = check_snippet(code, RULE)
    assert [finding.fix for finding in result.findings] == [None]


SILENT = (
    "torch.inverse(a) @ b",
    "torch.inverse(a) @ a[:, :2]",
    "torch.inverse(a) @ a[:, k:]",
    "torch.inverse(a) @ b.unsqueeze(0)",
    "torch.inverse(a) @ b.view(3, -1)",
    "b.unsqueeze(-1) @ torch.inverse(a)",
    "torch.inverse(a) * b.unsqueeze(-1)",
    "torch.linalg.pinv(a) @ b.unsqueeze(-1)",
    "torch.inverse(a, out=b) @ b.unsqueeze(-1)",
    "k.inverse() @ b.unsqueeze(-1)",
    "np.linalg.inv(a) @ b[:, None]",
    "torch.matmul(torch.inverse(a), b[:, None], out=b)",
)


@pytest.mark.parametrize("expression", SILENT)
def test_silent(expression: str) -> None:
    check_snippet(
        f"import numpy as np\nimport torch\ndef solved(a: torch.Tensor, b: torch.Tensor, k):\n    return {expression}\n",
        RULE,
    )


def test_through_a_name() -> None:
    check_snippet(
        """
        import torch
        def step(hessian: torch.Tensor, gradient: torch.Tensor):
            column = gradient.unsqueeze(-1)
            return torch.inverse(hessian) @ column  # <- inverse-then-matmul
        """,
        RULE,
        fixed="""
        import torch
        def step(hessian: torch.Tensor, gradient: torch.Tensor):
            column = gradient.unsqueeze(-1)
            return torch.linalg.solve(hessian, column)
        """,
    )


def test_look_alikes_obey_the_laws() -> None:
    check_snippet(files("torchlint.fixtures").joinpath("inverse_then_matmul/ok.py").read_text("utf-8"), RULE)
