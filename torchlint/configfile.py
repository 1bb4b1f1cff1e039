"""Reading a configuration file, and saying to its author in one line what is wrong with it and where."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from torchlint import declared, globs, regular
from torchlint.registry import UnknownRuleError, find, matching, problems

if TYPE_CHECKING:
    from msgspec import ValidationError

    from torchlint.rule import Rule

_SELECTORS = ("select", "ignore", "extend-select")
_SEVERITIES = ("severity", "per-file-severity")
_PATTERNS = ("exclude", "extend-exclude")
_LONGEST_SHOWN = 100
_LONGEST_PATH = 1000
_LONGEST_MESSAGE = 1000
_MOST_ENTRIES = 1000
_MOST_BYTES = 1_000_000
_IGNORES = ("per-file-ignores", "extend-per-file-ignores")


class ConfigError(ValueError):
    """A configuration that cannot be used: one line with the file, the key, what is wrong, and what to write."""


@dataclass(frozen=True, slots=True)
class Document:
    """TOML text. `shown` is its name in messages, `table` leads to what is torchlint's in it."""

    shown: str
    text: str
    table: tuple[str, ...] = ()
    inline: bool = False

    @property
    def place(self) -> str:
        """Where its keys are, if that needs to be said."""
        return f" in [{'.'.join(self.table)}]" if self.table else ""

    def error(self, keys: Sequence[str], message: str, value: str = "") -> ConfigError:
        """What is wrong with the value of `keys`, or with the string `value` in it."""
        return self.error_on(None if self.inline else _row((*self.table, *keys), self.text, value), message)

    def error_on(self, row: int | None, message: str) -> ConfigError:
        """What is wrong with a 1-based row."""
        text = f"{self.shown}: {message}" if row is None else f"{self.shown}:{row}: {message}"
        cut = "" if len(text) <= _LONGEST_MESSAGE else "…"
        return ConfigError(text[:_LONGEST_MESSAGE].replace("\n", "\\n") + cut)


def read(file: Path, root: Path, shown: Callable[[Path], str]) -> list[tuple[Path, dict[str, Any]]]:
    """What a file says, and the files that it extends, the outermost last. Raises `ConfigError`.

    Empty for a pyproject.toml without [tool.torchlint]. The keys are the fields of `options.Options`, those that
    the file has; selectors, patterns, and the options of rules are valid. The folder of the cache is inside `root`,
    which the file's paths are relative to, or for a file that is extended inside its own folder.
    """
    chain: dict[Path, dict[str, Any]] = {}
    document = _document(file, shown)
    values = None if document is None else parse(document)
    while document is not None and values is not None:
        check_paths(document, values)
        _check_cache_dir(document, values, file.parent if chain else root)
        _check_hot_files(document, values, file.parent if chain else root)
        chain[file] = values
        if "extend" not in values:
            break
        file = Path(os.path.normpath(file.parent / expanded(values["extend"], document, ("extend",))))
        if file in chain:
            circle = " extends ".join(shown(path) for path in (*chain, file))
            raise document.error(("extend",), f"`extend` goes in a circle: {circle}")
        if not os.path.isfile(file):  # noqa: PTH113 -- `is_file` raises for long names
            raise document.error(("extend",), f"`extend`: no such file `{values['extend'][:_LONGEST_SHOWN]}`")
        extended = _document(file, shown)
        values = None if extended is None else parse(extended)
        if values is None:
            raise document.error(
                ("extend",), f"`extend`: there is no [tool.torchlint] in `{shown(file)}`; leave it out"
            )
        document = extended
    return list(chain.items())


def _document(file: Path, shown: Callable[[Path], str]) -> Document | None:
    try:
        data = regular.read(file, _MOST_BYTES)
    except OSError as error:
        raise ConfigError(f"{shown(file)}: {reason(error)}") from None
    in_pyproject = file.name == "pyproject.toml"
    if in_pyproject and b"torchlint" not in data:  # most of them: no need to load a parser
        return None
    try:
        text = data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        row = data.count(b"\n", 0, error.start) + 1
        raise ConfigError(f"{shown(file)}:{row}: not UTF-8, which TOML has to be; save the file as UTF-8") from None
    return Document(shown(file), text, ("tool", "torchlint") if in_pyproject else ())


def parse(document: Document) -> dict[str, Any] | None:
    """What a document says, or `None` if it has no table for torchlint. Raises `ConfigError`."""
    import tomli

    try:
        content: Any = tomli.loads(document.text)
    except tomli.TOMLDecodeError as error:
        message = f"invalid TOML: {error.msg[:1].lower()}{error.msg[1:]}"
        raise document.error_on(None if document.inline else error.lineno, message) from None
    except RecursionError:
        raise document.error_on(None, "invalid TOML: it nests too deeply; write it flatter") from None
    except ValueError as error:  # a number of too many digits for Python
        raise document.error_on(None, f"invalid TOML: {str(error).partition(';')[0]}") from None
    for depth, key in enumerate(document.table):
        if key not in content:
            return None
        content = content[key]
        if not isinstance(content, dict):
            keys = document.table[: depth + 1]
            row = _row(keys, document.text, "")
            raise document.error_on(row, f"`{'.'.join(keys)}`: expected a table, got {_a(content)}")
    values = _validated(document, content)
    _check_selectors_and_patterns(document, values)
    if "rules" in values:
        values["rules"] = {
            rule.name: dict(_rule_options(document, rule, name, table))
            for name, table in values["rules"].items()
            for rule in _rules(document, name)
        }
    return {key.replace("-", "_"): value for key, value in values.items()}


def reason(error: OSError) -> str:
    """Why a file cannot be read, in the words of the system."""
    said = error.strerror or str(error)
    return said[:1].lower() + said[1:]


def expanded(said: str, document: Document, keys: Sequence[str] = ("cache-dir",)) -> Path:
    """The path in a value, with the home folder in the place of a tilde. Raises `ConfigError` if it is none."""
    try:
        path = Path(said).expanduser()
        os.path.realpath(path)
    except RuntimeError:
        wrong = "no such user, or one without a home folder"
    except (OSError, ValueError) as error:
        wrong = str(error)
    else:
        if len(said) <= _LONGEST_PATH:
            return path
        wrong = f"more than {_LONGEST_PATH} characters"
    message = f"`{'.'.join(keys)}`: {said[:_LONGEST_SHOWN]!r} is not a path: {wrong}; name another"
    raise document.error(keys, message)


def _check_cache_dir(document: Document, values: Mapping[str, Any], folder: Path) -> None:
    """A file that came with a tree lets nobody write outside of it."""
    said = values.get("cache_dir")
    if said is not None:
        place, inside = (Path(os.path.realpath(path)) for path in (folder / expanded(said, document), folder))
        if place == inside or not place.is_relative_to(inside):
            wrong = f"`cache-dir`: `{said[:_LONGEST_SHOWN]}` is not a folder inside of `{folder}`"
            remedy = "name one, or give any other with `--cache-dir` or TORCHLINT_CACHE_DIR"
            raise document.error(("cache-dir",), f"{wrong}; {remedy}")


def check_paths(document: Document, values: Mapping[str, Any]) -> None:
    """What names a path has to be one, whether something is there or not. Raises `ConfigError`."""
    for key in ("baseline", "cache_dir"):
        if key in values:
            expanded(values[key], document, (key.replace("_", "-"),))
    for key, said in values.get("verify", {}).items():
        if key in ("allow_write", "entry", "python"):
            for path in said if isinstance(said, tuple) else (said,):
                expanded(path, document, ("verify", key.replace("_", "-")))


def _check_hot_files(document: Document, values: Mapping[str, Any], folder: Path) -> None:
    """What `hot` names by the path of its file has to be there."""
    for entry in values.get("hot", ()):
        home, _, _ = entry.rpartition(":")
        if declared.is_file(home) and not os.path.isfile(folder / home):  # noqa: PTH113 -- `is_file` raises for long names
            raise document.error(("hot",), f"`hot`: no such file `{home[:_LONGEST_SHOWN]}`", entry)


def _validated(document: Document, content: dict[str, Any]) -> dict[str, Any]:
    """What msgspec makes of the table, keys spelled as in it."""
    import msgspec

    from torchlint import options  # it imports msgspec, which a run without a configuration does not need

    known = options.keys()
    for key in content:
        if key not in known:
            raise document.error((key,), f"unknown key `{key}`{document.place}; {_hint(key, known)}")
    if isinstance(content.get("verify"), dict):
        known = options.keys(options.Verify)
        for key in content["verify"]:
            if key not in known:
                raise document.error(("verify", key), f"unknown key `{key}` in `verify`; {_hint(key, known)}")
    try:
        values = msgspec.structs.asdict(msgspec.convert(content, options.Options))
    except msgspec.ValidationError:
        _explain(document, content)
    if "verify" in content:
        said = msgspec.structs.asdict(values["verify"])
        values["verify"] = {key: value for key, value in said.items() if value is not msgspec.UNSET}
    return {key: values[key.replace("-", "_")] for key in content}


def _explain(document: Document, content: dict[str, Any]) -> NoReturn:
    """Convert part by part: msgspec's message leaves out the keys of tables whose keys are the user's."""
    import msgspec

    from torchlint import options

    for keys, value, part in _parts(content):
        try:
            msgspec.convert(part, options.Options)
        except msgspec.ValidationError as error:
            schema = options.properties()[keys[0]]
            schema = schema["properties"][keys[1]] if keys[0] == "verify" and keys[1:] else schema
            raise document.error(keys, _mismatch(keys, value, error, schema)) from None
    raise AssertionError("a table is wrong, but none of its parts")


def _parts(content: dict[str, Any]) -> Iterator[tuple[tuple[str, ...], object, dict[str, Any]]]:
    for key, value in content.items():
        if key in (*_IGNORES, *_SEVERITIES, "rules", "verify") and isinstance(value, dict):
            for name, inner in value.items():
                yield (key, name), inner, {key: {name: inner}}
        else:
            yield (key,), value, {key: value}


def _mismatch(keys: Sequence[str], value: object, error: ValidationError, schema: Mapping[str, Any]) -> str:
    """Such as: `select`: expected an array, got a string; write `select = ["TL301"]`."""
    text, _, path = str(error).partition(" - at ")
    name = ".".join(map(_key, keys))
    index = re.search(r"\[([0-9]+)\]`$", path)
    if index is not None and isinstance(value, list):
        name += index[0][:-1]
        value = value[int(index[1])]
    if text.startswith("Invalid enum value"):
        choices = schema["enum"] if keys[0] not in _SEVERITIES else schema["additionalProperties"]["enum"]
        return f"`{name}`: unknown value {_toml(value)}; {_hint(str(value), choices)}"
    expected, _, got = re.sub(r"`(\w+)`", lambda match: _with_article(match[1]), text).partition(", got ")
    example = _toml(schema["examples"][0])
    expected = re.sub(" matching regex .*", f" such as {example}", expected)
    expected = expected[:1].lower() + expected[1:]
    of_table = keys[0] == "verify" and len(keys) > 1
    remedy = f"; write `{keys[of_table]} = {example}`" if keys[0] != "rules" else ""
    return f"`{name}`: {expected}, got {got or _toml(value)}{remedy}"


def _check_selectors_and_patterns(document: Document, values: Mapping[str, Any]) -> None:
    for keys, selector in _selectors(values):
        try:
            matching(selector)
        except UnknownRuleError as error:
            raise document.error(keys, f"`{keys[0]}`: {error}", selector) from None
    for key in (*_PATTERNS, *_IGNORES, _SEVERITIES[1]):
        if key not in _PATTERNS and len(values.get(key, ())) > _MOST_ENTRIES:
            raise document.error((key,), f"`{key}`: {len(values[key])} patterns; torchlint takes up to {_MOST_ENTRIES}")
        try:
            globs.check_count(values.get(key, ()))
        except ValueError as error:
            raise document.error((key,), f"`{key}`: {error}") from None
        for pattern in values.get(key, ()):
            try:
                globs.check(pattern)
            except ValueError as error:
                raise document.error((key,), f"`{key}`: {error}", pattern) from None
    for entry in values.get("hot", ()):
        if not declared.is_entry(entry):
            remedy = "write `package.module:Class.method` or `path/from/here.py:function`"
            raise document.error(
                ("hot",), f"`hot`: {_toml(entry[:_LONGEST_SHOWN])} is no function of a file; {remedy}", entry
            )


def _selectors(values: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    for key in _SELECTORS:
        for selector in values.get(key, ()):
            yield (key,), selector
    for selector in values.get(_SEVERITIES[0], ()):
        yield (_SEVERITIES[0], selector), selector
    for key in _IGNORES:
        for pattern, selectors in values.get(key, {}).items():
            for selector in selectors:
                yield (key, pattern), selector


def _rules(document: Document, name: str) -> tuple[Rule, ...]:
    """The rule of this name; none while a rule pack cannot be used, which may have such a rule."""
    try:
        return (find(name),)
    except UnknownRuleError as error:
        if problems():
            return ()
        raise document.error(("rules", name), f"`rules`: {error}") from None


def _rule_options(document: Document, rule: Rule, name: str, table: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """The options of one rule under the names that it knows; a file writes hyphens, as in all its keys."""
    known = {option.replace("_", "-"): (option, default) for option, default in rule.options}
    for key, value in table.items():
        keys = ("rules", name, key)
        if key not in known:
            hint = _hint(key, known) if known else f"`{rule.name}` has no options"
            raise document.error(keys, f"unknown key `{key}` in `rules.{name}`; {hint}")
        option, default = known[key]
        given = float(value) if isinstance(default, float) and type(value) is int else value
        if type(given) is not type(default):
            message = f"expected {_a(default)}, got {_a(value)}; write `{key} = {_toml(default)}`"
            raise document.error(keys, f"`rules.{name}.{key}`: {message}")
        yield option, given


def _hint(word: str, known: Iterable[str]) -> str:
    from difflib import get_close_matches  # only on the way to an error

    names = list(known)
    near = get_close_matches(word.replace("_", "-").lower(), names, n=1)
    return f"did you mean `{near[0]}`?" if near else f"there are {', '.join(f'`{name}`' for name in names)}"


_TOML_TYPES = {
    "array": "an array",
    "bool": "a boolean",
    "dict": "a table",
    "int": "an integer",
    "list": "an array",
    "object": "a table",
    "str": "a string",
}


def _with_article(type_name: str) -> str:
    return _TOML_TYPES.get(type_name, f"a {type_name}")


def _a(value: object) -> str:
    return _with_article(type(value).__name__)


def _toml(value: object) -> str:
    """A value as one would write it."""
    match value:
        case dict():
            return "{ " + ", ".join(f"{_key(key)} = {_toml(inner)}" for key, inner in value.items()) + " }"
        case list():
            return "[" + ", ".join(_toml(inner) for inner in value) + "]"
        case bool():
            return str(value).lower()
        case str():
            import json  # its strings are TOML's; only on the way to an error

            return json.dumps(value, ensure_ascii=False)
        case _:
            return str(value)


def _key(name: str) -> str:
    return name if re.fullmatch(r"[\w-]+", name) else _toml(name)


def _row(keys: Sequence[str], text: str, value: str) -> int | None:
    """The 1-based row on which the value of `keys` begins, or the string `value` inside of it.

    TOML readers keep no positions. So ask the reader again: the rows above the wanted one are TOML without these
    keys, and some rows from there on are TOML with them.
    """
    rows = text.split("\n")
    attempts = 0
    for first, row in enumerate(rows):
        if keys[-1] not in row:
            continue
        attempts += 1
        if attempts > _MOST_ATTEMPTS:
            return None
        if _holds(keys, rows[:first]) is not False:
            continue
        for last in range(first + 1, len(rows) + 1):
            attempts += 1
            if attempts > _MOST_ATTEMPTS:
                return first + 1
            holds = _holds(keys, rows[:last])
            if holds:
                quoted = (f'"{value}"', f"'{value}'")
                inside = (at for at in range(first, len(rows)) if any(text in rows[at] for text in quoted))
                return next(inside, first) + 1 if value else first + 1
            if holds is False:
                break
    return None


_MOST_ATTEMPTS = 200  # each reads all rows above


def _holds(keys: Sequence[str], rows: list[str]) -> bool | None:
    """Whether these rows have a value for `keys`; `None` if they are no TOML."""
    import tomli

    try:
        table: Any = tomli.loads("\n".join(rows))
    except tomli.TOMLDecodeError:
        return None
    for key in keys:
        if not isinstance(table, dict) or key not in table:
            return False
        table = table[key]
    return True
