"""Whether the fixes of a program compute the same: those of one class of numerics at once, or else each for itself."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from torchlint import shipped
from torchlint.registry import find
from torchlint.verify import ablation, checks
from torchlint.verify.ablation import ALL
from torchlint.verify.arms import Arm, Failure
from torchlint.verify.machine import Clerk
from torchlint.verify.process import ArmError
from torchlint.verify.session import Session
from torchlint.verify.units import Unit
from torchlint.verify.workload import WorkloadError, declaration

# From the class that demands most to the one that allows most: the last of several is the class of them together.
_WEAKEST = (
    "exact", "stdout", "alias", "shape", "close", "mapped-state", "nondeterministic", "rng", "lower-precision",
)  # fmt: skip
_SAME = ("same", "same-within-class")
_NO_STATE = {
    "class": "mapped-state",
    "verdict": "not-checked",
    "reason": "the fix changes what a state_dict holds, which a whole program cannot be compared by; "
    "an `--entry` that yields its step and its model can",
}


def declared(rule: str) -> checks.Declared:
    """What the fix of a rule, by its name, says of its numbers: what its pair declares, `exact` if it says nothing."""
    said = _of_pair(rule)
    return checks.Declared(
        said.get("numerics", "exact"),
        tuple(said.get("dropped", ())),
        tuple(said.get("free", ())),
        of_loaders=rule.startswith(checks.OF_LOADERS),
        slow_is_wrong=said.get("slow_is_wrong", False),
    )


def metric(rule: str) -> str:
    """What the fix of a rule, by its name, is to gain: `time` if its pair does not say."""
    return str(_of_pair(rule).get("metric", "time"))


@cache
def _of_pair(rule: str) -> dict[str, Any]:
    try:
        return declaration(shipped.read("fixtures", f"{find(rule).module}/slow.py"), rule)
    except (OSError, WorkloadError):
        return {}


@dataclass(slots=True)
class Numbers:
    """Compares arms of a session with its null arm, and writes what was found under the names of units and arms.

    With `to_end` that is to the end of the program.
    """

    session: Session
    clerk: Clerk
    null: Arm
    arm: Callable[[str, Sequence[Unit]], Arm]
    found: dict[str, dict[str, Any]]
    failures: dict[str, Failure]
    to_end: bool = False
    _references: dict[checks.Declared, checks.Reference] = field(default_factory=dict)
    _checked: dict[frozenset[str], bool] = field(default_factory=dict)

    def same(self, units: Sequence[Unit], conflicts: Collection[frozenset[str]]) -> list[Unit]:
        """The units that were found to compute the same, each within its own class. Raises `BaselineError`."""
        by_class: dict[checks.Declared, list[Unit]] = {}
        for unit in units:
            by_class.setdefault(declared(unit.rule), []).append(unit)
        good: set[str] = set()
        for demand, group in by_class.items():
            at_once = ablation.applicable_together([unit.name for unit in group], conflicts)
            together = [unit for unit in group if unit.name in at_once]
            name = ALL if len(together) == len(units) else f"all of {demand.numerics}"
            if len(together) > 1 and self._are_same(name, together, demand):
                good.update(at_once)
                for unit in together:
                    self.found[unit.name] = self.found[name]
                group = [unit for unit in group if unit.name not in at_once]  # noqa: PLW2901 - the rest of it
            good.update(unit.name for unit in group if self._are_same(unit.name, [unit], demand))
        found = [unit for unit in units if unit.name in good]
        full = ablation.applicable_together([unit.name for unit in found], conflicts)
        if len(full) > 1:
            self.are_same(ALL, [unit for unit in found if unit.name in full])
        return found

    def are_same(self, name: str, units: Sequence[Unit]) -> bool:
        """Whether these units together compute the same, within the class of them that allows most."""
        demands = [declared(unit.rule) for unit in units]
        weakest = max((demand.numerics for demand in demands), key=_WEAKEST.index)
        dropped, free = ({name for each in demands for name in getattr(each, key)} for key in ("dropped", "free"))
        demand = checks.Declared(
            weakest,
            tuple(sorted(dropped)),
            tuple(sorted(free)),
            of_loaders=any(each.of_loaders for each in demands),
            slow_is_wrong=any(each.slow_is_wrong for each in demands),
        )
        return self._are_same(name, units, demand)

    def _are_same(self, name: str, units: Sequence[Unit], demand: checks.Declared) -> bool:
        key = frozenset(unit.name for unit in units)
        if key not in self._checked:
            self._checked[key] = self._check(name, units, demand)
        return self._checked[key]

    def _check(self, name: str, units: Sequence[Unit], demand: checks.Declared) -> bool:
        if demand.numerics == "mapped-state" and not self.session.subject.restarts:
            self.found[name] = dict(_NO_STATE)
            return False
        if demand not in self._references:
            null = replace(self.null, name=f"{self.null.name}, as {demand}")  # each its own files of captures
            self._references[demand] = checks.reference(self.session, null, demand, to_end=self.to_end)
        base = self._references[demand]
        self.found.pop(name, None)  # `all` may have been more of them before
        self.failures.pop(name, None)
        try:
            said = checks.check(self.session, self.clerk, base, self.arm(name, units), demand)
        except ArmError as error:
            self.failures[name] = Failure(error.kind, str(error), error.trace)
            return False
        self.found[name] = said
        return said["verdict"] in _SAME
