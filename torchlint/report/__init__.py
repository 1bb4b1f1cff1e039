"""One writer per output format."""

from __future__ import annotations

from collections.abc import Sequence

from torchlint.report.contents import FileReport, ReportOptions, joined

__all__ = ["FORMATS", "FileReport", "ReportOptions", "joined", "render"]

FORMATS = ("full", "concise", "json", "github", "gitlab", "sarif", "junit", "rdjson", "pylint", "azure")


def render(output_format: str, reports: Sequence[FileReport], options: ReportOptions) -> str:
    """The whole report, in the order of `reports`, ending in a newline unless it is empty.

    Raises `ValueError`, its message for people, for an unknown format, and for statistics or groups where it has none.
    """
    # Each writer is imported where it is chosen: `json`, `hashlib` and `urllib` cost more than a warm run.
    if options.statistics:
        from torchlint.report import statistics

        return statistics.write(output_format, reports, options)
    if options.group_by and output_format not in ("full", "concise"):
        raise ValueError(f"`--group-by` writes full or concise, not {output_format}")
    match output_format:
        case "full":
            from torchlint.report.full import write
        case "concise":
            from torchlint.report.concise import write
        case "json":
            from torchlint.report.json import write
        case "github":
            from torchlint.report.github import write
        case "gitlab":
            from torchlint.report.gitlab import write
        case "sarif":
            from torchlint.report.sarif import write
        case "junit":
            from torchlint.report.junit import write
        case "rdjson":
            from torchlint.report.rdjson import write
        case "pylint":
            from torchlint.report.pylint import write
        case "azure":
            from torchlint.report.azure import write
        case _:
            raise ValueError(f"unknown output format `{output_format}`; one of {', '.join(FORMATS)}")
    return write(reports, options)
