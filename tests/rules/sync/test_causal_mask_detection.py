"""TL323: a transformer of torch that compares its mask with a causal one is flagged, and told where it is one."""

from __future__ import annotations

import pytest
import torch
from laws import check_snippet
from torch import nn

RULE = "causal-mask-detection"
MARK = "  # <- causal-mask-detection"
NOTE = MARK + "?"


def module(*lines: str) -> str:
    """A network with each of torch's transformers."""
    body = "".join(f"        {line}\n" for line in lines)
    return (
        "import torch\n"
        "from torch import nn\n\n\n"
        "class Net(nn.Module):\n"
        "    def __init__(self, width):\n"
        "        super().__init__()\n"
        "        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(width, 4), 2)\n"
        "        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(width, 4), 2)\n"
        "        self.both = nn.Transformer(width)\n\n"
        "    def forward(self, x: torch.Tensor, y: torch.Tensor, given: torch.Tensor):\n"
        f"{body}"
    )


MADE = "mask = nn.Transformer.generate_square_subsequent_mask(len(x))"


@pytest.mark.parametrize(
    ("call", "fixed"),
    [
        ("self.encoder(x, mask)", "self.encoder(x, mask, is_causal=True)"),
        ("self.encoder(x, mask.to(x.device))", "self.encoder(x, mask.to(x.device), is_causal=True)"),
        ("self.decoder(x, y, tgt_mask=mask)", "self.decoder(x, y, tgt_mask=mask, tgt_is_causal=True)"),
        ("self.both(x, y, tgt_mask=mask)", "self.both(x, y, tgt_mask=mask, tgt_is_causal=True)"),
        (
            "self.both(x, y, mask, mask)",
            "self.both(x, y, mask, mask, src_is_causal=True, tgt_is_causal=True)",
        ),
        ("self.both(x, y, None, mask)", "self.both(x, y, None, mask, tgt_is_causal=True)"),
    ],
)
def test_what_torch_makes_is_causal(call: str, fixed: str) -> None:
    check_snippet(
        module(MADE, f"return {call}{MARK}"), RULE, fixed=module(MADE, f"return {fixed}"), target_torch=(2, 1)
    )


def test_before_torch_had_the_hint_there_is_no_fix() -> None:
    found = check_snippet(module(MADE, f"return self.decoder(x, y, mask){MARK}"), RULE).findings
    assert [finding.fix for finding in found if finding.rule == RULE] == [None]
    is_told = module(MADE, "return self.encoder(x, mask, is_causal=True)")
    check_snippet(module(MADE, f"return self.encoder(x, mask){MARK}"), RULE, fixed=is_told)


@pytest.mark.parametrize(
    "made",
    [
        "mask = torch.ones(len(x), len(x), device=x.device).tril() == 0",
        "mask = torch.triu(torch.full((len(x), len(x)), float('-inf')), diagonal=1).to(x)",
        "mask = torch.log(torch.tril(torch.ones(len(x), len(x)))).cuda()",
        "mask = nn.Transformer.generate_square_subsequent_mask(len(x)) + 0.5",
    ],
)
def test_another_of_two_axes_is_compared_and_may_not_be_causal(made: str) -> None:
    text = module(made, f"return self.encoder(x, mask){MARK}")
    assert all(finding.fix is None for finding in check_snippet(text, RULE).findings if finding.rule == RULE)


def test_one_that_is_written_to_may_not_be_causal() -> None:
    lines = (MADE, "mask[0] = 0", f"return self.encoder(x, mask){MARK}")
    assert all(finding.fix is None for finding in check_snippet(module(*lines), RULE).findings if finding.rule == RULE)


@pytest.mark.parametrize("mask", ["given", "given.repeat(8, 1, 1)", "torch.zeros(8, len(x), len(x), device=x.device)"])
def test_one_of_unknown_shape_is_a_note(mask: str) -> None:
    check_snippet(module(f"return self.encoder(x, {mask}){NOTE}"), RULE)


@pytest.mark.parametrize(
    "call",
    [
        "self.encoder(x, mask, is_causal=True)",
        "self.encoder(x, mask, None, False)",
        "self.encoder(x)",
        "self.encoder(x, None)",
        "self.encoder(x, src_key_padding_mask=given)",
        "self.encoder(x, *given)",
        "self.encoder(x.cpu(), mask.cpu())",
        "self.decoder(x, y, None, mask)",
        "self.decoder(x, y, tgt_mask=mask, tgt_is_causal=False)",
        "self.both(x, y, memory_mask=mask)",
        "self.other(x, mask)",
    ],
)
def test_told_or_not_asked(call: str) -> None:
    check_snippet(module(MADE, f"return {call}"), RULE)


def test_what_a_class_inherits() -> None:
    check_snippet(
        """
        import torch
        from torch import nn

        class Model(nn.Transformer):
            def __init__(self, width):
                super().__init__(width)
                self.decoder = nn.Linear(width, width)
                self.mask = None

            def forward(self, x: torch.Tensor):
                mask = self.generate_square_subsequent_mask(len(x))
                hidden = self.encoder(x, mask)  # <- causal-mask-detection
                return self.decoder(hidden)
        """,
        RULE,
    )


def test_making_a_mask_is_no_generation_of_text() -> None:
    """What follows it runs at each batch like anything else; what follows a generation has been waited for."""
    code = """
        import torch
        from torch import nn

        class Model(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(width, 4), 2)

            def generate_mask(self, n):
                return torch.ones(n, n, device="cuda").tril()

            def generate(self, x):
                for _ in range(100):
                    x = torch.cat([x, self.encoder(x)[-1:]])
                return x

            def forward(self, x: torch.Tensor):
                mask = self.{made}
                return self.encoder(x, mask){mark}
        """
    check_snippet(code.format(made="generate_mask(len(x))", mark=MARK), RULE)
    check_snippet(code.format(made="generate(x)", mark=""), RULE)


def test_a_class_of_the_same_name() -> None:
    check_snippet(
        """
        import torch
        from torch import nn
        from mine import TransformerEncoder

        class Model(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.encoder = TransformerEncoder(width)

            def forward(self, x: torch.Tensor):
                return self.encoder(x, torch.ones(len(x), len(x)).tril())
        """,
        RULE,
    )


@pytest.mark.parametrize("is_training", [True, False])
def test_the_comparison_finds_what_the_fix_says(is_training: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001
    """The values are the same bits, and torch asks a tensor for its truth where it is not told, and only there."""
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(16, 2, dropout=0.0, batch_first=True)
    encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).train(is_training)
    x = torch.randn(3, 5, 16)
    mask = nn.Transformer.generate_square_subsequent_mask(5)
    asked: list[torch.Size] = []
    truth = torch.Tensor.__bool__

    def ask(tensor: torch.Tensor) -> bool:
        asked.append(tensor.shape)
        return bool(truth(tensor))

    monkeypatch.setattr(torch.Tensor, "__bool__", ask)
    detected = encoder(x, mask)
    assert torch.Size([]) in asked
    asked.clear()
    told = encoder(x, mask, is_causal=True)
    assert torch.equal(detected, told)
    assert not asked
