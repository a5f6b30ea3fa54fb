"""What estimators share of scikit-learn's manners: parameters that can be read, set and shown."""

from collections.abc import Sequence
from dataclasses import fields
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from lapwing.errors import InvalidParameter
from lapwing.learn.columns import Floats

Estimator = TypeVar("Estimator")


def parameters(estimator: Any) -> dict[str, Any]:
    """Return the parameters of an estimator by name: what it was made with."""
    return {field.name: getattr(estimator, field.name) for field in fields(estimator) if field.init}


def changed(estimator: Estimator, values: dict[str, Any]) -> Estimator:
    """Set parameters of an estimator, and return it.

    Raises:
        InvalidParameter: For a name that it does not have.
    """
    there = parameters(estimator)
    for name, value in values.items():
        if name not in there:
            raise InvalidParameter(f"{name!r:.60} is not a parameter; the parameters are {', '.join(there)}.")
        setattr(estimator, name, value)
    return estimator


def require_fit(estimator: Any, attribute: str) -> Any:
    """Return what fitting found.

    Raises:
        InvalidParameter: If the estimator was not fit.
    """
    found = getattr(estimator, attribute, None)
    if found is None:
        raise InvalidParameter(f"This {type(estimator).__name__} has not been fitted; call fit first.")
    return found


def require_number(name: str, value: Any, *, least: float = 0, open_end: bool = False) -> float:
    """Return a parameter as a float.

    Raises:
        InvalidParameter: Unless it is a finite number from `least` upwards.
    """
    number = None if isinstance(value, bool) or not isinstance(value, int | float | Fraction) else float(value)
    if number is None or not least <= number < float("inf") or (open_end and number == least):
        raise InvalidParameter(
            f"{name} is {value!r:.60}; it must be a number {'above' if open_end else 'from'} {least:g}"
            f"{'' if open_end else ' upwards'}. Nothing was charged."
        )
    return number


def require_whole(name: str, value: Any, *, least: int = 1, most: int = 1_000) -> int:
    """Return a parameter as an int.

    Raises:
        InvalidParameter: Unless it is a whole number in its range.
    """
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidParameter(
            f"{name} is {value!r:.60}; it must be a whole number from {least} to {most}. Nothing was charged."
        )
    return value


def times(matrix: Floats, weights: Floats) -> Floats:
    """Multiply a matrix by a vector column by column.

    Each row's result has the same bits whichever other rows there are, which a library's product does not promise.
    """
    total = matrix[:, 0] * weights[0]
    for place in range(1, matrix.shape[1]):
        total = total + matrix[:, place] * weights[place]
    return np.asarray(total, dtype=np.float64)


def require_other(target: str, features: Sequence[str]) -> None:
    """Refuse a target that is a feature as well."""
    if target in features:
        raise InvalidParameter(
            f"{target!r:.60} is both the target and a feature; leave it out of the features. Nothing was charged."
        )
