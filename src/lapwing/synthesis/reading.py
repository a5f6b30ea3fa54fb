"""How often each combination of cells occurs: read once, after the charge, and never shown.

Theory of operation. What reads it is a question like any other, up to its last step: its text is bound over the rows
that exist for questions, cleaned and at most `max_rows_per_unit` of each unit. Grouped by the cells of all columns it
counts rows; every table of some of the columns is a margin of what comes back, added up here. So one pass over the data
serves however many tables are looked at, and all of them are of the same rows.

Guarantee:
    `read` is called after the charge, by `asking` alone; what it returns goes into `PaidMarginals` and nowhere else. An
    error after the charge is one constant message.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, Final, cast, final

import numpy as np

from lapwing.catalog.model import Table
from lapwing.engines import FAILED, Engine
from lapwing.errors import EngineFault, InvalidParameter, QueryRefused, RefusalCause
from lapwing.mechanisms import Sensitivity
from lapwing.query.derivation.derived import MeasureValue
from lapwing.query.measures.measures import Count, Key, Sum
from lapwing.query.plan.plan import Question
from lapwing.query.sensitivity.stability import sensitivity_bounds
from lapwing.synthesis.attributes import Attribute, Integers, quoted

if TYPE_CHECKING:
    from lapwing.query.plan.plan import Plan

MOST_ROWS: Final = 1 << 40
"""Counts stay below, so that sums of them times a score's grid fit 63 bits."""
Clique = tuple[int, ...]
"""Columns by their places, ascending."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class Tabulation:
    """How many rows have each combination of cells: private data.

    Args:
        cells: A row for each combination that occurs.
        counts: Of rows.
    """

    sizes: tuple[int, ...]
    cells: Integers
    counts: Integers

    def marginal(self, clique: Clique) -> Integers:
        """Return how many rows have each combination of the cells of some columns, as a table, exactly."""
        shape = tuple(self.sizes[place] for place in clique)
        places = np.ravel_multi_index(tuple(self.cells[:, place] for place in clique), shape)
        # The sums are taken in doubles, and are exact: whole numbers far below 2⁵³.
        found = np.bincount(places, weights=self.counts.astype(np.float64), minlength=prod(shape))
        return found.astype(np.int64).reshape(shape)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TableReading:
    """What is to be read: public. Made before the charge, so that what cannot be read costs nothing."""

    question: Question
    sizes: tuple[int, ...]

    @property
    def rows_per_unit(self) -> int:
        """The most rows that one unit has."""
        return self.question.selection.rows_per_unit

    def sensitivity(self, neighbouring: str) -> Sensitivity:
        """Return how far one unit moves a table of counts, whichever columns it is of: `query.stability` has it."""
        (bound,) = sensitivity_bounds(Count(), rows_per_unit=self.rows_per_unit, cells=2, neighbouring=neighbouring)
        return bound.sensitivity

    def read(self, engine: Engine, digests: "Mapping[str, str]") -> Tabulation:
        """Return the counts, of the data with these digests.

        Raises:
            EngineFault: A constant.
        """
        found = self._read(engine, digests)
        if found is None:  # out here, so that no engine's message is dragged along
            raise EngineFault(FAILED)
        return found

    def _read(self, engine: Engine, digests: "Mapping[str, str]") -> Tabulation | None:
        try:
            rows = engine.run(self.question, digests).cells
            cells = np.array([[int(cast(Fraction, key)) for key in keys] for keys in rows], dtype=np.int64)
            counts = np.array([values[0] for values in rows.values()], dtype=np.int64)
            if int(counts.sum()) >= MOST_ROWS:
                return None
            return Tabulation(sizes=self.sizes, cells=cells.reshape(len(rows), len(self.sizes)), counts=counts)
        except Exception:
            return None


def reading_of(
    table: Table, attributes: Sequence[Attribute], where: str | None, bind: "Callable[[str], Plan]"
) -> TableReading:
    """Return what counts rows by the cells of columns.

    Raises:
        QueryRefused: If the question is not understood or not allowed.
        InvalidParameter: If a value is not allowed.
    """
    names = [f"c{place}" for place in range(len(attributes))]
    cells = ", ".join(f"{attribute.sql} AS {name}" for attribute, name in zip(attributes, names, strict=True))
    source = f"FROM {quoted(table.name)}{'' if where is None else f' WHERE ({where})'}"
    plan = bind(f"SELECT {', '.join(f'SUM({name})' for name in names)} FROM (SELECT {cells} {source})")
    # Sums of the cells, whose arguments are then the keys: a text that groups by them would count every combination.
    measures = [cast(MeasureValue, output.value).measure for output in plan.outputs]
    asked_first = plan.constants or plan.searches or plan.composition is not None
    if asked_first or plan.question.units_of_row > 1 or not all(isinstance(measure, Sum) for measure in measures):
        raise QueryRefused(
            "These rows cannot be counted separately",
            cause=RefusalCause.NOT_COUNTED_ALONE,
            remedy="Leave subqueries and shared rows out of the condition.",
        )
    keys = tuple(
        Key(expression=cast(Sum, measure).argument, values=tuple(map(Fraction, range(attribute.size))))
        for measure, attribute in zip(measures, attributes, strict=True)
    )
    if len(set(keys)) < len(keys):
        raise InvalidParameter("Two columns are the same; leave one out. Nothing was charged.")
    return TableReading(
        question=replace(plan.question, keys=keys, measures=(Count(),)),
        sizes=tuple(attribute.size for attribute in attributes),
    )
