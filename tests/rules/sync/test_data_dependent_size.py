"""TL312: results as long as the data says are flagged, unless the host tells how long they are."""

from __future__ import annotations

import pytest
from laws import check_snippet
from twins import findings

from torchlint.finding import Doubt

RULE = "data-dependent-size"
MARK = "  # <- data-dependent-size"


def module(*lines: str) -> str:
    """A network that computes this of its arguments."""
    body = "".join(f"        {line}\n" for line in lines)
    return (
        "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\n"
        "class Net(nn.Module):\n"
        f"    def forward(self, x: torch.Tensor, y: torch.Tensor, z):\n{body}"
    )


@pytest.mark.parametrize(
    "lines",
    [
        ("return F.one_hot(y)" + MARK,),
        ("return torch.bincount(y, minlength=8)" + MARK,),
        ("return y.bincount(minlength=8)" + MARK,),
        ("lengths = torch.tensor([1, 2], device=x.device)", "return x.repeat_interleave(lengths, 0)" + MARK),
        ("lengths = torch.tensor(z).to(x.device)", "return torch.repeat_interleave(x, lengths, dim=0)" + MARK),
        ("return x.repeat_interleave(y, dim=0)" + MARK + "?",),
        ("return torch.repeat_interleave(y)" + MARK + "?",),
        ("return torch.repeat_interleave(x, repeats=y, dim=0)" + MARK + "?",),
        ("return (x > 0).nonzero()" + MARK + "?",),
        ("return torch.nonzero(x > 0, as_tuple=True)" + MARK + "?",),
        ("return torch.argwhere(x > 0)" + MARK + "?",),
        ("return torch.where(x > 0)" + MARK + "?",),
        ("return x.unique()" + MARK + "?",),
        ("return torch.unique_consecutive(x)" + MARK + "?",),
        ("return torch.bincount(y)" + MARK + "?",),
        ("return torch.masked_select(x, x > 0)" + MARK + "?",),
        ("return x.masked_select(x > 0)" + MARK + "?",),
    ],
)
def test_asks_the_device(lines: tuple[str, ...]) -> None:
    check_snippet(module(*lines), RULE)


@pytest.mark.parametrize(
    "lines",
    [
        ("return F.one_hot(y, 8) + F.one_hot(y, num_classes=8)",),
        ("return x.repeat_interleave(2, dim=0)",),
        ("return x.repeat_interleave(len(z), dim=0)",),
        ("return x.repeat_interleave(y, dim=0, output_size=8)",),
        ("return torch.repeat_interleave(x, y, dim=0, output_size=z)",),
        ("return torch.where(x > 0, x, y)",),
        ("return self.table.unique()",),
        ("if y.is_cuda:", "    return y", "return y.unique()"),
        ("if y.is_cuda:", "    return y", "else:", "    return y.unique()"),
        ("if not y.is_cuda:", "    return torch.bincount(y, minlength=8)", "return y"),
        ("return y.unique() if y.is_cpu else y",),
        ('if y.device.type != "cpu":', "    raise ValueError(y)", "return y.unique()"),
        ('if y.device.type == "cuda":', "    return y", "return y.unique()"),
        ('if y.device.type == "cpu":', "    return y", "return y.unique()" + MARK + "?"),
        ("return (x > 0).cpu().nonzero()",),
        ("return x.cpu().masked_select(y.cpu() > 0)",),
        ("mask = x > 0", "if mask.any():", "    return x.masked_select(mask)", "return x"),
        ("if (x > 0).any():", "    return x", "return torch.nonzero_static(x > 0, size=4)"),
        ("mask = x > 0", "if mask.any():", "    return mask.nonzero()", "return x"),
    ],
)
def test_is_told(lines: tuple[str, ...]) -> None:
    check_snippet(module(*lines), RULE)


def test_selections_by_one_mask_are_one_finding() -> None:
    lines = ("a = torch.masked_select(x, z > 0)", "b = y.masked_select(z > 0)", "return a, b, x.masked_select(y > 0)")
    first, second = findings(module(*lines), RULE)
    assert (len(first.places), len(second.places)) == (1, 0)


def test_a_guess_is_not_worth_a_word() -> None:
    check_snippet("import torch\n\n\ndef pick(scores: torch.Tensor):\n    return (scores > 0).nonzero()\n", RULE)


def test_a_guess_of_a_function_that_is_told_where_to_work_is_one() -> None:
    code = """import torch


class PixelSampler:
    def sample(self, mask: torch.Tensor, count: int, device: torch.device):
        return torch.nonzero(mask)[torch.randint(0, 8, (count,), device=device)]  # <- data-dependent-size?
"""
    check_snippet(code, RULE)


GRAPHS = """import torch
from torch import nn
from torch_geometric.nn import global_mean_pool
from torch_geometric.utils import degree, scatter
from torch_geometric.utils.num_nodes import maybe_num_nodes
from torch_scatter import scatter_mean


class Net(nn.Module):
    def forward(self, x: torch.Tensor, edges: torch.Tensor, batch: torch.Tensor, num_nodes=None):
        {line}
"""


@pytest.mark.parametrize(
    "line",
    [
        "return global_mean_pool(x, batch)" + MARK + "?",
        "return global_mean_pool(x, batch, size=None)" + MARK + "?",
        "return degree(edges[0])" + MARK + "?",
        "return scatter(x, batch, dim=0, reduce='sum')" + MARK + "?",
        "return scatter_mean(x, batch, dim=0)" + MARK + "?",
        "return maybe_num_nodes(edges, num_nodes)" + MARK + "?",
        f"_, same = torch.unique(edges, return_inverse=True){MARK}?\n        return scatter_mean(x, same, dim=0)"
        + MARK,
        "return global_mean_pool(x, batch, 8)",
        "return global_mean_pool(x, None)",
        "return degree(edges[0], x.size(0))",
        "return scatter(x, batch, dim=0, dim_size=x.size(0))",
        "return scatter(x.cpu(), batch.cpu(), dim=0)",
    ],
)
def test_helpers_that_look_for_the_largest_index(line: str) -> None:
    check_snippet(GRAPHS.format(line=line), RULE)


def test_a_size_that_nothing_in_sight_knows_is_told_as_that() -> None:
    (found,) = findings(GRAPHS.format(line="return global_mean_pool(x, batch)"), RULE)
    assert found.help == "pass `size=`, if the CPU knows it"


@pytest.mark.parametrize("asked", ["if x.is_cuda:", "if not x.is_cpu:"])
def test_the_branch_for_tensors_on_the_cpu(asked: str) -> None:
    lines = (
        asked,
        "    return torch.histc(x, 8)",
        "else:",
        "    return torch.bincount(x.reshape(-1).long(), minlength=8)",
    )
    check_snippet(module(*lines), RULE)


def test_a_name_of_code_for_samples_is_a_doubt() -> None:
    code = module(f"return F.one_hot(y){MARK}?").replace("Net(", "RandomLabels(")
    assert Doubt.NAMED_OTHERWISE in check_snippet(code, RULE).findings[0].doubts
