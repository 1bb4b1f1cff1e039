from __future__ import annotations

from dataclasses import replace

import pytest
from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite
from report_samples import CRASHED, TRAIN, UNPARSABLE, UNREADABLE, finding, options, report, sample, span

from torchlint.finding import Frequency, Severity
from torchlint.report import FileReport, ReportOptions, render

NOTE = replace(finding(span(TRAIN, "loss"), Frequency.UNKNOWN), severity=Severity.NOTE)


def suites(*reports: FileReport, given: ReportOptions | None = None) -> list[TestSuite]:
    document = JUnitXml.fromstring(render("junit", reports, given or options()).encode())
    found = list(document)
    assert document.tests == sum(suite.tests for suite in found)
    assert document.failures == sum(suite.failures for suite in found)
    assert document.errors == sum(suite.errors for suite in found)
    return found


def results(*reports: FileReport, given: ReportOptions | None = None) -> list[tuple[str, type]]:
    cases: list[TestCase] = [case for suite in suites(*reports, given=given) for case in suite]
    return [(case.name, type(case.result[0])) for case in cases]


def test_a_warning_is_a_failed_test_of_its_file() -> None:
    (suite,) = suites(sample())
    assert (suite.name, suite.tests, suite.failures, suite.errors, suite.skipped) == ("train.py", 1, 1, 0, 0)
    (case,) = suite
    assert (case.name, case.classname) == ("TL391 sample-item-in-loop", "train.py")
    (failure,) = case.result
    assert isinstance(failure, Failure)
    assert failure.message == "`loss.item()` makes the host wait for the device"
    assert failure.text == f"train.py:7:18: {failure.message}\nhelp: Add up on the device"


def test_what_does_not_fail_the_run_is_no_failed_test() -> None:
    name = "TL391 sample-item-in-loop"
    assert results(report(TRAIN, NOTE)) == [(name, Skipped)]
    assert results(report(TRAIN, NOTE), given=replace(options(), fail_on=Severity.NOTE)) == [(name, Failure)]


def test_what_went_wrong_is_an_error() -> None:
    assert [kind for _, kind in results(UNREADABLE, UNPARSABLE, CRASHED)] == [Error, Error, Error]


def test_names_differ_within_a_file() -> None:
    places = [finding(span(TRAIN, "loss", nth)) for nth in (1, 2)]
    assert [name for name, _ in results(report(TRAIN, *places))] == [
        "TL391 sample-item-in-loop",
        "TL391 sample-item-in-loop (2)",
    ]


def test_a_clean_run_is_a_test_that_passed() -> None:
    (suite,) = suites(report(TRAIN))
    assert [(case.name, case.result) for case in suite] == [("No findings", [])]


@pytest.mark.parametrize("evil", ["\x00\x08\x1b\ufffe\uffff\udcff", "]]></failure><!-- & \" ' <", "a\u202eb"])
def test_no_text_breaks_the_document(evil: str) -> None:
    hostile = report(TRAIN, finding(span(TRAIN, "loss"), message=evil), path=f"{evil}.py")
    ((case,),) = suites(hostile)
    for text in (case.name, case.classname, case.result[0].message, case.result[0].text):
        assert text.isprintable() or "\n" in text
    assert "</failure><!--" not in render("junit", (hostile,), options())
