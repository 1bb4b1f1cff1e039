from __future__ import annotations

import json
from typing import Any

from report_samples import CRASHED, RULE, TRAIN, UNPARSABLE, UNREADABLE, finding, options, report, sample, span

from torchlint.finding import Applicability, Edit, Fix, Frequency, Span
from torchlint.report import FileReport, render


def parsed(*reports: FileReport) -> list[dict[str, Any]]:
    return json.loads(render("json", reports, options()))  # type: ignore[no-any-return]


def test_a_finding_under_the_keys_of_ruff_and_how_often_it_runs() -> None:
    assert parsed(sample()) == [
        {
            "code": "TL391",
            "name": "sample-item-in-loop",
            "message": "`loss.item()` makes the host wait for the device",
            "help": "Add up on the device",
            "severity": "warning",
            "doubts": [],
            "places": [],
            "filename": "train.py",
            "cell": None,
            "location": {"row": 7, "column": 18},
            "end_location": {"row": 7, "column": 29},
            "file_location": None,
            "frequency": "per batch",
            "called_from": None,
            "fix": {
                "applicability": "unsafe",
                "message": "Add up on the device",
                "edits": [
                    {
                        "content": "loss.detach()",
                        "cell": None,
                        "location": {"row": 7, "column": 18},
                        "end_location": {"row": 7, "column": 29},
                    }
                ],
            },
            "url": RULE.url,
        }
    ]


def test_what_is_not_known_is_null() -> None:
    (found,) = parsed(report(TRAIN, finding(span(TRAIN, "loss"), Frequency.UNKNOWN)))
    assert found["frequency"] is None
    assert found["fix"] is None
    assert json.loads(render("json", (sample(),), options(rules=())))[0]["url"] is None


def test_diagnostics() -> None:
    found = parsed(UNREADABLE, UNPARSABLE, CRASHED)
    assert [(entry["code"], entry["name"], entry["filename"]) for entry in found] == [
        ("E902", "io-error", "gone.py"),
        ("E999", "invalid-syntax", "broken.py"),
        ("E000", "rule-failed", "fine.py"),
    ]
    assert [entry["location"] for entry in found] == [
        {"row": 1, "column": 1},
        {"row": 1, "column": 7},
        {"row": 1, "column": 1},
    ]
    assert all(entry["fix"] is entry["url"] is entry["frequency"] is None for entry in found)
    assert {frozenset(entry) for entry in found} == {frozenset(parsed(sample())[0])}


def test_edits_rebuild_the_fixed_text_from_rows_and_columns() -> None:
    text = "é = '日本😀'\r\nx.item()\r\n"
    edits = (Edit(span(text, "x.item()\r\n"), ""), Edit(Span(0, 1), "b"), Edit(Span(5, 7), "\n\t"))
    (found,) = parsed(report(text, finding(Span(0, 1), fix=Fix("t", edits, Applicability.SAFE))))
    lines = text.splitlines(keepends=True)
    for edit in reversed(found["fix"]["edits"]):
        start, end = edit["location"], edit["end_location"]
        at = len("".join(lines[: start["row"] - 1])) + start["column"] - 1
        to = len("".join(lines[: end["row"] - 1])) + end["column"] - 1
        text = text[:at] + edit["content"] + text[to:]
    assert text == "b = '\n\t😀'\r\n"


def test_no_findings_is_an_empty_list() -> None:
    assert render("json", (), options()) == "[]\n"


def test_the_text_is_ascii_and_holds_no_control_character() -> None:
    written = render(
        "json", (report(TRAIN, finding(span(TRAIN, "loss"), message="é\x1b[0m"), path="日\udcff.py"),), options()
    )
    assert written.isascii()
    assert "\x1b" not in written
    assert json.loads(written)[0]["filename"] == "日\udcff.py"
