"""A graph: a table of edges between nodes, each of which is a row of a table of nodes; and what is protected in it.

Two promises are possible, and a graph makes one of them.
  privacy = "node"  a node with all its edges: a person who is removed takes everything along that says whom she knows.
                    The graph belongs to the people of the node table, and its questions are charged to their ledger.
  privacy = "edge"  one edge: that two nodes know each other. Who is a node, and how many edges there are of somebody
                    by and large, is not hidden. It is a weaker promise about something else, so that it has a budget
                    and a ledger of its own, which are never added to those of people.

Which edges there are. A row of the edge table is an edge if both its ends are nodes and differ; it is there once,
whatever number of rows say so, and in an undirected graph in whatever direction. Rows with an end that is NULL or no
node, and loops, are none. So whether an edge exists is a function of its two nodes and of the rows with just these
ends: without a node exactly its edges are gone, and without its rows exactly that edge is.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, final

from lapwing.catalog import spelling
from lapwing.catalog.checks import KEY_TYPES, check_text, one_of
from lapwing.catalog.digests import digest, table_facts
from lapwing.catalog.ledger import place_of
from lapwing.catalog.place import refuse, within
from lapwing.catalog.protection import unit_in_words
from lapwing.catalog.source_address import is_address
from lapwing.catalog.table import Table
from lapwing.languages import JoinedTexts, say, say_count

if TYPE_CHECKING:  # the catalog holds graphs
    from lapwing.catalog.model import Budget

NODE: Final = "node"
EDGE: Final = "edge"
PROMISES: Final = (NODE, EDGE)
MOST_EDGES: Final = 20_000_000
"""The most edges of a graph: with what is made of them, 4 GB or so."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Nodes, edges, and whether a node or an edge is protected.

    Args:
        name: As questions call it.
        nodes: One table, or two if every edge leads from a node of the first to one of the second. Each says by its
            privacy unit which node a row is, and has one row of it.
        edges: A table each row of which stands alone; `rows_at_most` says how many rows it has at most.
        ends: The columns of `edges` that hold the two nodes.
        directed: Whether an edge leads from the first end to the second.
        privacy: "node" or "edge".
        degree_at_most: The most edges of any node, a public figure; no version of the data in which one has more is
            accepted.
        budget: Of a graph with edge privacy; None with node privacy.
        ledger: Of a graph with edge privacy; None with node privacy.
        public_nodes: Whether the nodes and what is said of them are public: with edge privacy only.

    Raises:
        CatalogError: Starting with `graphs.<name>.<key>`.
    """

    name: str
    nodes: tuple[Table, ...]
    edges: Table
    ends: tuple[str, str]
    directed: bool = False
    privacy: str
    degree_at_most: int | None = None
    budget: "Budget | None" = None
    ledger: str | None = None
    public_nodes: bool = False
    digest: str = field(init=False, repr=False, compare=False)
    """A fingerprint of what the graph means (SHA-256, hexadecimal), without data, budget and ledger."""

    def __post_init__(self) -> None:
        with within(f"graphs.{spelling.key(self.name)}"):
            check_text("", self.name)
            one_of(".privacy", self.privacy, PROMISES)
            for check in (_check_nodes, _check_edges, _check_degree, _check_account):
                check(self)
        object.__setattr__(self, "digest", digest({"graph": self.facts}))

    @property
    def facts(self) -> dict[str, object]:
        """What the graph means."""
        said: dict[str, object] = {
            "nodes": {table.name: table_facts(table) for table in self.nodes},
            "order": [table.name for table in self.nodes],
            "edges": {self.edges.name: table_facts(self.edges)},
            "ends": list(self.ends),
            "directed": self.directed,
            "privacy": self.privacy,
            "public_nodes": self.public_nodes,
        }
        return said | ({} if self.degree_at_most is None else {"degree_at_most": str(self.degree_at_most)})

    @property
    def edges_at_most(self) -> int:
        """How many edges there are at most: a public figure."""
        return self.edges.rows_at_most or MOST_EDGES

    @property
    def bipartite(self) -> bool:
        """Whether every edge leads from one table of nodes to another."""
        return len(self.nodes) == 2

    @property
    def unit(self) -> str:
        """What is protected, in words."""
        if self.privacy == EDGE:
            return say(
                "each edge of {name}, present or absent; not who is a node, nor a person with all her edges",
                name=self.name,
            )
        units = JoinedTexts((unit_in_words(table.privacy_unit) for table in self.nodes), say(" and "))
        return say("{units}, present or absent with all edges in {name}", units=units, name=self.name)

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know of the promise, on every page that shows its budget; nothing where nodes are protected."""
        if self.privacy == NODE:
            return ()
        weaker = "one edge is protected; a person with many edges is protected less than one edge"
        if self.public_nodes:
            return (weaker, "the set of nodes is public")
        if self.degree_at_most is None:
            return (weaker, f"the promise to people does not cover {self.name}, because degree_at_most is not declared")
        return (
            weaker,
            f"each query counts in the people's budget too, as {self.degree_at_most:,} edges of one person",
        )

    @property
    def beside_people(self) -> str | None:
        """What the budget of people says of the graph; None where it says nothing."""
        if self.privacy == NODE:
            return None
        if self.public_nodes:
            return say(
                "the promise does not cover the graph {name}: who is a node there is public, and its edges have "
                "a weaker promise of their own",
                name=self.name,
            )
        if self.degree_at_most is None:
            return say(
                "the promise does not cover the edges of {name}: they have a weaker promise of their own. "
                "Its queries do not count here, because the catalog declares no degree_at_most",
                name=self.name,
            )
        return say_count(
            self.degree_at_most,
            "queries about single edges of {name} count here as {count} edge of one person; they have a budget of "
            "their own next to this one",
            "queries about single edges of {name} count here as {count} edges of one person; they have a budget of "
            "their own next to this one",
            name=self.name,
        )


def _check_nodes(graph: Graph) -> None:
    if not 1 <= len(graph.nodes) <= 2:
        refuse(".nodes", 'name one table, or two like ["people", "shops"] for edges between rows of the two')
    if graph.bipartite and (graph.directed or graph.nodes[0] == graph.nodes[1]):
        refuse(
            ".nodes",
            "two tables are two sides of undirected edges; name one table for a directed graph, or twice the same",
        )
    for table in graph.nodes:
        name = spelling.text(table.name)
        if table.link is not None or table.unit_is_row:
            refuse(".nodes", f"{name} has no privacy unit of its own, which says which node a row is; give it one")
        if table.max_rows_per_unit != 1:
            refuse(
                ".nodes",
                f"{name} has up to {table.max_rows_per_unit} rows of a node; a node table has max_rows_per_unit = 1",
            )
        if table.part is not None:
            refuse(".nodes", f"{name} has parts, and edges lead from one part to another; remove part")
        if table.column(table.privacy_unit) is None:
            place = f"[tables.{spelling.key(table.name)}.columns]"
            refuse(".nodes", f"the type of {spelling.text(table.unit_column)} is not known; declare it in {place}")
    if graph.public_nodes and graph.privacy == NODE:
        refuse(".nodes", 'a public table has no protected rows; name a protected table, or write privacy = "edge"')


def _check_edges(graph: Graph) -> None:
    name, place = spelling.text(graph.edges.name), f"tables.{spelling.key(graph.edges.name)}"
    if len(graph.ends) != 2 or graph.ends[0] == graph.ends[1]:
        refuse(".ends", f'name two different columns of {name}, like ends = ["a", "b"]')
    for end, table in zip(graph.ends, (graph.nodes[0], graph.nodes[-1]), strict=True):
        column, key = graph.edges.column(end), table.column(table.privacy_unit)
        if column is None or key is None:
            refuse(".ends", f"{name} has no column {spelling.text(end)}; declare it in [{place}.columns]")
        if column.type != key.type or column.type not in KEY_TYPES:
            reason = f"{spelling.text(end)} is of type {column.type}, and {spelling.text(key.name)} of {key.type}"
            refuse(".ends", f"{reason}; declare both as one of {', '.join(KEY_TYPES)}")
        if column.bounded or column.values is not None or not column.nullable:
            refuse(".ends", f"{spelling.text(end)} has bounds or values, which would change some nodes; remove them")
    if graph.edges.rows_at_most is None:
        refuse(".edges", f"a graph needs a public limit on its edges; write rows_at_most in [{place}], like 1_000_000")
    if graph.edges_at_most > MOST_EDGES:
        refuse(
            ".edges",
            f"rows_at_most = {graph.edges_at_most:,} would take more than 4 GB of memory; at most {MOST_EDGES:,} "
            f"edges are allowed",
        )


def _check_degree(graph: Graph) -> None:
    most = graph.degree_at_most
    if most is not None and (type(most) is not int or not 1 <= most <= graph.edges_at_most):
        reason = f"{spelling.value(most)} is not allowed; write the most edges of any node, from 1 to rows_at_most"
        refuse(".degree_at_most", f"{reason}, or leave it out")


def _check_account(graph: Graph) -> None:
    if graph.privacy == NODE:
        if graph.budget is not None or graph.ledger is not None:
            refuse(".budget", "nodes are people, who have one budget and ledger; remove budget and ledger here")
        return
    if graph.budget is None:
        refuse(".budget", "missing; edges have a budget of their own, like budget = { epsilon = 1 }")
    if graph.ledger is None:
        refuse(".ledger", 'missing; edges have their own ledger, like ledger = "sqlite:edges.lapwing.db"')
    try:
        place_of(graph.ledger)
    except ValueError as error:
        refuse(".ledger", f"{error}")


def check_graphs(graphs: tuple[Graph, ...], tables: tuple[Table, ...], ledger: str) -> None:
    """Refuse graphs that contradict one another, or the tables of their catalog.

    Raises:
        CatalogError: If the catalog says what cannot be meant.
    """
    promises: dict[tuple[str, str], str] = {}
    ledgers: dict[str, str] = {ledger: "dataset.ledger"} if tables else {}
    for graph in graphs:
        place = f"graphs.{spelling.key(graph.name)}"
        for table in (*graph.nodes, graph.edges):
            if is_address(table.source):
                reason = "comes from a source, but Lapwing reads graphs from files; export it, and name the file"
                refuse(f"tables.{spelling.key(table.name)}.source", reason)
        for table in graph.nodes:
            if not graph.public_nodes and table not in tables:
                refuse(
                    f"{place}.nodes", f"leads to a different {spelling.text(table.name)} than the one in this catalog"
                )
        other = promises.setdefault((graph.edges.name, graph.privacy), graph.name)
        if other != graph.name:
            reason = (
                f"{spelling.text(graph.edges.name)} is already the graph {spelling.text(other)}, with the same privacy"
            )
            refuse(f"{place}.edges", f"{reason}; remove one of the two graphs")
        if graph.ledger is not None and ledgers.setdefault(graph.ledger, f"{place}.ledger") != f"{place}.ledger":
            reason = f"{spelling.text(graph.ledger)} already belongs to {ledgers[graph.ledger]}, with another promise"
            refuse(f"{place}.ledger", f"{reason}; name another file")
