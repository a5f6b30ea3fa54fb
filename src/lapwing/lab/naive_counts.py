"""Naive targets of the attacks on counts and sums: what is published without differential privacy, or with too little.

None of it has a way into the engine.
"""

from datetime import date
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from lapwing.lab.chance import generator

HIDDEN_BELOW: Final = 5
"""Smaller counts are not shown: a rule of many offices of statistics."""


def exact_count(table: pa.Table, editor: str, *, born: date | None = None, not_born: date | None = None) -> int:
    """Count who use an editor, of all, or of those who were born on a day, or on another."""
    mask = pc.equal(table["editor"], editor)
    if born is not None:
        mask = pc.and_(mask, pc.equal(table["birth_date"], born))
    if not_born is not None:
        mask = pc.and_(mask, pc.not_equal(table["birth_date"], not_born))
    return int(pc.sum(mask).as_py() or 0)


def hidden_if_small(count: int) -> int | None:
    """Return a count, or None for a small one."""
    return count if count >= HIDDEN_BELOW else None


def with_laplace(true: float, scale: float, size: int | tuple[int, ...]) -> NDArray[np.float64]:
    """Return answers with fresh continuous Laplace noise, as often as one likes."""
    return true + generator().laplace(0.0, scale, size)
