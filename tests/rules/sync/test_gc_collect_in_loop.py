"""TL322: a full collection of garbage at each batch is flagged, and deleted; not where it is rare or asked for."""

from __future__ import annotations

import textwrap

import pytest
from laws import check_snippet

RULE = "gc-collect-in-loop"
CACHE = "empty-cache-in-loop"
MARK = "  # <- gc-collect-in-loop"


def step(*lines: str, first: str = "") -> str:
    """A training loop that does this behind each step."""
    body = textwrap.indent("\n".join(lines), " " * 8)
    return (
        f"import gc\nimport time\nimport torch\n{first}\n\n"
        "def train(model, loader, optimizer, criterion, device, args):\n"
        "    for step, (inputs, targets) in enumerate(loader):\n"
        "        loss = criterion(model(inputs.to(device)), targets.to(device))\n"
        "        loss.backward()\n        optimizer.step()\n"
        f"{body}\n"
    )


@pytest.mark.parametrize(
    ("lines", "left"),
    [
        (("del loss", "gc.collect()" + MARK), ("del loss",)),
        (("if args.rank == 0:", "    gc.collect()" + MARK, "step"), ("step",)),
        (("gc.collect()  # tidy" + MARK, "step"), ("gc.collect()  # tidy", "step")),
        (("if args.cuda:", "    gc.collect()" + MARK, "    torch.cuda.empty_cache()  # <- empty-cache-in-loop", "step"), ("step",)),
    ],
)  # fmt: skip
def test_each_step(lines: tuple[str, ...], left: tuple[str, ...]) -> None:
    check_snippet(step(*lines), RULE, CACHE, fixed=step(*left))


@pytest.mark.parametrize(
    "lines",
    [
        ("if step % 100 == 0:", "    gc.collect()"),
        ("if args.free_memory:", "    gc.collect()  # <- gc-collect-in-loop?"),
        ("gc.collect(0)",),
        ("found = gc.collect()",),
        ("gc.collect()  # the hooks leak  # <- gc-collect-in-loop?",),
        ("try:", "    step", "finally:", "    gc.collect()"),
        ("args.spent.append(time.time() - args.start)", "gc.collect()"),
        ("with args.range('collect-garbage'):", "    gc.collect()  # <- gc-collect-in-loop?"),
    ],
)
def test_rare_or_asked_for(lines: tuple[str, ...]) -> None:
    check_snippet(step(*lines), RULE)


@pytest.mark.parametrize("first", ["gc.disable()", "gc.freeze()"])
def test_python_does_not_collect(first: str) -> None:
    check_snippet(step("gc.collect()", first=first), RULE)


def test_shards_are_no_batches() -> None:
    check_snippet(
        """
        import gc
        import torch
        def load(model, files):
            for file in files:
                model.load_state_dict(torch.load(file), strict=False)
                gc.collect()  # <- gc-collect-in-loop?
        """,
        RULE,
    )


def test_a_file_without_torch() -> None:
    check_snippet(
        """
        import gc
        def train(model, loader):
            for batch in loader:
                model.fit(batch)
                gc.collect()
        """,
        RULE,
    )


def test_who_looks_at_the_memory() -> None:
    check_snippet(
        """
        import gc
        import lightning as L
        import torch
        class MemoryTracker(L.Callback):
            def on_train_batch_end(self, trainer, *args):
                gc.collect()  # <- gc-collect-in-loop?
        class Cleaner(L.Callback):
            def on_train_batch_end(self, trainer, *args):
                gc.collect()  # <- gc-collect-in-loop?
        class Other(L.Callback):
            def on_train_batch_end(self, trainer, *args):
                gc.collect()  # <- gc-collect-in-loop
        """,
        RULE,
    )
