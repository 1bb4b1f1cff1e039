"""A claim takes figures that bear it; where nothing is claimed, none are asked for."""

from __future__ import annotations

import msgspec
import pytest
from evidence_samples import CPU, GPU, NOHELP, PAIR, SIM, changed, evidence

from torchlint.evidence import Measurement, Verdict, slug
from torchlint.verify.claims import problems


def wrong(measurement: Measurement) -> tuple[str, ...]:
    name = slug(measurement.device.name)
    return problems(evidence(measurement, device=name), name, PAIR)


def said(measurement: Measurement, overall: str, reason: str = "") -> Measurement:
    return changed(measurement, verdict=msgspec.convert({"overall": overall, "reason": reason}, Verdict))


@pytest.mark.parametrize("measurement", [GPU, NOHELP, CPU, SIM])
def test_what_is_inconclusive_claims_nothing(measurement: Measurement) -> None:
    """A simulation that counts no less, a run that was cut short, results that could not be compared."""
    assert wrong(said(measurement, "inconclusive", "time was not measured")) == ()
    bare = changed(said(measurement, "inconclusive"), time=None, protocol=None, numerics=None, counts=None)
    assert wrong(bare) == ()


@pytest.mark.parametrize("overall", ["cannot-run", "wrong-result", "error", "timeout", "oom", "suspicious"])
def test_what_failed_claims_nothing(overall: str) -> None:
    bare = changed(said(SIM, overall), numerics=None, counts=None, memory=None)
    assert wrong(bare) == ()


@pytest.mark.parametrize("overall", ["faster", "slower", "no-measurable-difference"])
def test_what_was_decided_takes_a_time_that_says_so(overall: str) -> None:
    assert any(f"claims `{overall}`, which its time does not say" in each for each in wrong(said(SIM, overall)))


@pytest.mark.parametrize("overall", ["fewer-syncs", "saves-memory", "faster", "slower", "no-measurable-difference"])
def test_no_claim_is_made_of_results_that_were_not_compared(overall: str) -> None:
    for numerics in (None, {"verdict": "wrong"}, {"verdict": "not-checked"}):
        found = wrong(changed(said(GPU, overall), numerics=numerics))
        assert any("whose results were not found to be the same" in each for each in found)


def test_fewer_syncs_are_fewer_in_the_counts_beside_it() -> None:
    assert wrong(SIM) == ()
    assert "claims `fewer-syncs` without fewer of them" in str(wrong(changed(SIM, counts={"after": {"syncs": 50}})))
    assert "claims `fewer-syncs` without fewer of them" in str(wrong(changed(SIM, counts=None)))
