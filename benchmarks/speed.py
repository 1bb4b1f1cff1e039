"""Time torchlint against the bare parsers and its peers: `python -m benchmarks.speed > benchmarks/results.md`.

Ratios are what travels between machines; the exit status is 1 where a target is missed.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from statistics import median

from benchmarks.packages import DEFAULT_FOLDER, fetch, python_files
from torchlint import __version__
from torchlint.engine import mentions
from torchlint.registry import all_rules


@dataclass(frozen=True, slots=True)
class Peer:
    """Another linter: its pinned distribution, and its command line with `{}` for the folder of its scripts."""

    pin: str
    command: tuple[str, ...]

    @property
    def name(self) -> str:
        """The distribution's name."""
        return self.pin.partition("==")[0]


# Each in one process and with all of its rules. Each has its own environment, since TorchFix pins LibCST below 1.6.
PEERS = (
    Peer("hotpath-ai==0.1.0", ("{}/hotpath", "analyze", "--include-heuristics")),
    Peer("torch-preflight==0.5.0", ("{}/torch-preflight", "check", "--jobs", "1", "--quiet")),
    Peer("TorchFix==0.7.0", ("{}/torchfix", "--select", "ALL", "--jobs", "1")),
)
TABLES = ("start", "cold", "ten", "warm")  # cold: timm and the peers; ten: all packages, no peer
SCRIPTS = "Scripts" if os.name == "nt" else "bin"
STARTUP_ROUNDS = 4  # start-up is short and its medians need more runs: this many times `--repeat`


@dataclass(frozen=True, slots=True)
class Command:
    """A command to time; `files` go to its standard input."""

    label: str
    arguments: tuple[str, ...]
    files: str = ""


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one run, or medians of several."""

    cpu: float
    wall: float


@dataclass(frozen=True, slots=True)
class Target:
    """A bound on a measured figure."""

    text: str
    measured: float
    limit: float
    at_least: bool = False

    @property
    def met(self) -> bool:
        """Whether the figure keeps within the bound."""
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit


def main() -> int:
    """Print the tables; 1 where a target is missed."""
    options = _parser().parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # doubles every import, and nobody runs a linter so on purpose
    print(
        f"# Speed\n\ntorchlint {__version__}, Python {platform.python_version()}, LibCST {version('libcst')}, "
        f"{platform.system()} {platform.machine()}; written by `python -m benchmarks.speed`. Times are medians, each "
        "command in a process of its own, the commands of one table in turn. CPU is user plus system time of the whole "
        "process tree."
    )
    targets: list[Target] = []
    with tempfile.TemporaryDirectory() as scratch:
        if "start" in options.tables:
            targets += startup(Path(scratch), options.repeat)
        if "cold" in options.tables:
            environments = _environments(options.peers, options.environment, Path(scratch))
            targets += cold(fetch(options.packages, ("timm",)), environments, options.repeat)
        if "ten" in options.tables:
            targets += cold(fetch(options.packages), {}, 1)  # minutes a round, and longer than any noise
        if "warm" in options.tables:
            targets += warm(fetch(options.packages), Path(scratch), options.repeat)
    print("\n## Targets\n")
    for target in targets:
        bound = "at least" if target.at_least else "at most"
        print(f"- {target.text}: {target.measured:.3g} ({bound} {target.limit:g}), {'met' if target.met else 'MISSED'}")
    return 0 if all(target.met for target in targets) else 1


def startup(scratch: Path, repeat: int) -> list[Target]:
    """What a run costs that parses nothing, over a bare interpreter.

    It waits for nothing, so that CPU time is what it takes on an idle machine, whatever the neighbours do.
    """
    plain = scratch / "plain.py"
    plain.write_text("def double(x):\n    return 2 * x\n")
    check = (*_torchlint("check"), "--no-cache", str(plain))
    commands = (
        Command("bare interpreter", (sys.executable, "-I", "-c", "pass")),
        Command("`torchlint --help`", (*_torchlint("--help"),)),
        Command("`torchlint check`, a file without torch", check),
    )
    bare, *rest = medians = _rounds(commands, repeat * STARTUP_ROUNDS)
    print(f"\n## Start-up ({repeat * STARTUP_ROUNDS} runs)\n")
    rows = [
        (command.label, *(f"{1000 * figure:.0f}" for figure in (timing.cpu, timing.wall, timing.cpu - bare.cpu)))
        for command, timing in zip(commands, medians, strict=True)
    ]
    _print_table(("", "CPU ms", "wall ms", "CPU over the bare interpreter's"), rows)
    return [
        Target(f"{command.label}, CPU ms over a bare interpreter", 1000 * (timing.cpu - bare.cpu), 50)
        for command, timing in zip(commands[1:], rest, strict=True)
    ]


def cold(packages: list[Path], environments: dict[str, Path], repeat: int) -> list[Target]:
    """torchlint, the parsers that it stands on and its peers over the same files, one process each, no cache."""
    files = python_files(packages)
    passed = [path for path in files if mentions(path.read_bytes(), all_rules())]
    every, some = ("\n".join(map(str, paths)) for paths in (files, passed))
    parse = (sys.executable, str(Path(__file__).with_name("parse.py")))
    folders = [str(package) for package in packages]
    commands = [
        Command(f"torchlint {__version__}, all rules", (*_check("--no-cache", "--jobs", "1"), *folders)),
        Command(f"`libcst.parse_module`, the {len(passed)} files past the prefilter", (*parse, "libcst"), some),
        Command("the same, garbage collector off", (*parse, "libcst", "--no-gc"), some),
        Command("`ast.parse`, all files", (*parse, "ast"), every),
    ]
    for peer in PEERS:
        if peer.name in environments:
            scripts = str(environments[peer.name] / SCRIPTS)
            arguments = tuple(part.format(scripts) for part in peer.command)
            commands.append(Command(peer.pin.replace("==", " "), (*arguments, *folders)))
    medians = _rounds(commands, repeat)
    ours = medians[0]
    lines = sum(path.read_bytes().count(b"\n") for path in files)
    print(f"\n## Cold, one process ({repeat} {'run' if repeat == 1 else 'runs'})\n")
    print(f"{', '.join(package.name for package in packages)}, {len(files)} files, {lines:,} lines\n")
    rows = [
        (command.label, f"{timing.cpu:.2f}", f"{timing.wall:.2f}", f"{timing.cpu / ours.cpu:.2f}")
        for command, timing in zip(commands, medians, strict=True)
    ]
    _print_table(("", "CPU s", "wall s", "CPU over torchlint's"), rows)
    by_label = {command.label: timing.cpu / ours.cpu for command, timing in zip(commands, medians, strict=True)}
    targets = [
        Target(
            f"CPU over the bare LibCST parse, collector on, {len(files)} files", 1 / by_label[commands[1].label], 1.6
        )
    ]
    for label, limit in (("TorchFix 0.7.0", 15), ("torch-preflight 0.5.0", 12)):
        if label in by_label:
            targets.append(Target(f"times faster than {label}", by_label[label], limit, at_least=True))
    return targets


def warm(packages: list[Path], scratch: Path, repeat: int) -> list[Target]:
    """A second run over unchanged files, and the first one for scale."""
    command = (*_check("--cache-dir", str(scratch / "cache")), *map(str, packages))
    first = _run(Command("", command))
    again = _rounds((Command("", command),), repeat)[0]
    print(f"\n## With a cache ({repeat} runs)\n")
    print(f"{', '.join(package.name for package in packages)}, {len(python_files(packages))} files\n")
    rows = [
        (label, f"{timing.cpu:.2f}", f"{timing.wall:.2f}", f"{timing.wall / first.wall:.4f}")
        for label, timing in (("empty cache", first), ("warm cache", again))
    ]
    _print_table(("", "CPU s", "wall s", "wall over the first run's"), rows)
    return [Target("warm run, wall seconds", again.wall, 1)]


def _torchlint(*arguments: str) -> tuple[str, ...]:
    script = Path(sys.executable).with_name("torchlint")
    return (str(script), *arguments) if script.exists() else (sys.executable, "-m", "torchlint", *arguments)


def _check(*arguments: str) -> tuple[str, ...]:
    return _torchlint("check", "--isolated", "--select", "ALL", "--preview", "--quiet", *arguments)


def _rounds(commands: Sequence[Command], repeat: int) -> list[Timing]:
    """The medians of `repeat` rounds through the commands."""
    rounds = [[_run(command) for command in commands] for _ in range(repeat)]
    return [
        Timing(median(timing.cpu for timing in timings), median(timing.wall for timing in timings))
        for timings in zip(*rounds, strict=True)
    ]


def _run(command: Command) -> Timing:
    """Time one run. Raises `RuntimeError` where it failed for another reason than that it found something."""
    with tempfile.TemporaryFile() as files, tempfile.TemporaryFile() as errors:
        files.write(command.files.encode())
        files.seek(0)
        start = time.perf_counter()
        process = subprocess.Popen(command.arguments, stdin=files, stdout=subprocess.DEVNULL, stderr=errors)
        _, status, usage = os.wait4(process.pid, 0)  # of the child and of all that it waited for
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode not in (0, 1):
            errors.seek(0)
            message = errors.read().decode(errors="replace")[-2000:]
            raise RuntimeError(f"{' '.join(command.arguments)} exited with {process.returncode}:\n{message}")
    return Timing(usage.ru_utime + usage.ru_stime, wall)


def _environments(peers: Sequence[str], given: Iterable[str], scratch: Path) -> dict[str, Path]:
    """The virtual environment of each peer: as given, or made now."""
    found = {name: Path(folder) for name, _, folder in (text.partition("=") for text in given)}
    for peer in PEERS:
        if peer.name in peers and peer.name not in found:
            folder = found[peer.name] = scratch / peer.name
            print(f"installing {peer.pin}", file=sys.stderr)
            venv.create(folder, with_pip=True)
            subprocess.run([folder / SCRIPTS / "python", "-m", "pip", "install", "--quiet", peer.pin], check=True)
    return {name: folder for name, folder in found.items() if name in peers}


def _print_table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    rule = ("-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:]))
    for label, *figures in (header, rule, *rows):
        cells = (label.ljust(widths[0]), *map(str.rjust, figures, widths[1:]))
        print(f"| {' | '.join(cells)} |")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__)
    parser.add_argument("--repeat", type=int, default=5, metavar="N", help="rounds to take medians of (default 5)")
    parser.add_argument(
        "--packages", type=Path, default=DEFAULT_FOLDER, metavar="DIR", help="unpacked wheels; missing ones are fetched"
    )
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=TABLES, help="what to time")
    names = tuple(peer.name for peer in PEERS)
    parser.add_argument("--peers", nargs="*", choices=names, default=names, help="peers to run (they take minutes)")
    parser.add_argument(
        "--environment", action="append", default=[], metavar="PEER=DIR", help="virtual environment of a peer"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
