"""Write what SchemaStore takes: the schema of the configuration, and files that it accepts and refuses.

usage: python -m tools.schemastore OUT

OUT is a checkout of SchemaStore, or any folder; what goes into files that are there is printed. A rule pack may bring
rules of any name: what is checked here by a list of names is there offered, and not demanded.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from torchlint.options import properties, schema

ADDRESS = "https://json.schemastore.org/torchlint.json"
CATALOGUE = {
    "name": "torchlint",
    "description": "Configuration of torchlint, a linter for the speed of PyTorch programs",
    "fileMatch": ["torchlint.toml", ".torchlint.toml"],
    "url": ADDRESS,
}
PYPROJECT = {
    "torchlint": {
        "$ref": ADDRESS,
        "title": "Linter for the speed of PyTorch programs",
        "description": "Finds the lines that make a PyTorch program slow",
    }
}
# What no configuration may say, each a file.
REFUSED = {
    "unknown-key": 'slect = ["TL301"]\n',
    "wrong-severity": '[severity]\nTL301 = "error"\n',
    "wrong-version": 'target-torch = "2.4.1"\n',
}


def store_schema() -> dict[str, Any]:
    """The schema under its address in the store."""
    found = schema()
    names = found["definitions"]["selector"].pop("enum")
    del found["definitions"]["selector"]["type"]
    found["definitions"]["selector"]["anyOf"] = [{"type": "string", "enum": names}, {"type": "string"}]
    found["properties"]["rules"]["additionalProperties"] = {"type": "object"}
    return found | {"$id": ADDRESS}


def accepted() -> str:
    """A file in TOML that sets each key to its example."""
    lines, tables = [], []
    for key, shape in properties().items():
        value = shape["examples"][0]
        if isinstance(value, dict):
            tables += [f"\n[{key}]", *(f"{_key(name)} = {json.dumps(inner)}" for name, inner in value.items())]
        else:
            lines.append(f"{key} = {json.dumps(value)}")
    return "\n".join((*lines, *tables)) + "\n"


def main() -> int:
    """Write the files, and print the entries."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path)
    src = parser.parse_args().out / "src"
    _write(src / "schemas" / "json" / "torchlint.json", json.dumps(store_schema(), indent=2) + "\n")
    _write(src / "test" / "torchlint" / "torchlint.toml", accepted())
    for name, text in REFUSED.items():
        _write(src / "negative_test" / "torchlint" / f"{name}.toml", text)
    print("src/api/json/catalog.json:", json.dumps(CATALOGUE, indent=2))
    print("src/schemas/json/pyproject.json, properties.tool.properties:", json.dumps(PYPROJECT, indent=2))
    return 0


def _key(name: str) -> str:
    return name if name.replace("-", "").replace("_", "").isalnum() else json.dumps(name)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
