"""Objects that one file makes and another is given: how often their methods run, and what these are given and give."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_inquiry import Capture, folder, found, write  # noqa: F401 - a fixture

AGENT = """\
import torch


class Agent:
    def __init__(self, size):
        self.net = torch.nn.Linear(size, size).cuda()

    def predict(self, state):
        noise = torch.rand(state.shape).cuda()
        return self.net(state.cuda() + noise).argmax()
"""
LOOP = """\
import torch


def run(env, {parameter}):
    state = env.reset()
    for step in range(10_000):
        state, reward, done, _ = env.step({agent}.predict(state))
"""
MAIN = """\
from agent import Agent
from loop import run

if __name__ == "__main__":
    {code}
"""
SEEN: list[tuple[str, str, str | None, str | None]] = [("agent.py", "TL201", "per batch", "loop.py:7")]
UNSEEN: list[tuple[str, str, str | None, str | None]] = [("agent.py", "TL201", "per call", None)]


def frequencies(capsys: Capture) -> list[tuple[str, str, str | None, str | None]]:
    return found(capsys, "--select", "TL201", ".")


@pytest.mark.parametrize(
    ("parameter", "code", "is_seen"),
    [
        ("agent", "run(env, Agent(9))", True),
        ("agent", "run(env, agent=Agent(9))", True),
        ("agent=None", "run(env, Agent(9))", True),
        ("agent", "agent = Agent(9)\n    run(env, agent)", True),
        ("agent", "run(env, Agent(9))\n    run(env, Other())", False),
        ("agent", "run(env, *[Agent(9)])", False),
        ("agent", "run(Agent(9), env)", False),
        ("agent", "Agent(9)\n    run(env, agents[0])", False),
    ],
)
def test_who_is_given_one_calls_it(
    folder: Path,  # noqa: F811
    capsys: Capture,
    parameter: str,
    code: str,
    is_seen: bool,  # noqa: FBT001
) -> None:
    write(folder, agent=AGENT, loop=LOOP.format(parameter=parameter, agent="agent"), main=MAIN.format(code=code))
    for _ in range(2):  # the second time from the cache
        assert frequencies(capsys) == (SEEN if is_seen else UNSEEN)


def test_it_is_kept_by_an_object(folder: Path, capsys: Capture) -> None:  # noqa: F811
    trainer = """\
class Trainer:
    def __init__(self, agent):
        self.agent = agent

    def fit(self, env):
        for step in range(10_000):
            state, reward, done, _ = env.step(self.agent.predict(state))
"""
    main = "from agent import Agent\nfrom loop import Trainer\n\nTrainer(Agent(9)).fit(env)\n"
    write(folder, agent=AGENT, loop=trainer, main=main)
    assert frequencies(capsys) == [("agent.py", "TL201", "per batch", "loop.py:7")]


def test_it_is_handed_on(folder: Path, capsys: Capture) -> None:  # noqa: F811
    outer = "from loop import run\n\n\ndef start(agent):\n    run(env, agent)\n"
    main = "from agent import Agent\nfrom outer import start\n\nstart(Agent(9))\n"
    write(folder, agent=AGENT, loop=LOOP.format(parameter="agent", agent="agent"), outer=outer, main=main)
    assert frequencies(capsys) == SEEN


def test_who_makes_it_may_define_it(folder: Path, capsys: Capture) -> None:  # noqa: F811
    agent = f"from loop import run\n{AGENT}\n\nrun(env, Agent(9))\n"
    write(folder, agent=agent, loop=LOOP.format(parameter="agent", agent="agent"))
    assert frequencies(capsys) == [("agent.py", "TL201", "per batch", "loop.py:7")]


def test_what_its_methods_give_is_known(folder: Path, capsys: Capture) -> None:  # noqa: F811
    buffer = (
        "import torch\n\n\nclass Buffer:\n    def sample(self, n):\n        return torch.empty(n, 9, device='cuda')\n"
    )
    learner = """\
class Learner:
    def __init__(self, buffer):
        self.buffer = buffer

    def learn(self, meter):
        for step in range(10_000):
            batch = self.buffer.sample(64)
            loss = net(batch).mean()
            loss.backward()
            meter.add(batch.mean().item())
"""
    main = "from buffer import Buffer\nfrom learner import Learner\n\nLearner(Buffer()).learn(meter)\n"
    write(folder, buffer=buffer, learner="import torch, numpy\n" + learner, main=main)
    assert found(capsys, "--select", "TL301", ".") == [("learner.py", "TL301", "per batch", None)]


@pytest.mark.parametrize(("scripts", "is_seen"), [(8, True), (9, False)])
def test_what_many_files_pass_is_not_asked_for(folder: Path, capsys: Capture, scripts: int, is_seen: bool) -> None:  # noqa: F811, FBT001
    write(folder, agent=AGENT, loop=LOOP.format(parameter="agent", agent="agent"))
    write(folder, **{f"main{i}": MAIN.format(code="run(env, Agent(9))") for i in range(scripts)})
    assert frequencies(capsys) == (SEEN if is_seen else UNSEEN)


PACKAGE = "import torch\n\n\ndef parse(x):\n    return torch.rand(x.shape).cuda()\n"
SCRIPT = "import {paths}\nfrom helper import parse\n\nfor x, y in loader:\n    parse(x)\n    loss.backward()\n"


@pytest.mark.parametrize(("paths", "is_seen"), [("sys; sys.path.append('models')", True), ("os", False)])
def test_a_module_of_a_folder_that_is_added(folder: Path, capsys: Capture, paths: str, is_seen: bool) -> None:  # noqa: F811, FBT001
    (folder / "models").mkdir()
    (folder / "models" / "helper.py").write_text(PACKAGE)
    write(folder, train=SCRIPT.format(paths=paths))
    seen = ("models/helper.py", "TL201", "per batch", "train.py:5")
    unseen = ("models/helper.py", "TL201", None, None)
    assert frequencies(capsys) == [seen if is_seen else unseen]
    (folder / "data").mkdir()
    (folder / "data" / "helper.py").write_text("import torch\n")  # which of both, nobody knows
    assert frequencies(capsys) == [unseen]


def test_a_module_that_is_tried_by_itself_does_not_say_how_often(folder: Path, capsys: Capture) -> None:  # noqa: F811
    net = "import torch\nfrom helper import parse\n\n{class_}\n\nif __name__ == '__main__':\n    parse(Net())\n"
    write(folder, helper=PACKAGE, net=net.format(class_="class Net(torch.nn.Module): pass"))
    assert frequencies(capsys) == [("helper.py", "TL201", None, None)]
    write(folder, net=net.format(class_="Net = dict"))
    assert frequencies(capsys) == [("helper.py", "TL201", "once", "net.py:7")]
