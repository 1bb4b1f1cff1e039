"""TL802: steps of a scaler whose optimizer could decide on the device; what that changes, on CPU torch."""

from __future__ import annotations

import pytest
import torch
from laws import check_snippet
from torch import nn

RULE = "gradscaler-step-syncs"
LOOP = """
for x, y in loader:
    scaler.scale(loss_fn(model(x.cuda()), y.cuda())).backward()
    scaler.step(optimizer){mark}
    scaler.update()
"""
HEAD = """
import torch
from torch import optim
from torch.cuda.amp import GradScaler
model = Net().cuda()
"""


def program(made: str, scaler: str = "GradScaler()", *, flagged: bool) -> str:
    mark = f"  # <- {RULE}" if flagged else ""
    return f"{HEAD}optimizer = {made}\nscaler = {scaler}\n{LOOP.format(mark=mark)}"


@pytest.mark.parametrize(
    ("made", "target", "fixed"),
    [
        ("optim.Adam(model.parameters())", (2, 0), "optim.Adam(model.parameters(), fused=torch.cuda.is_available())"),
        ("optim.AdamW(model.parameters(), 1e-3)", (2, 4), "optim.AdamW(model.parameters(), 1e-3, fused=True)"),
        ("optim.AdamW(groups)", (2, 4), "optim.AdamW(groups, fused=True)"),
        ("optim.AdamW(groups)", (2, 3), "optim.AdamW(groups)"),  # the parameters may be on the CPU still
        ("optim.SGD(model.parameters(), 0.1)", (2, 2), "optim.SGD(model.parameters(), 0.1)"),
        (
            "optim.SGD(model.parameters(), 0.1)",
            (2, 3),
            "optim.SGD(model.parameters(), 0.1, fused=torch.cuda.is_available())",
        ),
        ("optim.Adam(p for p in ps)", (2, 4), "optim.Adam(p for p in ps)"),
        ("optim.Adam((p for p in ps))", (2, 4), "optim.Adam((p for p in ps), fused=True)"),
        ("optim.Adam(ps, **{'lr': 1})", (2, 4), "optim.Adam(ps, **{'lr': 1}, fused=True)"),
    ],
)
def test_an_optimizer_that_could_be_fused(made: str, target: tuple[int, int], fixed: str) -> None:
    # Where there is no fix the finding stays.
    after = program(fixed, flagged=False)
    check_snippet(program(made, flagged=True), RULE, fixed=after, target_torch=target)


@pytest.mark.parametrize(
    ("made", "scaler"),
    [
        ("optim.Adam(ps, fused=True)", "GradScaler()"),
        ("optim.Adam(ps, fused=is_new)", "GradScaler()"),
        ("optim.Adam(ps, foreach=True)", "GradScaler()"),
        ("optim.Adam(ps, **options)", "GradScaler()"),
        ("optim.RMSprop(ps)", "GradScaler()"),
        ("optim.Adagrad(ps)", "GradScaler()"),
        ("mylib.Adam(ps)", "GradScaler()"),
        ("hvd.DistributedOptimizer(optim.Adam(ps))", "GradScaler()"),
        ("optim.Adam(ps)", "GradScaler(enabled=False)"),
        ("optim.Adam(ps)", "torch.amp.GradScaler('cpu')"),
        ("optim.Adam(ps)", "torch.GradScaler(device='cpu')"),
        ("optim.Adam(ps)", "mylib.Scaler()"),
        ("optim.SGD(nn.Embedding(9, 9, sparse=True).parameters())", "GradScaler()"),
    ],
)
def test_nothing_to_gain(made: str, scaler: str) -> None:
    check_snippet(program(made, scaler, flagged=False), RULE)


OPTIONS = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--dtype", default="bfloat16")
parser.add_argument("--amp", action="store_true")
parser.add_argument("--quiet", action="store_false")
parser.add_argument("--always", action="store_true", default=True)
args = parser.parse_args()
"""


@pytest.mark.parametrize(
    ("enabled", "mark"),
    [
        ("args.dtype == 'float16'", "?"),
        ("args.amp", "?"),
        ("args.dtype == 'bfloat16'", ""),
        ("args.quiet", ""),
        ("args.always", ""),
        ("args.other", ""),
        ("True", ""),
    ],
)
def test_an_option_of_the_command_line_may_switch_it_on(enabled: str, mark: str) -> None:
    loop = LOOP.format(mark=f"  # <- {RULE}{mark}")
    made = f"optimizer = optim.Adam(model.parameters())\nscaler = GradScaler(enabled={enabled})\n"
    check_snippet(f"{HEAD}{OPTIONS}{made}{loop}", RULE)


def test_what_is_left_of_an_epoch_is_one_step() -> None:
    check_snippet(
        """
        import torch
        def train(model, optimizer, loader, scaler):
            for epoch in range(9):
                for i, (x, y) in enumerate(loader):
                    scaler.scale(loss_fn(model(x.cuda()), y.cuda())).backward()
                    if (i + 1) % 8 == 0:
                        scaler.step(optimizer)  # <- gradscaler-step-syncs
                        scaler.update()
                if (i + 1) % 8 != 0:
                    scaler.step(optimizer)
                    scaler.update()

        net = torch.nn.Linear(3, 3).cuda()
        train(net, torch.optim.Adam(net.parameters()), loader, torch.cuda.amp.GradScaler())
        """,
        RULE,
    )


def test_both_come_a_long_way() -> None:
    check_snippet(
        """
        import torch

        def make(model, name):
            if name == "sgd":
                return torch.optim.SGD(model.parameters(), 0.1)
            return torch.optim.Adam(model.parameters())

        class Trainer:
            def __init__(self, model, name, amp):
                self.optimizer = make(model, name)
                self.scaler = torch.amp.GradScaler("cuda", enabled=amp) if amp else None

            def step(self, loss):
                self.scaler.scale(loss).backward()
                self.scaler.step(self.optimizer)  # <- gradscaler-step-syncs
                self.scaler.update()

        def adversarial(models, optims, scaler):
            net_g, net_d = models
            optim_g, optim_d = optims
            scaler.step(optim_d)
            scaler.step(optimizer=optim_g)  # <- gradscaler-step-syncs?

        def main(g, d, theirs):
            adversarial([g, d], [torch.optim.AdamW(g.parameters()), theirs], torch.cuda.amp.GradScaler())
        """,
        RULE,
    )


def test_there_is_no_fix_for_what_takes_over_a_state() -> None:
    code = program("optim.Adam(model.parameters())", flagged=True)
    for line in ("optimizer.load_state_dict(saved)\n", "resume(path, model, optimizer)\n"):
        made = (code + line).replace(f"  # <- {RULE}", "")
        check_snippet(code + line, RULE, fixed=made, target_torch=(2, 4))


def _stepped(*, fused: bool, gradient: float, made: object = None) -> torch.Tensor:
    layer = nn.Linear(1, 1, bias=False)
    nn.init.ones_(layer.weight)
    optimizer = torch.optim.AdamW(layer.parameters(), fused=fused)
    if made is not None:
        optimizer.load_state_dict(made)
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(layer(torch.full((1, 1), gradient)).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    return layer.weight.detach()


def test_a_fused_optimizer_skips_the_same_steps() -> None:
    for gradient in (1.0, float("inf"), float("nan")):
        torch.testing.assert_close(_stepped(fused=True, gradient=gradient), _stepped(fused=False, gradient=gradient))


def test_a_state_that_was_not_fused_is_refused() -> None:
    old = torch.optim.AdamW(nn.Linear(1, 1, bias=False).parameters()).state_dict()
    with pytest.raises(AssertionError, match="grad_scale and found_inf"):
        _stepped(fused=True, gradient=1.0, made=old)


@pytest.mark.parametrize(
    ("others", "mark"), [("fast.Lamb(ps)", f"  # <- {RULE}"), ("fast.Lamb(ps) if b else fast.Adam(ps)", "")]
)
def test_a_choice_of_optimizers(others: str, mark: str) -> None:
    code = f"{HEAD}import fast\noptimizer = optim.SGD(ps, 0.1) if a else {others}\nscaler = GradScaler()\n"
    check_snippet(code + LOOP.format(mark=mark), RULE)
