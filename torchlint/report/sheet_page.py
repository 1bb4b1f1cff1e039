"""The cost sheet and the trace as one HTML file: no script, nothing fetched, light and dark, a step drawn."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape

from torchlint.report import pictures, where
from torchlint.report.costs import Item, Loop, Sheet
from torchlint.report.measured import Certainty, Line, Profile
from torchlint.report.profiled import measured
from torchlint.report.sheet import about, added_up, often
from torchlint.report.text import visible

_MOST_LINES = 40
_LEAST = 0.0005  # of the recording; what is less is not listed
_MOST_UNPLACED = 15
_STYLE = """\
:root{color-scheme:light dark;--ink:#1f2933;--soft:#5f6b7a;--line:#dde2e9;--page:#f6f7f9;--card:#fff;
--bad:#b93815;--badbg:#fbe9e2;--flatbg:#eceff3;--warn:#8a5a00;--warnbg:#fff4d6}
@media (prefers-color-scheme:dark){:root{--ink:#e6eaf0;--soft:#9aa6b6;--line:#303947;--page:#12161d;--card:#1a2029;
--bad:#ff8a65;--badbg:#43231a;--flatbg:#29313d;--warn:#f5c451;--warnbg:#3a2f12}}
*{box-sizing:border-box}body{margin:0;background:var(--page);color:var(--ink);
font:15px/1.5 ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
main{max-width:960px;margin:0 auto;padding:28px 16px 56px}h1{font-size:24px;line-height:1.25;margin:0 0 6px}
h2{font-size:18px;margin:36px 0 8px}h3{font-size:15px;margin:0 0 2px}p{margin:6px 0}.soft{color:var(--soft)}
h3,p,li,code{overflow-wrap:anywhere}code{font:13px/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,monospace}
.card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:14px 16px;margin:12px 0}
.drawing{margin:10px 0 4px}
ul{list-style:none;margin:8px 0 0;padding:0}li{border-top:1px solid var(--line);padding:9px 0}
li:first-child{border-top:0}
.chip{display:inline-block;border-radius:11px;padding:0 9px;font-size:12px;font-weight:600;background:var(--flatbg);
color:var(--ink);margin-right:6px}.chip.sure{background:var(--badbg);color:var(--bad)}
.share{display:inline-block;min-width:56px;margin-right:6px;font-weight:650;font-variant-numeric:tabular-nums}
.bar{height:6px;border-radius:3px;background:var(--flatbg);margin:4px 0 2px;overflow:hidden}
.bar svg{display:block;width:100%;height:6px}
.note{background:var(--warnbg);border-left:4px solid var(--warn);border-radius:6px;padding:8px 12px;margin:10px 0}
@media print{body{background:#fff}.card{break-inside:avoid}}
"""
_SKETCH = "A sketch by what the code says, not to scale: nothing was run. Pale blocks stay: the program needs them."
_SCALE = (
    "One step of median length, as it was recorded. Below it, the same step if the lines with findings did not hold "
    "the CPU up while the GPU is idle: a bound and no measurement, which `torchlint verify` makes."
)
_SCALE_OF_CPU = (
    "One step of median length, as it was recorded on the CPU. Below it, the same step if loading took no time in the "
    "lines with findings: a bound and no measurement, which `torchlint verify` makes."
)
_AS_IT_WAS = "One step of median length, as it was recorded."


def page(sheet: Sheet) -> str:
    """The whole page, well-formed as XML too."""
    body = "\n".join(_parts(sheet))
    title = "Where the time goes" if sheet.profile is not None else "What a step costs"
    return (
        '<!DOCTYPE html>\n<html lang="en" xmlns="http://www.w3.org/1999/xhtml"><head><meta charset="utf-8"/>'
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>'
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>"
        f"<title>{title}</title>\n<style>\n{_STYLE}{pictures.STYLE}</style></head>\n"
        f"<body><main>\n<header><h1>{title}</h1><p><code>{_text(sheet.command)}</code></p></header>\n{body}\n"
        "</main></body></html>\n"
    )


def _parts(sheet: Sheet) -> Iterator[str]:
    if sheet.profile is not None:
        yield from _measured(sheet.profile)
    yield "<h2>Loops</h2>" if sheet.loops else '<p class="soft">No loop over batches is in sight.</p>'
    for loop in sheet.loops:
        yield from _loop(loop, sheet)
    if sheet.others:
        yield '<h2>In no loop over batches that is in sight</h2><div class="card"><ul>'
        yield from (_item(item, sheet) for item in sheet.others)
        yield "</ul></div>"
    for error in sheet.errors:
        yield f'<p class="note">{_text(error)}</p>'
    yield '<p class="soft">Counts are by what the code says. <code>torchlint verify</code> runs it and measures.</p>'


def _measured(profile: Profile) -> Iterator[str]:
    yield f"<h2>Measured</h2><p>{_text(where.head(profile))}</p>"
    for remark in profile.remarks:
        yield f'<p class="note">{_prose(remark)}</p>'
    if profile.step is not None:
        named = {(line.path, line.row) for line in profile.lines if line.findings}
        before = pictures.of_trace(profile.step, has_device=profile.has_device)
        after = pictures.without(profile.step, named, has_device=profile.has_device)
        drawn = pictures.timeline(before, after, "A step as it was recorded", is_to_scale=True)
        words = _AS_IT_WAS if after is None else _SCALE if profile.has_device else _SCALE_OF_CPU
        yield f'<div class="card"><div class="drawing">{drawn}</div><p class="soft">{_prose(words)}</p></div>'
    yield '<div class="card"><ul>'
    shown = [line for line in profile.lines if profile.share(line.cost) >= _LEAST or line.findings][:_MOST_LINES]
    yield from (_line(line, profile) for line in shown)
    more = len(profile.lines) - len(shown)
    if more > 0:
        yield f'<li class="soft">and {more} more, which <code>--output-format json</code> lists</li>'
    yield "</ul></div>"
    if profile.unplaced:
        yield '<h3>In no line of these files</h3><div class="card"><ul>'
        for each in profile.unplaced[:_MOST_UNPLACED]:
            share = f"{100 * profile.share(each.cost):.1f} %"
            words = where.words(each.cost, profile)
            yield f'<li><span class="share">{share}</span> <code>{_text(each.name)}</code><br/>{_text(words)}</li>'
        yield "</ul></div>"


def _line(line: Line, profile: Profile) -> str:
    share = f"{100 * profile.share(line.cost):.1f} %"
    code = f" <code>{_text(line.code)}</code>" if line.certainty is not Certainty.FUNCTION else ""
    said = "".join(f'<span class="chip sure">{_text(each)}</span>' for each in line.findings)
    if not said and line.silence:
        said = f'<span class="soft">no rule names it: {_text(line.silence)}</span>'
    return (
        f'<li><span class="share">{share}</span> <b>{_text(where.place(line))}</b>{code}'
        f'<div class="bar">{pictures.bar(line.cost, profile.length)}</div>'
        f"{_text(where.words(line.cost, profile))}{f'<br/>{said}' if said else ''}</li>"
    )


def _loop(loop: Loop, sheet: Sheet) -> Iterator[str]:
    yield f'<section class="card"><h3>{_text(f"{loop.path}:{loop.row}")} <code>{_text(loop.head)}</code></h3>'
    yield f"<p>{_text(about(loop))}: {_text(added_up(loop.items))}</p>"
    if loop.items:
        before, after = pictures.sketch(loop, fixed=False), pictures.sketch(loop, fixed=True)
        if before != after:
            title = f"A step of the loop on line {loop.row} before and after: {added_up(loop.items)}"
            drawn = pictures.timeline(before, after, title, is_to_scale=False)
            yield f'<div class="drawing">{drawn}</div><p class="soft">{_SKETCH}</p>'
        yield "<ul>"
        yield from (_item(item, sheet) for item in loop.items)
        yield "</ul>"
    yield "</section>"


def _item(item: Item, sheet: Sheet) -> str:
    look = "chip" if item.doubts else "chip sure"
    said = f"{item.finding.partition(' ')[0]} {item.message}{often(item)}{measured(item, sheet)}"
    if item.doubts:
        more = f'<span class="soft">in doubt: {_text(item.doubtful)}</span>'
    else:
        more = f'<span class="soft">help: {_prose(item.help)}</span>' if item.help else ""
    return (
        f'<li><span class="{look}">{item.event.value}</span><b>{_text(f"{item.path}:{item.row}")}</b> '
        f"<code>{_text(item.code)}</code><br/>{_prose(said)}{f'<br/>{more}' if more else ''}</li>"
    )


def _prose(text: str) -> str:
    """Words with code between backticks."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", _text(text))


def _text(text: str) -> str:
    """`text` that is neither markup nor anything that steers what shows it."""
    return escape(visible(" ".join(text.split())))
