"""TL108: a costly construction in `__getitem__` is flagged where its arguments are the same at every sample."""

from __future__ import annotations

import textwrap

import pytest
from laws import check_snippet

RULE = "invariant-construction-in-getitem"
MARK = "  # <- invariant-construction-in-getitem"


def dataset(*lines: str, more: str = "", base: str = "Dataset") -> str:
    """A dataset whose `__getitem__` does this."""
    body = textwrap.indent("\n".join(lines), " " * 8)
    return (
        "import albumentations as A\nimport random\n\nimport torch\nimport torchaudio\n"
        "from torch.utils.data import Dataset\nfrom torchvision import transforms\n"
        "from transformers import AutoTokenizer\n\nNAME = 'gpt2'\n\n\n"
        f"class Data({base}):\n    def __init__(self, name, items):\n"
        "        self.name = name\n        self.items = items\n        self.kept = None\n\n"
        f"    def __getitem__(self, index):\n{body}\n{textwrap.indent(textwrap.dedent(more), ' ' * 4)}"
    )


@pytest.mark.parametrize(
    "lines",
    [
        ("return AutoTokenizer.from_pretrained('gpt2')(self.items[index])" + MARK,),
        ("return AutoTokenizer.from_pretrained(NAME, use_fast=True)(self.items[index])" + MARK,),
        ("return AutoTokenizer.from_pretrained(self.name)(self.items[index])" + MARK,),
        ("mel = torchaudio.transforms.MelSpectrogram(16000, n_mels=80)" + MARK, "return mel(self.items[index])"),
        ("crop = A.Compose([A.CenterCrop(8, 8), A.HorizontalFlip(p=0.5)])" + MARK, "return crop(image=index)"),
        ("return torch.hub.load('a/b', 'c')(self.items[index])" + MARK,),
    ],
)
def test_same_for_all(lines: tuple[str, ...]) -> None:
    check_snippet(dataset(*lines), RULE)


@pytest.mark.parametrize(
    "lines",
    [
        ("return AutoTokenizer.from_pretrained(self.items[index])",),
        ("self.kept = self.kept or AutoTokenizer.from_pretrained('gpt2')", "return self.kept(index)"),
        ("if self.kept is None:", "    self.kept = AutoTokenizer.from_pretrained('gpt2')", "return self.kept(index)"),
        ("return A.Compose([A.CenterCrop(random.randint(1, 8), 8)])(image=index)",),
        ("return A.Compose(self.parts(index))(image=index)",),
        ("rate = self.items[index]", "return torchaudio.transforms.Resample(rate, 16000)"),
        ("return transforms.Compose([transforms.ToTensor()])(index)",),
        ("return AutoTokenizer.from_pretrained(*self.items)",),
    ],
)
def test_not_the_same_or_kept(lines: tuple[str, ...]) -> None:
    check_snippet(dataset(*lines), RULE)


@pytest.mark.parametrize(
    ("line", "more"),
    [
        (
            "return self.tokens(index)",
            f"def tokens(self, i):\n    return AutoTokenizer.from_pretrained(self.name){MARK}\n",
        ),
        ("return self.tokens(self.name)", f"def tokens(self, n):\n    return AutoTokenizer.from_pretrained(n){MARK}\n"),
        ("return self.tokens(index)", "def tokens(self, n):\n    return AutoTokenizer.from_pretrained(n)\n"),
        ("return index", "def tokens(self):\n    return AutoTokenizer.from_pretrained(self.name)\n"),
    ],
)
def test_through_methods(line: str, more: str) -> None:
    check_snippet(dataset(line, more=more), RULE)


def test_other_classes_with_getitem() -> None:
    check_snippet(dataset("return AutoTokenizer.from_pretrained('gpt2')(index)", base="object"), RULE)
