"""The rows of every unit, for what no question can say: gradients, trees and clusters.

Theory of operation. What reads them is a question like any other, up to its last step. Its text is bound to a relation
that has one row for each unit: the unit's rows side by side, place by place, each value a whole number, −1 where the
unit has fewer rows. The engine runs it as it runs every question: over cleaned rows, at most `max_rows_per_unit` of
each unit. Grouped by everything, its cells are the different contents that units have, each with the number of units
that have it. So no name of a unit leaves the engine, what arrives is bounded and clamped, and no code beneath is new.
The cells are private, and instead of noise on each, `noisy_sums` adds up over all units what each of them contributes.

Guarantee:
    `read` is called after the charge, by `training` alone, and its value stays in the process: it has no field that is
    shown, and every error after the charge is one constant message. The order of units follows from their contents,
    which does not matter to what adds them up.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final, cast, final

import numpy as np
from numpy.typing import NDArray

from lapwing.catalog.model import Table
from lapwing.engines import FAILED, Engine
from lapwing.errors import EngineFault, InvalidParameter, QueryRefused, RefusalCause
from lapwing.learn.columns import Category, Feature, complete_rows, decimal, is_category, quoted
from lapwing.query.derivation.derived import MeasureValue
from lapwing.query.measures.measures import Count, Key, Sum
from lapwing.query.plan.plan import Question

if TYPE_CHECKING:
    from lapwing.query.plan.plan import Plan

GRID: Final = 1 << 10
"""A number from −1 to 1 is a whole number of these parts."""
MOST_VALUES: Final = 1_500
"""Of one unit: rows times columns."""

Integers = NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class UnitRows:
    """The rows that exist of every unit: private data.

    Args:
        features: A row each, in parts of 1/GRID, from −GRID to GRID.
        target: One each, a place among classes or as features are.
        starts: Where each unit's rows begin; a unit has one row at least, those of one stand together.
    """

    features: Integers
    target: Integers
    starts: Integers

    @property
    def sizes(self) -> Integers:
        """How many rows each unit has."""
        return np.diff(self.starts, append=self.target.size)

    def summed(self, rows: Integers) -> Integers:
        """Add up rows of numbers unit by unit, exactly: the caller sees to it that no sum leaves int64."""
        return np.add.reduceat(rows, self.starts, axis=0) if self.starts.size else rows[:0]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class UnitRowsRequest:
    """What is to be read: public. Made before the charge, so that what cannot be read costs nothing."""

    question: Question
    features: tuple[Feature, ...]
    target: Feature | None
    classes: tuple[Category, ...]
    places: int

    def read(self, engine: Engine, digests: "Mapping[str, str]") -> UnitRows:
        """Return the rows of every unit, of the data with these digests.

        Raises:
            EngineFault: A constant.
        """
        found = self._read(engine, digests)
        if found is None:  # out here, so that no engine's message is dragged along
            raise EngineFault(FAILED)
        return found

    def _read(self, engine: Engine, digests: "Mapping[str, str]") -> UnitRows | None:
        try:
            cells = engine.run(self.question, digests).cells
            width = len(self.question.keys) // self.places
            counts = np.array([values[0] for values in cells.values()], dtype=np.int64)
            table = np.array(list(cells), dtype=object).reshape(len(cells) * self.places, width)
            units = np.repeat(np.arange(len(cells)), self.places)
            there = np.array([value >= 0 for value in table[:, 0]], dtype=np.bool_) if len(table) else np.zeros(0, bool)
            return self._of(table[there], units[there], counts)
        except Exception:
            return None

    def _of(self, table: NDArray[np.object_], units: Integers, counts: Integers) -> UnitRows:
        """Put rows together: the contents of `units` come as often as `counts` says, each time as a unit of its own."""
        columns = [_scaled(feature, table[:, place]) for place, feature in enumerate(self.features)]
        if self.target is not None:
            target = _scaled(self.target, table[:, -1])
        elif self.classes:
            target = table[:, -1].astype(np.int64)
        else:
            target = np.zeros(len(table), dtype=np.int64)
        features = np.column_stack(columns) if len(table) else np.zeros((0, len(columns)), dtype=np.int64)
        sizes = np.bincount(units, minlength=counts.size)
        order = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])[:-1]
        again = np.repeat(np.arange(counts.size), counts)  # contents that several units have
        rows = np.concatenate([np.arange(order[u], order[u] + sizes[u]) for u in again.tolist()] or [np.zeros(0, int)])
        starts = np.cumsum(sizes[again]) - sizes[again]
        rows = rows.astype(np.int64)
        return UnitRows(features=features[rows], target=target[rows], starts=starts.astype(np.int64))


def reading_of(
    table: Table,
    features: Sequence[Feature],
    target: Feature | str | None,
    classes: Sequence[Category],
    where: str | None,
    bind: "Callable[[str], Plan]",
) -> UnitRowsRequest:
    """Return what reads features and a target of every unit.

    Args:
        target: A feature, or the name of a column of classes.
        bind: Makes a plan of a question.

    Raises:
        QueryRefused: If the question is not understood or not allowed.
        InvalidParameter: If a value is not allowed.
    """
    if table.link is not None:
        raise InvalidParameter(
            f"Table {table.name} is linked to another; train on one with a privacy unit of its own. Nothing was "
            "charged."
        )
    values = [_whole(feature) for feature in features]
    used = [feature.column for feature in features]
    if isinstance(target, Feature):
        values, used = [*values, _whole(target)], [*used, target.column]
    elif target is not None:
        cases = " ".join(f"WHEN {is_category(target, one)} THEN {place}" for place, one in enumerate(classes))
        values, used = [*values, f"CASE {cases} END"], [*used, target]
    names = [f"c{i}" for i in range(len(values))]
    places = 1 if table.unit_is_row else table.max_rows_per_unit
    if places * len(names) > MOST_VALUES:
        raise InvalidParameter(
            f"A {table.privacy_unit} has up to {places} rows of {len(names)} numbers, and at most {MOST_VALUES:,} "
            f"numbers are allowed. Give the model fewer features, or ask the curator for a smaller max_rows_per_unit. "
            f"Nothing was "
            "charged."
        )
    encoded = ", ".join(f"{value} AS {name}" for value, name in zip(values, names, strict=True))
    kept = " AND ".join(f"{name} IS NOT NULL" for name in names)
    source = f"FROM {quoted(table.name)} {complete_rows(used, where)}"
    if table.unit_is_row:
        text = f"SELECT {_sums(names, 1)} FROM (SELECT {', '.join(f'{n} AS {n}_1' for n in names)} FROM "
        text += f"(SELECT {encoded} {source}) WHERE {kept})"
    else:
        unit = quoted(table.unit_column)
        side_by_side = ", ".join(
            f"COALESCE(MAX(CASE WHEN place = {k} THEN {name} END), -1) AS {name}_{k}"
            for k in range(1, places + 1)
            for name in names
        )
        numbered = f"ROW_NUMBER() OVER (PARTITION BY {unit} ORDER BY {', '.join(names)}) AS place"
        rows = f"SELECT *, {numbered} FROM (SELECT {unit}, {encoded} {source}) WHERE {kept}"
        text = f"SELECT {_sums(names, places)} FROM (SELECT {unit}, {side_by_side} FROM ({rows}) GROUP BY {unit})"
    plan = bind(text)
    measures = [cast(MeasureValue, output.value).measure for output in plan.outputs]
    if not all(isinstance(measure, Sum) for measure in measures) or plan.question.selection.rows_per_unit != 1:
        raise QueryRefused(
            "A unit's rows do not stand side by side", cause=RefusalCause.INTERNAL, remedy="This is a bug in Lapwing."
        )
    keys = tuple(Key(expression=cast(Sum, measure).argument, values=None) for measure in measures)
    return UnitRowsRequest(
        question=replace(plan.question, keys=keys, measures=(Count(),)),
        features=tuple(features),
        target=target if isinstance(target, Feature) else None,
        classes=tuple(classes),
        places=places,
    )


def _sums(names: Sequence[str], places: int) -> str:
    """Ask for sums of all columns, in order: their arguments are the keys."""
    return ", ".join(f"SUM({name}_{k})" for k in range(1, places + 1) for name in names)


def _whole(feature: Feature) -> str:
    """Return a feature as an expression that is never below 0: what a number is above its lower bound, or 0 and 1."""
    if feature.category is not None:
        return feature.sql
    return f"({quoted(feature.column)} - {decimal(feature.lower)})"


def _scaled(feature: Feature, values: NDArray[np.object_]) -> Integers:
    """Return values above the lower bound as parts of 1/GRID, value by value: rounded, and kept within ±GRID."""
    if feature.category is not None:
        return GRID * values.astype(np.int64)
    shift, known = feature.lower - feature.centre, dict[Fraction, int]()
    for value in set(values.tolist()):
        known[value] = max(-GRID, min(GRID, round((value + shift) * GRID / feature.spread)))
    return np.array([known[value] for value in values.tolist()], dtype=np.int64)
