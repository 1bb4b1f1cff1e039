"""Patterns mean what ruff's documentation says of `exclude`, and what git's says of .gitignore."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from torchlint.globs import Glob, Globs, translate


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("vendored", "/p/vendored", True),
        ("vendored", "/p/a/b/vendored", True),
        ("vendored", "/p/vendored/x.py", False),
        ("foo_*.py", "/p/a/foo_1.py", True),
        ("foo_*.py", "/p/a/afoo_1.py", False),
        ("foo_*", "/p/foo_/a/x.py", True),  # from the folder a star crosses slashes
        ("a/foo_*", "/p/a/foo_1/x.py", True),
        ("a/*.py", "/p/a/b/x.py", True),
        ("a/*.py", "/p/b/a/x.py", False),
        ("a/?.py", "/p/a/x.py", True),
        ("**/a/x.py", "/p/a/x.py", True),
        ("**/a/x.py", "/p/b/c/a/x.py", True),
        ("a/**/x.py", "/p/a/x.py", True),
        ("a/**/x.py", "/p/a/b/c/x.py", True),
        ("a/**/**/x.py", "/p/a/x.py", True),
        ("a/**", "/p/a/b/x.py", True),
        ("a/**", "/p/a", False),
        ("a/**", "/p/ab", False),
        ("./a/", "/p/a", True),
        ("../q/x.py", "/q/x.py", True),
        ("/q/x.py", "/q/x.py", True),
        ("{a,b}.py", "/p/c/b.py", True),
        ("{a,b{c,d}}.py", "/p/bd.py", True),
        ("a,b", "/p/a,b", True),
        ("[ab].py", "/p/b.py", True),
        ("[!ab].py", "/p/b.py", False),
        ("[^ab].py", "/p/c.py", True),
        ("[]a].py", "/p/].py", True),
        ("[a&&b~|].py", "/p/&.py", True),
        (r"\*.py", "/p/*.py", True),
        (r"\*.py", "/p/x.py", False),
        ("x+y.py", "/p/x+y.py", True),
        ("x.py", "/p/xxpy", False),
    ],
)
def test_a_pattern_of_a_configuration(pattern: str, path: str, *, expected: bool) -> None:
    globs = Globs.compile([Glob(pattern, "/p")])
    assert globs.match(path, path.rpartition("/")[2]) is expected


def test_the_folder_of_a_pattern_means_itself() -> None:
    globs = Globs.compile([Glob("a/*.py", "/p[1]/{x}*")])
    assert globs.match("/p[1]/{x}*/a/b.py", "b.py")
    assert not globs.match("/p1/x/a/b.py", "b.py")


def test_several_patterns_are_one_question() -> None:
    globs = Globs.compile([Glob("a", "/p"), Glob("*.pyi", "/p"), Glob("b/c", "/p"), Glob("b/c", "/q")])
    matched = [path for path in ("/p/x/a", "/p/x.pyi", "/q/b/c", "/p/b") if globs.match(path, path.rpartition("/")[2])]
    assert matched == ["/p/x/a", "/p/x.pyi", "/q/b/c"]


@pytest.mark.parametrize("pattern", ["[", "a[b", "{a", "a}", "}{", "[z-a]"])
def test_what_is_no_pattern_is_named(pattern: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"`{pattern}` is not a pattern: ")):
        Globs.compile([Glob(pattern, "/p")])


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("a/*", "a/b", True),
        ("a/*", "a/b/c", False),
        ("a/?", "a//", False),
        ("a/[!b]", "a//", False),
        ("a/**", "a/b/c", True),
        ("a/**", "a/", False),
        ("{a,b}", "a", False),
        ("{a,b}", "{a,b}", True),
        ("{", "{", True),
        ("**", "a/b", True),
        ("a**b", "a/b", False),
        ("a**b", "axxb", True),
    ],
)
def test_a_pattern_of_git(pattern: str, path: str, *, expected: bool) -> None:
    assert (re.fullmatch(translate(pattern, as_git=True), path) is not None) is expected


HOSTILE = (
    "a" + "*a" * 40 + "*b",
    "{a,aa}*" * 8 + "b",
    "**/a*" * 40 + "/b",
    "*" * 4_000 + "b",
    "a*/" * 60 + "b",
    "[" * 4_000,
)


@pytest.mark.parametrize("pattern", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize(
    "path", ["a" * 4_000, "a/" * 2_000, "a" * 250 + "/" + "a" * 3_000], ids=["name", "folders", "both"]
)
@pytest.mark.parametrize("as_git", [False, True])
def test_no_pattern_explodes(pattern: str, path: str, *, as_git: bool) -> None:
    started = time.process_time()
    try:
        found = re.compile(translate(pattern, as_git=as_git), re.DOTALL).fullmatch(path)
    except ValueError:
        found = None
    assert found is None
    assert time.process_time() - started < 2


def _as_before(pattern: str, *, as_git: bool) -> str:
    """The regular expression that tries every place for every star: slow, and plain to see."""
    star, one = ("[^/]*", "[^/]") if as_git else (".*", ".")
    found = ""
    for part in re.findall(r"^\*\*/|/\*\*/|/\*\*$|\*+|.", re.sub(r"(?:/\*\*)+(?=/|$)", "/**", pattern)):
        deep = {"**/": "(?:.*/)?", "/**/": "/(?:.*/)?", "/**": "/.+" if as_git else "/.*"}
        braces = {} if as_git else {"{": "(?:", ",": "|", "}": ")"}
        found += deep.get(part) or (
            star if part[0] == "*" else one if part == "?" else braces.get(part) or re.escape(part)
        )
    return found


_PATTERN = st.lists(st.sampled_from(["a", "b", "*", "**", "/", "/**/", "?", "{a,b*}", "{*a,}"]), max_size=8).map(
    "".join
)


@given(pattern=_PATTERN, path=st.text("ab/", max_size=12), as_git=st.booleans())
@settings(max_examples=2_000, deadline=None)
def test_the_first_place_is_as_good_as_any(pattern: str, path: str, *, as_git: bool) -> None:
    if pattern == "**":
        return
    slow = re.fullmatch(_as_before(pattern, as_git=as_git), path, re.DOTALL)
    quick = re.fullmatch(translate(pattern, as_git=as_git), path, re.DOTALL)
    assert (quick is None) is (slow is None)


@pytest.mark.parametrize(
    ("patterns", "message"),
    [
        (["{" * 11 + "a" + "}" * 11], "braces nest more than 10 deep"),
        (["{a,b,c}" * 10], "stands for too many patterns"),
        (["a" * 4_097], "a pattern may have 4096"),
        ([f"a{i}*" for i in range(2_001)], "there are 2001 patterns with wildcards"),
        ([f"a{i}*" + "b" * 400 for i in range(2_000)], "too long together"),
    ],
    ids=["deep", "many", "long", "patterns", "together"],
)
def test_what_would_take_long_is_refused(patterns: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Globs.compile([Glob(pattern, "/p") for pattern in patterns])


def test_names_and_paths_may_be_many() -> None:
    globs = Globs.compile([Glob(f"{folder}x{i}.py", "/p") for i in range(20_000) for folder in ("", "a/")])
    assert globs.match("/p/b/x7.py", "x7.py")
    assert globs.match("/p/a/x19999.py", "y.py")
    assert not globs.match("/p/a/b.py", "b.py")


def test_an_escaped_comma_divides_no_braces() -> None:
    globs = Globs.compile([Glob(r"{a\,b,c}", "/p")])
    assert [name for name in ("a", "a,b", "b", "c") if globs.match(f"/p/{name}", name)] == ["a,b", "c"]
