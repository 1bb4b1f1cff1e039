"""The slices of the first contact with a GPU: what they would run exists, fits its time, and comes home."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import msgspec
import pytest
from evidence_samples import GPU, changed

from torchlint.evidence import Conditions
from torchlint.registry import find
from torchlint.verify.workload import workload

TOOLS = Path(__file__).parents[1] / "tools" / "first_gpu"
sys.path.insert(0, str(TOOLS))

import look  # noqa: E402 - beside the script that it belongs to
import prepare  # noqa: E402 - beside the script that it belongs to

LONGEST_S = 600  # that one command may take
TOO_HEAVY = {"TL406", "TL608", "TL219", "TL652", "TL905"}


def dry(name: str) -> tuple[int, str]:
    done = subprocess.run(
        ["bash", str(TOOLS / "run.sh"), name],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "DRY": "1"},
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
@pytest.mark.parametrize("name", "1234567")
def test_a_slice_fits_its_time_and_measures_what_one_gpu_can(name: str) -> None:
    status, said = dry(name)
    assert status == 0, said
    seconds = [int(each) for each in re.findall(r"^== at most (\d+) s:", said, re.MULTILINE)]
    assert seconds
    assert sum(seconds) <= LONGEST_S
    for limit, budget in re.findall(r"at most (\d+) s:.*--budget (\d+)s", said):
        assert int(budget) < int(limit)
    if "--rule ALL" in said:
        assert name == "3"
        assert all("--phase numerics,counts" in line for line in said.splitlines() if "--rule" in line), "none is timed"
        return
    codes = re.findall(r"--rule (\S+)", said)
    assert not TOO_HEAVY & set(codes)
    assert all(workload(find(code)).devices == 1 for code in codes)
    for file in re.findall(r"(?:tools|tests)/\S+\.py", said):
        assert (TOOLS.parents[1] / file).is_file()


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
def test_the_slice_of_all_pairs_takes_as_long_as_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BUDGET", "330")
    status, said = dry("3")
    assert status == 0, said
    assert "at most 350 s: " in said
    assert "--budget 330s" in said


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
def test_no_other_slice_runs_anything() -> None:
    status, said = dry("8")
    assert (status, said) == (2, "no slice is called 8\n")


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
@pytest.mark.parametrize("name", "1234567")
def test_without_a_gpu_a_slice_runs_what_needs_none(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEVICE", "cpu")
    status, said = dry(name)
    assert status == 0, said
    runs = re.findall(r"^== at most .*", said, re.MULTILINE)
    assert runs
    assert not [run for run in runs if "nvidia-smi" in run or "probe.py" in run]
    verifying = [run for run in runs if " verify " in run]
    assert all("--device cpu" in run for run in verifying)
    assert not [run for run in verifying if "--size gpu" in run or "--size nohelp" in run]


def gpu(**parts: object) -> dict[str, Any]:
    """A measurement that nothing is wrong with, as JSON, with parts replaced."""
    return dict(msgspec.to_builtins(changed(GPU, **parts)))


@pytest.mark.parametrize(
    ("measured", "failing"),
    [
        (gpu(), []),
        (gpu(numerics={"verdict": "wrong"}, verdict={"overall": "wrong-result"}), ["numerics wrong"]),
        (gpu(verdict={"overall": "suspicious"}), ["verdict suspicious"]),
        (gpu(counts=None, verdict={"reason": "not counted: lost"}), ["not counted: lost"]),
        (gpu(counts={"before": {"launches": 0}}), ["0 launches"]),
        (gpu(controls={"handicap_seen": False}), ["the delay of 5 % is seen"]),
        (gpu(conditions=Conditions(cpu="", slowed=())), []),
        (gpu(conditions=Conditions(cpu="", slowed=("power limit",))), ["held back by power limit"]),
    ],
)
def test_what_a_slice_has_measured_is_looked_at(
    measured: dict[str, Any], failing: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [what for passed, what in look.checks(measured) if not passed] == failing
    assert look.main(tmp_path) == 1, "nothing was measured"
    file = tmp_path / "repeated_item" / "evidence" / "nvidia-h200.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"measurements": [measured]}), encoding="utf-8")
    assert look.main(tmp_path) == (1 if failing else 0)
    assert capsys.readouterr().out.count("FAIL") == len(failing)


def looked(**parts: object) -> dict[str, Any]:
    """What a journal has of a size that is to be timed."""
    found = {
        "numerics": {"verdict": "same"},
        "counted": True,
        "memory": [2, 1],
        "counts": [{"launches": 3.0}, {"launches": 3.0}],
        "uncounted": "",
    }
    return {"looked": {**found, **parts}, "seconds_of_looks": 40.0}


@pytest.mark.parametrize(
    ("entry", "failing"),
    [
        (looked(), []),
        (looked(numerics={"verdict": "not-checked"}), ["numerics not-checked"]),
        (looked(counts=None, uncounted="lost"), ["not counted: lost"]),
        (looked(counts=[{"launches": 0.0}, {"launches": 0.0}]), ["0 launches"]),
        (looked(counted=True, counts=None, memory=None), []),
    ],
)
def test_what_is_still_to_be_timed_is_looked_at(
    entry: dict[str, Any], failing: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert [what for passed, what in look.looked(entry) if not passed] == failing
    (tmp_path / ".measuring-nvidia-h200.json").write_text(
        json.dumps({"repeated-item gpu": entry, "repeated-item nohelp": {"seconds": 3.0}}), encoding="utf-8"
    )
    assert look.main(tmp_path) == (1 if failing else 0)
    said = capsys.readouterr().out
    assert said.count("FAIL") == len(failing)
    assert "repeated-item, gpu: numerics" in said
    assert "0 files of evidence, 1 sizes to be timed" in said


def packed(folder: Path, *names: str) -> Path:
    archive = folder / "ev.tgz"
    with tarfile.open(archive, "w:gz") as made:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size = 2
            made.addfile(member, io.BytesIO(b"{}"))
    return archive


def test_evidence_comes_home_beside_its_pair(tmp_path: Path) -> None:
    (tmp_path / "fixtures" / "repeated_item").mkdir(parents=True)
    name = "repeated_item/evidence/nvidia-h200.json"
    archive = packed(tmp_path, f"ev/{name}", "ev/.measuring-nvidia-h200.json")
    assert prepare.home(archive, tmp_path / "fixtures") == [name]
    assert (tmp_path / "fixtures" / name).read_bytes() == b"{}"


@pytest.mark.parametrize(
    "name", ["ev/../x/evidence/a.json", "ev/unknown/evidence/a.json", "other.json", "ev/repeated_item/a.json"]
)
def test_nothing_else_is_unpacked(tmp_path: Path, name: str) -> None:
    (tmp_path / "fixtures" / "repeated_item").mkdir(parents=True)
    (tmp_path / "x").mkdir()
    with pytest.raises(ValueError, match="is no evidence of a pair"):
        prepare.home(packed(tmp_path, name), tmp_path / "fixtures")
