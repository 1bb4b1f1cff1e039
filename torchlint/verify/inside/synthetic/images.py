"""Made-up images: bytes that depend on nothing but a name, a number and a label; and images to tensors and back."""

from __future__ import annotations

import functools
import importlib
import zlib
from typing import Any

import torch

_HALF = 128  # of the numbers that a byte has
_COARSE = 4


def picture(name: str, index: int, label: int, shape: tuple[int, ...]) -> torch.Tensor:
    """The bytes of one image, of `shape` (channels, height, width).

    They are noise on what all images with its label have in common, so that a model can learn the label.
    """
    noise = torch.randint(_HALF, shape, generator=drawing(name, index), dtype=torch.uint8, device="cpu")
    return noise + _pattern(label, shape)


def drawing(name: str, number: int) -> torch.Generator:
    """A generator of random numbers that belongs to a name and a number; the program's own are left as they are."""
    generator = torch.Generator(device="cpu")
    generator.manual_seed((zlib.crc32(name.encode()) << 24) + number)
    return generator


def to_image(data: torch.Tensor) -> Any:  # a PIL image, or a tensor
    """A PIL image of bytes of channels x height x width; the bytes themselves where there is no Pillow."""
    try:
        pillow = importlib.import_module("PIL.Image")
    except ImportError:
        return data
    channels, height, width = data.shape
    flat = data.permute(1, 2, 0).flatten()
    try:
        raw = flat.numpy().tobytes()
    except RuntimeError:  # there is no NumPy
        raw = bytes(flat.tolist())
    return pillow.frombytes("RGB" if channels == 3 else "L", (width, height), raw)


def to_tensor(image: Any) -> torch.Tensor:  # a PIL image, an array or a tensor
    """The numbers of an image, channels x height x width."""
    if isinstance(image, torch.Tensor):
        return image
    if hasattr(image, "getbands"):
        flat = torch.frombuffer(bytearray(image.tobytes()), dtype=torch.uint8)
        return flat.view(image.height, image.width, len(image.getbands())).permute(2, 0, 1).contiguous()
    array = torch.as_tensor(image, device="cpu")
    return (array if array.dim() == 3 else array[:, :, None]).permute(2, 0, 1).contiguous()


@functools.lru_cache(maxsize=2048)
def _pattern(label: int, shape: tuple[int, ...]) -> torch.Tensor:
    # Coarse, so that what images have in common survives a change of their size.
    channels, height, width = shape
    small = (channels, _COARSE, _COARSE)
    coarse = torch.randint(_HALF, small, generator=drawing("pattern", label), dtype=torch.uint8, device="cpu")
    rows, columns = (torch.arange(edge, device="cpu") * _COARSE // edge for edge in (height, width))
    return coarse[:, rows][:, :, columns]
