"""The simulated device computes what the host computes, and looks like CUDA to the program."""

from __future__ import annotations

import copy
import io
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint

from torchlint.verify.inside.sim import SimulatedDevice, simulated_cuda

CUDA = torch.device("cuda", 0)


@pytest.fixture(scope="module")
def device() -> Iterator[SimulatedDevice]:
    with simulated_cuda() as simulated:
        yield simulated


@pytest.fixture(autouse=True)
def _seeded(device: SimulatedDevice) -> None:
    torch.manual_seed(0)
    device.reset()


def test_a_tensor_says_it_is_on_the_device() -> None:
    x = torch.ones(2, 3, device="cuda")
    assert x.device == CUDA
    assert x.is_cuda
    assert not x.is_cpu
    assert not x.is_meta
    assert x.get_device() == 0
    assert x.type() == "torch.cuda.FloatTensor"
    assert isinstance(x, torch.Tensor)
    assert torch.is_tensor(x)
    assert repr(type(x)) == "<class 'torch.Tensor'>"
    assert x.cpu().device.type == "cpu"
    assert type(x.cpu()) is torch.Tensor
    assert repr(x) == "tensor([[1., 1., 1.],\n        [1., 1., 1.]], device='cuda:0')"


def test_views_share_memory() -> None:
    x = torch.zeros(4, device="cuda")
    x[1:3] = 1
    view = x.view(2, 2)
    view[0, 0] = 5
    assert x.tolist() == [5, 1, 1, 0]
    assert view.data_ptr() == x.data_ptr()


INDICES = [
    [1, 2],
    [],
    [-1],
    [True, False, True, False],
    ([0, 1], slice(None), [1, 2]),
    (slice(None), [1, 2]),
    (..., [0, 1]),
    (None, [0, 1]),
    (slice(None), 1),
    ([[0, 1], [1, 2]],),
    torch.tensor([1, 2]),
    (torch.tensor([1, 2]), [0, 1]),
]


@pytest.mark.parametrize("index", INDICES, ids=str)
def test_indices(index: object) -> None:
    host = torch.randn(4, 5, 6)
    x = host.cuda()
    assert torch.equal(x[index].cpu(), host[index])
    x[index] = 5
    host[index] = 5
    assert torch.equal(x.cpu(), host)


def test_operators_that_change_a_shape_in_place() -> None:
    x = torch.arange(6, device="cuda").view(2, 3)
    x.t_()
    x.unsqueeze_(0)
    assert x.shape == (1, 3, 2)
    assert x.tolist() == [[[0, 3], [1, 4], [2, 5]]]
    square = torch.arange(4, device="cuda").view(2, 2)
    square.t_()
    assert not square.is_contiguous()
    assert square.reshape(-1).tolist() == [0, 2, 1, 3]
    out = torch.empty(0, device="cuda")
    torch.add(x, x, out=out)
    assert out.shape == (1, 3, 2)
    assert out[0, 2, 1].item() == 10


def test_numpy_is_refused() -> None:
    x = torch.ones(2, device="cuda")
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
        x.numpy()
    with pytest.raises(TypeError, match="can't convert cuda:0"):
        np.asarray(x)


def test_devices_are_not_mixed() -> None:
    x, host = torch.ones(2, 2, device="cuda"), torch.ones(2, 2)
    operations: list[Callable[[], object]] = [
        lambda: x + host,
        lambda: host @ x,
        lambda: torch.cat([x, host]),
        lambda: nn.Linear(2, 2)(x),
        lambda: nn.Linear(2, 2).cuda()(host),
        lambda: torch.where(x > 0, x, host),
    ]
    for operation in operations:
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
            operation()


def test_random_numbers_are_those_of_the_host() -> None:
    torch.manual_seed(1)
    moved = torch.rand(5).cuda()
    torch.manual_seed(1)
    made = torch.rand(5, device="cuda")
    assert torch.equal(moved, made)
    generator = torch.Generator(device="cuda").manual_seed(3)
    first = torch.randn(3, device="cuda", generator=generator)
    generator.manual_seed(3)
    assert torch.equal(first, torch.randn(3, device="cuda", generator=generator))


def test_the_state_of_the_generator_goes_back() -> None:
    state = torch.cuda.get_rng_state()
    first = torch.rand(3, device="cuda")
    torch.cuda.set_rng_state(state)
    assert torch.equal(first, torch.rand(3, device="cuda"))


def test_gradients_flow_across_moves() -> None:
    weight = torch.tensor([1.0, 2.0], requires_grad=True)
    ((weight.cuda() * torch.tensor([3.0, 4.0], device="cuda")).cpu() * 2).sum().backward()
    assert weight.grad is not None
    assert weight.grad.tolist() == [6, 8]
    assert weight.grad.device.type == "cpu"


def test_a_leaf_on_the_device_has_its_gradient_there() -> None:
    x = torch.ones(3, device="cuda", requires_grad=True)
    (x * x).sum().backward()
    assert x.is_leaf
    assert x.grad.device == CUDA
    assert x.grad.tolist() == [2, 2, 2]
    (gradient,) = torch.autograd.grad((x * 3).sum(), x)
    assert gradient.tolist() == [3, 3, 3]


def test_a_moved_module_keeps_its_parameters() -> None:
    module = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    before = list(module.parameters())
    optimizer = torch.optim.SGD(module.parameters(), lr=1.0)
    assert module.cuda() is module
    after = list(module.parameters())
    assert all(left is right for left, right in zip(before, after, strict=True))
    assert all(isinstance(p, nn.Parameter) and p.is_leaf and p.requires_grad and p.device == CUDA for p in after)
    assert all(buffer.device == CUDA for buffer in module.buffers())
    weight = module[0].weight.clone()
    module(torch.randn(4, 2, device="cuda")).square().sum().backward()
    optimizer.step()
    assert not torch.equal(weight, module[0].weight)
    module.half()
    assert module[0].weight.dtype == torch.float16


@pytest.mark.parametrize(("start", "end"), [("cpu", "cuda"), ("cuda", "cpu")])
def test_a_module_moves_after_a_step(start: str, end: str) -> None:
    module = nn.Linear(2, 3).to(start)
    loss = module(torch.ones(1, 2, device=start)).sum()
    loss.backward()
    module.to(end)
    assert module.weight.device.type == end
    assert module.weight.grad.device.type == end
    module(torch.ones(1, 2, device=end)).sum().backward()
    assert module.weight.grad.tolist() == [[2, 2]] * 3
    assert loss.item() == loss.item()


def test_data_is_replaced() -> None:
    module = nn.Linear(2, 2).cuda()
    module.weight.data = module.weight.data * 0 + 3
    module.weight.data.mul_(2)
    assert module.weight.tolist() == [[6, 6], [6, 6]]
    parameter = nn.Parameter(torch.ones(2))
    identity = id(parameter)
    parameter.data = parameter.data.cuda()
    assert parameter.device == CUDA
    assert parameter.is_leaf
    assert parameter.requires_grad
    parameter.data = parameter.data.cpu() * 2
    assert parameter.device.type == "cpu"
    assert isinstance(parameter, nn.Parameter)
    assert parameter.tolist() == [2, 2]
    assert id(parameter) == identity


def test_a_module_is_copied_saved_and_loaded() -> None:
    module = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3)).cuda()
    twin = copy.deepcopy(module)
    assert all(isinstance(parameter, nn.Parameter) and parameter.device == CUDA for parameter in twin.parameters())
    with torch.no_grad():
        twin[0].weight.zero_()
    assert module[0].weight.abs().sum() > 0
    file = io.BytesIO()
    torch.save(module.state_dict(), file)
    file.seek(0)
    twin.load_state_dict(torch.load(file, map_location="cuda"))
    assert torch.equal(twin[0].weight, module[0].weight)
    assert twin[0].weight.device == CUDA
    file = io.BytesIO()
    torch.save(module, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    assert isinstance(loaded[0].weight, nn.Parameter)
    assert loaded[0].weight.device == CUDA
    assert torch.equal(loaded[0].weight, module[0].weight)


@pytest.mark.parametrize(
    ("location", "place"),
    [
        (None, "cuda"),
        ("cpu", "cpu"),
        (torch.device("cpu"), "cpu"),
        ("cuda:0", "cuda"),
        ({"cuda:0": "cpu"}, "cpu"),
        ({"cuda:1": "cuda:0"}, "cuda"),
        (lambda storage, _: storage, "cpu"),
    ],
)
@pytest.mark.parametrize("weights_only", [False, True])
def test_a_checkpoint_loads_where_it_was_or_is_told(location: object, place: str, weights_only: bool) -> None:  # noqa: FBT001 - parametrized
    file = io.BytesIO()
    torch.save({"weight": torch.arange(6.0, device="cuda").view(2, 3).t(), "host": torch.ones(2)}, file)
    file.seek(0)
    loaded = torch.load(file, location, weights_only=weights_only)
    assert loaded["weight"].device.type == place
    assert loaded["weight"].tolist() == [[0, 3], [1, 4], [2, 5]]
    assert loaded["host"].device.type == ("cuda" if location == "cuda:0" else "cpu")


def test_an_optimizer_is_saved_and_loaded() -> None:
    module = nn.Linear(2, 3).cuda()
    optimizer = torch.optim.AdamW(module.parameters())
    module(torch.ones(1, 2, device="cuda")).sum().backward()
    optimizer.step()
    file = io.BytesIO()
    torch.save(optimizer.state_dict(), file)
    file.seek(0)
    optimizer.load_state_dict(torch.load(file))
    optimizer.step()
    assert all(state["exp_avg"].device == CUDA for state in optimizer.state.values())


def _recurrent(kind: type[nn.LSTM]) -> tuple[nn.Module, torch.Tensor]:
    return kind(4, 5, num_layers=2, batch_first=True), torch.randn(2, 3, 4)


MODULES: dict[str, Any] = {
    "LSTM": lambda: _recurrent(nn.LSTM),
    "GRU": lambda: _recurrent(nn.GRU),
    "encoder layer": lambda: (nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), torch.randn(2, 3, 8)),
    "convolutions": lambda: (
        nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.GELU(), nn.ConvTranspose2d(4, 2, 2), nn.GroupNorm(2, 2)
        ),
        torch.randn(2, 1, 6, 6),
    ),
    "pools": lambda: (
        nn.Sequential(nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.LayerNorm(4)),
        torch.randn(2, 1, 6, 6),
    ),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules_compute_what_the_host_computes(name: str) -> None:
    def run(place: str) -> tuple[Any, list[Any]]:
        torch.manual_seed(3)
        module, inputs = MODULES[name]()
        module.to(place)
        output = module(inputs.to(place))
        output = output[0] if isinstance(output, tuple) else output
        output.square().sum().backward()
        return output.detach().cpu(), [parameter.grad.cpu() for parameter in module.parameters()]

    output, gradients = run("cuda")
    expected, expected_gradients = run("cpu")
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(gradients, expected_gradients)


def test_attention_is_one_kernel_and_its_gradient_another(device: SimulatedDevice) -> None:
    query = torch.randn(1, 2, 8, 4)
    expected = functional.scaled_dot_product_attention(query, query, query, is_causal=True)
    mask = torch.ones(8, 8, dtype=torch.bool).tril()
    moved = query.cuda().requires_grad_()
    device.reset()
    output = functional.scaled_dot_product_attention(moved, moved, moved, is_causal=True)
    assert device.counts()["launches"] == 1
    assert torch.equal(output.cpu(), expected)
    masked = functional.scaled_dot_product_attention(moved, moved, moved, mask.cuda())
    torch.testing.assert_close(masked.cpu(), expected)
    output.sum().backward()
    assert moved.grad.shape == query.shape


def test_packed_sequences() -> None:
    module = nn.LSTM(4, 8, batch_first=True).cuda()
    packed = nn.utils.rnn.pack_padded_sequence(torch.randn(2, 5, 4).cuda(), torch.tensor([5, 3]), batch_first=True)
    output, lengths = nn.utils.rnn.pad_packed_sequence(module(packed)[0], batch_first=True)
    assert output.shape == (2, 5, 8)
    assert lengths.tolist() == [5, 3]
    assert output.device == CUDA


def test_lengths_of_sequences_may_be_on_the_host() -> None:
    scores, targets = torch.randn(10, 2, 5).log_softmax(-1), torch.tensor([[1, 2], [3, 4]])
    lengths = torch.tensor([10, 9]), torch.tensor([2, 1])
    expected = functional.ctc_loss(scores, targets, *lengths)
    moved = scores.cuda().requires_grad_()
    loss = functional.ctc_loss(moved, targets.cuda(), *lengths)
    loss.backward()
    torch.testing.assert_close(loss.detach().cpu(), expected)
    assert moved.grad.device == CUDA


def test_complex_numbers() -> None:
    x = torch.randn(4, dtype=torch.complex64)
    moved = x.cuda()
    assert torch.equal(
        torch.view_as_real(moved.conj().resolve_conj()).cpu(), torch.view_as_real(x.conj().resolve_conj())
    )
    assert torch.equal(moved.conj().imag.cpu(), -x.imag)


def test_parameters_print_as_parameters() -> None:
    parameter = nn.Parameter(torch.ones(2)).cuda()
    assert repr(nn.Parameter(parameter.detach())) == (
        "Parameter containing:\ntensor([1., 1.], device='cuda:0', requires_grad=True)"
    )


@pytest.mark.parametrize("place", ["cpu", "cuda"])
def test_gradients_that_are_zero_everywhere(place: str) -> None:
    x = torch.randn(20, 20, device=place, requires_grad=True)
    (gradient,) = torch.autograd.grad(torch.sgn(x).abs().sum(), x)
    assert torch.isclose(gradient, torch.zeros(20, 20, device=place)).all()


def test_second_derivatives() -> None:
    x = torch.tensor(3.0, device="cuda", requires_grad=True)
    (first,) = torch.autograd.grad(x**3, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    assert (first.item(), second.item()) == (27, 18)


def test_compiled_and_scripted_code_runs_as_written() -> None:
    layer = nn.Linear(2, 2).cuda()
    x = torch.ones(1, 2, device="cuda")
    assert torch.equal(torch.compile(layer)(x), layer(x))

    decorate = torch.compile(fullgraph=True)
    assert decorate(torch.square)(x).tolist() == [[1, 1]]


def test_autocast_follows_the_lists_of_cuda() -> None:
    x, layer = torch.randn(2, 4, device="cuda"), nn.Linear(4, 4).cuda()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        hidden = layer(x)
        assert hidden.dtype == torch.bfloat16
        assert (x @ x.T).dtype == torch.bfloat16
        assert hidden.softmax(-1).dtype == torch.float32
        assert functional.layer_norm(hidden, (4,)).dtype == torch.float32
        assert functional.relu(hidden).dtype == torch.bfloat16
        assert functional.cross_entropy(hidden, torch.zeros(2, dtype=torch.long, device="cuda")).dtype == torch.float32
        with torch.autocast("cuda", enabled=False):
            assert layer(x).dtype == torch.float32
    assert layer(x).dtype == torch.float32
    hidden.sum().backward()
    assert layer.weight.grad.dtype == torch.float32


def test_autocast_casts_a_parameter_once(device: SimulatedDevice) -> None:
    x, layer = torch.randn(2, 4, device="cuda").half(), nn.Linear(4, 4, bias=False).cuda()

    def launches(times: int) -> int:
        device.reset()
        with torch.autocast("cuda", dtype=torch.float16):
            for _ in range(times):
                layer(x)
        return device.counts()["launches"]

    once = launches(1)
    assert launches(3) - once == 2 * (once - 1)


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoints_draw_the_same_numbers_again(reentrant: bool) -> None:  # noqa: FBT001 - parametrized
    module = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1)).cuda()
    x = torch.randn(3, 4, device="cuda", requires_grad=True)
    torch.manual_seed(5)
    module(x).sum().backward()
    plain = x.grad.clone()
    x.grad = None
    torch.manual_seed(5)
    checkpoint(module, x, use_reentrant=reentrant).sum().backward()
    assert torch.equal(plain, x.grad)


def test_data_parallel_runs_the_module() -> None:
    module = nn.DataParallel(nn.Linear(2, 3)).cuda()
    output = module(torch.ones(4, 2))
    output.sum().backward()
    assert output.shape == (4, 3)
    assert output.device == CUDA
    assert module.module.weight.grad.device == CUDA


def test_other_threads_use_the_device() -> None:
    made: list[Any] = []

    def work() -> None:
        made.append(torch.ones(2).cuda() + torch.zeros(2, device="cuda"))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert made[0].tolist() == [1, 1]


def test_a_default_device() -> None:
    with torch.device("cuda"):
        assert torch.tensor([1]).device == CUDA
        assert torch.zeros(2).device == CUDA
        assert nn.Linear(2, 2).weight.device == CUDA
    torch.set_default_device("cuda")
    try:
        assert torch.ones(2).device == CUDA
    finally:
        torch.set_default_device(None)
    assert torch.ones(2).device.type == "cpu"


def test_custom_functions_and_hooks() -> None:
    class Double(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
        @staticmethod
        def forward(ctx: torch.autograd.function.FunctionCtx, x: torch.Tensor) -> torch.Tensor:
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx: torch.autograd.function.FunctionCtx, gradient: torch.Tensor) -> torch.Tensor:
            (x,) = ctx.saved_tensors
            return gradient * 2 * torch.ones(3, device=x.device)

    seen = []
    x = torch.ones(3, device="cuda", requires_grad=True)
    x.register_hook(lambda gradient: seen.append(gradient.device))
    Double.apply(x).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    assert seen == [CUDA]


def test_transforms_of_functions() -> None:
    x = torch.ones(2, 3, device="cuda")
    assert torch.func.vmap(lambda row: (row * row).sum())(x).tolist() == [3, 3]
    assert torch.func.grad(lambda value: (value * value).sum())(x).tolist() == [[2, 2, 2]] * 2


def test_modules_are_made_on_the_meta_device() -> None:
    with torch.device("meta"):
        module = nn.Linear(3, 3)
    assert module.weight.device.type == "meta"
    module.to_empty(device="cuda")
    assert module.weight.device == CUDA
    assert torch.empty(3, device="meta").is_meta


def test_the_front_door() -> None:
    assert torch.cuda.is_available()
    assert torch.cuda.device_count() == 1
    assert torch.cuda.current_device() == 0
    assert isinstance(torch.cuda.get_device_name(0), str)
    assert torch.cuda.get_device_properties(0).total_memory > 2**30
    assert torch.cuda.get_device_capability() >= (7, 0)
    assert torch.cuda.is_bf16_supported()
    assert torch.cuda.mem_get_info()[0] <= torch.cuda.mem_get_info()[1]
    torch.cuda.set_device(0)
    torch.cuda.manual_seed_all(1)
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    with torch.cuda.stream(torch.cuda.Stream()), torch.cuda.device(0):
        torch.ones(3, device="cuda").add_(1).record_stream(torch.cuda.current_stream())
    end.record()
    assert start.elapsed_time(end) >= 0
    assert end.query()
    if hasattr(torch, "accelerator"):
        assert torch.accelerator.is_available()
        assert torch.accelerator.current_accelerator() == torch.device("cuda")


def test_only_one_device_is_simulated() -> None:
    with pytest.raises(RuntimeError, match="already"), simulated_cuda():
        pass


def test_types_of_older_programs_make_and_name_tensors(device: SimulatedDevice) -> None:
    device.reset()
    made = torch.cuda.FloatTensor(2, 3).fill_(1.0)
    assert (made.device, made.dtype, made.tolist()) == (CUDA, torch.float32, [[1, 1, 1]] * 2)
    assert device.counts()["h2d_pageable"] == 0
    assert torch.cuda.LongTensor([1, 2]).tolist() == [1, 2]
    assert device.counts()["h2d_pageable"] == 1
    assert isinstance(made, torch.cuda.FloatTensor)
    assert not isinstance(made, torch.cuda.DoubleTensor)
    assert not isinstance(torch.ones(1), torch.cuda.FloatTensor)
    moved = torch.ones(2, dtype=torch.float64).type(torch.cuda.FloatTensor)
    assert (moved.device, moved.dtype) == (CUDA, torch.float32)
    assert (moved.type(torch.cuda.LongTensor).device, moved.type("torch.cuda.LongTensor").dtype) == (CUDA, torch.int64)
    assert moved.type(torch.FloatTensor).device.type == "cpu"
    assert torch.ones(1).type("torch.cuda.HalfTensor").dtype == torch.float16
