"""TL419: a backward pass that computes the gradients of a critic for nothing; what freezing it changes, on CPU torch."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch
from laws import active, check_snippet, lint, unmarked
from torch import nn

RULE = "critic-gradients-discarded"
HERE = f"  # <- {RULE}?"
HEAD = """\
import torch
from torch import nn, optim

G = nn.Linear(8, 8).cuda()
D = nn.Linear(8, 1).cuda()
opt_g = optim.Adam(G.parameters(), lr=1e-4)
opt_d = optim.Adam(D.parameters(), lr=1e-4)
for epoch in range(9):
    for real, z in loader:
"""
CRITIC = """\
        opt_d.zero_grad()
        (D(real).mean() - D(G(z).detach()).mean()).backward()
        opt_d.step()
"""
ACTOR = f"""\
        opt_g.zero_grad()
        loss = -D(G(z)).mean(){HERE}
        loss.backward()
        opt_g.step()
"""


def edited(code: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert old in code
        code = code.replace(old, new)
    return code


@pytest.mark.parametrize(
    "code",
    [
        HEAD + CRITIC + ACTOR,
        HEAD + ACTOR + CRITIC,
        # What it is given goes through names, and with its condition; there are several calls.
        HEAD
        + CRITIC
        + edited(
            ACTOR,
            (f"loss = -D(G(z)).mean(){HERE}", f"fake = G(z)\n        loss = -D(torch.cat([fake, z])).mean(){HERE}"),
        ),
        # Its gradients are limited where they are used.
        HEAD
        + edited(CRITIC, ("opt_d.step()", "nn.utils.clip_grad_norm_(D.parameters(), 1.0)\n        opt_d.step()"))
        + ACTOR,
        HEAD + edited(CRITIC, ("opt_d.zero_grad()", "D.zero_grad()")) + ACTOR,
        HEAD
        + CRITIC
        + edited(ACTOR, ("loss.backward()", "scaler.scale(loss).backward()"), ("opt_g.step()", "scaler.step(opt_g)")),
    ],
)
def test_gradients_that_are_zeroed_before_they_are_used(code: str) -> None:
    check_snippet(code, RULE)


AGENT = f"""\
import torch
from torch import nn
class Agent:
    def __init__(self, device):
        self.actor, self.critic = nn.Linear(3, 3).to(device), nn.Linear(3, 3).to(device)
        self.first = torch.optim.Adam(self.actor.parameters())
        self.second = torch.optim.Adam(self.critic.parameters())
    def improve(self, state):
        loss = -self.critic(self.actor(state)).mean(){HERE}
        self.first.zero_grad()
        loss.backward()
        self.first.step()
    def judge(self, state, value):
        loss = (self.critic(state) - value).square().mean()
        self.second.zero_grad()
        loss.backward()
        self.second.step()
def main(agent, buffer):
    for state, value in buffer.batches():
        agent.judge(state, value)
        agent.improve(state)
"""


def test_methods_of_their_own() -> None:
    check_snippet(AGENT, RULE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("self.second.zero_grad()\n        loss.backward()", "loss.backward()"),
        # The pass may run in between.
        ("self.second.zero_grad()", "self.second.zero_grad()\n        self.improve(state)"),
        ("self.second.zero_grad()", "self.second.zero_grad()\n        other.improve(state)"),
    ],
)
def test_what_the_pass_leaves_may_be_used_by_another_method(old: str, new: str) -> None:
    check_snippet(unmarked(edited(AGENT, (old, new))), RULE)


def test_all_calls_of_it_are_one_finding() -> None:
    code = unmarked(HEAD + CRITIC + edited(ACTOR, ("-D(G(z)).mean()", "-D(G(z)).mean() - D(G(-z)).mean()")))
    [finding] = lint(code, active(RULE)).findings
    assert (
        finding.message
        == "`loss.backward()` also computes gradients for `D` every batch, which `opt_d.zero_grad()` discards"
    )
    assert len(finding.places) == 1


@pytest.mark.parametrize(
    "code",
    [
        # It is frozen meanwhile, in one way or another.
        HEAD
        + CRITIC
        + edited(ACTOR, ("loss = ", "D.requires_grad_(False)\n        loss = "))
        + "        D.requires_grad_(True)\n",
        HEAD + CRITIC + edited(ACTOR, ("loss = ", "set_requires_grad(D, False)\n        loss = ")),
        HEAD + CRITIC + edited(ACTOR, ("loss = ", "for p in D.parameters(): p.requires_grad = False\n        loss = ")),
        # The pass serves it, too; or its gradients go into the next step.
        HEAD + "        opt_d.zero_grad()\n" + edited(ACTOR, ("opt_g.step()", "opt_g.step()\n        opt_d.step()")),
        HEAD + edited(CRITIC, ("        opt_d.zero_grad()\n", "")) + ACTOR,
        HEAD + edited(CRITIC, ("opt_d.zero_grad()", "if epoch: opt_d.zero_grad()")) + ACTOR,
        # No gradient gets to what is trained through it.
        HEAD + CRITIC + edited(ACTOR, ("-D(G(z)).mean()", "(G(z) * D(real).detach()).mean()")),
        HEAD + CRITIC + edited(ACTOR, ("-D(G(z)).mean()", "G(z).mean()")),
        # It has parameters of the other.
        edited(HEAD, ("D = nn.Linear(8, 1).cuda()", "D = nn.Sequential(G, nn.Linear(8, 1)).cuda()")) + CRITIC + ACTOR,
        # It is not trained here.
        edited(HEAD, ("opt_d = optim.Adam(D.parameters(), lr=1e-4)", "opt_d = make(D)")) + CRITIC + ACTOR,
    ],
)
def test_gradients_that_are_used_or_not_computed(code: str) -> None:
    check_snippet(unmarked(code), RULE)


def test_a_pass_that_is_made_once() -> None:
    code = HEAD + CRITIC + ACTOR
    once = code.replace("for epoch in range(9):\n    for real, z in loader:", "if True:\n    if True:")
    check_snippet(unmarked(once), RULE)


def test_what_is_trained_comes_out_the_same() -> None:
    torch.manual_seed(0)
    actor, critic, state = nn.Linear(3, 3), nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3)), torch.rand(5, 3)
    other, judge = deepcopy(actor), deepcopy(critic)
    (-critic(actor(state)).square().mean()).backward()
    judge.requires_grad_(requires_grad=False)
    (-judge(other(state)).square().mean()).backward()
    judge.requires_grad_(requires_grad=True)
    assert actor.weight.grad is not None
    assert other.weight.grad is not None
    torch.testing.assert_close(actor.weight.grad, other.weight.grad, rtol=0, atol=0)
    torch.testing.assert_close(critic.state_dict(), judge.state_dict(), rtol=0, atol=0)
    assert all(parameter.grad is not None for parameter in critic.parameters())
    assert all(parameter.grad is None for parameter in judge.parameters())
