"""What an analyst of a graph holds: its promise, its ledger, and its statistics."""

from collections.abc import Mapping
from pathlib import Path
from typing import Self, final

from lapwing.budget import BudgetView
from lapwing.catalog.graph import EDGE, NODE, Graph
from lapwing.catalog.model import Catalog
from lapwing.catalog.toml import load
from lapwing.engines.duckdb.graph_rows import GraphFiles, open_graph
from lapwing.engines.registry import open_engine
from lapwing.errors import InvalidParameter, QueryRefused
from lapwing.exact.entropy import Entropy, SystemEntropy
from lapwing.graphs.answer import GraphAnswer, GraphPreview, NumberPreview
from lapwing.graphs.asking import Beside, answer
from lapwing.graphs.pricing import CONFIDENCE, Priced, levels, priced
from lapwing.graphs.recipe import PublicNumber
from lapwing.graphs.sql import read_question
from lapwing.graphs.statistics import recipe_of, statistics_of
from lapwing.ledger.opening import is_begun, open_ledger
from lapwing.ledger.owners import owners_of
from lapwing.ledger.registration import Registration
from lapwing.mechanisms.graphs.ladder import Ladder
from lapwing.mechanisms.packing import require_solver
from lapwing.opening import open_session, principal
from lapwing.privacy.filters import Account, fits
from lapwing.privacy.measures import Number
from lapwing.session import Session


@final
class GraphSession:
    """Ask for statistics of one graph.

    Made by `lapwing.graphs.connect`. `statistics` says what may be asked.

    Args: account: of the promise that the graph makes; beside: of the other promise about the same people or edges.
    """

    def __init__(self, graph: Graph, reader: GraphFiles, account: Session, beside: tuple[Session, int] | None) -> None:
        self.graph = graph
        self._reader = reader
        self._account = account
        self._beside = beside

    @property
    def statistics(self) -> Mapping[str, str]:
        """What may be asked of the graph, by name: what it is."""
        return {one.name: one.summary for one in statistics_of(self.graph)}

    @property
    def protects(self) -> str:
        """What is protected, in words."""
        return self.graph.unit

    def ask(self, statistic: str, *, epsilon: Number, **arguments: object) -> GraphAnswer:
        """Answer a statistic and charge it; the same question again is free.

        Args: epsilon: the price; arguments: what the statistic takes, such as `by` and `level`.
        Guarantee: the loss is charged durably before any row is read; no budget is exceeded. Neighbours: the graph
            with one edge more or less, or one node with all its edges, as `protects` says; or with one replaced.
        Raises: QueryRefused, InvalidParameter, BudgetExhausted, DataChanged, DataStopped (nothing charged); EngineFault
            (charged).
        """
        asked = self._priced(statistic, epsilon, arguments)
        outcome = answer(self.graph, asked, self._reader, self._account._access(), self._other())
        return GraphAnswer(question=asked.recipe.text, protects=self.protects, outcome=outcome)

    def sql(self, text: str, *, epsilon: Number) -> GraphAnswer:
        """Answer SELECT GRAPH_EDGES(friends), or another statistic by its name in capitals, as `ask` does.

        Raises: as `ask`, and QueryRefused for another question, or of another graph.
        """
        question = read_question(text)
        if question.graph.casefold() != self.graph.name.casefold():
            raise QueryRefused(f"The graph that was opened is {self.graph.name}", remedy="Name it, or open the other.")
        return self.ask(question.statistic, epsilon=epsilon, **question.arguments)

    def explain(self, statistic: str, *, epsilon: Number, **arguments: object) -> GraphPreview:
        """Return what a statistic would cost and promise; free, and no row is read."""
        asked = self._priced(statistic, epsilon, arguments)
        state, other = self._account._access().ledger.seen(), self._other()
        possible = levels(asked)
        shown = possible if len(possible) < 3 else (possible[0], possible[-1])
        rooms = [fits(Account(budget=state.room(None), spent=asked.loss.nothing()), asked.loss)]
        beside = {}
        if other is not None:
            loss = other.loss(asked.loss)
            room = other.access.ledger.seen().room(None)
            beside[other.access.catalog.name] = loss
            rooms.append(fits(Account(budget=room, spent=room.nothing()), loss))
        return GraphPreview(
            question=asked.recipe.text,
            protects=self.protects,
            loss=asked.loss,
            beside=beside,
            fits=min(rooms),
            numbers=tuple(one for level in shown for one in _previews(asked, level)),
            notes=self.notes + self._searching(asked),
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What to know of the graph's promise, on every page that shows its budget."""
        return self.graph.notes

    def budget(self) -> BudgetView:
        """Return what was granted, spent and is left of the graph's promise, with the history of charges."""
        return self._account.budget()

    def accept_data(self) -> int:
        """Make the data as they are now the ledger's current version. The curator's act; spending stays.

        Raises: DataFault for data that are not as the catalog says.
        """
        if self.graph.privacy == EDGE:
            self._reader.require_degrees()
        return self._account.accept_data()

    def close(self) -> None:
        """Let go of engines and ledgers."""
        self._reader.close()
        self._account.close()
        if self._beside is not None:
            self._beside[0].close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _priced(self, statistic: str, epsilon: Number, arguments: Mapping[str, object]) -> Priced:
        require_solver()
        recipe = recipe_of(self.graph, statistic, arguments)
        return priced(recipe, self._account.price(epsilon), self._account.catalog.budget.neighbouring)

    def _other(self) -> Beside | None:
        if self._beside is None:
            return None
        session, group = self._beside
        return Beside(access=session._access(), group=group)

    def _searching(self, asked: Priced) -> tuple[str, ...]:
        if asked.chooser is None:
            return ()
        possible, share = levels(asked), float(1 - asked.shared.amount / asked.loss.amount)
        return (
            f"a level from {possible[0]:,} to {possible[-1]:,} is chosen by {share:.0%} of the price; say level to "
            "spend all of it on the number",
        )


def _previews(asked: Priced, level: int | None) -> tuple[NumberPreview, ...]:
    return tuple(
        NumberPreview(
            name=one.number.name,
            mechanism=one.mechanism.name,
            sensitivity=one.sensitivity.l1,
            scale=float(one.mechanism.scale),
            half_width=None if isinstance(one.mechanism, Ladder) else one.mechanism.half_width(CONFIDENCE),
            because=one.number.because,
            level=level,
        )
        for one in asked.numbers(level)
        if one.mechanism is not None and not isinstance(one.number, PublicNumber)
    )


def connect(catalog: str | Path = "lapwing.toml", graph: str | None = None) -> GraphSession:
    """Open a graph that a catalog describes.

    Args: graph: its name; needed if there are several.
    Raises: CatalogError, CatalogMismatch, DataFault, LedgerFault.
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
    reader = open_graph(graph, catalog)
    opened: list[Session] = []
    try:
        account = _account(catalog, graph, reader, entropy)
        opened.append(account)
        beside = _beside(catalog, graph, entropy, opened)
    except BaseException:
        for session in opened:
            session.close()
        reader.close()
        raise
    return GraphSession(graph, reader, account, beside)


def _account(catalog: Catalog, graph: Graph, reader: GraphFiles, entropy: Entropy | None) -> Session:
    """Return the session whose ledger the graph's questions are charged to."""
    if graph.privacy == NODE:
        return open_session(catalog, entropy=entropy)
    own = catalog.of_graph(graph)
    budget = own.budget
    engine, public = open_engine(own)
    try:
        registered = Registration(
            dataset=own.name,
            privacy_unit=f"edge of {graph.name}",
            neighbouring=budget.neighbouring,
            budget=budget.loss,
            epsilon=budget.epsilon,
            delta=budget.delta,
            delta_keys=budget.delta_keys,
        )
        if not is_begun(own.ledger, own.folder):
            reader.require_degrees()  # data that are not accepted leave no ledger behind
        ledger = open_ledger(own.ledger, own.folder, registered, parts=None, owners=owners_of(own))
        session = Session(own, engine, ledger, entropy or SystemEntropy(), principal(), public)
    except BaseException:
        engine.close()
        raise
    try:
        if ledger.state().version == 0:
            session.accept_data()
    except BaseException:
        session.close()
        raise
    return session


def _beside(
    catalog: Catalog, graph: Graph, entropy: Entropy | None, opened: list[Session]
) -> tuple[Session, int] | None:
    """Return the session of the other budget in which the graph's questions count, and as a group of how many."""
    if graph.privacy == EDGE:
        if graph.public_nodes or graph.degree_at_most is None:
            return None
        session = open_session(catalog, entropy=entropy)
        group = graph.degree_at_most * (2 if catalog.budget.neighbouring == "replace_one" else 1)
    else:
        edges = next((one for one in catalog.graphs if one.privacy == EDGE and one.edges == graph.edges), None)
        if edges is None or edges.budget is None:
            return None
        reader = open_graph(edges, catalog)
        try:
            session = _account(catalog, edges, reader, entropy)
        finally:
            reader.close()
        # One step where a node is replaced in the people's promise; an edge that is replaced is one removed, one added.
        steps = 1 if catalog.budget.neighbouring == "replace_one" else 2
        group = steps * (2 if edges.budget.neighbouring == "replace_one" else 1)
    opened.append(session)
    return session, group
