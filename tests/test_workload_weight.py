"""No run of a pair takes a GPU long: what it computes and what it returns, by shapes alone, without computing it."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
import torch
import torch._dynamo  # making an optimizer loads it, and an alarm in the middle of that would leave half of it
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.data import dataloader
from torch.utils.flop_counter import FlopCounterMode

from torchlint.evidence import is_measurable
from torchlint.registry import all_rules, find
from torchlint.verify.catalogue import NOTHING_TO_MEASURE
from torchlint.verify.workload import workload

if TYPE_CHECKING:
    from torchlint.rule import Rule

pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(sys.platform == "win32", reason="an alarm of POSIX"),
]

MOST_FLOP = 5e12  # a tenth of a second of float32, at 50 TFLOP/s: a replicate has thirty units or more
MOST_BYTES = 256 << 20
SECONDS = 3

RULES = [rule for rule in all_rules() if is_measurable(rule) and rule.name not in NOTHING_TO_MEASURE]


class Unweighable(Exception):  # noqa: N818 - a fact about the pair
    """It needs numbers, which tensors without data do not have, or much Python."""


class Answers(TorchDispatchMode):  # type: ignore[misc]  # torch is untyped here
    """What is read of tensors without data is made up: what decides by it does not decide how much is computed."""

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401 - torch is untyped here
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - as above
        del types
        options = dict(kwargs or {})
        match func._schema.name.removeprefix("aten::"):  # noqa: SLF001 - the only name it has
            case "_local_scalar_dense":
                return args[0].dtype.is_floating_point * 0.5
            case "nonzero":
                return torch.empty((args[0].numel() // 2, args[0].dim()), dtype=torch.int64, device=args[0].device)
            case "masked_select":
                return torch.empty(args[0].numel() // 2, dtype=args[0].dtype, device=args[0].device)
            case "equal" | "is_nonzero":
                return False
            case "copy_" if args[1].is_meta:
                return args[0]
            case "_to_copy" if args[0].is_meta:
                for name in ("device", "non_blocking", "pin_memory"):
                    options.pop(name, None)
        return func(*args, **options)


@contextlib.contextmanager
def patient() -> Iterator[None]:
    """At most so many seconds."""

    def over(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@contextlib.contextmanager
def no_processes() -> Iterator[None]:
    """Loaders that start processes raise `Unweighable`: what these do is not seen here."""

    def refuse(*_: object) -> None:
        message = "its loader starts processes"
        raise Unweighable(message)

    with mock.patch.object(dataloader, "_MultiProcessingDataLoaderIter", refuse):
        yield


def weighed(source: bytes, size: str) -> tuple[int, int]:
    """Operations of one run, and the bytes that it returns. Raises `Unweighable`."""
    names: dict[str, Any] = {"__name__": "workload", "__file__": "workload.py"}
    exec(compile(source, "workload.py", "exec"), names)  # noqa: S102 - as a process loads it
    try:
        # The alarm goes off within them, so that it never keeps one from ending. It may keep a lock from being let go,
        # too, for which a loader's processes wait when they end: none are started.
        with no_processes(), Answers(), FlopCounterMode(display=False) as counter, patient():
            state = names["setup"]("meta", size)
            before = counter.get_total_flops()
            returned = tree_leaves(names["run"](state))
    except Exception as error:  # noqa: BLE001 - whatever code does that gets no numbers
        raise Unweighable(f"{type(error).__name__}: {error}") from None
    finally:
        while torch._C._len_torch_dispatch_stack():  # noqa: SLF001 - an alarm while one of them is put aside
            torch._C._pop_torch_dispatch_stack(None)  # noqa: SLF001
    tensors = [each for each in returned if isinstance(each, torch.Tensor)]
    return counter.get_total_flops() - before, sum(each.numel() * each.element_size() for each in tensors)


@pytest.fixture(autouse=True)
def _flags() -> Iterator[None]:
    """Pairs about switches set them."""
    dtype, precision, benchmark = (
        torch.get_default_dtype(),
        torch.get_float32_matmul_precision(),
        torch.backends.cudnn.benchmark,
    )
    anomaly, enabled = torch.is_anomaly_enabled(), torch.backends.cudnn.enabled
    yield
    torch.set_default_dtype(dtype)
    torch.set_float32_matmul_precision(precision)
    torch.backends.cudnn.benchmark, torch.backends.cudnn.enabled = benchmark, enabled
    torch.autograd.set_detect_anomaly(anomaly)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_a_run_is_no_longer_than_a_tenth_of_a_second_on_a_gpu(rule: Rule) -> None:
    pair = workload(rule)
    unweighed = []
    for size in (name for name in pair.sizes if name != "smoke"):
        try:
            flop, returned = weighed(pair.slow, size)
        except Unweighable as error:
            unweighed.append(f"{size}: {error}")
            continue
        assert flop <= MOST_FLOP, f"{size}: {flop / 1e12:.0f} TFLOP"
        assert returned <= MOST_BYTES, f"{size}: {returned >> 20} MiB are returned"
    if unweighed:
        pytest.skip("; ".join(unweighed))


def test_what_is_weighed_is_the_work_of_the_pair() -> None:
    """A batch two hundred times as large is two hundred times the work."""
    pair = workload(find("tf32-not-enabled"))
    flop, returned = weighed(pair.slow, "gpu")
    assert flop > 1e11
    assert returned > 0
    heavy = pair.slow.replace(b'"batch": 16,', b'"batch": 3200,')
    assert heavy != pair.slow
    assert MOST_FLOP < weighed(heavy, "gpu")[0] == 200 * flop
