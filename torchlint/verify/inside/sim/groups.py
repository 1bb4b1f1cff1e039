"""A process group of one rank: `init_process_group("nccl")` without NCCL, and `DistributedDataParallel` over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils._pytree import tree_map

from torchlint.verify.inside.sim.sites import ledger
from torchlint.verify.inside.sim.tensor import CUDA, SimTensor

_NCCL = "nccl"


def patch_groups(patch: Callable[..., None]) -> None:
    """Let NCCL's groups be made of Gloo's, which compute the same on the host."""
    if not torch.distributed.is_available():
        return
    distributed: Any = torch.distributed
    core: Any = distributed.distributed_c10d
    by_nccl: list[bool] = []
    begin, end, backend_of, wait = (
        getattr(core, name) for name in ("init_process_group", "destroy_process_group", "get_backend", "barrier")
    )
    device_of_objects: Any = getattr(core, "_get_object_coll_device", None)

    def init_process_group(backend: Any = None, *args: Any, **kwargs: Any) -> None:
        by_nccl[:] = [True] if backend is None or _NCCL in str(backend) else []
        if by_nccl:
            kwargs.pop("device_id", None)
            kwargs.pop("pg_options", None)
            backend = "gloo"
        begin(backend, *args, **kwargs)
        if by_nccl and distributed.get_world_size() != 1:
            raise NotImplementedError("there is one simulated device: start the program with one rank (WORLD_SIZE=1)")

    def destroy_process_group(*args: Any, **kwargs: Any) -> None:
        by_nccl.clear()
        end(*args, **kwargs)

    def get_backend(*args: Any, **kwargs: Any) -> Any:
        return _NCCL if by_nccl else backend_of(*args, **kwargs)

    def barrier(*args: Any, **kwargs: Any) -> Any:
        # `WorkNCCL::synchronizeInternal` (torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp): the host waits for it.
        if by_nccl:
            ledger.note("syncs")
        return wait(*args, **kwargs)

    def object_device(*args: Any) -> Any:
        return CUDA if by_nccl else device_of_objects(*args)

    names: dict[str, Callable[..., Any]] = {
        "init_process_group": init_process_group,
        "destroy_process_group": destroy_process_group,
        "get_backend": get_backend,
        "barrier": barrier,
        "is_nccl_available": lambda: True,
    }
    for name, value in names.items():
        patch(distributed, name, value)
        patch(core, name, value)
    if device_of_objects is not None:
        patch(core, "_get_object_coll_device", object_device)
    _patch_data_parallel(patch)


def _patch_data_parallel(patch: Callable[..., None]) -> None:
    """`DistributedDataParallel` of a module on the device: its reducer is C++, which knows no such gradients."""
    wrapped: Any = torch.nn.parallel.DistributedDataParallel
    begin, forward, without = wrapped.__init__, wrapped.forward, wrapped.no_sync

    def init(self: Any, module: torch.nn.Module, device_ids: Any = None, *args: Any, **kwargs: Any) -> None:
        if not any(type(parameter) is SimTensor for parameter in module.parameters()):
            begin(self, module, device_ids, *args, **kwargs)
            return
        torch.nn.Module.__init__(self)
        self.module = module
        self.device_ids = device_ids
        self.device = CUDA
        self.device_type = "cuda"
        self.require_backward_grad_sync = True
        self.of_one_rank = True

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not getattr(self, "of_one_rank", False):
            return forward(self, *args, **kwargs)
        if self.device_ids:
            args, kwargs = tree_map(_moved, args), tree_map(_moved, kwargs)
        return self.module(*args, **kwargs)

    @contextmanager
    def no_sync(self: Any) -> Iterator[None]:
        if not getattr(self, "of_one_rank", False):
            with without(self):
                yield
            return
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    patch(wrapped, "__init__", init)
    patch(wrapped, "forward", call)
    patch(wrapped, "no_sync", no_sync)


def _moved(leaf: object) -> object:
    return leaf.cuda() if isinstance(leaf, torch.Tensor) else leaf
