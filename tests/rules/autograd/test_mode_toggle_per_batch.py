"""TL410: a mode that is set at each batch is flagged, where nothing in the loop may set another."""

from __future__ import annotations

import textwrap

import pytest
from laws import check_snippet

RULE = "mode-toggle-per-batch"
MARK = "  # <- mode-toggle-per-batch"


def loop(*lines: str) -> str:
    """A training loop that does this at the start of each step."""
    body = textwrap.indent("\n".join(lines), " " * 8)
    return (
        "import torch\nfrom torch import nn\n\n\n"
        "def sample(model):\n"
        "    model.eval()\n\n\n"
        "def squeeze(model):\n"
        "    return model.weight.abs()\n\n\n"
        "def train(model: nn.Module, other: nn.Module, loader, optimizer, evaluate, debug):\n"
        "    for step, inputs in enumerate(loader):\n"
        f"{body}\n"
        "        model(inputs.cuda()).mean().backward()\n"
        "        optimizer.step()\n"
    )


@pytest.mark.parametrize(
    "lines",
    [
        ("model.train()" + MARK,),
        ("model.train(True)" + MARK,),
        ("model.eval()" + MARK,),
        ("model.train()" + MARK, "other.train()" + MARK),
        ("model.train()" + MARK, "squeeze(model)"),
        ("model.train()" + MARK, "print(step)"),
        ("model.train()" + MARK, "other(inputs)", "torch.logsumexp(inputs, 0)"),
    ],
)
def test_each_batch(lines: tuple[str, ...]) -> None:
    check_snippet(loop(*lines), RULE)


@pytest.mark.parametrize(
    "lines",
    [
        ("model.train()", "model.eval()"),
        ("model.train()", "other.eval()"),
        ("model.train()", "sample(model)"),
        ("if debug:", "    model.train()"),
        ("if step % 100 == 0:", "    model.train()"),
        ("other = nn.Linear(2, 2)", "other.train()"),
        ("model.train(debug)",),
        ("loader.train()",),
        ("squeeze(model.train())",),
    ],
)
def test_it_may_change(lines: tuple[str, ...]) -> None:
    check_snippet(loop(*lines), RULE)


@pytest.mark.parametrize("call", ["evaluate(model)", "debug.runValidation(model)", "debug.fire_event(step)"])
def test_what_may_change_it_by_its_name_is_noted(call: str) -> None:
    check_snippet(loop(f"model.train()  # <- {RULE}?", call), RULE)


def test_once_an_epoch() -> None:
    check_snippet(
        """
        import torch
        from torch import nn
        def train(model: nn.Module, loader, optimizer, epochs):
            for epoch in range(epochs):
                model.train()
                for inputs in loader:
                    model(inputs.cuda()).mean().backward()
                    optimizer.step()
        """,
        RULE,
    )


def test_one_step_in_a_function() -> None:
    check_snippet(
        """
        import torch
        from torch import nn
        def step(model: nn.Module, inputs, optimizer):
            model.train()
            model(inputs.cuda()).mean().backward()
            optimizer.step()
        def train(model: nn.Module, loader, optimizer):
            for inputs in loader:
                step(model, inputs, optimizer)
        """,
        RULE,
    )


def test_a_loop_over_loaders() -> None:
    check_snippet(
        """
        import torch
        from torch import nn


        def score(model: nn.Module, test_loaders):
            for test_loader in test_loaders:
                model.eval()
                for inputs in test_loader:
                    with torch.no_grad():
                        print(model(inputs.cuda()).mean())
        """,
        RULE,
    )


def test_a_network_of_one_layer() -> None:
    check_snippet(
        """
        import torch
        from torch import nn


        class Probe(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.project = nn.Linear(width, 2)

            def forward(self, inputs):
                return self.project(inputs)


        def fit(loader, optimizer):
            probe = Probe(8).cuda()
            for inputs in loader:
                probe.train()
                probe(inputs.cuda()).mean().backward()
                optimizer.step()
        """,
        RULE,
    )


def test_a_model_that_is_wrapped_at_each_turn() -> None:
    code = """
        import torch
        from torch import nn


        def evaluate(model: nn.Module, loaders):
            for loader in loaders:
                model = nn.DataParallel(model)
                for inputs in loader:
                    model.eval()  # <- mode-toggle-per-batch
                    model(inputs.cuda())
    """
    check_snippet(code, RULE)
    # Where only what wraps it binds the name, there is no end to what it may hold.
    check_snippet(code.replace("model: nn.Module, loaders", "loaders"), RULE)
