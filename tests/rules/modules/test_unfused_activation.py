"""TL508: a formula that is SiLU, GELU, Mish or Hardswish is flagged; the tests compute what the fix makes."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from laws import check_snippet

RULE = "unfused-activation"
MARK = "  # <- unfused-activation?"
TOP = (
    "import math\nimport numpy as np\nimport torch\nimport torch.nn.functional as F\n\nK = math.sqrt(2 / math.pi)\n\n\n"
)

FIXES = {
    "x * torch.sigmoid(x)": "F.silu(x)",
    "torch.sigmoid(x) * x": "F.silu(x)",
    "x.mul(x.sigmoid())": "F.silu(x)",
    "x / (1 + torch.tanh(x) * 0) * F.sigmoid(x)": "F.silu(x)",
    "y + x * torch.sigmoid(x)": "y + F.silu(x)",
    "y * (x * torch.sigmoid(x))": "y * (F.silu(x))",
    "x * torch.sigmoid(x) * y": "F.silu(x) * y",
    "y if(x is None)else x*torch.sigmoid(x)": "y if(x is None)else F.silu(x)",
    "x * 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))": "F.gelu(x)",
    "x * (torch.erf(x / 2**0.5) + 1) / 2": "F.gelu(x)",
    "0.5 * x * (1 + torch.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * torch.pow(x, 3))))":
        'F.gelu(x, approximate="tanh")',
    "0.5 * x * (1 + torch.tanh(K * x * (1 + 0.044715 * x * x)))": 'F.gelu(x, approximate="tanh")',
    "x * torch.tanh(F.softplus(x))": "F.mish(x)",
    "x * F.softplus(x).tanh()": "F.mish(x)",
    "x * F.relu6(x + 3.0) / 6.0": "F.hardswish(x)",
    "x * (F.relu6(x + 3) / 6)": "F.hardswish(x)",
}  # fmt: skip


def function(expression: str) -> str:
    return f"{TOP}def act(x, y, beta=1):\n    return {expression}\n"


@pytest.mark.parametrize(("before", "after"), FIXES.items())
def test_the_function_of_torch_takes_its_place(before: str, after: str) -> None:
    check_snippet(function(before + MARK), RULE, fixed=function(after))
    x, y = torch.linspace(-6, 6, 101, dtype=torch.float64), torch.randn(101, dtype=torch.float64)
    slow, fast = (computed(function(code), x, y) for code in (before, after))
    assert torch.allclose(slow, fast, atol=1e-7)


def computed(code: str, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    names: dict[str, Any] = {}
    exec(compile(code, "<program>", "exec", dont_inherit=True), names)  # noqa: S102 - our own programs
    result = names["act"](x, y)
    assert isinstance(result, torch.Tensor)
    return result


@pytest.mark.parametrize(
    "expression",
    [
        "x * torch.sigmoid(y)",
        "x * torch.sigmoid(1.702 * x)",
        "x * torch.sigmoid(beta * x)",
        "x * torch.sigmoid(x + 1)",
        "x * torch.tanh(x)",
        "2 * x * torch.sigmoid(x) * torch.sigmoid(x)",
        "0.5 * (1 + torch.erf(x / math.sqrt(2)))",
        "0.5 * x * (1 + torch.tanh(K * (x + 0.04 * x**3)))",
        "x * F.softplus(x, 2).tanh()",
        "x * F.relu6(x + 2) / 6",
        "x[0] * torch.sigmoid(x[1])",
        "F.relu6(x + 3) / 6",
        "x * np.tanh(x)",
        "x.mul_(x.sigmoid())",
    ],
)
def test_other_formulas_are_not(expression: str) -> None:
    check_snippet(function(expression), RULE)


def test_constants_may_be_computed_under_names() -> None:
    code = f"{TOP}def act(x):\n    k = 1 / 2\n    half = k\n    return x * half * (1 + torch.erf(x / 2**half)){MARK}\n"
    check_snippet(code, RULE)


def test_a_name_is_computed_once_for_all_its_uses() -> None:
    """Thirty lines that use the line above twice would be a thousand million ways."""
    lines = "".join(f"    a{n + 1} = torch.tanh(a{n}) * a{n}\n" for n in range(30))
    check_snippet(f"{TOP}def act(x):\n    a0 = x\n{lines}    return a30\n", RULE)


def test_what_is_made_of_itself_is_no_formula() -> None:
    check_snippet(f"{TOP}def act(n):\n    while n:\n        x = x * torch.sigmoid(x + x * 0)\n    return x\n", RULE)


def test_parts_may_have_names() -> None:
    check_snippet(
        f"""
        import math
        import torch

        def gelu(x):
            cdf = 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))
            return x * cdf{MARK}

        def other(x, y):
            x = x + y
            s = torch.sigmoid(x)
            x = x * 2
            return x * s
        """,
        RULE,
        fixed="""
        import math
        import torch

        def gelu(x):
            cdf = 0.5 * (1.0 + torch.erf(x / math.sqrt(2.0)))
            return x * cdf

        def other(x, y):
            x = x + y
            s = torch.sigmoid(x)
            x = x * 2
            return x * s
        """,
    )


def test_each_operation_on_the_tensor_is_counted() -> None:
    formula = "0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3))))"
    (finding,) = check_snippet(function(formula + MARK), RULE).findings
    assert "launches 8 kernels" in finding.message


@pytest.mark.parametrize(
    "code",
    [
        "import torch\n\n@torch.jit.script\ndef swish(x):\n    return x * torch.sigmoid(x)\n",
        "import torch\n\n@torch.compile\ndef swish(x):\n    return x * torch.sigmoid(x)\n",
        "import torch\nfrom torch import nn\n\nACTS = [nn.SiLU()]\n\ndef swish(x):\n    return x * torch.sigmoid(x)\n",
        "import torch\n\nclass S(torch.autograd.Function):\n    def forward(ctx, x):\n        return x * torch.sigmoid(x)\n",
        "import torch\n\ndef swish(x):\n    # F.silu rounds otherwise.\n    return x * torch.sigmoid(x)\n",
        "import torch\nx = torch.ones(3)\nprint(x * torch.sigmoid(x))\n",
    ],
)
def test_whoever_fuses_it_or_knows_of_it_is_left_alone(code: str) -> None:
    check_snippet(code, RULE)


def test_the_two_gelus_are_told_apart() -> None:
    x = torch.linspace(-4, 4, 81, dtype=torch.float64)
    by_erf, by_tanh = torch.nn.functional.gelu(x), torch.nn.functional.gelu(x, approximate="tanh")
    assert 1e-4 < (by_erf - by_tanh).abs().max() < 1e-3
    assert math.isclose(float(by_erf[-1]), 4, rel_tol=1e-3)


OWN = """
import torch
class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return {forward}
def {name}(x):
    {body}return x * torch.sigmoid(x){mark}
"""


@pytest.mark.parametrize(
    ("forward", "name", "body", "mark"),
    [
        ("x.exp()", "swish", "", MARK),
        ("x.mul(x.sigmoid())", "swish", "", ""),
        ("x.exp()", "swish_ref", "", MARK),
        ("x.exp()", "swish", '"""A reference implementation."""; ', MARK),
    ],
)
def test_what_stands_beside_a_faster_one(forward: str, name: str, body: str, mark: str) -> None:
    check_snippet(OWN.format(forward=forward, name=name, body=body, mark=mark), RULE)


def test_a_table_that_a_reference_uses() -> None:
    table = "import torch\ntable = {'swish': dict(func=lambda x, **_: torch.sigmoid(x) * x)}"
    check_snippet(table + MARK, RULE)
    check_snippet(f"{table}{MARK}\ndef act_ref(x, name):\n    return table[name]['func'](x)\n", RULE)


@pytest.mark.parametrize(
    ("far", "near", "behind", "flagged"),
    [
        ("", "", "  # PyTorch 1.7 has SiLU, we run with 1.5", False),
        ("", "# PyTorch 1.7 has SiLU, we run with 1.5", "", False),
        ("# PyTorch 1.7 has SiLU, we run with 1.5", "", "", True),
        ("", "# Swish of the paper", "", True),
        ("", "", "  # Swish of the paper", True),
    ],
)
def test_a_comment_at_the_line_that_says_why(far: str, near: str, behind: str, flagged: bool) -> None:  # noqa: FBT001
    mark = MARK if flagged else ""
    body = f"    def forward(self, x):\n        {near}\n        return x * torch.sigmoid(x){behind}{mark}\n"
    check_snippet(f"import torch\n{far}\nclass Swish(torch.nn.Module):\n{body}", RULE)


TABLE = """
import torch

def swish(x):
    return x * torch.sigmoid(x){mark}

ACTIVATIONS = {{"relu": torch.relu, "swish": swish}}

def act(x, name="{default}"):
    return ACTIVATIONS[name](x)
"""


@pytest.mark.parametrize(("default", "mark"), [("relu", ""), ("swish", MARK)])
def test_an_entry_of_a_table_that_nobody_chooses(default: str, mark: str) -> None:
    check_snippet(TABLE.format(default=default, mark=mark), RULE)
    check_snippet(TABLE.format(default=default, mark=MARK) + "\ndef gate(x):\n    return swish(x)\n", RULE)


PICKED = """
import torch, typing
{decorator}
class Swish(torch.nn.Module):
    def forward(self, x):
        {before}return x * torch.sigmoid(x){mark}

def get(name):
    return {found}
"""


@pytest.mark.parametrize(
    ("decorator", "before", "found", "flagged"),
    [
        ("", "", "globals()[name]", False),
        ("", "", "globals().get(name)", False),
        ("", "", "eval(name)()", False),
        ("@ACTIVATIONS.register_module()", "", "build(name)", False),
        ("@register", "", "build(name)", False),
        ("@ACTIVATIONS.register('swish')", "x = x + 1; ", "build(name)", False),
        ("", "x = x + 1; ", "eval(name)()", True),
        ("", "", "name.eval()", True),
        ("@typing.final", "", "Swish()", True),
    ],
)
def test_what_is_picked_by_name(decorator: str, before: str, found: str, flagged: bool) -> None:  # noqa: FBT001
    mark = MARK if flagged else ""
    check_snippet(PICKED.format(decorator=decorator, before=before, found=found, mark=mark), RULE)
