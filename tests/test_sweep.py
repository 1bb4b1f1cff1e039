"""Each file is linted once, read only if it has to be, and one file's trouble is not another's."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import libcst as cst
import pytest

from torchlint import engine, pool, regular, sweep
from torchlint.config import Configs, Overrides
from torchlint.discover import Found
from torchlint.finding import Applicability
from torchlint.progress import Progress
from torchlint.settings import Settings
from torchlint.sweep import Means, Sweep, Swept, may_concern
from torchlint.syntax import parsing

SLOW = b"import torch\n\n\ndef mask(size):  # torchlint: hot[per-batch]\n    return torch.zeros(size, size).cuda()\n"
FAST = SLOW.replace(b"size).cuda()", b'size, device="cuda")')
PLAIN = b"print(1)\n"
LONG_AGO = 1_600_000_000


@pytest.fixture(params=["few", "many"])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Whether the files count as few, which are read outright, or as many, whose stamps are looked up."""
    monkeypatch.setattr(sweep, "FEW", 0 if request.param == "many" else 16)
    return str(request.param)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    for name, data in (("slow.py", SLOW), ("fast.py", FAST), ("plain.py", PLAIN)):
        (folder / name).write_bytes(data)
        os.utime(folder / name, (LONG_AGO, LONG_AGO))
    return folder


def swept(
    project: Path, *, cache: bool = True, threshold: Applicability | None = None, **overrides: tuple[str, ...]
) -> tuple[dict[str, Swept], Progress]:
    configs = Configs(Overrides(**overrides), project)  # type: ignore[arg-type]
    files = [Found(path, path.name) for path in sorted(project.glob("*.py"))]
    progress = Progress(len(files), None)
    means = Means((lambda: project / "cache") if cache else None, threshold, 1)
    return {one.file.shown: one for one in Sweep(files, configs, project, means, progress)}, progress


def codes(found: dict[str, Swept]) -> dict[str, list[str]]:
    return {
        shown: [finding.code for finding in one.result.findings]
        + [diagnostic.code for diagnostic in one.result.diagnostics]
        for shown, one in found.items()
    }


def test_a_file_that_is_told_of_its_callers_is_parsed_once(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "FEW", 0)
    parsed: list[str] = []
    parse = parsing.parse

    def noted(text: str) -> cst.Module:
        parsed.append(text)
        return parse(text)

    monkeypatch.setattr(parsing, "parse", noted)
    others = [f"other{i}" for i in range(6)]  # more than are remembered in any case
    texts = {
        "maker": "import torch\n\n\ndef make(size):\n    return torch.zeros(size, size).cuda()\n",
        **{other: f"import torch\nimport maker\n{other} = torch.ones(3).cuda()\n" for other in others},
        "main": "import torch\nfrom maker import make\n"
        + "".join(f"import {other}\n" for other in others)
        + "for batch in torch.utils.data.DataLoader(range(9)):\n    make(3)\n",
    }
    for name, text in texts.items():
        (project / f"{name}.py").write_text(text)
    found, _ = swept(project, cache=False)
    assert "TL201" in codes(found)["maker.py"]
    assert found["maker.py"].facts
    assert parsed.count(texts["maker"]) == 1
    assert not engine._kept  # noqa: SLF001 - nobody else is to know


@pytest.mark.usefixtures("size")
def test_only_files_with_something_to_say_are_named(project: Path) -> None:
    found, progress = swept(project)
    assert codes(found) == {"slow.py": ["TL201"]}
    assert found["slow.py"].data == SLOW
    assert found["slow.py"].fixed is None
    assert (progress.linted, progress.known) == (2, 1)


@pytest.mark.usefixtures("size")
def test_what_is_known_is_not_linted_again(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, _ = swept(project)
    monkeypatch.delattr(pool, "work")
    second, progress = swept(project)
    assert second == first
    assert (progress.linted, progress.known) == (0, 3)


def test_files_that_did_not_change_and_hold_nothing_are_not_read(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep, "FEW", 0)
    swept(project)
    read: list[str] = []
    read_file = regular.read

    def reading(path: Path) -> bytes:
        if path.parent == project:
            read.append(path.name)
        return read_file(path)

    monkeypatch.setattr(regular, "read", reading)
    found, _ = swept(project)
    assert codes(found) == {"slow.py": ["TL201"]}
    assert read == ["slow.py"]


def test_few_files_without_torch_do_not_even_make_a_cache(project: Path) -> None:
    (project / "slow.py").unlink()
    (project / "fast.py").unlink()
    assert swept(project)[0] == {}
    assert not (project / "cache").exists()


@pytest.mark.usefixtures("size")
def test_a_file_with_new_times_and_the_same_content_is_known(project: Path) -> None:
    swept(project)
    for path in project.glob("*.py"):
        os.utime(path, (LONG_AGO + 60, LONG_AGO + 60))
    found, progress = swept(project)
    assert codes(found) == {"slow.py": ["TL201"]}
    assert progress.linted == 0


@pytest.mark.usefixtures("size")
def test_a_content_is_known_under_another_name(project: Path) -> None:
    swept(project)
    (project / "slow.py").rename(project / "moved.py")
    found, progress = swept(project)
    assert codes(found) == {"moved.py": ["TL201"]}
    assert progress.linted == 0


@pytest.mark.usefixtures("size")
def test_a_change_of_neither_size_nor_time_of_modification_is_seen(project: Path) -> None:
    swept(project)
    changed = SLOW.replace(b"zeros", b"items")
    assert len(changed) == len(SLOW)
    (project / "slow.py").write_bytes(changed)
    os.utime(project / "slow.py", (LONG_AGO, LONG_AGO))
    assert swept(project)[0] == {}


@pytest.mark.usefixtures("size")
def test_other_settings_are_another_question(project: Path) -> None:
    swept(project)
    assert swept(project, ignore=("TL201",))[0] == {}
    assert codes(swept(project)[0]) == {"slow.py": ["TL201"]}


@pytest.mark.usefixtures("size")
def test_without_a_cache_all_is_linted_each_time(project: Path) -> None:
    swept(project, cache=False)
    _, progress = swept(project, cache=False)
    assert progress.linted == 2
    assert not (project / "cache").exists()


@pytest.mark.usefixtures("size")
def test_a_defect_is_not_remembered(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(pool, "lint_and_answer", fail)
        assert codes(swept(project)[0]) == {"slow.py": ["E000"], "fast.py": ["E000"]}
    assert codes(swept(project)[0]) == {"slow.py": ["TL201"]}


@pytest.mark.usefixtures("size")
def test_a_syntax_error_is_remembered(project: Path) -> None:
    (project / "bad.py").write_bytes(b"import torch\ntorch.zeros(3).cuda(\n")
    expected = {"slow.py": ["TL201"], "bad.py": ["E999"]}
    assert codes(swept(project)[0]) == expected
    found, progress = swept(project)
    assert codes(found) == expected
    assert progress.linted == 0


@pytest.mark.usefixtures("size")
def test_a_known_finding_is_fixed_when_that_is_asked(project: Path) -> None:
    swept(project)
    found, _ = swept(project, threshold=Applicability.SAFE)
    assert found["slow.py"].fixed is not None
    assert found["slow.py"].fixed.text.encode() == FAST


def vanish(path: Path) -> None:
    path.unlink()


def become_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.usefixtures("size")
@pytest.mark.parametrize("happens", [vanish, become_a_folder])
def test_a_file_that_cannot_be_read_costs_no_other(
    project: Path, monkeypatch: pytest.MonkeyPatch, happens: Callable[[Path], None]
) -> None:
    globbed = list(project.glob("*.py"))
    happens(project / "fast.py")
    monkeypatch.setattr(Path, "glob", lambda *_: iter(globbed))
    found, _ = swept(project)
    assert codes(found) == {"slow.py": ["TL201"], "fast.py": ["E902"]}


@pytest.mark.usefixtures("size")
def test_a_file_that_changes_after_it_was_looked_up_is_linted_as_it_is(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The finding in the cache belongs to another text: its spans must not be shown in this one."""
    swept(project)
    read_file = regular.read

    def reading(path: Path) -> bytes:
        return FAST + b"# new\n" if path.name == "slow.py" else read_file(path)

    monkeypatch.setattr(regular, "read", reading)
    assert swept(project)[0] == {}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"print(1)\n", False),
        (b"import torch\nprint(torch)\n", False),
        (SLOW, True),
        (b"def f(x): return x.zeros().cuda()\n", False),
        (b"x = 1  # torchlint: ignore[TL201]\n", True),
        (b"x = 1  # noqa: TL201\n", True),
        (b"x = 1  # NOQA:tl201\n", True),
        (b"x = 1  # noqa: E501\n", False),
    ],
)
def test_what_cannot_hold_anything_is_not_linted(data: bytes, expected: bool) -> None:  # noqa: FBT001 - as above
    settings = Settings(rules=("unused-ignore", "host-factory-then-move"))
    assert may_concern("a.py", data, lambda: settings, named=False) is expected
    assert may_concern("a.py", data, lambda: settings) is (expected or b".cuda()" in data)


def test_a_file_without_torch_does_not_ask_for_its_settings() -> None:
    def settings() -> Settings:
        raise AssertionError

    assert not may_concern("a.py", PLAIN, settings)
