"""Distributions: how many rows are in each leaf of their trees, asked for and put together."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from lapwing.engines.base import Leaves
from lapwing.engines.duckdb.database import Rows
from lapwing.engines.duckdb.expressions import expression, group_by, have_keys, keys_as_columns
from lapwing.engines.duckdb.literals import clamp, whole
from lapwing.engines.duckdb.relations import selected
from lapwing.engines.duckdb.set_queries import by_set
from lapwing.query.expressions.expression import Constant
from lapwing.query.measures.distribution import Distribution
from lapwing.query.plan.plan import Question

LEAF: Final = 1 << 40
"""By what a leaf's number is multiplied where it shares an integer with the number of its rows, which is smaller."""


def leaves(question: Question, measure: Distribution) -> str:
    """Return the query for the numbers of rows in the leaves of a distribution.

    Its rows are cells: the keys, then a list with leaf·2⁴⁰ + rows for every leaf that has any. One row of the relation
    is in one leaf, whatever its value, and in none if it is NULL.
    """
    if question.sets:
        return by_set(question, lambda part: leaves(part, measure), ["leaves"])
    keys = keys_as_columns(question.keys)
    names = [f"key{i}" for i in range(len(keys))]
    value = expression(measure.argument)
    rows = selected(question.selection, [*have_keys(question.keys), f"{value} IS NOT NULL"])
    leaf = clamp(f"(({value} - {whole(measure.low)}) // {whole(measure.width)})", 0, measure.sizes[-1] - 1)
    columns = [*keys, f"CAST({leaf} AS BIGINT) AS leaf", "COUNT(*) AS n"]
    counted = f"SELECT {', '.join(columns)} {rows}{group_by(len(keys) + 1)}"
    packed = f"list(leaf * {whole(LEAF)} + n) AS leaves"
    return f"SELECT {', '.join([*names, packed])} FROM ({counted}){group_by(len(names))}"


def put_together(batches: Iterable[Rows], key: Callable[[tuple[Any, ...]], tuple[Constant, ...]]) -> Leaves:
    """Return the leaves of disjoint sets of units, cell by cell; a leaf that several sets have stays in pieces.

    Args:
        batches: The rows of `leaves`.
        key: Takes a row's cell from it, as answers hold it.
    """
    packed: dict[tuple[Constant, ...], list[int]] = {}
    for rows in batches:
        for row in rows:
            packed.setdefault(key(row), []).extend(row[-1] or ())
    return {cell: _unpacked(values) for cell, values in packed.items()}


def _unpacked(values: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return leaves and their numbers of rows."""
    array = np.array(values, dtype=np.int64)
    return array // LEAF, array % LEAF
