"""TL707: numbers and tensors that are pickled for each batch."""

from __future__ import annotations

from importlib.resources import files

import pytest
from laws import check_snippet

RULE = "object-collective-in-loop"

HEAD = """
import torch
import torch.distributed as dist
def train(model, loader, optimizer, criterion, found, tokenizer, options):
    for step, (x, y) in enumerate(loader):
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("line", "better"),
    [
        ("dist.all_gather_object(found, loss.item())", "all_gather"),
        ("dist.all_gather_object(found, {'loss': loss.item(), 'step': step})", "all_gather"),
        ("dist.all_gather_object(object_list=found, obj=[loss.detach(), len(x)])", "all_gather"),
        ("dist.gather_object(torch.stack([loss, loss]), found)", "gather"),
        ("dist.broadcast_object_list([loss.item() > 3], src=0)", "broadcast"),
        ("dist.scatter_object_list(found, [1.0, 2.0], src=0)", "scatter"),
    ],
)
def test_flagged(line: str, better: str) -> None:
    result = check_snippet(f"{HEAD}        {line}  # <- {RULE}\n", RULE)
    assert f"use `{better}`" in result.findings[0].help


def test_through_a_name() -> None:
    check_snippet(
        f"{HEAD}        figures = {{'loss': loss.item()}}\n        dist.all_gather_object(found, figures)  # <- {RULE}\n",
        RULE,
    )


@pytest.mark.parametrize(
    "line",
    [
        "dist.all_gather_object(found, tokenizer.decode(y))",
        "dist.all_gather_object(found, {'loss': loss.item(), 'text': 'a'})",
        "dist.all_gather_object(found, options)",
        "dist.all_gather_object(found, x)",
        "dist.all_gather_object(found, {**options})",
        "dist.all_gather_object(found, [*options])",
        "dist.all_gather_object(found, [])",
        "dist.all_gather_object(*options)",
        "dist.broadcast_object_list(found, src=0)",
        "dist.all_gather(found, loss.detach())",
        "if step % 100 == 0:\n            dist.all_gather_object(found, loss.item())",
    ],
)
def test_silent(line: str) -> None:
    check_snippet(f"{HEAD}        {line}\n", RULE)


def test_behind_the_loop() -> None:
    check_snippet(f"{HEAD}    dist.all_gather_object(found, loss.item())\n", RULE)


def test_look_alikes_obey_the_laws() -> None:
    check_snippet(files("torchlint.fixtures").joinpath("object_collective_in_loop/ok.py").read_text("utf-8"), RULE)


@pytest.mark.parametrize(
    ("called", "mark"),
    [
        ("", f"  # <- {RULE}?"),
        ("for x in DataLoader(rows):\n    share(len(x), [])\n", f"  # <- {RULE}"),
        ("share(3, [])\n", ""),
    ],
)
def test_a_function_by_how_often_it_is_called(called: str, mark: str) -> None:
    head = "import torch.distributed as dist\nfrom torch.utils.data import DataLoader\n"
    function = f"def share(number, found):\n    dist.all_gather_object(found, [1.0, 2.0]){mark}\n    return found\n"
    check_snippet(head + function + called, RULE)
