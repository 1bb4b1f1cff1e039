"""SARIF 2.1.0, one run, for GitHub code scanning and its like."""

from __future__ import annotations

import os.path
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from torchlint import __version__
from torchlint.finding import Fault, Fix, Frequency, Span
from torchlint.report.contents import FileReport, ReportOptions
from torchlint.report.dumped import dumped, fingerprint
from torchlint.report.entry import Entry, entries
from torchlint.report.page import body
from torchlint.rule import Rule
from torchlint.source import SourceFile

HOME = "https://github.com/torchlint/torchlint"
_ROOT = "SRCROOT"
_OWN_GROUP = "torchlint"  # its rules are about ignores, not about what code costs
_DIAGNOSTICS = {
    "E000": "torchlint failed on a file; the other findings are not affected.",
    "E902": "A file cannot be read.",
    "E903": "The configuration names a function that a file does not define.",
    "E999": "A file cannot be parsed.",
}

Json = dict[str, Any]


def write(reports: Sequence[FileReport], options: ReportOptions) -> str:
    """One SARIF log. Errors of a file are results; failures of torchlint itself are notifications of the run."""
    found = list(entries(reports, options))
    results = [entry for entry in found if entry.fault is not Fault.INTERNAL]
    failures = [entry for entry in found if entry.fault is Fault.INTERNAL]
    rules = _descriptors(results, options.rules)
    index = {rule["id"]: number for number, rule in enumerate(rules)}
    outside = _shared_folder(reports)
    seen: Counter[str] = Counter()
    run = {
        "tool": {"driver": _driver(rules, failures)},
        "automationDetails": {"id": "torchlint/"},
        "columnKind": "unicodeCodePoints",
        "newlineSequences": ["\r\n", "\n", "\r"],
        "originalUriBaseIds": {_ROOT: {"description": {"text": "The root of the checked tree."}}},
        "invocations": [
            {
                "executionSuccessful": not (failures or options.problems),
                "exitCode": _exit_code(results, failures, options),
                "toolExecutionNotifications": [_notification(entry, outside) for entry in failures],
                "toolConfigurationNotifications": [
                    {"level": "error", "message": {"text": problem}} for problem in options.problems
                ],
            }
        ],
        "results": [_result(entry, index[entry.code], outside, seen) for entry in results],
    }
    log = {"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0", "runs": [run]}
    return dumped(log)


def _shared_folder(reports: Sequence[FileReport]) -> Path | None:
    """The deepest folder of all files outside the working directory, whose paths are absolute."""
    folders = {Path(report.source.path).parent for report in reports if Path(report.source.path).is_absolute()}
    try:
        return Path(os.path.commonpath(folders))
    except ValueError:  # no such file, or files on several drives
        return None


def _artifact(path: str, outside: Path | None) -> Json:
    """The file by a path that tells nothing of the machine: one from outside is relative to what all such share."""
    file = Path(path)
    if file.is_absolute():
        path = file.relative_to(outside).as_posix() if outside else file.name
    return {"uri": quote(path.encode("utf-8", "surrogateescape")), "uriBaseId": _ROOT}


def _driver(rules: list[Json], failures: list[Entry]) -> Json:
    kinds = {entry.code: entry for entry in failures}
    return {
        "name": "torchlint",
        "organization": "torchlint",
        "version": __version__,
        "semanticVersion": __version__,
        "informationUri": HOME,
        "rules": rules,
        "notifications": [_plain_descriptor(kinds[code]) for code in sorted(kinds)],
    }


def _descriptors(results: list[Entry], rules: tuple[Rule, ...]) -> list[Json]:
    """The rules of the run, then what else was found, such as syntax errors."""
    known = {rule.code for rule in rules}
    others = {entry.code: entry for entry in results if entry.code not in known}
    return [*map(_descriptor, rules), *(_plain_descriptor(others[code]) for code in sorted(others))]


def _descriptor(rule: Rule) -> Json:
    link = f"[`torchlint explain {rule.name}`]({rule.url})"
    return {
        "id": rule.code,
        "name": _pascal(rule.name),
        "shortDescription": {"text": _sentence(rule.name)},
        "fullDescription": {"text": rule.summary},
        "help": {
            "text": f"{rule.summary} See {rule.url}",
            "markdown": body(rule) or f"{rule.summary}\n\n{link}",
        },
        "helpUri": rule.url,
        "defaultConfiguration": {"enabled": rule.default, "level": "warning"},
        "properties": {
            "tags": ["maintainability" if rule.group == _OWN_GROUP else "performance", "pytorch", rule.group],
            "precision": "high",
            "problem.severity": "warning",
        },
    }


def _plain_descriptor(entry: Entry) -> Json:
    level = "warning" if entry.fault is None else "error"
    text = _DIAGNOSTICS.get(entry.code, _sentence(entry.name))
    return {
        "id": entry.code,
        "name": _pascal(entry.name),
        "shortDescription": {"text": text},
        "fullDescription": {"text": text},
        "help": {"text": text, "markdown": text},
        "helpUri": HOME,
        "defaultConfiguration": {"enabled": True, "level": level},
        "properties": {"tags": ["pytorch"], "precision": "very-high", "problem.severity": level},
    }


def _result(entry: Entry, rule_index: int, outside: Path | None, seen: Counter[str]) -> Json:
    properties: Json = {}
    if entry.frequency is not Frequency.UNKNOWN:
        properties["frequency"] = str(entry.frequency)
    if entry.origin:
        properties["calledFrom"] = entry.origin
    if entry.doubts:
        properties["doubts"] = [doubt.value for doubt in entry.doubts]
    result: Json = {
        "ruleId": entry.code,
        "ruleIndex": rule_index,
        "level": "error" if entry.fault is not None else str(entry.severity),
        "message": {"text": _message(entry)},
        "locations": [_location(entry, outside)],
        "partialFingerprints": {"primaryLocationLineHash": fingerprint(entry, seen)},
    }
    if entry.places:
        result["relatedLocations"] = [_location(replace(entry, span=span), outside) for span in entry.places]
    if entry.fix and entry.fix.edits:
        properties["applicability"] = str(entry.fix.applicability)
        result["fixes"] = [_fix(entry.source, entry.fix, outside)]
    if properties:
        result["properties"] = properties
    return result


def _notification(entry: Entry, outside: Path | None) -> Json:
    return {
        "descriptor": {"id": entry.code},
        "level": "error",
        "message": {"text": _message(entry)},
        "locations": [_location(entry, outside)],
    }


def _message(entry: Entry) -> str:
    """What is said, doubtful, and to be done; of a notebook also the cell, since a region is one of its JSON."""
    said = f"{entry.message} — {entry.doubtful}" if entry.doubts else entry.message
    said += f"; help: {entry.help}" if entry.help else ""
    return said if entry.start.cell is None else f"{said} ({entry.start.words})"


def _location(entry: Entry, outside: Path | None) -> Json:
    place: Json = {"artifactLocation": _artifact(entry.source.path, outside)}
    if entry.span is None:
        place["region"] = {"startLine": 1}  # GitHub drops a result without a line
    else:
        source, span, _ = entry.source.stored(entry.span)
        place["region"] = _region(source, span) | {"snippet": {"text": source.text[span.start : span.end]}}
        rows = range(source.position(span.start)[0], source.position(span.end)[0] + 1)
        lines = "\n".join(source.line(row) for row in rows)
        place["contextRegion"] = {"startLine": rows[0], "endLine": rows[-1], "snippet": {"text": lines}}
    return {"physicalLocation": place}


def _region(source: SourceFile, span: Span) -> Json:
    (row, column), (end_row, end_column) = source.position(span.start), source.position(span.end)
    return {"startLine": row, "startColumn": column, "endLine": end_row, "endColumn": end_column}


def _fix(source: SourceFile, fix: Fix, outside: Path | None) -> Json:
    stored, edits = source.stored_edits(fix.edits)
    replacements = [
        {"deletedRegion": _region(stored, edit.span), "insertedContent": {"text": edit.text}} for edit in edits
    ]
    change = {"artifactLocation": _artifact(source.path, outside), "replacements": replacements}
    return {"description": {"text": fix.title}, "artifactChanges": [change]}


def _exit_code(results: list[Entry], failures: list[Entry], options: ReportOptions) -> int:
    if options.exit_code is not None:
        return options.exit_code
    return 2 if failures or options.problems else 1 if results else 0


def _pascal(name: str) -> str:
    return "".join(word.capitalize() for word in name.split("-"))


def _sentence(name: str) -> str:
    return f"{name.replace('-', ' ').capitalize()}."
