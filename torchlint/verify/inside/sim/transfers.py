"""What copies between host and device count, as ATen's copy kernel for CUDA makes them.

The source is `copy_kernel_cuda` and `copy_requires_temporaries` (aten/src/ATen/native/cuda/Copy.cu), and "API
synchronization behavior" of the CUDA runtime for what the host waits for.
"""

from __future__ import annotations

import torch

from torchlint.verify.inside.sim.memory import pinned
from torchlint.verify.inside.sim.sites import ledger


def to_device(source: torch.Tensor, dtype: torch.dtype, *, non_blocking: bool, contiguous: bool = True) -> None:
    """Count the copy of a host tensor to the device, where it has `dtype`.

    A copy blocks the host unless it is `non_blocking` and starts from pinned memory: a copy from pageable memory
    is staged, for which the driver may wait for the stream. A source that is not contiguous, or that is converted
    on the host first, passes through a pageable temporary.
    """
    if source.layout is not torch.strided or source.is_nested:
        for part in members(source):
            # Indices keep their type.
            wanted = dtype if part.dtype == source.dtype else part.dtype
            to_device(part, wanted, non_blocking=non_blocking, contiguous=contiguous)
        return
    if not source.numel():
        return
    converts = source.dtype != dtype
    direct = contiguous and source.is_contiguous() and (non_blocking or not converts)
    from_pinned = direct and pinned.holds(source.untyped_storage())
    # A blocking copy converts on the host, another one on the device, after the copy.
    item = source.element_size() if non_blocking else dtype.itemsize
    ledger.note("h2d_pinned" if from_pinned else "h2d_pageable")
    ledger.note("h2d_bytes", source.numel() * item)
    if not (from_pinned and non_blocking):
        ledger.note("syncs")
    if converts and non_blocking:
        ledger.note("launches")


def to_host(source: torch.Tensor, dtype: torch.dtype, *, non_blocking: bool, into_pinned: bool) -> None:
    """Count the copy of a device tensor (given by its value) to the host, where it has `dtype`.

    A copy to pageable memory returns only once it is complete, `non_blocking` or not.
    """
    if source.layout is not torch.strided or source.is_nested:
        for part in members(source):
            wanted = dtype if part.dtype == source.dtype else part.dtype
            to_host(part, wanted, non_blocking=non_blocking, into_pinned=into_pinned)
        return
    if not source.numel():
        return
    item = dtype.itemsize if non_blocking else source.element_size()
    if not source.is_contiguous() or (non_blocking and source.dtype != dtype):
        ledger.note("launches")
    ledger.note("d2h")
    ledger.note("d2h_bytes", source.numel() * item)
    if not (non_blocking and into_pinned):
        ledger.note("syncs")


def read(size: int, times: int = 1) -> None:
    """Count reads of one value of `size` bytes: a copy to the host, for which the host waits."""
    ledger.note("d2h", times)
    ledger.note("d2h_bytes", times * size)
    ledger.note("syncs", times)


def members(tensor: torch.Tensor) -> list[torch.Tensor]:
    """The dense tensors that a sparse or nested one consists of; each is copied by itself."""
    if tensor.is_nested:
        return [tensor.values()]
    if tensor.layout is torch.sparse_coo:
        return [tensor._indices(), tensor._values()]  # those of a tensor that need not be coalesced
    if tensor.layout in {torch.sparse_csr, torch.sparse_bsr}:
        return [tensor.crow_indices(), tensor.col_indices(), tensor.values()]
    return [tensor.ccol_indices(), tensor.row_indices(), tensor.values()]
