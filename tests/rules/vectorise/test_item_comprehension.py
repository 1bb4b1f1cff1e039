"""TL903: comprehensions that only read elements are flagged; a safe fix gives the same list for whatever tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import Any

import pytest
import torch
from laws import check_snippet
from twins import findings, fixed, run, training

from torchlint.finding import Applicability

RULE = "item-comprehension"
OTHERS = (
    "python-loop-over-tensor",
    "item-in-train-loop",
    "item-in-eval-loop",
    "repeated-item",
    "bulk-d2h-in-hot-loop",
)

# Expressions of a tensor `x` and a number `n`, each with its safe fix.
SAFE = {
    "item": ("[v.item() for v in x.view(-1).float()]", "x.view(-1).float().tolist()"),
    "item of a copy": ("[v.cpu().item() for v in x.reshape(-1).double()]", "x.reshape(-1).double().tolist()"),
    "detached": ("[v.detach().item() for v in x.half().view(-1)]", "x.half().view(-1).tolist()"),
    "tolist": ("[v.tolist() for v in x.view(-1).bfloat16()]", "x.view(-1).bfloat16().tolist()"),
    "float of floats": ("[float(v) for v in x.view(-1).float()]", "x.view(-1).float().tolist()"),
    "float of a number": ("[float(v.item()) for v in x.view(-1).float()]", "x.view(-1).float().tolist()"),
    "int of ints": ("[int(v) for v in x.view(-1).long()]", "x.view(-1).long().tolist()"),
    "bool of bools": ("[bool(v) for v in x.view(-1).bool()]", "x.view(-1).bool().tolist()"),
    "int of floats": ("[int(v) for v in x.view(-1).float()]", "[int(v) for v in x.view(-1).float().tolist()]"),
    "float of ints": ("[float(v) for v in x.view(-1).long()]", "[float(v) for v in x.view(-1).long().tolist()]"),
    "float of bools": ("[float(v) for v in (x > 0).view(-1)]", "[float(v) for v in (x > 0).view(-1).tolist()]"),
    "bool of floats": (
        "[bool(v.item()) for v in x.view(-1).double()]",
        "[bool(v) for v in x.view(-1).double().tolist()]",
    ),
    "places": ("[int(i) for i in x.argmax(-1).view(-1)]", "x.argmax(-1).view(-1).tolist()"),
    "order": ("[i.item() for i in x.argsort(0).reshape(-1)]", "x.argsort(0).reshape(-1).tolist()"),
    "random numbers": ("[v.item() for v in torch.rand(5)]", "torch.rand(5).tolist()"),
    "a permutation": ("[int(i) for i in torch.randperm(n)]", "torch.randperm(n).tolist()"),
    "a range": ("[v.item() for v in torch.arange(n)]", "torch.arange(n).tolist()"),
    "a range of floats": (
        "[float(v) for v in torch.arange(n, dtype=torch.float32)]",
        "torch.arange(n, dtype=torch.float32).tolist()",
    ),
    "steps": ("[v.item() for v in torch.linspace(0, n, steps=5)]", "torch.linspace(0, n, steps=5).tolist()"),
    "map": ("list(map(float, x.view(-1).float()))", "list(map(float, x.view(-1).float().tolist()))"),
    "map to another type": ("tuple(map(int, x.view(-1).float()))", "tuple(map(int, x.view(-1).float().tolist()))"),
    "unpacked": ("[*map(int, x.view(-1).long())]", "[*map(int, x.view(-1).long().tolist())]"),
    "a set": ("sorted({v.item() for v in x.view(-1).long()})", "sorted({v for v in x.view(-1).long().tolist()})"),
    "a sum": ("sum(v.item() for v in x.view(-1).float())", "sum(x.view(-1).float().tolist())"),
    "the largest": ("max(float(v) for v in x.view(-1).float())", "max(x.view(-1).float().tolist())"),
    "an array": ("np.array([v.item() for v in x.view(-1).short()])", "np.array(x.view(-1).short().tolist())"),
    "in brackets": ("([v.item() for v in(x.view(-1).long())])", "((x.view(-1).long()).tolist())"),
    "right before a word": (
        "sorted({v.item()for v in x.view(-1).long()})",
        "sorted({(v)for v in x.view(-1).long().tolist()})",
    ),
    "in brackets before a word": (
        "[(float(v))for v in x.view(-1).long()]",
        "[(float(v))for v in x.view(-1).long().tolist()]",
    ),
    "right behind a word, again": (
        "[v.item() for v in x.view(-1).long()] if n else[v.item() for v in x.view(-1).long()]",
        "(x.view(-1).long().tolist()) if n else(x.view(-1).long().tolist())",
    ),
    "right behind a word": (
        "0 if n < 0 else[v.item() for v in x.view(-1).long()]",
        "0 if n < 0 else(x.view(-1).long().tolist())",
    ),
}

HEAD = """
import torch
import numpy as np
def train(loader, optimizer, model):
    for x in loader:
        optimizer.zero_grad()
        model(x).backward()
        optimizer.step()
        numbers(x.cuda(), 5)
"""


def function(expression: str, parameters: str = "x: torch.Tensor, n: int") -> str:
    return f"{HEAD}def numbers({parameters}):\n    return {expression}\n"


def hostile() -> Iterator[torch.Tensor]:
    """Tensors of every type and shape, ordinary ones and others."""
    extremes = [0.1, -0.0, 2.5, -2.5, 3e4]
    types = "float32 float64 float16 bfloat16 int8 uint8 int16 int32 int64 bool complex64 complex128 float8_e5m2"
    for name in types.split():
        yield torch.tensor(extremes).to(getattr(torch, name))
    for shape in ((), (0,), (1,), (3, 1), (1, 3), (2, 3), (0, 3), (3, 0), (2, 1, 3)):
        yield torch.randn(shape)
        yield torch.randn(shape).mul(100).long()
    yield torch.tensor([math.nan, math.inf, -math.inf, 1e38, 1e-45])
    yield torch.tensor([2**63 - 1, -(2**63), 2**53 + 1, 2**60 + 127])
    yield torch.tensor([2**64 - 1, 2**53 + 1], dtype=torch.uint64)
    yield torch.randn(4, requires_grad=True)
    yield torch.randn(4, requires_grad=True) * 2
    yield torch.nn.Parameter(torch.randn(2, 2))
    yield torch.randn(6)[::2]
    yield torch.randn(3, 2).t()
    yield torch.randn(3, dtype=torch.complex64).conj()
    yield torch.randn(3, dtype=torch.complex64).conj().imag
    yield torch.ones(3).to_sparse()
    yield torch.eye(3).to_sparse()


def outcome(read: Callable[[torch.Tensor, int], Any], x: torch.Tensor, n: int) -> tuple[str, ...]:
    torch.manual_seed(0)
    try:
        found = read(x, n)
    except Exception as error:  # noqa: BLE001 - what fails must fail alike
        return type(error).__name__, str(error)
    parts = found if isinstance(found, (list, tuple, set)) else [found]
    return type(found).__name__, repr(found), *(type(part).__name__ for part in parts), repr(torch.rand(2).tolist())


def loaded(code: str) -> Callable[[torch.Tensor, int], Any]:
    names: dict[str, Any] = {}
    exec(compile(code, "<program>", "exec", dont_inherit=True), names)  # noqa: S102 - our own programs
    return names["numbers"]  # type: ignore[no-any-return]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("before", "after"), SAFE.values(), ids=SAFE.keys())
def test_a_safe_fix_gives_the_same_list_or_error_for_every_tensor(before: str, after: str) -> None:
    code = function(before)
    made = fixed(code, RULE, Applicability.SAFE)
    assert made == function(after)
    slow, fast = loaded(code), loaded(made)
    seen = set()
    for x in hostile():
        for n in (5, 0):
            seen.add(outcome(slow, x, n)[0])
            assert outcome(fast, x, n) == outcome(slow, x, n), f"{x}"
    assert not seen & {"NameError", "AttributeError"}


UNSAFE = {
    "any number of axes": "[v.item() for v in x]",
    "flattened, perhaps without a copy of what is sparse": "[v.item() for v in x.float().flatten()]",
    "of any type": "[v.item() for v in x.view(-1)]",
    "perhaps complex": "[float(v) for v in torch.linspace(0, n, 5)]",
    "of any size": "[v.item() for v in torch.zeros(size)]",
    "of a type that is given": "[float(v) for v in torch.zeros(5, dtype=kind)]",
    "rows of rows": "[[v.item() for v in row] for row in x]",
    "rows": "[row.tolist() for row in x]",
    "one sum for each row": "[v.item() for v in x.sum(1)]",
    "sparse": "[v.item() for v in torch.zeros(5, layout=torch.sparse_coo)]",
}


@pytest.mark.parametrize("expression", UNSAFE.values(), ids=UNSAFE.keys())
def test_what_may_have_another_shape_or_type_is_fixed_only_on_demand(expression: str) -> None:
    code = function(expression, "x: torch.Tensor, n, size, kind")
    found = findings(code, RULE)
    assert [finding.fix.applicability for finding in found if finding.fix] == [Applicability.UNSAFE]
    assert fixed(code, RULE, Applicability.SAFE) == code
    assert fixed(code, RULE, Applicability.UNSAFE) != code


NAMES = {
    "axes put in": ("t = x.view(-1).float()", "t.unsqueeze_(0)"),
    "passed on": ("t = x.view(-1).float()", "change(t)"),
    "kept elsewhere": ("t = x.view(-1).float()", "u = t"),
    "seen by a closure": ("t = x.view(-1).float()", "def inner(): t.unsqueeze_(0)\n    inner()"),
    "written into": ("t = x.view(-1).float()", "torch.add(x, 1, out=t)"),
    "bound twice": ("t = x.view(-1).float()", "if n: t = x"),
    "given another storage": ("t = x.view(-1).float()", "t.data = x"),
}


@pytest.mark.parametrize(("bound", "then"), NAMES.values(), ids=NAMES.keys())
def test_a_name_is_a_vector_only_where_nothing_can_change_its_shape(bound: str, then: str) -> None:
    def code(then: str) -> str:
        return (
            f"{HEAD}def numbers(x: torch.Tensor, n: int):\n    {bound}\n    {then}\n    return [v.item() for v in t]\n"
        )

    assert fixed(code("print(t.sum(), len(t), t[0])"), RULE, Applicability.SAFE).endswith("return t.tolist()\n")
    assert fixed(code(then), RULE, Applicability.SAFE) == code(then)


def test_what_the_page_says_of_the_unsafe_fix() -> None:
    code = function("[v.item() for v in x]")
    slow, fast = loaded(code), loaded(fixed(code, RULE, Applicability.UNSAFE))
    for x in (torch.randn(3), torch.randn(3, 1), torch.randn(0), torch.tensor([1, 2]), torch.randn(0, 3)):
        assert outcome(slow, x, 0) == outcome(fast, x, 0)
    with pytest.raises(RuntimeError, match="cannot be converted to Scalar"):
        slow(torch.ones(2, 3), 0)
    assert fast(torch.ones(2, 3), 0) == [1.0] * 6
    with pytest.raises(TypeError, match="0-d"):
        slow(torch.ones(()), 0)
    assert fast(torch.ones(()), 0) == [1.0]
    sparse = torch.ones(3).to_sparse()
    assert slow(sparse, 0) == [1.0] * 3
    with pytest.raises(RuntimeError):
        fast(sparse, 0)
    floats = loaded(fixed(function("[float(v) for v in x]"), RULE, Applicability.UNSAFE))
    with pytest.raises(TypeError):
        floats(torch.tensor([1 + 0j]), 0)
    rows = loaded(fixed(function("[[v.item() for v in row] for row in x]"), RULE, Applicability.UNSAFE))
    assert rows(torch.ones(1, 2, 1), 0) == [[[1.0], [1.0]]]


@pytest.mark.parametrize("batches", [4, 0])
def test_a_fixed_program_is_the_same(batches: int) -> None:
    code = training(
        "log.append([v.item() for v in outputs.detach().view(-1).float()])\n"
        "log.append(sum(float(v) for v in (outputs > 0).view(-1)))\n"
        "order = outputs.argsort(0).view(-1)\n"
        "log.append(list(map(int, order)))"
    )
    made = fixed(code, RULE, Applicability.SAFE)
    assert made.count("tolist()") == 3
    assert run(made, batches) == run(code, batches)


NOT_FIXED = {
    "a comment inside": "[\n        v.item()  # why\n        for v in x\n    ]",
    "spelt out": "f'{[v.item() for v in x.view(-1).float()]=}'",
}


@pytest.mark.parametrize("expression", NOT_FIXED.values(), ids=NOT_FIXED.keys())
def test_what_would_lose_something_is_reported_only(expression: str) -> None:
    found = findings(function(expression), RULE)
    assert len(found) == 1
    assert found[0].fix is None


def test_torchscript_needs_an_annotation_that_nobody_wrote() -> None:
    code = function("[v.item() for v in x.view(-1).float()]") + "scripted = torch.jit.script(numbers)\n"
    assert fixed(code, RULE, Applicability.SAFE) == code


def test_each_place_is_reported_once() -> None:
    check_snippet(
        """
        import torch
        def train(loader, model, optimizer):
            log = []
            for x, y in loader:
                out = model(x.cuda()).softmax(-1)
                loss = (out - y.cuda()).square().sum(1)
                optimizer.zero_grad()
                loss.sum().backward()
                optimizer.step()
                log.append([v.item() for v in loss])  # <- item-comprehension
                log.append([float(v) for v in loss])  # <- item-comprehension
                log.append([row.cpu().tolist() for row in out])  # <- item-comprehension?
                log.append([[v.item() for v in row] for row in out])  # <- item-comprehension
                log.append(list(map(float, loss)))  # <- item-comprehension
                log.append([round(v.item(), 2) for v in loss])  # <- item-in-train-loop
                log.append([v.item() for v in loss if v > 0])  # <- item-in-train-loop
            return log
        """,
        RULE,
        *OTHERS,
    )


def test_the_loop_around_is_left_to_the_rule_within() -> None:
    check_snippet(
        """
        import torch
        def rows(scores: torch.Tensor):
            found = []
            for row in scores:
                found.append([v.item() for v in row])  # <- item-comprehension
            return found
        """,
        RULE,
        *OTHERS,
    )


def test_look_alikes_are_silent_for_the_others_too() -> None:
    text = files("torchlint.fixtures").joinpath("item_comprehension/ok.py").read_text(encoding="utf-8")
    check_snippet(text, RULE)


def test_snippets_obey_the_laws() -> None:
    for before, _ in SAFE.values():
        code = function(before)
        marks = ", ".join([RULE] * len(findings(code, RULE)))
        check_snippet(f"{code.rstrip()}  # <- {marks}\n", RULE)


@pytest.mark.parametrize("expression", ["(v.item() for v in x)", "[v.item() for v in xs]", "map(float, x)"])
def test_silent(expression: str) -> None:
    check_snippet(function(expression, "x: torch.Tensor, xs, n"), RULE)


@pytest.mark.parametrize(("shape", "found"), [("1, n", False), ("n, -1", True)])
def test_one_row(shape: str, found: bool) -> None:  # noqa: FBT001
    mark = f"  # <- {RULE}?" if found else ""
    code = """
        import torch
        def best(x: torch.Tensor, n: int, mask: torch.Tensor):
            x = x.view(%s)
            x = x.masked_fill_(mask, 0)
            return [row.tolist() for row in x]%s
        """
    check_snippet(code % (shape, mark), RULE)


def test_what_is_read_for_a_print_now_and_then_is_noted_and_no_matter_for_others() -> None:
    code = "import torch\ndef print_all(x: torch.Tensor):\n    print([v.item() for v in x])"
    check_snippet(f"{code}  # <- {RULE}?\n", RULE)
    for rule in OTHERS:
        check_snippet(f"{code}\n", rule)
