"""The order of rows in published tables: texts with numbers go by these numbers, so that 20 comes before 100.

Values that the catalog lists stay in its order. Other values come in the order of texts, as `5`, `100 and over`, `20 to
24` would. Those are sorted again here. A query with an order of its own keeps it.

Guarantee:
    Post-processing: the order follows from the published keys.
"""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from lapwing.query.derivation.derived import KeyValue
from lapwing.query.plan.plan import Plan

if TYPE_CHECKING:
    import pyarrow as pa

NUMBERS: Final = re.compile("([0-9]+)")


def natural(text: str) -> list[tuple[int, int, str]]:
    """Return what a text with numbers is sorted by.

    >>> sorted(["100 and over", "5 to 9", "20 to 24"], key=natural)
    ['5 to 9', '20 to 24', '100 and over']
    """
    parts = NUMBERS.split(text)
    return [(0, int(part), "") if place % 2 else (1, 0, part) for place, part in enumerate(parts) if part]


def in_natural_order(rows: "pa.Table", plan: Plan) -> "pa.Table":
    """Return the rows of a table in the order in which people look for them."""
    keys = [output.name for output in plan.outputs if isinstance(output.value, KeyValue)]
    if plan.order or plan.limit is not None or not keys:
        return rows
    columns = [rows[key].to_pylist() for key in keys]
    orders = [_order(values, bool(plan.question.private_keys)) for values in columns]
    ranks = [[order[value] for value in values] for order, values in zip(orders, columns, strict=True)]
    return rows.take(np.lexsort(ranks[::-1]))


def _order(values: Sequence[Any], are_private: bool) -> dict[Any, int]:
    """Return the place of each value: as the catalog lists them, or sorted."""
    found = list(dict.fromkeys(values))
    known = sorted(value for value in found if value is not None)
    if are_private or found[: len(known)] == known:  # in no order of the catalog, or in one that is this
        found = sorted(known, key=natural) if known and isinstance(known[0], str) else known
    return {value: place for place, value in enumerate(dict.fromkeys([*found, *values]))}
