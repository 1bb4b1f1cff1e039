"""Whether processes that the program starts use the device, too: what they ask of it is not counted here."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator

ENVIRONMENT = "TORCHLINT_SIMULATED_IN"
"""Names, for all processes that come of this one, the file that those that use the device write to."""


class Children:
    """Those of the process that simulates the device."""

    __slots__ = ("_file", "_owner", "_told")

    def __init__(self) -> None:
        self._owner = 0
        self._file = ""
        self._told = False

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Let processes that are started inside tell."""
        with tempfile.NamedTemporaryFile(prefix="torchlint-children-") as file:
            before = os.environ.get(ENVIRONMENT)
            self._owner, self._file, self._told = os.getpid(), file.name, False
            os.environ[ENVIRONMENT] = file.name
            try:
                yield
            finally:
                self._owner = 0
                if before is None:
                    del os.environ[ENVIRONMENT]
                else:
                    os.environ[ENVIRONMENT] = before

    def use(self) -> None:
        """The device is used in this process: tell, if it is not the one that simulates it."""
        if self._told or self._owner == os.getpid():
            return
        self._told = True
        name = os.environ.get(ENVIRONMENT)
        if name:
            with contextlib.suppress(OSError), open(name, "ab") as file:  # noqa: PTH123 - no Path here
                file.write(b".")

    def used(self) -> bool:
        """Whether one of them has used it."""
        with contextlib.suppress(OSError):
            return os.stat(self._file).st_size > 0  # noqa: PTH116 - as above
        return False


children = Children()
