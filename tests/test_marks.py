"""Each mark of an API changes what is found in a program that holds it, is asked, and is documented."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from laws import active
from test_conventions import documented_names
from test_shown_conventions import told

from torchlint.registry import all_rules
from torchlint.semantics.knowledge import marks
from torchlint.semantics.knowledge.marks import Mark

ROOT = Path(__file__).resolve().parents[1]
MARKS = {name: value for name, value in vars(marks).items() if isinstance(value, Mark)}
# Where other rules speak first, the one that is asked alone.
ALONE = {"FP32_PRECISION": "tf32-not-enabled"}
# What tells of a file, and is no name of a library.
OF_PYTHON = frozenset({"__main__"})

# By the name of the mark.
SHOWN: dict[str, str] = {
    "ASKED_PLACE": """\
import torch
def longest(lengths: torch.Tensor):
    if lengths.is_cuda:
        raise ValueError(lengths)
    return (lengths[1:] - lengths[:-1]).max().item() + 1
def train(model, loader, optimizer):
    for x in loader:
        loss = model(x, longest(model.lengths(x))).mean()
        loss.backward()
        optimizer.step()
""",
    "RANDOM_TRIAL": """\
import torch
class Loss(torch.nn.Module):
    pass
if __name__ == "__main__":
    for _ in range(10):
        y = embed(torch.rand(5).long())
        error = loss(y, torch.ones_like(y))
        print(error)
        error.backward()
""",
    "DEVICE_SETTING_CALL": """\
import torch
for _ in steps:
    y = torch.zeros(n); torch.cuda.set_device(1)
    y = y.cuda()
""",
    "TORCHSCRIPT": """\
import torch
def numbers(x: torch.Tensor, n: int):
    return [v.item() for v in x.view(-1).float()]
scripted = torch.jit.script(numbers)
""",
    "CAPTURED": """\
torch._dynamo.config.capture_scalar_outputs = True
import torch


@torch.compile
def f(x: torch.Tensor, flag):
    y = x.sin()
    y = y * y.sum().item()
""",
    "CELL_MARK": """\
from torch.utils.data import DataLoader

get_ipython().run_line_magic('time', '')
loader = DataLoader(dataset, num_workers=4)
for batch in loader:
    pass
""",
    "DEFAULT_DEVICE_SETTER": """\
import torch, cv2, numpy as np
from torch.utils.data import DataLoader
torch.set_default_device('cuda')
for x in DataLoader(PhotoDataset('a'), 8):
    pass
""",
    "DEVICE_SETTER": """\
import torch
torch.set_default_device('cuda')
y = torch.zeros(n).cuda()
""",
    "FP32_PRECISION": """\
from torch import nn
torch.backends.fp32_precision = 'ieee'
model = nn.TransformerEncoder(nn.TransformerEncoderLayer(512, 8), 6).to("cuda")
for x, y in loader:
    nn.functional.cross_entropy(model(x.to("cuda")), y.to("cuda")).backward()
""",
    "GRADIENT_TAKEN": """\
import torch
def saliency(model, loader, n: int):
    for image, name in loader:
        label = torch.tensor([n, 0]).to("cuda")
        model(image)[label].sum().backward()
""",
    "HOOKED_MODULES": """\
from torch import nn
nn.modules.module.register_module_forward_hook(print)


class Net(nn.Module):
    def forward(self, x, y, args):
        return nn.ReLU()(x)
""",
    "LEGACY_MODE": """\
from torch import nn

class Net(nn.Module):
    def tile(self, image):
        return self.forward(Variable(image, volatile=True)).data
net = Net().cuda()
net.eval()
print(net.tile(image))
""",
    "LOADING_TEXT": """\
import torchvision
from torch.utils.data import DataLoader, TensorDataset
from torchvision import transforms

data = ImageFolder(root, transforms.CenterCrop(64))
loader = DataLoader(data, batch_size=32)
model = torchvision.models.resnet50().to("cuda")
for x, y in loader:
    nn.functional.cross_entropy(model(x.to("cuda")), y.to("cuda")).backward()
""",
    "MAIN_BLOCK": """\
import fire, torch
from torch import nn
from torch.utils.data import DataLoader
def train(data):
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3), nn.Conv2d(8, 8, 3)).to("cuda")
    optimizer = torch.optim.Adam(model.parameters())
    for x, y in DataLoader(data, batch_size=32):
        loss = nn.functional.cross_entropy(model(x.to("cuda")), y.to("cuda"))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
if __name__ == "__main__":
    fire.Fire()
""",
    "MODULE_DEFINED": """\
from torch.utils.data import (
    BatchSampler, ConcatDataset, DataLoader, Dataset, RandomSampler,
    SequentialSampler, Subset, TensorDataset, random_split,
)
class Net(torch.nn.Module):
    pass
for rows in DataLoader(TensorDataset(torch.rand(100, 1)), batch_size=25):
    model(*rows).sum().backward()
""",
    "PACKED_SEQUENCE": """\
class Cell(nn.Module):
    def forward(self, x: torch.Tensor, batch_sizes: torch.Tensor):
        for step in range(9):
            size = batch_sizes[step].item()
        return PackedSequence(x, batch_sizes)
""",
    "QUANTISING": """\
from torch import nn

net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))
torch.ao.quantization.fuse_modules(net, ["0", "1"], inplace=True)
""",
    "SECOND_GRADIENTS": """\
import torch
torch.backends.cudnn.enabled = False
torch.autograd.grad(y, x, create_graph=True)
""",
    "SHARDED_TRAINING": """\
import torch
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP

def start(model):
    torch.distributed.init_process_group("gloo")


def resume(model, optimizer, path, args, rank=0, options=None):
    model.load_state_dict(torch.load(path))
""",
    "STEP_TAKEN": """\
import torch


def train(model, optimizer, loader, device: torch.device, n: int):
    for step, (x, texts) in enumerate(loader):
        sent = torch.tensor([len(text) for text in texts]).cuda()
        loss.backward()
        optimizer.step()
""",
    "VALIDATION_SETTER": """\
from torch.distributions import Distribution, Normal
Distribution.set_default_validate_args(False)


class Net(nn.Module):
    def forward(self, x: torch.Tensor, std: torch.Tensor, options):
        return Normal(x, std)
""",
    "WEIGHTS_READ": """\
import torch

model.register_forward_hook(show)


class Layer(nn.Module):
    def __init__(self, width):
        self.attn = torch.nn.MultiheadAttention(width, 4)

    def forward(self, q, k, v, mask, options, need):
        y, _ = self.attn(q, k, v)
""",
    "WORKER_INFO": """\
from torch.utils.data import DataLoader, IterableDataset, get_worker_info
class Stream(IterableDataset):
    def __iter__(self):
        yield from shards(get_worker_info())
for x in DataLoader(Stream()):
    pass
""",
}


@pytest.mark.parametrize("name", sorted(SHOWN))
def test_each_mark_changes_something(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = ALONE.get(name)
    settings = active(*([alone] if alone else [rule.name for rule in all_rules()]))
    before = told(SHOWN[name], settings)
    is_in = Mark.is_in
    mark = MARKS[name]
    monkeypatch.setattr(Mark, "is_in", lambda self, code: self is not mark and is_in(self, code))
    assert told(SHOWN[name], settings) != before


def test_each_mark_is_shown_and_asked() -> None:
    assert sorted(SHOWN) == sorted(MARKS)
    asked = {
        node.func.value.id
        for folder in ("rules", "torchlint")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "is_in"
        if isinstance(node.func.value, ast.Name)
    }
    assert asked == MARKS.keys()


@pytest.mark.parametrize("name", sorted(MARKS))
def test_a_mark_is_documented(name: str) -> None:
    words = {word for text in MARKS[name].names for word in re.findall(r"\w+", text)} - OF_PYTHON
    assert {word for word in words if word not in documented_names()} == set()
