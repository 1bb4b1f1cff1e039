"""What a report is made of: what each file gave, and how it is to be written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from torchlint.finding import Applicability, Result
from torchlint.registry import all_rules

if TYPE_CHECKING:
    from torchlint.rule import Rule
    from torchlint.source import SourceFile


@dataclass(frozen=True, slots=True)
class FileReport:
    """What one file gave. `fixed` counts the findings that are gone by rule name, sorted; `result` holds the rest.

    `source` is the text that the result's spans point into; of a file that cannot be read it holds no text.
    """

    source: SourceFile
    result: Result
    fixed: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """How to write a report.

    `threshold` is the applicability that `--fix` would apply or has applied, `fixing` says that it has.
    `width` is in columns. `footer` is off under `--quiet`. `exit_code` is the run's, None where it follows from the
    results. `rules` are those whose metadata may be quoted. `problems` say what is wrong with rule packs.
    """

    color: bool = False
    hyperlinks: bool = False
    width: int = 100
    threshold: Applicability = Applicability.SAFE
    fixing: bool = False
    statistics: bool = False
    show_fixes: bool = False
    footer: bool = True
    exit_code: int | None = None
    rules: tuple[Rule, ...] = field(default_factory=all_rules)
    problems: tuple[str, ...] = ()
