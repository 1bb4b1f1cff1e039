"""TL316: a distribution of device tensors that is made at each batch and may check them is flagged, and told not to."""

from __future__ import annotations

import pytest
from laws import check_snippet

RULE = "distribution-arg-validation"
MARK = "  # <- distribution-arg-validation"


def module(line: str, first: str = "from torch.distributions import Beta, Categorical, Normal, Uniform") -> str:
    """A network that makes a distribution of its outputs."""
    return (
        f"import torch\n{first}\nfrom torch import nn\n\n\n"
        "class Net(nn.Module):\n"
        "    def forward(self, x: torch.Tensor, std: torch.Tensor, options):\n"
        f"        return {line}\n"
    )


@pytest.mark.parametrize(
    ("line", "fixed"),
    [
        ("Categorical(logits=x)", "Categorical(logits=x, validate_args=False)"),
        ("Categorical(x).log_prob(std)", "Categorical(x, validate_args=False).log_prob(std)"),
        ("Normal(x, std).rsample()", "Normal(x, std, validate_args=False).rsample()"),
        ("Normal(x, 1.0).rsample()", "Normal(x, 1.0, validate_args=False).rsample()"),
        ("Uniform(0, std)", "Uniform(0, std, validate_args=False)"),
        ("torch.distributions.Beta(x, std)", "torch.distributions.Beta(x, std, validate_args=False)"),
        ("torch.distributions.normal.Normal(x, std)", "torch.distributions.normal.Normal(x, std, validate_args=False)"),
        (
            "torch.distributions.MultivariateNormal(x, scale_tril=std)",
            "torch.distributions.MultivariateNormal(x, scale_tril=std, validate_args=False)",
        ),
    ],
)
def test_at_each_batch(line: str, fixed: str) -> None:
    check_snippet(module(line + MARK), RULE, fixed=module(fixed))


@pytest.mark.parametrize(
    "line",
    [
        "Normal(x, std, validate_args=False)",
        "Normal(x, std, validate_args=True)",
        "Normal(x, std, False)",
        "Categorical(x, None, False)",
        "Normal(x, std, **options)",
        "Normal(*options)",
        "Beta(0.8, 0.8)",
        "Normal(torch.zeros(3), torch.ones(3))",
        "Normal(x.cpu(), std.cpu())",
        "Categorical(logits=x).sample().item()",
        "Normal(x, std).rsample().detach().cpu().numpy()",
        "torch.distributions.OneHotCategorical(logits=x)",
        "torch.distributions.MultivariateNormal(x, precision_matrix=std)",
        "torch.distributions.LowRankMultivariateNormal(x, std, std[:, 0])",
        "torch.distributions.RelaxedBernoulli(0.5, logits=x)",
        "nn.init.normal_(x)",
    ],
)
def test_decided_or_elsewhere(line: str) -> None:
    check_snippet(module(line), RULE)


@pytest.mark.parametrize(
    ("line", "mark"),
    [
        ("torch.inverse(x)", MARK + "?"),
        ("x.inverse()", MARK + "?"),
        ("torch.linalg.inv(A=x)", MARK + "?"),
        ("torch.linalg.cholesky(x @ x.mT)", MARK + "?"),
        ("torch.linalg.solve(x, std)", MARK + "?"),
        ("torch.linalg.inv_ex(x)", ""),
        ("torch.linalg.inv(torch.eye(4))", ""),
        ("torch.linalg.inv(x.cpu())", ""),
        ("torch.linalg.inv(x).cpu().numpy()", ""),
        ("options.inverse()", ""),
        ("options.linalg.inv(x)", ""),
        ("torch.linalg.inv()", ""),
    ],
)
def test_what_looks_whether_there_is_a_result(line: str, mark: str) -> None:
    check_snippet(module(line + mark), RULE)


def test_a_guess_is_not_worth_a_word() -> None:
    code = """import torch


def turned(pose: torch.Tensor):
    return torch.inverse(pose)


def turned_again(pose: torch.Tensor, angles):
    for angle in angles:
        pose = torch.inverse(pose) * angle  # <- distribution-arg-validation?
    return pose
"""
    check_snippet(code, RULE)


@pytest.mark.parametrize(
    ("covariance", "mark"),
    [
        ("torch.diag(std)", MARK),
        ("torch.diag_embed(std)", MARK),
        ("torch.diag(std).unsqueeze(0)", MARK),
        ("std @ std.T", MARK + "?"),
        ("torch.eye(3)", ""),
        ("torch.diag(std), validate_args=False", MARK),
    ],
)
def test_a_covariance_of_which_the_factor_is_taken(covariance: str, mark: str) -> None:
    check_snippet(module(f"torch.distributions.MultivariateNormal(x, {covariance}){mark}"), RULE)


def test_switched_off_for_all() -> None:
    first = "from torch.distributions import Distribution, Normal\nDistribution.set_default_validate_args(False)"
    check_snippet(module("Normal(x, std)", first), RULE)


def test_of_another_package() -> None:
    check_snippet(module("Normal(x, std)", "from mine.distributions import Normal"), RULE)


def test_through_a_helper() -> None:
    check_snippet(
        """
        import torch
        import torch.distributions as td
        def choose(logits: torch.Tensor):
            return td.Categorical(logits=logits)  # <- distribution-arg-validation
        def once(logits: torch.Tensor):
            return td.Categorical(logits=logits)  # <- distribution-arg-validation?
        def train(policy, loader, optimizer, device):
            for states, actions in loader:
                loss = -choose(policy(states.to(device))).log_prob(actions.to(device)).mean()
                loss.backward()
                optimizer.step()
        """,
        RULE,
    )


def test_a_branch_for_others() -> None:
    check_snippet(
        """
        import torch
        from torch.distributions import Bernoulli
        from torch import nn


        class Drops(nn.Module):
            def _prepare(self, rate: torch.Tensor, soft, fast=True):
                if soft:
                    self.noise = Bernoulli(rate + 1)  # <- distribution-arg-validation
                elif not fast:
                    self.noise = Bernoulli(rate / 2)
                else:
                    self.noise = Bernoulli(rate)

            def reset(self, rate, soft):
                self._prepare(rate, soft)

            def forward(self, x):
                self._prepare(x.mean(), soft=True)
                return self.noise.sample() * x
        """,
        RULE,
    )


def test_one_for_each_device() -> None:
    check_snippet(
        """
        import torch
        from torch.distributions import Normal
        from torch import nn
        KEPT = {}
        class Noisy(nn.Module):
            def forward(self, x: torch.Tensor):
                noise = KEPT.get(x.device)
                if noise is None:
                    noise = Normal(torch.zeros(1, device=x.device), torch.ones(1, device=x.device)).sample
                    KEPT[x.device] = noise
                return x + noise(x.shape)
        """,
        RULE,
    )


@pytest.mark.parametrize("first", ["run = torch.compile(print)", "@torch.compile\ndef run(x):\n    return x"])
def test_the_first_compilation_switches_the_checks_off(first: str) -> None:
    check_snippet(module("Normal(x, std)", f"from torch.distributions import Normal\n{first}"), RULE)
    check_snippet(
        module(f"Normal(x, std){MARK}", "import re\nfrom torch.distributions import Normal\nre.compile('a')"), RULE
    )


@pytest.mark.parametrize(
    ("read", "mark"), [("drawn.item()", ""), ("drawn.detach().cpu()", ""), ("drawn.float()", MARK), ("drawn", MARK)]
)
def test_what_is_drawn_is_read(read: str, mark: str) -> None:
    check_snippet(
        f"""
        import torch
        from torch import nn
        from torch.distributions import Categorical
        class Acts(nn.Module):
            def forward(self, x: torch.Tensor):
                policy = Categorical(logits=x){mark}
                drawn = policy.sample(){mark and mark + "?"}
                self.last = {read}
                return policy.log_prob(drawn)
        """,
        RULE,
    )


DRAWS = """
import torch
def generate(model, tokens: torch.Tensor, count, twice=True):
    model.cuda()
    tokens = tokens.cuda()
    for _ in range(count):
        p = torch.softmax(model(tokens)[:, -1], -1)
        {line}
        tokens = torch.cat([tokens, drawn], 1)
    return tokens
"""


@pytest.mark.parametrize(
    "line",
    [
        "drawn = torch.multinomial(p, 1)",
        "drawn = torch.multinomial(p, num_samples=1, replacement=True)",
        "drawn = torch.multinomial(p, count)",
        "drawn = p.multinomial(1)",
        "drawn = p.multinomial(num_samples=count, replacement=False)",
        "policy = torch.distributions.Categorical(p, validate_args=False)\n        drawn = policy.sample()",
    ],
)
def test_a_draw_that_checks(line: str) -> None:
    (found,) = check_snippet(DRAWS.format(line=f"{line}{MARK}?"), RULE).findings
    assert "twice" in found.message
    assert ("topk" in found.help) is ("count" in line)


@pytest.mark.parametrize(
    "line",
    [
        "drawn = torch.normal(0, p)",
        "drawn = torch.normal(mean=p, std=p)",
        "noise = torch.distributions.Normal(0, p, validate_args=False)\n        drawn = noise.sample()",
    ],
)
def test_a_draw_of_a_normal_distribution(line: str) -> None:
    (found,) = check_snippet(DRAWS.format(line=f"{line}{MARK}?"), RULE).findings
    assert "its standard deviation every batch, which synchronizes with the GPU" in found.message
    assert "randn_like" in found.help


def test_the_values_that_a_distribution_checks() -> None:
    line = (
        f"policy = torch.distributions.Bernoulli(p){MARK}\n        drawn = policy.sample()\n"
        "        loss = policy.log_prob(drawn) + policy.entropy()"
    )
    (found,) = check_snippet(DRAWS.format(line=line), RULE).findings
    assert len(found.places) == 1


@pytest.mark.parametrize(
    "line",
    [
        "drawn = torch.multinomial(p, count, replacement=True)",
        "drawn = torch.multinomial(p, count, replacement=twice)",
        "drawn = torch.multinomial(p.cpu(), 1)",
        "drawn = torch.multinomial(*p)",
        "drawn = torch.multinomial(p, 1); last = drawn.item()",
        "drawn = count.multinomial(1)",
        "drawn = torch.normal(p, 1.0)",
        "drawn = torch.distributions.Bernoulli(p, validate_args=False).sample()",
        "drawn = torch.distributions.Normal(0, p, validate_args=False).rsample()",
        "drawn = count.sample()",
    ],
)
def test_a_draw_that_does_not_or_is_read_anyway(line: str) -> None:
    check_snippet(DRAWS.format(line=line), RULE)


def test_a_distribution_that_an_object_holds() -> None:
    code = """
        import torch
        from torch import nn
        from torch.distributions import Categorical


        class Policy(nn.Module):
            def forward(self, x: torch.Tensor):
                self.held = Categorical(logits=x)  # <- distribution-arg-validation
                return self.held.sample()  # <- distribution-arg-validation?

            def score(self, actions):
                return self.held.log_prob(actions), self.other.log_prob(actions)


        class Other:
            def score(self, actions):
                return self.held.log_prob(actions), self.held.sample()
        """
    found, _ = check_snippet(code, RULE).findings
    assert len(found.places) == 1
