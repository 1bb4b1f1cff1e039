"""How often a delay of 5 % is seen: `python -m tools.planted_delays`, on a quiet machine.

`torchlint verify --self-check` plants one delay for each length of steps. Here so many arms have it, each of which is
decided by itself, at the error of a session with one fix.
"""

from __future__ import annotations

import argparse
import math
import sys
import time

from torchlint.verify import selfcheck, timing
from torchlint.verify.ablation import HANDICAP


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
        delayed = [f"{HANDICAP} {number}" for number in range(1, options.arms + 1)]
        limits = timing.Limits(deadline=deadline)
        timed = selfcheck.measured(size, delayed, options.device, sys.executable, limits, options.seed, lambda _: None)
        decided = [found for asked, found in timed.decisions.items() if asked.question == "alone"]
        seen = sum(found.verdict == "slower" for found in decided)
        missed += options.arms - seen
        after = ", ".join(f"{found.n}" for found in decided)
        slowed = ", ".join(f"{100 * (1 / found.ratio - 1):.1f}" for found in decided if not math.isnan(found.ratio))
        print(f"{size:6}  {seen} of {options.arms} seen, after {after} replicates; measured {slowed} %", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    raise SystemExit(main())
