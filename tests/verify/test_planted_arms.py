"""Planted arms through real processes: each gets its verdict, and leaves nothing behind."""

from __future__ import annotations

import dataclasses
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from planted import FILE, PROGRAM, SLEEP, Place, arm, changed, place, processes, shared_memory

from torchlint.verify import checks, manifest, replicate, timing, verdicts
from torchlint.verify.ablation import HANDICAP, NULL, Comparison, Stage, Version
from torchlint.verify.arms import Arm, Failure, Patience
from torchlint.verify.machine import Clerk
from torchlint.verify.placement import FORCED
from torchlint.verify.process import ArmError
from torchlint.verify.session import Session, session

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("planted"),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="the process table and /dev/shm are Linux's"),
]

RUN = "def run(state):\n"
SET_UP = "def setup(device, size):\n"
RETURN = "    return y\n"
LESS, MORE = changed("WORK = 100", "WORK = 75"), changed("WORK = 100", "WORK = 125")
LEAK = """
    from multiprocessing import resource_tracker, shared_memory
    memory = shared_memory.SharedMemory(create=True, size=1 << 16)
    resource_tracker.unregister(memory._name, "shared_memory")
"""
DAEMON = f"""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.execvpe("sleep", ["sleep", "{SLEEP}"], {{"PATH": os.environ["PATH"]}})
        os._exit(0)
    time.sleep(0.1)
"""
LOADERS = """
    from torch.utils.data import DataLoader
    global loaders
    own = torch.Generator()  # a loader draws a seed
    loaders = [iter(DataLoader(range(64), num_workers=8, generator=own)) for _ in range(6)]
    print([next(loader) for loader in loaders])
"""
GARBAGE = """
    print('{"ok": true}', flush=True)
    for descriptor in range(3, 64):
        try:
            os.write(descriptor, b'garbage\\n{"ok": true, "samples": []}\\n')
        except OSError:
            pass
"""
HALF_SPEED = """
def slowed(clock):
    return lambda: clock() // 2 if isinstance(clock(), int) else clock() / 2

for name in ("perf_counter", "perf_counter_ns", "process_time", "process_time_ns", "thread_time", "monotonic"):
    setattr(time, name, slowed(getattr(time, name)))
"""
THREAD = """
    def work():
        while True:
            torch.ones(64, 64) @ torch.ones(64, 64)
    if threading.active_count() == 1:
        threading.Thread(target=work, daemon=True).start()
"""

# What each does, and the verdicts that it may get.
FAULTS: dict[str, tuple[str, set[str]]] = {
    "wrong values": (changed(RETURN, "    return y * 1.001\n"), {"wrong-result"}),
    "other random numbers": (changed(RUN, RUN + "    torch.rand(1)\n"), {"wrong-result"}),
    "changes its input": (
        changed(RETURN, '    state["layer"].weight.mul_(1.01)\n    return y\n'),
        {"wrong-result"},
    ),
    "exception": (changed(RUN, RUN + "    raise ValueError('planted')\n"), {"error"}),
    "does not load": (changed("import torch\n", "import no_such_module\n"), {"error"}),
    "memory": (changed(RUN, RUN + "    torch.empty(1 << 50)\n"), {"oom"}),
    "crash": (changed(RUN, RUN + "    ctypes.string_at(0)\n"), {"error"}),
    "sys.exit": (changed(RUN, RUN + "    sys.exit(0)\n"), {"error"}),
    "os._exit": (changed(RUN, RUN + "    os._exit(0)\n"), {"error"}),
    "hang": (changed(RUN, RUN + "    while True: time.sleep(1)\n"), {"timeout"}),
    "writes to every descriptor": (changed(RUN, RUN + GARBAGE), {"error"}),
}
# What is timed, of which one writes as well.
WRITES = "less work, and writes into the tree"
TIMED = {
    "same": (PROGRAM + "# the same\n", {"no-measurable-difference", "inconclusive"}),
    "more work": (MORE, {"slower"}),
    WRITES: (
        changed(SET_UP, SET_UP + "    open(TREE, 'w').write('bad')\n", LESS),
        {"faster"},
    ),
    "slow clocks": (changed("WORK = 100\n", "WORK = 100\n" + HALF_SPEED), {"no-measurable-difference", "inconclusive"}),
    "works after it has returned": (changed(RETURN, THREAD + RETURN), {"suspicious"}),
}
# What is judged without its time.
UNTIMED = {
    "leaks shared memory": (changed(SET_UP, SET_UP + LEAK), {"inconclusive"}),
    "daemon": (changed(SET_UP, SET_UP + DAEMON), {"suspicious"}),
    "fifty loaders": (changed(SET_UP, SET_UP + LOADERS), {"inconclusive"}),
    "prints like a reply": (changed(RUN, RUN + """    print('{"ok": true}', flush=True)\n"""), {"inconclusive"}),
    "prints without end": (changed(SET_UP, SET_UP + "    print('x' * 100_000_000)\n"), {"inconclusive"}),
}
DECLARED = checks.Declared("close")


@dataclass(slots=True)
class Measured:
    """What became of each arm."""

    verdicts: dict[str, tuple[str, str]] = field(default_factory=dict)
    changes: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    during: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def clerk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Clerk]:
    clerk = Clerk(tmp_path_factory.mktemp("clerk"), sys.executable)
    yield clerk
    clerk.close()


@pytest.fixture(scope="module")
def measured(clerk: Clerk) -> Measured:
    """All arms in one session: what fails in the numbers, then what is timed."""
    found = Measured()
    with place() as where, pytest.MonkeyPatch.context() as patch:
        patch.setattr(replicate, "QUADS", 5)  # blocks are cheap beside processes, and other tests disturb them
        before = manifest.take(where.tree)
        with session(where.subject(), print) as running:
            base = checks.reference(running, arm(NULL, PROGRAM + "# null\n"), DECLARED)
            figures = {}
            for name, (source, _) in {**FAULTS, **UNTIMED, WRITES: TIMED[WRITES]}.items():
                each = arm(name, source.replace("TREE", repr(str(where.tree / FILE))))
                running.patience = Patience(check=5 if name == "hang" else 120)
                figures[name] = looked_at(running, clerk, base, each)
                found.during += [f"{name}: {line}" for line in processes()]
            figures = timed(running, where, figures)
            found.verdicts = {name: verdicts.overall(each) for name, each in figures.items()}
        found.changes = manifest.changes(before, manifest.take(where.tree))
        found.left = where.left()
    return found


def looked_at(running: Session, clerk: Clerk, base: checks.Reference, each: Arm) -> verdicts.Figures:
    """What the numbers of an arm say."""
    try:
        said = checks.check(running, clerk, base, each, DECLARED)
    except ArmError as error:
        return verdicts.Figures(failure=Failure(error.kind, str(error), error.trace))
    left = running.left.get(each.name)
    return verdicts.Figures(numerics=said, suspicious=f"leaves {left[0]}" if left else "")


def timed(running: Session, where: Place, figures: dict[str, verdicts.Figures]) -> dict[str, verdicts.Figures]:
    """The same with times. 25 % is soon found, and given more time where it is not; no difference never is one."""
    built = {
        name: arm(name, source.replace("TREE", repr(str(where.tree / FILE)))) for name, (source, _) in TIMED.items()
    }
    built |= {name: arm(name, PROGRAM + "# null\n") for name in (NULL, HANDICAP)}
    found = {**dict.fromkeys(TIMED, verdicts.Figures()), **figures}
    names = [name for name in TIMED if found[name].failure is None]
    for replicates in (6, 8):
        stage = Stage(
            (Version(NULL), Version(HANDICAP), *(Version(name) for name in names)),
            (Comparison(HANDICAP, NULL, "handicap"), *(Comparison(name, NULL, "alone", name) for name in names)),
        )
        limits = timing.Limits(max_replicates=replicates)
        result = timing.measure(running, built, stage, metric="cpu-time", limits=limits)
        for asked, decision in result.decisions.items():
            if asked.question == "alone":
                suspicious = result.suspicious.get(asked.arm, found[asked.arm].suspicious)
                found[asked.arm] = dataclasses.replace(found[asked.arm], time=decision, suspicious=suspicious)
        for name, failure in result.failures.items():
            found[name] = dataclasses.replace(found[name], failure=failure)
        differing = {"faster", "slower"}
        names = [name for name in names if TIMED[name][1] <= differing and _time_of(found[name]) not in differing]
        if not names:
            break
    return found


def _time_of(figures: verdicts.Figures) -> str | None:
    return figures.time.verdict if figures.time else None


@pytest.mark.parametrize("name", [*FAULTS, *TIMED, *UNTIMED])
def test_each_gets_its_verdict(name: str, measured: Measured) -> None:
    allowed = {**FAULTS, **TIMED, **UNTIMED}[name][1]
    verdict, reason = measured.verdicts[name]
    assert verdict in allowed, reason


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("exception", "ValueError: planted"),
        ("memory", "can't allocate memory"),
        ("does not load", "No module named 'no_such_module'"),
        ("crash", "killed by SIGSEGV"),
        ("sys.exit", "SystemExit: 0"),
        ("os._exit", "ended before it answered"),
        ("hang", "no answer within 5 s"),
        ("writes to every descriptor", "sent what is no reply: b'garbage'"),
        ("other random numbers", "the streams differ"),
        ("works after it has returned", "goes on working"),
        ("daemon", "2 processes that outlived it"),
        ("prints without end", "time was not measured"),
    ],
)
def test_the_reason_says_what_happened(name: str, reason: str, measured: Measured) -> None:
    assert reason in measured.verdicts[name][1]


def test_nothing_is_left(measured: Measured) -> None:
    assert measured.changes == []
    assert measured.left == []
    assert measured.during == []


def test_a_write_into_the_tree_is_refused_where_it_does_not_vanish(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FORCED, "copy")
    with place() as where, session(where.subject()) as running:
        source = changed(SET_UP, SET_UP + f"    open({str(where.tree / FILE)!r}, 'w').write('bad')\n")
        with (
            running.running(arm("writes", source)) as worker,
            pytest.raises(ArmError, match="PermissionError") as error,
        ):
            worker.ask("start", 60, seed=1)
        assert verdicts.overall(verdicts.Figures(failure=Failure(error.value.kind, str(error.value))))[0] == "error"
        assert (where.tree / FILE).read_text(encoding="utf-8") == PROGRAM


def test_shared_memory_is_cleared_where_it_is_everybodys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FORCED, "copy")
    with place() as where:
        with session(where.subject()) as running:
            with running.running(arm("leaks", changed(SET_UP, SET_UP + LEAK))) as worker:
                worker.ask("start", 60, seed=1)
                leaked = shared_memory() - where.shared
            assert len(leaked) == 1
            assert running.cleared == leaked
        assert where.left() == []


STANDING = """
import torch

def setup(device, size):
    return {"x": torch.randn(64, 64), "w": torch.randn(64, 64), "kept": {}}

def run(state):
    return state["x"] @ state["w"]
"""


def test_an_output_that_is_remembered_is_wrong(clerk: Clerk) -> None:
    remembers = changed(
        'state["x"] @ state["w"]', 'state["kept"].setdefault("y", state["x"] @ state["w"]).clone()', STANDING
    )
    with place(STANDING) as where, session(where.subject()) as running:
        base = checks.reference(running, arm(NULL, STANDING + "# null\n"), DECLARED)
        said = checks.check(running, clerk, base, arm("remembers", remembers), DECLARED)
    assert said["verdict"] == "wrong"
    assert said["reason"].startswith("from other numbers: ")


def test_an_error_that_tiny_outputs_hide_is_not_called_the_same(clerk: Clerk) -> None:
    tiny = changed(RETURN, "    return y * 1e-9\n")
    with place(tiny) as where, session(where.subject()) as running:
        base = checks.reference(running, arm(NULL, tiny + "# null\n"), DECLARED)
        each = arm("wrong", changed("y * 1e-9", "y * 1.5e-9", changed("WORK = 100", "WORK = 75", tiny)))
        figures = looked_at(running, clerk, base, each)
    assert verdicts.overall(figures)[0] in ("inconclusive", "wrong-result")
    assert figures.numerics is not None
    assert figures.numerics["verdict"] in ("not-checked", "wrong")


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("    raise ValueError('planted')\n", "ValueError: planted"),
        ("    while True: time.sleep(1)\n", "no answer within 2 s"),
    ],
)
def test_a_program_that_fails_unfixed_is_blamed_on_no_fix(fault: str, reason: str) -> None:
    source = changed(RUN, RUN + fault)
    with place(source) as where:
        with (
            session(where.subject(), patience=Patience(check=2)) as running,
            pytest.raises(timing.BaselineError, match=reason) as error,
        ):
            checks.reference(running, arm(NULL, source + "# null\n"), DECLARED)
        assert verdicts.overall(verdicts.Figures(cannot=error.value.failure.reason)) == ("cannot-run", reason)
        assert where.left() == []


def test_temporary_files_are_where_they_are_looked_for() -> None:
    with place() as where:
        assert Path(tempfile.gettempdir()) == where.temporary
        Path(tempfile.mkdtemp(prefix="tl-"))
        assert len(where.left()) == 1
