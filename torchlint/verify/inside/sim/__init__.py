"""A simulated CUDA device: unmodified CUDA code runs on the CPU, and what it would cost is counted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch

from torchlint.verify.inside.sim import composites, patches
from torchlint.verify.inside.sim.autocast import Casts
from torchlint.verify.inside.sim.children import children
from torchlint.verify.inside.sim.memory import memory
from torchlint.verify.inside.sim.operators import OnDevice
from torchlint.verify.inside.sim.sites import ledger

__all__ = ["SimulatedDevice", "simulated_cuda"]


class SimulatedDevice:
    """What the device was asked to do since the last `reset`."""

    __slots__ = ()

    def reset(self) -> None:
        """Set all counts to zero."""
        ledger.reset()

    def counts(self) -> dict[str, int]:
        """How often, or how many bytes, by kind; every kind is there."""
        return ledger.counts()

    def sites(self) -> list[dict[str, str | int]]:
        """The same by line of the user's code: `file` (absolute), `line`, `kind` and `count`."""
        return ledger.sites()

    def used_elsewhere(self) -> bool:
        """Whether processes that were started from this one used it, which is counted nowhere."""
        return children.used()

    def live(self) -> int:
        """Bytes of device memory in use."""
        return memory.live

    def peak(self) -> int:
        """The most bytes of device memory that were in use at once since the last `reset_peak`."""
        return memory.peak

    def reset_peak(self) -> None:
        """Forget earlier peaks."""
        memory.reset_peak()


_active: list[SimulatedDevice] = []


@contextmanager
def simulated_cuda() -> Iterator[SimulatedDevice]:
    """Make torch's CUDA API work without CUDA, on values that the host computes.

    Counts begin at zero. Code that took `torch.cuda.is_available` by `from ... import` before sees no device; run and
    import the program inside. Random numbers are those of the host's generator. `torch.compile` and `torch.jit.script`
    leave code as it is. What they save of the device loads in a process that simulates one, and nowhere else.

    What it does not have: times, quantized tensors, gradients of nested tensors with `layout=torch.strided`, CUDA
    graphs, kernels of other libraries, more than one device, the workspaces of cuBLAS and cuDNN. A launch is an
    operator of ATen that computes: on a GPU some are several kernels, and a few, such as dropout, are one where they
    are several here.

    Raises RuntimeError where a device is already being simulated, or where there is a real one.
    """
    if _active:
        raise RuntimeError("a CUDA device is already being simulated")
    if torch.cuda.is_available():
        raise RuntimeError("there is a CUDA device; the simulation needs none, nor CUDA_VISIBLE_DEVICES that shows one")
    device = SimulatedDevice()
    ledger.reset()
    memory.reset_peak()
    with ExitStack() as stack:
        _active.append(device)
        stack.callback(_active.clear)
        stack.enter_context(children.watched())
        casts = Casts()
        stack.callback(casts.remove)
        stack.callback(composites.register()._destroy)
        patches.enter(stack, casts)
        # Each node of a graph keeps the lines that made it, for what its gradient waits for.
        stack.enter_context(torch.autograd.set_detect_anomaly(True, check_nan=False))
        stack.enter_context(OnDevice())
        patches.mark_thread(simulating=True)
        stack.callback(patches.mark_thread, simulating=False)
        yield device
