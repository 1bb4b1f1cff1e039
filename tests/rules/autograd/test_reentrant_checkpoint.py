"""TL413: checkpoints that leave the way they recompute to the default; what that recomputes, on CPU torch."""

from __future__ import annotations

import pytest
import torch
from laws import check_snippet
from torch.utils.checkpoint import checkpoint

RULE = "reentrant-checkpoint"
TOP = "import torch\nimport torch.utils.checkpoint as cp\nfrom torch.utils.checkpoint import checkpoint\n"


@pytest.mark.parametrize(
    ("call", "fixed"),
    [
        ("checkpoint(f, x)", "checkpoint(f, x, use_reentrant=False)"),
        ("cp.checkpoint(f, *xs)", "cp.checkpoint(f, *xs, use_reentrant=False)"),
        ("torch.utils.checkpoint.checkpoint(f, x)", "torch.utils.checkpoint.checkpoint(f, x, use_reentrant=False)"),
        ("cp.checkpoint_sequential(fs, 2, x)", "cp.checkpoint_sequential(fs, 2, x, use_reentrant=False)"),
        (
            "checkpoint(f, x, preserve_rng_state=False)",
            "checkpoint(f, x, preserve_rng_state=False, use_reentrant=False)",
        ),
        ("checkpoint(f, x,)", "checkpoint(f, x, use_reentrant=False,)"),
    ],
)
def test_left_to_the_default(call: str, fixed: str) -> None:
    check_snippet(f"{TOP}y = {call}  # <- {RULE}\n", RULE, fixed=f"{TOP}y = {fixed}\n")


@pytest.mark.parametrize(
    "code",
    [
        "y = checkpoint(f, x, use_reentrant=False)",
        "y = checkpoint(f, x, use_reentrant=True)",
        "y = checkpoint(f, x, **options)",
        "y = checkpoint(f, x, mask=mask)",
        "y = checkpoint(f, x, preserve_rng_state=False, mode='text')",
        "y = cp.checkpoint_sequential(fs, 2, x, True)",
        "y = checkpoint()",
        "y = saver.checkpoint(f, x)",
        "y = checkpoint(f, x) if old else checkpoint(f, x, use_reentrant=False)",
    ],
)
def test_said_or_out_of_sight(code: str) -> None:
    check_snippet(f"{TOP}{code}\n", RULE)


def test_keywords_for_the_function_raise_in_the_older_way() -> None:
    def function(x: torch.Tensor, scale: float) -> torch.Tensor:
        return x * scale

    inputs = torch.ones(1, requires_grad=True)
    with pytest.raises(ValueError, match="scale"):
        checkpoint(function, inputs, use_reentrant=True, scale=2.0)
    assert checkpoint(function, inputs, use_reentrant=False, scale=2.0).item() == 2.0


@pytest.mark.parametrize(("owner", "mark"), [("self", ""), ("self.stem", f"  # <- {RULE}")])
def test_an_encoder_that_is_frozen_as_a_whole(owner: str, mark: str) -> None:
    check_snippet(
        f"""
        from torch import nn
        from torch.utils.checkpoint import checkpoint
        class Encoder(nn.Module):
            def freeze(self):
                for parameter in {owner}.parameters():
                    parameter.requires_grad = False
            def forward(self, x):
                for block in self.blocks:
                    x = checkpoint(block, x){mark}
                return x
        """,
        RULE,
    )


@pytest.mark.parametrize(("reentrant", "calls"), [(True, 2), (False, 1)])
def test_what_is_recomputed(*, reentrant: bool, calls: int) -> None:
    layer = torch.nn.Linear(2, 2)
    seen = []

    def function(x: torch.Tensor) -> torch.Tensor:
        y = layer(x.sin())
        seen.append(y)
        return y

    checkpoint(function, torch.ones(1, 2, requires_grad=True), use_reentrant=reentrant).sum().backward()
    assert len(seen) == calls


@pytest.mark.parametrize(
    ("call", "fixed"),
    [
        ("checkpoint(f,\n               x)", "checkpoint(f,\n               x,\n               use_reentrant=False)"),
        ("checkpoint(\n    f,\n    x,\n)", "checkpoint(\n    f,\n    x,\n    use_reentrant=False,\n)"),
        ("checkpoint(\n    f,\n    x\n)", "checkpoint(\n    f,\n    x,\n    use_reentrant=False\n)"),
        ("checkpoint(\n    *fx,\n)", "checkpoint(\n    *fx,\n    use_reentrant=False,\n)"),
        ("checkpoint(\n    f, x\n)", "checkpoint(\n    f, x, use_reentrant=False\n)"),
        ("checkpoint(f, x,\n    y)", "checkpoint(f, x,\n    y, use_reentrant=False)"),
        ("checkpoint(\n    *fx\n)", "checkpoint(\n    *fx, use_reentrant=False\n)"),
        (
            "checkpoint(\n    f,  # of f\n\n    x,\n)",
            "checkpoint(\n    f,  # of f\n\n    x,\n    use_reentrant=False,\n)",
        ),
        (
            "checkpoint(\n    f,\n    x,  # of x\n)",
            "checkpoint(\n    f,\n    x, use_reentrant=False,  # of x\n)",
        ),
    ],
)
def test_an_argument_has_a_line_where_the_others_have(call: str, fixed: str) -> None:
    top = f"{TOP}\ndef run(f, x, y, fx):\n"
    call, fixed = (code.replace("\n", "\n    ") for code in (call, fixed))
    marked = call.replace("(", f"(  # <- {RULE}", 1) if call[11] == "\n" else call.replace("\n", f"  # <- {RULE}\n", 1)
    check_snippet(f"{top}    return {marked}\n", RULE, fixed=f"{top}    return {fixed}\n")


@pytest.mark.parametrize(
    ("test", "mark"),
    [("self.with_cp and x.requires_grad", "?"), ("self.with_cp", "?"), ("self.training", ""), ("x.requires_grad", "")],
)
def test_an_option_of_the_network(test: str, mark: str) -> None:
    check_snippet(
        f"""
        import torch
        from torch.utils.checkpoint import checkpoint
        class Block(torch.nn.Module):
            def forward(self, x):
                if {test}:
                    return checkpoint(self.inner, x)  # <- {RULE}{mark}
                return self.inner(x)
        """,
        RULE,
    )
