"""TL902: Python's reductions of a tensor are flagged; the tests run what the fix makes and show where it differs."""

from __future__ import annotations

import math
from importlib.resources import files
from typing import Any

import pytest
import torch
from laws import check_snippet
from twins import findings, fixed, program, run, training

from torchlint.finding import Applicability

RULE = "builtin-reduction-on-tensor"

FIXES = {
    "sum(x)": "x.sum(0)",
    "max(x)": "x.max()",
    "min(x + 1)": "(x + 1).min()",
    "any(x > 0)": "bool((x > 0).any())",
    "all(x[0])": "bool(x[0].all())",
    "(sum(x))": "(x.sum(0))",
    "1 if any(x) else 2": "1 if x.any() else 2",
    "not all(x)": "not x.all()",
    "0 if(n)else(max(x))": "0 if(n)else(x.max())",
    "max(x.view(-1)).item()": "x.view(-1).max().item()",
}


def function(expression: str) -> str:
    return program(f"def reduced(x: torch.Tensor, n: int):\n    return {expression}\n")


def reduced(code: str, *given: Any) -> Any:  # noqa: ANN401 - any result
    names: dict[str, Any] = {}
    exec(compile(code, "<program>", "exec", dont_inherit=True), names)  # noqa: S102 - our own programs
    return names["reduced"](*given, 0)


def both(expression: str, *given: Any) -> tuple[Any, Any]:  # noqa: ANN401 - any result
    code = function(expression)
    return reduced(code, *given), reduced(fixed(code, RULE, Applicability.UNSAFE), *given)


@pytest.mark.parametrize(("before", "after"), FIXES.items())
def test_the_method_takes_the_place_of_the_builtin(before: str, after: str) -> None:
    code = function(before)
    assert [finding.fix.applicability for finding in findings(code, RULE) if finding.fix] == [Applicability.UNSAFE]
    assert fixed(code, RULE, Applicability.UNSAFE) == function(after)
    assert fixed(code, RULE, Applicability.SAFE) == code
    check_snippet(f"{code.rstrip()}  # <- {RULE}\n", RULE)


@pytest.mark.parametrize("expression", ["sum(x)", "max(x)", "min(x)", "any(x > 2)", "all(x < 9)"])
@pytest.mark.parametrize("values", [[1, 5, 3, 5], [2.0, 0.25, -1.5], [7]])
def test_of_numbers_that_add_up_exactly_the_result_is_the_same(expression: str, values: list[float]) -> None:
    slow, fast = both(expression, torch.tensor(values))
    assert type(slow) is type(fast)
    assert repr(slow) == repr(fast)


def test_a_matrix_is_added_up_row_by_row() -> None:
    slow, fast = both("sum(x)", torch.arange(6.0).view(2, 3))
    assert torch.equal(slow, fast)


def test_sorted_is_reported_only() -> None:
    found = findings(function("sorted(x)"), RULE)
    assert [finding.fix for finding in found] == [None]
    assert "`x.sort()`" in found[0].help


def test_a_comment_is_not_lost() -> None:
    found = findings(function("sum(\n        x  # all of it\n    )"), RULE)
    assert [finding.fix for finding in found] == [None]


def test_what_the_page_says_may_differ() -> None:
    # The order of additions.
    numbers = torch.tensor([1e8, 1.0, -1e8] * 11)
    slow, fast = both("sum(x)", numbers)
    assert slow.item() != fast.item()
    # The type of a sum.
    slow, fast = both("sum(x)", torch.ones(3, dtype=torch.int32))
    assert (slow.dtype, fast.dtype) == (torch.int32, torch.int64)
    # No elements.
    slow, fast = both("sum(x)", torch.zeros(0))
    assert (type(slow), type(fast)) == (int, torch.Tensor)
    # NaN.
    slow, fast = both("max(x)", torch.tensor([1.0, math.nan, 2.0]))
    assert slow.item() == 2.0
    assert math.isnan(fast.item())
    # Where the gradient goes.
    gradients = []
    for code in (function("max(x)"), fixed(function("max(x)"), RULE, Applicability.UNSAFE)):
        x = torch.tensor([0.0, 1.0, 1.0], requires_grad=True)
        reduced(code, x).backward()
        gradients.append(x.grad.tolist() if x.grad is not None else None)
    assert gradients == [[0.0, 1.0, 0.0], [0.0, 0.5, 0.5]]
    # Several axes.
    slow, fast = both("max(x)", torch.ones(1, 3))
    assert (slow.shape, fast.shape) == ((3,), ())
    with pytest.raises(RuntimeError, match="ambiguous"):
        reduced(function("any(x)"), torch.ones(2, 3))
    assert reduced(fixed(function("any(x)"), RULE, Applicability.UNSAFE), torch.ones(2, 3)) is True
    with pytest.raises(TypeError, match="0-d"):
        reduced(function("any(x)"), torch.ones(()))


@pytest.mark.parametrize("batches", [4, 0])
def test_a_fixed_program_trains_alike(batches: int) -> None:
    code = training(
        "log.append(int(sum(outputs.argmax(1) == 1)))\nif any(outputs.detach().view(-1) > 9): log.append('high')\n"
        "log.append(max(outputs.detach().view(-1)).item())"
    )
    made = fixed(code, RULE, Applicability.UNSAFE)
    assert [name in made for name in (".sum(0)", ".any()", ".max()")] == [True] * 3
    assert run(made, batches) == run(code, batches)


POSITIVE = {
    "a mask": """
        import torch
        from torch import nn
        class Net(nn.Module):
            def forward(self, values: torch.Tensor):
                real = (values == 0.0).sum(dim=(-1, -2)) != 3
                if not any(real):  # <- builtin-reduction-on-tensor
                    real[0] = True
                return values[real]
        """,
    "places": """
        import torch
        def first(ids: torch.Tensor):
            starts = (ids == -1).nonzero()[:, 1]
            return min(starts) if len(starts) > 0 else None  # <- builtin-reduction-on-tensor
        """,
    "an attribute": """
        import torch
        class Graph:
            def __init__(self, edges: torch.Tensor):
                self.edges = edges
            @property
            def count(self):
                return max(self.edges[1]) + 1  # <- builtin-reduction-on-tensor
        """,
    "on the CPU, for each batch": """
        import torch
        def count(loader, model, optimizer):
            for x, y in loader:
                model(x).backward()
                optimizer.step()
                print(sum(torch.randperm(999) > 3))  # <- builtin-reduction-on-tensor
        """,
    "through an alias": """
        import builtins
        import torch
        total = sum
        def add(x: torch.Tensor):
            return builtins.max(x), sum(x)  # <- builtin-reduction-on-tensor
        """,
}


LOOP = """
import torch
def train(loader, model):
    for x in loader:
        model(x).backward()
        values = {}
        print(max(values)){}
"""


@pytest.mark.parametrize(
    ("values", "found"),
    [
        ("torch.randint(9, (2,))", False),
        ("torch.rand(16)", False),
        ("torch.tensor([1, 2, 3])", False),
        ("torch.tensor([1] * n).int() == 0", False),
        ("torch.rand(4) > 0.5", False),
        ("torch.rand(17)", True),
        ("torch.tensor([1] * n).cuda() == 0", True),
        ("torch.rand(17) > 0.5", True),
        ("torch.randint(9, (n,))", True),
        ("torch.rand(2).cuda()", True),
        ("torch.rand(2, device='cuda')", True),
        ("torch.rand(2) if x else torch.rand(20)", True),
    ],
)
def test_a_handful_on_the_cpu(values: str, found: bool) -> None:  # noqa: FBT001
    check_snippet(LOOP.format(values, f"  # <- {RULE}" if found else ""), RULE)


@pytest.mark.parametrize(("kind", "found"), [("nn.Module", False), ("nn.Linear", True)])
def test_what_a_module_gives_is_a_tensor_where_torch_says_so(kind: str, found: bool) -> None:  # noqa: FBT001
    mark = f"  # <- {RULE}" if found else ""
    check_snippet(
        f"""
        import torch
        from torch import nn
        class Net(nn.Module):
            def __init__(self, network: {kind}):
                super().__init__()
                self.network = network
            def forward(self, x):
                hits = self.network(x)
                return sum(hits){mark}
        """,
        RULE,
    )


@pytest.mark.parametrize("code", POSITIVE.values(), ids=POSITIVE.keys())
def test_flagged(code: str) -> None:
    check_snippet(code, RULE)


def test_look_alikes_obey_the_laws() -> None:
    text = files("torchlint.fixtures").joinpath("builtin_reduction_on_tensor/ok.py").read_text(encoding="utf-8")
    check_snippet(text, RULE)


def test_arrays_of_a_numpy_that_a_star_import_brings_along() -> None:
    check_snippet(
        """
import torch
from utility.batch_test import *
def best(log):
    recalls = np.array(log)
    return max(recalls[:, 0])
""",
        RULE,
    )
    check_snippet(
        f"""
import torch
from utility.batch_test import *
def best(log):
    recalls = torch.stack(log)
    return max(recalls[:, 0])  # <- {RULE}
""",
        RULE,
    )
