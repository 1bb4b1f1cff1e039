"""Counts what programs ask of the simulated device, in a process of its own: the simulation replaces names of torch.

usage: python counting.py PROGRAMS RESULTS

PROGRAMS is a file of JSON: for each name the source of a workload. RESULTS becomes one: `torch`, its version, and for
each name `counts` and `peak`, by the commands, and with the seeds, with which `torchlint verify --device sim` counts.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import torch
from asked import line

from torchlint.verify.checks import SEED
from torchlint.verify.inside.channel import Closed
from torchlint.verify.inside.commands import Arm
from torchlint.verify.pairs import COUNTED, WARM
from torchlint.verify.workload import FILE

SIZE = "smoke"
COMMANDS = (
    {"command": "start", "seed": SEED},
    {"command": "count", "units": COUNTED, "warm": WARM},
    {"command": "memory", "units": COUNTED},
)


def counted(source: str, folder: Path) -> dict[str, Any]:
    """What one program asks for."""
    (folder / FILE).write_text(source, encoding="utf-8")
    config = {"threads": 1, "device": "sim", "seed": SEED, "root": str(folder)}
    sys.path.insert(0, str(folder))  # loaders that do not fork import the program by its name
    try:
        with line(*COMMANDS) as (channel, replies), contextlib.ExitStack() as stack, contextlib.suppress(Closed):
            Arm(channel, config | {"entry": {"kind": "workload", "file": FILE, "size": SIZE}}, [], stack).serve()
    finally:
        sys.path.remove(str(folder))
    _, _, count, memory = replies
    return {"counts": count["counts"], "peak": memory["peak"]}


def main(programs: str, results: str) -> None:
    """Count them all, one after the other."""
    found = {}
    with contextlib.redirect_stdout(sys.stderr), tempfile.TemporaryDirectory() as folder:
        for index, (name, source) in enumerate(json.loads(Path(programs).read_bytes()).items()):
            place = Path(folder, f"{index:02d}")
            place.mkdir()
            found[name] = counted(source, place)
    Path(results).write_text(json.dumps({"torch": str(torch.__version__), "found": found}), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
