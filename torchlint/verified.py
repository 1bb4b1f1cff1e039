"""What `torchlint verify` last found out about a line: kept in the cache folder, for whoever shows findings.

One JSON file per project, behind a seal that only this user's key makes. What cannot be read was never there, and
losing it costs nothing but a measurement.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import msgspec

from torchlint import userfolder
from torchlint.cache import prepare
from torchlint.evidence import Overall
from torchlint.owned import opened
from torchlint.owned import read as read_own
from torchlint.report.evidence import VERDICTS, times
from torchlint.report.text import visible
from torchlint.source import SourceFile

_KEPT = 2000
_LONGEST = 1 << 24  # bytes; 2,000 records are a tenth of it
_DIFFERENT = ("faster", "slower")

_Positive = Annotated[float, msgspec.Meta(gt=0)]


@dataclass(frozen=True, slots=True)
class Speedup:
    """The time before over the time after, with its interval, from `n` replicates."""

    ratio: _Positive
    lo: _Positive
    hi: _Positive
    n: int


@dataclass(frozen=True, slots=True)
class Verified:
    """A fix that was measured in its program.

    `path` is as `relative` has it; `line` and `alike` are as `place` has them. `fixes` of the same rule in the same
    file were measured as one. There is no `speedup` where the verdict is none about time, or rests on other fixes;
    `why` then says more. `date` is ISO 8601, `digest` is of the whole file as it was measured.
    """

    rule: str
    code: str
    path: str
    line: str
    alike: int
    verdict: Overall
    device_type: Literal["cuda", "cpu", "sim", "rocm", "mps", "xpu"]
    device: str
    torch: str
    date: str
    digest: str
    fixes: int = 1
    why: str = ""
    speedup: Speedup | None = None


@dataclass(frozen=True, slots=True)
class _Document:
    records: tuple[Verified, ...]
    schema: Literal["torchlint.verified/1"] = "torchlint.verified/1"


def read(folder: Path, project: Path) -> tuple[Verified, ...]:
    """What a cache folder holds of the project in this folder, oldest first."""
    key = userfolder.key()
    return () if key is None else _read(_file(folder, project), key)


def keep(folder: Path | None, project: Path, records: Iterable[Verified]) -> None:
    """Add to what a cache folder holds of a project, in the place of what it held of the same lines. Raises `OSError`.

    A folder that torchlint did not make stays as it is, which is an `OSError` too.
    """
    key = prepare(folder)
    assert folder is not None
    file = _file(folder, project)
    known = {_key(record): record for record in _read(file, key)}
    for record in filter(_is_text, records):
        known.pop(_key(record), None)  # the newest stands last
        known[_key(record)] = record
    kept = tuple(known.values())[-_KEPT:]
    _replace(file, _seal(key).closed(msgspec.json.encode(_Document(kept)), file.name.encode()))


def lookup(records: Sequence[Verified], path: str, rule: str, line: str, alike: int) -> Verified | None:
    """What is known of a line, by its text and not by its number, so that edits elsewhere lose nothing."""
    wanted = (path, rule, line, alike)
    return next((record for record in reversed(records) if _key(record) == wanted), None)


def place(source: SourceFile, row: int) -> tuple[str, int]:
    """The text of a 1-based row without the blanks around it, and how many rows above it hold the same."""
    text = source.line(row).strip()
    return text, sum(source.line(above).strip() == text for above in range(1, row))


def relative(path: Path, project: Path) -> str:
    """A path as the records of a project have it: from the project's folder, with POSIX separators."""
    try:
        return Path(os.path.relpath(path.resolve(), project.resolve())).as_posix()
    except ValueError:  # another drive
        return path.as_posix()


def words(verified: Verified) -> str:
    """`verified on NVIDIA H200, torch 2.13.0, 2026-11-22: 1.27x faster [1.24, 1.30], n 8`."""
    verb = "counted" if verified.device_type == "sim" else "verified"
    torch = f"torch {verified.torch.partition('+')[0]}" if verified.torch else ""
    where = ", ".join(filter(None, (verified.device, torch, verified.date)))
    together = f" ({verified.fixes} fixes of the rule in this file together)" if verified.fixes > 1 else ""
    return visible(f"{verb} on {where}: {_result(verified)}{together}")


def _file(folder: Path, project: Path) -> Path:
    """Its name is one of those that `torchlint.cache.clean` removes."""
    return folder / f"verified-{userfolder.place_digest(project)}.json"


def _seal(key: bytes) -> userfolder.Seal:
    return userfolder.Seal(key, "verified")


def _read(file: Path, key: bytes) -> tuple[Verified, ...]:
    content = _seal(key).opened(read_own(file, _LONGEST) or b"", file.name.encode())
    try:
        return msgspec.json.decode(content or b"", type=_Document).records
    except msgspec.DecodeError:
        return ()


def _result(verified: Verified) -> str:
    said = VERDICTS[verified.verdict]
    found = verified.speedup
    if found is not None:
        said = times(found.ratio) if verified.verdict in _DIFFERENT else said
        low, high = (found.lo, found.hi) if verified.verdict != "slower" else (1 / found.hi, 1 / found.lo)
        return f"{said} [{low:.2f}, {high:.2f}], n {found.n}"
    if verified.why.startswith(said):
        return verified.why
    return f"{said}: {verified.why}" if verified.why else said


def _key(record: Verified) -> tuple[str, str, str, int]:
    return record.path, record.rule, record.line, record.alike


def _is_text(record: Verified) -> bool:
    """A name of a file may be bytes that are no text, and then has no place in JSON."""
    try:
        record.path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _replace(path: Path, content: bytes) -> None:
    """Whoever reads the file finds what was there or what is new, wholly."""
    temporary = path.with_name(f".{path.name}-{os.getpid()}-{os.urandom(4).hex()}.tmp")
    try:
        with os.fdopen(opened(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), "wb") as file:
            file.write(content)
        temporary.replace(path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
