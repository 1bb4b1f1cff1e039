"""Measures code against itself: how often a difference is found where there is none, and what could be seen."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from torchlint.verify import stats, timing
from torchlint.verify.ablation import HANDICAP, NULL, Comparison, Stage, Version
from torchlint.verify.arms import Arm, Subject
from torchlint.verify.machine import threads_for
from torchlint.verify.session import session

SIZES = ("short", "middle", "long")
ARMS = 7
_FILE = "steps.py"


@dataclass(frozen=True, slots=True)
class Seen:
    """What a run over steps of one length has claimed of arms that are the same.

    `step_us` is how long a step takes; `faster` and `slower` are false claims among `arms`; `failed` says why arms gave
    no result, once for each; `effect` is the smallest effect that the noise allows to see, as a share, and None if that
    cannot be told.
    """

    size: str
    step_us: float
    arms: int
    faster: int
    slower: int
    replicates: int
    handicap_seen: bool
    effect: float | None
    failed: tuple[str, ...] = ()

    @property
    def fit(self) -> bool:
        """Whether verdicts on steps of this length can be believed."""
        return self.handicap_seen and not self.faster and not self.failed


def check(
    device: str,
    python: str,
    limits: timing.Limits,
    seed: int,
    note: Callable[[str], None],
    *,
    sizes: Sequence[str] = SIZES,
    arms: int = ARMS,
) -> list[Seen]:
    """Run steps of each length in so many arms that are the null arm. Raises `BaselineError`.

    Each length has an equal share of the time that is left when its turn comes.
    """
    found = []
    for index, size in enumerate(sizes):
        now = time.monotonic()
        share = timing.Limits(limits.max_replicates, now + (limits.deadline - now) / (len(sizes) - index))
        same = [f"same {number}" for number in range(1, arms + 1)]
        found.append(_seen(size, measured(size, same, device, python, share, seed, note)))
    return found


def measured(
    size: str,
    names: Sequence[str],
    device: str,
    python: str,
    limits: timing.Limits,
    seed: int,
    note: Callable[[str], None],
) -> timing.Timed:
    """Time arms of these names that do what the null arm does; those named after the handicap have its delay."""
    source = (Path(__file__).parent / "inside" / _FILE).read_bytes()
    versions = tuple(Version(name) for name in (NULL, HANDICAP, *names))
    comparisons = (Comparison(HANDICAP, NULL, "handicap"), *(Comparison(name, NULL, "alone", name) for name in names))
    # Arms differ in one comment of the same length: what they do is the same.
    arms = {
        version.name: Arm(version.name, {_FILE: source + f"# {index:02d}\n".encode()})
        for index, version in enumerate(versions)
    }
    with tempfile.TemporaryDirectory(prefix="torchlint-self-") as folder:
        root = Path(folder)
        (root / _FILE).write_bytes(source)
        entry = {"kind": "workload", "file": _FILE, "size": size}
        subject = Subject(root, entry, device, threads_for(device), python)
        with session(subject, lambda text: note(f"{size} steps: {text}")) as running:
            metric = "wall" if subject.on_accelerator else "cpu-time"
            return timing.measure(running, arms, Stage(versions, comparisons), metric=metric, limits=limits, seed=seed)


def _seen(size: str, timed: timing.Timed) -> Seen:
    decided = [decision for asked, decision in timed.decisions.items() if asked.question == "alone"]
    ratios = [ratio for asked, each in timed.log_ratios.items() if asked.question == "alone" for ratio in each]
    return Seen(
        size=size,
        step_us=sum(timed.baseline_ns) / len(timed.baseline_ns) / 1e3 if timed.baseline_ns else 0.0,
        arms=len(decided),
        faster=sum(decision.verdict == "faster" for decision in decided),
        slower=sum(decision.verdict == "slower" for decision in decided),
        replicates=timed.replicates,
        handicap_seen=timed.handicap_seen,
        effect=stats.detectable_effect(ratios, timed.looks[-1]) if len(ratios) > 1 else None,
        failed=tuple(failure.reason for failure in timed.failures.values()),
    )


def lines(found: Sequence[Seen]) -> str:
    """What was seen, a line for each length of steps, and the sum."""
    shown = []
    for seen in found:
        effect = (
            f"effects of {100 * seen.effect:.1f} % can be seen" if seen.effect is not None else "too few replicates"
        )
        handicap = "a delay of 5 % is seen" if seen.handicap_seen else "a delay of 5 % is NOT seen"
        failed = f"; {len(seen.failed)} more FAILED: {seen.failed[0]}" if seen.failed else ""
        shown.append(
            f"{seen.size:6}  {seen.step_us:,.0f} µs a step, {seen.replicates} replicates of {seen.arms} equal arms: "
            f"{seen.faster} called faster, {seen.slower} slower; {handicap}; {effect}{failed}"
        )
    arms, wrong = sum(seen.arms for seen in found), sum(seen.faster for seen in found)
    shown.append(f"false `faster`: {wrong} of {arms}")
    return "".join(f"{line}\n" for line in shown)
