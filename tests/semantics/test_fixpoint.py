"""Questions that depend on each other: where they start, and that they end."""

from __future__ import annotations

from collections.abc import Callable, Hashable

import pytest

from torchlint.semantics.values.fixpoint import Ends, Questions

UNKNOWN, TOP = -1, 99
LARGEST = Ends(UNKNOWN, TOP, max)


def answers(find: Callable[[Callable[[Hashable], int], Hashable], int], ends: Ends | None, first: str) -> list[int]:
    """What is found for `a` and `b`, of which one is asked first; each is found by asking for the other."""
    questions = Questions()

    def ask(key: Hashable) -> int:
        return questions.settled(key, 0, lambda asked: find(ask, asked), key, ends)

    ask(first)
    return [ask("a"), ask("b")]


def other(key: Hashable) -> str:
    return "b" if key == "a" else "a"


@pytest.mark.parametrize("first", ["a", "b"])
@pytest.mark.parametrize(
    ("find", "found"),
    [
        (lambda ask, key: max(ask(other(key)), 3), [3, 3]),
        (lambda ask, key: ask(other(key)), [UNKNOWN, UNKNOWN]),  # nothing leads there
        (lambda ask, key: 5 if ask(other(key)) == UNKNOWN else 0, [5, 5]),  # and something else tells
        (lambda ask, key: ask(other(key)) % 3 + 1, [3, 3]),  # goes round: what holds for all turns
        (lambda ask, key: 1 if ask(other(key)) == 0 else 0, [UNKNOWN, UNKNOWN]),  # known, and no more
        (lambda ask, key: ask(other(key)) + 1, [TOP, TOP]),  # grows for ever
        (lambda ask, key: 7 if key == "a" else ask("a"), [7, 7]),  # no circle
    ],
)
def test_answers_settle_at_what_holds_for_all_rounds(
    find: Callable[[Callable[[Hashable], int], Hashable], int], found: list[int], first: str
) -> None:
    assert answers(find, LARGEST, first) == found


@pytest.mark.parametrize("first", ["a", "b"])
def test_without_an_end_of_its_own_a_question_ends_where_it_began(first: str) -> None:
    assert answers(lambda ask, key: 1 - ask(other(key)), None, first) == [0, 0]
    assert answers(lambda ask, key: ask(other(key)) + 1, None, first) == [0, 0]
