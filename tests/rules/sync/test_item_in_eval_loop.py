"""TL302: one value read for each batch of an evaluation is flagged; a count or a sum can stay on the device."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import pytest
import torch
from laws import active, check_snippet, places

RULE = "item-in-eval-loop"


@pytest.mark.parametrize(
    "code",
    [
        """
        import numpy, torch
        class Trainer:
            def __init__(self, model, criterion, loader, device, config):
                self.model, self.criterion, self.loader, self.device = model, criterion, loader, device
                self.config = config
            @torch.no_grad()
            def step(self, batch):
                outputs = self.model["net"](*batch.to(self.device))
                extra = 0.0
                real, fake = self.criterion["adv"](outputs, batch)
                total = extra + self.config["weight"] * real
                if self.config["more"]:
                    total += self.config["more"] * extra
                loss = real + fake
                other = extra + self.config["weight"]
                self.total["loss"] += loss.item()  # <- item-in-eval-loop
                self.total["all"] += total.item()  # <- item-in-eval-loop
                self.total["other"] += other.item()
            def evaluate(self):
                for batch in self.loader["dev"]:
                    self.step(batch)
        """,
        """
        import torch
        class Trainer:
            def __init__(self, model, criterion, loader, device):
                self.model, self.criterion, self.loader, self.device = model, criterion, loader, device
            @torch.no_grad()
            def step(self, batch):
                outputs = self.model["net"](*batch.to(self.device))
                sc_loss, mag_loss = self.criterion["stft"](outputs, batch)
                self.total["sc"] += sc_loss.item()  # <- item-in-eval-loop
                self.total["mag"] += mag_loss.item()  # <- item-in-eval-loop
            def evaluate(self):
                for batch in self.loader["dev"]:
                    self.step(batch)
        """,
        """
        import torch
        @torch.no_grad()
        def evaluate(model, loader, device):
            correct = 0
            for x, y in loader:
                correct += (model(x.to(device)).argmax(1) == y.to(device)).sum().item()  # <- item-in-eval-loop
            return correct / len(loader.dataset)
        """,
        """
        import torch
        def evaluate(model, loader, criterion, device):
            model.eval()
            total = 0.0
            with torch.no_grad():
                for x, y in loader:
                    total += criterion(model(x.to(device)), y.to(device)).item()  # <- item-in-eval-loop
            return total / len(loader)
        """,
        """
        import torch
        def evaluate(model, loader, criterion, meter):
            model.eval()
            for x, y in loader:
                loss = criterion(model(x.cuda()), y.cuda())
                meter.update(loss.item(), x.size(0))  # <- item-in-eval-loop
        """,
        """
        import torch
        from utils import accuracy
        def evaluate(model, loader, criterion, top1, top5):
            model.eval()
            with torch.no_grad():
                for x, y in loader:
                    output = model(x.cuda())
                    acc1, acc5 = accuracy(output, y.cuda(), topk=(1, 5))
                    top1.update(acc1.item(), x.size(0))  # <- item-in-eval-loop
                    top5.update(acc5.item(), x.size(0))  # <- item-in-eval-loop
        """,
        """
        import torch
        def evaluate(model, loader, device):
            losses = []
            with torch.inference_mode():
                for batch in loader:
                    loss = model(**batch).loss
                    losses.append(float(loss))  # <- item-in-eval-loop
            return losses
        """,
        """
        import torch
        @torch.no_grad()
        def ids(model, loader):
            for images, targets in loader:
                labels = model(images.cuda()).argmax(1)
                for i in range(labels.shape[0]):
                    yield names[labels[i].item()]  # <- item-in-eval-loop
        """,
    ],
    ids=["sums of losses", "criteria", "count", "loss", "eval mode", "unknown helper", "float", "elements"],
)
def test_reads_at_each_batch(code: str) -> None:
    check_snippet(code, RULE)


@pytest.mark.parametrize(
    "code",
    [
        """
        import torch
        @torch.no_grad()
        def evaluate(model, loader, device):
            correct = torch.zeros((), device=device)
            for x, y in loader:
                correct += (model(x.to(device)).argmax(1) == y.to(device)).sum()
            return correct.item()
        """,
        """
        import torch
        @torch.no_grad()
        def evaluate(model, loader, device, metric):
            for x, y in loader:
                metric(model(x.to(device)), y.to(device))
            return metric.compute().item()
        """,
        """
        import numpy as np
        import torch
        @torch.no_grad()
        def evaluate(model, loader):
            for x, y in loader:
                out = model(x.cuda()).cpu().numpy()
                print(np.mean(out).item())
        """,
        """
        import torch
        @torch.no_grad()
        def generate(model, tokens, end):
            while True:
                token = model(tokens.cuda()).argmax()
                if token.item() == end:  # <- item-in-eval-loop?
                    return tokens
                tokens = torch.cat([tokens, token[None]])
        """,
        """
        import torch
        from torch import nn
        model = nn.Linear(3, 2)
        model.eval()
        correct = 0
        with torch.no_grad():
            for x, y in zip(torch.randn(9, 4, 3), torch.randint(2, (9, 4))):
                correct += (model(x).argmax(1) == y).sum().item()
        """,
    ],
    ids=["tensor", "metric", "numpy", "generation", "cpu"],
)
def test_look_alikes(code: str) -> None:
    check_snippet(code, RULE)


def test_in_a_loop_that_trains_the_other_rule_speaks() -> None:
    code = """
import torch
def train(model, loader, optimizer, criterion, log):
    for x, y in loader:
        out = model(x.cuda())
        loss = criterion(out, y.cuda())
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            log.append((out.argmax(1) == y.cuda()).float().mean().item())
"""
    assert places(code, active(RULE, "item-in-train-loop")) == [(10, "item-in-train-loop")]


def test_counts_stay_whole_and_sums_floats() -> None:
    check_snippet(
        """
        import torch
        def evaluate(model, loader, criterion):
            model.eval()
            loss, correct = 0, 0
            with torch.no_grad():
                for x, y in loader:
                    out = model(x.cuda())
                    loss += criterion(out, y.cuda()).item()  # <- item-in-eval-loop
                    correct += out.argmax(1).eq(y.cuda()).sum().item()  # <- item-in-eval-loop
            loss /= len(loader)
            return loss, correct
        """,
        RULE,
        fixed="""
        import torch
        def evaluate(model, loader, criterion):
            model.eval()
            loss, correct = 0, 0
            with torch.no_grad():
                for x, y in loader:
                    out = model(x.cuda())
                    loss += criterion(out, y.cuda())
                    correct += out.argmax(1).eq(y.cuda()).sum()
                loss = float(loss)
                correct = int(correct)
            loss /= len(loader)
            return loss, correct
        """,
    )


def test_with_autograd_on_the_graph_is_left_behind() -> None:
    check_snippet(
        """
        import torch
        def evaluate(model, loader, criterion):
            model.eval()
            total = 0.0
            for x, y in loader:
                total += criterion(model(x.cuda()), y.cuda()).item()  # <- item-in-eval-loop
            return total
        """,
        RULE,
        fixed="""
        import torch
        def evaluate(model, loader, criterion):
            model.eval()
            total = 0.0
            for x, y in loader:
                total += criterion(model(x.cuda()), y.cuda()).detach()
            total = float(total)
            return total
        """,
    )


def test_both_files_of_the_fixture_do_the_same_but_for_rounding() -> None:
    results: list[Any] = []
    for name in ("slow.py", "fast.py"):
        names: dict[str, Any] = {"__name__": "fixture"}
        code = (files("torchlint.fixtures") / "item_in_eval_loop" / name).read_text("utf-8")
        exec(compile(code, name, "exec"), names)  # noqa: S102 - our own fixture
        torch.manual_seed(0)
        results.append(names["run"](names["setup"]("cpu", "smoke")))
    slow, fast = results
    assert fast == pytest.approx(slow)
    assert [type(value) for value in fast] == [type(value) for value in slow] == [float, int, float, float]


@pytest.mark.parametrize(
    "code",
    [
        """
        import time
        import torch
        def validate(model, loader, criterion, distributed):
            model.eval()
            total, times = 0.0, []
            with torch.no_grad():
                for x, y in loader:
                    loss = criterion(model(x.cuda()), y.cuda())
                    if distributed:
                        value = reduce(loss).item()  # <- item-in-eval-loop?
                    else:
                        value = loss.item()  # <- item-in-eval-loop?
                    total += value
                    torch.cuda.synchronize()
                    times.append(time.perf_counter())
            return total, times
        """,
        """
        import torch
        @torch.no_grad()
        def predict(model, loader, criterion):
            total, kept = 0.0, []
            for x, y in loader:
                scores = model(x.cuda())
                loss = criterion(scores, y.cuda())
                total += loss.item()  # <- item-in-eval-loop?
                kept.extend(scores.cpu().numpy())
            return total, kept
        """,
        """
        import numpy as np
        import torch
        @torch.no_grad()
        def predict(model, loader, criterion):
            total, kept = 0.0, None
            for x, y in loader:
                scores = model(x.cuda())
                total += criterion(scores, y.cuda()).item()  # <- item-in-eval-loop?
                if kept is None:
                    kept = scores.cpu().numpy()
                else:
                    kept = np.append(kept, scores.cpu().numpy(), axis=0)
            return total, kept
        """,
        """
        import torch
        @torch.no_grad()
        def validate(model, loader, criterion, meters):
            for x, y in loader:
                loss = criterion(model(x.cuda()), y.cuda())
                torch.cuda.synchronize()
                meters["loss"].update(loss.item())  # <- item-in-eval-loop?
                meters["again"].update((loss * 2).item())  # <- item-in-eval-loop?
        """,
    ],
)
def test_something_else_waits_right_beside_it(code: str) -> None:
    check_snippet(code, RULE)


def test_how_a_value_was_read_before() -> None:
    check_snippet(
        """
        import torch
        from torch.autograd import Variable
        def test(model, loader, criterion):
            model.eval()
            total = 0
            for x, y in loader:
                loss = criterion(model(Variable(x.cuda())), y.cuda()).mean()
                total += loss.data[0]  # <- item-in-eval-loop
                rows = model(x.cuda()).data[0]
            return total, rows
        """,
        RULE,
    )


def test_what_is_computed_behind_the_wait_is_read_for_itself() -> None:
    check_snippet(
        """
        import torch
        @torch.no_grad()
        def validate(model, loader, criterion, meters):
            for x, y in loader:
                first = model(x.cuda())
                torch.cuda.synchronize()
                loss = criterion(model(first), y.cuda())
                meters["loss"].update(loss.item())  # <- item-in-eval-loop
                second = model(first)
                meters["all"].update(first.sum().item())  # <- item-in-eval-loop
        """,
        RULE,
    )
