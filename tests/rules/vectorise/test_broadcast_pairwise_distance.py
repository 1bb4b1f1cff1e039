"""TL910: distances of all pairs by broadcasting; the tests run what the fix makes of them."""

from __future__ import annotations

from importlib.resources import files

import pytest
import torch
from laws import check_snippet

from torchlint.registry import find

RULE = "broadcast-pairwise-distance"
WAY = 'compute_mode="donot_use_mm_for_euclid_dist"'

FIXES = {
    "((a[:, None, :] - b[None, :, :]) ** 2).sum(-1)": f"torch.cdist(a, b, {WAY}).square()",
    "((b[None, :, :] - a[:, None, :]) ** 2).sum(dim=2)": f"torch.cdist(a, b, {WAY}).square()",
    "torch.sum((a.unsqueeze(-2) - b.unsqueeze(-3)).pow(2), dim=-1)": f"torch.cdist(a, b, {WAY}).square()",
    "torch.square(a[..., None, :] - b[..., None, :, :]).sum(axis=-1)": f"torch.cdist(a, b, {WAY}).square()",
    "(a[..., :, None, :] - b[..., None, :, :]).norm(dim=-1)": f"torch.cdist(a, b, {WAY})",
    "torch.norm(a[:, None, :] - b[None, :, :], p=2, dim=-1)": f"torch.cdist(a, b, {WAY})",
    "torch.linalg.norm(a[:, None, :] - b[None, :, :], dim=-1)": f"torch.cdist(a, b, {WAY})",
    "torch.linalg.vector_norm(a[:, None, :] - b[None, :, :], 1, -1)": "torch.cdist(a, b, p=1)",
    "(a[:, None, :] - (2 * b)[None, :, :]).abs().sum(-1)": "torch.cdist(a, 2 * b, p=1)",
    "((a[None][:, :, None, :] - b[None][:, None, :, :]) ** 2).sum(3)": (
        f"torch.cdist(a[None], b[None], {WAY}).square()"
    ),
    "1 - (torch.abs(a.unsqueeze(-2) - b.unsqueeze(-3)).sum(-1))": "1 - (torch.cdist(a, b, p=1))",
}


def function(expression: str) -> str:
    return f"import torch\ndef far(a: torch.Tensor, b: torch.Tensor):\n    zero = torch.zeros(1)\n    return {expression}\n"


@pytest.mark.parametrize(("before", "after"), FIXES.items())
def test_cdist_gives_the_same(before: str, after: str) -> None:
    check_snippet(f"{function(before).rstrip()}  # <- {RULE}\n", RULE, fixed=function(after))
    generator = torch.Generator().manual_seed(1)
    for width in (3, 40):
        results = []
        a, b = torch.randn(30, width, generator=generator), torch.randn(31, width, generator=generator)
        b[0] = a[0] + 1e-4  # so near that a product of matrices would lose it
        for code in (before, after):
            names: dict[str, object] = {}
            exec(function(code), names)  # noqa: S102 - our own programs
            given = a.clone().requires_grad_()
            result = names["far"](given, b)  # type: ignore[operator]
            result.sum().backward()
            results.append((result.detach(), given.grad))
        for one, other in zip(*results, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-5)


def test_what_the_page_says_may_differ() -> None:
    half = torch.ones(2, 3, dtype=torch.int64)
    assert ((half[:, None, :] - half[None, :, :]) ** 2).sum(-1).tolist() == [[0, 0], [0, 0]]
    with pytest.raises((RuntimeError, NotImplementedError)):
        torch.cdist(half, half)
    x = torch.zeros(1, 2, requires_grad=True)
    ((x[:, None, :] - x[None, :, :].detach()) ** 2).sum(-1).sqrt().sum().backward()
    assert x.grad is not None
    assert x.grad.isnan().all()
    x.grad = None
    torch.cdist(x, x.detach(), compute_mode="donot_use_mm_for_euclid_dist").sum().backward()
    assert x.grad.tolist() == [[0, 0]]


REPORTED_ONLY = (
    "((a[:, None] - b[None]) ** 2).sum(-1)",
    "((a.unsqueeze(1) - b.unsqueeze(0)) ** 2).sum(-1)",
    "((a[:, None, :] - b[None, :, :]) ** 2).sum(-1, keepdim=True)",
    "(a.unsqueeze(2) - b.unsqueeze(1)).norm(dim=-1)",
)


@pytest.mark.parametrize("expression", REPORTED_ONLY)
def test_reported_only(expression: str) -> None:
    result = check_snippet(f"{function(expression).rstrip()}  # <- {RULE}\n", RULE)
    assert [finding.fix for finding in result.findings] == [None]


SILENT = (
    "((a - b) ** 2).sum(-1)",
    "((a[:, None, :] - b[None, :, :]) ** 3).sum(-1)",
    "((a[:, None, :] - b[None, :, :]) ** 2).sum(0)",
    "((a[:, None, :] - b[None, :, :]) ** 2).sum()",
    "((a[:, None, :] - b[None, :, :]) ** 2).mean(-1)",
    "((a[:, None, :] + b[None, :, :]) ** 2).sum(-1)",
    "((a[:, None, :] - b[:, None, :]) ** 2).sum(-1)",
    "((a[:, :, None] - b[None, :, :]) ** 2).sum(-1)",
    "((a[:, None, 1:] - b[None, :, 1:]) ** 2).sum(-1)",
    "torch.norm(a[:, None, :] - b[None, :, :], p=3, dim=-1)",
    "torch.norm(a[:, None, :] - b[None, :, :])",
    "((k.asarray(a)[:, None, :] - k.asarray(b)[None, :, :]) ** 2).sum(-1)",
)


@pytest.mark.parametrize("expression", SILENT)
def test_silent(expression: str) -> None:
    code = function(expression).replace("(a: torch.Tensor, b: torch.Tensor)", "(a: torch.Tensor, b: torch.Tensor)")
    code = f"import numpy as k\n{code}"
    check_snippet(code, RULE)


@pytest.mark.parametrize(
    ("made", "mark"),
    [
        ("a.reshape(1, 3)", ""),
        ("torch.nn.functional.normalize(torch.randn(1, 3)).to(a)", ""),
        ("a.reshape(8, 3)", f"  # <- {RULE}"),
        ("torch.stack((a[:, 0], a[:, 1]), dim=1)", ""),
        ("(a[:, :2] + a[:, 2:]) / 2", ""),
        ("a[:, 3:6]", ""),
        ("torch.stack((a[:, 0], a[:, 1]), dim=0)", f"  # <- {RULE}"),
        ("(a[:, :8] + a[:, 8:]) / 2", f"  # <- {RULE}"),
    ],
)
def test_one_point_and_few_coordinates(made: str, mark: str) -> None:
    code = "import torch\ndef far(a: torch.Tensor, b: torch.Tensor):\n    center = {}\n    return {}{}\n"
    check_snippet(code.format(made, "torch.norm(center.unsqueeze(1) - b.unsqueeze(0), dim=-1)", mark), RULE)


def test_it_is_asked_for() -> None:
    assert not find(RULE).default


def test_look_alikes_obey_the_laws() -> None:
    check_snippet(files("torchlint.fixtures").joinpath("broadcast_pairwise_distance/ok.py").read_text("utf-8"), RULE)
