"""What a process says of the device that it measures on, and what is read out of a profiler's events."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from torchlint.verify.inside import devices, nvml, profile

KINDS = "syncs h2d_pageable h2d_pinned h2d_bytes d2h d2h_bytes launches allocations".split()
TO_DEVICE = "Memcpy HtoD (Pageable -> Device)"


@dataclass
class Cupti:
    """Stands for CUPTI behind torch's profiler: what is called while a session is open is recorded, or lost.

    `dead_after_empty`: a session in which nothing was done leaves it dead. `lost` is how many of the device's own
    records the start of each session swallows. `tells_bytes`: torch hands on how much was copied, as 2.11 does not.
    """

    dead_after_empty: bool = False
    lost: int = 0
    works: bool = True
    tells_bytes: bool = True
    said: list[SimpleNamespace] | None = None
    clock: int = 0
    swallowed: int = 0
    sessions: int = 0

    def call(self, name: str, *on_device: str, size: int = 64, lasts: int = 0) -> None:
        """The code calls the runtime, and the device does what it was told."""
        self.clock += 1
        if self.said is None or not self.works:
            return
        self._record(name, self.clock)
        for what in on_device:
            if self.swallowed < self.lost:
                self.swallowed += 1
            else:  # long after the call
                self._record(what, self.clock, later=1_000, size=size, lasts=lasts)

    def work(self) -> None:
        """What `known` does."""
        self.call("cudaLaunchKernel", "a kernel")
        self.call("cudaMemcpyAsync", TO_DEVICE)
        self.call("cudaDeviceSynchronize")

    def _record(self, name: str, correlation: int, later: int = 0, size: int = 0, lasts: int = 0) -> None:
        assert self.said is not None
        start, metadata = self.clock + later, f'"stream": 7, "bytes": {size}, "memory bandwidth (GB/s)": 0.5'
        self.said.append(
            SimpleNamespace(
                name=lambda: name,
                start_ns=lambda: start,
                correlation_id=lambda: correlation,
                duration_ns=lambda: lasts,
                device_type=lambda: "DeviceType.CUDA" if later else "DeviceType.CPU",
                **({"metadata_json": lambda: metadata} if self.tells_bytes else {}),
            )
        )

    @contextlib.contextmanager
    def profile(self, **_: object) -> Iterator[SimpleNamespace]:
        """In place of `torch.profiler.profile`."""
        said: list[SimpleNamespace] = []
        self.said, self.swallowed, self.sessions = said, 0, self.sessions + 1
        results = SimpleNamespace(events=lambda: said)
        yield SimpleNamespace(profiler=SimpleNamespace(kineto_results=results))
        self.call("cudaDeviceSynchronize")  # the profiler waits for the device too
        self.said = None
        if self.dead_after_empty and len(said) < 2:
            self.works = False

    @contextlib.contextmanager
    def record_function(self, name: str) -> Iterator[None]:
        """In place of `torch.profiler.record_function`, which CUPTI has no part in."""
        self.clock += 1
        if self.said is not None:
            self._record(name, 0)
        yield


@pytest.fixture
def cupti(monkeypatch: pytest.MonkeyPatch) -> Cupti:
    made = Cupti()
    monkeypatch.setattr("torch.profiler.profile", made.profile)
    monkeypatch.setattr("torch.profiler.record_function", made.record_function)
    return made


def counted(cupti: Cupti, code: Callable[[], None]) -> profile.Tally:
    with profile.events_counted(cupti.work) as tally:
        assert (tally.counts, tally.doubt) == ({}, "")
        code()
    return tally


def test_runtime_calls_and_copies_are_counted_by_kind(cupti: Cupti) -> None:
    def code() -> None:
        for name in ("cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cudaLaunchKernelLookalike"):
            cupti.call(name, "a kernel")
        for name in ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaMalloc", "cudaFree", "aten::item"):
            cupti.call(name)
        cupti.call("cudaMemcpyAsync", TO_DEVICE, size=4096)
        cupti.call("cudaMemcpyAsync", "Memcpy HtoD (Pinned -> Device)", size=1024)
        cupti.call("cudaMemcpy", "Memcpy DtoH (Device -> Pageable)", size=8)  # which waits
        cupti.call("cudaMemcpyAsync", "Memcpy DtoD (Device -> Device)", size=512)
        cupti.call("cudaMemsetAsync", "Memset (Device)", size=512)
        cupti.call("cudaGraphLaunch", "a kernel", TO_DEVICE, "Memcpy DtoH (Device -> Pinned)", size=16)

    assert counted(cupti, code) == profile.Tally(
        {
            "syncs": 4,
            "h2d_pageable": 2,
            "h2d_pinned": 1,
            "h2d_bytes": 5136,
            "d2h": 2,
            "d2h_bytes": 24,
            "launches": 4,
            "allocations": 1,
        }
    )


def test_bytes_that_torch_does_not_tell_are_not_zero(cupti: Cupti) -> None:
    cupti.tells_bytes = False

    def code() -> None:
        cupti.call("cudaMemcpyAsync", "Memcpy DtoH (Device -> Pageable)", size=8)

    tally = counted(cupti, code)
    assert tally.doubt == ""
    assert tally.counts == {kind: int(kind == "d2h") for kind in KINDS if not kind.endswith("_bytes")}


def test_the_time_in_which_the_device_works_is_added_up_once(cupti: Cupti) -> None:
    def code() -> None:
        start = cupti.clock
        cupti.call("cudaLaunchKernel", "a kernel", lasts=50)
        cupti.clock = start + 20  # on another stream, and ends within the first
        cupti.call("cudaLaunchKernel", "a kernel", lasts=10)
        cupti.clock = start + 40
        cupti.call("cudaMemcpyAsync", TO_DEVICE, lasts=40)
        cupti.clock = start + 200
        cupti.call("cudaLaunchKernel", "a kernel", lasts=7)

    tally = counted(cupti, code)
    assert (tally.doubt, tally.busy) == ("", 50 + 30 + 7)


def test_what_the_profiler_and_we_do_ourselves_is_not_the_codes(cupti: Cupti) -> None:
    assert counted(cupti, lambda: None) == profile.Tally(dict.fromkeys(KINDS, 0))


@pytest.mark.parametrize("dead_after_empty", [False, True])
def test_one_session_is_opened_and_never_an_empty_one(cupti: Cupti, *, dead_after_empty: bool) -> None:
    cupti.dead_after_empty = dead_after_empty
    tally = counted(cupti, lambda: cupti.call("cudaLaunchKernel", "a kernel"))
    assert (tally.counts["launches"], tally.doubt, cupti.sessions) == (1, "", 1)


def test_records_that_the_start_of_a_session_swallows_are_not_the_codes(cupti: Cupti) -> None:
    cupti.lost = 12
    tally = counted(cupti, lambda: cupti.call("cudaMemcpyAsync", "Memcpy DtoH (Device -> Pageable)", size=8))
    assert (tally.counts["d2h"], tally.counts["d2h_bytes"], tally.doubt) == (1, 8, "")


def test_a_copy_that_the_device_did_not_record_leaves_no_count(cupti: Cupti) -> None:
    def code() -> None:
        cupti.call("cudaMemcpyAsync", TO_DEVICE)
        cupti.lost, cupti.swallowed = 1, 0
        cupti.call("cudaMemcpyAsync", TO_DEVICE)

    tally = counted(cupti, code)
    assert tally == profile.Tally({}, "the profiler did not see the device do 1 of 2 copies")


def test_a_profiler_that_is_dead_counts_nothing_rather_than_zero(cupti: Cupti) -> None:
    cupti.works = False
    with cupti.profile():
        pass
    tally = counted(cupti, lambda: cupti.call("cudaLaunchKernel"))
    assert tally.counts == {}
    assert tally.doubt  # where even the marks are lost, it is another one


@pytest.mark.parametrize("alive", ["before", "after"])
def test_a_profiler_that_dies_or_wakes_meanwhile_counts_nothing(cupti: Cupti, alive: str) -> None:
    known = iter([alive == "before"] * profile._OPENING + [alive == "after"])  # noqa: SLF001 - so often it is done first

    def work() -> None:
        if next(known):
            cupti.work()

    with profile.events_counted(work) as tally:
        cupti.call("cudaLaunchKernel")
    missing = "after" if alive == "before" else "before"
    said = f"the profiler did not see kernels that were launched {missing} the code ran, to try it"
    assert tally == profile.Tally({}, said)


def test_a_profiler_that_sees_calls_and_nothing_of_the_device_counts_nothing(cupti: Cupti) -> None:
    cupti.lost = 1 << 20
    tally = counted(cupti, lambda: cupti.call("cudaLaunchKernel", "a kernel"))
    assert tally.counts == {}
    assert tally.doubt.startswith("the profiler did not see the device do a copy that was made after")


def test_torchs_own_profiler_has_the_marks_and_without_a_gpu_no_kernel() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it cannot profile a GPU
        with profile.events_counted(lambda: None) as tally:
            torch.ones(1)
    if not torch.cuda.is_available():
        assert tally.doubt == "the profiler did not see kernels that were launched before the code ran, to try it"


def test_a_profiler_without_raw_events_counts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextlib.contextmanager
    def summary(**_: object) -> Iterator[SimpleNamespace]:
        yield SimpleNamespace(profiler=SimpleNamespace())

    monkeypatch.setattr("torch.profiler.profile", summary)
    with profile.events_counted(lambda: None) as tally:
        pass
    assert tally == profile.Tally({}, "torch's profiler gives no raw events")


def test_lines_that_wait_are_found_by_the_warnings_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    modes = ["default"]
    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: modes[-1])
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", modes.append)
    tally = profile.Tally({"syncs": 2}, "it cannot be right")
    monkeypatch.setattr(devices, "events_counted", lambda _: contextlib.nullcontext(tally))
    monkeypatch.setattr(torch._C, "_cuda_emptyCache", lambda: None, raising=False)  # noqa: SLF001 - as torch calls it
    cuda = devices.Cuda.__new__(devices.Cuda)
    with warnings.catch_warnings(record=True) as others:
        warnings.simplefilter("always")
        with cuda.counting() as count:
            for _ in range(2):
                warnings.warn_explicit("called a synchronizing CUDA operation", UserWarning, "train.py", 41)
            warnings.warn_explicit("something else", UserWarning, "train.py", 42)
            monkeypatch.setattr(torch.cuda.memory, "is_initialized", lambda: True)
            torch.cuda.empty_cache()
    assert count.doubt == "it cannot be right"
    assert count.totals["empty_cache"] == 1
    torch.cuda.empty_cache()
    assert count.totals["empty_cache"] == 1
    assert count.totals["syncs"] == 2
    assert count.sites == [{"file": "train.py", "line": 41, "kind": "syncs", "count": 2}]
    assert [str(each.message) for each in others] == ["something else"]
    assert modes == ["default", "warn", "default"]


def test_every_kind_of_count_is_there() -> None:
    assert set(devices.Count().totals) == set(devices.COUNTED)


class Nvml:
    """Stands for pynvml; a name that `lacks` has is not there, as in another version."""

    def __init__(self, *lacks: str, reasons: int = 0) -> None:
        self._answers = {
            "nvmlInit": None,
            "nvmlShutdown": None,
            "nvmlDeviceGetHandleByUUID": "handle",
            "nvmlDeviceGetCurrentClocksEventReasons": reasons,
            "nvmlDeviceGetCurrentClocksThrottleReasons": reasons,
            "nvmlDeviceGetPowerUsage": 312_500,
            "nvmlDeviceGetTemperature": 61,
            "nvmlDeviceGetComputeRunningProcesses": ["ours", "another"],
            "nvmlDeviceGetEnforcedPowerLimit": 700_000,
            "nvmlDeviceGetPersistenceMode": 1,
            "nvmlDeviceGetComputeMode": 0,
            "nvmlDeviceGetEccMode": [1, 1],
            "nvmlDeviceGetMigMode": [0, 0],
            "nvmlDeviceGetMaxClockInfo": 1980,
            "nvmlDeviceGetMemoryBusWidth": 5120,
        }
        for name in lacks:
            del self._answers[name]

    def __getattr__(self, name: str) -> Callable[..., object]:
        if name not in self._answers:
            raise AttributeError(name)
        return lambda *_: self._answers[name]


def test_what_slows_a_gpu_down_is_told_by_nvml(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", cast("Any", Nvml(reasons=0x4 | 0x40 | 0x1)))
    assert nvml.state("5c1b") == {
        "slowed": ["power limit", "thermal limit"],
        "power_w": 312.5,
        "temperature_c": 61,
        "processes": 2,
    }
    assert nvml.settings("GPU-5c1b") == {
        "power limit": "700 W",
        "persistence mode": "on",
        "compute mode": "default",
        "ECC": "on",
        "MIG": "off",
        "highest SM clock": "1980 MHz",
    }
    older = Nvml("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetMigMode", reasons=0x1)
    monkeypatch.setitem(sys.modules, "pynvml", cast("Any", older))
    assert nvml.state("5c1b")["slowed"] == []
    assert "MIG" not in nvml.settings("5c1b")


@pytest.mark.parametrize("there", [None, Nvml("nvmlInit"), Nvml("nvmlDeviceGetHandleByUUID")])
def test_without_nvml_nothing_is_told(monkeypatch: pytest.MonkeyPatch, there: Nvml | None) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", cast("Any", there))
    assert (nvml.state("5c1b"), nvml.settings("5c1b"), nvml.memory_rate("5c1b")) == ({}, {}, 0)


@pytest.mark.parametrize(
    ("properties", "lacks", "told"),
    [
        ({"L2_cache_size": 50 << 20, "memory_clock_rate": 2_619_000, "memory_bus_width": 5120}, (), "3352320000000"),
        ({"L2_cache_size": 50 << 20}, (), "2534400000000"),
        ({}, ("nvmlDeviceGetMemoryBusWidth",), None),
    ],
)
def test_what_bounds_a_gpu_is_told_by_torch_or_nvml(
    monkeypatch: pytest.MonkeyPatch, properties: dict[str, int], lacks: tuple[str, ...], told: str | None
) -> None:
    """An H100 by its properties: 2,619 MHz, twice a cycle, by 5,120 bits are the 3.35 TB/s of its data sheet."""
    monkeypatch.setitem(sys.modules, "pynvml", cast("Any", Nvml(*lacks)))
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    made = SimpleNamespace(multi_processor_count=132, uuid="5c1b", **properties)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: made)
    found = devices.Cuda().settings()
    assert found["multiprocessors"] == "132"
    assert found.get("memory bytes per second") == told
    assert found.get("L2 bytes") == (str(50 << 20) if "L2_cache_size" in properties else None)
    assert found["power limit"] == "700 W"


def test_variables_that_change_what_is_measured_are_told_and_no_place_is(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (
        ("CUBLAS_WORKSPACE_CONFIG", ":4096:8"),
        ("NVIDIA_TF32_OVERRIDE", "0"),
        ("HSA_OVERRIDE_GFX_VERSION", "11.0.0"),
        ("CUDA_VERSION", "13.0.2"),
        ("NVIDIA_REQUIRE_CUDA", "cuda>=13.0"),
        ("PYTORCH_CUDA_ALLOC_CONF", "expandable_segments:True"),
        ("CUDA_HOME", "/opt/cuda"),
        ("TORCH_LOGS_OUT", "/home/me/log"),
        ("MY_PASSWORD", "x"),
    ):
        monkeypatch.setenv(name, value)
    told = devices.environment()
    assert {"CUBLAS_WORKSPACE_CONFIG", "NVIDIA_TF32_OVERRIDE", "PYTORCH_CUDA_ALLOC_CONF"} <= told.keys()
    assert told["HSA_OVERRIDE_GFX_VERSION"] == "11.0.0"
    assert not {"CUDA_HOME", "CUDA_VERSION", "NVIDIA_REQUIRE_CUDA", "TORCH_LOGS_OUT", "MY_PASSWORD"} & told.keys()


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
    assert {"threads", "cudnn_benchmark", "cudnn_allow_tf32", "float32_matmul_precision"} <= set(said["flags"])


PRECISIONS = ("fp32_precision", "cuda.matmul.fp32_precision", "cudnn.conv.fp32_precision", "cudnn.rnn.fp32_precision")


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(torch.backends, "fp32_precision"), reason="torch 2.9 brought the names")
@pytest.mark.parametrize("name", PRECISIONS)
def test_switches_set_by_their_newer_names_can_be_read(name: str) -> None:
    """In a process of its own: there is no way back from the newer names."""
    value = "ieee" if "cudnn" in name else "tf32"
    code = f"import json, torch; torch.backends.{name} = {value!r}\n"
    code += "from torchlint.verify.inside.devices import flags; print(json.dumps(flags()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    said = json.loads(done.stdout)
    assert set(PRECISIONS) <= set(said)
    assert said[name] == value
    if "." in name:
        assert "mixed" in (said["cudnn_allow_tf32"], said["float32_matmul_precision"])


@pytest.mark.parametrize("before", [True, False])
def test_tf32_is_out_of_cudnn_by_its_older_name(monkeypatch: pytest.MonkeyPatch, *, before: bool) -> None:
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", before)
    with devices.full_float32():
        assert torch.backends.cudnn.allow_tf32 is False
        with torch.backends.cudnn.flags(enabled=False):  # which reads them all
            pass
    assert torch.backends.cudnn.allow_tf32 is before


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(torch.backends, "fp32_precision"), reason="torch 2.9 brought the names")
def test_tf32_is_out_of_cudnn_by_its_newer_names_where_the_code_uses_those() -> None:
    code = (
        "import torch; from torchlint.verify.inside.devices import full_float32; cudnn = torch.backends.cudnn\n"
        "cudnn.rnn.fp32_precision = 'ieee'\n"
        "with full_float32(): print(cudnn.conv.fp32_precision, cudnn.rnn.fp32_precision)\n"
        "print(cudnn.conv.fp32_precision, cudnn.rnn.fp32_precision)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "ieee ieee\ntf32 ieee\n"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_a_device_that_is_not_there_is_an_error() -> None:
    with contextlib.ExitStack() as stack:
        cuda = devices.open_device("cuda", stack)
        with pytest.raises((AssertionError, RuntimeError)):
            cuda.sync()


@pytest.mark.parametrize(("kind", "target"), [("rocm", "cuda"), ("xpu", "xpu"), ("mps", "mps")])
def test_an_accelerator_that_is_not_nvidias_is_waited_for(
    kind: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[str] = []
    fake = SimpleNamespace(synchronize=lambda: waits.append(target))
    if kind != "mps":
        fake.get_device_name = lambda: "a made-up one"
    monkeypatch.setattr(torch, target, fake)
    with contextlib.ExitStack() as stack:
        device = devices.open_device(kind, stack)
        device.sync()
        assert waits == [target]
        assert (device.type, device.target) == (kind, target)
        assert device.identity()["name"] == ("a made-up one" if kind != "mps" else devices.processor())
        assert (device.clock(), device.room(), device.peak(), device.settings(), device.state()) == (
            None,
            None,
            0,
            {},
            {},
        )
