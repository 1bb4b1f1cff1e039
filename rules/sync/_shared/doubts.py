"""What may speak against sparing a read or another wait, and what of it makes nothing worth a word."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from torchlint.rule import Doubt, Flag, Rule

READ_DOUBTS = (
    (Doubt.RATE_UNKNOWN, ""),
    (Doubt.UNCALLED, ""),
    (Doubt.USE_UNKNOWN, ""),
    (Doubt.DEVICE_UNKNOWN, ""),
    (Doubt.VALUE_DECIDES, ""),
    (Doubt.HOST_NEEDS_IT, ""),
    (Doubt.OPTION_DECIDES, ""),
    (Doubt.NAMED_RARE, ""),
    (Doubt.NAMED_OTHERWISE, ""),
    (Doubt.RUNS_ONCE, "One wait costs microseconds."),
    (Doubt.RARE, "To read a value now and then is what the rule advises."),
    (Doubt.WAITS_ANYWAY, "Where the CPU has just waited, another read costs next to nothing."),
    (Doubt.WAITS_TOO, ""),
)

# What may speak against sparing a wait of any other kind.
WAIT_DOUBTS = READ_DOUBTS

# And against leaving out a statement that tidies up or waits by hand.
CHORE_DOUBTS = (
    (Doubt.RATE_UNKNOWN, ""),
    (Doubt.UNCALLED, ""),
    (Doubt.MEANT, ""),
    (Doubt.OPTION_DECIDES, ""),
    (Doubt.NAMED_RARE, ""),
    (Doubt.RUNS_ONCE, "Between two parts of a program it costs next to nothing."),
    (Doubt.RARE, "Now and then it costs next to nothing."),
    (Doubt.WAITS_ANYWAY, "Where the CPU has just waited, there is nothing left to wait for."),
)


def weighed(rule: Rule, doubts: Iterable[Doubt]) -> tuple[Doubt, ...]:
    """The doubts in their order, each once, up to the first that makes the rule silent: the rest need not be asked."""
    return tuple(dict.fromkeys(_up_to_worthless(rule, doubts)))


def certain_first(flags: Iterable[Flag]) -> Iterator[Flag]:
    """The first flag that has no doubts; where there is none, the first."""
    first = None
    for flag in flags:
        if not flag.doubts:
            yield flag
            return
        first = first or flag
    if first is not None:
        yield first


def _up_to_worthless(rule: Rule, doubts: Iterable[Doubt]) -> Iterator[Doubt]:
    worthless = {doubt for doubt, reason in rule.doubts if reason}
    for doubt in doubts:
        yield doubt
        if doubt in worthless:
            return
