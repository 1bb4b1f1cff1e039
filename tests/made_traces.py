"""Small traces in the shape that Kineto gives those of a program on a GPU, for tests."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

TRAIN = """\
import torch
from torch.utils.data import DataLoader


def train(model, dataset, optimizer):
    loader = DataLoader(dataset, batch_size=64)
    total = 0.0
    for images, labels in loader:
        images = images.cuda()
        loss = model(images, labels)
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total
"""
HOST, MAIN, BACKWARD, STREAM = 100, 1, 2, 7


@dataclass
class Made:
    """A trace as it is made: events one after the other, µs."""

    events: list[dict[str, Any]] = field(default_factory=list)
    correlation: int = 1000

    def host(
        self,
        category: str,
        name: str,
        start: float,
        length: float,
        thread: int = MAIN,
        stack: str = "",
        **args: object,
    ) -> None:
        self.events.append(
            {
                "ph": "X",
                "cat": category,
                "name": name,
                "pid": HOST,
                "tid": thread,
                "ts": start,
                "dur": length,
                "args": args | ({"Call stack": stack} if stack else {}),
            }
        )

    def frame(self, name: str, start: float, length: float) -> None:
        self.host("python_function", name, start, length)

    def launch(
        self,
        call: str,
        start: float,
        length: float,
        ran: tuple[str, str, float, float] | None,
        thread: int = MAIN,
        **args: object,
    ) -> None:
        """A call of the runtime, and what it runs on the device: category, name, start and length."""
        self.correlation += 1
        self.host("cuda_runtime", call, start, length, thread, correlation=self.correlation)
        if ran is not None:
            category, name, begun, lasted = ran
            about = {"device": 0, "stream": STREAM, "correlation": self.correlation} | args
            self.events += [
                {
                    "ph": "X",
                    "cat": category,
                    "name": name,
                    "pid": 0,
                    "tid": STREAM,
                    "ts": begun,
                    "dur": lasted,
                    "args": about,
                },
                {
                    "ph": "s",
                    "id": self.correlation,
                    "pid": HOST,
                    "tid": thread,
                    "ts": start,
                    "cat": "ac2g",
                    "name": "ac2g",
                },
                {
                    "ph": "f",
                    "id": self.correlation,
                    "pid": 0,
                    "tid": STREAM,
                    "ts": begun,
                    "cat": "ac2g",
                    "name": "ac2g",
                    "bp": "e",
                },
            ]

    def document(self) -> dict[str, Any]:
        return {
            "schemaVersion": 1,
            "deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-40GB", "totalGlobalMem": 42505273344}],
            "traceEvents": self.events,
            "traceName": "trace.json",
        }

    def write(self, path: Path) -> Path:
        path.write_text(json.dumps(self.document()))
        return path


def training(steps: int = 3, *, frames: bool = True, path: str = "train.py") -> Made:
    """The loop of `TRAIN`, 10 ms a step: 5 ms of loading, 1 ms of copying, 2 ms of waiting, 1 ms in which the GPU idles."""
    made = Made()
    end = 10_000.0 * steps
    if frames:
        made.frame(f"{path}(5): train", 0.0, end)
    for step in range(steps):
        _step(made, 10_000.0 * step, frames=frames)
    return made


def _step(made: Made, at: float, *, frames: bool) -> None:
    def frame(name: str, start: float, length: float) -> None:
        if frames:
            made.frame(name, at + start, length)

    frame("torch/utils/data/dataloader.py(720): __next__", 0, 5000)
    made.host("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at + 1, 4998)
    made.host("cpu_op", "aten::stack", at + 10, 100)  # what loading does is part of loading
    frame("<built-in method cuda of Tensor object at 0x7f0000000010>", 5000, 1000)
    made.host("cpu_op", "aten::to", at + 5001, 998)
    made.host("cpu_op", "aten::copy_", at + 5002, 996)
    copied = ("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)", at + 5100, 850.0)
    made.launch("cudaMemcpyAsync", at + 5003, 97, copied, bytes=4_000_000)
    made.launch("cudaStreamSynchronize", at + 5100, 890, None)
    frame("nn.Module: Net_0", 6000, 500)
    frame("torch/nn/modules/module.py(1700): _call_impl", 6001, 498)
    made.host("cpu_op", "aten::linear", at + 6010, 400)
    made.launch("cudaLaunchKernel", at + 6100, 10, ("kernel", "sgemm", at + 6950, 1050))
    frame("torch/_tensor.py(500): backward", 6500, 400)
    frame("<built-in method run_backward of torch._C._EngineBase object at 0x7f0000000020>", 6510, 380)
    made.host("cpu_op", "autograd::engine::evaluate_function: MmBackward0", at + 6550, 100, BACKWARD)
    made.launch("cudaLaunchKernel", at + 6560, 10, ("kernel", "sgemm_nt", at + 8000, 500), thread=BACKWARD)
    frame("torch/optim/optimizer.py(500): wrapper", 6900, 100)
    made.host("user_annotation", "Optimizer.step#SGD.step", at + 6910, 80)
    made.host("cpu_op", "aten::_foreach_add_", at + 6920, 50)
    made.launch("cudaLaunchKernel", at + 6930, 10, ("kernel", "multi_tensor_apply", at + 8500, 300))
    frame("<built-in method item of Tensor object at 0x7f0000000030>", 7000, 2000)
    made.host("cpu_op", "aten::item", at + 7001, 1998)
    made.host("cpu_op", "aten::_local_scalar_dense", at + 7002, 1996)
    made.launch(
        "cudaMemcpyAsync", at + 7003, 17, ("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)", at + 8800, 5), bytes=4
    )
    made.launch("cudaStreamSynchronize", at + 7020, 1970, None)
