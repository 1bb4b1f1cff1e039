"""TL301: one value read at each training step is flagged, unless the host acts on it; totals can stay on the device."""

from __future__ import annotations

import pytest
from laws import check_snippet

RULE = "item-in-train-loop"


@pytest.mark.parametrize(
    "code",
    [
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
        "total", "list", "progress bar", "best", "meter", "accuracy", "conversion", "returned by a step", "helper",
        "lightning", "data[0]", "factor",
    ],
)  # fmt: skip
def test_reads_at_each_step(code: str) -> None:
    check_snippet(code, RULE)


@pytest.mark.parametrize(
    "code",
    [
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
                action = dist.sample().item()
                state, reward, done, info = env.step(action)
                loss = dist.log_prob(action).mean()
                loss.backward()
                optimizer.step()
        """,
        """
        import torch
        def rollout(policy, env, state):
            for t in range(1000):
                state, reward, done, info = env.step(policy(state.cuda()).argmax().item())
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
                longest = lengths.max().item()
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
                kl = (out - y.cuda()).mean().item()
                if kl > target_kl:
                    break
                loss.backward()
                optimizer.step()
        """,
        """
        import torch
        def debug_train(model, loader, optimizer, criterion):
            for x, y in loader:
                loss = criterion(model(x.cuda()), y.cuda())
                loss.backward()
                optimizer.step()
                print(loss.item())
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
                if loss.item() > limit:
                    print(f"skipped: {loss.item()}")
                    continue
                loss.backward()
                optimizer.step()
        """,
    ],
    ids=[
        "rate limit", "after the loop", "lengths", "numpy", "action", "action at once", "per epoch", "items", "cpu script",
        "error", "size", "early stop", "debug", "barrier", "skipped",
    ],
)  # fmt: skip
def test_look_alikes(code: str) -> None:
    check_snippet(code, RULE)
