"""TL510: a cell that a loop steps through known inputs is flagged; a step that needs the one before is not."""

from __future__ import annotations

import textwrap

import pytest
from laws import check_snippet

RULE = "rnn-cell-loop"
MARK = "  # <- rnn-cell-loop"


def forward(*lines: str, base: str = "nn.Module") -> str:
    body = textwrap.indent("\n".join(lines), " " * 8)
    return (
        f"import torch\nfrom torch import nn\n\n\nclass Net({base}):\n    def __init__(self, width):\n"
        "        super().__init__()\n        self.lstm = nn.LSTMCell(width, width)\n"
        "        self.gru = torch.nn.GRUCell(width, width)\n        self.rnn = nn.RNNCell(width, width)\n"
        "        self.lin = nn.Linear(width, width)\n\n"
        f"    def forward(self, x, h, c, mask):\n        outputs = []\n{body}\n        return outputs, h\n"
    )


@pytest.mark.parametrize(
    "lines",
    [
        ("for t in range(x.size(1)):", "    h = self.gru(x[:, t], h)" + MARK, "    outputs.append(h)"),
        ("for step in x.unbind(1):", "    h, c = self.lstm(step, (h, c))" + MARK),
        ("for step in x.split(1, dim=1):", "    z = self.lin(step).relu()", "    h = self.rnn(input=z, hx=h)" + MARK),
        ("for t, step in enumerate(x):", "    h = self.gru(step + mask[t], h)" + MARK, "    outputs += [self.lin(h)]"),
        ("hx = (h, c)", "for t in range(9):", "    hx = self.lstm(x[t], hx)" + MARK, "    outputs.append(hx[0])"),
        (
            "g = h",
            "for t in reversed(range(len(x))):",
            "    h, c = self.lstm(x[t], (h, c))" + MARK,
            "    g = self.gru(self.lin(h), g)" + MARK,
        ),
    ],
)
def test_inputs_that_are_all_there(lines: tuple[str, ...]) -> None:
    check_snippet(forward(*lines), RULE)


@pytest.mark.parametrize(
    "lines",
    [
        ("y = x", "for t in range(9):", "    h = self.gru(y, h)", "    y = self.lin(h)"),
        ("y = x[0]", "for t in range(9):", "    h = self.gru(x[t] + y, h)", "    y = self.lin(h)"),
        ("for t in range(9):", "    h = self.gru(x[t] + h, h)"),
        ("for t in range(9):", "    outputs.append(h)", "    h = self.gru(x[t] + outputs[-1], h)"),
        ("for t in range(9):", "    h = self.gru(x[t], h) * mask[t]"),
        ("for t in range(9):", "    h = h * mask[t]", "    h = self.gru(x[t], h)"),
        ("for t in range(9):", "    new = self.gru(x[t], h)", "    h = torch.where(mask[t], new, h)"),
        ("for t in range(9):", "    if mask[t]:", "        h = self.gru(x[t], h)"),
        ("for t in range(9):", "    h = self.gru(x[t], h)", "    if h.sum() > 3:", "        break"),
        ("for t in range(9):", "    h, c = self.lstm(x[t], (h, c))", "    outputs.append(c)"),
        ("hx = (h, c)", "for t in range(9):", "    hx = self.lstm(x[t], hx)", "    outputs.append(hx)"),
        ("for t in range(9):", "    h = self.gru(x, h)"),
        ("for t in range(9):", "    outputs.append(self.gru(x[t]))"),
        ("for t in range(9):", "    outputs.append(self.gru(x[t], h))"),
        ("for t in range(9):", "    self.y = x[t] + h", "    h = self.gru(self.y, h)"),
        ("for t in range(9):", "    x[t + 1] = x[t] + h", "    h = self.gru(x[t], h)"),
        ("for t in range(9):", "    h = self.lin(x[t], h)"),
        ("for t in range(9):", "    h = self.gru(x[t], h)", "    h.sum().backward()"),
    ],
)
def test_steps_that_need_the_one_before(lines: tuple[str, ...]) -> None:
    check_snippet(forward(*lines), RULE)


def test_only_networks() -> None:
    check_snippet(forward("for t in range(9):", "    h = self.gru(x[t], h)", base="object"), RULE)
