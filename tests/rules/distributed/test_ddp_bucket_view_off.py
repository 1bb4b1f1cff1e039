"""TL708: the wrapper without the option is flagged where a model is trained; the fix adds it."""

from __future__ import annotations

from importlib.resources import files

import pytest
from laws import check_snippet

from torchlint.registry import find

RULE = "ddp-bucket-view-off"
TRAINS = """
def train(model, loader, optimizer):
    for x in loader:
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
"""


def snippet(call: str, *, mark: str = "", after: str = TRAINS) -> str:
    return f"from torch.nn.parallel import DistributedDataParallel as DDP\nmodel = {call}{mark}\n{after}"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("DDP(model)", "DDP(model, gradient_as_bucket_view=True)"),
        ("DDP(model, [rank], rank)", "DDP(model, [rank], rank, gradient_as_bucket_view=True)"),
        (
            "DDP(model.cuda(), device_ids=[rank], find_unused_parameters=True)",
            "DDP(model.cuda(), device_ids=[rank], find_unused_parameters=True, gradient_as_bucket_view=True)",
        ),
        ("DDP(module=model).to(rank)", "DDP(module=model, gradient_as_bucket_view=True).to(rank)"),
    ],
)
def test_the_fix_adds_it(before: str, after: str) -> None:
    check_snippet(snippet(before, mark=f"  # <- {RULE}"), RULE, fixed=snippet(after))


@pytest.mark.parametrize(
    "code",
    [
        snippet("DDP(model, gradient_as_bucket_view=False)"),
        snippet("DDP(model, gradient_as_bucket_view=args.views)"),
        snippet("DDP(model, **options)"),
        snippet("DDP(*given)"),
        snippet("DDP(model, None, None, 0, True, True, None, 25, False, False, True)"),
        snippet("DDP(teacher)", mark=f"  # <- {RULE}?"),
        snippet("DDP(self.model_ema)", mark=f"  # <- {RULE}?"),
        snippet("DDP"),
        snippet("DDP(model)", after="def evaluate(model, loader):\n    return [model(x) for x in loader]\n"),
        snippet("DDP(model)").replace("from torch.nn.parallel", "from apex.parallel"),
    ],
)
def test_silent(code: str) -> None:
    check_snippet(code, RULE)


@pytest.mark.parametrize(
    ("line", "flagged"),
    [
        ("p.grad = p.grad / 2", False),
        ("p.grad.detach_()", False),
        ("p.grad.data = other", False),
        ("p.grad = None", True),
        ("p.grad.mul_(0.5)", True),
        ("print(p.grad.norm())", True),
    ],
)
def test_code_that_gives_parameters_other_gradients(line: str, flagged: bool) -> None:  # noqa: FBT001 - of a table
    mark = f"  # <- {RULE}" if flagged else ""
    after = f"{TRAINS}\ndef look(model, other):\n    for p in model.parameters():\n        {line}\n"
    check_snippet(snippet("DDP(model)", mark=mark, after=after), RULE)


def test_it_is_asked_for() -> None:
    assert not find(RULE).default


def test_look_alikes_obey_the_laws() -> None:
    check_snippet(files("torchlint.fixtures").joinpath("ddp_bucket_view_off/ok.py").read_text("utf-8"), RULE)


BRANCHES = """
from torch.nn.parallel import DistributedDataParallel as DDP
def wrap(model, device):
    if device.type == "cpu":
        model = DDP(model)
    else:
        model = DDP(model, device_ids=[device])  # <- ddp-bucket-view-off
    return model
"""


@pytest.mark.parametrize(
    "code",
    [
        snippet("DDP(model, device_ids=None)"),
        snippet('DDP(torch.nn.Linear(8, 8).to("cpu"))').replace("from torch.nn", "import torch\nfrom torch.nn", 1),
        BRANCHES + TRAINS,
        BRANCHES.replace("DDP(model)", "DDP(model.cuda())  # <- ddp-bucket-view-off") + TRAINS,
    ],
)
def test_wrappers_for_the_cpu(code: str) -> None:
    check_snippet(code, RULE)


@pytest.mark.parametrize(
    "other",
    [
        "import torch\ndef step(id, loss):\n    torch.distributed.autograd.backward(id, [loss])",
        "def step(self):\n    self.mp_trainer.zero_grad()",
        "from apex.fp16_utils import FP16_Optimizer\noptimizer = FP16_Optimizer(optimizer)",
        "import deepspeed\nengine, *_ = deepspeed.initialize(model=model)",
    ],
)
def test_gradients_that_are_not_in_grad(other: str) -> None:
    check_snippet(snippet("DDP(model)", after=f"{TRAINS}\n{other}\n"), RULE)


def test_one_step() -> None:
    code = """
        from torch.nn.parallel import DistributedDataParallel as DDP
        def demo(model, x):
            model = DDP(model, device_ids=[0])
            model(x).sum().backward()
        """
    check_snippet(code, RULE)
    looped = code.replace("=[0])", "=[0])  # <- ddp-bucket-view-off").replace(
        "    model(x)", "    for x in x: model(x)"
    )
    check_snippet(looped, RULE)


def test_a_branch_for_old_releases() -> None:
    code = f"""
        import torch
        from torch.nn.parallel import DistributedDataParallel as DDP
        def wrap(model):
            if newer(torch.__version__, "1.11"):
                return DDP(model, static_graph=True)  # <- {RULE}
            else:
                return DDP(model)
        def step(model, x):
            model(x).sum().backward()
        """
    check_snippet(code, RULE)


@pytest.mark.parametrize(
    ("run", "others", "flagged"),
    [
        ("with torch.no_grad():\n        soft = average(x)", "", False),
        ("soft = average(x)", "", True),
        ("with torch.no_grad():\n        soft = average(x)", "average.train()", True),
        ("with torch.no_grad():\n        soft = average(x)", "optimizer = SGD(average.parameters())", True),
        ("fit(average)", "", True),
    ],
)
def test_a_model_that_only_evaluates_has_no_gradients(run: str, others: str, flagged: bool) -> None:  # noqa: FBT001
    mark = f"  # <- {RULE}" if flagged else ""
    code = f"""import torch
from torch.nn.parallel import DistributedDataParallel as DDP
average = DDP(make(), device_ids=[rank]){mark}
{others}
for x in loader:
    {run}
    net(x, soft).sum().backward()
"""
    check_snippet(code, RULE)


@pytest.mark.parametrize(
    ("switches", "flagged"),
    [
        (["net.requires_grad_(False)", "net.head.requires_grad_(True)"], False),
        (["net.requires_grad_(False)", "net.requires_grad_(True)"], True),
        (["other_net.requires_grad_(False)"], True),
    ],
)
def test_a_frozen_model_with_a_head(switches: list[str], flagged: bool) -> None:  # noqa: FBT001 - of a table
    mark = f"  # <- {RULE}" if flagged else ""
    lines = "\n".join(switches)
    code = f"from torch.nn.parallel import DistributedDataParallel as DDP\n{lines}\nmodel = DDP(net){mark}\n{TRAINS}"
    check_snippet(code, RULE)


def test_a_framework_that_keeps_gradients_in_a_buffer() -> None:
    check_snippet("from fastreid.solver import build_optimizer\n" + snippet("DDP(model)"), RULE)
    check_snippet("from opacus import PrivacyEngine\n" + snippet("DDP(model)"), RULE)
