"""What was measured of a line is found again by the line's text, and no state of its file costs more than that."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from torchlint import userfolder, verified
from torchlint.cache import clean
from torchlint.source import SourceFile
from torchlint.verified import Speedup, Verified, keep, lookup, place, read, relative, words

PROJECT = Path("/home/me/project")
FASTER = Verified(
    rule="item-in-train-loop",
    code="TL301",
    path="src/train.py",
    line="total += loss.item()",
    alike=0,
    verdict="faster",
    device_type="cuda",
    device="NVIDIA H200",
    torch="2.13.0+cu130",
    date="2026-11-22",
    digest="00ff",
    speedup=Speedup(1.27, 1.24, 1.30, 8),
)


def found(folder: Path, record: Verified = FASTER) -> Verified | None:
    return lookup(read(folder, PROJECT), record.path, record.rule, record.line, record.alike)


def file_of(folder: Path) -> Path:
    """The file that is kept in the folder; it is there from now on."""
    keep(folder, PROJECT, [FASTER])
    (file,) = folder.glob("verified-*.json")
    return file


def sealed(file: Path, content: bytes) -> bytes:
    """What torchlint would have written."""
    key = userfolder.key()
    assert key is not None
    return userfolder.Seal(key, "verified").closed(content, file.name.encode())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "project" / ".torchlint_cache"


def test_what_was_kept_is_found(folder: Path) -> None:
    keep(folder, PROJECT, [FASTER])
    assert found(folder) == FASTER
    assert (folder / ".gitignore").read_text(encoding="utf-8") == "*\n"
    names = sorted(path.name for path in folder.iterdir())
    assert names == [".gitignore", "CACHEDIR.TAG", f"verified-{userfolder.place_digest(PROJECT)}.json"]


def test_what_another_project_kept_is_not_found(folder: Path) -> None:
    keep(folder, PROJECT, [FASTER])
    other = PROJECT.with_name("other")
    assert read(folder, other) == ()
    (folder / f"verified-{userfolder.place_digest(other)}.json").write_bytes(file_of(folder).read_bytes())
    assert read(folder, other) == (), "a file that was put in its place"


@pytest.mark.parametrize(
    "other",
    [
        {"path": "train.py"},
        {"rule": "item-in-eval-loop"},
        {"line": "total += loss.item()  # waits"},
        {"alike": 1},
    ],
)
def test_another_line_is_not_found(folder: Path, other: dict[str, object]) -> None:
    keep(folder, PROJECT, [FASTER])
    assert found(folder, replace(FASTER, **other)) is None  # type: ignore[arg-type]  # of the field


def test_the_newest_of_a_line_counts_and_others_stay(folder: Path) -> None:
    other, newer = replace(FASTER, alike=1), replace(FASTER, verdict="slower", date="2026-11-23")
    keep(folder, PROJECT, [FASTER, other])
    keep(folder, PROJECT, [newer])
    assert read(folder, PROJECT) == (other, newer)
    keep(folder, PROJECT, [other, FASTER, newer])
    assert found(folder) == newer


def test_the_oldest_are_forgotten(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verified, "_KEPT", 3)
    keep(folder, PROJECT, [replace(FASTER, alike=number) for number in range(3)])
    keep(folder, PROJECT, [FASTER, replace(FASTER, alike=3)])
    assert [record.alike for record in read(folder, PROJECT)] == [2, 0, 3]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[]",
        b'{"schema": "torchlint.verified/2", "records": []}',
        b'{"schema": "torchlint.verified/1", "records": [{"rule": "item-in-train-loop"}]}',
        b'{"schema": "torchlint.verified/1", "records": [',
    ],
)
def test_damage_means_that_nothing_is_known(folder: Path, content: bytes) -> None:
    file = file_of(folder)
    for damaged in (content, sealed(file, content)):
        file.write_bytes(damaged)
        assert read(folder, PROJECT) == ()
    assert read(folder, PROJECT) == ()
    keep(folder, PROJECT, [FASTER])
    assert read(folder, PROJECT) == (FASTER,)


@pytest.mark.parametrize(
    ("word", "damaged"), [('"faster"', '"fast"'), ("1.24", "0.0"), ('"cuda"', '"gpu"'), ('"alike":0', '"alike":"0"')]
)
def test_a_value_that_cannot_be_means_that_nothing_is_known(folder: Path, word: str, damaged: str) -> None:
    keep(folder, PROJECT, [FASTER])
    file = file_of(folder)
    before = file.read_bytes()
    file.write_bytes(sealed(file, before[16:]))
    assert file.read_bytes() == before
    assert word.encode() in before
    file.write_bytes(sealed(file, before[16:].replace(word.encode(), damaged.encode())))
    assert read(folder, PROJECT) == ()


def test_a_folder_in_the_place_of_the_file(folder: Path) -> None:
    file = file_of(folder)
    file.unlink()
    file.mkdir()
    assert read(folder, PROJECT) == ()
    with pytest.raises(OSError, match="directory"):
        keep(folder, PROJECT, [FASTER])
    assert not list(folder.glob("*.tmp")), "what was not finished is gone"


def test_a_name_that_is_no_text_costs_its_own_record_only(folder: Path) -> None:
    keep(folder, PROJECT, [replace(FASTER, path="caf\udce9.py"), FASTER])
    assert read(folder, PROJECT) == (FASTER,)


def test_clean_removes_it(folder: Path) -> None:
    keep(folder, PROJECT, [FASTER])
    assert clean(folder)
    assert not folder.exists()


def test_a_line_is_known_by_its_text_and_those_alike_above_it() -> None:
    source = SourceFile("train.py", "x.item()\r\n    y()\r\n    x.item()\r\n# x.item()\r\n\tx.item()")
    assert [place(source, row) for row in (1, 2, 3, 5)] == [
        ("x.item()", 0),
        ("y()", 0),
        ("x.item()", 1),
        ("x.item()", 2),
    ]


def test_paths_are_those_of_the_project(tmp_path: Path) -> None:
    assert relative(tmp_path / "src" / "train.py", tmp_path) == "src/train.py"
    assert relative(tmp_path / "train.py", tmp_path / "src") == "../train.py"


@pytest.mark.skipif(sys.platform == "win32", reason="links need a right there")
def test_a_path_through_a_link_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    through = tmp_path / "link"
    assert relative(through / "train.py", tmp_path / "real") == "train.py"
    assert relative(tmp_path / "real" / "train.py", through) == "train.py"


SAID = "verified on NVIDIA H200, torch 2.13.0, 2026-11-22: "


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (FASTER, f"{SAID}1.27x faster [1.24, 1.30], n 8"),
        (
            replace(FASTER, fixes=3),
            f"{SAID}1.27x faster [1.24, 1.30], n 8 (3 fixes of the rule in this file together)",
        ),
        (
            replace(FASTER, verdict="slower", speedup=Speedup(0.8, 0.75, 0.85, 4)),
            f"{SAID}1.25x slower [1.18, 1.33], n 4",
        ),
        (
            replace(FASTER, verdict="no-measurable-difference", speedup=Speedup(1.001, 0.996, 1.004, 16)),
            f"{SAID}no measurable difference [1.00, 1.00], n 16",
        ),
        (
            replace(FASTER, verdict="faster", speedup=None, why="faster (masked alone)"),
            f"{SAID}faster (masked alone)",
        ),
        (
            replace(FASTER, verdict="wrong-result", speedup=None, why="loss differs"),
            f"{SAID}wrong result: loss differs",
        ),
        (
            replace(FASTER, verdict="fewer-syncs", speedup=None, device_type="sim", device="Simulated CUDA device"),
            "counted on Simulated CUDA device, torch 2.13.0, 2026-11-22: fewer synchronizations",
        ),
        (replace(FASTER, torch=""), "verified on NVIDIA H200, 2026-11-22: 1.27x faster [1.24, 1.30], n 8"),
    ],
)
def test_words(record: Verified, said: str) -> None:
    assert words(record) == said
