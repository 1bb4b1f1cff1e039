"""Trains workloads on the CPU, each in as many processes as it asks for, and keeps what they end with.

usage: python ranks.py PROGRAMS RESULTS

PROGRAMS is a file of JSON: for each name `source` and `ranks`; one rank is a process without a group. RESULTS is a
folder that gets NAME-RANK.json: the parameters after `STEPS` steps as lists, and the losses of all steps.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import socket
import sys
import time
from pathlib import Path
from typing import Any

SEED = 7
STEPS = 20
PATIENCE_S = 60.0


def train(source: str, env: dict[str, str], result: str) -> None:
    """One process: set it up, take its steps, write what it ends with."""
    os.environ |= env
    import torch  # what starts the processes does without

    torch.set_num_threads(1)
    names: dict[str, Any] = {"__name__": "workload"}
    exec(compile(source, "workload.py", "exec"), names)  # noqa: S102 - our own fixtures
    torch.manual_seed(SEED)
    state = names["setup"]("cpu", "smoke")
    losses: list[float] = []
    while len(losses) < STEPS:
        some, model = names["run"](state)
        losses += some.tolist()
    parameters = {name: value.flatten().tolist() for name, value in model.state_dict().items()}
    Path(result).write_text(json.dumps({"losses": losses, "parameters": parameters}), encoding="utf-8")
    if torch.distributed.is_initialized():
        torch.distributed.barrier()  # the first one holds what the others talk through
    os._exit(0)  # the threads of a group do not always end


def free_port() -> int:
    """One that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def main(programs: str, results: str) -> None:
    """Start all processes of a program, wait for them, and go on with the next."""
    forks = "forkserver" in multiprocessing.get_all_start_methods()
    context: Any = multiprocessing.get_context("forkserver" if forks else "spawn")
    if forks:
        context.set_forkserver_preload(["torch", "torch._dynamo"])  # the optimizer loads the latter
    for name, program in json.loads(Path(programs).read_bytes()).items():
        shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(program["ranks"])}
        started = []
        for rank in range(program["ranks"]):
            env = {**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)} if program["ranks"] > 1 else {}
            target = (program["source"], env, str(Path(results, f"{name}-{rank}.json")))
            started.append(context.Process(target=train, args=target, daemon=True))
        for process in started:
            process.start()
        until = time.monotonic() + PATIENCE_S
        for process in started:
            process.join(max(until - time.monotonic(), 0))
        failed = [process.exitcode for process in started if process.exitcode != 0]
        for process in started:
            process.kill()
        if failed:
            sys.exit(f"{name}: ended with {failed}")


if __name__ == "__main__":
    main(*sys.argv[1:])
