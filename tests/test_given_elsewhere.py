"""What calls give of functions and classes of other files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from test_inquiry import Capture, folder, found, write  # noqa: F401 - a fixture

from torchlint import pool
from torchlint.facts import Facts, Returned
from torchlint.project import Project, outline
from torchlint.semantics.values.lattice import (
    BATCH,
    BOTTOM,
    NUMBER,
    STRING,
    TENSOR,
    TOP,
    UNKNOWN,
    Device,
    Kind,
    Rank,
    Value,
    join,
    mapping_of,
    sequence,
    sequence_of,
    tensor,
    with_tensors,
)
from torchlint.semantics.values.other_files import heard, told

# Of what is no loader as far as is known it is a note.
WARNED = ("--select", "TL203", "--level", "warning")

LANGUAGE = """\
import torch


class Corpus:
    def get_data(self, path, size):
        ids = torch.LongTensor(read(path))
        return ids.view(size, -1)
"""
MAIN = """\
import torch
from data import Corpus

device = torch.device("cuda")
corpus = Corpus()
ids = corpus.get_data("train.txt", 20)
for epoch in range(9):
    for i in range(0, ids.size(1), 30):
        inputs = ids[:, i : i + 30].to(device)
        loss = network(inputs)
        loss.backward()
"""


def test_a_method_of_another_file_gives_a_tensor_of_the_host(folder: Path, capsys: Capture) -> None:  # noqa: F811
    write(folder, main=MAIN)
    assert found(capsys, "--select", "TL203", ".") == []
    write(folder, data=LANGUAGE)
    for _ in range(2):  # the second time from the cache
        assert found(capsys, "--select", "TL203", ".") == [("main.py", "TL203", "per batch", None)]
    write(folder, data=LANGUAGE.replace("size, -1)", 'size, -1).to("cuda")'))
    assert found(capsys, "--select", "TL203", ".") == []


def test_it_is_the_same_where_only_the_file_that_asks_is_checked(folder: Path, capsys: Capture) -> None:  # noqa: F811
    write(folder, main=MAIN, data=LANGUAGE)
    assert found(capsys, "--select", "TL203", "main.py") == [("main.py", "TL203", "per batch", None)]


PER_IMAGE = """\
import torch


def hinge(x, y):
    return torch.dot(x.view(-1).relu(), y.view(-1))


def per_image(logits, labels):
    return sum(hinge(a.unsqueeze(0), b.unsqueeze(0)) for a, b in zip(logits, labels))
"""
PASSING = """\
import torch
from losses import per_image

for x, y in torch.utils.data.DataLoader(data):
    out = net(x.cuda())
    per_image({out}, {wanted}).backward()
"""


@pytest.mark.parametrize(
    ("out", "wanted", "known"),
    [("out.squeeze(1)", "y.cuda()", 1), ("out.squeeze(1)", "net(y)", 0), ("out", "net(y)", 0)],
)
def test_what_another_file_passes_is_as_sure_as_it_is_there(
    folder: Path,  # noqa: F811
    capsys: Capture,
    out: str,
    wanted: str,
    known: int,
) -> None:
    """A network may give a list of anything; what is squeezed is a tensor, and so is what was moved beside it."""
    write(folder, losses=PER_IMAGE, main=PASSING.format(out=out, wanted=wanted))
    for _ in range(2):  # the second time from the cache
        said = found(capsys, "--select", "TL901", ".")
        assert [each[:2] for each in said] == [("losses.py", "TL901")] * known


TRAIN = """\
import torch
from {module} import {name}


def fit(w, optimizer, path):
    for x, y in {name}(path):
        loss = w(x.cuda(), y.cuda())
        loss.backward()
        optimizer.step()
"""
EXPECTED = {("train.py", "TL203", "per batch")}
FACTORY = """\
from torch.utils.data import DataLoader


def {name}(path):
    return DataLoader(read(path), 8, num_workers=4, pin_memory=True)
"""


@pytest.mark.parametrize("handed_on", [False, True])
def test_a_loader_by_whatever_name_its_maker_has(folder: Path, capsys: Capture, handed_on: bool) -> None:  # noqa: F811, FBT001
    write(folder, train=TRAIN.format(module="parts", name="qwk"))
    assert found(capsys, *WARNED, ".") == []
    write(folder, **{"makers" if handed_on else "parts": FACTORY.format(name="qwz" if handed_on else "qwk")})
    if handed_on:  # known in the second round alone
        write(folder, parts="from makers import qwz\n\n\ndef qwk(path):\n    return qwz(path)\n")
    assert {each[:3] for each in found(capsys, *WARNED, ".")} == EXPECTED


def test_a_package_hands_on_what_it_imports(folder: Path, capsys: Capture) -> None:  # noqa: F811
    (folder / "parts").mkdir()
    write(folder, train=TRAIN.format(module="parts", name="qwk"), **{"parts/__init__": "from .makers import qwk\n"})
    write(folder, **{"parts/makers": FACTORY.format(name="qwk")})
    assert {each[:3] for each in found(capsys, *WARNED, ".")} == EXPECTED


def test_files_that_call_each_other_in_a_circle_come_to_an_end(folder: Path, capsys: Capture) -> None:  # noqa: F811
    write(folder, one="from two import b\n\n\ndef a():\n    return b()\n")
    write(folder, two="from one import a\n\n\ndef b():\n    return a()\n", train=TRAIN.format(module="one", name="a"))
    assert found(capsys, *WARNED, ".") == []


NETWORKS = """\
import torch.nn as nn


class Qwz(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 8))

    def forward(self, x):
        return self.layers(x)
"""
STARRED = """\
import torch
from networks import *

qwj = Qwz().cuda()
qwk = Qwz().cuda()
optimizer = torch.optim.SGD(qwj.parameters(), 0.1)
for x, y in torch.utils.data.DataLoader(rows, 8, num_workers=4, pin_memory=True):
    x = x.to("cuda", non_blocking=True)
    known = qwk(x).detach()
    loss = (qwj(x) - known).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_a_network_that_a_star_brings(folder: Path, capsys: Capture) -> None:  # noqa: F811
    write(folder, main=STARRED)
    assert found(capsys, "--select", "TL401", ".") == []
    write(folder, networks=NETWORKS)
    assert found(capsys, "--select", "TL401", ".") == [("main.py", "TL401", "per batch", None)]


def test_a_file_is_parsed_once_where_it_is_linted_and_asked(
    folder: Path,  # noqa: F811
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of many files each says what its functions give when it is linted: nobody waits for a second parse."""
    alone: list[str] = []

    def noted(job: pool.Job) -> pool.Outcome:
        if not job.lints:
            alone.append(job.shown)
        return original(job)

    original = pool.outcome
    monkeypatch.setattr(pool, "outcome", noted)
    write(folder, train=TRAIN.format(module="parts", name="qwk"), parts=FACTORY.format(name="qwk"))
    write(folder, **{f"other{number}": "import torch\nx = torch.ones(3).cuda()\n" for number in range(20)})
    assert {each[:3] for each in found(capsys, *WARNED, "--no-cache", ".")} == EXPECTED
    assert alone == []


@pytest.mark.parametrize(
    ("text", "name", "is_called"),
    [
        ("from parts import make\nmake()\n", "parts", True),
        ("from parts import make\nprint(make)\n", "parts", False),
        ("import parts\nparts.make()\n", "parts", True),
        ("from parts import *\nmake()\n", "parts", True),
        ("from parts import *\nprint(make)\n", "parts", False),
        ("import parts\nparts.other()\n", "parts", False),
        ("print()\n", "parts", False),
    ],
)
def test_who_may_call_anything(text: str, name: str, is_called: bool) -> None:  # noqa: FBT001
    files = {"parts.py": outline(b"def make(): pass\n"), "main.py": outline(text.encode())}
    assert Project(files).is_called(f"{name}.py") is is_called


@pytest.mark.parametrize(
    ("chosen", "is_known"),
    [
        ("DataLoader if small else Endless", True),
        ("Endless if small else DataLoader if other else Endless", True),
        ("DataLoader if small else pick()", False),
        ("DataLoader if small else Unheard", False),
    ],
)
def test_one_of_several_loaders_is_a_loader(
    chosen: str,
    folder: Path,  # noqa: F811
    capsys: Capture,
    *,
    is_known: bool,
) -> None:
    main = f"""\
import torch
from torch.utils.data import DataLoader
from data import Endless

def made(data, small):
    kind = {chosen}
    return kind(data, batch_size=4, num_workers=2)

def train(model, data, device):
    model = model.to(device)
    for x, y in made(data, True):
        model(x.to(device)).mean().backward()
"""
    write(folder, main=main, data="from torch.utils.data import DataLoader\n\nclass Endless(DataLoader):\n    pass\n")
    assert bool(found(capsys, *WARNED, ".")) is is_known


# A value on its way


@pytest.mark.parametrize(
    "value",
    [
        TENSOR,
        BATCH,
        tensor(Device.MAYBE, scalar=True, rank=Rank.USED),
        join([TENSOR, UNKNOWN]),
        join([TENSOR, NUMBER]),
        sequence(TENSOR, NUMBER, sequence_of(BATCH)),
        mapping_of(tensor(Device.CPU)),
        Value(Kind.LOADER, qualified="torch.utils.data.DataLoader", item=sequence_of(UNKNOWN)),
    ],
)
def test_a_value_arrives_as_it_was(value: Value) -> None:
    returned = told(value)
    assert returned is not None
    assert heard(returned) == value


@pytest.mark.parametrize(
    "value",
    [UNKNOWN, BOTTOM, TOP, NUMBER, STRING, Value(Kind.OBJECT), Value(Kind.NONE), sequence_of(NUMBER), sequence()],
)
def test_what_says_nothing_of_tensors_is_not_told(value: Value) -> None:
    assert told(value) is None


def test_a_network_may_have_been_moved_since() -> None:
    returned = told(Value(Kind.MODULE, Device.CPU))
    assert returned is not None
    assert heard(returned).device is Device.UNKNOWN


def test_names_of_that_file_stay_there() -> None:
    returned = told(Value(Kind.MODULE, qualified="networks.Net"))
    assert returned is not None
    assert returned.qualified == ""


def test_what_methods_give_is_told_of_any_object() -> None:
    methods = (("batch", Returned("TENSOR", int(Device.CPU), int(Rank.PROVEN))),)
    returned = told(Value(Kind.OBJECT), methods)
    assert returned is not None
    assert returned.methods == methods
    assert Facts(returns=(("data.Corpus", returned),)).returned("data.Corpus") == returned


def test_tensors_inside_of_containers() -> None:
    def on_the_gpu(part: Value) -> Value:
        return replace(part, devices=Device.ACCELERATOR)

    changed = with_tensors(sequence(TENSOR, NUMBER, mapping_of(TENSOR)), on_the_gpu)
    there = on_the_gpu(TENSOR)
    assert changed == sequence(there, NUMBER, mapping_of(there))
    assert with_tensors(NUMBER, on_the_gpu) is NUMBER


@pytest.mark.parametrize(("layer", "count"), [("None", 0), ("torch.nn.Linear(8, 8)", 1)])
def test_a_network_of_another_file_that_holds_no_parameters(
    folder: Path,  # noqa: F811
    capsys: Capture,
    layer: str,
    count: int,
) -> None:
    sampler = f"""
import torch
class Sampler(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = {layer}
    def forward(self, logits):
        return logits.softmax(-1).argmax(-1)
"""
    runner = """
import torch
from sampler import Sampler
class Runner:
    def __init__(self):
        self.sampler = Sampler()
    def run(self, logits):
        return self.sampler(logits).tolist()
"""
    write(folder, sampler=sampler, runner=runner)
    assert len(found(capsys, "--select", "TL401", ".")) == count


@pytest.mark.parametrize(("decorator", "count"), [("@torch.inference_mode()", 0), ("@torch.no_grad()", 0), ("", 1)])
def test_a_network_of_another_file_that_turns_autograd_off(
    folder: Path,  # noqa: F811
    capsys: Capture,
    decorator: str,
    count: int,
) -> None:
    network = f"""
import torch
class Net(torch.nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.head = torch.nn.Linear(8, 8).cuda()
    {decorator}
    def forward(self, ids, cache=None):
        return self.head(ids.float())
"""
    perplexity = """
import torch
from network import Net
model = Net(4)
def ppl_test(rows):
    total = 0.0
    for i in range(rows.shape[0]):
        logits = model.forward(rows[i : i + 1])
        total += torch.nn.functional.log_softmax(logits, -1).sum().item()
    return total
print(ppl_test(torch.load("rows.pt")))
"""
    write(folder, network=network, perplexity=perplexity)
    assert len(found(capsys, "--select", "TL401", ".")) == count


SAMPLING = """\
import torch


def schedule(n, device):
    return torch.linspace(0, 1, n).to(device)


@torch.no_grad()
def sample(model, x, sigmas):
    total = 0
    for i in range(len(sigmas)):
        x = model(x, sigmas[i])
        total += sigmas[i].item()
    return x, total
"""
SAMPLED = """\
import torch
{imported}


def main(model):
    device = torch.device("{device}")
    sigmas = {through}schedule(50, device)
    for x in batches():
        {through}sample(model, x, sigmas)
"""


@pytest.mark.parametrize(("imported", "through"), [("import k as K", "K.sampling."), ("from k.sampling import *", "")])
def test_what_a_file_is_given_it_passes_on(folder: Path, capsys: Capture, imported: str, through: str) -> None:  # noqa: F811
    (folder / "k").mkdir()
    write(folder, **{"k/__init__": "from . import sampling\n", "k/sampling": SAMPLING})
    write(folder, main=SAMPLED.format(imported=imported, through=through, device="cuda"))
    assert [each[:2] for each in found(capsys, "--level", "warning", "--select", "TL302", ".")] == [
        ("k/sampling.py", "TL302")
    ]
    write(folder, main=SAMPLED.format(imported=imported, through=through, device="cpu"))
    assert found(capsys, "--level", "warning", "--select", "TL302", ".") == []


STEP = """\
class Trainer:
    def __init__(self, net, optimizer):
        self.net, self.optimizer = net, optimizer

    def train_step(self, x):
        self.optimizer.zero_grad()
        loss = self.net(x.cuda()).mean()
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def show(self, x):
        return self.net(x.cuda()).mean().item()
"""
STEPS = """\
import torch
from steps import Trainer

trainer = Trainer(net, torch.optim.SGD(net.parameters()))
for i, x in enumerate(torch.utils.data.DataLoader(held, num_workers=4)):
    if i % every == 0:
        trainer.train_step(x)
        trainer.show(x)
"""


def test_a_step_that_only_some_batches_call_is_one_of_the_training(folder: Path, capsys: Capture) -> None:  # noqa: F811
    write(folder, steps="import torch\n\n\n" + STEP, main=STEPS)
    assert [each[1:3] for each in found(capsys, "--select", "TL301", ".")] == [("TL301", "per batch")]


@pytest.mark.parametrize("made", ["Mel(size=n)", "Mel().cuda()", "Mel(n).to(device).eval()"])
@pytest.mark.parametrize(
    ("held", "count"),
    [
        ("self.register_buffer('basis', torch.ones(3))\n        self.size = size", 0),
        ("self.out = torch.nn.Linear(3, 3)", 1),
    ],
)
def test_a_network_of_another_file_without_parameters(
    folder: Path,  # noqa: F811
    capsys: Capture,
    made: str,
    held: str,
    count: int,
) -> None:
    mel = f"import torch\n\n\nclass Mel(torch.nn.Module):\n    def __init__(self, size=80):\n        super().__init__()\n        {held}\n"
    train = f"import torch\nfrom mel import Mel\n\nfft = {made}\nkept = []\nfor x, y in loader:\n    kept.append(fft(x.cuda()).detach())\n"
    write(folder, mel=mel, train=train)
    assert len(found(capsys, "--select", "TL401", ".")) == count


EVALUATED = """\
import torch
from torch.utils.data import DataLoader
from models import Net
from toolbox import score


def evaluate(model, loader):
    model.eval()
    total = 0
    with torch.no_grad():
        for batch in loader:
            pairs = torch.cat((batch["first"], batch["second"]), dim=0)
            scores = score(model, pairs)
            total += (scores[:8] - scores[8:]).float().mean().item()
    return total


if __name__ == "__main__":
    evaluate(Net(), DataLoader(corpus, num_workers=2))
"""


@pytest.mark.parametrize("is_used", [True, False])
def test_a_trial_on_the_cpu_says_nothing_of_what_others_pass(folder: Path, capsys: Capture, is_used: bool) -> None:  # noqa: F811, FBT001
    write(folder, models="import torch\n\n\nclass Net(torch.nn.Module):\n    pass\n", evaluation=EVALUATED)
    if is_used:
        use = "import torch\nfrom evaluation import evaluate\n\nfor epoch in range(9):\n    evaluate(prepared(net), loader)\n"
        write(folder, train=use)
    assert [code for _, code, *_ in found(capsys, "--select", "TL302", ".")] == ["TL302"] * is_used


SELECTOR = """\
import torch


class Selector:
    def {method}(self, x):
        return self.padded(x)

    def padded(self, x):
        return x + torch.zeros(x.shape[0]).to(x.device)
"""
LOSS = """\
import torch


class Loss(torch.nn.Module):
    def __init__(self, selector):
        super().__init__()
        self.selector = selector

    def forward(self, x):
        return self.selector.{method}(x)
"""


@pytest.mark.parametrize(
    ("method", "other", "is_known"),
    [("pick_pairs", "choose", True), ("pick_pairs", "pick_pairs", False), ("sample", "choose", False)],
)
def test_a_method_of_a_name_of_its_own_is_called_by_that(
    folder: Path,  # noqa: F811
    capsys: Capture,
    method: str,
    other: str,
    *,
    is_known: bool,
) -> None:
    names = {"selectors": SELECTOR.format(method=method), "losses": LOSS.format(method=method)}
    write(
        folder,
        **names,
        others=f"import torch\n\n\nclass Other:\n    def {other}(self):\n        return torch.ones(3)\n",
    )
    assert found(capsys, "--select", "TL201", "--level", "warning", ".") == []
    seen = found(capsys, "--select", "TL201", ".")
    where = ("selectors.py", "TL201", "per batch", "losses.py:10")
    assert (where in seen) is is_known


ENCODER = """\
import torch
from torch import nn


class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(8, 4), nn.Linear(4, 8)

    def forward(self, x):
        return self.decoder(self.encoder(x))

    def step(self, loss):
        loss.backward()

    {decorator}
    def encode(self, x):
        {body}
"""
EXTRACTING = """\
import torch
from coder import Coder


def extract(model, loader):
    codes = []
    for x in loader:
        codes.append(model.{method}(x.cuda()).detach().cpu())
    return torch.cat(codes)


def main(loader):
    extract(Coder().cuda(), loader)
"""


@pytest.mark.parametrize(
    ("decorator", "body", "method", "count"),
    [
        ("", "return self.encoder(x)", "encode", 1),
        ("", "h = self.encoder(x)\n        return h.relu()", "encode", 1),
        ("@torch.no_grad()", "return self.encoder(x)", "encode", 0),
        ("", "with torch.no_grad():\n            return self.encoder(x)", "encode", 0),
        ("", "return x.mean(1)", "encode", 0),
        ("", "loss = self.encoder(x).sum()\n        loss.backward()\n        return loss", "encode", 0),
        ("", "loss = self.encoder(x).sum()\n        self.step(loss)\n        return loss", "encode", 0),
        ("", "return self.encoder(x)", "decode", 0),
    ],
)
def test_a_method_of_a_network_of_another_file_records(
    folder: Path,  # noqa: F811
    capsys: Capture,
    decorator: str,
    body: str,
    method: str,
    count: int,
) -> None:
    coder = ENCODER.format(decorator=decorator, body=body)
    write(folder, coder=coder, extract=EXTRACTING.format(method=method))
    assert len(found(capsys, "--select", "TL401", ".")) == count
