"""Coarser cells: in the place of an unreliable cell, the smallest reliable cell of a coarser table around it.

Guarantee:
    Post-processing. Which tables are coarser follows from their plans, and which cells are unreliable from released
    numbers. A coarser cell has the interval of its own table, which keeps its guarantee.

Two tables are comparable if they add up the same measure over the same rows (`release.workloads.rows_and_measure`). The
coarser one has some of the keys of the other. So each of its cells holds all rows of the cells that it stands for.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lapwing.query.derivation.derived import MeasureValue, measures_of
from lapwing.query.plan.plan import Plan
from lapwing.release.workloads import rows_and_measure

if TYPE_CHECKING:
    import pyarrow as pa

COARSER: Final = "coarser"
"""Of the names of columns: a coarser cell, the ends of its interval, and the keys that it is by."""
IN_ALL: Final = "in all"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Coarser:
    """A number of a coarser table: its place in the release, its name there, and the keys that it has."""

    place: int
    name: str
    keys: tuple[str, ...]


def with_coarser_cells(
    rows: "pa.Table", place: int, plans: Sequence[Plan], published: Callable[[int], "pa.Table"]
) -> "pa.Table":
    """Return the rows of a table with coarser cells beside its unreliable ones.

    Args:
        published: Returns the rows of another table, without the numbers that are unreliable.
    """
    import pyarrow as pa  # here: a plan needs no Arrow

    tables: dict[int, pa.Table] = {}
    for name in [column for column in rows.column_names if f"{column}_unreliable" in rows.column_names]:
        wider = sorted(_coarser_than(plans, place, name), key=lambda one: -len(one.keys))
        for one in wider:
            tables.setdefault(one.place, published(one.place))
        cells = [_cells(tables[one.place], one) for one in wider]
        marks = rows[f"{name}_unreliable"].to_pylist()
        keys = [list(zip(*(rows[key].to_pylist() for key in one.keys), strict=True)) for one in wider]
        found = [
            _first(wider, cells, [own[row] if own else () for own in keys]) if mark else (None, None, None, None)
            for row, mark in enumerate(marks)
        ]
        kinds = (rows.schema.field(name).type, pa.float64(), pa.float64(), pa.string())
        columns = list(zip(*found, strict=True)) or [()] * 4
        for end, kind, values in zip(("", "_low", "_high", "_by"), kinds, columns, strict=True):
            rows = rows.append_column(f"{name}_{COARSER}{end}", pa.array(values, kind))
    return rows


def _coarser_than(plans: Sequence[Plan], place: int, name: str) -> Iterator[_Coarser]:
    """Yield the same number of the tables that have some of the keys of a table, all of them with public values."""
    own = plans[place]
    value = next(output.value for output in own.outputs if output.name == name)
    if not isinstance(value, MeasureValue) or own.question.cells is None:
        return
    keys = {output.name: output.value for output in own.outputs if not measures_of(output.value)}
    for other, plan in enumerate(plans):
        fewer = {output.name: output.value for output in plan.outputs if not measures_of(output.value)}
        same = [output.name for output in plan.outputs if output.value == value]
        if (
            same
            and plan.question.cells is not None
            and set(plan.question.keys) < set(own.question.keys)
            and len(fewer) == len(plan.question.keys)
            and all(keys.get(key) == known for key, known in fewer.items())
            and rows_and_measure(plan.question, value.measure) == rows_and_measure(own.question, value.measure)
        ):
            yield _Coarser(place=other, name=same[0], keys=tuple(fewer))


def _cells(table: "pa.Table", one: _Coarser) -> Mapping[tuple[object, ...], tuple[Any, Any, Any]]:
    """Return the reliable cells of a coarser table: the number and the ends of its interval, by key."""
    keys = list(zip(*(table[key].to_pylist() for key in one.keys), strict=True)) or [()] * table.num_rows
    columns = (table[column].to_pylist() for column in (one.name, f"{one.name}_low", f"{one.name}_high"))
    return {key: cell for key, cell in zip(keys, zip(*columns, strict=True), strict=True) if cell[0] is not None}


def _first(
    wider: Sequence[_Coarser],
    cells: Sequence[Mapping[tuple[object, ...], tuple[Any, Any, Any]]],
    keys: Sequence[tuple[object, ...]],
) -> tuple[Any, Any, Any, str | None]:
    """Return the first reliable cell around a row, with the keys that it is by."""
    for one, known, key in zip(wider, cells, keys, strict=True):
        if key in known:
            return *known[key], ", ".join(one.keys) or IN_ALL
    return None, None, None, None
