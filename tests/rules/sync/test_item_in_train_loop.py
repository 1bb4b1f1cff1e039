"""TL301: one value read at each training step is flagged, unless the host acts on it; totals can stay on the device."""

from __future__ import annotations

import re
from importlib.resources import files
from textwrap import indent
from typing import Any, NamedTuple

import pytest
import torch
from laws import check_snippet
from twins import findings, fixed, program, run, training

from torchlint.finding import Applicability

RULE = "item-in-train-loop"


@pytest.mark.parametrize(
    "code",
    [
        """
        import torch
        def train(model, loader, optimizer, criterion):
            for x, y in loader:
                out = model(x.cuda())
                loss, size = criterion(out, y.cuda()), out.norm()
                loss.backward()
                optimizer.step()
                print(", ".join(map(lambda v: f"{v.item():.3f}", (loss, size))))  # <- item-in-train-loop
        """,
        """
        import torch
        from munch import Munch
        def compute(model, x, y, criterion):
            loss = criterion(model(x.cuda()), y.cuda())
            return loss, Munch(loss=loss.item())  # <- item-in-train-loop
        def train(model, loader, optimizer, criterion, log):
            for x, y in loader:
                loss, values = compute(model, x, y, criterion)
                loss.backward()
                optimizer.step()
                log.note(values)
        """,
        """
        import torch
        from transformers import Trainer
        class WithMetrics(Trainer):
            def compute_loss(self, model, inputs, return_outputs=False):
                loss = model(**inputs).loss
                self.metrics["loss"].append(loss.item())  # <- item-in-train-loop
                with torch.no_grad():
                    gathered = self.accelerator.gather_for_metrics(loss)
                    self.metrics["mean"].append(gathered.mean().item())  # <- item-in-train-loop
                self._note(loss)
                return loss
            def _note(self, loss):
                with torch.no_grad():
                    self.metrics["noted"].append(loss.mean().item())  # <- item-in-train-loop
            def prediction_step(self, model, inputs, prediction_loss_only):
                with torch.no_grad():
                    return self.compute_loss(model, inputs)
        """,
        """
        import torch
        def train(model, loader, optimizer, criterion, device):
            total = 0.0
            for x, y in loader:
                loss = criterion(model(x.to(device)), y.to(device))
                loss.backward()
                optimizer.step()
                total += float(loss.detach().cpu().item())  # <- item-in-train-loop
                print(loss.cpu().detach().item())  # <- item-in-train-loop
            return total
        """,
        """
        import torch
        def train(model, loader, optimizer, criterion, device):
            total = 0.0
            for x, y in loader:
                loss = criterion(model(x.to(device)), y.to(device))
                loss.backward()
                optimizer.step()
                total += loss.item()  # <- item-in-train-loop
            return total / len(loader)
        """,
        """
        import torch
        def train(model, loader, optimizer, criterion, device):
            losses = []
            for x, y in loader:
                loss = criterion(model(x.to(device)), y.to(device))
                loss.backward()
                optimizer.step()
                losses.append(loss.item())  # <- item-in-train-loop
            return losses
        """,
        """
        import torch
        from tqdm import tqdm
        def train(model, loader, optimizer, criterion, device):
            pbar = tqdm(loader)
            for x, y in pbar:
                loss = criterion(model(x.to(device)), y.to(device))
                loss.backward()
                optimizer.step()
                pbar.set_postfix(loss=loss.item())  # <- item-in-train-loop
        """,
        """
        import torch
        def train(model, loader, optimizer, criterion, device):
            best = float("inf")
            for x, y in loader:
                loss = criterion(model(x.to(device)), y.to(device))
                loss.backward()
                optimizer.step()
                if loss.item() < best:  # <- item-in-train-loop
                    best = loss.item()
            return best
        """,
        """
        import torch
        def train(model, loader, optimizer, criterion, device, meter):
            for x, y in loader:
                loss = criterion(model(x.to(device)), y.to(device))
                loss.backward()
                optimizer.step()
                meter.update(loss.item(), x.size(0))  # <- item-in-train-loop
        """,
        """
        import torch
        def train(model, loader, optimizer, criterion, device, log):
            total = 0.0 if log else None
            for x, y in loader:
                loss = criterion(model(x.to(device)), y.to(device))
                loss.backward()
                optimizer.step()
                if total is not None:
                    total += loss.item()  # <- item-in-train-loop
            return total
        """,
        """
        import torch
        def train(model, loader, optimizer, criterion, device, log):
            for x, y in loader:
                x, y = x.to(device), y.to(device)
                out = model(x)
                loss = criterion(out, y)
                acc = (out.argmax(1) == y).float().mean().item()  # <- item-in-train-loop
                loss.backward()
                optimizer.step()
                log["accuracy"] = acc
        """,
        """
        import torch
        def fit(f, p, optimizer, n_steps):
            history = []
            for i in range(n_steps):
                loss = f(p.cuda())
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                history.append(float(loss))  # <- item-in-train-loop
            return history
        """,
        """
        import torch
        def step(model, batch, optimizer):
            loss = model(batch.cuda()).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss.item()  # <- item-in-train-loop

        def train(model, loader, optimizer):
            for batch in loader:
                step(model, batch, optimizer)
        """,
        """
        import torch
        def accuracy(output, target):
            return (output.argmax(1) == target).float().mean().item()  # <- item-in-train-loop

        def train(model, loader, optimizer, criterion):
            total = 0.0
            for x, y in loader:
                x, y = x.cuda(), y.cuda()
                out = model(x)
                loss = criterion(out, y)
                loss.backward()
                optimizer.step()
                total += accuracy(out, y)
            return total
        """,
        """
        import torch
        import lightning as L
        class Net(L.LightningModule):
            def training_step(self, batch, batch_idx):
                loss = self.net(batch).mean()
                self.history.append(loss.item())  # <- item-in-train-loop
                return loss
        """,
        """
        import torch
        def train(model, loader, optimizer, criterion):
            for x, y in loader:
                loss = criterion(model(x.cuda()), y.cuda())
                loss.backward()
                optimizer.step()
                print("loss %f" % loss.data[0])  # <- item-in-train-loop
        """,
        """
        import torch
        def train(model, loader, optimizer, criterion):
            for x, y in loader:
                mask = y.cuda() > 0
                loss = criterion(model(x.cuda()), y.cuda())
                scale = 1.0 / mask.sum().item()  # <- item-in-train-loop
                (loss * scale).backward()
                optimizer.step()
        """,
    ],
    ids=[
        "mapped",
        "handed back",
        "trainer",
        "copied first",
        "total",
        "list",
        "progress bar",
        "best",
        "meter",
        "a total that there may be",
        "accuracy",
        "conversion",
        "returned by a step",
        "helper",
        "lightning",
        "data[0]",
        "factor",
    ],
)
def test_reads_at_each_step(code: str) -> None:
    check_snippet(code, RULE)


@pytest.mark.parametrize(
    "code",
    [
        """
        import time
        import torch
        def train(model, loader, optimizer, criterion, meter):
            for x, y in loader:
                loss = criterion(model(x.cuda()), y.cuda())
                loss.backward()
                optimizer.step()
                torch.cuda.synchronize()
                seconds = time.time()
                meter.update(loss.item(), seconds)  # <- item-in-train-loop?
        """,
        """
        import torch
        from torch.distributions import Categorical
        def play(policy, states, optimizer):
            for state in states:
                chosen = Categorical(policy(state.cuda()).cpu())
                action = chosen.sample()
                (-chosen.log_prob(action)).backward()
                optimizer.step()
                print(action.item())
        """,
        """
        import paddle
        def train(model, loader, optimizer, criterion, meter):  # as in torch, on a gpu
            for x, y in loader:
                loss = criterion(model(x), y)
                loss.backward()
                optimizer.step()
                meter.update(loss.item())
        """,
        """
        import torch
        def step(model, x, criterion, optimizer):
            loss = criterion(model(x.cuda()))
            loss.backward()
            optimizer.step()
            return loss.item()  # <- item-in-train-loop?
        def find(model, loader, criterion, optimizer, best):
            for x in loader:
                loss = step(model, x, criterion, optimizer)
                if loss > 4 * best:
                    break
        """,
        """
        import torch
        def train(model, loader, optimizer, criterion, stopper):
            for x, y in loader:
                loss = criterion(model(x.cuda()), y.cuda())
                loss.backward()
                optimizer.step()
                if stopper.is_done(loss.item()):  # <- item-in-train-loop?
                    break
        """,
        """
        import torch
        def ground(model, loader, criterion, result):
            for image, names in loader:
                loss = criterion(model(image.cuda()))
                loss.backward()
                for name, part in zip(names, loss.detach()):
                    result.append({"name": name.item(), "part": part})
        """,
        """
        import torch
        class Log:
            def note(self, **kwargs):
                for name, value in kwargs.items():
                    if isinstance(value, torch.Tensor):
                        value = value.item()
                    self.add(name, value)
        def train(model, loader, optimizer, criterion):
            log = Log()
            for x, y in loader:
                criterion(model(x.cuda()), y.cuda()).backward()
                optimizer.step()
                log.note(lr=optimizer.param_groups[0]["lr"], size=len(x))
        """,
        """
        import torch
        from transformers import Trainer
        class Generating(Trainer):
            def _score(self, model, inputs):
                with torch.no_grad():
                    ids = model.generate(**inputs)
                    rewards = torch.stack([reward(ids.cuda()) for reward in self.rewards])
                self.metrics["reward"].append(rewards.mean().item())
                return ids
            def _prepare_inputs(self, inputs):
                return self._score(self.model, inputs)
            def compute_loss(self, model, inputs, return_outputs=False):
                return model(self._prepare_inputs(inputs)).loss
        """,
        """
        import torch
        def train(model, loader, optimizer, criterion, device):
            for step, (x, y) in enumerate(loader):
                loss = criterion(model(x.to(device)), y.to(device))
                loss.backward()
                optimizer.step()
                if step % 100 == 0:
                    print(loss.item())
        """,
        """
        import torch
        def train(model, loader, optimizer, criterion, device):
            total = torch.zeros((), device=device)
            for x, y in loader:
                loss = criterion(model(x.to(device)), y.to(device))
                loss.backward()
                optimizer.step()
                total += loss.detach()
            print(total.item() / len(loader))
        """,
        """
        import torch
        def train(model, loader, optimizer, criterion, device):
            for x, lengths in loader:
                n = lengths.max().item()
                loss = criterion(model(x.to(device)), n)
                loss.backward()
                optimizer.step()
        """,
        """
        import numpy as np
        import torch
        def train(model, loader, optimizer, criterion, device):
            for x, y in loader:
                v = np.asarray(y)
                a = np.mean(v).item()
                loss = criterion(model(x.to(device)), a)
                loss.backward()
                optimizer.step()
                print(a)
        """,
        """
        import torch
        def rollout(policy, env, optimizer, state):
            for t in range(1000):
                dist = policy(state.cuda())
                action = dist.sample().item()  # <- item-in-train-loop?
                state, reward, done, info = env.step(action)
                loss = dist.log_prob(action).mean()
                loss.backward()
                optimizer.step()
        """,
        """
        import torch
        def rollout(policy, env, state):
            for t in range(1000):
                state, reward, done, info = env.step(policy(state.cuda()).argmax().item())  # <- item-in-train-loop?
        """,
        """
        import torch
        def fit(model, loader, optimizer, criterion, epochs, validate):
            for epoch in range(epochs):
                for x, y in loader:
                    loss = criterion(model(x.cuda()), y.cuda())
                    loss.backward()
                    optimizer.step()
                val_loss = validate(model)
                print(val_loss.item())
        """,
        """
        import torch
        def train(model, loader, optimizer, criterion, log):
            for x, y in loader:
                loss = criterion(model(x.cuda()), y.cuda())
                loss.backward()
                optimizer.step()
                for k, v in log.items():
                    print(k, v)
        """,
        """
        import torch
        from torch import nn
        model = nn.Linear(3, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        x, y = torch.randn(8, 3), torch.randn(8, 1)
        for i in range(100):
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            print(loss.item())
        """,
        """
        import torch
        def train(model, loader, optimizer, criterion):
            for x, y in loader:
                loss = criterion(model(x.cuda()), y.cuda())
                loss.backward()
                optimizer.step()
                if torch.isnan(loss):
                    raise ValueError(f"the loss is {loss.item()}")
        """,
        """
        import torch
        def train(model, loader, optimizer, criterion):
            for x, lengths in loader:
                x, lengths = x.cuda(), lengths.cuda()
                longest = lengths.max().item()  # <- item-in-train-loop?
                loss = criterion(model(x[:, :longest]))
                loss.backward()
                optimizer.step()
        """,
        """
        import torch
        def train(model, loader, optimizer, criterion, target_kl):
            for x, y in loader:
                out = model(x.cuda())
                loss = criterion(out, y.cuda())
                kl = (out - y.cuda()).mean().item()  # <- item-in-train-loop?
                if kl > target_kl:
                    break
                loss.backward()
                optimizer.step()
        """,
        """
        import torch
        def accuracy(out, y):
            return (out.argmax(1) == y).sum().item() / len(y)  # <- item-in-train-loop?
        def probe(model, graph, x, y, optimizer, criterion, epochs):
            x = x.cuda()
            for epoch in range(epochs):
                loss = criterion(model(graph, x), y)
                loss.backward()
                optimizer.step()
                print(epoch, loss.item(), accuracy(model(graph, x), y))  # <- item-in-train-loop?
                if epoch % 100 == 0:
                    print(loss.item())
        """,
        """
        import torch
        def step(model, x, y, optimizer, criterion):
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            return loss.item()  # <- item-in-train-loop?
        def main(model, x, y, optimizer, criterion):
            for epoch in range(200):
                print(epoch, step(model, x.cuda(), y.cuda(), optimizer, criterion))
        """,
        """
        import torch
        def of_batches(model, loader, optimizer, criterion):
            for epoch in range(200):
                total = torch.zeros((), device="cuda")
                for x, y in loader:
                    loss = criterion(model(x.cuda()), y.cuda())
                    loss.backward()
                    optimizer.step()
                    total += loss.detach()
                print(epoch, total.item())
        """,
        """
        import torch
        def debug_train(model, loader, optimizer, criterion):
            for x, y in loader:
                loss = criterion(model(x.cuda()), y.cuda())
                loss.backward()
                optimizer.step()
                print(loss.item())  # <- item-in-train-loop?
        """,
        """
        import time
        import torch
        def measure(model, loader, optimizer, criterion):
            for x, y in loader:
                start = time.time()
                loss = criterion(model(x.cuda()), y.cuda())
                loss.backward()
                optimizer.step()
                loss.item()
                print(time.time() - start)
        """,
        """
        import torch
        def train(model, loader, optimizer, criterion, limit):
            for x, y in loader:
                loss = criterion(model(x.cuda()), y.cuda())
                if loss.item() > limit:  # <- item-in-train-loop?
                    print(f"skipped: {loss.item()}")
                    continue
                loss.backward()
                optimizer.step()
        """,
    ],
    ids=[
        "synchronized",
        "on the CPU",
        "another framework",
        "compared by the caller",
        "asked for",
        "beside a tensor",
        "numbers by keyword",
        "behind generation",
        "rate limit",
        "after the loop",
        "epochs of one step",
        "epochs of one function",
        "epochs of batches",
        "lengths",
        "numpy",
        "action",
        "action at once",
        "per epoch",
        "items",
        "cpu script",
        "error",
        "size",
        "early stop",
        "debug",
        "barrier",
        "skipped",
    ],
)
def test_look_alikes(code: str) -> None:
    check_snippet(code, RULE)


@pytest.mark.parametrize(
    "code",
    [
        """
        import torch
        class Trainer:
            def train_step(self, x, y, log_loss=False):
                self.optimizer.zero_grad()
                loss = self.criterion(self.model(x.cuda()), y.cuda())
                if log_loss:
                    print(loss.item())
                loss.backward()
                self.optimizer.step()
        def run(loader):
            trainer = Trainer()
            for step, (x, y) in enumerate(loader):
                trainer.train_step(x, y, step % 50 == 0)
        """,
        """
        import torch
        from metrics import accuracy
        class Metric:
            def update(self, ids, prediction, x, target):
                output = torch.from_numpy(prediction["out"]).float()
                label = torch.from_numpy(target["out"]).long()
                top1, top5 = accuracy(output.detach(), label, topk=(1, 5))
                self.top1.update(top1.item(), output.shape[0])
        def run(model, loader):
            metric = Metric()
            for x, y in loader:
                metric.update(0, model(x.cuda()), x, y)
        """,
        """
        import math
        import torch
        from torch import nn
        class Layer(nn.Module):
            def forward(self, graph, x, start, strength, number):
                share = math.log(strength / number + 1)
                return (1 - share) * (graph @ x) + share * start
        """,
        """
        import torch
        def explain(model, loader, device):
            found = []
            for image, text, ids in loader:
                image = image.to(device)
                loss = model(image, text).sum()
                loss.backward()
                for name, map_ in zip(ids, image.grad):
                    found.append((name.item(), map_))
            return found
        """,
        """
        import torch
        from sklearn.metrics import f1_score
        def evaluate(model, criterion, loader, device):
            total = f1 = 0
            for graphs, labels in loader:
                graphs = graphs.to(device)
                labels = labels.to(device)
                logits = model(graphs)
                total += criterion(logits, labels).item()  # <- item-in-train-loop?
                f1 += f1_score(labels.cpu(), logits.argmax(dim=1).cpu())
            return total, f1
        """,
    ],
    ids=["limited by the caller", "computed on the CPU", "numbers of a network", "never moved", "right before a copy"],
)
def test_look_alikes_of_real_programs(code: str) -> None:
    check_snippet(code, RULE)


def test_what_is_handed_on_or_computed_later_is_still_a_read_of_the_device() -> None:
    check_snippet(
        """
        import torch
        from sklearn.metrics import f1_score
        def train(model, optimizer, criterion, loader, device, move, verbose=False):
            total = other = 0
            for x, ids, labels in loader:
                x = x.to(device)
                ids = move(ids)
                loss = criterion(model(x), labels)
                total += loss.item()  # <- item-in-train-loop
                loss.backward()
                optimizer.step()
                f1_score(ids.cpu(), labels.cpu())
                again = criterion(model(x), labels)
                other += again.item()  # <- item-in-train-loop
            return total, other
        """,
        RULE,
    )


# The fix


def test_a_total_a_count_and_a_list() -> None:
    check_snippet(
        """
        import torch
        def train(model, loader, optimizer, criterion):
            total, correct = 0.0, 0
            losses = []
            for inputs, targets in loader:
                outputs = model(inputs.cuda())
                loss = criterion(outputs, targets.cuda())
                loss.backward()
                optimizer.step()
                total += loss.item() * inputs.size(0)  # <- item-in-train-loop
                correct += (outputs.argmax(1) == targets.cuda()).sum().item()  # <- item-in-train-loop
                losses.append(loss.item())  # <- item-in-train-loop

            # report
            total /= len(loader)
            return total, correct, losses
        """,
        RULE,
        fixed="""
        import torch
        def train(model, loader, optimizer, criterion):
            total, correct = 0.0, 0
            losses = []
            for inputs, targets in loader:
                outputs = model(inputs.cuda())
                loss = criterion(outputs, targets.cuda())
                loss.backward()
                optimizer.step()
                total += loss.detach() * inputs.size(0)
                correct += (outputs.argmax(1) == targets.cuda()).sum()
                losses.append(loss.detach())
            total = float(total)
            correct = int(correct)
            losses = torch.stack(losses).tolist() if losses else []

            # report
            total /= len(loader)
            return total, correct, losses
        """,
    )


def test_reads_within_the_loop_are_wrapped() -> None:
    check_snippet(
        """
        import torch
        def train(model, loader, optimizer, criterion):
            running = 0.0
            for step, (inputs, targets) in enumerate(loader):
                loss = criterion(model(inputs.cuda()), targets.cuda())
                loss.backward()
                optimizer.step()
                running += loss.item()  # <- item-in-train-loop
                if step % 100 == 99:
                    print(f"{running / 100:.3f}")
                    running = 0.0
        """,
        RULE,
        fixed="""
        import torch
        def train(model, loader, optimizer, criterion):
            running = 0.0
            for step, (inputs, targets) in enumerate(loader):
                loss = criterion(model(inputs.cuda()), targets.cuda())
                loss.backward()
                optimizer.step()
                running += loss.detach()
                if step % 100 == 99:
                    print(f"{float(running) / 100:.3f}")
                    running = 0.0
        """,
    )


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_line_below_the_loop_is_written_as_the_file_is(newline: str) -> None:
    code = """import torch
def fit(model, loader, optimizer, criterion):
\ttotal = 0.0
\tfor epoch in range(3):
\t\tprint(total)
\t\tfor x, y in loader:
\t\t\tloss = criterion(model(x.cuda()), y.cuda())
\t\t\tloss.backward()
\t\t\toptimizer.step()
\t\t\ttotal += loss.item()  # the last line has no end"""
    made = unsafe(code.replace("\n", newline))
    assert made.split(newline)[-2:] == [
        "\t\t\ttotal += loss.detach()  # the last line has no end",
        "\t\ttotal = float(total)",
    ]


def test_a_total_is_kept_in_single_precision_where_half_is_spoken_of() -> None:
    code = training("total += loss.item()", before="total = 0.0", after="return total")
    assert "total += loss.detach()\n" in unsafe(code)
    code = training("with torch.autocast('cpu'):\n    total += loss.item()", before="total = 0.0", after="return total")
    assert "total += loss.detach().float()\n" in unsafe(code)


def test_a_list_keeps_a_copy_of_what_changes() -> None:
    code = training("log.append(loss.item())")
    assert "log.append(loss.detach())\n" in unsafe(code)
    for change in (
        "loss /= 10",
        "loss.mul_(2)",
        "torch.distributed.all_reduce(loss)",
        "other = loss.detach()\nother.mul_(2)",
    ):
        code = training(f"log.append(loss.item())\nwith torch.no_grad():\n{indent(change, '    ')}")
        assert "log.append(loss.detach().clone())\n" in unsafe(code)


class Case(NamedTuple):
    """What stands behind each step, and what else differs from the plain loop."""

    reads: str
    before: str = "total = 0.0"
    after: str = "return total"

    def code(self) -> str:
        return training(self.reads, before=self.before, after=self.after)


TOTALS = {
    "plain": Case("total += loss.item()"),
    "from 0": Case("total += loss.item()", "total = 0"),
    "from a tuple": Case("total += loss.item()", "total, n = 0.0, 0"),
    "divided behind": Case("total += loss.item()", after="total /= 3\nreturn total"),
    "formatted": Case("total += loss.item()", after="return f'{total=:.3f} {total:.2e}'"),
    "as JSON": Case("total += loss.item()", after="return json.dumps({'total': round(total, 4)})"),
    "in a closure behind": Case("total += loss.item()", after="last = total\nreturn (lambda: last)()"),
    "shadowed": Case("total += loss.item()", after="return [total for total in range(3)] + [total]"),
    "in a comprehension": Case("total += loss.item()", after="return [total * k for k in range(3)]"),
    "deleted": Case("total += loss.item()", after="last = total\ndel total\nreturn last"),
    "written out": Case("total = total + loss.item()"),
    "now and then": Case("total += loss.item()\nif step % 10 == 0:\n    print('%.3f' % (total / 10))\n    total = 0.0"),
    "returned": Case("total += loss.item()\nif step == 2:\n    return total / 2"),
    "left": Case("total += loss.item()\nif step + 1 == 3:\n    break"),
    "changed": Case("total += loss.item()\nwith torch.no_grad():\n    loss /= 10"),
    "gone": Case("total += loss.item()\ndel loss"),
    "several": Case("total += loss.item()\ntotal += outputs.mean().item()"),
    "a sum": Case("total += loss.item() + outputs.mean().item()"),
    "a product": Case("total += inputs.size(0) * loss.item() / 7 - 1"),
    "perhaps": Case("if step % 2:\n    total += loss.item()\nelse:\n    total += 1"),
    "several times": Case("for k in range(2):\n    total += loss.item()"),
    "float": Case("total += 2 * float(loss.detach() + 1)"),
    "detached": Case("total += loss.detach().item()"),
    "brackets": Case("total += (loss.item())", after="return(total)"),
    "a semicolon": Case("total += loss.item(); n = 1"),
    "one element": Case("total += loss.view(1).item()"),
    "hits": Case("total += (outputs.argmax(1) == targets).sum().item()", "total = 0"),
    "hits by method": Case("hits = outputs.argmax(1).eq(targets).sum()\ntotal += hits.item()", "total = 0"),
    "hits as a whole number": Case(
        "total += int((outputs.argmax(1) == targets).sum())", "total = 0", "return range(total)"
    ),
    "hits from 0.0": Case("total += (outputs.argmax(1) == targets).sum().item()"),
    "a match": Case("match step:\n    case 1: total += loss.item()"),
}

LISTS = {
    "plain": Case("log.append(loss.item())", "log = []", "return log"),
    "list()": Case("log.append(loss.item())", "log = list()", "return sum(log), log[-2:]"),
    "two": Case(
        "log.append(loss.item())\nhits.append((outputs.argmax(1) == targets).sum().item())",
        "log, hits = [], []",
        "return log, hits",
    ),
    "changed": Case("log.append(loss.item())\nwith torch.no_grad():\n    loss.div_(10)", "log = []", "return log"),
    "changed by another name": Case(
        "log.append(loss.item())\nwith torch.no_grad():\n    other = loss.detach()\n    other.div_(10)",
        "log = []",
        "return log",
    ),
    "a parameter's": Case("log.append(model.bias.mean().item())", "log = []", "return log"),
    "counted": Case("log.append(loss.item())\nprint(len(log))", "log = []", "return log"),
    "perhaps": Case("if step % 2:\n    log.append(loss.item())", "log = []", "return log"),
    "twice": Case("log.append(loss.item())\nlog.append(loss.item())", "log = []", "return log"),
    "grown behind": Case("log.append(loss.item())", "log = []", "log.append(1.0)\nreturn log"),
    "in brackets": Case("log.append((loss.item()))  # kept", "log = []", "return log"),
    "over lines": Case("log.append(\n    loss.item()  # kept\n)", "log = []", "return log"),
}

# A type checker or a reader would miss the number, or the CPU needs it at each step.
REFUSED = {
    "read at each step": Case("total += loss.item()\nprint(total)"),
    "compared at each step": Case("total += loss.item()\nif total > 99:\n    break"),
    "quoted now and then": Case("total += loss.item()\nif step % 10 == 0:\n    print(f'{total=:.3f}')"),
    "divided now and then": Case("total += loss.item()\nif step % 10 == 0:\n    total /= 2"),
    "a closure": Case("total += loss.item()", after="def inner():\n    return total\nreturn inner()"),
    "a lambda": Case("total += loss.item()", after="return (lambda: total)()"),
    "global": Case("total += loss.item()", "global total\ntotal = 0.0"),
    "annotated": Case("total += loss.item()", "total: float = 0.0"),
    "perhaps not bound": Case("total += loss.item()", "if loader:\n    total = 0.0", "return total if loader else 0"),
    "not from a number": Case("total += loss.item()", "total = []\ntotal = sum(total)"),
    "locals": Case("total += loss.item()", after="return locals()['total']"),
    "a divisor": Case("total += 1 / loss.item()"),
    "a power": Case("total += loss.item() ** 2"),
    "of unknown numbers": Case("total += outputs.argmax(1).sum().item()", "total = 0"),
    "of both kinds": Case("total += loss.item()\ntotal += (outputs > 0).sum().item()", "total = 0"),
    "cut": Case("total += int(loss)", "total = 0"),
    "with a comment": Case("total += (loss  # here\n    .item())"),
    "an attribute": Case("model.total += loss.item()", "model.total = 0.0", "return model.total"),
    "a list with others": Case("log.append(loss.item() if step else 0.0)", "log = []", "return log"),
    "a list with other appends": Case("log.append(loss.item())\nlog.append(0.0)", "log = []", "return log"),
    "a list read at each step": Case("log.append(loss.item())\nprint(log[-1])", "log = []", "return log"),
    "a list that was there": Case("log.append(loss.item())", "log = [1.0]", "return log"),
    "a list with another name": Case("log.append(loss.item())", "log = other = []", "return other"),
    "a list in an attribute": Case("log.append(loss.item())", "log = []\nmodel.log = log", "return model.log"),
    "a list returned early": Case("log.append(loss.item())\nif step == 2:\n    return log", "log = []", "return log"),
    "a list emptied": Case("log.append(loss.item())\nif step == 2:\n    log.clear()", "log = []", "return log"),
    "a list in a closure": Case("log.append(loss.item())", "log = []", "return (lambda: log)()"),
    "a list of vectors' elements": Case("log.append(outputs.sum(1)[0].item())", "log = []", "return log"),
    "a list where torch is hidden": Case("log.append(loss.item())", "log = []\ntorch = None", "return log"),
}

PROGRAMS = {
    "stopped by hand": """
        def train(model, loader, optimizer, criterion):
            total = 0.0
            try:
                for step, (inputs, targets) in enumerate(loader):
                    loss = criterion(model(inputs), targets)
                    loss.backward()
                    optimizer.step()
                    total += loss.item()
                    if step == 2:
                        raise KeyError
                print("done")
                total = total / 2
            except KeyError:
                print("stopped at %.4f" % total)
            finally:
                print("%.4f" % total)
            return total
        """,
    "suppressed": """
        def train(model, loader, optimizer, criterion):
            total = 0.0
            with contextlib.suppress(ValueError):
                for step, (inputs, targets) in enumerate(loader):
                    loss = criterion(model(inputs), targets)
                    loss.backward()
                    total += loss.item()
                    if step == 2:
                        raise ValueError
                print(total)
            return total
        """,
    "epochs": """
        def train(model, loader, optimizer, criterion):
            history, best = [], 0.0
            for epoch in range(3):
                print("%.3f" % best)
                total = 0.0
                losses = []
                for inputs, targets in loader:
                    loss = criterion(model(inputs), targets)
                    loss.backward()
                    optimizer.step()
                    total += loss.item()
                    best += loss.item()
                    losses.append(loss.item())
                history.append((total / 4, losses))
            return history, best
        """,
    "two loops": """
        def train(model, loader, optimizer, criterion):
            total = 0.0
            for inputs, targets in loader:
                loss = criterion(model(inputs), targets)
                loss.backward()
                total += loss.item()
            for inputs, targets in loader:
                loss = criterion(model(inputs), targets)
                loss.backward()
                total += loss.item()
            else:
                print(round(total, 3))
            return total
        """,
    "a generator": """
        def train(model, loader, optimizer, criterion):
            total = 0.0
            for inputs, targets in loader:
                loss = criterion(model(inputs), targets)
                loss.backward()
                total += loss.item()
                yield len(inputs)
            yield total
        """,
    "a while loop": """
        def train(model, loader, optimizer, criterion):
            total, step = 0.0, 0
            while step < len(loader):
                inputs, targets = loader[step]
                step += 1
                loss = criterion(model(inputs), targets)
                loss.backward()
                optimizer.step()
                total += loss.item()
            return total
        """,
    "one line": """
        def train(model, loader, optimizer, criterion):
            total = 0.0
            for x, y in loader: loss = criterion(model(x), y); loss.backward(); total += loss.item()
            return total
        """,
    "a loop over parts": """
        def train(model, loader, optimizer, criterion):
            total = 0.0
            for inputs, targets in loader:
                for part in range(2):
                    loss = criterion(model(inputs), targets)
                    loss.backward()
                    optimizer.step()
                    total += loss.item()
                total += 1
            return total
        """,
}


def each(cases: dict[str, Any]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("case", cases.values(), ids=cases.keys())


def unsafe(code: str) -> str:
    return fixed(code, RULE, Applicability.UNSAFE)


def assert_close(code: str, batches: int) -> None:
    """The fixed program does the same, but that sums are made in single precision."""
    made = unsafe(code)
    assert made != code
    before, after = run(code, batches), run(made, batches)
    assert after.types == before.types
    assert (after.state, after.random) == (before.state, before.random)
    assert numbers(after.result) == pytest.approx(numbers(before.result), rel=1e-5)
    assert after.printed == before.printed
    assert "Error" not in before.result


def numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?(?:e-?\d+)?", text)]


@each(TOTALS)
def test_a_total_on_the_device_is_the_same_number(case: Case) -> None:
    assert_close(case.code(), 4)


@each({name: case for name, case in TOTALS.items() if "total = 0.0" in case.before or "hits" in name})
def test_a_total_of_nothing_stays_what_it_was(case: Case) -> None:
    assert_close(case.code(), 0)


def test_a_total_of_nothing_that_starts_at_0_becomes_a_float() -> None:
    """What the page says: the type of a sum of losses no longer depends on whether there were any."""
    code = training("total += loss.item()", before="total = 0", after="return total")
    assert (run(code, 0).result, run(unsafe(code), 0).result) == ("0", "0.0")


@pytest.mark.parametrize("batches", [4, 0])
@each(LISTS)
def test_a_list_holds_the_very_same_numbers(case: Case, batches: int) -> None:
    code = case.code()
    made = unsafe(code)
    assert made.count(".item()") < code.count(".item()")
    assert run(made, batches) == run(code, batches)


@each(PROGRAMS)
def test_whole_programs(case: str) -> None:
    assert_close(program(case), 4)
    assert_close(program(case), 0)


@each(REFUSED)
def test_what_cannot_wait_is_reported_only(case: Case) -> None:
    assert not any(finding.fix for finding in findings(case.code(), RULE))


def test_a_total_in_single_precision_differs_in_the_last_digits() -> None:
    """What the page says: Python adds up in double precision, the device in that of the loss."""
    exact = inexact = 0.0
    total = torch.zeros(())
    for value in torch.linspace(0.9, 1.1, 10_000):
        exact += value.item()
        total += value
    inexact = float(total)
    assert exact != inexact
    assert inexact == pytest.approx(exact, rel=1e-4)


def test_both_files_of_the_fixture_do_the_same_but_for_rounding() -> None:
    slow, fast = (trained("item_in_train_loop", name) for name in ("slow.py", "fast.py"))
    assert fast == (pytest.approx(slow[0]), slow[1], slow[2])
    assert slow[2]


def trained(folder: str, name: str) -> Any:  # noqa: ANN401 - whatever `train` returns
    names: dict[str, Any] = {"__name__": "fixture"}
    code = (files("torchlint.fixtures") / folder / name).read_text("utf-8")
    exec(compile(code, name, "exec"), names)  # noqa: S102 - our own fixture
    torch.manual_seed(0)
    returned, _ = names["run"](names["setup"]("cpu", "smoke"))
    return returned


@pytest.mark.parametrize("kernel", ["kernel[(1,)]", "kernels[0][grid]", "(kernel if fast else other)", "made()"])
def test_a_read_given_to_what_has_no_name(kernel: str) -> None:
    check_snippet(
        f"""
        import torch
        def train(loader, optimizer, model, kernel, kernels, other, fast, grid, made):
            for x, y in loader:
                loss = torch.nn.functional.mse_loss(model(x.cuda()), y.cuda())
                loss.backward()
                optimizer.step()
                {kernel}(loss.item())  # <- {RULE}
        """,
        RULE,
    )


def test_a_ratio_of_elements_is_read_element_by_element() -> None:
    result = check_snippet(
        """
        import torch
        def train(model, loader, optimizer, criterion, log):
            for inputs, targets in loader:
                sums, counts = torch.stack([model(inputs.cuda()).sum(0)] * 2)
                loss = sums.sum()
                loss.backward()
                optimizer.step()
                for name, total, count in zip("ab", sums, counts):
                    log[name] = (total / count).item()  # <- item-in-train-loop
        """,
        RULE,
    )
    assert "tolist()" in result.findings[0].help


def test_a_read_for_a_warning_and_reads_on_the_cpu() -> None:
    check_snippet(
        """
        import torch
        def train(model, loader, optimizer, limit, stats):
            for x in loader:
                x = x.cuda()
                if x.max() > limit:
                    warn_once("too long: {}".format(x.max().item()))
                first, second = model(x).chunk(2)
                first.mean().backward()
                optimizer.step()
                stats.extend(first[::4].detach().numpy())
                stats.append(first.mean().item())
                stats.append(second.mean().item())  # <- item-in-train-loop
        """,
        RULE,
    )


def test_reads_that_somebody_asks_for() -> None:
    check_snippet(
        """
        import torch
        def train(model, loader, optimizer, verbose, save, log):
            for x in loader:
                loss = model(x.cuda()).mean()
                loss.backward()
                optimizer.step()
                if verbose:
                    log(loss.item())  # <- item-in-train-loop?
                if save:
                    log(loss.item())  # <- item-in-train-loop
        """,
        RULE,
    )


def test_computed_by_functions_on_the_cpu() -> None:
    code = """
        import torch
        import measures
        def overlap(a: torch.Tensor, b: torch.Tensor):
            return torch.min(a, b).sum(1) / torch.max(a, b).sum(1)
        def train(model, loader, optimizer, criterion, meter):
            for inputs, targets in loader:
                found = model(inputs.cuda())
                loss = criterion(found, targets.cuda())
                loss.backward()
                optimizer.step()
                meter.update({}){}
        """
    check_snippet(code.format("overlap(found.detach().cpu(), targets).mean().item()", ""), RULE)
    check_snippet(code.format("measures.overlap(found.detach().cpu(), loss.cpu(), 0.5).mean().item()", ""), RULE)
    check_snippet(code.format("overlap(found.detach(), targets.cuda()).mean().item()", f"  # <- {RULE}"), RULE)


def test_what_the_only_caller_has_copied_to_the_cpu() -> None:
    code = """
        import torch
        from torch import nn
        import drawing
        class Head(nn.Module):
            def assign(self, boxes, least):
                widths = boxes[:, 3] - boxes[:, 1]
                radius = drawing.radius(widths, least=least)
                radius = torch.clamp_min(radius.int(), min=1)
                found = []
                for k in range(boxes.shape[0]):
                    found.append(drawing.circle(radius[k].item()))  {}
                return found
            def forward(self, boxes: torch.Tensor):
                return self.assign(boxes{}, 0.1)
        """
    check_snippet(code.format("", ".cpu()"), RULE)
    check_snippet(code.format(f"# <- {RULE}", ""), RULE)


def test_a_check_for_an_accelerator_puts_nothing_on_it() -> None:
    code = """
        import torch
        from torch import nn
        class Policy(nn.Module):
            def __init__(self):
                super().__init__()
                self.scores = nn.Parameter(torch.zeros(8))
            def forward(self):
                return self.scores.softmax(-1)
        def search(rewards, count):
            assert torch.cuda.is_available(), "there is no CUDA"
            torch.backends.cudnn.benchmark = True
            torch.cuda.manual_seed(0)
            policy = Policy(){}
            optimizer = torch.optim.Adam(policy.parameters())
            total = 0
            while total < count:
                choice = torch.distributions.Categorical(policy())
                action = choice.sample()
                loss = (-choice.log_prob(action) * rewards(total)).sum()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                total += 1
                print(f"{{total}}", loss.item())  {}
        """
    check_snippet(code.format("", ""), RULE)
    check_snippet(code.format(".cuda()", f"# <- {RULE}"), RULE)


def test_the_batch_sizes_of_a_packed_sequence_are_on_the_cpu() -> None:
    code = """
        import torch
        from torch import nn
        from torch.nn.utils.rnn import PackedSequence
        class Cell(nn.Module):
            def forward(self, x: torch.Tensor, batch_sizes: torch.Tensor):
                for step in range(9):
                    size = batch_sizes[step].item()  {}
                    x = self.cell(x[:size])
                return {}
    """
    check_snippet(code.format(f"# <- {RULE}", "x").replace("from torch.nn.utils.rnn import PackedSequence", ""), RULE)
    check_snippet(code.format("", "PackedSequence(x, batch_sizes)"), RULE)


def test_parts_of_a_model_of_which_nothing_is_known_in_a_script_for_the_cpu() -> None:
    """A Gaussian process as its library's notebooks fit it."""
    code = """
        import torch
        from library import Model, likelihood, objective
        model = Model(likelihood)
        {}
        optimizer = torch.optim.Adam(model.parameters())
        for i in range(50):
            optimizer.zero_grad()
            loss = -objective(model(inputs), targets)
            loss.backward()
            print(i, model.kernel.lengthscale.item())  {}
            optimizer.step()
    """
    check_snippet(code.format("", ""), RULE)
    check_snippet(code.format("model.cuda()", f"# <- {RULE}"), RULE)


def test_how_values_were_read_of_what_is_reduced_and_computed_with() -> None:
    check_snippet(
        """
        import torch
        def train(model, loader, optimizer, limit):
            for x in loader:
                x = x.cuda()
                y = model(x)
                difference = torch.mean(y - x)
                loss = torch.mean(torch.abs(y))
                loss.backward()
                optimizer.step()
                total = (loss + torch.abs(difference)).data[0]  # <- item-in-train-loop
                rows = torch.mean(y, 1).data[0]
                row = torch.abs(y).data[0]
                limit.note(total, rows, row)
        """,
        RULE,
    )


def test_what_is_reduced_along_a_dimension_is_a_tensor() -> None:
    check_snippet(
        """
        import torch
        from torch import nn
        class Embedding(nn.Module):
            def forward(self, texts, mask=None):
                if mask is None:
                    return self.embed(texts)
                lengths = mask.sum(dim=1)
                found = []
                for i in range(texts.shape[0]):
                    found.append(self.embed(texts[i], lengths[i].item()))  # <- item-in-train-loop
                return torch.stack(found)
        class Dataset:
            def shares(self, samples, table):
                counts = table.sum(dim="time")
                rows = samples.sum(axis=1)
                return [counts[i].item() + rows[i].item() for i in range(3)]
        """,
        RULE,
    )


def test_there_is_nothing_to_gain_where_the_same_value_is_read_all_the_same() -> None:
    code = """
        import torch
        def train(model, loader, optimizer, criterion, tracker):
            total = 0.0
            for step, (x, y) in enumerate(loader):
                loss = criterion(model(x.cuda()), y.cuda())
                loss.backward()
                optimizer.step()
                total += loss.item()  # <- item-in-train-loop
                {}
            return total
    """
    again = "tracker.update(float(loss))  # <- item-in-train-loop"
    check_snippet(code.format(again), RULE, fixed=re.sub(" *# <-.*", "", code.format(again)))
    seldom = "if step % 100 == 0: tracker.update(float(loss))"
    result = check_snippet(code.format(seldom), RULE)
    assert [finding.fix is not None for finding in result.findings if finding.rule == RULE] == [True]


def test_what_a_test_has_ruled_out_is_no_tensor() -> None:
    check_snippet(
        """
        import torch
        from torch import nn
        class Embedding(nn.Module):
            def forward(self, text: torch.Tensor, length):
                if torch.is_tensor(length):
                    length = length.to(device=text.device, dtype=torch.long)
                    longest = int(length.max())  # <- item-in-train-loop?
                else:
                    longest = int(length)
                return text[:, :longest]
        """,
        RULE,
    )


def test_a_network_reads_what_it_has_computed() -> None:
    """What a method of a network computes has `item` only as a tensor, though nothing says what it is."""
    check_snippet(
        """
        import numpy as np
        import torch
        from torch import nn
        class Head(nn.Module):
            def get_loss(self):
                logs = {}
                total = 0
                for idx, predicted in enumerate(self.state["predicted"]):
                    heat = self.heat_loss(predicted["heat"], self.state["heat"][idx])
                    heat *= self.config.weights["heat"]
                    boxes = self.box_loss(predicted["boxes"], self.state["boxes"][idx])
                    boxes = boxes * self.config.weights["boxes"]
                    total += heat + boxes
                    logs[f"heat {idx}"] = heat.item()  # <- item-in-train-loop?
                    logs[f"boxes {idx}"] = boxes.item()  # <- item-in-train-loop?
                    logs["sparse"] = np.ceil(np.log1p(self.length)).astype("int").item()
                return total, logs
            @staticmethod
            def converted(path):
                state = read(path)
                return state["scale"].item()
        """,
        RULE,
    )


def test_gradients_are_tensors() -> None:
    """Only parameters have a `grad`, and only tensors a `norm` and an `item`."""
    check_snippet(
        """
        import torch
        class Optimizer:
            def step(self):
                total = 0
                for group in self.groups:
                    for p in group:
                        total += p.grad.data.norm(2).item() ** 2  # <- item-in-train-loop?
                return total
        """,
        RULE,
    )


@pytest.mark.parametrize(
    ("lines", "is_certain"),
    [
        (("for layer in self.layers:", "    x = layer(x) * scale.item()"), True),
        (("for layer in self.layers:", "    x = layer(x, scale) * scale.max().item()"), True),
        (("for layer in self.layers:", "    scale = layer(x)", "    x = x * scale.item()"), False),
        (("for layer in self.layers:", "    x = layer(x) * scale.item()", "    scale.mul_(2)"), False),
        (("for layer in self.layers:", "    update(scale)", "    x = layer(x) * scale.item()"), False),
        (("for layer in self.layers:", "    x = layer(x) * self.scale.item()"), False),
    ],
)
def test_the_same_value_in_each_iteration(lines: tuple[str, ...], is_certain: bool) -> None:  # noqa: FBT001
    body = "".join(f"        {line}\n" for line in lines)
    code = (
        "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n"
        "        self.layers = nn.ModuleList(nn.Linear(2, 2) for _ in range(4))\n"
        "        self.scale = nn.Parameter(torch.ones(1))\n\n"
        f"    def forward(self, x: torch.Tensor, scale: torch.Tensor):\n{body}        return x\n"
    )
    mark = "  # <- item-in-train-loop" if is_certain else "  # <- item-in-train-loop?"
    check_snippet(code.replace(".item()", f".item(){mark}"), "item-in-train-loop")


def test_a_step_that_adds_up_gradients_in_loops_is_a_step() -> None:
    """A function that goes over parts of a batch, and takes the step itself, goes over no batches."""
    code = """
        import torch
        def step_of(model, optimizer, parts):
            def step(x, y):
                optimizer.zero_grad()
                for i in range(parts):
                    loss = torch.nn.functional.mse_loss(model(x[i].cuda()), y[i].cuda())
                    loss.backward()
                optimizer.step()
                return {"loss": loss.item()}  # <- item-in-train-loop
            return step
    """
    check_snippet(code, RULE)
    check_snippet(code.replace("optimizer.zero_grad()", "pass").replace("  # <- item-in-train-loop", ""), RULE)


def test_the_step_for_several_backward_passes_is_a_note() -> None:
    check_snippet(
        """
        import torch
        def train(model, loader, optimizer, criterion, every):
            for i, (x, y) in enumerate(loader):
                loss = criterion(model(x.cuda()), y.cuda())
                loss.backward()
                if i % every == 0:
                    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                    optimizer.step()
                    optimizer.zero_grad()
                    log(norm.item())  # <- item-in-train-loop?
                if i % every == 0:
                    log(loss.item())
        """,
        RULE,
    )


def test_a_step_that_is_taken_every_second_turn_is_a_note() -> None:
    """How often it is taken an option decides; what a network is made with on the CPU stays there."""
    check_snippet(
        """
        import torch
        from torch import nn
        class Agent:
            def __init__(self, actor, policy_delay=2):
                self.actor = actor.cuda()
                self.policy_delay = policy_delay
                self.steps = 0
            def learn(self, state):
                logs = {}
                self.steps += 1
                if self.steps % self.policy_delay == 0:
                    loss = -self.actor(state.cuda()).mean()
                    logs["actor"] = loss.item()  # <- item-in-train-loop?
                    loss.backward()
                    self.optimizer.step()
                return logs
        agent = Agent(nn.Linear(8, 8))
        for step in range(100000):
            log(agent.learn(buffer.sample()))
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.depth = [torch.LongTensor([3]), torch.LongTensor([4])]
                self.width = self.depth[0].item()
        """,
        RULE,
    )


@pytest.mark.parametrize(
    ("imported", "mark"), [("", f"  # <- {RULE}?"), ("import numpy as np\n", ""), ("import pandas\n", "")]
)
def test_what_has_item_where_nobody_speaks_of_arrays_is_a_tensor(imported: str, mark: str) -> None:
    code = (
        f"{imported}import torch\n"
        "def converted(graph, parts):\n"
        "    total = 0\n"
        "    for i, part in enumerate(parts):\n"
        f"        total += graph.sampled(part).offsets[i].item(){mark}\n"
        "    return torch.zeros(total)\n"
    )
    check_snippet(code, RULE)


@pytest.mark.parametrize(
    ("power", "is_read"),
    [("math.pow(p.grad.norm(), 2)", True), ("math.pow(2, p.numel())", False), ("math.pow(p.numel(), 2)", False)],
)
def test_a_power_of_one_element(power: str, *, is_read: bool) -> None:
    mark = "  # <- item-in-train-loop" if is_read else ""
    check_snippet(
        f"""
        import math
        import torch
        def train(model, loader, optimizer):
            for x, y in loader:
                torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda()).backward()
                total = 0
                for p in model.parameters():
                    total += {power}{mark}
                optimizer.step()
        """,
        RULE,
    )


@pytest.mark.parametrize(
    ("before", "read", "mark"),
    [
        ("starts = graph.starts", "starts[i]", "  # <- item-in-train-loop?"),
        ("", "graph.sampled(i).starts[i]", ""),
        ("starts = graph.starts", "starts[0]", ""),
        ("starts = [3]", "starts[i]", ""),
    ],
)
def test_what_is_read_per_iteration_of_what_nobody_knows(before: str, read: str, mark: str) -> None:
    """Needed it may be: one read before the loop brings all of it."""
    code = (
        "import torch\ndef converted(graph, rows, parts):\n"
        + (f"    {before}\n" if before else "")
        + f"    made = []\n    for i, part in enumerate(parts):\n        made.append(rows[: {read}.item()]){mark}\n"
        "    return torch.cat(made)\n"
    )
    check_snippet(code, RULE)


@pytest.mark.parametrize(("used", "mark"), [("words", ""), ("prepared(words)", f"  # <- {RULE}?")])
def test_what_a_dataset_calls_reads_on_the_cpu(used: str, mark: str) -> None:
    check_snippet(
        f"""
        import torch
        from torch.utils.data import Dataset
        def count(words, pad):
            targets = torch.stack([tokens(word) for word in words], dim=0)
            for word, target in zip(words, targets):
                target[: int(target.ne(pad).sum())] = 0{mark}
            return targets
        def prepared(words):
            return count(words, 0)
        class Texts(Dataset):
            def __getitem__(self, i):
                return prepared(self.texts[i])
        def train(net, loader, optimizer):
            for words in loader:
                net({used}).mean().backward()
                optimizer.step()
        """,
        RULE,
    )


@pytest.mark.parametrize(
    ("given", "mark"),
    [("loud=False", f"  # <- {RULE}?"), ("loud=True", f"  # <- {RULE}"), ("loud", f"  # <- {RULE}")],
)
def test_an_option_that_nobody_switches_on(given: str, mark: str) -> None:
    made = "Trainer(net, True)" if given == "loud" else "Trainer(net)"
    check_snippet(
        f"""
        import torch
        class Trainer:
            def __init__(self, net, {given}):
                self.net, self.total = net.cuda(), 0
                self.loud = loud
            def step(self, x):
                loss = self.net(x).mean()
                loss.backward()
                if self.loud:
                    self.total += loss.item(){mark}
        def train(net, loader):
            trainer = {made}
            for x in loader:
                trainer.step(x.cuda())
        """,
        RULE,
    )


@pytest.mark.parametrize(("test", "mark"), [("", ""), ("not ", f"  # <- {RULE}")])
def test_what_runs_while_a_graph_is_exported(test: str, mark: str) -> None:
    check_snippet(
        f"""
        import torch
        def train(net, loader, total=0):
            for x in loader:
                loss = net(x.cuda()).mean()
                loss.backward()
                if {test}torch.onnx.is_in_onnx_export():
                    total += loss.item(){mark}
            return total
        """,
        RULE,
    )


def test_behind_a_wait_of_another_kind_it_is_a_note() -> None:
    check_snippet(
        """
        import torch
        def train(model, loader, optimizer, meter):
            for x in loader:
                loss = model(x.cuda()).mean()
                loss.backward()
                optimizer.step()
                torch.cuda.synchronize()
                meter.update(loss.item())  # <- item-in-train-loop?
        """,
        RULE,
    )


@pytest.mark.parametrize("imported", ["torch", "torch, numpy"])
def test_what_may_be_anything_is_read_where_it_is_seen_to_recur(imported: str) -> None:
    check_snippet(
        f"""
        import {imported}
        def evaluate(state, loader, step, device):
            losses = []
            for i, batch in enumerate(loader):
                x = batch.to(device)
                loss, extra = step(state, i)
                losses.append(loss.item())  # <- item-in-train-loop?
            return losses
        def once(config):
            return config.steps.item()
        """,
        RULE,
    )


@pytest.mark.parametrize(
    "read",
    [
        "loss.cpu().item()",
        "loss.to('cpu').item()",
        "loss.to('cpu').detach().item()",
        "float(loss.detach().to('cpu'))",
        "loss.to(torch.float64).item()",
    ],
)
def test_a_copy_before_the_read_is_part_of_it(read: str) -> None:
    check_snippet(
        f"""
        import torch
        def train(model, loader, optimizer):
            total = 0.0
            for x in loader:
                loss = model(x.cuda()).mean()
                loss.backward()
                optimizer.step()
                total += {read}  # <- {RULE}
            return total
        """,
        RULE,
    )


@pytest.mark.parametrize(
    "asked", ["isinstance(value, torch.Tensor)", "type(value) == torch.Tensor", "type(value) is torch.Tensor"]
)
def test_a_value_of_which_the_type_is_asked(asked: str) -> None:
    check_snippet(
        f"""
        import numpy as np
        import torch
        def log(value, kept):
            if {asked}:
                value = value.item()  # <- {RULE}
            kept.append(np.float32(value))
        def train(model, loader, optimizer, kept):
            for x in loader:
                loss = model(x.cuda()).mean()
                loss.backward()
                optimizer.step()
                log(loss.detach(), kept)
        """,
        RULE,
    )


def test_what_is_no_number_where_it_is_read() -> None:
    check_snippet(
        f"""
        import torch
        def run(step, loader, device):
            losses = []
            for i, batch in enumerate(loader):
                x = batch.to(device)
                if i % 2:
                    loss = 0
                    loss += step(i)
                else:
                    loss = step(0)
                losses.append(loss.item())  # <- {RULE}?
            return losses
        """,
        RULE,
    )


def test_code_that_never_runs_and_steps_that_are_few() -> None:
    code = """
        import torch
        def train(model, loader, optimizer, steps, global_step):
            for x in loader:
                {}
                loss = model(x.cuda()).mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                global_step += 1
                if {}:
                    print(loss.item()){}
    """
    check_snippet(code.format("pass", "loss is not None", f"  # <- {RULE}"), RULE)
    check_snippet(code.format("pass", "global_step in steps", ""), RULE)
    for leaves in ("assert False", "assert 0, 'not yet'", "raise NotImplementedError", "continue"):
        check_snippet(code.format(leaves, "loss is not None", ""), RULE)
    check_snippet(code.format("assert loader", "loss is not None", f"  # <- {RULE}"), RULE)


@pytest.mark.parametrize(
    ("given", "mark"), [("norm", f"  # <- {RULE}"), ("norm.item()", f"  # <- {RULE}"), ("lr", ""), ("[lr, 0.1]", "")]
)
def test_a_tensor_made_of_a_tensor_is_where_that_is(given: str, mark: str) -> None:
    check_snippet(
        f"""
        import torch
        def train(model, loader, optimizer, log, lr: float):
            for x in loader:
                model(x.cuda()).mean().backward()
                norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                log.append(torch.tensor({given}).max().item()){mark}
        """,
        RULE,
    )


@pytest.mark.parametrize(
    ("asked", "longest", "mark"),
    [
        ('!= "cpu"', "lengths[1:] - lengths[:-1]", ""),
        ('!= "cpu"', "lengths[1:] - 1", ""),
        ('!= "cpu"', "lengths[0] * x", "  # <- item-in-train-loop"),
        ('== "cpu"', "lengths[1:] - lengths[:-1]", "  # <- item-in-train-loop"),
    ],
)
def test_what_has_to_be_on_the_cpu(asked: str, longest: str, mark: str) -> None:
    check_snippet(
        f"""
        import torch
        def longest(lengths: torch.Tensor, x: torch.Tensor):
            if lengths.device.type {asked}:
                raise ValueError(lengths)
            return ({longest}).max().item() + 1{mark}
        def train(model, loader, optimizer):
            for x in loader:
                loss = model(x, longest(model.lengths(x), model.grid)).mean()
                loss.backward()
                optimizer.step()
        """,
        RULE,
    )


@pytest.mark.parametrize(("images", "mark"), [("range(boxes.size(0))", "  # <- item-in-train-loop?"), ("names", "")])
def test_a_count_that_decides_for_each_class_of_each_image(images: str, mark: str) -> None:
    """However often it is called, there are as many waits as images."""
    check_snippet(
        f"""
        import torch
        class Detector:
            def detect_all(self, boxes: torch.Tensor, names):
                found = []
                for i in {images}:
                    for c in range(1, self.classes):
                        kept = (boxes > c).sum().item(){mark}
                        if kept == 0:
                            continue
                        found.append(self.pick(i, c))
                return found
        """,
        RULE,
    )
