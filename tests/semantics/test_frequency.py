"""How often lines run."""

from __future__ import annotations

import pytest
from looking import look

from torchlint.finding import Frequency

HEAD = "import torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader\n"


HELD = """
class Held(torch.utils.data.Dataset):
    def __getitem__(self, i):
        return f(i)
"""
# A method that makes a list, and then goes over it.
PARTS = """
class M(nn.Module):
    def forward(self, x):
        out = [x]
        {fill}
        for y in {over}:
            LOOK(1)
"""
# One that takes a step, and a function that goes over batches.
LEARNER = """
class Agent:
    def learn(self, x):
        f(x).backward()
        self.optimizer.step()
def evaluate(loader):
    for x in loader:
        f(x)
agent = Agent()
"""
LEARNING = """
for t in range(n):
    agent.learn(buffer.sample())
    LOOK(1)
    if (t + 1) % eval_freq == 0:
        evaluate(test_loader)
"""
# A helper that goes backward, in a loop that may do so in parts.
HELPED = """
def {name}(loss, scaler):
    if scaler is not None:
        scaler.scale(loss).backward()
    else:
        loss.backward()
{step}
for i in count():
    if parts == 1:
        {first}
    else:
        for j in range(parts):
            {name}(f(x[j]), scaler)
    LOOK(1)
{last}
"""
DELAYED = """
for step, x in enumerate(loader):
    if step % delay == 0:
        loss = f(x)
        LOOK(1)
        loss.backward()
"""
NESTED = """
def f(x):
    if isinstance(x, list):
        return [f(y) for y in x]
    return LOOK(1)
for x in loader:
    {call}
"""


MAIN = "def main(rank):\n    LOOK(1)\n"
# What asks whether it is time for something.
EVERY = """
def every(state, n, k=None):
    test = state.step % n == 0
    if k is not None:
        test = test and state.part == k
"""
# What is done once for eight backward passes.
ADDED_UP = """
optimizer = torch.optim.SGD(p, 0.1)
for i, x in enumerate(loader):
    f(x).backward()
    if i % 8 == 0:
"""


@pytest.mark.parametrize(
    ("code", "frequency"),
    [
        ("LOOK(1)", Frequency.ONCE),
        ("for x in loader:\n    y = list(map(lambda v: LOOK(v), x))", Frequency.BATCH),
        ("for x in loader:\n    f(lambda v: LOOK(v), x)", Frequency.UNKNOWN),
        (
            HELPED.format(name="backward", step="", first="backward(f(x), scaler)", last="    optimizer.step()"),
            Frequency.BATCH,
        ),
        (HELPED.format(name="propagate", step="", first="propagate(f(x), scaler)", last=""), Frequency.BATCH),
        (HELPED.format(name="propagate", step="", first="pass", last="    optimizer.step()"), Frequency.BATCH),
        # A loop of steps, and what is looked at after it.
        (HELPED.format(name="propagate", step="    optimizer.step()", first="pass", last=""), Frequency.EPOCH),
        (
            (
                "for i in range(n):\n    for name in ('a', 'b'):\n        net(next(data)).backward()\n        LOOK(1)\n"
                "    if i % 10 == 0:\n        for x in fixed:\n            net(x)"
            ),
            Frequency.BATCH,
        ),
        (
            "for i in range(n):\n    LOOK(1)\n    for name in ('a', 'b'):\n        net(next(data)).backward()",
            Frequency.BATCH,
        ),
        (
            "for i in range(n):\n    LOOK(1)\n    for name in ('a', 'b'):\n        for x in loader:\n            net(x)",
            Frequency.EPOCH,
        ),
        (
            (
                "def made(g, c):\n    def train(x):\n        g.optim.zero_grad()\n        for i in range(c.parts):\n"
                "            g(x[i]).backward()\n        g.optim.step()\n        LOOK(1)\n    return train"
            ),
            Frequency.BATCH,
        ),
        (
            (
                "def made(g, loader):\n    def train():\n        g.optim.zero_grad()\n        for x in loader:\n"
                "            g(x).backward()\n        g.optim.step()\n        LOOK(1)\n    return train"
            ),
            Frequency.UNKNOWN,
        ),
        ("for x in DataLoader(ds):\n    LOOK(1)", Frequency.BATCH),
        ("for i, x in enumerate(DataLoader(ds)):\n    LOOK(1)", Frequency.BATCH),
        ("from tqdm import tqdm\nfor x in tqdm(train_loader):\n    LOOK(1)", Frequency.BATCH),
        ("for epoch in range(9):\n    for x in loader:\n        pass\n    LOOK(1)", Frequency.EPOCH),
        ("for epoch in range(9):\n    for x in loader:\n        LOOK(1)", Frequency.BATCH),
        ("for loader in loaders:\n    LOOK(1)", Frequency.EPOCH),
        (
            f"{LEARNER}for _ in range(num_updates_on_epoch):\n    agent.learn(buffer.sample())\n    LOOK(1)",
            Frequency.BATCH,
        ),
        (f"{LEARNER}{LEARNING}", Frequency.BATCH),
        (
            f"{LEARNER}for epoch in range(n):\n    LOOK(1)\n    if epoch % 5 == 0:\n        evaluate(test_loader)",
            Frequency.EPOCH,
        ),
        (DELAYED, Frequency.BATCH),
        (
            "for step, x in enumerate(loader):\n    f(x).backward()\n    if step % delay == 0:\n        LOOK(1)",
            Frequency.EPOCH,
        ),
        ("for name in names:\n    net = nn.Linear(8, name)\n    net(x)\n    LOOK(1)", Frequency.UNKNOWN),
        ("net = nn.Linear(8, 8)\nfor x in xs:\n    net = net.train()\n    net(x)\n    LOOK(1)", Frequency.BATCH),
        ("for i, loader in enumerate(test_loaders):\n    for x in loader:\n        LOOK(1)", Frequency.BATCH),
        ("for loader in loaders:\n    f(next(loader)).backward()\n    LOOK(1)", Frequency.BATCH),
        ("for x in loader:\n    for y in x:\n        LOOK(1)", Frequency.SAMPLE),
        ("for val_loader in trainer.val_loaders:\n    for x in val_loader:\n        LOOK(1)", Frequency.BATCH),
        ("for loader in loaders:\n    LOOK(1)\n    for x in loader:\n        pass", Frequency.EPOCH),
        (
            "def f(x, log=False):\n    if log:\n        LOOK(1)\nfor i, x in enumerate(loader):\n    f(x, i % 9 == 0)",
            Frequency.EPOCH,
        ),
        (
            "def f(x, log=False):\n    if log:\n        LOOK(1)\nfor i, x in enumerate(loader):\n    f(x, log=True)",
            Frequency.BATCH,
        ),
        ("for x in loader:\n    for p in model.parameters():\n        LOOK(1)", Frequency.BATCH),
        ("for x in loader:\n    for i in range(x.size(0)):\n        LOOK(1)", Frequency.SAMPLE),
        ("for x in loader:\n    size = len(x)\n    for i in range(size):\n        LOOK(1)", Frequency.SAMPLE),
        ("for x in loader:\n    n, c = x.shape\n    for i in range(n):\n        LOOK(1)", Frequency.SAMPLE),
        ("for x in loader:\n    for i, row in enumerate(x):\n        LOOK(1)", Frequency.SAMPLE),
        ("for x in loader:\n    for i in range(x.shape[1]):\n        LOOK(1)", Frequency.BATCH),
        ("for x in loader:\n    for i in range(x.size(1)):\n        LOOK(1)", Frequency.BATCH),
        ("for x in loader:\n    for i in range(1, x.size(-1)):\n        LOOK(1)", Frequency.BATCH),
        ("for x in loader:\n    n = x.size(2)\n    for i in range(n):\n        LOOK(1)", Frequency.BATCH),
        (
            "for x in loader:\n    if isinstance(x, (list, tuple)):\n        for y in x:\n            LOOK(1)",
            Frequency.BATCH,
        ),
        (
            "for x in loader:\n    if isinstance(x, list):\n        pass\n    for y in x:\n        LOOK(1)",
            Frequency.SAMPLE,
        ),
        ("for x in loader:\n    for i in range(crops):\n        LOOK(1)", Frequency.BATCH),
        (
            "import transformers as t\nclass Stop(t.StoppingCriteria):\n    def __call__(self, x, y):\n        LOOK(1)",
            Frequency.BATCH,
        ),
        ("stops = [2, 13]\nfor x in loader:\n    for stop in stops:\n        LOOK(1)", Frequency.BATCH),
        (f"{HELD}for x, y in Held():\n    LOOK(1)", Frequency.BATCH),
        ("from torchtext.data import Dataset\nfor x in Dataset(data, fields):\n    LOOK(1)", Frequency.BATCH),
        ("for i, x in enumerate(loader):\n    if plots and i < 3:\n        LOOK(1)", Frequency.EPOCH),
        ("for i, x in enumerate(loader):\n    if i < 500:\n        LOOK(1)", Frequency.BATCH),
        ("for i, n in loader:\n    if n < 3:\n        LOOK(1)", Frequency.BATCH),
        ("for i, n in enumerate(loader):\n    if n < 3:\n        LOOK(1)", Frequency.BATCH),
        ("for x in loader:\n    for name in ('a', 'b'):\n        LOOK(1)", Frequency.BATCH),
        ("for x in loader:\n    for name, term in f(x)['terms'].items():\n        LOOK(1)", Frequency.BATCH),
        ("for x in loader:\n    losses = [f(x), g(x)]\n    [LOOK(v) for v in losses]", Frequency.BATCH),
        ("for x in loader:\n    found = f(x.cuda())\n    for k in found:\n        LOOK(found[k])", Frequency.BATCH),
        ("for i in range(1):\n    f().backward()\n    LOOK(1)", Frequency.ONCE),
        ("for i in range(2):\n    f().backward()\n    LOOK(1)", Frequency.BATCH),
        ("for x in loader:\n    while waiting():\n        LOOK(1)", Frequency.BATCH),
        (PARTS.format(fill="while more():\n            out.append(f(x))", over="out"), Frequency.BATCH),
        (PARTS.format(fill="while more():\n            out.append(f(x))", over="range(len(out))"), Frequency.BATCH),
        (
            PARTS.format(fill="for i in range(depth):\n            out.append(f(x))", over="enumerate(out)"),
            Frequency.BATCH,
        ),
        (PARTS.format(fill="for y in x:\n            out.append(f(y))", over="out"), Frequency.SAMPLE),
        (PARTS.format(fill="out.extend(x)", over="out"), Frequency.SAMPLE),
        (PARTS.format(fill="out += x", over="out"), Frequency.SAMPLE),
        (NESTED.format(call="f(x)"), Frequency.BATCH),
        (NESTED.format(call="[f(y) for y in x]"), Frequency.SAMPLE),
        ("for epoch in range(9):\n    f().backward()\n    LOOK(1)", Frequency.EPOCH),
        ("for step in range(steps_per_epoch):\n    f().backward()\n    LOOK(1)", Frequency.BATCH),
        ("for x in ['a', 'b']:\n    f(x).backward()\n    LOOK(1)", Frequency.UNKNOWN),
        ("for x, y in zip(['a', 'b'], [0, 1]):\n    f(x).backward()\n    LOOK(1)", Frequency.UNKNOWN),
        ("for phase in ['train', 'val']:\n    for x in loader:\n        pass\n    LOOK(1)", Frequency.EPOCH),
        ("for x in loader:\n    if i % 8 == 0 or kept is None:\n        LOOK(1)", Frequency.EPOCH),
        ("for x in loader:\n    if i % 8 == 0 or step == last:\n        LOOK(1)", Frequency.EPOCH),
        ("for x in loader:\n    if i % 8 == 0 or stopping:\n        LOOK(1)", Frequency.EPOCH),
        ("for x in loader:\n    if i % 8 == 0 or x.ok:\n        LOOK(1)", Frequency.BATCH),
        (
            "class M(nn.Module):\n  def forward(self, x):\n    if not hasattr(self, 'w'):\n      self.w = LOOK(1)",
            Frequency.EPOCH,
        ),
        (
            "class M(nn.Module):\n  def forward(self, x):\n    if self.due:\n      self.due = False\n      LOOK(1)",
            Frequency.EPOCH,
        ),
        (
            "class M(nn.Module):\n  def forward(self, x):\n    if not self.done:\n      self.done = True\n      LOOK(1)",
            Frequency.EPOCH,
        ),
        (
            (
                "class M(nn.Module):\n def forward(self, x):\n  if hasattr(self, 'w') and self.w.size(0) == len(x):\n"
                "   return self.w\n  w = LOOK(1)\n  self.w = w\n  return w"
            ),
            Frequency.EPOCH,
        ),
        (
            "class M(nn.Module):\n def forward(self, x):\n  if self.w is not None:\n   return self.w\n  self.w = LOOK(1)",
            Frequency.EPOCH,
        ),
        (
            "class M(nn.Module):\n def forward(self, x):\n  if self.w is not None:\n   return x * self.w\n  return LOOK(1)",
            Frequency.BATCH,
        ),
        (
            "class M(nn.Module):\n  def forward(self, x):\n    if self.due:\n      self.due = True\n      LOOK(1)",
            Frequency.BATCH,
        ),
        (
            (
                "class M(nn.Module):\n  def forward(self, x):\n    if self.odd:\n      self.odd = False\n      LOOK(1)\n"
                "    else:\n      self.odd = True"
            ),
            Frequency.BATCH,
        ),
        (
            (
                "model = nn.Linear(9, 9).cuda()\nfor x in made:\n  for i in range(x.shape[1]):\n    model(x[:, i])\n"
                "  LOOK(1)"
            ),
            Frequency.BATCH,
        ),
        (
            "class M(nn.Module):\n def forward(self, x):\n  if self.w is None:\n   self.register_buffer('w', LOOK(1))",
            Frequency.EPOCH,
        ),
        ("class M(nn.Module):\n  def forward(self, x):\n    if x is None:\n      return LOOK(1)", Frequency.BATCH),
        (
            "def train():\n    f().backward()\n    o.step()\n    LOOK(1)\nfor epoch in range(9):\n    train()",
            Frequency.EPOCH,
        ),
        (
            "def train():\n    f().backward()\n    o.step()\n    LOOK(1)\nfor i in range(9):\n    train()",
            Frequency.BATCH,
        ),
        ("for i, x in enumerate(loader):\n    log = i % 50 == 0\n    if log:\n        LOOK(1)", Frequency.EPOCH),
        ("for i, x in enumerate(loader):\n    log = x.ok\n    if log:\n        LOOK(1)", Frequency.BATCH),
        ("for x in loader:\n    LOOK(1)\n    break", Frequency.ONCE),
        ("for x in loader:\n    s = self.state[x]\n    if 'n' not in s:\n        s['n'] = LOOK(1)", Frequency.EPOCH),
        (
            "for x in loader:\n    s = self.state[x]\n    if 'n' in s:\n        f()\n    else:\n        s['n'] = LOOK(1)",
            Frequency.EPOCH,
        ),
        ("d = {}\ndef f(x):\n    if x not in d:\n        d[x] = LOOK(1)\nfor x in loader:\n    f(x)", Frequency.EPOCH),
        ("def f(x, d):\n    if x not in d:\n        d[x] = LOOK(1)\nfor x in loader:\n    f(x, {})", Frequency.BATCH),
        ("for x in loader:\n    if 'n' not in x:\n        x['n'] = LOOK(1)", Frequency.BATCH),
        ("for x in loader:\n    if y is None:\n        y = LOOK(1)\n        self.seen[x] = y", Frequency.EPOCH),
        ("for x in loader:\n    if not self.initialized:\n        LOOK(1)", Frequency.EPOCH),
        (
            "import functools\n@functools.cache\ndef f(x):\n    LOOK(1)\nfor x in loader:\n    f(x)",
            Frequency.UNKNOWN,
        ),
        ("for x in loader:\n    if x.bad:\n        continue\n    LOOK(1)\n    break", Frequency.BATCH),
        ("for x in loader:\n    for y in x:\n        break\n    LOOK(1)", Frequency.BATCH),
        ("for x in loader:\n    if len(buffer) < 50:\n        LOOK(1)", Frequency.EPOCH),
        ("from ignite.metrics import Metric\nclass M(Metric):\n  def compute(self):\n    LOOK(1)", Frequency.EPOCH),
        ("def work(x):\n    LOOK(1)\ndef run(f):\n    for x in loader:\n        f(x)\nrun(work)", Frequency.BATCH),
        ("def work(x):\n    LOOK(1)\ndef run(f):\n    for x in loader:\n        g(x)\nrun(work)", Frequency.UNKNOWN),
        ("from ignite.engine import Engine\ndef step(e, x):\n    LOOK(1)\nEngine(step)", Frequency.BATCH),
        (
            "from ignite.engine import Events\n@t.on(Events.ITERATION_COMPLETED)\ndef log(e):\n    LOOK(1)",
            Frequency.BATCH,
        ),
        (
            "from ignite.engine import Events\n@t.on(Events.ITERATION_COMPLETED(every=9))\ndef log(e):\n    LOOK(1)",
            Frequency.EPOCH,
        ),
        (
            "from ignite.engine import Events\ndef log(e):\n    LOOK(1)\nt.add_event_handler(Events.EPOCH_COMPLETED, log)",
            Frequency.EPOCH,
        ),
        ("class C(Callback):\n  def on_train_start(self):\n    LOOK(1)", Frequency.ONCE),
        # What processes are started with runs once in each.
        (f"{MAIN}import torch.multiprocessing as mp\nmp.spawn(main, nprocs=4)", Frequency.ONCE),
        (f"{MAIN}import multiprocessing\nmultiprocessing.Process(target=main, args=(0,)).start()", Frequency.ONCE),
        (f"{MAIN}register(main)", Frequency.UNKNOWN),
        ("class C(Callback):\n  def on_train_epoch_end(self):\n    LOOK(1)", Frequency.EPOCH),
        ("for i in range(9):\n    loss = f()\n    loss.backward()\n    LOOK(1)", Frequency.BATCH),
        ("for x in loader:\n    if i % 100 == 0:\n        LOOK(1)", Frequency.EPOCH),
        (
            "for x in loader:\n    due = False\n    if i % 100 == 0:\n        due = True\n    if due:\n        LOOK(1)",
            Frequency.EPOCH,
        ),
        (
            (
                "def step(x, due=False):\n    if due:\n        LOOK(1)\n"
                "for x in loader:\n    due = False\n    if i % 100 == 0:\n        due = True\n    step(x, due)"
            ),
            Frequency.EPOCH,
        ),
        (
            (
                "def step(x, due=False):\n    if due:\n        LOOK(1)\n"
                "for x in loader:\n    due = False\n    if x:\n        due = True\n    step(x, due)"
            ),
            Frequency.BATCH,
        ),
        ("for x in loader:\n    if i % 2 == 0:\n        LOOK(1)", Frequency.BATCH),
        ("for x in loader:\n    if i % 99 == 0 or i - 1 >= 9 * len(loader):\n        LOOK(1)", Frequency.EPOCH),
        ("for x in loader:\n    if i % 99 == 0 or i >= 9 * warmup:\n        LOOK(1)", Frequency.BATCH),
        (f"{EVERY}    return test\nfor x in loader:\n    if every(s, 99):\n        LOOK(1)", Frequency.EPOCH),
        (f"{EVERY}    return x\nfor x in loader:\n    if every(s, 99):\n        LOOK(1)", Frequency.BATCH),
        # The step for what several iterations have added up is one of the training.
        (f"{ADDED_UP}        optimizer.step()\n        LOOK(1)", Frequency.BATCH),
        (f"{ADDED_UP}        LOOK(1)", Frequency.EPOCH),
        ("for x in loader:\n    if i % 100 != 0:\n        continue\n    LOOK(1)", Frequency.EPOCH),
        ("for x in loader:\n    if rank == 0:\n        LOOK(1)", Frequency.BATCH),
        ("for x in loader:\n    if rank == 0 and i % 50 == 0:\n        LOOK(1)", Frequency.EPOCH),
        ("for x in loader:\n    if bad(x):\n        LOOK(1)\n        break", Frequency.ONCE),
        (
            "for step in steps:\n    if step % 500 == 0:\n        for x in val_loader:\n            LOOK(1)",
            Frequency.BATCH,
        ),
        ("class M(nn.Module):\n    def forward(self, x):\n        LOOK(1)", Frequency.BATCH),
        ("class M(nn.Module):\n    def forward(self, x):\n        for l in x:\n            LOOK(1)", Frequency.SAMPLE),
        ("class M(nn.Module):\n    def __init__(self):\n        LOOK(1)", Frequency.UNKNOWN),
        ("class D(torch.utils.data.Dataset):\n    def __getitem__(self, i):\n        LOOK(1)", Frequency.SAMPLE),
        ("def helper():\n    LOOK(1)\nfor x in loader:\n    helper()", Frequency.BATCH),
        ("def helper():\n    LOOK(1)\nfor x in loader:\n    pass\nhelper()", Frequency.ONCE),
        ("def a():\n    LOOK(1)\ndef b():\n    a()\nfor x in loader:\n    b()", Frequency.BATCH),
        (
            "class T:\n  def log(self):\n    LOOK(1)\n  def run(self):\n    for x in loader:\n      self.log()",
            Frequency.BATCH,
        ),
        ("def step(x):\n    opt.zero_grad()\n    f(x).backward()\n    opt.step()\n    LOOK(1)", Frequency.BATCH),
        ("def helper():\n    LOOK(1)", Frequency.UNKNOWN),
        ("for name in names:\n    LOOK(1)", Frequency.UNKNOWN),
        (
            "def train():\n    for x in loader:\n        pass\nfor i in range(9):\n    train()\n    LOOK(1)",
            Frequency.EPOCH,
        ),
        # A few turns, whatever it goes over.
        ("for i in range(n):\n    net(x[i])\n    LOOK(1)\n    if i >= 5:\n        break", Frequency.ONCE),
        ("for i, x in enumerate(loader):\n    LOOK(1)\n    if i == 2: break", Frequency.ONCE),
        ("for i, x in enumerate(loader):\n    LOOK(1)\n    if i >= 500:\n        break", Frequency.BATCH),
        ("for i, x in enumerate(loader):\n    LOOK(1)\n    if i >= most:\n        break", Frequency.BATCH),
        ("for x in loader:\n    LOOK(1)\n    if worse > 5:\n        break", Frequency.BATCH),
        ("for i, x in enumerate(loader):\n    i = f(x)\n    LOOK(1)\n    if i >= 5:\n        break", Frequency.BATCH),
        # A loss is no network.
        ("c = nn.MSELoss()\nfor i in range(x.shape[1]):\n    c(x[:, i], y)\n    LOOK(1)", Frequency.UNKNOWN),
        ("[LOOK(1) for x in loader]", Frequency.BATCH),
        ("[x for x in LOOK(loader)]", Frequency.ONCE),
    ],
)
def test_frequency(code: str, frequency: Frequency) -> None:
    node, context = look(HEAD + code)
    assert context.frequency(node) is frequency


@pytest.mark.parametrize(
    ("code", "frequency"),
    [
        ("class Engine:\n  def generate(self, x):\n    LOOK(1)", Frequency.CALL),
        ("class Loss:\n  def __call__(self, x):\n    LOOK(1)", Frequency.CALL),
        ("class Loss:\n  def __call__(self, x):\n    for y in x:\n      LOOK(1)", Frequency.CALL),
        ("class Loss:\n  def __call__(self, x):\n    self._sum(x)\n  def _sum(self, x):\n    LOOK(1)", Frequency.CALL),
        ("from lib import Policy\nclass P(Policy):\n  def compute(self, x):\n    LOOK(1)", Frequency.CALL),
        ("import flask\napp = flask.Flask()\n@app.route('/')\ndef answer():\n    LOOK(1)", Frequency.CALL),
        ("from .x import y\ndef answer(x):\n    LOOK(1)", Frequency.CALL),
        ("__all__ = ['answer']\ndef answer(x):\n    LOOK(1)", Frequency.CALL),
        # Nobody is seen to call these, and nothing says that somebody does.
        ("from .x import y\ndef _answer(x):\n    LOOK(1)", Frequency.UNKNOWN),
        ("class Engine:\n  def helper(self, x):\n    LOOK(1)", Frequency.UNKNOWN),
        ("class Engine:\n  def __init__(self, x):\n    LOOK(1)", Frequency.UNKNOWN),
        ("@torch.no_grad()\ndef answer(x):\n    LOOK(1)", Frequency.UNKNOWN),
        # What is known counts more.
        ("class L:\n  def generate(self):\n    LOOK(1)\nl = L()\nfor x in loader:\n  l.generate()", Frequency.BATCH),
        ("class L:\n  def generate(self):\n    LOOK(1)\nL().generate()", Frequency.ONCE),
    ],
)
def test_functions_whose_callers_are_not_in_sight_run_per_call(code: str, frequency: Frequency) -> None:
    node, context = look(HEAD + code)
    assert context.frequency(node) is frequency


@pytest.mark.parametrize(
    ("code", "hot", "frequency"),
    [
        ("def f(x):  # torchlint: hot[per-batch]\n    LOOK(1)", (), Frequency.BATCH),
        ("def f(x): LOOK(1)  # torchlint: hot[per-sample]", (), Frequency.SAMPLE),
        ("def f(\n  x,  # torchlint: hot[per-batch]\n):\n    LOOK(1)", (), Frequency.BATCH),
        ("# torchlint: hot[per-epoch]\n@g\ndef f(x):\n    LOOK(1)", (), Frequency.EPOCH),
        ("def f(x):  # torchlint: hot[per-batch]\n    g()\ndef g():\n    LOOK(1)", (), Frequency.BATCH),
        ("def f(x):  # torchlint: hot[per-batch]\n    for y in x:\n        LOOK(1)", (), Frequency.SAMPLE),
        ("def f(x):  # torchlint: hot[per-epoch]\n    LOOK(1)\nfor x in loader:\n    f(x)", (), Frequency.EPOCH),
        ("def f(x):\n    LOOK(1)", ("f",), Frequency.BATCH),
        ("class A:\n  def f(self, x):\n    LOOK(1)", ("A.f",), Frequency.BATCH),
        ("def f(x):  # torchlint: hot[per-epoch]\n    LOOK(1)", ("f",), Frequency.EPOCH),
        # These declare nothing of it.
        ("\n# torchlint: hot[per-batch]\nx = 1\ndef f(x):\n    LOOK(1)", (), Frequency.UNKNOWN),
        ("def f(x):  # torchlint: hot[per-step]\n    LOOK(1)", (), Frequency.UNKNOWN),
        ("def f(x):\n    LOOK(1)  # torchlint: hot[per-batch]", (), Frequency.UNKNOWN),
        ("def f(x):\n    '# torchlint: hot[per-batch]'\n    LOOK(1)", (), Frequency.UNKNOWN),
        ("class A:\n  def f(self, x):\n    LOOK(1)", ("f",), Frequency.UNKNOWN),
    ],
)
def test_what_is_declared_of_a_function_holds(code: str, hot: tuple[str, ...], frequency: Frequency) -> None:
    node, context = look(HEAD + code, hot)
    assert context.frequency(node) is frequency


@pytest.mark.parametrize(
    ("class_", "method", "frequency"),
    [
        ("AverageMeter", "update", Frequency.BATCH),
        ("AverageMeter", "reset", Frequency.UNKNOWN),
        ("Buffer", "update", Frequency.CALL),
    ],
)
def test_meters_are_updated_with_each_batch(class_: str, method: str, frequency: Frequency) -> None:
    node, context = look(f"class {class_}:\n    def {method}(self, x):\n        LOOK(1)")
    assert context.frequency(node) is frequency


def test_a_comment_at_the_head_of_a_file_declares_its_first_statement_alone() -> None:
    comment = "# torchlint: hot[per-batch]"
    node, context = look(f"{comment}\ndef f(x):\n    LOOK(1)")
    assert context.frequency(node) is Frequency.BATCH
    node, context = look(f"{comment}\nimport torch\ndef f(x):\n    LOOK(1)")
    assert context.frequency(node) is Frequency.UNKNOWN


# A network that makes what it is given next, by another method of it.
SAMPLER = """
class Diffusion:
    def __init__(self):
        self.net = nn.Linear(8, 8)
    def p_sample(self, x, t):
        return self.{called}(x)
    def other(self, x):
        return self.{inner}(x)
    def sample(self, x):
        for t in range(50):
            x = self.p_sample(x, t)
            LOOK(1)
"""


# From each position on, a network makes some more.
GROWN = """
net = nn.Linear(8, 8)
def grow(x):
    for i in range(9):
        x = net(x)
    return x
def f(x):
    {size}
    for t in range(1, n):
        grow(x[:, :t])
        LOOK(1)
"""


@pytest.mark.parametrize(
    ("code", "frequency"),
    [
        # Loops that look at a loader now and then are none over epochs for that.
        (
            (
                "net = nn.Linear(8, 8)\nfor t, x in enumerate(xs):\n    net(x)\n    LOOK(1)\n"
                "    if t % 1000 == 0:\n        for y in loader:\n            f(y)"
            ),
            Frequency.BATCH,
        ),
        (
            (
                "net = nn.Linear(8, 8)\nfor t, x in enumerate(xs):\n    net(x)\n    LOOK(1)\n"
                "    for y in loader:\n        f(y)"
            ),
            Frequency.EPOCH,
        ),
        # What begins episodes is an environment, whatever becomes of what its step gives.
        (
            (
                "def f(env):\n    state = env.reset()\n    for t in range(n):\n        state = env.step(act(state))\n"
                "        LOOK(1)\nf(env)"
            ),
            Frequency.BATCH,
        ),
        (
            (
                "def f(env):\n    env.reset()\n    for t in range(n):\n        state = env.step(act(state))\n"
                "        LOOK(1)\nf(env)"
            ),
            Frequency.UNKNOWN,
        ),
        (SAMPLER.format(called="net", inner="net"), Frequency.BATCH),
        (SAMPLER.format(called="other", inner="net"), Frequency.BATCH),
        (SAMPLER.format(called="other", inner="p_sample"), Frequency.UNKNOWN),
        # A parameter that is handed a limit in some calls, and nothing in others.
        (
            (
                "def f(x, log):\n    if log:\n        LOOK(1)\n"
                "for i, x in enumerate(loader):\n    f(x, i % 9 == 0)\n    f(x, False)\n    f(x, None)"
            ),
            Frequency.EPOCH,
        ),
        (
            "def f(x, log):\n    if log:\n        LOOK(1)\nfor i, x in enumerate(loader):\n    f(x, False)",
            Frequency.BATCH,
        ),
        ("for x in loader:\n    for i in range(x.shape[axis]):\n        LOOK(1)", Frequency.SAMPLE),
        # Positions of a tensor are no epochs, whatever is done for each.
        (GROWN.format(size="n = x.shape[1]"), Frequency.BATCH),
        (GROWN.format(size="b, n = x.size()"), Frequency.BATCH),
        (GROWN.format(size="b, n = x.shape[0], x.shape[1]"), Frequency.BATCH),
        (GROWN.format(size="n = count()"), Frequency.EPOCH),
    ],
)
def test_what_a_turn_is_by_what_it_does(code: str, frequency: Frequency) -> None:
    node, context = look(HEAD + code)
    assert context.frequency(node) is frequency


@pytest.mark.parametrize(
    ("code", "is_of_the_first_time"),
    [
        ("if key not in self.kept:\n    self.kept[key] = LOOK(1)", True),
        ("if key in self.kept:\n    self.kept[key] = LOOK(1)", False),
        ("def f():\n    return LOOK(1)\nif key not in self.kept:\n    self.kept[key] = f()", True),
        ("def f():\n    return LOOK(1)\nif key not in self.kept:\n    self.kept[key] = f()\nf()", False),
        ("def f():\n    return LOOK(1)", False),
        ("kept = {}\ndef f(n):\n    if n not in kept:\n        kept[n] = LOOK(1)", True),
        ("kept = dict()\ndef f(n):\n    if n not in kept:\n        kept[n] = LOOK(1)", True),
        ("kept = load()\ndef f(n):\n    if n not in kept:\n        kept[n] = LOOK(1)", False),
        ("def f(n):\n    kept = {}\n    if n not in kept:\n        kept[n] = LOOK(1)", False),
        # Who calls these, and when, is not in sight.
        ("if key not in self.kept:\n    self.kept[key] = lambda: LOOK(1)", False),
        ("class A:\n    kept = LOOK(1)", False),
    ],
)
def test_what_runs_where_something_is_made(code: str, is_of_the_first_time: bool) -> None:  # noqa: FBT001
    node, context = look(code)
    assert context.frequencies.is_of_the_first_time(node) is is_of_the_first_time


@pytest.mark.parametrize(
    ("code", "is_limited"),
    [
        ("for i, x in enumerate(loader):\n    if i % 100 == 0:\n        LOOK(1)", True),
        ("for i, x in enumerate(loader):\n    if i % 100 == 0:\n        for name in names:\n            LOOK(1)", True),
        ("for i, x in enumerate(loader):\n    for name in names:\n        LOOK(1)", False),
        ("for i in steps:\n    if i % 100 == 0:\n        for x in loader:\n            LOOK(1)", False),
        ("for x in loader:\n    if t - self.last >= n:\n        LOOK(1)\n        self.last = t", True),
        ("for x in loader:\n    if (t - last) / n > 1.0:\n        last = t\n        LOOK(1)", True),
        ("for x in loader:\n    if time.time() - last > 5:\n        LOOK(1)\n        last = time.time()", True),
        ("for x in loader:\n    if t >= self.next:\n        LOOK(1)\n        self.next += n", True),
        ("for x in loader:\n    if t >= mark:\n        LOOK(1)\n        mark = t + n", True),
        ("for x in loader:\n    if t - self.last >= n:\n        LOOK(1)\n    self.last = t", False),
        ("for x in loader:\n    if t - self.last < n:\n        LOOK(1)\n        self.last = t", False),
        ("for x in loader:\n    if score >= best:\n        LOOK(1)\n        best = score", False),
        ("for x in loader:\n    if t - last >= n:\n        loss.backward()\n        LOOK(1)\n        last = t", False),
    ],
)
def test_what_runs_at_some_turns_only(code: str, is_limited: bool) -> None:  # noqa: FBT001
    node, context = look(code)
    assert context.frequencies.is_rate_limited(node) is is_limited


@pytest.mark.parametrize(
    ("over", "called", "is_of_epochs"),
    [
        ("i, part in enumerate(net.qs)", "part[0]", False),
        ("i, part in enumerate(net.qs)", "part", False),
        ("i in range(steps)", "net.head", True),
    ],
)
def test_a_function_that_goes_over_parts_of_a_network_takes_no_batches(
    over: str,
    called: str,
    is_of_epochs: bool,  # noqa: FBT001
) -> None:
    """A loop that calls it has batches, and no epochs."""
    code = f"""
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.qs = nn.ModuleList()
        self.head = nn.Sequential(nn.Linear(8, 8))
        self.qs.append(nn.Sequential(nn.Linear(8, 8)))
def separated(net: Net, x):
    for {over}:
        x = {called}(x)
    return x
class Stream:
    def feed(self, net: Net):
        while self.pending.shape[1] >= 9:
            LOOK(separated(net, self.pending))
"""
    node, context = look(code)
    loop = context.loop(node)
    assert loop is not None
    assert (context.frequencies.loop_kind(loop).name == "EPOCH") is is_of_epochs


TOLD_TWICE = """
def mark(x):
    LOOK(1)
mark(a)
{more}
"""


@pytest.mark.parametrize(
    ("more", "frequency"),
    [
        ("", Frequency.ONCE),
        ("mark(b)", Frequency.ONCE),
        ("for label in range(10):\n    mark(label)", Frequency.UNKNOWN),
        ("for label in range(10):\n    mark(label)\n    break", Frequency.ONCE),
    ],
)
def test_called_once_here_and_in_a_loop_there(more: str, frequency: Frequency) -> None:
    node, context = look(TOLD_TWICE.format(more=more))
    assert context.frequency(node) is frequency


STEP = """
import torch
from torch.utils.data import DataLoader
def train(x, y):
    LOOK(1)
    hidden, loss = None, 0
    for place in range(20):
        out, hidden = model(x[:, place], hidden)
        loss += criterion(out, y[:, place])
    loss.backward()
    optimizer.step()
def generate():
    for place in range(20):
        x = model(x)
for epoch in range(1, epochs + 1):
    {body}
"""


@pytest.mark.parametrize(
    ("body", "is_a_step"),
    [
        ("train(x, y)", True),
        ("train(x, y)\n    if epoch % 100 == 0:\n        generate()", True),
        ("train(x, y)\n    generate()", False),
        ("for x, y in DataLoader(data):\n        train(x, y)", False),
    ],
)
def test_an_epoch_that_is_one_step_of_many(body: str, *, is_a_step: bool) -> None:
    node, context = look(STEP.format(body=body))
    assert context.frequencies.is_epoch_by_name(node) is is_a_step


MAPPED = """
import torch
class Buffer:
    def moved(self, array):
        LOOK(1)
    def sample(self, arrays):
        {given}
def train(buffer: Buffer):
    for x in loader:
        buffer.sample(x)
        f(x).backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("given", "frequency"),
    [
        ("return tuple(map(self.moved, arrays))", Frequency.BATCH),
        ("return sorted(arrays, key=self.moved)", Frequency.BATCH),
        ("return tuple(map(arrays.moved, arrays))", Frequency.UNKNOWN),
        ("return map(arrays, self.moved)", Frequency.UNKNOWN),
    ],
)
def test_a_function_that_map_runs(given: str, frequency: Frequency) -> None:
    node, context = look(MAPPED.format(given=given))
    assert context.frequency(node) is frequency


# A generator, and what goes over what it gives.
GIVEN = """
def batches(x, size):
    {loop}
        LOOK(1)
        {given}
"""


# What a small network drafts piece by piece, and a large one looks at.
DRAFTED = """
small, large = nn.Linear(8, 8), nn.Linear(8, 8)
while len(out) < n:
    for {inner}:
        {first}
    {last}
    LOOK(1)
"""


@pytest.mark.parametrize(
    ("inner", "first", "last", "frequency"),
    [
        ("_ in range(gamma)", "y = small(y)", "y = large(y)", Frequency.BATCH),
        # A game, an epoch, and one with a look at what came of it.
        ("_ in range(gamma)", "y = small(y)", "out.append(y)", Frequency.EPOCH),
        ("y in loader", "small(y)", "large(x)", Frequency.EPOCH),
        ("_ in range(gamma)", "small(y).backward()", "large(x)", Frequency.EPOCH),
        ("epoch in range(gamma)", "small(y)", "large(x)", Frequency.EPOCH),
    ],
)
def test_a_loop_that_runs_a_network_beside_others(inner: str, first: str, last: str, frequency: Frequency) -> None:
    node, context = look(HEAD + DRAFTED.format(inner=inner, first=first, last=last))
    assert context.frequency(node) is frequency


@pytest.mark.parametrize(
    ("code", "frequency"),
    [
        (GIVEN.format(loop="for i in range(0, len(x), size):", given="yield x[i : i + size]"), Frequency.BATCH),
        (GIVEN.format(loop="while begin(size):", given="yield torch.tensor(x[a:b]).to(d), y[a:b]"), Frequency.BATCH),
        (
            GIVEN.format(
                loop="for i in count():", given="rows = torch.randperm(9)\n        y = x[rows]\n        yield y"
            ),
            Frequency.BATCH,
        ),
        (
            GIVEN.format(loop="for i in count():", given="yield f(x)") + "for y in batches(x, 3):\n    g(y).backward()",
            Frequency.BATCH,
        ),
        (
            GIVEN.format(loop="for i in count():", given="yield f(x)")
            + "for i, y in enumerate(batches(x, 3)):\n    g(y).backward()",
            Frequency.BATCH,
        ),
        # Names of weights, lines of a file, what nobody goes over.
        (GIVEN.format(loop="for name in names:", given="yield name, x[name]"), Frequency.UNKNOWN),
        (
            GIVEN.format(loop="for i in count():", given="yield f(x)") + "for y in batches(x, 3):\n    print(y)",
            Frequency.UNKNOWN,
        ),
        (GIVEN.format(loop="for i in count():", given="kept.append(x[i:9])"), Frequency.UNKNOWN),
    ],
)
def test_a_loop_that_hands_out_batches(code: str, frequency: Frequency) -> None:
    node, context = look(HEAD + code)
    assert context.frequency(node) is frequency


@pytest.mark.parametrize(
    ("every", "frequency"),
    [
        ("every = 1", Frequency.BATCH),
        ("every = 1\nif slow:\n    every = 2", Frequency.BATCH),
        ("every = 100", Frequency.EPOCH),
        ("every = 1\nif slow:\n    every = 100", Frequency.EPOCH),
        ("every = read()", Frequency.EPOCH),
        ("every, other = 1, 2", Frequency.EPOCH),
        ("", Frequency.EPOCH),
    ],
)
def test_every_so_many_steps_by_a_name(every: str, frequency: Frequency) -> None:
    node, context = look(
        f"{HEAD}{every}\nfor i, x in enumerate(DataLoader(d)):\n    if i % every == 0:\n        LOOK(1)"
    )
    assert context.frequency(node) is frequency


def test_every_so_many_steps_by_a_parameter() -> None:
    node, context = look(
        f"{HEAD}def f(loader, every=1):\n    for i, x in enumerate(DataLoader(d)):\n        if i % every == 0:\n            LOOK(1)"
    )
    assert context.frequency(node) is Frequency.EPOCH


@pytest.mark.parametrize(
    ("count", "frequency"),
    [
        ("range(0, params.epoch_size, params.batch_size)", Frequency.BATCH),
        ("range(steps_per_epoch)", Frequency.BATCH),
        ("range(params.epochs)", Frequency.EPOCH),
    ],
)
def test_how_large_an_epoch_is_counts_none(count: str, frequency: Frequency) -> None:
    node, context = look(f"{HEAD}for i in {count}:\n    LOOK(1)\n    f(x).backward()\n    optimizer.step()\n")
    assert context.frequency(node) is frequency
