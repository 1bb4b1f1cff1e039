"""Findings that rest on other files."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from torchlint import engine, inquiry, sweep
from torchlint.analyses import answers
from torchlint.cli import run

if TYPE_CHECKING:
    from torchlint.source import SourceFile

UTILS = """\
import torch, numpy  # so that not only tensors have an item


def accuracy(outputs, targets):
    with torch.no_grad():
        correct = outputs.argmax(1).eq(targets).float().sum().item()
    return correct / targets.size(0)
"""
TRAIN = """\
import torch
from utils import accuracy


def train(model, loader, optimizer, criterion, meter):
    for inputs, targets in loader:
        outputs = model(inputs.cuda())
        loss = criterion(outputs, targets.cuda())
        meter.update(accuracy(outputs, targets.cuda()))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
HELPER = "from utils import accuracy\n\n\ndef measure(outputs, targets):\n    return accuracy(outputs, targets)\n"
INDIRECT = TRAIN.replace("from utils import accuracy", "from helper import measure").replace("accuracy(", "measure(")

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "torchlint.toml").touch()
    return tmp_path


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)


def found(capsys: Capture, *arguments: str) -> list[tuple[str, str, str | None, str | None]]:
    """Path, code, frequency and origin of each finding."""
    unless_asked = [] if "--select" in arguments else ["--ignore", "TL203"]
    assert run(["check", "--output-format", "json", *unless_asked, *arguments]) in (0, 1)
    return [
        (each["filename"], each["code"], each["frequency"], each["called_from"])
        for each in json.loads(capsys.readouterr().out)
    ]


EXPECTED = [("utils.py", "TL302", "per batch", "train.py:9")]


def test_a_helper_runs_as_often_as_another_file_calls_it(folder: Path, capsys: Capture) -> None:
    write(folder, utils=UTILS)
    assert found(capsys) == []
    write(folder, train=TRAIN)
    assert found(capsys) == EXPECTED


def test_a_helper_that_is_imported_under_another_name(folder: Path, capsys: Capture) -> None:
    train = TRAIN.replace("import accuracy", "import accuracy as score").replace("accuracy(", "score(")
    write(folder, utils=UTILS, train=train)
    assert found(capsys) == EXPECTED


def test_a_layer_called_where_it_is_made_makes_no_program_of_a_helper(folder: Path, capsys: Capture) -> None:
    other = """
def spread(outputs):
    shares = torch.nn.Softmax(dim=1)(outputs)
    return [shares.max(place) for place in range(3)]


def spell(names):
    for name in names:
        print(name)
"""
    write(folder, utils=UTILS + other, train=TRAIN)
    assert found(capsys, "--select", "TL302") == EXPECTED
    made = other.replace("torch.nn.Softmax(dim=1)(outputs)", "NET(outputs)")
    write(folder, utils=UTILS + "NET = torch.nn.Softmax(dim=1)\n" + made, train=TRAIN)
    assert found(capsys, "--select", "TL302") == []


def test_the_callers_count_where_only_the_helper_is_checked(folder: Path, capsys: Capture) -> None:
    write(folder, utils=UTILS, train=TRAIN)
    assert found(capsys, "utils.py") == EXPECTED


def test_without_a_project_only_the_files_of_the_run_count(folder: Path, capsys: Capture) -> None:
    (folder / "torchlint.toml").unlink()
    write(folder, utils=UTILS, train=TRAIN)
    assert found(capsys, "utils.py") == []
    assert found(capsys) == EXPECTED


def test_a_chain_over_two_files(folder: Path, capsys: Capture) -> None:
    write(folder, utils=UTILS, helper=HELPER, train=INDIRECT)
    assert found(capsys) == [("utils.py", "TL302", "per batch", "helper.py:5")]


def test_a_helper_that_another_file_calls_now_and_then(folder: Path, capsys: Capture) -> None:
    show = "import torch\n\n\ndef show(picture, writer):\n    print(writer, picture.cuda().mean().item())\n"
    loop = """\
import torch
from show import show


def train(model, loader, optimizer):
    for step, x in enumerate(loader):
        model(x.cuda(non_blocking=True)).mean().backward()
        optimizer.step()
        {}
"""
    write(folder, show=show, train=loop.format("show(x, step)"))
    assert [each[1:3] for each in found(capsys)] == [("TL301", "per batch")]
    write(folder, train=loop.format("if step % 100 == 0:\n            show(x, step)"))
    assert [each[1:3] for each in found(capsys)] == []
    write(folder, train=loop.format("if step % 2 == 0:\n            show(x, step)"))
    assert [each[1:3] for each in found(capsys)] == [("TL301", "per batch")]


def test_tests_do_not_make_a_helper_hot(folder: Path, capsys: Capture) -> None:
    (folder / "tests").mkdir()
    write(folder, utils=UTILS, **{"tests/test_utils": TRAIN})
    assert found(capsys) == []


def test_callers_that_are_not_frequent(folder: Path, capsys: Capture) -> None:
    once = "from utils import accuracy\n\nprint(accuracy(a, b))\n"
    write(folder, utils=UTILS, once=once)
    assert found(capsys) == []


def test_standard_input_is_asked_about_too(folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, train=TRAIN)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(UTILS.encode())))
    assert found(capsys, "-", "--stdin-filename", "utils.py") == EXPECTED


VALIDATE = """\
import torch


def validate(model, loader, meter):
    model.eval()
    for inputs, targets in loader:
        meter.update((model(inputs) - targets).abs().mean())
"""
RUN = (
    "import torch\nfrom utils import validate\n\n\ndef main():\n    with torch.no_grad():\n        validate(a, b, c)\n"
)


def test_the_grad_mode_of_all_callers(folder: Path, capsys: Capture) -> None:
    write(folder, utils=VALIDATE)
    assert [each[1] for each in found(capsys)] == ["TL401"]
    write(folder, run=RUN)
    assert found(capsys) == []
    write(folder, other=RUN.replace("torch.no_grad()", "open('x')"))
    assert found(capsys, "--select", "TL401") == []  # on in one, off in the other: it is not known


def test_what_is_said_to_people(folder: Path, capsys: Capture) -> None:
    write(folder, utils=UTILS, train=TRAIN)
    run(["check", "--output-format", "concise"])
    assert "(called per batch from train.py:9)" in capsys.readouterr().out
    run(["check", "--output-format", "full"])
    assert "= runs per batch, called from train.py:9" in capsys.readouterr().out
    run(["check", "--output-format", "github"])
    assert "runs per batch, called from train.py:9" in capsys.readouterr().out


def test_several_processes_find_the_same(folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, utils=UTILS, helper=HELPER, train=INDIRECT, more=TRAIN)
    here = found(capsys, "--no-cache", "-j", "1")
    monkeypatch.setattr("torchlint.pool.LEAST_LINES", 1)
    assert found(capsys, "--no-cache", "-j", "2") == here
    assert [each[:2] for each in here] == [("utils.py", "TL302")]


# One parse for what is found and for what others want to know


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the files that are parsed, one by one; few files count as many."""
    names: list[str] = []
    read = engine._read  # noqa: SLF001 - there is no other way to see it

    def counting(source: SourceFile, *others: object) -> object:
        names.append(source.path)
        return read(source, *others)  # type: ignore[arg-type]

    monkeypatch.setattr(engine, "_read", counting)
    monkeypatch.setattr(sweep, "FEW", 0)
    return names


def test_a_caller_is_asked_while_it_is_linted(folder: Path, capsys: Capture, parsed: list[str]) -> None:
    """Although it comes first by name."""
    write(folder, utils=UTILS, train=TRAIN)
    assert found(capsys, "--no-cache", "-j", "1") == EXPECTED
    assert parsed == ["utils.py", "train.py", "utils.py"]


def test_what_is_asked_only_later_is_asked_later(folder: Path, capsys: Capture, parsed: list[str]) -> None:
    """Files that import each other, and a file between two others."""
    write(folder, utils=f"import train\n{UTILS}", helper=HELPER, train=INDIRECT)
    assert found(capsys, "--no-cache", "-j", "1") == [("utils.py", "TL302", "per batch", "helper.py:5")]
    assert len(parsed) > len(set(parsed)) + 1


def test_a_caller_that_is_cached_is_asked_all_the_same(folder: Path, capsys: Capture, parsed: list[str]) -> None:
    write(folder, utils=UTILS.replace(".item()", ""), train=TRAIN)
    age(folder)
    assert found(capsys) == []
    write(folder, utils=UTILS)
    assert found(capsys) == EXPECTED
    parsed.clear()
    write(folder, utils=f"# moved\n{UTILS}")
    assert [each[:2] for each in found(capsys)] == [("utils.py", "TL302")]
    assert parsed == ["utils.py", "utils.py"]  # what the caller says is known


def test_answers_that_fail_cost_no_findings(
    folder: Path, capsys: Capture, parsed: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(answers, "_calls", fail)
    write(folder, utils=UTILS, train=TRAIN.replace("optimizer.step()", "print(loss.item())"))
    assert [each[:2] for each in found(capsys, "--no-cache", "-j", "1")] == [("train.py", "TL301")]
    assert sorted(set(parsed)) == ["train.py", "utils.py"]


# The cache


def age(folder: Path) -> None:
    """As if all had been written long ago, so that the cache trusts the times."""
    for file in folder.glob("*.py"):
        os.utime(file, (1_000_000_000, 1_000_000_000))


def test_nothing_is_asked_twice(folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    write(folder, utils=UTILS, train=TRAIN)
    age(folder)
    assert found(capsys) == EXPECTED

    def refuse(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(inquiry.Inquiry, "_worked_out", refuse)
    monkeypatch.setattr("torchlint.pool.work", refuse)
    assert found(capsys) == EXPECTED


@pytest.mark.parametrize("cache", [(), ("--no-cache",)])
def test_an_edit_of_the_caller_is_seen(folder: Path, capsys: Capture, cache: tuple[str, ...]) -> None:
    write(folder, utils=UTILS, train=TRAIN)
    assert found(capsys, *cache) == EXPECTED
    write(folder, train=f"# moved\n{TRAIN}")
    assert found(capsys, *cache) == [("utils.py", "TL302", "per batch", "train.py:10")]
    write(folder, train=TRAIN.replace("accuracy(", "other("))
    assert found(capsys, *cache) == []
    write(folder, train=TRAIN)
    assert found(capsys, *cache) == EXPECTED
    (folder / "train.py").unlink()
    assert found(capsys, *cache) == []


def test_a_caller_that_cannot_be_parsed_says_nothing(folder: Path, capsys: Capture) -> None:
    write(folder, utils=UTILS, train=TRAIN + "def (")
    assert [each[1] for each in found(capsys)] == ["E999"]


# Fixes

LOOP = """\
import torch


def total(outputs, targets):
    return torch.zeros(3).to(outputs.device) + outputs.argmax(1).eq(targets).sum().item()
"""


def test_fixes_wait_for_the_answers_and_are_made(folder: Path, capsys: Capture) -> None:
    write(folder, utils=LOOP, train=TRAIN.replace("accuracy", "total"))
    assert run(["fix"]) in (0, 1)
    capsys.readouterr()
    assert "torch.zeros(3, device=outputs.device)" in (folder / "utils.py").read_text()
    before = (folder / "utils.py").read_bytes()
    assert run(["fix"]) in (0, 1)
    assert (folder / "utils.py").read_bytes() == before


HOLDER = """\
import torch


class Converter:
    def decode(self, outputs):
        with torch.no_grad():
            return outputs.argmax(1).float().sum().item()
"""
HANDED_ON = """\
import torch
from utils import Converter


def main(model, loader, meter):
    converter = Converter()
    evaluate(model, loader, meter, converter)


def evaluate(model, loader, meter, converter):
    for inputs, targets in loader:
        meter.update(converter.decode(model(inputs.cuda())))
"""
KEPT = """\
import torch
from utils import Converter


class Evaluation:
    def __init__(self, model, converter):
        self.model = model
        self.converter = converter

    def run(self, loader, meter):
        for inputs, targets in loader:
            meter.update(self.converter.decode(self.model(inputs.cuda())))


def main(model):
    return Evaluation(model, Converter())
"""


@pytest.mark.parametrize(("text", "row"), [(HANDED_ON, 12), (KEPT, 12)], ids=["parameter", "attribute"])
def test_an_object_is_followed_to_its_class(folder: Path, capsys: Capture, text: str, row: int) -> None:
    write(folder, utils=HOLDER, train=text)
    assert found(capsys, "--select", "TL302", ".") == [("utils.py", "TL302", "per batch", f"train.py:{row}")]


LAYERS = """\
from torch import nn


class ConvNorm(nn.Module):
    def __init__(self, channels, features, bias=True):
        super().__init__()
        self.conv = nn.Conv1d(channels, features, 3, bias=bias)

    def forward(self, x):
        return self.conv(x)


class Active(nn.Module):
    def __init__(self, channels, features, bias=True):
        super().__init__()
        self.conv = nn.Conv1d(channels, features, 3, bias=bias)

    def forward(self, x):
        return self.conv(x).relu()


class Parallel(nn.DataParallel):
    pass


class SoftDataParallel(Parallel):
    pass
"""
NETWORK = """\
from torch import nn
{imports}


def make(n):
    return nn.Sequential({name}(n, n), nn.BatchNorm1d(n), nn.ReLU(), {name}(n, n), nn.ReLU())
"""


@pytest.mark.parametrize(
    ("imports", "name", "is_found"),
    [
        ("from layers import ConvNorm", "ConvNorm", True),
        ("from layers import ConvNorm as Conv", "Conv", True),
        ("from layers import *", "ConvNorm", True),
        ("import layers", "layers.ConvNorm", True),
        ("from pkg import ConvNorm", "ConvNorm", True),
        ("from layers import Active", "Active", False),
        ("from elsewhere import ConvNorm", "ConvNorm", False),
    ],
)
def test_a_layer_that_a_class_of_another_file_wraps(
    folder: Path,
    capsys: Capture,
    imports: str,
    name: str,
    is_found: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    (folder / "pkg").mkdir()
    (folder / "pkg" / "__init__.py").write_text("from layers import ConvNorm\n")
    write(folder, layers=LAYERS, network=NETWORK.format(imports=imports, name=name))
    expected = [("network.py", "TL501", "once", None)] if is_found else []
    found_ = [(path, code) for path, code, _, _ in found(capsys, "--select", "TL501", "network.py")]
    assert found_ == [(path, code) for path, code, _, _ in expected]


def test_a_finding_names_the_file_of_the_class(folder: Path, capsys: Capture) -> None:
    write(folder, layers=LAYERS, network=NETWORK.format(imports="from layers import ConvNorm", name="ConvNorm"))
    assert run(["check", "--select", "TL501", "--output-format", "concise", "network.py"]) == 1
    assert "of this `ConvNorm` of layers.py" in capsys.readouterr().out


def test_a_wrapper_of_all_gpus_from_another_file(folder: Path, capsys: Capture) -> None:
    train = "import torch\nfrom layers import Parallel, SoftDataParallel\n\n\ndef main(model):\n    return SoftDataParallel(model)\n"
    write(folder, layers=LAYERS, train=train)
    assert [(path, code) for path, code, _, _ in found(capsys, "--select", "TL701", ".")] == [("train.py", "TL701")]


STREAMS = """\
from torch.utils.data import Dataset, IterableDataset


class Stream(IterableDataset):
    def __init__(self, make):
        self.make = make

    def __iter__(self):
        return self.make()


class Pictures(Dataset):
    def __getitem__(self, index):
        return decode(self.paths[index])
"""


@pytest.mark.parametrize(("name", "is_found"), [("Stream", False), ("Derived", False), ("Pictures", True)])
def test_a_dataset_of_another_file(folder: Path, capsys: Capture, name: str, is_found: bool) -> None:  # noqa: FBT001
    derived = "from streams import Pictures, Stream\n\n\nclass Derived(Stream):\n    pass\n"
    train = f"""\
from torch.utils.data import DataLoader
from derived import {name}


def train(model, source):
    for inputs in DataLoader({name}(source), batch_size=8):
        model(inputs.cuda()).sum().backward()
"""
    write(folder, streams=STREAMS, derived=derived, train=train)
    assert len(found(capsys, "--select", "TL101", "train.py")) == is_found


ROWS = """\
import os

import torch
from torch.utils.data import Dataset, TensorDataset


class Photos(Dataset):
    def __getitem__(self, index):
        return decode(self.paths[index])


def stored_rows(path):
    if os.path.exists(path):
        rows = torch.load(path)
    else:
        rows = TensorDataset(torch.tensor(parse(path)))
        torch.save(rows, path)
    return len(rows), rows


def photos(path):
    return 3, Photos(path)


def any_rows(path):
    return 3, build(path)
"""


@pytest.mark.parametrize(("name", "is_found"), [("stored_rows", False), ("photos", True), ("any_rows", True)])
def test_a_dataset_that_a_function_of_another_file_makes(
    folder: Path,
    capsys: Capture,
    name: str,
    is_found: bool,  # noqa: FBT001
) -> None:
    train = f"""\
from torch.utils.data import DataLoader
from rows import {name}


def train(model, path):
    count, rows = {name}(path)
    for inputs in DataLoader(rows, batch_size=8):
        model(inputs.cuda()).sum().backward()
"""
    write(folder, rows=ROWS, train=train)
    assert len(found(capsys, "--select", "TL101", ".")) == is_found


@pytest.mark.parametrize(
    ("device", "collate", "is_found"),
    [
        ("cuda", "collate_packed", False),
        ("cuda", "None if plain else collate_packed", False),
        ("cuda", "partial(collate_packed, pad=0)", False),
        ("cuda", "join", True),
        ("cpu", "collate_packed", True),
    ],
)
def test_a_collator_of_another_file(folder: Path, capsys: Capture, device: str, collate: str, is_found: bool) -> None:  # noqa: FBT001
    masks = f'def mask(lengths):\n    return lengths.cumsum(0).to("{device}")\n'
    collators = (
        "from masks import mask\n\n\ndef collate_packed(rows, pad=0):\n    return mask(join(rows))\n\n\n"
        "def join(rows):\n    return torch.stack(rows)\n"
    )
    train = f"""\
from functools import partial
from torch.utils.data import DataLoader
from collators import collate_packed, join


def train(model, path, plain):
    for inputs in DataLoader(open_rows(path), batch_size=8, collate_fn={collate}):
        model(inputs.cuda()).sum().backward()
"""
    write(folder, masks=masks, collators=collators, train=train)
    assert len(found(capsys, "--select", "TL101", ".")) == is_found


def test_an_edit_of_the_class_is_seen(folder: Path, capsys: Capture) -> None:
    write(folder, layers=LAYERS, network=NETWORK.format(imports="from layers import ConvNorm", name="ConvNorm"))
    for _ in range(2):  # the second time from the cache
        assert len(found(capsys, "--select", "TL501", ".")) == 1
    write(folder, layers=LAYERS.replace("bias=True", "bias=False"))
    assert found(capsys, "--select", "TL501", ".") == []


STEP = """\
import torch


def step(model, inputs, targets, optimizer, criterion):
    loss = criterion(model(inputs.cuda()), targets.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()
"""


@pytest.mark.parametrize(("loop", "count"), [("epoch in range(9)", 0), ("update in range(9)", 1)])
def test_a_whole_set_at_a_time(folder: Path, capsys: Capture, loop: str, count: int) -> None:
    main = f"""\
import torch
from steps import step


def main(model, inputs, targets, optimizer, criterion, loader):
    for {loop}:
        print(step(model, inputs, targets, optimizer, criterion))
        for batch in loader:
            model(batch)
"""
    write(folder, steps=STEP, main=main)
    assert len(found(capsys, "--select", "TL301", ".")) == count


SHARED = """\
import torch
from torch.utils.data import Dataset


def spectrogram(y):
    if torch.max(y) > 1.0:
        print("too loud")
    return torch.stft(y, 64)


class Sounds(Dataset):
    def __getitem__(self, index):
        return spectrogram(torch.from_numpy(self.sounds[index]))
"""
GENERATING = """\
import torch
from sounds import spectrogram


def train(model, loader, optimizer, criterion):
    for inputs, targets in loader:
        outputs = model(inputs.cuda())
        loss = criterion(spectrogram(outputs.sum(1)), spectrogram(targets.cuda()))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def test_a_function_of_the_loader_and_of_the_training_step(folder: Path, capsys: Capture) -> None:
    write(folder, sounds=SHARED)
    assert found(capsys, "--select", "TL307", ".") == []
    write(folder, train=GENERATING)
    assert [(path, code) for path, code, _, _ in found(capsys, "--select", "TL307", ".")] == [("sounds.py", "TL307")]


def test_copies_of_a_file_keep_their_names(folder: Path, capsys: Capture) -> None:
    for copy in ("first", "second"):
        (folder / copy).mkdir()
        (folder / copy / "utils.py").write_text(UTILS)
        (folder / copy / "train.py").write_text(TRAIN)
        expected = [(f"{copy}/utils.py", "TL302", "per batch", f"{copy}/train.py:9")]
        assert found(capsys, copy) == expected
        assert found(capsys, copy) == expected  # from the cache


def test_paths_are_shown_from_where_the_run_is(folder: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "pkg").mkdir()
    (folder / "pkg" / "utils.py").write_text(UTILS)
    (folder / "pkg" / "train.py").write_text(TRAIN)
    assert found(capsys, ".") == [("pkg/utils.py", "TL302", "per batch", "pkg/train.py:9")]
    monkeypatch.chdir(folder / "pkg")
    assert found(capsys, ".") == EXPECTED


def may_be_pinned(capsys: Capture, *arguments: str) -> int:
    """How many copies of batches come from memory that may be pinned: of others a note says that they wait."""
    assert run(["check", "--output-format", "json", "--select", "TL203", *arguments]) in (0, 1)
    copies = json.loads(capsys.readouterr().out)
    assert len(copies) == 3
    return sum("host-bound" not in each["doubts"] for each in copies)


LOADERS = (
    "from torch.utils.data import DataLoader\n\n\ndef loaders(dataset, **options):\n    return DataLoader(dataset{})\n"
)


@pytest.mark.parametrize(
    ("data", "count"),
    [
        ("", 3),
        (LOADERS.format(""), 0),
        (LOADERS.format(", **options"), 0),
        (LOADERS.format(", pin_memory=True"), 3),
        (LOADERS.format(", **options") + "\n\ndef cuda_loaders(data):\n    return loaders(data, pin_memory=True)\n", 3),
    ],
)
def test_the_loaders_of_the_project_speak_for_one_out_of_sight(
    folder: Path, capsys: Capture, data: str, count: int
) -> None:
    write(folder, train=TRAIN, utils=UTILS, data=data)
    assert may_be_pinned(capsys) == count
    assert may_be_pinned(capsys, "train.py") == count


def test_a_loader_in_sight_speaks_for_itself(folder: Path, capsys: Capture) -> None:
    made = "from torch.utils.data import DataLoader\nimport options\n\n\ndef begin(model, dataset, *others):\n"
    made += "    train(model, DataLoader(dataset, **options.of_loaders), *others)\n"
    write(folder, train=f"{TRAIN}\n\n{made}", utils=UTILS, data=LOADERS.format(""))
    assert may_be_pinned(capsys) == 3


def test_only_the_files_around_speak_for_a_loader_out_of_sight(folder: Path, capsys: Capture) -> None:
    write(folder, train=TRAIN, utils=UTILS, main="from train import train\nfrom data import loaders\n")
    write(folder, data=LOADERS.format(""), other=LOADERS.format(", pin_memory=True"))
    assert may_be_pinned(capsys) == 0
    write(folder, second="from train import train\nimport other\n")
    assert may_be_pinned(capsys) == 3
    write(folder, second="import other\n", main="from train import train\n")
    assert may_be_pinned(capsys) == 3


def test_a_program_that_compiles_checks_no_distributions(folder: Path, capsys: Capture) -> None:
    net = (
        "import torch\nfrom torch import nn\nfrom torch.distributions import Normal\n\n\nclass Net(nn.Module):\n"
        "    def forward(self, x: torch.Tensor):\n        return Normal(x, x.exp()).rsample()\n"
    )
    train = "import torch\nfrom net import Net\n\nnet = torch.jit.script(Net())\n"
    write(folder, net=net, train=train)
    assert [each[:2] for each in found(capsys, "--select", "TL316")] == [("net.py", "TL316")]
    write(folder, train=train.replace("jit.script", "compile"))
    assert found(capsys, "--select", "TL316") == []


AGENT = """\
class Agent:
    def __init__(self, net):
        self.net = torch.nn.DataParallel(net).cuda()

    def predict(self, batch):
        self.net.eval()
        return self.net(batch).argmax(1).tolist()
"""
RUNNER = "import torch\n\n\ndef run(agent, loader):\n    with torch.no_grad():\n        return [agent.predict(x) for x in loader]\n"


@pytest.mark.parametrize(
    ("others", "is_found"),
    [
        ({}, True),
        ({"run": RUNNER}, False),
        ({"run": RUNNER.replace("torch.no_grad()", "open('x')")}, True),
        ({"run": RUNNER, "other": RUNNER.replace("torch.no_grad()", "open('x')")}, True),
        ({"run": "from sklearn.svm import SVC\n\nsvc = SVC()\nprint(svc.predict(1))\n"}, True),
    ],
)
def test_a_method_of_an_object_that_comes_from_nobody_knows_where(
    folder: Path, capsys: Capture, others: dict[str, str], *, is_found: bool
) -> None:
    write(folder, agent=f"import torch\n\n\n{AGENT}", **others)
    assert [each[1] for each in found(capsys, "--select", "TL401")] == ["TL401"] * is_found


def test_a_base_in_another_file_makes_a_module(folder: Path, capsys: Capture) -> None:
    net = (
        "import torch\nfrom base import Base\n\n\nclass Net(Base):\n    def _sample(self, x):\n"
        "        table = [x.new_zeros(3)]\n        for place in range(len(x)):\n            row = table[0]\n"
        "            row[place] = self.net(x.cuda())[place]\n        return torch.stack(table)\n\n"
        "    def _start(self, x):\n        return self._sample(x)\n"
    )
    base = "from torch import nn\n\n\nclass Base(nn.Module):\n    pass\n"
    write(folder, net=net, base=base.replace("(nn.Module)", ""))
    assert [each[:2] for each in found(capsys, "--select", "TL401")] == [("net.py", "TL401")]
    write(folder, base=base)
    assert found(capsys, "--select", "TL401") == []


SPANS = """\
import torch


def within(lengths, start, end):
    places = torch.arange(lengths.max().item(), device=start.device)
    return (places >= start[:, None]) & (places < end[:, None])


def spans(lengths, fractions):
    start = (fractions * lengths).long()
    return within(lengths, start, lengths)
"""
MASKING = """\
from spans import spans


def train(model, loader, optimizer, criterion):
    for inputs, lengths, fractions in loader:
        mask = spans(lengths.cuda(), fractions.cuda())
        loss = criterion(model(inputs.cuda()), mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def test_what_is_handed_on_to_a_helper_of_the_file_is_asked_of_those_who_call_the_file(
    folder: Path, capsys: Capture
) -> None:
    write(folder, spans=SPANS)
    assert found(capsys, "--select", "TL301") == []
    write(folder, train=MASKING)
    assert found(capsys, "--select", "TL301") == [("spans.py", "TL301", "per batch", "train.py:6")]


RANGE = """\
import torch


def spectrogram(wave: torch.Tensor):
    if torch.min(wave) < -1:
        print("too low")
    return torch.stft(wave, 512, return_complex=True)
"""
SOUNDS = """\
import torch
from audio import spectrogram
from torch.utils.data import Dataset


class Sounds(Dataset):
    def __getitem__(self, place):
        return spectrogram(torch.load(self.files[place]))
"""


def test_what_only_a_dataset_asks_is_asked_on_the_host(folder: Path, capsys: Capture) -> None:
    write(folder, audio=RANGE)
    assert found(capsys, "--select", "TL307") == [("audio.py", "TL307", None, None)]
    write(folder, sounds=SOUNDS)
    assert found(capsys, "--select", "TL307") == []


STEPS = """\
import torch


def sample(x, steps, model):
    with torch.no_grad():
        for i in reversed(steps):
            x = model(x, (torch.ones(x.size(0)) * i).to(x.device))
    return x
"""


@pytest.mark.parametrize(
    ("passed", "is_found"),
    [("range(9)", True), ("[int(s) for s in steps]", True), ("steps", False), ("[0, x]", False), ("(x, 1)", False)],
)
def test_what_a_sequence_holds_that_another_file_passes(
    folder: Path,
    capsys: Capture,
    passed: str,
    is_found: bool,  # noqa: FBT001
) -> None:
    main = f"import torch\nfrom steps import sample\n\n\ndef run(net, x, steps):\n    sample(x.cuda(), {passed}, net)\n"
    write(folder, steps=STEPS, main=main)
    assert [each[:2] for each in found(capsys, "--select", "TL201")] == [("steps.py", "TL201")] * is_found


@pytest.mark.parametrize(
    ("default", "is_found"),
    [
        ("torch.set_default_tensor_type('torch.cuda.FloatTensor')", False),
        ("torch.set_default_tensor_type('torch.DoubleTensor')", True),
        ("torch.set_default_device('cuda')", False),
        ("torch.set_default_dtype(torch.float64)", True),
    ],
)
def test_where_a_program_has_tensors_made_by_default(
    folder: Path,
    capsys: Capture,
    default: str,
    is_found: bool,  # noqa: FBT001
) -> None:
    net = (
        "import torch\n\n\ndef pick(x):\n    x = x.cuda()\n    return x[torch.randperm(x.size(0))]\n\n\n"
        "def noise(x):\n    return torch.zeros(x.size(0), 1000).cuda() + x\n"
    )
    train = (
        f"import torch\nfrom net import noise, pick\n\n{default}\n"
        "for x in torch.utils.data.DataLoader(data):\n    pick(x.cuda())\n    noise(x.cuda())\n"
    )
    write(folder, net=net, train=train)
    expected = [("net.py", "TL202"), ("net.py", "TL201")] if is_found else []
    assert [each[:2] for each in found(capsys, "--select", "TL201,TL202")] == expected


BUFFER = """\
import torch


class Buffer:
    def __init__(self, size, place):
        self.place = place
        self.states = torch.zeros(size, 4, device=self.place)

    def add(self, i, state):
        self.states[i] = torch.from_numpy(state).to(self.place)
"""
HOLDING = """\
from buffer import Buffer


class Agent:
    def __init__(self, place):
        self.buffer = Buffer(9, place)
"""
USING = """\
from agent import Agent


def main(env, place, other):
    agent = Agent(place)
    state = env.reset()
    for i in range(1000):
        state, reward, done, info = env.step(i)
        agent.buffer.add(i, state)
"""


@pytest.mark.parametrize(
    ("files", "is_found"),
    [
        ({"buffer": BUFFER, "agent": HOLDING, "main": USING}, True),
        # Both in one file.
        ({"agent": BUFFER + HOLDING.partition("import Buffer")[2], "main": USING}, True),
        # Something else is held under that name, or is called.
        ({"buffer": BUFFER, "agent": HOLDING.replace("Buffer(9, place)", "[]"), "main": USING}, False),
        ({"buffer": BUFFER, "agent": HOLDING, "main": USING.replace("agent.buffer.add", "agent.memory.add")}, False),
        ({"buffer": BUFFER, "agent": HOLDING, "main": USING.replace("agent.buffer.add", "other.buffer.add")}, False),
        ({"buffer": BUFFER, "agent": HOLDING}, False),
    ],
)
def test_a_method_of_what_an_object_holds(
    folder: Path, capsys: Capture, files: dict[str, str], *, is_found: bool
) -> None:
    write(folder, **files)
    assert [(each[1], each[2]) for each in found(capsys, "--select", "TL203")] == [("TL203", "per batch")] * is_found


MASK = """\
import torch


class Mask:
    def __init__(self, n, device):
        mask = torch.ones(n, n).to(device)
        self.mask = mask[torch.arange(n)]
"""
MAKING = """\
from mask import Mask


def train(model, loader, device):
    for x in loader:
        model(x.to(device), Mask(9, device)).sum().backward()
"""


def test_an_object_that_is_made_as_often_as_another_file_does(folder: Path, capsys: Capture) -> None:
    write(folder, mask=MASK, train=MAKING)
    assert found(capsys, "--select", "TL202") == [("mask.py", "TL202", "per batch", "train.py:6")]
    write(
        folder,
        train=MAKING.replace("Mask(9, device)", "mask").replace("    for", "    mask = Mask(9, device)\n    for"),
    )
    assert found(capsys, "--select", "TL202") == [("mask.py", "TL202", None, None)]
