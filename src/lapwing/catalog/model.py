"""The catalog as values: data set, budget, tables, views; each is valid or does not exist."""

from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Self, final

from lapwing.catalog import spelling
from lapwing.catalog.checks import ROW, check_tables, check_text, one_of, refuse_same_names
from lapwing.catalog.dictionary import EMPTY, Dictionary
from lapwing.catalog.digests import digest, table_facts
from lapwing.catalog.graph import EDGE, Graph, check_graphs
from lapwing.catalog.ledger import place_of
from lapwing.catalog.monitor_section import MonitorSection
from lapwing.catalog.place import refuse
from lapwing.catalog.public import PublicTable
from lapwing.catalog.reference import Reference, check_references
from lapwing.catalog.source_address import is_address
from lapwing.catalog.table import Column, Link, Table
from lapwing.catalog.view import View
from lapwing.privacy.calibration import loss_for
from lapwing.privacy.measures import Loss

__all__ = [
    "ENGINES",
    "MEASURES",
    "NEIGHBOURING",
    "ROW",
    "Budget",
    "Catalog",
    "Column",
    "Graph",
    "Link",
    "PublicTable",
    "Reference",
    "Table",
    "View",
]

SPARK = "spark"
"""The engine whose own hash chooses the rows of a unit that exist."""
ENGINES = ("duckdb", "postgres", SPARK)
MEASURES = ("pure", "gdp", "zcdp")
NEIGHBOURING = ("add_remove", "replace_one")
CLOCKS = ("day", "hour")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most that all results together may reveal about one privacy unit.

    Args:
        epsilon: > 0.
        delta: 0 ≤ delta < 1.
        delta_keys: The part of delta set aside for private group keys, 0 ≤ delta_keys ≤ delta.
        measure: What the ledger adds up: "pure" (epsilon), "gdp" (mu²) or "zcdp" (rho). The pure measure uses no delta
            of its own, so there delta must equal delta_keys; the others need some delta beyond delta_keys.
        neighbouring: "add_remove" or "replace_one".

    Raises:
        CatalogError: Starting with `budget.<key>`.
    """

    epsilon: Fraction
    delta: Fraction
    delta_keys: Fraction
    measure: str
    neighbouring: str

    def __post_init__(self) -> None:
        for key, number in (("epsilon", self.epsilon), ("delta", self.delta), ("delta_keys", self.delta_keys)):
            if not spelling.is_decimal(number):
                reason = f"{number} is not a decimal of at most {spelling.LONGEST} digits on a side; round it"
                refuse(f"budget.{key}", reason)
        if self.epsilon <= 0:
            refuse("budget.epsilon", f"{spelling.number(self.epsilon)} is not allowed; write a number above 0")
        if not 0 <= self.delta < 1:
            shown = spelling.number(self.delta)
            refuse("budget.delta", f"{shown} is not allowed; write a number from 0 to less than 1, like 1e-6")
        if not 0 <= self.delta_keys <= self.delta:
            shown = f"{spelling.number(self.delta_keys)} is not between 0 and delta = {spelling.number(self.delta)}"
            refuse("budget.delta_keys", f"{shown}; it is the part of delta kept for private group keys")
        one_of("budget.measure", self.measure, MEASURES)
        one_of("budget.neighbouring", self.neighbouring, NEIGHBOURING)
        self._check_measure()

    def _check_measure(self) -> None:
        if self.measure == "pure" and self.delta != self.delta_keys:
            shown = spelling.number(self.delta)
            refuse("budget.delta", f'{shown}, but measure = "pure" uses no delta; set delta = 0 or measure = "gdp"')
        if self.measure != "pure" and self.delta == self.delta_keys:
            given = f'measure = "{self.measure}" needs a delta'
            if self.delta:
                refuse(
                    "budget.delta_keys", f"takes all of delta, but {given} also needs some; make it smaller than delta"
                )
            refuse("budget.delta", f'0, but {given}; set delta, like 1e-6, or measure = "pure"')

    @property
    def loss(self) -> Loss:
        """The budget in the ledger's measure: the most loss that still implies (epsilon, delta − delta_keys)."""
        return loss_for(self.measure, self.epsilon, self.delta - self.delta_keys)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """All that a curator says in public about a data set.

    Args:
        name: Of the data set.
        engine: "duckdb", "postgres" or "spark".
        cluster: Of Spark, the master, such as spark://host:7077; None for this machine alone.
        ledger: Where spending is recorded, "sqlite:<file>"; the file is relative to `folder`.
        budget: Shared by all tables.
        tables: Those that are protected; at least one. One of them at most has parts. With a table, all those that its
            links lead to are among them.
        folder: The folder that relative paths start from.
        public_tables: Those in which nobody is protected.
        file: That it was read from, if any; two catalogs that say the same are equal wherever they are.
        views: Subqueries with a name. No two tables, graphs or views share a name.
        references: By which else than their units questions may join protected rows.
        graphs: Between rows of tables. A catalog of graphs with edge privacy alone needs no protected table.
        monitors: That are to be made of it; what was made and paid for is kept beside the ledger.
        clock: Queries that look at the clock see the beginning of the "day" or of the "hour", in UTC.
        dictionary: Titles, descriptions, labels and the like, for people; no plan and no digest depends on them.

    Raises:
        CatalogError: Starting with the place of what is wrong.
    """

    name: str
    engine: str
    ledger: str
    budget: Budget
    tables: tuple[Table, ...]
    folder: Path
    public_tables: tuple[PublicTable, ...] = ()
    views: tuple[View, ...] = ()
    references: tuple[Reference, ...] = ()
    graphs: tuple[Graph, ...] = ()
    monitors: tuple[MonitorSection, ...] = ()
    file: Path | None = field(default=None, compare=False)
    cluster: str | None = None
    clock: str = "day"
    dictionary: Dictionary = EMPTY
    digest: str = field(init=False, repr=False, compare=False)
    """A fingerprint of what the tables mean (SHA-256, hexadecimal).

    Two catalogs with the same digest give every question the same plan and the same law of its answer at a given
    price, as long as the data of public tables are the same. It covers names, privacy units and which of them are
    the same, links, references, parts, row bounds, types, bounds, steps, values, the texts of views, and an engine that
    chooses other rows than DuckDB where a unit has too many. It leaves out where data and ledger are (data have digests
    of their own) and the budget (which the ledger has registered).
    The order of tables, columns, views and pairs of a link has no meaning; the order of values has: answers show keys
    in that order.
    """

    def __post_init__(self) -> None:
        check_text("dataset.name", self.name)
        one_of("dataset.engine", self.engine, ENGINES)
        one_of("dataset.clock", self.clock, CLOCKS)
        check_text("dataset.ledger", self.ledger)
        try:
            place_of(self.ledger)
        except ValueError as error:
            refuse("dataset.ledger", f"{error}")
        if not self.tables and not any(graph.privacy == EDGE for graph in self.graphs):
            missing = "missing; describe at least one table" + (" that is protected" if self.public_tables else "")
            refuse("tables", f"{missing} in a section like [tables.visits]")
        tables = [*(table.name for table in self.tables), *(table.name for table in self.public_tables)]
        refuse_same_names("tables", tables)
        edges = dict.fromkeys(graph.edges.name for graph in self.graphs)
        others = [*(graph.name for graph in self.graphs), *(view.name for view in self.views)]
        refuse_same_names("views", (*tables, *edges, *others))
        if self.cluster is not None and self.engine != SPARK:
            refuse("dataset.cluster", f'only engine = "{SPARK}" has one; remove it, or write that engine')
        if {table.engine for table in self.tables} - {SPARK if self.engine == SPARK else None}:
            object.__setattr__(self, "tables", tuple(_of_engine(table, self.engine) for table in self.tables))
        check_graphs(self.graphs, self.tables, self.ledger)
        check_tables(self)
        check_references(self)
        facts: dict[str, object] = {"tables": {table.name: table_facts(table) for table in self.tables}}
        units = {table.name: table.unit for table in self.tables if table.unit is not None}
        if units:
            facts["units"] = units
        if self.public_tables:
            facts["public_tables"] = {table.name: table.facts for table in self.public_tables}
        if self.views:
            facts["views"] = {view.name: view.sql for view in self.views}
        if self.references:
            facts["references"] = sorted(
                [reference.table, reference.to, *sorted(map(list, reference.on))] for reference in self.references
            )
        if self.graphs:
            facts["graphs"] = {graph.name: graph.facts for graph in self.graphs}
        object.__setattr__(self, "digest", digest(facts))

    @property
    def ledger_path(self) -> Path:
        """The ledger's file; of one in PostgreSQL, the name under which this host keeps its mark."""
        return self.folder / place_of(self.ledger).file

    @property
    def at_addresses(self) -> tuple[Table | PublicTable, ...]:
        """Those tables, protected or public, that are not files, but in databases and lakes."""
        public = (table for table in self.public_tables if is_address(table.source))
        return (*(table for table in self.tables if is_address(table.source)), *public)

    @property
    def from_sources(self) -> tuple[Table | PublicTable, ...]:
        """Those of them that are fetched. Spark reads protected tables where they are."""
        return tuple(table for table in self.at_addresses if self.engine != SPARK or isinstance(table, PublicTable))

    def source_path(self, table: Table | PublicTable) -> Path:
        """Return the file that holds a table's rows."""
        return self.folder / table.source

    def leading_to(self, table: Table) -> dict[tuple[str, ...], list[str]]:
        """Return the keys of a table that links and references lead to, by which rows are unique, and from where."""
        keys: dict[tuple[str, ...], list[str]] = {}
        for other in self.tables:
            if other.link is not None and other.link.parent.name == table.name:
                key = tuple(sorted(there for _, there in other.link.on))
                keys.setdefault(key, []).append(other.name)
        for reference in self.references:
            if reference.to == table.name and not reference.to_itself:
                keys.setdefault(reference.key, []).append(reference.table)
        return keys

    def with_table(self, table: Table) -> Self:
        """Return the catalog with a table in place of the one of its name, to which links then lead."""
        tables = tuple(_relinked(known, table) for known in self.tables)
        fresh = {known.name: known for known in tables}
        graphs = tuple(
            replace(graph, nodes=tuple(fresh.get(node.name, node) for node in graph.nodes)) for graph in self.graphs
        )
        return replace(self, tables=tables, graphs=graphs)

    def graph(self, name: str) -> Graph:
        """Return the graph of a name.

        Raises:
            CatalogError: If there is none.
        """
        for graph in self.graphs:
            if graph.name.casefold() == name.casefold():
                return graph
        named = ", ".join(graph.name for graph in self.graphs)
        return refuse(f"graphs.{spelling.key(name)}", f"there is no such graph; {named or 'none is declared'}")

    def of_graph(self, graph: Graph) -> "Catalog":
        """Return the catalog of a graph's own tables, edges first: what reads them, and an edge ledger, go by it."""
        return Catalog(
            name=f"{self.name}.{graph.name}",
            engine=self.engine,
            ledger=graph.ledger or self.ledger,
            budget=graph.budget or self.budget,
            tables=(graph.edges, *graph.nodes),
            folder=self.folder,
            cluster=self.cluster,
            clock=self.clock,
            dictionary=self.dictionary,
        )


def _of_engine(table: Table, engine: str) -> Table:
    """Return a table, and those that its links lead to, as an engine makes them."""
    link = None if table.link is None else replace(table.link, parent=_of_engine(table.link.parent, engine))
    return replace(table, engine=SPARK if engine == SPARK else None, link=link)


def _relinked(table: Table, fresh: Table) -> Table:
    if table.name == fresh.name:
        return fresh
    if table.link is None:
        return table
    return replace(table, link=replace(table.link, parent=_relinked(table.link.parent, fresh)))
