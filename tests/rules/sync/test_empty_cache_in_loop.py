"""TL318: a cache that is emptied at each batch is flagged, and deleted; not where memory is short or somebody asks."""

from __future__ import annotations

import textwrap

import pytest
from laws import check_snippet

RULE = "empty-cache-in-loop"
MARK = "  # <- empty-cache-in-loop"


def step(*lines: str) -> str:
    """A training loop that does this behind each step."""
    body = textwrap.indent("\n".join(lines), " " * 8)
    return (
        "import torch\nfrom torch import nn\n\n\n"
        "def train(model, loader, optimizer, criterion, device, args):\n"
        "    for step, (inputs, targets) in enumerate(loader):\n"
        "        loss = criterion(model(inputs.to(device)), targets.to(device))\n"
        "        loss.backward()\n        optimizer.step()\n"
        f"{body}\n"
    )


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        (("torch.cuda.empty_cache()" + MARK, "print(step)"), ("print(step)",)),
        (("torch.accelerator.empty_cache()" + MARK, "print(step)"), ("print(step)",)),
        (("if torch.cuda.is_available():", "    torch.cuda.empty_cache()" + MARK, "step"), ("step",)),
        (("if device.type == 'cuda': torch.cuda.empty_cache()" + MARK, "step"), ("step",)),
        (("del inputs, loss", "torch.cuda.empty_cache()" + MARK), ("del inputs, loss",)),
        (("# tidy up", "torch.cuda.empty_cache()" + MARK, "step"), ("# tidy up", "step")),
        (
            ("if args.cuda:", "    torch.cuda.empty_cache()" + MARK, "else:", "    step"),
            ("if args.cuda:", "    pass", "else:", "    step"),
        ),
        (
            ("with torch.cuda.device(device):", "    torch.cuda.empty_cache()" + MARK),
            ("with torch.cuda.device(device):", "    pass"),
        ),
        (("torch.cuda.empty_cache(); step" + MARK,), ("torch.cuda.empty_cache(); step",)),
        # No comment goes with a statement.
        (("torch.cuda.empty_cache()  # tidy" + MARK, "step"), ("torch.cuda.empty_cache()  # tidy", "step")),
        (
            ("torch.cuda.empty_cache(" + MARK, "    # tidy", ")", "step"),
            ("torch.cuda.empty_cache(", "    # tidy", ")", "step"),
        ),
        (
            ("if torch.cuda.is_available():  # tidy", "    torch.cuda.empty_cache()" + MARK, "step"),
            ("if torch.cuda.is_available():  # tidy", "    pass", "step"),
        ),
    ],
)
def test_each_step(lines: tuple[str, ...], left: tuple[str, ...]) -> None:
    check_snippet(step(*lines), RULE, fixed=step(*left))


@pytest.mark.parametrize(
    "lines",
    [
        ("if step % 100 == 0:", "    torch.cuda.empty_cache()"),
        ("if args.low_memory:", "    torch.cuda.empty_cache()  # <- empty-cache-in-loop?"),
        ("if args.tidy:", "    torch.cuda.empty_cache()  # <- empty-cache-in-loop?"),
        ("if torch.cuda.memory_reserved() > 2**30:", "    torch.cuda.empty_cache()"),
        ("if train_step == args.pretrain_steps and args.save:", "    torch.cuda.empty_cache()"),
        ("try:", "    pass", "except RuntimeError:", "    torch.cuda.empty_cache()"),
        ("torch.cuda.empty_cache()  # needed: the lengths differ  # <- empty-cache-in-loop?",),
        ("# avoids running out of memory", "torch.cuda.empty_cache()  # <- empty-cache-in-loop?"),
        ("cache = torch.cuda.empty_cache",),
        ("if loss.isnan():", "    torch.cuda.empty_cache()", "    raise ValueError"),
    ],
)
def test_rare_or_asked_for(lines: tuple[str, ...]) -> None:
    check_snippet(step(*lines), RULE)


def test_once_an_epoch() -> None:
    check_snippet(
        """
        import torch
        def train(model, loader, optimizer, epochs):
            for epoch in range(epochs):
                for batch in loader:
                    model(batch).mean().backward()
                    optimizer.step()
                torch.cuda.empty_cache()
        """,
        RULE,
    )


def test_a_helper_is_not_to_blame() -> None:
    check_snippet(
        """
        import torch
        def free_memory():
            torch.cuda.empty_cache()  # <- empty-cache-in-loop?
        def train(model, loader, optimizer):
            for batch in loader:
                model(batch.cuda()).mean().backward()
                optimizer.step()
                free_memory()
        """,
        RULE,
    )


def test_the_method_of_a_network() -> None:
    check_snippet(
        """
        import lightning as L
        import torch
        class Net(L.LightningModule):
            def training_step(self, batch, batch_idx):
                loss = self.net(batch).mean()
                torch.cuda.empty_cache()  # <- empty-cache-in-loop
                return loss
            def on_train_epoch_end(self):
                torch.cuda.empty_cache()
        """,
        RULE,
    )


@pytest.mark.parametrize(
    ("test", "mark"),
    [("self.cpu_cache", "  # <- empty-cache-in-loop?"), ("self.training", "  # <- empty-cache-in-loop")],
)
def test_frames_one_by_one_since_memory_is_short(test: str, mark: str) -> None:
    check_snippet(
        f"""
        import torch
        from torch import nn
        class Net(nn.Module):
            def forward(self, frames):
                if {test}:
                    outputs = []
                    for batch in frames:
                        outputs.append(self.net(batch.cuda()).cpu())
                        torch.cuda.empty_cache(){mark}
                    return torch.cat(outputs)
                return self.net(frames)
        """,
        RULE,
    )


@pytest.mark.parametrize(
    ("turn", "mark"), [("args.pretrain_steps", ""), ("args.accumulate", "  # <- empty-cache-in-loop")]
)
def test_at_one_step_of_all(turn: str, mark: str) -> None:
    lines = (f"if train_step == {turn}:", f"    torch.cuda.empty_cache(){mark}")
    check_snippet(step(*lines), RULE)


def test_where_the_loop_notes_what_it_has_done() -> None:
    check_snippet(
        """
        import torch
        def replace(model, old, new):
            for name, module in model.named_children():
                is_replaced = False
                if isinstance(module, old):
                    setattr(model, name, new(module))
                    is_replaced = True
                if is_replaced:
                    torch.cuda.empty_cache()  # <- empty-cache-in-loop?
                if new.clears:
                    torch.cuda.empty_cache()  # <- empty-cache-in-loop?
        """,
        RULE,
    )
