"""TL701: construction of the wrapper is flagged, whatever its name; talk of it is not."""

from __future__ import annotations

import pytest
from laws import active, check_snippet, lint

from torchlint.registry import find

RULE = "data-parallel"


@pytest.mark.parametrize(
    "code",
    [
        """
        from torch import nn
        model = nn.DataParallel(model)  # <- data-parallel
        """,
        """
        import torch
        net = torch.nn.DataParallel(net, device_ids=[0, 1]).cuda()  # <- data-parallel
        """,
        """
        from torch.nn import DataParallel as DP
        DP(model)  # <- data-parallel
        """,
        """
        from torch.nn.parallel.data_parallel import DataParallel
        DataParallel(model)  # <- data-parallel
        """,
        """
        import torch
        from torch import nn
        if torch.cuda.device_count() > 1:
            model = nn.DataParallel(model)  # <- data-parallel
        """,
        """
        from torch import nn
        class Scattering(nn.DataParallel):
            pass
        class Quiet(Scattering):
            pass
        model = Scattering(model)  # <- data-parallel
        other = Quiet(model, device_ids=[0, 1])  # <- data-parallel
        """,
        """
        from torch import nn
        def run(m, x, n):
            return nn.parallel.data_parallel(m, x, range(n))  # <- data-parallel
        """,
        """
        from lightning.pytorch import Trainer
        Trainer(strategy="dp", devices=2)  # <- data-parallel
        """,
        """
        import pytorch_lightning as pl
        pl.Trainer(gpus=2, accelerator="dp")  # <- data-parallel
        """,
        """
        import torch
        class Gan:
            def __init__(self, net, gpu_ids):
                self.net = torch.nn.DataParallel(net, gpu_ids)  # <- data-parallel
        """,
        """
        from torch.nn import *
        DataParallel(model)  # <- data-parallel
        """,
    ],
)
def test_construction(code: str) -> None:
    check_snippet(code, RULE)


@pytest.mark.parametrize(
    "code",
    [
        "from torch import nn\nnn.parallel.DistributedDataParallel(m)",
        "from torch import nn\nisinstance(model, nn.DataParallel)",
        "from torch import nn\nif hasattr(m, 'module'): m = m.module",
        "from torch.distributed.fsdp import FullyShardedDataParallel as FSDP\nfsdp = FSDP(m)",
        "import torch\nfrom mylib import DataParallel\nDataParallel(m)",
        "import torch\nimport torch_geometric\ntorch_geometric.nn.DataParallel(m)",
        "import torch\ndef f():\n    '''Wraps in nn.DataParallel(m).'''",
        "from torch import nn\ntype(m) in (nn.DataParallel, nn.parallel.DistributedDataParallel)",
        "import torch\nstate = {k.replace('module.', ''): v for k, v in state.items()}",
        "import lightning as L\nL.Trainer(strategy='ddp', devices=2)",
        "import lightning as L\nL.Trainer(strategy=strategy)",
        "from torch import nn\nnn = other\nnn.DataParallel(m)",
        "import torch\nclass DataParallel(torch.nn.DataParallel):\n    pass\nmodel = DataParallel(model)",
        "from torch import nn\nclass Scattering(nn.DataParallel):\n    pass",  # who constructs it, if anybody, is elsewhere
        "from torch import nn\nclass Own(nn.DataParallel):\n    pass\nisinstance(model, Own)\nwrap = Own",
    ],
)
def test_look_alikes(code: str) -> None:
    check_snippet(code, RULE)


@pytest.mark.parametrize("devices", ["[0]", "[args.gpu]", "(device,)"])
def test_one_device_is_told_apart(devices: str) -> None:
    result = check_snippet(
        f"""
        from torch import nn
        model = nn.DataParallel(model, device_ids={devices})  # <- data-parallel
        """,
        RULE,
    )
    assert "leave it out" in result.findings[0].message


@pytest.mark.parametrize("devices", ["[0, 1]", "[*ids]", "ids", "None"])
def test_several_devices_may_be_meant(devices: str) -> None:
    result = check_snippet(
        f"""
        from torch import nn
        model = nn.DataParallel(model, {devices})  # <- data-parallel
        """,
        RULE,
    )
    assert "DistributedDataParallel" in result.findings[0].message


def test_the_function_on_one_device_calls_the_module_itself() -> None:
    check_snippet("from torch.nn.parallel import data_parallel\ndata_parallel(m, x, [0])", RULE)


def test_nothing_is_rewritten() -> None:
    assert find(RULE).fix == ()
    code = "from torch import nn\nmodel = nn.DataParallel(model)\n"
    assert [finding.fix for finding in lint(code, active(RULE)).findings] == [None]
