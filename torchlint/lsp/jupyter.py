"""The server as JupyterLab finds it: what the entry point group `jupyter_lsp_spec_v1` wants to know."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from typing import Any

# As `python -m torchlint`, which would look for modules among the notebooks first.
_START = "import sys; sys.path[:] = filter(None, sys.path); from torchlint.__main__ import main; main()"
_RULES = {"type": "array", "items": {"type": "string"}, "default": []}


def spec(manager: object) -> dict[str, dict[str, Any]]:
    """The specification of the server for jupyter_lsp, by its name; none where it could not run."""
    del manager
    if find_spec("pygls") is None:
        return {}
    return {
        "torchlint": {
            "version": 2,
            "argv": [sys.executable, "-c", _START, "server"],
            "languages": ["python"],
            "mime_types": ["text/x-python", "text/x-ipython", "text/python"],
            "display_name": "torchlint",
            "requires_documents_on_disk": False,
            "urls": {"home": "https://github.com/torchlint/torchlint"},
            "install": {"pip": "pip install 'torchlint[lsp]'"},
            "config_schema": {
                "title": "torchlint",
                "type": "object",
                "properties": {
                    "torchlint.configuration": {
                        "type": ["string", "null"],
                        "default": None,
                        "description": "A TOML file that stands for those of the project.",
                    },
                    "torchlint.select": _RULES
                    | {"description": "Run these rules only: codes, prefixes, names, groups or ALL."},
                    "torchlint.extendSelect": _RULES | {"description": "Run these rules too."},
                    "torchlint.ignore": _RULES | {"description": "Do not run these rules."},
                    "torchlint.preview": {
                        "type": ["boolean", "null"],
                        "default": None,
                        "description": "Also run rules that are new and may change.",
                    },
                    "torchlint.includeTests": {
                        "type": ["boolean", "null"],
                        "default": None,
                        "description": "Also report in tests.",
                    },
                    "torchlint.run": {
                        "type": "string",
                        "enum": ["onType", "onSave"],
                        "default": "onType",
                        "description": "When to look for findings.",
                    },
                },
            },
        }
    }
