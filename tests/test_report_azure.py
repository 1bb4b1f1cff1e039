from __future__ import annotations

import re
from dataclasses import replace

import pytest
from report_samples import CRASHED, TRAIN, UNPARSABLE, UNREADABLE, finding, options, report, sample, span

from torchlint.finding import Doubt, Severity
from torchlint.report import FileReport, render

# `##vso[area.event name=value;…]data`, as the agent reads it, anywhere in a line.
COMMAND = re.compile(r"##vso\[(\S+) ([^\]]*)\](.*)")


def commands(*reports: FileReport) -> list[tuple[dict[str, str], str]]:
    """What the agent makes of it: the first bracket ends the properties, and escapes are undone, that of % last."""
    found = []
    for line in render("azure", reports, options()).splitlines():
        match = COMMAND.match(line)
        assert match is not None, line
        assert match[1] == "task.logissue"
        pairs = dict(pair.split("=", 1) for pair in match[2].split(";") if pair)
        properties = {
            key: value.replace("%3B", ";").replace("%5D", "]").replace("%AZP25", "%") for key, value in pairs.items()
        }
        found.append((properties, match[3].replace("%AZP25", "%")))
    return found


def test_a_warning() -> None:
    assert render("azure", (sample(),), options()) == (
        "##vso[task.logissue type=warning;sourcepath=train.py;linenumber=7;columnnumber=18;code=TL391;]"
        "TL391 `loss.item()` makes the host wait for the device; help: Add up on the device\n"
    )


def test_errors() -> None:
    found = commands(UNREADABLE, UNPARSABLE, CRASHED)
    assert [(properties["type"], properties["code"]) for properties, _ in found] == [
        ("error", "E902"),
        ("error", "E999"),
        ("error", "E000"),
    ]


def test_a_note_is_a_line_and_no_issue() -> None:
    note = replace(finding(span(TRAIN, "loss")), severity=Severity.NOTE, doubts=(Doubt.RUNS_ONCE,))
    assert render("azure", (report(TRAIN, note),), options()) == (
        "train.py:6:9: note: TL391 `loss.item()` makes the host wait for the device — this runs only once\n"
    )


@pytest.mark.parametrize("evil", ["a;b]c%3B%AZP25", "x\r\n##vso[task.setvariable variable=PATH]evil"])
def test_what_would_end_a_value_is_escaped(evil: str) -> None:
    hostile = report(TRAIN, finding(span(TRAIN, "loss"), message=evil), path=evil)
    ((properties, text),) = commands(hostile)
    assert properties["sourcepath"].replace("�", "#").replace("␍␊", "\r\n") == evil
    assert properties["linenumber"] == "6"
    assert text.removeprefix("TL391 ").replace("�", "#").replace(" #", "\r\n#") == evil
