"""TL807: loops that blend the parameters of two models; that lists compute the same, on CPU torch."""

from __future__ import annotations

import pytest
import torch
from laws import active, check_snippet, fix
from twins import findings

from torchlint.finding import Applicability

RULE = "per-parameter-update-loop"


def program(body: str, head: str = "zip(net.parameters(), ema.parameters())", *, flagged: bool = True) -> str:
    mark = f"  # <- {RULE}" if flagged else ""
    return f"""
import torch
def train(net, ema, loader, m):
    for x in loader:
        net(x.cuda()).sum().backward()
        for p, q in {head}:{mark}
            {body}
"""


def after(keep: str, take: str | None) -> str:
    alpha = "" if take is None else f", alpha={take}"
    return f"""
import torch
def train(net, ema, loader, m):
    for x in loader:
        net(x.cuda()).sum().backward()
        with torch.no_grad():
            torch._foreach_mul_(list(ema.parameters()), {keep})
            torch._foreach_add_(list(ema.parameters()), list(net.parameters()){alpha})
"""


@pytest.mark.parametrize(
    ("body", "keep", "take"),
    [
        ("q.data.mul_(m).add_(p.data, alpha=1 - m)", "m", "1 - m"),
        ("q.mul_(m).add_((1 - m) * p.detach().data)", "m", "1 - m"),
        ("q.data.copy_(m * q.data + (1 - m) * p.data)", "m", "1 - m"),
        ("q.data.copy_(p.data * (1 - m) + q.data * m)", "m", "1 - m"),
        ("q.data = q.data * m + p.data * (1.0 - m)", "m", "1.0 - m"),
        ("q.data.mul_(m).add_(1 - m, p.data)", "m", "1 - m"),
        ("q.mul_(m); q.add_(p)", "m", None),
        ("q.data *= m; q.data += p.data * self.rate", "m", "self.rate"),
    ],
)
def test_a_blend(body: str, keep: str, take: str | None) -> None:
    check_snippet(program(body), RULE, fixed=after(keep, take))


@pytest.mark.parametrize("weight", ["m", "1 - m"])
def test_a_lerp_stays_one(weight: str) -> None:
    code = program(f"q.data.lerp_(p.data, {weight})")
    *above, _, _ = after("m", None).splitlines(keepends=True)
    line = f"torch._foreach_lerp_(list(ema.parameters()), list(net.parameters()), {weight})"
    check_snippet(code, RULE, fixed="".join(above) + f"            {line}\n")
    (found,) = findings(code, RULE)
    assert found.message.startswith("a kernel is launched for each parameter of `ema`")


@pytest.mark.parametrize(
    ("body", "head"),
    [
        ("q.data.copy_(p.data)", "zip(net.parameters(), ema.parameters())"),
        ("q.data.mul_(m)", "zip(net.parameters(), ema.parameters())"),
        ("q.mul_(m).add_(p * q)", "zip(net.parameters(), ema.parameters())"),
        ("q.mul_(p.norm()).add_(p)", "zip(net.parameters(), ema.parameters())"),
        ("q.mul_(m).add_(p, alpha=1 - m).clamp_(0)", "zip(net.parameters(), ema.parameters())"),
        ("q.mul_(m).add_(p); log(q)", "zip(net.parameters(), ema.parameters())"),
        ("q.copy_(m * q + (1 - m) * p + noise)", "zip(net.parameters(), ema.parameters())"),
        ("q = m * q + (1 - m) * p", "zip(net.parameters(), ema.parameters())"),
        ("q.grad = m * q + (1 - m) * p", "zip(net.parameters(), ema.parameters())"),
        ("q.mul_(m).add_(p)", "zip(net.buffers(), ema.buffers())"),
        ("q.mul_(m).add_(p)", "zip(net.parameters(), shadow)"),
        ("q.mul_(m).add_(p)", "enumerate(net.parameters())"),
        ("q.mul_(m).add_(p)", "zip(net.parameters(recurse=False), ema.parameters())"),
    ],
)
def test_anything_else_is_a_note_at_most(body: str, head: str) -> None:
    is_work = ("copy_(p.data)" not in body and "q = " not in body and "buffers" not in head) or "noise" in body
    check_snippet(program(body + f"  # <- {RULE}?" * is_work, head, flagged=False), RULE)


def test_how_often() -> None:
    check_snippet(
        """
        import torch
        def soft_update(net, ema, m):
            for p, q in zip(net.parameters(), ema.parameters()):  # <- per-parameter-update-loop
                q.data.lerp_(p.data, m)
        def merge(net, ema, m):
            for p, q in zip(net.parameters(), ema.parameters()):
                q.data.lerp_(p.data, m)
        def train(net, ema, loader, m):
            for epoch in range(10):
                for i, x in enumerate(loader):
                    net(x.cuda()).sum().backward()
                    if i % 100 == 0:
                        for p, q in zip(net.parameters(), ema.parameters()):
                            q.data.lerp_(p.data, m)
                for p, q in zip(net.parameters(), ema.parameters()):
                    q.data.lerp_(p.data, m)
        """,
        RULE,
    )


@pytest.mark.parametrize("body", ["q.mul_(m).add_(p)  # slowly", "q.mul_(torch.tensor(0.9)).add_(p)"])
def test_no_fix(body: str) -> None:
    check_snippet(program(body), RULE, fixed=program(body, flagged=False))


def test_comments_around_the_loop_stay() -> None:
    code = program("q.data.mul_(m).add_(p.data)").replace("        for p", "        # follow\n        for p")
    fixed = after("m", None).replace("        with", "        # follow\n        with")
    check_snippet(code, RULE, fixed=fixed)
    remark = code.replace(f"# <- {RULE}", "# slow")
    assert "# slow" in fix(remark, active(RULE), Applicability.UNSAFE).text


def test_lists_compute_the_same() -> None:
    targets, sources = ([torch.randn(7, 3) for _ in range(5)] for _ in range(2))
    expected = [
        target.clone().mul_(0.99).add_(source, alpha=0.01) for target, source in zip(targets, sources, strict=True)
    ]
    torch._foreach_mul_(targets, 0.99)
    torch._foreach_add_(targets, sources, alpha=0.01)
    assert all(map(torch.equal, targets, expected))
    expected = [target.clone().lerp_(source, 0.01) for target, source in zip(targets, sources, strict=True)]
    torch._foreach_lerp_(targets, sources, 0.01)
    assert all(map(torch.equal, targets, expected))


@pytest.mark.parametrize(
    ("around", "indent"),
    [
        ("@torch.no_grad()\ndef update(q, k, tau):\n", "    "),
        ("def update(q, k, tau):\n    with torch.inference_mode():\n", "        "),
    ],
)
def test_autograd_is_off_once(around: str, indent: str) -> None:
    top = """
import torch
def train(net, ema, loader, m):
    for x in loader:
        net(x.cuda()).sum().backward()
        update(ema, net, m)
"""
    loop = (
        f"{indent}# the average\n"
        f"{indent}for a, b in zip(q.parameters(), k.parameters()):  # <- {RULE}\n"
        f"{indent}    a.data.mul_(tau).add_(b.data, alpha=1 - tau)\n"
    )
    lists = (
        f"{indent}# the average\n{indent}torch._foreach_mul_(list(q.parameters()), tau)\n"
        f"{indent}torch._foreach_add_(list(q.parameters()), list(k.parameters()), alpha=1 - tau)\n"
    )
    check_snippet(top + around + loop, RULE, fixed=top + around + lists)


def test_a_program_on_the_cpu() -> None:
    check_snippet(
        """
        import torch
        def learn(make, copy, batches):
            net = make()
            slow = copy(net)
            optimizer = torch.optim.Adam(net.parameters())
            for batch in batches:
                net(batch).sum().backward()
                optimizer.step()
                for p, q in zip(net.parameters(), slow.parameters()):
                    q.data.mul_(0.9).add_(0.1 * p.data)
        """,
        RULE,
    )


@pytest.mark.parametrize("decorator", ["", "    @torch.no_grad()\n"])
def test_empty_lines_behind_the_loop_stay(decorator: str) -> None:
    top = f"""
import torch
class Pair:
    def train(self, loader, m):
        for x in loader:
            self.net(x.cuda()).sum().backward()
            self.update(m)

{decorator}    def update(self, m):
"""
    loop = "        for p, q in zip(self.net.parameters(), self.ema.parameters()):\n            q.mul_(m).add_(p)\n"
    bottom = "            \n\n    def save(self):\n        return self.net\n"
    made = fix(top + loop + bottom, active(RULE), Applicability.UNSAFE).text
    assert "_foreach_add_" in made
    *_, last, kept, empty, _, _ = made.splitlines()
    assert (last.strip().startswith("torch._foreach_add_"), kept.strip(), empty) == (True, "", "")


STEP = """
import torch
class Ours(torch.optim.{base}):
    def step(self):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                average = state["average"]
                {lines}
"""


def test_the_step_of_an_optimizer_of_their_own_is_a_note() -> None:
    lines = f"average.mul_(0.9).add_(p.grad)  # <- {RULE}?\n                p.sub_(average)"
    check_snippet(STEP.format(base="Optimizer", lines=lines), RULE)


@pytest.mark.parametrize(
    "lines",
    [
        "state['step'] = 0",
        "p.requires_grad_(False)",
        "p.copy_(average)",
        "p.zero_()",
        "print(p.grad.norm())",
        "p.grad = None",
    ],
)
def test_what_is_no_work_is_left_alone(lines: str) -> None:
    check_snippet(STEP.format(base="Optimizer", lines=lines), RULE)


def test_a_way_over_lists_beside_it_is_enough() -> None:
    lines = "p.add_(p.grad)\n    def many(self, these, those):\n        torch._foreach_add_(these, those)"
    check_snippet(STEP.format(base="Optimizer", lines=lines), RULE)


NORM = """
import torch
def train(net, loader, optimizer):
    for x in loader:
        net(x.cuda()).sum().backward()
        {lines}
        optimizer.step()
"""
MARK = f"  # <- {RULE}?"


@pytest.mark.parametrize(
    "lines",
    [
        f"total = torch.stack([p.grad.norm() for p in net.parameters()]).norm(){MARK}",
        f"total = torch.norm(torch.stack([torch.norm(p.grad.detach(), 2.0) for p in net.parameters()]), 2.0){MARK}",
        f"total = 0\n        for p in net.parameters():\n            total += p.grad.data.pow(2).sum(){MARK}",
        f"held = list(net.parameters())\n        for p in held:\n            p.grad.div_(2){MARK}",
        f"for name, p in net.named_parameters():\n            p.data.clamp_(-1, 1){MARK}",
        f"for name, p in net.named_parameters():\n            shadow[name] = 0.9 * shadow[name] + 0.1 * p.data{MARK}",
    ],
)
def test_gradients_and_weights_one_by_one_are_notes(lines: str) -> None:
    check_snippet(NORM.format(lines=lines), RULE)


@pytest.mark.parametrize(
    "lines",
    [
        "for name, p in net.named_parameters():\n            writer.add_scalar(name, p.grad.norm(), 1)",
        "for name, p in net.named_parameters():\n            if 'weight' in name:\n                last = p.grad.norm()",
        "total = sum(p.grad.norm().item() for p in net.parameters())",
        "total = [x.grad.norm() for x in inputs]",
        "held = held\n        for p in held:\n            p.grad.div_(2)",
    ],
)
def test_norms_that_are_looked_at_are_not(lines: str) -> None:
    check_snippet(NORM.format(lines=lines), RULE)


@pytest.mark.parametrize(
    ("said", "mark"), [("Iterable[nn.Parameter]", MARK), ("Iterable[torch.Tensor]", ""), ("list", "")]
)
def test_what_is_said_to_be_parameters(said: str, mark: str) -> None:
    check_snippet(
        f"""
        from collections.abc import Iterable
        import torch
        from torch import nn
        class Average:
            @torch.no_grad()
            def step(self, parameters: {said}):
                parameters = list(parameters)
                for mine, other in zip(self.shadows, parameters):
                    if other.requires_grad:
                        mine.sub_(0.1 * (mine - other)){mark}
        def train(net, loader, optimizer, average):
            for x in loader:
                net(x.cuda()).sum().backward()
                optimizer.step()
                average.step(net.parameters())
        """,
        RULE,
    )
