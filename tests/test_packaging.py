"""What is installed works away from the checkout: from a wheel, from a source distribution and from git."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tokenize
import venv
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BAD = (
    "import torch\n\n\ndef train(model, loader, optimizer):\n    total = 0.0\n    for batch in loader:\n"
    "        loss = model(batch).sum()\n        loss.backward()\n        optimizer.step()\n"
    "        total += loss.item()\n    return total\n"
)
LIST_DATA = """
from hashlib import sha256
from torchlint.shipped import has, names, read
for top in ("rules", "fixtures"):
    pending = [""]
    while pending:
        folder = pending.pop()
        for name in names(top, folder):
            path = f"{folder}/{name}" if folder else name
            if has(top, path):
                print(f"{top}/{path}", sha256(read(top, path)).hexdigest())
            else:
                pending.append(path)
"""
HOVER = """
from torchlint.lsp.hover import hover
from torchlint.linter import lint
from torchlint.settings import Settings
from torchlint.source import SourceFile
source = SourceFile.from_bytes("train.py", open("train.py", "rb").read())
print(*map(hover, lint(source, Settings(("item-in-train-loop",))).findings))
"""

# What is installed besides what is measured, and that. The aim for the first is 3 MB; it was 4.32 before pages and fixtures
# were packed. The code alone is 3.75: its docstrings, by which it explains itself, are installed, its comments are not.
MOST_BYTES = 3_900_000
MOST_FIXTURES = 135_000
# Each file costs an installer more than its bytes.
MOST_FILES = 565

# Building takes seconds; on one worker the artefacts are built once.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("packaging")]


@dataclass(frozen=True, slots=True)
class Installed:
    """A virtual environment that holds torchlint, and where to run it from."""

    python: Path
    folder: Path

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        script, *arguments = command
        executable = self.python.with_name(script)
        return subprocess.run(
            [executable, *arguments], cwd=self.folder, env=clean(), capture_output=True, text=True, check=False
        )


def clean() -> Mapping[str, str]:
    """The environment without what would let the checkout be found."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "GIT_"))}


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, env=clean(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def install(folder: Path, requirement: str) -> Installed:
    """Install without an index: the dependencies are those of the environment that runs the tests."""
    environment = folder / "environment"
    venv.create(environment, with_pip=False)
    paths = {"base": str(environment), "platbase": str(environment)}
    packages = Path(sysconfig.get_path("purelib", "venv", paths))
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    python = Path(sysconfig.get_path("scripts", "venv", paths)) / "python"
    options = ("--quiet", "--no-index", "--no-deps", "--no-build-isolation", "--ignore-installed")
    run(sys.executable, "-m", "pip", "--python", python, "install", *options, requirement, cwd=folder)
    return Installed(python, folder)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree as git would check it out, in a repository of its own."""
    copy = tmp_path_factory.mktemp("packaging") / "torchlint"
    ignored = shutil.ignore_patterns(".git", ".*_cache", ".hypothesis", ".venv", "__pycache__", "*.egg-info", "build")
    shutil.copytree(ROOT, copy, ignore=ignored)
    identity = ("-c", "user.name=test", "-c", "user.email=test@example.org")
    for command in (("init", "--quiet"), ("add", "--all"), (*identity, "commit", "--quiet", "--message", "test")):
        run("git", *command, cwd=copy)
    return copy


@pytest.fixture(scope="module")
def distributions(checkout: Path) -> Path:
    """The source distribution, and the wheel built from it."""
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", "../dist", cwd=checkout)
    return checkout.parent / "dist"


@pytest.fixture(scope="module")
def from_wheel(distributions: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    (wheel,) = distributions.glob("*.whl")
    return install(tmp_path_factory.mktemp("wheel"), str(wheel))


@pytest.fixture(scope="module")
def from_git(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return install(tmp_path_factory.mktemp("git"), f"git+{checkout.as_uri()}")


PRINT_PAGES = (
    "import json; from torchlint.registry import all_rules; from torchlint.report.page import page; "
    "print(json.dumps({rule.path: page(rule) for rule in all_rules() if page(rule) is not None}))"
)


def package_data() -> list[str]:
    """The pages and fixtures of the checkout with their digests, as `LIST_DATA` prints what is installed.

    Of a page its head is not installed, and of its evidence only what was written below it.
    """
    generated = re.compile(rb"(?<=\n## Evidence\n\n)(?:(?!## )[^\n]*\n)*?[^\n]*`torchlint verify --rule [\w-]+`\n")

    def kept(path: Path) -> bytes:
        data = path.read_bytes()
        if path.suffix != ".md":
            return data
        data = generated.sub(b"", data)
        return data[data.index(b"## Why is this slow\n") :] if data.startswith(b"# ") else data

    return sorted(
        f"{path.relative_to(ROOT).as_posix()} {hashlib.sha256(kept(path)).hexdigest()}"
        for top, pattern in (("rules", "*.md"), ("fixtures", "*"))
        for path in (ROOT / top).rglob(pattern)
        if path.is_file() and "__pycache__" not in path.parts
    )


@pytest.mark.parametrize("source", ["from_wheel", "from_git"])
def test_pages_and_fixtures_are_found(source: str, request: pytest.FixtureRequest) -> None:
    installed: Installed = request.getfixturevalue(source)
    listed = installed.run("python", "-c", LIST_DATA)
    assert sorted(listed.stdout.splitlines()) == package_data(), listed.stderr
    location = installed.run("python", "-c", "import torchlint; print(torchlint.__file__)").stdout
    assert location.startswith(str(installed.folder)), location
    pages = installed.run("python", "-c", PRINT_PAGES).stdout
    assert len(json.loads(pages)) > 100
    for path, text in json.loads(pages).items():  # the head comes from the rule
        head, _, _ = (ROOT / "rules" / path).read_text("utf-8").partition("## Why is this slow\n")
        assert text.partition("## Why is this slow\n")[0] == head


@pytest.mark.parametrize("source", ["from_wheel", "from_git"])
def test_the_command_works_elsewhere(source: str, request: pytest.FixtureRequest) -> None:
    installed: Installed = request.getfixturevalue(source)
    (installed.folder / "train.py").write_text(BAD)
    checked = installed.run("torchlint", "check", "--no-cache", "--output-format", "concise", "train.py")
    assert checked.returncode == 1, checked.stderr
    assert "train.py:10:18: TL301" in checked.stdout
    explained = installed.run("torchlint", "explain", "TL301")
    assert explained.returncode == 0, explained.stderr
    assert explained.stdout == run(sys.executable, "-m", "torchlint", "explain", "TL301", cwd=installed.folder), (
        "its evidence is written from the fixtures"
    )


def test_what_reads_pages_and_fixtures_works_from_a_wheel(from_wheel: Installed) -> None:
    (from_wheel.folder / "train.py").write_text(BAD)
    hovered = from_wheel.run("python", "-c", HOVER)
    assert "A GPU runs behind the CPU" in hovered.stdout, hovered.stderr
    assert "**Measured**" in hovered.stdout, "evidence is read"
    sarif = from_wheel.run("torchlint", "check", "--no-cache", "--output-format", "sarif", "train.py")
    assert "## When not to use / look-alikes" in sarif.stdout, sarif.stderr
    reported = from_wheel.run("torchlint", "report", "--no-cache", "--html", "costs.html", "train.py")
    assert reported.returncode == 0, reported.stderr
    assert "</svg>" in (from_wheel.folder / "costs.html").read_text("utf-8")
    shown = from_wheel.run("torchlint", "demo")
    assert shown.returncode == 0, shown.stderr
    assert "train.py" in shown.stdout
    command = ("torchlint", "verify", "--rule", "item-in-train-loop", "--device", "sim", "--phase", "numerics,counts")
    counted = from_wheel.run(*command)
    assert counted.returncode == 0, counted.stderr
    assert "item-in-train-loop" in counted.stdout


def test_the_source_distribution_holds_the_tree(checkout: Path, distributions: Path) -> None:
    (archive,) = distributions.glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        held = {name.partition("/")[2] for name in opened.getnames()}
    tracked = subprocess.run(["git", "ls-files"], cwd=checkout, capture_output=True, text=True, check=True)
    wanted = {name for name in tracked.stdout.splitlines() if not name.startswith(".")}
    assert wanted - held == set()


def test_the_same_tree_gives_the_same_bytes(checkout: Path, tmp_path: Path) -> None:
    """Another folder, later, with other rights: what is built is the same."""
    digests = []
    for name, umask in (("one", 0o022), ("other", 0o002)):
        clone = tmp_path / name / "torchlint"
        out = tmp_path / name / "dist"
        command = (sys.executable, "-m", "build", "--no-isolation", "--outdir", out)
        environment = {**clean(), "SOURCE_DATE_EPOCH": "1764000000"}
        subprocess.run(["git", "clone", "--quiet", checkout, clone], check=True, umask=umask)
        os.utime(clone / "README.md", (1_500_000_000, 1_500_000_000 + umask))
        subprocess.run(command, cwd=clone, env=environment, capture_output=True, check=True, umask=umask)
        digests.append({path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in out.iterdir()})
    assert len(digests[0]) == 2
    assert digests[0] == digests[1]


def test_a_package_index_is_shown_no_relative_link(distributions: Path) -> None:
    (wheel,) = distributions.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        (name,) = (name for name in opened.namelist() if name.endswith(".dist-info/METADATA"))
        shown = opened.read(name).decode()
    targets = re.findall(r"\]\(([^)\s]+)\)", shown)
    assert "https://github.com/torchlint/torchlint/raw/main/docs/terminal.svg" in targets
    assert "https://github.com/torchlint/torchlint/blob/main/docs/rules.md" in targets
    assert all(target.startswith("https://") for target in targets)
    assert "\nDescription-Content-Type: text/markdown\n" in shown


def test_what_is_installed_is_small(distributions: Path) -> None:
    """Measured as the sum of files, without the bytecode that pip adds."""
    (wheel,) = distributions.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        sizes = {entry.filename: entry.file_size for entry in opened.infolist()}
    fixtures = sum(size for name, size in sizes.items() if name.startswith("torchlint/fixtures"))
    assert sum(sizes.values()) - fixtures < MOST_BYTES
    assert fixtures < MOST_FIXTURES
    assert len(sizes) < MOST_FILES


def without_private_texts(code: str) -> str:
    """The tree of a module, but for the docstrings of what is private."""
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef)) and node.name.startswith("_"):
            del node.body[: len(node.body) > 1 and ast.get_docstring(node) is not None]
    return ast.dump(tree)


def test_the_code_that_is_installed_is_that_of_the_checkout_without_comments(
    checkout: Path, distributions: Path
) -> None:
    (wheel,) = distributions.glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        installed = {name: opened.read(name).decode() for name in opened.namelist() if name.endswith(".py")}
    assert len(installed) > 400
    for name, code in installed.items():
        path = checkout / name
        ours = (path if path.exists() else checkout / name.removeprefix("torchlint/")).read_text("utf-8")
        assert without_private_texts(code) == without_private_texts(ours), name
        assert code.count("\n") == ours.count("\n"), name
        kinds = {token.type for token in tokenize.generate_tokens(io.StringIO(code).readline)}
        assert tokenize.COMMENT not in kinds, name


def test_a_python_without_bz2_is_told(from_wheel: Installed) -> None:
    without = "import sys; sys.modules['bz2'] = None; from torchlint.cli import run; sys.exit(run(sys.argv[1:]))"
    told = from_wheel.run("python", "-c", without, "explain", "TL301")
    assert (told.returncode, told.stderr.count("\n")) == (2, 1)
    assert told.stderr == (
        "error: torchlint's rules are packed with bz2, which this Python lacks: build it with libbz2\n"
    )
    (from_wheel.folder / "plain.py").write_text("import torch\n")
    assert from_wheel.run("python", "-c", without, "check", "plain.py").returncode == 0


def test_what_an_earlier_build_left_is_not_built_again(checkout: Path, tmp_path: Path) -> None:
    clone = tmp_path / "torchlint"
    run("git", "clone", "--quiet", checkout, clone, cwd=tmp_path)
    gone = clone / "build" / "lib" / "torchlint" / "rules" / "sync" / "gone.py"
    gone.parent.mkdir(parents=True)
    gone.touch()
    run(sys.executable, "-m", "build", "--no-isolation", "--wheel", "--outdir", "../dist", cwd=clone)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        assert not [name for name in opened.namelist() if name.endswith(("/gone.py", ".md"))]


def test_the_wheel_holds_nothing_else(from_wheel: Installed) -> None:
    listed = from_wheel.run(
        "python",
        "-c",
        "from importlib.metadata import files\n"
        "print(*sorted({file.parts[0] for file in files('torchlint')} - {'..'}), sep='\\n')",
    )
    version = listed.stdout.splitlines()[-1].removeprefix("torchlint-").removesuffix(".dist-info")
    assert listed.stdout.splitlines() == ["torchlint", f"torchlint-{version}.dist-info"]
