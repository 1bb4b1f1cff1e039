"""Compares what `check` says of public programs with where they wait when they run on the simulated device.

usage: python -m tools.ground_truth PROGRAMS.toml MIRRORS [--results FOLDER] [--known] [--recheck] [--only NAME ...]
                                    [--python PROGRAM] [--silent FILE] [--held-out FILE]

PROGRAMS.toml says of each program where it is, how it is started, and which small data are made up for it. MIRRORS
holds a git directory of each repository, `owner+name/repo` or `owner+name/repo/.git`. Nothing of them is kept but the
counts: `--results` is a folder for these, so that the same command goes on where it stopped. With `--recheck` only
`check` is asked again, and with `--known` nothing.

A third of the programs, by a hash of their names, is held out: of these the tables tell numbers and no lines.

A line counts as `seldom` where `check` is silent because it runs once or now and then, and the run bears that out: it
waited less than once a step. To print a loss every hundred steps is what the rules advise, so the tables give what is
named of all lines, and of those that recur.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tomli

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_STEPS = 10
_TIMEOUT_S = 400
_HELD_OUT_OF = 3
_WAITS = "syncs"
_RARE = ("(rare)", "(runs-once)")

# Checkpoints are read and written as a whole, now and then; no rule is to name them.
_CHECKPOINT = re.compile(
    r"\btorch\.(save|load)\(|\bload_state_dict\(|\bsave_pretrained\(|\bsave_(checkpoint|model|ckpt)\("
)

_SHAPES: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (name, re.compile(pattern))
    for name, pattern in (
        (
            "prints or formats a tensor",
            r"\bprint\(|\blog(ger|ging)?\.|%\s*\(|\bf['\"]|\.format\(|set_description|set_postfix",
        ),
        ("Variable(….type(Tensor))", r"\.type\(|\bVariable\("),
        ("a legacy constructor on the device", r"\b(\w*Float|\w*Long|\w*Byte|\w*Bool|)Tensor\("),
        ("new_tensor, torch.tensor, as_tensor", r"new_tensor\(|\btensor\(|as_tensor\(|asarray\("),
        ("moves to the device", r"\.to\(|\.cuda\(|\.type_as\("),
        ("to the host as an array", r"\.numpy\(|\.cpu\(|\.tolist\(|np\.\w+\("),
        ("reads a number", r"\.item\(|\bfloat\(|\bint\(|\bbool\("),
        (
            "a size that depends on data",
            r"nonzero|masked_select|unique|where\(|repeat_interleave|bincount|one_hot|argwhere",
        ),
        ("a draw that checks", r"multinomial|\.sample\(|normal\(|Categorical|Normal\(|randperm"),
        ("branches on a tensor", r"^\s*(if|elif|while|assert)\b|\band\b|\bor\b"),
        ("max, min, sum, range, sorted of tensors", r"\b(max|min|sum|range|sorted|any|all)\("),
        ("an index or mask", r"\[[^\]]*\]"),
    )
)


@dataclass(frozen=True)
class Program:
    """One program of the file: where it is, and how it is started."""

    name: str
    kind: str
    repository: str
    commit: str
    start: str
    folder: str = "."
    paths: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    data: str = ""
    samples: int = 0
    steps: int = _STEPS
    environment: dict[str, str] = field(default_factory=dict)
    replace: dict[str, str] = field(default_factory=dict)

    @property
    def held_out(self) -> bool:
        """Whether its lines are not to be looked at."""
        return int(hashlib.sha256(self.name.encode()).hexdigest(), 16) % _HELD_OUT_OF == 0


@dataclass(frozen=True)
class Line:
    """A line that waits: how often in all steps, what `check` says of it, and if nothing, why."""

    path: str
    line: int
    waits: int
    text: str
    finding: str
    severity: str
    silence: str
    checkpoint: bool

    @property
    def named(self) -> bool:
        """Whether a rule names it as waiting or copying."""
        return not self.silence

    @property
    def is_said_to_be_rare(self) -> bool:
        """Whether the rule that came nearest to naming it was silent for how seldom it runs."""
        from torchlint.spoken import AND

        return self.silence.partition(AND)[0].endswith(_RARE)


@dataclass(frozen=True)
class Result:
    """What came of a program: its lines, and the lines that are named though they ran and never wait; or why none."""

    program: Program
    steps: int = 0
    lines: tuple[Line, ...] = ()
    unmet: tuple[dict[str, Any], ...] = ()
    failed: str = ""

    @property
    def seldom(self) -> list[Line]:
        """What `check` leaves out because it runs once or now and then, and what waited less than once a step."""
        return [line for line in self.counted if line.is_said_to_be_rare and line.waits < self.steps]

    @property
    def counted(self) -> list[Line]:
        """The lines that count: checkpoints aside."""
        return [line for line in self.lines if not line.checkpoint]

    @property
    def false(self) -> list[dict[str, Any]]:
        """What was named at severity warning and never waits."""
        return [each for each in self.unmet if each["severity"] == "warning"]


def main() -> int:
    """Run those that are asked for, and print the tables."""
    options = _options()
    with open(options.programs, "rb") as file:  # noqa: PTH123 - tomli wants a file
        said = tomli.load(file)
    programs = [_program(each, said["repositories"]) for each in said["programs"]]
    wanted = [each for each in programs if not options.only or any(name in each.name for name in options.only)]
    results = []
    for number, program in enumerate(wanted, 1):
        result = _result(program, options)
        results.append(result)
        print(f"{number}/{len(wanted)} {_line_of(result)}", file=sys.stderr, flush=True)
    print("\n".join(_table(results)))
    if options.silent:
        Path(options.silent).write_text("\n".join(_open_page(results)) + "\n", encoding="utf-8")
    if options.held_out:
        Path(options.held_out).write_text("\n".join(_held_out_page(results)) + "\n", encoding="utf-8")
    return 1 if any(result.false for result in results) else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.ground_truth", description=__doc__.splitlines()[0])
    parser.add_argument("programs", type=Path)
    parser.add_argument("mirrors", type=Path)
    parser.add_argument("--results", type=Path, help="keep what was counted there")
    parser.add_argument("--recheck", action="store_true", help="ask `check` again of what was counted")
    parser.add_argument("--known", action="store_true", help="run nothing: tell of what was counted already")
    parser.add_argument("--only", nargs="*", default=(), metavar="NAME", help="programs whose names hold one of these")
    parser.add_argument("--python", default=sys.executable, help="the Python that has the programs' packages")
    parser.add_argument("--silent", metavar="FILE", help="write the tables and all silent lines to this file")
    parser.add_argument("--held-out", metavar="FILE", help="write the table of what is held out to this file")
    return parser.parse_args()


def _program(said: dict[str, Any], commits: dict[str, str]) -> Program:
    lists = {key: tuple(value) for key, value in said.items() if isinstance(value, list)}
    return Program(**{**said, **lists, "commit": commits[said["repository"]]})


def _said(program: Program) -> dict[str, Any]:
    """What the file says of a program, without what it leaves open."""
    return {
        each.name: getattr(program, each.name)
        for each in dataclasses.fields(program)
        if getattr(program, each.name) != each.default and getattr(program, each.name) != {}
    }


def _result(program: Program, options: argparse.Namespace) -> Result:
    """What is known of a program, or what a run finds out."""
    kept = options.results / f"{program.name.replace('/', '+')}.json" if options.results else None
    key = hashlib.sha256(json.dumps(_said(program)).encode()).hexdigest()
    known = json.loads(kept.read_bytes()) if kept and kept.is_file() else {}
    if options.known and known.get("key") != key:
        return Result(program, failed="not run yet")
    if known.get("key") == key and not options.recheck and (options.known or not known["failed"]):
        lines = tuple(Line(**line) for line in known["lines"])
        return Result(program, known["steps"], lines, tuple(known["unmet"]), known["failed"])
    with tempfile.TemporaryDirectory(prefix="torchlint-truth-") as scratch:
        try:
            root = Path(scratch).resolve() / "program"
            _prepare(program, options.mirrors, root, options.python)
        except (OSError, subprocess.SubprocessError) as error:
            return Result(program, failed=f"cannot be exported: {error}")
        if options.recheck and known.get("key") == key and not known["failed"]:
            result = _rechecked(program, root, known)
        else:
            result = _run(program, root, options.python)
    if kept:
        kept.parent.mkdir(parents=True, exist_ok=True)
        said = {
            "key": key,
            "failed": result.failed,
            "steps": result.steps,
            "unmet": result.unmet,
            "lines": [dataclasses.asdict(line) for line in result.lines],
        }
        kept.write_text(json.dumps(said, indent=1), encoding="utf-8")
    return result


def _prepare(program: Program, mirrors: Path, root: Path, python: str) -> None:
    """Put the files of the program's commit into `root`, and its data."""
    mirror = mirrors / program.repository.replace("/", "+") / "repo"
    git = mirror / ".git" if (mirror / ".git").is_dir() else mirror
    (root / ".git").mkdir(parents=True)  # so that it is a project
    _export(git, program, root)
    for path in sorted(root.rglob("*.py")) if program.replace else ():
        text = path.read_text(encoding="utf-8")
        for old, new in program.replace.items():
            text = text.replace(old, new)
        path.write_text(text, encoding="utf-8")
    folder = root / program.folder
    if program.data:
        made = subprocess.run([python, "-c", program.data], cwd=folder, capture_output=True, text=True, check=False)
        if made.returncode:
            raise OSError(f"its data cannot be made: {(made.stderr.strip().splitlines() or ['?'])[-1]}")


def _export(git: Path, program: Program, root: Path) -> None:
    """Write its files; what the mirror does not hold, such as large ones, is left out."""
    command = ["git", "--git-dir", str(git)]
    listed = subprocess.run(
        [*command, "ls-tree", "-r", "-z", program.commit, *(program.paths or [program.folder])],
        check=True,
        capture_output=True,
    )
    entries = [entry.partition("\t") for entry in listed.stdout.decode().split("\0") if entry]
    files = [(head.split()[2], name) for head, _, name in entries if head.split()[1] == "blob"]
    asked = "".join(f"{blob}\n" for blob, _ in files).encode()
    said = subprocess.run([*command, "cat-file", "--batch"], input=asked, check=True, capture_output=True).stdout
    at = 0
    for _, name in files:
        head, at = said[at : said.index(b"\n", at)].split(), said.index(b"\n", at) + 1
        if head[-1] == b"missing":
            continue
        size = int(head[2])
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(said[at : at + size])
        at += size + 1


def _run(program: Program, root: Path, python: str) -> Result:
    """Count it on the simulated device."""
    command = [sys.executable, "-m", "torchlint", "verify", program.start, "--device", "sim", "--only-count"]
    command += ["--no-cache", "--quiet", "--output-format", "json", "--steps", str(program.steps), "--python", python]
    command += ["--synthetic-data", str(program.samples)] if program.samples else []
    environment = {**os.environ, "MPLBACKEND": "Agg", **program.environment}
    try:
        run = subprocess.run(
            [*command, "--", *program.arguments],
            cwd=root / program.folder, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S, env=environment,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return Result(program, failed=f"takes longer than {_TIMEOUT_S} s")
    if not run.stdout.startswith("{"):
        said = (run.stderr.strip() or "it said nothing").splitlines()
        return Result(program, failed=" ".join(said[:2]))
    (report,) = json.loads(run.stdout)["reports"]
    steps = int(re.findall(r"counted ([\d,]+) step", report["summary"])[0].replace(",", ""))
    lines = [_line(root, site, steps) for site in report["sites"] if _is_own(root, site)]
    return Result(program, steps, tuple(lines), tuple(each for each in report["unmet"] if _is_own(root, each)))


def _is_own(root: Path, site: dict[str, Any]) -> bool:
    return (root / site["path"]).is_file() and (_WAITS in site.get("counts", {_WAITS: 1}))


def _line(root: Path, site: dict[str, Any], steps: int) -> Line:
    from torchlint.spoken import Statements

    text = (root / site["path"]).read_text(encoding="utf-8", errors="replace")
    rows = text.splitlines()
    statement = " ".join(
        rows[row - 1].strip() for row in sorted(Statements(text).around(site["line"])) if row <= len(rows)
    )
    return Line(
        path=site["path"],
        line=site["line"],
        waits=round(site["counts"][_WAITS] * steps),
        text=rows[site["line"] - 1].strip() if site["line"] <= len(rows) else "",
        finding=site["finding"],
        severity=site["severity"],
        silence=site["silence"],
        checkpoint=bool(_CHECKPOINT.search(statement)),
    )


def _rechecked(program: Program, root: Path, known: dict[str, Any]) -> Result:
    """What was counted with what `check` says now; what is named and never waits stays as it was seen."""
    from torchlint.config import Overrides
    from torchlint.verify.units import program as read

    places = {(str(root / line["path"]), line["line"]): line for line in known["lines"]}
    said = read(root, Overrides(), root).said_of(places)
    lines = []
    for place, line in places.items():
        now = said.get(place)
        more = {} if now is None else {"finding": now.finding, "severity": now.severity, "silence": now.silence}
        lines.append(Line(**{**line, **more}))
    return Result(program, known["steps"], tuple(lines), tuple(known["unmet"]))


# Tables


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.0%}" if whole else "-"


def _line_of(result: Result) -> str:
    if result.failed:
        return f"{result.program.name}: {result.failed}"
    named = [line for line in result.counted if line.named]
    return f"{result.program.name}: {result.steps} steps, {len(named)} of {len(result.counted)} lines named"


def _table(results: Sequence[Result]) -> Iterator[str]:
    """One row a program, and the sums of what is open and held out."""
    yield (
        "| program | kind | steps | lines that wait | named | waits | named | false "
        "| seldom | named of the others | of their waits | held out |"
    )
    yield "|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|"
    ran = [result for result in results if not result.failed]
    for result in ran:
        program = result.program
        held = "yes" if program.held_out else ""
        yield f"| {program.name} | {program.kind} | {result.steps} | {_figures([result])} | {held} |"
    for name, of in (
        ("open", [result for result in ran if not result.program.held_out]),
        ("held out", [result for result in ran if result.program.held_out]),
        ("all", ran),
    ):
        yield f"| **{name}: {len(of)}** | {len({r.program.kind for r in of})} kinds | | {_figures(of)} | |"
    for result in results:
        if result.failed:
            yield f"\nnot counted: {result.program.name}: {result.failed}"


def _figures(results: Sequence[Result]) -> str:
    lines = [line for result in results for line in result.counted]
    named = [line for line in lines if line.named]
    waits, of_named = (sum(line.waits for line in each) for each in (lines, named))
    false = sum(len(result.false) for result in results)
    by_line = f"{len(named)} ({_share(len(named), len(lines))})"
    seldom = [line for result in results for line in result.seldom]
    others, of_others = len(lines) - len(seldom), waits - sum(line.waits for line in seldom)
    recurring = f"{len(seldom)} | {_share(len(named), others)} | {_share(of_named, of_others)}"
    return f"{len(lines)} | {by_line} | {waits} | {_share(of_named, waits)} | {false} | {recurring}"


def _shape(text: str) -> str:
    return next((name for name, pattern in _SHAPES if pattern.search(text)), "a call")


def _open_page(results: Sequence[Result]) -> Iterator[str]:
    """The tables, and of what is not held out every silent line with its reason, by shape, and every false line."""
    seen = [result for result in results if not result.program.held_out]
    yield "# Where public programs wait, and what `check` says of it\n"
    yield from _table(seen)
    silent = [(result, line) for result in seen for line in result.counted if not line.named]
    shapes = Counter(_shape(line.text) for _, line in silent)
    waits = Counter[str]()
    for _, line in silent:
        waits[_shape(line.text)] += line.waits
    yield f"\n## Silent: {len(silent)} lines\n"
    for shape, count in shapes.most_common():
        yield f"\n### {shape}: {count} lines, {waits[shape]} waits\n"
        of_shape = [(result, line) for result, line in silent if _shape(line.text) == shape]
        for result, line in sorted(of_shape, key=lambda each: -each[1].waits):
            also = f" (says {line.finding} {line.severity})" if line.finding else ""
            yield f"- {_place(result.program, line.path, line.line)} `{line.text}` {line.waits} waits{also}"
            yield f"  - {line.silence}"
    yield "\n## Named as waiting at severity warning, ran, and never waited\n"
    yield from _false(seen)
    yield "\n## The same of notes\n"
    for result in seen:
        for each in result.unmet:
            if each["severity"] != "warning":
                yield f"- {_place(result.program, each['path'], each['line'])} {each['finding']}"


def _false(results: Iterable[Result]) -> Iterator[str]:
    for result in results:
        for each in result.false:
            yield f"- {_place(result.program, each['path'], each['line'])} {each['finding']}"


def _place(program: Program, path: str, line: int) -> str:
    return f"{program.repository} {path}:{line}"


def _held_out_page(results: Sequence[Result]) -> Iterator[str]:
    yield "# What is held out\n"
    yield from _table([result for result in results if result.program.held_out])


if __name__ == "__main__":
    if shutil.which("git") is None:
        sys.exit("git is needed to read the mirrors")
    sys.exit(main())
