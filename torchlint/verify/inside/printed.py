"""Compares what two programs printed."""

from __future__ import annotations

import difflib
import math
import re

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|\b(?:nan|inf)\b", re.IGNORECASE)
_MOST = 40
_READ = 2000  # lines: finding the differences takes quadratic time


def printed_differences(before: str, after: str, *, tolerance: float | None) -> list[str]:
    """The lines that went (`- `) and came (`+ `), 40 at most.

    Numbers may differ by `tolerance` of their size, or by one in the last digit that is printed; by nothing if it is 0,
    and as they like if it is None.
    """
    first, second = before.splitlines(), after.splitlines()
    keys = first, second
    if tolerance != 0:
        keys = [_NUMBER.sub("#", line) for line in first], [_NUMBER.sub("#", line) for line in second]
    matcher = difflib.SequenceMatcher(a=keys[0][:_READ], b=keys[1][:_READ], autojunk=False)
    lines: list[str] = []
    for tag, start, end, second_start, second_end in matcher.get_opcodes():
        if tag != "equal":
            lines += [f"- {line}" for line in first[start:end]]
            lines += [f"+ {line}" for line in second[second_start:second_end]]
        elif tolerance:
            for old, new in zip(first[start:end], second[second_start:second_end], strict=True):
                if not _close(old, new, tolerance):
                    lines += [f"- {old}", f"+ {new}"]
    if len(first) != len(second) and max(len(first), len(second)) > _READ:
        lines.append(f"{len(second)} lines, {len(first)} before")
    return [*lines[:_MOST], f"... and {len(lines) - _MOST} more"] if len(lines) > _MOST else lines


def _close(old: str, new: str, tolerance: float) -> bool:
    """Whether the numbers of two lines, which are alike otherwise, are close."""
    for one, other in zip(_NUMBER.findall(old), _NUMBER.findall(new), strict=True):
        digit = max(_last_digit(one), _last_digit(other))
        a, b = float(one), float(other)
        if not (one == other or math.isclose(a, b, rel_tol=tolerance, abs_tol=1.001 * digit)):
            return False
    return True


def _last_digit(number: str) -> float:
    """What one more in the last digit is worth: 0.01 for `3.14`; nothing for a whole number, which is not rounded."""
    mantissa, _, exponent = number.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    return 10.0 ** (int(exponent or 0) - decimals) if decimals else 0.0
