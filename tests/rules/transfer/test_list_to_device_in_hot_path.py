"""TL215: lists of numbers that each batch sends to the device are flagged, and sent from pinned memory by the fix."""

from __future__ import annotations

import pytest
from laws import active, check_snippet
from twins import findings, fixed

from torchlint import linter
from torchlint.finding import Applicability, Doubt, Severity
from torchlint.role import Role
from torchlint.source import SourceFile

RULE = "list-to-device-in-hot-path"


def program(expression: str, *, before: str = "", after: str = "") -> str:
    lines = [*(f"        {line}" for line in before.splitlines()), f"        sent = {expression}"]
    lines += [f"        {line}" for line in after.splitlines()]
    return (
        "import numpy as np\nimport torch\n\n\ndef train(model, optimizer, loader, device: torch.device, n: int):\n"
        "    for step, (x, texts) in enumerate(loader):\n"
        + "\n".join(lines)
        + "\n        loss = model(x, sent).sum()\n"
        "        loss.backward()\n        optimizer.step()\n"
    )


PINNED = "pin_memory=torch.cuda.is_available())"
FIXED = {
    "torch.tensor([len(t) for t in texts], device=device)": (
        f"torch.tensor([len(t) for t in texts], {PINNED}.to(device, non_blocking=True)"
    ),
    "torch.tensor([n, len(texts)], dtype=torch.int32, device=device)": (
        f"torch.tensor([n, len(texts)], dtype=torch.int32, {PINNED}.to(device, non_blocking=True)"
    ),
    "torch.tensor([n] * len(texts), device=device)": (
        f"torch.tensor([n] * len(texts), {PINNED}.to(device, non_blocking=True)"
    ),
    "torch.tensor([n, 1], device='cuda:1')": f"torch.tensor([n, 1], {PINNED}.to('cuda:1', non_blocking=True)",
    "torch.tensor((n, x.shape[0])).cuda()": f'torch.tensor((n, x.shape[0]), {PINNED}.to("cuda", non_blocking=True)',
    "torch.tensor([[len(t), 0] for t in texts]).to(device)": (
        f"torch.tensor([[len(t), 0] for t in texts], {PINNED}.to(device, non_blocking=True)"
    ),
}
FILLED = {
    "torch.tensor([n], device=device)": "torch.full((1,), n, device=device)",
    "torch.tensor([n + 1]).to(device)": "torch.full((1,), n + 1, device=device)",
    "torch.tensor(dtype=torch.int32, data=[n], device=device)": "torch.full((1,), n, dtype=torch.int32, device=device)",
    "torch.tensor(n + 1).cuda()": 'torch.full((), n + 1, device="cuda")',
    "torch.tensor((x.shape[0],)).cuda()": 'torch.full((1,), x.shape[0], device="cuda")',
    "torch.tensor(n, device=device)": "torch.full((), n, device=device)",
    "torch.tensor(len(texts) / 2, dtype=torch.float64).to(device)": (
        "torch.full((), len(texts) / 2, dtype=torch.float64, device=device)"
    ),
}
REPORTED_ONLY = (
    "torch.as_tensor([len(t) for t in texts], device=device)",
    "torch.FloatTensor([len(t) for t in texts]).to(device)",
    "torch.tensor([n, 1])[None].to(device)",
    "torch.tensor([n, 1]).to(device, torch.float16)",
    "torch.as_tensor([n] * len(texts), device=device)",
    "torch.tensor([n,  # rows\n            1], device=device)",
)
SILENT = (
    "torch.tensor([len(t) for t in texts])",
    "torch.tensor([len(t) for t in texts], device='cpu')",
    "torch.tensor([len(t) for t in texts]).to(torch.float32)",
    "torch.tensor([1, 2], device=device)",
    "torch.tensor([], device=device)",
    "torch.tensor([t for t in texts], device=device)",
    "torch.tensor([*texts, 1], device=device)",
    "torch.tensor([n, 1]).to(device, non_blocking=True)",
    "torch.tensor([n, 1]).cuda(None, True)",
    "torch.tensor([t.item() for t in x], device=device)",
    "torch.tensor(x.tolist(), device=device)",
    "torch.tensor([np.ones(3) for t in texts], device=device)",
    "torch.tensor([n, 1.0], device=device, requires_grad=True)",
    "torch.tensor([n, 1], pin_memory=True).to(device)",
    "torch.tensor(x.sum(), device=device)",
    "torch.tensor(np.ones(n), device=device)",
    "torch.tensor(n, device=None)",
    "torch.as_tensor(lengths, device=device)",
    "torch.tensor([[]] * n, device=device)",
    "torch.FloatTensor(n).to(device)",
)
DOUBTFUL = (
    "torch.tensor([optimizer.score(t) for t in texts], device=device)",
    "torch.tensor(lengths, dtype=torch.long).to(device)",
    "torch.tensor(sizes_of(texts), device=device)",
    "torch.as_tensor([lengths, 1], device=device)",
    "torch.tensor([[lengths]]).cuda()",
    "torch.tensor(texts, device=device)",
)


@pytest.mark.parametrize(("before", "after"), FIXED.items())
def test_the_fix_pins_and_does_not_wait(before: str, after: str) -> None:
    assert fixed(program(before), RULE, Applicability.UNSAFE) == program(after)
    assert fixed(program(before), RULE, Applicability.SAFE) == program(before)


@pytest.mark.parametrize(("before", "after"), FILLED.items())
def test_one_number_is_filled_in_on_the_device(before: str, after: str) -> None:
    assert fixed(program(before), RULE, Applicability.UNSAFE) == program(after)
    assert fixed(program(before), RULE, Applicability.SAFE) == program(before)
    (found,) = findings(program(before), RULE)
    assert "pinned" not in found.help


def test_a_file_that_exports_a_model() -> None:
    source = SourceFile("net.py", program("torch.tensor([n, len(texts)], device=device)"))
    assert linter.lint(source, active(RULE)).findings
    assert not linter.lint(source, active(RULE, role=Role.EXPORTING)).findings


@pytest.mark.parametrize("expression", REPORTED_ONLY)
def test_reported_only(expression: str) -> None:
    assert [finding.fix for finding in findings(program(expression), RULE)] == [None]


@pytest.mark.parametrize("expression", SILENT)
def test_silent(expression: str) -> None:
    assert not findings(program(expression), RULE)


@pytest.mark.parametrize("expression", DOUBTFUL)
def test_what_nobody_knows_to_be_a_list_is_a_note(expression: str) -> None:
    (found,) = findings(program(expression), RULE)
    assert (found.doubts, found.fix) == ((Doubt.HOST_BOUND, Doubt.DATA_UNKNOWN), None)
    assert " of a list " not in found.message
    assert not findings(program(expression, after="y = sent.item()"), RULE)


@pytest.mark.parametrize(
    "read",
    ["sent.item()", "(sent / 2).clamp(min=1).tolist()", "x.repeat_interleave(sent)", "torch.arange(max(sent))"],
)
def test_what_the_cpu_reads_again_is_waited_for_anyway(read: str) -> None:
    code = "torch.tensor([n, len(texts)], device=device)"
    assert findings(program(code, after="y = sent + 1"), RULE)
    assert not findings(program(code, after=f"y = {read}"), RULE)


@pytest.mark.parametrize(
    ("lines", "is_read"),
    [
        ("if sent.sum() > 0:\n    x = x * 2", True),
        ("if sent.shape[0] > 1:\n    x = x * 2", False),
        ("if n > 1:\n    x = x * 2", False),
        ("shares = gathered(sent)\nfor i, share in enumerate(shares.data):\n    if share != n:\n        break", True),
        ("for share in sent:\n    if share is not None:\n        x = x * share", False),
        ("for i, text in enumerate(texts):\n    if text != n:\n        break", False),
    ],
)
def test_what_the_cpu_asks_for_is_waited_for_anyway(lines: str, is_read: bool) -> None:  # noqa: FBT001
    assert bool(findings(program("torch.tensor([n, len(texts)], device=device)", after=lines), RULE)) is not is_read


def test_right_behind_a_wait_there_is_nothing_to_wait_for() -> None:
    code = "torch.tensor([n, len(texts)], device=device)"
    assert findings(program(code, before="x = x.cuda() + 1"), RULE)
    assert not findings(program(code, before="x = x.cuda()\nbest = x.sum().item()"), RULE)
    assert findings(program(code, before="x = x.cuda()\nbest = x.sum().item()\nx = x + 1"), RULE)
    within = "if {}:\n    m = torch.tensor([n, 1], device=device)"
    assert not findings(program("n", before=f"x = x.cuda()\n{within.format('x[-1] > n')}"), RULE)
    assert findings(program("n", before=f"x = x.cuda()\n{within.format('n > 1')}"), RULE)
    assert findings(program(code, before="x = x.cuda()\nbest = x.sum().item() if n else 0"), RULE)


def test_a_name_holds_a_list_on_each_way() -> None:
    code = "torch.tensor(sizes, device=device)"
    assert findings(program(code, before="sizes = [len(t) for t in texts]"), RULE)
    assert findings(program(code, before="sizes = [n]\nif n > 1:\n    sizes = (n, 1)"), RULE)
    for before in ("sizes = [n]\nif n > 1:\n    sizes = texts", "rows = [n]\nsizes = load(rows)"):
        (found,) = findings(program(code, before=before), RULE)
        assert found.doubts == (Doubt.HOST_BOUND, Doubt.DATA_UNKNOWN)
        assert found.severity is Severity.NOTE


SNIPPETS = {
    "the module's own": """
        import torch
        from torch import nn
        class Net(nn.Module):
            def __init__(self, first):
                super().__init__()
                self.first = first
            def forward(self, x):
                return x * torch.tensor([self.first, 1], device=x.device)  # <- list-to-device-in-hot-path?
        """,
    "an export": """
        import torch
        from torch import nn
        class Net(nn.Module):
            def forward(self, x):
                if torch.jit.is_tracing():
                    return x * torch.tensor([x.shape[0], 1], device=x.device)
                return x
        """,
    "what the module has may be a tensor": """
        import torch
        from torch import nn
        class Net(nn.Module):
            def __init__(self, scale):
                super().__init__()
                self.scale = scale
            def forward(self, x):
                x = x * torch.tensor(self.scale, device=x.device)  # <- list-to-device-in-hot-path?
                return x * torch.as_tensor(self.scale, device=x.device)
        """,
    "kept for the next call": """
        import torch
        from torch import nn
        class Net(nn.Module):
            def sizes(self, x):
                return torch.tensor([x.shape[0], 1], device=x.device)
            def forward(self, x):
                if self.training:
                    self.known = self.sizes(x)
                return x * self.known
        """,
    "gradients to look at": """
        import torch
        def saliency(model, loader, n: int):
            for image, name in loader:
                label = torch.tensor([n, 0]).to("cuda")
                model(image)[label].sum().backward()
                yield image.grad
        """,
    "the device of a generator": """
        import torch
        from torch import nn
        def told(x) -> tuple[torch.device, torch.dtype]:
            return x.device, x.dtype
        class Drawn(nn.Module):
            def forward(self, x, low: float, high: float):
                where, kind = told(x)
                return torch.tensor([low, high], device=where) * x
        """,
    "scripted": """
        import torch
        from torch import nn
        @torch.jit.script
        def size_of(x):
            return torch.tensor([x.shape[0], 1], device=x.device)
        class Net(nn.Module):
            def forward(self, x):
                return x * size_of(x)
        """,
    "sizes of all processes": """
        import torch
        import torch.distributed as dist
        def train(model, optimizer, loader, device: torch.device, ranks):
            for x, texts in loader:
                mine = torch.tensor([len(texts)], device=device)
                sizes = [torch.zeros_like(mine) for _ in range(ranks)]
                dist.all_gather(sizes, mine)
                largest = max(size.item() for size in sizes)
                stats = torch.tensor([len(texts), 1.0], device=device)
                everyone = [torch.zeros_like(stats) for _ in range(ranks)]
                dist.all_gather(everyone, stats)
                for one in everyone:
                    print(int(one[0].item()))
                own = torch.tensor([len(texts)], device=device)  # <- list-to-device-in-hot-path
                others = [torch.zeros_like(own) for _ in range(ranks)]
                dist.all_gather(others, own)
                loss = model(x, sum(others)).sum()
                loss.backward()
                optimizer.step()
        """,
    "repeats": """
        import torch
        def train(model, optimizer, loader, device: torch.device):
            for x, texts in loader:
                counts = [len(text) for text in texts]
                rows = torch.arange(len(texts), device=device)
                own = torch.repeat_interleave(rows, torch.tensor(counts, device=device))
                all_in_all = sum(counts)
                same = torch.repeat_interleave(
                    rows,
                    torch.tensor(counts, device=device),  # <- list-to-device-in-hot-path?
                    output_size=all_in_all,
                )
                model(x, own, same).sum().backward()
                optimizer.step()
        """,
    "asked of all processes": """
        import torch
        import torch.distributed as dist
        def train(model, optimizer, loader, device: torch.device, ranks: int):
            for x, mask in loader:
                mine = torch.tensor([mask is not None, 1], dtype=torch.int64, device=device)
                of_all = [torch.empty_like(mine) for _ in range(ranks)]
                dist.all_gather(of_all, mine)
                if torch.any(torch.stack(of_all)):
                    x = x.clone()
                x = x.exp()
                x = x.sqrt()
                x = x + 1
                own = torch.tensor([mask is not None, 1], device=device)  # <- list-to-device-in-hot-path?
                if dist.get_rank() == 0:
                    x = x * own
                model(x).sum().backward()
                optimizer.step()
        """,
    "a device that is never given": """
        import torch
        def lengths(texts, device: str | None = None):
            return torch.tensor([len(text) for text in texts], device=device)
        def rows(texts, device: str | None = None):
            return torch.tensor([len(text) for text in texts], device=device)  # <- list-to-device-in-hot-path?
        def train(model, optimizer, loader):
            for x, texts in loader:
                model(x, lengths(texts), rows(texts, "cuda"), rows(texts)).sum().backward()
                optimizer.step()
        """,
    "around what was traced": """
        import torch
        from torch import nn
        class Packed(nn.Module):
            def __init__(self, model, sample, end):
                super().__init__()
                self.end = end
                self.model = torch.jit.trace(model, sample)
            def forward(self, x):
                return self.model(torch.cat([x, torch.tensor([self.end], dtype=torch.long).to(x.device)]))
        class Whole(nn.Module):
            def __init__(self, model, end):
                super().__init__()
                self.end = end
                self.model = model
            def forward(self, x):
                ends = torch.tensor([self.end], dtype=torch.long).to(x.device)  # <- list-to-device-in-hot-path
                return self.model(torch.cat([x, ends]))
        """,
    "compiled": """
        import torch
        @torch.compile
        def scaled(x):
            return x * torch.tensor([x.shape[0], 1], device=x.device)
        """,
}


@pytest.mark.parametrize("code", SNIPPETS.values(), ids=SNIPPETS)
def test_programs(code: str) -> None:
    check_snippet(code, RULE)


def test_the_message_names_the_list_not_the_move() -> None:
    code = program("torch.tensor([n, 1])", after="sent = sent.to(device)")
    (found,) = findings(code, RULE)
    assert "`torch.tensor([n, 1])` is built from a list" in found.message


def test_transforms_of_images_run_in_workers() -> None:
    source = SourceFile("shapes.py", program("torch.tensor([n, 1], device=device)"))
    assert linter.lint(source, active(RULE)).findings
    assert not linter.lint(source, active(RULE, role=Role.TRANSFORMS)).findings


def test_the_layout_stays() -> None:
    before = """torch.tensor(
            [
                len(texts),
                n,
            ],
            device=device,
            dtype=torch.int32,
        )"""
    after = """torch.tensor(
            [
                len(texts),
                n,
            ],
            pin_memory=torch.cuda.is_available(),
            dtype=torch.int32,
        ).to(device, non_blocking=True)"""
    assert fixed(program(before), RULE, Applicability.UNSAFE) == program(after)


def test_lines_that_go_elsewhere_keep_their_indentation() -> None:
    before = "torch.tensor([\n            len(texts),\n            n,\n        ]).to(device)"
    after = (
        f"torch.tensor([\n            len(texts),\n            n,\n        ], {PINNED}.to(device, non_blocking=True)"
    )
    assert fixed(program(before), RULE, Applicability.UNSAFE) == program(after)


def test_a_learner_waits_until_its_buffer_is_full() -> None:
    """Behind `len(buffer) > n` a program learns at nearly each step; what stands in for nothing is made seldom."""
    check_snippet(
        """
        import random
        import torch
        device = torch.device("cuda")
        def learn(agent, env, optimizer):
            buffer = []
            observation = env.reset()
            for step in range(100000):
                action = agent.act(observation)
                observation, reward, done, info = env.step(action)
                buffer.append(float(reward))
                if len(buffer) > 1000:
                    batch = random.sample(buffer, 32)
                    rewards = torch.tensor([float(reward) for reward in batch]).to(device)  # <- list-to-device-in-hot-path?
                    loss = agent.loss(rewards)
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                if len(buffer) == 0:
                    rewards = torch.tensor([float(reward) for reward in buffer]).to(device)
        """,
        RULE,
    )


def test_lists_that_are_filled_as_the_code_goes_on() -> None:
    """What is appended may be anything; what was read from the GPU, or is a tensor, is another matter."""
    check_snippet(
        """
        import torch
        class Runner:
            def __init__(self, model):
                self.model = model.cuda()
                self.device = torch.device("cuda")
            @torch.inference_mode()
            def execute_model(self, requests):
                tokens: list[int] = []
                tables = []
                read = []
                parts = []
                for request in requests:
                    tokens.extend(request.token_ids)
                    tables.append(request.blocks + [0])
                    read.append(request.logits.max().item())
                    parts.append(torch.zeros(2, device=self.device))
                tokens = torch.tensor(tokens).to(self.device)  # <- list-to-device-in-hot-path?
                tables = torch.tensor(tables, device=self.device)  # <- list-to-device-in-hot-path?
                read = torch.tensor(read, device=self.device)
                parts = torch.tensor(parts, device=self.device)
                return self.model(tokens, tables, read, parts)
        """,
        RULE,
    )


def test_a_part_of_a_shape_is_no_number() -> None:
    code = """
        import torch
        def train(model, loader, optimizer):
            for x in loader:
                x = x.cuda()
                size = torch.tensor(x.shape[{}], device=x.device)  # <- list-to-device-in-hot-path{}
                loss = (model(x) / size).mean()
                loss.backward()
                optimizer.step()
    """
    assert "torch.full" in (check_snippet(code.format("-1", ""), RULE).findings[0].help or "")
    assert "torch.full" not in (check_snippet(code.format("-1:", "?"), RULE).findings[0].help or "")


@pytest.mark.parametrize(
    "made", ["torch.LongTensor(range(n)).to(x.device)", "torch.tensor(range(2, n), device=x.device)"]
)
def test_numbers_in_a_row(made: str) -> None:
    code = f"""
        import torch
        def train(model, loader, optimizer):
            for x in loader:
                x = x.cuda()
                n = x.shape[0]
                order = {made}  # <- list-to-device-in-hot-path?
                model(x)[order].mean().backward()
                optimizer.step()
    """
    [found] = check_snippet(code, RULE).findings
    assert (found.message.split(" is ")[1].split(" on ")[0], found.fix) == ("built from a range", None)
    assert found.help == "make it there with `torch.arange(…, device=…)`"
