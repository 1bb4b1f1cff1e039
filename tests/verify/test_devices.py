"""What a process says of the device that it measures on, and what is read out of a profiler's events."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
import torch

from torchlint.verify.inside import devices, profile


def test_runtime_calls_and_copies_are_counted_by_kind() -> None:
    events = [
        ("cudaLaunchKernel", 0),
        ("cudaLaunchKernelExC", 0),
        ("cuLaunchKernel", 0),
        ("cudaStreamSynchronize", 0),
        ("cudaDeviceSynchronize", 0),
        ("cudaMalloc", 0),
        ("cudaMemcpyAsync", 0),
        ("Memcpy HtoD (Pageable -> Device)", 4096),
        ("Memcpy HtoD (Pinned -> Device)", 1024),
        ("Memcpy DtoH (Device -> Pageable)", 8),
        ("Memcpy DtoD (Device -> Device)", 512),
        ("Memset (Device)", 512),
        ("aten::item", 0),
        ("cudaLaunchKernelLookalike", 0),
    ]
    assert profile.count_events(events) == {
        "syncs": 2,
        "h2d_pageable": 1,
        "h2d_pinned": 1,
        "h2d_bytes": 5120,
        "d2h": 1,
        "d2h_bytes": 8,
        "launches": 3,
        "allocations": 1,
    }


def test_what_the_profiler_does_itself_is_taken_off(monkeypatch: pytest.MonkeyPatch) -> None:
    class Event(SimpleNamespace):
        def name(self) -> str:
            return str(self.said)

        def metadata_json(self) -> str:
            return '"stream": 7, "bytes": 64, "memory bandwidth (GB/s)": 0.5'

    idle = [Event(said="cudaDeviceSynchronize")]
    busy = [*idle, Event(said="cudaStreamSynchronize"), Event(said="Memcpy DtoH (Device -> Pageable)")]
    runs = iter([idle, busy])

    @contextlib.contextmanager
    def profiled(**_: object) -> Iterator[SimpleNamespace]:
        events = next(runs)
        yield SimpleNamespace(profiler=SimpleNamespace(kineto_results=SimpleNamespace(events=lambda: events)))

    monkeypatch.setattr("torch.profiler.profile", profiled)
    with profile.events_counted() as counts:
        assert counts == {}
    assert {kind: count for kind, count in counts.items() if count} == {"syncs": 1, "d2h": 1, "d2h_bytes": 64}


def test_lines_that_wait_are_found_by_the_warnings_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    modes = ["default"]
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: modes[-1])
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", modes.append)
    monkeypatch.setattr(devices, "events_counted", lambda: contextlib.nullcontext({"syncs": 2}))
    cuda = devices.Cuda.__new__(devices.Cuda)
    with warnings.catch_warnings(record=True) as others:
        warnings.simplefilter("always")
        with cuda.counting() as count:
            for _ in range(2):
                warnings.warn_explicit("called a synchronizing CUDA operation", UserWarning, "train.py", 41)
            warnings.warn_explicit("something else", UserWarning, "train.py", 42)
    assert count.totals["syncs"] == 2
    assert count.sites == [{"file": "train.py", "line": 41, "kind": "syncs", "count": 2}]
    assert [str(each.message) for each in others] == ["something else"]
    assert modes == ["default", "warn", "default"]


def test_every_kind_of_count_is_there() -> None:
    assert set(devices.Count().totals) == set(devices.COUNTED)


def test_the_cpu_is_known_by_its_name() -> None:
    with contextlib.ExitStack() as stack:
        cpu = devices.open_device("cpu", stack)
        identity = cpu.identity()
        assert identity["name"]
        assert identity["cpu_cores"] > 0
        assert (cpu.target, cpu.clock(), cpu.peak(), cpu.live()) == ("cpu", None, 0, 0)
        with cpu.counting() as count:
            pass
        assert set(count.totals.values()) == {0}


def test_software_has_versions_and_switches() -> None:
    said = devices.software()
    assert said["torch"] == torch.__version__
    assert {"threads", "cudnn_benchmark", "cudnn_allow_tf32", "float32_matmul_precision"} == set(said["flags"])


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_device_that_is_not_there_is_an_error() -> None:
    with contextlib.ExitStack() as stack, pytest.raises((AssertionError, RuntimeError)):
        devices.open_device("cuda", stack)
