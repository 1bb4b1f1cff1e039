"""TL222: clones beside a move or a cast; what the message names instead gives the same, and shares nothing."""

from __future__ import annotations

import pytest
import torch
from laws import check_snippet
from twins import findings

RULE = "clone-beside-copy"

INSTEAD = {
    "x.clone().to(torch.float64)": "x.to(torch.float64, copy=True)",
    "x.clone().to(dtype=torch.float64)": "x.to(dtype=torch.float64, copy=True)",
    "x.clone().detach().to(torch.float64)": "x.detach().to(torch.float64, copy=True)",
    "x.to(torch.float64).clone()": "x.to(torch.float64, copy=True)",
    "x.to(torch.float64).detach().clone()": "x.detach().to(torch.float64, copy=True)",
    "x.detach().clone().cpu()": 'x.detach().to("cpu", copy=True)',
    "x.detach().cpu().clone()": 'x.detach().to("cpu", copy=True)',
    "(x + 1).clone().to('cpu', non_blocking=True)": "(x + 1).to('cpu', non_blocking=True, copy=True)",
    "x.cuda().clone()": 'x.to("cuda", copy=True)',
    "x.clone().cuda()": 'x.to("cuda", copy=True)',
}


def program(expression: str, tensor: str = "net(batch)") -> str:
    return f"import torch\ndef kept(loader, net):\n    found = []\n    for batch in loader:\n        x = torch.relu({tensor})\n        found.append({expression})\n    return found\n"


@pytest.mark.parametrize(("copied", "instead"), INSTEAD.items())
def test_what_is_named_instead_gives_the_same(copied: str, instead: str) -> None:
    check_snippet(program(copied).replace(f"{copied})", f"{copied})  # <- {RULE}?"), RULE)
    (found,) = findings(program(copied), RULE)
    assert f"`{instead}`" in found.help
    if "cuda" in copied:
        return
    names = {"torch": torch, "x": torch.randn(4, 6, requires_grad=True).t() * 2}
    before, after = eval(copied, names), eval(instead, names)  # noqa: S307 - our own
    assert torch.equal(before, after)
    assert (before.dtype, before.stride(), before.requires_grad) == (after.dtype, after.stride(), after.requires_grad)
    assert after.data_ptr() != names["x"].data_ptr()


@pytest.mark.parametrize(
    "expression",
    [
        "x.clone()",
        "x.cpu()",
        "x.clone().detach()",
        "x.clone().mul_(2).cpu()",
        "x.cpu().add(1).clone()",
        "x.clone(memory_format=torch.contiguous_format).cpu()",
        "x.clone().to('cpu', copy=True)",
        "x.clone().to(torch.float64, False, True)",
        "x.sum().clone().to(torch.float64)",
        "torch.zeros(8).clone().cpu()",
        "batch.graph.clone().to('cuda')",
        "net.clone().to('cuda')",
    ],
)
def test_look_alikes(expression: str) -> None:
    check_snippet(program(expression), RULE)


def test_where_the_tensor_is_known_to_be_elsewhere_no_doubt_says_so() -> None:
    for copied, tensor, doubts in (
        ("x.cpu().clone()", "batch.cuda()", ["SIZE_UNKNOWN"]),
        ("x.clone().cpu()", "net(batch)", ["DEVICE_UNKNOWN", "SIZE_UNKNOWN"]),
    ):
        (found,) = findings(program(copied, tensor), RULE)
        assert [doubt.name for doubt in found.doubts][: len(doubts)] == doubts
