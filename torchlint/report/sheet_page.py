"""The cost sheet and the trace as one HTML file: no script, nothing fetched, light and dark, a step drawn."""

from __future__ import annotations

from collections.abc import Iterator

from torchlint.report import pictures, web, where
from torchlint.report.costs import Item, Loop, Sheet
from torchlint.report.measured import Certainty, Line, Profile
from torchlint.report.profiled import measured
from torchlint.report.sheet import about, added_up, often

_MOST_LINES = 40
_LEAST = 0.0005  # of the recording; what is less is not listed
_MOST_UNPLACED = 15
_STYLE = """\
.drawing{margin:10px 0 4px}li{overflow-wrap:anywhere;border-top:1px solid var(--line);padding:9px 0}
li:first-child{border-top:0}.chip{margin-right:6px}.chip.sure{background:var(--badbg);color:var(--bad)}
.share{display:inline-block;min-width:56px;margin-right:6px;font-weight:650;font-variant-numeric:tabular-nums}
.bar{height:6px;border-radius:3px;background:var(--flatbg);margin:4px 0 2px;overflow:hidden}
.bar svg{display:block;width:100%;height:6px}
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
    header = f"<header><h1>{title}</h1><p><code>{_text(sheet.command)}</code></p></header>"
    return web.html(title, _STYLE + pictures.STYLE, f"{header}\n{body}")


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
        yield f'<p class="warning">{_text(error)}</p>'
    yield '<p class="soft">Counts are by what the code says. <code>torchlint verify</code> runs it and measures.</p>'


def _measured(profile: Profile) -> Iterator[str]:
    yield f"<h2>Measured</h2><p>{_text(where.head(profile))}</p>"
    for remark in profile.remarks:
        yield f'<p class="warning">{web.prose(remark)}</p>'
    if profile.step is not None:
        named = {(line.path, line.row) for line in profile.lines if line.findings}
        before = pictures.of_trace(profile.step, has_device=profile.has_device)
        after = pictures.without(profile.step, named, has_device=profile.has_device)
        drawn = pictures.timeline(before, after, "A step as it was recorded", is_to_scale=True)
        words = _AS_IT_WAS if after is None else _SCALE if profile.has_device else _SCALE_OF_CPU
        yield f'<div class="card"><div class="drawing">{drawn}</div><p class="soft">{web.prose(words)}</p></div>'
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
        more = f'<span class="soft">help: {web.prose(item.help)}</span>' if item.help else ""
    return (
        f'<li><span class="{look}">{item.event.value}</span><b>{_text(f"{item.path}:{item.row}")}</b> '
        f"<code>{_text(item.code)}</code><br/>{web.prose(said)}{f'<br/>{more}' if more else ''}</li>"
    )


def _text(text: str) -> str:
    return web.text(" ".join(text.split()))
