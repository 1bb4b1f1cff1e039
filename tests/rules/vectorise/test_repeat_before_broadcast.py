"""TL918: tensors that are repeated for what reads a view as well; the view that the message names shows the same."""

from __future__ import annotations

import pytest
import torch
from laws import check_snippet
from twins import findings

RULE = "repeat-before-broadcast"

# What is repeated, of `x` of 4 times 6 or of 4 times 6 times 3, and the view.
VIEWS = {
    "m.unsqueeze(1).repeat(1, n, 1)": ".expand(-1, n, -1)",
    "m.unsqueeze(-1).repeat(1, 1, n)": ".expand(-1, -1, n)",
    "m.unsqueeze(-2).repeat([1, n, 1])": ".expand(-1, n, -1)",
    "m.unsqueeze(0).repeat(n, 1, 1)": ".expand(n, -1, -1)",
    "m[:, None].repeat(1, n, 1)": ".expand(-1, n, -1)",
    "m[..., None].repeat(1, 1, n)": ".expand(-1, -1, n)",
    "m.view(-1, 1, 3, 2).repeat(1, n, 1, 1)": ".expand(-1, n, -1, -1)",
    "m.view(4, 1, 6).float().repeat((1, n, 1))": ".expand(-1, n, -1)",
    "m.mean(1, keepdim=True).repeat(1, n)": ".expand(-1, n)",
    "torch.max(m, 1, keepdim=True)[0].repeat(1, n)": ".expand(-1, n)",
    "m.max(1, keepdim=True).values.repeat(1, n)": ".expand(-1, n)",
    "torch.arange(n).repeat(3, 1)": ".expand(3, -1)",
    "torch.arange(n).repeat(3, 1, 1)": ".expand(3, 1, -1)",
    "m.unsqueeze(1).unsqueeze(2).repeat(1, n, 2, 1)": ".expand(-1, n, 2, -1)",
    "torch.unsqueeze(m, 1).repeat(1, n, 1)": ".expand(-1, n, -1)",
}
HEAD = "import torch\ndef train(loader, net, n):\n    for batch in loader:\n        m = net(batch.cuda())\n"


@pytest.mark.parametrize(("repeated", "view"), VIEWS.items())
def test_the_view_shows_the_same(repeated: str, view: str) -> None:
    code = f"{HEAD}        net.other = ({repeated} * 2).sum().backward()  # <- {RULE}?\n"
    check_snippet(code, RULE)
    (found,) = findings(code, RULE)
    assert f"`{view}`" in found.help
    names = {"torch": torch, "m": torch.randn(4, 6), "n": 5}
    before = repeated[: repeated.rindex(".repeat(")]
    assert torch.equal(eval(repeated, names), eval(before + view, names))  # noqa: S307 - our own


@pytest.mark.parametrize(
    "use",
    [
        "torch.cat([r, y], dim=-1)",
        "torch.where(y > r, y, r)",
        "r + y",
        "y.masked_fill(r > 0, 0.0)",
        "r.mul(y)",
        "(r - y).pow(2).mean() + r.shape[1]",
        "y.scatter(1, y.long(), r)",
    ],
)
def test_operands_are_notes(use: str) -> None:
    check_snippet(
        f"{HEAD}        y = net(m)\n        r = m.unsqueeze(1).repeat(1, n, 1)  # <- {RULE}?\n        {use}\n", RULE
    )


@pytest.mark.parametrize("use", ["torch.gather(m, 1, r)", "m.gather(1, index=r)", "m.scatter_add(1, r, m)"])
def test_an_index_is_a_warning(use: str) -> None:
    check_snippet(f"{HEAD}        r = m.argmax(2).unsqueeze(-1).repeat(1, 1, n)  # <- {RULE}\n        {use}\n", RULE)


@pytest.mark.parametrize(
    "use",
    [
        "r[0] = 1",
        "r += 1",
        "r.add_(1)",
        "net(r)",
        "kept.append(r)",
        "r.view(-1)",
        "r @ m",
        "torch.stack([r])",
        "m.zero_(); print(r + m)",
    ],
)
def test_what_may_need_a_copy(use: str) -> None:
    check_snippet(f"{HEAD}        r = m.unsqueeze(1).repeat(1, n, 1)\n        {use}\n", RULE)


@pytest.mark.parametrize(
    "repeated",
    [
        "m.repeat(1, n)",
        "m.unsqueeze(1).repeat(1, 1, n)",
        "m.unsqueeze(1).repeat(n, 1, 1)",
        "m.sum(1).repeat(1, n)",
        "m.view(-1, 6).repeat(n, 1)",
        "m[:, None].repeat(1, 1, n)",
        "m[:, 0].repeat(n, 1)",
        "m.unsqueeze(n).repeat(1, n, 1)",
        "m.unsqueeze(1).repeat(1, 1, 1)",
    ],
)
def test_axes_that_may_have_several_elements(repeated: str) -> None:
    check_snippet(f"{HEAD}        net.other = ({repeated} * 2).sum().backward()\n", RULE)
