"""The line of progress is shown late, seldom, and is gone in the end."""

from __future__ import annotations

import io
import time

import pytest

from torchlint.progress import Progress


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)
    return clock


def test_a_short_run_shows_nothing(clock: Clock) -> None:
    terminal = io.StringIO()
    progress = Progress(9, terminal)
    for _ in range(9):
        clock.now += 0.1
        progress.advance(linted=True)
    progress.clear()
    assert terminal.getvalue() == ""


def test_a_long_run_shows_how_far_it_is_and_clears_the_line(clock: Clock) -> None:
    terminal = io.StringIO()
    progress = Progress(300, terminal)
    for i in range(300):
        clock.now += 0.01
        progress.advance(linted=i % 3 == 0)
    shown = terminal.getvalue().split("\r\x1b[K")
    assert shown[0] == ""
    assert shown[1] in ("100 of 300 files", "101 of 300 files")
    assert 15 <= len(shown) <= 22
    progress.clear()
    assert terminal.getvalue().endswith(" files\r\x1b[K")
    assert (progress.known, progress.linted) == (200, 100)


def test_without_a_terminal_it_only_counts(clock: Clock) -> None:
    progress = Progress(2, None)
    clock.now += 10
    progress.advance(linted=True)
    progress.advance(linted=False)
    progress.clear()
    assert (progress.known, progress.linted) == (1, 1)
