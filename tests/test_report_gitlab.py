from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from report_samples import CRASHED, TRAIN, UNPARSABLE, UNREADABLE, finding, options, report, sample, span

from torchlint.finding import Doubt, Frequency, Severity
from torchlint.report import FileReport, ReportOptions, render

# What GitLab's documentation asks of an issue; without any of it an issue is dropped.
SCHEMA = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["description", "check_name", "fingerprint", "severity", "location"],
        "properties": {
            "description": {"type": "string", "minLength": 1},
            "check_name": {"type": "string", "minLength": 1},
            "fingerprint": {"type": "string", "pattern": "^[0-9a-f]{32}$"},
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "type": "object",
                "required": ["path", "positions"],
                "properties": {
                    "path": {"type": "string", "pattern": r"^[^/.]"},
                    "positions": {
                        "type": "object",
                        "required": ["begin"],
                        "additionalProperties": {
                            "type": "object",
                            "required": ["line"],
                            "properties": {"line": {"type": "integer", "minimum": 1}, "column": {"type": "integer"}},
                        },
                    },
                },
            },
        },
    },
}


def issues(*reports: FileReport, given: ReportOptions | None = None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(render("gitlab", reports, given or options()))
    jsonschema.validate(found, SCHEMA)
    return found


def test_an_issue() -> None:
    (issue,) = issues(sample())
    fingerprint = issue.pop("fingerprint")
    assert len(fingerprint) == 32
    assert issue == {
        "check_name": "sample-item-in-loop",
        "description": "TL391: `loss.item()` makes the host wait for the device",
        "severity": "major",
        "location": {
            "path": "train.py",
            "positions": {"begin": {"line": 7, "column": 18}, "end": {"line": 7, "column": 29}},
        },
    }


def test_severities() -> None:
    note = replace(finding(span(TRAIN, "loss")), severity=Severity.NOTE, doubts=(Doubt.RUNS_ONCE,))
    found = issues(report(TRAIN, note), UNREADABLE, UNPARSABLE, CRASHED)
    assert [issue["severity"] for issue in found] == ["info", "critical", "critical", "critical"]
    assert "— this runs only once" in found[0]["description"]


def test_fingerprints_are_unique_and_outlive_moved_lines() -> None:
    text = "a.item()\nb = 1\na.item()\n"
    findings = (finding(span(text, "a.item()")), finding(span(text, "a.item()", 2)))
    before = [issue["fingerprint"] for issue in issues(report(text, *findings), report(text, *findings, path="b.py"))]
    assert len(set(before)) == 4
    moved = f"import torch\n\n{text}"
    shifted = (finding(span(moved, "a.item()"), Frequency.ONCE), finding(span(moved, "a.item()", 2)))
    assert before[:2] == [issue["fingerprint"] for issue in issues(report(moved, *shifted))]


def test_paths_start_at_the_root_of_the_repository() -> None:
    (issue,) = issues(sample(), given=replace(options(), folder="packages/model"))
    assert issue["location"]["path"] == "packages/model/train.py"


def test_no_finding_is_an_empty_list() -> None:
    assert issues(report(TRAIN)) == []


@pytest.mark.parametrize("key", ["description", "fingerprint", "location"])
def test_the_schema_sees_what_is_missing(key: str) -> None:
    (issue,) = issues(sample())
    del issue[key]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate([issue], SCHEMA)
