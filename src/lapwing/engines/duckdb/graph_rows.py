"""Read a graph: nodes are numbered in the order of their keys, and rows become pairs of numbers.

The rows of either table are those of every question (`cleaned`): of a node table the first row of each unit, of the
edge table all rows, value by value. Numbers follow the order of the keys, so that without one node the others keep
theirs in order: what is counted by an order of pairs (`mechanisms.graphs.projection`) rests on that. A row whose end
is no node joins nothing and is left out.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from lapwing.catalog.graph import NODE, Graph
from lapwing.catalog.model import Catalog, Table
from lapwing.engines import base
from lapwing.engines.duckdb import source_reading
from lapwing.engines.duckdb.cleaned import layer
from lapwing.engines.duckdb.database import Database, QueryRunner
from lapwing.engines.duckdb.engine import DuckDB
from lapwing.engines.duckdb.files import folders_read
from lapwing.engines.duckdb.literals import constant, identifier, kept_name, unit_name
from lapwing.engines.graph_rows import UNLISTED, GraphRows, Integers
from lapwing.errors import DataFault, EngineFault
from lapwing.mechanisms.graphs.simple_graph import SimpleGraph

if TYPE_CHECKING:
    import pyarrow as pa

MEMORY: Final = 2_000_000_000  # bytes
SECONDS: Final = 600.0


@final
class GraphFiles:
    """The files of one graph.

    Args:
        catalog: Of the graph's own tables (`Catalog.of_graph`).
    """

    def __init__(self, graph: Graph, catalog: Catalog) -> None:
        self._graph, self._catalog = graph, catalog
        self._engine = DuckDB(catalog, indexing=False)
        sources = [catalog.source_path(table).resolve() for table in catalog.tables]
        self._database = Database(
            paths=[*map(str, sources)], folders=folders_read(sources), memory=MEMORY, threads=0, seconds=SECONDS
        )

    def digests(self) -> Mapping[str, str]:
        """Return the fingerprints of the tables' data, after all of them were read through."""
        return {table.name: self._engine.digest(table) for table in self._catalog.tables}

    def read(self, digests: Mapping[str, str]) -> GraphRows:
        """Return the graph, of the data with these digests."""
        rows: GraphRows | None = None
        with suppress(Exception):
            found = self.all_rows()
            if all(self._engine.digest(table) == digests[table.name] for table in self._catalog.tables):
                rows = found
        if rows is None:  # raised out here, the fault drags no engine's message along
            raise EngineFault(base.FAILED)
        return rows

    def check(self, *, unreadable: str | None) -> dict[str, str]:
        """Return the digest of the edge table, if its data can be accepted. The curator's act.

        Raises:
            DataFault: For values that are not of their type, too many rows, or a node of too many edges.
        """
        edges = self._catalog.tables[0]
        digest = self._engine.digest(edges)
        if edges.rows_at_most is not None and self._engine.rows(edges) > edges.rows_at_most:
            raise DataFault(
                f"{edges.source} has more rows than the {edges.rows_at_most:,} that rows_at_most of table {edges.name} "
                "promises. Raise it in the catalog, to a figure that may be public, or take rows out of the data"
            )
        unfit = base.refused_columns(edges, self._engine, unreadable)
        if unfit:
            raise DataFault(
                f"{edges.source} has values that are not of the declared type in {', '.join(unfit)}. Mend them, or let "
                f'them count as no node by the line unreadable = "null" of table {edges.name}'
            )
        self.require_degrees()
        return {edges.name: digest}

    def require_degrees(self) -> None:
        """Refuse data in which a node has more edges than the graph says. The curator's act."""
        most = self._graph.degree_at_most
        if most is not None and int(self.all_rows().graph.degrees().max(initial=0)) > most:
            raise DataFault(
                f"A node of {self._graph.name} has more edges than the {most:,} that degree_at_most promises. Raise it "
                "in the catalog, to a figure that may be public, or take edges out of the data"
            )

    def close(self) -> None:
        """Let go of the databases."""
        self._engine.close()
        self._database.close()

    def all_rows(self) -> GraphRows:
        """Return the graph as it stands in the files: every read of its rows is here."""
        graph = self._graph
        with self._database.session() as query:
            sizes, labels, first = [], {}, 0
            columns: list[tuple[Table, list[tuple[str, Integers]]]] = []
            for place, table in enumerate(graph.nodes):
                size, found = self._nodes(query, place, table, first)
                columns.append((table, found))
                sizes.append(size)
                first += size
            for place, (table, found) in enumerate(columns):
                before, after = sum(sizes[:place]), sum(sizes[place + 1 :])
                for name, codes in found:
                    sides = (np.full(before, UNLISTED), codes, np.full(after, UNLISTED))
                    labels[table.name, name] = np.concatenate(sides)
            ends = self._edges(query)
        return GraphRows(graph=SimpleGraph.of(first, *ends, directed=graph.directed), labels=labels, sizes=tuple(sizes))

    def _source(self, table: Table) -> str:
        path = self._catalog.source_path(table).resolve()
        file, _ = source_reading.described(path, table, self._database, self._catalog)
        return layer(table, file.source, False)

    def _nodes(
        self, query: QueryRunner, place: int, table: Table, first: int
    ) -> tuple[int, list[tuple[str, Integers]]]:
        """Give the nodes of a table numbers from `first` on, and return how many there are, and their listed values."""
        kept, unit = kept_name(table), unit_name(table)
        listed = [column for column in table.columns if column.values is not None]
        codes = "".join(f", {_code(column)} AS {identifier('label' + str(i))}" for i, column in enumerate(listed))
        query(
            f"CREATE OR REPLACE TEMP TABLE nodes{place} AS WITH {self._source(table)} "
            f"SELECT {unit} AS key, row_number() OVER (ORDER BY {unit}) - 1 + {first} AS number{codes} FROM {kept}"
        )
        names = ["number", *(f"label{i}" for i in range(len(listed)))]

        def taken(batches: "pa.RecordBatchReader") -> list[Integers]:
            read = batches.read_all()
            return [read[name].to_numpy().astype(np.int64) for name in names]

        numbers, *labels = query.columns(f"SELECT {', '.join(names)} FROM nodes{place} ORDER BY number", taken)
        return len(numbers), [(column.name, codes) for column, codes in zip(listed, labels, strict=True)]

    def _edges(self, query: QueryRunner) -> tuple[Integers, Integers]:
        edges, (one, other), last = self._graph.edges, self._graph.ends, len(self._graph.nodes) - 1

        def taken(batches: "pa.RecordBatchReader") -> tuple[Integers, Integers]:
            read = batches.read_all()
            return read["one"].to_numpy().astype(np.int64), read["other"].to_numpy().astype(np.int64)

        found: tuple[Integers, Integers] = query.columns(
            f"WITH {self._source(edges)} SELECT x.number AS one, y.number AS other FROM {kept_name(edges)} AS e "
            f"JOIN nodes0 AS x ON e.{identifier(one)} = x.key JOIN nodes{last} AS y ON e.{identifier(other)} = y.key",
            taken,
        )
        return found


def _code(column: Any) -> str:
    """Return the place of a value among those that are listed, `other` after them, as SQL."""
    name = identifier(column.name)
    cases = " ".join(f"WHEN {name} = {constant(value)} THEN {i}" for i, value in enumerate(column.values))
    rest = UNLISTED if column.other is None else len(column.values)
    return f"CASE {cases} ELSE {rest} END"


def open_graph(graph: Graph, catalog: Catalog) -> GraphFiles:
    """Return what reads a graph of a catalog; it is to be closed."""
    return GraphFiles(graph, catalog.of_graph(graph))


def edge_digests(catalog: Catalog, *, unreadable: str | None = None) -> dict[str, str]:
    """Return the digests of the edge tables that belong to a catalog's people, for a version that is to be accepted.

    Raises:
        DataFault: As `GraphFiles.check`.
    """
    digests: dict[str, str] = {}
    for graph in catalog.graphs:
        if graph.privacy == NODE:
            reader = open_graph(graph, catalog)
            try:
                digests |= reader.check(unreadable=unreadable)
            finally:
                reader.close()
    return digests
