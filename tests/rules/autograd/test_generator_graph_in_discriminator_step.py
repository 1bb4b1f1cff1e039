"""TL406: a discriminator's backward pass that goes on through the generator; what detaching changes, on CPU torch."""

from __future__ import annotations

import pytest
import torch
from laws import active, check_snippet, lint, unmarked
from torch import nn

from torchlint.finding import Applicability

RULE = "generator-graph-in-discriminator-step"
HERE = f"  # <- {RULE}"
HEAD = """
import torch
from torch import nn, optim
import torch.nn.functional as F

G = nn.Linear(8, 8).cuda()
D = nn.Linear(8, 1).cuda()
opt_g = optim.Adam(G.parameters(), lr=1e-4)
opt_d = optim.Adam(filter(lambda p: p.requires_grad, D.parameters()), lr=1e-4)
for epoch in range(9):
    for real, z in loader:
"""
GENERATOR = """
        opt_g.zero_grad()
        F.mse_loss(D(G(z)), ones).backward()
        opt_g.step()
"""
STEP = f"""
        opt_d.zero_grad()
        fake = G(z)
        loss = F.mse_loss(D(real), ones) + F.mse_loss(D(fake), zeros){HERE}
        loss.backward()
        opt_d.step()
"""


def indented(*parts: str) -> str:
    return HEAD + "".join(part.strip("\n") + "\n" for part in parts)


def edited(code: str, old: str, new: str) -> str:
    assert old in code
    return code.replace(old, new)


FOUND = {
    "in two passes": f"""
        D.zero_grad()
        F.mse_loss(D(real), ones).backward()
        fake = G(z)
        output = D(fake).view(-1){HERE}
        F.mse_loss(output, zeros).backward()
        opt_d.step()
""",
    "directly": f"""
        loss = D(real).mean() - D(G(z)).mean(){HERE}
        opt_d.zero_grad()
        loss.backward()
        opt_d.step()
""",
    "with its condition": f"""
        fake = G(z)
        score = D(torch.cat((real, fake), 1)){HERE}
        score.mean().backward()
        opt_d.step()
""",
    "scaled, one output of two": f"""
        fake, code = G(z)
        score, _ = D(fake){HERE}
        scaler.scale(score.mean()).backward()
        scaler.step(opt_d)
""",
    "some steps to one": f"""
        for _ in range(5):
            opt_d.zero_grad()
            fake = G(z)
            (D(fake).mean() - D(real).mean()).backward(){HERE}
            opt_d.step()
""",
}


@pytest.mark.parametrize("step", FOUND.values(), ids=FOUND)
def test_passes_through_a_generator_are_found(step: str) -> None:
    check_snippet(indented(step, GENERATOR), RULE)


def test_the_fix_detaches_what_is_passed() -> None:
    code = indented(STEP, GENERATOR)
    check_snippet(code, RULE, fixed=edited(unmarked(code), "D(fake)", "D(fake.detach())"))
    code = indented(FOUND["directly"], GENERATOR)
    check_snippet(code, RULE, fixed=edited(unmarked(code), "D(G(z)).mean()", "D(G(z).detach()).mean()"))
    code = indented(FOUND["with its condition"], GENERATOR)
    check_snippet(code, RULE, fixed=edited(unmarked(code), "(real, fake)", "(real, fake.detach())"))


def test_the_generator_may_come_first_or_rarely_or_be_zeroed_by_a_function() -> None:
    check_snippet(indented(GENERATOR, STEP), RULE)
    rarely = "        if step % 5 == 0:\n" + "".join(f"    {line}\n" for line in GENERATOR.strip("\n").split("\n"))
    check_snippet(indented(STEP, rarely), RULE)
    helper = "def reset():\n    opt_d.zero_grad()\n    opt_g.zero_grad()\n"
    code = edited(
        indented(STEP, edited(GENERATOR, "opt_g.zero_grad()", "reset()")), "for epoch", f"{helper}\nfor epoch"
    )
    check_snippet(code, RULE)


def test_a_class_that_trains_two_networks() -> None:
    code = f"""
    import torch
    from torch import nn

    class Trainer:
        def __init__(self, args):
            self.G, self.D = Generator(args), Discriminator(args)
            self.g_optim = torch.optim.Adam(self.G.parameters(), lr=args.lr)
            self.d_optim = torch.optim.Adam(self.D.parameters(), lr=args.lr)

        def train(self, loader):
            for x, z in loader:
                self.d_optim.zero_grad()
                fake = self.G(z)
                loss = self.bce(self.D(x), self.ones) + self.bce(self.D(fake), self.zeros){HERE}
                loss.backward()
                self.d_optim.step()
                self.G.zero_grad()
                self.bce(self.D(self.G(z)), self.ones).backward()
                self.g_optim.step()
    """
    check_snippet(code, RULE)


def test_networks_that_are_passed_to_a_function() -> None:
    code = f"""
    import torch

    def train(g, d, g_solver, d_solver, loader):
        for x, z in loader:
            fake = g(z)
            d_solver.zero_grad()
            (d(fake).mean() - d(x).mean()).backward(){HERE}
            d_solver.step()
            g_solver.zero_grad()
            (-d(g(z)).mean()).backward()
            g_solver.step()

    G, D = Generator(), Discriminator()
    train(G, D, torch.optim.SGD(G.parameters(), 0.1), torch.optim.SGD(D.parameters(), 0.1), loader)
    """
    check_snippet(edited(code, HERE, ""), RULE)  # optimizers without a name are not followed
    named = "g_opt = torch.optim.SGD(G.parameters(), 0.1)\n    d_opt = torch.optim.SGD(D.parameters(), 0.1)\n    train("
    code = edited(code, "torch.optim.SGD(G.parameters(), 0.1), torch.optim.SGD(D.parameters(), 0.1)", "g_opt, d_opt")
    check_snippet(edited(code, "    train(", f"    {named}"), RULE)


SILENT = {
    "never zeroed": (STEP, edited(GENERATOR, "opt_g.zero_grad()", "pass")),
    "zeroed now and then": (STEP, edited(GENERATOR, "opt_g.zero_grad()", "if epoch: opt_g.zero_grad()")),
    "zeroed behind its pass": (edited(GENERATOR, "opt_g.step()", "pass"), STEP, "        opt_g.step()"),
    "zeroed before both": ("        opt_g.zero_grad()", STEP, edited(GENERATOR, "opt_g.zero_grad()", "pass")),
    "detached": (edited(STEP, "D(fake)", "D(fake.detach())"), GENERATOR),
    "detached where it is made": (edited(STEP, "G(z)", "G(z).detach()"), GENERATOR),
    "detached in place": (edited(STEP, "fake = G(z)", "fake = G(z)\n        fake.detach_()"), GENERATOR),
    "made anew": (edited(STEP, "fake = G(z)", "fake = torch.autograd.Variable(G(z).data)"), GENERATOR),
    "no graph": (edited(STEP, "fake = G(z)", "with torch.no_grad():\n            fake = G(z)"), GENERATOR),
    "from a pool": (edited(STEP, "fake = G(z)", "fake = pool.query(G(z))"), GENERATOR),
    "penalised": (edited(STEP, "opt_d.zero_grad()", "opt_d.zero_grad(); s = torch.autograd.grad(e, fake)"), GENERATOR),
    "another way": (edited(STEP, "D(real), ones)", "D(real), ones) + fake.mean()"), GENERATOR),
    "frozen": (edited(STEP, "fake = G(z)", "G.requires_grad_(False)\n        fake = G(z)"), GENERATOR),
    "clipped": (STEP, "        nn.utils.clip_grad_norm_(G.parameters(), 1.0)", GENERATOR),
    "steps elsewhere": (STEP, GENERATOR, "def more():\n    opt_g.step()"),
    "a closure": (STEP, edited(GENERATOR, "opt_g.zero_grad()", "closure()")),
    "the last step is the generator's": (edited(STEP, "opt_d.step()", "opt_g.step(); opt_d.step()"), GENERATOR),
}


@pytest.mark.parametrize("parts", SILENT.values(), ids=SILENT)
def test_other_passes_are_not(parts: tuple[str, ...]) -> None:
    check_snippet(indented(*parts).replace(HERE, ""), RULE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            "opt_d = optim.Adam(filter(lambda p: p.requires_grad, D.parameters())",
            "opt_d = optim.Adam([*D.parameters(), *G.parameters()]",
        ),
        (
            "G = nn.Linear(8, 8).cuda()\nD = nn.Linear(8, 1).cuda()",
            "e = nn.Linear(8, 8)\nG = nn.Sequential(e)\nD = nn.Sequential(e)",
        ),
        ("opt_g = optim", "D.weight = G.weight\nopt_g = optim"),
        ("opt_g = optim.Adam(G.parameters(), lr=1e-4)", "opt_g = make(G)"),
    ],
    ids=["one optimizer for both", "a common part", "tied", "an unknown optimizer"],
)
def test_networks_that_have_something_in_common_are_not(old: str, new: str) -> None:
    check_snippet(edited(indented(STEP, GENERATOR), old, new).replace(HERE, ""), RULE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("        opt_g.zero_grad()", "        opt_g.zero_grad(set_to_none=False)"),
        ("loss.backward()", "loss.backward(retain_graph=True)"),
        ("for epoch", "G = nn.parallel.DistributedDataParallel(G)\nfor epoch"),
        ("for epoch", "G.register_full_backward_hook(log)\nfor epoch"),
        ("for epoch", "wandb.watch(G)\nfor epoch"),
        ("for epoch", "models = [G, D]\nfor epoch"),
        ("G = nn.Linear(8, 8).cuda()", "G = make_generator()"),
        ("D = nn.Linear(8, 1).cuda()", "D = make_discriminator()"),
        ("        opt_d.step()", "        log_gradients(G)\n        opt_d.step()"),
        ("        opt_d.step()", "        log_gradients(opt_g)\n        opt_d.step()"),
        ("        opt_d.step()", "        clip_grad_norm_(everything, 1.0)\n        opt_d.step()"),
        ("        opt_d.step()", "        print(G.weight.grad)\n        opt_d.step()"),
        ("        opt_d.step()", "        print(fake.grad_fn)\n        opt_d.step()"),
        ("        fake = G(z)", "        z.requires_grad_()\n        fake = G(z)"),
        ("        fake = G(z)", "        fake = G(z * scale)"),
        ("        fake = G(z)", "        fake = G(encoder(z))"),
        ("        fake = G(z)", "        fake = G(z * nn.Parameter(torch.ones(8)))"),
        ("        fake = G(z)", "        fake = G(self.codes)"),
    ],
)
def test_the_fix_is_unsafe_where_the_pass_may_be_seen(old: str, new: str) -> None:
    code = indented(STEP, GENERATOR)
    assert applicability(code) is Applicability.SAFE
    assert applicability(edited(code, old, new)) is Applicability.UNSAFE


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("fake = G(z)", "fake = [G(z), G(z)]"),
        ("D(fake)", "D(*[G(z)])"),
        ("D(fake)", "D(**{'x': G(z)})"),
        ("G = nn.Linear(8, 8).cuda()", "G = nn.LSTM(8, 8).cuda()"),
    ],
)
def test_what_cannot_be_detached_is_left_alone(old: str, new: str) -> None:
    check_snippet(edited(indented(STEP, GENERATOR), old, new).replace(HERE, ""), RULE)


def applicability(code: str) -> Applicability:
    [finding] = lint(unmarked(code), active(RULE)).findings
    assert finding.fix is not None
    given: Applicability = finding.fix.applicability
    return given


def test_the_weights_are_the_same_bit_for_bit() -> None:
    def weights(*, detach: bool) -> list[torch.Tensor]:
        torch.manual_seed(0)
        g = nn.Sequential(nn.ConvTranspose2d(4, 8, 4), nn.BatchNorm2d(8), nn.ReLU(), nn.ConvTranspose2d(8, 3, 4, 2))
        d = nn.Sequential(nn.Conv2d(3, 8, 4, 2), nn.LeakyReLU(0.2, inplace=True), nn.Flatten(), nn.LazyLinear(1))
        d(g(torch.randn(2, 4, 1, 1)))
        opt_g, opt_d = (torch.optim.Adam(net.parameters(), lr=0.01) for net in (g, d))
        for _ in range(3):
            opt_d.zero_grad()
            fake = g(torch.randn(2, 4, 1, 1))
            (d(fake.detach() if detach else fake).mean() - d(torch.ones(2, 3, 10, 10)).mean()).backward()
            opt_d.step()
            opt_g.zero_grad()
            (-d(g(torch.randn(2, 4, 1, 1))).mean()).backward()
            opt_g.step()
        return [*g.state_dict().values(), *d.state_dict().values()]

    assert all(torch.equal(a, b) for a, b in zip(weights(detach=True), weights(detach=False), strict=True))


def test_nobody_may_call_it() -> None:
    check_snippet(
        """
        import torch
        from torch import nn
        def _once(real):
            gen, disc = nn.Linear(4, 4), nn.Linear(4, 1)
            opt_g = torch.optim.Adam(gen.parameters())
            opt_d = torch.optim.Adam(disc.parameters())
            z = torch.randn(8, 4)
            fake = gen(z)
            loss = disc(fake).mean() - disc(real).mean()  # <- generator-graph-in-discriminator-step?
            opt_d.zero_grad()
            loss.backward()
            opt_d.step()
            opt_g.zero_grad()
            loss = -disc(gen(z)).mean()
            loss.backward()
            opt_g.step()
        """,
        RULE,
    )
