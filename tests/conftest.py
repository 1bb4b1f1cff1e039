"""What holds for all tests, what lets them run in less time, and `pytest --rule NAME`, which runs those of one rule.

No test, and no process that one starts, reaches the cache of who runs them. The processes of the tests are torchlint's
own, as those are in which it lints for people; `test_parsing.py` starts others.
"""

from __future__ import annotations

import gc
import os
import shutil
import sys
import tempfile
from typing import TYPE_CHECKING

import pytest

from torchlint import registry
from torchlint.registry import UnknownRuleError
from torchlint.rule import Rule
from torchlint.syntax.parsing import own_process

if TYPE_CHECKING:
    from pathlib import Path

# Where the tests of all rules stand; those of one stand in `test_<module>.py`.
OF_EACH_RULE = (
    "test_contract.py",
    "test_evidence.py",
    "test_fixtures.py",
    "test_metamorphic.py",
    "test_workloads.py",
)
# What tests start would otherwise compile all of torchlint again each time, where the environment forbids to keep that.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
_CHOSEN = pytest.StashKey[Rule | None]()
_FOLDER = pytest.StashKey[str]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rule", metavar="NAME", help="all tests of one rule, the slow ones too, in this process")


def pytest_configure(config: pytest.Config) -> None:
    own_process()
    if not hasattr(config, "workerinput"):  # workers inherit the environment
        config.stash[_FOLDER] = tempfile.mkdtemp(prefix="torchlint-tests-")
        os.environ["XDG_CACHE_HOME"] = config.stash[_FOLDER]
    name = config.getoption("--rule")
    try:
        config.stash[_CHOSEN] = registry.find(name) if name else None
    except UnknownRuleError as error:
        raise pytest.UsageError(str(error)) from None
    if name and config.option.markexpr == "not slow":
        config.option.markexpr = ""
    if config.option.markexpr == "not slow":
        os.environ["TORCHLINT_TESTS_SOME_LAWS"] = "1"  # which `laws` reads


def pytest_unconfigure(config: pytest.Config) -> None:
    folder = config.stash.get(_FOLDER, None)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """None of its own for one rule: what they take to start is more than they save."""
    return 0 if config.getoption("--rule") else None


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Only the files that can hold tests of the rule, so that the others are not even imported."""
    rule = config.stash[_CHOSEN]
    if rule is None or collection_path.suffix != ".py":
        return None
    return True if collection_path.name not in (*OF_EACH_RULE, f"test_{rule.module}.py") else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    rule = config.stash[_CHOSEN]
    if rule is None:
        return
    others = [item for item in items if not _is_about(item, rule)]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if item not in others]


def pytest_collection_finish() -> None:
    """What was collected stays: the collector need not look at it again, each time that it comes, nor come so often.

    Trees are many objects and no cycles. And on tensors as small as those of tests, a thread more spends most of its
    time waiting, and burns a core.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


def _is_about(item: pytest.Item, rule: Rule) -> bool:
    """Whether a test is of a file of the rule, or is made for the rule, its name or one of its files."""
    if item.path.name == f"test_{rule.module}.py":
        return True
    values = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return any(
        value is rule or (isinstance(value, str) and (value == rule.name or value.startswith(f"{rule.module}/")))
        for value in values
    )
