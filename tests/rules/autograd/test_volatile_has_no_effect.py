"""TL402: volatile variables that a model takes with autograd on; that the flag does nothing, on CPU torch."""

from __future__ import annotations

import pytest
import torch
from laws import check_snippet
from twins import fixed

from torchlint.finding import Applicability

RULE = "volatile-has-no-effect"
OTHER = "eval-without-no-grad"
IMPORTS = "import torch\nfrom torch.autograd import Variable\n"


@pytest.mark.parametrize(
    ("code", "after"),
    [
        (
            (
                "def score(model, x):\n    out = model(Variable(x, volatile=True))  # <- volatile-has-no-effect\n"
                "    return out.data\n"
            ),
            "def score(model, x):\n    with torch.no_grad():\n        out = model(Variable(x))\n    return out.data\n",
        ),
        (
            (
                "def score(model, x):\n    x = Variable(x.cuda(), False, True)  # <- volatile-has-no-effect\n"
                "    return model(x[:4]).data\n"
            ),
            (
                "def score(model, x):\n    x = Variable(x.cuda(), False)\n    with torch.no_grad():\n"
                "        return model(x[:4]).data\n"
            ),
        ),
        (
            (
                "def score(model, x, y):\n    x, y = Variable(x, volatile=True), Variable(y)  # <- volatile-has-no-effect\n"
                "    x = x.cuda()\n    print(model(x).data, y)\n"
            ),
            (
                "def score(model, x, y):\n    x, y = Variable(x), Variable(y)\n    x = x.cuda()\n"
                "    with torch.no_grad():\n        print(model(x).data, y)\n"
            ),
        ),
        (
            (
                "def score(model, x):\n    a = Variable(x, volatile=True)  # <- volatile-has-no-effect\n"
                "    b = Variable(x + 1, volatile=True)  # <- volatile-has-no-effect\n    return model(a, b).data\n"
            ),
            (
                "def score(model, x):\n    a = Variable(x)\n    b = Variable(x + 1)\n    with torch.no_grad():\n"
                "        return model(a, b).data\n"
            ),
        ),
        (
            (
                "def score(model, x):\n    v = Variable(  # <- volatile-has-no-effect\n        x,\n"
                "        volatile=True,  # no graph\n    )\n    return model(v).data\n"
            ),
            (
                "def score(model, x):\n    v = Variable(\n        x,\n        volatile=True,  # no graph\n    )\n"
                "    with torch.no_grad():\n        return model(v).data\n"
            ),
        ),
    ],
)
def test_a_model_takes_it(code: str, after: str) -> None:
    check_snippet(IMPORTS + code, RULE, fixed=IMPORTS + after)


def test_a_function_that_only_evaluates_is_decorated_and_reported_once() -> None:
    check_snippet(
        """
        import torch
        from torch.autograd import Variable
        def test(model, loader):
            model.eval()
            for x, y in loader:
                x = Variable(x, volatile=True)  # <- volatile-has-no-effect
                print((model(x).argmax(1) == y).sum())
        """,
        RULE,
        OTHER,
        fixed="""
        import torch
        from torch.autograd import Variable
        @torch.no_grad()
        def test(model, loader):
            model.eval()
            for x, y in loader:
                x = Variable(x)
                print((model(x).argmax(1) == y).sum())
        """,
    )


def test_of_a_network_that_does_not_learn_here() -> None:
    check_snippet(
        """
        import torch
        from torch.autograd import Variable
        def train(netG, netD, noise, optimizer):
            noise = Variable(noise, volatile=True)  # <- volatile-has-no-effect
            fake = Variable(netG(noise).data)
            netD(fake).mean().backward()
            optimizer.step()
        """,
        RULE,
        fixed="""
        import torch
        from torch.autograd import Variable
        def train(netG, netD, noise, optimizer):
            noise = Variable(noise)
            with torch.no_grad():
                fake = Variable(netG(noise).data)
            netD(fake).mean().backward()
            optimizer.step()
        """,
    )


@pytest.mark.parametrize(
    "line",
    [
        "return model(Variable(x, volatile=False))",
        "return model(Variable(x, volatile=flag))",
        "return model(Variable(x))",
        "return criterion(model(x), Variable(y, volatile=True))",
        "v = Variable(x, volatile=True)\n    return v",
        "v = Variable(x, volatile=True)\n    v = x\n    return model(v)",
        "v = Variable(x, volatile=True)\n    with torch.no_grad():\n        return model(v)",
        "v = Variable(x, volatile=True)\n    return [lambda: model(v)]",
        "v = Variable(x, volatile=True)\n    return model(v.data.numpy())",
    ],
)
def test_no_matter(line: str) -> None:
    check_snippet(f"{IMPORTS}def f(model, x, y, flag):\n    {line}\n", RULE)


def test_the_flag_does_nothing() -> None:
    layer = torch.nn.Linear(2, 2)
    with pytest.warns(UserWarning, match="volatile was removed"):
        marked = torch.autograd.Variable(torch.ones(1, 2), volatile=True)
    assert layer(marked).requires_grad
    with torch.no_grad():
        assert not layer(marked).requires_grad


def test_further_lines_keep_their_indentation() -> None:
    before = """
def learn(model, states, mask, optimizer, values):
    if states:
        v = Variable(torch.cat([s for s in states
                                if s is not None]),
                     volatile=True)
        values[mask] = model(v).max(1)[0]
        criterion(model(states), values).backward()
        optimizer.step()
"""
    after = """
def learn(model, states, mask, optimizer, values):
    if states:
        v = Variable(torch.cat([s for s in states
                                if s is not None]))
        with torch.no_grad():
            values[mask] = model(v).max(1)[0]
        criterion(model(states), values).backward()
        optimizer.step()
"""
    assert fixed(IMPORTS + before, RULE, Applicability.UNSAFE) == IMPORTS + after


def test_what_becomes_of_the_graph() -> None:
    result = check_snippet(
        """
        import torch
        from torch.autograd import Variable


        def step(model, later, rewards, optimizer):
            values = model(Variable(later, volatile=True)).max(1)[0]  # <- volatile-has-no-effect
            (values + rewards).mean().backward()
            optimizer.step()


        def act(model, state):
            return model(Variable(state, volatile=True)).data.max(1)[1]  # <- volatile-has-no-effect
        """,
        RULE,
    )
    first, second = (finding.message for finding in result.findings)
    assert "graph that the backward pass may use" in first
    assert "graph that is never used" in second
