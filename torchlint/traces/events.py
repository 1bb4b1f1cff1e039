"""The events of a torch.profiler trace, read as they come, in bounded memory and time.

The format is the one that Kineto writes (libkineto/src/output_json.cpp), Chrome's trace events in JSON: complete events
(`"ph": "X"`) with `ts` and `dur` in µs; what runs on a device has the `correlation` of the call that launched it.
A trace is somebody else's text: what is not as it should be is left out, and what is too much ends the reading.
"""

from __future__ import annotations

import codecs
import gzip
import json
import math
import re
import zlib
from array import array
from dataclasses import dataclass, field
from enum import IntEnum
from pathlib import Path
from typing import Any, BinaryIO

from torchlint import regular
from torchlint.configfile import reason

MOST_BYTES = 4_000_000_000
"""Of text, after decompression."""
MOST_EVENTS = 4_000_000
"""Events that are kept, at some 100 bytes each while they are sorted."""

_CHUNK = 1 << 20
_LONGEST_VALUE = 8 << 20  # an event of Kineto takes some hundred bytes, with shapes and stacks some thousand
_MOST_NAMES = 64 << 20  # characters of all names that differ
_LONGEST_NAME = 1_000
_LONGEST_STACK = 20_000
_MOST_THREADS = 10_000
# Real traces compress 10 to 40 times; what does so 300 times and more holds nothing.
_MOST_RATIO = 300
_UNSUSPECTED = 64 << 20
_LATEST = 1e18  # µs; `ts` counts from some start of the machine, or from 1970


class TraceError(Exception):
    """A file that is no trace, or too much of one; the message says what, where and what to do in one line."""


class Kind(IntEnum):
    """What an event is, of the categories that matter here."""

    OP = 0
    PYTHON = 1
    ANNOTATION = 2
    RUNTIME = 3
    KERNEL = 4
    COPY = 5
    FILL = 6

    @property
    def is_of_device(self) -> bool:
        """Whether it ran on the device."""
        return self >= Kind.KERNEL


# By category in lower case; `operator` and `runtime` are those of torch before 1.12.
_KINDS = {
    "cpu_op": Kind.OP,
    "operator": Kind.OP,
    "python_function": Kind.PYTHON,
    "user_annotation": Kind.ANNOTATION,
    "cuda_runtime": Kind.RUNTIME,
    "cuda_driver": Kind.RUNTIME,
    "runtime": Kind.RUNTIME,
    "xpu_runtime": Kind.RUNTIME,
    "kernel": Kind.KERNEL,
    "gpu_memcpy": Kind.COPY,
    "memcpy": Kind.COPY,
    "gpu_memset": Kind.FILL,
    "memset": Kind.FILL,
}
NO_ID = -1
LOADS, STEPS = "enumerate(DataLoader)#", "ProfilerStep#"
_ANNOTATES = (LOADS, STEPS, "Optimizer.step#", "Optimizer.zero_grad#")


class Events:
    """Events of one thread or device, in columns: `starts` and `ends` in µs, and their names by number.

    `ids` are correlations, `stacks` the numbers of the texts of their stacks, `NO_ID` for none; `sizes` are bytes that
    were copied.
    """

    __slots__ = ("ends", "ids", "kinds", "names", "sizes", "stacks", "starts")

    def __init__(self) -> None:
        self.starts = array("d")
        self.ends = array("d")
        self.names = array("l")
        self.kinds = array("b")
        self.ids = array("q")
        self.stacks = array("l")
        self.sizes = array("d")

    def __len__(self) -> int:
        return len(self.starts)

    def in_order(self) -> list[int]:
        """The numbers of the events by their start; of those that start together what holds the others first."""
        order = sorted(range(len(self.starts)), key=self.ends.__getitem__, reverse=True)
        order.sort(key=self.starts.__getitem__)
        return order


@dataclass(slots=True)
class Recording:
    """What a trace holds: events by thread of the host and by device, the names that their numbers stand for.

    `devices` are the names of the devices, as the trace has them. `skipped` counts events whose times are none.
    """

    names: list[str] = field(default_factory=list)
    hosts: dict[tuple[object, object], Events] = field(default_factory=dict)
    on_device: dict[object, Events] = field(default_factory=dict)
    devices: tuple[str, ...] = ()
    skipped: int = 0

    @property
    def has_frames(self) -> bool:
        """Whether Python's calls are among the events, as `with_stack=True` records them."""
        return any(Kind.PYTHON in events.kinds for events in self.hosts.values())

    @property
    def has_stacks(self) -> bool:
        """Whether events carry their stacks."""
        return any(stack != NO_ID for events in self.hosts.values() for stack in events.stacks)


def read(path: Path, shown: str) -> Recording:
    """The events of a trace, plain or compressed with gzip. Raises `TraceError`, its message beginning with `shown`."""
    try:
        with regular.opened(path) as file:
            reader = _Reader(_Text(file, shown), shown)
            return reader.read()
    except OSError as error:
        if isinstance(error, gzip.BadGzipFile):
            raise TraceError(f"{shown}: the compressed file is damaged; {_AGAIN}") from None
        raise TraceError(f"{shown}: {reason(error)}") from None


_FEWER = "record fewer steps, by the `schedule` of the profiler"
_AGAIN = "give the file that `export_chrome_trace` of torch.profiler wrote"


class _Text:
    """The text of a file as far as it was read, and where in it the reader is."""

    def __init__(self, file: BinaryIO, shown: str) -> None:
        self.buffer = ""
        self.at = 0
        self.is_at_end = False
        self._shown = shown
        self._raw = file
        self._taken = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        is_packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        self._file: BinaryIO | gzip.GzipFile = gzip.GzipFile(fileobj=file) if is_packed else file
        self._is_packed = is_packed

    def more(self) -> bool:
        """Read another part; whether there was one. Raises `TraceError`."""
        if self.is_at_end:
            return False
        try:
            data = self._file.read(_CHUNK)
        except (EOFError, zlib.error):
            raise TraceError(f"{self._shown}: the compressed file is damaged or cut off; {_AGAIN}") from None
        self._taken += len(data)
        is_bomb = self._is_packed and self._taken > max(_UNSUSPECTED, _MOST_RATIO * self._raw.tell())
        if self._taken > MOST_BYTES or is_bomb:
            raise TraceError(f"{self._shown}: more text than torchlint reads of a trace; {_FEWER}")
        self.is_at_end = not data
        if self.at > _CHUNK:
            self.buffer, self.at = self.buffer[self.at :], 0
        self.buffer += self._decoder.decode(data, final=self.is_at_end)
        return not self.is_at_end

    def peek(self) -> str:
        """The next character that is no blank; empty at the end."""
        while True:
            match = _BLANKS.match(self.buffer, self.at)
            self.at = match.end() if match else self.at
            if self.at < len(self.buffer):
                return self.buffer[self.at]
            self.buffer, self.at = "", 0
            if not self.more() and not self.buffer:
                return ""


_BLANKS = re.compile(r"[ \t\r\n]*")


class _Reader:
    """What takes a text apart."""

    def __init__(self, text: _Text, shown: str) -> None:
        self._text = text
        self._shown = shown
        self._found = Recording()
        self._numbers: dict[str, int] = {}
        self._characters = 0
        self._kept = 0
        self._seen = 0
        decoder = json.JSONDecoder(parse_int=float, parse_constant=_nothing)
        self._decode = decoder.raw_decode

    def read(self) -> Recording:
        """All of it."""
        match self._text.peek():
            case "[":  # Chrome's format allows the events alone
                self._events()
            case "{":
                self._object()
            case _:
                raise TraceError(f"{self._shown}: not the JSON of a trace; {_AGAIN}")
        if not self._kept:
            raise TraceError(f"{self._shown}: no events of torch.profiler in it; {_AGAIN}")
        return self._found

    def _object(self) -> None:
        text = self._text
        text.at += 1
        while text.peek() != "}":
            key = self._value()
            if text.peek() != ":" or not isinstance(key, str):
                raise self._malformed()
            text.at += 1
            if key == "traceEvents" and text.peek() == "[":
                self._events()
            else:
                self._note(key, self._value())
            if text.peek() == ",":
                text.at += 1
            elif text.peek() != "}":
                raise self._malformed()

    def _events(self) -> None:
        text = self._text
        text.at += 1
        while text.peek() != "]":
            event = self._value()
            self._seen += 1
            if isinstance(event, dict):
                self._keep(event)
            if text.peek() == ",":
                text.at += 1
            elif text.peek() != "]":
                raise self._malformed()
        text.at += 1

    def _value(self) -> Any:  # noqa: ANN401 - what JSON holds
        """The next value, once all of it is read. Raises `TraceError`."""
        text = self._text
        if not text.peek():
            raise self._malformed()
        while True:
            try:
                value, end = self._decode(text.buffer, text.at)
            except RecursionError:
                raise self._malformed() from None
            except ValueError:
                end = None
            # What ends with what was read may go on, as a number does.
            if end is not None and (end < len(text.buffer) or text.is_at_end):
                text.at = end
                return value
            is_too_long = len(text.buffer) - text.at > _LONGEST_VALUE
            if is_too_long or not (text.more() or end is not None):
                raise self._malformed()

    def _malformed(self) -> TraceError:
        where = f"behind event {self._seen:,}" if self._seen else "at its beginning"
        if self._text.is_at_end and self._text.at >= len(self._text.buffer) - _LONGEST_VALUE:
            return TraceError(f"{self._shown}: the trace is damaged or cut off {where}; record it again")
        return TraceError(f"{self._shown}: the trace is damaged {where}, or holds a value of more than 8 MB; {_AGAIN}")

    def _note(self, key: str, value: object) -> None:
        if key == "deviceProperties" and isinstance(value, list):
            names = [each.get("name") for each in value[:_MOST_DEVICES] if isinstance(each, dict)]
            self._found.devices = tuple(name[:_LONGEST_DEVICE] for name in names if isinstance(name, str) and name)

    def _keep(self, event: dict[str, Any]) -> None:
        category = event.get("cat")
        kind = _KINDS.get(category.lower()) if isinstance(category, str) else None
        name = event.get("name")
        if event.get("ph") != "X" or kind is None or not isinstance(name, str):
            return
        if kind is Kind.OP and name.startswith(_ANNOTATES):  # as before torch 1.12
            kind = Kind.ANNOTATION
        start, length = _number(event.get("ts")), _number(event.get("dur", 0.0))
        if start is None or length is None or length < 0:
            self._found.skipped += 1
            return
        args = event.get("args")
        args = args if isinstance(args, dict) else {}
        events = self._of(kind, event, args)
        if events is None:
            self._found.skipped += 1
            return
        self._kept += 1
        if self._kept > MOST_EVENTS:
            raise TraceError(f"{self._shown}: more than {MOST_EVENTS:,} events; {_FEWER}")
        stack = args.get("Call stack")
        has_stack = isinstance(stack, str) and bool(stack) and not kind.is_of_device
        name = name[:_LONGEST_NAME]
        events.starts.append(start)
        events.ends.append(start + length)
        events.names.append(self._numbered(_plain(name) if kind is Kind.PYTHON else name))
        events.kinds.append(kind)
        events.ids.append(_whole(args.get("correlation")))
        events.stacks.append(self._numbered(str(stack)[:_LONGEST_STACK]) if has_stack else NO_ID)
        events.sizes.append(_number(args.get("bytes")) or 0.0 if kind is Kind.COPY else 0.0)

    def _of(self, kind: Kind, event: dict[str, Any], args: dict[str, Any]) -> Events | None:
        """The events among which this one belongs; None where it says of no thread or device that it is of."""
        found = self._found
        if kind.is_of_device:
            device = args.get("device", event.get("pid"))
            if not isinstance(device, (str, float)) or len(found.on_device) > _MOST_DEVICES:
                return None
            return found.on_device.setdefault(device, Events())
        thread = event.get("pid"), event.get("tid")
        if not all(isinstance(part, (str, float)) for part in thread) or len(found.hosts) > _MOST_THREADS:
            return None
        return found.hosts.setdefault(thread, Events())

    def _numbered(self, name: str) -> int:
        number = self._numbers.get(name)
        if number is None:
            self._characters += len(name)
            if self._characters > _MOST_NAMES:
                raise TraceError(f"{self._shown}: more names than torchlint keeps of a trace; {_FEWER}")
            number = self._numbers[name] = len(self._found.names)
            self._found.names.append(name)
        return number


_MOST_DEVICES = 64
_LONGEST_DEVICE = 80


def _nothing(constant: str) -> None:
    """NaN and the infinities, which JSON does not have, are no numbers here."""
    del constant


def _number(value: object) -> float | None:
    """A number that can be a time or a size; None for anything else."""
    return value if isinstance(value, float) and math.isfinite(value) and abs(value) < _LATEST else None


def _whole(value: object) -> int:
    number = _number(value)
    return int(number) if number is not None and number >= 0 else NO_ID


def _plain(name: str) -> str:
    """The name of a Python call without the address of its object, which is another one each time."""
    return _ADDRESS.sub("", name) if "0x" in name else name


_ADDRESS = re.compile(r"(?: object)? at 0x[0-9a-fA-F]+")
