"""How many bytes of the simulated device are in use, and which host memory is pinned."""

from __future__ import annotations

import weakref
from typing import Any

import torch

from torchlint.verify.inside.sim.sites import ledger

# The caching allocator rounds every request up to a multiple of this: `kMinBlockSize`, CUDACachingAllocator.h.
BLOCK_BYTES = 512


class DeviceMemory:
    """Bytes held by device storages: `live` now, `peak` since the last `reset_peak`.

    Exact for tensors; the workspaces of cuBLAS and cuDNN and the allocator's caching are not simulated.
    """

    __slots__ = ("_held", "live", "peak")

    def __init__(self) -> None:
        self.live = 0
        self.peak = 0
        # Storage address -> its bytes and the reference that tells of its end.
        self._held: dict[int, tuple[int, weakref.ref[Any]]] = {}

    def hold(self, storage: torch.UntypedStorage) -> None:
        """Count this storage until it dies; a storage that was counted is counted again if it was resized."""
        address = storage._cdata  # the storage's identity, whatever Python object stands for it
        size = -(-storage.nbytes() // BLOCK_BYTES) * BLOCK_BYTES
        held = self._held.get(address)
        if held is not None:
            if held[0] != size:
                self._held[address] = (size, held[1])
                self._grow(size - held[0])
            return
        # A storage keeps its Python object for life, so the reference dies with the memory.
        self._held[address] = (size, weakref.ref(storage, lambda _: self._release(address)))
        if size:
            ledger.note("allocations")
            self._grow(size)

    def reset_peak(self) -> None:
        """Forget earlier peaks."""
        self.peak = self.live

    def _grow(self, size: int) -> None:
        self.live += size
        self.peak = max(self.peak, self.live)

    def _release(self, address: int) -> None:
        held = self._held.pop(address, None)
        if held is not None:
            self.live -= held[0]


class PinnedMemory:
    """Host storages that stand for page-locked memory."""

    __slots__ = ("_held",)

    def __init__(self) -> None:
        self._held: dict[int, weakref.ref[Any]] = {}

    def pin(self, storage: torch.UntypedStorage) -> None:
        """Treat this storage as page-locked for as long as it lives."""
        address = storage._cdata
        self._held[address] = weakref.ref(storage, lambda _: self._held.pop(address, None))

    def holds(self, storage: torch.UntypedStorage) -> bool:
        """Whether this storage was pinned."""
        return bool(self._held) and storage._cdata in self._held


memory = DeviceMemory()
pinned = PinnedMemory()
