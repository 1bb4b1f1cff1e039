"""TL706: what all processes exchange for each batch, and nobody computes with."""

from __future__ import annotations

from importlib.resources import files

import pytest
from laws import check_snippet

RULE = "collective-every-step-for-logging"

HEAD = """
import time
import numpy as np
import torch
import torch.distributed as dist
from helpers import reduce_tensor, reduce_loss_dict, reduce_features
def train(model, loader, optimizer, criterion, meter, args):
    total = 0
    for i, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""

POSITIVE = {
    "in place": """
        dist.all_reduce(loss)  # <- collective-every-step-for-logging
        print(loss.item() / dist.get_world_size())
""",
    "to the first": """
        dist.reduce(loss, 0)  # <- collective-every-step-for-logging
        if args.rank == 0:
            meter.update(loss.item())
""",
    "several": """
        acc = (model(x) == y).sum()
        dist.all_reduce(acc), dist.all_reduce(loss)  # <- collective-every-step-for-logging
        acc, loss = acc / args.n, loss / args.n
        meter.update(acc.item(), loss.item())
""",
    "by a function": """
        if args.distributed:
            reduced = reduce_tensor(loss.data, args.world_size).item()  # <- collective-every-step-for-logging
        else:
            reduced = loss.item()
        meter.update(reduced)
        print(f"{i} {reduced:.3f}")
""",
    "of a dictionary": """
        losses = reduce_loss_dict({"loss": loss})  # <- collective-every-step-for-logging
        value = losses["loss"].mean().item()
        print(value)
""",
    "added up": """
        total += reduce_tensor(loss.detach()).item()  # <- collective-every-step-for-logging
""",
    "whatever it is called": """
        dist.all_reduce(x)  # <- collective-every-step-for-logging
        print(x)
""",
    "a barrier": """
        dist.barrier()  # <- collective-every-step-for-logging
""",
}


@pytest.mark.parametrize("body", POSITIVE.values(), ids=POSITIVE.keys())
def test_flagged(body: str) -> None:
    check_snippet(HEAD + body.lstrip("\n"), RULE)


NEGATIVE = {
    "now and then": "if i % 100 == 0:\n            dist.all_reduce(loss)\n            print(loss.item())",
    "it decides": "dist.all_reduce(loss)\n        if loss.item() > 10:\n            break",
    "it decides as another": (
        "value = reduce_tensor(loss.data).item()\n        print(value)\n        if np.isnan(value):\n            raise ValueError"
    ),
    "computed with": "loss = reduce_tensor(loss)\n        loss.backward()",
    "features": "loss_features = reduce_features(x)\n        print(loss_features)",
    "no reader": "dist.all_reduce(loss)",
    "a handle": "work = dist.all_reduce(loss, async_op=True)\n        work.wait()\n        print(loss)",
    "a barrier for a file": "if i % 1000 == 0:\n            dist.barrier()",
    "a barrier behind what one does": "if dist.get_rank() == 0:\n            torch.save(x, y)\n        dist.barrier()",
    "a barrier for the clock": "dist.barrier()\n        meter.update(time.time() - args.start)",
    "at the end too": "last_batch = i == args.last\n        if last_batch or i % 100 == 0:\n            dist.all_reduce(loss)\n"
    "            print(loss.item())",
    "at the end, which somebody else tells": "if last_batch or i % args.log_interval == 0:\n            dist.all_reduce(loss)\n"
    "            print(loss.item())",
    "given back": "dist.all_reduce(loss)\n        yield loss",
}


@pytest.mark.parametrize("body", NEGATIVE.values(), ids=NEGATIVE.keys())
def test_silent(body: str) -> None:
    check_snippet(f"{HEAD}        {body}\n", RULE)


def test_a_function_of_the_file_is_known_by_what_it_does() -> None:
    check_snippet(
        """
        import torch
        import torch.distributed as dist
        def over_ranks_mean(x):
            x = x.clone()
            dist.all_reduce(x)
            return x / dist.get_world_size()
        def plain_mean(x):
            return x.mean()
        def validate(model, loader, criterion):
            total = other = 0.0
            with torch.no_grad():
                for x, y in loader:
                    loss = criterion(model(x), y)
                    total += over_ranks_mean(loss).item()  # <- collective-every-step-for-logging
                    other += plain_mean(loss).item()
            return total, other
        """,
        RULE,
    )


@pytest.mark.parametrize(
    ("call", "flagged"),
    [
        ('self.log("loss", loss, sync_dist=True)', True),
        ('self.log("loss", loss, on_step=True, on_epoch=True, sync_dist=True)', True),
        ('self.log_dict({"loss": loss}, sync_dist=True, prog_bar=True)', True),
        ('self.log("loss", loss, on_step=False, on_epoch=True, sync_dist=True)', False),
        ('self.log("loss", loss, sync_dist=False)', False),
        ('self.log("loss", loss)', False),
        ('self.log("accuracy", self.accuracy, sync_dist=True)', False),
        ('self.log("loss", loss, **self.options)', False),
    ],
)
@pytest.mark.parametrize("method", ["training_step", "validation_step"])
def test_lightning(call: str, flagged: bool, method: str) -> None:  # noqa: FBT001 - of a table
    mark = f"  # <- {RULE}" if flagged and method == "training_step" else ""
    check_snippet(
        f"""
        import lightning.pytorch as pl
        class Module(pl.LightningModule):
            def {method}(self, batch, batch_idx):
                loss = self.model(batch)
                {call}{mark}
                return loss
        """,
        RULE,
    )


def test_look_alikes_obey_the_laws() -> None:
    text = files("torchlint.fixtures").joinpath("collective_every_step_for_logging/ok.py").read_text("utf-8")
    check_snippet(text, RULE)


@pytest.mark.parametrize(
    ("called", "mark"),
    [
        ("", f"  # <- {RULE}?"),
        (f"for x in DataLoader(rows):\n    tell(model(x).mean())  # <- {RULE}\n", ""),
        ("tell(torch.zeros(3).mean())\n", ""),
    ],
)
def test_a_function_by_how_often_it_is_called(called: str, mark: str) -> None:
    head = "import torch\nimport torch.distributed as dist\nfrom torch.utils.data import DataLoader\n"
    check_snippet(f"{head}def tell(loss):\n    dist.all_reduce(loss){mark}\n    print(loss.item())\n{called}", RULE)


def test_gradients_that_are_flattened_are_reduced_for_the_step() -> None:
    """What a loop copies back piece by piece is no number for a log."""
    check_snippet(
        """
        import torch
        import torch.distributed as dist
        from torch._utils import _flatten_dense_tensors, _unflatten_dense_tensors
        def train(model, loader, optimizer):
            for x in loader:
                model(x.cuda()).sum().backward()
                grads = [p.grad.data for p in model.parameters()]
                flat = _flatten_dense_tensors(grads)
                dist.all_reduce(flat)
                flat /= dist.get_world_size()
                for grad, synced in zip(grads, _unflatten_dense_tensors(flat, grads)):
                    grad.copy_(synced)
                optimizer.step()
        """,
        "collective-every-step-for-logging",
    )


@pytest.mark.parametrize(
    "used",
    [
        "weights /= total",
        "optimizer.scale = max(total, 1)",
        "torch.sqrt(total).backward()",
    ],
)
def test_a_sum_that_is_computed_with(used: str) -> None:
    check_snippet(
        f"""
        import torch
        import torch.distributed as dist
        from torch.utils.data import DataLoader
        for x in DataLoader(rows):
            total = model(x).sum()
            dist.all_reduce(total)
            {used}
        """,
        RULE,
    )


def test_a_function_that_keeps_its_sum() -> None:
    check_snippet(
        """
        import torch
        import torch.distributed as dist
        class Center(torch.nn.Module):
            def reduce_center(self, x):
                self.sum = torch.sum(x, dim=0)
                dist.all_reduce(self.sum)
            def forward(self, x):
                self.reduce_center(x)
                return x - self.sum
        """,
        RULE,
    )


def test_what_a_network_sums_over_the_processes_is_no_metric() -> None:
    code = """
        import torch
        class Part(torch.nn.Module):
            def {}(self, ids):
                found = self.embed(ids)
                torch.distributed.all_reduce(found)
                return found
        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.part = Part()
            def forward(self, ids):
                found = self.part{}(ids){}
                return print(found)
    """
    check_snippet(code.format("forward", "", ""), RULE)
    check_snippet(code.format("told", ".told", f"  # <- {RULE}"), RULE)


@pytest.mark.parametrize(("method", "mark"), [("forward", ""), ("backward", ""), ("report", f"  # <- {RULE}?")])
def test_statistics_that_a_function_of_autograd_computes_with(method: str, mark: str) -> None:
    code = f"""
        import torch
        import torch.distributed as dist
        class SyncNorm(torch.autograd.Function):
            @staticmethod
            def {method}(self, x):
                var = x.var(0)
                dist.all_reduce(var){mark}
                self.log(var.item())
        """
    check_snippet(code, RULE)
