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


FILTER = """
import torch
import torchaudio
from functools import lru_cache
{more}
def evaluate(model, loader, device):
    for path in loader:
        sound, rate = torchaudio.load(path)
        {line}
        model(sound.cuda()).mean().item()
"""


@pytest.mark.parametrize(
    "line",
    [
        f"sound = torchaudio.transforms.Resample(rate, 16000)(sound){MARK}",
        f"resample = torchaudio.transforms.Resample(orig_freq=rate, new_freq=16000){MARK}\n        sound = resample(sound)",
        (
            f"resample = torchaudio.transforms.Resample(rate, 16000){MARK}\n        resample = resample.cuda(device)\n"
            "        sound = resample(sound)"
        ),
        f"sound = torchaudio.transforms.MelSpectrogram(16000).to(device)(sound){MARK}",
    ],
)
def test_a_filter_for_each_sound(line: str) -> None:
    check_snippet(FILTER.format(more="", line=line), RULE)


def test_a_filter_where_nobody_knows_how_often_is_a_note() -> None:
    code = f"""
import torchaudio
def load(path):
    sound, rate = torchaudio.load(path)
    return torchaudio.transforms.Resample(rate, 16000)(sound){MARK}?
"""
    check_snippet(code, RULE)


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ("", "kept[rate] = torchaudio.transforms.Resample(rate, 16000)"),
        ("", "kept.append(torchaudio.transforms.Resample(rate, 16000))"),
        (
            (
                "@lru_cache\ndef made(rate):\n    resample = torchaudio.transforms.Resample(rate, 16000)\n"
                "    resample(torch.zeros(4))\n    return rate"
            ),
            "sound = made(rate)",
        ),
        (
            "@lru_cache(maxsize=8)\ndef made(rate):\n    return torchaudio.transforms.Resample(rate, 16000)",
            "sound = made(rate)(sound)",
        ),
        ("resample = torchaudio.transforms.Resample(8000, 16000)", "sound = resample(sound)"),
        ("", "sound = torchaudio.functional.resample(sound, rate, 16000)"),
    ],
)
def test_filters_that_are_kept(more: str, line: str) -> None:
    check_snippet(FILTER.format(more=more, line=line), RULE)
