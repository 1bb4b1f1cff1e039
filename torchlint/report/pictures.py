"""One step drawn as SVG, the CPU above the GPU, before and after: what holds the CPU up, and when the GPU is idle."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape

from torchlint.report.costs import Event, Loop
from torchlint.report.measured import Cost, Part, Step, merged
from torchlint.report.text import crop
from torchlint.report.where import duration

# What a drawing takes for its looks; a page that holds several defines them once.
STYLE = """\
.step{--ink:#1f2933;--soft:#5f6b7a;--lane:#f0f2f5;--load:#b7791f;--copy:#6b4fbb;--wait:#b93815;
--launch:#4a6785;--idle:#9aa5b1;--allocate:#8a4b6b;--work:#0b7a53;
font:12px ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
.step text{fill:var(--ink)}.step .soft{fill:var(--soft);font-size:11px}.step .on{fill:#fff;font-size:11px}
.step{display:block;overflow:visible}.step .lane{fill:var(--lane)}
.legend{display:flex;flex-wrap:wrap;gap:2px 16px;font-size:12px;color:var(--soft)}.legend svg{display:inline-block}
.step .load{fill:var(--load)}.step .copy{fill:var(--copy)}.step .wait{fill:var(--wait)}
.step .idle{fill:var(--idle)}.step .launch,.step .operator{fill:var(--launch)}.step .allocate{fill:var(--allocate)}
.step .work{fill:var(--work)}.step .stays{fill-opacity:.55}
@media (prefers-color-scheme:dark){.step{--ink:#e6eaf0;--soft:#9aa6b6;--lane:#232b36;--load:#c98a2b;
--copy:#8b72d8;--wait:#d9512c;--launch:#6d8cad;--idle:#647081;--allocate:#b0688d;--work:#1d9a6c}}
"""
# Across, a drawing is as wide as there is room, in percent; down, it is in pixels, so that words keep their size.
_LEFT = 9.0
_SPAN = 90.0
_LANE = 20
_GAP = 4
_HEAD = 18
_BETWEEN = 14
_LETTER = 6.4  # pixels that a letter takes, about
_NARROW = 2.9  # pixels that a percent takes where there is little room, on a phone
_THINNEST = 0.08
_LEGEND = (
    ("load", "loads a batch"),
    ("copy", "copies"),
    ("wait", "waits for the GPU"),
    ("launch", "launches"),
    ("operator", "operators on the CPU"),
    ("allocate", "allocates"),
    ("work", "the GPU works"),
)
_OF_PART = {
    Part.LOAD: "load",
    Part.COPY: "copy",
    Part.WAIT: "wait",
    Part.ALLOCATE: "allocate",
    Part.COMPUTE: "operator",
}


@dataclass(frozen=True, slots=True)
class Block:
    """Something on a lane: from, to, its kind (a class of `STYLE`), what it says; `stays` marks what may remain."""

    start: float
    end: float
    kind: str
    label: str = ""
    stays: bool = False


@dataclass(frozen=True, slots=True)
class Lanes:
    """A step: what the CPU and the GPU do in it, and its length in the same unit; `device` is None without a GPU."""

    length: float
    host: tuple[Block, ...]
    device: tuple[Block, ...] | None


def bar(cost: Cost, length: float) -> str:
    """What a line costs as a share of the whole recording, in the colours of its parts."""
    parts = []
    x = 0.0
    for part, time, _ in cost.parts():
        size = 100 * min(time / length, 1.0) if length else 0.0
        look = _OF_PART.get(part, "idle")
        parts.append(f'<rect class="{look}" x="{x:.2f}" y="0" width="{size:.2f}" height="1"/>')
        x += size
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" class="step" viewBox="0 0 100 1" preserveAspectRatio="none" '
        f'aria-hidden="true">{"".join(parts)}</svg>'
    )


def of_trace(step: Step, *, has_device: bool) -> Lanes:
    """A step as it was recorded, in µs."""
    host = [
        Block(each.start, each.end, _OF_PART[each.part], f"line {each.place[1]}" if each.place is not None else "")
        for each in step.host
        if each.part in _OF_PART
    ]
    device = tuple(Block(start, end, "work") for start, end in step.device) if has_device else None
    return Lanes(step.length, tuple(host), device)


def without(step: Step, named: Collection[tuple[str, int]], *, has_device: bool) -> Lanes | None:
    """The same if what holds the CPU up on these lines took no time while the GPU idles; None if nothing would change.

    Work of the GPU keeps its length. Without a GPU only loading can go, which workers do meanwhile.
    """
    gone = [
        (each.start, each.end)
        for each in step.host
        if each.place in named and each.part is not Part.COMPUTE and (has_device or each.part is Part.LOAD)
    ]
    lost = _minus(merged(gone), list(step.device))
    if not lost:
        return None

    def moved(time: float) -> float:
        return time - sum(min(end, time) - start for start, end in lost if start < time)

    before = of_trace(
        replace(step, host=tuple(each for each in step.host if (each.start, each.end) not in gone)),
        has_device=has_device,
    )
    host = tuple(replace(each, start=moved(each.start), end=moved(each.end)) for each in before.host)
    device = before.device
    if device is not None:
        device = tuple(replace(each, start=moved(each.start), end=moved(each.end)) for each in device)
    return Lanes(moved(step.length), host, device)


def sketch(loop: Loop, *, fixed: bool) -> Lanes:
    """A step of a loop by what the code says, in no unit; with `fixed` as it is when the advice is followed."""
    drawing = _Sketch()
    order = (Event.LOAD, Event.COPY, Event.ALLOCATE, Event.LAUNCH, None, Event.WAIT)
    items = sorted(loop.items, key=lambda item: (item.path, item.row))
    for event in order:
        if event is None:
            drawing.work()
        for item in (each for each in items if each.event is event):
            drawing.add(item.event, f"line {item.row}", is_gone=fixed and not item.stays, stays=item.stays)
    return drawing.lanes()


class _Sketch:
    """The CPU runs ahead of the GPU until something holds it up; lengths are such that they can be seen."""

    def __init__(self) -> None:
        self._host: list[Block] = []
        self._device: list[Block] = []
        self._now = 0.0
        self._free = 0.0  # when the GPU has done all that it was given

    def add(self, event: Event, label: str, *, is_gone: bool, stays: bool) -> None:
        """What a finding names, or what is left of it once it is mended."""
        match event:
            case Event.LOAD:
                self._hold(0.3 if is_gone else 4.0, "load", "" if is_gone else label, stays=stays)
            case Event.COPY:
                start = max(self._now, self._free)
                self._device.append(Block(start + 0.2, start + 1.2, "copy"))
                self._free = start + 1.2
                self._hold(0.2 if is_gone else self._free - self._now, "copy", "" if is_gone else label, stays=stays)
            case Event.WAIT if not is_gone:
                self._hold(max(self._free - self._now, 0.0) + 0.4, "wait", label, stays=stays)
                # The queue is empty: the GPU idles until more is launched.
                self._now += 0.8
            case Event.ALLOCATE if not is_gone:
                self._hold(0.6, "allocate", label, stays=stays)
            case Event.LAUNCH:
                for number in range(1 if is_gone else 8):
                    self._launch(0.25, 0.12 if not is_gone else 0.5, "" if number else label, stays=stays)
            case _:
                pass

    def work(self) -> None:
        """The forward and backward pass, and the optimizer's step: launched ahead, computed one after the other."""
        for number in range(4):
            self._launch(0.4, 1.6, "the step itself" if not number else "", kind="work")

    def lanes(self) -> Lanes:
        """What came of it."""
        return Lanes(max(self._now, self._free), tuple(self._host), tuple(self._device))

    def _hold(self, length: float, kind: str, label: str, *, stays: bool) -> None:
        self._host.append(Block(self._now, self._now + length, kind, label, stays))
        self._now += length

    def _launch(self, takes: float, runs: float, label: str, *, kind: str = "work", stays: bool = False) -> None:
        self._host.append(Block(self._now, self._now + takes - 0.08, "launch", label if kind != "work" else "", stays))
        self._now += takes
        start = max(self._now, self._free)
        self._device.append(Block(start, start + runs, "work"))
        self._free = start + runs


def timeline(before: Lanes, after: Lanes | None, title: str, *, is_to_scale: bool) -> str:
    """Both below each other on the same scale, with a legend of what occurs; a sketch has no times."""
    parts: list[str] = []
    top = 0.0
    drawn = [(name, lanes) for name, lanes in (("before", before), ("after", after)) if lanes is not None]
    scale = _SPAN / max(*(lanes.length for _, lanes in drawn), 1e-9)
    for name, lanes in drawn:
        length = f", {duration(lanes.length)}" if is_to_scale else ""
        parts.append(_text(0, top + 12, f"{name}{length}", "soft"))
        top += _HEAD
        for lane, blocks in (("CPU", lanes.host), ("GPU", lanes.device)):
            if blocks is not None:
                parts += _lane(lane, blocks, lanes.length, scale, top)
                top += _LANE + _GAP
        top += _BETWEEN
    name = escape(crop(title, 0, 500))
    kinds = {each.kind for _, lanes in drawn for each in (*lanes.host, *(lanes.device or ()))}
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="step" width="100%" height="{top - _BETWEEN:.0f}" role="img" '
        f'aria-label="{name}">{"".join(parts)}</svg>{_legend(kinds)}'
    )


def _lane(name: str, blocks: Sequence[Block], length: float, scale: float, top: float) -> Iterator[str]:
    yield _text(0, top + 14, name, "soft")
    yield _rect("lane", _LEFT, length * scale, top)
    shown = 0.0
    for block in sorted(blocks, key=lambda each: (each.start, -each.end)):
        x, size = _LEFT + block.start * scale, (block.end - block.start) * scale
        # Of blocks that are too thin to be seen apart, one stands for all.
        if size < _THINNEST and x < shown:
            continue
        shown = max(shown, x + max(size, _THINNEST))
        yield _rect(f"{block.kind} stays" if block.stays else block.kind, x, max(size, _THINNEST), top)
        if block.label and len(block.label) * _LETTER < size * _NARROW:
            yield _text(x + size / 2, top + 14, block.label, "soft" if block.stays else "on", "middle")


def _legend(kinds: Collection[str]) -> str:
    entries = (
        f'<span><svg xmlns="http://www.w3.org/2000/svg" class="step" width="10" height="10" aria-hidden="true">'
        f'<rect class="{kind}" width="10" height="10"/></svg> {escape(words)}</span>'
        for kind, words in _LEGEND
        if kind in kinds
    )
    return f'<p class="legend">{" ".join(entries)}</p>'


def _rect(look: str, x: float, size: float, top: float) -> str:
    return f'<rect class="{look}" x="{x:.2f}%" y="{top:.0f}" width="{size:.2f}%" height="{_LANE}"/>'


def _text(x: float, y: float, text: str, kind: str, anchor: str = "start") -> str:
    place = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{x:.2f}%" y="{y:.0f}" class="{kind}"{place}>{escape(crop(text, 0, 60))}</text>'


def _minus(spans: Sequence[tuple[float, float]], others: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """What of the spans lies in none of the others; both are in order and without overlaps."""
    found: list[tuple[float, float]] = []
    for start, end in spans:
        at = start
        for begun, ended in others:
            if ended <= at or begun >= end:
                continue
            if begun > at:
                found.append((at, begun))
            at = max(at, ended)
        if at < end:
            found.append((at, end))
    return found
