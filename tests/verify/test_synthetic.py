"""Made-up datasets: their shapes, that nothing is read or drawn, and what stands in for torchvision where there is none."""

from __future__ import annotations

import importlib
import importlib.abc
import multiprocessing
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torchlint.verify.inside import synthetic  # noqa: E402 - needs torch
from torchlint.verify.inside.synthetic.datasets import KINDS  # noqa: E402 - as above
from torchlint.verify.inside.synthetic.images import to_tensor  # noqa: E402 - as above

COUNT = 24

# A torchvision as far as its datasets are made: what this one reads is never there.
PACKAGE = """\
class VisionDataset:
    def __init__(self, root=None, transforms=None, transform=None, target_transform=None):
        self.root, self.transforms, self.transform, self.target_transform = root, transforms, transform, target_transform

class MNIST(VisionDataset):
    classes = ["0 - zero"]

    def __init__(self, root, train=True, transform=None, target_transform=None, download=False):
        raise RuntimeError("Dataset not found")

    @property
    def class_to_idx(self):
        return {"0 - zero": 0}

    def __getitem__(self, index):
        return "its own way", self.data[index], int(self.targets[index])

    def __len__(self):
        return len(self.data)

class ImageFolder(VisionDataset):
    def __init__(self, root, transform=None, target_transform=None):
        raise FileNotFoundError(root)

    def __getitem__(self, index):
        raise FileNotFoundError(self.root)

class FakeData(VisionDataset):
    def __init__(self, size=1000, image_size=(3, 224, 224), num_classes=10):
        self.size, self.image_size = size, image_size
"""


class Absent(importlib.abc.MetaPathFinder):
    """Where it looks first, there is no torchvision."""

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        del path, target
        if fullname.partition(".")[0] == "torchvision":
            raise ModuleNotFoundError(f"No module named {fullname!r}", name="torchvision")


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Give back what a test replaces of the interpreter."""
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.setattr(sys, "path", [*sys.path])
    default: Any = getattr(multiprocessing.context, "_default_context")  # noqa: B009 - no public name
    monkeypatch.setattr(default, "_default_context", default._default_context)  # noqa: SLF001 - as above
    _forget()
    yield
    _forget()


def _forget() -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == "torchvision"]:
        del sys.modules[name]


def _replaced(monkeypatch: pytest.MonkeyPatch, count: int = COUNT) -> ModuleType:
    """`torchvision`, with made-up datasets; where there is one that loads, it is hidden."""
    sys.meta_path.insert(0, Absent())
    monkeypatch.setenv(synthetic.ENVIRONMENT, str(count))
    synthetic.replace_datasets()
    return importlib.import_module("torchvision")


def _installed(monkeypatch: pytest.MonkeyPatch, folder: Path, init: str, datasets: str) -> ModuleType:
    (folder / "torchvision").mkdir()
    (folder / "torchvision" / "__init__.py").write_text(init, encoding="utf-8")
    (folder / "torchvision" / "datasets.py").write_text(datasets, encoding="utf-8")
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    monkeypatch.setenv(synthetic.ENVIRONMENT, str(COUNT))
    synthetic.replace_datasets()
    return importlib.import_module("torchvision")


def test_nothing_is_replaced_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(synthetic.ENVIRONMENT, raising=False)
    synthetic.replace_datasets()
    assert "torchvision" not in sys.modules


@pytest.mark.parametrize("asked", ["0", "-3", "many", "1.5"])
def test_what_is_no_number_of_samples_is_refused(monkeypatch: pytest.MonkeyPatch, asked: str) -> None:
    monkeypatch.setenv(synthetic.ENVIRONMENT, asked)
    with pytest.raises(ValueError, match="not a number of samples"):
        synthetic.replace_datasets()


@pytest.mark.parametrize("name", KINDS)
def test_each_dataset_has_its_shape_without_a_folder(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    dataset = getattr(_replaced(monkeypatch).datasets, name)("/nowhere")
    image, target = dataset[COUNT - 1]
    assert len(dataset) == COUNT
    assert to_tensor(image).shape == KINDS[name].shape
    assert to_tensor(image).dtype == torch.uint8
    if KINDS[name].targets == "class":
        assert target == (COUNT - 1) % KINDS[name].classes
    assert len(dataset.classes) == KINDS[name].classes
    with pytest.raises(IndexError):
        dataset[COUNT]


def test_what_belongs_to_an_image_is_what_the_dataset_has(monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = _replaced(monkeypatch).datasets
    assert datasets.CelebA("/nowhere")[0][1].shape == (40,)
    image, mask = datasets.VOCSegmentation("/nowhere", image_set="val")[0]
    assert to_tensor(mask).shape[-2:] == to_tensor(image).shape[-2:]
    assert int(to_tensor(mask).max()) <= 20
    assert datasets.VOCDetection("/nowhere")[3][1]["annotation"]["object"][0]["name"] == "3"


def test_arguments_choose_the_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = _replaced(monkeypatch, 70).datasets
    assert max(datasets.EMNIST("/nowhere", split="byclass").targets.tolist()) == 61
    assert max(datasets.EMNIST("/nowhere", "digits").targets.tolist()) == 9
    assert max(datasets.LSUN("/nowhere", classes=["bedroom_train", "church_train"]).targets) == 1


def test_data_and_labels_are_what_programs_read(monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = _replaced(monkeypatch).datasets
    mnist = datasets.MNIST("/nowhere")
    assert mnist.data.shape == (COUNT, 28, 28)
    assert mnist.targets.dtype == torch.int64
    assert torch.equal(to_tensor(mnist[5][0])[0], mnist.data[5])
    assert tuple(datasets.CIFAR10("/nowhere").data.shape) == (COUNT, 32, 32, 3)
    assert isinstance(datasets.CIFAR10("/nowhere").targets, list)
    assert tuple(datasets.SVHN("/nowhere", split="test").labels.shape) == (COUNT,)
    assert [label for _, label in datasets.ImageFolder("/nowhere").samples][:3] == [0, 1, 2]


def test_samples_depend_on_their_index_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = _replaced(monkeypatch).datasets
    random = torch.get_rng_state()
    first, again = datasets.MNIST("/nowhere"), datasets.MNIST("/elsewhere", download=True)
    assert torch.equal(first.data, again.data)
    assert not torch.equal(first.data[0], first.data[10])
    assert not torch.equal(first.data, datasets.MNIST("/nowhere", train=False).data)
    assert not torch.equal(first.data, datasets.KMNIST("/nowhere").data)
    assert torch.equal(random, torch.get_rng_state()), "the program's own random numbers are used up"


def test_images_of_a_class_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    data = _replaced(monkeypatch).datasets.MNIST("/nowhere").data.float()
    alike, unlike = (data[0] - data[10]).abs().mean(), (data[0] - data[1]).abs().mean()
    assert alike < 0.9 * unlike


def test_transforms_are_applied(monkeypatch: pytest.MonkeyPatch) -> None:
    torchvision = _replaced(monkeypatch)
    transforms = torchvision.transforms
    steps = [
        transforms.Resize(40),
        transforms.CenterCrop(36),
        transforms.RandomCrop(32, padding=4),
        transforms.RandomHorizontalFlip(),
        transforms.RandomRotation(15),
        transforms.Grayscale(),
        transforms.ToTensor(),
        transforms.Normalize((0.5,), (0.25,)),
        transforms.Lambda(torch.flatten),
    ]
    dataset = torchvision.datasets.CIFAR10("/nowhere", False, transforms.Compose(steps), lambda label: -label)  # noqa: FBT003 - its place
    image, target = dataset[3]
    assert image.shape == (1024,)
    assert image.dtype == torch.float32
    assert -2 <= float(image.min()) < float(image.max()) <= 2
    assert target == -3


def test_resizing_and_cropping_follow_torchvision(monkeypatch: pytest.MonkeyPatch) -> None:
    transforms = _replaced(monkeypatch).transforms
    image = torch.arange(3 * 40 * 20, dtype=torch.float32).view(3, 40, 20)
    assert transforms.Resize(10)(image).shape == (3, 20, 10)  # the smaller edge
    assert transforms.Resize((8, 6))(image).shape == (3, 8, 6)
    assert torch.equal(transforms.CenterCrop(4)(image), image[:, 18:22, 8:12])
    assert transforms.RandomResizedCrop(7)(image).shape == (3, 7, 7)
    assert torch.equal(transforms.RandomHorizontalFlip(p=1)(image), image.flip(-1))
    assert transforms.Pad((1, 2))(image).shape == (3, 44, 22)
    with pytest.raises(TypeError, match="missing its argument 'std'"):
        transforms.Normalize((0.5,))
    with pytest.raises(TypeError, match="ToTensor"):
        transforms.Normalize((0.5,), (0.5,))(torch.zeros(1, 2, 2, dtype=torch.uint8))


def test_a_loader_makes_batches_in_its_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    torchvision = _replaced(monkeypatch)
    dataset = torchvision.datasets.MNIST("/nowhere", transform=torchvision.transforms.ToTensor())
    images, targets = next(iter(torch.utils.data.DataLoader(dataset, batch_size=4, num_workers=1)))
    assert images.shape == (4, 1, 28, 28)
    assert targets.tolist() == [0, 1, 2, 3]


def test_fake_data_are_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    torchvision = _replaced(monkeypatch)
    fake = torchvision.datasets.FakeData(image_size=(3, 8, 8), transform=torchvision.transforms.ToTensor())
    assert len(fake) == COUNT
    assert fake[0][0].shape == (3, 8, 8)
    assert len(torchvision.datasets.FakeData(size=5)) == 5


def test_pictures_are_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    utils = _replaced(monkeypatch).utils
    assert utils.make_grid(torch.rand(5, 1, 4, 4), nrow=3).shape == (3, 12, 18)
    utils.save_image(torch.rand(5, 1, 4, 4), tmp_path / "grid.png", normalize=True)
    assert (tmp_path / "grid.png").exists()


@pytest.mark.parametrize(
    "code",
    [
        "from torchvision import models",
        "import torchvision.models",
        "import torchvision.models.resnet as resnet",
        "import torchvision; torchvision.models",
        "from torchvision.transforms import ElasticTransform",
        "from torchvision.transforms import v2",
        "from torchvision.datasets import Kinetics",
    ],
)
def test_what_the_stand_in_lacks_is_said_in_a_line(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    _replaced(monkeypatch)
    with pytest.raises(ImportError) as caught:
        exec(code, {})  # noqa: S102 - a table of imports
    assert "stand-in for torchvision (torchvision is not installed)" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_one_that_does_not_load_is_stood_in_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = "import torchvision.datasets\nraise RuntimeError('operator torchvision::nms does not exist\\n  at ...')\n"
    torchvision = _installed(monkeypatch, tmp_path, broken, PACKAGE)
    assert torchvision.datasets.MNIST("/nowhere").data.shape == (COUNT, 28, 28)
    with pytest.raises(ImportError) as caught:
        torchvision.models  # noqa: B018 - looking is what raises
    assert "does not load: RuntimeError: operator torchvision::nms does not exist)" in str(caught.value)


def test_of_one_that_loads_only_the_reading_is_replaced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    torchvision = _installed(monkeypatch, tmp_path, "import torchvision.datasets\n__version__ = '0.99'\n", PACKAGE)
    assert torchvision.__version__ == "0.99"
    dataset = torchvision.datasets.MNIST("/nowhere", train=False, transform=str)
    assert dataset[3][0] == "its own way"
    assert torch.equal(dataset[3][1], dataset.data[3])
    assert dataset[3][2] == 3
    assert (len(dataset), dataset.train, dataset.transform) == (COUNT, False, str)
    assert dataset.class_to_idx == {"0 - zero": 0}, "a property stays"
    folder = torchvision.datasets.ImageFolder("/nowhere")
    assert (len(folder), folder[7][1]) == (COUNT, 7)
    assert torchvision.datasets.FakeData().size == COUNT
    assert not hasattr(torchvision.datasets, "CIFAR10"), "nothing is added"


def test_what_a_program_derives_is_made_up_too(monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = _replaced(monkeypatch).datasets

    class Pairs(datasets.MNIST):  # type: ignore[misc, name-defined]
        def __init__(self, root: str) -> None:
            super().__init__(root, train=False, download=True)

        def __getitem__(self, index: int) -> tuple[Any, Any]:
            return self.data[index], self.data[-1 - index]

    first, last = Pairs("/nowhere")[0]
    assert first.shape == last.shape == (28, 28)
