"""From a question, a function of the rows, to each person's value in steps: total on every input, whatever the data."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter
from lapwing.exact.arrays import IntArray
from lapwing.holdout.strategy import STEPS
from lapwing.privacy.amounts import Number, exact

Bounds = tuple[Number, Number]

CHECKED: Final = 1000
"""So many of the first people are asked alone too, to see that a person's value depends on that person's row alone."""


class Rows(Protocol):
    """People, one each: an array, an Arrow table, a pandas or polars data frame, a list."""

    def __len__(self) -> int: ...


def people_of(data: Rows) -> int:
    """Return how many people there are.

    Raises: InvalidParameter for what has no rows in order.
    """
    if isinstance(data, str | bytes | dict | set | frozenset) or not hasattr(data, "__len__"):  # any kind of table
        raise InvalidParameter(
            f"The data are a {type(data).__name__}; give an array, an Arrow table or a data frame, one row a person."
        )
    size = len(data)
    if size < 1:
        raise InvalidParameter("The data have no rows; a holdout needs one person at least.")
    return size


def bounds_of(bounds: Bounds) -> tuple[Fraction, Fraction]:
    """Return a lower and an upper bound, exactly."""
    try:
        first, second = bounds
    except (TypeError, ValueError):
        raise InvalidParameter(f"bounds are {bounds!r:.60}; give a pair, such as (0, 1).") from None
    low, high = exact(first, "the lower bound"), exact(second, "the upper bound")
    if low >= high:
        raise InvalidParameter(f"bounds are {first} and {second}; the first must be below the second.")
    return low, high


def values_in_steps(
    question: Callable[[Any], Any], data: Rows, people: int, low: Fraction, high: Fraction
) -> IntArray | None:
    """Return each person's value as a whole number of steps from 0 to STEPS; None if the question fails.

    What is below the lower bound, and NaN and NULL, is the lower bound; what is above the upper one is that. It fails
    if it raises, does not give one number a person, or gives others when the first people are asked alone.
    """
    try:
        whole = _in_steps(question(data), people, low, high)
        few = max(1, min(people // 2, CHECKED))
        alone = _in_steps(question(_first(data, few)), few, low, high)
    except Exception:  # whatever the asker's function does; its message may hold what is private
        return None
    # A step of difference is what two ways of summing floats may make.
    return whole if bool((np.abs(whole[:few] - alone) <= 1).all()) else None


def _in_steps(values: Any, people: int, low: Fraction, high: Fraction) -> NDArray[np.int64]:
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.shape != (people,):
        raise ValueError
    inside = np.clip(np.where(np.isnan(numbers), float(low), numbers), float(low), float(high))
    steps = np.rint((inside - float(low)) * (STEPS / float(high - low)))
    return np.clip(steps, 0, STEPS).astype(np.int64)


def _first(data: Any, size: int) -> Any:
    """Return the first rows: Arrow has its own word for it, and pandas may take a slice for labels of its index."""
    match type(data).__module__.partition(".")[0]:
        case "pyarrow":
            return data.slice(0, size)
        case "pandas":
            return data.iloc[:size]
    return data[:size]
