"""One source to what is reported about it; nothing here touches the disk, prints or exits."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from torchlint import engine, registry, suppress
from torchlint.facts import NOTHING, Asked
from torchlint.finding import Applicability, Diagnostic, Result
from torchlint.role import is_of_tests

if TYPE_CHECKING:
    import ast
    from collections.abc import Iterator

    from torchlint.facts import Answers, Facts
    from torchlint.finding import Finding, Fix
    from torchlint.notebook.cells import Notebook
    from torchlint.settings import Settings
    from torchlint.source import SourceFile


def lint(source: SourceFile, settings: Settings, facts: Facts = NOTHING) -> Result:
    """The findings of the active rules that no comment silences, sorted, and diagnostics."""
    return lint_and_answer(source, settings, facts, Asked())[0]


def lint_and_answer(
    source: SourceFile, settings: Settings, facts: Facts, asked: Asked
) -> tuple[Result, Answers | None]:
    """As `lint`, and what the source says to what is asked of it, if anything is.

    None also where linting it takes no parse: it is not made for the answers, which may not be needed in the end.
    """
    result, told = _linted(source, settings, facts, asked)
    if settings.hot and not result.diagnostics:
        missing = tuple(_missing(name, source) for name in settings.hot if not _defines(source, name))
        result = replace(result, diagnostics=missing)
    return result, told


def _linted(source: SourceFile, settings: Settings, facts: Facts, asked: Asked) -> tuple[Result, Answers | None]:
    if is_of_tests(settings.role, lambda: source.text):
        return Result(), None
    rules = tuple(registry.find(name) for name in settings.rules)
    if not engine.mentions(source.raw.encode(errors="replace"), rules):
        return _judged(source, Result(), settings), None
    result, answers = engine.examine_and_answer(source, rules, settings, facts, asked)
    if source.notebook is not None and source.notebook.problems:
        result = replace(result, diagnostics=(*result.diagnostics, *source.notebook.problems))
    return _judged(source, result, settings), answers if asked else None


def _defines(source: SourceFile, name: str) -> bool:
    """Whether the file has a function of this name, `Class.method` or `fit`; also where this is no Python."""
    import ast  # for the few files that the configuration names

    try:
        found: list[ast.AST] = [ast.parse(source.text)]
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return True
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for part in name.split("."):
        found = [node for outer in found for node in _inside(outer, kinds) if getattr(node, "name", "") == part]
    return any(not isinstance(node, ast.ClassDef) for node in found)


def _inside(outer: ast.AST, kinds: tuple[type[ast.AST], ...]) -> Iterator[ast.AST]:
    """The definitions in a node that stand in no other one."""
    import ast

    for node in ast.iter_child_nodes(outer):
        if isinstance(node, kinds):
            yield node
        elif not isinstance(node, ast.Lambda):
            yield from _inside(node, kinds)


def _missing(name: str, source: SourceFile) -> Diagnostic:
    message = f"`hot` in the configuration names `{name}`, which {source.path} does not define"
    return Diagnostic("E903", "unknown-function", message)


def _judged(source: SourceFile, result: Result, settings: Settings) -> Result:
    """The result after the comments of the source, with the fixes that may be made in a notebook."""
    findings = (_as_configured(finding, settings) for finding in result.findings)
    result = suppress.apply(source, replace(result, findings=tuple(findings)), settings)
    if source.notebook is None:
        return result
    findings = (replace(finding, fix=_in_notebook(finding.fix, source.notebook)) for finding in result.findings)
    return replace(result, findings=tuple(findings))


def _as_configured(finding: Finding, settings: Settings) -> Finding:
    """The finding, as severe as the configuration says that its rule is, where it says so."""
    severity = dict(settings.severities).get(finding.rule, finding.severity)
    return finding if severity is finding.severity else replace(finding, severity=severity)


def _in_notebook(fix: Fix | None, notebook: Notebook) -> Fix | None:
    """The fix, if it writes where the user's Python stands; unsafe where a cell would not show the same value."""
    if fix is None or not notebook.allows(fix.edits):
        return None
    if fix.applicability is Applicability.SAFE and not notebook.shows_as_before(fix.edits):
        return replace(fix, applicability=Applicability.UNSAFE)
    return fix
