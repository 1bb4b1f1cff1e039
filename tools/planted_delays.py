"""How often a delay of 5 % is seen: `python -m tools.planted_delays`, on a quiet machine.

`torchlint verify --self-check` plants one delay for each length of steps. Here so many arms have it, each of which is
decided by itself, at the error of a session with one fix.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from pathlib import Path

from torchlint.verify import selfcheck, timing
from torchlint.verify.ablation import HANDICAP, NULL, Comparison, Stage, Version
from torchlint.verify.arms import Arm, Subject
from torchlint.verify.machine import threads_for
from torchlint.verify.session import session


def _planted(size: str, count: int, device: str, deadline: float, seed: int) -> timing.Timed:
    source = (Path(selfcheck.__file__).parent / "inside" / "steps.py").read_bytes()
    delayed = [f"{HANDICAP} {number}" for number in range(1, count + 1)]
    names = (NULL, HANDICAP, *delayed)
    asked = (Comparison(HANDICAP, NULL, "handicap"), *(Comparison(name, NULL, "alone", name) for name in delayed))
    arms = {name: Arm(name, {"steps.py": source + f"# {index:02d}\n".encode()}) for index, name in enumerate(names)}
    with tempfile.TemporaryDirectory(prefix="torchlint-self-") as folder:
        root = Path(folder)
        (root / "steps.py").write_bytes(source)
        entry = {"kind": "workload", "file": "steps.py", "size": size}
        subject = Subject(root, entry, device, threads_for(device), sys.executable)
        with session(subject, lambda _: None) as running:
            metric = "wall" if subject.on_accelerator else "cpu-time"
            stage = Stage(tuple(map(Version, names)), asked)
            return timing.measure(
                running, arms, stage, metric=metric, limits=timing.Limits(deadline=deadline), seed=seed
            )


def main() -> int:
    """Print, for steps of each length, how many of the delayed arms were called slower; 1 where one was not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--arms", type=int, default=7)
    parser.add_argument("--minutes", type=float, default=5.0, help="for steps of one length")
    parser.add_argument("--size", choices=selfcheck.SIZES, help="steps of this length only")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    missed = 0
    for size in [options.size] if options.size else selfcheck.SIZES:
        deadline = time.monotonic() + 60 * options.minutes
        timed = _planted(size, options.arms, options.device, deadline, options.seed)
        decided = [found for asked, found in timed.decisions.items() if asked.question == "alone"]
        seen = sum(found.verdict == "slower" for found in decided)
        missed += options.arms - seen
        after = ", ".join(f"{found.n}" for found in decided)
        slowed = ", ".join(f"{100 * (1 / found.ratio - 1):.1f}" for found in decided if not math.isnan(found.ratio))
        print(f"{size:6}  {seen} of {options.arms} seen, after {after} replicates; measured {slowed} %", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
