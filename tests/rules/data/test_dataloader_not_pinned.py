"""TL102: loaders with workers whose batches a loop moves to the device from pageable memory."""

from __future__ import annotations

import textwrap

import pytest
import torch
from laws import active, check_snippet, lint, unmarked

from torchlint.finding import Doubt

RULE = "dataloader-not-pinned"
OTHER = "blocking-h2d-in-batch-loop"
MARK = f"  # <- {RULE}?"
HEAD = "import torch\nfrom torch.utils.data import DataLoader, TensorDataset\n"


def program(loader: str, line: str = "x = x.to(device)", loop: str = "for x, y in loader:") -> str:
    return (
        f"{HEAD}def train(model, data, device, options, pin):\n    loader = {loader}\n    {loop}\n        {line}\n"
        "        model(x).sum().backward()\n"
    )


@pytest.mark.parametrize(
    ("given", "fixed"),
    [
        ("num_workers=4", "num_workers=4, pin_memory=True"),
        ("num_workers=options.workers", "num_workers=options.workers, pin_memory=True"),
        ("num_workers=4, pin_memory=False", "num_workers=4, pin_memory=True"),
        ("8, True, None, None, 4, None, False", "8, True, None, None, 4, None, True"),
        ("**{'num_workers': 4}", "**{'num_workers': 4}, pin_memory=True"),
        ("**{'num_workers': 4, 'pin_memory': False}", "**{'num_workers': 4, 'pin_memory': True}"),
    ],
)
def test_not_pinned(given: str, fixed: str) -> None:
    check_snippet(program(f"DataLoader(data, {given}){MARK}"), RULE, fixed=program(f"DataLoader(data, {fixed})"))


def test_an_option_that_is_commented_out_is_not_given() -> None:
    check_snippet(program(f"DataLoader(data, num_workers=4,{MARK}\n        # pin_memory=True\n    )"), RULE)


def test_a_program_that_runs_without_cuda_too() -> None:
    code = program(f"DataLoader(data, num_workers=4){MARK}") + "use = torch.cuda.is_available()\n"
    pinning = "num_workers=4, pin_memory=torch.cuda.is_available()"
    fixed = program(f"DataLoader(data, {pinning})") + "use = torch.cuda.is_available()\n"
    check_snippet(code, RULE, fixed=fixed)


@pytest.mark.parametrize(
    "given",
    [
        "num_workers=4, pin_memory=True",
        "num_workers=4, pin_memory=pin",
        "num_workers=4, **options",
    ],
)
def test_pinned_or_unknown(given: str) -> None:
    check_snippet(program(f"DataLoader(data, {given})"), RULE)


@pytest.mark.parametrize("given", ["batch_size=4", "num_workers=0"])
def test_without_workers_it_is_a_note_that_names_the_copies(given: str) -> None:
    code = program(f"DataLoader(data, {given}){MARK}")
    check_snippet(code, RULE)
    text = unmarked(code)
    [finding] = lint(text, active(RULE)).findings
    assert [text[place.start : place.end] for place in finding.places] == ["x.to(device)"]


@pytest.mark.parametrize(
    ("loader", "line", "loop"),
    [
        ("DataLoader(data, num_workers=4)", "pass", "for x, y in loader:"),
        ("DataLoader(data, num_workers=4)", "x = x.to('cpu')", "for x, y in loader:"),
        ("DataLoader(data, num_workers=4)", "x = x.to('mps')", "for x, y in loader:"),
        ("DataLoader(data, num_workers=4, collate_fn=graphs)", "x = x.to(device)", "for x in loader:"),
        ("DataLoader(TensorDataset(data.cuda()), num_workers=4)", "x = x.to(device)", "for x, y in loader:"),
    ],
)
def test_nothing_to_pin(loader: str, line: str, loop: str) -> None:
    check_snippet(program(loader, line, loop), RULE)


def test_the_loop_may_stand_in_a_function() -> None:
    check_snippet(
        HEAD
        + textwrap.dedent(f"""
        def train(model, loader):
            for batch in loader:
                model(batch["x"].cuda()).sum().backward()
        train(model, DataLoader(data, num_workers=4)){MARK}
        train(model, DataLoader(data, num_workers=4, pin_memory=True))
        """),
        RULE,
        OTHER,
    )


def test_both_rules_one_after_the_other() -> None:
    check_snippet(
        program(f"DataLoader(data, num_workers=4){MARK}", "x = x.cuda()"),
        RULE,
        OTHER,
        fixed=program("DataLoader(data, num_workers=4, pin_memory=True)", "x = x.cuda(non_blocking=True)"),
    )


@pytest.mark.parametrize("body", ["print(x.shape)", "print(x.shape, y)\n        break"])
def test_nothing_is_computed_with_the_batches(body: str) -> None:
    loop = f"    for x, y in loader:\n        x = x.to(device)\n        {body}\n"
    check_snippet(f"{HEAD}def show(data, device):\n    loader = DataLoader(data, num_workers=4)\n{loop}", RULE)


@pytest.mark.parametrize(
    ("line", "mark"),
    [
        ("x = x.transpose(2, 1)", MARK),
        ("x = (x - 0.5) * 2", ""),
        ("x = torch.Tensor(augment(x.numpy()))\n        x = x.transpose(2, 1)", ""),
        ("x = torch.autograd.Variable(x)", MARK),
    ],
)
def test_what_is_moved_was_computed_on_the_host(line: str, mark: str) -> None:
    moves = f"{line}\n        x, y = x.view(-1).to(device), y.to(device)"
    check_snippet(program(f"DataLoader(data, num_workers=4){mark}", moves), RULE)


@pytest.mark.parametrize(("imports", "mark"), [("", MARK), ("import dgl\n", "")])
def test_graphs_of_dgl_cannot_be_pinned(imports: str, mark: str) -> None:
    loader = f"DataLoader(data, num_workers=4, collate_fn=join){mark}"
    check_snippet(imports + program(loader), RULE)


def test_the_parts_of_a_batch_are_one_batch() -> None:
    line = "x = tuple(part.to(device) for part in batch)"
    code = program(f"DataLoader(data, num_workers=4){MARK}", line, "for batch in loader:")
    (found,) = check_snippet(code.replace("model(x)", "model(*x)"), RULE).findings
    assert "every batch" in found.message


@pytest.mark.parametrize(
    "types", ["Tensor = torch.cuda.FloatTensor", "Tensor = torch.cuda.FloatTensor if use else torch.Tensor"]
)
def test_a_cast_to_a_type_on_the_gpu_is_a_move(types: str) -> None:
    code = program(f"DataLoader(data, num_workers=4){MARK}", "x = x.type(Tensor)")
    check_snippet(code.replace("def train", f"{types}\ndef train"), RULE, OTHER)


@pytest.mark.parametrize("types", ["Tensor = torch.FloatTensor", "Tensor = torch.float32", "Tensor = made()"])
def test_a_cast_to_another_type_is_none(types: str) -> None:
    code = program("DataLoader(data, num_workers=4)", "x = x.type(Tensor)")
    check_snippet(code.replace("def train", f"{types}\ndef train"), RULE, OTHER)


def test_a_logger_that_is_made_on_the_spot_passes_batches_on() -> None:
    loop = "for x, y in Logger(delimiter=' ').log_every(loader, 10):"
    check_snippet(program(f"DataLoader(data, num_workers=4){MARK}", loop=loop), RULE, OTHER)
    other = "for x, y in Logger(delimiter=' ').shuffled(loader, 10):"
    check_snippet(program("DataLoader(data, num_workers=4)", loop=other), RULE)


def test_torch_is_not_asked_before_it_is_imported() -> None:
    code = f"""
from torch.utils.data import DataLoader
loader = DataLoader(data, num_workers=4){MARK}
import torch
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
for x, y in loader:
    model(x.to(device)).sum().backward()
    optimizer.step()
"""
    line = f"loader = DataLoader(data, num_workers=4){MARK}"
    check_snippet(code, RULE, fixed=code.replace(line, "loader = DataLoader(data, num_workers=4, pin_memory=True)"))
    above = code.replace("\nimport torch\n", "\n").replace("from torch", "import torch\nfrom torch", 1)
    pinned = "loader = DataLoader(data, num_workers=4, pin_memory=torch.cuda.is_available())"
    check_snippet(above, RULE, fixed=above.replace(line, pinned))


@pytest.mark.parametrize(("default", "is_doubted"), [("0", True), ("4", False), ("None", False)])
def test_an_option_that_is_0_by_default(default: str, is_doubted: bool) -> None:  # noqa: FBT001
    parser = (
        "import argparse\nparser = argparse.ArgumentParser()\n"
        f"parser.add_argument('--workers', type=int, default={default})\noptions = parser.parse_args()\n"
    )
    code = parser + program(f"DataLoader(data, num_workers=options.workers){MARK}")
    check_snippet(code, RULE)
    [finding] = lint(unmarked(code), active(RULE)).findings
    assert finding.doubts == (Doubt.HOST_BOUND, *((Doubt.OPTION_DECIDES,) if is_doubted else ()))


def test_a_loader_of_that_name_from_elsewhere() -> None:
    code = program("DataLoader(data, num_workers=4)")
    check_snippet(code.replace("def train", "from mylib.data import DataLoader\ndef train"), RULE)


@pytest.mark.parametrize(
    "made", ["torch.device('cuda')", "torch.device('cuda' if torch.cuda.is_available() else 'cpu')"]
)
def test_a_device_that_is_compared_with_a_text(made: str) -> None:
    code = """
import torch
from torch.utils.data import DataLoader
def train(model, data):
    device = {made}
    loader = DataLoader(data, num_workers=4, pin_memory=(device{type} == "cuda"))
    for x, y in loader:
        model(x.to(device)).sum().backward()
"""
    slow = code.format(made=made, type="").replace('"cuda"))', f'"cuda"))  # <- {RULE}')
    result = check_snippet(slow, RULE, fixed=code.format(made=made, type=".type"))
    assert "is always false" in result.findings[0].message


@pytest.mark.parametrize(
    "made", ["'cuda' if torch.cuda.is_available() else 'cpu'", "pick()", "torch.device('cuda').type"]
)
def test_a_text_that_is_compared_with_a_text(made: str) -> None:
    check_snippet(
        f"""
import torch
from torch.utils.data import DataLoader
def train(model, data):
    device = {made}
    loader = DataLoader(data, num_workers=4, pin_memory=device == "cuda")
    for x, y in loader:
        model(x.to(device)).sum().backward()
""",
        RULE,
    )


def test_that_the_comparison_never_holds() -> None:
    assert torch.device("cuda") != "cuda"
