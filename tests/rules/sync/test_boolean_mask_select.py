"""TL309: elements that a mask picks only to be reduced are flagged; what else is done with them is not."""

from __future__ import annotations

import textwrap

import pytest
from laws import active, check_snippet, lint
from looking import look

from torchlint.finding import Doubt

RULE = "boolean-mask-select"
MARK = "  # <- boolean-mask-select"


def module(*lines: str) -> str:
    """A network that computes this of its arguments."""
    body = "".join(f"        {line}\n" for line in lines)
    return (
        "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\n"
        "class Loss(nn.Module):\n"
        f"    def forward(self, x: torch.Tensor, y: torch.Tensor, z):\n{body}"
    )


@pytest.mark.parametrize(
    "lines",
    [
        ("return x[y > 0].mean()" + MARK,),
        ("return x[y != -100].sum()" + MARK,),
        ("m = y > 0", "return x[m].mean()" + MARK),
        ("m = (y > 0) & ~x.isnan()", "return torch.sum(x[m])" + MARK),
        ("m = y.ne(0).to(x.device)", "return torch.mean(x[m])" + MARK),
        ("m = y.bool()", "return F.mse_loss(x[m], y[m])" + MARK),
        ("m = torch.eye(9, dtype=torch.bool).to(x.device)", "return x[~m].mean()" + MARK),
        ("m = torch.gt(y, 0)", "return F.smooth_l1_loss(x[m], y[m])" + MARK),
        ("return x[y > 0].mean() + x[y < 0].mean()" + MARK,),
        ("a = y > 0", "b = ~a", "c = ~b", "d = ~c", "e = ~d", "f = ~e", "g = ~f", "return x[g].mean()" + MARK),
    ],
)
def test_only_reduced(lines: tuple[str, ...]) -> None:
    check_snippet(module(*lines), RULE)


@pytest.mark.parametrize(
    "lines",
    [
        ("return x[y].mean()",),
        ("return x[z].mean()",),
        ("return x[z.size(0) > 0].mean()",),
        ("return x[z.reshape(-1) > 0]  # <- boolean-mask-select?",),
        ("return x.view(-1, 3)[0 < z.flatten()]  # <- boolean-mask-select?",),
        ("return x[len(z) > 0].mean()",),
        ("return x[0].mean()",),
        ("return x[y > 0].mean(0)  # <- boolean-mask-select?",),
        ("return x[y > 0, 0].mean()  # <- boolean-mask-select?",),
        ("return x[y > 0]  # <- boolean-mask-select?",),
        ("return x[y > 0].max()  # <- boolean-mask-select?",),
        ("return self.net(x[y > 0]).mean()  # <- boolean-mask-select?",),
        ("return x.cpu()[y > 0].mean()",),
        ("m = (y > 0).to(torch.int64)", "return x[m].mean()"),
        ("m = torch.eye(9, dtype=torch.long).to(x.device)", "return x[m].mean()"),
        ("m = y.sum(dtype=z)", "return x[m].mean()"),
        ("m = (y > 0).nonzero()", "return x[m].mean()"),
        ("m = y > 0", "return F.mse_loss(x[m], y[~m])  # <- boolean-mask-select?"),
        ("m = y > 0", "return F.mse_loss(x[m], y[m], z)  # <- boolean-mask-select?"),
        ("m = y > 0", "return F.cross_entropy(x[m], y[m])  # <- boolean-mask-select?"),
        ("m = y if z else y > 0", "return x[m].sum()"),
        # The loss of what is not a number has no gradient, chosen or not.
        ("m = y == y", "return F.mse_loss(x[m], y[m])  # <- boolean-mask-select?"),
        ("m = ~torch.isnan(y)", "return F.mse_loss(x[m], y[m])  # <- boolean-mask-select?"),
        ("m = (x > 0) & y.isfinite().to(x.device)", "return F.mse_loss(x[m], y[m])  # <- boolean-mask-select?"),
    ],
)
def test_look_alikes(lines: tuple[str, ...]) -> None:
    check_snippet(module(*lines), RULE)


def test_where_the_data_decides() -> None:
    check_snippet(
        """
        import torch
        from torch import nn
        class Router(nn.Module):
            def forward(self, x: torch.Tensor, gate: torch.Tensor):
                return x[gate > 0].mean()  # <- boolean-mask-select?
        def once(x: torch.Tensor):
            return x[x > 0].mean()  # <- boolean-mask-select?
        """,
        RULE,
    )


@pytest.mark.parametrize(
    ("lines", "advice"),
    [
        (("return x[y > 0].mean()" + MARK,), "divide by `mask.sum()`"),
        (("m = y > 0", "if z:", "    return x[m].sum()" + MARK), "sum `torch.where(mask, x, 0)`"),
        (
            ("m = y > 0", "if m.any():", "    return x[m].mean()" + MARK),
            "divide by `mask.sum().clamp(min=1)`, which needs no branch either",
        ),
        (
            ("m = y > 0", "if (m).any():", "    return x[m].sum()" + MARK),
            "sum `torch.where(mask, x, 0)`, which needs no branch either",
        ),
    ],
)
def test_the_message_speaks_of_the_branch_around(lines: tuple[str, ...], advice: str) -> None:
    result = check_snippet(module(*lines), RULE)
    assert result.findings[0].help.endswith(advice)


@pytest.mark.parametrize(
    ("line", "advice"),
    [
        ("x[m] = z", "keep the shape: `x.masked_scatter_(m, …)`, with a mask of as many dimensions"),
        ("x[m] = y[m]", "keep the shape: `torch.where(m, y, x)`"),
    ],
)
def test_what_is_advised_for_an_assignment(line: str, advice: str) -> None:
    code = f"""
        import torch
        def f(x: torch.Tensor, y: torch.Tensor, z: torch.Tensor, loader):
            for batch in loader:
                x, y, z = x.cuda(), y.cuda(), z.cuda()
                m = x > 0
                {line}
        """
    assert advice in [finding.help for finding in lint(textwrap.dedent(code), active(RULE)).findings]


def test_all_that_one_mask_selects_is_one_finding() -> None:
    result = check_snippet(
        """
        import torch
        from torch import nn
        class Pool(nn.Module):
            def forward(self, edges: torch.Tensor, weights: torch.Tensor, scores: torch.Tensor, i: int):
                keep = edges[0] != edges[1]
                edges = edges[:, keep]  # <- boolean-mask-select?
                weights = weights[keep]
                few = (scores > 0).to(torch.bool)
                weights[few] = 0
                weights[few] += 1  # <- boolean-mask-select
                kinds = weights[i, few.bool(), :]  # <- boolean-mask-select?
                kept = scores[torch.floor(scores + 0.9).type(torch.bool)]  # <- boolean-mask-select?
                if few.any():
                    kinds = kinds[few]
                return edges, weights, kinds, kept, scores[i], scores[:, i]
        def anywhere(x, y):
            return x[y > 0]
        """,
        RULE,
    )
    assert [len(finding.places) for finding in result.findings if finding.rule == RULE] == [1, 0, 0, 0]


@pytest.mark.parametrize(
    "lines",
    [
        ("m = y > 0", "x[m] = y[m]" + MARK, "return x"),
        ("m = y > 0", "x[m] = y[m] * 2 + 1" + MARK, "return x"),
        ("m = y > 0", "x[m] = torch.exp(x[m])" + MARK, "return x"),
        ("m = y > 0", "x[:, m] = y[:, m].float()" + MARK, "return x"),
        ("x[y > 0] += 1" + MARK, "return x"),
        ("x[y > 0] *= y.max()" + MARK, "return x"),
        ("x[y > 0] = z.sum()" + MARK, "return x"),
        ("m = y > 0", "x[m] = y" + MARK + "?", "return x"),
        ("a = torch.where(z[..., None], x, y)", "x[z] += 1" + MARK, "return x + a"),
        ("m = lengths_to_mask(z)", "a = torch.where(m, x, y)", "x[m] *= 2" + MARK, "return x + a"),
        ("x.masked_fill_(z, 0)", "x[z] += 1" + MARK, "return x"),
    ],
)
def test_tensors_put_where_a_mask_is(lines: tuple[str, ...]) -> None:
    check_snippet(module(*lines), RULE)


@pytest.mark.parametrize(
    "lines",
    [
        ("x[y > 0] = 0", "return x"),
        ("x[y > 0] = -float('inf')", "return x"),
        ("x[y > 0] = torch.tensor(0.0)", "return x"),
        ("x[y] = y", "return x"),
        ("x[y] += 1", "return x"),
        ("x[0, 1] += y", "return x"),
        ("m = y > 0", "if m.any():", "    x[m] += 1", "return x"),
        ("x = x.cpu()", "x[x > 0] += 1", "return x"),
        ("m = y > 0", "x[m] = self.net(x[m])  # <- boolean-mask-select?", "return x"),
        ("m = y > 0", "del x[m]"),
    ],
)
def test_what_is_put_there_without_asking(lines: tuple[str, ...]) -> None:
    check_snippet(module(*lines), RULE)


def test_a_mask_that_each_caller_passes() -> None:
    code = """import torch
from torch import nn


def pick(x, mask):
    return x[mask].sum()  # <- boolean-mask-select


class Net(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor):
        return pick(x, y > 0) + pick(y, x != 0)
"""
    check_snippet(code, RULE)


def test_a_mask_by_its_annotation() -> None:
    code = """import torch
from torch import Tensor, nn
from jaxtyping import Bool


class Net(nn.Module):
    def forward(self, x: Tensor, y: torch.BoolTensor, z: Bool[Tensor, "batch"]):
        return x[y].sum() + x[z].sum()  # <- boolean-mask-select  # <- boolean-mask-select
"""
    check_snippet(code, RULE)


def test_what_can_be_done_otherwise_is_told_once() -> None:
    """The selection that nothing replaces, and in another line the one that a sum with zeros does."""
    code = """import torch


@torch.no_grad()
def evaluate(model, loader, kept):
    for x, y in loader:
        loss = model(x.cuda(), y.cuda())
        mask = loss > 0
        kept.append(loss[mask] * 2)  # <- boolean-mask-select?
        total = loss[mask].mean()  # <- boolean-mask-select
        kept.append(total)
"""
    check_snippet(code, RULE)
    (first, second) = lint(code, active(RULE)).findings
    assert not first.places
    assert not second.places


@pytest.mark.parametrize("lines", [("return x[y > 0].mean()" + MARK,), ("x[y > 0] = z[y > 0]" + MARK, "return x")])
def test_a_name_of_code_for_samples_is_a_doubt(lines: tuple[str, ...]) -> None:
    code = module(*lines).replace("Loss(", "RandomLoss(").replace(MARK, f"{MARK}?")
    assert Doubt.NAMED_OTHERWISE in check_snippet(code, RULE).findings[0].doubts


@pytest.mark.parametrize("reduction", ["", ', reduction="mean"', ', reduction="none"'])
def test_a_loss_that_is_not_reduced_has_as_many_values_as_there_are(reduction: str) -> None:
    value, context = look(
        f"""
        import torch.nn.functional as F
        LOOK(F.cross_entropy(x, y{reduction}))
        """
    )
    assert context.value(value).scalar is (reduction != ', reduction="none"')


@pytest.mark.parametrize(
    ("masks", "mark"),
    [("valid.bool()", MARK + "?"), ("x > 0", MARK + "?"), ("order", ""), ("[valid.bool(), valid]", "")],
)
def test_rows_of_a_mask_are_masks(masks: str, mark: str) -> None:
    check_snippet(
        f"""
        import torch
        def train(model, loader, optimizer, order):
            for x, valid in loader:
                x, valid = torch.relu(model(x.cuda())), valid.cuda()
                masks = {masks}
                kept = [row[chosen] for row, chosen in zip(x, masks)]{mark}
                torch.cat(kept).mean().backward()
                optimizer.step()
        """,
        RULE,
    )


@pytest.mark.parametrize(
    ("index", "mark"), [("masks[0]", "?"), ("masks[:, 0]", "?"), ("masks[i, :]", "?"), ("order[0]", None)]
)
def test_a_part_of_a_mask_is_one(index: str, mark: str | None) -> None:
    check_snippet(
        f"""
        import torch
        def train(model, loader, optimizer, order):
            for i, (x, y) in enumerate(loader):
                x = torch.relu(model(x.cuda()))
                masks = x > 0
                part = {index}
                kept = x[part]{"" if mark is None else MARK + mark}
                kept.mean().backward()
                optimizer.step()
        """,
        RULE,
    )


@pytest.mark.parametrize(
    ("found", "mark"), [("x > 0, x", ""), ("x, x > 0", None), ("x > 0, x > 1", ""), ("first(x)", None)]
)
def test_a_mask_that_a_function_gives_beside_others(found: str, mark: str | None) -> None:
    check_snippet(
        f"""
        import torch
        def chosen(x):
            return {found}
        def train(model, loader, optimizer):
            for x, y in loader:
                x = torch.relu(model(x.cuda()))
                mask, other = chosen(x)
                x[mask].mean().backward(){"" if mark is None else MARK + mark}
                optimizer.step()
        """,
        RULE,
    )


@pytest.mark.parametrize(
    ("fill", "mark"),
    [
        ("masks.append(part > 0)", ""),
        ("masks.append(part)", None),
        ("masks.append()", None),
        ("masks += [part]", None),
        ("masks.extend(part > 0)", None),
    ],
)
def test_masks_that_a_loop_collects(fill: str, mark: str | None) -> None:
    check_snippet(
        f"""
        import torch
        def train(model, loader, optimizer):
            for x, y in loader:
                x = torch.relu(model(x.cuda()))
                masks = []
                for part in y:
                    {fill}
                mask = torch.cat(masks)
                x[mask].mean().backward(){"" if mark is None else MARK + mark}
                optimizer.step()
        """,
        RULE,
    )
