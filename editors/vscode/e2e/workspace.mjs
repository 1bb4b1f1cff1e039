// The files that the drive opens.

export const TRAIN = `import torch
from torch import nn
from torch.utils.data import DataLoader

from digits import Digits


def train(model, dataset, optimizer):
    loader = DataLoader(dataset, batch_size=64, shuffle=True)
    total = 0.0
    for images, labels in loader:
        images, labels = images.cuda(), labels.cuda()
        weight = torch.ones(10).cuda()
        loss = nn.functional.cross_entropy(model(images), labels, weight)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(loader)


if __name__ == "__main__":
    model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(3):
        print(train(model, Digits(), optimizer))
`;

export const DIGITS = `import torch
from torch.utils.data import Dataset


class Digits(Dataset):
    def __len__(self):
        return 2048

    def __getitem__(self, index):
        return torch.randn(784, generator=torch.Generator().manual_seed(index)), index % 10
`;

export const SCORE = `import torch


@torch.no_grad()
def score(model, batches):
    hits = []
    for images, labels in batches:
        scale = torch.zeros(10).cuda()
        hits.append((model(images.cuda()) + scale).argmax(1) == labels.cuda())
    return torch.cat(hits)
`;

export const PYPROJECT = `[project]
name = "example"
version = "0"

[tool.torchlint.verify]
device = "sim"
`;

const CELLS = [
  ["import torch\n", "from torch import nn\n", "%matplotlib inline"],
  ["model = nn.Linear(784, 10).cuda()\n", "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)"],
  [
    "losses = []\n",
    "for images, labels in loader:\n",
    "    weight = torch.ones(10).cuda()\n",
    "    loss = nn.functional.cross_entropy(model(images.cuda()), labels.cuda(), weight)\n",
    "    optimizer.zero_grad()\n",
    "    loss.backward()\n",
    "    optimizer.step()\n",
    "    losses.append(loss.item())",
  ],
];

export const NOTEBOOK = JSON.stringify(
  {
    cells: CELLS.map((source, index) => ({ cell_type: "code", execution_count: null, id: `cell-${index}`, metadata: {}, outputs: [], source })),
    metadata: { kernelspec: { display_name: "Python 3", language: "python", name: "python3" }, language_info: { name: "python" } },
    nbformat: 4,
    nbformat_minor: 5,
  },
  undefined,
  1,
);
