"""Which rows exist, and whose they are: the definition in `catalog.table`, as plainly as it can be written.

An oracle for engines, which have to find the same rows by SQL.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence

from lapwing.catalog import Table

Row = Mapping[str, Hashable]
Data = Mapping[str, Sequence[Row]]
Existing = list[tuple[Hashable, Row]]
Order = Callable[[Hashable, Row], object]


def existing(table: Table, data: Data, order: Order) -> Existing:
    """Return the rows of a table that exist, each with its unit.

    Args: data: cleaned rows, by table. order: by which of a unit's rows the first are kept.
    """
    belonging = _own(table, data) if table.link is None else linked(table, data, order)
    return bounded(belonging, table.max_rows_per_unit, order)


def _own(table: Table, data: Data) -> Existing:
    rows: Existing = [(row[table.unit_column], row) for row in data[table.name] if row[table.unit_column] is not None]
    column = table.part_column
    if column is None:
        return rows
    values = list(column.values or ())
    parts: defaultdict[Hashable, list[int]] = defaultdict(list)
    for unit, row in rows:
        if row[column.name] in values:
            parts[unit].append(values.index(row[column.name]))  # type: ignore[arg-type]
    return [(unit, row) for unit, row in rows if unit in parts and row[column.name] == values[min(parts[unit])]]


def linked(table: Table, data: Data, order: Order) -> Existing:
    """Return the rows that belong to units by a link: one for every row of the parent that exists and has their key."""
    link = table.link
    assert link is not None
    parents = existing(link.parent, data, order)
    return [
        (unit, row)
        for row in data[table.name]
        for unit, parent in parents
        if all(row[here] is not None and row[here] == parent[there] for here, there in link.on)
    ]


def bounded(rows: Existing, most: int, order: Order) -> Existing:
    """Return the first rows of each unit."""
    by_unit: defaultdict[Hashable, list[Row]] = defaultdict(list)
    for unit, row in rows:
        by_unit[unit].append(row)
    return [
        (unit, row)
        for unit, those in by_unit.items()
        for row in sorted(those, key=lambda r: order(unit, r))[:most]  # type: ignore[arg-type, return-value]
    ]


def bag(rows: Iterable[tuple[Hashable, Row]]) -> Counter[Hashable]:
    """Return rows as a bag, to be compared."""
    return Counter((unit, tuple(sorted(row.items()))) for unit, row in rows)
