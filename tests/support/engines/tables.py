"""Small catalogs over one file, for the tests of engines."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import loads
from lapwing.engines import DuckDB
from lapwing.engines.holders import UnitCountsByKey
from lapwing.query.bind.bind import bind
from lapwing.query.plan.plan import Question

HEAD = '[dataset]\nname = "t"\nledger = "sqlite:t.db"\n[budget]\nepsilon = 10\ndelta = 1e-6\n'


def catalog(
    folder: Path,
    columns: dict[str, str],
    *,
    source: str = "t.parquet",
    unit: str = "row",
    rows: int = 2,
    more: str = "",
) -> Catalog:
    """Return the catalog of one table t.

    Args: more: lines of the budget.
    """
    limit = "" if unit == "row" else f"max_rows_per_unit = {rows}\n"
    table = f'[tables.t]\nsource = "{source}"\nprivacy_unit = "{unit}"\n{limit}[tables.t.columns]\n'
    text = HEAD + more + table + "".join(f'"{name}" = {declared}\n' for name, declared in columns.items())
    return loads(text, file="t.toml", folder=folder)


def parquet(folder: Path, columns: dict[str, Any], name: str = "t.parquet") -> Path:
    pq.write_table(pa.table(columns), folder / name)
    return folder / name


def ask(engine: DuckDB, catalog: Catalog, text: str) -> dict[Any, Any]:
    """Return the exact integers of a question's cells."""
    return run(engine, bind(text, catalog).question)


def run(engine: DuckDB, question: Question) -> dict[Any, Any]:
    """Return the exact integers of a question's cells, on the data as they are."""
    return dict(engine.run(question, digests(engine, question)).cells)


def digests(engine: DuckDB, question: Question) -> dict[str, str]:
    """Return the digests of the data that a question stands on, as they are."""
    return {table.name: engine.digest(table) for table in question.lineage}


def by_value(holders: UnitCountsByKey | None) -> dict[Any, dict[int, int]]:
    """Return how many units hold each value of the private keys, by how many they hold."""
    if holders is None:
        return {}
    values = holders.named()
    found: dict[Any, dict[int, int]] = {value: {} for value in values}
    for place, degree, units in zip(*map(list, (holders.places, holders.degrees, holders.units)), strict=True):
        degrees = found[values[place]]
        degrees[int(degree)] = degrees.get(int(degree), 0) + int(units)
    return found


def holders_of(held: Mapping[str, Mapping[int, int]]) -> UnitCountsByKey:
    """Return who holds the values of one private key of texts."""
    rows = [(value, degree, units) for value, degrees in held.items() for degree, units in degrees.items()]
    columns = {name: [row[i] for row in rows] for i, name in enumerate(("key0", "degree", "units"))}
    return UnitCountsByKey.of_parts([pa.table(columns)], [None])
