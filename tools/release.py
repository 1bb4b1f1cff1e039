"""Say whether the version, the tag, the changelogs and the editor extension agree.

usage: python -m tools.release [TAG]

Exit status 1: they don't, each time in one line. Without a tag a version that is being worked on passes: what is new
stands under Unreleased. With one nothing may stand there any more, and the version has its day.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from torchlint import __version__
from torchlint.registry import all_rules

ROOT = Path(__file__).parents[1]
_SECTION = re.compile(r"^## \[(?P<name>[^\]]+)\](?P<day>.*)$", re.MULTILINE)
_DAY = re.compile(r" - \d{4}-\d\d-\d\d")
_EXTENSION = "editors/vscode"


def main() -> int:
    """Name what does not agree."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("tag", nargs="?", help="the tag of the release, such as v1.2.3")
    tag = parser.parse_args().tag
    since = {rule.name: rule.since for rule in all_rules()}
    found = list(disagreements(ROOT, __version__, since, tag))
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


def disagreements(root: Path, version: str, since: dict[str, str], tag: str | None) -> Iterator[str]:
    """What of the tree does not go with the version, or with the tag; `since` is the version that brought each rule."""
    if tag is not None and tag != f"v{version}":
        yield f"the tag is {tag}, the version is {version}"
    yield from _of_changelog(root, "CHANGELOG.md", version, is_release=tag is not None)
    yield from _of_changelog(root, f"{_EXTENSION}/CHANGELOG.md", version, is_release=tag is not None)
    manifest = json.loads((root / _EXTENSION / "package.json").read_text("utf-8"))
    lock = json.loads((root / _EXTENSION / "package-lock.json").read_text("utf-8"))
    told = {"package.json": manifest, "package-lock.json": lock, "package-lock.json (packages)": lock["packages"][""]}
    for file, held in told.items():
        if held["version"] != version:
            yield f"{_EXTENSION}/{file} is of version {held['version']}, not {version}"
    early = sorted(name for name, first in since.items() if _numbers(first) > _numbers(version))
    if tag is not None and early:
        yield f"rules of a version that is to come: {len(early)}, such as {early[0]} since {since[early[0]]}"


def _of_changelog(root: Path, file: str, version: str, *, is_release: bool) -> Iterator[str]:
    text = (root / file).read_text("utf-8")
    sections = list(_SECTION.finditer(text))
    names = [section["name"] for section in sections]
    if is_release:
        if "Unreleased" in names:
            at = names.index("Unreleased")
            end = sections[at + 1].start() if at + 1 < len(sections) else len(text)
            if text[sections[at].end() : end].strip():
                yield f"{file}: there is something under Unreleased, which has to go to {version}"
        day = next((section["day"] for section in sections if section["name"] == version), None)
        if day is None:
            yield f"{file} has no section for {version}"
        elif not _DAY.fullmatch(day):
            yield f"{file}: the section for {version} needs its day: `## [{version}] - YYYY-MM-DD`"
    elif not {"Unreleased", version}.intersection(names):
        yield f"{file} has a section neither for {version} nor for what is unreleased"
    released = [name for name in names if name != "Unreleased"]
    if released != sorted(released, key=_numbers, reverse=True):
        yield f"{file}: the versions are not sorted, the newest first"
    if any(_numbers(name) > _numbers(version) for name in released):
        yield f"{file} has a section for {released[0]}, which is newer than {version}"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


if __name__ == "__main__":
    sys.exit(main())
