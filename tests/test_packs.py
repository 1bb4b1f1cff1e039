"""Rule packs: the one that docs/packs.md shows is used like our own rules, and what is wrong with one costs no other."""

from __future__ import annotations

import importlib
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from collections.abc import Callable, Iterator
from pathlib import Path

import laws
import pytest

from torchlint import cli, engine, packs, registry, rule
from torchlint.registry import UnknownRuleError, all_rules, choose, find, matching, problems
from torchlint.semantics.context import Context
from torchlint.testing import check_snippet

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "packs.md").read_text(encoding="utf-8")
# The files that the page shows, by their paths.
SHOWN = dict(re.findall(r"^```\w+ (\S+)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
TRAIN = """\
import acme
import torch


def train(model, loader, optimizer, log):
    for x, y in loader:
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        acme.log("loss", loss)
        log.flush()
        total = loss.item()
"""
PER_EPOCH = """\
import acme
import torch


def train(model, loader, optimizer, log):
    for epoch in range(10):
        for x, y in loader:
            model(x).sum().backward()
            optimizer.step()
        log.flush()
"""
OURS = "TL301"
RULE = """\
from torchlint.rule import Call, Flag, Rule

RULE = Rule("{name}", "{code}", "{group}", "Toy.", "1.0.0", page="https://toy.example"{more})


@RULE.on(Call("acme.log"))
def check(node, context):
    {body}
"""


class Site:
    """A folder on Python's path that distributions are installed in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def install(self, distribution: str, files: dict[str, str], *entries: str, version: str = "1.0.0") -> None:
        """What an installer leaves of a distribution with these files and entry points."""
        for name, text in files.items():
            self.write(name, text)
        metadata = f"{distribution.replace('-', '_')}-{version}.dist-info"
        lines = "\n".join(("[console_scripts]", "x = y:z", "", f"[{packs.GROUP}]", *entries))
        self.write(f"{metadata}/METADATA", f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        self.write(f"{metadata}/entry_points.txt", lines)
        forget()

    def toy(self, distribution: str = "toy-pack", prefix: str = "TOY", **rules: str) -> None:
        """A pack of these modules."""
        package = distribution.replace("-", "_")
        files = {f"{package}/__init__.py": "API = 1\n"} | {f"{package}/{name}.py": text for name, text in rules.items()}
        self.install(distribution, files, f"{prefix} = {package}")

    def write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def forget() -> None:
    """Let the rules be loaded again, as by a new process."""
    named = {
        registry: ("_installed", "_catalogue", "by_name"),
        engine: ("_pattern", "_interests"),
        laws: ("lint", "fix"),
    }
    for module, names in named.items():
        for name in names:
            getattr(module, name).cache_clear()
    for name in [name for name in sys.modules if name.startswith(("acme_torchlint", "toy_", "other_"))]:
        del sys.modules[name]
    importlib.invalidate_caches()


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    folder = tmp_path / "site"
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # sources change within a second
    yield Site(folder)
    forget()


def acme(site: Site, place: Callable[[str], str] = str) -> None:
    """Install the pack of the page; `place` says where its modules go."""
    files = {place(name.removeprefix("src/")): text for name, text in SHOWN.items() if name.startswith("src/")}
    site.install("acme-torchlint", files, "ACME = acme_torchlint")


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "train.py").write_text(TRAIN)
    monkeypatch.chdir(folder)
    return folder


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(project: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """A command line in this process, in the project: its status, and what it writes to the output and to the error stream."""
    assert project == Path.cwd()

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        status = cli.run(arguments)
        written = capsys.readouterr()
        return status, written.out, written.err

    return call


def codes(run: Run, *arguments: str) -> list[tuple[int, str]]:
    status, out, err = run("check", "--output-format", "json", *arguments)
    assert (status, err) == (1 if json.loads(out) else 0, ""), err
    return [(found["location"]["row"], found["code"]) for found in json.loads(out)]


# One of the page


def test_the_page_shows_a_whole_pack() -> None:
    assert {name.rpartition("/")[2] for name in SHOWN} == {
        "pyproject.toml", "__init__.py", "acme_log_tensor.py", "acme_log_tensor.md", "acme_flush_in_loop.py",
        "acme_flush_in_loop.md", "test_rules.py", "torchlint.toml",
    }  # fmt: skip


def test_what_the_page_calls_stable_is_there() -> None:
    stable = PAGE.partition("## What is stable")[2].partition("\n## ")[0]
    for module in ("torchlint.rule", "torchlint.finding", "torchlint.testing", "torchlint.edits.expressions"):
        line = re.search(rf"from `{module}`: (.*)", stable)
        assert line is not None
        for name in re.findall(r"`([A-Z][a-z]\w+|check_\w+|with_argument)[`(]", line[1]):
            assert hasattr(importlib.import_module(module), name), name
    questions = re.findall(r"`(\w+)\((\w+(?:, \w+)*)\)`", re.findall(r"^\| `.*", stable, re.MULTILINE).__str__())
    assert len(questions) == 14
    for name, parameters in questions:
        method = getattr(Context, name)
        code = method.__code__
        taken = [each for each in code.co_varnames[: code.co_argcount] if each != "self"]
        assert taken == parameters.split(", "), name
    assert rule.API == 1


def test_rules_of_a_pack_are_listed_and_explained(site: Site, run: Run) -> None:
    acme(site)
    status, out, err = run("rules")
    assert (status, err) == (0, "")
    assert "\nACME302  acme-flush-in-loop " in out
    listed = json.loads(run("rules", "--output-format", "json")[1])
    assert [one["code"] for one in listed] == sorted(one["code"] for one in listed)
    assert listed[0]["url"] == "https://acme.example/torchlint/acme-log-tensor"
    for name in ("acme-log-tensor", "ACME301", "acme301"):
        status, out, err = run("explain", name)
        assert (status, err) == (0, "")
        assert "so the CPU waits until the GPU has computed it" in out
        assert "acme.example" in out
        assert "github.com/torchlint" not in out


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("acme-log-tensor", ["ACME301"]),
        ("ACME301", ["ACME301"]),
        ("acme301", ["ACME301"]),
        ("ACME30", ["ACME301", "ACME302"]),
        ("ACME", ["ACME301", "ACME302"]),
        ("sync", ["ACME301", "ACME302", OURS]),
        ("ALL", ["ACME301", "ACME302", OURS]),
        ("TL3", [OURS]),
    ],
)
def test_rules_of_a_pack_are_selected(site: Site, selector: str, found: list[str]) -> None:
    acme(site)
    assert [rule.code for rule in matching(selector) if rule.code in ("ACME301", "ACME302", OURS)] == found
    assert {rule.code for rule in choose([selector])} >= set(found)
    assert {rule.code for rule in choose(None, [selector])}.isdisjoint(found)


def test_a_part_of_a_prefix_is_none(site: Site) -> None:
    acme(site)
    for selector in ("ACM", "A", "T", "ACME9"):
        with pytest.raises(UnknownRuleError):
            matching(selector)


def test_a_narrower_selector_wins(site: Site) -> None:
    acme(site)
    assert [rule.code for rule in choose(["ACME30"], ["ACME", "ACME302"])] == ["ACME301"]
    assert [rule.code for rule in choose(["acme-log-tensor"], ["sync"])] == ["ACME301"]


def test_rules_of_a_pack_find_fix_and_are_configured(site: Site, project: Path, run: Run) -> None:
    acme(site)
    assert codes(run, "--no-cache") == [(10, "ACME301"), (11, "ACME302"), (12, OURS)]
    assert codes(run, "--no-cache", "--select", "ACME302") == [(11, "ACME302")]
    assert codes(run, "--no-cache", "--ignore", "ACME") == [(12, OURS)]
    assert codes(run, "--no-cache", "--per-file-ignores", "train.py:ACME301") == [(11, "ACME302"), (12, OURS)]
    (project / "train.py").write_text(PER_EPOCH)
    before = codes(run, "--no-cache", "--select", "ACME302")
    (project / "torchlint.toml").write_text(SHOWN["torchlint.toml"])
    assert (before, codes(run, "--no-cache", "--select", "ACME302")) == ([], [(10, "ACME302")])
    (project / "torchlint.toml").write_text("[rules.acme-flush-in-loop]\nevery = 3\n")
    assert "unknown key `every`" in run("check")[2]
    (project / "torchlint.toml").unlink()
    (project / "train.py").write_text(TRAIN)
    assert run("fix", "--unsafe-fixes", "--select", "ACME", "--no-cache")[0] == 1
    assert 'acme.log_later("loss", loss)' in (project / "train.py").read_text()
    assert codes(run, "--no-cache", "--select", "ACME301") == []


def test_the_schema_knows_rules_of_a_pack(site: Site, run: Run) -> None:
    acme(site)
    schema = json.loads(run("config", "--schema")[1])
    known = schema["definitions"]["selector"]["enum"]
    assert {"ACME", "ACME3", "ACME301", "acme-log-tensor"} <= set(known)
    assert "ACM" not in known
    assert "per-epoch" in schema["properties"]["rules"]["properties"]["acme-flush-in-loop"]["properties"]


@pytest.mark.parametrize(
    "comment", ["torchlint: ignore[acme-log-tensor]", "torchlint: ignore[ACME301]", "noqa: ACME301"]
)
def test_rules_of_a_pack_are_suppressed(site: Site, project: Path, run: Run, comment: str) -> None:
    acme(site)
    (project / "train.py").write_text(TRAIN.replace(", loss)", f", loss)  # {comment}"))
    assert codes(run, "--no-cache") == [(11, "ACME302"), (12, OURS)]
    (project / "train.py").write_text(f"import torch\nx = 1  # {comment}\n")
    assert codes(run, "--no-cache") == [(2, "TL001")]
    (project / "train.py").write_text(f"x = 1  # {comment}\n")
    assert codes(run, "--no-cache") == [(1, "TL001")]
    assert run("fix", "--no-cache")[0] == 0
    assert (project / "train.py").read_text() == "x = 1\n"


def test_codes_of_no_pack_are_somebody_elses(project: Path, run: Run) -> None:
    (project / "train.py").write_text("import torch\nx = 1  # noqa: ACME301\n")
    assert codes(run, "--no-cache") == []


def test_unknown_codes_of_a_pack_are_named(site: Site, project: Path, run: Run) -> None:
    acme(site)
    (project / "train.py").write_text("import torch\nx = 1  # noqa: ACME999, F401\n")
    status, out, _ = run("check", "--no-cache", "--output-format", "concise")
    assert status == 1
    assert "unknown rule `ACME999`; " in out
    assert "F401" not in out


def test_ignores_are_written_for_rules_of_a_pack(site: Site, project: Path, run: Run) -> None:
    acme(site)
    assert run("check", "--no-cache", "--add-ignore")[0] == 0
    assert "loss)  # torchlint: ignore[acme-log-tensor]" in (project / "train.py").read_text()
    assert codes(run, "--no-cache") == []


def test_one_line_has_one_message(site: Site, project: Path, run: Run) -> None:
    """A rule of a pack yields to one of ours that it names, and is sorted among them."""
    acme(site)
    (project / "train.py").write_text(TRAIN.replace("log.flush()", "torch.cuda.synchronize(); log.flush()"))
    assert [code for row, code in codes(run, "--no-cache", "--preview") if row == 11] == ["TL317"]
    assert [code for row, code in codes(run, "--no-cache", "--ignore", "TL317") if row == 11] == ["ACME302"]


def test_reports_quote_rules_of_a_pack(site: Site, run: Run) -> None:
    acme(site)
    status, out, _ = run("check", "--no-cache", "--output-format", "sarif")
    (log,) = json.loads(out)["runs"]
    assert status == log["invocations"][0]["exitCode"] == 1
    rules = {each["id"]: each for each in log["tool"]["driver"]["rules"]}
    assert rules["ACME301"]["helpUri"] == "https://acme.example/torchlint/acme-log-tensor"
    assert "formats its value at once" in rules["ACME301"]["help"]["markdown"]
    first = log["results"][0]
    assert (first["ruleId"], log["tool"]["driver"]["rules"][first["ruleIndex"]]["id"]) == ("ACME301", "ACME301")
    found = json.loads(run("check", "--no-cache", "--output-format", "json")[1])
    assert found[0]["url"] == "https://acme.example/torchlint/acme-log-tensor"
    assert found[0]["fix"]["applicability"] == "unsafe"
    for output_format in ("full", "concise", "github"):
        assert "ACME301" in run("check", "--no-cache", "--output-format", output_format)[1]
    assert "ACME301" in run("check", "--no-cache", "--statistics", "--output-format", "concise")[1]


def test_a_changed_pack_is_asked_again(site: Site, run: Run) -> None:
    acme(site)
    for change in ("acme_log_tensor.py", "_shared.py"):
        module = "from ._shared import WORD\n" if change == "_shared.py" else ""
        site.write("acme_torchlint/_shared.py", "WORD = 'first'\n")
        text = SHOWN["src/acme_torchlint/acme_log_tensor.py"].replace("import libcst", f"{module}import libcst")
        text = text.replace(
            '"reads", "`acme.log` reads',
            '"reads", WORD + " `acme.log` reads' if module else '"reads", "first `acme.log` reads',
        )
        site.write("acme_torchlint/acme_log_tensor.py", text)
        forget()
        for _ in range(2):  # the second time from the cache
            assert "first `acme.log` reads" in run("check")[1]
        site.write(
            f"acme_torchlint/{change}", (site.folder / "acme_torchlint" / change).read_text().replace("first", "second")
        )
        forget()
        assert "second `acme.log` reads" in run("check")[1]
    shutil.rmtree(site.folder / "acme_torchlint-1.0.0.dist-info")
    forget()
    assert codes(run) == [(12, OURS)]


@pytest.mark.parametrize("package", ["toy_pack", "toy_pack.inner.rules"])
def test_a_result_depends_on_all_of_the_outermost_package(site: Site, package: str) -> None:
    names = ("__init__.py", "_table.json", "inner/__init__.py", "inner/rules/__init__.py", "inner/rules/toy_rule.py")
    files = {f"toy_pack/{name}": "" for name in names}
    site.install("toy-pack", files | {"toy_pack/page.md": "", "toy_other/x.py": ""}, f"TOY = {package}")
    found = {path.relative_to(site.folder).as_posix() for path in registry.pack_sources()}
    metadata = {f"toy_pack-1.0.0.dist-info/{name}" for name in ("RECORD", "entry_points.txt")}
    assert found == {f"toy_pack/{name}" for name in names} | metadata


def test_of_a_namespace_only_the_pack_counts(site: Site) -> None:
    files = {f"toy_space/{name}": "" for name in ("other/x.py", "mine/__init__.py", "mine/toy_rule.py")}
    site.install("toy-pack", files, "TOY = toy_space.mine")
    found = {path.relative_to(site.folder).as_posix() for path in registry.pack_sources()}
    assert {name for name in found if name.startswith("toy_space")} == set(files) - {"toy_space/other/x.py"}


def test_a_pack_may_have_folders_for_groups(site: Site, run: Run) -> None:
    def place(name: str) -> str:
        return name if name.endswith("__init__.py") else name.replace("/acme_", "/sync/acme_")

    acme(site, place)
    site.write("acme_torchlint/sync/__init__.py", "")
    site.write("acme_torchlint/sync/_shared.py", "raise AssertionError\n")
    site.write("acme_torchlint/_inner/__init__.py", "raise AssertionError\n")
    site.write("acme_torchlint/_inner/x.py", "raise AssertionError\n")
    site.write("acme_torchlint/fixtures/slow.py", "raise AssertionError\n")
    assert codes(run, "--no-cache") == [(10, "ACME301"), (11, "ACME302"), (12, OURS)]
    assert "formats its value at once" in run("explain", "ACME301")[1]


def test_rules_of_a_pack_obey_the_laws(site: Site) -> None:
    acme(site)
    marked = TRAIN.replace(", loss)", ", loss)  # <- acme-log-tensor")
    laws.check_snippet(marked, "acme-log-tensor", fixed=TRAIN.replace("acme.log(", "acme.log_later("))
    laws.check_snippet(TRAIN.replace("log.flush()", "log.flush()  # <- acme-flush-in-loop"), "acme-flush-in-loop")


def test_nothing_of_a_pack_is_measured_as_if_it_were_ours(site: Site) -> None:
    from torchlint.verify import catalogue
    from torchlint.verify.machine import UsageError

    acme(site)
    chosen = catalogue.selected(["ALL"], ["smoke"], "cpu", None)
    assert not [each for each, _ in chosen.pieces if each.rule.code.startswith("ACME")]
    with pytest.raises(UsageError, match="acme-log-tensor has no pair of files"):
        catalogue.selected(["ACME301"], [], "cpu", None)


# In other processes


def environment(site: Site) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TORCHLINT_", "PYTHON"))}
    return kept | {"PYTHONPATH": str(site.folder)}


def python(site: Site, *arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd, env=environment(site) | variables, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_nothing_of_the_working_directory_is_a_pack(site: Site, project: Path) -> None:
    """Not even where Python itself looks there: with `-m`, and where it is on PYTHONPATH."""
    acme(site)
    evil = f"from pathlib import Path\nPath({str(project / 'ran')!r}).touch()\nAPI = 1\n"
    for package in ("acme_torchlint", "evil_pack", "click", "libcst"):
        (project / package).mkdir()
        (project / package / "__init__.py").write_text(evil)
    for metadata in ("evil_pack-1.0.dist-info", "evil_pack.egg-info"):
        (project / metadata).mkdir()
        (project / metadata / "entry_points.txt").write_text("[torchlint.rules]\nEVIL = evil_pack\n")
    checked = python(
        site, "-m", "torchlint", "check", "--no-cache", "--output-format", "concise", "train.py", cwd=project
    )
    assert (checked.returncode, checked.stderr) == (1, "")
    assert re.findall(r"ACME\d+|TL\d+|EVIL", checked.stdout) == ["ACME301", "ACME302", OURS]
    assert not (project / "ran").exists()
    for package in ("click", "libcst"):  # what is on PYTHONPATH before them Python itself prefers
        shutil.rmtree(project / package)
    both = os.pathsep.join((str(project), str(site.folder)))
    code = "from torchlint.registry import all_rules, problems; print(*(r.code for r in all_rules()), *problems())"
    listed = python(site, "-c", code, cwd=project, PYTHONPATH=both)
    assert listed.returncode == 0, listed.stderr
    assert "ACME301 ACME302" in listed.stdout
    assert "EVIL" not in listed.stdout
    assert not (project / "ran").exists()


MANY = """
import sys, threading
if {threads}:
    threading.Thread(target=threading.Event().wait, daemon=True).start()
from torchlint.pool import Job, work
from torchlint.settings import Settings
data = open("train.py", "rb").read() + b"\\n" * 20_000
jobs = [Job(f"{{number}}.py", data, Settings(("acme-log-tensor",))) for number in range(2)]
if __name__ == "__main__":
    print(sorted((job.shown, *(found.code for found in outcome.result.findings)) for job, outcome in work(jobs, 2)))
    print("multiprocessing" in sys.modules)
"""


@pytest.mark.parametrize("threads", [False, True])
def test_a_pack_is_used_in_worker_processes(site: Site, project: Path, *, threads: bool) -> None:
    """In those that are forked, and in those that are started afresh."""
    acme(site)
    (project / "many.py").write_text(MANY.format(threads=threads))
    done = python(site, "many.py", cwd=project)
    assert done.stdout == "[('0.py', 'ACME301'), ('1.py', 'ACME301')]\nTrue\n", done.stderr


def test_a_pack_is_used_in_editors(site: Site, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pack that prints when it is imported does not get between the server and the editor."""
    monkeypatch.syspath_prepend(str(ROOT / "tests" / "lsp"))
    from wire import wire

    acme(site)
    site.write("acme_torchlint/__init__.py", 'print("loading")\nAPI = 1\n')
    monkeypatch.setenv("PYTHONPATH", str(site.folder))
    with wire(project) as server:
        server.begin(project)
        uri = (project / "train.py").as_uri()
        server.open(uri, TRAIN)
        assert [code for _, code in server.published(uri, 1)] == ["ACME301", "ACME302", OURS]


# What is wrong with one


def toy(
    name: str = "toy-rule",
    code: str = "TOY101",
    body: str = 'yield Flag(node, "toy")',
    *,
    group: str = "toys",
    more: str = "",
) -> str:
    return RULE.format(name=name, code=code, body=body, group=group, more=more)


def _prefix(prefix: str) -> Callable[[Site], None]:
    return lambda site: site.toy(prefix=prefix, toy_rule=toy())


def _rule(text: str, module: str = "toy_rule") -> Callable[[Site], None]:
    return lambda site: site.toy(**{"good_rule": toy("good-rule", "TOY102"), module: text})


def _package(text: str) -> Callable[[Site], None]:
    return lambda site: site.install(
        "toy-pack", {"toy_pack/__init__.py": text, "toy_pack/toy_rule.py": toy()}, "TOY = toy_pack"
    )


def _two(prefix: str, text: str, module: str = "toy_rule") -> Callable[[Site], None]:
    def install(site: Site) -> None:
        site.toy("toy-pack", toy_rule=toy())
        site.toy("other-pack", prefix, **{module: text})

    return install


CASES = {
    "prefix of ours": (_prefix("TLX"), "its prefix `TLX` is one of torchlint's own"),
    "our prefix": (_prefix("TL"), "its prefix `TL` is one of torchlint's own"),
    "prefix of small letters": (_prefix("toy"), "its prefix `toy` is not two to eight capital letters"),
    "prefix that is a selector": (_prefix("ALL"), "its prefix `ALL` is not two to eight capital letters, or it is `ALL`"),
    "no package": (
        lambda site: site.install("toy-pack", {"toy_pack/__init__.py": "API = 1\n"}, "TOY = toy_pack:RULES"),
        "its entry point `TOY = toy_pack:RULES` does not name a package",
    ),
    "a module": (
        lambda site: site.install("toy-pack", {"toy_module.py": "API = 1\n"}, "TOY = toy_module"),
        "`toy_module` is a module, and a pack is a package of modules",
    ),
    "not there": (
        lambda site: site.install("toy-pack", {}, "TOY = toy_nothing"),
        "`toy_nothing` cannot be imported: ModuleNotFoundError: No module named 'toy_nothing'; upgrade the pack",
    ),
    "package fails": (_package("1 / 0"), "`toy_pack` cannot be imported: ZeroDivisionError: division by zero; upgrade"),
    "package exits": (_package("import sys\nsys.exit(3)"), "`toy_pack` cannot be imported: SystemExit: 3; upgrade the pack"),
    "no version": (_package(""), "`toy_pack` does not say which version of torchlint's API it is written for, as in `API = 1`"),
    "newer version": (_package("API = 2"), "it is written for version 2 of torchlint's API, and this is version 1; upgrade torchlint"),
    "older version": (_package("API = 0"), "it is written for version 0 of torchlint's API, and this is version 1; upgrade the pack"),
    "module fails": (_rule("import toy_missing"), "`toy_pack.toy_rule` cannot be imported: ModuleNotFoundError: No module named 'toy_missing'"),
    "syntax": (_rule("def"), "`toy_pack.toy_rule` cannot be imported: SyntaxError: "),
    "two modules fail": (
        lambda site: site.toy(good_rule=toy("good-rule", "TOY102"), a_rule="1 / 0", b_rule="1 / 0"),
        "division by zero; upgrade the pack, or uninstall it (and 1 more of its modules)",
    ),
    "no rule": (_rule("x = 1"), "`toy_pack.toy_rule` has no `RULE`"),
    "no Rule": (_rule("RULE = 1"), "`toy_pack.toy_rule` has a `RULE` that is an `int`, not a `torchlint.rule.Rule`"),
    "code of another": (_rule(toy(code="TL301")), "the code `TL301` is not `TOY` and three digits"),
    "long code": (_rule(toy(code="TOY1010")), "the code `TOY1010` is not `TOY` and three digits"),
    "one word": (_rule(toy("toys"), "toys"), "the name `toys` is not two or more lowercase words with hyphens"),
    "group": (_rule(toy(group="Toy Group")), "the group `Toy Group` is not one lowercase word"),
    "module of another name": (_rule(toy(), "toy_role"), "the rule `toy-rule` has to stand in a module `toy_rule`"),
    "no page": (_rule(toy().replace("https://toy.example", "")), "`page` is ``, not the address"),
    "metadata of another type": (_rule(toy().replace('"toys"', "None")), "`group` is a `NoneType`, not a string"),
    "fix": (_rule(toy(more=', fix="safe"')), "`fix` is not a tuple of `Applicability`"),
    "options": (_rule(toy(more=', options=("every", 50)')), "`options` is not a tuple of names and defaults"),
    "yields to": (_rule(toy(more=', yields_to="item-in-train-loop"')), "`yields_to` is not a tuple of names"),
    "version": (_rule(toy(more=', torch="2.4"')), "`torch` is not a version such as `(2, 4)`"),
    "no check": (_rule(toy().partition("@RULE")[0]), "the rule `toy-rule` registers no check"),
    "tokens of text": (
        _rule(toy().replace("Call,", "Method,").replace('Call("acme.log")', 'Method("log", ("acme",))')),
        "a check is registered for what is no `Method`, `Call` or `Node`, or has tokens that are not bytes",
    ),
    "name of ours": (
        _rule(toy("item-in-train-loop"), "item_in_train_loop"),
        "the name `item-in-train-loop` of `toy_pack.item_in_train_loop` is that of a rule of torchlint; upgrade the pack",
    ),
    "code twice": (
        _rule(toy("toy-rule", "TOY102")),
        "the code `TOY102` of `toy_pack.toy_rule` is used by `toy-pack` 1.0.0 too",
    ),
    "prefix of another pack": (_two("TOY", toy()), "rule pack `toy-pack` 1.0.0: the prefix `TOY` is used by `other-pack` 1.0.0 too; uninstall one"),
    "name of another pack": (
        _two("OTHER", toy(code="OTHER101")),
        "rule pack `toy-pack` 1.0.0: the name `toy-rule` of `toy_pack.toy_rule` is used by `other-pack` 1.0.0 too",
    ),
    "circle": (
        lambda site: site.toy(
            good_rule=toy("good-rule", "TOY102"),
            a_rule=toy("a-rule", "TOY103", more=', yields_to=("b-rule",)'),
            b_rule=toy("b-rule", "TOY104", more=', yields_to=("a-rule",)'),
        ),
        "`a-rule` yields to a rule that yields to it; its authors have to change it (and 1 more of its modules)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_what_is_wrong_with_a_pack_is_said_once_and_costs_nothing_else(site: Site, run: Run, name: str) -> None:
    install, said = CASES[name]
    install(site)
    status, out, err = run("check", "--no-cache", "--output-format", "json")
    assert status == 2
    (line,) = err.splitlines()
    assert line.startswith(("error: rule pack `toy-pack` 1.0.0: ", "error: rule pack `other-pack` 1.0.0: "))
    assert said in line
    found = [each["code"] for each in json.loads(out)]
    assert OURS in found
    is_rule_alone = (
        "good_rule.py" in os.listdir(site.folder / "toy_pack") if (site.folder / "toy_pack").exists() else False
    )
    assert ("TOY102" in found) is is_rule_alone
    assert (run("check", "--no-cache", "--silent"), run("check", "--exit-zero", "--no-cache", "-q")[0]) == (
        (2, "", ""),
        2,
    )


def test_a_broken_pack_is_told_of_by_every_command_that_loads_rules(site: Site, run: Run) -> None:
    CASES["module fails"][0](site)
    for arguments in (("rules",), ("config",), ("fix", "--no-cache"), ("check", "--no-cache", "--diff")):
        status, _, err = run(*arguments)
        assert (status, err.count("error: rule pack `toy-pack` 1.0.0: ")) == (2, 1), (arguments, err)
    assert run("explain", "good-rule")[0] == 0
    status, _, err = run("explain", "toy-rule")
    assert status == 2
    assert "unknown rule `toy-rule`; it may be in a pack that cannot be used: rule pack `toy-pack`" in err
    (log,) = json.loads(run("check", "--no-cache", "--output-format", "sarif")[1])["runs"]
    (invocation,) = log["invocations"]
    assert (invocation["executionSuccessful"], invocation["exitCode"]) == (False, 2)
    assert "toy_missing" in invocation["toolConfigurationNotifications"][0]["message"]["text"]


def test_what_a_broken_pack_may_have_had_is_not_complained_of(site: Site, project: Path, run: Run) -> None:
    CASES["package fails"][0](site)
    (project / "torchlint.toml").write_text('extend-select = ["TOY101", "toy-rule"]\n[rules.toy-rule]\nevery = 1\n')
    (project / "train.py").write_text(TRAIN.replace(", loss)", ", loss)  # torchlint: ignore[toy-rule]"))
    status, out, err = run("check", "--no-cache", "--output-format", "json")
    assert (status, len(err.splitlines())) == (2, 1)
    assert [each["code"] for each in json.loads(out)] == [OURS]


def test_a_run_that_loads_no_rule_says_nothing(site: Site, project: Path, run: Run) -> None:
    CASES["package fails"][0](site)
    (project / "train.py").write_text("print(1)\n")
    assert run("check", "--no-cache", "-q") == (0, "", "")
    assert problems() == ()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise KeyError('x')\n    yield", "toy-rule failed on train.py: KeyError: 'x'"),
        ("return None", "toy-rule failed on train.py: TypeError: "),
        ('yield "text"', "toy-rule failed on train.py: TypeError: a check yields `Flag`s with a message, not 'text'"),
        ("yield Flag(node, None)", "toy-rule failed on train.py: TypeError: a check yields `Flag`s with a message"),
        ('yield Flag(None, "toy")', "toy-rule failed on train.py: "),
        ('yield Flag(node.func.deep_clone(), "toy")', "toy-rule failed on train.py: "),
        ('yield Flag(node, "toy", edits=("x",))', "toy-rule failed on train.py: "),
    ],
)
def test_a_rule_that_fails_costs_no_other_finding(site: Site, run: Run, body: str, said: str) -> None:
    site.toy(good_rule=toy("good-rule", "TOY102"), toy_rule=toy(body=body))
    status, out, err = run("check", "--no-cache", "--output-format", "json")
    found = {each["code"]: each["message"] for each in json.loads(out)}
    assert (status, err) == (2, "")
    assert said in found["E000"]
    assert found["E000"].endswith("please report this to the authors of `toy-pack` 1.0.0")
    assert {"TOY102", OURS} <= set(found)


def test_a_node_that_there_is_not_costs_no_other_finding(site: Site, run: Run) -> None:
    text = toy().replace("Call,", "Node,").replace('Call("acme.log")', 'Node("Nothing")')
    site.toy(good_rule=toy("good-rule", "TOY102"), toy_rule=text)
    status, out, _ = run("check", "--no-cache", "--output-format", "json")
    found = {each["code"]: each["message"] for each in json.loads(out)}
    assert status == 2
    assert "toy-rule failed on train.py: LookupError: LibCST has no node `Nothing`" in found["E000"]
    assert {"TOY102", OURS} <= set(found)


def test_the_first_of_two_versions_counts(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As for Python: one that is installed over another hides it, even if it declares nothing."""
    acme(site)
    above = Site(tmp_path / "above")
    monkeypatch.syspath_prepend(str(above.folder))
    above.install("Acme.Torchlint", {}, version="2.0")
    assert not matching("ALL")[0].code.startswith("ACME")


def test_a_pack_that_prints_leaves_the_report_alone(site: Site, run: Run) -> None:
    site.toy(toy_rule=f'print("hello")\n{toy()}')
    status, out, err = run("check", "--no-cache", "--output-format", "json")
    assert (status, err) == (1, "hello\n")
    assert "TOY101" in [each["code"] for each in json.loads(out)]


# What authors call


BROKEN = {
    "unmarked": ('yield Flag(node, "toy")', "", "acme.log(1)", "line 3: toy-rule is not wanted"),
    "unflagged": ("return iter(())", "", "acme.log(1)  # <- toy-rule", "line 3: toy-rule is missing"),
    "period": ('yield Flag(node, "Toy.")', "", "acme.log(1)  # <- toy-rule", "a message has no period at its end"),
    "lines": ('yield Flag(node, "a\\nb")', "", "acme.log(1)  # <- toy-rule", "a message is one line"),
    "failure": ("raise KeyError", "", "acme.log(1)  # <- toy-rule", "toy-rule failed on snippet.py: KeyError"),
    "undeclared": (
        'yield Flag(node, "toy", "Mend it", (Replace(node, "1"),))', "", "acme.log(1)  # <- toy-rule",
        "toy-rule declares none in `fix`, and yields a fix that is unsafe",
    ),
    "untitled": ('yield Flag(node, "toy", edits=(Replace(node, "1"),))', FIXED := ", fix=(Applicability.UNSAFE,)", "acme.log(1)  # <- toy-rule", "toy-rule: a fix has a title"),
    "no change": ('yield Flag(node, "toy", "Mend it", (Replace(node, "acme.log(1)"),))', FIXED, "acme.log(1)  # <- toy-rule", "toy-rule: the fix changes nothing"),
    "no end": ('yield Flag(node, "toy", "Mend it", (Replace(node, "acme.log(acme.log(1))"),))', FIXED, "acme.log(1)  # <- toy-rule", "toy-rule still reports what it fixed"),
    "another fix": ('yield Flag(node, "toy", "Mend it", (Replace(node, "1"),))', FIXED, "acme.log(1)  # <- toy-rule", "the fixes make\n"),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_the_check_of_a_snippet_can_fail(site: Site, name: str) -> None:
    body, more, line, said = BROKEN[name]
    text = toy(body=body, more=more).replace("import Call", "import Applicability, Replace, Call")
    site.toy(toy_rule=text)
    with pytest.raises(AssertionError, match=re.escape(said)):
        check_snippet(f"import acme\nimport torch\n{line}\n", "toy-rule", fixed="import acme\nimport torch\n2\n")


def test_tokens_that_keep_a_check_from_what_it_flags_are_seen(site: Site) -> None:
    text = toy().replace("Call,", "Node,").replace('Call("acme.log")', 'Node("Call", (b"absent",))')
    site.toy(toy_rule=text)
    with pytest.raises(AssertionError, match="the prefilter drops findings"):
        check_snippet("import acme\nimport torch\nacme.log(1)\n", "toy-rule")


def test_the_check_of_a_snippet_passes_what_is_right(site: Site) -> None:
    body = 'yield Flag(node, "toy", "Mend it", (Replace(node, "1"),))'
    text = toy(body=body, more=", fix=(Applicability.UNSAFE,)").replace(
        "import Call", "import Applicability, Replace, Call"
    )
    site.toy(toy_rule=text)
    check_snippet(
        "import acme\nimport torch\nacme.log(1)  # <- toy-rule\n", "toy-rule", fixed="import acme\nimport torch\n1\n"
    )
    assert find("toy-rule") in all_rules()


# With pip


@pytest.mark.slow
@pytest.mark.xdist_group("packaging")
def test_the_pack_of_the_page_is_built_installed_tested_and_used(tmp_path: Path) -> None:
    source = tmp_path / "source"
    for name, text in SHOWN.items():
        path = source / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (source / "torchlint.toml").rename(tmp_path / "torchlint.toml")
    base = tmp_path / "environment"
    venv.create(base, with_pip=False)
    paths = {"base": str(base), "platbase": str(base)}
    packages = Path(sysconfig.get_path("purelib", "venv", paths))
    # torchlint and its dependencies are those of the environment that runs the tests.
    (packages / "dependencies.pth").write_text(f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n")
    interpreter = str(Path(sysconfig.get_path("scripts", "venv", paths)) / "python")
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "TORCHLINT_", "PYTEST"))
    }

    def call(*command: str, cwd: Path = tmp_path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(command, cwd=cwd, env=kept, capture_output=True, text=True, check=False)

    options = ("--quiet", "--no-index", "--no-deps", "--no-build-isolation")
    installed = call(sys.executable, "-m", "pip", "--python", interpreter, "install", *options, str(source))
    assert installed.returncode == 0, installed.stderr
    (tmp_path / "train.py").write_text(TRAIN)
    module = (interpreter, "-m", "torchlint")
    listed = call(*module, "rules")
    assert (listed.returncode, listed.stderr) == (0, "")
    assert "ACME301  acme-log-tensor" in listed.stdout
    assert "formats its value at once" in call(*module, "explain", "ACME301").stdout
    fixed = call(*module, "fix", "--unsafe-fixes", "--select", "ACME", "--output-format", "concise", "train.py")
    assert fixed.returncode == 1, fixed.stderr
    assert "ACME302" in fixed.stdout
    assert "acme.log_later(" in (tmp_path / "train.py").read_text()
    tested = call(interpreter, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests", cwd=source)
    assert tested.returncode == 0, tested.stdout
    assert "4 passed" in tested.stdout
    removed = call(sys.executable, "-m", "pip", "--python", interpreter, "uninstall", "--yes", "acme-torchlint")
    assert removed.returncode == 0, removed.stderr
    assert "ACME" not in call(*module, "rules").stdout
