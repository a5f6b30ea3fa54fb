"""The tables of worlds in DuckDB: as they are, and cleaned and kept, as an engine's index stores them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa

from lapwing.catalog.model import Catalog
from lapwing.engines.base import Exact
from lapwing.engines.duckdb import unit_masks
from lapwing.engines.duckdb.cleaned import WHOLE, Location, layer
from lapwing.engines.duckdb.literals import identifier, unit_name
from lapwing.engines.duckdb.public_data import PublicData
from lapwing.engines.duckdb.queries import ask, together
from lapwing.engines.duckdb.relations import public_layer, selected
from lapwing.engines.duckdb.stored_rows import kept_rows, stored
from lapwing.query.plan.plan import Question
from tests.support.query import composed
from tests.support.query.worlds import Bags, Ground


@dataclass(frozen=True, slots=True)
class DuckDBTables:
    """A database in memory."""

    ground: Ground
    connection: duckdb.DuckDBPyConnection

    @classmethod
    def of(cls, ground: Ground) -> "DuckDBTables":
        return cls(ground, composed.connect())

    def put(self, side: str, tables: Mapping[str, pa.Table], described: Catalog) -> None:
        """Store the rows of all tables as they are, and those that exist."""
        for name, rows in tables.items():
            self.connection.register("added", rows)
            self.connection.execute(f"CREATE TABLE {side}_{name} AS SELECT * FROM added")
            self.connection.unregister("added")
        for table in described.tables:
            if table.name in tables:
                parents = [layer(above, self._source(side, above.name), True) for above in reversed(table.lineage[1:])]
                kept = kept_rows(table, self._source(side, table.name), True, WHOLE, parents)
                self.connection.execute(f"CREATE TABLE kept_{side}_{table.name} AS {kept}")

    def ask(self, question: Question, side: str, facts: PublicData, *, afresh: bool) -> Exact:
        """Return what is found, and see that units are as many by masks.

        Args: afresh: in the rows as they are, not as they were cleaned and kept.
        """
        with_ = self.layers(question, side, facts, afresh=afresh)

        def fetch(query: str) -> Any:
            return self.connection.execute(query).fetchall()

        def columns(query: str, take: Callable[[pa.RecordBatchReader], Any]) -> Any:
            return take(self.connection.sql(query).to_arrow_reader())

        found = together([ask(question, lambda _: with_, fetch, columns)], question)
        if any(map(unit_masks.fits, question.parts)):
            by_masks = ask(question, lambda _: with_, fetch, columns, last_layer=unit_masks.answer)
            assert together([by_masks], question).cells == found.cells
        return found

    def rows_of_units(self, question: Question, side: str, facts: PublicData) -> Bags:
        """Return what rows of each unit a question is about."""
        unit = unit_name(*question.tables)
        columns = [identifier(column.name) for column in question.selection.relation.columns]
        digest = f"SUM(hash({', '.join(columns)})::HUGEINT)" if columns else "0"
        shown = f"SELECT {unit}, COUNT(*), {digest} {selected(question.selection)} GROUP BY {unit}"
        rows = self.connection.execute(f"WITH {self.layers(question, side, facts, afresh=False)} {shown}").fetchall()
        return {whose: (count, bag) for whose, count, bag in rows}

    def layers(self, question: Question, side: str, facts: PublicData, *, afresh: bool) -> str:
        """Return the common table expressions that a question reads."""
        if afresh:
            own = [layer(held, self._source(side, held.name), True) for held in question.lineage]
        else:
            own = [stored(held, f"kept_{side}_{held.name}") for held in question.tables]
        joined = dict.fromkeys(composed.joined_tables(question.selection.relation))
        return ", ".join([*own, *(public_layer(facts.described(other), facts.source(other)) for other in joined)])

    def _source(self, side: str, table: str) -> Location:
        return Location(relation=f"{side}_{table}", types=self.ground.types[table])
