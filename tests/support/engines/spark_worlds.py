"""The tables of worlds on Spark: as they are, in files of which each holds some rows, and cleaned, kept and cached."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from lapwing.catalog.model import Catalog, Table
from lapwing.engines.base import Exact
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.engines.spark import cleaned, queries
from lapwing.engines.spark.cluster import Cluster
from lapwing.engines.spark.literals import identifier, kept_name, schema_of
from lapwing.engines.spark.public_rows import public_rows
from lapwing.engines.spark.relations import carried, public_name, selected
from lapwing.query.plan.plan import Question
from lapwing.query.relations.relation import public_tables_of
from tests.support.query.worlds import Bags, Ground

TYPES: Final = {
    pa.int16(): "SMALLINT",
    pa.int32(): "INT",
    pa.int64(): "BIGINT",
    pa.string(): "STRING",
    pa.bool_(): "BOOLEAN",
    pa.float64(): "DOUBLE",
    pa.date32(): "DATE",
    pa.timestamp("us"): "TIMESTAMP_NTZ",
    pa.decimal128(12, 2): "DECIMAL(12,2)",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkTables:
    """Views of a cluster, by the names of sides and tables."""

    ground: Ground
    cluster: Cluster
    folder: Path
    catalog: Catalog
    views: dict[str, str] = field(default_factory=dict)

    def put(self, side: str, tables: Mapping[str, pa.Table], described: Catalog) -> None:
        """Write all tables into files, in any order, and keep the rows that exist."""
        for name, rows in tables.items():
            there = self.folder / str(len(self.views))
            there.mkdir(parents=True)
            order = random.Random(side).sample(range(rows.num_rows), rows.num_rows)
            for part in range(2):
                pq.write_table(rows.take(pa.array(order[part::2], pa.int64())), there / f"{part}.parquet")
            paths = [str(path) for path in there.iterdir()]
            self.views[f"{side}_{name}"] = self.cluster.read(paths, schema_of(self._types(name)))
        for table in described.tables:
            if table.name in tables:
                above = [self._layer(side, parent) for parent in reversed(table.lineage[1:])]
                rows_of = cleaned.rows_of(table, self.views[f"{side}_{table.name}"], self._types(table.name), True)
                query = " ".join([*([f"WITH {', '.join(above)}"] if above else []), rows_of])
                self.views[f"kept_{side}_{table.name}"] = self.cluster.keep(query)

    def forget(self) -> None:
        """Drop all views, whose plans take the driver's memory."""
        for view in self.views.values():
            self.cluster.forget(view)
        self.views.clear()

    def ask(self, question: Question, side: str, facts: PublicData, *, afresh: bool) -> Exact:
        """Return what is found. Args: afresh: in the rows as they are, not as they were cleaned and kept."""
        layers = self._layers(question, side, facts, afresh=afresh)
        return queries.run(question, layers, self.cluster.rows, self.cluster.columns)

    def rows_of_units(self, question: Question, side: str, facts: PublicData) -> Bags:
        """Return what rows of each unit a question is about."""
        (unit,) = carried(question.selection.relation)
        columns = [identifier(column.name) for column in question.selection.relation.columns]
        values = ", ".join(part for column in columns for part in (f"{column} IS NULL", column))
        digest = f"SUM(CAST(xxhash64({values or 0}) AS DECIMAL(38,0)))"
        shown = f"SELECT {unit}, COUNT(*), {digest} {selected(question.selection)} GROUP BY 1"
        rows = self.cluster.rows(f"WITH {self._layers(question, side, facts, afresh=False)} {shown}")
        return {whose: (count, int(bag)) for whose, count, bag in rows}

    def _layers(self, question: Question, side: str, facts: PublicData, *, afresh: bool) -> str:
        if afresh:
            layers = [self._layer(side, table) for table in question.lineage]
        else:
            kept = [(kept_name(table), self.views[f"kept_{side}_{table.name}"]) for table in question.tables]
            layers = [f"{name} AS (SELECT * FROM {view})" for name, view in kept]
        for name in sorted({name for name, _ in public_tables_of(question.selection.relation)}):
            if name not in self.views:
                (table,) = (one for one in self.catalog.public_tables if one.name == name)
                self.views[name] = self.cluster.load(public_rows(table, facts, self.catalog))
            layers.append(f"{public_name(name)} AS (SELECT * FROM {self.views[name]})")
        return ", ".join(layers)

    def _layer(self, side: str, table: Table) -> str:
        return cleaned.layer(table, self.views[f"{side}_{table.name}"], self._types(table.name), True)

    def _types(self, table: str) -> dict[str, str]:
        return {column.name: TYPES[column.type] for column in self.ground.schemas[table]}
