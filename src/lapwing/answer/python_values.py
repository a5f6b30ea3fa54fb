"""Columns as Python values: ints, Decimals, floats, texts, dates, None; and the notes beside them.

Arithmetic over an answer is exact and may grow without end. A number beyond 10^308 is shown as a double, which is
infinite if it is beyond every double. Nothing here raises on any released number.
"""

from typing import Self, cast, final

import numpy as np

from lapwing.answer.decimals import cell, decimals, scaled_to_places
from lapwing.exact.arrays import product
from lapwing.privacy.figures import Cell as Cell
from lapwing.query.derivation import rationals
from lapwing.query.derivation.columns import Column, Rationals, Shape


def cells(column: Column, shape: Shape) -> list[Cell]:
    """Return an expanded column as Python values: integers, Decimals or floats by its type, NULL as None."""
    if not isinstance(column, Rationals):
        return cast(list[Cell], column.values())
    return _cells_at_once(column, shape) or [cell(value, shape) for value in column.values()]


def _cells_at_once(column: Rationals, shape: Shape) -> list[Cell] | None:
    """Return the values of a column at once if it has a common form, else None."""
    entries: list[Cell]
    if shape == "real":
        entries = rationals.floats(column).tolist()
    elif shape == "integer" and is_whole(column):
        entries = product(column.tops, np.array([int(column.scale)])).tolist()
    elif shape == "decimal" and (scaled := scaled_to_places(column)) is not None:
        entries = list(decimals(*scaled))
    else:
        return None
    return (
        entries
        if column.null is None
        else [None if n else v for v, n in zip(entries, column.null.tolist(), strict=True)]
    )


def is_whole(column: Rationals) -> bool:
    """Tell whether a column is of whole numbers of at most 64 bits."""
    return (
        column.bottoms is None
        and column.scale.denominator == 1
        and column.scale < 2**62
        and product(column.tops, np.array([int(column.scale)])).dtype == np.int64
    )


@final
class Note(str):
    """A note beside an answer or a price: a text for people, with a code for programs (`answer.notes`)."""

    code: str

    def __new__(cls, text: str, code: str = "") -> Self:
        """Return a note; one without a code has an empty one."""
        note = super().__new__(cls, text)
        note.code = code
        return note
