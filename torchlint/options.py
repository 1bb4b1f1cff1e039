"""The keys of a configuration file: their types, what they mean, and the JSON Schema that tells editors so."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, Meta, UnsetType

from torchlint import declared

SCHEMA_URL = "https://raw.githubusercontent.com/torchlint/torchlint/main/torchlint/torchlint.schema.json"

SeverityWord: TypeAlias = Literal["note", "warning"]
OutputFormat: TypeAlias = Literal[
    "full", "concise", "json", "github", "gitlab", "sarif", "junit", "rdjson", "pylint", "azure"
]


class Verify(msgspec.Struct, forbid_unknown_fields=True, rename="kebab", frozen=True):
    """What `torchlint verify` and `fix --verified` do where the command line does not say."""

    entry: Annotated[
        str | UnsetType,
        Meta(
            description="What is run: a program, by its path from this file's folder, or `module:function`.",
            examples=["train.py"],
        ),
    ] = UNSET
    args: Annotated[
        tuple[str, ...] | UnsetType,
        Meta(description="The arguments of the program in `entry`.", examples=[["--epochs", "1"]]),
    ] = UNSET
    device: Annotated[
        Literal["cuda", "cpu", "sim", "mps", "xpu"] | UnsetType,
        Meta(description="The device that is measured on; `cuda` by default.", examples=["sim"]),
    ] = UNSET
    allow_write: Annotated[
        tuple[str, ...] | UnsetType,
        Meta(description="Folders, from this file's, that the code that runs may write to.", examples=[["runs"]]),
    ] = UNSET
    python: Annotated[
        str | UnsetType,
        Meta(description="The Python that has the packages of the code.", examples=[".venv/bin/python"]),
    ] = UNSET
    budget: Annotated[
        Annotated[str, Meta(pattern=r"^[0-9]+(\.[0-9]+)?[smh]?$")] | UnsetType,
        Meta(description="How long a run may take.", examples=["10m"]),
    ] = UNSET
    steps: Annotated[
        Annotated[int, Meta(ge=1)] | UnsetType,
        Meta(description="How many steps of a program are counted; all by default.", examples=[100]),
    ] = UNSET


class Options(msgspec.Struct, forbid_unknown_fields=True, rename="kebab", frozen=True):
    """What one file says; a key that it leaves out is `UNSET`. Every key has an example, which errors quote."""

    select: Annotated[
        tuple[str, ...] | UnsetType,
        Meta(
            description="The rules to run: codes, prefixes of codes, names, groups, or `ALL`. Replaces the default.",
            examples=[["TL301"]],
        ),
    ] = UNSET
    ignore: Annotated[
        tuple[str, ...] | UnsetType,
        Meta(
            description="Rules not to run. The narrower of `select` and `ignore` wins, `ignore` where they are equal.",
            examples=[["TL302"]],
        ),
    ] = UNSET
    extend_select: Annotated[
        tuple[str, ...] | UnsetType,
        Meta(description="Rules to run besides those that are selected already.", examples=[["TL305"]]),
    ] = UNSET
    per_file_ignores: Annotated[
        dict[str, tuple[str, ...]] | UnsetType,
        Meta(
            description="Rules not to run in the files that a pattern matches (a name, or a path from this file's "
            "folder); a pattern that starts with `!` means all other files.",
            examples=[{"tests/**": ["ALL"]}],
        ),
    ] = UNSET
    extend_per_file_ignores: Annotated[
        dict[str, tuple[str, ...]] | UnsetType,
        Meta(
            description="As `per-file-ignores`, besides those of the file that is extended.",
            examples=[{"tests/**": ["ALL"]}],
        ),
    ] = UNSET
    exclude: Annotated[
        tuple[str, ...] | UnsetType,
        Meta(
            description="Names or paths of files and folders to pass over. Replaces the default, which holds virtual "
            "environments, caches, and build folders.",
            examples=[["vendored"]],
        ),
    ] = UNSET
    extend_exclude: Annotated[
        tuple[str, ...] | UnsetType,
        Meta(description="Files and folders to pass over besides those of `exclude`.", examples=[["vendored"]]),
    ] = UNSET
    respect_gitignore: Annotated[
        bool | UnsetType,
        Meta(description="Whether to pass over what git ignores; true by default.", examples=[False]),
    ] = UNSET
    force_exclude: Annotated[
        bool | UnsetType,
        Meta(
            description="Whether `exclude` holds for files named on the command line too; false by default.",
            examples=[True],
        ),
    ] = UNSET
    include_tests: Annotated[
        bool | UnsetType,
        Meta(description="Whether to check tests like other code; false by default.", examples=[True]),
    ] = UNSET
    preview: Annotated[
        bool | UnsetType,
        Meta(
            description="Whether preview rules run: those on by default, and those that prefixes, groups, and `ALL` "
            "select; false by default.",
            examples=[True],
        ),
    ] = UNSET
    severity: Annotated[
        dict[str, SeverityWord] | UnsetType,
        Meta(
            description="How severe the findings of a rule are, whatever is doubtful about them: `warning` or `note`, "
            "under the rule's name, code, prefix or group; the narrowest counts.",
            examples=[{"TL201": "note"}],
        ),
    ] = UNSET
    per_file_severity: Annotated[
        dict[str, SeverityWord] | UnsetType,
        Meta(
            description="How severe all findings are in the files that a pattern matches (a name, or a path from this "
            "file's folder); counts before `severity`, and the last pattern that matches counts.",
            examples=[{"examples/**": "note"}],
        ),
    ] = UNSET
    level: Annotated[
        SeverityWord | UnsetType,
        Meta(description="The least severe findings to report; `note` by default.", examples=["warning"]),
    ] = UNSET
    fail_on: Annotated[
        SeverityWord | UnsetType,
        Meta(
            description="The least severe findings for which the exit status is 1; `warning` by default.",
            examples=["note"],
        ),
    ] = UNSET
    output_format: Annotated[
        OutputFormat | UnsetType, Meta(description="How findings are written; `full` by default.", examples=["concise"])
    ] = UNSET
    baseline: Annotated[
        str | UnsetType,
        Meta(
            description="A file of findings that are not reported, from this one's folder; `check --write-baseline` "
            "writes it.",
            examples=["torchlint-baseline.json"],
        ),
    ] = UNSET
    fix: Annotated[
        bool | UnsetType, Meta(description="Whether `check` applies fixes; false by default.", examples=[True])
    ] = UNSET
    unsafe_fixes: Annotated[
        bool | UnsetType,
        Meta(
            description="Whether fixes that may change what a program computes are applied; false by default.",
            examples=[True],
        ),
    ] = UNSET
    cache_dir: Annotated[
        str | UnsetType,
        Meta(
            description="The folder of the cache, inside this file's; by default one in the user's own cache folder.",
            examples=[".cache/torchlint"],
        ),
    ] = UNSET
    target_torch: Annotated[
        Annotated[str, Meta(pattern=r"^[0-9]{1,3}\.[0-9]{1,3}$")] | UnsetType,
        Meta(
            description="The oldest PyTorch that the code runs with: no rule advises what it does not have, and no "
            "fix uses it.",
            examples=["2.4"],
        ),
    ] = UNSET
    hot: Annotated[
        tuple[str, ...] | UnsetType,
        Meta(
            description="Functions that run at each batch though nothing shows it: a module, or a file by its path "
            "from this one's folder, a colon, and the function.",
            examples=[["package.module:Class.method", "train.py:fit"]],
        ),
    ] = UNSET
    dataloader_workers: Annotated[
        Annotated[int, Meta(ge=1)] | UnsetType,
        Meta(description="The `num_workers` that fixes give to a `DataLoader` without one.", examples=[4]),
    ] = UNSET
    extend: Annotated[
        str | UnsetType,
        Meta(
            description="Another configuration file, from this one's folder; what is said here wins over it.",
            examples=["../torchlint.toml"],
        ),
    ] = UNSET
    rules: Annotated[
        dict[str, dict[str, Any]] | UnsetType,
        Meta(description="A table of options for each rule that has any, under the rule's name.", examples=[{}]),
    ] = UNSET
    verify: Annotated[
        Verify | UnsetType,
        Meta(
            description="A table of what `torchlint verify` runs, and how: `entry`, `args`, `device`, `allow-write`, "
            "`python`, `budget` and `steps`.",
            examples=[{"entry": "train.py", "args": ["--epochs", "1"]}],
        ),
    ] = UNSET


def keys(table: type[msgspec.Struct] = Options) -> tuple[str, ...]:
    """The keys as a file spells them."""
    return tuple(field.encode_name for field in msgspec.structs.fields(table))


def properties() -> dict[str, dict[str, Any]]:
    """The JSON Schema of each key's value, the rules aside."""
    definitions: dict[str, Any] = msgspec.json.schema(Options)["$defs"]
    found: dict[str, dict[str, Any]] = definitions["Options"]["properties"]
    said = {key: found["verify"][key] for key in ("description", "examples")}
    nested = {key: definitions["Verify"][key] for key in ("type", "properties", "additionalProperties")}
    return {**found, "verify": said | nested}


def schema() -> dict[str, Any]:
    """The JSON Schema of a configuration file, with the selectors and the options of the rules there are."""
    from torchlint.registry import all_rules

    found = properties()
    selectors = {"type": "array", "items": {"$ref": "#/definitions/selector"}}
    for key in ("select", "ignore", "extend-select"):
        found[key] |= selectors
    for key in ("per-file-ignores", "extend-per-file-ignores"):
        found[key]["additionalProperties"] = selectors
    found["hot"]["items"] = {"type": "string", "pattern": declared.PATTERN}
    found["rules"] |= {
        "properties": {
            rule.name: {
                "description": rule.summary,
                "type": "object",
                "properties": {
                    name.replace("_", "-"): {"type": JSON_TYPES[type(value)], "default": value}
                    for name, value in rule.options
                },
                "additionalProperties": False,
            }
            for rule in all_rules()
            if rule.options
        },
        "additionalProperties": False,
    }
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": SCHEMA_URL,
        "title": "torchlint",
        "description": "The configuration of torchlint: `torchlint.toml`, or [tool.torchlint] in pyproject.toml.",
        "type": "object",
        "properties": found,
        "additionalProperties": False,
        "definitions": {
            "selector": {"description": "A rule or several.", "type": "string", "enum": list(selectors_known())}
        },
    }


JSON_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string"}


def selectors_known() -> tuple[str, ...]:
    """Every selector that matches a rule: `ALL`, groups, prefixes and codes, names."""
    from torchlint.registry import all_rules

    rules = all_rules()
    groups = {rule.group for rule in rules}
    prefixes = {
        rule.code[:length]
        for rule in rules
        for length in range(len(rule.code.rstrip("0123456789")), len(rule.code) + 1)
    }
    return ("ALL", *sorted(groups), *sorted(prefixes), *sorted(rule.name for rule in rules))
