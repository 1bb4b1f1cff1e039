"""JUnit's XML, in the schema that Jenkins and GitLab read: a suite per file, a failed test per warning."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape

from torchlint.report.contents import FileReport, ReportOptions
from torchlint.report.entry import Entry, entries
from torchlint.report.text import visible

_HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
# A suite without tests is an error to Jenkins.
_CLEAN = (
    '  <testsuite name="torchlint" tests="1" failures="0" errors="0" skipped="0" package="org.torchlint">\n'
    '    <testcase name="No findings" classname="torchlint"/>\n'
    "  </testsuite>\n"
)
# XML has no way to write these; of other control characters `visible` shows pictures.
_NO_CHARACTERS = dict.fromkeys((0xFFFE, 0xFFFF), "\ufffd")


def write(reports: Sequence[FileReport], options: ReportOptions) -> str:
    """One document. What does not fail the run is a test that was skipped."""
    found = list(entries(reports, options))
    files: dict[str, list[Entry]] = {}
    for entry in found:
        files.setdefault(entry.source.path, []).append(entry)
    suites = [_suite(path, group, options) for path, group in files.items()]
    kinds = Counter(_kind(entry, options) for entry in found)
    counts = f'tests="{len(found) or 1}" failures="{kinds["failure"]}" errors="{kinds["error"]}"'
    body = "".join(suites) or _CLEAN
    return f'{_HEAD}<testsuites name="torchlint" {counts}>\n{body}</testsuites>\n'


def _suite(path: str, found: list[Entry], options: ReportOptions) -> str:
    kinds = Counter(_kind(entry, options) for entry in found)
    counts = f'tests="{len(found)}" failures="{kinds["failure"]}" errors="{kinds["error"]}"'
    counts += f' skipped="{kinds["skipped"]}" package="org.torchlint"'
    cases = "".join(_case(name, entry, _kind(entry, options)) for name, entry in _named(found))
    return f'  <testsuite name="{_text(path)}" {counts}>\n{cases}  </testsuite>\n'


def _named(found: Iterable[Entry]) -> Iterable[tuple[str, Entry]]:
    """Each with a name that no other has in the file, and that does not change when lines move."""
    seen: Counter[str] = Counter()
    for entry in found:
        name = f"{entry.code} {entry.name}"
        seen[name] += 1
        yield name if seen[name] == 1 else f"{name} ({seen[name]})", entry


def _case(name: str, entry: Entry, kind: str) -> str:
    said = [f"{entry.source.path}:{entry.start}: {entry.sentence}", *([f"help: {entry.help}"] if entry.help else [])]
    message = f'message="{_text(entry.sentence)}" type="{_text(entry.code)}"'
    text = "\n".join(map(_text, said))
    return (
        f'    <testcase name="{_text(name)}" classname="{_text(entry.source.path)}">\n'
        f"      <{kind} {message}>{text}</{kind}>\n"
        "    </testcase>\n"
    )


def _kind(entry: Entry, options: ReportOptions) -> str:
    if entry.fault is not None:
        return "error"
    return "failure" if entry.severity >= options.fail_on else "skipped"


def _text(text: str) -> str:
    return escape(visible(text).translate(_NO_CHARACTERS))
