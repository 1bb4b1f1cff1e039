"""Loops over what a branch around them has found to be a list."""

from __future__ import annotations

import libcst as cst

from torchlint.semantics.context import Context
from torchlint.semantics.names.loop_headers import asked_for_a_list, iterables, length_of


def is_known_as_list(loop: cst.For | cst.CompFor, context: Context) -> bool:
    """Whether the branch around the loop has asked whether this is a list: `isinstance(y[0], (list, tuple))`."""
    walked = [length_of(each) for each in iterables(loop.iter)]
    for test, is_taken in context.conditions(loop):
        asked = asked_for_a_list(test) if is_taken else None
        if asked is not None and any(context.bare_code(asked) == context.bare_code(each) for each in walked):
            return True
    return False
