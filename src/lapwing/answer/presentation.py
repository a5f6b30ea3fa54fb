"""Values and ends of intervals as people read them: times, text, HTML.

Nothing here raises on any released number.
"""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from html import escape
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from lapwing.answer.python_values import Cell
from lapwing.privacy.measures import Loss
from lapwing.query.derivation.columns import Shape
from lapwing.query.derivation.intervals import INTERVAL_CONFIDENCE

EndArray = NDArray[Any]
"""Ends of intervals: float64, int64 of whole numbers, or datetime64, with NaN or NaT where there is none.

Which of them follows from the question, which no static type knows; a union type would make every comparison of two
ends an error.
"""


_EXACT: Final = 1 << 53


def ends_shown(ends: NDArray[np.float64], shape: Shape) -> EndArray:
    """Return ends as what they stand for: of a date they are whole days, of a timestamp seconds, since 1970-01-01.

    Of an integer they are int64, if every cell has an interval with whole and finite ends that doubles hold exactly.

    Seconds of the years 1 to 9999 are fewer than 2³⁹ to either side, so that doubles hold them to a tenth of a
    millisecond, and whole ones, which ends are, exactly.
    """
    if shape == "integer" and (np.abs(ends) < _EXACT).all() and (ends == np.floor(ends)).all():
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


def caption(answer: Bought, confidence: Fraction = INTERVAL_CONFIDENCE) -> str:
    """Return what stands under an answer: what it cost, and how sure its intervals are."""
    free = "free: bought before" if answer.stored else "free: all of it is public"
    cost = f"cost {answer.cost}" if answer.cost.amount else free
    return f"{cost}; intervals at {float(100 * confidence):g} %"


def show(value: Cell) -> str:
    """Return a value as people read it: thousands separated, real numbers to five digits."""
    match value:
        case None:
            return "–"
        case bool():
            return str(value).lower()
        case int():
            return f"{value:,}"
        case float() | Decimal():
            number = float(value)
            return (
                f"{number:,.0f}"
                if abs(number) >= 100_000
                else f"{number:,.5g}"
                if abs(number) < 1000
                else f"{number:,.1f}"
            )
        case _:
            return str(value)


def html_table(
    columns: Sequence[str],
    rows: Sequence[Mapping[str, Cell]],
    intervals: Mapping[str, tuple[EndArray, EndArray]],
    *,
    caption: str,
) -> str:
    """Return an answer as notebooks show it, noisy values with the ends of their intervals."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = []
    for i, row in enumerate(rows):
        cells = []
        for name, value in row.items():
            text = escape(show(value))
            ends = [end[i].item() for end in intervals.get(name, ())]
            if ends and ends[0] is not None and ends[0] == ends[0]:  # NaN or None: not known
                text += f" <small>[{escape(show(ends[0]))}, {escape(show(ends[1]))}]</small>"
            cells.append(f"<td>{text}</td>")
        body.append(f"<tr>{''.join(cells)}</tr>")
    caption = escape(caption)
    return f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table>"
