"""What the model says must not depend on who asked first, though what it looks at depends on itself."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import libcst as cst
import pytest

from torchlint.semantics.context import Context
from torchlint.settings import Settings
from torchlint.source import SourceFile
from torchlint.syntax.parsing import parse
from torchlint.syntax.tree import Tree

FIXTURES = Path(__file__).parents[2] / "fixtures"
# A method whose argument is made of what another call of the same class gives.
LOSS = """
import torch
from torch import nn


class Loss(nn.Module):
    def __init__(self, device):
        super().__init__()
        self.device = device
        self.last = None

    def target(self, pred, labels, size):
        count = (labels.sum(dim=2) > 0).sum(dim=1)
        for b in range(size):
            n = int(count[b])
            if n == 0:
                continue
            box = torch.zeros(n, 4).to(self.device)
            for i in range(n):
                if self.near(box[i], pred[b]):
                    self.last = box
        return count

    def near(self, box, pred):
        return self.target(pred, box, 3) if self.last is None else box.sum() > pred.sum()

    def forward(self, pred, labels):
        for i, output in enumerate(pred):
            labels = self.target(output, labels, output.size(0))
        return labels
"""
TEXTS = {"loss": LOSS} | {
    f"{path.parent.name}/{path.name}": path.read_text(encoding="utf-8") for path in sorted(FIXTURES.glob("*/*.py"))
}


def questions(context: Context) -> list[Callable[[], object]]:
    """Everything that can be asked about each node, in source order."""
    asked: list[Callable[[], object]] = []
    for node in context.tree.nodes:
        if isinstance(node, (cst.BaseExpression, cst.FunctionDef)):
            asked.append(lambda node=node: context.value(node))  # type: ignore[misc]
        if isinstance(node, cst.Call):
            asked.append(lambda node=node: context.frequency(node))  # type: ignore[misc]
            asked.append(lambda node=node: place(context, context.calls.target(node)))  # type: ignore[misc]
        if isinstance(node, cst.FunctionDef):
            asked.append(lambda node=node: [place(context, call) for call in context.calls.callers(node)])  # type: ignore[misc]
    return asked


def place(context: Context, node: cst.CSTNode | None) -> int | None:
    return None if node is None else context.tree.place(node)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * name.endswith(("fast.py", "ok.py"))) for name in TEXTS]
)
def test_the_order_of_questions(name: str) -> None:
    source = SourceFile("snippet.py", TEXTS[name])
    module = parse(source.text)

    def answers(order: Callable[[list[int]], None]) -> dict[int, object]:
        asked = questions(Context(Tree(module), source, Settings(())))
        places = list(range(len(asked)))
        order(places)
        return {place: asked[place]() for place in places}

    first = answers(lambda _: None)
    assert answers(list.reverse) == first
    assert answers(random.Random(7).shuffle) == first  # noqa: S311 - any order
