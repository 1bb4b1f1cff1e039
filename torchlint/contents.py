"""What files hold: their bytes, what stands for these, and their outlines, each worked out when it is asked for."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from torchlint import regular
from torchlint.cache import Stamp, digest
from torchlint.project import Outline, outline
from torchlint.source import code_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from torchlint.cache import Cache
    from torchlint.discover import Found


class Contents:
    """What files hold, by key: `instead`, by path, of what is on the disk. A file that cannot be read holds nothing."""

    def __init__(
        self, files: Mapping[str, Found], cache: Cache | None, instead: Mapping[Path, bytes] = MappingProxyType({})
    ) -> None:
        self._files = files
        self._cache = cache
        self._instead = instead
        self._digests: dict[str, bytes] = {}

    def data(self, key: str) -> bytes:
        """The bytes of a file."""
        if self._files[key].path in self._instead:
            return self._instead[self._files[key].path]
        try:
            return regular.read(self._files[key].path)
        except OSError:
            return b""

    def digest(self, key: str) -> bytes:
        """What stands for the bytes of a file; a file whose stamp is known is not read for it."""
        if key not in self._digests:
            self._digests[key] = self._digest(key)
        return self._digests[key]

    def outline(self, key: str) -> Outline:
        """The outline of a file."""
        found = self._cache.outline(self.digest(key)) if self._cache is not None else None
        if found is None:
            data = self.data(key)
            found = outline(code_of(key, data))
            if self._cache is not None:
                self._cache.keep_outline(digest(data, key), found)  # it may have changed since its stamp was read
        return found

    def _digest(self, key: str) -> bytes:
        path = self._files[key].path
        if path in self._instead:
            return digest(self._instead[path], key)
        try:
            stamp = Stamp.of(path.stat())
        except OSError:
            return digest(b"", key)
        content = self._cache.content(path, stamp) if self._cache is not None else None
        if content is None:
            content = digest(self.data(key), key)
            if self._cache is not None:
                self._cache.keep_content(path, stamp, content)
        return content
