"""Makes the random numbers of two runs comparable, whatever device draws them."""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map


def seed_everything(seed: int) -> None:
    """Seed Python, torch on every device, and numpy where it is loaded."""
    random.seed(seed)
    torch.manual_seed(seed)
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(seed % 2**32)


def fingerprint() -> dict[str, str]:
    """A digest of the state of each random stream: `python`, `cpu`, `numpy` if loaded, `cuda:0` and on if in use.

    Two runs that have the same digests have drawn the same numbers in the same order, but for a wrong seed.
    """
    prints = {"python": _digest(repr(random.getstate()).encode()), "cpu": _of_tensor(torch.get_rng_state())}
    numpy: Any = sys.modules.get("numpy")
    if numpy is not None:
        parts = (part.tolist() if hasattr(part, "tolist") else part for part in numpy.random.get_state())
        prints["numpy"] = _digest(repr(list(parts)).encode())
    try:
        states = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
    except (AssertionError, NotImplementedError, RuntimeError):
        states = []  # a simulated device says that it is in use, and draws on the CPU
    return prints | {f"cuda:{index}": _of_tensor(state) for index, state in enumerate(states)}


def drawing_on_cpu() -> DrawOnCpu | None:
    """The innermost `DrawOnCpu` that is in force."""
    return _ACTIVE[-1] if _ACTIVE else None


class DrawOnCpu(TorchDispatchMode):
    """Draws every random number of the code under it on the CPU, then moves it to where it was asked for.

    `torch.rand(n).cuda()` and `torch.rand(n, device="cuda")` give equal numbers under it: both draw from the CPU's
    generator, in program order. It stands below autograd and sees what PyTorch tags as drawing
    (`torch.Tag.nondeterministic_seeded`), so initialisers and dropout are covered wherever they are called from.
    Attention runs in its mathematical form, since fused kernels draw inside. What has no CPU form, such as cuDNN's
    recurrent layers, draws where it is and is named in `escaped`; code that `torch.compile` compiled and the
    processes of a loader are not seen at all. A generator of another device is stood in for by a CPU generator with
    its initial seed. On the CPU nothing changes.
    """

    def __init__(self, device_types: Collection[str] = ("cuda",)) -> None:
        super().__init__()
        self.escaped: list[str] = []
        self._types = frozenset(device_types)
        self._generators: dict[int, tuple[torch.Generator, torch.Generator]] = {}
        self._attention = ExitStack()

    def __enter__(self) -> DrawOnCpu:  # noqa: PYI034 - `Self` is of Python 3.11
        from torch.nn.attention import SDPBackend, sdpa_kernel  # a quarter of a second that few runs need

        self._attention.enter_context(sdpa_kernel(SDPBackend.MATH))
        super().__enter__()
        _ACTIVE.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        _ACTIVE.remove(self)
        super().__exit__(*error)
        self._attention.close()

    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:  # whatever the operation returns
        del types
        kwargs = kwargs or {}
        if torch.Tag.nondeterministic_seeded in getattr(func, "tags", ()):
            device = self._elsewhere(args, kwargs)
            if device is not None:
                try:
                    return self._draw(func, args, kwargs, device)
                except NotImplementedError:
                    self.escaped.append(str(func))
        return func(*args, **kwargs)

    def _elsewhere(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> torch.device | None:
        """The device of the first argument that is on, or asks for, another device."""
        for value in tree_leaves((args, kwargs)):
            device = value if isinstance(value, torch.device) else getattr(value, "device", None)
            if isinstance(device, torch.device) and device.type in self._types:
                # Without a generator of its own the device is simulated: it draws from the CPU's anyway.
                return device if device.type != "cuda" or torch.cuda.default_generators else None
        return None

    def _draw(
        self,
        func: Any,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        device: torch.device,
    ) -> Any:  # whatever the operation returns
        stands_for: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}

        def home(value: object) -> object:
            if isinstance(value, torch.device):
                return torch.device("cpu")
            if isinstance(value, torch.Generator) and value.device.type in self._types:
                return self._stand_in(value)
            if isinstance(value, torch.Tensor) and value.device.type in self._types:
                # The order of drawing follows the strides.
                here = torch.empty_like(value, device="cpu").copy_(value)
                stands_for[id(here)] = (here, value)
                return here
            return value

        def back(value: object) -> object:
            if not isinstance(value, torch.Tensor):
                return value
            return stands_for[id(value)][1] if id(value) in stands_for else value.to(device)

        here_args, here_kwargs = tree_map(home, args), tree_map(home, dict(kwargs))
        result = func(*here_args, **here_kwargs)
        for index, argument in enumerate(func._schema.arguments):  # public by use: the only description
            if argument.alias_info is not None and argument.alias_info.is_write:
                given = here_args[index] if index < len(here_args) else here_kwargs.get(argument.name)
                if id(given) in stands_for:
                    stands_for[id(given)][1].copy_(given)
        return tree_map(back, result)

    def _stand_in(self, generator: torch.Generator) -> torch.Generator:
        if id(generator) not in self._generators:
            own = torch.Generator().manual_seed(generator.initial_seed())
            self._generators[id(generator)] = (generator, own)
        return self._generators[id(generator)][1]


class DrawSingle(TorchDispatchMode):
    """Draws the random numbers of code that runs in float64 as float32 ones, so that it gets those it has in float32.

    That makes a run in float64 the exact answer to the same question: of each type other numbers are drawn. Code that
    names float64 itself gets float32's as well, other ones than without this, which the streams' fingerprints tell.
    """

    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:  # whatever the operation returns
        del types
        kwargs = kwargs or {}
        if torch.Tag.nondeterministic_seeded not in getattr(func, "tags", ()):
            return func(*args, **kwargs)
        if func is torch.ops.aten.native_dropout.default and args[2] and args[0].dtype is torch.float64:
            # What it drops is drawn; what it keeps is not to be rounded.
            kept = func(torch.ones_like(args[0], dtype=torch.float32), *args[1:], **kwargs)[1]
            return args[0] * kept / (1 - args[1] if args[1] < 1 else 1), kept
        return self._draw(func, args, kwargs)

    @staticmethod
    def _draw(func: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        stands_for: dict[int, torch.Tensor] = {}
        kept: list[torch.Tensor] = []  # an object's number is its own only as long as it lives

        def single(value: object) -> object:
            if not isinstance(value, torch.Tensor) or value.dtype is not torch.float64:
                return torch.float32 if value is torch.float64 else value
            kept.append(value.to(torch.float32))
            stands_for[id(kept[-1])] = value
            return kept[-1]

        def double(value: object) -> object:
            if not isinstance(value, torch.Tensor):
                return value
            own = stands_for.get(id(value))
            if own is not None:
                return own.copy_(value)
            return value.to(torch.float64) if value.dtype is torch.float32 else value

        default = torch.get_default_dtype()
        torch.set_default_dtype(torch.float32)
        try:
            result = func(*tree_map(single, args), **tree_map(single, dict(kwargs)))
        finally:
            torch.set_default_dtype(default)
        return tree_map(double, result)


class WaitForCopies(TorchDispatchMode):
    """Waits for each copy that the code does not wait for: so code that reads too early reads what it was to read."""

    def __init__(self, wait: Callable[[], None]) -> None:
        super().__init__()
        self._wait = wait

    def __torch_dispatch__(
        self, func: Any, types: object, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:  # whatever the operation returns
        del types
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        names = [argument.name for argument in func._schema.arguments]
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        if given.get("non_blocking"):
            self._wait()
        return result


_ACTIVE: list[DrawOnCpu] = []


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _of_tensor(state: torch.Tensor) -> str:
    return _digest(bytes(state.tolist()))
