"""Random FROM clauses of made queries: rows of a table as they are, or after every step that Lapwing binds."""

from collections.abc import Callable, Sequence
from fractions import Fraction
from random import Random

from lapwing.audit.made_expressions import MadeReading, condition, number
from lapwing.catalog.model import Catalog, Column, PublicTable, Table
from lapwing.tables import quoted

Way = Callable[[Catalog, Table, Random], MadeReading]


def reading_of(catalog: Catalog, table: Table, chance: Random) -> MadeReading:
    """Return what a query reads, around a table."""
    ways: tuple[Way, ...] = (
        _plain,
        _plain,
        _filtered,
        _distinct,
        _per_unit,
        _first_rows,
        _windowed,
        _union,
        _set_operation,
        _with_cte,
    )
    ways += (_along_link,) if table.link is not None else ()
    ways += (_same_units,) if len(catalog.tables) > 1 else ()
    ways += (_with_public, _in_public) if catalog.public_tables else ()
    return chance.choice(ways)(catalog, table, chance)


def _own(table: Table) -> MadeReading:
    unit = None if table.privacy_unit is None or table.unit_is_row else table.privacy_unit
    return MadeReading(source=quoted(table.name), columns=table.columns, unit=unit)


def _plain(_catalog: Catalog, table: Table, _chance: Random) -> MadeReading:
    return _own(table)


def _filtered(_catalog: Catalog, table: Table, chance: Random) -> MadeReading:
    own = _own(table)
    return _subquery(own, f"SELECT * FROM {own.source} WHERE {condition(own, chance)}")


def _distinct(_catalog: Catalog, table: Table, _chance: Random) -> MadeReading:
    own = _own(table)
    return _subquery(own, f"SELECT DISTINCT * FROM {own.source}")


def _per_unit(_catalog: Catalog, table: Table, chance: Random) -> MadeReading:
    own = _own(table)
    if own.unit is None:
        return own
    unit, bounded = quoted(own.unit), number(own, chance)
    text = (
        f"SELECT {unit}, COUNT(*) AS n, LEAST(GREATEST(MAX({bounded}), 0), 100) AS x FROM {own.source} GROUP BY {unit}"
    )
    made = (
        Column(name="n", type="integer", lower=Fraction(0), upper=Fraction(table.max_rows_per_unit)),
        Column(name="x", type="integer", lower=Fraction(0), upper=Fraction(100)),
    )
    return MadeReading(source=f"({text}) AS made", columns=made, unit=own.unit)


def _first_rows(_catalog: Catalog, table: Table, chance: Random) -> MadeReading:
    own = _own(table)
    if own.unit is None:
        return own
    order = f"PARTITION BY {quoted(own.unit)} ORDER BY {number(own, chance)} DESC"
    return _subquery(own, f"SELECT * FROM {own.source} QUALIFY ROW_NUMBER() OVER ({order}) <= {chance.randint(1, 2)}")


def _windowed(_catalog: Catalog, table: Table, chance: Random) -> MadeReading:
    own = _own(table)
    if own.unit is None:
        return own
    bounded = number(own, chance)
    window = f"PARTITION BY {quoted(own.unit)} ORDER BY {bounded}"
    text = f"SELECT *, SUM({bounded}) OVER ({window}) AS running FROM {own.source}"
    return _subquery(own, text)


def _union(_catalog: Catalog, table: Table, chance: Random) -> MadeReading:
    own = _own(table)
    every = "" if chance.random() < 0.3 else " ALL"
    return _subquery(
        own, f"SELECT * FROM {own.source} UNION{every} SELECT * FROM {own.source} WHERE {condition(own, chance)}"
    )


def _set_operation(_catalog: Catalog, table: Table, chance: Random) -> MadeReading:
    """Return the rows that two sides share, or that only the first has: each compared with rows of its own unit."""
    own, how = _own(table), chance.choice(["INTERSECT", "EXCEPT"])
    return _subquery(own, f"SELECT * FROM {own.source} {how} SELECT * FROM {own.source} WHERE {condition(own, chance)}")


def _with_cte(_catalog: Catalog, table: Table, chance: Random) -> MadeReading:
    own = _own(table)
    before = f"WITH made AS (SELECT * FROM {own.source} WHERE {condition(own, chance)}) "
    return MadeReading(source="made", columns=own.columns, unit=own.unit, before=before)


def _along_link(_catalog: Catalog, table: Table, chance: Random) -> MadeReading:
    own, link = _own(table), table.link
    if link is None:
        return own
    return _joined(own, _own(link.parent), link.on, chance)


def _same_units(catalog: Catalog, table: Table, chance: Random) -> MadeReading:
    own = _own(table)
    alike = [_own(other) for other in catalog.tables if other.units == table.units and other is not table]
    alike = [other for other in alike if other.unit is not None]
    if own.unit is None or not alike:
        return own
    other = chance.choice(alike)
    return _joined(own, other, [(own.unit, other.unit or "")], chance)


def _joined(own: MadeReading, other: MadeReading, on: Sequence[tuple[str, str]], chance: Random) -> MadeReading:
    taken = {column.name.casefold() for column in own.columns} | {(own.unit or "").casefold()}
    more = tuple(column for column in other.columns if column.name.casefold() not in taken)
    how = chance.choice(["JOIN", "LEFT JOIN"])
    compared = " AND ".join(f"mine.{quoted(here)} = theirs.{quoted(there)}" for here, there in on)
    unit = own.unit if own.unit is not None else other.unit
    return MadeReading(
        source=f"{own.source} AS mine {how} {other.source} AS theirs ON {compared}",
        columns=tuple(column for column in own.columns if column.name.casefold() not in _names(other)) + more,
        unit=None if unit is None or unit.casefold() in _names(own) & _names(other) else unit,
    )


def _names(reading: MadeReading) -> set[str]:
    return {column.name.casefold() for column in reading.columns} | {(reading.unit or "").casefold()}


def _with_public(catalog: Catalog, table: Table, chance: Random) -> MadeReading:
    own, public = _own(table), chance.choice(catalog.public_tables)
    shared = _shared(own, public)
    if shared is None:
        return own
    how, name = chance.choice(["JOIN", "LEFT JOIN"]), quoted(shared)
    more = tuple(c for c in public.columns if c.name.casefold() not in _names(own))
    return MadeReading(
        source=f"{own.source} AS mine {how} {quoted(public.name)} AS codes ON mine.{name} = codes.{name}",
        columns=tuple(c for c in own.columns if c.name.casefold() not in {p.name.casefold() for p in public.columns})
        + more,
        unit=own.unit,
    )


def _in_public(catalog: Catalog, table: Table, chance: Random) -> MadeReading:
    own, public = _own(table), chance.choice(catalog.public_tables)
    shared = _shared(own, public)
    if shared is None:
        return own
    name, how = quoted(shared), chance.choice(["IN", "NOT IN"])
    return _subquery(own, f"SELECT * FROM {own.source} WHERE {name} {how} (SELECT {name} FROM {quoted(public.name)})")


def _shared(own: MadeReading, public: PublicTable) -> str | None:
    types = {column.name: column.type for column in public.columns}
    return next((column.name for column in own.columns if types.get(column.name) == column.type), None)


def _subquery(own: MadeReading, text: str) -> MadeReading:
    return MadeReading(source=f"({text}) AS made", columns=own.columns, unit=own.unit)
