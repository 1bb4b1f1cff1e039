"""What may speak against sparing the read of one value, and what of it makes nothing worth a word."""

from __future__ import annotations

from torchlint.rule import Doubt

READ_DOUBTS = (
    (Doubt.RATE_UNKNOWN, ""),
    (Doubt.UNCALLED, ""),
    (Doubt.USE_UNKNOWN, ""),
    (Doubt.DEVICE_UNKNOWN, ""),
    (Doubt.VALUE_DECIDES, ""),
    (Doubt.HOST_NEEDS_IT, ""),
    (Doubt.RUNS_ONCE, "One wait costs microseconds."),
    (Doubt.RARE, "To read a value now and then is what the rule advises."),
    (Doubt.WAITS_ANYWAY, "Where the CPU has just waited, another read costs next to nothing."),
)
