"""From an Arrow table of files to one of findings, a row for each file: the one function that all engines run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from torchlint.config import Overrides
from torchlint.corpus.inside import Limits
from torchlint.corpus.keeper import Keeper
from torchlint.corpus.texts import Checked, Issue, Status, Text

if TYPE_CHECKING:
    from torchlint.source import Place

# What a table of files has to have.
COLUMNS = ("repository", "path", "content")

_PLACE = (("line", pa.int32()), ("column", pa.int32()), ("end_line", pa.int32()), ("end_column", pa.int32()))
FINDING = pa.struct(
    [
        ("code", pa.string()),
        ("name", pa.string()),
        ("severity", pa.string()),
        ("message", pa.string()),
        ("help", pa.string()),
        *_PLACE,
        ("cell", pa.int32()),
        ("frequency", pa.string()),
        ("called_from", pa.string()),
        ("doubts", pa.list_(pa.string())),
        ("fix", pa.string()),
        ("places", pa.list_(pa.struct([*_PLACE, ("cell", pa.int32())]))),
    ]
)
SCHEMA = pa.schema(
    [
        ("repository", pa.string()),
        ("path", pa.string()),
        ("status", pa.string()),
        ("message", pa.string()),
        ("findings", pa.list_(FINDING)),
    ]
)


class TableError(Exception):
    """A table that is none of files; the message says why in one line."""


class Options(NamedTuple):
    """What holds for all files: the rules and the limits, and under which names the columns stand."""

    overrides: Overrides = Overrides()
    limits: Limits = Limits()
    columns: tuple[tuple[str, str], ...] = ()

    def names(self) -> tuple[str, ...]:
        """The names of the columns, in the order of `COLUMNS`."""
        given = dict(self.columns)
        return tuple(given.get(name, name) for name in COLUMNS)


class Checker:
    """Checks batches of files. It keeps a process for that, which ends with it."""

    def __init__(self, options: Options | None = None) -> None:
        self.options = options or Options()
        self.counts: Counter[str] = Counter()
        self._keeper = Keeper(self.options.overrides, self.options.limits)

    @property
    def peak(self) -> int:
        """The most bytes of memory that a process has had."""
        return self._keeper.peak

    def check(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """A row for each row, in this order. The files of one repository in the batch know each other.

        Raises `TableError`.
        """
        check_schema(batch.schema, self.options)
        repositories, paths, contents = (_values(batch, name) for name in self.options.names())
        together: dict[object, dict[int, Text]] = {}
        rows: dict[int, Checked] = {}
        for number, (repository, path, content) in enumerate(zip(repositories, paths, contents, strict=True)):
            if content is None or path is None:
                missing = "content" if content is None else "path"
                rows[number] = Checked(Status.UNREADABLE, f"the row has no {missing}")
            else:
                data = content.encode(errors="surrogatepass") if isinstance(content, str) else content
                # Of files whose repository nobody names none knows another.
                home: object = number if repository is None else repository
                together.setdefault(home, {})[number] = Text(path, data)
                self.counts["bytes"] += len(data)
        for files in together.values():
            rows |= self._keeper.lint(files)
        self._count(rows, len(together))
        return _batch(repositories, paths, [rows[number] for number in range(len(paths))])

    def __call__(self, table: pa.Table) -> pa.Table:
        """The same for a table, as Ray Data hands it over."""
        batches = table.combine_chunks().to_batches()
        return pa.Table.from_batches([self.check(batch) for batch in batches], SCHEMA)

    def close(self) -> None:
        """End the process."""
        self._keeper.close()

    def stop(self) -> None:
        """End the process for good, whatever it is at: a thread that waits for it gets a `KeeperError`."""
        self._keeper.stop()

    def __enter__(self) -> Checker:  # noqa: PYI034 - `Self` is of Python 3.11
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _count(self, rows: Mapping[int, Checked], repositories: int) -> None:
        self.counts.update({"files": len(rows), "repositories": repositories})
        self.counts.update(row.status.value for row in rows.values())
        self.counts["findings"] += sum(len(row.issues) for row in rows.values())


def check(batch: pa.RecordBatch, options: Options | None = None) -> pa.RecordBatch:
    """Check the files of one batch: `Checker.check`, with a process that ends when it is done."""
    with Checker(options) as checker:
        return checker.check(batch)


def check_batches(batches: Iterable[pa.RecordBatch], options: Options | None = None) -> Iterator[pa.RecordBatch]:
    """Check batch after batch, as Spark's `mapInArrow` hands them over."""
    with Checker(options) as checker:
        for batch in batches:
            yield checker.check(batch)


def check_schema(schema: pa.Schema, options: Options) -> None:
    """Raises `TableError` where a column is missing, or holds what it cannot."""
    for column, name in zip(COLUMNS, options.names(), strict=True):
        if name not in schema.names:
            has = ", ".join(schema.names)
            raise TableError(
                f"there is no column `{name}`, only {has}; `--columns {column}=NAME` says what it is called"
            )
        kind = schema.field(name).type
        kind = kind.value_type if pa.types.is_dictionary(kind) else kind
        allowed = _is_text(kind) or (column == "content" and _is_binary(kind))
        if not allowed:
            raise TableError(f"the column `{name}` is of type {kind}; it has to be of strings")


def _is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _is_binary(kind: pa.DataType) -> bool:
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind))


def _values(batch: pa.RecordBatch, name: str) -> list[Any]:
    values: list[Any] = batch.column(name).to_pylist()
    return values


def _batch(repositories: list[Any], paths: list[Any], rows: list[Checked]) -> pa.RecordBatch:
    columns = (
        pa.array(repositories, pa.string()),
        pa.array(paths, pa.string()),
        pa.array([row.status.value for row in rows], pa.string()),
        pa.array([row.message for row in rows], pa.string()),
        pa.array([[_finding(issue) for issue in row.issues] for row in rows], pa.list_(FINDING)),
    )
    return pa.RecordBatch.from_arrays(list(columns), schema=SCHEMA)


def _finding(issue: Issue) -> dict[str, Any]:
    return {
        "code": issue.code,
        "name": issue.name,
        "severity": issue.severity,
        "message": issue.message,
        "help": issue.help,
        **_span(issue.start, issue.end),
        "frequency": issue.frequency,
        "called_from": issue.called_from,
        "doubts": list(issue.doubts),
        "fix": issue.fix,
        "places": [_span(*place) for place in issue.places],
    }


def _span(start: Place, end: Place) -> dict[str, int | None]:
    return {
        "line": start.row,
        "column": start.column,
        "end_line": end.row,
        "end_column": end.column,
        "cell": start.cell,
    }
