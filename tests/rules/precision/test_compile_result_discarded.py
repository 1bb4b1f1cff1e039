"""TL650: compiled models that nobody keeps; that the argument stays as it was, on CPU torch."""

from __future__ import annotations

import pytest
import torch
from laws import check_snippet

RULE = "compile-result-discarded"
MARK = "  # <- compile-result-discarded"
TOP = "import torch\nfrom torch import nn\n"


@pytest.mark.parametrize(
    ("target", "fixed"),
    [((2, 0), "model = torch.compile(model, mode='default')"), ((2, 2), "model.compile(mode='default')")],
)
def test_a_model(target: tuple[int, int], fixed: str) -> None:
    code = "model = nn.Linear(2, 2).cuda()\n{}\nprint(model(x))\n"
    line = f"torch.compile(model, mode='default'){MARK}"
    check_snippet(TOP + code.format(line), RULE, target_torch=target, fixed=TOP + code.format(fixed))


def test_a_function() -> None:
    code = "def f(x):\n    return x.sin()\ndef main(x):\n    g = f\n{}\n    print(g(x))\n"
    check_snippet(
        TOP + code.format(f"    torch.compile(g){MARK}"), RULE, fixed=TOP + code.format("    g = torch.compile(g)")
    )


def test_an_attribute() -> None:
    code = "class T:\n    def setup(self):\n        {}\n"
    check_snippet(
        TOP + code.format(f"torch.compile(self.net){MARK}"),
        RULE,
        fixed=TOP + code.format("self.net = torch.compile(self.net)"),
    )


@pytest.mark.parametrize(
    "code",
    [
        "model = torch.compile(nn.Linear(2, 2))\nmodel(x)",
        "model = nn.Linear(2, 2)\nfast = torch.compile(model)\nfast(x)",
        "model = nn.Linear(2, 2)\nmodel.compile()\nmodel(x)",
        "model = nn.Linear(2, 2)\ntorch.compile(model)(x)",
        "model = nn.Linear(2, 2)\ntorch.compile(model)",
        "torch.compile(nn.Linear(2, 2))",
        "try:\n    torch.compile(model)\nexcept RuntimeError:\n    pass\nmodel(x)",
        "run(torch.compile(model))\nmodel(x)",
    ],
)
def test_kept_or_not_used(code: str) -> None:
    check_snippet(f"{TOP}{code}\n", RULE)


def test_the_argument_stays_as_it_was() -> None:
    model = torch.nn.Linear(2, 2)
    compiled = torch.compile(model, backend="eager")
    assert type(model) is torch.nn.Linear
    assert compiled is not model
    assert list(compiled.state_dict()) != list(model.state_dict())
