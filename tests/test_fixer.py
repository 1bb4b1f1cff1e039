"""Fixes in rounds: what is applied together, what waits, what is refused, and that texts are left alone otherwise."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import pytest

from torchlint import fixer
from torchlint.finding import Applicability, Diagnostic, Edit, Fault, Finding, Fix, Result, Span, sort_key
from torchlint.fixer import Fixed, fix
from torchlint.settings import Settings
from torchlint.source import SourceFile

if TYPE_CHECKING:
    from torchlint.facts import Facts

SETTINGS = Settings(())
Rewrite = Callable[["re.Match[str]"], Iterable[Edit]]


def replacing(text: str) -> Rewrite:
    r"""Put `text`, in which `\1` stands for the first group, in the place of the match."""
    return lambda match: [Edit(Span(*match.span()), match.expand(text))]


class Rules:
    """A linter made of regular expressions: each match is a finding, fixed by the edits of its rewrite."""

    def __init__(self) -> None:
        self.rules: list[tuple[str, str, Rewrite, Applicability]] = []
        self.runs = 0

    def add(self, name: str, pattern: str, rewrite: Rewrite, applicability: Applicability = Applicability.SAFE) -> None:
        self.rules.append((name, pattern, rewrite, applicability))

    def lint(self, source: SourceFile, settings: Settings, _facts: Facts) -> Result:
        assert settings is SETTINGS
        self.runs += 1
        findings = [
            Finding(name, "TL000", Span(*match.span()), "toy", fix=Fix("Mend it", tuple(rewrite(match)), applicability))
            for name, pattern, rewrite, applicability in self.rules
            for match in re.finditer(pattern, source.text)
        ]
        return Result(tuple(sorted(findings, key=sort_key)))


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> Rules:
    found = Rules()
    monkeypatch.setattr(fixer, "lint", found.lint)
    return found


def fixed(text: str, threshold: Applicability = Applicability.SAFE) -> Fixed:
    return fix(SourceFile("a.py", text), SETTINGS, threshold)


def test_every_fix_is_applied_and_counted_by_rule(rules: Rules) -> None:
    rules.add("b-rule", r"slow\((\w*)\)", replacing(r"fast(\1)"))
    rules.add("a-rule", r"old", replacing("new"))
    done = fixed("slow(x)\nslow(y)\nold = 1\n")
    assert done == Fixed(SourceFile("a.py", "fast(x)\nfast(y)\nnew = 1\n"), Result(), (("a-rule", 1), ("b-rule", 2)))


def test_a_text_without_fixes_is_returned_as_it_is(rules: Rules) -> None:
    rules.add("a-rule", r"old", replacing("new"))
    text = "x = 1\r\ny = 2\r\f\n\tz = 3"
    assert fixed(text).text is text
    assert rules.runs == 1


def test_only_fixes_at_the_threshold_are_applied(rules: Rules) -> None:
    rules.add("safe", r"a", replacing("A"))
    rules.add("unsafe", r"b", replacing("B"), Applicability.UNSAFE)
    rules.add("display", r"c", replacing("C"), Applicability.DISPLAY)
    assert fixed("a, b, c\n").text == "A, b, c\n"
    assert fixed("a, b, c\n", Applicability.UNSAFE).text == "A, B, c\n"
    assert [finding.rule for finding in fixed("a, b, c\n").result.findings] == ["unsafe", "display"]


def test_overlapping_fixes_wait_for_the_next_round(rules: Rules) -> None:
    rules.add("call", r"slow\((.*)\)", replacing(r"fast(\1)"))
    assert fixed("slow(slow(slow(x)))\n").text == "fast(fast(fast(x)))\n"
    assert fixed("slow(slow(slow(x)))\n").applied == (("call", 3),)


def test_adjacent_replacements_are_made_in_one_round(rules: Rules) -> None:
    rules.add("letter", r"[ab]", lambda match: replacing(match[0].upper())(match))
    assert fixed("ab\n").text == "AB\n"
    assert rules.runs == 2


def test_an_insertion_that_touches_another_edit_waits(rules: Rules) -> None:
    rules.add("name", r"\bx\b(?!\.)", replacing("y"))
    rules.add("call", r"\b[xy]\b(?!\.)", lambda match: [Edit(Span(match.end(), match.end()), ".go()")])
    assert fixed("x\n").text == "y.go()\n"
    assert rules.runs == 3


def test_the_edits_of_one_fix_are_all_applied_or_none(rules: Rules) -> None:
    rules.add(
        "pair", r"(one)(.*)(two)", lambda match: [Edit(Span(*match.span(1)), "1"), Edit(Span(*match.span(3)), "2")]
    )
    rules.add("late", r"two|2 two", replacing("late"))
    assert fixed("one + two\n").text == "1 + 2\n"
    assert fixed("one + two\n").applied == (("pair", 1),)


def importing(match: re.Match[str]) -> list[Edit]:
    """`need_x` becomes `math.x`, below an import if there is none yet."""
    edits = [Edit(Span(*match.span()), f"math.{match[1]}")]
    if "import math" not in match.string:
        edits.insert(0, Edit(Span(0, 0), "import math\n"))
    return edits


def test_an_import_that_several_fixes_add_is_added_once(rules: Rules) -> None:
    rules.add("math", r"need_(\w+)", importing)
    assert fixed("need_pi + need_e\n").text == "import math\nmath.pi + math.e\n"
    assert rules.runs == 2


def test_other_equal_insertions_are_not_merged(rules: Rules) -> None:
    start = Edit(Span(0, 0), "count += 1\n")
    rules.add("count", r"(?<!, )\btick\b", lambda match: [start, Edit(Span(*match.span()), "tock")])
    assert fixed("tick\ntick\n").text == "count += 1\ncount += 1\ntock\ntock\n"


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_new_lines_end_as_the_file_does(rules: Rules, newline: str) -> None:
    rules.add("math", r"need_(\w+)", importing)
    rules.add("split", r"one_line", replacing("(\n    1 +\r\n    2\n)"))
    text = fixed(f"x = need_pi{newline}y = one_line{newline}").text
    if newline == "\n":
        assert text == "import math\nx = math.pi\ny = (\n    1 +\r\n    2\n)\n"
    else:
        assert text.replace("\r\n", newline) == newline.join(
            ["import math", "x = math.pi", "y = (", "    1 +", "    2", ")", ""]
        )


def test_a_fix_that_breaks_the_file_is_refused_and_the_others_applied(rules: Rules) -> None:
    rules.add("good", r"slow", replacing("fast"))
    rules.add("bad", r"fine", replacing("torch.(fine)"))
    done = fixed("x = slow\ny = fine\nz = slow\n")
    assert done.text == "x = fast\ny = fine\nz = fast\n"
    assert done.applied == (("good", 2),)
    assert [finding.rule for finding in done.result.findings] == ["bad"]
    (diagnostic,) = done.result.diagnostics
    assert diagnostic.fault is Fault.INTERNAL
    assert (diagnostic.code, diagnostic.name) == ("E000", "internal-error")
    assert diagnostic.message == "bad: its fix would break a.py:2:5 and was not applied; please report this"


def test_after_a_fix_is_refused_others_are_applied_in_later_rounds(rules: Rules) -> None:
    rules.add("call", r"slow\((.*)\)", replacing(r"fast(\1)"))
    rules.add("bad", r"fine", replacing("torch.(fine)"))
    done = fixed("slow(slow(x))\ny = fine\n")
    assert done.text == "fast(fast(x))\ny = fine\n"
    assert done.applied == (("call", 2),)


def test_what_torchlint_itself_takes_from_the_future_says_nothing_of_a_file(rules: Rules) -> None:
    rules.add("odd", r"slow", replacing("x: (y := 1) = 2"))
    assert fixed("slow\n").text == "x: (y := 1) = 2\n"


def test_what_only_compiling_sees_breaks_a_file_too(rules: Rules) -> None:
    rules.add("math", r"need_(\w+)", importing)
    text = "from __future__ import annotations\nneed_pi\n"
    assert fixed(text).text == text
    assert len(fixed(text).result.diagnostics) == 1


def test_fixes_that_break_the_file_only_together_are_applied_one_after_the_other(rules: Rules) -> None:
    rules.add("odd", r"(?<=\n)    odd\n(?=    even)", replacing(""))
    rules.add("even", r"    even\n(?!    odd)", replacing(""))
    done = fixed("if x:\n    odd\n    even\n")
    # Either line may go; without both the block would be empty.
    assert done == Fixed(SourceFile("a.py", "if x:\n    even\n"), done.result, (("odd", 1),))
    assert ["even" in diagnostic.message for diagnostic in done.result.diagnostics] == [True]


def test_edits_of_one_fix_that_overlap_are_refused(rules: Rules) -> None:
    rules.add("self", r"abcd", lambda match: [Edit(Span(*match.span()), "x"), Edit(Span(1, 2), "y")])
    done = fixed("abcd\n")
    assert done.text == "abcd\n"
    assert ["would break" in diagnostic.message for diagnostic in done.result.diagnostics] == [True]


def test_edits_of_one_fix_may_touch(rules: Rules) -> None:
    rules.add("touch", r"ab", lambda _: [Edit(Span(0, 0), "("), Edit(Span(0, 2), "c"), Edit(Span(2, 2), ")")])
    assert fixed("ab\n").text == "(c)\n"


def test_fixes_that_never_rest_become_a_diagnostic(rules: Rules) -> None:
    rules.add("ping", r"ping", replacing("pong"))
    rules.add("pong", r"pong", replacing("ping"))
    done = fixed("ping\n")
    assert rules.runs == 11
    (diagnostic,) = done.result.diagnostics
    assert diagnostic.fault is Fault.INTERNAL
    assert diagnostic.message == "ping: fixes of a.py did not come to rest in 10 rounds; please report this"
    rules.add("and-so-on", r"tick", replacing("tock"))
    rules.add("back", r"tock", replacing("tick"))
    (diagnostic,) = fixed("ping + tick\n").result.diagnostics
    assert diagnostic.message.startswith("and-so-on, ping: fixes of a.py")


def test_ten_rounds_are_enough_for_what_needs_ten(rules: Rules) -> None:
    rules.add("count", r"\b[0-9]\b", lambda match: replacing(str(int(match[0]) + 1))(match))
    done = fixed("0\n")
    assert done == Fixed(SourceFile("a.py", "10\n"), Result(), (("count", 10),))


def test_a_file_with_syntax_newer_than_this_interpreter_can_be_fixed(
    rules: Rules, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fixer, "_compiles", lambda _: False)
    rules.add("good", r"slow", replacing("fast"))
    rules.add("bad", r"fine", replacing("torch.(fine)"))
    assert fixed("slow\nfine\n").text == "fast\nfine\n"


def test_a_file_that_cannot_be_parsed_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    error = Result(diagnostics=(Diagnostic("E999", "invalid-syntax", "no"),))
    monkeypatch.setattr(fixer, "lint", lambda _source, _settings, _facts: error)
    assert fixed("x = (\n") == Fixed(SourceFile("a.py", "x = (\n"), error, ())


def test_warnings_of_the_fixed_code_stay_quiet(rules: Rules) -> None:
    rules.add("good", r"slow", replacing("fast"))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        assert fixed("slow\n'\\d'\n1 is 1\n").text == "fast\n'\\d'\n1 is 1\n"
    assert seen == []
