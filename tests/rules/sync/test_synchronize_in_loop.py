"""TL317: a wait for the device at each batch is flagged, and deleted; not where it times or orders anything."""

from __future__ import annotations

import textwrap

import pytest
from laws import check_snippet

RULE = "synchronize-in-loop"
MARK = "  # <- synchronize-in-loop"


def step(*lines: str) -> str:
    """A training loop that does this behind each step."""
    body = textwrap.indent("\n".join(lines), " " * 8)
    return (
        "import time\nimport torch\n\n\n"
        "def train(model, loader, optimizer, criterion, device, args, keep):\n"
        "    for step, (inputs, targets) in enumerate(loader):\n"
        "        loss = criterion(model(inputs.to(device)), targets.to(device))\n"
        "        loss.backward()\n        optimizer.step()\n"
        f"{body}\n"
    )


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        (("torch.cuda.synchronize()" + MARK, "keep(loss)"), ("keep(loss)",)),
        (("torch.cuda.synchronize(device)" + MARK, "keep(loss)"), ("keep(loss)",)),
        (("torch.accelerator.synchronize()" + MARK, "keep(loss)"), ("keep(loss)",)),
        (("if device.type == 'cuda':", "    torch.cuda.synchronize()" + MARK, "keep(loss)"), ("keep(loss)",)),
        (("if args.rank == 0:", "    torch.cuda.synchronize()" + MARK, "    keep(1)"), ("if args.rank == 0:", "    keep(1)")),
    ],
)  # fmt: skip
def test_each_step(lines: tuple[str, ...], left: tuple[str, ...]) -> None:
    check_snippet(step(*lines), RULE, fixed=step(*left))


@pytest.mark.parametrize(
    "lines",
    [
        ("if step % 100 == 0:", "    torch.cuda.synchronize()"),
        ("if args.debug:", "    torch.cuda.synchronize()  # <- synchronize-in-loop?"),
        ("torch.cuda.synchronize()", "keep(time.time())"),
        ("torch.cuda.synchronize()  # workaround for a fault in the driver  # <- synchronize-in-loop?",),
        ("# ensures that the pages have arrived", "torch.cuda.synchronize()  # <- synchronize-in-loop?", "keep(loss)"),
        ("with keep.range('synchronize'):", "    torch.cuda.synchronize()  # <- synchronize-in-loop?", "keep(loss)"),
        ("# To protect against a race.", "torch.cuda.synchronize()  # <- synchronize-in-loop?"),
        ("# make sure that the gradients are there", "torch.cuda.synchronize()  # <- synchronize-in-loop?"),
        ("for request in torch.distributed.batch_isend_irecv(ops):", "    request.wait()", "torch.cuda.synchronize()"),
        ("copy = loss.to('cpu', non_blocking=True)", "torch.cuda.synchronize()", "keep(copy)"),
        ("with torch.cuda.stream(args.stream):", "    keep(loss)", "torch.cuda.synchronize()"),
        ("end = torch.cuda.Event(enable_timing=True)", "end.record()", "torch.cuda.synchronize()"),
        ("torch.cuda.synchronize", "torch.cuda.current_device()"),
    ],
)
def test_rare_or_of_use(lines: tuple[str, ...]) -> None:
    check_snippet(step(*lines), RULE)


def test_functions_that_measure() -> None:
    check_snippet(
        """
        import torch
        @torch.no_grad()
        def benchmark(model, loader):
            for inputs in loader:
                model(inputs.cuda())
                torch.cuda.synchronize()  # <- synchronize-in-loop?
        def time_sync():
            torch.cuda.synchronize()  # <- synchronize-in-loop?
            return 1
        def evaluate(model, loader):
            for inputs in loader:
                model(inputs.cuda())
                time_sync()
        """,
        RULE,
    )


def test_in_a_network() -> None:
    check_snippet(
        """
        import torch
        from torch import nn
        class Net(nn.Module):
            def forward(self, x):
                x = self.first(x)
                torch.cuda.synchronize()  # <- synchronize-in-loop
                return self.second(x)
        """,
        RULE,
    )


def test_a_step_that_its_caller_times() -> None:
    check_snippet(
        """
        import time
        import torch


        class Trainer:
            def train_step(self, inputs, targets):
                loss = self.criterion(self.model(inputs), targets)
                loss.backward()
                self.optimizer.step()
                torch.cuda.synchronize()
                return loss


        def run(train_step, loader, log):
            end = time.time()
            for inputs, targets in loader:
                train_step(inputs.cuda(), targets.cuda())
                log(time.time() - end)
                end = time.time()
        """,
        RULE,
    )


def test_an_optimizer_on_the_cpu() -> None:
    check_snippet(
        """
        import torch


        class HostSGD(torch.optim.Optimizer):
            def step(self):
                torch.cuda.synchronize()
                for group in self.param_groups:
                    for weight in group["params"]:
                        host = weight.grad.to(device="cpu")
                        self.native.update(weight.host, host)
                        weight.data.copy_(weight.host)
        """,
        RULE,
    )


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        (("", "torch.cuda.synchronize()" + MARK, "", "keep(loss)"), ("", "keep(loss)")),
        (("", "torch.cuda.synchronize()" + MARK, "keep(loss)"), ("", "keep(loss)")),
        (("", "torch.cuda.synchronize()" + MARK, "# the loss", "keep(loss)"), ("", "# the loss", "keep(loss)")),
        (("", "# the loss", "torch.cuda.synchronize()" + MARK, "keep(loss)"), ("", "# the loss", "keep(loss)")),
        (("keep(loss)", "", "torch.cuda.synchronize()" + MARK), ("keep(loss)",)),
    ],
)
def test_paragraphs_stay_apart(lines: tuple[str, ...], left: tuple[str, ...]) -> None:
    check_snippet(step(*lines), RULE, fixed=step(*left))
