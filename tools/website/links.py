"""What is wrong with the links of a built site: to files and anchors that are not there, or loaded from elsewhere."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src"}
_LOADED_LINKS = {"stylesheet", "preload", "modulepreload", "icon", "manifest"}


class _Page(HTMLParser):
    """The anchors of a page, what it links to, and what it loads."""

    def __init__(self) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors.update(values[name] for name in ("id", "name") if name in values and tag != "meta")
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in _LOADED and _LOADED[tag] in values:
            self.loaded.append(values[_LOADED[tag]])
        if tag == "link" and _LOADED_LINKS.intersection(values.get("rel", "").split()):
            self.loaded.append(values.get("href", ""))


def problems(site: Path, address: str) -> list[str]:
    """One line for each link of the site in `site`, which is published at `address`, that leads nowhere."""
    pages = {path: _read(path) for path in sorted(site.rglob("*.html"))}
    return [line for path in pages for line in _problems(path, pages, site, address)]


def _read(path: Path) -> _Page:
    page = _Page()
    page.feed(path.read_text("utf-8"))
    return page


def _problems(path: Path, pages: dict[Path, _Page], site: Path, address: str) -> Iterator[str]:
    page = pages[path]
    where = path.relative_to(site).as_posix()
    for target in page.loaded:
        if urlsplit(target).scheme not in ("", "data") or target.startswith("//"):
            yield f"{where}: loads {target} from elsewhere"
    for target in (*page.links, *page.loaded):
        url = target.removeprefix(address) if target.startswith(address) else target
        parts = urlsplit(url)
        if parts.scheme or parts.netloc:
            continue
        # The page that is shown for what is not there links from the top of the site's host.
        base = site if target.startswith((address, "/")) else path.parent
        place = (
            unquote(parts.path).removeprefix(urlsplit(address).path).lstrip("/")
            if base == site
            else unquote(parts.path)
        )
        file = (base / place).resolve() if place else (path if base != site else site)
        if file.is_dir():
            file /= "index.html"
        if not file.is_file():
            yield f"{where}: {target} leads to no file"
        elif parts.fragment and file in pages and unquote(parts.fragment) not in pages[file].anchors:
            yield f"{where}: {target} leads to no heading"
