"""What is defined through thousands of others is followed, or said to be too long: it is no internal error."""

from __future__ import annotations

import pytest

from torchlint import engine, registry
from torchlint.finding import Fault, Result
from torchlint.linter import lint
from torchlint.settings import Settings
from torchlint.source import SourceFile

# Chains as long as these are no program that somebody wrote; with a lower limit shorter ones do, which take less time.
LENGTH = 1_500
LIMIT = 4_000
HEAD = "import torch\nfrom torch.utils.data import DataLoader\n"
CHAINS = {
    "names": "x{new} = x{old}",
    "methods": "x{new} = x{old}.relu()",
    "tuples": "x{new}, rest = x{old}, 1",
    "lists": "x{new} = [x{old}][0]",
    "branches": "x{new} = x{old} if rest else x{old}",
    "loops": "for x{new} in x{old}: x{old} = x{new}",
}


@pytest.fixture(autouse=True)
def _limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "_RECURSION_LIMIT", LIMIT)


def run(text: str, *rules: str) -> Result:
    settings = Settings(rules or tuple(rule.name for rule in registry.all_rules()))
    return lint(SourceFile("chain.py", text), settings)


@pytest.mark.slow
@pytest.mark.parametrize("chain", CHAINS)
def test_a_chain_is_followed_to_its_end(chain: str) -> None:
    rows = [CHAINS[chain].format(old=i, new=i + 1) for i in range(LENGTH)]
    last = f"x{LENGTH}"
    uses = [f"if {last}.sum() > 0:", "    pass", f"y = {last}.cpu()", "z = y.cuda()", "z.sum().backward()"]
    body = ["x0 = batch.cuda()", *rows, *uses]
    text = HEAD + "for batch in DataLoader(data):\n" + "".join(f"    {row}\n" for row in body)
    result = run(text, "device-round-trip", "tensor-truthiness-branch")
    assert result.diagnostics == ()
    if chain in ("names", "methods"):  # of the others too much is unknown
        assert [finding.rule for finding in result.findings] == ["tensor-truthiness-branch", "device-round-trip"]


def test_an_imported_name_is_known_at_the_end_of_a_chain() -> None:
    count = 20_000
    rows = [f"f{i + 1} = f{i}\n" for i in range(count)]
    text = f"import torch\nf0 = torch.nn\n{''.join(rows)}x = f{count}.DataParallel(model)\n"
    assert [finding.rule for finding in run(text, "data-parallel").findings] == ["data-parallel"]


def test_a_chain_that_is_too_long_costs_no_other_finding() -> None:
    rows = [f"l{i + 1} = iter(l{i})\n" for i in range(LENGTH)]
    text = f"{HEAD}l0 = DataLoader(data)\n{''.join(rows)}for x in l{LENGTH}:\n    pass\ntorch.nn.DataParallel(x)\n"
    result = run(text, "dataloader-no-workers", "data-parallel")
    assert [finding.rule for finding in result.findings] == ["data-parallel"]
    (diagnostic,) = result.diagnostics
    assert (diagnostic.code, diagnostic.fault) == ("E999", Fault.FILE)
    assert diagnostic.message == (
        "something here is defined through thousands of others, further than dataloader-no-workers can follow; "
        "it checked no more of it"
    )
