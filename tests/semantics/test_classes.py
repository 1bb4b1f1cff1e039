"""What classes are."""

from __future__ import annotations

import libcst as cst
import pytest
from looking import look

from torchlint.semantics.knowledge.conventions.convention import switched_off
from torchlint.semantics.knowledge.conventions.functions import NO_MODULE_BASE


@pytest.mark.parametrize(
    ("base", "is_module"),
    [
        ("nn.Module", True),
        ("lib.Block", True),
        ("torch.autograd.Function", False),
        ("object", False),
    ],
)
def test_what_a_class_with_forward_is_by_its_base(base: str, is_module: bool) -> None:  # noqa: FBT001
    code = (
        f"import lib\nimport torch\nfrom torch import nn\nclass A({base}):\n    def forward(self, x):\n        LOOK(x)"
    )
    node, context = look(code)
    owner = next(above for above in context.tree.ancestors(node) if isinstance(above, cst.ClassDef))
    assert context.classes.is_module(owner) is is_module


def test_a_function_of_autograd_is_no_module_whatever_its_name_suggests() -> None:
    code = "import torch\nclass A(torch.autograd.Function):\n    def forward(ctx, x):\n        LOOK(x)"
    node, context = look(code)
    owner = next(above for above in context.tree.ancestors(node) if isinstance(above, cst.ClassDef))
    with switched_off(NO_MODULE_BASE):
        assert not context.classes.is_module(owner)
