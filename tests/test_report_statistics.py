from __future__ import annotations

import json

import pytest
from report_samples import TRAIN, UNREADABLE, finding, options, report, sample, span

from torchlint.finding import Applicability, Finding
from torchlint.report import render

OTHER = Finding("other", "TL9", span(TRAIN, "torch"), "other")


def test_the_most_frequent_comes_first() -> None:
    reports = [sample(Applicability.SAFE)] * 12 + [UNREADABLE, report(TRAIN, OTHER)]
    assert render("full", reports, options(statistics=True)) == (
        "12\tTL391\t[*] sample-item-in-loop\n"
        " 1\tE902 \t[ ] io-error\n"
        " 1\tTL9  \t[ ] other\n"
        "Found 13 findings and 1 error.\n"
        "[*] 12 fixable with `--fix`.\n"
    )


def test_a_rule_fixable_in_part() -> None:
    reports = (sample(Applicability.SAFE), sample(), sample())
    assert render("concise", reports, options(statistics=True, footer=False)) == "3\tTL391\t[-] sample-item-in-loop\n"
    assert (
        render("concise", reports, options(statistics=True, footer=False, threshold=Applicability.UNSAFE))
        == "3\tTL391\t[*] sample-item-in-loop\n"
    )


def test_without_anything_fixable_there_are_no_marks() -> None:
    reports = (report(TRAIN, finding(span(TRAIN, "loss"))),)
    assert render("full", reports, options(statistics=True, footer=False)) == "1\tTL391\tsample-item-in-loop\n"


def test_colour() -> None:
    reports = (sample(Applicability.SAFE), report(TRAIN, OTHER))
    assert render("full", reports, options(statistics=True, footer=False, color=True)) == (
        "1\t\x1b[1;91mTL391\x1b[0m\t[\x1b[1;96m*\x1b[0m] sample-item-in-loop\n1\t\x1b[1;91mTL9  \x1b[0m\t[ ] other\n"
    )


def test_json() -> None:
    reports = (sample(Applicability.SAFE), sample(), report(TRAIN, OTHER))
    assert json.loads(render("json", reports, options(statistics=True))) == [
        {"code": "TL391", "name": "sample-item-in-loop", "count": 2, "notes": 0, "fixable": False, "fixable_count": 1},
        {"code": "TL9", "name": "other", "count": 1, "notes": 0, "fixable": False, "fixable_count": 0},
    ]
    assert render("json", (), options(statistics=True)) == "[]\n"


def test_a_clean_run() -> None:
    assert render("full", (), options(statistics=True)) == "All checks passed!\n"


@pytest.mark.parametrize("output_format", ["github", "sarif", "gitlab", "junit", "rdjson", "pylint", "azure"])
def test_formats_without_a_place_for_them_refuse(output_format: str) -> None:
    with pytest.raises(ValueError, match=f"^`--statistics` writes full, concise or json, not {output_format}$"):
        render(output_format, (sample(),), options(statistics=True))
