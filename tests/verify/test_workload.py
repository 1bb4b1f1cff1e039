"""What a pair's slow file declares is read without running it, and the fast file is what the fixer makes."""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING

import pytest

from torchlint.evidence import is_measurable, pair
from torchlint.finding import Applicability
from torchlint.registry import all_rules, find
from torchlint.verify.numbers import declared
from torchlint.verify.workload import WorkloadError, declaration, workload

if TYPE_CHECKING:
    from torchlint.rule import Rule

RULES = [rule for rule in all_rules() if is_measurable(rule) and rule.name != "unused-ignore"]
EACH_RULE = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
GOOD = """\
raise SystemExit("it is not run")
WORKLOAD = {
    "numerics": "exact",
    "metric": "time",
    "sizes": {"smoke": {"steps": 1}, "gpu": {"steps": 9}, "nohelp": {"steps": 1}, "nohelp-other": {"steps": 2}},
    "nohelp": "It is over before it began.",
}
"""


@EACH_RULE
def test_a_pair_is_what_lies_in_its_folder(rule: Rule) -> None:
    found = workload(rule)
    folder = files("torchlint.fixtures") / rule.module
    assert found.slow == (folder / "slow.py").read_bytes()
    assert found.fast == (folder / "fast.py").read_bytes()
    assert found.digests == pair(rule)
    fixable = [applicability for applicability in rule.fix if applicability > Applicability.DISPLAY]
    assert found.fix == (str(min(fixable)) if fixable else "suggestion")
    assert {"smoke", "gpu", "nohelp"} <= set(found.sizes)
    assert declared(rule.name).numerics == found.numerics


def test_what_only_some_declare() -> None:
    assert workload(find("data-parallel")).devices == 2
    assert workload(find("item-in-train-loop")).devices == 1
    mapped = workload(find("bias-before-batchnorm"))
    assert mapped.numerics == "mapped-state"
    assert mapped.dropped


def test_a_rule_without_a_pair_computes_exactly_the_same() -> None:
    assert declared("unused-ignore").numerics == "exact"


def test_a_declaration_is_read_and_not_run() -> None:
    found = declaration(GOOD.encode(), "slow.py")
    assert list(found["sizes"]) == ["smoke", "gpu", "nohelp", "nohelp-other"]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("WORKLOAD", "OTHER", r"slow\.py: has no WORKLOAD"),
        ('"time"', "str(1)", r"slow\.py:2: WORKLOAD has to be a literal"),
        ('"exact"', '"equal"', r"slow\.py:2: WORKLOAD\['numerics'\] is 'equal'; it has to be one of \('exact', "),
        ('"time"', '"speed"', r"slow\.py:2: WORKLOAD\['metric'\] is 'speed'; it has to be one of \('time', "),
        ('"gpu": {"steps": 9}, ', "", r"slow\.py:2: WORKLOAD\['sizes'\] lacks gpu$"),
        ('"It is over before it began."', "None", r"slow\.py:2: WORKLOAD\['nohelp'\] has to say why"),
        ('"It is over before it began.",\n}', '"x"}\nWORKLOAD["sizes"] = {}', None),
    ],
)
def test_a_bad_declaration_is_named(old: str, new: str, problem: str | None) -> None:
    assert GOOD.count(old) == 1
    source = GOOD.replace(old, new).encode()
    if problem is None:
        assert declaration(source, "slow.py")["sizes"], "the first statement counts"
        return
    with pytest.raises(WorkloadError, match=problem):
        declaration(source, "slow.py")
