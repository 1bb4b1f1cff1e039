"""From events to costs: which line the host was at when it waited, copied or loaded, and when the device was idle.

The host's time is taken from what it called, the device's idle time from what ran there. A gap on the device goes to
the line that launched what ended it, but for the part in which the host waited, copied or loaded: that counts there.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from torchlint.report.measured import Certainty, Cost, Part, Step, Stretch, merged
from torchlint.traces.events import LOADS, NO_ID, STEPS, Events, Kind, Recording
from torchlint.traces.places import Function, Place, Places, simple_name

# By Kineto's names of the calls of the runtime and of the driver, without `cuda`, `cu` or `hip` before them.
_WAITS = frozenset(
    {"StreamSynchronize", "DeviceSynchronize", "EventSynchronize", "CtxSynchronize", "ThreadSynchronize"}
)
_ALLOCATES = frozenset({"Malloc", "Free", "HostAlloc", "MallocHost", "FreeHost", "MemAlloc", "MemFree", "HostMalloc"})
_LAUNCHES = (
    "LaunchKernel", "LaunchCooperativeKernel", "GraphLaunch", "ModuleLaunchKernel", "ExtModuleLaunchKernel",
    "ExtLaunchKernel", "MemsetAsync", "Memset",
)  # fmt: skip
_READS = frozenset({"aten::item", "aten::_local_scalar_dense", "aten::is_nonzero", "aten::nonzero", "aten::equal"})
# The calls below which another thread runs the backward pass, for the caller who waits.
_BACKWARD = frozenset({"backward", "run_backward", "_engine_run_backward", "grad"})
# What wraps a function hides its name: a call that no name fits is told by what it calls, so many calls further down.
_WRAPPERS = 6
# `.item()` is one call below the line, what formats a tensor two.
_NEAR = 2
# Parts of a drawn step; more cannot be seen.
_MOST_STRETCHES = 2_000


@dataclass(slots=True)
class Timeline:
    """What was found: costs by place, None for what no file of the run is known to do, then by the operation.

    Times are µs, `start` and `end` those of the trace. `steps` are when a step began and ended.
    """

    costs: dict[Place, Cost] = field(default_factory=dict)
    unplaced: dict[str, Cost] = field(default_factory=dict)
    start: float = 0.0
    end: float = 0.0
    busy: list[tuple[float, float]] = field(default_factory=list)
    has_device: bool = False
    steps: list[tuple[float, float]] = field(default_factory=list)
    step: Step | None = None


def timeline(recording: Recording, places: Places) -> Timeline:
    """Go through all threads and devices."""
    # Calls of the runtime are recorded with what they launch, if that was not lost.
    calls = any(Kind.RUNTIME in events.kinds for events in recording.hosts.values())
    found = Timeline(has_device=calls or bool(recording.on_device))
    walk = _Walk(recording, places, found)
    # First the threads that Python ran in, then those that worked for them.
    hosts = sorted(recording.hosts.values(), key=lambda events: -sum(kind == Kind.PYTHON for kind in events.kinds))
    for events in hosts:
        walk.thread(events)
    walk.idle()
    walk.choose_step()
    return found


class _Frame:
    """A function of the run while it runs: the site that it has come to, and how that is known."""

    __slots__ = ("after", "certainty", "function", "is_open", "site")

    def __init__(self, function: Function) -> None:
        self.function = function
        self.after = 0
        self.site: int | None = None
        self.certainty = Certainty.FUNCTION
        # Whether it has made a call that no name fits, so that what this one calls may tell.
        self.is_open = False

    def come_to(self, numbers: Sequence[int]) -> None:
        """It calls what one of these sites calls; none: nobody knows from where."""
        self.site = self.function.next_site(numbers, self.after) if numbers else None
        self.certainty = Certainty.CALL if len(numbers) == 1 else Certainty.ORDER
        self.is_open = not numbers
        if self.site is not None:
            self.after = self.site + 1


class _Open:
    """An event that is not over yet."""

    __slots__ = ("depth", "end", "frame", "is_counted", "is_frame", "operator", "reads", "stacked")

    def __init__(self, end: float, above: _Open | None) -> None:
        self.end = end
        # The innermost frame of the run around it, or itself, and how many events are between.
        self.frame: _Frame | None = above.frame if above is not None else None
        self.is_frame = False
        self.depth: int = 0 if above is None or above.is_frame else above.depth + 1
        # Where the innermost operator was called that carries its stack.
        self.stacked: Place | None = above.stacked if above is not None else None
        # The outermost operator around it, or itself; whether one around it reads a value; whether its time is counted.
        self.operator: str = above.operator if above is not None else ""
        self.reads: bool = above is not None and above.reads
        self.is_counted: bool = above is not None and above.is_counted


class _Blocks:
    """When the host was held up, by what and where, in the order in which it was."""

    def __init__(self) -> None:
        self.starts = array("d")
        self.ends = array("d")
        self.parts: list[Part] = []
        self.places: list[Place | None] = []

    def add(self, start: float, end: float, part: Part, place: Place | None) -> None:
        """Another one."""
        self.starts.append(start)
        self.ends.append(end)
        self.parts.append(part)
        self.places.append(place)

    def merged(self) -> list[tuple[float, float]]:
        """Without overlaps, in order; what computes is not held up."""
        held = (
            (start, end)
            for start, end, part in zip(self.starts, self.ends, self.parts, strict=True)
            if part is not Part.COMPUTE
        )
        return merged(held)


class _Walk:
    """What is known on the way through the threads."""

    def __init__(self, recording: Recording, places: Places, found: Timeline) -> None:
        self._recording = recording
        self._names = recording.names
        self._places = places
        self._found = found
        self._copied = self._copies()
        self._calls = [_call(name) for name in recording.names]
        self._has_frames = recording.has_frames
        # Who launched what, by correlation.
        self._launched: dict[int, tuple[Place | None, str]] = {}
        self._blocks = _Blocks()
        self._is_first = True
        # When a thread waited for a backward pass that others run, and where.
        self._backward: list[tuple[float, float, Place]] = []
        self._annotated: list[tuple[float, float]] = []
        # When the first thread called operators, but for those of a loader.
        self._ran = array("d")
        all_events = [*recording.hosts.values(), *recording.on_device.values()]
        found.start = min((min(events.starts) for events in all_events), default=0.0)
        found.end = max((max(events.ends) for events in all_events), default=0.0)

    def _copies(self) -> dict[int, tuple[str, float]]:
        """The direction and bytes of each copy on a device, by its correlation."""
        return {
            events.ids[number]: (self._names[events.names[number]], events.sizes[number])
            for events in self._recording.on_device.values()
            for number, kind in enumerate(events.kinds)
            if kind == Kind.COPY and events.ids[number] != NO_ID
        }

    # The host

    def thread(self, events: Events) -> None:
        """Go through what one thread did."""
        has_frames = Kind.PYTHON in events.kinds
        self._backward.sort(key=_start)
        stack: list[_Open] = []
        operation = 0  # how many outermost operators there were
        copied: tuple[int, Part] | None = None  # in which of them something was copied last, and what that was
        for number in events.in_order():
            start, end = events.starts[number], events.ends[number]
            kind, name = events.kinds[number], events.names[number]
            # What mostly lies behind the end of another is not within it, as an annotation in the call that makes it.
            while stack and (stack[-1].end <= start or end - stack[-1].end > stack[-1].end - start):
                stack.pop()
            opened = _Open(end, stack[-1] if stack else None)
            stack.append(opened)
            if kind == Kind.PYTHON or (kind == Kind.ANNOTATION and simple_name(self._names[name])):
                self._call(opened, name, start, end)
            if kind == Kind.PYTHON:
                continue
            is_outermost = not opened.operator
            if kind == Kind.OP and is_outermost:
                opened.operator, operation = self._names[name], operation + 1
            if opened.frame is not None and opened.depth == 0 and kind != Kind.ANNOTATION:
                opened.frame.come_to(self._places.sites_of_operator(opened.frame.function, name))
            if not self._has_frames and events.stacks[number] != NO_ID:
                opened.stacked = self._places.of_stack(events.stacks[number]) or opened.stacked
            place = self._place(opened, start, has_frames=has_frames)
            if opened.is_counted:
                continue
            by = opened.operator or self._names[name]
            if kind == Kind.RUNTIME:
                ended = copied[1] if copied is not None and copied[0] == operation else None
                if (part := self._runtime(events, number, place, by, ended)) is not None:
                    copied = operation, part
            elif kind == Kind.ANNOTATION:
                opened.is_counted = self._annotation(name, start, end, place)
                opened.depth -= 1  # it is no call
            else:
                if is_outermost and self._is_first:
                    self._ran.append(start)
                if is_outermost and not self._found.has_device:
                    self._block(Part.COMPUTE, start, end, place, by)
                if not opened.reads and self._names[name] in _READS:
                    opened.reads = True
                    # What a library reads deeper down is its own: an optimizer the steps that it counts, on the CPU.
                    if opened.frame is None or opened.depth <= _NEAR:
                        self._cost(place, by).reads += 1
        self._is_first = False

    def _call(self, opened: _Open, name: int, start: float, end: float) -> None:
        """Python calls something: a function of the run, or what a function of the run calls."""
        frame = opened.frame
        if frame is not None and (opened.depth == 0 or (frame.is_open and opened.depth <= _WRAPPERS)):
            numbers = self._places.sites(frame.function, name, is_direct=opened.depth == 0)
            if opened.depth == 0 or numbers:
                frame.come_to(numbers)
            if simple_name(self._names[name]) in _BACKWARD:
                self._backward.append((start, end, self._places.place(frame.function, frame.site, frame.certainty)))
        function = self._places.function(name)
        if function is not None:
            opened.frame, opened.is_frame = _Frame(function), True

    def _place(self, opened: _Open, start: float, *, has_frames: bool) -> Place | None:
        frame = opened.frame
        if frame is not None:
            return self._places.place(frame.function, frame.site, frame.certainty)
        if has_frames or opened.stacked is not None:
            return opened.stacked
        # A thread without Python: what it does in a backward pass is for the line that started it.
        if not self._has_frames:
            return self._places.only("backward") if _is_of_backward(opened.operator) else None
        last = bisect_right(self._backward, start, key=_start)
        around = (self._backward[index] for index in range(last - 1, max(last - 1 - _WRAPPERS, -1), -1))
        return next((place for begun, ended, place in around if begun <= start <= ended), None)

    def _runtime(self, events: Events, number: int, place: Place | None, by: str, copied: Part | None) -> Part | None:
        """A call of the runtime; what it is if it copies. `copied` is what was copied in this operator before."""
        start, end, call = events.starts[number], events.ends[number], self._calls[events.names[number]]
        if call in _WAITS:
            # A copy of pageable memory ends by waiting for it: `cudaMemcpyAsync`, then `cudaStreamSynchronize`.
            self._block(copied or Part.WAIT, start, end, place, by, count=0 if copied else 1)
        elif call.startswith("Memcpy"):
            direction, size = self._copied.get(events.ids[number], ("", 0.0))
            self._launched[events.ids[number]] = place, by
            self._cost(place, by).bytes += size
            if "DtoD" in direction or "PtoP" in direction:
                self._cost(place, by).launches += 1
            else:
                part = Part.WAIT if "DtoH" in direction else Part.COPY
                self._block(part, start, end, place, by)
                return part
        elif call.startswith(_LAUNCHES):
            self._launched[events.ids[number]] = place, by
            self._cost(place, by).launches += 1
        elif call in _ALLOCATES:
            self._block(Part.ALLOCATE, start, end, place, by)
        return None

    def _annotation(self, name: int, start: float, end: float, place: Place | None) -> bool:
        """What the program or PyTorch says that it does; whether all that is within it is counted by that."""
        text = self._names[name]
        if text.startswith(STEPS):
            self._annotated.append((start, end))
        if not text.startswith(LOADS):
            return False
        self._block(Part.LOAD, start, end, place, "DataLoader")
        return True

    def _block(self, part: Part, start: float, end: float, place: Place | None, by: str, *, count: int = 1) -> None:
        self._cost(place, by).add(part, end - start, count)
        if self._is_first or part is not Part.COMPUTE:
            self._blocks.add(start, end, part, place)

    def _cost(self, place: Place | None, by: str) -> Cost:
        if place is None:
            return self._found.unplaced.setdefault(by, Cost())
        return self._found.costs.setdefault(place, Cost())

    # The device

    def idle(self) -> None:
        """What keeps the busiest device waiting, and when it is busy."""
        if not self._recording.on_device:
            return
        events = max(self._recording.on_device.values(), key=len)
        held = self._blocks.merged()
        starts = [start for start, _ in held]
        busy: list[tuple[float, float]] = []
        for number in events.in_order():
            start, end = events.starts[number], events.ends[number]
            if busy and start > busy[-1][1]:
                lost = start - busy[-1][1] - _overlap(held, starts, busy[-1][1], start)
                launched = self._launched.get(events.ids[number])
                if lost > 0 and launched is not None:
                    self._cost(*launched).add(Part.IDLE, lost)
            if busy and start <= busy[-1][1]:
                busy[-1] = busy[-1][0], max(end, busy[-1][1])
            else:
                busy.append((start, end))
        self._found.busy = busy

    # A step

    def choose_step(self) -> None:
        """The steps, as the profiler was told of them or from one batch to the next, and one of median length."""
        found = self._found
        found.steps = sorted(self._annotated) or self._turns()
        if not found.steps:
            return
        by_length = sorted(found.steps, key=lambda step: step[1] - step[0])
        start, end = by_length[len(by_length) // 2]
        blocks = zip(self._blocks.starts, self._blocks.ends, self._blocks.parts, self._blocks.places, strict=True)
        stretches = [
            Stretch(*_within(begun, ended, start, end), part, (place.path, place.row) if place else None)
            for begun, ended, part, place in blocks
            if begun < end and ended > start
        ]
        longest = sorted(stretches, key=lambda stretch: stretch.start - stretch.end)[:_MOST_STRETCHES]
        device = [_within(*span, start, end) for span in found.busy if span[0] < end and span[1] > start]
        found.step = Step(end - start, tuple(sorted(longest, key=_stretch_start)), tuple(device))

    def _turns(self) -> list[tuple[float, float]]:
        """From the begin of one batch to the begin of the next, in the loop that takes most of them.

        After the last batch the loader is asked once more: nothing runs then.
        """
        loads: dict[Place | None, list[float]] = {}
        for start, part, place in zip(self._blocks.starts, self._blocks.parts, self._blocks.places, strict=True):
            if part is Part.LOAD:
                loads.setdefault(place, []).append(start)
        most = max(loads.values(), key=len, default=[])
        turns = pairwise([*sorted(most), self._found.end])
        return [turn for turn in turns if bisect_right(self._ran, turn[0]) < bisect_right(self._ran, turn[1])]


def _is_of_backward(operator: str) -> bool:
    """Whether it is a node of autograd's graph: `autograd::engine::…`, `MmBackward`, `AddmmBackward0`."""
    return operator.startswith(("autograd::", "torch::autograd::")) or operator.rstrip("0123456789").endswith(
        "Backward"
    )


def _start(backward: tuple[float, float, Place]) -> float:
    return backward[0]


def _within(begun: float, ended: float, start: float, end: float) -> tuple[float, float]:
    """From and to of what lies in a time, from the start of that."""
    return max(begun, start) - start, min(ended, end) - start


def _stretch_start(stretch: Stretch) -> float:
    return stretch.start


def _call(name: str) -> str:
    """A call of the runtime without the name of the runtime."""
    for runtime in ("cuda", "hip", "cu"):
        if name.startswith(runtime):
            return name[len(runtime) :].partition("_v")[0]
    return ""


def _overlap(held: Sequence[tuple[float, float]], starts: Sequence[float], start: float, end: float) -> float:
    """How much of a time lies in spans that are in order."""
    index = max(bisect_right(starts, start) - 1, 0)
    total = 0.0
    while index < len(held) and held[index][0] < end:
        total += max(0.0, min(end, held[index][1]) - max(start, held[index][0]))
        index += 1
    return total
