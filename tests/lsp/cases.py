"""Many cases in one test, where a server of its own for each would only take time."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def case(what: object) -> Iterator[None]:
    """One of the cases of a test; what fails in it says which it was."""
    try:
        yield
    except (Exception, pytest.fail.Exception) as error:
        raise AssertionError(f"in the case of {what!r}") from error
