"""A linted file is left, fixed or annotated, and what cannot be written is said and left."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from torchlint.discover import Found
from torchlint.finding import Diagnostic, Finding, Result, Span
from torchlint.fixer import Fixed
from torchlint.settle import Mode, Settled, settle
from torchlint.source import SourceFile
from torchlint.sweep import Swept

TEXT = "import torch\nx = torch.zeros(3).cuda()\n"
NEW = TEXT.replace("3).cuda()", '3, device="cuda")')
FINDING = Finding("host-factory-then-move", "TL201", Span(17, 38), "`torch.zeros` fills on the CPU")
REMAINING = Result((Finding("data-parallel", "TL701", Span(0, 6), "slow"),))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "train.py"


def swept(path: Path, data: bytes, text: str | None) -> Swept:
    """A file with a finding, on the disk, and what fixing makes of it."""
    path.write_bytes(data)
    fixed = None
    if text is not None:
        source = replace(SourceFile.from_bytes("train.py", data), text=text)
        fixed = Fixed(source, REMAINING, (("host-factory-then-move", 1),))
    return Swept(Found(path, "train.py"), data, Result((FINDING,)), fixed)


def assert_left(settled: Settled, path: Path, data: bytes) -> None:
    assert settled.before == settled.after
    assert not settled.is_changed
    assert path.read_bytes() == data


def test_a_check_changes_nothing(path: Path) -> None:
    settled = settle(swept(path, TEXT.encode(), NEW), Mode.CHECK, "", path)
    assert_left(settled, path, TEXT.encode())
    assert settled.after.result.findings == (FINDING,)
    assert settled.after.fixed == ()


def test_a_fix_is_written(path: Path) -> None:
    settled = settle(swept(path, TEXT.encode(), NEW), Mode.FIX, "", path)
    assert settled.is_changed
    assert path.read_bytes() == NEW.encode()
    assert settled.before.result.findings == (FINDING,)
    assert (settled.after.source.text, settled.after.result) == (NEW, REMAINING)
    assert settled.after.fixed == (("host-factory-then-move", 1),)


def test_a_difference_is_not_written(path: Path) -> None:
    settled = settle(swept(path, TEXT.encode(), NEW), Mode.DIFF, "", None)
    assert settled.is_changed
    assert path.read_bytes() == TEXT.encode()
    assert settled.after.fixed == (("host-factory-then-move", 1),)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (TEXT.replace("\n", "\r\n").encode(), NEW.replace("\n", "\r\n").encode()),
        (b"\xef\xbb\xbf" + TEXT.encode(), b"\xef\xbb\xbf" + NEW.encode()),
        (b"# coding: latin-1\n# \xe9\n" + TEXT.encode(), b"# coding: latin-1\n# \xe9\n" + NEW.encode()),
        (TEXT.encode()[:-1], NEW.encode()[:-1]),
    ],
    ids=["CRLF", "BOM", "latin-1", "no final newline"],
)
def test_the_encoding_stays(path: Path, before: bytes, after: bytes) -> None:
    encoding = "latin-1" if b"latin-1" in before else "utf-8-sig"
    settle(swept(path, before, after.decode(encoding)), Mode.FIX, "", path)
    assert path.read_bytes() == after


def test_a_fix_that_the_encoding_cannot_write_is_said(path: Path) -> None:
    data = b"# coding: latin-1\n" + TEXT.encode()
    settled = settle(swept(path, data, data.decode() + "# \N{GREEK SMALL LETTER MU}\n"), Mode.FIX, "", path)
    assert_left(settled, path, data)
    (diagnostic,) = settled.after.result.diagnostics
    assert diagnostic.code == "E902"
    assert diagnostic.message == "the change needs 'μ', which iso-8859-1 cannot write; not written"
    assert settled.after.result.findings == (FINDING,)


@pytest.mark.parametrize("mode", [Mode.FIX, Mode.IGNORE])
def test_a_file_that_changed_meanwhile_is_left(path: Path, mode: Mode) -> None:
    file = swept(path, TEXT.encode(), NEW)
    path.write_bytes(b"x = 1\n")
    settled = settle(file, mode, "", path)
    assert_left(settled, path, b"x = 1\n")
    (diagnostic,) = settled.after.result.diagnostics
    assert diagnostic == Diagnostic("E902", "io-error", "changed while torchlint was working; not written")


@pytest.mark.parametrize(("reason", "comment"), [("", ""), ("legacy", "  # legacy")])
def test_ignores_are_written_with_their_reason(path: Path, reason: str, comment: str) -> None:
    settled = settle(swept(path, TEXT.encode(), None), Mode.IGNORE, reason, path)
    assert settled.is_changed
    text = path.read_text()
    assert text == TEXT[:-1] + f"  # torchlint: ignore[host-factory-then-move]{comment}\n"
    assert settled.after.result == Result()


def test_where_nothing_is_found_nothing_is_ignored(path: Path) -> None:
    path.write_text(TEXT)
    settled = settle(Swept(Found(path, "train.py"), TEXT.encode(), Result()), Mode.IGNORE, "", path)
    assert_left(settled, path, TEXT.encode())


@pytest.mark.parametrize("mode", Mode)
def test_what_cannot_be_decoded_has_no_text(path: Path, mode: Mode) -> None:
    path.write_bytes(b"\xff")
    result = Result(diagnostics=(Diagnostic("E902", "io-error", "not utf-8"),))
    settled = settle(Swept(Found(path, "train.py"), b"\xff", result), mode, "", path)
    assert_left(settled, path, b"\xff")
    assert settled.after.source.text == ""
    assert settled.after.result == result
