"""Whole programs on the simulated device, as a user runs them: counts by line, exit status, and files left alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

pytest.importorskip("torch")

from torchlint import userfolder, verified
from torchlint.verify.inside.devices import Count

pytestmark = pytest.mark.slow

# A training as tutorials write it: arguments, a data set that it would download, a seed of its own, an evaluation, a
# checkpoint. Batches are blocking copies from pinned memory.
DIGITS = """\
import argparse
import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.lr_scheduler import StepLR
from torchvision import datasets, transforms


def train(args, model, device, loader, optimizer, epoch):
    model.train()
    for index, (data, target) in enumerate(loader):
        data, target = data.to(device), target.to(device)  # moves
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data), target)
        loss.backward()
        optimizer.step()
        if index % args.log_interval == 0:
            print(f"{epoch} {index}: {loss.item():.4f}")  # logs


def test(model, device, loader):
    model.eval()
    total = correct = 0
    with torch.no_grad():
        for data, target in loader:
            data, target = data.to(device), target.to(device)  # moves
            output = model(data)
            total += F.cross_entropy(output, target, reduction="sum").item()  # reads
            correct += output.argmax(1).eq(target).sum().item()  # reads
    print(f"loss {total / len(loader.dataset):.4f}, accuracy {correct / len(loader.dataset):.2f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--log-interval", type=int, default=2)
    args = parser.parse_args()
    torch.manual_seed(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    transform = transforms.Compose([transforms.ToTensor(), transforms.Normalize((0.1307,), (0.3081,))])
    loaders = [
        torch.utils.data.DataLoader(
            datasets.MNIST("../data", train=train, download=True, transform=transform),
            batch_size=16, shuffle=train, num_workers=1, pin_memory=True, persistent_workers=True,
        )
        for train in (True, False)
    ]
    model = nn.Sequential(nn.Conv2d(1, 4, 3, 2), nn.ReLU(), nn.Flatten(), nn.Linear(676, 10)).to(device)
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
    scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
    for epoch in range(args.epochs):
        train(args, model, device, loaders[0], optimizer, epoch)
        test(model, device, loaders[1])
        scheduler.step()
    torch.save(model.state_dict(), "digits.pt")  # saves


if __name__ == "__main__":
    main()
"""

GAN = """\
import sys
import torch
from torch import nn

device = torch.device("cuda")
generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2)).to(device)
critic = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1)).to(device)
optimizers = [torch.optim.Adam(each.parameters()) for each in (critic, generator)]
judged = nn.BCEWithLogitsLoss()
ones, zeros = torch.ones(8, 1, device=device), torch.zeros(8, 1, device=device)
for step in range(9):
    made = generator(torch.randn(8, 4, device=device))
    optimizers[0].zero_grad()
    of_critic = judged(critic(torch.randn(8, 2, device=device)), ones) + judged(critic(made.detach()), zeros)
    of_critic.backward()
    optimizers[0].step()
    optimizers[1].zero_grad()
    of_generator = judged(critic(made), ones)
    of_generator.backward()
    optimizers[1].step()
    print(step, of_critic.item(), of_generator.item())  # reads twice
sys.exit(0)
"""

INFERENCE = """\
import torch
from torch import nn

model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3)).cuda().eval()
found = []
with torch.no_grad():
    for batch in torch.randn(12, 4, 8).pin_memory():
        scores = model(batch.cuda(non_blocking=True))
        found.append(scores.argmax(1).tolist())  # reads
torch.save(found, "found.pt")
"""


@dataclass(frozen=True)
class Run:
    """What a run of `torchlint verify` has said."""

    status: int
    out: str
    err: str

    @property
    def report(self) -> dict[str, Any]:
        (found,) = json.loads(self.out)["reports"]
        return dict(found)

    def per_step(self, line: int) -> float:
        """How often a step waits on a line."""
        return float(sum(site["per_unit"] for site in self._waits() if site["line"] == line))

    def waiting(self) -> set[int]:
        """The lines that wait."""
        return {site["line"] for site in self._waits()}

    def _waits(self) -> list[dict[str, Any]]:
        return [site for site in self.report["sites"] if site["kind"].startswith("waits")]


def verify(folder: Path, code: str, *options: str, environment: dict[str, str] | None = None) -> Run:
    """Run the program `code` on the simulated device, in a folder of its own, which has to be as it was afterwards.

    What torchlint itself remembers there is not the program's.
    """
    (folder / "program.py").write_text(dedent(code), encoding="utf-8")
    before = _files(folder)
    command = [sys.executable, "-m", "torchlint", "verify", "program.py", "--device", "sim", *options]
    env = {**os.environ, **(environment or {})}
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=env, timeout=300)
    assert _files(folder) == before, "the program's folder has changed"
    assert "Traceback" not in run.stderr
    return Run(run.returncode, run.stdout, run.stderr)


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def lines(code: str, mark: str) -> list[int]:
    """The lines that carry a comment."""
    return [number for number, line in enumerate(code.splitlines(), 1) if line.endswith(f"# {mark}")]


def findings(folder: Path) -> set[tuple[str, int]]:
    """What `check` finds, by rule and line."""
    command = [sys.executable, "-m", "torchlint", "check", "program.py", "--output-format", "json", "--no-cache"]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return {(found["code"], found["location"]["row"]) for found in json.loads(run.stdout)}


def test_a_training_is_counted_by_line_and_check_agrees(tmp_path: Path) -> None:
    run = verify(
        tmp_path, DIGITS, "--synthetic-data", "64", "--output-format", "json", "--", "--epochs", "2",
        "--log-interval", "2",
    )  # fmt: skip
    assert run.status == 0, run.err
    assert run.waiting() == {line for mark in ("moves", "logs", "reads") for line in lines(DIGITS, mark)} | {
        *lines(DIGITS, "saves")
    }, "each line that waits, and no other"
    # Two epochs of four batches, of which each logs the first and the third.
    assert "counted 8 steps" in run.report["summary"]
    for line in lines(DIGITS, "moves"):
        assert run.per_step(line) == 2
    for line in lines(DIGITS, "reads"):
        assert run.per_step(line) == 1
    for line in lines(DIGITS, "logs"):
        assert run.per_step(line) == 0.5
    # What reads in a loop and is not guarded, `check` finds; and what it finds waits, or is evaluated without a graph.
    assert findings(tmp_path) == {("TL302", line) for line in lines(DIGITS, "reads")} | {
        ("TL203", line) for line in lines(DIGITS, "moves")
    } | {("TL417", number) for number, line in enumerate(DIGITS.splitlines(), 1) if "no_grad()" in line}
    said = {site["line"]: site["finding"] for site in run.report["sites"] if site["finding"]}
    assert said == dict.fromkeys(lines(DIGITS, "reads"), "TL302 item-in-eval-loop") | dict.fromkeys(
        lines(DIGITS, "moves"), "TL203 blocking-h2d-in-batch-loop"
    )


def test_of_two_optimizers_one_is_the_clock_and_the_end_may_come_before_the_steps_asked_for(tmp_path: Path) -> None:
    run = verify(tmp_path, GAN, "--output-format", "json", "--steps", "50")
    assert run.status == 0, run.err
    assert "counted 9 steps" in run.report["summary"]
    assert run.per_step(lines(GAN, "reads twice")[0]) == 2


def test_what_only_sets_up_is_not_counted_with_the_first_step() -> None:
    first, rest = Count(), Count()
    first.sites = [site(3, "syncs", 5), site(9, "syncs", 1), site(9, "d2h", 1)]
    rest.sites = [site(9, "syncs", 3)]
    rest.totals["syncs"] = 3
    rest.add_recurring(first)
    assert sorted(rest.sites, key=lambda each: each["kind"]) == [site(9, "d2h", 1), site(9, "syncs", 4)]
    assert (rest.totals["syncs"], rest.totals["d2h"]) == (4, 1)


def site(line: int, kind: str, count: int) -> dict[str, Any]:
    return {"file": "/program.py", "line": line, "kind": kind, "count": count}


def test_without_training_a_call_of_the_model_is_a_step(tmp_path: Path) -> None:
    run = verify(tmp_path, INFERENCE, "--output-format", "json")
    assert run.status == 0, run.err
    assert run.waiting() == set(lines(INFERENCE, "reads")), "copies from pinned memory do not, if they need not block"
    # The first call alone may be a trial of a model that is then trained.
    assert run.per_step(lines(INFERENCE, "reads")[0]) == pytest.approx(1, rel=0.1)


@pytest.mark.parametrize(
    ("code", "arguments", "said"),
    [
        (DIGITS, ("--epoch", "many"), "exited with status 2; the last that it printed: program.py: error: argument"),
        ("from torchvision import models\n", (), "no torchvision.models in its stand-in"),
    ],
    ids=["arguments", "stand-in"],
)
def test_what_cannot_run_is_said_in_a_line(tmp_path: Path, code: str, arguments: tuple[str, ...], said: str) -> None:
    run = verify(tmp_path, code, "--", *arguments, environment={"TORCHLINT_SYNTHETIC_DATA": "8"})
    assert run.status == 3
    assert run.out == ""
    assert said in run.err
    assert run.err.startswith("error: ")


PLACES = """\
import sys
import torch
from torch import nn

device = torch.device(sys.argv[1])
model = nn.Linear(8, 3).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0.0
for inputs in torch.utils.data.DataLoader(torch.randn(64, 8), batch_size=8):
    inputs = inputs.to(device)
    loss = model(inputs).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item()  # reads
    kept = inputs.masked_select(inputs > 0)  # counts
    if total < 0:
        print(loss.item())  # never runs
"""


def test_each_line_that_waits_has_the_rule_that_names_it_or_the_reason(tmp_path: Path) -> None:
    run = verify(tmp_path, PLACES, "--only-count", "--output-format", "json", "--", "cuda")
    assert run.status == 0, run.err
    assert run.report["rows"] == []
    sites = {site["line"]: site for site in run.report["sites"]}
    read = sites[lines(PLACES, "reads")[0]]
    assert (read["finding"], read["severity"], read["silence"]) == ("TL301 item-in-train-loop", "note", "")
    counted = sites[lines(PLACES, "counts")[0]]
    assert bool(counted["finding"]) != bool(counted["silence"])
    assert run.report["unmet"] == [], "what does not run is not held against anybody"


def test_what_is_named_and_does_not_wait_is_told(tmp_path: Path) -> None:
    run = verify(tmp_path, PLACES, "--only-count", "--output-format", "json", "--", "cpu")
    assert run.status == 0, run.err
    assert run.report["sites"] == []
    assert lines(PLACES, "reads")[0] in {each["line"] for each in run.report["unmet"]}
    assert lines(PLACES, "never runs")[0] not in {each["line"] for each in run.report["unmet"]}
    (warning,) = run.report["warnings"]
    assert warning.startswith("the program puts nothing on the device")


CHILDREN = """\
import sys
import torch
import torch.multiprocessing as mp
from torch import nn


def train(model, device):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        loss = model(torch.randn(4, 4, device=device)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    mp.set_start_method(sys.argv[1], force=True)
    model = nn.Linear(4, 4).to("cuda")
    model.share_memory()
    child = mp.Process(target=train, args=(model, torch.device("cuda")))
    child.start()
    child.join()
    model.eval()
    with torch.no_grad():
        for _ in range(5):
            model(torch.randn(4, 4).cuda()).sum().item()
"""


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_what_processes_of_the_program_do_is_never_half_told(tmp_path: Path, method: str) -> None:
    run = verify(tmp_path, CHILDREN, "--only-count", "--output-format", "json", "--", method)
    assert run.status == 0, run.err
    assert run.report["sites"] == []
    (warning,) = run.report["warnings"]
    assert "used in processes that the program starts" in warning


def test_a_fix_of_a_program_with_a_seed_of_its_own_saves_waits(tmp_path: Path) -> None:
    code = """\
        import torch
        from torch import nn

        torch.manual_seed(0)
        model = nn.Linear(8, 3).cuda()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(64, 8)), batch_size=8)
        total = 0.0
        for (inputs,) in loader:
            loss = model(inputs.cuda()).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(total)
    """
    run = verify(tmp_path, code, "--select", "TL301", "--unsafe-fixes", "--output-format", "json")
    assert run.status == 0, run.err
    (row,) = run.report["rows"]
    assert (row["code"], row["line"], row["verdict"]) == ("TL301", 14, "fewer-syncs")
    assert row["syncs"]["before"] == pytest.approx(2)
    assert row["syncs"]["after"] == pytest.approx(1, abs=0.2), "the read behind the loop is one for all steps"
    assert row["numerics"].startswith("close: ")
    folder = userfolder.of_project(tmp_path)
    assert folder is not None
    (known,) = verified.read(folder, tmp_path)
    assert (known.line, known.verdict, known.speedup) == ("total += loss.item()", "fewer-syncs", None)
    assert verified.words(known).startswith("counted on Simulated CUDA device, torch 2.")
