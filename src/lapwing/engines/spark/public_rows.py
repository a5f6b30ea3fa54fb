"""Rows of public tables, as DuckDB cleans them: what is joined on a cluster is what every price was computed from."""

from typing import TYPE_CHECKING

from lapwing.catalog.model import Catalog, PublicTable
from lapwing.engines.duckdb import files
from lapwing.engines.duckdb.database import Database
from lapwing.engines.duckdb.public_data import MEMORY, SECONDS, PublicSources
from lapwing.engines.duckdb.relations import public_layer, public_name

if TYPE_CHECKING:
    import pyarrow as pa


def public_rows(table: PublicTable, public: PublicSources, catalog: Catalog) -> "pa.Table":
    """Return the cleaned rows of a public table."""
    path = catalog.source_path(table).resolve()
    described, source = public.described(table), public.source(table)
    database = Database(
        paths=[str(path)], folders=files.folders_read([path]), memory=MEMORY, threads=0, seconds=SECONDS
    )
    try:
        query = f"WITH {public_layer(described, source)} SELECT * FROM {public_name(table)}"
        return database.columns(query, lambda batches: batches.read_all())
    finally:
        database.close()
