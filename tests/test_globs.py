"""Patterns mean what ruff's documentation says of `exclude`, and what git's says of .gitignore."""

from __future__ import annotations

import re

import pytest

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
