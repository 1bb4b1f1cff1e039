"""What in the file makes a node run as often as it does."""

from __future__ import annotations

import pytest

from torchlint import linter
from torchlint.settings import Settings
from torchlint.source import SourceFile

STEP = """
        optimizer.zero_grad()
        loss = criterion(model(x.cuda(non_blocking=True)), y)
        loss.backward()
        optimizer.step()
"""


def caused(text: str, rule: str = "item-in-train-loop") -> list[str | None]:
    """What causes each finding of a rule, as it is written."""
    result = linter.lint(SourceFile("train.py", f"import torch\n{text}"), Settings(rules=(rule,)))
    spans = [finding.cause for finding in result.findings]
    whole = f"import torch\n{text}"
    return [whole[span.start : span.end] if span is not None else None for span in spans]


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (
            (
                "def train(model, loader, optimizer, criterion):\n"
                f"    for x, y in loader:{STEP}        print(loss.item())\n"
            ),
            "loader",
        ),
        (
            (
                "def train(model, batches, optimizer, criterion):\n"
                f"    while x := next(batches):{STEP}        print(loss.item())\n"
            ),
            "x := next(batches)",
        ),
        (
            (
                "def show(loss):\n    print(loss.item())\n\n\ndef train(model, loader, optimizer, criterion):\n"
                f"    for x, y in loader:{STEP}        show(loss)\n"
            ),
            "show(loss)",
        ),
    ],
)
def test_a_loop_or_a_call(text: str, cause: str) -> None:
    assert caused(text) == [cause]


def test_a_function_that_a_framework_calls() -> None:
    text = (
        "import lightning\n\n\nclass Net(lightning.LightningModule):\n"
        "    def training_step(self, batch, index):\n"
        "        loss = self.net(batch)\n        self.total += loss.item()\n        return loss\n"
    )
    assert caused(text) == ["training_step"]


def test_what_runs_rarely_has_none() -> None:
    assert caused("def build(n):\n    return torch.zeros(n).cuda()\n", "host-factory-then-move") == [None]
