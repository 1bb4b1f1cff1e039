"""TL203: batches whose copy to the device the CPU waits for; which fixes are safe."""

from __future__ import annotations

import textwrap

import pytest
from laws import active, check_snippet

from torchlint import linter
from torchlint.finding import Applicability
from torchlint.role import Role
from torchlint.source import SourceFile

RULE = "blocking-h2d-in-batch-loop"
MARK = f"  # <- {RULE}"
NOTE = f"  # <- {RULE}?"
HEAD = "import torch\nfrom torch.autograd import Variable\nfrom torch.utils.data import DataLoader\n"


def step(*lines: str, loop: str = "for x, y in loader:", loader: str = "") -> str:
    body = textwrap.indent("\n".join(lines), " " * 8)
    made = f"    loader = {loader}\n" if loader else ""
    return (
        f"{HEAD}def train(model, loader, device, data):\n{made}    {loop}\n{body}\n        model(x).sum().backward()\n"
    )


@pytest.mark.parametrize(
    ("line", "fixed"),
    [
        ("x = x.to(device)", "x = x.to(device, non_blocking=True)"),
        ("x = x.cuda()", "x = x.cuda(non_blocking=True)"),
        ("x = x.cuda(0)", "x = x.cuda(0, non_blocking=True)"),
        ("x = x.to(device=device)", "x = x.to(device=device, non_blocking=True)"),
        ("x = x.to(device, torch.float32)", "x = x.to(device, torch.float32, non_blocking=True)"),
        ("x = x.to(device, dtype=torch.long)", "x = x.to(device, dtype=torch.long, non_blocking=True)"),
        (
            "x = x.to(device=device, dtype=torch.float32, memory_format=torch.channels_last)",
            "x = x.to(device=device, dtype=torch.float32, memory_format=torch.channels_last, non_blocking=True)",
        ),
        ("x, y = x.cuda(), y.cuda()", "x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)"),
        ("x = Variable(x.cuda())", "x = Variable(x.cuda(non_blocking=True))"),
        ("x = Variable(x).cuda()", "x = Variable(x).cuda(non_blocking=True)"),
        ("ys = [part.cuda() for part in y]", "ys = [part.cuda(non_blocking=True) for part in y]"),
    ],
)
def test_a_move_that_waits(line: str, fixed: str) -> None:
    check_snippet(step(line + MARK), RULE, fixed=step(fixed))


@pytest.mark.parametrize(
    ("loop", "line"),
    [
        ("for i, (x, y) in enumerate(tqdm(loader)):", "x = x.to(device)"),
        ("for batch in loader:", "x = batch['image'].to(device)"),
        ("for batch in loader:", "x = batch[0].to(device)"),
        ("for batch in loader:", "x = {name: part.to(device) for name, part in batch.items()}"),
        ("for batch in loader:", "x = tuple(part.to(device) for part in batch)"),
        ("for x, y in loader:", "y = [{name: part.to(device) for name, part in row.items()} for row in y]"),
    ],
)
def test_parts_of_a_batch(loop: str, line: str) -> None:
    check_snippet(step(line + MARK, loop=loop), RULE)


@pytest.mark.parametrize(
    "names", ["image, mask = batch['image'], batch['mask']", "[image, mask] = [batch[0], batch[1]]"]
)
def test_parts_that_are_named_side_by_side(names: str) -> None:
    check_snippet(step(names, "x = image.to(device)" + MARK, "mask.cuda()" + MARK, loop="for batch in loader:"), RULE)


@pytest.mark.parametrize(
    "names",
    [
        "image, mask = data[0], batch[1]",
        "*mask, image = batch[0], batch[1], data[0]",
    ],
)
def test_another_name_side_by_side(names: str) -> None:
    check_snippet(step(names, "x = image.to(device)", loop="for batch in loader:"), RULE)


@pytest.mark.parametrize(
    "line",
    [
        "x = x.to(device, non_blocking=True)",
        "x = x.cuda(non_blocking=False)",
        "x = x.to(device, torch.float32, True)",
        "x = x.to(device, flag)",
        "x = x.to(device, dtype=torch.float32, non_blocking=False)",
        "x = x.to(device, torch.float32, copy=True)",
        "x = x.to(device, **kwargs)",
        "x = x.to(torch.float32)",
        "x = x.to(dtype=torch.float32)",
        "x = x.to('cpu')",
        "x, size = y.to(device)",
        "x = x.to('mps')",
        "print(x.ndata)\nx = x.to(device)",
        "x = x.to(device)\nprint(x.ndata)",
        "with torch.cuda.Stream():\n    x = x.to(device)",
    ],
)
def test_moves_left_alone(line: str) -> None:
    check_snippet(step(*line.split("\n")), RULE)


@pytest.mark.parametrize(
    "lines",
    [
        ("x = torch.cat([x, y]).to(device)" + NOTE,),
        ("x = x.float().to(device)" + NOTE,),
        ("y = torch.from_numpy(np.ones(3)).to(device)" + NOTE,),
        ("y = torch.from_numpy(np.ones(3))", "y = y[None].to(device)" + NOTE),
        ("y = torch.zeros(3)", "y[data] = 1", "y = y.to(device)" + NOTE),
        ("y = torch.eye(3)[data].to(device)" + NOTE,),
        ("y = torch.zeros(3)", "y[data] += 1", "z = y.to(device)" + NOTE),
        ("y = torch.sparse.FloatTensor(x, y).to(device)" + NOTE,),
        ("y = torch.as_tensor(np.ones(3), device=device)" + NOTE,),
        ("FloatTensor = torch.cuda.FloatTensor if data else torch.FloatTensor", "y = FloatTensor(np.ones(3))" + NOTE),
        ("FloatTensor = torch.cuda.FloatTensor if data else torch.FloatTensor", "y = x.type(FloatTensor)" + NOTE),
    ],
)
def test_data_of_the_host_is_copied(lines: tuple[str, ...]) -> None:
    check_snippet(step("import numpy as np", *lines), RULE)


@pytest.mark.parametrize(
    "lines",
    [
        ("y = torch.zeros(3).view(-1).to(device)",),  # host-factory-then-move
        ("y = torch.zeros(3)", "y = y.to(device)", "y[data] = 1"),
        ("y = torch.zeros(3)", "z = y[data]", "y = y.to(device)"),
        ("y = torch.zeros(3, device=device)", "y[data] = 1", "y = y.to(device)"),
        ("y = torch.from_numpy(np.ones(3))",),
        ("y = torch.as_tensor(np.ones(3))",),
        ("y = torch.as_tensor(np.ones(3), device='cpu')",),
        ("y = torch.as_tensor([1, 2], device=device)",),
        ("y = torch.FloatTensor(np.ones(3))",),
        ("FloatTensor = torch.cuda.FloatTensor if data else torch.FloatTensor", "y = FloatTensor(3, 3)"),
        ("y = x.type(torch.float32)",),
    ],
)
def test_data_that_stays_or_could_be_made_there(lines: tuple[str, ...]) -> None:
    check_snippet(step("import numpy as np", *lines), RULE)


def test_data_that_is_copied_now_and_then() -> None:
    code = "import numpy as np\nimport torch\ndef run(x, device):\n    return torch.from_numpy(x).to(device)\n"
    check_snippet(code, RULE)


@pytest.mark.parametrize(
    ("loop", "lines"),
    [
        ("for x, y in loader:", ("y = [part.to(device) for part in y]",)),
        ("for batch in loader:", ("y = batch[0][1]", "y = y.cuda()")),
        ("for batch in loader:", ("y = batch[0][1].to(device)",)),
        ("for x, y in loader:", ("x = x.cuda()", "break")),
        ("for x, y in loader:", ("x = x.to(data.device)",)),
        ("for x, y in calib_loader:", ("x = x.to(device)",)),
        ("for x, y in data.calibration_batches(loader):", ("x = x.to(device)",)),
    ],
)
def test_no_tensor_or_nothing_gained(loop: str, lines: tuple[str, ...]) -> None:
    check_snippet(step(*lines, loop=loop), RULE)


@pytest.mark.parametrize(
    ("loop", "lines"),
    [
        ("for x, y in loader:", ("x = x.to(device)" + MARK + "?", "y = [part.name for part in y]")),
        ("for x, y in loader:", ("n = x.shape[0]", "x = x.to(device)" + MARK, "y = [part.name for part in y]")),
        ("for x, y in loader:", ("x = x.to(device)" + MARK, "if model:", "    torch.cuda.synchronize()")),
        ("for x, y in loader:", ("x = x.to(device)" + MARK + "?", "torch.cuda.synchronize()")),
        ("for x, y in loader:", ("if not y:", "    continue", "x = x.cuda()" + MARK, "break")),
        ("for x, y in loader:", ("x = x.to(model.device)" + MARK,)),
    ],
)
def test_tensors_after_all_or_what_may_be_one(loop: str, lines: tuple[str, ...]) -> None:
    check_snippet(step(*lines, loop=loop), RULE)


@pytest.mark.parametrize(("line", "mark"), [("x = x.to(device)", MARK + "?"), ("y = x.to(device).squeeze()", MARK)])
def test_in_a_file_of_graphs_what_may_be_no_tensor(line: str, mark: str) -> None:
    check_snippet("import dgl\n" + step(line + mark), RULE)


def test_batches_that_are_only_collected() -> None:
    lines = ["images.append(x.to(device))", "labels += [y]"]
    code = step(*lines, loop="for x, y in loader:")
    head, _, model = code.rpartition("        model(x)")
    check_snippet(head, RULE)
    check_snippet(
        f"{head.replace('(device))', f'(device)){MARK}')}        model(x){model.removeprefix('model(x)')}", RULE
    )


def test_a_type_of_the_gpu_is_held_to_what_a_move_is() -> None:
    kind = "FloatTensor = torch.cuda.FloatTensor if data else torch.FloatTensor"
    check_snippet(step(kind, "print(x.ndata)", "y = x.type(FloatTensor)"), RULE)
    head, _, _ = step(kind, "images.append(x.type(FloatTensor))").rpartition("        model(x)")
    check_snippet(head, RULE)


@pytest.mark.parametrize(("pin", "mark"), [("", ""), (", pin_memory=True", MARK), (", pin_memory=data.pin", MARK)])
def test_the_loaders_of_the_file_speak_for_one_out_of_sight(pin: str, mark: str) -> None:
    made = f"def loaders(data):\n    return DataLoader(data, 8{pin}), DataLoader(data, 16)\n"
    made = made.replace("16)", "16, pin_memory=True)") if pin else made
    check_snippet(step(f"x = x.to(device){mark}") + made, RULE)


ANEW = """
import torch
from torch.utils.data import DataLoader
def train(model, data, others, device):
    loader, other = DataLoader(data, 8, pin_memory=True), DataLoader(others, 8, pin_memory=data.pin)
    batches = iter(loader)
    while True:
        try:
            batch = next(batches)
        except StopIteration:
            batches = iter({again})
            batch = next(batches)
        x, y = [part.to(device) for part in batch]{mark}
        model(x, y).backward()
"""


@pytest.mark.parametrize(("again", "mark"), [("loader", MARK), ("data", "")])
def test_an_iterator_that_is_begun_anew(again: str, mark: str) -> None:
    check_snippet(ANEW.format(again=again, mark=mark), RULE)


OF_TWO = """
import torch
from torch.utils.data import DataLoader
class Trainer:
    def __init__(self, data, held_out):
        self.loader = DataLoader(data, 8, pin_memory=True)
        self.others = iter({others})
    def train(self):
        for batch in self.loader:
            self.step(batch).backward()
        with torch.no_grad():
            self.step({taken})
    def step(self, batch):
        for key, part in batch.items():
            batch[key] = part.cuda(){mark}
        return self.model(batch)
"""


@pytest.mark.parametrize(
    ("others", "taken", "mark"),
    [
        ("DataLoader(held_out, 8)", "next(self.others)", MARK),
        ("DataLoader(held_out, 8)", "self.others.next()", MARK),
        ("held_out", "self.read()", ""),
        ("Staged(held_out)", "next(self.others)", ""),
        ("test_loader", "next(self.others)", ""),
    ],
)
def test_one_step_for_the_batches_of_several_loaders(others: str, taken: str, mark: str) -> None:
    check_snippet(OF_TWO.format(others=others, taken=taken, mark=mark), RULE)


GIVEN = """
import torch
from torch.utils.data import DataLoader
class Batches:
    def __init__(self, data):
        self.loader = DataLoader(data, 8, pin_memory=True)
        self.batches = iter(self.loader)
    def next(self):
        try:
            batch = next(self.batches)
        except StopIteration:
            self.batches = iter(self.loader)
            batch = next(self.batches)
        return {given}
def train(model, data, device):
    batches = Batches(data)
    while True:
        x, y = [part.to(device) for part in batches.next()]{mark}
        model(x, y).backward()
"""


@pytest.mark.parametrize(("given", "mark"), [("batch", MARK), ("[f(part) for part in batch]", ""), ("None", "")])
def test_a_batch_that_a_method_takes_out_of_a_loader(given: str, mark: str) -> None:
    check_snippet(GIVEN.format(given=given, mark=mark), RULE)


PASSED = """
import torch
def there(moved):
    if torch.cuda.is_available():
        return {copy}
    return moved
def train(model, rows, optimizer):
    model = there(model)
    for row in rows:
        loss = model(there({passed})).sum()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("copy", "passed", "mark"),
    [
        ("moved.cuda()", "torch.tensor(row).long()", NOTE),
        ("moved[1:].cuda()", "torch.tensor(row).long()", NOTE),
        ("torch.autograd.Variable(moved).cuda()", "torch.tensor(row).long()", NOTE),
        ("torch.autograd.Variable(moved).cuda()", "torch.tensor(row, device='cuda')", ""),
        ("torch.cat([moved[:4], torch.zeros_like(moved)], 1).float().cuda()", "torch.tensor(row).long()", NOTE),
        ("torch.stack([moved[:4], moved[4:]]).cuda()", "torch.tensor(row, device='cuda')", ""),
        ("moved.cuda()", "torch.tensor(row, device='cuda')", ""),
        ("moved.cuda()", "row", NOTE),  # what a step moves piece by piece are tensors
        ("moved.cuda()", "row.shape", ""),
        ("moved.cpu()", "torch.tensor(row).long()", ""),
        ("moved.cuda(non_blocking=True)", "torch.tensor(row).long()", ""),
    ],
)
def test_what_one_of_the_callers_has_on_the_cpu(copy: str, passed: str, mark: str) -> None:
    check_snippet(PASSED.format(copy=copy + mark, passed=passed), RULE)


@pytest.mark.parametrize(
    ("rows", "mark"), [("torch.randperm(100)[:8]", NOTE), ("step", ""), ("slice(8)", ""), ("[[1, 2]]", "")]
)
def test_rows_that_are_picked_on_the_cpu(rows: str, mark: str) -> None:
    check_snippet(
        f"""
        import torch
        def train(model, optimizer):
            labels = torch.zeros(100, 3).cumsum(0)
            for step in range(1000):
                rows = {rows}
                loss = model(labels[rows].cuda()).sum(){mark}
                loss.backward()
                optimizer.step()
        """,
        RULE,
    )


DRAWN = """
import random
import numpy as np
import torch
class Memory:
    def __init__(self, size):
        self.states = np.zeros((size, 4))
        self.rows = np.arange(size)
    def sample(self, number):
        rows = {rows}
        return torch.as_tensor(self.states[rows], device="cuda"){mark}
    def reset(self):
        self.rows = np.random.permutation(self.rows)
"""


@pytest.mark.parametrize(
    ("rows", "mark"),
    [
        ("np.random.randint(0, len(self.states), number)", NOTE),
        ("np.array(random.sample(range(8), number))", NOTE),
        ("self.rows[:number]", ""),
        ("np.arange(number)", ""),
    ],
)
def test_what_is_drawn_anew_each_time_though_nobody_is_seen_to_call(rows: str, mark: str) -> None:
    check_snippet(DRAWN.format(rows=rows, mark=mark), RULE)


def test_the_keys_of_a_batch_are_no_samples() -> None:
    line = "for key in batch.keys():\n    batch[key] = batch[key].to(device)" + MARK
    (found,) = check_snippet(step(*line.split("\n"), loop="for batch in loader:"), RULE).findings
    assert "every batch" in found.message


def test_parts_of_a_batch_need_not_be_samples() -> None:
    line = "y = [part.cuda() for part in y]"
    (found,) = check_snippet(step(line + MARK), RULE).findings
    assert "several times a batch" in found.message


@pytest.mark.parametrize(
    ("test", "marks"),
    [
        ('device.type == "cuda"', (MARK, "")),
        ('device.type != "cuda"', ("", MARK)),
        ('device.type == "cpu"', ("", MARK)),
        ('"cuda" in str(device)', (MARK, "")),
        ("kind == Kind.CUDA", (MARK, "")),
        ("not torch.cuda.is_available()", ("", MARK)),
        ("args.cuda", (MARK, "")),
        ('device == "cuda:1"', (MARK, MARK)),
        ("self.fast", (MARK, MARK)),
    ],
)
def test_a_branch_for_what_is_not_cuda(test: str, marks: tuple[str, str]) -> None:
    first, second = (f"    x = x.to(device){mark}" for mark in marks)
    check_snippet(step(f"if {test}:", first, "else:", second), RULE)


def test_a_file_that_exports_a_model() -> None:
    source = SourceFile("net.py", step("x = x.to(device)"))
    assert linter.lint(source, active(RULE)).findings
    assert not linter.lint(source, active(RULE, role=Role.EXPORTING)).findings


PICKED = """
import torch
def batches(data, device, size, given):
    order = torch.randperm(len(data))
    for first in range(0, len(data), size):
        {lines}
        yield x
"""


@pytest.mark.parametrize(
    ("lines", "mark"),
    [
        ("x = data[first : first + size]\n        x = x.to(device){mark}", NOTE),
        ("x = data[order[first : first + size]].cuda(){mark}", NOTE),
        ("rows = order[first : first + size]\n        x = data[rows].to(device){mark}", NOTE),
        # A part that is always the same, an entry, what may be anything, and the way back.
        ("x = data[:size].to(device){mark}", ""),
        ("x = data[1:size].to(device){mark}", ""),
        ("x = data[first].to(device){mark}", ""),
        ("x = data[given].to(device){mark}", ""),
        ("x = data[first : first + size].cpu(){mark}", ""),
        ("x = data[first : first + size].to(given.dtype){mark}", ""),
        ("data = data.cuda()\n        x = data[first : first + size].to(device){mark}", ""),
    ],
)
def test_rows_that_are_picked_of_what_is_not_in_sight(lines: str, mark: str) -> None:
    check_snippet(PICKED.format(lines=lines.format(mark=mark)), RULE)


JOINED = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self, layers, device):
        self.layers, self.device = layers, device
    def forward(self, graphs):
        x = torch.cat([{piece} for graph in {graphs}], 0).to({where}){mark}
        return self.layers(x)
"""


@pytest.mark.parametrize(
    ("piece", "graphs", "where", "mark"),
    [
        ("graph.features", "graphs", "self.device", NOTE),
        ("graph['features']", "graphs", "self.device", NOTE),
        # What the network computes, what it holds, and another type.
        ("self.layers(graph)", "graphs", "self.device", ""),
        ("graph.weight", "self.layers", "self.device", ""),
        ("graph.features", "graphs", "graphs[0].dtype", ""),
        ("graph.features", "graphs", "'cpu'", ""),
    ],
)
def test_pieces_that_are_joined_of_what_is_not_in_sight(piece: str, graphs: str, where: str, mark: str) -> None:
    check_snippet(JOINED.format(piece=piece, graphs=graphs, where=where, mark=mark), RULE)


def test_rows_that_a_function_picks_of_which_nobody_knows_how_often_it_is_called() -> None:
    check_snippet(
        """
        import torch
        def part(data, device, first, size):
            return data[first : first + size].to(device)
        """,
        RULE,
    )


def test_batches_that_a_framework_prepares() -> None:
    check_snippet(step("x = x.to(device)", loop="for x, y in accelerator.prepare(loader):"), RULE)


@pytest.mark.parametrize("loop", ["for x in graphs:", "for x in loader:"])
def test_whole_batches_of_which_nobody_says_what_they_are(loop: str) -> None:
    """Whatever `to` of a class of somebody's own does, it copies, and the CPU waits for each copy."""
    check_snippet(step("x = x.to(device)" + NOTE, loop=loop), RULE)


@pytest.mark.parametrize("pin", ["", ", pin_memory=False"])
def test_a_loader_that_does_not_pin(pin: str) -> None:
    loader = f"DataLoader(data, num_workers=4{pin})"
    check_snippet(step("x = x.cuda()" + NOTE, loader=loader), RULE)
    # Where the rule about the loader is asked, it names the copies.
    both = step("x = x.cuda()", loader=loader + "  # <- dataloader-not-pinned?")
    check_snippet(both, "dataloader-not-pinned", RULE)


SAFE, UNSAFE = Applicability.SAFE, Applicability.UNSAFE
PINNED = "DataLoader(data, pin_memory=True)"


@pytest.mark.parametrize(
    ("applicability", "loader", "lines"),
    [
        (SAFE, PINNED, ("x = x.cuda()" + MARK,)),
        (SAFE, PINNED, ("x = x.to('cuda')" + MARK,)),
        (SAFE, PINNED, ("n = x.size(0)", "y = x.shape[1]", "x = x.cuda()" + MARK)),
        (SAFE, "DataLoader(data, pin_memory=pin)", ("x = x.cuda()" + MARK,)),
        (SAFE, PINNED, ("x = x.to('cuda', memory_format=torch.channels_last)" + MARK,)),
        (UNSAFE, PINNED, ("x = x.to('cuda', torch.float32)" + MARK,)),
        (UNSAFE, PINNED, ("x = x.to(device)" + MARK,)),
        (UNSAFE, "", ("x = x.cuda()" + MARK,)),
        (UNSAFE, "DataLoader(data, pin_memory=True, collate_fn=pad)", ("x = x.cuda()" + MARK,)),
        (UNSAFE, "DataLoader(data, batch_size=None, pin_memory=True)", ("x = x.cuda()" + MARK,)),
        (UNSAFE, PINNED, ("z = x.cuda()" + MARK, "x.zero_()")),
        (UNSAFE, PINNED, ("z = x.cuda()" + MARK, "x[0] = 1")),
        (UNSAFE, PINNED, ("z = x.cuda()" + MARK, "fill(x)")),
        (UNSAFE, PINNED, ("w = x", "z = x.cuda()" + MARK, "w.zero_()")),
        (UNSAFE, PINNED, ("w = x.numpy()", "z = x.cuda()" + MARK, "w += 1")),
    ],
)
def test_safe_where_all_is_in_sight(applicability: Applicability, loader: str, lines: tuple[str, ...]) -> None:
    (found,) = check_snippet(step(*lines, loader=loader), RULE).findings
    assert found.fix is not None
    assert found.fix.applicability is applicability


SHARED = {
    "another name of the batch": ("for batch in loader:", "x = batch[0]", "z = x.cuda()", "batch[0].zero_()"),
    "unpacked": ("for batch in loader:", "x, y = batch", "z = x.cuda()", "batch[0].mul_(2)"),
    "each part": ("for batch in loader:", "z = [part.cuda() for part in batch]", "batch[0].zero_()"),
    "each value": ("for batch in loader:", "z = {k: v.cuda() for k, v in batch.items()}", "batch['x'].zero_()"),
    "a part of a part": ("for batch in loader:", "(x, e), y = batch", "z = e['m'].cuda()", "batch[0][1]['m'].zero_()"),
    "the rest": ("for x, *rest in loader:", "z = rest[0].cuda()", "a, b = rest", "a.zero_()"),
    "kept by others": ("for batch in loader:", "log(batch)", "x = batch[0]", "z = x.cuda()"),
    "kept as attribute": ("for batch in loader:", "self.batch = batch", "x = batch[0]", "z = x.cuda()"),
    "a move that moves nothing": ("for x, y in loader:", "host = x.to('cpu')", "z = x.cuda()", "host.zero_()"),
    "a cast that casts nothing": ("for x, y in loader:", "host = x.to(torch.float32)", "z = x.cuda()", "host.zero_()"),
    "by its text": ("for x, y in loader:", "z = x.cuda()", "eval('x.zero_()')"),
    "of the module": ("for x, y in loader:", "global z", "z = y.cuda()"),
    "batches that are kept": ("for x, y in list(loader):", "z = x.cuda()"),
    "with a number": ("for i, batch in enumerate(loader):", "x, y = batch", "z = x.cuda()", "batch[0].zero_()"),
}


@pytest.mark.parametrize(("loop", "lines"), [(loop, lines) for loop, *lines in SHARED.values()], ids=SHARED)
def test_unsafe_where_others_have_the_memory(loop: str, lines: list[str]) -> None:
    marked = [line + MARK if ".cuda()" in line else line for line in lines]
    (found,) = check_snippet(step(*marked, loop=loop, loader=PINNED), RULE).findings
    assert found.fix is not None
    assert found.fix.applicability is UNSAFE


PRIVATE = {
    "names for parts": ("for batch in loader:", "x, y = batch", "x = x.cuda()", "n = len(batch)"),
    "by key": ("for batch in loader:", "z = {k: v.cuda() for k, v in batch.items()}"),
    "with a number": ("for i, (x, y) in enumerate(loader):", "x = x.cuda()", "print(i)"),
}


@pytest.mark.parametrize(("loop", "lines"), [(loop, lines) for loop, *lines in PRIVATE.values()], ids=PRIVATE)
def test_safe_where_each_name_only_looks(loop: str, lines: list[str]) -> None:
    marked = [line + MARK if ".cuda()" in line else line for line in lines]
    (found,) = check_snippet(step(*marked, loop=loop, loader=PINNED), RULE).findings
    assert found.fix is not None
    assert found.fix.applicability is SAFE


def test_a_size_that_may_be_none_leaves_batches_to_the_data_set() -> None:
    code = step("z = x.cuda()" + MARK, loader="DataLoader(data, size, pin_memory=True)").replace(
        "data)", "data, size=None)"
    )
    (found,) = check_snippet(code.replace("DataLoader(data, size=None)", "DataLoader(data)"), RULE).findings
    assert found.fix is not None
    assert found.fix.applicability is UNSAFE


def test_a_device_that_may_be_of_another_kind() -> None:
    (found,) = check_snippet(
        step("x = x.to(torch.accelerator.current_accelerator())" + MARK, loader=PINNED), RULE
    ).findings
    assert found.fix is None


def test_a_clock_that_synchronizes() -> None:
    check_snippet(step("torch.cuda.synchronize()", "z = x.cuda()" + MARK + "?", "model(z)"), RULE)
    check_snippet(step("t = time()", "z = x.cuda()" + MARK, "model(z)"), RULE)


def test_a_function_that_switches_calibration_on() -> None:
    code = """
        import torch
        def collect(model, loader):
            for module in model.modules():
                module.{}()
            for x, y in loader:
                model(x.cuda())  {}
    """
    check_snippet(code.format("enable_calib", ""), RULE)
    check_snippet(code.format("enable_quant", MARK), RULE)


@pytest.mark.parametrize(
    "helper",
    [
        """
        def send(x, device):
            if isinstance(x, torch.Tensor):
                return x.to(device){mark}
            if isinstance(x, dict):
                return {{name: send(part, device) for name, part in x.items()}}
            return [send(part, device) for part in x]
        """,
        """
        def send(batch, device):
            return {{name: part.to(device) for name, part in batch.items()}}{mark}
        """,
    ],
)
def test_a_helper_that_is_given_the_batch(helper: str) -> None:
    code = """
        {helper}
        def train(model, loader):
            for batch in loader:
                model(**send(batch, torch.device("cuda"))).loss.backward()
    """
    code = HEAD + textwrap.dedent(code).format(helper=textwrap.dedent(helper))
    result = check_snippet(code.format(mark=MARK), RULE)
    fix = result.findings[0].fix
    assert fix is not None
    assert fix.applicability is Applicability.UNSAFE


@pytest.mark.parametrize(
    "helper",
    [
        """
        class Engine:
            def send(self, x, device):
                if callable(getattr(x, "cuda", None)):
                    return x.cuda(device){mark}
                if isinstance(x, list):
                    return [self.send(part, device) for part in x]
                return x
        """,
        """
        def send(batch, device):
            def one(t, device):
                return t.to(device){mark}
            return recursively_apply(one, batch, device)
        """,
        """
        def send(batch, device):
            return tree_map(lambda t: t.to(device), batch){mark}
        """,
        """
        def send(batch, device):
            if device is None:
                return batch
            return {{k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in batch.items()}}{mark}
        """,
        """
        def send(batch, device):
            sent = []
            for part in batch:
                if hasattr(part, "to"):
                    part = part.to(device){mark}
                sent.append(part)
            return sent
        """,
    ],
)
def test_a_helper_for_whatever_it_is_given_is_a_note(helper: str) -> None:
    result = check_snippet(HEAD + textwrap.dedent(helper).format(mark=f"{MARK}?"), RULE)
    assert "take `non_blocking` as a parameter" in result.findings[0].help


@pytest.mark.parametrize(
    "helper",
    [
        """
        def send(x, device, non_blocking=False):
            if isinstance(x, dict):
                return {name: send(part, device, non_blocking) for name, part in x.items()}
            try:
                return x.to(device, non_blocking=non_blocking)
            except TypeError:
                return x.to(device)
        """,
        """
        def fetch(x):
            if isinstance(x, dict):
                return {name: fetch(part) for name, part in x.items()}
            return x.to("cpu")
        """,
        """
        def cast(x, dtype=torch.float32):
            if isinstance(x, dict):
                return {name: cast(part) for name, part in x.items()}
            return x.to(dtype)
        """,
        """
        def place(model, device):
            model.apply(lambda part: part.to(device))
        """,
        """
        def place(x, device):
            return x.to(device)
        """,
        """
        def place(networks, device):
            return {name: network.to(device) for name, network in networks.items()}
        """,
        """
        def place(networks, device):
            return [network if isinstance(network, torch.Tensor) else network.to(device) for network in networks]
        """,
        """
        def send(batch, device):
            return {k: v.to("cpu") if isinstance(v, torch.Tensor) else v for k, v in batch.items()}
        """,
        """
        def send(batch, device, other):
            return {k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in other(batch)}
        """,
    ],
)
def test_functions_that_are_no_such_helpers(helper: str) -> None:
    check_snippet(HEAD + textwrap.dedent(helper), RULE)


def test_a_loader_that_moves_its_own_batches() -> None:
    code = f"""
        from torch.utils.data import DataLoader
        class DeviceLoader(DataLoader):
            def __iter__(self):
                for images, labels in super().__iter__():
                    yield images.cuda(), labels.cuda()  {MARK}
    """
    check_snippet(code, RULE)


def test_a_progress_bar_for_one_process_alone() -> None:
    code = f"""
        import torch
        def train(model, rank, device, make):
            trainloader = make()
            bar = enumerate(trainloader)
            if rank == 0:
                bar = tqdm(enumerate(trainloader))
            for i, (x, y) in bar:
                x, y = x.to(device, non_blocking=True), y.to(device){MARK}
                torch.nn.functional.cross_entropy(model(x), y).backward()
    """
    check_snippet(code, RULE)


@pytest.mark.parametrize(
    ("line", "mark"),
    [
        ("y = torch.tensor(np.ones(3))", NOTE),
        ("y = torch.Tensor(np.ones(3))", NOTE),
        ("y = torch.Tensor(3, 3)", ""),
        ("y = torch.tensor(np.ones(3), device='cpu')", ""),
        ("y = torch.from_numpy(np.ones(3))", ""),
        ("y = torch.FloatTensor(np.ones(3))", ""),
    ],
)
@pytest.mark.parametrize(
    "default", ["torch.set_default_tensor_type('torch.cuda.FloatTensor')", "torch.set_default_device('cuda')"]
)
def test_arrays_where_tensors_are_made_on_the_device_by_default(default: str, line: str, mark: str) -> None:
    code = step("import numpy as np", line + mark)
    check_snippet(f"{code}{default}\n", RULE)
    check_snippet(step("import numpy as np", line) + "torch.set_default_tensor_type(torch.FloatTensor)\n", RULE)


def test_what_a_batch_holds_as_attributes() -> None:
    code = """
        import torch
        def train(model, loader, optimizer):
            for batch in loader:
                loss = model({}.cuda()).mean()  # <- blocking-h2d-in-batch-loop
                loss.backward()
                optimizer.step()
    """
    check_snippet(code.format("batch.x"), RULE)
    check_snippet(code.format("batch.other.x").replace("  # <- blocking-h2d-in-batch-loop", ""), RULE)


@pytest.mark.parametrize("package", ["torch_geometric.loader", "torch.utils.data"])
def test_a_batch_of_graphs_moves_as_a_whole(package: str) -> None:
    check_snippet(
        f"""
        import torch
        from {package} import DataLoader
        def train(model, graphs, optimizer, collate):
            loader = DataLoader(graphs, batch_size=8, num_workers=4, collate_fn=collate)
            for batch in loader:
                batch = batch.to("cuda")  # <- blocking-h2d-in-batch-loop?
                loss = model(batch).mean()
                loss.backward()
                optimizer.step()
        """,
        RULE,
    )


@pytest.mark.parametrize(("asked", "is_told"), [("torch.cuda.current_stream()", True), ("torch.cuda.Stream()", False)])
def test_a_file_that_only_asks_for_the_stream(asked: str, is_told: bool) -> None:  # noqa: FBT001
    code = f"""
        import torch
        from torch.utils.data import DataLoader
        def train(model, dataset, optimizer, event):
            event.record({asked})
            loader = DataLoader(dataset, num_workers=4, pin_memory=True)
            for x, y in loader:
                x, y = x.cuda(), y.cuda(){f"  # <- {RULE}" if is_told else ""}
                loss = torch.nn.functional.cross_entropy(model(x), y)
                loss.backward()
                optimizer.step()
    """
    check_snippet(code, RULE)
