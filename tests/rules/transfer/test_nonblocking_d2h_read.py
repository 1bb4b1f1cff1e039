"""TL204: copies to the CPU that are read before anything has waited for them."""

from __future__ import annotations

import textwrap

import pytest
from laws import check_snippet

from torchlint.finding import Applicability

RULE = "nonblocking-d2h-read"
MARK = f"  # <- {RULE}"
MOVE, WAITS = 't.to("cpu", non_blocking=True)', 't.to("cpu")'


def function(*lines: str) -> str:
    body = textwrap.indent("\n".join(lines), "    ")
    return f"import numpy as np\nimport torch\ndef predict(model, x, other, save):\n    t = model(x.cuda()).sum(1)\n{body}\n"


@pytest.mark.parametrize(
    "line",
    [
        f"a = {MOVE}.numpy()",
        f"a = {MOVE}.detach().numpy()",
        f"a = {MOVE}.sum()",
        f"a = {MOVE} + 1",
        f"a = float({MOVE})",
        f"print({MOVE})",
        f"a = np.array({MOVE})",
    ],
)
def test_read_at_once(line: str) -> None:
    check_snippet(function(line + MARK), RULE, fixed=function(line.replace(MOVE, WAITS)))


@pytest.mark.parametrize(
    "reads",
    [
        ("b = a.numpy()",),
        ("save(a.numpy())",),
        ("n = a.size(0)", "b = a * 2"),
        ("c = 3", "if_any = a > c"),
    ],
)
def test_read_further_down(reads: tuple[str, ...]) -> None:
    if reads[0].startswith("n ="):  # a call in between: nobody knows that it does not wait
        check_snippet(function(f"a = {MOVE}", *reads), RULE)
    else:
        check_snippet(function(f"a = {MOVE}{MARK}", *reads), RULE, fixed=function(f"a = {WAITS}", *reads))


def test_lines_stay_indented() -> None:
    code = function("a = (t", f"    .to('cpu', non_blocking=True){MARK}", "    .numpy())").replace(MARK, "")
    check_snippet(code.replace("a = (t", f"a = (t{MARK}"), RULE, fixed=code.replace(", non_blocking=True", ""))


@pytest.mark.parametrize(
    "lines",
    [
        (f"print(t.sum().item() + {MOVE}){MARK}",),
        (f"a = {MOVE}; b = a.numpy(){MARK}",),
    ],
)
def test_what_waits_before_the_copy_does_not_count(lines: tuple[str, ...]) -> None:
    (found,) = check_snippet(function(*lines), RULE).findings
    assert found.fix is not None
    assert found.fix.applicability is Applicability.SAFE


@pytest.mark.parametrize(
    "more",
    [
        "class Batch:\n    def to(self, device, *, non_blocking):\n        return self\n",
        "def check(tensor):\n    assert tensor.is_pinned()\n",
    ],
)
def test_unsafe_where_the_flag_or_the_memory_may_matter(more: str) -> None:
    (found,) = check_snippet(function(f"a = {MOVE}.numpy(){MARK}") + more, RULE).findings
    assert found.fix is not None
    assert found.fix.applicability is Applicability.UNSAFE


def test_two_copies() -> None:
    lines = (f"a = {MOVE}{MARK}", f"b = (t + 1).to(torch.device('cpu'), non_blocking=True){MARK}", "c = a + b")
    check_snippet(function(*lines), RULE)


@pytest.mark.parametrize(
    "lines",
    [
        (f"a = {MOVE}", "torch.cuda.synchronize()", "b = a.numpy()"),
        (f"a = {MOVE}; torch.cuda.synchronize(); b = a.numpy()",),
        (f"a = {MOVE} + t.sum().item()",),
        (f"a = {MOVE}.add(t.sum().item())",),
        (f"a = {MOVE}.untyped_storage()",),
        (f"a = {MOVE}.element_size()",),
        (f"a = {MOVE}", "n = other.item()", "b = a.numpy()"),
        (f"a = {MOVE}", "print(other.item(), a)"),
        (f"a = {MOVE}", "return a"),
        (f"a = {MOVE}", "save(a)"),
        (f"a = {MOVE}", "a = other", "b = a.numpy"),
        (f"self.a = {MOVE}",),
        ("a = t.to('cpu').numpy()",),
        ("a = t.to('cpu', non_blocking=False).numpy()",),
        ("a = t.to('cuda', non_blocking=True).sum()",),
        ("a = torch.zeros(3).to('cpu', non_blocking=True).numpy()",),
    ],
)
def test_waited_for_handed_on_or_no_copy(lines: tuple[str, ...]) -> None:
    check_snippet(function(*lines), RULE)


def test_batches_are_on_the_cpu_already() -> None:
    check_snippet("for x, y in loader:\n    a = x.to('cpu', non_blocking=True).numpy()\n", RULE)
