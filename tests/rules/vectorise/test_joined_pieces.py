"""TL915: tensors that are taken apart and joined again; the views that the message names show the same."""

from __future__ import annotations

import pytest
import torch
from laws import check_snippet
from twins import findings

RULE = "joined-pieces"

VIEWS = {
    "torch.stack(x.chunk(2, 0), 0)": ".unflatten(0, (2, -1))",
    "torch.stack(torch.chunk(x, 2, dim=1), dim=1)": ".unflatten(1, (2, -1))",
    "torch.cat(x.unbind(0), 0)": ".flatten(0, 1)",
    "torch.cat(x.unbind(1), dim=1)": ".flatten(1, 2)",
    "torch.stack(x.unbind(0), 1)": ".movedim(0, 1)",
    "torch.stack(list(x.unbind(1)), -1)": ".movedim(1, -1)",
}


def program(expression: str) -> str:
    return f"import torch\ndef train(loader, net):\n    for batch in loader:\n        x = net(batch.cuda())\n        {expression}.sum().backward()\n"


@pytest.mark.parametrize(("joined", "view"), VIEWS.items())
def test_the_view_shows_the_same(joined: str, view: str) -> None:
    check_snippet(program(joined).replace(".backward()", f".backward()  # <- {RULE}"), RULE)
    (found,) = findings(program(joined), RULE)
    assert f"`{view}`" in found.help
    x = torch.randn(4, 6, 3)
    names = {"torch": torch, "x": x}
    assert torch.equal(eval(joined, names), eval(f"x{view}", names))  # noqa: S307 - our own


@pytest.mark.parametrize(
    "joined", ["torch.cat(x.chunk(3, 1), 1)", "torch.stack(x.unbind(1), 1)", "torch.cat(x.split(2))"]
)
def test_it_is_the_tensor_itself(joined: str) -> None:
    (found,) = findings(program(joined), RULE)
    assert "the tensor itself" in found.help
    x = torch.randn(4, 6, 3)
    assert torch.equal(eval(joined, {"torch": torch, "x": x}), x)  # noqa: S307 - our own


@pytest.mark.parametrize(
    "joined", ["torch.cat(x.chunk(2, 1), 0)", "torch.stack(x.split(2, 0), 1)", "torch.cat(x.unbind(1), 0)"]
)
def test_what_needs_a_copy(joined: str) -> None:
    check_snippet(program(joined), RULE)


def test_nested_tensors_become_one_of_one_shape() -> None:
    check_snippet(
        program("torch.stack(x.unbind())").replace("import torch\n", "import torch\nimport torch.nested\n"), RULE
    )
