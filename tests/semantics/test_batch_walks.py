"""What a loop does with what it takes tells batches from anything else, whatever they are called."""

from __future__ import annotations

import pytest
from looking import look

from torchlint.finding import Frequency
from torchlint.semantics.values.lattice import Device, Kind

LOOP = "import torch\ndef run(a, b, c, d):\n    for x, y in {walked}:\n        {body}\n    LOOK({asked})\n"


@pytest.mark.parametrize(
    ("body", "is_of_batches"),
    [
        ("b(x.cuda())", True),
        ("b(x.to(d), y)", True),
        ("b(x.to('cuda:0'))", True),
        ("x = x.to(d); b(x)", True),
        ("z = {k: v.to(d) for k, v in x.items()}; b(z)", True),
        ("z = x[0]; b(z.float().cuda())", True),
        ("c(b(x.cuda()), y)", True),
        ("z = x.cuda() * 2", True),
        ("c += b(x).cpu()", True),
        ("b.eval(); b(x)", True),
        ("b(x).backward()", True),
        ("b.append(x.cuda())", False),
        ("x.cuda()", False),
        ("print(x.cuda())", False),
        ("torch.save(x.cuda(), 'a')", False),
        ("b(x.to('cpu'))", False),
        ("b(x.to(torch.float16))", False),
        ("b(x.to(a_dtype))", False),
        ("b(x)", False),
        ("x(y.cuda())", False),
        ("b(y.shape[0].to(d))", False),
        ("b(torch.zeros(3).cuda())", False),
    ],
)
def test_what_a_loop_goes_over(body: str, is_of_batches: bool) -> None:  # noqa: FBT001
    node, context = look(LOOP.format(walked="a", body=body, asked="a"))
    assert (context.kind(node) is Kind.LOADER) is is_of_batches
    assert not (is_of_batches and context.value(node).proven)


def test_through_what_passes_on() -> None:
    node, context = look(LOOP.format(walked="zip(a, c)", body="b(x.cuda())", asked="c"))
    assert context.kind(node) is Kind.LOADER


def test_an_attribute() -> None:
    node, context = look(
        "class A:\n    def run(self, b):\n        for x in self.a:\n            b(x.cuda())\n        LOOK(self.a)\n"
    )
    assert context.kind(node) is Kind.LOADER


def test_the_first_of_another() -> None:
    node, context = look(LOOP.format(walked="a", body="z = next(iter(c)); b(x.cuda(), z.cuda())", asked="c"))
    assert context.kind(node) is Kind.LOADER


@pytest.mark.parametrize(("asked", "kind"), [("b", Kind.MODULE), ("c", Kind.MODULE), ("a", Kind.LOADER)])
def test_what_it_calls(asked: str, kind: Kind) -> None:
    node, context = look(LOOP.format(walked="a", body="z = b(x.to(d)); c(z, y)", asked=asked))
    assert context.kind(node) is kind


def test_each_turn_is_a_batch() -> None:
    node, context = look("def run(a, b):\n    for x in a:\n        LOOK(b(x.cuda()))\n")
    assert context.frequency(node) is Frequency.BATCH
    assert context.kind(node) is Kind.TENSOR


def test_what_is_known_stays() -> None:
    node, context = look("def run(b):\n    a = ['x', 'y']\n    for x in a:\n        b(x.cuda())\n    LOOK(a)\n")
    assert context.kind(node) is Kind.SEQUENCE


@pytest.mark.parametrize(
    ("code", "is_a_device"),
    [
        ("x.to(d); y.to(d)", True),
        ("x.to(d); self.y.to(d)", True),
        ("x.to(d)", False),
        ("x.to(d); x.to(d)", False),
        ("x.to(d); y.to(d); d.size(0)", False),
    ],
)
def test_where_several_things_go(code: str, is_a_device: bool) -> None:  # noqa: FBT001
    node, context = look(f"def run(self, x, y, d):\n    {code}\n    LOOK(d)\n")
    assert (context.kind(node) is Kind.DEVICE) is is_a_device
    if is_a_device:
        assert context.device(node) is Device.MAYBE
        assert not context.value(node).proven


def test_a_type_is_none() -> None:
    node, context = look("def run(x, y, dtype):\n    x.to(dtype); y.to(dtype)\n    LOOK(dtype)\n")
    assert context.kind(node) is not Kind.DEVICE


@pytest.mark.parametrize(
    ("use", "kind"), [("c(z)", Kind.TENSOR), ("c(**z)", Kind.UNKNOWN), ("c(*z)", Kind.TENSOR), ("c(y=z)", Kind.TENSOR)]
)
def test_what_is_spread_over_keywords_is_no_tensor(use: str, kind: Kind) -> None:
    body = f"x = x.cuda(); z = b(x); {use}; LOOK(z)"
    node, context = look(f"import torch\ndef run(a, b, c):\n    for x, y in a:\n        {body}\n")
    assert context.kind(node) is kind
