"""What JupyterLab is told of the server starts it, and loads nothing that the server needs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import tomli

from torchlint.lsp import jupyter
from torchlint.lsp.settings import SECTION, ClientSettings

ROOT = Path(__file__).parents[2]
INITIALIZE = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"processId":null,"rootUri":null,"capabilities":{}}}'
)


def specified() -> dict[str, Any]:
    return jupyter.spec(None)["torchlint"]


def test_it_is_found_by_the_entry_point() -> None:
    project = tomli.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["jupyter_lsp_spec_v1"] == {"torchlint": f"{jupyter.__name__}:spec"}


def test_it_starts_the_server_and_no_module_of_the_folder(tmp_path: Path) -> None:
    pytest.importorskip("pygls", reason="the language server needs torchlint[lsp]")
    for name in ("asyncio", "pygls", "torchlint"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('a notebook\\'s neighbour was run')\n")
    message = b"Content-Length: %d\r\n\r\n%s" % (len(INITIALIZE), INITIALIZE)
    done = subprocess.run(
        specified()["argv"], cwd=tmp_path, input=message, capture_output=True, timeout=60, check=False
    )
    header, _, body = done.stdout.partition(b"\r\n\r\n")
    assert header, done.stderr.decode()
    assert json.loads(body)["result"]["serverInfo"]["name"] == "torchlint"


def test_it_is_silent_where_the_server_could_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jupyter, "find_spec", lambda _: None)
    assert jupyter.spec(None) == {}


def test_defaults_set_nothing() -> None:
    """JupyterLab sends every default, and what is sent stands above the configuration of the project."""
    properties = specified()["config_schema"]["properties"]
    sent = {key.removeprefix(f"{SECTION}."): value["default"] for key, value in properties.items()}
    assert ClientSettings.of(sent) == (ClientSettings(), [])


def test_what_is_offered_is_understood() -> None:
    samples = {"boolean": True, "string": "onSave", "array": ["TL301"]}
    for key, value in specified()["config_schema"]["properties"].items():
        kinds = [value["type"]] if isinstance(value["type"], str) else value["type"]
        settings, problems = ClientSettings.of({key.removeprefix(f"{SECTION}."): samples[kinds[0]]})
        assert (settings != ClientSettings(), problems) == (True, []), key


def test_it_loads_nothing_heavy() -> None:
    heavy = "{'asyncio', 'click', 'libcst', 'lsprotocol', 'msgspec', 'pygls'}"
    code = f"import sys, torchlint.lsp.jupyter as j; j.spec(None); print(*({heavy} & set(sys.modules)))"
    loaded = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert loaded.split() == []
