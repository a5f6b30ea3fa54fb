"""An answer as text, for `print`: a ± behind every noisy number, the ends of its interval behind a date or time."""

import math
from collections.abc import Mapping, Sequence

from lapwing.answer.presentation import EndArray
from lapwing.answer.python_values import Cell
from lapwing.figures import noisy, places_of, plain, reach_of

MOST_ROWS = 40
"""Rows that are printed; the first of them, as in the answer."""


def text_table(
    columns: Sequence[str],
    rows: Sequence[Mapping[str, Cell]],
    intervals: Mapping[str, tuple[EndArray, EndArray]],
    *,
    caption: str,
) -> str:
    """Return rows as aligned text, with a caption under them."""
    shown = rows[:MOST_ROWS]
    cells = []
    for name in columns:
        values = [row[name] for row in shown]
        ends = intervals.get(name)
        cells.append([name, *(map(plain, values) if ends is None else _with_margins(values, *ends))])
    widths = [max(map(len, column)) for column in cells]
    lines = [_line(row, widths, columns, intervals) for row in zip(*cells, strict=True)]
    more = [f"… and {len(rows) - len(shown):,} more rows"] if len(rows) > len(shown) else []
    return "\n".join([lines[0], "─" * (sum(widths) + 3 * (len(widths) - 1)), *lines[1:], *more, caption])


def _line(
    row: Sequence[str], widths: Sequence[int], columns: Sequence[str], noisy_columns: Mapping[str, object]
) -> str:
    padded = [
        cell.rjust(width) if name in noisy_columns else cell.ljust(width)
        for cell, width, name in zip(row, widths, columns, strict=True)
    ]
    return "   ".join(padded).rstrip()


def _with_margins(values: Sequence[Cell], low: EndArray, high: EndArray) -> list[str]:
    if low.dtype.kind == "M":
        ends = zip(values, low.tolist(), high.tolist(), strict=False)
        return [
            plain(value) if least is None else f"{plain(value)} {plain(least)} … {plain(most)}"
            for value, least, most in ends
        ]
    triples = [(value, float(least), float(most)) for value, least, most in zip(values, low, high, strict=False)]
    reaches = [reach_of(*triple) for triple in triples]
    places = max((places_of(reach) for reach in reaches if math.isfinite(reach)), default=0)
    pairs = [noisy(*triple, places) for triple in triples]
    width = max((len(margin) for _, margin in pairs), default=0)
    return [f"{value} {margin:>{width}}" if width else value for value, margin in pairs]
