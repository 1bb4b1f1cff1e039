"""TL202: indices made on the CPU are flagged where all they do is to index tensors of the device."""

from __future__ import annotations

import textwrap

import pytest
from laws import check_snippet, unmarked
from twins import findings, fixed

from torchlint.finding import Applicability

RULE = "host-index-for-device-tensor"
MARK = f"  # <- {RULE}"


def loop(*lines: str, top: str = "") -> str:
    """The lines where `x` is a network's output on the device, at each batch."""
    body = textwrap.indent("\n".join(lines), " " * 8)
    return (
        f"import random\nimport torch\n{top}\ndef run(model, loader, device, host, n, k):\n"
        f"    for inputs, labels in loader:\n        x = model(inputs.to(device)).exp()\n{body}\n"
    )


SAFE = {
    "y = x[torch.arange(n) // 2 + x.size(0) - 1]": "y = x[torch.arange(n, device=x.device) // 2 + x.size(0) - 1]",
    "y = x[torch.arange(n).repeat(2).view(2, -1)]": "y = x[torch.arange(n, device=x.device).repeat(2).view(2, -1)]",
    "y = x[torch.arange(n)]": "y = x[torch.arange(n, device=x.device)]",
    "y = x[torch.arange(len(labels)), labels]": "y = x[torch.arange(len(labels), device=x.device), labels]",
    "y = x[labels, torch.arange(0, n, 2)]": "y = x[labels, torch.arange(0, n, 2, device=x.device)]",
    "x[torch.arange(3), 0] = 1": "x[torch.arange(3, device=x.device), 0] = 1",
    "y = x[torch.arange(n).unsqueeze(1), labels]": "y = x[torch.arange(n, device=x.device).unsqueeze(1), labels]",
    "y = x[torch.arange(n)[:, None], labels]": "y = x[torch.arange(n, device=x.device)[:, None], labels]",
    "y = x[torch.arange(n, dtype=torch.long)]": "y = x[torch.arange(n, dtype=torch.long, device=x.device)]",
    "rows = torch.arange(n)\ny = x[rows] + x[rows, 0]": "rows = torch.arange(n, device=x.device)\ny = x[rows] + x[rows, 0]",
    "rows = torch.arange(n)\nm = rows.size(0)\ny = x[rows[:m]]": (
        "rows = torch.arange(n, device=x.device)\nm = rows.size(0)\ny = x[rows[:m]]"
    ),
}
UNSAFE = {
    "z = x.exp() if k else None\nrows = torch.arange(9)\ny = None if z is None else z[rows]": (
        "z = x.exp() if k else None\nrows = torch.arange(9, device=z.device)\ny = None if z is None else z[rows]"
    ),
    "y = x[(torch.arange(9) / 49).long()]": "y = x[(torch.arange(9, device=x.device) / 49).long()]",
    "y = x[(torch.arange(9) ** 0.5).long()]": "y = x[(torch.arange(9, device=x.device) ** 0.5).long()]",
    "y = x[2 ** torch.arange(9)]": "y = x[2 ** torch.arange(9, device=x.device)]",
    "y = x[torch.arange(9).repeat_interleave(labels)]": "y = x[torch.arange(9, device=x.device).repeat_interleave(labels)]",
    "y = x[torch.arange(9).repeat_interleave(torch.tensor([1, 2, 3]))]": "y = x[torch.arange(9, device=x.device).repeat_interleave(torch.tensor([1, 2, 3]))]",
    "rows = torch.arange(9)\nif k:\n    y = x[rows]": "rows = torch.arange(9, device=x.device)\nif k:\n    y = x[rows]",
    "rows = torch.arange(9)\nx.data = x.data.cpu()\ny = x[rows]": "rows = torch.arange(9, device=x.device)\nx.data = x.data.cpu()\ny = x[rows]",
    "rows = torch.arange(9)\ny = x[rows]\nprint(locals())": "rows = torch.arange(9, device=x.device)\ny = x[rows]\nprint(locals())",
    "y = x[torch.arange(9) * labels.max().item()]": "y = x[torch.arange(9, device=x.device) * labels.max().item()]",
    "y = x[torch.arange((x := inputs.cpu()).size(0))]": "y = x[torch.arange((x := inputs.cpu()).size(0), device=x.device)]",
    "y = x[torch.randperm(x.size(0))]": "y = x[torch.randperm(x.size(0), device=x.device)]",
    "y = x[torch.randint(n, (k,))]": "y = x[torch.randint(n, (k,), device=x.device)]",
    "z = x * 2\nrows = torch.arange(n)\ny = x[rows] + z[rows]": (
        "z = x * 2\nrows = torch.arange(n, device=x.device)\ny = x[rows] + z[rows]"
    ),
    "order = torch.randperm(n)\nfirst = order[:k]\ny = x[first]": (
        "order = torch.randperm(n, device=x.device)\nfirst = order[:k]\ny = x[first]"
    ),
}
REPORTED_ONLY = (
    "y = (x * 2)[torch.arange(n)]",
    "rows = torch.arange(n)\nz = x * 2\ny = z[rows]",
    "y = x[torch.arange(\n    n  # rows\n)]",
)
SILENT = (
    "y = host[torch.arange(n)]",
    "y = inputs[torch.randperm(n)]",
    "y = torch.zeros(n)[torch.randperm(n)]",
    "y = x.cpu()[torch.randperm(n)]",
    "y = x.tolist()[torch.arange(n)[0]]",
    "y = x[torch.arange(n, device=device)]",
    "y = x[torch.arange(n).to(device)]",
    "y = x[torch.arange(n).cuda()]",
    "y = x[torch.randperm(n, generator=k)]",
    "y = x[torch.randperm(n).tolist()]",
    "y = x[random.randrange(n)]",
    "rows = torch.arange(n)\nprint(rows)\ny = x[rows]",
    "rows = torch.randperm(n)\ny = x[rows], host[rows]",
    "rows = torch.randperm(n)\ny = x[rows]\nrows = rows.to(device)",
    "rows = torch.arange(n)\nif k:\n    rows = rows + labels\ny = x[rows]",
    "rows = torch.arange(n)\ny = x.gather(0, rows)",
    "y = torch.arange(n)",
)


@pytest.mark.parametrize(("before", "after"), SAFE.items())
def test_safe(before: str, after: str) -> None:
    assert fixed(loop(before), RULE, Applicability.SAFE) == loop(after)
    check_snippet(_marked(loop(before)), RULE, fixed=loop(after))


@pytest.mark.parametrize(("before", "after"), UNSAFE.items())
def test_unsafe(before: str, after: str) -> None:
    assert fixed(loop(before), RULE, Applicability.SAFE) == loop(before)
    check_snippet(_marked(loop(before)), RULE, fixed=loop(after))


def test_a_name_of_the_module_may_be_read_by_others() -> None:
    code = "import torch\nmodel = torch.nn.Linear(3, 3).cuda()\nfor step in range(9):\n    x = model(torch.rand(3, 3).cuda())\n"
    before = f"{code}    rows = torch.arange(3)\n    y = x[rows]\n"
    assert fixed(before, RULE, Applicability.SAFE) == before
    assert "device=x.device" in fixed(before, RULE, Applicability.UNSAFE)


@pytest.mark.parametrize("body", REPORTED_ONLY)
def test_reported_only(body: str) -> None:
    assert [finding.fix for finding in findings(loop(body), RULE)] == [None]


@pytest.mark.parametrize("body", SILENT)
def test_silent(body: str) -> None:
    check_snippet(loop(body), RULE)


@pytest.mark.parametrize(
    ("line", "mark"),
    [
        ("y = x[:, [-1]]", MARK),
        ("x[[0, 2]] = 1", MARK),
        ("rows = [2, 3]", "y = x[rows]" + MARK),
        ("z = torch.ones(n, n).cuda()", "y = z[[0, 2]].to(device)" + MARK),
        ("y = x[[0, 2]].to(device)", ""),
        ("y = x[labels.to(device), 0].to(device)", ""),
        ("y = inputs[[0, 2]]", ""),
        ("y = inputs[[0, 2]].to(device)", ""),
        ("y = host[[0, 2]].to(device)", ""),
        ("y = {1: x}[[0, 2]]", ""),
        ("y = [x, x]", "z = torch.stack(y)"),
    ],
)
def test_a_list_of_numbers(line: str, mark: str) -> None:
    lines = (line, mark) if mark and not mark.startswith("  #") else (line + mark,)
    check_snippet(loop(*lines), RULE)


@pytest.mark.parametrize(
    ("index", "mark"),
    [
        ("torch.arange(n), labels.cuda()", MARK),
        ("labels.cuda(), torch.arange(n)", MARK),
        # A single element may index from anywhere, and these are where the batch is.
        ("torch.arange(n), labels.cuda().sum()", ""),
        ("torch.arange(n), labels", ""),
    ],
)
def test_another_index_tells_where_the_tensor_is(index: str, mark: str) -> None:
    check_snippet(loop(f"y = k[{index}]{mark}"), RULE)


def test_what_is_moved_where_it_is_already() -> None:
    check_snippet(loop("z = torch.ones(n, n).cuda()", f"y = z[torch.arange(n)].to(device){MARK}"), RULE)
    check_snippet(loop("y = x[torch.arange(n)].to(device)"), RULE)


def test_a_default_device_may_be_another() -> None:
    assert not findings(loop("y = x[torch.arange(n)]", top="torch.set_default_device('cuda')"), RULE)


def _marked(code: str) -> str:
    names = ("torch.arange(", "torch.randperm(", "torch.randint(")
    return "\n".join(
        f"{line}  # <- {RULE}" if any(name in line for name in names) else line for line in code.split("\n")
    )


SNIPPETS = {
    "an epoch's permutation": """
        import torch
        def train(model, optimizer, data, batch, device):
            data = data.to(device)
            for epoch in range(9):
                order = torch.randperm(data.size(0))  # <- host-index-for-device-tensor
                for start in range(0, data.size(0), batch):
                    loss = model(data[order[start : start + batch]])
                    loss.backward()
                    optimizer.step()
        """,
    "data that stays on the CPU": """
        import torch
        def train(model, optimizer, data, batch, device):
            for epoch in range(9):
                order = torch.randperm(data.size(0))
                for start in range(0, data.size(0), batch):
                    loss = model(data[order[start : start + batch]].to(device))
                    loss.backward()
                    optimizer.step()
        """,
    "the first time": """
        import torch
        from torch import nn
        class Codes(nn.Module):
            def __init__(self, count):
                super().__init__()
                self.init, self.count = False, count
            def begin(self, x):
                self.init = True
                self.codes = x[torch.randperm(x.shape[0])][: self.count]
            def forward(self, x, update):
                x = torch.relu(x.cuda())
                if update and not self.init:
                    self.begin(x)
                drawn = x[torch.randperm(x.shape[0])]  # <- host-index-for-device-tensor
                return torch.cdist(drawn, self.codes)
        """,
    "once": """
        import torch
        x = torch.randn(100, 3).cuda()
        print(x[torch.randperm(100)[:5]])
        """,
    "a parameter of nobody knows where": """
        import torch
        def pick(scores, labels):
            return scores[torch.arange(len(labels)), labels]
        """,
    "on the CPU for good": """
        import torch
        from torch import nn
        model = nn.Linear(3, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for epoch in range(10):
            x = model(torch.randn(8, 3))
            loss = x[torch.arange(8), 0].sum()
            loss.backward()
            optimizer.step()
        """,
}


@pytest.mark.parametrize("code", SNIPPETS.values(), ids=SNIPPETS)
def test_programs(code: str) -> None:
    check_snippet(code, RULE)


def test_how_often_may_be_unknown() -> None:
    check_snippet(
        """
        import torch
        def shuffled(x: torch.Tensor):
            x = x.cuda()
            return x[torch.randperm(x.size(0))]  # <- host-index-for-device-tensor?
        def flipped(x: torch.Tensor):
            x = x.cuda()
            return x[torch.arange(x.size(0))]
        once = flipped(torch.zeros(3))
        """,
        RULE,
    )


def test_lists_as_indices() -> None:
    check_snippet(
        """
        import torch
        def halves(labels, x: torch.Tensor, y: torch.Tensor):
            x = x.cuda()
            chosen = [i for i, label in enumerate(labels) if label]
            other = [i for i, label in enumerate(labels) if not label]
            names = [label.name for label in labels]
            print(names[0], labels[names[0]])
            host = torch.zeros(3)[chosen] + torch.zeros(9)[[i for i in range(3)]]
            return x[chosen, ...], y[other], host  # <- host-index-for-device-tensor?
        """,
        RULE,
    )
    check_snippet(
        """
        import torch
        def train(model: torch.nn.Module, loader, optimizer):
            for x, labels in loader:
                out = torch.relu(x.cuda()) * model(x)
                rows = [i for i, label in enumerate(labels) if label]
                loss = out[rows].sum()  # <- host-index-for-device-tensor
                loss.backward()
                optimizer.step()
        """,
        RULE,
    )


@pytest.mark.parametrize(
    ("rows", "mark"),
    [
        ("random.sample(range(n), 8)", MARK),
        ("random.choices(range(n), k=8)", MARK),
        ("sorted(random.sample(range(n), 8))", MARK),
        # Of what is not in sight, and one of them.
        ("sorted(labels)", ""),
        ("random.sample(labels, 8)", ""),
        ("random.sample(range(n), 8)[0]", ""),
    ],
)
def test_lists_that_are_drawn(rows: str, mark: str) -> None:
    check_snippet(loop(f"rows = {rows}", f"y = x[rows]{mark}", top="import random"), RULE)


def test_ranges_as_indices() -> None:
    """PyTorch makes a tensor of a range on the host, as of a list, and copies it where it is used."""
    check_snippet(
        """
        import torch
        def pick(labels, x: torch.Tensor):
            host = torch.zeros(9)[range(3)], [4, 5, 6][range(3)[0]], labels[range(3)]
            for row in range(3):
                host = host + x[row]
            y = x.cuda()[range(3)].cpu() + torch.zeros(3)  # <- host-index-for-device-tensor?
            return y, host, [labels[i] for i in range(3)]
        """,
        RULE,
    )
    check_snippet(
        """
        import torch
        def train(model: torch.nn.Module, loader, optimizer):
            for x, labels in loader:
                out = torch.relu(x.cuda()) * model(x)
                rows = range(len(labels))
                loss = -out[rows, labels].mean()  # <- host-index-for-device-tensor
                out[range(len(labels)), labels] = 0  # <- host-index-for-device-tensor
                loss.backward()
                optimizer.step()
        """,
        RULE,
    )


def test_an_array_that_indexes() -> None:
    code = loop(
        "i = np.arange(4)", "y = x[i]  # <- host-index-for-device-tensor", "z = x[i] + 1", top="import numpy as np"
    )
    check_snippet(code, RULE)
    text = unmarked(code)
    [finding] = findings(text, RULE)
    assert [text[place.start : place.end] for place in finding.places] == ["x[i]"]


@pytest.mark.parametrize(
    "lines",
    [
        ("y = x.cpu()[np.arange(4)]",),
        ("y = host[np.arange(4)]",),
        ("y = np.ones(3)[np.arange(3)]",),
        ("i = torch.from_numpy(np.arange(4)).to(device)", "y = x[i]"),
        ("y = x[np.arange(4)].to('cpu')",),
    ],
)
def test_what_an_array_indexes_is_on_the_host(lines: tuple[str, ...]) -> None:
    check_snippet(loop(*lines, top="import numpy as np"), RULE)


def test_the_copy_is_made_where_the_index_is_used() -> None:
    code = loop("i = torch.randint(n, (4,))", "y = x[i] + x[i, 0]")
    [finding] = findings(code, RULE)
    assert [code[place.start : place.end] for place in finding.places] == ["x[i]", "x[i, 0]"]


def test_what_the_callers_in_sight_give_is_on_the_device() -> None:
    code = """
        import torch
        class Net(torch.nn.Module):
            def pick(self, keys):
                return keys[torch.arange(keys.shape[0])]  # <- host-index-for-device-tensor
            def forward(self, keys):
                return self.pick(keys.exp())
        def train(loader, optimizer):
            net = Net().cuda()
            for x in loader:
                net(x.cuda()).sum().backward()
                optimizer.step()
    """
    check_snippet(code, RULE)


MATCHING = """
import torch
from scipy.optimize import linear_sum_assignment
from torch import nn
class Matcher(nn.Module):
    @torch.no_grad()
    def forward(self, cost, sizes):
        pairs = [linear_sum_assignment(c) for c in cost.cpu().split(sizes, -1)]
        return [({made}, torch.as_tensor(j)) for i, j in pairs]
class Criterion(nn.Module):
    def __init__(self, matcher):
        super().__init__()
        self.matcher = matcher
    def places(self, pairs):
        batch = torch.cat([torch.full_like(source, i) for i, (source, _) in enumerate(pairs)])
        return batch, torch.cat([source for source, _ in pairs])
    def forward(self, logits, boxes, cost, sizes):
        logits = logits.cuda()
        pairs = self.matcher(cost, sizes)
        index = self.places(pairs){moved}
        classes = torch.full(logits.shape[:2], 1, device=logits.device)
        classes[index] = 2{mark}
        return logits[index].sum() + classes.sum() + boxes
criterion = Criterion(Matcher())
for batch in torch.utils.data.DataLoader(data):
    criterion(*batch).backward()
"""


@pytest.mark.parametrize(
    ("made", "moved", "mark"),
    [
        ("torch.as_tensor(i)", "", f"  # <- {RULE}"),
        ("torch.from_numpy(i)", "", f"  # <- {RULE}"),
        ("torch.as_tensor(i, device='cuda')", "", ""),
        ("unknown(i)", "", ""),
        ("torch.as_tensor(i)", "\n        index = tuple(each.cuda() for each in index)", ""),
    ],
)
def test_tensors_that_a_matcher_makes_on_the_cpu(made: str, moved: str, mark: str) -> None:
    """As DETR's: what a network gives may move with it, but not what its `forward` makes of arrays."""
    found = check_snippet(MATCHING.format(made=made, moved=moved, mark=mark), RULE).findings
    assert [len(finding.places) for finding in found] == ([1] if mark else []), "the same index, once more"


@pytest.mark.parametrize(
    ("made", "mark"),
    [
        ("torch.from_numpy(rows)", "?"),
        ("torch.ones(9, dtype=torch.bool)", "?"),
        ("torch.randperm(9)[0]", None),  # a number
        ("torch.tensor(3)", None),
        ("torch.tensor([3, 4])", "?"),
        ("torch.tensor(place)", None),
        ("torch.ones(9, dtype=torch.bool, device=x.device)", None),
        ("x.argmax(1)", None),
        ("rows", None),
    ],
)
def test_a_tensor_on_the_cpu(made: str, mark: str | None) -> None:
    marked = "" if mark is None else f"  # <- {RULE}{mark}"
    check_snippet(
        f"""
        import torch
        from torch import nn
        class Net(nn.Module):
            def forward(self, x: torch.Tensor, rows):
                kept = {made}
                return x[kept]{marked}
        net = Net().cuda()
        for x, rows in torch.utils.data.DataLoader(data):
            net(x.cuda(), rows).sum().backward()
        """,
        RULE,
    )
