"""A made-up run of `torchlint verify` for the tests of its reports: no figure here was measured."""

from __future__ import annotations

import math
import random

from torchlint.evidence import Ratio
from torchlint.verify.report_model import Change, Control, Report, Row, Site, Together

MIB = 1 << 20
DIFF = """\
--- a/train.py
+++ b/train.py
@@ -40,3 +40,3 @@
     optimizer.step()
-    total += loss.item()
+    total += loss.detach()
     if total < 3 and "a" > 'b':
"""


def ratio(value: float, noise: float = 0.006, n: int = 16, seed: int = 0) -> Ratio:
    """A speed-up of replicates that scatter about it."""
    draw = random.Random(f"{value} {seed}")  # noqa: S311 - scatter, not a secret
    logs = tuple(math.log(value) + draw.gauss(0, noise) for _ in range(n))
    mean = sum(logs) / n
    return Ratio(
        ratio=math.exp(mean), lo=math.exp(mean - noise), hi=math.exp(mean + noise), level=0.993, n=n, log_ratios=logs
    )


REPORT = Report(
    title="torchlint verify: train.py",
    command="torchlint verify train.py --device cuda -- --epochs 1",
    device="NVIDIA H200, torch 2.11.0+cu130, SM 1755-1980 MHz, host quiet (0.4 % stolen)",
    entry="train.py (optimizer steps), blocks of 40 steps",
    summary="5 fixes in 4 files, 1 of them not exercised",
    controls=(
        Control("unchanged code", "+0.1 %", passed=True, speedup=ratio(1.001), unchanged=True),
        Control("planted handicap of 5 %", "-4.8 %, seen", passed=True, speedup=ratio(0.952)),
        Control("numerics can fail", "a changed last bit was found", passed=True),
    ),
    rows=(
        Row(
            code="TL301",
            rule="item-in-train-loop",
            path="train.py",
            line=41,
            title="Keep the total on the device",
            safety="unsafe",
            verdict="faster",
            action="keep",
            why="masked: alone it gains little, without it the set is slower",
            alone=ratio(1.009),
            without=ratio(0.859),
            syncs=Change(3, 2),
            memory=Change(1200 * MIB, 1200 * MIB),
            numerics="close (0.4 of the tolerance)",
            diff=DIFF,
        ),
        Row(
            code="TL101",
            rule="dataloader-no-workers",
            path="data.py",
            line=18,
            title="Load in worker processes",
            safety="safe",
            verdict="faster",
            action="keep",
            alone=ratio(3.12, 0.02),
            without=ratio(0.34, 0.02),
            syncs=Change(3, 3),
            memory=Change(1200 * MIB, 1201 * MIB),
            numerics="exact",
        ),
        Row(
            code="TL402",
            rule="bias-before-batchnorm",
            path="model.py",
            line=9,
            title="Drop the bias",
            safety="unsafe",
            verdict="no-measurable-difference",
            action="leave",
            alone=ratio(1.003),
            without=ratio(0.999, seed=1),
            memory=Change(1200 * MIB, 1198 * MIB),
            numerics="mapped state",
        ),
        Row(
            code="TL201",
            rule="host-factory-then-move",
            path="src/models/attention/positional_encoding/rotary.py",
            line=212,
            title="Make it on the device",
            safety="safe",
            verdict="slower",
            action="drop",
            alone=ratio(0.93, 0.01),
        ),
        Row(
            code="TL401",
            rule="eval-without-no-grad",
            path="eval.py",
            line=7,
            title="Switch gradients off",
            safety="safe",
            verdict="not-exercised",
            action="leave",
        ),
    ),
    sites=(
        Site("train.py", 41, "waits for the device", 1, "TL301 item-in-train-loop"),
        Site("train.py", 44, "waits for the device", 1, "TL303 implicit-sync-in-logging"),
        Site("data.py", 30, "copies from pageable memory", 2),
    ),
    together=Together(
        kept=2,
        verdict="faster",
        speedup=ratio(3.41, 0.02, 8),
        syncs=Change(3, 1),
        memory=Change(1200 * MIB, 1199 * MIB),
        words="loss after 40 steps equal within 0.4 of the tolerance",
    ),
    warnings=("The host was busy during replicate 3: it was measured again.",),
    written="Nothing was written. Apply the 2 kept fixes: torchlint fix --verified",
    provenance=(("commit", "0123abc"), ("created", "2026-03-02T11:00:00Z"), ("seed", "7")),
)
