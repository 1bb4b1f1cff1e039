"""TL502: a layer made for each batch is flagged; where it has no weights, the fix calls the function it stands for."""

from __future__ import annotations

import textwrap

import libcst as cst
import pytest
import torch
from laws import check_snippet
from torch import nn
from torchlint.rules.modules.module_built_in_forward.functionals import (
    DROPOUTS,
    PLAIN,
    WEIGHTED,
    function_for,
    same_as,
    takes,
)

RULE = "module-built-in-forward"
MARK = "  # <- module-built-in-forward?"
SURE = MARK.removesuffix("?")
TOP = "import torch\nfrom torch import nn\n"


def forward(*lines: str, top: str = TOP) -> str:
    body = textwrap.indent("\n".join(lines), " " * 8)
    return f"{top}\n\nclass Net(nn.Module):\n    def forward(self, x, y, args):\n{body}\n"


FIXES = {
    "return nn.MaxPool2d(args.kernel)(x)": "return nn.functional.max_pool2d(x, args.kernel)",
    "return nn.MaxPool2d(self.kernel)(torch.relu(x))": "return nn.functional.max_pool2d(torch.relu(x), self.kernel)",
    "return nn.ReLU()(x)": "return nn.functional.relu(x)",
    "return nn.ReLU(inplace=True)(x + y)": "return nn.functional.relu(x + y, inplace=True)",
    "return torch.nn.LeakyReLU(0.2)(x)": "return nn.functional.leaky_relu(x, 0.2)",
    "return nn.Sigmoid()(x)": "return torch.sigmoid(x)",
    "return nn.Softmax(dim=-1)(x)": "return nn.functional.softmax(x, dim=-1)",
    "return nn.LogSoftmax(1)(x)": "return nn.functional.log_softmax(x, 1)",
    "return nn.MaxPool2d(2, stride=1)(x)[0]": "return nn.functional.max_pool2d(x, 2, stride=1)[0]",
    "return nn.Upsample(scale_factor=2, mode='nearest')(x)":
        "return nn.functional.interpolate(x, scale_factor=2, mode='nearest')",
    "return y if(x is None)else nn.GELU(approximate='tanh')(x)":
        "return y if(x is None)else nn.functional.gelu(x, approximate='tanh')",
}  # fmt: skip


@pytest.mark.parametrize(("before", "after"), FIXES.items())
def test_the_function_takes_the_place_of_the_layer(before: str, after: str) -> None:
    check_snippet(forward(before + MARK), RULE, fixed=forward(after))


@pytest.mark.parametrize(
    ("top", "name"),
    [
        ("import torch.nn.functional as F\nfrom torch import nn\n", "F.relu"),
        ("import torch.nn as nn\nfrom torch.nn.functional import relu\n", "relu"),
        ("from torch import nn\n\nF = None\n", "nn.functional.relu"),
    ],
)
def test_the_function_goes_by_the_name_it_has(top: str, name: str) -> None:
    check_snippet(forward("return nn.ReLU()(x)" + MARK, top=top), RULE, fixed=forward(f"return {name}(x)", top=top))


@pytest.mark.parametrize(
    "lines",
    [
        ("return nn.Softmax()(x)" + MARK,),
        ("return nn.GELU('tanh')(x)" + MARK,),
        ("return nn.MaxPool2d(2, 2, 0, 1, True)(x)" + MARK,),
        ("return nn.ReLU(**args)(x)" + MARK,),
        ("return nn.ReLU()(*args)" + MARK,),
        ("return nn.ReLU()(input=x)" + MARK,),
        ("return nn.Softmax(dim=1)(v for v in x)" + MARK,),
        ("return nn.Softmax(dim=1, dtype=torch.float64)(x)" + MARK,),
        ("return nn.Upsample(scale_factor=x.sum())(x)" + MARK,),
        ("return nn.Upsample(scale_factor=[2, 2])(x)" + MARK,),
        ("return nn.LeakyReLU(torch.rand(1).item())(torch.rand(3))" + MARK,),
        ("return nn.Softmax(dim=(d := 1))(x.sum(d))" + MARK,),
        ("return nn.MaxPool2d(self.kernel)(self.step(x))" + MARK,),
        ("return nn.MaxPool2d(args['kernel'])(self.step(x))" + MARK,),
        ("return nn.ReLU().to(x.device)(x)" + MARK,),
        ("act = nn.ReLU()" + MARK, "return act(x) + act(y)"),
        ("return nn.ZeroPad2d(1)(x)" + MARK,),
        ("return nn.ReLU()(" + MARK, "    # the first", "    x)"),
        ("return nn.Dropout(0.1)(x)" + SURE,),
        ("return nn.Linear(3, 4).cuda()(x)" + SURE,),
        ("norm = nn.LayerNorm(8)" + SURE, "return norm(x)"),
    ],
)
def test_reported_without_a_fix(lines: tuple[str, ...]) -> None:
    marked = forward(*lines)
    result = check_snippet(marked, RULE, fixed=marked.replace(MARK, "").replace(SURE, ""))
    assert len(result.findings) == 1


@pytest.mark.parametrize(
    "line", ["nn.ReLU = nn.GELU", "nn.functional.relu = abs", "nn.modules.module.register_module_forward_hook(print)"]
)
def test_torch_as_somebody_has_changed_it(line: str) -> None:
    code = forward("return nn.ReLU()(x)" + MARK, top=f"{TOP}{line}\n")
    check_snippet(code, RULE, fixed=code.replace(MARK, ""))


UNSURE = {
    "for checkers only": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch.nn.functional as F\n",
    "now and then": "import sys\nif len(sys.argv) > 2:\n    import torch.nn.functional as F\n",
    "perhaps": "try:\n    import torch.nn.functional as F\nexcept ImportError:\n    pass\n",
    "by a function": "def load():\n    global F\n    import torch.nn.functional as F\n",
    "and no more": "import torch.nn.functional as F\ndel F\n",
}


@pytest.mark.parametrize("top", UNSURE.values(), ids=UNSURE)
def test_an_import_that_may_not_have_run_gives_no_name(top: str) -> None:
    top = f"from torch.nn import Module, ReLU\n{top}"
    code = f"{top}\n\nclass Net(Module):\n    def forward(self, x):\n        return ReLU()(x)"
    check_snippet(code + MARK, RULE, fixed=code)


@pytest.mark.parametrize(
    "later", ["\nimport torch.nn.functional as F\n", "\n        import torch.nn.functional as F\n"]
)
def test_an_import_further_down_gives_no_name(later: str) -> None:
    code = "from torch.nn import Module, ReLU\n\n\nclass Net(Module):\n    def forward(self, x):\n        x = ReLU()(x)"
    check_snippet(code + MARK + later, RULE, fixed=code + later)


@pytest.mark.parametrize(
    "lines",
    [
        ("self.act = nn.ReLU()", "return self.act(x)"),
        ("layer = nn.Linear(3, 4)", "layer.weight.data = y", "return layer(x)"),
        ("layer = nn.Linear(3, 4)", "self.layers.append(layer)", "return layer(x)"),
        ("return nn.Linear(3, 4)",),
        ("return nn.CrossEntropyLoss()(x, y)",),
        ("return nn.Sequential(nn.ReLU(), nn.ReLU())(x)",),
    ],
)
def test_layers_that_are_kept_or_worked_on(lines: tuple[str, ...]) -> None:
    check_snippet(forward(*lines), RULE)


def test_outside_of_modules_only_what_has_no_weights() -> None:
    check_snippet(
        f"""
        import torch
        from torch import nn

        def train(model, loader, optimizer):
            for x, y in loader:
                p = nn.Softmax(dim=1)(model(x)){MARK}
                q = nn.Linear(3, 1)(p)
                q.sum().backward()
                optimizer.step()
        """,
        RULE,
    )


def test_who_runs_once_may_build() -> None:
    check_snippet(TOP + "x = nn.ReLU()(torch.ones(3))\nif x.sum() > 2:\n    x = nn.Softmax(dim=0)(x)\n", RULE)


ARGUMENTS = {
    "LeakyReLU": ((0.3, True),), "ELU": ((0.5, True),), "CELU": ((0.5, True),), "Softplus": ((2.0, 10.0),),
    "Softmax": ((1,),), "LogSoftmax": ((1,),), "Softmin": ((1,),), "GLU": ((1,),),
    "MaxPool1d": ((2, 1, 1, 1),), "MaxPool2d": ((2, 1, 1, 1), (2,)), "MaxPool3d": ((2, 1, 1, 1),),
    "AvgPool1d": ((2, 1, 1, True, False),), "AvgPool2d": ((2, 1, 1, True, False, 3),),
    "AvgPool3d": ((2, 1, 1, True, False, 3),), "Upsample": ((5,), (None, 2, "nearest"), (None, (2.0, 3.0), "bilinear", True)),
    "AdaptiveAvgPool1d": ((2,),), "AdaptiveAvgPool2d": (((2, 1),),), "AdaptiveAvgPool3d": ((1,),),
    "AdaptiveMaxPool1d": ((2, True),), "AdaptiveMaxPool2d": (((2, 1), True),), "AdaptiveMaxPool3d": ((1, True),),
    "PixelShuffle": ((2,),), "PixelUnshuffle": ((2,),),
}  # fmt: skip


@pytest.mark.parametrize("layer", [layer for layer in PLAIN if function_for(layer)])
def test_the_function_gives_what_the_layer_gives(layer: str) -> None:
    module, _, name = function_for(layer).rpartition(".")
    function = getattr(torch if module == "torch" else nn.functional, name)
    axes = 5 if layer.endswith("3d") else 3 if layer.endswith("1d") else 4
    for arguments in ARGUMENTS.get(layer, ((),)):
        assert takes(layer, len(arguments), frozenset())
        x = torch.randn(2, *(4 for _ in range(axes - 1)))
        first, second = getattr(nn, layer)(*arguments)(x.clone()), function(x.clone(), *arguments)
        pairs = zip(first, second, strict=True) if isinstance(first, tuple) else ((first, second),)
        assert all(torch.equal(one, other) for one, other in pairs)


@pytest.mark.parametrize(
    ("layer", "arguments", "call"),
    [
        ("ReplicationPad2d((0, 1, 2, 0))", "(0, 1, 2, 0)", 'nn.functional.pad(…, mode="replicate")'),
        ("ReflectionPad1d((1, 2))", "(1, 2)", 'nn.functional.pad(…, mode="reflect")'),
        ("ZeroPad2d((0, 0, 0, 3))", "(0, 0, 0, 3)", "nn.functional.pad"),
        ("ConstantPad1d((1, 0), 7)", "(1, 0), value=7", "nn.functional.pad"),
        ("Hardtanh(-2, 2)", "-2, 2", "nn.functional.hardtanh"),
        ("UpsamplingNearest2d(None, 2)", "None, 2", 'nn.functional.interpolate(…, mode="nearest")'),
        (
            "UpsamplingBilinear2d((5, 5))",
            "(5, 5)",
            'nn.functional.interpolate(…, mode="bilinear", align_corners=True)',
        ),
        ("Flatten()", "", "torch.flatten(…, 1)"),
        ("Flatten(2)", "2", "torch.flatten"),
        ("Unflatten(1, (2, 2))", "1, (2, 2)", "torch.Tensor.unflatten"),
        ("Unfold(2)", "2", "nn.functional.unfold"),
    ],
)
def test_what_a_message_names_does_the_same(layer: str, arguments: str, call: str) -> None:
    made = cst.ensure_type(cst.parse_expression(f"nn.{layer}"), cst.Call)
    said = same_as(layer.partition("(")[0], made)
    assert said.removeprefix("torch.nn").removeprefix("torch") == call.removeprefix("nn").removeprefix("torch")
    named = said if "…" in said else f"{said}(…)"
    filled = named.replace("…", f"x, {arguments}" if arguments else "x")
    x = torch.randn(2, 4, 4) if "1d" in layer else torch.randn(2, 4, 4, 4)
    assert torch.equal(eval(f"nn.{layer}")(x), eval(filled)), filled  # noqa: S307 - of a table


def test_all_layers_exist() -> None:
    assert all(issubclass(getattr(nn, layer), nn.Module) for layer in (*PLAIN, *DROPOUTS, *WEIGHTED))


def test_a_loop_may_go_over_heads() -> None:
    (found,) = check_snippet(
        f"""
        from torch import nn
        class Net(nn.Module):
            def forward(self, heads):
                return [nn.Softmax(dim=-1)(head) for head in heads]  # <- {RULE}?
        """,
        RULE,
    ).findings
    assert "creates a module several times a batch only" in found.message
