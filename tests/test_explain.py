from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
from evidence_samples import CPU, GPU, NOHELP, SIM, changed, evidence
from msgspec.structs import replace as replace_struct
from report_samples import RULE, options, sample

import torchlint.evidence
from torchlint.evidence import EvidenceError, Verdict, pair
from torchlint.explain import page_json, page_text, table_json, table_text
from torchlint.finding import Applicability
from torchlint.registry import find
from torchlint.report import render
from torchlint.report.evidence import duration, headline, memory, placed, speedup
from torchlint.report.evidence import markdown as section
from torchlint.report.markdown import render as markdown
from torchlint.report.style import PLAIN, Style
from torchlint.rule import Rule, Status

NAME = "item-in-train-loop"
TODAY = date(2026, 3, 14)
ANSI = re.compile(r"\x1b\[[0-9;]*m|\x1b\]8;;[^\x1b]*\x1b\\")

PAGE = """\
# sample-item-in-loop (TL391)

- group: sync
- fix: safe, unsafe
- default: on
- since: 0.1.0
- status: stable

`.item()` in a training loop makes the host wait for the device in every step.

## Why is this slow

Kernels run *asynchronously*.
"""

MODULE = """\
from report_samples import RULE as SAMPLE
from dataclasses import replace
from torchlint.rule import Method

RULE = replace(SAMPLE, checks=[])

@RULE.on(Method("item"))
def check(node, context):
    yield
"""


@pytest.fixture
def rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Rule:
    """A rule of a third party's pack, with its page."""
    pack = tmp_path / "sample_pack"
    pack.mkdir()
    (pack / "__init__.py").touch()
    (pack / "sample_item_in_loop.py").write_text(MODULE)
    (pack / "sample_item_in_loop.md").write_text(PAGE)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("sample_pack", "sample_pack.sample_item_in_loop"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    found = importlib.import_module("sample_pack.sample_item_in_loop").RULE
    assert isinstance(found, Rule)
    return found


def test_a_page(rule: Rule) -> None:
    assert page_text(rule, PLAIN, 60) == (
        """\
TL391 sample-item-in-loop
sync · safe or unsafe fix · on by default · since 0.1.0

`.item()` in a training loop makes the host wait for the
device in every step.

## Why is this slow

Kernels run asynchronously.

https://torchlint.github.io/torchlint/rules/sample-item-in-loop/
"""
    )


def test_the_facts_of_other_rules() -> None:
    other = replace(RULE, fix=(), default=False, status=Status.PREVIEW)
    assert page_text(other).splitlines()[1] == "sync · no fix · off by default · since 0.1.0 · preview"


def test_a_rule_without_a_page_is_explained_by_its_summary() -> None:
    assert RULE.summary in page_text(RULE)
    assert json.loads(page_json(RULE))["explanation"] is None


def test_a_page_as_json(rule: Rule) -> None:
    assert json.loads(page_json(rule)) == {
        "code": "TL391",
        "name": "sample-item-in-loop",
        "group": "sync",
        "summary": RULE.summary,
        "fix": ["safe", "unsafe"],
        "default": True,
        "status": "stable",
        "since": "0.1.0",
        "yields_to": [],
        "eager": False,
        "torch": "2.0",
        "url": RULE.url,
        "explanation": PAGE,
        "evidence": [],
    }


def test_sarif_carries_the_page(rule: Rule) -> None:
    (run,) = json.loads(render("sarif", (sample(),), options(rules=(rule,))))["runs"]
    markdown_text = run["tool"]["driver"]["rules"][0]["help"]["markdown"]
    assert markdown_text == PAGE.partition("stable\n\n")[2]


def test_what_is_not_measured_says_how_to() -> None:
    remedy = "Not measured yet. Measure it on your machine: `torchlint verify --rule item-in-train-loop`"
    assert section([], lambda _: False, NAME) == f"{remedy}\n"


MEASURED = """\
### NVIDIA H200, torch 2.11.0+cu130

CUDA 13.0, driver 570.86, Python 3.12.3, torchlint 0.1.0. Measured on 2026-03-02 (12 days ago).

- `gpu` (steps 50, batch 64, width 1_000_000; 12.4 ms a run): **faster, fix verified**.
- `nohelp` (steps 1; 840 µs a run): **no measurable difference**. One long kernel hides the read.

| size | speed-up | peak memory | syncs | copies | launches |
| --- | --- | --- | --- | --- | --- |
| `gpu` | 1.27x [1.24, 1.30], n 8 | 1.17 -> 0.88 GiB | 50 -> 1 | 53 -> 4 | 12,000 -> 12,000.50 |
| `nohelp` | 1.00x [0.99, 1.01], n 8 | 1.17 -> 0.88 GiB | 50 -> 1 | 53 -> 4 | 12,000 -> 12,000.50 |

In brackets the 99 % interval of the speed-up, from n fresh pairs of processes. \
Syncs, copies and launches are counted per run of the workload.

Measure it on your machine: `torchlint verify --rule item-in-train-loop`
"""


def test_before_the_first_look_there_is_no_interval() -> None:
    assert GPU.time
    two = replace_struct(GPU.time.speedup, n=2, log_ratios=(0.12, 0.21), ratio=1.18, lo=1e-13, hi=1e13)
    early = changed(GPU, time={"speedup": two})
    assert speedup(early) == "1.18x, n 2, undecided"


def test_what_was_measured() -> None:
    assert section([evidence(GPU, NOHELP)], lambda _: False, NAME, TODAY) == MEASURED


def test_gpus_come_first_and_then_the_newest_torch() -> None:
    newer = changed(GPU, software={"torch": "2.12.0"})
    other = changed(GPU, device={"name": "NVIDIA A100"}, software={"torch": "2.9.0"})
    shown = section([evidence(CPU), evidence(SIM), evidence(other), evidence(GPU, newer)], lambda _: False, NAME)
    assert re.findall(r"^### (.*)$", shown, re.MULTILINE) == [
        "NVIDIA H200, torch 2.12.0",
        "NVIDIA H200, torch 2.11.0+cu130",
        "NVIDIA A100, torch 2.9.0",
        "AMD EPYC 9654, torch 2.9.1+cpu",
        "simulated CUDA device, torch 2.13.0+cpu",
    ]
    assert shown.count("On the CPU, which says nothing about the time on a GPU.") == 1
    assert shown.count("On a simulated CUDA device, which counts and does not time.") == 1


def test_without_a_gpu_the_time_on_one_is_said_to_be_unknown() -> None:
    unknown = (
        "Time on a GPU: not measured yet. Measure it on your machine: `torchlint verify --rule item-in-train-loop`\n"
    )
    failed = changed(GPU, verdict=Verdict(overall="cannot-run", reason="takes two GPUs."), time=None)
    for found in ([evidence(SIM)], [evidence(CPU)], [evidence(CPU), evidence(SIM)], [evidence(failed)]):
        assert section(found, lambda _: False, NAME).endswith(f"\n\n{unknown}")
    assert "not measured yet" not in section([evidence(GPU), evidence(SIM)], lambda _: False, NAME)


def test_counts_of_a_simulation_verify_no_fix() -> None:
    shown = section([evidence(SIM)], lambda _: False, NAME)
    assert "**fewer synchronizations**." in shown
    assert "verified" not in shown


def test_a_rewrite_by_hand_is_no_verified_fix() -> None:
    suggestion = changed(GPU, subject={"fix": "suggestion"})
    shown = section([evidence(suggestion)], lambda _: False, NAME)
    assert "**faster, pattern measured**" in shown
    assert "verified" not in shown


def test_a_gain_that_is_counted_and_not_seen_in_time_says_so() -> None:
    assert GPU.time
    over_one = replace_struct(GPU.time.speedup, n=6, lo=0.74, hi=1.18, ratio=0.93)
    fewer = changed(GPU, verdict=Verdict(overall="fewer-syncs"), time={"verdict": "inconclusive", "speedup": over_one})
    shown = section([evidence(fewer)], lambda _: False, NAME)
    assert "**fewer synchronizations, no measurable difference in time**" in shown
    assert "verified" not in shown
    assert "fewer synchronizations, no measurable difference in time, 0.93x [0.74, 1.18], n 6" in headline(
        fewer, stale=False
    )
    two = replace_struct(over_one, n=2, log_ratios=(0.12, 0.21))
    early = changed(fewer, time={"verdict": "inconclusive", "speedup": two})
    assert "no measurable difference" not in section([evidence(early)], lambda _: False, NAME)


def test_what_does_not_help_claims_nothing() -> None:
    slower = changed(GPU, verdict=Verdict(overall="slower"))
    assert "**slower**." in section([evidence(slower)], lambda _: False, NAME)


def test_old_evidence_says_so_and_verifies_nothing() -> None:
    shown = section([evidence(GPU)], lambda _: True, NAME)
    assert "**faster**. Measured on an older version of the fix." in shown


def test_what_could_not_run_has_no_table() -> None:
    failed = changed(
        GPU, verdict=Verdict(overall="cannot-run", reason="takes two GPUs."), time=None, memory=None, counts=None
    )
    shown = section([evidence(failed)], lambda _: False, NAME)
    assert "**cannot run here**. Takes two GPUs." in shown
    assert "|" not in shown
    assert "\n\n\n" not in shown


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        (0, 0, "0 -> 0 B"),
        (1023, 5, "1,023 -> 5.00 B"),
        (1 << 20, 1 << 10, "1.00 -> 0.00 MiB"),
        (3 << 30, 4 << 30, "3.00 -> 4.00 GiB"),
        (150 << 20, 15 << 20, "150 -> 15.0 MiB"),
    ],
)
def test_memory(before: int, after: int, shown: str) -> None:
    assert memory(before, after) == shown


@pytest.mark.parametrize(
    ("microseconds", "shown"), [(0.5, "0.50 µs"), (840, "840 µs"), (12_400, "12.4 ms"), (3.1e6, "3.10 s")]
)
def test_duration(microseconds: float, shown: str) -> None:
    assert duration(microseconds) == shown


OTHERS = "# r (TL1)\n\n## Fix safety\n\nx\n\n## Evidence\n\n{}\n\n## References\n\n- y\n"


@pytest.mark.parametrize(
    ("before", "notes"),
    [
        ("Not measured yet.", ""),
        ("Not measured yet. It takes two GPUs.", "\n\nIt takes two GPUs."),
        ("Old `a`.\n\nMeasure: `torchlint verify --rule r`", ""),
        ("Old.\n\nMeasure: `torchlint verify --rule r`\n\nNote `b`.\n\nMore.", "\n\nNote `b`.\n\nMore."),
    ],
)
def test_the_section_is_put_in_its_place_and_notes_stay(before: str, notes: str) -> None:
    made = placed(OTHERS.format(before), "New. Measure: `torchlint verify --rule r`\n", "r")
    assert made == OTHERS.format(f"New. Measure: `torchlint verify --rule r`{notes}")
    assert placed(made, "New. Measure: `torchlint verify --rule r`\n", "r") == made


def test_a_page_without_the_section_or_with_nothing_to_measure_stays() -> None:
    for text in ("# r (TL1)\n\nText.\n", OTHERS.format("Nothing to measure: it is a comment.")):
        assert placed(text, "New.\n", "r") == text
    assert placed("## Evidence\n\nNot measured yet.\n", "New.\n", "r") == "## Evidence\n\nNew.\n"


@pytest.fixture
def ours(monkeypatch: pytest.MonkeyPatch) -> Rule:
    """A rule of ours of which two sizes were measured, the second on an older version of the fix."""
    rule = find(NAME)
    files = (evidence(changed(GPU, subject=pair(rule)), NOHELP),)
    monkeypatch.setattr(torchlint.evidence, "evidence_of", lambda _: files)
    return rule


def test_the_page_shows_what_is_measured_by_now(ours: Rule) -> None:
    shown = page_text(ours, PLAIN, 200, TODAY)
    assert "faster, fix verified." in shown
    assert "no measurable difference. One long kernel hides the read. Measured on an older version of the fix." in shown
    assert "`gpu`     1.27x [1.24, 1.30], n 8" in shown
    assert "(12 days ago)" in shown
    assert "Not measured yet" not in shown
    assert shown.index("## Evidence") < shown.index("1.27x") < shown.index("## References")


def test_the_evidence_as_json(ours: Rule) -> None:
    (found,) = json.loads(page_json(ours))["evidence"]
    assert found["device"] == "nvidia-h200"
    assert [each["stale"] for each in found["measurements"]] == [False, True]
    assert found["measurements"][0]["time"]["speedup"]["n"] == 8


def test_damaged_evidence_is_named_and_the_page_still_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(_: Rule) -> None:
        raise EvidenceError("x.json: not evidence of torchlint: truncated")

    monkeypatch.setattr(torchlint.evidence, "evidence_of", damaged)
    assert "The evidence cannot be read. x.json: not evidence of torchlint" in page_text(find(NAME), PLAIN, 200)
    assert json.loads(page_json(find(NAME)))["evidence"] is None


def test_explaining_loads_neither_torch_nor_libcst_parts() -> None:
    code = (
        "import sys\nfrom torchlint.registry import find\nfrom torchlint.explain import page_text\n"
        f"page_text(find({NAME!r}))\n"
        "print([name for name in ('torch', 'libcst.matchers', 'torchlint.verify') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


SHORT = Rule("short", "TL1", "g", "Short.", "0.1.0", Status.PREVIEW)


def test_the_table() -> None:
    off = replace(RULE, default=False, fix=(Applicability.UNSAFE,))
    assert table_text([RULE, off, SHORT]) == (
        f"""\
code   name                 fix           default  summary
TL391  sample-item-in-loop  safe, unsafe  on       {RULE.summary}
TL391  sample-item-in-loop  unsafe        off      {RULE.summary}
TL1    short                -             preview  Short.
"""
    )


def test_the_table_keeps_to_the_width() -> None:
    assert table_text([RULE, SHORT], columns=90) == (
        """\
code   name                 fix           default  summary
TL391  sample-item-in-loop  safe, unsafe  on       `.item()` in a training loop makes the
                                                   host wait for the device in every step.
TL1    short                -             preview  Short.
"""
    )
    assert max(map(len, table_text([RULE], columns=20).splitlines())) <= 51 + 30


def test_colour_and_links_change_nothing_but_the_looks() -> None:
    dressed = table_text([RULE, SHORT], Style(color=True), 90)
    assert ANSI.sub("", dressed) == table_text([RULE, SHORT], columns=90)
    assert "\x1b" in dressed
    page = page_text(RULE, Style(color=True, links=True))
    assert ANSI.sub("", page).replace("`", "") == page_text(RULE).replace("`", "")
    assert page.startswith(f"\x1b]8;;{RULE.url}\x1b\\")


def test_the_table_of_no_rules_is_its_head() -> None:
    assert table_text([]) == "code  name  fix  default  summary\n"


def test_the_table_as_json() -> None:
    rows = json.loads(table_json([RULE, SHORT]))
    assert [row["code"] for row in rows] == ["TL391", "TL1"]
    assert rows[1]["status"] == "preview"
    assert rows[1]["fix"] == []


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("", ""),
        ("a\nb\n\nc", "a b\n\nc\n"),
        ("one two three four five six seven", "one two three four five six\nseven\n"),
        ("x **bold** *em* _em_ snake_case a*b*c", "x bold em em snake_case a*b*c\n"),
        ("`a b`, ``c`d``.", "`a b`, `c`d`.\n"),
        ("`**kwargs` and *args", "`**kwargs` and *args\n"),
        ("[text](https://x.org), <https://y.org>.", "text (https://x.org),\nhttps://y.org.\n"),
        ("## Head `x` ##\ntext", "## Head `x`\n\ntext\n"),
        ("- one two three four five six seven\n- b\n  c", "- one two three four five six\n  seven\n- b c\n"),
        ("- a\n  - b\n\n1. c\n10. d", "- a\n  - b\n\n1. c\n10. d\n"),
        ("> a\n> b", "| a b\n"),
        ("text\n```\nx  # y\n\n  z\n```\nmore", "text\n\n    x  # y\n\n      z\n\nmore\n"),
        ("```python bad\nx  # <- rule\n```", "    slow:\n    x  # <- rule\n"),
        ("```python good\nx\n```", "    fast:\n    x\n"),
        ("```\nnot closed", "    not closed\n"),
        ("|a|b|\n|-|-:|\n|`x`|1|\n|名|10|\n|y\\|z|", "a     b\n---  --\n`x`   1\n名   10\ny|z\n"),
        ("a | b\nno table", "a | b no table\n"),
        ("bad \x1b[31m\x07", "bad ␛[31m␇\n"),
        ("```\nbad \x1b[31m\n```", "    bad ␛[31m\n"),
    ],
)
def test_markdown_without_colour(source: str, shown: str) -> None:
    assert markdown(source, PLAIN, 30) == shown


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("a `b` **c** *d*.", "a \x1b[36mb\x1b[0m \x1b[1mc\x1b[0m \x1b[3md\x1b[0m.\n"),
        ("## Head", "\x1b[1mHead\x1b[0m\n"),
        ("|a|\n|-|\n|b|\n", "\x1b[1ma\x1b[0m\n\x1b[2m-\x1b[0m\nb\n"),
        (
            "[a b](u)",
            "\x1b]8;;u\x1b\\\x1b[1;96ma\x1b[0m\x1b]8;;\x1b\\ \x1b]8;;u\x1b\\\x1b[1;96mb\x1b[0m\x1b]8;;\x1b\\\n",
        ),
        (
            "```python bad\nx = '#'  # <- rule\ny  # note\n```",
            (
                "    \x1b[1;91mslow\x1b[0m:\n"
                "    \x1b[36mx = '#'  \x1b[0m\x1b[1;91m# <- rule\x1b[0m\n"
                "    \x1b[36my  \x1b[0m\x1b[2m# note\x1b[0m\n"
            ),
        ),
    ],
)
def test_markdown_with_colour_and_links(source: str, shown: str) -> None:
    assert markdown(source, Style(color=True, links=True), 30) == shown


def test_paragraphs_keep_to_the_width() -> None:
    text = "- " + "`code` word **bold** " * 20 + "\n\n" + "日本 " * 40
    for columns in (30, 47, 80):
        assert max(len(line) + line.count("日") * 2 for line in markdown(text, PLAIN, columns).splitlines()) <= columns
