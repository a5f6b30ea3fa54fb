"""From a question, a function of the rows, to each person's value in steps: total on every input, whatever the data.

A question that is a formula of columns is computed (`formula`). Any other is a caller's code: it is asked of one person
at a time, each time in a process of its own (`isolation`), and a person for whom it fails is at the lower bound. Which
of both it is, is decided by nothing that a person holds. So one person moves a sum by STEPS at most.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from lapwing.errors import InvalidParameter, QueryRefused, RefusalCause
from lapwing.exact.arrays import IntArray
from lapwing.holdout.formula import recorded
from lapwing.holdout.strategy import STEPS
from lapwing.machine.isolation import Isolated
from lapwing.privacy.amounts import Number, exact

Bounds = tuple[Number, Number]
Question = Callable[[Any], Any]
InSteps = Callable[[Fraction, Fraction], IntArray]
_MADE_UP: Final = -1
"""In the place of a person's: the row that nobody has."""


class RowsLike(Protocol):
    """People, one each: an array, an Arrow table, a pandas or polars data frame, a list."""

    def __len__(self) -> int: ...


def people_of(data: RowsLike) -> int:
    """Return how many people there are.

    Raises:
        InvalidParameter: For what has no rows in order.
    """
    if isinstance(data, str | bytes | dict | set | frozenset) or not hasattr(data, "__len__"):  # any kind of table
        raise InvalidParameter(
            f"The data are a {type(data).__name__}; give an array, an Arrow table or a data frame, with one row for "
            f"each person."
        )
    size = len(data)
    if size < 1:
        raise InvalidParameter("The data have no rows; a holdout needs at least one person.")
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


@contextmanager
def asking(question: Question, data: RowsLike, people: int) -> Iterator[InSteps]:
    """Return what makes each person's value a whole number of steps from 0 to STEPS between bounds.

    What is below the lower bound, and NaN and NULL, is the lower bound; what is above the upper one is that. A person
    for whom the question fails is at the lower bound, too.

    Raises:
        QueryRefused: For a question that fails on a row that nobody has.
    """
    formula = recorded(question, data)
    if formula is not None:
        yield lambda low, high: in_steps(formula(), low, high)
        return
    nobody = made_up(data)
    with Isolated(lambda place: question(nobody if place == _MADE_UP else _row(data, place))) as isolated:
        why = None if nobody is None else isolated.trial(_MADE_UP, 1)
        if why is not None:
            raise QueryRefused(
                f"The question fails on a test row of zeros and empty texts: {why}",
                cause=RefusalCause.STATISTIC_FAILS,
                remedy="It must take a table of one row and return one number in a list or array, for such a row too: "
                "as lambda rows: rows['age'] > 65 does. Nothing was counted.",
            )
        yield lambda low, high: in_steps(np.concatenate([isolated.ask(i, 1) for i in range(people)]), low, high)


def in_steps(values: NDArray[Any], low: Fraction, high: Fraction) -> IntArray:
    """Return values as whole numbers of steps between bounds: total, and each made of one value alone."""
    with np.errstate(all="ignore"):
        numbers = values.astype(np.float64)
        inside = np.clip(np.where(np.isnan(numbers), float(low), numbers), float(low), float(high))
        steps = np.rint((inside - float(low)) * (STEPS / float(high - low)))
    return np.clip(steps, 0, STEPS).astype(np.int64)


def _row(data: Any, place: int) -> Any:
    """Return the row of one person: Arrow has its own word for it, and pandas may take a slice for labels."""
    match _library(data):
        case "pyarrow":
            return data.slice(place, 1)
        case "pandas":
            return data.iloc[place : place + 1]
    return data[place : place + 1]


def made_up(data: Any) -> Any | None:
    """Return a row that nobody has, of zeros and empty texts by the types of columns; None if there is no such row."""
    try:
        if isinstance(data, np.ndarray):
            return np.zeros((1, *data.shape[1:]), dtype=data.dtype)
        match _library(data):
            case "pyarrow":
                return _arrow_row(data)
            case "pandas":
                return _pandas_row(data)
            case "polars":
                return data.clear(1).fill_null(strategy="zero")
    except Exception:  # of types that have no zero: what the library says of them is nothing to anybody
        return None
    return None


def _arrow_row(data: Any) -> Any:
    pa: Any = sys.modules["pyarrow"]
    zeros = [
        pa.array([""], kind) if pa.types.is_string(kind) or pa.types.is_large_string(kind) else pa.array([0]).cast(kind)
        for kind in data.schema.types
    ]
    return type(data).from_arrays(zeros, schema=data.schema)


def _pandas_row(data: Any) -> Any:
    pd: Any = sys.modules["pandas"]
    if not hasattr(data, "columns"):
        return pd.Series([0]).astype(data.dtype)
    texts = (pd.api.types.is_string_dtype(kind) or kind.kind == "O" for kind in data.dtypes)
    columns = [pd.Series([""] if text else [0]).astype(kind) for kind, text in zip(data.dtypes, texts, strict=True)]
    return pd.concat(columns, axis=1, keys=list(data.columns))


def _library(data: Any) -> str:
    return type(data).__module__.partition(".")[0]
