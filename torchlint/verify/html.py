"""The report of a run as one HTML file: no script, nothing fetched, light and dark, distributions drawn."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from torchlint.evidence import Ratio
from torchlint.report.evidence import VERDICTS
from torchlint.report.text import visible
from torchlint.verify import plots, words
from torchlint.verify.report_model import Control, Report, Row, Site, Together

_STYLE = """\
:root{color-scheme:light dark;--ink:#1f2933;--soft:#5f6b7a;--line:#dde2e9;--page:#f6f7f9;--card:#fff;--good:#0b7a53;
--bad:#b93815;--warn:#8a5a00;--goodbg:#e4f4ed;--badbg:#fbe9e2;--flatbg:#eceff3;--warnbg:#fff4d6}
@media (prefers-color-scheme:dark){:root{--ink:#e6eaf0;--soft:#9aa6b6;--line:#303947;--page:#12161d;--card:#1a2029;
--good:#4ade9f;--bad:#ff8a65;--warn:#f5c451;--goodbg:#12362a;--badbg:#43231a;--flatbg:#29313d;--warnbg:#3a2f12}}
*{box-sizing:border-box}body{margin:0;background:var(--page);color:var(--ink);line-height:1.5;
font:15px/1.5 ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:1080px;margin:0 auto;padding:32px 20px 64px}h1{font-size:26px;line-height:1.25;margin:0 0 8px}
h2{font-size:18px;margin:40px 0 12px}h3{font-size:15px;margin:0;overflow-wrap:anywhere}p{margin:6px 0}
code,pre,.mono{font:13px/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}.soft{color:var(--soft)}
main header~header{margin-top:72px;padding-top:32px;border-top:1px solid var(--line)}
header code,td code,p code{overflow-wrap:anywhere}td code,p code{font-size:.9em}
.card{background:var(--card);border:1px solid var(--line);border-radius:10px;
padding:16px 18px;margin:12px 0}.scroll{overflow-x:auto}.big{font-size:40px;line-height:1.1;font-weight:650;margin:0}
.good{color:var(--good)}.bad{color:var(--bad)}.chip{display:inline-block;border-radius:12px;padding:1px 10px;
white-space:nowrap;font-size:13px;font-weight:600;background:var(--flatbg);color:var(--ink)}
td:first-child{min-width:190px}
.chip.good{background:var(--goodbg);color:var(--good)}.chip.bad{background:var(--badbg);color:var(--bad)}
.warning{background:var(--warnbg);border-left:4px solid var(--warn);border-radius:6px;padding:10px 14px;margin:12px 0}
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
dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}ul{list-style:none;margin:0;padding:0}li{padding:3px 0}
@media print{body{background:#fff}.card{break-inside:avoid}}
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
    return (
        '<!DOCTYPE html>\n<html lang="en" xmlns="http://www.w3.org/1999/xhtml"><head><meta charset="utf-8"/>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>"
        f"<title>{_text(report.title)}</title>\n<style>\n{_STYLE}{plots.STYLE}</style></head>\n"
        f"<body><main>\n{body}\n</main></body></html>\n"
    )


def _parts(report: Report) -> list[str]:
    null = next((each.speedup for each in report.controls if each.unchanged and each.speedup), None)
    return [
        *_header(report),
        *(f'<p class="warning">{_prose(warning)}</p>' for warning in report.warnings),
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
    yield f"<header><h1>{_text(report.title)}</h1><p><code>{_text(report.command)}</code></p>"
    yield f'<p class="soft">{_text(report.device.replace("  ", " · "))}<br/>{_text(report.entry)}</p>'
    if report.summary:
        yield f"<p>{_text(report.summary)}</p>"
    yield "</header>"


def _together(found: Together, unit: str) -> Iterator[str]:
    heading = words.together(found)
    yield f'<h2>{heading[:1].upper()}{heading[1:]}</h2><div class="card">'
    if speedup := found.speedup:
        yield f'<p class="big {_look(found.verdict)}">{_text(words.times(speedup.ratio))}</p>'
        kind = "fresh replicate" if found.confirmed else "replicate"
        replicates = _count(speedup.n, kind, f"{kind}s")
        yield f'<p class="soft">{words.ends(speedup)}, {replicates}</p>'
    yield f"<p>{_chip(VERDICTS[found.verdict], _look(found.verdict))} {_prose(found.words)}</p>"
    counts = [(f"syncs per {unit}", words.counted(found.syncs)), ("peak memory", words.bytes_changed(found.memory))]
    shown = [f"{_text(name)} {_prose(value)}" for name, value in counts if value not in (words.NONE, words.SAME)]
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
            yield f"<li><b>{_text(each.name)}</b>: {_text(each.words)}{_MARKS[each.passed]}</li>"
        yield "</ul></div>"


def _table(rows: Sequence[Row], unit: str) -> Iterator[str]:
    if not rows:
        return
    lines = []
    for row in rows:
        fix = f"<b>{_text(row.code)}</b> {_prose(row.title)}<br/>{_mono(words.place(row))}"
        decided = f"<b>{words.decision(row)}</b> " if words.decision(row) else ""
        lines.append(
            (
                fix,
                _nowrap(words.interval(row.alone)),
                _nowrap(words.interval(row.without)),
                _nowrap(words.counted(row.syncs)),
                _nowrap(words.bytes_changed(row.memory)),
                _nowrap(words.time_changed(row.busy)),
                _prose(row.numerics),
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
            _text(site.kind),
            words.number(site.per_unit),
            _text(words.said_of(site)) if site.finding else f'<span class="soft">{_text(words.said_of(site))}</span>',
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
            f'<section class="card"><div class="head"><h3>{_text(row.code)} {_text(row.rule)} '
            f"{_mono(words.place(row))}</h3>"
            f"{_chip(words.verdict(row), _look(row.verdict))}</div><p>{_prose(row.title)}</p>"
        )
        if row.why:
            yield f'<p class="soft">{_prose(row.why)}</p>'
        if row.alone and row.alone.log_ratios:
            tone = _tone(row.alone)
            drawn = plots.run_order(row.alone, tone) + plots.ecdf(row.alone, null, tone, band)
            yield f'<div class="facets">{drawn}</div>'
        if row.diff:
            yield f"<details><summary>What it changes</summary><pre>{_diff(row.diff)}</pre></details>"
        yield "</section>"


def _named(heading: str, pairs: Sequence[tuple[str, str]]) -> Iterator[str]:
    if pairs:
        yield f'<h2>{_text(heading)}</h2><div class="card"><dl>'
        for name, value in pairs:
            yield f"<dt>{_text(name)}</dt><dd>{_text(value)}</dd>"
        yield "</dl></div>"


def _provenance(report: Report) -> Iterator[str]:
    yield from _named("Provenance", report.provenance)
    if report.written:
        yield f'<p class="soft">{_prose(report.written)}</p>'


def _diff(text: str) -> str:
    shown = []
    for line in text.splitlines():
        changed = line[:1] if not line.startswith(("+++", "---")) else ""
        tag = {"+": "ins", "-": "del"}.get(changed, "span")
        shown.append(f"<{tag}>{_text(line) or ' '}</{tag}>")
    return "".join(shown)


def _chip(text: str, look: str) -> str:
    return f'<span class="chip {look}">{_text(text)}</span>'


def _look(verdict: str) -> str:
    return "good" if verdict in words.GOOD else "bad" if verdict in words.BAD else "flat"


def _tone(found: Ratio) -> str:
    return "gain" if found.lo > 1 else "loss" if found.hi < 1 else "flat"


def _grid(heads: Iterable[str], lines: Iterable[Iterable[str]]) -> str:
    """A table of cells that are markup already, under heads that are not."""
    head = "".join(f"<th>{_text(each)}</th>" for each in heads)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in line)}</tr>" for line in lines)
    return f'<div class="card scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _mono(text: str) -> str:
    return f'<span class="mono soft">{_text(text)}</span>'


def _nowrap(text: str) -> str:
    return f'<span class="n">{_prose(text)}</span>'


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def _prose(text: str) -> str:
    """Words with code between backticks, and an arrow for `->`."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", _text(text)).replace(" -&gt; ", " → ")


def _text(text: str) -> str:
    """`text` that is neither markup nor anything that steers what shows it."""
    return escape(visible(text))
