"""What a capture keeps of the values of a run."""

from __future__ import annotations

import subprocess
import sys
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from torchlint.verify.inside import capture
from torchlint.verify.inside.capture import Capture, Fact, flatten
from torchlint.verify.inside.compare import compare
from torchlint.verify.inside.leaves import leaves
from torchlint.verify.inside.randomness import DrawOnCpu

Pair = namedtuple("Pair", ["mean", "std"])  # noqa: PYI024 - untyped ones are met


@dataclass
class Output:
    loss: torch.Tensor
    logits: torch.Tensor | None = None


class ModelOutput(OrderedDict[str, torch.Tensor]):
    """As transformers' class of this name."""


class Colour(Enum):
    RED = 1


class Scheduler:
    def state_dict(self) -> dict[str, int]:
        return {"last_epoch": 3}


class Broken:
    def state_dict(self) -> None:
        raise RuntimeError("no")


def captured(value: object, inputs: object = None) -> Capture:
    capture = Capture()
    capture.add(value, inputs=inputs)
    return capture


def fact(value: object) -> Fact:
    return captured(value).facts["step0"]


def test_the_way_to_every_value_is_its_name() -> None:
    value = {
        "list": [torch.ones(2), (1, 2.5)],
        "pair": Pair(torch.zeros(1), "text"),
        "output": Output(torch.tensor(3.0)),
        "model": ModelOutput(loss=torch.tensor(4.0)),
        "none": None,
    }
    expected = {
        "out['list'][0]": torch.ones(2),
        "out['list'][1][0]": torch.tensor(1),
        "out['list'][1][1]": torch.tensor(2.5, dtype=torch.float64),
        "out['pair'].mean": torch.zeros(1),
        "out['pair'].std": "text",
        "out['output'].loss": torch.tensor(3.0),
        "out['output'].logits": None,
        "out['model']['loss']": torch.tensor(4.0),
        "out['none']": None,
    }
    found = dict(flatten(value))
    assert list(found) == list(expected)
    for path, data in found.items():
        assert type(data) is type(expected[path])
        if isinstance(data, torch.Tensor):
            torch.testing.assert_close(data, expected[path], rtol=0, atol=0)
        else:
            assert data == expected[path]


@pytest.mark.parametrize(
    ("value", "kind", "stored"),
    [
        (3, "int", torch.tensor(3)),
        (True, "bool", torch.tensor(1)),
        (0.1, "float", torch.tensor(0.1, dtype=torch.float64)),
        (1 + 2j, "complex", torch.tensor(1 + 2j, dtype=torch.complex128)),
        (np.float32(0.5), "numpy.float32", torch.tensor(0.5)),
        (np.arange(3), "numpy.ndarray", torch.arange(3)),
        (np.arange(6)[::-2], "numpy.ndarray", torch.tensor([5, 3, 1])),
        (nn.Parameter(torch.ones(1)), "parameter", torch.ones(1)),
        (torch.ones(2).to_sparse(), "tensor", torch.ones(2)),
        ([0.5] * 100, "list of float", torch.full((100,), 0.5, dtype=torch.float64)),
    ],
)
def test_numbers_become_tensors_and_their_type_is_kept(value: object, kind: str, stored: torch.Tensor) -> None:
    capture = captured(value)
    assert capture.facts["step0"].kind == kind
    assert capture.values["step0"].dtype == stored.dtype
    assert torch.equal(capture.values["step0"], stored)


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        ("a", "str", "a"),
        (b"a", "bytes", "b'a'"),
        (2**70, "int", str(2**70)),
        (torch.float16, "dtype", "torch.float16"),
        (torch.device("cpu"), "device", "device(type='cpu')"),
        (torch.ones(2, 3).shape, "Size", "torch.Size([2, 3])"),
        (Colour.RED, "Colour", "Colour.RED"),
        (Path("a"), type(Path("a")).__name__, "a"),
    ],
)
def test_what_is_no_number_becomes_a_text(value: object, kind: str, text: str) -> None:
    capture = captured(value)
    assert (capture.facts["step0"].kind, capture.texts["step0"], capture.values) == (kind, text, {})


def test_a_capture_is_not_changed_by_what_happens_later() -> None:
    tensor = torch.zeros(3)
    capture = captured({"tensor": tensor, "array": tensor.numpy()})
    tensor += 1
    assert not any(value.any() for value in capture.values.values())


def test_modules_and_optimizers_are_their_states() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model(torch.randn(4, 2)).sum().backward()
    optimizer.step()
    capture = captured([optimizer, model, Scheduler()])
    assert "step0[0].state[0.weight]['momentum_buffer']" in capture.values
    assert torch.equal(capture.values["step0[1].0.weight"], model[0].weight)
    assert capture.values["step0[1].1.num_batches_tracked"] == 1
    assert capture.texts["step0[1]"] == "training"
    assert capture.values["step0[2]['last_epoch']"] == 3
    assert not any("fused" in path or "params" in path.split(".")[-1] for path in capture.values)
    assert captured(optimizer, inputs={"model": model}).values.keys() >= {"step0.state[0.weight]['momentum_buffer']"}
    assert "step0.state[0]['momentum_buffer']" in captured(optimizer).values


def test_an_optimizers_implementation_is_no_part_of_its_state() -> None:
    captures = []
    for options in ({"foreach": False}, {"foreach": True}, {"fused": True}):
        weight = nn.Parameter(torch.ones(3))
        optimizer = torch.optim.Adam([weight], lr=0.1, **options)
        weight.sum().backward()
        optimizer.step()
        captures.append(captured(optimizer))
    assert captures[0].facts == captures[1].facts == captures[2].facts


@pytest.mark.parametrize("value", [object(), Broken(), lambda: 1, iter([1]), Scheduler, np.array(["a"], dtype=object)])
def test_what_is_unknown_is_named(value: object) -> None:
    capture = captured({"x": 1, "it": value})
    assert len(capture.skipped) == 1
    assert capture.skipped[0].startswith("step0['it']: ")
    assert "step0['x']" in capture.values


def test_what_holds_itself_ends() -> None:
    value: list[object] = [1]
    value.append({"again": value})
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    capture = captured([value, deep])
    assert capture.skipped[0] == "step0[0][1]['again']: list that holds itself"
    assert capture.skipped[1].endswith("too deep")


def test_a_value_that_is_held_twice_is_found_twice() -> None:
    one = [torch.ones(1)]
    assert [leaf.path for leaf in leaves([one, one]) if leaf.kind == "tensor"] == ["out[0][0]", "out[1][0]"]


def test_devices_gradients_and_layouts_are_facts() -> None:
    assert fact(torch.ones(2, requires_grad=True)) == Fact("tensor", "value", "cpu", grad=True, layout="contiguous")
    assert fact(torch.ones(2, 3).t()).layout == "strided"
    assert fact(torch.ones(1, 3).expand(2, 3)).layout == "expanded"
    assert fact(torch.ones(2, 3, 4, 4).to(memory_format=torch.channels_last)).layout == "channels_last"
    assert fact(torch.ones(2).to_sparse()).layout == "torch.sparse_coo"
    assert captured(torch.ones(2, device="meta")).skipped == ["step0: tensor"]


def test_shared_memory_is_found() -> None:
    base = torch.zeros(4, 4)
    array = np.zeros(3, dtype=np.float32)
    results = {"a": base, "b": base[1:], "c": base.clone(), "d": torch.from_numpy(array), "e": base.T}
    capture = captured(results, inputs={"array": array, "other": torch.zeros(1)})
    assert capture.shared == [["input['array']", "step0['d']"], ["step0['a']", "step0['b']", "step0['e']"]]
    assert captured(torch.ones(1).expand(3)).shared == [["step0"]]
    assert captured([torch.ones(3), torch.ones(3), torch.ones(0), torch.ones(0)]).shared == []
    model = nn.Linear(2, 2)
    model.second = nn.Linear(2, 2)
    model.second.weight = model.weight
    assert captured(model).shared == [["step0.second.weight", "step0.weight"]]


def test_steps_are_counted_and_fingerprinted() -> None:
    capture = Capture()
    capture.add(torch.ones(1))
    capture.add(torch.ones(1))
    torch.rand(1)
    capture.add(torch.ones(1), name="last")
    assert list(capture.values) == ["step0", "step1", "last"]
    assert capture.rng[0] == capture.rng[1] != capture.rng[2]
    assert not capture.host_draws
    with DrawOnCpu():
        capture.add(1)
    assert capture.host_draws


def test_a_file_gives_back_what_was_saved(tmp_path: Path) -> None:
    capture = captured({"x": torch.randn(3), "m": nn.Linear(1, 1), "s": "text", "n": None, "o": object()})
    capture.stdout = "a line\n"
    capture.save(tmp_path / "file.pt")
    loaded = Capture.load(tmp_path / "file.pt")
    assert all(torch.equal(value, loaded.values[path]) for path, value in capture.values.items())
    for name in ("texts", "facts", "shared", "skipped", "rng", "host_draws", "escaped", "stdout"):
        assert getattr(loaded, name) == getattr(capture, name)


def test_another_file_is_refused(tmp_path: Path) -> None:
    torch.save({"values": {}}, tmp_path / "file.pt")
    with pytest.raises(ValueError, match="not a capture"):
        Capture.load(tmp_path / "file.pt")


@pytest.mark.slow
def test_numpy_is_not_loaded() -> None:
    code = (
        "import sys; sys.modules['numpy'] = None\n"
        "import warnings; warnings.simplefilter('ignore')\n"
        "import torch\n"
        "del sys.modules['numpy']\n"
        "from torchlint.verify.inside.capture import Capture\n"
        "c = Capture(); c.add([torch.ones(2), 1, 'a'])\n"
        "print(sorted(c.values), 'numpy' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['step0[0]', 'step0[1]'] False\n"


class TestLarge:
    """Of a tensor of more than `LARGEST` bytes a sample is kept, and means that hold every element."""

    SIZE = 1 << 16

    @pytest.fixture(autouse=True)
    def _small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(capture, "LARGEST", 1 << 12)

    def kept(self, value: object) -> Capture:
        made = Capture()
        made.add(value)
        return made

    def test_little_is_kept_and_read_again(self, tmp_path: Path) -> None:
        x = torch.randn(256, self.SIZE // 256)
        made = self.kept({"x": x})
        made.save(tmp_path / "c.pt")
        assert (tmp_path / "c.pt").stat().st_size < 1 << 16 < x.numel() * 4
        assert Capture.load(tmp_path / "c.pt").texts == {"step0['x'] (shape)": f"[256, {self.SIZE // 256}]"}

    def test_the_same_is_the_same(self) -> None:
        x = torch.randn(self.SIZE)
        assert compare(self.kept(x), self.kept(x.clone()), "exact")["verdict"] == "same"
        noisy = x * (1 + 1e-7)
        assert compare(self.kept(x), self.kept(noisy), "close")["verdict"] == "same-within-class"

    @pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64])
    def test_one_wrong_element_is_found(self, dtype: torch.dtype) -> None:
        x = (torch.randn(self.SIZE) * 100).to(dtype)
        other = x.clone()
        other[12345] += 1000
        assert compare(self.kept(x), self.kept(other), "exact")["verdict"] == "wrong"
        assert compare(self.kept(x), self.kept(other), "close")["verdict"] == "wrong"

    def test_another_shape_or_order_is_found(self) -> None:
        x = torch.randn(256, self.SIZE // 256)
        assert compare(self.kept(x), self.kept(x.reshape(-1)), "close")["verdict"] == "wrong"
        assert compare(self.kept(x), self.kept(x.flip(0)), "close")["verdict"] == "wrong"
        swapped = x.reshape(-1, 2).flip(1).reshape(x.shape)
        assert compare(self.kept(x), self.kept(swapped), "close")["verdict"] == "wrong"

    def test_what_has_strides_of_zero_is_no_larger_than_it_says(self) -> None:
        made = self.kept(torch.zeros(1).expand(1 << 24))
        assert sum(value.numel() for value in made.values.values()) < 1 << 14


def test_lists_of_numbers_in_rows_are_one_value() -> None:
    rows = [[float(index), 1.0, 2.0] for index in range(1000)]
    made = Capture()
    made.add({"rows": rows, "ragged": [[1.0], [1.0, 2.0]]})
    assert made.values["step0['rows']"].shape == (1000, 3)
    assert sum("ragged" in path for path in made.values) > 1
    other = Capture()
    other.add({"rows": [*rows[:-1], [999.0, 1.0, 3.0]], "ragged": [[1.0], [1.0, 2.0]]})
    assert compare(made, other, "exact")["verdict"] == "wrong"
