"""TL912: sorts of which a few places are used; the tests run what the fix makes of them."""

from __future__ import annotations

from importlib.resources import files

import pytest
import torch
from laws import check_snippet

RULE = "sort-for-topk"

FIXES = {
    "x.sort(dim=1, descending=True)[0][:, :2]": "x.topk(2, dim=1).values",
    "x.sort(1, True)[1][:, :2]": "x.topk(2, dim=1).indices",
    "x.sort(1).values[:, :k]": "x.topk(k, dim=1, largest=False).values",
    "torch.sort(x, 0).indices[0:k]": "x.topk(k, dim=0, largest=False).indices",
    "torch.sort(x, dim=-1, descending=True)[0][..., :k]": "x.topk(k, dim=-1).values",
    "torch.sort(x, descending=True)[0][..., :k]": "x.topk(k).values",
    "x.argsort(dim=1, descending=True)[:, : k - 1]": "x.topk(k - 1, dim=1).indices",
    "torch.argsort(-x, dim=1)[:, :k]": "(-x).topk(k, dim=1, largest=False).indices",
    "torch.argsort(x, dim=-1, descending=False)[:, :k]": "x.topk(k, dim=-1, largest=False).indices",
    "x.view(-1).sort(descending=True).values[:k]": "x.view(-1).topk(k).values",
    "0 if(not k)else(x.sort(0).values[:k])": "0 if(not k)else(x.topk(k, dim=0, largest=False).values)",
}


def function(expression: str) -> str:
    return f"import torch\ndef first(x: torch.Tensor, k: int):\n    return {expression}\n"


def called(code: str, x: torch.Tensor, k: int) -> torch.Tensor:
    names: dict[str, object] = {}
    exec(code, names)  # noqa: S102 - our own programs
    result = names["first"](x, k)  # type: ignore[operator]
    assert isinstance(result, torch.Tensor)
    return result


@pytest.mark.parametrize(("before", "after"), FIXES.items())
def test_topk_gives_the_same(before: str, after: str) -> None:
    check_snippet(f"{function(before).rstrip()}  # <- {RULE}\n", RULE, fixed=function(after))
    x = torch.randperm(24).view(4, 6).float()
    x[0, 0] = float("nan")
    for given in (x, x.to(torch.int32), x.double()[:, :3].contiguous()):
        one, other = called(function(before), given, 2), called(function(after), given, 2)
        assert torch.equal(one.nan_to_num(-1), other.nan_to_num(-1))


def test_what_the_page_says_may_differ() -> None:
    before, after = (function(code) for code in ("x.sort(dim=0).values[:k]", "x.topk(k, dim=0, largest=False).values"))
    assert called(before, torch.arange(3), 5).shape == (3,)
    with pytest.raises(RuntimeError, match="out of range"):
        called(after, torch.arange(3), 5)
    assert called(before, torch.tensor([True, False]), 1).tolist() == [False]
    with pytest.raises(RuntimeError, match="bool"):
        called(after, torch.tensor([True, False]), 1)


def test_two_names_are_both_cut() -> None:
    check_snippet(
        """
        import torch
        def nearest(distances: torch.Tensor):
            values, index = distances.sort(dim=-1)  # <- sort-for-topk
            return values[..., :3], index[..., :3]
        """,
        RULE,
        fixed="""
        import torch
        def nearest(distances: torch.Tensor):
            values, index = distances.topk(3, dim=-1, largest=False)
            return values[..., :3], index[..., :3]
        """,
    )


REPORTED_ONLY = {
    "the last ones, which come in another order": "return x.argsort(dim=1)[:, -k:]",
    "the number of axes is not known": "return x.sort(descending=True)[0][:k]",
    "through a name": "order = x.argsort(dim=1, descending=True)\n    return x.gather(1, order[:, :k])",
    "the number may be another by then": "v, i = x.sort(dim=1)\n    k += 1\n    return v[:, :k], i[:, :k]",
}


@pytest.mark.parametrize("body", REPORTED_ONLY.values(), ids=REPORTED_ONLY.keys())
def test_reported_only(body: str) -> None:
    first, *rest = body.split("\n")
    code = "\n".join([f"{first}  # <- {RULE}", *rest])
    result = check_snippet(f"import torch\ndef first(x: torch.Tensor, k: int):\n    {code}\n", RULE)
    assert [finding.fix for finding in result.findings] == [None]


SILENT = (
    "x.sort(dim=1)[0][:k]",
    "x.sort(dim=0)[0][:, :k]",
    "x.sort(dim=axis)[0][:, :k]",
    "x.sort(dim=1, stable=True)[0][:, :k]",
    "x.sort(dim=1, descending=flag)[0][:, :k]",
    "x.sort(dim=1)[0][:, k:]",
    "x.sort(dim=1)[0][:, :-1]",
    "x.sort(dim=1)[0][:, 1:k]",
    "x.sort(dim=1)[0][:, ::k]",
    "x.sort(dim=1)[0][:, 0]",
    "x.sort(dim=1)[0][mask, :k]",
    "x.sort(dim=1)[0][:, : x.size(1) // 2]",
    "torch.rand_like(x).argsort(dim=1)[:, :k]",
    "names.sort()[:k]",
    "sorted(x)[:k]",
)


@pytest.mark.parametrize("expression", SILENT)
def test_silent(expression: str) -> None:
    check_snippet(
        f"import torch\ndef first(self, x: torch.Tensor, k, axis, flag, mask, names):\n    return {expression}\n", RULE
    )


@pytest.mark.parametrize("count", ["self.max_boxes", "self.rank_budget"])
def test_what_is_called_a_bound_is_noted(count: str) -> None:
    code = f"import torch\ndef first(self, x: torch.Tensor):\n    return x.sort(dim=1)[0][:, : {count}]  # <- {RULE}?\n"
    check_snippet(code, RULE)


def test_look_alikes_obey_the_laws() -> None:
    check_snippet(files("torchlint.fixtures").joinpath("sort_for_topk/ok.py").read_text("utf-8"), RULE)


@pytest.mark.parametrize(
    ("first", "second", "mark"),
    [
        ("order = x.argsort(descending=True)", "pass", ""),
        ("pass", "order = x.argsort(descending=True)", "  # <- " + RULE),
    ],
)
def test_what_is_sorted_once_may_be_cut_at_each_turn(first: str, second: str, mark: str) -> None:
    lines = [f"    {first}", "    while is_open(k):", f"        {second}{mark}", "        k = take(order[:k])"]
    check_snippet("import torch\ndef search(x: torch.Tensor, k, take, is_open):\n" + "\n".join(lines) + "\n", RULE)


@pytest.mark.parametrize(
    ("count", "mark"),
    [
        ("int(len(x) * 0.5)", ""),
        ("len(x) // 2", ""),
        ("int(ratio * len(x))", f"  # <- {RULE}"),
        ("int(len(x) * 0.01)", f"  # <- {RULE}"),
        ("len(x) // 100", f"  # <- {RULE}"),
    ],
)
def test_a_large_share(count: str, mark: str) -> None:
    code = "import torch\ndef hard(x: torch.Tensor, ratio):\n    k = {}\n    return x.argsort(descending=True)[:k]{}\n"
    check_snippet(code.format(count, mark), RULE)
