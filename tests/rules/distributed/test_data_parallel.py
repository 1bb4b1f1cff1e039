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
    assert "leave it out" in result.findings[0].help


@pytest.mark.parametrize("devices", ["[0, 1]", "[*ids]", "ids", "None"])
def test_several_devices_may_be_meant(devices: str) -> None:
    result = check_snippet(
        f"""
        from torch import nn
        model = nn.DataParallel(model, {devices})  # <- data-parallel
        """,
        RULE,
    )
    assert "DistributedDataParallel" in result.findings[0].help


def test_the_function_on_one_device_calls_the_module_itself() -> None:
    check_snippet("from torch.nn.parallel import data_parallel\ndata_parallel(m, x, [0])", RULE)


def test_nothing_is_rewritten() -> None:
    assert find(RULE).fix == ()
    code = "from torch import nn\nmodel = nn.DataParallel(model)\n"
    assert [finding.fix for finding in lint(code, active(RULE)).findings] == [None]


@pytest.mark.parametrize(
    "made",
    [
        "torch.nn.parallel.DistributedDataParallel(model, device_ids=[rank])",
        "apex.parallel.DistributedDataParallel(model)",
        "smart_DDP(model)",
    ],
)
def test_a_file_that_offers_the_other_wrapper_is_told_to_start_it(made: str) -> None:
    code = f"""
        import apex.parallel
        import torch
        from tools import smart_DDP
        def wrap(model, rank):
            if rank >= 0:
                return {made}
            return torch.nn.DataParallel(model)  # <- data-parallel
        """
    assert "torchrun" in check_snippet(code, RULE).findings[0].help
    assert "torchrun" not in check_snippet(code.replace(made, "model"), RULE).findings[0].help


@pytest.mark.parametrize(
    ("others", "advice"),
    [
        ("", "a process per GPU"),
        ("model = torch.nn.parallel.DistributedDataParallel(model)", "a process per GPU"),
        ("optimizer = torch.optim.SGD(model.parameters(), 0.1)", "DistributedDataParallel"),
        ("optimizer = make_optimizer(model)", "DistributedDataParallel"),
        ("model.train()", "DistributedDataParallel"),
    ],
)
def test_the_advice_for_evaluation_is_another(others: str, advice: str) -> None:
    result = check_snippet(
        f"""
        import torch
        from tools import loader, make_optimizer, model
        model = torch.nn.DataParallel(model).cuda()  # <- data-parallel
        {others}
        model.eval()
        for x in loader:
            with torch.no_grad():
                model(x)
        """,
        RULE,
    )
    assert advice in result.findings[0].help


def test_a_wrapper_for_the_names_in_a_checkpoint_copies_nothing() -> None:
    code = """
        import torch
        def save(model, path):
            wrapped = torch.nn.DataParallel(model)
            torch.save(wrapped.state_dict(), path)
        """
    check_snippet(code, RULE)
    called = code.replace("DataParallel(model)", "DataParallel(model)  # <- data-parallel")
    check_snippet(called + "    wrapped(path)\n        ", RULE)


def test_one_device_by_default() -> None:
    code = """
        import torch
        class Metric:
            def __init__(self, net, devices=[0]):
                self.net = torch.nn.DataParallel(net, device_ids=devices)
        """
    check_snippet(code, RULE)
    check_snippet(code.replace("[0]", "[0, 1]").replace("=devices)", "=devices)  # <- data-parallel"), RULE)


def test_a_wrapper_for_the_names_to_be_loaded_copies_nothing() -> None:
    code = """
        import torch
        class Finetuned(torch.nn.Module):
            def __init__(self, net, state):
                super().__init__()
                whole = torch.nn.DataParallel(net)
                whole.load_state_dict(state)
                self.body = whole.module.body
        """
    check_snippet(code, RULE)
    called = code.replace("DataParallel(net)", "DataParallel(net)  # <- data-parallel")
    check_snippet(called + "        self.whole = whole\n        ", RULE)


def test_the_strategy_of_a_framework() -> None:
    check_snippet(
        f"""
        import torch
        class DataParallelStrategy:
            def wrap(self, model):
                return torch.nn.DataParallel(model)  # <- {RULE}?
        """,
        RULE,
    )
