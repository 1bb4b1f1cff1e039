"""What each operation costs the simulated device: waits, copies to the device, copies to the host."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn import functional

from torchlint.verify.inside.sim import SimulatedDevice, simulated_cuda

NOTHING = (0, 0, 0, 0)
READ = (1, 0, 0, 1)  # a value is read: one wait, one copy to the host
COPY = (1, 1, 0, 0)  # a copy from pageable memory


@pytest.fixture(scope="module")
def device() -> Iterator[SimulatedDevice]:
    with simulated_cuda() as simulated:
        yield simulated


@pytest.fixture
def t(device: SimulatedDevice) -> SimpleNamespace:
    """Tensors of which the cases are written: x and mask of 8, a scalar, indices, and a layer with gradients."""
    torch.manual_seed(0)
    x = torch.randn(8, device="cuda")
    layer = nn.Linear(8, 3).cuda()
    layer(x).sum().backward()
    made = SimpleNamespace(
        x=x,
        mask=x > 0,
        scalar=x.sum(),
        ids=torch.tensor([1, 2, 1]).cuda(),
        host=torch.ones(8),
        pinned=torch.ones(8).pin_memory(),
        layer=layer,
        batch=torch.randn(4, 3, device="cuda"),
        labels=torch.tensor([0, 1, 2, 0]).cuda(),
        cuda=torch.device("cuda"),
        square=torch.eye(3).cuda() * 2,
        loose=torch.sparse_coo_tensor(torch.tensor([[1, 1]]), torch.ones(2), (3,), check_invariants=False).cuda(),
        sparse=torch.eye(4).cuda().to_sparse(),
        scores=torch.randn(4, 2, 3, device="cuda", requires_grad=True),
        targets=torch.tensor([[1, 2], [2, 1]]).cuda(),
    )
    device.reset()
    return made


def put(tensor: torch.Tensor, index: object, value: object) -> None:
    tensor[index] = value


def square(t: SimpleNamespace) -> torch.Tensor:
    tensor: torch.Tensor = t.square
    return tensor


def normal(t: SimpleNamespace) -> torch.distributions.Normal:
    return torch.distributions.Normal(t.x, t.x.abs(), validate_args=False)


def ctc(t: SimpleNamespace) -> torch.Tensor:
    lengths = torch.tensor([4, 4]), torch.tensor([2, 2])
    return functional.ctc_loss(t.scores.log_softmax(-1), t.targets, *lengths, reduction="sum")


def multiply_under_autocast(t: SimpleNamespace) -> None:
    with torch.autocast("cuda", dtype=torch.float16):
        assert t.layer(t.x).dtype == torch.float16


# The waits, and the copies: to the device from pageable and from pinned memory, to the host.
CASES: dict[str, tuple[Callable[[SimpleNamespace], object], tuple[int, int, int, int]]] = {
    # Reads of one value: `_local_scalar_dense_cuda`, CUDAScalar.cu.
    "item": (lambda t: t.scalar.item(), READ),
    "bool": (lambda t: bool(t.scalar), READ),
    "float": (lambda t: float(t.scalar), READ),
    "int": (lambda t: int(t.scalar), READ),
    "if comparison": (lambda t: 1 if t.scalar > 0 else 0, READ),
    "and": (lambda t: t.scalar and 1, READ),
    "not": (lambda t: not t.scalar, READ),
    "f-string": (lambda t: f"{t.scalar:.3f}", READ),
    "f-string without format": (lambda t: f"{t.scalar}", READ),
    "format": (lambda t: f"{t.scalar:.2f}", READ),
    "isnan any": (lambda t: 1 if t.x.isnan().any() else 0, READ),
    "max of builtins": (lambda t: max(t.scalar, t.scalar + 1), READ),
    "in": (lambda t: 3.0 in t.x, READ),
    "range of a tensor": (lambda t: range(t.ids[0]), (1, 0, 0, 1)),
    "index by a scalar of the device": (lambda t: t.x[t.ids[0]], READ),
    "slice by a scalar of the device": (lambda t: t.x[: t.ids[0]], READ),
    "math on one value": (lambda t: torch.tensor([t.scalar, t.scalar]), (2, 0, 0, 2)),
    # Whole tensors to the host: `copy_kernel_cuda`, cuda/Copy.cu.
    "tolist": (lambda t: t.x.tolist(), READ),
    "cpu": (lambda t: t.x.cpu(), READ),
    "to cpu": (lambda t: t.x.to("cpu"), READ),
    "to cpu as another type": (lambda t: t.x.to("cpu", torch.float64), READ),
    "numpy after cpu": (lambda t: t.x.cpu().numpy(), READ),
    "detach cpu numpy": (lambda t: t.layer.weight.detach().cpu().numpy(), READ),
    "to cpu without blocking": (lambda t: t.x.to("cpu", non_blocking=True), (0, 0, 0, 1)),
    "copy to the host": (lambda t: t.host.copy_(t.x), READ),
    "copy to pageable memory without blocking": (lambda t: t.host.copy_(t.x, non_blocking=True), READ),
    "copy to pinned memory without blocking": (lambda t: t.pinned.copy_(t.x, non_blocking=True), (0, 0, 0, 1)),
    # To the device.
    "tensor of a list on the device": (lambda _: torch.tensor([1.0, 2.0], device="cuda"), COPY),
    "tensor of a list, then cuda": (lambda _: torch.tensor([1.0, 2.0]).cuda(), COPY),
    "tensor of a number on the device": (lambda t: torch.tensor(1.0, device=t.cuda), COPY),
    "as_tensor": (lambda _: torch.as_tensor([1.0, 2.0], device="cuda"), COPY),
    "as_tensor of a host tensor": (lambda t: torch.as_tensor(t.host, device="cuda"), COPY),
    "as_tensor of a device tensor": (lambda t: torch.as_tensor(t.x, device="cuda"), NOTHING),
    "new of numbers": (lambda t: t.x.new([1.0, 2.0]), COPY),
    "new of a size": (lambda t: t.x.new(3), NOTHING),
    "cast to a type of the device": (lambda t: t.host.type("torch.cuda.DoubleTensor"), COPY),
    "new_tensor": (lambda t: t.x.new_tensor([1.0]), COPY),
    "new_tensor of a host tensor": (lambda t: t.host.new_tensor([1.0], device="cuda"), COPY),
    "from_numpy": (lambda t: torch.from_numpy(t.host.numpy()).cuda(), COPY),
    "cuda": (lambda t: t.host.cuda(), COPY),
    "cuda of a device tensor": (lambda t: t.x.cuda(), NOTHING),
    "to a device object": (lambda t: t.host.to(t.cuda), COPY),
    "to an index": (lambda t: t.host.to(0), COPY),
    "to another tensor": (lambda t: t.host.to(t.x), COPY),
    "to the same device": (lambda t: t.x.to("cuda"), NOTHING),
    "to another type": (lambda t: t.x.to(torch.float64), NOTHING),
    "to the device as another type": (lambda t: t.host.to("cuda", torch.float64), COPY),
    "pinned": (lambda t: t.pinned.to("cuda"), (1, 0, 1, 0)),
    "pinned without blocking": (lambda t: t.pinned.to("cuda", non_blocking=True), (0, 0, 1, 0)),
    "pinned without blocking by cuda": (lambda t: t.pinned.cuda(non_blocking=True), (0, 0, 1, 0)),
    "a slice of a pinned tensor": (lambda t: t.pinned[2:4].to("cuda", non_blocking=True), (0, 0, 1, 0)),
    "made pinned": (lambda _: torch.empty(4, pin_memory=True).to("cuda", non_blocking=True), (0, 0, 1, 0)),
    "a list made pinned": (
        lambda _: torch.tensor([1.0, 2.0], pin_memory=True).to("cuda", non_blocking=True),
        (0, 0, 1, 0),
    ),
    "pageable without blocking": (lambda t: t.host.to("cuda", non_blocking=True), COPY),
    "copy to the device": (lambda t: t.x.copy_(t.host), COPY),
    "copy on the device": (lambda t: t.x.copy_(t.x + 1), NOTHING),
    "an empty tensor": (lambda _: torch.empty(0).cuda(), NOTHING),
    # Made there, or made here and moved.
    "rand on the device": (lambda _: torch.rand(4, device="cuda"), NOTHING),
    "rand, then moved": (lambda _: torch.rand(4).to("cuda"), COPY),
    "randn on the device": (lambda _: torch.randn(4, device="cuda"), NOTHING),
    "randint on the device": (lambda _: torch.randint(0, 3, (4,), device="cuda"), NOTHING),
    "zeros on the device": (lambda _: torch.zeros(4, device="cuda"), NOTHING),
    "zeros, then moved": (lambda _: torch.zeros(4).cuda(), COPY),
    "full on the device": (lambda _: torch.full((4,), 2.0, device="cuda"), NOTHING),
    "arange on the device": (lambda _: torch.arange(4, device="cuda"), NOTHING),
    "arange, then moved": (lambda t: torch.arange(4).to(t.cuda), COPY),
    "zeros_like": (lambda t: torch.zeros_like(t.x), NOTHING),
    "zeros like a host tensor": (lambda t: torch.zeros_like(t.host, device="cuda"), NOTHING),
    "new_zeros of a host tensor": (lambda t: t.host.new_zeros(3, device="cuda"), NOTHING),
    "rand like a host tensor": (lambda t: torch.rand_like(t.host, device="cuda:0"), NOTHING),
    "new_zeros": (lambda t: t.x.new_zeros(3), NOTHING),
    # Sizes that depend on values: Nonzero.cu, UniqueCub.cu, Repeat.h, SummaryOps.cu.
    "nonzero": (lambda t: t.mask.nonzero(), READ),
    "where of one argument": (lambda t: torch.where(t.mask), READ),
    "where of three arguments": (lambda t: torch.where(t.mask, t.x, 0.0), NOTHING),
    "read by mask": (lambda t: t.x[t.mask], READ),
    "masked_select": (lambda t: t.x.masked_select(t.mask), READ),
    "unique": (lambda t: t.ids.unique(), READ),
    "unique with inverse and counts": (lambda t: torch.unique(t.ids, return_inverse=True, return_counts=True), READ),
    "unique_consecutive": (lambda t: t.ids.unique_consecutive(), READ),
    "repeat_interleave by a number": (lambda t: t.x.repeat_interleave(2), NOTHING),
    "repeat_interleave by a tensor": (lambda t: t.ids.repeat_interleave(t.ids), (2, 0, 0, 2)),
    "repeat_interleave, size given": (lambda t: t.ids.repeat_interleave(t.ids, output_size=4), NOTHING),
    "bincount": (lambda t: t.ids.bincount(), (2, 0, 0, 2)),
    "histc": (lambda t: t.x.histc(4), (2, 0, 0, 2)),
    "histc, range given": (lambda t: t.x.histc(4, -1.0, 1.0), NOTHING),
    "split by sizes of the device": (lambda t: t.x[:4].split(t.ids.tolist()), READ),
    # Onehot.cpp: the greatest value is read where the number of classes is not given.
    "one_hot": (lambda t: functional.one_hot(t.ids), READ),
    "one_hot, classes given": (lambda t: functional.one_hot(t.ids, 3), NOTHING),
    # Writes by index: TensorAdvancedIndexing.cpp.
    "mask = number": (lambda t: put(t.x, t.mask, 0), NOTHING),
    "mask = number of the device": (lambda t: put(t.x, t.mask, t.scalar), READ),
    "mask = vector": (lambda t: put(t.x, t.mask, t.x[t.mask] + 1), (2, 0, 0, 2)),
    "ids = number": (lambda t: put(t.x, t.ids, 0.0), COPY),
    "ids = vector": (lambda t: put(t.x, t.ids, t.x[:3].clone()), NOTHING),
    "slice = number": (lambda t: put(t.x, slice(0, 3), 1.0), NOTHING),
    "row = number": (lambda t: put(t.batch, 0, 1.0), NOTHING),
    "element = number": (lambda t: put(t.x, 0, 1.0), COPY),
    "slice = host tensor": (lambda t: put(t.x, slice(0, 3), torch.ones(3)), COPY),
    "masked_fill by a number": (lambda t: t.x.masked_fill(t.mask, 0.0), NOTHING),
    "masked_fill by a number of the device": (lambda t: t.x.masked_fill(t.mask, t.scalar), READ),
    "masked_fill by a number of the host": (lambda t: t.x.masked_fill(t.mask, torch.tensor(0.0)), NOTHING),
    "index_put_": (lambda t: t.x.index_put_((t.ids,), t.scalar), NOTHING),
    "index_put_, accumulating": (lambda t: t.x.index_put_((t.ids,), t.x[:3].clone(), accumulate=True), NOTHING),
    "scatter_": (lambda t: t.x.scatter_(0, t.ids, 1.0), NOTHING),
    "index_add_": (lambda t: t.x.index_add_(0, t.ids, t.x[:3].clone()), NOTHING),
    # Reads by index.
    "index_select": (lambda t: t.x.index_select(0, t.ids), NOTHING),
    "gather": (lambda t: t.x.gather(0, t.ids), NOTHING),
    "index on the device": (lambda t: t.x[t.ids], NOTHING),
    "index on the host": (lambda t: t.x[torch.tensor([1, 2])], COPY),
    "index by a list": (lambda t: t.x[[1, 2]], COPY),
    "index by a number": (lambda t: t.x[3], NOTHING),
    "index by a slice": (lambda t: t.x[1:3], NOTHING),
    # Comparisons of whole tensors: cuda/Equal.cpp, TensorCompare.cpp.
    "equal": (lambda t: torch.equal(t.x, t.x + 0), READ),
    "equal to itself": (lambda t: torch.equal(t.x, t.x), NOTHING),
    "equal of other shapes": (lambda t: torch.equal(t.x, t.x[:3]), NOTHING),
    "allclose": (lambda t: torch.allclose(t.x, t.x), READ),
    "isclose": (lambda t: torch.isclose(t.x, t.x), NOTHING),
    "eq": (lambda t: t.x == t.x, NOTHING),
    # Shapes are known to the host.
    "len": (lambda t: len(t.x), NOTHING),
    "shape in an if": (lambda t: 1 if t.x.shape[0] > 1 else 0, NOTHING),
    "size": (lambda t: t.x.size(0) + t.x.numel() + t.x.dim(), NOTHING),
    "iteration": (lambda t: list(t.x), NOTHING),
    "builtin sum": (lambda t: sum(t.x), NOTHING),
    "unbind": (lambda t: t.x.unbind(), NOTHING),
    "str of the shape": (lambda t: f"{t.x.shape} {t.x.dtype} {t.x.device}", NOTHING),
    "is None": (lambda t: t.x is None, NOTHING),
    # Numbers of the host are arguments of the kernel.
    "plus a Python number": (lambda t: t.x + 1, NOTHING),
    "plus a host tensor of no dimension": (lambda t: t.x + torch.tensor(1.0), NOTHING),
    # Random draws: Distributions.cpp.
    "multinomial": (lambda t: torch.multinomial(t.x.abs(), 2), (2, 0, 0, 2)),
    "dropout": (lambda t: functional.dropout(t.x, 0.5), NOTHING),
    # `CHECK_NORMAL_TENSOR_STD` (DistributionTemplates.h) reads the least deviation; a number needs no reading.
    "normal of tensors": (lambda t: torch.normal(t.x, t.x.abs()), READ),
    "normal of a number and a tensor": (lambda t: torch.normal(0.0, t.x.abs()), READ),
    "normal of a tensor and a number": (lambda t: torch.normal(t.x, 1.0), NOTHING),
    "Normal.sample": (lambda t: normal(t).sample(), READ),
    "Normal.rsample": (lambda t: normal(t).rsample(), NOTHING),
    # `where_self_out` (TensorCompare.cpp) moves a tensor of no dimension; a number becomes one on the device.
    "where with a host tensor of no dimension": (lambda t: torch.where(t.mask, t.x, torch.tensor(0.0)), COPY),
    # `_linalg_check_errors` (BatchLinearAlgebra.cpp) behind each; the `_ex` variants leave it out, and `qr` and `det`.
    "inv": (lambda t: torch.linalg.inv(square(t)), READ),
    "inv_ex": (lambda t: torch.linalg.inv_ex(square(t)), NOTHING),
    "cholesky": (lambda t: torch.linalg.cholesky(square(t)), READ),
    "solve": (lambda t: torch.linalg.solve(square(t), square(t)), READ),
    "eigh": (lambda t: torch.linalg.eigh(square(t)), READ),
    "eigvalsh": (lambda t: torch.linalg.eigvalsh(square(t)), READ),
    "eig": (lambda t: torch.linalg.eig(square(t)), READ),
    "qr": (lambda t: torch.linalg.qr(square(t)), NOTHING),
    "det": (lambda t: torch.linalg.det(square(t)), NOTHING),
    # `_check_gesvdj_convergence` (cuda/linalg/BatchLinearAlgebraLib.cpp) before it, where no driver is named.
    "svd": (lambda t: torch.linalg.svd(square(t)), (2, 0, 0, 2)),
    "svdvals": (lambda t: torch.linalg.svdvals(square(t)), (2, 0, 0, 2)),
    "pinv": (lambda t: torch.linalg.pinv(square(t)), (2, 0, 0, 2)),
    "matrix_norm by singular values": (lambda t: torch.linalg.matrix_norm(square(t), 2), (2, 0, 0, 2)),
    "matrix_exp": (lambda t: torch.linalg.matrix_exp(square(t)), READ),  # `mexp_impl`, LinearAlgebra.cpp
    # `isin_Tensor_Tensor_out` (TensorCompare.cpp) makes many elements unique.
    "isin of few": (lambda t: torch.isin(t.ids, t.ids), NOTHING),
    "isin of many": (lambda t: torch.isin(t.x, t.x.repeat(9)), (2, 0, 0, 2)),
    "index_fill by a number of the device": (lambda t: t.x.index_fill(0, t.ids, t.scalar), READ),  # `source.item()`
    # `embedding_renorm_cuda_` (cuda/Embedding.cu) leaves the number of unique indices on the device.
    "embedding, norms bounded": (lambda t: functional.embedding(t.ids, t.batch.clone(), max_norm=1.0), NOTHING),
    # LossCTC.cu copies lengths and offsets, forwards and backwards; the mean divides by lengths that come along.
    "ctc_loss, lengths on the host": (ctc, (3, 3, 0, 0)),
    "ctc_loss, backward": (lambda t: ctc(t).backward(), (6, 6, 0, 0)),
    # Sparse: SparseCUDATensor.cu, TensorConversions.cpp.
    "to_sparse": (lambda t: t.batch.to_sparse(), READ),
    "sparse times dense": (lambda t: t.sparse @ t.batch, NOTHING),
    "coalesce": (lambda t: t.loose.coalesce(), READ),
    "sparse to the host": (lambda t: t.sparse.cpu(), (2, 0, 0, 2)),
    "a copy for NumPy": (lambda t: t.x.numpy(force=True), READ),
    # Kernels that need nothing of the host.
    "sort": (lambda t: t.x.sort(), NOTHING),
    "argsort": (lambda t: t.x.argsort(), NOTHING),
    "topk": (lambda t: t.x.topk(3), NOTHING),
    "cumsum": (lambda t: t.x.cumsum(0), NOTHING),
    "max": (lambda t: t.x.max(), NOTHING),
    "argmax": (lambda t: t.batch.argmax(1), NOTHING),
    "matmul": (lambda t: t.batch @ t.batch.T, NOTHING),
    "softmax": (lambda t: t.batch.softmax(1), NOTHING),
    "cross_entropy": (lambda t: functional.cross_entropy(t.batch, t.labels), NOTHING),
    "embedding": (lambda t: functional.embedding(t.ids, t.batch), NOTHING),
    "clip_grad_norm_": (lambda t: nn.utils.clip_grad_norm_(t.layer.parameters(), 1.0), NOTHING),
    "clip_grad_norm_, foreach": (lambda t: nn.utils.clip_grad_norm_(t.layer.parameters(), 1.0, foreach=True), NOTHING),
    "clip_grad_norm_ that refuses inf": (
        lambda t: nn.utils.clip_grad_norm_(t.layer.parameters(), 1.0, error_if_nonfinite=True),
        READ,
    ),
    "backward": (lambda t: t.layer(t.x).sum().backward(), NOTHING),
    "zero_grad": (lambda t: t.layer.zero_grad(set_to_none=False), NOTHING),
    "backward through a move": (
        lambda t: (torch.ones(8, requires_grad=True).cuda() * t.x).sum().backward(),
        (2, 1, 0, 1),
    ),
    # The CUDA API.
    "synchronize": (lambda _: torch.cuda.synchronize(), (1, 0, 0, 0)),
    "event synchronize": (lambda _: torch.cuda.Event().synchronize(), (1, 0, 0, 0)),
    "stream synchronize": (lambda _: torch.cuda.current_stream().synchronize(), (1, 0, 0, 0)),
    "record an event": (lambda _: torch.cuda.Event(enable_timing=True).record(), NOTHING),
    "wait for a stream": (lambda _: torch.cuda.current_stream().wait_stream(torch.cuda.Stream()), NOTHING),
    "memory_allocated": (lambda _: torch.cuda.memory_allocated(), NOTHING),
    "autocast": (multiply_under_autocast, NOTHING),
}


@pytest.mark.parametrize("name", CASES)
def test_cost(name: str, t: SimpleNamespace, device: SimulatedDevice) -> None:
    run, expected = CASES[name]
    run(t)
    counts = device.counts()
    assert (counts["syncs"], counts["h2d_pageable"], counts["h2d_pinned"], counts["d2h"]) == expected


OPTIMIZERS: dict[str, Callable[[Iterator[nn.Parameter]], torch.optim.Optimizer]] = {
    "SGD": lambda p: torch.optim.SGD(p, 0.1, momentum=0.9),
    "SGD fused": lambda p: torch.optim.SGD(p, 0.1, fused=True),
    "Adam": lambda p: torch.optim.Adam(p, 0.1),
    "AdamW": lambda p: torch.optim.AdamW(p, 0.1),
    "AdamW for-loop": lambda p: torch.optim.AdamW(p, 0.1, foreach=False),
    "AdamW foreach": lambda p: torch.optim.AdamW(p, 0.1, foreach=True),
    "AdamW fused": lambda p: torch.optim.AdamW(p, 0.1, fused=True),
    "AdamW capturable": lambda p: torch.optim.AdamW(p, 0.1, capturable=True),
    "RMSprop": lambda p: torch.optim.RMSprop(p, 0.1),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_wait_for_nothing(name: str, t: SimpleNamespace, device: SimulatedDevice) -> None:
    optimizer = OPTIMIZERS[name](t.layer.parameters())
    optimizer.step()
    device.reset()
    optimizer.step()
    counts = device.counts()
    assert counts["syncs"] == counts["h2d_pageable"] == counts["d2h"] == 0
    assert counts["launches"] > 0


def test_foreach_is_the_default_and_fused_launches_least(device: SimulatedDevice) -> None:
    def launches(**options: bool) -> int:
        layers = nn.Sequential(*(nn.Linear(4, 4) for _ in range(6))).cuda()
        optimizer = torch.optim.AdamW(layers.parameters(), 0.1, **options)
        layers(torch.ones(2, 4, device="cuda")).sum().backward()
        optimizer.step()
        device.reset()
        optimizer.step()
        return device.counts()["launches"]

    assert launches() == launches(foreach=True) < launches(foreach=False)
    assert launches(fused=True) < launches(foreach=True)


def test_a_scaler_reads_one_value_a_step(device: SimulatedDevice) -> None:
    layer = nn.Linear(8, 3).cuda()
    optimizer = torch.optim.AdamW(layer.parameters())
    scaler = torch.amp.GradScaler("cuda")
    seen = []
    for _ in range(3):
        inputs = torch.randn(4, 8, device="cuda")
        device.reset()
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = layer(inputs).square().mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(layer.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        seen.append((device.counts()["syncs"], device.counts()["d2h"]))
    assert seen == [(1, 1)] * 3


def test_printing_a_tensor_waits(t: SimpleNamespace, device: SimulatedDevice) -> None:
    print(t.scalar, file=io.StringIO())
    by_print = device.counts()["syncs"]
    device.reset()
    text = repr(t.x[:2])
    assert by_print >= 1
    assert device.counts()["syncs"] >= 1
    assert text == repr(t.x[:2].cpu())[:-1] + ", device='cuda:0')"


def test_bytes_are_counted(t: SimpleNamespace, device: SimulatedDevice) -> None:
    torch.ones(3, 5).cuda()
    torch.ones(2, dtype=torch.float64).pin_memory().to("cuda", non_blocking=True)
    assert device.counts()["h2d_bytes"] == 60 + 16
    t.x.cpu()
    t.scalar.item()
    assert device.counts()["d2h_bytes"] == 32 + 4


def test_a_blocking_copy_converts_on_the_host_and_another_on_the_device(device: SimulatedDevice) -> None:
    host = torch.ones(4).pin_memory()
    device.reset()
    host.to("cuda", torch.float16)
    assert device.counts()["h2d_bytes"] == 8
    assert device.counts()["h2d_pageable"] == 1  # through a temporary, which is not pinned
    device.reset()
    host.to("cuda", torch.float16, non_blocking=True)
    assert device.counts()["h2d_bytes"] == 16
    assert device.counts()["h2d_pinned"] == 1


def test_views_and_empty_tensors_launch_nothing(t: SimpleNamespace, device: SimulatedDevice) -> None:
    t.batch.T.reshape(3, 4)[1:, None].view(2, 4).detach().unsqueeze(0).expand(5, 2, 4)
    torch.empty(3, device="cuda")
    torch.empty_like(t.x)
    assert device.counts()["launches"] == 0
    t.x.mul_(2)
    assert device.counts()["launches"] == 1


def test_emptying_the_cache_is_counted_and_waits(device: SimulatedDevice) -> None:
    device.reset()
    torch.cuda.empty_cache()
    assert device.counts()["empty_cache"] == device.counts()["syncs"] == 1


@pytest.mark.parametrize("name", [name for name in CASES if "backward" not in name and name != "autocast"])
def test_inference_mode_costs_the_same(name: str, t: SimpleNamespace, device: SimulatedDevice) -> None:
    run, _ = CASES[name]
    with torch.no_grad():
        run(t)
    expected = device.counts()
    device.reset()
    with torch.inference_mode():
        run(t)
    assert {kind: n for kind, n in device.counts().items() if kind != "allocations"} == {
        kind: n for kind, n in expected.items() if kind != "allocations"
    }


def test_all_kinds_are_there(device: SimulatedDevice) -> None:
    device.reset()
    assert device.counts() == dict.fromkeys(
        "syncs h2d_pageable h2d_pinned h2d_bytes d2h d2h_bytes launches allocations empty_cache".split(), 0
    )
    assert device.sites() == []
