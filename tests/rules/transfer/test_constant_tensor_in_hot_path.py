"""TL208: tensors of constants are flagged where each batch sends them; the tests run what the fix makes."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest
import torch
from laws import check_snippet
from twins import findings, fixed

from torchlint.finding import Applicability, Doubt

RULE = "constant-tensor-in-hot-path"


def module(expression: str, *, top: str = "") -> str:
    return (
        f"import math\nimport torch\nfrom torch import nn\n{top}\n\nclass Net(nn.Module):\n"
        f"    def forward(self, x, device, gpu, n, labels, half: torch.dtype):\n        return {expression}\n"
    )


SAFE = {
    "torch.tensor(0.5, device=x.device)": "torch.full((), 0.5, device=x.device)",
    "torch.tensor(1, device=x.device)": "torch.full((), 1, device=x.device)",
    "torch.tensor(-1, device=x.device)": "torch.full((), -1, device=x.device)",
    "torch.tensor(True, device=x.device)": "torch.full((), True, dtype=torch.bool, device=x.device)",
    "torch.tensor([False]).to(x.device)": "torch.full((1,), False, dtype=torch.bool, device=x.device)",
    "torch.tensor(True, device=x.device, dtype=x.dtype)": "torch.full((), True, device=x.device, dtype=x.dtype)",
    "torch.tensor(True, dtype=x.dtype).to(x.device)": "torch.full((), True, dtype=x.dtype, device=x.device)",
    "torch.tensor(1e-8, device=x.device)": "torch.full((), 1e-8, device=x.device)",
    "torch.as_tensor(3, device=x.device)": "torch.full((), 3, device=x.device)",
    "torch.tensor([2], device=x.device)": "torch.full((1,), 2, device=x.device)",
    "torch.tensor((0.5, 0.5), device=x.device)": "torch.full((2,), 0.5, device=x.device)",
    "torch.tensor([[0, 0, 0], [0, 0, 0]], device=x.device)": "torch.full((2, 3), 0, device=x.device)",
    "torch.tensor(1, dtype=torch.uint8, device=x.device)": "torch.full((), 1, dtype=torch.uint8, device=x.device)",
    "torch.tensor(-0.0, device=x.device, dtype=x.dtype)": "torch.full((), -0.0, device=x.device, dtype=x.dtype)",
    "torch.tensor(0.5, requires_grad=True, device=x.device)": (
        "torch.full((), 0.5, requires_grad=True, device=x.device)"
    ),
    "torch.tensor(data=7, device=x.device)": "torch.full((), 7, device=x.device)",
    "torch.tensor(0.5).to(x.device)": "torch.full((), 0.5, device=x.device)",
    "x if(torch.tensor(0.5, device=x.device))else x": "x if(torch.full((), 0.5, device=x.device))else x",
    "torch.tensor(\n            0.5,\n            device=x.device,\n        )": (
        "torch.full(\n            (), 0.5,\n            device=x.device,\n        )"
    ),
    "torch.tensor([1, 1], dtype=torch.float64).to(x.device)": (
        "torch.full((2,), 1, dtype=torch.float64, device=x.device)"
    ),
}
UNSAFE = {
    "torch.tensor(300, device=x.device)": "torch.full((), 300, device=x.device)",
    "torch.tensor(1e10, device=x.device)": "torch.full((), 1e10, device=x.device)",
    "torch.tensor(float('-inf'), device=x.device)": "torch.full((), float('-inf'), device=x.device)",
    "torch.tensor(1 / 3, device=x.device)": "torch.full((), 1 / 3, device=x.device)",
    "torch.tensor([2 / math.pi]).to(x.device)": "torch.full((1,), 2 / math.pi, device=x.device)",
    "torch.tensor(-math.inf, device=x.device)": "torch.full((), -math.inf, device=x.device)",
    "torch.tensor(x.shape[0], device=x.device)": "torch.full((), x.shape[0], device=x.device)",
    "torch.tensor([x.size(0) / 2]).to(x.device)": "torch.full((1,), x.size(0) / 2, device=x.device)",
    "torch.tensor(len(labels), dtype=x.dtype).to(x.device)": "torch.full((), len(labels), dtype=x.dtype, device=x.device)",
    "torch.tensor(2, dtype=torch.uint64, device=x.device)": "torch.full((), 2, dtype=torch.uint64, device=x.device)",
}
REPORTED_ONLY = (
    "torch.tensor([0.1, 0.2], device=x.device)",
    "torch.tensor([[0], [1]]).to(x.device)",
    "torch.FloatTensor([1.0, 1.0]).to(x.device)",
    "torch.tensor(0.5).to(x)",
    "torch.tensor(0.5).type_as(x)",
    "torch.tensor(0.5).cuda(gpu)",
    "torch.tensor(0.5).to(x.device, half)",
    "torch.tensor([1, 1]).view(1, 2).to(x.device)",
    "torch.tensor(  # half\n            0.5, device=x.device\n        )",
)
SILENT = (
    "x * torch.tensor(0.5)",
    "torch.tensor([1, 2])",
    "torch.tensor([1, 2], device='cpu')",
    "torch.tensor([1, 2]).to(torch.float64)",
    "torch.tensor(n, device=x.device)",
    "torch.tensor([n, 1], device=x.device)",
    "torch.tensor(labels, device=x.device)",
    "torch.tensor([*labels, 1], device=x.device)",
    "torch.tensor(x.shape, device=x.device)",
    "torch.tensor([x.shape[0], x.shape[1]], device=x.device)",
    "torch.tensor(x.shape[0], device='cpu')",
    "torch.tensor([[1], [1, 2]], device=x.device)",
    "torch.tensor([], device=x.device)",
    "torch.FloatTensor(2, 3).to(x.device).fill_(0)",
    "torch.full((), 0.5, device=x.device)",
    "x.mean() if x.numel() else torch.tensor(0.5, device=x.device)",
    "torch.tensor(0.5, pin_memory=True).to(x.device)",
    "torch.tensor(0.5, device=x.device) if x.mean().item() > 1 else x",
    "x if x.sum() > 0 else torch.tensor(0.5, device=x.device)",
    "torch.tensor(0.5, device=x.device) if torch.jit.is_tracing() else x",
)


def made(code: str) -> torch.Tensor:
    names: dict[str, Any] = {}
    exec(compile(code, "<program>", "exec", dont_inherit=True), names)  # noqa: S102 - our own programs
    x = torch.zeros(2, dtype=torch.float16)
    result = names["Net"]()(x, torch.device("cpu"), 0, 3, [1], torch.float16)
    assert isinstance(result, torch.Tensor)
    return result


@pytest.mark.parametrize(("before", "after"), [*SAFE.items(), *UNSAFE.items()])
def test_the_fix_makes_the_same(before: str, after: str) -> None:
    assert fixed(module(before), RULE, Applicability.UNSAFE) == module(after)
    assert fixed(module(before), RULE, Applicability.SAFE) == module(after if before in SAFE else before)
    then, now = made(module(before)), made(module(after))
    assert (then.dtype, then.shape, then.stride(), then.requires_grad, then.is_leaf) == (
        now.dtype,
        now.shape,
        now.stride(),
        now.requires_grad,
        now.is_leaf,
    )
    assert str(then.tolist()) == str(now.tolist())


@pytest.mark.parametrize("number", ["0", "1", "-1", "127", "-127", "0.5", "-0.0", "1e-46", "126.99", "True"])
@pytest.mark.parametrize(
    "dtype", ["int64", "int8", "uint8", "bool", "float16", "bfloat16", "float32", "float64", "complex64"]
)
def test_safe_numbers_are_alike_in_each_dtype(number: str, dtype: str) -> None:
    expression = f"torch.tensor({number}, dtype=torch.{dtype}, device=x.device)"
    code = module(expression)
    then, now = outcome(code), outcome(fixed(code, RULE, Applicability.SAFE))
    assert "torch.full" in fixed(code, RULE, Applicability.SAFE)
    assert then == now


def outcome(code: str) -> str:
    try:
        return str(made(code))
    except (RuntimeError, ValueError, OverflowError) as error:
        return type(error).__name__


def test_brackets_that_touch_a_word_stay() -> None:
    code = module("0").replace("return 0", "return(torch.tensor(0.5, device=x.device))")
    assert fixed(code, RULE, Applicability.SAFE) == code.replace("torch.tensor(0.5,", "torch.full((), 0.5,")


def test_torchscript_makes_no_leaves() -> None:
    top = "\n\ndef compiled(net):\n    return torch.jit.script(net)\n"
    code = module("torch.tensor(1.0, device=x.device, requires_grad=True)", top=top)
    assert fixed(code, RULE, Applicability.SAFE) == code
    after = "torch.full((), True, dtype=torch.bool, device=x.device)"
    assert fixed(module("torch.tensor(True, device=x.device)", top=top), RULE, Applicability.SAFE) == module(
        after, top=top
    )


def test_cuda_names_the_device() -> None:
    code = module("torch.tensor(0.5).cuda()")
    assert fixed(code, RULE, Applicability.SAFE) == module('torch.full((), 0.5, device="cuda")')


@pytest.mark.parametrize("expression", REPORTED_ONLY)
def test_reported_only(expression: str) -> None:
    assert [finding.fix for finding in findings(module(expression), RULE)] == [None]


@pytest.mark.parametrize("expression", SILENT)
def test_silent(expression: str) -> None:
    assert not findings(module(expression), RULE)


@pytest.mark.parametrize(
    ("top", "is_constant"),
    [
        ("WEIGHTS = [0.2, 0.8]", True),
        ("WEIGHTS = (0.2, 0.8)", True),
        ("WEIGHTS = [0.2, 0.8]\nWEIGHTS.append(1.0)", False),
        ("WEIGHTS = [0.2, 0.8]\nWEIGHTS[0] = 1.0", False),
        ("WEIGHTS = [0.2, 0.8] if small else [0.1, 0.9]", False),
        ("WEIGHTS = [0.2, other]", False),
    ],
)
def test_a_list_that_has_a_name(top: str, is_constant: bool) -> None:  # noqa: FBT001
    found = findings(module("torch.Tensor(WEIGHTS).cuda()", top=top), RULE)
    assert len(found) == is_constant


def test_a_default_device_may_be_another() -> None:
    assert not findings(module("torch.tensor(0.5).to(x.device)", top="torch.set_default_device('cuda')"), RULE)


SNIPPETS = {
    "in a loop over batches": """
        import torch
        def train(model, optimizer, loader, device):
            before = torch.tensor([0.1, 0.9], device=device)
            for x in loader:
                weight = torch.tensor([0.1, 0.9], device=device)  # <- constant-tensor-in-hot-path
                bound = torch.tensor(0.5)
                bound = bound.to(device)  # <- constant-tensor-in-hot-path
                loss = (model(x.to(device)) * weight * before * bound).sum()
                loss.backward()
                optimizer.step()
        """,
    "now and then": """
        import torch
        def train(model, optimizer, loader, device):
            for step, x in enumerate(loader):
                loss = model(x.to(device)).sum()
                loss.backward()
                optimizer.step()
                if step % 100 == 0:
                    print(loss * torch.tensor([1.0, 2.0], device=device))
        """,
    "once": """
        import torch
        from torch import nn
        class Net(nn.Module):
            def __init__(self, device):
                super().__init__()
                self.weight = torch.tensor([0.1, 0.9], device=device)
            def forward(self, x):
                if not hasattr(self, "bound"):
                    self.bound = torch.tensor([0.1, 0.9], device=x.device)
                return x * self.weight * self.bound
        """,
    "a branch for the device within one for nothing": """
        import torch
        from torch import nn
        class Net(nn.Module):
            def forward(self, x, boxes):
                if len(boxes) == 0:
                    if torch.cuda.is_available():
                        return torch.tensor(0.0).cuda()
                    return torch.tensor(0.0)
                if x.is_cuda:
                    return x * torch.tensor(0.5).cuda()  # <- constant-tensor-in-hot-path
                return x
        """,
    "kept by an object": """
        import torch
        class Trigger:
            def set(self, device):
                self.flag = torch.tensor(1, device=device)
        def train(model, loader, device, trigger=Trigger()):
            for x in loader:
                model(x.to(device)).sum().backward()
                trigger.set(device)
        """,
    "read at once": """
        import torch
        import torch.distributed as dist
        def train(model, loader, device, world):
            for x in loader:
                model(x.to(device)).sum().backward()
                sizes = [torch.tensor([0], device=device) for _ in range(world)]
                dist.all_gather(sizes, x.size_of_it)
                sizes = [int(size.item()) for size in sizes]
                starts = torch.cat([torch.tensor([0], device=device), x.lengths.cumsum(0)])
                first, last = starts[0].item(), starts[-1].item()
        """,
    "read much later": """
        import torch
        def train(model, loader, device):
            for x in loader:
                total = torch.tensor(0.0, device=device)  # <- constant-tensor-in-hot-path
                total = total + model(x.to(device)).sum()
                total.backward()
                print(total.item())
        """,
    "the state of an optimizer": """
        import torch
        class Sgd(torch.optim.Optimizer):
            def step(self):
                for group in self.param_groups:
                    if "step" in group:
                        group["step"] += 1
                    else:
                        group["step"] = torch.tensor([1], device="cuda")
                    if "rate" not in group:
                        group["rate"] = torch.tensor([1.0], device="cuda")
                    if not self.initialized:
                        self.build(group)
                    one = torch.tensor([1.0], device="cuda")  # <- constant-tensor-in-hot-path
                    group["step"] += one
            def build(self, group):
                group["one"] = torch.tensor(1.0, device="cuda")
        """,
    "a function that remembers": """
        import functools
        import torch
        from torch import nn
        class Net(nn.Module):
            def forward(self, x):
                return x * self.grid(x.device) * self.other(x.device)
            @functools.lru_cache(maxsize=32)
            def grid(self, device):
                return torch.tensor([1.0, 2.0], device=device)
            def other(self, device):
                return torch.tensor([1.0, 2.0], device=device)  # <- constant-tensor-in-hot-path
        """,
    "kept by the module for each device": """
        import torch
        from torch import nn
        kept = {}
        class Net(nn.Module):
            def forward(self, x, found: dict):
                weight = kept.get(x.device)
                if weight is None:
                    weight = torch.tensor([0.1, 0.9], device=x.device)
                    kept[x.device] = weight
                own = {}
                bias = own.get("bias")
                if bias is None:
                    bias = torch.tensor([0.1, 0.9], device=x.device)  # <- constant-tensor-in-hot-path
                    own["bias"] = bias
                return x * weight + bias
        """,
    "the first time": """
        import torch
        from torch import nn
        class Net(nn.Module):
            init = False
            def forward(self, x):
                if not self.init:
                    self.begin(x)
                return x * self.weight
            def begin(self, x):
                weight = torch.tensor([0.1, 0.9], device=x.device)
                self.init, self.weight = True, weight
        """,
    "an entry that an object lacks": """
        import torch
        class Trainer:
            def step(self, model, loader, device):
                for x in loader:
                    loss = model(x.to(device)).sum()
                    loss.backward()
                    self.track(loss)
            def track(self, loss):
                if "steps" not in self.sums["train"]:
                    self.sums["train"]["steps"] = torch.tensor(0, device="cuda")
                self.sums["train"]["steps"] += 1
                if "steps" not in self.sums["train"]:
                    self.last["steps"] = torch.tensor(0, device="cuda")  # <- constant-tensor-in-hot-path
                if "nothing" not in self.sums:
                    loss = loss * torch.tensor(0.5, device="cuda")  # <- constant-tensor-in-hot-path
        """,
    "what is hardly ever so": """
        import torch
        from torch import nn
        class Net(nn.Module):
            def forward(self, x, boxes, first: bool, second: bool):
                pairs = [box for box in boxes if box.area > 0]
                if not pairs:
                    return torch.tensor(0.0, device=x.device)
                if torch.isnan(x).any():
                    if first:
                        x = torch.tensor(0.0, device=x.device)
                elif first:
                    x = x * torch.tensor(0.5, device=x.device)  # <- constant-tensor-in-hot-path
                if len(boxes) > 1:
                    if not second:
                        x = x * torch.tensor(0.5, device=x.device)  # <- constant-tensor-in-hot-path
                return x
        """,
    "right behind a wait": """
        import torch
        from torch import nn
        class Net(nn.Module):
            def forward(self, x: torch.Tensor):
                x = x.exp()
                if torch.isinf(x).any():
                    raise ValueError("too large")
                x = x * torch.tensor(0.5, device=x.device)
                count = x.sum().item()
                x = x * torch.tensor(0.5, device=x.device)
                x = x + count
                x = x + 1
                return x * torch.tensor(0.5, device=x.device)  # <- constant-tensor-in-hot-path
        """,
    "where there is no gradient": """
        import torch
        class Steady(torch.optim.Optimizer):
            def step(self):
                norms = []
                for group in self.param_groups:
                    for p in group["params"]:
                        if p.grad is None:
                            norms.append(torch.tensor([0.0], device="cuda"))
                            continue
                        norms.append(p.grad.norm())
        """,
    "compiled": """
        import torch
        from torch import nn
        @torch.compile
        def half(x):
            return x * torch.tensor(0.5, device=x.device)
        """,
    "the laws": """
        import torch
        from torch import nn
        class Net(nn.Module):
            def forward(self, x):
                return x * torch.tensor(0.5, device=x.device)  # <- constant-tensor-in-hot-path
        """,
}


@pytest.mark.parametrize("code", SNIPPETS.values(), ids=SNIPPETS)
def test_programs(code: str) -> None:
    check_snippet(code, RULE)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("number", ["True", "[False, False]", "0", "1.0"])
def test_scripted_code_gets_the_same_dtype(number: str, tmp_path: Path) -> None:
    code = module(f"torch.tensor({number}, device=x.device)").replace(", device, gpu, n, labels, half: torch.dtype", "")
    after = fixed(code, RULE, Applicability.SAFE)
    assert "torch.full(" in after
    before, now = (scripted(text, tmp_path / f"net{i}.py") for i, text in enumerate((code, after)))
    assert before.dtype is now.dtype
    assert torch.equal(before, now)


def scripted(code: str, path: Path) -> torch.Tensor:
    path.write_text(code)
    names = runpy.run_path(str(path))
    result = torch.jit.script(names["Net"]())(torch.zeros(2))
    assert isinstance(result, torch.Tensor)
    return result


def test_the_layout_stays() -> None:
    before = """torch.tensor(
            [
                [0, 0],
                [0, 0],
            ],
            device=x.device,
            dtype=x.dtype
        ).repeat(n, 1)"""
    after = """torch.full(
            (2, 2), 0,
            device=x.device,
            dtype=x.dtype
        ).repeat(n, 1)"""
    assert fixed(module(before), RULE, Applicability.SAFE) == module(after)


def test_an_argument_on_a_line_of_its_own() -> None:
    before = "torch.tensor(\n            data=[1, 1], dtype=torch.int64\n        ).to(x.device)"
    after = "torch.full((2,), 1, dtype=torch.int64, device=x.device)"
    assert fixed(module(before), RULE, Applicability.SAFE) == module(after)


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
@pytest.mark.parametrize("number", ["True", "1", "-1", "0.5", "[False, False]", "[[1.0]]"])
def test_torchscript_makes_the_same(number: str, tmp_path: Path) -> None:
    code = f"""
import torch

def mask(x):
    for _ in range(2):
        x = x.to(torch.tensor({number}, device=x.device).dtype)
    return x

def train(model, loader, optimizer):
    for x in loader:
        mask(model(x)).sum().backward()
        optimizer.step()
"""
    after = fixed(code, RULE, Applicability.SAFE)
    assert "torch.full" in after
    results = []
    for name, text in (("before", code), ("after", after)):
        file = tmp_path / f"{name}.py"
        file.write_text(text)
        names = runpy.run_path(str(file))
        results.append(torch.jit.script(names["mask"])(torch.zeros(2)).dtype)
    assert results[0] == results[1]


def test_a_function_that_makes_its_optimizer_takes_one_step() -> None:
    code = """
        import torch
        def one_step(net, {}):
            {}
            x = torch.tensor([[-1.0, 2.0]]).to(device="cuda")  {}
            optimizer.zero_grad()
            net(x).sum().backward()
            optimizer.step()
    """
    check_snippet(code.format("rate", "optimizer = torch.optim.SGD(net.parameters(), lr=rate)", f"# <- {RULE}?"), RULE)
    check_snippet(code.format("optimizer", "net.train()", f"# <- {RULE}"), RULE)


def test_how_often_may_be_unknown() -> None:
    code = """
        import functools
        import torch
        def offsets(boxes: torch.Tensor):
            return boxes.cuda() + torch.tensor([0, 1], device="cuda")  # <- constant-tensor-in-hot-path?
        @functools.lru_cache
        def kernel():
            return torch.tensor([0, 1], device="cuda")
        def check(gpu):
            torch.tensor(0, device="cuda")
            return torch.tensor([0], device="cuda").device
        offsets(torch.zeros(2))
        once = torch.tensor([0, 1], device="cuda")
    """
    check_snippet(code.replace("offsets(torch", "library(torch"), RULE)


def test_a_count_that_is_nothing() -> None:
    code = """
        import torch
        from torch import nn
        class Mean(nn.Module):
            def forward(self, x, kept):
                total = torch.where(kept)[0].numel()
                if total == {}:
                    return torch.tensor(0.0, device=x.device)  {}
                return x.sum() / total
    """
    check_snippet(code.format("0", ""), RULE)
    check_snippet(code.format("self.width", f"# <- {RULE}"), RULE)


def test_what_is_left_where_no_known_kind_fits() -> None:
    code = """
        import torch
        from torch import nn
        class Loss(nn.Module):
            def forward(self, x, y):
                if self.kind == Kind.L1:
                    return (x - y).abs().mean()
                elif self.kind == Kind.L2:
                    return (x - y).square().mean()
                elif {} == Kind.HUBER:
                    return nn.functional.huber_loss(x, y)
                return torch.tensor(0.0, device=x.device)  {}
    """
    check_snippet(code.format("self.kind", ""), RULE)
    check_snippet(code.format("self.other", f"# <- {RULE}"), RULE)


def test_the_device_of_what_transforms_the_data() -> None:
    code = """
        import torch
        from torch import nn
        class {}(nn.Module):
            def forward(self, x):
                device, size = {}, x.shape
                return x * torch.tensor(-1.0, device=device).expand(size)  {}
    """
    check_snippet(code.format("RandomSign", "self.device", ""), RULE)
    check_snippet(code.format("RandomSign", "x.device", f"# <- {RULE}"), RULE)
    check_snippet(code.format("Sign", "self.device", f"# <- {RULE}"), RULE)


def test_an_option_that_the_class_leaves_off() -> None:
    code = """
        import torch
        from torch import nn
        class Head(nn.Module):
            packs = {}
            def forward(self, x):
                if self.packs:
                    return self.packed(x)
                return x
            def packed(self, x):
                return x @ torch.tensor([[1.0, 0.5], [0.5, 1.0]], device=x.device)  {}
    """
    mark = f"# <- {RULE}"
    (note,) = check_snippet(code.format("False", f"{mark}?"), RULE).findings
    assert note.doubts == (Doubt.OPTION_DECIDES,)
    check_snippet(code.format("True", mark), RULE)
    check_snippet(code.format("False", mark) + "    def pack(self):\n                self.packs = True\n", RULE)


def test_a_loop_may_go_over_levels() -> None:
    (found,) = check_snippet(
        f"""
        import torch
        from torch import nn
        class Net(nn.Module):
            def forward(self, levels):
                return [level * torch.tensor(0.5, device=level.device) for level in levels]  # <- {RULE}
        """,
        RULE,
    ).findings
    assert "several times a batch" in found.message


def test_a_number_that_all_processes_tell_each_other_is_waited_for_anyway() -> None:
    code = """
    import torch
    import torch.distributed as dist
    def train(model, loader, optimizer, ranks):
        for x in loader:
            model(x.cuda()).sum().backward()
            optimizer.step()
            size = torch.tensor([x.numel()], device="cuda")
            sizes = [torch.zeros_like(size) for _ in range(ranks)]
            dist.all_gather(sizes, size)
            print([int(each.item()) for each in sizes])
    """
    check_snippet(code, RULE)
    given = code.replace("size = torch.tensor", "size = x.new_zeros(1); torch.ones")
    given = given.replace(
        "dist.all_gather(sizes, size)", 'dist.all_gather(sizes, torch.tensor([x.numel()], device="cuda"))'
    )
    check_snippet(given, RULE)
    told = code.replace("dist.all_gather(sizes, size)", "x.cuda().add_(size)")
    told = told.replace('device="cuda")', 'device="cuda")  # <- constant-tensor-in-hot-path')
    check_snippet(told, RULE)


KEPT = """\
import torch
from torch import nn


class Normalize(nn.Module):
    def __init__(self, mean: list[float]):
        super().__init__()
        self.mean = {held}

    def forward(self, x):
        return x - torch.as_tensor(self.mean, dtype=x.dtype, device=x.device){mark}
"""


@pytest.mark.parametrize("held", ["mean", "[0.5, *mean]", "list(range(8))", "tuple(mean)"])
def test_a_list_that_a_module_keeps_is_a_constant(held: str) -> None:
    [found] = check_snippet(KEPT.format(held=held, mark=f"  # <- {RULE}"), RULE).findings
    assert found.help == "make it a buffer of the module"
    assert found.fix is None


@pytest.mark.parametrize("default", ["(0.5, 0.5)", "[0.5, 1.0]"])
def test_a_list_that_is_one_by_the_default_of_a_parameter(default: str) -> None:
    code = KEPT.format(held="mean", mark=f"  # <- {RULE}").replace("mean: list[float]", f"mean={default}")
    legacy = "torch.Tensor(self.mean).to(x.device)"
    check_snippet(code.replace("torch.as_tensor(self.mean, dtype=x.dtype, device=x.device)", legacy), RULE)


@pytest.mark.parametrize(
    "code",
    [
        KEPT.format(held="torch.tensor(mean)", mark=""),
        KEPT.format(held="[torch.ones(3) for _ in mean]", mark=""),
        KEPT.format(held="mean", mark="") + "\n    def follow(self, mean):\n        self.mean = [*mean]\n",
        KEPT.format(held="mean", mark="").replace("as_tensor(self.mean", "as_tensor(x.mean"),
        KEPT.format(held="mean", mark="").replace("nn.Module", "object").replace("forward", "shifted"),
        KEPT.format(held="mean", mark="")
        .replace("forward(self, x)", "forward(self, x, device='cpu')")
        .replace("device=x.device", "device='cpu'"),
    ],
)
def test_what_is_no_list_that_stays_is_no_constant(code: str) -> None:
    check_snippet(code, RULE)
