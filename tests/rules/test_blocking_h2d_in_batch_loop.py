"""TL203: batches whose copy to the device the CPU waits for; which fixes are safe."""

from __future__ import annotations

import textwrap

import pytest
from laws import check_snippet

from torchlint.finding import Applicability

RULE = "blocking-h2d-in-batch-loop"
MARK = f"  # <- {RULE}"
HEAD = "import torch\nfrom torch.autograd import Variable\nfrom torch.utils.data import DataLoader\n"


def step(*lines: str, loop: str = "for x, y in loader:", loader: str = "") -> str:
    body = textwrap.indent("\n".join(lines), " " * 8)
    made = f"    loader = {loader}\n" if loader else ""
    return (
        f"{HEAD}def train(model, loader, device, data):\n{made}    {loop}\n{body}\n        model(x).sum().backward()\n"
    )


@pytest.mark.parametrize(
    ("line", "fixed"),
    [
        ("x = x.to(device)", "x = x.to(device, non_blocking=True)"),
        ("x = x.cuda()", "x = x.cuda(non_blocking=True)"),
        ("x = x.cuda(0)", "x = x.cuda(0, non_blocking=True)"),
        ("x = x.to(device=device)", "x = x.to(device=device, non_blocking=True)"),
        ("x, y = x.cuda(), y.cuda()", "x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)"),
        ("x = Variable(x.cuda())", "x = Variable(x.cuda(non_blocking=True))"),
        ("x = Variable(x).cuda()", "x = Variable(x).cuda(non_blocking=True)"),
        ("ys = [part.to(device) for part in y]", "ys = [part.to(device, non_blocking=True) for part in y]"),
    ],
)
def test_a_move_that_waits(line: str, fixed: str) -> None:
    check_snippet(step(line + MARK), RULE, fixed=step(fixed))


@pytest.mark.parametrize(
    ("loop", "line"),
    [
        ("for i, (x, y) in enumerate(tqdm(loader)):", "x = x.to(device)"),
        ("for batch in loader:", "x = batch['image'].to(device)"),
        ("for batch in loader:", "x = batch[0].to(device)"),
        ("for batch in loader:", "x = {name: part.to(device) for name, part in batch.items()}"),
    ],
)
def test_parts_of_a_batch(loop: str, line: str) -> None:
    check_snippet(step(line + MARK, loop=loop), RULE)


@pytest.mark.parametrize(
    "line",
    [
        "x = x.to(device, non_blocking=True)",
        "x = x.cuda(non_blocking=False)",
        "x = x.to(device, torch.float32)",
        "x = x.to(torch.float32)",
        "x = x.to('cpu')",
        "x = torch.cat([x, y]).to(device)",
        "x, size = y.to(device)",
        "x = x.to('mps')",
        "print(x.ndata)\nx = x.to(device)",
        "x = x.to(device)\nprint(x.ndata)",
        "with torch.cuda.Stream():\n    x = x.to(device)",
    ],
)
def test_moves_left_alone(line: str) -> None:
    check_snippet(step(*line.split("\n")), RULE)


@pytest.mark.parametrize("loop", ["for x in graphs:", "for x in loader:", "for x, y in accelerator.prepare(loader):"])
def test_no_batches_or_whole_ones(loop: str) -> None:
    check_snippet(step("x = x.to(device)", loop=loop), RULE)


@pytest.mark.parametrize("pin", ["", ", pin_memory=False"])
def test_a_loader_that_does_not_pin(pin: str) -> None:
    check_snippet(step("x = x.cuda()", loader=f"DataLoader(data, num_workers=4{pin})"), RULE)


SAFE, UNSAFE = Applicability.SAFE, Applicability.UNSAFE
PINNED = "DataLoader(data, pin_memory=True)"


@pytest.mark.parametrize(
    ("applicability", "loader", "lines"),
    [
        (SAFE, PINNED, ("x = x.cuda()" + MARK,)),
        (SAFE, PINNED, ("x = x.to('cuda')" + MARK,)),
        (SAFE, PINNED, ("n = x.size(0)", "y = x.shape[1]", "x = x.cuda()" + MARK)),
        (SAFE, "DataLoader(data, pin_memory=pin)", ("x = x.cuda()" + MARK,)),
        (UNSAFE, PINNED, ("x = x.to(device)" + MARK,)),
        (UNSAFE, "", ("x = x.cuda()" + MARK,)),
        (UNSAFE, "DataLoader(data, pin_memory=True, collate_fn=pad)", ("x = x.cuda()" + MARK,)),
        (UNSAFE, "DataLoader(data, batch_size=None, pin_memory=True)", ("x = x.cuda()" + MARK,)),
        (UNSAFE, PINNED, ("z = x.cuda()" + MARK, "x.zero_()")),
        (UNSAFE, PINNED, ("z = x.cuda()" + MARK, "x[0] = 1")),
        (UNSAFE, PINNED, ("z = x.cuda()" + MARK, "fill(x)")),
        (UNSAFE, PINNED, ("w = x", "z = x.cuda()" + MARK, "w.zero_()")),
        (UNSAFE, PINNED, ("w = x.numpy()", "z = x.cuda()" + MARK, "w += 1")),
    ],
)
def test_safe_where_all_is_in_sight(applicability: Applicability, loader: str, lines: tuple[str, ...]) -> None:
    (found,) = check_snippet(step(*lines, loader=loader), RULE).findings
    assert found.fix is not None
    assert found.fix.applicability is applicability


def test_a_device_that_may_be_of_another_kind() -> None:
    (found,) = check_snippet(
        step("x = x.to(torch.accelerator.current_accelerator())" + MARK, loader=PINNED), RULE
    ).findings
    assert found.fix is None
