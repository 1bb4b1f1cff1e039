"""TL801: optimizers for models on a device that leave the implementation to torch."""

from __future__ import annotations

import pytest
from laws import check_snippet

RULE = "optimizer-not-fused"
HEAD = """
import torch
from torch import nn, optim
from torch.optim import AdamW
net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)).cuda()
other = Other().to(device)
"""


@pytest.mark.parametrize(
    ("made", "target", "fixed"),
    [
        ("optim.Adam(net.parameters())", (2, 0), "optim.Adam(net.parameters(), fused=torch.cuda.is_available())"),
        ("AdamW(net.parameters(), 1e-3)", (2, 4), "AdamW(net.parameters(), 1e-3, fused=True)"),
        ("optim.SGD(net.parameters(), 0.1, 0.9)", (2, 0), None),
        (
            "optim.SGD(net.parameters(), lr=0.1, momentum=m,)",
            (2, 4),
            "optim.SGD(net.parameters(), lr=0.1, momentum=m, fused=True,)",
        ),
        (
            "optim.SGD(net.parameters(), weight_decay=0.1)",
            (2, 4),
            "optim.SGD(net.parameters(), weight_decay=0.1, fused=True)",
        ),
        (
            "optim.Adam([{'params': net.parameters()}, {'params': list(other.parameters())}])",
            (2, 4),
            "optim.Adam([{'params': net.parameters()}, {'params': list(other.parameters())}], fused=True)",
        ),
        (
            "optim.Adam(filter(lambda p: p.requires_grad, net.parameters()))",
            (2, 4),
            "optim.Adam(filter(lambda p: p.requires_grad, net.parameters()), fused=True)",
        ),
        ("optim.Adam(p for p in net.parameters())", (2, 4), None),
    ],
)
def test_an_optimizer_for_a_moved_model(made: str, target: tuple[int, int], fixed: str | None) -> None:
    check_snippet(
        f"{HEAD}opt = {made}  # <- {RULE}\n", RULE, fixed=f"{HEAD}opt = {fixed or made}\n", target_torch=target
    )


@pytest.mark.parametrize(
    "made",
    [
        "optim.Adam(net.parameters(), fused=True)",
        "optim.Adam(net.parameters(), fused=False)",
        "optim.Adam(net.parameters(), foreach=True)",
        "optim.Adam(net.parameters(), **options)",
        "optim.Adagrad(net.parameters())",
        "optim.SGD(net.parameters(), 0.1)",
        "optim.SGD(net.parameters(), lr=0.1)",
        "optim.SGD(net.parameters(), lr=0.1, momentum=0, weight_decay=0.0)",
        "optim.Adam(nn.parallel.DistributedDataParallel(other.to('cpu')).parameters())",
        "optim.RMSprop(net.parameters())",
        "optim.Adam(unknown.parameters())",
        "optim.Adam([*net.parameters(), *unknown.parameters()])",
        "optim.Adam(groups)",
        "optim.Adam([image.cuda()])",
        "optim.Adam(net.cpu().parameters())",
        "optim.Adam(nn.Linear(8, 8).cuda().parameters())",
        "optim.SGD([*nn.Embedding(8, 8, sparse=True).cuda().parameters(), *net.parameters()])",
        "optim.Adam",
        "mylib.Adam(net.parameters())",
    ],
)
def test_nothing_to_fuse(made: str) -> None:
    check_snippet(f"{HEAD}opt = {made}\n", RULE)


@pytest.mark.parametrize("package", ["torch_xla", "deepspeed", "apex"])
def test_other_optimizers(package: str) -> None:
    check_snippet(f"import {package}{HEAD}opt = optim.Adam(net.parameters())\n", RULE)


def test_a_scaler_says_more() -> None:
    check_snippet(
        f"""{HEAD}
scaler = torch.cuda.amp.GradScaler()
opt = AdamW(net.parameters())
for x in loader:
    scaler.scale(net(x.cuda()).mean()).backward()
    scaler.step(opt)  # <- gradscaler-step-syncs
    scaler.update()
""",
        RULE,
        "gradscaler-step-syncs",
    )


def test_a_probe_that_is_wrapped() -> None:
    check_snippet(
        HEAD + "probe = nn.Linear(8, 2).cuda()\nprobe = nn.parallel.DistributedDataParallel(probe)\n"
        "opt = optim.AdamW(probe.parameters())\n"
        f"wide = nn.parallel.DistributedDataParallel(net)\nopt = optim.AdamW(wide.parameters())  # <- {RULE}\n",
        RULE,
    )


@pytest.mark.parametrize(
    ("uses", "flagged"),
    [
        ("opt.load_state_dict(state)", False),
        ("print(opt.param_groups[0])\nopt.load_state_dict(state)", False),
        ("opt.load_state_dict(state)\nopt.step()", True),
        ("fit(opt)", True),
    ],
)
def test_an_optimizer_that_never_steps(uses: str, flagged: bool) -> None:  # noqa: FBT001 - of a table
    mark = f"  # <- {RULE}" if flagged else ""
    check_snippet(f"{HEAD}state = torch.load(path)\nopt = AdamW(net.parameters()){mark}\n{uses}\n", RULE)


@pytest.mark.parametrize(
    ("head", "calls", "mark"),
    [
        ("fit(x, device='cpu')", "", ""),
        ("fit(x, device='cpu')", "fit(x, 'cuda')\n", f"  # <- {RULE}"),
        ("fit(x, device='cuda')", "", f"  # <- {RULE}"),
        ("fit(x, device)", "", f"  # <- {RULE}"),
        ("test_attention(device)", "test_attention(device)\n", f"  # <- {RULE}?"),
        ("bench_layer(device)", "bench_layer(device)\n", f"  # <- {RULE}?"),
        ("tested(device)", "tested(device)\n", f"  # <- {RULE}"),
    ],
)
def test_functions_that_try_or_that_run_on_the_cpu(head: str, calls: str, mark: str) -> None:
    made = "model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)).to(device)"
    check_snippet(
        f"{HEAD}def {head}:\n    {made}\n    opt = AdamW(model.parameters()){mark}\n    return opt\n{calls}", RULE
    )


@pytest.mark.parametrize(
    ("made", "mark"),
    [
        ("optim.AdamW(net.parameters(), foreach=False)", f"  # <- {RULE}"),
        ("optim.AdamW(unknown.parameters(), foreach=False)", f"  # <- {RULE}?"),
        ("optim.AdamW(net.parameters(), foreach=False, fused=True)", ""),
        ("optim.AdamW(net.parameters(), foreach=choice)", ""),
        ("optim.AdamW(net.parameters(), foreach=False, differentiable=True)", ""),
    ],
)
def test_parameters_one_after_the_other(made: str, mark: str) -> None:
    check_snippet(f"{HEAD}optimizer = {made}{mark}\noptimizer.step()\n", RULE)
