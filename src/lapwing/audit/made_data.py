"""Made data: tables of the shape that a catalog declares, full of what breaks privacy, and nobody's.

Theory of operation. The audit may ask questions only of rows that are nobody's. So it writes files into a folder of
its own. It also makes a catalog that says the same as the audited one, but for the places of the data and of the ledger
(`made_catalog`). Rows follow from the catalog and from the number of the world (`made_rows`). No source of a protected
table is opened. Public tables are read, because nobody is protected in them.

Every unit has a flavour (`made_values`). Some are heavy: they have more rows than may be used, all alike, at a bound of
every column. So what such a unit moves is the most that a unit can move, where the query lets it. Some rows are of
nobody: NULL in place of a unit, or a key that leads nowhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from random import Random
from typing import Any, Final, final

import pyarrow as pa
import pyarrow.parquet as pq

from lapwing.audit.made_values import HIGH, LOW, ODD, PLAIN, SPREAD, arrow_type, made_value, unit_value
from lapwing.catalog.dictionary import EMPTY
from lapwing.catalog.model import Catalog, Link, Table
from lapwing.catalog.source_address import is_address

Row = Mapping[str, Any]
HEAVY: Final = 4
"""The number of units of a world that have more rows than may be used."""
MOST_ROWS: Final = 400
"""A unit has one row more than may be used, unless that is more than this."""
EPSILON: Final = Fraction(10**6)
"""The budget of the made catalog: as much as all questions of an audit take."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OwnedRow:
    """A made row, and whose it is: the name of the sort of unit, and its number; None for nobody's."""

    values: Row
    units: str
    owner: int | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MadeRows:
    """The rows of all protected tables of a made world, by the table's name."""

    tables: Mapping[str, tuple[OwnedRow, ...]]

    def write(self, catalog: Catalog) -> None:
        """Write them where a made catalog looks for them."""
        for table in catalog.tables:
            rows = [dict(row.values) for row in self.tables[table.name]]
            pq.write_table(pa.Table.from_pylist(rows, schema=_schema(table)), catalog.folder / table.source)


def made_catalog(catalog: Catalog, folder: Path) -> Catalog:
    """Return a catalog of the same meaning whose data and ledger are in a folder, but for what is `left_out`."""
    made: dict[str, Table] = {}
    for table in catalog.tables:
        for one in reversed(table.lineage):  # parents first, as a link holds its parent
            if one.name not in made and table.root.unit_day is None:
                made[one.name] = _made_table(one, made, len(made))
    public = [table for table in catalog.public_tables if not is_address(table.source)]
    return replace(
        catalog,
        folder=folder,
        file=None,
        engine="duckdb",
        cluster=None,
        ledger="sqlite:made.db",
        budget=replace(catalog.budget, epsilon=EPSILON),
        tables=tuple(made[table.name] for table in catalog.tables if table.name in made),
        public_tables=tuple(replace(table, source=str(catalog.source_path(table).resolve())) for table in public),
        references=tuple(one for one in catalog.references if one.table in made and one.to in made),
        graphs=(),
        monitors=(),
        dictionary=EMPTY,
    )


def left_out(catalog: Catalog) -> tuple[str, ...]:
    """Say what a made catalog leaves out: made values are stored as the declared type, in files of its own."""
    tables, by_day = catalog.tables, [table for table in catalog.tables if table.root.unit_day is not None]
    said = [f"the table {table.name}, which only monitors read" for table in by_day]
    said += [f"the public table {one.name}, in a database" for one in catalog.public_tables if is_address(one.source)]
    if any(column.reading is not None for table in tables for column in table.columns):
        said.append("how stored texts are read as values")
    if any(table.where for table in tables):
        said.append("conditions on the rows of a source")
    if catalog.engine != "duckdb":
        said.append(f"the engine {catalog.engine}, in whose place DuckDB runs")
    return tuple(said)


def _made_table(table: Table, made: Mapping[str, Table], place: int) -> Table:
    return replace(
        table,
        source=f"made{place}.parquet",
        text=None,
        where=(),
        unreadable=None,
        engine=None,
        columns=tuple(replace(column, reading=None) for column in table.columns),
        link=None if table.link is None else replace(table.link, parent=made[table.link.parent.name]),
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Cast:
    """The owners of made rows: units by number with their flavours, and the number of the first row.

    Args:
        flavours: Of each unit.
        heavy: Those that have more rows than may be used.
        nobody: Whether there are rows of no unit.
    """

    flavours: Mapping[int, str]
    heavy: frozenset[int]
    first: int = 1
    nobody: bool = True


RECIPES: Final[Sequence[tuple[tuple[str, ...], int]]] = (
    ((HIGH, LOW), 1),
    ((SPREAD, LOW), 1),
    ((HIGH, ODD), 2),
    ((HIGH, LOW, PLAIN, ODD, HIGH, LOW), 2),
    ((PLAIN, ODD, LOW), 1),
    ((HIGH, LOW, PLAIN, ODD), 1),
    ((ODD, HIGH), 1),
    ((HIGH,), 1),
    ((LOW,), 1),
)
"""How the units of worlds are, in turn, and which of them the neighbour lacks. Where there are few, one of them is all
that is in some groups, or in all."""


def cast_of(world: int) -> tuple[Cast, int]:
    """Return whose rows a world has, and the number of the unit that its neighbour lacks."""
    flavours, leaving = RECIPES[world % len(RECIPES)]
    numbered = dict(enumerate(flavours, 1))
    heavy = frozenset(number for number in numbered if number <= HEAVY)
    return Cast(flavours=numbered, heavy=heavy, nobody=len(flavours) > 1), leaving


def made_rows(catalog: Catalog, chance: Random, whose: Cast) -> MadeRows:
    """Return made rows for all protected tables."""
    tables = dict[str, tuple[OwnedRow, ...]]()
    for table in sorted(catalog.tables, key=lambda one: len(one.lineage)):
        keys, link = _keys_of(catalog, table), table.link
        if link is None:
            rows = _root_rows(table, keys, chance, whose, once=table.unit_is_row or _unit_is_key(catalog, table))
        else:
            rows = _linked_rows(table, link, tables[link.parent.name], keys, chance, whose)
        tables[table.name] = tuple(rows)
    return MadeRows(tables=tables)


def _root_rows(table: Table, keys: frozenset[str], chance: Random, whose: Cast, *, once: bool) -> list[OwnedRow]:
    """Return the rows of a table that says itself whose they are."""
    rows: list[OwnedRow] = []
    for number, flavour in whose.flavours.items():
        many = min(MOST_ROWS, table.max_rows_per_unit + 1) if number in whose.heavy else chance.randint(1, 2)
        for _ in range(1 if once else many):
            rows.append(_row(table, number, flavour, keys, chance, whose.first + len(rows)))
    if whose.nobody and not table.unit_is_row:
        rows += [
            _row(table, None, ODD, keys, chance, whose.first + len(rows) + more) for more in range(1 if once else 2)
        ]
    return rows


def _linked_rows(
    table: Table, link: Link, parents: Sequence[OwnedRow], keys: frozenset[str], chance: Random, whose: Cast
) -> list[OwnedRow]:
    """Return the rows of a table that is linked to another, for every unit over the rows that it has there."""
    rows = list[OwnedRow]()
    for owner in dict.fromkeys(parent.owner for parent in parents):
        own = [parent for parent in parents if parent.owner == owner]
        # Of more parents than may be used some do not count, nor do their rows: so there are rows enough for the rest.
        many = min(MOST_ROWS, len(own) + 2 * table.max_rows_per_unit) if owner in whose.heavy else 2
        flavour = ODD if owner is None else whose.flavours[owner]
        for at in range(many):
            made = _row(table, owner, flavour, keys, chance, whose.first + len(rows))
            leads = {here: own[at % len(own)].values.get(there) for here, there in link.on}
            rows.append(replace(made, values={**made.values, **leads}))
    if whose.nobody:
        orphan = _row(table, None, PLAIN, keys, chance, whose.first + len(rows))
        nowhere = dict.fromkeys((here for here, _ in link.on), None)
        rows.append(replace(orphan, values={**orphan.values, **nowhere}))
    return rows


def _row(table: Table, number: int | None, flavour: str, keys: frozenset[str], chance: Random, place: int) -> OwnedRow:
    values = {
        column.name: unit_value(column, place) if column.name in keys else made_value(column, flavour, chance)
        for column in table.columns
    }
    if table.privacy_unit is not None and not table.unit_is_row:
        column = table.column(table.privacy_unit)
        values[table.privacy_unit] = None if number is None else unit_value(column, number)
    return OwnedRow(values=values, units=table.units, owner=number)


def _keys_of(catalog: Catalog, table: Table) -> frozenset[str]:
    """Return the columns of a table by which others name its rows: no two rows of units may share them."""
    linked = [pair for other in catalog.tables if other.link and other.link.parent == table for pair in other.link.on]
    named = [pair for one in catalog.references if one.to == table.name and not one.to_itself for pair in one.on]
    return frozenset(there for _, there in (*linked, *named)) - {table.privacy_unit or ""}


def _schema(table: Table) -> pa.Schema:
    fields = {column.name: arrow_type(column) for column in table.columns}
    if table.privacy_unit is not None and not table.unit_is_row:
        fields.setdefault(table.privacy_unit, pa.int64())
    return pa.schema(list(fields.items()))


def _unit_is_key(catalog: Catalog, table: Table) -> bool:
    """Return whether other tables are linked to a table by its unit: then no unit has two rows there."""
    links = [other.link for other in catalog.tables if other.link and other.link.parent == table]
    return any({there for _, there in link.on} <= {table.privacy_unit} for link in links)
