"""The transforms of the stand-in for torchvision, as far as programs for small images use them.

Names, arguments and defaults are torchvision's. An image is what the data sets give, or a tensor of channels x height x
width; what comes out is a tensor. What is random is drawn from torch's generator, as torchvision does.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn import functional

from torchlint.verify.inside.synthetic.images import to_image, to_tensor


class Transform:
    """Called with an image, it gives another; what it was made with are its attributes."""

    parameters = ""
    defaults: tuple[Any, ...] = ()

    def __init__(self, *arguments: Any, **options: Any) -> None:  # each has its own
        names = self.parameters.split()
        given = dict(zip(names[len(names) - len(self.defaults) :], self.defaults, strict=True))
        given |= dict(zip(names, arguments, strict=False)) | options
        missing = [name for name in names if name not in given]
        if missing:
            raise TypeError(f"{type(self).__name__}() is missing its argument {missing[0]!r}")
        vars(self).update(given)

    def __call__(self, image: Any) -> Any:
        """The image, transformed."""
        return self._apply(image)

    def __getattr__(self, name: str) -> Any:  # known when it is made
        raise AttributeError(f"{type(self).__name__!r} has no attribute {name!r}")

    def _apply(self, image: Any) -> Any:
        raise NotImplementedError


class Compose(Transform):
    """One after the other."""

    parameters = "transforms"

    def _apply(self, image: Any) -> Any:
        for transform in self.transforms:
            image = transform(image)
        return image


class RandomApply(Transform):
    """All of them, or none."""

    parameters, defaults = "transforms p", (0.5,)

    def _apply(self, image: Any) -> Any:
        for transform in self.transforms if _happens(self.p) else ():
            image = transform(image)
        return image


class Lambda(Transform):
    """A function of the program's own."""

    parameters = "lambd"

    def _apply(self, image: Any) -> Any:
        return self.lambd(image)


class ToTensor(Transform):
    """Floats from 0 to 1 of bytes."""

    def _apply(self, image: Any) -> torch.Tensor:
        data = to_tensor(image)
        return data.float().div(255) if data.dtype == torch.uint8 else data


class PILToTensor(Transform):
    """The bytes."""

    def _apply(self, image: Any) -> torch.Tensor:
        return to_tensor(image)


class ToPILImage(Transform):
    """An image of a tensor."""

    parameters, defaults = "mode", (None,)

    def _apply(self, image: Any) -> Any:
        data = to_tensor(image)
        return to_image(data.mul(255).byte() if data.is_floating_point() else data)


class ConvertImageDtype(Transform):
    """Of another type; floats are from 0 to 1."""

    parameters = "dtype"

    def _apply(self, image: Any) -> torch.Tensor:
        data = to_tensor(image)
        return data.to(self.dtype).div(255) if data.dtype == torch.uint8 and self.dtype.is_floating_point else data


class Normalize(Transform):
    """Shifted by the means and divided by the standard deviations of its channels."""

    parameters, defaults = "mean std inplace", (False,)

    def _apply(self, image: Any) -> torch.Tensor:
        return normalize(image, self.mean, self.std, inplace=self.inplace)


class Resize(Transform):
    """Of another size; of one number, that of the smaller edge."""

    parameters, defaults = "size interpolation max_size antialias", (None, None, True)

    def _apply(self, image: Any) -> torch.Tensor:
        return resize(image, self.size)


class Pad(Transform):
    """With a border."""

    parameters, defaults = "padding fill padding_mode", (0, "constant")

    def _apply(self, image: Any) -> torch.Tensor:
        edges = [self.padding] * 4 if isinstance(self.padding, int) else [*self.padding, *self.padding][:4]
        return functional.pad(to_tensor(image), (edges[0], edges[2], edges[1], edges[3]), value=self.fill)


class CenterCrop(Transform):
    """The middle."""

    parameters = "size"

    def _apply(self, image: Any) -> torch.Tensor:
        data, size = to_tensor(image), _pair(self.size)
        top, left = (max(data.shape[edge] - size[edge], 0) // 2 for edge in (-2, -1))
        return _cut(data, top, left, size)


class RandomCrop(Transform):
    """A part, from anywhere."""

    parameters, defaults = "size padding pad_if_needed fill padding_mode", (None, False, 0, "constant")

    def _apply(self, image: Any) -> torch.Tensor:
        data: torch.Tensor = to_tensor(image) if self.padding is None else Pad(self.padding, self.fill)(image)
        size = _pair(self.size)
        top, left = (_below(max(data.shape[edge] - size[edge], 0) + 1) for edge in (-2, -1))
        return _cut(data, top, left, size)


class RandomResizedCrop(Transform):
    """A part of any size, from anywhere, of another size."""

    parameters, defaults = "size scale ratio interpolation antialias", ((0.08, 1.0), (0.75, 4 / 3), None, True)

    def _apply(self, image: Any) -> torch.Tensor:
        data = to_tensor(image)
        share = self.scale[0] + float(torch.rand(1, device="cpu")) * (self.scale[1] - self.scale[0])
        height, width = (max(1, int(edge * share**0.5)) for edge in data.shape[-2:])
        top, left = _below(data.shape[-2] - height + 1), _below(data.shape[-1] - width + 1)
        return resize(_cut(data, top, left, (height, width)), _pair(self.size))


class RandomHorizontalFlip(Transform):
    """Left for right, or as it is."""

    parameters, defaults = "p", (0.5,)

    def _apply(self, image: Any) -> torch.Tensor:
        return to_tensor(image).flip(-1) if _happens(self.p) else to_tensor(image)


class RandomVerticalFlip(Transform):
    """Upside down, or as it is."""

    parameters, defaults = "p", (0.5,)

    def _apply(self, image: Any) -> torch.Tensor:
        return to_tensor(image).flip(-2) if _happens(self.p) else to_tensor(image)


class RandomRotation(Transform):
    """Turned by an angle from between two, in degrees."""

    parameters, defaults = "degrees interpolation expand center fill", (None, False, None, 0)

    def _apply(self, image: Any) -> torch.Tensor:
        low, high = (-self.degrees, self.degrees) if isinstance(self.degrees, (int, float)) else self.degrees
        turn = torch.deg2rad(low + torch.rand((), device="cpu") * (high - low))
        rows = torch.stack([torch.cos(turn), -torch.sin(turn), turn * 0, torch.sin(turn), torch.cos(turn), turn * 0])
        data = to_tensor(image)
        grid = functional.affine_grid(rows.view(1, 2, 3), [1, *data.shape], align_corners=False)
        return functional.grid_sample(data[None].float(), grid, align_corners=False)[0].to(data.dtype)


class Grayscale(Transform):
    """Without colours."""

    parameters, defaults = "num_output_channels", (1,)

    def _apply(self, image: Any) -> torch.Tensor:
        data = to_tensor(image)
        if data.shape[0] == 3:
            weights = torch.tensor([0.299, 0.587, 0.114], device="cpu").view(3, 1, 1)  # ITU-R BT.601
            data = (data * weights).sum(0, keepdim=True).to(data.dtype)
        return data.expand(self.num_output_channels, -1, -1)


class InterpolationMode(enum.Enum):
    """Names that programs give; all images are resized bilinearly."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


def normalize(
    tensor: torch.Tensor, mean: Sequence[float], std: Sequence[float], *, inplace: bool = False
) -> torch.Tensor:
    """As `Normalize`. Raises `TypeError` for what is no tensor of floats."""
    if not isinstance(tensor, torch.Tensor) or not tensor.is_floating_point():
        raise TypeError(f"Normalize takes a tensor of floats, which ToTensor makes, and not a {type(tensor).__name__}")
    shift, scale = (torch.tensor(each, dtype=tensor.dtype, device="cpu").view(-1, 1, 1) for each in (mean, std))
    return tensor.sub_(shift).div_(scale) if inplace else (tensor - shift) / scale


def resize(image: Any, size: int | Sequence[int], *_: object, **__: object) -> torch.Tensor:
    """As `Resize`."""
    data = to_tensor(image)
    height, width = data.shape[-2:]
    if isinstance(size, int):
        scale = size / min(height, width)
        size = (max(size, int(height * scale)), max(size, int(width * scale)))
    if (height, width) == tuple(size):
        return data
    scaled = functional.interpolate(data[None].float(), _pair(size), mode="bilinear", antialias=True)[0]
    return scaled if data.is_floating_point() else scaled.round().clamp(0, 255).to(data.dtype)


TRANSFORMS: tuple[type, ...] = (
    CenterCrop, Compose, ConvertImageDtype, Grayscale, InterpolationMode, Lambda, Normalize, PILToTensor, Pad,
    RandomApply, RandomCrop, RandomHorizontalFlip, RandomResizedCrop, RandomRotation, RandomVerticalFlip, Resize,
    ToPILImage, ToTensor,
)  # fmt: skip

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "hflip": lambda image: to_tensor(image).flip(-1),
    "normalize": normalize,
    "resize": resize,
    "to_pil_image": ToPILImage(),
    "to_tensor": ToTensor(),
    "vflip": lambda image: to_tensor(image).flip(-2),
}


def _pair(size: int | Sequence[int]) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else (size[0], size[-1])


def _cut(data: torch.Tensor, top: int, left: int, size: tuple[int, int]) -> torch.Tensor:
    return data[..., top : top + size[0], left : left + size[1]]


def _below(bound: int) -> int:
    return int(torch.randint(bound, (1,), device="cpu"))


def _happens(chance: float) -> bool:
    return bool(torch.rand(1, device="cpu") < chance)
