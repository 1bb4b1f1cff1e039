"""Runs a program and what a fix makes of it, on the CPU, and compares all that can be seen of the two.

A program defines `train(model, loader, optimizer, criterion)`; what it returns, prints and raises is seen, and what it
leaves of the model and of the random numbers.
"""

from __future__ import annotations

import copy
import textwrap
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from laws import active, fix, lint

if TYPE_CHECKING:
    from torchlint.finding import Applicability, Finding

_PROLOGUE = """
import contextlib
import json
import logging
import torch
import torch.nn.functional as F
from torch import nn
"""


@dataclass(frozen=True)
class Seen:
    """What can be seen of a run. Numbers are as `repr` writes them, which tells floats apart bit by bit."""

    result: str
    types: Any
    printed: tuple[str, ...]
    state: str
    random: str


def program(body: str) -> str:
    """The text of a program, from code that may be indented as a whole."""
    return _PROLOGUE + textwrap.dedent(body)


def training(
    reads: str,
    *,
    loss: str = "loss = criterion(outputs, targets)",
    before: str = "log = []",
    after: str = "return log",
    top: str = "",
) -> str:
    """A training loop in which `reads` stand behind each step."""
    pieces = {"    ": (before, after), "        ": (loss, reads)}
    (start, end), (made, read) = (
        [textwrap.indent(textwrap.dedent(piece).strip("\n"), indent) for piece in both]
        for indent, both in pieces.items()
    )
    return program(
        f"""
{textwrap.dedent(top)}
def train(model, loader, optimizer, criterion):
{start}
    for step, (inputs, targets) in enumerate(loader):
        outputs = model(inputs)
{made}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
{read}
{end}
"""
    )


def findings(code: str, rule: str) -> tuple[Finding, ...]:
    """What one rule says of a program."""
    return lint(code, active(rule)).findings


def fixed(code: str, rule: str, threshold: Applicability) -> str:
    """What the fixes of one rule make of a program."""
    return fix(code, active(rule), threshold).text


def run(code: str, batches: int = 4) -> Seen:
    """What can be seen of the program over so many batches."""
    printed: list[str] = []
    names: dict[str, Any] = {"print": lambda *values, **_: printed.append(" ".join(map(str, values)))}
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 2)
    loader = [(torch.randn(5, 3), torch.randint(2, (5,))) for _ in range(batches)]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    result: Any
    try:
        exec(compile(code, "<program>", "exec", dont_inherit=True), names)  # noqa: S102 - our own programs
        result = names["train"](model, loader, optimizer, torch.nn.CrossEntropyLoss())
        if hasattr(result, "__next__"):
            result = list(result)
    except Exception as error:  # noqa: BLE001 - a program that fails must fail alike
        result = f"{type(error).__name__}: {error}"
    state = repr({name: value.tolist() for name, value in copy.deepcopy(model).state_dict().items()})
    random = repr((torch.get_rng_state().sum().item(), torch.rand(4).tolist()))
    return Seen(repr(result), _types(result), tuple(printed), state, random)


def _types(value: Any) -> Any:  # noqa: ANN401 - any result
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(_types, value)]
    if isinstance(value, dict):
        return {key: _types(inner) for key, inner in value.items()}
    return type(value).__name__
