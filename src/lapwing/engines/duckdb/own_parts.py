"""A table in parts: of each unit only the rows of its own part are there.

A unit's part is the first declared value, in the catalog's order, among its own cleaned rows. Its other rows are
dropped before any are kept, and so is a unit without a declared value. So what is left is a function of the unit's own
rows.
"""

from lapwing.catalog.model import Column as Declared
from lapwing.catalog.model import Table
from lapwing.engines.duckdb.literals import constant, identifier, unit_name, whole


def own_part(table: Table, column: Declared, rows: str) -> str:
    """Select the rows of each unit's own part; where rows are the units, those that are of a part.

    Args:
        column: The one that says of which part a row is.
        rows: The query for all rows, cleaned.
    """
    name = identifier(column.name)
    listed = [_listed(column, value) for value in column.values or ()]
    ranks = " ".join(f"WHEN {value} THEN {rank}" for rank, value in enumerate(listed))
    chosen = f"SELECT * FROM ({rows}) WHERE {name} IN ({', '.join(listed)})"
    if table.unit_is_row:
        return chosen
    rank = f"CASE {name} {ranks} END"
    return f"{chosen} QUALIFY {rank} = MIN({rank}) OVER (PARTITION BY {unit_name(table)})"


def _listed(column: Declared, value: object) -> str:
    """Write a public value as it is when it is cleaned: a bounded number is a number of steps."""
    if isinstance(value, int) and column.numeric and column.bounded and column.step is not None:
        return whole(int(value / column.step))
    return constant(value)
