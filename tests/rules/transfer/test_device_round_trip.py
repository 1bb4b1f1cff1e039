"""TL206: data that goes to the CPU and back; the tests also show what a fix would change, which is why there is none."""

from __future__ import annotations

import textwrap

import numpy as np
import pytest
import torch
from laws import active, check_snippet, lint, marks, places

RULE = "device-round-trip"
OTHERS = ("item-in-train-loop", "item-in-eval-loop", "bulk-d2h-in-hot-loop")


def loop(*lines: str) -> str:
    """The lines where `x` is a network's output on the device, at each batch."""
    body = textwrap.indent("\n".join(lines), " " * 8)
    return (
        f"import math\nimport numpy as np\nimport torch\n\n"
        f"def run(model, loader, device, host, other):\n    for inputs, labels in loader:\n"
        f"        x = model(inputs.to(device)).exp()\n{body}\n        model(y)\n"
    )


def flagged(code: str, *rules: str) -> list[tuple[int, str]]:
    return places(code, active(*rules or (RULE,)))


@pytest.mark.parametrize(
    "trip",
    [
        "torch.from_numpy(np.clip(x.cpu().numpy(), 0, 1)).cuda()",
        "torch.from_numpy(np.clip(x.detach().cpu().numpy(), 0, 1)).float().to(x.device)",
        "torch.from_numpy(x.numpy(force=True) ** 2).to(device)",
        "torch.as_tensor(np.exp(x.to('cpu').numpy()), device=device)",
        "torch.tensor(x.tolist()).cuda()",
        "torch.tensor(x.tolist(), device=device, dtype=torch.float32)",
        "torch.tensor(x.item() / 2, device=device)",
        "torch.tensor([math.sqrt(x.mean().item()), float(x.sum())], device=device)",
        "torch.tensor([v.item() for v in (x.mean(), x.sum())]).to(device)",
        "torch.cuda.FloatTensor(x.tolist())",
        "torch.FloatTensor(x.tolist()).type_as(x)",
        "x.new_tensor(x.cpu().numpy()[:, 0].astype(np.float32))",
        "x.cpu().cuda()",
        "x.data.cpu().view(-1).cuda(non_blocking=True)",
        "torch.stack([x.cpu(), x.cpu() + 1]).to(device)",
        "torch.from_numpy(np.where(x.cpu().numpy() > 0, 1.0, 0.0)).to(device)",
        "torch.from_numpy(-x.cpu().numpy()[:, ::-1].copy()).cuda(0)",
        "(torch.arange(9)[None] < x.cpu()[:, None]).to(device)",
        "torch.eye(10)[x.cpu().long()].to(device)",
        "torch.zeros(4, 9).scatter_(1, x.cpu().long(), 1).to(device)",
        "torch.autograd.Variable(x.cpu().sum(0)).cuda()",
    ],
)
def test_trips(trip: str) -> None:
    assert len(flagged(loop(f"y = {trip}"))) == 1


@pytest.mark.parametrize(
    "lines",
    [
        ("a = x.cpu().numpy()  #!", "a[a < 0] = 0", "a *= 2", "y = torch.from_numpy(a).to(device)"),
        ("a, b = x.cpu().numpy(), 3  #!", "y = torch.from_numpy(a * b).to(device)"),
        ("a = x.cpu()  #!", "y = torch.zeros(a.shape[0])", "y[a > 0] = 1", "y = y.to(device)"),
        ("a = x.tolist()  #!", "y = torch.tensor(a)", "y = y.unsqueeze(0)", "y = y.to(device)"),
        ("v = x.mean().item()  #!", "del inputs", "y = torch.tensor(v, device=x.device)"),
        ("a = x.cpu().numpy()  #!", "if len(a) > 2:", "    a = a[::-1].copy()", "y = torch.from_numpy(a).cuda()"),
        ("for row in x.cpu().numpy():  #!", "    y = torch.from_numpy(row).cuda()"),
        ("a = x.cpu()  #!", "if torch.cuda.is_available():", "    a = a.cuda()", "y = a"),
        ("h = torch.zeros(4, 9)", "h.scatter_(1, x.cpu().long(), 1)  #!", "y = h.to(device)"),
    ],
)
def test_trips_over_names(lines: tuple[str, ...]) -> None:
    check_snippet(loop(*lines).replace("#!", f"# <- {RULE}"), RULE)


@pytest.mark.parametrize(
    "line",
    [
        "y = torch.from_numpy(np.clip(x.cpu().numpy(), 0, 1))",  # stays
        "y = torch.from_numpy(np.clip(x.cpu().numpy(), 0, 1)).to('cpu')",
        "y = torch.from_numpy(np.clip(inputs.cpu().numpy(), 0, 1)).to(device)",  # the loader's
        "y = torch.from_numpy(np.clip(x.numpy(), 0, 1)).to(device)",  # only where x is on the CPU
        "y = torch.from_numpy(host(x.cpu().numpy())).to(device)",
        "y = torch.from_numpy(np.linalg.svd(x.cpu().numpy())[0]).to(device)",
        "y = torch.linalg.svd(x.cpu())[0].to(device)",
        "y = torch.cumsum(x.cpu(), 0).to(device)",
        "y = (x.cpu() + torch.randn(3)).to(device)",
        "y = (x.cpu() * host).to(device)",
        "y = host[x.cpu()].to(device)",
        "y = host[x.tolist()].to(device)",
        "y = x.cpu().normal_().to(device)",
        "y = x.cpu().to('cuda:1')",
        "y = x.cpu().cuda(1)",
        "y = x.cpu().to(other)",
        "y = torch.zeros(x.max().item(), device=device)",
        "y = torch.arange(x.max().item())[None].to(device)",
        "y = torch.eye(3).reshape(-1, x.max().item()).to(device)",
        "y = torch.arange(9)[: x.max().item()].to(device)",
        "y = model.cpu().to(device)",
        "y = x.cpu().to(torch.float64)",
        "y = torch.tensor(x.shape[0], device=device)",
        "y = torch.tensor(np.zeros(3)).to(device)",
        "y = x.cpu().cuda() if device.type == 'cuda' else x",
    ],
)
def test_look_alikes(line: str) -> None:
    assert not flagged(loop(line))


@pytest.mark.parametrize(
    "use",
    [
        "print(a)",
        "host.append(a)",
        "if a.max() > 3: break",
        "b = a",
        "np.save('x.npy', a)",
        "for i, n in enumerate(host): a[i, n:] = 0",
        "a[0] = host(3)",
        "model(inputs.to(device))",
        "torch.cuda.empty_cache()",
    ],
)
def test_what_happens_between(use: str) -> None:
    trip = ("a = x.cpu().numpy()", "y = torch.from_numpy(a).to(device)")
    assert flagged(loop(*trip))
    assert not flagged(loop(trip[0], use, trip[1]))


def test_what_a_device_cannot_do_by_words_is_noted() -> None:
    code = loop("y = x", "step = 1", "if not device.startswith('x'):", "    y = x.cpu().flip(0).to(device)")
    assert [rule for _, rule in flagged(code)] == [f"{RULE}?"]


@pytest.mark.parametrize("guard", ["if step % 100 == 0:", "if x.device.type == 'mps':", "if x.is_cuda:"])
def test_branches(guard: str) -> None:
    code = loop("y = x", "step = 1", guard, "    y = x.cpu().flip(0).to(device)")
    assert not flagged(code)
    assert flagged(code.replace(guard, "if host:"))


def test_only_at_each_batch() -> None:
    trip = "torch.from_numpy(np.clip(x.detach().cpu().numpy(), 0, 1)).to(device)"
    check_snippet(
        f"import numpy as np, torch\ndef once(model, x, device):\n    x = x.to(device)\n    return {trip}  # <- {RULE}?\n",
        RULE,
    )


def test_one_line_one_message() -> None:
    code = loop(
        "loss = x.mean()",
        "loss.backward()",
        "y = torch.tensor(loss.item(), device=device)",
        "z = torch.from_numpy(np.clip(x.detach().cpu().numpy(), 0, 1)).to(device)",
        "host.update(x.cpu().numpy())",
        "host.append(loss.item())",
    )
    rules = [rule for _, rule in flagged(code, RULE, *OTHERS)]
    assert rules == [RULE, RULE, "bulk-d2h-in-hot-loop", "item-in-train-loop"]
    evaluation = loop("y = torch.tensor(x.mean().item(), device=device)").replace("def", "@torch.no_grad()\ndef")
    assert [rule for _, rule in flagged(evaluation, RULE, *OTHERS)] == [RULE]


def test_messages() -> None:
    code = loop(
        "a = np.sqrt(np.clip(x.cpu().numpy(), 0, 1))",
        "y = torch.from_numpy(a).to(device)",
        "y = torch.tensor(x.tolist(), device=device)",
        "y = torch.from_numpy(np.exp(np.abs(np.floor(x.cpu().numpy())))).to(device, torch.float32)",
    )
    messages = [(finding.message, finding.help) for finding in lint(code, active(RULE)).findings]
    down, up = "synchronizes with the GPU every batch, and", "copies the data back"
    assert messages == [
        (
            f"`x.cpu()` {down} `.to(device)` {up}",
            "stay on the GPU: `torch.clamp` and `torch.sqrt` do the same there",
        ),
        (f"`x.tolist()` {down} `torch.tensor(…)` {up}", "stay on the GPU: nothing on the way needs the CPU"),
        (
            f"`x.cpu()` {down} `.to(…)` {up}",
            "stay on the GPU: torch has `torch.floor` and `torch.abs` and all else that is done on the way",
        ),
    ]


def test_data_that_is_also_used_on_the_host_makes_no_trip() -> None:
    shared = ("a = x.cpu().numpy()", "b = np.exp(a)", "y = torch.from_numpy(a).to(device)")
    assert len(flagged(loop(*shared, "z = torch.from_numpy(b).to(device)"))) == 1
    assert not flagged(loop(*shared, "z = torch.from_numpy(b).to(device)", "host.append(b)"))


def test_what_a_fix_would_change() -> None:
    x = torch.rand(3, requires_grad=True)
    back = torch.from_numpy(np.clip(x.detach().cpu().numpy(), 0, 1))
    assert not back.requires_grad
    assert x.clamp(0, 1).requires_grad
    whole = torch.arange(4)
    assert torch.from_numpy(np.mean(whole.numpy(), keepdims=True)).dtype is torch.float64
    assert torch.tensor(torch.tensor(0.1, dtype=torch.float64).item()).dtype is torch.float32
    moved, same = torch.tensor(whole.tolist()), whole.detach()
    whole[0] = 7
    assert moved[0] == 0
    assert same[0] == 7
    assert np.std(np.arange(4.0)) != torch.arange(4.0).std().item()


def test_the_fixture_marks_what_it_shows() -> None:
    from importlib.resources import files

    assert len(marks((files("torchlint.fixtures") / "device_round_trip" / "slow.py").read_text())) == 4
