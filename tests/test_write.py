"""A fixed file takes the old one's place wholly, or the old one stays."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from torchlint import write as writing
from torchlint.write import CHANGED, NotWrittenError, write

OLD, NEW = b"x = 1\r\n", b"x = 2\r\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "train.py"
    path.write_bytes(OLD)
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def assert_untouched(file: Path) -> None:
    assert file.read_bytes() == OLD
    assert names(file.parent) == [file.name]


def test_the_new_bytes_take_the_place_of_the_old(file: Path) -> None:
    write(file, OLD, NEW)
    assert file.read_bytes() == NEW
    assert names(file.parent) == [file.name]


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o755, 0o4755])
def test_mode_bits_stay(file: Path, mode: int) -> None:
    file.chmod(mode)
    write(file, OLD, NEW)
    assert stat.S_IMODE(file.stat().st_mode) == mode


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root gives files away")
def test_root_leaves_the_file_to_its_owner(file: Path) -> None:
    os.chown(file, 12345, 23456)
    file.chmod(0o4750)
    write(file, OLD, NEW)
    status = file.stat()
    assert (status.st_uid, status.st_gid, stat.S_IMODE(status.st_mode)) == (12345, 23456, 0o4750)


def test_a_link_stays_and_what_it_leads_to_is_replaced(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "links"
    folder.mkdir()
    link = folder / "link.py"
    link.symlink_to("../train.py")
    write(link, OLD, NEW)
    assert link.is_symlink()
    assert file.read_bytes() == NEW
    assert names(folder) == ["link.py"]


def test_a_file_that_changed_is_not_written(file: Path) -> None:
    file.write_bytes(b"x = 3\n")
    with pytest.raises(NotWrittenError, match=CHANGED):
        write(file, OLD, NEW)
    assert file.read_bytes() == b"x = 3\n"
    assert names(file.parent) == [file.name]


def test_a_change_in_the_last_moment_is_seen(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def change_meanwhile(_: int) -> None:
        file.write_bytes(b"x = 3\n")

    monkeypatch.setattr(os, "fsync", change_meanwhile)
    with pytest.raises(NotWrittenError, match=CHANGED):
        write(file, OLD, NEW)
    assert file.read_bytes() == b"x = 3\n"


def test_a_file_that_is_gone_is_not_made_again(file: Path) -> None:
    file.unlink()
    with pytest.raises(NotWrittenError, match="No such file"):
        write(file, OLD, NEW)
    assert names(file.parent) == []


def test_a_read_only_file_is_not_written_even_by_root(file: Path) -> None:
    file.chmod(0o444)
    with pytest.raises(NotWrittenError, match="read-only"):
        write(file, OLD, NEW)
    assert_untouched(file)


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root may write into any folder")
def test_a_read_only_folder_is_said(file: Path) -> None:
    file.parent.chmod(0o555)
    try:
        with pytest.raises(NotWrittenError, match="Permission denied"):
            write(file, OLD, NEW)
    finally:
        file.parent.chmod(0o755)
    assert_untouched(file)


@pytest.mark.parametrize("step", ["fsync", "chmod", "replace"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS, errno.EIO])
def test_whatever_step_fails_the_file_is_as_it_was(
    file: Path, monkeypatch: pytest.MonkeyPatch, step: str, number: int
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os if step == "fsync" else Path, step, fail)
    with pytest.raises(NotWrittenError) as caught:
        write(file, OLD, NEW)
    assert str(caught.value) == f"cannot write: {os.strerror(number)}; the file is as it was"
    assert_untouched(file)


def test_ctrl_c_removes_the_half_written_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write(file, OLD, NEW)
    assert_untouched(file)


def mount_of_one_megabyte(folder: Path) -> bool:
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="mounting a small disk takes root on Linux")
def test_a_full_disk_is_said(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    if not mount_of_one_megabyte(disk):
        pytest.skip("this system lets nobody mount")
    try:
        old = b"#" * 600_000
        (disk / "train.py").write_bytes(old)
        with pytest.raises(NotWrittenError, match="No space left on device"):
            write(disk / "train.py", old, b"!" * 600_000)
        assert (disk / "train.py").read_bytes() == old
        assert names(disk) == ["train.py"]
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no kill that cannot be caught")
def test_a_kill_at_any_moment_leaves_one_of_the_two_contents(file: Path) -> None:
    old, new = b"a" * 300_000, b"b" * 300_000
    file.write_bytes(old)
    code = (
        "import pathlib, sys\n"
        "from torchlint.write import write\n"
        "path, old, new = pathlib.Path(sys.argv[1]), b'a' * 300_000, b'b' * 300_000\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    write(path, old, new)\n"
        "    write(path, new, old)\n"
    )
    for delay in (0.0, 0.003, 0.011, 0.02, 0.033, 0.05):
        file.write_bytes(old)
        with subprocess.Popen([sys.executable, "-c", code, str(file)], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            time.sleep(delay)
            process.kill()
        assert file.read_bytes() in (old, new)


# What a run that was killed has left


def left(folder: Path, process: int) -> Path:
    path = folder / writing.temporary_name(process, "0123abcd")
    path.write_bytes(b"half a fi")
    writing.clear.cache_clear()
    return path


@pytest.fixture
def dead() -> int:
    """The number of a process that is no more."""
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not say whether a process lives")
def test_what_a_killed_run_left_is_removed_by_the_next(file: Path, dead: int) -> None:
    left(file.parent, dead)
    write(file, OLD, NEW)
    assert names(file.parent) == [file.name]


def test_what_a_living_run_holds_stays(file: Path) -> None:
    path = left(file.parent, os.getpid())
    write(file, OLD, NEW)
    assert path.exists()


@pytest.mark.parametrize("name", [".torchlint-{}-0123abcd.tmp", ".torchlint-{}-0123abcd000000000000.tmp"])
def test_what_came_with_the_tree_stays(file: Path, dead: int, name: str) -> None:
    """No name can be guessed without the user's key."""
    path = file.parent / name.format(dead)
    path.write_bytes(b"theirs")
    writing.clear.cache_clear()
    write(file, OLD, NEW)
    assert path.read_bytes() == b"theirs"


@pytest.mark.skipif(sys.platform == "win32", reason="links take a privilege on Windows")
def test_a_link_with_such_a_name_stays_and_is_not_followed(file: Path, dead: int) -> None:
    path = left(file.parent, dead)
    path.unlink()
    (file.parent / "other").write_bytes(b"theirs")
    path.symlink_to("other")
    write(file, OLD, NEW)
    assert path.is_symlink()
    assert (file.parent / "other").read_bytes() == b"theirs"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGKILL")
def test_a_kill_leaves_nothing_behind_for_long(file: Path) -> None:
    code = (
        "import os, signal, sys\n"
        "from pathlib import Path\n"
        "from torchlint import write\n"
        "os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)\n"
        f"write.write(Path(sys.argv[1]), {OLD!r}, {NEW!r})\n"
    )
    for _ in range(2):
        assert subprocess.run([sys.executable, "-c", code, str(file)], check=False).returncode == -signal.SIGKILL
        assert file.read_bytes() == OLD
        assert len(names(file.parent)) == 2
    writing.clear.cache_clear()
    write(file, OLD, NEW)
    assert names(file.parent) == [file.name]
