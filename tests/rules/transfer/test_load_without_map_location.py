"""TL219: checkpoints that each process loads to one GPU are flagged; the tests run what the fix makes."""

from __future__ import annotations

import io
from typing import Any

import pytest
import torch
from laws import check_snippet
from twins import findings, fixed

from torchlint.finding import Applicability

RULE = "load-without-map-location"


def program(*lines: str, top: str = "", setup: str = 'torch.distributed.init_process_group("gloo")') -> str:
    body = "\n    ".join(lines)
    return (
        f"import torch\nfrom torch import nn\n{top}\n\ndef start(model):\n    {setup}\n\n\n"
        f"def resume(model, optimizer, path, args, rank=0, options=None):\n    {body}\n"
    )


FIXES = {
    "model.load_state_dict(torch.load(path))": 'model.load_state_dict(torch.load(path, map_location="cpu"))',
    "model.load_state_dict(torch.load(f=path)['model'])": (
        "model.load_state_dict(torch.load(f=path, map_location=\"cpu\")['model'])"
    ),
    "state = torch.load(path, weights_only=True)\n    model.load_state_dict(state['model'], strict=False)": (
        'state = torch.load(path, weights_only=True, map_location="cpu")\n'
        "    model.load_state_dict(state['model'], strict=False)"
    ),
    "if args.distributed:\n        model.load_state_dict(torch.load(path))": (
        'if args.distributed:\n        model.load_state_dict(torch.load(path, map_location="cpu"))'
    ),
    "state = torch.load(path)\n    if state:\n        optimizer.load_state_dict(state['a']['b'])": (
        "state = torch.load(path, map_location=\"cpu\")\n    if state:\n        optimizer.load_state_dict(state['a']['b'])"
    ),
}
SILENT = (
    "model.load_state_dict(torch.load(path, 'cpu'))",
    "model.load_state_dict(torch.load(path, map_location='cpu'))",
    "model.load_state_dict(torch.load(path, map_location=None))",
    "model.load_state_dict(torch.load(path, **options))",
    "model.load_state_dict(torch.load(path), assign=True)",
    "model.load_state_dict(args.states[torch.load(path)])",
    "return torch.load(path)",
    "state = torch.load(path)\n    return state['features']",
    "state = torch.load(path)\n    return model(state)",
    "if torch.distributed.get_rank() == 0:\n        model.load_state_dict(torch.load(path))",
    "state = None if args.world_size > 1 else torch.load(path)\n    model.load_state_dict(state)",
    "state = torch.load(path) if args.local_rank == 0 else None\n    model.load_state_dict(state)",
    "own = path + str(torch.distributed.get_rank())\n    model.load_state_dict(torch.load(own))",
)


@pytest.mark.parametrize(
    ("top", "found"),
    [
        ("device = torch.device('cpu')", False),
        ("device = torch.device(kind)", True),
        ("device = torch.device('cpu')\nother = torch.device('cuda')", True),
        ("device = torch.device('cpu')\nnet = nn.Linear(1, 1).cuda()", True),
    ],
)
def test_processes_of_the_cpu(top: str, found: bool) -> None:  # noqa: FBT001
    assert bool(findings(program("model.load_state_dict(torch.load(path))", top=top), RULE)) is found


@pytest.mark.parametrize(("before", "after"), FIXES.items())
def test_the_fix(before: str, after: str) -> None:
    assert fixed(program(before), RULE, Applicability.UNSAFE) == program(after)
    assert fixed(program(before), RULE, Applicability.SAFE) == program(before)


@pytest.mark.parametrize(
    "body",
    [
        "if rank == 0:\n        model.load_state_dict(torch.load(path))",
        "if args.gpu is None:\n        model.load_state_dict(torch.load(path))",
        "if args.distributed:\n        pass\n    else:\n        model.load_state_dict(torch.load(path))",
        "if not args.distributed:\n        model.load_state_dict(torch.load(path))",
        "model.load_state_dict(torch.load(f'{path}/gpu_{rank}.pt'))",
    ],
)
def test_one_process_by_a_name_is_noted(body: str) -> None:
    check_snippet(f"{program(body).rstrip()}  # <- {RULE}?\n", RULE)


@pytest.mark.parametrize("body", SILENT)
def test_silent(body: str) -> None:
    assert not findings(program(body), RULE)


LOAD = "model.load_state_dict(torch.load(path))"


@pytest.mark.parametrize(
    "options",
    [
        {"setup": "pass"},
        {"setup": "nn.DataParallel(model)"},
        {"top": "import deepspeed"},
        {"top": "from accelerate import Accelerator"},
        {"top": "import lightning as L"},
        {"top": "from torch.distributed.fsdp import FullyShardedDataParallel as FSDP"},
    ],
)
def test_other_programs(options: dict[str, str]) -> None:
    assert not findings(program(LOAD, **options), RULE)


@pytest.mark.parametrize(
    "setup",
    [
        "torch.distributed.init_process_group('nccl')",
        "return nn.parallel.DistributedDataParallel(model)",
        "return torch.nn.parallel.DistributedDataParallel(model, device_ids=[0])",
    ],
)
def test_programs_of_several_processes(setup: str) -> None:
    check_snippet(program(f"{LOAD}  # <- {RULE}", setup=setup), RULE)


def test_the_state_is_the_same() -> None:
    code = program("state = torch.load(path)", "model.load_state_dict(state['model'])", "return state['epoch']")
    results = []
    for text in (code, fixed(code, RULE, Applicability.UNSAFE)):
        names: dict[str, Any] = {}
        exec(compile(text, "<program>", "exec", dont_inherit=True), names)  # noqa: S102 - our own programs
        torch.manual_seed(0)
        model, other, file = torch.nn.Linear(3, 2), torch.nn.Linear(3, 2), io.BytesIO()
        torch.save({"model": model.state_dict(), "epoch": 3}, file)
        file.seek(0)
        results.append((names["resume"](other, None, file, None), other.weight.tolist(), other.bias.tolist()))
        assert torch.equal(other.weight, model.weight)
    assert results[0] == results[1]


SAVES = (
    "def keep(model, optimizer, path):\n    state = {key: value.cpu() for key, value in model.state_dict().items()}\n"
)


@pytest.mark.parametrize(
    ("saved", "mark"), [("state", ""), ("[state, optimizer.state_dict()]", "  # <- load-without-map-location")]
)
def test_what_was_moved_before_it_was_saved(saved: str, mark: str) -> None:
    line = f"model.load_state_dict(torch.load(path)){mark}"
    check_snippet(program(line, top=f"{SAVES}    torch.save({saved}, path)\n"), RULE)
