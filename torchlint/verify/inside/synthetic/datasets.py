"""What torchvision's datasets hold, and how they are given samples that were never read."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import torch

from torchlint.verify.inside.synthetic.images import drawing, picture, to_image

_MNIST = "root train transform target_transform download"
_SPLIT = "root split transform target_transform download"
_FOLDER = "root transform target_transform loader is_valid_file"
_VOC = "root year image_set download transform target_transform transforms"
_CELEBA = "root split target_type transform target_transform download"
_PHOTO = (3, 256, 256)


@dataclass(frozen=True, slots=True)
class Kind:
    """A dataset: `shape` is channels, height and width of an image, and `parameters` the names of its arguments.

    `holds` says what its attribute `data` is: `grey`, a byte tensor of N x height x width; `rows`, an array of
    N x height x width x channels; `planes`, one of N x channels x height x width; `files`, nothing: it reads files.
    `targets` is `class`, or what belongs to each sample instead: `attributes`, `mask` or `boxes`.
    """

    shape: tuple[int, int, int]
    classes: int
    parameters: str = _SPLIT
    holds: str = "files"
    targets: str = "class"


# Shapes, classes and arguments are those of each dataset's page in torchvision's documentation. Photographs of many
# sizes have one here.
KINDS: dict[str, Kind] = {
    "MNIST": Kind((1, 28, 28), 10, _MNIST, "grey"),
    "FashionMNIST": Kind((1, 28, 28), 10, _MNIST, "grey"),
    "KMNIST": Kind((1, 28, 28), 10, _MNIST, "grey"),
    "EMNIST": Kind((1, 28, 28), 47, "root split train transform target_transform download", "grey"),
    "USPS": Kind((1, 16, 16), 10, _MNIST, "rows"),
    "CIFAR10": Kind((3, 32, 32), 10, _MNIST, "rows"),
    "CIFAR100": Kind((3, 32, 32), 100, _MNIST, "rows"),
    "SVHN": Kind((3, 32, 32), 10, _SPLIT, "planes"),
    "STL10": Kind((3, 96, 96), 10, "root split folds transform target_transform download", "planes"),
    "ImageFolder": Kind(_PHOTO, 10, _FOLDER),
    "ImageNet": Kind(_PHOTO, 1000, "root split transform target_transform loader"),
    "Imagenette": Kind(_PHOTO, 10, "root split size download transform target_transform"),
    "LSUN": Kind(_PHOTO, 10, "root classes transform target_transform"),
    "CelebA": Kind((3, 218, 178), 40, _CELEBA, "files", "attributes"),
    "VOCSegmentation": Kind(_PHOTO, 21, _VOC, "files", "mask"),
    "VOCDetection": Kind(_PHOTO, 20, _VOC, "files", "boxes"),
    "Caltech101": Kind(_PHOTO, 101, "root target_type transform target_transform download"),
    "Caltech256": Kind(_PHOTO, 256, "root transform target_transform download"),
    "DTD": Kind(_PHOTO, 47, "root split partition transform target_transform download"),
    "EuroSAT": Kind((3, 64, 64), 10, "root transform target_transform download"),
    "FGVCAircraft": Kind(_PHOTO, 100, "root split annotation_level transform target_transform download"),
    "Flowers102": Kind(_PHOTO, 102),
    "Food101": Kind(_PHOTO, 101),
    "GTSRB": Kind((3, 32, 32), 43),
    "OxfordIIITPet": Kind(_PHOTO, 37, "root split target_types transforms transform target_transform download"),
    "PCAM": Kind((3, 96, 96), 2),
    "Places365": Kind(_PHOTO, 365, "root split small download transform target_transform loader"),
    "StanfordCars": Kind(_PHOTO, 196),
    "SUN397": Kind(_PHOTO, 397, "root transform target_transform download"),
}  # fmt: skip

_EMNIST = {"byclass": 62, "bymerge": 47, "balanced": 47, "letters": 27, "digits": 10, "mnist": 10}


def make_up(owner: Any, count: int) -> None:  # a class, torchvision's or the stand-in's
    """Let the dataset `owner` be made without files, of `count` samples."""
    name = owner.__name__
    kind = KINDS[name]
    names = kind.parameters.split()
    plain = next(base for base in owner.__mro__ if base.__name__ == "VisionDataset").__init__

    @functools.wraps(owner.__init__)
    def initialise(self: Any, *arguments: Any, **options: Any) -> None:
        given = dict(zip(names, arguments, strict=False)) | options
        transforms = (given.get(name) for name in ("transforms", "transform", "target_transform"))
        plain(self, given.get("root", ""), *transforms)
        self.made_up = Samples.of(name, count, given)
        for attribute, value in _attributes(self.made_up, given).items():
            if not isinstance(getattr(type(self), attribute, None), property):
                setattr(self, attribute, value)

    owner.__init__ = initialise
    if kind.holds == "files" or not hasattr(owner, "__len__"):  # else from `data`, as torchvision does
        owner.__getitem__ = _sample
        owner.__len__ = lambda self: self.made_up.count


def shorten(fake: Any, count: int) -> None:
    """Let `FakeData`, which is made up anyway, have no more than `count` samples."""
    initialise = fake.__init__

    @functools.wraps(initialise)
    def shortened(self: Any, size: int = 1000, *arguments: Any, **options: Any) -> None:
        initialise(self, min(size, count), *arguments, **options)

    fake.__init__ = shortened


@dataclass(frozen=True, slots=True)
class Samples:
    """Those of one dataset: `name` tells train from test, and the classes take turns."""

    name: str
    kind: Kind
    count: int
    classes: int

    @classmethod
    def of(cls, name: str, count: int, given: dict[str, Any]) -> Samples:
        """Those of a dataset that was made with these arguments."""
        part = given.get("split", given.get("image_set", given.get("train", True)))
        classes = KINDS[name].classes
        if name == "EMNIST":
            part, classes = given.get("train", True), _EMNIST.get(str(given.get("split")), classes)
        if name == "LSUN" and isinstance(given.get("classes"), (list, tuple)):
            classes = len(given["classes"])
        return cls(f"{name} {part}", KINDS[name], count, classes)

    def label(self, index: int) -> int:
        """The class of a sample."""
        return index % self.classes

    def image(self, index: int) -> torch.Tensor:
        """The bytes of its image, channels first."""
        return picture(self.name, index, self.label(index), self.kind.shape)

    def target(self, index: int) -> Any:  # as the dataset has it
        """What belongs to its image."""
        generator = drawing(f"{self.name} targets", index)
        _, height, width = self.kind.shape
        match self.kind.targets:
            case "attributes":
                return torch.randint(2, (self.classes,), generator=generator, device="cpu")
            case "mask":
                shape = (1, height, width)
                return to_image(
                    torch.randint(self.classes, shape, generator=generator, dtype=torch.uint8, device="cpu")
                )
            case "boxes":
                box = {"xmin": "8", "ymin": "8", "xmax": str(width // 2), "ymax": str(height // 2)}
                size = {"width": str(width), "height": str(height), "depth": "3"}
                return {"annotation": {"size": size, "object": [{"name": str(self.label(index)), "bndbox": box}]}}
            case _:
                return self.label(index)


def _sample(dataset: Any, index: int) -> tuple[Any, Any]:
    """What `dataset[index]` is, its transforms applied."""
    made: Samples = dataset.made_up
    if not -made.count <= index < made.count:
        raise IndexError(f"there are {made.count} samples, and none of index {index}")
    position = int(index) % made.count
    image, target = to_image(made.image(position)), made.target(position)
    transform = dataset.transforms
    return transform(image, target) if transform is not None else (image, target)


def _attributes(made: Samples, given: dict[str, Any]) -> dict[str, Any]:
    """What programs read of a dataset beside its samples."""
    labels = [made.label(index) for index in range(made.count)]
    names = [str(label) for label in range(made.classes)]
    attributes: dict[str, Any] = {
        "classes": names,
        "class_to_idx": {name: label for label, name in enumerate(names)},
        "split": given.get("split", "train"),
        "targets": labels,
        "train": bool(given.get("train", True)),
    }
    if made.kind.holds == "files":
        files = [(f"{names[label]}/{index:06d}.png", label) for index, label in enumerate(labels)]
        return attributes | {"samples": files, "imgs": files, "images": [file for file, _ in files]}
    data = torch.stack([made.image(index) for index in range(made.count)])
    if made.kind.holds == "grey":
        return attributes | {"data": data[:, 0], "targets": torch.tensor(labels, device="cpu")}
    if made.kind.holds == "rows":
        data = data.permute(0, 2, 3, 1).contiguous()
        return attributes | {"data": _array(data[..., 0] if made.kind.shape[0] == 1 else data)}
    return attributes | {"data": _array(data), "labels": _array(torch.tensor(labels, device="cpu"))}


def _array(data: torch.Tensor) -> Any:  # an array, where there is NumPy
    try:
        return data.numpy()
    except RuntimeError:
        return data
