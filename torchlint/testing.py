"""What the tests of a rule pack call: which lines of a snippet its rules flag, and what their fixes make of it."""

from __future__ import annotations

import ast
import re
import textwrap
from collections import Counter
from collections.abc import Mapping

from torchlint import engine, linter
from torchlint.finding import Applicability, Finding, Severity, edited
from torchlint.fixer import Fixed, fix
from torchlint.registry import find
from torchlint.settings import OptionValue, Settings
from torchlint.source import SourceFile

__all__ = ["check_snippet"]

_MARK = re.compile(r"[ \t]*# <- (?P<rules>[\w-]+\??(?:, *[\w-]+\??)*)[ \t]*$", re.MULTILINE)


def check_snippet(
    code: str, *rules: str, fixed: str | None = None, options: Mapping[str, OptionValue] | None = None
) -> None:
    """Assert that the rules of these names flag the lines of a snippet marked `# <- rule-name`, and no others.

    Of what is to be a note, a flag with doubts, the mark is `# <- rule-name?`.

    `fixed` is what all fixes together, the unsafe ones too, make of the snippet without its marks; `options` are those
    of the first rule. Both texts may be indented as a whole.

    Asserts besides what holds of every rule: no check fails; a message is one line without a period at its end; fixes
    are as safe as the rule declares, each ends its finding, and together they come to an end with a text that parses;
    nothing is changed where nothing is fixed; CR LF and LF give the same; and the prefilter keeps no check from what it
    would flag. Raises `AssertionError`, and `UnknownRuleError` for a rule that is not installed.
    """
    chosen = sorted((find(name) for name in rules), key=lambda rule: rule.code)
    given = ((find(rules[0]).name, tuple(sorted(options.items()))),) if options else ()
    settings = Settings(tuple(rule.name for rule in chosen), options=given)
    code = textwrap.dedent(code).strip("\n") + "\n"
    text = _MARK.sub("", code)
    findings = _findings(text, settings)
    _same(Counter(_places(text, findings)), Counter(_marks(code)), text)
    for finding in findings:
        _is_well_formed(finding, text)
        _is_fixed(finding, text, settings)
    _needs_no_prefilter(text, settings)
    for threshold in (Applicability.SAFE, Applicability.UNSAFE):
        _comes_to_an_end(text, settings, threshold)
    if fixed is not None:
        made = _fixed(text, settings, Applicability.UNSAFE).text
        wanted = textwrap.dedent(fixed).strip("\n") + "\n"
        assert made == wanted, f"the fixes make\n{made}\nand not\n{wanted}"


def _findings(text: str, settings: Settings) -> tuple[Finding, ...]:
    result = linter.lint(SourceFile("snippet.py", text), settings)
    assert not result.diagnostics, f"{result.diagnostics[0].message}\n{text}"
    return result.findings


def _fixed(text: str, settings: Settings, threshold: Applicability) -> Fixed:
    made = fix(SourceFile("snippet.py", text), settings, threshold)
    assert not made.result.diagnostics, f"{made.result.diagnostics[0].message}\n{text}"
    return made


def _places(text: str, findings: tuple[Finding, ...]) -> list[tuple[int, str]]:
    return [
        (text.count("\n", 0, finding.span.start) + 1, finding.rule + "?" * (finding.severity is Severity.NOTE))
        for finding in findings
    ]


def _marks(code: str) -> list[tuple[int, str]]:
    return [
        (code.count("\n", 0, match.start("rules")) + 1, rule.strip())
        for match in _MARK.finditer(code)
        for rule in match["rules"].split(",")
    ]


def _same(found: Counter[tuple[int, str]], wanted: Counter[tuple[int, str]], text: str) -> None:
    missing = [f"line {row}: {rule} is missing" for row, rule in sorted((wanted - found).elements())]
    surplus = [f"line {row}: {rule} is not wanted" for row, rule in sorted((found - wanted).elements())]
    assert found == wanted, "\n".join((*missing, *surplus, text))


def _is_well_formed(finding: Finding, text: str) -> None:
    message = finding.message
    assert message.strip() == message != "", f"{finding.rule}: a message is text without blanks around it: {message!r}"
    assert "\n" not in message, f"{finding.rule}: a message is one line: {message!r}"
    assert not message.endswith("."), f"{finding.rule}: a message has no period at its end: {message!r}"
    if finding.fix is not None:
        declared = find(finding.rule).fix
        words = ", ".join(map(str, declared)) or "none"
        assert finding.fix.applicability in declared, (
            f"{finding.rule} declares {words} in `fix`, and yields a fix that is {finding.fix.applicability}"
        )
        assert finding.fix.title, f"{finding.rule}: a fix has a title"
        assert edited(text, finding.fix.edits) != text, f"{finding.rule}: the fix changes nothing"


def _is_fixed(finding: Finding, text: str, settings: Settings) -> None:
    """Assert that a fix ends its own finding."""
    if finding.fix is None or not engine.is_applicable(finding.fix, Applicability.UNSAFE):
        return
    made = edited(text, finding.fix.edits)
    before, after = (sum(other.rule == finding.rule for other in _findings(one, settings)) for one in (text, made))
    assert after < before, f"{finding.rule} still reports what it fixed\n{made}"


def _needs_no_prefilter(text: str, settings: Settings) -> None:
    source, rules = SourceFile("snippet.py", text), tuple(map(find, settings.rules))
    every = engine.examine(source, rules, settings, thorough=True).findings
    assert not every or engine.mentions(text.encode(errors="replace"), rules), f"the prefilter drops findings\n{text}"
    found = engine.examine(source, rules, settings).findings
    assert found == every, f"the tokens of an interest keep a check from what it would flag\n{text}"


def _comes_to_an_end(text: str, settings: Settings, threshold: Applicability) -> None:
    made = _fixed(text, settings, threshold)
    again = _fixed(made.text, settings, threshold)
    assert again.text == made.text, f"fixing again goes on\n{made.text}\nto\n{again.text}"
    if not made.applied:
        assert made.text == text, f"the text is changed without a fix\n{made.text}"
    try:
        ast.parse(text)
    except SyntaxError:
        return
    ast.parse(made.text)
    with_returns = _fixed(text.replace("\n", "\r\n"), settings, threshold).text
    assert with_returns == made.text.replace("\n", "\r\n"), f"with CR LF the fixes make\n{with_returns!r}"
