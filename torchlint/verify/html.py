"""The report of a run as one HTML file: no script, nothing fetched, light and dark, distributions drawn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from torchlint.evidence import Ratio
from torchlint.report.evidence import VERDICTS
from torchlint.report.text import visible
from torchlint.report.web import html, prose, text
from torchlint.verify import plots, words
from torchlint.verify.report_model import Control, Report, Row, Site, Together

_STYLE = """\
main header~header{margin-top:72px;padding-top:32px;border-top:1px solid var(--line)}
td code,p code{font-size:.9em}.scroll{overflow-x:auto}.big{font-size:40px;line-height:1.1;font-weight:650;margin:0}
.good{color:var(--good)}.bad{color:var(--bad)}td:first-child{min-width:190px}
.chip.good{background:var(--goodbg);color:var(--good)}.chip.bad{background:var(--badbg);color:var(--bad)}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:left;padding:8px 12px 8px 0;border-bottom:1px solid var(--line);vertical-align:top}
th{font-size:12px;color:var(--soft);font-weight:600}
tr:last-child td{border-bottom:0}.n{white-space:nowrap}td .mono{overflow-wrap:anywhere}
.head{display:flex;gap:10px;align-items:baseline;justify-content:space-between;flex-wrap:wrap}
.facets{display:flex;gap:24px;flex-wrap:wrap;margin-top:12px}.facets svg{max-width:100%;height:auto}
.forest svg{min-width:720px;width:100%;height:auto;display:block}details{margin-top:12px}summary{cursor:pointer}
pre{overflow-x:auto;margin:10px 0 0;padding:12px;border-radius:8px;background:var(--page);border:1px solid var(--line)}
pre ins,pre del{text-decoration:none;display:block}pre span{display:block}pre ins{background:var(--goodbg)}
pre del{background:var(--badbg)}dl{display:grid;grid-template-columns:max-content 1fr;gap:4px 18px;margin:0}
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}li{padding:3px 0}
"""
_MARKS = {True: ', <span class="good">ok</span>', False: ', <span class="bad">failed</span>', None: ""}
_TO_READ = (
    "A replicate starts fresh processes of every variant and runs them in turns, so that neither the layout of one "
    "process nor a drifting clock can favour one. A dot is one replicate, a bar the interval of all of them. A gain is "
    "claimed only where the whole bar lies on the side of faster and the estimate beyond the grey band. The scale is "
    "about linear near no effect, and logarithmic further out."
)


def to_html(report: Report, *others: Report) -> str:
    """The whole page, one report below the other, well-formed as XML too."""
    body = "\n".join("\n".join(_parts(each)) for each in (report, *others))
    return html(text(report.title), _STYLE + plots.STYLE, body)


def _parts(report: Report) -> list[str]:
    null = next((each.speedup for each in report.controls if each.unchanged and each.speedup), None)
    return [
        *_header(report),
        *(f'<p class="warning">{prose(warning)}</p>' for warning in report.warnings),
        *(_together(report.together, report.unit) if report.together else ()),
        *_forest(report),
        *_controls(report.controls),
        *_table(report.rows, report.unit),
        *_sites(report.sites, report.unit),
        *_cards(report.rows, null, report.band),
        *_named("How the machine was", report.conditions),
        *_provenance(report),
    ]


def _header(report: Report) -> Iterator[str]:
    yield f"<header><h1>{text(report.title)}</h1><p><code>{text(report.command)}</code></p>"
    yield f'<p class="soft">{text(report.device.replace("  ", " · "))}<br/>{text(report.entry)}</p>'
    if report.summary:
        yield f"<p>{text(report.summary)}</p>"
    yield "</header>"


def _together(found: Together, unit: str) -> Iterator[str]:
    heading = words.together(found)
    yield f'<h2>{heading[:1].upper()}{heading[1:]}</h2><div class="card">'
    if speedup := found.speedup:
        yield f'<p class="big {_look(found.verdict)}">{text(words.times(speedup.ratio))}</p>'
        kind = "fresh replicate" if found.confirmed else "replicate"
        replicates = _count(speedup.n, kind, f"{kind}s")
        yield f'<p class="soft">{words.ends(speedup)}, {replicates}</p>'
    yield f"<p>{_chip(VERDICTS[found.verdict], _look(found.verdict))} {prose(found.words)}</p>"
    counts = [(f"syncs per {unit}", words.counted(found.syncs)), ("peak memory", words.bytes_changed(found.memory))]
    shown = [f"{text(name)} {prose(value)}" for name, value in counts if value not in (words.NONE, words.SAME)]
    yield f'<p class="soft">{"; ".join(shown)}</p></div>' if shown else "</div>"


def _forest(report: Report) -> Iterator[str]:
    lines = [plots.Line(each.name, "control", each.speedup, "flat") for each in report.controls if each.speedup]
    for row in report.rows:
        label = f"{row.code} {words.place(row)}"
        if row.alone:
            lines.append(plots.Line(label, f"alone: {visible(row.title)}", row.alone, _tone(row.alone)))
        if row.without:
            lines.append(plots.Line(label, "the set without it", row.without, _tone(row.without)))
    if report.together and report.together.speedup:
        found = report.together.speedup
        how = "confirmed on fresh processes" if report.together.confirmed else "all of them"
        lines.append(plots.Line("kept" if report.together.confirmed else "together", how, found, _tone(found)))
    if lines:
        yield f'<h2>Speed-ups</h2><div class="card"><div class="scroll forest">{plots.forest(lines, report.band)}</div>'
        yield f'<p class="soft">{_TO_READ}</p></div>'


def _controls(controls: Sequence[Control]) -> Iterator[str]:
    if controls:
        yield '<h2>Controls</h2><div class="card"><ul>'
        for each in controls:
            yield f"<li><b>{text(each.name)}</b>: {text(each.words)}{_MARKS[each.passed]}</li>"
        yield "</ul></div>"


def _table(rows: Sequence[Row], unit: str) -> Iterator[str]:
    if not rows:
        return
    lines = []
    for row in rows:
        fix = f"<b>{text(row.code)}</b> {prose(row.title)}<br/>{_mono(words.place(row))}"
        decided = f"<b>{words.decision(row)}</b> " if words.decision(row) else ""
        lines.append(
            (
                fix,
                _nowrap(words.interval(row.alone)),
                _nowrap(words.interval(row.without)),
                _nowrap(words.counted(row.syncs)),
                _nowrap(words.bytes_changed(row.memory)),
                _nowrap(words.time_changed(row.busy)),
                prose(row.numerics),
                decided + _chip(words.verdict(row), _look(row.verdict)),
            )
        )
    heads = (
        "fix",
        "alone",
        "the set without it",
        f"syncs per {unit}",
        "peak memory",
        "GPU busy",
        "numerics",
        "verdict",
    )
    shown = [
        index for index in range(len(heads)) if any(line[index] not in ("", _nowrap(words.NONE)) for line in lines)
    ]
    kept = [[line[index] for index in shown] for line in lines]
    yield f"<h2>Fixes</h2>{_grid([heads[index] for index in shown], kept)}"


def _sites(sites: Sequence[Site], unit: str) -> Iterator[str]:
    if not sites:
        return
    lines = [
        (
            _mono(f"{site.path}:{site.line}"),
            text(site.kind),
            words.number(site.per_unit),
            text(words.said_of(site)) if site.finding else f'<span class="soft">{text(words.said_of(site))}</span>',
        )
        for site in sites
    ]
    heads = ("line", "what it does", f"per {unit}", "what torchlint check says of it")
    yield f"<h2>Where the host waits and copies</h2>{_grid(heads, lines)}"


def _cards(rows: Sequence[Row], null: Ratio | None, band: float) -> Iterator[str]:
    if rows:
        yield "<h2>Fix by fix</h2>"
    for row in rows:
        yield (
            f'<section class="card"><div class="head"><h3>{text(row.code)} {text(row.rule)} '
            f"{_mono(words.place(row))}</h3>"
            f"{_chip(words.verdict(row), _look(row.verdict))}</div><p>{prose(row.title)}</p>"
        )
        if row.why:
            yield f'<p class="soft">{prose(row.why)}</p>'
        if row.alone and row.alone.log_ratios:
            tone = _tone(row.alone)
            drawn = plots.run_order(row.alone, tone) + plots.ecdf(row.alone, null, tone, band)
            yield f'<div class="facets">{drawn}</div>'
        if row.diff:
            yield f"<details><summary>What it changes</summary><pre>{_diff(row.diff)}</pre></details>"
        yield "</section>"


def _named(heading: str, pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    if pairs:
        yield f'<h2>{text(heading)}</h2><div class="card"><dl>'
        for name, value in pairs:
            yield f"<dt>{text(name)}</dt><dd>{text(value)}</dd>"
        yield "</dl></div>"


def _provenance(report: Report) -> Iterator[str]:
    yield from _named("Provenance", report.provenance)
    if report.written:
        yield f'<p class="soft">{prose(report.written)}</p>'


def _diff(patch: str) -> str:
    shown = []
    for line in patch.splitlines():
        changed = line[:1] if not line.startswith(("+++", "---")) else ""
        tag = {"+": "ins", "-": "del"}.get(changed, "span")
        shown.append(f"<{tag}>{text(line) or ' '}</{tag}>")
    return "".join(shown)


def _chip(said: str, look: str) -> str:
    return f'<span class="chip {look}">{text(said)}</span>'


def _look(verdict: str) -> str:
    return "good" if verdict in words.GOOD else "bad" if verdict in words.BAD else "flat"


def _tone(found: Ratio) -> str:
    return "gain" if found.lo > 1 else "loss" if found.hi < 1 else "flat"


def _grid(heads: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """A table of cells that are markup already, under heads that are not."""
    head = "".join(f"<th>{text(each)}</th>" for each in heads)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in line)}</tr>" for line in lines)
    return f'<div class="card scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _mono(said: str) -> str:
    return f'<span class="mono soft">{text(said)}</span>'


def _nowrap(said: str) -> str:
    return f'<span class="n">{prose(said)}</span>'


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
