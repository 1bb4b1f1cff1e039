"""TL917: tensors that nested loops write element by element; how large they are says how sure the finding is."""

from __future__ import annotations

import math

import pytest
import torch
from laws import check_snippet

RULE = "elementwise-fill"
MARK = f"  # <- {RULE}"
HEAD = "import math\nimport torch\n"


@pytest.mark.parametrize(
    "write", ["table[i, j] = i * j", "table[i][j] = math.sin(i / (j + 1))", "table[i * m + j, 0] = values[i][j]"]
)
def test_tables_of_sizes_out_of_sight_are_notes(write: str) -> None:
    check_snippet(
        f"{HEAD}def made(n, m, values):\n    table = torch.zeros(n, m)\n    for i in range(n):\n"
        f"        for j in range(m):\n            {write}{MARK}?\n    return table\n",
        RULE,
    )


def test_several_writes_are_one_finding_with_its_places() -> None:
    code = (
        f"{HEAD}def made(n, m):\n    order = torch.zeros(n * m, 2)\n    for i in range(n):\n        for j in range(m):\n"
        f"            order[i * m + j, 0] = i{MARK}?\n            order[i * m + j, 1] = j\n    return order\n"
    )
    result = check_snippet(code, RULE)
    assert len(result.findings) == len(result.findings[0].places) == 1


@pytest.mark.parametrize(("number", "mark"), [(64, MARK), (16, ""), (4, "")])
def test_how_many_elements_there_are_decides(number: int, mark: str) -> None:
    check_snippet(
        f"{HEAD}def train(net, loader):\n    for x in loader:\n        mask = torch.zeros({number}, {number})\n"
        f"        for i in range({number}):\n            for j in range({number}):\n"
        f"                mask[i, j] = i >= j{mark}\n        net(x, mask).sum().backward()\n",
        RULE,
    )


def test_a_fill_and_the_broadcast_that_the_page_shows_compute_the_same() -> None:
    table = torch.zeros(5, 3)
    for i in range(5):
        for j in range(3):
            table[i, j] = math.sin(i / 10000 ** (j / 3))
    rate = 10000 ** (torch.arange(3) / 3)
    torch.testing.assert_close(torch.sin(torch.arange(5)[:, None] / rate), table)


@pytest.mark.parametrize(
    "body",
    [
        "table[i, j] = table[i - 1, j] + 1",
        "table[i, :] = j",
        "table[i, 0] = j",
        "table[i] = j",
        "rows[i][j] = i * j",
        "known[i, j] = i * j",
        "table[i, j] = 1\n            total += table.sum()",
    ],
)
def test_what_is_no_such_fill(body: str) -> None:
    check_snippet(
        f"{HEAD}def made(n, m, rows, known):\n    total = 0\n    table = torch.zeros(n, m)\n    for i in range(n):\n"
        f"        for j in range(m):\n            {body}\n    return table, total\n",
        RULE,
    )
