"""TL201: from a factory to the move; a safe fix gives the same tensor on CPU torch, whatever it is asked."""

from __future__ import annotations

import itertools
import textwrap
import warnings
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import torch
from laws import active, check_snippet, fix, lint

from torchlint import linter
from torchlint.cli import run
from torchlint.finding import Applicability, Doubt
from torchlint.role import Role
from torchlint.source import SourceFile

RULE = "host-factory-then-move"
# In a loop: what is made once and is small is left alone.
HEAD = (
    "import torch\nfrom torch.autograd import Variable\ndevice = torch.device('cuda')\n"
    "for _ in torch.utils.data.DataLoader(data):\n    "
)


def applicability(code: str) -> Applicability | None:
    (finding,) = lint(code, active(RULE)).findings
    return finding.fix.applicability if finding.fix is not None else None


def fixed(expression: str, level: Applicability = Applicability.UNSAFE) -> str:
    text = fix(f"{HEAD}y = {expression}\n", active(RULE), level).text
    return text.removeprefix(f"{HEAD}y = ").removesuffix("\n")


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("torch.zeros(b, h).cuda()", 'torch.zeros(b, h, device="cuda")'),
        ("torch.zeros(b, h).cuda(1)", 'torch.zeros(b, h, device="cuda:1")'),
        ("torch.ones(n, dtype=torch.long).cuda(non_blocking=True)", 'torch.ones(n, dtype=torch.long, device="cuda")'),
        ("torch.zeros(n).to('cuda:0')", "torch.zeros(n, device='cuda:0')"),
        ("torch.zeros(n).to(f'cuda:{rank}')", "torch.zeros(n, device=f'cuda:{rank}')"),
        ("torch.empty(n).to(device=device)", "torch.empty(n, device=device)"),
        ("torch.full((n,), -1.0).to(self.device)", "torch.full((n,), -1.0, device=self.device)"),
        ("torch.eye(3).to(x.device, torch.float64)", "torch.eye(3, device=x.device, dtype=torch.float64)"),
        ("torch.full((n,), 300).to(device, torch.uint8)", "torch.full((n,), 300, device=device).to(torch.uint8)"),
        ("torch.full((n,), -7).to(device, torch.uint8)", "torch.full((n,), -7, device=device, dtype=torch.uint8)"),
        (
            "torch.full(size=(n,), fill_value=70_000).to(device, torch.float16)",
            "torch.full(size=(n,), fill_value=70_000, device=device).to(torch.float16)",
        ),
        ("torch.zeros(n).to(x.device, dtype=x.dtype)", "torch.zeros(n, device=x.device, dtype=x.dtype)"),
        ("torch.arange(t).unsqueeze(0).to(x.device)", "torch.arange(t, device=x.device).unsqueeze(0)"),
        ("torch.arange(0, t, 2).float().to(device)", "torch.arange(0, t, 2, device=device).float()"),
        ("torch.arange(t).to(device, torch.float)", "torch.arange(t, device=device).to(torch.float)"),
        (
            "torch.tril(torch.ones(t, t)).view(1, t, t).to(device)",
            "torch.tril(torch.ones(t, t, device=device)).view(1, t, t)",
        ),
        ("torch.zeros(n)[None, :].cuda()", 'torch.zeros(n, device="cuda")[None, :]'),
        ("Variable(torch.zeros(n)).cuda()", 'Variable(torch.zeros(n, device="cuda"))'),
        ("Variable(torch.zeros(n).cuda())", 'Variable(torch.zeros(n, device="cuda"))'),
        ("torch.FloatTensor(2, 3).cuda()", 'torch.empty(2, 3, dtype=torch.float32, device="cuda")'),
        ("torch.Tensor(2, 3).cuda()", 'torch.empty(2, 3, device="cuda")'),
        ("torch.LongTensor(n, 1).fill_(0).to(device)", "torch.empty(n, 1, dtype=torch.int64, device=device).fill_(0)"),
        ("torch.ByteTensor(size=(n,)).cuda()", 'torch.empty(size=(n,), dtype=torch.uint8, device="cuda")'),
        ("(torch.zeros(n).cuda())", '(torch.zeros(n, device="cuda"))'),
        ("torch.zeros(n,).cuda()", 'torch.zeros(n, device="cuda",)'),
        ("torch.zeros(*shape).cuda()", 'torch.zeros(*shape, device="cuda")'),
        ("torch.zeros(n).fill_(2).long().cuda()", 'torch.zeros(n, device="cuda").fill_(2).long()'),
        ("torch.tril_indices(n, n).cuda()", 'torch.tril_indices(n, n, device="cuda")'),
        ("torch.zeros(3).to(0)", "torch.zeros(3, device=0)"),
        ("torch.zeros(3).to(torch.device('cuda', 1))", "torch.zeros(3, device=torch.device('cuda', 1))"),
    ],
)
def test_the_safe_fix(expression: str, expected: str) -> None:
    check_snippet(f"{HEAD}y = {expression}  # <- {RULE}\n", RULE)
    assert fixed(expression, Applicability.SAFE) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("torch.randn(n, z).to(device)", "torch.randn(n, z, device=device)"),
        ("torch.randint(5, (n,)).cuda()", 'torch.randint(5, (n,), device="cuda")'),
        ("torch.normal(0.0, 1.0, (n,)).cuda()", 'torch.normal(0.0, 1.0, (n,), device="cuda")'),
        ("torch.empty(n).uniform_(0, 1).cuda()", 'torch.empty(n, device="cuda").uniform_(0, 1)'),
        ("torch.rand(n).zero_().cuda()", 'torch.rand(n, device="cuda").zero_()'),
        ("(torch.rand(n) * 2 - 1).to(device)", "(torch.rand(n, device=device) * 2 - 1)"),
        ("torch.linspace(0, 1, n).cuda()", 'torch.linspace(0, 1, n, device="cuda")'),
        ("torch.arange(0, 1, 0.1).cuda()", 'torch.arange(0, 1, 0.1, device="cuda")'),
        ("torch.arange(a, b).cuda()", 'torch.arange(a, b, device="cuda")'),
        ("torch.hann_window(n).to(device)", "torch.hann_window(n, device=device)"),
        ("torch.full((n,), value).cuda()", 'torch.full((n,), value, device="cuda")'),
        ("torch.full((n,), 0.1).half().cuda()", 'torch.full((n,), 0.1, device="cuda").half()'),
        ("torch.zeros(1, 3).expand(n, 3).to(device)", "torch.zeros(1, 3, device=device).expand(n, 3)"),
        ("torch.eye(3).type_as(x)", "torch.eye(3, device=x.device, dtype=x.dtype)"),
        ("torch.arange(n).type_as(x)", "torch.arange(n, device=x.device).type_as(x)"),
        ("torch.rand(n).to(device, torch.float64)", "torch.rand(n, device=device).to(torch.float64)"),
        ("torch.FloatTensor(*shape).cuda()", 'torch.empty(*shape, dtype=torch.float32, device="cuda")'),
        ("torch.FloatTensor(x.size()).cuda()", 'torch.empty(x.size(), dtype=torch.float32, device="cuda")'),
        ("torch.IntTensor([k] * n).to(device)", "torch.full((n,), k, dtype=torch.int32, device=device)"),
        ("torch.tensor(n * [1], dtype=torch.long).cuda()", 'torch.full((n,), 1, dtype=torch.long, device="cuda")'),
        ("(torch.ones(n) == 1).cuda()", '(torch.ones(n, device="cuda") == 1)'),
    ],
)
def test_the_unsafe_fix(expression: str, expected: str) -> None:
    check_snippet(f"{HEAD}y = {expression}  # <- {RULE}\n", RULE)
    assert fixed(expression, Applicability.SAFE) == expression
    assert fixed(expression) == expected


@pytest.mark.parametrize(
    "expression",
    [
        "torch.zeros(n).cuda(args.gpu)",  # `.cuda(None)` is the GPU, `device=None` the CPU
        "torch.zeros(n).cuda(device=rank)",
        "torch.zeros(n).to(device, memory_format=torch.channels_last)",
        "torch.zeros(n).view(next(sizes)).to(next(devices).device)",  # asked for in another order
        "torch.zeros(n).type_as(f(x))",
        "torch.zeros(n).to(  # why\n    device)",
    ],
)
def test_no_fix(expression: str) -> None:
    code = f"{HEAD}y = {expression}\n"
    assert applicability(code) is None
    assert fixed(expression) == expression


@pytest.mark.parametrize(
    "expression",
    [
        "torch.zeros(n, device=device).to(device)",
        "torch.zeros(n).to(torch.float16)",
        "torch.zeros(n).to(cfg)",
        "torch.zeros(n).to('cpu')",
        "torch.zeros(n).to(torch.device('cpu'))",
        "torch.zeros(n).cpu()",
        "torch.rand(n, generator=g).cuda()",
        "torch.zeros(n, pin_memory=True).cuda()",
        "torch.zeros(n, out=out).cuda()",
        "torch.zeros(n, requires_grad=True).cuda()",
        "torch.zeros(n, **options).cuda()",
        "Variable(torch.zeros(n), requires_grad=True).cuda()",
        "torch.zeros(n).requires_grad_().cuda()",
        "torch.nn.Parameter(torch.zeros(n)).cuda()",
        "torch.tensor(labels).cuda()",
        "torch.tensor([1.0, 2.0]).cuda()",
        "torch.from_numpy(a).cuda()",
        "torch.FloatTensor(labels).cuda()",
        "torch.Tensor(space.shape).cuda()",  # a tuple of numbers, which is data
        "torch.normal(mean, std).cuda()",
        "torch.zeros_like(x).cuda()",
        "torch.nn.Linear(3, 4).cuda()",
        "torch.zeros(n).numpy()",
        "torch.ones(n).add(host).cuda()",
        "torch.multinomial(torch.ones(n), 2).cuda()",
        "torch.zeros(n)[:2].numpy()",
        "zeros(n).cuda()",
    ],
)
def test_look_alikes(expression: str) -> None:
    check_snippet(f"{HEAD}y = {expression}\n", RULE)


def test_a_generator_that_need_not_be_given_is_an_option() -> None:
    code = """
    import torch
    def step(sample, generator=None):
        device = sample.device
        noise = torch.randn(sample.shape, generator=generator).to(device)  # <- host-factory-then-move?
        return sample + noise
    """
    check_snippet(code, RULE)
    assert fixed(code) == code
    for given in ("generator", "generator=GENERATOR"):
        check_snippet(code.replace("generator=None", given).replace(f"  # <- {RULE}?", ""), RULE)


def test_a_default_device_silences() -> None:
    check_snippet("import torch\nwith torch.device('cuda'):\n    y = torch.zeros(n).cuda()\n", RULE)
    check_snippet("import torch\ntorch.set_default_device('cuda')\ny = torch.zeros(n).cuda()\n", RULE)


def test_several_rows_keep_their_indentation() -> None:
    check_snippet(
        f"""
        import torch

        def fill(model, x, rows):
            if rows:
                mask = (
                    torch.ones(  # <- {RULE}?
                        rows,  # one each
                        x.size(1),
                    )
                    .bool()
                    .to(x.device)
                )
                return model(mask)
        """,
        RULE,
        fixed="""
        import torch

        def fill(model, x, rows):
            if rows:
                mask = (
                    torch.ones(
                        rows,  # one each
                        x.size(1),
                        device=x.device,
                    )
                    .bool()
                )
                return model(mask)
        """,
    )


def test_a_device_that_may_be_none_is_explained() -> None:
    (finding,) = lint(f"{HEAD}y = torch.zeros(n).cuda(gpu)\n", active(RULE)).findings
    assert "`device=None` is the CPU" in finding.help


# The two-statement form


def test_two_statements_become_one() -> None:
    check_snippet(
        f"""
        import torch

        def start(batch, size, device):
            hidden = torch.zeros(batch, size)
            cell = torch.zeros(batch, size)
            hidden = hidden.to(device)  # <- {RULE}?
            cell = cell.to(device)  # <- {RULE}?
            return hidden, cell
        """,
        RULE,
        fixed="""
        import torch

        def start(batch, size, device):
            hidden = torch.zeros(batch, size, device=device)
            cell = torch.zeros(batch, size, device=device)
            return hidden, cell
        """,
    )


def test_the_second_statement_keeps_what_else_it_does() -> None:
    check_snippet(
        f"""
        import torch

        def mix(x, model):
            alpha = torch.ones(x.size(0), 1)
            alpha = alpha.repeat(1, 2).to(x.device)  # <- {RULE}?
            noise = torch.zeros(3)
            return model(noise.cuda(), alpha)  # <- {RULE}?
        """,
        RULE,
        fixed="""
        import torch

        def mix(x, model):
            alpha = torch.ones(x.size(0), 1, device=x.device)
            alpha = alpha.repeat(1, 2)
            noise = torch.zeros(3, device="cuda")
            return model(noise, alpha)
        """,
    )


@pytest.mark.parametrize(
    "code",
    [
        f"""
        zeros = torch.zeros(n)
        if x.is_cuda:
            zeros = zeros.cuda()  # <- {RULE}?
        """,
        f"""
        zeros = torch.zeros(n)
        x = prepare(x)
        zeros = zeros.to(x.device)  # <- {RULE}?
        """,
        f"""
        zeros = torch.zeros(n)
        x = y.cuda()
        zeros = zeros.to(x.device)  # <- {RULE}?
        """,
    ],
)
def test_two_statements_without_a_fix(code: str) -> None:
    text = f"import torch\ndef f(n, x, y):\n{textwrap.indent(textwrap.dedent(code), '    ')}    return zeros\n"
    check_snippet(text, RULE, fixed=text.replace(f"  # <- {RULE}?", ""))


@pytest.mark.parametrize(
    "code",
    [
        "t = torch.zeros(n)\nlog(t.numpy())\nt = t.cuda()",
        "t = torch.zeros(n)\nt[0] = 1\nt = t.cuda()",
        "t = torch.zeros(n)\nt += h\nt = t.cuda()",
        "t = torch.zeros(n)\nu = t.cuda()\nlog(t)",
        "t = torch.zeros(n)\nfor _ in range(3):\n    u = t.cuda()",
        "t = torch.zeros(n)\ng = lambda: t.cuda()",
        "t = torch.zeros(n) if n else h\nt = t.cuda()",
        "if n:\n    t = torch.zeros(n)\nelse:\n    t = h\nt = t.cuda()",
        "t, u = torch.zeros(n), h\nt = t.cuda()",
        "t = torch.zeros(n)\ndef g():\n    global t\n    t = h\ng()\nt = t.cuda()",
    ],
)
def test_not_moved_by_the_next_use(code: str) -> None:
    check_snippet(f"import torch\n{code}\n", RULE)


# Computed on the way, with numbers of the host


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (
            "torch.exp(-math.log(10000) * torch.arange(0, half, dtype=torch.float32) / half).to(device=x.device)",
            "torch.exp(-math.log(10000) * torch.arange(0, half, dtype=torch.float32, device=x.device) / half)",
        ),
        (
            "(1.0 / (10000 ** (torch.arange(0, self.dim, 2).float() / self.dim))).to(x.device)",
            "(1.0 / (10000 ** (torch.arange(0, self.dim, 2, device=x.device).float() / self.dim)))",
        ),
        ("torch.pow(2, torch.arange(n)).to(x.device)", "torch.pow(2, torch.arange(n, device=x.device))"),
        (
            "torch.arange(n).mul(math.pi / n).sin().to(x.device, torch.float16)",
            "torch.arange(n, device=x.device).mul(math.pi / n).sin().to(torch.float16)",
        ),
    ],
)
def test_elementwise_steps_with_numbers(expression: str, expected: str) -> None:
    code = f"import math\nimport torch\ndef f(self, x, half, n):\n    return {expression}"
    check_snippet(f"{code}  # <- {RULE}?\n", RULE, fixed=code.replace(expression, expected) + "\n")
    assert fix(f"{code}\n", active(RULE), Applicability.SAFE).text == f"{code}\n"


def test_elementwise_steps_in_two_statements() -> None:
    check_snippet(
        f"""
        import math
        import torch

        def embed(timesteps, dim):
            half = dim // 2
            scale = math.log(10000) / (half - 1)
            scale = torch.exp(torch.arange(half, dtype=torch.float32) * -scale)
            scale = scale.to(device=timesteps.device)  # <- {RULE}?
            return timesteps[:, None] * scale[None, :]
        """,
        RULE,
        fixed="""
        import math
        import torch

        def embed(timesteps, dim):
            half = dim // 2
            scale = math.log(10000) / (half - 1)
            scale = torch.exp(torch.arange(half, dtype=torch.float32, device=timesteps.device) * -scale)
            return timesteps[:, None] * scale[None, :]
        """,
    )


@pytest.mark.parametrize(
    "expression",
    [
        "torch.exp(torch.arange(n) * scale)",  # `scale` may be a tensor of the host
        "torch.pow(base, torch.arange(n))",
        "torch.exp(torch.arange(n), out=kept)",
        "torch.add(torch.arange(n), *others)",
        "(torch.arange(n) * n.weight)",
        "torch.cumsum(torch.arange(n), 0)",
    ],
)
def test_steps_with_what_may_live_on_the_host(expression: str) -> None:
    check_snippet(
        f"import torch\ndef f(x, n, scale, base, kept, others):\n    return {expression}.to(x.device)\n", RULE
    )


def test_an_index_beside_a_range_is_no_dtype() -> None:
    code = f"""
        import torch
        def f(memory, scores, n, k):
            {{}}
            picked = scores[range(n), actions]
            return picked, torch.linspace(0, n - 1, n).unsqueeze(1).expand(n, k).to(actions)  # <- {RULE}?
        """
    found = check_snippet(code.format("states, actions = memory.sample(n)"), RULE).findings
    assert [finding.fix for finding in found] == [None]  # nor is it a tensor for certain
    check_snippet("import torch\ndef f(memory, n):\n    kind = memory.kind\n    return torch.zeros(n).to(kind)\n", RULE)


# What costs nothing


@pytest.mark.parametrize(
    "expression",
    ["torch.empty(0)", "torch.zeros(0, n)", "torch.FloatTensor(3, 0)", "torch.full((n, 0), 1.0)", "torch.arange(0)"],
)
def test_no_elements_are_copied(expression: str) -> None:
    check_snippet(f"{HEAD}y = {expression}.to(device)\n", RULE)
    check_snippet(f"{HEAD}y = {expression.replace('0', '3')}.to(device)  # <- {RULE}\n", RULE)


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        ("torch.randn(8, 3, 32)", False),
        ("torch.randint(0, 10, (8,))", False),
        ("torch.arange(1, 100)", False),
        ("torch.linspace(0, 1, 100)", False),
        ("torch.eye(50)", False),
        ("torch.randn(8, 3, 512, 512)", True),
        ("torch.randn(n, 3)", True),
        ("torch.eye(500)", True),
        ("torch.zeros(3).repeat(n)", True),
        ("torch.zeros(1, 3).expand(n, 3)", True),
    ],
)
def test_small_and_once(expression: str, found: bool) -> None:  # noqa: FBT001
    for head in ("", "if __name__ == '__main__':\n    "):
        (note,) = check_snippet(f"import torch\n{head}y = {expression}.cuda()  # <- {RULE}?\n", RULE).findings
        assert (Doubt.SMALL in note.doubts, Doubt.RUNS_ONCE in note.doubts) == (not found, True)
    check_snippet(f"import torch\nfor _ in steps:\n    y = {expression}.cuda()  # <- {RULE}?\n", RULE)
    check_snippet(f"import torch\ndef f(n):\n    return {expression}.cuda()  # <- {RULE}?\n", RULE)


def test_a_move_in_a_branch_of_its_own_is_reported_however_small() -> None:
    check_snippet(
        f"import torch\nx = torch.Tensor(1, 3, 32, 32)\nif args.gpu:\n    x = x.cuda()  # <- {RULE}?\nwrite(net, x)\n",
        RULE,
    )


def test_hardly_anything_and_once_is_no_matter_in_a_branch_either() -> None:
    check_snippet(
        f"import torch\nx = torch.FloatTensor(1)\nif args.gpu:\n    x = x.cuda(){MARK}?\nwrite(net, x)\n", RULE
    )


@pytest.mark.parametrize(
    ("name", "doubt"),
    [
        ("_init_weights", Doubt.RARE),
        ("make_dummy_batch", Doubt.NAMED_RARE),
        ("reset_parameters", Doubt.RARE),
        ("start", Doubt.UNCALLED),
    ],
)
def test_first_weights(name: str, doubt: Doubt) -> None:
    code = f"import torch\ndef {name}(n, layer):\n    return torch.ones(n, n).to(layer.weight.device)"
    (found,) = check_snippet(f"{code}  # <- {RULE}?\n", RULE).findings
    assert found.doubts[0] is doubt


def test_a_dictionary_of_the_module_keeps_it() -> None:
    code = (
        "import torch\nwindows = {}\ndef spectrum(y, size, known):\n    if size not in %s:\n"
        "        windows[size] = torch.hann_window(size).to(y.device)%s\n    return y * windows[size]\n"
    )
    check_snippet(code % ("windows", f"  # <- {RULE}?"), RULE)
    check_snippet(code % ("known", f"  # <- {RULE}?"), RULE)


def test_a_check_of_gradients() -> None:
    code = "import torch\ndef check(n):\n    x = torch.rand(n, n).cuda(){}\n    print({}(net, x))\n"
    for called, is_rare in (("torch.autograd.gradcheck", True), ("net", False)):
        (found,) = check_snippet(code.format(f"  # <- {RULE}?", called), RULE).findings
        assert (Doubt.RARE in found.doubts) is is_rare


def test_a_file_that_exports_a_model() -> None:
    source = SourceFile("net.py", "import torch\ndef run(net, n):\n    x = torch.zeros(n, 3).cuda()\n    net(x)\n")
    for role in (Role.CODE, Role.EXPORTING):
        (found,) = linter.lint(source, active(RULE, role=role)).findings
        assert (Doubt.RARE in found.doubts) is (role is Role.EXPORTING)


def test_a_function_that_another_file_calls_runs_more_than_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "torchlint.toml").touch()
    (tmp_path / "helper.py").write_text(
        "import torch\ndef start(x):\n    return torch.zeros(1, 3).cuda() + x\nprint(start(3))\n"
    )
    assert run(["check", "--output-format", "concise", "--select", RULE]) == 0
    (tmp_path / "train.py").write_text("import torch\nfrom helper import start\nfor x in loader:\n    step(start(x))\n")
    capsys.readouterr()
    assert run(["check", "--output-format", "concise", "--select", RULE]) == 1
    assert "helper.py:3:" in capsys.readouterr().out


TRIAL = """
import torch
class Net(torch.nn.Module):
    def forward(self, x):
        return x
{}
if __name__ == "__main__":
    net = Net()
    x = torch.randn(16, 3, 512, 512).cuda(){}
    net(x).sum().backward()
"""


def test_what_tries_out_the_modules_of_a_file() -> None:
    cycle = "def cycle(loader):\n    while True:\n        for x in loader:\n            yield x\n"
    for harmless in ("", cycle):
        (found,) = check_snippet(TRIAL.format(harmless, f"  # <- {RULE}?"), RULE).findings
        assert Doubt.RARE in found.doubts
    for training in (
        "def train(net, loader):\n    for x in loader:\n        net(x).sum().backward()\n",
        "def evaluate(net, loader):\n    for x in loader:\n        print(net(x))\n",
        "def train(net):\n    for epoch in range(3):\n        turn(net)\n",
        "def train(net):\n    optimizer = torch.optim.SGD(net.parameters())\n",
    ):
        (found,) = check_snippet(TRIAL.format(training, f"  # <- {RULE}?"), RULE).findings
        assert Doubt.RARE not in found.doubts
    (found,) = check_snippet(TRIAL.format("", f"  # <- {RULE}?").replace("(torch.nn.Module)", ""), RULE).findings
    assert Doubt.RARE not in found.doubts


def test_what_tries_out_a_module_in_a_function_for_that() -> None:
    claim = "        assert self(x).abs().max() < 9\n"
    for checked, calls, is_trial in (
        (claim, "    net.check()\n", True),
        ("        print(self(x))\n", "    net.check()\n", False),
        (claim, "", False),
        (claim, "    net.check()\ndef use(net: Net):\n    net.check()\n", False),
    ):
        (found,) = check_snippet(
            "import torch\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x\n"
            f"    def check(self):\n        x = torch.randn(16, 3, 512, 512).cuda()  # <- {RULE}?\n{checked}"
            f"if __name__ == '__main__':\n    net = Net()\n{calls}",
            RULE,
        ).findings
        assert (Doubt.RARE in found.doubts) is is_trial


@pytest.mark.parametrize(
    ("test", "kept", "found"),
    [
        ("not hasattr(self, 'mean')", "self.mean = {}", False),
        ("self.mean is None", "self.mean = {}", False),
        ("getattr(self, 'mean', None) is None", "self.register_buffer('mean', {})", False),
        ("self.std is None", "self.mean = {}", True),
        ("self.mean is not None", "self.mean = {}", True),
        ("mean is None", "mean = {}", True),
    ],
)
def test_made_once_and_kept(test: str, kept: str, found: bool) -> None:  # noqa: FBT001
    code = "import torch\nclass Net:\n    def forward(self, x, n, mean):\n        if {}:\n            {}{}\n"
    small, large = "torch.randn(3, x.shape[1], 1, 1).to(x.device)", "torch.randn(n, n).to(x.device)"
    beside = f"self.other = 1\n            {kept.format(large)}" if "self." in kept else kept.format(large)
    for condition, body, is_often in (
        (test, kept.format(small), found),
        (test, kept.format(large), found),
        ("not hasattr(self, 'other')", beside, "self." not in kept),
    ):
        (note,) = check_snippet(code.format(condition, body, f"  # <- {RULE}?"), RULE).findings
        assert (Doubt.RUNS_ONCE not in note.doubts) is is_often


@pytest.mark.parametrize(
    ("name", "used", "is_rare"),
    [
        ("start", "summary(net, x)", True),
        ("start", "FlopCountAnalysis(net, (x,)).total()", True),
        ("start", "print(summary(net, x), net(x))", False),
        ("summarised", "net(x)", False),
        ("start", "summation(net, x)", False),
    ],
)
def test_an_input_by_which_operations_are_counted(name: str, used: str, is_rare: bool) -> None:  # noqa: FBT001
    code = f"import torch\ndef {name}(net, sizes):\n    x = torch.rand(1, *sizes).cuda()  # <- {RULE}?\n    return {used}\n"
    (found,) = check_snippet(code, RULE).findings
    assert (Doubt.RARE in found.doubts) is is_rare


SET_UP = """
import torch
class Net({}):
    def __init__(self, n):
        super().__init__()
        self.table = torch.randn(n, n).cuda(){}
        self.start(n)

    def start(self, n):
        self.alphas = torch.randn(n, n).cuda(){}

    def forward(self, x):
        return x @ self.table + self.alphas
{}
"""
MARK = f"  # <- {RULE}"


@pytest.mark.parametrize(
    ("base", "rest", "first", "second"),
    [
        ("torch.nn.Module", "net = Net(3)", f"{MARK}?", f"{MARK}?"),
        ("torch.nn.Module", "net = Net(3)\nfor x in steps:\n    net.start(3)", f"{MARK}?", f"{MARK}?"),
        (
            "torch.nn.Module",
            "class Outer(torch.nn.Module):\n    def forward(self, x):\n        return Net(3)(x)",
            MARK,
            MARK,
        ),
        ("object", "net = Net(3)", f"{MARK}?", f"{MARK}?"),
    ],
)
def test_what_a_module_is_set_up_with(base: str, rest: str, first: str, second: str) -> None:
    check_snippet(SET_UP.format(base, first, second, rest), RULE)


def test_what_a_class_that_learns_is_set_up_with() -> None:
    code = (
        "import torch\nclass Agent:\n    def __init__(self, net, n):\n"
        "        self.memory = torch.zeros(n, n).cuda(){}\n        self.optimizer = {}\n"
    )
    for kept, is_once in (("torch.optim.Adam(net.parameters())", 1), ("torch.nn.Parameter(net.start)", 1), ("None", 0)):
        (found,) = check_snippet(code.format(f"{MARK}?", kept), RULE).findings
        assert (Doubt.RUNS_ONCE in found.doubts) == is_once


@pytest.mark.parametrize(
    ("test", "inner", "found"),
    [
        ("self.size != x.shape", "True", False),
        ("mask is not None or self.size != x.shape", "mask is None", False),
        ("self.size is None or self.size != x.shape", "True", False),
        ("mask is not None or self.size != x.shape", "True", True),
        ("self.other != x.shape", "True", True),
        ("self.size == x.shape", "True", True),
        ("self.size != x.shape and mask is None", "True", True),
    ],
)
def test_made_anew_for_another_size(test: str, inner: str, found: bool) -> None:  # noqa: FBT001
    code = (
        "import torch\nclass Net:\n    def forward(self, x, mask):\n        if {}:\n            self.size = x.shape\n"
        "            if {}:\n                mask = torch.ones(x.shape).to(x.device){}\n            self.mask = fit(mask)\n"
    )
    check_snippet(code.format(test, inner, f"{MARK}?" if found else ""), RULE)


def test_a_stand_in_for_an_operator_of_an_exported_graph() -> None:
    code = (
        "import random\nimport torch\nclass Pick(torch.autograd.Function):\n    @staticmethod\n"
        "    def forward(ctx, boxes):\n        n = {}\n        return torch.zeros(n).to(boxes.device){}\n"
        "    @staticmethod\n    def {}(g, boxes):\n        return g.op('Pick', boxes)\n"
    )
    for count, name, is_rare in (
        ("random.randint(0, 9)", "symbolic", True),
        ("len(boxes)", "symbolic", False),
        ("random.randint(0, 9)", "other", False),
    ):
        (found,) = check_snippet(code.format(count, f"{MARK}?", name), RULE).findings
        assert (Doubt.RARE in found.doubts) is is_rare


def test_a_device_that_a_trace_is_asked_for() -> None:
    code = "import torch\ndef load(device):\n    return {}lambda: torch.ones([]).to(torch.device(device)){}{}?\n"
    for before, behind, is_rare in (("torch.jit.trace(", ", example_inputs=[])", True), ("", "", False)):
        (found,) = check_snippet(code.format(before, behind, MARK), RULE).findings
        assert (Doubt.RARE in found.doubts) is is_rare


def test_a_loss_that_is_tried_out_by_fitting_a_tensor() -> None:
    code = (
        "import torch\nclass Loss(torch.nn.Module):\n    def forward(self, x):\n        return x.sum()\n"
        "if __name__ == '__main__':\n    x = torch.rand(sizes)\n    if torch.cuda.is_available():\n"
        "        x = x.cuda(){}\n    optimizer = torch.optim.Adam({})\n    while Loss()(x) > 0.1:\n"
        "        optimizer.zero_grad()\n        Loss()(x).backward()\n        optimizer.step()\n"
    )
    for learned, is_rare in (("[x]", True), ("net.parameters()", False)):
        (found,) = check_snippet(code.format(f"{MARK}?", learned), RULE).findings
        assert (Doubt.RARE in found.doubts) is is_rare


@pytest.mark.parametrize(
    ("expression", "way"),
    [
        ("torch.tensor(n * [1000])", "use `torch.full` with `device=device`"),
        ("torch.FloatTensor([1.0] * n)", "use `torch.full` with `device=device`"),
        ("torch.FloatTensor(n, 3)", "use `torch.empty` with `device=device`"),
        ("torch.zeros(n)", "create it there with `device=device`"),
    ],
)
def test_the_message_names_what_takes_a_device(expression: str, way: str) -> None:
    (finding,) = lint(f"{HEAD}y = {expression}.to(device)\n", active(RULE)).findings
    assert finding.help == way


@pytest.mark.parametrize(
    "lines",
    [
        "y = torch.zeros(n); self.device = other\ny = y.to(self.device)",
        "y = torch.zeros(n)\nself.device = other; y = y.to(self.device) + 1",
        "y = torch.zeros(n)\ntorch.cuda.set_device(1)\ny = y.cuda()",
        "y = torch.zeros(n); torch.cuda.set_device(1)\ny = y.cuda()",
    ],
)
def test_a_device_that_may_change_on_the_way(lines: str) -> None:
    code = HEAD + lines.replace("\n", "\n    ") + "\n"
    assert lint(code, active(RULE)).findings
    assert fix(code, active(RULE), Applicability.UNSAFE).text == code


# What the fixes do, on CPU torch. `meta` stands in for the device: there moves and factories have to agree on shapes,
# strides and dtypes; on the CPU on values, and on what they leave of the random numbers.

DIMENSIONS = ["3", "2, 3", "1, 4", "0, 3", "2, 1, 5"]
MADE = [
    *(f"torch.{name}({sizes})" for name in ("zeros", "ones", "empty") for sizes in DIMENSIONS),
    "torch.ones(2, 3, dtype=torch.bool)",
    "torch.full((2, 3), 7)",
    "torch.full((2, 3), 300)",
    "torch.full((2, 3), -1)",
    "torch.full((2, 3), -0.1)",
    "torch.full((2, 3), True)",
    "torch.full((2, 3), 1 << 40)",
    "torch.full((2, 3), float('inf'))",
    "torch.eye(4)",
    "torch.eye(2, 3, dtype=torch.float64)",
    "torch.arange(5)",
    "torch.arange(4.5)",
    "torch.arange(1, 9, 2)",
    "torch.arange(0, 100_000, 7, dtype=torch.float32)",
    "torch.arange(3, -3, -1, dtype=torch.float16)",
    "torch.tril_indices(3, 4)",
    "torch.triu_indices(3, 4, offset=1)",
    "torch.FloatTensor(2, 3)",
    "torch.DoubleTensor(2, 3)",
    "torch.HalfTensor(2, 3)",
    "torch.LongTensor(4)",
    "torch.IntTensor(4, 1)",
    "torch.BoolTensor(2, 2)",
    "torch.Tensor(2, 3)",
]
STEPS = [
    "",
    ".unsqueeze(0)",
    ".unsqueeze(-1).squeeze(0)",
    ".t()",
    ".transpose(0, -1)",
    ".flatten()",
    "[None, ..., None]",
    ".repeat(2, 1, 1)",
    ".fill_(1)",
    ".fill_(1.0)",
    ".zero_().long()",
    ".fill_(3).half()",
    ".bool()",
    ".double()",
    ".to(torch.int8)",
    ".clone().contiguous()",
]
MOVES = [
    ".to(device)",
    ".to(device=device, non_blocking=True)",
    ".to(device, copy=True)",
    ".to(device, torch.float64)",
    ".to(device, dtype=torch.int32)",
    ".to(device, torch.uint8)",
    ".to(torch.device(device))",
    ".to(like.device)",
]


def evaluated(code: str, names: dict[str, Any]) -> torch.Tensor | str:
    """What the code gives, or the name of what it raises; it leaves the CPU's generator alone."""
    state = torch.get_rng_state()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return eval(code, names)  # noqa: S307 - the test's own code
    except (RuntimeError, TypeError, IndexError, ValueError) as error:
        return type(error).__name__
    finally:
        assert torch.equal(torch.get_rng_state(), state)


def same(one: torch.Tensor, other: torch.Tensor, *, values: bool) -> bool:
    facts = [
        (type(t), t.dtype, t.shape, t.stride(), t.layout, t.device, t.requires_grad, t.is_leaf, t.storage_offset())
        for t in (one, other)
    ]
    return facts[0] == facts[1] and (not values or torch.equal(one, other))


@pytest.mark.slow
@pytest.mark.parametrize("step", STEPS)
def test_safe_fixes_change_nothing(step: str) -> None:
    """Many in one file: each is fixed as it would be alone."""
    moves = itertools.cycle(MOVES)
    cases = [f"{made}{step}{move}" for made in MADE for move in itertools.islice(moves, 2)]
    head = "import torch\nfor _ in steps:\n"
    text = fix(head + "".join(f"    y = {case}\n" for case in cases), active(RULE), Applicability.SAFE).text
    results = [line.removeprefix("    y = ") for line in text.removeprefix(head).splitlines()]
    changed = [(case, result) for case, result in zip(cases, results, strict=True) if case != result]
    assert len(changed) > len(cases) // 2
    for (case, result), device, default in itertools.product(changed, ("cpu", "meta"), (torch.float32, torch.float64)):
        names = {"torch": torch, "device": device, "like": torch.zeros((), device=device)}
        torch.set_default_dtype(default)
        try:
            before, after = evaluated(case, names), evaluated(result, names)
        finally:
            torch.set_default_dtype(torch.float32)
        if isinstance(before, str) or isinstance(after, str):
            assert before == after, (case, result, device)
            continue
        unset = ("empty" in case or "Tensor(" in case) and "_(" not in case
        assert same(before, after, values=device == "cpu" and not unset), (case, result, device)


def names_of(name: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": name}
    code = (files("torchlint.fixtures") / "host_factory_then_move" / name).read_text("utf-8")
    exec(compile(code, name, "exec"), names)  # noqa: S102 - our own fixture
    return names


def test_slow_and_fast_compute_the_same_bits() -> None:
    outcomes = []
    for name in ("slow.py", "fast.py"):
        names = names_of(name)
        torch.manual_seed(1)
        model = names["Tagger"](8, 3)
        scores = model(torch.arange(12).view(3, 4))
        outcomes.append((scores, torch.rand(4), model.state_dict()))
    slow, fast = outcomes
    assert all(torch.equal(one, other) for one, other in zip(slow[:2], fast[:2], strict=True))
    assert list(slow[2]) == list(fast[2])
    assert all(torch.equal(slow[2][key], fast[2][key]) for key in slow[2])


def test_none_leaves_a_tensor_where_it_is_by_to_and_by_device() -> None:
    assert torch.zeros(3).to(None).device == torch.zeros(3, device=None).device == torch.device("cpu")


def test_what_makes_fixes_unsafe() -> None:
    shared = torch.zeros(1, 3, device="meta").expand(4, 3)
    assert shared.stride() != torch.zeros(1, 3).expand(4, 3).to("meta").stride()

    class Marked(torch.Tensor):  # type: ignore[misc]
        pass

    x = torch.zeros(2).as_subclass(Marked)
    assert type(torch.eye(3).type_as(x)) is Marked
    assert type(torch.eye(3, device=x.device, dtype=x.dtype)) is torch.Tensor

    assert not torch.equal(torch.arange(0, 1, 0.1).to(torch.float64), torch.arange(0, 1, 0.1, dtype=torch.float64))

    state = torch.get_rng_state()
    torch.rand(3, device="meta")
    assert torch.equal(torch.get_rng_state(), state)  # the CPU's generator is not advanced from elsewhere
    torch.rand(3).to("meta")
    assert not torch.equal(torch.get_rng_state(), state)

    assert torch.tensor([1] * -1).shape == torch.tensor([1] * 0).shape == (0,)
    assert torch.tensor([1] * 0).dtype is not torch.full((0,), 1).dtype
    with pytest.raises(RuntimeError):
        torch.full((-1,), 1)


@pytest.mark.parametrize(
    ("types", "line"),
    [
        ("Tensor = torch.cuda.FloatTensor if cuda else torch.Tensor", "style = torch.randn(n, 8).type(Tensor)"),
        ("Tensor = torch.cuda.FloatTensor", "style = Variable(torch.randn(n, 8).type(Tensor))"),
        (
            "if cuda:\n    dtype = torch.cuda.HalfTensor\nelse:\n    dtype = torch.FloatTensor",
            "torch.rand(n).type(dtype)",
        ),
        ("", "noise = torch.randn(n, 8).type(torch.cuda.FloatTensor)"),
        ("", "noise = torch.randn(n, 8).type('torch.cuda.FloatTensor')"),
    ],
)
def test_a_type_on_the_gpu_moves_too(types: str, line: str) -> None:
    head = HEAD.replace("device = torch.device('cuda')", types)
    check_snippet(f"{head}{line}  # <- {RULE}\n", RULE)
    assert applicability(f"{head}{line}\n") is None


@pytest.mark.parametrize(
    ("types", "line"),
    [
        ("Tensor = torch.FloatTensor", "style = torch.randn(n, 8).type(Tensor)"),
        ("Tensor = types[0]", "style = torch.randn(n, 8).type(Tensor)"),
        ("Tensor = torch.cuda.FloatTensor\nTensor = choose()", "style = torch.randn(n, 8).type(Tensor)"),
        (
            "Tensor = None\nfor x in steps:\n    Tensor = Tensor if x else Tensor",
            "style = torch.randn(n, 8).type(Tensor)",
        ),
        ("", "mask = torch.zeros(n, n).type(torch.bool)"),
        ("", "mask = torch.zeros(n, n).type(x.dtype)"),
        ("", "mask = torch.zeros(n, n).type(x.type())"),
        ("", "name = torch.zeros(n, n).type()"),
    ],
)
def test_other_types_do_not(types: str, line: str) -> None:
    head = HEAD.replace("device = torch.device('cuda')", types)
    check_snippet(f"{head}{line}\n", RULE)


def test_no_fix_where_it_may_be_a_tensor() -> None:
    """Where two things go is likely a device; `device=` takes no tensor."""
    code = "import torch\ndef f(a, b, {0}):\n    a, b = a.to({0}), b.to({0})\n    c = torch.zeros(3).to({0})\n    return a + b + c\n"
    assert applicability(code.format("device")) is not None
    assert applicability(code.format("like_this")) is None


SEVERAL_STATEMENTS = {
    "shaped in a statement of its own": """
        import torch
        def penalty(real: torch.Tensor):
            alpha = torch.rand(real.size(0), 1)
            alpha = alpha.expand_as(real)
            alpha = alpha.cuda()  # <- host-factory-then-move?
            return alpha * real
        """,
    "under names of their own": """
        import torch
        def penalty(real: torch.Tensor):
            drawn = torch.rand(real.size(0), 1)
            wide = drawn.view(-1, 1, 1)
            return wide.cuda() * real  # <- host-factory-then-move?
        """,
    "used on the CPU in between": """
        import torch
        def penalty(real: torch.Tensor):
            drawn = torch.rand(real.size(0), 1)
            wide = drawn.view(-1, 1, 1)
            print(drawn)
            return wide.cuda() * real
        """,
    "like a tensor whose device is asked for": """
        import torch
        def gather(local, sizes):
            own = torch.tensor([0], device=local.device)
            return [torch.zeros(size).to(local) for size in sizes], own  # <- host-factory-then-move?
        """,
    "like a tensor that goes to other processes": """
        import torch
        import torch.distributed as dist
        def gather(local, sizes):
            found = [torch.zeros(size).to(local) for size in sizes]  # <- host-factory-then-move?
            dist.all_gather(found, local)
            return found
        """,
    "like what may be a type": """
        import torch
        def gather(kind, sizes):
            return [torch.zeros(size).to(kind) for size in sizes]
        """,
    "a GPU by its number": """
        import torch
        from torch.nn.parallel import DistributedDataParallel
        def batches(rank):
            for _ in range(10):
                yield torch.zeros(100).to(rank)  # <- host-factory-then-move
        def run(model, rank):
            model = DistributedDataParallel(model.cuda(rank), device_ids=[rank])
            for batch in batches(rank):
                model(batch)
        """,
}


@pytest.mark.parametrize("code", SEVERAL_STATEMENTS.values(), ids=SEVERAL_STATEMENTS)
def test_ways_to_the_device(code: str) -> None:
    check_snippet(code, RULE)


def test_a_trial_in_the_main_block_says_nothing_of_the_device() -> None:
    """A file that defines a network and tries it out on the CPU is there to be imported."""
    check_snippet(
        """
        import math
        import torch
        from torch import nn
        class Embedder(nn.Module):
            @staticmethod
            def embedding(t, dim):
                half = dim // 2
                freqs = torch.exp(-math.log(10000) * torch.arange(half) / half).to(t.device)  # <- host-factory-then-move
                return t[:, None] * freqs[None]
            def forward(self, t):
                return self.embedding(t, 256)
        if __name__ == "__main__":
            embedder = Embedder()
            t = torch.randint(0, 100, (2,))
            print(embedder(t).shape)
        """,
        RULE,
    )


@pytest.mark.parametrize(
    ("made", "moved", "fixed"),
    [
        ("torch.tensor(step).repeat(n).to(device)", True, "torch.tensor(step, device=device).repeat(n)"),
        ("torch.tensor([step]).repeat(n).to(device)", True, "torch.tensor([step], device=device).repeat(n)"),
        ("torch.tensor([step]).expand(n).to(device)", True, "torch.tensor([step], device=device).expand(n)"),
        # What is not enlarged has to come over as it is, and so do several numbers, or what may be a tensor.
        ("torch.tensor(step).to(device)", False, None),
        ("torch.tensor([step, 2]).repeat(n).to(device)", False, None),
        ("torch.tensor(x.shape).repeat(n).to(device)", False, None),
        ("torch.tensor(unknown).repeat(n).to(device)", False, None),
        ("torch.tensor(step).repeat(n)", False, None),
    ],
)
def test_a_number_of_the_host_that_is_repeated(made: str, *, moved: bool, fixed: str | None) -> None:
    code = """
import torch
def sample(net, x, steps, device, n, unknown):
    for step in range(steps):
        t = {}
        x = net(x, t)
    return x
"""
    mark = f"  # <- {RULE}" if moved else ""
    check_snippet(code.format(made + mark), RULE, fixed=None if fixed is None else code.format(fixed))


@pytest.mark.parametrize(
    ("made", "is_found"),
    [
        ("(torch.arange(n).unsqueeze(0) < size.unsqueeze(1)).to(device)", True),
        ("(size.unsqueeze(1) > torch.arange(n)).to(device)", True),
        ("(torch.arange(n) % 3 * torch.ones(n)).to(device)", True),
        ("torch.cat([torch.ones(n), torch.zeros(2 * n)], dim=0).to(device)", True),
        ("torch.stack((torch.arange(n), size)).to(device)", True),
        ("torch.cat([torch.ones(n), x]).to(device)", False),
        ("torch.cat([torch.ones(n), unknown]).to(device)", False),
        ("torch.cat([torch.ones(n), *unknown]).to(device)", False),
        ("torch.cat([torch.ones(n), torch.zeros(2)])", False),
        ("(torch.arange(n) < size).sum()", False),
        ("(torch.arange(n) < x).to(device)", False),
        ("(torch.arange(n) < unknown).to(device)", False),
        ("(torch.arange(n) < size < x).to(device)", False),
    ],
)
def test_beside_another_tensor_on_the_cpu(made: str, *, is_found: bool) -> None:
    """The fix would have to move the other one: there is none."""
    mark = f"  # <- {RULE}" if is_found else ""
    result = check_snippet(
        f"""
        import torch
        def masks(net, batches, device, n, lengths: list, unknown):
            for x in batches:
                x = net(x.to(device))
                size = torch.tensor(lengths)
                made = {made}{mark}
            return made
        """,
        RULE,
    )
    assert not any(finding.fix for finding in result.findings)
