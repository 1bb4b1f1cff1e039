"""TL906: an array that grows batch by batch is flagged, unless it is looked at, started anew, or grows rarely."""

from __future__ import annotations

import textwrap

import pytest
from laws import check_snippet

RULE = "numpy-growth-in-loop"
MARK = "  # <- numpy-growth-in-loop"


def collect(*lines: str, start: str = "out = np.zeros((0, 10))") -> str:
    """A loop over batches that does this."""
    body = textwrap.indent("\n".join(lines), " " * 8)
    return (
        "import numpy as np\nimport torch\n\n\n"
        f"def collect(model, loader, log):\n    {start}\n"
        "    for step, (inputs, targets) in enumerate(loader):\n"
        f"        scores = model(inputs.cuda())\n{body}\n    return out\n"
    )


@pytest.mark.parametrize(
    "lines",
    [
        ("out = np.append(out, scores.cpu().numpy(), axis=0)" + MARK,),
        ("out = np.concatenate([out, scores.detach().cpu().numpy()])" + MARK,),
        ("out = np.vstack((out, scores.cpu()))" + MARK,),
        ("out = np.hstack((out, scores.cpu().numpy())) if out.size else scores.cpu().numpy()" + MARK,),
        (
            "if step == 0:",
            "    out = scores.cpu().numpy()",
            "else:",
            "    out = np.append(out, scores.cpu().numpy())" + MARK,
        ),
        ("out = np.append(out, scores.cpu().numpy(), axis=0)" + MARK, "log(len(out), out.shape)"),
        ("for score in scores:", "    out = np.append(out, score.item())" + MARK),
    ],
)
def test_grows(lines: tuple[str, ...]) -> None:
    check_snippet(collect(*lines), RULE)


@pytest.mark.parametrize(
    "lines",
    [
        ("out = np.append(scores.cpu().numpy(), targets)",),
        ("out = scores.cpu().numpy()", "out = np.append(out, targets)"),
        ("out = np.append(out, scores.cpu().numpy())", "log(out.mean())"),
        ("out = np.append(out, scores.cpu().numpy())[-100:]",),
        ("if step % 100 == 0:", "    out = np.append(out, scores.cpu().numpy())"),
        ("new = np.append(out, scores.cpu().numpy())", "log(new)"),
        ("out = np.concatenate(out)",),
        ("out = torch.cat([torch.tensor(out), scores])",),
    ],
)
def test_does_not_grow_or_is_looked_at(lines: tuple[str, ...]) -> None:
    check_snippet(collect(*lines), RULE)


def test_starts_as_none() -> None:
    lines = ("if out is None:", "    out = scores.numpy()", "else:", "    out = np.append(out, scores.numpy())" + MARK)
    check_snippet(collect(*lines, start="out = None"), RULE)


@pytest.mark.parametrize(
    ("last", "mark"), [("pass", MARK), ("print(self.kept.shape)", MARK), ("return self.kept.mean()", "")]
)
def test_attributes(last: str, mark: str) -> None:
    check_snippet(
        f"""
        import numpy as np
        import pytorch_lightning as pl


        class Net(pl.LightningModule):
            def __init__(self):
                self.kept = np.array([])

            def validation_step(self, batch, index):
                scores = self(batch)
                self.kept = np.append(self.kept, scores.cpu().numpy()){mark}
                {last}
        """,
        RULE,
    )
