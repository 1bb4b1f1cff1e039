"""One arm inside its process, and the commands it understands: each is a task that runs the code by yielding."""

from __future__ import annotations

import contextlib
import gc
import io
import os
import sys
from collections.abc import Generator

# Bound before any measured code runs, which may patch the module's.
from time import perf_counter_ns, process_time_ns, sleep, thread_time_ns
from typing import Any

import torch

from torchlint.verify.inside import devices, entries
from torchlint.verify.inside.capture import Capture
from torchlint.verify.inside.channel import Channel
from torchlint.verify.inside.coverage import watched
from torchlint.verify.inside.devices import Count, Device
from torchlint.verify.inside.entries import Entry, Script
from torchlint.verify.inside.pace import Ended, Handler, Pace, Task
from torchlint.verify.inside.randomness import DrawOnCpu, DrawSingle, WaitForCopies, drawing_on_cpu, seed_everything
from torchlint.verify.inside.scaling import nudge, scale, shifted
from torchlint.verify.inside.statemap import adopt, keep

_MOST_INNER = 1 << 20
_STEADY = 3
_SPREAD = 1.05
_MOST_WARM = 10
_LOOK_S = 0.005
_RISE = 1.02
_RISING_NS = 100_000_000  # by how much a clock that rises has risen then
_RISEN_NS = 2_000_000_000
_MOVED = 0.99  # downwards: what has to stay below a bound stays there


class Arm:
    """The code of one version, set up and run as far as the controller asks."""

    def __init__(self, channel: Channel, config: dict[str, Any], held: list[str], stack: contextlib.ExitStack) -> None:
        torch.set_num_threads(config["threads"])
        self._first: Count | None = None
        self._reran = 0  # the steps of a program that ended within a row
        self._config = config
        self._stack = stack
        self._once = stack.enter_context(contextlib.ExitStack())  # what holds until the next start
        self._device: Device = devices.open_device(config["device"], stack)
        commands: dict[str, Handler] = {
            "identify": lambda _: self._identity(),
            "start": self._start,
            "state": self._state,
            "calibrate": self._calibrate,
            "warm": self._warm,
            "block": self._block,
            "memory": self._memory,
            "count": self._count,
            "check": self._check,
            "moved": self._moved,
            "clock": self._clock,
            "work": self._work,
            "room": self._room,
        }
        self._pace = Pace(channel, commands)
        if config.get("watch"):
            lines = {os.path.join(config["root"], path): rows for path, rows in config["watch"].items()}  # noqa: PTH118
            stack.enter_context(watched(lines, config["record"]))
        seed_everything(config["seed"])  # the import of the code may draw random numbers too
        self._entry = self._opened()
        # As the code has set them where it is loaded: that is part of what is measured.
        self._dtype, self._determinism = torch.get_default_dtype(), torch.get_deterministic_debug_mode()
        channel.reply(ok=True, isolation=held)

    def serve(self) -> None:
        """Run the code as far as the controller wants. Ends by `Closed`."""
        self._entry.drive(self._pace)

    def _identity(self) -> dict[str, Any]:
        """What the device is, versions, switches, settings. Asked after the set-up: it makes the driver start."""
        machine = {
            "cpu": devices.processor(),
            "settings": self._device.settings(),
            "environment": devices.environment(),
            "build": torch.__config__.show(),
        }
        device = self._device.identity() | {"type": self._device.type}
        return {"device": device, "software": devices.software(), "machine": machine}

    def _opened(self) -> Entry | Script:
        entry = self._config["entry"]
        match entry["kind"]:
            case "workload":
                return entries.workload(
                    os.path.join(self._config["root"], entry["file"]),  # noqa: PTH118 - strings from JSON
                    self._device.target,
                    entry["size"],
                )
            case "function":
                return entries.function(entry["name"], self._config["root"])
            case _:
                from torchlint.verify.inside.stepclock import clock  # hooks into torch: only where it is asked for

                return entries.Script(entry["file"], entry["arguments"], lambda pace: clock(pace, entry["clock"]))

    def _start(self, message: dict[str, Any]) -> Task:
        """Set the code up from a seed, up to its first unit of work.

        `deterministic` is `error` or `warn`: what an operation does that cannot be repeated. `full_float32` keeps TF32
        out of cuDNN. `nudge` moves the parameters by a unit in the last place. `wait` waits for each copy. What the
        device is comes back as well. A program's first step belongs to it; `count` keeps what it asks of the device for
        the command `count`.
        """
        self._once.close()
        torch.set_default_dtype(torch.float64 if message.get("double") else self._dtype)
        # As `use_deterministic_algorithms(..., warn_only=True)`, which loads the compiler too.
        torch.set_deterministic_debug_mode(message.get("deterministic", self._determinism))
        if message.get("host_random") and drawing_on_cpu() is None:
            self._stack.enter_context(DrawOnCpu({"cuda", self._device.target} - {"cpu"}))
        if message.get("shift"):
            self._once.enter_context(shifted(message["shift"]))
        if message.get("double"):
            self._once.enter_context(DrawSingle())
        if message.get("wait"):
            self._once.enter_context(WaitForCopies(self._device.sync))
        seed_everything(message["seed"])
        strictly = devices.full_float32 if message.get("full_float32") else contextlib.nullcontext
        with strictly(), self._device.counting() if message.get("count") else contextlib.nullcontext() as self._first:
            yield
        self._once.enter_context(strictly())  # also where the code has set it otherwise: its timed runs keep that
        if message.get("state"):
            adopt(self._entry.state, message["state"], message["dropped"], message["free"])
        scaled = scale(self._entry.state, message["scale"]) if message.get("scale") else 0
        if message.get("nudge"):
            nudge(self._entry.state, message["nudge"])
        self._device.sync()
        seed_everything(message["seed"] + 1)  # what set-up drew does not shift what the run draws
        return {"scaled": scaled, "workers": loading(), **self._identity()}

    def _state(self, message: dict[str, Any]) -> dict[str, Any]:
        """Write the parameters and buffers of the modules that the state holds."""
        keep(self._entry.state, message["file"])
        return {}

    def _calibrate(self, message: dict[str, Any]) -> Task:
        """How many units make a sample of at least `min_ns` nanoseconds, after `warm` units; and how long one takes.

        `first_ns` is how long the first of these took, in which code may compile. A device that was idle has brought
        its clock up before.
        """
        self._device.sync()
        begin = perf_counter_ns()
        first = 0
        for _ in range(message["warm"]):
            yield from self._units(1)
            if not first:
                self._device.sync()
                first = perf_counter_ns() - begin
        yield from self._risen()
        inner = 1
        while True:
            self._device.sync()
            cpu = process_time_ns()
            begin = perf_counter_ns()
            if not (yield from self._units(inner)):
                continue
            self._device.sync()
            taken = max(perf_counter_ns() - begin, 1)
            if taken >= message["min_ns"] or inner >= _MOST_INNER:
                spent = process_time_ns() - cpu
                return {"inner": inner, "ns": taken / inner, "cpu_ns": spent / inner, "first_ns": first}
            inner = max(inner + 1, min(inner * 10, int(inner * message["min_ns"] * 1.2 / taken)))

    def _warm(self, message: dict[str, Any]) -> Task:
        """Run blocks of `inner` units until three in a row take about as long, ten were run, or `most_ns` have passed.

        One unit runs before them, in which code may compile or choose its algorithms: `first_ns` is how long that took.
        Neither it nor the first block is part of `most_ns`, and three blocks are run in any case, since graphs are
        recorded in the second and third call. Units run on as long as the clock of the device rises, since other work
        would find it higher. `workers` is the number of loader processes that load ahead from unit to
        unit.
        """
        times: list[int] = []
        gc.collect()  # what set-up has left is no unit's
        self._device.sync()
        begin = perf_counter_ns()
        yield from self._units(1)
        self._device.sync()
        first = perf_counter_ns() - begin
        while True:
            begin = perf_counter_ns()
            if not (yield from self._units(message["inner"])):
                continue
            self._device.sync()
            times.append(perf_counter_ns() - begin)
            last = times[-_STEADY:]
            steady = len(last) == _STEADY and max(last) <= _SPREAD * min(last)
            over = len(times) >= _STEADY and sum(times[1:]) >= message["most_ns"]
            if steady or over or len(times) == _MOST_WARM:
                yield from self._risen()
                return {"blocks": len(times), "workers": loading(), "first_ns": first}

    def _units(self, count: int, warm: int = 0) -> Generator[None, Any, bool]:
        """Run so many units in a row. False where the program began again; `Ended` the second time in one row."""
        for _ in range(count):
            if not (yield from self._unit(count + warm)):
                return False
        self._reran = 0
        return True

    def _unit(self, wanted: int) -> Generator[None, Any, bool]:
        try:
            yield
        except Ended as ended:
            if self._reran:
                raise Ended(self._reran, wanted, ended.fails) from None
            self._reran = ended.steps
            yield from self._unit(wanted)
            return False
        return True

    def _risen(self) -> Generator[None, Any, None]:
        """Run units until the clock of the device, if it has one, rises no more, or two seconds have passed."""
        begin = now = perf_counter_ns()
        before = self._device.clock()
        while before is not None and now - begin < _RISEN_NS:
            until = now + _RISING_NS
            while now < until:
                yield from self._units(1)
                self._device.sync()
                now = perf_counter_ns()
            clock = self._device.clock()
            if clock is None or clock <= _RISE * before:
                return
            before = clock

    def _block(self, message: dict[str, Any]) -> Task:
        """Samples of `inner` units each: nanoseconds a unit by the wall and of CPU time, and how often it lost the CPU.

        A handicap of so many nanoseconds a unit is spun away by the wall's clock, or by the CPU's with
        `handicap_cpu`. `busy` is the share of a CPU that the process uses while it should be idle.
        """
        inner = message["inner"]
        clock = thread_time_ns if message.get("handicap_cpu") else perf_counter_ns
        handicap = int(message.get("handicap_ns", 0) * inner)
        samples: list[list[float]] = []
        whole = False
        while len(samples) < message["samples"]:
            if not whole:
                reran = self._reran  # the row is not whole yet
                whole = yield from self._units(message["warm"])
                self._reran = reran or self._reran
                self._device.sync()
                continue
            lost = _switches()
            cpu = process_time_ns()
            begin = perf_counter_ns()
            whole = yield from self._units(inner, message["warm"])
            if not whole:
                continue
            self._device.sync()
            if handicap:
                until = clock() + handicap
                while clock() < until:
                    pass
            wall = perf_counter_ns() - begin
            samples.append([wall / inner, (process_time_ns() - cpu) / inner, _switches() - lost])
        cpu, begin = process_time_ns(), perf_counter_ns()
        sleep(_LOOK_S)
        return {"samples": samples, "busy": (process_time_ns() - cpu) / (perf_counter_ns() - begin)}

    def _memory(self, message: dict[str, Any]) -> Task:
        """Peak bytes of `units` units above what is held before them."""
        yield
        gc.collect()
        self._device.sync()
        held = self._device.live()
        self._device.reset_peak()
        for _ in range(message["units"]):
            yield
        self._device.sync()
        return {"peak": self._device.peak() - held, "held": held}

    def _count(self, message: dict[str, Any]) -> Task:
        """What `units` units ask of the device, in all, and on which lines; of a program, all until its end.

        `peak` is the most bytes held meanwhile; `doubt` is why the counts cannot be right, empty if they can. Of a
        program that has ended, its first step is one of the units if `start` has counted it; `earlier` are all lines
        that it was counted on.
        """
        for _ in range(message.get("warm", 1)):
            yield
        done = 0
        ended = None
        self._device.sync()
        self._device.reset_peak()
        with self._device.counting() as count:
            try:
                while message["units"] is None or done < message["units"]:
                    yield
                    done += 1
            except Ended as error:
                ended = error
        if ended is not None and not done:
            raise ended
        if ended is not None and self._first is not None:
            count.add_recurring(self._first)
            done += 1
        return {
            "units": done,
            "ended": ended is not None,
            "counts": count.totals,
            "doubt": count.doubt,
            "sites": count.sites,
            "earlier": self._first.sites if self._first is not None and not count.doubt else [],
            "peak": self._device.peak(),
            "busy_ns": count.busy_ns,
        }

    def _work(self, message: dict[str, Any]) -> Task:
        """The floating point operations of products, convolutions and attention in a unit, counted by shapes.

        `fetched` are the bytes that it has to read from the memory of the device.
        """
        from torch.utils.flop_counter import FlopCounterMode  # only where it is asked for: it takes a second to load

        from torchlint.verify.inside.traffic import Traffic

        del message
        with FlopCounterMode(display=False) as counter, Traffic() as traffic:
            yield
        return {"flop": int(counter.get_total_flops()), "fetched": traffic.fetched}

    def _check(self, message: dict[str, Any]) -> Task:
        """Capture the outputs of `steps` units and the state behind them; with `to_end` also those of the last unit."""
        capture = Capture()
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed) if message.get("stdout") else contextlib.nullcontext():
            for index in range(message["steps"]):
                outputs = yield
                capture.add(outputs, inputs=self._entry.state, name=f"step{index}")
            if message.get("to_end"):
                with contextlib.suppress(Ended):
                    while True:
                        outputs = yield
                capture.add(outputs, inputs=self._entry.state, name="last")
        capture.stdout = printed.getvalue() if message.get("stdout") else None
        capture.save(message["file"])
        return {}

    def _moved(self, message: dict[str, Any]) -> Task:
        """Capture one more unit after all numbers of the state were moved; `moved` is how many tensors were.

        It tells code that computes from code that remembers.
        """
        moved = scale(self._entry.state, _MOVED, everything=True)
        if moved:
            capture = Capture()
            outputs = yield
            capture.add(outputs, inputs=self._entry.state, name="moved")
            capture.save(message["file"])
        return {"moved": moved}

    def _room(self, message: dict[str, Any]) -> dict[str, Any]:
        """The bytes that this process takes of the device, and those that there are for all; None if nobody counts."""
        del message
        need, there = self._device.room() or (None, None)
        return {"need": need, "there": there}

    def _clock(self, message: dict[str, Any]) -> dict[str, Any]:
        """The clock of the device in MHz, and what holds it back."""
        del message
        return {"mhz": self._device.clock(), "state": self._device.state()}


def loading() -> int:
    """How many processes a `DataLoader` uses that is in the middle of its data: the most of any, 0 if there is none.

    Such a loader works ahead while the code is between two units. One that begins again in each unit does not.
    """
    module: Any = sys.modules.get("torch.utils.data.dataloader")
    kind = getattr(module, "_MultiProcessingDataLoaderIter", None)
    if kind is None:
        return 0
    # `type`, and not `isinstance`, which would ask objects of the measured code for their `__class__`.
    alive = [each for each in gc.get_objects() if issubclass(type(each), kind)]
    under_way = [each for each in alive if getattr(each, "_tasks_outstanding", 1) > 0]
    return max((int(getattr(each, "_num_workers", 0)) for each in under_way), default=0)


def _switches() -> int:
    """How often this process lost the CPU to another one."""
    try:
        import resource
    except ImportError:  # Windows
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
