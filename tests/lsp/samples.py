"""Code for tests of the server, with findings that are known."""

from __future__ import annotations

TRAIN = """\
import torch
from torch import nn


def evaluate(model: nn.Module, loader: torch.utils.data.DataLoader) -> float:
    total = 0.0
    with torch.inference_mode():
        for inputs, targets in loader:
            total += nn.functional.mse_loss(model(inputs), targets).item()
    return total


def noise(n: int) -> torch.Tensor:
    return torch.zeros(n).cuda()


def train(model: nn.Module, loader: torch.utils.data.DataLoader, optimizer: torch.optim.Optimizer) -> float:
    running = 0.0
    for inputs, targets in loader:
        loss = nn.functional.mse_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running += loss.item()
    return running  # torchlint: ignore[TL301]
"""
FOUND = [(9, "TL302"), (14, "TL201"), (24, "TL301"), (25, "TL001")]
SLOW, FAST = "torch.zeros(n).cuda()", 'torch.zeros(n, device="cuda")'
FOUND_TEXTS = {"nn.functional.mse_loss(model(inputs), targets).item()", SLOW, "loss.item()", "TL301"}
IGNORE = "  # torchlint: ignore[TL301]"
ALL_SAFE = TRAIN.replace(SLOW, FAST).replace(IGNORE, "")

# A line of one finding, of two behind characters that are one, two, three and four bytes long.
EMOJI = 'import torch\n\n\ndef made(n):\n    name = "aé€😀"; return name, torch.zeros(n).cuda()\n'

# How often a function of `utils.py` runs is told by `loop.py`.
UTILS = """\
import torch
import numpy  # so that not only tensors have an item

def accuracy(outputs, targets):
    with torch.no_grad():
        correct = outputs.argmax(1).eq(targets).float().sum().item()
    return correct / targets.size(0)
"""
LOOP = """\
import torch
from utils import accuracy


def train(model, loader, optimizer, criterion, meter):
    for inputs, targets in loader:
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        meter.update(accuracy(outputs, targets))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""

# What the layer of `layers.py` does with its convolution decides what is found in `network.py`.
LAYERS = """\
from torch import nn


class ConvNorm(nn.Module):
    def __init__(self, channels, features, bias=True):
        super().__init__()
        self.conv = nn.Conv1d(channels, features, 3, bias=bias)

    def forward(self, x):
        return self.conv(x)
"""
NETWORK = """\
from torch import nn
from layers import ConvNorm


def make(n):
    return nn.Sequential(ConvNorm(n, n), nn.BatchNorm1d(n), nn.ReLU(), ConvNorm(n, n), nn.ReLU())
"""


def long(lines: int) -> tuple[str, list[tuple[int, str]]]:
    """A program of so many lines, in which each 25th is found."""
    head = ["import torch", "from torch import nn", "", ""]
    body: list[str] = []
    found = []
    number = 0
    while len(head) + len(body) < lines:
        number += 1
        body += [f"def block_{number}(n: int, scale: float) -> torch.Tensor:"]
        body += [f"    weight_{each} = torch.ones(n, n) * scale + {each}" for each in range(20)]
        body += ["    return torch.zeros(n).cuda() + weight_0", "", "", f"LIMIT_{number} = {number}"]
        found.append((len(head) + len(body) - 3, "TL201"))
    return "\n".join([*head, *body]) + "\n", found
