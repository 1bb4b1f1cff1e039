"""Where an arm's files are put, and what of the tree is copied, linked or left out."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path, PurePosixPath

import pytest
from confined import run

from torchlint.verify import mirror, placement
from torchlint.verify.placement import TIERS, NotPlacedError, Tree, place

SMALL = mirror.Limits(file=100, total=250, entries=1000, folder=3)


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    root = tmp_path / "project"
    root.mkdir()
    return Tree(root)


def write(tree: Tree, **files: int) -> None:
    for name, size in files.items():
        path = tree.root / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(size))


def mirrored(tree: Tree, files: dict[str, bytes] | None = None, limits: mirror.Limits = SMALL) -> Path:
    target = tree.root.parent / "copy"
    mirror.copy(tree.root, target, {PurePosixPath(path): data for path, data in (files or {}).items()}, limits)
    return target


def kinds(folder: Path) -> dict[str, str]:
    return {
        path.name: "link" if path.is_symlink() else "folder" if path.is_dir() else "file" for path in folder.iterdir()
    }


@pytest.mark.parametrize("tier", TIERS)
def test_all_arms_paths_are_equally_long(tier: str, tree: Tree, tmp_path: Path) -> None:
    arms = [place(tree, name, {}, tmp_path / "s", tier=tier) for name in ("null", "original", "without item:41", "é")]
    texts = [json.dumps(arm.confinement) for arm in arms]
    assert len(set(texts)) == 4
    assert len({len(text) for text in texts}) == 1
    assert len({len(str(arm.root)) for arm in arms}) == len({len(str(arm.scratch)) for arm in arms}) == 1


@pytest.mark.parametrize("tier", TIERS)
def test_an_arm_has_a_place_for_everything_it_writes(tier: str, tree: Tree, tmp_path: Path) -> None:
    arm = place(tree, "all", {}, tmp_path / "s", tier=tier)
    environment = arm.confinement["environment"]
    assert isinstance(environment, dict)
    assert environment["TMPDIR"] == str(arm.scratch)
    assert all(Path(folder).is_dir() for name, folder in environment.items() if name != "WANDB_MODE")
    assert "HF_HOME" not in environment
    assert "TORCH_HOME" not in environment


def test_nothing_is_written_to_the_tree(tree: Tree, tmp_path: Path) -> None:
    write(tree, train_py=10)
    for tier in TIERS:
        place(tree, "all", {"train.py": b"changed", "new/a.py": b""}, tmp_path / "s", tier=tier)
    assert kinds(tree.root) == {"train.py": "file"}
    assert (tree.root / "train.py").read_bytes() == bytes(10)


def test_placing_again_starts_from_the_tree(tree: Tree, tmp_path: Path) -> None:
    write(tree, train_py=10)
    first = place(tree, "all", {"train.py": b"first", "a.py": b""}, tmp_path / "s", tier="audit")
    (first.root / "checkpoint.pt").touch()
    second = place(tree, "all", {}, tmp_path / "s", tier="audit")
    assert second == first
    assert kinds(second.root) == {"train.py": "file"}
    assert (second.root / "train.py").read_bytes() == bytes(10)


@pytest.mark.parametrize("path", ["/etc/passwd", "../other.py", ".", "out/model.py"])
@pytest.mark.parametrize("tier", TIERS)
def test_files_outside_the_tree_cannot_be_replaced(tier: str, path: str, tree: Tree, tmp_path: Path) -> None:
    (tree.root / "out").symlink_to(tmp_path)
    with pytest.raises(NotPlacedError, match="leads out of"):
        place(tree, "all", {path: b""}, tmp_path / "s", tier=tier)


@pytest.mark.parametrize("tier", TIERS)
def test_a_file_is_replaced_where_its_path_leads(tier: str, tree: Tree, tmp_path: Path) -> None:
    write(tree, lib__model_py=10)
    (tree.root / "src").symlink_to("lib")
    arm = place(tree, "all", {"src/model.py": b"changed"}, tmp_path / "s", tier=tier)
    folder = Path(str(arm.confinement["changed"])) if tier == "overlay" else arm.root
    assert (folder / "lib" / "model.py").read_bytes() == b"changed"
    if tier != "overlay":
        assert (folder / "src" / "model.py").read_bytes() == b"changed"


def test_a_scratch_folder_inside_the_tree_is_refused(tree: Tree) -> None:
    with pytest.raises(NotPlacedError, match="inside the tree"):
        place(tree, "all", {}, tree.root / "tmp", tier="audit")


def test_a_tier_can_be_forced(tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(placement.FORCED, "copy")
    assert placement.available_tier() == "copy"
    assert place(tree, "all", {}, tmp_path / "s").tier == "copy"
    monkeypatch.setenv(placement.FORCED, "jail")
    with pytest.raises(NotPlacedError, match=f"{placement.FORCED}=jail: the tiers are overlay, copy, audit"):
        place(tree, "all", {}, tmp_path / "s")


# In place of the driver: one that wants to write where no tier lets it, and fails by itself where `broken` is there.
_DRIVER = """
import os
try:
    if os.path.exists({broken!r}):
        raise OSError
    with open({wanted!r}, "w"):
        print(0)
except OSError:
    print(304)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="other systems have the last tier alone")
def test_a_tier_in_which_cuda_does_not_start_does_not_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    holding = [tier for tier in ("overlay", "copy") if placement._holds(tier)]  # noqa: SLF001 - as it is asked
    if not holding:
        pytest.skip("the kernel or a policy refuses both")
    broken = tmp_path / "broken"
    driver = _DRIVER.format(broken=str(broken), wanted=str(tmp_path / "wanted"))
    monkeypatch.setattr(placement, "_STARTS", driver)
    assert not any(placement._holds(tier) for tier in holding)  # noqa: SLF001 - as above
    broken.touch()
    assert all(placement._holds(tier) for tier in holding), "outside it does not start either"  # noqa: SLF001 - as above


def test_the_first_tier_that_holds_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(placement.FORCED, raising=False)
    for holding, expected in ((TIERS, "overlay"), (("copy",), "copy"), ((), "audit")):
        monkeypatch.setattr(placement, "_holds", holding.__contains__)
        placement._first_that_holds.cache_clear()  # noqa: SLF001 - a machine is one, but for tests
        assert placement.available_tier() == expected
    placement._first_that_holds.cache_clear()  # noqa: SLF001 - as above


@pytest.mark.parametrize(("holding", "expected"), [(TIERS, "copy"), (("overlay",), "audit")])
def test_a_tree_with_file_systems_inside_is_copied(
    holding: tuple[str, ...], expected: str, tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(placement.FORCED, raising=False)
    monkeypatch.setattr(placement, "_holds", holding.__contains__)
    monkeypatch.setattr(placement, "_first_that_holds", lambda: "overlay")
    assert place(tree, "all", {}, tmp_path / "s").tier == "overlay"
    monkeypatch.setattr("torchlint.verify.inside.overlay.submounts", lambda root: [f"{root}/data"])
    assert place(tree, "all", {}, tmp_path / "s").tier == expected


def test_sources_and_small_files_are_copied_and_the_rest_linked(tree: Tree) -> None:
    write(tree, big_py=500, config_yaml=100, weights_pt=101)
    copied = mirrored(tree)
    assert kinds(copied) == {"big.py": "file", "config.yaml": "file", "weights.pt": "link"}
    assert (copied / "weights.pt").read_bytes() == bytes(101)
    assert (copied / "big.py").stat().st_mtime_ns == (tree.root / "big.py").stat().st_mtime_ns


def test_not_more_is_copied_than_there_is_room_for(tree: Tree) -> None:
    write(tree, a_bin=100, b_bin=100, c_bin=100)
    assert list(kinds(mirrored(tree)).values()).count("link") == 1


def test_large_folders_are_linked_whole(tree: Tree) -> None:
    write(tree, data__a=1, data__b=1, data__c=1, data__d=1, few__a=1, lib__a=1, lib__b=1, lib__c=1, lib__d_py=1)
    assert kinds(mirrored(tree)) == {"data": "link", "few": "folder", "lib": "folder"}


def test_folders_are_linked_whole_after_so_many_entries(tree: Tree) -> None:
    write(tree, a__x=1, b__x=1, c__x=1, d__x=1)
    limits = mirror.Limits(file=100, total=1000, entries=6, folder=1000)
    assert sorted(kinds(mirrored(tree, limits=limits)).values()) == ["folder", "folder", "link", "link"]


def test_a_folder_that_holds_a_changed_file_is_not_linked(tree: Tree) -> None:
    write(tree, data__a=1, data__b=1, data__c=1, data__d=1)
    copied = mirrored(tree, {"data/sub/x.py": b"changed"})
    assert kinds(copied / "data") == {"a": "file", "b": "file", "c": "file", "d": "file", "sub": "folder"}
    assert kinds(tree.root / "data") == dict.fromkeys("abcd", "file")


def test_history_and_environments_are_linked_and_compiled_files_left_out(tree: Tree) -> None:
    names = (".git/HEAD", "venv/pyvenv.cfg", "node_modules/a.js", "__pycache__/a.pyc")
    for name in names:
        (tree.root / name).parent.mkdir()
        (tree.root / name).touch()
    assert kinds(mirrored(tree)) == {".git": "link", "venv": "link", "node_modules": "link"}


def test_links_lead_to_the_copy(tree: Tree, tmp_path: Path) -> None:
    write(tree, lib__model_py=10)
    for name, leads_to in (
        ("relative", "lib"),
        ("absolute", tree.root / "lib"),
        ("outside", tmp_path),
        ("up", ".."),
        ("dangling", "nowhere"),
    ):
        (tree.root / name).symlink_to(leads_to)
    copied = mirrored(tree)
    assert (copied / "relative").resolve() == (copied / "absolute").resolve() == copied / "lib"
    assert (copied / "outside").resolve() == (copied / "up").resolve() == tmp_path
    assert not (copied / "dangling").exists()


def test_modes_are_kept(tree: Tree) -> None:
    write(tree, bin__run_py=10, bin__other_py=10)
    (tree.root / "bin" / "run.py").chmod(0o750)
    (tree.root / "bin" / "other.py").chmod(0o440)
    (tree.root / "bin").chmod(0o550)
    copied = mirrored(tree, {"bin/run.py": b""})
    (tree.root / "bin").chmod(0o700)
    assert [(copied / path).stat().st_mode & 0o777 for path in ("bin/run.py", "bin/other.py", "bin")] == [
        0o750,
        0o440,
        0o750,
    ]


@pytest.mark.parametrize("tier", TIERS)
def test_a_changed_file_is_no_older_than_what_was_compiled_from_the_original(
    tier: str, tree: Tree, tmp_path: Path
) -> None:
    write(tree, train_py=10)
    os.utime(tree.root / "train.py", ns=(0, 1_500_000_000))
    arm = place(tree, "all", {"train.py": b"0123456789"}, tmp_path / "s", tier=tier)
    folder = Path(str(arm.confinement["changed"])) if tier == "overlay" else arm.root
    assert (folder / "train.py").stat().st_mtime == 3.5


def test_caches_are_found_once_and_apart_from_the_tree(
    tree: Tree, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    for folder in (home / ".cache" / "huggingface", tree.root / "cache"):
        folder.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HF_HOME", str(home / ".cache" / "huggingface"))
    monkeypatch.setenv("TORCH_HOME", str(tree.root / "cache"))
    arm = place(tree, "all", {}, tmp_path / "s", tier="overlay")
    assert arm.confinement["caches"] == [str(home / ".cache")]
    monkeypatch.setenv("HF_HOME", str(tmp_path / "nowhere"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))  # above the tree
    arm = place(tree, "all", {}, tmp_path / "s", tier="overlay")
    assert arm.confinement["caches"] == []


def test_a_path_with_characters_that_mount_reads_otherwise(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "a:b,c\\d é" / "project")
    tree.root.mkdir(parents=True)
    tier = placement.available_tier()
    arm = place(tree, "all", {"model.py": b"x = 1"}, tmp_path / "s:,", tier=tier)
    assert run(arm.confinement, "print(open(os.path.join(root, 'model.py')).read())") == "x = 1\n"
