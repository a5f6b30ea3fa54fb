"""Check for the curator that the keys which links lead to are unique, as the catalog takes for granted.

Only rows with a unit count: a key shared by two rows without one leads nowhere. All rows are searched first, which is
one pass over one file; whether rows have a unit is looked up only if some share a key. Rows beyond the limit of their
unit count too: a key should not depend on which of a unit's rows are kept.
"""

from collections.abc import Sequence

from lapwing.catalog.model import Catalog, Table
from lapwing.engines.duckdb.cleaned import Location, Pass, clean, cleaned
from lapwing.engines.duckdb.database import QueryRunner
from lapwing.engines.duckdb.literals import identifier
from lapwing.engines.duckdb.stored_rows import Layers
from lapwing.errors import DataFault

Key = tuple[str, ...]


def keys_of(table: Table, catalog: Catalog) -> list[Key]:
    """Return the keys of a table that links and references lead to, each in the order of its columns' names."""
    return sorted(catalog.leading_to(table))


def is_repeated(key: Key, table: Table, layers: Layers, passes: int, query: QueryRunner) -> bool:
    """Tell whether two rows with a unit have the same key, none of whose columns is NULL."""
    source = layers.source(table)
    if not query(repeated(f"({keys(table, source, key)})", len(key))):
        return False
    try:
        for number in range(passes):
            part = Pass(index=number, of=passes)
            into = "INSERT INTO existing_keys" if number else "CREATE TEMP TABLE existing_keys AS"
            query(f"{into} {existing_keys(table, source, key, part, layers.above(table, {}, part))}")
        return bool(query(repeated("temp.existing_keys", len(key))))
    finally:
        query("DROP TABLE IF EXISTS temp.existing_keys")


def not_unique(key: Key, table: Table, catalog: Catalog) -> DataFault:
    """Return the fault of a file in which rows share a key. It is for the curator, and says nothing of the rows."""
    leading = catalog.leading_to(table)[key]
    return DataFault(
        f"The file {table.source} of table {table.name} has several rows with the same {', '.join(key)}. The link of "
        f"{', '.join(leading)} needs exactly one row for each key. Leave one row, or link by a key that no two rows "
        f"share"
    )


def linked_columns(table: Table, catalog: Catalog) -> Sequence[str]:
    """Return the columns of a table that links and references compare, in it or from below."""
    own = [] if table.link is None else [here for here, _ in table.link.on]
    own += [here for reference in catalog.references if reference.table == table.name for here, _ in reference.on]
    return [*own, *(name for key in keys_of(table, catalog) for name in key)]


# ---- as SQL ---------------------------------------------------------------------------------------------------------


def keys(table: Table, source: Location, names: Sequence[str]) -> str:
    """Return a query for key columns of all rows of a table, whether they exist or not."""
    columns = {column.name: column for column in table.columns}
    values = [f"{clean(columns[name], source.types[name])} AS key{i}" for i, name in enumerate(names)]
    return f"SELECT {', '.join(values)} FROM {source.relation}"


def existing_keys(table: Table, source: Location, names: Sequence[str], part: Pass, parents: Sequence[str] = ()) -> str:
    """Return a query for key columns of the rows that have a unit, before any are too many."""
    layers = [*parents, f"cleaned AS ({cleaned(table, source, False, part)})"]
    values = [f"{identifier(name)} AS key{i}" for i, name in enumerate(names)]
    return f"WITH {', '.join(layers)} SELECT {', '.join(values)} FROM cleaned"


def repeated(rows: str, count: int) -> str:
    """Return a query that has a row if two of these rows have the same key, without NULL, of so many columns."""
    names = [f"key{i}" for i in range(count)]
    present = " AND ".join(f"{name} IS NOT NULL" for name in names)
    return f"SELECT 1 FROM {rows} WHERE {present} GROUP BY {', '.join(names)} HAVING COUNT(*) > 1 LIMIT 1"
