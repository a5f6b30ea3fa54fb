"""Tasks that collectors of the tests have, and reports on them."""

import os
from collections.abc import Sequence
from datetime import date
from fractions import Fraction
from typing import Any, Final

from lapwing.local import (
    BinaryResponse,
    DuchiMean,
    DyadicTree,
    HadamardSketch,
    KaryResponse,
    PrefixExtending,
    Rappor,
    client,
    grid,
    new_record_task,
    new_task,
)

OPEN: Final[dict[str, Any]] = {"opens": date(2026, 1, 1), "closes": date(2099, 12, 31)}
PAST: Final[dict[str, Any]] = {"opens": date(2026, 1, 1), "closes": date(2026, 2, 1), "retention_days": 36_500}
IN_TIME: Final = date(2026, 1, 5)
"""A day on which both are open."""
COIN: Final = new_task("Have you cheated in an exam?", ["no", "yes"], BinaryResponse.for_epsilon(1), **OPEN)
WAYS: Final = new_task("How do you come?", list("abcde"), KaryResponse.for_epsilon(2, 5), **OPEN)
CLOSED: Final = new_task("How did you come?", list("abcde"), KaryResponse.for_epsilon(2, 5), **PAST)
MINUTES: Final = new_task("How long?", grid(0, 120), DuchiMean.for_epsilon(1, grid(0, 120)), **OPEN)
PERIODS: Final = new_task("At home?", ["no", "yes"], DyadicTree.for_epsilon(1, 4, 2, days=7), **OPEN)
RECORD: Final = new_record_task(
    "Your way",
    [
        ("How do you come?", ["walk", "bus", "car"], KaryResponse.for_epsilon(1, 3)),
        ("How long?", grid(0, 120), DuchiMean.for_epsilon(1, grid(0, 120))),
    ],
    **OPEN,
)
GONE: Final = new_task(
    "How did you come?", list("abcde"), KaryResponse.for_epsilon(2, 5), **{**PAST, "retention_days": 7}
)
"""One whose reports are deleted after the 8th of February."""
SKETCH: Final = new_task("A word?", client.Text(8), HadamardSketch.for_epsilon(3, functions=16, order=6), **OPEN)
BITS: Final = new_task("A word?", client.Text(8), Rappor.once(3, cohorts=8), **OPEN)
FOUND: Final = new_task("Two letters?", client.Text(2), PrefixExtending.for_epsilon(Fraction(5), 2), **OPEN)
WORDS: Final = new_task("A word?", client.Text(8), PrefixExtending.for_epsilon(Fraction(1), 8), **OPEN)


def reports(task: client.Task, answers: Sequence[Any], read: client.Read = os.urandom) -> list[bytes]:
    """Return a report for each answer, each from a device of its own that knows nothing yet."""
    lines = []
    for answer in answers:
        memory: client.Memory = {}
        line = None
        for period in range(1, 9):
            line, memory = client.report_with_memory(task, answer, read, memory, period)
            if line is not None:
                break
        assert line is not None
        lines.append(line)
    return lines


def body(lines: Sequence[bytes]) -> bytes:
    return b"\n".join(lines) + b"\n"
