"""What nobody in sight switches on or uses is doubted, whatever the rule: it does not recur."""

from __future__ import annotations

import json
import textwrap
from typing import TYPE_CHECKING

import pytest
from laws import active, lint

from torchlint.cli import run
from torchlint.finding import Doubt

if TYPE_CHECKING:
    from pathlib import Path

    from torchlint.finding import Finding

MOVE = "torch.rand(1000, 1000).cuda()"
RULE = "host-factory-then-move"


def found(code: str) -> Finding:
    (finding,) = lint(textwrap.dedent(code), active(RULE)).findings
    return finding


@pytest.mark.parametrize(
    ("init", "test", "made", "is_off"),
    [
        ("visible=False", "self.option", "Net()", True),
        ("visible=False", "self.option", "Net(visible=False)", True),
        ("visible=False", "self.option", "Net(True)", False),
        ("visible=False", "self.option", "Net(visible=given)", False),
        ("visible=False", "self.option", "Net(**options)", False),
        ("visible=False", "not self.option", "Net()", False),
        ("visible=True", "not self.option", "Net(visible=True)", True),
        ("visible=True", "not self.option", "[Net(visible=True), Net(visible=False)]", False),
        ("visible='mean'", "self.option == 'attention'", "Net()", True),
        ("visible='mean'", "self.option == 'attention'", "Net('attention')", False),
        ("visible='mean'", "self.option == 'mean'", "Net()", False),
        ("visible='mean'", "self.option != 'mean'", "Net()", True),
        ("visible=None", "self.option is not None", "Net()", True),
        ("visible=None", "self.option is None", "Net()", False),
        ("visible=None", "self.option is not None and x.any()", "Net()", True),
        ("visible=None", "self.option is not None or x.any()", "Net()", False),
        ("visible='mean'", "self.option in ('attention', 'max')", "Net()", False),
    ],
)
def test_an_option_of_a_class(init: str, test: str, made: str, is_off: bool) -> None:  # noqa: FBT001
    code = f"""
        import torch
        class Net(torch.nn.Module):
            def __init__(self, {init}):
                super().__init__()
                self.option = visible
            def forward(self, x):
                if {test}:
                    x = x + {MOVE}
                return x
        net = {made}
    """
    assert found(code).doubts == ((Doubt.OPTION_DECIDES,) if is_off else ())


@pytest.mark.parametrize(
    "statement",
    ["self.option = x", "self.option, y = x", "self.option |= x", "net.option = True", "self.option: bool = True"],
)
def test_an_option_that_is_set_again(statement: str) -> None:
    code = f"""
        import torch
        class Net(torch.nn.Module):
            def __init__(self, visible=False):
                super().__init__()
                self.option = visible
            def start(self, x, net):
                {statement}
            def forward(self, x):
                if self.option:
                    x = x + {MOVE}
                return x
        net = Net()
    """
    assert not found(code).doubts


def test_an_option_that_another_class_has_under_the_same_name() -> None:
    code = f"""
        import torch
        class Other:
            def __init__(self):
                self.option = True
        class Net(torch.nn.Module):
            def __init__(self, visible=False):
                super().__init__()
                self.option = visible
            def forward(self, x):
                if self.option:
                    x = x + {MOVE}
                return x
        net = Net()
    """
    assert found(code).doubts == (Doubt.OPTION_DECIDES,)


@pytest.mark.parametrize(
    "behind",
    ["class Sub(Net):\n    option = True", "class Sub(Net):\n    def __init__(self):\n        super().__init__(True)"],
)
def test_an_option_of_a_class_that_another_extends(behind: str) -> None:
    code = (
        "import torch\nclass Net(torch.nn.Module):\n    option = False\n    def __init__(self, visible=False):\n"
        "        super().__init__()\n        self.visible = visible\n    def forward(self, x):\n"
        f"        if self.option and self.visible:\n            x = x + {MOVE}\n        return x\n"
    )
    assert found(code).doubts == (Doubt.OPTION_DECIDES,)
    assert not found(f"{code}{behind}\n").doubts


@pytest.mark.parametrize(
    ("passed", "is_off"),
    [("gaussian=True", True), ("True", True), ("", True), ("gaussian=False", False), ("gaussian=given", False)],
)
def test_an_option_of_a_function(passed: str, is_off: bool) -> None:  # noqa: FBT001
    code = f"""
        import torch
        def soft(x, gaussian=True):
            if not gaussian:
                x = x + {MOVE}
            return x
        for x in torch.utils.data.DataLoader(data):
            soft({", ".join(filter(None, ("x", passed)))})
    """
    assert found(code).doubts == ((Doubt.OPTION_DECIDES,) if is_off else ())


def test_a_flag_of_the_module() -> None:
    code = f"""
        import torch
        VERBOSE = False
        for x in torch.utils.data.DataLoader(data):
            if VERBOSE:
                print(x + {MOVE})
    """
    assert found(code).doubts == (Doubt.OPTION_DECIDES,)
    assert not found(code.replace("False", "bool(given)")).doubts
    assert not found(code.replace("for x", "VERBOSE = given\n        for x")).doubts
    changed = "def start():\n            global VERBOSE\n            VERBOSE = True\n        for x"
    assert not found(code.replace("for x", changed)).doubts


def test_what_everybody_passes_is_not_missing() -> None:
    code = """
        import torch
        class Inner(torch.nn.Module):
            def forward(self, x, mask=None):
                if mask is None:
                    mask = torch.ones(x.shape[0], 1000).cuda()
                return x * mask
        class Outer(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = Inner()
            def forward(self, x: torch.Tensor):
                return self.inner(x, mask={})
    """
    assert found(code.format("torch.gt(x, 0)")).doubts == (Doubt.OPTION_DECIDES,)
    assert not found(code.format("None")).doubts
    assert not found(code.format("self.mask")).doubts
    assert not found(code.replace(", mask={}", "")).doubts  # who else calls a network nobody sees


def each_run_doubts(rows: list[int], count: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Of so many findings those in these rows are doubted since nobody calls them, whichever files are named."""
    for arguments in ((".",), ("nets.py",), (".",)):  # the third is answered by the cache
        run(["check", *arguments, "--select", RULE, "--output-format", "json"])
        said = json.loads(capsys.readouterr().out)
        assert ([each["location"]["row"] for each in said if each["doubts"] == ["uncalled"]], len(said)) == (
            rows,
            count,
        )


USED = f"""\
import torch


class Used(torch.nn.Module):
    def forward(self, x):
        return x + {MOVE}


class Other(torch.nn.Module):
    def forward(self, x):
        return x + {MOVE}
"""


@pytest.mark.parametrize(
    ("importing", "behind", "doubted"),
    [
        ("from nets import Used", "", [11]),
        ("from nets import Used, Other", "", []),
        ("import nets", "", [11]),
        ("import nets\n\nmade = {'other': nets.Other}", "", []),
        ("import nets\n\nother = nets.Other()", "", []),
        ("import nets\n\nother = getattr(nets, name)()", "", []),
        ("from nets import *", "", []),
        ("from nets import Used", "\n\n__all__ = ['Used', 'Other']\n", []),
        ("from nets import Used", "\n\nmade = {'other': Other}\n", []),
        ("import torch", "", []),
    ],
)
def test_a_class_that_no_file_brings(
    importing: str,
    behind: str,
    doubted: list[int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "torchlint.toml").touch()
    (tmp_path / "nets.py").write_text(USED + behind)
    (tmp_path / "train.py").write_text(f"{importing}\n\nnet = Used()\n")
    each_run_doubts(doubted, 2, capsys)


HELPED = f"""\
import torch


def masked(x):
    return x + {MOVE}


class Used(torch.nn.Module):
    def forward(self, x):
        return USED


class Other(torch.nn.Module):
    def forward(self, x):
        return masked(x)
"""


@pytest.mark.parametrize(("used", "doubted"), [("x", [5]), ("masked(x)", [])])
def test_a_function_that_only_such_a_class_calls(
    used: str,
    doubted: list[int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "torchlint.toml").touch()
    (tmp_path / "nets.py").write_text(HELPED.replace("USED", used))
    (tmp_path / "train.py").write_text("from nets import Used\n\nnet = Used()\n")
    each_run_doubts(doubted, 1, capsys)


def test_an_option_that_another_file_switches_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "torchlint.toml").touch()
    (tmp_path / "nets.py").write_text(
        "import torch\n\n\nclass Net(torch.nn.Module):\n    def __init__(self, visible=False, how='mean'):\n"
        "        super().__init__()\n        self.visible = visible\n        self.how = how\n\n"
        f"    def forward(self, x):\n        if self.visible:\n            x = x + {MOVE}\n"
        f"        if self.how == 'sum':\n            x = x + {MOVE}\n        return x\n"
    )
    for made, warnings in (
        ("Net()", 0),
        ("Net(visible=False)", 0),
        ("Net(visible=True)", 1),
        ("Net(False, 'sum')", 1),
        ("Net(how='max')", 0),
        ("Net(*given)", 2),
    ):
        (tmp_path / "train.py").write_text(f"from nets import Net\n\nnet = {made}\n")
        run(["check", ".", "--select", RULE, "--output-format", "json"])
        said = json.loads(capsys.readouterr().out)
        assert sum(each["severity"] == "warning" for each in said) == warnings, (made, said)
        assert len(said) == 2


@pytest.mark.parametrize(
    ("test", "is_off"),
    [
        ("self.until is not None and x.sum() >= 3", True),
        ("self.until is None or x.sum() >= 3", True),
        ("not (self.until is None or x.sum() >= 3)", True),
        ("x.sum() >= 0 and self.until is not None", False),
        ("self.until is None and x.sum() >= 0", False),
    ],
)
def test_what_and_or_or_never_asks_for(test: str, is_off: bool) -> None:  # noqa: FBT001
    code = f"""
        import torch
        class Norm(torch.nn.Module):
            def __init__(self, until=None):
                super().__init__()
                self.until = until
            def forward(self, x):
                if {test}:
                    return x
                return x + 1
        norm = Norm()
    """
    (flag,) = lint(textwrap.dedent(code), active("tensor-truthiness-branch")).findings
    assert flag.doubts == ((Doubt.OPTION_DECIDES,) if is_off else ())


@pytest.mark.parametrize("teacher", ["torch.nn.Linear(3, 3).cuda()", "None"])
def test_what_everybody_passes(teacher: str) -> None:
    code = f"""
        import torch
        def train(loader, teacher):
            for x in loader:
                if teacher is not None:
                    y = teacher(x)
                else:
                    y = {MOVE}
                y.sum().backward()
        train(torch.utils.data.DataLoader(data), {teacher})
    """
    assert found(code).doubts == ((Doubt.OPTION_DECIDES,) if teacher != "None" else ())


NETS = """\
import torch


class Net(torch.nn.Module):
    def __init__(self, opt):
        super().__init__()
        self.opt = opt
        self.body = torch.nn.Linear(9, 9)

    def forward(self, x):
        opt = self.opt
        if {test}:
            x = x + torch.rand(1000, 1000).cuda()
        return self.body(x)
"""
PARSED = """\
import argparse


class Options:
    def __init__(self):
        self.parser = argparse.ArgumentParser()
        self.parser.add_argument("--noisy-input", action={action})
        self.parser.add_argument("--use_cuda", action="store_true")

    def parse(self):
        return self.parser.parse_args()
"""
MAIN = """\
{paths}
from options import Options
from nets.net import Net

opt = Options().parse()
model = Net(opt).cuda()
for x in loader:
    model(x.cuda()).mean().backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("test", "action", "paths", "is_off"),
    [
        ("opt.noisy_input", '"store_true"', "import paths", True),
        ("opt.noisy_input", '"store_true"', "import sys; sys.path.insert(0, 'lib')", True),
        ("opt.noisy_input", '"store_true"', "", False),  # nobody sees where the modules are
        ("opt.noisy_input", '"store_false"', "import paths", False),
        ("not opt.noisy_input", '"store_true"', "import paths", False),
        ("opt.other", '"store_true"', "import paths", False),
        ("opt.use_cuda", '"store_true"', "import paths", False),
    ],
)
def test_a_switch_of_the_command_line_that_another_file_parses(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    test: str,
    action: str,
    paths: str,
    is_off: bool,  # noqa: FBT001
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "torchlint.toml").touch()
    (tmp_path / "lib/nets").mkdir(parents=True)
    (tmp_path / "lib/nets/net.py").write_text(NETS.format(test=test))
    (tmp_path / "lib/options.py").write_text(PARSED.format(action=action))
    (tmp_path / "paths.py").write_text("import sys\n\nsys.path.insert(0, 'lib')\n")
    (tmp_path / "main.py").write_text(MAIN.format(paths=paths))
    run(["check", "--select", RULE, "--output-format", "json", "."])
    (finding,) = json.loads(capsys.readouterr().out)
    assert (Doubt.OPTION_DECIDES.value in finding["doubts"]) is is_off


def test_a_switch_that_says_what_the_program_is_for() -> None:
    code = """
        import argparse
        import torch
        parser = argparse.ArgumentParser()
        parser.add_argument("--do_train", action="store_true")
        args = parser.parse_args()
        model = torch.nn.Linear(9, 9).cuda()
        if args.do_train:
            for x in loader:
                model(x.cuda() + torch.rand(9).cuda()).mean().backward()
                optimizer.step()
    """
    assert not found(code).doubts


@pytest.mark.parametrize(
    ("passed", "is_doubted"),
    [
        ("step % 100 == 0", True),
        ("not self.quiet", True),
        ("self.verbose and step > 10", True),
        ("True", False),
        ("flag", False),
    ],
)
def test_a_branch_that_the_callers_decide_on_each_time(passed: str, is_doubted: bool) -> None:  # noqa: FBT001
    code = f"""
        import torch
        class Trainer:
            def fit(self, loader, flag):
                for step, x in enumerate(loader):
                    self.train(x.cuda(), {passed})
            def train(self, x, logs):
                loss = self.model(x).mean()
                loss.backward()
                self.optimizer.step()
                if logs:
                    self.noise = torch.rand(1000, 1000).cuda()
    """
    assert bool(found(code).doubts) is is_doubted


@pytest.mark.parametrize(
    ("option", "test", "call", "is_off"),
    [
        ("sampled=False", "sampled", "", True),
        ("sampled=False", "sampled", "net(x)", True),
        ("sampled=False", "sampled", "net(x, True)", False),
        ("sampled=True", "sampled", "", False),
        ("sampled=False", "not sampled", "", False),
        ("target=None", "target is not None", "", False),  # one that is passed, most of the time
    ],
)
def test_an_option_of_what_a_network_is_called_with(option: str, test: str, call: str, is_off: bool) -> None:  # noqa: FBT001
    code = f"""
        import torch
        class Net(torch.nn.Module):
            def forward(self, x, {option}):
                if {test}:
                    x = x + {MOVE}
                return x
        net = Net()
        {call}
    """
    assert (Doubt.OPTION_DECIDES in found(code).doubts) is is_off
