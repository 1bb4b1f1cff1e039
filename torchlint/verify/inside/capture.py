"""Keeps what a run computed, so that another run, in another process, can be compared with it."""

from __future__ import annotations

import dataclasses
import enum
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from torchlint.verify.inside.leaves import Leaf, Walk, array_module, is_array, leaves, number_type
from torchlint.verify.inside.randomness import drawing_on_cpu, fingerprint

__all__ = ["Capture", "Fact", "Leaf", "flatten", "leaves"]

FORMAT = 1
LARGEST = 64 << 20
"""Bytes that are kept of a tensor. Of a larger one a sample of its elements is, and the means of all its parts."""
_PARTS = 4096
_INT64 = range(-(2**63), 2**63)


def flatten(value: object, path: str = "out") -> Iterator[tuple[str, torch.Tensor | str | None]]:
    """The tensors, texts and Nones in `value` with the way to each, such as `out['loss']` or `out[0].weight`.

    Tensors are copies on the CPU without gradient; numbers are 0-d tensors (int64, float64, complex128). What is
    neither data nor a container of data is left out.
    """
    for leaf in leaves(value, path):
        data = None if leaf.role == "container" else _data(leaf.value)
        if leaf.role != "container" and data is not NotImplemented:
            yield leaf.path, data.sample if isinstance(data, _Large) else data


@dataclass(frozen=True, slots=True)
class Fact:
    """What is known of a value besides its numbers; `device`, `grad` and `layout` are empty where they mean nothing.

    `layout` is `contiguous`, `channels_last`, `expanded` (its elements share memory), `strided`, or as torch calls it.
    """

    kind: str
    role: str
    device: str = ""
    grad: bool = False
    layout: str = ""


@dataclass(slots=True)
class Capture:
    """What a run computed, step by step; paths begin with the step's name, `step0` and so on.

    `values` are tensors on the CPU, `texts` strings; every path of both, of containers and of None, has its fact.
    `shared` are groups of paths whose memory overlaps; a group of one is a tensor whose own elements do.
    `rng` are the fingerprints of the random streams after each step. `host_draws` says that all random numbers were
    drawn on the CPU (`DrawOnCpu`), but for `escaped` operations. `stdout` is None where it was not recorded.
    """

    values: dict[str, torch.Tensor] = field(default_factory=dict)
    texts: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Fact] = field(default_factory=dict)
    shared: list[list[str]] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    rng: list[dict[str, str]] = field(default_factory=list)
    host_draws: bool = False
    escaped: list[str] = field(default_factory=list)
    stdout: str | None = None

    def add(self, value: object, *, inputs: object = None, name: str | None = None) -> None:
        """Record what one step returned, and the random streams after it.

        `inputs` is what the step worked on: only names and memory are taken from it, so that results that share
        memory with it are known and the entries of an optimizer go by the names of its parameters.
        """
        self.rng.append(fingerprint())
        drawing = drawing_on_cpu()
        self.host_draws = drawing is not None
        self.escaped = sorted(set(drawing.escaped)) if drawing else []
        walk = Walk()
        given = [] if inputs is None else list(walk.leaves(inputs, "input"))
        walk.skipped.clear()
        results = list(walk.leaves(value, name or f"step{len(self.rng) - 1}"))
        for leaf in results:
            self._keep(leaf)
        self.skipped += walk.skipped
        self.shared += _overlaps(results, given)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write plain dicts, tensors and strings, which `torch.load(weights_only=True)` reads."""
        plain: dict[str, Any] = {each.name: getattr(self, each.name) for each in dataclasses.fields(self)}
        plain["facts"] = {path: list(dataclasses.astuple(fact)) for path, fact in self.facts.items()}
        torch.save({"format": FORMAT, **plain}, file)

    @classmethod
    def load(cls, file: str | os.PathLike[str]) -> Capture:
        """What `save` wrote; ValueError for a file of another format."""
        plain = torch.load(file, map_location="cpu", weights_only=True)
        if not isinstance(plain, dict) or plain.pop("format", None) != FORMAT:
            raise ValueError(f"{os.fspath(file)} is not a capture of format {FORMAT}")
        plain["facts"] = {path: Fact(*fact) for path, fact in plain["facts"].items()}
        return cls(**plain)

    def _keep(self, leaf: Leaf) -> None:
        data = None if leaf.role == "container" else _data(leaf.value)
        if data is NotImplemented:
            self.skipped.append(f"{leaf.path}: {leaf.kind}")
            return
        if isinstance(data, _Large):
            self._keep_large(leaf, data)
            return
        if isinstance(data, torch.Tensor):
            self.values[leaf.path] = data
        elif data is not None:
            self.texts[leaf.path] = data
        self.facts[leaf.path] = _fact(leaf)

    def _keep_large(self, leaf: Leaf, large: _Large) -> None:
        fact = _fact(leaf)
        self.facts[leaf.path] = fact
        self.values[leaf.path] = large.sample
        self.values[f"{leaf.path} (means of its parts)"] = large.means
        self.facts[f"{leaf.path} (means of its parts)"] = fact
        self.texts[f"{leaf.path} (shape)"] = str(list(large.shape))
        self.facts[f"{leaf.path} (shape)"] = Fact("shape", leaf.role)


@dataclass(frozen=True, slots=True)
class _Large:
    """Of a tensor that is too large to keep: some of its elements, the same of each of its size, and means of all."""

    sample: torch.Tensor
    means: torch.Tensor
    shape: tuple[int, ...]


@torch.no_grad()
def _sampled(tensor: torch.Tensor) -> _Large:
    flat = tensor.detach().reshape(-1)
    count = LARGEST // flat.element_size()
    drawn = torch.Generator().manual_seed(flat.numel())
    index = torch.randint(flat.numel(), (count,), generator=drawn).sort().values
    exact = torch.complex128 if flat.is_complex() else torch.float64
    means = torch.stack([part.to(exact).mean() for part in flat.tensor_split(_PARTS)])
    kept = means.to(flat.dtype) if flat.is_floating_point() or flat.is_complex() else means
    return _Large(flat[index.to(flat.device)].cpu().clone(), kept.cpu(), tuple(tensor.shape))


def _data(value: object) -> Any:  # NotImplemented has no better type
    """A copy on the CPU, a text, or None; NotImplemented for what has no numbers to read."""
    try:
        if isinstance(value, torch.Tensor):
            return _copy(value)
        if is_array(value):
            return torch.from_numpy(array_module().array(value, order="C"))
    except (NotImplementedError, RuntimeError, TypeError, ValueError):
        return NotImplemented
    if value is None or isinstance(value, str):
        return None if value is None else str(value)
    if isinstance(value, (enum.Enum, os.PathLike)):
        return str(value)
    dtype = number_type(value)
    if dtype is None or (isinstance(value, int) and value not in _INT64):
        return repr(value)
    return torch.tensor(value, dtype=dtype)


@torch.no_grad()
def _copy(tensor: Any) -> torch.Tensor | _Large:
    plain = tensor.detach()
    if plain.is_nested:
        plain = plain.to_padded_tensor(0.0)
    if plain.layout is not torch.strided:
        plain = plain.to_dense()
    if plain.is_quantized:
        plain = plain.dequantize()
    if plain.numel() * plain.element_size() > LARGEST:
        return _sampled(plain.resolve_conj().resolve_neg())
    plain = plain.cpu().resolve_conj().resolve_neg().clone(memory_format=torch.contiguous_format)
    return plain if type(plain) is torch.Tensor else plain.as_subclass(torch.Tensor)


def _fact(leaf: Leaf) -> Fact:
    # A list of numbers is no tensor to the program.
    if not isinstance(leaf.value, torch.Tensor) or leaf.kind not in ("tensor", "parameter"):
        return Fact(leaf.kind, leaf.role)
    # Where an optimizer keeps its step counter depends on its implementation.
    device = "" if leaf.role == "optimizer" else str(leaf.value.device)
    return Fact(leaf.kind, leaf.role, device, bool(leaf.value.requires_grad), _layout(leaf.value))


def _layout(tensor: Any) -> str:
    if tensor.layout is not torch.strided or tensor.is_nested:
        return str(tensor.layout)
    if any(stride == 0 and size > 1 for size, stride in zip(tensor.shape, tensor.stride(), strict=True)):
        return "expanded"
    if tensor.is_contiguous():
        return "contiguous"
    last = tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last)
    return "channels_last" if last else "strided"


def _overlaps(results: Sequence[Leaf], given: Sequence[Leaf]) -> list[list[str]]:
    """Groups of paths, at least one among the results, whose memory overlaps."""
    groups = [[leaf.path] for leaf in results if _fact(leaf).layout == "expanded"]
    wanted = {leaf.path for leaf in results}
    ranges = sorted((*extent, leaf.path) for leaf in (*results, *given) for extent in _extents(leaf.value))
    device, end, group = "", 0, set[str]()
    for where, first, last, path in [*ranges, ("", 0, 0, "")]:
        if where == device and first < end:
            group.add(path)
            end = max(end, last)
            continue
        if len(group) > 1 and group & wanted:
            groups.append(sorted(group))
        device, end, group = where, last, {path}
    return sorted(groups)


def _extents(value: Any) -> Iterator[tuple[str, int, int]]:  # anything
    """The memory behind a tensor or an array: device, first byte, the byte behind the last."""
    if isinstance(value, torch.Tensor):
        if hasattr(value, "__tensor_flatten__"):  # a wrapper, whose own storage is empty
            for name in value.__tensor_flatten__()[0]:
                yield from _extents(getattr(value, name))
        elif value.layout is torch.strided and not value.is_nested:
            storage = value.untyped_storage()
            if storage.device.type != "meta" and storage.nbytes():
                yield str(value.device), storage.data_ptr(), storage.data_ptr() + storage.nbytes()
    elif is_array(value) and isinstance(value, array_module().ndarray) and value.nbytes and value.flags.c_contiguous:
        first = value.__array_interface__["data"][0]
        yield "cpu", first, first + value.nbytes
