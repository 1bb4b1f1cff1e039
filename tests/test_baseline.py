"""Findings that are accepted for now: known by their code, wherever it goes, and missed once they are gone."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from report_samples import finding, span

from torchlint import baseline, cli
from torchlint.baseline import Known
from torchlint.finding import Severity
from torchlint.source import SourceFile

SLOW = "import torch\n\n\ndef mask(size):  # torchlint: hot[per-batch]\n    return torch.zeros(size, size).cuda()\n"
FAST = SLOW.replace("size).cuda()", 'size, device="cuda")')
OTHER = SLOW.replace("mask", "other").replace("zeros", "ones")

Run = Callable[..., tuple[int, str, list[str]]]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("net.py", "sub/deep.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(SLOW)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(project: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """The status, what is reported as `path CODE`, and the lines beside the report."""
    del project

    def run(*arguments: str) -> tuple[int, str, list[str]]:
        status = cli.run(["check", "--output-format", "pylint", *arguments])
        out, err = capsys.readouterr()
        return status, out, err.splitlines()

    return run


def entries(path: Path) -> dict[str, list[dict[str, object]]]:
    return json.loads(path.read_text())["files"]  # type: ignore[no-any-return]


def test_what_is_in_the_baseline_is_not_reported_and_what_is_new_is(project: Path, run: Run) -> None:
    assert run("--write-baseline", "b.json") == (0, "", ["Wrote 2 findings of 2 files to b.json."])
    assert run("--baseline", "b.json") == (0, "", ["2 findings in b.json not shown."])
    (project / "net.py").write_text(SLOW + "\n\n" + OTHER)
    status, out, said = run("--baseline", "b.json")
    assert (status, said) == (1, ["2 findings in b.json not shown."])
    assert out.startswith("net.py:12: [TL201] `torch.ones`")
    assert len(out.splitlines()) == 1


def test_the_file_is_the_same_again_sorted_and_one_finding_to_a_line(project: Path, run: Run) -> None:
    (project / "net.py").write_text(SLOW + SLOW.replace("mask", "b") + "# é\n")
    run("--write-baseline", "b.json")
    text = (project / "b.json").read_text()
    assert text == (
        '{\n  "version": 1,\n  "files": {\n    "net.py": [\n'
        '      {"rule": "host-factory-then-move", "severity": "warning", "scope": "b", '
        '"line": "return torch.zeros(size, size).cuda()", "count": 1},\n'
        '      {"rule": "host-factory-then-move", "severity": "warning", "scope": "mask", '
        '"line": "return torch.zeros(size, size).cuda()", "count": 1}\n'
        '    ],\n    "sub/deep.py": [\n'
        '      {"rule": "host-factory-then-move", "severity": "warning", "scope": "mask", '
        '"line": "return torch.zeros(size, size).cuda()", "count": 1}\n'
        "    ]\n  }\n}\n"
    )
    run("--no-cache", "--jobs", "1", "--write-baseline", "b.json", "sub", "net.py")
    assert (project / "b.json").read_text() == text


def test_what_is_fixed_is_said_and_leaves_the_file_when_it_is_written_again(project: Path, run: Run) -> None:
    run("--write-baseline", "b.json")
    (project / "net.py").write_text(FAST)
    gone = "1 finding of b.json is gone: `--write-baseline b.json` removes it."
    assert run("--baseline", "b.json") == (0, "", ["1 finding in b.json not shown.", gone])
    (project / "sub/deep.py").unlink()
    assert run("--baseline", "b.json")[2] == ["2 findings of b.json are gone: `--write-baseline b.json` removes them."]
    assert run("--write-baseline", "b.json")[2] == ["Wrote 0 findings of 0 files to b.json (0 new, 2 gone)."]
    assert entries(project / "b.json") == {}


def test_what_was_not_looked_at_is_neither_gone_nor_lost(project: Path, run: Run) -> None:
    run("--write-baseline", "b.json")
    assert run("--baseline", "b.json", "sub") == (0, "", ["1 finding in b.json not shown."])
    assert run("--baseline", "b.json", "--select", "TL3")[2] == []
    (project / "net.py").write_text("import torch\ndef f(:\n")
    assert run("--baseline", "b.json")[2] == ["1 finding in b.json not shown."]
    (project / "net.py").write_text(SLOW)
    for arguments in (("sub",), ("--select", "TL3")):
        run("--write-baseline", "b.json", *arguments)
        assert set(entries(project / "b.json")) == {"net.py", "sub/deep.py"}


@pytest.mark.parametrize(
    "text",
    [
        f'"""New words above."""\n\n{SLOW}',
        SLOW.replace("    return", "    if size:\n        return"),
        SLOW.replace("def mask(size)", "def causal(size, *, dtype=None)"),
        SLOW.replace("size, size", "size,  size"),
    ],
    ids=["moved", "indented", "renamed function", "blanks"],
)
def test_a_finding_outlives_changes_around_it(project: Path, run: Run, text: str) -> None:
    run("--write-baseline", "b.json")
    (project / "net.py").write_text(text)
    assert run("--baseline", "b.json") == (0, "", ["2 findings in b.json not shown."])


def test_a_finding_goes_with_its_file(project: Path, run: Run) -> None:
    run("--write-baseline", "b.json")
    (project / "net.py").rename(project / "sub" / "model.py")
    assert run("--baseline", "b.json") == (0, "", ["2 findings in b.json not shown."])
    (project / "sub" / "model.py").rename(project / "sub" / "net.py")
    wrapped = (project / "sub" / "net.py").read_text().replace("mask", "main")
    (project / "sub" / "net.py").write_text(wrapped)
    assert run("--baseline", "b.json") == (0, "", ["2 findings in b.json not shown."])


def test_the_same_line_in_a_copy_or_in_another_function_is_new(project: Path, run: Run) -> None:
    run("--write-baseline", "b.json")
    (project / "copy.py").write_text(SLOW)
    assert run("--baseline", "b.json")[1].startswith("copy.py:5: [TL201]")
    (project / "copy.py").unlink()
    (project / "net.py").write_text(FAST + SLOW.replace("mask", "second").removeprefix("import torch\n"))
    status, out, said = run("--baseline", "b.json")
    assert (status, len(out.splitlines()), len(said)) == (1, 1, 2)


def test_a_note_that_becomes_a_warning_is_new(project: Path, run: Run) -> None:
    run("--write-baseline", "b.json", "--config", 'severity.TL201 = "note"')
    assert {entry["severity"] for found in entries(project / "b.json").values() for entry in found} == {"note"}
    assert run("--baseline", "b.json")[0] == 1
    run("--write-baseline", "b.json")
    assert run("--baseline", "b.json", "--config", 'severity.TL201 = "note"') == (
        0,
        "",
        ["2 findings in b.json not shown."],
    )


def test_one_entry_covers_one_finding(project: Path, run: Run) -> None:
    run("--write-baseline", "b.json")
    line = "    return torch.zeros(size, size).cuda()\n"
    (project / "net.py").write_text(SLOW.replace(line, f"    if size:\n    {line}{line}"))
    assert len(run("--baseline", "b.json")[1].splitlines()) == 1
    run("--write-baseline", "b.json")
    assert entries(project / "b.json")["net.py"][0]["count"] == 2
    assert run("--baseline", "b.json")[0] == 0


def test_errors_are_reported_though_there_is_a_baseline(project: Path, run: Run) -> None:
    run("--write-baseline", "b.json")
    (project / "bad.py").write_text("import torch\ndef f(:\n")
    status, out, _ = run("--baseline", "b.json")
    assert (status, out.split(":")[0]) == (1, "bad.py")
    status, _, said = run("--write-baseline", "b.json")
    assert status == 1
    assert said[0].startswith("bad.py:2:")


def test_paths_start_at_the_folder_of_the_baseline(project: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    run("--write-baseline", "b.json")
    monkeypatch.chdir(project / "sub")
    assert run("--baseline", "../b.json", ".")[:2] == (0, "")
    assert run("--baseline", str(project / "b.json"), "../net.py")[:2] == (0, "")


@pytest.mark.parametrize("where", [".", "sub"])
def test_the_configuration_names_a_baseline_for_the_files_below_it(project: Path, run: Run, where: str) -> None:
    run("--write-baseline", f"{where}/b.json", where)
    (project / where / "torchlint.toml").write_text('baseline = "b.json"\n')
    expected = {".": "", "sub": "net.py"}[where]
    assert run()[1].partition(":")[0] == expected
    assert len(run("--isolated")[1].splitlines()) == 2
    assert run("--add-ignore")[2] == ["Added ignores for 2 findings in 2 files."]


def test_no_file_is_a_baseline_by_its_name(project: Path, run: Run) -> None:
    for name in ("baseline.json", "torchlint-baseline.json", ".torchlint-baseline.json"):
        run("--write-baseline", name)
    assert run()[0] == 1
    assert project.joinpath("baseline.json").exists()


def test_fixing_fixes_what_is_in_a_baseline_too(project: Path, run: Run) -> None:
    run("--write-baseline", "b.json")
    run("--fix", "--baseline", "b.json")
    assert (project / "net.py").read_text() == FAST


def test_standard_input_has_the_baseline_of_the_file_that_it_stands_for(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    cli.run(["check", "--write-baseline", "b.json"])
    capfd.readouterr()
    for name, status in (("net.py", 0), ("new.py", 1)):
        command = [sys.executable, "-m", "torchlint", "check", "--baseline", "b.json", "--stdin-filename", name, "-"]
        assert subprocess.run(command, input=SLOW.encode(), cwd=project, check=False).returncode == status


BAD = {
    "no such file": (None, "b.json: no such file; `torchlint check --write-baseline b.json` writes one"),
    "no JSON": ("{", "b.json: not a baseline that this torchlint reads: Input data was truncated"),
    "bytes": (b"\xff\xfe", "b.json: not a baseline"),
    "list": ("[]", "b.json: not a baseline that this torchlint reads: Expected `object`, got `array`"),
    "newer": ('{"version": 2, "files": {}}', "Invalid enum value 2 - at `$.version`"),
    "count": ('{"version": 1, "files": {"a": [{"rule": "x", "line": "", "count": 0}]}}', "`int` >= 1"),
    "unknown key": ('{"version": 1, "files": {}, "x": 1}', "unknown field `x`"),
    "deep": ('{"version": 1, "files": ' + "[" * 100_000, "not a baseline"),
    "large": (b" " * 20_000_001, "more than the 20 MB"),
}


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_one_line_and_status_2(project: Path, run: Run, name: str) -> None:
    content, message = BAD[name]
    if content is not None:
        (project / "b.json").write_bytes(content if isinstance(content, bytes) else content.encode())
    status, out, (line,) = run("--baseline", "b.json")
    assert (status, out) == (2, "")
    assert message in line
    assert len(line) < 300
    if content is not None:
        status, _, (line,) = run("--write-baseline", "b.json")
        assert status == 2
        assert line.endswith("; remove it, or name another file, to write a baseline")


def test_a_file_of_code_is_not_overwritten(project: Path, run: Run) -> None:
    assert run("--write-baseline", "net.py")[0] == 2
    assert (project / "net.py").read_text() == SLOW
    assert run("--write-baseline", "no/such/folder.json")[2] == [
        "error: no/such/folder.json: cannot write the baseline: no such file or directory"
    ]


@pytest.mark.parametrize(
    "path", ["../" * 50 + "etc/passwd", "/etc/passwd", "a\\u0000b", "x" * 5_000, "", ".", "\\u202e\\u001b[2J"]
)
def test_odd_paths_in_a_baseline_cost_nothing(project: Path, run: Run, path: str) -> None:
    entry = '{"rule": "host-factory-then-move", "line": "x", "scope": "\\u001b"}'
    (project / "b.json").write_text(f'{{"version": 1, "files": {{"{path}": [{entry}]}}}}')
    status, out, said = run("--baseline", "b.json")
    assert (status, len(out.splitlines())) == (1, 2)
    assert all(line.isprintable() for line in said)
    assert run("--write-baseline", "b.json")[0] == 0


def test_no_baseline_takes_long() -> None:
    """Whatever it holds: here notes of files that are gone, none of which covers any of so many warnings."""
    key = Known("new.py", "rule", Severity.WARNING, "f", "x.item()")
    known = {key._replace(path=f"gone{at}/new.py", severity=Severity.NOTE): 1 for at in range(100_000)}
    started = time.process_time()
    covered, left = baseline.match(known, [key] * 4_000, lambda _: False, lambda _: ())
    assert not any(covered)
    assert len(left) == len(known)
    assert time.process_time() - started < 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--baseline", "b", "--add-ignore"), "`--baseline` and `--add-ignore` cannot be given together"),
        (("--write-baseline", "b", "--diff"), "`--write-baseline` and `--diff` cannot be given together"),
        (("--write-baseline", "b", "-"), "`--write-baseline` needs files"),
    ],
)
def test_what_cannot_be_given_together(run: Run, arguments: tuple[str, ...], message: str) -> None:
    status, _, (line,) = run(*arguments)
    assert status == 2
    assert message in line


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\ndef f():\n    b\n\n    # c\n    d\ne\n", ["", "", "f", "f", "f", "f", "", ""]),
        ("class A:\n  async def f(\n    x,\n  ):\n    y\n", ["", "A", "A.f", "A.f", "A.f", "A.f"]),
        ("def f():\n\tx\r\n\tdef g():\r\n\t\ty\n", ["", "f", "f", "f.g", "f.g"]),
    ],
)
def test_scopes(text: str, expected: list[str]) -> None:
    source = SourceFile("a.py", text)
    assert baseline.scope_of_rows(text) == expected
    assert baseline.scopes(source) == set(expected)


def test_a_long_line_is_cut_and_still_told_from_another() -> None:
    lines = [f"x = {'a' * 500}{end}.item()" for end in "bc"]
    (one,), (other,) = (
        baseline.known("a.py", SourceFile("a.py", line), [finding(span(line, ".item()"))]) for line in lines
    )
    assert one.line != other.line
    assert len(one.line) < 200
