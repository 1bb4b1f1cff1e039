"""The rules on the site: a page of each, and the table of all, which can be narrowed down."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchlint import evidence
from torchlint.report.page import body, conditions
from torchlint.rule import Rule, Status

from .markup import relative

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

# What the groups are called where there is room.
GROUPS = {
    "data": "Loading data",
    "transfer": "Copies to and from the GPU",
    "sync": "Synchronization",
    "autograd": "Autograd",
    "modules": "Layers and models",
    "precision": "Precision and settings",
    "distributed": "Several GPUs",
    "optimizer": "Optimizers",
    "vectorise": "Loops over elements",
    "torchlint": "torchlint itself",
}
EVIDENCE = {
    "gpu": "timed on a GPU",
    "cuda": "counted on a GPU",
    "sim": "counted on the simulated GPU",
    "none": "nothing measured",
}
# What the table says of each rule, and how.
_CHIPS = {"fix": "fix: {}", "severity": "{}", "runs": "{}", "evidence": "{}"}
_SECTIONS = ("## Fix safety", "## When not to use", "## Evidence", "## References")
# The columns of the page about precision that a rule's own page repeats.
_READ = re.compile(r"^\| (?P<code>TL\d+) \[[^|]*\|(?:[^|]*\|){6} (?P<verdicts>[^|]*)\|[^|]*\|$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Facet:
    """One way to narrow the table down: its values, each with what people read."""

    name: str
    title: str
    values: Mapping[str, str]


def page_of(rule: Rule) -> str:
    """Where the page of a rule stands on the site, as its address says, too."""
    return f"rules/{rule.name}.md"


def facets(rules: Iterable[Rule]) -> tuple[Facet, ...]:
    """What the table of rules can be narrowed down by."""
    groups = {rule.group for rule in rules}
    return (
        Facet("group", "Group", {group: title for group, title in GROUPS.items() if group in groups}),
        Facet("severity", "Severity", {"warning": "warnings only", "both": "warnings and notes"}),
        Facet("fix", "Fix", {"safe": "safe", "unsafe": "unsafe", "none": "none"}),
        Facet("runs", "Runs", {"on": "by default", "preview": "in preview", "off": "if selected"}),
        Facet("evidence", "Evidence", EVIDENCE),
    )


def values(rule: Rule) -> dict[str, tuple[str, ...]]:
    """The values of the facets that a rule has."""
    runs = "preview" if rule.status is not Status.STABLE else "on" if rule.default else "off"
    return {
        "group": (rule.group,),
        "severity": ("both" if doubted(rule) else "warning",),
        "fix": tuple(map(str, rule.fix)) or ("none",),
        "runs": (runs,),
        "evidence": (measured(rule),),
    }


def doubted(rule: Rule) -> list[str]:
    """The doubts that make notes of this rule's findings, in words."""
    return [doubt.sentence for doubt, reason in rule.doubts if not reason]


def measured(rule: Rule) -> str:
    """The best that was measured of a rule: a key of `EVIDENCE`. What has changed since does not count."""
    if not evidence.is_measurable(rule):
        return "none"
    now = evidence.pair(rule)
    held = [
        each for file in evidence.evidence_of(rule) for each in file.measurements if not evidence.is_stale(each, now)
    ]
    if any(each.device.type == "cuda" and each.time for each in held):
        return "gpu"
    counted = {each.device.type for each in held if each.counts}
    return next((kind for kind in ("cuda", "sim") if kind in counted), "none")


def verdicts(precision: str) -> dict[str, str]:
    """For each code what became of the findings that were read, by the Markdown of the page about precision."""
    return {row["code"]: row["verdicts"].strip() for row in _READ.finditer(precision)}


def table(rules: Sequence[Rule]) -> str:
    """All rules as HTML, with a choice for each facet that needs no script."""
    parts = ['<form class="tl-filters" aria-label="Narrow the rules down">\n']
    for facet in facets(rules):
        parts.append(f"<fieldset><legend>{facet.title}</legend><div>\n")
        parts.append(_choice(facet.name, "", "all", is_chosen=True))
        parts += [_choice(facet.name, value, title) for value, title in facet.values.items()]
        parts.append("</div></fieldset>\n")
    parts.append('<button type="reset">Show all</button>\n</form>\n')
    parts.append('<ul class="tl-rules">\n')
    parts += [_row(rule) for rule in rules]
    parts.append('<li class="tl-count"></li>\n</ul>\n')
    return "".join(parts)


def stylesheet(rules: Sequence[Rule]) -> str:
    """The part of the style that hides what was not chosen: one selector for each value of each facet."""
    selectors = [
        f'body:has(#tl-{facet.name}-{value}:checked) .tl-rule:not([data-{facet.name}~="{value}"])'
        for facet in facets(rules)
        for value in facet.values
    ]
    return ",\n".join(selectors) + " {\n  display: none;\n}\n"


def markdown(rule: Rule, read: Mapping[str, str], known: Iterable[Rule]) -> str:
    """A rule's page: what stands in its file, with what the rule itself says in the place of the head."""
    text = body(rule)
    assert text is not None, rule.name
    addresses = {each.name: relative(f"rules/{each.path}", f"rules/{rule.path}") for each in known}
    summary, _, rest = text.partition("\n\n")
    lines = [f'# {rule.name} <span class="tl-code">{rule.code}</span>', "", summary, "", _facts(rule, read), ""]
    lines += _split(rest, rule)
    lines += [
        "",
        "## At hand",
        "",
        f"`torchlint explain {rule.code}` prints this page, `torchlint check --select {rule.name}` runs this rule",
        f"alone, and `# torchlint: ignore[{rule.name}]` silences it on a line.",
    ]
    if rule.yields_to:
        named = ", ".join(f"[{name}]({addresses[name]})" for name in rule.yields_to)
        lines += ["", f"Where one of these rules says something of the same line, this one is silent: {named}."]
    return "\n".join(lines) + "\n"


def _split(text: str, rule: Rule) -> list[str]:
    """The page with a section about doubts before the first of those that follow the example."""
    said = _doubts(rule)
    places = [text.find(f"\n{section}") for section in _SECTIONS]
    at = min((place for place in places if place >= 0), default=len(text))
    return [text[:at].rstrip(), *said, text[at:].rstrip()]


def _doubts(rule: Rule) -> list[str]:
    noted = doubted(rule)
    silent = [(doubt.sentence, reason) for doubt, reason in rule.doubts if reason]
    if not rule.doubts:
        return []
    lines = ["", "## Warning, note or silence", ""]
    if noted:
        lines += ["A finding is a note, and not a warning, where one of these is said with it:", ""]
        lines += [f"- {sentence}" for sentence in noted]
    if silent:
        lines += ["", "Nothing is said where one of these holds:", ""]
        lines += [f"- {sentence}. {reason}" for sentence, reason in silent]
    return [*lines, ""]


def _facts(rule: Rule, read: Mapping[str, str]) -> str:
    own = values(rule)
    shown = [(facet.title, ", ".join(facet.values[value] for value in own[facet.name])) for facet in facets((rule,))]
    shown.append(("Since", rule.since))
    shown += [(key.capitalize(), value) for key, value in conditions(rule) if key != "yields to"]
    cells = [(key, html.escape(value)) for key, value in shown]
    if verdict := read.get(rule.code):
        right, wrong, doubtful = verdict.split(" / ")
        said = f"{right} right, {wrong} wrong, {doubtful} doubtful"
        cells.append(("Findings that were read", f'<a href="../../precision/">{said}</a>'))
    return f'<dl class="tl-facts">{"".join(f"<div><dt>{key}</dt><dd>{value}</dd></div>" for key, value in cells)}</dl>'


def _choice(name: str, value: str, title: str, *, is_chosen: bool = False) -> str:
    key = f"tl-{name}-{value or 'all'}"
    chosen = " checked" if is_chosen else ""
    return (
        f'<input type="radio" name="{name}" id="{key}" value="{value}"{chosen}>'
        f'<label for="{key}">{html.escape(title)}</label>\n'
    )


def _row(rule: Rule) -> str:
    own = values(rule)
    data = " ".join(f'data-{name}="{" ".join(each)}"' for name, each in own.items())
    titles = {facet.name: facet.values for facet in facets((rule,))}
    chips = "".join(
        f'<span class="tl-{name}-{value}">{html.escape(_CHIPS[name].format(titles[name][value]))}</span>'
        for name in _CHIPS
        for value in own[name]
    )
    return (
        f'<li class="tl-rule" {data}><p><a href="{rule.name}/"><code>{rule.code}</code> {rule.name}</a></p>'
        f'<p>{_inline(rule.summary)}</p><p class="tl-chips">{chips}</p></li>\n'
    )


def _inline(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))
