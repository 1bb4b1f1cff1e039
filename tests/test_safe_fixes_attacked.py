"""Safe fixes under attack: what a program prints, computes and raises is the same bit for bit once they are applied."""

from __future__ import annotations

import pytest
from twins import findings, fixed

from torchlint.finding import Applicability

HEAD = """
import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
"""


def net(*lines: str) -> str:
    return HEAD + "".join(f"        {line}\n" for line in (*lines, "return x"))


PRINTED = {
    "constant-tensor-in-hot-path": [
        'print(f"{torch.tensor(0.5, device=x.device)=}")',
        'print(f"{torch.tensor(0.5).cuda()}")',
        'print(f"{x:{torch.tensor(0.5).cuda()}}")',
    ],
    "module-built-in-forward": ['print(f"{nn.ReLU()(x)=}")'],
    "host-factory-then-move": [
        'print(f"{torch.zeros(3).to(x.device)=}")',
        'print(f"{torch.zeros(3).cuda()}")',
        'print(rf"""{torch.zeros(3).cuda()}""")',
    ],
    "nonblocking-d2h-read": ["print(f\"{x.cuda().to('cpu', non_blocking=True).numpy()=}\")"],
}


@pytest.mark.parametrize(("rule", "line"), [(rule, line) for rule, lines in PRINTED.items() for line in lines])
def test_what_an_f_string_prints_or_cannot_hold_stays(rule: str, line: str) -> None:
    code = net(line)
    assert findings(code, rule)
    assert fixed(code, rule, Applicability.UNSAFE) == code


def test_other_f_strings_are_fixed() -> None:
    line = "print(f'{nn.Softmax(dim=1)(x)} {torch.tensor(0.5).cuda()}')"
    made = fixed(net(line), "module-built-in-forward", Applicability.SAFE)
    assert fixed(made, "constant-tensor-in-hot-path", Applicability.SAFE) == net(
        "print(f'{nn.functional.softmax(x, dim=1)} {torch.full((), 0.5, device=\"cuda\")}')"
    )
