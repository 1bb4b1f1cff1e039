from __future__ import annotations

import re

from report_samples import CRASHED, TRAIN, UNPARSABLE, UNREADABLE, finding, options, report, sample, span

from torchlint.finding import Frequency
from torchlint.report import FileReport, render

COMMAND = re.compile(r"::(\w+) (.*?)::(.*)")


def commands(*reports: FileReport) -> list[tuple[str, dict[str, str], str]]:
    """What the runner of GitHub Actions reads: see ActionCommand.cs, which undoes the escapes in this order."""
    found = []
    for line in render("github", reports, options()).splitlines():
        match = COMMAND.fullmatch(line)
        assert match is not None
        pairs = dict(pair.split("=", 1) for pair in match[2].split(","))
        properties = {
            key: value.replace("%0D", "\r")
            .replace("%0A", "\n")
            .replace("%3A", ":")
            .replace("%2C", ",")
            .replace("%25", "%")
            for key, value in pairs.items()
        }
        found.append((match[1], properties, match[3].replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")))
    return found


def test_a_finding() -> None:
    assert render("github", (sample(),), options()) == (
        "::warning title=torchlint (TL391),file=train.py,line=7,col=18,endLine=7,endColumn=29::"
        "train.py:7:18: TL391 `loss.item()` makes the host wait for the device"
        "%0A  runs per batch%0A  help: Add up on the device\n"
    )


def test_a_finding_over_rows_has_no_columns() -> None:
    place = span(TRAIN, "loss = model(batch)\n        total")
    ((_, properties, _),) = commands(report(TRAIN, finding(place, Frequency.UNKNOWN)))
    assert properties == {"title": "torchlint (TL391)", "file": "train.py", "line": "6", "endLine": "7"}


def test_what_would_end_a_value_is_escaped() -> None:
    ((_, properties, text),) = commands(
        report(
            TRAIN, finding(span(TRAIN, "loss"), Frequency.UNKNOWN, message="50 %: a,b\r\n::c\x1b[0m"), path="a,b:c%.py"
        )
    )
    assert properties["file"] == "a,b:c%.py"
    assert text == "a,b:c%.py:6:9: TL391 50 %: a,b\n::c␛[0m"


def test_diagnostics() -> None:
    found = commands(UNREADABLE, UNPARSABLE, CRASHED)
    assert [(level, properties["title"], properties["line"]) for level, properties, _ in found] == [
        ("error", "torchlint (E902)", "1"),
        ("error", "torchlint (E999)", "1"),
        ("error", "torchlint (E000)", "1"),
    ]
    assert found[2][2] == "fine.py:1:1: E000 sample-item-in-loop: division by zero\n  at line 3"


def test_no_findings_is_no_output() -> None:
    assert render("github", (report(TRAIN),), options()) == ""
