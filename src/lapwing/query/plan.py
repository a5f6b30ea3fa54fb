"""What a question means: noisy measures per cell of public keys, and what is derived from them afterwards.

A `Question` is the part that touches data and is paid for; it is also what identifies a stored answer. A `Plan` adds
the names, order and arithmetic of the answer, which are post-processing of released numbers and cost nothing.
"""

import json
from dataclasses import dataclass
from math import prod

from lapwing.catalog.model import Table
from lapwing.query.derived import Derived, Order, Output
from lapwing.query.expression import Expression, columns_of
from lapwing.query.keys import Key
from lapwing.query.measures import CountUnits, Measure


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The part of a plan that touches data: measures of one table's rows, filtered, in cells of public keys."""

    table: Table
    where: Expression | None
    keys: tuple[Key, ...]
    measures: tuple[Measure, ...]

    def __str__(self) -> str:
        """Return the canonical text: equal questions, and only they, have equal texts."""
        where = f" WHERE {self.where}" if self.where is not None else ""
        keys = f" GROUP BY {', '.join(map(str, self.keys))}" if self.keys else ""
        return f"SELECT {', '.join(map(str, self.measures))} FROM {json.dumps(self.table.name)}{where}{keys}"

    @property
    def cells(self) -> int:
        """The number of cells in the answer, a public fact."""
        return prod(len(key.domain) for key in self.keys)

    @property
    def columns(self) -> frozenset[str]:
        """The names of the columns that the question reads."""
        arguments = [
            self.where,
            *(measure.argument for measure in self.measures if not isinstance(measure, CountUnits)),
        ]
        return frozenset().union({key.column.name for key in self.keys}, *map(columns_of, arguments))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A bound question and how its answer is shown."""

    question: Question
    keys: tuple[Key, ...]
    outputs: tuple[Output, ...]
    having: Derived | None = None
    order: tuple[Order, ...] = ()
    limit: int | None = None
    offset: int = 0
