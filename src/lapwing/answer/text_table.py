"""An answer as text, for `print`: a ± behind every noisy number, the ends of its interval behind a date or time."""

from collections.abc import Mapping, Sequence

from lapwing.answer.presentation import EndArray, texts_of
from lapwing.answer.python_values import Cell

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
    cells = [[name, *texts_of(name, shown, intervals)] for name in columns]
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
