"""Before and after a session on a GPU machine without a network: wheels to take along, and evidence to bring home.

usage: python tools/first_gpu/prepare.py [--python 3.12]     fills .whl/ with torchlint and what it needs
       python tools/first_gpu/prepare.py home ev.tgz         puts the evidence into fixtures/ and writes the pages

On the machine: `bash tools/first_gpu/run.sh 1`, and so on to 7. README.md beside this file says what to look at.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tarfile
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parents[2]
NEEDED = ("libcst", "msgspec", "tomli", "click", "pyyaml")
PLATFORMS = ("manylinux2014_x86_64", "manylinux_2_17_x86_64", "manylinux_2_28_x86_64")


def main() -> None:
    """Do one of both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["wheels", "home"], default="wheels")
    parser.add_argument("archive", nargs="?", type=Path)
    parser.add_argument("--python", default="3.12", metavar="VERSION")
    options = parser.parse_args()
    if options.what == "wheels":
        wheels(options.python)
    elif options.archive is None:
        parser.error("which archive?")
    else:
        for name in home(options.archive, ROOT / "fixtures"):
            print(name)
        subprocess.run([sys.executable, str(ROOT / "tools" / "generate_pages.py")], check=True)


def wheels(python: str) -> None:
    """Build one of torchlint, and download those of what it needs, for that version of Python on Linux."""
    folder = ROOT / ".whl"
    folder.mkdir(exist_ok=True)
    for old in folder.glob("torchlint-*.whl"):
        old.unlink()
    pip = [sys.executable, "-m", "pip"]
    subprocess.run([*pip, "wheel", "-q", "--no-deps", "-w", str(folder), str(ROOT)], check=True)
    platforms = [word for platform in PLATFORMS for word in ("--platform", platform)]
    only = ["--no-deps", "--only-binary=:all:", "--python-version", python, *platforms]
    subprocess.run([*pip, "download", "-q", *only, "-d", str(folder), *NEEDED], check=True)


def home(archive: Path, fixtures: Path) -> list[str]:
    """Put the evidence files of an archive beside their pairs; their names. ValueError for anything else in it."""
    found = []
    with tarfile.open(archive) as packed:
        for member in packed.getmembers():
            parts = PurePosixPath(member.name).parts
            if not member.isfile() or parts[-1].startswith("."):
                continue
            match parts:
                case ("ev", pair, "evidence", name) if name.endswith(".json") and (fixtures / pair).is_dir():
                    data = packed.extractfile(member)
                    assert data is not None  # a file has one
                    target = fixtures / pair / "evidence" / name
                    target.parent.mkdir(exist_ok=True)
                    target.write_bytes(data.read())
                    found.append(f"{pair}/evidence/{name}")
                case _:
                    raise ValueError(f"{member.name} is no evidence of a pair")
    return sorted(found)


if __name__ == "__main__":
    main()
