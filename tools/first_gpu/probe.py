"""Looks at what the verifier stands on: how long a process takes to reach the GPU, and whether the profiler sees it.

usage: python3 tools/first_gpu/probe.py start | profiler [--empty-session-first] | noise

`profiler` has to show `cudaLaunchKernel` 20 or more, `cudaMemcpyAsync` 20, `Memcpy HtoD` and `Memcpy DtoH` 10 each.
With an empty session first it may show less: CUPTI of CUDA 13.0 is reported to die of it. It needs torch and nothing
else.

`noise` says by how much blocks of 50 ms of one Python process differ (the standard deviation of log time): one after
the other, after it slept, and after it was stopped and woken, as arms are. It shows what of the noise is the machine's.
"""

from __future__ import annotations

import math
import os
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter

RUNS = 10
SLOW_S = 20.0
EXPECTED = {
    "cudaLaunchKernel": 2 * RUNS,
    "cudaMemcpyAsync": 2 * RUNS,
    "Memcpy HtoD": RUNS,
    "Memcpy DtoH": RUNS,
}


def start() -> None:
    """Seconds until the first tensor is on the GPU, in two fresh processes: the second finds files in memory."""
    for which in ("first", "second"):
        begin = time.monotonic()
        subprocess.run([sys.executable, "-c", "import torch; torch.ones(1).cuda()"], check=True)
        took = time.monotonic() - begin
        print(f"{'pass' if took < SLOW_S else 'FAIL'}  {which} start: {took:.1f} s")


def profiler(*, empty_session_first: bool) -> None:
    """How many calls, launches and copies the profiler sees of ten kernels with a read and ten copies."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    x = torch.ones(1 << 20, device="cuda")
    (x + 1).sum().item()
    if empty_session_first:
        with profile(activities=activities):
            pass
    with profile(activities=activities) as profiled:
        for _ in range(RUNS):
            (x + 1).sum().item()
            torch.ones(9).cuda()  # torchlint: ignore[host-factory-then-move] the copy is what is counted
    names = (event.name().partition(" (")[0] for event in profiled.profiler.kineto_results.events())
    seen = Counter(name for name in names if name.startswith(("cuda", "Memcpy")))
    passed = all(seen[name] >= least for name, least in EXPECTED.items())
    print(f"{'pass' if passed else 'FAIL'}  empty session first: {empty_session_first}; {dict(sorted(seen.items()))}")


def noise() -> None:
    """How much the times of blocks differ, by what comes between them."""
    child = (
        "import sys, time\n"
        "for _ in sys.stdin:\n"
        "    begin = time.perf_counter()\n"
        "    total = [str(each) for each in range(400_000)]\n"
        "    print(time.perf_counter() - begin, flush=True)\n"
    )
    for between in ("nothing", "sleep", "stop"):
        command = [sys.executable, "-c", child]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            logs = []
            for _ in range(42):
                if between == "stop":
                    os.kill(process.pid, signal.SIGSTOP)
                if between != "nothing":
                    time.sleep(0.15)
                os.kill(process.pid, signal.SIGCONT)
                print(file=process.stdin, flush=True)
                logs.append(math.log(float(process.stdout.readline())))
            process.stdin.close()
        kept = logs[2:]
        print(f"      blocks, {between} between them: {math.exp(statistics.fmean(kept)) * 1000:.1f} ms, ", end="")
        print(f"standard deviation {statistics.stdev(kept):.1%}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["start"]:
        start()
    elif sys.argv[1:2] == ["profiler"]:
        profiler(empty_session_first="--empty-session-first" in sys.argv)
    elif sys.argv[1:2] == ["noise"]:
        noise()
    else:
        sys.exit(__doc__)
