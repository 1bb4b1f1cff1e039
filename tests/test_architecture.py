"""The layers of pyproject.toml hold, each of them is able to fail, and a run loads no more than it needs."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TRAIN = """\
import torch


def train(model, loader, optimizer):
    total = 0.0
    for batch in loader:
        loss = model(batch, torch.ones(10).cuda()).sum()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total
"""

# What walks by hand outside of the semantics and the analyses, how often, and why no engine does it.
WALKS = {
    "rules/autograd/graph_retained_in_accumulator/spent_graphs.py": (
        2,
        "its answer is a set of bindings: those whose graphs a backward pass frees",
    ),
    "rules/sync/_shared/collector.py": (
        1,
        "what a fix wraps depends on each binding: which start a sum, which add to it",
    ),
    "rules/data/_shared/samples.py": (2, "its answer is the calls on the way to a sample, and each way is another one"),
}


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    command = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    wide = {**os.environ, "COLUMNS": "200"}  # no line is broken in two
    return subprocess.run(
        [sys.executable, "-c", command], cwd=folder, env=wide, capture_output=True, text=True, check=False
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("torchlint", "rules"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_contracts_are_kept() -> None:
    done = lint_imports(ROOT)
    assert done.returncode == 0, done.stdout
    assert "0 broken" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "line", "contract"),
    [
        ("torchlint/finding.py", "from torchlint.source import SourceFile", "Each part uses only the parts below it"),
        (
            "torchlint/semantics/knowledge/apis.py",
            "import torchlint.registry",
            "Each part uses only the parts below it",
        ),
        ("torchlint/engine.py", "def f():\n    from torchlint import suppress", "Each part uses only the parts below"),
        ("torchlint/linter.py", "from torchlint import run", "Each part uses only the parts below it"),
        ("torchlint/new_part.py", "x = 1", "Each part uses only the parts below it"),
        (
            "torchlint/finding.py",
            "if TYPE_CHECKING:\n    import torchlint.engine",
            "Each part uses only the parts below",
        ),
        ("torchlint/semantics/names/bindings.py", "import torchlint.semantics.context", "Within the semantics, too"),
        ("torchlint/semantics/new_part.py", "x = 1", "Within the semantics, too"),
        ("torchlint/analyses/tensors/ranks.py", "import torchlint.analyses.data.loaders", "Each analysis uses only"),
        ("torchlint/analyses/new_part.py", "x = 1", "Each analysis uses only those below it"),
        ("torchlint/analyses/answers.py", "import rules.sync.item_in_train_loop", "Facts about code know no rule"),
        (
            "rules/sync/item_in_train_loop.py",
            "from rules.distributed import data_parallel",
            "A group of rules does not",
        ),
        ("rules/sync/item_in_train_loop.py", "from . import repeated_item", "A rule does not know another"),
        ("rules/sync/_shared/deferred.py", "from .. import repeated_item", "A rule does not know another"),
        ("rules/sync/item_in_train_loop.py", "from torchlint.engine import examine", "A rule uses the author's"),
        ("torchlint/run.py", "import click", "Only the command line uses click"),
        ("torchlint/run.py", "import pygls", "Only the language server speaks its protocol"),
        ("torchlint/run.py", "import pyarrow", "Only what checks a corpus knows Arrow"),
        ("torchlint/verify/inside/worker.py", "import click", "The measured process imports nothing of torchlint but"),
        ("torchlint/run.py", "import torchlint.verify", "Nothing but the command line runs the user's code"),
        ("torchlint/suppress.py", "import libcst", "Only what reads code uses LibCST"),
        ("torchlint/semantics/names/bindings.py", "import torch", "Only the process that runs the measured code"),
        ("rules/sync/item_in_train_loop.py", "import torch.nn", "Only the process that runs the measured code"),
        ("torchlint/linter.py", "import subprocess", "Linting one source touches neither disk nor process"),
    ],
)
def test_a_planted_import_breaks_its_contract(copy: Path, module: str, line: str, contract: str) -> None:
    with (copy / module).open("a") as file:
        file.write(f"\n{line}\n")
    done = lint_imports(copy)
    assert done.returncode == 1, done.stdout
    rows = [row for row in done.stdout.splitlines() if row.startswith(contract)]
    assert " BROKEN" in rows[0], done.stdout


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("rules/sync/item_in_train_loop.py", "import libcst.matchers as m"),
        ("rules/sync/item_in_train_loop.py", "from libcst import codemod"),
        ("torchlint/semantics/names/bindings.py", "from libcst.metadata import ScopeProvider"),
        ("torchlint/run.py", "from torchlint.rules import data_parallel"),
    ],
)
def test_what_no_graph_of_packages_shows_is_banned_by_ruff(copy: Path, module: str, line: str) -> None:
    command = [sys.executable, "-m", "ruff", "check", "--no-cache", "--select", "TID251", "--output-format", "concise"]
    before = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    assert before.returncode == 0, before.stdout
    with (copy / module).open("a") as file:
        file.write(f"\n{line}\n")
    after = subprocess.run(command, cwd=copy, capture_output=True, text=True, check=False)
    assert after.returncode == 1
    assert after.stdout.startswith(f"{module}:")


def walks(code: str) -> int:
    """How often a module asks what reaches a name or what lies above a node, and how many caps of depth it has."""
    found = 0
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Call(func=ast.Attribute(attr="reaching" | "ancestors")):
                found += 1
            case ast.Name(id=name):
                found += "_DEEP" in name
            case ast.arg(arg=name):
                found += name == "depth"
    return found


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        ("context.reaching(name)", 1),
        ("[b.value for b in self.context.names.reaching(name)]", 1),
        ("for above in context.tree.ancestors(node): pass", 1),
        ("def f(node, context, depth=0): pass", 1),
        ("_DEEPEST = 4\nif n > _DEEPEST: pass", 2),
        ("_CALLS_DEEP = 2", 1),
        ("context.origins(name), context.guards(node), listing.depth", 0),
    ],
)
def test_a_walk_is_seen(code: str, wanted: int) -> None:
    assert walks(code) == wanted


def test_rules_leave_walking_to_the_engines() -> None:
    """Where values come from and go to, what guards a node, and recursion: `semantics/flow` has one engine for each."""
    # The depth that `notebook` counts is that of brackets in a text.
    below = ("torchlint/syntax/", "torchlint/semantics/", "torchlint/analyses/", "torchlint/notebook/")
    files = [path for name in ("torchlint", "rules") for path in (ROOT / name).rglob("*.py")]
    readers = [
        path for path in files if "import libcst" in (text := path.read_text(encoding="utf-8")) or "cst." in text
    ]
    found = Counter(
        {
            path.relative_to(ROOT).as_posix(): count
            for path in readers
            if not path.relative_to(ROOT).as_posix().startswith(below)
            and (count := walks(path.read_text(encoding="utf-8")))
        }
    )
    assert found == {name: count for name, (count, _) in WALKS.items()}


def loaded(folder: Path, *arguments: str) -> set[str]:
    """The modules that a run of torchlint loads in its own process; a module whose loading is put off is not."""
    code = (
        "import json, sys, types\n"
        "from torchlint.__main__ import main\n"
        "status = 0\n"
        "try:\n"
        f"    sys.argv = ['torchlint', *{arguments!r}]\n"
        "    main()\n"
        "except SystemExit as end:\n"
        "    status = end.code\n"
        "names = [name for name, module in sys.modules.items() if type(module) is types.ModuleType]\n"
        "print(json.dumps([status, names]), file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    status, names = json.loads(done.stderr.splitlines()[-1])
    assert status in (0, 1, None), done.stderr
    return set(names)


def roots(names: set[str]) -> set[str]:
    return {name.partition(".")[0] for name in names}


def test_check_reads_code_with_libcst_alone(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    names = loaded(tmp_path, "check", "--isolated", "--no-cache", "--jobs", "1", "train.py")
    assert "libcst" in names
    assert not names & {"libcst.matchers", "libcst.codemod"}
    assert not roots(names) & {"torch", "numpy", "asyncio", "multiprocessing"}


def test_fix_loads_no_more_than_check(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    names = loaded(tmp_path, "fix", "--isolated", "--unsafe-fixes", "--jobs", "1", "train.py")
    assert (tmp_path / "train.py").read_text() != TRAIN
    assert not names & {"libcst.matchers", "libcst.codemod"}
    assert "torch" not in roots(names)


def test_a_warm_cache_needs_no_libcst(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    cold = loaded(tmp_path, "check", "--isolated", "train.py")
    warm = loaded(tmp_path, "check", "--isolated", "train.py")
    assert "libcst" in cold
    assert "libcst" not in roots(warm)


@pytest.mark.parametrize(
    "arguments",
    [("--help",), ("--version",), ("rules",), ("check", "--isolated", "--no-cache", "plain.py")],
    ids=" ".join,
)
def test_what_reads_no_torch_code_loads_no_libcst(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "plain.py").write_text("print(1)\n")
    names = loaded(tmp_path, *arguments)
    assert not roots(names) & {"libcst", "yaml", "torch", "asyncio", "multiprocessing", "concurrent"}
