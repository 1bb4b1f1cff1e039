"""TL703: gradients that are exchanged for each batch, though the optimizer steps for several at once."""

from __future__ import annotations

from importlib.resources import files

import pytest
from laws import check_snippet

RULE = "ddp-accumulation-syncs"

HEAD = """
import torch
from torch.nn.parallel import DistributedDataParallel as DDP
def train(model, loader, optimizer, scaler, criterion, accumulation, args):
    model = DDP(model)
    for i, (x, y) in enumerate(loader):
"""

POSITIVE = {
    "by number": """
        loss = criterion(model(x), y)
        loss.backward()  # <- ddp-accumulation-syncs
        if (i + 1) % accumulation == 0:
            optimizer.step()
            optimizer.zero_grad()
""",
    "by number or at the end": """
        loss = criterion(model(x), y)
        loss.backward()  # <- ddp-accumulation-syncs
        if (i + 1) % args.every == 0 or (i + 1) == len(loader):
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
""",
    "in one of two ways": """
        loss = criterion(model(x), y)
        if args.amp:
            scaler.scale(loss).backward()  # <- ddp-accumulation-syncs
        else:
            loss.backward()
        if i % accumulation == 0:
            if args.amp:
                scaler.unscale_(optimizer)
                scaler.step(optimizer)
                scaler.update()
            else:
                optimizer.step()
            optimizer.zero_grad(set_to_none=True)
""",
    "the rest is left out": """
        loss = criterion(model(x), y)
        loss.backward()  # <- ddp-accumulation-syncs
        if i % accumulation != 0:
            continue
        optimizer.step()
        model.zero_grad()
""",
    "since the last": """
        criterion(model(x), y).backward()  # <- ddp-accumulation-syncs
        if i - args.last >= args.accumulate:
            optimizer.step()
            optimizer.zero_grad()
            args.last = i
""",
    "under a name": """
        is_last = (i + 1) % accumulation == 0
        criterion(model(x), y).backward()  # <- ddp-accumulation-syncs
        if is_last:
            optimizer.step()
            optimizer.zero_grad()
""",
}


@pytest.mark.parametrize("body", POSITIVE.values(), ids=POSITIVE.keys())
def test_flagged(body: str) -> None:
    check_snippet(HEAD + body.lstrip("\n"), RULE)


NEGATIVE = {
    "each batch": "loss.backward()\n        optimizer.step()\n        optimizer.zero_grad()",
    "no step": "loss.backward()",
    "one of two steps at each batch": (
        "loss.backward()\n        optimizer.step()\n        if i % 4 == 0:\n            args.other_optimizer.step()"
    ),
    "emptied at each batch": "optimizer.zero_grad()\n        loss.backward()\n        if i % 4 == 0:\n            optimizer.step()",
    "clipped at each batch": (
        "loss.backward()\n        torch.nn.utils.clip_grad_norm_(model.parameters(), 1)\n"
        "        if i % 4 == 0:\n            optimizer.step()"
    ),
    "backward now and then too": "if i % 4 == 0:\n            loss.backward()\n            optimizer.step()",
    "a condition of another kind": "loss.backward()\n        if args.train:\n            optimizer.step()",
    "seen to": (
        "with model.no_sync():\n            loss.backward()\n        if i % 4 == 0:\n            optimizer.step()"
    ),
    "seen to by hand": (
        "model.require_backward_grad_sync = i % 4 == 0\n        loss.backward()\n"
        "        if i % 4 == 0:\n            optimizer.step()"
    ),
}


@pytest.mark.parametrize("body", NEGATIVE.values(), ids=NEGATIVE.keys())
def test_silent(body: str) -> None:
    check_snippet(f"{HEAD}        loss = criterion(model(x), y)\n        {body}\n", RULE)


@pytest.mark.parametrize(
    ("line", "by"),
    [
        ("from torch.nn.parallel import DistributedDataParallel as DDP", "model"),
        ("from apex.parallel import DistributedDataParallel as DDP", "DDP(model)"),
        ("from torch.nn import DataParallel as DDP", "DDP(model)"),
    ],
)
def test_other_wrappers(line: str, by: str) -> None:
    body = POSITIVE["by number"].replace(f"  # <- {RULE}", "").lstrip("\n")
    head = HEAD.replace("from torch.nn.parallel import DistributedDataParallel as DDP", line).replace("DDP(model)", by)
    check_snippet(head + body, RULE)


def test_a_context_that_is_given_the_model_may_hold_the_exchange_back() -> None:
    body = POSITIVE["by number"].replace("        loss.backward()  # <- ddp-accumulation-syncs", "{backward}")
    held = "        with exchanged(model, i % accumulation == 0):\n            loss.backward()"
    check_snippet(HEAD + body.format(backward=held), RULE)
    other = "        with exchanged(loader):\n            loss.backward()  # <- ddp-accumulation-syncs"
    check_snippet(HEAD + body.format(backward=other), RULE)


def test_look_alikes_obey_the_laws() -> None:
    check_snippet(files("torchlint.fixtures").joinpath("ddp_accumulation_syncs/ok.py").read_text("utf-8"), RULE)


PARTS = """
from {module} import {wrapper}
def train(model, loader, optimizer, criterion):
    model = {wrapper}(model)
    for batch in loader:
        for {part} in batch.chunk(4):
            {body}
        {behind}
"""
BACKWARD = "criterion(model(part)).backward()"
DDP = {"module": "torch.nn.parallel", "wrapper": "DistributedDataParallel"}
FSDP = {"module": "torch.distributed.fsdp", "wrapper": "FullyShardedDataParallel"}


@pytest.mark.parametrize(
    ("wrapper", "part", "body", "behind"),
    [
        (DDP, "part", f"{BACKWARD}  # <- {RULE}", "optimizer.step()"),
        (DDP, "micro_batch", f"{BACKWARD}  # <- {RULE}", "optimizer.step()"),
        (FSDP, "part", f"{BACKWARD}  # <- {RULE}?", "optimizer.step()"),
        # look-alikes
        (DDP, "part", BACKWARD, "pass"),
        (DDP, "micro_batch", BACKWARD, "pass"),
        (DDP, "part", f"{BACKWARD}; optimizer.step()", "pass"),
        (DDP, "part", f"optimizer.zero_grad(); {BACKWARD}", "optimizer.step()"),
        (DDP, "part", f"with model.no_sync(): {BACKWARD}", "optimizer.step()"),
        (FSDP, "part", f"model.set_requires_gradient_sync(False); {BACKWARD}", "optimizer.step()"),
    ],
)
def test_parts_of_a_batch(wrapper: dict[str, str], part: str, body: str, behind: str) -> None:
    check_snippet(PARTS.format(**wrapper, part=part, body=body, behind=behind), RULE)
