"""What valid CUDA programs do beyond plain tensors: the simulated device lets them, with the values of the host."""

from __future__ import annotations

import copy
import io
import os
import pickle
from collections.abc import Callable, Iterator
from unittest import mock

import numpy as np
import pytest
import torch
from torch import nn

from torchlint.verify.inside.sim import SimulatedDevice, simulated_cuda

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*(prototype stage|beta state|is deprecated|invariant checks)"),
    pytest.mark.filterwarnings("ignore:.*(using the device under|been deprecated)"),
]


@pytest.fixture(scope="module")
def device() -> Iterator[SimulatedDevice]:
    with simulated_cuda() as simulated:
        yield simulated


@pytest.fixture(autouse=True)
def _seeded(device: SimulatedDevice) -> None:
    torch.manual_seed(0)
    device.reset()


def network() -> nn.Module:
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(64, 2)).eval()


# Inference mode: what is made outside of it is no inference tensor, nor are its views; what is made inside is.

VIEWS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "a slice": lambda x: x[1:],
    "a view": lambda x: x.view(-1),
    "transposed": lambda x: x.T,
    "detached": lambda x: x.detach(),
    "a row": lambda x: x[0],
    "an alias": lambda x: x.to("cuda"),
}


@pytest.mark.parametrize("name", VIEWS)
def test_in_inference_mode_views_of_outer_tensors_are_as_on_the_host(name: str) -> None:
    host = torch.randn(3, 4)
    outer = host.cuda()
    with torch.inference_mode():
        view, expected = VIEWS[name](outer), VIEWS[name](host)
        assert view.is_cuda
        assert torch.equal(view.cpu(), expected.detach().cpu())
        assert view.is_inference() == (name != "an alias" and expected.is_inference())


def test_in_inference_mode_a_move_that_converts_is_on_the_device() -> None:
    with torch.inference_mode():
        moved = torch.ones(3).to("cuda", torch.float16)
        assert (moved.is_cuda, moved.dtype, moved.is_inference()) == (True, torch.float16, True)
        assert moved.cpu().tolist() == [1, 1, 1]


def test_in_inference_mode_models_compute_what_they_do_without() -> None:
    model, inputs = network(), torch.randn(2, 3, 6, 6)
    expected = model(inputs)
    model.cuda()
    with torch.inference_mode():
        out = model(inputs.cuda())
        state = model.state_dict()
    assert torch.allclose(out.cpu(), expected, atol=1e-6)
    assert all(value.is_cuda for value in state.values())
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        (out * torch.ones(2, device="cuda", requires_grad=True)).sum().backward()


def test_what_was_made_in_inference_mode_is_read_outside_of_it(device: SimulatedDevice) -> None:
    with torch.inference_mode():
        made = torch.arange(3.0, device="cuda")
    device.reset()
    assert made.cpu().tolist() == [0, 1, 2]
    assert (made @ made).item() == 5
    assert made[made > 0].shape == (2,)
    assert device.counts()["syncs"] == 3


def test_traced_modules_run() -> None:
    layer, inputs = nn.Linear(3, 2).cuda(), torch.ones(2, 3, device="cuda")
    assert torch.equal(torch.jit.trace(layer, inputs)(inputs).cpu(), layer(inputs).cpu())


def test_in_inference_mode_modules_move() -> None:
    layer = nn.Linear(3, 3)
    with torch.inference_mode():
        layer.to("cuda").half()
        assert layer.weight.is_cuda
        assert not layer.cpu().weight.is_cuda


def test_gradients_are_recorded_where_inference_mode_is_switched_off() -> None:
    layer = nn.Linear(3, 3).cuda()
    with torch.inference_mode(), torch.inference_mode(mode=False):
        layer(torch.ones(2, 3).cuda()).sum().backward()
    assert layer.weight.grad is not None


# Names of the device, and defaults.


def test_an_index_is_a_device() -> None:
    assert nn.Linear(3, 3).to(0).weight.is_cuda
    assert nn.Linear(3, 3).to(device=0).weight.is_cuda
    assert nn.Linear(3, 3, device=0).weight.is_cuda
    assert torch.zeros(3, device=0).is_cuda
    assert torch.full((2,), 1.0, device=torch.zeros(1).cuda().get_device()).is_cuda
    assert torch.device(0) == torch.device("cuda:0")
    with torch.device(0):
        assert torch.zeros(3).is_cuda


def test_a_device_is_still_a_device() -> None:
    device = torch.device("cuda", 0)
    assert isinstance(device, torch.device)
    assert not isinstance("cuda", torch.device)
    assert pickle.loads(pickle.dumps(device)) == copy.deepcopy(device) == device  # noqa: S301 - our own
    file = io.BytesIO()
    torch.save({"device": device}, file)
    file.seek(0)
    assert torch.load(file) == {"device": device}


@pytest.mark.parametrize("kind", ["torch.cuda.FloatTensor", torch.cuda.FloatTensor])
def test_a_default_tensor_type(kind: object) -> None:
    torch.set_default_tensor_type(torch.cuda.FloatTensor if kind is not str(kind) else kind)
    try:
        made = [torch.zeros(3), torch.tensor([1.0]), torch.Tensor([1.0]), torch.Tensor(3), nn.Linear(2, 2).weight]
        assert all(tensor.is_cuda for tensor in made)
        assert not torch.FloatTensor(3).is_cuda
        assert not torch.from_numpy(np.zeros(3)).is_cuda
    finally:
        torch.set_default_tensor_type("torch.FloatTensor")
    assert not torch.zeros(3).is_cuda
    assert not torch.Tensor([1.0]).is_cuda


def test_the_accelerator() -> None:
    accelerator = torch.accelerator.current_accelerator()
    assert accelerator is not None
    assert torch.zeros(1, device=accelerator).is_cuda
    assert torch.get_device_module() is torch.cuda
    assert torch.accelerator.memory.memory_allocated() == torch.accelerator.memory_allocated()
    with torch.Stream(device="cuda") as stream:
        stream.synchronize()


def test_numpy_takes_a_copy_if_it_may(device: SimulatedDevice) -> None:
    x = torch.arange(3.0, device="cuda", requires_grad=True)
    device.reset()
    assert x.numpy(force=True).tolist() == [0, 1, 2]
    assert device.counts()["syncs"] == 1
    with pytest.raises(TypeError, match="can't convert cuda:0"):
        x.detach().numpy()


# Sparse and nested tensors.


def test_sparse_tensors_compute_what_they_do_on_the_host() -> None:
    indices, values, dense = torch.tensor([[0, 1, 1], [2, 0, 2]]), torch.tensor([3.0, 4.0, 5.0]), torch.randn(3, 4)
    host = torch.sparse_coo_tensor(indices, values, (2, 3))
    expected = host @ dense
    for sparse in (
        host.cuda(),
        torch.sparse_coo_tensor(indices.cuda(), values.cuda(), (2, 3)),
        host.to_sparse_csr().cuda(),
    ):
        assert (sparse.is_cuda, sparse.layout is torch.strided) == (True, False)
        assert torch.allclose((sparse @ dense.cuda()).cpu(), expected)
        assert torch.equal(sparse.to_dense().cpu(), host.to_dense())
        assert "device='cuda:0'" in repr(sparse)
    assert host.cuda().coalesce().indices().is_cuda
    assert not host.cuda().cpu().is_cuda


@pytest.mark.parametrize("optimizer", [torch.optim.SparseAdam, torch.optim.SGD], ids=lambda kind: kind.__name__)
def test_sparse_gradients(optimizer: type[torch.optim.Optimizer]) -> None:
    def trained(place: str) -> torch.Tensor:
        torch.manual_seed(0)
        table = nn.Embedding(5, 2, sparse=True).to(place)
        steps = optimizer(table.parameters(), lr=0.1)
        for _ in range(2):
            steps.zero_grad()
            table(torch.tensor([1, 3, 1]).to(place)).square().sum().backward()
            assert table.weight.grad is not None
            assert table.weight.grad.is_sparse
            steps.step()
        return table.weight.detach().cpu()

    assert torch.allclose(trained("cuda"), trained("cpu"))


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged], ids=str)
def test_nested_tensors(layout: torch.layout) -> None:
    parts = [torch.randn(2, 4), torch.randn(3, 4)]
    layer = nn.Linear(4, 2)
    expected = [layer(part).detach() for part in parts]
    layer.cuda()
    made = torch.nested.nested_tensor(parts, layout=layout, device="cuda")
    moved = torch.nested.nested_tensor(parts, layout=layout).cuda()
    for nested in (made, moved):
        assert (nested.is_nested, nested.is_cuda, str(nested.device)) == (True, True, "cuda:0")
        with torch.no_grad():
            for out, wanted in zip(layer(nested).unbind(), expected, strict=True):
                assert torch.allclose(out.cpu(), wanted, atol=1e-6)
        assert nested.to_padded_tensor(0.0).shape == (2, 3, 4)


def test_gradients_of_nested_tensors() -> None:
    layer = nn.Linear(4, 2).cuda()
    parts = [torch.randn(2, 4), torch.randn(3, 4)]
    layer(torch.nested.nested_tensor(parts, layout=torch.jagged, device="cuda")).values().sum().backward()
    assert layer.weight.grad is not None
    with pytest.raises(NotImplementedError, match="no gradients of nested tensors"):
        layer(torch.nested.nested_tensor(parts, device="cuda"))


# One rank of NCCL.


def test_a_group_of_one_rank(device: SimulatedDevice) -> None:
    from torch import distributed
    from torch.nn.parallel import DistributedDataParallel

    with mock.patch.dict(os.environ, RANK="0", WORLD_SIZE="1", MASTER_ADDR="127.0.0.1", MASTER_PORT="0"):
        distributed.init_process_group("nccl")
    try:
        assert distributed.get_backend() == "nccl"
        x = torch.ones(3, device="cuda")
        gathered = [torch.zeros(3, device="cuda")]
        distributed.all_gather(gathered, x)
        device.reset()
        distributed.all_reduce(x)
        assert device.counts()["syncs"] == 0
        distributed.barrier()
        assert device.counts()["syncs"] == 1, "the host waits for it"
        assert torch.equal(x, gathered[0])
        model = DistributedDataParallel(nn.Linear(3, 2).cuda(), device_ids=[0])
        device.reset()
        with model.no_sync():
            model(torch.ones(2, 3)).sum().backward()
        assert device.counts()["syncs"] == 1, "inputs are moved"
        assert list(model.state_dict()) == ["module.weight", "module.bias"]
        objects: list[object] = [None]
        distributed.all_gather_object(objects, {"a": 1})
        assert objects == [{"a": 1}]
    finally:
        distributed.destroy_process_group()
