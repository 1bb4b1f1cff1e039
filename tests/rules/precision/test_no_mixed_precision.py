"""TL603: scripts that train large products in float32, and those that need not or do not."""

from __future__ import annotations

import pytest
from laws import check_snippet

RULE = "no-mixed-precision"


def program(model: str, extra: str = "", loss: str = "nn.functional.cross_entropy(model(x.cuda()), y.cuda())") -> str:
    return f"""
import torch
import torchvision
from torch import nn
from transformers import BertModel
{extra}
model = {model}.cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in loader:
    optimizer.zero_grad()
    {loss}.backward()MARK
    optimizer.step()
"""


CONVS = "nn.Sequential(nn.Conv2d(3, 8, 3), nn.Conv2d(8, 8, 3), nn.Conv2d(8, 8, 3))"


@pytest.mark.parametrize(
    "model",
    [
        CONVS,
        "torchvision.models.resnet50()",
        "nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 8), 6)",
        "BertModel.from_pretrained('bert-base-uncased')",
    ],
)
def test_a_large_network_in_float32(model: str) -> None:
    check_snippet(program(model).replace("MARK", f"  # <- {RULE}"), RULE)


@pytest.mark.parametrize(
    ("model", "extra"),
    [
        ("nn.Linear(8, 8)", ""),
        ("nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU())", ""),
        ("unknown()", ""),
        (CONVS, "import gymnasium"),
        (CONVS, "data = torchvision.datasets.FashionMNIST(root)"),
        (CONVS, "from apex import amp"),
        (CONVS, "torch.set_float32_matmul_precision('high')"),
        (CONVS, "import lightning"),
        (CONVS + ".bfloat16()", ""),
        (CONVS + ".double()", ""),
    ],
)
def test_nothing_to_say(model: str, extra: str) -> None:
    check_snippet(program(model, extra).replace("MARK", ""), RULE)


def test_a_sample_is_no_amp() -> None:
    code = program(CONVS, "sample = example = clamped = None")
    check_snippet(code.replace("MARK", f"  # <- {RULE}"), RULE)


def test_one_finding_a_script() -> None:
    check_snippet(
        f"""
import torch
from torch import nn

def train(net, other, loader):
    for x in loader:
        net(x.cuda()).sum().backward()  # <- {RULE}
        other(x.cuda()).sum().backward()
        optimizer.step()

def main():
    net = {CONVS}.to("cuda")
    train(net, {CONVS}.to("cuda"), loader)

if __name__ == "__main__":
    main()
""",
        RULE,
    )


def test_a_library_has_callers() -> None:
    check_snippet(
        f"""
from torch import nn
def train(loader):
    net = {CONVS}.to("cuda")
    for x in loader:
        net(x.cuda()).sum().backward()
""",
        RULE,
    )


def test_the_cpu() -> None:
    check_snippet(program(CONVS).replace("MARK", "").replace(".cuda()", ""), RULE)


@pytest.mark.parametrize(
    "loss",
    ["nn.BCELoss()(model(x.cuda()), y.cuda())", "nn.functional.binary_cross_entropy(model(x.cuda()), y.cuda())"],
)
def test_a_loss_that_raises_under_autocast(loss: str) -> None:
    check_snippet(program(CONVS, loss=loss).replace("MARK", ""), RULE)


@pytest.mark.parametrize(("given", "mark"), [("[image]", ""), ("list(net.parameters())", f"  # <- {RULE}")])
def test_an_image_that_is_optimized(given: str, mark: str) -> None:
    check_snippet(
        f"""
        import torch
        from torchvision.models import vgg19
        net = vgg19().cuda()
        image = torch.rand(1, 3, 256, 256).cuda().requires_grad_()
        optimizer = torch.optim.Adam({given})
        for step in range(2000):
            loss = net(image).square().mean()
            optimizer.zero_grad()
            loss.backward(){mark}
            optimizer.step()
        """,
        RULE,
    )


@pytest.mark.parametrize(
    ("last", "mark"), [("total = total + gradients(net)", ""), ("optimizer.step()", f"  # <- {RULE}")]
)
def test_gradients_that_are_what_is_wanted(last: str, mark: str) -> None:
    check_snippet(
        f"""
        import torch
        from torchvision.models import vgg19
        net = vgg19().cuda()
        for x in loader:
            net(x.cuda()).square().mean().backward(){mark}
            {last}
        """,
        RULE,
    )
