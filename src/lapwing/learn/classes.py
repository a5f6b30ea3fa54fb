"""The classes of a target, and how many are told rightly."""

from collections.abc import Sequence
from typing import Any

from lapwing.catalog.model import Column
from lapwing.errors import InvalidParameter
from lapwing.learn.columns import Category, values_of


def classes_of(column: Column) -> tuple[Category, ...]:
    """Return the classes that a target has: its listed values.

    Raises:
        InvalidParameter: If there are not two.
    """
    classes = values_of(column)
    if len(classes) < 2:
        raise InvalidParameter(
            f"Column {column.name} lists {len(classes)} values; a target needs two. Nothing was charged."
        )
    return classes


def share_right(predicted: Sequence[Category], real: Sequence[Any]) -> float:
    """Return the share of rows whose class was told rightly."""
    right = sum(bool(one == other) for one, other in zip(predicted, real, strict=True))
    return right / max(1, len(real))
