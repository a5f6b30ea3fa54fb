"""Whether the keys that links lead to are unique: what the catalog takes for granted, looked at for the curator.

Only rows that have a unit count: a key that two rows of nobody share leads nowhere. It is looked for among all rows
first, which is one pass over one file; only if some rows do share a key, it matters which of them have a unit. All that
have one count, also those that are too many of their unit: which of these exist is nothing that a key should rest on.
"""

from collections.abc import Sequence

from lapwing.catalog.model import Catalog, Table
from lapwing.engines.duckdb.cleaned import Location, Pass, clean, cleaned
from lapwing.engines.duckdb.database import Query
from lapwing.engines.duckdb.literals import identifier
from lapwing.engines.duckdb.stored_rows import Layers
from lapwing.errors import DataFault

Key = tuple[str, ...]


def keys_of(table: Table, catalog: Catalog) -> list[Key]:
    """Return the keys of a table that links of a catalog lead to, each in the order of its columns' names."""
    links = [other.link for other in catalog.tables if other.link is not None]
    return sorted({tuple(sorted(there for _, there in link.on)) for link in links if link.parent.name == table.name})


def is_repeated(key: Key, table: Table, layers: Layers, passes: int, query: Query) -> bool:
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
    leading = [
        other.name
        for other in catalog.tables
        if other.link is not None
        and other.link.parent.name == table.name
        and {there for _, there in other.link.on} == set(key)
    ]
    return DataFault(
        f"The file {table.source} of table {table.name} has several rows with the same {', '.join(key)}, to which the "
        f"link of {', '.join(leading)} leads; whose rows those are must be clear: leave one row, or link by a key that "
        "no two rows share"
    )


def linked_columns(table: Table, catalog: Catalog) -> Sequence[str]:
    """Return the columns of a table that links compare, in it or from below."""
    own = [] if table.link is None else [here for here, _ in table.link.on]
    return [*own, *(name for key in keys_of(table, catalog) for name in key)]


# ---- as SQL ---------------------------------------------------------------------------------------------------------


def keys(table: Table, source: Location, names: Sequence[str]) -> str:
    """Return a query for key columns of all rows of a table, whether they exist or not."""
    columns = {column.name: column for column in table.columns}
    values = [f"{clean(columns[name], source.types[name])} AS key{i}" for i, name in enumerate(names)]
    return f"SELECT {', '.join(values)} FROM {source.relation}"


def existing_keys(table: Table, source: Location, names: Sequence[str], part: Pass, parents: Sequence[str] = ()) -> str:
    """Return a query for key columns of the rows that have a unit, before any are too many."""
    layers = [*parents, f"cleaned AS ({cleaned(table, source, part)})"]
    values = [f"{identifier(name)} AS key{i}" for i, name in enumerate(names)]
    return f"WITH {', '.join(layers)} SELECT {', '.join(values)} FROM cleaned"


def repeated(rows: str, count: int) -> str:
    """Return a query that has a row if two of these rows have the same key, without NULL, of so many columns."""
    names = [f"key{i}" for i in range(count)]
    present = " AND ".join(f"{name} IS NOT NULL" for name in names)
    return f"SELECT 1 FROM {rows} WHERE {present} GROUP BY {', '.join(names)} HAVING COUNT(*) > 1 LIMIT 1"
