"""The pinned packages that the benchmarks lint, and how to get them."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PINS = {
    "timm": "1.0.20",
    "ultralytics": "8.3.203",
    "diffusers": "0.35.1",
    "transformers": "4.57.0",
    "lightning": "2.5.5",
    "torchvision": "0.23.0",
    "kornia": "0.8.1",
    "speechbrain": "1.0.3",
    "stable-baselines3": "2.7.0",
    "torch-geometric": "2.6.1",
}
DEFAULT_FOLDER = Path(tempfile.gettempdir()) / "torchlint-benchmarks"


def fetch(folder: Path, names: tuple[str, ...] = tuple(PINS)) -> list[Path]:
    """The folders of the named packages below `folder`, after downloading those that are missing there."""
    for name in names:
        if not (folder / _distribution_info(name)).is_dir():
            _download(name, folder)
    return [folder / name.replace("-", "_") for name in names]


def python_files(packages: list[Path]) -> list[Path]:
    """Every Python file of the packages, sorted."""
    return sorted(path for package in packages for path in package.rglob("*.py"))


def _distribution_info(name: str) -> str:
    return f"{name.replace('-', '_')}-{PINS[name]}.dist-info"


def _download(name: str, folder: Path) -> None:
    pin = f"{name}=={PINS[name]}"
    print(f"downloading {pin}", file=sys.stderr)
    with tempfile.TemporaryDirectory() as wheels:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:"]
        subprocess.run([*command, "--dest", wheels, pin], check=True)
        for wheel in Path(wheels).glob("*.whl"):
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(folder)
