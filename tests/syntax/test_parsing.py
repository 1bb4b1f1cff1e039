"""LibCST's classes change in processes that are torchlint's own and in no other, and what is found is the same in both."""

from __future__ import annotations

import io
import multiprocessing
import subprocess
import sys
from pathlib import Path

import pytest

from torchlint.framed import send
from torchlint.lsp.analysis import Rest
from torchlint.registry import all_rules

FIXTURES = Path(__file__).parents[2] / "fixtures"
TEXT = "import torch\n\n\ndef f(a, *b, c: int = 1, **d):\n    return [a, b[0:1, ...], {'k': c}, *d]  # note\n"
SLOW = "import torch\n\n\ndef mask(size):  # torchlint: hot[per-batch]\n    return torch.zeros(size, size).cuda()\n"
UNTOUCHED = '''
def is_untouched():
    """Whether LibCST is as it comes."""
    import libcst as cst
    from abc import ABCMeta

    try:
        cst.Name("x").value = "y"
    except Exception as error:
        is_frozen = type(error).__name__ == "FrozenInstanceError"
    else:
        is_frozen = False
    kinds = [cst.CSTNode]
    for kind in kinds:
        kinds += type.__subclasses__(kind)
    return is_frozen and all(type(kind) is ABCMeta for kind in kinds)

'''
TELLS_AT_ITS_END = f"""{UNTOUCHED}
import atexit, sys
atexit.register(lambda: print("untouched:", is_untouched(), file=sys.stderr))
"""


def run(code: str, folder: Path, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Another interpreter that has run the code."""
    return subprocess.run([sys.executable, "-c", code], cwd=folder, input=given, capture_output=True, check=False)


# Who uses torchlint as a library


def test_in_somebody_elses_tests_nothing_changes(tmp_path: Path) -> None:
    (tmp_path / "test_theirs.py").write_text(f"""{UNTOUCHED}
from torchlint.linter import lint
from torchlint.registry import all_rules
from torchlint.settings import Settings
from torchlint.source import SourceFile
from torchlint.syntax.parsing import parse


def test_it():
    assert lint(SourceFile("a.py", {SLOW!r}), Settings(tuple(rule.name for rule in all_rules()))).findings
    body = parse("x = 1\\ny = 2\\n").body
    assert body[0].trailing_whitespace is not body[1].trailing_whitespace
    assert is_untouched()
""")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "test_theirs.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    "use",
    [
        "from torchlint.linter import lint; assert lint(source, settings).findings",
        "from torchlint.fixer import fix; assert fix(source, settings, Applicability.SAFE).source.text != source.text",
        "from torchlint.pool import Job, work; assert [*work([Job('a.py', source.text.encode(), settings)])]",
        "from torchlint import engine; engine.expect_edits(); assert engine.examine(source, all_rules(), settings).findings",
    ],
    ids=["lint", "fix", "pool", "edits"],
)
def test_who_uses_it_as_a_library_finds_libcst_as_it_was(use: str, tmp_path: Path) -> None:
    code = (
        "from torchlint.registry import all_rules\nfrom torchlint.settings import Settings\n"
        "from torchlint.source import SourceFile\nfrom torchlint.finding import Applicability\n"
        f"settings = Settings(tuple(rule.name for rule in all_rules()))\nsource = SourceFile('a.py', {SLOW!r})\n"
    )
    done = run(f"{TELLS_AT_ITS_END}\n{code}\n{use}\n", tmp_path)
    assert done.returncode == 0, done.stderr
    assert b"untouched: True" in done.stderr


@pytest.mark.slow
def test_importing_any_module_changes_nothing(tmp_path: Path) -> None:
    code = (
        "import importlib, pkgutil\n"
        "for package in ('syntax', 'semantics', 'edits', 'analyses', 'rules'):\n"
        "    path = importlib.import_module(f'torchlint.{package}').__path__\n"
        "    for module in pkgutil.walk_packages(path, f'torchlint.{package}.'):\n"
        "        importlib.import_module(module.name)\n"
        "print(len([name for name in sys.modules if name.startswith('torchlint')]))\n"
    )
    done = run(f"{TELLS_AT_ITS_END}\n{code}", tmp_path)
    assert done.returncode == 0, done.stderr
    assert b"untouched: True" in done.stderr
    assert int(done.stdout) > len(all_rules())


# Processes of torchlint's own


@pytest.mark.parametrize(
    "start", ["from torchlint.__main__ import main; main()", "runpy.run_module('torchlint', run_name='__main__')"]
)
def test_the_process_of_the_command_line_is_torchlints_own(start: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(SLOW)
    code = f"{TELLS_AT_ITS_END}\nimport runpy\nsys.argv = ['torchlint', 'check', '--no-cache', 'a.py']\n{start}\n"
    done = run(code, tmp_path)
    assert done.returncode == 1, done.stderr
    assert b"untouched: False" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_those_of_a_pool_are_and_the_one_that_starts_them_need_not_be(method: str, tmp_path: Path) -> None:
    (tmp_path / "told.py").write_text(
        f"""{UNTOUCHED}
import multiprocessing
from torchlint import pool
from torchlint.syntax.parsing import parse


def outcome(job):
    parse(job.data.decode())
    return is_untouched()


def serve(connection):
    pool.outcome = outcome
    pool._serve(connection)


if __name__ == "__main__":
    context = multiprocessing.get_context({method!r})
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs,), daemon=True)
    process.start()
    theirs.close()  # else nobody hears that it died
    assert ours.recv() is None
    ours.send(pool.Job("a.py", b"x = 1", None))
    print("theirs:", ours.recv())
    process.kill()
    parse("x = 1")
    print("ours:", is_untouched())
"""
    )
    done = subprocess.run([sys.executable, "told.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "theirs: False\nours: True\n", done.stderr


def test_those_of_the_language_server_are(tmp_path: Path) -> None:
    orders = io.BytesIO()
    send(orders, Rest())  # lints, so that what is needed is loaded
    done = run(f"{TELLS_AT_ITS_END}\nfrom torchlint.lsp.worker import main; main()", tmp_path, orders.getvalue())
    assert done.returncode == 0, done.stderr
    assert b"untouched: False" in done.stderr


# What such a process sees

IN_AN_OWN_PROCESS = """
import sys
import libcst as cst
from pathlib import Path
from torchlint import engine
from torchlint.syntax.parsing import own_process, parse
from torchlint.registry import all_rules
from torchlint.settings import Settings
from torchlint.source import SourceFile

texts = {path: Path(path).read_text(encoding="utf-8") for path in sys.stdin.read().split()}
settings = Settings(tuple(rule.name for rule in all_rules()))
plain = {path: repr(cst.parse_module(text)) for path, text in texts.items()}
before = {path: repr(engine.examine(SourceFile("a.py", text), all_rules(), settings)) for path, text in texts.items()}
own_process()
engine._tree.cache_clear()
found = {}
for path, text in texts.items():
    tree = parse(text)
    assert tree.code == text and repr(tree) == plain[path], path
    assert tree.deep_equals(cst.parse_module(text)), path
    found[path] = repr(engine.examine(SourceFile("a.py", text), all_rules(), settings))
    assert found[path] == before[path], path
print(len(found))
"""


def test_the_tree_is_what_libcst_gives_and_so_is_what_is_found() -> None:
    """As far as `repr` tells, which names every type and field."""
    paths = sorted(map(str, FIXTURES.glob("*/slow.py")))[::3]
    done = run(IN_AN_OWN_PROCESS, FIXTURES, "\n".join(paths).encode())
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) == len(paths) > 20


@pytest.mark.parametrize("text", [TEXT, "def f(:\n"])
def test_what_is_parsed_and_made_by_others_there_is_as_it_was(text: str) -> None:
    """Names of the module, checks of what is made by hand, defaults: all but who answers `isinstance`, and frozen fields."""
    code = f"""
import libcst as cst
from torchlint.syntax.parsing import own_process, parse

def raises(error, make):
    try:
        make()
    except error:
        return True
    return False

own_process()
kinds = {{name: getattr(cst, name) for name in dir(cst)}}
assert raises(cst.ParserSyntaxError, lambda: parse({text!r})) is ({text!r} != {TEXT!r})
assert {{name: getattr(cst, name) for name in kinds}} == kinds
assert raises(cst.CSTValidationError, lambda: cst.Name(""))
assert raises(cst.CSTValidationError, lambda: cst.Subscript(cst.Name("x"), []))
assert raises(TypeError, lambda: cst.Name("x", value2="y"))

shared = parse("x = 1\\ny = 2\\n").body
assert shared[0].trailing_whitespace is shared[1].trailing_whitespace
plain = cst.parse_module("x = 1\\ny = 2\\n").body
assert plain[0].trailing_whitespace is not plain[1].trailing_whitespace

def made():
    body = cst.SimpleStatementSuite([cst.Pass()])
    return cst.FunctionDef(cst.Name("f"), cst.Parameters([cst.Param(cst.Name("a"))]), body)

first, second = made(), made()
assert cst.Module([first]).code == "def f(a): pass\\n"
assert first.whitespace_after_def is not second.whitespace_after_def
assert first.with_changes(name=cst.Name("g")).name.value == "g"
assert first != second and first == first and hash(first) != hash(second)
"""
    done = run(code, FIXTURES)
    assert done.returncode == 0, done.stderr
