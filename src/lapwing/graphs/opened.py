"""A graph that is open: its reader, and the budgets that its questions count in."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import final

from lapwing.catalog.graph import EDGE, Graph
from lapwing.catalog.model import Catalog
from lapwing.engines.duckdb.graph_rows import GraphFiles, open_graph
from lapwing.exact.entropy import Entropy
from lapwing.graphs.asking import Beside
from lapwing.ledger.allowances import Limits, LimitsNow
from lapwing.ledger.parts import Parts
from lapwing.release.account import close_access, open_access, registration
from lapwing.release.request import Access


@final
@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class OpenGraph:
    """A graph with what its questions are answered with.

    Args:
        account: Of the promise that the graph makes.
        beside: Of the other promise about the same people or edges, in which its questions count too.
        owned: Which of them were opened for it, and are closed with it.
    """

    graph: Graph
    reader: GraphFiles
    account: Access
    beside: Beside | None
    owned: tuple[Access, ...]

    def acting_for(self, people: Access) -> "OpenGraph":
        """Return the same for somebody else, by what a session of theirs asks about people with.

        Shares of the budget that a service gives hold in the edges' budget too, as shares of that.
        """

        def theirs(own: Access) -> Access:
            if own.ledger is people.ledger:
                return people
            limits = _as_limits_of(own, people.limits)
            return replace(own, principal=people.principal, limits=limits, timing=people.timing, entropy=people.entropy)

        beside = self.beside and replace(self.beside, access=theirs(self.beside.access))
        return replace(self, account=theirs(self.account), beside=beside)

    def close(self) -> None:
        """Let go of the reader, and of the engines and ledgers that were opened for the graph."""
        self.reader.close()
        for access in self.owned:
            close_access(access)


def _as_limits_of(own: Access, limits: LimitsNow | None) -> LimitsNow | None:
    """Return limits whose largest price is in a ledger's own measure; shares are shares of any budget."""
    if limits is None:
        return None

    def now() -> Limits:
        found = limits()
        most = None if found.most is None else found.most.to_kind(own.catalog.budget.measure)
        return replace(found, most=most)

    return now


def opened(
    catalog: Catalog, graph: Graph, *, people: Access | None = None, entropy: Entropy | None = None
) -> OpenGraph:
    """Open a graph; a new ledger takes the data as they are as version 1, if they can be accepted.

    Args:
        people: What is asked about the catalog's people with, if that is open already.

    Raises:
        CatalogError: If the catalog says what cannot be meant.
        CatalogMismatch: If the catalog contradicts the ledger.
        DataFault: If the data cannot be read.
        LedgerFault: If the ledger cannot be trusted or written.
    """
    reader, owned = open_graph(graph, catalog), list[Access]()

    def of_people() -> Access:
        if people is not None:
            return people
        owned.append(open_access(catalog, registration(catalog), parts=Parts.of_catalog(catalog), entropy=entropy))
        return owned[-1]

    def of_edges(edges: Graph, require: Callable[[], object]) -> Access:
        own = catalog.of_graph(edges)
        registered = registration(own, f"edge of {edges.name}")
        owned.append(open_access(own, registered, entropy=entropy, require=require))
        return owned[-1]

    try:
        if graph.privacy == EDGE:
            account = of_edges(graph, reader.require_degrees)
            beside = _people_beside(graph, catalog, of_people)
        else:
            account = of_people()
            beside = _edges_beside(graph, catalog, of_edges)
    except BaseException:
        for access in owned:
            close_access(access)
        reader.close()
        raise
    return OpenGraph(graph=graph, reader=reader, account=account, beside=beside, owned=tuple(owned))


def _people_beside(graph: Graph, catalog: Catalog, people: Callable[[], Access]) -> Beside | None:
    """Return the budget of people, in which a question about edges counts, and as how many edges of one of them."""
    if graph.public_nodes or graph.degree_at_most is None:
        return None
    return Beside(
        access=people(), group=graph.degree_at_most * (2 if catalog.budget.neighbouring == "replace_one" else 1)
    )


def _edges_beside(
    graph: Graph, catalog: Catalog, of_edges: Callable[[Graph, Callable[[], object]], Access]
) -> Beside | None:
    """Return the budget of edges, in which a question about nodes counts, and as how many edges."""
    edges = next((one for one in catalog.graphs if one.privacy == EDGE and one.edges == graph.edges), None)
    if edges is None or edges.budget is None:
        return None
    reader = open_graph(edges, catalog)
    try:
        access = of_edges(edges, reader.require_degrees)
    finally:
        reader.close()
    # One step where a node is replaced in the people's promise; an edge that is replaced is one removed, one added.
    steps = 1 if catalog.budget.neighbouring == "replace_one" else 2
    return Beside(access=access, group=steps * (2 if edges.budget.neighbouring == "replace_one" else 1))
