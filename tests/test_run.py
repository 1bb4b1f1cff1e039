"""An order is carried out: which files, what is done to them, what is reported where, with which exit status."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from torchlint import pool, run, userfolder
from torchlint.config import ConfigError, Overrides
from torchlint.fixer import fix
from torchlint.progress import Progress
from torchlint.run import Loudness, Order, OutputError, check

SLOW = "import torch\n\n\ndef mask(size):  # torchlint: hot[per-batch]\n    return torch.zeros(size, size).cuda()\n"
FAST = SLOW.replace("size).cuda()", 'size, device="cuda")')
# Its fix may change what is computed.
UNSAFE = "from torch import nn\n\nnet = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))\n"
PLAIN = "print(1)\n"
BROKEN = "import torch\ntorch.zeros(3).cuda(\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "plain.py").write_text(PLAIN)
    return tmp_path


def order(project: Path, *paths: str, **what: Any) -> Order:  # noqa: ANN401 - any field of it
    overrides = {name: what.pop(name) for name in tuple(what) if name in Overrides.__dataclass_fields__}
    base = Order(cwd=project, overrides=Overrides(**overrides), jobs=1)
    return base._replace(paths=paths or base.paths, **what)


Capture = pytest.CaptureFixture[str]


def test_findings_exit_with_1(project: Path, capsys: Capture) -> None:
    assert check(order(project, output_format="concise")) == 1
    out, err = capsys.readouterr()
    assert out.splitlines()[0].startswith("slow.py:5:12: TL201 [*] ")
    assert out.splitlines()[1:] == ["Found 1 finding.", "[*] 1 fixable with `--fix`."]
    assert err == ""


def test_nothing_found_exits_with_0(project: Path, capsys: Capture) -> None:
    assert check(order(project, "plain.py")) == 0
    assert capsys.readouterr().out == "All checks passed!\n"


def test_files_come_in_the_order_of_their_names(project: Path, capsys: Capture) -> None:
    for name in ("z.py", "a/b.py", "B.py"):
        (project / name).parent.mkdir(exist_ok=True)
        (project / name).write_text(SLOW)
    check(order(project, "slow.py", ".", output_format="concise", loudness=Loudness.QUIET))
    shown = [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()]
    assert shown == ["B.py", "a/b.py", "slow.py", "z.py"]


def test_a_missing_path_is_reported_and_the_others_are_checked(project: Path, capsys: Capture) -> None:
    assert check(order(project, "gone.py", "slow.py", output_format="concise", loudness=Loudness.QUIET)) == 1
    first, second = capsys.readouterr().out.splitlines()
    assert first == "gone.py:1:1: E902 no such file or directory"
    assert second.startswith("slow.py:5:12: TL201")


def test_no_files_is_a_warning(tmp_path: Path, capsys: Capture) -> None:
    assert check(order(tmp_path)) == 0
    out, err = capsys.readouterr()
    assert out == "All checks passed!\n"
    assert err == "warning: no Python files found under the given paths\n"


def test_the_exit_status_of_a_defect_is_2(project: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(pool, "lint_and_answer", fail)
    assert check(order(project, output_format="concise", exit_zero=True)) == 2
    assert "slow.py:1:1: E000 torchlint failed: ZeroDivisionError" in capsys.readouterr().out


@pytest.mark.parametrize("text", [SLOW, BROKEN])
def test_exit_zero(project: Path, text: str) -> None:
    (project / "slow.py").write_text(text)
    assert check(order(project)) == 1
    assert check(order(project, exit_zero=True)) == 0


# Fixing


def test_a_fix_is_written_and_exits_with_0(project: Path, capsys: Capture) -> None:
    assert check(order(project, fix=True)) == 0
    assert (project / "slow.py").read_text() == FAST
    assert capsys.readouterr().out == "Found 1 finding (1 fixed, 0 remaining).\n"
    assert check(order(project, fix=True)) == 0
    assert capsys.readouterr().out == "All checks passed!\n"


def test_what_remains_exits_with_1(project: Path, capsys: Capture) -> None:
    (project / "net.py").write_text(UNSAFE)
    assert check(order(project, fix=True, output_format="concise")) == 1
    assert (project / "net.py").read_text() == UNSAFE
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("net.py:3:21: TL501")
    assert lines[1:] == ["Found 2 findings (1 fixed, 1 remaining).", "1 more fixable with `--unsafe-fixes`."]


def test_unsafe_fixes_are_written_when_asked_for(project: Path) -> None:
    (project / "net.py").write_text(UNSAFE)
    assert check(order(project, fix=True, unsafe_fixes=True)) == 0
    assert "bias=False" in (project / "net.py").read_text()


def test_the_configuration_can_ask_for_fixes(project: Path) -> None:
    (project / "torchlint.toml").write_text("fix = true\n")
    assert check(order(project)) == 0
    assert (project / "slow.py").read_text() == FAST


def test_files_without_a_fix_are_not_touched(project: Path) -> None:
    (project / "net.py").write_text(UNSAFE)
    before = {name: touched(project / name) for name in ("net.py", "plain.py")}
    check(order(project, fix=True))
    assert {name: touched(project / name) for name in before} == before


def touched(path: Path) -> tuple[int, ...]:
    """What writing a file, or one in its place, would change: all but the time at which it was read last."""
    stat = path.stat()
    return stat.st_ino, stat.st_mode, stat.st_nlink, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns


@pytest.mark.parametrize("what", [{"fix": True}, {"diff": True}])
def test_exit_non_zero_on_fix(project: Path, what: dict[str, bool]) -> None:
    assert check(order(project, exit_non_zero_on_fix=True, **what)) == 1
    (project / "slow.py").write_text(FAST)
    assert check(order(project, exit_non_zero_on_fix=True, **what)) == 0


def test_a_difference_is_shown_and_not_written(project: Path, capsys: Capture) -> None:
    assert check(order(project, diff=True)) == 1
    out, err = capsys.readouterr()
    assert out.startswith("--- a/slow.py\n+++ b/slow.py\n@@ ")
    assert '\n+    return torch.zeros(size, size, device="cuda")\n' in out
    assert err == "Would fix 1 finding.\n"
    assert (project / "slow.py").read_text() == SLOW


def test_no_difference_exits_with_0_though_there_are_findings(project: Path, capsys: Capture) -> None:
    (project / "slow.py").write_text(UNSAFE)
    assert check(order(project, diff=True)) == 0
    assert capsys.readouterr() == ("", "No fixes (1 more with `--unsafe-fixes`).\n")


def test_a_difference_does_not_hide_errors(project: Path, capsys: Capture) -> None:
    (project / "bad.py").write_text(BROKEN)
    (project / "slow.py").write_text(FAST)
    assert check(order(project, diff=True)) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("bad.py:")
    assert "E999" in err


def test_fix_only_does_not_report_what_remains(project: Path, capsys: Capture) -> None:
    (project / "net.py").write_text(UNSAFE)
    assert check(order(project, fix_only=True)) == 0
    assert (project / "slow.py").read_text() == FAST
    assert capsys.readouterr() == ("", "Fixed 1 finding (1 more with `--unsafe-fixes`).\n")


def test_fix_only_reports_errors(project: Path, capsys: Capture) -> None:
    (project / "bad.py").write_text(BROKEN)
    assert check(order(project, fix_only=True, output_format="concise")) == 1
    assert "bad.py:2:20: E999 syntax error" in capsys.readouterr().out


@pytest.mark.parametrize("fix_only", [False, True])
def test_fixes_are_listed_once(project: Path, capsys: Capture, fix_only: bool) -> None:  # noqa: FBT001 - as above
    check(order(project, fix=True, show_fixes=True, fix_only=fix_only))
    out, err = capsys.readouterr()
    assert out.count("- slow.py:\n    1 \N{MULTIPLICATION SIGN} TL201 (host-factory-then-move)\n") == 1
    assert "slow.py" not in err


def test_a_file_that_changes_while_it_is_linted_is_not_written(
    project: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fix_slowly(*arguments: Any) -> Any:  # noqa: ANN401 - whatever it is
        (project / "slow.py").write_text(SLOW + "# a change by an editor\n")
        return fix(*arguments)

    monkeypatch.setattr(pool, "fix", fix_slowly)
    assert check(order(project, fix=True, output_format="concise", loudness=Loudness.QUIET)) == 1
    assert (project / "slow.py").read_text() == SLOW + "# a change by an editor\n"
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "slow.py:1:1: E902 changed while torchlint was working; not written"
    assert lines[1].startswith("slow.py:5:12: TL201")


# Ignores


def test_ignores_are_added_and_then_nothing_is_found(project: Path, capsys: Capture) -> None:
    assert check(order(project, add_ignore="legacy")) == 0
    assert capsys.readouterr() == ("", "Added ignores for 1 finding in 1 file.\n")
    assert (project / "slow.py").read_text().endswith("# torchlint: ignore[host-factory-then-move]  # legacy\n")
    assert check(order(project)) == 0


# Reports


def test_the_report_goes_to_a_file(project: Path, capsys: Capture) -> None:
    assert check(order(project, output_format="json", output_file="report.json")) == 1
    assert capsys.readouterr() == ("", "")
    (finding,) = json.loads((project / "report.json").read_text())
    assert (finding["filename"], finding["code"]) == ("slow.py", "TL201")


def test_a_report_that_cannot_be_written_is_an_error(project: Path) -> None:
    with pytest.raises(OutputError, match=r"^no/report\.json: cannot write the report: no such file or directory$"):
        check(order(project, output_file="no/report.json"))


def test_statistics(project: Path, capsys: Capture) -> None:
    assert check(order(project, statistics=True)) == 1
    assert capsys.readouterr().out.startswith("1\tTL201\t[*] host-factory-then-move\n")


def test_a_format_without_statistics_is_refused_before_anything_is_fixed(project: Path) -> None:
    with pytest.raises(OutputError, match="--statistics"):
        check(order(project, statistics=True, fix=True, output_format="sarif"))
    assert (project / "slow.py").read_text() == SLOW


def test_sarif_says_how_the_run_ends(project: Path, capsys: Capture) -> None:
    check(order(project, output_format="sarif"))
    document = json.loads(capsys.readouterr().out)
    assert document["runs"][0]["invocations"][0]["exitCode"] == 1


@pytest.mark.parametrize(
    ("loudness", "out", "err"),
    [
        (Loudness.SILENT, 0, 0),
        (Loudness.QUIET, 1, 0),
        (Loudness.NORMAL, 3, 0),
        (Loudness.VERBOSE, 3, 1),
    ],
)
def test_loudness(project: Path, capsys: Capture, loudness: Loudness, out: int, err: int) -> None:
    assert check(order(project, output_format="concise", loudness=loudness)) == 1
    printed = capsys.readouterr()
    assert (len(printed.out.splitlines()), len(printed.err.splitlines())) == (out, err)


def test_what_was_done_can_be_read(project: Path, capsys: Capture) -> None:
    (project / "torchlint.toml").write_text("")
    check(order(project, loudness=Loudness.VERBOSE))
    line = capsys.readouterr().err
    assert line.startswith("2 files, 1 linted, ")
    assert f"configuration: {project / 'torchlint.toml'}; cache: {userfolder.of_project(project)}" in line


def test_colours_are_for_terminals(project: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "CLICOLOR_FORCE", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    check(order(project))
    assert "\x1b[" not in capsys.readouterr().out
    check(order(project, color="always"))
    assert "\x1b[" in capsys.readouterr().out
    check(order(project, color="always", output_file="report.txt"))
    assert "\x1b[" in (project / "report.txt").read_text()
    monkeypatch.setenv("FORCE_COLOR", "1")
    check(order(project))
    assert "\x1b[" in capsys.readouterr().out
    check(order(project, color="never"))
    assert "\x1b[" not in capsys.readouterr().out
    check(order(project, output_file="report.txt"))
    assert "\x1b[" not in (project / "report.txt").read_text()


def test_files_are_listed_and_not_read(project: Path, capsys: Capture) -> None:
    (project / "broken.py").write_text(BROKEN)
    assert check(order(project, show_files=True, fix=True)) == 0
    assert capsys.readouterr().out == "broken.py\nplain.py\nslow.py\n"
    assert (project / "slow.py").read_text() == SLOW


def test_a_configuration_that_is_wrong_is_an_error(project: Path) -> None:
    (project / "torchlint.toml").write_text("slect = []\n")
    with pytest.raises(ConfigError, match="slect"):
        check(order(project))


def test_the_nearest_configuration_holds_for_each_file(project: Path, capsys: Capture) -> None:
    (project / "legacy").mkdir()
    (project / "legacy" / "slow.py").write_text(SLOW)
    (project / "legacy" / "torchlint.toml").write_text('ignore = ["TL201"]\n')
    check(order(project, output_format="concise", loudness=Loudness.QUIET))
    assert [line.partition(":")[0] for line in capsys.readouterr().out.splitlines()] == ["slow.py"]


# Standard input


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Callable[[str | bytes], None]:
    def feed(text: str | bytes) -> None:
        data = text.encode() if isinstance(text, str) else text
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return feed


Pipe = Callable[["str | bytes"], None]


def test_standard_input_is_checked(project: Path, capsys: Capture, pipe: Pipe) -> None:
    pipe(SLOW)
    assert check(order(project, "-", output_format="concise", stdin_filename="pkg/new.py")) == 1
    assert capsys.readouterr().out.startswith("pkg/new.py:5:12: TL201")
    pipe(SLOW)
    check(order(project, "-", output_format="concise"))
    assert capsys.readouterr().out.startswith("-:5:12: TL201")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_what_is_fixed_goes_to_standard_output(
    project: Path, capsysbinary: pytest.CaptureFixture[bytes], pipe: Pipe, newline: str
) -> None:
    pipe("\ufeff" + SLOW.replace("\n", newline))
    assert check(order(project, "-", fix=True)) == 0
    out, err = capsysbinary.readouterr()
    assert out == ("\ufeff" + FAST.replace("\n", newline)).encode()
    assert err == b"Found 1 finding (1 fixed, 0 remaining).\n"


@pytest.mark.parametrize("data", [PLAIN.encode(), BROKEN.encode(), SLOW.encode() + b"# \xff\n", b"", b"x\x00"])
def test_what_cannot_be_fixed_comes_out_as_it_went_in(
    project: Path, capsysbinary: pytest.CaptureFixture[bytes], pipe: Pipe, data: bytes
) -> None:
    pipe(data)
    check(order(project, "-", fix=True))
    assert capsysbinary.readouterr().out == data


def test_excluded_input_is_passed_on(project: Path, capsys: Capture, pipe: Pipe) -> None:
    (project / "torchlint.toml").write_text('extend-exclude = ["vendored"]\n')
    pipe(SLOW)
    what = {"stdin_filename": "vendored/a.py", "force_exclude": True, "fix": True}
    assert check(order(project, "-", **what)) == 0
    assert capsys.readouterr().out == SLOW


def test_the_difference_of_standard_input(project: Path, capsys: Capture, pipe: Pipe) -> None:
    pipe(SLOW)
    assert check(order(project, "-", diff=True, stdin_filename="new.py")) == 1
    assert capsys.readouterr().out.startswith("--- a/new.py\n+++ b/new.py\n")
    assert not (project / "new.py").exists()


# What is written to


class Broken(io.StringIO):
    """A stream whose reader is gone, or whose disk is full."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self.error = error

    def flush(self) -> None:
        raise self.error

    def fileno(self) -> int:
        raise OSError


def test_a_reader_who_has_enough_is_no_error(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Broken(BrokenPipeError()))
    assert check(order(project)) == 1


def test_a_full_disk_behind_standard_output_is_an_error(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", Broken(OSError(28, os.strerror(28))))
    with pytest.raises(OutputError, match="cannot write the output: no space left on device"):
        check(order(project))


def test_progress_is_for_a_terminal(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []

    class Watched(Progress):
        def __init__(self, total: int, stream: object) -> None:
            super().__init__(total, None)
            seen.append(stream is not None)

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(run, "Progress", Watched)
    check(order(project))
    monkeypatch.setattr(sys, "stderr", Terminal())
    check(order(project))
    check(order(project, loudness=Loudness.QUIET))
    assert seen == [False, True, False]


STEERING = SLOW + "# \x1b]0;owned\x07 \u202e\u2066\n"


@pytest.mark.parametrize("steers", [True, False], ids=["a terminal", "a pipe"])
def test_a_difference_steers_no_terminal_and_is_a_patch_elsewhere(
    project: Path, *, steers: bool, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    (project / "slow.py").write_text(STEERING, encoding="utf-8")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: steers, raising=False)
    assert check(order(project, diff=True)) == 1
    out, _ = capsys.readouterr()
    assert ("\x1b" not in out and "\x07" not in out and "\u202e" not in out) is steers
    assert (STEERING.splitlines()[-1] in out) is not steers


def test_a_difference_in_colours_holds_nothing_but_our_own(project: Path, capsys: Capture) -> None:
    (project / "slow.py").write_text(STEERING, encoding="utf-8")
    assert check(order(project, diff=True, color="always")) == 1
    out, _ = capsys.readouterr()
    assert "\x1b]" not in out
    assert "\u202e" not in out
