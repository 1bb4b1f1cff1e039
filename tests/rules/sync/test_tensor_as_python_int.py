"""TL313: a device tensor that Python needs as an int at each batch is flagged where it is first needed."""

from __future__ import annotations

import textwrap

import pytest
from laws import check_snippet

RULE = "tensor-as-python-int"
MARK = "  # <- tensor-as-python-int"


def forward(*lines: str) -> str:
    """A network whose `forward` does this."""
    body = textwrap.indent("\n".join(lines), " " * 8)
    return (
        "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n"
        f"    def forward(self, x: torch.Tensor, lengths: torch.Tensor):\n{body}\n        return x\n"
    )


@pytest.mark.parametrize(
    "lines",
    [
        ("for _ in range(lengths.max()):" + MARK, "    x = x + 1"),
        ("x = x[:, : lengths.max()]" + MARK,),
        ("longest = lengths.max()", "x = x[:, :longest]" + MARK, "y = x[:longest]", "z = torch.arange(longest)"),
        ("longest = torch.max(lengths)", "y = torch.zeros((longest, 3))" + MARK),
        ("y = torch.full((lengths.sum(),), 0.5)" + MARK,),
        ("y = torch.arange(0, lengths.max() + 1)" + MARK,),
        ("y = x.new_zeros(lengths.max(), 3)" + MARK,),
        ("y = x.view(lengths.max(), -1)" + MARK,),
        ("y = x.reshape((lengths.max(), -1))" + MARK,),
        ("y = x.expand(-1, lengths.max())" + MARK,),
        ("y = x.split([lengths.min(), 2])" + MARK,),
        ("for row in range(x.shape[0]):", "    x[row, : lengths[row]] = 0" + MARK),
        ("for h, w in lengths:", "    y = torch.zeros((h, w))" + MARK, "    z = x[:w]"),
        ("x = x[lengths.max()]" + MARK,),
        ("x = x[0, lengths.max()]" + MARK,),
        ("best = torch.argmax(lengths)", "x[:, best] = 0" + MARK),
        ("for row in range(8):", "    n = int(lengths[row])", "    x = x + x[:, lengths[row]]" + MARK),
        ("for row in range(8):", "    y = x[row, : lengths[row]]" + MARK, "    z = x[row, lengths[row]]" + MARK),
        ("order = torch.randperm(8, device=x.device)", "first = order[0]", "x = x[first]" + MARK),
        ("flat = lengths.view(-1)", "for row in range(8):", "    x = x + x[flat[row]]" + MARK),
        ("names = ['a', 'b']", "name = names[lengths.argmax()]" + MARK),
        ("h, w = (x.max(dim=1).values + 1).amax(dim=0)", "y = torch.zeros((h, w))" + MARK),
    ],
)
def test_a_forward_that_needs_an_int(lines: tuple[str, ...]) -> None:
    check_snippet(forward(*lines), RULE)


@pytest.mark.parametrize(
    "lines",
    [
        ("for _ in range(x.shape[0]):", "    x = x + 1"),
        ("x = x[:, : x.size(1) // 2]",),
        ("x = x[lengths]",),
        ("x = x[lengths.argmax(0)]",),
        ("x = x[lengths[0]] + x[lengths.flatten(1)[0]]", "y = x[lengths.view(-1, 2)[0]]"),
        ("n = int(lengths[0, 1])", "m = int(lengths.sum())", "x = x[lengths[0]]"),
        ("order = torch.randperm(8)", "x = x[order[0]]"),
        ("flat = lengths.flatten()", "x = x[flat[:2]] + x[flat[lengths]]"),
        ("x = x[lengths.argmax(0, keepdim=True)]", "y = x[torch.argmax(lengths, 0)]"),
        ("x = x[:, : int(lengths.max())]",),
        ("x = x[:, : lengths.max().item()]",),
        ("x = x[: lengths.cpu().max()]",),
        ("cut = torch.randint(1, 4, (1,))", "x = x[:cut]"),
        ("y = torch.split(x, 2)", "z = torch.reshape(x, (3, 2))"),
        ("y = x.view(lengths.shape)", "z = x.expand(lengths.size())"),
        ("y = x.reshape(3, torch.div(x.size(0), 3, rounding_mode='trunc'))",),
        ("y = x.new_ones(x[:2])", "z = self.reshape(lengths.max(), 2)"),
        ("if torch.jit.is_tracing():", "    x = x[: lengths.max()]"),
        ("if isinstance(lengths, int):", "    x = x + 1", "x = x[:lengths]"),
    ],
)
def test_a_forward_that_does_not(lines: tuple[str, ...]) -> None:
    check_snippet(forward(*lines), RULE)


@pytest.mark.parametrize(
    "code",
    [
        """
        import torch
        def train(model, loader, optimizer, criterion):
            for inputs, lengths in loader:
                inputs, lengths = inputs.cuda(), lengths.cuda()
                longest = lengths.max()
                loss = criterion(model(inputs[:, :longest]), lengths)  # <- tensor-as-python-int
                loss.backward()
                optimizer.step()
        """,
        """
        import torch
        def train(model, loader, optimizer, criterion):
            for inputs, lengths in loader:
                longest = lengths.max()
                loss = criterion(model(inputs[:, :longest].cuda()), lengths.cuda())
                loss.backward()
                optimizer.step()
        """,
        """
        import torch
        def cut(x: torch.Tensor, lengths: torch.Tensor):
            return x[:, : lengths.max()]  # <- tensor-as-python-int?
        """,
    ],
)
def test_outside_of_a_network(code: str) -> None:
    check_snippet(code, RULE)


def test_further_uses_are_listed_with_the_first() -> None:
    code = forward(
        "longest = lengths.max()",
        "x = x[:, :longest]" + MARK,
        "y = torch.arange(longest) + torch.zeros(longest + 1)",
        "y = y + longest + self.view(longest)",
        "longest = lengths.shape[0]",
        "x = x[:, :longest]",
    )
    (finding,) = check_snippet(code, RULE).findings
    assert len(finding.places) == 2
    assert "in 3 places" in finding.message
    assert ".item()" in finding.help


def test_lengths_that_sequences_are_packed_with_are_on_the_cpu() -> None:
    code = """
        import torch
        from torch import nn
        from torch.nn.utils.rnn import pack_padded_sequence
        class Tagger(nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn = nn.LSTM(8, 8)
            def forward(self, x: torch.Tensor, lengths: torch.Tensor):
                packed, _ = self.rnn(pack_padded_sequence(x, LENGTHS, batch_first=True))
                x = x[:, : lengths.max()]MARK
                return self.cut(x, lengths)
            def cut(self, x: torch.Tensor, lengths: torch.Tensor):
                return [part[:length] for part, length in zip(x, lengths)]MARK
    """
    check_snippet(code.replace("LENGTHS", "lengths").replace("MARK", ""), RULE)
    check_snippet(code.replace("LENGTHS", "lengths.cpu()").replace("MARK", f"  # <- {RULE}"), RULE)


def test_numbers_that_processes_exchange() -> None:
    code = """
        import torch
        import torch.distributed as dist
        from torch import nn
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Linear(8, 8)
            def forward(self, x: torch.Tensor):
                count = self.body(x).argmax(1).max()
                dist.all_reduce(OTHER)
                return torch.zeros(count, device=x.device)MARK
    """
    check_snippet(code.replace("OTHER", "count").replace("MARK", f"  # <- {RULE}?"), RULE)
    check_snippet(code.replace("OTHER", "x").replace("MARK", f"  # <- {RULE}"), RULE)


def test_sizes_of_functions() -> None:
    check_snippet(
        """
        import torch
        import torch.nn.functional as F
        from torch import nn
        from torch.nn.functional import pad as fill
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Linear(8, 8)
            def forward(self, x: torch.Tensor, places: torch.Tensor):
                x = fill(x.abs().sum(1, keepdim=True), (1, 2), value=float(x.shape[0]))
                height, width = places.amax(dim=0)
                grid = F.affine_grid(x, (2, 3, height, width))  # <- tensor-as-python-int
                longest = self.body(x).argmax(1).max()
                y = F.pad(x, (0, longest))  # <- tensor-as-python-int
                y = F.interpolate(y, scale_factor=longest)
                z = F.one_hot(places, num_classes=longest + 1)  # <- tensor-as-python-int
                y = F.interpolate(y, size=(x.shape[0], 3))
                return grid, y, z
        """,
        RULE,
    )


def test_what_is_walked_beside_a_tensor_on_the_device() -> None:
    code = """
        import torch
        from torch import nn
        class Encoder(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Linear(8, 8)
            def forward(self, texts: torch.Tensor, tokens):
                sizes = GIVEN.gt(0).sum(dim=1)
                return [row[:size] for row, size in zip(self.body(texts), sizes)]MARK
    """
    given = "tokens.mask"
    check_snippet(code.replace("GIVEN", given).replace("MARK", ""), RULE)
    check_snippet(code.replace("GIVEN", "self.body(texts)").replace("MARK", f"  # <- {RULE}"), RULE)


@pytest.mark.parametrize(
    ("call", "mark"),
    [
        ("torch.full((8, 1), scale[i], device=x.device)", True),
        ("torch.full((8, 1), fill_value=scale[i], device=x.device)", True),
        ("x.new_full((8, 1), scale.mean())", True),
        ("torch.full((8, 1), 3.0, device=x.device)", False),
        ("torch.full_like(x, scale[i])", True),
        ("torch.full_like(x, fill_value=scale[i])", True),
        ("torch.full_like(x, 3.0)", False),
        ("scale[i].expand(8, 1)", False),
    ],
)
def test_the_number_that_a_tensor_is_filled_with(call: str, mark: bool) -> None:  # noqa: FBT001
    flagged = "  # <- tensor-as-python-int" if mark else ""
    check_snippet(
        f"""
        import torch
        from torch import nn
        class Net(nn.Module):
            def forward(self, x: torch.Tensor, i: int):
                scale = torch.linspace(0, 1, 9, device="cuda")
                a = {call}{flagged}
                return x * a
        """,
        RULE,
    )


def test_a_loop_that_reads_each_element_says_it_already() -> None:
    code = forward(
        "kept = torch.zeros_like(x)",
        "valid = (x > 0).sum(dim=1)",
        "for row in range(x.shape[0]):  # <- python-loop-over-tensor",
        "    kept[row, : valid[row]] = x[row, x[row] > 0]",
        "x = x + kept",
    )
    check_snippet(code, "python-loop-over-tensor", RULE)


def test_what_was_moved_and_bounds_a_slice_is_a_tensor() -> None:
    """Of what moves to a device, nothing else is a number."""
    code = """\
import torch


def train(net, loader, optimizer):
    for batch in loader:
        batch = [part.to("cuda") for part in batch]
        texts, lengths, names = batch
        loss = 0
        for out, text, length in zip(net(texts), texts, lengths):
            loss += torch.nn.functional.cross_entropy(out[:length], text[:length])  # <- tensor-as-python-int
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
    check_snippet(code, RULE)
    check_snippet(code.replace('[part.to("cuda") for part in batch]', "list(batch)").replace(MARK, ""), RULE)


@pytest.mark.parametrize(
    ("bound", "mark"),
    [
        ("num = lengths[i]", f"  # <- {RULE}?"),
        ("num = lengths[0]", ""),
        ("num = lengths[i].sum() + lengths[i].max()", ""),
    ],
)
def test_a_search_that_reads_one_length_of_many(bound: str, mark: str) -> None:
    """Its name says that it goes by the data, of which one copy brings all."""
    code = f"""
        import torch
        def beam_search(scores: torch.Tensor, lengths: torch.Tensor):
            for i in range(scores.shape[0]):
                {bound}
                for t in range(num):{mark}
                    show(t)
    """
    for finding in check_snippet(code, RULE).findings:
        assert "one `.tolist()` before the loop" in finding.help


def test_what_a_function_is_given_needs_no_annotation() -> None:
    code = """
        import torch
        def cut(logits, length):
            return logits[:, length : length + 1]{}
        def train(model, loader, optimizer):
            for x in loader:
                x = x.cuda()
                loss = cut(model(x), {}).mean()
                loss.backward()
                optimizer.step()
    """
    check_snippet(code.format(f"  # <- {RULE}", "x.argmax()"), RULE)
    check_snippet(code.format("", "len(x)"), RULE)
    check_snippet(code.format("", "choose(x)"), RULE)


def test_a_size_that_is_bound_with_others_and_the_start_of_a_part() -> None:
    code = f"""
        import torch
        from torch import nn
        class Net(nn.Module):
            def forward(self, x, lengths):
                rows, longest = x.shape[0], lengths.max()
                x = x.view(2, 1, 1, longest)  # <- {RULE}
                return x, rows
        class Part(nn.Module):
            def forward(self, x, lengths):
                first = lengths.min()
                return torch.relu(x).narrow(-1, first, 3)  # <- {RULE}
        class Rows(nn.Module):
            def forward(self, x, lengths):
                rows, longest = x.shape[0], lengths.max()
                return x.view(rows, -1), longest
    """
    check_snippet(code, RULE)
