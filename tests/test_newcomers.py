"""The problems that README advertises, as somebody types them who tries torchlint: each is named, as surely as it is sure.

A line ends in `# <- rule` for a warning and in `# <- rule?` for a note.
"""

from __future__ import annotations

import textwrap
from collections import Counter

import pytest
from laws import active, marks, places, unmarked

SNIPPETS = {
    "a tensor that is made and moved": """
        import torch

        x = torch.zeros(1000, 1000).cuda()  # <- host-factory-then-move?
    """,
    "the same by a name": """
        import torch

        x = torch.randn(512, 512)
        x = x.to("cuda")  # <- host-factory-then-move?
    """,
    "the same with a device": """
        import torch

        device = "cuda" if torch.cuda.is_available() else "cpu"
        noise = torch.randn(64, 100).to(device)  # <- host-factory-then-move?
    """,
    "the same in a function": """
        import torch

        def make_mask(n, device):
            return torch.ones(n, n).to(device)  # <- host-factory-then-move?
    """,
    "a loss that is read in each step": """
        import torch

        for x, y in train_loader:
            loss = criterion(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            running_loss += loss.item()  # <- item-in-train-loop
    """,
    "the same in a function, all handed in": """
        import torch

        def train(model, loader, optimizer, criterion):
            total = 0
            for x, y in loader:
                optimizer.zero_grad()
                out = model(x)
                loss = criterion(out, y)
                loss.backward()
                optimizer.step()
                total += loss.item()  # <- item-in-train-loop
            return total / len(loader)
    """,
    "the same with other names": """
        import torch

        def fit(net, data, opt, crit):
            losses = []
            for a, b in data:
                opt.zero_grad()
                l = crit(net(a), b)
                l.backward()
                opt.step()
                losses.append(l.item())  # <- item-in-train-loop
            return losses
    """,
    "a loss that is printed in each step": """
        import torch

        for epoch in range(10):
            for i, (x, y) in enumerate(train_loader):
                loss = loss_fn(model(x.to(device)), y.to(device))
                loss.backward()
                optimizer.step()
                print(f"step {i} loss {loss}")  # <- implicit-sync-in-logging
    """,
    "the same by a percent sign": """
        import torch

        for epoch in range(10):
            for i, (x, y) in enumerate(train_loader):
                loss = loss_fn(model(x.to(device)), y.to(device))
                loss.backward()
                optimizer.step()
                print("loss: %f" % loss)  # <- implicit-sync-in-logging
    """,
    "an accuracy that is counted in each batch": """
        import torch

        def evaluate(model, loader):
            model.eval()
            correct = 0
            with torch.no_grad():
                for x, y in loader:
                    pred = model(x.cuda()).argmax(1)
                    correct += (pred == y.cuda()).sum().item()  # <- item-in-eval-loop
            return correct
    """,
    "an evaluation with autograd on": """
        import torch

        def evaluate(model, loader):
            model.eval()
            correct = 0
            for x, y in loader:
                out = model(x)  # <- eval-without-no-grad
                correct += (out.argmax(1) == y).sum()
            return correct
    """,
    "the same at module level": """
        import torch

        model.eval()
        for x, y in test_loader:
            pred = model(x).argmax(1)  # <- eval-without-no-grad
            hits += (pred == y).sum()
    """,
    "a prediction with autograd on": """
        import torch
        from PIL import Image

        model = torch.load("model.pt")
        model.eval()
        image = preprocess(Image.open("cat.jpg")).unsqueeze(0)
        output = model(image)  # <- eval-without-no-grad?
        print(output.argmax())
    """,
    "a loader without workers": """
        from torch.utils.data import DataLoader
        from torchvision.datasets import ImageFolder

        train_loader = DataLoader(ImageFolder("data"), batch_size=64, shuffle=True)  # <- dataloader-no-workers
        for x, y in train_loader:
            loss = model(x.cuda()).sum()
            loss.backward()
    """,
    "the same with a dataset of one's own": """
        from torch.utils.data import DataLoader, Dataset
        from PIL import Image

        class Photos(Dataset):
            def __init__(self, paths):
                self.paths = paths

            def __len__(self):
                return len(self.paths)

            def __getitem__(self, i):
                return transform(Image.open(self.paths[i]))

        loader = DataLoader(Photos(paths), batch_size=32, num_workers=0)  # <- dataloader-no-workers
        for x in loader:
            model(x.cuda()).sum().backward()
    """,
    "a loader of an unknown dataset": """
        from torch.utils.data import DataLoader

        loader = DataLoader(dataset, batch_size=32)  # <- dataloader-no-workers
        for x, y in loader:
            loss = criterion(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
    """,
    "data parallel": """
        import torch.nn as nn

        model = nn.DataParallel(model).cuda()  # <- data-parallel
    """,
    "a bias before a norm": """
        import torch.nn as nn

        block = nn.Sequential(
            nn.Conv2d(3, 64, 3, padding=1),  # <- bias-before-batchnorm
            nn.BatchNorm2d(64),
            nn.ReLU(),
        )
    """,
    "the same in a module": """
        import torch.nn as nn

        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = nn.Conv2d(3, 64, 3)  # <- bias-before-batchnorm
                self.bn = nn.BatchNorm2d(64)

            def forward(self, x):
                return self.bn(self.conv(x)).relu()
    """,
    "a loop over the rows of a tensor": """
        import torch

        x = torch.randn(1000, 64, device="cuda")
        out = torch.zeros(1000, device="cuda")
        for i in range(x.shape[0]):  # <- python-loop-over-tensor
            out[i] = (x[i] ** 2).sum()
    """,
    "such a loop in a function": """
        import torch

        def norms(x: torch.Tensor):
            result = []
            for i in range(len(x)):  # <- python-loop-over-tensor?
                result.append(x[i].norm())
            return torch.stack(result)
    """,
    "a tensor that grows": """
        import torch

        outputs = torch.empty(0, 10).cuda()
        for x, y in loader:
            outputs = torch.cat([outputs, model(x.cuda())])  # <- cat-grow-in-loop
    """,
    "a branch on a tensor": """
        import torch

        for x, y in loader:
            loss = criterion(model(x.cuda()), y.cuda())
            if torch.isnan(loss):  # <- per-step-nan-check
                print("nan!")
                break
            loss.backward()
            optimizer.step()
    """,
    "a cache that is emptied in each step": """
        import torch

        for x, y in loader:
            loss = criterion(model(x.cuda()), y.cuda())
            loss.backward()
            optimizer.step()
            torch.cuda.empty_cache()  # <- empty-cache-in-loop
    """,
    "predictions that are copied to the CPU in each step": """
        import torch

        preds = []
        for x, y in train_loader:
            optimizer.zero_grad()
            out = model(x.cuda())
            loss = criterion(out, y.cuda())
            loss.backward()
            optimizer.step()
            accuracy += (out.argmax(1).cpu() == y).float().mean()  # <- bulk-d2h-in-hot-loop
    """,
    "a list of losses with their graphs": """
        import torch

        history = []
        for x in loader:
            fake = generator(noise)
            d_loss = discriminator(fake.detach()).mean()
            d_loss.backward()
            d_optimizer.step()
            history.append(d_loss)  # <- graph-retained-in-accumulator
    """,
}


@pytest.mark.parametrize("name", SNIPPETS)
def test_what_is_advertised_is_named(name: str) -> None:
    code = textwrap.dedent(SNIPPETS[name]).lstrip("\n")
    wanted = Counter(marks(code))
    found = Counter(places(unmarked(code), active(*{rule.rstrip("?") for _, rule in wanted})))
    assert found == wanted, code
