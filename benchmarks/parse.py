"""Parse the files named on standard input and nothing else: what any linter on the same parser has to pay."""

from __future__ import annotations

import gc
import sys
from contextlib import suppress
from pathlib import Path


def parse_with_ast(data: bytes) -> None:
    """Parse with the standard library; what is no Python counts as well."""
    import ast  # in the function, so that each run pays for its own parser alone

    with suppress(SyntaxError):
        ast.parse(data)


def parse_with_libcst(data: bytes) -> None:
    """Parse with LibCST; what is no Python counts as well."""
    import libcst

    with suppress(libcst.ParserSyntaxError):
        libcst.parse_module(data)


PARSERS = {"ast": parse_with_ast, "libcst": parse_with_libcst}

if __name__ == "__main__":
    if "--no-gc" in sys.argv:
        gc.disable()
    for path in sys.stdin.read().splitlines():
        PARSERS[sys.argv[1]](Path(path).read_bytes())
