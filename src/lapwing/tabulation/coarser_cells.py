"""Coarser cells: in the place of an unreliable cell, the smallest reliable cell of a coarser table around it.

Guarantee:
    Post-processing. Which tables are coarser follows from their plans, and which cells are unreliable from released
    numbers. A coarser cell has the interval of its own table, which keeps its guarantee.

Two tables are comparable if they add up the same measure over the same rows (`release.workloads.rows_and_measure`). The
coarser one has some of the keys of the other, or higher levels of them. A finer value lies in one value of each higher
level, and each row with the finer value has that one (`release.nested_keys`). So each coarser cell holds all rows of
the cells that it stands for. The table with the most cells comes first, because its cells are the smallest on average.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from lapwing.query.derivation.derived import KeyValue, MeasureValue
from lapwing.query.expressions.expression import Constant
from lapwing.query.measures.measures import Key
from lapwing.query.plan.plan import Plan
from lapwing.release.nested_keys import NestedKeys
from lapwing.release.workloads import rows_and_measure

if TYPE_CHECKING:
    import pyarrow as pa

COARSER: Final = "coarser"
"""Of the names of columns: a coarser cell, the ends of its interval, and the keys that it is by."""
IN_ALL: Final = "in all"


_Way = tuple[str, Mapping[Constant, Constant] | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Coarser:
    """A number of a coarser table: its place in the release, its name there, and the keys that it has.

    Args:
        ways: For each key: the column of the finer table, and the value here by the value there; None if it is equal.
        cells: The number of cells of the table.
    """

    place: int
    name: str
    keys: tuple[str, ...]
    ways: tuple["_Way", ...]
    cells: int


def with_coarser_cells(
    rows: "pa.Table",
    place: int,
    plans: Sequence[Plan],
    published: Callable[[int], "pa.Table"],
    nestings: Sequence[NestedKeys] = (),
) -> "pa.Table":
    """Return the rows of a table with coarser cells beside its unreliable ones.

    Args:
        published: Returns the rows of another table, without the numbers that are unreliable.
        nestings: The levels of the hierarchies.
    """
    import pyarrow as pa  # here: a plan needs no Arrow

    tables: dict[int, pa.Table] = {}
    for name in [column for column in rows.column_names if f"{column}_unreliable" in rows.column_names]:
        wider = sorted(_coarser_than(plans, place, name, nestings), key=lambda one: -one.cells)
        for one in wider:
            tables.setdefault(one.place, published(one.place))
        cells = [_cells(tables[one.place], one) for one in wider]
        marks = rows[f"{name}_unreliable"].to_pylist()
        keys = [list(zip(*(_climbed(rows, way) for way in one.ways), strict=True)) for one in wider]
        found = [
            _first(wider, cells, [own[row] if own else () for own in keys]) if mark else (None, None, None, None)
            for row, mark in enumerate(marks)
        ]
        kinds = (rows.schema.field(name).type, pa.float64(), pa.float64(), pa.string())
        columns = list(zip(*found, strict=True)) or [()] * 4
        for end, kind, values in zip(("", "_low", "_high", "_by"), kinds, columns, strict=True):
            rows = rows.append_column(f"{name}_{COARSER}{end}", pa.array(values, kind))
    return rows


def _climbed(rows: "pa.Table", way: _Way) -> list[object]:
    """Return the values of a coarser key, of the rows of a finer table."""
    column, parents = way
    values = rows[column].to_pylist()
    return values if parents is None else [parents.get(value) for value in values]


def _coarser_than(plans: Sequence[Plan], place: int, name: str, nestings: Sequence[NestedKeys]) -> Iterator[_Coarser]:
    """Yield the same number of coarser tables, all of whose keys have public values."""
    own = plans[place]
    value = next(output.value for output in own.outputs if output.name == name)
    if not isinstance(value, MeasureValue) or own.question.cells is None:
        return
    keys = _keys_of(own)
    for other, plan in enumerate(plans):
        same = [output.name for output in plan.outputs if output.value == value]
        if (
            not same
            or plan.question.cells is None
            or set(plan.question.keys) == set(own.question.keys)
            or len(_keys_of(plan)) < len(plan.question.keys)
            or rows_and_measure(plan.question, value.measure) != rows_and_measure(own.question, value.measure)
        ):
            continue
        found = [_way_to(key, keys, nestings) for key in _keys_of(plan).values()]
        ways = tuple(one for one in found if one is not None)
        if len(ways) == len(found) and len({column for column, _ in ways}) == len(ways):
            keys_there = tuple(_keys_of(plan))
            yield _Coarser(place=other, name=same[0], keys=keys_there, ways=ways, cells=plan.question.cells)


def _keys_of(plan: Plan) -> dict[str, Key]:
    """Return the keys that a table shows, by the names of their columns."""
    return {output.name: output.value.key for output in plan.outputs if isinstance(output.value, KeyValue)}


def _way_to(key: Key, keys: Mapping[str, Key], nestings: Sequence[NestedKeys]) -> _Way | None:
    """Return the column that determines a coarser key, with the value of the key by its values; None if none does."""
    for name, own in keys.items():
        if own == key:
            return name, None
    for nested in nestings:
        for name, own in keys.items():
            if nested.has(key) and nested.has(own) and nested.is_above(key, own):
                places = nested.above(key, own)
                if places is not None:
                    return name, dict(zip(own.domain, (key.domain[one] for one in places), strict=True))
    return None


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
