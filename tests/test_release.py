"""What a release is made of: the version, the tag and the changelogs agree, and the workflows publish what was built."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import tomli
import yaml
from release import disagreements

from torchlint import __version__
from torchlint.registry import all_rules

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ACTION = re.compile(r"uses: (?P<name>[\w./-]+)(?:@(?P<version>\S+))?(?: # (?P<tag>\S+))?$", re.MULTILINE)


def workflow(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text("utf-8"))
    return found


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree that is ready for the release of 1.2.0."""
    extension = tmp_path / "editors" / "vscode"
    extension.mkdir(parents=True)
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2026-11-26\n\n- New.\n\n## [1.1.0]\n\n- Old.\n"
    )
    (extension / "CHANGELOG.md").write_text("# Changelog\n\n## [1.2.0] - 2026-11-26\n\n- New.\n")
    (extension / "package.json").write_text(json.dumps({"version": "1.2.0"}))
    (extension / "package-lock.json").write_text(
        json.dumps({"version": "1.2.0", "packages": {"": {"version": "1.2.0"}}})
    )
    return tmp_path


def said(tree: Path, tag: str | None = "v1.2.0", version: str = "1.2.0", first: str = "1.2.0") -> list[str]:
    return list(disagreements(tree, version, {"some-rule": first}, tag))


def test_this_tree_agrees() -> None:
    assert not list(disagreements(ROOT, __version__, {rule.name: rule.since for rule in all_rules()}, None))


def test_a_release_that_agrees_passes(tree: Path) -> None:
    assert said(tree) == []
    assert said(tree, tag=None) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "line"),
    [
        ("CHANGELOG.md", "[Unreleased]\n", "[Unreleased]\n\n- More.\n", "something under Unreleased"),
        ("CHANGELOG.md", " - 2026-11-26", "", "needs its day"),
        ("CHANGELOG.md", "[1.2.0] - 2026-11-26", "[1.0.0]", "no section for 1.2.0"),
        ("CHANGELOG.md", "[1.1.0]", "[1.3.0]", "not sorted"),
        ("CHANGELOG.md", "[Unreleased]", "[1.3.0]", "newer than 1.2.0"),
        ("editors/vscode/CHANGELOG.md", "[1.2.0]", "[1.0.0]", "no section for 1.2.0"),
        ("editors/vscode/package.json", "1.2.0", "1.1.0", "package.json is of version 1.1.0"),
        ("editors/vscode/package-lock.json", '""', '"": {"version": "1.1.0"}, "a"', "(packages) is of version 1.1.0"),
    ],
)
def test_what_does_not_agree_is_named(tree: Path, file: str, old: str, new: str, line: str) -> None:
    text = (tree / file).read_text()
    assert old in text
    (tree / file).write_text(text.replace(old, new, 1))
    assert any(line in each and file.rpartition("/")[2][:7] in each for each in said(tree))


def test_a_tag_of_another_version_and_a_rule_of_a_later_one_are_named(tree: Path) -> None:
    assert said(tree, tag="v1.2.1") == ["the tag is v1.2.1, the version is 1.2.0"]
    assert said(tree, first="1.3.0") == ["rules of a version that is to come: 1, such as some-rule since 1.3.0"]


def test_between_releases_what_is_new_stands_under_unreleased(tree: Path) -> None:
    text = (tree / "CHANGELOG.md").read_text().replace("[Unreleased]\n", "[Unreleased]\n\n- More.\n")
    (tree / "CHANGELOG.md").write_text(text)
    assert said(tree, tag=None, first="1.3.0") == []
    (tree / "CHANGELOG.md").write_text("# Changelog\n\n## [1.1.0]\n")
    assert "neither for 1.2.0 nor for what is unreleased" in said(tree, tag=None)[0]


def test_five_packages_at_most_are_needed_to_run() -> None:
    project = tomli.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert len(project["dependencies"]) <= 5


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_actions_of_others_are_named_by_their_commit(path: Path) -> None:
    found = list(ACTION.finditer(path.read_text("utf-8")))
    assert found
    for action in found:
        if action["name"].startswith("./"):
            assert (ROOT / action["name"]).is_file()
        else:
            assert re.fullmatch(r"[0-9a-f]{40}", action["version"]), action[0]
            assert re.fullmatch(r"v\d+\.\d+\.\d+", action["tag"]), action[0]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_job_may_write_only_what_it_publishes(path: Path) -> None:
    found = workflow(path.name)
    assert found["permissions"] == {"contents": "read"}
    allowed = {"release.yml": {"id-token"}, "docs.yml": {"id-token", "pages"}}.get(path.name, set())
    for job in found["jobs"].values():
        written = {name for name, right in job.get("permissions", {}).items() if right == "write"}
        assert written <= allowed
        assert not written or "environment" in job


def test_a_release_publishes_what_ci_builds_each_time() -> None:
    built = "./.github/workflows/build.yml"
    assert built in {job.get("uses") for job in workflow("ci.yml")["jobs"].values()}
    jobs = workflow("release.yml")["jobs"]
    assert jobs["build"]["uses"] == built
    assert jobs["build"]["needs"] == "agrees"
    assert jobs["publish"]["needs"] == "build"
    commands = [step["run"] for step in jobs["agrees"]["steps"] if "run" in step]
    assert commands == ["python -m pip install -e .", 'python -m tools.release "$GITHUB_REF_NAME"']
    (kept,) = (
        step["with"] for step in workflow("build.yml")["jobs"]["build"]["steps"] if "upload" in step.get("uses", "")
    )
    fetched, published = jobs["publish"]["steps"]
    assert fetched["with"]["name"] == kept["name"] == "distributions"
    assert published["uses"].startswith("pypa/gh-action-pypi-publish@")
    assert published["with"]["attestations"] is True
    assert "password" not in published["with"]


def test_ci_runs_each_python_that_is_promised() -> None:
    project = tomli.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    promised = re.findall(r":: (3\.\d+)$", "\n".join(project["classifiers"]), re.MULTILINE)
    assert workflow("ci.yml")["jobs"]["versions"]["strategy"]["matrix"]["python"] == promised
