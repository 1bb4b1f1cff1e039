"""What the machine offers to measure on, and what to say where it does not offer what is asked for."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torchlint.verify.arms import ON_CPU
from torchlint.verify.process import ArmError, Worker

SIMULATED = "Simulated CUDA device"
"""The name of the device that `sim` is, as `Sim.identity` gives it."""

_IMPORT_S = 300.0
_COMPARE_S = 600.0


class UsageError(ValueError):
    """What was asked for does not exist or does not fit together; one line."""


class CannotRunError(Exception):
    """The run cannot take place: what, why, and what can be done instead."""


class UnfitError(Exception):
    """The machine was not fit to measure, so that nothing can be said of the fixes."""


@dataclass(frozen=True, slots=True)
class Machine:
    """Whether there is CUDA, how many devices, and if not, why; names of the GPU and the CPU, and torch's version.

    `accelerator` is one that is not NVIDIA's: `rocm`, or the type as torch names it; empty if there is none.
    """

    cuda: bool
    devices: int
    why: str
    name: str
    processor: str = ""
    torch: str = ""
    accelerator: str = ""

    def kind(self, device: str) -> str:
        """The device that is meant: what torch calls CUDA's is AMD's in a build for ROCm."""
        return "rocm" if device == "cuda" and not self.cuda and self.accelerator == "rocm" else device

    def device_name(self, device: str) -> str:
        """What a process that measures on it says that it is."""
        return {"cpu": self.processor, "sim": SIMULATED}.get(device, self.name)


class Clerk:
    """The process that has torch for the controller; `at_once` of them share the cores."""

    def __init__(
        self, scratch: Path, python: str, given_up: Callable[[], bool] = lambda: False, *, at_once: int = 1
    ) -> None:
        self._scratch, self._python, self._given_up = scratch, python, given_up
        self._threads = max(1, (os.cpu_count() or 1) // at_once)
        self._worker = self._started()

    def machine(self) -> Machine:
        """What there is."""
        said = self._worker.ask("probe", _IMPORT_S)
        names = (said[key] for key in ("cuda", "devices", "why", "name", "processor", "torch", "accelerator"))
        return Machine(*names)

    def compare(self, *, patience: float = _COMPARE_S, **message: Any) -> dict[str, Any]:
        """What the comparison of captures says, as `torchlint.verify.inside.compare.compare` gives it.

        One that breaks, or does not end within `patience` seconds or ten minutes, is no fault of the fix: then it is
        `not-checked`, and the next one is made by another process. Raises `CannotRunError` if there cannot be one.
        """
        try:
            result: dict[str, Any] = self._worker.ask("compare", min(patience, _COMPARE_S), **message)["result"]
        except ArmError as error:
            self._worker.close()
            self._worker = self._started()
            reason = f"what was computed could not be compared: {error}"
            return {"class": message["class"], "verdict": "not-checked", "reason": reason, "tensors": 0, "bit_equal": 0}
        return result

    def close(self) -> None:
        """End it."""
        self._worker.close()

    def _started(self) -> Worker:
        config = {"env": {"CUDA_MODULE_LOADING": "LAZY"}, "threads": self._threads}
        try:
            worker = Worker(config, self._scratch, tag="", python=self._python, module="clerk", given_up=self._given_up)
        except OSError as error:
            raise UsageError(f"`--python {self._python}`: {(error.strerror or str(error)).lower()}") from None
        try:
            worker.ready(_IMPORT_S)
        except ArmError as error:
            worker.close()
            raise CannotRunError(f"{error} (in {self._python}); install `torchlint[verify]` there") from None
        return worker


UNCOUNTED = {"rocm": "ROCm", "mps": "MPS", "xpu": "XPU"}
"""The accelerators that are measured though nobody counts what is asked of them, as people call them."""


def require(machine: Machine, device: str, rule: str = "TL301") -> None:
    """Raise `CannotRunError` if the device is not there, with what can be done instead."""
    kind = machine.kind(device)
    if kind in ON_CPU or (kind == "cuda" and machine.cuda) or kind == machine.accelerator:
        return
    named = machine.accelerator in UNCOUNTED and machine.accelerator != "rocm"
    other = f"  torchlint verify --device {machine.accelerator} ...   {_WITHOUT_COUNTS}\n" if named else ""
    raise CannotRunError(
        f"no {'CUDA' if device == 'cuda' else UNCOUNTED[device]} device ({machine.why})\n"
        f"{other}"
        "  torchlint verify --device sim ...   counts waits, copies, launches and peak memory exactly; no times\n"
        "  torchlint verify --device cpu ...   compares what is computed; CPU times are not evidence for a GPU\n"
        f"  torchlint explain {rule}   shows what was measured elsewhere"
    )


_WITHOUT_COUNTS = "compares what is computed, and times it by the wall clock; counts nothing"


def limits_of(kind: str) -> str:
    """What is not done on a device, in one line; empty where all is."""
    if kind not in UNCOUNTED:
        return ""
    return (
        f"on {UNCOUNTED[kind]}, results are compared and time is measured by the wall clock; waits, copies, launches, "
        "memory and clocks are not looked at"
    )


def threads_for(device: str) -> int:
    """How many threads torch gets: one where the CPU's time is what is measured."""
    return 1 if device in ON_CPU else max(1, (os.cpu_count() or 2) // 2)
