"""What is shown under the pointer where nothing was found: how often the line runs, and why rules were silent."""

from __future__ import annotations

from torchlint.engine import tell
from torchlint.explain_line import because, is_elsewhere, said
from torchlint.facts import Facts
from torchlint.reasons import Outcome, Verdict, verdicts
from torchlint.settings import Settings
from torchlint.source import SourceFile

_SILENT = (Outcome.SILENT, Outcome.SUPPRESSED)
# Where it is only said of what there is that it is not what a rule looks for, a pointer that passes by asks for less.
_PLAIN = ("there is none", "not so", "nothing could", "`")
_MOST = 4


def silence(source: SourceFile, settings: Settings, facts: Facts, row: int) -> str:
    """Markdown for a line, by its row; empty where a rule spoke, or none has more to say than that this is not its."""
    found = [verdict for verdict in verdicts(source, settings, facts, row) if not is_elsewhere(verdict)]
    if any(verdict.outcome not in _SILENT for verdict in found):
        return ""
    telling = [verdict for verdict in found if not verdict.words.startswith(_PLAIN)][:_MOST]
    told = tell(source, settings, facts, row) if telling else None
    if told is None:
        return ""
    often = "" if told.frequency == "unknown" else f" · runs {told.frequency}"
    lines = (
        f"- **{verdict.rule.code}** [{verdict.rule.name}]({verdict.rule.url}): "
        f"{', '.join((said(verdict), *_further(verdict)))}"
        for verdict in telling
    )
    return "\n".join((f"**Nothing reported**{often}", "", *lines))


def _further(verdict: Verdict) -> list[str]:
    """The next reason, if it says more than that something is not there."""
    return [words for words in because(verdict)[:1] if not words.removeprefix("since ").startswith(_PLAIN)]
