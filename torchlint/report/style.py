"""Colours and links for a terminal, and whether to use them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

BOLD = "1"
DIM = "2"
ITALIC = "3"
DELETED = "31"
INSERTED = "32"
ALARM = "1;91"
WARNING = "1;93"
FRAME = "1;94"
HINT = "1;96"
CODE = "36"

_LINKING_TERMS = ("alacritty", "contour", "foot", "xterm-ghostty", "xterm-kitty")
_LINKING_PROGRAMS = ("Hyper", "Tabby", "WezTerm", "ghostty", "iTerm.app", "rio", "vscode", "zed")
_VTE_WITH_LINKS = 5000


class Stream(Protocol):
    """What is written to, as far as colours are concerned."""

    def isatty(self) -> bool:
        """Whether a person looks at it."""
        ...


@dataclass(frozen=True, slots=True)
class Style:
    """How text is dressed; the default leaves it as it is."""

    color: bool = False
    links: bool = False

    def paint(self, text: str, ink: str) -> str:
        """`text` in the colour of an SGR parameter such as `BOLD`."""
        return f"\x1b[{ink}m{text}\x1b[0m" if self.color and text else text

    def link(self, text: str, url: str | None) -> str:
        """`text` as an OSC 8 hyperlink."""
        return f"\x1b]8;;{url}\x1b\\{text}\x1b]8;;\x1b\\" if self.links and url else text


PLAIN = Style()


def decide(color: str, stream: Stream, environ: Mapping[str, str]) -> bool:
    """Whether to colour what goes to `stream` under `--color auto`, `always` or `never`.

    In `auto`, FORCE_COLOR and CLICOLOR_FORCE win over NO_COLOR (no-color.org), and that over the terminal.
    """
    if color != "auto":
        return color == "always"
    if _on(environ, "FORCE_COLOR") or _on(environ, "CLICOLOR_FORCE"):
        return True
    if environ.get("NO_COLOR") or environ.get("CLICOLOR") == "0" or environ.get("TERM") == "dumb":
        return False
    return stream.isatty()


def decide_links(stream: Stream, environ: Mapping[str, str]) -> bool:
    """Whether `stream` shows OSC 8 hyperlinks; the terminals known to are those of the crate supports-hyperlinks."""
    if "FORCE_HYPERLINK" in environ:
        return _on(environ, "FORCE_HYPERLINK")
    if not stream.isatty() or environ.get("TERM") == "dumb" or "CI" in environ:
        return False
    vte = environ.get("VTE_VERSION", "")
    return (
        (vte.isdecimal() and int(vte) >= _VTE_WITH_LINKS)
        or environ.get("TERM_PROGRAM") in _LINKING_PROGRAMS
        or environ.get("TERM", "").startswith(_LINKING_TERMS)
        or any(name in environ for name in ("DOMTERM", "KONSOLE_VERSION", "WT_SESSION"))
    )


def _on(environ: Mapping[str, str], name: str) -> bool:
    return environ.get(name, "") not in ("", "0")
