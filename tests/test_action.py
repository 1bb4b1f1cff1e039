"""The action for GitHub: its steps, run in a shell as the runner runs them."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

ROOT = Path(__file__).parents[1]
SLOW = "import torch\n\n\ndef mask(size):  # torchlint: hot[per-batch]\n    return torch.zeros(size, size).cuda()\n"
TRAIN = (ROOT / "fixtures" / "item_in_train_loop" / "slow.py").read_text(encoding="utf-8")

pytestmark = pytest.mark.skipif(shutil.which("bash") is None or sys.platform == "win32", reason="there is no bash")


def action() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    return found


class Done(NamedTuple):
    """What a job with this action came to."""

    status: int
    log: str
    summary: str
    outputs: dict[str, str]
    uploaded: dict[str, str] | None


class Runner:
    """As much of GitHub's runner as the action takes: inputs, expressions, the files that steps write to."""

    def __init__(self, workspace: Path, temp: Path, *, installs: bool) -> None:
        self.workspace, self.temp, self.installs = workspace, temp, installs

    def run(self, **given: str) -> Done:
        inputs = {name: str(about["default"]) for name, about in action()["inputs"].items()}
        assert set(given) <= {name.replace("-", "_") for name in inputs}
        inputs |= {name.replace("_", "-"): value for name, value in given.items()}
        outputs: dict[str, dict[str, str]] = {}
        log, uploaded, status = "", None, 0
        summary = self.temp / "summary.md"
        summary.write_text("")
        for step in action()["runs"]["steps"]:
            if "if" in step and self._expanded(str(step["if"]), inputs, outputs) != "true":
                continue
            if "uses" in step:
                uploaded = {name: self._expanded(value, inputs, outputs) for name, value in step["with"].items()}
                continue
            if step.get("id") == "install" and not self.installs:
                outputs["install"] = {"scripts": str(Path(sys.executable).parent)}
                continue
            written = self.temp / "output"
            written.write_text("")
            environment = {name: value for name, value in os.environ.items() if not name.startswith("TORCHLINT_")}
            environment |= {name: self._expanded(value, inputs, outputs) for name, value in step.get("env", {}).items()}
            environment |= {"GITHUB_ACTION_PATH": str(ROOT), "RUNNER_TEMP": str(self.temp)}
            environment |= {"GITHUB_OUTPUT": str(written), "GITHUB_STEP_SUMMARY": str(summary)}
            assert "${{" not in step["run"]  # what is in an input is no part of a script
            script = self.temp / "step.sh"
            script.write_text(step["run"])
            done = subprocess.run(
                ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(script)],
                cwd=self.workspace,
                env=environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            log += done.stdout
            if "id" in step:
                outputs[step["id"]] = dict(line.split("=", 1) for line in written.read_text().splitlines())
            if done.returncode != 0:
                status = done.returncode
                break
        return Done(status, log, summary.read_text(), outputs.get("check", {}), uploaded)

    @staticmethod
    def _expanded(text: str, inputs: dict[str, str], outputs: dict[str, dict[str, str]]) -> str:
        def value(match: re.Match[str]) -> str:
            expression = match[1].strip()
            equals = re.fullmatch(r"inputs\.([\w-]+) == '(\w+)'", expression)
            if equals:
                return str(inputs[equals[1]] == equals[2]).lower()
            kind, _, name = expression.partition(".")
            if kind == "inputs":
                return inputs[name]
            step, _, output = name.partition(".outputs.")
            return outputs[step][output]

        return re.sub(r"\$\{\{(.*?)\}\}", value, text)


@pytest.fixture
def runner(tmp_path: Path) -> Runner:
    (tmp_path / "workspace").mkdir()
    (tmp_path / "temp").mkdir()
    (tmp_path / "workspace" / "net.py").write_text(SLOW)
    return Runner(tmp_path / "workspace", tmp_path / "temp", installs=False)


def test_it_is_where_github_looks_and_says_what_it_takes() -> None:
    about = action()
    assert about["runs"]["using"] == "composite"
    assert all(each["description"].endswith(".") for each in (*about["inputs"].values(), *about["outputs"].values()))
    text = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    for name in about["inputs"]:
        assert f"`{name}`" in text


def test_findings_are_annotations_and_fail_the_job(runner: Runner) -> None:
    done = runner.run()
    assert done.status == 1
    assert "::warning title=torchlint (TL201),file=net.py,line=5," in done.log
    assert done.outputs["findings"] == "1"
    assert done.outputs["status"] == "1"
    assert done.uploaded is None
    log = json.loads(Path(done.outputs["sarif-file"]).read_text())
    assert [result["ruleId"] for result in log["runs"][0]["results"]] == ["TL201"]


def test_a_clean_tree_passes(runner: Runner) -> None:
    (runner.workspace / "net.py").write_text("import torch\n")
    done = runner.run()
    assert (done.status, done.outputs["findings"]) == (0, "0")
    assert "All checks passed!" in done.summary
    assert "::" not in done.log


def test_it_can_report_and_let_the_job_pass(runner: Runner) -> None:
    done = runner.run(fail="false", annotations="false", summary="false", upload_sarif="true")
    assert (done.status, done.summary) == (0, "")
    assert done.log.startswith("net.py:5:12: TL201")
    assert done.uploaded == {"sarif_file": done.outputs["sarif-file"], "category": "torchlint"}


def test_the_summary_has_the_worst_loops_first(runner: Runner) -> None:
    (runner.workspace / "train.py").write_text(TRAIN)
    summary = runner.run().summary
    assert summary.startswith("### torchlint: ")
    assert summary.index("train.py:10: for inputs, targets in loader (per batch, 3 findings)") < summary.index(
        "net.py:5"
    )


def test_paths_and_arguments(runner: Runner) -> None:
    (runner.workspace / "sub").mkdir()
    (runner.workspace / "sub" / "deep.py").write_text(SLOW)
    assert runner.run(paths="sub\nnet.py").outputs["findings"] == "2"
    assert runner.run(paths="sub", args="--select TL3\n--fail-on note").outputs["findings"] == "0"


def test_a_wrong_argument_is_said_and_ends_the_job(runner: Runner) -> None:
    done = runner.run(args="--selct TL3")
    assert done.status == 2
    assert "error: no such option `--selct`; did you mean `--select`?" in done.log
    assert done.outputs == {}


def test_what_is_in_an_input_is_never_run(runner: Runner) -> None:
    evil = "$(touch ran) `touch ran` ; touch ran"
    for name in ("paths", "args", "diff_base"):
        runner.run(**{name: evil})
    assert not (runner.workspace / "ran").exists()


def test_what_is_in_the_tree_breaks_neither_log_nor_summary(runner: Runner) -> None:
    loop = TRAIN.replace("for inputs, targets in loader:", "for inputs, targets in loader:  # </pre>```<b>##[error]x")
    (runner.workspace / "train.py").write_text(loop)
    for name in ("::error::x.py", "```.py"):
        (runner.workspace / name).write_text(SLOW)
    done = runner.run()
    assert not re.search(r"^::(?!warning |notice )|##\[", done.log, re.MULTILINE)
    body = done.summary.partition("<pre>\n")[2]
    assert body.count("<") == 1
    assert body.endswith("</pre>\n")


def test_what_is_new_since_a_revision(runner: Runner) -> None:
    for command in (
        ["init", "--quiet"],
        ["add", "--all"],
        ["-c", "user.name=t", "-c", "user.email=t@example.org", "commit", "--quiet", "-m", "x"],
    ):
        subprocess.run(["git", *command], cwd=runner.workspace, check=True)
    (runner.workspace / "new.py").write_text(SLOW)
    done = runner.run(diff_base="HEAD")
    assert (done.status, done.outputs["findings"]) == (1, "1")
    assert "file=new.py" in done.log


@pytest.mark.slow
@pytest.mark.network
def test_it_installs_itself(runner: Runner) -> None:
    command = [sys.executable, "-m", "pip", "--retries", "0", "--timeout", "10", "download", "--no-deps", "tomli"]
    if subprocess.run([*command, "--dest", str(runner.temp)], capture_output=True, check=False).returncode != 0:
        pytest.skip("no package index")
    runner.installs = True
    done = runner.run()
    assert (done.status, done.outputs["findings"]) == (1, "1"), done.log
