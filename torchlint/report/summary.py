"""The lines about a whole run: how much was found, how much can be fixed, and what was fixed where."""

from __future__ import annotations

from collections.abc import Sequence

from torchlint.finding import Applicability, Severity
from torchlint.report.contents import FileReport, ReportOptions
from torchlint.report.style import BOLD, CODE, HINT, Style
from torchlint.report.text import visible


def footer(reports: Sequence[FileReport], options: ReportOptions) -> str:
    """What stands below the findings: what was fixed if asked for, the total, and how to fix the rest."""
    parts = [fixes(reports, options)] if options.show_fixes else []
    if options.footer:
        parts.append(total(reports, options))
    return "".join(parts)


def total(reports: Sequence[FileReport], options: ReportOptions) -> str:
    """`Found 6 findings.`, and which of them can be fixed."""
    remaining = sum(len(report.result.findings) for report in reports)
    errors = sum(len(report.result.diagnostics) for report in reports)
    done = fixed(reports)
    if not remaining and not errors and not done:
        return "All checks passed!\n"
    counts = [count(remaining + done, "finding")] if remaining or done else []
    if done:
        counts[0] += f" ({done} fixed, {remaining} remaining)"
    notes = sum(finding.severity is Severity.NOTE for report in reports for finding in report.result.findings)
    if notes:
        counts[0] += f", {notes} of them {'a note' if notes == 1 else 'notes'}"
    if errors:
        counts.append(count(errors, "error"))
    return f"Found {' and '.join(counts)}.\n" + _fixable(reports, options)


def _fixable(reports: Sequence[FileReport], options: ReportOptions) -> str:
    now, more = _fixable_counts(reports, options)
    style = Style(options.color)
    if now and not options.fixing:
        hint = f" ({more} more with `--unsafe-fixes`)" if more else ""
        return f"[{style.paint('*', HINT)}] {now} fixable with `--fix`{hint}.\n"
    if not more:
        return ""
    if options.fixing:
        return f"{more} {'more ' if fixed(reports) else ''}fixable with `--unsafe-fixes`.\n"
    return f"{more} fixable with `--fix --unsafe-fixes`.\n"


def fixes(reports: Sequence[FileReport], options: ReportOptions) -> str:
    """What was fixed, by file and rule, between blank lines; empty where nothing was."""
    done = fixed(reports)
    if not done:
        return ""
    style = Style(options.color)
    codes = {rule.name: rule.code for rule in options.rules}
    lines = [f"\nFixed {count(done, 'finding')}:\n"]
    for report in reports:
        if report.fixed:
            lines.append(f"- {style.paint(visible(report.source.path), BOLD)}:\n")
        for name, times in sorted(report.fixed, key=lambda pair: codes.get(pair[0], pair[0])):
            label = f"{style.paint(codes[name], CODE)} ({name})" if name in codes else style.paint(name, CODE)
            lines.append(f"    {times} × {label}\n")  # noqa: RUF001 - as ruff writes it
    return "".join((*lines, "\n"))


def changed(reports: Sequence[FileReport], options: ReportOptions, *, written: bool) -> str:
    """The line that ends `--fix-only` (written) and `--diff` (not written)."""
    done = fixed(reports)
    _, more = _fixable_counts(reports, options)
    if not done and not more:
        return ""
    hint = f" ({more} more with `--unsafe-fixes`)" if more else ""
    if not done:
        return f"No fixes{hint}.\n"
    return f"{'Fixed' if written else 'Would fix'} {count(done, 'finding')}{hint}.\n"


def fixed(reports: Sequence[FileReport]) -> int:
    """How many findings were fixed."""
    return sum(times for report in reports for _, times in report.fixed)


def count(number: int, noun: str) -> str:
    """`1 finding`, `2 findings`."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _fixable_counts(reports: Sequence[FileReport], options: ReportOptions) -> tuple[int, int]:
    """How many findings the threshold lets be fixed, and how many more would be with unsafe fixes."""
    now = more = 0
    for report in reports:
        for finding in report.result.findings:
            if finding.fix is None or finding.fix.applicability is Applicability.DISPLAY:
                continue
            if finding.fix.applicability >= options.threshold:
                now += 1
            else:
                more += 1
    return now, more
