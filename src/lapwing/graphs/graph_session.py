"""What an analyst of a graph holds: its promise, its ledger, and its statistics."""

from collections.abc import Mapping
from pathlib import Path
from typing import Self, final

from lapwing.budget import BudgetView, budget_view
from lapwing.catalog.graph import EDGE, Graph
from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import load
from lapwing.engines import digests
from lapwing.errors import InvalidParameter
from lapwing.exact.entropy import Entropy
from lapwing.graphs.answer import GraphAnswer, GraphPreview
from lapwing.graphs.answering import answered, previewed
from lapwing.graphs.opened import OpenGraph, opened
from lapwing.graphs.sql import question_about
from lapwing.graphs.statistics import recipe_of, statistics_of
from lapwing.ledger.owners import owners_of
from lapwing.ledger.wording import require_label
from lapwing.privacy.measures import Number


@final
class GraphSession:
    """Ask for statistics of one graph.

    Made by `lapwing.graphs.connect`. `statistics` says what may be asked.
    """

    def __init__(self, held: OpenGraph) -> None:
        self.graph = held.graph
        self._held = held

    @property
    def statistics(self) -> Mapping[str, str]:
        """The statistics of the graph that you may ask for, by name, with a description."""
        return {one.name: one.summary for one in statistics_of(self.graph)}

    @property
    def protects(self) -> str:
        """The protected unit, in words."""
        return self.graph.unit

    def ask(self, statistic: str, *, epsilon: Number, delta: Number | None = None, **arguments: object) -> GraphAnswer:
        """Answer a statistic and charge it; the same question again is free.

        Args:
            epsilon: The price.
            delta: Part of the budget's `delta_keys`, for triangles, wedges and clustering with an edge hidden. It buys
                a bound on how far one edge moves the count, and mostly a narrower ±.
            **arguments: The arguments of the statistic, such as `by` and `level`.

        Guarantee:
            The loss is charged durably before any row is read; no budget is exceeded. Neighbours: the graph with one
            edge more or less, or one node with all its edges, as `protects` says; or with one replaced.

        Raises:
            QueryRefused: If the question is not understood or not allowed. Nothing is charged.
            InvalidParameter: If a value is not allowed. Nothing is charged.
            BudgetExhausted: If the budget does not bear the loss. Nothing is charged.
            DataChanged: If the data are another version. Nothing is charged.
            DataStopped: If the data set is stopped. Nothing is charged.
            EngineFault: If the question fails after its charge. It is charged.
        """
        return answered(self._held, recipe_of(self.graph, statistic, arguments), epsilon, delta=delta)

    def sql(self, text: str, *, epsilon: Number, delta: Number | None = None, label: str | None = None) -> GraphAnswer:
        """Answer SELECT GRAPH_EDGES(friends), or a join of the table of edges with itself, as `ask` does.

        Raises:
            LapwingError: As `ask`, and QueryRefused for another question, or of another graph.
        """
        recipe = question_about(self.graph, text).recipe(self.graph)
        if label is not None:
            require_label(label)
        typed: dict[str, object] = {"text": text} if label is None else {"text": text, "label": label}
        return answered(self._held, recipe, epsilon, typed, delta=delta)

    def explain(
        self, statistic: str, *, epsilon: Number, delta: Number | None = None, **arguments: object
    ) -> GraphPreview:
        """Return what a statistic would cost and promise; free, and no row is read."""
        return previewed(self._held, recipe_of(self.graph, statistic, arguments), epsilon, delta=delta)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on the graph's promise, for every page that shows its budget."""
        return self.graph.notes

    def budget(self) -> BudgetView:
        """Return what was granted, spent and is left of the graph's promise, with the history of charges."""
        ledger = self._held.account.ledger
        state = ledger.seen()
        return budget_view(state, ledger.history_until(state.sequence))

    def accept_data(self) -> int:
        """Make the data as they are now the ledger's current version. The curator's act; spending stays.

        Raises:
            DataFault: For data that are not as the catalog says.
        """
        if self.graph.privacy == EDGE:
            self._held.reader.require_degrees()
        account = self._held.account
        found, owners = digests(account.catalog, account.engine), owners_of(account.catalog)
        return account.ledger.accept(found, account.principal, owners)

    def close(self) -> None:
        """Let go of engines and ledgers."""
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def connect(catalog: str | Path = "lapwing.toml", graph: str | None = None) -> GraphSession:
    """Open a graph that a catalog describes.

    Args:
        graph: Its name; needed if there are several.

    Raises:
        CatalogError: If the catalog says what cannot be meant.
        CatalogMismatch: If the catalog contradicts the ledger.
        DataFault: If the data cannot be read.
        LedgerFault: If the ledger cannot be trusted or written.
    """
    described = load(Path(catalog))
    if graph is None and len(described.graphs) == 1:
        graph = described.graphs[0].name
    if graph is None:
        names = ", ".join(one.name for one in described.graphs)
        found = f"describes several graphs; name one of {names}" if names else "describes no graph"
        raise InvalidParameter(f"{Path(catalog).name} {found}.")
    return open_graph_session(described, described.graph(graph))


def open_graph_session(catalog: Catalog, graph: Graph, *, entropy: Entropy | None = None) -> GraphSession:
    """Open a graph; a new ledger takes the data as they are as version 1, if they can be accepted."""
    return GraphSession(opened(catalog, graph, entropy=entropy))
