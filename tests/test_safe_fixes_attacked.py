"""Safe fixes under attack: what a program prints, computes and raises is the same bit for bit once they are applied.

Each program tries to make a fix wrong: by another order of evaluation, by names that are not what they seem, by memory
that two tensors share, by types. Those marked True are fixed all the same. Copies to a device are played: one that does
not wait arrives when the program ends, so that whoever writes to its source meanwhile is found out.
"""

from __future__ import annotations

import ast
import contextlib
import io
from typing import Any

import pytest
import torch
from twins import findings, fixed

from torchlint.finding import Applicability

HEAD = """
import torch
from torch import nn
from torch.utils.data import DataLoader


class Net(nn.Module):
    def forward(self, x):
"""
CALL = """
def run():
    return Net()(torch.arange(12.0).reshape(3, 4))
"""
LOOP = """
def train(data):
    loader = DataLoader(data, batch_size=4, pin_memory=True)
    seen = []
    for {target} in loader:
{body}
    return seen


def run():
    torch.cuda.is_available()
    return train(torch.utils.data.TensorDataset(torch.arange(8.0), torch.arange(8)))
"""
GAN = """
import torch
from torch import nn


class Gen(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, z):
        return {made}


class Disc(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 1)

    def forward(self, x):
        return self.linear({judged})


def train(loader):
    gen, disc, log = Gen(), Disc(), []
    opt_g = torch.optim.Adam(gen.parameters())
    opt_d = torch.optim.Adam(disc.parameters())
    {before}
    for real in loader:
        z = torch.randn(8, 4)
        {start}
        fake = gen({given})
        loss = disc(fake).mean() - disc({real}).mean()
        opt_d.zero_grad()
        loss.backward()
        {behind}
        opt_d.step()
        opt_g.zero_grad()
        loss = -disc(gen(z)).mean()
        loss.backward()
        opt_g.step()
        log.append(loss.item())
    return log, gen.state_dict(), disc.state_dict()


def run():
    return train(torch.utils.data.DataLoader(torch.randn(16, 4), batch_size=8))
"""


def net(*lines: str) -> str:
    return HEAD + "".join(f"        {line}\n" for line in (*lines, "return x")) + CALL


def result(expression: str, *lines: str) -> str:
    return net(*lines, f"return {expression}")


def loop(*lines: str, target: str = "x, y") -> str:
    return HEAD + "        return x\n" + LOOP.format(target=target, body="\n".join(f"        {line}" for line in lines))


def gan(**parts: str) -> str:
    usual = {"made": "self.linear(z)", "judged": "x", "given": "z", "real": "real"}
    return GAN.format(**{"before": "pass", "start": "pass", "behind": "pass", **usual, **parts})


NORMS = "norms = lambda net: [part.grad is None or part.grad.norm().item() for part in net.parameters()]"
LAYERS = "module-built-in-forward"
CONSTANT = "constant-tensor-in-hot-path"
FACTORY = "host-factory-then-move"
INDEX = "host-index-for-device-tensor"
BATCH = "blocking-h2d-in-batch-loop"
READ = "nonblocking-d2h-read"
RIVALS = "generator-graph-in-discriminator-step"
TWICE = "repeated-item"
LIST = "item-comprehension"
ON_GPU = "y = torch.nn.functional.relu(x.cuda())"

SOMETIMES = """
from torch.nn import Module, ReLU

if __name__ == "other":
    import torch.nn.functional as F


class Net(Module):
    def forward(self, x):
        return ReLU()(x)


def run():
    import torch

    return Net()(torch.arange(-1.0, 2.0))
"""

PROGRAMS: list[tuple[str, bool, str]] = [
    # The function of a layer computes its input before the other arguments, and has to be there.
    (LAYERS, True, result("nn.MaxPool1d(2, stride=1, return_indices=True)(x), nn.ReLU6()(x - 3), nn.GLU(1)(x)")),
    (LAYERS, True, result("nn.AvgPool1d(2, None)(x), nn.Upsample(scale_factor=2)(x[None]), nn.Softplus(2)(x)")),
    (LAYERS, True, result("nn.LeakyReLU(0.2)(torch.rand(3) - x[0, 0]), nn.ELU(inplace=True)(x - 1), x")),
    (LAYERS, False, result("nn.Softmax(dim=-1)(y := x + 1), y")),
    (LAYERS, False, result("nn.LeakyReLU(torch.rand(1).item())(torch.rand(3) - 0.5)")),
    (LAYERS, False, result("nn.Softmax(dim=(d := 1))(x.cumsum(d))")),
    (LAYERS, False, result("nn.Softmax(dim=1, dtype=torch.float64)(x)")),
    (LAYERS, False, result("nn.Upsample(scale_factor=torch.tensor(2))(x[None])")),
    (LAYERS, False, SOMETIMES),
    (LAYERS, False, net("nn.modules.module.register_module_forward_hook(print).remove()", "x = nn.ReLU()(x)")),
    # Constants: each dtype, sign and shape.
    (CONSTANT, True, result("torch.tensor(-0.0, device=x.device), torch.tensor([[True, True]], device=x.device)")),
    (CONSTANT, True, result("torch.tensor(-1, dtype=torch.uint8, device=x.device)")),
    (CONSTANT, True, result("torch.tensor(1e-46, dtype=torch.float16, device=x.device), torch.as_tensor([2, 2], device=x.device)")),
    (CONSTANT, True, result("torch.tensor(0.5, requires_grad=True, device=x.device)")),
    (CONSTANT, True, net("return(torch.tensor(0.5, device=x.device))")),
    (CONSTANT, False, net('print(f"{torch.tensor(0.5, device=x.device)=}")')),
    (CONSTANT, False, result("torch.tensor(-1, dtype=torch.uint64, device=x.device)")),
    (CONSTANT, False, result("torch.tensor(70000, dtype=torch.float16, device=x.device)")),
    # Factories: casts that wrap, devices that change on the way.
    (FACTORY, True, result("torch.full((x.size(0), 9), 300).to(x.device, torch.uint8), torch.full((x.size(0),), -7).to(x.device, torch.uint8)")),
    (FACTORY, True, result("torch.zeros(x.size(0), 9).t().to(x.device), torch.ones(2, x.size(0)).to(x.device, torch.bool)")),
    (FACTORY, True, result("torch.arange(x.size(0)).float().to(x.device), torch.eye(x.size(0)).to(x.device, torch.float16)")),
    (FACTORY, False, net("a = torch.zeros(x.size(0), 9); self.there = torch.device('cpu')", "a = a.to(self.there)")),
    (FACTORY, False, result("torch.rand(x.size(0)).to(x.device), torch.rand(2)")),
    (FACTORY, False, net("a = torch.zeros(x.size(0))", "a = a.view(-1, 1)", "a = a.to(x.device)", "a += 1", "return a, x")),
    (FACTORY, False, net("n = x.size(0)", "y = torch.zeros(n).to(x)", "print(x.device, y.dtype)", "return y")),
    (CONSTANT, False, result("[torch.tensor(0.5, device=x.device).device]")),
    # Indices: arithmetic, other tensors, tensors that may not be there.
    (INDEX, True, result("y[torch.arange(3)], y[torch.arange(4)[1:] // 2, 0], y[torch.arange(2).repeat(2)]", ON_GPU)),
    (INDEX, True, net(ON_GPU, "y[torch.arange(2), torch.arange(2)] = -1", "return y")),
    (INDEX, False, net(ON_GPU, "z = y * 2 if x is None else None", "rows = torch.arange(3)", "return y if z is None else z[rows]")),
    (INDEX, False, result("y[(torch.arange(50) / 49).long()]", ON_GPU)),
    (INDEX, False, result("y[torch.arange(2).repeat_interleave(torch.tensor([1, 2]))]", ON_GPU)),
    (INDEX, False, result("y[rows], sorted(locals())", ON_GPU, "rows = torch.arange(3)")),
    # Batches: whoever else has the memory may write to it before the copy has arrived.
    (BATCH, True, loop("seen.append((x.cuda(), y.cuda()))")),
    (BATCH, True, loop("x, y = batch", "seen.append((x.cuda(), len(batch)))", target="batch")),
    (BATCH, False, loop("seen.append((x.cuda(),))", "x.zero_()")),
    (BATCH, False, loop("x = batch[0]", "seen.append((x.cuda(),))", "batch[0].zero_()", target="batch")),
    (BATCH, False, loop("x, y = batch", "seen.append((x.cuda(),))", "batch[0].mul_(2)", target="batch")),
    (BATCH, False, loop("seen += [part.cuda() for part in batch]", "batch[0].zero_()", target="batch")),
    (BATCH, False, loop("host = x.to(torch.float32)", "seen.append((x.cuda(),))", "host.zero_()")),
    (BATCH, False, loop("seen.append(x.cuda())", "[part.fill_(7) for part in rest]", target="x, *rest").replace("x.cuda", "rest[0].cuda")),
    # Reads.
    (READ, True, net("print(nn.functional.relu(x.cuda()).to('cpu', non_blocking=True).numpy())")),
    (READ, False, net("print(f\"{nn.functional.relu(x.cuda()).to('cpu', non_blocking=True).numpy()=}\")")),
    # Rivals: who sees the gradients that are thrown away, and what has no `detach`.
    (RIVALS, True, gan()),
    (RIVALS, True, gan(judged="nn.functional.relu(x, inplace=True)", real="real.clone()")),
    (RIVALS, False, gan(made="[self.linear(z)]", judged="x[0]", real="[real]")),
    (RIVALS, False, gan(before=NORMS, behind="print(norms(gen))")),
    (RIVALS, False, gan(before="both = [*gen.parameters(), *disc.parameters()]", behind="nn.utils.clip_grad_norm_(both, 0.1)")),
    (RIVALS, False, gan(start="z.requires_grad_()", behind="log.append(z.grad.sum().item())")),
    (RIVALS, False, gan(judged="x if x.requires_grad else x * 2")),
    (RIVALS, False, gan(before="w = nn.Parameter(torch.ones(4)); opt_w = torch.optim.SGD([w], 0.1)", given="z * w", behind="opt_w.step()")),
    # Numbers that are read.
    (TWICE, True, loop("loss = x.cuda().sum()", "seen.append(loss.item())", "x.zero_()", "seen.append(loss.item())")),
    (TWICE, False, loop("held = torch.zeros(())", "loss = torch.sum(x.cuda(), out=held)", "seen.append(loss.item())", "held.mul_(2)", "seen.append(loss.item())")),
    (LIST, True, loop("seen += [float(v) for v in x.cuda().long().view(-1)]", "seen.append(max(v.item() for v in y.cuda().long().view(-1)))")),
    (LIST, True, loop("seen += [int(v) for v in (x.cuda() / 0).float().view(-1)]")),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "changes", "code"), PROGRAMS)
def test_a_program_does_the_same(
    rule: str,
    changes: bool,  # noqa: FBT001
    code: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    new = fixed(code, rule, Applicability.SAFE)
    assert (new != code) is changes
    ast.parse(new, feature_version=(3, 10))
    assert seen(new, monkeypatch) == seen(code, monkeypatch)


def seen(code: str, monkeypatch: pytest.MonkeyPatch) -> object:
    """All that can be seen of a program: what it returns or raises, what it prints, and the random numbers it leaves."""
    late: list[tuple[torch.Tensor, torch.Tensor]] = []

    def cuda(tensor: torch.Tensor, device: object = None, *, non_blocking: bool = False) -> torch.Tensor:  # noqa: ARG001
        if non_blocking:
            late.append((torch.zeros_like(tensor), tensor))
            return late[-1][0]
        return tensor.clone()

    monkeypatch.setattr(torch.Tensor, "cuda", cuda)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    torch.manual_seed(0)
    names: dict[str, Any] = {"__name__": "attacked"}
    printed = io.StringIO()
    returned: object
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(code, "<program>", "exec", dont_inherit=True), names)  # noqa: S102 - our own programs
            given = names["run"]()
            for target, source in late:
                target.copy_(source)
            returned = parts(given)
        except Exception as error:  # noqa: BLE001 - whatever it raises, both have to
            returned = type(error).__name__
    return returned, printed.getvalue(), bytes(torch.get_rng_state().tolist())


def parts(value: object) -> object:
    """A value as what can be compared: of a tensor its bits, type, strides, and how it stands to autograd."""
    if isinstance(value, torch.Tensor):
        kept = value.detach()
        laid = (value.shape, value.stride(), value.dtype, value.requires_grad, value.is_leaf)
        return (*map(str, laid), type(value.grad_fn).__name__, kept.contiguous().view(-1).view(torch.uint8).tolist())
    if isinstance(value, dict):
        return {key: parts(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(parts, value)]
    return type(value).__name__, repr(value)


PRINTED = {
    CONSTANT: ['print(f"{torch.tensor(0.5).cuda()}")', 'print(f"{x:{torch.tensor(0.5).cuda()}}")'],
    LAYERS: ['print(f"{nn.ReLU()(x)=}")'],
    FACTORY: [
        'print(f"{torch.zeros(3).to(x.device)=}")',
        'print(f"{torch.zeros(3).cuda()}")',
        'print(rf"""{torch.zeros(3).cuda()}""")',
    ],
}


@pytest.mark.parametrize(("rule", "line"), [(rule, line) for rule, lines in PRINTED.items() for line in lines])
def test_what_an_f_string_prints_or_cannot_hold_stays(rule: str, line: str) -> None:
    code = net(line)
    assert findings(code, rule)
    assert fixed(code, rule, Applicability.UNSAFE) == code


def test_other_f_strings_are_fixed() -> None:
    line = "print(f'{nn.Softmax(dim=1)(x)} {torch.tensor(0.5).cuda()}')"
    made = fixed(net(line), LAYERS, Applicability.SAFE)
    assert fixed(made, CONSTANT, Applicability.SAFE) == net(
        "print(f'{nn.functional.softmax(x, dim=1)} {torch.full((), 0.5, device=\"cuda\")}')"
    )
