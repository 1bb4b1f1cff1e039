from __future__ import annotations

import pytest

from torchlint.report.style import BOLD, PLAIN, Style, decide, decide_links


class Terminal:
    def isatty(self) -> bool:
        return True


class Pipe:
    def isatty(self) -> bool:
        return False


@pytest.mark.parametrize(
    ("color", "terminal", "environ", "colored"),
    [
        ("auto", True, {}, True),
        ("auto", False, {}, False),
        ("auto", True, {"TERM": "dumb"}, False),
        ("auto", True, {"TERM": "xterm-256color"}, True),
        ("auto", True, {"NO_COLOR": "1"}, False),
        ("auto", True, {"NO_COLOR": "0"}, False),
        ("auto", True, {"NO_COLOR": ""}, True),
        ("auto", True, {"CLICOLOR": "0"}, False),
        ("auto", False, {"FORCE_COLOR": "1"}, True),
        ("auto", False, {"FORCE_COLOR": "0"}, False),
        ("auto", False, {"FORCE_COLOR": ""}, False),
        ("auto", False, {"CLICOLOR_FORCE": "1"}, True),
        ("auto", False, {"CLICOLOR_FORCE": "0"}, False),
        ("auto", False, {"FORCE_COLOR": "1", "NO_COLOR": "1", "TERM": "dumb"}, True),
        ("always", False, {"NO_COLOR": "1", "TERM": "dumb"}, True),
        ("never", True, {"FORCE_COLOR": "1"}, False),
    ],
)
def test_colours(color: str, terminal: bool, environ: dict[str, str], colored: bool) -> None:  # noqa: FBT001
    assert decide(color, Terminal() if terminal else Pipe(), environ) is colored


@pytest.mark.parametrize(
    ("terminal", "environ", "linked"),
    [
        (True, {}, False),
        (True, {"TERM": "xterm-256color"}, False),
        (True, {"TERM": "xterm-kitty"}, True),
        (True, {"TERM_PROGRAM": "vscode"}, True),
        (True, {"TERM_PROGRAM": "Apple_Terminal"}, False),
        (True, {"VTE_VERSION": "6800"}, True),
        (True, {"VTE_VERSION": "4205"}, False),
        (True, {"VTE_VERSION": "new"}, False),
        (True, {"WT_SESSION": "x"}, True),
        (True, {"WT_SESSION": "x", "TERM": "dumb"}, False),
        (True, {"WT_SESSION": "x", "CI": "true"}, False),
        (False, {"WT_SESSION": "x"}, False),
        (False, {"FORCE_HYPERLINK": "1"}, True),
        (True, {"FORCE_HYPERLINK": "0", "WT_SESSION": "x"}, False),
    ],
)
def test_links(terminal: bool, environ: dict[str, str], linked: bool) -> None:  # noqa: FBT001
    assert decide_links(Terminal() if terminal else Pipe(), environ) is linked


def test_dress() -> None:
    assert Style(color=True).paint("a", BOLD) == "\x1b[1ma\x1b[0m"
    assert Style(color=True).paint("", BOLD) == ""
    assert Style(links=True).link("a", "https://b") == "\x1b]8;;https://b\x1b\\a\x1b]8;;\x1b\\"
    assert Style(links=True).link("a", None) == "a"
    assert PLAIN.link(PLAIN.paint("a", BOLD), "https://b") == "a"
