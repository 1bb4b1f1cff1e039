"""What expressions hold."""

from __future__ import annotations

import pytest
from looking import look

from torchlint.semantics.values.lattice import Device, Kind

HEAD = """
import torch
import numpy as np
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader
"""


FIELDS = "from dataclasses import dataclass\nfrom typing import NamedTuple\n"

OWN_LOADER = """
class Mine(DataLoader):
    def __iter__(self):
        for i, b in enumerate(super().__iter__()):
            LOOK(b)
"""
BOUND_BY_THE_INNERMOST = """
def f():
    x = "none"
    def g():
        def h():
            nonlocal x
            x = 3
        h()
    g()
    LOOK(x)
"""

JAXTYPED = "from typing import Optional\nfrom jaxtyping import Int\nfrom torch import Tensor\n"


TURNS = "def f(s):\n  for i in range(9):\n"
SUMMED = "d = f()\nt = {}\nscaler.scale(t).backward()\nfor k, v in d.items():\n    "
ENGINE = "from accelerate import Accelerator\na = Accelerator()\n"


@pytest.mark.parametrize(
    ("code", "kind", "device"),
    [
        ("LOOK(torch.zeros(3))", Kind.TENSOR, Device.CPU),
        ("for v, i in zip(*torch.zeros(3).cuda().sort()):\n    LOOK(i)", Kind.TENSOR, Device.ACCELERATOR),
        ("for v, i in zip(*torch.zeros(3).cuda().cpu().sort()):\n    LOOK(i)", Kind.TENSOR, Device.CPU),
        ("for a, b in zip(*f()):\n    LOOK(a)", Kind.UNKNOWN, None),
        ("import copy\nLOOK(copy.deepcopy(torch.zeros(3).cuda()))", Kind.TENSOR, Device.ACCELERATOR),
        ("from copy import copy\nLOOK(copy(torch.zeros(3)))", Kind.TENSOR, Device.CPU),
        ("import copy\nLOOK(copy.deepcopy(nn.Linear(1, 1).cuda()))", Kind.MODULE, Device.ACCELERATOR),
        ("import copy\nLOOK(copy.deepcopy(f()))", Kind.UNKNOWN, None),
        ("import torch_geometric\ndef g(data):\n    LOOK(data['paper'].x)", Kind.TENSOR, None),
        ("def g(data):\n    LOOK(data['paper'].x)", Kind.UNKNOWN, None),
        ("for pair in zip(*f()):\n    LOOK(pair)", Kind.SEQUENCE, None),
        ("x = torch.zeros(3).cuda()\nmap(lambda v: LOOK(v), (x, x))", Kind.TENSOR, Device.ACCELERATOR),
        ("x = torch.zeros(3).cuda()\nmap(lambda n, v: LOOK(v), [1, 2], x)", Kind.TENSOR, Device.ACCELERATOR),
        ("x = torch.zeros(3).cuda()\nmap(lambda n, v: LOOK(n), [1, 2], x)", Kind.NUMBER, None),
        ("max([torch.zeros(3)], key=lambda v: LOOK(v))", Kind.TENSOR, Device.CPU),
        ("x = torch.zeros(3).cuda()\nf(lambda v: LOOK(v), (x, x))", Kind.UNKNOWN, None),
        ("x = torch.zeros(3).cuda()\ndef map(f, x):\n    pass\nmap(lambda v: LOOK(v), (x, x))", Kind.UNKNOWN, None),
        # What only a part of it shows, it shows of the others: by a method, by what a function of the file does with it.
        ("def f(s, i):\n    y = s[i].detach()\n    LOOK(s[i])", Kind.UNKNOWN, None),
        ("def f(s):\n    for i in range(9):\n        y = s[i].detach()\n        LOOK(s[i + 1])", Kind.TENSOR, None),
        ("def f(s):\n    for i in range(9):\n        y = -s[i].log()\n        LOOK(s[i + 1])", Kind.TENSOR, None),
        ("def f(s):\n    for i in range(9):\n        s[i].log()\n        LOOK(s[i + 1])", Kind.UNKNOWN, None),
        ("def f(s):\n    for i in range(9):\n        y = s[0].detach()\n        LOOK(s[i + 1])", Kind.UNKNOWN, None),
        ("def f(s):\n    for i in range(9):\n        y = s[i].detach()\n        LOOK(s[0])", Kind.UNKNOWN, None),
        ("def f(s):\n    for i in range(9):\n        y = s[i].detach()\n        LOOK(s['x'])", Kind.UNKNOWN, None),
        (f"{TURNS}    g = lambda v: v.log().neg()\n    g(s[i])\n    LOOK(s[i])", Kind.TENSOR, None),
        (f"{TURNS}    def g(v):\n        return v.detach()\n    g(s[i])\n    LOOK(s[i])", Kind.TENSOR, None),
        ("def g(v):\n    return v.detach()\ndef f(x):\n    g(x)\n    LOOK(x)", Kind.TENSOR, None),
        (
            "def g(v):\n    if h(v):\n        v = v.detach()\n    return v\ndef f(x):\n    g(x)\n    LOOK(x)",
            Kind.UNKNOWN,
            None,
        ),
        ("def g(v):\n    v = h(v)\n    return v.detach()\ndef f(x):\n    g(x)\n    LOOK(x)", Kind.UNKNOWN, None),
        ("def g(n, v):\n    return v.detach()\ndef f(x):\n    g(x, 1)\n    LOOK(x)", Kind.UNKNOWN, None),
        ("from tqdm.auto import trange\nfor i in trange(9):\n    LOOK(i)", Kind.NUMBER, None),
        # The backward pass begins at the sum of the values.
        (f"{SUMMED.format('sum(d.values())')}LOOK(v)", Kind.TENSOR, None),
        (f"{SUMMED.format('sum(2 * v for v in d.values())')}LOOK(v)", Kind.TENSOR, None),
        (f"{SUMMED.format('sum(v for v in d.values() if f(v))')}LOOK(v)", Kind.UNKNOWN, None),
        (f"{SUMMED.format('f(d.values())')}LOOK(v)", Kind.UNKNOWN, None),
        ("d = f()\nt = sum(d.values())\nprint(t)\nfor k, v in d.items():\n    LOOK(v)", Kind.UNKNOWN, None),
        # What one of several losses gives is one number.
        ("def f(x):\n    c = nn.MSELoss() if x else nn.L1Loss()\n    LOOK(c(x, x))", Kind.TENSOR, None),
        (f"{ENGINE}LOOK(a.gather(torch.zeros(3).cuda()))", Kind.TENSOR, Device.ACCELERATOR),
        (f"{ENGINE}LOOK(a.reduce(f))", Kind.UNKNOWN, None),
        ("LOOK(a.gather(torch.zeros(3).cuda()))", Kind.UNKNOWN, None),
        ("LOOK(torch.zeros(3).cuda())", Kind.TENSOR, Device.ACCELERATOR),
        ("LOOK(torch.zeros(3, device='cuda'))", Kind.TENSOR, Device.ACCELERATOR),
        ("LOOK(torch.zeros(3).cuda().cpu())", Kind.TENSOR, Device.CPU),
        ("LOOK(torch.zeros(3).to(torch.float16))", Kind.TENSOR, Device.CPU),
        ("d = torch.device('cuda' if x else 'cpu')\nLOOK(torch.zeros(3).to(d))", Kind.TENSOR, Device.MAYBE),
        ("LOOK(torch.zeros(3).cuda() + 1)", Kind.TENSOR, Device.ACCELERATOR),
        ("LOOK(torch.zeros(3).cuda().sum().item())", Kind.NUMBER, None),
        ("LOOK(torch.zeros(3).numpy())", Kind.NDARRAY, None),
        ("for answer in net.generate(torch.ones(3)):\n    LOOK(answer)", Kind.TENSOR, None),
        ("for answer in net.generate(torch.ones(3)):\n    answer.strip()\n    LOOK(answer)", Kind.UNKNOWN, None),
        ("LOOK(np.random.choice(ids))", Kind.NUMBER, None),
        ("LOOK(np.random.choice(ids, p=weights))", Kind.NUMBER, None),
        ("LOOK(np.random.choice(ids, 3))", Kind.NDARRAY, None),
        ("LOOK(np.random.choice(ids, size=3))", Kind.NDARRAY, None),
        ("LOOK(np.random.randint(3))", Kind.NUMBER, None),
        ("LOOK(np.random.randint(0, 3, 4))", Kind.NDARRAY, None),
        ("LOOK(np.random.choice(*given))", Kind.NDARRAY, None),
        ("LOOK(np.argmax(scores))", Kind.NUMBER, None),
        ("LOOK(np.argmax(scores, 1))", Kind.NDARRAY, None),
        ("LOOK(np.mean(scores, axis=0))", Kind.NDARRAY, None),
        ("LOOK(torch.zeros(3).shape[0])", Kind.NUMBER, None),
        ("LOOK(torch.zeros(3).size(0))", Kind.NUMBER, None),
        ("v, i = torch.zeros(3, 4).cuda().max(1)\nLOOK(i)", Kind.TENSOR, Device.ACCELERATOR),
        ("LOOK(torch.zeros(3, 4).cuda().max(1).values)", Kind.TENSOR, Device.ACCELERATOR),
        ("def f(writer, x: torch.Tensor):\n    LOOK(writer.generate(x.cuda(), 3))", Kind.TENSOR, Device.ACCELERATOR),
        ("def f(writer):\n    LOOK(writer.generate('once'))", Kind.UNKNOWN, None),
        ("def f(n, x: torch.Tensor):\n    LOOK(n.decode(x.cuda()).topk(4)[1])", Kind.TENSOR, Device.UNKNOWN),
        ("def f(n, x):\n    LOOK(n.decode('utf-8'))", Kind.STRING, None),
        ("def f(n, x):\n    LOOK(n.encode())", Kind.STRING, None),
        ("def f(n, x):\n    LOOK(n.encode(x))", Kind.UNKNOWN, None),
        ("def f(a, b, x):\n    y = a(b(x.cuda()))\n    LOOK(y)\n    y.backward()", Kind.TENSOR, Device.MAYBE),
        (
            "def f(a, b, x):\n    z = b(x.cuda())\n    y = a(z)\n    LOOK(y)\n    y.backward()",
            Kind.TENSOR,
            Device.MAYBE,
        ),
        ("def f(a, b, x):\n    y = a(b(x))\n    LOOK(y)\n    y.backward()", Kind.TENSOR, Device.UNKNOWN),
        (
            "def f(a, x):\n    for _ in x:\n        y = a(y, x)\n    LOOK(y)\n    y.backward()",
            Kind.TENSOR,
            Device.UNKNOWN,
        ),
        ("for b in DataLoader(x, 4, collate_fn=list):\n    LOOK(b)", Kind.SEQUENCE, None),
        ("for i, b in enumerate(DataLoader(x, collate_fn=list)):\n    LOOK(b)", Kind.SEQUENCE, None),
        ("for b in DataLoader(x, 4, collate_fn=mine):\n    LOOK(b)", Kind.TENSOR, Device.CPU),
        ("def f(model):\n    LOOK(model.generate('once'))", Kind.UNKNOWN, None),
        ("def f(model, ids):\n    LOOK(model.generate(ids))", Kind.TENSOR, None),
        ("def f(model, x):\n    LOOK(model(x.to('cpu')))", Kind.TENSOR, Device.CPU),
        ("def f(model, x: torch.Tensor):\n    LOOK(model(x.cuda().cpu()))", Kind.TENSOR, Device.CPU),
        (
            "def f(model, x: torch.Tensor):\n    model = model.cuda()\n    LOOK(model(x.cpu()))",
            Kind.TENSOR,
            Device.ACCELERATOR,
        ),
        ("def f(model, x):\n    LOOK(model(x))", Kind.TENSOR, Device.UNKNOWN),
        ("found = torch.zeros(3, 4).cuda().topk(2)\nLOOK(found.indices)", Kind.TENSOR, Device.ACCELERATOR),
        ("from jaxtyping import Float\ndef f(x: Float[torch.Tensor, 'b 3']):\n    LOOK(x)", Kind.TENSOR, None),
        (
            f"{JAXTYPED}def f(x: Optional[Int[Tensor, 'b']] = None):\n    LOOK(x)",
            Kind.TENSOR,
            None,
        ),
        ("from jaxtyping import Float\ndef f(x: Float[np.ndarray, 'b 3']):\n    LOOK(x)", Kind.NDARRAY, None),
        ("from torchtyping import TensorType\ndef f(x: TensorType['b', 3]):\n    LOOK(x)", Kind.TENSOR, None),
        ("from tensordict import TensorDict\ndef f(x: TensorDict):\n    LOOK(x['a'])", Kind.TENSOR, None),
        ("from tensordict import TensorDict\ndef f(x: TensorDict):\n    LOOK(x.get('a').any(-1))", Kind.TENSOR, None),
        ("LOOK(torch.zeros(3).max())", Kind.TENSOR, Device.CPU),
        (
            "from functools import partial\nf = partial(torch.zeros, device='cuda')\nLOOK(f(3))",
            Kind.TENSOR,
            Device.ACCELERATOR,
        ),
        ("from functools import partial\nf = partial(torch.zeros, 3)\nLOOK(f())", Kind.TENSOR, Device.CPU),
        ("from functools import partial\nf = partial(nn.Linear, 3)\nLOOK(f(4))", Kind.MODULE, None),
        (
            "from functools import partial\ndef g(a, b):\n    return np.zeros(a)\nf = partial(g, 3)\nLOOK(f(4))",
            Kind.NDARRAY,
            None,
        ),
        (
            "from functools import partial\nf = partial(partial(torch.ones, 3), dtype=d)\nLOOK(f())",
            Kind.TENSOR,
            Device.CPU,
        ),
        ("from functools import partial\nf = partial(*a)\nLOOK(f())", Kind.UNKNOWN, None),
        ("from functools import partial\nf = partial(f, 3)\nLOOK(f())", Kind.UNKNOWN, None),
        (
            f"{FIELDS}@dataclass\nclass Out:\n    x: torch.Tensor\n    n: int\no = Out(a, 3)\nLOOK(o.x)",
            Kind.TENSOR,
            None,
        ),
        (
            f"{FIELDS}@dataclass\nclass Out:\n    x: torch.Tensor\n    n: int\no = Out(a, 3)\nLOOK(o.n)",
            Kind.NUMBER,
            None,
        ),
        (
            f"{FIELDS}class Out(NamedTuple):\n    x: torch.Tensor\n    n: int\no = Out(a, 3)\nLOOK(o.x)",
            Kind.TENSOR,
            None,
        ),
        (
            f"{FIELDS}class Out(NamedTuple):\n    x: torch.Tensor\n    n: int\nx, n = Out(a, 3)\nLOOK(n)",
            Kind.NUMBER,
            None,
        ),
        ("LOOK(np.zeros(3))", Kind.NDARRAY, None),
        ("LOOK(np.sqrt(np.zeros(3)))", Kind.NDARRAY, None),
        ("LOOK(np.sqrt(2))", Kind.NUMBER, None),
        (
            "from typing import NamedTuple\nclass T(NamedTuple):\n    x: torch.Tensor\n    on: T\ndef f(t: T):\n    LOOK(t.on.on.x)",
            Kind.TENSOR,
            None,
        ),
        ("LOOK(np.int64(2.5))", Kind.NUMBER, None),
        ("LOOK(np.int64(np.zeros(3)))", Kind.NDARRAY, None),
        ("LOOK(min(np.round(np.zeros(3)), 3))", Kind.NUMBER, None),
        ("LOOK(np.prod(np.zeros(3)))", Kind.NUMBER, None),
        ("LOOK(torch.from_numpy(np.zeros(3)))", Kind.TENSOR, Device.CPU),
        ("LOOK(nn.Linear(3, 4))", Kind.MODULE, None),
        ("LOOK(nn.CrossEntropyLoss()(a, b))", Kind.TENSOR, None),
        ("LOOK(F.relu(unknown))", Kind.TENSOR, Device.UNKNOWN),
        ("for x, y in DataLoader(ds):\n    LOOK(x)", Kind.TENSOR, Device.CPU),
        ("for x, y in DataLoader(ds):\n    x = x.cuda()\n    LOOK(x)", Kind.TENSOR, Device.ACCELERATOR),
        ("def f(x: torch.Tensor):\n    LOOK(x)", Kind.TENSOR, Device.UNKNOWN),
        ("def f(x: 'torch.Tensor | None'):\n    LOOK(x)", Kind.UNKNOWN, None),
        ("def f(loss):\n    loss.backward()\n    LOOK(loss)", Kind.TENSOR, None),
        ("def f(x):\n    if isinstance(x, torch.Tensor):\n        LOOK(x)", Kind.TENSOR, None),
        ("def f(x):\n    if isinstance(x, torch.Tensor):\n        pass\n    LOOK(x)", Kind.UNKNOWN, None),
        ("def f(m):\n    m.eval()\n    LOOK(m)", Kind.MODULE, None),
        ("total = 0\nfor i in y:\n    total = total + torch.ones(1)\nLOOK(total)", Kind.TENSOR, None),
        ("x = torch.ones(1)\nx = 3\nLOOK(x)", Kind.NUMBER, None),
        ("if a:\n    x = torch.ones(1)\nelse:\n    x = 'text'\nLOOK(x)", Kind.UNKNOWN, None),
        ("if a:\n    x = torch.ones(1)\nelse:\n    x = torch.ones(1).cuda()\nLOOK(x)", Kind.TENSOR, Device.MAYBE),
        ("xs = []\nfor i in y:\n    xs.append(torch.ones(1))\nfor x in xs:\n    LOOK(x)", Kind.TENSOR, None),
        ("def f():\n    return torch.ones(1)\nLOOK(f())", Kind.TENSOR, Device.CPU),
        ("def f(x):\n    return f(x - 1)\nLOOK(f(3))", Kind.UNKNOWN, None),
        (
            (
                "class M(nn.Module):\n    def __init__(self):\n        self.w = torch.ones(3)\n"
                "    def forward(self, x):\n        LOOK(self.w)"
            ),
            Kind.TENSOR,
            None,
        ),
        ("torch = other()\nLOOK(torch.zeros(3))", Kind.UNKNOWN, None),
        ("def f(torch):\n    LOOK(torch.zeros(3))", Kind.UNKNOWN, None),
        ("LOOK(d.items())", Kind.UNKNOWN, None),
        ("x: object = torch.zeros(3)\nLOOK(x)", Kind.TENSOR, Device.CPU),
        ("x: torch.Tensor = load(3)\nLOOK(x)", Kind.TENSOR, Device.UNKNOWN),
        ("from typing import Final\ndef f(x: Final[torch.Tensor]):\n    LOOK(x)", Kind.TENSOR, None),
        ("LOOK(torch.zeros(3, device='mps'))", Kind.TENSOR, Device.ACCELERATOR),
        ("LOOK(torch.zeros(3, device='xpu:0'))", Kind.TENSOR, Device.ACCELERATOR),
        ("LOOK(torch.zeros(3, device='hpu'))", Kind.TENSOR, Device.ACCELERATOR),
        ("LOOK(torch.zeros(3, device='npu:1'))", Kind.TENSOR, Device.ACCELERATOR),
        ("LOOK(torch.Tensor)", Kind.CLASS, None),
        ("LOOK(nn.Linear)", Kind.CLASS, None),
        ("LOOK(F.relu)", Kind.UNKNOWN, None),
        ("LOOK(torch.optim.lr_scheduler.StepLR(optimizer, 3))", Kind.SCHEDULER, None),
        ("LOOK(nn.parallel.DistributedDataParallel(nn.Linear(3, 4)))", Kind.MODULE, Device.CPU),
        ("LOOK(nn.parallel.DistributedDataParallel(net, device_ids=[0]))", Kind.MODULE, Device.MAYBE),
        ("import deepspeed\nn, o, d, s = deepspeed.initialize(model=net)\nLOOK(n)", Kind.MODULE, None),
        ("import deepspeed\nn, o, d, s = deepspeed.initialize(model=net)\nLOOK(o)", Kind.OPTIMIZER, None),
        ("import deepspeed\nn, o, d, s = deepspeed.initialize(model=net)\nLOOK(d)", Kind.LOADER, None),
        ("import deepspeed\nn, o, d, s = deepspeed.initialize(model=net)\nLOOK(s)", Kind.SCHEDULER, None),
        ("LOOK(nn.Linear(3, 4).extra_repr())", Kind.UNKNOWN, None),
        ("LOOK(nn.Linear(3, 4).state_dict())", Kind.MAPPING, None),
        ("LOOK(nn.Linear(3, 4).cuda().state_dict()['weight'])", Kind.TENSOR, Device.ACCELERATOR),
        ("def f(x):\n    LOOK(x.split(4))", Kind.UNKNOWN, None),
        ("for n, p in nn.Linear(3, 4).cuda().named_parameters():\n    LOOK(p)", Kind.TENSOR, Device.ACCELERATOR),
        ("for n, p in nn.Linear(3, 4).named_parameters():\n    LOOK(n)", Kind.STRING, None),
        ("for p in nn.Linear(3, 4).cuda().parameters():\n    LOOK(p)", Kind.TENSOR, Device.ACCELERATOR),
        ("for m in nn.Linear(3, 4).children():\n    LOOK(m)", Kind.MODULE, None),
        ("LOOK(nn.DataParallel(net))", Kind.MODULE, Device.MAYBE),
        ("LOOK(nn.parallel.DataParallel(net))", Kind.MODULE, Device.MAYBE),
        ("def f(x: dict[str, torch.Tensor]):\n    LOOK(x['a'])", Kind.TENSOR, None),
        ("from typing import Dict\ndef f(x: Dict[str, torch.Tensor]):\n    LOOK(x['a'])", Kind.TENSOR, None),
        ("from typing import Mapping\ndef f(x: Mapping[str, torch.Tensor]):\n    LOOK(x['a'])", Kind.TENSOR, None),
        ("LOOK({'a': torch.zeros(3)}.to(d))", Kind.MAPPING, None),
        # What is written out under a key, unless something else may be put there.
        ("c = {'a': 1, 'b': 'x'}\ndef f():\n    LOOK(c['a'])", Kind.NUMBER, None),
        ("c = {'a': 1, 'b': 'x'}\ndef f(x):\n    LOOK(c['a'] * torch.zeros(3))", Kind.TENSOR, Device.CPU),
        ("c = {'a': 1, 'b': 'x'}\nc['b'] = f()\nLOOK(c['a'])", Kind.NUMBER, None),
        ("c = {'a': 1, 'b': 'x'}\nc['a'] = f()\nLOOK(c['a'])", Kind.UNKNOWN, None),
        ("c = {'a': 1, 'b': 'x'}\nc[k] = f()\nLOOK(c['a'])", Kind.UNKNOWN, None),
        ("c = {'a': 1, 'b': 'x'}\nc.update(d)\nLOOK(c['a'])", Kind.UNKNOWN, None),
        ("c = {'a': 1, 'b': 'x', **d}\nLOOK(c['a'])", Kind.UNKNOWN, None),
        ("c = {'a': 1, 'b': 'x'}\nfill(c)\nLOOK(c['a'])", Kind.UNKNOWN, None),
        ("c = {'a': 1, 'b': 'x'}\nd = c\nd['a'] = f()\nLOOK(c['a'])", Kind.UNKNOWN, None),
        ("c = {'a': 1, 'b': 'x'}\ndel c['a']\nLOOK(c['a'])", Kind.UNKNOWN, None),
        ("c = {'a': 1, 'b': 'x'}\nfill(**c)\nLOOK(c['a'])", Kind.NUMBER, None),
        ("c = {'a': 1, 'b': 'x'}\nc = f(c)\nLOOK(c['a'])", Kind.UNKNOWN, None),
        ("LOOK('text'.to(d))", Kind.UNKNOWN, None),
        ("with torch.device('cuda'):\n    LOOK(torch.zeros(3))", Kind.TENSOR, Device.UNKNOWN),
        ("d = torch.device('cuda')\nwith d:\n    LOOK(torch.zeros(3))", Kind.TENSOR, Device.UNKNOWN),
        ("d = open('cuda')\nwith d:\n    LOOK(torch.zeros(3))", Kind.TENSOR, Device.CPU),
        ("with torch.device('meta'):\n    LOOK(torch.zeros(3))", Kind.TENSOR, Device.CPU),
        ("class M(nn.Module):\n    def forward(self, x):\n        LOOK(x)", Kind.TENSOR, None),
        ("class M(nn.Module):\n    def forward(self, x=None):\n        LOOK(x)", Kind.UNKNOWN, None),
        ("class M(nn.Module):\n    def helper(self, x):\n        LOOK(x)", Kind.UNKNOWN, None),
        ("def _f(x: torch.Tensor):\n    LOOK(x)\n_f(torch.zeros(3))", Kind.TENSOR, Device.CPU),
        ("def _f(x: torch.Tensor):\n    LOOK(x)\n_f(torch.zeros(3))\n_f(y)", Kind.TENSOR, Device.UNKNOWN),
        ("def f(x: torch.Tensor):\n    LOOK(x)\nf(torch.zeros(3))", Kind.TENSOR, Device.UNKNOWN),
        ("def f(x):\n    if isinstance(x, (list, tuple)):\n        LOOK(x)", Kind.SEQUENCE, None),
        ("def f(x):\n    if isinstance(x, str):\n        LOOK(x)", Kind.STRING, None),
        ("def f(x):\n    if isinstance(x, (list, str)):\n        LOOK(x)", Kind.OBJECT, None),
        ("def f(x):\n    if isinstance(x, (list, torch.Tensor)):\n        LOOK(x)", Kind.UNKNOWN, None),
        ("LOOK(max(torch.zeros(3).cuda()))", Kind.TENSOR, Device.ACCELERATOR),
        ("LOOK(max([torch.zeros(3)]))", Kind.TENSOR, Device.CPU),
        ("LOOK(max(2, 3))", Kind.NUMBER, None),
        ("def f(x):\n    y = x.cpu().numpy()\n    LOOK(x)", Kind.TENSOR, None),
        ("def f(x):\n    y = x.cpu()\n    LOOK(x)", Kind.UNKNOWN, None),
        # Methods that only tensors have, and that give none.
        ("def f(x):\n    LOOK(x.backward())", Kind.UNKNOWN, None),
        ("def f(x):\n    LOOK(x.storage())", Kind.UNKNOWN, None),
        ("def f(x):\n    LOOK(x.retain_grad())", Kind.NONE, None),
        ("def f(x):\n    LOOK(x.detach())", Kind.TENSOR, None),
        ("def f(x):\n    LOOK(x.strip(4))", Kind.STRING, None),
        ("from functools import partial\nf = partial(f)\nLOOK(f())", Kind.UNKNOWN, None),
        ("def f(xs):\n    for loader in xs:\n        LOOK(loader)", Kind.LOADER, None),
        ("def f(a, x):\n    y = a(x.cpu())\n    LOOK(y)\n    y.backward()", Kind.TENSOR, Device.UNKNOWN),
        ("def f(x: tuple[torch.Tensor, ...]):\n    LOOK(x[3])", Kind.TENSOR, None),
        ("def f(x: tuple[torch.Tensor, int]):\n    LOOK(x[1])", Kind.NUMBER, None),
        ("def f(x: tuple[torch.Tensor, int, int]):\n    LOOK(x[2])", Kind.NUMBER, None),
        ("LOOK(next(iter([torch.zeros(3)])))", Kind.TENSOR, Device.CPU),
        ("it = iter([torch.zeros(3)])\nLOOK(next(it))", Kind.TENSOR, Device.CPU),
        ("import cv2\nLOOK(cv2.imread('a.png'))", Kind.NDARRAY, None),
        ("def f(loader):\n    for i, b in enumerate(loader):\n        LOOK(i)", Kind.NUMBER, None),
        (OWN_LOADER, Kind.TENSOR, None),
        (BOUND_BY_THE_INNERMOST, Kind.UNKNOWN, None),
        ("def f(x, n):\n    y = torch.relu(x[:, 0] + n)\n    LOOK(x)", Kind.TENSOR, None),
        ("def f(x, n):\n    y = torch.relu(x[:, 0] + n)\n    LOOK(n)", Kind.UNKNOWN, None),
    ],
)
def test_kind_and_device(code: str, kind: Kind, device: Device | None) -> None:
    node, context = look(HEAD + code)
    value = context.value(node)
    assert value.kind is kind
    if device is not None:
        assert value.device is device


@pytest.mark.parametrize(
    ("code", "is_tensor"),
    [
        ("LOOK(torch.zeros(3))", True),
        ("LOOK('text')", False),
        ("def f(model, batch):\n    LOOK(model(batch))", False),
        ("def f(model, batch):\n    out = model(batch)\n    LOOK(out[:, 1])", True),
        ("def f(model, batch):\n    out = model(batch)\n    LOOK(out['loss'])", False),
        ("def f(model, batch):\n    out = model(batch)\n    LOOK(out[:, 0] * 2)", True),
        ("def f(model, batch):\n    out = model(batch)\n    LOOK(2 * out[:, 0])", True),
        ("def f(model, batch):\n    LOOK(model(batch) * 2)", False),
        ("def f(model, batch):\n    out = model(batch)\n    LOOK(out[0] + torch.ones(3))", True),
    ],
)
def test_what_is_a_tensor_for_sure(code: str, is_tensor: bool) -> None:  # noqa: FBT001
    node, context = look(HEAD + code)
    assert context.kinds.is_tensor(node) is is_tensor


def test_a_name_alone_is_never_proof() -> None:
    node, context = look("import torch\ndef f(model, batch):\n    out = model(batch)\n    LOOK(out)\n")
    assert context.value(node).kind is Kind.TENSOR
    assert not context.value(node).proven


def test_values_do_not_depend_on_who_asks_first() -> None:
    code = """
        import torch
        def f(cell, xs):
            h = torch.zeros(3).cuda()
            for x in xs:
                h = (h + x).tanh()
                y = h.relu()
            LOOK(h)
            return y
        """
    node, context = look(code)
    direct = context.value(node)
    again, other = look(code)
    for call in other.tree.nodes:
        other.value(call)
    assert other.value(again) == direct


def test_mutual_recursion_is_evaluated_in_linear_time() -> None:
    functions = "\n".join(
        f"def f{n}(x):\n    a = f{(n + 1) % 40}(x)\n    b = f{(n + 2) % 40}(a)\n    return f{(n + 3) % 40}(b)"
        for n in range(40)
    )
    node, context = look(f"import torch\n{functions}\nLOOK(f0(1))\n")
    evaluated = 0
    original = type(context.kinds)._evaluate  # noqa: SLF001 - counts the work

    def counting(kinds: object, inner: object) -> object:
        nonlocal evaluated
        evaluated += 1
        return original(kinds, inner)  # type: ignore[arg-type]

    type(context.kinds)._evaluate = counting  # type: ignore[method-assign,assignment]  # noqa: SLF001
    try:
        context.value(node)
    finally:
        type(context.kinds)._evaluate = original  # type: ignore[method-assign]  # noqa: SLF001
    assert evaluated < 20_000


@pytest.mark.parametrize(
    ("start", "first", "second"),
    [
        ("mp.spawn(run, args=(x,), nprocs=2)", Kind.NUMBER, Kind.TENSOR),
        ("mp.spawn(run, (x,), 2)", Kind.NUMBER, Kind.TENSOR),
        ("mp.spawn(run, nprocs=2)", Kind.NUMBER, Kind.UNKNOWN),
        ("mp.Process(target=run, args=(3, x)).start()", Kind.NUMBER, Kind.TENSOR),
        ("mp.get_context('spawn').Process(target=run, args=(3, x)).start()", Kind.NUMBER, Kind.TENSOR),
        ("rpc.rpc_async('worker', run, args=(x, 3))", Kind.TENSOR, Kind.NUMBER),
        ("accelerate.notebook_launcher(run, (3, x), num_processes=2)", Kind.NUMBER, Kind.TENSOR),
        ("scipy.optimize.minimize(run, x0, args=(x, 3))", Kind.UNKNOWN, Kind.UNKNOWN),
        ("other.spawn(run, args=(x, 3))", Kind.UNKNOWN, Kind.UNKNOWN),
        ("mp.spawn(run, args=('a',))\nrun('a', 3)", Kind.UNKNOWN, Kind.UNKNOWN),
    ],
)
def test_what_starts_a_process_passes_arguments(start: str, first: Kind, second: Kind) -> None:
    head = (
        "import accelerate\nimport torch\nimport torch.distributed.rpc as rpc\nimport torch.multiprocessing as mp\n"
        f"x = torch.ones(3)\n{start}\n"
    )
    kinds = []
    for name in ("a", "b"):
        node, context = look(f"{head}def run(a, b):\n    LOOK({name})\n")
        kinds.append(context.kind(node))
    assert kinds == [first, second]


@pytest.mark.parametrize(
    ("uses", "device"),
    [
        ("self.x = torch.zeros(3, device=self.d)", Device.MAYBE),
        ("self.net = Net().to(self.d)\n        self.y = torch.ones(3).to(self.d)", Device.MAYBE),
        # One tensor goes where another is; a function of one's own may mean anything by `device`.
        ("self.y = torch.ones(3).to(self.d)", None),
        ("self.y = torch.ones(3).to(self.dtype)\n        self.z = y.to(self.dtype)", None),
        ("self.y = build(device=self.d)", None),
    ],
)
def test_an_attribute_on_which_something_is_made(uses: str, device: Device | None) -> None:
    node, context = look(
        f"{HEAD}class Agent:\n    def __init__(self, **more):\n        self.__dict__.update(more)\n"
        f"        {uses}\n    def f(self):\n        LOOK(self.d)"
    )
    assert (context.kind(node), context.device(node)) == (
        (Kind.UNKNOWN, Device.UNKNOWN) if device is None else (Kind.DEVICE, device)
    )


@pytest.mark.parametrize("function", ["torch.zeros(3, device=place)", "torch.tensor([1], device=place)"])
def test_a_name_on_which_something_is_made(function: str) -> None:
    node, context = look(f"{HEAD}def f(place):\n    x = {function}\n    LOOK(place)")
    assert (context.kind(node), context.device(node)) == (Kind.DEVICE, Device.MAYBE)


@pytest.mark.parametrize(
    ("default", "device"),
    [
        ("torch.set_default_device('cuda')", Device.MAYBE),
        ("d = torch.device('cuda' if torch.cuda.is_available() else 'cpu')\ntorch.set_default_device(d)", Device.MAYBE),
        ("torch.set_default_tensor_type('torch.cuda.FloatTensor')", Device.MAYBE),
        ("torch.set_default_tensor_type(torch.cuda.FloatTensor)", Device.MAYBE),
        ("torch.set_default_tensor_type('torch.FloatTensor')", Device.UNKNOWN),
        ("torch.set_default_device(f())", Device.UNKNOWN),
        ("", Device.CPU),
    ],
)
def test_where_factories_make_tensors(default: str, device: Device) -> None:
    node, context = look(f"{HEAD}{default}\nLOOK(torch.ones(3))")
    assert context.device(node) is device


def test_a_type_of_tensors_on_the_cpu_is_none_of_the_default() -> None:
    node, context = look(f"{HEAD}torch.set_default_device('cuda')\nLOOK(torch.FloatTensor(3))")
    assert context.device(node) is Device.CPU
