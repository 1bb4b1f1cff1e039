"""Whether autograd records."""

from __future__ import annotations

import pytest
from looking import look

from torchlint.semantics.execution.grad_mode import GradMode


@pytest.mark.parametrize(
    ("code", "mode"),
    [
        ("LOOK(1)", GradMode.ON),
        ("with torch.no_grad():\n    LOOK(1)", GradMode.OFF),
        ("with torch.inference_mode():\n    LOOK(1)", GradMode.OFF),
        ("with torch.inference_mode(False):\n    LOOK(1)", GradMode.ON),
        ("with torch.no_grad():\n    with torch.enable_grad():\n        LOOK(1)", GradMode.ON),
        ("with torch.set_grad_enabled(False):\n    LOOK(1)", GradMode.OFF),
        ("with torch.set_grad_enabled(train):\n    LOOK(1)", GradMode.UNKNOWN),
        ("torch.set_grad_enabled(False)\nLOOK(1)", GradMode.OFF),
        ("LOOK(1)\ntorch.set_grad_enabled(False)", GradMode.ON),
        ("with ExitStack() as stack:\n    stack.enter_context(torch.no_grad())\n    LOOK(1)", GradMode.OFF),
        ("with ExitStack() as stack:\n    LOOK(1)\n    stack.enter_context(torch.no_grad())", GradMode.ON),
        ("with torch.no_grad():\n    stack.enter_context(timer())\n    LOOK(1)", GradMode.OFF),
        ("@torch.no_grad()\ndef f():\n    LOOK(1)", GradMode.OFF),
        ("@torch.no_grad\ndef f():\n    LOOK(1)", GradMode.OFF),
        ("from torch import no_grad\n@no_grad()\ndef f():\n    LOOK(1)", GradMode.OFF),
        ("def f():\n    LOOK(1)\nwith torch.no_grad():\n    f()", GradMode.OFF),
        ("def f():\n    LOOK(1)\nwith torch.no_grad():\n    f()\nf()", GradMode.UNKNOWN),
        ("def f():\n    LOOK(1)", GradMode.ON),
        (
            (
                "def quiet(g):\n    def run(*a):\n        with torch.no_grad():\n            return g(*a)\n    return run\n"
                "@quiet\ndef f():\n    LOOK(1)"
            ),
            GradMode.OFF,
        ),
        (
            (
                "def loud(g):\n    def run(*a):\n        with torch.no_grad():\n            start()\n        return g(*a)\n"
                "    return run\n@loud\ndef f():\n    LOOK(1)"
            ),
            GradMode.ON,
        ),
        ("def plain(g):\n    return g\n@plain\ndef f():\n    LOOK(1)", GradMode.ON),
        ("def bare():\n    return run\n@bare\ndef f():\n    LOOK(1)", GradMode.ON),
        ("class M(L.LightningModule):\n    def validation_step(self, b):\n        LOOK(1)", GradMode.OFF),
        ("class M(L.LightningModule):\n    def training_step(self, b):\n        LOOK(1)", GradMode.ON),
    ],
)
def test_grad_mode(code: str, mode: GradMode) -> None:
    node, context = look("import torch\nimport lightning as L\n" + code)
    assert context.grad(node) is mode
