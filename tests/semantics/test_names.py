"""What names mean."""

from __future__ import annotations

import pytest
from looking import look


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("import torch\nLOOK(torch.zeros)", "torch.zeros"),
        ("import torch as th\nLOOK(th.zeros)", "torch.zeros"),
        ("from torch import zeros as z\nLOOK(z)", "torch.zeros"),
        ("import torch.nn as nn\nLOOK(nn.Conv2d)", "torch.nn.Conv2d"),
        ("from torch import nn\nLOOK(nn.Conv2d)", "torch.nn.Conv2d"),
        ("import torch.utils.data\nLOOK(torch.utils.data.DataLoader)", "torch.utils.data.DataLoader"),
        ("from torch.utils.data.dataloader import DataLoader\nLOOK(DataLoader)", "torch.utils.data.DataLoader"),
        ("from torch.nn.modules.conv import Conv2d\nLOOK(Conv2d)", "torch.nn.Conv2d"),
        ("from torch.nn import *\nLOOK(Conv2d)", "torch.nn.Conv2d"),
        ("from torch.nn import *\nLOOK(Thing)", None),
        ("try:\n    import torch\nexcept ImportError:\n    torch = None\nLOOK(torch.zeros)", "torch.zeros"),
        ("import torch\ntorch = 3\nLOOK(torch.zeros)", None),
        ("import torch\ntorch = 3\ndef f():\n    LOOK(torch.zeros)", None),
        (
            "try:\n    import torch\nexcept ImportError:\n    torch = None\ndef f():\n    LOOK(torch.zeros)",
            "torch.zeros",
        ),
        ("import torch\nif a:\n    for torch in y: ...\ndef f():\n    LOOK(torch.zeros)", None),
        ("import torch\ndef f(torch):\n    LOOK(torch.zeros)", None),
        ("import torch\nDL = torch.utils.data.DataLoader\nLOOK(DL)", "torch.utils.data.DataLoader"),
        ("from .data import DataLoader\nLOOK(DataLoader)", ".data.DataLoader"),
        ("LOOK(float)", "float"),
        ("def float(x): ...\nLOOK(float)", None),
        ("import torch.nn as nn\nLOOK(torch.utils.data.DataLoader)", "torch.utils.data.DataLoader"),
        ("LOOK(torch.zeros)", None),
        ("import torch.nn as nn\nLOOK(torch.zeros)\ndef f():\n    torch = lamp()", None),
        ("import pytorch_lightning as pl\nLOOK(pl.LightningModule)", "lightning.pytorch.LightningModule"),
        ("class C:\n    import torch\n    def f(self):\n        LOOK(torch.zeros)", None),
        ("import torch\n[LOOK(torch.zeros) for torch in xs]", None),
        ("def f():\n    global torch\n    import torch\nLOOK(torch.zeros)", "torch.zeros"),
        ("from torch import zeros\nfrom mine import zeros\ndef f():\n    LOOK(zeros)", "mine.zeros"),
        ("from mine import zeros\nfrom torch import zeros\ndef f():\n    LOOK(zeros)", "torch.zeros"),
        (
            "try:\n    from mine import zeros\nexcept E:\n    from torch import zeros\ndef f():\n    LOOK(zeros)",
            "torch.zeros",
        ),
    ],
)
def test_qualified_name(code: str, name: str | None) -> None:
    node, context = look(code)
    assert context.qualified_name(node) == name


@pytest.mark.parametrize(
    ("code", "values"),
    [
        ("x = 1\nx = 2\nLOOK(x)", ["2"]),
        ("x = 1\nif a:\n    x = 2\nLOOK(x)", ["1", "2"]),
        ("if a:\n    x = 1\nelse:\n    x = 2\nLOOK(x)", ["1", "2"]),
        ("x = 0\nif a:\n    x = 1\nelse:\n    x = 2\nLOOK(x)", ["1", "2"]),
        ("x = 0\nif a:\n    x = 1\nelse:\n    LOOK(x)", ["0"]),
        ("x = 0\nfor i in y:\n    LOOK(x)\n    x = 1", ["0", "1"]),
        ("x = 0\nfor i in y:\n    x = 1\n    LOOK(x)", ["1"]),
        ("x = 0\nfor i in y:\n    x = 1\nLOOK(x)", ["0", "1"]),
        ("x = 0\nwith a:\n    x = 1\nLOOK(x)", ["1"]),
        ("x = 0\ntry:\n    x = 1\nexcept E:\n    x = 2\nLOOK(x)", ["1", "2"]),
        ("def f():\n    LOOK(x)\nx = 1\nx = 2", ["1", "2"]),
        ("x = 1\nx = LOOK(x) + 1", ["1"]),
        ("(x := 4)\nLOOK(x)", ["4"]),
        ("def f():\n    x = 1\n    if a:\n        x = 2\n        return\n    LOOK(x)", ["1"]),
        ("def f():\n    x = 1\n    if a:\n        x = 2\n        return LOOK(x)", ["2"]),
        ("def f():\n    x = 1\n    try:\n        x = 2\n        return\n    finally:\n        LOOK(x)", ["2"]),
        ("def f():\n    x = 1\n    if a:\n        if b:\n            x = 2\n        return\n    LOOK(x)", ["1"]),
    ],
)
def test_reaching_bindings(code: str, values: list[str]) -> None:
    node, context = look(code)
    found = [context.code(binding.value) for binding in context.reaching(node) if binding.value is not None]  # type: ignore[arg-type]
    assert found == values
