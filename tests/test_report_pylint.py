from __future__ import annotations

import re
from dataclasses import replace

from report_samples import CRASHED, TRAIN, UNPARSABLE, UNREADABLE, finding, options, report, sample, span

from torchlint.finding import Doubt, Frequency, Severity
from torchlint.report import render

# That of the parser in Jenkins' warnings plugin.
LINE = re.compile(r"(.*):(\d+): \[(\D\d*).*\] (.*)")


def test_each_line_is_one_that_jenkins_parses() -> None:
    note = replace(finding(span(TRAIN, "loss")), severity=Severity.NOTE, doubts=(Doubt.RUNS_ONCE,))
    text = render("pylint", (sample(), report(TRAIN, note), UNREADABLE, UNPARSABLE, CRASHED), options())
    lines = text.splitlines()
    assert lines[:2] == [
        "train.py:7: [TL391] `loss.item()` makes the host wait for the device",
        "train.py:6: [TL391] note: `loss.item()` makes the host wait for the device — this runs only once",
    ]
    assert len(lines) == 5
    for line in lines:
        match = LINE.fullmatch(line)
        assert match is not None, line
        assert match[1].endswith(".py")


def test_a_message_of_several_lines_is_one_line() -> None:
    text = render("pylint", (report(TRAIN, finding(span(TRAIN, "loss"), message="a\r\n  b")),), options())
    assert text == "train.py:6: [TL391] a b\n"


def test_a_path_is_no_command() -> None:
    hostile = report(TRAIN, finding(span(TRAIN, "loss"), Frequency.UNKNOWN), path="::stop-commands::x.py")
    for output_format in ("pylint", "concise"):
        assert render(output_format, (hostile,), options()).startswith("./::stop-commands::x.py:6:")
