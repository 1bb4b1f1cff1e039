"""TL640: anomaly detection that is on for every run."""

from __future__ import annotations

import pytest
from laws import check_snippet

from torchlint.finding import Doubt

RULE = "anomaly-detection-on"
MARK = "  # <- anomaly-detection-on"
TOP = "import torch\nimport lightning.pytorch as pl\nfrom torch.autograd import detect_anomaly, set_detect_anomaly\n"


@pytest.mark.parametrize(
    ("line", "fixed"),
    [
        ("torch.autograd.set_detect_anomaly(True)", "torch.autograd.set_detect_anomaly(False)"),
        ("set_detect_anomaly(mode=True)", "set_detect_anomaly(mode=False)"),
        ("trainer = pl.Trainer(detect_anomaly=True)", "trainer = pl.Trainer(detect_anomaly=False)"),
    ],
)
def test_left_on(line: str, fixed: str) -> None:
    check_snippet(f"{TOP}{line}{MARK}\n", RULE, fixed=f"{TOP}{fixed}\n")


@pytest.mark.parametrize(
    "code",
    [
        f"with torch.autograd.detect_anomaly():{MARK}\n    loss.backward()",
        f"with torch.autograd.set_detect_anomaly(True):{MARK}\n    loss.backward()",
        f"def main():\n    with detect_anomaly():{MARK}\n        train()",
        f"ON = True\nset_detect_anomaly(ON){MARK}",
        f"if __name__ == '__main__':\n    set_detect_anomaly(True){MARK}",
    ],
)
def test_around_the_training(code: str) -> None:
    check_snippet(f"{TOP}{code}\n", RULE)


@pytest.mark.parametrize("call", ["set_detect_anomaly(True, check_nan=False)", "detect_anomaly(False)"])
def test_who_has_nothing_checked_wants_the_tracebacks(call: str) -> None:
    (finding,) = check_snippet(f"{TOP}with {call}:{MARK}?\n    loss.backward()\n", RULE).findings
    assert finding.message == "anomaly detection keeps a traceback for every operation"
    assert finding.doubts == (Doubt.MEANT,)


@pytest.mark.parametrize(
    "code",
    [
        "set_detect_anomaly(False)",
        "set_detect_anomaly(args.debug)",
        "with torch.autograd.set_detect_anomaly(config.detect_anomaly):\n    loss.backward()",
        "if args.debug:\n    set_detect_anomaly(True)",
        f"def find_nan():\n    set_detect_anomaly(True){MARK}?",
        "try:\n    train()\nexcept RuntimeError:\n    set_detect_anomaly(True)\n    train()",
        "trainer = pl.Trainer(detect_anomaly=flag)",
        "trainer = pl.Trainer(max_epochs=3)",
    ],
)
def test_off_or_asked_for(code: str) -> None:
    check_snippet(f"{TOP}{code}\n", RULE)
