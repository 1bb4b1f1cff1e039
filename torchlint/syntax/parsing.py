"""Text to LibCST's tree: quicker in a process that is torchlint's own, where LibCST's classes may be changed."""

from __future__ import annotations

from typing import TYPE_CHECKING

# LibCST is imported when there is something to parse: a process says that it is torchlint's own as it starts.
if TYPE_CHECKING:
    import libcst as cst

_is_own = False


def own_process() -> None:
    """Say that this process is torchlint's own: nobody else in it uses LibCST and would find its classes changed.

    For what starts a process, and for nothing that others import: not for a library, a plugin or somebody's tests.
    """
    global _is_own  # noqa: PLW0603 - a fact about the process
    _is_own = True


def parse(text: str) -> cst.Module:
    """`libcst.parse_module`; in torchlint's own process a quarter faster, and LibCST's classes are changed by it.

    Raises:
        libcst.ParserSyntaxError: the text is no Python.
        RecursionError: it nests too deeply.

    """
    if _is_own:
        from torchlint.syntax import light_nodes  # loads LibCST

        return light_nodes.parse(text)
    import libcst as cst  # as above

    return cst.parse_module(text)
