from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import jsonschema  # type: ignore[import-untyped]
from report_samples import CRASHED, RULE, TRAIN, UNPARSABLE, UNREADABLE, finding, options, report, rewrite, sample, span

from torchlint.finding import Applicability, Edit, Fix, Severity, Span
from torchlint.report import FileReport, render

_POSITION = {
    "type": "object",
    "required": ["line", "column"],
    "properties": {"line": {"type": "integer", "minimum": 1}, "column": {"type": "integer", "minimum": 1}},
    "additionalProperties": False,
}
_RANGE = {
    "type": "object",
    "required": ["start", "end"],
    "properties": {"start": _POSITION, "end": _POSITION},
    "additionalProperties": False,
}
# The messages of reviewdog's Protocol Buffers, as far as we use them; a field that they do not have is refused there.
SCHEMA = {
    "type": "object",
    "required": ["source", "severity", "diagnostics"],
    "properties": {
        "source": {"type": "object", "required": ["name", "url"]},
        "severity": {"const": "WARNING"},
        "diagnostics": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["message", "location", "severity", "code"],
                "properties": {
                    "message": {"type": "string", "minLength": 1},
                    "severity": {"enum": ["ERROR", "WARNING", "INFO"]},
                    "location": {
                        "type": "object",
                        "required": ["path"],
                        "properties": {"path": {"type": "string"}, "range": _RANGE},
                        "additionalProperties": False,
                    },
                    "code": {
                        "type": "object",
                        "required": ["value"],
                        "properties": {"value": {"type": "string"}, "url": {"type": "string"}},
                        "additionalProperties": False,
                    },
                    "suggestions": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["range", "text"],
                            "properties": {"range": _RANGE, "text": {"type": "string"}},
                            "additionalProperties": False,
                        },
                    },
                },
                "additionalProperties": False,
            },
        },
    },
    "additionalProperties": False,
}


def diagnostics(*reports: FileReport) -> list[dict[str, Any]]:
    document = json.loads(render("rdjson", reports, options()))
    jsonschema.validate(document, SCHEMA)
    found: list[dict[str, Any]] = document["diagnostics"]
    return found


def test_a_diagnostic() -> None:
    (found,) = diagnostics(sample())
    place = {"start": {"line": 7, "column": 18}, "end": {"line": 7, "column": 29}}
    assert found == {
        "message": "`loss.item()` makes the host wait for the device; help: Add up on the device",
        "location": {"path": "train.py", "range": place},
        "severity": "WARNING",
        "code": {"value": "TL391", "url": RULE.url},
        "suggestions": [{"range": place, "text": "loss.detach()"}],
    }


def test_severities() -> None:
    note = replace(finding(span(TRAIN, "loss")), severity=Severity.NOTE)
    found = diagnostics(report(TRAIN, note), UNREADABLE, UNPARSABLE, CRASHED)
    assert [one["severity"] for one in found] == ["INFO", "ERROR", "ERROR", "ERROR"]
    assert "range" not in found[1]["location"]


def test_columns_count_bytes() -> None:
    text = "é = '日本😀'; x.item()\r\n"
    (found,) = diagnostics(report(text, finding(span(text, "x.item()"))))
    before = text[: text.index("x.item()")].encode()
    assert found["location"]["range"]["start"]["column"] == len(before) + 1
    assert found["location"]["range"]["end"]["column"] == len(before) + len("x.item()") + 1


def test_edits_that_belong_together_are_one_suggestion() -> None:
    edits = (Edit(span(TRAIN, "total += "), "total = total + "), Edit(span(TRAIN, "loss.item()"), "loss.detach()"))
    fix = Fix("Add up on the device", edits, Applicability.SAFE)
    (found,) = diagnostics(report(TRAIN, finding(span(TRAIN, "loss.item()"), fix=fix)))
    (suggestion,) = found["suggestions"]
    assert suggestion["text"] == "total = total + loss.detach()"
    assert suggestion["range"]["start"] == {"line": 7, "column": 9}


def test_what_nobody_would_take_is_no_suggestion() -> None:
    text = TRAIN + "\n" * 20 + "x = 1\n"
    place = span(text, "loss.item()")
    apart = Fix("Far", (Edit(Span(0, 0), "import os\n"), Edit(span(text, "x = 1"), "x = 2")), Applicability.SAFE)
    for fix in (apart, rewrite(place, "loss", Applicability.DISPLAY), Fix("Think", (), Applicability.UNSAFE)):
        (found,) = diagnostics(report(text, finding(place, fix=fix)))
        assert "suggestions" not in found
