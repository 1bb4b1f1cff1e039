"""Runs code in a process of its own that confines itself first, for the tests of isolation."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from torchlint.verify import placement

PACKAGE = str(Path(placement.__file__).parents[2])
NOBODY = 54321  # not 65534, as whose a user namespace shows what is of users that it does not know

# Everything that a test's code imports is loaded before the process becomes somebody who may not read the interpreter.
_START = """
import sys
sys.path.insert(0, sys.argv[1])
import contextlib, ctypes, glob, inspect, json, mmap, os, pathlib, resource, shutil, signal, subprocess, tempfile, time
import torchlint.verify.inside.confine as inside
from torchlint.verify import manifest
confinement = json.loads(sys.argv[2])
libc = ctypes.CDLL(None, use_errno=True)
if sys.argv[3] != "0":
    os.setgroups([])
    os.setgid(int(sys.argv[3]))
    os.setuid(int(sys.argv[3]))
    libc.prctl(4, 1, 0, 0, 0)  # a change of user makes /proc/self another's, which exec would undo
if confinement:
    held = inside.confine(confinement)
    root, tree = confinement["root"], confinement["tree"]
"""


def start(
    confinement: Mapping[str, object], code: str, *, user: int = 0, environment: Mapping[str, str] | None = None
) -> subprocess.Popen[str]:
    """A process, leader of its session, that runs `code` confined; `root`, `tree` and `held` are set there."""
    return subprocess.Popen(
        [sys.executable, "-I", "-c", _START + code, PACKAGE, json.dumps(confinement), str(user)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        cwd="/",
        env={**os.environ, **(environment or {})},
    )


def run(confinement: Mapping[str, object], code: str, *, user: int = 0) -> str:
    """What `code` prints, run confined; a failure raises with what it said. Skips where the kernel does not let it."""
    with start(confinement, code, user=user) as process:
        out, errors = process.communicate(timeout=60)
    if process.returncode:
        skip_if_refused(str(confinement.get("tier")))
        if "overlay: unshare: Operation not permitted" in errors:
            pytest.skip("this user may not make user namespaces here")
        raise AssertionError(errors)
    return out


def skip_if_refused(tier: str) -> None:
    """Skip where this machine does not offer the tier to the user who tests."""
    if tier in placement.TIERS[:-1] and not placement._holds(tier):  # noqa: SLF001 - as the controller asks
        pytest.skip(f"the kernel or a policy refuses the tier {tier}")
