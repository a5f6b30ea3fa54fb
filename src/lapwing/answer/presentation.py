"""Values and ends of intervals as people read them: times, text, HTML.

Nothing here raises on any released number.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from lapwing.answer.python_values import Cell
from lapwing.privacy import figures
from lapwing.privacy.figures import FREE, NOTHING_PROTECTED, epsilon, level, plain, separated, with_margins
from lapwing.privacy.measures import Loss
from lapwing.query.derivation.columns import Shape
from lapwing.query.derivation.intervals import INTERVAL_CONFIDENCE

EndArray = NDArray[Any]
"""Ends of intervals: float64, int64 of whole numbers, or datetime64, with NaN or NaT where there is none.

Which of them follows from the question, which no static type knows; a union type would make every comparison of two
ends an error.
"""


EXACT: Final = 1 << 53
"""Whole numbers below this in size are doubles exactly, and are shown as integers."""


def ends_shown(ends: NDArray[np.float64], shape: Shape) -> EndArray:
    """Return ends as what they stand for: of a date they are whole days, of a timestamp seconds, since 1970-01-01.

    Of an integer they are int64, if every cell has an interval with whole and finite ends that doubles hold exactly.

    Seconds of the years 1 to 9999 are fewer than 2³⁹ to either side, so that doubles hold them to a tenth of a
    millisecond, and whole ones, which ends are, exactly.
    """
    if shape == "integer" and (np.abs(ends) < EXACT).all() and (ends == np.floor(ends)).all():
        return ends.astype(np.int64)
    if shape not in ("date", "timestamp"):
        return ends
    unknown = np.isnan(ends)
    whole = np.where(unknown, 0, ends).astype(np.int64)
    times: NDArray[np.datetime64] = whole.astype("datetime64[D]" if shape == "date" else "datetime64[s]")
    times = times if shape == "date" else times.astype("datetime64[us]")
    times[unknown] = np.datetime64("NaT")
    return times


class Bought(Protocol):
    """What was paid for, or was bought before."""

    @property
    def cost(self) -> Loss:
        """What this asking was charged."""

    @property
    def stored(self) -> bool:
        """Whether it was bought before."""


def cost_in_words(answer: Bought, delta: Fraction | None = None) -> str:
    """Return what an answer cost: as an epsilon, which is how questions say it, where the budget's delta is known."""
    if not answer.cost.amount:
        return FREE if answer.stored else NOTHING_PROTECTED
    return f"cost {answer.cost if delta is None else f'ε = {epsilon(answer.cost.to_epsilon(delta=delta))}'}"


def caption(answer: Bought, confidence: Fraction = INTERVAL_CONFIDENCE, delta: Fraction | None = None) -> str:
    """Return what stands under an answer: what it cost, and how sure its intervals are."""
    return f"{cost_in_words(answer, delta)}; intervals at {level(confidence)}"


def show(value: Cell) -> str:
    """Return a value without a ±, as people read it: thousands separated."""
    return (
        separated(value) if isinstance(value, int | float | Decimal) and not isinstance(value, bool) else plain(value)
    )


def html_table(
    columns: Sequence[str],
    rows: Sequence[Mapping[str, Cell]],
    intervals: Mapping[str, tuple[EndArray, EndArray]],
    *,
    caption: str,
) -> str:
    """Return an answer as notebooks show it: a ± behind every noisy number, the ends of its interval behind a date."""
    cells = [texts_of(name, rows, intervals) for name in columns]
    return figures.html_table(columns, list(zip(*cells, strict=True)), caption=caption, numbers=intervals)


def texts_of(
    name: str, rows: Sequence[Mapping[str, Cell]], intervals: Mapping[str, tuple[EndArray, EndArray]]
) -> list[str]:
    """Return the values of a column as people read them, noisy ones with their ±."""
    values = [row[name] for row in rows]
    if name not in intervals:
        return [plain(value) for value in values]
    low, high = (end[: len(values)] for end in intervals[name])
    return [value + margin for value, margin in with_margins(values, low, high)]
