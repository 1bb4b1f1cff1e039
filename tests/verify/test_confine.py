"""Code that runs confined changes nothing of the user's and outlives nobody, whatever it tries."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from confined import NOBODY, run, skip_if_refused, start

from torchlint.verify.inside import landlock, overlay
from torchlint.verify.placement import TIERS, Placement, Tree, clear, place
from torchlint.verify.remains import remove

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("confined"),
]  # how many processes a user has is what some of these are about

LARGE = (1 << 20) + 1  # more than the copy copies where the kernel stands guard

# Each is tried at the path that the code sees and at the tree's own, whatever it raises.
ATTACKS = {
    "open for writing": "open(at('model.py'), 'w').write('bad')",
    "a new file": "open(at('new.txt'), 'w').write('bad')",
    "append": "open(at('model.py'), 'a').write('bad')",
    "append to a large file": "open(at('data.bin'), 'ab').write(b'bad')",
    "os.open": "os.write(os.open(at('model.py'), os.O_RDWR), b'bad')",
    "os.open relative to a folder": "os.write(os.open('model.py', os.O_RDWR, dir_fd=os.open(at('.'), 0)), b'bad')",
    "relative to the working folder": "os.chdir(at('.')); open('model.py', 'w').write('bad')",
    "remove": "os.remove(at('model.py'))",
    "remove a folder": "shutil.rmtree(at('pkg'))",
    "rename": "os.rename(at('model.py'), at('other.py'))",
    "rename over": "pathlib.Path(at('pkg/sub.py')).replace(at('model.py'))",
    "make a folder": "os.mkdir(at('runs'))",
    "chmod": "os.chmod(at('model.py'), 0o600)",
    "times": "os.utime(at('data.bin'), (1, 1))",
    "truncate": "os.truncate(at('model.py'), 0)",
    "through a link": "os.symlink(at('data.bin'), link := tempfile.mktemp()); open(link, 'wb').write(b'bad')",
    "through a second name": "os.link(at('model.py'), name := tempfile.mktemp()); open(name, 'w').write('bad')",
    "a link in the tree": "os.symlink('/', at('link'))",
    "C opens": "libc.write(libc.open(at('model.py').encode(), 0o1101), b'bad', 3)",
    "C removes": "libc.unlink(at('model.py').encode())",
    "C renames": "libc.rename(at('model.py').encode(), at('other.py').encode())",
    "C changes the mode": "libc.chmod(at('model.py').encode(), 0o600)",
    "a program makes a file": "subprocess.run(['touch', at('new.txt')], stderr=subprocess.DEVNULL)",
    "a program removes": "subprocess.run(['rm', '-rf', at('pkg')], stderr=subprocess.DEVNULL)",
    "a program appends": "subprocess.run(['sh', '-c', 'echo bad >> ' + at('model.py')], stderr=subprocess.DEVNULL)",
    "unmount": "subprocess.run(['umount', at('.')], stderr=2); open(at('model.py'), 'w').write('bad')",
}
# What a tier cannot prevent where code names the tree's own path or a link; the manifest tells.
GAPS = {
    "overlay": set[str](),
    "copy": {"C changes the mode"},
    # The audit event of `os.open` does not tell its folder.
    "audit": {name for name in ATTACKS if name.startswith(("C ", "a program", "os.open relative"))},
}
# Every attack in a process of its own that confines itself; the names of those that changed the tree are printed.
TRY = """
sys.argv[2] = None
confinement, attacks, tree = {confinement!r}, {attacks!r}, {tree!r}
shutil.copytree(tree, kept := tree + "-kept")
for name, attack in attacks.items():
    before = manifest.take(tree)
    child = os.fork()
    if not child:
        try:
            if confinement:
                confinement["parent"] = None
                inside.confine(confinement)
        except OSError as error:
            print(error, file=sys.stderr, flush=True)
            os._exit(1)
        for place in sorted({{confinement.get("root", tree), tree}}):
            at = lambda name: os.path.join(place, name)
            try:
                exec(attack)
            except OSError:
                pass
        os._exit(0)
    if os.waitpid(child, 0)[1]:
        sys.exit(1)
    if manifest.changes(before, manifest.take(tree)):
        print(name)
        shutil.rmtree(tree)
        shutil.copytree(kept, tree)
"""


@pytest.fixture
def scratch() -> Iterator[Path]:
    # Short and open to other users, as pytest's own folders are not.
    folder = Path(tempfile.mkdtemp(prefix="tl-"))
    folder.chmod(0o755)
    yield folder
    remove(folder)


@pytest.fixture
def tree(scratch: Path) -> Tree:
    return made(scratch)


def made(scratch: Path) -> Tree:
    root = scratch / "project"
    (root / "pkg").mkdir(parents=True)
    (root / "model.py").write_text("def width():\n    return 64\n", encoding="utf-8")
    (root / "pkg" / "sub.py").write_text("name = 'sub'\n", encoding="utf-8")
    (root / "data.bin").write_bytes(bytes(LARGE))
    return Tree(root)


def placed(tree: Tree, tier: str, files: dict[str, bytes] | None = None, **options: list[Path]) -> Placement:
    skip_if_refused(tier)
    return place(tree, "all", files or {}, tree.root.parent / "s", tier=tier, allow_write=options.get("allow", []))


def give_away(folder: Path) -> None:
    for parent, _, files in os.walk(folder):
        for path in (Path(parent), *(Path(parent, name) for name in files)):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def succeeding(tree: Tree, confinement: dict[str, object], user: int = 0) -> set[str]:
    code = TRY.format(confinement=confinement, attacks=ATTACKS, tree=str(tree.root))
    with start({}, code, user=user) as process:
        out, errors = process.communicate(timeout=60)
    if process.returncode and "overlay: unshare: Operation not permitted" in errors:
        pytest.skip("this user may not make user namespaces here")
    assert process.returncode == 0, errors
    return set(out.splitlines())


@pytest.mark.parametrize("tier", TIERS)
def test_the_tree_stays_as_it_was(tier: str, tree: Tree) -> None:
    assert succeeding(tree, placed(tree, tier).confinement) <= GAPS[tier]


def test_every_attack_works_without_confinement(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tree.root.parent))  # a second name has to be on the same file system
    assert succeeding(tree, {}) == set(ATTACKS)


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("tier", TIERS)
def test_an_unprivileged_user_is_confined_as_well(tier: str, scratch: Path) -> None:
    tree = made(scratch)
    placement = placed(tree, tier)
    give_away(scratch)
    assert succeeding(tree, placement.confinement, NOBODY) <= GAPS[tier]
    out = run(placement.confinement, "print(os.getuid(), *held)", user=NOBODY).split()
    assert out[0] == str(NOBODY)
    assert set(placement.isolation) <= set(out)


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("tier", TIERS)
def test_no_rights_are_gained(tier: str, scratch: Path) -> None:
    tree = made(scratch)
    (tree.root / "model.py").chmod(0o444)
    placement = placed(tree, tier)
    give_away(scratch)
    code = "try:\n    open(os.path.join(root, 'model.py'), 'w')\nexcept PermissionError:\n    print('refused')"
    assert run(placement.confinement, code, user=NOBODY) == "refused\n"


@pytest.mark.parametrize("tier", TIERS)
def test_what_holds_is_what_was_expected(tier: str, tree: Tree) -> None:
    placement = placed(tree, tier)
    held = run(placement.confinement, "print(*held)").split()
    assert set(placement.isolation) <= set(held)
    assert "no-core-dumps" in held
    assert ("parent-death" in held) == sys.platform.startswith("linux")


@pytest.mark.parametrize("tier", TIERS)
def test_scratch_shared_memory_and_null_are_writable(tier: str, tree: Tree) -> None:
    code = """
from multiprocessing.shared_memory import SharedMemory
with tempfile.NamedTemporaryFile("w") as file:
    file.write("x")
    print(file.name)
memory = SharedMemory(create=True, size=16)
memory.buf[0] = 1
memory.close()
memory.unlink()
open(os.devnull, "w").write("x")
open(os.path.join(os.environ["TRITON_CACHE_DIR"], "kernel"), "w").write("x")
open(os.path.join(root, "checkpoint.pt"), "w").write("x")
subprocess.run(["sh", "-c", "echo x > $TMPDIR/x"], check=True)
"""
    placement = placed(tree, tier)
    assert run(placement.confinement, code).startswith(str(placement.scratch))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc is Linux's")
@pytest.mark.parametrize("tier", TIERS)
def test_threads_are_named_as_cudas_driver_names_its_own(tier: str, tree: Tree) -> None:
    # In a child as well, whose number nobody knows beforehand.
    name = """
import os, threading
named = threading.Event()
thread = threading.Thread(target=named.wait)
thread.start()
path = f"/proc/self/task/{thread.native_id}/comm"
with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666), "w") as file:
    file.write("cuda-EvtHandlr")
print(open(path).read().strip())
named.set()
"""
    code = f"exec({name!r})\nprint(subprocess.run([sys.executable, '-c', {name!r}], capture_output=True, text=True).stdout)"
    assert run(placed(tree, tier).confinement, code).split() == ["cuda-EvtHandlr"] * 2


@pytest.mark.parametrize("tier", TIERS)
def test_changed_files_are_seen_everywhere(tier: str, tree: Tree) -> None:
    run({}, f"sys.path.insert(0, {str(tree.root)!r})\nimport model")  # leaves a compiled file
    fixed = b"def width():\n    return 65\n"
    placement = placed(tree, tier, {"model.py": fixed, "pkg/more/new.py": b"name = 'new'\n"})
    code = """
sys.path.insert(0, root)
import model, pkg.sub, pkg.more.new
print(model.width(), "65" in inspect.getsource(model), pkg.sub.name, pkg.more.new.name)
print(subprocess.run(["cat", os.path.join(root, "model.py")], capture_output=True, text=True).stdout.split()[-1])
print(model.__file__)
"""
    lines = run(placement.confinement, code).splitlines()
    assert lines == ["65 True sub new", "65", str(placement.root / "model.py")]
    assert (placement.root == tree.root) == (tier == "overlay")


def test_writes_in_the_overlay_vanish_with_the_process(tree: Tree) -> None:
    placement = placed(tree, "overlay")
    count = "path = pathlib.Path(root, 'runs.txt'); print(path.exists()); path.write_text('x')"
    assert [run(placement.confinement, count) for _ in range(2)] == ["False\n", "False\n"]
    arm = Path(str(placement.confinement["arm"]))
    assert len(list(arm.glob("run-*/*/upper/runs.txt"))) == 2
    clear(placement)
    assert {path.name for path in arm.iterdir()} == {"changed", "tmp"}
    assert run(placement.confinement, count) == "False\n"


def test_writes_are_held_in_memory_where_the_scratch_folder_is_an_overlay_itself(tree: Tree) -> None:
    placement = placed(tree, "overlay", {"model.py": b"changed"})
    nothing, work = tree.root.parent / "nothing", tree.root.parent / "work"
    nothing.mkdir()
    work.mkdir()
    code = f"""
is_user = inside.overlay.separate()
inside.overlay.lay({str(nothing)!r}, {str(tree.root.parent / "s")!r}, {str(work)!r}, is_user=is_user)
confinement = {placement.confinement!r}
inside.confine(confinement)
pathlib.Path(confinement["root"], "new.txt").write_text("written")
print(*(pathlib.Path(confinement["root"], name).read_text() for name in ("model.py", "new.txt")))
print(any("tmpfs" in line and confinement["arm"] in line for line in open("/proc/self/mountinfo")))
"""
    assert run({}, code) == "changed written\nTrue\n"
    assert not (tree.root / "new.txt").exists()


def test_the_overlay_is_seen_from_the_working_folder(tree: Tree) -> None:
    placement = placed(tree, "overlay", {"model.py": b"changed"})
    code = f"os.chdir({str(tree.root)!r})\ninside.confine({placement.confinement!r})\nprint(open('model.py').read())"
    assert run({}, code) == "changed\n"


@pytest.mark.parametrize("tier", TIERS)
def test_named_places_outside_may_be_written(tier: str, tree: Tree) -> None:
    logs = tree.root.parent / "logs"
    logs.mkdir()
    run(placed(tree, tier, allow=[logs]).confinement, f"open({str(logs / 'a')!r}, 'w').write('x')")
    assert (logs / "a").read_text(encoding="utf-8") == "x"


@pytest.mark.parametrize("tier", ["overlay", "copy"])
def test_other_places_may_not(tier: str, tree: Tree) -> None:
    if not landlock.version():
        pytest.skip("the kernel has no Landlock")
    other = tree.root.parent / "elsewhere"
    other.mkdir()
    code = f"with contextlib.suppress(PermissionError):\n    open({str(other / 'a')!r}, 'w')"
    run(placed(tree, tier).confinement, code)
    assert list(other.iterdir()) == []


def test_caches_can_be_written_and_stay_as_they_are(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tree.root.parent / "cache"
    cache.mkdir()
    (cache / "weights").write_text("read", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    code = f"at = pathlib.Path({str(cache)!r})\n(at / 'lock').write_text('x')\nprint((at / 'weights').read_text())"
    assert run(placed(tree, "overlay").confinement, code) == "read\n"
    assert [path.name for path in cache.iterdir()] == ["weights"]


def test_shared_memory_of_the_overlay_is_its_own(tree: Tree) -> None:
    if os.environ.get("CUDA_MPS_PIPE_DIRECTORY"):
        pytest.skip("shared with the multi-process service")
    name = f"/dev/shm/psm_torchlint_{os.getpid()}"  # noqa: S108 - what is tested
    run(placed(tree, "overlay").confinement, f"open({name!r}, 'w').write('x'); assert os.path.exists({name!r})")
    assert not Path(name).exists()


def test_imports_from_the_tree_come_from_the_copy(tree: Tree) -> None:
    placement = placed(tree, "audit", {"model.py": b"where = 'copy'\n"})
    code = f"""
import types
tree = {str(tree.root)!r}
sys.path.insert(0, tree)
os.environ["PYTHONPATH"] = os.pathsep.join(["/elsewhere", tree])
table = sys.modules["__editable___pkg_finder"] = types.ModuleType("__editable___pkg_finder")
table.MAPPING = {{"pkg": tree + "/pkg", "other": "/elsewhere"}}
sys.meta_path.append(type("_EditableFinder", (), {{"__module__": table.__name__, "find_spec": lambda *_: None}}))
os.chdir(tree)
inside.confine({placement.confinement!r})
import model
print(model.where, os.getcwd(), os.environ["PYTHONPATH"], table.MAPPING["pkg"], table.MAPPING["other"])
"""
    root = placement.root
    assert run({}, code).split() == ["copy", str(root), f"/elsewhere:{root}", f"{root}/pkg", "/elsewhere"]


@pytest.mark.parametrize(
    ("tier", "missing"), [("overlay", "changed"), ("overlay", "root"), ("copy", "arm"), ("unheard-of", "arm")]
)
def test_a_tier_that_fails_says_so(tier: str, missing: str, tree: Tree) -> None:
    if tier in TIERS:
        skip_if_refused(tier)
    confinement = place(tree, "all", {}, tree.root.parent / "s", tier="overlay").confinement
    confinement |= {"tier": tier, missing: str(tree.root / "nowhere")}
    code = f"""
try:
    inside.confine({confinement!r})
    print("holds")
except (OSError, KeyError) as error:
    print(type(error).__name__, error)
"""
    expected = {"overlay": "FileNotFoundError [Errno 2] overlay:", "copy": "holds", "unheard-of": "KeyError"}
    assert run({}, code).startswith(expected[tier])


def test_a_file_system_inside_the_tree_is_no_overlay(tree: Tree) -> None:
    confinement = placed(tree, "overlay").confinement
    code = f"""
inside.overlay.separate()
inside.overlay.memory_folder({str(tree.root / "pkg")!r})
try:
    inside.confine({confinement!r})
except OSError as error:
    print(error)
"""
    assert f"] overlay: {tree.root / 'pkg'} is a file system of its own inside {tree.root}" in run({}, code)


@pytest.mark.skipif(not Path("/proc/self/mountinfo").exists(), reason="Linux tells")
def test_mount_points_are_found_below_a_folder_only() -> None:
    assert "/proc" in overlay.submounts("/")
    assert overlay.submounts("/proc/self/fd") == []
    assert "/proc" not in overlay.submounts("/pro")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="PR_SET_PDEATHSIG")
@pytest.mark.parametrize("tier", TIERS)
def test_the_process_dies_with_its_parent(tier: str, tree: Tree) -> None:
    confinement = placed(tree, tier).confinement
    # A controller that is killed, so that nothing of it cleans up.
    code = f"""
child = os.fork()
if child:
    time.sleep(60)
confinement = {confinement!r}
confinement["parent"] = os.getppid()
inside.confine(confinement)
print(os.getpid(), flush=True)
time.sleep(60)
"""
    with start({}, code) as controller:
        assert controller.stdout is not None
        child = int(controller.stdout.readline())
        controller.kill()
    try:
        assert ended(child)
    finally:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="PR_SET_PDEATHSIG")
def test_a_parent_that_is_gone_already_is_an_error(tree: Tree) -> None:
    confinement = placed(tree, "audit").confinement
    confinement["parent"] = 2**22  # above the greatest number that a process can have
    with start(confinement, "print('alive')") as process:
        out, errors = process.communicate(timeout=30)
    assert (out, "is gone" in errors) == ("", True)


def ended(process: int) -> bool:
    end = time.monotonic() + 5
    while time.monotonic() < end:
        try:
            if Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits as Linux keeps them")
def test_memory_is_limited(tree: Tree) -> None:
    confinement = placed(tree, "audit").confinement | {"memory": 1 << 30}
    code = """
try:
    bytearray(2 << 30)
except MemoryError:
    print("refused", resource.getrlimit(resource.RLIMIT_CORE))
"""
    assert run(confinement, code) == "refused (0, 0)\n"


def any_of(user: int) -> bool:
    """Whether a process of that user is there, be it dead."""
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if folder.stat().st_uid == user:
                return True
    return False


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root can become another user")
@pytest.mark.parametrize("tier", ["overlay", "audit"])
def test_processes_are_limited_for_all_but_root(tier: str, scratch: Path) -> None:
    placement = placed(made(scratch), tier)
    give_away(scratch)
    end = time.monotonic() + 30
    while any_of(NOBODY) and time.monotonic() < end:  # those of the test before count until they are reaped
        time.sleep(0.05)
    code = """
children = []
try:
    for _ in range(60):
        child = os.fork()
        if not child:
            time.sleep(30)
            os._exit(0)
        children.append(child)
except BlockingIOError:
    print("refused after", len(children))
for child in children:
    os.kill(child, signal.SIGKILL)
"""
    out = run(placement.confinement | {"tasks": 20}, code, user=NOBODY)
    assert out.startswith("refused after ")
    assert 10 <= int(out.split()[-1]) <= 21
