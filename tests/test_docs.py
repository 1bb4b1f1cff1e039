"""What the documents say is so."""

from __future__ import annotations

import pydoc
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from generate_picture import COMMAND, PICTURE, picture
from generate_readme import PAGES, TEN, generated

import torchlint
from torchlint.registry import find
from torchlint.rule import Status

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted((*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")))


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PAGES)
def test_generated_parts_are_fresh(page: str) -> None:
    assert generated(page, read(page)) == read(page), "run `python tools/generate_readme.py`"


@pytest.mark.parametrize(
    ("page", "changes"),
    [
        ("README.md", {"| TL301 |": "| TL999 |", "$ torchlint fix ": ""}),
        ("docs/rules.md", {"| TL301 |": "| TL999 |"}),
        ("docs/configuration.md", {"| `select` |": "| `slect` |"}),
    ],
)
def test_a_stale_part_is_noticed(page: str, changes: dict[str, str]) -> None:
    stale = read(page)
    for old, new in changes.items():
        begin = stale.index("<!-- begin: ")
        assert old in stale[begin:]
        stale = stale[:begin] + stale[begin:].replace(old, new, 1)
    assert generated(page, stale) == read(page)


def test_the_picture_shows_what_is_printed() -> None:
    assert PICTURE.read_text(encoding="utf-8") == picture(), "run `python tools/generate_picture.py`"
    root = ET.fromstring(picture())  # noqa: S314 -- our own
    lines = ["".join(line.itertext()) for line in root.iter("{http://www.w3.org/2000/svg}text")]
    assert lines[0] == f"$ torchlint {' '.join(COMMAND)}"
    assert "TL301`loss.item()` synchronizes with the GPU every batch" in lines


def test_the_readme_shows_ten_rules_that_run_unasked() -> None:
    rules = [find(name) for name in TEN]
    assert len(rules) == 10
    assert all(rule.default and rule.status is Status.STABLE for rule in rules)
    assert len({rule.group for rule in rules}) >= 5
    assert read("README.md").count("\n| TL") == 10


def test_continuous_integration_runs_the_two_commands_of_the_readme() -> None:
    steps = re.findall(r"^step ([^|\n]+?)(?: \|.*)?$", read(".ci/run").replace(" --quiet", ""), re.MULTILINE)
    for line in ("pip install -e '.[dev]' && torchlint check fixtures", "pytest"):
        assert f"\n{line}\n" in read("README.md")
        assert all(any(step.startswith(command) for step in steps) for command in line.split(" && "))


def test_continuous_integration_runs_the_slow_tests_too() -> None:
    assert '\nstep pytest -m "slow or not slow" |' in read(".ci/run")


def test_the_architecture_names_every_part() -> None:
    cells = re.findall(r"^\| (`.*?) \|", read("ARCHITECTURE.md"), re.MULTILINE)
    parts = {path.stem for path in (ROOT / "torchlint").glob("*.py")}
    parts |= {path.parent.name for path in (ROOT / "torchlint").glob("*/__init__.py")}
    assert set(re.findall(r"`(\w+)`", " ".join(cells))) == {part for part in parts if not part.startswith("__")}


def test_the_walk_through_the_architecture_passes_what_there_is() -> None:
    text = read("ARCHITECTURE.md")
    walk = text[text.index("## From a text to a finding") : text.index("```\ncli ->")]
    named = [name for name in re.findall(r"`([a-z_]+(?:\.[A-Za-z_]+)+)`", walk) if not name.endswith(".py")]
    assert len(named) > 25
    for name in named:
        assert pydoc.locate(f"torchlint.{name}") is not None, name


def test_the_changelog_has_this_version() -> None:
    assert f"\n## [{torchlint.__version__}]" in read("CHANGELOG.md")


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_relative_links_lead_somewhere(document: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", document.read_text(encoding="utf-8")):
        assert (document.parent / target).exists(), target


@pytest.mark.parametrize("path", sorted((ROOT / "rules").glob("*/**/*.[mp][dy]")), ids=lambda path: path.name)
def test_no_rule_is_left_half_written(path: Path) -> None:
    assert "TODO" not in path.read_text(encoding="utf-8")


def test_the_page_about_security_names_tests_that_there_are() -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", read("SECURITY.md"))
    assert named
    for file, test in named:
        assert f"def {test}(" in read(file), test
