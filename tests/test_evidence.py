"""What was measured says what it may: the schema holds, claims follow from figures, and the pair is the one measured."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from evidence_samples import CPU, GPU, NOHELP, PAIR, SIM, changed, evidence, ratio
from generate_pages import main as generate_pages

from torchlint.evidence import (
    Controls,
    Device,
    EvidenceError,
    MemoryResult,
    TimeResult,
    Verdict,
    digest,
    evidence_of,
    is_stale,
    merge,
    pair,
    read,
    schema,
    slug,
    write,
)
from torchlint.registry import all_rules, find
from torchlint.verify.claims import problems

if TYPE_CHECKING:
    from torchlint.evidence import Measurement

ROOT = Path(__file__).parents[1]
SCHEMA = ROOT / "torchlint" / "torchlint.evidence.schema.json"
COMMITTED = sorted((ROOT / "fixtures").glob("*/evidence/*"))
VALIDATOR = jsonschema.Draft202012Validator(schema())


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: f"{path.parts[-3]}/{path.name}")
def test_committed_evidence_may_be_committed(path: Path) -> None:
    check(path)


def check(path: Path) -> None:
    """Raise `AssertionError` where a file is not what may be committed beside the rule that its folder names."""
    rule = {rule.module: rule for rule in all_rules()}[path.parts[-3]]
    data = path.read_bytes()
    assert path.suffix == ".json"
    VALIDATOR.validate(json.loads(data))
    found = read(data, path.name)
    assert found.rule == rule.name
    assert problems(found, path.stem, pair(rule)) == ()
    automatic = {str(applicability) for applicability in rule.fix if applicability > 0}
    assert {each.subject.fix for each in found.measurements} <= (automatic or {"suggestion"})
    assert data == write(found), "not as `torchlint verify` writes it"


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    """A good file, where the check would look for it."""
    current = changed(GPU, subject=pair(find("item-in-train-loop")))
    folder = tmp_path / "item_in_train_loop" / "evidence"
    folder.mkdir(parents=True)
    path = folder / "nvidia-h200.json"
    path.write_bytes(write(evidence(current)))
    return path


def test_a_good_file_passes(planted: Path) -> None:
    check(planted)


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ('"driver"', '"drivers"', "drivers"),
        ('"unsafe"', '"suggestion"', "suggestion"),
        ('"unsafe"', '"safe"', "safe"),
        ('"overall": "faster"', '"overall": "fast"', "'fast' is not one of"),
        (pair(find("item-in-train-loop"))["sha256_after"], "0" * 64, "stale"),
        ('"rule": "item-in-train-loop"', '"rule": "item-in-eval-loop"', "item-in-eval-loop"),
        ("\n", "\r\n", "not as `torchlint verify` writes it"),
    ],
)
def test_a_bad_file_fails(planted: Path, old: str, new: str, why: str) -> None:
    text = planted.read_bytes().decode()
    assert old in text
    planted.write_bytes(text.replace(old, new).encode())
    with pytest.raises((AssertionError, jsonschema.ValidationError), match=why):
        check(planted)


def test_a_file_named_after_another_device_fails(planted: Path) -> None:
    with pytest.raises(AssertionError, match="is of `nvidia-h200`, in a file named `nvidia-a100`"):
        check(planted.rename(planted.with_name("nvidia-a100.json")))


@pytest.mark.parametrize(("measurement", "device"), [(GPU, None), (NOHELP, None), (CPU, None), (SIM, None)])
def test_nothing_is_wrong_with_what_is_founded(measurement: Measurement, device: str | None) -> None:
    name = device or slug(measurement.device.name)
    assert problems(evidence(measurement, device=name), name, PAIR) == ()
    VALIDATOR.validate(json.loads(write(evidence(measurement, device=name))))


FASTER = TimeResult(verdict="faster", baseline_us=1, speedup=ratio(1.02, 0.03))
SLOWER = TimeResult(verdict="slower", baseline_us=1, speedup=ratio(0.99, 0.03))


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({"time": FASTER}, "claims `faster` with an interval that includes 1"),
        ({"time": SLOWER, "verdict": Verdict(overall="slower")}, "claims `slower` with an interval that includes 1"),
        ({"time": None}, "claims `faster`, which its time does not say"),
        ({"protocol": None}, "claims `faster`, which its time does not say"),
        ({"verdict": Verdict(overall="slower")}, "claims `slower`, which its time does not say"),
        ({"verdict": Verdict(overall="saves-memory"), "memory": None}, "claims `saves-memory` without less of it"),
        (
            {"verdict": Verdict(overall="saves-memory"), "memory": MemoryResult(verdict="same", before=1, after=1)},
            "claims `saves-memory` without less of it",
        ),
        ({"verdict": Verdict(overall="fewer-syncs"), "counts": None}, "claims `fewer-syncs` without fewer of them"),
        (
            {"verdict": Verdict(overall="fewer-syncs"), "counts": {"after": {"syncs": 50}}},
            "claims `fewer-syncs` without fewer of them",
        ),
        ({"numerics": None}, "claims `faster` of code whose results were not found to be the same"),
        ({"numerics": {"verdict": "wrong"}}, "claims `faster` of code whose results were not found to be the same"),
        ({"subject": {"sha256_before": "c" * 64}}, "is stale: the pair has changed since; measure it again"),
        ({"subject": {"rule": "repeated-item"}}, "is of rule `repeated-item`, in a file of `item-in-train-loop`"),
        ({"device": {"name": "NVIDIA A100"}}, "is of device `NVIDIA A100`, in a file of `nvidia-h200`"),
        ({"provenance": {"created": "lately"}}, "was created at `lately`, which is no time in ISO 8601"),
        ({"device": {"capability": None}}, "says `cuda` without compute capability, memory and version of CUDA, which"),
        ({"software": {"cuda": None}}, "says `cuda` without compute capability, memory and version of CUDA, which"),
        ({"counts": {"source": "sim"}}, "says `cuda` with counts of the simulated device"),
        ({"protocol": {"metric": "cpu-time"}}, "says `cuda` with the time of the CPU"),
        ({"device": {"type": "cpu"}}, "says `cpu` with the compute capability or the clocks of a GPU"),
        ({"device": {"type": "sim"}}, "has a time on the simulated device, which has none"),
        ({"controls": {"handicap": ratio(1.0, -0.1)}}, "has a ratio that lies outside its interval, or not `n` log"),
    ],
)
def test_what_is_not_founded_is_named(parts: dict[str, Any], problem: str) -> None:
    found = problems(evidence(changed(GPU, **parts)), "nvidia-h200", PAIR)
    assert any(each.startswith("gpu, torch ") and f": {problem}" in each for each in found), found


@pytest.mark.parametrize("controls", [None, Controls(), Controls(handicap_seen=False)])
def test_no_difference_takes_a_run_that_could_see_one(controls: Controls | None) -> None:
    (found,) = problems(evidence(changed(NOHELP, controls=controls)), "nvidia-h200", PAIR)
    assert "did not see the planted handicap" in found


def test_a_file_as_a_whole() -> None:
    assert problems(evidence(), "nvidia-h200", PAIR) == ("holds no measurement",)
    assert problems(evidence(GPU, GPU), "nvidia-h200", PAIR) == ("holds a size twice for one version of torch",)
    sim = changed(SIM, device=Device(type="sim", name="NVIDIA H200"))
    assert problems(evidence(GPU, sim), "nvidia-h200", PAIR) == ("mixes types of devices",)


def test_the_published_schema_is_current() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    remedy = "write it anew: python -m json.tool, from `torchlint.evidence.schema()`"
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == schema(), remedy


def test_the_schema_refuses_what_reading_refuses() -> None:
    document = json.loads(write(evidence(GPU)))
    for part, key, value in (
        ("subject", "extra", 1),
        ("subject", "sha256_before", "xyz"),
        ("device", "type", "tpu"),
        ("verdict", "overall", "fast"),
    ):
        measurement = document["measurements"][0]
        bad = {**document, "measurements": [{**measurement, part: {**measurement[part], key: value}}]}
        assert list(VALIDATOR.iter_errors(bad))
        with pytest.raises(EvidenceError, match=r"here\.json: not evidence of torchlint: "):
            read(json.dumps(bad).encode(), "here.json")
    with pytest.raises(EvidenceError, match=r"here\.json"):
        read(b"{", "here.json")


def test_what_is_written_is_read() -> None:
    found = evidence(GPU, NOHELP)
    assert read(write(found), "") == found
    assert write(found).endswith(b"}\n")
    whole = changed(GPU, counts={"after": {"syncs": 1}})
    assert write(read(write(evidence(whole)), "")) == write(evidence(whole))
    with pytest.raises(EvidenceError, match="Expected"):
        write(evidence(changed(GPU, counts={"after": {"syncs": "1"}})))


def test_a_fresh_measurement_replaces_its_like() -> None:
    newer = changed(GPU, software={"torch": "2.12.0"})
    again = changed(GPU, verdict=Verdict(overall="inconclusive"))
    merged = merge(evidence(GPU), (NOHELP, newer, again))
    assert merged.measurements == (again, newer, NOHELP)


def test_a_changed_pair_makes_it_stale() -> None:
    assert not is_stale(GPU, PAIR)
    for name in PAIR:
        assert is_stale(GPU, {**PAIR, name: "c" * 64})


def test_digests_do_not_depend_on_marks() -> None:
    assert digest(b"a = 1  # <- rule\n") == digest(b"a = 1  # <- rule?\r\n") == digest(b"a = 1\n")
    assert digest(b"a = 1  # why\n") != digest(b"a = 1\n")


def test_digests_do_not_depend_on_line_endings() -> None:
    assert digest(b"a\r\nb\r\n") == digest(b"a\nb\n") != digest(b"a\nb")


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("NVIDIA H200", "nvidia-h200"),
        ("AMD EPYC 9654 96-Core", "amd-epyc-9654-96-core"),
        ("Intel(R) Xeon(R)", "intel-r-xeon-r"),
    ],
)
def test_slugs(name: str, shown: str) -> None:
    assert slug(name) == shown


def test_evidence_is_found_beside_the_pair() -> None:
    for rule in all_rules():
        found = [path for path in COMMITTED if path.parts[-3] == rule.module]
        assert len(evidence_of(rule)) == len(found)


def test_evidence_is_installed() -> None:
    """tests/test_packaging.py asks a wheel for all of it; the source distribution takes the folder whole."""
    assert "graft fixtures" in (ROOT / "MANIFEST.in").read_text(encoding="utf-8").splitlines()
    assert (files("torchlint") / SCHEMA.name).is_file()


def test_pages_are_written_from_evidence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rule = find("item-in-train-loop")
    page = tmp_path / rule.path
    page.parent.mkdir()
    page.write_bytes((ROOT / "rules" / rule.path).read_bytes())
    found = (evidence(changed(GPU, subject=pair(rule))),)
    monkeypatch.setattr("generate_pages.RULES", tmp_path)
    monkeypatch.setattr("generate_pages.all_rules", lambda: (rule,))
    monkeypatch.setattr("torchlint.evidence.evidence_of", lambda _: found)
    before = page.read_bytes()
    assert generate_pages(["--check"]) == 1
    assert capsys.readouterr().out.startswith("item_in_train_loop.md: ")
    assert page.read_bytes() == before
    assert generate_pages([]) == 0
    assert b"| `gpu` | 1.27x [1.24, 1.30], n 8 |" in page.read_bytes()
    assert generate_pages(["--check"]) == 0
