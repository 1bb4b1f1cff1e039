"""Looks at what slices have measured, as checks that pass or fail.

usage: python3 tools/first_gpu/look.py ev

It needs nothing but Python. Exit status 1: one fails, or there is no evidence. README.md beside this file says what to
do then.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Check = tuple[bool, str]
LEAST_REPLICATES = 4  # before which nothing is decided


def checks(measured: dict[str, Any]) -> Iterator[Check]:
    """Those of one measurement: whether it passes, and what was looked at."""
    numerics, counts, verdict = measured["numerics"], measured["counts"], measured["verdict"]
    if numerics:
        yield numerics["verdict"] in ("same", "same-within-class"), f"numerics {numerics['verdict']}"
    yield verdict["overall"] not in ("error", "timeout", "oom", "suspicious"), f"verdict {verdict['overall']}"
    if measured["device"]["type"] == "cuda" and numerics and numerics["verdict"] != "wrong":
        launches = counts["before"]["launches"] if counts else 0
        yield launches > 0, f"{launches:g} launches" if counts else verdict["reason"] or "not counted"
    controls, conditions = measured["controls"], measured.get("conditions") or {}
    if controls and measured["time"] and measured["time"]["speedup"]["n"] >= LEAST_REPLICATES:
        yield bool(controls["handicap_seen"]), "the delay of 5 % is seen"
    if conditions.get("slowed") is not None:
        yield not conditions["slowed"], f"held back by {', '.join(conditions['slowed']) or 'nothing'}"


def looked(entry: dict[str, Any]) -> Iterator[Check]:
    """Those of a size that was compared and counted, and is still to be timed."""
    found = entry["looked"]
    verdict = found["numerics"]["verdict"]
    yield verdict in ("same", "same-within-class"), f"numerics {verdict}"
    if found["counted"] and found["memory"]:
        launches = found["counts"][0].get("launches", 0) if found["counts"] else 0
        yield launches > 0, f"{launches:g} launches" if found["counts"] else f"not counted: {found['uncounted']}"


def main(folder: Path) -> int:
    """Print a line for each check of all that was found below the folder."""
    failed = waiting = 0
    for journal in sorted(folder.glob(".measuring-*.json")):
        for name, entry in sorted(json.loads(journal.read_text(encoding="utf-8")).items()):
            if "looked" in entry:
                waiting += 1
                for passed, what in looked(entry):
                    failed += not passed
                    print(f"{'pass' if passed else 'FAIL'}  {', '.join(name.split())}: {what}")
    files = sorted(folder.glob("*/evidence/*.json"))
    for file in files:
        for measured in json.loads(file.read_text(encoding="utf-8"))["measurements"]:
            subject = measured["subject"]
            for passed, what in checks(measured):
                failed += not passed
                print(f"{'pass' if passed else 'FAIL'}  {subject['rule']}, {subject['size']}: {what}")
    print(f"{len(files)} files of evidence, {waiting} sizes to be timed, {failed} checks fail")
    return 1 if failed or not (files or waiting) else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
