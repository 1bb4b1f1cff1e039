"""A run over a program from its options to its exit status: over sessions whose processes are made up."""

from __future__ import annotations

import gzip
import json
import math
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from made_up import MadeUp

from torchlint import userfolder, verified
from torchlint.cache import digest
from torchlint.report.style import PLAIN
from torchlint.verified import words
from torchlint.verify import checks, proof, timing
from torchlint.verify.arms import Failure
from torchlint.verify.exercised import Means
from torchlint.verify.machine import CannotRunError, UnfitError
from torchlint.verify.progress import Progress
from torchlint.verify.session import TreeChangedError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from torchlint.verified import Verified
    from torchlint.verify.arms import Subject

TRAIN = """\
import torch


def noise(n: int):
    return torch.zeros(n).cuda()
"""
FIXED = 'torch.zeros(n, device="cuda")'
UNIT = "TL201 train.py:5"
FASTER = math.log(1.3)
OPTIONS: dict[str, Any] = {
    "path": "train.py", "entry": None, "arguments": (), "device": "cuda", "allow_write": (), "python": None,
    "select": None, "unsafe_fixes": None, "html": None, "synthetic_data": None, "output_format": "text",
    "cache_dir": None, "no_cache": False, "raw": None,
}  # fmt: skip


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs `prove` in a project of one file, over a session for which what it finds is given."""
    root = tmp_path / "project"
    root.mkdir()
    (root / "train.py").write_text(TRAIN, encoding="utf-8")
    monkeypatch.chdir(root)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(
        checks, "reference", lambda *_, to_end: checks.Reference("first", "again", "other", to_end=to_end)
    )

    def prove(
        *,
        apply: bool = False,
        meanwhile: Callable[[], object] = lambda: None,
        changed: str = "",
        **scripted: Any,  # noqa: ANN401
    ) -> int:
        options = OPTIONS | {key: scripted.pop(key) for key in list(scripted) if key in OPTIONS}

        @contextmanager
        def session(subject: Subject, note: Callable[[str], None]) -> Iterator[MadeUp]:
            note("a session begins")
            made_up = MadeUp(tmp_path, subject=subject, **({"lines": {("train.py", 5): 1}} | scripted))
            monkeypatch.setattr(checks, "check", made_up.check)
            monkeypatch.setattr(timing, "measure", made_up.measure)
            yield made_up
            meanwhile()
            if changed:
                raise TreeChangedError(changed)

        monkeypatch.setattr(proof, "session", session)
        progress, means = Progress(quiet=True, budget=None), Means(timing.Limits())
        return proof.prove(options, None, progress, means, "torchlint verify", PLAIN, apply=apply)  # type: ignore[arg-type]  # no clerk

    return prove


def text() -> str:
    return Path("train.py").read_text(encoding="utf-8")


def test_verify_writes_nothing(run: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(speed={UNIT: FASTER}) == 0
    assert "the kept fix: 1.30x faster" in capsys.readouterr().out
    assert text() == TRAIN


@pytest.mark.parametrize("first", [1, 30], ids=["at once", "late, in a program that ends"])
def test_what_is_proven_is_written(run: Callable[..., int], capsys: pytest.CaptureFixture[str], first: int) -> None:
    assert run(speed={UNIT: FASTER}, apply=True, lines={("train.py", 5): first}) == 0
    assert f"wrote train.py: {UNIT}" in capsys.readouterr().out
    assert FIXED in text()


@pytest.mark.parametrize(
    ("scripted", "status", "words"),
    [
        ({}, 0, "nothing was written: no fix was proven"),
        ({"speed": {UNIT: -FASTER}}, 1, "nothing was written: no fix was proven"),
        ({"speed": {UNIT: FASTER}, "verdicts": {UNIT: "wrong"}}, 1, "nothing was written: no fix was proven"),
        ({"speed": {UNIT: FASTER}, "verdicts": {UNIT: "not-checked"}}, 0, "nothing was written: no fix was proven"),
        ({"speed": {UNIT: FASTER}, "biased": True}, 4, "nothing was written: no time of this run can be believed"),
    ],
)
def test_what_is_not_proven_is_not_written(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str], scripted: dict[str, Any], status: int, words: str
) -> None:
    assert run(apply=True, **scripted) == status
    assert words in capsys.readouterr().out
    assert text() == TRAIN


def test_a_file_that_changes_behind_the_last_process(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    mine = TRAIN + "# mine\n"
    assert run(apply=True, speed={UNIT: FASTER}, meanwhile=lambda: Path("train.py").write_text(mine, "utf-8")) == 2
    assert "train.py: changed while torchlint was working; not written" in capsys.readouterr().out
    assert text() == mine


def test_a_tree_that_changes_while_it_is_measured(run: Callable[..., int]) -> None:
    changed = "\n".join(f"changed: file{number}.py" for number in range(12))
    with pytest.raises(UnfitError) as raised:
        run(apply=True, speed={UNIT: FASTER}, changed=changed)
    lines = str(raised.value).splitlines()
    assert lines[0] == "files changed while they were measured, so nothing can be said:"
    assert lines[1] == "  changed: file0.py"
    assert lines[-1] == "  and 2 more"
    assert text() == TRAIN


def test_json_and_html(run: Callable[..., int], capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    assert run(speed={UNIT: FASTER}, output_format="json", html=str(page)) == 0
    (report,) = json.loads(capsys.readouterr().out)["reports"]
    (row,) = report["rows"]
    assert (row["verdict"], row["action"], row["rule"]) == ("faster", "keep", "host-factory-then-move")
    assert FIXED in row["diff"]
    shown = page.read_text(encoding="utf-8")
    assert "1.30x faster" in shown
    assert report["conditions"]["CPU"] == "Made-up CPU"
    assert report["conditions"]["GPU busy"] == "1.00 ms of the 4.00 ms of a step"
    assert row["busy"] == {"before": 1000.0, "after": 500.0}
    for part in ("How the machine was", "null 1980 MHz", "clocks are not locked", "61 to 61 °C", "1.00 ms → 500 µs"):
        assert part in shown


def test_what_held_the_gpu_back_is_a_warning(run: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(speed={UNIT: FASTER}, slowed=frozenset({"power limit"})) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "warning: the GPU was held back while it was measured: power limit" in said
    assert "GPU busy" in said
    assert "-50.0 %" in said


def test_a_start_that_takes_longer_says_when_it_pays(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    """12 s more, and 4 ms a step of which a share of 1 - 1 / 1.3 is saved."""
    assert run(speed={UNIT: FASTER}, first_s=12.0) == 0
    assert "its first step takes 12 s longer, which 12,999 steps earn" in " ".join(capsys.readouterr().out.split())


def test_each_block_is_written_to_one_file(run: Callable[..., int], tmp_path: Path) -> None:
    file = tmp_path / "raw.json.gz"
    assert run(speed={UNIT: FASTER}, raw=str(file)) == 0
    head, first, *rest = [json.loads(line) for line in gzip.decompress(file.read_bytes()).splitlines()]
    assert head["schema"] == "torchlint.raw/1"
    assert (first["run"], first["entry"], first["metric"]) == (0, "train.py", "wall")
    assert len(first["ratios"]["handicap against null"]) == 4
    blocks = [line for line in rest if "arm" in line]
    assert {line["arm"] for line in blocks} >= {"null", "handicap", "all"}
    assert (
        blocks[0].items() >= {"run": 0, "replicate": 0, "inner": 10, "samples": [[2e6, 1e6, 0.0]], "mhz": 1980}.items()
    )
    before = file.read_bytes()
    assert run(speed={UNIT: FASTER}, raw=str(file)) == 0
    assert file.read_bytes() == before


TRACE = 'File "/usr/lib/python3/runpy.py", line 1\n  File "{root}/train.py", line 4\n  File "/site/torch/nn.py", line 9'


@pytest.mark.parametrize(
    ("failure", "words"),
    [
        (Failure("exception", "ValueError: bad", TRACE), "before any fix: ValueError: bad (train.py:4)"),
        (Failure("exception", "SyntaxError: bad (x.py, line 1)", TRACE), "SyntaxError: bad (x.py, line 1)"),
        (Failure("exception", "ModuleNotFoundError: No module named 'x'", ""), "\n  --python PROGRAM"),
        (Failure("timeout", "no answer within 300 s"), "\n  --steps N"),
        (Failure("ended", "the program ended without a step"), "\n  torchlint verify --entry module:function"),
        (
            Failure("ended", "the program ended after 2 steps, and more are needed"),
            "train.py is too short to be timed: the program ended after 2 steps",
        ),
    ],
)
def test_a_program_that_fails_as_it_is(
    run: Callable[..., int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, failure: Failure, words: str
) -> None:
    root = tmp_path / "project"
    failure = Failure(failure.kind, failure.reason, failure.trace.format(root=root))

    def fails(*_: object) -> None:
        raise timing.BaselineError(failure)

    monkeypatch.setattr("torchlint.verify.program.measure", fails)
    with pytest.raises(CannotRunError) as raised:
        run()
    assert words in str(raised.value)
    assert str(raised.value).startswith("train.py ")


def remembered(folder: str | None = None) -> Sequence[Verified]:
    project = Path.cwd()
    found = userfolder.of_project(project) if folder is None else Path(folder)
    assert found is not None
    return verified.read(found, project)


def test_what_is_found_out_is_remembered_for_the_line(run: Callable[..., int]) -> None:
    assert run(speed={UNIT: FASTER}) == 0
    (known,) = remembered()
    assert (known.rule, known.code, known.path) == ("host-factory-then-move", "TL201", "train.py")
    assert (known.line, known.alike) == ("return torch.zeros(n).cuda()", 0)
    assert known.digest == digest(TRAIN.encode()).hex()
    assert words(replace(known, speedup=None, date="")) == "verified on Made-up device, torch 2.13.0: faster"
    assert known.speedup is not None
    assert known.speedup.ratio == pytest.approx(1.3, abs=0.01)
    assert run() == 0
    assert [each.verdict for each in remembered()] == ["no-measurable-difference"], "the last one counts"


def test_what_is_proven_and_written_is_remembered_too(run: Callable[..., int]) -> None:
    assert run(speed={UNIT: FASTER}, apply=True) == 0
    assert FIXED in text()
    (known,) = remembered()
    assert known.line == "return torch.zeros(n).cuda()", "as it was when it was measured"


def test_fixes_that_were_measured_as_one_say_so(run: Callable[..., int]) -> None:
    twice = TRAIN + "\n\ndef more(n: int):\n    return torch.zeros(n).cuda()\n"
    Path("train.py").write_text(twice, encoding="utf-8")
    assert run(speed={UNIT: FASTER}) == 0
    assert [(each.alike, each.fixes) for each in remembered()] == [(0, 2), (1, 2)]


def test_a_gain_that_shows_only_beside_others_has_no_figure(run: Callable[..., int]) -> None:
    other = "TL201 other.py:5"
    Path("other.py").write_text(TRAIN, encoding="utf-8")
    lines = {("train.py", 5): 1, ("other.py", 5): 1}
    assert run(speed={f"{other}+{UNIT}": FASTER}, lines=lines) == 0
    assert {(each.path, each.verdict, each.speedup, each.why) for each in remembered()} == {
        ("train.py", "faster", None, "faster (masked alone)"),
        ("other.py", "faster", None, "faster (masked alone)"),
    }


@pytest.mark.parametrize(
    "scripted",
    [
        pytest.param({"speed": {UNIT: FASTER}, "biased": True}, id="the machine was not fit"),
        pytest.param({"replicates": 2}, id="no time was left"),
        pytest.param({"lines": {}}, id="the line does not run"),
        pytest.param({"speed": {UNIT: FASTER}, "no_cache": True}, id="not wanted"),
    ],
)
def test_what_says_nothing_of_a_line_is_not_remembered(run: Callable[..., int], scripted: dict[str, Any]) -> None:
    run(**scripted)
    assert remembered() == ()


def test_the_folder_is_that_of_the_configuration_of_the_file(run: Callable[..., int]) -> None:
    Path("pyproject.toml").write_text('[tool.torchlint]\ncache-dir = "kept"\n', encoding="utf-8")
    assert run(speed={UNIT: FASTER}) == 0
    assert [each.path for each in remembered("kept")] == ["train.py"]
    assert run(speed={UNIT: FASTER}, cache_dir="elsewhere") == 0
    assert len(remembered("elsewhere")) == 1
    assert remembered() == ()


def test_a_folder_that_cannot_be_written_costs_one_line(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    Path("taken").write_text("a file", encoding="utf-8")
    assert run(speed={UNIT: FASTER}, cache_dir="taken") == 0
    seen = capsys.readouterr()
    assert "the kept fix: 1.30x faster" in seen.out
    assert seen.err.startswith("warning: cannot remember in `")
    assert seen.err.count("\n") == 1
