"""All rules together: names, codes, the files that belong to each, and the choice among them."""

from __future__ import annotations

import re
from importlib.resources import files

import pytest
import toys
from contract import of_each_rule

from torchlint.registry import UnknownRuleError, all_rules, choose, find, matching
from torchlint.rule import Rule, Status

RULES = all_rules()


def entries(package: str, *folders: str) -> set[str]:
    """What stands in a package, without what Python and a measurement keep there."""
    return {entry.name for entry in files(package).joinpath(*folders).iterdir() if entry.name[0] not in "._"}


# The catalogue


def test_rules_are_sorted_and_unique() -> None:
    codes = [rule.code for rule in RULES]
    assert codes == sorted(set(codes))
    assert len({rule.name for rule in RULES}) == len(RULES)


@of_each_rule
def metadata_is_well_formed(rule: Rule) -> None:
    assert re.fullmatch(r"TL\d{3}", rule.code)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", rule.name)
    assert re.fullmatch(r"[a-z]+", rule.group)
    assert re.fullmatch(r"\d+\.\d+\.\d+", rule.since)
    assert re.fullmatch(r"[A-Z`][^\n]*\.", rule.summary)
    assert rule.fix == tuple(sorted(set(rule.fix), reverse=True))
    assert rule.options == tuple(sorted(dict(rule.options).items()))
    assert rule.url == f"https://torchlint.github.io/torchlint/rules/{rule.name}/"


def test_a_group_is_a_decade_of_codes() -> None:
    groups: dict[str, set[str]] = {}
    for rule in RULES:
        groups.setdefault(rule.group, set()).add(rule.code[:3])
    hundreds = [hundred for group in groups.values() for hundred in group]
    assert len(hundreds) == len(set(hundreds)), f"two groups share a hundred: {groups}"
    assert not set(groups) & {rule.name for rule in RULES}


def test_every_rule_has_module_page_and_fixtures_and_they_a_rule() -> None:
    groups = {rule.group for rule in RULES}
    assert entries("torchlint.rules") == groups
    for group in groups:
        modules = {rule.module for rule in RULES if rule.group == group}
        found = entries("torchlint.rules", group)
        assert {name.removesuffix(".md") for name in found if name.endswith(".md")} == modules
        assert {name.removesuffix(".py") for name in found if not name.endswith(".md")} == modules
    assert entries("torchlint.fixtures") - {"case_studies", "programs", "torchlint.toml"} == {
        rule.module for rule in RULES
    }


@of_each_rule
def a_rule_registers_checks(rule: Rule) -> None:
    assert rule.checks or rule.name == "unused-ignore"
    assert all(check.__module__ == f"torchlint.rules.{rule.group}.{rule.module}" for _, check in rule.checks)


@of_each_rule
def every_interest_feeds_the_prefilter(rule: Rule) -> None:
    assert all(token for interest in rule.interests for token in interest.tokens)


def test_rules_yield_to_others_and_never_in_a_circle() -> None:
    to = {rule.name: rule.yields_to for rule in RULES}
    named = {name for names in to.values() for name in names}
    assert named <= set(to), f"no such rules: {named - set(to)}"

    def reached(name: str, seen: tuple[str, ...] = ()) -> set[str]:
        assert name not in seen, f"a circle: {(*seen, name)}"
        return {name}.union(*(reached(other, (*seen, name)) for other in to[name]))

    for name in to:
        reached(name)


# The choice


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> None:
    preview = Rule("new-rule", "TL310", "toys", "Toy.", "0.1.0", status=Status.PREVIEW)
    off = Rule("off-rule", "TL311", "toys", "Toy.", "0.1.0", default=False)
    monkeypatch.setattr(toys, "RULES", (toys.UNUSED, toys.SLOW, toys.READ, toys.PLAIN, preview, off))
    toys.install(monkeypatch)


def chosen(*args: object, **kwargs: object) -> list[str]:
    return [rule.code for rule in choose(*args, **kwargs)]  # type: ignore[arg-type]


DEFAULT = ["TL001", "TL101", "TL301", "TL302"]


@pytest.mark.usefixtures("toy")
class TestChoose:
    def test_defaults(self) -> None:
        assert chosen(None) == DEFAULT

    @pytest.mark.parametrize(
        ("selector", "codes"),
        [
            ("ALL", ["TL001", "TL101", "TL301", "TL302", "TL311"]),
            ("toys", ["TL101", "TL301", "TL302", "TL311"]),
            ("TL3", ["TL301", "TL302", "TL311"]),
            ("tl30", ["TL301", "TL302"]),
            ("TL301", ["TL301"]),
            ("host-read", ["TL301"]),
            ("off-rule", ["TL311"]),
            ("new-rule", ["TL310"]),
            ("TL310", ["TL310"]),
        ],
    )
    def test_selectors(self, selector: str, codes: list[str]) -> None:
        assert chosen([selector]) == codes

    def test_nothing_selected_is_nothing(self) -> None:
        assert chosen([]) == []

    def test_preview_rules_need_preview_or_their_own_name(self) -> None:
        assert "TL310" not in chosen(["ALL"])
        assert chosen(None, preview=True) == [*DEFAULT, "TL310"]
        assert "TL310" in chosen(["ALL"], preview=True)
        assert "TL310" in chosen(["TL3"], preview=True)

    def test_extend_select_adds(self) -> None:
        assert chosen(None, extend_select=["TL311"]) == [*DEFAULT, "TL311"]

    def test_ignore_removes(self) -> None:
        assert chosen(None, ["TL3"]) == ["TL001", "TL101"]
        assert chosen(None, ["ALL"]) == []
        assert chosen(["TL3"], ["host-read"]) == ["TL302", "TL311"]

    def test_ignore_wins_a_tie(self) -> None:
        assert chosen(["TL301"], ["TL301"]) == []
        assert chosen(["TL301"], ["host-read"]) == []
        assert chosen(["ALL"], ["ALL"]) == []

    def test_the_narrower_selector_wins(self) -> None:
        assert chosen(["TL301"], ["TL3"]) == ["TL301"]
        assert chosen(["TL30"], ["TL3", "TL302"]) == ["TL301"]
        assert chosen(["ALL"], ["toys"], ["TL301"]) == ["TL001", "TL301"]
        assert chosen(["TL3"], ["ALL"]) == ["TL301", "TL302", "TL311"]
        assert chosen(["toys"], ["ALL"]) == ["TL101", "TL301", "TL302", "TL311"]

    @pytest.mark.parametrize(
        ("selector", "hint"),
        [
            ("host-raed", "did you mean `host-read`?"),
            ("tl303", "did you mean `TL3"),
            ("toy", "did you mean `toys`?"),
            ("TL9", "`torchlint rules` lists them"),
            ("F401", "`torchlint rules` lists them"),
            ("", "`torchlint rules` lists them"),
        ],
    )
    def test_an_unknown_selector_names_the_nearest(self, selector: str, hint: str) -> None:
        for ask in (matching, find, lambda name: chosen([name]), lambda name: chosen(None, [name])):
            with pytest.raises(UnknownRuleError, match=re.escape(f"unknown rule `{selector}`")) as error:
                ask(selector)
            assert hint in str(error.value)

    def test_find_takes_a_name_or_a_code(self) -> None:
        assert find("host-read") is find("TL301") is find("tl301") is toys.READ
        with pytest.raises(UnknownRuleError):
            find("TL3")
