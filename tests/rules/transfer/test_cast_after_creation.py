"""TL221: tensors that are made in one type only to be cast to another; that every type holds what they are filled with."""

from __future__ import annotations

import textwrap
from importlib.resources import files

import pytest
import torch
from laws import check_snippet

RULE = "cast-after-creation"
MARK = f"  # <- {RULE}"


def forward(line: str) -> str:
    return (
        "import torch\nclass Mask(torch.nn.Module):\n    def forward(self, x):\n        n = x.shape[1]\n"
        f"        {line}\n        return x + y\n"
    )


@pytest.mark.parametrize(
    ("line", "fixed"),
    [
        ("y = torch.ones(n, n).bool()", "y = torch.ones(n, n, dtype=torch.bool)"),
        ("y = torch.zeros(n, n).long()", "y = torch.zeros(n, n, dtype=torch.int64)"),
        ("y = torch.zeros((n, n)).to(torch.long)", "y = torch.zeros((n, n), dtype=torch.long)"),
        ("y = torch.zeros(x.shape).type(torch.half)", "y = torch.zeros(x.shape, dtype=torch.half)"),
        ("y = torch.eye(n).to(dtype=torch.bool)", "y = torch.eye(n, dtype=torch.bool)"),
        ("y = torch.full((n, n), 1).bool()", "y = torch.full((n, n), 1, dtype=torch.bool)"),
        (
            "y = torch.tril(torch.ones(n, n, device=x.device)).to(torch.bool)",
            "y = torch.tril(torch.ones(n, n, device=x.device, dtype=torch.bool))",
        ),
        (
            "y = torch.triu(torch.ones(n, n), diagonal=1).bool()",
            "y = torch.triu(torch.ones(n, n, dtype=torch.bool), diagonal=1)",
        ),
        ("y = torch.ones(n, n).tril(-1).bool()", "y = torch.ones(n, n, dtype=torch.bool).tril(-1)"),
        ("y = ~torch.ones(n, n,).bool()", "y = ~torch.ones(n, n, dtype=torch.bool,)"),
    ],
)
def test_flagged(line: str, fixed: str) -> None:
    check_snippet(forward(line + MARK), RULE, fixed=forward(fixed))


@pytest.mark.parametrize(
    "line",
    [
        "y = torch.ones(n, n).float()",
        "y = torch.ones(n, n).to(x)",
        "y = torch.tril(torch.ones(n, n), out=self.kept).bool()",
        "y = torch.ones(n, n).to(x.dtype)",
        "y = torch.ones(n, n).to(torch.bool, copy=True)",
        "y = torch.ones(n, n).sum().bool()",
        "y = torch.ones(n, n, dtype=torch.uint8).bool()",
        "y = torch.ones(n).long()",
        "y = torch.zeros([n]).int()",
        "y = torch.ones(4, 4).long()",
        "y = torch.zeros(n, 4).long()",
        "y = torch.full((n, n), 2).byte()",
        "y = torch.full((n, n), x).bool()",
        "y = torch.full((n, n), 0).long()",
        "y = torch.ones(*x.shape).bool()",
        "y = torch.rand(n, n).half()",
        "y = torch.bool",
    ],
)
def test_silent(line: str) -> None:
    check_snippet(forward(line), RULE)


def test_a_function_that_nobody_calls_is_a_note() -> None:
    check_snippet(f"import torch\ndef mask(n, k):\n    return torch.ones(n, k).bool(){MARK}?\n", RULE)


def test_a_script_makes_it_once() -> None:
    check_snippet("import torch\nmask = torch.ones(1000, 1000).bool()\n", RULE)


def test_what_joins_samples_works_beside_the_device() -> None:
    check_snippet(
        """
import torch
from torch.utils.data import DataLoader
def collate(rows):
    targets = torch.zeros(len(rows), max(map(len, rows))).long()
    return targets
def train(model, data, optimizer):
    for x in DataLoader(data, collate_fn=collate):
        model(x).mean().backward()
        optimizer.step()
""",
        RULE,
    )


def test_comments_are_kept() -> None:
    code = """
        import torch
        class Mask(torch.nn.Module):
            def forward(self, x):
                n = x.shape[1]
                return torch.ones(  # <- {}
                    n,
                    n,  # rows
                ).bool()
    """
    text = textwrap.dedent(code).format(RULE)
    check_snippet(text, RULE, fixed=text.replace(f"  # <- {RULE}", ""))


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int8, torch.int64, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("name", ["zeros", "ones"])
def test_every_type_holds_them(name: str, dtype: torch.dtype) -> None:
    make = getattr(torch, name)
    cast = torch.tril(make(3, 3)).to(dtype)
    typed = torch.tril(make(3, 3, dtype=dtype))
    assert torch.equal(cast, typed)
    assert (cast.dtype, cast.stride()) == (typed.dtype, typed.stride())


def test_look_alikes_obey_the_laws() -> None:
    check_snippet(files("torchlint.fixtures").joinpath("cast_after_creation/ok.py").read_text("utf-8"), RULE)


def test_a_triangle_in_bfloat16_is_left_as_it_is() -> None:
    """Older versions of torch have no `tril` of bfloat16 on CUDA; the factory alone has always known the type."""
    line = "y = torch.tril(torch.ones(n, n)).to(torch.bfloat16)"
    check_snippet(forward(line + MARK), RULE, fixed=forward(line))
    plain = "y = torch.ones(n, n).to(torch.bfloat16)"
    check_snippet(forward(plain + MARK), RULE, fixed=forward("y = torch.ones(n, n, dtype=torch.bfloat16)"))
