"""The command line: every option reaches the run, and what is wrong is said in one line."""

from __future__ import annotations

import gc
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import pytest

import torchlint as package
from torchlint import __main__, cli, registry, report, userfolder
from torchlint import run as run_module
from torchlint.options import SCHEMA_URL

SLOW = "import torch\n\n\ndef mask(size):  # torchlint: hot[per-batch]\n    return torch.zeros(size, size).cuda()\n"
FAST = SLOW.replace("size).cuda()", 'size, device="cuda")')
UNSAFE = "from torch import nn\n\nnet = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))\n"

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in, and an environment that says nothing."""
    for name in (*filter(lambda name: name.startswith("TORCHLINT_"), os.environ), "FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "net.py").write_text(UNSAFE)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def codes(capsys: Capture, *arguments: str) -> list[str]:
    """The codes that a concise check finds."""
    assert cli.run(["check", "--quiet", "--output-format", "concise", *arguments]) in (0, 1)
    return re.findall(r"^\S+: (\w+) ", capsys.readouterr().out, re.MULTILINE)


def watched(monkeypatch: pytest.MonkeyPatch) -> list[run_module.Order]:
    """The orders that commands give from now on, none of which is carried out."""
    orders: list[run_module.Order] = []

    def note(order: run_module.Order) -> int:
        orders.append(order)
        return 0

    monkeypatch.setattr(run_module, "check", note)
    return orders


def only_error(capsys: Capture) -> str:
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert line.startswith("error: ")
    return line.removeprefix("error: ")


# Selection


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), ["TL501", "TL201"]),
        (("--select", "TL2"), ["TL201"]),
        (("--select", "TL201,TL501"), ["TL501", "TL201"]),
        (("--select", "TL201", "--select", "bias-before-batchnorm"), ["TL501", "TL201"]),
        (("--select=ALL", "--ignore=TL5"), ["TL201"]),
        (("--ignore", "TL201, TL501"), []),
        (("--select", "TL3", "--extend-select", "TL201"), ["TL201"]),
        (("--per-file-ignores", "slow.py:TL2"), ["TL501"]),
        (("--per-file-ignores", "slow.py:TL2,net.py:ALL"), []),
        (("--exclude", "net.py"), ["TL201"]),
        (("--extend-exclude", "n*.py,s*.py"), []),
        (("--exclude", "net.py", "net.py"), ["TL501"]),
        (("--exclude", "net.py", "--force-exclude", "net.py"), []),
        (("--exclude", "net.py", "--force-exclude", "--no-force-exclude", "net.py"), ["TL501"]),
        (("--config", 'select = ["TL501"]'), ["TL501"]),
        (("--config", 'select = ["TL501"]', "--select", "TL2"), ["TL201"]),
        (("--config", 'exclude = ["net.py"]', "--config", 'ignore = ["TL2"]'), []),
    ],
)
def test_selection(capsys: Capture, arguments: tuple[str, ...], expected: list[str]) -> None:
    assert codes(capsys, *arguments) == expected


def test_gitignore(project: Path, capsys: Capture) -> None:
    (project / ".git").mkdir()
    (project / ".gitignore").write_text("net.py\n")
    assert codes(capsys) == ["TL201"]
    assert codes(capsys, "--no-respect-gitignore") == ["TL501", "TL201"]


def test_preview(monkeypatch: pytest.MonkeyPatch) -> None:
    orders = watched(monkeypatch)
    for arguments in ([], ["--preview"], ["--no-preview"]):
        assert cli.run(["check", *arguments]) == 0
    assert [order.overrides.preview for order in orders] == [None, True, False]


# Fixing


def test_fix_is_check_with_fix(project: Path) -> None:
    assert cli.run(["fix", "slow.py"]) == 0
    assert (project / "slow.py").read_text() == FAST
    (project / "slow.py").write_text(SLOW)
    assert cli.run(["check", "--fix", "slow.py"]) == 0
    assert (project / "slow.py").read_text() == FAST


def test_the_command_line_wins_over_the_configuration(project: Path) -> None:
    (project / "torchlint.toml").write_text("fix = true\nunsafe-fixes = true\n")
    assert cli.run(["check", "--no-fix"]) == 1
    assert (project / "slow.py").read_text() == SLOW
    assert cli.run(["check", "--no-unsafe-fixes"]) == 1
    assert (project / "slow.py").read_text() == FAST
    assert (project / "net.py").read_text() == UNSAFE
    assert cli.run(["check"]) == 0
    assert (project / "net.py").read_text() != UNSAFE


@pytest.mark.parametrize("command", ["check", "fix"])
def test_diff(project: Path, capsys: Capture, command: str) -> None:
    assert cli.run([command, "--diff", "--unsafe-fixes"]) == 1
    out = capsys.readouterr().out
    assert "--- a/net.py" in out
    assert "--- a/slow.py" in out
    assert (project / "slow.py").read_text() == SLOW


@pytest.mark.parametrize(
    ("arguments", "comment"),
    [
        (["--add-ignore", "slow.py"], ""),
        (["slow.py", "--add-ignore"], ""),
        (["--add-ignore=as in the paper", "slow.py"], "  # as in the paper"),
    ],
)
def test_add_ignore(project: Path, arguments: list[str], comment: str) -> None:
    assert cli.run(["check", *arguments]) == 0
    assert (project / "slow.py").read_text().endswith(f"# torchlint: ignore[host-factory-then-move]{comment}\n")


# Output


def test_the_formats_are_those_of_the_report() -> None:
    assert cli.FORMATS == report.FORMATS


@pytest.mark.parametrize("output_format", cli.FORMATS)
def test_every_format_can_be_chosen(capsys: Capture, output_format: str) -> None:
    assert cli.run(["check", "--output-format", output_format]) == 1
    assert "TL201" in capsys.readouterr().out


@pytest.mark.parametrize("flag", ["-o", "--output-file"])
def test_output_file(project: Path, flag: str) -> None:
    assert cli.run(["check", flag, "report.txt"]) == 1
    assert "TL201" in (project / "report.txt").read_text()


@pytest.mark.parametrize(
    ("flags", "lines"), [(["-s"], 0), (["--silent"], 0), (["-q"], 2), (["--quiet"], 2), (["-q", "-s"], 0), ([], 4)]
)
def test_loudness(capsys: Capture, flags: list[str], lines: int) -> None:
    assert cli.run(["check", "--output-format", "concise", *flags]) == 1
    assert len(capsys.readouterr().out.splitlines()) == lines


@pytest.mark.parametrize("flag", ["-e", "--exit-zero"])
def test_exit_zero(flag: str) -> None:
    assert cli.run(["check", flag]) == 0


def test_exit_non_zero_on_fix() -> None:
    assert cli.run(["fix", "slow.py", "--exit-non-zero-on-fix"]) == 1


def test_statistics_show_files_show_fixes_and_color(capsys: Capture) -> None:
    cli.run(["check", "--statistics", "--color", "never"])
    assert capsys.readouterr().out.startswith("1\tTL201\t[*] host-factory-then-move")
    cli.run(["check", "--show-files"])
    assert capsys.readouterr().out == "net.py\nslow.py\n"
    cli.run(["check", "--color=always", "slow.py"])
    assert "\x1b[" in capsys.readouterr().out
    cli.run(["fix", "--show-fixes", "slow.py"])
    assert "Fixed 1 finding:" in capsys.readouterr().out


@pytest.mark.skipif(sys.platform != "linux", reason="names that are no text are possible on Linux alone")
def test_groups_and_order(capsys: Capture) -> None:
    cli.run(["check", "--output-format", "concise", "--group-by", "rule"])
    out = capsys.readouterr().out
    assert out.index("TL201 host-factory-then-move (1 finding)") < out.index("TL501 bias-before-batchnorm (1 finding)")
    cli.run(
        ["check", "--output-format", "concise", "--quiet", "--sort", "impact", "--config", 'severity.TL501 = "note"']
    )
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == ["slow.py", "net.py"]
    for arguments, message in (
        (["--statistics"], "`--group-by` and `--statistics` cannot be given together"),
        (["--output-format", "json"], "`--group-by` writes full or concise, not json"),
    ):
        assert cli.run(["check", "--group-by", "file", *arguments]) == 2
        assert message in only_error(capsys)


def test_a_name_that_is_no_text_can_be_printed(project: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(project) + b"/caf\xe9.py"))
    path.write_text(SLOW)
    command = [sys.executable, "-m", "torchlint", "check", "--output-format", "concise", str(path)]
    done = subprocess.run(command, cwd=project, capture_output=True, check=False)
    assert done.returncode == 1, done.stderr
    assert b".py:5:12: TL201" in done.stdout
    done = subprocess.run([*command, "--show-files"], cwd=project, capture_output=True, check=True)
    assert done.stdout == b"caf\\udce9.py\n"


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has other encodings")
def test_a_terminal_that_knows_ascii_alone_gets_a_report(project: Path) -> None:
    (project / "slow.py").write_text(SLOW.replace("size", "größe"), encoding="utf-8")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "torchlint", "check", "slow.py"]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, check=False)
    assert done.returncode == 1, done.stderr
    assert b"gr\\xf6\\xdfe" in done.stdout


# The environment


@pytest.mark.parametrize(
    ("variable", "value", "arguments", "expected"),
    [
        ("TORCHLINT_CONFIG", 'select = ["TL501"]', [], ["TL501"]),
        ("TORCHLINT_CONFIG", "other.toml", [], ["TL201"]),
        ("TORCHLINT_CONFIG", 'select = ["TL501"]', ["--config", "other.toml"], ["TL201"]),
        ("TORCHLINT_CONFIG", 'select = ["TL501"]', ["--isolated"], ["TL501", "TL201"]),
        ("TORCHLINT_CONFIG", "", [], ["TL501", "TL201"]),
    ],
)
def test_configuration_from_the_environment(
    project: Path,
    capsys: Capture,
    monkeypatch: pytest.MonkeyPatch,
    variable: str,
    value: str,
    arguments: list[str],
    expected: list[str],
) -> None:
    (project / "other.toml").write_text('select = ["TL2"]\n')
    monkeypatch.setenv(variable, value)
    assert codes(capsys, *arguments) == expected


def test_output_from_the_environment(project: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHLINT_OUTPUT_FORMAT", "json")
    cli.run(["check"])
    assert len(json.loads(capsys.readouterr().out)) == 2
    cli.run(["check", "--output-format", "github"])
    assert capsys.readouterr().out.startswith("::")
    monkeypatch.setenv("TORCHLINT_OUTPUT_FILE", "report.json")
    cli.run(["check"])
    assert len(json.loads((project / "report.json").read_text())) == 2


def test_what_is_wrong_in_the_environment_is_named_there(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHLINT_OUTPUT_FORMAT", "xml")
    assert cli.run(["check"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: invalid value for '--output-format': 'xml'")
    assert line.endswith("(from TORCHLINT_OUTPUT_FORMAT)")


def test_gitlab_names_files_from_the_root_of_the_repository(
    project: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CI_PROJECT_DIR", str(project.parent))
    cli.run(["check", "--output-format", "gitlab"])
    assert {issue["location"]["path"] for issue in json.loads(capsys.readouterr().out)} == {
        f"{project.name}/{name}.py" for name in ("net", "slow")
    }


def test_the_cache_from_the_environment(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHLINT_NO_CACHE", "1")
    cli.run(["check"])
    assert not usual(project).exists()
    monkeypatch.setenv("TORCHLINT_NO_CACHE", "0")
    monkeypatch.setenv("TORCHLINT_CACHE_DIR", "elsewhere")
    cli.run(["check"])
    assert (project / "elsewhere" / "CACHEDIR.TAG").exists()
    assert not usual(project).exists()


# The cache and the processes


def usual(project: Path) -> Path:
    """The cache folder of a project that names none."""
    folder = userfolder.of_project(project)
    assert folder is not None
    return folder


def test_cache_options(project: Path) -> None:
    before = sorted(project.iterdir())
    for flag in ("-n", "--no-cache"):
        cli.run(["check", flag])
        assert not usual(project).exists()
    cli.run(["check", "--cache-dir", "deep/cache"])
    assert (project / "deep" / "cache" / "CACHEDIR.TAG").exists()
    cli.run(["check"])
    assert (usual(project) / ".gitignore").exists()
    assert sorted(project.iterdir()) == sorted([*before, project / "deep"])


def test_clean(project: Path, capsys: Capture) -> None:
    cli.run(["check", "--silent"])
    assert cli.run(["clean"]) == 0
    assert not usual(project).exists()
    assert capsys.readouterr().err == f"Removed {usual(project)}\n"
    assert cli.run(["clean"]) == 0
    assert capsys.readouterr().err.startswith("Nothing to remove")
    cli.run(["check", "--silent", "--cache-dir", "elsewhere"])
    cli.run(["clean", "--cache-dir", "elsewhere"])
    assert not (project / "elsewhere").exists()


@pytest.mark.parametrize(("arguments", "jobs"), [([], None), (["-j", "3"], 3), (["--jobs=1"], 1)])
def test_jobs(monkeypatch: pytest.MonkeyPatch, arguments: list[str], jobs: int | None) -> None:
    orders = watched(monkeypatch)
    assert cli.run(["check", *arguments]) == 0
    assert [order.jobs for order in orders] == [jobs]


# Other commands


def test_rules(capsys: Capture) -> None:
    assert cli.run(["rules"]) == 0
    table = capsys.readouterr().out
    assert cli.run(["rules", "--output-format", "json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [rule["code"] for rule in listed] == [rule.code for rule in registry.all_rules()]
    assert all(rule["name"] in table for rule in listed)


@pytest.mark.parametrize("rule", ["TL201", "tl201", "host-factory-then-move"])
def test_explain(capsys: Capture, rule: str) -> None:
    assert cli.run(["explain", rule]) == 0
    assert "host-factory-then-move" in capsys.readouterr().out
    assert cli.run(["explain", rule, "--output-format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["code"] == "TL201"


@pytest.mark.parametrize("arguments", [[], ["--show"]])
def test_config(project: Path, capsys: Capture, arguments: list[str]) -> None:
    (project / "torchlint.toml").write_text('select = ["TL2", "TL206"]\nignore = ["TL203"]\n')
    assert cli.run(["config", *arguments]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["file"] == str(project / "torchlint.toml")
    assert shown["rules"] == [
        "host-factory-then-move",
        "host-index-for-device-tensor",
        "device-round-trip",
        "constant-tensor-in-hot-path",
        "table-moved-per-call",
        "list-to-device-in-hot-path",
        "array-from-list-of-tensors",
        "copy-through-pageable-memory",
        "clone-beside-copy",
    ]
    assert cli.run(["config", *arguments, "--isolated"]) == 0
    assert json.loads(capsys.readouterr().out)["file"] is None


def test_schema(capsys: Capture) -> None:
    assert cli.run(["config", "--schema"]) == 0
    assert "$schema" in json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("flag", ["-V", "--version"])
def test_version(capsys: Capture, flag: str) -> None:
    assert cli.run([flag]) == 0
    assert capsys.readouterr().out == f"torchlint {package.__version__}\n"


def test_rule_is_explain(project: Path, capsys: Capture) -> None:
    for arguments in (["TL201"], ["TL201", "--output-format", "json"], ["slow.py:5"], ["nonsense"]):
        results = []
        for command in ("explain", "rule"):
            status = cli.run([command, *arguments])
            results.append((status, capsys.readouterr()))
        assert results[0] == results[1]
    assert (project / "slow.py").read_text() == SLOW


def test_settings_are_those_of_the_first_path(project: Path, capsys: Capture) -> None:
    (project / "torchlint.toml").write_text('select = ["TL2", "TL501"]\n[per-file-ignores]\n"net.py" = ["TL501"]\n')
    found = {}
    for path in (".", "slow.py", "net.py", "not/there.py"):
        assert cli.run(["check", "--show-settings", "--fail-on", "note", path]) == 0
        found[path] = json.loads(capsys.readouterr().out)
        assert found[path]["file"] == str(project / "torchlint.toml")
        assert found[path]["sources"]["fail-on"] == "--fail-on"
    rules = {path: set(shown["rules"]) for path, shown in found.items()}
    assert rules["."] == rules["slow.py"] == rules["not/there.py"]
    assert rules["slow.py"] - rules["net.py"] == {"bias-before-batchnorm"}


# What a shell completes


# Each says what it is offered for the last word by the function that the program itself gives it.
SHELLS = {
    "bash": """
eval "$(_TORCHLINT_COMPLETE=bash_source torchlint)"
compopt() { echo "files"; }
COMP_WORDS=(torchlint "$@"); COMP_CWORD=$#
_torchlint_completion torchlint
printf "%s\\n" "${COMPREPLY[@]}"
""",
    "zsh": """
compdef() { }
_path_files() { print files }
_describe() { print -rl -- ${${(P)3}%%:*} }
compadd() { print -rl -- ${(P)@[-1]} }
eval "$(_TORCHLINT_COMPLETE=zsh_source torchlint)"
words=(torchlint "$@"); CURRENT=$#words
_torchlint_completion
""",
    "fish": """
_TORCHLINT_COMPLETE=fish_source torchlint | source
function commandline
    switch $argv[1]
        case -cp
            echo torchlint $WORDS
        case -t
            string split " " -- $WORDS | tail -n 1
    end
end
function __fish_complete_path
    echo files
end
function __fish_complete_directories
    echo files
end
_torchlint_completion | string replace --regex "\\t.*" ""
""",
}


@pytest.fixture(params=SHELLS)
def complete(project: Path, request: pytest.FixtureRequest) -> Callable[..., list[str]]:
    name: str = request.param
    shell = shutil.which(name)
    if shell is None or sys.platform == "win32":
        pytest.skip(f"there is no {name}")
    tools = project / "tools"
    tools.mkdir()
    (tools / "torchlint").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m torchlint "$@"\n')
    (tools / "torchlint").chmod(0o755)
    bare = {"bash": ("--norc",), "zsh": ("-f",), "fish": ("--no-config",)}[name]

    def complete(*words: str) -> list[str]:
        environment = os.environ | {
            "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
            "HOME": str(project),
            "WORDS": " ".join(words),
        }
        done = subprocess.run(
            [shell, *bare, "-c", SHELLS[name], *(() if name == "fish" else (name, *words))],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.stderr == ""
        return sorted(done.stdout.split())

    return complete


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("ch",), ["check"]),
        (("check", "--output-f"), ["--output-format", "--output-file"]),
        (("check", "--output-format", "g"), ["github", "gitlab"]),
        (("rule", "item-in-tr"), ["item-in-train-loop"]),
        (("explain", "TL39"), []),
        (("check", "--select", "TL301,data-par"), ["TL301,data-parallel"]),
        (("check", "--ignore", "tl702"), []),
        (("check", "REA"), ["files"]),
        (("check", "--baseline", "b"), ["files"]),
        (("check", "--cache-dir", "b"), ["files"]),
    ],
)
def test_a_shell_completes(complete: Callable[..., list[str]], words: tuple[str, ...], expected: list[str]) -> None:
    assert complete(*words) == sorted(expected)


def test_the_documentation_says_how_a_shell_is_told() -> None:
    text = (Path(__file__).parents[1] / "docs" / "command_line.md").read_text(encoding="utf-8")
    assert SCHEMA_URL in text
    for shell in ("bash", "zsh", "fish"):
        assert f"_TORCHLINT_COMPLETE={shell}_source torchlint" in text


# Help


@pytest.mark.parametrize("flag", ["-h", "--help"])
@pytest.mark.parametrize("command", [[], *([name] for name in cli.torchlint.commands)])
def test_help(capsys: Capture, command: list[str], flag: str) -> None:
    assert cli.run([*command, flag]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("Usage: torchlint")
    assert err == ""
    assert all(len(line) <= 80 for line in out.splitlines())


def test_help_names_every_option_of_check(capsys: Capture) -> None:
    cli.run(["check", "--help"])
    text = capsys.readouterr().out
    command = cli.torchlint.commands["check"]
    with click.Context(command) as ctx:
        options = [parameter for parameter in command.get_params(ctx) if isinstance(parameter, click.Option)]
    assert len(options) > 30
    for option in options:
        assert re.search(rf"^ .*{option.opts[0]}\b", text, re.MULTILINE), option.opts
        assert option.help
        assert option.help.endswith(".")
    titles = re.findall(r"^(\w+):$", text, re.MULTILINE)
    assert titles == ["Rules", "Fixes", "Baseline", "Files", "Output", "Configuration", "Running", "Options"]


def test_without_a_command_there_is_help_and_status_2(capsys: Capture) -> None:
    assert cli.run([]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("Usage: torchlint")


# What is wrong


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["chekc"], "no such command `chekc`; did you mean `check`?"),
        (["qqqqqq"], "no such command `qqqqqq`; `torchlint --help` lists them"),
        (["slow.py"], "`slow.py` is no command; did you mean `torchlint check slow.py`?"),
        (["."], "`.` is no command; did you mean `torchlint check .`?"),
        (["check", "--selct", "TL2"], "no such option `--selct`; did you mean `--select`?"),
        (["fix", "--unsafe-fix"], "no such option `--unsafe-fix`; did you mean `--unsafe-fixes`?"),
        (["check", "--qqqqqq"], "no such option `--qqqqqq`; `torchlint check --help` lists them"),
        (["--qqqqqq"], "no such option `--qqqqqq`; `torchlint --help` lists them"),
        (["explain", "item-in-train-lop"], "unknown rule `item-in-train-lop`; did you mean `item-in-train-loop`?"),
        (["explain", "slow.py"], "say which line of it: `torchlint explain slow.py:1`"),
        (["check", "--select", "TL201,data-paralel"], "unknown rule `data-paralel`; did you mean `data-parallel`?"),
        (["check", "--config", "gone.toml"], "--config gone.toml: no such file"),
        (["check", "--config", "slect = 1"], "unknown key `slect`"),
        (["check", "--color", "blue"], "'blue' is not one of"),
        (["check", "--output-format", "xml"], "'xml' is not one of"),
        (["check", "-j", "0"], "0 is not in the range x>=1"),
        (["check", "-", "slow.py"], "`-` is standard input and cannot be checked together with files"),
        (["check", "--statistics", "--output-format", "github"], "--statistics"),
        (["check", "-o", "gone/report.txt"], "gone/report.txt: cannot write the report: no such file or directory"),
        (["check", "@gone.txt"], "@gone.txt: cannot read arguments"),
        (["config", "--show", "--schema"], "cannot be given together"),
        (["explain"], "missing argument"),
    ],
)
def test_mistakes_are_said_in_one_line(capsys: Capture, arguments: list[str], message: str) -> None:
    assert cli.run(arguments) == 2
    assert message in only_error(capsys)


def test_arguments_from_a_file(project: Path, capsys: Capture) -> None:
    (project / "arguments.txt").write_text("--select\nTL2\nslow.py\nnet.py\n")
    assert codes(capsys, "@arguments.txt") == ["TL201"]


def test_arguments_of_a_file_that_powershell_wrote(project: Path, capsys: Capture) -> None:
    """With a mark and the line ends of Windows they are taken; in UTF-16, as `>` writes them there, it is said."""
    words = "\ufeff--select\r\nTL201\r\nslow.py\r\n"
    (project / "arguments.txt").write_bytes(words.encode())
    assert codes(capsys, "@arguments.txt") == ["TL201"]
    (project / "arguments.txt").write_bytes(words.encode("utf-16-le"))
    assert cli.run(["@arguments.txt"]) == 2
    assert capsys.readouterr().err.endswith("cannot read arguments from this file: not UTF-8; save it as UTF-8\n")


def test_a_defect_is_one_line_and_a_traceback_when_asked_for(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> int:
        raise KeyError("on\ntwo lines")

    monkeypatch.setattr(run_module, "check", fail)
    assert cli.run(["check"]) == 2
    message = only_error(capsys)
    assert message.startswith("torchlint failed: KeyError: ")
    assert "please report" in message
    assert cli.run(["check", "-v"]) == 2
    assert "Traceback (most recent call last)" in capsys.readouterr().err


def test_ctrl_c_is_one_line_and_status_130(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(run_module, "check", interrupt)
    monkeypatch.setattr(sys, "argv", ["torchlint", "check"])
    for name in ("disable", "freeze"):  # they are meant for a process that ends here
        monkeypatch.setattr(gc, name, lambda: None)
    with pytest.raises(SystemExit) as caught:
        __main__.main()
    assert caught.value.code == 130
    assert capsys.readouterr() == ("", "torchlint: interrupted\n")


@pytest.mark.skipif(shutil.which("head") is None, reason="there is no `head`")
@pytest.mark.parametrize(
    "arguments",
    [
        "check",
        *(pytest.param(each, marks=pytest.mark.slow) for each in ("check --diff", "rules", "explain TL201")),
        *(pytest.param(each, marks=pytest.mark.slow) for each in ("config --schema", "--help")),
    ],
)
def test_a_reader_who_has_enough_is_no_error(project: Path, arguments: str) -> None:
    (project / "slow.py").write_text("import torch\n" + "x = torch.zeros(n).cuda()\n" * 400)
    command = f"{sys.executable} -m torchlint {arguments} | head -n 1"
    done = subprocess.run(["/bin/sh", "-c", command], cwd=project, capture_output=True, text=True, check=False)
    assert len(done.stdout.splitlines()) == 1
    assert "Error" not in done.stderr
    assert "Exception" not in done.stderr


def test_the_command_is_installed() -> None:
    script = Path(sys.executable).with_name("torchlint")
    if not script.exists():
        pytest.skip("torchlint is not installed beside this Python")
    done = subprocess.run([script, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"torchlint {package.__version__}\n"


# Files that do not name torch

HANDED_IN = """\
def train(model, loader, optimizer, criterion):
    total = 0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total
"""


def test_a_file_that_is_named_is_linted_though_it_does_not_name_torch(project: Path, capsys: Capture) -> None:
    folder = project / "steps"
    folder.mkdir()
    (folder / "train.py").write_text(HANDED_IN)
    (folder / "other.py").write_text("x = 1\n")
    for _ in range(2):  # what is remembered of a folder is not what holds for a file that is named
        assert cli.run(["check", "steps"]) == 0
        said = capsys.readouterr()
        assert said.out == "All checks passed!\n"
        assert said.err == "warning: 2 files skipped: no torch in them\n"
        assert codes(capsys, "steps/train.py") == ["TL203", "TL301"]
        assert codes(capsys, "steps/train.py", "steps/other.py") == ["TL203", "TL301"]
    assert cli.run(["check", "steps/other.py"]) == 0
    assert capsys.readouterr().err == "warning: 1 file skipped: no torch in it\n"


def test_nothing_is_said_of_files_without_torch_beside_others(project: Path, capsys: Capture) -> None:
    (project / "other.py").write_text("x = 1\n")
    cli.run(["check"])
    assert "skipped" not in capsys.readouterr().err
