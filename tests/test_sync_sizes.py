"""Where a fix takes waits away, the host and the device take about equally long at size `gpu`, by an estimate.

A wait costs what both could have done at once: nothing to speak of where one of them is idle most of the time anyway. The
estimate knows an operator's launch, its operations and its bytes, and is no measurement: a factor of two is well within it.
"""

from __future__ import annotations

import contextlib
import io
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import flop_registry

from torchlint.registry import all_rules
from torchlint.verify.workload import declaration

if TYPE_CHECKING:
    from torchlint.rule import Rule

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

LAUNCH_US = 6.0
KERNEL_US = 2.5
FLOP_PER_US = 50e6
BYTES_PER_US = 4e6
_NO_KERNEL = frozenset(
    "view reshape _unsafe_view expand t transpose permute detach alias select slice unsqueeze squeeze as_strided unbind "
    "split split_with_sizes chunk narrow view_as_real lift_fresh empty empty_like empty_strided new_empty "
    "new_empty_strided".split()
)


FIXTURES = Path(__file__).parents[1] / "fixtures"


def _source(rule: Rule) -> bytes:
    return (FIXTURES / rule.module / "slow.py").read_bytes()


def _waits(rule: Rule) -> bool:
    if not rule.code.startswith("TL3"):
        return False
    declared = declaration(_source(rule), rule.name)
    return bool(declared["metric"] == "syncs" and declared.get("devices", 1) == 1)


RULES = [rule for rule in all_rules() if _waits(rule)]


class Estimate(TorchDispatchMode):  # type: ignore[misc]  # torch is untyped here
    """Microseconds for which the host launches, and for which the device works."""

    def __init__(self) -> None:
        super().__init__()
        self.host = self.device = 0.0

    def __torch_dispatch__(
        self,
        func: Any,  # noqa: ANN401 - torch is untyped here
        types: object,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:  # noqa: ANN401 - as above
        del types
        options = dict(kwargs or {})
        result = func(*args, **options)
        name = func._schema.name.removeprefix("aten::")  # noqa: SLF001 - the only name it has
        if name in _NO_KERNEL or name == "_local_scalar_dense":
            return result
        tensors = [each for each in tree_leaves((args, options, result)) if isinstance(each, torch.Tensor)]
        size = sum(min(each.numel() * each.element_size(), each.untyped_storage().nbytes()) for each in tensors)
        count = flop_registry.get(func._overloadpacket)  # noqa: SLF001 - as torch's own counter asks it
        flop = count(*args, **options, out_val=result) if count else 0
        self.host += LAUNCH_US
        self.device += max(KERNEL_US, flop / FLOP_PER_US, size / BYTES_PER_US)
        return result


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def estimated(source: bytes, size: str) -> Estimate:
    """A run at two steps of that size."""
    names: dict[str, Any] = {"__name__": "workload", "__file__": "workload.py"}
    exec(compile(source, "workload.py", "exec"), names)  # noqa: S102 - as a process loads it
    sizes = names["WORKLOAD"]["sizes"][size]
    for steps in sizes.keys() & {"steps", "batches"}:
        sizes[steps] = 2
    state = names["setup"]("cpu", size)
    found = Estimate()
    with contextlib.redirect_stdout(io.StringIO()), found:
        names["run"](state)
    return found


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_host_and_device_take_about_equally_long(rule: Rule) -> None:
    found = estimated(_source(rule), "gpu")
    assert 0.5 < found.device / found.host < 2, f"device {found.device:.0f} us, host {found.host:.0f} us"


def test_a_small_network_leaves_the_device_idle() -> None:
    (rule,) = (rule for rule in RULES if rule.name == "item-in-train-loop")
    found = estimated(_source(rule).replace(b'"batch": 1024, "width": 1024', b'"batch": 64, "width": 512'), "gpu")
    assert found.device / found.host < 0.5


def test_there_are_such_rules() -> None:
    assert len(RULES) >= 15
