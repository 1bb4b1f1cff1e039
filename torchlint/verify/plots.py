"""Distributions of speed-ups drawn as SVG, readable without colour and in light and dark."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

from torchlint.evidence import Ratio
from torchlint.report.text import crop
from torchlint.verify.words import end_of, gain
from torchlint.verify.words import interval as words

# What a drawing takes for its looks; a page that holds several defines them once.
STYLE = """\
.plot{--ink:#1f2933;--soft:#697586;--line:#d5dae1;--band:#eceff3;--gain:#0b7a53;--loss:#b93815;--flat:#5b6b82;
font:12px ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,sans-serif;color:var(--ink)}
.plot text{fill:var(--ink)}.plot .soft{fill:var(--soft);font-size:11px}.plot .num{font-variant-numeric:tabular-nums}
.plot .grid{stroke:var(--line);stroke-width:1}.plot .one{stroke:var(--soft);stroke-width:1.25}
.plot .band{fill:var(--band)}.plot .rule{stroke:var(--line);stroke-width:1;stroke-dasharray:2 3}
.plot .gain{--c:var(--gain)}.plot .loss{--c:var(--loss)}.plot .flat{--c:var(--flat)}
.plot .bar{stroke:var(--c);stroke-width:3;stroke-linecap:round}.plot .mean{fill:var(--c)}
.plot .dot{fill:var(--c);fill-opacity:.45}.plot .step{fill:none;stroke:var(--c);stroke-width:2}
.plot .null{fill:none;stroke:var(--soft);stroke-width:1.25;stroke-dasharray:4 3}
@media (prefers-color-scheme:dark){.plot{--ink:#e6eaf0;--soft:#98a4b5;--line:#333c49;--band:#242c38;--gain:#4ade9f;
--loss:#ff8a65;--flat:#9fb0c7}}
"""
# Within 2 % of no effect the scale is about linear, further out logarithmic: 1 % and 10 times fit on one axis.
_KNEE = 0.02
# What to mark, the most telling first: the next ones only where there is room between them.
_TICKS = (
    1,
    2,
    0.5,
    1.1,
    0.9,
    10,
    0.1,
    1.02,
    0.98,
    5,
    0.2,
    1.25,
    0.8,
    1.05,
    0.95,
    1.01,
    0.99,
    100,
    0.01,
    1000,
    1e4,
    1e5,
)
_WIDTH = 920
_LEFT = 262
_RIGHT = 178
_ROW = 40
_TOP = 30
_BETWEEN = 40  # what the widest label fills
_FACET_WIDTH = 440
_FACET_HEIGHT = 148


class Line(NamedTuple):
    """A row of a forest plot: what it is of, in two lines, what was measured, and its tone: gain, loss or flat."""

    label: str
    note: str
    speedup: Ratio
    tone: str


def forest(lines: Sequence[Line], band: float = 0.01) -> str:
    """One row per fix or control: its interval, its estimate, and a dot per replicate; the band is `1 ± band`."""
    axis = _Axis(_extent((line.speedup for line in lines), band), _LEFT, _WIDTH - _RIGHT)
    bottom = _TOP + _ROW * len(lines)
    parts = [*_field(axis, band, _TOP - 6, bottom)]
    for number, line in enumerate(lines):
        middle = _TOP + _ROW * number + _ROW / 2
        found = line.speedup
        parts += [
            _text(0, middle - 2, end_of(line.label, 38)),
            _text(0, middle + 13, end_of(line.note, 44), "soft"),
            f'<g class="{line.tone}">',
            *(_dot(axis(math.exp(log)), middle - 9 + _scatter(i), 2.6) for i, log in enumerate(found.log_ratios)),
            _rule("bar", axis(found.lo), axis(found.hi), middle + 5),
            f'<circle class="mean" cx="{axis(found.ratio):.1f}" cy="{middle + 5:.1f}" r="5"/>',
            "</g>",
            _text(_WIDTH - _RIGHT + 14, middle + 3, words(found), "num"),
        ]
    levels = sorted({line.speedup.level for line in lines})
    level = " and ".join(f"{100 * each:.4g} %" for each in levels)
    parts += _ticks(axis, bottom + 16)
    parts.append(
        _text(_LEFT, bottom + 36, f"speed-up; bar: {level} interval, dot: one replicate of fresh processes", "soft")
    )
    title = "Speed-up of each fix with its interval: " + "; ".join(
        f"{line.label} {words(line.speedup)}" for line in lines
    )
    return _svg(_WIDTH, bottom + 46, title, parts)


def run_order(found: Ratio, tone: str) -> str:
    """The ratio of each replicate in the order of the run, on a scale of its own: a trend is drift.

    The line is the estimate, the band its interval.
    """
    logs = [*found.log_ratios, math.log(found.lo), math.log(found.hi)]
    low, high = min(logs), max(logs)
    top, bottom, left, right = 14.0, _FACET_HEIGHT - 34.0, 64.0, _FACET_WIDTH - 10.0
    step = (right - left) / max(found.n, 1)

    def height(ratio: float) -> float:
        return bottom - (bottom - top) * (math.log(ratio) - low) / ((high - low) or 1.0)

    upper, lower = height(found.hi), height(found.lo)
    parts = [
        f'<rect class="band" x="{left}" y="{upper:.1f}" width="{right - left}" height="{lower - upper:.1f}"/>',
        *(_rule("grid", left, right, y) for y in (top, bottom)),
        *([_rule("one", left, right, height(1))] if low < 0 < high else []),
    ]
    marks = [math.exp(high), math.exp(low)]
    marks += [found.ratio] if all(abs(height(found.ratio) - height(mark)) > 12 for mark in marks) else []
    parts += [_text(left - 8, height(mark) + 4, gain(mark), "soft num", "end") for mark in marks]
    parts.append(f'<g class="{tone}">')
    parts.append(_rule("step", left, right, height(found.ratio)))
    parts += [_dot(left + step * (i + 0.5), height(math.exp(log)), 3.6) for i, log in enumerate(found.log_ratios)]
    parts.append("</g>")
    parts.append(_text(left, _FACET_HEIGHT - 8, f"replicates 1 to {found.n} in the order of the run", "soft"))
    return _svg(_FACET_WIDTH, _FACET_HEIGHT, f"Speed-ups of {found.n} replicates in the order of the run", parts)


def ecdf(found: Ratio, null: Ratio | None, tone: str, band: float = 0.01) -> str:
    """The share of replicates at or below each speed-up; dashed, that of code in which nothing was changed."""
    shown = [found] if null is None else [found, null]
    axis = _Axis(_extent(shown, band), 30, _FACET_WIDTH - 8)
    bottom = _FACET_HEIGHT - 40
    parts = [*_field(axis, band, 8, bottom)]
    parts += [_text(24, y + 4, share, "soft num", "end") for share, y in (("1", 10.0), ("0", bottom - 2.0))]
    if null is not None and null.log_ratios:
        parts.append(_steps(null, axis, 10, bottom, "null"))
    if found.log_ratios:
        parts.append(f'<g class="{tone}">{_steps(found, axis, 10, bottom, "step")}</g>')
    parts += _ticks(axis, bottom + 14)
    key = "share of replicates; dashed: unchanged code" if null is not None else "share of replicates"
    parts.append(_text(30, _FACET_HEIGHT - 8, key, "soft"))
    return _svg(_FACET_WIDTH, _FACET_HEIGHT, "Distribution of the speed-ups of the replicates", parts)


class _Axis:
    """From a ratio to a place between two edges, and the ticks that fit there."""

    def __init__(self, extent: tuple[float, float], start: float, end: float) -> None:
        self.extent = extent
        self._start, self._end = start, end
        self._low, self._high = (_squeeze(value) for value in extent)

    def __call__(self, ratio: float) -> float:
        share = (_squeeze(ratio) - self._low) / (self._high - self._low)
        return self._start + min(max(share, 0.0), 1.0) * (self._end - self._start)

    def ticks(self, room: float) -> list[float]:
        """The ratios to mark, at least `room` apart."""
        low, high = self.extent
        chosen: list[float] = []
        for value in _TICKS:
            if low <= value <= high and all(abs(self(value) - self(other)) >= room for other in chosen):
                chosen.append(value)
        return sorted(chosen)


def _squeeze(ratio: float) -> float:
    return math.asinh(math.log(ratio) / _KNEE)


def _extent(found: Iterable[Ratio], band: float) -> tuple[float, float]:
    """The least and the greatest ratio to show, never narrower than three bands to either side."""
    low, high = 1 / (1 + 3 * band), 1 + 3 * band
    for each in found:
        dots = [math.exp(log) for log in each.log_ratios]
        low, high = min(low, each.lo, *dots), max(high, each.hi, *dots)
    low, high = max(low, 1e-6), min(high, 1e6)
    return math.exp(math.log(low) * 1.08), math.exp(math.log(high) * 1.08)


def _field(axis: _Axis, band: float, top: float, bottom: float) -> list[str]:
    """The band of effects too small to claim, and a line per tick."""
    left, right = axis(1 / (1 + band)), axis(1 + band)
    parts = [
        f'<rect class="band" x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{bottom - top:.1f}"/>'
    ]
    for value in axis.ticks(_BETWEEN):
        mark = "one" if value == 1 else "grid"
        parts.append(
            f'<line class="{mark}" x1="{axis(value):.1f}" x2="{axis(value):.1f}" y1="{top:.1f}" y2="{bottom:.1f}"/>'
        )
    return parts


def _ticks(axis: _Axis, y: float) -> list[str]:
    return [_text(axis(value), y, _label(value), "soft num", "middle") for value in axis.ticks(_BETWEEN)]


def _steps(found: Ratio, axis: _Axis, top: float, bottom: float, kind: str) -> str:
    """The empirical distribution as a stair from the left edge to the right one."""
    ratios = sorted(math.exp(log) for log in found.log_ratios)
    low, high = axis.extent
    path = [f"M{axis(low):.1f} {bottom:.1f}"]
    for number, ratio in enumerate(ratios, 1):
        path.append(f"H{axis(ratio):.1f}V{bottom - (bottom - top) * number / len(ratios):.1f}")
    path.append(f"H{axis(high):.1f}")
    return f'<path class="{kind}" d="{"".join(path)}"/>'


def _label(ratio: float) -> str:
    if ratio >= 2 or ratio <= 0.5:
        return f"{ratio:,.0f}x" if ratio >= 2 else f"{ratio:.2g}x"
    return "0 %" if ratio == 1 else f"{100 * (ratio - 1):+.0f} %"


def _scatter(number: int) -> float:
    """A shift that keeps dots of like ratios apart, the same in every drawing."""
    return (number * 5 % 7 - 3) * 1.5


def _dot(x: float, y: float, radius: float) -> str:
    return f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="{radius}"/>'


def _rule(kind: str, left: float, right: float, y: float) -> str:
    return f'<line class="{kind}" x1="{left:.1f}" x2="{right:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    look = f' class="{kind}"' if kind else ""
    place = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{x:.1f}" y="{y:.1f}"{look}{place}>{escape(text)}</text>'


def _svg(columns: float, rows: float, title: str, parts: Iterable[str]) -> str:
    name = escape(crop(title, 0, 2000))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="plot" viewBox="0 0 {columns:.0f} {rows:.0f}" '
        f'width="{columns:.0f}" height="{rows:.0f}" role="img" aria-label="{name}">{"".join(parts)}</svg>'
    )
