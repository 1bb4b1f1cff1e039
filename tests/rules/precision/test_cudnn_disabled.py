"""TL622: cuDNN switched off for good, and all the ways in which somebody may mean it."""

from __future__ import annotations

import pytest
from laws import check_snippet

RULE = "cudnn-disabled"


@pytest.mark.parametrize(
    ("imports", "flag"),
    [
        ("import torch", "torch.backends.cudnn.enabled"),
        ("from torch.backends import cudnn", "cudnn.enabled"),
        ("import torch.backends.cudnn as cudnn", "cudnn.enabled"),
        ("import torch.backends.cudnn", "torch.backends.cudnn.enabled"),
    ],
)
def test_it_is_switched_off(imports: str, flag: str) -> None:
    code = f"{imports}\ndef seed(number):\n    {flag} = False"
    check_snippet(f"{code}  # <- {RULE}\n", RULE, fixed=code.replace("False", "True") + "\n")


@pytest.mark.parametrize(
    "body",
    [
        "torch.backends.cudnn.enabled = True",
        "torch.backends.cudnn.enabled = args.cudnn",
        "torch.backends.cudnn.benchmark = False",
        "torch.backends.mkldnn.enabled = False",
        "other.cudnn.enabled = False",
        "if args.no_cudnn: torch.backends.cudnn.enabled = False",
        "if platform == 'win32':\n    torch.backends.cudnn.enabled = False",
        "torch.backends.cudnn.enabled = False  # cuDNN has no double backward for LSTMs",
        "# crashes otherwise\ntorch.backends.cudnn.enabled = False",
        "torch.backends.cudnn.enabled = False\nrun()\ntorch.backends.cudnn.enabled = True",
        "torch.backends.cudnn.enabled = False\ntorch.autograd.grad(y, x, create_graph=True)",
        "with torch.backends.cudnn.flags(enabled=False):\n    lstm(x)",
    ],
)
def test_it_is_meant(body: str) -> None:
    check_snippet(f"import torch\n{body}\n", RULE)


def test_a_comment_that_gives_no_reason() -> None:
    check_snippet(f"import torch\n# seeds\ntorch.backends.cudnn.enabled = False  # <- {RULE}\n", RULE)
