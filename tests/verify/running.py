"""Runs programs on the simulated device, in a process of its own, and says on which of their lines the host waits.

usage: python running.py FOLDER

Prints one object of JSON: for each file of the folder its lines that wait.
"""

from __future__ import annotations

import contextlib
import io
import json
import runpy
import sys
from pathlib import Path

import torch

from torchlint.verify.inside.sim import simulated_cuda


def main(folder: str) -> None:
    """Run each, from the same seed."""
    found = {}
    torch.set_num_threads(1)
    with simulated_cuda() as device:
        for path in sorted(Path(folder).glob("[!_]*.py")):
            torch.manual_seed(0)
            device.reset()
            with contextlib.redirect_stdout(io.StringIO()):
                runpy.run_path(str(path), run_name="__main__")
            sites = device.sites()
            found[path.name] = sorted(
                {int(site["line"]) for site in sites if site["kind"] == "syncs" and site["file"] == str(path)}
            )
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
