"""Warnings and notes: what a doubt makes of a claim, what the configuration does, and how each format shows it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import libcst as cst
import pytest
import toys
from click.testing import CliRunner
from lsprotocol import types as lsp
from report_samples import TRAIN, finding, options, report, span

from torchlint import linter
from torchlint.cli import torchlint
from torchlint.config import ConfigError, Configs, Overrides
from torchlint.finding import Doubt, Finding, Severity
from torchlint.lsp.diagnostics import diagnostics
from torchlint.lsp.documents import Document
from torchlint.lsp.text import Text
from torchlint.lsp.unit import Part, View
from torchlint.report import render
from torchlint.rule import Call, Flag, Method, Rule
from torchlint.settings import Settings
from torchlint.source import SourceFile

if TYPE_CHECKING:
    from torchlint.semantics.context import Context

UNSURE = Rule(
    "unsure-read",
    "TL301",
    "toys",
    "Toy.",
    "0.1.0",
    yields_to=("unsure-log", "several-reads"),
    doubts=((Doubt.RARE, ""), (Doubt.SMALL, "Nobody would change it.")),
)
LOG = Rule("unsure-log", "TL302", "toys", "Toy.", "0.1.0", doubts=((Doubt.UNCALLED, ""),))
SEVERAL = Rule("several-reads", "TL303", "toys", "Toy.", "0.1.0")
_DOUBTS = {"rare": Doubt.RARE, "small": Doubt.SMALL, "uncalled": Doubt.UNCALLED}


def _asked(call: cst.Call) -> tuple[Doubt, ...]:
    """The doubts that the arguments of a toy call name."""
    names = [argument.value.value for argument in call.args if isinstance(argument.value, cst.Name)]
    return tuple(_DOUBTS[name] for name in names if name in _DOUBTS)


@UNSURE.on(Method("item"))
def _reads(node: cst.Call, _: Context) -> Iterator[Flag]:
    yield Flag(node, "reads", doubts=_asked(node))


@LOG.on(Call("torch.log"))
def _logs(node: cst.Call, _: Context) -> Iterator[Flag]:
    yield Flag(node, "logs", doubts=_asked(node))


@SEVERAL.on(Call("torch.several"))
def _several(node: cst.Call, context: Context) -> Iterator[Flag]:
    """All other calls of the module."""
    yield Flag(node, "reads", places=tuple(call for call in context.tree.of(cst.Call) if call is not node))


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toys, "RULES", (toys.UNUSED, UNSURE, LOG, SEVERAL))
    toys.install(monkeypatch)


def found(code: str, **settings: Severity) -> list[tuple[str, str, list[str]]]:
    severities = tuple((name.replace("_", "-"), severity) for name, severity in settings.items())
    result = linter.lint(
        SourceFile("snippet.py", "import torch\n" + code),
        Settings(("unsure-read", "unsure-log", "several-reads", "unused-ignore"), severities=severities),
    )
    assert not result.diagnostics
    return [(one.rule, str(one.severity), [doubt.value for doubt in one.doubts]) for one in result.findings]


class TestDoubts:
    def test_without_a_doubt_it_is_a_warning(self) -> None:
        assert found("x.item()\n") == [("unsure-read", "warning", [])]

    def test_with_one_it_is_a_note(self) -> None:
        assert found("x.item(rare)\n") == [("unsure-read", "note", ["rare"])]

    def test_one_that_makes_a_claim_worthless_silences_it(self) -> None:
        assert found("x.item(rare, small)\n") == []

    def test_each_has_a_sentence_that_follows_a_message(self) -> None:
        for doubt in Doubt:
            assert doubt.sentence[0].islower()
            assert not doubt.sentence.endswith(".")

    def test_a_note_is_suppressed_like_a_warning(self) -> None:
        assert found("x.item(rare)  # torchlint: ignore[unsure-read]\n") == []

    def test_what_is_certain_does_not_yield_to_what_is_doubtful(self) -> None:
        assert found("torch.log(x.item())\n") == [("unsure-log", "warning", [])]
        assert found("torch.log(uncalled, x.item(rare))\n") == [("unsure-log", "note", ["uncalled"])]
        assert ("unsure-read", "warning", []) in found("torch.log(uncalled, x.item())\n")

    def test_of_several_on_one_line_the_certain_one_speaks(self) -> None:
        assert found("y = x.item(rare) + z.item()\n") == [("unsure-read", "warning", [])]
        assert found("y = x.item(rare) + z.item(rare)\n") == [("unsure-read", "note", ["rare"])]


class TestConfiguration:
    def test_what_a_rule_says_is_as_severe_as_configured(self) -> None:
        assert found("x.item()\n", unsure_read=Severity.NOTE) == [("unsure-read", "note", [])]
        assert found("x.item(rare)\n", unsure_read=Severity.WARNING) == [("unsure-read", "warning", ["rare"])]

    def settings(self, folder: Path, text: str, name: str = "train.py") -> dict[str, Severity]:
        (folder / "torchlint.toml").write_text(text)
        configs = Configs(Overrides(), folder)
        return dict(configs.for_directory(folder).settings_for(folder / name).severities)

    def test_the_narrowest_selector_counts(self, tmp_path: Path) -> None:
        text = '[severity]\nTL301 = "warning"\nTL3 = "note"\n'
        assert self.settings(tmp_path, text) == {
            "unsure-read": Severity.WARNING,
            "unsure-log": Severity.NOTE,
            "several-reads": Severity.NOTE,
        }

    def test_patterns_for_files_count_before(self, tmp_path: Path) -> None:
        text = '[severity]\nTL301 = "warning"\n[per-file-severity]\n"examples/**" = "note"\n'
        found = self.settings(tmp_path, text, "examples/train.py")
        assert set(found.values()) == {Severity.NOTE}
        assert self.settings(tmp_path, text) == {"unsure-read": Severity.WARNING}

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ('[severity]\nTL777 = "note"\n', "unknown rule `TL777`"),
            ('[severity]\nTL301 = "loud"\n', "severity"),
            ('[per-file-severity]\n"a[" = "note"\n', "per-file-severity"),
            ('level = "error"\n', "level"),
            ("fail-on = 1\n", "fail-on"),
        ],
    )
    def test_what_is_wrong_is_said_in_one_line(self, tmp_path: Path, text: str, words: str) -> None:
        with pytest.raises(ConfigError, match=words) as caught:
            self.settings(tmp_path, text)
        assert "\n" not in str(caught.value)


class TestRun:
    @pytest.fixture(autouse=True)
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        Path("note.py").write_text("import torch\nx.item(rare)\n")
        Path("warning.py").write_text("import torch\nx.item()\n")

    def run(self, *arguments: str) -> tuple[int, str]:
        done = CliRunner().invoke(torchlint, ["check", "--no-cache", "--isolated", *arguments], standalone_mode=False)
        return done.return_value, done.stdout

    def test_notes_alone_leave_the_status_at_0(self) -> None:
        status, shown = self.run("note.py")
        assert status == 0
        assert "note.py:2:1: TL301 reads — this runs only now and then" in shown
        assert "Found 1 finding, 1 of them a note." in shown

    def test_a_warning_makes_it_1(self) -> None:
        assert self.run("note.py", "warning.py")[0] == 1

    def test_fail_on_note(self) -> None:
        assert self.run("--fail-on", "note", "note.py")[0] == 1

    def test_level_warning_leaves_notes_out(self) -> None:
        status, shown = self.run("--level", "warning", "note.py")
        assert (status, shown) == (0, "All checks passed!\n")
        assert "TL301" in self.run("--level", "warning", "warning.py")[1]

    def test_a_cache_keeps_severities_and_doubts(self, tmp_path: Path) -> None:
        arguments = ["check", "--isolated", "--output-format", "json", "--cache-dir", str(tmp_path / "cache"), "."]
        first, second = (CliRunner().invoke(torchlint, arguments).stdout for _ in range(2))
        assert first == second
        assert [(one["severity"], one["doubts"]) for one in json.loads(second)] == [
            ("note", ["rare"]),
            ("warning", []),
        ]


def note(*doubts: Doubt) -> Finding:
    made = finding(span(TRAIN, "loss.item()"))
    return replace(made, doubts=doubts or (Doubt.RARE,), severity=Severity.NOTE)


class TestFormats:
    def test_full_has_notes_in_a_line_each_below_the_warnings(self) -> None:
        shown = render("full", [report(TRAIN, note(), finding(span(TRAIN, "total")))], options())
        warning, _, notes = shown.partition("notes:\n")
        assert "-->" in warning
        assert notes.splitlines()[0] == (
            "  train.py:7:18: TL391 `loss.item()` makes the host wait for the device — this runs only now and then"
        )

    def test_of_many_the_first_ten_and_how_many_more(self) -> None:
        reports = [report(TRAIN, note(), path=f"{number:02}.py") for number in range(12)]
        shown = render("full", reports, options())
        assert shown.count("makes the host wait") == 10
        assert "  2 more; `--output-format concise` lists them all\n" in shown
        assert render("concise", reports, options()).count("note: TL391") == 12

    def test_machines_are_told_the_severity_and_the_doubts(self) -> None:
        reports = [report(TRAIN, note(Doubt.UNCALLED, Doubt.SMALL))]
        (one,) = json.loads(render("json", reports, options()))
        assert (one["severity"], one["doubts"]) == ("note", ["uncalled", "small"])
        (result,) = json.loads(render("sarif", reports, options()))["runs"][0]["results"]
        assert result["level"] == "note"
        assert result["properties"]["doubts"] == ["uncalled", "small"]
        assert result["message"]["text"].endswith(
            " — nothing in this project calls this function; there is little work in it"
        )
        assert render("github", reports, options()).startswith("::notice title=torchlint (TL391),")

    def test_statistics_count_both(self) -> None:
        reports = [report(TRAIN, note(), finding(span(TRAIN, "total")))]
        assert "sample-item-in-loop (1 note)" in render("full", reports, replace(options(), statistics=True))
        (row,) = json.loads(render("json", reports, replace(options(), statistics=True)))
        assert (row["count"], row["notes"]) == (2, 1)

    def test_an_editor_shows_a_hint(self) -> None:
        ((made,),) = diagnostics([replace(note(), rule=UNSURE.name)], _view(), "/", relates=False).values()
        assert made.severity is lsp.DiagnosticSeverity.Hint
        assert made.message.endswith(" — this runs only now and then")


def _view() -> View:
    document = Document("file:///train.py", "python", 1, Text(TRAIN))
    return View(SourceFile("train.py", TRAIN), (Part(document, 0),))


class TestPlaces:
    def finding(self) -> Finding:
        return replace(finding(span(TRAIN, "loss.item()")), places=(span(TRAIN, "total"), span(TRAIN, "model(batch)")))

    def test_every_format_names_them(self) -> None:
        reports = [report(TRAIN, self.finding())]
        assert "  = so are lines 4 and 6" in render("full", reports, options())
        one = replace(self.finding(), places=(span(TRAIN, "total"),))
        assert "  = so is line 4" in render("full", [report(TRAIN, one)], options())
        many = replace(
            self.finding(),
            places=tuple(span(TRAIN, part) for part in ("import", "def", "total", "for", "batch", "loss")),
        )
        assert " = so are lines 1, 3, 4, 5, 5 and 1 more" in render("full", [report(TRAIN, many)], options())
        (found,) = json.loads(render("json", reports, options()))
        assert [place["location"]["row"] for place in found["places"]] == [4, 6]
        (result,) = json.loads(render("sarif", reports, options()))["runs"][0]["results"]
        regions = [place["physicalLocation"]["region"]["startLine"] for place in result["relatedLocations"]]
        assert regions == [4, 6]
        moved = replace(self.finding(), rule=UNSURE.name)
        ((made,),) = diagnostics([moved], _view(), "/", relates=True).values()
        assert made.related_information is not None
        assert [each.location.range.start.line for each in made.related_information] == [3, 5]

    def test_a_rule_that_yields_is_silent_on_them(self) -> None:
        assert found("y = x.item()\nz = x.item()\n\ntorch.several()\n") == [("several-reads", "warning", [])]
