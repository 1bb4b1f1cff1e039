"""The schema in the form that SchemaStore takes."""

from __future__ import annotations

from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
import tomli
from schemastore import ADDRESS, CATALOGUE, REFUSED, accepted, store_schema

from torchlint.options import properties

SCHEMA = store_schema()


def errors(text: str) -> list[str]:
    found: Any = jsonschema.Draft7Validator(SCHEMA).iter_errors(tomli.loads(text))
    return [error.message for error in found]


def test_it_is_a_schema_at_its_address() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    assert SCHEMA["$id"] == CATALOGUE["url"] == ADDRESS
    assert SCHEMA["$schema"] == "http://json-schema.org/draft-07/schema#"


def test_a_file_with_all_keys_is_accepted() -> None:
    assert tomli.loads(accepted()).keys() >= properties().keys() - {"rules"}
    assert not errors(accepted())


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_wrong_is_refused(name: str) -> None:
    assert len(errors(REFUSED[name])) == 1


def test_rules_of_packs_are_not_refused() -> None:
    assert not errors('select = ["ACME001", "acme-flush-in-loop"]\n[rules.acme-flush-in-loop]\nlimit = 3\n')


def test_the_names_of_our_rules_are_offered() -> None:
    offered, anything = SCHEMA["definitions"]["selector"]["anyOf"]
    assert {"ALL", "TL3", "TL301", "item-in-train-loop"} <= set(offered["enum"])
    assert anything == {"type": "string"}
