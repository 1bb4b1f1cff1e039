"""A stand-in for torchvision where there is none: its datasets, with made-up samples, and what they are used with."""

from __future__ import annotations

import importlib.abc
import multiprocessing
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn

import torch
from torch.nn import functional

from torchlint.verify.inside.synthetic.datasets import KINDS
from torchlint.verify.inside.synthetic.images import picture, to_image
from torchlint.verify.inside.synthetic.transforms import FUNCTIONS, TRANSFORMS

_VERSION = "0.0.0+torchlint"  # what programs compare with says: older than any


def install(why: str) -> ModuleType:
    """Make it what `import torchvision` gives, and return its datasets. Who asks for more is told `why` it is there."""
    kinds = {name: type(name, (VisionDataset,), {"__module__": "torchvision.datasets"}) for name in KINDS}
    names: dict[str, dict[str, Any]] = {
        "torchvision": {"__version__": _VERSION, "__path__": []},
        "torchvision.datasets": {**kinds, "FakeData": FakeData, "VisionDataset": VisionDataset},
        "torchvision.transforms": {"__path__": [], **{each.__name__: each for each in TRANSFORMS}},
        "torchvision.transforms.functional": FUNCTIONS,
        "torchvision.utils": {"make_grid": make_grid, "save_image": save_image},
    }
    for name, held in names.items():
        sys.modules[name] = module = _Module(name, why)
        vars(module).update(held)
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)
    sys.meta_path.insert(0, _Refusing(why))
    _fork_workers()
    return sys.modules["torchvision.datasets"]


class VisionDataset(torch.utils.data.Dataset[Any]):
    """What torchvision's datasets of images have in common."""

    def __init__(
        self,
        root: object = None,
        transforms: Callable[..., Any] | None = None,
        transform: Callable[..., Any] | None = None,
        target_transform: Callable[..., Any] | None = None,
    ) -> None:
        self.root = root
        self.transform = transform
        self.target_transform = target_transform
        self.transforms = transforms or self._transformed

    def _transformed(self, image: object, target: object) -> tuple[object, object]:
        image = self.transform(image) if self.transform else image
        return image, self.target_transform(target) if self.target_transform else target


class FakeData(VisionDataset):
    """Images of noise."""

    def __init__(
        self,
        size: int = 1000,
        image_size: tuple[int, int, int] = (3, 224, 224),
        num_classes: int = 10,
        transform: Callable[..., Any] | None = None,
        target_transform: Callable[..., Any] | None = None,
        random_offset: int = 0,
    ) -> None:
        super().__init__(None, None, transform, target_transform)
        self.size, self.image_size, self.num_classes = size, tuple(image_size), num_classes
        self.random_offset = random_offset

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        if not 0 <= index < self.size:
            raise IndexError(f"there are {self.size} samples, and none of index {index}")
        label = index % self.num_classes
        data = picture("FakeData", index + self.random_offset, label, self.image_size)
        return self._transformed(to_image(data), label)


def make_grid(
    tensor: Any,  # a tensor or a list of them
    nrow: int = 8,
    padding: int = 2,
    normalize: bool = False,
    **_: object,
) -> torch.Tensor:
    """One image of many, side by side, on their device."""
    images: torch.Tensor = torch.stack(list(tensor)) if isinstance(tensor, (list, tuple)) else tensor
    images = images[None] if images.dim() == 3 else images
    images = images.expand(-1, 3, -1, -1) if images.shape[1] == 1 else images
    if normalize:
        low, high = float(images.min()), float(images.max())
        images = images.clamp(low, high).sub(low).div(max(high - low, 1e-5))
    framed = functional.pad(images, (0, padding, 0, padding))
    rows = [torch.cat(list(framed[first : first + nrow]), -1) for first in range(0, len(framed), nrow)]
    width = max(row.shape[-1] for row in rows)
    return torch.cat([functional.pad(row, (0, width - row.shape[-1])) for row in rows], -2)


def save_image(tensor: Any, fp: Any, format: str | None = None, **options: Any) -> None:  # noqa: A002 - torchvision's
    """Bring one image of many to the host, as torchvision does, and write it: empty, where there is no Pillow."""
    grid = make_grid(tensor, **options).mul(255).add(0.5).clamp(0, 255)
    image = to_image(grid.to("cpu", torch.uint8))
    if hasattr(image, "save"):
        image.save(fp, format=format)
    elif not hasattr(fp, "write"):
        with open(fp, "wb"):  # noqa: PTH123 - no Path here
            pass


class _Module(ModuleType):
    """A module that says what it is when it is asked for what it does not have."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(name)
        self._why = why

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        raise ImportError(_refusal(f"{self.__name__}.{name}", self._why))


class _Refusing(importlib.abc.MetaPathFinder):
    """Says the same of its modules."""

    def __init__(self, why: str) -> None:
        self._why = why

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        """No module of torchvision is found that is not there already."""
        del path, target
        if fullname.startswith("torchvision."):
            raise ImportError(_refusal(fullname, self._why))


def _refusal(name: str, why: str) -> str:
    return f"`--synthetic-data` has no {name} in its stand-in for torchvision ({why})"


def _fork_workers() -> None:
    """A process that does not begin as a copy of this one would look for torchvision in vain."""
    default = getattr(multiprocessing.context, "_default_context", None)
    if "fork" in multiprocessing.get_all_start_methods() and hasattr(default, "_default_context"):
        # Not `set_start_method`, after which the program could set none itself.
        default._default_context = multiprocessing.get_context("fork")  # type: ignore[union-attr]
