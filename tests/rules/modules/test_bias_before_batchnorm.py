"""TL501: from a layer to all that takes its output; what leaving out the bias changes, on CPU torch."""

from __future__ import annotations

import copy
import textwrap
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import pytest
import torch
from laws import active, check_snippet, fix, lint
from torch import nn

from torchlint import linter
from torchlint.cli import run
from torchlint.finding import Applicability
from torchlint.role import Role
from torchlint.source import SourceFile

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

RULE = "bias-before-batchnorm"
IMPORTS = """
from collections import OrderedDict
import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils import spectral_norm
"""


def check(code: str) -> None:
    check_snippet(IMPORTS + code, RULE)


@pytest.mark.parametrize(
    ("layers", "fixed"),
    [
        ("nn.Conv2d(3,64,3), nn.BatchNorm2d(64), nn.ReLU()", "nn.Conv2d(3,64,3, bias=False), "),
        ("nn.Conv2d(a,b,3,1,1,1,1,True), nn.SyncBatchNorm(b)", "nn.Conv2d(a,b,3,1,1,1,1,False), "),
        ("nn.Conv1d(a,b,3, bias=True), nn.BatchNorm1d(b)", "nn.Conv1d(a,b,3, bias=False), "),
        ("nn.ConvTranspose2d(i,o,4,2,1), nn.BatchNorm2d(o)", "nn.ConvTranspose2d(i,o,4,2,1, bias=False), "),
        ("nn.Conv3d(a,b,3,), nn.BatchNorm3d(b)", "nn.Conv3d(a,b,3, bias=False,), "),
        ("nn.Linear(10, 20), nn.BatchNorm1d(20)", "nn.Linear(10, 20, bias=False), "),
        ("nn.Linear(10, 20, True), nn.BatchNorm1d(20)", "nn.Linear(10, 20, False), "),
        ("nn.LazyConv2d(8, 3), nn.LazyBatchNorm2d()", "nn.LazyConv2d(8, 3, bias=False), "),
        ("nn.Conv2d(3,8,3), nn.InstanceNorm2d(8)", "nn.Conv2d(3,8,3, bias=False), "),
        ("nn.Conv2d(3,8,3), nn.GroupNorm(8, 8)", "nn.Conv2d(3,8,3, bias=False), "),
        ("nn.Conv2d(3,8,3), nn.MaxPool2d(2), nn.BatchNorm2d(8)", "nn.Conv2d(3,8,3, bias=False), "),
        ("nn.Conv2d(3,8,3), nn.AvgPool2d(2), nn.BatchNorm2d(8)", "nn.Conv2d(3,8,3, bias=False), "),
        ("nn.Conv2d(3,8,3), nn.Identity(), nn.BatchNorm2d(8)", "nn.Conv2d(3,8,3, bias=False), "),
        ("nn.Conv2d(3,8,3), nn.Sequential(nn.BatchNorm2d(8), nn.ReLU())", "nn.Conv2d(3,8,3, bias=False), "),
        (
            "nn.Sequential(nn.ReLU(), nn.Conv2d(3,8,3)), nn.BatchNorm2d(8)",
            "nn.Sequential(nn.ReLU(), nn.Conv2d(3,8,3, bias=",
        ),
        ("spectral_norm(nn.Conv2d(3,8,3)), nn.BatchNorm2d(8)", "spectral_norm(nn.Conv2d(3,8,3, bias=False)), "),
        ("*[nn.Conv2d(3,8,3), nn.BatchNorm2d(8)]", "*[nn.Conv2d(3,8,3, bias=False), "),
        (
            "OrderedDict([('c', nn.Conv1d(4,8,1)), ('n', nn.BatchNorm1d(8))])",
            "OrderedDict([('c', nn.Conv1d(4,8,1, bias=False)",
        ),
        (
            "nn.Conv1d(4,8,1), nn.Sequential(OrderedDict([('n', nn.BatchNorm1d(8))]))",
            "nn.Conv1d(4,8,1, bias=False), ",
        ),
    ],
)
def test_in_sequence(layers: str, fixed: str) -> None:
    code = f"{IMPORTS}net = nn.Sequential({layers})"
    doubt = "?" if "Linear" in layers else ""  # there is little work in its bias
    check_snippet(f"{code}  # <- {RULE}{doubt}\n", RULE)
    assert f"net = nn.Sequential({fixed}" in fix(code, active(RULE), Applicability.UNSAFE).text


@pytest.mark.parametrize(
    "layers",
    [
        "nn.Conv2d(3,8,3,bias=False), nn.BatchNorm2d(8)",
        "nn.Conv2d(3,8,3, bias=bias), nn.BatchNorm2d(8)",
        "nn.Conv2d(*sizes), nn.BatchNorm2d(8)",
        "nn.Conv2d(3,8,3, **options), nn.BatchNorm2d(8)",
        "nn.Conv2d(3,8,3), nn.ReLU(), nn.BatchNorm2d(8)",
        "nn.Conv2d(3,8,3), nn.AvgPool2d(2, padding=1), nn.BatchNorm2d(8)",
        "nn.Conv2d(3,8,3), nn.PixelShuffle(2), nn.BatchNorm2d(2)",
        "nn.Conv2d(3,8,3), *middle, nn.BatchNorm2d(8)",
        "nn.Linear(d,d), nn.LayerNorm(d)",
        "nn.Linear(20,16), nn.BatchNorm1d(C)",
        "nn.Linear(20,16), nn.InstanceNorm1d(16)",
        "nn.Conv2d(3,8,3), nn.GroupNorm(4,8)",
        "nn.Conv2d(3,8,3), nn.InstanceNorm2d(8, track_running_stats=True)",
        "nn.Conv2d(3,8,3), FrozenBatchNorm2d(8)",
        "nn.Conv2d(3,8,3), norm_layer(8)",
        "nn.Conv2d(3,8,3)",
    ],
)
def test_in_sequence_and_right(layers: str) -> None:
    parameters = "norm_layer, FrozenBatchNorm2d, C, d, bias, sizes, options, middle"
    check(f"def make({parameters}):\n    return nn.Sequential({layers})\n")


def module(init: str, forward: str, after: str = "") -> str:
    def block(code: str) -> str:
        return "".join(f"        {line}\n" for line in code.splitlines())

    return (
        f"class M(nn.Module):\n    def __init__(self, c=8, use_bn=True):\n        super().__init__()\n{block(init)}"
        f"    def forward(self, x):\n{block(forward)}{after}"
    )


PAIR = f"self.conv = nn.Conv2d(3, 8, 3)  # <- {RULE}\nself.bn = nn.BatchNorm2d(8)"
QUIET = PAIR.replace(f"  # <- {RULE}", "")


@pytest.mark.parametrize(
    "forward",
    [
        "return F.relu(self.bn(self.conv(x)))",
        "x = self.conv(x)\nx = self.bn(x)\nreturn x",
        "y = self.conv(x)\nprint(y.shape)\nassert y.size(1) == 8\nreturn self.bn(y.contiguous())",
        "y = self.bn(self.conv(x))\nreturn self.bn(self.conv(y))",
        "if self.training:\n    return self.bn(self.conv(x))\nreturn self.bn(self.conv(x)) * 2",
        "for _ in range(3):\n    y = self.conv(x)\n    x = self.bn(y)\nreturn x",
        "return self.bn(F.max_pool2d(self.conv(x), 2))",
        "return self.bn(F.avg_pool2d(self.conv(x), 2))",
        "return self.norm(self.conv(x))",
    ],
)
def test_in_forward(forward: str) -> None:
    check(module(PAIR, forward, "    def norm(self, y):\n        return self.bn(y)\n"))


@pytest.mark.parametrize(
    "forward",
    [
        "y = self.conv(x)\nz = self.bn(y)\nreturn z + y",
        "x = self.conv(x)\nif use_bn:\n    x = self.bn(x)\nreturn x",
        "return self.conv(self.bn(x))",
        "return self.bn(F.relu(self.conv(x)))",
        "return self.bn(F.avg_pool2d(self.conv(x), 2, padding=1))",
        "return self.bn(self.conv(x) + x)",
        "return self.bn(self.conv(x).flatten(1))",
        "return self.bn(self.conv(x)), self.conv(x)",
        "self.last = self.conv(x)\nreturn self.bn(self.last)",
        "y = self.conv(x)\ny += x\nreturn self.bn(y)",
        "return [self.bn(y) for y in [self.conv(x)]]",
        "return torch.utils.checkpoint.checkpoint(self.conv, x), self.bn(self.conv(x))",
        "return run(self.conv, self.bn, x)",
        "y = self.conv(x)\nhook = lambda: y\nreturn self.bn(y), hook",
    ],
)
def test_in_forward_and_right(forward: str) -> None:
    check(module(QUIET, forward))


@pytest.mark.parametrize(
    "norm",
    ["nn.BatchNorm2d(c) if use_bn else nn.Identity()", "make_norm(c)", "nn.LayerNorm([c, 8, 8])", "None"],
)
def test_norms_that_may_not_be_there(norm: str) -> None:
    check(module(f"self.conv = nn.Conv2d(3, c, 3)\nself.bn = {norm}", "return self.bn(self.conv(x))"))


def test_a_layer_that_something_else_calls_too() -> None:
    check(module(QUIET, "return self.bn(self.conv(x))", "def probe(net, x):\n    return net.conv(x)\n"))


def test_an_attribute_of_the_same_name_elsewhere() -> None:
    other = (
        "class Other(nn.Module):\n    def __init__(self):\n        super().__init__()\n        self.conv = nn.ReLU()\n"
    )
    other += "    def forward(self, x):\n        return self.conv(x)\n"
    check(module(PAIR, "return self.bn(self.conv(x))", other))


@pytest.mark.parametrize(
    "code",
    [
        """
        layers = [nn.ReLU()]
        layers += [nn.ConvTranspose2d(i, o, 4, 2, 1), nn.BatchNorm2d(o)]  # <- bias-before-batchnorm
        net = nn.Sequential(*layers)
        """,
        """
        layers = []
        for i in range(3):
            layers.append(nn.Conv2d(8, 8, 3))  # <- bias-before-batchnorm
            layers.append(nn.BatchNorm2d(8))
            if i == 1:
                layers.append(nn.ReLU())
        net = nn.Sequential(*layers)
        """,
        """
        def make_layers(cfg, batch_norm=False):
            layers = []
            for v in cfg:
                if v == "M":
                    layers += [nn.MaxPool2d(2)]
                    continue
                layers += [nn.Conv2d(3, v, 3)]  # <- bias-before-batchnorm
                if batch_norm:
                    layers += [nn.BatchNorm2d(v)]
                layers += [nn.ReLU()]
            return nn.Sequential(*layers)
        vgg = make_layers([8, "M"], batch_norm=True)
        """,
        """
        def block(i, o):
            layers = [nn.Linear(i, o)]  # <- bias-before-batchnorm?
            layers.append(nn.BatchNorm1d(o))
            layers.append(nn.ReLU())
            return layers
        net = nn.Sequential(*block(8, 16), *block(16, 8))
        """,
        """
        net = nn.Sequential()
        net.add_module("conv", nn.Conv2d(3, 8, 3))  # <- bias-before-batchnorm
        net.add_module("bn", nn.BatchNorm2d(8))
        """,
        """
        layers = OrderedDict()
        layers["conv"] = nn.Conv2d(3, 8, 3)  # <- bias-before-batchnorm
        layers["bn"] = nn.BatchNorm2d(8)
        net = nn.Sequential(layers)
        """,
        """
        class ConvBN(nn.Sequential):
            def __init__(self, i, o):
                super().__init__(
                    nn.Conv2d(i, o, 3),  # <- bias-before-batchnorm
                    nn.BatchNorm2d(o),
                )
        """,
        """
        class ConvBN(nn.Sequential):
            def __init__(self, i, o):
                super(ConvBN, self).__init__()
                self.add_module("conv", nn.Conv2d(i, o, 3))  # <- bias-before-batchnorm
                self.add_module("bn", nn.BatchNorm2d(o))
        """,
        """
        class Points(nn.Module):
            def __init__(self, sizes):
                super().__init__()
                self.convs = nn.ModuleList()
                self.bns = nn.ModuleList()
                for size in sizes:
                    self.convs.append(nn.Conv1d(size, size, 1))  # <- bias-before-batchnorm
                    self.bns.append(nn.BatchNorm1d(size))
            def forward(self, x):
                for i, conv in enumerate(self.convs):
                    bn = self.bns[i]
                    x = F.relu(bn(conv(x)))
                return x
        """,
        """
        class Points(nn.Module):
            def __init__(self, sizes):
                super().__init__()
                self.convs = nn.ModuleList([nn.Conv1d(s, s, 1) for s in sizes])  # <- bias-before-batchnorm
                self.bns = nn.ModuleList([nn.BatchNorm1d(s) for s in sizes])
            def forward(self, x):
                for conv, bn in zip(self.convs, self.bns):
                    x = bn(conv(x))
                return x
        """,
        """
        def conv3x3(i, o):
            return nn.Conv2d(i, o, 3, padding=1)  # <- bias-before-batchnorm
        class Block(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv1 = conv3x3(3, 8)
                self.bn1 = nn.BatchNorm2d(8)
                self.rest = nn.Sequential(conv3x3(8, 8), nn.BatchNorm2d(8))
            def forward(self, x):
                return self.rest(self.bn1(self.conv1(x)))
        """,
        """
        class Separable(nn.Module):
            def __init__(self, i, o, **options):
                super().__init__()
                self.depthwise = nn.Conv2d(i, i, 3, groups=i, **options)
                self.pointwise = nn.Conv2d(i, o, 1)  # <- bias-before-batchnorm
            def forward(self, x):
                x = self.depthwise(x)
                x = self.pointwise(x)
                return x
        net = nn.Sequential(Separable(3, 8), nn.BatchNorm2d(8), nn.ReLU(), Separable(8, 8), nn.BatchNorm2d(8))
        """,
        """
        class Basic(nn.Module):
            def __init__(self, i, o, **options):
                super().__init__()
                self.conv = nn.Conv2d(i, o, **options)  # <- bias-before-batchnorm
                self.bn = nn.BatchNorm2d(o)
            def forward(self, x):
                return self.bn(self.conv(x))
        class Outer(nn.Module):
            def __init__(self, **options):
                super().__init__()
                self.first = Basic(3, 8, kernel_size=3, **options)
        net = Outer(padding=1)
        """,
    ],
)
def test_the_ways_a_network_is_built(code: str) -> None:
    check(textwrap.dedent(code))


@pytest.mark.parametrize(
    "code",
    [
        # The other caller wants no norm, or may not.
        """
        def block(i, o, normalize=True):
            layers = [nn.Linear(i, o)]  # <- bias-before-batchnorm?
            if normalize:
                layers.append(nn.BatchNorm1d(o))
            layers.append(nn.ReLU())
            return layers
        net = nn.Sequential(*block(8, 16, normalize=False), *block(16, 8))
        """,
        """
        def make(batch_norm):
            layers = [nn.Conv2d(3, 8, 3)]
            if batch_norm:
                layers += [nn.BatchNorm2d(8)]
            return nn.Sequential(*layers, nn.ReLU())
        """,
        # The last turn of the loop leaves the list with a convolution at its end.
        """
        layers = []
        for i in range(3):
            layers.append(nn.BatchNorm2d(8))
            layers.append(nn.Conv2d(8, 8, 3))
        net = nn.Sequential(*layers)
        """,
        # In a `ModuleList` the order of construction is not the order of running.
        """
        layers = [nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)]
        net = nn.ModuleList(layers)
        """,
        """
        layers = [nn.Conv2d(3, 8, 3)]
        layers.insert(1, nn.ReLU())
        layers.append(nn.BatchNorm2d(8))
        net = nn.Sequential(*layers)
        """,
        """
        layers = [nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)]
        first, both = nn.Sequential(*layers[:1]), nn.Sequential(*layers)
        """,
        # The class is used without a norm, its parent is, or nobody knows.
        """
        class Conv(nn.Module):
            def __init__(self, i, o):
                super().__init__()
                self.conv = nn.Conv2d(i, o, 3)
            def forward(self, x):
                return self.conv(x)
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.first = Conv(3, 8)
                self.bn = nn.BatchNorm2d(8)
                self.last = Conv(8, 3)
            def forward(self, x):
                return self.last(self.bn(self.first(x)))
        """,
        """
        class Conv(nn.Module):
            def __init__(self, i, o):
                super().__init__()
                self.conv = nn.Conv2d(i, o, 3)
            def forward(self, x):
                return self.conv(x)
        def build(block=Conv):
            return nn.Sequential(Conv(3, 8), nn.BatchNorm2d(8)), block(3, 8)
        """,
        """
        class Basic(nn.Module):
            def __init__(self, i, o, **options):
                super().__init__()
                self.conv = nn.Conv2d(i, o, 3, **options)
                self.bn = nn.BatchNorm2d(o)
            def forward(self, x):
                return self.bn(self.conv(x))
        net = Basic(3, 8, bias=False)
        """,
        """
        from functools import partial
        class Basic(nn.Module):
            def __init__(self, i, o, **options):
                super().__init__()
                self.conv = nn.Conv2d(i, o, 3, **options)
                self.bn = nn.BatchNorm2d(o)
            def forward(self, x):
                return self.bn(self.conv(x))
        net, Bare = Basic(3, 8), partial(Basic, bias=False)
        """,
        """
        net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))
        torch.ao.quantization.fuse_modules(net, ["0", "1"], inplace=True)
        """,
        """
        class Frozen(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))
            def train(self, mode=True):
                super().train(mode)
                for m in self.modules():
                    if isinstance(m, nn.BatchNorm2d):
                        m.eval()
                return self
        """,
    ],
)
def test_the_ways_it_may_be_needed(code: str) -> None:
    check(textwrap.dedent(code))


@pytest.mark.parametrize(
    "code",
    [
        "nn.init.constant_(net[0].bias, 0)",
        "for m in net.modules():\n    if isinstance(m, nn.Conv2d):\n        m.bias.data.zero_()",
        "for m in net.modules():\n    if isinstance(m, (nn.Linear, nn.Conv2d)):\n        nn.init.zeros_(m.bias)",
        "def init(m):\n    if m.__class__.__name__.find('Conv') != -1:\n        m.bias.data.fill_(0)\nnet.apply(init)",
        "def init(m):\n    m.bias.data.fill_(0)\nnet.apply(init)",
        "net.load_state_dict(torch.load('weights.pt'))",
        "class Pretrained:\n    def make(self):\n        return self.from_pretrained('name')",
    ],
)
def test_no_fix_where_the_bias_is_expected(code: str) -> None:
    net = f"net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))  # <- {RULE}\n"
    result = check_snippet(f"{IMPORTS}{net}{code}\n", RULE)
    assert [finding.fix for finding in result.findings] == [None]
    assert "before setting `bias=False`" in result.findings[0].help


@pytest.mark.parametrize(
    "code",
    [
        "for m in net.modules():\n    if isinstance(m, nn.Conv2d) and m.bias is not None:\n        m.bias.data.zero_()",
        "for m in net:\n    if isinstance(m, nn.Conv2d):\n        if m.bias is not None:\n            m.bias.zero_()",
        "for m in net.modules():\n    if isinstance(m, nn.BatchNorm2d):\n        m.bias.data.zero_()",
        "def init(m):\n    if type(m).__name__.find('BatchNorm') != -1:\n        m.bias.data.fill_(0)\nnet.apply(init)",
        "head = nn.Linear(8, 8)\nnn.init.zeros_(head.bias)",
        "nn.init.normal_(net[0].weight)",
    ],
)
def test_a_fix_where_it_is_asked_for_first(code: str) -> None:
    net = f"net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))  # <- {RULE}\n"
    result = check_snippet(f"{IMPORTS}{net}{code}\n", RULE)
    assert all(finding.fix is not None for finding in result.findings)


def test_options_in_between_are_not_rewritten() -> None:
    code = module("self.conv = nn.Conv2d(3, c, **options)\nself.bn = nn.BatchNorm2d(c)", "return self.bn(self.conv(x))")
    code = f"{IMPORTS}{code.replace('use_bn=True', '**options')}net = M(kernel_size=3)\n"
    assert [finding.fix for finding in lint(code, active(RULE)).findings] == [None]


# Classes around a layer

WRAPPER = """
class Conv(nn.Module):
    def __init__(self, i, o, k=3, bias=True, **kwargs):
        super().__init__()
        self.conv = nn.Conv2d(i, o, k, bias=bias)
    def forward(self, x):
        x = F.pad(x, [1, 1, 1, 1])
        x = self.conv(x)
        return x
"""
LINEAR = """
class Dense(nn.Module):
    def __init__(self, i, o, *, with_bias=True):
        super().__init__()
        self.linear = nn.Linear(i, o, bias=with_bias)
        nn.init.xavier_uniform_(self.linear.weight)
    def forward(self, x):
        return self.linear(x.flatten(1))
"""
STANDARDISED = """
class Conv(nn.Conv2d):
    def forward(self, x):
        return F.conv2d(x, self.weight - self.weight.mean(), self.bias, self.stride, self.padding)
"""
SAME = """
class Conv(nn.Conv2d):
    def __init__(self, i, o, k, s=1, b=True):
        super(Conv, self).__init__(i, o, k, s, 0, 1, 1, b)
    def forward(self, x):
        return super().forward(F.pad(x, [1, 1, 1, 1]))
"""
SEQUENTIAL = """
class Conv(nn.Sequential):
    def __init__(self, i, o, bias=True):
        super().__init__(nn.ZeroPad2d(1), nn.Conv2d(i, o, 3, bias=bias))
"""
OPTIONS = """
class Conv(nn.Module):
    def __init__(self, *args, **kwargs):
        super().__init__()
        self.conv = nn.utils.weight_norm(nn.Conv2d(*args, **kwargs))
    def forward(self, x):
        return self.conv(x).contiguous()
"""
GUARDED = """
class Conv(nn.Module):
    def __init__(self, i, o, bias=True):
        super().__init__()
        self.depthwise = nn.Conv2d(i, i, 3, groups=i, bias=False)
        self.conv = nn.Conv2d(i, o, 1, bias=bias)
        if bias:
            nn.init.zeros_(self.conv.bias)
    def forward(self, x):
        if self.training:
            return self.conv(self.depthwise(x))
        return self.conv(self.depthwise(x)).float()
"""


@pytest.mark.parametrize(
    ("class_", "made", "fixed"),
    [
        (WRAPPER, "Conv(3, 8)", "Conv(3, 8, bias=False)"),
        (WRAPPER, "Conv(3, 8, 1, True)", "Conv(3, 8, 1, False)"),
        (WRAPPER, "Conv(3, 8, bias=True)", "Conv(3, 8, bias=False)"),
        (WRAPPER.replace("bias=True", "bias=False"), "Conv(3, 8, bias=True)", "Conv(3, 8, bias=False)"),
        (LINEAR, "Dense(4, 8)", "Dense(4, 8, with_bias=False)"),
        (STANDARDISED, "Conv(3, 8, 3)", "Conv(3, 8, 3, bias=False)"),
        (STANDARDISED, "Conv(3, 8, 3, 1, 1, 1, 1, True)", "Conv(3, 8, 3, 1, 1, 1, 1, False)"),
        (STANDARDISED.replace("F.conv2d", "self._conv_forward"), "Conv(3, 8, 3)", "Conv(3, 8, 3, bias=False)"),
        (SAME, "Conv(3, 8, 3)", "Conv(3, 8, 3, b=False)"),
        (SAME, "Conv(3, 8, 3, 2, True)", "Conv(3, 8, 3, 2, False)"),
        (SEQUENTIAL, "Conv(3, 8)", "Conv(3, 8, bias=False)"),
        (OPTIONS, "Conv(3, 8, 3)", "Conv(3, 8, 3, bias=False)"),
        (OPTIONS, "Conv(3, 8, 3, 1, 1, 1, 1, True)", "Conv(3, 8, 3, 1, 1, 1, 1, False)"),
        (GUARDED, "Conv(3, 8)", "Conv(3, 8, bias=False)"),
    ],
)
def test_a_class_around_a_layer(class_: str, made: str, fixed: str) -> None:
    # Another instance is used without a norm, so the layer in the class needs the parameter.
    norm, doubt = ("nn.BatchNorm1d(8)", "?") if class_ is LINEAR else ("nn.BatchNorm2d(8)", "")
    other = made.replace("True", "False") if "True" in made else made
    code = f"{IMPORTS}{class_}plain = nn.Sequential({other}, nn.ReLU())\nnet = nn.Sequential({made}, {norm})"
    check_snippet(f"{code}  # <- {RULE}{doubt}\n", RULE)
    assert f"net = nn.Sequential({fixed}, {norm})" in fix(code, active(RULE), Applicability.UNSAFE).text


@pytest.mark.parametrize(
    "use",
    [
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.first = Conv(3, 8)  # <- bias-before-batchnorm
                self.bn = nn.BatchNorm2d(8)
                self.last = Conv(8, 3)
            def forward(self, x):
                return self.last(self.bn(self.first(x)))
        """,
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.convs = nn.ModuleList([Conv(8, 8) for _ in range(3)])  # <- bias-before-batchnorm
                self.bns = nn.ModuleList([nn.BatchNorm2d(8) for _ in range(3)])
            def forward(self, x):
                for conv, bn in zip(self.convs, self.bns):
                    x = bn(conv(x))
                return x
        """,
        # A subclass is another class.
        """
        class Active(Conv):
            def forward(self, x):
                return F.relu(super().forward(x))
        net = nn.Sequential(Active(3, 8), nn.BatchNorm2d(8))
        net = nn.Sequential(Conv(3, 8), nn.BatchNorm2d(8))  # <- bias-before-batchnorm
        """,
        # Used in two ways, the output of one instance stands for itself and the other's does not.
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = Conv(3, 8)
                self.bn = nn.BatchNorm2d(8)
            def forward(self, x):
                y = self.conv(x)
                return y + self.bn(y)
        """,
        "net = nn.Sequential(Conv(3, 8), nn.ReLU(), nn.BatchNorm2d(8))",
        "net = nn.Sequential(Conv(3, 8), nn.GroupNorm(2, 8))",
        "net = nn.Sequential(Conv(3, 8, bias=False), nn.BatchNorm2d(8))",
        "net = nn.Sequential(Conv(3, 8, 3, False), nn.BatchNorm2d(8))",
        "def make(bias):\n    return nn.Sequential(Conv(3, 8, bias=bias), nn.BatchNorm2d(8))",
        "def make(*sizes):\n    return nn.Sequential(Conv(*sizes), nn.BatchNorm2d(8))",
        "def make(**options):\n    return nn.Sequential(Conv(3, 8, **options), nn.BatchNorm2d(8))",
        "net = Conv(3, 8)\nnorm = nn.BatchNorm2d(8)",
        "net = nn.Sequential(Conv(3, 8), nn.BatchNorm2d(8))\ndef probe(net, x):\n    return net[0].conv(x)",
    ],
)
def test_constructions_of_a_class_around_a_layer(use: str) -> None:
    check(WRAPPER + textwrap.dedent(use))


def changed(class_: str, *changes: tuple[str, str]) -> str:
    for old, new in changes:
        assert old in class_
        class_ = class_.replace(old, new)
    return class_


@pytest.mark.parametrize(
    "class_",
    [
        # The output, or the bias, goes elsewhere.
        changed(WRAPPER, ("return x", "return F.relu(x)")),
        changed(
            WRAPPER, ("        x = F.pad(x, [1, 1, 1, 1])\n        x = self.conv(x)", "        x = x + self.conv(x)")
        ),
        changed(WRAPPER, ("return x", "return x, x.mean()")),
        changed(WRAPPER, ("return x", "return F.pixel_shuffle(x, 2)")),
        changed(WRAPPER, ("return x", "return x * 2")),
        changed(WRAPPER, ("return x", "return x + self.conv.bias.view(-1, 1, 1)")),
        changed(WRAPPER, ("return x", "return x if self.training else F.conv2d(x, self.conv.weight, self.conv.bias)")),
        changed(WRAPPER, ("x = self.conv(x)", "x = self.conv(self.conv(x))")),
        WRAPPER + "    def features(self, x):\n        return self.conv(x)\n",
        WRAPPER + "    def __call__(self, x):\n        return F.relu(self.forward(x))\n",
        changed(WRAPPER, ("    def forward", "    @activated\n    def forward")),
        # The parameter decides on more, or on something else.
        changed(
            WRAPPER,
            ("bias=bias)", "bias=bias)\n        self.bias = bias"),
            ("return x", "return x if self.bias else -x"),
        ),
        changed(WRAPPER, ("        self.conv", "        bias = bias and k > 1\n        self.conv")),
        changed(WRAPPER, ("bias=bias", "bias=not bias")),
        changed(WRAPPER, ("bias=bias", "bias=k")),
        changed(WRAPPER, ("bias=bias", "bias=True")),
        changed(GUARDED, ("bias=False", "bias=bias")),
        changed(WRAPPER, ("bias=bias)", "bias=bias)\n        self.act = nn.ReLU() if bias else None")),
        changed(OPTIONS, ("super().__init__()", "super().__init__()\n        kwargs.setdefault('bias', False)")),
        changed(OPTIONS, ("**kwargs))", "**kwargs), kwargs['dim'])")),
        changed(OPTIONS, ("(*args, ", "(*args[1:], ")),
        # A subclass of a layer that does something else with the bias.
        changed(STANDARDISED, ("self.bias", "None")),
        changed(STANDARDISED, ("self.bias", "-self.bias")),
        changed(STANDARDISED, ("return F.conv2d", "return 2 * F.conv2d")),
        changed(
            STANDARDISED,
            ("F.conv2d(", "F.conv2d(x * self.bias.view(-1, 1, 1), self.weight, self.bias) if x else F.conv2d("),
        ),
        STANDARDISED
        + "    def _conv_forward(self, x, weight, bias):\n        return F.relu(F.conv2d(x, weight, bias))\n",
        changed(SAME, ("super().forward(F.pad(x, [1, 1, 1, 1]))", "super().forward(x)[:, 1:]")),
        changed(SAME, (", b)", ", not b)")),
    ],
)
def test_a_class_that_does_more(class_: str) -> None:
    check(
        f"def activated(f):\n    return f\n{class_}net = nn.Sequential(Conv(3, 8, 3), nn.BatchNorm2d(8))\nx = Conv(3, 8, 3)\n"
    )


def test_a_linear_layer_over_another_dimension_in_a_class() -> None:
    check(f"{LINEAR}net = nn.Sequential(Dense(4, 16), nn.BatchNorm1d(8))\n")
    check(LINEAR.replace("(i, o, bias", "(i, 2 * o, bias") + "net = nn.Sequential(Dense(4, 8), nn.BatchNorm1d(8))\n")


def test_one_finding_where_the_class_hands_on_what_it_gets() -> None:
    # The layer in the class is followed by a norm each time; the constructions are where its bias is decided on.
    net = f"net = nn.Sequential(\n    Conv(3, 8, 3),  # <- {RULE}\n    nn.BatchNorm2d(8),\n)\n"
    check(OPTIONS + net)


@pytest.mark.parametrize(
    ("class_", "code"),
    [
        (WRAPPER.replace("bias=bias)", "bias=bias)\n        nn.init.zeros_(self.conv.bias)"), ""),
        (WRAPPER, "for m in net.modules():\n    if isinstance(m, nn.Conv2d):\n        m.bias.data.zero_()"),
        (WRAPPER, "for m in net.modules():\n    if isinstance(m, Conv):\n        m.conv.bias.data.zero_()"),
        (WRAPPER, "nn.init.zeros_(net[0].conv.bias)"),
        (STANDARDISED + "    def reset_parameters(self):\n        nn.init.zeros_(self.bias)\n", ""),
        (STANDARDISED, "nn.init.zeros_(net[0].bias)"),
        (WRAPPER, "net.load_state_dict(torch.load('weights.pt'))"),
    ],
)
def test_no_fix_where_a_class_expects_the_bias(class_: str, code: str) -> None:
    net = f"net = nn.Sequential(Conv(3, 8, 3), nn.BatchNorm2d(8))  # <- {RULE}\n"
    result = check_snippet(f"{IMPORTS}{class_}{net}{code}\n", RULE)
    assert [finding.fix for finding in result.findings] == [None]
    assert "before setting `bias=False`" in result.findings[0].help


@pytest.mark.parametrize(
    ("class_", "code"),
    [
        (GUARDED, ""),
        (
            STANDARDISED + "    def reset_parameters(self):\n        if self.bias is not None:\n"
            "            nn.init.zeros_(self.bias)\n",
            "",
        ),
        (WRAPPER, "for m in net.modules():\n    if isinstance(m, nn.Linear):\n        m.bias.data.zero_()"),
    ],
)
def test_a_fix_where_a_class_asks_first(class_: str, code: str) -> None:
    net = f"net = nn.Sequential(Conv(3, 8), nn.BatchNorm2d(8))  # <- {RULE}\n"
    if class_.startswith(STANDARDISED):
        net = net.replace("3, 8", "3, 8, 3")
    result = check_snippet(f"{IMPORTS}{class_}{net}{code}\n", RULE)
    assert all(finding.fix is not None for finding in result.findings)


# What the page says that leaving out the bias changes

PAIRS: dict[str, Callable[[bool], nn.Sequential]] = {
    "conv": lambda bias: nn.Sequential(
        nn.Conv2d(3, 8, 3, bias=bias), nn.BatchNorm2d(8), nn.Flatten(), nn.Linear(288, 4)
    ),
    "transposed": lambda bias: nn.Sequential(nn.ConvTranspose2d(3, 8, 3, bias=bias), nn.BatchNorm2d(8), nn.Flatten()),
    "linear": lambda bias: nn.Sequential(nn.Flatten(), nn.Linear(192, 8, bias=bias), nn.BatchNorm1d(8)),
    "max pool": lambda bias: nn.Sequential(
        nn.Conv2d(3, 8, 3, bias=bias), nn.MaxPool2d(2, padding=1), nn.BatchNorm2d(8)
    ),
    "average pool": lambda bias: nn.Sequential(nn.Conv2d(3, 8, 3, bias=bias), nn.AvgPool2d(2), nn.BatchNorm2d(8)),
    "instance norm": lambda bias: nn.Sequential(nn.Conv2d(3, 8, 3, bias=bias), nn.InstanceNorm2d(8)),
    "group norm": lambda bias: nn.Sequential(nn.Conv2d(3, 8, 3, bias=bias), nn.GroupNorm(8, 8)),
}


def shared(make: Callable[[bool], nn.Sequential]) -> tuple[nn.Sequential, nn.Sequential]:
    """A network with the bias, far from zero, and one without, all else alike."""
    torch.manual_seed(0)
    old, new = (make(bias).double() for bias in (True, False))
    for module_ in old:
        if isinstance(module_, (nn.Conv2d, nn.ConvTranspose2d, nn.Linear)):
            nn.init.uniform_(module_.bias, -3, 3)
            break
    new.load_state_dict({key: value for key, value in old.state_dict().items() if key in new.state_dict()})
    return old, new


@pytest.mark.parametrize("make", PAIRS.values(), ids=PAIRS.keys())
def test_training_sees_no_bias(make: Callable[[bool], nn.Sequential]) -> None:
    old, new = shared(make)
    images = torch.randn(4, 3, 8, 8, dtype=torch.float64)
    torch.testing.assert_close(old(images), new(images), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    "make",
    [
        lambda bias: nn.Sequential(nn.Conv2d(3, 8, 3, bias=bias), nn.AvgPool2d(2, padding=1), nn.BatchNorm2d(8)),
        lambda bias: nn.Sequential(nn.Conv2d(3, 8, 3, bias=bias), nn.ReLU(), nn.BatchNorm2d(8)),
        lambda bias: nn.Sequential(nn.Conv2d(3, 8, 3, bias=bias), nn.PixelShuffle(2), nn.BatchNorm2d(2)),
        lambda bias: nn.Sequential(nn.Conv2d(3, 8, 3, bias=bias), nn.GroupNorm(4, 8)),
        lambda bias: nn.Sequential(nn.Flatten(2), nn.Linear(64, 16, bias=bias), nn.BatchNorm1d(3)),
    ],
)
def test_training_sees_the_bias_of_what_is_left_alone(make: Callable[[bool], nn.Sequential]) -> None:
    old, new = shared(make)
    images = torch.randn(4, 3, 8, 8, dtype=torch.float64)
    assert (old(images) - new(images)).abs().max() > 0.1


def test_evaluation_needs_the_conversion_that_the_page_gives() -> None:
    old, new = shared(PAIRS["conv"])
    images = torch.randn(16, 3, 8, 8, dtype=torch.float64)
    for _ in range(3):
        old(images)
    state = copy.deepcopy(old.state_dict())
    with pytest.raises(RuntimeError, match="Unexpected key"):
        new.load_state_dict(state)
    new.load_state_dict(state, strict=False)
    expected = old.eval()(images)
    assert (expected - new.eval()(images)).abs().max() > 0.1
    bias = state.pop("0.bias")
    state["1.running_mean"] -= bias
    new.load_state_dict(state)
    torch.testing.assert_close(expected, new(images), rtol=1e-9, atol=1e-9)


def test_later_layers_start_with_other_weights() -> None:
    networks = []
    for bias in (True, False):
        torch.manual_seed(0)
        networks.append(PAIRS["conv"](bias))
    old, new = networks
    assert torch.equal(old[0].weight, new[0].weight)
    assert not torch.equal(old[3].weight, new[3].weight)


def fixture(name: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": name}
    text = (files("torchlint.fixtures") / "bias_before_batchnorm" / f"{name}.py").read_text("utf-8")
    exec(compile(text, name, "exec"), names)  # noqa: S102 - our own fixtures
    return names


def test_the_fixed_network_computes_the_same() -> None:
    torch.manual_seed(0)
    old, new = (fixture(name)["Net"](8, 2).double() for name in ("slow", "fast"))
    before = old.state_dict()
    gone = ["body.0", "body.3.conv", "body.4.conv", "neck.0.conv", "neck.3", "head.0"]
    norms = ["body.1", "body.3.bn", "body.4.bn", "neck.1", "neck.4", "head.1"]
    assert list(new.state_dict()) == [key for key in before if key not in [f"{layer}.bias" for layer in gone]]
    for layer in gone:
        nn.init.uniform_(before[f"{layer}.bias"], -3, 3)
    new.load_state_dict({key: value for key, value in before.items() if key in new.state_dict()})
    images = torch.randn(8, 3, 8, 8, dtype=torch.float64)
    outputs = [net(images) for net in (old, new)]
    torch.testing.assert_close(*outputs, rtol=1e-9, atol=1e-9)
    for output in outputs:
        output.square().mean().backward()
    gradients = dict(old.named_parameters())
    for key, parameter in new.named_parameters():
        torch.testing.assert_close(parameter.grad, gradients[key].grad, rtol=1e-7, atol=1e-9)

    state = copy.deepcopy(old.state_dict())
    for layer, norm in zip(gone, norms, strict=True):
        state[f"{norm}.running_mean"] -= state.pop(f"{layer}.bias")
    new.load_state_dict(state)
    torch.testing.assert_close(old.eval()(images), new.eval()(images), rtol=1e-9, atol=1e-9)


APART = """
from torch import nn
class Net(nn.Module):
    def __init__(self{parameter}):
        super().__init__()
        self.parts = {parts}
    def forward(self, x, mask):
        {loop}
        return x
{behind}
"""
PARTS = "nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))"


@pytest.mark.parametrize(
    ("loop", "flagged"),
    [
        ("x = self.parts(x) * mask", True),
        ("for part in self.parts: print(part)", True),
        ("for part in self.parts:\n            x = part(x)", True),
        ("for part in self.parts:\n            x = part(x) * mask", False),
        ("for part in self.parts:\n            x = part(x)\n            x = x * mask", False),
        ("for part in self.parts:\n            x = mask(part(x))", False),
        ("for i, part in enumerate(self.parts):\n            x = part(x)\n            mask = mask + x", False),
        ("for part in self.parts.children():\n            x = part(x)\n            mask.append(x)", False),
        ("x = self.parts[1](self.parts[0](x) * mask)", False),
        ("x = [part(x) for part in self.parts]", False),
    ],
)
def test_a_sequence_that_is_taken_apart(loop: str, flagged: bool) -> None:  # noqa: FBT001 - of a table
    here = APART.format(parameter="", parts=PARTS, loop=loop, behind="")
    given = APART.format(parameter=", parts", parts="parts", loop=loop, behind=f"net = Net({PARTS})")
    for code in (here, given, given.replace("Net(nn", "Net(parts=nn")):
        lines = code.splitlines()
        marked = [line + "  # <- bias-before-batchnorm" if flagged and "Conv2d" in line else line for line in lines]
        check_snippet("\n".join(marked), RULE)


@pytest.mark.parametrize(("name", "flagged"), [("__init__", False), ("load_weights", False), ("evaluate", True)])
def test_a_network_that_is_only_used(name: str, flagged: bool) -> None:  # noqa: FBT001 - of a table
    mark = "  # <- bias-before-batchnorm" if flagged else ""
    code = f"""
        from torch import nn
        class Net(nn.Module):
            def {name}(self):
                self.eval()
        head = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)){mark}
        """
    check_snippet(code, RULE)


SERVED = """
import torch
from torch import nn
class Block(nn.Module):
    def __init__(self):
        super(Block, self).__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)){mark}
    def forward(self, x):
        return self.layers(x)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.block = Block()
    def forward(self, x):
        return self.block(x)
{rest}
"""
LOADED = "net = Net()\nnet.load_state_dict(torch.load('net.pt'))\n"
MAKERS = [
    (LOADED + "net = net.cuda().eval()", False),
    ("net = Net().to('cuda')\nnet.load_state_dict(torch.load('net.pt'))\nnet.eval()", False),
    ("class Wide(Net):\n    pass\n" + LOADED.replace("Net()", "Wide()") + "net.eval()", False),
    (LOADED, True),
    ("net = Net()\nnet.eval()", True),
    (LOADED + "net.eval()\nnet.train()", True),
    (LOADED + "net.eval()\noptimizer = torch.optim.SGD(net.parameters(), 0.1)", True),
    (LOADED + "net.eval()\nother = Net()", True),
    (LOADED + "net.eval()\nNETS = {'net': Net}", True),
    (LOADED + "net.eval()\nblock = Block()", True),
    ("def make():\n    return Net()", True),
    ("", True),
]


@pytest.mark.parametrize(("rest", "flagged"), MAKERS)
def test_a_network_that_everybody_only_asks(rest: str, flagged: bool) -> None:  # noqa: FBT001 - of a table
    check_snippet(SERVED.format(mark="  # <- bias-before-batchnorm" if flagged else "", rest=rest), RULE)


@pytest.mark.parametrize(
    ("rest", "flagged"),
    [(LOADED + "net.eval()", False), (LOADED + "net.train()", True), (LOADED + "net.eval()\nother = Net()", True)],
)
def test_a_network_that_other_files_only_ask(
    rest: str,
    flagged: bool,  # noqa: FBT001 - of a table
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "torchlint.toml").touch()
    (tmp_path / "nets.py").write_text(SERVED.format(mark="", rest=""))
    (tmp_path / "use.py").write_text("import torch\nfrom nets import Block, Net\n" + rest)
    run(["check", "--select", RULE, "--output-format", "concise", "--no-cache"])
    assert ("nets.py:7" in capsys.readouterr().out) is flagged


BLOCK = """
class Net(nn.Module):
    def __init__(self, n):
        super().__init__()
        def block(a, b, normalize{default}):
            layers = [{first}]{mark}
            {then}
            layers.append(nn.ReLU())
            return layers
        self.model = nn.Sequential(*block(n, 64, {off}), *block(64, 64{on}))
    def forward(self, x):
        return self.model(x)
"""
FITTING = {
    "default": "=True",
    "first": "nn.Conv2d(a, b, 3)",
    "then": "if normalize:\n                layers.append(nn.BatchNorm2d(b))",
    "off": "normalize=False",
    "on": "",
}


@pytest.mark.parametrize(
    "changed", [{}, {"default": "", "on": ", True"}, {"default": "=False", "on": ", normalize=n > 1"}]
)
def test_a_norm_that_an_option_adds_is_a_note(changed: dict[str, str]) -> None:
    check(BLOCK.format(**FITTING | changed, mark=f"  # <- {RULE}?"))


@pytest.mark.parametrize(
    "changed",
    [
        {"first": "nn.Conv2d(a, b, 3, bias=not normalize)"},
        {"first": "nn.Linear(a, b)", "then": "if normalize:\n                layers.append(nn.BatchNorm1d(a + 1))"},
        {"then": "if normalize:\n                layers.append(nn.LayerNorm(b))"},
        {
            "then": "if normalize:\n                layers.append(nn.ReLU())\n                layers.append(nn.BatchNorm2d(b))"
        },
        {
            "then": "layers.append(nn.ReLU())\n            if normalize:\n                layers.append(nn.BatchNorm2d(b))"
        },
        {"default": "=False", "on": ", normalize=False"},
    ],
)
def test_what_no_option_makes_true_is_not_said(changed: dict[str, str]) -> None:
    check(BLOCK.format(**FITTING | changed, mark=""))


def test_a_network_that_is_made_to_be_exported_keeps_its_weights() -> None:
    source = SourceFile("net.py", IMPORTS + "net = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))\n")
    assert linter.lint(source, active(RULE)).findings
    assert not linter.lint(source, active(RULE, role=Role.EXPORTING)).findings


CHOSEN = """
class Net(nn.Module):
    def __init__(self, n, off=False, on=True):
        super().__init__()
        self.body = nn.Sequential({layers}, nn.ReLU())
    def forward(self, x):
        return self.body(x)
"""


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ("nn.BatchNorm2d(n) if on else nn.Identity()", ("on", "not on")),
        ("nn.BatchNorm2d(n) if not off else nn.Identity()", ("not off", "off")),
        ("nn.Identity() if off else nn.BatchNorm2d(n)", ("not off", "off")),
        ("nn.Identity() if not on else nn.BatchNorm2d(n)", ("on", "not on")),
    ],
)
def test_a_norm_that_an_option_chooses_is_a_note(choice: str, said: tuple[str, str]) -> None:
    layers = f"\n            nn.Conv2d(n, n, 3),  # <- {RULE}?\n            {choice}"
    check(CHOSEN.format(layers=layers))
    [finding] = lint(IMPORTS + CHOSEN.format(layers=layers), active(RULE)).findings
    assert (
        finding.message == f"the `BatchNorm2d` that follows where `{said[0]}` holds cancels the bias of this `Conv2d`"
    )
    assert finding.help == f"set `bias` by it, too: `bias={said[1]}`"


@pytest.mark.parametrize(
    "layers",
    [
        # Off by default, no option of the network's, something else instead, another norm, no bias, too late.
        "nn.Conv2d(n, n, 3), nn.BatchNorm2d(n) if off else nn.Identity()",
        "nn.Conv2d(n, n, 3), nn.Identity() if on else nn.BatchNorm2d(n)",
        "nn.Conv2d(n, n, 3), nn.BatchNorm2d(n) if n > 3 else nn.Identity()",
        "nn.Conv2d(n, n, 3), nn.BatchNorm2d(n) if on else nn.ReLU()",
        "nn.Conv2d(n, n, 3), nn.LayerNorm(n) if on else nn.Identity()",
        "nn.Conv2d(n, n, 3, bias=not on), nn.BatchNorm2d(n) if on else nn.Identity()",
        "nn.Conv2d(n, n, 3), nn.ReLU(), nn.BatchNorm2d(n) if on else nn.Identity()",
        "nn.BatchNorm2d(n) if on else nn.Identity(), nn.Conv2d(n, n, 3)",
    ],
)
def test_what_is_chosen_otherwise_is_not_said(layers: str) -> None:
    check(CHOSEN.format(layers=layers))
